"""A batch of games for stable-baselines3: one environment = one game with one learning seat.

The games lie in one array and are stepped by compiled code; opponents `random` and `greedy` are
compiled too, others are asked one view at a time. Tables of different sizes, rule sets and decks
may lie side by side, since observation and actions are the same for all. This is the only module of
the environments that needs stable-baselines3 (`pip install 'oxx_env[train]'`).

    from sb3_contrib import MaskablePPO
    from oxx_env.envs.vector import BaronOxxVecEnv

    envs = BaronOxxVecEnv(256, players=(2, 3, 4), opponents=("greedy",), reward="relative", seed=1)
    MaskablePPO("MlpPolicy", envs, n_steps=64).learn(1_000_000)
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from oxx_env import cards, engine
from oxx_env.envs import kernels
from oxx_env.envs.match import (
    ILLEGAL_ACTION,
    SUBSTITUTES,
    IllegalAction,
    ResetNeeded,
    action_space,
    illegal_text,
    observation_box,
    one_of,
)
from oxx_env.envs.single import check_seat, make_bots
from oxx_env.observe import OBS
from oxx_env.rules import ACTIONS, DECK, GAME, MAX_PLAYERS, RULE_SETS, deck_record
from oxx_env.seeding import bot_rng
from oxx_env.table import MAX_SEED, check_games, check_seed, ranks
from oxx_env.views import View


class BaronOxxVecEnv(VecEnv):
    """`num_envs` games, each with one learner; a finished match is followed by a new one.

    players, rules, deck  one value, or a sequence of them: the environments go through all
                          combinations in turn (the deck changes fastest). A function
                          `rng -> deck` gives each match its own; a deck of nested lists goes
                          into an array first
    opponents             specifications or objects with `act(view, rng) -> action`, for the other
                          seats in their order; the last one fills the table, a smaller table has
                          the first ones
    seat                  the learner's
    reward, reward_scale  `points`, `relative` or `win` (see `envs.match.Match`), times the scale
    illegal_action        `raise` or `substitute`
    seed                  environment i starts with the deal of seed + i; None draws the seeds

    The observation is the float32 vector [OBS]; the legal actions are `action_masks()`. The info of
    a match's last step holds `terminal_observation`, `scores`, `ranks`, `winners` and `episode`
    (`r`: sum of rewards, `l`: decisions, `t`: seconds). Chance in compiled opponents and new deals
    come from each game's own stream: the same seed and actions give the same matches.

    Raises ValueError for an argument that is out of range or unknown.
    """

    def __init__(
        self,
        num_envs: int = 64,
        players: int | Sequence[int] = 2,
        rules: str | Sequence[str] = "base",
        deck: Any = "balanced",
        opponents: str | Sequence[Any] = ("greedy",),
        seat: int = 0,
        games_per_match: int = 1,
        reward: str = "points",
        reward_scale: float = 1.0,
        illegal_action: str = "raise",
        seed: int | None = None,
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
        self.reward_scale = _scale(reward_scale)
        self.substitutes = bool(one_of("illegal_action", illegal_action, ILLEGAL_ACTION[:2]))

        kinds = list(itertools.product(sizes, flags, range(len(decks))))
        kinds = [kinds[i % len(kinds)] for i in range(int(num_envs))]
        self._players = np.array([kind[0] for kind in kinds])
        self._rules = np.array([kind[1] for kind in kinds])
        self._deck_specs = [decks[kind[2]] for kind in kinds]
        self._lay_out_decks(decks, [kind[2] for kind in kinds])
        self._seats = np.full(len(kinds), seat, np.int64)  # [B] the learners'
        self._set_opponents(opponents, sizes, seat)

        batch = len(kinds)
        self._games: NDArray[np.void] = np.zeros(batch, GAME)
        self._rewards = np.empty((batch, MAX_PLAYERS))
        self._masks = np.zeros((batch, ACTIONS), np.int8)
        self._actions = np.zeros(batch, np.int64)
        self._returns = np.zeros(batch)
        self._lengths = np.zeros(batch, np.int64)
        self._started = time.time()
        self._dealt = False
        self._source = np.random.default_rng()  # seeds of resets that are given none
        self._substitutes = np.random.default_rng()
        self._deck_rngs: list[np.random.Generator] = []
        self._bot_rngs: list[dict[int, np.random.Generator]] = []
        super().__init__(batch, observation_box(), action_space())
        if seed is not None:
            self.seed(seed)

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
        batch = len(self._players)
        self._policies = np.full((batch, MAX_PLAYERS), kernels.OUTSIDE, np.int64)
        self._bots: dict[tuple[int, int], Any] = {}
        given = _several(opponents)
        specs = [*given, *[given[-1]] * (len(most) - len(given))]
        for g, size in enumerate(self._players.tolist()):
            others = [other for other in range(size) if other != seat]
            for other, spec, bot in zip(others, specs, most, strict=False):
                if isinstance(spec, str) and spec in engine.POLICIES:
                    self._policies[g, other] = engine.POLICIES.index(spec)
                else:
                    self._bots[g, other] = bot

    # --- stable-baselines3's VecEnv ---

    def reset(self) -> NDArray[np.float32]:
        """Start a new match everywhere, by the seeds of `seed()`; seeds given also decide the
        deals of later resets without. Options are ignored."""
        batch = self.num_envs
        given = [seed for seed in self._seeds if seed is not None]
        if given:
            self._source = np.random.default_rng(given)
        seeds = self._source.integers(1 << 53, size=batch, dtype=np.uint64)
        for g, seed in enumerate(self._seeds):
            if seed is not None:
                seeds[g] = seed
        self._deck_rngs = [np.random.default_rng(seed) for seed in seeds.tolist()]
        self._substitutes = np.random.default_rng([int(seeds[0]), SUBSTITUTES])
        self._bot_rngs = [{} for _ in range(batch)]
        for g, seat in self._bots:
            self._bot_rngs[g][seat] = bot_rng(int(seeds[g]), 0, 0, seat)
        self._make_decks(range(batch))
        self._games = engine.new_games(
            seeds, self._decks, self._players, self._rules, self._deck_index, self.games_per_match
        )
        self._returns[:] = 0
        self._lengths[:] = 0
        self._dealt = True
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(batch)]
        obs = np.empty((batch, OBS), np.float32)
        self._observe(np.arange(batch), obs)
        return obs

    def step_async(self, actions: NDArray[np.integer[Any]]) -> None:
        """Take the learners' actions [B]; `step_wait` plays them."""
        actions = np.asarray(actions)
        if actions.dtype.kind not in "iu" or actions.size != self.num_envs:
            raise IllegalAction(
                f"actions must be {self.num_envs} integers, one for each environment, not an array "
                f"of {actions.dtype} with shape {actions.shape}"
            )
        self._actions = actions.reshape(-1).astype(np.int64)

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Play until each learner decides again.

        Returns observations [B, OBS], rewards float32 [B], dones [B] and infos, new arrays each
        time. Raises IllegalAction, a ValueError, for an action that is not legal; then nothing has
        happened. Raises ResetNeeded before `reset`.
        """
        if not self._dealt:
            raise ResetNeeded("step() before the first deal: call reset() first")
        batch = self.num_envs
        games, decks, seats = self._games, self._decks, self._seats
        while True:
            g = kernels.begin_batch(games, decks, seats, self._actions, self._rewards)
            if g == batch:
                break
            legal = np.flatnonzero(self._masks[g]).tolist()
            if not self.substitutes:
                text = illegal_text(f"player_{seats[g]}", int(self._actions[g]), legal)
                raise IllegalAction(f"environment {g}: {text}")
            self._actions[g] = legal[int(self._substitutes.integers(len(legal)))]
        kernels.answer_batch(games, decks, self._policies)
        if self._bots:
            while self._ask_bots():
                kernels.answer_batch(games, decks, self._policies)
        obs = np.empty((batch, OBS), np.float32)
        dones = np.empty(batch, np.bool_)
        kernels.end_batch(games, self.reward, self._rewards, dones)
        self._observe(np.arange(batch), obs)
        rewards = self._rewards[np.arange(batch), seats] * self.reward_scale
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(batch)]
        over = np.flatnonzero(dones)
        if over.size:
            for g in over.tolist():
                infos[g] = self._last_info(g, obs[g].copy())
            self._make_decks(over.tolist())
            kernels.restart_batch(games, decks, over)
            self._observe(over, obs)
            self._returns[over] = 0
            self._lengths[over] = 0
        return obs, rewards.astype(np.float32), dones, infos

    def _observe(self, which: NDArray[np.int64], obs: NDArray[np.float32]) -> None:
        kernels.observe_batch(self._games, self._decks, self._seats, which, obs, self._masks)

    def _ask_bots(self) -> bool:
        """One decision of each bot in Python that has one now; was there any?"""
        asked: list[tuple[int, int, int]] = []
        for (g, seat), bot in self._bots.items():
            if kernels.must_decide(self._games, g, seat):
                view = self.view(g, seat)
                action = bot.act(view, self._bot_rngs[g][seat])
                if action not in view.legal:
                    name = f"bot {getattr(bot, 'spec', bot)} at player_{seat}"
                    text = illegal_text(name, action, view.legal)
                    raise IllegalAction(f"environment {g}: {text}")
                asked.append((g, seat, int(action)))
        for g, seat, action in asked:
            kernels.act_in_batch(self._games, self._decks, g, seat, action)
        return bool(asked)

    def _make_decks(self, which: Iterable[int]) -> None:
        """The decks of the next matches, where they are made by a function."""
        for g in which:
            spec = self._deck_specs[g]
            if callable(spec):
                deck = cards.resolve(spec, self._deck_rngs[g])
                self._decks[self._deck_index[g]] = deck_record(deck)[0]

    def _last_info(self, g: int, observation: NDArray[np.float32]) -> dict[str, Any]:
        game = self._games[g]
        points = (game["match_points"].astype(np.int64) + game["points"])[: int(game["players"])]
        places = ranks(points, RULE_SETS[game["rules"]])
        return {
            "terminal_observation": observation,
            "TimeLimit.truncated": False,
            "scores": points.tolist(),
            "ranks": places,
            "winners": [seat for seat, place in enumerate(places) if place == 1],
            "episode": {
                "r": float(self._returns[g]),
                "l": int(self._lengths[g]),
                "t": round(time.time() - self._started, 6),
            },
        }

    def action_masks(self) -> NDArray[np.bool_]:
        """The learners' legal actions, bool [B, 10]."""
        return self._masks.astype(np.bool_)

    def view(self, index: int, seat: int | None = None) -> View:
        """What a seat (the learner, if not given) of one environment knows; without a history."""
        if not self._dealt:
            raise ResetNeeded("view() before the first deal: call reset() first")
        at = int(self._deck_index[index])
        return View.of(
            self._games[index : index + 1],
            self._decks[at : at + 1],
            int(self._seats[index]) if seat is None else seat,
            cards.deck_name(self._deck_specs[index]),
        )

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """At the next reset environment i starts with the deal of seed + i. None draws one."""
        if seed is not None and check_seed(seed) > MAX_SEED - self.num_envs:
            raise ValueError(f"the seed must be from 0 to 2**64-2 - {self.num_envs}, not {seed}")
        return super().seed(seed)

    def close(self) -> None:
        """Nothing is held that would have to be closed."""

    def has_attr(self, attr_name: str) -> bool:
        """Also of methods that `env_method` serves."""
        return attr_name in ("action_masks", "view") or super().has_attr(attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Of each environment: `players`, `rules`, `deck`, `seat`, or what all have in common."""
        chosen = list(self._get_indices(indices))
        own = {
            "players": self._players.tolist(),
            "rules": [RULE_SETS[flags] for flags in self._rules],
            "deck": [cards.deck_name(spec) for spec in self._deck_specs],
            "seat": self._seats.tolist(),
            "render_mode": [None] * len(self._seats),
        }
        if attr_name in own:
            return [own[attr_name][index] for index in chosen]
        if attr_name.startswith("_") or attr_name not in (
            "games_per_match",
            "reward_scale",
            "spec",
        ):
            raise AttributeError(f"the environments have no attribute {attr_name!r}")
        return [getattr(self, attr_name, None)] * len(chosen)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Not possible: what an environment is does not change. Raises AttributeError."""
        raise AttributeError(f"{attr_name} cannot be set: make a new {type(self).__name__}")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """`action_masks` (bool [10] each) or `view` of the environments `indices`."""
        chosen = list(self._get_indices(indices))
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[index] for index in chosen]
        if method_name == "view":
            return [self.view(index, *method_args, **method_kwargs) for index in chosen]
        raise AttributeError(f"the environments have no method {method_name!r}")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """None of them is."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> list[Any]:
        """No pictures: render a `view` instead."""
        return [None] * self.num_envs


def _scale(value: Any) -> float:
    try:
        scale = float(value)
    except (TypeError, ValueError, OverflowError):
        scale = math.nan
    if isinstance(value, str) or not math.isfinite(scale):
        raise ValueError(f"reward_scale must be a finite number, not {value!r}")
    return scale


def _several(value: Any) -> list[Any]:
    """A list as it is, one value as a list of one. Raises ValueError for an empty one."""
    if not isinstance(value, list | tuple):
        return [value]
    if not value:
        raise ValueError("name at least one number of players, rule set and deck")
    return list(value)
