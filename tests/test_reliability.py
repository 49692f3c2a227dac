"""The commands of `tests/stress/` do what they say; a little of each."""

from __future__ import annotations

import errno
import importlib
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from oxx_env.arena.blocks import Block
from oxx_env.arena.log import Log
from oxx_env.lib.files import open_atomic, remove_unfinished
from tests.stress import counts, endure, fuzz, kill, mutants, verify


@pytest.mark.slow
def test_a_unit_of_random_games_is_equal_and_repeats() -> None:
    kinds = {verify.play_unit(0, number).kind for number in (0, 4)}
    assert kinds == {"mono", "heavy"}
    one, two = verify.play_unit(5, 1), verify.play_unit(5, 1)
    assert one == two and not one.fault
    assert one.games == verify.UNIT_GAMES and one.states > 50 * one.games


def test_a_difference_from_the_reference_stops_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fifth = 5
    monkeypatch.setattr(verify.tracing.reference, "SIXTH_CARD", fifth)
    assert verify.main(["--games", "1"]) == 1
    assert "differs" in capsys.readouterr().out


@pytest.mark.parametrize("position", counts.POSITIONS, ids=lambda position: position.name)
def test_kernel_and_reference_count_the_same_sequences(position: counts.Position) -> None:
    assert counts.by_kernel(position, 6) == list(position.counts)
    assert counts.by_reference(position, 4) == list(position.counts[:4])


def test_every_clause_has_a_mutant_and_each_has_its_one_place() -> None:
    source = mutants.RULES.read_text(encoding="utf-8")
    for mutant in mutants.MUTANTS:
        compile(mutants.mutated(mutant, source), mutant.what, "exec")
    clauses = {mutant.clause for mutant in mutants.MUTANTS}
    assert clauses == {f"R{n}" for n in range(1, 14)} | {"V1"} | {f"V2{c}" for c in "abcdef"}
    assert len(mutants.MUTANTS) >= 25
    assert len({mutant.what for mutant in mutants.MUTANTS}) == len(mutants.MUTANTS)


@pytest.mark.slow
def test_both_nets_catch_a_changed_rule_and_let_the_true_rules_pass(tmp_path: Path) -> None:
    rules = mutants.copy_of_project(tmp_path)
    source = rules.read_text(encoding="utf-8")
    (mutant,) = [m for m in mutants.MUTANTS if m.what == "the seventh card takes"]
    rules.write_text(mutants.mutated(mutant, source), encoding="utf-8")
    verdict = mutants.judge(tmp_path, deals=False)
    assert verdict.test.startswith("test_r7") and "points" in verdict.reference
    rules.write_text(source, encoding="utf-8")
    assert mutants.judge(tmp_path, deals=False) == mutants.Verdict("", "")


def test_a_mutant_without_its_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 places"):
        mutants.mutated(mutants.Mutant("R1", "nothing", "no such text", ""), "source")
    assert np.unique([m.clause for m in mutants.MUTANTS]).size == 20


# ---- Fuzzing guided by coverage


def test_without_atheris_it_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "atheris", None)
    monkeypatch.delitem(sys.modules, "tests.stress.guided", raising=False)
    with pytest.raises(SystemExit) as end:
        importlib.import_module("tests.stress.guided")
    assert end.value.code == 2 and "atheris is not installed" in capsys.readouterr().err


# ---- Long runs


@pytest.mark.slow
def test_memory_does_not_grow_with_decisions_and_games(capsys: pytest.CaptureFixture[str]) -> None:
    assert endure.main(["--decisions", "100000", "--games", "40", "--no-compile"]) == 0
    assert capsys.readouterr().out.count("grown by") == 2


def test_memory_that_grows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter(range(0, 400 << 20, 1 << 20))
    monkeypatch.setattr(endure, "memory", lambda: next(used))
    monkeypatch.setattr(endure, "play", lambda goal: iter(range(1, goal + 1)))
    assert endure.growth(endure.watch(endure.play, 100)) == 17 << 20
    assert endure.main(["--decisions", "0", "--games", "100", "--no-compile"]) == 1


@pytest.mark.slow
def test_two_processes_that_compile_at_once_do_not_disturb_each_other() -> None:
    told = endure.compile_at_once()
    assert len(set(told)) == 1 and len(told[0]) == 64


# ---- Kills and disks


@pytest.mark.slow
def test_killed_arenas_go_on_from_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fewer = ["600" if word == "20000" else word for word in kill.ARENA]
    monkeypatch.setattr(kill, "ARENA", fewer)  # the kills come at random parts of the time it takes
    table = kill.kill_often(kill.arena(tmp_path, 1), tmp_path, 2, random.Random(1))
    assert not table.faults and table.kills == 2 and table.equal == table.finished > 0


def test_half_written_things_are_faults(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"format": "x"}\n{"block": 0}\n{"block": 2}\n{"blo')
    blocks, faults = kill.look_at_log(log)
    assert blocks == 2 and len(faults) == 3
    (tmp_path / "pool").mkdir()
    (tmp_path / "config.json").write_text('{"a"')
    (tmp_path / "state.npz").write_bytes(b"PK")
    (tmp_path / "pool" / "snapshot-1.safetensors").write_bytes(b"")
    assert len(kill.look_at_run(tmp_path)) == 3


def test_what_a_killed_process_left_beside_is_removed(tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    for name in (".state.npz.0123456789abcdef", "pool/.manifest.json.0123456789abcdef"):
        (tmp_path / name).touch()
    for name in (".hidden", "state.npz", ".a.0123", "0123456789abcdef"):
        (tmp_path / name).touch()
    assert kill.unfinished(tmp_path) == 2
    remove_unfinished(tmp_path)
    left = {path.name for path in tmp_path.rglob("*")}
    assert left == {".hidden", "state.npz", ".a.0123", "0123456789abcdef", "pool"}


@pytest.mark.parametrize("write", [lambda file: file.write("x" * 100_000), lambda file: None])
def test_a_full_disk_is_told_with_the_files_name_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[IO[str]], object]
) -> None:
    path = tmp_path / "state"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as error, open_atomic(path) as file:
        write(file)
    assert error.value.filename == str(path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["state"]


def test_a_log_on_a_full_disk_names_its_file(tmp_path: Path) -> None:
    with Log(tmp_path / "log", fuzz.arena_setup()) as log:
        assert log._file is not None
        log._file.close()
        log._file = open("/dev/full", "wb")  # noqa: SIM115
        with pytest.raises(OSError, match="No space") as error:
            log.append(Block(0, ((0, 1),), [[[1, 2], [2, 1]]], [0.0, 0.0], [1, 1]))
    assert error.value.filename == str(tmp_path / "log")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev/null", "/"])
def test_a_log_that_is_no_file_is_refused_unread(path: str) -> None:
    with pytest.raises(ValueError, match="is no file"), Log(path, fuzz.arena_setup()):
        pass
