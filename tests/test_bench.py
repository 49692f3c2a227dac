"""`oxx bench` says what it promises to say; how fast it is depends on the machine."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from oxx_env import benchmark, cli, engine
from oxx_env.rules import GAME


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return benchmark.run(quick=True, seed=3)


def test_every_figure_of_the_contract_is_there(result: dict[str, Any]) -> None:
    rollouts = {(row["policy"], row["players"]) for row in result["rollouts"]}
    assert rollouts == {(p, n) for p in ("random", "greedy") for n in (2, 4, 10)}
    batched = {(row["batch"], row["observe"]) for row in result["batched"]}
    assert batched == {(b, o) for b in (1, 64, 1024, 8192) for o in (False, True)}
    assert set(result["api"]) == {"parallel", "aec", "gymnasium", "vecenv"}
    for row in result["rollouts"]:
        assert {"games_per_cpu_s", "placements_per_cpu_s"} <= row.keys()
    assert all("decisions_per_cpu_s" in row for row in result["batched"])


def test_all_rates_are_positive_numbers(result: dict[str, Any]) -> None:
    rates = [value for row in result["rollouts"] + result["batched"] for value in row.values()]
    rates += result["api"].values()
    rates += [result["two_cores"]["one"], result["two_cores"]["two"]]
    numbers = [rate for rate in rates if isinstance(rate, float)]
    assert len(numbers) > 40
    assert all(math.isfinite(rate) and rate > 0 for rate in numbers)


def test_the_machine_and_the_versions_are_named(result: dict[str, Any]) -> None:
    assert {"processor", "cores", "load", "python", "numpy", "numba"} <= result["machine"].keys()
    assert result["memory_bytes"]["game"] == GAME.itemsize


def test_a_game_has_its_placements(result: dict[str, Any]) -> None:
    """In the base game every dealt card is placed, so the two rates differ by that factor."""
    for row in result["rollouts"]:
        dealt = {2: 48, 4: 64, 10: 80}[row["players"]]
        assert row["placements_per_cpu_s"] == pytest.approx(dealt * row["games_per_cpu_s"])


def test_decisions_are_seats_with_a_choice() -> None:
    """Three cards of each hand of four are chosen; row choices come on top, at most one a card."""
    for policy in engine.POLICIES:
        each = benchmark.decisions_per_placement(policy, 4, games=50)
        assert 3 / 4 < each < 3 / 4 + 1


def test_the_batch_of_the_benchmark_observes_what_it_steps() -> None:
    seen, unseen = benchmark.Batch(16, True), benchmark.Batch(16, False)
    for _ in range(30):
        assert seen.step() == unseen.step()
    assert seen.games.tobytes() == unseen.games.tobytes()
    assert np.abs(seen.observations[: seen.n]).sum(axis=1).all()
    assert seen.masks[: seen.n].any(axis=1).all()
    assert set(seen.nanoseconds(3)) == {"list", "observe", "mask", "choose", "step"}


def test_the_command_prints_one_json_object_or_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, result: dict[str, Any]
) -> None:
    monkeypatch.setattr(benchmark, "run", lambda quick, seed: result)
    assert cli.main(["bench", "--quick", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["rollouts"][0]["policy"] == "random"
    assert cli.main(["bench", "--quick"]) == 0
    out = capsys.readouterr().out
    for word in ("Roll-outs", "Batches", "parallel", "vecenv", "Memory", "numba"):
        assert word in out


def test_without_stable_baselines3_the_vecenv_has_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(benchmark.importlib.util, "find_spec", lambda name: None)
    assert benchmark.api(benchmark.Clock(0.0, 1))["vecenv"] is None
