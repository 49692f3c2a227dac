"""Matches whose numbers can be trusted: the same deals for all, seats rotated, intervals by block.

    result = arena.play(["mc:200", "greedy"], players=4, games=2000, seed=1)
    result.bots[0].win_share, result.bots[0].ci95
    print(result.to_dict())

A *block* is one deal played `players` times, all line-up positions moved one seat on each time, so
nobody owes anything to a seat or to better cards. The block is the unit of all intervals
(`ratings`). Deals and bots' generators come from (seed, block, rotation, seat) alone (`seeding`):
the number of workers, an interruption or a resumed log change nothing but `timing`.

`play` is one line-up, `pairwise` each bot among copies of each other, `league` random line-ups with
a rating, `compare` two bots in the same seats of the same deals. All take these arguments:

    players, rules, deck  as everywhere; a deck function is asked once a deal
    games        games to play, rounded up to whole blocks (`players` seatings x `match` games)
    seed         of everything random
    match        games a match (R13): points and victory are then the match's
    workers      processes; with more than one, a script needs `if __name__ == "__main__":`
    log          a JSON-lines file to resume from: a header with the configuration, then the blocks
    progress     called as progress(games played, games to play or None) after each part
    until_width  play until the half-width of every win share's interval is at most this. Looked at
                 only after 50 blocks and each time their number has grown by a quarter: looking
                 after every block would stop at lucky moments and make the intervals too narrow.
                 `games`, if given, is then the limit.

Instead of a specification, a bot object (`act`, `needs_state`, `spec`) will do; several workers
need it to be picklable. Mistakes are ValueErrors. Ctrl-C raises `Interrupted`, a KeyboardInterrupt
that carries the result of the finished blocks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxx_env.arena import ratings
from oxx_env.arena.blocks import (
    Block,
    Lineup,
    Progress,
    Setup,
    Spec,
    count_blocks,
    fill_table,
    random_lineups,
    run_blocks,
    spec_name,
)
from oxx_env.game import cards
from oxx_env.lib import extras

R = TypeVar("R", bound="Result")


# --- results ------------------------------------------------------------------------------------


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
        return {
            "spec": self.spec,
            "games": self.games,
            "mean_points": self.mean_points,
            "points_ci95": list(self.points_ci95),
            "win_share": self.win_share,
            "ci95": list(self.ci95),
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
        return {**self._head(), "bots": [bot.to_dict() for bot in self.bots], **self._tail()}

    def _head(self) -> dict[str, Any]:
        return {
            "players": self.players,
            "rules": self.rules,
            "deck": self.deck,
            "games": self.games,
        }

    def _tail(self) -> dict[str, Any]:
        return {**({"cheats": True} if self.cheats else {}), "timing": self.timing}


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
        return {**self._head(), "bots": [row.to_dict() for row in self.table], **self._tail()}


@dataclass(frozen=True)
class Comparison(Result):
    """The outcome of `compare`: `bots` are A and B, `against` who filled the table.

    `difference` is A minus B over the same deals and seats.
    """

    against: list[str]
    difference: Difference

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._head(),
            "against": self.against,
            "bots": [bot.to_dict() for bot in self.bots],
            "difference": self.difference.to_dict(),
            **self._tail(),
        }


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
        pairs = [pair.to_dict() for _, pair in sorted(self.pairs.items())]
        return {**self._head(), "pairs": pairs, **self._tail()}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; `result` is that of the blocks finished before."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.result = result


# --- counting -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcomes:
    """What one entry made of its blocks: block means [B], and what a block mean's variance would be
    if the games in it were independent.

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
    """What an entry made of the blocks it took part in. Raises ValueError if there is none."""
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
        means(ratings.win_shares(points, setup.rules))[0],
        *means(ratings.places(points, setup.rules)),
        int(own.any(axis=3).sum()) * setup.match,
        float(count.mean()),
    )


def summarise(setup: Setup, blocks: Sequence[Block], entry: int) -> Entry:
    """What became of an entry in the blocks it took part in."""
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


@dataclass(frozen=True)
class Difference:
    """A minus B, paired by block: win share and points with 95 % intervals."""

    win_share: float
    ci95: ratings.Interval
    mean_points: float
    points_ci95: ratings.Interval

    def to_dict(self) -> dict[str, Any]:
        return {
            "mean_points": self.mean_points,
            "points_ci95": list(self.points_ci95),
            "win_share": self.win_share,
            "ci95": list(self.ci95),
        }


def difference(setup: Setup, blocks: Sequence[Block]) -> Difference:
    """Entry 0 minus entry 1, which both take part in every block."""
    a, b = (outcomes(setup, blocks, entry) for entry in (0, 1))
    shares, points = a.shares - b.shares, a.points - b.points
    spread = sum(x.shares.mean() * (1 - x.shares.mean()) / x.size for x in (a, b))
    low, high = ratings.mean_interval(shares, float(spread))
    return Difference(
        float(shares.mean()),
        (max(low, -1.0), min(high, 1.0)),
        float(points.mean()),
        ratings.mean_interval(points, a.points_spread + b.points_spread),
    )


def _timing(setup: Setup, blocks: Sequence[Block], start: float) -> dict[str, Any]:
    """Outside the promise of determinism: how long it took, and per decision by spec."""
    seconds: dict[str, float] = {}
    decisions: dict[str, int] = {}
    for block in blocks:
        for name, took, count in zip(setup.names, block.seconds, block.decisions, strict=True):
            seconds[name] = seconds.get(name, 0.0) + took
            decisions[name] = decisions.get(name, 0) + count
    each = {name: 1000 * seconds[name] / n if n else None for name, n in decisions.items()}
    return {
        "seconds": time.perf_counter() - start,
        "ms_per_decision": each,
        "decisions": decisions,
    }


def _facts(setup: Setup, blocks: Sequence[Block]) -> dict[str, Any]:
    lineups = sum(len(block.lineups) for block in blocks)
    return {
        "players": setup.players,
        "rules": setup.rules,
        "deck": cards.deck_name(setup.deck),
        "seed": int(setup.seed),
        "match": setup.match,
        "games": lineups * setup.block_games,
    }


def _half(interval: ratings.Interval) -> float:
    return (interval[1] - interval[0]) / 2


# --- the four ways to play ----------------------------------------------------------------------


def play(
    specs: Sequence[Spec],
    players: int = 4,
    rules: str = "base",
    deck: cards.DeckSpec = "balanced",
    games: int | None = None,
    seed: int = 0,
    match: int = 1,
    workers: int = 1,
    log: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    until_width: float | None = None,
) -> Result:
    """One line-up: the bots in order, the last fills the table (`games` default: 1000).

    The same spec twice is two entries. Arguments as told at the top of the module.
    """
    start = time.perf_counter()
    setup = Setup("arena", tuple(specs), players, rules, deck, seed, match)
    lineup = fill_table(len(setup.specs), players)

    def narrow(blocks: list[Block]) -> bool:
        entries = [summarise(setup, blocks, entry) for entry in range(len(setup.specs))]
        return all(_half(entry.ci95) <= (until_width or 0) for entry in entries)

    blocks, cheats, cut = run_blocks(
        setup,
        lambda _: (lineup,),
        count_blocks(setup, games, until_width),
        workers,
        log,
        progress,
        narrow if until_width is not None else None,
    )
    entries = [summarise(setup, blocks, entry) for entry in range(len(setup.specs))]
    timing = _timing(setup, blocks, start)
    outcome = Result(**_facts(setup, blocks), bots=entries, cheats=cheats, timing=timing)
    return _or_interrupt(outcome, cut)


def evaluate(bot: Spec, against: Sequence[Spec] = ("greedy",), **options: Any) -> Entry:
    """How `bot` does in one seat among `against`, whose last fills the table.

    `options` as for `play`. For training: `evaluate(bot, ["greedy"], players=2, games=2000).ci95`.
    """
    return play([bot, *against], **options).bots[0]


def pairwise(
    specs: Sequence[Spec],
    players: int = 2,
    rules: str = "base",
    deck: cards.DeckSpec = "balanced",
    games: int | None = None,
    seed: int = 0,
    match: int = 1,
    workers: int = 1,
    progress: Progress | None = None,
    until_width: float | None = None,
) -> Pairs:
    """Every bot among copies of every other, `games` for each pair, all on the same deals.

    With two players a pair is played once and read both ways.
    """
    start = time.perf_counter()
    if len(specs) < 2:
        raise ValueError("pairs need two bots or more")
    common = (rules, deck, games, seed, match, workers)
    pairs: dict[tuple[int, int], Pair] = {}
    results: list[Result] = []
    cut = False
    for one in range(len(specs)):
        for other in range(len(specs)):
            if one == other or (players == 2 and other < one):
                continue
            try:
                duel = [specs[one], specs[other]]
                result = play(duel, players, *common, None, progress, until_width)
            except Interrupted as stop:
                result, cut = stop.result, True
            except KeyboardInterrupt:
                if not results:
                    raise
                cut = True
                break
            results.append(result)
            pairs[one, other] = Pair(spec_name(specs[other]), result.bots[0])
            if players == 2:
                pairs[other, one] = Pair(spec_name(specs[one]), result.bots[1])
            if cut:
                break
        if cut:
            break
    first = results[0]
    each: dict[str, list[float]] = {}
    for result in results:
        for name, ms in result.timing["ms_per_decision"].items():
            each.setdefault(name, []).extend([] if ms is None else [ms])
    outcome = Pairs(
        players=first.players,
        rules=first.rules,
        deck=first.deck,
        seed=first.seed,
        match=first.match,
        games=sum(result.games for result in results),
        bots=[],
        cheats=any(result.cheats for result in results),
        timing={
            "seconds": time.perf_counter() - start,
            "ms_per_decision": {n: float(np.mean(ms)) if ms else None for n, ms in each.items()},
        },
        specs=[spec_name(spec) for spec in specs],
        pairs=pairs,
    )
    return _or_interrupt(outcome, cut)


def league(
    specs: Sequence[Spec],
    players: int = 4,
    rules: str = "base",
    deck: cards.DeckSpec = "balanced",
    games: int | None = None,
    seed: int = 0,
    match: int = 1,
    workers: int = 1,
    log: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    until_width: float | None = None,
) -> League:
    """Random line-ups of any number of bots (two or more), each entry seated equally often.

    The rating is OpenSkill's Plackett-Luce, game by game in order of play; its interval is the
    rating's own belief. Mean rank, points and win share depend on who else is in the league.
    """
    start = time.perf_counter()
    if len(specs) < 2:
        raise ValueError("a league needs two bots or more")
    with extras.needed_by("a league"):
        import openskill  # noqa: F401  (say so before hours of play, not after)

    setup = Setup("league", tuple(specs), players, rules, deck, seed, match)
    entries = range(len(setup.specs))
    drawn: list[Lineup] = []
    more = random_lineups(len(setup.specs), players, setup.seed)

    def source(number: int) -> tuple[Lineup, ...]:
        while len(drawn) <= number:
            drawn.append(next(more))
        return (drawn[number],)

    def narrow(blocks: list[Block]) -> bool:
        widths = [_half(summarise(setup, blocks, entry).ci95) for entry in entries]
        return max(widths) <= (until_width or 0)

    limit = count_blocks(setup, games, until_width)
    least = -(-len(setup.specs) // players)
    if limit is not None and limit < least:
        needed = least * setup.block_games
        raise ValueError(f"{games} games seat not every bot once: play at least {needed}")
    blocks, cheats, cut = run_blocks(
        setup,
        source,
        limit,
        workers,
        log,
        progress,
        narrow if until_width is not None else None,
    )
    if cut and len(blocks) < least:
        raise KeyboardInterrupt
    order = (
        (block.lineups[0], ratings.places(np.array(game), rules).tolist())
        for block in blocks
        for game in block.points[0]
    )
    rated = ratings.openskill_ratings(order, len(setup.specs))
    table = [
        Rated(summarise(setup, blocks, entry), *rating)
        for entry, rating in zip(entries, rated, strict=True)
    ]
    outcome = League(
        **_facts(setup, blocks),
        bots=[row.entry for row in table],
        cheats=cheats,
        timing=_timing(setup, blocks, start),
        table=table,
    )
    return _or_interrupt(outcome, cut)


def compare(
    a: Spec,
    b: Spec,
    against: Sequence[Spec] = ("greedy",),
    players: int = 4,
    rules: str = "base",
    deck: cards.DeckSpec = "balanced",
    games: int | None = None,
    seed: int = 0,
    match: int = 1,
    workers: int = 1,
    log: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    until_width: float | None = None,
) -> Comparison:
    """A, then B, in the same seat of the same deals among the same others; all seats in turn.

    `games` are those of each of the two; the last of `against` fills the table. The difference is
    taken deal by deal, so that the luck of the deal cancels; `until_width` is its width.
    """
    start = time.perf_counter()
    setup = Setup("compare", (a, b, *against), players, rules, deck, seed, match)
    if not against:
        raise ValueError("name at least one bot to compare against")
    if len(against) > players - 1:
        raise ValueError(
            f"{len(against)} bots to compare against; at a table of {players} there are "
            f"{players - 1} seats beside the one compared"
        )
    others = [2 + other for other in fill_table(len(against), players - 1)]
    lineups = ((0, *others), (1, *others))

    def narrow(blocks: list[Block]) -> bool:
        return _half(difference(setup, blocks).ci95) <= (until_width or 0)

    blocks, cheats, cut = run_blocks(
        setup,
        lambda _: lineups,
        count_blocks(setup, games, until_width),
        workers,
        log,
        progress,
        narrow if until_width is not None else None,
    )
    outcome = Comparison(
        **_facts(setup, blocks),
        bots=[summarise(setup, blocks, entry) for entry in (0, 1)],
        cheats=cheats,
        timing=_timing(setup, blocks, start),
        against=[spec_name(spec) for spec in against],
        difference=difference(setup, blocks),
    )
    return _or_interrupt(outcome, cut)


def _or_interrupt(result: R, cut: bool) -> R:
    if cut:
        raise Interrupted(result)
    return result
