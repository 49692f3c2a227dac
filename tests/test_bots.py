"""The simple bots and their specifications."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from oxx_env import bots, engine
from oxx_env.bots import Bot, BotSpecError, make
from oxx_env.game.rules import FIRST_ROW, PASS, RULE_SETS
from oxx_env.game.table import Table
from oxx_env.game.views import View

ALL = ["random", "greedy", "lowest", "highest", "careful", "mc:3", "cheat"]
COMPILED = ["random", "greedy", "lowest", "highest", "careful"]


def number_of(heads: dict[int, list[int]], *, default: list[int]) -> list[list[int]]:
    """A deck [110][6] where the given numbers show the given heads and all others `default`."""
    deck = [heads.get(number, default) for number in range(1, 111)]
    deck[51] = deck[103] = [1] * 6
    return deck


BLUE, YELLOW, GREEN, RED, BLACK, WHITE = np.eye(6, dtype=int).tolist()


def table_by_hand(
    heads: dict[int, list[int]], hands: list[list[int]], rows: list[int], rules: str = "base"
) -> Table:
    """Two players whose first hands, and the rows, are given; all else is black."""
    deck = number_of(heads, default=BLACK)
    used = {number for hand in hands for number in hand} | set(rows)
    rest = [number for number in range(1, 111) if number not in used]
    piles = [hand + rest[20 * seat : 20 * seat + 20] for seat, hand in enumerate(hands)]
    table = Table(2, rules, deck)
    table.deal(draw_piles=piles, rows=rows)
    return table


def choices(bot: Bot, table: Table, seat: int, times: int = 40) -> set[int]:
    view = table.view(seat)
    extra: dict[str, Any] = {"state": table.games} if bot.needs_state else {}
    return {bot.act(view, np.random.default_rng(k), **extra) for k in range(times)}


# --- specifications -----------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [*ALL, "mc:5ms", "mc:7:horizon=2:value=win", "mc:7:horizon=end"])
def test_a_bot_carries_its_specification(spec: str) -> None:
    bot = make(spec)
    assert bot.spec == spec
    assert isinstance(bot, Bot)
    assert bot.needs_state == (spec == "cheat")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "gredy",
            "unknown bot 'gredy' in 'gredy': did you mean greedy? choose one of random, ",
        ),
        ("", "a bot is named by a text"),
        (7, "a bot is named by a text such as 'greedy' or 'mc:200', not 7"),
        ("greedy:3", "'greedy:3': greedy has no option '3'; its options: none"),
        ("mc", "'mc' lacks its budget: write mc:BUDGET[:horizon=…][:value=…]"),
        ("mc:", "'mc:' lacks its budget"),
        ("policy", "'policy' lacks its path: write policy:PATH"),
        ("mc:0", "'0' is no budget; write how many deals to try (200) or the time"),
        ("mc:5s", "'5s' is no budget"),
        ("mc:0ms", "'0ms' is no budget"),
        ("mc:horizon=4", "'horizon=4' is no budget"),
        ("mc:5:horizon=0", "horizon is a number of rounds from 1, or end, not '0'"),
        ("mc:5:value=best", "value is points or win, not 'best'"),
        ("mc:5:depth=2", "mc has no option 'depth=2'; its options: horizon=…, value=…"),
        ("mc:5:horizon", "mc has no option 'horizon'"),
        ("mc:5:value=win:value=win", "gives value twice"),
        ("cheat:9", "cheat has no option '9'; its options: none"),
    ],
)
def test_a_wrong_specification_says_what_would_be_right(spec: Any, message: str) -> None:
    with pytest.raises(BotSpecError) as error:
        make(spec)
    assert message in str(error.value)


def test_every_name_is_described() -> None:
    told = bots.describe().splitlines()
    lines = [line for line in told if not line.startswith(" ")]  # options stand below their bot
    assert [line.split(":")[0].split()[0] for line in lines] == list(bots.BOTS)
    assert all(len(line.split("  ", 1)[1].strip()) > 10 for line in lines)


def test_naming_bots_loads_no_torch() -> None:
    code = (
        "import sys; from oxx_env.bots import make; make('greedy'); make('mc:2');"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- all bots -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("players", [2, 4, 10])
def test_bots_choose_legal_actions_in_both_phases_and_pass_while_they_wait(
    rules: str, players: int
) -> None:
    table = Table(players, rules, games_per_match=2)
    team = [make(ALL[seat % len(ALL)]) for seat in range(players)]
    rng = np.random.default_rng(players)
    for seed in range(3):
        table.deal(seed)
        while not table.over:
            deciders = table.deciders()
            actions = []
            for seat, bot in enumerate(team):
                extra: dict[str, Any] = {"state": table.games} if bot.needs_state else {}
                action = bot.act(table.view(seat), rng, **extra)
                assert isinstance(action, int)
                assert action in table.legal(seat)
                assert (action == PASS) == (seat not in deciders)
                actions.append(action)
            for seat in deciders:
                table.act(seat, actions[seat])


@pytest.mark.parametrize("spec", ALL)
def test_the_same_view_and_generator_give_the_same_action(spec: str) -> None:
    bot = make(spec)
    table = Table(4)
    for seed in range(10):
        table.deal(seed)
        view, before = table.view(1), table.view(1).games.tobytes()
        extra: dict[str, Any] = {"state": table.games} if bot.needs_state else {}
        actions = [bot.act(view, np.random.default_rng(seed), **extra) for _ in range(2)]
        assert actions[0] == actions[1]
        assert view.games.tobytes() == before, "a bot leaves its view as it was"


@pytest.mark.parametrize("spec", COMPILED)
def test_compiled_twins_look_at_nothing_hidden(spec: str) -> None:
    """The same action from the full record as from each seat's view, with the same stream."""
    batch = make(spec).batch  # type: ignore[attr-defined]
    decks = engine.stack_decks(["balanced"])
    games = engine.new_games(range(40), decks, 4, "positive")
    who: Any = np.zeros(400, engine.PENDING)
    rounds = 0
    while n := engine.pending(games, who):
        rounds += 1
        actions = np.zeros(n, np.int64)
        streams = games["rng"].copy()
        for i in range(n):
            g, seat = int(who["game"][i]), int(who["seat"][i])
            full = games[g : g + 1].copy()
            blind = View.of(full, decks, seat).games
            full["rng"] = blind["rng"] = streams[g]
            one: Any = np.zeros(1, engine.PENDING)
            one["seat"], one["phase"] = seat, who["phase"][i]
            open_, blank = np.zeros(1, np.int64), np.zeros(1, np.int64)
            batch(full, decks, one, 1, open_)
            batch(blind, decks, one, 1, blank)
            assert open_[0] == blank[0]
            actions[i] = open_[0]
        engine.step(games, decks, who, n, actions, False)
    assert rounds > 16


# --- what each of them does ---------------------------------------------------------------------


def test_random_plays_every_legal_action_about_equally_often() -> None:
    table = Table(2)
    table.deal(1)
    view, rng = table.view(0), np.random.default_rng(0)
    counts = np.bincount([make("random").act(view, rng) for _ in range(2000)], minlength=4)
    assert counts.min() > 420 and counts.sum() == 2000


def test_greedy_takes_the_fewest_heads() -> None:
    """
    rows   11 blue | 12 blue | 13 blue | 14 blue | 15 yellow 3
    hand   1 red 3 (fits nowhere, takes one) | 2 blue (fits)
    """
    heads = {1: [0, 0, 0, 3, 0, 0], 2: BLUE, 3: RED, 4: RED}
    heads |= dict.fromkeys((11, 12, 13, 14), BLUE) | {15: [0, 3, 0, 0, 0, 0]}
    table = table_by_hand(heads, [[1, 2, 3, 4], [21, 22, 23, 24]], [11, 12, 13, 14, 15])
    assert choices(make("greedy"), table, 0) == {1}


def test_greedy_breaks_ties_by_more_heads_on_the_card_then_at_random() -> None:
    """
    rows   all blue
    hand   1 blue, 2 blue-yellow, 3 blue-yellow: all fit, two show two heads
    """
    two = [1, 1, 0, 0, 0, 0]
    heads = {1: BLUE, 2: two, 3: two, 4: BLUE} | dict.fromkeys((11, 12, 13, 14, 15), BLUE)
    table = table_by_hand(heads, [[1, 2, 3, 4], [21, 22, 23, 24]], [11, 12, 13, 14, 15])
    assert choices(make("greedy"), table, 0) == {1, 2}


def test_greedy_takes_the_most_heads_in_positive_and_counts_a_card_that_fits_nowhere_as_none() -> (
    None
):
    """
    rows   12 green | 13 green | 11 blue 5 | 14 green | 15 green
    hand   1 blue (six heads of blue: takes 5) | 2 green | 3 red 3 (fits nowhere) | 4 green
    """
    heads = {1: BLUE, 2: GREEN, 3: [0, 0, 0, 3, 0, 0], 4: GREEN, 11: [5, 0, 0, 0, 0, 0]}
    heads |= dict.fromkeys((12, 13, 14, 15), GREEN)
    hands = [[1, 2, 3, 4], [21, 22, 23, 24]]
    table = table_by_hand(heads, hands, [12, 13, 11, 14, 15], "positive")
    assert choices(make("greedy"), table, 0) == {0}
    # Without the blue card the three others are worth nothing, and the most heads break the tie.
    heads[1] = GREEN
    table = table_by_hand(heads, hands, [12, 13, 11, 14, 15], "positive")
    assert choices(make("greedy"), table, 0) == {2}


def test_greedy_chooses_the_row_with_fewest_heads_then_the_shorter_then_at_random() -> None:
    """
    rows   11 blue 1 | 12 blue 2 | 13 blue 1 | 14 blue 3 | 15 blue 3; seat 0 reveals 1, red
    """
    heads = {1: RED, 2: RED, 3: RED, 4: RED, 11: BLUE, 12: [2, 0, 0, 0, 0, 0], 13: BLUE}
    heads |= {14: [3, 0, 0, 0, 0, 0], 15: [3, 0, 0, 0, 0, 0]}
    hands = [[1, 2, 3, 4], [21, 22, 23, 24]]
    table = table_by_hand(heads, hands, [11, 12, 13, 14, 15])
    table.act(0, 0)
    table.act(1, 0)
    assert table.view(0).card == 1
    assert choices(make("greedy"), table, 0) == {FIRST_ROW + 0, FIRST_ROW + 2}


def test_lowest_and_highest_play_the_ends_of_the_hand() -> None:
    table = Table(3)
    for seed in range(5):
        table.deal(seed)
        assert choices(make("lowest"), table, 1, 3) == {0}
        assert choices(make("highest"), table, 1, 3) == {3}


def test_careful_weighs_unseen_lower_cards_that_fill_its_row() -> None:
    """
    rows   11 blue with four heads | others green, harmless
    hand   1 blue (before all others) and 110 blue (after all others), else alike
    unseen nearly all blue: whoever comes before 110 makes it the sixth head.
    """
    heads = {number: BLUE for number in range(1, 111)}
    heads |= {11: [4, 0, 0, 0, 0, 0]} | dict.fromkeys((12, 13, 14, 15), GREEN)
    table = table_by_hand(heads, [[1, 2, 109, 110], [21, 22, 23, 24]], [11, 12, 13, 14, 15])
    assert choices(make("careful"), table, 0) <= {0, 1}
    assert choices(make("greedy"), table, 0) == {0, 1, 2, 3}


def test_careful_keeps_cards_of_many_colors() -> None:
    """
    rows   all white; unseen all black: nothing threatens
    hand   1 white | 2 blue-white | 3 blue-yellow-white | 4 all but black
    """
    heads = {1: WHITE, 2: [1, 0, 0, 0, 0, 1], 3: [1, 1, 0, 0, 0, 1], 4: [1, 1, 1, 1, 0, 1]}
    heads |= dict.fromkeys((11, 12, 13, 14, 15), WHITE)
    table = table_by_hand(heads, [[1, 2, 3, 4], [21, 22, 23, 24]], [11, 12, 13, 14, 15])
    assert choices(make("careful"), table, 0) == {0}
    assert choices(make("greedy"), table, 0) == {3}


def win_share(spec: str, players: int, rules: str, blocks: int) -> tuple[float, float]:
    """Win share of one seat among `greedy`, every deal from every seat, and its standard error."""
    batch = make(spec).batch  # type: ignore[attr-defined]
    decks = engine.stack_decks(["balanced"])
    games = engine.new_games(np.repeat(np.arange(blocks), players), decks, players, rules)
    games["rng"] += np.arange(len(games), dtype=np.uint64)
    hero = np.arange(len(games)) % players
    who: Any = np.zeros(10 * len(games), engine.PENDING)
    actions, own = np.zeros((2, 10 * len(games)), np.int64)
    while n := engine.pending(games, who):
        engine.policy_actions(games, decks, who, n, engine.GREEDY, actions)
        batch(games, decks, who, n, own)
        mine = who["seat"][:n] == hero[who["game"][:n]]
        actions[:n][mine] = own[:n][mine]
        engine.step(games, decks, who, n, actions, False)
    points = games["points"][:, :players].astype(np.int64)
    points = points if "positive" in rules else -points
    won = points == points.max(axis=1, keepdims=True)
    share = won[np.arange(len(games)), hero] / won.sum(axis=1)
    by_block = share.reshape(blocks, players).mean(axis=1)
    return float(by_block.mean()), float(by_block.std() / blocks**0.5)


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("players", [2, 4])
def test_careful_beats_greedy(players: int, rules: str) -> None:
    share, error = win_share("careful", players, rules, blocks=300)
    assert share - 3 * error > 1 / players


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("champion", "policy:champion"),
        ("champion:64", "search:champion:64"),
        ("champion:5ms", "search:champion:5ms"),
        ("champion:rows=greedy", "policy:champion:rows=greedy"),
        ("champoin", "policy:champion"),
        ("Greedy", "greedy"),
        ("mcc:200:horizon=4", "mc:200:horizon=4"),
    ],
)
def test_a_policy_without_its_kind_and_a_slip_are_answered_by_what_was_meant(spec, meant):
    pytest.importorskip("safetensors")
    with pytest.raises(bots.BotSpecError, match=rf"did you mean {meant}\?"):
        bots.make(spec)


def test_the_folder_of_a_checkpoint_without_its_kind_is_answered_too(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    for spec, kind in ((f"{tmp_path}", "policy"), (f"{tmp_path}:64", "search")):
        with pytest.raises(bots.BotSpecError, match=rf"did you mean {kind}:{spec}\?"):
            bots.make(spec)
    with pytest.raises(bots.BotSpecError, match=r"for example search:quick:64"):
        bots.make("search:quick")
    with pytest.raises(ValueError, match=r"did you mean 'champion'\?"):
        bots.make("policy:champoin")
