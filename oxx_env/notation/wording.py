"""The rules, placements and choices in words: what `oxx play`, `oxx track` and `oxx serve` say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from oxx_env.game.rules import FIRST_ROW, ROWS, counts_victory_points, heads_taken, matching_rows
from oxx_env.game.views import View
from oxx_env.lib.texts import counted

FULL_ROW = 5  # cards of a row before the sixth (R7)

RULES = """All choose a card in secret and reveal together. Cards are placed from the lowest number
to the highest, each at the end of a row whose last card shares a color with it; with several such
rows its player picks one. The numbers mean nothing else. 52 and 104 are Barons: all six colors.
{limits}
{misfit}
{goal}"""
LIMITS = {
    False: "The sixth card of a row, or one that makes six heads of a color in it, takes the row.",
    True: "A card that makes six heads of one color in its row takes the row, however long it is.",
}
MISFIT = {
    False: "A card that fits no row takes any one row, its player's choice, and starts it anew.",
    True: "A card that fits no row goes under its player's draw pile.",
}
GOAL = {
    False: "Every head taken is one point. Fewest points win.",
    True: "Every head taken is one point, every head still in hand or pile at the end costs one. "
    "The game ends when a player is out of cards. Most points win.",
}


def rules_text(rules: str) -> str:
    """The rule set in a few lines."""
    color, positive = "color" in rules, counts_victory_points(rules)
    return RULES.format(limits=LIMITS[color], misfit=MISFIT[positive], goal=GOAL[positive])


def taking_clause(
    number: int, taken: Sequence[int], rules: str, deck: Sequence[Sequence[int]]
) -> str:
    """The clause by which a card takes a row: `R7` (sixth card), `R8` (six heads) or `R9` (fits no
    row). `deck` [110][6] are the heads by card; `taken` is in the order of the row."""
    if not any(a and b for a, b in zip(deck[number - 1], deck[taken[-1] - 1], strict=True)):
        return "R9"
    return "R7" if len(taken) == FULL_ROW and not rules.startswith("color") else "R8"


def heads_on(numbers: Iterable[int], deck: Sequence[Sequence[int]]) -> int:
    """The heads of some cards, which are their points."""
    return sum(sum(deck[number - 1]) for number in numbers)


def placement(
    placed: Sequence[Any], name: str, rules: str, deck: Sequence[Sequence[int]]
) -> str:
    """One line: where a card went, and what its player took and why.

    `placed` is the record's `[seat, number, row or null, numbers taken]`, `name` the player's.
    """
    _, number, row, taken = placed
    card = f"{number} ({name})"
    if row is None:
        return f"{card} fits no row and goes under the draw pile"
    if not taken:
        return f"{card} goes to row {row}"
    why = {
        "R7": f"is the sixth card of row {row}",
        "R8": f"makes six heads of one color in row {row}",
        "R9": "fits no row",
    }[taking_clause(number, taken, rules, deck)]
    cards, points = ", ".join(map(str, taken)), counted(heads_on(taken, deck), "point")
    return f"{card} {why}: takes row {row} ({cards}), {points}"


def short_placement(placed: Sequence[Any], name: str, deck: Sequence[Sequence[int]]) -> str:
    """`placement` without the reason, for the caption of a picture."""
    _, number, row, taken = placed
    if row is None:
        return f"{name}: {number} fits no row and goes under the draw pile"
    line = f"{name}: {number} to row {row}"
    if taken:
        line += f", takes {counted(len(taken), 'card')}, {counted(heads_on(taken, deck), 'point')}"
    return line


def places(view: View, number: int) -> str:
    """Where a card of the hand could go now: `row 2; row 5 (takes 7)`."""
    fits = int(matching_rows(view.game, view.decks[0], number))
    if fits:
        return _rows(view, number, fits)
    its_own = "" if counts_victory_points(view.rules) else ": takes one of your choice"
    return f"fits no row{its_own}"


def row_choices(view: View, number: int) -> str:
    """The legal rows of the card being placed, with what each takes."""
    return _rows(view, number, sum(1 << action - FIRST_ROW for action in view.legal))


def _rows(view: View, number: int, rows: int) -> str:
    names = []
    for row in range(ROWS):
        if rows >> row & 1:
            heads = int(heads_taken(view.game, view.decks[0], number, row))
            names.append(f"row {row} (takes {heads})" if heads else f"row {row}")
    return "; ".join(names)
