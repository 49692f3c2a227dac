"""TorchRL: PPO by self-play with masks on `parallel_env`; all seats share one network.

`PettingZooWrapper` puts the seats into one group and the mask where `MaskedCategorical` takes it. A
seat that waits has one legal action, so that its ratio is 1 and it teaches the policy nothing.
Nothing has to be switched off; TorchRL warns that it is tested with PettingZoo 1.24.3 only.

    pip install 'torch>=2.8,<2.14' torchrl oxx_env      # run with torchrl 0.14.1, tensordict 0.14.3
"""

import argparse

import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import PettingZooWrapper, RewardSum, TransformedEnv
from torchrl.modules import MaskedCategorical, MultiAgentMLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss, ValueEstimators

from oxx_env import baron_oxx_v0, observe

SEATS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO by self-play with TorchRL")
    parser.add_argument("--steps", type=int, default=20_000, help="of the environment")
    steps = parser.parse_args().steps
    torch.manual_seed(1)
    torch.set_num_threads(1)

    env = PettingZooWrapper(baron_oxx_v0.parallel_env(num_players=SEATS), seed=1)
    env = TransformedEnv(env, RewardSum(in_keys=[env.reward_key]))
    seen, mask = ("player", "observation", "observation"), ("player", "action_mask")

    def network(outputs: int) -> MultiAgentMLP:
        return MultiAgentMLP(
            observe.OBS, outputs, SEATS, centralized=False, share_params=True, num_cells=[256]
        )

    actor = ProbabilisticActor(
        TensorDictModule(network(10), in_keys=[seen], out_keys=[("player", "logits")]),
        spec=env.action_spec,
        in_keys={"logits": ("player", "logits"), "mask": mask},
        out_keys=[env.action_key],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(network(1), in_keys=[seen], out_keys=[("player", "state_value")])
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    loss.set_keys(
        reward=env.reward_key,
        action=env.action_key,
        value=("player", "state_value"),
        done=("player", "done"),
        terminated=("player", "terminated"),
    )
    loss.make_value_estimator(ValueEstimators.GAE, gamma=0.85, lmbda=0.8)
    adam = torch.optim.Adam(loss.parameters(), lr=3e-4)
    collector = Collector(
        env, actor, frames_per_batch=1000, total_frames=steps, auto_register_policy_transforms=False
    )
    for batch in collector:
        with torch.no_grad():
            loss.value_estimator(batch, params=loss.critic_network_params)
        for _ in range(4):
            for part in torch.randperm(len(batch)).split(250):
                losses = loss(batch[part])
                adam.zero_grad()
                sum(value for name, value in losses.items() if name.startswith("loss_")).backward()
                adam.step()
        ended = batch["next", "done"][:, 0]
        points = batch["next", "player", "episode_reward"][ended].mean()
        print(f"{int(ended.sum())} games, {points:.1f} points a seat")


if __name__ == "__main__":
    main()
