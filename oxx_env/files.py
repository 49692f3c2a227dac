"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
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
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    except OSError as error:  # it names the file beside
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with os.fdopen(handle, mode, **form) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # whole on the disk before it takes the old one's place
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)  # mkstemp makes it private
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
