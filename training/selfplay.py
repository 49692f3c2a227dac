"""Self-play: every decision of every learning seat becomes a sample.

One compiled call plays all games on, encodes, scores and samples, and credits each reward to the
seat that earned it. A seat's reward between two of its decisions is the change of its relative
points (own minus the mean of the others, higher is better), whoever's decision caused it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env import cards, ratings
from oxx_env.bots.monte_carlo import HORIZON, RELATIVE, value_actions
from oxx_env.bots.monte_carlo import TALLIES as MC_TALLIES
from oxx_env.bots.simple import careful_row, careful_slot
from oxx_env.game.engine import (
    deal_again,
    greedy_row,
    greedy_slot,
    new_games,
    random_row,
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
    POSITIVE,
    act,
    advance,
    decides,
    legal_actions,
    legal_rows,
    match_over,
    mix,
)
from oxx_env.lib.jit import kernel, kernel_allocating
from oxx_env.policy.checkpoint import load_checkpoint
from oxx_env.policy.features import INPUT, encode_input, scratch
from oxx_env.policy.forward import best_action, drawn, forward, hidden_of, softmax, workspace
from training.config import Config
from training.pool import (
    CAREFUL,
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
# What `following` says where there is no next sample: the match ended; the batch ended first.
TERMINAL, UNFINISHED = -1, -2


@dataclass
class Batch:
    """Samples of one collection, in the order they were decided.

    observations  float32 [N, INPUT]
    masks         bool [N, ACTIONS], the legal actions
    actions       int8 [N]
    log_probs     float32 [N], of the action under the policy that played it
    values        float32 [N]
    rewards       float32 [N], scaled, until the same seat's next decision
    following     int32 [N], index of the same seat's next sample; -1 the match ended, -2 not yet
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


@kernel
def uniform(stream):
    """A float in [0, 1) from a splitmix64 stream, uint64 [1]."""
    stream[0] += _GOLDEN
    # The greatest numbers of 53 bits are rounded up to 1, which is an index too far.
    return min(np.float32(mix(stream[0]) >> _11) * np.float32(2.0**-53), _BELOW_1)


@kernel
def relative_points(game, seat):
    """Points of the match so far, own minus the mean of the others, higher is better."""
    players = np.int64(game["players"])
    total = 0
    for other in range(players):
        total += np.int64(game["points"][other]) + np.int64(game["match_points"][other])
    own = np.int64(game["points"][seat]) + np.int64(game["match_points"][seat])
    relative = np.float32(own) - np.float32(total - own) / np.float32(players - 1)
    return relative if game["rules"] & POSITIVE != 0 else -relative


@kernel
def win_share(game, seat):
    """The seat's share of the victory by the points of the match so far."""
    players = np.int64(game["players"])
    sign = 1 if game["rules"] & POSITIVE != 0 else -1
    own = sign * (np.int64(game["points"][seat]) + np.int64(game["match_points"][seat]))
    sharing = 0
    for other in range(players):
        theirs = sign * (np.int64(game["points"][other]) + np.int64(game["match_points"][other]))
        if theirs > own:
            return np.float32(0)
        if theirs == own:
            sharing += 1
    return np.float32(1) / np.float32(sharing)


def tools() -> tuple[Any, ...]:
    """What the kernels here work with; one for each thread: the foresight's scratch, then what
    `careful` and Monte Carlo need."""
    return (
        scratch(),
        np.zeros(1, GAME),
        np.zeros((2, HAND_SIZE), np.float64),
        np.zeros(3, GAME),
        np.zeros(NUMBERS, np.uint8),
        np.zeros((ACTIONS, MC_TALLIES), np.float64),
    )


@kernel
def bot_action(game, deck, seat, bot, determinisations, work):
    """The action of a compiled bot; `work` from `tools`."""
    _, trial, marks, views, unseen, sums = work
    if bot == MONTE_CARLO:
        value_actions(game, deck, seat, determinisations, HORIZON, views, unseen, sums)
        legal = legal_actions(game, deck, seat)
        best = -1
        for action in range(ACTIONS):
            if legal >> action & 1 and (best < 0 or sums[action, RELATIVE] > sums[best, RELATIVE]):
                best = action
        return best
    if game["phase"] == CARD_PHASE:
        if bot == GREEDY:
            return greedy_slot(game, deck, seat)
        if bot == CAREFUL:
            return careful_slot(game, deck, seat, trial, marks[0], marks[1])
        return np.int64(game["rng"] >> _11) % np.int64(game["hand_sizes"][seat])
    number = np.int64(game["revealed"][game["placed"]])
    if bot == GREEDY:
        return FIRST_ROW + greedy_row(game, deck, number)
    if bot == CAREFUL:
        return FIRST_ROW + careful_row(game, deck, seat, trial)
    return FIRST_ROW + random_row(game, legal_rows(game, deck, number))


@kernel
def network_action(game, deck, seat, weights, hidden, sight, obs, work, logits):
    """The action a network scores highest, as the bot `policy` plays."""
    encode_input(game, deck, seat, sight, obs)
    forward(weights, hidden, obs, work, logits)
    return best_action(logits, legal_actions(game, deck, seat))


@kernel
def seat_down(game, control, stream, mixture, opponents, single):
    """Who plays the next match; returns the kind of line-up, drawn by cumulative shares `mixture`.

    Kind 0: the learner in all seats. The others: it has half of the seats (rounded down, at least
    one), side by side, or with `single` one seat; `opponents[kind]` the rest.
    """
    players = np.int64(game["players"])
    draw = uniform(stream)
    kind = 0
    while kind < len(mixture) - 1 and draw >= mixture[kind]:
        kind += 1
    first = np.int64(uniform(stream) * np.float32(players))
    learners = players if kind == 0 else (1 if single else players // 2)
    for seat in range(MAX_PLAYERS):
        control[seat] = opponents[kind]
    for k in range(learners):
        control[(first + k) % players] = LEARNER
    return kind


@kernel_allocating
def collect(
    games,
    decks,
    control,
    kinds,
    streams,
    mixture,
    opponents,
    single,
    weights,
    hidden,
    frozen,
    frozen_hidden,
    prior,
    scale,
    determinisations,
    observations,
    masks,
    actions,
    log_probs,
    values,
    rewards,
    following,
    priors,
    last,
    points_then,
    results,
    tools,
):
    """Play until the buffers are nearly full; returns the number of samples.

    games            GAME [B], resting at decisions
    control          int8 [B, 10], who sits where
    kinds            int16 [B], the kind of line-up
    streams          uint64 [B, 1], for sampling actions and line-ups
    mixture          float32 [KINDS], cumulative shares of the kinds of line-up
    opponents        int8 [KINDS], who sits with the learner
    single           it has one seat only, wherever it has opponents
    weights          float32 [K, weights]: the learner, then the pool
    frozen           float32 [weights], FROZEN's, of width `frozen_hidden`; it plays its best action
    prior            index of the weights whose probabilities go to `priors`, or -1
    determinisations of the Monte Carlo bots
    last             int32 [B, 10], scratch: the seat's last sample
    points_then      float32 [B, 10], scratch: its relative points then
    results          float64 [KINDS, TALLIES], added to
    tools            from `tools`
    """
    capacity = len(actions)
    sight = tools[0]
    work = np.zeros(len(workspace_like(max(hidden, frozen_hidden))), np.float32)
    logits = np.zeros(ACTIONS, np.float32)
    probs = np.zeros(ACTIONS, np.float32)
    obs = np.zeros(INPUT, np.float32)
    last[:] = -1
    n = 0
    picked = np.zeros(MAX_PLAYERS, np.int64)
    while True:
        for g in range(games.shape[0]):
            if n + MAX_PLAYERS > capacity:
                return n
            game = games[g]
            deck = decks[game["deck"]]
            for seat in range(np.int64(game["players"])):
                picked[seat] = -1
                if not decides(game, seat):
                    continue
                who = np.int64(control[g, seat])
                if who == FROZEN:
                    picked[seat] = network_action(
                        game, deck, seat, frozen, frozen_hidden, sight, obs, work, logits
                    )
                    continue
                if who < 0:
                    picked[seat] = bot_action(game, deck, seat, who, determinisations, tools)
                    continue
                out = observations[n] if who == LEARNER else obs
                encode_input(game, deck, seat, sight, out)
                value = forward(weights[who], hidden, out, work, logits)
                legal = legal_actions(game, deck, seat)
                softmax(logits, legal, np.float32(1), probs)
                action = drawn(probs, legal, uniform(streams[g]))
                picked[seat] = action
                if who != LEARNER:
                    continue
                for candidate in range(ACTIONS):
                    masks[n, candidate] = legal >> candidate & 1
                actions[n] = action
                log_probs[n] = np.log(max(probs[action], np.float32(1e-12)))
                values[n] = value
                following[n] = UNFINISHED
                rewards[n] = 0
                if prior >= 0:
                    forward(weights[prior], hidden, out, work, logits)
                    softmax(logits, legal, np.float32(1), priors[n])
                now = relative_points(game, seat)
                before = last[g, seat]
                if before >= 0:
                    rewards[before] = (now - points_then[g, seat]) * scale
                    following[before] = n
                last[g, seat] = n
                points_then[g, seat] = now
                n += 1
            in_card_phase = game["phase"] == CARD_PHASE
            for seat in range(np.int64(game["players"])):
                if picked[seat] >= 0:
                    act(game, deck, seat, picked[seat])
                    if not in_card_phase:
                        break
            advance(game, deck)
            if match_over(game):
                results[kinds[g], MATCHES] += 1
                for seat in range(np.int64(game["players"])):
                    before = last[g, seat]
                    if before >= 0:
                        now = relative_points(game, seat)
                        rewards[before] = (now - points_then[g, seat]) * scale
                        following[before] = TERMINAL
                        last[g, seat] = -1
                    if control[g, seat] == LEARNER:
                        results[kinds[g], SEATS] += 1
                        results[kinds[g], SHARE] += win_share(game, seat)
                        results[kinds[g], EXPECTED] += 1 / np.float64(game["players"])
                        results[kinds[g], POINTS] += relative_points(game, seat)
                game["deck"] = np.int64(uniform(streams[g]) * np.float32(decks.shape[0]))
                deal_again(game, decks[game["deck"]])
                kinds[g] = seat_down(game, control[g], streams[g], mixture, opponents, single)


@kernel_allocating
def workspace_like(hidden):
    return np.zeros(_WORK_FIXED + hidden * _WORK_WIDE, np.float32)


_WORK_FIXED = 2 * len(workspace(8)) - len(workspace(16))
_WORK_WIDE = (len(workspace(16)) - len(workspace(8))) // 8


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
        rules = rng.choice(
            [rule_flags(name) for name in config.rules], count, p=config.rule_shares_normed
        )
        self.decks = training_decks(config, rng)
        deck = rng.integers(0, len(self.decks), count)
        seeds = rng.integers(0, 2**53, count)
        lengths = config.games_per_match
        self.games = new_games(seeds, self.decks, players, rules, deck)
        self.games["match_games"] = [lengths[k % len(lengths)] for k in range(count)]
        self.streams = rng.integers(1, 2**63, (count, 1)).astype(np.uint64)
        self.control = np.zeros((count, MAX_PLAYERS), np.int8)
        self.kinds = np.zeros(count, np.int16)
        mixture = self._mixture()
        for g in range(count):
            self.kinds[g] = seat_down(
                self.games[g],
                self.control[g],
                self.streams[g],
                mixture,
                self.pool.seats,
                self._single,
            )

    @property
    def _single(self) -> bool:
        return self.config.frozen is not None

    def _mixture(self) -> NDArray[np.float32]:
        return np.cumsum(self.pool.shares()).astype(np.float32)

    def collect(self, weights: NDArray[np.float32]) -> Batch:
        """Play about `config.rollout` decisions with the given weights."""
        config = self.config
        capacity = config.rollout
        shape = (config.games, MAX_PLAYERS)
        arrays: dict[str, Any] = {
            "observations": np.zeros((capacity, INPUT), np.float32),
            "masks": np.zeros((capacity, ACTIONS), np.bool_),
            "actions": np.zeros(capacity, np.int8),
            "log_probs": np.zeros(capacity, np.float32),
            "values": np.zeros(capacity, np.float32),
            "rewards": np.zeros(capacity, np.float32),
            "following": np.zeros(capacity, np.int32),
            "priors": np.zeros((capacity if self.prior is not None else 0, ACTIONS), np.float32),
        }
        networks = [weights[None], self.pool.weights]
        if self.prior is not None:
            networks.append(self.prior[None])
        stack = np.concatenate(networks)
        results = np.zeros((len(self.pool.seats), TALLIES))
        n = collect(
            self.games,
            self.decks,
            self.control,
            self.kinds,
            self.streams,
            self._mixture(),
            self.pool.seats,
            self._single,
            stack,
            config.hidden,
            *_network(self.frozen),
            -1 if self.prior is None else len(stack) - 1,
            np.float32(config.reward_scale),
            config.mc_determinisations,
            *arrays.values(),
            np.zeros(shape, np.int32),
            np.zeros(shape, np.float32),
            results,
            tools(),
        )
        return Batch(**{name: array[:n] for name, array in arrays.items()}, results=results)

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


def training_decks(config: Config, rng: np.random.Generator) -> NDArray[np.void]:
    """DECKS: the named ones, or fresh random assignments of their card types to the numbers."""
    if config.random_decks == 0:
        return stack_decks(list(config.decks))
    return stack_decks(
        [
            cards.random_deck(config.decks[k % len(config.decks)], rng)
            for k in range(config.random_decks)
        ]
    )


def deal_over(
    space: Config, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """GAME [count], single games over the table sizes, rule sets and decks of a space by their
    shares, and the DECKS that they index."""
    decks = training_decks(space, rng)
    players = rng.choice(space.players, count, p=space.player_shares_normed)
    flags = [rule_flags(name) for name in space.rules]
    rules = rng.choice(flags, count, p=space.rule_shares_normed)
    seeds = rng.integers(0, 2**53, count)
    return new_games(seeds, decks, players, rules, rng.integers(0, len(decks), count)), decks


def _network(weights: NDArray[np.float32] | None) -> tuple[NDArray[np.float32], int]:
    """What the kernels get of a network that may be missing: weights and width."""
    return (np.zeros(0, np.float32), 0) if weights is None else (weights, hidden_of(len(weights)))


@kernel_allocating
def _duel(
    games,
    decks,
    seats,
    weights,
    hidden,
    bot,
    frozen,
    frozen_hidden,
    determinisations,
    shares,
    points,
    tools,
):
    """Play games to the end: `seats[g]` by the network's best action, the others by a bot, or by
    the best action of the network `frozen` if `bot` is FROZEN."""
    work = np.zeros(len(workspace_like(max(hidden, frozen_hidden))), np.float32)
    logits = np.zeros(ACTIONS, np.float32)
    obs = np.zeros(INPUT, np.float32)
    picked = np.zeros(MAX_PLAYERS, np.int64)
    sight = tools[0]
    for g in range(games.shape[0]):
        game = games[g]
        deck = decks[game["deck"]]
        while game["phase"] != OVER:
            in_card_phase = game["phase"] == CARD_PHASE
            for seat in range(np.int64(game["players"])):
                picked[seat] = -1
                if decides(game, seat):
                    if seat == seats[g]:
                        picked[seat] = network_action(
                            game, deck, seat, weights, hidden, sight, obs, work, logits
                        )
                    elif bot == FROZEN:
                        picked[seat] = network_action(
                            game, deck, seat, frozen, frozen_hidden, sight, obs, work, logits
                        )
                    else:
                        picked[seat] = bot_action(game, deck, seat, bot, determinisations, tools)
            for seat in range(np.int64(game["players"])):
                if picked[seat] >= 0:
                    act(game, deck, seat, picked[seat])
                    if not in_card_phase:
                        break
            advance(game, deck)
        shares[g] = win_share(game, seats[g])
        points[g] = relative_points(game, seats[g])


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


def duel(
    weights: NDArray[np.float32],
    hidden: int,
    decks: NDArray[np.void],
    players: int = 2,
    rules: str = "base",
    games: int = 1000,
    seed: int = 0,
    bot: int = GREEDY,
    determinisations: int = 30,
    frozen: NDArray[np.float32] | None = None,
    stream: int = 1,
) -> Outcome:
    """Play a network against a compiled bot, or against `frozen`, the weights of another, both by
    their best actions.

    Every deal is played once from each seat, decks in turn. `seed` and `stream` make the deals:
    1 for a quick look during training. Reported strengths come from the arena.
    """
    deals = max(1, games // players)
    seeds = np.random.default_rng([seed, stream]).integers(0, 2**53, deals)
    index = np.repeat(np.arange(deals) % len(decks), players)
    batch = new_games(np.repeat(seeds, players), decks, players, rules, index)
    seats = np.tile(np.arange(players), deals)
    shares, points = np.zeros(len(batch), np.float32), np.zeros(len(batch), np.float32)
    _duel(
        batch,
        decks,
        seats,
        weights,
        hidden,
        bot if frozen is None else FROZEN,
        *_network(frozen),
        determinisations,
        shares,
        points,
        tools(),
    )
    return Outcome(shares.reshape(deals, players), points.reshape(deals, players))
