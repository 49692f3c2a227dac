"""`oxx arena`: bots on the same deals, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Optional

from oxx_env.commands import OK, Report, Texts, UserError, _show
from oxx_env.game.scoring import direction

if TYPE_CHECKING:
    from oxx_env import arena as arenas

INTERRUPTED = 130  # 128 + SIGINT


@dataclass(kw_only=True)
class Run(Report):
    """Play bots against each other on the same deals, seats rotated, with 95 % intervals.

    Every deal is played once for each rotation of the seats; these games are one block, and blocks
    are the unit of the intervals. Ties split the victory. The bots sit in the order given, the last
    one fills the table, and its row then is the mean of one of its seats; a bot given twice is
    shown twice. With --match, points and victory are the match's.
    """

    example: ClassVar[str] = "oxx arena mc:200 greedy --players 4 --games 2000 --workers 2"
    names_bots: ClassVar[bool] = True

    specs: Texts
    """The bots, at most one for each seat."""
    players: int = 4
    """Players at the table, 2 to 10."""
    rules: str = "base"
    """Rule set: base, color, positive or color+positive."""
    deck: str = "balanced"
    """Name of a shipped deck, or path of a deck's CSV."""
    games: Optional[int] = None
    """Games to play, rounded up to whole blocks (default 1000; with --until-width: no limit)."""
    match: int = 1
    """Games a match (points are added up)."""
    workers: int = 1
    """Processes to play in; the result does not depend on it."""
    until_width: Optional[float] = None
    """Play until the 95 % interval of every win share is this many to each side, e.g. 0.01."""
    log: Optional[str] = None
    """File of finished blocks; the same command with the same file goes on where it ended."""
    pairwise: bool = False
    """Every bot among copies of every other, --games for each pair."""

    def run(self) -> int:
        from oxx_env import arena

        bar = _show.Bar(self.json)
        options: dict[str, Any] = {
            "players": self.players,
            "rules": self.rules,
            "deck": self.deck,
            "games": self.games,
            "seed": self.seed,
            "match": self.match,
            "workers": self.workers,
            "until_width": self.until_width,
            "progress": bar,
        }
        if self.pairwise and self.log is not None:
            raise UserError("--log keeps one line-up and --pairwise plays many: give one of them")
        code = OK
        try:
            if self.pairwise:
                pairs = arena.pairwise(self.specs, **options)
            else:
                result = arena.play(self.specs, **options, log=self.log)
        except arena.Interrupted as stop:
            result = pairs = stop.result
            code = INTERRUPTED
        finally:
            bar.close()
        if code:
            self.note("interrupted: this is what was finished")
        if self.pairwise:
            self.report(pairs.to_dict(), pairs_table(pairs))
        else:
            self.report(result.to_dict(), bots_table(result))
        return code


def headline(result: arenas.Result) -> str:
    """What was played, in one line."""
    match = f" in matches of {result.match}" if result.match > 1 else ""
    cheats = "; somebody sees hidden cards" if result.cheats else ""
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


def pairs_table(result: arenas.Pairs) -> str:
    """Rows: one of them; columns: among copies of them; win share and half-width."""
    count = len(result.specs)
    rows = []
    for one in range(count):
        cells = []
        for other in range(count):
            pair = result.pairs.get((one, other))
            if pair is None:
                cells.append("-")
                continue
            low, high = pair.entry.ci95
            cells.append(f"{pair.entry.win_share:.3f} ±{(high - low) / 2:.3f}")
        rows.append([result.specs[one], *cells])
    headers = ["win share among", *result.specs]
    note = f"parity: {1 / result.players:.3f}; ± is half the 95 % interval"
    return _show.table(headline(result), headers, rows) + "\n" + note
