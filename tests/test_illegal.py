"""`illegal_action="terminate"`: an illegal action ends the match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from oxx_env import baron_oxx_v0
from oxx_env.envs.single import BaronOxxSingle
from oxx_env.game.rules import deck_cards
from oxx_env.game.scoring import ranks

RULES = ("base", "color", "positive", "color+positive")


def sums(totals: dict[str, float], rewards: dict[str, float]) -> None:
    for agent, reward in rewards.items():
        totals[agent] += reward


def check_results(
    env: Any, infos: dict[str, Any], totals: list[float], reward: str, before: list[int]
) -> None:
    """Places, points and rewards of a match that ended by seat 1's (and 2's) illegal actions."""
    offenders = infos["player_0"]["illegal"]
    rules, players = env.match.table.rules, env.match.players
    sign = 1 if "positive" in rules else -1
    for info in infos.values():
        scores, winners = info["scores"], info["winners"]
        others = [seat for seat in range(players) if seat not in offenders]
        assert info["ranks"] == ranks(np.array(scores), rules)
        assert [info["ranks"][seat] for seat in others] == [1] * len(others)
        assert [info["ranks"][s] for s in offenders] == [1 + len(others)] * len(offenders)
        assert winners == others
        best = max(sign * before[seat] for seat in others)
        assert {sign * scores[seat] for seat in others} == {best}
        # No legal play could have cost an offender as much.
        taken = {n for pile in env.view("player_0").oxx_piles for n in pile}
        deck = deck_cards(env.match.table.decks[0])
        untaken = sum(sum(card) for n, card in enumerate(deck, 1) if n not in taken)
        assert all(
            sign * scores[seat] == min(sign * p for p in before) - untaken for seat in offenders
        )
    points = sign * np.array(infos["player_0"]["scores"], float)
    wanted = {
        "points": points,
        "relative": points - (points.sum() - points) / (players - 1),
        "win": np.array([(s in winners) / len(winners) for s in range(players)]),
    }
    np.testing.assert_allclose(totals, wanted[reward])


@pytest.mark.parametrize("reward", ["points", "relative", "win"])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("offenders", [{"player_1"}, {"player_1", "player_2"}])
def test_offenders_share_the_last_place_and_the_others_the_first(
    offenders: set[str], rules: str, reward: str
) -> None:
    env = baron_oxx_v0.parallel_env(4, rules, reward=reward, illegal_action="terminate")
    env.reset(seed=1)
    totals = dict.fromkeys(env.agents, 0.0)
    for _ in range(14):
        _, rewards, *_ = env.step({a: env.view(a).legal[-1] for a in env.agents})
        sums(totals, rewards)
    before = env.match.table.scores()
    assert env.agents and len(set(before)) > 1
    actions = {a: 99 if a in offenders else env.view(a).legal[0] for a in env.agents}
    observations, rewards, terminations, truncations, infos = env.step(actions)
    sums(totals, rewards)
    assert all(terminations.values()) and not any(truncations.values()) and env.agents == []
    assert infos["player_3"]["illegal"] == sorted(int(a[-1]) for a in offenders)
    check_results(env, infos, list(totals.values()), reward, before)
    for agent, seen in observations.items():
        assert env.observation_space(agent).contains(seen)
        assert seen["action_mask"].tolist() == [0] * 9 + [1]
    assert env.records() == [] and env.match.table.over
    assert env.step({}) == ({}, {}, {}, {}, {})
    env.reset(seed=2)
    assert len(env.agents) == 4 and env.match.offenders == []


def test_in_a_match_of_several_games_the_rest_of_it_is_charged_too() -> None:
    env = baron_oxx_v0.parallel_env(2, games_per_match=3, illegal_action="terminate")
    env.reset(seed=1)
    *_, infos = env.step({"player_0": 9, "player_1": 0})
    assert infos["player_1"]["scores"] == [3 * 246, 0]  # the heads of the deck, three games
    assert infos["player_1"]["winners"] == [1]


def test_if_all_offend_all_tie() -> None:
    env = baron_oxx_v0.parallel_env(2, reward="win", illegal_action="terminate")
    env.reset(seed=1)
    _, rewards, *_, infos = env.step({"player_0": 9, "player_1": 9})
    assert infos["player_0"]["ranks"] == [1, 1] and infos["player_0"]["illegal"] == [0, 1]
    assert rewards == {"player_0": 0.5, "player_1": 0.5}


@pytest.mark.parametrize("rules", RULES)
def test_in_aec_the_match_ends_with_the_illegal_action(rules: str) -> None:
    env = baron_oxx_v0.env(4, rules, illegal_action="terminate")
    env.reset(seed=1)
    totals = dict.fromkeys(env.agents, 0.0)
    before, infos = [0], {}
    for steps, agent in enumerate(env.agent_iter()):
        _, reward, terminated, _, info = env.last()
        totals[agent] += reward
        if terminated:
            infos[agent] = info
            env.step(None)
        elif steps > 30 and agent == "player_1" and env.view(agent).phase == "row":
            before = env.match.table.scores()
            env.step(0)
        else:
            env.step(env.view(agent).legal[-1])
    assert infos["player_0"]["illegal"] == [1] and len(infos) == 4
    check_results(env, dict(sorted(infos.items())), list(totals.values()), "points", before)


@pytest.mark.parametrize("action", [9, 4, 10, -1, 300])
def test_in_gymnasium_the_learner_is_the_offender(action: int) -> None:
    env = BaronOxxSingle(3, 1, reward="win", illegal_action="terminate")
    env.reset(seed=1)
    env.step(0)
    _, reward, terminated, truncated, info = env.step(action)
    assert terminated and not truncated and reward == 0
    assert info["illegal"] == [1] and info["winners"] == [0, 2] and info["ranks"] == [1, 3, 1]
    env.reset(seed=1)
    _, _, terminated, _, info = env.step(0)
    assert not terminated and "illegal" not in info


def test_legal_play_is_the_same_in_all_three_settings() -> None:
    ends = []
    for illegal_action in ("raise", "substitute", "terminate"):
        env = baron_oxx_v0.parallel_env(3, illegal_action=illegal_action)
        env.reset(seed=5)
        told = []
        while env.agents:
            told.append(env.step({a: env.view(a).legal[0] for a in env.agents}))
        ends.append(told)
    np.testing.assert_equal(ends[0], ends[1])
    np.testing.assert_equal(ends[0], ends[2])


def test_what_is_no_integer_stays_an_error() -> None:
    env = baron_oxx_v0.parallel_env(2, illegal_action="terminate")
    env.reset(seed=1)
    for actions in ({"player_0": 0.5, "player_1": 0}, {"player_0": 0}):
        with pytest.raises(ValueError, match=r"not an integer|no action for"):
            env.step(actions)
    assert env.agents


def test_the_checkers_pass_with_terminate() -> None:
    options = {"illegal_action": "terminate"}
    parallel_api_test(baron_oxx_v0.parallel_env(3, **options))
    parallel_seed_test(lambda: baron_oxx_v0.parallel_env(3, **options))
    api_test(baron_oxx_v0.env(3, **options))
    seed_test(lambda: baron_oxx_v0.env(3, **options))
    check_env(BaronOxxSingle(**options), skip_render_check=True)
