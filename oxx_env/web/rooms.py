"""All rooms of a folder: those in use are in memory, the others in their files (`storage`)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from oxx_env.lib.files import open_atomic, read_json
from oxx_env.notation import records
from oxx_env.web import storage
from oxx_env.web.errors import RequestError
from oxx_env.web.room import Room
from oxx_env.web.setup import Setup, read_person, read_seats
from oxx_env.web.storage import Storage, TableFile
from oxx_env.web.tokens import SECRET_BYTES, RequestKey, derive

MAX_ROOMS = 2000  # in memory; the others stay in their files
_ID = re.compile(r"[a-z2-7]{16}")
# What a damaged file can raise while a room is built from it.
_DAMAGED = (ValueError, KeyError, TypeError, LookupError, AttributeError, ArithmeticError,
            RecursionError)  # fmt: skip


class Rooms:
    """Makes, finds and forgets rooms."""

    def __init__(
        self, folder: Path, seed: int | None = None, max_bytes: int = storage.MAX_BYTES
    ) -> None:
        self.folder = folder
        self.rooms: dict[str, Room] = {}
        self._seed, self._made = seed, 0
        self.storage = Storage(folder, max_bytes)

    def in_use(self) -> set[str]:
        """The rooms whose files must stay: used within the last hour, or not idle."""
        hour_ago = time.monotonic() - 3600
        return {room.id for room in self.rooms.values() if room.used > hour_ago or not room.idle}

    def check_space(self, client: str) -> None:
        """Raises RequestError where a client has too many tables, or the folder is full."""
        stored = self.storage
        own = stored.tables_of(client)
        if own >= storage.MAX_OWN:
            raise RequestError(429, f"this address has {own:,} tables here, and none is old enough "
                               "to be removed; a table can be removed "
                               f"{storage.OVER_DAYS:g} day(s) after its match", 3600)  # fmt: skip
        if stored.full:
            raise RequestError(503, f"this server keeps {len(stored.tables):,} tables and games, "
                               f"{stored.size / 1e6:,.0f} MB, and none is old enough to be "
                               "removed; its owner can remove some by hand")  # fmt: skip

    def new(
        self, data: dict[str, Any], owner: str = "", key: RequestKey | None = None
    ) -> tuple[Room, dict[int, str]]:
        """A new table, and the tokens by seat of the people at the device that makes it. The same
        table again for a request that was sent twice. Raises RequestError.
        """
        setup, seats = Setup.from_request(data), read_seats(data.get("seats"))
        random_text = secrets.token_urlsafe(24)
        person = read_person(data) or (key.secret if key else random_text)
        # The id follows from the key, so a repeated request finds its table, also after a restart.
        label = f"table {key.secret if key else random_text}"
        name = base64.b32encode(hashlib.sha256(label.encode()).digest()[:10]).decode().lower()
        people = [index for index, seat in enumerate(seats) if seat.kind == "human"]
        mine = [index for index in people if index == people[0] or seats[index].here]
        if key and (room := self._made_before(name, key)):
            return room, {index: room.token(index, 0, person) for index in mine}
        self.check_space(owner)
        self._free_memory()
        self._made += 1
        secret = secrets.token_bytes(SECRET_BYTES)
        if self._seed is not None:  # deals that can be foreseen
            secret = derive(str(self._seed).encode(), f"table {self._made}")
        room = Room(name, setup, seats, secret, owner, key.request if key else "")
        for index in mine:
            seats[index].here = True
        tokens = {index: room.take_seat(index, person) for index in mine}
        self.rooms[room.id] = room
        self.storage.written(room.id, TableFile(owner, False, False, time.time(), 0), None)
        return room, tokens

    def _made_before(self, name: str, key: RequestKey) -> Room | None:
        """The table that this request made earlier. Raises RequestError for another request."""
        try:
            room = self.get(name)
        except RequestError as error:
            if error.status != 404:
                raise
            return None
        if not hmac.compare_digest(room.made, key.request):
            raise RequestError(422, "Idempotency-Key: it was sent with another request before")
        return room

    def get(self, name: str) -> Room:
        """A room by its id. Raises RequestError 404."""
        room = self.rooms.get(name)
        if room is None:
            if not _ID.fullmatch(name):
                raise RequestError(404, "there is no such table")
            room = self._load(name)
            self._free_memory()
            self.rooms[name] = room
        room.used = time.monotonic()
        return room

    def _load(self, name: str) -> Room:
        try:
            data = read_json(self.storage.table_path(name), 1 << 24)
            if data["id"] != name:  # the file is found, and written, by the id
                raise ValueError("it is the file of another table")
            return Room.from_dict(data)
        except FileNotFoundError:
            raise RequestError(404, "there is no such table") from None
        except (OSError, *_DAMAGED) as error:
            # The error may name a path or a hidden card: only the server's owner sees it.
            print(f"oxx serve: the file of table {name}: {type(error).__name__}: {error}",
                  file=sys.stderr, flush=True)  # fmt: skip
            wrong = "cannot be read" if isinstance(error, OSError) else "is damaged"
            raise RequestError(500, f"this table's file {wrong}") from None

    def _free_memory(self) -> None:
        """Drop idle rooms from memory when there are too many. Raises RequestError 503."""
        if len(self.rooms) < MAX_ROOMS:
            return
        idle = sorted((room for room in self.rooms.values() if room.idle), key=lambda r: r.used)
        if not idle:
            raise RequestError(503, "too many tables are in play; try again later", 60)
        for room in idle[: MAX_ROOMS // 10]:
            del self.rooms[room.id]

    def forget(self, removed: list[Path]) -> None:
        """Forget files that were removed, and report them on standard error."""
        if not removed:
            return
        for path in removed:
            self.storage.forget(path)
            if path.suffix == ".json":
                self.rooms.pop(path.stem, None)
        tables = sum(path.suffix == ".json" for path in removed)
        print(f"oxx serve: the oldest files were removed (tables: {tables:,}, finished games: "
              f"{len(removed) - tables:,}); {self.storage.size / 1e6:,.0f} MB are left",
              file=sys.stderr, flush=True)  # fmt: skip

    def snapshot(self, room: Room) -> tuple[Path, str, Path | None, list[dict[str, Any]]]:
        """The arguments of `write`, so that it can run in another thread."""
        finished = room.records() if room.finished > room.games_saved else []
        games = self.storage.games_path(room.id) if finished else None
        return self.storage.table_path(room.id), room.to_text(), games, finished

    def written(self, room: Room, sizes: tuple[int, int | None]) -> None:
        """Note the bytes of a snapshot that was written."""
        file = TableFile(room.owner, room.played, room.table.over, time.time(), sizes[0])
        self.storage.written(room.id, file, sizes[1])


def write(
    table: Path, text: str, games: Path | None, finished: list[dict[str, Any]]
) -> tuple[int, int | None]:
    """Write a snapshot, each file whole or not at all. Returns the bytes of both files."""
    size = None
    if games is not None:
        records.write_records(games, finished, private=True)
        size = games.stat().st_size
    with open_atomic(table, private=True) as file:
        file.write(text)
    return len(text), size
