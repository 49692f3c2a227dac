"""Positions as text and as JSON: printed from any view, read back, refused where they cannot be."""

from __future__ import annotations

import copy
import doctest
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_decks import MAKERS

from oxx_env import bots, cards, notation, rules
from oxx_env.game.observe import observe
from oxx_env.game.table import Table
from oxx_env.game.views import View
from oxx_env.notation.position import (
    PositionError,
    check_position,
    from_text,
    read_position,
    to_text,
    view_from_dict,
)

RULES = ("base", "color", "positive", "color+positive")
# balanced: 12grk 7yyy 41y 5kw 50www 35brw 9ggg 60y 3ykw 17yrk 52Bx 88bk
LINE = "4p | rows 12 7-41 5-50-35 9 60 | hand 3 17 52 88"


def views(players: int, rule_set: str, deck: Any = "balanced", games: int = 1) -> Iterator[View]:
    """A view before every decision of a random match, each seat's in turn, and all at its end."""
    chance = np.random.default_rng([players, RULES.index(rule_set)])
    table = Table(players, rule_set, deck, games)
    table.deal(int(chance.integers(1 << 50)))
    seat = 0
    while deciders := table.deciders():
        seat = (seat + 1) % players
        in_card_phase = table.game["phase"] == rules.CARD_PHASE
        yield table.view(seat if in_card_phase else deciders[0])
        if not in_card_phase:
            yield table.view(seat)
        for seat in deciders:
            table.act(seat, int(chance.choice(table.legal(seat))))
    for seat in range(players):
        yield table.view(seat)


def through_json(view: View) -> Any:
    return json.loads(json.dumps(view.to_dict()))


def unequal(one: View, two: View) -> list[str]:
    """The fields of the record that differ."""
    return [
        name
        for name in rules.GAME.names or ()
        if one.game[name].tobytes() != two.game[name].tobytes()
    ]


# ---- there and back


@pytest.mark.parametrize("rule_set", RULES)
@pytest.mark.parametrize("players", [2, 4, 7])
def test_the_json_of_a_view_gives_the_same_view_to_the_byte(players, rule_set):
    for view in views(players, rule_set, games=2 if players == 4 else 1):
        again = view_from_dict(through_json(view))
        assert unequal(view, again) == []
        assert again.decks.tobytes() == view.decks.tobytes()
        assert again.to_dict() == view.to_dict()


@pytest.mark.parametrize("rule_set", RULES)
@pytest.mark.parametrize("players", [2, 3, 10])
def test_the_text_of_a_view_gives_the_same_view_without_its_history(players, rule_set):
    phases = set()
    name = list(MAKERS)[(players + RULES.index(rule_set)) % len(MAKERS)]
    odd = MAKERS[name](np.random.default_rng(players))
    for deck, games in [("two-color", 1), (odd, 2 if players == 10 else 1)]:
        for view in views(players, rule_set, deck, games):
            text = to_text(view)
            again = from_text(text, None if isinstance(deck, str) else deck)
            told = replace(view, history=list).to_dict()
            assert again.to_dict() == told
            assert observe(again).tobytes() == observe(view).tobytes()
            assert to_text(again) == text and "\n" not in text
            phases.add(view.phase)
    assert phases == {"card", "row", "over"}


@pytest.mark.parametrize("rule_set", RULES)
def test_bots_act_alike_on_a_view_rebuilt_from_json_or_text(rule_set):
    asked = 0
    for view in views(3, rule_set):
        if view.seat not in view.to_act:
            continue
        for again in (view_from_dict(through_json(view)), from_text(to_text(view))):
            for spec in ("greedy", "random"):
                bot = bots.make(spec)
                acts = [bot.act(v, np.random.default_rng(asked)) for v in (view, again)]
                assert acts[0] == acts[1]
            asked += 1
    assert asked > 40


def test_a_picked_card_stays_secret_and_the_seat_has_nothing_to_decide():
    table = Table(3)
    table.deal(1)
    table.act(1, 2)
    view = table.view(1)
    for again in (view_from_dict(through_json(view)), from_text(to_text(view))):
        assert again.legal == view.legal == [rules.PASS]
        assert again.to_act == view.to_act == [0, 2]
    assert "picked" in to_text(view)


def test_a_history_may_be_left_out_and_nothing_a_bot_needs_is_lost():
    for view in views(3, "color+positive"):
        data = through_json(view)
        for key in ("history", "to_act", "legal", "card", "match"):
            del data[key]
        again = view_from_dict(data)
        assert observe(again).tobytes() == observe(view).tobytes()
        assert again.history() == []


# ---- what a person types


def test_a_short_line_is_enough():
    view = from_text(LINE)
    assert (view.rules, view.players, view.seat, view.deck) == ("base", 4, 0, "balanced")
    assert view.rows == [[12], [7, 41], [5, 50, 35], [9], [60]]
    assert view.hand == [3, 17, 52, 88]
    assert view.legal == [0, 1, 2, 3] and view.to_act == [0, 1, 2, 3]
    # Eight cards lie in rows: one round is not enough for a full hand, so there were four.
    assert view.game["round"] == 4
    assert view.game["pile_sizes"][:4].tolist() == [8] * 4


def test_parts_come_in_any_order_and_bars_and_lines_are_for_the_eye():
    line = "hand 88,52,17,3\nrows 12 7-41 5-50-35 9 60\n\n4P BASE"
    assert to_text(from_text(line)) == to_text(from_text(LINE))


def test_revealed_cards_make_it_the_row_phase_in_order_of_numbers():
    view = from_text("positive 4p seat 1 rows 12 7 5 9 60 hand 3 17 52 revealed 3:104 1:88 0:101")
    assert view.phase == "row" and view.card == 88
    assert view.revealed == [[1, 88], [0, 101], [3, 104]]
    assert view.to_act == [1]
    assert view.legal == [rules.FIRST_ROW, rules.FIRST_ROW + 2]


def test_taken_cards_may_be_forgotten_and_points_told():
    view = from_text(f"{LINE} | taken 1:8-91-? 2:70 | points 0 9 3 2")
    assert view.oxx_piles == [[], [8, 91], [70], []]
    assert view.scores == [0, 9, 3, 2]
    assert to_text(from_text(to_text(view))) == to_text(view)
    assert from_text(f"{LINE} | taken 1:8-91").scores == [0, 5, 0, 0]


def test_a_deck_is_named_by_its_path(tmp_path):
    path = tmp_path / "my deck.csv"
    deck = MAKERS["all barons"](np.random.default_rng(0))
    cards.save_deck(deck, path)
    view = from_text(f"{LINE} deck {json.dumps(str(path))}")
    assert view.deck == "my deck.csv"
    assert 'deck "my deck.csv"' in to_text(view)
    assert from_text(to_text(view), deck=deck).to_dict() == view.to_dict()


def test_known_and_returned_cards_belong_to_positive():
    line = "positive 2p rows 12 7 5 9 60 hand 3 17 52 returned 1:8-91 known 1:70 0:17"
    view = from_text(line)
    assert view.returned == [[], [8, 91]] and view.known_hand == [[17], [70]]
    with pytest.raises(PositionError, match="no card goes under a draw pile"):
        from_text(line.replace("positive", "base"))


def test_a_position_is_read_as_text_or_json():
    view = from_text(LINE)
    assert read_position(LINE).to_dict() == view.to_dict()
    assert read_position("\n " + json.dumps(view.to_dict())).to_dict() == view.to_dict()
    other = read_position(json.dumps(view.to_dict()), deck=np.ones((110, 6), int))
    assert observe(other).tobytes() != observe(view).tobytes()
    for text in ['{"rules": ', '{"rules": NaN}', '{"a":' + "[" * 100_000, '{"rules": "base"}']:
        with pytest.raises(PositionError):
            read_position(text)


# ---- what cannot be


@pytest.mark.parametrize(
    "line, place, message",
    [
        ("4p rows 12 7 5 9 60 hand 3 17 52 5", "5", "card 5 appears twice: it is already in row 2"),
        ("4p rows 12 7 5 9 60 hand 3 17 52 88 99", "99", "5 cards in hand"),
        ("4p rows 12 7 5 9 60 hand 3 17 52 111", "111", "there is no card 111; cards are 1 to 110"),
        ("4p rows 12 7 5 9 0 hand 3 17 52 88", "0", "there is no card 0"),
        ("4p rows 12 7 5 9 60 hand 3 x 52 88", "x", "is no number"),
        ("4p rows 7-41-60-68 12 5 9 61 hand 3", "68", "row 0 shows 6 heads of yellow"),
        ("4p rows 52-30-5-46-1 12 7 9 61 hand 3", "46", "card 46 G shares no color with 5 KW"),
        ("4p rows 22-27-1 12 7 9 61 hand 3", "1", "card 1 W shares no color with 27 B"),
        ("4p rows 22-27-55-52-53-24 12 7 9 61 hand 3", "24", "row 0 has 6 cards and can have 5"),
        ("4p rows 12 7 5 9 hand 3", "12 7 5 9", "4 rows; should be 5"),
        ("4p rows 12 7 5 9 - hand 3", "-", "row 4 is empty"),
        ("4p rows 12 7 5 9 60 hand -", "-", "the hand is empty"),
        ("1p rows 12 7 5 9 60 hand 3", "1p", "should be an integer from 2 to 10"),
        ("4p seat 4 rows 12 7 5 9 60 hand 3", "4", "should be an integer from 0 to 3"),
        ("4p rows 12 7 5 9 60 hnd 3", "hnd", "did you mean 'hand'?"),
        ("4 players; rows: 12 7 5 9 60; hand: 3", "4", "did you mean '4p'?"),
        ("colour 4p rows 12 7 5 9 60 hand 3", "colour", "did you mean 'color'?"),
        ("4p rows 12 7 5 9 60 hand 3 deck balance", "balance", "did you mean 'balanced'?"),
        ("4p rows 12 7 5 9 60 hand 3 hand 4", "hand", "given twice"),
        ("4p rows 12 7 5 9 60 hand 3 taken 4:8", "4", "there is no seat 4"),
        ("4p rows 12 7 5 9 60 hand 3 taken 0:8 0:11", "0:11", "seat 0 given twice"),
        ("4p rows 12 7 5 9 60 hand 3 points 1 2", "1 2", "2 entries for 4 players"),
        ("4p rows 12 7 5 9 60 hand 3 taken 0:8 points 1 0 0 0", "1", "are 2 at least"),
        ("4p round 0 rows 12 7 5 9 60 hand 3 17 52 88 points 0 7 0 0", "7", "has taken are 0"),
        ("4p round 0 rows 12 7 5 9-11 60 hand 3 17 52 88", "12 7 5 9-11 60", "6 cards in rows"),
        ("4p round 0 rows 12 7 5 9 60 hand 3 17 52 88 taken 0:8", "0:8", "are 70; 69 were"),
        ("4p round 3 rows 12 7 5 9 60 hand 3 17 52 88", "3 17 52 88", "after 3 rounds it is 1"),
        ("4p rows 12 7 5 9 60 hand 3 17 hands 3", "3", "3 cards in the observer's hand; 2 are"),
        ("4p rows 12 7 5 9 60 hand 3 17 hands 2 1 2 2", "1", "seat 1 has 1 card"),
        ("4p rows 12 7 5 9 60 hand 3 17 piles 5", "3 17", "after 9 rounds it is 3"),
        ("4p rows 12 7 5 9 60 hand 3 17 piles 12 8 12 12", "8", "seat 1"),
        ("4p rows 12 7 5 9 60 hand 3 revealed 2:88 2:101", "2:101", "two revealed cards"),
        ("4p rows 12 7 5 9 60 hand 3 17 52 88 revealed 2:101", "88", "after the reveal"),
        ("4p rows 12 7 5 9 60 hand 3 revealed 2:107 picked", "picked", "in the card phase"),
        ("4p rows 12 7 5 9 60 hand 3 game 3/2", "3/2", "should be an integer from 1 to 2"),
        ("4p rows 12 7 5 9 60 hand 3 game 1/2 before 1 0 0 0", "1", "before the first game"),
        ("4p rows 12--7 5 9 60 1 hand 3", "-", "a card number is missing here"),
        ("4p rows 12 7 5 9 60", "", "lacks its hand"),
        ("rows 12 7 5 9 60 hand 3", "", "how many players"),
        ("", "", "how many players"),
    ],
)
def test_a_wrong_position_is_refused_with_the_place_marked(line, place, message):
    with pytest.raises(PositionError) as caught:
        from_text(line)
    error = caught.value
    assert message in error.problem
    assert error.span is not None
    assert line[slice(*error.span)] == place
    told, shown, carets = str(error).splitlines()
    assert told == error.problem and shown == f"  {line}"
    assert carets == "  " + " " * error.span[0] + "^" * max(1, len(place))


def test_a_card_without_a_choice_is_no_position_to_decide():
    # 7yyy fits nowhere but on row 1, 9ggg nowhere; both are placed without a question.
    line = "positive 4p rows 1 41 5 22 90 hand 3 revealed 2:{}"
    with pytest.raises(PositionError, match="card 7 of seat 2 has no choice: it goes to row 1"):
        from_text(line.format(7))
    with pytest.raises(PositionError, match=r"card 9 .* goes under the draw pile"):
        from_text(line.format(9))


def test_carets_stand_below_the_right_line_of_several():
    with pytest.raises(PositionError) as caught:
        from_text("4p\nrows 12 7 5 9 60\n  hand 3 17 7\npiles 8")
    assert str(caught.value).splitlines()[1:] == ["    hand 3 17 7", "              ^"]


def some_view(rule_set: str, phase: str, players: int = 3) -> Any:
    """The JSON of a view in the midst of a game."""
    found = [view for view in views(players, rule_set) if view.phase == phase]
    return through_json(found[len(found) * 2 // 3])


def alter(data: Any, *path: Any) -> Any:
    *way, key, value = path
    data = copy.deepcopy(data)
    place = data
    for step in way:
        place = place[step]
    place[key] = value
    return data


def test_json_that_contradicts_itself_is_refused_by_its_place():
    for rule_set in RULES:
        for phase in ("card", "row"):
            data = some_view(rule_set, phase)
            other = "row" if phase == "card" else "card"
            seat = data["seat"]
            for path in [
                ("phase", other),
                ("phase", "dealing"),
                ("rules", "bas"),
                ("players", 4),
                ("seat", 3),
                ("hand", [*data["hand"], 1, 2, 3, 4]),
                ("hand", [data["rows"][0][0]]),
                ("hand", [111]),
                ("rows", 4, []),
                ("rows", 0, [*data["rows"][0][:-1], "7"]),
                ("rows", data["rows"][1:]),
                ("oxx_piles", 0, [*data["oxx_piles"][0], data["rows"][1][0]]),
                ("scores", 1, data["scores"][1] + 1),
                ("scores", 1, 1e3),
                ("hand_sizes", seat, 5),
                ("pile_sizes", 0, data["pile_sizes"][0] + 1),
                ("returned", 0, [*data["returned"][0], data["rows"][0][0]]),
                ("known_hand", seat, [data["rows"][0][0]]),
                ("legal", [rules.PASS - 1]),
                ("to_act", [seat, seat]),
                ("match", "game", 2),
                ("deck", "cards", 0, [0] * 6),
                ("deck", "cards", 0, [1, 2]),
                ("deck", "nowhere.csv"),
                ("history", data["history"][:-1]),
                ("history", [*data["history"], data["history"][-1]]),
                ("history", 0, "cards", [1]),
            ]:
                with pytest.raises(PositionError) as caught:
                    check_position(alter(data, *path))
                assert str(caught.value).partition(":")[0], path
            check_position(data)


def test_the_place_in_json_is_told_as_it_is_indexed():
    data = some_view("base", "card")
    with pytest.raises(PositionError, match=r"^rows\[2\]\[0\]: there is no card 200"):
        check_position(alter(data, "rows", 2, 0, 200))
    with pytest.raises(PositionError, match=r"^match\.of: games: 0; should be"):
        check_position(alter(data, "match", "of", 0))
    with pytest.raises(PositionError, match=r"^history\[0\]: round 1, R5: "):
        check_position(alter(data, "history", 0, "placements", []))


JUNK = st.sampled_from([None, True, "", "card", -1, 0, 3, 1.5, 10**30, [], [[]], {}, [None] * 3])
WHOLE = [some_view("base", "row"), some_view("positive", "row"), some_view("positive", "card")]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    return [path, *(p for key in keys for p in _paths(value[key], (*path, key)))]


CHANGES = [(i, path) for i, data in enumerate(WHOLE) for path in _paths(data) if path]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(CHANGES), JUNK)
def test_rubbish_anywhere_in_json_is_a_clear_error_or_a_whole_position(change, junk):
    index, path = change
    try:
        view = view_from_dict(alter(WHOLE[index], *path, junk))
    except PositionError as error:
        assert len(str(error)) < 500
        return
    assert view_from_dict(through_json(view)).to_dict() == view.to_dict()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *LINE.split(),
                "-",
                "?",
                ":",
                "1:8",
                "taken",
                "points",
                "\n",
                '"',
                "9" * 30,
                "seat",
                "deck",
                "game",
                "1/2",
                "positive",
                "revealed",
                "hands",
                "2",
            ]
        ),
        max_size=25,
    )
)
def test_any_line_is_a_position_or_a_clear_error(words):
    try:
        view = from_text(" ".join(words))
    except PositionError as error:
        assert error.text is not None and error.span is not None
        return
    assert to_text(from_text(to_text(view))) == to_text(view)


def test_the_examples_of_the_documentation_hold():
    assert doctest.testmod(notation).failed == 0


@pytest.mark.parametrize(
    "text",
    [
        "base, 4p, seat 0, rows 12 71, 7, 55 88 2, 41, 60, hand 3,17,52,90, points 0, 0, 0, 0",
        "4p; rows 12 71; 7; 55 88 2; 41; 60; hand 3; 17; 52; 90; points 0;0;0;0",
        "4p rows 12-71,7,55-88-2,41,60 hand 3, 17, 52, 90",
        "4p rows 12,71 7 55,88,2 41 60 | hand 3 17 52 90",
        "4p rows 12-71; 7; 55-88-2; 41; 60 hand 3;17;52;90 hands 4,4,4,4 piles 8",
    ],
)
def test_commas_and_semicolons_may_stand_between_numbers_and_rows(text):
    view = notation.read_position(text)
    assert view.rows == [[12, 71], [7], [55, 88, 2], [41], [60]]
    assert (view.players, view.seat, view.hand) == (4, 0, [3, 17, 52, 90])


def test_commas_between_seats_and_cards_are_told_apart():
    text = "color 3p seat 1, rows 12-71, 7, 25-92, 41, 60, hand 3, 17, 90, "
    text += "taken 0:1-4,2:5,9, 1:8 revealed 1:46, 0:99"
    view = notation.read_position(text)
    assert view.oxx_piles == [[1, 4], [8], [5, 9]]
    assert view.revealed == [[1, 46], [0, 99]]
    with pytest.raises(notation.PositionError, match="there is no card 111") as error:
        notation.read_position("4p rows 12, 7 41, 31, 20, 111, hand 3")
    assert str(error.value).splitlines()[-1].index("^") == 28


def test_a_deck_whose_name_holds_marks_is_written_in_quotes():
    deck = cards.load_deck("balanced")
    data = notation.read_position("4p rows 12 7 31 20 46 hand 3").to_dict()
    view = notation.view_from_dict({**data, "deck": {"name": "a;b,c", "cards": deck.tolist()}})
    assert 'deck "a;b,c"' in notation.to_text(view)
