"""`search:PATH:64`, `search:PATH:5ms`: a policy and search together.

What the seat cannot know is dealt anew, as in `monte_carlo`; then each candidate is played and the
rest of the hand is played out. Three things make it stronger than flat Monte Carlo:

- the others' cards of the running round are drawn by their probability in a policy, given *their*
  view of the deal, and everybody goes on by that policy, each seat from its own view. It is a tiny
  network that imitates the champion in a tenth of its time (`swift-1`, see `rollout_net`); the
  guiding policy's `config.json` names it;
- play-outs end with the hand. When all draw new cards at once no seat is ahead in what is to come,
  so that whatever lies behind is luck;
- deals are not shared out equally: what the policy thinks very unlikely is not tried, the worse
  half of the rest is given up again and again (sequential halving), and what the policy thinks of
  an action counts like some deals.

A set of actions is an integer here: bit a is set if action a belongs to it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxx_env.bots import BotSpecError
from oxx_env.bots.monte_carlo import (
    Outcomes,
    Trials,
    add_products,
    growing,
    look,
    parse_budget,
)
from oxx_env.bots.policy import Network, ask
from oxx_env.game.engine import GREEDY, new_games, play_out, stack_decks
from oxx_env.game.rules import (
    ACTIONS,
    CARD_PHASE,
    GAME,
    HAND_SIZE,
    MAX_PLAYERS,
    NUMBERS,
    OVER,
    PASS,
    WAITING,
    act,
    decides,
    legal_actions,
    next_random,
    tick,
)
from oxx_env.game.scoring import relative_points, victory_share
from oxx_env.game.views import TO_THE_END, View, deal_hidden, list_unseen
from oxx_env.lib.jit import kernel, kernel_allocating
from oxx_env.policy import rollout_net
from oxx_env.policy.checkpoint import load_checkpoint, load_play_out, load_rollout_net
from oxx_env.policy.features import INPUT, encode_input, scratch
from oxx_env.policy.forward import best_action, drawn, softmax

UNSEEN_LOOKED_AT = 12  # unseen cards that stand for all in its features
PRIOR_DEALS = 24.0  # what the policy thinks of an action counts like so many deals
# Points by which the policy thinks a card or a row worse that is 1/e as likely. All three numbers
# are where 12 to 48 deals cost least in `base` (docs/experiments.md).
CARD_POINTS, ROW_POINTS = 1.0, 0.4
UNLIKELY = 3.0  # less than e^-3 times as likely as the best is not tried; two always are

# What is kept about each action, tally float64 [ACTIONS, TALLIES].
DEALS, RELATIVE, OPINION, POINTS, WINS = range(5)
TALLIES = 5

_11 = np.uint64(11)


def identity(policy: str) -> dict[str, Any]:
    """What search is made of beside the weights of the policy that guides it, for files of results
    that are only gone on with if it is the same: the checksum of the network that plays out, the
    weights of an opinion."""
    opinion = [PRIOR_DEALS, CARD_POINTS, ROW_POINTS, UNLIKELY]
    return {"player": load_play_out(policy)[1]["sha256"], "opinion": opinion}


class Guide(NamedTuple):
    """The policy that guides the search, and the deals that its opinion counts for."""

    network: Network
    prior: float


class Player(NamedTuple):
    """The network of `rollout_net` that plays out, and what it works with."""

    weights: NDArray[np.float32]
    features: Any  # from `features.scratch`
    inputs: NDArray[np.float32]  # [INPUT]
    network: NDArray[np.float32]  # from `rollout_net.workspace`
    logits: NDArray[np.float32]  # [ACTIONS]
    probabilities: NDArray[np.float32]  # [ACTIONS]

    @classmethod
    def of(cls, weights: NDArray[np.float32], most: int = UNSEEN_LOOKED_AT) -> Player:
        """most: unseen cards its features look at (`features.scratch`)."""
        memory = scratch(most), np.zeros(INPUT, np.float32), rollout_net.workspace()
        return cls(weights, *memory, *(np.zeros(ACTIONS, np.float32) for _ in range(2)))


class Tools(NamedTuple):
    """What a search works with.

    player  who plays out
    games   GAME [3], scratch
    unseen  uint8 [NUMBERS], scratch
    picks   int64 [MAX_PLAYERS], scratch
    """

    player: Player
    games: NDArray[np.void]
    unseen: NDArray[np.uint8]
    picks: NDArray[np.int64]

    @classmethod
    def of(cls, player: Player) -> Tools:
        unseen, picks = np.zeros(NUMBERS, np.uint8), np.zeros(MAX_PLAYERS, np.int64)
        return cls(player, np.zeros(3, GAME), unseen, picks)


# --- playing by a network ------------------------------------------------------------------------


@kernel
def network_action(game, deck, seat, player, sample):
    """The action of a `Player` for a seat that decides: the best, or one by its probability, drawn
    with the game's own stream (`sample`)."""
    legal = legal_actions(game, deck, seat)
    encode_input(game, deck, seat, player.features, player.inputs)
    rollout_net.forward(player.weights, player.inputs, player.network, player.logits)
    if not sample:
        return best_action(player.logits, legal)
    softmax(player.logits, legal, np.float32(1), player.probabilities)
    uniform = np.float32(next_random(game) >> _11) * np.float32(2.0**-53)
    return drawn(player.probabilities, legal, uniform)


@kernel
def pick_for_others(game, deck, seat, player, sample, picks):
    """Card phase: every seat but one (-1: every seat) picks a card, none seeing another's.

    picks  scratch, int64 [MAX_PLAYERS]
    """
    for other in range(np.int64(game["players"])):
        picks[other] = PASS
        if other == seat:
            continue
        if game["hand_sizes"][other] == 1:  # it plays itself, but a view does not show that
            picks[other] = 0
        elif decides(game, other):
            picks[other] = network_action(game, deck, other, player, sample)
    for other in range(np.int64(game["players"])):
        if picks[other] != PASS:
            act(game, deck, other, picks[other])


@kernel
def run_on(game, deck):
    """`advance` within the game: the next one of a match is not dealt."""
    while game["phase"] != OVER and tick(game, deck) != WAITING:
        pass


@kernel
def play_on(game, deck, until, player, picks):
    """Everybody by the best actions of a `Player`, until `until` rounds of the game are finished.

    picks  scratch, int64 [MAX_PLAYERS]
    """
    while game["phase"] != OVER and np.int64(game["round"]) < until:
        if game["phase"] == CARD_PHASE:
            pick_for_others(game, deck, -1, player, False, picks)
        else:
            seat = np.int64(game["revealed_by"][game["placed"]])
            act(game, deck, seat, network_action(game, deck, seat, player, False))
        run_on(game, deck)


# --- the search ---------------------------------------------------------------------------------


@kernel
def hand_end(game, seat):
    """Rounds of the game that are finished when the seat has played all cards it holds."""
    running = 0 if game["phase"] == CARD_PHASE else 1  # the card of this round is out already
    return np.int64(game["round"]) + np.int64(game["hand_sizes"][seat]) + running


@kernel
def opinion_scale(view):
    """Points for a factor of e in the policy's probability."""
    return CARD_POINTS if view["phase"] == CARD_PHASE else ROW_POINTS


@kernel
def begin(view, deck, seat, guide, tally):
    """Clear the tally and ask the policy. Returns the legal actions (a set).

    tally  float64 [ACTIONS, TALLIES]; OPINION is then how many points the policy thinks an action
           worse than its favourite, 0 or below
    """
    legal = legal_actions(view, deck, seat)
    network = guide.network
    ask(view, deck, seat, network)
    best = network.probabilities[best_action(network.logits, legal)]
    scale = opinion_scale(view)
    tally[:] = 0.0
    for action in range(ACTIONS):
        if legal >> action & 1:
            chance = max(network.probabilities[action], np.float32(1e-4))
            tally[action, OPINION] = scale * np.log(np.float64(chance) / np.float64(best))
    return legal


@kernel
def try_deals(view, deck, seat, alive, trials, tools, tally):
    """Try the actions `alive` (a set) on deals of what is hidden; add to the tally.

    view    GAME record with its hidden cards blanked; its stream is the only one used
    trials  rounds by the network, then `greedy` to the end of the hand
    tally   float64 [ACTIONS, TALLIES], sums over the deals
    """
    games, unseen, player = tools.games, tools.unseen, tools.player
    end = hand_end(view, seat)
    until = min(end, np.int64(view["round"]) + trials.rounds)
    needed = TO_THE_END if trials.to_end else end - np.int64(view["round"])
    count = list_unseen(view, unseen)
    for _ in range(trials.deals):
        games[0] = view
        deal_hidden(games[0], seat, needed, unseen, count)
        if view["phase"] == CARD_PHASE:
            pick_for_others(games[0], deck, seat, player, True, tools.picks)
        view["rng"] = games[0]["rng"]
        for action in range(ACTIONS):
            if alive >> action & 1:
                games[1] = games[0]
                game = games[1]
                act(game, deck, seat, action)
                run_on(game, deck)
                play_on(game, deck, until, player, tools.picks)
                play_out(game, deck, GREEDY, end - np.int64(game["round"]))
                tally[action, DEALS] += 1
                tally[action, RELATIVE] += relative_points(game, seat)
                if trials.to_end:
                    play_out(game, deck, GREEDY, TO_THE_END)
                    tally[action, POINTS] += game["points"][seat]
                    tally[action, WINS] += victory_share(game, seat)


@kernel
def worth(tally, action, prior):
    """What to choose by: mean relative points and the policy's opinion, which fades with deals.

    Only actions with equally many deals can be compared.
    """
    points = tally[action, RELATIVE] + prior * tally[action, OPINION]
    return points / max(tally[action, DEALS], 1.0)


@kernel
def estimate(tally, action, best, prior):
    """The relative points to be expected of an action. It is as far below the action
    that is thought best as its deals and the policy, each by its weight, say."""
    deals = tally[action, DEALS]
    most = tally[best, RELATIVE] / max(tally[best, DEALS], 1.0)
    below = deals * most - tally[action, RELATIVE]
    below += prior * (tally[best, OPINION] - tally[action, OPINION])
    weight = deals + prior
    value = most - below / weight if weight > 0 else most
    # One given up early may look better by the luck of few deals.
    return value if action == best else min(value, most - 1e-6)


@kernel
def size_of(actions):
    """How many actions a set holds."""
    size = 0
    for action in range(ACTIONS):
        size += actions >> action & 1
    return size


@kernel
def likely(view, legal, prior, tally):
    """The legal actions (a set) without those the policy thinks much worse, but two of them at
    least; after `begin`. All of them where its opinion counts for nothing."""
    left = size_of(legal)
    while prior > 0 and left > 2:
        worst = -1
        for action in range(ACTIONS):
            if legal >> action & 1 and (
                worst < 0 or tally[action, OPINION] <= tally[worst, OPINION]
            ):
                worst = action
        if tally[worst, OPINION] >= -UNLIKELY * opinion_scale(view):
            break
        legal &= ~(1 << worst)
        left -= 1
    return legal


@kernel
def better_half(alive, tally, prior):
    """The better half of the actions `alive`, rounded up; of equals, the first."""
    left = size_of(alive)
    keep = (left + 1) // 2
    while left > keep:
        worst = -1
        for action in range(ACTIONS):
            if alive >> action & 1 and (
                worst < 0 or worth(tally, action, prior) <= worth(tally, worst, prior)
            ):
                worst = action
        alive &= ~(1 << worst)
        left -= 1
    return alive


@kernel
def stages_of(count):
    """How often the worse half goes until one of so many actions is left."""
    stages = 0
    while count > 1:
        count = (count + 1) // 2
        stages += 1
    return stages


@kernel
def halve(view, deck, seat, trials, prior, tools, tally):
    """Sequential halving after `begin`: about `trials.deals` for each legal action, the same number
    of tries in every stage. Returns the action that is left.

    prior  deals that the policy's opinion counts for; all else as in `try_deals`
    """
    legal = legal_actions(view, deck, seat)
    tries = trials.deals * size_of(legal)
    alive = likely(view, legal, prior, tally)
    count = size_of(alive)
    for _ in range(stages_of(count)):
        deals = max(1, tries // (stages_of(count) * size_of(alive)))
        part = Trials(deals, trials.rounds, trials.to_end)
        try_deals(view, deck, seat, alive, part, tools, tally)
        alive = better_half(alive, tally, prior)
    for action in range(ACTIONS):
        if alive >> action & 1:
            return action
    return PASS


@kernel_allocating
def search_values(games, decks, who, trials, guide, tools, values):
    """Search many decisions, as targets for a network; the chosen action has the best value.

    games   GAME [B], the full records; what a seat cannot know is hidden before it thinks
    who     PENDING [N], the decisions
    trials  deals for each legal action, on average
    values  out, float [N, ACTIONS]: `estimate`, -inf where illegal

    Chance comes from the games' own streams, which move on by one number for each decision.
    """
    tally = np.zeros((ACTIONS, TALLIES))
    view = tools.games[2]
    for i in range(len(who)):
        game = games[who[i]["game"]]
        deck = decks[game["deck"]]
        seat = np.int64(who[i]["seat"])
        look(game, seat, tools.games[2:])
        legal = begin(view, deck, seat, guide, tally)
        chosen = halve(view, deck, seat, trials, guide.prior, tools, tally)
        if tally[chosen, DEALS] == 0:  # the only legal one, but its value is wanted
            try_deals(view, deck, seat, 1 << chosen, trials, tools, tally)
        for action in range(ACTIONS):
            value = estimate(tally, action, chosen, guide.prior)
            values[i, action] = value if legal >> action & 1 else -np.inf


@kernel_allocating
def even_values(games, decks, who, trials, tools, values):
    """Means of the relative points of every legal action on the same deals, and nothing else: to
    judge by. Shapes and chance as in `search_values`."""
    tally = np.zeros((ACTIONS, TALLIES))
    view = tools.games[2]
    for i in range(len(who)):
        game = games[who[i]["game"]]
        deck = decks[game["deck"]]
        seat = np.int64(who[i]["seat"])
        look(game, seat, tools.games[2:])
        tally[:] = 0.0
        legal = legal_actions(view, deck, seat)
        try_deals(view, deck, seat, legal, trials, tools, tally)
        for action in range(ACTIONS):
            mean = tally[action, RELATIVE] / trials.deals
            values[i, action] = mean if legal >> action & 1 else -np.inf


@kernel
def _begin(views, decks, seat, guide, tally):
    return begin(views[0], decks[0], seat, guide, tally)


@kernel
def _likely(views, legal, prior, tally):
    return likely(views[0], legal, prior, tally)


@kernel
def _halve(views, decks, seat, trials, prior, tools, tally):
    return halve(views[0], decks[0], seat, trials, prior, tools, tally)


@kernel_allocating
def _try_deals(views, decks, seat, alive, trials, tools, outcome):
    """`try_deals`, deal by deal, and the products of each deal's outcomes.

    outcome  the tally, and products as of `add_products`
    """
    tally, products = outcome
    one = Trials(1, trials.rounds, trials.to_end)
    for _ in range(trials.deals):
        before = tally.copy()
        try_deals(views[0], decks[0], seat, alive, one, tools, tally)
        add_products(before, tally, RELATIVE, WINS, products)


# --- the bot ------------------------------------------------------------------------------------


class PolicySearch:
    """`search:PATH:N`: about N deals for each legal action; or `search:PATH:5ms`, as many as fit.

    options  `player`, the checkpoint whose network plays out (the one that the policy PATH names);
             `rounds` by it before `greedy` goes on to the end of the hand (4: never); `prior`, how
             many deals the opinion of the policy PATH counts for (0: nothing, and nothing is left
             out as unlikely)

    Raises BotSpecError for a wrong budget or option, CheckpointError for a wrong network.
    """

    needs_state = False
    by_wins = False
    outlook = "at the end of the hand"  # when what the choice rests on is counted

    def __init__(self, path: str, budget: str, options: Mapping[str, str] | None = None) -> None:
        options = options or {}
        self.spec = ":".join(["search", path, budget, *(f"{k}={v}" for k, v in options.items())])
        self.deals, self.seconds = parse_budget(budget, self.spec)
        self.rounds = _rounds(options.get("rounds"), self.spec)
        prior = options.get("prior", f"{PRIOR_DEALS:g}")
        if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", prior):
            raise BotSpecError(f"{self.spec!r}: prior is a number of deals from 0, not {prior!r}")
        self.prior = float(prior)
        weights, _ = load_checkpoint(path)
        named = options.get("player")
        player, config = load_play_out(path) if named is None else load_rollout_net(named)
        self.weights = np.concatenate([weights, player])  # of both networks: a log compares them
        self._guide = Guide(Network.of(weights), self.prior)
        self._tools = Tools.of(Player.of(player, _looked_at(config)))
        self._tally = np.zeros((ACTIONS, TALLIES))
        self._products = np.zeros((2, ACTIONS, ACTIONS))
        self._pace: dict[tuple[int, ...], float] = {}  # seconds of a try, by the size of its task
        if self.seconds:
            self._warm_up()

    def act(self, view: View, rng: np.random.Generator) -> int:
        """The best of `view.legal`; pass where there is nothing to decide."""
        start = time.perf_counter()
        legal = view.legal
        if len(legal) == 1:
            return legal[0]
        views, legal_set = self._begin(view, rng)
        if not self.seconds:
            trials = Trials(self.deals, self.rounds, False)
            return int(
                _halve(views, view.decks, view.seat, trials, self.prior, self._tools, self._tally)
            )
        alive = int(_likely(views, legal_set, self.prior, self._tally))
        stages = int(stages_of(alive.bit_count()))
        for stage in range(stages):
            until = start + self.seconds * (stage + 1) / stages
            self._try_until(views, view, alive, until, last=stage == stages - 1)
            alive = int(better_half(alive, self._tally, self.prior))
        return alive.bit_length() - 1

    def outcomes(self, view: View, rng: np.random.Generator) -> Iterator[Outcomes]:
        """Every legal action on the same deals, `MonteCarlo.outcomes`; the values are mean relative
        points at the end of the hand; the policy's opinion is left out."""
        views, legal_set = self._begin(view, rng)
        tally, done = self._tally, 0
        self._products[:] = 0.0
        for part in growing(self.deals, self.seconds):
            self._try(views, view, legal_set, Trials(part, self.rounds, True))
            done += part
            means = tally.T / done
            yield Outcomes(
                view.legal, done, means[RELATIVE], means[POINTS], means[WINS], self._products.copy()
            )

    def values(
        self,
        games: NDArray[np.void],
        decks: NDArray[np.void],
        who: NDArray[np.void],
        out: NDArray[np.float64],
    ) -> None:
        """What search thinks of many decisions (PENDING) into `out` [N, ACTIONS]; see
        `search_values`. Raises ValueError for a budget in milliseconds."""
        self._need_deals()
        trials = Trials(self.deals, self.rounds, False)
        search_values(games, decks, who, trials, self._guide, self._tools, out)

    def even_values(
        self,
        games: NDArray[np.void],
        decks: NDArray[np.void],
        who: NDArray[np.void],
        out: NDArray[np.float64],
    ) -> None:
        """Like `values`, every action on the same deals and the policy's opinion left out."""
        self._need_deals()
        even_values(games, decks, who, Trials(self.deals, self.rounds, False), self._tools, out)

    def _need_deals(self) -> None:
        if not self.deals:
            raise ValueError(f"{self.spec}: many decisions are searched by a number of deals (64)")

    def _begin(self, view: View, rng: np.random.Generator) -> tuple[NDArray[np.void], int]:
        """The view with a random stream, and the legal actions (a set)."""
        views = view.games.copy()
        views["rng"] = rng.integers(2**64, dtype=np.uint64)
        legal = int(_begin(views, view.decks, view.seat, self._guide, self._tally))
        return views, legal

    def _try(self, views: NDArray[np.void], view: View, alive: int, trials: Trials) -> None:
        outcome = self._tally, self._products
        _try_deals(views, view.decks, view.seat, alive, trials, self._tools, outcome)

    def _try_until(
        self, views: NDArray[np.void], view: View, alive: int, until: float, last: bool
    ) -> None:
        """As many deals as fit; at least one for actions that were never tried, if there is any
        time at all."""
        game = views[0]
        size = game["hand_sizes"][view.seat]
        kind = tuple(int(n) for n in (game["players"], game["rules"], size, game["phase"]))
        width = alive.bit_count()
        first = not self._tally[:, DEALS].any()
        while True:
            now = time.perf_counter()
            pace = self._pace.get(kind, 0.0) * width
            fits = int((until - now) / pace) if pace else 1
            # Half of what would fit, so that one slow chunk does not break the budget.
            n = fits if fits <= 1 else fits // 2
            if n < 1:
                if not (first and last):
                    return
                n = 1
            self._try(views, view, alive, Trials(n, self.rounds, False))
            took = (time.perf_counter() - now) / (n * width)
            # Believed at once where it took longer, slowly where it took less time.
            self._pace[kind] = max(took, 0.8 * self._pace.get(kind, took) + 0.2 * took)
            first = False

    def _warm_up(self) -> None:
        """Compile before the clock runs: a budget is for thinking."""
        decks = stack_decks(["balanced"])
        view = View.of(new_games([0], decks, 2), decks, 0)
        seconds, self.seconds = self.seconds, 1e-9  # one deal, by the same way as later
        self.act(view, np.random.default_rng(0))
        self.seconds = seconds
        self._pace.clear()  # compiling is not what a deal takes


def _rounds(option: str | None, spec: str) -> int:
    """Rounds by the network; without an option to the end of the hand."""
    if option is None:
        return HAND_SIZE
    if not (re.fullmatch(r"[0-9]", option) and 0 <= int(option) <= HAND_SIZE):
        raise BotSpecError(f"{spec!r}: rounds is a number from 0 to {HAND_SIZE}, not {option!r}")
    return int(option)


def _looked_at(config: Mapping[str, Any]) -> int:
    """How many unseen cards the features of a checkpoint's network looked at when it learned."""
    most = config.get("unseen_looked_at", UNSEEN_LOOKED_AT)
    return most if isinstance(most, int) and 1 <= most <= NUMBERS else UNSEEN_LOOKED_AT


def make_search(path: str, budget: str, options: Mapping[str, str]) -> PolicySearch:
    """The bot of `search:PATH:BUDGET`. Raises CheckpointError or BotSpecError."""
    return PolicySearch(path, budget, options)
