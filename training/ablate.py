"""The effect of each part of the training: one change at a time, two seeds each.

    python training/ablate.py --run-dir runs/ablation --warm runs/warm/checkpoint

Trains every variant of VARIANTS at two players with the options of the preset `quick` and few
decisions, judges it against `greedy` and Monte Carlo on the way, and writes `ablation.md` and
`ablation.png` to the folder. Runs that are finished are not made again, a stopped one goes on.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

if not __package__:
    import start  # noqa: F401

import numpy as np
import tyro

from oxx_env.lib.files import read_json
from oxx_env.lib.options import NOT_EMPTY, Range, check
from oxx_env.lib.shell import program, script
from oxx_env.policy.checkpoint import write_atomically
from oxx_env.policy.insight import learning_curve
from oxx_env.show import plot
from training.config import Count, differences

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


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure the effect of each part of the training."""

    run_dir: Path = Path("runs/ablation")
    """Folder of all runs and of the result."""
    warm: Path = Path("runs/warm/checkpoint")
    """Checkpoint that the warm starts begin with (see distill.py)."""
    decisions: Count = 130_000
    """Of each run."""
    seeds: Annotated[tuple[int, ...], Range(0, 2**32 - 1), NOT_EMPTY] = (1, 2)
    """Of the runs of each variant."""
    eval_every: Count = 32_000
    """Decisions between two points of a curve."""
    eval_games: Annotated[int, Range(10)] = 2000
    """Games against `greedy` for each point; a fifth of them against Monte Carlo (30 deals)."""


def run(options: Options, name: str, seed: int) -> list[dict[str, Any]]:
    """The evaluations of one run, which is made, or finished, if need be."""
    words = "".join(c if c.isalnum() else " " for c in name).split()
    folder = options.run_dir / f"{'-'.join(words)}-{seed}"
    begun = (folder / "config.json").exists()
    if begun:
        wanted = {
            name: getattr(options, name) for name in ("decisions", "eval_every", "eval_games")
        }
        changed = differences(read_json(folder / "config.json"), wanted)
        if changed:
            found = "; ".join(f"{name} {values}" for name, values in changed.items())
            raise ValueError(f"{folder} was made with {found}: name another --run-dir")
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


def report(options: Options, found: dict[str, list[list[dict[str, Any]]]]) -> str:
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
    """Curves against `greedy`, a line for each variant: mean, lowest and highest of its seeds."""
    figure, (axes,) = plot.panels(1, width=8, height=5)
    lines = []
    for name, runs in found.items():
        xs = [point["decisions"] for point in min(runs, key=len)]
        curves = np.array([[point["greedy_2p"] for point in run[: len(xs)]] for run in runs])
        bounds = np.stack([curves.min(axis=0), curves.max(axis=0)], axis=1).tolist()
        lines.append(plot.Line(name, xs, curves.mean(axis=0).tolist(), bounds))
    plot.draw_lines(axes, lines)
    axes.set(xlabel="decisions learned from", ylabel="win share against greedy, two players")
    plot.save(figure, path)


@program("ablate.py", "stopped; the same command goes on")
def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    check(options)
    if not (options.warm / "config.json").exists():
        command = script(TRAIN.with_name("distill.py"))
        raise ValueError(f"{options.warm} is no checkpoint. This makes one:\n  {command}")
    found = {name: [run(options, name, seed) for seed in options.seeds] for name in VARIANTS}
    text = report(options, found)
    write_atomically(options.run_dir / "ablation.md", (text + "\n").encode())
    draw(found, options.run_dir / "ablation.png")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
