"""`policy:PATH`: a trained policy as a bot, by one compiled forward pass and without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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


class Network(NamedTuple):
    """A policy's network, and what it works with."""

    weights: NDArray[np.float32]
    hidden: int
    features: Any  # from `features.scratch`
    inputs: NDArray[np.float32]  # [INPUT]
    memory: Any  # from `forward.workspace`
    logits: NDArray[np.float32]  # [ACTIONS]
    probabilities: NDArray[np.float32]  # [ACTIONS]

    @classmethod
    def of(cls, weights: NDArray[np.float32]) -> Network:
        hidden = hidden_of(len(weights))
        memory = scratch(), np.zeros(INPUT, np.float32), workspace(hidden)
        return cls(weights, hidden, *memory, *(np.zeros(ACTIONS, np.float32) for _ in range(2)))


@kernel
def ask(game, deck, seat, network):
    """The network's scores and probabilities of the seat's legal actions, into its own arrays.
    Returns the value."""
    encode_input(game, deck, seat, network.features, network.inputs)
    value = forward(network.weights, network.hidden, network.inputs, network.memory, network.logits)
    legal = legal_actions(game, deck, seat)
    softmax(network.logits, legal, np.float32(1), network.probabilities)
    return value


@kernel
def _ask(games, decks, seat, network):
    """The best action and the value."""
    value = ask(games[0], decks[0], seat, network)
    return best_action(network.logits, legal_actions(games[0], decks[0], seat)), value


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
        self._network = Network.of(weights)

    def act(self, view: View, rng: np.random.Generator) -> int:
        """The best legal action; pass where there is nothing to decide."""
        if self._rows is not None and view.phase == "row":
            return self._rows.act(view, rng)
        return int(_ask(view.games, view.decks, view.seat, self._network)[0])

    def probabilities(self, view: View) -> tuple[NDArray[np.float32], float]:
        """The policy [ACTIONS] over the legal actions, and the value (scaled relative points)."""
        _, value = _ask(view.games, view.decks, view.seat, self._network)
        return self._network.probabilities.copy(), float(value)


def make_policy(path: str, options: Mapping[str, str]) -> PolicyBot:
    """The bot of `policy:PATH` or `policy:NAME`. Raises CheckpointError or BotSpecError."""
    rows = options.get("rows", "policy")
    if rows not in ("policy", "greedy"):
        raise BotSpecError(f"policy:{path}: rows is policy or greedy, not {rows!r}")
    weights, _ = load_checkpoint(path)
    return PolicyBot(weights, f"policy:{path}", rows)
