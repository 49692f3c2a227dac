"""The arena: same deals, rotated seats, honest counting, and the same outcome however it is run."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxx_env import arena, cards
from oxx_env.arena import blocks, running
from oxx_env.commands import _cli
from oxx_env.game import scoring
from oxx_env.game.rules import NO_CARD
from oxx_env.game.views import View


class Witness:
    """Plays at random and notes what it is shown."""

    needs_state = False

    def __init__(self, spec: str = "witness") -> None:
        self.spec = spec
        self.weights: Any = None
        self.seen: list[dict[str, Any]] = []

    def act(self, view: View, rng: np.random.Generator) -> int:
        self.seen.append(view.to_dict())
        return int(rng.choice(view.legal))


def outcome(result: arena.Result) -> str:
    """The JSON of a result without `timing`."""
    data = result.to_dict()
    del data["timing"]
    return json.dumps(data)


def openings(witness: Witness) -> list[dict[str, Any]]:
    """Its first decision of each match."""
    return [v for v in witness.seen if not v["history"] and len(v["hand"]) == 4]


# --- what is played -----------------------------------------------------------------------------


def test_the_result_has_the_keys_of_the_contract_and_no_others() -> None:
    data = arena.play(["greedy", "random"], players=3, games=6).to_dict()
    assert list(data) == ["players", "rules", "deck", "games", "bots", "timing"]
    assert [data[key] for key in ("players", "rules", "deck", "games")] == [
        3,
        "base",
        "balanced",
        6,
    ]
    keys = ["spec", "games", "mean_points", "points_ci95", "win_share", "ci95"]
    assert [list(bot) for bot in data["bots"]] == [keys, keys]
    for bot in data["bots"]:
        assert bot["points_ci95"][0] <= bot["mean_points"] <= bot["points_ci95"][1]
        assert 0 <= bot["ci95"][0] <= bot["win_share"] <= bot["ci95"][1] <= 1
    json.dumps(data, allow_nan=False)


def test_the_same_bot_twice_is_two_entries_in_order() -> None:
    bots = arena.play(["greedy", "random", "greedy"], players=3, games=9).bots
    assert [bot.spec for bot in bots] == ["greedy", "random", "greedy"]
    assert bots[0].mean_points != bots[2].mean_points
    assert sum(bot.win_share for bot in bots) == pytest.approx(1)


def test_the_last_bot_fills_the_table_and_reports_the_mean_of_its_seats() -> None:
    one, many = arena.play(["greedy", "random"], players=5, games=10).bots
    assert one.win_share + 4 * many.win_share == pytest.approx(1)
    (alone,) = arena.play(["random"], players=5, games=10).bots
    assert alone.win_share == pytest.approx(1 / 5)
    assert alone.ci95[1] - alone.ci95[0] < 0.5


def test_games_are_rounded_up_to_whole_blocks() -> None:
    assert arena.play(["random"], players=4, games=1).games == 4
    assert arena.play(["random"], players=4, games=9).games == 12
    assert arena.play(["random"], players=4, games=9, match=3).games == 12
    assert arena.play(["random"], players=4, games=13, match=3).games == 24


def test_everybody_sits_in_every_seat_once_a_block_with_the_same_deal() -> None:
    bots = [Witness("a"), Witness("b"), Witness("c")]
    arena.play(bots, players=3, games=6, seed=5)
    for bot in bots:
        seats = [view["seat"] for view in openings(bot)]
        assert sorted(seats[:3]) == sorted(seats[3:]) == [0, 1, 2]
    by_seat: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    for bot in bots:
        for view in openings(bot)[:3]:
            by_seat[view["seat"]].append((view["hand"], view["rows"]))
    for hands in by_seat.values():
        assert len(hands) == 3
        assert hands[0] == hands[1] == hands[2]
    assert openings(bots[0])[0]["rows"] != openings(bots[0])[3]["rows"]


def test_bots_are_asked_only_for_decisions() -> None:
    witness = Witness()
    for rules in ("base", "color+positive"):
        arena.play([witness], players=4, games=4, rules=rules)
    assert all(len(view["legal"]) >= 2 and view["seat"] in view["to_act"] for view in witness.seen)
    assert {view["phase"] for view in witness.seen} == {"card", "row"}


def test_views_tell_the_course_of_the_game() -> None:
    witness = Witness()
    arena.play([witness], players=2, games=2)
    for view in witness.seen:
        placed = sum(len(round_["placements"]) for round_ in view["history"])
        on_table = sum(map(len, view["rows"])) + sum(map(len, view["oxx_piles"]))
        assert placed + 5 == on_table


def test_a_deck_function_gives_every_deal_its_own_deck() -> None:
    witness = Witness()
    deck = functools.partial(cards.random_deck, "balanced")
    arena.play([witness], players=2, games=4, deck=deck)
    decks = [json.dumps(view["deck"]["cards"]) for view in openings(witness)]
    assert len(decks) == 8  # 2 blocks, 2 rotations, 2 seats
    assert len(set(decks[:4])) == len(set(decks[4:])) == 1
    assert decks[0] != decks[4]


def test_bots_get_generators_of_their_seat_not_of_the_others_use() -> None:
    """A companion that draws more random numbers changes nothing for the others."""

    class Wasteful(Witness):
        def act(self, view: View, rng: np.random.Generator) -> int:
            action = super().act(view, rng)
            rng.random(7)
            return min(view.legal) if len(view.legal) < 9 else action

    class Lowest(Witness):
        def act(self, view: View, rng: np.random.Generator) -> int:
            return min(view.legal)

    one = arena.play(["random", Lowest("low")], players=2, games=10)
    other = arena.play(["random", Wasteful("low")], players=2, games=10)
    assert outcome(one) == outcome(other)


def test_a_match_counts_the_points_of_all_its_games() -> None:
    single = arena.play(["greedy"], players=2, games=60).bots[0]
    triple = arena.play(["greedy"], players=2, games=180, match=3).bots[0]
    assert triple.games == 180
    assert triple.mean_points == pytest.approx(3 * single.mean_points, rel=0.2)


def test_a_cheat_sees_the_state_and_the_result_says_so() -> None:
    class Cheat(Witness):
        needs_state = True

        def act(  # type: ignore[override]
            self, view: View, rng: np.random.Generator, state: np.ndarray
        ) -> int:
            held = (state["hands"][0] != NO_CARD).sum(axis=1)
            assert held.tolist() == state["hand_sizes"][0].tolist()
            state["hands"] = NO_CARD  # must not matter
            return int(rng.choice(view.legal))

    cheating = arena.play([Cheat("cheat"), "greedy"], players=2, games=4).to_dict()
    assert cheating["cheats"] is True
    assert "cheats" not in arena.play(["greedy"], players=2, games=2).to_dict()


# --- what comes out -----------------------------------------------------------------------------


@pytest.mark.parametrize(("players", "games"), [(2, 200), (4, 100), (10, 100)])
def test_a_bot_playing_itself_lands_in_its_interval_around_parity(players: int, games: int) -> None:
    for bot in arena.play(["greedy", "greedy"], players=players, games=games, seed=1).bots:
        assert bot.ci95[0] <= 1 / players <= bot.ci95[1]
        assert bot.rank_ci95[0] <= (players + 1) / 2 <= bot.rank_ci95[1]


def test_greedy_beats_random_in_every_rule_set() -> None:
    for rules in ("base", "color", "positive", "color+positive"):
        greedy, random = arena.play(["greedy", "random"], players=2, games=40, rules=rules).bots
        assert greedy.win_share > random.win_share
        fewer = greedy.mean_points < random.mean_points
        assert fewer == ("positive" not in rules)


def test_ties_split_the_victory() -> None:
    setup = blocks.Setup("arena", ("a", "b"), 2, "base", "balanced", 0, 1)
    block = blocks.Block(0, ((0, 1),), [[[4, 4], [1, 2]]], [0.0, 0.0], [0, 0])
    assert arena.summarise(setup, [block], 0).win_share == 0.75
    assert arena.summarise(setup, [block], 1).win_share == 0.25
    assert arena.summarise(setup, [block], 1).mean_rank == 1.75


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    one, again, other = (
        arena.play(["greedy", "random"], players=3, games=12, seed=seed) for seed in (7, 7, 8)
    )
    assert outcome(one) == outcome(again) != outcome(other)


def test_two_workers_give_the_same_bytes_as_one(tmp_path: Path) -> None:
    options: dict[str, Any] = {"players": 3, "games": 60, "seed": 3, "match": 2}
    logs = [tmp_path / "1", tmp_path / "2"]
    one, two = (
        arena.play(["greedy", "random"], **options, workers=workers, log=log)
        for workers, log in zip((1, 2), logs, strict=True)
    )
    assert outcome(one) == outcome(two)
    games = [[json.loads(line).get("points") for line in log.open()] for log in logs]
    assert games[0] == games[1]


def test_playing_until_the_interval_is_narrow_looks_only_now_and_then() -> None:
    wide = arena.play(["greedy", "random"], players=2, games=1000, until_width=0.2)
    assert wide.games == 2 * running.FIRST_LOOK
    narrow = arena.play(["random", "random"], players=2, until_width=0.08)
    assert all(bot.ci95[1] - bot.ci95[0] <= 0.16 for bot in narrow.bots)
    assert narrow.games // 2 in list(islice(running.goals(None, True), 20))
    capped = arena.play(["random", "random"], players=2, games=20, until_width=0.001)
    assert capped.games == 20


def test_evaluate_is_the_entry_of_one_seat() -> None:
    entry = arena.evaluate("greedy", ["random"], players=3, games=9)
    assert entry == arena.play(["greedy", "random"], players=3, games=9).bots[0]


def test_time_is_told_by_specification() -> None:
    class Slow(Witness):
        def act(self, view: View, rng: np.random.Generator) -> int:
            time.sleep(0.002)
            return super().act(view, rng)

    timing = arena.play([Slow("slow"), "random"], players=2, games=2).timing
    assert timing["ms_per_decision"]["slow"] >= 2
    assert set(timing["decisions"]) == {"slow", "random"}


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"specs": []}, "at least one bot"),
        ({"specs": ["random"] * 3}, "3 bots for 2 players"),
        ({"specs": ["greedi"]}, "unknown bot 'greedi'"),
        ({"players": 11}, "2 to 10"),
        ({"rules": "basic"}, "unknown rule set 'basic'"),
        ({"deck": "balance"}, "did you mean 'balanced'"),
        ({"games": 0}, "games is at least 1, not 0"),
        ({"match": 0}, "match is from 1 to 1000, not 0"),
        ({"seed": -1}, "seed is at least 0, not -1"),
        ({"workers": 0}, "workers is at least 1, not 0"),
        ({"until_width": 0.0}, "until_width is above 0 and at most 1, not 0.0"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arena.play(**{"specs": ["random"], "players": 2, "games": 2, **options})


@pytest.mark.parametrize("action", [9, 4, -1, 11, None, "0"])
def test_an_illegal_action_names_the_bot_and_what_is_legal(action: Any) -> None:
    class Wrong(Witness):
        def act(self, view: View, rng: np.random.Generator) -> int:
            return action

    with pytest.raises(ValueError, match=r"bot 'wrong' at seat 0 .* legal: \[0, 1, 2, 3\]"):
        arena.play([Wrong("wrong")], players=2, games=2)


# --- the log ------------------------------------------------------------------------------------


def test_a_log_is_taken_up_where_it_ends_even_in_the_middle_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    options: dict[str, Any] = {"players": 2, "games": 20, "seed": 2}
    whole = arena.play(["greedy", "random"], **options, log=path)
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    assert len(lines) == 11
    for cut in (3, len(lines[0]) - 1, len("".join(lines[:5])) + 17, len(text) - 1, len(text)):
        path.write_text(text[:cut])
        again = arena.play(["greedy", "random"], **options, log=path)
        assert outcome(again) == outcome(whole)
        found = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line.get("points") for line in found] == [
            json.loads(line).get("points") for line in lines
        ]


def test_a_finished_log_is_only_read_and_a_longer_run_continues_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    arena.play(["random"], players=2, games=10, log=path)
    before = path.read_bytes()
    assert arena.play(["random"], players=2, games=6, log=path).games == 6
    assert path.read_bytes() == before
    longer = arena.play(["random"], players=2, games=16, log=path)
    assert outcome(longer) == outcome(arena.play(["random"], players=2, games=16))
    assert path.read_bytes().startswith(before)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"specs": ["random", "greedy"]}, "specs"),
        ({"players": 3}, "players"),
        ({"rules": "color"}, "rules"),
        ({"deck": "two-color"}, "deck"),
        ({"seed": 1}, "seed"),
        ({"match": 2}, "match"),
    ],
)
def test_a_log_of_another_configuration_is_refused(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    path = tmp_path / "log"
    options: dict[str, Any] = {"specs": ["greedy", "random"], "players": 2, "games": 4, "log": path}
    arena.play(**options)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"was begun with {named} "):
        arena.play(**{**options, **change})
    assert path.read_bytes() == before


def test_a_log_of_other_weights_under_the_same_name_is_refused(tmp_path: Path) -> None:
    path, bot = tmp_path / "log", Witness("policy:here")
    bot.weights = np.zeros(3, np.float32)
    arena.play([bot], players=2, games=2, log=path)
    arena.play([bot], players=2, games=4, log=path)
    bot.weights = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="was begun with weights "):
        arena.play([bot], players=2, games=4, log=path)


def test_search_is_told_apart_by_both_of_its_networks() -> None:
    both = {blocks.weights_checksum(spec) for spec in ("search:quick:2", "search:apprentice:2")}
    policies = {blocks.weights_checksum(spec) for spec in ("policy:quick", "policy:apprentice")}
    assert None not in both and len(both | policies) == 4
    assert blocks.weights_checksum("search:quick:8") in both


def test_a_file_that_is_no_log_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "diary"
    for content in ("dear diary\n", "{}", '{"format": "oxx-game/1"}\n'):
        path.write_text(content)
        with pytest.raises(ValueError, match="no arena log"):
            arena.play(["random"], players=2, games=2, log=path)
        assert path.read_text() == content


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    arena.play(["random"], players=2, games=6, log=path)
    lines = path.read_text().splitlines(keepends=True)
    block = json.loads(lines[2])
    points = block["points"]
    wrong: list[dict[str, Any]] = [
        {"points": [points]},
        {"points": [[["a", "b"], points[0][1]]]},
        {"points": [[[None, 1], points[0][1]]]},
        {"points": [[[1.5, 1], points[0][1]]]},
        {"seconds": []},
        {"seconds": ["a"]},
        {"seconds": [float("nan")]},
        {"decisions": [None]},
        {"decisions": [1, 2]},
        {"lineups": 5},
    ]
    changed = [json.dumps({**block, **change}) + "\n" for change in wrong]
    for bad in ("garbage\n", lines[1], "[]\n", "[" * 100_000 + "\n", *changed):
        path.write_text("".join([lines[0], lines[1], bad, *lines[3:]]))
        with pytest.raises(ValueError, match="line 3: should be block 1"):
            arena.play(["random"], players=2, games=6, log=path)


def test_ctrl_c_hands_over_what_is_finished_and_the_log_goes_on(tmp_path: Path) -> None:
    class Impatient(Witness):
        left = 150

        def act(self, view: View, rng: np.random.Generator) -> int:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return super().act(view, rng)

    path = tmp_path / "log"
    options: dict[str, Any] = {"players": 2, "games": 10, "log": path}
    with pytest.raises(arena.Interrupted) as stop:
        arena.play([Impatient("w"), "random"], **options)
    partly = stop.value.result
    assert 0 < partly.games < 10
    assert len(path.read_text().splitlines()) == 1 + partly.games // 2
    whole = arena.play([Witness("w"), "random"], **options)
    assert outcome(whole) == outcome(arena.play([Witness("w"), "random"], players=2, games=10))


def test_ctrl_c_before_the_first_block_is_a_plain_interrupt() -> None:
    class Never(Witness):
        def act(self, view: View, rng: np.random.Generator) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        arena.play([Never()], players=2, games=2)
    assert not isinstance(stop.value, arena.Interrupted)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_on_the_command_line_prints_what_is_finished(tmp_path: Path, workers: str) -> None:
    log = tmp_path / "log"
    words = ["arena", "greedy", "--players", "2", "--games", "1000000", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "oxx_env", *words, "--workers", workers, "--log", str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests started in the background may have been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and (
            not log.exists() or log.read_bytes().count(b"\n") < 5
        ):
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert json.loads(out)["games"] >= 8
    assert "interrupted" in err
    assert "Traceback" not in err


# --- pairs, leagues, comparisons ----------------------------------------------------------------


def test_two_players_are_paired_once_and_read_both_ways() -> None:
    pairs = arena.pairwise(["greedy", "random", "greedy"], players=2, games=10)
    assert set(pairs.pairs) == {(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)}
    assert pairs.games == 30
    for (one, other), pair in pairs.pairs.items():
        mirrored = pairs.pairs[other, one].entry
        assert pair.entry.win_share + mirrored.win_share == pytest.approx(1)
    data = pairs.to_dict()
    assert [(p["spec"], p["against"]) for p in data["pairs"]][:3] == [
        ("greedy", "random"), ("greedy", "greedy"), ("random", "greedy")
    ]  # fmt: skip


def test_at_larger_tables_each_sits_among_copies_of_the_other() -> None:
    pairs = arena.pairwise(["greedy", "random"], players=3, games=9, seed=1)
    alone = arena.play(["random", "greedy"], players=3, games=9, seed=1).bots[0]
    assert pairs.pairs[1, 0].entry == alone


@pytest.mark.parametrize(("entries", "players"), [(2, 4), (3, 2), (5, 4), (4, 4), (7, 3), (3, 10)])
def test_line_ups_seat_every_entry_equally_often(entries: int, players: int) -> None:
    lineups = list(islice(blocks.random_lineups(entries, players, seed=0), 60 * entries))
    seated = Counter(entry for lineup in lineups for entry in lineup)
    assert len(seated) == entries
    assert max(seated.values()) - min(seated.values()) <= 2
    for lineup in lineups:
        counts = Counter(lineup)
        assert len(lineup) == players
        assert max(counts.values()) - min(counts[e] for e in range(entries)) <= 1
    assert lineups == list(islice(blocks.random_lineups(entries, players, seed=0), 60 * entries))
    assert lineups != list(islice(blocks.random_lineups(entries, players, seed=1), 60 * entries))


def test_a_league_orders_bots_by_strength(tmp_path: Path) -> None:
    pytest.importorskip("openskill")
    path = tmp_path / "log"
    options: dict[str, Any] = {"players": 4, "games": 100, "seed": 4}
    league = arena.league(["random", "greedy", "random"], **options, log=path)
    low, high, other = league.table
    assert high.rating > max(low.rating, other.rating)
    assert high.rating_ci95[0] > low.rating_ci95[1]
    assert high.entry.mean_rank < 2.5 < low.entry.mean_rank
    data = league.to_dict()
    assert [bot["spec"] for bot in data["bots"]] == ["random", "greedy", "random"]
    assert {"rating", "rating_ci95", "mean_rank", "win_share", "ci95"} <= set(data["bots"][0])
    assert outcome(arena.league(["random", "greedy", "random"], **options, log=path)) == outcome(
        league
    )


def test_a_league_that_cannot_seat_everybody_is_refused() -> None:
    pytest.importorskip("openskill")
    with pytest.raises(ValueError, match="play at least 6"):
        arena.league(["random"] * 5, players=2, games=4)
    with pytest.raises(ValueError, match="two bots or more"):
        arena.league(["random"], players=2, games=4)


def test_a_comparison_gives_both_the_same_seats_and_deals() -> None:
    a, b = Witness("a"), Witness("b")
    arena.compare(a, b, against=["random"], players=3, games=6)
    shown = [[(v["seat"], v["hand"], v["rows"]) for v in openings(bot)] for bot in (a, b)]
    assert len(shown[0]) == 6
    assert shown[0] == shown[1]


def test_a_bot_compared_with_itself_does_not_differ() -> None:
    result = arena.compare("greedy", "greedy", against=["random"], players=3, games=30)
    assert result.games == 60
    assert result.difference.win_share == 0
    assert result.difference.mean_points == 0
    assert result.difference.ci95[0] < 0 < result.difference.ci95[1]


def test_a_comparison_is_narrower_than_two_separate_runs() -> None:
    result = arena.compare("greedy", "greedy", against=["random"], players=2, games=100, seed=0)
    width = result.difference.points_ci95[1] - result.difference.points_ci95[0]
    separate = [bot.points_ci95[1] - bot.points_ci95[0] for bot in result.bots]
    assert width < np.hypot(*separate)


def test_a_comparison_needs_seats_for_both_sides() -> None:
    with pytest.raises(ValueError, match="2 bots to compare against; at a table of 2"):
        arena.compare("greedy", "random", against=["random", "greedy"], players=2, games=2)


# --- the commands -------------------------------------------------------------------------------


def oxx(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = _cli.main(words)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    "words",
    [
        ("arena", "greedy", "random", "--players", "2", "--games", "4"),
        ("arena", "greedy", "random", "--players", "2", "--games", "4", "--pairwise"),
        ("compare", "greedy", "random", "--players", "2", "--games", "4"),
        ("league", "greedy", "random", "--players", "2", "--games", "4"),
    ],
)
def test_json_is_exactly_one_object_and_stderr_is_quiet(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, out, err = oxx(capsys, *words, "--json")
    assert code == 0
    assert json.loads(out)["players"] == 2
    assert out.count("\n") == 1
    assert err == ""
    code, out, err = oxx(capsys, *words)
    assert code == 0
    assert "fewest points win" in out
    assert "greedy" in out
    assert err == ""


def test_the_table_tells_direction_parity_and_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["arena", "greedy", "--players", "4", "--games", "4", "--rules", "positive"]
    _, out, _ = oxx(capsys, *words, "--seed", "3")
    assert "4 players, positive, deck balanced: 4 games, seed 3; most points win" in out
    assert "parity: 0.250" in out
    assert " to " in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["arena"], "at least one bot"),
        (["arena", "random", "--players", "1"], "2 to 10"),
        (["arena", "random", "random", "--pairwise", "--log", "x"], "give one of them"),
        (["compare", "random", "greedy", "--against", ""], "a bot is named by"),
        (["league", "random"], "two bots or more"),
        (["league", "random", "greedy", "--png", "no/such/folder/x.png"], "no such folder"),
        (["league", "random", "greedy", "--png", os.curdir], "should be the path of a file"),
        (["league", "random", "greedy", "--png", ""], "should be the path of a file"),
    ],
)
def test_mistakes_end_with_2_and_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    code, out, err = oxx(capsys, *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_a_league_is_drawn_whole_or_not_at_all(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "league.png"
    words = ["league", "greedy", "random", "--players", "2", "--games", "4", "--png", str(path)]
    code, _, err = oxx(capsys, *words)
    assert code == 0
    assert str(path) in err
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["league.png"]


@pytest.mark.parametrize("module", ["openskill", "matplotlib"])
def test_a_missing_extra_is_named_before_anything_is_played(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(blocks.Player, "blocks", None)  # playing would fail
    code, _, err = oxx(capsys, "league", "greedy", "random", "--png", "league.png")
    assert code == 2
    assert "[train]" in err


def test_a_table_that_is_piped_on_is_plain_text_without_rich(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from oxx_env.commands import _show

    def shown() -> list[str]:
        lines = _show.table("title", ["bot", "points"], [["greedy", "1.5"], ["a", "10.25"]])
        return lines.splitlines()

    plain = ["title", "", "bot      points", "─" * 15, "greedy      1.5", "a         10.25"]
    monkeypatch.setitem(sys.modules, "rich.box", None)
    assert shown() == plain
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert shown() == plain  # a terminal without rich


def test_a_table_on_a_terminal_is_as_narrow_as_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    from oxx_env.commands import _show

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    text = _show.table("title", ["bot", "points"], [["b" * 60, "1.5"]])
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.splitlines()]
    assert max(map(len, lines)) <= 40 and "".join(lines).count("b") == 61


def test_places_of_the_arena_are_those_of_the_ratings() -> None:
    entry = arena.play(["greedy", "random"], players=2, games=20).bots[0]
    assert entry.mean_rank == pytest.approx(2 - entry.win_share)
    assert scoring.mean_places([1, 2], "base").tolist() == [1.0, 2.0]


def test_options_come_by_name_as_a_whole_or_as_the_number_of_players() -> None:
    named = arena.play(["greedy", "random"], players=2, games=4, seed=1)
    assert arena.play(["greedy", "random"], 2, games=4, seed=1).bots == named.bots
    whole = arena.Options(players=2, games=4)
    assert arena.play(["greedy", "random"], whole, seed=1).bots == named.bots
    with pytest.raises(TypeError, match=r"options are arena.Options, or named"):
        arena.play(["greedy", "random"], "base")  # type: ignore[arg-type]
