"""Learning: credit, loss, network, checkpoints, and runs that survive a stop."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from oxx_env import engine, observe  # noqa: E402
from oxx_env.bots import make  # noqa: E402
from oxx_env.bots.policy import PolicyBot, make_policy  # noqa: E402
from oxx_env.game.rules import FIRST_ROW, HAND_SIZE, ROWS  # noqa: E402
from oxx_env.game.table import Table  # noqa: E402
from oxx_env.policy import features, forward, rollout_net  # noqa: E402
from oxx_env.policy.checkpoint import (  # noqa: E402
    CheckpointError,
    load_checkpoint,
    load_rollout_net,
    save_checkpoint,
    save_rollout_net,
)
from oxx_env.policy.network import OxxNetwork, RolloutNet  # noqa: E402
from training import train as train_module  # noqa: E402
from training.config import PRESETS, Config  # noqa: E402
from training.pool import (  # noqa: E402
    CAREFUL,
    EXPECTED,
    LEARNER,
    MATCHES,
    SEATS,
    SHARE,
    TALLIES,
    Pool,
    relative_share,
)
from training.ppo import (  # noqa: E402
    Samples,
    SelfPlayPPO,
    Weights,
    calibration,
    divergence,
    gae,
    ppo_loss,
)
from training.selfplay import TERMINAL, UNFINISHED, Collector, uniform  # noqa: E402

ROOT = Path(__file__).parents[1]
HIDDEN = 16


def positions(games: int = 40, steps: int = 6) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Network inputs of random play over table sizes, rule sets and two decks."""
    rng = np.random.default_rng(0)
    decks = engine.stack_decks(["balanced", "two-color"])
    batch = engine.new_games(
        np.arange(games),
        decks,
        rng.integers(2, 11, games),
        rng.integers(0, 4, games),
        rng.integers(0, 2, games),
    )
    who = np.zeros(10 * games, engine.PENDING)
    actions = np.zeros(10 * games, np.int64)
    out = np.zeros((10 * games, features.INPUT), np.float32)
    found = []
    for _ in range(steps):
        n = engine.pending(batch, who)
        features.encode_inputs(batch, decks, who, n, out)
        found.append(out[:n].copy())
        engine.random_actions(batch, decks, who, n, actions)
        engine.step(batch, decks, who, n, actions, True)
    return np.concatenate(found)


def parts_of(inputs: Any) -> dict[str, Any]:
    """The observation's pieces by name, then the features', views into copies."""
    found = dict(observe.pieces(inputs[:, : observe.OBS]))
    at = observe.OBS
    for piece in features.PIECES:
        found[piece.name] = inputs[:, at : at + piece.size].reshape(-1, *piece.shape).copy()
        at += piece.size
    return found


def together(parts: dict[str, Any]) -> Any:
    """The inputs of `parts_of` again."""
    return np.concatenate([part.reshape(len(part), -1) for part in parts.values()], axis=1)


def network(seed: int = 0) -> OxxNetwork:
    """A network whose weights are all random, biases and scores too."""
    torch.manual_seed(seed)
    net = OxxNetwork(HIDDEN)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3)
    return net


# --- credit and loss ---


def test_advantages_follow_each_seats_own_rewards() -> None:
    # Samples in order of decision: seat A, seat B, A, B, A; each seat's rewards differ.
    rewards = np.array([1, -10, 2, -20, 3], np.float32)
    values = np.array([0.5, 5, 0.25, 6, 0.125], np.float32)
    following = np.array([2, 3, 4, TERMINAL, TERMINAL], np.int32)
    gamma, lam = 0.9, 0.8

    got = gae(rewards, values, following, gamma, lam)

    a2 = 3 - 0.125
    a1 = 2 + gamma * 0.125 - 0.25 + gamma * lam * a2
    a0 = 1 + gamma * 0.25 - 0.5 + gamma * lam * a1
    b1 = -20 - 6
    b0 = -10 + gamma * 6 - 5 + gamma * lam * b1
    np.testing.assert_allclose(got, [a0, b0, a1, b1, a2], rtol=1e-6)


def test_an_unfinished_sample_bootstraps_the_one_before_it_and_gets_nothing() -> None:
    got = gae(
        np.array([1, 9], np.float32),
        np.array([2, 4], np.float32),
        np.array([1, UNFINISHED], np.int32),
        0.5,
        1.0,
    )
    np.testing.assert_allclose(got, [1 + 0.5 * 4 - 2, 0])


def test_with_lambda_one_and_no_discount_the_advantage_is_return_minus_value() -> None:
    rewards = np.array([1, 2, 3], np.float32)
    values = np.array([7, 8, 9], np.float32)
    got = gae(rewards, values, np.array([1, 2, TERMINAL], np.int32), 1.0, 1.0)
    np.testing.assert_allclose(got + values, [6, 5, 3])


def test_the_loss_clips_what_moved_too_far_and_only_in_the_improving_direction() -> None:
    log_prob = torch.log(torch.tensor([2.0, 2.0, 0.5, 0.5]))
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0])
    zero = torch.zeros(4)
    samples = Samples(log_prob=zero, advantages=advantages, returns=zero + 2)
    weights = Weights(clip_range=0.2, vf_coef=0.5, ent_coef=0.01)
    loss = ppo_loss(log_prob, zero, zero + 3, samples, weights)
    # ratio 2: gain clipped to 1.2, loss not clipped; ratio 0.5: gain 0.5, loss clipped to 0.8
    assert float(loss.policy) == pytest.approx(-(1.2 - 2.0 + 0.5 - 0.8) / 4)
    assert float(loss.value) == pytest.approx(4)
    assert float(loss.total) == pytest.approx(float(loss.policy) + 0.5 * 4 - 0.01 * 3)
    assert float(loss.clip_fraction) == 1


def test_rewards_of_a_batch_are_changes_of_the_acting_seats_relative_points() -> None:
    config = Config(games=8, rollout=3000, hidden=HIDDEN, reward_scale=1.0, players=(3,))
    collector = Collector(config)
    batch = collector.collect(network().weights())
    start = observe.SLICES["seats"].start
    # "points of this game against the mean, better is more/30" of the observer itself
    relative = batch.observations[:, start + 2] * 30
    checked = 0
    for i, after in enumerate(batch.following):
        if after >= 0:
            assert batch.rewards[i] == pytest.approx(relative[after] - relative[i], abs=1e-3)
            checked += 1
    assert checked > 2000
    assert np.any(batch.following == TERMINAL)


def test_a_batch_holds_decisions_only_and_every_action_is_legal() -> None:
    collector = Collector(Config(games=8, rollout=1000, hidden=HIDDEN, players=(2, 5)))
    batch = collector.collect(network().weights())
    assert (batch.masks.sum(axis=1) >= 2).all()
    assert not batch.masks[:, 9].any()
    assert batch.masks[np.arange(len(batch.actions)), batch.actions].all()


def test_the_same_seed_collects_the_same_batch() -> None:
    config = Config(games=8, rollout=500, hidden=HIDDEN)
    weights = network().weights()
    first, second = (Collector(config).collect(weights) for _ in range(2))
    np.testing.assert_array_equal(first.observations, second.observations)
    np.testing.assert_array_equal(first.actions, second.actions)
    np.testing.assert_array_equal(first.rewards, second.rewards)


def test_drift_is_zero_on_the_prior_itself_and_enters_the_loss_by_its_weight() -> None:
    prior = torch.tensor([[0.5, 0.25, 0.25, 0.0]])
    same = torch.log(torch.tensor([[0.5, 0.25, 0.25, 1e-9]]))
    other = torch.log(torch.tensor([[0.25, 0.5, 0.25, 1e-9]]))
    assert float(divergence(prior, same)) == pytest.approx(0, abs=1e-6)
    expected = 0.5 * np.log(2) + 0.25 * np.log(0.5)
    assert float(divergence(prior, other)) == pytest.approx(expected, rel=1e-5)
    zero = torch.zeros(1)
    weights = Weights(clip_range=0.2, vf_coef=0.5, ent_coef=0.0, kl_coef=0.5)
    drift = divergence(prior, other)
    loss = ppo_loss(zero, zero, zero, Samples(zero, zero, zero), weights, drift)
    assert float(loss.total) == pytest.approx(0.5 * expected, rel=1e-5)


def test_calibration_tells_bias_and_slope() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000).astype(np.float32)
    returns = (0.5 * values + 2 + rng.normal(size=20_000) * 0.1).astype(np.float32)
    told = calibration(values, returns)
    assert told["value_bias"] == pytest.approx(2, abs=0.02)
    assert told["value_slope"] == pytest.approx(0.5, abs=0.01)
    assert told["value_calibration"] == pytest.approx(2, abs=0.05)
    assert calibration(values, values)["explained_variance"] == pytest.approx(1)


# --- opponents ---

MIXED = Config(
    games=32,
    rollout=4000,
    hidden=HIDDEN,
    players=(2, 3, 5),
    pool_share=0.3,
    pool_size=2,
    greedy_share=0.2,
    careful_share=0.2,
    mc_share=0.2,
    mc_determinisations=2,
)


def test_only_seats_of_the_learner_give_samples_and_every_kind_of_line_up_is_played() -> None:
    collector = Collector(MIXED)
    collector.pool.add(network(1).weights(), 100)
    collector.pool.add(network(2).weights(), 200)
    tallies = np.zeros((len(collector.pool.seats), TALLIES))
    for _ in range(4):
        batch = collector.collect(network().weights())
        tallies += batch.results
        assert (batch.masks.sum(axis=1) >= 2).all()
    assert (tallies[:, MATCHES] > 0).all()
    alone = tallies[0]
    assert alone[SHARE] == pytest.approx(alone[MATCHES])  # it wins all that it plays alone
    for seats, kind in zip(collector.control, collector.kinds, strict=True):
        assert set(seats) <= {LEARNER, int(collector.pool.seats[kind])}


def test_half_of_the_seats_learn_where_there_are_opponents() -> None:
    config = replace(MIXED, players=(5,), careful_share=1.0, greedy_share=0, mc_share=0)
    collector = Collector(replace(config, pool_share=0.0))
    for seats in collector.control:
        assert sorted(seats[:5].tolist()) == [CAREFUL] * 3 + [LEARNER] * 2


def test_a_snapshot_that_beats_the_learner_is_met_more_often_and_none_is_forgotten() -> None:
    pool = Pool(replace(MIXED, pool_size=3))
    for k in range(3):
        pool.add(np.full_like(pool.weights[0], k), 100 * (k + 1))
    results = np.zeros((len(pool.seats), TALLIES))
    for kind, share in ((1, 0.1), (2, 0.9), (3, 0.5)):
        results[kind, [MATCHES, SEATS, EXPECTED]] = 100, 100, 50
        results[kind, SHARE] = 100 * share
    for _ in range(20):
        pool.count(results)
    shares = pool.shares()
    assert shares.sum() == pytest.approx(1)
    assert shares[1] > shares[3] > shares[2] > 0.05 * MIXED.pool_share
    assert pool.ratings()["snapshot 0"] == pytest.approx(400 * np.log10(9), abs=1)
    pool.add(np.full_like(pool.weights[0], 9), 400)
    assert pool.born.tolist() == [100, 400, 300]  # the weakest gave way


def test_as_many_victories_as_seats_is_half_of_the_relative_share() -> None:
    tally = np.zeros(TALLIES)
    tally[[MATCHES, SEATS, SHARE, EXPECTED]] = 30, 60, 12, 12  # 2 seats of 5, 30 matches
    assert relative_share(tally) == pytest.approx(0.5)
    tally[SHARE] = 30
    assert relative_share(tally) == pytest.approx(1)


def test_the_manifest_names_every_opponent_with_its_results(tmp_path: Path) -> None:
    collector = Collector(MIXED)
    collector.pool.add(network(1).weights(), 100)
    for _ in range(3):
        collector.pool.count(collector.collect(network().weights()).results)
    collector.pool.write(tmp_path / "pool")
    manifest = json.loads((tmp_path / "pool/manifest.json").read_text())
    entries = {entry["opponent"]: entry for entry in manifest["opponents"]}
    assert entries.keys() == {"self", "snapshot 0", "greedy", "careful", "mc"}
    assert all(entry["matches"] > 0 for entry in entries.values())
    data = (tmp_path / "pool" / entries["snapshot 0"]["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == entries["snapshot 0"]["sha256"]


def test_the_results_against_a_snapshot_that_gave_way_are_kept(tmp_path: Path) -> None:
    pool = Pool(replace(MIXED, pool_size=1))
    pool.add(pool.weights[0], 100)
    results = np.zeros((len(pool.seats), TALLIES))
    results[1, [MATCHES, SEATS, SHARE, EXPECTED]] = 40, 40, 30, 20
    pool.count(results)
    pool.add(pool.weights[0], 200)
    again = Pool(pool.config)
    again.load_state(pool.state())
    again.write(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (gone,) = manifest["former"]
    assert (gone["decisions"], gone["matches"], gone["learner_win_share"]) == (100, 40, 0.75)
    assert [e["decisions"] for e in manifest["opponents"] if "file" in e] == [200]
    older = {k: v for k, v in pool.state().items() if k != "pool_former"}
    again = Pool(pool.config)
    again.load_state(older)  # of a run that kept none
    assert again.born.tolist() == [200] and not len(again.former)


def test_the_prior_of_a_batch_is_the_start_policys_probabilities() -> None:
    start, now = network(1), network(2)
    collector = Collector(replace(MIXED, rollout=500), start.weights())
    batch = collector.collect(now.weights())
    logits, _ = scores(start, batch.observations)
    logits = np.where(batch.masks, logits, -np.inf)
    wanted = np.exp(logits - logits.max(axis=1, keepdims=True))
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(batch.priors, wanted, atol=1e-5)


def test_a_draw_is_always_below_one() -> None:
    # The state that the greatest number of 64 bits comes from: splitmix64's mix, undone.
    word, all_bits = 2**64, 2**64 - 1

    def unshift(value: int, bits: int) -> int:
        found = value
        for _ in range(64 // bits + 1):
            found = value ^ found >> bits
        return found

    z = unshift(all_bits, 31) * pow(0x94D049BB133111EB, -1, word) % word
    z = unshift(z, 27) * pow(0xBF58476D1CE4E5B9, -1, word) % word
    stream = np.array([(unshift(z, 30) - 0x9E3779B97F4A7C15) % word], np.uint64)
    draw = uniform(stream)
    assert 0.9999 < draw < 1
    for count in range(1, 500):
        assert int(draw * np.float32(count)) == count - 1


# --- options ---


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_passes_the_check(preset: str) -> None:
    PRESETS[preset].check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decisions": 0}, "decisions is at least 1, not 0"),
        ({"decisions": 1e6}, "decisions: a whole number is needed, not 1000000.0"),
        ({"seed": -1}, "seed is from 0 to 4294967295, not -1"),
        ({"seed": True}, "seed: a whole number is needed, not True"),
        ({"players": ()}, "players: at least one"),
        ({"players": 2}, "players is a list, not 2"),
        ({"players": (2, 11)}, "players is from 2 to 10, not 11"),
        ({"players": (1,)}, "players is from 2 to 10, not 1"),
        ({"player_shares": (1, 2)}, "player_shares: 1 shares are needed"),
        ({"players": (2, 3), "player_shares": (1, -1)}, "none negative"),
        ({"players": (2, 3), "player_shares": (1, float("nan"))}, "none negative"),
        ({"rules": ("poker",)}, "unknown rule set 'poker'"),
        ({"rule_shares": (0.0,)}, "not all 0"),
        ({"decks": ("nonesuch",)}, "no deck of this name"),
        ({"random_decks": -1}, "random_decks is at least 0"),
        ({"games_per_match": (1, 0)}, "games_per_match is from 1 to 65535, not 0"),
        ({"greedy_share": -0.1}, "greedy_share is from 0 to 1, not -0.1"),
        ({"greedy_share": 0.6, "mc_share": 0.5}, "add up to 1.1"),
        ({"pool_share": 0.1}, "needs a pool"),
        ({"pool_size": 128}, "pool_size is from 0 to 127"),
        ({"mc_determinisations": 0}, "mc_determinisations is at least 1"),
        ({"snapshot_every": 0}, "snapshot_every is at least 1"),
        ({"games": 0}, "games is at least 1"),
        ({"rollout": 9}, "rollout is at least 3594 with 256 games and minibatches of 1024"),
        ({"minibatch": 1}, "minibatch is at least 2"),
        ({"minibatch": 40_000}, "minibatches of 40000"),
        ({"epochs": 0}, "epochs is at least 1"),
        ({"learning_rate": float("inf")}, "learning_rate is at least 0, not inf"),
        ({"gamma": 1.01}, "gamma is from 0 to 1"),
        ({"clip_range": 0.0}, "clip_range is above 0"),
        ({"hidden": 20}, "hidden is a multiple of 8, not 20"),
        ({"hidden": 512}, "bytes of weights"),
        ({"eval_every": 0}, "eval_every is at least 1"),
        ({"eval_games": 0}, "eval_games is at least 1"),
        ({"eval_players": (0,)}, "eval_players is from 2 to 10"),
        ({"eval_bots": ()}, "eval_bots: at least one"),
        ({"eval_bots": ("random",)}, "'random' is none of greedy, careful, mc"),
        ({"final_games": 0}, "final_games is at least 1"),
    ],
)
def test_what_cannot_be_trained_with_is_named_with_what_would_be_right(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Config(**options).check()


def test_the_smallest_batch_allowed_leaves_a_minibatch_to_learn_from() -> None:
    config = Config(games=8, minibatch=64, rollout=154, hidden=HIDDEN, players=(10,))
    config.check()
    batch = Collector(config).collect(network().weights())
    assert (batch.following != UNFINISHED).sum() >= config.minibatch


def test_the_command_on_a_model_card_gives_the_same_options_again() -> None:
    config = replace(
        PRESETS["full"], seed=7, rules=("base", "color+positive"), rule_shares=(), foresight=False
    )
    command = train_module.command_of(config, "runs/my warm")
    options = train_module.parse(shlex.split(command)[2:])
    assert options.config == config and options.init == "runs/my warm"
    assert train_module.command_of(PRESETS["quick"], None).endswith("--preset quick --seed 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config.json: Expecting"),
        ("[]", "config.json: "),
        ('{"gama": 1}', "gama"),
        ('{"gamma": "1"}', "gamma: a number is needed, not '1'"),
        ('{"players": [2, 12]}', "players is from 2 to 10, not 12"),
        ('{"init_from": 5}', "init_from is a checkpoint or null, not 5"),
    ],
)
def test_a_run_folder_with_a_spoiled_configuration_is_refused(
    tmp_path: Path, capsys: Any, text: str, message: str
) -> None:
    (tmp_path / "config.json").write_text(text)
    assert train_module.main(["--resume", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_options_changed_after_a_state_was_written_are_named() -> None:
    state = {"config": np.array(json.dumps(asdict(MIXED)))}
    assert train_module.changed_options(state, MIXED) == ""
    changed = train_module.changed_options(state, replace(MIXED, gamma=0.5, players=(2,)))
    assert changed == "players [2, 3, 5], not [2]; gamma 0.85, not 0.5"


def test_a_run_stopped_before_its_first_batch_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(train_module.Progress):
        def _on_training_start(self) -> None:
            super()._on_training_start()
            self.stopped = True

    monkeypatch.setattr(train_module, "Progress", Impatient)
    run = train_module.Run(tmp_path, PRESETS["smoke"])
    run.learner.behaviour = run.learner.network.weights()  # as after a resume
    assert not train_module.learn(run)
    assert not (tmp_path / "state.npz").exists()


# --- the network ---


def scores(net: OxxNetwork, obs: Any) -> tuple[Any, Any]:
    with torch.no_grad():
        logits, values = net(torch.from_numpy(np.ascontiguousarray(obs)))
    return logits.numpy(), values.numpy()


def legal_columns(obs: Any) -> Any:
    """Which logits mean something: held slots, or the rows if a card is being placed."""
    present = observe.pieces(obs[:, : observe.OBS])["cards"][:, :, 0] > 0
    placing = present[:, HAND_SIZE]
    mask = np.zeros((len(obs), 10), bool)
    mask[:, :HAND_SIZE] = present[:, :HAND_SIZE] & ~placing[:, None]
    mask[:, FIRST_ROW : FIRST_ROW + ROWS] = placing[:, None]
    return mask


def test_the_compiled_forward_pass_equals_torch() -> None:
    net, obs = network(), positions()
    logits, values = scores(net, obs)
    compiled, compiled_values = forward.score(net.weights(), obs)
    mask = legal_columns(obs)
    assert np.abs(logits)[mask].mean() > 0.1
    np.testing.assert_allclose(compiled[mask], logits[mask], atol=1e-5)
    np.testing.assert_allclose(compiled_values, values, atol=1e-5)


def test_without_features_a_network_sees_the_observation_alone() -> None:
    torch.manual_seed(3)
    net = OxxNetwork(HIDDEN, features=False)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3)
    obs = positions()
    changed = obs.copy()
    changed[:, observe.OBS :] = 7
    np.testing.assert_array_equal(scores(net, obs)[0], scores(net, changed)[0])
    mask = legal_columns(obs)
    for inputs in (obs, changed):  # and so does the compiled form of its weights
        compiled, _ = forward.score(net.weights(), inputs)
        np.testing.assert_allclose(compiled[mask], scores(net, obs)[0][mask], atol=1e-5)


def test_permuting_colors_changes_nothing() -> None:
    net, obs = network(), positions()
    order = [3, 0, 5, 1, 2, 4]
    changed = obs.copy()
    for piece in observe.PIECES:
        block = changed[:, observe.SLICES[piece.name]].reshape(len(obs), -1, len(piece.fields))
        source = block.copy()
        for to, color in enumerate(order):
            names = observe.COLORS
            for field, name in enumerate(piece.fields):
                if names[to] in name.split("/")[0].split():
                    theirs = name.replace(names[to], names[color])
                    block[:, :, field] = source[:, :, piece.fields.index(theirs)]
    assert not np.array_equal(changed, obs)
    before, after = scores(net, obs), scores(net, changed)
    np.testing.assert_allclose(after[0], before[0], atol=1e-5)
    np.testing.assert_allclose(after[1], before[1], atol=1e-5)


def with_rows(obs: Any, order: list[int]) -> Any:
    """The inputs with the rows in another order."""
    parts = parts_of(obs)
    for name, axis in (("rows", 1), ("pairs", 2), ("options", 1)):
        parts[name] = np.take(parts[name], order, axis)
    return together(parts)


def with_hand(obs: Any, order: list[int]) -> Any:
    """The inputs of full hands with the slots in another order."""
    parts = parts_of(obs)
    for name in ("cards", "pairs"):
        parts[name] = np.take(parts[name], [*order, 4], 1)
    parts["slots"] = parts["slots"][:, order]
    return together(parts)


def test_permuting_rows_permutes_the_row_scores_and_nothing_else() -> None:
    net, obs = network(), positions()
    order = [2, 4, 0, 1, 3]
    before, after = scores(net, obs), scores(net, with_rows(obs, order))
    rows = slice(FIRST_ROW, FIRST_ROW + ROWS)
    np.testing.assert_allclose(after[0][:, rows], before[0][:, rows][:, order], atol=1e-5)
    np.testing.assert_allclose(after[0][:, :HAND_SIZE], before[0][:, :HAND_SIZE], atol=1e-5)
    np.testing.assert_allclose(after[1], before[1], atol=1e-5)


def test_permuting_hand_slots_permutes_their_scores() -> None:
    net, obs = network(), positions()
    obs = obs[parts_of(obs)["cards"][:, 3, 0] > 0]  # full hands
    order = [3, 1, 0, 2]
    before, after = scores(net, obs), scores(net, with_hand(obs, order))
    np.testing.assert_allclose(after[0][:, :4], before[0][:, order], atol=1e-5)


def test_permuting_the_other_seats_changes_nothing() -> None:
    net, obs = network(), positions()
    parts = parts_of(obs)
    parts["seats"] = parts["seats"][:, [0, 4, 2, 9, 1, 3, 8, 7, 6, 5]]
    before, after = scores(net, obs), scores(net, together(parts))
    np.testing.assert_allclose(after[0], before[0], atol=1e-5)


# --- the network that plays out ---


def rollout_network() -> RolloutNet:
    torch.manual_seed(1)
    net = RolloutNet()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3)
    return net


def rollout_scores(net: RolloutNet, obs: Any) -> Any:
    with torch.no_grad():
        return net(torch.from_numpy(np.ascontiguousarray(obs))).numpy()


def test_the_compiled_rollout_net_equals_torch() -> None:
    net, obs = rollout_network(), positions()
    logits = np.full((len(obs), 10), 7, np.float32)
    rollout_net.forward_all(net.weights(), obs, rollout_net.workspace(), logits)
    choices = legal_columns(obs)
    choices[:, FIRST_ROW : FIRST_ROW + ROWS] &= parts_of(obs)["pairs"][:, HAND_SIZE, :, 1] > 0
    assert choices[:, :HAND_SIZE].any() and choices[:, FIRST_ROW:].any()
    np.testing.assert_allclose(logits[choices], rollout_scores(net, obs)[choices], atol=1e-5)
    assert not logits[~choices].any()


def test_permuting_choices_permutes_their_scores_in_play_outs() -> None:
    net, obs = rollout_network(), positions()
    order = [2, 4, 0, 1, 3]
    rows = slice(FIRST_ROW, FIRST_ROW + ROWS)
    before, after = rollout_scores(net, obs), rollout_scores(net, with_rows(obs, order))
    np.testing.assert_allclose(after[:, rows], before[:, rows][:, order], atol=1e-5)

    obs = obs[parts_of(obs)["cards"][:, 3, 0] > 0]  # full hands
    order = [3, 1, 0, 2]
    before, after = rollout_scores(net, obs), rollout_scores(net, with_hand(obs, order))
    np.testing.assert_allclose(after[:, :HAND_SIZE], before[:, order], atol=1e-5)


def test_a_rollout_net_and_a_policy_are_not_taken_for_each_other(tmp_path: Path) -> None:
    weights = rollout_network().weights()
    save_rollout_net(tmp_path / "r", weights, {}, "# card\n")
    save_checkpoint(tmp_path / "p", network().weights(), HIDDEN, {}, "# card\n")
    np.testing.assert_array_equal(load_rollout_net(tmp_path / "r")[0], weights)
    with pytest.raises(CheckpointError, match="not a policy"):
        load_checkpoint(tmp_path / "r")
    with pytest.raises(CheckpointError, match="not a network for play-outs"):
        load_rollout_net(tmp_path / "p")
    with pytest.raises(CheckpointError, match="not a network for play-outs"):
        make(f"search:champion:4:player={tmp_path / 'p'}")


# --- checkpoints ---


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save_checkpoint(
        tmp_path / "checkpoint", network().weights(), HIDDEN, {"preset": "test"}, "# card\n"
    )


def test_a_checkpoint_gives_back_its_weights(checkpoint: Path) -> None:
    weights, config = load_checkpoint(checkpoint)
    np.testing.assert_array_equal(weights, network().weights())
    assert config["preset"] == "test" and config["format"] == "oxx-policy/1"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "weights.safetensors").unlink(), "No such file"),
        (lambda f: (f / "config.json").write_text("{"), "not a JSON file"),
        (lambda f: (f / "config.json").write_text("[]"), "no JSON object"),
        (lambda f: _edit(f, format="oxx-policy/9"), "format is 'oxx-policy/9'"),
        (lambda f: _edit(f, observation_version=99), "observation_version"),
        (lambda f: _edit(f, architecture={"hidden": True}), "architecture.hidden"),
        (lambda f: _edit(f, architecture={"hidden": 24}), "is expected"),
        (lambda f: _flip(f / "weights.safetensors"), "checksum"),
        (lambda f: _cut(f / "weights.safetensors"), "checksum"),
    ],
)
def test_a_spoiled_checkpoint_is_refused_with_the_reason(
    checkpoint: Path, spoil: Any, message: str
) -> None:
    spoil(checkpoint)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(checkpoint)


def _edit(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def test_weights_that_are_no_numbers_are_neither_written_nor_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = network().weights()
    weights[7] = np.nan
    with pytest.raises(CheckpointError, match="are not written"):
        save_checkpoint(tmp_path / "c", weights, HIDDEN, {}, "")
    assert not (tmp_path / "c").exists()
    monkeypatch.setattr("oxx_env.policy.checkpoint.np.isfinite", np.ones_like)
    save_checkpoint(tmp_path / "c", weights, HIDDEN, {}, "")
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="not finite"):
        load_checkpoint(tmp_path / "c")


def test_an_unknown_checkpoint_names_the_shipped_ones() -> None:
    with pytest.raises(CheckpointError, match=r"shipped ones: .*quick"):
        load_checkpoint("nonesuch")


@pytest.mark.slow
def test_the_policy_bot_plays_the_best_legal_action_of_its_network(checkpoint: Path) -> None:
    bot = make_policy(str(checkpoint), {})
    net = network()
    rng = np.random.default_rng(0)
    table = Table(players=3, rules="positive")
    table.deal(seed=5)
    for _ in range(60):
        for seat in table.deciders():
            view = table.view(seat)
            action = bot.act(view, rng)
            logits, value = scores(net, features.network_input(view)[None])
            assert action == max(view.legal, key=lambda a: logits[0, a])
            probabilities, same = bot.probabilities(view)
            assert probabilities.sum() == pytest.approx(1, abs=1e-5)
            assert set(np.flatnonzero(probabilities)) <= set(view.legal)
            assert same == pytest.approx(float(value[0]), abs=1e-4)
            table.act(seat, action)
        if table.over:
            break
    assert table.over


def test_with_greedy_rows_only_the_rows_are_chosen_otherwise(checkpoint: Path) -> None:
    plain, mixed = (make_policy(str(checkpoint), o) for o in ({}, {"rows": "greedy"}))
    table = Table(players=4)
    table.deal(seed=2)
    differ = {"card": 0, "row": 0}
    while not table.over:
        for seat in table.deciders():
            view = table.view(seat)
            actions = [bot.act(view, np.random.default_rng(1)) for bot in (plain, mixed)]
            differ[view.phase] += actions[0] != actions[1]
            if view.phase == "row":
                assert actions[1] == make("greedy").act(view, np.random.default_rng(1))
            table.act(seat, actions[0])
    assert differ["card"] == 0 and differ["row"] > 0
    with pytest.raises(ValueError, match="rows is policy or greedy, not 'best'"):
        make_policy(str(checkpoint), {"rows": "best"})


def test_a_seat_with_nothing_to_decide_passes() -> None:
    table = Table(players=2)
    table.deal(seed=1)
    table.act(0, 0)
    assert PolicyBot(network().weights()).act(table.view(0), np.random.default_rng(0)) == 9


def test_playing_a_policy_needs_neither_torch_nor_stable_baselines(checkpoint: Path) -> None:
    code = (
        "import sys; from oxx_env import bots; from oxx_env.game.table import Table;"
        "import numpy as np;"
        f"t = Table(2); t.deal(1); bots.make('policy:{checkpoint}').act(t.view(0), "
        "np.random.default_rng(0));"
        "assert 'torch' not in sys.modules and 'stable_baselines3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# --- runs ---

SMALL = ["--preset", "smoke", "--workers", "1"]


def train(*options: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "training/train.py", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        **kwargs,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished run, not to be changed, and what it said."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    done = train(*SMALL, "--run-dir", str(folder))
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.mark.slow
def test_a_run_ends_with_checkpoint_table_and_curve_and_a_second_one_is_equal(
    whole: tuple[Path, str], tmp_path: Path
) -> None:
    folder, told = whole
    config = json.loads((folder / "checkpoint/config.json").read_text())
    assert config["preset"] == "smoke" and config["init"] is None
    assert config["decisions"] >= PRESETS["smoke"].decisions and config["seconds"] > 0
    assert "| `greedy` |" in (folder / "checkpoint/README.md").read_text()
    results = json.loads((folder / "evaluation.json").read_text())["results"]
    assert [r["against"] for r in results] == ["random", "greedy"]
    assert (folder / "curve.png").stat().st_size > 1000
    command = told.splitlines()[-1]
    assert "play --players 2 --rules base --deck balanced --bots policy:" in command
    played = subprocess.run(
        command, shell=True, input="q\n", capture_output=True, text=True, cwd=ROOT
    )
    assert (played.returncode, played.stderr) == (0, "")
    assert "A game of base for 2" in played.stdout

    again = train(*SMALL, "--run-dir", str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    weights = [load_checkpoint(run / "checkpoint")[0] for run in (folder, tmp_path / "again")]
    np.testing.assert_array_equal(*weights)


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_as_if_nothing_had_happened(
    whole: tuple[Path, str], tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    command = [sys.executable, "training/train.py", *SMALL, "--run-dir", str(folder)]
    running = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not (folder / "state.npz").exists() and running.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()

    resumed = train("--resume", str(folder), "--workers", "1")
    assert resumed.returncode == 0, resumed.stderr
    weights = [load_checkpoint(run / "checkpoint")[0] for run in (whole[0], folder)]
    np.testing.assert_array_equal(*weights)


def points_in_tensorboard(folder: Path) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return [(e.step, e.value) for e in events.Scalars("win_share/greedy_2p")]


@pytest.mark.slow
def test_the_curve_begins_before_learning_and_early_and_tensorboard_shows_each_point(
    whole: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the run is stopped; and to look early changes no weight."""
    monkeypatch.setattr(train_module, "FIRST_LOOK", 500)
    folder = tmp_path / "run"
    config = PRESETS["smoke"]
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(asdict(config)))
    run = train_module.Run.begin(folder, config, None)
    progress = train_module.Progress(run)
    progress.stopped = True  # by a signal during the first batch ...
    monkeypatch.setattr(progress, "_on_training_start", lambda: start(progress))

    def start(progress: Any) -> None:
        train_module.Progress._on_training_start(progress)
        progress.stopped = False  # ... but not before it

    def stage(text: str) -> None:
        progress.stopped |= run.decisions > 0

    monkeypatch.setattr(progress, "stage", stage)
    assert not train_module.learn(run, progress)
    decisions = [point["decisions"] for point in run.evaluations]
    assert decisions[0] == 0 and decisions[-1] == run.decisions and len(decisions) == 4
    assert 500 <= decisions[1] < 750 and 1000 <= decisions[2] < 1250
    for point in run.evaluations:
        low, high = point["ci95"]["greedy_2p"]
        assert low <= point["greedy_2p"] <= high
    shown = points_in_tensorboard(folder)
    assert shown == [
        (point["decisions"], pytest.approx(point["greedy_2p"])) for point in run.evaluations
    ]

    run = train_module.Run.resume(folder)
    assert train_module.learn(run)
    np.testing.assert_array_equal(
        run.learner.network.weights(), load_checkpoint(whole[0] / "checkpoint")[0]
    )
    steps = [step for step, _ in points_in_tensorboard(folder)]
    assert steps == [point["decisions"] for point in run.evaluations]
    assert steps[-1] == run.decisions >= config.decisions


def test_early_points_double_until_the_regular_ones() -> None:
    points, every = [0], 100_000
    while points[-1] < 300_000:
        points.append(train_module.next_look(points[-1], every))
    assert points == [0, 8000, 16_000, 32_000, 64_000, 100_000, 200_000, 300_000]
    assert train_module.next_look(0, 2000) == 2000
    assert train_module.next_look(65_518, every) == 100_000


# --- training that diverges ---


def parsed(line: str) -> Any:
    """The options of a printed command that trains."""
    python, script, *words = shlex.split(line)
    assert shutil.which(python) and (ROOT / script).samefile(train_module.__file__)
    return train_module.parse(words)


@pytest.mark.slow
def test_steps_that_are_too_long_are_told_with_the_decision_and_what_to_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    options = ["--run-dir", str(folder), "--learning-rate", "1e9", "--players", "3"]
    assert train_module.main([*SMALL, *options]) == 2
    told = capsys.readouterr().err
    assert re.search(r"diverged after \d+ decisions: the network's outputs are no longer", told)
    assert "Try --learning-rate 0.001 (it was 1e+09)" in told and "no state to keep" in told
    assert "Traceback" not in told and "tensor(" not in told
    assert not (folder / "state.npz").exists() and not (folder / "checkpoint").exists()
    assert parsed(told.splitlines()[-2]).config == replace(PRESETS["smoke"], players=(3,))


@pytest.mark.slow
@pytest.mark.parametrize("spoiled", ["weights", "gradient"])
def test_after_a_divergence_the_last_good_state_goes_on(
    whole: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spoiled: str,
) -> None:
    folder = tmp_path / "run"
    train_batch = SelfPlayPPO.train

    def spoil(learner: Any) -> None:
        if learner.num_timesteps > 4000:
            parameter = next(learner.policy.parameters())
            if spoiled == "weights":
                learner.after_step = lambda share: parameter.data.fill_(1e30)
            else:
                parameter.register_hook(lambda gradient: gradient * torch.nan)
        train_batch(learner)

    monkeypatch.setattr(SelfPlayPPO, "train", spoil)
    assert train_module.main([*SMALL, "--run-dir", str(folder)]) == 2
    told = capsys.readouterr().err
    assert "Try --learning-rate 0.0001 (it was 0.001)" in told
    what = "(loss is|outputs are)" if spoiled == "weights" else "gradient is"
    assert re.search(f"{what} no longer finite", told)
    kept = train_module.read_arrays(folder / "state.npz")
    weights, facts = load_checkpoint(folder / "checkpoint")
    assert facts["decisions"] == kept["progress"][0] < 4000
    np.testing.assert_array_equal(weights, kept["weights"])
    options = parsed(told.splitlines()[-1])
    assert Path(options.init) == folder / "checkpoint"

    monkeypatch.undo()
    assert train_module.main(["--resume", str(folder), "--workers", "1"]) == 0
    ends = [load_checkpoint(run / "checkpoint")[0] for run in (whole[0], folder)]
    np.testing.assert_array_equal(*ends)


@pytest.mark.slow
def test_a_broken_state_is_refused_in_one_sentence(whole: tuple[Path, str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    options = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**options, "gamma": 0.5}))
    done = train("--resume", str(folder))
    assert done.returncode == 2
    assert "gamma 0.85, not 0.5" in done.stderr and "Traceback" not in done.stderr
    (folder / "config.json").write_text(json.dumps(options))
    data = (folder / "state.npz").read_bytes()
    (folder / "state.npz").write_bytes(data[: len(data) // 2])
    shutil.rmtree(folder / "checkpoint")
    done = train("--resume", str(folder))
    assert done.returncode == 2
    assert "state.npz is no state of this run" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "nonesuch"], "unknown preset 'nonesuch'"),
        (["--resume", "/nonesuch"], "not the folder of a run"),
        (["--init", "nonesuch", "--run-dir", "DIR"], "no checkpoint folder 'nonesuch'"),
        (["--preset", "full", "--run-dir", "DIR"], "name it by --init"),
        (["--rules", "poker", "--run-dir", "DIR"], "unknown rule set 'poker'"),
        (["--learning-rat", "1"], "learning-rat"),
        (["--pool-share", "0.5", "--run-dir", "DIR"], "pool_share 0.5 needs a pool"),
        (["--init", "quick", "--hidden", "16", "--run-dir", "DIR"], "add --hidden 64"),
        (["--workers", "0", "--run-dir", "DIR"], "workers is at least 1, not 0"),
        (["--resume", "DIR", "--gamma", "1"], "the run's own options"),
        (["--run-dir", "DIR:2"], "PATH holds no : and no comma"),
    ],
)
def test_a_wrong_option_is_explained_and_leaves_nothing(
    tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    arguments = [option.replace("DIR", str(folder)) for option in options]
    try:
        status = train_module.main(arguments)
    except SystemExit as end:  # the option parser's own way
        assert isinstance(end.code, int)
        status = end.code
    assert status == 2
    told = capsys.readouterr()
    assert message in told.err + told.out
    assert not folder.exists()


@pytest.mark.slow
def test_the_command_tells_a_wrong_option_without_a_traceback() -> None:
    done = train("--preset", "nonesuch")
    assert done.returncode == 2
    assert "unknown preset 'nonesuch'" in done.stderr and "Traceback" not in done.stderr
