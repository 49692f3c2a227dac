"""What a bot would do in a position, and what it expects of every legal action.

>>> import numpy as np
>>> from oxx_env.table import Table
>>> table = Table(players=2)
>>> table.deal(seed=1)
>>> options = advise(table.view(0), "mc:50", np.random.default_rng(0))
>>> [option.card for option in options], sum(option.choice for option in options)
([30, 39, 56, 99], 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from oxx_env import bots
from oxx_env.rules import FIRST_ROW, PASS
from oxx_env.views import View

EVALUATOR = "mc:1000"  # tells points and win shares for a bot that only knows its choice


@dataclass(frozen=True)
class Option:
    """One legal action.

    action     0-3 hand slot, 4-8 row
    card       number of the card to play, or that is being placed
    row        row 0-4; None where a card is chosen
    points     own points at the end of this game, expected, as the rulebook counts them
    win_share  share of the victory, expected, 0 to 1
    choice     is this what the bot would do?
    """

    action: int
    card: int
    row: int | None
    points: float
    win_share: float
    choice: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def advise(view: View, spec: str, rng: np.random.Generator) -> list[Option]:
    """Every legal action with what is expected of it, and the choice of the bot `spec`.

    A bot with an `evaluate` of its own (Monte Carlo, search) is asked for both, all actions on the
    same deals; in a close case search may play otherwise, since it halves as it goes. For any other
    bot `mc:1000` tells the expectations. Raises ValueError where the seat has nothing to decide, or
    for a bot that needs to see hidden cards.
    """
    bot: Any = bots.make(spec)
    if getattr(bot, "needs_state", False):
        raise ValueError(f"{spec!r} needs to see hidden cards and cannot give advice")
    legal = view.legal
    if legal == [PASS]:
        what = "the game is over" if view.phase == "over" else f"seat {view.seat} is not asked"
        raise ValueError(f"nothing to decide here: {what}")
    evaluator: Any = bot if hasattr(bot, "evaluate") else bots.make(EVALUATOR)
    values = list(evaluator.evaluate(view, rng))
    if evaluator is bot:
        choice = max(values, key=lambda value: value.value).action
    else:
        choice = int(bot.act(view, rng))
    return [
        Option(
            action=value.action,
            card=_card(view, value.action),
            row=value.action - FIRST_ROW if value.action >= FIRST_ROW else None,
            points=value.points,
            win_share=value.win_share,
            choice=value.action == choice,
        )
        for value in values
    ]


def basis(spec: str) -> str:
    """A sentence on what choice and figures rest on, where they need not agree; else nothing."""
    bot: Any = bots.make(spec)
    if not hasattr(bot, "evaluate"):
        return f"The choice is that of {spec}; the figures are from {EVALUATOR}."
    if not bot.outlook:
        return ""
    return f"The choice is by {bot.outlook}, the figures are for the end of the game."


def _card(view: View, action: int) -> int:
    if action < FIRST_ROW:
        return view.hand[action]
    assert view.card is not None
    return view.card


def table(options: Sequence[Option]) -> tuple[list[str], list[list[str]]]:
    """Header and lines for people."""
    header = ["", "expected points", "win share", ""]
    lines = [
        [
            f"card {option.card}" if option.row is None else f"row {option.row}",
            f"{option.points:.1f}",
            f"{100 * option.win_share:.0f} %",
            "best choice" if option.choice else "",
        ]
        for option in options
    ]
    return header, lines
