"""Going through a match step by step, by its decisions or by what was seen at a real table.

The kernel keeps no history: the course of a match follows from its deal and its decisions. A
`Replay` goes through them again and notes what everybody at the table sees.

    Event                                                      happened
    ("deal", game from 1, five row cards)                      a game was dealt
    ("reveal", round from 1, cards by seat)                    all cards of a round were revealed
    ("place", [seat, number, row or None, numbers taken])      a card was placed, or returned (V2b)
    ("end", FinishedGame)                                      a game ended; it shows hidden cards
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import calls, engine
from oxx_env.game.rules import (
    CARD_PHASE,
    CARDS_DEALT,
    DEALT,
    FIRST_ROW,
    GAME,
    NO_CARD,
    NO_SEED,
    NUMBERS,
    OVER,
    PLACED,
    REVEALED,
    ROUND_ENDED,
    ROW_PHASE,
    ROWS,
    RULE_SETS,
    WAITING,
    is_positive,
    is_seen,
)
from oxx_env.game.views import View, clone
from oxx_env.lib.texts import short

Event = tuple[Any, ...]
Rounds = list[dict[str, Any]]  # as in a record
Decisions = Sequence[tuple[int, int]]  # (seat, action) in order, forced plays left out

ALL_SEATS = -1


@dataclass(frozen=True)
class Start:
    """Where a match may start in mid-game.

    games    GAME [1] as a view holds it: hidden cards are blank
    decks    DECK [1], the deck called `deck`
    seat     the seat whose hand is known; ALL_SEATS: all hands are
    earlier  rounds of the game so far, as in a record; None: unknown
    """

    games: NDArray[np.void]
    decks: NDArray[np.void]
    seat: int
    deck: str
    earlier: Rounds | None

    @classmethod
    def at(cls, view: View) -> Start:
        """At what a seat sees."""
        game = view.game
        fresh = game["phase"] == CARD_PHASE and game["round"] == 0
        earlier = view.history()
        return cls(
            view.games, view.decks, view.seat, view.deck, earlier if earlier or fresh else None
        )


class DealError(ValueError):
    """An impossible deal; `clause` is the rule that it breaks (`R1`, `R2`, `R3`)."""

    def __init__(self, clause: str, problem: str) -> None:
        super().__init__(problem)
        self.clause = clause

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.clause, str(self))


@dataclass(frozen=True)
class Deal:
    """The draw piles [P], first drawn first, and the five row cards."""

    draw_piles: list[list[int]]
    rows: list[int]

    @classmethod
    def checked(
        cls, players: int, draw_piles: Sequence[Sequence[int]], rows: Sequence[int]
    ) -> Deal:
        """A deal that was set by hand. Raises DealError for an impossible one."""
        each = int(CARDS_DEALT[players])
        if len(draw_piles) != players:
            problem = f"draw_piles lists {len(draw_piles)} piles for {players} players"
            raise DealError("R2", problem)
        if len(rows) != ROWS:
            raise DealError("R3", f"rows lists {len(rows)} cards; {ROWS} start the rows")
        where: dict[int, str] = {}
        for place, numbers in [
            *((f"draw pile {seat}", pile) for seat, pile in enumerate(draw_piles)),
            ("rows", rows),
        ]:
            if place != "rows" and len(numbers) != each:
                problem = f"{place} has {len(numbers)} cards; with {players} players it has {each}"
                raise DealError("R2", problem)
            for number in numbers:
                if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
                    raise DealError("R1", f"{place}: {short(number)} is not a card number")
                if not 1 <= number <= NUMBERS:
                    problem = f"there is no card {short(number)}; cards are 1 to {NUMBERS}"
                    raise DealError("R1", f"{place}: {problem}")
                if number in where:
                    problem = f"card {number} is already in {where[int(number)]}"
                    raise DealError("R1", f"{place}: {problem}")
                where[int(number)] = place
        return cls([[int(n) for n in pile] for pile in draw_piles], [int(n) for n in rows])

    @classmethod
    def of(cls, game: np.void) -> Deal:
        """The deal of a record that is laid out but not set up."""
        players = int(game["players"])
        piles = game["piles"][: players * int(CARDS_DEALT[players])].reshape(players, -1)
        return cls(piles.tolist(), game["rows"][:, 0].tolist())

    @classmethod
    def by_seed(cls, seed: int, players: int) -> Deal:
        """The deal that a seed gives (R2, R3)."""
        games = np.zeros(1, GAME)
        games["seed"], games["players"] = seed, players
        calls.shuffle(games)
        return cls.of(games[0])

    def lay_out(self, games: NDArray[np.void], decks: NDArray[np.void], rng: int = 0) -> None:
        """Start the game of GAME [1] from this deal, which must be valid.

        `rng` is where the match's later games are dealt from, unless they are set by hand too.
        """
        game = games[0]
        game["seed"], game["rng"] = NO_SEED, rng
        laid = [number for pile in self.draw_piles for number in pile]
        game["piles"][: len(laid)], game["rows"][:, 0] = laid, self.rows
        engine.set_up_by_hand(games, decks)


@dataclass(frozen=True)
class FinishedGame:
    """A game at its end.

    games      GAME [1]
    ended_by   the clause that ended it: `R12`, `V2c` or `V2f`
    deal       None where it started in mid-game
    rounds     all of its rounds, or those since the start in mid-game if the earlier are unknown
    decisions  (seat, action) of every decision
    """

    games: NDArray[np.void]
    ended_by: str
    deal: Deal | None
    rounds: Rounds
    decisions: list[tuple[int, int]]


class Replay:
    """A match that is gone through step by step, with what everybody has seen of it.

    games      GAME [1], where the match stands now
    decks      DECK [1], the deck called `deck`
    events     all that happened so far (see the module)
    decisions  (seat, action) of the running game

    Either go through decisions by `steps` or `follow`, or enter what was seen: `play` the cards of
    a round, and `step` and `decide` from placement to placement.
    """

    def __init__(
        self,
        games: NDArray[np.void],
        decks: NDArray[np.void],
        deck: str = "custom",
        by_hand: dict[int, Deal] | None = None,
        start: Start | None = None,
    ) -> None:
        """`games` and `decks` are those of the first decision; `by_hand` holds the deals that were
        set by hand, by their game from 1. With `start` the match began in mid-game."""
        self.games, self.decks, self.deck = clone(games), decks, deck
        self.players = int(self.game["players"])
        self.positive = bool(is_positive(self.game))
        self.events: list[Event] = []
        self.decisions: list[tuple[int, int]] = []
        self._by_hand = {} if by_hand is None else by_hand  # shared: a table adds to it
        self._yielded = self._followed = 0  # events, decisions
        self._one_game = self._hidden = False
        self._deal: Deal | None = None
        self._first = 0  # the running game's first event
        self._earlier: Rounds | None = []  # its rounds before that; None: unknown
        if not self.players:  # nothing is dealt
            return
        if start is not None:
            self._earlier = copy.deepcopy(start.earlier)
        elif self.game["seed"] != NO_SEED:
            self._begin(Deal.by_seed(int(self.game["seed"]), self.players))
        else:
            self._begin(self._by_hand.get(int(self.game["match_game"])))

    @classmethod
    def of_deal(
        cls,
        rules: str,
        decks: NDArray[np.void],
        deal: Deal,
        deck: str = "custom",
        match: tuple[int, int] = (1, 1),
        points_before: Sequence[int] = (),
    ) -> Replay:
        """One game from its deal. Draw piles of NO_CARD are hidden: `play` fills in each card.

        match          the game's number from 1, and the games of the match
        points_before  by seat
        """
        games = np.zeros(1, GAME)
        game = games[0]
        game["players"], game["rules"] = len(deal.draw_piles), RULE_SETS.index(rules)
        game["match_game"], game["match_games"] = match
        game["match_points"][: len(points_before)] = points_before
        deal.lay_out(games, decks)
        replay = cls(games, decks, deck, {match[0]: deal})
        replay._one_game = True
        replay._hidden = any(NO_CARD in pile for pile in deal.draw_piles)
        return replay

    # --- where it stands ---

    @property
    def game(self) -> np.void:
        """The full record, hidden cards and all."""
        return self.games[0]

    @property
    def over(self) -> bool:
        """Is the running game over?"""
        return bool(self.game["phase"] == OVER)

    @property
    def out(self) -> bool:
        """Has a seat neither hand nor draw pile left (R12, V2c)?"""
        return bool(calls.someone_is_out(self.games))

    @property
    def due(self) -> tuple[int, int] | None:
        """Seat and number of the card that is placed next; None if there is none."""
        game, placed = self.game, int(self.game["placed"])
        number = NO_CARD if placed == self.players else int(game["revealed"][placed])
        return None if number == NO_CARD else (int(game["revealed_by"][placed]), number)

    @property
    def legal_rows(self) -> list[int]:
        """The rows that the card that is due may go to; none: it goes under its owner's pile."""
        due = self.due
        assert due is not None
        rows = int(calls.legal_rows(self.games, self.decks, due[1]))
        return [row for row in range(ROWS) if rows >> row & 1]

    @property
    def fits(self) -> bool:
        """Does the card that is due share a color with a row's end (R6)?"""
        due = self.due
        assert due is not None
        return bool(calls.matching_rows(self.games, self.decks, due[1]))

    def hand(self, seat: int) -> list[int]:
        """The seat's hand, NO_CARD where a card is hidden."""
        numbers: list[int] = self.game["hands"][seat].tolist()
        return numbers[: int(self.game["hand_sizes"][seat])]

    def can_play(self, seat: int, number: int) -> bool:
        """May the seat hold this card (1 to 110), by all that is known?"""
        hand = self.hand(seat)
        return number in hand or (NO_CARD in hand and not is_seen(self.game, number))

    def view(self, seat: int) -> View:
        """What the seat knows now."""
        rounds = self.history()
        return View.of(self.games, self.decks, seat, self.deck, lambda: copy.deepcopy(rounds))

    def history(self) -> Rounds:
        """Rounds of the running (or last) game, as in a record; none if the first are unknown."""
        if self._earlier is None:
            return []
        rounds = copy.deepcopy(self._earlier)
        for kind, *what in self.events[self._first :]:
            if kind == "reveal":
                rounds.append({"cards": list(what[1]), "placements": []})
            elif kind == "place":
                seat, number, row, taken = what[0]
                rounds[-1]["placements"].append([seat, number, row, [*taken]])
        return rounds

    # --- going on ---

    def follow(self, decisions: Decisions) -> None:
        """Go on to the end of `decisions`, which begin with those already followed."""
        if not self.players:
            return
        new = decisions[self._followed :]
        self._followed = len(decisions)
        for _ in self.steps(new):
            pass

    def steps(self, decisions: Decisions) -> Iterator[Event]:
        """Carry out decisions and all that is forced; each event when it has happened, the end of a
        round together with its last placement."""
        left = iter(decisions)
        while True:
            if not self._all_placed:  # else the round ends first
                yield from self._new_events()
            if self.step() == WAITING:
                decision = next(left, None)
                if decision is None:
                    return
                self.decide(*decision)

    def _new_events(self) -> Iterable[Event]:
        new = self.events[self._yielded :]
        self._yielded = len(self.events)
        return new

    def decide(self, seat: int, action: int) -> None:
        """Carry out one decision, which must be legal, and nothing else."""
        self.decisions.append((seat, action))
        if self.game["phase"] == CARD_PHASE:
            calls.act(self.games, self.decks, seat, action)
        else:
            self._place(seat, action)

    def step(self) -> int:
        """Do the next thing that needs no decision and return its number in `rules`; else WAITING.

        With hidden cards WAITING for the cards of a round as well, and no game ends by V2f.
        """
        game = self.game
        if game["phase"] == CARD_PHASE:
            return WAITING if self._hidden else self._reveal()
        if game["phase"] == ROW_PHASE:
            return self._end_round() if self._all_placed else self._place()
        what = WAITING if self._one_game else int(calls.tick(self.games, self.decks))
        if what == DEALT:
            self._earlier = []
            deal = self._by_hand.get(int(game["match_game"]))
            if deal:
                deal.lay_out(self.games, self.decks)
            self._begin(deal or Deal.by_seed(int(game["seed"]), self.players))
        return what

    def play(self, cards: Sequence[int]) -> None:
        """R4: the seats play and reveal these cards, each of which its seat `can_play`."""
        game = self.game
        for seat, number in enumerate(cards):
            hand = self.hand(seat)
            if number not in hand:
                game["hands"][seat, hand.index(NO_CARD)] = number
            elif len(hand) > 1:
                self.decisions.append((seat, hand.index(number)))
            game["picks"][seat] = number
        self._reveal()

    def end(self) -> None:
        """The game is over (V2f): hidden cards end it where the table saw so. No points are taken
        off for cards left over."""
        game = self.game
        game["phase"] = OVER
        game["placed"] = 0
        game["revealed"] = game["revealed_by"] = game["picks"] = NO_CARD

    @property
    def _all_placed(self) -> bool:
        """Are all revealed cards of the running round placed?"""
        return bool(self.game["placed"] == self.players)

    def _begin(self, deal: Deal | None) -> None:
        """A game was dealt."""
        self._deal, self._first, self.decisions = deal, len(self.events), []
        if deal is not None:
            self.events.append(("deal", int(self.game["match_game"]), deal.rows))

    def _reveal(self) -> int:
        picks = self.game["picks"][: self.players].tolist()
        what = int(calls.tick(self.games, self.decks))
        if what == REVEALED:
            self.events.append(("reveal", int(self.game["round"]) + 1, picks))
        return what

    def _place(self, seat: int = 0, action: int | None = None) -> int:
        """Place the card that is due: by an action, or where it has no choice."""
        due = self.due
        assert due is not None
        game, (owner, number) = self.game, due
        count = int(game["taken_count"])
        if action is None:
            what = int(calls.tick(self.games, self.decks))
        else:
            calls.act(self.games, self.decks, seat, action)
            what = PLACED
        if what != WAITING:
            row = None if action is None else action - FIRST_ROW
            if what == PLACED and row is None:
                rows = zip(game["rows"].tolist(), game["row_sizes"].tolist(), strict=True)
                row = [cards[size - 1] for cards, size in rows].index(number)
            taken = game["taken"][count : int(game["taken_count"])].tolist()
            self.events.append(("place", [owner, number, row, taken]))
        return what

    def _end_round(self) -> int:
        """R11, R12, V2c, V2e, V2f: the game ends or goes on."""
        if not self._hidden:
            calls.tick(self.games, self.decks)
        else:
            self.game["round"] += 1
            if self.out:
                self.end()
            else:
                calls.start_round(self.games)
        if self.over:
            ended_by = ("V2c" if self.out else "V2f") if self.positive else "R12"
            game = FinishedGame(
                clone(self.games), ended_by, self._deal, self.history(), self.decisions
            )
            self.events.append(("end", game))
        return ROUND_ENDED


assert FIRST_ROW == 4 and NO_CARD == 0  # row actions come after the slots; blank records are empty
