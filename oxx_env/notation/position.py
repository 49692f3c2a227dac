"""A position as text that a person types, and as the JSON of `View.to_dict()`; checked and rebuilt.

    base 4p seat 0 | rows 12 7-41 5-50-35 9 60 | hand 3 17 52 88 | taken 1:8-91 2:70

>>> view = from_text("4p | rows 12 7-41 5 9 60 | hand 3 17 52 88 | taken 1:8-91")
>>> view.rules, view.players, view.phase, view.scores
('base', 4, 'card', [0, 5, 0, 0])
>>> from_text("4p | rows 12 7 5 9 60 | hand 3 17 5 88")
Traceback (most recent call last):
oxx_env.notation.PositionError: card 5 stands twice: it is already in row 2
  4p | rows 12 7 5 9 60 | hand 3 17 5 88
                                    ^

`from_text` reads such a line, `to_text` prints one from any view; `view_from_dict` rebuilds the
view from its JSON. What was typed wrong is a `PositionError` that names the place; for a text the
place is marked by carets.

**The text.** Words and card numbers, parts in any order; `|` and line breaks are for the eye.
Commas or semicolons may stand between numbers, and between rows whose cards are apart by blanks:
`rows 12, 7 41, 5 50 35, 9, 60 | hand 3, 17, 52`.

    base, color, positive, color+positive
                    the rule set (base)
    4p              players
    seat 0          the observer (0); seats are counted from 0, clockwise
    deck balanced   shipped name or path of a CSV (balanced); "..." around a name with blanks
    round 4         rounds finished (the fewest that the cards on the table allow)
    rows A B C D E  the five rows; cards oldest first, joined by hyphens: 90-2-41
    hand 3 17 52    the own cards, without a revealed one
    revealed 2:17 0:33
                    the row phase: seat:card still to be placed; the lowest is being placed now
    taken 1:8-9 2:70
                    Oxx piles, seat:cards, as far as they are remembered
    points 0 6 3 0  points of this game by seat (the heads of the taken cards)
    hands 4 4 4 4   hand sizes by seat, or one for all (the observer's); without revealed cards
    piles 12        draw pile sizes by seat, or one for all (what the rounds leave)
    known 1:33-60   `positive`: hand cards that everybody knows, because they were under a pile
    returned 2:41   `positive`: cards under the draw piles, next drawn first
    game 2/3 before 12 30 8 21
                    the match: this game, games agreed, points before this game (1/1)
    picked, over    the own card is already chosen; the game is over

In brackets: what stands for a part left out. Needed are players, rows and hand. Cards taken and
not remembered count as unseen; if the points are told, at least those are right.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import cards
from oxx_env.game.cards import COLORS, NUMBERS
from oxx_env.game.replay import Deal, Replay
from oxx_env.game.rules import (
    CARD_PHASE,
    CARDS_DEALT,
    GAME,
    HAND_SIZE,
    MAX_PLAYERS,
    MIN_PLAYERS,
    NO_CARD,
    NO_SEED,
    OVER,
    PASS,
    ROW_CARDS,
    ROW_PHASE,
    ROWS,
    RULE_SETS,
    Deck,
    Game,
    deck_cards,
    legal_rows,
    put_on_row,
    see,
)
from oxx_env.game.validation import MAX_GAMES, MOST_MATCH_POINTS, MOST_POINTS
from oxx_env.game.views import PHASES, View
from oxx_env.lib.jit import kernel
from oxx_env.lib.texts import counted, printable, short
from oxx_env.notation.records import (
    Reader,
    RecordError,
    is_int,
    kernel_deck,
    listed,
)
from oxx_env.notation.wording import FULL_ROW

MOST_SHOWN = 600  # letters of a position's line beside an error
SIX_HEADS = 6  # of one colour in a row (R8)

Path = tuple[str | int, ...]  # of a value in the JSON: ("rows", 2, 1)


class PositionError(ValueError):
    """A position that cannot be.

    problem  what is wrong, and what would be right
    path     where in the JSON, e.g. ("rows", 2, 1); empty for the position as a whole
    text     the text it was read from, if any
    span     (start, end) of the place in that text
    """

    def __init__(
        self,
        problem: str,
        path: Path = (),
        text: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.problem, self.path, self.text, self.span = problem, path, text, span
        if text is not None and span is not None:
            super().__init__(f"{problem}\n{_marked(text, span)}")
        else:
            super().__init__(f"{_place(path)}: {problem}" if path else problem)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.path, self.text, self.span)


def _place(path: Path) -> str:
    first, *rest = path
    return str(first) + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in rest)


def _marked(text: str, span: tuple[int, int]) -> str:
    """The line of the text that holds the place, with carets below it."""
    start = text.rfind("\n", 0, span[0]) + 1
    line = text[start:].partition("\n")[0].replace("\t", " ")
    if len(line) > MOST_SHOWN:  # the part around the place
        first = max(0, span[0] - start - MOST_SHOWN // 2)
        line, start = line[first : first + MOST_SHOWN], start + first
    length = max(1, min(span[1], start + len(line)) - span[0])
    marked = printable(line[: span[0] - start]), printable(line[span[0] - start :][:length])
    under = f"{' ' * len(marked[0])}{'^' * max(1, len(marked[1]))}"
    return f"  {printable(line)}\n  {under}"


# --- from JSON ------------------------------------------------------------------------------------


def check_position(data: Any) -> None:
    """Raise PositionError unless `data`, as `View.to_dict` gives it, is a possible position."""
    view_from_dict(data)


def view_from_dict(data: Any) -> View:
    """The view whose `to_dict` gave `data`, read from JSON; its history included.

    Needed are `rules`, `players`, `seat`, `rows` and `hand`; what else is left out (or null) is
    taken as in the text (see above), `phase` by `revealed`, and the deck is `balanced`. Where
    `history` tells the course, everything must agree with it. Cards of `oxx_piles` may be missing
    (not remembered) only where there is no history.

    Raises PositionError.
    """
    position = _Position(data)
    history = position.history
    view = View(
        _build(position), position.decks, position.seat, position.deck, lambda: _copied(history)
    )
    position.check_turn(view)
    return view


def _copied(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    copy: list[dict[str, Any]] = json.loads(json.dumps(history))
    return copy


@dataclass
class _Cards:
    """Where each card stands, so that none stands twice."""

    places: dict[int, str] = field(default_factory=dict)

    def put(self, number: Any, place: str, path: Path) -> int:
        if not is_int(number):
            _fail(f"{short(number)} is no card number; cards are 1 to {NUMBERS}", path)
        if not 1 <= number <= NUMBERS:
            _fail(f"there is no card {short(number)}; cards are 1 to {NUMBERS}", path)
        if number in self.places:
            _fail(f"card {number} stands twice: it is already in {self.places[number]}", path)
        self.places[number] = place
        return int(number)


def _fail(problem: str, *path: Any) -> NoReturn:
    """Raise PositionError at a path, given whole or by its parts."""
    flat: list[str | int] = []
    for part in path:
        flat.extend(part if isinstance(part, tuple) else (part,))
    raise PositionError(problem, tuple(flat))


class _Position:
    """The facts of a position, checked, with what was left out filled in."""

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict):
            _fail(f"a position is an object, not {short(data)}")
        self._data = data
        for key in ("rules", "players", "seat", "rows", "hand"):
            if data.get(key) is None:
                _fail(f"the position does not tell its {key}", key)
        rules = data["rules"]
        if not isinstance(rules, str) or rules not in RULE_SETS:
            _fail(f"unknown rule set {short(rules)}; choose one of {', '.join(RULE_SETS)}", "rules")
        self.rules: str = rules
        self.flags = RULE_SETS.index(rules)
        self.positive = "positive" in rules
        self.players = self._int("players", MIN_PLAYERS, MAX_PLAYERS)
        self.each = int(CARDS_DEALT[self.players])
        self.seat = self._int("seat", 0, self.players - 1)
        self._read_deck(data.get("deck"))
        self._read_cards()
        self._read_phase()
        self._read_match(data.get("match"))
        self._read_sizes()
        self._count_cards()
        self._read_scores()
        self._read_history(data.get("history"))
        if data.get("picked") and self.phase != CARD_PHASE:
            _fail("a card is picked only in the card phase", "picked")
        self.picked = data.get("picked") is True or (
            self.phase == CARD_PHASE and data.get("legal") == [PASS]
        )

    # ---- reading

    def _int(self, key: str, low: int, high: int) -> int:
        return self._number(self._data[key], low, high, key, (key,))

    def _number(self, value: Any, low: int, high: int, what: str, path: Path) -> int:
        if not is_int(value) or not low <= value <= high:
            _fail(f"{what}: {short(value)}; should be an integer from {low} to {high}", path)
        return int(value)

    def _list(self, value: Any, path: Path) -> list[Any]:
        if not isinstance(value, list | tuple):
            _fail(f"{short(value)} should be a list", path)
        return list(value)

    def _by_seat(self, value: Any, path: Path) -> list[Any]:
        value = self._list(value, path)
        if len(value) != self.players:
            _fail(f"{len(value)} entries for {self.players} players", path)
        return value

    def _numbers_by_seat(self, key: str, low: int, high: int) -> list[int] | None:
        if self._data.get(key) is None:
            return None
        return [
            self._number(value, low, high, f"{key} of seat {seat}", (key, seat))
            for seat, value in enumerate(self._by_seat(self._data[key], (key,)))
        ]

    def _read_deck(self, deck: Any) -> None:
        self.deck, told = "balanced", None
        if isinstance(deck, dict):
            self.deck, told = deck.get("name", "custom"), deck.get("cards")
            if not isinstance(self.deck, str):
                _fail(f"the deck's name is {short(self.deck)}; should be a text", "deck", "name")
            if told is None and self.deck not in cards.DECK_NAMES:
                _fail(f"deck {short(self.deck)} is not shipped: its cards are needed", "deck")
            deck = self.deck
        elif isinstance(deck, str):
            self.deck = cards.deck_name(deck)
        elif deck is not None:
            _fail(f"{short(deck)} is no deck; should be a name, or name and cards", "deck")
        try:
            if told is None:
                heads = cards.load_deck("balanced" if deck is None else deck).tolist()
            else:
                heads = self._deck_cards(told)
            self.decks = kernel_deck(tuple(map(tuple, heads)))
        except cards.DeckError as error:
            _fail(str(error), "deck")
        self.heads: list[list[int]] = heads

    def _deck_cards(self, told: Any) -> list[list[int]]:
        path: Path = ("deck", "cards")
        told = self._list(told, path)
        if len(told) != NUMBERS:
            _fail(f"the deck has {len(told)} cards; should be {NUMBERS}", path)
        for index, card in enumerate(told):
            card = self._list(card, (*path, index))
            if len(card) != len(COLORS):
                _fail(f"{len(card)} head counts; should be {len(COLORS)}", *path, index)
            if all(type(count) is int and 0 <= count <= cards.MAX_HEADS for count in card):
                continue
            for color, count in enumerate(card):
                self._number(count, 0, cards.MAX_HEADS, "heads", (*path, index, color))
        return told

    def _read_cards(self) -> None:
        data, places = self._data, _Cards()
        self.rows: list[list[int]] = []
        rows = self._list(data["rows"], ("rows",))
        if len(rows) != ROWS:
            _fail(f"{len(rows)} rows; should be {ROWS}", "rows")
        for row, numbers in enumerate(rows):
            told = self._list(numbers, ("rows", row))
            self.rows.append(
                [places.put(n, f"row {row}", ("rows", row, i)) for i, n in enumerate(told)]
            )
            self._check_row(row)
        hand = self._list(data["hand"], ("hand",))
        self.hand = sorted(places.put(n, "the hand", ("hand", i)) for i, n in enumerate(hand))
        if len(self.hand) > HAND_SIZE:
            problem = f"{len(self.hand)} cards in hand; a hand has {HAND_SIZE} at most"
            _fail(problem, "hand", HAND_SIZE)
        self.revealed = self._read_revealed(data.get("revealed"), places)
        self.taken = self._lists(data.get("oxx_piles"), "oxx_piles", "Oxx pile", places)
        self.returned = self._lists(data.get("returned"), "returned", "returned cards", places)
        self.known = self._known(data.get("known_hand"), places)
        for key, told in (("returned", self.returned), ("known_hand", self.known)):
            for seat, numbers in enumerate(told):
                if numbers and not self.positive:
                    _fail(f"in {self.rules!r} no card goes under a draw pile", key, seat)

    def _check_row(self, row: int) -> None:
        """R6, R7 (V1), R8: can these cards lie in one row?"""
        numbers = self.rows[row]
        if not numbers:
            _fail(f"row {row} is empty; a row has a card at least", "rows", row)
        limit = ROW_CARDS if "color" in self.rules else FULL_ROW
        if len(numbers) > limit:
            why = "" if "color" in self.rules else "; who places a sixth takes the five (R7)"
            problem = f"row {row} has {len(numbers)} cards and can have {limit}{why}"
            _fail(problem, "rows", row, limit)
        counts = [0] * len(COLORS)
        for index, number in enumerate(numbers):
            card = self.heads[number - 1]
            if index:
                end = numbers[index - 1]
                if not any(a and b for a, b in zip(card, self.heads[end - 1], strict=True)):
                    one = cards.card_text(number, card)
                    two = cards.card_text(end, self.heads[end - 1])
                    problem = f"card {one} shares no color with {two} before it (R6)"
                    _fail(f"{problem} in deck {self.deck!r}", "rows", row, index)
            counts = [a + b for a, b in zip(counts, card, strict=True)]
            if index and max(counts) >= SIX_HEADS:
                color = COLORS[counts.index(max(counts))]
                problem = f"row {row} shows {max(counts)} heads of {color} with card {number}"
                _fail(f"{problem}; who places the sixth takes the row (R8)", "rows", row, index)

    def _read_revealed(self, revealed: Any, places: _Cards) -> list[tuple[int, int]]:
        pairs: list[tuple[int, int]] = []
        for index, told in enumerate(
            self._list([] if revealed is None else revealed, ("revealed",))
        ):
            path: Path = ("revealed", index)
            pair = self._list(told, path)
            if len(pair) != 2:
                _fail(f"{short(told)} should be [seat, number]", path)
            seat = self._number(pair[0], 0, self.players - 1, "seat", path)
            number = places.put(pair[1], "the revealed cards", path)
            if any(seat == other for other, _ in pairs):
                _fail(f"seat {seat} has two revealed cards", path)
            if pairs and pairs[-1][1] > number:
                _fail(f"card {number} comes before {pairs[-1][1]} (R5)", path)
            pairs.append((seat, number))
        return pairs

    def _lists(self, told: Any, key: str, name: str, places: _Cards) -> list[list[int]]:
        if told is None:
            return [[] for _ in range(self.players)]
        return [
            [
                places.put(number, f"seat {seat}'s {name}", (key, seat, index))
                for index, number in enumerate(
                    self._list([] if numbers is None else numbers, (key, seat))
                )
            ]
            for seat, numbers in enumerate(self._by_seat(told, (key,)))
        ]

    def _known(self, told: Any, places: _Cards) -> list[list[int]]:
        """Known hand cards; the observer's are among the own hand."""
        lists: list[list[int]] = []
        for seat, numbers in enumerate(
            [[]] * self.players if told is None else self._by_seat(told, ("known_hand",))
        ):
            numbers = self._list([] if numbers is None else numbers, ("known_hand", seat))
            if seat == self.seat:
                for index, number in enumerate(numbers):
                    if not is_int(number) or number not in self.hand or number in numbers[:index]:
                        problem = f"card {short(number)} is not in the observer's hand"
                        _fail(problem, "known_hand", seat, index)
            else:
                for index, number in enumerate(numbers):
                    places.put(number, f"seat {seat}'s hand", ("known_hand", seat, index))
            lists.append(sorted(numbers))
        return lists

    def _read_phase(self) -> None:
        phase = self._data.get("phase")
        if phase is None:
            phase = "row" if self.revealed else "card"
        if phase not in PHASES:
            _fail(f"unknown phase {short(phase)}; choose one of {', '.join(PHASES)}", "phase")
        self.phase = PHASES.index(phase)
        if self.phase == ROW_PHASE and not self.revealed:
            _fail("in the row phase there is a revealed card to place", "revealed")
        if self.phase != ROW_PHASE and self.revealed:
            _fail(f"in phase {phase!r} no revealed card waits to be placed", "revealed", 0)
        card = self._data.get("card")
        due = self.revealed[0][1] if self.revealed else None
        if card is not None and card != due:
            right = f"the lowest revealed one is {due}" if due else "none is revealed"
            _fail(f"card {short(card)} is being placed, but {right}", "card")
        if self.phase == CARD_PHASE and not self.hand:
            _fail("the hand is empty before a card is played; it would be refilled", "hand")
        if self.phase == ROW_PHASE and len(self.hand) == HAND_SIZE:
            problem = f"{HAND_SIZE} cards in hand after the reveal, which leaves {HAND_SIZE - 1}"
            _fail(f"{problem} at most", "hand", HAND_SIZE - 1)

    def _read_match(self, match: Any) -> None:
        self.match_game, self.match_games = 1, 1
        self.before = [0] * self.players
        if match is None:
            return
        if not isinstance(match, dict):
            _fail(f"{short(match)} should be an object", "match")
        of = match.get("of")
        if of is not None:
            self.match_games = self._number(of, 1, MAX_GAMES, "games", ("match", "of"))
        if match.get("game") is not None:
            path: Path = ("match", "game")
            self.match_game = self._number(match["game"], 1, self.match_games, "game", path)
        if match.get("points") is not None:
            path = ("match", "points")
            self.before = [
                self._number(points, -MOST_MATCH_POINTS, MOST_MATCH_POINTS, "points", (*path, seat))
                for seat, points in enumerate(self._by_seat(match["points"], path))
            ]
            for seat, points in enumerate(self.before):
                if points and self.match_game == 1:
                    _fail("before the first game of a match nobody has points", *path, seat)

    # ---- counts

    @property
    def played(self) -> int:
        """Cards each has played so far, those of the running round included."""
        return self.round + (self.phase == ROW_PHASE)

    def _read_sizes(self) -> None:
        hands = self._numbers_by_seat("hand_sizes", 0, HAND_SIZE)
        piles = self._numbers_by_seat("pile_sizes", 0, self.each)
        if hands is not None and hands[self.seat] != len(self.hand):
            problem = f"{hands[self.seat]} cards in the observer's hand; {len(self.hand)} are told"
            _fail(problem, "hand_sizes", self.seat)
        self.hand_sizes = [len(self.hand)] * self.players if hands is None else hands
        history = self._data.get("history")
        told = self._data.get("round")
        if told is not None:
            self.round = self._number(told, 0, 10_000, "round", ("round",))
        elif isinstance(history, list) and history:
            self.round = len(history) - (self.phase == ROW_PHASE)
        elif piles is not None and not self.positive:
            now = self.phase == ROW_PHASE
            self.round = self.each - self.hand_sizes[self.seat] - piles[self.seat] - now
        else:
            self.round = self._fewest_rounds()
        self.pile_sizes = self.expected_piles() if piles is None else piles
        self._check_sizes()

    def _fewest_rounds(self) -> int:
        """The fewest finished rounds that the hand and the cards on the table allow."""
        if self.phase == OVER:
            return self.each
        in_row_phase = self.phase == ROW_PHASE
        rounds = HAND_SIZE - len(self.hand) - in_row_phase
        out = sum(map(len, [*self.rows, *self.taken, *self.returned, *self.known]))
        placed = self.players - len(self.revealed) if in_row_phase else 0
        back = max(len(a) + len(b) for a, b in zip(self.returned, self.known, strict=True))
        while out > ROWS + self.players * rounds + placed or back > rounds + in_row_phase:
            rounds += HAND_SIZE
        return rounds

    def expected_piles(self) -> list[int]:
        """Draw pile sizes as the rounds leave them; in `positive` with the cards known returned."""
        return [
            max(
                self.each - self.played - size + len(self.returned[seat]) + len(self.known[seat]),
                len(self.returned[seat]),
            )
            for seat, size in enumerate(self.hand_sizes)
        ]

    def _check_sizes(self) -> None:
        for seat, (hand, pile) in enumerate(zip(self.hand_sizes, self.pile_sizes, strict=True)):
            if self.phase == CARD_PHASE and hand == 0:
                _fail(f"seat {seat} has no card in hand; it would be refilled", "hand_sizes", seat)
            if self.phase == ROW_PHASE and hand == HAND_SIZE:
                problem = f"seat {seat} has {hand} cards in hand after the reveal"
                _fail(f"{problem}; {HAND_SIZE - 1} at most", "hand_sizes", seat)
            if len(self.known[seat]) > hand:
                problem = f"{len(self.known[seat])} known cards in a hand of {hand}"
                _fail(problem, "known_hand", seat)
            if len(self.returned[seat]) > pile:
                problem = f"{len(self.returned[seat])} returned cards under a pile of {pile}"
                _fail(problem, "returned", seat)
            low = self.each - self.played
            if self.positive:
                back = len(self.returned[seat]) + len(self.known[seat])
                if back > self.played:
                    rounds = counted(self.played, "round")
                    problem = f"{back} cards of seat {seat} came back in {rounds}"
                    _fail(problem, "returned", seat)
                low += back
            high = self.each if self.positive else low
            if not low <= hand + pile <= high:
                right = f"{low}" if low == high else f"{low} to {high}"
                problem = f"seat {seat} has {hand} cards in hand and {pile} in the draw pile"
                _fail(
                    f"{problem}; after {counted(self.round, 'round')} they are {right} together",
                    "pile_sizes",
                    seat,
                )
            if not self.positive and self.phase == OVER and hand + pile:
                problem = f"seat {seat} still has {hand + pile} cards; a game that is over has none"
                _fail(f"{problem} (R12)", "pile_sizes" if pile else "hand_sizes", seat)
            refills = HAND_SIZE - 1 if self.phase == ROW_PHASE else HAND_SIZE
            wanted = refills - self.round % HAND_SIZE
            if not self.positive and self.phase != OVER and hand != wanted:
                after = counted(self.round, "round")
                problem = f"seat {seat} has {hand} cards in hand; after {after}"
                key: Path = ("hand",) if seat == self.seat else ("hand_sizes", seat)
                _fail(f"{problem} it is {wanted}", key)

    def _count_cards(self) -> None:
        """All cards dealt lie somewhere; how many have been taken and are not remembered?"""
        rows, taken = sum(map(len, self.rows)), sum(map(len, self.taken))
        held = sum(self.hand_sizes) + sum(self.pile_sizes) + len(self.revealed)
        dealt = ROWS + self.players * self.each
        self.forgotten = dealt - held - rows - taken
        if self.forgotten < 0:
            problem = f"{rows} cards in rows, {taken} taken and {held} held or revealed"
            key = "oxx_piles" if taken else "rows"
            _fail(f"{problem} are {dealt - self.forgotten}; {dealt} were dealt", key)

    def _read_scores(self) -> None:
        heads = [sum(sum(self.heads[n - 1]) for n in numbers) for numbers in self.taken]
        told = self._numbers_by_seat("scores", -MOST_POINTS, MOST_POINTS)
        self.scores = heads if told is None else told
        for seat, (points, least) in enumerate(zip(self.scores, heads, strict=True)):
            if self.phase == OVER and self.positive:
                continue  # heads left over are taken off, and not all are known
            exact = not self.forgotten
            if points < least or (exact and points != least):
                right = f"{least}" if exact else f"{least} at least"
                problem = f"seat {seat} has {points} points; the heads it has taken are {right}"
                _fail(problem, "scores", seat)

    # ---- the course

    def _read_history(self, history: Any) -> None:
        self.history: list[dict[str, Any]] = []
        self.course: NDArray[np.void] | None = None  # GAME [1] as the history leaves it
        self.history = self._list([] if history is None else history, ("history",))
        if not self.history:
            return
        try:
            replay = self._follow()
        except RecordError as error:
            path: Path = ("history",) if error.round is None else ("history", error.round - 1)
            _fail(f"round {error.round}, {error.clause}: {error.problem}", path)
        self._compare(replay.view(self.seat))
        self.course = replay.games

    def _follow(self) -> Replay:
        def fail(where: str, clause: str, problem: str) -> None:
            raise RecordError(1, where, clause, problem)

        reader = Reader(self.players, fail)
        rounds = [
            reader.round(one, f"round {number}")
            for number, one in enumerate(self.history, start=1)
        ]
        starts = [row[0] for row in self.rows]
        for _, placements in reversed(rounds):
            for _, _, row, taken in reversed(placements):
                if row is not None and 0 <= row < ROWS and taken:
                    starts[row] = taken[0]
        if len(set(starts)) < ROWS or not all(1 <= number <= NUMBERS for number in starts):
            _fail(f"it begins with rows of {listed(starts)}, which cannot be", "history")
        hidden = [[NO_CARD] * self.each] * self.players
        replay = Replay.of_deal(self.rules, self.decks, Deal(hidden, starts))
        for number, (played, placements) in enumerate(rounds, start=1):
            where, last = f"round {number}", number == len(rounds)
            if replay.over:
                fail(where, "V2c" if self.positive else "R12", "the game was over")
            reader.follow(replay, played, placements, where)
            if last and self.phase == ROW_PHASE:
                continue
            reader.check_placed(replay, where)
            if last and self.phase == OVER and not replay.out:
                replay.game["round"] += 1
                replay.end()
            else:
                replay.step()
        return replay

    def _compare(self, told: View) -> None:
        """Does the history lead to what else is told?"""
        players = self.players
        hand_sizes = told.game["hand_sizes"][:players].tolist()
        pile_sizes = told.game["pile_sizes"][:players].tolist()
        pairs: list[tuple[str, Sequence[Any], Sequence[Any]]] = [
            ("rows", told.rows, self.rows),
            ("revealed", told.revealed, [list(pair) for pair in self.revealed]),
            ("oxx_piles", told.oxx_piles, self.taken),
            ("hand_sizes", hand_sizes, self.hand_sizes),
            ("pile_sizes", pile_sizes, self.pile_sizes),
            ("returned", told.returned, self.returned),
            ("known_hand", [sorted(numbers) for numbers in told.known_hand], self.known),
        ]
        if not (self.phase == OVER and self.positive):
            pairs.append(("scores", told.scores, self.scores))
        for key, right, here in pairs:
            for index, (wanted, given) in enumerate(zip(right, here, strict=False)):
                if wanted != given:
                    what = f"the history leads to {short(wanted)}, not {short(given)}"
                    _fail(what, key, index)
            if len(right) != len(here):
                _fail(f"the history leads to {len(right)} entries, not {len(here)}", key)
        seen = int(told.game["seen"][0]) | int(told.game["seen"][1]) << 64
        for index, number in enumerate(self._data["hand"]):
            if seen >> number & 1 and number not in told.known_hand[self.seat]:
                _fail(f"card {number} was played before, by the history", "hand", index)

    def check_turn(self, view: View) -> None:
        """Do `to_act` and `legal` agree with the rest?"""
        if self.phase == ROW_PHASE:
            seat, number = self.revealed[0]
            legal = int(_legal_rows(view.games, view.decks, number))
            if legal & (legal - 1) == 0:
                row = legal.bit_length() - 1
                goes = f"goes to row {row}" if legal else "goes under the draw pile"
                problem = f"card {number} of seat {seat} has no choice: it {goes}"
                _fail(f"{problem}; tell the position after that", "revealed", 0)
        for key, right in (("to_act", view.to_act), ("legal", view.legal)):
            told = self._data.get(key)
            if told is not None and told != right:
                _fail(f"{short(told)}; in this position it is {right}", key)


@kernel
def _legal_rows(games: Game, decks: Deck, number: int) -> int:
    return legal_rows(games[0], decks[0], number)


@kernel
def _see(games: Game, number: int) -> None:
    see(games[0], number)


@kernel
def _put_on_row(games: Game, decks: Deck, row: int, number: int) -> None:
    put_on_row(games[0], decks[0], row, number)


def _build(position: _Position) -> NDArray[np.void]:
    """GAME [1] of a checked position, everything hidden blank."""
    games = np.zeros(1, GAME)
    game = games[0]
    players, ring = position.players, position.each
    game["seed"] = NO_SEED
    game["rules"], game["players"], game["phase"] = position.flags, players, position.phase
    game["match_game"], game["match_games"] = position.match_game, position.match_games
    game["match_points"][:players] = position.before
    game["points"][:players] = position.scores
    game["round"] = position.round
    game["hand_sizes"][:players] = position.hand_sizes
    game["pile_sizes"][:players] = position.pile_sizes
    for row, numbers in enumerate(position.rows):
        for number in numbers:
            _put_on_row(games, position.decks, row, number)
            _see(games, number)
    for seat in range(players):
        hand = position.hand if seat == position.seat else position.known[seat]
        game["hands"][seat, : len(hand)] = hand
        for number in [*position.known[seat], *position.taken[seat], *position.returned[seat]]:
            _see(games, number)
    for _, number in position.revealed:
        _see(games, number)
    if position.phase == CARD_PHASE and (position.picked or len(position.hand) == 1):
        # Which of several was picked is not told, only that it was; a single card picks itself.
        game["picks"][position.seat] = position.hand[0]

    course = position.course
    if course is not None:  # it knows the order of things besides
        for name in ("pile_starts", "piles", "taken", "taken_by", "taken_count", "placed"):
            game[name] = course[0][name]
        game["revealed"], game["revealed_by"] = course[0]["revealed"], course[0]["revealed_by"]
        for name in ("round", "seen"):
            game[name] = course[0][name]
        return games
    for seat, numbers in enumerate(position.returned):
        # Exact unless a returned card was drawn again; nobody can see the difference.
        drawn = ring - position.pile_sizes[seat] + len(numbers)
        game["pile_starts"][seat] = drawn % ring
        first = drawn + position.pile_sizes[seat] - len(numbers)
        for index, number in enumerate(numbers):
            game["piles"][seat * ring + (first + index) % ring] = number
    taken = [(seat, number) for seat, pile in enumerate(position.taken) for number in pile]
    game["taken_count"] = len(taken)
    game["taken"][: len(taken)] = [number for _, number in taken]
    game["taken_by"][: len(taken)] = [seat for seat, _ in taken]
    if position.phase == ROW_PHASE:
        placed = players - len(position.revealed)
        game["placed"] = placed
        game["revealed"][placed:players] = [number for _, number in position.revealed]
        game["revealed_by"][placed:players] = [seat for seat, _ in position.revealed]
    return games


# --- as text --------------------------------------------------------------------------------------


def to_text(view: View) -> str:
    """One line that `from_text` reads back to the same view, without its history.

    A deck that is not shipped is told by its name only.
    """
    game, players = view.game, view.players
    hand_sizes = game["hand_sizes"][:players].tolist()
    pile_sizes = game["pile_sizes"][:players].tolist()
    head = f"{view.rules} {players}p seat {view.seat} deck {_word(view.deck)}"
    parts = [f"{head} round {int(game['round'])}"]
    picked = int(game["picks"][view.seat]) != NO_CARD and len(view.hand) > 1
    if picked or view.phase == "over":
        parts.append("over" if view.phase == "over" else "picked")
    parts.append(f"rows {' '.join(_joined(row) for row in view.rows)}")
    parts.append(f"hand {' '.join(map(str, view.hand)) or '-'}")
    if view.revealed:
        shown = (f"{seat}:{number}" for seat, number in view.revealed)
        parts.append(f"revealed {' '.join(shown)}")
    heads = [sum(card) for card in deck_cards(view.decks[0])]
    if any(view.oxx_piles):
        parts.append(f"taken {_labelled(view.oxx_piles)}")
    if view.scores != [sum(heads[n - 1] for n in pile) for pile in view.oxx_piles]:
        parts.append(f"points {' '.join(map(str, view.scores))}")
    parts.append(f"hands {_sizes(hand_sizes)}")
    parts.append(f"piles {_sizes(pile_sizes)}")
    if any(view.known_hand):
        parts.append(f"known {_labelled(view.known_hand)}")
    if any(view.returned):
        parts.append(f"returned {_labelled(view.returned)}")
    match_game, of = int(game["match_game"]), int(game["match_games"])
    if of > 1:
        before = game["match_points"][:players].tolist()
        parts.append(f"game {match_game}/{of} before {' '.join(map(str, before))}")
    return " | ".join(parts)


def _joined(numbers: Iterable[int]) -> str:
    return "-".join(map(str, numbers)) or "-"


def _labelled(lists: Sequence[Sequence[int]]) -> str:
    return " ".join(f"{seat}:{_joined(numbers)}" for seat, numbers in enumerate(lists) if numbers)


def _sizes(sizes: list[int]) -> str:
    return " ".join(map(str, sizes if len(set(sizes)) > 1 else sizes[:1]))


def _word(name: str) -> str:
    return name if re.fullmatch(r'[^\s|",;]+', name) else json.dumps(name, ensure_ascii=False)


def from_text(
    text: str, deck: cards.DeckSpec | None = None, otherwise: Mapping[str, Any] | None = None
) -> View:
    """The view that a position text describes. Raises PositionError with the place marked.

    `deck` (name, path or head counts [110, 6]) is used instead of the one that the text names;
    `otherwise` holds values, as in the JSON, of what the text does not tell.
    """
    if not isinstance(text, str):
        raise TypeError(f"a position is a text, not {type(text).__name__}")
    parser = _Parser(text, otherwise or {})
    data = parser.data
    try:
        if deck is not None:
            heads = cards.load_deck(deck)
            data["deck"] = {
                "name": data.get("deck", cards.deck_name(deck)),
                "cards": heads.tolist(),
            }
        return view_from_dict(data)
    except PositionError as error:
        raise PositionError(error.problem, error.path, text, parser.span(error.path)) from None


def read_position(text: str, deck: cards.DeckSpec | None = None) -> View:
    """A position as text or as the JSON of `View.to_dict()`. Raises PositionError."""
    if not text.lstrip().startswith("{"):
        return from_text(text, deck)
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise PositionError(
            f"no JSON: {error.msg}", text=text, span=(error.pos, error.pos + 1)
        ) from None
    except (ValueError, RecursionError) as error:
        raise PositionError(f"no position: {error}") from None
    if deck is not None:
        data["deck"] = {"name": cards.deck_name(deck), "cards": cards.load_deck(deck).tolist()}
    return view_from_dict(data)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    after: str = ""  # the comma or semicolon behind it

    @property
    def end(self) -> int:
        return self.start + len(self.text)


# A text in quotes; or a word, the marks behind it apart: it ends at a semicolon, and at a comma
# before the next seat's `2:`.
_TOKEN = re.compile(r'("(?:[^"\\\n]|\\.)*"|(?:,(?!,*(?:[\s|"]|$|[0-9]+:))|[^\s|";,])+|")([;,]*)')
_KEYS = {  # word -> key of the JSON
    "rows": "rows",
    "hand": "hand",
    "revealed": "revealed",
    "taken": "oxx_piles",
    "points": "scores",
    "hands": "hand_sizes",
    "piles": "pile_sizes",
    "known": "known_hand",
    "returned": "returned",
    "before": "before",
    "seat": "seat",
    "deck": "deck",
    "round": "round",
    "game": "game",
    "picked": "picked",
    "over": "over",
}


def _pieces(token: _Token) -> list[_Token]:
    """The parts of a word between its commas."""
    found = re.finditer(r"[^,]+", token.text)
    return [_Token(piece.group(), token.start + piece.start()) for piece in found]


def _rows_of(words: list[_Token]) -> list[list[_Token]]:
    """The words of each row: five words, or five groups of words between semicolons or commas."""
    if len(words) != ROWS:
        for mark in ";,":
            groups: list[list[_Token]] = [[]]
            for word in words:
                for index, piece in enumerate(_pieces(word) if mark == "," else [word]):
                    if index:
                        groups.append([])
                    groups[-1].append(piece)
                if word.after == mark:
                    groups.append([])
            groups = [group for group in groups if group]
            if len(groups) == ROWS:
                return groups
    return [[word] for word in words]


class _Parser:
    """Position text -> the JSON form, and where in the text each of its values stands."""

    def __init__(self, text: str, otherwise: Mapping[str, Any]) -> None:
        self.text = text
        self.data: dict[str, Any] = {"rules": "base", "seat": 0, **copy.deepcopy(dict(otherwise))}
        self._spans: dict[Path, tuple[int, int]] = {}
        self._told: set[str] = set()
        parts: list[tuple[_Token, list[_Token]]] = []
        for found in _TOKEN.finditer(text):
            token = _Token(found[1], found.start(), found[2][:1])
            word = token.text.lower()
            if word in RULE_SETS:
                self._once("rules", token)
                self.data["rules"] = word
            elif re.fullmatch(r"[0-9]+p", word):
                self._once("players", token)
                self.data["players"] = int(word[:-1]) if len(word) < 10 else 10**9
            elif word in _KEYS and not (
                parts and parts[-1][0].text.lower() == "deck" and not parts[-1][1]
            ):
                self._once(_KEYS[word], token)
                parts.append((token, []))
            elif not parts:
                self._unknown(token)
            else:
                parts[-1][1].append(token)
        for part, words in parts:
            for token in words:
                if part.text.lower() != "deck" and re.fullmatch(r"[A-Za-z+]{2,}", token.text):
                    self._unknown(token)
        if "players" not in self.data:
            self._fail("how many players? Write for example 4p", ())
        for key in ("rows", "hand"):
            if key not in self._told:
                self._fail(f"the position does not tell its {key}", ())
        self._players = min(max(self.data["players"], MIN_PLAYERS), MAX_PLAYERS)
        for token, words in sorted(parts, key=lambda part: part[0].text.lower() != "game"):
            key = _KEYS[token.text.lower()]
            if words:
                self._spans[(key,)] = (words[0].start, words[-1].end)
            getattr(self, f"_read_{key}", self._read_by_seat)(token, words)

    def span(self, path: Path) -> tuple[int, int]:
        """Where the value stands, or the smallest told thing around it; else the text's end."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._spans:
                return self._spans[path[:length]]
        end = len(self.text.rstrip())
        return end, end + 1

    def _fail(self, problem: str, place: _Token | Path) -> NoReturn:
        span = (place.start, place.end) if isinstance(place, _Token) else self.span(place)
        path = () if isinstance(place, _Token) else place
        raise PositionError(problem, path, self.text, span)

    def _once(self, key: str, token: _Token) -> None:
        if key in self._told:
            self._fail(f"{key.replace('_', ' ')} told twice", token)
        self._told.add(key)
        self._spans[(key,)] = (token.start, token.end)

    def _unknown(self, token: _Token) -> NoReturn:
        known = [*RULE_SETS, *_KEYS]
        close = difflib.get_close_matches(token.text.lower(), known, n=1)
        counts = [str(count) for count in range(MIN_PLAYERS, MAX_PLAYERS + 1)]
        if token.text in counts and "players" not in self._told:
            close = [f"{token.text}p"]  # "4 players"
        hint = f"did you mean {close[0]!r}?" if close else f"words are {', '.join(known)}"
        self._fail(f"unknown word {short(token.text)}; {hint}", token)

    def _number(self, token: _Token) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,12}", token.text, re.ASCII):
            self._fail(f"{short(token.text)} is no number", token)
        return int(token.text)

    def _one(self, token: _Token, words: list[_Token]) -> _Token:
        if not words:
            self._fail(f"after {token.text!r} something is missing", token)
        if len(words) > 1:
            self._unknown(words[1])
        return words[0]

    def _note(self, path: Path, token: _Token) -> None:
        self._spans[path] = (token.start, token.end)

    def _numbers(self, token: _Token, path: Path) -> list[int]:
        """Cards joined by hyphens or commas; `-` alone is none, `?` one that nobody remembers."""
        numbers: list[int] = []
        if token.text == "-":
            return numbers
        at = token.start
        for piece in re.split(r"[-,]", token.text):
            part = _Token(piece, at)
            at += len(piece) + 1
            if piece == "?" and path[0] == "oxx_piles":
                continue
            if not piece and part.start >= token.end and token.text.endswith(","):
                continue
            if not piece:
                self._fail("a card number is missing here", _Token(" ", min(at, token.end) - 1))
            self._note((*path, len(numbers)), part)
            numbers.append(self._number(part))
        return numbers

    def _label(self, token: _Token) -> tuple[int, _Token]:
        """`2:17` -> 2 and the rest."""
        seat, colon, rest = token.text.partition(":")
        number = self._number(_Token(seat, token.start)) if colon and rest else -1
        if not colon or not rest:
            self._fail(f"{short(token.text)} should be seat:cards, for example 2:17", token)
        if not 0 <= number < self._players:
            problem = f"there is no seat {number}; seats are 0 to {self._players - 1}"
            self._fail(problem, _Token(seat, token.start))
        return number, _Token(rest, token.start + len(seat) + 1)

    # ---- the parts

    def _read_seat(self, token: _Token, words: list[_Token]) -> None:
        self.data["seat"] = self._number(self._one(token, words))

    def _read_round(self, token: _Token, words: list[_Token]) -> None:
        self.data["round"] = self._number(self._one(token, words))

    def _read_deck(self, token: _Token, words: list[_Token]) -> None:
        word = self._one(token, words)
        self._note(("deck",), word)
        self.data["deck"] = word.text
        if word.text.startswith('"'):
            try:
                self.data["deck"] = json.loads(word.text)
            except ValueError:
                self._fail("a name in quotes should end with a quote", word)

    def _read_game(self, token: _Token, words: list[_Token]) -> None:
        word = self._one(token, words)
        game, slash, of = word.text.partition("/")
        if not slash:
            self._fail(f"{short(word.text)} should be game/games, for example 2/3", word)
        self._note(("match",), word)
        self.data.setdefault("match", {}).update(
            game=self._number(_Token(game, word.start)),
            of=self._number(_Token(of, word.start + len(game) + 1)),
        )

    def _read_before(self, token: _Token, words: list[_Token]) -> None:
        self._read_by_seat(token, words)
        self.data.setdefault("match", {})["points"] = self.data.pop("before")
        for seat, word in enumerate(words):
            self._note(("match", "points", seat), word)

    def _read_picked(self, token: _Token, words: list[_Token]) -> None:
        if words:
            self._unknown(words[0])
        self.data["picked"] = True

    def _read_over(self, token: _Token, words: list[_Token]) -> None:
        if words:
            self._unknown(words[0])
        self.data["phase"] = "over"

    def _read_rows(self, token: _Token, words: list[_Token]) -> None:
        rows: list[list[int]] = []
        for row, cards_of_it in enumerate(_rows_of(words)):
            rows.append([])
            for word in cards_of_it:
                self._note(("rows", row), word)
                numbers = self._numbers(word, ("in rows",))
                for at, number in enumerate(numbers):
                    self._spans[("rows", row, len(rows[row]))] = self._spans[("in rows", at)]
                    rows[row].append(number)
            first, last = cards_of_it[0], cards_of_it[-1]
            self._spans[("rows", row)] = first.start, last.end
        self.data["rows"] = rows

    def _read_hand(self, token: _Token, words: list[_Token]) -> None:
        numbers: list[int] = []
        for word in words:
            for at, number in enumerate(self._numbers(word, ("in hand",))):
                self._spans[("hand", len(numbers))] = self._spans[("in hand", at)]
                numbers.append(number)
        self.data["hand"] = numbers

    def _read_revealed(self, token: _Token, words: list[_Token]) -> None:
        shown = []
        for word in words:
            seat, card = self._label(word)
            shown.append((self._number(card), seat, word))
        shown.sort(key=lambda entry: entry[:2])
        self.data["revealed"] = [[seat, number] for number, seat, _ in shown]
        for index, (_, _, word) in enumerate(shown):
            self._note(("revealed", index), word)

    def _read_by_seat(self, token: _Token, words: list[_Token]) -> None:
        """A list for each seat (cards), or a number for each (sizes, points)."""
        key = _KEYS[token.text.lower()]
        lists = key in ("oxx_piles", "known_hand", "returned")
        values: list[Any] = [[] if lists else 0 for _ in range(self._players)]
        labelled = any(":" in word.text for word in words)
        if not labelled and not lists:
            words = [piece for word in words for piece in _pieces(word)]
        if not labelled and len(words) == 1 and key in ("hand_sizes", "pile_sizes"):
            words = words * self._players
        if not labelled and len(words) != self._players:
            problem = f"{len(words)} entries for {self._players} players"
            self._fail(f"{problem}; write one for each, or seat:...", (key,))
        if labelled and key in ("hand_sizes", "pile_sizes") and len(words) != self._players:
            self._fail(f"the sizes of all {self._players} seats are needed", (key,))
        told: set[int] = set()
        for index, word in enumerate(words):
            seat, rest = self._label(word) if labelled else (index, word)
            if seat in told:
                self._fail(f"seat {seat} told twice", word)
            told.add(seat)
            self._note((key, seat), rest)
            values[seat] = self._numbers(rest, (key, seat)) if lists else self._number(rest)
        self.data[key] = values
