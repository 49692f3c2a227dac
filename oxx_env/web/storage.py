"""The files of a server's folder, and which of them are removed when it is full.

FOLDER/tables/ID.json   a table: setup, seats, decisions
FOLDER/games/ID.jsonl   its finished games as records

A few figures of each file are in memory, so that a new table needs no search on the disk.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from oxx_env.lib.files import open_regular

MAX_TABLES = 20_000
MAX_OWN = 500  # tables of one client
MAX_BYTES = 1_000_000_000  # of all files
LEFT = 0.9  # share of a limit that stays when files are removed because of it
# Days after which a table may be removed:
UNPLAYED_DAYS = 1.0  # no person has decided anything
OVER_DAYS = 1.0  # its match is over; the games stay as records
UNTOUCHED_DAYS = 30.0  # any other
_HEAD = re.compile(
    r'\{"format": "[^"]*", "owner": "([^"\\]{0,100})", "played": (true|false), "over": (true|false)'
)


@dataclass
class TableFile:
    """What is in memory of a table's file.

    owner   the client that made the table
    played  has a person decided anything?
    over    is its match over?
    used    time of the last writing, in seconds since 1970
    size    bytes
    """

    owner: str
    played: bool
    over: bool
    used: float
    size: int

    def is_old(self, now: float) -> bool:
        """May it be removed?"""
        limit = OVER_DAYS if self.over else UNTOUCHED_DAYS if self.played else UNPLAYED_DAYS
        return now - self.used > 86400 * limit


@dataclass
class Storage:
    """The files of a folder, which only its owner can read.

    max_bytes  of all files
    tables     id -> the table's file
    games      id -> time and bytes of the file of finished games
    size       bytes of all files
    """

    folder: Path
    max_bytes: int = MAX_BYTES
    tables: dict[str, TableFile] = field(default_factory=dict)
    games: dict[str, tuple[float, int]] = field(default_factory=dict)
    size: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("tables", "games"):  # they hold hidden cards and hashes of tokens
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)
            (self.folder / name).chmod(0o700)
        for path, used, size in _files(self.folder / "tables", ".json"):
            with open_regular(path) as file:
                head = _HEAD.match(file.read(300).decode("utf-8", "replace"))
            owner, played, over = head.groups() if head else ("", "true", "false")
            self.tables[path.stem] = TableFile(owner, played == "true", over == "true", used, size)
        for path, used, size in _files(self.folder / "games", ".jsonl"):
            self.games[path.stem] = used, size
        self.size = sum(file.size for file in self.tables.values())
        self.size += sum(size for _, size in self.games.values())

    def table_path(self, name: str) -> Path:
        return self.folder / "tables" / f"{name}.json"

    def games_path(self, name: str) -> Path:
        return self.folder / "games" / f"{name}.jsonl"

    def written(self, name: str, file: TableFile, games_size: int | None) -> None:
        """A table's file was written, and its finished games unless their size is None."""
        before = self.tables.get(name)
        self.size += file.size - (before.size if before else 0)
        self.tables[name] = file
        if games_size is not None:
            self.size += games_size - self.games.get(name, (0.0, 0))[1]
            self.games[name] = file.used, games_size

    @property
    def full(self) -> bool:
        return len(self.tables) >= MAX_TABLES or self.size >= self.max_bytes

    def tables_of(self, client: str) -> int:
        """How many tables a client has made."""
        return sum(file.owner == client for file in self.tables.values())

    def removable(self, client: str, in_use: Collection[str]) -> list[Path]:
        """The files to remove so that a client can make a table, the oldest first: its own tables
        if it has too many, any tables if there are too many, and finished games last."""
        now = time.time()
        own, count, size = self.tables_of(client), len(self.tables), self.size
        own_goal = MAX_OWN * LEFT if own >= MAX_OWN else own
        count_goal = MAX_TABLES * LEFT if count >= MAX_TABLES else count
        size_goal = self.max_bytes * LEFT if size >= self.max_bytes else size
        paths: list[Path] = []
        for name, file in sorted(self.tables.items(), key=lambda item: (item[1].used, item[0])):
            if name in in_use or not file.is_old(now):
                continue
            mine = file.owner == client
            if (mine and own > own_goal) or count > count_goal or size > size_goal:
                paths.append(self.table_path(name))
                own, count, size = own - mine, count - 1, size - file.size
        for name, (_, bytes_) in sorted(self.games.items(), key=lambda item: item[1]):
            if size > size_goal and name not in in_use:
                paths.append(self.games_path(name))
                size -= bytes_
        return paths

    def forget(self, path: Path) -> None:
        """A file was removed."""
        if path.suffix == ".json":
            file = self.tables.pop(path.stem, None)
            self.size -= file.size if file else 0
        else:
            self.size -= self.games.pop(path.stem, (0.0, 0))[1]


def remove(paths: list[Path]) -> list[Path]:
    """Remove files. Returns those that no longer exist."""
    removed = []
    for path in paths:
        with contextlib.suppress(OSError):  # one that cannot be removed stays
            path.unlink(missing_ok=True)
            removed.append(path)
    return removed


def _files(folder: Path, suffix: str) -> Iterator[tuple[Path, float, int]]:
    """The files of a folder with their time and bytes."""
    for path in folder.iterdir():
        if path.suffix == suffix and path.is_file():
            with contextlib.suppress(OSError):  # removed by another program
                stat = path.stat()
                yield path, stat.st_mtime, stat.st_size
