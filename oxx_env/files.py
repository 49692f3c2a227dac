"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def open_whole(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write that appears at `path` when all is written; until then the old one stays.

    `mode` is `w`, text in UTF-8, or `wb`. What is no regular file (a device such as /dev/null, a
    pipe, a link) is never replaced, but written to as it stands. Raises OSError, naming `path`.
    """
    path = Path(path)
    form: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
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
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
