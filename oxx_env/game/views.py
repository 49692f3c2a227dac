"""What one seat knows: a view is a game record with every hidden card blanked.

Bots and observations get a view, never the record itself. Two games that differ only in what a seat
cannot know give that seat the same view, byte for byte (`tests/test_hidden.py`). `deal_hidden` goes
the other way: it fills the blanks with one of the equally likely deals.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import calls
from oxx_env.game.cards import NUMBERS
from oxx_env.game.rules import (
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
    deck_cards,
    draw,
    is_deadlocked,
    is_positive,
    is_seen,
    pile_cell,
    popcount,
)
from oxx_env.lib.jit import kernel

PHASES = ("card", "row", "over")
TO_THE_END = 1 << 20  # rounds: longer than any game
MOST_DEALS = 10_000  # tries to deal hidden cards of which one fits a row
_0, _1 = np.uint64(0), np.uint64(1)
_NUMBERS_LOW = np.uint64(0xFFFFFFFFFFFFFFFE)  # without 0, which is no card
_NUMBERS_HIGH = np.uint64((1 << (NUMBERS - 63)) - 1)



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


# --- dealing what is hidden ---------------------------------------------------------------------


@kernel
def hide_piles(games):
    """Blank, in place, the unseen cards of the draw piles; all hands stay open."""
    game = games[0]
    for seat in range(np.int64(game["players"])):
        for position in range(np.int64(game["pile_sizes"][seat])):
            cell = pile_cell(game, seat, position)
            if not is_seen(game, np.int64(game["piles"][cell])):
                game["piles"][cell] = NO_CARD


@kernel
def unseen_set(game, first, end):
    """The numbers that are neither seen by all (rows, Oxx piles, revealed, returned) nor in the
    hands of the seats from `first` to before `end`: a set of numbers, as two words."""
    set0, set1 = game["seen"][0], game["seen"][1]
    for seat in range(first, end):
        for slot in range(np.int64(game["hand_sizes"][seat])):
            bit0, bit1 = bits_of(np.int64(game["hands"][seat, slot]))  # of a blank: no card's
            set0 |= bit0
            set1 |= bit1
    return ~set0 & _NUMBERS_LOW, ~set1 & _NUMBERS_HIGH


@kernel
def list_members(set0, set1, numbers):
    """The members of a set of numbers into `numbers` uint8, ascending. Returns how many."""
    count = 0
    while set0 != _0:
        numbers[count] = popcount((set0 & (~set0 + _1)) - _1)
        set0 &= set0 - _1
        count += 1
    while set1 != _0:
        numbers[count] = 64 + popcount((set1 & (~set1 + _1)) - _1)
        set1 &= set1 - _1
        count += 1
    return count


@kernel
def list_unseen(view, unseen):
    """The numbers hidden in a view, its open hands left out, into `unseen` uint8 [NUMBERS],
    ascending. Returns how many."""
    set0, set1 = unseen_set(view, 0, np.int64(view["players"]))
    return list_members(set0, set1, unseen)


@kernel
def _list_unseen(games, seat, unseen):
    set0, set1 = unseen_set(games[0], seat, seat + 1)
    return list_members(set0, set1, unseen)


@kernel
def _deal_one(game, unseen, count):
    """Draw one of the first `count` unseen numbers; it is at `unseen[count - 1]` afterwards."""
    index = draw(game, count)
    number = unseen[index]
    unseen[index] = unseen[count - 1]
    unseen[count - 1] = number
    return number


@kernel
def deal_hidden(game, seat, rounds, unseen, count):
    """Fill the blanks of a view by the game's stream, as far as the next `rounds` rounds need them.

    All deals are equally likely. Cards that no seat can draw within the horizon stay blank; in
    `positive` every card is dealt, since all of them count (V2d, V2f). `seat`'s hand is open; -1:
    all are.
    `unseen` holds the `count` hidden numbers in any order and is shuffled in place, any order being
    a fair start for the next deal.
    """
    for other in range(np.int64(game["players"])):
        size = np.int64(game["hand_sizes"][other])
        if other != seat:
            for slot in range(size):
                if game["hands"][other, slot] == NO_CARD:
                    game["hands"][other, slot] = _deal_one(game, unseen, count)
                    count -= 1
            for slot in range(1, size):  # ascending again
                number = game["hands"][other, slot]
                place = slot
                while place > 0 and game["hands"][other, place - 1] > number:
                    game["hands"][other, place] = game["hands"][other, place - 1]
                    place -= 1
                game["hands"][other, place] = number
        needed = np.int64(game["pile_sizes"][other])
        if not is_positive(game):
            hands = max(0, rounds - size + HAND_SIZE) // HAND_SIZE
            needed = min(needed, hands * HAND_SIZE)
        for position in range(needed):
            cell = pile_cell(game, other, position)
            if game["piles"][cell] == NO_CARD:
                game["piles"][cell] = _deal_one(game, unseen, count)
                count -= 1


@kernel
def _complete(games, decks, seat, unseen):
    """All that is blank in the first of GAME [2] is dealt, into the second one. Was it possible?

    In `positive` some card must fit a row before a round: else the game would be over (V2f).
    """
    count = list_unseen(games[0], unseen)
    for _ in range(MOST_DEALS):
        games[1] = games[0]
        game = games[1]
        deal_hidden(game, seat, TO_THE_END, unseen, count)
        games[0]["rng"] = game["rng"]
        if game["phase"] != CARD_PHASE:
            return True
        for other in range(np.int64(game["players"])):
            forced = game["hand_sizes"][other] == 1
            game["picks"][other] = game["hands"][other, 0] if forced else NO_CARD
        if not is_positive(game) or not is_deadlocked(game, decks[0]):
            return True
    return False


def complete(
    games: NDArray[np.void], decks: NDArray[np.void], seat: int, seed: int
) -> NDArray[np.void]:
    """A full game, GAME [1], of which a view shows `games` [1]: what is blank is dealt by the seed.

    `seat` is whose hand lies open (-1: all do). Raises ValueError if no card that may be dealt fits
    a row where one must.
    """
    both = np.concatenate([games, games])
    both["rng"] = seed
    if not _complete(both, decks, seat, np.empty(NUMBERS, np.uint8)):
        raise ValueError(
            "no card in any hand or draw pile fits a row: the game would be over (V2f)"
        )
    return both[1:].copy()


@kernel
def _hide(games, seat):
    hide(games[0], seat)


def _no_history() -> list[dict[str, Any]]:
    return []


@dataclass(frozen=True)
class FixedHistory:
    """The history of a copied view: rounds alone, so that another process can have it."""

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
        actions = int(calls.legal_actions(self.games, self.decks, self.seat))
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
        return [s for s in range(self.players) if calls.decides(self.games, s)]

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
    def unseen(self) -> list[int]:
        """The numbers that the seat has not seen: in piles, other hands and the box; ascending."""
        numbers = np.empty(NUMBERS, np.uint8)
        return numbers[: _list_unseen(self.games, self.seat, numbers)].tolist()

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
        # What `history` reads may hold hidden cards: a copy gets its answer.
        return View, (self.games, self.decks, self.seat, self.deck, FixedHistory(self.history()))

    def _repr_svg_(self) -> str:
        """The table as a picture, in a notebook: as wide as its cell at most."""
        # Drawing lies above the game: the root of the package knows where.
        picture: str = sys.modules["oxx_env"].render.svg(self)
        return picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)

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
