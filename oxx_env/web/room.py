"""One match at a table in the browser: its seats, their tokens, its decisions.

A room's file holds the setup, the seats (tokens as hashes only) and the decisions; the table is
dealt and played again from it when the server comes back. Nothing here knows of requests or
threads: all methods are called from the event loop.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from oxx_env.game import cards
from oxx_env.game.table import Table
from oxx_env.game.views import View
from oxx_env.notation import records
from oxx_env.web import names, page
from oxx_env.web.errors import RequestError
from oxx_env.web.setup import Seat, Setup, check_distinct, default_name, heads_of
from oxx_env.web.tokens import SECRET_BYTES, RequestKey, derive, hash_of, secret_deal

FORMAT = "oxx-table/2"
AWAY_S = 45.0  # without a request for so long, a person is shown as away; a poll lasts 20 s
GONE_S = 300.0  # after so long everybody at the table may give the seat to a bot
MAX_REQUEST_KEYS = 64  # requests of a table that are recognised when they are sent again
MAX_FORMER = 8  # earlier holders of a seat who are told what became of it


@dataclass(eq=False)
class Room:
    """One match with its seats.

    owner    the client that made it; the work of its bots counts as the client's
    secret   32 bytes from which all deals and all random numbers of bots and coach are drawn
    changes  counts all changes; `saved` of them are in the file
    version  grows each time the waiting pages are notified. It begins at the time in milliseconds,
             so that after a restart it is higher than any version that a page knows
    made     hash of the request that made it
    done     the last requests that changed it: name of the key -> hash of the request
    news     is set, and replaced by a new event, at each notification
    """

    id: str
    setup: Setup
    seats: list[Seat]
    secret: bytes = field(repr=False)
    owner: str = ""
    made: str = ""
    done: dict[str, str] = field(default_factory=dict)
    changes: int = 0
    version: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    saved: int = -1
    writing: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    thinking: bool = False  # are its bots at work?
    waiting: int = 0  # requests that wait for news
    trouble: str = ""  # what went wrong in the server, for people
    used: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.table = self.new_table()
        self.advice: dict[tuple[int, int], list[dict[str, Any]]] = {}  # (seat, turn) -> options
        self.reviews: dict[int, dict[int, dict[str, Any]]] = {}  # seat -> turn -> judgement
        self.games_saved = 0  # finished games in the file of records
        self._coach_locks: dict[int, asyncio.Lock] = {}
        self._events: list[dict[str, Any]] = []  # with the names that seats had at the time
        self._events_at = self._deciders_at = -1  # `changes` when these were computed
        self._deciders: list[int] = []
        self._seen = [time.monotonic()] * len(self.seats)  # last request of each seat's person
        self._deck_text = json.dumps({"name": self.setup.deck_name, "cards": self.setup.deck})

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
        """The seat of a token. A person who was away when the seat was freed gets it back.

        Raises RequestError 403, and 410 for a seat that was given away.
        """
        given = hash_of(token)
        for index, seat in enumerate(self.seats):
            if seat.token and hmac.compare_digest(seat.token, given):
                return index
        for index, seat in enumerate(self.seats):
            if seat.free and seat.back and hmac.compare_digest(seat.back, given):
                seat.token, seat.back = given, ""
                self._seen[index] = time.monotonic()
                self.changed()
                return index
            if any(hmac.compare_digest(former, given) for former in seat.former):
                raise self._given_away(index)
        raise RequestError(403, "this token holds no seat at this table")

    def _given_away(self, index: int) -> RequestError:
        seat = self.seats[index]
        became = f"was given to {seat.name}"
        if seat.free:
            became = "was freed; the host has a new invitation to it"
        return RequestError(410, f"your seat {became}; you may watch", more={"watch": self.watch})

    def _secret_text(self, label: str) -> str:
        """A secret of this table for a link or a browser; the same label gives the same text."""
        return base64.urlsafe_b64encode(derive(self.secret, label)[:24]).decode()

    @property
    def watch(self) -> str:
        """The watchers' token: it shows no hand and changes nothing."""
        return self._secret_text("watch")

    def is_watcher(self, token: str) -> bool:
        return hmac.compare_digest(hash_of(self.watch), hash_of(token))

    def invitation(self, index: int) -> str:
        """The secret that brings one person to a free seat."""
        return self._secret_text(f"invite {index} {self.seats[index].handed}")

    def token(self, index: int, handed: int, person: str) -> str:
        """The token that holds a seat for a person's browser; the same each time."""
        return self._secret_text(f"token {index} {handed} {person}")

    def _person_hash(self, person: str) -> str:
        """Recognises a person's browser at this table only."""
        return derive(self.secret, f"person {person}").hex()

    def take_seat(self, index: int, person: str, name: str = "") -> str:
        """A person sits down. Returns the token that holds the seat from now on."""
        seat = self.seats[index]
        token = self.token(index, seat.handed, person)
        if name or seat.back:
            seat.name = name or default_name(self.seats, index)
        seat.token, seat.person, seat.back = hash_of(token), self._person_hash(person), ""
        self._seen[index] = time.monotonic()
        self.changed()
        return token

    def join(
        self, invite: str, name: str, person: str = "", another: bool = False
    ) -> tuple[int, str]:
        """Use an invitation. Returns the seat and its token. Raises RequestError.

        A person (a secret of the browser) who already holds a seat here gets that seat again,
        unless `another` says that a second person at the same device sits down.
        """
        index, handed = self._invited(invite)
        person = person or secrets.token_urlsafe(24)
        known = self._person_hash(person)
        own = [i for i, seat in enumerate(self.seats) if seat.token and seat.person == known]
        if index in own and self.seats[index].handed == handed:
            own = [index]
        if own and (not another or own == [index]):
            return own[0], self.token(own[0], self.seats[own[0]].handed, person)
        seat = self.seats[index]
        if seat.handed != handed or not seat.free:
            if hash_of(self.token(index, handed, person)) in seat.former:
                raise self._given_away(index)
            raise RequestError(409, "this invitation has been used; each brings one person")
        check_distinct(name, [one for one in self.seats if one is not seat])
        return index, self.take_seat(index, person, name)

    def _invited(self, invite: str) -> tuple[int, int]:
        """The seat of a current or earlier invitation, and its `handed` at that time."""
        given = hash_of(invite)
        for index, seat in enumerate(self.seats):
            for handed in range(max(0, seat.handed - MAX_FORMER), seat.handed + 1):
                text = self._secret_text(f"invite {index} {handed}")
                if hmac.compare_digest(hash_of(text), given):
                    return index, handed
        raise RequestError(403, "this invitation is not for this table")

    def give_to_bot(self, index: int, level: str) -> None:
        """A bot takes a seat and plays on."""
        self._hand_over(index, Seat("bot", "", level))

    def free_seat(self, index: int) -> None:
        """Free a seat for a person with a new invitation. A person who is away gets it back by
        returning before another person takes it."""
        seat, new = self.seats[index], Seat("human", "")
        if self.is_away(index):
            new = Seat("human", seat.name, person=seat.person, back=seat.token)
        self._hand_over(index, new)

    def _hand_over(self, index: int, new: Seat) -> None:
        old = self.seats[index]
        new.handed = old.handed + 1
        new.former = [*old.former, *([old.token] if old.token else [])][-MAX_FORMER:]
        self.seats[index] = new
        new.name = new.name or default_name(self.seats, index)
        self._seen[index] = time.monotonic()
        self.changed()

    def check_change(self, asker: int, index: int, leave: bool) -> None:
        """May the person at seat `asker` free a seat or give it to a bot? Raises RequestError."""
        if not 0 <= index < len(self.seats):
            raise RequestError(422, f"seat: should be 0 to {len(self.seats) - 1}")
        if self.table.over:
            raise RequestError(409, "the match is over; its seats stay as they are")
        if index == asker and not leave:
            raise RequestError(409, "this is your own seat; send leave: true to leave it")
        if index != asker and leave:
            raise RequestError(422, "leave: should be true for your own seat alone")
        if not self.may_change(asker, index):
            who = f"{self.seats[index].name} has this seat; the host may change that, others only"
            raise RequestError(403, f"{who} after {GONE_S / 60:.0f} minutes without its person")

    def may_change(self, asker: int, index: int) -> bool:
        gone = self.seats[index].kind == "human" and self._unseen_s(index) >= GONE_S
        return asker == index or self.is_host(asker) or gone

    def is_host(self, seat: int) -> bool:
        """Is the seat at the device that made the table? If none is left, the first person is the
        host."""
        people = [i for i, one in enumerate(self.seats) if one.token]
        return seat in ([i for i in people if self.seats[i].here] or people[:1])

    def mark_seen(self, seat: int) -> None:
        """A request came from a seat's person, hence from all people at the same device."""
        was_away = self.is_away(seat)
        person = self.seats[seat].person
        for index, one in enumerate(self.seats):
            if index == seat or (person and one.person == person):
                self._seen[index] = time.monotonic()
        if was_away:
            self.notify()

    def is_away(self, seat: int) -> bool:
        return bool(self.seats[seat].token) and self._unseen_s(seat) >= AWAY_S

    def _unseen_s(self, seat: int) -> float:
        return time.monotonic() - self._seen[seat]

    # --- requests sent twice ---

    def is_repeated(self, key: RequestKey | None) -> bool:
        """Was this request carried out before? Raises RequestError 422 where the key came with
        another request."""
        if key is None or key.name not in self.done:
            return False
        if self.done[key.name] != key.request:
            raise RequestError(422, "Idempotency-Key: it was sent with another request before")
        return True

    def remember(self, key: RequestKey | None) -> None:
        """Recognise a request that was carried out when it comes again."""
        if key is not None:
            self.done[key.name] = key.request
            while len(self.done) > MAX_REQUEST_KEYS:
                del self.done[next(iter(self.done))]

    # --- playing ---

    @property
    def deciders(self) -> list[int]:
        """The seats that decide now."""
        if self._deciders_at != self.changes:
            self._deciders, self._deciders_at = self.table.deciders(), self.changes
        return self._deciders

    @property
    def deciding_bots(self) -> list[int]:
        return [seat for seat in self.deciders if self.seats[seat].kind == "bot"]

    def turn(self, seat: int) -> int:
        """How many decisions the seat has made in this match."""
        return sum(decider == seat for decider, _ in self.table.decisions)

    def view(self, seat: int) -> View:
        """What a seat knows, as a copy for a bot or the coach in another thread."""
        return View.of(self.table.games, self.table.decks, seat, self.setup.deck_name)

    def generator(self, seat: int, turn: int, *label: int) -> np.random.Generator:
        """The random numbers of a bot, or (`label`) of the coach: the same each time."""
        text = " ".join(map(str, ("chance", seat, turn, *label)))
        return np.random.default_rng(list(derive(self.secret, text)))

    def move(self, seat: int, turn: int, action: int) -> None:
        """A person's decision. Raises RequestError, and changes nothing, where it is not due."""
        due = self.turn(seat)
        if turn < due:
            raise RequestError(409, "this decision has been made already")
        if turn > due or seat not in self.deciders:
            raise RequestError(409, "it is not your turn to decide")
        if action not in self.table.legal(seat):
            legal = self.table.legal(seat)
            raise RequestError(422, f"action {action} is not legal; legal: {legal}")
        self.act(seat, action)

    def act(self, seat: int, action: int) -> None:
        self.table.act(seat, action)
        self.changed()

    def changed(self) -> None:
        self.changes += 1
        self.used = time.monotonic()

    def notify(self) -> None:
        """Answer all requests that wait for news."""
        self.version += 1
        news, self.news = self.news, asyncio.Event()
        news.set()

    @property
    def idle(self) -> bool:
        return not (self.thinking or self.waiting) and self.saved == self.changes

    def coach_lock(self, seat: int) -> asyncio.Lock:
        """Held while the coach works for a seat; a second request for the same work waits."""
        return self._coach_locks.setdefault(seat, asyncio.Lock())

    # --- what pages show ---

    def events(self) -> list[dict[str, Any]]:
        """All public events in order (`page.event`)."""
        if self._events_at != self.changes:
            self._events_at = self.changes
            isolated = [names.ISOLATE.format(seat.name) for seat in self.seats]
            for kind, *rest in records.events_of(self.table)[len(self._events) :]:
                event = page.event(kind, rest, isolated, self.setup.rules, self.setup.deck)
                self._events.append(event)
        return self._events

    @property
    def played(self) -> bool:
        """Has a person decided anything?"""
        return any(self.seats[seat].kind == "human" for seat, _ in self.table.decisions)

    @property
    def finished(self) -> int:
        """How many games of the match are over."""
        return int(self.table.game["match_game"]) - (not self.table.over)

    def records(self) -> list[dict[str, Any]]:
        """The finished games; people may see them only when the match is over."""
        games = records.records_of(self.table, self.id if self.setup.games > 1 else None)
        return [{**one, "deck": {**one["deck"], "name": self.setup.deck_name}} for one in games]

    # --- the file ---

    def to_text(self) -> str:
        """The text of the room's file. `storage` reads its first four keys."""
        setup = self.setup
        data = {
            "format": FORMAT,
            "owner": self.owner,
            "played": self.played,
            "over": self.table.over,
            "id": self.id,
            "rules": setup.rules,
            "games": setup.games,
            "coach": setup.coach,
            "secret": self.secret.hex(),
            "made": self.made,
            "done": list(self.done.items()),
            "seats": [vars(seat) for seat in self.seats],
            "decisions": self.table.decisions,
        }
        return f'{json.dumps(data)[:-1]}, "deck": {self._deck_text}}}'

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Room:
        """A room from its file. Raises ValueError, KeyError or TypeError for anything else."""
        if data["format"] != FORMAT:
            raise ValueError(f"the format is not {FORMAT}")
        deck = heads_of(cards.load_deck(data["deck"]["cards"]))
        setup = Setup(data["rules"], data["deck"]["name"], deck, data["games"], data["coach"])
        secret = bytes.fromhex(data["secret"])
        if len(secret) != SECRET_BYTES:
            raise ValueError(f"the secret has not {SECRET_BYTES} bytes")
        seats = [Seat.from_file(seat) for seat in data["seats"]]
        owner, made = str(data["owner"]), str(data["made"])
        room = cls(data["id"], setup, seats, secret, owner, made)
        room.done = dict(data["done"])
        for seat, action in data["decisions"]:
            room.table.act(seat, action)
        room.saved = room.changes
        return room
