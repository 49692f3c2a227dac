"""RLlib, new API stack: PPO by self-play with masks on the AEC environment.

RLlib's wrapper asks only the seats that decide and sums up what a seat is rewarded meanwhile; its
module for masks wants the keys `observations` and `action_mask`. Switched off are
- the check of a new environment (`disable_env_checking=True`), which samples without masks;
- Ray's usage statistics and dashboard, which have nothing to do with this environment.

    pip install 'torch>=2.8,<2.14' 'ray[rllib]' oxx_env      # run with ray 2.60.0
"""

import argparse
import os

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # read by what follows

import ray
from gymnasium import spaces
from pettingzoo.utils import BaseWrapper
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

from oxx_env import baron_oxx_v0


class Renamed(BaseWrapper):
    """With the keys that RLlib's module for masks wants."""

    def observation_space(self, agent):
        space = super().observation_space(agent)
        return spaces.Dict(observations=space["observation"], action_mask=space["action_mask"])

    def observe(self, agent):
        seen = super().observe(agent)
        return {"observations": seen["observation"], "action_mask": seen["action_mask"]}


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO by self-play with RLlib")
    parser.add_argument("--decisions", type=int, default=16_000, help="to learn from")
    decisions = parser.parse_args().decisions

    ray.init(num_cpus=1, include_dashboard=False, _node_ip_address="127.0.0.1")
    register_env("oxx", lambda config: PettingZooEnv(Renamed(baron_oxx_v0.env(num_players=2))))
    module = RLModuleSpec(
        module_class=ActionMaskingTorchRLModule, model_config={"fcnet_hiddens": [256, 256]}
    )
    config = (
        PPOConfig()
        .environment("oxx", disable_env_checking=True)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
        .multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, episode: "shared")
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"shared": module}))
        .training(train_batch_size_per_learner=4000, minibatch_size=1000, num_epochs=4, gamma=0.85)
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    done = 0
    while done < decisions:
        result = algorithm.train()
        done = result["num_env_steps_sampled_lifetime"]
        points = result["env_runners"]["episode_return_mean"] / 2
        print(f"{done:.0f} decisions: {points:.1f} points a seat and game")
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
