"""The batch of games for stable-baselines3."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import VecMonitor

from oxx_env import cards
from oxx_env.envs.vector import BaronOxxVecEnv
from oxx_env.observe import OBS, observe
from oxx_env.table import Table
from oxx_env.views import View

RULES = ("base", "color", "positive", "color+positive")


def choose(envs: BaronOxxVecEnv, rng: np.random.Generator) -> np.ndarray:
    """A random legal action for each environment."""
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in envs.action_masks()])


def play(envs: BaronOxxVecEnv, steps: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    out: list[Any] = [envs.reset()]
    for _ in range(steps):
        out.append(envs.step(choose(envs, rng)))
    return out


class First:
    """A bot of Python's: the first legal action."""

    def act(self, view: View, rng: np.random.Generator) -> int:
        return view.legal[0]


class Any_:
    """A bot of Python's: any legal action."""

    def act(self, view: View, rng: np.random.Generator) -> int:
        return int(rng.choice(view.legal))


def test_shapes_and_types_are_those_of_the_spaces() -> None:
    envs = BaronOxxVecEnv(6, players=(2, 4), rules=RULES, seed=1)
    observations = envs.reset()
    assert observations.shape == (6, OBS) and observations.dtype == np.float32
    masks = envs.action_masks()
    assert masks.shape == (6, 10) and masks.dtype == np.bool_ and masks.any(axis=1).all()
    observations, rewards, dones, infos = envs.step(masks.argmax(axis=1))
    assert observations.dtype == rewards.dtype == np.float32 and rewards.shape == (6,)
    assert dones.dtype == np.bool_ and len(infos) == 6
    assert all(envs.observation_space.contains(row) for row in observations)


@pytest.mark.parametrize("opponents", [("greedy",), ("random", "greedy"), (Any_(), "greedy")])
def test_the_same_seed_and_actions_give_the_same_matches(opponents: Any) -> None:
    def run() -> list[Any]:
        envs = BaronOxxVecEnv(
            6, (2, 3, 4), RULES, opponents=opponents[:1], games_per_match=2, seed=3
        )
        return [play(envs, 60), play(envs, 5)]

    for first, second in zip(run(), run(), strict=True):
        np.testing.assert_array_equal(first[0], second[0])
        for one, two in zip(first[1:], second[1:], strict=True):
            for a, b in zip(one[:3], two[:3], strict=True):
                np.testing.assert_array_equal(a, b)
            for a, b in zip(one[3], two[3], strict=True):
                for info in (a, b):
                    info.get("episode", {}).pop("t", None)
                np.testing.assert_equal(a, b)


def test_environment_i_starts_with_the_deal_of_seed_plus_i() -> None:
    envs = BaronOxxVecEnv(3, 3, "color", seed=40)
    envs.reset()
    again = BaronOxxVecEnv(3, 3, "color")
    assert again.seed(40) == [40, 41, 42]
    again.reset()
    for index in range(3):
        table = Table(3, "color")
        table.deal(40 + index)
        told = table.view(0).to_dict()
        assert envs.view(index).to_dict() == again.view(index).to_dict() == told
    envs.reset()
    assert envs.view(0).hand != again.view(0).hand


def test_the_environments_go_through_all_combinations() -> None:
    envs = BaronOxxVecEnv(9, (2, 5), ("base", "positive"), ("balanced", "two-color"))
    kinds = list(zip(*(envs.get_attr(name) for name in ("players", "rules", "deck")), strict=True))
    assert len(set(kinds)) == 8 and kinds[8] == kinds[0]
    envs.reset()
    for (players, rules, deck), view in zip(kinds, envs.env_method("view"), strict=True):
        assert (view.players, view.rules, view.deck) == (players, rules, deck)
        assert view.to_dict()["deck"]["cards"] == cards.load_deck(deck).tolist()


@pytest.mark.parametrize("reward", ["points", "relative", "win"])
@pytest.mark.parametrize("opponents", ["greedy", "python"])
def test_rewards_of_an_episode_sum_to_its_result_times_the_scale(
    reward: str, opponents: str
) -> None:
    envs = BaronOxxVecEnv(
        8,
        players=(2, 5),
        rules=RULES,
        opponents=(First(),) if opponents == "python" else (opponents,),
        seat=1,
        games_per_match=2,
        reward=reward,
        reward_scale=0.5,
        seed=2,
    )
    sums, lengths, ended = np.zeros(8), np.zeros(8, int), 0
    sizes, rules = envs.get_attr("players"), envs.get_attr("rules")
    for _, rewards, dones, infos in play(envs, 110)[1:]:
        sums += rewards
        lengths += 1
        for g in np.flatnonzero(dones):
            info = infos[g]
            points = np.array(info["scores"]) * (1 if "positive" in rules[g] else -1)
            wanted = {
                "points": points[1],
                "relative": points[1] - (points.sum() - points[1]) / (sizes[g] - 1),
                "win": (1 in info["winners"]) / len(info["winners"]),
            }
            assert sums[g] == pytest.approx(0.5 * wanted[reward], abs=1e-4)
            assert info["episode"]["r"] == pytest.approx(sums[g], abs=1e-4)
            assert info["episode"]["l"] == lengths[g]
            assert [s for s, rank in enumerate(info["ranks"]) if rank == 1] == info["winners"]
            sums[g], lengths[g] = 0, 0
            ended += 1
    assert ended >= 8


def test_a_finished_match_is_followed_by_a_new_deal() -> None:
    envs = BaronOxxVecEnv(4, seed=5)
    ended = 0
    rng = np.random.default_rng(0)
    envs.reset()
    for _ in range(80):
        observations, _, dones, infos = envs.step(choose(envs, rng))
        for g in range(4):
            np.testing.assert_array_equal(observations[g], observe(envs.view(g)))
            assert bool(infos[g]) == dones[g]
            if dones[g]:
                ended += 1
                view = envs.view(g)
                assert view.phase == "card" and len(view.hand) == 4 and view.scores == [0, 0]
                assert view.to_dict()["match"] == {"game": 1, "of": 1, "points": [0, 0]}
                last = infos[g]["terminal_observation"]
                assert last.shape == (OBS,) and not np.array_equal(last, observations[g])
                assert last[0] == last[1] == 0  # neither card nor row phase
                assert infos[g]["TimeLimit.truncated"] is False
    assert ended >= 4


def test_learners_decide_in_every_step() -> None:
    envs = BaronOxxVecEnv(8, (2, 3, 10), RULES, opponents=("random",), seed=1)
    rng = np.random.default_rng(0)
    envs.reset()
    for _ in range(60):
        masks = envs.action_masks()
        assert (masks.sum(axis=1) >= 2).all() and not masks[:, 9].any()
        for mask, view in zip(masks, envs.env_method("view"), strict=True):
            assert np.flatnonzero(mask).tolist() == view.legal and view.seat in view.to_act
        envs.step(choose(envs, rng))


def test_observations_already_given_out_do_not_change() -> None:
    envs = BaronOxxVecEnv(3, seed=1)
    first = envs.reset()
    kept = first.copy()
    play(envs, 5)
    np.testing.assert_array_equal(first, kept)


def test_each_match_has_its_own_deck_where_a_function_makes_them() -> None:
    envs = BaronOxxVecEnv(
        3, deck=lambda rng: cards.random_deck("balanced", rng), opponents=(First(),), seed=9
    )
    envs.reset()
    seen = {str(view.to_dict()["deck"]["cards"]) for view in envs.env_method("view")}
    assert len(seen) == 3
    table = Table(2, deck=lambda rng: cards.random_deck("balanced", rng))
    table.deal(9)
    assert envs.view(0).to_dict() == table.view(0).to_dict()
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(60):
        *_, dones, _ = envs.step(choose(envs, rng))
        for g in np.flatnonzero(dones):
            ended += 1
            deck = str(envs.view(g).to_dict()["deck"]["cards"])
            assert deck not in seen
            seen.add(deck)
    assert ended >= 3


def test_opponents_see_views_and_not_the_learners_pick() -> None:
    seen: list[View] = []

    class Watcher:
        def act(self, view: View, rng: np.random.Generator) -> int:
            seen.append(view)
            return view.legal[0]

    envs = BaronOxxVecEnv(2, 4, opponents=("random", Watcher()), seat=1, seed=1)
    play(envs, 10)
    assert {view.seat for view in seen} == {2, 3}
    for view in seen:
        others = [seat for seat in range(4) if seat != view.seat]
        assert not view.game["picks"][others].any() and not view.game["hands"][others].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "at least 1"),
        ({"players": 11}, "2 to 10"),
        ({"players": (2, 1)}, "2 to 10"),
        ({"players": ()}, "at least one"),
        ({"rules": ("base", "colour")}, "unknown rule set 'colour'"),
        ({"deck": ("balanced", "marked")}, "marked"),
        ({"opponents": ("clever",)}, "unknown bot"),
        ({"opponents": ("greedy", "greedy")}, "2 opponents for 1 seats"),
        ({"players": (2, 4), "seat": 2}, "seat 2: with 2 players"),
        ({"reward": "money"}, "unknown reward"),
        ({"games_per_match": 0}, "games_per_match"),
        ({"games_per_match": 1.5}, "games_per_match must be an integer"),
        ({"seed": 1.5}, "the seed must be an integer"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_a_bad_argument_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BaronOxxVecEnv(**{"num_envs": 2, **arguments})


def test_an_illegal_action_is_named_with_the_legal_ones_and_changes_nothing() -> None:
    envs = BaronOxxVecEnv(3, seed=1)
    with pytest.raises(RuntimeError, match="call reset"):
        envs.step(np.zeros(3, int))
    envs.reset()
    before = envs._games.tobytes()
    for action in (5, 9, 10, -1):
        with pytest.raises(
            ValueError, match=f"environment 1: player_0: action {action} .* slots 0, 1, 2, 3"
        ):
            envs.step(np.array([0, action, 0]))
    for actions in (np.zeros(2, int), np.zeros(3), np.zeros((3, 2), int)):
        with pytest.raises(ValueError, match="actions must be 3 integers"):
            envs.step(actions)
    assert envs._games.tobytes() == before


def test_substitute_plays_legal_actions_instead() -> None:
    envs = BaronOxxVecEnv(3, illegal_action="substitute", seed=1)
    envs.reset()
    for _ in range(40):
        _, rewards, _, _ = envs.step(np.full(3, 9))
        assert np.isfinite(rewards).all()


def test_masks_are_served_the_way_maskable_ppo_asks_for_them() -> None:
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    envs = BaronOxxVecEnv(4, seed=1)
    envs.reset()
    assert is_masking_supported(envs) and is_masking_supported(VecMonitor(envs))
    np.testing.assert_array_equal(get_action_masks(envs), envs.action_masks())
    assert not envs.has_attr("nonsense") and envs.get_attr("render_mode", [0]) == [None]
    assert envs.env_is_wrapped(VecMonitor) == [False] * 4
    with pytest.raises(AttributeError):
        envs.env_method("nonsense")


def test_maskable_ppo_learns_on_it() -> None:
    import torch
    from sb3_contrib import MaskablePPO

    torch.set_num_threads(1)
    envs = BaronOxxVecEnv(8, (2, 3), RULES, reward="relative", seed=1)
    model = MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, seed=0)
    model.learn(512)
    assert model.num_timesteps == 512 and len(model.ep_info_buffer) > 0
    observations = envs.reset()
    actions, _ = model.predict(observations, action_masks=envs.action_masks())
    assert envs.action_masks()[np.arange(8), actions].all()


def test_nothing_else_needs_torch() -> None:
    code = (
        "import sys, gymnasium, oxx_env; from oxx_env import baron_oxx_v0, envs; "
        "baron_oxx_v0.env().reset(); gymnasium.make('oxx_env/BaronOxx-v0').reset(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'stable_baselines3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
