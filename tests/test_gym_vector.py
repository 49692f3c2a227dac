"""Gymnasium's VectorEnv: many matches at once, without stable-baselines3."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import oxx_env  # noqa: F401  (registers the id)
from oxx_env.envs.gym_vector import BaronOxxVectorEnv
from oxx_env.envs.single import BaronOxxSingle
from oxx_env.game.observe import OBS
from oxx_env.game.views import View


def first(infos: dict[str, Any]) -> Any:
    return infos["action_mask"].argmax(axis=1)


class First:
    """The first legal action: its games depend on no random stream."""

    def act(self, view: View, rng: np.random.Generator) -> int:
        return view.legal[0]


def test_make_vec_gives_it_without_a_warning_and_without_stable_baselines3() -> None:
    code = (
        "import sys, warnings; warnings.simplefilter('error'); import gymnasium, oxx_env; "
        "envs = gymnasium.make_vec('oxx_env/BaronOxx-v0', num_envs=64, num_players=3); "
        "obs, infos = envs.reset(seed=1); "
        "obs, *_ = envs.step(infos['action_mask'].argmax(axis=1)); "
        "assert obs.shape == (64, 647) and envs.num_envs == 64; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'stable_baselines3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_it_gives_lies_in_its_spaces() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = gymnasium.make_vec("oxx_env/BaronOxx-v0", num_envs=4, rules=("base", "positive"))
    assert isinstance(envs, BaronOxxVectorEnv) and isinstance(envs, VectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, infos = envs.reset(seed=7)
    assert envs.observation_space.contains(obs) and obs.shape == (4, OBS)
    assert envs.single_observation_space.contains(obs[0])
    obs, rewards, terminations, truncations, infos = envs.step(first(infos))
    assert envs.observation_space.contains(obs) and rewards.dtype == np.float64
    assert terminations.dtype == truncations.dtype == np.bool_ and rewards.shape == (4,)
    assert envs.action_space.contains(envs.action_space.sample())
    np.testing.assert_array_equal(infos["action_mask"].astype(bool), envs.action_masks())
    assert infos["_action_mask"].all() and [envs.view(g).rules for g in (0, 1)] == [
        "base",
        "positive",
    ]
    envs.close()


def test_it_tells_what_gymnasiums_own_vector_environment_tells() -> None:
    """Until the first matches end: from then on the two draw other deals."""
    options: dict[str, Any] = {"num_players": 3, "opponents": (First(),), "seat": 1}
    envs = BaronOxxVectorEnv(3, **options)
    plain = SyncVectorEnv(
        [lambda: BaronOxxSingle(**options)] * 3, autoreset_mode=AutoresetMode.SAME_STEP
    )
    told, wanted = envs.reset(seed=11), plain.reset(seed=11)
    ended = False
    while not ended:
        np.testing.assert_equal(told, wanted)
        actions = first(told[-1])
        told, wanted = envs.step(actions), plain.step(actions)
        ended = told[2].any()
    over = told[2]
    np.testing.assert_equal(told[1:4], wanted[1:4])
    np.testing.assert_equal(told[0][~over], wanted[0][~over])
    assert set(told[4]) == set(wanted[4])
    for key in ("final_obs", "_final_obs", "_final_info"):
        np.testing.assert_equal(list(told[4][key]), list(wanted[4][key]))
    mine, others = told[4]["final_info"], wanted[4]["final_info"]
    assert set(mine) == set(others)
    for key in mine:
        assert mine[key].dtype == others[key].dtype and mine[key].shape == others[key].shape
        np.testing.assert_equal(list(mine[key]), list(others[key]))


def test_the_same_seed_gives_the_same_matches_and_seeds_may_be_a_list() -> None:
    def run(seed: Any) -> list[Any]:
        envs = BaronOxxVectorEnv(3, opponents=("random",))
        told: list[Any] = [envs.reset(seed=seed)]
        for _ in range(45):
            told.append(envs.step(first(told[-1][-1])))
            ends = told[-1][-1]
            if "final_obs" in ends:  # numpy compares no arrays of arrays
                ends["final_obs"] = list(ends["final_obs"])
        return [*told, envs.reset()]

    np.testing.assert_equal(run(5), run([5, 6, 7]))
    envs = BaronOxxVectorEnv(3)
    one, two = envs.reset(seed=[5, None, 7])[0], envs.reset(seed=[5, None, 7])[0]
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(envs.reset()[0], one)
    for seed in ([1, 2], "abc", -1, 1.5, [1, 2, -3], 2**64 - 3):
        with pytest.raises(ValueError, match="seed"):
            envs.reset(seed=seed)


def test_wrong_use_is_told_and_changes_nothing() -> None:
    envs = BaronOxxVectorEnv(2)
    for call in (lambda: envs.step(np.zeros(2, int)), envs.action_masks, lambda: envs.view(0)):
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
            call()
    obs, _ = envs.reset(seed=1)
    with pytest.raises(ValueError, match="environment 1: player_0: action 7 is illegal"):
        envs.step(np.array([0, 7]))
    with pytest.raises(ValueError, match="actions must be 2 integers"):
        envs.step(np.zeros(3, int))
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ValueError, match="position: a batch deals all its games by seed"):
        envs.reset(options={"position": "2p | rows 1 2 3 4 5 | hand 6 7 8 9"})
    np.testing.assert_array_equal(obs, BaronOxxVectorEnv(2).reset(seed=1, options={"x": 1})[0])
    terminating = BaronOxxVectorEnv(2, illegal_action="terminate")
    terminating.reset(seed=1)
    *_, infos = terminating.step(np.array([0, 7]))
    assert infos["final_info"]["illegal"].tolist() == [None, [0]]


def test_it_renders_each_table() -> None:
    pytest.importorskip("PIL")
    envs = gymnasium.make_vec("oxx_env/BaronOxx-v0", num_envs=2, render_mode="rgb_array")
    envs.reset(seed=1)
    frames = envs.render()
    assert [frame.shape for frame in frames] == [(700, 1000, 3)] * 2
