"""A table's settings and seats, read from a request and checked value by value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oxx_env.game import cards
from oxx_env.game.rules import MAX_PLAYERS, MIN_PLAYERS, RULE_SETS
from oxx_env.notation import records
from oxx_env.web import names
from oxx_env.web.errors import RequestError
from oxx_env.web.levels import levels
from oxx_env.web.names import MAX_NAME

MAX_GAMES = 20  # of a match
_DECK_NAME = re.compile(r"[\w .()-]{1,40}")
_RANDOM_TEXT = re.compile(r"[\w-]{16,64}", re.ASCII)

Heads = tuple[tuple[int, ...], ...]  # head counts [110][6]


@dataclass
class Seat:
    """One place at the table. The fields are those of the table's file.

    kind    `human` or `bot`
    name    shown to everybody
    level   a bot's level
    token   hash of the token that holds a person's seat; empty while the seat is free
    here    does its person sit at the device on which the table was made?
    person  hash of the secret by which the person's browser is recognised at this table, or empty
    handed  how often the seat was freed or given away; each time its invitation changes
    former  hashes of earlier tokens of the seat
    back    the former token whose owner was away when the seat was freed: it works again until
            the seat is taken
    """

    kind: str
    name: str
    level: str = ""
    token: str = ""
    here: bool = False
    person: str = ""
    handed: int = 0
    former: list[str] = field(default_factory=list)
    back: str = ""

    @property
    def free(self) -> bool:
        return self.kind == "human" and not self.token

    @classmethod
    def from_file(cls, data: dict[str, Any]) -> Seat:
        """A seat of a table's file. Raises ValueError or TypeError for anything else."""
        seat, types = cls(**data), vars(cls("human", ""))
        wrong = [key for key, value in vars(seat).items() if type(value) is not type(types[key])]
        if wrong or seat.kind not in ("human", "bot"):
            raise ValueError(f"not a seat: {records.short(wrong or seat.kind)}")
        if not all(isinstance(token, str) for token in seat.former):
            raise ValueError("not a seat: its former tokens")
        return seat


@dataclass(frozen=True)
class Setup:
    """What a match is played with; `coach`: may people ask the coach during the match?"""

    rules: str
    deck_name: str
    deck: Heads
    games: int
    coach: bool

    @classmethod
    def from_request(cls, data: dict[str, Any]) -> Setup:
        """Raises RequestError."""
        rules = data.get("rules", "base")
        if not isinstance(rules, str) or rules not in RULE_SETS:
            raise RequestError(422, f"rules: should be one of {', '.join(RULE_SETS)}")
        games = data.get("games", 1)
        if not records.is_int(games) or not 1 <= games <= MAX_GAMES:
            raise RequestError(422, f"games: should be 1 to {MAX_GAMES}")
        name, deck = read_deck(data.get("deck", cards.DECK_NAMES[0]))
        return cls(rules, name, deck, games, read_flag(data, "coach", True))


def read_flag(data: dict[str, Any], key: str, default: bool = False, where: str = "") -> bool:
    """A bool of a request. Raises RequestError."""
    value = data.get(key, default)
    if not isinstance(value, bool):
        raise RequestError(422, f"{where}{key}: should be true or false")
    return value


def read_deck(deck: Any) -> tuple[str, Heads]:
    """Name and head counts of a deck: a shipped name, or `{"name", "cards"}`.

    No request can name a file of the server. Raises RequestError.
    """
    if isinstance(deck, str):
        if deck not in cards.DECK_NAMES:
            known = ", ".join(cards.DECK_NAMES)
            raise RequestError(422, f"deck: should be one of {known}, or a name and its cards")
        return deck, heads_of(cards.load_deck(deck))
    if not isinstance(deck, dict) or set(deck) != {"name", "cards"}:
        raise RequestError(422, 'deck: should be a shipped name or {"name", "cards"}')
    name = deck["name"]
    if not isinstance(name, str) or not _DECK_NAME.fullmatch(name) or name in cards.DECK_NAMES:
        raise RequestError(422, "deck: the name should be 1 to 40 letters, digits or spaces, and "
                           "not that of a shipped deck")  # fmt: skip
    return name, read_cards(deck["cards"])


def read_cards(heads: Any) -> Heads:
    """Head counts [110][6]. Raises RequestError with all that is wrong."""
    if not isinstance(heads, list):  # a text would name a file
        raise RequestError(422, "cards: should be a list of the heads of each card")
    try:
        return heads_of(cards.load_deck(heads))
    except cards.DeckError as error:
        raise RequestError(422, str(error)) from None


def heads_of(deck: cards.Deck) -> Heads:
    return tuple(map(tuple, deck.tolist()))


def read_name(name: Any) -> str:
    """A person's name as it is shown; empty if nothing of it is visible. Raises RequestError."""
    if name is None:
        return ""
    # Longer than a shown name may be: invisible characters are removed first.
    if not isinstance(name, str) or len(name) > 4 * MAX_NAME:
        raise RequestError(422, f"name: should be a text of at most {MAX_NAME} characters")
    try:
        return names.clean(name)
    except ValueError as error:
        raise RequestError(422, f"name: {error}") from None


def read_random_text(text: Any, key: str) -> str:
    """A secret that a browser has made. Raises RequestError."""
    if not isinstance(text, str) or not _RANDOM_TEXT.fullmatch(text):
        raise RequestError(422, f"{key}: should be 16 to 64 random letters, digits, - or _")
    return text


def read_person(data: dict[str, Any]) -> str:
    """The secret by which a browser is recognised, or empty. Raises RequestError."""
    person = data.get("person")
    return "" if person is None else read_random_text(person, "person")


def read_level(level: Any) -> str:
    """A level's name. Raises RequestError."""
    known = [one.name for one in levels()]
    if not isinstance(level, str) or level not in known:
        raise RequestError(422, f"level: should be one of {', '.join(known)}")
    return level


def read_seats(given: Any) -> list[Seat]:
    """The seats of a new table. Raises RequestError."""
    if not isinstance(given, list) or not MIN_PLAYERS <= len(given) <= MAX_PLAYERS:
        raise RequestError(422, f"seats: should be a list of {MIN_PLAYERS} to {MAX_PLAYERS} seats")
    seats = [_read_seat(seat, index) for index, seat in enumerate(given)]
    if not any(seat.kind == "human" for seat in seats):
        raise RequestError(422, "seats: at least one should be a person's")
    for index, seat in enumerate(seats):
        check_distinct(seat.name, seats[:index])
    for index, seat in enumerate(seats):
        seat.name = seat.name or default_name(seats, index)
    return seats


def _read_seat(seat: Any, index: int) -> Seat:
    if not isinstance(seat, dict) or seat.get("kind") not in ("human", "bot"):
        raise RequestError(422, f'seat {index}: its kind should be "human" or "bot"')
    human = seat["kind"] == "human"
    allowed = {"kind", "name", "here"} if human else {"kind", "level"}
    if unknown := sorted(set(seat) - allowed):
        raise RequestError(422, f"seat {index}: {records.short(unknown[0])} is not known")
    if human:
        here = read_flag(seat, "here", where=f"seat {index}: ")
        return Seat("human", read_name(seat.get("name")), here=here)
    return Seat("bot", "", read_level(seat.get("level")))


def check_distinct(name: str, others: Sequence[Seat]) -> None:
    """Raises RequestError for a name that people could mistake for that of another seat."""
    for seat in others:
        if name and seat.name and names.look_alike(name, seat.name):
            taken = f"name: {seat.name} is at this table already"
            alike = f", and {name} looks like it" if name != seat.name else ""
            raise RequestError(422, f"{taken}{alike}; choose another")


def default_name(seats: Sequence[Seat], index: int) -> str:
    """A name for a seat without one, unlike all others at the table."""
    seat = seats[index]
    name = f"Player {index + 1}"
    if seat.kind == "bot":
        name = next(level.title for level in levels() if level.name == seat.level)
    return names.distinct(name, [one.name for one in seats if one is not seat])
