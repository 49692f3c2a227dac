"""Monte Carlo: what it deals, what it compares, and that it plays better than `greedy`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from positions import decisions

from oxx_env import engine
from oxx_env.bots import make
from oxx_env.bots import monte_carlo as mc
from oxx_env.bots.monte_carlo import MonteCarlo
from oxx_env.game.rules import (
    CARD_PHASE,
    CARDS_DEALT,
    GAME,
    NO_CARD,
    NUMBERS,
    PASS,
    ROW_PHASE,
    RULE_SETS,
)
from oxx_env.game.table import Table
from oxx_env.game.views import View, deal_hidden

DECKS = engine.stack_decks(["balanced"])
CASES = [(players, rules) for players in (2, 4, 10) for rules in RULE_SETS]


def positions(players: int, rules: str, games: int) -> list[tuple[View, np.ndarray]]:
    """Every decision of some random games: the decider's view, and the full GAME [1]."""
    return decisions(DECKS, players, rules, games, engine.random_actions)


def pile(game: Any, seat: int) -> list[int]:
    """The cells of a seat's draw pile, next to draw first; `NO_CARD` where blank."""
    ring = int(CARDS_DEALT[game["players"]])
    start, size = int(game["pile_starts"][seat]), int(game["pile_sizes"][seat])
    return [int(game["piles"][seat * ring + (start + i) % ring]) for i in range(size)]


def hand(game: Any, seat: int) -> list[int]:
    return game["hands"][seat][: game["hand_sizes"][seat]].tolist()


def deal(view: View, rounds: int, seed: int) -> tuple[Any, list[int]]:
    """One determinisation of the view, and the numbers it took for hidden."""
    games = view.games.copy()
    games["rng"] = seed
    unseen = np.zeros(NUMBERS, np.uint8)
    count = mc._list_unseen(games, unseen)
    hidden = unseen[:count].tolist()
    deal_hidden(games[0], view.seat, rounds, unseen, count)
    assert sorted(unseen[:count].tolist()) == hidden, "a shuffle, nothing lost"
    return games[0], hidden


# --- what it deals ------------------------------------------------------------------------------


@pytest.mark.parametrize(("players", "rules"), CASES)
def test_a_card_played_taken_or_returned_is_never_dealt_again(players: int, rules: str) -> None:
    returned = 0
    for k, (view, _) in enumerate(positions(players, rules, 3)):
        game, hidden = deal(view, mc.TO_THE_END, seed=k)
        public = {n for row in view.rows for n in row}
        public |= {n for taken in view.oxx_piles for n in taken}
        public |= {n for _, n in view.revealed}
        public |= {n for numbers in (*view.returned, *view.known_hand) for n in numbers}
        returned += sum(map(len, view.returned))
        assert not public & set(hidden)
        assert not set(view.hand) & set(hidden)
        dealt = []
        for seat in range(players):
            before = set(hand(view.game, seat)) | set(pile(view.game, seat))
            dealt += [n for n in hand(game, seat) + pile(game, seat) if n not in before]
        assert len(dealt) == len(set(dealt)), "no card is dealt twice"
        assert set(dealt) <= set(hidden)
        assert NO_CARD not in dealt
    assert returned > 0 or "positive" not in rules


@pytest.mark.parametrize(("players", "rules"), CASES)
def test_what_the_seat_knows_stays_as_it_is(players: int, rules: str) -> None:
    rows = 0
    for k, (view, full) in enumerate(positions(players, rules, 3)):
        game, _ = deal(view, mc.TO_THE_END, seed=k)
        rows += view.phase == "row"
        for name in GAME.names or ():
            if name not in ("rng", "seed", "hands", "piles", "picks", "deck"):
                assert (game[name] == full[0][name]).all(), name
        for seat in range(players):
            cells, dealt = pile(view.game, seat), pile(game, seat)
            assert all(new == old or old == NO_CARD for old, new in zip(cells, dealt, strict=True))
            known = set(view.known_hand[seat])
            assert known <= set(hand(game, seat))
            assert hand(game, seat) == sorted(hand(game, seat)), "hands ascend"
        assert hand(game, view.seat) == view.hand
    assert rows > 0, "row choices with revealed cards still to be placed are among them"


def test_deals_are_equally_likely() -> None:
    view, _ = positions(2, "base", 1)[0]
    _, hidden = deal(view, mc.TO_THE_END, 0)
    times = 4000
    counts = np.zeros(NUMBERS + 1)
    for seed in range(times):
        game, _ = deal(view, mc.TO_THE_END, seed)
        counts[hand(game, 1)] += 1
        counts[pile(game, 0)[:1]] += 1
    expected = 5 * times / len(hidden)
    chi2 = ((counts[hidden] - expected) ** 2 / expected).sum()
    freedom = len(hidden) - 1
    assert counts.sum() == 5 * times
    assert abs(chi2 - freedom) < 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("rounds", [1, 2, 4, 5, 9])
def test_within_the_horizon_every_card_drawn_has_been_dealt(rounds: int) -> None:
    for k, (view, _) in enumerate(positions(4, "base", 2)):
        game, _ = deal(view, rounds, seed=k)
        games = np.array([game])
        engine.play_out(games[0], DECKS[0], engine.GREEDY, rounds - 1)
        for seat in range(4):
            assert NO_CARD not in hand(games[0], seat)


# --- what it compares ---------------------------------------------------------------------------


def test_all_actions_meet_the_same_deals_and_the_same_luck() -> None:
    """Two hand cards of the same heads that stand together in the order do exactly the same."""
    deck = np.zeros((110, 6), np.int64)
    deck[:, 0] = 1 + np.arange(110) % 3
    deck[51] = deck[103] = 1
    deck[7] = deck[8] = [0, 2, 0, 0, 0, 0]
    rest = [n for n in range(1, 111) if n not in (8, 9)]
    piles = [[8, 9, *rest[5:27]], rest[27:51]]
    table = Table(2, "base", deck)
    table.deal(draw_piles=piles, rows=rest[:5])
    found = outcomes("mc:20", table.view(0))
    one, other = (table.view(0).hand.index(n) for n in (8, 9))
    assert found.values[one] == found.values[other]
    assert found.points[one] == found.points[other]


def make_mc(spec: str) -> MonteCarlo:
    bot = make(spec)
    assert isinstance(bot, MonteCarlo)
    return bot


def outcomes(spec: str, view: View, seed: int = 0) -> mc.Outcomes:
    """What the bot found when all its deals were tried."""
    return list(make_mc(spec).outcomes(view, np.random.default_rng(seed)))[-1]


@pytest.mark.parametrize(("players", "rules"), CASES)
def test_every_legal_action_has_an_outcome_and_act_plays_a_legal_one(
    players: int, rules: str
) -> None:
    bot = make_mc("mc:4")
    phases = set()
    for k, (view, _) in enumerate(positions(players, rules, 2)):
        phases.add(view.phase)
        found = outcomes("mc:4", view, k)
        assert found.legal == view.legal
        shares, points = found.shares[view.legal], found.points[view.legal]
        assert ((shares >= 0) & (shares <= 1)).all()
        assert np.isfinite(found.values[view.legal]).all()
        assert bot.act(view, np.random.default_rng(k)) in view.legal
        if "positive" not in rules:
            assert (points >= view.scores[view.seat]).all()
    assert phases == {"card", "row"}


def test_a_seat_with_nothing_to_decide_passes() -> None:
    table = Table(2)
    table.deal(1)
    table.act(0, 0)
    assert make_mc("mc:2").act(table.view(0), np.random.default_rng(0)) == PASS


def test_the_certain_outcome_has_its_exact_value() -> None:
    """
    Seat 0 must take a row: 11 shows one head, the others three; nothing else can happen in the
    round: the row's heads are its points, and with one round to look ahead its value, negated.
    """
    deck = np.zeros((110, 6), np.int64)
    deck[:, 0] = 1
    deck[51] = deck[103] = 1
    deck[0] = [0, 0, 0, 1, 0, 0]  # card 1 fits no row
    deck[11:15, 0] = 3
    rest = [n for n in range(1, 111) if n not in (1, 2, 3, 4, 11, 12, 13, 14, 15)]
    table = Table(2, "base", deck)
    table.deal(draw_piles=[[1, 2, 3, 4, *rest[:20]], rest[20:44]], rows=[11, 12, 13, 14, 15])
    table.act(0, 0)
    table.act(1, 0)
    assert table.view(0).card == 1
    found = outcomes("mc:5:horizon=1", table.view(0))
    assert found.values[4:9].tolist() == [-1, -3, -3, -3, -3]


def test_value_win_counts_the_points_before_in_the_match() -> None:
    games = engine.new_games([1], DECKS, 2, games_per_match=2)
    games["match_game"] = 2
    view = View.of(games, DECKS, 0)
    for ahead, share in ((0, 1), (1, 0)):
        view.games["match_points"][0, :2] = 0
        view.games["match_points"][0, ahead] = 1000  # out of reach: fewest points win
        found = outcomes("mc:30:value=win", view)
        assert (found.values[view.legal] == 1 - share).all()
        assert (found.shares[view.legal] == 1 - share).all()


def test_horizon_and_value_change_what_is_compared() -> None:
    view, _ = positions(2, "base", 1)[0]
    specs = ["mc:20", "mc:20:horizon=1", "mc:20:horizon=end", "mc:20:value=win"]
    specs += ["mc:20:horizon=4:value=win"]
    found = [outcomes(spec, view) for spec in specs]
    values = [f.values.tolist() for f in found]
    assert all(a != b for i, a in enumerate(values) for b in values[:i])
    ends = found[3].shares.tolist()
    assert values[3] == ends, "to the end, value and win share are the same"


def test_the_batch_kernel_gives_the_values_of_the_bot() -> None:
    games = engine.new_games(range(20), DECKS, 3, "color")
    who: Any = np.zeros(200, engine.PENDING)
    n = engine.pending(games, who)
    streams = games["rng"].copy()
    values = np.zeros((n, 10), np.float64)
    mc.mc_values(games, DECKS, who, n, 50, 3, values)
    assert (games["rng"] != streams).all()
    for i in range(0, n, 7):
        view = View.of(games[who["game"][i]][None], DECKS, int(who["seat"][i]))
        found = outcomes("mc:2000:horizon=3", view, i)
        exact = {action: found.values[action] for action in found.legal}
        assert np.isfinite(values[i]).nonzero()[0].tolist() == list(exact)
        assert (values[i][~np.isfinite(values[i])] == -np.inf).all()
        differences = [values[i][a] - exact[a] for a in exact]
        assert np.std(differences) < 2.5, "as means over 50 and over 2000 deals agree"
    actions = np.zeros(n, np.int64)
    games["rng"] = streams
    mc.mc_actions(games, DECKS, who, n, 50, 3, actions)
    assert actions.tolist() == values.argmax(axis=1).tolist()


@pytest.mark.parametrize("rules", RULE_SETS)
def test_the_batch_kernel_looks_at_nothing_hidden(rules: str) -> None:
    for view, full in positions(3, rules, 2)[::5]:
        blind, opened = view.games.copy(), full.copy()
        opened["deck"] = 0
        blind["rng"] = opened["rng"] = 7
        who: Any = np.zeros(1, engine.PENDING)
        who["seat"], who["phase"] = view.seat, view.game["phase"]
        assert view.game["phase"] in (CARD_PHASE, ROW_PHASE)
        values = np.zeros((2, 1, 10))
        mc.mc_values(blind, DECKS, who, 1, 5, 4, values[0])
        mc.mc_values(opened, DECKS, who, 1, 5, 4, values[1])
        assert values[0].tobytes() == values[1].tobytes()


def test_a_time_budget_bounds_the_deals_not_the_answer() -> None:
    bot = make_mc("mc:2ms")
    assert (bot.determinisations, bot.seconds) == (0, 0.002)
    view, _ = positions(2, "base", 1)[0]
    assert bot.act(view, np.random.default_rng(0)) in view.legal


def test_a_time_budget_stops_when_the_clock_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock by which each deal takes 0.1 ms, 5 ms are met within 20 %."""
    now = [0.0]
    search = mc._search

    def timed_search(views: Any, decks: Any, seat: int, trials: Any, *rest: Any) -> None:
        search(views, decks, seat, trials, *rest)
        now[0] += 0.0001 * trials.deals

    bot = make_mc("mc:5ms")
    monkeypatch.setattr(mc, "_search", timed_search)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    view, _ = positions(2, "base", 1)[0]
    bot.act(view, np.random.default_rng(0))
    assert 0.004 <= now[0] <= 0.006


# --- how well it plays --------------------------------------------------------------------------


def play(spec: Any, players: int, rules: str, blocks: int) -> tuple[float, float]:
    """Win share of a bot among `greedy`, each deal from each seat, and its standard error."""
    shares = []
    rng = np.random.default_rng(0)
    greedy, hero_bot = make("greedy"), make(spec)
    table = Table(players, rules)
    for block in range(blocks):
        share = 0.0
        for hero in range(players):
            table.deal(block)
            while not table.over:
                actions = []
                for seat in table.deciders():
                    bot = hero_bot if seat == hero else greedy
                    extra: dict[str, Any] = {"state": table.games} if bot.needs_state else {}
                    actions.append((seat, bot.act(table.view(seat), rng, **extra)))
                for seat, action in actions:
                    table.act(seat, action)
            share += (hero in table.winners()) / len(table.winners())
        shares.append(share / players)
    return float(np.mean(shares)), float(np.std(shares) / blocks**0.5)


@pytest.mark.parametrize("rules", RULE_SETS)
def test_monte_carlo_beats_greedy(rules: str) -> None:
    share, error = play("mc:20", 2, rules, 40)
    assert share - 3 * error > 0.5


def test_seeing_all_hands_beats_greedy_by_far() -> None:
    share, error = play("cheat", 2, "base", 25)
    assert share - 3 * error > 0.6


def test_cheat_without_the_state_says_what_it_needs() -> None:
    view, _ = positions(2, "base", 1)[0]
    with pytest.raises(ValueError, match="cheat needs the full state"):
        make("cheat").act(view, np.random.default_rng(0))
