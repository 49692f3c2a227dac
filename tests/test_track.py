"""The tracker of a real game, and `oxx track` around it."""

import json
import re

import numpy as np
import pytest

from oxx_env import records
from oxx_env.commands import _cli
from oxx_env.game.table import Table
from oxx_env.notation.tracker import Tracker, TrackError

SETTINGS = [
    (players, rules)
    for players in (2, 4, 7, 10)
    for rules in ("base", "color", "positive", "color+positive")
]


def follow(players, rules, seat, seed=1, check=None):
    """Play a random game and tell a tracker what `seat` sees of it; gives both."""
    table = Table(players=players, rules=rules)
    table.deal(seed=seed)
    rng = np.random.default_rng(seed)
    tracker = Tracker(players, rules, "balanced", seat)
    tracker.enter_rows([row[0] for row in table.view(seat).rows])
    told = {"rounds": 0, "rows": 0}

    def tell():
        """Enter what happened at the table since."""
        rounds = table.history()
        while tracker.expects != "over":
            if tracker.expects == "hand":
                if told["rounds"] < len(rounds):  # a hand of one card has played itself
                    assert tracker.hand_size == 1
                    tracker.enter_hand([rounds[told["rounds"]]["cards"][seat]])
                elif table.over:
                    return
                else:
                    tracker.enter_hand(table.view(seat).hand)
            elif tracker.expects == "cards":
                if len(rounds) == told["rounds"]:
                    if table.over:
                        tracker.enter_over()
                    return
                tracker.enter_cards(rounds[told["rounds"]]["cards"])
                told["rounds"] += 1
            else:
                placements = rounds[told["rounds"] - 1]["placements"]
                due = [p for p in placements if p[1] == tracker.due[1]]
                if not due:
                    return
                tracker.enter_row(due[0][2])

    while not table.over:
        tell()
        if check is not None:
            check(table, tracker)
        decider = table.deciders()[-1]  # the later seats pick first
        table.act(decider, int(rng.choice(table.legal(decider))))
    tell()
    if tracker.expects == "hand":  # the table found the deadlock (V2f) before the hand was told
        tracker.enter_over()
    return table, tracker


@pytest.mark.parametrize("rules", ["base", "color"])
@pytest.mark.parametrize("players", [2, 5, 10])
def test_a_finished_game_becomes_a_record_that_replays(players, rules):
    table, tracker = follow(players, rules, seat=1, seed=players)
    record, truth = tracker.record(), records.records_of(table)[0]
    assert records.replay(record).to_dict() == record
    for key in ("rows", "rounds", "scores", "winners", "deck"):
        assert record[key] == truth[key]
    with pytest.raises(TrackError, match="not over"):
        Tracker(2).record()


def test_in_positive_a_record_is_refused_because_cards_stay_hidden():
    _, tracker = follow(4, "positive", seat=0)
    with pytest.raises(TrackError, match="not known"):
        tracker.record()


@pytest.mark.parametrize(("players", "rules"), SETTINGS)
def test_the_tracker_knows_what_the_seat_knows_at_each_of_its_decisions(players, rules):
    checked = {"card": 0, "row": 0}

    def check(table, tracker):
        seat = tracker.seat
        if seat in table.deciders():
            truth, told = table.view(seat), tracker.view()
            assert told.to_dict() == truth.to_dict()
            assert told.games.tobytes() == truth.games.tobytes()
            checked[truth.phase] += 1

    for seat in {0, players - 1}:
        table, tracker = follow(players, rules, seat, seed=players, check=check)
        assert tracker.expects == "over"
        assert tracker.rounds == table.history()
        assert tracker.view().phase == "over"
        if "positive" not in rules:
            assert tracker.view().scores == table.scores()
    assert checked["card"] > 4
    assert checked["row"] > 0


@pytest.mark.parametrize("rules", ["base", "positive"])
def test_saving_and_loading_at_any_time_changes_nothing(rules, tmp_path):
    file = tmp_path / "game.json"

    def check(table, tracker):
        tracker.save(file)
        again = Tracker.load(file)
        assert again.to_dict() == tracker.to_dict()
        assert again.expects == tracker.expects
        assert again._replay.games.tobytes() == tracker._replay.games.tobytes()

    follow(5, rules, 2, check=check)


@pytest.mark.parametrize("rules", ["base", "positive"])
def test_undo_takes_back_entry_by_entry_to_the_start(rules):
    states = []

    def check(table, tracker):
        states.append((len(tracker.entries), tracker.expects, tracker._replay.game.tobytes()))

    _, tracker = follow(3, rules, 1, check=check)
    at = {entries: (expects, game) for entries, expects, game in states}
    seen = 0
    while tracker.entries:
        kind = tracker.entries[-1][0]
        assert tracker.undo() == kind
        if len(tracker.entries) in at:
            assert at[len(tracker.entries)] == (tracker.expects, tracker._replay.game.tobytes())
            seen += 1
    assert seen > 10
    assert tracker.expects == "rows"
    with pytest.raises(TrackError, match="nothing to take back"):
        tracker.undo()


def begun():
    tracker = Tracker(players=3, seat=1)
    tracker.enter_rows([12, 7, 31, 20, 46])
    tracker.enter_hand([88, 3, 17, 52])
    return tracker


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ([1, 3], "3 cards, one for each seat are needed, not 2"),
        ([1, 4, 2], "card 4 is not in your hand (3, 17, 52, 88)"),
        ([17, 3, 2], "card 17 of seat 0 is in your own hand"),
        ([12, 3, 2], "card 12 has been on the table before"),
        ([1, 3, 1], "card 1 appears twice"),
        ([1, 3, 111], "there is no card 111"),
        ([0, 3, 1], "there is no card 0"),
        ([True, 3, 1], "there is no card true"),
    ],
)
def test_cards_that_cannot_have_been_played_are_refused_and_nothing_changes(numbers, says):
    tracker = begun()
    before = tracker._replay.game.tobytes()
    with pytest.raises(TrackError) as error:
        tracker.enter_cards(numbers)
    assert says in str(error.value)
    assert tracker._replay.game.tobytes() == before
    assert tracker.expects == "cards"
    tracker.enter_cards([1, 3, 2])


def test_wrong_rows_hands_and_order_are_refused():
    tracker = Tracker(players=2)
    for enter, value, says in [
        (tracker.enter_hand, [1, 2, 3, 4], "now is expected: rows"),
        (tracker.enter_cards, [1, 2], "now is expected: rows"),
        (tracker.enter_rows, [1, 2, 3, 4], "5 row cards are needed, not 4"),
        (tracker.enter_rows, [1, 2, 3, 4, 4], "card 4 appears twice"),
        (tracker.enter_rows, [1, 2, 3, 4, 0], "there is no card 0"),
    ]:
        with pytest.raises(TrackError, match=says):
            enter(value)
    with pytest.raises(TrackError, match="the rows come first"):
        tracker.view()
    tracker.enter_rows([12, 7, 31, 20, 46])
    for value, says in [
        ([1, 2, 3], "4 cards in the own hand are needed, not 3"),
        ([1, 2, 3, 7], "card 7 has been on the table before"),
        ([1, 2, 3, 3], "card 3 appears twice"),
    ]:
        with pytest.raises(TrackError, match=says):
            tracker.enter_hand(value)
    tracker.enter_hand([1, 2, 3, 4])
    with pytest.raises(TrackError, match="now is expected: cards, not row"):
        tracker.enter_row(0)
    with pytest.raises(TrackError, match="R12"):
        tracker.enter_over()


def test_a_row_that_the_rules_do_not_allow_is_refused():
    tracker = begun()
    tracker.enter_cards([2, 3, 1])
    assert tracker.expects == "row"
    seat, number = tracker.due
    assert (seat, number) in [(2, 1), (0, 2), (1, 3)]
    wrong = next(row for row in range(6) if row not in tracker.legal_rows)
    with pytest.raises(TrackError, match=f"card {number} may go to row .* not to row {wrong}"):
        tracker.enter_row(wrong)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "no tracked game"),
        ({"format": "oxx-game/1"}, "no tracked game"),
        ({"format": "oxx-track/1"}, "'deck' is missing"),
        ({**begun().to_dict(), "players": 1}, "1 players"),
        ({**begun().to_dict(), "players": None}, "not null"),
        ({**begun().to_dict(), "seat": 3}, "seats are 0 to 2"),
        ({**begun().to_dict(), "rules": []}, "unknown rule set"),
        (
            {**begun().to_dict(), "deck": {"name": "x", "cards": [[1]]}},
            "should be an integer array",
        ),
        ({**begun().to_dict(), "entries": [1]}, "cannot be read"),
        ({**begun().to_dict(), "entries": [["rows", [1]]]}, "entry 1 (rows): 5 row cards"),
        ({**begun().to_dict(), "entries": [["row", 1]]}, "entry 1 (row): now is expected: rows"),
        ({**begun().to_dict(), "entries": [["rows", None]]}, "entry 1 (rows)"),
        ({**begun().to_dict(), "entries": [["expect", 1]]}, "unknown kind of entry"),
    ],
)
def test_a_file_that_is_no_tracked_game_is_refused(data, says, tmp_path):
    with pytest.raises(TrackError) as error:
        Tracker.from_dict(data)
    assert says in str(error.value)
    file = tmp_path / "x.json"
    file.write_text(json.dumps(data))
    with pytest.raises(TrackError, match=r"x\.json"):
        Tracker.load(file)


# --- the command ---


@pytest.fixture
def oxx_track(capsys, monkeypatch, tmp_path):
    """Run `oxx track`; the lines are typed one after the other, then the input ends."""

    def run(lines, *argv, file=tmp_path / "game.json"):
        typed = iter(lines)

        def ask(prompt=""):
            print(prompt)
            line = next(typed, None)
            if line is None:
                raise EOFError
            return line

        monkeypatch.setattr("builtins.input", ask)
        code = _cli.main(["track", str(file), *map(str, argv)])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert next(typed, None) is None
        return code, out, err

    return run


BEGIN = ["12 7 31 20 46", "3, 17, 52, 88"]


def test_a_whole_game_is_followed_with_advice_at_each_decision(oxx_track):
    table, tracker = follow(10, "base", 4, seed=3)
    lines = [
        str(value) if kind == "row" else " ".join(map(str, value))
        for kind, value in tracker.entries
    ]
    code, out, err = oxx_track(lines, "--players", 10, "--seat", 4, "--bot", "mc:5")
    assert (code, err) == (0, "")
    own_rows = out.count("Which row do you choose")
    assert out.count("best choice") == 6 + own_rows  # hands of 4, 3, 2, twice
    assert "Game over" in out
    for seat, points in enumerate(table.scores()):
        name = "you" if seat == 4 else f"seat {seat}"
        assert re.search(rf"^{name} +{points}( +best)?$", out, re.MULTILINE)
    taken = sum(bool(p[3]) for told in table.history() for p in told["placements"])
    assert out.count(": takes row ") == taken


def test_the_record_of_a_game_is_added_once(oxx_track, tmp_path):
    _, tracker = follow(3, "base", 1, seed=3)
    lines = [
        str(value) if kind == "row" else " ".join(map(str, value))
        for kind, value in tracker.entries
    ]
    kept = tmp_path / "kept.jsonl"
    oxx_track(lines, "--players", 3, "--seat", 1, "--bot", "greedy")
    code, _, err = oxx_track([], "--record", kept)
    assert code == 0 and "record added" in err
    assert [records.replay(r).to_dict() for r in records.read_records(kept)] == [tracker.record()]
    before = kept.read_bytes()
    code, _, err = oxx_track([], "--record", kept)
    assert code == 0 and "already" in err
    assert kept.read_bytes() == before


def test_what_the_file_says_decides_whether_there_can_be_a_record(oxx_track, tmp_path):
    kept = tmp_path / "kept.jsonl"
    oxx_track(BEGIN, "--rules", "positive", "--bot", "greedy")
    code, _, err = oxx_track([], "--record", kept)
    assert code == 2 and "in positive, cards stay hidden" in err
    assert not kept.exists()


def test_the_same_command_goes_on_where_it_was_left(oxx_track):
    oxx_track([*BEGIN, "q"], "--players", 3, "--bot", "mc:5")
    code, out, _ = oxx_track(["3 1 2"], "--bot", "mc:5")
    assert code == 0
    assert "Going on with a game of base for 3" in out
    assert "Cards played, of you, seat 1, seat 2?" in out
    assert "Good-bye" in out


def test_mistakes_are_explained_and_undo_takes_back(oxx_track):
    lines = ["x", "", "1 2", *BEGIN, "?", "t", "3 12 1 2", "o", "u", "1 2 3 4", "u", "u", "u"]
    code, out, _ = oxx_track(lines, "--bot", "mc:5")
    assert code == 0
    for says in (
        "'x' is not understood; type numbers",
        "Nothing is not understood",
        "5 row cards are needed, not 2",
        "Card 12 has been on the table before",
        "A game of this rule set ends when all cards have been placed (R12)",
        "Taken back: hand",
        "Taken back: rows",
        "There is nothing to take back",
        "h or hint",
    ):
        assert says in out


def test_json_tells_state_and_advice_without_asking(oxx_track):
    oxx_track(BEGIN, "--players", 3, "--bot", "mc:5")
    code, out, err = oxx_track([], "--json", "--bot", "mc:5")
    data = json.loads(out)
    assert (code, err, data["expects"]) == (0, "", "cards")
    assert data["view"]["hand"] == [3, 17, 52, 88]
    assert [option["card"] for option in data["advice"]] == [3, 17, 52, 88]


def test_plain_mode_has_no_layout(oxx_track):
    _, out, _ = oxx_track(BEGIN, "--plain", "--bot", "mc:5")
    assert not set(out) & set("\x1b│─→·>[]")
    assert "Your hand: 3 with" in out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--players", 1], "--players is from 2 to 10, not 1"),
        (["--seat", 4], "seats are 0 to 3"),
        (["--deck", "none"], "no deck of this name"),
        (["--bot", "nobody"], "unknown bot"),
    ],
)
def test_a_wrong_option_exits_2_with_a_message(oxx_track, argv, says):
    code, _, err = oxx_track([], *argv)
    assert code == 2
    assert says in err


def test_a_file_that_cannot_be_used_exits_2(oxx_track, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    for file in (bad, tmp_path, tmp_path / "no" / "such.json"):
        code, _, err = oxx_track([], file=file)
        assert code == 2
        assert err.count("\n") == 1
