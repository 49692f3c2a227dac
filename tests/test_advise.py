"""`oxx advise`: a position in, expectations and a choice out."""

import io
import json

import numpy as np
import pytest

from oxx_env import advice, notation, records
from oxx_env.bots.monte_carlo import MonteCarlo, Outcomes, growing
from oxx_env.commands import _cli
from oxx_env.game.table import Table

CARD = "4p seat 0 | rows 12 7 31 20 46 | hand 3 17 52 88"


@pytest.fixture
def oxx_advise(capsys):
    def run(*argv):
        code = _cli.main(["advise", *map(str, argv)])
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
    keys = "action card row points win_share difference se about_equal choice"
    assert all(list(a) == keys.split() for a in data["actions"])
    assert list(data) == ["position", "bot", "seat", "phase", "actions", "choice", "clear"]
    (choice,) = [a for a in data["actions"] if a["choice"]]
    assert choice["action"] == data["choice"]
    assert choice["difference"] == choice["se"] == 0 and not choice["about_equal"]
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
        ("4p seat 0 | rows 12 7 31 20 46 | hand 3 12 52 88", "card 12 appears twice"),
        ("4p seat 0 | rows 12 7 31 20 46 | hand 3 4 5 6 8", "5 cards in hand"),
        ("4p seat 0 | rows 12 7 31 20 46 | hand 3 4 111", "no card 111"),
        ("4p seat 0 | rows 12 7 31 20 | hand 3 4 5 6", "4 rows"),
        ("no/such/file.json", "no/such/file.json: no such file"),
        ("", "how many players"),
        ("{", "no JSON"),
        ("{}", "lacks its rules"),
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
        ("mc:20", "Difference: points against the others' mean 4 rounds ahead, compared with"),
        ("mc:20:horizon=1", "points against the others' mean at the end of this round,"),
        ("search:quick:2", "points against the others' mean at the end of the hand,"),
        ("greedy", "The choice is that of greedy; the figures are from mc:1000."),
        ("mc:20:value=win", "Difference: share of the victory at the end of the game,"),
    ],
)
def test_it_is_said_what_the_differences_are(oxx_advise, bot, told):
    _, out, _ = oxx_advise(CARD, "--bot", bot)
    assert told in " ".join(out.split())


def test_who_names_no_bot_asks_search_with_the_champion(oxx_advise):
    code, out, _ = oxx_advise(CARD, "--json")
    told = json.loads(out)
    assert code == 0 and told["bot"] == "search:champion:1600"
    assert out == oxx_advise(CARD, "--json", "--bot", "search:champion:1600")[1]
    assert out != oxx_advise(CARD, "--json", "--bot", "search:champion:2")[1]


# --- what is clear and what is about equal ---


def outcomes(*lists):
    """What actions 0, 1, ... came to, deal by deal; shares of the victory a tenth of that."""
    told = np.array(lists, float)
    padded = np.zeros((10, told.shape[1]))
    padded[: len(told)] = told
    products = np.stack([padded @ padded.T, (padded / 10) @ (padded / 10).T])
    means = padded.mean(axis=1)
    return Outcomes([*range(len(lists))], told.shape[1], means, means, means / 10, products)


def test_the_error_is_that_of_the_differences_not_of_the_levels():
    luck = np.array([-30.0, 10.0, 25.0, -5.0] * 10)
    apart = np.array([1.0, 2.0] * 20)
    difference, se = outcomes(luck, luck - apart).above(0, 1)
    assert difference == pytest.approx(1.5)
    assert se == pytest.approx(apart.std(ddof=1) / 40**0.5)
    assert outcomes(luck, luck).above(0, 1) == (0, 0)


def advised(monkeypatch, *parts):
    """Advice where the play-outs come to this, part by part; and how many parts were used."""
    used = []

    def told(self, view, rng):
        for part in parts:
            used.append(part)
            yield part

    monkeypatch.setattr(MonteCarlo, "outcomes", told)
    view = notation.from_text(CARD)
    return advice.advise(view, "mc:20", np.random.default_rng(0)), len(used)


LUCK = np.array([-4.0, 4.0] * 50)


def test_more_deals_are_tried_until_one_is_surely_best(monkeypatch):
    none = np.zeros(100)
    unsure = outcomes(none + 0.5, none + LUCK, none - 3, none - 4)
    sure = outcomes(none + 2, none + LUCK, none - 3, none - 4)
    told, used = advised(monkeypatch, unsure, sure, sure)
    assert used == 2 and told.clear
    assert [option.difference for option in told] == [0, -2, -5, -6]
    assert not any(option.about_equal for option in told)
    assert told.notes()[0] == "Card 3 is clearly best."
    told, used = advised(monkeypatch, unsure, unsure)
    assert used == 2 and not told.clear
    assert [option.about_equal for option in told] == [False, True, False, False]
    assert told.notes()[0] == "Card 3 is about equal to card 17."


def test_few_deals_make_nothing_clear(monkeypatch):
    told, _ = advised(monkeypatch, outcomes([9.0, 9], [1.0, 1], [0.0, 0], [0.0, 0]))
    assert not told.clear and [option.about_equal for option in told] == [False, True, True, True]


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        ([0.2, 0.3, 0.1, 0.1], "Points and wins disagree: card 17 has the better share of the"),
        ([0.2, 0.202, 0.1, 0.1], "By share of the victory card 17 is first, by 0.2 ± 1.0 %, which"),
        ([0.3, 0.2, 0.1, 0.1], None),
    ],
)
def test_where_points_and_wins_disagree_this_is_said(monkeypatch, shares, says):
    none = np.zeros(100)
    found = outcomes(none + 9, none, none, none)
    won = np.array([*shares, *[0.0] * 6])
    deals = won[:, None] + np.where(np.arange(10) == 1, 1, 0)[:, None] * LUCK / 4 * 0.05
    found.products[1] = deals @ deals.T
    found.shares[:] = won
    told, _ = advised(monkeypatch, found)
    assert told.choice.card == 3
    assert len(told.notes()) == (2 if says else 1)
    assert not says or told.notes()[1].startswith(says)


def test_deals_grow_up_to_a_number():
    assert list(growing(1600, 0)) == [100, 100, 200, 400, 800]
    assert list(growing(250, 0)) == [100, 100, 50]
    assert list(growing(1, 0)) == [2]


@pytest.mark.parametrize("bot", ["mc:300", "mc:60:value=win", "search:quick:60", "mc:2ms"])
def test_a_clear_choice_has_no_better_beside_it(bot):
    for seed in range(4):
        for view in (notation.from_text(CARD), row_view()):
            told = advice.advise(view, bot, np.random.default_rng(seed))
            assert told.choice.difference == told.choice.se == 0
            assert told.clear == all(o.worse for o in told if not o.choice)
            for option in told:
                if not option.choice:
                    beyond = abs(option.difference) > 2 * option.se and told.deals >= advice.FEW
                    assert option.about_equal == (not beyond)
                    assert option.difference <= 0
            if "ms" not in bot:
                again = advice.advise(view, bot, np.random.default_rng(seed))
                assert again == told


def test_a_bot_that_errs_is_not_called_clear():
    """The figures are from Monte Carlo then, and what is better by them stands above the choice."""
    view, above = row_view(), 0
    for seed in range(4):
        told = advice.advise(view, "random", np.random.default_rng(seed))
        best = max(option.difference for option in told)
        assert best <= 0 or not told.clear
        above += best > 0
    assert above


def test_the_positions_in_the_help_can_be_pasted(oxx_advise):
    described = _cli.load_command("advise").__doc__
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


def test_what_the_coach_says_of_a_row_is_what_the_kernel_does():
    """Some hundred row choices of all rule sets: the cards taken, their heads, the length."""
    from copy import deepcopy

    from oxx_env.game.rules import RULE_SETS
    from oxx_env.web.coach import Reasons

    rng, seen = np.random.default_rng(5), 0
    for seed in range(12):
        table = Table(players=2 + seed % 5, rules=[*RULE_SETS][seed % 4])
        table.deal(seed=seed)
        while not table.over:
            seat = table.deciders()[0]
            view = table.view(seat)
            for action in view.legal if view.phase == "row" else []:
                row, after = action - 4, deepcopy(table)
                after.act(seat, action)
                places = [p for told in after.history() for p in told["placements"]]
                if after.over:
                    places += records.records_of(after)[-1]["rounds"][-1]["placements"]
                taken = next(p[3] for p in reversed(places) if p[:2] == [seat, view.card])
                told, seen = Reasons(view).of(view.card, row)[0], seen + 1
                if not taken:
                    length = len(view.rows[row]) + 1
                    assert told == f"takes nothing; the row then has {length} cards"
                else:
                    assert taken == view.rows[row]
                    deck = Reasons(view).deck
                    heads = sum(int(sum(deck[number - 1])) for number in taken)
                    assert told.startswith(f"takes {heads or 'no'} head")
            table.act(seat, int(rng.choice(table.legal(seat))))
    assert seen > 300
