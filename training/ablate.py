"""What each part of the training is worth: one change at a time, two seeds each.

    python training/ablate.py --run-dir runs/ablation --warm runs/warm/checkpoint

Trains every variant of VARIANTS at two players with the options of the preset `quick` and few
decisions, judges it against `greedy` and Monte Carlo on the way, and writes `ablation.md` and
`ablation.png` to the folder. Runs that are finished are not made again, a stopped one goes on.
"""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # `python training/ablate.py` puts this file's folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import training  # noqa: F401  (says what is missing)

import numpy as np
import tyro

from oxx_env.lib.files import read_json
from oxx_env.lib.shell import program, script
from oxx_env.policy.checkpoint import write_atomically
from oxx_env.policy.insight import learning_curve
from training.config import check_ranges

TRAIN = Path(__file__).with_name("train.py")
OPPONENTS = (
    "--pool-share 0.2 --pool-size 4 --snapshot-every 50000"
    " --greedy-share 0.05 --careful-share 0.05 --mc-share 0.1"
)
# Name -> options besides those of the preset; WARM stands for the checkpoint to start from.
VARIANTS: dict[str, list[str]] = {
    "as in quick": [],
    "without foresight": ["--no-foresight"],
    "discount 1, lambda 0.95": ["--gamma", "1", "--gae-lambda", "0.95"],
    "discount 0.95, lambda 0.9": ["--gamma", "0.95", "--gae-lambda", "0.9"],
    "opponents: snapshots, greedy, careful, Monte Carlo": OPPONENTS.split(),
    "warm start": ["--init", "WARM", "--learning-rate", "2e-4", "--kl-coef", "0.05"],
}

RANGES: dict[str, tuple[float, float]] = {
    "decisions": (1, math.inf),
    "seeds": (0, 2**32 - 1),
    "eval_every": (1, math.inf),
    "eval_games": (10, math.inf),  # a fifth of them against Monte Carlo
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure what each part of the training is worth."""

    run_dir: Path = Path("runs/ablation")
    """Folder of all runs and of the result."""
    warm: Path = Path("runs/warm/checkpoint")
    """Checkpoint that the warm starts begin with (see distill.py)."""
    decisions: int = 130_000
    """Of each run."""
    seeds: tuple[int, ...] = (1, 2)
    """Of the runs of each variant."""
    eval_every: int = 32_000
    """Decisions between two points of a curve."""
    eval_games: int = 2000
    """Games against `greedy` for each point; a fifth of them against Monte Carlo (30 deals)."""


def run(options: Options, name: str, seed: int) -> list[dict[str, Any]]:
    """The evaluations of one run, which is made, or finished, if need be."""
    words = "".join(c if c.isalnum() else " " for c in name).split()
    folder = options.run_dir / f"{'-'.join(words)}-{seed}"
    begun = (folder / "config.json").exists()
    if begun:
        made = read_json(folder / "config.json")
        for option in ("decisions", "eval_every", "eval_games"):
            wanted = getattr(options, option)
            if made.get(option) != wanted:
                raise ValueError(
                    f"{folder} was made with {option} {made.get(option)}, not {wanted}:"
                    " name another --run-dir"
                )
    if not (folder / "evaluation.json").exists():
        if begun:
            arguments = ["--resume", str(folder)]
        else:
            arguments = ["--run-dir", str(folder), "--preset", "quick", "--seed", str(seed)]
            arguments += ["--decisions", str(options.decisions), "--eval-bots", "greedy", "mc"]
            arguments += ["--eval-every", str(options.eval_every)]
            arguments += ["--eval-games", str(options.eval_games), "--final-games", "20"]
            change = [str(options.warm) if a == "WARM" else a for a in VARIANTS[name]]
            arguments += change
        done = subprocess.run([sys.executable, str(TRAIN), *arguments], stdout=subprocess.DEVNULL)
        if done.returncode:
            raise ValueError(f"{name}, seed {seed}: train.py ended with {done.returncode}")
    return learning_curve(folder)


def tell(options: Options, found: dict[str, list[list[dict[str, Any]]]]) -> str:
    """The result as a Markdown table: each seed at its end."""
    heads = "| variant | against `greedy` | against `mc:30` |"
    lines = [heads, "|---|---|---|"]
    for name, runs in found.items():
        cells = []
        for key, games in (("greedy_2p", options.eval_games), ("mc_2p", options.eval_games // 5)):
            ends = [evaluations[-1][key] for evaluations in runs]
            mean = float(np.mean(ends))
            half = 1.96 * (mean * (1 - mean) / (games * len(ends))) ** 0.5
            each = ", ".join(f"{end:.3f}" for end in ends)
            cells.append(f"{mean:.3f} ± {half:.3f} ({each})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    command = f"python training/ablate.py --decisions {options.decisions}"
    last = max(runs[0][-1]["decisions"] for runs in found.values())
    lines.append(
        f"\n`{command}`: two players, `balanced`, {last:,} decisions, seeds"
        f" {', '.join(map(str, options.seeds))} (each in brackets), {options.eval_games:,} and"
        f" {options.eval_games // 5:,} games each; the interval is over games, not over seeds."
    )
    return "\n".join(lines)


def draw(found: dict[str, list[list[dict[str, Any]]]], path: Path) -> None:
    """Curves against `greedy`, a colour for each variant, a line for each seed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    for index, (name, runs) in enumerate(found.items()):
        for k, evaluations in enumerate(runs):
            xs = [e["decisions"] for e in evaluations]
            ys = [e["greedy_2p"] for e in evaluations]
            style = {"color": f"C{index}", "ls": "-" if k == 0 else "--", "marker": "."}
            axes.plot(xs, ys, label=name if k == 0 else None, **style)
    axes.set_xlabel("decisions learned from")
    axes.set_ylabel("win share against greedy, two players")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)


@program("ablate.py", "stopped; the same command goes on")
def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    check_ranges(options, RANGES)
    if not options.seeds:
        raise ValueError("seeds: at least one is needed")
    if not (options.warm / "config.json").exists():
        command = script(TRAIN.with_name("distill.py"))
        raise ValueError(f"{options.warm} is no checkpoint. This makes one:\n  {command}")
    found = {name: [run(options, name, seed) for seed in options.seeds] for name in VARIANTS}
    text = tell(options, found)
    write_atomically(options.run_dir / "ablation.md", (text + "\n").encode())
    draw(found, options.run_dir / "ablation.png")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
