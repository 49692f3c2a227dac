"""What a policy does and believes: self-play, likings, calibration, cards, curves."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

from oxx_env import cards, insight
from oxx_env.policy.checkpoint import CheckpointError


@functools.cache
def played(players: int = 2, rules: str = "base", games: int = 120) -> insight.SelfPlay:
    return insight.self_play("policy:quick", players, rules, games=games, seed=3)


@pytest.mark.parametrize(("players", "rules"), [(2, "base"), (4, "positive"), (3, "color")])
def test_every_decision_and_every_option_of_it_is_there(players, rules):
    play = played(players, rules, 40)
    assert len(play.values) == len(play.returns) == len(play.seats)
    assert set(play.seats[:, 0].tolist()) == set(range(40))
    assert set(play.seats[:, 1].tolist()) == set(range(players))
    # Probabilities of a decision's options add up to one, and so do their chances.
    for name in ("probability", "chance"):
        total = play.cards[name].sum() + play.rows[name].sum()
        assert total == pytest.approx(len(play.values), rel=1e-4)
    assert set(play.cards["hand"].tolist()) == {2, 3, 4}
    assert ((play.cards["fits"] >= 0) & (play.cards["fits"] <= 5)).all()
    heads = cards.load_deck("balanced").sum(axis=1)
    assert (play.cards["heads"] == heads[play.cards["number"] - 1]).all()
    assert (play.cards["points"] >= 0).all() and (play.rows["points"] >= 0).all()
    assert (play.rows["length"] >= 1).all()
    assert (play.rows["length"].max() > 5) == (rules == "color")


def test_the_same_seed_plays_the_same_games_and_another_one_others():
    again, other = (insight.self_play(games=5, seed=seed) for seed in (1, 2))
    first = insight.self_play(games=5, seed=1)
    assert (first.values == again.values).all() and (first.cards == again.cards).all()
    assert len(other.values) != len(first.values) or (other.values != first.values).any()


def test_returns_are_the_discounted_change_of_relative_points():
    seats = np.array([[0, 0], [0, 1], [0, 0], [0, 1]])
    points = np.array([0.0, 0.0, -3.0, 3.0])  # at each decision, of its seat
    final = np.array([[-4.0, 4.0]])
    found = insight._returns(seats, points, final, 0.5)
    assert found.tolist() == [-3 + 0.5 * -1, 3 + 0.5 * 1, -1, 1]


def test_groups_of_the_calibration_are_equally_full_and_in_order():
    groups = played().calibration(8)
    sizes = [group["decisions"] for group in groups]
    assert sum(sizes) == len(played().values) and max(sizes) - min(sizes) <= 2
    foretold = [group["foretold"] for group in groups]
    assert foretold == sorted(foretold)
    assert all(group["half"] > 0 for group in groups)


def test_the_shipped_policy_foretells_more_where_more_comes():
    groups = played(games=300).calibration(5)
    assert groups[0]["came"] < groups[2]["came"] < groups[-1]["came"]
    assert played(games=300).explained > 0.1


def test_liking_is_one_for_an_option_chosen_as_often_as_by_chance():
    options = np.zeros(4, insight.CARD)
    options["probability"], options["chance"] = [0.5, 0.5, 0.9, 0.1], 0.5
    options["heads"] = [1, 1, 2, 3]
    found = insight.SelfPlay.liking(options, "heads")
    assert [(g["heads"], round(g["liking"], 3), g["options"]) for g in found] == [
        (1, 1.0, 2),
        (2, 1.8, 1),
        (3, 0.2, 1),
    ]
    grouped = insight.SelfPlay.liking(options, "heads", [1, 3])
    assert [(g["heads"], g["options"]) for g in grouped] == [(1, 3), (3, 1)]
    with pytest.raises(ValueError, match="'color' is no field; the fields are probability"):
        insight.SelfPlay.liking(options, "color")


def test_the_shipped_policy_likes_rows_that_cost_nothing():
    cheap, dear = (insight.SelfPlay.liking(played().rows, "points", [0, 8])[k] for k in (0, 1))
    assert cheap["liking"] > 1 > dear["liking"]


def test_what_a_card_is_worth_is_found_again():
    rng = np.random.default_rng(0)
    worth = rng.normal(size=110)
    worth -= worth.mean()
    hands = np.array([rng.choice(110, 4, replace=False) for _ in range(4000)])
    values = worth[hands].sum(axis=1) + 5 + rng.normal(scale=0.5, size=4000)
    play = insight.SelfPlay(
        values=values,
        returns=2 * values,
        seats=np.zeros((4000, 2), np.int64),
        fresh=np.arange(4000),
        hands=hands + 1,
        cards=np.zeros(0, insight.CARD),
        rows=np.zeros(0, insight.ROW),
        deck=cards.load_deck("balanced"),
        players=2,
        rules="base",
        games=1,
        gamma=1.0,
    )
    found = insight.card_values(play)
    assert np.abs(found.value - worth[found.number - 1]).max() < 5 * found.error.max() < 0.5
    assert (np.diff(found.value) <= 0).all()
    assert np.allclose(found.came, 2 * found.value)
    lines = found.table(3).splitlines()
    assert len(lines) == 1 + 3 + 1 + 3 and lines[4] == "..."
    assert [group["foretold"] > 0 for group in found.groups(2)] == [True, False]


def test_too_few_hands_are_no_basis():
    with pytest.raises(ValueError, match="too few; play more games"):
        insight.card_values(insight.self_play(games=2))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"policy": "greedy"}, ValueError, "'greedy' is no policy; write policy:quick"),
        ({"policy": "policy:nowhere"}, CheckpointError, "no checkpoint folder 'nowhere'"),
        ({"games": 0}, ValueError, "play at least one"),
        ({"players": 11}, ValueError, "2 to 10"),
        ({"rules": "none"}, ValueError, "unknown rule set"),
    ],
)
def test_arguments_that_are_none_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        insight.self_play(**arguments)


# --- curves and figures ---------------------------------------------------------------------------

CURVE = [{"decisions": 10, "greedy_2p": 0.5}, {"decisions": 20, "greedy_2p": 0.6}]


def test_a_run_s_curve_is_read_and_kept_beside_a_checkpoint(tmp_path):
    run, checkpoint = tmp_path / "run", tmp_path / "checkpoint"
    run.mkdir()
    checkpoint.mkdir()
    with pytest.raises(ValueError, match="keeps no learning curve"):
        insight.learning_curve(checkpoint)
    np.savez(run / "state.npz", evaluations=np.array(json.dumps(CURVE)))
    assert insight.learning_curve(run) == CURVE
    assert insight.keep_curve(run, checkpoint) == checkpoint / "curve.json"
    assert insight.learning_curve(checkpoint) == CURVE


def test_the_shipped_policy_has_its_curve():
    curve = insight.learning_curve("quick")
    decisions = [point["decisions"] for point in curve]
    assert decisions == sorted(decisions) and len(decisions) >= 3
    assert all(0 <= p[key] <= 1 for p in curve for key in p if key not in insight.NO_SHARE)


def test_figures_show_what_they_are_given():
    figure = pytest.importorskip("matplotlib.figure")
    from oxx_env.arena import Entry

    axes = figure.Figure().subplots(2, 2)
    insight.draw_curve(axes[0, 0], CURVE)
    assert axes[0, 0].lines[0].get_ydata().tolist() == [0.5, 0.6]
    insight.draw_calibration(axes[0, 1], played().calibration(5))
    assert len(axes[0, 1].containers[0][0].get_xdata()) == 5
    insight.draw_liking(axes[1, 0], insight.SelfPlay.liking(played().cards, "fits"))
    assert len(axes[1, 0].patches) == 6 and axes[1, 0].get_xlabel() == "fits"
    entry = Entry("greedy", 10, 5.0, (4.0, 6.0), 0.6, (0.5, 0.7), 1.4, (1.3, 1.5))
    insight.draw_entries(axes[1, 1], [entry], parity=0.5)
    assert [label.get_text() for label in axes[1, 1].get_yticklabels()] == ["greedy"]


def test_the_module_loads_neither_torch_nor_matplotlib():
    import subprocess
    import sys

    code = "import sys, oxx_env.policy.insight; print({'torch', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
