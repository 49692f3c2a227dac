"""Measuring strength: what is kept is used again or refused, and wrong options are explained."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from oxx_env.policy.checkpoint import checksum, load_checkpoint
from training import ablate, evaluate, report, strength


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON file"),
        ("[]", "holds no finished rows"),
        ('{"rows": {"2 players, base, balanced, greedy": {}}}', "holds no finished rows"),
        ('{"rows": {}}', "made with another sha256, seed, share"),
    ],
)
def test_a_file_of_rows_that_is_none_is_refused_and_left_alone(
    tmp_path: Path, capsys: Any, text: str, message: str
) -> None:
    out = tmp_path / "strength.json"
    out.write_text(text)
    assert strength.main(["quick", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert message in said and str(out) in said
    assert out.read_text() == text


def test_finished_rows_are_not_played_again(tmp_path: Path, capsys: Any) -> None:
    row = {
        **{"rules": "base", "deck": "balanced", "games": 10, "win_share": 0.75},
        **{"ci95": [0.7, 0.8], "mean_points": 1.0, "points_ci95": [0.5, 1.5]},
        **{"baseline_points": 2.0},
    }
    rows = {r.name: {**row, "against": r.against, "players": r.players} for r in strength.rows()}
    out = tmp_path / "strength.json"
    kept = {"sha256": checksum("quick"), "seed": 1, "share": 1.0, "rows": rows}
    out.write_text(json.dumps(kept))
    assert strength.main(["quick", "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert told.out.count("0.750 (0.700 to 0.800)") == len(rows)
    assert "..." not in told.err  # said of a row that is played


def test_a_new_card_keeps_the_sections_of_others() -> None:
    facts = {**load_checkpoint("quick")[1], "preset": "quick"}
    old = report.model_card(facts, "old table").replace(
        "## Limits", "## With time to think\n\nmore\n\n## Limits"
    )
    card = report.model_card(facts, "new table", name="mine")
    new = report.with_sections_of(old, card)
    assert new.startswith("# Policy `mine`") and "policy:mine" in new
    assert "new table" in new and "old table" not in new
    assert re.findall("^## .*", new, re.MULTILINE) == [
        "## Strength", "## With time to think", "## Limits"
    ]  # fmt: skip
    assert report.with_sections_of(new, card) == new


@pytest.mark.parametrize(
    ("main", "options", "message"),
    [
        (strength.main, ["quick", "--share", "0"], "share is above 0 and at most 1, not 0"),
        (strength.main, ["quick", "--workers", "0"], "workers is at least 1"),
        (strength.main, ["nonesuch"], "no checkpoint folder 'nonesuch'"),
        (evaluate.main, ["quick", "--against"], "against: at least one"),
        (evaluate.main, ["quick", "--games", "0"], "games is at least 1, not 0"),
        (evaluate.main, ["quick", "--players", "11"], "players is from 2 to 10, not 11"),
        (ablate.main, ["--seeds"], "seeds: at least one"),
        (ablate.main, ["--decisions", "0"], "decisions is at least 1"),
        (ablate.main, ["--eval-games", "4"], "eval_games is at least 10"),
        (ablate.main, ["--warm", "nonesuch"], "nonesuch is no checkpoint"),
    ],
)
def test_a_wrong_option_is_explained(
    capsys: Any, main: Any, options: list[str], message: str
) -> None:
    assert main(options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("script", [["training/evaluate.py"], ["-m", "training.evaluate"]])
def test_a_script_starts_as_a_file_and_as_a_module(script: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *script, "nonesuch"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("evaluate.py: there is no checkpoint folder 'nonesuch'")


def test_ablation_runs_of_other_options_are_not_taken_for_these(tmp_path: Path) -> None:
    folder = tmp_path / "as-in-quick-1"
    folder.mkdir()
    made = {"decisions": 5000, "eval_every": 100_000, "eval_games": 3000}
    (folder / "config.json").write_text(json.dumps(made))
    with pytest.raises(ValueError, match="was made with decisions 5000, not 6000"):
        ablate.run(ablate.Options(run_dir=tmp_path, decisions=6000), "as in quick", 1)
