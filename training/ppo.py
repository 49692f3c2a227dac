"""Proximal policy optimisation on self-play: MaskablePPO with our own collection.

The mathematics are pure functions: `gae` and `ppo_loss`. `SelfPlayPPO` is sb3-contrib's MaskablePPO
whose samples come from a `Collector`, so that stable-baselines3's logger, callbacks, schedules and
optimiser state work as usual. While the learner trains on one batch, the collector already plays
the next one on the other core, with the weights from before the update; PPO's ratio accounts for
that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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

from oxx_env.game.observe import HIGH, LOW
from oxx_env.game.rules import ACTIONS
from oxx_env.lib.jit import kernel
from oxx_env.policy.features import INPUT
from oxx_env.policy.network import OxxNetwork
from training.learning import check_finite, gradient_step
from training.pool import MATCHES, SEATS, relative_share
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
    drift: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


class Weights(NamedTuple):
    """The clip range, and the weights of the further terms of the loss."""

    clip_range: float
    vf_coef: float
    ent_coef: float
    kl_coef: float = 0.0


class Samples(NamedTuple):
    """A minibatch's targets, all [N].

    log_prob    of the action under the policy that played it
    advantages  scaled
    returns     targets of the values
    """

    log_prob: Tensor
    advantages: Tensor
    returns: Tensor


def ppo_loss(
    log_prob: Tensor,
    values: Tensor,
    entropy: Tensor,
    samples: Samples,
    weights: Weights,
    drift: Tensor | None = None,
) -> Loss:
    """The clipped surrogate of Schulman et al. 2017, value and entropy terms.

    log_prob, values, entropy  [N] of the policy that learns
    drift                      [N] KL(prior || policy) of a policy that is not to be forgotten;
                               None: there is none
    """
    clip_range, vf_coef, ent_coef, kl_coef = weights
    ratio = torch.exp(log_prob - samples.log_prob)
    clipped = torch.clamp(ratio, 1 - clip_range, 1 + clip_range)
    policy = -torch.min(samples.advantages * ratio, samples.advantages * clipped).mean()
    value = torch.nn.functional.mse_loss(values, samples.returns)
    mean_entropy = entropy.mean()
    mean_drift = torch.zeros(()) if drift is None else drift.mean()
    total = policy + vf_coef * value - ent_coef * mean_entropy + kl_coef * mean_drift
    with torch.no_grad():
        log_ratio = log_prob - samples.log_prob
        approx_kl = ((ratio - 1) - log_ratio).mean()  # Schulman's low-variance estimate
        clip_fraction = (torch.abs(ratio - 1) > clip_range).float().mean()
    return Loss(total, policy, value, mean_entropy, mean_drift, approx_kl, clip_fraction)


def divergence(prior: Tensor, logits: Tensor) -> Tensor:
    """KL(prior || policy) [N] of probabilities [N, A] and normalised logits [N, A]."""
    return (prior * (torch.log(prior.clamp(min=1e-12)) - logits)).sum(1)


def calibration(values: NDArray[np.float32], returns: NDArray[np.float32]) -> dict[str, float]:
    """How well predicted values fit the returns; both [N].

    explained_variance   1 - Var(returns - values) / Var(returns)
    value_bias           mean of returns - values
    value_slope          of the regression of returns on values; 1: neither too bold nor too timid
    value_calibration    mean distance between value and return over ten groups by value
    """
    error = returns - values
    order = np.argsort(values)
    groups = [float(abs(error[group].mean())) for group in np.array_split(order, 10) if len(group)]
    return {
        "explained_variance": 1 - float(error.var()) / max(float(returns.var()), 1e-8),
        "value_bias": float(error.mean()),
        "value_slope": float(np.cov(values, returns)[0, 1]) / max(float(values.var()), 1e-8),
        "value_calibration": float(np.mean(groups)),
    }


class OxxPolicy(MaskableActorCriticPolicy):
    """`OxxNetwork` as a policy of stable-baselines3, its options by `policy_kwargs`."""

    def __init__(self, *args: Any, hidden: int = 64, foresight: bool = True, **kwargs: Any) -> None:
        self.hidden, self.foresight = hidden, foresight
        super().__init__(*args, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        self.network = OxxNetwork(self.hidden, self.foresight)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )

    def distributed(self, logits: Tensor, action_masks: Any) -> Any:
        """The distribution over the actions."""
        distribution = self.action_dist.proba_distribution(action_logits=logits)
        if action_masks is not None:
            distribution.apply_masking(action_masks)
        return distribution


class SpacesEnv(gym.Env):  # type: ignore[type-arg]
    """Tells stable-baselines3 the spaces; the games are played by the collector."""

    observation_space = spaces.Box(LOW, HIGH, (INPUT,), np.float32)
    action_space = spaces.Discrete(ACTIONS)

    def reset(self, **kwargs: Any) -> tuple[NDArray[np.float32], dict[str, Any]]:
        return np.zeros(INPUT, np.float32), {}


def _ignore(share: float) -> None:
    pass


class SelfPlayPPO(MaskablePPO):
    """MaskablePPO that learns from a collector's batches.

    collector  plays the games
    kl_coef    weight of the divergence from the collector's prior
    """

    collector: Collector

    def __init__(
        self, policy: Any, env: Any, collector: Any = None, kl_coef: float = 0.0, **kwargs: Any
    ) -> None:
        self.collector = collector
        self.kl_coef = kl_coef
        self._pool = ThreadPoolExecutor(1)
        self._ahead: Future[Batch] | None = None
        self.behaviour: NDArray[np.float32] | None = None  # weights the batch ahead is played with
        # Called after each gradient step with the share of the update's steps that is done.
        self.after_step: Callable[[float], None] = _ignore
        self.batches = 0  # learned from in this sitting
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
        start = time.monotonic()
        self.batch = self._ahead.result()
        self.logger.record("time/waited_for_games", time.monotonic() - start)
        played_by = (self.batch.values, self.batch.log_probs)
        check_finite("the values of the actions are", self.num_timesteps, *played_by)
        self.num_timesteps += len(self.batch.actions)
        self._after_batch()
        self.before_ahead = self.collector.state()
        self.batches += 1
        self._play_ahead(self.network.weights())
        callback.update_locals(locals())
        if not callback.on_step():
            return False
        callback.on_rollout_end()
        return True

    def _after_batch(self) -> None:
        """Count and log the results of the batch, and take a snapshot when it is time."""
        pool, results = self.collector.pool, self.batch.results
        pool.count(results)
        for name, tally in zip(pool.names, results, strict=True):
            if tally[SEATS]:
                key = name.replace(" ", "_")
                self.logger.record(f"opponents/{key}_matches", float(tally[MATCHES]))
                if name != "self":
                    against = relative_share(tally)
                    self.logger.record(f"opponents/{key}_learner_against_it", against)
        for name, rating in pool.ratings().items():
            self.logger.record(f"opponents/{name.replace(' ', '_')}_rating", rating)
        every = self.collector.config.snapshot_every
        taken = int(pool.born.max()) if len(pool.born) else 0
        if self.num_timesteps // every > max(taken, 0) // every:
            pool.add(self.network.weights(), self.num_timesteps)

    def train(self) -> None:
        """One PPO update on the batch."""
        start = time.monotonic()
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        clip_range = self.clip_range(self._current_progress_remaining)  # type: ignore[operator]
        weights = Weights(clip_range, self.vf_coef, self.ent_coef, self.kl_coef)
        batch = self.batch
        advantages = gae(batch.rewards, batch.values, batch.following, self.gamma, self.gae_lambda)
        returns = advantages + batch.values
        use = np.flatnonzero(batch.following != UNFINISHED)
        spread = advantages[use].std() + 1e-8
        scaled = advantages / spread - advantages[use].mean() / spread
        arrays = (batch.observations, batch.masks, batch.actions.astype(np.int64))
        inputs, masks, actions, *rest = (
            torch.from_numpy(array) for array in (*arrays, batch.log_probs, scaled, returns)
        )
        priors = torch.from_numpy(batch.priors) if len(batch.priors) else None
        generator = np.random.default_rng([self.seed or 0, self._n_updates])
        losses: list[list[float]] = []
        before = self.num_timesteps - len(batch.actions)
        full, left = divmod(len(use), self.batch_size)
        steps = self.n_epochs * (full + (left >= self.batch_size // 2))
        for _ in range(self.n_epochs):
            order = torch.from_numpy(generator.permutation(use))
            for part in order.split(self.batch_size):
                if len(part) < self.batch_size // 2:
                    continue
                learned = before + min(len(losses) * self.batch_size, len(batch.actions))
                played = inputs[part], masks[part], actions[part]
                samples = Samples(*(tensor[part] for tensor in rest))
                prior = None if priors is None else priors[part]
                loss = self._loss(played, samples, weights, prior, learned)
                optimizer = self.policy.optimizer
                gradient_step(loss.total, optimizer, self.max_grad_norm, learned)
                losses.append([float(term.detach()) for term in loss])
                self.after_step(len(losses) / steps)
            self._n_updates += 1
        self._check_network(inputs[:256])
        for key, value in zip(Loss._fields, np.mean(losses, axis=0), strict=True):
            self.logger.record(f"train/{key}", float(value))
        for key, figure in calibration(batch.values[use], returns[use]).items():
            self.logger.record(f"train/{key}", figure)
        seconds = time.monotonic() - start
        self.logger.record("time/learned_samples_per_second", len(use) * self.n_epochs / seconds)
        self.logger.record("train/learning_rate", self.policy.optimizer.param_groups[0]["lr"])

    def _loss(
        self,
        played: tuple[Tensor, Tensor, Tensor],
        samples: Samples,
        weights: Weights,
        prior: Tensor | None,
        learned: int,
    ) -> Loss:
        """The loss on a minibatch. Raises Diverged, after so many decisions learned from, for
        outputs of the network that are not finite.

        played  inputs [N, INPUT], masks [N, ACTIONS], actions [N]
        prior   [N, ACTIONS] probabilities under the policy not to be forgotten
        """
        inputs, masks, actions = played
        logits, values = self.network(inputs)
        check_finite("the network's outputs are", learned, logits.detach(), values.detach())
        distribution = self.policy.distributed(logits, masks)
        log_prob, entropy = distribution.log_prob(actions), distribution.entropy()
        drift = None if prior is None else divergence(prior, distribution.distribution.logits)
        return ppo_loss(log_prob, values, entropy, samples, weights, drift)

    def _check_network(self, observations: Tensor) -> None:
        """Raise Diverged for weights that the next games cannot be played with."""
        check_finite("the weights are", self.num_timesteps, self.network.weights())
        with torch.no_grad():
            outputs = self.network(observations)
        check_finite("the network's outputs are", self.num_timesteps, *outputs)

    def _excluded_save_params(self) -> list[str]:
        own = ["collector", "_pool", "_ahead", "batch", "behaviour", "before_ahead", "after_step"]
        return [*super()._excluded_save_params(), *own]
