"""Hidden is hidden: two games that differ only in what a seat cannot know look the same to it.

The games are dealt by hand. While they are played by the same actions, the cards that the observer
has not seen are exchanged among the other hands, the draw piles and the box of the second game, in
every position anew: no view, observation or action of a bot may change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oxx_env import baron_oxx_v0, bots
from oxx_env.game.observe import observe
from oxx_env.game.rules import CARDS_DEALT, NO_SEED

RULES = ("base", "color", "positive", "color+positive")
SIZES = (2, 3, 5, 10)
BOTS = ("random", "greedy", "mc:4")


def deal(players: int, rng: np.random.Generator) -> dict[str, Any]:
    """A random deal, as reset options."""
    numbers = (rng.permutation(110) + 1).tolist()
    each = int(CARDS_DEALT[players])
    piles = [numbers[seat * each : (seat + 1) * each] for seat in range(players)]
    return {"draw_piles": piles, "rows": numbers[players * each : players * each + 5]}


def exchange(dealt: dict[str, Any], known: set[int], rng: np.random.Generator) -> dict[str, Any]:
    """Another deal: all cards but the known ones are dealt over, box included."""
    hidden = [number for number in range(1, 111) if number not in known]
    others = iter(rng.permutation(hidden).tolist())
    piles = [[n if n in known else next(others) for n in pile] for pile in dealt["draw_piles"]]
    return {"draw_piles": piles, "rows": dealt["rows"]}


def look(env: Any, seat: int) -> dict[str, Any]:
    """Everything the seat is given."""
    view = env.view(f"player_{seat}")
    return {
        "view": view.to_dict(),
        "record": view.games.tobytes(),
        "observation": observe(view).tobytes(),
        "given": [array.tobytes() for array in env.observe(f"player_{seat}").values()],
        "legal": view.legal,
        "acts": [bots.make(spec).act(view, np.random.default_rng(7)) for spec in BOTS],
    }


def forward(env: Any, dealt: dict[str, Any], chosen: list[int]) -> None:
    """Play the cards and rows chosen so far from the start of a deal."""
    env.reset(seed=0, options=dealt)
    for number in chosen:
        view = env.view(env.agent_selection)
        env.step(view.hand.index(number) if number > 0 else -number)


def as_choice(env: Any, action: int) -> int:
    """What an action means whatever the slot: the card's number, or minus the row's action."""
    return env.view(env.agent_selection).hand[action] if action < 4 else -action


def others_known(env: Any, seat: int, chosen: list[int]) -> set[int]:
    """What may not change: cards seen by all, the own hand, and secret picks already made.

    (A pick is made of a card that its owner holds; the second game must let it be made. That the
    number picked does not show is a test of its own.)
    """
    game = env.match.table.game
    seen = int(game["seen"][0]) | int(game["seen"][1]) << 64
    known = {number for number in range(1, 111) if seen >> number & 1}
    return (
        known | set(env.view(f"player_{seat}").hand) | {number for number in chosen if number > 0}
    )


@pytest.mark.parametrize("players", SIZES)
@pytest.mark.parametrize("rules", RULES)
def test_games_that_differ_in_hidden_cards_look_the_same(rules: str, players: int) -> None:
    rng = np.random.default_rng(players)
    env, other = baron_oxx_v0.env(players, rules), baron_oxx_v0.env(players, rules)
    dealt = deal(players, rng)
    forward(env, dealt, [])
    chosen: list[int] = []
    checked: dict[str, set[int]] = {"card": set(), "row": set()}
    differed = 0
    while not env.terminations["player_0"]:
        phase = env.view("player_0").phase
        unchecked = sorted(set(range(players)) - checked[phase])
        if unchecked or rng.random() < 0.15:  # each seat in each phase, then now and again
            seat = unchecked[0] if unchecked else int(rng.integers(players))
            changed = exchange(dealt, others_known(env, seat, chosen), rng)
            differed += changed != dealt
            forward(other, changed, chosen)
            assert look(env, seat) == look(other, seat)
            checked[phase].add(seat)
        legal = np.flatnonzero(env.observe(env.agent_selection)["action_mask"])
        action = int(rng.choice(legal))
        chosen.append(as_choice(env, action))
        env.step(action)
    assert differed >= 2 * players
    assert checked["card"] == checked["row"] == set(range(players))


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("players", [2, 6])
def test_another_seats_secret_pick_does_not_show(rules: str, players: int) -> None:
    """Also not through a different hand: neither the card picked nor its slot is known."""
    rng = np.random.default_rng(1)
    env, other = baron_oxx_v0.env(players, rules), baron_oxx_v0.env(players, rules)
    observer = players - 1
    for _ in range(5):
        dealt = deal(players, rng)
        env.reset(seed=0, options=dealt)
        known = set(dealt["rows"]) | set(env.view(f"player_{observer}").hand)
        other.reset(seed=0, options=exchange(dealt, known, rng))
        for _ in range(players - 1):
            assert look(env, observer) == look(other, observer)
            env.step(int(rng.integers(4)))
            other.step(int(rng.integers(4)))
        assert env.agent_selection == other.agent_selection == f"player_{observer}"
        assert look(env, observer) == look(other, observer)


@pytest.mark.parametrize("players", [2, 4])
def test_the_seed_of_a_game_does_not_show(players: int) -> None:
    """The same cards, dealt by a seed and by hand: the random stream is no part of a view."""
    env, other = baron_oxx_v0.env(players), baron_oxx_v0.env(players)
    env.reset(seed=5)
    while not env.terminations["player_0"]:
        env.step(env.view(env.agent_selection).legal[0])
    (record,) = env.records()
    env.reset(seed=5)
    other.reset(seed=77, options={key: record[key] for key in ("draw_piles", "rows")})
    assert env.match.table.game["seed"] == 5 and other.match.table.game["seed"] == NO_SEED
    assert env.match.table.game["rng"] != other.match.table.game["rng"]
    for seat in range(players):
        assert look(env, seat) == look(other, seat)


@pytest.mark.parametrize("players", [2, 4])
def test_in_positive_cards_put_under_a_pile_are_known_and_stay_known(players: int) -> None:
    """The exchange never moves them, and the views tell them: so they are no hidden cards."""
    env = baron_oxx_v0.env(players, "positive")
    rng = np.random.default_rng(0)
    told_returned = told_hand = 0
    for seed in range(12):
        env.reset(seed=seed)
        while not env.terminations["player_0"]:
            view = env.view("player_1")
            told_returned += any(view.returned)
            told_hand += any(view.known_hand[seat] for seat in range(players) if seat != 1)
            game = env.match.table.game
            for seat, numbers in enumerate(view.known_hand):
                assert set(numbers) <= set(game["hands"][seat].tolist())
            legal = np.flatnonzero(env.observe(env.agent_selection)["action_mask"])
            env.step(int(rng.choice(legal)))
    assert told_returned and told_hand


def test_the_exchange_itself_changes_hands_piles_and_box() -> None:
    """The checker is awake: from the other side the two games do differ."""
    rng = np.random.default_rng(0)
    env, other = baron_oxx_v0.env(3), baron_oxx_v0.env(3)
    dealt = deal(3, rng)
    forward(env, dealt, [])
    forward(other, exchange(dealt, others_known(env, 0, []), rng), [])
    assert look(env, 0) == look(other, 0)
    assert look(env, 1) != look(other, 1)
    assert not np.array_equal(env.state(), other.state())
