"""What played games are worth: victory shares, places, intervals, ratings.

**The block is the unit of every interval.** A block is one deal played with all seats rotated; its
games share the cards, so they are no independent observations, but blocks are. An entry's outcome
of a block is the mean over the block's games and over the seats it fills.

*Points*: Student's t on the block means. *Win share*: Wilson's score interval, which stays inside
0 to 1 and is sensible at the borders, for an effective number of games: games divided by the
*design effect*, which is the measured variance of the block means over the variance that as many
independent games would have (Kish 1965). Pairing by rotation usually makes it less than one.
Student's t takes the place of the normal quantile.

Few blocks say little about their own variance. So each variance gets one more degree of freedom,
whose value is what independent games would show: two blocks that happen to be alike do not claim
certainty, and one block alone has a (very wide) interval. Where a bot has won all or nothing, the
blocks cannot show how they vary, and the games count as independent. `tests/test_statistics.py`
measures how often these intervals cover the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import scoring
from oxx_env.lib.extras import needed_by

places, win_shares = scoring.mean_places, scoring.win_shares
Interval = tuple[float, float]  # low, high
Floats = NDArray[np.float64]
_NORMAL = 1.959963984540054  # the standard normal's 97.5 % point


# --- intervals ----------------------------------------------------------------------------------


def t_quantile(freedom: float) -> float:
    """The 97.5 % point of Student's t with `freedom` >= 1 degrees of freedom.

    Exact for 1 and 2, else Hill's expansion (Communications of the ACM 13, 1970, algorithm 396),
    good to four digits.

    >>> round(t_quantile(1), 3), round(t_quantile(2), 3), round(t_quantile(9), 3)
    (12.706, 4.303, 2.262)
    """
    if freedom < 1:
        raise ValueError(f"degrees of freedom must be 1 or more, not {freedom}")
    tail = 0.05  # both tails
    if freedom == 1:
        return math.tan(math.pi / 2 * (1 - tail))
    if freedom == 2:
        return math.sqrt(2 / (tail * (2 - tail)) - 2)
    a = 1 / (freedom - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * freedom
    y = (d * tail) ** (2 / freedom)
    if y > 0.05 + a:
        x = -_NORMAL
        y = x * x
        if freedom < 5:
            c += 0.3 * (freedom - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1 / (((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3)
              + 0.5 / (freedom + 4)) * y - 1) * (freedom + 1) / (freedom + 2) + 1 / y  # fmt: skip
    return math.sqrt(freedom * y)


def mean_interval(blocks: Sequence[float] | Floats, spread: float = 0.0) -> Interval:
    """95 % interval of a mean by Student's t on block means [B].

    `spread` is the variance that a block mean would have if the games in it were independent; it
    counts as one more degree of freedom.
    """
    means = np.asarray(blocks, np.float64)
    count = len(means)
    if count == 0:
        raise ValueError("no blocks, no interval")
    mean = float(means.mean())
    variance = (float(((means - mean) ** 2).sum()) + spread) / count
    half = t_quantile(count) * math.sqrt(variance / count)
    return mean - half, mean + half


def share_interval(blocks: Sequence[float] | Floats, games: float) -> Interval:
    """95 % interval of a win share by block shares [B] of `games` games (times seats) each."""
    shares = np.asarray(blocks, np.float64)
    count = len(shares)
    if count == 0:
        raise ValueError("no blocks, no interval")
    mean = min(max(float(shares.mean()), 0.0), 1.0)
    alone = mean * (1 - mean)  # variance of one game
    design = 1.0
    if alone > 1e-12:  # else all won or all lost: the blocks cannot show how they vary
        squares = float(((shares - mean) ** 2).sum())
        design = (squares * games / alone + 1) / count
    z = t_quantile(count) ** 2 * design / (count * games)
    middle = (mean + z / 2) / (1 + z)
    half = math.sqrt(z * alone + z * z / 4) / (1 + z)
    low, high = max(middle - half, 0.0), min(middle + half, 1.0)
    # At the borders the formula gives exactly 0 or 1; rounding must not take it away.
    return (0.0 if mean == 0 else low), (1.0 if mean == 1 else high)


# --- ratings ------------------------------------------------------------------------------------


def openskill_ratings(
    games: Iterable[tuple[Sequence[int], Sequence[float]]], entries: int
) -> list[tuple[float, float]]:
    """OpenSkill's Plackett-Luce rating (mean, standard deviation) of each entry.

    `games` are (entries at the table [P], their places [P]) in order of play. An entry that sits at
    several places plays each with the same rating and keeps the mean of the outcomes. Bots do not
    learn while they play, so the rating's drift (tau) is off. Raises ImportError without openskill.
    """
    with needed_by("a rating"):
        from openskill.models import PlackettLuce

    model = PlackettLuce(tau=0.0)
    ratings = [model.rating() for _ in range(entries)]
    for lineup, ranks in games:
        seats = [[model.rating(mu=ratings[e].mu, sigma=ratings[e].sigma)] for e in lineup]
        after = model.rate(seats, ranks=[float(rank) for rank in ranks])
        for entry in set(lineup):
            own = [after[seat][0] for seat, e in enumerate(lineup) if e == entry]
            ratings[entry] = model.rating(
                mu=sum(r.mu for r in own) / len(own), sigma=sum(r.sigma for r in own) / len(own)
            )
    return [(float(rating.mu), float(rating.sigma)) for rating in ratings]
