"""The scripts of `examples/`: those of stable-baselines3 and torch run here, the others by `make
examples`, each with its library in an environment of its own."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

from oxx_env import baron_oxx_v0

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


def run(name: str, *options: str, monkeypatch, capsys) -> str:
    """What the script prints."""
    pytest.importorskip("sb3_contrib", reason="needs pip install 'oxx_env[train]'")
    monkeypatch.setattr(sys, "argv", [name, *options])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_each_is_short_and_says_what_it_shows_how_to_install_it_and_with_which_version(script):
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    told = ast.get_docstring(ast.parse(text)) or ""
    (command,) = re.findall(r"^    pip install (.*?) oxx_env +# run with", told, re.MULTILINE)
    assert "'torch>=2.8,<2.14'" in command  # in the same command: an open bound takes gigabytes
    assert re.search(r"# run with .*\d+\.\d+\.\d+$|# run with both \d+\.\d+\.\d+$", told)
    table = (ROOT / "docs" / "libraries.md").read_text(encoding="utf-8")
    assert f"examples/{script.name}" in table


@pytest.mark.slow
def test_maskable_ppo_learns_in_the_batch_of_games(monkeypatch, capsys):
    options = ("--decisions", "4096", "--games", "20")
    told = run("sb3.py", *options, monkeypatch=monkeypatch, capsys=capsys)
    before, after = map(float, re.findall(r": (-?\d+\.\d+)", told))
    assert "after 4096 decisions" in told
    assert -110 < before < after < 0  # greedy is far better than either


@pytest.mark.slow
def test_ppo_by_torch_alone_runs_through(monkeypatch, capsys):
    told = run("torch_ppo.py", "--updates", "1", monkeypatch=monkeypatch, capsys=capsys)
    (won,) = re.findall(r": (-?\d+\.\d+)$", told, re.MULTILINE)
    assert abs(float(won)) < 20


def test_seats_that_wait_are_no_samples_and_their_rewards_are_not_lost():
    torch = pytest.importorskip("torch", reason="needs pip install 'oxx_env[train]'")
    script = runpy.run_path(str(ROOT / "examples" / "torch_ppo.py"))
    env = baron_oxx_v0.parallel_env(num_players=4)
    env.reset(seed=3)
    for _ in range(5):
        seats = script["play"](env, 4 * [lambda obs: torch.zeros(11)])
        scores = env.records()[0]["scores"]
        assert [-sum(decision[-1] for decision in seat) for seat in seats] == scores
        for _, mask, action, *_ in (decision for seat in seats for decision in seat):
            assert mask.sum() >= 2 and mask[action] and action != 9
