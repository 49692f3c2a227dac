"""What a strong player thinks of a position and of a move, in figures and in words.

The figures are `oxx_env.advice`'s; here they are joined by the reasons that a person can check on
the table, and by what a move cost against the best one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxx_env.bots import ADVISER, advice
from oxx_env.game.cards import NUMBERS
from oxx_env.game.rules import FIRST_ROW, deck_cards, heads_taken, legal_rows, matching_rows
from oxx_env.game.table import Table
from oxx_env.game.views import View
from oxx_env.notation import records
from oxx_env.notation.records import FULL_ROW

COACH = ADVISER  # who is asked: the same as on the command line
COLOR_NAMES = ("blue", "yellow", "green", "red", "black", "white")
MAX_DECISIONS = 200  # of a seat in a record that is reviewed; a game dealt by the rules has fewer
MAX_POINTS = 10**6  # of a seat before a game, in such a record
CROWDED = 4  # heads of a color in a row from which on it is worth a word


class NoReview(ValueError):
    """A game that the coach does not go through."""


def options(view: View, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Each legal action as `oxx advise --json` tells it, with reasons, the difference in the share
    of the victory and its error, and at the choice the sentences of `Advice.notes`.

    Raises ValueError where the seat has nothing to decide.
    """
    table = Sight(view)
    told = advice.advise(view, COACH, rng)
    return [
        {
            **option.to_dict(),
            "win_difference": option.win_difference,
            "win_se": option.win_se,
            "why": table.why(option.card, option.row),
            "notes": told.notes() if option.choice else [],
        }
        for option in told
    ]


def cost(told: Sequence[dict[str, Any]], action: int) -> dict[str, Any]:
    """What `action` cost against the choice of the `options` told.

    `mistake`: is it worse by more than `advice.ERRORS` standard errors? If so, `points` (relative
    points lost) and `win_share` (0 to 1, below zero where the share of the victory was better) with
    their errors, `ERRORS` standard errors each; else all four are 0.
    """
    best = next(option for option in told if option["choice"])
    played = next(option for option in told if option["action"] == action)
    mistake = not played["choice"] and not played["about_equal"] and played["difference"] < 0
    figures = {
        "points": -played["difference"],
        "points_error": advice.ERRORS * played["se"],
        "win_share": -played["win_difference"],
        "win_error": advice.ERRORS * played["win_se"],
    }
    return {
        "best": best["action"],
        "mistake": mistake,
        **{name: value if mistake else 0.0 for name, value in figures.items()},
    }


def review(
    table: Table,
    decisions: Sequence[tuple[int, int]],
    seat: int,
    generator: Callable[[int], np.random.Generator],
    known: dict[int, dict[str, Any]],
    options_told: dict[int, list[dict[str, Any]]] | None = None,
    most: int | None = None,
) -> list[dict[str, Any]]:
    """Every decision of a seat with the coach's figures, in order.

    table      freshly dealt; the decisions are carried out on it
    generator  number of the seat's decision from 0 -> where the coach's chance comes from
    known      what was worked out before, by that number; filled up
    options_told  options that the coach has told already, by that number
    most       stop after so many that were not known: a long review is done piece by piece
    """
    told, turn, fresh = [], 0, 0
    before = options_told or {}
    for who, action in decisions:
        if who == seat:
            if turn not in known:
                if fresh == most:
                    break
                fresh += 1
                known[turn] = judge(table.view(seat), action, generator(turn), before.get(turn))
            told.append(known[turn])
            turn += 1
        table.act(who, action)
    return told


def judge(
    view: View,
    action: int,
    rng: np.random.Generator,
    told: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """One decision as `review` tells it; `told` are its options, where they are known already."""
    if told is None:
        told = options(view, rng)
    return {
        "game": int(view.game["match_game"]),
        "round": int(view.game["round"]) + 1,
        "phase": view.phase,
        "action": action,
        "options": told,
        "cost": cost(told, action),
        "win_share": next(option["win_share"] for option in told if option["choice"]),
    }


class Reviewed:
    """The review of one seat in a game that comes as a record from anywhere, piece by piece.

    count  how many decisions the seat has
    known  those that were gone through, by number from 0; the chances are those of the match so far

    Raises RecordError for a record that the rules do not allow, NoReview for a seat that it does
    not have and a game that is too long.
    """

    def __init__(self, record: dict[str, Any], seat: int) -> None:
        self.decisions = records.replay(record).decisions
        self.record, self.seat = record, seat
        self.known: dict[int, dict[str, Any]] = {}
        players = record["players"]
        if not 0 <= seat < players:
            raise NoReview(f"seat: should be 0 to {players - 1}")
        self.count = sum(who == seat for who, _ in self.decisions)
        if self.count > MAX_DECISIONS:
            raise NoReview(f"seat {seat} has more than {MAX_DECISIONS} decisions to review")
        if max(map(abs, record["match"]["points_before"])) > MAX_POINTS:
            raise NoReview(f"the points before the game are beyond {MAX_POINTS:,}")

    def _table(self) -> Table:
        record, match = self.record, self.record["match"]
        deck = np.array(record["deck"]["cards"], np.int64)
        table = Table(record["players"], record["rules"], deck)
        table.deal(0, draw_piles=record["draw_piles"], rows=record["rows"])
        game = table.game
        game["match_game"] = game["match_games"] = match["game"]  # nothing is dealt after it
        game["match_points"][: record["players"]] = match["points_before"]
        return table

    def go_on(self, most: int) -> None:
        """Go through so many decisions more."""
        chance = lambda turn: np.random.default_rng([self.seat, turn])  # noqa: E731
        review(self._table(), self.decisions, self.seat, chance, self.known, most=most)

    def to_dict(self) -> dict[str, Any]:
        """`{"seat", "decisions", "winners"}`, the winners those of the match so far."""
        table = self._table()
        for seat, action in self.decisions:
            table.act(seat, action)
        told = [self.known[turn] for turn in range(self.count)]
        return {"seat": self.seat, "decisions": told, "winners": table.winners()}


class Sight:
    """Reads off a view what a player would count on the table."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.deck = deck_cards(view.decks[0])
        seen = {number for row in view.rows for number in row}
        seen |= {number for _, number in view.revealed} | set(view.hand)
        for lists in (view.oxx_piles, view.returned, view.known_hand):
            seen |= {number for numbers in lists for number in numbers}
        self.unseen = [number for number in range(1, NUMBERS + 1) if number not in seen]

    def why(self, card: int, row: int | None) -> list[str]:
        """Sentences on playing a card, or on putting it to a row."""
        if row is not None:
            return self._row(card, row)
        rows = _set(int(matching_rows(self.view.game, self.view.decks[0], card)))
        return self._misfit(card) if not rows else self._card(card, rows)

    def _card(self, card: int, rows: list[int]) -> list[str]:
        where = " and ".join(f"row {row}" for row in rows)
        told = [f"fits {where} now" if len(rows) < 3 else f"fits {len(rows)} rows now"]
        free = [row for row in rows if not self._takes(card, row)]
        for row in rows:
            if self._takes(card, row):
                told.append(f"on row {row} it takes {self._heads(row)} ({self._because(row)})")
        lower = [number for number in self.unseen if number < card]
        if not lower:
            told.append("no unseen card is lower: nothing can come before it")
            return told
        for row in free if len(free) <= 2 else []:
            end = self.view.rows[row][-1]
            fit = sum(self._share(number, end) for number in lower)
            told.append(
                f"{fit or 'none'} of the {len(self.unseen)} unseen cards "
                f"{'is' if fit == 1 else 'are'} lower and could come first on row {row}"
            )
            told += self._danger(row)
        if len(free) > 2:
            told.append(
                f"{len(lower)} of the {len(self.unseen)} unseen cards are lower "
                "and could come before it"
            )
        return told

    def _misfit(self, card: int) -> list[str]:
        if "positive" in self.view.rules:
            told = ["fits no row now: it would go under your draw pile"]
        else:
            cheapest = min(range(5), key=lambda row: self._sum(row))
            told = [
                "fits no row now: you would take a row of your choice, the cheapest is "
                f"row {cheapest} with {self._heads(cheapest)}"
            ]
        lower = [number for number in self.unseen if number < card and self._share(number, card)]
        change = f"{len(lower) or 'none'} of the {len(self.unseen)} unseen cards"
        verb = "is" if len(lower) == 1 else "are"
        return [*told, f"{change} {verb} lower and of its colors, and could open a row for it"]

    def _row(self, card: int, row: int) -> list[str]:
        view = self.view
        fits = _set(int(matching_rows(view.game, view.decks[0], card)))
        if row not in fits:
            return [f"takes {self._heads(row)}; {card} starts the row anew"]
        if self._takes(card, row):
            return [f"takes {self._heads(row)} ({self._because(row)})"]
        told = [f"takes nothing; the row then has {len(view.rows[row]) + 1} cards"]
        sums = [
            sum(self.deck[number - 1][color] for number in [*view.rows[row], card])
            for color in range(6)
        ]
        if max(sums) >= CROWDED:
            told.append(f"{max(sums)} {COLOR_NAMES[sums.index(max(sums))]} heads lie there then")
        later = sum(self._share(number, card) for _, number in view.revealed[1:])
        if later:
            told.append(f"{_cards(later, 'card')} still to place could follow on it")
        return told

    def _danger(self, row: int) -> list[str]:
        cards = self.view.rows[row]
        if len(cards) == FULL_ROW - 1 and not self.view.rules.startswith("color"):
            return [f"one more card there, and yours would be the sixth of row {row}"]
        sums = self._sums(row)
        if max(sums) >= CROWDED:
            return [f"row {row} already shows {max(sums)} {COLOR_NAMES[sums.index(max(sums))]}"]
        return []

    def _takes(self, card: int, row: int) -> bool:
        game, deck = self.view.game, self.view.decks[0]
        legal = _set(int(legal_rows(game, deck, card)))
        return row in legal and int(heads_taken(game, deck, card, row)) > 0

    def _because(self, row: int) -> str:
        full = len(self.view.rows[row]) == FULL_ROW and not self.view.rules.startswith("color")
        return "the sixth card" if full else "six heads of one color"

    def _sums(self, row: int) -> list[int]:
        cards = self.view.rows[row]
        return [sum(self.deck[number - 1][color] for number in cards) for color in range(6)]

    def _sum(self, row: int) -> int:
        return sum(self._sums(row))

    def _heads(self, row: int) -> str:
        return _cards(self._sum(row), "head")

    def _share(self, one: int, other: int) -> bool:
        pairs = zip(self.deck[one - 1], self.deck[other - 1], strict=True)
        return any(a and b for a, b in pairs)


def _cards(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def _set(rows: int) -> list[int]:
    return [row for row in range(5) if rows >> row & 1]


assert FIRST_ROW == 4  # rows are the actions after the four slots
