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
    machine, memory = result["machine"], result["memory_bytes"]
    two = result["two_cores"]
    environments = [
        [name, "-" if rate is None else f"{rate / 1e3:,.0f}"]
        for name, rate in result["api"].items()
    ]
    profiles = result["profile"]
    parts = list(profiles[0]["ns_per_decision"])
    return "\n\n".join(
        [
            _show.table(
                "Roll-outs in compiled code, per CPU second",
                ["policy", "players", "games (k)", "placements (M)", "decisions (M)"],
                [
                    [
                        row["policy"],
                        str(row["players"]),
                        f"{row['games_per_cpu_s'] / 1e3:,.0f}",
                        f"{row['placements_per_cpu_s'] / 1e6:.1f}",
                        f"{row['decisions_per_cpu_s'] / 1e6:.1f}",
                    ]
                    for row in result["rollouts"]
                ],
            ),
            _show.table(
                f"Batches of games, {result['players']} players, random actions",
                ["batch", "observed", "M decisions per CPU second", "per wall second"],
                [
                    [
                        f"{row['batch']:,}",
                        "yes" if row["observe"] else "no",
                        f"{row['decisions_per_cpu_s'] / 1e6:.2f}",
                        f"{row['decisions_per_wall_s'] / 1e6:.2f}",
                    ]
                    for row in result["batched"]
                ],
            ),
            f"Two threads on one batch of {two['batch']:,} observed games: "
            f"{two['two'] / 1e6:.2f} instead of {two['one'] / 1e6:.2f} M decisions per wall second"
            f" ({two['gain']:.2f} times as many)",
            _show.table(
                "Where the time of an observed decision goes, nanoseconds",
                ["batch", *parts],
                [
                    [
                        f"{row['batch']:,}",
                        *(f"{row['ns_per_decision'][part]:.0f}" for part in parts),
                    ]
                    for row in profiles
                ],
            ),
            _show.table(
                "Environments, driven from Python by the mask",
                ["interface", "k decisions per CPU second"],
                environments,
            ),
            f"Memory: {memory['game']} bytes a game, {memory['observation']} an observation, "
            f"{memory['mask']} a mask",
            "Measured on: " + ", ".join(f"{name} {value}" for name, value in machine.items()),
        ]
    )
