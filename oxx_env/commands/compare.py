"""`oxx compare`: is one bot better than another, in the same seats of the same deals?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Optional

from oxx_env.commands import OK, Report, _show
from oxx_env.commands.arena import INTERRUPTED, bots_table

if TYPE_CHECKING:
    from oxx_env import arena as arenas


@dataclass(kw_only=True)
class Run(Report):
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
    """Who fills the table: bots separated by commas, the last one fills what is left."""
    players: int = 4
    """Players at the table, 2 to 10."""
    rules: str = "base"
    """Rule set: base, color, positive or color+positive."""
    deck: str = "balanced"
    """Name of a shipped deck, or path of a deck's CSV."""
    games: Optional[int] = None
    """Games of each of the two, rounded up to whole blocks (default 1000; with --until-width: no
    limit)."""
    match: int = 1
    """Games a match (points are added up)."""
    workers: int = 1
    """Processes to play in; the result does not depend on it."""
    until_width: Optional[float] = None
    """Play until the 95 % interval of the difference in win share is this many to each side."""
    log: Optional[str] = None
    """File of finished blocks; the same command with the same file goes on where it ended."""

    def run(self) -> int:
        from oxx_env import arena

        bar = _show.Bar(self.json)
        code = OK
        try:
            result = arena.compare(
                self.a,
                self.b,
                against=self.against.split(","),
                players=self.players,
                rules=self.rules,
                deck=self.deck,
                games=self.games,
                seed=self.seed,
                match=self.match,
                workers=self.workers,
                log=self.log,
                until_width=self.until_width,
                progress=bar,
            )
        except arena.Interrupted as stop:
            result = stop.result
            code = INTERRUPTED
        finally:
            bar.close()
        if code:
            self.note("interrupted: this is what was finished")
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
        verdict = f"{a} and {b} are not told apart"
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
