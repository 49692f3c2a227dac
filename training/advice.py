"""Is advice the same for every seed, and is it right where it is clear?

    python training/advice.py --positions 500 --workers 2
    python training/advice.py --positions 500 --workers 2 --write docs

Positions come from games by the policy over all table sizes and rule sets (`regret.py`). For each,
advice is asked with several seeds, and every action is played out on many more deals for its true
value. Positions are kept in a file as they come, so that a stopped run goes on.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

if not __package__:
    import start  # noqa: F401

import numpy as np
import tyro
from tqdm import tqdm

from oxx_env import advice, bots
from oxx_env.arena.blocks import weights_checksum
from oxx_env.bots import ADVISER, search
from oxx_env.bots.monte_carlo import Outcomes
from oxx_env.game.views import View
from oxx_env.lib.files import replace_between
from oxx_env.lib.options import Range, check
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import checksum
from training import regret
from training.config import Count, Seed, TableSizes
from training.rows import Rows

POINTS, SHARE = 0.5, 0.01  # a true difference beyond these is one that advice should find
FIELDS = {"choices", "clear", "worth", "shares"}
BEGIN = "<!-- advice: written by training/advice.py -->"
END = "<!-- end of advice -->"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Measure whether advice is stable and right."""

    checkpoint: str = "champion"
    """Policy whose games the positions come from."""
    bot: str = ADVISER
    """The bot that gives advice."""
    positions: Count = 500
    """Decisions that advice is asked for."""
    seeds: Annotated[int, Range(2)] = 10
    """How often it is asked in each position."""
    deals: Annotated[int, Range(2)] = 5000
    """Deals for the true value of each action."""
    players: TableSizes = (2, 3, 4, 6, 10)
    """Table sizes, equally often."""
    deck: str = "balanced"
    """Deck of all games."""
    seed: Seed = 1
    """Of positions, deals and advice."""
    workers: Count = 1
    """Threads; the result does not depend on them."""
    out: Path = Path("runs/advice.json")
    """Where finished positions are kept."""
    write: Path | None = None
    """Also write the result into strength.md of this folder, between its marks."""

    def check(self) -> None:
        """Raise ValueError for what cannot be measured."""
        check(self)
        if not hasattr(bots.make(self.bot), "outcomes"):
            raise ValueError(f"--bot {self.bot} plays nothing out: name search or mc")

    @property
    def drawn(self) -> regret.Options:
        """Options of the positions that are taken."""
        return regret.Options(
            checkpoint=self.checkpoint, positions=self.positions, players=self.players,
            deck=self.deck, seed=self.seed,
        )  # fmt: skip


def measure(options: Options) -> list[dict[str, Any]]:
    """The row of each position, in order; see `look_into`."""
    drawn = regret.sample(options.drawn)
    key = {
        "checkpoint": checksum(options.checkpoint),
        **search.identity(options.checkpoint),
        "bot": options.bot,
        "weights": weights_checksum(bots.make(options.bot)),
        "errors": [advice.ERRORS, advice.SURE],
        **{name: getattr(options, name) for name in ("positions", "seed", "seeds", "deals")},
        "players": list(options.players),
        "deck": options.deck,
    }
    kept = Rows(options.out, key, FIELDS)
    todo = [k for k in range(options.positions) if str(k) not in kept.done]

    def row_of(k: int) -> tuple[int, dict[str, Any]]:
        view = View.of(drawn.games[k][None], drawn.decks, int(drawn.seats[k]))
        return k, look_into(view, k, options)

    with ThreadPoolExecutor(options.workers) as pool:
        try:
            found = pool.map(row_of, todo)
            for k, row in tqdm(found, total=len(todo), disable=not sys.stderr.isatty()):
                kept.add(str(k), row)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [kept.done[str(k)] for k in range(options.positions)]


def look_into(view: View, k: int, options: Options) -> dict[str, Any]:
    """Advice with each seed, and the truth, about the position number `k`:

    choices, clear  by seed: the action named, and whether it was called clear
    deals           by seed: deals tried
    notes           by seed: sentences said
    worth, shares   by action as text: the true value that the bot chooses by, and share of the
                    victory
    """
    asked = [
        advice.advise(view, options.bot, np.random.default_rng([options.seed, 8, k, again]))
        for again in range(options.seeds)
    ]
    truth = _truth(view, k, options)
    worth, shares = (
        {str(action): round(float(values[action]), 4) for action in truth.legal}
        for values in (truth.values, truth.shares)
    )
    return {
        "choices": [one.choice.action for one in asked],
        "clear": [one.clear for one in asked],
        "deals": [one.deals for one in asked],
        "worth": worth,
        "shares": shares,
    }


def _truth(view: View, k: int, options: Options) -> Outcomes:
    kind, *rest = options.bot.split(":")
    at = 1 if kind == "search" else 0  # of the budget, behind a network's path
    bot: Any = bots.make(":".join([kind, *rest[:at], str(options.deals), *rest[at + 1 :]]))
    *_, last = bot.outcomes(view, np.random.default_rng([options.seed, 9, k]))
    return last


def report(rows: list[dict[str, Any]], options: Options) -> str:
    """The figures as a table."""
    by_wins = bots.make(options.bot).by_wins  # type: ignore[attr-defined]
    clear = [row for row in rows if row["clear"][0]]
    same = [row for row in clear if len(set(row["choices"])) == 1]
    calls = [
        (row, action)
        for row in rows
        for action, sure in zip(row["choices"], row["clear"], strict=True)
        if sure
    ]
    worst = [row["worth"][str(a)] == min(row["worth"].values()) for row, a in calls]
    best = [row["worth"][str(a)] == max(row["worth"].values()) for row, a in calls]
    apart = [row for row in rows if _gap(row["worth"]) > (SHARE if by_wins else POINTS)]
    either = [r for r in rows if by_wins or _gap(r["worth"]) > POINTS or _gap(r["shares"]) > SHARE]
    lost = [
        max(row["worth"].values()) - row["worth"][str(action)]
        for row in rows
        for action in row["choices"]
    ]
    unit = "share of the victory" if by_wins else "relative points"
    lines = [
        ("positions", f"{len(rows):,}"),
        ("called clear, by the first seed", _of(len(clear), len(rows))),
        (f"of these, the same choice by all {options.seeds} seeds", _of(len(same), len(clear))),
        (
            "all positions: the same choice by all seeds",
            _of(sum(len(set(row["choices"])) == 1 for row in rows), len(rows)),
        ),
        ("clear advice, all seeds: truly the best action", _of(sum(best), len(calls))),
        ("clear advice, all seeds: truly the worst action", _of(sum(worst), len(calls))),
        (
            f"truly apart by more than {'1 %' if by_wins else 'half a point'}: called clear",
            _of(sum(row["clear"][0] for row in apart), len(apart)),
        ),
        (
            "truly apart by more than half a point or 1 % of the victory: called clear",
            _of(sum(row["clear"][0] for row in either), len(either)),
        ),
        (f"lost by the choice against the best ({unit})", f"{np.mean(lost):.3f}"),
        ("deals tried, mean", f"{np.mean([row['deals'] for row in rows]):,.0f}"),
    ]
    table = [f"| `{options.bot}` | |", "|---|---|", *(f"| {a} | {b} |" for a, b in lines)]
    return "\n".join(table)


def _gap(values: dict[str, float]) -> float:
    """By how much the best action is better than the second."""
    first, second = sorted(values.values(), reverse=True)[:2]
    return first - second


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" + (f" ({100 * part / whole:.0f} %)" if whole else "")


@program("advice.py", "stopped; the same command goes on")
def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    options.check()
    text = report(measure(options), options)
    if options.write is not None:
        replace_between(options.write / "strength.md", BEGIN, END, text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
