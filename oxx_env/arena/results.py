"""Results: what each entry of a run of blocks did, with intervals.

`to_dict` of a result is what the command prints with `--json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.arena import ratings
from oxx_env.arena.blocks import Block, Setup
from oxx_env.arena.running import Played
from oxx_env.game import cards, scoring


@dataclass(frozen=True)
class Entry:
    """How one SPEC argument did; per seat, where it fills several.

    games       games it took part in
    mean_points rulebook points a match, and their 95 % interval
    win_share   share of the victories, ties split, and its 95 % interval; parity is 1 / players
    mean_rank   mean place, ties at the mean of their places, and its 95 % interval
    """

    spec: str
    games: int
    mean_points: float
    points_ci95: ratings.Interval
    win_share: float
    ci95: ratings.Interval
    mean_rank: float
    rank_ci95: ratings.Interval

    def to_dict(self) -> dict[str, Any]:
        return {"spec": self.spec, "games": self.games, **_figures(self)}


@dataclass(frozen=True)
class Difference:
    """A minus B, paired by block: points and win share with 95 % intervals."""

    mean_points: float
    points_ci95: ratings.Interval
    win_share: float
    ci95: ratings.Interval

    def to_dict(self) -> dict[str, Any]:
        return _figures(self)


def _figures(of: Entry | Difference) -> dict[str, Any]:
    return {
        "mean_points": of.mean_points,
        "points_ci95": list(of.points_ci95),
        "win_share": of.win_share,
        "ci95": list(of.ci95),
    }


@dataclass(frozen=True)
class Result:
    """The outcome of `play`; `to_dict` is what `oxx arena --json` prints."""

    players: int
    rules: str
    deck: str
    seed: int
    match: int
    games: int
    bots: list[Entry]
    cheats: bool
    timing: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self._document(bots=[bot.to_dict() for bot in self.bots])

    def _document(self, **parts: Any) -> dict[str, Any]:
        return {
            "players": self.players,
            "rules": self.rules,
            "deck": self.deck,
            "games": self.games,
            **parts,
            **({"cheats": True} if self.cheats else {}),
            "timing": self.timing,
        }


@dataclass(frozen=True)
class Rated:
    """An entry of a league: its outcome, and its OpenSkill rating with standard deviation."""

    entry: Entry
    rating: float
    sigma: float

    @property
    def rating_ci95(self) -> ratings.Interval:
        """The rating's own belief, mean +- 1.96 sigma."""
        return self.rating - 1.96 * self.sigma, self.rating + 1.96 * self.sigma

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.entry.to_dict(),
            "mean_rank": self.entry.mean_rank,
            "rank_ci95": list(self.entry.rank_ci95),
            "rating": self.rating,
            "rating_ci95": list(self.rating_ci95),
        }


@dataclass(frozen=True)
class League(Result):
    """The outcome of `league`: `table` in the order of the SPEC arguments."""

    table: list[Rated]

    def to_dict(self) -> dict[str, Any]:
        return self._document(bots=[row.to_dict() for row in self.table])


@dataclass(frozen=True)
class Comparison(Result):
    """The outcome of `compare`: `bots` are A and B, `against` the bots that filled the table.

    `difference` is A minus B over the same deals and seats.
    """

    against: list[str]
    difference: Difference

    def to_dict(self) -> dict[str, Any]:
        return self._document(
            against=self.against,
            bots=[bot.to_dict() for bot in self.bots],
            difference=self.difference.to_dict(),
        )


@dataclass(frozen=True)
class Pair:
    """One bot among copies of another: the outcome of the single one."""

    against: str
    entry: Entry

    def to_dict(self) -> dict[str, Any]:
        return {"against": self.against, **self.entry.to_dict()}


@dataclass(frozen=True)
class Pairs(Result):
    """The outcome of `pairwise`: `pairs[i, j]` is bot i among copies of bot j."""

    specs: list[str]
    pairs: dict[tuple[int, int], Pair]

    def to_dict(self) -> dict[str, Any]:
        return self._document(pairs=[pair.to_dict() for _, pair in sorted(self.pairs.items())])


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; `result` is that of the blocks finished before."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.result = result


# --- counting -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcomes:
    """How an entry did in each block that it took part in: block means [B].

    The spreads are the variances that a block mean would have if the games in it were independent.

    games  games it took part in;  size  its games times seats in a block, on average
    """

    points: ratings.Floats
    points_spread: float
    shares: ratings.Floats
    ranks: ratings.Floats
    ranks_spread: float
    games: int
    size: float


def outcomes(setup: Setup, blocks: Sequence[Block], entry: int) -> Outcomes:
    """How an entry did in the blocks it took part in. Raises ValueError if there is none."""
    points = np.array([block.points for block in blocks])  # [B, L, R, P]
    lineups = np.array([block.lineups for block in blocks])  # [B, L, P]
    own = np.broadcast_to((lineups == entry)[:, :, None, :], points.shape)
    took_part = own.any(axis=(1, 2, 3)) if len(blocks) else np.zeros(0, bool)
    if not took_part.any():
        raise ValueError(f"{setup.names[entry]} has not played yet: play more games")
    points, own = points[took_part], own[took_part]
    count = own.sum(axis=(1, 2, 3))

    def means(values: NDArray[Any]) -> tuple[ratings.Floats, float]:
        spread = float(values[own].var()) * len(values) / int(count.sum())
        return np.where(own, values, 0).sum(axis=(1, 2, 3)) / count, spread

    return Outcomes(
        *means(points),
        means(scoring.win_shares(points, setup.rules))[0],
        *means(scoring.mean_places(points, setup.rules)),
        int(own.any(axis=3).sum()) * setup.match,
        float(count.mean()),
    )


def summarise(setup: Setup, blocks: Sequence[Block], entry: int) -> Entry:
    """Means and intervals of an entry over the blocks it took part in."""
    its = outcomes(setup, blocks, entry)
    return Entry(
        setup.names[entry],
        its.games,
        float(its.points.mean()),
        ratings.mean_interval(its.points, its.points_spread),
        float(its.shares.mean()),
        ratings.share_interval(its.shares, its.size),
        float(its.ranks.mean()),
        ratings.mean_interval(its.ranks, its.ranks_spread),
    )


def difference(setup: Setup, blocks: Sequence[Block]) -> Difference:
    """Entry 0 minus entry 1, which both take part in every block."""
    a, b = (outcomes(setup, blocks, entry) for entry in (0, 1))
    shares, points = a.shares - b.shares, a.points - b.points
    spread = sum(x.shares.mean() * (1 - x.shares.mean()) / x.size for x in (a, b))
    low, high = ratings.mean_interval(shares, float(spread))
    return Difference(
        float(points.mean()),
        ratings.mean_interval(points, a.points_spread + b.points_spread),
        float(shares.mean()),
        (max(low, -1.0), min(high, 1.0)),
    )


def facts(played: Played) -> dict[str, Any]:
    """What all results have, but `bots`."""
    setup, blocks = played.setup, played.blocks
    return {
        "players": setup.players,
        "rules": setup.rules,
        "deck": cards.deck_name(setup.deck),
        "seed": setup.seed,
        "match": setup.match,
        "games": sum(len(block.lineups) for block in blocks) * setup.block_games,
        "cheats": played.cheats,
        "timing": _timing(played),
    }


def _timing(played: Played) -> dict[str, Any]:
    """Outside the promise of determinism: how long it took, and per decision by spec."""
    seconds: dict[str, float] = {}
    decisions: dict[str, int] = {}
    for block in played.blocks:
        each = zip(played.setup.names, block.seconds, block.decisions, strict=True)
        for name, took, count in each:
            seconds[name] = seconds.get(name, 0.0) + took
            decisions[name] = decisions.get(name, 0) + count
    return {
        "seconds": played.seconds,
        "ms_per_decision": {
            name: 1000 * seconds[name] / count if count else None
            for name, count in decisions.items()
        },
        "decisions": decisions,
    }
