"""What all ways to play in the arena take."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from oxx_env.arena.blocks import Setup, Spec
from oxx_env.game import cards
from oxx_env.game.options import MatchOptions
from oxx_env.lib.options import Range, check

Progress = Callable[[int, int | None], None]

DEFAULT_GAMES = 1000


@dataclass(kw_only=True)
class Options(MatchOptions):
    """Options of `play`, `pairwise`, `league` and `compare`. Raises ValueError for wrong ones.

    Beside those below: `players` at the table (4; `pairwise`: 2), `rules` (`base`) and `match`, the
    games of a match (R13): points and victory are then the match's.
    """

    deck: cards.DeckSpec = "balanced"  # type: ignore[assignment]  # wider than a command's
    """Deck by name, path or cards; a function is asked once a deal."""
    games: Annotated[int | None, Range(1)] = None
    """Games to play, rounded up to whole blocks; None: 1000, with `until_width` no limit."""
    seed: Annotated[int, Range(0)] = 0
    """Of everything random."""
    workers: Annotated[int, Range(1)] = 1
    """Processes; with more than one, a script needs `if __name__ == "__main__":`."""
    log: str | os.PathLike[str] | None = None
    """JSON-lines file to resume from: a header with the setup, then the finished blocks."""
    own_code: bool = False
    """May specifications run code of files that they name (`py:`, `sb3:`)?"""
    progress: Progress | None = None
    """Called as progress(games played, games to play or None) after each block."""
    until_width: Annotated[float | None, Range(above=0, most=1)] = None
    """Play until the half-width of every win share's interval is at most this. Looked at only after
    50 blocks and each time their number has grown by a quarter: looking after every block would
    stop at lucky moments and make the intervals too narrow."""

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def of(cls, options: Options | int | None, players: int, changes: dict[str, Any]) -> Options:
        """Options with some fields changed; a number is that of the players, None the defaults for
        `players`. Raises TypeError for anything else and for unknown fields, ValueError."""
        if options is None or isinstance(options, int):
            return cls(**{"players": players if options is None else options, **changes})
        if not isinstance(options, Options):
            raise TypeError(
                "options are arena.Options, or named, play(specs, players=2, games=100), not"
                f" {options!r}"
            )
        return replace(options, **changes)

    def setup(self, mode: str, specs: Sequence[Spec]) -> Setup:
        """What is played; raises ValueError for a table that there is not."""
        table = self.players, self.rules, self.deck
        return Setup(mode, tuple(specs), *table, int(self.seed), self.match, self.own_code)

    def blocks(self, setup: Setup) -> int | None:
        """`games` as whole blocks; None: no limit."""
        games = self.games
        if games is None and self.until_width is not None:
            return None
        return -(-int(DEFAULT_GAMES if games is None else games) // setup.block_games)
