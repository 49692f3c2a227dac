"""Files: read within bounds, written whole or not at all.

Whatever is read from a path goes through this module (`tests/test_texts.py`): regular files only,
and never more bytes than expected.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import secrets
import stat
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What readers of archives raise for one that is spoiled.
_SPOILED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
)
_BESIDE = re.compile(r"\..{1,40}\.[0-9a-f]{16}")  # see `open_atomic`


@contextlib.contextmanager
def open_atomic(
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


@contextlib.contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to read bytes from. Raises ValueError for what is no regular file (a device may have
    no end, a pipe no writer), OSError for one that cannot be read."""
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise ValueError("is no file")
    with os.fdopen(handle, "rb") as file:
        yield file


def read_bounded(path: str | os.PathLike[str], most: int = 1 << 20) -> bytes:
    """A file's bytes. Raises ValueError for more than `most` and for what is no regular file,
    OSError for one that cannot be read."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most:,} bytes")
    return data


def read_text(path: str | os.PathLike[str], most: int = 1 << 20) -> str:
    """A file's text, which is UTF-8. Raises ValueError and OSError as `read_bounded`."""
    try:
        return read_bounded(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from None


def read_json(path: str | os.PathLike[str], most: int = 1 << 20) -> Any:
    """The data of a JSON file. Raises ValueError, also for a text nested too deep, and OSError."""
    try:
        return json.loads(read_text(path, most))
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_arrays(
    path: str | os.PathLike[str],
    most: int = 1 << 30,
    only: Sequence[str] = (),
    packed: bool = False,
) -> dict[str, NDArray[Any]]:
    """The arrays of a file that `np.savez` wrote, or `only` those of these names.

    Raises ValueError for what does not hold arrays of at most `most` bytes together. One that is
    packed, which could be a thousand times as large as it looks, is refused unless `packed` ones
    are expected. Raises OSError.
    """
    arrays: dict[str, NDArray[Any]] = {}
    with open_regular(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                for info in archive.infolist():
                    name = info.filename.removesuffix(".npy")
                    if only and name not in only:
                        continue
                    most -= info.file_size
                    if info.compress_type != zipfile.ZIP_STORED and not packed:
                        raise ValueError(f"{name} is compressed")
                    if most < 0:
                        raise ValueError("the arrays are too large")
                    with archive.open(info) as member:
                        arrays[name] = _array(name, member, info.file_size)
        except _SPOILED as error:
            raise ValueError(f"no file of arrays: {error}") from None
    return arrays


def _array(name: str, member: IO[bytes], size: int) -> NDArray[Any]:
    """An array as `np.save` writes it, in so many bytes."""
    import numpy as np

    version = np.lib.format.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} is no array")
    read = np.lib.format.read_array_header_1_0 if version[0] == 1 else None
    try:
        header = (read or np.lib.format.read_array_header_2_0)(member)
    except (TypeError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        raise ValueError(f"{name} has a header that cannot be read") from None
    shape, by_columns, dtype = header
    if dtype.hasobject:
        raise ValueError(f"{name} holds objects, not numbers")
    if not dtype.itemsize:  # of such there can be any number in no bytes
        raise ValueError(f"{name} holds nothing")
    if not all(type(length) is int for length in shape):
        raise ValueError(f"{name} has no shape")
    data = member.read()
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"{name} has not the size that it promises")
    if not data:
        return np.zeros(shape, dtype)
    flat = np.frombuffer(bytearray(data), dtype)
    return flat.reshape(shape, order="F" if by_columns else "C")


def replace_between(page: str | os.PathLike[str], begin: str, end: str, text: str) -> None:
    """Put a text, with an empty line around it, between two marks of a page. Raises ValueError
    where one is missing, OSError."""
    before, first, rest = read_text(page, 1 << 24).partition(begin)
    _, second, after = rest.partition(end)
    if not first or not second:
        raise ValueError(f"{page} lacks the marks {begin} and {end}")
    with open_atomic(page) as file:
        file.write(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def remove_unfinished(folder: str | os.PathLike[str]) -> None:
    """Remove what `open_atomic` had not finished in a folder, and below, when its process was
    killed. No other process may be writing there."""
    for path in Path(folder).rglob(".*"):
        if _BESIDE.fullmatch(path.name) and path.is_file():
            path.unlink()
