"""Gymnasium's VectorEnv on a batch of games, without stable-baselines3.

    import gymnasium, oxx_env

    envs = gymnasium.make_vec("oxx_env/BaronOxx-v0", num_envs=64)
    observations, infos = envs.reset(seed=1)
    observations, rewards, terminations, truncations, infos = envs.step(
        infos["action_mask"].argmax(axis=1)
    )

How the batch is played: see `batch`. A match that is over is followed by a new one in the same step
(`AutoresetMode.SAME_STEP`): its last observation and info are `infos["final_obs"]` and
`infos["final_info"]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from oxx_env.envs.batch import RENDER_MODES, Batch, BatchEnv, Step, check_actions, seeds_from
from oxx_env.envs.match import METADATA, action_space, observation_box
from oxx_env.game.table import check_seed

_NOT_HERE = ("deck", "draw_piles", "rows", "position", "record", "round", "reset_mask")


class BaronOxxVectorEnv(
    BatchEnv, gymnasium.vector.VectorEnv[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]
):
    """`num_envs` games, each with one learner; a finished match is followed by a new one.

    The other arguments are those of `single.BaronOxxSingle`; `num_players`, `rules` and `deck` may
    be sequences, of which the environments go through all combinations in turn. `render_mode` is
    None or `rgb_array`.

    Each info holds `action_mask`, int8 [B, 10]; `final_info` holds `scores`, `ranks` and `winners`
    besides. Raises ValueError for an argument that is out of range or unknown.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        **METADATA,
        "render_modes": list(RENDER_MODES),
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        num_players: int | Sequence[int] = 2,
        seat: int = 0,
        opponents: str | Sequence[Any] = ("greedy",),
        rules: str | Sequence[str] = "base",
        deck: Any = "balanced",
        games_per_match: int = 1,
        reward: str = "points",
        illegal_action: str = "raise",
        render_mode: str | None = None,
    ) -> None:
        self.batch = Batch(
            num_envs, num_players, rules, deck, opponents, seat, games_per_match, reward,
            illegal_action, render_mode,
        )  # fmt: skip
        self.num_envs = self.batch.size
        self.render_mode = render_mode
        self.single_observation_space, self.single_action_space = observation_box(), action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start a new match everywhere; returns observations [B, OBS] and infos.

        seed     environment i starts with the deal of seed + i, or of seed[i]; seeds given also
                 decide the deals of later resets without
        options  are ignored, but for those that other environments heed: a deal set by hand, a
                 start in mid-game and Gymnasium's `reset_mask` are errors

        Raises ValueError for these and for a bad seed.
        """
        for option in _NOT_HERE:
            if options and options.get(option) is not None:
                raise ValueError(
                    f"option {option}: a batch deals all its games by seed and resets each as it "
                    "ends; gymnasium.make gives one environment that starts anywhere"
                )
        obs = self.batch.reset(self._seeds(seed))
        return obs, self._infos(self.batch.masks())

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return seeds_from(seed, self.num_envs)
        if not isinstance(seed, Sequence) or len(seed) != self.num_envs:
            raise ValueError(f"seeds must be {self.num_envs}, one for each environment: {seed!r}")
        return [None if one is None else check_seed(one) for one in seed]

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[
        NDArray[np.float32],
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Play until each learner decides again.

        Returns observations [B, OBS], rewards float64 [B], terminations [B], truncations [B]
        (never) and infos, new arrays each time. Raises IllegalAction, a ValueError, for an action
        that is not legal; ResetNeeded before `reset`. Whatever it raises, also what a bot raises
        and Ctrl-C, nothing has happened.
        """
        return self.batch.step(check_actions(actions, self.num_envs), self._converted)

    def _converted(self, step: Step) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        infos: dict[str, Any] = {}
        for g, final in step.finals.items():
            info = {"action_mask": final.mask, **final.results}
            infos = self._add_info(infos, {"final_obs": final.observation, "final_info": info}, g)
        infos |= self._infos(step.masks)
        truncations = np.zeros(self.num_envs, np.bool_)
        return step.observations, step.rewards, step.dones, truncations, infos

    def _infos(self, masks: NDArray[np.int8]) -> dict[str, Any]:
        return {"action_mask": masks, "_action_mask": np.ones(self.num_envs, np.bool_)}

    def render(self) -> tuple[Any, ...] | None:
        """Each table as its learner sees it, uint8 [height, width, 3]; None without a mode."""
        if self.render_mode is None:
            gymnasium.logger.warn('render() does nothing without render_mode="rgb_array"')
            return None
        return tuple(self.batch.images())
