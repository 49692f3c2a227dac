"""What holds in every position of every game, whatever is played: checked on drawn batches.

A batch here is mixed: games of different sizes, rule sets and decks (odd ones too) side by side.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import odd_decks
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from positions import CARD, OVER, ROW, Table

from oxx_env import cards, engine, rules

HEADS = [cards.load_deck(name) for name in cards.DECK_NAMES]
HEADS += [make(np.random.default_rng(1)) for make in odd_decks.MAKERS.values()]
DECKS = engine.stack_decks(HEADS)

seeds = st.integers(0, 2**64 - 2)
batches = st.lists(
    st.tuples(seeds, st.integers(2, 10), st.integers(0, 3), st.integers(0, len(DECKS) - 1)),
    min_size=1,
    max_size=6,
)
Batch = list[tuple[int, int, int, int]]


def make(batch: Batch, games_per_match: int = 1) -> Any:
    """GAME [B] of (seed, players, rules, deck)."""
    seed, players, flags, deck = zip(*batch, strict=True)
    arrays = np.array(players), np.array(flags), np.array(deck)
    return engine.new_games(seed, DECKS, *arrays, games_per_match)


def step_at_random(games: Any, again: bool = False) -> int:
    """One decision of everybody who decides, by the games' own streams; how many those were."""
    who = np.zeros(10 * len(games), engine.PENDING)
    actions = np.zeros(len(who), np.int64)
    n = int(engine.pending(games, who))
    engine.random_actions(games, DECKS, who, n, actions)
    engine.step(games, DECKS, who, n, actions, again)
    return n


def step_many(games: Any, steps: int, again: bool = True) -> Any:
    for _ in range(steps):
        step_at_random(games, again)
    return games


# ---- One position


def check_position(table: Table, dealt: set[int]) -> None:
    """Everything that must be true of a game at rest."""
    game, heads = table.game, HEADS[int(table.game["deck"])].sum(axis=1)
    players = table.players

    # Cards are conserved: each number once, and the box is never touched.
    held = [n for part in (table.hands, table.piles) for pile in part for n in pile]
    shown = [n for part in (table.rows, table.oxx_piles) for pile in part for n in pile]
    placing = [number for _, number in table.revealed]
    everywhere = held + shown + placing
    assert len(everywhere) == len(set(everywhere))
    assert set(everywhere) == dealt
    assert set(shown) | set(placing) <= table.seen <= dealt

    # Heads add up: points are heads taken, less (V2d) what is left at the end.
    points = [sum(int(heads[n - 1]) for n in pile) for pile in table.oxx_piles]
    if table.phase == OVER and int(game["rules"]) & rules.POSITIVE:
        for seat in range(players):
            left = table.hands[seat] + table.piles[seat]
            points[seat] -= sum(int(heads[n - 1]) for n in left)
    assert table.points == points
    for row, numbers in enumerate(table.rows):
        in_row = HEADS[int(game["deck"])][np.array(numbers) - 1].sum(axis=0)
        word = game["row_sums"][row]
        assert [rules.color_count(word, color) for color in range(6)] == in_row.tolist()
        assert rules.heads_of(word) == in_row.sum()
        assert rules.length_of(word) == len(numbers) >= 1

    # Hands ascend, revealed cards too; no hand is empty where cards are chosen.
    assert all(hand == sorted(hand) for hand in table.hands)
    assert placing == sorted(placing)
    if table.phase == CARD:
        assert all(1 <= len(hand) <= 4 for hand in table.hands)

    check_unused(game, players)


def check_unused(game: Any, players: int) -> None:
    """Unused cells hold NO_CARD or zero, so that equal games are equal bytes."""
    for seat, size in enumerate(game["hand_sizes"].tolist()):
        assert not game["hands"][seat, size:].any()
    for row, size in enumerate(game["row_sizes"].tolist()):
        assert game["rows"][row, :size].all()
        assert not game["rows"][row, size:].any()
    assert np.count_nonzero(game["piles"]) == int(game["pile_sizes"].sum())
    count = int(game["taken_count"])
    assert game["taken"][:count].all()
    assert not game["taken"][count:].any()
    assert not game["taken_by"][count:].any()
    if game["phase"] == ROW:
        assert not game["picks"].any()
    else:
        assert not game["revealed"].any()
        assert not game["revealed_by"].any()
        assert game["placed"] == 0
    for name in ("points", "match_points", "picks", "revealed", "revealed_by", "hand_sizes"):
        assert not game[name][players:].any()
    for name in ("pile_sizes", "pile_starts"):
        assert not game[name][players:].any()


def check_masks(games: Any) -> None:
    """Mask, `legal_actions`, `decides` and `pending` are one statement; no mask is all zero."""
    who = np.zeros(10 * len(games), engine.PENDING)
    n = int(engine.pending(games, who))
    mask = np.full((len(who), rules.ACTIONS), -1, np.int8)
    engine.masks(games, DECKS, who, n, mask)
    assert (mask[n:] == -1).all()
    listed = [(int(one["game"]), int(one["seat"])) for one in who[:n]]
    assert listed == sorted(set(listed))
    for g in range(len(games)):
        table = Table(games[g : g + 1], DECKS)
        deciders = table.deciders
        for seat in range(table.players):
            legal = table.legal(seat)
            assert ((g, seat) in listed) == (seat in deciders) == (legal != [rules.PASS])
            if (g, seat) not in listed:
                continue
            one = listed.index((g, seat))
            assert np.flatnonzero(mask[one]).tolist() == legal
            assert set(mask[one].tolist()) <= {0, 1}
            assert len(legal) >= 2
            if table.phase == CARD:
                assert legal == list(range(int(table.game["hand_sizes"][seat])))
            else:
                assert who[one]["phase"] == ROW
                assert seat == table.revealed[0][0]
                rows = table.legal_rows(table.revealed[0][1])
                assert legal == [rules.FIRST_ROW + row for row in rows]


@settings(max_examples=25, deadline=None)
@given(batches, st.integers(7, 40))
def test_every_position_keeps_the_invariants(batch: Batch, every: int) -> None:
    """Cards are conserved, heads add up, masks are the legal actions, unused cells are empty."""
    games = make(batch)
    tables = [Table(games[g : g + 1], DECKS) for g in range(len(games))]
    dealt = [
        {n for part in (table.rows, table.hands, table.piles) for pile in part for n in pile}
        for table in tables
    ]
    for table, numbers in zip(tables, dealt, strict=True):
        each = int(rules.CARDS_DEALT[table.players])
        assert len(numbers) == table.players * each + rules.ROWS
    for step in range(10**6):
        going = step_at_random(games) > 0
        if step % every == 0 or not going:
            check_masks(games)
            for table, numbers in zip(tables, dealt, strict=True):
                check_position(table, numbers)
        if not going:
            break
    assert all(table.phase == OVER for table in tables)


@settings(max_examples=40, deadline=None)
@given(batches, st.integers(1, 200))
def test_games_dealt_anew_are_as_clean_as_new_ones(batch: Batch, steps: int) -> None:
    games = step_many(make(batch, games_per_match=2), steps)
    for g, (_, players, _, _) in enumerate(batch):
        check_unused(games[g], players)
        table = Table(games[g : g + 1], DECKS)
        parts = (
            table.rows,
            table.hands,
            table.piles,
            table.oxx_piles,
            [[n for _, n in table.revealed]],
        )
        everywhere = [n for part in parts for pile in part for n in pile]
        each = int(rules.CARDS_DEALT[players])
        assert len(everywhere) == len(set(everywhere)) == players * each + rules.ROWS


# ---- Bytes


@settings(max_examples=40, deadline=None)
@given(batches, st.integers(0, 80), st.integers(1, 20))
def test_a_clone_is_an_assignment_and_goes_the_same_way(
    batch: Batch, first: int, then: int
) -> None:
    games = step_many(make(batch), first)
    clone = games.copy()
    untouched = games.copy()
    step_many(clone, then)
    assert games.tobytes() == untouched.tobytes()  # the clone shares nothing with its original
    assert step_many(games, then).tobytes() == clone.tobytes()


def test_a_saved_batch_is_loaded_byte_for_byte_without_pickle() -> None:
    games = step_many(make([(seed, 2 + seed % 9, seed % 4, seed % 3) for seed in range(36)]), 20)
    file = io.BytesIO()
    np.save(file, games, allow_pickle=False)
    file.seek(0)
    loaded = np.load(file, allow_pickle=False)
    assert loaded.dtype == rules.GAME
    assert loaded.tobytes() == games.tobytes()


@settings(max_examples=40, deadline=None)
@given(batches, st.integers(1, 150), st.integers(1, 2))
def test_alone_in_a_batch_or_in_parts_a_game_is_the_same(
    batch: Batch, steps: int, games_per_match: int
) -> None:
    together = step_many(make(batch, games_per_match), steps)
    alone = [step_many(make([one], games_per_match), steps) for one in batch]
    assert b"".join(games.tobytes() for games in alone) == together.tobytes()
    in_two = make(batch, games_per_match)
    engine.in_parts(lambda part: step_many(in_two[part], steps), len(batch))
    assert in_two.tobytes() == together.tobytes()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_large_mixed_batch_in_parts_is_the_same(workers: int) -> None:
    batch = [(seed, 2 + seed % 9, seed % 4, seed % len(DECKS)) for seed in range(500)]
    whole, parted = make(batch), make(batch)
    step_many(whole, 200)
    parts = engine.in_parts(lambda part: len(step_many(parted[part], 200)), len(batch), workers)
    assert sum(parts) == len(batch)
    assert parted.tobytes() == whole.tobytes()


@settings(max_examples=40, deadline=None)
@given(batches, batches, st.integers(0, 60), st.randoms())
def test_the_same_seed_gives_the_same_game_in_any_batch(
    batch: Batch, others: Batch, steps: int, random: Any
) -> None:
    shuffled = list(enumerate(batch)) + [(-1, other) for other in others]
    random.shuffle(shuffled)
    games = step_many(make(batch), steps)
    mixed = step_many(make([one for _, one in shuffled]), steps)
    for place, (index, _) in enumerate(shuffled):
        if index >= 0:
            assert mixed[place].tobytes() == games[index].tobytes()


@given(seeds, st.integers(2, 10))
@settings(max_examples=30, deadline=None)
def test_the_deal_depends_on_seed_and_players_only(seed: int, players: int) -> None:
    games = make([(seed, players, flags, deck) for flags in range(4) for deck in range(3)])
    for name in ("rng", "hands", "piles", "seen"):
        assert all(np.array_equal(game[name], games[0][name]) for game in games)
    assert all(np.array_equal(game["rows"], games[0]["rows"]) for game in games)


def test_different_seeds_give_different_deals() -> None:
    games = engine.new_games(range(20_000), DECKS, 10)
    assert len({game["hands"].tobytes() for game in games}) == 20_000


@settings(max_examples=30, deadline=None)
@given(batches, st.integers(1, 3))
def test_a_match_that_is_over_is_dealt_anew_by_its_own_stream(batch: Batch, of: int) -> None:
    """With `again` a game plays on as the one that stopped does after `deal_again`."""
    for one in batch:
        stopped, going = make([one], of), make([one], of)
        while stopped[0]["phase"] != OVER:
            step_at_random(stopped)
            before = going.copy()
            step_at_random(going, again=True)
        assert rules.match_over(stopped[0])
        assert not rules.match_over(before[0])
        dealt = stopped.copy()
        engine.deal_again(dealt[0], DECKS[dealt[0]["deck"]])
        assert dealt.tobytes() == going.tobytes()
        assert dealt[0]["match_game"] == 1
        assert not dealt[0]["match_points"].any()
        assert not dealt[0]["points"].any()
        # Its seed is that of a game one can deal by itself; only the stream's history is its own.
        assert dealt[0]["seed"] < 2**53
        fresh = make([(int(dealt[0]["seed"]), *one[1:])], of)
        assert fresh.tobytes() == dealt.tobytes()


def test_step_counts_the_matches_that_end() -> None:
    games = make([(seed, 2 + seed % 9, seed % 4, 0) for seed in range(200)])
    who = np.zeros(10 * len(games), engine.PENDING)
    actions = np.zeros(len(who), np.int64)
    ended = 0
    while n := int(engine.pending(games, who)):
        engine.random_actions(games, DECKS, who, n, actions)
        ended += engine.step(games, DECKS, who, n, actions, False)
    assert ended == 200


# ---- Matches (R13)


@settings(max_examples=30, deadline=None)
@given(batches, st.integers(1, 4))
def test_the_points_of_a_match_are_those_of_its_games(batch: Batch, of: int) -> None:
    games = make(batch, of)
    for g, one in enumerate(batch):
        seed, total = one[0], np.zeros(rules.MAX_PLAYERS, np.int64)
        for number in range(1, of + 1):
            # The same game alone, dealt by the seed the match names and with its stream.
            single = make([(seed, *one[1:])])
            match = games[g : g + 1]
            assert (match[0]["match_points"] == total).all()
            assert int(match[0]["match_game"]) == number
            assert match[0]["hands"].tobytes() == single[0]["hands"].tobytes()
            while single[0]["phase"] != OVER:
                single[0]["rng"] = match[0]["rng"]
                step_at_random(single)
                step_at_random(match)
            total += single[0]["points"]
            seed = int(match[0]["seed"])
        assert rules.match_over(games[g])
        assert (games[g]["match_points"] + games[g]["points"] == total).all()


# ---- Games end


def stubborn_step(games: Any) -> int:
    """Everybody plays what fits nowhere as long as possible: the longest games there are."""
    who = np.zeros(10 * len(games), engine.PENDING)
    actions = np.zeros(len(who), np.int64)
    n = int(engine.pending(games, who))
    for i in range(n):
        game = games[who[i]["game"]]
        deck = DECKS[game["deck"]]
        seat = int(who[i]["seat"])
        if who[i]["phase"] == CARD:
            hand = game["hands"][seat, : game["hand_sizes"][seat]].tolist()
            fits = [rules.matching_rows(game, deck, number) != 0 for number in hand]
            actions[i] = fits.index(False) if False in fits else 0
        else:
            number = int(game["revealed"][game["placed"]])
            rows = rules.legal_rows(game, deck, number)
            actions[i] = rules.FIRST_ROW + rules.NTH_ROW[rows, 0]
    engine.step(games, DECKS, who, n, actions, False)
    return n


MONO = len(cards.DECK_NAMES) + list(odd_decks.MAKERS).index("mono")


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(2, 10), st.integers(0, 3), st.sampled_from([0, 2, MONO]))
def test_no_game_is_unbounded(seed: int, players: int, flags: int, deck: int) -> None:
    """Base: one round a card. Positive: at least one card is added to a row while a pile goes round
    once, however stubbornly cards are put back, or else the deadlock (V2f) ends the game."""
    games = make([(seed, players, flags, deck)])
    each = int(rules.CARDS_DEALT[players])
    most = each * (players * each) if flags & rules.POSITIVE else each
    while stubborn_step(games):
        assert games[0]["round"] <= most
    assert games[0]["phase"] == OVER
    if not flags & rules.POSITIVE:
        assert games[0]["round"] == each
