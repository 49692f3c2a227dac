"""A recorded game as pictures: moments, SVG, animation, `oxx replay --svg --gif`."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from oxx_env import bots, film, records, render
from oxx_env.commands import _cli
from oxx_env.game.table import Table

SVG = "{http://www.w3.org/2000/svg}"


def recorded(players: int = 3, rules: str = "base", games: int = 1) -> list[dict[str, Any]]:
    table = Table(players, rules, games_per_match=games)
    table.deal(seed=5)
    seated = [bots.make("greedy")] * players
    records.play_match(table, seated, [np.random.default_rng(s) for s in range(players)])
    return records.records_of(table, "m")


@pytest.fixture
def file(tmp_path):
    """Writes games into a file; gives its path."""

    def file(*games: dict[str, Any]) -> str:
        path = tmp_path / "games.jsonl"
        records.write_records(path, games)
        return str(path)

    return file


@pytest.fixture
def replay(capsys):
    """Run `oxx replay` in this process; gives exit code, stdout and stderr."""

    def replay(*argv: object) -> tuple[int, str, str]:
        code = _cli.main(["replay", *map(str, argv)])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return replay


def words(svg: str) -> list[str | None]:
    return [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("rules", ["base", "color", "positive", "color+positive"])
def test_a_film_shows_the_deal_each_reveal_each_placement_and_the_end(rules):
    (record,) = recorded(3, rules)
    told = list(film.moments(record))
    assert len(told) == 2 + len(record["rounds"]) * (1 + 3)
    placements = [p for r in record["rounds"] for p in r["placements"]]
    shown = [m for m in told if m.caption.startswith("seat")]
    for moment, (seat, number, row, taken) in zip(shown, placements, strict=True):
        assert moment.caption.startswith(f"seat {seat}: {number} ")
        assert moment.row == row
        assert ("takes" in moment.caption) == bool(taken)
        if row is not None and moment.view.phase != "over":
            assert moment.view.rows[row][-1] == number
    assert told[-1].view.scores == record["scores"]
    assert told[-1].caption.startswith("game over")


def test_the_pictures_show_one_seats_hand_and_no_others():
    (record,) = recorded(3)
    for moment in list(film.moments(record, seat=2))[:30]:
        seen = {text for text in words(moment.svg()) if text and text.isdigit()}
        follower_hand = set(map(str, moment.view.hand))
        assert follower_hand <= seen
        assert moment.view.seat == 2
        hidden = moment.view.game["hands"][:2]
        assert not hidden.any()


def test_a_picture_tells_what_happened_and_nobody_is_you():
    (record,) = recorded(3)
    for moment in film.moments(record, names=["Ann", "Ben", "Cy"]):
        told = words(moment.svg())
        assert moment.caption[0].upper() + moment.caption[1:] in told
        assert not {"you", "your"} & set(told)
        assert "Ann" in told


def test_a_match_s_points_are_those_before_the_game():
    first, second = recorded(2, games=2)
    moment = next(film.moments(second))
    assert moment.view.game["match_points"][:2].tolist() == first["scores"]
    assert "game 2 of 2" in render.headline(moment.view)


def test_an_animation_holds_every_moment_with_its_time():
    Image = pytest.importorskip("PIL.Image")
    (record,) = recorded(2)
    told = list(film.moments(record))[:9]
    file = io.BytesIO()
    assert film.write_gif(file, told, width=200) == 9
    with Image.open(file) as picture:
        assert (picture.n_frames, picture.size, picture.info["loop"]) == (9, (200, 140), 0)
        for index, moment in enumerate(told):
            picture.seek(index)
            assert picture.info["duration"] == 1000 * moment.seconds
            drawn = np.asarray(picture.convert("RGB"), int)
            assert np.abs(drawn - moment.pixels(200)).mean() < 4
    with pytest.raises(ValueError, match="nothing to draw"):
        film.write_gif(file, [])


def test_a_broken_record_or_a_seat_that_is_not_there_is_refused_before_anything_is_drawn():
    (record,) = recorded(2)
    with pytest.raises(records.RecordError, match="R12"):
        film.moments({**record, "scores": [0, 0]})
    with pytest.raises(ValueError, match="the seats are 0 to 1"):
        film.moments(record, seat=2)
    with pytest.raises(ValueError, match="3 names for 2 players"):
        film.moments(record, names=["a", "b", "c"])


# --- oxx replay -----------------------------------------------------------------------------------


def test_replay_draws_the_end_or_a_round_as_svg(replay, file, tmp_path):
    path = file(*recorded(3))
    out = tmp_path / "table.svg"
    code, text, _ = replay(path, "--svg", out)
    assert (code, "no fault" in text, "\nround 1\n" in text) == (0, True, False)
    assert any((word or "").startswith("Game over") for word in words(out.read_text("utf-8")))
    for number, head in ((0, "round 1"), (4, "round 5")):  # after it the next one begins
        assert replay(path, "--svg", out, "--round", number, "--seat", 1)[0] == 0
        assert any(head in (word or "") for word in words(out.read_text("utf-8")))


@pytest.mark.slow
def test_replay_draws_one_game_of_a_file_as_gif(replay, file, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    path = file(*recorded(2, games=2))
    out = tmp_path / "game.gif"
    code, _, err = replay(path, "--gif", out)
    assert code == 2 and "holds 2 games; choose the one to draw by --game" in err
    assert not out.exists()
    code, text, _ = replay(path, "--gif", out, "--game", 2, "--json")
    assert code == 0
    with Image.open(out) as picture:
        assert json.loads(text)["pictures"] == {str(out): f"{picture.n_frames} pictures"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--round", 3], "name a file by --svg"),
        (["--svg", "OUT", "--round", 99], "--round 99: the game has 24 rounds"),
        (["--svg", "OUT", "--seat", 2], "--seat 2: the seats are 0 to 1"),
        (["--gif", "OUT", "--seat", -1], "--seat -1: the seats are 0 to 1"),
        (["--svg", "nowhere/OUT"], "nowhere/OUT: No such file"),
        (["--gif", "."], "Is a directory"),
    ],
)
def test_replay_says_what_is_wrong_and_writes_nothing(
    replay, file, tmp_path, monkeypatch, options, message
):
    path = file(*recorded(2))
    monkeypatch.chdir(tmp_path)
    code, _, err = replay(path, *options)
    assert code == 2 and message in err
    assert [found.name for found in tmp_path.iterdir()] == ["games.jsonl"]


def test_replay_draws_no_broken_game(replay, file, tmp_path):
    (record,) = recorded(2)
    code, text, _ = replay(file({**record, "scores": [0, 0]}), "--svg", tmp_path / "a.svg")
    assert code == 1 and "R12" in text
    assert not (tmp_path / "a.svg").exists()


def test_a_stopped_animation_leaves_no_half_file(replay, file, tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    path = file(*recorded(2))
    drawn = []

    def pixels(moment: film.Moment, width: int) -> Any:
        drawn.append(moment)
        if len(drawn) > 6:
            raise KeyboardInterrupt
        return np.zeros((70, 100, 3), np.uint8)

    monkeypatch.setattr(film.Moment, "pixels", pixels)
    code, _, _ = replay(path, "--gif", tmp_path / "a.gif")
    assert code == 130 and len(drawn) > 6
    assert [found.name for found in tmp_path.iterdir()] == ["games.jsonl"]


def test_a_missing_pillow_is_named(replay, file, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "PIL", None)
    code, _, err = replay(file(*recorded(2)), "--gif", tmp_path / "a.gif")
    assert code == 2 and "needs pillow: " in err and "[render]" in err
    assert [found.name for found in tmp_path.iterdir()] == ["games.jsonl"]
