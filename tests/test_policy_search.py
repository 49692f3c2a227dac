"""Policy and search together: what it looks at, how it shares out its deals, and what it plays."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import decisions, position

from oxx_env import engine
from oxx_env.arena import play
from oxx_env.bots import BotSpecError, make
from oxx_env.bots import search as ps
from oxx_env.bots.monte_carlo import look
from oxx_env.bots.search import PolicySearch
from oxx_env.game.rules import ACTIONS, CARD_PHASE, OVER, PASS, ROW_PHASE, RULE_SETS
from oxx_env.game.views import View
from oxx_env.policy.checkpoint import (
    PLAY_OUT,
    CheckpointError,
    checksum,
    find_checkpoint,
    load_checkpoint,
    load_play_out,
    load_rollout_net,
    save_checkpoint,
    save_rollout_net,
)

DECKS = engine.stack_decks(["balanced"])


def positions(players: int, rules: str, games: int, every: int) -> list[tuple[View, Any]]:
    """Some decisions of games by `greedy`: the decider's view, and the full GAME [1]."""

    def greedily(games: Any, decks: Any, who: Any, n: int, actions: Any) -> None:
        engine.policy_actions(games, decks, who, n, engine.GREEDY, actions)

    return decisions(DECKS, players, rules, games, greedily)[::every]


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("players", [2, 3, 10])
def test_it_plays_legal_actions_in_both_phases(players: int, rules: str) -> None:
    bot = make("search:champion:2")
    phases = set()
    for view, _ in positions(players, rules, 1, 7):
        phases.add(view.phase)
        assert bot.act(view, np.random.default_rng(0)) in view.legal
    assert phases == {"card", "row"}


def test_the_same_generator_gives_the_same_action() -> None:
    one, other = make("search:quick:4"), make("search:quick:4")
    for view, _ in positions(3, "base", 1, 5):
        first = one.act(view, np.random.default_rng(5))
        assert first == other.act(view, np.random.default_rng(5))


@pytest.mark.parametrize("rules", ["base", "positive"])
def test_values_look_at_nothing_hidden(rules: str) -> None:
    """The full record and the seat's view of it have the same values."""
    search = PolicySearch("quick", "3")
    differing = 0
    for view, full in positions(4, rules, 1, 11):
        blind, opened = view.games.copy(), full.copy()
        opened["deck"] = 0
        blind["rng"] = opened["rng"] = 7
        differing += (blind["hands"] != opened["hands"]).any()
        who = np.zeros(1, engine.PENDING)
        who["seat"] = view.seat
        values = np.zeros((2, 1, ACTIONS))
        search.values(blind, DECKS, who, values[0])
        search.values(opened, DECKS, who, values[1])
        assert values[0].tobytes() == values[1].tobytes()
    assert differing > 3


def test_the_best_value_of_a_batch_is_what_the_bot_plays() -> None:
    search = PolicySearch("champion", "4")
    for players, rules in ((2, "base"), (4, "positive")):
        for view, full in positions(players, rules, 1, 6):
            if len(view.legal) == 1:
                continue
            looked: Any = np.zeros(1, full.dtype)
            look(full[0].copy(), view.seat, looked)
            played = search.act(view, SameStream(looked["rng"][0]))
            assert 2 <= (search._tally[:, ps.DEALS] > 0).sum() <= len(view.legal)
            who = np.zeros(1, engine.PENDING)
            who["seat"] = view.seat
            values = np.zeros((1, ACTIONS))
            search.values(full, DECKS, who, values)
            assert [a for a in range(ACTIONS) if np.isfinite(values[0, a])] == view.legal
            assert np.flatnonzero(values[0] == values[0].max()).tolist() == [played]


class SameStream(np.random.Generator):
    """A generator that gives a bot the random stream of a record."""

    def __init__(self, stream: np.uint64) -> None:
        super().__init__(np.random.PCG64(0))
        self.stream = stream

    def integers(self, *_: Any, **__: Any) -> Any:
        return self.stream


def test_the_worse_half_is_given_up_and_of_equals_the_first_stays() -> None:
    tally = np.zeros((ACTIONS, ps.TALLIES))
    tally[:4, ps.DEALS] = 10
    tally[:4, ps.RELATIVE] = [0, -20, 10, 10]
    assert ps.better_half(0b1111, tally, 0.0) == 0b1100
    assert ps.better_half(0b1100, tally, 0.0) == 0b0100
    assert ps.better_half(0b0111, tally, 0.0) == 0b0101
    assert [ps.stages_of(n) for n in (1, 2, 3, 4, 5)] == [0, 1, 2, 2, 3]


def test_an_opinion_counts_for_less_the_more_deals_were_tried() -> None:
    tally = np.zeros((ACTIONS, ps.TALLIES))
    tally[0, ps.OPINION] = -2
    tally[:2, ps.DEALS] = 8
    tally[:2, ps.RELATIVE] = 24
    assert ps.worth(tally, 0, 8.0) == 3 - 2
    assert ps.worth(tally, 0, 4.0) == 3 - 1
    assert ps.worth(tally, 0, 0.0) == 3
    # As an estimate it is neither more nor less than the mean of deals and opinion.
    assert 3 - 1e-5 < ps.estimate(tally, 0, 1, 0.0) < 3  # another is thought best
    assert ps.estimate(tally, 0, 1, 8.0) == 3 - 1
    assert ps.estimate(tally, 1, 1, 8.0) == 3
    tally[0, ps.DEALS] = tally[0, ps.RELATIVE] = 0
    assert ps.estimate(tally, 0, 1, 8.0) == 3 - 2


def test_what_the_policy_thinks_very_unlikely_is_not_tried() -> None:
    games = engine.new_games([3], DECKS, 2)
    tally = np.zeros((ACTIONS, ps.TALLIES))
    for phase, scale in ((CARD_PHASE, ps.CARD_POINTS), (ROW_PHASE, ps.ROW_POINTS)):
        games["phase"] = phase
        tally[:4, ps.OPINION] = scale * np.array([-2.9, 0, -3.1, -9])
        assert ps.likely(games[0], 0b1111, 1.0, tally) == 0b0011
        assert ps.likely(games[0], 0b1111, 0.0, tally) == 0b1111  # nobody is asked
        assert ps.likely(games[0], 0b1110, 1.0, tally) == 0b0110  # two are always tried
        assert ps.likely(games[0], 0b1000, 1.0, tally) == 0b1000


def test_a_hand_of_one_card_beside_larger_ones_plays_itself() -> None:
    """In `positive` hands can differ; what others are forced to pick does not show in a view."""
    table = position(
        "positive",
        """
        row 0   10b
        row 1   20r
        row 2   30g
        row 3   40k
        row 4   50y
        seat 0  60b 61r
        seat 1  70g
        seat 2  80k
        """,
    )
    view = View.of(table.games, table.decks, 0)
    assert view.legal == [0, 1] and view.to_dict()["hand_sizes"] == [2, 1, 1]
    bot: Any = make("search:quick:2")
    assert bot.act(view, np.random.default_rng(0)) in view.legal
    assert [found.legal for found in bot.outcomes(view, np.random.default_rng(0))] == [[0, 1]]


def test_play_outs_stay_within_their_game_of_a_match() -> None:
    tools = ps.Tools.of(ps.Player.of(load_rollout_net("swift")[0]))
    games = engine.new_games([5], DECKS, 3)
    games["match_games"] = 3
    ps.play_on(games[0], DECKS[0], 1000, tools.player, tools.picks)
    assert games["phase"][0] == OVER and games["match_game"][0] == 1
    assert games["round"][0] == 20 and not games["match_points"].any()


def test_play_outs_end_with_the_hand() -> None:
    ends = set()
    for view, full in positions(2, "base", 1, 1):
        game = full[0]
        end = ps.hand_end(game, view.seat)
        assert end > game["round"] and end % 4 == 0
        ends.add((view.phase, end - int(game["round"])))
    assert {("card", 4), ("card", 2), ("row", 4), ("row", 1)} <= ends


def test_outcomes_hold_points_and_shares_of_each_legal_action() -> None:
    bot: Any = make("search:champion:6")
    for view, _ in positions(3, "positive", 1, 9):
        (found,) = bot.outcomes(view, np.random.default_rng(2))
        assert found.legal == view.legal and found.deals == 6
        shares = found.shares[view.legal]
        assert ((shares >= 0) & (shares <= 1)).all() and np.isfinite(found.points).all()


def test_a_seat_with_nothing_to_decide_passes() -> None:
    full = engine.new_games([3], DECKS, 2)
    full["picks"][0, 0] = full["hands"][0, 0, 0]
    view = View.of(full, DECKS, 0)
    bot: Any = make("search:quick:4")
    assert view.legal == [PASS]
    assert bot.act(view, np.random.default_rng(0)) == PASS


def test_a_time_budget_asks_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves on by a millisecond with each look: a try costs one, 8 ms are for few."""
    now = iter(np.arange(0, 10, 0.001))
    bot: Any = PolicySearch("quick", "8ms")
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    view = View.of(engine.new_games([3], DECKS, 2), DECKS, 0)
    assert view.phase == "card" and view.games["phase"][0] == CARD_PHASE
    assert bot.act(view, np.random.default_rng(0)) in view.legal
    tried = bot._tally[:, ps.DEALS]
    assert tried.sum() >= 4 and next(now) < 0.02


@pytest.mark.parametrize(
    ("spec", "error", "what"),
    [
        ("search:champion", BotSpecError, "lacks its budget"),
        ("search:champion:x", BotSpecError, "no budget"),
        ("search:champion:0ms", BotSpecError, "no budget"),
        ("search:champion:4:rounds=9", BotSpecError, "from 0 to 4"),
        ("search:champion:4:prior=-1", BotSpecError, "prior is a number of deals"),
        ("search:champion:4:depth=3", BotSpecError, "no option"),
        ("search:nobody:4", CheckpointError, "shipped ones"),
        ("search:champion:4:player=nobody", CheckpointError, "shipped ones"),
    ],
)
def test_a_wrong_specification_says_what_is_wrong(
    spec: str, error: type[Exception], what: str
) -> None:
    with pytest.raises(error, match=what):
        make(spec)


def test_a_batch_is_searched_by_deals_not_by_the_clock() -> None:
    search = PolicySearch("quick", "1ms")
    games, who, values = engine.new_games([0], DECKS, 2), np.zeros(1, engine.PENDING), np.zeros(0)
    for function in (search.values, search.even_values):
        with pytest.raises(ValueError, match="by a number of deals"):
            function(games, DECKS, who, values)


@pytest.mark.slow
def test_search_beats_the_policy_that_guides_it() -> None:
    """Six deals an action make the weakest shipped policy clearly stronger."""
    found = play(["search:apprentice:6", "policy:apprentice"], players=2, games=200, seed=1)
    assert found.bots[0].ci95[0] > 0.5


# --- fixed yardsticks, and who plays out --------------------------------------------------------

CHAMPION_1 = "79a1e654709662c7047570b3f48928f60074e1fa767f94699f2b6937288a1444"
SWIFT_1 = "119ed39939b6cd55adcba687ec81eeec78b4cb42fa4568dca92f26b9c851773e"


def test_the_first_champion_and_its_play_out_network_never_change() -> None:
    _, config = load_checkpoint("champion-1")
    assert config["sha256"] == checksum("champion-1") == CHAMPION_1
    assert config["play_out"] == {"checkpoint": "swift-1", "sha256": SWIFT_1}
    assert load_play_out("champion-1")[1]["sha256"] == checksum("swift-1") == SWIFT_1


def test_what_plays_out_by_default_lies_under_a_name_that_never_changes() -> None:
    assert PLAY_OUT.startswith("swift-") and checksum(PLAY_OUT) == checksum("swift")


@pytest.mark.parametrize("spec", ["policy:{}", "search:{}:4"])
def test_the_first_champion_plays_as_the_champion_that_it_is(spec: str) -> None:
    if checksum("champion") != CHAMPION_1:
        pytest.skip("there is a better champion")
    first, best = (
        play([spec.format(name), "greedy"], players=2, games=6, seed=3)
        for name in ("champion-1", "champion")
    )
    assert [entry.mean_points for entry in first.bots] == [e.mean_points for e in best.bots]
    bots: list[Any] = [make(spec.format(name)) for name in ("champion-1", "champion")]
    for view, _ in positions(4, "color", 1, 5):
        one, other = (bot.act(view, np.random.default_rng(5)) for bot in bots)
        assert one == other


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A policy of one's own, which names its own play-out network."""
    folder = tmp_path / "own"
    shutil.copytree(find_checkpoint("quick"), folder)
    save_rollout_net(folder / "mine", -load_rollout_net("swift-1")[0], {}, "")
    tell(folder, {"checkpoint": "mine", "sha256": checksum(folder / "mine")})
    return folder


def tell(folder: Path, play_out: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "play_out": play_out}))


def test_search_plays_out_by_the_network_that_its_policy_names(own: Path) -> None:
    np.testing.assert_array_equal(load_play_out(own)[0], -load_rollout_net("swift-1")[0])
    bot: Any = make(f"search:{own}:2")
    swift: Any = make(f"search:{own}:2:player=swift-1")
    assert len(bot.weights) == len(swift.weights) and (bot.weights != swift.weights).any()
    assert ps.identity(str(own))["player"] == checksum(own / "mine")
    assert ps.identity("quick")["player"] == SWIFT_1


def test_a_policy_that_names_no_play_out_network_has_the_default_one(own: Path) -> None:
    tell(own, None)
    np.testing.assert_array_equal(load_play_out(own)[0], load_rollout_net(PLAY_OUT)[0])


def test_a_saved_policy_names_the_default_play_out_network(tmp_path: Path) -> None:
    weights, config = load_checkpoint("quick")
    save_checkpoint(tmp_path / "new", weights, config["architecture"]["hidden"], {}, "")
    told = load_checkpoint(tmp_path / "new")[1]["play_out"]
    assert told == {"checkpoint": PLAY_OUT, "sha256": checksum(PLAY_OUT)}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            {"checkpoint": "swift-1", "sha256": "0" * 64},
            "'swift-1' has the SHA-256 119ed.* not 000",
        ),
        ({"checkpoint": "swift-9", "sha256": SWIFT_1}, "no checkpoint folder 'swift-9'"),
        ({"checkpoint": "champion", "sha256": CHAMPION_1}, "not a network for play-outs"),
        ({"checkpoint": "../own/mine", "sha256": SWIFT_1}, "play_out should be an object of"),
        ({"checkpoint": "/", "sha256": SWIFT_1}, "play_out should be an object of"),
        ({"checkpoint": "swift-1"}, "play_out should be an object of"),
        ("swift-1", "play_out should be an object of"),
    ],
)
def test_another_play_out_network_than_the_policy_names_is_refused(
    own: Path, told: Any, message: str
) -> None:
    tell(own, told)
    with pytest.raises(CheckpointError, match=message):
        make(f"search:{own}:2")
    make(f"policy:{own}")  # plays nothing out


def test_a_shipped_name_means_the_same_in_every_folder(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own.parent)
    shutil.copytree(own, "champion-1")
    assert checksum("champion-1") == CHAMPION_1
    assert checksum("./champion-1") == checksum(Path("champion-1")) == checksum("quick")
    with pytest.raises(CheckpointError, match="no checkpoint folder"):
        load_checkpoint("champion\0")
