"""Do the intervals of `oxx_env.ratings` cover the truth as often as they claim?

The truth of a matchup is known where all its possible blocks are: a large pool of real blocks,
played by the compiled policies, is taken for the whole world. A repeat draws some of its blocks and
asks whether their interval covers the mean of the pool.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from oxx_env import arena, engine, ratings
from oxx_env.arena.blocks import Block, Setup
from oxx_env.game import scoring

POOL = 1500  # blocks
REPEATS = 1000
LINEUPS = {
    "four equals": (engine.RANDOM,) * 4,
    "two equals": (engine.RANDOM, engine.RANDOM),
    "one-sided": (engine.GREEDY, engine.RANDOM),
    "one among three": (engine.GREEDY, engine.RANDOM, engine.RANDOM, engine.RANDOM),
    "underdog": (engine.RANDOM, engine.GREEDY, engine.GREEDY, engine.RANDOM),
    "ten": (engine.GREEDY, *[engine.RANDOM] * 4, *[engine.GREEDY] * 5),
}


@cache
def pool(name: str) -> NDArray[np.int64]:
    """Points [POOL, R, P] by block, rotation and line-up position."""
    lineup = np.array(LINEUPS[name])
    players = len(lineup)
    decks = engine.stack_decks(["balanced"])
    games = engine.new_games(np.arange(POOL).repeat(players), decks, players)
    rotations = np.tile(np.arange(players), POOL)
    # Rotations share the deal, not the bots' luck.
    games["rng"] = np.random.default_rng(0).integers(2**63, size=len(games))
    who = np.zeros(10 * len(games), engine.PENDING)
    while n := engine.pending(games, who):
        now = who[:n]
        policies = lineup[(now["seat"] - rotations[now["game"]]) % players]
        actions = np.zeros(n, np.int64)
        for policy in (engine.RANDOM, engine.GREEDY):
            own = np.flatnonzero(policies == policy)
            chosen = np.zeros(len(own), np.int64)
            engine.policy_actions(games, decks, now[own], len(own), policy, chosen)
            actions[own] = chosen
        engine.step(games, decks, now, n, actions, False)
    seats = (np.arange(players) + rotations[:, None]) % players
    points = np.take_along_axis(games["points"].astype(np.int64), seats, axis=1)
    return points.reshape(POOL, players, players)


def coverage(name: str, blocks: int) -> tuple[float, float]:
    """How often the intervals of position 0 cover the truth: win share, points."""
    points = pool(name)
    shares = scoring.win_shares(points, "base")[:, :, 0]
    own = points[:, :, 0].astype(np.float64)
    players = points.shape[1]
    truth = shares.mean(), own.mean()
    rng = np.random.default_rng(blocks)
    covered = np.zeros(2)
    for _ in range(REPEATS):
        drawn = rng.integers(POOL, size=blocks)
        share = ratings.share_interval(shares[drawn].mean(axis=1), players)
        spread = float(own[drawn].var()) / players
        mean = ratings.mean_interval(own[drawn].mean(axis=1), spread)
        covered += [share[0] <= truth[0] <= share[1], mean[0] <= truth[1] <= mean[1]]
    return float(covered[0]) / REPEATS, float(covered[1]) / REPEATS


# Where only two or three games of a sample go the other way, the coverage moves in leaps.
RARE = {"one-sided", "underdog"}


@pytest.mark.parametrize(
    ("name", "blocks"),
    [(name, blocks) for name in LINEUPS for blocks in (50, 200) if name not in RARE or blocks > 50],
)
def test_intervals_cover_the_truth_in_93_to_97_percent(name: str, blocks: int) -> None:
    share, points = coverage(name, blocks)
    assert 0.93 <= share <= 0.97
    assert 0.93 <= points <= 0.97


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        (name, blocks)
        for name in LINEUPS
        for blocks in (2, 5, 10, 50)
        if name in RARE or blocks < 50
    ],
)
def test_intervals_of_few_blocks_rather_promise_too_little(name: str, blocks: int) -> None:
    share, points = coverage(name, blocks)
    assert share >= 0.93
    assert points >= 0.93


def blocks_of(name: str, numbers: NDArray[np.int64]) -> list[Block]:
    """Blocks of the pool as the arena keeps them: position 0 is entry 0, all others entry 1."""
    lineup = tuple(min(position, 1) for position in range(len(LINEUPS[name])))
    # Arrays will do for the lists that a log keeps.
    return [
        Block(i, (lineup,), pool(name)[n][None], [0.0, 0.0], [0, 0]) for i, n in enumerate(numbers)
    ]


def test_intervals_cover_the_truth_for_an_entry_of_several_seats() -> None:
    """Three seats of the same bot: their mean share is the entry's outcome."""
    name = "one among three"
    setup = Setup("arena", ("greedy", "random"), 4, "base", "balanced", 0, 1)
    truth = scoring.win_shares(pool(name), "base")[:, :, 1:].mean()
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(REPEATS):
        low, high = arena.summarise(setup, blocks_of(name, rng.integers(POOL, size=50)), 1).ci95
        covered += bool(low <= truth <= high)
    assert 0.93 <= covered / REPEATS <= 0.97


def test_paired_differences_cover_the_truth() -> None:
    """Greedy and random in the same seat of the same deals, among three of random."""
    one, other = pool("one among three"), pool("four equals")
    setup = Setup("compare", ("greedy", "random", "random"), 4, "base", "balanced", 0, 1)
    lineups = ((0, 2, 2, 2), (1, 2, 2, 2))
    blocks = [
        Block(n, lineups, np.stack([one[n], other[n]]), [0.0] * 3, [0] * 3) for n in range(POOL)
    ]
    truth = arena.difference(setup, blocks)
    rng = np.random.default_rng(2)
    covered = np.zeros(2)
    for _ in range(REPEATS):
        found = arena.difference(setup, [blocks[n] for n in rng.integers(POOL, size=50)])
        covered += [
            found.ci95[0] <= truth.win_share <= found.ci95[1],
            found.points_ci95[0] <= truth.mean_points <= found.points_ci95[1],
        ]
    assert (covered / REPEATS >= 0.93).all()
    assert (covered / REPEATS <= 0.97).all()


def test_the_arena_reports_these_intervals() -> None:
    points = pool("one among three")[:60]
    setup = Setup("arena", ("greedy", "random"), 4, "base", "balanced", 0, 1)
    entry = arena.summarise(setup, blocks_of("one among three", np.arange(60)), 0)
    own = points[:, :, 0].astype(np.float64)
    shares = scoring.win_shares(points, "base")[:, :, 0].mean(axis=1)
    assert entry.ci95 == ratings.share_interval(shares, 4)
    assert entry.points_ci95 == pytest.approx(
        ratings.mean_interval(own.mean(axis=1), own.var() / 4)
    )
    assert entry.mean_points == pytest.approx(own.mean())
    assert entry.win_share == pytest.approx(shares.mean())
    assert entry.games == 240


def test_a_share_of_nothing_or_all_has_an_interval_inside_0_to_1() -> None:
    for blocks in (1, 2, 10, 100):
        low, high = ratings.share_interval([0.0] * blocks, 4)
        assert low == 0.0
        assert 0.0 < high < 1.0
        mirrored = ratings.share_interval([1.0] * blocks, 4)
        assert mirrored == pytest.approx((1 - high, 1.0))
    # For many games near the rule of three: 3 / games.
    assert ratings.share_interval([0.0] * 250, 4)[1] == pytest.approx(3.84 / 1000, rel=0.05)


def test_blocks_that_happen_to_be_alike_do_not_claim_certainty() -> None:
    low, high = ratings.share_interval([0.5, 0.5], 2)
    assert low < 0.2
    assert high > 0.8
    assert ratings.mean_interval([3.0, 3.0], 2.0)[1] > 5.0


def test_one_block_alone_has_a_very_wide_interval() -> None:
    low, high = ratings.share_interval([0.25], 4)
    assert low < 0.02
    assert high > 0.9


def test_no_blocks_are_an_error() -> None:
    with pytest.raises(ValueError, match="no blocks"):
        ratings.share_interval([], 4)
    with pytest.raises(ValueError, match="no blocks"):
        ratings.mean_interval([])


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.70620), (2, 4.30265), (3, 3.18245), (4, 2.77645), (9, 2.26216), (30, 2.04227),
     (200, 1.97190), (10**6, 1.95997)],
)  # fmt: skip
def test_quantiles_of_students_t_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert ratings.t_quantile(freedom) == pytest.approx(quantile, abs=1e-4)


def test_ties_split_the_victory() -> None:
    assert scoring.win_shares(np.array([3, 3, 9]), "base").tolist() == [0.5, 0.5, 0.0]
    assert scoring.win_shares(np.array([3, 9, 9]), "positive").tolist() == [0.0, 0.5, 0.5]
    assert scoring.win_shares(np.array([[-1, 2], [2, 2]]), "color+positive").tolist() == [
        [0.0, 1.0],
        [0.5, 0.5],
    ]


def test_ties_share_the_mean_of_their_places() -> None:
    assert scoring.mean_places(np.array([3, 3, 9]), "color").tolist() == [1.5, 1.5, 3.0]
    assert scoring.mean_places(np.array([3, 3, 9]), "positive").tolist() == [2.5, 2.5, 1.0]
    drawn = np.random.default_rng(0).integers(5, size=(100, 10))
    assert (scoring.mean_places(drawn, "base").mean(axis=1) == 5.5).all()


def test_the_rating_orders_bots_by_strength_and_knows_its_doubt() -> None:
    pytest.importorskip("openskill")
    rng = np.random.default_rng(0)
    games = []
    for _ in range(300):  # 0 is best, 2 is worst; a third of the time all is luck
        order = np.arange(3) if rng.random() > 1 / 3 else rng.permutation(3)
        games.append(([0, 1, 2], (order + 1).tolist()))
    few = ratings.openskill_ratings(games[:10], 3)
    many = ratings.openskill_ratings(games, 3)
    assert many[0][0] > many[1][0] > many[2][0]
    assert all(many[entry][1] < few[entry][1] for entry in range(3))


def test_a_bot_that_sits_at_all_places_keeps_its_rating() -> None:
    pytest.importorskip("openskill")
    (rating, sigma), (other, _) = ratings.openskill_ratings([([0, 0, 0], [1, 2, 3])] * 20, 2)
    assert rating == pytest.approx(other, abs=1e-6)
    assert math.isfinite(sigma)
