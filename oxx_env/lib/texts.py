"""Text in messages and on the terminal: in lines that fit; from elsewhere also short, printable."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

MOST_OF_A_MESSAGE = 4000  # letters; what a person reads, with a position and its mark

# Control characters (a line's end and tab aside), invisible ones, those that turn the direction of
# a text, and halves of a pair: what moves a cursor, sets a title, or shows another text than it is.
_UNPRINTABLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{_UNPRINTABLE}]")
_COLORED = re.compile(rf"(\x1b\[[0-9;]*m)|[{_UNPRINTABLE}]")  # 1: our own colors


def printable(text: str) -> str:
    """The text with each character that a terminal would obey, or not show, as JSON writes it.

    >>> printable("a\\x1b]0;title")
    'a\\\\u001b]0;title'
    """
    return _HIDDEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    if found.lastindex:
        return found.group()
    # As in JSON, so that what is printed as JSON still is.
    code = ord(found.group())
    return f"\\u{code:04x}" if code < 0x10000 else json.dumps(found.group())[1:-1]


def short(value: Any, limit: int = 40) -> str:
    """A value as JSON for a message, printable and cut to a readable length."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**limit:
        return "a huge number"
    try:
        if isinstance(value, str):
            value = value[: limit + 1]
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return cut(printable(text), limit)


def cut(text: str, limit: int) -> str:
    """The beginning of a text that is longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def counted(number: int, what: str) -> str:
    """So many things in words.

    >>> counted(1, "card"), counted(3, "card")
    ('1 card', '3 cards')
    """
    return f"{number} {what}{'' if abs(number) == 1 else 's'}"


def message(error: BaseException | str) -> str:
    """The text of an error for a person: printable, and no longer than a page."""
    return printable(cut(str(error), MOST_OF_A_MESSAGE))


_COLOR = re.compile(r"\x1b\[[0-9;]*m")
# Where a line may be broken: after a clause; else between words, but not between a number and what
# it counts or names: `row 3`, `12 points`.
_CLAUSE = re.compile(r"(?<=;) +(?=\S)")
_WORD = re.compile(r" {2,}(?=\S)|(?<=[^\w\s]) (?=\S)|(?<=[^\W\d]) (?=[^\s\d])")


def width(text: str) -> int:
    """Places a text takes on a line, its colors aside."""
    return len(_COLOR.sub("", text))


def terminal_columns() -> int | None:
    """Places in a line of the terminal; None where stdout is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fold(text: str, columns: int | None) -> str:
    """Lines no longer than so many columns, as far as they can be broken; what follows is indented.

    columns  None: the lines stay as they are

    >>> print(fold("48 B: row 1 (takes 12); row 2", 24))
    48 B: row 1 (takes 12);
        row 2
    """
    if columns is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _folded(line, columns))


def _folded(line: str, columns: int) -> list[str]:
    if width(line) <= columns:
        return [line]
    body = line.lstrip(" ")
    first = line[: len(line) - len(body)]
    rest = first + "    "
    parts = [
        part
        for clause in _CLAUSE.split(body)
        for part in ([clause] if width(rest + clause) <= columns else _WORD.split(clause))
    ]
    return packed(first, parts, columns, indent=rest)


def packed(
    start: str, parts: Sequence[str], columns: int | None, between: str = " ", indent: str = ""
) -> list[str]:
    """Parts that are not broken, side by side in lines no longer than so many columns.

    start, indent  what the first line and all others begin with
    columns        None: one line
    """
    lines = [start + "".join(parts[:1])]
    for part in parts[1:]:
        longer = lines[-1] + between + part
        if columns is None or width(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(indent + part)
    return lines


def aligned(
    rows: Sequence[Sequence[str]], between: str = "  ", numbers: bool = False
) -> list[str]:
    """Lines of cells, each column as wide as its widest cell.

    numbers  all columns but the first are aligned to the right

    >>> aligned([["bot", "points"], ["greedy", "1.5"]], " ", numbers=True)
    ['bot    points', 'greedy    1.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if numbers and column else "<" for column in range(len(widths))]
    cells = [
        [f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)]
        for row in rows
    ]
    return [between.join(row).rstrip() for row in cells]


class _Printable:
    """A stream that writes nothing that a terminal would obey, besides our own colors."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        colors = stream.isatty() or bool(os.environ.get("FORCE_COLOR"))
        self._pattern = _COLORED if colors else _HIDDEN

    def write(self, text: str) -> int:
        self.stream.write(self._pattern.sub(_escaped, text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def printable_output() -> Iterator[None]:
    """Within, everything written to stdout and stderr is printable."""
    before = sys.stdout, sys.stderr
    streams = [s if isinstance(s, _Printable) or s is None else _Printable(s) for s in before]
    sys.stdout, sys.stderr = cast(list[Any], streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unfiltered(stream: IO[str]) -> IO[str]:
    """The stream itself, for output that moves the cursor on purpose and holds figures only."""
    return stream.stream if isinstance(stream, _Printable) else stream
