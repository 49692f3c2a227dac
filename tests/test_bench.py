"""`oxx bench` says what it promises to say; how fast it is depends on the machine."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxx_env import engine
from oxx_env.commands import _benchmark, _cli
from oxx_env.game.rules import GAME


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return _benchmark.run(quick=True, seed=3)


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
    rates += [result["two_cores"][name] for name in ("one", "two", "gain")]
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
        each = _benchmark.decisions_per_placement(policy, 4, games=50)
        assert 3 / 4 < each < 3 / 4 + 1


def test_the_batch_of_the_benchmark_observes_what_it_steps() -> None:
    seen, unseen = _benchmark.Batch(16, True), _benchmark.Batch(16, False)
    for _ in range(30):
        assert seen.step() == unseen.step()
    assert seen.games.tobytes() == unseen.games.tobytes()
    assert np.abs(seen.observations[: seen.n]).sum(axis=1).all()
    assert seen.masks[: seen.n].any(axis=1).all()
    assert set(seen.nanoseconds(3)) == {"list", "observe", "mask", "choose", "step"}


def test_the_command_prints_one_json_object_or_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, result: dict[str, Any]
) -> None:
    monkeypatch.setattr(_benchmark, "run", lambda quick, seed: result)
    assert _cli.main(["bench", "--quick", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["rollouts"][0]["policy"] == "random"
    assert _cli.main(["bench", "--quick"]) == 0
    out = capsys.readouterr().out
    for word in ("Roll-outs", "Batches", "parallel", "vecenv", "Memory", "numba"):
        assert word in out


def test_without_stable_baselines3_the_vecenv_has_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_benchmark.importlib.util, "find_spec", lambda name: None)
    assert _benchmark.api(_benchmark.Clock(0.0, 1))["vecenv"] is None


# --- beside peers -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def peers() -> Any:
    path = Path(__file__).parents[1] / "benchmarks" / "peers.py"
    spec = importlib.util.spec_from_file_location("peers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_document_holds_ratios_versions_and_the_command(
    peers: Any, result: dict[str, Any]
) -> None:
    found = [
        {"key": key, "title": title, "versions": {"x": "1.2"}, "actions": 3e6, "decisions": 2e6}
        for key, (title, _, _) in peers.PEERS.items()
    ]
    found[2] = {"key": "spiel-python", "title": "OpenSpiel", "missing": "not installed (pyspiel)"}
    text = peers.figures({**result, "load": 0.1, "drift": (0.9, 1.1)}, found, "make bench")
    random4 = next(row for row in result["rollouts"] if row["players"] == 4)
    assert f"**{random4['decisions_per_cpu_s'] / 2e6:.1f}×**" in text
    assert "make bench" in text and "x 1.2" in text and result["machine"]["numba"] in text
    assert "| OpenSpiel |  | not installed (pyspiel) |" in text


def test_a_peer_that_is_not_there_is_named(peers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Any:
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    monkeypatch.setitem(peers.PEERS, "gone", ("A peer", (), absent))
    assert peers.measure("gone") == {
        "key": "gone",
        "title": "A peer",
        "versions": {},
        "missing": "not installed (nowhere)",
    }
    monkeypatch.setitem(peers.PEERS, "broken", ("A peer", (), lambda: 1 / 0))
    assert peers.measure("broken")["missing"] == "failed: ZeroDivisionError: division by zero"


def test_only_the_figures_of_the_document_are_replaced(peers: Any, tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text(f"before\n{peers.BEGIN}\nold\n{peers.END}\nafter\n")
    peers.write(document, f"{peers.BEGIN}\nnew\n{peers.END}")
    assert document.read_text() == f"before\n{peers.BEGIN}\nnew\n{peers.END}\nafter\n"
    shipped = peers.DOCUMENT.read_text()
    assert shipped.count(peers.BEGIN) == shipped.count(peers.END) == 1
