"""Which points win (R12, V2a, V2d): the same answers of kernels, of arrays and by rule set."""

from __future__ import annotations

import numpy as np
import pytest

from oxx_env.game import scoring
from oxx_env.game.rules import GAME, RULE_SETS


@pytest.mark.parametrize("rules", RULE_SETS)
def test_kernels_and_arrays_agree_on_relative_points_and_shares_of_the_victory(rules: str) -> None:
    points, before = np.array([10, 4, 7, 4]), np.array([1, 3, 0, 3])
    games = np.zeros(2, GAME)
    games["players"], games["rules"] = 4, RULE_SETS.index(rules)
    games["points"][:, :4], games["match_points"][1, :4] = points, before
    better = 1 if "positive" in rules else -1
    expected = [better * value for value in (5.0, -3.0, 1.0, -3.0)]
    assert scoring.relative_points_of(games)[:, :4].tolist() == [expected, expected]
    for game, total in zip(games, (points, points + before), strict=True):
        seats = range(4)
        assert [scoring.relative_points(game, seat) for seat in seats] == expected
        shares = scoring.win_shares(total, rules).tolist()
        assert [scoring.victory_share(game, seat) for seat in seats] == shares
        assert scoring.winners(total, rules) == [s for s in seats if shares[s]]


def test_relative_points_of_a_batch_count_only_the_seats_of_each_game() -> None:
    games = np.zeros(2, GAME)
    games["players"], games["rules"] = (2, 3), (0, 2)
    games["points"][:, :3] = [[3, 1, 0], [6, 0, 3]]
    found = scoring.relative_points_of(games, np.float32)
    assert found.dtype == np.float32
    assert found[0, :2].tolist() == [-2, 2] and found[1, :3].tolist() == [4.5, -4.5, 0]


def test_ties_share_the_better_place_and_the_mean_of_places() -> None:
    assert scoring.ranks([5, 3, 3, 9], "base") == [3, 1, 1, 4]
    assert scoring.ranks([5, 3, 3, 9], "positive") == [2, 3, 3, 1]
    assert scoring.mean_places([5, 3, 3, 9], "base").tolist() == [3, 1.5, 1.5, 4]
    assert scoring.direction("color") == "fewest points win"
    assert scoring.direction("color+positive") == "most points win"
