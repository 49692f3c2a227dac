"""A tiny network that plays like a large one, for search to play out with.

    python training/imitate.py --policy champion --run-dir runs/swift

Plays games over the whole space (table sizes, rule sets, fresh decks) by drawing from the policy's
probabilities, and fits a network of `oxx_env.policy.rollout_net` to these. It looks at a sample of
the unseen cards only (`features.scratch`). One core, a few minutes; the result is a function of the
options.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

if not __package__:
    import start  # noqa: F401

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from tqdm import tqdm

from oxx_env.game.engine import step
from oxx_env.game.rules import ACTIONS, NUMBERS
from oxx_env.lib.options import Range, check
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import checksum, load_checkpoint, save_rollout_net
from oxx_env.policy.network import RolloutNet
from training.config import PRESETS, Count, Positive, Seed
from training.decisions import inputs_of, logits_of, probabilities, some, waiting
from training.learning import Diverged, check_finite, gradient_step, minibatches
from training.report import facts
from training.selfplay import deal_over

SPACE = PRESETS["full"]  # the games that are played
GAMES = 2048  # side by side
KEPT = 0.35  # of the decisions: those of one game are nearly the same
PART = 100_000  # decisions encoded at a time, on fresh decks
APART = 25  # steps in which only half of the decisions are carried out, so that games drift apart


@dataclass(frozen=True, kw_only=True)
class Config:
    """Imitate a policy by a smaller network."""

    policy: str = "champion"
    """Checkpoint folder or shipped name of the policy to imitate."""
    run_dir: Path = Path("runs/swift")
    """Folder for the checkpoint."""
    seed: Seed = 1
    """Of everything random."""
    decisions: Count = 1_000_000
    """Decisions to learn from."""
    unseen: Annotated[int, Range(1, NUMBERS)] = 12
    """Unseen cards that its features look at, at most."""
    epochs: Count = 6
    """Passes over the decisions."""
    minibatch: Count = 512
    """Samples of one gradient step."""
    learning_rate: Positive = 4e-3
    """Of Adam at its highest; rises at first, then falls, following a cosine."""


def played(
    weights: NDArray[np.float32], rng: np.random.Generator, n: int, unseen: int
) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """About `n` decisions of games by a policy: inputs [N, INPUT] with few unseen cards looked at,
    and the policy's probabilities [N, ACTIONS]."""
    games, decks = deal_over(SPACE, GAMES, rng)
    kept: list[tuple[NDArray[np.float16], NDArray[np.float32]]] = []
    steps = 0
    while sum(len(shares) for _, shares in kept) < n:
        who = waiting(games)
        count = len(who)
        shares = probabilities(logits_of(weights, games, decks, who))
        keep = rng.random(count) < KEPT
        inputs = inputs_of(games, decks, some(who, keep), unseen)
        kept.append((inputs.astype(np.float16), shares[keep]))
        actions = (rng.random((count, 1)) < shares.cumsum(axis=1)).argmax(axis=1)
        go = rng.random(count) < (0.5 if steps < APART else 1)
        moving = some(who, go)
        step(games, decks, moving, len(moving), np.ascontiguousarray(actions[go]), True)
        steps += 1
    inputs, shares = (np.concatenate(arrays) for arrays in zip(*kept, strict=True))
    return inputs, shares


def imitate(config: Config, weights: NDArray[np.float32]) -> tuple[RolloutNet, float]:
    """The tiny network, and how far it was from the policy in its last pass: mean KL(policy ||
    network) in nats."""
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    rng = np.random.default_rng([config.seed, 4])
    net = RolloutNet()
    size = min(PART, config.decisions)
    parts = [
        played(weights, rng, size, config.unseen)
        for _ in tqdm(range(-(-config.decisions // size)), unit="part", desc="games")
    ]
    optimizer = torch.optim.Adam(net.parameters(), lr=config.learning_rate)
    steps = config.epochs * sum(-(-len(shares) // config.minibatch) for _, shares in parts)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, config.learning_rate, total_steps=max(2, steps)
    )
    total, batches, learned = 0.0, 0, 0
    for _ in tqdm(range(config.epochs), unit="pass", desc="learning"):
        total, batches = 0.0, 0
        for inputs, shares in minibatches(parts, config.minibatch, rng):
            logits = net(inputs.float()).masked_fill(shares == 0, -1e9)
            logits = torch.log_softmax(logits, 1)
            kl = torch.nn.functional.kl_div(logits, shares, reduction="batchmean")
            learned += len(inputs)
            gradient_step(kl, optimizer, math.inf, learned)
            schedule.step()
            total, batches = total + float(kl.detach()), batches + 1
    check_finite("the weights are", learned, net.weights())
    if total / batches > math.log(ACTIONS):
        raise Diverged(
            f"the training diverged: {total / batches:g} nats from the policy in its last pass,"
            f" farther than a guess ({math.log(ACTIONS):.1f} at most)"
        )
    return net, total / batches


def card(about: dict[str, Any]) -> str:
    """The checkpoint's README."""
    return f"""# Network for play-outs

`search` plays hands to their end with it (`search:PATH:N:player=FOLDER`). It scores each choice by
itself, see `oxx_env/policy/rollout_net.py`, and is no policy for the arena.

- learned {about["by"]}: {about["decisions"]:,} decisions in {about["seconds"]:.0f} s,
  {about["imitation"]["kl"]:.4f} nats from it in the last pass
- looks at {about["unseen_looked_at"]} unseen cards at most
- tables: {", ".join(map(str, about["players"]))} players; rule sets: {", ".join(about["rules"])};
  decks: {", ".join(about["decks"])}
- made by `{about["command"]}`
- sources: commit {about["commit"] or "unknown"}
"""


@program("imitate.py", "stopped; nothing was written")
def main(argv: list[str]) -> int:
    config = tyro.cli(Config, args=argv, description=__doc__)
    check(config)
    start = time.monotonic()
    weights, _ = load_checkpoint(config.policy)
    try:
        net, kl = imitate(config, weights)
    except Diverged as error:
        raise ValueError(
            f"{error}\nTry a smaller --learning-rate (it was {config.learning_rate:g})"
        ) from error
    command = shlex.join(["python", "training/imitate.py", *argv])
    by = f"by imitating the policy with SHA-256 {checksum(config.policy)}"
    more = {"by": by, "unseen_looked_at": config.unseen, "imitation": {"kl": kl}}
    seconds = time.monotonic() - start
    about = facts(config, SPACE, config.decisions, seconds, command, **more)
    folder = config.run_dir / "checkpoint"
    save_rollout_net(folder, net.weights(), about, card(about))
    print(json.dumps({"checkpoint": str(folder), "kl": kl}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
