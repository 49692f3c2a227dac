"""Improvement by all actions: the loss says what it should, and a stopped run ends the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

import torch

from oxx_env import bots
from oxx_env.bots.search import PolicySearch
from oxx_env.game.engine import PENDING, masks
from oxx_env.game.rules import ACTIONS, RULE_SETS
from oxx_env.policy.checkpoint import (
    checksum,
    load_checkpoint,
    load_play_out,
    load_rollout_net,
    save_rollout_net,
)
from oxx_env.policy.forward import hidden_of
from training import decisions, improve
from training.decisions import Decisions, read_part, self_play, write_part
from training.improve import Config, Learner, Run, improvement_loss, main, recovered, weaker
from training.learning import Stopped
from training.strength import deck_groups

TINY = Config(
    init="quick",
    rival="quick",
    iterations=2,
    decisions=400,
    part=200,
    deals=1,
    players=(2, 3),
    random_decks=2,
    held_decisions=200,
    passes=2,
    minibatch=100,
    gate_players=(2,),
    gate_games=4,
    workers=1,
)


@pytest.fixture(scope="module", autouse=True)
def few_games() -> Iterator[None]:
    """Fewer games side by side than in earnest, less far apart; no pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "GAMES", 64)
        patch.setattr(decisions, "APART", 10)
        patch.setattr(improve, "draw", lambda *_: None)
        yield


@pytest.fixture(scope="module")
def data() -> Decisions:
    space = replace(TINY, players=(2, 5)).space
    thinker = PolicySearch("quick", "2").even_values
    return self_play(space, load_checkpoint("quick")[0], thinker, 3000, np.random.default_rng(1))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that was never stopped."""
    run = Run(replace(TINY, run_dir=tmp_path_factory.mktemp("whole") / "run"), "")
    run.go()
    return run


def same(one: Run, other: Run) -> bool:
    """Do two runs have the same data, weights and figures, but for the time they took?"""
    for path in sorted((one.folder / "data").iterdir()):
        with np.load(path) as a, np.load(other.folder / "data" / path.name) as b:
            if any(a[name].tobytes() != b[name].tobytes() for name in a.files if name != "seconds"):
                return False
    rows = [[{**row, "seconds": 0} for row in run.rows] for run in (one, other)]
    return rows[0] == rows[1] and one.weights(2).tobytes() == other.weights(2).tobytes()


# --- the loss -----------------------------------------------------------------------------------


def test_the_loss_and_its_gradient_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(1)
    logits, prior, values = rng.normal(size=(3, 4, 5))
    legal = np.ones((4, 5), bool)
    legal[0, 2] = legal[1, :3] = False
    values[~legal] = -np.inf
    tau = 0.3

    def share(x: Any) -> Any:
        weights = np.where(legal, np.exp(x), 0)
        return weights / weights.sum(axis=1, keepdims=True)

    p, q, known = share(logits), share(prior), np.where(legal, values, 0)
    ratio = np.where(legal, np.log(np.where(legal, p / np.where(legal, q, 1), 1)), 0)
    gain, kl = ((p - q) * known).sum(axis=1).mean(), (p * ratio).sum(axis=1).mean()
    score = tau * ratio - known  # of a logit: p (score - mean of score)
    gradient = p * (score - (p * score).sum(axis=1, keepdims=True)) / len(p)

    tensor = torch.tensor(logits, requires_grad=True)
    rest = (torch.from_numpy(a) for a in (prior, values, legal))
    loss = improvement_loss(tensor, *rest, tau)
    loss.total.backward()
    np.testing.assert_allclose(float(loss.gain.detach()), gain, rtol=1e-9)
    np.testing.assert_allclose(float(loss.kl.detach()), kl, rtol=1e-9)
    np.testing.assert_allclose(float(loss.total.detach()), tau * kl - gain, rtol=1e-9)
    assert tensor.grad is not None
    np.testing.assert_allclose(tensor.grad.numpy(), gradient, atol=1e-12)


def test_the_best_policy_is_the_prior_tilted_by_the_values() -> None:
    prior, values = torch.tensor([[0.2, -1.0, 0.5]]), torch.tensor([[1.0, 3.0, 2.0]])
    best = (prior + values / 0.7).requires_grad_()
    improvement_loss(best, prior, values, torch.ones(1, 3, dtype=torch.bool), 0.7).total.backward()
    assert best.grad is not None
    np.testing.assert_allclose(best.grad.numpy(), 0, atol=1e-6)


# --- the data -----------------------------------------------------------------------------------


def test_exactly_the_legal_actions_of_a_decision_have_a_value(data: Decisions) -> None:
    who = np.zeros(len(data.seats), PENDING)
    who["game"], who["seat"] = np.arange(len(who)), data.seats
    legal = np.zeros((len(who), ACTIONS), np.int8)
    masks(data.games, data.decks, who, len(who), legal)
    np.testing.assert_array_equal(np.isfinite(data.values), legal == 1)
    assert (legal.sum(axis=1) >= 2).all()


def test_the_whole_space_of_games_occurs(data: Decisions) -> None:
    assert set(data.games["players"].tolist()) == {2, 5}
    assert set(data.games["rules"].tolist()) == set(range(len(RULE_SETS)))
    assert set(data.games["phase"].tolist()) == {0, 1}
    assert len(set(data.games["round"].tolist())) > 10
    assert set(data.games["match_game"][data.games["match_games"] == 3].tolist()) == {1, 2, 3}
    assert len(set(data.games["deck"].tolist())) == 2


def test_shares_left_out_are_those_of_the_champions_training() -> None:
    space = replace(Config(), players=(2, 4, 10), rules=("base", "color")).space
    assert space.player_shares == (12, 6, 2)
    assert space.rule_shares == (3, 1)


def test_a_part_that_is_no_part_or_of_something_else_is_refused(
    data: Decisions, tmp_path: Path
) -> None:
    path = tmp_path / "part.npz"
    write_part(path, data, {"deals": 2, "policy": "a"})
    again = read_part(path, {"deals": 2, "policy": "a"})
    assert again.games.tobytes() == data.games.tobytes()
    np.testing.assert_array_equal(again.values, data.values)
    with pytest.raises(ValueError, match=r"part\.npz was made with another deals, policy: remove"):
        read_part(path, {"deals": 3, "policy": "b"})
    good = path.read_bytes()
    path.write_bytes(good[:-200])
    with pytest.raises(ValueError, match=r"part\.npz is no part of a data set"):
        read_part(path, {"deals": 2, "policy": "a"})
    path.write_bytes(good[:5000] + bytes(100) + good[5100:])
    with pytest.raises(ValueError, match=r"part\.npz is no part of a data set"):
        read_part(path, {"deals": 2, "policy": "a"})


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("games", lambda a: a["hand_sizes"].fill(40), "game 0: hand_sizes"),
        ("seats", lambda a: a.fill(9), "seat 9 has nothing to decide"),
        ("values", lambda a: a.fill(0), "values are not finite for exactly the legal actions"),
        ("decks", lambda a: a["fits"].fill(0), "deck 0 contradicts itself"),
    ],
)
def test_a_forged_part_never_reaches_compiled_code(
    data: Decisions, tmp_path: Path, field: str, change: Any, message: str
) -> None:
    forged = replace(data, **{field: getattr(data, field).copy()})
    change(getattr(forged, field))
    write_part(tmp_path / "part.npz", forged, {})
    with pytest.raises(ValueError, match=message):
        read_part(tmp_path / "part.npz", {})


# --- a run --------------------------------------------------------------------------------------


def test_two_threads_make_what_one_makes(whole: Run, tmp_path: Path) -> None:
    run = Run(replace(TINY, run_dir=tmp_path, workers=2), "")
    run.go()
    assert same(whole, run)


class Killed(BaseException):
    """Nothing is written after it."""


def breaking(function: Callable[..., Any], calls: int, error: BaseException) -> Callable[..., Any]:
    """The function, which raises an error instead of its call number `calls`."""
    left = [calls]

    def call(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise error
        return function(*arguments, **named)

    return call


@pytest.mark.parametrize(
    ("place", "name", "calls"),
    [(improve, "write_part", 5), (Learner, "_prepared", 7), (improve, "duel", 2)],
    ids=["in the data", "in learning", "in the games"],
)
def test_a_killed_run_goes_on_and_ends_the_same(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, calls: int
) -> None:
    monkeypatch.setattr(improve, "SAVE_EVERY", 1)
    config = replace(TINY, run_dir=tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(place, name, breaking(getattr(place, name), calls, Killed()))
        Run(config, "").go()
    run = Run(config, "")
    learned: list[int] = []
    learn = Learner._learn
    monkeypatch.setattr(
        Learner, "_learn", lambda self, *rest: (learned.append(self.done), learn(self, *rest))
    )
    before = len(list((tmp_path / "data").iterdir()))
    run.go()
    assert same(whole, run)
    if name == "_prepared":  # of the second iteration: two parts were learned from before
        assert before == 5 and learned == [2, 3]


def test_a_run_that_is_asked_to_stop_in_learning_saves_where_it_is(
    whole: Run, tmp_path: Path
) -> None:
    config = replace(TINY, run_dir=tmp_path)
    run = Run(config, "")
    prepared = Learner._prepared

    def stop(learner: Learner, number: int) -> Any:
        run.stop.set()
        return prepared(learner, number)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Learner, "_prepared", stop)
        run.go()
    with np.load(tmp_path / "learner.npz", allow_pickle=False) as state:
        assert state["at"].tolist() == [1, 0, 1]  # one part of the first phase
    again = Run(config, "")
    again.go()
    assert same(whole, again)


def test_more_iterations_may_be_asked_for_and_nothing_else(whole: Run, tmp_path: Path) -> None:
    config = replace(TINY, run_dir=tmp_path, iterations=1)
    Run(config, "").go()
    with pytest.raises(ValueError, match=r"was begun with deals 1, not 2; tau 0\.3, not 0\.1"):
        Run(replace(config, deals=2, tau=0.1), "")
    run = Run(replace(config, iterations=2), "")
    run.go()
    assert same(whole, run)


def test_a_wider_network_imitates_the_policy_first(whole: Run) -> None:
    config = replace(TINY, hidden=16, imitation_passes=8, imitation_learning_rate=2e-2, tau=100.0)
    start = whole.init
    learner = Learner(config, 1, lambda number: whole.load(1, number), 2, start, start)
    assert [phase.name for phase in learner.phases] == ["imitate", "improve"]
    told: list[float] = []
    learner.run(lambda: told.append(learner.sums[1]))
    assert hidden_of(len(learner.net.weights())) == 16
    # Mean divergence from the policy in the first pass, and in the last.
    assert told[1] > 1.4 * told[15] > 0


def test_certainly_weaker_weights_are_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = {"last_2p": {"win_share": 0.4, "ci95": [0.3, 0.49]}}
    assert weaker(lost)
    assert not weaker({"last_4p": {"win_share": 0.24, "ci95": [0.2, 0.26]}, "rival_2p": lost})
    run = Run(replace(TINY, run_dir=tmp_path, iterations=1), "")
    monkeypatch.setattr(run, "gate", lambda *_: {"games": lost, "weaker": True})
    run.go()
    assert (run.kept(1), run.weights(1).tobytes()) == (0, run.init.tobytes())
    assert not (tmp_path / "checkpoint").exists()


def test_another_play_out_network_goes_with_the_weights(tmp_path: Path) -> None:
    weights, facts = load_rollout_net("swift-1")
    del facts["sha256"]
    save_rollout_net(tmp_path / "player", weights * np.float32(1.1), facts, "")
    config = replace(TINY, run_dir=tmp_path / "run", player=str(tmp_path / "player"), iterations=1)
    run = Run(config, "")
    run.go()
    assert load_play_out(tmp_path / "run/checkpoint")[1]["sha256"] == checksum(config.player or "")
    assert load_checkpoint(tmp_path / "run/checkpoint")[0].tobytes() == run.weights(1).tobytes()
    bots.make(f"search:{tmp_path / 'run/checkpoint'}:4")
    decks = deck_groups(load_checkpoint(tmp_path / "run/checkpoint")[1])  # as strength.py does
    assert decks.keys() == {"trained", "unseen"}


def test_what_a_choice_regains_is_measured_on_the_same_values(data: Decisions) -> None:
    weights = load_checkpoint("quick")[0]
    assert recovered(weights, weights, [data])["all"] == [0.0, 0.0]
    other = load_checkpoint("champion")[0]
    there, back = recovered(other, weights, [data]), recovered(weights, other, [data])
    assert there["all"][0] == pytest.approx(-back["all"][0])
    assert there["all"][0] > 0  # the champion's choices are worth more
    assert there.keys() == {"all", "cards", "rows", "2p", "5p"}


@pytest.mark.slow
def test_a_process_killed_while_it_makes_data_loses_at_most_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "GAMES", 256)  # as in the process
    monkeypatch.setattr(decisions, "APART", 40)
    words = "--init quick --rival quick --iterations 1 --decisions 800 --part 200 --deals 1"
    words += " --players 2 3 --random-decks 2 --held-decisions 200 --passes 2 --minibatch 100"
    words += " --gate-players 2 --gate-games 4 --workers 1"
    command = [sys.executable, "training/improve.py", *words.split(), "--run-dir", str(tmp_path)]
    root, parts = Path(__file__).parents[1], tmp_path / "data"
    with subprocess.Popen(command, cwd=root, stderr=subprocess.DEVNULL) as process:
        while not (parts / "01-0000.npz").exists() and process.poll() is None:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    run = Run(replace(TINY, run_dir=tmp_path, iterations=1, decisions=800), "")
    there = [run.load(0, 0), run.load(1, 0)]  # whole
    run.go()
    assert run.load(1, 0).games.tobytes() == there[1].games.tobytes()
    assert (tmp_path / "checkpoint/config.json").exists()


def test_a_training_that_diverges_says_so_and_keeps_what_was_before(
    tmp_path: Path, capsys: Any
) -> None:
    words = "--init quick --rival quick --decisions 100 --part 100 --deals 1 --players 2"
    words += " --random-decks 1 --held-decisions 10 --minibatch 10 --learning-rate 1e30"
    assert main([*words.split(), "--run-dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "no longer finite" in said and "a smaller --learning-rate" in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "data"]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--decisions 0", "decisions is at least 1, not 0"),
        ("--deals 0", "deals is from 1 to 10000, not 0"),
        ("--tau -1", "tau is at least 0, not -1.0"),
        ("--players 2 11", "players is from 2 to 10, not 11"),
        ("--players 2 3 --player-shares 1", "player_shares: 2 shares are needed"),
        ("--rules poker", "unknown rule set 'poker'"),
        ("--decks nonesuch", "no deck of this name"),
        ("--gate-players", "gate_players: at least one is needed"),
        ("--hidden 20", "hidden is a multiple of 8, not 20"),
        ("--init nonesuch", "no checkpoint folder 'nonesuch'"),
        ("--rival nonesuch", "no checkpoint folder 'nonesuch'"),
        ("--player champion", "a policy, not a network for play-outs"),
        ("--workers 0", "workers is from 1 to 1024, not 0"),
    ],
)
def test_a_wrong_option_is_explained_before_the_search_begins(
    tmp_path: Path, capsys: Any, options: str, message: str
) -> None:
    folder = tmp_path / "run"
    assert main(["--run-dir", str(folder), *options.split()]) == 2
    assert message in capsys.readouterr().err
    assert not folder.exists()


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main(["--run-dir", str(tmp_path)]) == 2
    assert "is not empty, and no run" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_spoiled_files_of_a_run_are_named(tmp_path: Path) -> None:
    config = replace(TINY, run_dir=tmp_path, iterations=1)
    Run(config, "").go()
    longer = replace(config, iterations=2)

    def refused(message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Run(longer, "").go()

    weights = tmp_path / "iterations/01/weights.safetensors"
    good = weights.read_bytes()
    weights.write_bytes((Path("checkpoints/champion") / weights.name).read_bytes())
    refused(r"iterations/01 holds other weights than figures\.json says")
    weights.write_bytes(good)

    figures = tmp_path / "figures.json"
    good = figures.read_bytes()
    figures.write_text("[{}]")
    refused(r"figures\.json: KeyError")
    figures.write_text("nonsense")
    refused(r"figures\.json is no JSON file")
    figures.write_bytes(good)

    (tmp_path / "config.json").write_text(json.dumps([]))
    refused(r"config\.json is none of this program's files")
