"""Tables with seats: who sits where, whose token is whose, and the file that keeps it all.

A room is one match. Its file holds the setup, the seats (tokens as hashes only) and the decisions
made, from which the table is dealt and played again when the server comes back; finished games are
written as records besides. Nothing here knows of requests or threads: all is called from one.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oxx_env.game import cards
from oxx_env.game.rules import (
    CARD_PHASE,
    CARDS_DEALT,
    MAX_PLAYERS,
    MIN_PLAYERS,
    NO_CARD,
    ROWS,
    RULE_SETS,
    deck_cards,
)
from oxx_env.game.table import Table
from oxx_env.game.views import View
from oxx_env.lib.files import open_whole, read_json
from oxx_env.notation import records, wording
from oxx_env.show.render import DIRECTION
from oxx_env.show.terminal import tell_placement
from oxx_env.web import names, storage
from oxx_env.web.levels import levels
from oxx_env.web.names import MAX_NAME
from oxx_env.web.storage import Keeping, Kept

FORMAT = "oxx-table/2"
EARLIER = ("oxx-table/1",)
NOBODY = -1  # whose view shows what lies open
MAX_MATCH = 20  # games of a match at a web table
MAX_ROOMS = 2000  # kept in memory; more stay in their files
SECRET = 32  # bytes that a table's deals come from
AWAY = 45.0  # seconds without a request after which a person is shown as away: a poll lasts 20
GONE = 300.0  # seconds after which everybody at the table may give such a seat to a bot
MAX_DONE = 64  # requests of a table that are known again
MAX_FORMER = 8  # people who held a seat before and are told what became of it
_ID = re.compile(r"[a-z2-7]{16}")
_DECK_NAME = re.compile(r"[\w .()-]{1,40}")
_HELD = re.compile(r"[\w-]{16,64}", re.ASCII)


class Refused(Exception):
    """A request that cannot be met: the HTTP status that says so, a message for people, and in how
    many seconds it may be met (0: nobody knows); `more` is told besides."""

    def __init__(
        self, status: int, message: str, retry_s: int = 0, more: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_s, self.more = status, message, retry_s, more or {}


class EarlierFormat(Exception):
    """A file is of an earlier version, which dealt its tables in another way."""


class Key(NamedTuple):
    """By what a request that changes something is known again when it is sent twice.

    secret   what the sender chose, at random: it answers for the sender as a token does
    request  hash of what was asked
    """

    secret: str
    request: str

    @property
    def name(self) -> str:
        """What is kept of it."""
        return hash_of(self.secret)[:16]


@dataclass
class Seat:
    """One place at the table.

    kind   `human` or `bot`
    name   what it is called
    level  a bot's level
    here   sits a person at the device that made the table?
    token  hash of the secret that holds a person's seat; empty while nobody has taken it
    person hash of the secret by which the person's browser is known here; empty for none
    handed how often the seat has been freed or given away: each time it has a new invitation
    former hashes of tokens that held it before
    back   the one of them whose holder was away when the seat was freed: it is his until it is
           taken
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


@dataclass(frozen=True)
class Setup:
    """What a match is played with: rule set, deck, games, seats, and may people ask the coach."""

    rules: str
    deck_name: str
    deck: tuple[tuple[int, ...], ...]  # head counts [110][6]
    games: int
    coach: bool

    @classmethod
    def read(cls, told: dict[str, Any]) -> Setup:
        """From a request. Raises Refused."""
        rules = told.get("rules", "base")
        if not isinstance(rules, str) or rules not in RULE_SETS:
            raise Refused(422, f"rules: should be one of {', '.join(RULE_SETS)}")
        games = told.get("games", 1)
        if not records.is_int(games) or not 1 <= games <= MAX_MATCH:
            raise Refused(422, f"games: should be 1 to {MAX_MATCH}")
        coach = told.get("coach", True)
        if not isinstance(coach, bool):
            raise Refused(422, "coach: should be true or false")
        name, deck = read_deck(told.get("deck", cards.DECK_NAMES[0]))
        return cls(rules, name, deck, games, coach)


def read_deck(told: Any) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """Name and head counts of a deck in a request: a shipped name, or `{"name", "cards"}`.

    A path is never read: what lies on the server's disk is nobody's business. Raises Refused.
    """
    if isinstance(told, str):
        if told not in cards.DECK_NAMES:
            known = ", ".join(cards.DECK_NAMES)
            raise Refused(422, f"deck: should be one of {known}, or a name and its cards")
        return told, tuple(map(tuple, cards.load_deck(told).tolist()))
    if not isinstance(told, dict) or set(told) != {"name", "cards"}:
        raise Refused(422, 'deck: should be a shipped name or {"name", "cards"}')
    name = told["name"]
    if not isinstance(name, str) or not _DECK_NAME.fullmatch(name) or name in cards.DECK_NAMES:
        raise Refused(422, "deck: the name should be 1 to 40 letters, digits or spaces of its own")
    return name, read_cards(told["cards"])


def read_cards(told: Any) -> tuple[tuple[int, ...], ...]:
    """Head counts [110][6] from a request. Raises Refused with all that is wrong."""
    if not isinstance(told, list) or len(told) != cards.NUMBERS:
        raise Refused(422, f"cards: should be a list of {cards.NUMBERS} cards")
    for number, card in enumerate(told, start=1):
        six = isinstance(card, list) and len(card) == len(cards.COLORS)
        if not six or not all(records.is_int(n) and 0 <= n <= cards.MAX_HEADS for n in card):
            raise Refused(422, f"card {number}: should be six head counts of 0 to 7")
    try:
        return tuple(map(tuple, cards.load_deck(np.array(told, np.int64)).tolist()))
    except cards.DeckError as error:
        raise Refused(422, str(error)) from None


def read_name(told: Any) -> str:
    """A person's name from a request as it is shown; empty where nothing of it can be seen.

    Raises Refused.
    """
    if told is None:
        return ""
    if not isinstance(told, str) or len(told) > 4 * MAX_NAME:  # marks that are not seen count here
        raise Refused(422, f"name: should be a text of at most {MAX_NAME} characters")
    try:
        return names.clean(told)
    except ValueError as error:
        raise Refused(422, f"name: {error}") from None


def read_held(told: Any, what: str) -> str:
    """A secret that a browser has made. Raises Refused."""
    if not isinstance(told, str) or not _HELD.fullmatch(told):
        raise Refused(422, f"{what}: should be 16 to 64 letters, digits, - or _, drawn at random")
    return told


def read_level(told: Any) -> str:
    """A level's name from a request. Raises Refused."""
    known = [level.name for level in levels()]
    if not isinstance(told, str) or told not in known:
        raise Refused(422, f"level: should be one of {', '.join(known)}")
    return told


def read_seats(told: Any) -> list[Seat]:
    """The seats of a new table. Raises Refused."""
    if not isinstance(told, list) or not MIN_PLAYERS <= len(told) <= MAX_PLAYERS:
        raise Refused(422, f"seats: should be a list of {MIN_PLAYERS} to {MAX_PLAYERS} seats")
    seats: list[Seat] = []
    for index, seat in enumerate(told):
        if not isinstance(seat, dict) or seat.get("kind") not in ("human", "bot"):
            raise Refused(422, f'seat {index}: its kind should be "human" or "bot"')
        allowed = {"kind", "name", "here"} if seat["kind"] == "human" else {"kind", "level"}
        if unknown := sorted(set(seat) - allowed):
            raise Refused(422, f"seat {index}: {records.short(unknown[0])} is not known")
        if seat["kind"] == "human":
            here = seat.get("here", False)
            if not isinstance(here, bool):
                raise Refused(422, f"seat {index}: here should be true or false")
            seats.append(Seat("human", read_name(seat.get("name")), here=here))
        else:
            seats.append(Seat("bot", "", read_level(seat.get("level"))))
    if not any(seat.kind == "human" for seat in seats):
        raise Refused(422, "seats: at least one should be a person's")
    for index, seat in enumerate(seats):
        if seat.name:
            _check_distinct(seat.name, seats[:index])
    for index in range(len(seats)):
        seats[index].name = seats[index].name or _other_name(seats, index)
    return seats


def _check_distinct(name: str, others: list[Seat]) -> None:
    """Raises Refused for a name that could be taken for that of another seat."""
    for seat in others:
        if seat.name and names.look_alike(name, seat.name):
            told = f"name: {seat.name} is at this table already, and {name} looks like it"
            raise Refused(422, told if name != seat.name else
                          f"name: {name} is at this table already; choose another")  # fmt: skip


def _other_name(seats: list[Seat], index: int) -> str:
    """What a seat is called that nobody has given a name: like no other at the table."""
    seat = seats[index]
    others = [one.name for place, one in enumerate(seats) if place != index]
    if seat.kind == "human":
        return names.distinct(f"Player {index + 1}", others)
    title = next(one.title for one in levels() if one.name == seat.level)
    return names.distinct(title, others)


@dataclass(eq=False)
class Room:
    """One match with its seats.

    owner    the client that made it, for whom its bots think
    secret   32 bytes that all deals and all bots' chance come from, and that nobody is told
    changes  counts everything that changed; `saved` of them are kept in the file
    version  goes up each time that the seats are told of changes. It begins at the time in
             milliseconds: after a restart it is higher than all that a page knows from before
    made     hash of the request that made it
    done     the last requests that changed it: name of the key -> hash of what was asked
    news     set, and replaced by a new one, when they are told
    """

    id: str
    setup: Setup
    seats: list[Seat]
    secret: bytes = field(repr=False)
    created: float
    owner: str = ""
    made: str = ""
    done: dict[str, str] = field(default_factory=dict)
    changes: int = 0
    version: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    saved: int = -1
    writing: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    thinking: bool = False  # do the bots think?
    waiting: int = 0  # requests that wait for news
    trouble: str = ""  # what went wrong on the server's side, for people
    used: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.table = self.new_table()
        self.advice: dict[tuple[int, int], list[dict[str, Any]]] = {}  # (seat, turn) -> options
        self.reviews: dict[int, dict[int, dict[str, Any]]] = {}  # seat -> turn -> judgement
        self._coaching: dict[int, asyncio.Lock] = {}
        self._told: list[dict[str, Any]] = []  # events so far, each in the words of its time
        self.kept = 0  # finished games in the file of records
        self._told_at = self._asked_at = -1  # after how many changes
        self._deciders: list[int] = []
        self._seen = [time.monotonic()] * len(self.seats)  # when each seat's person last asked
        deck = {"name": self.setup.deck_name, "cards": self.setup.deck}
        self._deck_text = json.dumps(deck)

    def new_table(self) -> Table:
        """The table as it is dealt, before the first decision."""
        setup = self.setup
        shipped = setup.deck_name in cards.DECK_NAMES
        deck = setup.deck_name if shipped else np.array(setup.deck)
        table = Table(len(self.seats), setup.rules, deck, setup.games)
        table.deal_each(partial(secret_deal, self.secret, len(self.seats)))
        return table

    # --- seats ---

    def seat_of(self, token: str) -> int:
        """The seat that a token holds; a person who was away when it was freed has it again.

        Raises Refused 403, and 410 for one whose seat was given away.
        """
        told = hash_of(token)
        for index, seat in enumerate(self.seats):
            if seat.token and hmac.compare_digest(seat.token, told):
                return index
        for index, seat in enumerate(self.seats):
            if seat.free and seat.back and hmac.compare_digest(seat.back, told):
                seat.token, seat.back = told, ""
                self._seen[index] = time.monotonic()
                self.changed()
                return index
            if any(hmac.compare_digest(former, told) for former in seat.former):
                raise self._given_away(index)
        raise Refused(403, "this token holds no seat at this table")

    def _given_away(self, index: int) -> Refused:
        seat = self.seats[index]
        became = f"was given to {seat.name}"
        if seat.free:
            became = "was freed; the host has a new invitation to it"
        return Refused(410, f"your seat {became}; you may watch", more={"watch": self.watch})

    def _word(self, what: str) -> str:
        """A secret of this table that a link or a browser holds, the same again when asked so."""
        return base64.urlsafe_b64encode(_derive(self.secret, what)[:24]).decode()

    @property
    def watch(self) -> str:
        """The token of those who watch: it shows no hand and changes nothing."""
        return self._word("watch")

    def watches(self, token: str) -> bool:
        return hmac.compare_digest(hash_of(self.watch), hash_of(token))

    def invitation(self, index: int) -> str:
        """What brings one person to a free seat."""
        return self._word(f"invite {index} {self.seats[index].handed}")

    def token(self, index: int, handed: int, person: str) -> str:
        """What holds a seat for a person's browser, the same each time it is asked for."""
        return self._word(f"token {index} {handed} {person}")

    def known(self, person: str) -> str:
        """What is kept of a person at this table; at another one it is something else."""
        return _derive(self.secret, f"person {person}").hex()

    def take_seat(self, index: int, person: str, name: str = "") -> str:
        """A person sits down; the token that holds the seat from now on."""
        seat = self.seats[index]
        token = self.token(index, seat.handed, person)
        if name or seat.back:
            seat.name = name or _other_name(self.seats, index)
        seat.token, seat.person, seat.back = hash_of(token), self.known(person), ""
        self._seen[index] = time.monotonic()
        self.changed()
        return token

    def join(
        self, invite: str, name: str, person: str = "", another: bool = False
    ) -> tuple[int, str]:
        """The seat of an invitation, and its token. Raises Refused.

        A person (a secret of the browser) who holds a seat here is told that one, unless
        `another` says that somebody else at the same device sits down besides.
        """
        index, handed = self._invited(invite)
        person = person or secrets.token_urlsafe(24)
        known = self.known(person)
        own = [i for i, seat in enumerate(self.seats) if seat.token and seat.person == known]
        if index in own and self.seats[index].handed == handed:
            own = [index]
        if own and (not another or own == [index]):
            return own[0], self.token(own[0], self.seats[own[0]].handed, person)
        seat = self.seats[index]
        if seat.handed != handed or not seat.free:
            if hash_of(self.token(index, handed, person)) in seat.former:
                raise self._given_away(index)
            raise Refused(409, "this invitation has been used; each brings one person to a seat")
        if name:
            _check_distinct(name, [one for one in self.seats if one is not seat])
        return index, self.take_seat(index, person, name)

    def _invited(self, invite: str) -> tuple[int, int]:
        """Whose invitation it is or was: the seat, and how often that had been freed by then."""
        told = hash_of(invite)
        for index, seat in enumerate(self.seats):
            for handed in range(max(0, seat.handed - MAX_FORMER), seat.handed + 1):
                if hmac.compare_digest(hash_of(self._word(f"invite {index} {handed}")), told):
                    return index, handed
        raise Refused(403, "this invitation is not for this table")

    def give_to_bot(self, index: int, level: str) -> None:
        """A bot takes a seat and plays on."""
        self._hand_over(index, Seat("bot", "", level))

    def free_seat(self, index: int) -> None:
        """A seat is a person's, by a new invitation; one who was away gets it back until then."""
        seat = self.seats[index]
        if self.is_away(index):
            new = Seat("human", seat.name, person=seat.person, back=seat.token)
        else:
            new = Seat("human", "")
        self._hand_over(index, new)

    def _hand_over(self, index: int, new: Seat) -> None:
        old = self.seats[index]
        new.handed = old.handed + 1
        new.former = [*old.former, *([old.token] if old.token else [])][-MAX_FORMER:]
        self.seats[index] = new
        new.name = new.name or _other_name(self.seats, index)
        self._seen[index] = time.monotonic()
        self.changed()

    def check_change(self, viewer: int, index: int, leave: bool) -> None:
        """May the holder of a seat give another one, or their own, to a bot, or free it?

        Raises Refused.
        """
        if not 0 <= index < len(self.seats):
            raise Refused(422, f"seat: should be 0 to {len(self.seats) - 1}")
        if self.table.over:
            raise Refused(409, "the match is over; its seats stay as they are")
        if index == viewer and not leave:
            raise Refused(409, "this is your own seat; to leave it, say so by leave")
        if index != viewer and leave:
            raise Refused(422, "leave: should be true for your own seat alone")
        if not self.may_change(viewer, index):
            told = f"{self.seats[index].name} has this seat; the host may change that, others once"
            raise Refused(403, f"{told} a person has been away for {GONE / 60:.0f} minutes")

    def may_change(self, viewer: int, index: int) -> bool:
        gone = self.seats[index].kind == "human" and self._unseen_s(index) >= GONE
        return viewer == index or self.is_host(viewer) or gone

    def is_host(self, seat: int) -> bool:
        """Does the person who made the table sit there? If none such is left, the first person."""
        people = [i for i, one in enumerate(self.seats) if one.token]
        return seat in ([i for i in people if self.seats[i].here] or people[:1])

    def saw(self, seat: int) -> None:
        """A person has asked for something: those at the same device are here."""
        was_away = self.is_away(seat)
        person = self.seats[seat].person
        for index, one in enumerate(self.seats):
            if index == seat or (person and one.person == person):
                self._seen[index] = time.monotonic()
        if was_away:
            self.tell()

    def is_away(self, seat: int) -> bool:
        return bool(self.seats[seat].token) and self._unseen_s(seat) >= AWAY

    def _unseen_s(self, seat: int) -> float:
        return time.monotonic() - self._seen[seat]

    # --- requests sent twice ---

    def repeated(self, key: Key | None) -> bool:
        """Has this request been met before? Raises Refused 422 for the key of another one."""
        if key is None or key.name not in self.done:
            return False
        if self.done[key.name] != key.request:
            raise Refused(422, "Idempotency-Key: it was sent with another request before")
        return True

    def note(self, key: Key | None) -> None:
        """Know a request again that has been met."""
        if key is not None:
            self.done[key.name] = key.request
            while len(self.done) > MAX_DONE:
                del self.done[next(iter(self.done))]

    # --- playing ---

    @property
    def deciders(self) -> list[int]:
        """The seats that decide now."""
        if self._asked_at != self.changes:
            self._deciders, self._asked_at = self.table.deciders(), self.changes
        return self._deciders

    @property
    def thinkers(self) -> list[int]:
        """The bots' seats that decide now."""
        return [seat for seat in self.deciders if self.seats[seat].kind == "bot"]

    def turn(self, seat: int) -> int:
        """How many decisions the seat has made in this match."""
        return sum(who == seat for who, _ in self.table.decisions)

    def view(self, seat: int) -> View:
        """What a seat knows, for a bot or the coach in another thread: it looks into nothing that
        changes."""
        return View.of(self.table.games, self.table.decks, seat, self.setup.deck_name)

    def generator(self, seat: int, turn: int, *what: int) -> np.random.Generator:
        """Where a bot's or (`what`) the coach's chance comes from: again the same when asked so."""
        words = " ".join(map(str, ("chance", seat, turn, *what)))
        return np.random.default_rng(list(_derive(self.secret, words)))

    def move(self, seat: int, turn: int, action: int) -> None:
        """A person's decision. Raises Refused, and changes nothing, for one that is not due."""
        due = self.turn(seat)
        if turn < due:
            raise Refused(409, "this decision has been made already")
        if turn > due or seat not in self.deciders:
            raise Refused(409, "it is not your turn to decide")
        if action not in self.table.legal(seat):
            raise Refused(422, f"action {action} is not legal; legal: {self.table.legal(seat)}")
        self.act(seat, action)

    def act(self, seat: int, action: int) -> None:
        self.table.act(seat, action)
        self.changed()

    def changed(self) -> None:
        self.changes += 1
        self.used = time.monotonic()

    def tell(self) -> None:
        """Wake up everybody who waits for news."""
        self.version += 1
        news, self.news = self.news, asyncio.Event()
        news.set()

    @property
    def idle(self) -> bool:
        return not (self.thinking or self.waiting) and self.saved == self.changes

    def coaching(self, seat: int) -> asyncio.Lock:
        """Held while the coach works for a seat: who asks for the same meanwhile waits for it."""
        return self._coaching.setdefault(seat, asyncio.Lock())

    # --- telling ---

    @property
    def names(self) -> list[str]:
        return [seat.name for seat in self.seats]

    def events(self) -> list[dict[str, Any]]:
        """All that everybody saw, in order, as the page shows it."""
        if self._told_at == self.changes:
            return self._told
        self._told_at = self.changes
        for kind, *rest in wording.events(self.table)[len(self._told) :]:
            isolated = [names.ISOLATE.format(name) for name in self.names]
            told = event(kind, rest, isolated, self.setup.rules, self.setup.deck)
            self._told.append(told)
        return self._told

    def state(self, seat: int | None, since: int | None) -> dict[str, Any]:
        """What a seat's page needs; events from number `since` on, or those of the running game.

        Of cards it holds nothing but the seat's view and what lies open; without a seat, for those
        who watch, what lies open alone.
        """
        table, view = self.table, self.view(NOBODY if seat is None else seat)
        game, players = view.game, view.players
        events = self.events()
        deals = (i for i in range(len(events) - 1, -1, -1) if events[i]["kind"] == "deal")
        start = next(deals) if since is None or not 0 <= since <= len(events) else since
        over, deciders = table.over, self.deciders
        picked = NO_CARD if seat is None else int(game["picks"][seat])
        told: dict[str, Any] = {
            "id": self.id,
            "version": self.version,
            "seat": seat,
            "turn": 0 if seat is None else self.turn(seat),
            "rules": self.setup.rules,
            "direction": DIRECTION[self.setup.rules],
            "deck": self.setup.deck_name,
            "coach": self.setup.coach,
            "seats": [self._seat_told(index, seat) for index in range(len(self.seats))],
            "watch": self.watch,
            "trouble": self.trouble,
            "phase": view.phase,
            "waits_for": deciders,
            "hand": [] if seat is None else view.hand,
            "picked": picked if picked != NO_CARD else None,
            "legal": view.legal if seat in deciders else [],
            "card": view.card,
            "hand_sizes": game["hand_sizes"][:players].tolist(),
            "pile_sizes": game["pile_sizes"][:players].tolist(),
            "known_hand": view.known_hand,
            "returned": view.returned,
            "scores": view.scores,
            "round": int(game["round"]) + (view.phase != "over"),
            "match": {
                "game": int(game["match_game"]),
                "of": int(game["match_games"]),
                "points": table.scores(),
            },
            "over": over,
            "events_from": start,
            "events": events[start:],
        }
        invites = [one["invite"] for one in told["seats"] if "invite" in one]
        told["invite"] = invites[0] if invites else None
        if since is None:
            told["cards"] = self.setup.deck
        if over:
            told["ranks"], told["winners"] = table.ranks(), table.winners()
        return told

    def _seat_told(self, index: int, viewer: int | None) -> dict[str, Any]:
        seat = self.seats[index]
        told: dict[str, Any] = {
            "name": seat.name,
            "kind": seat.kind,
            "level": seat.level,
            "free": seat.free,
            "away": self.is_away(index),
        }
        if viewer is not None:
            told["may_change"] = self.may_change(viewer, index)
            if seat.free and self.is_host(viewer):
                told["invite"] = self.invitation(index)
        return told

    @property
    def played(self) -> bool:
        """Has a person decided anything?"""
        return any(self.seats[seat].kind == "human" for seat, _ in self.table.decisions)

    @property
    def finished(self) -> int:
        """How many games of the match are over."""
        game = self.table.game
        return int(game["match_game"]) - (not self.table.over)

    def records(self) -> list[dict[str, Any]]:
        """The finished games; their deals stay secret while the match goes on."""
        told = records.records_of(self.table, self.id if self.setup.games > 1 else None)
        return [{**one, "deck": {**one["deck"], "name": self.setup.deck_name}} for one in told]

    # --- keeping ---

    def to_text(self) -> str:
        """The room as its file holds it."""
        setup = self.setup
        told = {
            "format": FORMAT,
            # What `keeping` reads of a file comes first.
            "owner": self.owner,
            "played": self.played,
            "over": self.table.over,
            "id": self.id,
            "created": self.created,
            "rules": setup.rules,
            "games": setup.games,
            "coach": setup.coach,
            "secret": self.secret.hex(),
            "made": self.made,
            "done": list(self.done.items()),
            "seats": [vars(seat) for seat in self.seats],
            "decisions": self.table.decisions,
        }
        return f'{json.dumps(told)[:-1]}, "deck": {self._deck_text}}}'

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Room:
        """A room as its file tells it. Raises ValueError, KeyError, TypeError for what is none."""
        if told["format"] in EARLIER:
            raise EarlierFormat
        if told["format"] != FORMAT:
            raise ValueError(f"the format is not {FORMAT}")
        deck = tuple(map(tuple, cards.load_deck(told["deck"]["cards"]).tolist()))
        setup = Setup(told["rules"], told["deck"]["name"], deck, told["games"], told["coach"])
        seats = [_kept_seat(seat) for seat in told["seats"]]
        secret = bytes.fromhex(told["secret"])
        if len(secret) != SECRET:
            raise ValueError(f"the secret has not {SECRET} bytes")
        # Files of the first days of this format have neither of these.
        owner, made = str(told.get("owner", "")), str(told.get("made", ""))
        room = cls(told["id"], setup, seats, secret, told["created"], owner, made)
        room.done = dict(told.get("done", ()))
        for seat, action in told["decisions"]:
            room.table.act(seat, action)
        room.saved = room.changes
        return room


def _kept_seat(told: dict[str, Any]) -> Seat:
    """A seat as a file tells it. Raises ValueError, TypeError for what is none."""
    seat, usual = Seat(**told), Seat("human", "")
    odd = [key for key, value in vars(seat).items() if type(value) is not type(vars(usual)[key])]
    if odd or seat.kind not in ("human", "bot") or not all(isinstance(f, str) for f in seat.former):
        raise ValueError(f"a seat that is none: {records.short(odd or seat.kind)}")
    return seat


def event(kind: str, rest: list[Any], names: list[str], rules: str, deck: Any) -> dict[str, Any]:
    """An event of `wording.events` as JSON, with a sentence where one helps."""
    if kind == "deal":
        return {"kind": kind, "game": rest[0], "rows": rest[1]}
    if kind == "reveal":
        return {"kind": kind, "round": rest[0], "cards": rest[1]}
    if kind == "place":
        seat, number, row, took = rest[0]
        text = tell_placement(rest[0], names[seat], rules, deck)
        return {
            "kind": kind, "seat": seat, "number": number, "row": row, "taken": took, "text": text
        }  # fmt: skip
    record = rest[0]
    return {
        "kind": kind,
        "game": record["match"]["game"],
        "of": record["match"]["of"],
        "scores": record["scores"],
        "points_before": record["match"]["points_before"],
        "winners": record["winners"],
    }


class Rooms:
    """All rooms of a folder: those in use in memory, the others in their files (`keeping`)."""

    def __init__(
        self, folder: Path, seed: int | None = None, most: int = storage.MAX_BYTES
    ) -> None:
        self.folder = folder
        self.rooms: dict[str, Room] = {}
        self._seed, self._made = seed, 0
        self.keeping = Keeping(folder, most)

    def in_use(self) -> set[str]:
        """The rooms that must stay: somebody has asked for them within the hour, or waits."""
        hour_ago = time.monotonic() - 3600
        return {room.id for room in self.rooms.values() if room.used > hour_ago or not room.idle}

    def check_room(self, client: str) -> None:
        """Raises Refused when a client can make no table: it has many, or the folder is full."""
        own = self.keeping.owns(client)
        if own >= storage.MAX_OWN:
            raise Refused(429, f"this address has {own:,} tables here, and none is old enough to "
                          f"go; one whose match is over goes after {storage.OVER:g} day(s)",
                          3600)  # fmt: skip
        if self.keeping.full:
            raise Refused(503, f"this server keeps {len(self.keeping.tables):,} tables and games, "
                          f"{self.keeping.size / 1e6:,.0f} MB, and none is old enough to go; "
                          "some can be removed from its folder by hand")  # fmt: skip

    def new(
        self, told: dict[str, Any], owner: str = "", key: Key | None = None
    ) -> tuple[Room, dict[int, str]]:
        """A new table and the tokens of the seats that who made it holds: the first person's, and
        those of all who sit at the same device. The same one again for a request sent twice.

        Raises Refused.
        """
        known = {"rules", "deck", "games", "coach", "seats", "person"}
        if unknown := sorted(set(told) - known):
            raise Refused(422, f"{records.short(unknown[0])} is not known")
        setup, seats = Setup.read(told), read_seats(told.get("seats"))
        person = read_held(told["person"], "person") if told.get("person") is not None else ""
        person = person or (key.secret if key else secrets.token_urlsafe(24))
        # Who does not know the key cannot make another table of the same name.
        made_of = key.secret if key else secrets.token_urlsafe(24)
        name = _base32(hashlib.sha256(f"table {made_of}".encode()).digest()[:10])
        mine = [index for index, seat in enumerate(seats) if seat.kind == "human"]
        mine = [index for index in mine if index == mine[0] or seats[index].here]
        if key and (room := self._made_before(name, key)):
            return room, {index: room.token(index, 0, person) for index in mine}
        self.check_room(owner)
        self._make_room()
        self._made += 1
        secret = secrets.token_bytes(SECRET)
        if self._seed is not None:  # deals that can be foreseen
            secret = _derive(str(self._seed).encode(), f"table {self._made}")
        room = Room(name, setup, seats, secret, time.time(), owner, key.request if key else "")
        for index in mine:
            seats[index].here = True
        tokens = {index: room.take_seat(index, person) for index in mine}
        self.rooms[room.id] = room
        self.keeping.note(room.id, Kept(owner, False, False, time.time(), 0), None)
        return room, tokens

    def _made_before(self, name: str, key: Key) -> Room | None:
        """The table that this request has made already. Raises Refused for the key of another."""
        try:
            room = self.get(name)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None
        if not hmac.compare_digest(room.made, key.request):
            raise Refused(422, "Idempotency-Key: it was sent with another request before")
        return room

    def get(self, name: str) -> Room:
        """A room by its id. Raises Refused 404."""
        room = self.rooms.get(name)
        if room is None:
            if not _ID.fullmatch(name):
                raise Refused(404, "there is no such table")
            room = self._load(name)
            self._make_room()
            self.rooms[name] = room
        room.used = time.monotonic()
        return room

    def _load(self, name: str) -> Room:
        path = self.keeping.table(name)
        try:
            told = read_json(path, 1 << 24)
            if told["id"] != name:  # by its id a table is found, and written
                raise ValueError("it is the file of another table")
            return Room.from_dict(told)
        except FileNotFoundError:
            raise Refused(404, "there is no such table") from None
        except EarlierFormat:
            what = "this table was made by an earlier version of oxx serve and cannot be played on"
            raise Refused(410, f"{what}; its finished games are kept") from None
        # What is wrong may name a path or a hidden card: it is told to who runs the server alone.
        except OSError as error:
            self._tell(name, error)
            raise Refused(500, "this table's file cannot be read") from None
        except (ValueError, KeyError, TypeError, LookupError, AttributeError, ArithmeticError,
                RecursionError) as error:  # fmt: skip
            self._tell(name, error)
            raise Refused(500, "this table's file is damaged") from None

    @staticmethod
    def _tell(name: str, error: Exception) -> None:
        told = f"{type(error).__name__}: {error}"
        print(f"oxx serve: the file of table {name}: {told}", file=sys.stderr, flush=True)

    def _make_room(self) -> None:
        """Let go of rooms that nobody uses; their files stay. Raises Refused 503."""
        if len(self.rooms) < MAX_ROOMS:
            return
        idle = sorted((room for room in self.rooms.values() if room.idle), key=lambda r: r.used)
        if not idle:
            raise Refused(503, "too many tables are in play; try again later", 60)
        for room in idle[: MAX_ROOMS // 10]:
            del self.rooms[room.id]

    def gone(self, paths: list[Path]) -> None:
        """Files were removed: what was read from them is forgotten, and who runs the server is
        told."""
        for path in paths:
            self.keeping.gone(path)
            if path.suffix == ".json":
                self.rooms.pop(path.stem, None)
        tables = sum(path.suffix == ".json" for path in paths)
        if paths:
            told = f"tables {tables:,}, files of finished games {len(paths) - tables:,}"
            print(f"oxx serve: the oldest were removed ({told}); {self.keeping.size / 1e6:,.0f} MB "
                  "are left", file=sys.stderr, flush=True)  # fmt: skip

    def snapshot(self, room: Room) -> tuple[Path, str, Path | None, list[dict[str, Any]]]:
        """What `write` needs, taken at once, so that it may write in another thread."""
        finished = room.records() if room.finished > room.kept else []
        game = self.keeping.game(room.id) if finished else None
        return self.keeping.table(room.id), room.to_text(), game, finished

    def wrote(self, room: Room, sizes: tuple[int, int | None]) -> None:
        """A snapshot of a room was written, in so many bytes."""
        kept = Kept(room.owner, room.played, room.table.over, time.time(), sizes[0])
        self.keeping.note(room.id, kept, sizes[1])


def write(
    table: Path, text: str, game: Path | None, finished: list[dict[str, Any]]
) -> tuple[int, int | None]:
    """Write a snapshot of a room; each file is whole, the old or the new one. Their bytes."""
    size = None
    if game is not None:
        records.write_records(game, finished, private=True)
        size = game.stat().st_size
    with open_whole(table, private=True) as file:
        file.write(text)
    return len(text), size


def secret_deal(secret: bytes, players: int, game: int) -> tuple[list[list[int]], list[int]]:
    """Draw piles and rows of a match's game (from 1).

    The cards lie in the order of keyed hashes, 256 bits each: all that was ever seen of one game
    says nothing about what is hidden in it, and nothing about another one.
    """
    order = sorted(
        range(1, cards.NUMBERS + 1), key=lambda number: _derive(secret, f"deal {game} {number}")
    )
    each = int(CARDS_DEALT[players])
    piles = [order[seat * each : (seat + 1) * each] for seat in range(players)]
    return piles, order[players * each :][:ROWS]


def _derive(secret: bytes, words: str) -> bytes:
    """32 bytes that nobody can tell from random ones without the secret (HMAC-SHA256)."""
    return hmac.digest(secret, words.encode(), "sha256")


def hash_of(token: str) -> str:
    """What is kept of a token: enough to know it again, not to use it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _base32(data: bytes) -> str:
    import base64

    return base64.b32encode(data).decode().lower()


def replay_frames(record: dict[str, Any], game: int = 1) -> dict[str, Any]:
    """A record for the replay page: its events, and what each seat holds before each round.

    Raises RecordError for a record that the rules do not allow.
    """
    checked = records.replay(record, game)
    replay, rules = checked.replay(), checked.rules
    deck, names = deck_cards(checked.decks[0]), [f"seat {seat}" for seat in range(checked.players)]
    events: list[dict[str, Any]] = []
    hands: list[dict[str, Any]] = []
    for kind, *rest in replay.steps(checked.decisions):
        rest = [record] if kind == "end" else rest
        events.append(event(kind, rest, names, rules, deck))
        if replay.game["phase"] == CARD_PHASE:
            hands.append(
                {
                    "hands": [replay.hand(seat) for seat in range(checked.players)],
                    "pile_sizes": replay.game["pile_sizes"][: checked.players].tolist(),
                }
            )
    return {
        **checked.summary(),
        "direction": DIRECTION[rules],
        "cards": deck,
        "names": names,
        "events": events,
        "hands": hands,
    }
