"""The plain second copy of the rules, clause by clause.

A position is drawn as text and that drawing is what is played: a card is its number and its heads
(b blue, y yellow, g green, r red, k black, w white; Bx a Baron), a row is oldest first, and the
first four cards of a seat are its hand, the others its draw pile.
"""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from reference import (
    BARONS,
    CARDS_DEALT,
    HAND_SIZE,
    NUMBERS,
    PASS,
    ROWS,
    RULES,
    Game,
    match_points,
    replay,
)

LETTERS = "bygrkw"
BARON = [1, 1, 1, 1, 1, 1]
ROW = 4  # action of row 0


def plain_deck() -> list[list[int]]:
    """Every card shows one white head, the Barons one of each."""
    return [BARON if n in BARONS else [0, 0, 0, 0, 0, 1] for n in range(1, NUMBERS + 1)]


def mixed_deck(rng: random.Random, most: int = 3) -> list[list[int]]:
    """One to `most` heads of random colors on every card but the Barons."""
    deck = plain_deck()
    for number in range(1, NUMBERS + 1):
        if number not in BARONS:
            drawn = rng.choices(range(6), k=rng.randint(1, most))
            deck[number - 1] = [drawn.count(color) for color in range(6)]
    return deck


def position(rules: str, drawing: str) -> Game:
    """The game with the rows and seats drawn; somebody must have two cards."""
    deck = plain_deck()
    rows, seats = [], []
    for line in drawing.strip().splitlines():
        kind, _, *cards = line.replace("|", " ").split()
        numbers = []
        for card in cards:
            letters = card.lstrip("0123456789")
            numbers.append(int(card[: len(card) - len(letters)]))
            heads = [letters.count(letter) for letter in LETTERS]
            deck[numbers[-1] - 1] = BARON if letters == "Bx" else heads
        (rows if kind == "row" else seats).append(numbers)
    game = Game(len(seats), rules, deck, seats, [row[0] for row in rows])
    game.rows = rows
    game.seen.update(number for row in rows for number in row)
    return game


def deal(players: int, rules: str, deck: list[list[int]], rng: random.Random) -> Game:
    numbers = rng.sample(range(1, NUMBERS + 1), NUMBERS)
    piles = [[numbers.pop() for _ in range(CARDS_DEALT[players])] for _ in range(players)]
    return Game(players, rules, deck, piles, numbers[:ROWS])


def play_out(game: Game, rng: random.Random) -> Game:
    while game.phase != "over":
        seat = rng.choice(game.deciders())
        game.play(seat, rng.choice(game.legal(seat)))
    return game


def played_record(players: int, rules: str, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    game = deal(players, rules, mixed_deck(rng), rng)
    piles = [hand + pile for hand, pile in zip(game.hands, game.piles, strict=True)]
    rows = [row[0] for row in game.rows]
    play_out(game, rng)
    return {
        "format": "oxx-game/1",
        "rules": rules,
        "deck": {"name": "mixed", "cards": game.deck},
        "players": players,
        "draw_piles": piles,
        "rows": rows,
        "rounds": game.rounds,
        "scores": game.scores(),
        "winners": game.winners(),
    }


# ---- Base game


def test_r1_a_baron_shows_one_head_of_each_color_and_every_card_a_head() -> None:
    piles, rows = [[1, 2], [3, 4]], [10, 20, 30, 40, 50]
    assert Game(2, "base", plain_deck(), piles, rows).heads(52) == 6
    for number, heads in ((52, [1, 1, 1, 1, 1, 2]), (7, [0] * 6), (7, [8, 0, 0, 0, 0, 0])):
        deck = plain_deck()
        deck[number - 1] = heads
        with pytest.raises(ValueError, match=f"R1: card {number}"):
            Game(2, "base", deck, piles, rows)
    with pytest.raises(ValueError, match="R1"):
        Game(2, "base", plain_deck(), [[1, 2], [3, 1]], rows)


def test_r2_every_deal_fits_the_deck() -> None:
    assert CARDS_DEALT == {2: 24, 3: 20, 4: 16, 5: 16, 6: 16, 7: 12, 8: 12, 9: 8, 10: 8}
    assert all(players * cards + ROWS <= NUMBERS for players, cards in CARDS_DEALT.items())
    record = played_record(3, "base", seed=1)
    record["draw_piles"][1].pop()
    with pytest.raises(ValueError, match="deal, R2"):
        replay(record)


def test_r3_the_first_four_of_the_pile_are_the_hand_and_a_baron_may_start_a_row() -> None:
    piles, rows = [[9, 3, 7, 1, 8], [11, 12, 13, 14, 15]], [52, 20, 30, 40, 50]
    game = Game(2, "base", plain_deck(), piles, rows)
    assert game.hands == [[1, 3, 7, 9], [11, 12, 13, 14]]
    assert game.piles == [[8], [15]]
    assert game.rows == [[52], [20], [30], [40], [50]]
    assert game.seen == {52, 20, 30, 40, 50}


def test_r4_cards_are_chosen_secretly_and_revealed_together() -> None:
    game = position(
        "base",
        """
        row 0   10b
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  60b 61b
        seat 1  70b 71b
        """,
    )
    assert game.deciders() == [0, 1]
    game.play(1, 0)
    assert (game.picks, game.rounds, game.revealed) == ({1: 70}, [], [])
    assert game.deciders() == [0]
    assert game.legal(1) == [PASS]
    assert 70 not in game.seen
    game.play(0, 1)
    assert game.rounds[0]["cards"] == [61, 70]
    assert {61, 70} <= game.seen
    assert game.picks == {}


R5_POSITION = """
        row 0   10b
        row 1   20b
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  60b 90r
        seat 1  70b 91r
        """


def test_r5_cards_are_placed_from_the_lowest_and_rows_chosen_at_ones_turn() -> None:
    game = position("base", R5_POSITION)
    game.play(0, 0)
    game.play(1, 0)
    assert (game.phase, game.revealed, game.deciders()) == ("row", [[0, 60], [1, 70]], [0])
    assert game.legal(0) == [ROW, ROW + 1]
    assert game.legal(1) == [PASS]
    game.play(0, ROW + 1)
    assert game.rows[1] == [20, 60]
    assert game.deciders() == [1]


def test_r6_a_card_goes_only_to_an_end_that_shares_a_color() -> None:
    game = position(
        "base",
        """
        row 0   10b 11y
        row 1   20bg
        row 2   30rk
        row 3   40w
        row 4   52Bx
        seat 0  60bk 61r
        seat 1  104Bx
        """,
    )
    assert game.legal_rows(60) == [1, 2, 4]  # only the end counts; the Baron shares with all
    assert game.legal_rows(104) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="row 0"):
        game.would_take(60, 0)


def test_r6_a_dear_row_may_be_chosen_although_another_is_free() -> None:
    game = position(
        "base",
        """
        row 0   10b 11b 12b 13b 14b
        row 1   20b
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  60b 61b
        seat 1  70y
        """,
    )
    game.play(0, 0)
    assert game.legal(0) == [ROW, ROW + 1]
    game.play(0, ROW)
    assert game.oxx_piles[0] == [10, 11, 12, 13, 14]


def test_r7_the_sixth_card_takes_the_five() -> None:
    game = position(
        "base",
        """
        row 0   10b 11by 12y 13yg 14g
        row 1   20r 21r 22r 23r
        row 2   30k
        row 3   40k
        row 4   50k
        seat 0  60g 61r
        seat 1  70w
        """,
    )
    assert game.would_take(60, 0) == [10, 11, 12, 13, 14]
    assert game.would_take(61, 1) == []  # the fifth card
    game.play(0, 0)
    assert game.rows[0] == [60]
    assert game.oxx_piles[0] == [10, 11, 12, 13, 14]
    assert game.points[0] == 7


def test_r8_six_heads_of_one_color_with_the_card_take_all_before_it() -> None:
    game = position(
        "base",
        """
        row 0   10bbb 11bb
        row 1   20yyy 52Bx
        row 2   30ggg 31gr 32r
        row 3   40k
        row 4   50k
        seat 0  60b 61yy 62rgg 63rg
        seat 1  104Bx
        """,
    )
    assert game.would_take(60, 0) == [10, 11]  # 3 + 2 + 1 blue
    assert game.would_take(61, 1) == [20, 52]  # 3 + 1 (Baron) + 2 yellow
    assert game.would_take(62, 2) == [30, 31, 32]  # 6 green, matched by red
    assert game.would_take(63, 2) == []  # 5 green
    assert game.would_take(104, 0) == [10, 11]  # a Baron adds one to every color


def test_r7_and_r8_together_take_once() -> None:
    game = position(
        "base",
        """
        row 0   10b 11b 12b 13b 14b
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  60b 61r
        seat 1  70y
        """,
    )
    game.play(0, 0)
    assert game.rows[0] == [60]
    assert game.rounds[0]["placements"][0] == [0, 60, 0, [10, 11, 12, 13, 14]]


def test_r8_a_row_started_by_six_heads_is_taken_by_the_next_card() -> None:
    game = position(
        "color",
        """
        row 0   10bbbbbby
        row 1   20r
        row 2   30r
        row 3   40r
        row 4   50r
        seat 0  60y 61bbbbbbb
        seat 1  70k
        """,
    )
    assert game.would_take(60, 0) == [10]  # though 60 shows no blue
    game.play(0, 1)
    assert game.rows[0] == [61]
    assert game.oxx_piles[0] == [10]


R9_POSITION = """
        row 0   10b 11b
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50yy
        seat 0  60r 61b
        seat 1  70y
        """


def test_r9_a_card_that_fits_no_row_takes_any_one_row() -> None:
    game = position("base", R9_POSITION)
    game.play(0, 0)
    assert game.legal(0) == [ROW, ROW + 1, ROW + 2, ROW + 3, ROW + 4]
    assert game.would_take(60, 0) == [10, 11]
    game.play(0, ROW)
    assert game.rows[0] == [60]
    assert game.oxx_piles[0] == [10, 11]


def test_r9_no_cheap_row_instead_of_a_forced_placement() -> None:
    game = position("base", R9_POSITION)
    assert game.legal_rows(61) == [0]
    game.play(0, 1)
    assert game.rounds[0]["placements"][0] == [0, 61, 0, []]  # a single row places itself


def test_r10_taken_cards_never_go_to_hand_or_pile() -> None:
    game = position("base", R9_POSITION)
    game.play(0, 0)
    game.play(0, ROW)
    assert game.hands[0] == [61]
    assert game.piles[0] == []
    assert game.oxx_piles[0] == [10, 11]


def test_r11_four_new_cards_only_when_the_hand_is_empty() -> None:
    game = position(
        "color",
        """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40r
        row 4   50k
        seat 0  1b 2b 3b 4b | 9y 8y 7y 6y 5y
        seat 1  71y 72y 73y 74y | 75g 76g 77g 78g 79g
        """,
    )
    for left in ([1, 2, 3, 4], [2, 3, 4], [3, 4]):
        assert game.hands[0] == left
        assert game.piles[0] == [9, 8, 7, 6, 5]
        game.play(0, 0)
        game.play(1, 0)
    # the last card of both plays itself, then both draw
    assert len(game.rounds) == 4
    assert game.hands == [[6, 7, 8, 9], [75, 76, 77, 78]]
    assert game.piles == [[5], [79]]


def test_r12_the_game_ends_when_all_are_placed_and_fewest_heads_win() -> None:
    game = position(
        "base",
        """
        row 0   10bb
        row 1   20y
        row 2   30y
        row 3   40y
        row 4   50y
        seat 0  60r 61r
        seat 1  70b 71k
        seat 2  80b 81bb
        """,
    )
    for seat in range(3):
        game.play(seat, 0)
    game.play(0, ROW + 1)  # 60 takes 20y; 70 and 80 go to row 0; 61 to row 1
    game.play(1, ROW + 2)  # 71 takes 30y; 81 makes six blue heads
    assert game.phase == "over"
    assert game.ended_by == "R12"
    assert game.deciders() == []
    assert game.oxx_piles == [[20], [30], [10, 70, 80]]
    assert game.scores() == [1, 1, 4]
    assert game.winners() == [0, 1]
    assert game.ranks() == [1, 1, 3]


def test_r13_a_match_adds_the_points_up() -> None:
    assert match_points([[1, 5], [7, 0]]) == [8, 5]


# ---- Variants


V1_POSITION = """
        row 0   10b 11by 12y 13yg 14g
        row 1   20bb 21bb 22b
        row 2   30k
        row 3   40k
        row 4   50k
        seat 0  60g 61b
        seat 1  70w
        """


def test_v1_the_sixth_card_takes_nothing_but_six_heads_do() -> None:
    for rules in ("color", "color+positive"):
        game = position(rules, V1_POSITION)
        assert game.would_take(60, 0) == []
        assert game.would_take(61, 1) == [20, 21, 22]
        assert game.legal_rows(70) == ([] if game.positive else [0, 1, 2, 3, 4])
    assert position("positive", V1_POSITION).would_take(60, 0) == [10, 11, 12, 13, 14]


def test_v2a_and_v2d_taken_heads_count_for_and_left_heads_against() -> None:
    game = position(
        "positive",
        """
        row 0   10bbb 11bb
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  60b 61rr 62yyy
        seat 1  70y 71g
        seat 2  80g
        """,
    )
    game.play(1, 0)
    assert game.points == [0, 0, 0]
    game.play(0, 0)  # seat 2 is finished, 61rr 62yyy and 71g are left over
    assert game.phase == "over"
    assert game.oxx_piles == [[10, 11], [], []]
    assert game.scores() == [5 - 5, -1, 0]
    assert game.winners() == [0, 2]
    assert game.ranks() == [1, 3, 1]


V2_POSITION = """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  60r 61b 62b 63b | 64g
        seat 1  70r
        """


def test_v2b_a_card_that_fits_no_row_goes_under_the_own_pile() -> None:
    game = position("positive", V2_POSITION)
    assert game.legal_rows(60) == []
    game.play(0, 0)
    assert game.rounds[0]["placements"][0] == [0, 60, None, []]
    assert game.piles[0] == [64, 60]
    assert 60 in game.seen
    assert game.rows == [[10], [20], [30], [40], [50]]
    assert game.oxx_piles == [[], []]


def test_v2c_a_returned_last_card_ends_nothing_an_added_one_ends_with_the_round() -> None:
    game = position("positive", V2_POSITION)
    game.play(0, 0)
    assert game.phase == "card"
    assert game.hands[1] == [70]
    game = position("positive", V2_POSITION.replace("70r", "7b"))
    game.play(0, 1)  # 7b is added first, and still 61b is placed
    assert game.phase == "over"
    assert game.ended_by == "V2c"
    assert game.rows[0] == [10, 7, 61]


def test_v2e_an_empty_hand_draws_what_is_left() -> None:
    game = position("positive", V2_POSITION)
    for slot in (0, 0, 0):  # 60 returns, 61 and 62 are added; then 63 plays itself
        game.play(0, slot)
    assert len(game.rounds) == 4
    assert game.hands[0] == [60, 64]
    assert game.piles[0] == []


def test_v2f_the_game_ends_when_no_card_left_fits_any_row() -> None:
    game = position(
        "positive",
        """
        row 0   10b
        row 1   20b
        row 2   30b
        row 3   40b
        row 4   50b
        seat 0  60r 61r 62r 63r | 64rb
        seat 1  70r
        """,
    )
    game.play(0, 0)
    assert game.phase == "card"  # 64rb in the pile still fits
    game = position(
        "positive",
        """
        row 0   10b
        row 1   20b
        row 2   30b
        row 3   40b
        row 4   50b
        seat 0  60r 61r 62r 63r | 64rw
        seat 1  70r
        """,
    )
    game.play(0, 0)
    assert (game.phase, game.ended_by) == ("over", "V2f")
    assert game.scores() == [-6, -1]
    assert game.winners() == [1]


# ---- Decisions


def test_pass_is_legal_only_for_a_seat_with_nothing_to_decide() -> None:
    game = position("base", R5_POSITION)
    for seat, action in ((0, PASS), (0, 2), (0, ROW), (2, 0), (-1, PASS)):
        with pytest.raises(ValueError, match=r"is not one of|no seat"):
            game.play(seat, action)
    game.play(0, 0)
    game.play(0, PASS)  # waiting: changes nothing
    with pytest.raises(ValueError, match=r"is not one of|no seat"):
        game.play(0, 0)
    assert game.picks == {0: 60}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("most", [3, 7])
def test_cards_are_never_lost_and_every_placement_is_reported(rules: str, most: int) -> None:
    rng = random.Random(f"{rules} {most}")
    for players in CARDS_DEALT:
        game = deal(players, rules, mixed_deck(rng, most), rng)
        total = players * CARDS_DEALT[players] + ROWS
        calls = []

        def check(game: Game, total: int = total, calls: list[int] = calls) -> None:
            calls.append(1)
            cards = [
                n
                for part in (game.hands, game.piles, game.rows, game.oxx_piles)
                for some in part
                for n in some
            ]
            cards += [number for _, number in game.revealed]
            assert len(cards) == len(set(cards)) == total
            assert all(len(row) <= (25 if game.color else 5) for row in game.rows)
            assert all(hand == sorted(hand) and len(hand) <= HAND_SIZE for hand in game.hands)

        game.on_placement = check
        while game.phase != "over":
            deciders = game.deciders()
            assert deciders
            for seat in range(players):
                assert (game.legal(seat) == [PASS]) == (seat not in deciders)
                assert seat not in deciders or len(game.legal(seat)) >= 2
            game.play(deciders[-1], rng.choice(game.legal(deciders[-1])))
        assert len(calls) == sum(len(one["placements"]) for one in game.rounds)
        if not game.positive:
            assert len(game.rounds) == CARDS_DEALT[players]


# ---- Replay


@pytest.mark.parametrize("rules", RULES)
def test_a_record_replays_to_the_same_game(rules: str) -> None:
    for players in CARDS_DEALT:
        for seed in range(2):
            record = played_record(players, rules, seed)
            game = replay(copy.deepcopy(record))
            assert game.rounds == record["rounds"]
            assert game.scores() == record["scores"]


def spoiled(record: dict[str, Any], how: str) -> dict[str, Any]:
    first = record["rounds"][0]
    placements = first["placements"]
    returned = next((p for r in record["rounds"] for p in r["placements"] if p[2] is None), None)
    taking = next(p for r in record["rounds"] for p in r["placements"] if p[3])
    if how == "a card that is not in the hand":
        first["cards"][0] = record["draw_piles"][0][-1]
    elif how == "another order":
        placements.reverse()
    elif how == "a row that is none":
        placements[0][2] = ROWS
    elif how == "a card put under the pile that must be placed":
        placements[0][2] = None
    elif how == "a returned card in a row":
        assert returned is not None
        returned[2] = 0
    elif how == "other cards taken":
        taking[3] = taking[3][1:]
    elif how == "a placement missing":
        placements.pop()
    elif how == "a placement too many":
        placements.append([0, 1, 0, []])
    elif how == "a round missing":
        record["rounds"].pop()
    elif how == "a round too many":
        record["rounds"].append(record["rounds"][-1])
    elif how == "other scores":
        record["scores"][1] += 1
    elif how == "other winners":
        record["winners"] = []
    elif how == "another Baron":
        record["deck"]["cards"][51] = [0, 0, 0, 0, 0, 1]
    elif how == "a card dealt twice":
        record["rows"][0] = record["draw_piles"][0][0]
    return record


@pytest.mark.parametrize(
    ("how", "rules", "complaint"),
    [
        ("a card that is not in the hand", "base", "round 1, R4"),
        ("another order", "base", "round 1, R5"),
        ("a row that is none", "base", "round 1, R[69]"),
        ("a card put under the pile that must be placed", "color", "round 1, R[69]"),
        ("a returned card in a row", "positive", r"round \d+, V2b"),
        ("other cards taken", "base", r"round \d+, R[79]"),
        ("other cards taken", "color", r"round \d+, (V1/R8|R9)"),
        ("a placement missing", "base", "round 1, R5"),
        ("a placement too many", "base", "round 1, R5"),
        ("a round missing", "base", "round 16, R12"),
        ("a round missing", "positive", r"round \d+, V2c"),
        ("a round too many", "base", "round 17, R12"),
        ("a round too many", "positive", r"round \d+, V2[cf]"),
        ("other scores", "base", "after round 16, R12"),
        ("other scores", "positive", r"after round \d+, V2d"),
        ("other winners", "base", "after round 16, R12"),
        ("another Baron", "base", "deal, R1"),
        ("a card dealt twice", "base", "deal, R1"),
    ],
)
def test_a_spoiled_record_fails_with_round_and_clause(how: str, rules: str, complaint: str) -> None:
    record = copy.deepcopy(played_record(4, rules, seed=3))
    with pytest.raises(ValueError, match=complaint):
        replay(spoiled(record, how))
