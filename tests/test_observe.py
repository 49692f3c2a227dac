"""The observation: its pieces say what the view says, for every rule set, table size and deck."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from odd_decks import MAKERS

from oxx_env import engine, observe
from oxx_env.game.cards import COLORS, NUMBERS
from oxx_env.game.rules import CARD_PHASE, ROW_PHASE, RULE_SETS, deck_cards
from oxx_env.game.table import Table
from oxx_env.game.views import View


def random_views(players: int, rules: str, deck: Any = "balanced", seed: int = 0) -> list[View]:
    """Views of all seats at the decisions of a game of random play."""
    table = Table(players, rules, deck, games_per_match=2)
    table.deal(seed=seed)
    rng = np.random.default_rng(seed)
    views = []
    while not table.over:
        views += [table.view(seat) for seat in range(players)]
        seat = int(rng.choice(table.deciders()))
        table.act(seat, int(rng.choice(table.legal(seat))))
    return views


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("players", [2, pytest.param(5, marks=pytest.mark.slow), 10])
def test_the_pieces_say_what_the_view_says(players: int, rules: str) -> None:
    for view in random_views(players, rules)[::7]:
        found = observe.pieces(observe.observe(view))
        heads = np.array(deck_cards(view.decks[0]))

        def show(number: int, heads: Any = heads) -> list[float]:
            return [number / NUMBERS, *(heads[number - 1] / 3)]

        # Hand, and the card being placed.
        numbers = [*view.hand, *[0] * (4 - len(view.hand)), view.card or 0]
        for card, number in enumerate(numbers):
            assert found["cards"][card, 0] == (number > 0)
            if number:
                entries = found["cards"][card, [1, 3, 4, 5, 6, 7, 8]]
                np.testing.assert_allclose(entries, show(number), atol=1e-6)
        # Rows: tail, length, color counts.
        for row, cards in enumerate(view.rows):
            entries = found["rows"][row, [0, 2, 3, 4, 5, 6, 7]]
            np.testing.assert_allclose(entries, show(cards[-1]), atol=1e-6)
            assert found["rows"][row, 8] == pytest.approx(len(cards) / 5)
            counts = sum(heads[number - 1] for number in cards)
            np.testing.assert_allclose(found["rows"][row, 10:16], counts / 5, atol=1e-6)
            # Legal rows of the card being placed.
            if view.card is not None:
                legal = 4 + row in view.legal or view.seat != view.to_act[0]
                if view.seat == view.to_act[0]:
                    assert found["pairs"][4, row, 1] == legal
        # Unseen cards by their heads.
        seen = {n for cards in view.rows for n in cards} | set(view.hand)
        seen |= {n for pile in view.oxx_piles for n in pile} | {n for _, n in view.revealed}
        seen |= {n for cards in (*view.returned, *view.known_hand) for n in cards}
        unseen = heads[[n - 1 for n in range(1, NUMBERS + 1) if n not in seen]]
        assert found["unseen"][0] == pytest.approx(len(unseen) / NUMBERS)
        np.testing.assert_allclose(found["unseen"][1:7], (unseen > 0).sum(0) / 40, atol=1e-6)
        totals = np.minimum(unseen.sum(1), 4)
        by_heads = [(totals == n).sum() / 60 for n in (1, 2, 3, 4)]
        np.testing.assert_allclose(found["unseen"][7:], by_heads, atol=1e-6)
        # Seats from the observer on.
        for offset in range(players):
            seat = (view.seat + offset) % players
            entries = found["seats"][offset]
            assert entries[0] == 1 and entries[1] == pytest.approx(view.scores[seat] / 30)
            assert entries[6] == pytest.approx(len(view.returned[seat]) / 8)
            held = len(view.known_hand[seat])
            if seat != view.seat or held:
                assert entries[7] == pytest.approx(held / 4)
            waiting = seat in [owner for owner, _ in view.revealed]
            assert entries[8] == waiting
        assert not found["seats"][players:].any()
        # Revealed cards still to be placed, in order.
        for place, (seat, number) in enumerate(view.revealed):
            entries = found["revealed"][place]
            assert entries[0] == 1 and entries[1] == (seat == view.seat)
            np.testing.assert_allclose(entries[3:], show(number), atol=1e-6)


def test_one_size_for_all_tables_and_rule_sets() -> None:
    for players in range(2, 11):
        table = Table(players, RULE_SETS[players % 4])
        table.deal(seed=1)
        assert observe.observe(table.view(players - 1)).shape == (observe.OBS,)
    assert sum(piece.size for piece in observe.PIECES) == observe.OBS


@pytest.mark.parametrize("name", sorted(MAKERS))
@pytest.mark.parametrize("rules", RULE_SETS)
def test_an_observation_stays_within_its_space_on_odd_decks(name: str, rules: str) -> None:
    deck = MAKERS[name](np.random.default_rng(3))
    for seed in range(3):
        for view in random_views(3, rules, deck, seed):
            values = observe.observe(view)
            assert np.isfinite(values).all()
            assert values.min() >= observe.LOW and values.max() <= observe.HIGH


def test_many_heavy_cards_under_a_pile_stay_within_the_space() -> None:
    # Numbers to 60 show seven yellow heads, higher ones seven blue; all rows are blue: seat 1
    # returns one yellow card after the other.
    deck = np.zeros((NUMBERS, 6), int)
    deck[:60, 1] = deck[60:, 0] = 7
    deck[[51, 103]] = 1
    yellow = [n for n in range(1, 61) if n != 52]
    blue = [n for n in range(61, NUMBERS + 1) if n != 104]
    table = Table(2, "positive", deck)
    table.deal(draw_piles=[blue[5:29], yellow[:24]], rows=blue[:5])
    most = 0.0
    while not table.over:
        for seat in range(2):
            found = observe.pieces(observe.observe(table.view(seat)))["returned"]
            most = max(most, float(found.max()))
        seat = table.deciders()[0]
        table.act(seat, table.legal(seat)[0])
    assert most == observe.HIGH


def walk_in_batch(rounds: int) -> Iterator[tuple[Any, Any, Any, int]]:
    """Games, decks, PENDING and how many, at decisions of a batch of all tables and rule sets."""
    decks = engine.stack_decks(["balanced", "two-color"])
    players, rules = np.tile(np.arange(2, 11), 4), np.repeat(np.arange(4), 9)
    games = engine.new_games(np.arange(36), decks, players, rules, np.arange(36) % 2, 2)
    who, actions = np.zeros(360, engine.PENDING), np.zeros(360, np.int64)
    for _ in range(rounds):
        n = engine.pending(games, who)
        yield games, decks, who, n
        engine.random_actions(games, decks, who, n, actions)
        engine.step(games, decks, who, n, actions, True)


def test_a_batch_shows_each_seat_what_it_would_see_alone() -> None:
    """Seats of one game share what is public; it must be as if each had been written by itself."""
    phases = set()
    for games, decks, who, n in walk_in_batch(rounds=150):
        together = np.full((n, observe.OBS), np.nan, np.float32)
        observe.encode_pending(games, decks, who, n, together)
        alone = np.full((n, observe.OBS), np.nan, np.float32)
        for i in range(n):
            observe.encode_pending(games, decks, who[i : i + 1], 1, alone[i : i + 1])
        assert together.tobytes() == alone.tobytes()
        phases |= {*who["phase"][:n].tolist()}
    assert phases == {CARD_PHASE, ROW_PHASE}


def sample_hash() -> str:
    """Of the observations of a few decisions in all rule sets and at all tables."""
    digest = hashlib.sha256()
    for games, decks, who, n in walk_in_batch(rounds=8):
        out = np.zeros((n, observe.OBS), np.float32)
        observe.encode_pending(games, decks, who, n, out)
        digest.update(out.tobytes())
    return digest.hexdigest()


def test_uncompiled_kernels_write_the_same_observations() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "import test_observe; print(test_observe.sample_hash())"],
        env=environment,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == sample_hash()


def test_explain_names_every_piece_and_field_that_is_not_zero() -> None:
    view = random_views(4, "positive")[200]
    observation = observe.observe(view)
    text = observe.explain(observation)
    assert [line.split()[0] for line in text.splitlines() if not line.startswith(" ")] == [
        piece.name for piece in observe.PIECES
    ]
    assert len(re.findall(r" = -?[\d.]", text)) == np.count_nonzero(observation)
    assert "4 players = 1" in text and "positive = 1" in text
    assert any(color in text for color in COLORS)


def test_an_observation_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"647 entries"):
        observe.pieces(np.zeros(300))
