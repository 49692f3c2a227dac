"""The PettingZoo parallel environment."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from oxx_env import baron_oxx_v0
from oxx_env.envs.match import IllegalAction
from oxx_env.game.observe import OBS, observe
from oxx_env.game.table import Table

RULES = ("base", "color", "positive", "color+positive")
SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 10)


def play(env: Any, rng: np.random.Generator, **reset: Any) -> list[Any]:
    """One match of random legal play: everything `step` returned."""
    steps = [env.reset(**reset)]
    observations = steps[0][0]
    while env.agents:
        actions = {
            agent: int(rng.choice(np.flatnonzero(seen["action_mask"])))
            for agent, seen in observations.items()
        }
        steps.append(env.step(actions))
        observations = steps[-1][0]
    return steps


def same(a: Any, b: Any) -> bool:
    return bool(gymnasium.utils.env_checker.data_equivalence(a, b, exact=True))


@pytest.mark.parametrize("players", [2, 4, 10])
@pytest.mark.parametrize("rules", RULES)
def test_passes_pettingzoos_parallel_api_test(players: int, rules: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(baron_oxx_v0.parallel_env(players, rules, games_per_match=2))


def test_passes_pettingzoos_parallel_seed_test() -> None:
    parallel_seed_test(lambda: baron_oxx_v0.parallel_env(illegal_action="substitute"))


@pytest.mark.parametrize("rules", RULES)
def test_the_same_seed_and_actions_give_the_same_match_to_its_end(rules: str) -> None:
    def match() -> list[Any]:
        env = baron_oxx_v0.parallel_env(5, rules, games_per_match=2)
        rng = np.random.default_rng(1)
        return [*play(env, rng, seed=7), *play(env, rng)]

    first, second = match(), match()
    assert len(first) == len(second) > 60
    assert all(same(a, b) for a, b in zip(first, second, strict=True))


def test_another_seed_gives_another_deal() -> None:
    env = baron_oxx_v0.parallel_env()
    one, two = env.reset(seed=1)[0], env.reset(seed=2)[0]
    assert not np.array_equal(one["player_0"]["observation"], two["player_0"]["observation"])


def test_resets_without_a_seed_differ() -> None:
    env = baron_oxx_v0.parallel_env()
    hands = []
    for _ in range(5):
        env.reset()
        hands.append(tuple(env.view("player_0").hand))
    assert len(set(hands)) > 1


def test_the_seed_gives_the_deal_of_the_table() -> None:
    env = baron_oxx_v0.parallel_env(3, "color")
    env.reset(seed=99)
    table = Table(3, "color")
    table.deal(99)
    assert env.view("player_2").to_dict() == table.view(2).to_dict()


@pytest.mark.parametrize("games", [1, 3])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("players", SIZES)
def test_rewards_sum_to_the_final_points(players: int, rules: str, games: int) -> None:
    totals: dict[str, np.ndarray] = {}
    info: dict[str, Any] = {}
    for reward in ("points", "relative", "win"):
        env = baron_oxx_v0.parallel_env(players, rules, games_per_match=games, reward=reward)
        steps = play(env, np.random.default_rng(players), seed=games)
        totals[reward] = np.array(
            [sum(step[1][agent] for step in steps[1:]) for agent in env.possible_agents]
        )
        info = steps[-1][4]["player_0"]
    scores = np.array(info["scores"], float)
    points = scores if "positive" in rules else -scores
    others = (points.sum() - points) / (players - 1)
    share = [(seat in info["winners"]) / len(info["winners"]) for seat in range(players)]
    np.testing.assert_array_equal(totals["points"], points)
    np.testing.assert_allclose(totals["relative"], points - others, atol=1e-9)
    np.testing.assert_allclose(totals["win"], share)
    assert any(scores)


def test_a_reward_comes_with_the_step_that_caused_it() -> None:
    env = baron_oxx_v0.parallel_env(4, games_per_match=2)
    rng = np.random.default_rng(0)
    observations, _ = env.reset(seed=3)
    before = np.zeros(4)
    while env.agents:
        actions = {
            agent: int(rng.choice(np.flatnonzero(seen["action_mask"])))
            for agent, seen in observations.items()
        }
        observations, rewards, *_ = env.step(actions)
        points = env.match.table.points().astype(float)
        assert [rewards[agent] for agent in env.possible_agents] == (before - points).tolist()
        before = points


@pytest.mark.parametrize("rules", RULES)
def test_the_last_infos_hold_scores_ranks_and_winners_of_the_match(rules: str) -> None:
    env = baron_oxx_v0.parallel_env(4, rules, games_per_match=2)
    steps = play(env, np.random.default_rng(5), seed=5)
    for observations, infos in [(steps[0][0], steps[0][1]), *((s[0], s[4]) for s in steps[1:-1])]:
        assert all(list(info) == ["action_mask"] for info in infos.values())
        for agent, info in infos.items():
            np.testing.assert_array_equal(info["action_mask"], observations[agent]["action_mask"])
    records = env.records()
    assert [record["match"]["game"] for record in records] == [1, 2]
    scores = [sum(record["scores"][seat] for record in records) for seat in range(4)]
    best = max(scores) if "positive" in rules else min(scores)
    winners = [seat for seat in range(4) if scores[seat] == best]
    for info in steps[-1][4].values():
        assert info["scores"] == scores
        assert info["winners"] == winners
        assert [seat for seat in range(4) if info["ranks"][seat] == 1] == winners
        told = (info[key] for key in ("scores", "ranks", "winners"))
        assert all(type(value) is int for values in told for value in values)
    lists = [info["scores"] for info in steps[-1][4].values()]
    assert len({id(values) for values in lists}) == 4


def test_all_terminate_with_the_match_and_nobody_is_truncated() -> None:
    env = baron_oxx_v0.parallel_env(3, games_per_match=2)
    steps = play(env, np.random.default_rng(2), seed=2)
    assert not any(any(step[2].values()) for step in steps[1:-1])
    assert all(steps[-1][2].values()) and list(steps[-1][2]) == env.possible_agents
    assert not any(any(step[3].values()) for step in steps[1:])
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("players", [2, 10])
def test_deciders_may_not_pass_and_all_others_only_pass(players: int, rules: str) -> None:
    env = baron_oxx_v0.parallel_env(players, rules)
    rng = np.random.default_rng(8)
    observations, _ = env.reset(seed=8)
    phases = set()
    while env.agents:
        deciders = env.match.table.deciders()
        phases.add((env.view("player_0").phase, len(deciders) == 1))
        for seat, agent in enumerate(env.possible_agents):
            mask = observations[agent]["action_mask"]
            assert mask.dtype == np.int8 and mask.shape == (10,)
            assert np.flatnonzero(mask).tolist() == env.view(agent).legal
            assert (mask.sum() >= 2 and not mask[9]) if seat in deciders else mask.sum() == mask[9]
        assert deciders
        actions = {
            agent: int(rng.choice(np.flatnonzero(seen["action_mask"])))
            for agent, seen in observations.items()
        }
        observations, *_ = env.step(actions)
    assert ("card", False) in phases and ("row", True) in phases


def test_the_observation_is_that_of_the_view_for_every_seat_also_at_row_choices() -> None:
    env = baron_oxx_v0.parallel_env(6, "color+positive")
    rng = np.random.default_rng(4)
    observations, _ = env.reset(seed=4)
    while env.agents:
        for agent, seen in observations.items():
            np.testing.assert_array_equal(seen["observation"], observe(env.view(agent)))
            assert env.observation_space(agent).contains(seen)
        actions = {
            agent: int(rng.choice(np.flatnonzero(seen["action_mask"])))
            for agent, seen in observations.items()
        }
        observations, *_ = env.step(actions)


def test_observations_already_given_out_do_not_change() -> None:
    env = baron_oxx_v0.parallel_env()
    rng = np.random.default_rng(0)
    steps = play(env, rng, seed=0)
    again = play(env, np.random.default_rng(0), seed=0)
    assert same(steps, again)
    arrays = [array for step in steps for seen in step[0].values() for array in seen.values()]
    assert not any(np.shares_memory(arrays[0], other) for other in arrays[1:])


def test_spaces_are_the_same_objects_each_time_and_of_one_size() -> None:
    small, large = baron_oxx_v0.parallel_env(2), baron_oxx_v0.parallel_env(10, "positive")
    for env in (small, large):
        for agent in env.possible_agents:
            assert env.observation_space(agent) is env.observation_space(agent)
            assert env.action_space(agent) is env.action_space(agent)
        assert env.action_space("player_0") is not env.action_space("player_1")
    assert small.observation_space("player_0") == large.observation_space("player_1")
    assert small.observation_space("player_0")["observation"].shape == (OBS,)


# --- deals set by hand ---------------------------------------------------------------------------


def deal_by_hand(players: int = 2, each: int = 24) -> dict[str, Any]:
    numbers = list(range(1, 111))
    piles = [numbers[seat * each : (seat + 1) * each] for seat in range(players)]
    return {"draw_piles": piles, "rows": numbers[-5:]}


def test_a_deal_can_be_set_by_hand() -> None:
    env = baron_oxx_v0.parallel_env(2)
    env.reset(options=deal_by_hand())
    assert env.view("player_0").hand == [1, 2, 3, 4]
    assert env.view("player_1").hand == [25, 26, 27, 28]
    assert env.view("player_0").rows == [[106], [107], [108], [109], [110]]


def test_a_deal_may_be_given_as_arrays() -> None:
    env = baron_oxx_v0.parallel_env(2)
    deal = {key: np.array(value) for key, value in deal_by_hand().items()}
    env.reset(options=deal)
    assert env.view("player_0").hand == [1, 2, 3, 4]


def test_the_deck_option_is_for_this_match_only() -> None:
    env = baron_oxx_v0.parallel_env(2)
    env.reset(seed=1, options={"deck": "two-color"})
    assert env.view("player_0").deck == "two-color"
    env.reset(seed=1)
    assert env.view("player_0").deck == "balanced"


def test_unknown_options_are_ignored() -> None:
    env = baron_oxx_v0.parallel_env(2)
    env.reset(seed=1, options={"weather": "fine", "deck": None})
    hand = env.view("player_0").hand
    env.reset(seed=1)
    assert env.view("player_0").hand == hand


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": [1, 2, 3, 4, 5]}, "both draw_piles and rows"),
        ({**deal_by_hand(), "rows": [106, 107, 108, 109]}, "rows lists 4 cards"),
        ({**deal_by_hand(), "rows": [1, 107, 108, 109, 110]}, "card 1 is already in draw pile 0"),
        ({**deal_by_hand(), "rows": 5}, "rows must be five numbers, not 5"),
        ({**deal_by_hand(), "rows": "abcde"}, '"a" is not a card number'),
        ({**deal_by_hand(), "draw_piles": [1, 2]}, "draw_piles must be a list of card numbers"),
        ({**deal_by_hand(), "draw_piles": [[1], [2]]}, "draw pile 0 has 1 cards"),
        (deal_by_hand(3, 20), "draw_piles lists 3 piles for 2 players"),
        ({"deck": "marked"}, "marked"),
        ({"deck": 5}, "deck"),
        (["deck"], "options must be a dict"),
    ],
)
def test_a_bad_deal_is_refused(options: Any, message: str) -> None:
    env = baron_oxx_v0.parallel_env(2)
    env.reset(seed=1)
    before = env.view("player_0").to_dict()
    with pytest.raises(ValueError, match=message):
        env.reset(options=options)
    assert env.view("player_0").to_dict() == before


@pytest.mark.parametrize("seed", [-1, 2**64 - 1, 1.5, "1", True])
def test_a_bad_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be"):
        baron_oxx_v0.parallel_env(2).reset(seed=seed)


# --- wrong use -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [baron_oxx_v0.parallel_env, baron_oxx_v0.env])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_players": 1}, "2 to 10"),
        ({"num_players": 11}, "2 to 10"),
        ({"num_players": "four"}, "2 to 10"),
        ({"rules": "colour"}, "base, color, positive, color\\+positive"),
        ({"rules": None}, "unknown rule set None"),
        ({"deck": "marked"}, "balanced"),
        ({"games_per_match": 0}, "games_per_match"),
        ({"reward": "money"}, "unknown reward 'money': choose one of points, relative, win"),
        ({"illegal_action": "punish"}, "choose one of raise, substitute"),
        ({"render_mode": "svg"}, "choose one of human, rgb_array, ansi"),
    ],
)
def test_a_bad_argument_is_refused(make: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({"player_0": 0}, "no action for player_1.*legal for player_1: 0, 1, 2, 3"),
        ({}, "no action for player_0, player_1"),
        ({"player_0": 0, "player_1": 0, "player_2": 0}, "unknown agent 'player_2'"),
        ({"player_0": 0, "player_9": 0}, "unknown agent 'player_9'; the agents are player_0 to"),
        ({"player_0": 0, 1: 0}, "unknown agent 1"),
        ({"player_0": 4, "player_1": 0}, "player_0: action 4 is illegal.*hand slots 0, 1, 2, 3"),
        ({"player_0": 0, "player_1": 9}, "player_1: action 9 is illegal.*hand slots 0, 1, 2, 3"),
        ({"player_0": 10, "player_1": 0}, "player_0: action 10 is not in 0..9; legal"),
        ({"player_0": 0, "player_1": -1}, "player_1: action -1 is not in 0..9"),
        ({"player_0": 0, "player_1": 256}, "player_1: action 256 is not in 0..9"),
        ({"player_0": 1.0, "player_1": 0}, "player_0: action 1.0 is not an integer"),
        ({"player_0": None, "player_1": 0}, "player_0: action None is not an integer"),
        ({"player_0": "0", "player_1": 0}, "player_0: action '0' is not an integer"),
        ({"player_0": np.array([0, 1]), "player_1": 0}, "player_0: action .* is not an integer"),
        ([0, 0], "actions must be a dict"),
    ],
)
def test_wrong_actions_are_named_with_the_legal_ones(actions: Any, message: str) -> None:
    env = baron_oxx_v0.parallel_env(2)
    env.reset(seed=1)
    before = env.match.table.games.tobytes()
    with pytest.raises(IllegalAction, match=message):
        env.step(actions)
    assert env.match.table.games.tobytes() == before and env.match.table.decisions == []


def test_an_illegal_row_is_named_with_the_legal_rows_and_waiting_seats_may_only_pass() -> None:
    env = baron_oxx_v0.parallel_env(4)
    env.reset(seed=1)
    while env.view("player_0").phase == "card":
        env.step({agent: env.view(agent).legal[0] for agent in env.agents})
    (decider,) = env.match.table.deciders()
    legal = ", ".join(map(str, env.match.table.legal(decider)))
    passes = dict.fromkeys(env.agents, 9)
    with pytest.raises(ValueError, match=f"player_{decider}: action 9 .* rows' actions {legal}"):
        env.step(passes)
    waiting = (decider + 1) % 4
    row = env.match.table.legal(decider)[0]
    with pytest.raises(ValueError, match=f"player_{waiting}: action 0 .* only 9 \\(pass\\)"):
        env.step(passes | {f"player_{decider}": row, f"player_{waiting}": 0})


def test_integers_of_numpy_are_actions() -> None:
    env = baron_oxx_v0.parallel_env(2)
    env.reset(seed=1)
    env.step({"player_0": np.int64(1), "player_1": np.array(2)})
    assert env.match.table.decisions == [(0, 1), (1, 2)]


def test_step_before_reset_and_after_the_end_is_refused() -> None:
    env = baron_oxx_v0.parallel_env(2)
    for call in (
        lambda: env.step({"player_0": 0, "player_1": 0}),
        lambda: env.view("player_0"),
        env.state,
        env.records,
        env.render,
    ):
        with pytest.raises(RuntimeError, match="before the first deal: call reset"):
            call()
    play(env, np.random.default_rng(0), seed=0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="after the end of the match: call reset"):
        env.step({"player_0": 0, "player_1": 0})


def test_an_unknown_agent_is_refused_everywhere() -> None:
    env = baron_oxx_v0.parallel_env(2)
    env.reset(seed=1)
    for ask in (env.view, env.observation_space, env.action_space):
        with pytest.raises(ValueError, match="unknown agent 'player_2'"):
            ask("player_2")


# --- substituted actions -------------------------------------------------------------------------


def test_substitute_plays_a_random_legal_action_for_each_illegal_one() -> None:
    env = baron_oxx_v0.parallel_env(4, illegal_action="substitute")
    chosen = set()
    for seed in range(60):
        env.reset(seed=seed)
        env.step({"player_0": 7, "player_1": 200, "player_2": -3, "player_3": 2})
        decisions = dict(env.match.table.decisions[:4])
        assert decisions[3] == 2
        chosen |= {decisions[0], decisions[1], decisions[2]}
    assert chosen == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="not an integer"):
        env.step(dict.fromkeys(env.agents, 0.5))


def test_substitute_is_uniform() -> None:
    env = baron_oxx_v0.parallel_env(2, illegal_action="substitute")
    counts = np.zeros(4)
    for seed in range(800):
        env.reset(seed=seed)
        env.step({"player_0": 9, "player_1": 0})
        counts[env.match.table.decisions[0][1]] += 1
    assert counts.sum() == 800 and abs(counts - 200).max() < 60  # five standard deviations


def test_substitute_is_the_same_for_the_same_seed_and_leaves_legal_play_alone() -> None:
    substituting = baron_oxx_v0.parallel_env(3, games_per_match=2, illegal_action="substitute")
    raising = baron_oxx_v0.parallel_env(3, games_per_match=2)
    assert same(
        play(substituting, np.random.default_rng(1), seed=1),
        play(raising, np.random.default_rng(1), seed=1),
    )

    def sloppy() -> list[tuple[int, int]]:
        substituting.reset(seed=4)
        while substituting.agents:
            substituting.step(dict.fromkeys(substituting.agents, 2))
        return substituting.match.table.decisions

    first = list(sloppy())
    assert first == sloppy()
    # The deals of the match are those of the seed, whoever's actions were substituted.
    raising.reset(seed=4)
    assert substituting.records()[0]["seed"] == 4
    for seat in range(3):
        dealt = raising.view(f"player_{seat}").hand
        assert dealt == sorted(substituting.records()[0]["draw_piles"][seat][:4])


# --- the rest ------------------------------------------------------------------------------------


def test_state_holds_everything_and_has_one_size_for_a_table_size() -> None:
    for players in (2, 7):
        env = baron_oxx_v0.parallel_env(players, "positive")
        observations, _ = env.reset(seed=1)
        state = env.state()
        assert env.state_space.contains(state)
        for seat, agent in enumerate(env.agents):
            part = state[seat * OBS : (seat + 1) * OBS]
            np.testing.assert_array_equal(part, observations[agent]["observation"])
        numbers = state[players * (OBS + 4) :].reshape(players, -1, 7)[:, :, 0] * 110
        left = [[round(float(n)) for n in row if n] for row in numbers]
        play(env, np.random.default_rng(0), seed=1)
        assert left == [pile[4:] for pile in env.records()[0]["draw_piles"]]
        assert env.state_space.contains(env.state())


def test_two_deals_that_differ_only_in_a_draw_pile_differ_in_the_state() -> None:
    env = baron_oxx_v0.parallel_env(2)
    deal = deal_by_hand()
    env.reset(options=deal)
    state, seen = env.state(), env.view("player_0").to_dict()
    pile = deal["draw_piles"][1]
    pile[10], pile[11] = pile[11], pile[10]
    env.reset(options=deal)
    assert not np.array_equal(state, env.state())
    assert seen == env.view("player_0").to_dict()


def test_a_copy_and_a_pickle_play_on_alike() -> None:
    env = baron_oxx_v0.parallel_env(3)
    env.reset(seed=1)
    env.step(dict.fromkeys(env.agents, 0))
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env]
    ends = []
    for twin in twins:
        while twin.agents:
            twin.step({agent: twin.view(agent).legal[0] for agent in twin.agents})
        ends.append((twin.match.table.scores(), twin.records()))
    assert ends[0] == ends[1] == ends[2]


def test_the_ids_are_in_pettingzoos_registry() -> None:
    env = pettingzoo.make("parallel", "oxx/baron-oxx-v0", num_players=3)
    assert isinstance(env, baron_oxx_v0.parallel_env) and len(env.possible_agents) == 3
    assert isinstance(pettingzoo.make("aec", "oxx/baron-oxx-v0"), pettingzoo.AECEnv)
    assert str(env) == "baron_oxx_v0"
