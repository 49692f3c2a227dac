"""Speed beside another checkout of the project, by turns in one run.

    python benchmarks/against.py CHECKOUT [--rounds 5] [--only rollout search]

Each part runs in a fresh process with one thread, here and there in turn; its rate is per second of
processor time. The table shows the median of the ratios of neighbouring runs, the least and the
greatest, because the speed of shared machines changes. The first turn compiles and does not count.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

# Each leaves `work()`, which does its work once and returns how much it was. Only entrances that
# stay where they are, so that they run in older checkouts too.
PARTS = {
    "rollout": """
from oxx_env import engine
def work():
    return sum(engine.rollout("greedy", players, 4000, 1) for players in (2, 4, 10))
""",
    "observed batch": """
import numpy as np
from oxx_env.envs.vector import BaronOxxVecEnv
env = BaronOxxVecEnv(1024, 4, opponents=("random",), seed=1)
env.reset()
def work():
    for _ in range(60):
        env.step(env.action_masks().argmax(axis=1))
    return 60 * 1024
""",
    "ParallelEnv": """
from oxx_env import baron_oxx_v0
env = baron_oxx_v0.parallel_env(num_players=4)
def work():
    steps = 0
    for seed in range(40):
        observations, _ = env.reset(seed=seed)
        while env.agents:
            actions = {a: int(o["action_mask"].argmax()) for a, o in observations.items()}
            observations, *_ = env.step(actions)
            steps += 1
    return steps
""",
    "policy": """
import numpy as np
from oxx_env import bots, table
BOT = "policy:champion-1"
""",
    "search": """
import numpy as np
from oxx_env import bots, table
BOT = "search:champion-1:16"
""",
}
DECISIONS = """
bot, rng, views = bots.make(BOT), np.random.default_rng(1), []
for players in (2, 4, 10):
    game = table.Table(players, "base", "balanced")
    game.deal(seed=players)
    while not game.over:
        seat = game.deciders()[0]
        views.append(game.view(seat))
        game.act(seat, game.legal(seat)[0])
if BOT.startswith("search"):
    views = views[::6]
def work():
    for view in views:
        bot.act(view, rng)
    return len(views)
"""
CLOCK = """
import time
work()
done, start = 0, time.process_time()
while time.process_time() < start + 1.5:
    done += work()
print(done / (time.process_time() - start))
"""


def rate(checkout: Path, part: str) -> float:
    """Work a second of processor time, by a fresh process on the sources of a checkout."""
    program = PARTS[part] + (DECISIONS if "BOT" in PARTS[part] else "") + CLOCK
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{checkout}: {done.stderr.strip()}")
    return float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=Path, help="the older checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    if not (options.checkout / "oxx_env").is_dir() or options.rounds < 1:
        print("against: needs a checkout of this project, and rounds from 1", file=sys.stderr)
        return 2
    here = Path(__file__).resolve().parents[1]
    print("| part | here, a second | there | here / there | from | to |\n|---|---|---|---|---|---|")
    for part in options.only:
        rate(here, part), rate(options.checkout, part)
        pairs = [(rate(here, part), rate(options.checkout, part)) for _ in range(options.rounds)]
        ratios = sorted(new / old for new, old in pairs)
        new, old = (median(column) for column in zip(*pairs, strict=True))
        print(
            f"| {part} | {new:,.0f} | {old:,.0f} | {median(ratios):.2f} | {ratios[0]:.2f}"
            f" | {ratios[-1]:.2f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
