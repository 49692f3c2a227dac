"""A batch of games for stable-baselines3: one environment = one game with one learning seat.

How the batch is played: see `batch`. This is the only module of the environments that needs
stable-baselines3 (the extra `train`); `gym_vector` is the same batch without it.

    from sb3_contrib import MaskablePPO
    from oxx_env.envs.vector import BaronOxxVecEnv

    envs = BaronOxxVecEnv(256, players=(2, 3, 4), opponents=("greedy",), reward="relative", seed=1)
    MaskablePPO("MlpPolicy", envs, n_steps=64).learn(1_000_000)
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.envs.batch import Batch, BatchEnv, Step, check_actions, seeds_from
from oxx_env.envs.match import METADATA, action_space, observation_box
from oxx_env.game import cards
from oxx_env.game.rules import RULE_SETS
from oxx_env.lib import extras

with extras.needed_by("oxx_env.envs.vector"):
    from stable_baselines3.common.vec_env.base_vec_env import VecEnv


class BaronOxxVecEnv(BatchEnv, VecEnv):
    """`num_envs` games, each with one learner; a finished match is followed by a new one.

    players, rules, deck  one value, or a sequence of them: the environments go through all
                          combinations in turn (the deck changes fastest). A function
                          `rng -> deck` gives each match its own; a deck of nested lists goes
                          into an array first
    opponents             specifications or objects with `act(view, rng) -> action`, for the other
                          seats in their order; the last one fills the table, a smaller table has
                          the first ones
    seat                  the learner's
    reward, reward_scale  `points`, `relative` or `win` (see `envs.match.Match`), times the scale
    illegal_action        `raise`, `substitute` or `terminate`
    render_mode           None or `rgb_array`: `render()` is a grid of all tables, for films
    seed                  environment i starts with the deal of seed + i; None draws the seeds

    The observation is the float32 vector [OBS]; the legal actions are `action_masks()`. The info of
    a match's last step holds `terminal_observation`, `scores`, `ranks`, `winners` and `episode`
    (`r`: sum of rewards, `l`: decisions, `t`: seconds). Chance in compiled opponents and new deals
    come from each game's own stream: the same seed and actions give the same matches.

    Raises ValueError for an argument that is out of range or unknown.
    """

    def __init__(
        self,
        num_envs: int = 64,
        players: int | Sequence[int] = 2,
        rules: str | Sequence[str] = "base",
        deck: Any = "balanced",
        opponents: str | Sequence[Any] = ("greedy",),
        seat: int = 0,
        games_per_match: int = 1,
        reward: str = "points",
        reward_scale: float = 1.0,
        illegal_action: str = "raise",
        render_mode: str | None = None,
        seed: int | None = None,
    ) -> None:
        self.batch = Batch(
            num_envs, players, rules, deck, opponents, seat, games_per_match, reward,
            illegal_action, render_mode,
        )  # fmt: skip
        self.games_per_match = self.batch.games_per_match
        self.reward_scale = _scale(reward_scale)
        self._actions: NDArray[Any] = np.zeros(self.batch.size, np.int64)
        self._started = time.time()
        super().__init__(self.batch.size, observation_box(), action_space())
        self.metadata["render_fps"] = METADATA["render_fps"]
        if seed is not None:
            self.seed(seed)

    def reset(self) -> NDArray[np.float32]:
        """Start a new match everywhere, by the seeds of `seed()`; seeds given also decide the
        deals of later resets without. Options are ignored."""
        obs = self.batch.reset(self._seeds)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return obs

    def step_async(self, actions: NDArray[np.integer[Any]]) -> None:
        """Take the learners' actions [B]; `step_wait` plays them."""
        self._actions = check_actions(actions, self.num_envs)

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play until each learner decides again.

        Returns observations [B, OBS], rewards float32 [B], dones [B] and infos, new arrays each
        time. Raises IllegalAction, a ValueError, for an action that is not legal; ResetNeeded
        before `reset`. After any exception, also a bot's and Ctrl-C, nothing has happened:
        `learn(reset_num_timesteps=False)` goes on.
        """
        return self.batch.step(self._actions, self._converted)

    def _converted(self, step: Step) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for g, final in step.finals.items():
            infos[g] = {
                "terminal_observation": final.observation,
                "TimeLimit.truncated": False,
                **final.results,
                "episode": {
                    "r": final.total * self.reward_scale,
                    "l": final.length,
                    "t": round(time.time() - self._started, 6),
                },
            }
        rewards = (step.rewards * self.reward_scale).astype(np.float32)
        return step.observations, rewards, step.dones, infos

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """At the next reset environment i starts with the deal of seed + i. None draws one."""
        if seed is not None:
            seeds_from(seed, self.num_envs)
        return super().seed(seed)

    def close(self) -> None:
        """Nothing is held that would have to be closed."""

    def has_attr(self, attr_name: str) -> bool:
        """Also of methods that `env_method` serves."""
        return attr_name in ("action_masks", "view") or super().has_attr(attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Of each environment: `players`, `rules`, `deck`, `seat`, or what all have in common."""
        chosen = list(self._get_indices(indices))
        own = {
            "players": self.batch.players.tolist(),
            "rules": [RULE_SETS[flags] for flags in self.batch.rules],
            "deck": [cards.deck_name(spec) for spec in self.batch.deck_specs],
            "seat": self.batch.seats.tolist(),
            "render_mode": [self.batch.render_mode] * self.batch.size,
        }
        if attr_name in own:
            return [own[attr_name][index] for index in chosen]
        if attr_name.startswith("_") or attr_name not in (
            "games_per_match",
            "reward_scale",
            "spec",
        ):
            raise AttributeError(f"the environments have no attribute {attr_name!r}")
        return [getattr(self, attr_name, None)] * len(chosen)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Not possible: what an environment is does not change. Raises AttributeError."""
        raise AttributeError(f"{attr_name} cannot be set: make a new {type(self).__name__}")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """`action_masks` (bool [10] each) or `view` of the environments `indices`."""
        chosen = list(self._get_indices(indices))
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[index] for index in chosen]
        if method_name == "view":
            return [self.view(index, *method_args, **method_kwargs) for index in chosen]
        raise AttributeError(f"the environments have no method {method_name!r}")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """None of them is."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Any]:
        """Each table as its learner sees it, uint8 [height, width, 3]; None without a render
        mode. `render()` lays them out as a grid."""
        if self.batch.render_mode is None:
            return [None] * self.num_envs
        return self.batch.images()


def _scale(value: Any) -> float:
    try:
        scale = float(value)
    except (TypeError, ValueError, OverflowError):
        scale = math.nan
    if isinstance(value, str) or not math.isfinite(scale):
        raise ValueError(f"reward_scale must be a finite number, not {value!r}")
    return scale
