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

import dataclasses
import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import cards, scoring
from oxx_env.game.cards import NUMBERS
from oxx_env.game.replay import (
    ALL_SEATS,
    Deal,
    DealError,
    Event,
    FinishedGame,
    Replay,
    Rounds,
    Start,
)
from oxx_env.game.rules import (
    CARD_PHASE,
    FIRST_ROW,
    MAX_PLAYERS,
    MIN_PLAYERS,
    NO_CARD,
    NO_SEED,
    RULE_SETS,
    counts_victory_points,
    deck_cards,
    deck_record,
)
from oxx_env.game.table import MAX_SEED, Table, as_integer
from oxx_env.game.validation import MAX_GAMES, MOST_MATCH_POINTS
from oxx_env.game.views import hide_piles
from oxx_env.lib.files import open_atomic, open_regular
from oxx_env.lib.texts import counted, short
from oxx_env.notation.wording import heads_on, taking_clause

FORMAT = "oxx-game/1"
MAX_LINE = 1 << 20  # bytes of one record; real ones have up to 12,000

Placement = tuple[int, int, int | None, list[int]]  # seat, number, row or None, numbers taken

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
    number = 0
    with open_atomic(path, private=private) as file:
        for record in records:
            write_record(file, record)
            number += 1
    return number


def read_records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of a file (`-`: stdin) one by one, unchecked; `replay` checks them.

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
    empty, number = True, 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        where = f"{name}, line {number}"
        if len(line) > MAX_LINE:
            raise RecordFileError(f"{where} is longer than {MAX_LINE:,} bytes and no record")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield parse_record(line, where)
            empty = False
    if empty:
        raise RecordFileError(f"{name} is empty; a record is one JSON object a line")


def parse_record(line: str | bytes, where: str = "record") -> dict[str, Any]:
    """The record in a line of JSON. Raises RecordFileError if it is none."""
    try:
        text = line if isinstance(line, str) else line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordFileError(f"{where}: byte {error.start + 1} is not UTF-8") from None
    try:
        record = json.loads(text, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        if text.lstrip().startswith("{") and not text.rstrip().endswith("}"):
            raise RecordFileError(f"{where} breaks off in the middle of a record") from None
        raise RecordFileError(f"{where}, column {error.colno}: no JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # a number too long, nesting too deep
        raise RecordFileError(f"{where}: no record ({error})") from None
    if not isinstance(record, dict):
        raise RecordFileError(f"{where} is no JSON object; a record is one object a line")
    if record.get("format") != FORMAT:
        has = short(record["format"]) if "format" in record else "no format"
        raise RecordFileError(f'{where} has {has}; a record has "format": "{FORMAT}"')
    return record


def no_constant(name: str) -> None:
    """For `json.loads`: NaN and infinities are refused."""
    raise ValueError(f"{name} is no number")


# --- records --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Record:
    """A finished game that the rules allow.

    rules, players, seed, rounds, scores, winners   as in the format
    deck         the deck's name
    decks        DECK [1]
    match        `{"id", "game", "of", "points_before"}`
    deal         draw piles and rows
    ended_by     the clause that ended the game: `R12`, `V2c` or `V2f`
    decisions    (seat, action) of every choice made, forced plays left out, as `Table.act` takes it
    """

    rules: str
    deck: str
    decks: NDArray[np.void] = field(repr=False)
    players: int
    seed: int | None
    match: dict[str, Any]
    deal: Deal = field(repr=False)
    rounds: Rounds = field(repr=False)
    scores: list[int]
    winners: list[int]
    ended_by: str
    decisions: list[tuple[int, int]] = field(repr=False)

    @classmethod
    def of(
        cls, game: FinishedGame, decks: NDArray[np.void], deck: str, match_id: str | None = None
    ) -> Record:
        """The record of a game that has been gone through by a `Replay`."""
        end, players = game.games[0], int(game.games[0]["players"])
        if game.deal is None:
            raise ValueError(
                "the first game of this match started in mid-game: it has no record, which would "
                "need its deal; history() gives its rounds"
            )
        rules, points = RULE_SETS[end["rules"]], end["points"][:players].astype(np.int64)
        return cls(
            rules=rules,
            deck=deck,
            decks=decks,
            players=players,
            seed=None if end["seed"] == NO_SEED else int(end["seed"]),
            match={
                "id": match_id,
                "game": int(end["match_game"]),
                "of": int(end["match_games"]),
                "points_before": end["match_points"][:players].tolist(),
            },
            deal=game.deal,
            rounds=game.rounds,
            scores=points.tolist(),
            winners=scoring.winners(points, rules),
            ended_by=game.ended_by,
            decisions=game.decisions,
        )

    @classmethod
    def from_dict(cls, data: Any, game: int = 1) -> Record:
        """Check a record by following it through the kernel.

        Raises RecordError at the first thing that is wrong; `game` is its number in the file, for
        the message. Keys that the format does not know are ignored.
        """
        return _RecordReader(game).read(data)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON."""
        return {
            "format": FORMAT,
            "rules": self.rules,
            "deck": {"name": self.deck, "cards": deck_cards(self.decks[0])},
            "players": self.players,
            "seed": self.seed,
            "match": self.match,
            "draw_piles": self.deal.draw_piles,
            "rows": self.deal.rows,
            "rounds": self.rounds,
            "scores": self.scores,
            "winners": self.winners,
        }

    def replay(self) -> Replay:
        """A replay that stands at the deal; `decisions` lead it to the end."""
        match = self.match["game"], self.match["of"]
        before = self.match["points_before"]
        return Replay.of_deal(self.rules, self.decks, self.deal, self.deck, match, before)

    def summary(self) -> dict[str, Any]:
        """The game in short, as plain JSON."""
        return {
            "rules": self.rules,
            "players": self.players,
            "deck": self.deck,
            "seed": self.seed,
            "match": self.match,
            "rounds": len(self.rounds),
            "decisions": len(self.decisions),
            "ended_by": self.ended_by,
            "scores": self.scores,
            "winners": self.winners,
        }

    def course(self) -> str:
        """The whole game as text to read: every card with its heads as letters."""
        return course(self.to_dict(), self.ended_by)

    def check_follows(self, before: Record, game: int) -> None:
        """Raise RecordError unless this game can come after `before` in their match (R13)."""
        match, of = self.match, before.match["of"]
        what = f"match {match['id']}, game {match['game']} of {match['of']}"
        for name, now, then in (
            ("players", self.players, before.players),
            ("rules", self.rules, before.rules),
            ("games", match["of"], of),
        ):
            if now != then:
                raise RecordError(game, "deal", "R13", f"{what}: {name} were {then}, not {now}")
        points = [
            old + new
            for old, new in zip(before.match["points_before"], before.scores, strict=True)
        ]
        if match["points_before"] != points:
            problem = f"points before it {match['points_before']}, they add up to {points}"
            raise RecordError(game, "deal", "R13", f"{what}: {problem}")


def records_of(table: Table, match_id: str | None = None) -> list[dict[str, Any]]:
    """The finished games of a table's match as records (`oxx-game/1`).

    Raises ValueError if one of them started in mid-game: a record needs the deal.
    """
    ended = [what[0] for kind, *what in table.replay().events if kind == "end"]
    return [Record.of(game, table.decks, table.deck, match_id).to_dict() for game in ended]


def events_of(table: Table) -> list[Event]:
    """All that everybody saw at a table, in order: the events of `game.replay`, but at the end of a
    game its record.

    The record holds the draw piles, which players may see only when the match is over.
    """
    return [
        (kind, Record.of(what[0], table.decks, table.deck).to_dict())
        if kind == "end"
        else (kind, *what)
        for kind, *what in table.replay().events
    ]


def play_match(table: Table, bots: Sequence[Any], rngs: Sequence[np.random.Generator]) -> None:
    """Let bots [P] (`oxx_env.bots.make`) play a dealt table to the end of its match.

    Seat by seat as the seats decide; each bot draws from its own generator of `rngs` [P].
    """
    while deciders := table.deciders():
        for seat, view in [(seat, table.view(seat)) for seat in deciders]:
            action = bots[seat].act(view, rngs[seat])
            number = as_integer(action)
            table.act(seat, action if number is None else number)


def replay(record: dict[str, Any], game: int = 1) -> Record:
    """Check a record: `Record.from_dict`."""
    return Record.from_dict(record, game)


def start_at(record: dict[str, Any], rounds: int) -> Start:
    """Where a table starts (`Table.start`) to go on from a record after so many finished rounds.

    All hands are as recorded; draw piles and box are left blank, but for the cards that were put
    under a pile (`positive`). 0 rounds: the deal. Raises RecordError for a bad
    record, ValueError for a number of rounds after which its game does not go on.
    """
    checked = Record.from_dict(record)
    if not is_int(rounds) or not 0 <= rounds < len(checked.rounds):
        raise ValueError(
            f"round {short(rounds)}: should be 0 (the deal) to {len(checked.rounds) - 1}, the "
            "rounds of the record that are finished at the start"
        )
    at = checked.replay()
    for _ in at.steps(checked.decisions):
        if at.game["round"] == rounds and at.game["phase"] == CARD_PHASE:
            break
    hide_piles(at.games)
    return Start(at.games, at.decks, ALL_SEATS, at.deck, at.history())


def replay_file(path: str | os.PathLike[str]) -> Iterator[Record | RecordError]:
    """Replay every record of a file in order; a broken one comes as its error. The games of a match
    must fit together (R13), where the file holds one after the other.

    Raises RecordFileError where the file holds no record, OSError for no file.
    """
    last: dict[str, Record] = {}  # of each match that goes on
    over: Record | None = None  # the last game that ended a match
    for game, data in enumerate(read_records(path), start=1):
        try:
            record = Record.from_dict(data, game)
            match = record.match
            before = last.pop(match["id"], None)
            if before is None and over and over.match["id"] == match["id"]:
                before = over
            if match["game"] < match["of"]:
                last[match["id"]] = record
            else:
                over = record
            if match["id"] is not None and before and match["game"] == before.match["game"] + 1:
                record.check_follows(before, game)
        except RecordError as error:
            yield error
        else:
            yield record


# --- checking -------------------------------------------------------------------------------------


def kernel_deck(deck: cards.DeckSpec | list[Any]) -> NDArray[np.void]:
    """DECK [1], read-only, of a deck spec or of head counts [110][6] as in JSON. Raises
    DeckError."""
    return _kernel_deck(cards.load_deck(deck).tobytes())


@functools.lru_cache(maxsize=64)
def _kernel_deck(heads: bytes) -> NDArray[np.void]:
    deck = deck_record(np.frombuffer(heads, np.uint8).reshape(NUMBERS, -1))
    deck.flags.writeable = False
    return deck


class Reader:
    """Reads parts of a record and compares them with what the rules allow.

    fail  called with where (`round 3`), clause and problem; it must raise
    """

    def __init__(self, players: int, fail: Callable[[str, str, str], None]) -> None:
        self.players = players
        self.fail = fail

    # --- types ---

    def round(self, data: Any, where: str) -> tuple[list[int], list[Placement]]:
        """The cards and placements of a round."""
        data = self.as_dict(data, where, "the round", ("cards", "placements"))
        played = self.as_ints(data["cards"], where, "cards")
        if len(played) != self.players:
            self.fail(where, "R4", f"{len(played)} cards of {self.players} players")
        return played, [
            self._placement(placement, where)
            for placement in self.as_list(data["placements"], where, "placements")
        ]

    def _placement(self, data: Any, where: str) -> Placement:
        if not isinstance(data, list) or len(data) != 4:
            problem = f"placement {short(data)}; should be [seat, number, row or null, [taken]]"
            self.fail(where, "format", problem)
        seat, number, row, taken = data
        self.as_ints([seat, number] if row is None else [seat, number, row], where, "placement")
        return seat, number, row, self.as_ints(taken, where, "cards taken")

    def as_dict(
        self, value: Any, where: str, what: str, keys: Sequence[str] = ()
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(where, "format", f"{what} is {short(value)}; should be an object")
        for key in keys:
            if key not in value:
                self.fail(where, "format", f"{what} has no {key!r}")
        return value

    def as_list(self, value: Any, where: str, what: str) -> list[Any]:
        if not isinstance(value, list):
            self.fail(where, "format", f"{what}: {short(value)}; should be a list")
        return value

    def as_ints(self, value: Any, where: str, what: str) -> list[int]:
        for entry in self.as_list(value, where, what):
            if not is_int(entry):
                self.fail(where, "format", f"{what}: {short(entry)}; should be an integer")
        return value

    def as_int(self, value: Any, where: str, clause: str, what: str, low: int, high: int) -> int:
        if not is_int(value):
            self.fail(where, "format", f"{what}: {short(value)}; should be an integer")
        if not low <= value <= high:
            problem = f"{what}: {short(value)}; should be {low} to {high}"
            self.fail(where, clause, problem)
        return int(value)

    # --- the rules ---

    def follow(
        self, replay: Replay, played: Sequence[int], placements: Sequence[Placement], where: str
    ) -> None:
        """R4-R10: go through the cards of a round and its placements so far."""
        for seat, number in enumerate(played):
            if not 1 <= number <= NUMBERS or not replay.can_play(seat, number):
                hand = replay.hand(seat)
                problem = f"seat {seat} plays {short(number)}, its hand is {listed(hand)}"
                if NO_CARD in hand:
                    problem = f"seat {seat} cannot have card {short(number)} in hand"
                self.fail(where, "R4", problem)
        replay.play(played)
        for placement in placements:
            self._follow_placement(replay, placement, where)

    def _follow_placement(self, replay: Replay, placement: Placement, where: str) -> None:
        """R5-R10, V1, V2b: the next card is placed, or goes under its owner's pile."""
        seat, number, row, taken = placement
        if (due := replay.due) is None:
            self.fail(where, "R5", f"card {short(number)} is placed after all revealed cards")
        elif (seat, number) != due:
            problem = f"card {short(number)} of seat {short(seat)} is placed"
            self.fail(where, "R5", f"{problem}; it is the turn of card {due[1]} of seat {due[0]}")
        legal = replay.legal_rows
        if not legal and row is not None:
            problem = f"fits no row and goes under the pile, not to row {short(row)}"
            self.fail(where, "V2b", f"card {number} {problem}")
        if not legal and taken:
            self.fail(where, "V2b", f"card {number} goes under the pile and takes nothing")
        if legal and row not in legal:
            to = "under the pile" if row is None else f"to row {short(row)}"
            clause = "R9"
            if replay.fits:
                clause = "V2b" if row is None and replay.positive else "R6"
            problem = f"may go to row{'s' if len(legal) > 1 else ''} {listed(legal)}"
            self.fail(where, clause, f"card {number} goes {to}; it {problem}")
        if row is not None and len(legal) > 1:
            replay.decide(seat, FIRST_ROW + row)
        else:
            replay.step()
        takes = replay.events[-1][1][3]
        if taken != takes:
            rules, deck = RULE_SETS[replay.game["rules"]], deck_cards(replay.decks[0])
            clause = "V1/R8" if rules.startswith("color") else "R7/R8"
            if takes:
                clause = taking_clause(number, takes, rules, deck)
            does = f"takes {listed(takes)}" if takes else "takes nothing"
            problem = f"card {number} on row {row} {does}, not {listed(taken) or 'nothing'}"
            self.fail(where, clause, problem)

    def check_placed(self, replay: Replay, where: str) -> None:
        """R5: are all revealed cards placed?"""
        if replay.due is not None:
            left = replay.game["revealed"][int(replay.game["placed"]) : self.players]
            self.fail(where, "R5", f"{listed(map(int, left))} revealed and not placed")


class _RecordReader(Reader):
    """Reads one record: first every type and range, then what the rules say."""

    def __init__(self, game: int) -> None:
        super().__init__(0, self._fail)
        self._game = game

    def _fail(self, where: str, clause: str, problem: str) -> None:
        raise RecordError(self._game, where, clause, problem)

    def read(self, data: Any) -> Record:
        keys = ("rules", "deck", "players", "seed", "match", "draw_piles", "rows", "rounds")
        data = self.as_dict(data, "record", "the record")
        if data.get("format") != FORMAT:
            self.fail("record", "format", f'no "format": "{FORMAT}"')
        self.as_dict(data, "record", "the record", (*keys, "scores", "winners"))
        rules = data["rules"]
        if not isinstance(rules, str) or rules not in RULE_SETS:
            known = ", ".join(RULE_SETS)
            self.fail("deal", "format", f"rules {short(rules)}; should be one of {known}")
        players = self.as_int(data["players"], "deal", "R2", "players", MIN_PLAYERS, MAX_PLAYERS)
        self.players = players
        deck, decks = self._read_deck(data["deck"])
        deal = self._read_deal(data["draw_piles"], data["rows"])
        seed = self._read_seed(data["seed"], deal)
        match = self._read_match(data["match"])
        rounds = [
            self.round(one, f"round {number}")
            for number, one in enumerate(self.as_list(data["rounds"], "record", "rounds"), start=1)
        ]
        scores = self.as_ints(data["scores"], "end", "scores")
        winners = self.as_ints(data["winners"], "end", "winners")
        replay = Replay.of_deal(rules, decks, deal, deck)
        record = self._go_through(replay, rounds)
        if scores != record.scores:
            clause = "V2d" if replay.positive else "R12"
            problem = f"scores {short(scores)}; the points are {record.scores}"
            self.fail("end", clause, problem)
        if winners != record.winners:
            clause = "V2d" if replay.positive else "R12"
            problem = f"winners {short(winners)}; the best points have {record.winners}"
            self.fail("end", clause, problem)
        return dataclasses.replace(record, seed=seed, match=match)

    def _go_through(
        self, replay: Replay, rounds: Sequence[tuple[list[int], list[Placement]]]
    ) -> Record:
        """Follow the rounds to the end of the game."""
        for number, (played, placements) in enumerate(rounds, start=1):
            where = f"round {number}"
            if replay.over:
                clause = replay.events[-1][1].ended_by
                self.fail(where, clause, f"the game was over after round {number - 1}")
            self.follow(replay, played, placements, where)
            self.check_placed(replay, where)
            replay.step()
        if not replay.over:
            clause = "V2c" if replay.positive else "R12"
            where = f"round {len(rounds) + 1}"
            self.fail(where, clause, "is missing: all still have cards to play")
        return Record.of(replay.events[-1][1], replay.decks, replay.deck)

    def _read_deck(self, deck: Any) -> tuple[str, NDArray[np.void]]:
        deck = self.as_dict(deck, "deal", "deck")
        name = deck.get("name")
        if not isinstance(name, str):
            self.fail("deal", "format", f"deck name {short(name)}; should be a text")
        try:
            return str(name), kernel_deck(self.as_list(deck.get("cards"), "deal", "deck cards"))
        except cards.DeckError as error:
            self.fail("deal", "R1", str(error))
            raise AssertionError from error

    def _read_deal(self, draw_piles: Any, rows: Any) -> Deal:
        draw_piles = [
            self.as_ints(pile, "deal", f"draw pile {seat}")
            for seat, pile in enumerate(self.as_list(draw_piles, "deal", "draw_piles"))
        ]
        rows = self.as_ints(rows, "deal", "rows")
        try:
            return Deal.checked(self.players, draw_piles, rows)
        except DealError as error:
            self.fail("deal", error.clause, str(error))
            raise AssertionError from error

    def _read_seed(self, seed: Any, deal: Deal) -> int | None:
        if seed is None:
            return None
        seed = self.as_int(seed, "deal", "seed", "seed", 0, MAX_SEED)
        if Deal.by_seed(seed, self.players) != deal:
            problem = f"seed {seed} does not give this deal to {self.players} players"
            self.fail("deal", "seed", problem)
        return int(seed)

    def _read_match(self, match: Any) -> dict[str, Any]:
        keys = ("id", "game", "of", "points_before")
        match = self.as_dict(match, "deal", "match", keys)
        if match["id"] is not None and not isinstance(match["id"], str):
            problem = f"match id {short(match['id'])}; should be a text or null"
            self.fail("deal", "format", problem)
        of = self.as_int(match["of"], "deal", "R13", "games of the match", 1, MAX_GAMES)
        game = self.as_int(match["game"], "deal", "R13", "game of the match", 1, of)
        points = self.as_ints(match["points_before"], "deal", "match points_before")
        if len(points) != self.players:
            problem = f"points before the game for {len(points)} of {self.players} seats"
            self.fail("deal", "R13", problem)
        if any(abs(before) > MOST_MATCH_POINTS for before in points):
            problem = f"points {short(points)} before the game are beyond {MOST_MATCH_POINTS:,}"
            self.fail("deal", "R13", problem)
        if game == 1 and any(points):
            self.fail("deal", "R13", f"points {short(points)} before the first game; should be 0")
        return {key: match[key] for key in keys}


# --- the course as text ---------------------------------------------------------------------------


def course(record: dict[str, Any], ended_by: str = "") -> str:
    """A record that has passed `replay` as text to read."""
    deck, players, match = record["deck"]["cards"], record["players"], record["match"]
    positive = counts_victory_points(record["rules"])

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
    for index, played in enumerate(record["rounds"], start=1):
        lines.append("")
        lines += [f"row {row}   {show(numbers)}" for row, numbers in enumerate(rows)]
        lines.append(f"round {index}")
        for seat, number, row, taken in played["placements"]:
            line = f"  seat {seat}  {show([number])}"
            if row is None:
                lines.append(f"{line} fits no row and goes under the draw pile")
                continue
            lines.append(f"{line} to row {row}")
            if taken:
                heads = heads_on(taken, deck)
                points[seat] += heads
                lines[-1] += f", takes {show(taken)}: {counted(heads, 'point')}"
                rows[row] = []
            rows[row].append(number)
    lines.append("")
    lines += [f"row {row}   {show(numbers)}" for row, numbers in enumerate(rows)]
    lines.append(
        f"over{f' ({ended_by})' if ended_by else ''}, {scoring.direction(record['rules'])}"
    )
    for seat, score in enumerate(record["scores"]):
        left = f" ({points[seat]} taken, {points[seat] - score} left)" if positive else ""
        wins = ", wins" if seat in record["winners"] else ""
        lines.append(f"seat {seat}  {counted(score, 'point')}{left}{wins}")
    return "\n".join(lines)


def listed(numbers: Iterable[int]) -> str:
    return " ".join(short(number) for number in numbers)


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
