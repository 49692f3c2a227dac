"""Talking with a person in a terminal: what `oxx play` and `oxx track` share.

Colors and frames come from rich where it is installed and the output is a terminal; without it,
or in plain mode, everything is said in plain lines that a screen reader can read out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from oxx_env.game.cards import card_text, letters
from oxx_env.game.views import View
from oxx_env.lib.texts import aligned, fold, printable, terminal_columns
from oxx_env.show import render


class Quit(Exception):
    """The person wants to stop: `q`, Ctrl-C or the end of the input, at any prompt."""


class Terminal:
    """Says and asks.

    plain   no colors, no layout: one sentence a line
    color   heads in colors; by default where the output is a terminal and NO_COLOR is not set
    """

    def __init__(self, plain: bool = False, color: bool | None = None) -> None:
        self.plain = plain
        if color is None:
            color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self.color = color and not plain
        self._console: Any = None
        if self.color:
            try:
                from rich.console import Console
            except ImportError:
                return
            self._console = Console(highlight=False)

    @property
    def columns(self) -> int | None:
        """Places in a line of the terminal; None where there is none, or in plain mode."""
        return None if self.plain else terminal_columns()

    def say(self, text: str = "") -> None:
        """Print lines; one that is too long for the terminal goes on in the next, indented."""
        print(fold(text, self.columns), flush=True)

    def heading(self, text: str) -> None:
        """Begin something new."""
        if self._console is not None:
            self._console.rule(text, align="left")
        else:
            self.say(text if self.plain else f"── {text} ".ljust(72, "─"))

    def show(self, view: View, names: Sequence[str]) -> None:
        """The table."""
        if self.plain:
            self.say(render.sentences(view, names))
        else:
            self.say(render.text(view, self.color, names, actions=False, columns=self.columns))
        self.say()

    def table(self, header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        """A few lines in columns; in plain mode a sentence each."""
        if self.plain:
            for line in lines:
                self.say(
                    ", ".join(
                        f"{h} {x}" if h else x for h, x in zip(header, line, strict=True) if x
                    )
                )
            return
        if self._console is not None:
            from rich.table import Table
            from rich.text import Text

            table = Table(*header, box=None, pad_edge=False, header_style="bold")
            for line in lines:
                table.add_row(*(Text(cell) for cell in line))
            self._console.print(table)
            return
        for row in aligned([header, *lines]):
            self.say(row)

    def ask(self, prompt: str) -> str:
        """What the person types, without spaces around it. Raises `Quit`."""
        try:
            answer = input(printable(f"{prompt} "))  # past stdout, where there is a line to edit
        except (EOFError, KeyboardInterrupt):
            print(flush=True)
            raise Quit from None
        except UnicodeDecodeError:
            self.say("That was no text.")
            return ""
        answer = answer.strip()
        if answer.lower() in ("q", "quit", "exit"):
            raise Quit
        return answer

    def card(self, number: int, deck: Sequence[Sequence[int]]) -> str:
        """A card in a sentence: number and heads."""
        heads = deck[number - 1]
        if self.plain:
            return f"{number} with {render.in_words(heads)}"
        if self.color:
            return f"{number} {render.paint(letters(heads))}"
        return card_text(number, heads)


# --- what happened ------------------------------------------------------------------------------


def tell_cards(
    cards: Sequence[int], names: Sequence[str], deck: Sequence[Sequence[int]], terminal: Terminal
) -> str:
    """One line: who played what, lowest number first."""
    order = sorted(zip(cards, names, strict=True))
    return "; ".join(f"{name}: {terminal.card(number, deck)}" for number, name in order)
