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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # `python training/imitate.py` puts this file's folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import training  # noqa: F401  (says what is missing)

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from tqdm import tqdm

from oxx_env.game.engine import PENDING, masks, pending, step
from oxx_env.game.rules import ACTIONS, MAX_PLAYERS, NUMBERS
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import checksum, load_checkpoint, save_rollout_net
from oxx_env.policy.features import INPUT, encode_inputs
from oxx_env.policy.forward import score
from oxx_env.policy.network import RolloutNet
from training.config import ABOVE_0, PRESETS, Diverged, check_finite, check_ranges, check_types
from training.evaluate import commit
from training.selfplay import deal_over

GAMES = 2048  # side by side
KEPT = 0.35  # of the decisions: neighbours tell nearly the same
PART = 100_000  # decisions encoded at a time, on fresh decks
APART = 25  # steps in which only half of the decisions are carried out, so that games drift apart

RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**32 - 1),
    "decisions": (1, math.inf),
    "unseen": (1, NUMBERS),
    "epochs": (1, math.inf),
    "minibatch": (1, math.inf),
    "learning_rate": (ABOVE_0, math.inf),
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """Imitate a policy by a smaller network."""

    policy: str = "champion"
    """Checkpoint folder or shipped name of the policy to imitate."""
    run_dir: Path = Path("runs/swift")
    """Folder for the checkpoint."""
    seed: int = 1
    """Of everything random."""
    decisions: int = 1_000_000
    """Decisions to learn from."""
    unseen: int = 12
    """Unseen cards its foresight looks at."""
    epochs: int = 6
    """Passes over the decisions."""
    minibatch: int = 512
    """Samples of one gradient step."""
    learning_rate: float = 4e-3
    """Of Adam at its highest; rises at first, then falls, following a cosine."""

    def check(self) -> None:
        """Raise ValueError for what cannot be learned from: what it is, what would be right."""
        check_types(self)
        check_ranges(self, RANGES)


def played(
    weights: NDArray[np.float32], rng: np.random.Generator, n: int, unseen: int
) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """About `n` decisions of games by a policy: inputs [N, INPUT] with few unseen cards looked at,
    and the policy's probabilities [N, ACTIONS]."""
    space = PRESETS["full"]
    games, decks = deal_over(space, GAMES, rng)
    who = np.zeros(GAMES * MAX_PLAYERS, PENDING)
    legal = np.zeros((len(who), ACTIONS), np.int8)
    kept: list[tuple[NDArray[np.float16], NDArray[np.float32]]] = []
    steps = 0
    while sum(len(shares) for _, shares in kept) < n:
        count = int(pending(games, who))
        masks(games, decks, who, count, legal)
        seen = np.empty((count, INPUT), np.float32)
        encode_inputs(games, decks, who, count, seen)
        logits, _ = score(weights, seen)
        logits = np.where(legal[:count] > 0, logits, -np.inf)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        keep = rng.random(count) < KEPT
        some = np.ascontiguousarray(who[:count][keep])
        inputs = np.empty((len(some), INPUT), np.float32)
        encode_inputs(games, decks, some, len(some), inputs, unseen)
        kept.append((inputs.astype(np.float16), shares[keep]))
        actions = (rng.random((count, 1)) < shares.cumsum(axis=1)).argmax(axis=1)
        go = rng.random(count) < (0.5 if steps < APART else 1)
        some = np.ascontiguousarray(who[:count][go])
        step(games, decks, some, len(some), np.ascontiguousarray(actions[go]), True)
        steps += 1
    inputs, probabilities = (np.concatenate(arrays) for arrays in zip(*kept, strict=True))
    return inputs, probabilities


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
        for index in rng.permutation(len(parts)):
            inputs, shares = (torch.from_numpy(array) for array in parts[index])
            for part in torch.from_numpy(rng.permutation(len(inputs))).split(config.minibatch):
                target = shares[part]
                logits = net(inputs[part].float()).masked_fill(target == 0, -1e9)
                logits = torch.log_softmax(logits, 1)
                kl = torch.nn.functional.kl_div(logits, target, reduction="batchmean")
                check_finite("the loss is", learned, kl.detach())
                learned += len(part)
                optimizer.zero_grad()
                kl.backward()
                optimizer.step()
                schedule.step()
                total, batches = total + float(kl.detach()), batches + 1
    check_finite("the weights are", learned, net.weights())
    if total / batches > math.log(ACTIONS):
        raise Diverged(
            f"the training diverged: {total / batches:g} nats from the policy in its last pass,"
            f" farther than a guess ({math.log(ACTIONS):.1f} at most)"
        )
    return net, total / batches


def card(facts: dict[str, Any]) -> str:
    """The checkpoint's README."""
    return f"""# Network for play-outs

With it `search` plays hands to their end (`search:PATH:N:player=FOLDER`). It scores each choice by
itself, see `oxx_env/policy/rollout_net.py`, and is no policy for the arena.

- learned {facts["by"]}: {facts["decisions"]:,} decisions in {facts["seconds"]:.0f} s,
  {facts["imitation"]["kl"]:.4f} nats from it in the last pass
- looks at {facts["unseen_looked_at"]} unseen cards at most
- tables: {", ".join(map(str, facts["players"]))} players; rule sets: {", ".join(facts["rules"])};
  decks: {", ".join(facts["decks"])}
- made by `{facts["command"]}`
- sources: commit {facts["commit"] or "unknown"}
"""


@program("imitate.py", "stopped; nothing was written")
def main(argv: list[str]) -> int:
    config = tyro.cli(Config, args=argv, description=__doc__)
    config.check()
    start = time.monotonic()
    weights, _ = load_checkpoint(config.policy)
    try:
        net, kl = imitate(config, weights)
    except Diverged as error:
        raise ValueError(
            f"{error}\nTry a smaller --learning-rate (it was {config.learning_rate:g})"
        ) from error
    facts: dict[str, Any] = {
        "by": f"by imitating the policy with SHA-256 {checksum(config.policy)}",
        "seed": config.seed,
        "decisions": config.decisions,
        "seconds": round(time.monotonic() - start, 1),
        "players": list(PRESETS["full"].players),
        "rules": list(PRESETS["full"].rules),
        "decks": list(PRESETS["full"].decks),
        "unseen_looked_at": config.unseen,
        "command": shlex.join(["python", "training/imitate.py", *argv]),
        "commit": commit(),
        "imitation": {"kl": kl},
        "training": {**asdict(config), "run_dir": str(config.run_dir)},
    }
    folder = config.run_dir / "checkpoint"
    save_rollout_net(folder, net.weights(), facts, card(facts))
    print(json.dumps({"checkpoint": str(folder), "kl": kl}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
