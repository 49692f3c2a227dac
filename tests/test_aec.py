"""The PettingZoo AEC environment."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from pettingzoo.test import api_test, render_test, seed_test
from pettingzoo.test.state_test import state_test

from oxx_env import baron_oxx_v0
from oxx_env.game.observe import observe

RULES = ("base", "color", "positive", "color+positive")


def random_action(env: Any, rng: np.random.Generator) -> int:
    mask = env.observe(env.agent_selection)["action_mask"]
    return int(rng.choice(np.flatnonzero(mask)))


@pytest.mark.parametrize("players", [2, 4, 10])
@pytest.mark.parametrize("rules", RULES)
def test_passes_pettingzoos_api_test(players: int, rules: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning)
        # Its two standing remarks on observations that are dicts with a mask.
        warnings.filterwarnings("ignore", message="Observation is not a NumPy array")
        warnings.filterwarnings("ignore", message="Observation space for each agent probably")
        api_test(baron_oxx_v0.env(players, rules))


@pytest.mark.parametrize("rules", RULES)
def test_passes_pettingzoos_seed_test(rules: str) -> None:
    seed_test(lambda: baron_oxx_v0.env(4, rules))


def test_passes_pettingzoos_state_test() -> None:
    state_test(
        baron_oxx_v0.env(illegal_action="substitute"),
        baron_oxx_v0.parallel_env(),
    )


@pytest.mark.slow
def test_passes_pettingzoos_render_test(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    render_test(baron_oxx_v0.env)


@pytest.mark.parametrize("games", [1, 2])
@pytest.mark.parametrize("players", [2, 3, 4, 7, 10])
@pytest.mark.parametrize("rules", RULES)
def test_the_same_deal_and_choices_give_the_same_game_as_in_parallel(
    players: int, rules: str, games: int
) -> None:
    rng = np.random.default_rng(3)
    aec = baron_oxx_v0.env(players, rules, games_per_match=games)
    parallel = baron_oxx_v0.parallel_env(players, rules, games_per_match=games)
    aec.reset(seed=11)
    parallel.reset(seed=11)
    sums = dict.fromkeys(parallel.possible_agents, 0.0)
    while parallel.agents:
        actions = dict.fromkeys(parallel.agents, 9)
        deciders = [parallel.agents[seat] for seat in parallel.match.table.deciders()]
        for agent in deciders:
            assert aec.agent_selection == agent
            actions[agent] = random_action(aec, rng)
            aec.step(actions[agent])
        seen, rewards, terminated, _, infos = parallel.step(actions)
        assert aec.match.table.games.tobytes() == parallel.match.table.games.tobytes()
        assert aec.rewards == rewards
        assert aec.terminations == terminated
        np.testing.assert_equal(aec.infos, infos)
        for agent, observation in seen.items():
            np.testing.assert_equal(aec.observe(agent), observation)
            sums[agent] += rewards[agent]
    assert aec.records() == parallel.records()
    scores = infos["player_0"]["scores"]
    sign = 1 if "positive" in rules else -1
    assert [sums[agent] for agent in parallel.possible_agents] == [sign * s for s in scores]


@pytest.mark.parametrize("rules", RULES)
def test_the_rewards_of_last_sum_to_the_final_points(rules: str) -> None:
    rng = np.random.default_rng(0)
    env = baron_oxx_v0.env(4, rules, games_per_match=2)
    env.reset(seed=2)
    sums = dict.fromkeys(env.possible_agents, 0.0)
    scores: list[int] = []
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        assert not truncated
        sums[agent] += reward
        if terminated:
            scores = info["scores"]
        env.step(None if terminated else random_action(env, rng))
    assert env.agents == []
    sign = 1 if "positive" in rules else -1
    assert list(sums.values()) == [sign * score for score in scores]
    assert any(scores)


@pytest.mark.parametrize("rules", RULES)
def test_cards_are_picked_by_seat_and_rows_chosen_by_card_and_nobody_passes(rules: str) -> None:
    rng = np.random.default_rng(6)
    env = baron_oxx_v0.env(5, rules)
    env.reset(seed=6)
    picked: list[int] = []
    placed: list[int] = []
    rows, running = 0, -1
    while not any(env.terminations.values()):
        seat = env.possible_agents.index(env.agent_selection)
        view = env.view(env.agent_selection)
        mask = env.observe(env.agent_selection)["action_mask"]
        assert mask.sum() >= 2 and not mask[9]
        if view.game["round"] != running:
            running, picked, placed = view.game["round"], [], []
        if view.phase == "card":
            assert not placed and all(seat > before for before in picked)
            picked.append(seat)
        else:
            rows += 1
            assert view.revealed[0] == [seat, view.card]
            assert all(view.card > before for before in placed)
            placed.append(view.card)
            for other in env.agents:
                if other != env.agent_selection:
                    waiting = env.observe(other)["action_mask"]
                    assert waiting.tolist() == [0] * 9 + [1]
        env.step(random_action(env, rng))
    assert rows > 5


@pytest.mark.parametrize("players", [2, 4, 10])
def test_a_pick_shows_to_nobody_before_all_have_picked(players: int) -> None:
    """Whatever the seats before picked, those after see the same, and so do those before."""

    def play(slots: list[int]) -> list[Any]:
        env = baron_oxx_v0.env(players)
        env.reset(seed=4)
        seen: list[Any] = []
        for seat, slot in enumerate(slots[:-1]):
            env.step(slot)
            for other, agent in enumerate(env.agents):
                if other != seat:
                    observation = env.observe(agent)
                    view = env.view(agent)
                    np.testing.assert_array_equal(observation["observation"], observe(view))
                    seen.append((observation, view.to_dict(), view.games.tobytes(), other))
        return seen

    first = play([0] * players)
    for picks in ([3] * players, [1, 2] * (players // 2)):
        for (seen, told, record, seat), (other, other_told, other_record, _) in zip(
            first, play(picks), strict=True
        ):
            np.testing.assert_equal(seen, other)
            assert told == other_told
            if seat == players - 1:  # has not picked: knows nothing at all of the picks
                assert record == other_record


def test_a_seat_that_has_picked_may_only_pass() -> None:
    env = baron_oxx_v0.env(3)
    env.reset(seed=1)
    env.step(2)
    assert np.flatnonzero(env.observe("player_0")["action_mask"]).tolist() == [9]
    assert np.flatnonzero(env.observe("player_1")["action_mask"]).tolist() == [0, 1, 2, 3]
    assert len(env.view("player_0").hand) == 4  # played cards stay in hand until the reveal


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (9, "player_1: action 9 is illegal; legal are the hand slots 0, 1, 2, 3"),
        (5, "player_1: action 5 is illegal"),
        (10, "player_1: action 10 is not in 0..9"),
        (-1, "player_1: action -1 is not in 0..9"),
        (None, "player_1: action None is not an integer"),
        (0.0, "player_1: action 0.0 is not an integer"),
    ],
)
def test_wrong_actions_are_named_with_the_legal_ones(action: Any, message: str) -> None:
    env = baron_oxx_v0.env(2)
    env.reset(seed=1)
    env.step(0)
    before = env.match.table.games.tobytes()
    with pytest.raises(ValueError, match=message):
        env.step(action)
    assert env.match.table.games.tobytes() == before and env.agent_selection == "player_1"


def test_use_before_reset_and_after_the_end_is_refused() -> None:
    env = baron_oxx_v0.env(2)
    for call in (lambda: env.step(0), env.last, env.agent_iter, lambda: env.observe("player_0")):
        with pytest.raises(RuntimeError, match="before the first deal: call reset"):
            call()
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    while not env.terminations["player_0"]:
        env.step(random_action(env, rng))
    with pytest.raises(ValueError, match="only valid action is None"):
        env.step(0)
    env.step(None)
    env.step(None)
    with pytest.raises(gymnasium.error.ResetNeeded, match="after the end of the match"):
        env.step(None)


def test_an_unknown_agent_is_refused() -> None:
    env = baron_oxx_v0.env(2)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="unknown agent 'player_7'; the agents are player_0 to"):
        env.observe("player_7")


def test_substitute_replaces_an_illegal_action() -> None:
    env = baron_oxx_v0.env(2, illegal_action="substitute")
    env.reset(seed=1)
    env.step(9)
    ((seat, action),) = env.match.table.decisions
    assert seat == 0 and 0 <= action < 4


@pytest.mark.parametrize("make", [baron_oxx_v0.env, baron_oxx_v0.parallel_env])
def test_ansi_is_text_and_rgb_array_is_pixels(make: Any) -> None:
    env = make(render_mode="ansi")
    env.reset(seed=1)
    assert isinstance(env.render(), str)
    for number in env.view("player_0").hand:
        assert str(number) in env.render()
    pytest.importorskip("PIL")
    env = make(render_mode="rgb_array")
    env.reset(seed=1)
    pixels = env.render()
    assert pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3
    env.close()


def test_rendering_without_a_mode_says_so() -> None:
    env = baron_oxx_v0.env()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
