"""torch alone: PPO by self-play on `parallel_env`, in the style of CleanRL.

In every step all agents act, but a seat that waits may only pass. That is no decision: no sample is
made of it, and its reward belongs to the last decision of the seat.

    pip install 'torch>=2.8,<2.14' oxx_env      # run with torch 2.13.0
"""

import argparse

import torch
from torch import nn

from oxx_env import baron_oxx_v0, observe

ACTIONS, PASS = 10, 9
GAMMA, GAE_LAMBDA = 0.85, 0.8  # the luck of a whole game drowns what a card did


def judge(out: torch.Tensor, mask: torch.Tensor):
    """The policy over the legal actions, and the value."""
    logits = out[..., :ACTIONS].masked_fill(mask == 0, -1e9)
    return torch.distributions.Categorical(logits=logits), out[..., ACTIONS]


def play(env, nets: list) -> list[list]:
    """One game: of each seat its decisions, [obs, mask, action, log-probability, value, reward]."""
    seen, _ = env.reset()  # by the seed that the first reset had
    made = {agent: [] for agent in env.agents}
    while env.agents:
        actions = dict.fromkeys(env.agents, PASS)
        for agent, net in zip(env.agents, nets, strict=True):
            obs, mask = map(torch.from_numpy, seen[agent].values())
            if not mask[PASS]:
                with torch.no_grad():
                    policy, value = judge(net(obs), mask)
                action = policy.sample()
                made[agent].append([obs, mask, action, policy.log_prob(action), value, 0.0])
                actions[agent] = int(action)
        seen, rewards, *_ = env.step(actions)
        for agent, reward in rewards.items():
            made[agent][-1][-1] += reward
    return list(made.values())


def learn(seats: list[list], net: nn.Module, adam: torch.optim.Optimizer) -> None:
    samples = []
    for decisions in seats:
        advantage = following = 0.0  # after the last decision of a game comes nothing
        for *sample, value, reward in reversed(decisions):
            advantage = reward + GAMMA * (following + GAE_LAMBDA * advantage) - value
            following = value
            samples.append((*sample, advantage, advantage + value))
    columns = [torch.stack(column) for column in zip(*samples, strict=True)]
    for batch in torch.cat([torch.randperm(len(samples)) for _ in range(4)]).split(512):
        obs, mask, actions, before, advantages, returns = (column[batch] for column in columns)
        policy, values = judge(net(obs), mask)
        ratio = (policy.log_prob(actions) - before).exp()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        loss += 0.5 * (values - returns).pow(2).mean() - 0.01 * policy.entropy().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PPO by self-play with torch alone")
    parser.add_argument("--updates", type=int, default=50, help="each after 20 games of four seats")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(observe.OBS, 256), nn.ReLU(), nn.Linear(256, ACTIONS + 1))
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    env = baron_oxx_v0.parallel_env(num_players=4, reward="relative")
    env.reset(seed=1)  # later games follow from this one
    for _ in range(parser.parse_args().updates):
        learn([seat for _ in range(20) for seat in play(env, [net] * 4)], net, adam)
    table = [net] + 3 * [lambda obs: torch.zeros(ACTIONS + 1)]  # all legal actions alike
    won = sum(made[-1] for _ in range(100) for made in play(env, table)[0])
    print(f"relative points a game among three who play at random: {won / 100:.1f}")
