"""Comparisons that take long: at equal time, and by regret; the network that plays out."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxx_env.policy.checkpoint import find_checkpoint, load_rollout_net
from training import advice, equal_time, imitate, regret
from training.rows import Rows


def row(**change: Any) -> dict[str, Any]:
    plain = {
        "bot": "search", "against": "mc", "players": 2, "ms": 5.0, "games": 1000,
        "win_share": 0.6, "ci95": [0.57, 0.63], "times_parity": 1.2,
        "ms_per_decision": {"search": 5.1, "mc": 5.2},
    }  # fmt: skip
    return {**plain, **change}


# --- rows that are kept -------------------------------------------------------------------------


def test_rows_are_read_back_and_belong_to_their_key(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rows.json"
    Rows(path, {"seed": 1}, {"games"}).add("a", {"games": 3})
    assert Rows(path, {"seed": 1}, {"games"}).done == {"a": {"games": 3}}
    with pytest.raises(ValueError, match="made with another seed"):
        Rows(path, {"seed": 2}, {"games"})
    with pytest.raises(ValueError, match="no finished rows"):
        Rows(path, {"seed": 1}, {"win_share"})


# --- at equal time ------------------------------------------------------------------------------


def test_every_table_and_time_has_three_line_ups_short_ones_first() -> None:
    options = equal_time.Options(times=(100, 5), players=(2, 6))
    found = equal_time.line_ups(options)
    assert [(p, ms) for *_, p, ms in found] == [(2, 5)] * 3 + [(6, 5)] * 3 + [(2, 100)] * 3
    assert found[0][2:4] == ("search:champion:5ms", "mc:5ms")


def test_finished_rows_are_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Any] = []
    real = equal_time.arena.play

    def play(specs: Any, *args: Any, **options: Any) -> Any:
        played.append(specs)
        return real(["greedy", "random"], *args, **options)

    monkeypatch.setattr(equal_time.arena, "play", play)
    monkeypatch.setattr(
        equal_time, "line_ups", lambda _: [("greedy", "random", "greedy", "random", 2, 5.0)]
    )
    options = equal_time.Options(games=(20, 20), out=tmp_path / "rows.json", workers=1)
    equal_time.measure(options)
    equal_time.measure(options)
    assert len(played) == 1
    kept = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert kept["2 players, 5 ms, greedy among random"]["games"] == 20
    equal_time.measure(replace(options, games=(40, 20)))  # the 20 were a trial
    equal_time.measure(options)
    kept = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert len(played) == 2
    assert kept["2 players, 5 ms, greedy among random"]["games"] == 40


def test_the_table_and_plot_go_between_the_marks(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    shutil.copytree(find_checkpoint("quick"), policy)
    options = equal_time.Options(out=tmp_path / "rows.json", checkpoint=str(policy))
    rows = equal_time.rows_of(options)
    rows.add("a", row())
    rows.add("b", row(bot="mc", against="policy", players=4))
    page = tmp_path / "strength.md"
    page.write_text(f"before\n{equal_time.BEGIN}\nold\n{equal_time.END}\nafter\n")
    equal_time.write(options, tmp_path)
    text = page.read_text()
    assert "0.600 (0.570 to 0.630)" in text and "\nold\n" not in text
    assert text.startswith("before\n") and text.endswith("after\n")
    assert (tmp_path / "images" / "equal-time.png").stat().st_size > 5000
    card = policy / "README.md"
    without = card.read_text()
    assert "0.600" not in without
    card.write_text(f"{without}\n{equal_time.BEGIN}\n{equal_time.END}\n")
    equal_time.write(options, tmp_path)
    assert card.read_text().startswith(without) and "0.600 (0.570 to 0.630)" in card.read_text()
    page.write_text("no marks")
    with pytest.raises(ValueError, match="lacks the marks"):
        equal_time.write(options, tmp_path)


# --- regret -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_regret_is_told_and_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regret, "GAMES", 4)
    arguments = ["--positions", "40", "--deals", "3", "--players", "2", "3", "--worst", "1"]
    arguments += ["--out", str(tmp_path / "regret.json"), "--agents", "policy:quick"]
    assert regret.main(arguments) == 0
    first = capsys.readouterr().out
    assert "| all | 40 |" in first and "it plays" in first and "seat" in first
    assert set(re.findall(r"row (\d)", first)) <= set("01234")  # as everywhere else
    kept = (tmp_path / "regret.json").read_text()
    assert regret.main([*arguments, "greedy"]) == 0  # one more agent: values stay
    again = json.loads((tmp_path / "regret.json").read_text())
    before = json.loads(kept)["rows"]["0"]
    assert again["rows"]["0"]["first"] == before["first"]
    assert set(again["rows"]["0"]["choices"]) == {"policy:quick", "greedy"}
    again["rows"]["0"]["choices"]["policy:quick"] = [0] * 40  # by other weights
    again["rows"]["0"]["weights"]["policy:quick"] = "0"
    (tmp_path / "regret.json").write_text(json.dumps(again))
    assert regret.main(arguments) == 0
    assert capsys.readouterr().out.endswith(first)


def test_decisions_of_one_game_count_together() -> None:
    values = np.random.default_rng(0).normal(size=400)
    alone = regret.half_width(values, np.arange(400))
    assert alone == pytest.approx(1.96 * values.std(ddof=1) / 20)
    twice = regret.half_width(np.repeat(values, 2), np.repeat(np.arange(400), 2))
    assert twice == pytest.approx(alone)  # the same decision a second time tells nothing


def test_luck_in_the_first_half_is_no_regret() -> None:
    """An agent that plays what the first half says is best has a regret of zero."""
    kept = Rows(Path("nowhere.json"), {}, set())
    kept.done = {
        "0": {
            "first": [{"0": 1.0, "1": 5.0}],
            "second": [{"0": 2.0, "1": 0.0}],
            "choices": {"a": [1], "b": [0]},
        }
    }
    found = regret.judge(regret.Options(agents=("a", "b"), positions=1), kept)
    assert found.regret["a"].tolist() == [0.0]
    assert found.regret["b"].tolist() == [-2.0]
    assert found.values[0, :2].tolist() == [1.5, 2.5] and np.isnan(found.values[0, 2:]).all()


# --- the network that plays out -----------------------------------------------------------------


def test_a_tiny_network_imitates_a_policy_and_is_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--policy", "quick", "--run-dir", str(tmp_path), "--decisions", "3000"]
    assert imitate.main([*arguments, "--unseen", "5", "--epochs", "2"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    _, config = load_rollout_net(tmp_path / "checkpoint")
    assert config["unseen_looked_at"] == 5
    assert 0 < told["kl"] < 2


# --- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("main", "arguments", "what"),
    [
        (equal_time.main, ["--times", "0"], "times is from 0.1 to 10000, not 0.0"),
        (equal_time.main, ["--players", "11"], "players is from 2 to 10"),
        (equal_time.main, ["--games", "1", "1"], "games is at least 20"),
        (equal_time.main, ["--workers", "0"], "workers is from 1"),
        (equal_time.main, ["--checkpoint", "nobody"], "shipped ones"),
        (regret.main, ["--players", "11"], "players is from 2 to 10, not 11"),
        (regret.main, ["--players", "1"], "players is from 2 to 10, not 1"),
        (regret.main, ["--players"], "players: at least one"),
        (regret.main, ["--agents"], "agents: at least one"),
        (regret.main, ["--deals", "0"], "deals is at least 1"),
        (regret.main, ["--seed", "-1"], "seed is from 0"),
        (imitate.main, ["--policy", "nobody"], "shipped ones"),
        (imitate.main, ["--epochs", "0"], "epochs is at least 1"),
        (imitate.main, ["--unseen", "0"], "unseen is from 1"),
    ],
)
def test_a_wrong_option_ends_with_2(
    main: Callable[[list[str]], int],
    arguments: list[str],
    what: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(arguments) == 2
    assert what in capsys.readouterr().err


# --- advice -------------------------------------------------------------------------------------


def test_advice_is_measured_and_goes_on_where_it_was(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regret, "GAMES", 4)
    arguments = ["--positions", "4", "--players", "2", "--seeds", "2", "--deals", "30"]
    arguments += ["--bot", "search:quick:30", "--out", str(tmp_path / "advice.json")]
    assert advice.main(arguments) == 0
    first = capsys.readouterr().out
    assert "| positions | 4 |" in first and "called clear, by the first seed" in first
    kept = json.loads((tmp_path / "advice.json").read_text())
    del kept["rows"]["2"]
    (tmp_path / "advice.json").write_text(json.dumps(kept))
    assert advice.main([*arguments, "--workers", "2"]) == 0
    assert capsys.readouterr().out == first
    assert advice.main([*arguments[:-4], "--bot", "greedy"]) == 2
    assert "plays nothing out" in capsys.readouterr().err
