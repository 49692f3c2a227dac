"""Whole games as records (`oxx-game/1`, one JSON object a line): write, read, replay.

A record holds the deal, every card played and every placement, so it can be judged without trust:
`replay` follows it through the compiled kernel and refuses the first thing that the rules do not
allow, naming game, round and clause of `docs/rules.md`.

    {"format": "oxx-game/1", "rules", "deck": {"name", "cards": [[6 head counts] x 110]}, "players",
     "seed", "match": {"id", "game", "of", "points_before"}, "draw_piles", "rows",
     "rounds": [{"cards", "placements": [[seat, number, row or null, [numbers taken]]]}],
     "scores", "winners"}
"""

from __future__ import annotations

import copy
import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import cards
from oxx_env.game.cards import COLORS, NUMBERS
from oxx_env.game.rules import (
    CARDS_DEALT,
    COLOR,
    FIRST_ROW,
    GAME,
    MAX_PLAYERS,
    MIN_PLAYERS,
    NO_CARD,
    NO_SEED,
    OVER,
    POSITIVE,
    ROW_PHASE,
    ROWS,
    RULE_SETS,
    Deck,
    Game,
    deck_record,
    is_seen,
    legal_rows,
    length_of,
    matching_rows,
    place,
    put_under_pile,
    see,
    set_up,
    shuffle,
    someone_is_out,
    start_round,
    tick,
)
from oxx_env.game.table import ALL_SEATS, MAX_SEED, Start, Table, ranks, whole
from oxx_env.game.validation import MAX_GAMES
from oxx_env.game.views import hide_piles
from oxx_env.lib.files import open_regular, open_whole
from oxx_env.lib.jit import kernel
from oxx_env.lib.texts import short

FORMAT = "oxx-game/1"
FULL_ROW = 5  # cards of a row before the sixth (R7)
MAX_LINE = 1 << 20  # bytes of one record; real ones have up to 12,000

# --- the kernel, on GAME [1] and DECK [1] ---------------------------------------------------------


@kernel
def _legal_rows(games: Game, decks: Deck, number: int) -> int:
    return legal_rows(games[0], decks[0], number)


@kernel
def _matching_rows(games: Game, decks: Deck, number: int) -> int:
    return matching_rows(games[0], decks[0], number)


@kernel
def _length(games: Game, row: int) -> int:
    return length_of(games[0]["row_sums"][row])


@kernel
def _place(games: Game, decks: Deck, row: int) -> None:
    place(games[0], decks[0], row)


@kernel
def _put_under_pile(games: Game) -> None:
    put_under_pile(games[0])


@kernel
def _see(games: Game, number: int) -> None:
    see(games[0], number)


@kernel
def _set_up(games: Game, decks: Deck) -> None:
    set_up(games[0], decks[0])


@kernel
def _shuffle(games: Game) -> None:
    shuffle(games[0])


@kernel
def _tick(games: Game, decks: Deck) -> int:
    return tick(games[0], decks[0])


@kernel
def _start_round(games: Game) -> None:
    start_round(games[0])


@kernel
def _someone_is_out(games: Game) -> bool:
    return someone_is_out(games[0])


# --- errors ---------------------------------------------------------------------------------------


class RecordFileError(ValueError):
    """A file that holds no records: not readable, empty, not JSON lines, another format."""


class RecordError(ValueError):
    """A record that the rules do not allow.

    game     its number in the file, from 1
    round    the round from 1; None for the deal, the end or the record as a whole
    clause   the clause that is broken (`R4`, `V2b`, ...), `seed`, or `format` for what is no record
    where    `round 3`, `deal`, `end` or `record`
    problem  what is wrong, and what would be right
    """

    def __init__(self, game: int, where: str, clause: str, problem: str) -> None:
        super().__init__(f"game {game}, {where}, {clause}: {problem}")
        self.game, self.where, self.clause, self.problem = game, where, clause, problem
        words = where.split()
        self.round = int(words[1]) if words[0] == "round" else None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.game, self.where, self.clause, self.problem)


# --- writing and reading --------------------------------------------------------------------------


def to_line(record: dict[str, Any]) -> str:
    """A record as its line of JSON, without the line's end; the same record, the same text."""
    return json.dumps(record, separators=(",", ":"), allow_nan=False)


def write_record(file: IO[str], record: dict[str, Any]) -> None:
    """Append a record to an open text file."""
    file.write(to_line(record) + "\n")


def write_records(
    path: str | os.PathLike[str], records: Iterable[dict[str, Any]], private: bool = False
) -> int:
    """Write records as JSON lines and return how many; the file appears whole or not at all, for
    its owner alone if it is `private`."""
    count = 0
    with open_whole(path, private=private) as file:
        for record in records:
            write_record(file, record)
            count += 1
    return count


def read_records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of a file (`-`: stdin) one by one, as told; `replay` judges them.

    Raises RecordFileError, naming the line, where there is no record; OSError for no file.
    """
    name = os.fspath(path)
    if name == "-":
        yield from _read_lines(sys.stdin.buffer, "stdin")
        return
    try:
        with open_regular(path) as file:
            yield from _read_lines(file, name)
    except RecordFileError:
        raise
    except ValueError as error:
        raise RecordFileError(f"{name} {error}; for a pipe write - and it is read") from None


def _read_lines(file: IO[bytes], name: str) -> Iterator[dict[str, Any]]:
    count, number = 0, 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        where = f"{name}, line {number}"
        if len(line) > MAX_LINE:
            raise RecordFileError(f"{where} is longer than {MAX_LINE:,} bytes and no record")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield parse_record(line, where)
            count += 1
    if not count:
        raise RecordFileError(f"{name} is empty; a record is one JSON object a line")


def parse_record(line: str | bytes, where: str = "record") -> dict[str, Any]:
    """The record that a line of JSON tells. Raises RecordFileError if it is none."""
    try:
        text = line if isinstance(line, str) else line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordFileError(f"{where}: byte {error.start + 1} is not UTF-8") from None
    try:
        record = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        if text.lstrip().startswith("{") and not text.rstrip().endswith("}"):
            raise RecordFileError(f"{where} breaks off in the middle of a record") from None
        raise RecordFileError(f"{where}, column {error.colno}: no JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # a number too long, nesting too deep
        raise RecordFileError(f"{where}: no record ({error})") from None
    if not isinstance(record, dict):
        raise RecordFileError(f"{where} is no JSON object; a record is one object a line")
    if record.get("format") != FORMAT:
        told = short(record["format"]) if "format" in record else "no format"
        raise RecordFileError(f'{where} has {told}; a record has "format": "{FORMAT}"')
    return record


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


# --- making ---------------------------------------------------------------------------------------


def play_match(table: Table, bots: Sequence[Any], rngs: Sequence[np.random.Generator]) -> None:
    """Let bots [P] (`oxx_env.bots.make`) play a dealt table to the end of its match.

    Seat by seat as the seats decide; each bot draws from its own generator of `rngs` [P].
    """
    while deciders := table.deciders():
        for seat, view in [(seat, table.view(seat)) for seat in deciders]:
            action = bots[seat].act(view, rngs[seat])
            number = whole(action)
            table.act(seat, action if number is None else number)


# --- replay ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replay:
    """A record that the kernel has followed to its end without objection.

    record     the record
    ended_by   the clause that ended the game: `R12`, `V2c` or `V2f`
    decisions  (seat, action) of every choice made, forced plays left out, as `Table.act` takes them
    """

    record: dict[str, Any]
    ended_by: str
    decisions: list[tuple[int, int]] = field(repr=False)

    def summary(self) -> dict[str, Any]:
        """The game in short, as plain JSON."""
        record = self.record
        return {
            "rules": record["rules"],
            "players": record["players"],
            "deck": record["deck"]["name"],
            "seed": record["seed"],
            "match": record["match"],
            "rounds": len(record["rounds"]),
            "decisions": len(self.decisions),
            "ended_by": self.ended_by,
            "scores": record["scores"],
            "winners": record["winners"],
        }

    def course(self) -> str:
        """The whole game as text to read: every card with its heads as letters."""
        return course(self.record, self.ended_by)


def replay(record: dict[str, Any], game: int = 1) -> Replay:
    """Follow a record through the kernel. Raises RecordError at the first thing that is wrong.

    `game` is its number in the file, for the message. Keys that the format does not know are
    ignored.
    """
    check = _Check(game)
    told = _Told(record, check)
    follower = Follower(game, told.rules, told.players, told.decks)
    follower.deal(told.draw_piles, told.rows)
    decisions: list[tuple[int, int]] = []
    for number, (played, placements) in enumerate(told.rounds, start=1):
        where = f"round {number}"
        if follower.over:
            check.fail(where, follower.ended_by, f"the game was over after round {number - 1}")
        follower.play(played, where, decisions)
        for placement in placements:
            follower.put(placement, where, decisions)
        follower.end_round(where)
    rounds = len(told.rounds)
    if not follower.over:
        clause = "V2c" if follower.positive else "R12"
        check.fail(f"round {rounds + 1}", clause, "is missing: all still have cards to play")
    clause = "V2d" if follower.positive else "R12"
    points = follower.game["points"][: told.players].astype(np.int64)
    scores = points.tolist()
    if told.scores != scores:
        check.fail("end", clause, f"scores {short(told.scores)}; the points are {scores}")
    winners = [seat for seat, rank in enumerate(ranks(points, told.rules)) if rank == 1]
    if told.winners != winners:
        check.fail("end", clause, f"winners {short(told.winners)}; the best points have {winners}")
    return Replay(record, follower.ended_by, decisions)


def start_at(record: dict[str, Any], rounds: int) -> Start:
    """Where a table starts (`Table.start`) to go on from a record after so many finished rounds.

    All hands are as recorded; draw piles and box, which nobody has seen, are left blank but for the
    cards that were put under a pile (`positive`). 0 rounds: the deal. Raises RecordError for a bad
    record, ValueError for a number of rounds after which its game does not go on.
    """
    replay(record)
    told = record["rounds"]
    if not is_int(rounds) or not 0 <= rounds < len(told):
        raise ValueError(
            f"round {short(rounds)}: should be 0 (the deal) to {len(told) - 1}, the rounds of the "
            "record that are finished at the start"
        )
    decks = kernel_deck(tuple(map(tuple, record["deck"]["cards"])))
    follower = Follower(1, record["rules"], record["players"], decks)
    follower.deal(record["draw_piles"], record["rows"])
    for number, one in enumerate(told[:rounds], start=1):
        follower.play(one["cards"], f"round {number}", [])
        for placement in one["placements"]:
            follower.put(placement, f"round {number}", [])
        follower.end_round(f"round {number}")
    games, match = follower.games, record["match"]
    game = games[0]
    game["match_game"], game["match_games"] = match["game"], match["of"]
    game["match_points"][: record["players"]] = match["points_before"]
    hide_piles(games)
    return Start(games, decks, ALL_SEATS, record["deck"]["name"], copy.deepcopy(told[:rounds]))


class Matches:
    """Do the games of a match fit together (R13)? Fed with the replayed records of one file."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, Any]] = {}  # of each match that goes on, its last game
        self._over: dict[str, Any] | None = None  # the last game that ended a match

    def follow(self, record: dict[str, Any], game: int) -> None:
        """Compare a game with the one before it in its match, where the file holds that."""
        match = record["match"]
        if match["id"] is None:
            return
        before = self._last.pop(match["id"], None)
        if before is None and self._over and self._over["match"]["id"] == match["id"]:
            before = self._over
        if match["game"] < match["of"]:
            self._last[match["id"]] = record
        else:
            self._over = record
        if before is None or match["game"] != before["match"]["game"] + 1:
            return
        what = f"match {match['id']}, game {match['game']} of {match['of']}"
        for told, now, then in (
            ("players", record["players"], before["players"]),
            ("rules", record["rules"], before["rules"]),
            ("games", match["of"], before["match"]["of"]),
        ):
            if now != then:
                raise RecordError(game, "deal", "R13", f"{what}: {told} were {then}, not {now}")
        points = [
            old + new
            for old, new in zip(before["match"]["points_before"], before["scores"], strict=True)
        ]
        if match["points_before"] != points:
            told = f"points before it {match['points_before']}, they add up to {points}"
            raise RecordError(game, "deal", "R13", f"{what}: {told}")


def replay_file(path: str | os.PathLike[str]) -> Iterator[Replay | RecordError]:
    """Replay every record of a file in order; a broken one comes as its error.

    Raises RecordFileError where the file holds no record, OSError for no file.
    """
    matches = Matches()
    for game, record in enumerate(read_records(path), start=1):
        try:
            result = replay(record, game)
            matches.follow(record, game)
        except RecordError as error:
            yield error
        else:
            yield result


# --- following a game through the kernel ----------------------------------------------------------


class Follower:
    """Follows a game told card by card through the kernel, and fails where the rules say no."""

    def __init__(self, game: int, rules: str, players: int, decks: NDArray[np.void]) -> None:
        self.games = np.zeros(1, GAME)  # GAME [1]
        self.decks = decks  # DECK [1]
        self.players = players
        self.positive = "positive" in rules
        self.ended_by = ""
        self._check = _Check(game)
        record = self.game
        record["players"], record["rules"] = players, RULE_SETS.index(rules)
        record["seed"] = NO_SEED
        record["match_games"] = record["match_game"] = 1

    @property
    def game(self) -> np.void:
        return self.games[0]

    @property
    def over(self) -> bool:
        return bool(self.game["phase"] == OVER)

    def deal(self, draw_piles: Sequence[Sequence[int]], rows: Sequence[int]) -> None:
        """R2, R3: the cards, already checked, are laid out and the hands drawn."""
        laid = [number for pile in draw_piles for number in pile]
        self.game["piles"][: len(laid)] = laid
        self.game["rows"][:, 0] = rows
        _set_up(self.games, self.decks)

    @property
    def out(self) -> bool:
        """Has a seat neither hand nor draw pile left (R12, V2c)?"""
        return bool(_someone_is_out(self.games))

    def hand(self, seat: int) -> list[int]:
        size = int(self.game["hand_sizes"][seat])
        return [int(number) for number in self.game["hands"][seat, :size]]

    def play(self, played: Sequence[int], where: str, decisions: list[tuple[int, int]]) -> None:
        """R4: each seat plays a card of its hand, and all are revealed."""
        for seat, number in enumerate(played):
            hand = self.hand(seat)
            if number not in hand:
                problem = f"seat {seat} plays {short(number)}, its hand is {listed(hand)}"
                self._check.fail(where, "R4", problem)
            if len(hand) > 1:
                decisions.append((seat, hand.index(number)))
            self.game["picks"][seat] = number
        _tick(self.games, self.decks)

    def put(
        self, placement: tuple[int, int, int | None, list[int]], where: str, decisions: list[Any]
    ) -> None:
        """R5-R10, V1, V2b: the next card is placed, or goes under its owner's pile."""
        fail = self._check.fail
        seat, number, row, taken = placement
        game = self.game
        placed = int(game["placed"])
        if placed == self.players:
            fail(where, "R5", f"card {short(number)} is placed after all revealed cards")
        due, owner = int(game["revealed"][placed]), int(game["revealed_by"][placed])
        if (seat, number) != (owner, due):
            problem = f"card {short(number)} of seat {short(seat)} is placed"
            fail(where, "R5", f"{problem}; it is the turn of card {due} of seat {owner}")
        legal = _set(_legal_rows(self.games, self.decks, number))
        if not legal:
            if row is not None:
                fail(
                    where,
                    "V2b",
                    f"card {number} fits no row and goes under the pile, not to row {short(row)}",
                )
            if taken:
                fail(where, "V2b", f"card {number} goes under the pile and takes nothing")
            _put_under_pile(self.games)
            return
        fits = bool(_matching_rows(self.games, self.decks, number))
        if row not in legal:
            to = "under the pile" if row is None else f"to row {short(row)}"
            clause = ("V2b" if row is None and self.positive else "R6") if fits else "R9"
            fail(where, clause, f"card {number} goes {to}; it may go to {_rows(legal)}")
        assert row is not None
        if len(legal) > 1:
            decisions.append((seat, FIRST_ROW + row))
        count = int(game["taken_count"])
        sixth = _length(self.games, row) == FULL_ROW and not game["rules"] & COLOR
        _place(self.games, self.decks, row)
        takes = [int(n) for n in game["taken"][count : int(game["taken_count"])]]
        if taken != takes:
            if not fits:
                clause = "R9"
            elif game["rules"] & COLOR:
                clause = "R8" if takes else "V1/R8"
            else:
                clause = "R7" if sixth else "R8" if takes else "R7/R8"
            does = f"takes {listed(takes)}" if takes else "takes nothing"
            problem = f"card {number} on row {row} {does}, not {listed(taken) or 'nothing'}"
            fail(where, clause, problem)

    def reveal(self, played: Sequence[int], where: str) -> None:
        """R4 for one who did not see the hands: a card comes out of what is not known of them."""
        game = self.game
        for seat, number in enumerate(played):
            if not 1 <= number <= NUMBERS:
                self._check.fail(where, "R4", f"there is no card {short(number)}")
            hand = self.hand(seat)
            known = number in hand
            if not known and (is_seen(game, number) or NO_CARD not in hand):
                self._check.fail(where, "R4", f"seat {seat} cannot have card {number} in hand")
            hand.remove(number if known else NO_CARD)
            game["hands"][seat] = NO_CARD
            game["hands"][seat, : len(hand)] = hand
            game["hand_sizes"][seat] = len(hand)
            game["picks"][seat] = NO_CARD
            _see(self.games, number)
        order = sorted(range(self.players), key=lambda seat: played[seat])
        game["revealed"][: self.players] = [played[seat] for seat in order]
        game["revealed_by"][: self.players] = order
        game["phase"] = ROW_PHASE

    def draw(self) -> None:
        """R11, V2e after a round of a game that goes on, whatever the hidden cards are."""
        _start_round(self.games)

    def check_placed(self, where: str) -> None:
        """R5: are all revealed cards placed?"""
        placed = int(self.game["placed"])
        if placed < self.players:
            left = [int(number) for number in self.game["revealed"][placed : self.players]]
            self._check.fail(where, "R5", f"{listed(left)} revealed and not placed")

    def end_round(self, where: str) -> None:
        """R11, R12, V2c, V2e, V2f: all cards are placed; the game ends or goes on."""
        self.check_placed(where)
        _tick(self.games, self.decks)
        if self.over:
            self.ended_by = ("V2c" if self.out else "V2f") if self.positive else "R12"


class _Check:
    """Raises the errors of one game."""

    def __init__(self, game: int) -> None:
        self.game = game

    def fail(self, where: str, clause: str, problem: str) -> None:
        raise RecordError(self.game, where, clause, problem)


@functools.lru_cache(maxsize=64)
def kernel_deck(heads: tuple[tuple[int, ...], ...]) -> NDArray[np.void]:
    """DECK [1], read-only, of head counts [110][6]. Raises DeckError."""
    deck = deck_record(cards.load_deck(np.array(heads, np.int64)))
    deck.flags.writeable = False
    return deck


class Reader:
    """Reads values of the format's types; `fail(where, clause, problem)` must raise."""

    def __init__(self, players: int, fail: Callable[[str, str, str], None]) -> None:
        self.players = players
        self.fail = fail

    def round(
        self, told: Any, where: str
    ) -> tuple[list[int], list[tuple[int, int, int | None, list[int]]]]:
        told = self._dict(told, where, "the round")
        for key in ("cards", "placements"):
            if key not in told:
                self.fail(where, "format", f"no {key!r}")
        played = self._ints(told["cards"], where, "cards")
        if len(played) != self.players:
            self.fail(where, "R4", f"{len(played)} cards of {self.players} players")
        return played, [
            self._placement(placement, where)
            for placement in self._list(told["placements"], where, "placements")
        ]

    def _placement(self, told: Any, where: str) -> tuple[int, int, int | None, list[int]]:
        if not isinstance(told, list) or len(told) != 4:
            problem = f"placement {short(told)}; should be [seat, number, row or null, [taken]]"
            self.fail(where, "format", problem)
        seat, number, row, taken = told
        self._ints([seat, number] if row is None else [seat, number, row], where, "placement")
        return seat, number, row, self._ints(taken, where, "cards taken")

    def _dict(self, value: Any, where: str, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(where, "format", f"{what} is {short(value)}; should be an object")
        return value

    def _list(self, value: Any, where: str, what: str) -> list[Any]:
        if not isinstance(value, list):
            self.fail(where, "format", f"{what}: {short(value)}; should be a list")
        return value

    def _ints(self, value: Any, where: str, what: str) -> list[int]:
        for entry in self._list(value, where, what):
            if not is_int(entry):
                self.fail(where, "format", f"{what}: {short(entry)}; should be an integer")
        return value

    def _int(self, value: Any, where: str, clause: str, what: str, low: int, high: int) -> int:
        if not is_int(value):
            self.fail(where, "format", f"{what}: {short(value)}; should be an integer")
        if not low <= value <= high:
            problem = f"{what}: {short(value)}; should be {low} to {high}"
            self.fail(where, clause, problem)
        return int(value)


class _Told(Reader):
    """What a record tells, with every type and range checked before anything is followed."""

    def __init__(self, record: Any, check: _Check) -> None:
        super().__init__(0, check.fail)
        record = self._dict(record, "record", "the record")
        if record.get("format") != FORMAT:
            check.fail("record", "format", f'no "format": "{FORMAT}"')
        keys = ("rules", "deck", "players", "seed", "match", "draw_piles", "rows", "rounds")
        for key in (*keys, "scores", "winners"):
            if key not in record:
                check.fail("record", "format", f"no {key!r}")
        self.rules = record["rules"]
        if not isinstance(self.rules, str) or self.rules not in RULE_SETS:
            known = ", ".join(RULE_SETS)
            check.fail("deal", "format", f"rules {short(self.rules)}; should be one of {known}")
        self.players = self._int(
            record["players"], "deal", "R2", "players", MIN_PLAYERS, MAX_PLAYERS
        )
        self.decks = self._deck(record["deck"])
        self._deal(record["draw_piles"], record["rows"])
        self._seed(record["seed"])
        self._match(record["match"])
        self.rounds = [
            self.round(told, f"round {number}")
            for number, told in enumerate(self._list(record["rounds"], "record", "rounds"), start=1)
        ]
        self.scores = self._ints(record["scores"], "end", "scores")
        self.winners = self._ints(record["winners"], "end", "winners")

    def _deck(self, deck: Any) -> NDArray[np.void]:
        deck = self._dict(deck, "deal", "deck")
        if not isinstance(deck.get("name"), str):
            self.fail("deal", "format", f"deck name {short(deck.get('name'))}; should be a text")
        told = self._list(deck.get("cards"), "deal", "deck cards")
        if len(told) != NUMBERS:
            self.fail("deal", "R1", f"the deck has {len(told)} cards; should be {NUMBERS}")
        for number, card in enumerate(told, start=1):
            heads = self._ints(card, "deal", f"deck card {number}")
            if len(heads) != len(COLORS) or not all(0 <= n <= cards.MAX_HEADS for n in heads):
                problem = f"deck card {number} is {short(card)}; should be six head counts"
                self.fail("deal", "R1", f"{problem} of 0 to {cards.MAX_HEADS}")
        try:
            return kernel_deck(tuple(map(tuple, told)))
        except cards.DeckError as error:
            self.fail("deal", "R1", str(error))
            raise AssertionError from error

    def _deal(self, draw_piles: Any, rows: Any) -> None:
        self.draw_piles = [
            self._ints(pile, "deal", f"draw pile {seat}")
            for seat, pile in enumerate(self._list(draw_piles, "deal", "draw_piles"))
        ]
        self.rows = self._ints(rows, "deal", "rows")
        each = int(CARDS_DEALT[self.players])
        if [len(pile) for pile in self.draw_piles] != [each] * self.players:
            sizes = listed([len(pile) for pile in self.draw_piles])
            problem = f"draw piles of {sizes} cards; should be {self.players} of {each}"
            self.fail("deal", "R2", problem)
        if len(self.rows) != ROWS:
            self.fail("deal", "R3", f"{len(self.rows)} cards start the rows; should be {ROWS}")
        seen: set[int] = set()
        for number in [n for pile in [*self.draw_piles, self.rows] for n in pile]:
            if not 1 <= number <= NUMBERS:
                self.fail(
                    "deal", "R1", f"there is no card {short(number)}; cards are 1 to {NUMBERS}"
                )
            if number in seen:
                self.fail("deal", "R1", f"card {number} is dealt twice")
            seen.add(number)

    def _seed(self, seed: Any) -> None:
        if seed is None:
            return
        seed = self._int(seed, "deal", "seed", "seed", 0, MAX_SEED)
        if deal_of(seed, self.players) != (self.draw_piles, self.rows):
            self.fail(
                "deal", "seed", f"seed {seed} does not give this deal to {self.players} players"
            )

    def _match(self, match: Any) -> None:
        match = self._dict(match, "deal", "match")
        for key in ("id", "game", "of", "points_before"):
            if key not in match:
                self.fail("deal", "format", f"match has no {key!r}")
        if match["id"] is not None and not isinstance(match["id"], str):
            problem = f"match id {short(match['id'])}; should be a text or null"
            self.fail("deal", "format", problem)
        of = self._int(match["of"], "deal", "R13", "games of the match", 1, MAX_GAMES)
        game = self._int(match["game"], "deal", "R13", "game of the match", 1, of)
        points = self._ints(match["points_before"], "deal", "match points_before")
        if len(points) != self.players:
            problem = f"points before the game for {len(points)} of {self.players} seats"
            self.fail("deal", "R13", problem)
        if game == 1 and any(points):
            self.fail("deal", "R13", f"points {short(points)} before the first game; should be 0")


def deal_of(seed: int, players: int) -> tuple[list[list[int]], list[int]]:
    """The draw piles [P], first drawn first, and the five row cards that a seed gives (R2, R3)."""
    games = np.zeros(1, GAME)
    games["seed"], games["players"] = seed, players
    _shuffle(games)
    laid = games["piles"][0, : players * int(CARDS_DEALT[players])]
    return laid.reshape(players, -1).tolist(), games["rows"][0, :, 0].tolist()


# --- the course as text ---------------------------------------------------------------------------


def course(record: dict[str, Any], ended_by: str = "") -> str:
    """A record that has passed `replay` as text to read."""
    deck, players, match = record["deck"]["cards"], record["players"], record["match"]
    positive = "positive" in record["rules"]

    def show(numbers: Iterable[int]) -> str:
        return ", ".join(cards.card_text(number, deck[number - 1]) for number in numbers)

    seed = "deal set by hand" if record["seed"] is None else f"seed {record['seed']}"
    lines = [f"{record['rules']}, {players} players, deck {record['deck']['name']}, {seed}"]
    if match["of"] > 1 or match["id"] is not None:
        name = "" if match["id"] is None else f" {match['id']}"
        lines.append(f"match{name}, game {match['game']} of {match['of']}")
    if match["game"] > 1:
        lines.append(f"points before: {listed(match['points_before'])}")
    lines.append("")
    for seat, pile in enumerate(record["draw_piles"]):
        lines.append(f"seat {seat}  {show(pile)}")
    rows = [[number] for number in record["rows"]]
    points = [0] * players
    for index, told in enumerate(record["rounds"], start=1):
        lines.append("")
        lines += [f"row {row}   {show(numbers)}" for row, numbers in enumerate(rows)]
        lines.append(f"round {index}")
        for seat, number, row, taken in told["placements"]:
            line = f"  seat {seat}  {show([number])}"
            if row is None:
                lines.append(f"{line} fits no row and goes under the draw pile")
                continue
            lines.append(f"{line} to row {row}")
            if taken:
                heads = sum(sum(deck[n - 1]) for n in taken)
                points[seat] += heads
                lines[-1] += f", takes {show(taken)}: {_points(heads)}"
                rows[row] = []
            rows[row].append(number)
    lines.append("")
    lines += [f"row {row}   {show(numbers)}" for row, numbers in enumerate(rows)]
    lines.append(
        f"over{f' ({ended_by})' if ended_by else ''}, {'most' if positive else 'fewest'} points win"
    )
    for seat, score in enumerate(record["scores"]):
        left = f" ({points[seat]} taken, {points[seat] - score} left)" if positive else ""
        wins = ", wins" if seat in record["winners"] else ""
        lines.append(f"seat {seat}  {_points(score)}{left}{wins}")
    return "\n".join(lines)


def _points(points: int) -> str:
    return f"{points} point{'' if abs(points) == 1 else 's'}"


def _set(rows: int) -> list[int]:
    return [row for row in range(ROWS) if int(rows) >> row & 1]


def _rows(rows: list[int]) -> str:
    return f"row{'s' if len(rows) > 1 else ''} {listed(rows)}"


def listed(numbers: Iterable[int]) -> str:
    return " ".join(short(number) for number in numbers)


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


assert NO_CARD == 0 and POSITIVE == 2  # zeroed records are blank
