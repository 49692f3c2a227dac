"""AgileRL: PPO with masks, one learner in 16 games at once against `greedy`.

AgileRL looks for the mask in the infos, where Gymnasium's batch of games has it. Nothing has to be
switched off, but rewards have to be small, since it clips each step of the values at 0.2.

For its multi-agent IPPO on `parallel_env` two things would be: observations have to be the vectors
alone and masks lists, since AgileRL 2.7.1 compares them with None (a ValueError with arrays). Do
not use it all the same: what it learns from knows no masks, so its probabilities are wrong.

    pip install 'torch>=2.8,<2.14' agilerl oxx_env      # run with agilerl 2.7.1
"""

import argparse

import gymnasium
import torch
from agilerl.algorithms import PPO
from agilerl.rollouts import collect_rollouts
from agilerl.training.train_on_policy import train_on_policy

from oxx_env import GYMNASIUM_ID


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO with AgileRL")
    parser.add_argument("--decisions", type=int, default=100_000, help="to learn from")
    decisions = parser.parse_args().decisions
    torch.manual_seed(1)
    torch.set_num_threads(1)
    envs = gymnasium.make_vec(GYMNASIUM_ID, num_envs=16, reward="relative", opponents=("greedy",))
    envs = gymnasium.wrappers.vector.TransformReward(envs, lambda rewards: rewards / 10)
    agent = PPO(
        observation_space=envs.single_observation_space,
        action_space=envs.single_action_space,
        net_config={"encoder_config": {"hidden_size": [256]}},
        num_envs=16,
        learn_step=2048,
        batch_size=512,
        lr=1e-3,
        gamma=0.85,  # the luck of a whole game drowns what one card did
        gae_lambda=0.8,
        use_rollout_buffer=True,  # the one that keeps the masks
    )
    _, scores = train_on_policy(
        envs,
        GYMNASIUM_ID,
        "PPO",
        [agent],
        max_steps=decisions,
        evo_steps=max(2048, decisions // 5),
        eval_loop=10,
        verbose=False,
        collect_rollouts_fn=collect_rollouts,
    )
    for number, score in enumerate(scores):
        print(f"relative points a game against greedy ({number + 1}): {10 * score[0]:.1f}")


if __name__ == "__main__":
    main()
