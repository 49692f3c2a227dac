"""Bots of a few lines each: the yardsticks, and how people play.

Each looks only at the view. Those that have a compiled twin for batches of games name it in
`batch`: a kernel `(games, decks, who, n, actions)` that writes the action of each of the first `n`
of `who` (PENDING) and draws from the games' own streams, like `engine.random_actions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from oxx_env.bots import compiled_number
from oxx_env.game.engine import (
    GREEDY,
    PENDING,
    POLICIES,
    best_heads,
    greedy_row,
    policy_actions,
    random_actions,
)
from oxx_env.game.rules import (
    CARD_PHASE,
    FIRST_ROW,
    GAME,
    HAND_SIZE,
    N_COLORS,
    NTH_ROW,
    NUMBERS,
    PASS,
    bits_of,
    color_count,
    heads_taken,
    legal_rows,
    popcount,
    put_on_row,
    take_row,
    takes,
)
from oxx_env.game.scoring import sign
from oxx_env.game.views import View, clone, unseen_set
from oxx_env.lib.jit import kernel, kernel_allocating

# --- compiled -----------------------------------------------------------------------------------


@kernel
def greedy_actions(games, decks, who, n, actions):
    """The action of `greedy` for each of `who`."""
    policy_actions(games, decks, who, n, GREEDY, actions)


@kernel
def slot_or_greedy_row(game, deck, phase, slot):
    """A card slot in the card phase, the row of `greedy` in the row phase."""
    if phase == CARD_PHASE:
        return slot
    number = np.int64(game["revealed"][game["placed"]])
    return FIRST_ROW + greedy_row(game, deck, number)


@kernel
def lowest_actions(games, decks, who, n, actions):
    """The action of `lowest` for each of `who`."""
    for i in range(n):
        game = games[who[i]["game"]]
        actions[i] = slot_or_greedy_row(game, decks[game["deck"]], who[i]["phase"], 0)


@kernel
def highest_actions(games, decks, who, n, actions):
    """The action of `highest` for each of `who`."""
    for i in range(n):
        game = games[who[i]["game"]]
        last = np.int64(game["hand_sizes"][who[i]["seat"]]) - 1
        actions[i] = slot_or_greedy_row(game, decks[game["deck"]], who[i]["phase"], last)


# `careful`: weights measured in all rule sets, see docs/experiments.md.
BEFORE_AND_AFTER = 0.5  # of the expected change by unseen cards that come before, or later
FLEXIBLE = 0.5  # points that keeping one more color in the hand is worth
HAND = 0.1  # weight of what the cards still in hand would make after a row choice


@kernel
def lay(game, deck, seat, number, row):
    """Put a card on a row of a trial game; the seat takes what lies there if need be."""
    if takes(game, deck, number, row):
        take_row(game, row, seat)
    put_on_row(game, deck, row, number)


@kernel
def careful_slot(game, deck, seat, trial, now, change):
    """The card of `careful`. Scratch: `trial` GAME [1], `now` and `change` float64 [HAND_SIZE]."""
    size = np.int64(game["hand_sizes"][seat])
    for slot in range(size):
        now[slot] = best_heads(game, deck, np.int64(game["hands"][seat, slot]))
        change[slot] = 0.0
    unseen0, unseen1 = unseen_set(game, seat, seat + 1)
    hidden = popcount(unseen0) + popcount(unseen1)
    for number in range(1, NUMBERS + 1):
        bit0, bit1 = bits_of(number)
        if (bit0 & unseen0) | (bit1 & unseen1) == 0:
            continue
        if legal_rows(game, deck, number) == 0:
            continue
        # If it were played now, where a greedy player would put it: what of the own cards?
        row = greedy_row(game, deck, number)
        trial[0] = game
        lay(trial[0], deck, 0, number, row)
        for slot in range(size):
            own = np.int64(game["hands"][seat, slot])
            later = best_heads(trial[0], deck, own) - now[slot]
            change[slot] += later if number < own else -later
    others = np.int64(game["players"]) - 1
    weight = BEFORE_AND_AFTER * others / max(1, hidden)
    best, chosen = -np.inf, 0
    for slot in range(size):
        card = deck["cards"][game["hands"][seat, slot]]
        value = now[slot] + weight * change[slot]
        for color in range(N_COLORS):
            if color_count(card, color) > 0:
                value -= FLEXIBLE
        if value > best:
            best, chosen = value, slot
    return chosen


@kernel
def careful_row(game, deck, seat, trial):
    """The row of `careful`. Scratch: `trial` GAME [1]."""
    number = np.int64(game["revealed"][game["placed"]])
    rows = legal_rows(game, deck, number)
    turned = sign(game)
    best, chosen = -np.inf, 0
    while rows:
        row = NTH_ROW[rows, 0]
        rows &= rows - 1
        value = np.float64(turned * heads_taken(game, deck, number, row))
        trial[0] = game
        lay(trial[0], deck, seat, number, row)
        for slot in range(np.int64(game["hand_sizes"][seat])):
            value += HAND * best_heads(trial[0], deck, np.int64(game["hands"][seat, slot]))
        if value > best:
            best, chosen = value, row
    return chosen


@kernel_allocating
def careful_actions(games, decks, who, n, actions):
    """The action of `careful` for each of `who`; it looks at nothing the seat does not know."""
    trial = np.empty(1, GAME)
    now = np.empty(HAND_SIZE, np.float64)
    change = np.empty(HAND_SIZE, np.float64)
    for i in range(n):
        game = games[who[i]["game"]]
        deck = decks[game["deck"]]
        seat = np.int64(who[i]["seat"])
        if who[i]["phase"] == CARD_PHASE:
            actions[i] = careful_slot(game, deck, seat, trial, now, change)
        else:
            actions[i] = FIRST_ROW + careful_row(game, deck, seat, trial)


# --- bots ---------------------------------------------------------------------------------------


class _Compiled:
    """A bot without options that is its compiled twin, called for one decision."""

    needs_state = False
    batch: ClassVar[Callable[..., Any]]

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.spec = type(self).__name__.lower()

    def act(self, view: View, rng: np.random.Generator) -> int:
        if view.legal == [PASS]:
            return PASS
        games = clone(view.games)
        games["rng"] = rng.integers(2**64, dtype=np.uint64)
        who: Any = np.zeros(1, PENDING)
        who["seat"], who["phase"] = view.seat, games["phase"]
        actions = np.empty(1, np.int64)
        self.batch(games, view.decks, who, 1, actions)
        return int(actions[0])


class Random(_Compiled):
    """Any legal action, all alike."""

    batch = staticmethod(random_actions)


class Greedy(_Compiled):
    """The best change of the own points now.

    `base`, `color`: fewest heads taken; `positive`: most; a card that fits no row counts 0 there.
    Ties by more heads on the card, then at random. Row: best points, then the shorter row, then at
    random.
    """

    batch = staticmethod(greedy_actions)


class Lowest(_Compiled):
    """Always the lowest card, which is placed before the rows change; rows like `greedy`."""

    batch = staticmethod(lowest_actions)


class Highest(_Compiled):
    """Always the highest card; rows like `greedy`."""

    batch = staticmethod(highest_actions)


class Careful(_Compiled):
    """Thinks of the unseen cards: what may come before one's turn, and what does not keep.

    A card is worth the points it makes now, plus the expected change by unseen lower cards (they
    are placed first: they fill or color the row), minus the expected change by higher ones (a card
    that will only get worse is played now), minus half a point for each color it shows (cards of
    many colors fit later, too). Row: the best points, and what the rest of the hand then makes.
    """

    batch = staticmethod(careful_actions)


assert [compiled_number(name) for name in POLICIES] == list(range(len(POLICIES)))
