"""The Gymnasium environment: one learner against bots."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import oxx_env  # noqa: F401  (registers the id)
from oxx_env.envs.single import BaronOxxSingle
from oxx_env.game.observe import observe
from oxx_env.game.views import View

RULES = ("base", "color", "positive", "color+positive")


def play(env: Any, rng: np.random.Generator, **reset: Any) -> list[Any]:
    """One match of random legal play: everything `reset` and `step` returned."""
    steps: list[Any] = [env.reset(**reset)]
    info, over = steps[0][1], False
    while not over:
        steps.append(env.step(int(rng.choice(np.flatnonzero(info["action_mask"])))))
        _, _, over, truncated, info = steps[-1]
        assert truncated is False
    return steps


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("players", [2, 4])
def test_passes_gymnasiums_check_env(players: int, rules: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(
            "oxx_env/BaronOxx-v0", num_players=players, rules=rules, illegal_action="substitute"
        )
        check_env(env.unwrapped, skip_render_check=True)


def test_passes_gymnasiums_render_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make("oxx_env/BaronOxx-v0", illegal_action="substitute", render_mode="ansi")
    check_env(env.unwrapped)
    env.reset(seed=1)
    assert str(env.unwrapped.view().hand[0]) in env.render()


def test_passes_sb3s_check_env() -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(BaronOxxSingle(3, illegal_action="substitute"))


@pytest.mark.parametrize("rules", RULES)
def test_the_same_seed_and_actions_give_the_same_matches(rules: str) -> None:
    def matches() -> list[Any]:
        env = BaronOxxSingle(4, 2, ("random", "greedy"), rules, games_per_match=2)
        rng = np.random.default_rng(0)
        return [*play(env, rng, seed=5), *play(env, rng)]

    first, second = matches(), matches()
    assert len(first) == len(second) > 20
    assert all(data_equivalence(a, b, exact=True) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("reward", ["points", "relative", "win"])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    ("players", "seat", "games"), [(2, 0, 1), (2, 1, 3), (5, 3, 1), (10, 9, 2)]
)
def test_rewards_sum_to_the_final_points(
    players: int, seat: int, games: int, rules: str, reward: str
) -> None:
    env = BaronOxxSingle(players, seat, ("random",), rules, "balanced", games, reward)
    steps = play(env, np.random.default_rng(1), seed=1)
    total = sum(step[1] for step in steps[1:])
    scores = np.array(steps[-1][4]["scores"]) * (1 if "positive" in rules else -1)
    winners = steps[-1][4]["winners"]
    mean = (scores.sum() - scores[seat]) / (players - 1)
    wanted = {
        "points": scores[seat],
        "relative": scores[seat] - mean,
        "win": (seat in winners) / len(winners),
    }
    assert total == pytest.approx(wanted[reward])
    assert any(scores)


@pytest.mark.parametrize("rules", RULES)
def test_the_learner_is_asked_only_where_it_decides(rules: str) -> None:
    env = BaronOxxSingle(3, 1, rules=rules)
    rng = np.random.default_rng(9)
    observation, info = env.reset(seed=9)
    over, decisions = False, 0
    while not over:
        decisions += 1
        mask = info["action_mask"]
        assert mask.dtype == np.int8 and mask.sum() >= 2 and not mask[9]
        np.testing.assert_array_equal(mask.astype(bool), env.action_masks())
        np.testing.assert_array_equal(observation, observe(env.view()))
        assert 1 in env.view().to_act and env.observation_space.contains(observation)
        observation, _, over, _, info = env.step(int(rng.choice(np.flatnonzero(mask))))
    assert np.flatnonzero(info["action_mask"]).tolist() == [9]
    by_seat = [seat for seat, _ in env.match.table.decisions]
    assert by_seat.count(1) == decisions and {0, 2} <= set(by_seat)


class Watcher:
    """Plays the first legal action and keeps what it was shown."""

    def __init__(self) -> None:
        self.views: list[View] = []

    def act(self, view: View, rng: np.random.Generator) -> int:
        self.views.append(view)
        return view.legal[0]


def test_opponents_sit_in_their_order_and_the_last_fills_the_table() -> None:
    one, two = Watcher(), Watcher()
    play(BaronOxxSingle(5, 1, (one, two)), np.random.default_rng(0), seed=0)
    assert {view.seat for view in one.views} == {0}
    assert {view.seat for view in two.views} == {2, 3, 4}
    env = BaronOxxSingle(4, 3, ("random", "greedy"))
    assert [bot.spec for bot in env.bots.values()] == ["random", "greedy", "greedy"]


def test_opponents_see_their_view_and_not_the_learners_pick() -> None:
    watcher = Watcher()
    env = BaronOxxSingle(2, 0, (watcher,))
    env.reset(seed=3)
    env.step(2)
    (first, *_) = watcher.views
    assert first.hand and first.game["picks"][0] == 0 and not first.game["hands"][0].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_players": 1}, "2 to 10"),
        ({"num_players": 11}, "2 to 10"),
        ({"seat": 2}, "seat 2: with 2 players the seats are 0 to 1"),
        ({"seat": -1}, "seat -1"),
        ({"seat": "first"}, "seat must be an integer"),
        ({"opponents": ()}, "0 opponents for 1 seats"),
        ({"opponents": ("random", "greedy")}, "2 opponents for 1 seats"),
        ({"opponents": ("clever",)}, "unknown bot 'clever'"),
        ({"opponents": (3,)}, "opponent 3 is no bot"),
        ({"rules": "colour"}, "unknown rule set"),
        ({"reward": "money"}, "unknown reward"),
    ],
)
def test_a_bad_argument_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BaronOxxSingle(**arguments)


@pytest.mark.parametrize("action", [4, 9, 10, -1, 0.0, None, "0"])
def test_a_wrong_action_is_named_with_the_legal_ones_and_changes_nothing(action: Any) -> None:
    env, twin = BaronOxxSingle(2), BaronOxxSingle(2)
    env.reset(seed=1)
    twin.reset(seed=1)
    with pytest.raises(
        ValueError, match=r"player_0: action .* legal are the hand slots 0, 1, 2, 3"
    ):
        env.step(action)
    assert data_equivalence(env.step(1), twin.step(1), exact=True)


def test_step_before_reset_and_after_the_end_is_refused() -> None:
    env = BaronOxxSingle(2)
    for call in (lambda: env.step(0), env.action_masks, env.view, env.records, env.render):
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
            call()
    play(env, np.random.default_rng(0), seed=0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="after the end"):
        env.step(0)


def test_a_bot_that_acts_illegally_is_named() -> None:
    class Rogue:
        spec = "rogue"

        def act(self, view: View, rng: np.random.Generator) -> int:
            return 8

    env = BaronOxxSingle(2, 0, (Rogue(),), illegal_action="substitute")
    env.reset(seed=1)
    with pytest.raises(ValueError, match="bot rogue at player_1: action 8 is illegal"):
        env.step(0)


def test_the_finished_match_has_its_records() -> None:
    env = BaronOxxSingle(3, games_per_match=2)
    steps = play(env, np.random.default_rng(0), seed=12)
    records = env.records()
    assert [record["match"]["game"] for record in records] == [1, 2] and records[0]["seed"] == 12
    totals = np.sum([record["scores"] for record in records], axis=0)
    assert totals.tolist() == steps[-1][4]["scores"]
