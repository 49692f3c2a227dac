"""The rooms at work: bots think in threads, files are written by one, and who waits is told.

Everything that changes a room happens in the event loop, one thing after the other; threads get
copies. So a thinking bot holds up no other table, and no request sees a room half changed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np

from oxx_env.bots import advice
from oxx_env.game.views import View
from oxx_env.notation import records
from oxx_env.web import coach, storage
from oxx_env.web.levels import bot_of, levels
from oxx_env.web.limits import COACH, FILES, NEWS, TABLES, UPLOADS, Gate, Queue
from oxx_env.web.rooms import Key, Refused, Room, Rooms, write

PATIENCE = 20.0  # seconds that a request waits for news
HASTE = 0.1  # seconds within which several answers of bots are told at once
QUIET = 0.5  # seconds after which bots' answers are kept
SLICE = 0.02  # seconds of processor time for a table's bots after which others have their turn
PIECE = 1  # decisions of a review after which they have it: some 0.2 s, a second at ten players
CLEARED = 600.0  # seconds until a full folder is looked through again for what may go
MAX_JUDGED = 20_000  # decisions whose judgements are kept in memory, some 1 KB each


class House:
    """All rooms of a folder, played."""

    def __init__(
        self, folder: Path, seed: int | None = None, most: int = storage.MAX_BYTES
    ) -> None:
        self.rooms = Rooms(folder, seed, most)
        cores = os.cpu_count() or 1
        # Two are enough to keep the cores busy: whoever comes waits for fewer pieces under way.
        self.thinkers = Queue(max(2, cores), "bot")
        self.coaches = Queue(2, "coach")
        self.readers = Queue(1, "reader")
        self.writer = Queue(1, "writer")
        self._tasks: set[asyncio.Task[None]] = set()
        self._judged: dict[Room, None] = {}  # where the coach worked, the last one at the end
        self._cleared = -CLEARED  # when old tables were looked for
        self.coach, self.files, self.tables = Gate(COACH), Gate(FILES), Gate(TABLES)
        self.waiting, self.uploads = Gate(NEWS), Gate(UPLOADS)
        self.closing = False

    def let_go(self) -> None:
        """Answer all who wait for news: the server is about to stop."""
        self.closing = True
        for room in self.rooms.rooms.values():
            room.tell()

    async def close(self) -> None:
        """Stop the bots, and keep what is not yet kept."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for room in self.rooms.rooms.values():
            if room.saved < room.changes:
                room.writing = None
                await self._write(room)
        for queue in (self.thinkers, self.coaches, self.readers, self.writer):
            queue.close()

    async def new(
        self, told: dict[str, Any], client: str, key: Key | None = None
    ) -> tuple[Room, dict[int, str]]:
        """A new room and its tokens, as `Rooms.new` has them. Raises Refused."""
        with self.tables.work(client):
            now = asyncio.get_running_loop().time()
            own = self.rooms.keeping.owns(client) >= storage.MAX_OWN
            if own or (self.rooms.keeping.full and now - self._cleared >= CLEARED):
                self._cleared = self._cleared if own else now
                self.tables.pay(client, 1)  # to look through the folder takes a while
                goes = self.rooms.keeping.to_go(client, self.rooms.in_use())
                self.rooms.gone(await asyncio.to_thread(storage.remove, goes))
            room, tokens = self.rooms.new(told, client, key)
            self.tables.pay(client, 1)
            await self.changed(room)
            return room, tokens

    def get(self, name: str) -> Room:
        """A room; bots whose turn it is (after a restart) go on."""
        room = self.rooms.get(name)
        self.wake(room)
        return room

    async def changed(self, room: Room) -> None:
        """Keep what a person has changed, tell it, and let the bots answer."""
        await self._save(room)
        room.tell()
        self.wake(room)

    def has_returned(self, room: Room) -> None:
        """A person who was away has the seat again: tell it, and keep it a moment later."""
        room.tell()
        self._begin(self._save_soon(room))

    async def _save(self, room: Room) -> None:
        """Return when the room as it is now is kept; who comes while a file is written shares the
        next writing with all others."""
        wanted = room.changes
        while room.saved < wanted:
            if room.writing is None:
                room.writing = self._begin(self._write(room))
            await asyncio.shield(room.writing)

    async def _write(self, room: Room) -> None:
        changes, finished = room.changes, room.finished
        snapshot = self.rooms.snapshot(room)
        try:
            sizes = await self.writer.run(room.owner, write, *snapshot)
            self.rooms.wrote(room, sizes)
            room.trouble, room.kept = "", finished
        except OSError as error:
            room.trouble = f"this table cannot be saved: {error.strerror}"
            print(f"oxx serve: {room.id}: {error}", file=sys.stderr, flush=True)
        room.saved, room.writing = changes, None

    async def _save_soon(self, room: Room) -> None:
        """Keep what bots have done, which would come out the same once more, when it is quiet."""
        await asyncio.sleep(QUIET)
        await self._save(room)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def wake(self, room: Room) -> None:
        """Let the bots of a room think if it is their turn and they do not yet."""
        if room.thinking or not room.thinkers:
            return
        room.thinking = True
        self._begin(self._think(room))

    async def _think(self, room: Room) -> None:
        loop = asyncio.get_running_loop()
        told = loop.time()
        try:
            while seats := room.thinkers:
                sitting = [room.seats[s] for s in seats]
                asked = [
                    (room.seats[s].level, room.view(s), room.generator(s, room.turn(s)))
                    for s in seats
                ]
                actions: list[int] = []
                while more := asked[len(actions) :]:
                    actions += await self.thinkers.run(room.owner, _answers, more)
                for seat, bot, action in zip(seats, sitting, actions, strict=True):
                    if room.seats[seat] is bot:  # else it was given away meanwhile
                        room.act(seat, action)
                if loop.time() - told > HASTE:
                    room.tell()
                    told = loop.time()
            room.tell()
            self._begin(self._save_soon(room))
        except Exception as error:  # a bot's fault must not stay silent
            room.trouble = "a bot cannot go on; whoever runs the server finds out more there"
            # What is wrong may name hidden cards: it is told to who runs the server alone.
            print(
                f"oxx serve: {room.id}: a bot cannot go on: {type(error).__name__}: {error}",
                file=sys.stderr, flush=True,
            )  # fmt: skip
            room.tell()
        finally:
            room.thinking = False

    async def news(self, room: Room, version: int, patience: float = PATIENCE) -> None:
        """Wait until the room is no longer as `version` was, or for `patience` seconds."""
        room.waiting += 1
        try:
            async with asyncio.timeout(patience):
                while room.version == version and not self.closing:
                    await room.news.wait()
        except TimeoutError:
            pass
        finally:
            room.waiting -= 1

    # --- the coach ---

    async def advise(self, room: Room, seat: int, client: str) -> dict[str, Any]:
        """What the coach says to the decision that a seat has now. Raises Refused."""
        self._allow_coach(room)
        turn = self._due(room, seat)
        if (seat, turn) not in room.advice:
            with self.coach.work(client):
                async with room.coaching(seat):
                    if turn != self._due(room, seat):
                        raise Refused(409, "this decision has been made meanwhile")
                    if (seat, turn) not in room.advice:
                        view, rng = room.view(seat), room.generator(seat, turn, 1)
                        self.coach.pay(client, 1)
                        told = await self.coaches.run(client, coach.options, view, rng)
                        room.advice[seat, turn] = told
                        self._bound_judged(room)
        return {"turn": turn, "options": room.advice[seat, turn], "basis": basis()}

    @staticmethod
    def _due(room: Room, seat: int) -> int:
        if seat not in room.deciders:
            raise Refused(409, "you have nothing to decide now")
        return room.turn(seat)

    async def review(self, room: Room, seat: int, client: str) -> dict[str, Any]:
        """The decisions of a seat so far with what each cost. Raises Refused."""
        self._allow_coach(room)
        decisions = list(room.table.decisions)
        count = room.turn(seat)
        known = room.reviews.setdefault(seat, {})
        if count > len(known):
            with self.coach.work(client):
                async with room.coaching(seat):
                    await self._judge(room, seat, known, decisions, count, client)
            self._bound_judged(room)
        return {"seat": seat, "decisions": [known[turn] for turn in range(count)], "basis": basis()}

    async def _judge(
        self,
        room: Room,
        seat: int,
        known: dict[int, dict[str, Any]],
        decisions: list[tuple[int, int]],
        count: int,
        client: str,
    ) -> None:
        """Fill `known` up to `count` decisions of a seat, piece by piece."""
        generator = lambda turn: room.generator(seat, turn, 1)  # noqa: E731
        while (done := len(known)) < count:
            told = {turn: options for (who, turn), options in room.advice.items() if who == seat}
            self.coach.pay(
                client, sum(t not in told for t in range(done, min(count, done + PIECE)))
            )
            await self.coaches.run(
                client, coach.review, room.new_table(), decisions, seat, generator, known, told,
                PIECE,
            )  # fmt: skip

    def _bound_judged(self, room: Room) -> None:
        """Forget what the coach said where it has not been asked for long: it can say it again."""
        self._judged.pop(room, None)
        self._judged[room] = None
        while sum(map(_judged_at, self._judged)) > MAX_JUDGED and len(self._judged) > 1:
            oldest = next(iter(self._judged))
            del self._judged[oldest]
            oldest.advice, oldest.reviews = {}, {}

    def _allow_coach(self, room: Room) -> None:
        if not room.setup.coach and not room.table.over:
            raise Refused(403, "this table is played without the coach")

    # --- whatever takes its time ---

    async def review_record(self, data: bytes, seat: int, client: str) -> dict[str, Any]:
        """`coach.Reviewed` of a record's text, told. Raises Refused, RecordFileError, and what that
        raises."""
        with self.coach.work(client):
            self.coach.pay(client, 1)
            game: coach.Reviewed = await self.readers.run(client, _open_record, data, seat)
            self.coach.pay(client, game.count)
            while len(game.known) < game.count:
                await self.coaches.run(client, game.go_on, PIECE)
            return {**game.to_dict(), "basis": basis()}

    def warm_up(self) -> None:
        """Compile and load what a table needs, before anybody waits for it."""
        for rules in ("base", "positive"):
            seats = [{"kind": "human"}, *({"kind": "bot", "level": x.name} for x in levels())]
            room = _warm_room(rules, seats)
            while deciders := room.deciders:
                for seat in deciders:
                    view, level = room.view(seat), room.seats[seat].level
                    rng = room.generator(seat, room.turn(seat))
                    if not level and room.turn(seat) == 0:
                        coach.options(view, rng)
                    room.act(seat, int(bot_of(level).act(view, rng)) if level else view.legal[0])
            room.state(0, None)


def _judged_at(room: Room) -> int:
    return len(room.advice) + sum(map(len, room.reviews.values()))


def _open_record(data: bytes, seat: int) -> coach.Reviewed:
    return coach.Reviewed(records.parse_record(data.strip(), "the record"), seat)


def _answers(asked: list[tuple[str, View, np.random.Generator]]) -> list[int]:
    """What bots do, the first ones in one hop to another thread: those that take no longer than
    `SLICE` together, one at least."""
    told: list[int] = []
    end = time.thread_time() + SLICE
    for level, view, rng in asked:
        told.append(int(bot_of(level).act(view, rng)))
        if time.thread_time() > end:
            break
    return told


def _warm_room(rules: str, seats: list[dict[str, Any]]) -> Room:
    from oxx_env.web.rooms import SECRET, Setup, read_seats

    setup = Setup.read({"rules": rules})
    return Room("warm", setup, read_seats(seats), bytes(SECRET), 0.0)


def basis() -> str:
    """A sentence on what the coach's figures rest on."""
    return advice.basis(coach.COACH)
