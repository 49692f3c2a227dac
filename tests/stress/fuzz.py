"""Damaged files, wrong options, any actions: every outcome is success or the documented error.

    python -m tests.stress.fuzz --examples 2000
    python -m tests.stress.fuzz --only deck checkpoint

A target is one door that something from outside comes through. Hypothesis makes its inputs, mostly
sound ones that were spoiled a little, and looks for the smallest that fails. An input fails if it
raises anything but the errors that the documentation names, if it takes more than 2 seconds of
processor time, or if the process grows by more than 500 MB. Inputs are below 1 MB.

Exit code 0: no failure. 1: some, each shown with its smallest input.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from oxx_env import bots, cards, engine, notation, records, tracker, views
from oxx_env.arena.blocks import Player, Setup
from oxx_env.arena.log import Log
from oxx_env.envs.aec import BaronOxxAEC
from oxx_env.envs.match import IllegalAction, ResetNeeded
from oxx_env.envs.parallel import BaronOxxParallel
from oxx_env.envs.single import BaronOxxSingle
from oxx_env.game import validation
from oxx_env.game.rules import GAME, OVER, RULE_SETS
from oxx_env.game.table import Table
from oxx_env.policy import checkpoint

MOST_SECONDS = 2.0
MOST_BYTES = 500 << 20
HANGS = 30  # seconds after which an input is given up

ACCEPTED, REFUSED = "accepted", "refused"


# --- inputs -------------------------------------------------------------------------------------

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, False, "", "x", "base", "../..", "\x00", "\x1b]0;x\x07\u202e", "\ud800"),
        *("9" * 5000, -1, 0, 1, 2, 255, 256, 2**31, 2**63, 2**64, 10**30, 1.5, -0.0, 1e300),
        *([], [[]], {}, [None] * 5, {"a": [{}]}),
    ]
)
WORDS = st.text(max_size=12)


def spoiled(*samples: bytes) -> st.SearchStrategy[bytes]:
    """One of the samples with a few edits: cut, flipped bits, bytes put in, moved, repeated."""
    return st.builds(
        _edit,
        st.sampled_from(samples),
        st.lists(
            st.tuples(
                st.sampled_from(["cut", "flip", "insert", "drop", "repeat", "swap", "number"]),
                st.floats(0, 1, exclude_max=True),
                st.floats(0, 1, exclude_max=True),
                st.one_of(st.binary(max_size=8), st.sampled_from(_TOKENS)),
            ),
            max_size=5,
        ),
    )


_TOKENS = [
    *b'\xff\xfe \xef\xbb\xbf \0 \r \n , " - \xed\xa0\x80 / NaN Infinity 1e999'.split(b" "),
    *(b"-1", b"null", b"true", b"{}", b" ", b"[" * 99, b"9" * 30, b"0" * 40),
]


def _edit(data: bytes, edits: list[tuple[str, float, float, bytes]]) -> bytes:
    for kind, where, far, new in edits:
        a = int(where * len(data))
        b = min(len(data), a + 1 + int(far * far * far * 200))
        if kind == "cut":
            data = data[:a]
        elif kind == "flip" and data:
            data = data[:a] + bytes([data[a] ^ 1 << int(8 * far)]) + data[a + 1 :]
        elif kind == "insert":
            data = data[:a] + new + data[a:]
        elif kind == "drop":
            data = data[:a] + data[b:]
        elif kind == "repeat":
            data = data[:b] + data[a:b] * int(1 + 20 * far) + data[b:]
        elif kind == "swap":
            data = data[:a] + new + data[a + len(new) :]
        elif kind == "number":  # the next digit becomes another
            digits = [at for at in range(a, min(a + 50, len(data))) if data[at : at + 1].isdigit()]
            if digits:
                data = data[: digits[0]] + b"%d" % int(11 * far) + data[digits[0] + 1 :]
    return data[:1_000_000]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where there is something in nested lists and dicts."""
    if isinstance(value, dict):
        keys: Any = value
    else:
        keys = range(len(value)) if isinstance(value, list) else ()
    return [path, *(p for key in keys for p in paths_of(value[key], (*path, key)))]


def altered(*samples: Any) -> st.SearchStrategy[Any]:
    """One of the samples (plain JSON) with up to three places replaced by junk, or left out."""
    whole = [(copy.deepcopy(sample), [p for p in paths_of(sample) if p]) for sample in samples]

    def alter(
        sample: tuple[Any, list[tuple[Any, ...]]], changes: list[tuple[float, Any, bool]]
    ) -> Any:
        data = copy.deepcopy(sample[0])
        for where, junk, leave_out in changes:
            path = sample[1][int(where * len(sample[1]))]
            place = data
            try:
                for step in path[:-1]:
                    place = place[step]
                if leave_out:
                    del place[path[-1]]
                else:
                    place[path[-1]] = junk
            except (KeyError, IndexError, TypeError):  # an earlier change took the place away
                pass
        return data

    change = st.tuples(st.floats(0, 1, exclude_max=True), JUNK, st.booleans())
    return st.builds(alter, st.sampled_from(whole), st.lists(change, min_size=1, max_size=3))


def as_json(data: Any) -> bytes:
    return json.dumps(data).encode()


# --- targets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """An entrance, its inputs, and the allowed outcomes.

    inputs  makes them (called once: samples may take a while)
    enter   takes one; returns ACCEPTED or REFUSED; raises if the input fails
    """

    name: str
    inputs: Callable[[], st.SearchStrategy[Any]]
    enter: Callable[[Any], str]


TARGETS: dict[str, Target] = {}
Enter = Callable[[Any], str | None]


def target(
    inputs: Callable[[], st.SearchStrategy[Any]],
    refuses: tuple[type[Exception], ...] | type[Exception] = (),
    limit: int = 20_000,
) -> Callable[[Enter], Enter]:
    """Add an entrance. Its function returns REFUSED, or None if it accepted the input; the errors
    in `refuses` refuse it, with a message of fewer than `limit` characters."""

    def add(enter: Enter) -> Enter:
        def enter_checked(value: Any) -> str:
            try:
                return enter(value) or ACCEPTED
            except refuses as error:
                short(error, limit)
                return REFUSED

        TARGETS[enter.__name__] = Target(enter.__name__, inputs, enter_checked)
        return enter

    return add


@functools.cache
def folder() -> Path:
    """For the files of this process; removed at its end."""
    path = Path(tempfile.mkdtemp(prefix="oxx-fuzz-"))
    import atexit

    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def file_of(data: bytes, name: str) -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


def short(error: BaseException, limit: int = 3000) -> None:
    """The message of a refusal is one that a person can read."""
    text = str(error)
    assert 0 < len(text) < limit, f"a message of {len(text)} characters: {text[:200]!r}"


# ---- decks


def _decks() -> st.SearchStrategy[bytes]:
    sound = [cards.to_csv(cards.load_deck(name)) for name in cards.DECK_NAMES]
    german = (
        sound[0]
        .replace(",", ";")
        .replace(";".join(cards.HEADER), "Nummer;Blau;Gelb;Grün;Rot;Schwarz;Weiß")
    )
    others = [german.encode("cp1252"), german.replace(";", "\t").encode("utf-16")]
    return spoiled(*(text.encode() for text in sound), *others)


@target(_decks, refuses=cards.DeckError, limit=3000)
def deck(data: bytes) -> str | None:
    path = file_of(data, "deck.csv")
    if cards.check_deck(path):
        return REFUSED
    loaded = cards.load_deck(path)
    assert loaded.shape == (110, 6) and loaded.max() <= 7 and loaded.any(axis=1).all()
    assert (loaded[[51, 103]] == 1).all()
    return None


# ---- positions and records


def a_game(players: int, rules: str, of: int = 1) -> Table:
    table = Table(players, rules, "balanced", of)
    table.deal(seed=players)
    return table


@functools.cache
def some_views() -> list[Any]:
    """Views of both phases, as their JSON."""
    found = []
    rng = np.random.default_rng(1)
    for players, rules in ((2, "positive"), (4, "base"), (3, "color"), (5, "color+positive")):
        table = a_game(players, rules)
        for step in range(30):
            seat = table.deciders()[0]
            if step in (0, 7, 19, 25):
                found.append(table.view(seat).to_dict())
            table.act(seat, int(rng.choice(table.legal(seat))))
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


@functools.cache
def some_records() -> list[Any]:
    """Whole games, one a rule set, and a match of two."""
    found = []
    rng = np.random.default_rng(2)
    for rules, of in (*((name, 1) for name in RULE_SETS), ("base", 2)):
        table = a_game(2, rules, of)
        while not table.over:
            seat = table.deciders()[0]
            table.act(seat, int(rng.choice(table.legal(seat))))
        found.append(records.records_of(table, "m"))
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def _texts() -> st.SearchStrategy[Any]:
    lines = [notation.to_text(notation.view_from_dict(view)) for view in some_views()]
    words = sorted({word for line in lines for word in line.split()})
    some = st.sampled_from(
        [*words, "-", ":", '"', "?", "1:8", "9" * 30, "\n", "deck", "/", "\0", "é"]
    )
    joined = st.lists(some, max_size=30).map(" ".join)
    return st.one_of(joined, spoiled(*(line.encode() for line in lines)).map(_decoded), WORDS)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


@target(_texts, refuses=notation.PositionError, limit=60_000)  # the message shows the text
def position(text: str) -> None:
    view = notation.read_position(text)
    check_dealt(view)
    again = notation.to_text(view)
    assert notation.to_text(notation.from_text(again)) == again


@target(
    lambda: st.one_of(altered(*some_views()).map(as_json), spoiled(*map(as_json, some_views()))),
    refuses=notation.PositionError,
    limit=60_000,
)
def position_json(data: bytes) -> None:
    view = notation.read_position(_decoded(data))
    check_dealt(view)
    assert notation.view_from_dict(view.to_dict()).to_dict() == view.to_dict()


def _lines(some: Any) -> bytes:
    return b"".join(as_json(one) + b"\n" for one in some)


@target(
    lambda: st.one_of(altered(*some_records()).map(_lines), spoiled(*map(_lines, some_records()))),
    refuses=(records.RecordFileError, records.RecordError),
    limit=3000,
)
def record(data: bytes) -> None:
    for result in records.replay_file(file_of(data, "games.jsonl")):
        if isinstance(result, records.RecordError):
            raise result
        result.course()


# ---- checkpoints


@functools.cache
def sound_checkpoint() -> tuple[bytes, dict[str, Any]]:
    """Weights and config of a small policy."""
    path = folder() / "sound"
    from oxx_env.policy.forward import weight_count

    rng = np.random.default_rng(3)
    weights = rng.normal(size=weight_count(16)).astype(np.float32)
    checkpoint.save_checkpoint(path, weights, 16, {"preset": "smoke", "seed": 1}, "a card\n")
    data = (path / checkpoint.WEIGHTS).read_bytes()
    return data, json.loads((path / checkpoint.CONFIG).read_bytes())


def _tensors() -> st.SearchStrategy[bytes]:
    """Weights files: spoiled, and with other headers."""
    sound, _ = sound_checkpoint()
    size = struct.unpack("<Q", sound[:8])[0]
    header, rest = json.loads(sound[8 : 8 + size]), sound[8 + size :]
    name = next(iter(header))

    def with_header(change: tuple[str, Any]) -> bytes:
        new = copy.deepcopy(header)
        new[name][change[0]] = change[1]
        told = json.dumps(new).encode()
        return struct.pack("<Q", len(told)) + told + rest

    def with_weight(change: tuple[int, float]) -> bytes:
        weights = np.frombuffer(rest, np.float32).copy()
        weights[change[0] % len(weights)] = change[1]
        return sound[: 8 + size] + weights.tobytes()

    dtypes = [
        "F64", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "I64", "BOOL", "U8", "C64",
    ]  # fmt: skip
    shapes = [[], [0], [-1], [2**40, 2**40], [1] * 100, [10**18], "x", [1.5], None]
    spans = [[0, 0], [0, 2**63], [8, 4], [-4, 0], [0, 4], None, []]
    values = st.sampled_from([np.nan, np.inf, -np.inf, 1e38, 0.0])
    lengths = st.sampled_from([0, 1, 7, 100_000_000, 100_000_001, 2**31, 2**63, 2**64 - 1])
    return st.one_of(
        spoiled(sound),
        st.sampled_from([("dtype", d) for d in dtypes] + [("shape", s) for s in shapes]).map(
            with_header
        ),
        st.sampled_from([("data_offsets", s) for s in spans]).map(with_header),
        st.tuples(st.integers(0, 10**6), values).map(with_weight),
        lengths.map(lambda n: struct.pack("<Q", n) + sound[8:]),
        altered(header).map(lambda h: struct.pack("<Q", len(as_json(h))) + as_json(h) + rest),
        st.binary(max_size=200),
    )


def _checkpoints() -> st.SearchStrategy[Any]:
    _, config = sound_checkpoint()
    configs = st.one_of(altered(config).map(as_json), spoiled(as_json(config)), st.just(b""))
    places = [
        "/dev/zero", "/dev/null", "/", ".", "..", "weights.safetensors", "nowhere", "/dev/full",
    ]  # fmt: skip
    return st.fixed_dictionaries(
        {
            "weights": st.one_of(st.none(), _tensors()),
            "config": st.one_of(st.none(), configs),
            "resign": st.booleans(),  # the checksum is that of the spoiled weights
            "instead": st.one_of(
                st.none(),
                st.tuples(
                    st.sampled_from([checkpoint.WEIGHTS, checkpoint.CONFIG]),
                    st.sampled_from(["missing", "folder", "pipe", *places]),
                ),
            ),
        }
    )


@target(_checkpoints, refuses=checkpoint.CheckpointError, limit=3000)
def checkpoint_folder(spoil: dict[str, Any]) -> None:
    path = folder() / "checkpoint"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    weights, config = sound_checkpoint()
    if spoil["weights"] is not None:
        weights = spoil["weights"]
    if spoil["resign"]:
        config = {**config, "sha256": hashlib.sha256(weights).hexdigest()}
    (path / checkpoint.WEIGHTS).write_bytes(weights)
    told = as_json(config) if spoil["config"] is None else spoil["config"]
    (path / checkpoint.CONFIG).write_bytes(told)
    if spoil["instead"] is not None:
        name, what = spoil["instead"]
        (path / name).unlink()
        if what == "folder":
            (path / name).mkdir()
        elif what == "pipe":
            os.mkfifo(path / name)
        elif what != "missing":
            (path / name).symlink_to(what)
    vector, _ = checkpoint.load_checkpoint(path)
    bots.make(f"policy:{path}")
    bots.make(f"search:{path}:1")  # by the play-out network that the policy names
    assert np.isfinite(vector).all() and vector.dtype == np.float32


_PATHS = [
    *[
        "..", ".", "/", "~", "../../etc", "/etc/passwd", "/proc/self/mem", "champion/..",
        "/dev/zero", "champion", "con", "./champion", "\\",
    ],
    *("", "a" * 300, "a/" * 3000, "\0", "a\0b", "\ud800", "champion\n"),
]
_SPECS = [
    *[
        "random", "greedy", "mc", "mc:5", "mc:0", "mc:-1", "mc:1ms", "mc:nan", "mc:1e9",
        "mc:5:horizon=0", "mc:5:value=win",
    ],
    *[
        "mc:5:value=", "mc:5:horizon=end:horizon=1", "policy", "policy:", "cheat", ":",
        "careful:1", "GREEDY",
    ],
    *["policy:champion:rows=greedy", "policy:champion:rows=", "search:champion:1"],
]


@target(
    lambda: st.one_of(st.sampled_from(_SPECS + [f"policy:{p}" for p in _PATHS]), WORDS, _specs()),
    refuses=(bots.BotSpecError, checkpoint.CheckpointError),
)
def bot(spec: str) -> None:
    assert bots.make(spec).spec == spec


def _specs() -> st.SearchStrategy[str]:
    parts = st.sampled_from(
        ["mc", "policy", "5", "0", "horizon=", "horizon=3", "value=win", "-", "ms", ""]
    )
    return st.lists(parts, max_size=6).map(":".join)


# ---- what a run and an arena keep


@functools.cache
def sound_config() -> dict[str, Any]:
    from training.config import PRESETS

    return json.loads(json.dumps({**asdict(PRESETS["smoke"]), "init_from": None}))  # type: ignore[no-any-return]


@target(
    lambda: st.one_of(altered(sound_config()).map(as_json), spoiled(as_json(sound_config()))),
    refuses=ValueError,
)
def run_config(data: bytes) -> None:
    from training.train import load_config

    load_config(file_of(data, "config.json"))


@functools.cache
def sound_run() -> Path:
    """The folder of a run that was stopped: smallest games and network."""
    from dataclasses import replace

    from training.config import PRESETS
    from training.train import Run, learn

    path = folder() / "run"
    path.mkdir()
    small = replace(
        PRESETS["smoke"],
        decisions=300,
        hidden=8,
        pool_size=1,
        games=2,
        rollout=512,
        eval_games=2,
    )
    with contextlib.redirect_stderr(io.StringIO()):
        learn(Run.begin(path, small, None))
    (path / "config.json").write_bytes(as_json({**asdict(small), "init_from": None}))
    return path


def _npz(arrays: dict[str, Any], compressed: bool = False) -> bytes:
    data = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (np.savez_compressed if compressed else np.savez)(data, **arrays)
    return data.getvalue()


def _states() -> st.SearchStrategy[bytes]:
    sound = (sound_run() / "state.npz").read_bytes()
    with np.load(io.BytesIO(sound)) as file:
        arrays = {name: file[name] for name in file.files}
    strange = {
        "a number": np.array(3),
        "none": np.zeros(0),
        "a text": np.array("x"),
        "no numbers": np.full(5, np.nan),
        "large": np.zeros((3, 3, 3)),
        "negative": np.full(2, -(2**62)),
        "objects": np.array([{}], object),
        "records": np.zeros(3, [("a", "u1")]),
    }

    def replaced(changes: list[tuple[str, str]]) -> bytes:
        new = dict(arrays)
        for name, what in changes:
            if what == "missing":
                new.pop(name, None)
            elif what == "another type":
                new[name] = np.full(np.shape(arrays[name]), b"x")
            elif what == "cut" and np.ndim(arrays[name]):
                new[name] = arrays[name][: len(arrays[name]) // 2]
            else:
                new[name] = strange.get(what, np.array(0))
        return _npz(new)

    whats = ["missing", "another type", "cut", *strange]
    changes = st.tuples(st.sampled_from(sorted(arrays)), st.sampled_from(whats))
    bomb = _npz({**arrays, "weights": np.zeros(200_000_000, np.uint8)}, compressed=True)
    return st.one_of(
        spoiled(sound),
        st.lists(changes, min_size=1, max_size=2).map(replaced),
        st.sampled_from([bomb[:999_999], _huge(sound, b"(99999999999999,)"), _huge(sound, b"(2,")]),
    )


def _huge(sound: bytes, shape: bytes) -> bytes:
    """The same file with an array whose header promises another shape."""
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sound)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "weights.npy":
                end = data.index(b"\n")
                header = b"{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + b", }"
                data = data[:10] + header.ljust(end - 10) + data[end:]
            new.writestr(name, data)
    return out.getvalue()


@functools.cache
def some_games() -> tuple[Any, Any]:
    """GAME [B] of many sizes and all rule sets, each played on a round further, and their DECK."""
    decks = engine.stack_decks(["balanced"])
    sizes, flags = np.repeat(np.arange(2, 11), 4), np.tile(np.arange(4), 9)
    games = engine.new_games(np.arange(36), decks, sizes, flags)
    who, actions = np.zeros(10 * len(games), engine.PENDING), np.zeros(10 * len(games), np.int64)
    for first in range(len(games)):
        later = games[first:]
        n = int(engine.pending(later, who))
        engine.random_actions(later, decks, who, n, actions)
        engine.step(later, decks, who, n, actions, False)
    return games, decks


def finished_game() -> Any:
    """GAME of two that is over."""
    decks = engine.stack_decks(["balanced"])
    games = engine.new_games([1], decks, 2)
    who, actions = np.zeros(10, engine.PENDING), np.zeros(10, np.int64)
    while n := int(engine.pending(games, who)):
        engine.random_actions(games, decks, who, n, actions)
        engine.step(games, decks, who, n, actions, False)
    return games[0]


def _cells() -> st.SearchStrategy[Any]:
    names = [name for name in GAME.names or () if name != "deck"]
    change = st.tuples(st.sampled_from(names), st.integers(0, 124), st.integers(-2, 300))
    games, _ = some_games()
    return st.tuples(st.integers(0, len(games) - 1), st.lists(change, max_size=3))


@target(_cells)
def loaded_game(told: tuple[int, list[tuple[str, int, int]]]) -> str | None:
    """A game that passes is played to its end, between two records that must not change."""
    index, changes = told
    games, decks = some_games()
    three = views.clone(np.concatenate([games[:1], games[index : index + 1], games[:1]]))
    three["phase"][[0, 2]] = OVER
    for name, cell, value in changes:
        cells = three[name].reshape(3, -1)[1]
        at = cell % len(cells)
        cells[at] = (int(cells[at]) + value) % (int(np.iinfo(cells.dtype).max) + 1)
    try:
        validation.check_games(three[1:2], decks)
    except ValueError as error:
        short(error, 300)
        return REFUSED
    before = three[::2].tobytes()
    three["match_games"][1] = three["match_game"][1]
    who, actions = np.zeros(30, engine.PENDING), np.zeros(30, np.int64)
    while n := int(engine.pending(three, who)):
        engine.random_actions(three, decks, who, n, actions)
        engine.step(three, decks, who, n, actions, False)
    assert three[::2].tobytes() == before, "play wrote outside of its game"
    validation.check_games(three[1:2], decks)
    return None


def check_dealt(view: views.View) -> None:
    """A position that was accepted is sound once its hidden cards are dealt."""
    try:
        games = views.complete(view.games, view.decks, view.seat, 1)
    except ValueError:  # however they are dealt, no card fits
        return
    if engine.pending(games, np.zeros(10, engine.PENDING)):  # at rest
        validation.check_games(games, view.decks)


@target(_states, refuses=ValueError, limit=5000)
def run_state(data: bytes) -> None:
    from training.train import Run

    path = folder() / "spoiled-run"
    path.mkdir(exist_ok=True)
    shutil.copy(sound_run() / "config.json", path)
    (path / "state.npz").write_bytes(data)
    Run.resume(path)


def arena_setup() -> Setup:
    return Setup("arena", ("greedy", "random"), 2, "base", "balanced", 1, 1)


@functools.cache
def sound_log() -> bytes:
    path = folder() / "validation.log"
    player = Player(arena_setup())
    with Log(path, arena_setup()) as log:
        for number in range(3):
            log.append(player.block(number, ((0, 1),)))
    return path.read_bytes()


@target(
    lambda: st.one_of(
        altered([json.loads(line) for line in sound_log().splitlines()]).map(_lines),
        spoiled(sound_log()),
    )
)
def arena_log(data: bytes) -> str | None:
    path = file_of(data, "arena.log")
    try:
        with Log(path, arena_setup()) as log:
            assert len(log.blocks) <= max(3, data.count(b"\n"))
    except ValueError as error:
        short(error, 20_000)
        assert path.read_bytes() == data, "a file that was refused has changed"
        return REFUSED
    return None


@functools.cache
def sound_track() -> Any:
    game = tracker.Tracker(2, "base", cards.load_deck("balanced"), 0)
    game.enter_rows([12, 7, 31, 20, 46])
    game.enter_hand([3, 17, 53, 88])
    game.enter_cards([3, 99])
    return json.loads(json.dumps(game.to_dict()))


@target(
    lambda: st.one_of(altered(sound_track()).map(as_json), spoiled(as_json(sound_track()))),
    refuses=tracker.TrackError,
)
def tracked_game(data: bytes) -> None:
    tracker.Tracker.load(file_of(data, "track.json"))


# ---- environments

_ACTIONS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-2, 11),
    st.sampled_from(["legal"] * 30),
    st.sampled_from(
        [None, "0", 1.0, np.int64(2), np.uint8(255), np.float32(1), True, [], {}, (1,), int]
    )
    | st.sampled_from(
        [2**70, -(2**70), np.array(1), np.array([1, 2]), "legal", object, b"0", 1j, ...]
    ),
)
_ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "num_players": st.one_of(st.integers(0, 12), JUNK),
        "rules": st.one_of(st.sampled_from(RULE_SETS), JUNK),
        "deck": st.one_of(st.sampled_from(cards.DECK_NAMES), JUNK),
        "games_per_match": st.one_of(st.just(2), JUNK),
        "reward": st.one_of(st.sampled_from(["points", "relative", "win"]), JUNK),
        "illegal_action": st.one_of(st.sampled_from(["raise", "substitute"]), JUNK),
        "render_mode": st.one_of(st.sampled_from([None, "ansi"]), JUNK),
    },
)
_OPTIONS = st.one_of(
    st.none(),
    JUNK,
    st.dictionaries(st.sampled_from(["deck", "draw_piles", "rows", "else"]), JUNK, max_size=3),
    st.just({"rows": [1, 2, 3, 4, 5]}),
    st.just({"draw_piles": [[1] * 24] * 2, "rows": [1, 2, 3, 4, 5]}),
    st.just(
        {"draw_piles": [list(range(1, 25)), list(range(25, 49))], "rows": [50, 51, 52, 53, 54]}
    ),
)


def _plays() -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            "arguments": st.one_of(st.just({}), st.just({"num_players": 2}), _ARGUMENTS),
            "seed": st.one_of(st.integers(0, 9), st.none(), JUNK),
            "options": _OPTIONS,
            "actions": st.lists(_ACTIONS, max_size=40),
            "strange": st.sampled_from([False] * 4 + [True]),
        }
    )


def _begin(kind: Any, play: dict[str, Any], early: Any) -> Any:
    """The environment, dealt; before that a step is refused. Raises what it refuses."""
    if play["arguments"].get("render_mode") in ("human", "rgb_array"):
        raise ValueError("pictures are left out here")
    env = kind(**play["arguments"])
    with contextlib.suppress(ResetNeeded, IllegalAction):
        env.step(early)
    env.reset(seed=play["seed"], options=play["options"])
    return env


def _legal(mask: Any) -> int:
    return int(np.flatnonzero(mask)[0])


def _try(env: Any, step: Callable[[], Any]) -> bool:
    """A step that is taken, or refused and then leaves everything as it was."""
    table = env.match.table
    before = table.games.tobytes()
    try:
        step()
    except (IllegalAction, ResetNeeded) as error:
        short(error, 20_000)
        assert table.games.tobytes() == before, "a step that was refused changed the game"
        return False
    assert table.games.tobytes() != before or not env.match.table.deciders()
    return True


def _is_legal(action: Any) -> bool:
    return isinstance(action, str) and action == "legal"


@target(_plays, refuses=(ValueError, ResetNeeded))
def parallel_actions(play: dict[str, Any]) -> str | None:
    env = _begin(BaronOxxParallel, play, {})
    taken = True
    for at, action in enumerate(play["actions"]):
        actions: Any = {
            agent: _legal(env.match.observe(s)[1]) for s, agent in enumerate(env.agents)
        }
        if not _is_legal(action):
            if play["strange"]:
                others = [{"player_0": action}, {**actions, "nobody": 1}]
                actions = [action, *others, {**actions, action.__class__: 1}][at % 4]
            elif env.agents:
                actions[env.agents[at % len(env.agents)]] = action
        if not env.agents and not actions:
            assert env.step({})[0] == {}
            continue
        taken &= _try(env, functools.partial(env.step, actions))
    return None if taken else REFUSED


@target(_plays, refuses=(ValueError, ResetNeeded))
def aec_actions(play: dict[str, Any]) -> str | None:
    env = _begin(BaronOxxAEC, play, 0)
    taken = True
    for action in play["actions"]:
        if not env.agents:
            break
        if env.terminations[env.agent_selection]:
            with contextlib.suppress(ValueError):  # PettingZoo's own: only None is valid now
                env.step(None if isinstance(action, str) else action)
            continue
        if _is_legal(action):
            action = _legal(env.observe(env.agent_selection)["action_mask"])
        taken &= _try(env, functools.partial(env.step, action))
    return None if taken else REFUSED


@target(_plays, refuses=(ValueError, ResetNeeded))
def gymnasium_actions(play: dict[str, Any]) -> str | None:
    number = play["seed"]
    if not isinstance(number, int | None) or isinstance(number, bool) or (number or 0) < 0:
        return REFUSED  # Gymnasium checks it itself, with errors of its own
    env = _begin(BaronOxxSingle, play, 0)
    taken = True
    for action in play["actions"]:
        if _is_legal(action):
            action = _legal(env.action_masks())
        taken &= _try(env, functools.partial(env.step, action))
    return None if taken else REFUSED


def _batch_plays() -> st.SearchStrategy[Any]:
    whole = st.sampled_from(
        [None, [], [1], 5, "x", [1.0, 2.0], [[1, 1]], [np.nan] * 2, [2**70] * 2, [True, False]]
        + [[-1, 0], [300, 0], [10, 10], [9, 9], [0, 0], [3, 3], [4, 8]]
        + ["legal"] * 4
    )
    return st.fixed_dictionaries(
        {
            "arguments": st.fixed_dictionaries(
                {},
                optional={
                    "players": st.one_of(st.just([2, 10]), JUNK),
                    "rules": st.one_of(st.just(list(RULE_SETS)), JUNK),
                    "deck": st.one_of(st.just(list(cards.DECK_NAMES)), JUNK),
                    "opponents": st.one_of(st.just(["greedy", "random"]), JUNK),
                    "seat": st.one_of(st.integers(-1, 3), JUNK),
                    "reward": st.one_of(st.just("win"), JUNK),
                    "reward_scale": JUNK,
                    "illegal_action": st.sampled_from(["raise", "substitute"]),
                    "games_per_match": JUNK,
                    "seed": st.one_of(st.integers(0, 5), JUNK),
                },
            ),
            "actions": st.lists(whole, max_size=30),
        }
    )


@target(_batch_plays, refuses=ValueError)
def vector_actions(play: dict[str, Any]) -> str | None:
    from oxx_env.envs.vector import BaronOxxVecEnv

    env = BaronOxxVecEnv(2, **play["arguments"])
    env.reset()
    taken = True
    for actions in play["actions"]:
        if _is_legal(actions):
            actions = env.action_masks().argmax(axis=1)
        before = env.batch._games.tobytes()
        try:
            env.step(actions)
        except IllegalAction as error:
            short(error, 20_000)
            assert env.batch._games.tobytes() == before
            taken = False
        assert env.action_masks().any(axis=1).all()
    return None if taken else REFUSED


# --- running ------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of one target's inputs."""

    name: str
    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0  # seconds of processor time
    grown: int = 0  # bytes of memory, most
    failure: str = ""


@contextlib.contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    def give_up(signum: int, frame: Any) -> None:
        raise TimeoutError(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(name: str, examples: int, number: int = 0) -> Outcome:
    """Let so many inputs through a door. `number` is the seed of their making."""
    door = TARGETS[name]
    inputs = door.inputs()
    outcome = Outcome(name)
    first = True
    start = most_memory()

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(inputs)
    def let_through(value: Any) -> None:
        nonlocal first, start
        begun = time.process_time()
        with no_longer_than(HANGS):
            came = door.enter(value)
        took = time.process_time() - begun
        if took > MOST_SECONDS:  # once more: the first time it may have compiled and imported
            begun = time.process_time()
            door.enter(value)
            took = time.process_time() - begun
        if first:
            first, start = False, most_memory()
        outcome.inputs += 1
        outcome.outcomes[came] += 1
        outcome.slowest = max(outcome.slowest, took)
        outcome.grown = max(outcome.grown, most_memory() - start)
        assert took <= MOST_SECONDS, f"took {took:.1f} seconds"
        assert outcome.grown <= MOST_BYTES, f"grew by {outcome.grown >> 20} MB"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            let_through()
        except Exception as error:
            text = "".join(traceback.format_exception(error, limit=-6, chain=False))
            notes = "\n".join(getattr(error, "__notes__", []))
            outcome.failure = f"{text[:4000]}{notes[:3000]}"
    return outcome


@dataclass(frozen=True, kw_only=True)
class Options:
    """Let spoiled inputs through every door."""

    examples: int = 300
    """Inputs for each target."""
    only: tuple[str, ...] = ()
    """Targets by name; empty: all."""
    seed: int = 0
    """Of the inputs' making."""


def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    unknown = set(options.only) - set(TARGETS)
    if unknown or options.examples < 1:
        print(f"fuzz: unknown targets {unknown}; there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    failed = 0
    print("| door | inputs | accepted | refused | slowest, s | grown, MB | failures |")
    print("|---|---|---|---|---|---|---|")
    for name in options.only or TARGETS:
        few = name == "run_state"
        found = run(name, max(1, options.examples // (5 if few else 1)), options.seed)
        failed += bool(found.failure)
        print(
            f"| {name.replace('_', ' ')} | {found.inputs:,} | {found.outcomes[ACCEPTED]:,}"
            f" | {found.outcomes[REFUSED]:,} | {found.slowest:.2f} | {found.grown >> 20}"
            f" | {1 if found.failure else 0} |",
            flush=True,
        )
        if found.failure:
            print(f"{name}:\n{found.failure}\n", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
