"""`oxx compare`: is one bot better than another, in the same seats of the same deals?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Optional

from oxx_env.commands import _show
from oxx_env.commands._arena import ArenaReport, bots_table
from oxx_env.lib.options import Range

if TYPE_CHECKING:
    from oxx_env import arena as arenas


@dataclass(kw_only=True)
class Run(ArenaReport):
    """Compare two bots in the same seats of the same deals, and report their difference.

    First A, then B plays every deal from every seat, among the bots of --against. The difference
    A minus B is taken deal by deal, so that lucky cards cancel; its interval is from blocks.
    """

    example: ClassVar[str] = "oxx compare mc:200 mc:30 --against greedy --players 4"
    names_bots: ClassVar[bool] = True

    a: str
    """The first bot."""
    b: str
    """The second bot."""
    against: str = "greedy"
    """The bots at the other seats, separated by commas; the last one fills the table."""
    games: Annotated[Optional[int], Range(1)] = None
    """Games of each of the two, rounded up to whole blocks (default 1000; with --until-width: no
    limit)."""
    until_width: Annotated[Optional[float], Range(above=0, most=1)] = None
    """Play until the 95 % interval of the difference in win share is this many to each side."""

    def run(self) -> int:
        from oxx_env import arena

        against = self.against.split(",")
        result, code = self.play(arena.compare, self.a, self.b, against=against)
        self.report(result.to_dict(), comparison_text(result))
        return code


def comparison_text(result: arenas.Comparison) -> str:
    """Both bots, their difference, and what it says."""
    a, b = (bot.spec for bot in result.bots)
    gap = result.difference
    low, high = gap.ci95
    if low > 0:
        verdict = f"{a} wins more than {b}"
    elif high < 0:
        verdict = f"{b} wins more than {a}"
    else:
        verdict = f"{a} and {b} do not differ clearly"
    return "\n".join(
        [
            bots_table(result),
            f"each among {', '.join(result.against)}, in the same seats of the same deals",
            "",
            f"{a} minus {b}, 95 % interval of the paired difference:",
            f"  win share  {_show.interval(gap.win_share, gap.ci95, 3)}",
            f"  points     {_show.interval(gap.mean_points, gap.points_ci95, 2)}",
            f"{verdict} against these opponents",
        ]
    )
