"""`oxx arena`: bots on the same deals, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from oxx_env.commands import Texts, UserError, _show
from oxx_env.commands._arena import ArenaReport, bots_table, headline

if TYPE_CHECKING:
    from oxx_env import arena as arenas


@dataclass(kw_only=True)
class Run(ArenaReport):
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
    pairwise: bool = False
    """Every bot among copies of every other, --games for each pair."""

    def run(self) -> int:
        from oxx_env import arena

        if self.pairwise:
            if self.log is not None:
                raise UserError(
                    "--log keeps one line-up and --pairwise plays many: give one of them"
                )
            pairs, code = self.play(arena.pairwise, self.specs)
            self.report(pairs.to_dict(), pairs_table(pairs))
        else:
            result, code = self.play(arena.play, self.specs)
            self.report(result.to_dict(), bots_table(result))
        return code


def pairs_table(result: arenas.Pairs) -> str:
    """Rows: one bot; columns: among copies of which; win share and half the interval."""

    def cell(pair: arenas.Pair | None) -> str:
        if pair is None:
            return "-"
        low, high = pair.entry.ci95
        return f"{pair.entry.win_share:.3f} ±{(high - low) / 2:.3f}"

    rows = [
        [spec, *(cell(result.pairs.get((one, other))) for other in range(len(result.specs)))]
        for one, spec in enumerate(result.specs)
    ]
    headers = ["win share among", *result.specs]
    note = f"parity: {1 / result.players:.3f}; ± is half the 95 % interval"
    return _show.table(headline(result), headers, rows) + "\n" + note
