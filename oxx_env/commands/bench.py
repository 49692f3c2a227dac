"""`oxx bench`: how many games, placements and decisions a second?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from oxx_env.commands import OK, Report, _show


@dataclass(kw_only=True)
class Run(Report):
    """Measure the speed of games, of batches and of the environments on this machine.

    Rates are per second of processor time of one core (two where it says so), medians of several
    repeats. A decision is a seat with two or more legal actions. Let the machine do nothing else
    meanwhile: the load is printed with the result.
    """

    example: ClassVar[str] = "oxx bench --json"

    quick: bool = False
    """Only try whether everything runs; the figures mean nothing then."""
    signature: bool = False
    """Measure nothing; print one hash over seeded games and observations, the same on every
    machine as long as the environment's version is."""

    def run(self) -> int:
        if self.signature:
            from oxx_env.commands._signature import signature

            result = signature()
            self.report(result, "{version} {sha256}".format(**result))
            return OK
        from oxx_env.commands import _benchmark

        if not self.quick and not self.json:
            self.note("measuring for about a minute ...")
        result = _benchmark.run(self.quick, self.seed)
        self.report(result, text(result))
        return OK


def text(result: dict[str, Any]) -> str:
    """The result of `_benchmark.run` as tables."""
    memory, two = result["memory_bytes"], result["two_cores"]
    parts = list(result["profile"][0]["ns_per_decision"])
    rollouts = [
        f"{row['policy']} {row['players']} {row['games_per_cpu_s'] / 1e3:,.0f} "
        f"{row['placements_per_cpu_s'] / 1e6:.1f} {row['decisions_per_cpu_s'] / 1e6:.1f}"
        for row in result["rollouts"]
    ]
    batched = [
        f"{row['batch']:,} {'yes' if row['observe'] else 'no'} "
        f"{row['decisions_per_cpu_s'] / 1e6:.2f} {row['decisions_per_wall_s'] / 1e6:.2f}"
        for row in result["batched"]
    ]
    profile = [
        " ".join([f"{row['batch']:,}", *(f"{row['ns_per_decision'][part]:.0f}" for part in parts)])
        for row in result["profile"]
    ]
    interfaces = [
        f"{name} {'-' if rate is None else format(rate / 1e3, ',.0f')}"
        for name, rate in result["api"].items()
    ]
    rates = ["policy", "players", "games (k)", "placements (M)", "decisions (M)"]
    steps = ["batch", "observed", "M decisions per CPU second", "per wall second"]
    return "\n\n".join(
        [
            _table("Roll-outs in compiled code, per CPU second", rates, rollouts),
            _table(
                f"Batches of games, {result['players']} players, random actions", steps, batched
            ),
            f"Two threads on one batch of {two['batch']:,} observed games: "
            f"{two['two'] / 1e6:.2f} instead of {two['one'] / 1e6:.2f} M decisions per wall second"
            f" ({two['gain']:.2f} times as many)",
            _table(
                "Where the time of an observed decision goes, nanoseconds",
                ["batch", *parts],
                profile,
            ),
            _table(
                "Environments, driven from Python by the mask",
                ["interface", "k decisions per CPU second"],
                interfaces,
            ),
            f"Memory: {memory['game']} bytes a game, {memory['observation']} an observation, "
            f"{memory['mask']} a mask",
            "Measured on: "
            + ", ".join(f"{name} {value}" for name, value in result["machine"].items()),
        ]
    )


def _table(title: str, headers: list[str], lines: list[str]) -> str:
    return _show.table(title, headers, [line.split() for line in lines])
