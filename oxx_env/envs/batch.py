"""A batch of games with one learner each: what `vector` and `gym_vector` have in common.

The games lie in one array and are stepped by compiled code; opponents `random` and `greedy` are
compiled too, others are asked one view at a time. Tables of different sizes, rule sets and decks
may lie side by side, since observation and actions are the same for all. A match that is over is
followed by a new one in the same step.

A step works on a copy of the games and puts it in place when all is done: after an exception, also
Ctrl-C, the games are as before.

Axes: B environments, P seats, A actions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oxx_env.envs import kernels
from oxx_env.envs.match import (
    ILLEGAL_ACTION,
    SUBSTITUTES,
    IllegalAction,
    ResetNeeded,
    illegal_text,
    one_of,
)
from oxx_env.envs.single import make_bots
from oxx_env.game import cards, engine, scoring
from oxx_env.game.observe import OBS
from oxx_env.game.rules import ACTIONS, DECK, GAME, MAX_PLAYERS, RULE_SETS, deck_record
from oxx_env.game.table import MAX_SEED, as_integer, check_games, check_seat, check_seed
from oxx_env.game.views import View
from oxx_env.lib.seeding import bot_rng

T = TypeVar("T")

RENDER_MODES = ("rgb_array",)
WIDEST = 2000  # pixels that the pictures of all tables are wide, in as many columns as rows


@dataclass(frozen=True)
class Final:
    """The end of one environment's match.

    observation, mask  the learner's last ones, [OBS] and [A]
    results            `scores`, `ranks`, `winners` and, where it ended so, `illegal`
    total, length      sum of its rewards (unscaled), and the learner's decisions
    """

    observation: NDArray[np.float32]
    mask: NDArray[np.int8]
    results: dict[str, Any]
    total: float
    length: int


@dataclass(frozen=True)
class Step:
    """What a step gave, in new arrays.

    observations  float32 [B, OBS], where a match is over those of the new one
    masks         int8 [B, A], likewise
    rewards       float64 [B]
    dones         bool [B]: is the match over?
    finals        environment -> the end of its match
    """

    observations: NDArray[np.float32]
    masks: NDArray[np.int8]
    rewards: NDArray[np.float64]
    dones: NDArray[np.bool_]
    finals: dict[int, Final]


class Batch:
    """`size` environments. The arguments, ten because an environment has as many, are explained in
    `vector.BaronOxxVecEnv`. Raises ValueError for one that is out of range or unknown."""

    def __init__(
        self,
        num_envs: int,
        players: int | Sequence[int],
        rules: str | Sequence[str],
        deck: Any,
        opponents: str | Sequence[Any],
        seat: int,
        games_per_match: int,
        reward: str,
        illegal_action: str,
        render_mode: str | None,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)):
            raise ValueError(f"num_envs must be an integer, not {num_envs!r}")
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, not {num_envs}")
        sizes = [engine.check_players(size) for size in _several(players)]
        flags = [engine.rule_flags(name) for name in _several(rules)]
        decks = _several(deck)
        seat = check_seat(seat, min(sizes))
        self.games_per_match = check_games(games_per_match)
        self.reward = one_of("reward", reward, kernels.REWARDS)
        one_of("illegal_action", illegal_action, ILLEGAL_ACTION)
        self.illegal_action = illegal_action
        if render_mode is not None:
            one_of("render_mode", render_mode, RENDER_MODES)
        self.render_mode = render_mode

        kinds = list(itertools.product(sizes, flags, range(len(decks))))
        kinds = [kinds[i % len(kinds)] for i in range(int(num_envs))]
        self.size = len(kinds)
        self.players = np.array([kind[0] for kind in kinds])
        self.rules = np.array([kind[1] for kind in kinds])  # flags
        self.deck_specs = [decks[kind[2]] for kind in kinds]
        self._lay_out_decks(decks, [kind[2] for kind in kinds])
        self.seats = np.full(self.size, seat, np.int64)  # [B] the learners'
        self._set_opponents(opponents, sizes, seat)

        self.dealt = False
        self._games: NDArray[np.void] = np.zeros(self.size, GAME)
        self._spare: NDArray[np.void] = np.zeros(self.size, GAME)  # where the next step works
        self._masks = np.zeros((self.size, ACTIONS), np.int8)
        self._rewards = np.empty((self.size, MAX_PLAYERS))
        self._totals = np.zeros(self.size)
        self._lengths = np.zeros(self.size, np.int64)
        self._source = np.random.default_rng()  # seeds of resets that are given none
        self._substitutes = np.random.default_rng()
        self._deck_rngs: list[np.random.Generator] = []
        self._bot_rngs: dict[tuple[int, int], np.random.Generator] = {}
        # Of generators used in the running step, their states before; likewise decks.
        self._drawn: dict[Any, tuple[np.random.Generator, Any]] = {}
        self._replaced: dict[int, NDArray[np.void]] = {}

    # --- setting up ---

    def _lay_out_decks(self, decks: list[Any], kinds: list[int]) -> None:
        """DECKS [D], and each game's index: fixed decks once, one place for each made deck."""
        table: list[NDArray[np.void]] = []
        shared: dict[int, int] = {}
        index = []
        for kind in kinds:
            if kind in shared:
                index.append(shared[kind])
                continue
            index.append(len(table))
            if callable(decks[kind]):
                table.append(np.zeros(1, DECK))  # see `_make_decks`
            else:
                shared[kind] = len(table)
                table.append(deck_record(cards.load_deck(decks[kind])))
        self._decks = np.concatenate(table)
        self._deck_index = np.array(index)

    def _set_opponents(self, opponents: Any, sizes: list[int], seat: int) -> None:
        """POLICIES [B, P] for compiled code; the bots of Python by (game, seat)."""
        most = make_bots(opponents, max(sizes) - 1)
        self._policies = np.full((self.size, MAX_PLAYERS), kernels.OUTSIDE, np.int64)
        self._bots: dict[tuple[int, int], Any] = {}
        given = _several(opponents)
        specs = [*given, *[given[-1]] * (len(most) - len(given))]
        for g, size in enumerate(self.players.tolist()):
            others = [other for other in range(size) if other != seat]
            for other, spec, bot in zip(others, specs, most, strict=False):
                if isinstance(spec, str) and spec in engine.POLICIES:
                    self._policies[g, other] = engine.POLICIES.index(spec)
                else:
                    self._bots[g, other] = bot

    # --- playing ---

    def reset(self, given: Sequence[int | None]) -> NDArray[np.float32]:
        """Start a new match everywhere: environment i by the seed `given[i]`; seeds given also
        decide the deals of later resets without. Returns observations [B, OBS]."""
        chosen = [seed for seed in given if seed is not None]
        if chosen:
            self._source = np.random.default_rng(chosen)
        seeds = self._source.integers(1 << 53, size=self.size, dtype=np.uint64)
        for g, seed in enumerate(given):
            if seed is not None:
                seeds[g] = seed
        self._deck_rngs = [np.random.default_rng(seed) for seed in seeds.tolist()]
        self._substitutes = np.random.default_rng([int(seeds[0]), SUBSTITUTES])
        self._bot_rngs = {(g, seat): bot_rng(int(seeds[g]), 0, 0, seat) for g, seat in self._bots}
        self._make_decks(range(self.size))
        self._games = engine.new_games(
            seeds, self._decks, self.players, self.rules, self._deck_index, self.games_per_match
        )
        self._totals, self._lengths = np.zeros(self.size), np.zeros(self.size, np.int64)
        obs = np.empty((self.size, OBS), np.float32)
        self._observe(self._games, np.arange(self.size), obs, self._masks)
        self.dealt = True
        return obs

    def step(self, actions: NDArray[np.integer[Any]], convert: Callable[[Step], T]) -> T:
        """The learners do `actions` [B], integers; all plays on until each decides again.

        Returns what `convert` makes of the `Step`; an exception in it undoes the step.
        Raises IllegalAction, a ValueError, for an action that is not legal, ResetNeeded before
        `reset`, and what a bot raises. Whatever it raises, nothing has happened.
        """
        self.check_dealt("step()")
        before = self._games, self._spare, self._masks, self._totals, self._lengths
        games, new = self._games, self._spare
        self._drawn, self._replaced = {}, {}
        try:
            new.view(np.uint8)[:] = games.view(np.uint8)
            illegal = self._begin(new, actions)
            self._play_on(new)
            everywhere = np.arange(self.size)
            obs = np.empty((self.size, OBS), np.float32)
            dones = np.empty(self.size, np.bool_)
            masks = np.empty_like(self._masks)
            kernels.end_batch(new, self.reward, self._rewards, dones)
            self._observe(new, everywhere, obs, masks)
            rewards = self._rewards[everywhere, self.seats]
            totals, lengths = self._totals + rewards, self._lengths + 1
            over = np.flatnonzero(dones)
            finals = {
                g: Final(
                    obs[g].copy(),
                    masks[g].copy(),
                    self._results(new[g], [int(self.seats[g])] if illegal[g] else []),
                    float(totals[g]),
                    int(lengths[g]),
                )
                for g in over.tolist()
            }
            if over.size:
                self._make_decks(over.tolist())
                kernels.restart_batch(new, self._decks, over)
                self._observe(new, over, obs, masks)
                totals[over], lengths[over] = 0, 0
            result = convert(Step(obs, masks.copy(), rewards, dones, finals))
            self._games, self._spare, self._masks = new, games, masks
            self._totals, self._lengths = totals, lengths
            return result
        except BaseException:
            self._games, self._spare, self._masks, self._totals, self._lengths = before
            for generator, state in self._drawn.values():
                generator.bit_generator.state = state
            for index, deck in self._replaced.items():
                self._decks[index] = deck
            raise

    def _begin(
        self, games: NDArray[np.void], actions: NDArray[np.integer[Any]]
    ) -> NDArray[np.bool_]:
        """The learners' own decisions. Where was the action illegal and ended the match? [B]"""
        chosen = actions.astype(np.int64)
        illegal = np.zeros(self.size, np.bool_)
        while True:
            g = kernels.begin_batch(games, self._decks, self.seats, chosen, illegal, self._rewards)
            if g == self.size:
                return illegal
            if self.illegal_action == "terminate":
                illegal[g] = True
                continue
            legal = np.flatnonzero(self._masks[g]).tolist()
            if self.illegal_action == "raise":
                text = illegal_text(f"player_{self.seats[g]}", int(chosen[g]), legal)
                raise IllegalAction(f"environment {g}: {text}")
            self._uses("substitutes", self._substitutes)
            chosen[g] = legal[int(self._substitutes.integers(len(legal)))]

    def _play_on(self, games: NDArray[np.void]) -> None:
        """All opponents, until each learner decides again."""
        kernels.answer_batch(games, self._decks, self._policies)
        while self._bots and self._ask_bots(games):
            kernels.answer_batch(games, self._decks, self._policies)

    def _ask_bots(self, games: NDArray[np.void]) -> bool:
        """One decision of each bot in Python that has one now; was there any?"""
        asked: list[tuple[int, int, int]] = []
        for (g, seat), bot in self._bots.items():
            if kernels.must_decide(games, g, seat):
                view, rng = self._view(games, g, seat), self._bot_rngs[g, seat]
                self._uses((g, seat), rng)
                action = bot.act(view, rng)
                number = as_integer(action)
                if number is None or number not in view.legal:
                    name = f"bot {getattr(bot, 'spec', bot)} at player_{seat}"
                    text = illegal_text(name, action, view.legal)
                    raise IllegalAction(f"environment {g}: {text}")
                asked.append((g, seat, number))
        for g, seat, number in asked:
            kernels.act_in_batch(games, self._decks, g, seat, number)
        return bool(asked)

    def _uses(self, name: Any, generator: np.random.Generator) -> None:
        """Before the running step draws from a generator for the first time: keep its state."""
        if name not in self._drawn:
            self._drawn[name] = generator, generator.bit_generator.state

    def _make_decks(self, which: Iterable[int]) -> None:
        """The decks of the next matches, where they are made by a function."""
        for g in which:
            spec = self.deck_specs[g]
            if callable(spec):
                index = int(self._deck_index[g])
                self._uses(("deck", g), self._deck_rngs[g])
                self._replaced.setdefault(index, self._decks[index : index + 1].copy()[0])
                self._decks[index] = deck_record(cards.resolve(spec, self._deck_rngs[g]))[0]

    def _results(self, game: np.void, illegal: list[int]) -> dict[str, Any]:
        points = (game["match_points"].astype(np.int64) + game["points"])[: int(game["players"])]
        places = scoring.ranks(points, RULE_SETS[game["rules"]])
        return {
            "scores": points.tolist(),
            "ranks": places,
            "winners": [seat for seat, place in enumerate(places) if place == 1],
            **({"illegal": illegal} if illegal else {}),
        }

    # --- looking ---

    def _observe(
        self,
        games: NDArray[np.void],
        which: NDArray[np.int64],
        obs: NDArray[np.float32],
        masks: NDArray[np.int8],
    ) -> None:
        kernels.observe_batch(games, self._decks, self.seats, which, obs, masks)

    def masks(self) -> NDArray[np.int8]:
        """The learners' legal actions, int8 [B, A], a new array. Raises ResetNeeded before
        `reset`."""
        self.check_dealt("action_masks()")
        return self._masks.copy()

    def view(self, index: int, seat: int | None = None) -> View:
        """What a seat (the learner, if not given) of one environment knows; without a history.

        Raises IndexError for an environment that is not there (they count from 0), ValueError for
        a seat that is not at its table."""
        self.check_dealt("view()")
        if not 0 <= index < self.size:
            raise IndexError(f"environment {index}: should be 0 to {self.size - 1}")
        players = int(self._games["players"][index])
        seat = int(self.seats[index]) if seat is None else check_seat(seat, players)
        return self._view(self._games, index, seat)

    def _view(self, games: NDArray[np.void], index: int, seat: int) -> View:
        at, spec = int(self._deck_index[index]), self.deck_specs[index]
        decks = self._decks[at : at + 1]
        if callable(spec):  # the next match has another one
            decks = decks.copy()
        return View.of(games[index : index + 1], decks, seat, cards.deck_name(spec))

    def images(self) -> list[NDArray[np.uint8]]:
        """A picture of each table as its learner sees it, uint8 [height, width, 3], all of one
        size: a grid of them is at most WIDEST pixels wide, as far as they can still be read."""
        self.check_dealt("render()")
        from oxx_env.show import render

        columns = math.ceil(math.sqrt(self.size))
        width = min(max(WIDEST // columns, 200), render.WIDTH) // 20 * 20  # even, for films
        return [render.rgb_array(self.view(g), width=width) for g in range(self.size)]

    def check_dealt(self, what: str) -> None:
        """Raises ResetNeeded before the first deal."""
        if not self.dealt:
            raise ResetNeeded(f"{what} before the first deal: call reset() first")


class BatchEnv:
    """What the environments made of a batch have in common."""

    batch: Batch

    def action_masks(self) -> NDArray[np.bool_]:
        """The learners' legal actions, bool [B, 10]. Raises ResetNeeded before `reset`."""
        return self.batch.masks().astype(np.bool_)

    def view(self, index: int, seat: int | None = None) -> View:
        """What a seat (the learner, if not given) of one environment knows; without a history."""
        return self.batch.view(index, seat)


def seeds_from(seed: Any, size: int) -> list[int | None]:
    """The seeds of `size` environments, the i-th seed + i. Raises ValueError."""
    if check_seed(seed) > MAX_SEED - size:
        raise ValueError(f"the seed must be from 0 to 2**64-2 - {size}, not {seed}")
    return [int(seed) + g for g in range(size)]


def check_actions(actions: Any, size: int) -> NDArray[np.integer[Any]]:
    """One integer for each environment, [B]. Raises IllegalAction."""
    actions = np.asarray(actions)
    if actions.dtype.kind not in "iu" or actions.size != size:
        raise IllegalAction(
            f"actions must be {size} integers, one for each environment, not an array "
            f"of {actions.dtype} with shape {actions.shape}"
        )
    return actions.reshape(-1)


def _several(value: Any) -> list[Any]:
    """A list as it is, one value as a list of one. Raises ValueError for an empty one."""
    if not isinstance(value, list | tuple):
        return [value]
    if not value:
        raise ValueError("name at least one number of players, rule set and deck")
    return list(value)
