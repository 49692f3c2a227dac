"""What happened at a table, in order, and the rules in a few lines: what `oxx play` and `oxx serve`
tell people."""

from __future__ import annotations

from typing import Any

from oxx_env.game.table import Table

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


def events(table: Table) -> list[tuple[Any, ...]]:
    """All that everybody saw at a table, in order.

    `("deal", game from 1, five row cards)`, `("reveal", round from 1, cards by seat)`,
    `("place", [seat, number, row or None, numbers taken])`, `("end", record)`; the record holds
    the draw piles, which players may see only when the match is over.
    """
    walk = table.walk()
    games: list[tuple[Any, Any, Any]] = [(r["rows"], r["rounds"], r) for r in walk.records]
    if len(walk.records) < int(walk.games[0]["match_game"]):
        games.append((walk.deal["rows"], walk.rounds(), None))
    told: list[tuple[Any, ...]] = []
    for number, (rows, rounds, record) in enumerate(games, start=1):
        told.append(("deal", number, rows))
        told += game_events(rounds)
        if record is not None:
            told.append(("end", record))
    return told


def game_events(rounds: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The reveals and placements of a game's rounds, as `events` tells them."""
    told: list[tuple[Any, ...]] = []
    for number, played in enumerate(rounds, start=1):
        told.append(("reveal", number, played["cards"]))
        told += [("place", placement) for placement in played["placements"]]
    return told
