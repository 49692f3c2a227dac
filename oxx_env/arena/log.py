"""The log of an arena: a header with the setup, then one finished block a line."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from oxx_env.arena.blocks import Block, Setup
from oxx_env.lib.files import read_bounded

MOST_BYTES = 1 << 30


class Log:
    """A file of finished blocks, as a context manager.

    Opening it reads the blocks that are there; a last line that an interruption cut off is dropped,
    and its block is played again. Raises ValueError for a log of another setup or a damaged one,
    OSError for a file that cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str], setup: Setup) -> None:
        self.path, self.header = Path(path), setup.header()
        self.blocks: list[Block] = []
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Log:
        if self.path.exists() and not self.path.is_file():  # a device may have no end
            raise ValueError(f"{self.path} is no file; name a new one or a log to resume")
        first = (json.dumps(self.header) + "\n").encode()
        data = read_bounded(self.path, MOST_BYTES) if self.path.exists() else b""
        if first.startswith(data):  # new, empty, or cut off in the header
            kept = 0
        else:
            kept = data.rfind(b"\n") + 1
            self._read(data[:kept].decode("utf-8", "replace").splitlines())
        self._file = self.path.open("ab")
        self._file.truncate(kept)
        if kept == 0:
            self._write(first)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        with contextlib.suppress(OSError):  # a full disk was named when a block did not go there
            self._file.close()

    def append(self, block: Block) -> None:
        self._write(block.line().encode())

    def _write(self, line: bytes) -> None:
        assert self._file is not None
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:  # a full disk
            raise type(error)(error.errno, error.strerror, os.fspath(self.path)) from None

    def _read(self, lines: list[str]) -> None:
        try:
            found = json.loads(lines[0]) if lines else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("format") != self.header["format"]:
            raise ValueError(f"{self.path} is no arena log; name a new file or one to resume")
        for key, value in self.header.items():
            if found.get(key) != value:
                raise ValueError(
                    f"{self.path} was begun with {key} {json.dumps(found.get(key))}, this run has "
                    f"{json.dumps(value)}: name another log, or run with the same options"
                )
        for at, line in enumerate(lines[1:], start=2):
            try:
                self.blocks.append(self._block(json.loads(line)))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise ValueError(
                    f"{self.path}, line {at}: should be block {len(self.blocks)}; "
                    "remove the line and those after it, and they are played again"
                ) from error

    def _block(self, data: Any) -> Block:
        """The next block from a line as `Block.line` writes it."""
        lineups = tuple(tuple(lineup) for lineup in data["lineups"])
        block = Block(data["block"], lineups, data["points"], data["seconds"], data["decisions"])
        players, bots = self.header["players"], len(self.header["specs"])
        points = np.array(block.points)
        seconds, decisions = np.array(block.seconds), np.array(block.decisions)
        if not (
            block.number == len(self.blocks)
            and points.shape == (len(lineups), players, players)
            and seconds.shape == decisions.shape == (bots,)
            and points.dtype.kind == decisions.dtype.kind == "i"
            and seconds.dtype.kind in "if"
            and np.isfinite(seconds).all()
        ):
            raise ValueError("not the block expected here")
        return block
