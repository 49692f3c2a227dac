"""One hash over a fixed set of seeded games: whether this version gives the results it gave before.

`oxx bench --signature` prints it, `tests/golden/signature.json` keeps it for each version of the
environment. Actions follow from the step and the legal ones, so nothing but the environment decides
what comes out; observations go in rounded to 2^-16, as processors may differ in the last bits.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env import PETTINGZOO_ID
from oxx_env.envs.kernels import REWARDS
from oxx_env.envs.parallel import BaronOxxParallel
from oxx_env.envs.single import BaronOxxSingle
from oxx_env.game.cards import DECK_NAMES
from oxx_env.game.rules import MAX_PLAYERS, MIN_PLAYERS, RULE_SETS

VERSION = PETTINGZOO_ID.partition("/")[2]  # of the environment, e.g. baron-oxx-v0


class _Digest:
    """The hash of what environments return, and how much it was."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.games = self.observations = 0

    def observe(self, observation: NDArray[np.float32], mask: NDArray[np.integer[Any]]) -> None:
        rounded = np.rint(observation.astype(np.float64) * 65536).astype("<i8")
        self.hash.update(rounded.tobytes() + mask.astype(np.uint8).tobytes())
        self.observations += 1

    def add(self, value: Any) -> None:
        self.hash.update(json.dumps(value, sort_keys=True).encode())


def choose(mask: NDArray[np.integer[Any]], step: int) -> int:
    """A legal action that looks like chance."""
    legal = np.flatnonzero(mask)
    return int(legal[step * 2654435761 % 2**32 * len(legal) >> 32])


def signature() -> dict[str, Any]:
    """`version`, `sha256`, and of how many `games` and `observations`.

    All table sizes and rule sets as PettingZoo environment, in matches of one and two games; then
    each rule set as Gymnasium environment against `greedy`.
    """
    digest = _Digest()
    for players in range(MIN_PLAYERS, MAX_PLAYERS + 1):
        for flags, rules in enumerate(RULE_SETS):
            seed = 10 * players + flags
            deck, reward = DECK_NAMES[seed % len(DECK_NAMES)], REWARDS[seed % len(REWARDS)]
            _parallel(digest, players, rules, deck, 1 + (seed % 4 == 0), reward, seed)
    for rules in RULE_SETS:
        _single(digest, rules, 7)
    return {
        "version": VERSION,
        "sha256": digest.hash.hexdigest(),
        "games": digest.games,
        "observations": digest.observations,
    }


def _parallel(
    digest: _Digest, players: int, rules: str, deck: str, of: int, reward: str, seed: int
) -> None:
    env = BaronOxxParallel(players, rules, deck, of, reward)
    observations, infos = env.reset(seed=seed)
    step = 0
    while env.agents:
        actions = {}
        for agent in env.agents:
            seen = observations[agent]
            digest.observe(seen["observation"], seen["action_mask"])
            step += 1
            actions[agent] = choose(seen["action_mask"], step)
        observations, rewards, *_, infos = env.step(actions)
        digest.add([round(value, 9) for value in rewards.values()])
    results = ("scores", "ranks", "winners")
    digest.add({agent: {key: info[key] for key in results} for agent, info in infos.items()})
    digest.add(env.records())
    digest.games += of


def _single(digest: _Digest, rules: str, seed: int) -> None:
    env = BaronOxxSingle(num_players=3, seat=1, rules=rules)
    observation, info = env.reset(seed=seed)
    step, over = 0, False
    while not over:
        digest.observe(observation, info["action_mask"])
        step += 1
        observation, reward, over, _, info = env.step(choose(info["action_mask"], step))
        digest.add(round(reward, 9))
    digest.add(env.records())
    digest.games += 1
