"""A table tells each view and record once and for all, whatever is played afterwards."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from oxx_env.envs.match import Match
from oxx_env.envs.vector import BaronOxxVecEnv
from oxx_env.game.rules import NO_SEED
from oxx_env.game.table import Table
from oxx_env.notation.records import events_of, records_of, replay


def play(table: Table, decisions: int) -> None:
    for _ in range(decisions):
        if seats := table.deciders():
            table.act(seats[0], table.legal(seats[0])[0])


@pytest.mark.parametrize("rules", ["base", "positive"])
def test_a_view_keeps_its_history_whatever_comes_after(rules: str) -> None:
    table = Table(3, rules, games_per_match=2)
    table.deal(seed=1)
    play(table, 20)
    view = table.view(0)
    data = view.to_dict()
    assert data["history"]
    play(table, 10)
    assert view.to_dict() == data
    play(table, 1000)  # the next game, the end
    assert table.over and view.to_dict() == data
    table.deal(seed=2)
    play(table, 20)
    assert view.to_dict() == data


def test_each_game_of_a_match_can_be_set_by_hand() -> None:
    def deal(game: int) -> tuple[list[list[int]], list[int]]:
        order = [(number * game) % 113 for number in range(1, 113) if (number * game) % 113 < 111]
        return [order[:24], order[24:48]], order[48:53]

    table = Table(2, games_per_match=3)
    table.deal_each(deal)
    seen = []
    while not table.over:
        seen.append(table.game["rows"][:, 0].tolist())
        assert table.game["seed"] == NO_SEED
        play(table, 1)
    data = records_of(table)
    assert [(r["draw_piles"], r["rows"]) for r in data] == [deal(1), deal(2), deal(3)]
    assert all(r["seed"] is None and replay(r) for r in data)
    assert all(deal(game)[1] in seen for game in (1, 2, 3))
    deals = [event for event in events_of(table) if event[0] == "deal"]
    assert deals == [("deal", game, deal(game)[1]) for game in (1, 2, 3)]
    table.deal(seed=1)  # the next match comes from its seed again
    play(table, 1000)
    assert all(r["seed"] is not None for r in records_of(table))


def test_a_view_can_be_copied_and_sent_and_takes_nothing_hidden_along() -> None:
    table = Table(2)
    table.deal(seed=1)
    play(table, 11)
    view = table.view(0)
    copies = [pickle.loads(pickle.dumps(view)), copy.deepcopy(view)]
    other = Table(2)  # the same to this seat: two cards of the other's draw pile change places
    deal = {"draw_piles": [[*pile] for pile in _deal(1)[0]], "rows": _deal(1)[1]}
    table.deal(seed=1, **deal)
    deal["draw_piles"][1][-1], deal["draw_piles"][1][-2] = deal["draw_piles"][1][-2:]
    other.deal(seed=1, **deal)
    for one in (table, other):
        play(one, 11)
    assert pickle.dumps(table.view(0)) == pickle.dumps(other.view(0))
    for again in copies:
        assert again.to_dict() == view.to_dict() and again.games.tobytes() == view.games.tobytes()
        again.history().clear()
        assert again.history() == view.history() != []


def _deal(seed: int) -> tuple[list[list[int]], list[int]]:
    table = Table(2)
    table.deal(seed)
    play(table, 1000)
    (record,) = records_of(table)
    return record["draw_piles"], record["rows"]


def test_a_table_without_a_match_has_no_history_and_no_records() -> None:
    table = Table(2)
    assert table.history() == records_of(table) == events_of(table) == []


def test_records_given_out_do_not_change() -> None:
    table = Table(2, games_per_match=2)
    table.deal(seed=1)
    while not records_of(table):
        play(table, 1)
    first = records_of(table, "a")
    before = copy.deepcopy(first)
    play(table, 1000)
    assert len(records_of(table, "b")) == 2 and first == before


@pytest.mark.parametrize("seed", [-1, 2**64 - 1, 1.0, "1", True])
def test_a_bad_seed_is_refused_and_the_table_stays(seed: object) -> None:
    table = Table(2)
    table.deal(seed=1)
    before = table.games.tobytes()
    with pytest.raises(ValueError, match=r"the seed must be .*0 to 2\*\*64-2"):
        table.deal(seed=seed)  # type: ignore[arg-type]
    assert table.games.tobytes() == before


@pytest.mark.parametrize("seat", [-1, 4, 300, 10**9, -(10**9), 2**70, 0.5, "0", None, True])
def test_a_seat_that_is_not_at_the_table_is_refused_and_never_an_index(seat: Any) -> None:
    table = Table(4)
    table.deal(seed=1)
    before = table.games.tobytes()
    match = Match(4, "base", "balanced", 1, "points", "raise", None)
    match.deal(1, None)
    batch = BaronOxxVecEnv(2, 4)
    batch.reset()
    asks: list[Callable[[], Any]] = [
        lambda: table.act(seat, 0),
        lambda: table.legal(seat),
        lambda: table.view(seat),
        lambda: match.observe(seat),
    ]
    if seat is not None:  # there it means the learner
        asks.append(lambda: batch.view(0, seat))
    for ask in asks:
        with pytest.raises(ValueError, match=r"seats are 0 to 3|seat must be an integer"):
            ask()
    assert table.games.tobytes() == before
    for index in (-1, 2, 10**9):
        with pytest.raises(IndexError, match="should be 0 to 1"):
            batch.view(index)
