"""What the first start costs: processor time and kernels compiled, with an empty cache each time.

    python benchmarks/compile_time.py [--against CHECKOUT] [--rounds N] [--part WORD]

Each part runs in a fresh process whose compiled code goes to an empty folder. With `--against` the
same parts run from another checkout of the project, by turns, and the ratio is printed: machines
that others use as well are not equally fast all the time. The programs run in older checkouts, too:
they go in where the package has always been entered, or try the new path and then the old one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

PARTS = {
    "oxx advise": (
        "import runpy, sys\n"
        "sys.argv[1:] = ['advise', '4p | rows 12 7 31 20 46 | hand 3 17 52 88', '--json']\n"
        "runpy.run_module('oxx_env', run_name='__main__')"
    ),
    "make train, first decisions": (
        "import numpy as np\n"
        "try:\n"
        "    from oxx_env.policy.forward import weight_count\n"
        "except ModuleNotFoundError:  # where it lay before\n"
        "    from oxx_env.forward import weight_count\n"
        "from training.config import PRESETS\n"
        "from training.selfplay import Collector\n"
        "config = PRESETS['quick']\n"
        "Collector(config).collect(np.zeros(weight_count(config.hidden), np.float32))"
    ),
    "parallel environment, first step": (
        "from oxx_env import baron_oxx_v0\n"
        "env = baron_oxx_v0.parallel_env(num_players=4)\n"
        "env.reset(seed=0)\n"
        "env.step(dict.fromkeys(env.agents, 0))"
    ),
}


def measure(checkout: Path, program: str) -> tuple[float, int]:
    """Processor seconds (user and system) of a fresh process, and kernels compiled by it, counted
    once for other kernels and once for Python."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "PYTHONPATH": str(checkout),
            "NUMBA_CACHE_DIR": cache,
            "OMP_NUM_THREADS": "1",
        }
        before = os.times()
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=checkout,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        after = os.times()
        spent = after.children_user - before.children_user
        spent += after.children_system - before.children_system
        return spent, len(list(Path(cache).rglob("*.nbc")))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--against", type=Path, help="another checkout, to compare with")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--part", default="", help="only parts with this word in their name")
    chosen = options.parse_args()
    checkouts = [Path(__file__).resolve().parents[1]]
    if chosen.against:
        checkouts.append(chosen.against.resolve())
    for part, program in PARTS.items():
        if chosen.part not in part:
            continue
        seconds: list[list[float]] = [[] for _ in checkouts]
        kernels = [0 for _ in checkouts]
        for _ in range(chosen.rounds):
            for index, checkout in enumerate(checkouts):
                spent, kernels[index] = measure(checkout, program)
                seconds[index].append(spent)
        shown = [f"{median(s):.1f} s, {k} kernels" for s, k in zip(seconds, kernels, strict=True)]
        if len(shown) == 2:
            ratio = median(a / b for a, b in zip(*seconds, strict=True))
            shown[1] = f"against {shown[1]}: {ratio:.2f}"
        print(f"{part}: {' '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
