"""Self-play: every decision of every learning seat becomes a sample.

One compiled call plays all games on, encodes, scores and samples, and credits each reward to the
seat that earned it. A seat's reward between two of its decisions is the change of its relative
points (own minus the mean of the others, higher is better), whichever seat's decision caused it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxx_env import cards, ratings
from oxx_env.bots.monte_carlo import HORIZON, RELATIVE, Memory, Trials, value_actions
from oxx_env.bots.monte_carlo import TALLIES as MC_TALLIES
from oxx_env.bots.simple import careful_row, careful_slot
from oxx_env.game.engine import (
    deal_again,
    greedy_row,
    greedy_slot,
    new_games,
    rule_flags,
    stack_decks,
)
from oxx_env.game.rules import (
    ACTIONS,
    CARD_PHASE,
    FIRST_ROW,
    GAME,
    HAND_SIZE,
    MAX_PLAYERS,
    NUMBERS,
    OVER,
    act,
    advance,
    decides,
    is_positive,
    legal_actions,
    match_over,
    mix,
)
from oxx_env.game.scoring import match_points, victory_share
from oxx_env.lib.jit import kernel
from oxx_env.policy.checkpoint import load_checkpoint
from oxx_env.policy.features import INPUT, encode_input, scratch
from oxx_env.policy.forward import best_action, drawn, forward, hidden_of, softmax, workspace
from training.config import Config, Space
from training.pool import (
    EXPECTED,
    FROZEN,
    GREEDY,
    LEARNER,
    MATCHES,
    MONTE_CARLO,
    POINTS,
    SEATS,
    SHARE,
    TALLIES,
    Pool,
)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_11 = np.uint64(11)
_BELOW_1 = np.float32(1 - 2.0**-24)
# `following` where there is no next sample: the match ended; the batch ended first.
TERMINAL, UNFINISHED = -1, -2


# --- what the kernels work on -------------------------------------------------------------------


class Batch(NamedTuple):
    """Samples of one collection, in the order they were decided.

    observations  float32 [N, INPUT]
    masks         bool [N, ACTIONS], the legal actions
    actions       int8 [N]
    log_probs     float32 [N], of the action under the policy that played it
    values        float32 [N]
    rewards       float32 [N], scaled, until the same seat's next decision
    following     int32 [N], index of the same seat's next sample, TERMINAL or UNFINISHED
    priors        float32 [N, ACTIONS], probabilities under the policy that was started from;
                  [0, ACTIONS] without one
    results       float64 [KINDS, TALLIES], the matches finished, by kind of line-up (see `pool`)
    """

    observations: NDArray[np.float32]
    masks: NDArray[np.bool_]
    actions: NDArray[np.int8]
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    rewards: NDArray[np.float32]
    following: NDArray[np.int32]
    priors: NDArray[np.float32]
    results: NDArray[np.float64]


class Tables(NamedTuple):
    """The games that are played side by side.

    games        GAME [B], resting at decisions
    decks        DECK [D]
    control      int8 [B, 10], the agent in each seat (see `pool`)
    kinds        int16 [B], the kind of line-up
    streams      uint64 [B, 1], for sampling actions and line-ups
    last         int32 [B, 10], each seat's last sample; negative: none
    points_then  float32 [B, 10], its relative points then
    """

    games: NDArray[np.void]
    decks: NDArray[np.void]
    control: NDArray[np.int8]
    kinds: NDArray[np.int16]
    streams: NDArray[np.uint64]
    last: NDArray[np.int32]
    points_then: NDArray[np.float32]


class LineUps(NamedTuple):
    """How the next match is seated.

    mixture    float32 [KINDS], cumulative shares of the kinds of line-up
    opponents  int8 [KINDS], the agent that sits with the learner
    single     the learner has one seat only, wherever it has opponents
    """

    mixture: NDArray[np.float32]
    opponents: NDArray[np.int8]
    single: bool


class Agents(NamedTuple):
    """What the agents in the seats play by.

    weights           float32 [K, weights]: the learner, then the pool
    hidden            width of these networks
    frozen            float32 [weights] of the agent FROZEN, which plays its best action
    frozen_hidden     its width
    prior             index of the weights whose probabilities go to `Batch.priors`, or -1
    determinisations  of Monte Carlo
    """

    weights: NDArray[np.float32]
    hidden: int
    frozen: NDArray[np.float32]
    frozen_hidden: int
    prior: int
    determinisations: int

    @classmethod
    def of(
        cls,
        weights: NDArray[np.float32],
        frozen: NDArray[np.float32] | None,
        determinisations: int,
        prior: int = -1,
    ) -> Agents:
        """`frozen` None: there is no such agent."""
        hidden = hidden_of(weights.shape[1])
        other = (np.zeros(0, np.float32), 0) if frozen is None else (frozen, hidden_of(len(frozen)))
        return cls(weights, hidden, *other, prior, determinisations)


class Tools(NamedTuple):
    """Scratch memory of the kernels, for one thread."""

    features: Any
    inputs: NDArray[np.float32]  # [INPUT]
    network: NDArray[np.float32]
    logits: NDArray[np.float32]  # [ACTIONS]
    probabilities: NDArray[np.float32]  # [ACTIONS]
    trial: NDArray[np.void]  # of `careful`
    marks: NDArray[np.float64]
    views: NDArray[np.void]  # of Monte Carlo
    unseen: NDArray[np.uint8]
    sums: NDArray[np.float64]
    picked: NDArray[np.int64]  # [10], the action of each seat; -1: none

    @classmethod
    def of(cls, agents: Agents) -> Tools:
        return cls(
            scratch(),
            np.zeros(INPUT, np.float32),
            workspace(max(agents.hidden, agents.frozen_hidden)),
            np.zeros(ACTIONS, np.float32),
            np.zeros(ACTIONS, np.float32),
            np.zeros(1, GAME),
            np.zeros((2, HAND_SIZE), np.float64),
            np.zeros(3, GAME),
            np.zeros(NUMBERS, np.uint8),
            np.zeros((ACTIONS, MC_TALLIES), np.float64),
            np.zeros(MAX_PLAYERS, np.int64),
        )


# --- kernels ------------------------------------------------------------------------------------


@kernel
def uniform(stream):
    """A float in [0, 1) from a splitmix64 stream, uint64 [1]."""
    stream[0] += _GOLDEN
    # The greatest numbers of 53 bits are rounded up to 1, which is an index too far.
    return min(np.float32(mix(stream[0]) >> _11) * np.float32(2.0**-53), _BELOW_1)


@kernel
def relative_points(game, seat):
    """Relative points of the match so far, float32 as in the batch (`scoring`: of one game)."""
    players = np.int64(game["players"])
    total = 0
    for other in range(players):
        total += match_points(game, other)
    own = match_points(game, seat)
    relative = np.float32(own) - np.float32(total - own) / np.float32(players - 1)
    return relative if is_positive(game) else -relative


@kernel
def bot_action(game, deck, seat, bot, determinisations, tools):
    """The action of a compiled bot."""
    if bot == MONTE_CARLO:
        sums = tools.sums
        trials, memory = (
            Trials(determinisations, HORIZON, False),
            Memory(tools.views, tools.unseen, 0),
        )
        value_actions(game, deck, seat, trials, memory, sums)
        legal = legal_actions(game, deck, seat)
        best = -1
        for action in range(ACTIONS):
            if legal >> action & 1 and (best < 0 or sums[action, RELATIVE] > sums[best, RELATIVE]):
                best = action
        return best
    if game["phase"] == CARD_PHASE:
        if bot == GREEDY:
            return greedy_slot(game, deck, seat)
        return careful_slot(game, deck, seat, tools.trial, tools.marks[0], tools.marks[1])
    if bot == GREEDY:
        return FIRST_ROW + greedy_row(game, deck, np.int64(game["revealed"][game["placed"]]))
    return FIRST_ROW + careful_row(game, deck, seat, tools.trial)


@kernel
def best_of_network(game, deck, seat, weights, hidden, tools):
    """The action a network scores highest, as the bot `policy` plays."""
    encode_input(game, deck, seat, tools.features, tools.inputs)
    forward(weights, hidden, tools.inputs, tools.network, tools.logits)
    return best_action(tools.logits, legal_actions(game, deck, seat))


@kernel
def opponent_action(game, deck, seat, agent, agents, tools):
    """The action of a bot, or of the frozen network."""
    if agent == FROZEN:
        return best_of_network(game, deck, seat, agents.frozen, agents.frozen_hidden, tools)
    return bot_action(game, deck, seat, agent, agents.determinisations, tools)


@kernel
def sampled_action(tables, g, seat, agents, batch, n, tools):
    """The action that a network draws by its probabilities; the learner's becomes sample `n`."""
    game = tables.games[g]
    deck = tables.decks[game["deck"]]
    agent = np.int64(tables.control[g, seat])
    inputs = batch.observations[n] if agent == LEARNER else tools.inputs
    encode_input(game, deck, seat, tools.features, inputs)
    value = forward(agents.weights[agent], agents.hidden, inputs, tools.network, tools.logits)
    legal = legal_actions(game, deck, seat)
    softmax(tools.logits, legal, np.float32(1), tools.probabilities)
    action = drawn(tools.probabilities, legal, uniform(tables.streams[g]))
    if agent != LEARNER:
        return action
    for candidate in range(ACTIONS):
        batch.masks[n, candidate] = legal >> candidate & 1
    batch.actions[n] = action
    batch.log_probs[n] = np.log(max(tools.probabilities[action], np.float32(1e-12)))
    batch.values[n] = value
    batch.following[n] = UNFINISHED
    batch.rewards[n] = 0
    if agents.prior >= 0:
        weights = agents.weights[agents.prior]
        forward(weights, agents.hidden, inputs, tools.network, tools.logits)
        softmax(tools.logits, legal, np.float32(1), batch.priors[n])
    return action


@kernel
def credit(tables, g, seat, batch, after, scale):
    """Reward a seat's last sample with the change of its relative points until now; `after` is the
    index of its next sample, or TERMINAL."""
    now = relative_points(tables.games[g], seat)
    before = tables.last[g, seat]
    if before >= 0:
        batch.rewards[before] = (now - tables.points_then[g, seat]) * scale
        batch.following[before] = after
    tables.last[g, seat] = after
    tables.points_then[g, seat] = now


@kernel
def play_on(game, deck, picked):
    """Carry out the actions picked, and play on to the next decision."""
    in_card_phase = game["phase"] == CARD_PHASE
    for seat in range(np.int64(game["players"])):
        if picked[seat] >= 0:
            act(game, deck, seat, picked[seat])
            if not in_card_phase:
                break
    advance(game, deck)


@kernel
def seat_agents(tables, g, line_ups):
    """Choose the agents of the next match, by the shares of the kinds of line-up.

    Kind 0: the learner in all seats. The others: it has half of the seats (rounded down, at least
    one), side by side, or with `single` one seat; `opponents[kind]` the rest.
    """
    control, stream = tables.control[g], tables.streams[g]
    players = np.int64(tables.games[g]["players"])
    draw = uniform(stream)
    kind = 0
    while kind < len(line_ups.mixture) - 1 and draw >= line_ups.mixture[kind]:
        kind += 1
    first = np.int64(uniform(stream) * np.float32(players))
    learners = players if kind == 0 else (1 if line_ups.single else players // 2)
    for seat in range(MAX_PLAYERS):
        control[seat] = line_ups.opponents[kind]
    for k in range(learners):
        control[(first + k) % players] = LEARNER
    tables.kinds[g] = kind


@kernel
def finish_match(tables, g, batch, scale):
    """Reward the last samples of a match and count its result."""
    game = tables.games[g]
    result = batch.results[tables.kinds[g]]
    result[MATCHES] += 1
    for seat in range(np.int64(game["players"])):
        credit(tables, g, seat, batch, TERMINAL, scale)
        if tables.control[g, seat] == LEARNER:
            result[SEATS] += 1
            result[SHARE] += np.float32(victory_share(game, seat))
            result[EXPECTED] += 1 / np.float64(game["players"])
            result[POINTS] += relative_points(game, seat)


@kernel
def collect(tables, line_ups, agents, batch, scale, tools):
    """Play until the batch is nearly full; returns the number of samples. Adds to its results."""
    tables.last[:] = TERMINAL
    picked = tools.picked
    n = 0
    while True:
        for g in range(tables.games.shape[0]):
            if n + MAX_PLAYERS > len(batch.actions):
                return n
            game = tables.games[g]
            deck = tables.decks[game["deck"]]
            for seat in range(np.int64(game["players"])):
                picked[seat] = -1
                if not decides(game, seat):
                    continue
                agent = np.int64(tables.control[g, seat])
                if agent < LEARNER:
                    picked[seat] = opponent_action(game, deck, seat, agent, agents, tools)
                    continue
                picked[seat] = sampled_action(tables, g, seat, agents, batch, n, tools)
                if agent == LEARNER:
                    credit(tables, g, seat, batch, n, scale)
                    n += 1
            play_on(game, deck, picked)
            if match_over(game):
                finish_match(tables, g, batch, scale)
                game["deck"] = np.int64(uniform(tables.streams[g]) * np.float32(len(tables.decks)))
                deal_again(game, tables.decks[game["deck"]])
                seat_agents(tables, g, line_ups)


# --- the training games -------------------------------------------------------------------------


class Collector:
    """Plays the training games and remembers where they stand.

    prior   float32 [weights], the policy not to be forgotten; None: there is none
    frozen  float32 [weights] of the frozen opponent; None: there is none, or it is a bot

    Raises CheckpointError for a frozen opponent that is none.
    """

    def __init__(self, config: Config, prior: NDArray[np.float32] | None = None) -> None:
        self.config = config
        self.prior = prior
        self.pool = Pool(config)
        self.frozen: NDArray[np.float32] | None = None
        if FROZEN in self.pool.seats:
            self.frozen = load_checkpoint(str(config.frozen))[0]
        rng = np.random.default_rng([config.seed, 0])
        count = config.games
        players = rng.choice(config.players, count, p=config.player_shares_normed)
        flags = [rule_flags(name) for name in config.rules]
        rules = rng.choice(flags, count, p=config.rule_shares_normed)
        self.decks = training_decks(config, rng)
        deck = rng.integers(0, len(self.decks), count)
        seeds = rng.integers(0, 2**53, count)
        self.games = new_games(seeds, self.decks, players, rules, deck)
        self.games["match_games"] = np.resize(config.games_per_match, count)
        self.streams = rng.integers(1, 2**63, (count, 1)).astype(np.uint64)
        self.control = np.zeros((count, MAX_PLAYERS), np.int8)
        self.kinds = np.zeros(count, np.int16)
        tables, line_ups = self._tables(), self._line_ups()
        for g in range(count):
            seat_agents(tables, g, line_ups)

    def _tables(self) -> Tables:
        shape = self.control.shape
        kept = (self.games, self.decks, self.control, self.kinds, self.streams)
        return Tables(*kept, np.zeros(shape, np.int32), np.zeros(shape, np.float32))

    def _line_ups(self) -> LineUps:
        mixture = np.cumsum(self.pool.shares()).astype(np.float32)
        return LineUps(mixture, self.pool.seats, self.config.frozen is not None)

    def collect(self, weights: NDArray[np.float32]) -> Batch:
        """Play about `config.rollout` decisions with the given weights."""
        config, size = self.config, self.config.rollout
        networks = [weights[None], self.pool.weights]
        if self.prior is not None:
            networks.append(self.prior[None])
        stack = np.concatenate(networks)
        prior = -1 if self.prior is None else len(stack) - 1
        agents = Agents.of(stack, self.frozen, config.mc_determinisations, prior)
        batch = Batch(
            observations=np.zeros((size, INPUT), np.float32),
            masks=np.zeros((size, ACTIONS), np.bool_),
            actions=np.zeros(size, np.int8),
            log_probs=np.zeros(size, np.float32),
            values=np.zeros(size, np.float32),
            rewards=np.zeros(size, np.float32),
            following=np.zeros(size, np.int32),
            priors=np.zeros((0 if self.prior is None else size, ACTIONS), np.float32),
            results=np.zeros((len(self.pool.seats), TALLIES)),
        )
        scale = np.float32(config.reward_scale)
        n = collect(self._tables(), self._line_ups(), agents, batch, scale, Tools.of(agents))
        *samples, results = batch
        return Batch(*(array[:n] for array in samples), results)

    def state(self) -> dict[str, NDArray[Any]]:
        """A copy of all that the next collection depends on, besides the weights."""
        own = ["games", "streams", "control", "kinds", "decks"]
        if self.frozen is not None:
            own.append("frozen")
        return {name: getattr(self, name).copy() for name in own} | self.pool.state()

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from a `state`. Raises ValueError if the frozen opponent has changed since."""
        if self.frozen is not None and not np.array_equal(self.frozen, state["frozen"]):
            raise ValueError(f"{self.config.frozen} has other weights than when it was frozen")
        self.pool.load_state(state)
        for name, array in state.items():
            if not name.startswith("pool_"):
                getattr(self, name)[...] = array


def training_decks(config: Any, rng: np.random.Generator) -> NDArray[np.void]:
    """DECKS: the named ones, or fresh random assignments of their card types to the numbers."""
    if config.random_decks == 0:
        return stack_decks(list(config.decks))
    models = np.resize(config.decks, config.random_decks).tolist()
    return stack_decks([cards.random_deck(model, rng) for model in models])


def deal_over(
    space: Space, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """GAME [count], single games over the table sizes, rule sets and decks of a space by their
    shares, and the DECKS that they index."""
    decks = training_decks(space, rng)
    players = rng.choice(space.players, count, p=space.player_shares_normed)
    flags = [rule_flags(name) for name in space.rules]
    rules = rng.choice(flags, count, p=space.rule_shares_normed)
    seeds = rng.integers(0, 2**53, count)
    return new_games(seeds, decks, players, rules, rng.integers(0, len(decks), count)), decks


# --- a network against one opponent -------------------------------------------------------------


class Opponent(NamedTuple):
    """A compiled bot (see `pool`), or a network that plays its best action.

    determinisations  of Monte Carlo
    weights           float32 [weights] of the network; None: it is the bot
    """

    bot: int = GREEDY
    determinisations: int = 30
    weights: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Outcome:
    """A network in one seat against the same opponent in all others, each deal from every seat.

    shares  float32 [deals, players], its share of the victory, by deal and seat
    points  float32 [deals, players], its relative points
    """

    shares: NDArray[np.float32]
    points: NDArray[np.float32]

    @property
    def share(self) -> float:
        """Mean win share; parity is 1 / players."""
        return float(self.shares.mean())

    @property
    def ci95(self) -> ratings.Interval:
        """Its 95 % interval, the deal being the unit."""
        return ratings.share_interval(self.shares.mean(axis=1), self.shares.shape[1])


@kernel
def _duel(games, decks, seats, bot, agents, tools, outcome):
    """Play games to the end: `seats[g]` by the network's best action, the others by the opponent;
    its share of the victory and relative points into `outcome` [2, games]."""
    picked = tools.picked
    for g in range(games.shape[0]):
        game = games[g]
        deck = decks[game["deck"]]
        while game["phase"] != OVER:
            for seat in range(np.int64(game["players"])):
                picked[seat] = -1
                if decides(game, seat):
                    if seat == seats[g]:
                        weights, hidden = agents.weights[0], agents.hidden
                        picked[seat] = best_of_network(game, deck, seat, weights, hidden, tools)
                    else:
                        picked[seat] = opponent_action(game, deck, seat, bot, agents, tools)
            play_on(game, deck, picked)
        outcome[0, g] = victory_share(game, seats[g])
        outcome[1, g] = relative_points(game, seats[g])


def duel(
    weights: NDArray[np.float32],
    opponent: Opponent,
    decks: NDArray[np.void],
    players: int = 2,
    rules: str = "base",
    games: int = 1000,
    seed: Sequence[int] = (0, 1),
) -> Outcome:
    """Play a network by its best actions against an opponent in all other seats.

    Every deal is played once from each seat, decks in turn; `seed` makes the deals. For a quick
    look during training: reported strengths come from the arena.
    """
    deals = max(1, games // players)
    seeds = np.random.default_rng(seed).integers(0, 2**53, deals)
    index = np.repeat(np.arange(deals) % len(decks), players)
    batch = new_games(np.repeat(seeds, players), decks, players, rules, index)
    seats = np.tile(np.arange(players), deals)
    agents = Agents.of(weights[None], opponent.weights, opponent.determinisations)
    bot = opponent.bot if opponent.weights is None else FROZEN
    outcome = np.zeros((2, len(batch)), np.float32)
    _duel(batch, decks, seats, bot, agents, Tools.of(agents), outcome)
    return Outcome(*outcome.reshape(2, deals, players))
