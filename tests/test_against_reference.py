"""The kernel plays as the reference does: the same state after every placement of every game."""

from __future__ import annotations

import numpy as np
import odd_decks
import pytest
from tracing import Heads, Tracer, difference, reference_trace

from oxx_env import cards, engine
from oxx_env.game.rules import RULE_SETS

TABLES = range(2, 11)
GAMES_PER_DECK = 186  # x 9 table sizes x 4 rule sets x 3 decks = 20,088 games
ODD_DECKS = 3  # x 9 kinds x 4 rule sets x 9 table sizes x 3 games = 2,916 games


@pytest.fixture(scope="module")
def tracer() -> Tracer:
    return Tracer()


def as_heads(deck: np.ndarray) -> Heads:
    return tuple(tuple(card) for card in deck.tolist())


@pytest.mark.slow  # the odd decks below are the quick ones
@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("players", TABLES)
def test_shipped_decks_give_the_same_games(players: int, rules: str, tracer: Tracer) -> None:
    decks = engine.stack_decks(cards.DECK_NAMES)
    for index, name in enumerate(cards.DECK_NAMES):
        heads = as_heads(cards.load_deck(name))
        seeds = np.arange(GAMES_PER_DECK) + 1000 * (index + 3 * players)
        games = engine.new_games(seeds, decks, players, rules, index)
        for g, seed in enumerate(seeds.tolist()):
            what = f"{players} players, {rules}, {name}, seed {seed}"
            tracer.check(games[g : g + 1], decks, heads, what)


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("kind", odd_decks.MAKERS)
def test_odd_decks_give_the_same_games(kind: str, rules: str, tracer: Tracer) -> None:
    for deck_seed in range(ODD_DECKS):
        deck = odd_decks.MAKERS[kind](np.random.default_rng(deck_seed))
        decks = engine.stack_decks([deck])
        heads = as_heads(deck)
        for players in TABLES:
            games = engine.new_games(range(3), decks, players, rules)
            for g in range(3):
                what = f"{players} players, {rules}, {kind} deck {deck_seed}, seed {g}"
                tracer.check(games[g : g + 1], decks, heads, what)


def test_a_difference_is_found_and_named(tracer: Tracer) -> None:
    """The comparison itself: one card or one rule changed in the reference is noticed."""
    decks = engine.stack_decks(["balanced"])
    heads = as_heads(cards.load_deck("balanced"))
    (game,) = games = engine.new_games([7], decks, 4, "base")
    start = game.copy()
    states, decisions = tracer.trace(games, decks)
    told = reference_trace(start, heads, decisions)
    assert [part.tobytes() for part in told] == [states.tobytes(), decisions.tobytes()]
    for rules in (1, 2):
        other = start.copy()
        other["rules"] = rules
        told = reference_trace(other, heads, decisions)
        assert told[0].tobytes() != states.tobytes()
        assert "differs" in difference(states, told[0], "seed 7")
    richer = list(heads)
    taken = int(game["taken"][0])
    richer[taken - 1] = tuple(7 * head for head in heads[taken - 1])
    told = reference_trace(start, tuple(richer), decisions)
    assert "points" in difference(states, told[0], "seed 7")
