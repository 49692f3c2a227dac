"""Monte Carlo and search at the same time for a decision: `docs/strength.md`.

    python training/equal_time.py --times 1 5 --players 2 4
    python training/equal_time.py --write docs

Plays, for each table size and time, `search` in one seat among `mc`, and both among the bare
policy. Each game has a core of its own, which must have nothing else to do: times are wall time.
Finished rows are kept in a file, so that a stopped run goes on with the next one, and further times
and tables can be added by further runs. --write puts the table and the plot of all finished rows
into a folder (strength.md between its marks, images/equal-time.png) and plays nothing; a model card
of the policy that has the same marks gets the table as well.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

if not __package__:
    import start  # noqa: F401

import tyro

from oxx_env import arena
from oxx_env.bots import search
from oxx_env.lib.files import read_text, replace_between
from oxx_env.lib.options import NOT_EMPTY, Range, check
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import checksum, find_checkpoint
from oxx_env.show import plot
from training.config import Seed, TableSizes
from training.report import entry, interval
from training.rows import Rows

FIELDS = {"bot", "against", "players", "ms", "games", "win_share", "ci95", "ms_per_decision"}
BEGIN = "<!-- equal time: written by training/equal_time.py -->"
END = "<!-- end of equal time -->"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Compare Monte Carlo and search at equal time."""

    checkpoint: str = "champion"
    """Policy that guides the search: folder, or name of a shipped checkpoint."""
    times: Annotated[tuple[float, ...], Range(0.1, 10_000), NOT_EMPTY] = (1, 5, 20, 100)
    """Milliseconds for a decision."""
    players: TableSizes = (2, 4, 6)
    """Table sizes; six players are not measured above 20 ms."""
    games: Annotated[tuple[int, int], Range(20)] = (1000, 200)
    """Games of a row: up to 5 ms, and above."""
    out: Path = Path("runs/equal-time.json")
    """Where finished rows are kept."""
    seed: Seed = 1
    """Of deals and bots."""
    workers: Annotated[int, Range(1, os.cpu_count() or 1)] = 2
    """Processes, at most one for each idle core."""
    write: Path | None = None
    """Play nothing: write table and plot of the finished rows into this folder."""


def line_ups(options: Options) -> list[tuple[str, str, str, str, int, float]]:
    """What is played: bot, opponent and their specifications, players, ms; short ones first."""
    found = []
    for ms in sorted(options.times):
        for players in options.players:
            if players > 4 and ms > 20:
                continue
            search, mc = f"search:{options.checkpoint}:{ms:g}ms", f"mc:{ms:g}ms"
            policy = f"policy:{options.checkpoint}"
            found += [
                ("search", "mc", search, mc, players, ms),
                ("search", "policy", search, policy, players, ms),
                ("mc", "policy", mc, policy, players, ms),
            ]
    return found


def measure(options: Options) -> Rows:
    """Play what is not in the file yet; all finished rows. Raises ValueError, OSError."""
    kept = rows_of(options)
    for bot, against, spec, other, players, ms in line_ups(options):
        name = f"{players} players, {ms:g} ms, {bot} among {against}"
        games = options.games[0 if ms <= 5 else 1]
        if name in kept.done and kept.done[name]["games"] >= games:  # fewer were a trial
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        result = arena.play(
            [spec, other], players=players, games=games, seed=options.seed, workers=options.workers
        )
        found = entry(result, against)
        took = result.timing["ms_per_decision"]
        kept.add(
            name,
            {
                **found,
                "bot": bot,
                "ms": ms,
                "times_parity": found["win_share"] * players,
                "ms_per_decision": {bot: took[spec], against: took[other]},
            },
        )
    return kept


def rows_of(options: Options) -> Rows:
    """The finished rows of the file."""
    key = {
        "checkpoint": checksum(options.checkpoint),
        "seed": options.seed,
        # Another search makes another file necessary.
        **search.identity(options.checkpoint),
    }
    return Rows(options.out, key, FIELDS)


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: one line for each row, by players, then time."""
    lines = [
        "| players | time | one seat | among | win share | × parity | measured ms | games |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda r: (r["players"], r["ms"], r["bot"] == "mc", r["against"])):
        took = " / ".join(f"{ms:.2f}" for ms in row["ms_per_decision"].values())
        lines.append(
            f"| {row['players']} | {row['ms']:g} ms | `{row['bot']}` | `{row['against']}`"
            f" | {interval(row['win_share'], row['ci95'])} | {row['times_parity']:.2f}"
            f" | {took} | {row['games']:,} |"
        )
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Win share in proportion to parity over time, a panel for each table size."""
    sizes = sorted({row["players"] for row in rows})
    figure, panels = plot.panels(len(sizes), sharey=True)
    pairs = [("search", "mc"), ("search", "policy"), ("mc", "policy")]
    rows = sorted(rows, key=lambda row: row["ms"])
    for players, axes in zip(sizes, panels, strict=True):
        lines = []
        for index, pair in enumerate(pairs):
            here = [r for r in rows if r["players"] == players and (r["bot"], r["against"]) == pair]
            shift = 0.97 + 0.03 * index  # intervals beside each other
            xs = [row["ms"] * shift for row in here]
            ys = [row["win_share"] * players for row in here]
            bounds = [[bound * players for bound in row["ci95"]] for row in here]
            lines.append(plot.Line(" among ".join(pair), xs, ys, bounds))
        plot.draw_lines(axes, lines)
        axes.axhline(1, **plot.REFERENCE)
        axes.set(xscale="log", xlabel="ms for a decision", title=f"{players} players")
    panels[0].set_ylabel("win share, in proportion to parity")
    path.parent.mkdir(parents=True, exist_ok=True)
    plot.save(figure, path)


def write(options: Options, folder: Path) -> str:
    """Put the table between the marks of `strength.md`, and of the policy's model card if it has
    them; draw the plot. Returns the table."""
    rows = list(rows_of(options).done.values())
    if not rows:
        raise ValueError(f"{options.out} has no finished rows; run without --write first")
    text = table(rows)
    replace_between(folder / "strength.md", BEGIN, END, text)
    card = find_checkpoint(options.checkpoint) / "README.md"
    if card.exists() and BEGIN in read_text(card):
        replace_between(card, BEGIN, END, text)
    draw(rows, folder / "images" / "equal-time.png")
    return text


@program("equal_time.py", "stopped; the same command goes on")
def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    check(options)
    if options.write is not None:
        print(write(options, options.write))
        return 0
    print(table(list(measure(options).done.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
