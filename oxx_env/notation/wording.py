"""What happened at a table, in order, and the rules in a few lines: what `oxx play` and `oxx serve`
tell people."""

from __future__ import annotations

from oxx_env.game.replay import Event
from oxx_env.game.table import Table
from oxx_env.notation.records import Record

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
    "The game ends when somebody is out of cards. Most points win.",
}


def rules_text(rules: str) -> str:
    """The rule set in a few lines."""
    color, positive = "color" in rules, "positive" in rules
    return RULES.format(limits=LIMITS[color], misfit=MISFIT[positive], goal=GOAL[positive])


def events(table: Table) -> list[Event]:
    """All that everybody saw at a table, in order: the events of `game.replay`, with the record of
    a finished game at its end.

    The record holds the draw piles, which players may see only when the match is over.
    """
    seen = table.replay().events
    return [
        (kind, Record.of(what[0], table.decks, table.deck).to_dict())
        if kind == "end"
        else (kind, *what)
        for kind, *what in seen
    ]
