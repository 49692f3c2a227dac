"""Features: what follows from each choice, counted a second time, slowly, from the view alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oxx_env import cards, observe
from oxx_env.game.rules import HAND_SIZE, ROWS
from oxx_env.game.table import Table
from oxx_env.game.views import View
from oxx_env.policy import features

RULES = ("base", "color", "positive", "color+positive")


def told(view: View) -> tuple[Any, Any]:
    """The pieces of a view: options [ROWS, ...] and slots [HAND_SIZE, ...]."""
    out = features.network_input(view)[observe.OBS :]
    options, slots = features.PIECES
    return out[: options.size].reshape(options.shape), out[options.size :].reshape(slots.shape)


class Plain:
    """The rows of a view as lists, and the rules that the features need, told once more."""

    def __init__(self, view: View) -> None:
        self.deck = view.to_dict()["deck"]["cards"]
        self.rows = [list(row) for row in view.rows]
        self.color, self.positive = "color" in view.rules, "positive" in view.rules
        self.sign = 1 if self.positive else -1
        self.points = [0] * view.players

    def heads(self, numbers: list[int]) -> int:
        return sum(sum(self.deck[number - 1]) for number in numbers)

    def fitting(self, number: int) -> list[int]:
        mine = self.deck[number - 1]
        ends = [self.deck[row[-1] - 1] for row in self.rows]
        return [
            r for r, end in enumerate(ends) if any(a and b for a, b in zip(mine, end, strict=True))
        ]

    def legal(self, number: int) -> list[int]:
        return self.fitting(number) or ([] if self.positive else list(range(ROWS)))

    def taken(self, number: int, row: int) -> list[int]:
        cards_there = self.rows[row]
        after = [*cards_there, number]
        most = max(sum(self.deck[n - 1][color] for n in after) for color in range(6))
        full = most >= 6 or (not self.color and len(after) >= 6)
        return cards_there if full or row not in self.fitting(number) else []

    def makes(self, number: int) -> int:
        """The points of the card if placed best now, better is more."""
        values = [self.sign * self.heads(self.taken(number, r)) for r in self.legal(number)]
        return max([*values, 0] if self.positive else values)

    def usual(self, number: int) -> int:
        return max(
            self.legal(number),
            key=lambda r: (
                self.sign * self.heads(self.taken(number, r)),
                -len(self.rows[r]),
                -self.rows[r][-1],
            ),
        )

    def place(self, seat: int, number: int, row: int) -> None:
        taken = self.taken(number, row)
        self.points[seat] += self.sign * self.heads(taken)
        self.rows[row] = [number] if taken else [*self.rows[row], number]

    def changes(self, hand: list[int], unseen: list[int]) -> Any:
        """Mean change of each own card's points, times the others: by lower, by higher cards."""
        before = [self.makes(card) for card in hand]
        total = np.zeros((2, len(hand)))
        kept = self.rows
        for number in unseen:
            self.rows = [list(row) for row in kept]
            if not self.legal(number):
                continue
            self.place(0, number, self.usual(number))
            for slot, card in enumerate(hand):
                total[int(number > card), slot] += self.makes(card) - before[slot]
        self.rows = kept
        return total * (len(self.points) - 1) / max(1, len(unseen))


def unseen_numbers(view: View) -> list[int]:
    game = view.to_dict()
    seen = set(view.hand) | {n for row in view.rows for n in row} | {n for _, n in view.revealed}
    seen |= {n for pile in game["oxx_piles"] for n in pile}
    seen |= {n for cards_ in (*game["known_hand"], *game["returned"]) for n in cards_}
    return [n for n in range(1, 111) if n not in seen]


def expected_options(view: View) -> Any:
    out = np.zeros((ROWS, len(features.OPTION_FIELDS)))
    unseen, hand = unseen_numbers(view), view.hand
    for row in [action - HAND_SIZE for action in view.legal]:
        table = Plain(view)
        (seat, number), *rest = view.revealed
        table.place(seat, number, row)
        for other, following in rest:
            if table.legal(following):
                table.place(other, following, table.usual(following))
        own = table.points[view.seat]
        others = sum(table.points) - own
        makes = [table.makes(card) for card in hand]
        lower, higher = table.changes(hand, unseen)
        next_ = [table.makes(n) for n in unseen] or [0]
        out[row] = [
            (own - others / (view.players - 1)) / 10,
            own / 10,
            sum(makes) / 10,
            min(makes, default=0) / 10,
            max(makes, default=0) / 10,
            sum(bool(table.fitting(card)) for card in hand) / 4,
            sum(table.heads(cards_) for cards_ in table.rows) / 40,
            np.mean(next_) / 5,
            np.mean([value == 0 for value in next_]),
            sum(lower) / 10,
            sum(higher) / 10,
            max((m + d for m, d in zip(makes, lower, strict=True)), default=0) / 10,
        ]
    return np.clip(out, observe.LOW, observe.HIGH)


def expected_slots(view: View) -> Any:
    out = np.zeros((HAND_SIZE, len(features.SLOT_FIELDS)))
    unseen, hand = unseen_numbers(view), view.hand
    lower, higher = Plain(view).changes(hand, unseen)
    for slot, card in enumerate(hand):
        table = Plain(view)
        out[slot, :3] = table.makes(card) / 10, lower[slot] / 10, higher[slot] / 10
        if table.legal(card):
            table.place(0, card, table.usual(card))
            left = [table.makes(other) for other in hand if other != card]
            next_ = [table.makes(n) for n in unseen] or [0]
            means = np.mean(next_) / 5, np.mean([value == 0 for value in next_])
            out[slot, 3:] = sum(left) / 10, max(left) / 10, *means
    return np.clip(out, observe.LOW, observe.HIGH)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    "players",
    [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow), 10],
)
def test_features_are_what_counting_by_hand_gives(rules: str, players: int) -> None:
    rng = np.random.default_rng(players)
    deck = cards.random_deck("three-color", np.random.default_rng(players))
    table = Table(players, rules, deck)
    checked = {"card": 0, "row": 0}
    for seed in (1, 2):
        table.deal(seed=seed)
        while not table.over:
            seat = table.deciders()[0]
            view = table.view(seat)
            if rng.random() < 0.3 and checked[view.phase] < 12:
                options, slots = told(view)
                if view.phase == "row":
                    np.testing.assert_allclose(options, expected_options(view), atol=1e-5)
                    assert not slots.any()
                else:
                    np.testing.assert_allclose(slots, expected_slots(view), atol=1e-5)
                    assert not options.any()
                checked[view.phase] += 1
            table.act(seat, int(rng.choice(view.legal)))
    assert min(checked.values()) >= 5


def test_a_seat_that_decides_nothing_has_no_features() -> None:
    table = Table(3)
    table.deal(seed=1)
    table.act(0, 0)
    options, slots = told(table.view(0))
    assert not options.any() and not slots.any()
    assert told(table.view(1))[1].any()


def test_looking_ahead_leaves_the_game_alone_and_draws_nothing() -> None:
    table = Table(4, "positive")
    table.deal(seed=3)
    rng = np.random.default_rng(0)
    while not table.over:
        before = table.games.tobytes()
        out = np.zeros(features.INPUT, np.float32)
        for seat in table.deciders():
            features._encode_one(table.games, table.decks, seat, features.scratch(), out)
            # From the full record as from the view: nothing hidden is used.
            np.testing.assert_array_equal(out, features.network_input(table.view(seat)))
        assert table.games.tobytes() == before
        seat = table.deciders()[0]
        table.act(seat, int(rng.choice(table.legal(seat))))
