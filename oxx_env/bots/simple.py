"""Bots of a few lines each: the yardsticks.

Each looks only at the view. Those with a compiled twin for batches of games name it as `batch`,
`(games, decks, who, n, actions)` like `engine.policy_actions`; it draws from the games' streams.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oxx_env.engine import greedy_row, greedy_slot
from oxx_env.jit import kernel
from oxx_env.rules import CARD_PHASE, FIRST_ROW, PASS
from oxx_env.views import View


@kernel
def _greedy_action(games, decks, seat):
    game = games[0]
    deck = decks[0]
    if game["phase"] == CARD_PHASE:
        return greedy_slot(game, deck, seat)
    return FIRST_ROW + greedy_row(game, deck, np.int64(game["revealed"][game["placed"]]))


class _Simple:
    """A bot without options; its name is its specification."""

    needs_state = False

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.spec = type(self).__name__.lower()


class Random(_Simple):
    """Any legal action, all alike."""

    def act(self, view: View, rng: np.random.Generator) -> int:
        legal = view.legal
        return legal[int(rng.integers(len(legal)))]


class Greedy(_Simple):
    """The best change of the own points now.

    `base`, `color`: fewest heads taken; `positive`: most; a card that fits no row counts 0 there.
    Ties by more heads on the card, then at random. Row: best points, then the shorter row, then at
    random.
    """

    def act(self, view: View, rng: np.random.Generator) -> int:
        if view.legal == [PASS]:
            return PASS
        games = view.games.copy()
        games["rng"] = rng.integers(2**64, dtype=np.uint64)
        return int(_greedy_action(games, view.decks, view.seat))
