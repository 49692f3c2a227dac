"""Regret: how much worse than the best an agent's decisions are, by deep search, without opponents.

    python training/regret.py --agents policy:champion search:champion:16 mc:200 greedy
    python training/regret.py --write docs

Positions come from games by the policy over all table sizes and rule sets. Every legal action is
played out on many deals, twice, each time with other deals: the first half says which action is
best, the second gives the values of that one and of the agent's choice, so that luck in the first
does not count as regret. Values and choices are kept in a file as they come, so that a stopped run
goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

if not __package__:
    import start  # noqa: F401

import numpy as np
import tyro
from numpy.typing import NDArray
from tqdm import tqdm

from oxx_env import bots
from oxx_env.arena.blocks import weights_checksum
from oxx_env.bots import search
from oxx_env.bots.search import PolicySearch
from oxx_env.game.engine import PENDING, new_games, rule_flags, stack_decks, step
from oxx_env.game.rules import ACTIONS, CARD_PHASE, FIRST_ROW, RULE_SETS
from oxx_env.game.views import View
from oxx_env.lib.files import replace_between
from oxx_env.lib.options import Range, check
from oxx_env.lib.shell import program
from oxx_env.notation.position import to_text
from oxx_env.policy.checkpoint import checksum, load_checkpoint
from training.config import Count, Names, Seed, TableSizes
from training.decisions import logits_of, waiting
from training.rows import Rows

GAMES = 64  # of each table size and rule set, from which positions are taken
PART = 100  # positions valued between two writes
FIELDS = {"first", "second", "choices"}
BEGIN = "<!-- regret: written by training/regret.py -->"
END = "<!-- end of regret -->"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure the regret of decisions by deep search."""

    checkpoint: str = "champion"
    """Policy whose games the positions come from, and that the deep search belongs to."""
    agents: Names = ("policy:champion", "search:champion:16", "mc:200", "greedy")
    """Bots whose decisions are judged."""
    positions: Count = 5000
    """Decisions judged."""
    deals: Count = 200
    """Deals for each action, in each of the two halves."""
    players: TableSizes = (2, 3, 4, 6, 10)
    """Table sizes, equally often."""
    deck: str = "balanced"
    """Deck of all games."""
    worst: Annotated[int, Range(0)] = 10
    """Positions shown where the first agent is worst."""
    seed: Seed = 1
    """Of positions, deals and bots."""
    out: Path = Path("runs/regret.json")
    """Where finished positions are kept."""
    write: Path | None = None
    """Also write the result into strength.md of this folder, between its marks."""


@dataclass(frozen=True)
class Sample:
    """Positions from whole games.

    games   GAME [N], resting at a decision
    decks   DECKS [1]
    seats   uint8 [N], who decides
    origin  int64 [N], the game that the position is from
    """

    games: NDArray[np.void]
    decks: NDArray[np.void]
    seats: NDArray[np.uint8]
    origin: NDArray[np.int64]


def sample(options: Options) -> Sample:
    """The positions that the options say."""
    rng = np.random.default_rng([options.seed, 5])
    weights, _ = load_checkpoint(options.checkpoint)
    decks = stack_decks([options.deck])
    kinds = [(p, rule_flags(r)) for p in options.players for r in RULE_SETS]
    each = -(-options.positions // len(kinds))
    found, seats, origin = [], [], []
    for kind, (players, flags) in enumerate(kinds):
        games = new_games(rng.integers(0, 2**53, GAMES), decks, players, flags)
        kept: list[tuple[Any, Any, int]] = []
        while len(who := waiting(games)):
            actions = logits_of(weights, games, decks, who).argmax(axis=1)
            at = who["game"].tolist()
            kept += zip(games[at], who["seat"], at, strict=True)
            step(games, decks, who, len(who), actions, False)
        for index in rng.choice(len(kept), each, replace=len(kept) < each):
            found.append(kept[index][0])
            seats.append(kept[index][1])
            origin.append(kind * GAMES + kept[index][2])
    order = rng.permutation(len(found))[: options.positions]
    games = np.array(found, games.dtype)[order]
    return Sample(games, decks, np.array(seats, np.uint8)[order], np.array(origin)[order])


def measure(options: Options) -> tuple[Sample, Rows]:
    """Positions, and the values and choices of each, in parts."""
    drawn = sample(options)
    games, decks, seats = drawn.games, drawn.decks, drawn.seats
    key = {
        "checkpoint": checksum(options.checkpoint),
        **search.identity(options.checkpoint),
        "seed": options.seed,
        "positions": options.positions,
        "deals": options.deals,
        "players": list(options.players),
        "deck": options.deck,
    }
    kept = Rows(options.out, key, FIELDS)
    deep = PolicySearch(options.checkpoint, str(options.deals))
    thinkers = {spec: bots.make(spec, own_code=True) for spec in options.agents}  # typed
    weights = {spec: weights_checksum(thinker) for spec, thinker in thinkers.items()}
    starts = range(0, len(games), PART)
    for start in tqdm(starts, unit="part", disable=not sys.stderr.isatty()):
        name, part = f"{start}", slice(start, min(start + PART, len(games)))
        row = kept.done.get(name) or _values(deep, games[part], decks, seats[part], options, start)
        made = row.setdefault("weights", {})  # by which weights a network's choices were made
        missing = [
            spec
            for spec in thinkers
            if spec not in row["choices"] or made.get(spec) != weights[spec]
        ]
        for spec in missing:
            made[spec] = weights[spec]
            row["choices"][spec] = [
                int(
                    thinkers[spec].act(
                        View.of(games[k][None], decks, int(seats[k])),
                        np.random.default_rng([options.seed, 6, k]),
                    )
                )
                for k in range(part.start, part.stop)
            ]
        if missing or name not in kept.done:
            kept.add(name, row)
    return drawn, kept


def _values(
    deep: PolicySearch, games: Any, decks: Any, seats: Any, options: Options, start: int
) -> dict[str, Any]:
    """Both halves' values of some positions [N][legal actions], by action."""
    who = np.zeros(len(games), PENDING)
    who["game"], who["seat"] = np.arange(len(games)), seats
    halves = []
    for half in range(2):
        copy = games.copy()
        rng = np.random.default_rng([options.seed, 7, start, half])
        copy["rng"] = rng.integers(2**64, size=len(games), dtype=np.uint64)
        values = np.empty((len(games), ACTIONS))
        deep.even_values(copy, decks, who, values)
        halves.append(
            [
                {str(a): round(float(v), 3) for a, v in enumerate(line) if np.isfinite(v)}
                for line in values
            ]
        )
    return {"first": halves[0], "second": halves[1], "choices": {}}


@dataclass(frozen=True)
class Judged:
    """The result of all positions.

    regret  agent -> float64 [N], value of the best action less that of its choice, in points
    values  float64 [N, ACTIONS], mean of both halves; nan where illegal
    choices agent -> int64 [N]
    """

    regret: dict[str, NDArray[np.float64]]
    values: NDArray[np.float64]
    choices: dict[str, NDArray[np.int64]]


def judge(options: Options, kept: Rows) -> Judged:
    """Regret of each agent at each position."""
    rows = [kept.done[str(start)] for start in range(0, options.positions, PART)]
    halves = np.full((2, options.positions, ACTIONS), np.nan)
    for half, name in enumerate(("first", "second")):
        for k, line in enumerate(line for row in rows for line in row[name]):
            for action, value in line.items():
                halves[half, k, int(action)] = value
    best = np.nanargmax(halves[0], axis=1)
    at = np.arange(options.positions)
    choices, regret = {}, {}
    for spec in options.agents:
        choices[spec] = np.array([c for row in rows for c in row["choices"][spec]])
        regret[spec] = halves[1, at, best] - halves[1, at, choices[spec]]
    return Judged(regret, halves.mean(axis=0), choices)


def half_width(values: NDArray[np.float64], origin: NDArray[np.int64]) -> float:
    """Half of the 95 % interval of a mean, where values of one game belong together.

    values, origin  [N]: a value, and the game that it is from
    """
    _, group = np.unique(origin, return_inverse=True)
    sums = np.bincount(group, values - values.mean())
    if len(sums) < 2:
        return float("nan")
    variance = (sums**2).sum() * len(sums) / (len(sums) - 1)
    return 1.96 * float(variance**0.5) / len(values)


def report(options: Options, drawn: Sample, found: Judged) -> str:
    """Markdown: regret by phase, table size and rule set, then the worst positions."""
    games, decks, seats = drawn.games, drawn.decks, drawn.seats
    groups: list[tuple[str, Callable[[], Any]]] = [
        ("all", lambda: np.ones(len(games), bool)),
        ("cards", lambda: games["phase"] == CARD_PHASE),
        ("rows", lambda: games["phase"] != CARD_PHASE),
    ]
    groups += [
        (f"{p} players", lambda p=p: games["players"] == p)  # type: ignore[misc]
        for p in options.players
    ]
    groups += [
        (f"`{r}`", lambda r=r: games["rules"] == rule_flags(r))  # type: ignore[misc]
        for r in RULE_SETS
    ]
    heads = " | ".join(f"`{spec}`" for spec in options.agents)
    lines = [f"| decisions | number | {heads} |", "|---" * (2 + len(options.agents)) + "|"]
    for name, which in groups:
        mask = which()
        count = int(mask.sum())
        if not count:
            continue
        cells = []
        for spec in options.agents:
            regret = found.regret[spec][mask]
            half = half_width(regret, drawn.origin[mask])
            cells.append(f"{regret.mean():.3f} ± {half:.3f}")
        lines.append(f"| {name} | {count:,} | {' | '.join(cells)} |")
    first = options.agents[0]
    lines += ["", f"Where `{first}` loses most (mean of both halves, relative points):", ""]
    loss = (
        np.nanmax(found.values, axis=1) - found.values[np.arange(len(games)), found.choices[first]]
    )
    for k in np.argsort(-loss, kind="stable")[: options.worst]:
        view = View.of(games[k][None], decks, int(seats[k]))
        values = ", ".join(f"{_named(view, a)} {found.values[k, a]:+.2f}" for a in view.legal)
        chosen = _named(view, int(found.choices[first][k]))
        lines += ["```", to_text(view).rstrip(), "```", "", f"{values}; it plays {chosen}.", ""]
    return "\n".join(lines).rstrip()


def _named(view: View, action: int) -> str:
    """An action as `oxx advise` says it."""
    if action < FIRST_ROW:
        return f"card {view.hand[action]}"
    return f"row {action - FIRST_ROW}"


def write(folder: Path, text: str) -> None:
    """Put the result between the marks of `strength.md`. Raises ValueError, OSError."""
    replace_between(folder / "strength.md", BEGIN, END, text)


@program("regret.py", "stopped; the same command goes on")
def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    check(options)
    drawn, kept = measure(options)
    text = report(options, drawn, judge(options, kept))
    if options.write is not None:
        write(options.write, text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
