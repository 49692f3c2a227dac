"""The options of a match, declared once: commands and the arena inherit them.

This module imports nothing that takes time, so that `oxx --help` answers at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from oxx_env.lib.options import Range


@dataclass(kw_only=True)
class TableOptions:
    """The options of one game."""

    players: Annotated[int, Range(2, 10)] = 4
    """Players at the table, 2 to 10."""
    rules: str = "base"
    """Rule set: base, color, positive or color+positive."""
    deck: str = "balanced"
    """Name of a shipped deck, or path of a deck's CSV."""


@dataclass(kw_only=True)
class MatchOptions(TableOptions):
    """The options of a match."""

    match: Annotated[int, Range(1, 1000)] = 1
    """Games of the match, points added up."""
