"""Damaged files, wrong options, any actions: success or the documented error. A little of
`python -m tests.stress.fuzz`, and the cases that it has found."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from oxx_env import bots, tracker
from oxx_env.commands import _cli
from oxx_env.envs.match import IllegalAction, ResetNeeded
from oxx_env.envs.parallel import BaronOxxParallel
from oxx_env.policy import checkpoint
from tests.stress import fuzz

EXAMPLES = {"run_state": 15}


@pytest.mark.parametrize("door", fuzz.TARGETS)
def test_what_comes_through_a_door_is_taken_or_refused(door: str) -> None:
    outcome = fuzz.run(door, EXAMPLES.get(door, 80))
    assert not outcome.failure, outcome.failure
    assert outcome.inputs >= EXAMPLES.get(door, 50)
    assert outcome.outcomes[fuzz.REFUSED] and outcome.outcomes[fuzz.ACCEPTED]


def test_a_failure_is_reported_with_its_smallest_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def enter(text: str) -> str:
        if "4" in text:
            raise KeyError(text)
        return fuzz.ACCEPTED

    door = fuzz.TARGETS["position"]
    monkeypatch.setitem(fuzz.TARGETS, "position", fuzz.Target("position", door.inputs, enter))
    failure = fuzz.run("position", 100).failure
    assert "KeyError" in failure and "Failing test case" in failure


# ---- Found cases


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound checkpoint."""
    weights, config = fuzz.sound_checkpoint()
    (tmp_path / checkpoint.WEIGHTS).write_bytes(weights)
    (tmp_path / checkpoint.CONFIG).write_bytes(fuzz.as_json(config))
    assert checkpoint.load_checkpoint(tmp_path)[1] == config
    return tmp_path


@pytest.mark.parametrize("name", [checkpoint.WEIGHTS, checkpoint.CONFIG])
def test_a_pipe_in_a_checkpoint_is_refused_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(checkpoint.CheckpointError, match="is no file"):
        checkpoint.load_checkpoint(folder)


@pytest.mark.parametrize("name", [checkpoint.WEIGHTS, checkpoint.CONFIG])
def test_a_link_to_an_endless_device_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(checkpoint.CheckpointError, match="is no file"):
        checkpoint.load_checkpoint(folder)


@pytest.mark.parametrize("path", ["a" * 300, "a/" * 3000, "\0", "a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_an_unknown_checkpoint(path: str) -> None:
    with pytest.raises(checkpoint.CheckpointError, match="no checkpoint folder") as error:
        bots.make(f"policy:{path}")
    assert len(str(error.value)) < 600


def test_a_message_shows_the_beginning_of_a_long_value(folder: Path) -> None:
    config = json.loads((folder / checkpoint.CONFIG).read_text())
    for key, value in (("format", "9" * 5000), ("architecture", {"hidden": [0] * 5000})):
        (folder / checkpoint.CONFIG).write_text(json.dumps({**config, key: value}))
        with pytest.raises(checkpoint.CheckpointError) as error:
            checkpoint.load_checkpoint(folder)
        assert len(str(error.value)) < 1000


@pytest.mark.parametrize("actions", [None, 5, "x", [1, 2], np.int64(2), np.array([1, 2]), object()])
def test_actions_that_are_no_dict_are_named(actions: object) -> None:
    env = BaronOxxParallel(num_players=2)
    env.reset(seed=1)
    with pytest.raises(IllegalAction, match="must be a dict"):
        env.step(actions)  # type: ignore[arg-type]
    while env.agents:
        masks = [env.match.observe(seat)[1] for seat in range(2)]
        env.step({f"player_{seat}": int(mask.argmax()) for seat, mask in enumerate(masks)})
    with pytest.raises(ResetNeeded, match="after the end"):
        env.step(actions)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [None, "1", [], float("nan"), float("inf"), 10**400])
def test_a_reward_scale_that_is_no_number_is_a_value_error(scale: object) -> None:
    from oxx_env.envs.vector import BaronOxxVecEnv

    with pytest.raises(ValueError, match="reward_scale must be a finite number"):
        BaronOxxVecEnv(2, reward_scale=scale)  # type: ignore[arg-type]


def test_endless_devices_are_refused_everywhere(tmp_path: Path) -> None:
    from training.train import load_config

    with pytest.raises(tracker.TrackError, match="is no file"):
        tracker.Tracker.load("/dev/zero")
    (tmp_path / "config.json").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="is no file"):
        load_config(tmp_path / "config.json")
    for command in (["replay"], ["track"], ["deck", "check"], ["advise"]):
        assert _cli.main([*command, "/dev/zero"]) == 2
    assert _cli.main(["arena", "greedy", "random", "--log", "/dev/zero"]) == 2


# ---- The state of a training run


def resume(data: bytes) -> None:
    from training.train import Run

    folder = fuzz.folder() / "resumed"
    folder.mkdir(exist_ok=True)
    shutil.copy(fuzz.sound_run() / "config.json", folder)
    (folder / "state.npz").write_bytes(data)
    Run.resume(folder)


def arrays() -> dict[str, np.ndarray]:
    with np.load(fuzz.sound_run() / "state.npz") as file:
        return {name: file[name] for name in file.files}


def test_the_states_of_these_tests_are_sound() -> None:
    resume((fuzz.sound_run() / "state.npz").read_bytes())
    resume(fuzz._npz(arrays()))


def test_an_empty_or_cut_state_is_refused() -> None:
    sound = fuzz._npz(arrays())
    for data in (b"", b"PK", sound[:1000], sound[: len(sound) // 2], sound[:-1]):
        with pytest.raises(ValueError, match=r"state\.npz is no state of this run"):
            resume(data)


def test_a_packed_state_that_would_fill_the_memory_is_refused() -> None:
    bomb = {**arrays(), "weights": np.zeros(1 << 27, np.uint8)}
    packed = io.BytesIO()
    np.savez_compressed(packed, **bomb)
    assert len(packed.getvalue()) < 2_000_000
    with pytest.raises(ValueError, match="is compressed"):
        resume(packed.getvalue())


def test_a_state_whose_header_promises_more_than_there_is_is_refused() -> None:
    sound = fuzz._npz(arrays())
    for shape in (b"(99999999999999,)", b"(2,", b"(-1,)", b"[" * 90, b"(1e9,)"):
        with pytest.raises(ValueError, match="no state of this run"):
            resume(fuzz._huge(sound, shape))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("weights", lambda a: a[:-1]),
        ("weights", lambda a: a.astype(np.float64)),
        ("behaviour", lambda a: a * np.nan),
        ("behaviour", lambda a: a[:5]),
        ("games/streams", lambda a: a[0, 0]),  # would be spread over all games
        ("games/control", lambda a: a + 100),
        ("games/control", lambda a: a - 100),
        ("games/kinds", lambda a: a + 1000),
        ("games/pool_born", lambda a: a.astype(np.int8)),
        ("games/pool_opposing", lambda a: a * np.inf),
        ("adam/0/exp_avg", lambda a: a[:1]),
    ],
)
def test_an_array_of_another_form_in_a_state_is_named(name: str, change: object) -> None:
    state = arrays()
    state[name] = change(state[name])  # type: ignore[operator]
    with pytest.raises(ValueError, match="no state of this run"):
        resume(fuzz._npz(state))


@pytest.mark.parametrize(
    "field", ["deck", "phase", "players", "placed", "hand_sizes", "row_sizes", "revealed_by"]
)
@pytest.mark.parametrize("value", [255, 127])
def test_games_that_point_outside_of_their_arrays_are_refused(field: str, value: int) -> None:
    state = arrays()
    games = state["games/games"].copy()
    games[field] = value
    with pytest.raises(ValueError, match=rf"game 0: {field} "):
        resume(fuzz._npz({**state, "games/games": games}))


def test_games_whose_counts_and_cards_contradict_each_other_are_refused() -> None:
    state = arrays()
    games = state["games/games"].copy()
    games["taken_count"], games["row_sizes"] = 110, 5  # play would write past the record
    with pytest.raises(ValueError, match="game 0: taken_count 110"):
        resume(fuzz._npz({**state, "games/games": games}))
    decks = state["games/decks"].copy()
    decks["fits"][0, 7] = 0
    with pytest.raises(ValueError, match="deck 0 contradicts itself"):
        resume(fuzz._npz({**state, "games/decks": decks}))
    over = state["games/games"].copy()
    over[0] = fuzz.finished_game()
    with pytest.raises(ValueError, match="a game that is over"):
        resume(fuzz._npz({**state, "games/games": over}))


def test_a_state_names_no_file_outside_of_itself(tmp_path: Path) -> None:
    """Names of its arrays are never used as paths."""
    data = io.BytesIO(fuzz._npz(arrays()))
    with zipfile.ZipFile(data, "a") as file:
        file.writestr("../../escaped.npy", b"x")
    resume(fuzz._npz(arrays()))  # its folder is there
    before = sorted(os.listdir(fuzz.folder()))
    with pytest.raises(ValueError, match="no state of this run"):
        resume(data.getvalue())
    assert sorted(os.listdir(fuzz.folder())) == before
    assert not list(fuzz.folder().parent.glob("**/escaped*"))
