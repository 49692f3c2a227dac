"""How strong a policy is, over tables, rule sets and decks: the table of its model card.

    python training/strength.py champion --out runs/strength.json --workers 2

Plays every row of the table in the arena: the policy in one seat, the opponent in all others, each
deal once from every seat. Finished rows are kept in the file, so that a stopped run goes on with
the next one; the table is printed, and written into the model card with --card. Half an hour on
two cores; --share 0.1 plays a tenth of the games.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

if not __package__:
    import start  # noqa: F401

import numpy as np
import tyro
from numpy.typing import NDArray

from oxx_env import arena, cards
from oxx_env.game.rules import RULE_SETS, deck_cards
from oxx_env.lib.files import read_text
from oxx_env.lib.options import Range, check
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import (
    SHIPPED,
    checksum,
    find_checkpoint,
    load_checkpoint,
    write_atomically,
)
from training.config import Count, Seed, config_of
from training.report import entry, model_card, table, with_sections_of
from training.rows import Rows
from training.selfplay import Collector

SEARCH = "mc:200"
GREEDY_ROWS = "itself, rows by greedy"
DECKS = 20  # of each group: those trained on, and those never seen
UNSEEN_SEED = 987_654_321  # no training run has this seed
REPORTED = {
    *("against", "players", "rules", "deck", "games", "win_share", "ci95"),
    *("mean_points", "points_ci95", "baseline_points"),
}
Deck = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure a policy's strength."""

    checkpoint: tyro.conf.Positional[str]
    """Folder, or name of a shipped checkpoint."""
    out: Path = Path("runs/strength.json")
    """Where finished rows are kept."""
    seed: Seed = 1
    """Of deals and bots."""
    share: Annotated[float, Range(above=0, most=1)] = 1.0
    """Share of the games, for a quick look."""
    workers: Count = 1
    """Processes; changes no figure."""
    card: bool = False
    """Write the table into the checkpoint's model card."""


@dataclass(frozen=True)
class Row:
    """One row of the table: the policy against `against` in all other seats."""

    against: str
    players: int
    rules: str = "base"
    decks: str = "balanced"  # or `trained`, `unseen`: DECKS each, in turn
    games: int = 2400

    @property
    def name(self) -> str:
        return f"{self.players} players, {self.rules}, {self.decks}, {self.against}"


def rows() -> list[Row]:
    """What is measured; games for intervals of 0.01 against `greedy`, 0.02 against search."""
    plain = [Row("greedy", 2, games=10_000), Row("careful", 2), Row(SEARCH, 2)]
    tables = [Row(SEARCH, 4), Row(SEARCH, 6, games=1500), Row(SEARCH, 10, games=1000)]
    variants = [
        Row(SEARCH, players, rules, games=2400 if players == 2 else 1600)
        for players in (2, 4)
        for rules in RULE_SETS[1:]
    ]
    decks = [
        Row(SEARCH, players, "base", group, games)
        for players, games in ((2, 4000), (4, 2400))
        for group in ("trained", "unseen")
    ]
    greedy_rows = [Row(GREEDY_ROWS, players, games=8000) for players in (2, 4)]
    return [*plain, *tables, *variants, *decks, *greedy_rows]


def one_of(decks: list[Deck], rng: np.random.Generator) -> Deck:
    """A deck for a block of deals."""
    return decks[int(rng.integers(len(decks)))]


def deck_groups(config: dict[str, Any]) -> dict[str, cards.DeckSpec]:
    """The decks of the groups `trained` and `unseen`, of the same models in turn.

    config  of the checkpoint; the decks it was trained on follow from its training options
    """
    options = config_of(config.get("training", {}))
    options = replace(options, frozen=None)  # which need not be at hand, to know the decks
    trained = [np.array(deck_cards(deck), np.uint8) for deck in Collector(options).decks[:DECKS]]
    rng = np.random.default_rng(UNSEEN_SEED)
    unseen = [cards.random_deck(options.decks[k % len(options.decks)], rng) for k in range(DECKS)]
    return {
        "trained": functools.partial(one_of, trained),
        "unseen": functools.partial(one_of, unseen),
    }


def measure(options: Options) -> list[dict[str, Any]]:
    """All rows, those in `options.out` not played again. Raises ValueError, OSError."""
    _, config = load_checkpoint(options.checkpoint)
    decks = deck_groups(config)
    key = {
        "sha256": checksum(options.checkpoint),
        "seed": options.seed,
        "share": options.share,
    }
    own = f"policy:{options.checkpoint}"
    kept = Rows(options.out, key, REPORTED)
    for row in rows():
        if row.name in kept.done:
            continue
        print(f"{row.name} ...", file=sys.stderr, flush=True)
        games = max(10 * row.players, int(row.games * options.share))
        result = arena.play(
            [own, f"{own}:rows=greedy" if row.against == GREEDY_ROWS else row.against],
            players=row.players,
            rules=row.rules,
            deck=decks.get(row.decks, row.decks),
            games=games,
            seed=options.seed,
            workers=options.workers,
        )
        found = entry(result, row.against)
        if row.decks != "balanced":
            found["deck"] = f"{DECKS} {row.decks} decks"
        kept.add(row.name, {**found, "times_parity": found["win_share"] * row.players})
    return [kept.done[row.name] for row in rows()]


def drops(results: Iterable[dict[str, Any]]) -> list[str]:
    """Trained minus unseen decks, with 95 % intervals: by table size, and the mean of both."""
    found: dict[int, dict[str, Any]] = {}
    for result in results:
        if result["deck"] != "balanced":
            group = "unseen" if "unseen" in result["deck"] else "trained"
            found.setdefault(result["players"], {})[group] = result
    lines, values, halves = [], [], []
    for players, pair in found.items():
        drop = pair["trained"]["win_share"] - pair["unseen"]["win_share"]
        half = float(np.hypot(*[(r["ci95"][1] - r["ci95"][0]) / 2 for r in pair.values()]))
        lines.append(f"{players} players: {drop:+.3f} ({drop - half:+.3f} to {drop + half:+.3f})")
        values.append(drop)
        halves.append(half)
    if values:
        mean, half = float(np.mean(values)), float(np.linalg.norm(halves)) / len(halves)
        lines.append(f"both: {mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})")
    return lines


def report(results: list[dict[str, Any]]) -> str:
    """The table as Markdown, and the loss on decks never seen."""
    text = table(results)
    lost = drops(results)
    if lost:
        text += "\n\nLost on decks never seen, win share: " + "; ".join(lost) + "."
    return text


@program("strength.py", "stopped; the same command goes on")
def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    check(options)
    results = measure(options)
    if options.card:
        folder = find_checkpoint(options.checkpoint)
        _, config = load_checkpoint(folder)
        command = (
            f"python training/strength.py {folder.name} --seed {options.seed}"
            f" --share {options.share:g}"
        )
        name = folder.name if folder.parent == SHIPPED else None
        card = model_card(config, report(results), command, name)
        place = folder / "README.md"
        if place.exists():
            card = with_sections_of(read_text(place), card)
        write_atomically(place, card.encode())
    print(report(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
