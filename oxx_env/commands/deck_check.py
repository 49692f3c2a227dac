"""`oxx deck check`: is this CSV a deck, and what is in it?"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

from oxx_env.commands import FAILED, OK, UNUSABLE, Report


@dataclass(kw_only=True)
class Run(Report):
    """Describe a deck, and name every fault of a bad one by line.

    A deck is a CSV with the header number,blue,yellow,green,red,black,white and one line for each
    of the cards 1 to 110: the number, then how many heads of each color the card shows (0 to 7, at
    least one in all). The cards 52 and 104 are Barons: one head of each color. It is read as
    spreadsheets write it: commas, semicolons or tabs, the columns in any order and named in
    English, German, French or Chinese, an empty cell for 0.

    Exit code 0: a good deck. 1: a deck with faults. 2: no deck at all (no such file, no access,
    not text, empty, or nothing like a deck in it).
    """

    example: ClassVar[str] = "oxx deck check my-deck.csv"

    file: str
    """Path of the CSV, or the name of a shipped deck."""

    def run(self) -> int:
        from oxx_env.game import cards

        try:
            deck = cards.load_deck(self.file)
        except cards.DeckError as error:
            return self._bad(error.faults, error.readable)
        figures = cards.describe(deck)
        data = {"file": self.file, "name": cards.deck_name(self.file), "ok": True, "faults": []}
        self.report({**data, "deck": figures}, f"{self.file}: a good deck\n\n{_table(figures)}")
        return OK

    def _bad(self, faults: tuple[Any, ...], readable: bool) -> int:
        """Name all faults: those of a deck are the result, a file without one is a mistake."""
        listed = [{"line": fault.line, "message": fault.message} for fault in faults]
        data = {"file": self.file, "name": None, "ok": False, "faults": listed, "deck": None}
        text = "\n".join(
            f"{self.file}{'' if fault.line is None else f':{fault.line}'}: {fault.message}"
            for fault in faults
        )
        if not readable:
            print(f"oxx: {text}", file=sys.stderr)
            if self.json:
                self.report(data, "")
            return UNUSABLE
        count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
        self.report(data, f"{text}\n{self.file}: {count}, not a deck to play with")
        return FAILED


def _table(figures: dict[str, Any]) -> str:
    """The figures of `cards.describe` as text."""
    colors = figures["heads_by_color"]
    types = ", ".join(f"{count} {kind}" for kind, count in figures["types"].items())
    by_heads = ", ".join(
        f"{count} with {heads} head{'' if heads == '1' else 's'}"
        for heads, count in figures["cards_by_heads"].items()
    )
    width = max(map(len, colors)) + 2
    rows = [
        f"cards   {figures['cards']}: {by_heads}",
        f"colors  {figures['mono']} cards show one color, {figures['mixed']} several",
        f"types   {types} (same letter = same color; without the two Barons)",
        f"heads   {figures['heads']} in all",
        "",
        f"{'':8}" + "".join(f"{color:>{width}}" for color in colors),
        "heads   " + "".join(f"{count:>{width}}" for count in colors.values()),
        "cards   " + "".join(f"{count:>{width}}" for count in figures["cards_by_color"].values()),
    ]
    return "\n".join(rows)
