"""Flat Monte Carlo: `mc:200`, `mc:5ms`, `mc:200:horizon=4:value=win`.

What the seat cannot know is dealt anew, N times, all deals equally likely. Every legal card or row
is tried on each of these deals, everybody goes on like `greedy` for a few rounds, and the action
with the best mean is played. All actions meet the same deals and the same random numbers, so that
the luck they share drops out of the comparison. A decision is one call of one compiled kernel.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxx_env.bots import BotSpecError
from oxx_env.game.engine import GREEDY, new_games, play_out, stack_decks
from oxx_env.game.rules import (
    ACTIONS,
    GAME,
    NUMBERS,
    act,
    legal_actions,
    next_random,
)
from oxx_env.game.scoring import relative_points, victory_share
from oxx_env.game.views import TO_THE_END, View, deal_hidden, hide, hide_piles, list_unseen
from oxx_env.lib.jit import kernel, kernel_allocating

HORIZON = 4  # rounds a play-out lasts, the running one included; see docs/experiments.md
MAX_DETERMINISATIONS = 10_000_000
MAX_MILLISECONDS = 3_600_000

# What is added up for each action, sums [ACTIONS, TALLIES].
RELATIVE, LEAD, POINTS, WINS = 0, 1, 2, 3
TALLIES = 4

FIRST_DEALS = 100  # before it is first looked whether more are needed


class Trials(NamedTuple):
    """How actions are tried.

    deals   of what is hidden, on all of which each action is tried
    rounds  that a play-out lasts, the running one included
    to_end  does it then go on to the end of the game, for the tallies POINTS and WINS?
    """

    deals: int
    rounds: int
    to_end: bool = False


class Memory(NamedTuple):
    """What the search works with.

    games   GAME [3], scratch
    unseen  uint8 [NUMBERS], from `list_unseen`; deals leave it in another order
    listed  how many unseen numbers there are
    """

    games: NDArray[np.void]
    unseen: NDArray[np.uint8]
    listed: int


# --- the search ---------------------------------------------------------------------------------


@kernel
def search(view, deck, seat, trials, memory, sums):
    """Try every legal action on deals of what is hidden; add the outcomes to `sums`.

    view    GAME record with its hidden cards blanked; its stream is the only one used. It may be
            the last of the memory's games
    sums    float64 [ACTIONS, TALLIES]: relative points and share of the victory after the play-out;
            own points and share of the victory at the end of the game
    """
    games, unseen, count = memory
    legal = legal_actions(view, deck, seat)
    for _ in range(trials.deals):
        games[0] = view
        deal_hidden(games[0], seat, TO_THE_END if trials.to_end else trials.rounds, unseen, count)
        view["rng"] = games[0]["rng"]
        for action in range(ACTIONS):
            if legal >> action & 1:
                games[1] = games[0]
                game = games[1]
                act(game, deck, seat, action)
                play_out(game, deck, GREEDY, trials.rounds)
                sums[action, RELATIVE] += relative_points(game, seat)
                sums[action, LEAD] += victory_share(game, seat)
                if trials.to_end:
                    play_out(game, deck, GREEDY, TO_THE_END)
                    sums[action, POINTS] += game["points"][seat]
                    sums[action, WINS] += victory_share(game, seat)


@kernel
def add_products(before, after, value, wins, products):
    """What one deal has added to a tally, multiplied by pairs of actions.

    before, after  tallies [ACTIONS, TALLIES]
    value, wins    which of the tallies are multiplied
    products       float64 [2, ACTIONS, ACTIONS], added to
    """
    for a in range(ACTIONS):
        for b in range(ACTIONS):
            for which, tally in enumerate((value, wins)):
                one = after[a, tally] - before[a, tally]
                other = after[b, tally] - before[b, tally]
                products[which, a, b] += one * other


@kernel_allocating
def mc_values(games, decks, who, n, determinisations, horizon, values):
    """Monte Carlo action values of many decisions at once, as targets for a network.

    games             GAME [B], the full records; what a seat cannot know is hidden before it thinks
    decks             DECK [D]
    who, n            PENDING: the first `n` decisions are valued (`engine.pending`)
    determinisations  deals for each decision, e.g. 60
    horizon           rounds of a play-out, the running one included, e.g. HORIZON
    values            out, float [N, ACTIONS]: mean relative points at the horizon (higher is
                      better), -inf where illegal: `argmax` is the move, `softmax(values / T)` a
                      target

    Chance comes from the games' own streams, which move on by one number for each decision.
    """
    memory = Memory(np.empty(3, GAME), np.empty(NUMBERS, np.uint8), 0)
    sums = np.empty((ACTIONS, TALLIES), np.float64)
    trials = Trials(determinisations, horizon, False)
    for i in range(n):
        game = games[who[i]["game"]]
        seat = np.int64(who[i]["seat"])
        deck = decks[game["deck"]]
        value_actions(game, deck, seat, trials, memory, sums)
        legal = legal_actions(game, deck, seat)
        for action in range(ACTIONS):
            mean = sums[action, RELATIVE] / determinisations
            values[i, action] = mean if legal >> action & 1 else -np.inf


@kernel
def look(game, seat, views):
    """What the seat knows of a full record into `views` GAME [1], whose stream is drawn from the
    record's own."""
    views[0] = game
    hide(views[0], seat)
    views[0]["rng"] = next_random(game)


@kernel
def value_actions(game, deck, seat, trials, memory, sums):
    """`search` for one seat of a full record, whose stream moves on by one number.

    sums  float64 [ACTIONS, TALLIES], written
    """
    games, unseen, _ = memory
    look(game, seat, games[2:])
    sums[:] = 0.0
    known = Memory(games, unseen, list_unseen(games[2], unseen))
    search(games[2], deck, seat, trials, known, sums)


@kernel_allocating
def mc_actions(games, decks, who, n, determinisations, horizon, actions):
    """The Monte Carlo action for each of `who`, like `engine.policy_actions`."""
    values = np.empty((n, ACTIONS), np.float64)
    mc_values(games, decks, who, n, determinisations, horizon, values)
    for i in range(n):
        actions[i] = np.argmax(values[i])


@kernel_allocating
def _search(views, decks, seat, trials, memory, outcome):
    """`search`, deal by deal, and the products of each deal's outcomes.

    outcome  sums and products as of `search` and `add_products`, and which tally the choice is by
    """
    sums, products, value = outcome
    one = Trials(1, trials.rounds, trials.to_end)
    for _ in range(trials.deals):
        before = sums.copy()
        search(views[0], decks[0], seat, one, memory, sums)
        add_products(before, sums, value, WINS, products)


@kernel
def _list_unseen(views, unseen):
    return list_unseen(views[0], unseen)


# --- the bot ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcomes:
    """What became of every legal action on the same deals.

    legal      the actions
    deals      number of deals
    values     [ACTIONS] mean of what the bot chooses by; higher is better
    points     [ACTIONS] mean own points at the end of this game, as the rulebook counts them
    shares     [ACTIONS] mean share of the victory at the end of this game
    products   [2, ACTIONS, ACTIONS] sums over the deals of the products of two actions' outcomes:
               of what the bot chooses by, and of the shares
    """

    legal: list[int]
    deals: int
    values: NDArray[np.float64]
    points: NDArray[np.float64]
    shares: NDArray[np.float64]
    products: NDArray[np.float64]

    def above(self, action: int, other: int, shares: bool = False) -> tuple[float, float]:
        """By how much an action is better than another, and the standard error of that, from the
        differences deal by deal. Needs two deals."""
        means, products = self.shares if shares else self.values, self.products[int(shares)]
        mean = float(means[action] - means[other])
        squares = products[action, action] + products[other, other] - 2 * products[action, other]
        variance = max(0.0, float(squares) / self.deals - mean * mean)
        return mean, (variance / (self.deals - 1)) ** 0.5


def growing(deals: int, seconds: float) -> Iterator[int]:
    """Sizes of parts that double what was done: up to so many deals, two at least; or while there
    is time."""
    start, done = time.perf_counter(), 0
    while deals and done < max(2, deals):
        part = min(max(done, FIRST_DEALS), max(2, deals) - done)
        done += part
        yield part
    part = 0 if deals else 2
    while part >= 1:
        done += part
        yield part
        spent = time.perf_counter() - start
        part = min(done, int(0.5 * (seconds - spent) * done / spent))


class MonteCarlo:
    """`mc:N` or `mc:5ms`: N deals for each decision, or as many as fit into the time.

    options  `horizon` in rounds, the running one included, or `end`; `value`, `points` (mean
             relative points) or `win` (share of the victory, points before in the match counted;
             at the end of the game unless a horizon is given, then of who leads there)
    """

    needs_state = False

    def __init__(self, budget: str, options: Mapping[str, str] | None = None) -> None:
        options = options or {}
        self.spec = ":".join(["mc", budget, *(f"{k}={v}" for k, v in options.items())])
        self.determinisations, self.seconds = parse_budget(budget, self.spec)
        value = options.get("value", "points")
        if value not in ("points", "win"):
            raise BotSpecError(f"{self.spec!r}: value is points or win, not {value!r}")
        self.tally = RELATIVE if value == "points" else LEAD
        horizon = options.get("horizon", str(HORIZON) if value == "points" else "end")
        if horizon != "end" and not (re.fullmatch(r"[0-9]{1,3}", horizon) and int(horizon)):
            raise BotSpecError(
                f"{self.spec!r}: horizon is a number of rounds from 1, or end, not {horizon!r}"
            )
        self.rounds = TO_THE_END if horizon == "end" else int(horizon)
        self.by_wins = value == "win"
        # When what the choice rests on is counted.
        self.outlook = (
            "at the end of the game" if self.rounds == TO_THE_END
            else "at the end of this round" if self.rounds == 1
            else f"{self.rounds} rounds ahead"
        )  # fmt: skip
        if self.seconds:
            _warm_up()

    def act(self, view: View, rng: np.random.Generator) -> int:
        legal = view.legal
        if len(legal) == 1:
            return legal[0]
        return self._choice(view.games, view, rng)

    def outcomes(self, view: View, rng: np.random.Generator) -> Iterator[Outcomes]:
        """Every legal action on the same deals: after `FIRST_DEALS`, twice as many and so on, up to
        the bot's number or time. The caller stops when it knows enough."""
        views, memory, outcome = self._start(view.games, rng)
        sums, products, _ = outcome
        done = 0
        for part in growing(self.determinisations, self.seconds):
            trials = Trials(part, self.rounds, True)
            _search(views, view.decks, view.seat, trials, memory, outcome)
            done += part
            means = sums.T / done
            yield Outcomes(
                view.legal, done, means[self.tally], means[POINTS], means[WINS], products.copy()
            )

    def _start(
        self, games: NDArray[np.void], rng: np.random.Generator
    ) -> tuple[NDArray[np.void], Memory, tuple[Any, ...]]:
        """What `_search` begins with: the games with a random stream, memory, no outcome yet."""
        views = games.copy()
        views["rng"] = rng.integers(2**64, dtype=np.uint64)
        sums, products = np.zeros((ACTIONS, TALLIES)), np.zeros((2, ACTIONS, ACTIONS))
        games, unseen = np.empty(3, GAME), np.empty(NUMBERS, np.uint8)
        memory = Memory(games, unseen, _list_unseen(views, unseen))
        return views, memory, (sums, products, self.tally)

    def _choice(self, games: NDArray[np.void], view: View, rng: np.random.Generator) -> int:
        """The best of the legal actions; `games` GAME [1] is what the bot knows, blanks where a
        card is hidden from it."""
        start = time.perf_counter()
        views, memory, outcome = self._start(games, rng)
        done, part = 0, 1 if self.seconds else self.determinisations
        while part >= 1:
            trials = Trials(part, self.rounds, False)
            _search(views, view.decks, view.seat, trials, memory, outcome)
            done += part
            spent = time.perf_counter() - start
            # Half of what would still fit, so that one slow part does not break the budget.
            part = int(0.5 * (self.seconds - spent) * done / spent) if self.seconds else 0
        return max(view.legal, key=lambda action: outcome[0][action, self.tally])


class Cheat(MonteCarlo):
    """Monte Carlo that sees all hands: an upper reference, not a player.

    Only the draw piles, which are unknown to all seats, and the box are dealt anew.
    """

    needs_state = True
    DEALS = "100"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        super().__init__(self.DEALS, options)
        self.spec = "cheat"

    def act(
        self, view: View, rng: np.random.Generator, state: NDArray[np.void] | None = None
    ) -> int:
        """One of `view.legal`; `state` is the full GAME [1]. Raises ValueError without it."""
        if state is None:
            raise ValueError("cheat needs the full state: act(view, rng, state=games)")
        legal = view.legal
        if len(legal) == 1:
            return legal[0]
        games = state.copy()
        hide_piles(games)
        return self._choice(games, view, rng)


def parse_budget(budget: str, spec: str) -> tuple[int, float]:
    """`200` -> (200, 0.0): so many deals; `5ms` -> (0, 0.005): seconds of wall time a decision."""
    if re.fullmatch(r"[0-9]{1,9}", budget) and 1 <= int(budget) <= MAX_DETERMINISATIONS:
        return int(budget), 0.0
    time_ = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,6})?)ms", budget)
    if time_ and 0 < float(time_[1]) <= MAX_MILLISECONDS:
        return 0, float(time_[1]) / 1000
    raise BotSpecError(
        f"{spec!r}: {budget!r} is no budget; write how many deals to try (200) "
        "or the time for a decision (5ms)"
    )


def _warm_up() -> None:
    """Compile before the clock runs: a budget is for thinking."""
    decks = stack_decks(["balanced"])
    view = View.of(new_games([0], decks, 2), decks, 0)
    MonteCarlo("1").act(view, np.random.default_rng(0))
