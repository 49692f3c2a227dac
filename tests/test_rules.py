"""The kernel, clause by clause: each test is named for the sentence it checks.

The drawing is the position that is played (see `positions.py`). `show` reveals one card a seat,
and the round then runs on by itself to the first choice of a row or to its end.
"""

from __future__ import annotations

import numpy as np
import pytest
from positions import BARONS, CARD, OVER, PASS, ROW, ROW_ACTION, Table, deal, plain_deck, position

from oxx_env import cards, engine, rules


def table_of(games: np.ndarray, decks: np.ndarray, g: int = 0) -> Table:
    return Table(games[g : g + 1], decks)


# ---- R1 to R3: the cards and the deal


@pytest.mark.parametrize("name", cards.DECK_NAMES)
def test_r1_a_baron_has_one_head_of_each_color_and_heads_are_points(name: str) -> None:
    deck = rules.deck_record(cards.load_deck(name))[0]
    for number in BARONS:
        word = deck["cards"][number]
        assert rules.heads_of(word) == 6
        assert [rules.color_count(word, color) for color in range(6)] == [1] * 6
    for number, heads in enumerate(cards.load_deck(name).tolist(), start=1):
        word = deck["cards"][number]
        assert rules.heads_of(word) == sum(heads) >= 1
        assert [rules.color_count(word, color) for color in range(6)] == heads
        assert rules.length_of(word) == 1


def test_r1_every_number_from_1_to_110_is_there_once() -> None:
    decks = engine.stack_decks(["balanced"])
    anywhere = set()
    for players in range(2, 11):
        games = engine.new_games(range(20), decks, players)
        for g in range(20):
            table = table_of(games, decks, g)
            dealt = [n for cards in table.rows + table.hands + table.piles for n in cards]
            assert len(set(dealt)) == len(dealt)
            anywhere |= set(dealt)
    assert anywhere == set(range(1, 111))


@pytest.mark.parametrize(
    ("players", "each"),
    [(2, 24), (3, 20), (4, 16), (5, 16), (6, 16), (7, 12), (8, 12), (9, 8), (10, 8)],
)
def test_r2_each_player_is_dealt_a_draw_pile(players: int, each: int) -> None:
    decks = engine.stack_decks(["balanced"])
    table = table_of(engine.new_games([1], decks, players), decks)
    assert [len(hand) for hand in table.hands] == [4] * players
    assert [len(pile) for pile in table.piles] == [each - 4] * players


def test_r2_every_deal_is_as_likely_as_another() -> None:
    """110 numbers in 8,000 deals of 2 players: each as often in each place as chance allows."""
    games = engine.new_games(range(8000), engine.stack_decks(["balanced"]), 2)
    for place in (games["rows"][:, 0, 0], games["rows"][:, 4, 0], games["piles"][:, 47]):
        counts = np.bincount(place, minlength=111)
        expected = 8000 / 110
        chi_squared = ((counts[1:] - expected) ** 2 / expected).sum()
        assert counts[0] == 0
        assert 65 < chi_squared < 166  # 109 degrees of freedom: 0.05 % on either side


def test_r2_nobody_has_seen_a_draw_pile_hand_or_the_box() -> None:
    decks = engine.stack_decks(["balanced"])
    table = table_of(engine.new_games([1], decks, 5), decks)
    assert table.seen == {row[0] for row in table.rows}
    assert table.seen == {number for number in range(1, 111) if rules.is_seen(table.game, number)}


def test_r3_the_first_four_of_the_pile_are_the_hand_and_a_baron_may_start_a_row() -> None:
    table = deal([[9, 3, 7, 1, *range(60, 80)], [*range(80, 104)]], [52, 20, 30, 40, 50])
    assert table.hands == [[1, 3, 7, 9], [80, 81, 82, 83]]
    assert table.piles == [[*range(60, 80)], [*range(84, 104)]]
    assert table.rows == [[52], [20], [30], [40], [50]]
    assert table.seen == {52, 20, 30, 40, 50}
    assert (table.phase, table.deciders) == (CARD, [0, 1])


# ---- R4 to R6: choosing, placing


PICKING = """
        row 0   10b
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  60b 61b 62b
        seat 1  70b 71b 72b
        seat 2  80b 81b 82b
        """


def test_r4_cards_are_chosen_secretly_and_revealed_together() -> None:
    table = position("base", PICKING)
    before = table.seen
    assert table.deciders == [0, 1, 2]
    table.play(1, 0)
    table.play(0, 1)
    assert table.deciders == [2]
    assert [table.legal(seat) for seat in range(3)] == [[PASS], [PASS], [0, 1, 2]]
    assert (table.phase, table.revealed, table.seen) == (CARD, [], before)
    assert table.hands == [
        [60, 61, 62],
        [70, 71, 72],
        [80, 81, 82],
    ]  # a picked card stays until the reveal
    table.play(2, 0)
    assert table.seen == before | {61, 70, 80}


def test_r4_the_order_of_choosing_changes_nothing() -> None:
    one, two = position("base", PICKING), position("base", PICKING)
    for seat in (0, 1, 2):
        one.play(seat, 0)
    for seat in (2, 0, 1):
        two.play(seat, 0)
    assert one.games.tobytes() == two.games.tobytes()


def test_r4_a_last_card_in_hand_plays_itself() -> None:
    table = position(
        "base",
        """
        row 0   10b
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  60b | 61b 62b 63b 64b
        seat 1  70b 71b | 72b 73b 74b
        """,
    )
    assert table.deciders == [1]
    assert table.legal(0) == [PASS]
    table.play(1, 1)
    assert table.rows[0] == [10, 60, 71]


ONE_AFTER_THE_OTHER = """
        row 0   10b
        row 1   20b
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  90b 91r
        seat 1  70bg 71r
        seat 2  80g 81r
        """


def test_r5_cards_are_placed_from_the_lowest_number_up() -> None:
    table = position("base", ONE_AFTER_THE_OTHER)
    table.show(90, 70, 80)
    assert table.phase == ROW
    assert table.revealed == [[1, 70], [2, 80], [0, 90]]
    assert table.deciders == [1]


def test_r5_the_row_is_chosen_when_all_lower_cards_have_been_placed() -> None:
    table = position("base", ONE_AFTER_THE_OTHER)
    table.show(90, 70, 80)
    # now 80g fits nowhere and 90b two rows; but 70bg goes first
    assert table.legal_rows(80) == [0, 1, 2, 3, 4]
    assert table.legal_rows(90) == [0, 1]
    table.choose_row(1)
    # 80g had to follow 70bg, then 90b is left with row 0
    assert table.rows == [[10, 90], [20, 70, 80], [30], [40], [50]]
    assert (table.phase, table.oxx_piles) == (CARD, [[], [], []])


def test_r5_only_the_seat_whose_card_is_due_may_choose_a_row() -> None:
    table = position("base", ONE_AFTER_THE_OTHER)
    table.show(90, 70, 80)
    assert [table.legal(seat) for seat in range(3)] == [
        [PASS],
        [ROW_ACTION, ROW_ACTION + 1],
        [PASS],
    ]


def test_r6_a_card_goes_only_to_an_end_that_shares_a_color() -> None:
    table = position(
        "base",
        """
        row 0   10b 11y
        row 1   20bg
        row 2   30rk
        row 3   40w
        row 4   50gk
        seat 0  60bk 61rw 62y 63gw
        seat 1  70k 71k
        """,
    )
    assert table.legal_rows(60) == [1, 2, 4]  # not row 0: only its end counts
    assert table.legal_rows(61) == [2, 3]
    assert table.legal_rows(62) == [0]
    assert table.legal_rows(63) == [1, 3, 4]


@pytest.mark.parametrize("color", range(6))
@pytest.mark.parametrize("row", range(5))
def test_r6_each_color_is_matched_in_each_row(color: int, row: int) -> None:
    deck = plain_deck()
    other = (color + 1) % 6
    for number in range(1, 111):
        if number not in BARONS:
            deck[number - 1] = [0] * 6
            deck[number - 1][other] = 1
    row_cards = [10, 20, 30, 40, 50]
    for number in (row_cards[row], 60):
        deck[number - 1] = [0] * 6
        deck[number - 1][color] = 7 if number == 60 else 1
    piles = [[60, *range(61, 84)], [*range(84, 104), 105, 106, 107, 108]]
    table = deal(piles, row_cards, "base", deck)
    assert table.legal_rows(60) == [row]
    assert table.legal_rows(61) == [r for r in range(5) if r != row]


def test_r6_a_baron_shares_a_color_with_every_card() -> None:
    table = position(
        "base",
        """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40r
        row 4   52Bx
        seat 0  104Bx 60k
        seat 1  70w 71b
        """,
    )
    assert table.legal_rows(104) == [0, 1, 2, 3, 4]
    assert table.legal_rows(60) == [4]
    assert table.legal_rows(70) == [4]
    assert table.legal_rows(71) == [0, 4]


def test_r6_a_row_that_makes_one_take_may_be_picked_though_another_would_not() -> None:
    table = position(
        "base",
        """
        row 0   10b 11b 12b 13b 14b
        row 1   20b
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  60b 61b
        seat 1  70y 71y
        """,
    )
    table.show(60, 70)
    assert table.legal(0) == [ROW_ACTION, ROW_ACTION + 1]
    table.choose_row(0)
    assert table.rows[0] == [60]
    assert table.oxx_piles[0] == [10, 11, 12, 13, 14]


def test_r6_numbers_have_no_further_meaning() -> None:
    table = position(
        "base",
        """
        row 0   110b
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  1b 2b
        seat 1  70b 71b
        """,
    )
    table.show(1, 70)  # lower than the end of the row, and placed there
    assert table.rows[0] == [110, 1, 70]
    assert table.oxx_piles == [[], []]


# ---- R7 to R10: taking


SIXTH = """
        row 0   10b 11by 12y 13yg 14gg
        row 1   20r 21r 22r 23r
        row 2   30k
        row 3   40k
        row 4   50k
        seat 0  60g 61r
        seat 1  70w 71w
        """


def test_r7_the_sixth_card_takes_the_five_and_starts_the_row_anew() -> None:
    table = position("base", SIXTH)
    assert table.overflows(60, 0)
    assert table.heads_taken(60, 0) == 8
    table.show(60, 70)
    assert table.rows[0] == [60]
    assert table.oxx_piles[0] == [10, 11, 12, 13, 14]
    assert table.points[0] == 8


def test_r7_the_fifth_card_takes_nothing() -> None:
    table = position("base", SIXTH)
    assert not table.overflows(61, 1)
    assert table.heads_taken(61, 1) == 0
    table.show(61, 70)
    assert table.rows[1] == [20, 21, 22, 23, 61]
    assert table.oxx_piles[0] == []


SIX_HEADS = """
        row 0   10bbb 11bb
        row 1   52Bx 20yyy
        row 2   30ggg 31gr 32r
        row 3   40k
        row 4   50kkkkk
        seat 0  60b 61yy 62rgg 63rg
        seat 1  70k 71ky 104Bx 72bbbbbbb
        """


def test_r8_six_heads_of_one_color_take_all_before_the_card() -> None:
    table = position("base", SIX_HEADS)
    table.show(60, 71)
    assert table.rows[0] == [60]
    assert table.oxx_piles[0] == [10, 11]
    assert table.points[0] == 5


def test_r8_the_placed_card_counts_and_so_does_a_baron() -> None:
    table = position("base", SIX_HEADS)
    assert table.overflows(60, 0)  # 3 + 2 and 1 blue
    assert table.overflows(61, 1)  # 3 yellow, the Baron's, and 2
    assert table.overflows(62, 2)  # 3 + 1 and 2 green, though red is what matches
    assert table.overflows(104, 0)  # a Baron adds one to every color
    assert table.overflows(104, 4)
    assert table.overflows(72, 1)  # seven heads on one card


def test_r8_five_heads_of_a_color_are_allowed() -> None:
    table = position("base", SIX_HEADS)
    assert not table.overflows(63, 2)  # 3 + 1 and 1 green
    assert not table.overflows(104, 1)  # 3 + 1 and 1 yellow
    assert not table.overflows(104, 3)
    table.show(63, 71)
    assert table.rows[2] == [30, 31, 32, 63]
    assert table.oxx_piles[0] == []


def test_r8_heads_of_different_colors_do_not_add_up() -> None:
    table = position(
        "base",
        """
        row 0   10bbbbbyyyyy 11bgggggrrrrr
        row 1   20kkkkkwwwww
        row 2   30b
        row 3   40b
        row 4   50b
        seat 0  60gw 61ky
        seat 1  70g 71w
        """,
    )
    assert table.overflows(60, 0)  # a sixth green
    assert table.overflows(60, 1)  # a sixth white
    table = position(
        "base",
        """
        row 0   10bbbbbyyyyyg
        row 1   20rrrrrkkkkkwwwww
        row 2   30b
        row 3   40b
        row 4   50b
        seat 0  60gggg 61rb
        seat 1  70g 71w
        """,
    )
    assert not table.overflows(60, 0)  # 5 blue, 5 yellow and 5 green heads
    assert table.overflows(61, 1)
    assert table.overflows(71, 1)


@pytest.mark.parametrize("letter", "bygrkw")
def test_r8_holds_for_every_color(letter: str) -> None:
    other = "y" if letter == "b" else "b"
    table = position(
        "color",
        f"""
        row 0   10{letter * 3} 11{letter}
        row 1   20{other}
        row 2   30{other}
        row 3   40{other}
        row 4   50{other}
        seat 0  60{letter} 61{letter * 2}
        seat 1  70{other} 71{other}
        """,
    )
    assert not table.overflows(60, 0)
    assert table.overflows(61, 0)


def test_r8_a_row_started_by_six_heads_is_taken_by_the_next_card() -> None:
    table = position(
        "base",
        """
        row 0   10bbbbbby
        row 1   20r
        row 2   30r
        row 3   40r
        row 4   50k
        seat 0  60y 61r
        seat 1  70bbbbbbby 71k
        """,
    )
    assert table.overflows(60, 0)  # though 60 shows no blue
    table.show(60, 70)
    assert table.oxx_piles == [[10], [60]]  # and 70, with seven blue heads, takes 60
    assert table.rows[0] == [70]


def test_r7_and_r8_together_are_one_taking() -> None:
    table = position(
        "base",
        """
        row 0   10b 11b 12b 13b 14b
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50k
        seat 0  60b 61r
        seat 1  70k 71k
        """,
    )
    table.show(60, 70)
    assert table.rows[0] == [60]
    assert table.oxx_piles[0] == [10, 11, 12, 13, 14]
    assert table.points == [5, 0]


NO_FIT = """
        row 0   10b 11bbb
        row 1   20y
        row 2   30y
        row 3   40y 41ky 42k 43ky 44yy
        row 4   50yy
        seat 0  60r 61b
        seat 1  70y 71r
        """


@pytest.mark.parametrize("row", range(5))
def test_r9_a_card_that_fits_no_row_takes_any_one_row_and_starts_it(row: int) -> None:
    table = position("base", NO_FIT)
    before = table.rows
    table.show(60, 71)
    assert table.legal(0) == [ROW_ACTION + r for r in range(5)]
    heads = table.heads_taken(60, row)
    assert heads == [4, 1, 1, 8, 2][row]
    table.choose_row(row)
    assert table.rows[row] == [60, 71]  # red follows red
    assert [table.rows[r] for r in range(5) if r != row] == [
        before[r] for r in range(5) if r != row
    ]
    assert table.oxx_piles == [before[row], []]
    assert table.points == [heads, 0]


def test_r9_one_may_not_take_a_cheap_row_instead_of_a_forced_dear_placement() -> None:
    table = position(
        "base",
        """
        row 0   10b 11bb 12bb
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50g
        seat 0  60b 61b
        seat 1  70g 71g
        """,
    )
    assert table.legal_rows(60) == [0]
    table.show(60, 70)
    assert table.oxx_piles[0] == [10, 11, 12]


def test_r10_taken_cards_go_to_the_own_oxx_pile_never_to_hand_or_draw_pile() -> None:
    table = position(
        "base",
        """
        row 0   10b 11bb 12bb
        row 1   20y 21yyyy
        row 2   30k
        row 3   40k
        row 4   50k
        seat 0  60b 61b | 62b 63b 64b 65b
        seat 1  70y 71y | 72y 73y 74y 75y
        oxx 0   1r 2rr
        oxx 1   3g
        """,
    )
    assert table.points == [3, 1]
    table.show(60, 70)
    assert table.oxx_piles == [[1, 2, 10, 11, 12], [3, 20, 21]]
    assert table.points == [3 + 5, 1 + 5]
    assert table.hands == [[61], [71]]
    assert not {10, 11, 12, 20, 21} & {n for cards in table.hands + table.piles for n in cards}


# ---- R11 to R13: drawing, the end, matches


def test_r11_four_new_cards_at_once_only_when_all_four_have_been_played() -> None:
    table = position(
        "color",
        """
        row 0   10b
        row 1   20y
        row 2   30k
        row 3   40k
        row 4   50k
        seat 0  1b 2b 3b 4b | 9b 8b 7b 6b 5b
        seat 1  71y 72y 73y 74y | 75y 76y 77y 78y 79y
        """,
    )
    for left in ([1, 2, 3, 4], [2, 3, 4], [3, 4], [4]):
        assert table.hands[0] == left
        assert table.piles[0] == [9, 8, 7, 6, 5]
        table.show(left[0], left[0] + 70)
    assert int(table.game["round"]) == 4
    assert table.hands == [[6, 7, 8, 9], [75, 76, 77, 78]]
    assert table.piles == [[5], [79]]


def test_r11_hands_are_refilled_from_the_own_pile_to_its_end() -> None:
    decks = engine.stack_decks(["balanced"])
    table = table_of(engine.new_games([3], decks, 3), decks)
    dealt = [hand + pile for hand, pile in zip(table.hands, table.piles, strict=True)]
    drawn: list[list[int]] = [[], [], []]
    while table.phase != OVER:
        if table.deciders == [0, 1, 2] and len(table.hands[0]) == 4:
            for seat in range(3):
                assert sorted(dealt[seat][len(drawn[seat]) :][:4]) == table.hands[seat]
                drawn[seat] += table.hands[seat]
        table.play(table.deciders[0], table.legal(table.deciders[0])[0])
    assert [sorted(pile) for pile in dealt] == [sorted(pile) for pile in drawn]


ENDING = """
        row 0   10bb
        row 1   20y
        row 2   30yy
        row 3   40y
        row 4   50y
        seat 0  60r 61r
        seat 1  70b 71k
        seat 2  80b 81bb
        """


def test_r12_the_game_ends_when_all_cards_have_been_placed() -> None:
    table = position("base", ENDING)
    table.show(60, 70, 80)
    table.choose_row(1)  # 60 takes 20y; 70 and 80 go to row 0
    table.show(61, 71, 81)  # 61 goes to row 1
    assert (table.phase, table.deciders) == (ROW, [1])  # 71k fits nowhere
    table.choose_row(2)  # 71 takes 30yy; 81 makes the sixth blue head
    assert table.phase == OVER
    assert (table.hands, table.piles) == ([[], [], []], [[], [], []])
    assert table.deciders == []
    assert [table.legal(seat) for seat in range(3)] == [[PASS]] * 3


def test_r12_each_head_in_the_own_oxx_pile_is_a_point_and_rows_count_for_nobody() -> None:
    table = position("base", ENDING)
    table.show(60, 70, 80)
    table.choose_row(1)
    table.show(61, 71, 81)
    table.choose_row(2)
    assert table.oxx_piles == [[20], [30], [10, 70, 80]]
    assert table.points == [1, 2, 4]
    assert table.rows == [[81], [60, 61], [71], [40], [50]]


def test_r12_nothing_happens_after_the_end() -> None:
    table = position("base", ENDING)
    table.show(60, 70, 80)
    table.choose_row(1)
    table.show(61, 71, 81)
    table.choose_row(2)
    before = table.games.tobytes()
    rules.advance(table.game, table.deck)
    assert rules.tick(table.game, table.deck) == rules.WAITING
    assert table.games.tobytes() == before


@pytest.mark.parametrize("rule_set", rules.RULE_SETS)
def test_r13_the_points_of_a_match_are_noted_and_added_up(rule_set: str) -> None:
    decks = engine.stack_decks(["balanced"])
    games = engine.new_games([11], decks, 3, rule_set, games_per_match=3)
    single = engine.new_games([11], decks, 3, rule_set)
    table, alone = table_of(games, decks), table_of(single, decks)
    total = [0, 0, 0]
    for game in (1, 2, 3):
        assert (int(table.game["match_game"]), table.match_points) == (game, total)
        # every game of the match is played like the game that is dealt by its seed alone
        assert alone.hands == table.hands
        while alone.phase != OVER:
            seat = alone.deciders[-1]
            action = alone.legal(seat)[-1]
            assert table.deciders[-1] == seat
            table.play(seat, action)
            alone.play(seat, action)
        if game < 3:
            assert table.phase == CARD
            assert not rules.match_over(table.game)
        total = [sum(points) for points in zip(total, alone.points, strict=True)]
        alone = table_of(engine.new_games([int(table.game["seed"])], decks, 3, rule_set), decks)
    assert rules.match_over(table.game)
    assert [a + b for a, b in zip(table.match_points, table.points, strict=True)] == total


# ---- V1: It's the Color That Counts


@pytest.mark.parametrize("rule_set", ["color", "color+positive"])
def test_v1_the_sixth_card_takes_nothing(rule_set: str) -> None:
    table = position(rule_set, SIXTH)
    assert not table.overflows(60, 0)
    assert table.heads_taken(60, 0) == 0
    table.show(60, 70)
    assert table.rows[0] == [10, 11, 12, 13, 14, 60]
    assert table.oxx_piles[0] == []


@pytest.mark.parametrize("rule_set", ["color", "color+positive"])
def test_v1_six_heads_of_a_color_still_take(rule_set: str) -> None:
    table = position(rule_set, SIX_HEADS)
    assert table.overflows(60, 0)
    assert table.overflows(62, 2)
    assert not table.overflows(63, 2)
    table.show(60, 70)
    assert table.rows[0] == [60]
    assert table.oxx_piles[0] == [10, 11]


def test_v1_a_card_that_fits_no_row_still_takes_one() -> None:
    table = position("color", NO_FIT)
    table.show(60, 71)
    assert table.legal(0) == [ROW_ACTION + r for r in range(5)]
    table.choose_row(3)
    assert table.oxx_piles[0] == [40, 41, 42, 43, 44]
    assert table.points[0] == 8


def test_v1_a_row_holds_at_most_25_cards() -> None:
    table = position(
        "color",
        """
        row 0   1b 2b 3b 4b 5by 6y 7y 8y 9yg 10g 11g 12g 13gr 14r 15r 16r 17rk 18k 19k 20k 21kw 22w 23w 24w
        row 1   70y
        row 2   71y
        row 3   72y
        row 4   73y
        seat 0  25w 31y 32y
        seat 1  26w 41y 42y
        """,  # noqa: E501
    )
    assert len(table.rows[0]) == 24
    assert not table.overflows(25, 0)  # the 25th: five heads of every color
    assert table.heads_taken(25, 0) == 0
    table.show(25, 26)
    assert table.oxx_piles == [[], [*range(1, 26)]]  # the 26th takes all
    assert table.points == [0, 30]
    assert table.rows[0] == [26]


# ---- V2: Bullheads = Positive Points


def test_v2a_heads_in_the_own_oxx_pile_are_positive_points() -> None:
    table = position("positive", SIXTH)
    table.show(60, 70)
    assert table.oxx_piles[0] == [10, 11, 12, 13, 14]
    assert table.points[0] == 8


RETURNING = """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  60r 61b 62b 63b | 64g
        seat 1  70r 71b 72b 73b | 74g
        """


@pytest.mark.parametrize("rule_set", ["positive", "color+positive"])
def test_v2b_a_card_that_fits_no_row_goes_under_the_own_pile(rule_set: str) -> None:
    table = position(rule_set, RETURNING)
    assert table.legal_rows(60) == []
    before = table.rows
    table.show(60, 71)
    assert table.piles == [[64, 60], [74]]
    assert table.rows == [[10, 71], *before[1:]]
    assert table.oxx_piles == [[], []]  # no row is taken
    assert table.points == [0, 0]
    assert 60 in table.seen  # everybody saw it at the reveal


def test_v2b_it_is_never_a_choice_and_leaves_no_choice() -> None:
    table = position("positive", RETURNING)
    table.show(60, 70)  # neither fits: both are put back without a decision
    assert (table.phase, table.deciders) == (CARD, [0, 1])
    assert table.piles == [[64, 60], [74, 70]]
    table.show(61, 71)
    assert table.rows[0] == [10, 61, 71]  # but a card that fits a row must go there


def test_v2b_returned_cards_lie_in_the_order_they_were_returned_and_are_drawn_last() -> None:
    table = position(
        "positive",
        """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  63r 62r 61b 60r | 1b 2b 3b
        seat 1  70b 71b 72b 73y | 74g 75g 76g 77g
        """,
    )
    table.show(62, 70)
    assert table.piles[0] == [1, 2, 3, 62]
    table.show(60, 71)
    assert table.piles[0] == [1, 2, 3, 62, 60]
    table.show(63, 73)
    table.show(61, 72)
    assert table.hands == [[1, 2, 3, 62], [74, 75, 76, 77]]
    assert table.piles == [[60, 63], []]


def test_v2b_a_full_pile_takes_its_own_cards_back_round_after_round() -> None:
    """The whole pile of 24 goes round under itself, and nothing is lost or out of order."""
    deck = plain_deck()
    for number in range(1, 111):
        if number not in BARONS:
            deck[number - 1] = [0, 0, 0, 1, 0, 0]  # red; the rows and seat 1 are white
    mine, other = [*range(1, 25)], [*range(60, 84)]
    for number in [*other, 90, 91, 92, 93, 94]:
        deck[number - 1] = [0, 0, 0, 0, 0, 1]
    table = deal([mine, other], [90, 91, 92, 93, 94], "positive", deck)
    hand, pile = mine[:4], mine[4:]
    for _ in range(23):
        assert (table.hands[0], table.piles[0]) == (hand, pile)
        played = hand.pop()
        table.show(played, table.hands[1][0])
        table.choose_row(0)  # seat 1's cards fit everywhere
        pile.append(played)
        if not hand:
            hand, pile = sorted(pile[:4]), pile[4:]
    assert table.phase == CARD


def test_v2c_the_game_ends_with_the_round_in_which_a_last_card_is_added_to_a_row() -> None:
    table = position(
        "positive",
        """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  60b
        seat 1  70b 71b 72b | 73b
        seat 2  80bbbb 81y
        """,
    )
    table.show(60, 70, 80)  # the round is finished: 70 and 80 are placed after the last card, 60
    assert table.phase == OVER
    assert table.rows[0] == [80]
    assert table.oxx_piles == [[], [], [10, 60, 70]]
    assert (table.hands, table.piles) == ([[], [71, 72], [81]], [[], [73], []])


def test_v2c_the_owner_of_a_returned_last_card_is_not_finished() -> None:
    table = position(
        "positive",
        """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  60r
        seat 1  70b 71b 72b | 73b
        """,
    )
    table.show(60, 70)
    assert (table.phase, table.deciders) == (CARD, [1])
    assert (table.hands[0], table.piles[0]) == ([60], [])  # put back and drawn again


@pytest.mark.parametrize("rule_set", ["positive", "color+positive"])
def test_v2d_every_head_in_hand_or_draw_pile_is_a_negative_point(rule_set: str) -> None:
    table = position(
        rule_set,
        """
        row 0   10bbb 11bb
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  60b 61rr 62yyy | 52Bx
        seat 1  70y 71g
        seat 2  80g
        """,
    )
    table.play(0, 0)
    assert table.points == [0, 0, 0]
    table.play(1, 0)  # seat 2 is finished; 61rr, 62yyy, 52Bx and 71g are left over
    assert table.phase == OVER
    assert table.oxx_piles == [[10, 11], [], []]
    assert table.points == [5 - 2 - 3 - 6, -1, 0]


def test_v2d_in_the_base_game_cards_left_cost_nothing_because_none_are_left() -> None:
    decks = engine.stack_decks(["balanced"])
    games = engine.new_games(range(50), decks, 4, "base")
    for g in range(50):
        rules_game = games[g]
        engine.play_out(rules_game, decks[0], engine.RANDOM, 1 << 20)
        table = table_of(games, decks, g)
        assert (table.hands, table.piles) == ([[]] * 4, [[]] * 4)
        heads = cards.load_deck("balanced").sum(axis=1)
        assert table.points == [sum(int(heads[n - 1]) for n in pile) for pile in table.oxx_piles]


@pytest.mark.parametrize("left", [1, 2, 3, 4, 5])
def test_v2e_an_empty_hand_is_refilled_with_what_is_left(left: int) -> None:
    pile = " ".join(f"{number}b" for number in range(65, 65 - left, -1))
    table = position(
        "positive",
        f"""
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  60b | {pile}
        seat 1  70b 71b 72b | 73b
        """,
    )
    table.show(60, 70)
    assert table.hands[0] == sorted(range(65, 65 - min(left, 4), -1))
    assert len(table.piles[0]) == max(left - 4, 0)
    assert table.hands[1] == [71, 72]  # not empty, not refilled


def test_v2e_a_card_returned_in_this_round_may_be_drawn_at_once() -> None:
    table = position(
        "positive",
        """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  60r | 61b 62b
        seat 1  70b 71b 72b | 73b
        """,
    )
    table.show(60, 70)
    assert (table.hands[0], table.piles[0]) == ([60, 61, 62], [])


DEADLOCK = """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40b
        row 4   50b
        seat 0  60r 61rr | 62kk
        seat 1  70y 71r | 72k{}
        oxx 1   1bbb
        """


def test_v2f_the_game_ends_when_no_card_in_hand_or_pile_fits_a_row_end() -> None:
    table = position("positive", DEADLOCK.format(""))
    table.show(60, 70)
    assert table.phase == OVER
    assert table.rows[1] == [20, 70]
    assert table.hands == [[61], [71]]
    assert table.piles == [[62, 60], [72]]


def test_v2f_a_deadlock_is_scored_by_v2d() -> None:
    table = position("positive", DEADLOCK.format(""))
    table.show(60, 70)
    assert table.points == [-1 - 2 - 2, 3 - 1 - 1]


def test_v2f_one_card_that_fits_anywhere_is_enough_to_go_on() -> None:
    for drawing in (
        DEADLOCK.format("g"),  # in a draw pile: 72kg
        DEADLOCK.format("").replace("71r", "71rg"),  # in a hand
        DEADLOCK.format("").replace("62kk", "52Bx"),  # a Baron fits every row
        DEADLOCK.format("").replace("50b", "52Bx"),  # and every card fits a Baron
        DEADLOCK.format("").replace("70y", "70yk"),  # the new end of row 1 fits 72k
    ):
        table = position("positive", drawing)
        table.show(60, 70)
        assert table.phase != OVER


def test_v2f_a_deadlock_counts_only_at_the_end_of_a_round() -> None:
    table = position(
        "positive",
        """
        row 0   10b
        row 1   20y
        row 2   30y
        row 3   40b
        row 4   50b
        seat 0  60r 61g
        seat 1  70yg 71r
        """,
    )
    # Before the reveal, and after 60r was put back, only 70yg fits anything: it is still to come.
    table.show(60, 70)
    assert (table.phase, table.deciders) == (ROW, [1])
    table.choose_row(2)
    assert table.phase != OVER  # 61g fits 70yg


def test_v2f_there_is_no_deadlock_in_the_base_game() -> None:
    for rule_set in ("base", "color"):
        table = position(rule_set, DEADLOCK.format(""))
        table.show(60, 70)
        assert table.phase == ROW  # 60r takes a row of choice (R9)
        assert table.legal(0) == [ROW_ACTION + row for row in range(5)]


# ---- Both variants


BOTH = """
        row 0   10b 11by 12y 13yg 14g
        row 1   20bb 21bb 22b
        row 2   30k
        row 3   40k
        row 4   50k
        seat 0  60g 61b 62w | 63g
        seat 1  70k 71k 72k | 73g
        """


@pytest.mark.parametrize(
    ("rule_set", "sixth", "six_heads", "no_fit"),
    [
        ("base", True, True, [0, 1, 2, 3, 4]),
        ("color", False, True, [0, 1, 2, 3, 4]),
        ("positive", True, True, []),
        ("color+positive", False, True, []),
    ],
)
def test_each_clause_applies_in_the_rule_sets_it_belongs_to(
    rule_set: str, sixth: bool, six_heads: bool, no_fit: list[int]
) -> None:
    table = position(rule_set, BOTH)
    assert table.overflows(60, 0) == sixth
    assert table.overflows(61, 1) == six_heads
    assert table.legal_rows(62) == no_fit


def test_both_variants_together_long_rows_returned_cards_and_positive_points() -> None:
    table = position("color+positive", BOTH)
    table.show(60, 70)  # V1: the sixth card takes nothing
    table.choose_row(2)
    assert table.rows[0] == [10, 11, 12, 13, 14, 60]
    table.show(62, 71)  # V2b: back under the pile
    assert table.piles[0] == [63, 62]
    table.choose_row(2)
    table.show(61, 72)  # R8, V2a: 61b takes 20bb 21bb 22b
    assert (table.oxx_piles[0], table.points[0]) == ([20, 21, 22], 5)
    table.choose_row(3)
    # V2e: two cards are left to draw for seat 0, one for seat 1
    assert (table.hands, table.piles) == ([[62, 63], [73]], [[], []])
    table.show(63, 73)  # V2c, V2d: seat 1 has added its last card, seat 0 keeps 62w
    assert table.phase == OVER
    assert table.points == [5 - 1, 0]
