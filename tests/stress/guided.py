"""Fuzzing that is guided by coverage: atheris makes the bytes, hypothesis the inputs from them.

    make guided                          (all doors, in an environment of its own)
    python -m tests.stress.guided --door position --runs 10000

The same doors and the same demands as `tests.stress.fuzz`. The functions that read what comes from
outside are instrumented, so that inputs which reach new lines are kept and spoiled further; kernels
are not, for Numba compiles their bytecode.

Exit code 0: no failure. Else atheris shows the failure and writes its bytes to a file.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from dataclasses import dataclass
from types import FunctionType, ModuleType

import tyro
from hypothesis import HealthCheck, given, settings

from tests.stress import fuzz

try:
    import atheris
except ImportError:
    print("guided: atheris is not installed here; `make guided` installs it", file=sys.stderr)
    sys.exit(2)

# What reads decks, positions, records, checkpoints, logs and tracked games.
READERS = (
    *("oxx_env.game.cards", "oxx_env.notation.position", "oxx_env.notation.records"),
    *("oxx_env.notation.tracker", "oxx_env.policy.checkpoint", "oxx_env.arena.blocks"),
    *("oxx_env.lib.files", "oxx_env.lib.spreadsheet"),
)
DOORS = (
    *("deck", "position", "position_json", "record"),
    *("checkpoint_folder", "arena_log", "tracked_game"),
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Let inputs that coverage guides through one door."""

    door: str
    """Target of `tests.stress.fuzz`: one that reads bytes or text."""
    runs: int = 10_000
    """Inputs to make."""
    seed: int = 1
    """Of the inputs' making."""


def instrument(module: ModuleType) -> None:
    """Let atheris see which lines of a module's functions run."""
    for thing in vars(module).values():
        if getattr(thing, "__module__", None) != module.__name__:
            continue  # imported from elsewhere
        for function in vars(thing).values() if isinstance(thing, type) else [thing]:
            if isinstance(function, FunctionType):
                atheris.instrument_func(function)


def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    if options.door not in DOORS or options.runs < 1 or options.seed < 1:
        print(f"guided: doors are {', '.join(DOORS)}; runs and seed from 1", file=sys.stderr)
        return 2
    for name in READERS:
        instrument(importlib.import_module(name))
    door = fuzz.TARGETS[options.door]
    outcomes: Counter[str] = Counter()

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(door.inputs())
    def let_through(value: object) -> None:
        with fuzz.no_longer_than(fuzz.HANGS):
            outcomes[door.enter(value)] += 1
        if outcomes.total() % 1000 == 0:
            told = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()))
            print(f"{options.door}: {outcomes.total():,} inputs, {told}", file=sys.stderr)

    limits = [
        f"-atheris_runs={options.runs}",
        f"-seed={options.seed}",
        "-max_len=4096",
        "-len_control=0",
    ]
    atheris.Setup([sys.argv[0], *limits, "-rss_limit_mb=1500", "-verbosity=0"],
                  let_through.hypothesis.fuzz_one_input)  # fmt: skip
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
