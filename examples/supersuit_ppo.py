"""SuperSuit: PPO of stable-baselines3 by self-play, each seat of `parallel_env` a row of the batch.

SuperSuit's vector environments hand no masks on, so that MaskablePPO cannot use them. Switched on
therefore: `illegal_action="substitute"`, which plays a random legal action in place of an illegal
one. Observations have to be the vectors alone. `BaronOxxVecEnv` (examples/sb3.py) is better.

    pip install 'torch>=2.8,<2.14' supersuit stable-baselines3 oxx_env # run with supersuit 3.11.0
"""

import argparse

import supersuit
import torch
from pettingzoo.utils.wrappers import BaseParallelWrapper
from stable_baselines3 import PPO

from oxx_env import baron_oxx_v0


class Vectors(BaseParallelWrapper):
    """The observations without their masks."""

    def observation_space(self, agent):
        return self.env.observation_space(agent)["observation"]

    def reset(self, seed=None, options=None):
        seen, infos = self.env.reset(seed=seed, options=options)
        return {agent: seen[agent]["observation"] for agent in seen}, infos

    def step(self, actions):
        seen, *rest = self.env.step(actions)
        return {agent: seen[agent]["observation"] for agent in seen}, *rest


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO by self-play with SuperSuit")
    parser.add_argument("--steps", type=int, default=100_000, help="of seats, also waiting")
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    env = baron_oxx_v0.parallel_env(num_players=2, illegal_action="substitute")
    envs = supersuit.pettingzoo_env_to_vec_env_v1(Vectors(env))
    envs = supersuit.concat_vec_envs_v1(envs, 8, num_cpus=1, base_class="stable_baselines3")
    model = PPO("MlpPolicy", envs, n_steps=128, batch_size=512, n_epochs=4, gamma=0.85, verbose=1)
    model.learn(steps)


if __name__ == "__main__":
    main()
