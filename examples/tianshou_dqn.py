"""Tianshou: double DQN with masks, one learner against `greedy`.

Tianshou reads the mask from observations with the keys `obs` and `mask`, which a wrapper makes of
the Gymnasium environment's. Switched off: the infos, since Tianshou's buffer wants arrays of one
shape and `winners` of a match's last info are one seat or several.

Do not learn from Tianshou's `PettingZooEnv` on `baron_oxx_v0.env()`: of what a seat gets it counts
only what comes with the seat's own step, 4 of 5 points here, and it takes the next seat's
observation for what follows from an action.

    pip install 'torch>=2.8,<2.14' tianshou oxx_env      # run with tianshou 2.0.1
"""

import argparse

import gymnasium
import torch
from gymnasium.spaces import Dict, Discrete, MultiBinary
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from oxx_env import GYMNASIUM_ID, observe


class Masked(gymnasium.Wrapper):
    """The observation with its mask, as Tianshou's policies read them."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make(GYMNASIUM_ID, reward="relative"))
        self.observation_space = Dict(obs=self.env.observation_space, mask=MultiBinary(10))

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        return {"obs": observation, "mask": info["action_mask"].astype(bool)}, {}

    def step(self, action):
        observation, *rest, info = self.env.step(action)
        return {"obs": observation, "mask": info["action_mask"].astype(bool)}, *rest, {}


def main() -> None:
    parser = argparse.ArgumentParser(description="double DQN with Tianshou")
    parser.add_argument("--decisions", type=int, default=25_000, help="to learn from")
    decisions = parser.parse_args().decisions
    torch.manual_seed(1)
    torch.set_num_threads(1)

    train, test = (DummyVectorEnv([Masked for _ in range(16)]) for _ in range(2))
    net = Net(state_shape=observe.OBS, action_shape=10, hidden_sizes=[256, 256])
    policy = DiscreteQLearningPolicy(model=net, action_space=Discrete(10), eps_training=0.1)
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=3e-4),
        gamma=0.85,  # the luck of a whole game drowns what one card did
        target_update_freq=200,
    )
    result = algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=Collector(
                algorithm, train, VectorReplayBuffer(50_000, 16), exploration_noise=True
            ),
            test_collector=Collector(algorithm, test),
            max_epochs=5,
            epoch_num_steps=decisions // 5,
            collection_step_num_env_steps=160,
            update_step_num_gradient_steps_per_sample=0.1,
            batch_size=256,
            test_step_num_episodes=200,
            show_progress=False,
        )
    )
    print(f"relative points a game against greedy, at best: {result.best_reward:.1f}")


if __name__ == "__main__":
    main()
