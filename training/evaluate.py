"""Evaluate a checkpoint: `python training/evaluate.py CHECKPOINT`.

Plays the policy against baselines in the arena (same deals for all seats, intervals by block of
deals) and prints win share and mean points with 95 % intervals.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # `python training/evaluate.py` puts this file's folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import training  # noqa: F401  (says what is missing)

from tqdm import tqdm

from oxx_env import arena
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import load_checkpoint
from oxx_env.policy.insight import NO_SHARE, draw_curve

BASELINES = ("random", "greedy")


def evaluate(
    checkpoint: str,
    against: Sequence[str] = BASELINES,
    players: int = 2,
    rules: str = "base",
    deck: str = "balanced",
    games: int = 4000,
    seed: int = 1,
    workers: int = 1,
    progress: bool = False,
) -> list[dict[str, Any]]:
    """One entry per baseline: the policy in one seat, the baseline in all others.

    Raises CheckpointError or ValueError for what cannot be played.
    """
    load_checkpoint(checkpoint)
    if not against:
        raise ValueError("against: at least one baseline is needed")
    results = []
    total = games * len(against)
    with tqdm(total=total, unit="game", disable=not progress, smoothing=0) as bar:
        for baseline in against:
            start = bar.n

            def tick(played: int, total: int | None, start: int = start) -> None:
                if not bar.n:  # processes started and kernels compiled: time left counts from here
                    bar.initial, bar.start_t = played, time.time()
                bar.update(start + played - bar.n)

            result = arena.play(
                [f"policy:{checkpoint}", baseline],
                players,
                rules,
                deck,
                games,
                seed,
                workers=workers,
                progress=tick,
            )
            results.append(entry(result, baseline))
    return results


def entry(result: arena.Result, against: str) -> dict[str, Any]:
    """What the tables tell of the first bot of an arena's result against the second."""
    own, theirs = result.bots
    return {
        "against": against,
        "players": result.players,
        "rules": result.rules,
        "deck": result.deck,
        "games": result.games,
        "seed": result.seed,
        "win_share": own.win_share,
        "ci95": list(own.ci95),
        "mean_points": own.mean_points,
        "points_ci95": list(own.points_ci95),
        "baseline_points": theirs.mean_points,
    }


def table(results: list[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| table | against | win share (95 % interval) | parity | mean points | theirs | games |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results:
        low, high = r["ci95"]
        points_low, points_high = r["points_ci95"]
        lines.append(
            f"| {r['players']} players, {r['rules']}, {r['deck']} | `{r['against']}` "
            f"| {r['win_share']:.3f} ({low:.3f} to {high:.3f}) | {1 / r['players']:.3f} "
            f"| {r['mean_points']:.2f} ({points_low:.2f} to {points_high:.2f}) "
            f"| {r['baseline_points']:.2f} | {r['games']} |"
        )
    if any(r["rules"] in ("base", "color") for r in results):
        lines.append("\nPoints are heads taken: fewest win (in `positive`: most win).")
    return "\n".join(lines)


def table_options(facts: Mapping[str, Any]) -> list[str]:
    """Options of a table that a policy knows: the first of those it was trained at."""
    names = (("players", "players"), ("rules", "rules"), ("deck", "decks"))
    return [word for name, key in names for word in (f"--{name}", str(facts[key][0]))]


def model_card(
    facts: dict[str, Any],
    strength: str | None,
    command: str = "python training/evaluate.py PATH",
    name: str | None = None,
) -> str:
    """The checkpoint's README.

    strength  its table as Markdown; None: it was not measured yet
    command   what repeats the table
    name      under which it is shipped; None: it is not
    """
    where = name or "PATH"
    start = "nothing" if facts["init"] is None else f"the checkpoint with SHA-256 {facts['init']}"
    lines = [
        f"# Policy `{name or facts['preset']}`",
        "",
        "Plays 6 nimmt! Baron Oxx: chooses the card, and the row where there is a choice, by one",
        "forward pass of a small network that scores every (card, row) pair by shared weights.",
        "",
        f"- learned {facts.get('by', 'by self-play PPO')} from {start}:"
        f" {facts['decisions']:,} decisions in {facts['seconds']:.0f} s",
        f"- tables: {', '.join(str(p) for p in facts['players'])} players;"
        f" rule sets: {', '.join(facts['rules'])}; decks: {', '.join(facts['decks'])}",
        f"- made by `{facts['command']}`",
        f"- sources: commit {facts['commit'] or 'unknown'}",
        "",
        f"`oxx play {shlex.join(table_options(facts))} --bots policy:{where}` plays against",
        f"it. `oxx_env.bots.make('policy:{where}')` loads it, which runs no code from this folder",
        "and needs no torch.",
        "",
    ]
    if strength is not None:
        lines += ["## Strength", "", strength, "", f"`{command}` repeats this table.", ""]
    lines += [
        "## Limits",
        "",
        "It knows the tables, rule sets and decks it was trained on; others it plays, but nobody",
        "measured how well unless the table above says so. It was not trained against people.",
        "",
    ]
    return "\n".join(lines)


def with_sections_of(old: str, card: str) -> str:
    """A new card, with those sections of the old one that it lacks before its last section."""
    here = re.split(r"^(?=## )", card, flags=re.MULTILINE)
    headings = {part.splitlines()[0] for part in here}
    there = re.split(r"^(?=## )", old, flags=re.MULTILINE)[1:]
    here[-1:-1] = [part for part in there if part.splitlines()[0] not in headings]
    return "".join(here)


def commit() -> str | None:
    """The commit of the sources, if they are a checkout."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def curve(evaluations: list[dict[str, Any]], path: Path) -> None:
    """Draw the learning curves: win share over decisions, a panel for each opponent.

    evaluations  as `insight.learning_curve` gives them
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = [name for name in (evaluations[0] if evaluations else {}) if name not in NO_SHARE]
    bots = list(dict.fromkeys(name.rpartition("_")[0] for name in names)) or ["nobody yet"]
    size = (1.5 + 4.5 * len(bots), 4)
    figure, panels = plt.subplots(
        1, len(bots), figsize=size, layout="constrained", sharey=True, squeeze=False
    )
    for bot, axes in zip(bots, panels[0], strict=True):
        draw_curve(axes, evaluations, bot)
        axes.set(ylabel=None, title=f"against {bot} (dotted: parity)")
    panels[0][0].set_ylabel("win share, 95 % interval")
    figure.savefig(path, dpi=120)
    plt.close(figure)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Evaluate a checkpoint against baselines."""

    checkpoint: str
    """Folder, or name of a shipped checkpoint."""
    against: tuple[str, ...] = BASELINES
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
    workers: int = 2
    """Processes; changes no figure."""
    json: bool = False
    """One JSON object instead of the table."""


@program("evaluate.py", "stopped")
def main(argv: list[str]) -> int:
    import tyro

    options = tyro.cli(
        Options,
        args=argv,
        config=(tyro.conf.PositionalRequiredArgs,),
        description=__doc__,
    )
    results = evaluate(
        options.checkpoint,
        options.against,
        options.players,
        options.rules,
        options.deck,
        options.games,
        options.seed,
        options.workers,
        progress=not options.json and sys.stderr.isatty(),
    )
    if options.json:
        print(json.dumps({"checkpoint": options.checkpoint, "results": results}))
    else:
        print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
