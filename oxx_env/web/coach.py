"""The coach's figures and reasons for a decision, and what a move cost.

The figures are those of `oxx_env.advice`. The reasons can be checked on the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxx_env.bots import ADVISER, advice
from oxx_env.game.cards import COLORS, share_color
from oxx_env.game.rules import (
    counts_victory_points,
    deck_cards,
    heads_taken,
    legal_rows,
    matching_rows,
)
from oxx_env.game.scoring import winners
from oxx_env.game.table import Table
from oxx_env.game.views import View
from oxx_env.notation import records
from oxx_env.notation.wording import FULL_ROW, taking_clause

COACH = ADVISER  # the bot that advises, as on the command line
MAX_DECISIONS = 200  # of a seat in a record to review; a game dealt by the rules has fewer
MAX_POINTS = 10**6  # of a seat before the game of such a record
CROWDED = 4  # heads of one color in a row that are worth a sentence


class NoReview(ValueError):
    """A record that the coach does not review."""


def options(view: View, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Each legal action as `oxx advise --json` gives it, with `why` (sentences), the difference in
    the share of the victory and its standard error, and at the choice `Advice.notes`.

    Raises ValueError where the seat has nothing to decide.
    """
    reasons = Reasons(view)
    advised = advice.advise(view, COACH, rng)
    return [
        {
            **option.to_dict(),
            "win_difference": option.win_difference,
            "win_se": option.win_se,
            "why": reasons.of(option.card, option.row),
            "notes": advised.notes() if option.choice else [],
        }
        for option in advised
    ]


def cost(options: Sequence[dict[str, Any]], action: int) -> dict[str, Any]:
    """What `action` cost against the coach's choice among the `options`.

    `mistake`: is it worse by more than `advice.ERRORS` standard errors? If so, `points` (relative
    points lost) and `win_share` (0 to 1, below zero where the share of the victory was better) with
    their errors, `ERRORS` standard errors each; else all four are 0.
    """
    best = next(option for option in options if option["choice"])
    played = next(option for option in options if option["action"] == action)
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


class Review:
    """The judgements of one seat's decisions, made one by one.

    deal       gives the table before the first of the `decisions`, which are (seat, action)
    generator  number of the seat's decision from 0 -> the coach's random numbers
    known      judgements by that number; `judge_next` adds to it
    """

    def __init__(
        self,
        deal: Callable[[], Table],
        decisions: Sequence[tuple[int, int]],
        seat: int,
        generator: Callable[[int], np.random.Generator],
        known: dict[int, dict[str, Any]] | None = None,
    ) -> None:
        self.deal, self.decisions, self.seat, self.generator = deal, decisions, seat, generator
        self.known = {} if known is None else known
        self.count = sum(decider == seat for decider, _ in decisions)

    @property
    def complete(self) -> bool:
        return len(self.known) >= self.count

    def judge_next(self, options_given: list[dict[str, Any]] | None = None) -> None:
        """Judge one more decision; with its options where the coach has given them already."""
        turn, due, table = 0, len(self.known), self.deal()
        for decider, action in self.decisions:
            if decider == self.seat:
                if turn == due:
                    view = table.view(self.seat)
                    given = options_given or options(view, self.generator(turn))
                    self.known[turn] = _judgement(view, action, given)
                    return
                turn += 1
            table.act(decider, action)

    def judged(self) -> list[dict[str, Any]]:
        """The judgements of all decisions, in order."""
        return [self.known[turn] for turn in range(self.count)]


def _judgement(view: View, action: int, options: list[dict[str, Any]]) -> dict[str, Any]:
    """One decision of a review."""
    return {
        "game": int(view.game["match_game"]),
        "round": int(view.game["round"]) + 1,
        "phase": view.phase,
        "action": action,
        "options": options,
        "cost": cost(options, action),
        "win_share": next(option["win_share"] for option in options if option["choice"]),
    }


def review_of(line: bytes, seat: int) -> tuple[Review, list[int]]:
    """The review of one seat in a record of any origin, still empty, and the winners of the match
    so far.

    Raises RecordFileError and RecordError for what is no valid record, NoReview for a seat that it
    does not have and a game that is too long.
    """
    record = records.replay(records.parse_record(line.strip(), "the record"))
    players, before = record.players, record.match["points_before"]
    if not 0 <= seat < players:
        raise NoReview(f"seat: should be 0 to {players - 1}")
    if max(map(abs, before)) > MAX_POINTS:
        raise NoReview(f"the points before the game are beyond {MAX_POINTS:,}")

    def deal() -> Table:
        table = Table(players, record.rules, np.array(deck_cards(record.decks[0])))
        table.deal(0, draw_piles=record.deal.draw_piles, rows=record.deal.rows)
        game = table.game
        game["match_game"] = game["match_games"] = record.match["game"]  # none is dealt after it
        game["match_points"][:players] = before
        return table

    generator = lambda turn: np.random.default_rng([seat, turn])  # noqa: E731
    review = Review(deal, record.decisions, seat, generator)
    if review.count > MAX_DECISIONS:
        raise NoReview(f"seat {seat} has more than {MAX_DECISIONS} decisions to review")
    return review, winners(np.add(before, record.scores), record.rules)


class Reasons:
    """What a player could count on the table: sentences on each choice."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.deck = deck_cards(view.decks[0])
        self.unseen = view.unseen

    def of(self, card: int, row: int | None) -> list[str]:
        """Sentences on playing a card, or on placing it on a row."""
        rows = _row_set(int(matching_rows(self.view.game, self.view.decks[0], card)))
        if row is not None:
            return self._place(card, row, row in rows)
        return self._play(card, rows) if rows else self._misfit(card)

    def _play(self, card: int, rows: list[int]) -> list[str]:
        where = " and ".join(f"row {row}" for row in rows) if len(rows) < 3 else f"{len(rows)} rows"
        lines = [f"fits {where} now"]
        free = [row for row in rows if not self._takes(card, row)]
        for row in rows:
            if row not in free:
                heads, why = self._row_heads(row), self._cause(card, row)
                lines.append(f"on row {row} it takes {heads} ({why})")
        lower = [number for number in self.unseen if number < card]
        if not lower:
            lines.append("no unseen card is lower: nothing can come before it")
        elif len(free) > 2:
            lines.append(f"{self._of_unseen(len(lower))} lower and could come before it")
        else:
            for row in free:
                end = self.view.rows[row][-1]
                fitting = sum(self._share_color(number, end) for number in lower)
                first = "lower and could come first on row"
                lines.append(f"{self._of_unseen(fitting)} {first} {row}")
                lines += self._danger(row)
        return lines

    def _misfit(self, card: int) -> list[str]:
        if counts_victory_points(self.view.rules):
            first = "fits no row now: it would go under your draw pile"
        else:
            cheapest = min(range(5), key=lambda row: sum(self._color_sums(self.view.rows[row])))
            first = (
                "fits no row now: you would take a row of your choice, the cheapest is "
                f"row {cheapest} with {self._row_heads(cheapest)}"
            )
        lower = sum(number < card and self._share_color(number, card) for number in self.unseen)
        can = "lower and of its colors, and could open a row for it"
        return [first, f"{self._of_unseen(lower)} {can}"]

    def _place(self, card: int, row: int, fits: bool) -> list[str]:
        view = self.view
        if not fits:
            return [f"takes {self._row_heads(row)}; {card} starts the row anew"]
        if self._takes(card, row):
            return [f"takes {self._row_heads(row)} ({self._cause(card, row)})"]
        lines = [f"takes nothing; the row then has {len(view.rows[row]) + 1} cards"]
        sums = self._color_sums([*view.rows[row], card])
        if max(sums) >= CROWDED:
            lines.append(f"the row then has {max(sums)} {COLORS[sums.index(max(sums))]} heads")
        later = sum(self._share_color(number, card) for _, number in view.revealed[1:])
        if later:
            lines.append(f"{_plural(later, 'card')} still to place could follow on it")
        return lines

    def _danger(self, row: int) -> list[str]:
        cards = self.view.rows[row]
        if len(cards) == FULL_ROW - 1 and not self.view.rules.startswith("color"):
            return [f"one more card there, and yours would be the sixth of row {row}"]
        sums = self._color_sums(cards)
        if max(sums) >= CROWDED:
            return [f"row {row} already has {max(sums)} {COLORS[sums.index(max(sums))]} heads"]
        return []

    def _takes(self, card: int, row: int) -> bool:
        game, deck = self.view.game, self.view.decks[0]
        legal = _row_set(int(legal_rows(game, deck, card)))
        return row in legal and int(heads_taken(game, deck, card, row)) > 0

    def _cause(self, card: int, row: int) -> str:
        clause = taking_clause(card, self.view.rows[row], self.view.rules, self.deck)
        return "the sixth card" if clause == "R7" else "six heads of one color"

    def _of_unseen(self, count: int) -> str:
        verb = "is" if count == 1 else "are"
        return f"{count or 'none'} of the {len(self.unseen)} unseen cards {verb}"

    def _color_sums(self, cards: Sequence[int]) -> list[int]:
        return [sum(self.deck[number - 1][color] for number in cards) for color in range(6)]

    def _row_heads(self, row: int) -> str:
        return _plural(sum(self._color_sums(self.view.rows[row])), "head")

    def _share_color(self, one: int, other: int) -> bool:
        return share_color(self.deck[one - 1], self.deck[other - 1])


def _plural(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def _row_set(bits: int) -> list[int]:
    return [row for row in range(5) if bits >> row & 1]
