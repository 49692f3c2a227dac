"""What one seat knows: a view is a game record with every hidden card blanked.

Bots and observations get a view, never the record itself. Two games that differ only in what a seat
cannot know give that seat the same view, byte for byte (`tests/test_hidden.py`). `determinise` goes
the other way: it fills the blanks with one of the equally likely deals.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.cards import NUMBERS
from oxx_env.jit import kernel
from oxx_env.rules import (
    ACTIONS,
    CARD_PHASE,
    CARDS_DEALT,
    HAND_SIZE,
    NO_CARD,
    NO_SEED,
    ROW_PHASE,
    ROWS,
    RULE_SETS,
    bits_of,
    decides,
    deck_cards,
    draw,
    is_seen,
    legal_actions,
    pile_cell,
)

PHASES = ("card", "row", "over")


@kernel
def hide(game, seat):
    """Blank, in place, all that the seat does not know.

    Left are the own hand and what everybody has seen: rows, Oxx piles, revealed cards, and in
    `positive` the cards returned under piles and those of them drawn again (known hand cards, moved
    to the front of their hand so that their slot tells nothing).
    """
    game["rng"] = np.uint64(0)
    game["seed"] = NO_SEED
    for other in range(np.int64(game["players"])):
        for position in range(np.int64(game["pile_sizes"][other])):
            cell = pile_cell(game, other, position)
            if not is_seen(game, game["piles"][cell]):
                game["piles"][cell] = NO_CARD
        if other == seat:
            continue
        game["picks"][other] = NO_CARD
        known = 0
        for slot in range(np.int64(game["hand_sizes"][other])):
            number = game["hands"][other, slot]
            game["hands"][other, slot] = NO_CARD
            if number != NO_CARD and is_seen(game, number):
                game["hands"][other, known] = number
                known += 1


@kernel
def determinise(game, seat):
    """Fill the blanks of a view with unseen cards, all deals equally likely, by the game's stream.

    Cards seen by all, the own hand and known hand cards stay; the rest is dealt over the other
    hands, the draw piles and (what is left) the box.
    """
    left0 = game["seen"][0]
    left1 = game["seen"][1]
    for slot in range(np.int64(game["hand_sizes"][seat])):
        bit0, bit1 = bits_of(np.int64(game["hands"][seat, slot]))
        left0 |= bit0
        left1 |= bit1
    # The free cells of `taken` hold the unseen numbers meanwhile; there is room: both together are
    # at most all cards but the five in the rows.
    first = np.int64(game["taken_count"])
    count = first
    for number in range(1, NUMBERS + 1):
        word = left0 if number < 64 else left1
        game["taken"][count] = number
        count += np.int64((~word >> np.uint64(number & 63)) & np.uint64(1))
    last = count
    for other in range(np.int64(game["players"])):
        if other != seat:
            size = np.int64(game["hand_sizes"][other])
            for slot in range(size):
                if game["hands"][other, slot] == NO_CARD:
                    count -= 1
                    game["hands"][other, slot] = _deal_one(game, first, count)
            for slot in range(1, size):  # ascending again
                number = game["hands"][other, slot]
                place = slot
                while place > 0 and game["hands"][other, place - 1] > number:
                    game["hands"][other, place] = game["hands"][other, place - 1]
                    place -= 1
                game["hands"][other, place] = number
        for position in range(np.int64(game["pile_sizes"][other])):
            cell = pile_cell(game, other, position)
            if game["piles"][cell] == NO_CARD:
                count -= 1
                game["piles"][cell] = _deal_one(game, first, count)
    for index in range(first, last + 1):
        game["taken"][index] = NO_CARD


@kernel
def _deal_one(game, first, last):
    """Draw one of the unseen numbers in the cells `first` to `last`; the last takes its place."""
    index = first + draw(game, last - first + 1)
    number = game["taken"][index]
    game["taken"][index] = game["taken"][last]
    return number


@kernel
def _legal(games, decks, seat):
    return legal_actions(games[0], decks[0], seat)


@kernel
def _hide(games, seat):
    hide(games[0], seat)


@kernel
def _decides(games, seat):
    return decides(games[0], seat)


def _no_history() -> list[dict[str, Any]]:
    return []


@dataclass(frozen=True)
class Told:
    """A history that has been told: it knows nothing but its rounds, and can be sent elsewhere."""

    rounds: list[dict[str, Any]]

    def __call__(self) -> list[dict[str, Any]]:
        return copy.deepcopy(self.rounds)


def clone(games: NDArray[np.void]) -> NDArray[np.void]:
    """A copy of GAME [B]; by bytes: numpy copies records field by field, 20 times slower."""
    return np.frombuffer(bytearray(games.tobytes()), games.dtype)


@dataclass(frozen=True, eq=False)
class View:
    """What `seat` knows of a game.

    games    GAME [1], every hidden card blanked (`hide`)
    decks    DECK [1], the kernel's form of the deck
    seat     the observer
    deck     the deck's name
    history  () -> finished rounds as in the record, then the running round's placements so far
    """

    games: NDArray[np.void]
    decks: NDArray[np.void]
    seat: int
    deck: str = "balanced"
    history: Callable[[], list[dict[str, Any]]] = field(default=_no_history, repr=False)

    @classmethod
    def of(
        cls,
        games: NDArray[np.void],
        decks: NDArray[np.void],
        seat: int,
        deck: str = "balanced",
        history: Callable[[], list[dict[str, Any]]] = _no_history,
    ) -> View:
        """The view of one seat on GAME [1], which is copied; `decks` is DECK [1], its deck."""
        games = clone(games)
        _hide(games, seat)
        games[0]["deck"] = 0
        return cls(games, decks, seat, deck, history)

    @property
    def game(self) -> np.void:
        """The blanked record."""
        return self.games[0]

    @property
    def rules(self) -> str:
        return RULE_SETS[self.game["rules"]]

    @property
    def players(self) -> int:
        return int(self.game["players"])

    @property
    def phase(self) -> str:
        """`card`, `row` or `over`."""
        return PHASES[self.game["phase"]]

    @property
    def hand(self) -> list[int]:
        """The own cards, ascending, without a played one."""
        return _numbers(self.game["hands"][self.seat])

    @property
    def rows(self) -> list[list[int]]:
        """Five lists of numbers, oldest first."""
        return [_numbers(self.game["rows"][row]) for row in range(ROWS)]

    @property
    def card(self) -> int | None:
        """The card being placed; None outside the row phase."""
        revealed = self.revealed
        return revealed[0][1] if revealed else None

    @property
    def revealed(self) -> list[list[int]]:
        """`[seat, number]` of the revealed cards still unplaced, in order."""
        if self.game["phase"] != ROW_PHASE:
            return []
        placed, players = int(self.game["placed"]), self.players
        seats = self.game["revealed_by"][placed:players].tolist()
        return [
            list(pair)
            for pair in zip(seats, self.game["revealed"][placed:players].tolist(), strict=True)
        ]

    @property
    def legal(self) -> list[int]:
        """The seat's legal actions now; only pass (9) where it has nothing to decide."""
        actions = int(_legal(self.games, self.decks, self.seat))
        return [action for action in range(ACTIONS) if actions >> action & 1]

    @property
    def to_act(self) -> list[int]:
        """The seats that decide now. In the card phase others' secret picks do not show."""
        if self.game["phase"] == CARD_PHASE:
            sizes = self.game["hand_sizes"][: self.players].tolist()
            picked = self.game["picks"][self.seat] != NO_CARD
            return [
                s for s, size in enumerate(sizes) if size >= 2 and not (s == self.seat and picked)
            ]
        return [s for s in range(self.players) if _decides(self.games, s)]

    @property
    def oxx_piles(self) -> list[list[int]]:
        """The numbers each seat has taken, in order of taking."""
        count = int(self.game["taken_count"])
        piles: list[list[int]] = [[] for _ in range(self.players)]
        taken = zip(
            self.game["taken_by"][:count].tolist(), self.game["taken"][:count].tolist(), strict=True
        )
        for seat, number in taken:
            piles[seat].append(number)
        return piles

    @property
    def scores(self) -> list[int]:
        """Points of this game so far, as the rulebook counts them, by seat."""
        return [int(points) for points in self.game["points"][: self.players]]

    @property
    def returned(self) -> list[list[int]]:
        """By seat, the known numbers under its draw pile, next drawn first (`positive`)."""
        return [
            [number for number in self._pile(seat) if number != NO_CARD]
            for seat in range(self.players)
        ]

    @property
    def known_hand(self) -> list[list[int]]:
        """By seat, the hand cards that everybody knows it holds (`positive`)."""
        seen = int(self.game["seen"][0]) | int(self.game["seen"][1]) << 64
        return [
            [n for n in _numbers(self.game["hands"][seat]) if seen >> n & 1]
            for seat in range(self.players)
        ]

    def _pile(self, seat: int) -> list[int]:
        ring = int(CARDS_DEALT[self.players])
        start = int(self.game["pile_starts"][seat])
        size = int(self.game["pile_sizes"][seat])
        return [int(self.game["piles"][seat * ring + (start + i) % ring]) for i in range(size)]

    def __reduce__(self) -> tuple[Any, ...]:
        # What `history` looks into may hold hidden cards: a copy gets what it tells.
        return View, (self.games, self.decks, self.seat, self.deck, Told(self.history()))

    def _repr_svg_(self) -> str:
        """The table as a picture, in a notebook."""
        # By name: a written import would make drawing a source of the compiled code (see `jit`).
        picture: str = importlib.import_module("oxx_env.render").svg(self)
        return picture

    def to_dict(self) -> dict[str, Any]:
        """All that the seat knows as plain JSON, without any seed; `oxx advise` reads it."""
        game, players = self.game, self.players
        return {
            "rules": self.rules,
            "deck": {"name": self.deck, "cards": deck_cards(self.decks[0])},
            "players": players,
            "seat": self.seat,
            "phase": self.phase,
            "to_act": self.to_act,
            "hand": self.hand,
            "legal": self.legal,
            "rows": self.rows,
            "card": self.card,
            "revealed": self.revealed,
            "oxx_piles": self.oxx_piles,
            "scores": self.scores,
            "hand_sizes": game["hand_sizes"][:players].tolist(),
            "pile_sizes": game["pile_sizes"][:players].tolist(),
            "known_hand": self.known_hand,
            "returned": self.returned,
            "history": self.history(),
            "match": {
                "game": int(game["match_game"]),
                "of": int(game["match_games"]),
                "points": game["match_points"][:players].tolist(),
            },
        }


def _numbers(cells: NDArray[np.uint8]) -> list[int]:
    return [number for number in cells.tolist() if number != NO_CARD]


assert HAND_SIZE == 4  # the actions 0-3 are its slots
