"""Proximal policy optimisation on self-play: MaskablePPO with our own collection.

The mathematics are pure functions: `gae` and `ppo_loss`. `SelfPlayPPO` is sb3-contrib's MaskablePPO
whose samples come from a `Collector`, so that stable-baselines3's logger, callbacks, schedules and
optimiser state work as usual. While the learner trains on one batch, the collector already plays
the next one on the other core, with the weights from before the update; PPO's ratio accounts for
that.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from oxx_env.jit import kernel
from oxx_env.network import OxxNetwork
from oxx_env.observe import HIGH, LOW, OBS
from oxx_env.rules import ACTIONS
from training.selfplay import TERMINAL, UNFINISHED, Batch, Collector


@kernel
def _gae(rewards, values, following, gammas, lam, advantages):
    for i in range(len(rewards) - 1, -1, -1):
        after = following[i]
        if after == TERMINAL:
            advantages[i] = rewards[i] - values[i]
        elif after == UNFINISHED:
            advantages[i] = 0
        else:
            delta = rewards[i] + gammas[i] * values[after] - values[i]
            advantages[i] = delta + gammas[i] * lam * advantages[after]


def gae(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    following: NDArray[np.int32],
    gamma: float | NDArray[np.float32],
    gae_lambda: float,
) -> NDArray[np.float32]:
    """Generalised advantage estimates [N] (Schulman et al. 2016) over interleaved trajectories.

    rewards    [N] received between a sample and the same seat's next one
    values     [N] estimated at the samples
    following  [N] index of the same seat's next sample (always larger), TERMINAL after the seat's
               last decision of a match, UNFINISHED where the batch ended first: such a sample only
               serves as the bootstrap of the one before it, and gets 0
    gamma      discount from one sample to the next, one for all or [N]
    """
    gammas = np.broadcast_to(np.float32(gamma), rewards.shape).astype(np.float32)
    advantages = np.zeros_like(rewards)
    _gae(rewards, values, following, gammas, np.float32(gae_lambda), advantages)
    return advantages


class Loss(NamedTuple):
    """The terms of PPO's loss, each a scalar."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def ppo_loss(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantages: Tensor,
    values: Tensor,
    returns: Tensor,
    entropy: Tensor,
    clip_range: float,
    vf_coef: float,
    ent_coef: float,
) -> Loss:
    """The clipped surrogate of Schulman et al. 2017, value and entropy terms; all inputs [N]."""
    ratio = torch.exp(log_prob - old_log_prob)
    clipped = torch.clamp(ratio, 1 - clip_range, 1 + clip_range)
    policy = -torch.min(advantages * ratio, advantages * clipped).mean()
    value = torch.nn.functional.mse_loss(values, returns)
    mean_entropy = entropy.mean()
    total = policy + vf_coef * value - ent_coef * mean_entropy
    with torch.no_grad():
        log_ratio = log_prob - old_log_prob
        approx_kl = ((ratio - 1) - log_ratio).mean()  # Schulman's low-variance estimate
        clip_fraction = (torch.abs(ratio - 1) > clip_range).float().mean()
    return Loss(total, policy, value, mean_entropy, approx_kl, clip_fraction)


class OxxPolicy(MaskableActorCriticPolicy):
    """`OxxNetwork` as a policy of stable-baselines3; the width is `policy_kwargs["hidden"]`."""

    def __init__(self, *args: Any, hidden: int = 64, **kwargs: Any) -> None:
        self.hidden = hidden
        super().__init__(*args, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        self.network = OxxNetwork(self.hidden)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )

    def _distribution(self, obs: Tensor, action_masks: Any) -> tuple[Any, Tensor]:
        logits, values = self.network(obs)
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        if action_masks is not None:
            distribution.apply_masking(action_masks)
        return distribution, values

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        distribution, values = self._distribution(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values[:, None], distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: Any, actions: Tensor, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        distribution, values = self._distribution(obs, action_masks)
        return values[:, None], distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Any, action_masks: Any = None) -> Any:
        return self._distribution(obs, action_masks)[0]

    def predict_values(self, obs: Any) -> Tensor:
        return self.network(obs)[1][:, None]


class SpacesEnv(gym.Env):  # type: ignore[type-arg]
    """Tells stable-baselines3 the spaces; the games are played by the collector."""

    observation_space = spaces.Box(LOW, HIGH, (OBS,), np.float32)
    action_space = spaces.Discrete(ACTIONS)

    def reset(self, **kwargs: Any) -> tuple[NDArray[np.float32], dict[str, Any]]:
        return np.zeros(OBS, np.float32), {}


class SelfPlayPPO(MaskablePPO):
    """MaskablePPO that learns from a collector's batches.

    collector    plays the games
    gamma_row    discount between two decisions of the same round (card, then row)
    """

    collector: Collector

    def __init__(self, policy: Any, env: Any, collector: Any = None, **kwargs: Any) -> None:
        self.collector = collector
        self._pool = ThreadPoolExecutor(1)
        self._ahead: Future[Batch] | None = None
        self.behaviour: NDArray[np.float32] | None = None  # weights the batch ahead is played with
        super().__init__(policy, env, **kwargs)

    @property
    def network(self) -> OxxNetwork:
        network = self.policy.network
        assert isinstance(network, OxxNetwork)
        return network

    def _play_ahead(self, weights: NDArray[np.float32]) -> None:
        self.behaviour = weights
        self._ahead = self._pool.submit(self.collector.collect, weights)

    def finish_ahead(self) -> None:
        """Wait for the batch that is being played."""
        if self._ahead is not None:
            self._ahead.result()

    def collect_rollouts(
        self,
        env: Any,
        callback: BaseCallback,
        rollout_buffer: Any,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Take the batch that is ready and let the collector play the next one meanwhile."""
        callback.on_rollout_start()
        if self._ahead is None:
            self._play_ahead(self.network.weights() if self.behaviour is None else self.behaviour)
        assert self._ahead is not None
        self.batch = self._ahead.result()
        self.before_ahead = self.collector.state()
        self._play_ahead(self.network.weights())
        self.num_timesteps += len(self.batch.actions)
        for key, value in self.batch.statistics.items():
            self.logger.record(f"selfplay/{key}", value)
        callback.update_locals(locals())
        if not callback.on_step():
            return False
        callback.on_rollout_end()
        return True

    def train(self) -> None:
        """One PPO update on the batch."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        clip_range = self.clip_range(self._current_progress_remaining)  # type: ignore[operator]
        batch = self.batch
        advantages = gae(batch.rewards, batch.values, batch.following, self.gamma, self.gae_lambda)
        returns = advantages + batch.values
        use = np.flatnonzero(batch.following != UNFINISHED)
        scaled = advantages / (advantages[use].std() + 1e-8) - (
            advantages[use].mean() / (advantages[use].std() + 1e-8)
        )
        tensors = [
            torch.from_numpy(array)
            for array in (
                batch.observations,
                batch.actions.astype(np.int64),
                batch.masks,
                batch.log_probs,
                scaled,
                returns,
            )
        ]
        generator = np.random.default_rng([self.seed or 0, self._n_updates])
        losses = []
        for _ in range(self.n_epochs):
            order = torch.from_numpy(generator.permutation(use))
            for part in order.split(self.batch_size):
                if len(part) < self.batch_size // 2:
                    continue
                obs, actions, masks, old_log_prob, advantage, target = (t[part] for t in tensors)
                values, log_prob, entropy = self.policy.evaluate_actions(obs, actions, masks)
                assert entropy is not None
                loss = ppo_loss(
                    log_prob,
                    old_log_prob,
                    advantage,
                    values.flatten(),
                    target,
                    entropy,
                    clip_range,
                    self.vf_coef,
                    self.ent_coef,
                )
                self.policy.optimizer.zero_grad()
                loss.total.backward()
                torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                self.policy.optimizer.step()
                losses.append([float(term.detach()) for term in loss])
            self._n_updates += 1
        means = np.mean(losses, axis=0)
        for key, value in zip(Loss._fields, means, strict=True):
            self.logger.record(f"train/{key}", float(value))
        variance = float(np.var(returns[use]))
        explained = 1 - float(np.var(returns[use] - batch.values[use])) / max(variance, 1e-8)
        self.logger.record("train/explained_variance", explained)
        self.logger.record("train/learning_rate", self.policy.optimizer.param_groups[0]["lr"])

    def _excluded_save_params(self) -> list[str]:
        own = ["collector", "_pool", "_ahead", "batch", "behaviour", "before_ahead"]
        return [*super()._excluded_save_params(), *own]
