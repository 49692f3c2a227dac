"""Long runs: does memory grow? Do two processes that compile at once disturb each other?

    python -m tests.stress.endure                   the whole: 100 million decisions, 10,000 games
    python -m tests.stress.endure --decisions 2000000 --games 500

Memory is what the process has in use, looked at twenty times; the first look after a tenth is the
warm one, and nothing later may be more than 5 MB above it. The table is the memory curve.

Exit code 0: as it should be. 1: memory grew, or the processes differ.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from oxx_env.envs.parallel import BaronOxxParallel
from oxx_env.game.rules import RULE_SETS
from tests.stress import ROOT

MOST_GROWTH = 5 << 20
LOOKS = 20


@dataclass(frozen=True, kw_only=True)
class Options:
    """Play on and on, and watch the memory."""

    decisions: int = 100_000_000
    """Through the vector environment; 0: leave it out."""
    games: int = 10_000
    """Through the parallel environment; 0: leave it out."""
    compile: bool = True
    """Let two processes compile into one empty folder."""


def memory() -> int:
    """Bytes this process has in use (resident)."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def decide(goal: int) -> Iterator[int]:
    """Decisions through the batch for stable-baselines3, games of all kinds side by side."""
    from oxx_env.envs.vector import BaronOxxVecEnv

    envs = BaronOxxVecEnv(1024, [2, 4, 10], list(RULE_SETS), seed=1)
    envs.reset()
    rng = np.random.default_rng(1)
    done = 0
    while done < goal:
        masks = envs.action_masks()
        ranks = rng.random(masks.shape, dtype=np.float32) * masks
        envs.step(ranks.argmax(axis=1))
        done += len(masks)
        yield done


def play(goal: int) -> Iterator[int]:
    """Games through the parallel environment, also those of a match."""
    env = BaronOxxParallel(num_players=4, games_per_match=2)
    for match in range(0, goal, 2):
        observations, _ = env.reset(seed=match)
        while env.agents:
            actions = {
                agent: int(told["action_mask"].argmax()) for agent, told in observations.items()
            }
            observations, *_ = env.step(actions)
        yield match + 2


def watch(work: Callable[[int], Iterator[int]], goal: int) -> list[tuple[int, int]]:
    """(done, bytes) each twentieth of the way."""
    curve = []
    due = goal / LOOKS
    for done in work(goal):
        if done >= due:
            curve.append((done, memory()))
            due += goal / LOOKS
    return curve


def growth(curve: list[tuple[int, int]]) -> int:
    """The greatest rise, in bytes, between two looks after a tenth. (The system may take back
    pages meanwhile: then what counts is the rise from there.)"""
    most, lowest = 0, curve[LOOKS // 10][1]
    for _, used in curve[LOOKS // 10 :]:
        most, lowest = max(most, used - lowest), min(lowest, used)
    return most


def compile_at_once() -> list[str]:
    """What two processes print that begin together with an empty folder of compiled code, and what
    a third one prints that finds it filled."""
    with tempfile.TemporaryDirectory(prefix="oxx-cache-") as folder:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
        environment = {**inherited, "NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(ROOT / "tests" / "tracing.py")]

        def start() -> subprocess.Popen[str]:
            return subprocess.Popen(
                command,
                env=environment,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )

        both = [start(), start()]
        told = [process.communicate()[0].strip() for process in both]
        return [*told, start().communicate()[0].strip()]


def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    bad = 0
    for name, work, goal in (
        ("decisions", decide, options.decisions),
        ("games", play, options.games),
    ):
        if not goal:
            continue
        begun = time.monotonic()
        curve = watch(work, goal)
        grown = growth(curve)
        bad += grown > MOST_GROWTH
        print(f"| {name} | memory, MB |\n|---|---|")
        for done, used in curve:
            print(f"| {done:,} | {used / 2**20:.1f} |")
        took = time.monotonic() - begun
        print(
            f"\n{name}: grown by {grown / 2**20:.1f} MB after warm-up, {took:.0f} s\n", flush=True
        )
    if options.compile:
        told = compile_at_once()
        equal = len(set(told)) == 1 and len(told[0]) == 64
        bad += not equal
        print("two processes compiling at once and one after them:", "equal" if equal else told)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
