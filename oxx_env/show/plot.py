"""Figures of lines with intervals, readable in grey: each line has its own marker and dashes, and
its name at its end. Drawing functions take matplotlib's axes; only `panels` imports it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from oxx_env.lib.files import open_atomic

# Color from dark to light, marker, dashes.
STYLES = (
    ("#14285a", "o", "-"),
    ("#b03a2e", "s", "--"),
    ("#3c8d6e", "^", "-."),
    ("#d68910", "D", ":"),
    ("#7d5ba6", "v", (0, (6, 1, 1, 1, 1, 1))),
    ("#8a8a8a", "P", (0, (8, 3))),
)
REFERENCE = {"color": "0.6", "ls": ":", "lw": 1}  # the line that the others are held against
_LABEL = 11  # points from one name to the next


class Line(NamedTuple):
    """One line of a figure.

    label   its name, written at its end
    xs, ys  [N]
    bounds  [N, 2], interval of each y; empty: none is known
    parity  y that it is held against; None: there is none
    """

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    bounds: Sequence[Sequence[float]] = ()
    parity: float | None = None


def panels(count: int, width: float = 4.5, height: float = 4.0, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes [count], side by side; sizes in inches, `options` of `subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1 + width * count, height), layout="constrained")
    return figure, figure.subplots(1, count, squeeze=False, **options)[0]


def draw_lines(axes: Any, lines: Sequence[Line]) -> None:
    """Draw lines, their intervals, their parities (dotted) and their names."""
    for line, (color, marker, dashes) in zip(lines, _styles(len(lines)), strict=True):
        if not len(line.xs):
            continue
        errors = None
        if len(line.bounds):
            pairs = zip(line.ys, line.bounds, strict=True)
            errors = list(zip(*((y - low, high - y) for y, (low, high) in pairs), strict=True))
        axes.errorbar(
            line.xs, line.ys, errors, color=color, marker=marker, ls=dashes, ms=4, elinewidth=1
        )
        if line.parity is not None:
            axes.axhline(line.parity, **{**REFERENCE, "color": color})
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    _name_ends(axes, lines)


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure as a PNG that appears whole or not at all."""
    with open_atomic(path, "wb") as file:
        figure.savefig(file, format="png", dpi=120)


def _styles(count: int) -> list[Any]:
    return [STYLES[index % len(STYLES)] for index in range(count)]


def _name_ends(axes: Any, lines: Sequence[Line]) -> None:
    """Write each line's name at its end, from the lowest up, none over another."""
    low, high = axes.get_ylim()
    points = axes.get_window_extent().height * 72 / axes.figure.dpi
    gap = (high - low) * _LABEL / points
    styles = _styles(len(lines))
    least = float("-inf")
    drawn = [index for index, line in enumerate(lines) if len(line.ys)]
    for index in sorted(drawn, key=lambda k: lines[k].ys[-1]):
        line = lines[index]
        least = max(line.ys[-1], least + gap)
        axes.annotate(
            line.label,
            (line.xs[-1], line.ys[-1]),
            (8, (least - line.ys[-1]) / (high - low) * points),
            textcoords="offset points",
            color=styles[index][0],
            va="center",
            fontsize="small",
            bbox={"fc": "white", "ec": "none", "pad": 0.5},
        )
