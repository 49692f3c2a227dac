"""The rooms at work: bots think in threads, files are written in one, waiting pages are answered.

All changes of a room happen in the event loop, one after the other; threads work on copies. So a
thinking bot delays no other table, and no request sees a room that is half changed.
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
from oxx_env.web import coach, storage
from oxx_env.web.errors import RequestError
from oxx_env.web.levels import bot_of, levels
from oxx_env.web.limits import COACH, FILES, TABLES, UPLOADS, FairQueue, Limiter
from oxx_env.web.page import table_state
from oxx_env.web.room import Room
from oxx_env.web.rooms import Rooms, write
from oxx_env.web.setup import Setup, read_seats
from oxx_env.web.tokens import SECRET_BYTES, RequestKey

POLL_S = 20.0  # for which a request waits for news
NOTIFY_S = 0.1  # within which several answers of bots are sent together
SAVE_DELAY_S = 0.5  # after which the decisions of bots are saved
SLICE_S = 0.02  # of processor time for a table's bots before the next client's turn
MAX_JUDGED = 20_000  # judgements in memory, about 1 KB each


class TableServer:
    """All rooms of a folder, with their bots and the coach."""

    def __init__(
        self, folder: Path, seed: int | None = None, max_bytes: int = storage.MAX_BYTES
    ) -> None:
        self.rooms = Rooms(folder, seed, max_bytes)
        # Few threads keep the cores busy, and a new request waits for few pieces of running work.
        self.thinkers = FairQueue(max(2, os.cpu_count() or 1), "bot")
        self.coaches = FairQueue(2, "coach")
        self.readers = FairQueue(1, "reader")
        self.writer = FairQueue(1, "writer")
        self.coach, self.files, self.tables = Limiter(COACH), Limiter(FILES), Limiter(TABLES)
        self.uploads = Limiter(UPLOADS)
        self.closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._judged: dict[Room, None] = {}  # rooms with judgements, the last used at the end

    def release_waiting(self) -> None:
        """Answer all requests that wait for news: the server is about to stop."""
        self.closing = True
        for room in self.rooms.rooms.values():
            room.notify()

    async def close(self) -> None:
        """Stop the bots, and save what is not yet saved."""
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
        self, data: dict[str, Any], client: str, key: RequestKey | None = None
    ) -> tuple[Room, dict[int, str]]:
        """A new room and its tokens, as `Rooms.new`. Raises RequestError."""
        stored = self.rooms.storage
        with self.tables.admit(client):
            if stored.full or stored.tables_of(client) >= storage.MAX_OWN:
                self.tables.charge(client, 1)  # the search takes time
                paths = stored.removable(client, self.rooms.in_use())
                self.rooms.forget(await asyncio.to_thread(storage.remove, paths))
            room, tokens = self.rooms.new(data, client, key)
            self.tables.charge(client, 1)
            await self.changed(room)
            return room, tokens

    def get(self, name: str) -> Room:
        """A room; after a restart, its bots go on. Raises RequestError 404."""
        room = self.rooms.get(name)
        self.wake(room)
        return room

    async def changed(self, room: Room) -> None:
        """Save a person's change, notify the pages, and let the bots answer."""
        await self._save(room)
        room.notify()
        self.wake(room)

    def person_returned(self, room: Room) -> None:
        """A person who was away has the seat again: notify the pages now, and save it soon."""
        room.notify()
        self._begin(self._save_soon(room))

    # --- saving ---

    async def _save(self, room: Room) -> None:
        """Return when the room's present changes are saved. Requests that come while the file is
        written share the next writing."""
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
            self.rooms.written(room, sizes)
            room.trouble, room.games_saved = "", finished
        except OSError as error:
            room.trouble = f"this table cannot be saved: {error.strerror}"
            _report(room, str(error))
        room.saved, room.writing = changes, None

    async def _save_soon(self, room: Room) -> None:
        """Save after a delay; until then a crash loses only decisions that bots would repeat."""
        await asyncio.sleep(SAVE_DELAY_S)
        await self._save(room)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- bots ---

    def wake(self, room: Room) -> None:
        """Start the bots of a room if they have to decide and are not yet at work."""
        if not room.thinking and room.deciding_bots:
            room.thinking = True
            self._begin(self._think(room))

    async def _think(self, room: Room) -> None:
        loop = asyncio.get_running_loop()
        notified = loop.time()
        try:
            while seats := room.deciding_bots:
                bots = [room.seats[seat] for seat in seats]
                questions = [
                    (bot.level, room.view(seat), room.generator(seat, room.turn(seat)))
                    for seat, bot in zip(seats, bots, strict=True)
                ]
                actions: list[int] = []
                while more := questions[len(actions) :]:
                    actions += await self.thinkers.run(room.owner, _answers, more)
                for seat, bot, action in zip(seats, bots, actions, strict=True):
                    if room.seats[seat] is bot:  # else the seat was given away meanwhile
                        room.act(seat, action)
                if loop.time() - notified > NOTIFY_S:
                    room.notify()
                    notified = loop.time()
            self._begin(self._save_soon(room))
        except Exception as error:
            room.trouble = "a bot cannot go on; the server's standard error says why"
            # The error may name hidden cards: only the server's owner sees it.
            _report(room, f"a bot cannot go on: {type(error).__name__}: {error}")
        finally:
            room.notify()
            room.thinking = False

    async def news(self, room: Room, version: int) -> None:
        """Wait until the room's version differs from `version`, or for `POLL_S` seconds."""
        room.waiting += 1
        try:
            async with asyncio.timeout(POLL_S):
                while room.version == version and not self.closing:
                    await room.news.wait()
        except TimeoutError:
            pass
        finally:
            room.waiting -= 1

    # --- the coach ---

    async def advise(self, room: Room, seat: int, client: str) -> dict[str, Any]:
        """The coach's advice on the decision that a seat has now. Raises RequestError."""
        self._check_coach(room)
        turn = self._due(room, seat)
        if (seat, turn) not in room.advice:
            with self.coach.admit(client):
                async with room.coach_lock(seat):
                    if turn != self._due(room, seat):
                        raise RequestError(409, "this decision has been made meanwhile")
                    if (seat, turn) not in room.advice:
                        view, rng = room.view(seat), room.generator(seat, turn, 1)
                        self.coach.charge(client, 1)
                        options = await self.coaches.run(client, coach.options, view, rng)
                        room.advice[seat, turn] = options
                        self._limit_judged(room)
        return {"turn": turn, "options": room.advice[seat, turn], "basis": basis()}

    @staticmethod
    def _due(room: Room, seat: int) -> int:
        if seat not in room.deciders:
            raise RequestError(409, "you have nothing to decide now")
        return room.turn(seat)

    async def review(self, room: Room, seat: int, client: str) -> dict[str, Any]:
        """The decisions of a seat so far with what each cost. Raises RequestError."""
        self._check_coach(room)
        review = coach.Review(
            room.new_table, list(room.table.decisions), seat,
            lambda turn: room.generator(seat, turn, 1), room.reviews.setdefault(seat, {}),
        )  # fmt: skip
        if not review.complete:
            with self.coach.admit(client):
                async with room.coach_lock(seat):
                    while not review.complete:
                        given = room.advice.get((seat, len(review.known)))
                        self.coach.charge(client, given is None)
                        await self.coaches.run(client, review.judge_next, given)
            self._limit_judged(room)
        return {"seat": seat, "decisions": review.judged(), "basis": basis()}

    def _limit_judged(self, room: Room) -> None:
        """Drop the judgements of the rooms used longest ago; the coach can give them again."""
        self._judged.pop(room, None)
        self._judged[room] = None
        while sum(map(_judgements, self._judged)) > MAX_JUDGED and len(self._judged) > 1:
            oldest = next(iter(self._judged))
            del self._judged[oldest]
            oldest.advice, oldest.reviews = {}, {}

    @staticmethod
    def _check_coach(room: Room) -> None:
        if not room.setup.coach and not room.table.over:
            raise RequestError(403, "this table is played without the coach")

    async def review_record(self, data: bytes, seat: int, client: str) -> dict[str, Any]:
        """The review of one seat in a record. Raises RequestError, and as `coach.review_of`."""
        with self.coach.admit(client):
            self.coach.charge(client, 1)
            review, winners = await self.readers.run(client, coach.review_of, data, seat)
            self.coach.charge(client, review.count)
            while not review.complete:
                await self.coaches.run(client, review.judge_next)
            decisions = review.judged()
        return {"seat": seat, "decisions": decisions, "winners": winners, "basis": basis()}

    def warm_up(self) -> None:
        """Compile and load what a table needs by playing two games."""
        for rules in ("base", "positive"):
            seats = [{"kind": "human"}, *({"kind": "bot", "level": one.name} for one in levels())]
            setup = Setup.from_request({"rules": rules})
            room = Room("warm", setup, read_seats(seats), bytes(SECRET_BYTES))
            while deciders := room.deciders:
                for seat in deciders:
                    view, level, turn = room.view(seat), room.seats[seat].level, room.turn(seat)
                    rng = room.generator(seat, turn)
                    if not level and turn == 0:
                        coach.options(view, rng)
                    room.act(seat, int(bot_of(level).act(view, rng)) if level else view.legal[0])
            table_state(room, 0, None)


def _judgements(room: Room) -> int:
    return len(room.advice) + sum(map(len, room.reviews.values()))


def _answers(questions: list[tuple[str, View, np.random.Generator]]) -> list[int]:
    """The actions of the first bots: at least one, and as many as take `SLICE_S` together, since
    each change of threads takes time."""
    actions: list[int] = []
    end = time.thread_time() + SLICE_S
    for level, view, rng in questions:
        actions.append(int(bot_of(level).act(view, rng)))
        if time.thread_time() > end:
            break
    return actions


def _report(room: Room, message: str) -> None:
    print(f"oxx serve: {room.id}: {message}", file=sys.stderr, flush=True)


def basis() -> str:
    """A sentence on what the coach's figures rest on."""
    return advice.basis(coach.COACH)
