"""Which points win: relative points, places, and shares of the victory, in kernels and for arrays.

*Points* are counted as the rulebook counts them: heads taken in `base` and `color`, where fewest
win (R12); victory points in `positive`, where most win (V2a, V2d). *Relative points* are own points
minus the mean of the others', turned so that higher is better.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.rules import POSITIVE, counts_victory_points, is_positive
from oxx_env.lib.jit import kernel

# --- of a game, in kernels ------------------------------------------------------------------------


@kernel
def sign(game):
    """1 where most points win, -1 where fewest do."""
    return 1 if is_positive(game) else -1


@kernel
def match_points(game, seat):
    """The seat's points of the whole match so far."""
    return np.int64(game["match_points"][seat]) + np.int64(game["points"][seat])


@kernel
def relative_points(game, seat):
    """The seat's relative points of this game so far."""
    players = np.int64(game["players"])
    own = np.int64(game["points"][seat])
    total = 0
    for other in range(players):
        total += np.int64(game["points"][other])
    value = own - (total - own) / (players - 1)
    return value if is_positive(game) else -value


@kernel
def victory_share(game, seat):
    """The seat's share of the victory if the match ended now; ties split it."""
    turned = sign(game)
    own = turned * match_points(game, seat)
    winners = 0
    for other in range(np.int64(game["players"])):
        theirs = turned * match_points(game, other)
        if theirs > own:
            return 0.0
        winners += theirs == own
    return 1.0 / winners


def relative_points_of(games: NDArray[np.void], dtype: type = np.float64) -> NDArray[Any]:
    """Relative points of all seats of GAME [B] so far, [B, 10]; meaningless for empty seats."""
    points: NDArray[Any] = games["points"].astype(dtype)
    others = points.sum(axis=1, keepdims=True) - points
    lead = points - others / (games["players"][:, None].astype(dtype) - 1)
    return np.where(games["rules"][:, None] & POSITIVE, lead, -lead)


# --- of points, by the name of the rule set -------------------------------------------------------


def most_win(rules: str) -> bool:
    """Do most points win in a rule set, or fewest?"""
    return counts_victory_points(rules)


def direction(rules: str) -> str:
    """`most points win` or `fewest points win`."""
    return f"{'most' if most_win(rules) else 'fewest'} points win"


def turned(points: Any, rules: str) -> NDArray[Any]:
    """Points [..., P] turned so that higher is better."""
    points = np.asarray(points)
    return points if most_win(rules) else -points


def ranks(points: Any, rules: str) -> list[int]:
    """Places for points [P]: 1 = best, ties share the better place."""
    mine = turned(points, rules).tolist()
    return [1 + sum(other > own for other in mine) for own in mine]


def winners(points: Any, rules: str) -> list[int]:
    """The seats with the best of points [P]."""
    return [seat for seat, rank in enumerate(ranks(points, rules)) if rank == 1]


def win_shares(points: Any, rules: str) -> NDArray[np.float64]:
    """Shares of the victory [..., P] for points [..., P]: ties split it."""
    mine = turned(points, rules)
    won = mine == mine.max(axis=-1, keepdims=True)
    return won / won.sum(axis=-1, keepdims=True)


def mean_places(points: Any, rules: str) -> NDArray[np.float64]:
    """Places [..., P] for points [..., P], 1 = best; seats that tie get the mean of their places,
    so that the places of a game always have the mean (P + 1) / 2."""
    mine = turned(points, rules)
    own, other = mine[..., :, None], mine[..., None, :]
    return 0.5 + (other > own).sum(axis=-1) + 0.5 * (other == own).sum(axis=-1)
