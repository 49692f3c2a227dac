"""`policy:PATH`: a trained policy as a bot, by one compiled forward pass and without torch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from oxx_env.bots import BotSpecError
from oxx_env.bots.simple import Greedy
from oxx_env.game.rules import ACTIONS, legal_actions
from oxx_env.game.views import View
from oxx_env.lib.jit import kernel
from oxx_env.policy.checkpoint import load_checkpoint
from oxx_env.policy.features import INPUT, encode_input, scratch
from oxx_env.policy.forward import best_action, forward, hidden_of, softmax, workspace


@kernel
def _best(games, decks, seat, w, hidden, sight, obs, work, logits):
    encode_input(games[0], decks[0], seat, sight, obs)
    forward(w, hidden, obs, work, logits)
    return best_action(logits, legal_actions(games[0], decks[0], seat))


@kernel
def _probabilities(games, decks, seat, w, hidden, sight, obs, work, logits, out):
    encode_input(games[0], decks[0], seat, sight, obs)
    value = forward(w, hidden, obs, work, logits)
    softmax(logits, legal_actions(games[0], decks[0], seat), np.float32(1), out)
    return value


class PolicyBot:
    """Plays the action its network scores highest.

    weights  float32, the network's weight vector (see `forward.layers`)
    rows     `policy`, or `greedy`: rows are chosen like the bot `greedy` does, to see what the
             policy's own choice of rows is worth
    """

    needs_state = False

    def __init__(
        self, weights: NDArray[np.float32], spec: str = "policy", rows: str = "policy"
    ) -> None:
        self.spec = spec
        self._rows = Greedy() if rows == "greedy" else None
        self.weights = weights
        self.hidden = hidden_of(len(weights))
        # What both kernels get besides the view: the network, and memory to work in.
        self._kept = (
            self.weights,
            self.hidden,
            scratch(),
            np.zeros(INPUT, np.float32),
            workspace(self.hidden),
            np.zeros(ACTIONS, np.float32),
        )

    def act(self, view: View, rng: np.random.Generator) -> int:
        """The best legal action; pass where there is nothing to decide."""
        if self._rows is not None and view.phase == "row":
            return self._rows.act(view, rng)
        return int(_best(view.games, view.decks, view.seat, *self._kept))

    def probabilities(self, view: View) -> tuple[NDArray[np.float32], float]:
        """The policy [ACTIONS] over the legal actions, and the value (scaled relative points)."""
        out = np.zeros(ACTIONS, np.float32)
        value = _probabilities(view.games, view.decks, view.seat, *self._kept, out)
        return out, float(value)


def make_policy(path: str, options: Mapping[str, str]) -> PolicyBot:
    """The bot of `policy:PATH` or `policy:NAME`. Raises CheckpointError or BotSpecError."""
    rows = options.get("rows", "policy")
    if rows not in ("policy", "greedy"):
        raise BotSpecError(f"policy:{path}: rows is policy or greedy, not {rows!r}")
    weights, _ = load_checkpoint(path)
    return PolicyBot(weights, f"policy:{path}", rows)
