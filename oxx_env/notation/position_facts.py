"""The facts of a position, read from its JSON: each is checked, and what was left out is filled in.

A wrong fact is a `PositionError` with the path of its value. What comes later relies on what was
checked before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import cards
from oxx_env.game.cards import COLORS, NUMBERS
from oxx_env.game.rules import (
    CARD_PHASE,
    CARDS_DEALT,
    HAND_SIZE,
    MAX_PLAYERS,
    MIN_PLAYERS,
    OVER,
    PASS,
    ROW_CARDS,
    ROW_PHASE,
    ROWS,
    RULE_SETS,
    counts_victory_points,
    deck_cards,
)
from oxx_env.game.validation import MAX_GAMES, MOST_MATCH_POINTS, MOST_POINTS
from oxx_env.game.views import PHASES
from oxx_env.lib.texts import counted, printable, short
from oxx_env.notation.records import is_int, kernel_deck
from oxx_env.notation.wording import FULL_ROW, heads_on

SIX_HEADS = 6  # of one color in a row (R8)
MOST_ROUNDS = 10_000
MOST_SHOWN = 600  # letters of a position's line beside an error

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
        elif path:
            first, *rest = path
            place = str(first) + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in rest)
            super().__init__(f"{place}: {problem}")
        else:
            super().__init__(problem)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.path, self.text, self.span)


def _marked(text: str, span: tuple[int, int]) -> str:
    """The line of the text that holds the place, with carets below it."""
    start = text.rfind("\n", 0, span[0]) + 1
    line = text[start:].partition("\n")[0].replace("\t", " ")
    if len(line) > MOST_SHOWN:  # the part around the place
        first = max(0, span[0] - start - MOST_SHOWN // 2)
        line, start = line[first : first + MOST_SHOWN], start + first
    length = max(1, min(span[1], start + len(line)) - span[0])
    before = printable(line[: span[0] - start])
    marked = printable(line[span[0] - start :][:length])
    return f"  {printable(line)}\n  {' ' * len(before)}{'^' * max(1, len(marked))}"


def fail(problem: str, *path: str | int) -> NoReturn:
    """Raise PositionError at a path."""
    raise PositionError(problem, path)


def integer(value: Any, low: int, high: int, what: str, *path: str | int) -> int:
    """`value` as an int, if it is one from `low` to `high`."""
    if not is_int(value) or not low <= value <= high:
        fail(f"{what}: {short(value)}; should be an integer from {low} to {high}", *path)
    return int(value)


def as_list(value: Any, *path: str | int) -> list[Any]:
    """`value` if it is a list; nothing (None) is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        fail(f"{short(value)} should be a list", *path)
    return list(value)


class Facts:
    """The facts of a position; `data` is its JSON.

    The attributes are called as in the JSON, but for these:

    flags, positive   of the rule set
    each              cards dealt to each seat
    decks, heads      DECK [1] and the head counts [110][6]
    phase             its number in `rules`
    taken, known      the Oxx piles and the known hands
    round             finished rounds
    before            points before this game
    forgotten         number of cards taken and not remembered
    picked            has the observer chosen a card?
    """

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict):
            fail(f"a position is an object, not {short(data)}")
        self.data = data
        for key in ("rules", "players", "seat", "rows", "hand"):
            if data.get(key) is None:
                fail(f"the position lacks its {key}", key)
        rules = data["rules"]
        if not isinstance(rules, str) or rules not in RULE_SETS:
            fail(f"unknown rule set {short(rules)}; choose one of {', '.join(RULE_SETS)}", "rules")
        self.rules: str = rules
        self.flags = RULE_SETS.index(rules)
        self.positive = counts_victory_points(rules)
        self.players = integer(data["players"], MIN_PLAYERS, MAX_PLAYERS, "players", "players")
        self.each = int(CARDS_DEALT[self.players])
        self.seat = integer(data["seat"], 0, self.players - 1, "seat", "seat")
        self._read_deck(data.get("deck"))
        self._read_cards()
        self._read_phase()
        self._read_match(data.get("match"))
        self._read_sizes()
        self._count_cards()
        self._read_scores()
        self.history: list[Any] = as_list(data.get("history"), "history")
        if data.get("picked") and self.phase != CARD_PHASE:
            fail("a card is picked only in the card phase", "picked")
        self.picked = data.get("picked") is True or (
            self.phase == CARD_PHASE and data.get("legal") == [PASS]
        )

    def by_seat(self, value: Any, *path: str | int) -> list[Any]:
        """A list with an entry for each seat."""
        entries = as_list(value, *path)
        if len(entries) != self.players:
            fail(f"{len(entries)} entries for {self.players} players", *path)
        return entries

    def _integers(self, key: str, low: int, high: int) -> list[int] | None:
        """An integer for each seat; None if they are not given."""
        if self.data.get(key) is None:
            return None
        return [
            integer(value, low, high, f"{key} of seat {seat}", key, seat)
            for seat, value in enumerate(self.by_seat(self.data[key], key))
        ]

    # --- deck and cards ---

    def _read_deck(self, deck: Any) -> None:
        heads: Any = None
        if isinstance(deck, dict):
            name, heads = deck.get("name", "custom"), deck.get("cards")
            if not isinstance(name, str):
                fail(f"the deck's name is {short(name)}; should be a text", "deck", "name")
            if heads is None and name not in cards.DECK_NAMES:
                fail(f"deck {short(name)} is not shipped: its cards are needed", "deck")
            self.deck = deck = name
        elif deck is None or isinstance(deck, str):
            deck = "balanced" if deck is None else deck
            self.deck = cards.deck_name(deck)
        else:
            fail(f"{short(deck)} is no deck; should be a name, or name and cards", "deck")
        try:
            self.decks: NDArray[np.void] = kernel_deck(
                deck if heads is None else as_list(heads, "deck", "cards")
            )
        except cards.DeckError as error:
            fail(str(error), "deck")
        self.heads = deck_cards(self.decks[0])

    def _read_cards(self) -> None:
        data = self.data
        self._places: dict[int, str] = {}  # of each card: so none appears twice
        rows = as_list(data["rows"], "rows")
        if len(rows) != ROWS:
            fail(f"{len(rows)} rows; should be {ROWS}", "rows")
        self.rows: list[list[int]] = []
        for row, numbers in enumerate(rows):
            self.rows.append(self._cards(numbers, f"row {row}", "rows", row))
            self._check_row(row)
        self.hand = sorted(self._cards(data["hand"], "the hand", "hand"))
        if len(self.hand) > HAND_SIZE:
            problem = f"{len(self.hand)} cards in hand; a hand has {HAND_SIZE} at most"
            fail(problem, "hand", HAND_SIZE)
        self.revealed = self._read_revealed(data.get("revealed"))
        self.taken = self._lists("oxx_piles", "Oxx pile")
        self.returned = self._lists("returned", "returned cards")
        self.known = [sorted(numbers) for numbers in self._lists("known_hand", "hand")]
        for key, lists in (("returned", self.returned), ("known_hand", self.known)):
            for seat, numbers in enumerate(lists):
                if numbers and not self.positive:
                    fail(f"in {self.rules!r} no card goes under a draw pile", key, seat)

    def _put(self, number: Any, place: str, *path: str | int) -> int:
        """A card's number; the card stands in this place and in no other."""
        if not is_int(number):
            fail(f"{short(number)} is no card number; cards are 1 to {NUMBERS}", *path)
        if not 1 <= number <= NUMBERS:
            fail(f"there is no card {short(number)}; cards are 1 to {NUMBERS}", *path)
        if number in self._places:
            fail(f"card {number} appears twice: it is already in {self._places[number]}", *path)
        self._places[number] = place
        return int(number)

    def _cards(self, numbers: Any, place: str, *path: str | int) -> list[int]:
        return [
            self._put(number, place, *path, index)
            for index, number in enumerate(as_list(numbers, *path))
        ]

    def _lists(self, key: str, name: str) -> list[list[int]]:
        """Cards by seat. Known hand cards of the observer are among those of its hand."""
        lists = []
        given = self.data.get(key)
        for seat, numbers in enumerate(
            [[]] * self.players if given is None else self.by_seat(given, key)
        ):
            if key == "known_hand" and seat == self.seat:
                numbers = as_list(numbers, key, seat)
                for index, number in enumerate(numbers):
                    if not is_int(number) or number not in self.hand or number in numbers[:index]:
                        problem = f"card {short(number)} is not in the observer's hand"
                        fail(problem, key, seat, index)
                lists.append(numbers)
            else:
                lists.append(self._cards(numbers, f"seat {seat}'s {name}", key, seat))
        return lists

    def _check_row(self, row: int) -> None:
        """R6, R7 (V1), R8: can these cards lie in one row?"""
        numbers = self.rows[row]
        if not numbers:
            fail(f"row {row} is empty; a row has a card at least", "rows", row)
        limit = ROW_CARDS if "color" in self.rules else FULL_ROW
        if len(numbers) > limit:
            problem = f"row {row} has {len(numbers)} cards and can have {limit}"
            if limit == FULL_ROW:
                problem += "; the player of a sixth card takes the five (R7)"
            fail(problem, "rows", row, limit)
        sums = [0] * len(COLORS)
        for index, number in enumerate(numbers):
            card, end = self.heads[number - 1], self.heads[numbers[index - 1] - 1]
            if index and not cards.share_color(card, end):
                one, two = cards.card_text(number, card), cards.card_text(numbers[index - 1], end)
                problem = f"card {one} shares no color with {two} before it (R6)"
                fail(f"{problem} in deck {self.deck!r}", "rows", row, index)
            sums = [a + b for a, b in zip(sums, card, strict=True)]
            if index and max(sums) >= SIX_HEADS:
                color = COLORS[sums.index(max(sums))]
                problem = f"row {row} shows {max(sums)} heads of {color} with card {number}"
                right = "the player of the sixth head takes the row (R8)"
                fail(f"{problem}; {right}", "rows", row, index)

    def _read_revealed(self, revealed: Any) -> list[tuple[int, int]]:
        pairs: list[tuple[int, int]] = []
        for index, entry in enumerate(as_list(revealed, "revealed")):
            pair = as_list(entry, "revealed", index)
            if len(pair) != 2:
                fail(f"{short(entry)} should be [seat, number]", "revealed", index)
            seat = integer(pair[0], 0, self.players - 1, "seat", "revealed", index)
            number = self._put(pair[1], "the revealed cards", "revealed", index)
            if any(seat == other for other, _ in pairs):
                fail(f"seat {seat} has two revealed cards", "revealed", index)
            if pairs and pairs[-1][1] > number:
                fail(f"card {number} comes before {pairs[-1][1]} (R5)", "revealed", index)
            pairs.append((seat, number))
        return pairs

    # --- phase and match ---

    def _read_phase(self) -> None:
        phase = self.data.get("phase")
        if phase is None:
            phase = "row" if self.revealed else "card"
        if phase not in PHASES:
            fail(f"unknown phase {short(phase)}; choose one of {', '.join(PHASES)}", "phase")
        self.phase = PHASES.index(phase)
        if self.phase == ROW_PHASE and not self.revealed:
            fail("in the row phase there is a revealed card to place", "revealed")
        if self.phase != ROW_PHASE and self.revealed:
            fail(f"in phase {phase!r} no revealed card waits to be placed", "revealed", 0)
        card = self.data.get("card")
        due = self.revealed[0][1] if self.revealed else None
        if card is not None and card != due:
            right = f"the lowest revealed one is {due}" if due else "none is revealed"
            fail(f"card {short(card)} is being placed, but {right}", "card")
        if self.phase == CARD_PHASE and not self.hand:
            fail("the hand is empty before a card is played; it would be refilled", "hand")
        if self.phase == ROW_PHASE and len(self.hand) == HAND_SIZE:
            problem = f"{HAND_SIZE} cards in hand after the reveal, which leaves {HAND_SIZE - 1}"
            fail(f"{problem} at most", "hand", HAND_SIZE - 1)

    def _read_match(self, match: Any) -> None:
        self.match_game, self.match_games, self.before = 1, 1, [0] * self.players
        if match is None:
            return
        if not isinstance(match, dict):
            fail(f"{short(match)} should be an object", "match")
        if match.get("of") is not None:
            self.match_games = integer(match["of"], 1, MAX_GAMES, "games", "match", "of")
        if match.get("game") is not None:
            game = integer(match["game"], 1, self.match_games, "game", "match", "game")
            self.match_game = game
        if match.get("points") is None:
            return
        for seat, given in enumerate(self.by_seat(match["points"], "match", "points")):
            path, most = ("match", "points", seat), MOST_MATCH_POINTS
            self.before[seat] = integer(given, -most, most, "points", *path)
            if given and self.match_game == 1:
                fail("before the first game of a match all points are 0", *path)

    # --- numbers of cards, rounds, points ---

    @property
    def played(self) -> int:
        """Cards each seat has played so far, those of the running round included."""
        return self.round + (self.phase == ROW_PHASE)

    def _read_sizes(self) -> None:
        hands = self._integers("hand_sizes", 0, HAND_SIZE)
        piles = self._integers("pile_sizes", 0, self.each)
        if hands is not None and hands[self.seat] != len(self.hand):
            problem = f"{hands[self.seat]} cards in the observer's hand; {len(self.hand)} are given"
            fail(problem, "hand_sizes", self.seat)
        self.hand_sizes = [len(self.hand)] * self.players if hands is None else hands
        history, finished = self.data.get("history"), self.data.get("round")
        now = self.phase == ROW_PHASE
        if finished is not None:
            self.round = integer(finished, 0, MOST_ROUNDS, "round", "round")
        elif isinstance(history, list) and history:
            self.round = len(history) - now
        elif piles is not None and not self.positive:
            self.round = self.each - self.hand_sizes[self.seat] - piles[self.seat] - now
        else:
            self.round = self._fewest_rounds()
        self.pile_sizes = self._expected_piles() if piles is None else piles
        for seat in range(self.players):
            self._check_sizes(seat)

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

    def _expected_piles(self) -> list[int]:
        """Draw pile sizes as the rounds leave them; in `positive` with the cards known returned."""
        return [
            max(self.each - self.played - size + len(returned) + len(known), len(returned))
            for size, returned, known in zip(
                self.hand_sizes, self.returned, self.known, strict=True
            )
        ]

    def _check_sizes(self, seat: int) -> None:
        hand, pile = self.hand_sizes[seat], self.pile_sizes[seat]
        known, returned = len(self.known[seat]), len(self.returned[seat])
        if self.phase == CARD_PHASE and hand == 0:
            fail(f"seat {seat} has no card in hand; it would be refilled", "hand_sizes", seat)
        if self.phase == ROW_PHASE and hand == HAND_SIZE:
            problem = f"seat {seat} has {hand} cards in hand after the reveal"
            fail(f"{problem}; {HAND_SIZE - 1} at most", "hand_sizes", seat)
        if known > hand:
            fail(f"{known} known cards in a hand of {hand}", "known_hand", seat)
        if returned > pile:
            fail(f"{returned} returned cards under a pile of {pile}", "returned", seat)
        low = high = self.each - self.played
        if self.positive:
            if known + returned > self.played:
                problem = f"{known + returned} cards of seat {seat} came back"
                fail(f"{problem} in {counted(self.played, 'round')}", "returned", seat)
            low, high = low + known + returned, self.each
        after = f"after {counted(self.round, 'round')}"
        if not low <= hand + pile <= high:
            right = f"{low}" if low == high else f"{low} to {high}"
            problem = f"seat {seat} has {hand} cards in hand and {pile} in the draw pile"
            fail(f"{problem}; {after} they are {right} together", "pile_sizes", seat)
        if self.positive:
            return
        if self.phase == OVER and hand + pile:
            problem = f"seat {seat} still has {hand + pile} cards; a game that is over has none"
            fail(f"{problem} (R12)", "pile_sizes" if pile else "hand_sizes", seat)
        full = HAND_SIZE - 1 if self.phase == ROW_PHASE else HAND_SIZE
        right_size = full - self.round % HAND_SIZE
        if self.phase != OVER and hand != right_size:
            path: Path = ("hand",) if seat == self.seat else ("hand_sizes", seat)
            fail(f"seat {seat} has {hand} cards in hand; {after} it is {right_size}", *path)

    def _count_cards(self) -> None:
        """All cards dealt lie somewhere; how many have been taken and are not remembered?"""
        rows, taken = sum(map(len, self.rows)), sum(map(len, self.taken))
        held = sum(self.hand_sizes) + sum(self.pile_sizes) + len(self.revealed)
        dealt = ROWS + self.players * self.each
        self.forgotten = dealt - held - rows - taken
        if self.forgotten < 0:
            problem = f"{rows} cards in rows, {taken} taken and {held} held or revealed"
            key = "oxx_piles" if taken else "rows"
            fail(f"{problem} are {dealt - self.forgotten}; {dealt} were dealt", key)

    def _read_scores(self) -> None:
        heads = [heads_on(numbers, self.heads) for numbers in self.taken]
        scores = self._integers("scores", -MOST_POINTS, MOST_POINTS)
        self.scores = heads if scores is None else scores
        if self.phase == OVER and self.positive:
            return  # heads left over are taken off, and not all are known
        for seat, (points, least) in enumerate(zip(self.scores, heads, strict=True)):
            exact = not self.forgotten
            if points < least or (exact and points != least):
                right = f"{least}" if exact else f"{least} at least"
                problem = f"seat {seat} has {points} points; the heads it has taken are {right}"
                fail(problem, "scores", seat)

    def check_agrees(self, key: str, right: Sequence[Any], given: Sequence[Any]) -> None:
        """Does the history lead to what is given?"""
        for index, (wanted, here) in enumerate(zip(right, given, strict=False)):
            if wanted != here:
                fail(f"the history leads to {short(wanted)}, not {short(here)}", key, index)
        if len(right) != len(given):
            fail(f"the history leads to {len(right)} entries, not {len(given)}", key)
