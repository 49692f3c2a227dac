"""What a folder keeps, whose it is, and what goes when it is full.

FOLDER/tables/ID.json   a table: setup, seats, decisions
FOLDER/games/ID.jsonl   its finished games as records

Of each file a few figures are kept in memory, so that nothing is searched for when a table is made.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from oxx_env.lib.files import open_regular

MAX_TABLES = 20_000  # in files
MAX_OWN = 500  # of them, of one client
MAX_BYTES = 1_000_000_000  # of all files, unless something else is said
AFTER = 0.9  # how full a folder is left that was too full
UNPLAYED = 1.0  # days after which a table where no person has decided anything may go
OVER = 1.0  # days after which one whose match is over may; its games stay as records
UNTOUCHED = 30.0  # days after which any other may
_HEAD = re.compile(
    r'\{"format": "[^"]*", "owner": "([^"\\]{0,100})", "played": (true|false), "over": (true|false)'
)


@dataclass
class Kept:
    """A table's file.

    owner   the client that made it
    played  has a person decided anything?
    over    is its match?
    used    when it was written, in seconds since 1970
    size    bytes
    """

    owner: str
    played: bool
    over: bool
    used: float
    size: int

    def may_go(self, now: float) -> bool:
        days = (now - self.used) / 86400
        return days > (OVER if self.over else UNTOUCHED if self.played else UNPLAYED)


@dataclass
class Keeping:
    """The files of a folder; only its owner can read them.

    most    bytes of all files
    tables  id -> what is known of the table's file
    games   id -> when the file of its finished games was written, and its bytes
    """

    folder: Path
    most: int = MAX_BYTES
    tables: dict[str, Kept] = field(default_factory=dict)
    games: dict[str, tuple[float, int]] = field(default_factory=dict)
    size: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("tables", "games"):  # they hold hidden cards, and what tokens are known by
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)
            (self.folder / name).chmod(0o700)
        for path, used, size in _files(self.folder / "tables", ".json"):
            with open_regular(path) as file:
                head = _HEAD.match(file.read(300).decode("utf-8", "replace"))
            owner, played, over = head.groups() if head else ("", "true", "false")
            self.tables[path.stem] = Kept(owner, played == "true", over == "true", used, size)
        for path, used, size in _files(self.folder / "games", ".jsonl"):
            self.games[path.stem] = used, size
        self.size = sum(kept.size for kept in self.tables.values())
        self.size += sum(size for _, size in self.games.values())

    def table(self, name: str) -> Path:
        return self.folder / "tables" / f"{name}.json"

    def game(self, name: str) -> Path:
        return self.folder / "games" / f"{name}.jsonl"

    def note(self, name: str, kept: Kept, games: int | None) -> None:
        """A table was written, and its finished games too unless their bytes are None."""
        before = self.tables.get(name)
        self.size += kept.size - (before.size if before else 0)
        self.tables[name] = kept
        if games is not None:
            self.size += games - self.games.get(name, (0.0, 0))[1]
            self.games[name] = kept.used, games

    @property
    def full(self) -> bool:
        return len(self.tables) >= MAX_TABLES or self.size >= self.most

    def owns(self, client: str) -> int:
        """How many tables a client has made."""
        return sum(kept.owner == client for kept in self.tables.values())

    def to_go(self, client: str, in_use: Collection[str]) -> list[Path]:
        """The files that may go so that a client can make one more table, the oldest first: its
        own tables if it has too many, others' if there are too many, at last finished games."""
        now = time.time()
        old = sorted(
            (kept.used, name)
            for name, kept in self.tables.items()
            if kept.may_go(now) and name not in in_use
        )
        paths: list[Path] = []
        own, count, size = self.owns(client), len(self.tables), self.size
        too_many, too_large = count >= MAX_TABLES, size >= self.most
        most_own = MAX_OWN * AFTER if own >= MAX_OWN else own
        for _, name in old:
            kept = self.tables[name]
            mine = kept.owner == client and own > most_own
            if (
                mine
                or (too_many and count > MAX_TABLES * AFTER)
                or (too_large and size > self.most * AFTER)
            ):
                paths.append(self.table(name))
                own -= kept.owner == client
                count, size = count - 1, size - kept.size
        for name, (_, bytes_) in sorted(self.games.items(), key=lambda item: item[1]):
            if not too_large or size <= self.most * AFTER:
                break
            if name not in in_use:
                paths.append(self.game(name))
                size -= bytes_
        return paths

    def gone(self, path: Path) -> None:
        """A file was removed."""
        if path.suffix == ".json":
            kept = self.tables.pop(path.stem, None)
            self.size -= kept.size if kept else 0
        else:
            self.size -= self.games.pop(path.stem, (0.0, 0))[1]


def remove(paths: list[Path]) -> list[Path]:
    """Remove files, in a thread of its own; those that are gone now."""
    gone = []
    for path in paths:
        with contextlib.suppress(OSError):  # it must stay
            path.unlink(missing_ok=True)
            gone.append(path)
    return gone


def _files(folder: Path, suffix: str) -> Iterator[tuple[Path, float, int]]:
    """The files of a folder with their time and bytes."""
    for path in folder.iterdir():
        if path.suffix == suffix and path.is_file():
            with contextlib.suppress(OSError):  # somebody else has removed it
                about = path.stat()
                yield path, about.st_mtime, about.st_size
