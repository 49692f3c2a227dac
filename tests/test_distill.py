"""Learning from search: the data set is repeatable, and its targets say what the search said."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from oxx_env.game.engine import PENDING, masks
from oxx_env.game.rules import ACTIONS, RULE_SETS
from oxx_env.policy.checkpoint import load_checkpoint
from oxx_env.policy.network import OxxNetwork
from training.decisions import Decisions
from training.distill import (
    Config,
    generate,
    imitate,
    judge,
    load_held,
    load_part,
    main,
    new_network,
    targets,
)
from training.learning import Diverged

SMALL = Config(
    part=3000, determinisations=4, horizon=2, players=(2, 5), random_decks=3, decks=("balanced",)
)


@pytest.fixture(scope="module")
def data() -> Decisions:
    return generate(SMALL, 0)


def test_the_same_options_give_the_same_data(data: Decisions) -> None:
    again = generate(SMALL, 0)
    assert data.games.tobytes() == again.games.tobytes()
    np.testing.assert_array_equal(data.values, again.values)
    assert generate(SMALL, 1).games.tobytes() != data.games.tobytes()


def test_the_first_weights_follow_from_the_seed() -> None:
    one, same = (new_network(SMALL).weights() for _ in range(2))
    other = new_network(dataclasses.replace(SMALL, seed=SMALL.seed + 1)).weights()
    assert one.tobytes() == same.tobytes() != other.tobytes()


def test_exactly_the_legal_actions_have_a_value(data: Decisions) -> None:
    n = len(data.seats)
    who = np.zeros(n, PENDING)
    who["game"], who["seat"] = np.arange(n), data.seats
    legal = np.zeros((n, ACTIONS), np.int8)
    masks(data.games, data.decks, who, n, legal)
    np.testing.assert_array_equal(np.isfinite(data.values), legal == 1)
    assert (legal.sum(axis=1) >= 2).all()


def test_all_table_sizes_rule_sets_and_phases_occur(data: Decisions) -> None:
    assert set(data.games["players"].tolist()) == {2, 5}
    assert set(data.games["rules"].tolist()) == set(range(len(RULE_SETS)))
    assert set(data.games["phase"].tolist()) == {0, 1}
    assert len(set(data.games["round"].tolist())) > 10


def test_targets_prefer_the_better_action_by_the_temperature(data: Decisions) -> None:
    _, policy, value = targets(data, temperature=0.5, reward_scale=0.1)
    np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-5)
    best = data.values.argmax(axis=1)
    for i in range(50):
        for action in np.flatnonzero(np.isfinite(data.values[i])):
            gap = data.values[i, best[i]] - data.values[i, action]
            ratio = policy[i, action] / policy[i, best[i]]
            assert ratio == pytest.approx(np.exp(-gap / 0.5), rel=1e-4, abs=1e-12)
    # In `base` nobody's relative points are better than the best action's before a round is over.
    assert np.isfinite(value).all() and np.abs(value).max() < 10


def test_parts_on_disk_are_used_again_and_never_for_other_options(tmp_path: Path) -> None:
    small = dataclasses.replace(SMALL, run_dir=tmp_path, part=300)
    first = load_part(small, 0)
    second = load_part(small, 0)
    assert first.games.tobytes() == second.games.tobytes()
    assert first.seconds == second.seconds > 0  # a later sitting knows how long it took
    with pytest.raises(ValueError, match="made with another horizon"):
        load_part(dataclasses.replace(small, horizon=3), 0)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    small = dataclasses.replace(SMALL, run_dir=tmp_path, part=300)
    load_part(small, 0)
    path = tmp_path / "data/part-0000.npz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"part-0000\.npz is no part of a data set"):
        load_part(small, 0)


def test_a_part_whose_games_contradict_themselves_is_refused(tmp_path: Path) -> None:
    small = dataclasses.replace(SMALL, part=300, run_dir=tmp_path)
    load_part(small, 0)
    path = tmp_path / "data/part-0000.npz"
    with np.load(path) as file:
        sound = {name: file[name] for name in file.files}
    games = sound["games"].copy()
    games["row_sums"][7, 3] += np.uint64(1)
    for spoiled, message in [
        ({"games": games}, "game 7: row_sums"),
        ({"seats": sound["seats"] + np.uint8(20)}, "game 0: seat 2[0-9] has nothing to decide"),
        ({"values": sound["values"][:, :3]}, "values is"),
    ]:
        np.savez(path, **{**sound, **spoiled})
        with pytest.raises(ValueError, match=f"no part of a data set.*{message}"):
            load_part(small, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--decisions 0", "decisions is at least 1, not 0"),
        ("--players 2 11", "players is from 2 to 10, not 11"),
        ("--rules", "rules: at least one"),
        ("--rules poker", "unknown rule set 'poker'"),
        ("--decks nonesuch", "no deck of this name"),
        ("--temperature 0", "temperature is above 0"),
        ("--hidden 20", "hidden is a multiple of 8, not 20"),
        ("--hidden 16 --init quick", "quick has layers of width 64, not 16: add --hidden 64"),
        ("--init nonesuch", "no checkpoint folder 'nonesuch'"),
    ],
)
def test_a_wrong_option_is_explained_before_the_search_begins(
    tmp_path: Path, capsys: Any, options: str, message: str
) -> None:
    folder = tmp_path / "run"
    assert main(["--run-dir", str(folder), *options.split()]) == 2
    assert message in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.slow
def test_a_network_learns_from_search_and_becomes_a_checkpoint(tmp_path: Path) -> None:
    options = "--decisions 3000 --part 1500 --determinisations 6 --horizon 3 --hidden 16"
    options += " --players 2 --rules base --random-decks 0 --decks balanced --epochs 8"
    options += " --held-decisions 800 --held-determinisations 30"
    assert main([*options.split(), "--run-dir", str(tmp_path), "--minibatch", "128"]) == 0
    _, config = load_checkpoint(tmp_path / "checkpoint")
    assert config["preset"] == "warm"
    held_out = load_held(dataclasses.replace(Config(), **_options(config, tmp_path)))
    untrained = judge(OxxNetwork(16), targets(held_out, 0.8, 0.1), held_out)
    assert config["held_out"]["regret"] < 0.8 * untrained["regret"]


def _options(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in config["training"].items()}
    return {**values, "run_dir": folder}


@pytest.mark.slow
def test_the_search_of_a_policy_teaches_too(tmp_path: Path) -> None:
    arguments = ["--run-dir", str(tmp_path), "--teacher", "quick", "--init", "quick"]
    arguments += ["--decisions", "300", "--part", "300", "--determinisations", "1"]
    arguments += ["--held-decisions", "100", "--held-determinisations", "1", "--epochs", "1"]
    arguments += ["--random-decks", "2", "--players", "2", "--minibatch", "100"]
    assert main(arguments) == 0
    _, config = load_checkpoint(tmp_path / "checkpoint")
    assert "search guided by the policy" in config["by"]
    assert main([*arguments, "--teacher", "apprentice"]) == 2  # its data would be another's


def test_steps_that_are_too_long_are_told(data: Decisions) -> None:
    config = dataclasses.replace(SMALL, learning_rate=1e12, hidden=16, minibatch=1000, epochs=2)
    with pytest.raises(Diverged, match=r"diverged after [\d,]+ decisions: .* no longer finite"):
        imitate(new_network(config), config, [data], data, progress=False)
