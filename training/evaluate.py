"""Evaluate a checkpoint: `python training/evaluate.py CHECKPOINT`.

Plays the policy against baselines in the arena (same deals for all seats, intervals by block of
deals) and prints win share and mean points with 95 % intervals.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

if not __package__:
    import start  # noqa: F401

from tqdm import tqdm

from oxx_env import arena
from oxx_env.lib.options import check
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import load_checkpoint
from training.config import Count, Names
from training.report import entry, table


@dataclass(frozen=True, kw_only=True)
class Options:
    """Evaluate a checkpoint against baselines."""

    checkpoint: str
    """Folder, or name of a shipped checkpoint."""
    against: Names = ("random", "greedy")
    """Baselines, each filling all other seats."""
    players: int = 2
    """Players at the table, 2 to 10."""
    rules: str = "base"
    """base, color, positive or color+positive."""
    deck: str = "balanced"
    """Name or path."""
    games: int = 4000
    """Games against each baseline."""
    seed: int = 1
    """Of deals and bots."""
    workers: Count = 2
    """Processes; changes no figure."""
    json: bool = False
    """One JSON object instead of the table."""


def evaluate(options: Options, progress: bool = False) -> list[dict[str, Any]]:
    """One entry per baseline: the policy in one seat, the baseline in all others.

    Raises CheckpointError or ValueError for what cannot be played.
    """
    check(options)
    load_checkpoint(options.checkpoint)
    results = []
    total = options.games * len(options.against)
    with tqdm(total=total, unit="game", disable=not progress, smoothing=0) as bar:
        for baseline in options.against:
            start = bar.n

            def tick(played: int, total: int | None, start: int = start) -> None:
                if not bar.n:  # processes started and kernels compiled: time left counts from here
                    bar.initial, bar.start_t = played, time.time()
                bar.update(start + played - bar.n)

            result = arena.play(
                [f"policy:{options.checkpoint}", baseline],
                players=options.players,
                rules=options.rules,
                deck=options.deck,
                games=options.games,
                seed=options.seed,
                workers=options.workers,
                own_code=True,  # the baselines were typed
                progress=tick,
            )
            results.append(entry(result, baseline))
    return results


@program("evaluate.py", "stopped")
def main(argv: list[str]) -> int:
    import tyro

    options = tyro.cli(
        Options, args=argv, config=(tyro.conf.PositionalRequiredArgs,), description=__doc__
    )
    results = evaluate(options, progress=not options.json and sys.stderr.isatty())
    if options.json:
        print(json.dumps({"checkpoint": options.checkpoint, "results": results}))
    else:
        print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
