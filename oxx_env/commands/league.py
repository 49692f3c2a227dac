"""`oxx league`: a rating of many bots from random line-ups."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Optional

from oxx_env.commands import Texts, UserError, _show
from oxx_env.commands._arena import ArenaReport, headline, milliseconds
from oxx_env.lib.extras import needed_by
from oxx_env.lib.files import open_atomic

if TYPE_CHECKING:
    from oxx_env import arena as arenas


@dataclass(kw_only=True)
class Run(ArenaReport):
    """Rate many bots: tables of random line-ups, OpenSkill rating, places, points and victories.

    Each bot is seated equally often; a bot sits several times at a table where there are fewer
    bots than seats. Every deal is played with all rotations of the seats. Win share, place and
    points depend on who else is in the league. The rating is OpenSkill's (Plackett-Luce) with its
    own 95 % interval; all other intervals are from blocks, as in oxx arena.
    """

    example: ClassVar[str] = "oxx league random greedy mc:30 mc:200 --players 4 --png league.png"
    names_bots: ClassVar[bool] = True

    specs: Texts
    """The bots, two or more."""
    png: Optional[str] = None
    """Draw the ratings with their intervals into this file."""

    def run(self) -> int:
        from oxx_env import arena

        if self.png is not None:
            with needed_by("--png"):
                import matplotlib  # noqa: F401  (say so before hours of play, not after)

            check_writable(self.png)
        result, code = self.play(arena.league, self.specs)
        self.report(result.to_dict(), league_table(result))
        if self.png is not None:  # last: a full disk should not cost the table
            draw(result, self.png)
            self.note(f"drawn: {self.png}")
        return code


def check_writable(path: str) -> None:
    """Raises UserError or OSError where the file could not be written, before hours of play."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "no such folder", folder)
    if not path or os.path.isdir(path):
        raise UserError(f"--png {path!r} should be the path of a file, for example league.png")
    as_it_stands = os.path.exists(path) and not os.path.isfile(path)  # a device, see `open_atomic`
    if not os.access(path if as_it_stands else folder, os.W_OK):
        raise PermissionError(13, "not to be written", path)


def by_rating(result: arenas.League) -> list[arenas.Rated]:
    """The best first."""
    return sorted(result.table, key=lambda row: -row.rating)


def league_table(result: arenas.League) -> str:
    """All bots, the best first."""
    rows = [
        [
            row.entry.spec,
            _show.interval(row.rating, row.rating_ci95, 2),
            _show.interval(row.entry.mean_rank, row.entry.rank_ci95, 2),
            _show.interval(row.entry.win_share, row.entry.ci95, 3),
            _show.interval(row.entry.mean_points, row.entry.points_ci95, 2),
            f"{row.entry.games:,}",
            milliseconds(result, row.entry.spec),
        ]
        for row in by_rating(result)
    ]
    headers = ["bot", "rating", "mean rank", "win share", "points", "games", "ms a decision"]
    middle = (result.players + 1) / 2
    note = (
        f"95 % intervals in brackets; parity: rank {middle:g}, win share {1 / result.players:.3f}"
    )
    return _show.table(headline(result), headers, rows) + "\n" + note


def draw(result: arenas.League, path: str) -> None:
    """Ratings with intervals as a PNG; the file appears whole or not at all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = by_rating(result)
    figure = Figure(figsize=(8, 1.5 + 0.4 * len(rows)), layout="constrained")
    axes: Any = figure.subplots()
    for height, row in enumerate(reversed(rows)):
        low, high = row.rating_ci95
        axes.plot([low, high], [height, height], color="0.5", linewidth=2)
        axes.plot([row.rating], [height], "o", color="tab:red")
        axes.annotate(
            f"win share {row.entry.win_share:.3f}",
            (row.rating, height),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(rows)), [row.entry.spec for row in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.2)
    axes.set_xlabel("OpenSkill rating (Plackett-Luce) with 95 % interval")
    axes.set_title(headline(result), fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    with open_atomic(path, "wb") as file:
        FigureCanvasAgg(figure).print_png(file)
