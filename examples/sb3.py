"""stable-baselines3: MaskablePPO learns to play against `greedy`, 64 games at a time.

`BaronOxxVecEnv` is a batch of games with one learning seat each; the other seats are answered in
compiled code. MaskablePPO asks it for the legal actions by itself; nothing has to be switched off.

    pip install 'torch>=2.8,<2.14' stable-baselines3 sb3-contrib oxx_env      # run with both 2.9.2
"""

import argparse

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy

from oxx_env.envs.vector import BaronOxxVecEnv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--decisions", type=int, default=150_000, help="to learn from")
    parser.add_argument("--games", type=int, default=500, help="to measure by")
    options = parser.parse_args()
    torch.set_num_threads(1)

    table = {"players": 2, "rules": "base", "opponents": ("greedy",), "reward": "relative"}
    model = MaskablePPO(
        "MlpPolicy",
        BaronOxxVecEnv(64, **table, seed=1),
        n_steps=64,
        batch_size=1024,  # the default of 64 costs eight times the time
        n_epochs=4,
        gamma=0.85,  # the luck of a whole game drowns what one card did
        gae_lambda=0.8,
        policy_kwargs={"net_arch": [256, 256]},
        seed=1,
    )
    unseen = BaronOxxVecEnv(64, **table, seed=10**9)
    print(f"relative points a game before: {score(model, unseen, options.games):.2f}")
    model.learn(options.decisions)
    print(f"after {model.num_timesteps} decisions: {score(model, unseen, options.games):.2f}")


def score(model: MaskablePPO, envs: BaronOxxVecEnv, games: int) -> float:
    """Own points minus the opponent's, by the best action; higher is better, 0 is parity."""
    mean, _ = evaluate_policy(model, envs, n_eval_episodes=games, warn=False)
    return float(mean)


if __name__ == "__main__":
    main()
