"""A game that passes `validation.check_games` plays to its end inside its record."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import odd_decks
import pytest

from oxx_env import cards, engine, notation, rules, views
from oxx_env.game import validation
from oxx_env.policy import features

HEADS = [cards.load_deck(name) for name in cards.DECK_NAMES]
HEADS += [make(np.random.default_rng(1)) for make in odd_decks.MAKERS.values()]
DECKS = engine.stack_decks(HEADS)
# What play reads as an index or a count, and what it writes by; the rest is 64 random bits.
FIELDS = [name for name in rules.GAME.names if name not in ("rng", "seed", "deck")]


def drawn(count: int, seed: int, per_match: int = 1) -> tuple[Any, np.random.Generator]:
    """GAME [B] of all sizes, rule sets and decks, new."""
    rng = np.random.default_rng(seed)
    many = rng.integers(2, 11, count), rng.integers(0, 4, count), rng.integers(0, len(DECKS), count)
    return engine.new_games(rng.integers(0, 2**53, count), DECKS, *many, per_match), rng


def step(games: Any, moving: Any = None) -> int:
    """One decision of everybody who decides, by the games' own streams."""
    who = np.zeros(10 * len(games), engine.PENDING)
    actions = np.zeros(len(who), np.int64)
    n = int(engine.pending(games, who))
    if moving is not None:
        kept = np.ascontiguousarray(who[:n][moving[who["game"][:n]]])
        who, n = kept, len(kept)
    engine.random_actions(games, DECKS, who, n, actions)
    engine.step(games, DECKS, who, n, actions, False)
    return n


def reachable(count: int, seed: int) -> tuple[Any, np.random.Generator]:
    """Games in the middle: each was played for a while of its own."""
    games, rng = drawn(count, seed)
    length = rng.integers(0, 45, count)
    for after in range(45):
        step(games, length > after)
    return games, rng


def altered(games: Any, rng: np.random.Generator) -> Any:
    """The games with one to three cells changed: any value, a small step, or two cells swapped."""
    games = views.clone(games)
    for g in range(len(games)):
        for _ in range(rng.integers(1, 4)):
            field = FIELDS[rng.integers(len(FIELDS))]
            cells = games[field].reshape(len(games), -1)[g]
            a, b = rng.integers(0, len(cells), 2)
            kind = rng.integers(0, 4)
            if kind == 0:
                info = np.iinfo(cells.dtype)
                cells[a] = rng.integers(info.min, info.max, dtype=cells.dtype, endpoint=True)
            elif kind == 1:
                cells[a : a + 1] += cells.dtype.type(1)
            elif kind == 2:
                cells[a : a + 1] -= cells.dtype.type(1)
            else:
                cells[a], cells[b] = cells[b], cells[a]
            games[field].reshape(len(games), -1)[g] = cells
    return games


def play_between_canaries(games: Any, rng: np.random.Generator) -> None:
    """Play all to their ends; beside each lies a record that no play may touch."""
    batch = np.frombuffer(rng.bytes((2 * len(games) + 1) * rules.GAME.itemsize), rules.GAME).copy()
    batch["phase"] = rules.OVER  # nobody decides there
    batch[1::2] = games
    batch["match_games"] = np.minimum(batch["match_games"], batch["match_game"] + 1)
    before = batch[::2].tobytes()
    for _ in range(3000):
        if not step(batch):
            break
    assert batch[::2].tobytes() == before
    assert (batch["phase"][1::2] == rules.OVER).all()
    played = np.ascontiguousarray(batch[1::2])
    assert not validation.faults_of(played, DECKS).any()


def test_reachable_games_are_sound():
    games, _ = drawn(100, 1, per_match=2)
    validation.check_games(games, DECKS)
    while step(games):
        validation.check_games(games, DECKS)
    validation.check_games(games, DECKS)


def test_an_altered_game_that_passes_the_check_plays_to_its_end_inside_its_record():
    passed = 0
    for seed in range(4):
        games, rng = reachable(2000, seed)
        games = altered(games, rng)
        good = games[validation.faults_of(games, DECKS) == 0]
        passed += len(good)
        play_between_canaries(good, rng)
        # Encoders and the dealing of hidden cards read by the same indices.
        who = np.zeros(10 * len(good), engine.PENDING)
        n = int(engine.pending(good, who))
        inputs = np.zeros((n, features.INPUT), np.float32)
        features.encode_inputs(good, DECKS, who, n, inputs)
        assert np.isfinite(inputs).all()
    assert passed > 150  # of 8,000: the check refuses most, and the test is about the rest


@pytest.mark.slow
def test_uncompiled_play_of_what_passed_reads_no_wrong_index():
    # Plain numpy says where compiled code would read or write beyond an array.
    code = (
        "import numpy as np, test_sound as t\n"
        "games, rng = t.reachable(40, 77)\n"
        "games = t.altered(t.np.repeat(games, 20), rng)\n"
        "good = games[t.validation.faults_of(games, t.DECKS) == 0]\n"
        "t.play_between_canaries(good[:30], rng)\n"
        "print(len(good))\n"
    )
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 20


def test_the_crafted_game_that_wrote_past_its_record_is_named():
    games, _ = reachable(5, 3)
    games["taken_count"][2] = 110
    games["row_sizes"][2] = 5
    with pytest.raises(ValueError, match=r"game 2: taken_count 110 with the rows, should be no"):
        validation.check_games(games, DECKS)


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_is_looked_at(field: str):
    games, rng = reachable(400, 11)
    for at in range(len(games)):
        cells = games[field].reshape(len(games), -1)
        cells[at, rng.integers(cells.shape[1])] += 97
        games[field] = cells.reshape(games[field].shape)
    faults = validation.faults_of(games, DECKS)
    # A match may have other games, and points from before; in `positive` returns add rounds; a
    # card in a pile may be one of the box.
    allowed = {"match_games": 400, "match_points": 300, "round": 250}.get(field, 20)
    assert np.count_nonzero(faults == 0) <= allowed


def test_a_card_that_lies_twice_is_refused_wherever_it_lies():
    games, _ = reachable(300, 5)
    piles = ("hands", "rows", "piles", "taken", "revealed")
    for game in games.copy():
        places = [(n, tuple(i)) for n in piles for i in np.argwhere(game[n])]
        for (a, i), (b, j) in zip(places, places[7:], strict=False):
            twice = np.array([game])
            twice[0][b][j] = twice[0][a][i]
            placed = b == "revealed" and j[0] < game["placed"]  # it lies elsewhere besides
            if not placed and not np.array_equal(twice[0], game):
                assert validation.faults_of(twice, DECKS)[0], (a, i, b, j)


def test_a_deck_whose_tables_contradict_its_cards_is_refused():
    for field in rules.DECK.names:
        bad = DECKS.copy()
        flat = bad[field].reshape(len(bad), -1)
        flat[1, -1] += flat.dtype.type(1)
        bad[field] = flat.reshape(bad[field].shape)
        with pytest.raises(ValueError, match=r"deck"):
            validation.check_decks(bad)
    validation.check_decks(DECKS)


def test_what_is_no_game_and_who_does_not_decide_is_said():
    games, _ = drawn(3, 1)
    with pytest.raises(ValueError, match="no games but float64"):
        validation.check_games(np.zeros(3), DECKS)
    own = games["deck"].copy()
    games["deck"] = -1
    with pytest.raises(ValueError, match=r"game 0: deck -1; there are \d+, counted from 0"):
        validation.check_games(games, DECKS)
    games["deck"] = own
    validation.check_games(games, DECKS, np.array([0, 1, 0]))
    with pytest.raises(ValueError, match="game 1: seat 200 has nothing to decide"):
        validation.check_games(games, DECKS, np.array([0, 200, 0], np.uint8))
    games["picks"][2, 0] = games["hands"][2, 0, 1]
    with pytest.raises(ValueError, match="game 2: seat 0 has nothing to decide"):
        validation.check_games(games, DECKS, np.array([0, 1, 0]))


def test_a_position_that_a_person_tells_is_sound_once_its_hidden_cards_are_dealt():
    texts = [
        "base 4p seat 0 | rows 12-71 7 55-88-2 41 60 | hand 3 17 52 90",
        "color 3p seat 1 | rows 12-71 7 25-92 41 60 | hand 3 17 90 | revealed 1:46 0:99",
        "4p rows 12 7 31 20 46 hand 3 17 52 88",
    ]
    for text in texts:
        view = notation.read_position(text)
        games = views.complete(view.games, view.decks, view.seat, 5)
        validation.check_games(games, view.decks)
