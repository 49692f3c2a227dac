"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

_BESIDE = re.compile(r"\..{1,40}\.[0-9a-f]{16}")  # see `open_whole`


@contextlib.contextmanager
def open_whole(
    path: str | os.PathLike[str], mode: str = "w", private: bool = False
) -> Iterator[IO[Any]]:
    """A file to write that appears at `path` when all is written; until then the old one stays.

    `mode` is `w`, text in UTF-8, or `wb`. A `private` file is its owner's alone to read. What is no
    regular file (a device such as /dev/null, a pipe, a link) is never replaced, but written to as
    it stands. Raises OSError, naming `path`.
    """
    path = Path(path)
    form: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    if private:
        form["opener"] = lambda name, flags: os.open(name, flags, 0o600)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        with open(path, mode, **form) as file:
            yield file
        return
    # Made by `open`, so that the system itself gives the usual permissions: to ask for the umask
    # means to change it for a moment, for all threads. `x` fails where something is already there.
    beside = path.parent / f".{path.name[:40]}.{secrets.token_hex(8)}"
    try:
        file = open(beside, mode.replace("w", "x"), **form)  # noqa: SIM115
    except OSError as error:  # it names the file beside
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # whole on the disk before it takes the old one's place
        os.replace(beside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError) and error.filename is None and error.errno is not None:
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None  # disk full
        raise


def read_bounded(path: str | os.PathLike[str], most: int = 1 << 20) -> bytes:
    """A file's bytes. Raises ValueError for more than `most` and for what is no file (a device may
    have no end, a pipe no writer), OSError for one that cannot be read."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError("is no file")
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most:,} bytes")
    return data


def replace_between(page: str | os.PathLike[str], begin: str, end: str, text: str) -> None:
    """Put a text, with an empty line around it, between two marks of a page. Raises ValueError
    where one is missing, OSError."""
    before, first, rest = Path(page).read_text(encoding="utf-8").partition(begin)
    _, second, after = rest.partition(end)
    if not first or not second:
        raise ValueError(f"{page} lacks the marks {begin} and {end}")
    with open_whole(page) as file:
        file.write(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def remove_unfinished(folder: str | os.PathLike[str]) -> None:
    """Remove what `open_whole` had not finished in a folder, and below, when its process was
    killed. Nobody may be writing there."""
    for path in Path(folder).rglob(".*"):
        if _BESIDE.fullmatch(path.name) and path.is_file():
            path.unlink()
