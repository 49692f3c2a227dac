"""`oxx advise`: what to do in a position, and what to expect of each action."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from oxx_env.bots import ADVISER
from oxx_env.commands import OK, Report, UserError
from oxx_env.lib.files import read_text

if TYPE_CHECKING:
    from oxx_env.bots.advice import Advice
    from oxx_env.game.views import View

MOST = 1 << 20  # letters of an input


@dataclass(kw_only=True)
class Run(Report):
    """What would a bot do here, and what does it expect of each legal action?

    For each legal card or row, the best first: how much worse than the choice it is, with twice
    the standard error of that (about equal: within it), the expected own points at the end of the
    game and the expected share of the victory. All are tried on the same deals of what is hidden,
    as many as are needed and at most as many as the bot's name says; the same seed gives the same
    advice, except where the bot has a time for a decision (search:champion:500ms).

    A position is typed as words and card numbers: the rule set, players, your seat, the five rows
    (cards oldest first, joined by hyphens), your hand and what else you know, as far as you know
    it. In the row phase, revealed gives seat:card of the cards not yet placed.

        base 4p seat 0 | rows 12-71 7 55-88-2 41 60 | hand 3 17 52 90
        color 3p seat 1 | rows 12-71 7 25-92 41 60 | hand 3 17 90 | revealed 1:46 0:99
    """

    example: ClassVar[str] = (
        'oxx advise "4p seat 0 | rows 12 7 31 20 46 | hand 3 17 52 88" --bot mc:1000:value=win'
    )
    names_bots: ClassVar[bool] = True

    position: str
    """The position in quotes; or the path of a file with it, or - to read it from the input. The
    JSON of view.to_dict() will do as well."""
    bot: str = ADVISER
    """The bot that is asked."""
    deck: str = ""
    """The deck, a shipped name or the path of a CSV; empty: the one the position names, else
    balanced."""

    def run(self) -> int:
        import numpy as np

        from oxx_env.bots import advice
        from oxx_env.commands._seats import fair
        from oxx_env.game.scoring import direction
        from oxx_env.lib import texts
        from oxx_env.notation import position
        from oxx_env.show import render

        bot = fair(f"--bot {self.bot}", self.bot)
        view = position.read_position(self._read(), self.deck or None)
        found = advice.advise(view, bot, np.random.default_rng(self.seed))
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        columns = texts.terminal_columns()
        header, rows = advice.table(found)
        lines = [render.text(view, color=color, columns=columns), ""]
        lines += texts.aligned([header, *rows])
        lines.append(f"({self.bot}; {direction(view.rules)})")
        lines += advice.lines(found, bot)
        self.report(self._data(view, found), texts.fold("\n".join(lines), columns))
        return OK

    def _read(self) -> str:
        if self.position == "-":
            text = sys.stdin.read(MOST + 1)
            if len(text) > MOST:
                raise UserError(f"the input is larger than {MOST:,} letters; a position has few")
            return text
        try:
            is_file = bool(self.position) and Path(self.position).exists()
        except (OSError, ValueError):  # a text that is too long for a path
            is_file = False
        if is_file:
            try:
                return read_text(self.position)
            except ValueError as error:
                raise UserError(f"{self.position}: {error}") from None
        if len(self.position.split()) == 1 and not self.position.startswith("{"):
            raise UserError(
                f"{self.position}: no such file, and no position, which has several words: "
                "4p rows 12 7 31 20 46 hand 3 17 52 88"
            )
        return self.position

    def _data(self, view: View, found: Advice) -> dict[str, Any]:
        from oxx_env.notation import position

        return {
            "position": position.to_text(view),
            "bot": self.bot,
            "seat": view.seat,
            "phase": view.phase,
            "actions": [option.to_dict() for option in found],
            "choice": found.choice.action,
            "clear": found.clear,
        }
