"""The commands of `reliability/` do what they say; a little of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reliability import counts, mutants, verify


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
