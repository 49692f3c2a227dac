"""How commands show results: a table on stdout, the progress on stderr."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from io import StringIO

from oxx_env.lib.texts import aligned, unfiltered


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as text: on a terminal drawn by rich where it is installed, else with plain letters.

    The first column is a text, all others are figures.
    """
    drawn = _drawn(headers, rows) if sys.stdout.isatty() else None
    if drawn is None:
        head, *lines = aligned([headers, *rows], "   ", numbers=True)
        drawn = [head, "─" * max(map(len, (head, *lines))), *lines]
    return "\n".join([title, "", *drawn])


def _drawn(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str] | None:
    """The lines with colors, no wider than the terminal; None without rich."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return None
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, header in enumerate(headers):
        drawn.add_column(
            Text(header), justify="right" if index else "left", no_wrap=index > 0, overflow="fold"
        )
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    out = StringIO()
    width = max(shutil.get_terminal_size().columns, 40)
    Console(file=out, width=width, force_terminal=True).print(drawn)
    return [line.rstrip() for line in out.getvalue().strip("\n").splitlines()]


def interval(mean: float, bounds: tuple[float, float], digits: int) -> str:
    """`0.512 (0.481 to 0.543)`."""
    low, high = bounds
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


class Bar:
    """Progress on one line of the terminal; silent where stderr is none, or with `quiet`."""

    WIDTH = 30
    EVERY = 0.2  # seconds

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet or not sys.stderr.isatty()
        self._start = self._last = time.monotonic()
        self._first: int | None = None  # done when this began to count: after starting, compiling
        self._length = 0

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._start, self._first = now, done
        if self._quiet or (now - self._last < self.EVERY and done != total):
            return
        self._last = now
        rate = (done - self._first) / max(now - self._start, 1e-9)
        text = f"{done:,} games" + (f", {rate:,.0f} a second" if rate else "")
        if total:
            full = min(self.WIDTH, self.WIDTH * done // total)
            bar = "#" * full + "." * (self.WIDTH - full)
            text = f"[{bar}] {done:,} of {total:,} games"
            if rate:
                text += f", {max(total - done, 0) / rate:,.0f} s left"
        self._write(text)

    def close(self) -> None:
        """Take the line away."""
        if self._length:
            self._write("")

    def _write(self, text: str) -> None:
        out = unfiltered(sys.stderr)
        print("\r" + text.ljust(self._length) + "\r" * (not text), end="", file=out, flush=True)
        self._length = len(text)
