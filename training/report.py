"""What is written about a policy: facts of its training, results of the arena, its model card."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oxx_env import arena


def facts(
    options: Any, space: Any, decisions: int, seconds: float, command: str, **more: Any
) -> dict[str, Any]:
    """The part of a checkpoint's `config.json` that tells how it was made.

    options  dataclass of the training, with a `seed`
    space    has the `players`, `rules` and `decks` that it knows
    seconds  of all sittings
    """
    return {
        "seed": options.seed,
        "decisions": decisions,
        "seconds": round(seconds, 1),
        **{name: list(getattr(space, name)) for name in ("players", "rules", "decks")},
        "command": command,
        "commit": commit(),
        **more,
        "training": plain(options),
    }


def plain(options: Any) -> dict[str, Any]:
    """A dataclass as JSON gives it back."""
    return json.loads(json.dumps(asdict(options), default=str))  # type: ignore[no-any-return]


def commit() -> str | None:
    """The commit of the sources, if they are a checkout."""
    command, here = ["git", "rev-parse", "HEAD"], Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def entry(result: arena.Result, against: str) -> dict[str, Any]:
    """A row of `table`: the first bot of an arena's result against the second."""
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


def interval(value: float, ci95: Sequence[float], digits: int = 3) -> str:
    """A figure with its 95 % interval: `0.600 (0.570 to 0.630)`."""
    low, high = ci95
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def table(results: list[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| table | against | win share (95 % interval) | parity | mean points | theirs | games |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results:
        lines.append(
            f"| {r['players']} players, {r['rules']}, {r['deck']} | `{r['against']}` "
            f"| {interval(r['win_share'], r['ci95'])} | {1 / r['players']:.3f} "
            f"| {interval(r['mean_points'], r['points_ci95'], 2)} "
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
        "It was trained on the tables, rule sets and decks listed above. It plays others too, but",
        "its strength there is unknown unless it was measured. It was not trained against people.",
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
