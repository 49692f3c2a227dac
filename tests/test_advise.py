"""`oxx advise`: a position in, expectations and a choice out."""

import io
import json

import numpy as np
import pytest

from oxx_env import cli, notation
from oxx_env.table import Table

CARD = "4p seat 0 | rows 12 7 31 20 46 | hand 3 17 52 88"


@pytest.fixture
def oxx_advise(capsys):
    def run(*argv):
        code = cli.main(["advise", *map(str, argv)])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


def row_view(rules="base"):
    table = Table(players=3, rules=rules)
    table.deal(seed=2)
    rng = np.random.default_rng(2)
    while True:
        seat = table.deciders()[0]
        view = table.view(seat)
        if view.phase == "row":
            return view
        table.act(seat, int(rng.choice(table.legal(seat))))


def test_every_legal_card_gets_points_and_win_share_and_one_is_the_choice(oxx_advise):
    code, out, err = oxx_advise(CARD, "--bot", "mc:50", "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert (data["bot"], data["seat"], data["phase"]) == ("mc:50", 0, "card")
    assert [a["action"] for a in data["actions"]] == [0, 1, 2, 3]
    assert [a["card"] for a in data["actions"]] == [3, 17, 52, 88]
    assert all(a["row"] is None for a in data["actions"])
    assert all(a["points"] >= 0 and 0 <= a["win_share"] <= 1 for a in data["actions"])
    assert [a["action"] for a in data["actions"] if a["choice"]] == [data["choice"]]
    assert notation.from_text(data["position"]).hand == [3, 17, 52, 88]


@pytest.mark.parametrize("rules", ["base", "positive"])
def test_at_a_row_choice_every_legal_row_is_weighed(oxx_advise, rules):
    view = row_view(rules)
    code, out, _ = oxx_advise(notation.to_text(view), "--bot", "mc:20", "--json")
    data = json.loads(out)
    assert (code, data["phase"]) == (0, "row")
    assert [a["action"] for a in data["actions"]] == view.legal
    assert [a["row"] for a in data["actions"]] == [action - 4 for action in view.legal]
    assert {a["card"] for a in data["actions"]} == {view.card}


def test_text_shows_the_table_the_choice_and_the_direction(oxx_advise):
    code, out, err = oxx_advise(CARD, "--bot", "mc:20")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert out.count("best choice") == 1
    assert "(mc:20; fewest points win)" in out
    assert "row 0   12" in out


def test_text_file_and_view_json_give_the_same_advice(oxx_advise, tmp_path, monkeypatch):
    view = row_view()
    told = json.dumps(view.to_dict())
    file = tmp_path / "view.json"
    file.write_text(told)
    argv = ["--bot", "mc:20", "--json"]
    by_file = oxx_advise(file, *argv)
    monkeypatch.setattr("sys.stdin", io.StringIO(told))
    by_input = oxx_advise("-", *argv)
    by_text = oxx_advise(notation.to_text(view), *argv)
    assert by_file[0] == 0
    assert by_file == by_input == by_text == oxx_advise(file, *argv)


def test_a_bot_without_expectations_is_asked_for_its_choice(oxx_advise):
    # No card takes anything now, and of these four the Baron, 52, shows the most heads.
    code, out, _ = oxx_advise(CARD, "--bot", "greedy", "--json")
    assert code == 0
    assert json.loads(out)["choice"] == 2


@pytest.mark.parametrize(
    ("position", "says"),
    [
        ("4p seat 0 | rows 12 7 31 20 46 | hand 3 12 52 88", "card 12 stands twice"),
        ("4p seat 0 | rows 12 7 31 20 46 | hand 3 4 5 6 8", "5 cards in hand"),
        ("4p seat 0 | rows 12 7 31 20 46 | hand 3 4 111", "no card 111"),
        ("4p seat 0 | rows 12 7 31 20 | hand 3 4 5 6", "4 rows"),
        ("no/such/file.json", "no/such/file.json: no such file"),
        ("", "how many players"),
        ("{", "no JSON"),
        ("{}", "does not tell its rules"),
        ("2p seat 0 picked | rows 12 7 31 20 46 | hand 3 17 52 88", "nothing to decide"),
    ],
)
def test_a_wrong_position_is_refused_with_the_place(oxx_advise, position, says):
    code, out, err = oxx_advise(position)
    assert (code, out) == (2, "")
    assert says in err


def test_a_file_in_another_encoding_is_named_and_a_mark_of_utf_8_is_fine(oxx_advise, tmp_path):
    file = tmp_path / "position"
    file.write_text(CARD, encoding="utf-16")
    code, _, err = oxx_advise(file)
    assert code == 2 and f"{file}: byte 1 is not UTF-8" in err
    file.write_text(CARD, encoding="utf-8-sig")
    assert oxx_advise(file, "--bot", "greedy") == oxx_advise(CARD, "--bot", "greedy")


@pytest.mark.parametrize(
    ("bot", "told"),
    [
        ("mc:20", "by the outlook 4 rounds ahead, the figures are for the end"),
        ("mc:20:horizon=1", "by the outlook this round,"),
        ("search:quick:2", "by the points to the end of the hand and the policy's opinion, the"),
        ("greedy", "The choice is that of greedy; the figures are from mc:1000."),
        ("mc:20:value=win", ""),  # compares what is shown
    ],
)
def test_where_choice_and_figures_need_not_agree_this_is_said(oxx_advise, bot, told):
    _, out, _ = oxx_advise(CARD, "--bot", bot)
    assert told in out
    assert ("The choice is" in out) == bool(told)


def test_who_names_no_bot_asks_search_with_the_champion(oxx_advise):
    code, out, _ = oxx_advise(CARD, "--json")
    told = json.loads(out)
    assert code == 0 and told["bot"] == "search:champion:200"
    assert out == oxx_advise(CARD, "--json", "--bot", "search:champion:200")[1]
    assert out != oxx_advise(CARD, "--json", "--bot", "search:champion:2")[1]


def test_the_positions_in_the_help_can_be_pasted(oxx_advise):
    described = cli.load_command("advise").__doc__
    positions = [line.strip() for line in described.splitlines() if "| rows" in line]
    assert len(positions) == 2
    for position in positions:
        code, _, err = oxx_advise(position, "--bot", "mc:2")
        assert (code, err) == (0, "")


def test_the_wrong_place_is_marked_by_carets(oxx_advise):
    _, _, err = oxx_advise("4p | rows 12 7 31 20 46 | hand 3 12 52 88")
    line, carets = err.splitlines()[-2:]
    assert line[carets.index("^") : carets.rindex("^") + 1] == "12"


def test_a_bot_that_cannot_advise_is_refused(oxx_advise):
    code, _, err = oxx_advise(CARD, "--bot", "nobody")
    assert code == 2
    assert "unknown bot 'nobody'" in err
