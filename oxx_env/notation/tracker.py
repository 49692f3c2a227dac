"""A game at a real table, followed from one seat: what was seen goes in, a view comes out.

Only the own hand is known there. A tracker is a list of what was seen, in order, and the state is a
function of it: undo drops the last entry, resuming a file goes through all of them.

>>> tracker = Tracker(players=2, seat=0)
>>> tracker.enter_rows([12, 40, 55, 71, 90])
>>> tracker.expects
'hand'
>>> tracker.enter_hand([5, 17, 46, 103])
>>> tracker.expects, tracker.view().hand
('cards', [5, 17, 46, 103])
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import cards
from oxx_env.game.cards import NUMBERS
from oxx_env.game.engine import check_players, rule_flags
from oxx_env.game.replay import Deal, Replay
from oxx_env.game.rules import (
    CARDS_DEALT,
    FIRST_ROW,
    NO_CARD,
    ROWS,
    WAITING,
    counts_victory_points,
    deck_cards,
    deck_record,
    is_seen,
)
from oxx_env.game.views import View
from oxx_env.lib.files import open_atomic, read_json
from oxx_env.lib.texts import short
from oxx_env.notation.records import Record, is_int

FORMAT = "oxx-track/1"
KINDS = ("rows", "hand", "cards", "row", "over")


class TrackError(ValueError):
    """An impossible entry; the message says why, and what would be right."""


class Tracker:
    """One game of a real table, seen from `seat`.

    players  2 to 10
    rules    `base`, `color`, `positive` or `color+positive`
    deck     a deck spec (see `cards`): a name, a path or an int array
    seat     the own seat, from 0, counted in the order in which cards will be entered

    `expects` says what to enter next:

    rows    the five row cards of the deal                           `enter_rows`
    hand    the own hand, whenever a new one was drawn               `enter_hand`
    cards   the card of each seat, when all are revealed             `enter_cards`
    row     the row chosen for the card that is due; forced
            placements are done by the tracker                       `enter_row`
    over    nothing: the game is over

    A mistake raises TrackError and changes nothing.
    """

    def __init__(
        self,
        players: int = 4,
        rules: str = "base",
        deck: cards.DeckSpec = "balanced",
        seat: int = 0,
    ) -> None:
        self.players = check_players(players)
        rule_flags(rules)
        self.rules = rules
        if not is_int(seat) or not 0 <= seat < self.players:
            raise ValueError(f"seat {short(seat)}: seats are 0 to {self.players - 1}")
        self.seat = seat
        self.deck = cards.deck_name(deck)
        self.decks: NDArray[np.void] = deck_record(cards.load_deck(deck))  # DECK [1]
        self.entries: list[tuple[str, Any]] = []  # (kind, value) as entered, in order
        self._expects = "rows"

    # --- what is known ---

    @property
    def expects(self) -> str:
        """What to enter next: `rows`, `hand`, `cards`, `row`, or `over` for nothing."""
        return self._expects

    @property
    def due(self) -> tuple[int, int]:
        """Seat and number of the card that waits for its row."""
        self._expect("row")
        assert self._replay.due is not None
        return self._replay.due

    @property
    def legal_rows(self) -> list[int]:
        """The rows that the card that is due may go to."""
        self._expect("row")
        return self._replay.legal_rows

    @property
    def hand_size(self) -> int:
        """Cards in the own hand now."""
        return 0 if self._expects == "rows" else len(self._replay.hand(self.seat))

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """The course so far, as the rounds of a record."""
        return [] if self._expects == "rows" else self._replay.history()

    def view(self) -> View:
        """What the own seat knows. Raises TrackError before rows and hand are entered."""
        if self._expects in ("rows", "hand"):
            raise TrackError(f"the {self._expects} come first")
        return self._replay.view(self.seat)

    def record(self) -> dict[str, Any]:
        """The finished game as a record (`oxx-game/1`), without seed.

        Draw piles are listed in the order in which their cards were played. Raises TrackError while
        the game is not over, and in `positive`, where cards stay hidden to the end.
        """
        if self._expects != "over":
            raise TrackError("the game is not over")
        if counts_victory_points(self.rules):
            raise TrackError("cards left over in hands and draw piles are not known")
        rounds = self.rounds
        played = [[r["cards"][seat] for r in rounds] for seat in range(self.players)]
        deal = Deal(played, list(self.entries[0][1]))
        game = replace(self._replay.events[-1][1], deal=deal, rounds=rounds)
        return Record.of(game, self.decks, self.deck).to_dict()

    # --- entering ---

    def enter_rows(self, numbers: Sequence[int]) -> None:
        """The five cards that start the rows."""
        self._enter("rows", list(numbers))

    def enter_hand(self, numbers: Sequence[int]) -> None:
        """The own hand, just drawn."""
        self._enter("hand", list(numbers))

    def enter_cards(self, numbers: Sequence[int]) -> None:
        """The cards of a round, one for each seat in the order of seats."""
        self._enter("cards", list(numbers))

    def enter_row(self, row: int) -> None:
        """The row (0 to 4) that the owner of the due card chose."""
        self._enter("row", row)

    def enter_over(self) -> None:
        """`positive`: the table found that no card can ever be placed any more (V2f)."""
        self._enter("over", None)

    def undo(self) -> str:
        """Forget the last entry; returns its kind. Raises TrackError where there is none."""
        if not self.entries:
            raise TrackError("there is nothing to take back")
        kind, _ = self.entries.pop()
        self._again()
        return kind

    # --- saving ---

    def to_dict(self) -> dict[str, Any]:
        """All that was entered, as plain JSON; `from_dict` goes on from there."""
        return {
            "format": FORMAT,
            "rules": self.rules,
            "deck": {"name": self.deck, "cards": deck_cards(self.decks[0])},
            "players": self.players,
            "seat": self.seat,
            "entries": [list(entry) for entry in self.entries],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Tracker:
        """The tracker whose `to_dict` gave `data`. Raises TrackError."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise TrackError(f"this is no tracked game: it should be an object of {FORMAT!r}")
        try:
            deck, entries = data["deck"], data["entries"]
            heads = np.array(deck["cards"])
            tracker = cls(data["players"], data["rules"], heads, data["seat"])
            tracker.deck = str(deck["name"])
            entries = [(str(kind), value) for kind, value in entries]
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise TrackError(f"this tracked game cannot be read: {what}") from error
        for place, (kind, value) in enumerate(entries, start=1):
            try:
                tracker._enter(kind, value)
            except TrackError as error:
                raise TrackError(f"entry {place} ({kind}): {error}") from error
        return tracker

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tracked game; a crash leaves the file as it was."""
        with open_atomic(path) as file:
            file.write(json.dumps(self.to_dict()) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tracker:
        """Read what `save` wrote. Raises TrackError, or OSError for a file that cannot be read."""
        try:
            data = read_json(path)
        except (ValueError, RecursionError) as error:
            raise TrackError(f"{os.fspath(path)}: no JSON: {error}") from error
        try:
            return cls.from_dict(data)
        except TrackError as error:
            raise TrackError(f"{os.fspath(path)}: {error}") from error

    # --- one entry ---

    def _again(self) -> None:
        """Go through the entries from the start."""
        entries, self.entries = self.entries, []
        self._expects = "rows"
        for kind, value in entries:
            self._enter(kind, value)

    def _enter(self, kind: str, value: Any) -> None:
        if kind not in KINDS:
            raise TrackError(f"unknown kind of entry {short(kind)}: {', '.join(KINDS)}")
        getattr(self, f"_take_{kind}")(value)
        self.entries.append((kind, value))

    def _expect(self, kind: str) -> None:
        if self._expects != kind:
            raise TrackError(f"now is expected: {self._expects}, not {kind}")

    def _take_rows(self, numbers: Any) -> None:
        self._expect("rows")
        self._check(numbers, ROWS, "row cards")
        hidden = [[NO_CARD] * int(CARDS_DEALT[self.players])] * self.players
        self._replay = Replay.of_deal(self.rules, self.decks, Deal(hidden, numbers), self.deck)
        self._expects = "hand"

    def _take_hand(self, numbers: Any) -> None:
        self._expect("hand")
        self._check(numbers, self.hand_size, "cards in the own hand")
        known = [number for number in self._replay.hand(self.seat) if number != NO_CARD]
        for number in known:
            if number not in numbers:
                raise TrackError(f"card {number} was under your pile and is in your hand now")
        for number in numbers:
            if number not in known:
                self._refuse_seen(number)
        game = self._replay.game
        game["hands"][self.seat, : len(numbers)] = sorted(numbers)
        game["picks"][self.seat] = numbers[0] if len(numbers) == 1 else NO_CARD
        self._expects = "cards"

    def _take_cards(self, numbers: Any) -> None:
        self._expect("cards")
        self._check(numbers, self.players, "cards, one for each seat")
        for seat, number in enumerate(numbers):
            hand = self._replay.hand(seat)
            if seat == self.seat:
                if number not in hand:
                    held = ", ".join(map(str, hand))
                    raise TrackError(f"card {number} is not in your hand ({held})")
            elif number in self._replay.hand(self.seat):
                raise TrackError(f"card {number} of seat {seat} is in your own hand")
            elif number not in hand:
                self._refuse_seen(number)
                if NO_CARD not in hand:
                    held = ", ".join(map(str, hand))
                    raise TrackError(f"seat {seat} holds {held}, as all have seen, not {number}")
        self._replay.play(numbers)
        self._run_on()

    def _take_row(self, row: Any) -> None:
        self._expect("row")
        if not is_int(row) or row not in self.legal_rows:
            legal = " or ".join(map(str, self.legal_rows))
            raise TrackError(f"card {self.due[1]} may go to row {legal}, not to row {short(row)}")
        self._replay.decide(self.due[0], FIRST_ROW + row)
        self._run_on()

    def _take_over(self, _: Any) -> None:
        if not counts_victory_points(self.rules):
            raise TrackError("a game of this rule set ends when all cards have been placed (R12)")
        if self._expects not in ("cards", "hand"):
            raise TrackError(f"the game ends between two rounds; now is expected: {self._expects}")
        self._replay.end()
        self._expects = "over"

    def _check(self, numbers: Any, count: int, what: str) -> None:
        """So many different card numbers?"""
        if not isinstance(numbers, list) or len(numbers) != count:
            given = len(numbers) if isinstance(numbers, list) else short(numbers)
            raise TrackError(f"{count} {what} are needed, not {given}")
        for index, number in enumerate(numbers):
            if not is_int(number) or not 1 <= number <= NUMBERS:
                raise TrackError(f"there is no card {short(number)}; cards are 1 to {NUMBERS}")
            if number in numbers[:index]:
                raise TrackError(f"card {number} appears twice")

    def _refuse_seen(self, number: int) -> None:
        if is_seen(self._replay.game, number):
            raise TrackError(f"card {number} has been on the table before")

    def _run_on(self) -> None:
        """Do all that is forced, to the next thing that has to be entered."""
        had = self.hand_size
        while self._replay.step() != WAITING:
            pass
        if self._replay.due is not None:
            self._expects = "row"
        elif self._replay.over:
            self._expects = "over"
        else:
            self._expects = "cards" if had else "hand"
