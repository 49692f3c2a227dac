"""Matches that start in mid-game: from a position, or from a record after some rounds."""

from __future__ import annotations

import copy
import json
from typing import Any

import gymnasium
import numpy as np
import pytest

from oxx_env import baron_oxx_v0, notation, records
from oxx_env.envs.single import BaronOxxSingle
from oxx_env.game.table import Start, Table
from oxx_env.game.validation import check_games
from oxx_env.game.views import View

RULES = ("base", "color", "positive", "color+positive")
TEXT = "2p | rows 12 7-17 31 20 46 | hand 3 52 88 110"


def advance(table: Table, decisions: int, rng: np.random.Generator) -> None:
    """So many random decisions, or until the match is over."""
    for _ in range(decisions):
        if table.over:
            return
        seat = table.deciders()[0]
        table.act(seat, int(rng.choice(table.legal(seat))))


def played(players: int, rules: str, games: int = 1, seed: int = 1) -> Table:
    table = Table(players, rules, games_per_match=games)
    table.deal(seed)
    return table


def finish(env: Any) -> dict[str, Any]:
    """The last infos; the rewards of a parallel environment are checked against the points."""
    start = np.array(env.match.table.scores())
    sums = np.zeros(env.match.players)
    infos: dict[str, Any] = {}
    while env.agents:
        actions = {agent: env.view(agent).legal[-1] for agent in env.agents}
        _, rewards, _, _, infos = env.step(actions)
        sums += list(rewards.values())
    sign = 1 if "positive" in env.match.table.rules else -1
    np.testing.assert_array_equal(sums, sign * (infos["player_0"]["scores"] - start))
    return infos


@pytest.mark.parametrize("players", [2, 4, 10])
@pytest.mark.parametrize("rules", RULES)
def test_the_view_at_the_start_is_that_of_the_position(rules: str, players: int) -> None:
    rng = np.random.default_rng(players)
    phases = set()
    for decisions in (0, players, 3 * players + 1, 5 * players, 7 * players + 2):
        table = played(players, rules, 2)
        advance(table, decisions, rng)
        if table.over:
            continue
        seat = table.deciders()[0]
        view = table.view(seat)
        phases.add(view.phase)
        env = baron_oxx_v0.parallel_env(players, rules)
        observations, _ = env.reset(seed=5, options={"position": view.to_dict()})
        agent = f"player_{seat}"
        assert env.view(agent).to_dict() == view.to_dict()
        assert (
            env.view(agent).games.tobytes()
            == notation.view_from_dict(view.to_dict()).games.tobytes()
        )
        mask = observations[agent]["action_mask"]
        assert np.flatnonzero(mask).tolist() == view.legal
        check_games(env.match.table.games, env.match.table.decks)
        # The same seed deals the same hidden cards, another one others.
        games = [
            baron_oxx_v0.parallel_env(players, rules)
            for _ in range(3)
        ]  # fmt: skip
        for other, seed in zip(games, (5, 5, 6), strict=True):
            other.reset(seed=seed, options={"position": view.to_dict()})
        bytes_of = [other.match.table.games.tobytes() for other in games]
        assert bytes_of[0] == bytes_of[1] == env.match.table.games.tobytes()
        assert bytes_of[0] != bytes_of[2]
        finish(env)
    assert phases == {"card", "row"}


@pytest.mark.parametrize("rules", RULES)
def test_from_a_text_rules_deck_and_games_not_told_are_the_environments(rules: str) -> None:
    env = baron_oxx_v0.parallel_env(2, rules, "two-color", games_per_match=3)
    text = "2p | rows 12 7 31 20 46 | hand 3 52 88 110"
    env.reset(seed=1, options={"position": text})
    view = env.view("player_0")
    assert (view.rules, view.deck, view.hand) == (rules, "two-color", [3, 52, 88, 110])
    assert view.to_dict()["match"] == {"game": 1, "of": 3, "points": [0, 0]}
    assert view.to_dict() == notation.view_from_dict(view.to_dict()).to_dict()
    finish(env)
    env.reset(seed=1, options={"position": f"{text} deck balanced game 2/2 before 5 9"})
    assert env.view("player_0").deck == "balanced" and env.match.table.scores() == [5, 9]
    env.reset(seed=1, options={"position": text, "deck": "three-color"})
    assert env.view("player_0").deck == "three-color"
    env.reset(seed=1)
    assert env.view("player_0").deck == "two-color"


def test_cards_taken_and_not_remembered_stay_out_of_the_game() -> None:
    env = baron_oxx_v0.parallel_env(3)
    text = "3p | round 4 | rows 12 7 31 20 46 | hand 3 52 88 110 | points 3 14 0"
    env.reset(seed=1, options={"position": text})
    assert env.match.table.scores() == [3, 14, 0]
    assert env.view("player_0").to_dict()["history"] == []
    assert env.view("player_0").to_dict()["pile_sizes"] == [12, 12, 12]
    finish(env)


@pytest.mark.parametrize("players", [2, 5])
@pytest.mark.parametrize("rules", RULES)
def test_a_record_goes_on_from_every_round(rules: str, players: int) -> None:
    table = played(players, rules, 2)
    advance(table, 10_000, np.random.default_rng(0))
    for record in records.records_of(table):
        told = record["rounds"]
        for rounds in range(len(told)):
            env = baron_oxx_v0.parallel_env(players, rules)
            try:
                env.reset(seed=3, options={"record": record, "round": rounds})
            except ValueError as error:  # the last cards may play themselves
                assert rounds == len(told) - 1 and "no seat has a decision left" in str(error)
                continue
            view = env.view("player_1").to_dict()
            assert view["history"][:rounds] == told[:rounds]
            assert view["match"]["points"] == record["match"]["points_before"]
            if rounds % 4 or "positive" in rules:
                continue
            # A fresh hand of four cards: the one that was drawn.
            hands = [sorted(pile[rounds : rounds + 4]) for pile in record["draw_piles"]]
            assert [env.view(agent).hand for agent in env.agents] == hands
            other = baron_oxx_v0.parallel_env(players, rules)
            other.reset(seed=4, options={"record": json.dumps(record), "round": rounds})
            assert [other.view(agent).hand for agent in other.agents] == hands
            piles = [one.match.table.game["piles"].tolist() for one in (env, other)]
            assert (piles[0] == piles[1]) == (rounds == len(told) - 4)  # then no draw pile is left
            finish(env)


def test_the_decisions_after_the_start_are_told_in_the_history_and_there_is_no_record() -> None:
    table = played(3, "base")
    advance(table, 14, np.random.default_rng(2))
    view = table.view(table.deciders()[0])
    env = baron_oxx_v0.parallel_env(3, games_per_match=2)
    env.reset(seed=1, options={"position": view.to_dict()})
    env.step({agent: env.view(agent).legal[0] for agent in env.agents})
    told = env.view("player_2").to_dict()
    assert len(told["history"]) >= len(view.history())
    assert notation.view_from_dict(told).to_dict() == told
    finish(env)
    with pytest.raises(ValueError, match="started in mid-game: it has no record"):
        env.records()
    twin = copy.deepcopy(env)
    assert twin.match.table.history() == env.match.table.history()


@pytest.mark.parametrize("rules", RULES)
def test_aec_and_gymnasium_start_there_too(rules: str) -> None:
    table = played(3, rules)
    advance(table, 11, np.random.default_rng(5))
    options = {"position": table.view(table.deciders()[0]).to_dict()}
    parallel, aec = baron_oxx_v0.parallel_env(3, rules), baron_oxx_v0.env(3, rules)
    parallel.reset(seed=2, options=options)
    aec.reset(seed=2, options=options)
    assert aec.match.table.games.tobytes() == parallel.match.table.games.tobytes()
    assert aec.agent_selection == f"player_{table.deciders()[0]}"
    sign = 1 if "positive" in rules else -1
    for seat in range(3):
        env = BaronOxxSingle(3, seat, rules=rules)
        _, info = env.reset(seed=2, options=options)
        assert info["action_mask"].sum() >= 2
        total, over = 0.0, False
        while not over:
            _, reward, over, _, info = env.step(int(info["action_mask"].argmax()))
            total += reward
        # What the bots did before the learner's first decision is paid with its first step.
        assert total == sign * (info["scores"][seat] - table.scores()[seat])


def test_where_the_learner_decides_nothing_any_more_is_no_start_for_it() -> None:
    table = played(2, "base")
    rng = np.random.default_rng(0)
    last: View | None = None
    while not table.over:
        if table.view(0).phase == "row" and not table.view(0).hand:
            seat = table.deciders()[0]
            if table.game["pile_sizes"].sum() == 0:
                last = table.view(seat)
        advance(table, 1, rng)
    assert last is not None
    other = 1 - last.seat
    env = BaronOxxSingle(2, other)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="seat 1 decides nothing any more from this start"):
        env.reset(seed=1, options={"position": last.to_dict()})
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=1)


def test_a_position_in_which_no_card_would_fit_is_no_start_in_positive() -> None:
    """V2f: of the hidden deals those remain in which the game goes on."""
    deck = np.zeros((110, 6), int)
    deck[:, 0] = 1  # blue
    deck[[51, 103]] = 1
    deck[:5] = [0, 1, 0, 0, 0, 0]  # 1 to 5 are yellow, and so are 6 and 7
    deck[5:7] = [0, 1, 0, 0, 0, 0]
    table = Table(2, "positive", deck)
    position = {
        "rules": "positive",
        "players": 2,
        "seat": 0,
        "deck": {"name": "odd", "cards": deck.tolist()},
        "rows": [[1], [2], [3], [4], [5]],
        "hand": [8, 9, 10, 11],
    }
    for seed in range(20):
        table.start(Start.at(notation.view_from_dict(position)), seed)
        held = {*table.game["hands"].ravel().tolist(), *table.game["piles"].tolist()}
        assert held & {6, 7, 52, 104}
    taken = {"oxx_piles": [[52, 104], [6, 7]], "round": 4, "pile_sizes": [16, 16]}
    with pytest.raises(ValueError, match="fits a row"):
        table.start(Start.at(notation.view_from_dict({**position, **taken})), 1)


ONE_ROUND = {"record": {}, "round": 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"position": TEXT.replace("7-17", "7"), **ONE_ROUND}, "position and record are two"),
        ({"position": TEXT, "draw_piles": [[1]], "rows": [1]}, "position and draw_piles are two"),
        ({"record": {}}, "record and round belong together"),
        ({"round": 3}, "record and round belong together"),
        ({"record": {}, "round": 0, "deck": "balanced"}, "a record has its deck in it"),
        ({"record": {}, "round": 0}, "format"),
        ({"record": "{", "round": 0}, "breaks off"),
        ({"record": "played", "round": 99}, "round 99: should be 0 \\(the deal\\) to 23"),
        ({"record": "played", "round": -1}, "round -1: should be 0"),
        ({"record": "played", "round": 1.5}, "round 1.5: should be 0"),
        ({"position": 5}, "position must be a text or a view's dict, not 5"),
        ({"position": "2p | rows 12 7 31 20 46 | hand 3 52 88 12"}, "card 12 appears twice"),
        ({"position": "2p | rows 12 7 31 20 | hand 3 52 88 110"}, "4 rows; should be 5"),
        ({"position": "3p | rows 12 7 31 20 46 | hand 3 52 88 110"}, "the start has 3 players"),
        ({"position": "color 2p rows 12 7 31 20 46 hand 3 52 88 110"}, "the start has rule set"),
        ({"position": "2p rows 12 7 31 20 46 hand 3 52 88 110 picked"}, "has picked a card"),
        ({"position": {"rules": "base", "players": 2}}, "lacks its seat"),
        ({"position": "2p over round 24 rows 12 7 31 20 46 hand -"}, "game is already over"),
    ],
)
def test_what_is_no_start_is_refused_and_changes_nothing(
    options: dict[str, Any], message: str
) -> None:
    if options.get("record") == "played":
        table = played(2, "base")
        advance(table, 10_000, np.random.default_rng(0))
        options = {**options, "record": records.records_of(table)[0]}
    for env in (baron_oxx_v0.parallel_env(2), baron_oxx_v0.env(2), BaronOxxSingle(2)):
        env.reset(seed=1)
        before = env.match.table.games.tobytes()
        with pytest.raises(ValueError, match=message):
            env.reset(seed=2, options=options)
        assert env.match.table.games.tobytes() == before and env.match.seed == 1


def test_records_of_a_match_say_where_their_game_stood() -> None:
    table = played(2, "base", 2)
    advance(table, 10_000, np.random.default_rng(0))
    second = records.records_of(table)[1]
    start = records.start_at(second, 0)
    assert start.games[0]["match_game"] == 2 and start.earlier == []
    assert start.games[0]["match_points"][:2].tolist() == second["match"]["points_before"]
    hidden = start.games[0]["piles"]
    assert not hidden.any()  # nobody has seen a draw pile
