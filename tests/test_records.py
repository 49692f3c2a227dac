"""Records: written by bots at a table, followed through the kernel, judged by the reference too."""

from __future__ import annotations

import copy
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_decks import MAKERS

from oxx_env import bots, cards, records
from oxx_env.commands._cli import main
from oxx_env.game.table import Table
from oxx_env.lib.seeding import bot_rng, game_seed
from oxx_env.notation.records import RecordError, RecordFileError

sys.path.insert(0, str(Path(__file__).parent / "golden"))
import generate

GOLDEN = Path(generate.HERE)
RULES = ("base", "color", "positive", "color+positive")
Record = dict[str, Any]


def recorded(
    players: int, rules: str, deck: Any = "balanced", games: int = 1, seed: int = 0
) -> list[Record]:
    """A match between a greedy and random bots, through JSON as a file gives it."""
    table = Table(players, rules, deck, games)
    table.deal(game_seed(seed, 0))
    seated = [bots.make("greedy" if seat == 1 else "random") for seat in range(players)]
    records.play_match(table, seated, [bot_rng(seed, 0, 0, seat) for seat in range(players)])
    return json.loads(json.dumps(records.records_of(table, "m")))


# ---- sound records


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("players", [2, 3, 5, 7, 10])
def test_records_replay_in_kernel_and_reference_without_a_difference(players, rules):
    odd = list(MAKERS.values())
    decks = ["balanced", odd[players % len(odd)](np.random.default_rng(players))]
    for number, deck in enumerate(decks):
        before = None
        for index, record in enumerate(recorded(players, rules, deck, 1 + number, players)):
            replayed = records.replay(record)
            assert replayed.to_dict() == record
            if before:
                replayed.check_follows(before, index + 1)
            before = replayed
            game = reference.replay(record)
            assert replayed.ended_by == game.ended_by
            assert game.rounds == record["rounds"]
            assert record["match"]["game"] == index + 1


def test_a_record_names_all_keys_of_its_format():
    (record,) = recorded(3, "base")
    assert list(record) == [
        *("format", "rules", "deck", "players", "seed", "match", "draw_piles", "rows", "rounds"),
        *("scores", "winners"),
    ]
    assert list(record["match"]) == ["id", "game", "of", "points_before"]
    assert list(record["rounds"][0]) == ["cards", "placements"]


@pytest.mark.parametrize("rules", RULES)
def test_the_decisions_of_a_replay_lead_the_table_to_the_same_record(rules):
    for record in recorded(3, rules, games=2):
        table = Table(3, rules)
        table.deal(record["seed"])  # also the second game of a match has a seed of its own
        for seat, action in records.replay(record).decisions:
            table.act(seat, action)
        (again,) = records.records_of(table, "m")
        assert {**again, "match": None} == {**record, "match": None}


def test_points_of_a_match_add_up():
    first, second, third = recorded(4, "positive", games=3)
    assert first["match"]["points_before"] == [0] * 4
    added = [a + b for a, b in zip(first["scores"], second["scores"], strict=True)]
    assert third["match"]["points_before"] == added


def test_the_course_shows_every_card_played_and_every_score():
    (record,) = recorded(4, "color")
    text = records.replay(record).course()
    assert text.count("\nround ") == len(record["rounds"])
    assert text.count(" to row ") == sum(len(r["placements"]) for r in record["rounds"])
    for seat, points in enumerate(record["scores"]):
        assert f"\nseat {seat}  {points} point" in text


# ---- golden games


def test_ten_golden_games_cover_rules_and_table_sizes():
    assert len(generate.GOLDEN) == 10
    assert {golden.rules for golden in generate.GOLDEN} == set(RULES)
    assert {2, 4, 10} <= {golden.players for golden in generate.GOLDEN}


@pytest.mark.parametrize("golden", generate.GOLDEN, ids=lambda golden: golden.name)
def test_golden_games_replay(golden):
    found = list(records.replay_file(GOLDEN / f"{golden.name}.jsonl"))
    assert len(found) == golden.games
    for result in found:
        assert isinstance(result, records.Record)
        assert result.players == golden.players
        game = reference.replay(result.to_dict())
        assert game.ended_by == result.ended_by
        assert (result.ended_by == "V2f") == ("deadlock" in golden.name)


def test_golden_games_are_made_again_to_the_byte():
    made = dict(generate.files())
    for name, content in made.items():
        assert (GOLDEN / name).read_bytes() == content.encode(), name
    texts = {path.name for path in GOLDEN.iterdir() if path.suffix in (".jsonl", ".txt", ".csv")}
    assert texts == set(made)


# ---- broken records


def spoiled(record: Record, spoil: Callable[[Record], Any]) -> Record:
    record = copy.deepcopy(record)
    spoil(record)
    return record


def put(*path: Any) -> Callable[[Record], Any]:
    """Put the last of `path` where the others lead."""
    *way, key, value = path

    def spoil(record: Record) -> None:
        place: Any = record
        for step in way:
            place = place[step]
        place[key] = value

    return spoil


def swap_placements(record: Record) -> None:
    placements = record["rounds"][0]["placements"]
    placements[0], placements[1] = placements[1], placements[0]


def swap_cards(record: Record) -> None:
    played = record["rounds"][0]["cards"]
    played[0], played[1] = played[1], played[0]


def first_taking(record: Record) -> list[Any]:
    return next(p for r in record["rounds"] for p in r["placements"] if p[3])


SPOILED: dict[str, tuple[Callable[[Record], Any], str, int | None]] = {
    "R1 card dealt twice": (lambda r: put("draw_piles", 0, 0, r["rows"][0])(r), "R1", None),
    "R1 no such card": (put("rows", 2, 111), "R1", None),
    "R1 deck without heads": (put("deck", "cards", 0, [0] * 6), "R1", None),
    "R1 wrong Baron": (put("deck", "cards", 51, [2, 1, 1, 1, 1, 1]), "R1", None),
    "R1 too few cards": (lambda r: r["deck"]["cards"].pop(), "R1", None),
    "R2 pile too short": (lambda r: r["draw_piles"][1].pop(), "R2", None),
    "R2 players": (put("players", 5), "R2", None),
    "R2 eleven": (put("players", 11), "R2", None),
    "R3 four rows": (lambda r: r["rows"].pop(), "R3", None),
    "R4 card not in hand": (swap_cards, "R4", 1),
    "R4 a card too few": (lambda r: r["rounds"][1]["cards"].pop(), "R4", 2),
    "R4 again": (lambda r: put("rounds", 1, "cards", 0, r["rounds"][0]["cards"][0])(r), "R4", 2),
    "R5 order": (swap_placements, "R5", 1),
    "R5 one missing": (lambda r: r["rounds"][0]["placements"].pop(), "R5", 1),
    "R5 one more": (lambda r: r["rounds"][0]["placements"].append([0, 1, 0, []]), "R5", 1),
    "R6 no such row": (put("rounds", 0, "placements", 0, 2, 5), "R6", 1),
    "R6 under the pile": (put("rounds", 0, "placements", 0, 2, None), "R6", 1),
    "taking nothing": (lambda r: first_taking(r)[3].clear(), "R7 R8 R9", 0),
    "taking in another order": (lambda r: first_taking(r)[3].append(110), "R7 R8 R9", 0),
    "taking too much": (put("rounds", 0, "placements", 0, 3, [5]), "R7/R8 R9", 1),
    "R12 round missing": (lambda r: r["rounds"].pop(), "R12", 16),
    "R12 round more": (lambda r: r["rounds"].append(r["rounds"][0]), "R12", 17),
    "R12 scores": (lambda r: put("scores", 0, r["scores"][0] + 1)(r), "R12", None),
    "R12 winners": (put("winners", [0, 1, 2, 3]), "R12", None),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_broken_record_is_refused_with_game_round_and_clause(name):
    spoil, clauses, number = SPOILED[name]
    (record,) = recorded(4, "base", seed=3)
    broken = {**spoiled(record, spoil), "seed": None}
    with pytest.raises(RecordError) as caught:
        records.replay(broken, game=7)
    assert caught.value.clause in clauses.split()
    assert number == 0 or caught.value.round == number
    assert str(caught.value).startswith("game 7, ")
    with pytest.raises((ValueError, TypeError)):
        reference.replay(broken)


@pytest.mark.parametrize(
    "rules, find, change, clause",
    [
        ("color", lambda p: p[3], lambda p: p[3].pop(), "R8 R9"),
        ("color", lambda p: not p[3], lambda p: p[3].append(9), "V1/R8 R9"),
        ("positive", lambda p: p[2] is None, lambda p: p.__setitem__(2, 0), "V2b"),
        ("positive", lambda p: p[2] is None, lambda p: p[3].append(9), "V2b"),
        ("positive", lambda p: p[2] is not None, lambda p: p.__setitem__(2, None), "V2b"),
    ],
)
def test_the_clauses_of_the_variants_are_named(rules, find, change, clause):
    for seed in range(20):
        (record,) = recorded(2, rules, seed=seed)
        found = [
            (number, placement)
            for number, told in enumerate(record["rounds"], start=1)
            for placement in told["placements"]
            if find(placement)
        ]
        if found:
            break
    number, placement = found[-1]
    change(placement)
    with pytest.raises(RecordError) as caught:
        records.replay(record)
    assert caught.value.clause in clause.split()
    assert caught.value.round == number
    with pytest.raises(ValueError):
        reference.replay(record)


def test_positive_scores_and_ends_are_those_of_v2():
    (record,) = recorded(3, "positive")
    for spoil, clause in [
        (lambda r: put("scores", 1, r["scores"][1] - 1)(r), "V2d"),
        (lambda r: r["rounds"].pop(), "V2c"),
    ]:
        with pytest.raises(RecordError) as caught:
            records.replay(spoiled(record, spoil))
        assert caught.value.clause == clause
    golden = json.loads((GOLDEN / "positive-2-deadlock.jsonl").read_text())
    golden["rounds"].append(golden["rounds"][0])
    with pytest.raises(RecordError) as caught:
        records.replay(golden)
    assert caught.value.clause == "V2f"


def test_a_seed_that_gives_another_deal_is_refused():
    (record,) = recorded(4, "base")
    with pytest.raises(RecordError, match="deal, seed: seed 12 does not give this deal"):
        records.replay({**record, "seed": 12})
    assert records.replay({**record, "seed": None}).decisions


def test_matches_whose_points_do_not_add_up_are_refused(tmp_path):
    path = tmp_path / "match.jsonl"
    first, second = recorded(2, "base", games=2)
    for spoil in [put("match", "points_before", 1, 99), put("match", "of", 3)]:
        records.write_records(path, [first, spoiled(second, spoil)])
        _, error = records.replay_file(path)
        assert isinstance(error, RecordError) and str(error).startswith("game 2, deal, R13")
    (color,) = recorded(2, "color")
    records.write_records(path, [first, {**color, "match": second["match"]}])
    assert "rules were base, not color" in str(list(records.replay_file(path))[1])
    records.write_records(path, [spoiled(first, put("match", "of", 1)), second])
    assert "game 2, deal, R13: match m, game 2 of 2: games were 1, not 2" in str(
        list(records.replay_file(path))[1]
    )
    for spoil in [
        put("match", "game", 3),
        put("match", "game", 0),
        put("match", "of", 0),
        put("match", "points_before", [1]),
    ]:
        with pytest.raises(RecordError) as caught:
            records.replay(spoiled(second, spoil))
        assert caught.value.clause == "R13"
    with pytest.raises(RecordError, match=r"points .* before the first game"):
        records.replay(spoiled(first, put("match", "points_before", 0, 4)))


JUNK = st.sampled_from(
    [None, True, "", "base", -1, 0, 1.5, 10**30, [], [[]], {}, {"id": 1}, [None] * 5, "\ud800"]
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    return [path, *(p for key in keys for p in _paths(value[key], (*path, key)))][:4000]


SMALL = recorded(2, "positive", seed=5)[0]
PATHS = [path for path in _paths(SMALL) if path]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(PATHS), JUNK, st.booleans())
def test_rubbish_anywhere_in_a_record_is_a_clear_error(path, junk, leave_out):
    record = copy.deepcopy(SMALL)
    place: Any = record
    for step in path[:-1]:
        place = place[step]
    before = place[path[-1]]
    if leave_out:
        del place[path[-1]]
    else:
        place[path[-1]] = junk
    harmless = path == ("seed",) or path[:2] in [("deck", "name"), ("match", "id")]
    try:
        records.replay(record)
    except RecordError as error:
        assert len(str(error)) < 500
        return
    # Another head on a card may leave the course as it is.
    assert harmless or path[0] == "deck" or junk is before or (junk == before and not leave_out)


# ---- files


def test_files_that_hold_no_records_are_named_by_line(tmp_path):
    line = records.to_line(SMALL)
    path = tmp_path / "games.jsonl"
    for content, message in [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("hello\n", "line 1, column 1: no JSON"),
        (f"{line}\n{line[:500]}", "line 2 breaks off in the middle"),
        (f"{line}\n[]\n", "line 2 is no JSON object"),
        (f"{line}\n7\n", "line 2 is no JSON object"),
        ('{"format": "oxx-game/2"}\n', 'line 1 has "oxx-game/2"'),
        ("{}\n", "line 1 has no format"),
        (line.replace('"players":2', '"players":NaN') + "\n", "NaN is no number"),
        ('{"format":' + "[" * 200_000 + "]" * 200_000 + "}", "line 1: no record"),
        ('{"format":' + "9" * 5000 + "}", "line 1: no record"),
        ("x" * (records.MAX_LINE + 2), "line 1 is longer than"),
    ]:
        path.write_text(content)
        with pytest.raises(RecordFileError) as caught:
            list(records.replay_file(path))
        assert message in str(caught.value) and len(str(caught.value)) < 500
    path.write_bytes(b"\xff\xfe{\0}\0")
    with pytest.raises(RecordFileError, match="not UTF-8"):
        list(records.read_records(path))


def test_records_are_read_as_written_with_bom_and_blank_lines(tmp_path):
    path = tmp_path / "games.jsonl"
    assert records.write_records(path, [SMALL, SMALL]) == 2
    assert list(records.read_records(path)) == [SMALL, SMALL]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert list(records.read_records(path)) == [SMALL, SMALL]


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "games.jsonl"
    path.write_text("before")

    def broken():
        yield SMALL
        raise RuntimeError

    with pytest.raises(RuntimeError):
        records.write_records(path, broken())
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


# ---- the commands


def run(capsys: Any, *argv: str) -> tuple[int, str, str]:
    code = main(list(argv))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_same_command_twice_writes_the_same_bytes(capsys, tmp_path):
    command = ["record", "--players", "3", "--bots", "greedy,random", "--games", "3", "--seed", "4"]
    first = run(capsys, *command)
    path = tmp_path / "out.jsonl"
    code, out, err = run(capsys, *command, "--output", str(path))
    assert first[0] == code == 0 and out == "" and "3 games" in err
    assert path.read_bytes() == first[1].encode()
    assert run(capsys, *command[:-1], "5")[1] != first[1]
    seeds = [json.loads(line)["seed"] for line in first[1].splitlines()]
    assert seeds == [game_seed(4, block) for block in range(3)]


def test_games_are_rounded_up_to_whole_matches(capsys, tmp_path):
    deck = tmp_path / "odd.csv"
    cards.save_deck(MAKERS["heavy"](np.random.default_rng(1)), deck)
    argv = ["--rules", "positive", "--deck", str(deck), "--games", "4", "--match", "3"]
    code, out, _ = run(capsys, "record", *argv)
    games = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(games) == 6
    told = [(game["match"]["id"], game["match"]["game"], game["match"]["of"]) for game in games]
    assert told == [(f"0-{block}", game, 3) for block in range(2) for game in (1, 2, 3)]
    assert {game["deck"]["name"] for game in games} == {"odd.csv"}
    for game in games:
        assert reference.replay(game).ended_by in ("V2c", "V2f")


def test_a_bot_sits_where_it_is_named_and_the_last_fills_the_table(capsys):
    def games(bots_: str) -> list[Record]:
        argv = ["--players", "4", "--rules", "base", "--bots", bots_, "--games", "1"]
        return [json.loads(line) for line in run(capsys, "record", *argv)[1].splitlines()]

    assert games("random,greedy") == games("random,greedy,greedy,greedy")
    assert games("random,greedy") != games("greedy,random")


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--games", "0"], "--games is at least 1, not 0"),
        (["--match", "0"], "--match is from 1 to 1000, not 0"),
        (["--players", "11"], "--players is from 2 to 10, not 11"),
        (["--players", "2", "--bots", "greedy,greedy,greedy"], "3 bots for 2 seats"),
        (["--bots", "gredy"], "unknown bot 'gredy'"),
        (["--bots", "greedy,"], "bot"),
        (["--deck", "nowhere.csv"], "no such file"),
        (["--output", "/nowhere/at/all.jsonl"], "/nowhere/at"),
    ],
)
def test_wrong_options_of_record_are_refused(capsys, argv, message):
    code, out, err = run(capsys, "record", *argv)
    assert code == 2 and out == "" and message in err


def test_replay_prints_the_course_and_counts(capsys, monkeypatch):
    path = str(GOLDEN / "color+positive-3-match.jsonl")
    code, out, _ = run(capsys, "replay", path)
    assert code == 0 and out.count("points win") == 3 and "3 games replayed: no fault" in out
    assert run(capsys, "replay", path, "--game", "2")[1].count("points win") == 1
    assert run(capsys, "replay", path, "--quiet")[1] == "3 games replayed: no fault\n"
    code, out, _ = run(capsys, "replay", path, "--json")
    told = json.loads(out)
    assert code == 0 and told["ok"] and [game["record"] for game in told["games"]] == [1, 2, 3]
    code, _, err = run(capsys, "replay", path, "--game", "4")
    assert code == 2 and "holds 3 games" in err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(path).read_bytes())))
    assert run(capsys, "replay", "-", "--quiet")[0] == 0


def test_replay_names_the_broken_game_and_exits_with_1(capsys, tmp_path):
    path = tmp_path / "games.jsonl"
    broken = spoiled(SMALL, swap_cards)
    records.write_records(path, [SMALL, broken, SMALL])
    code, out, _ = run(capsys, "replay", str(path), "--quiet")
    assert code == 1 and "game 2, round 1, R4: seat 0 plays" in out
    assert "3 games replayed: 1 broken" in out
    code, out, _ = run(capsys, "replay", str(path), "--json")
    (fault,) = json.loads(out)["faults"]
    assert code == 1 and (fault["game"], fault["round"], fault["clause"]) == (2, 1, "R4")
    path.write_text(path.read_text()[:-100])
    code, _, err = run(capsys, "replay", str(path), "--quiet")
    assert code == 2 and "line 3 breaks off" in err
    assert run(capsys, "replay", str(tmp_path / "none"))[0] == 2
    assert run(capsys, "replay", str(tmp_path))[0] == 2
