"""`oxx record`: bots play games, written down card by card."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import IO, Annotated, Any, ClassVar

from oxx_env.commands import OK, Command
from oxx_env.game.options import MatchOptions
from oxx_env.lib.options import Range


@dataclass(kw_only=True)
class Run(MatchOptions, Command):
    """Let bots play games and write them down as JSON lines.

    One game a line (`oxx-game/1`): deal, every card played, every placement, scores. `oxx replay`
    checks and prints them. The same command writes the same bytes, unless a bot has a time budget.
    """

    example: ClassVar[str] = (
        "oxx record --players 4 --bots greedy,random --games 10 --output games.jsonl"
    )
    names_bots: ClassVar[bool] = True

    bots: str = "random"
    """Bots by seat, separated by commas; the last one fills the table."""
    games: Annotated[int, Range(1)] = 1
    """Games to play, rounded up to whole matches."""
    output: str = ""
    """File to write, which appears when all games are played; empty: stdout."""

    def run(self) -> int:
        from oxx_env.commands._seats import at_seats
        from oxx_env.game.table import Table
        from oxx_env.lib.files import open_atomic

        table = Table(self.players, self.rules, self.deck, self.match)
        seated = at_seats(self.bots, self.players)
        if not self.output:
            self._write(sys.stdout, table, seated)
            return OK
        with open_atomic(self.output) as file:
            count = self._write(file, table, seated)
        self.note(f"{count} game{'s' if count != 1 else ''} written to {self.output}")
        return OK

    def _write(self, file: IO[str], table: Any, seated: list[Any]) -> int:
        """Play match after match and write their games; returns how many."""
        from oxx_env.lib.seeding import bot_rng, game_seed
        from oxx_env.notation.records import play_match, records_of, write_record

        written = 0
        for block in range(-(-self.games // self.match)):
            rngs = [bot_rng(self.seed, block, 0, seat) for seat in range(self.players)]
            table.deal(game_seed(self.seed, block))
            play_match(table, seated, rngs)
            for record in records_of(table, f"{self.seed}-{block}"):
                write_record(file, record)
                written += 1
        return written
