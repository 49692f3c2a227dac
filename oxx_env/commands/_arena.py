"""What `oxx arena`, `compare` and `league` share: options, the progress line, tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Optional, TypeVar

from oxx_env.commands import OK, Report, _show
from oxx_env.game.options import MatchOptions
from oxx_env.lib.options import Range
from oxx_env.lib.shell import INTERRUPTED

if TYPE_CHECKING:
    from oxx_env import arena as arenas

R = TypeVar("R")


@dataclass(kw_only=True)
class ArenaReport(MatchOptions, Report):
    """A command that plays in the arena; its fields are passed to `arena.Options` by name."""

    games: Annotated[Optional[int], Range(1)] = None
    """Games to play, rounded up to whole blocks (default 1000; with --until-width: no limit)."""
    workers: Annotated[int, Range(1)] = 1
    """Processes to play in; the result does not depend on it."""
    until_width: Annotated[Optional[float], Range(above=0, most=1)] = None
    """Play until the 95 % interval of every win share is this many to each side, e.g. 0.01."""
    log: Optional[str] = None
    """File of finished blocks; the same command with the same file goes on where it ended."""

    def play(self, play: Callable[..., R], *arguments: Any, **more: Any) -> tuple[R, int]:
        """The result of a function of the arena, after Ctrl-C of what was finished; the exit code.

        arguments, more  of the function, beside the options; bots in them were typed
        """
        from oxx_env import arena

        bar = _show.Bar(self.json)
        names = (field.name for field in fields(arena.Options))
        options = {name: getattr(self, name) for name in names if hasattr(self, name)}
        try:
            return play(*arguments, **more, **options, own_code=True, progress=bar), OK
        except arena.Interrupted as stop:
            result: R = stop.result
        finally:
            bar.close()
        self.note("interrupted: this is what was finished")
        return result, INTERRUPTED


def headline(result: arenas.Result) -> str:
    """Which games were played, and which way points count."""
    from oxx_env.game.scoring import direction

    match = f" in matches of {result.match}" if result.match > 1 else ""
    cheats = "; one of the bots sees hidden cards" if result.cheats else ""
    return (
        f"{result.players} players, {result.rules}, deck {result.deck}: "
        f"{result.games:,} games{match}, seed {result.seed}; {direction(result.rules)}{cheats}"
    )


def bots_table(result: arenas.Result) -> str:
    """Win share, points and thinking time of each bot."""
    rows = [
        [
            bot.spec,
            _show.interval(bot.win_share, bot.ci95, 3),
            _show.interval(bot.mean_points, bot.points_ci95, 2),
            milliseconds(result, bot.spec),
        ]
        for bot in result.bots
    ]
    headers = ["bot", "win share (95 %)", "points (95 %)", "ms a decision"]
    note = f"parity: {1 / result.players:.3f}, the win share of equal players"
    return _show.table(headline(result), headers, rows) + "\n" + note


def milliseconds(result: arenas.Result, spec: str) -> str:
    """Mean thinking time a decision."""
    each = result.timing["ms_per_decision"].get(spec)
    return "-" if each is None else f"{each:.3g}"
