"""Gymnasium: one learner at the table, all other seats played by bots.

A step is one decision of the learner; the bots' decisions and everything forced happen before it
returns, and the reward is what the learner got for all of that. The observation is the float32
vector [OBS]; the legal actions are in `info["action_mask"]` and `action_masks()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from oxx_env.envs.match import METADATA, Match, ResetNeeded, action_space, observation_box
from oxx_env.game.cards import DeckSpec
from oxx_env.game.observe import OBS
from oxx_env.game.rules import ACTIONS, PASS
from oxx_env.game.table import check_seat
from oxx_env.game.views import View
from oxx_env.lib.seeding import bot_rng

_NO_OBS = np.empty((0, OBS), np.float32)


class BaronOxxSingle(gymnasium.Env[NDArray[np.float32], int]):
    """6 nimmt! Baron Oxx for one learner against bots.

    num_players  2 to 10, the learner included
    seat         the learner's, 0 to num_players - 1
    opponents    who plays the other seats in their order, as specifications (`bots.make`) or
                 objects with `act(view, rng) -> action`; the last one fills the table

    For the other arguments see `Match`. Raises ValueError for an argument that is out of range or
    unknown; IllegalAction for an action that is not legal, unless they are substituted.

    >>> env = BaronOxxSingle()
    >>> observation, info = env.reset(seed=1)
    >>> info["action_mask"].tolist()
    [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    """

    metadata: dict[str, Any] = {**METADATA}  # noqa: RUF012

    def __init__(
        self,
        num_players: int = 2,
        seat: int = 0,
        opponents: str | Sequence[Any] = ("greedy",),
        rules: str = "base",
        deck: DeckSpec = "balanced",
        games_per_match: int = 1,
        reward: str = "points",
        illegal_action: str = "raise",
        render_mode: str | None = None,
    ) -> None:
        self.match = Match(
            num_players, rules, deck, games_per_match, reward, illegal_action, render_mode
        )
        self.render_mode = render_mode
        self.seat = check_seat(seat, self.match.players)
        players = self.match.players
        bots = make_bots(opponents, players - 1)
        others = [other for other in range(players) if other != self.seat]
        self.bots = dict(zip(others, bots, strict=True))  # seat -> bot
        self._rngs: dict[int, np.random.Generator] = {}
        self.observation_space = observation_box()
        self.action_space = action_space()
        self._masks = np.empty((players, ACTIONS), np.int8)
        self._owed = 0.0  # reward of what happened between the start and its first decision
        self._drawn: dict[int, Any] = {}  # of bots asked in this step, their generators' states
        self._rewards = np.empty(players)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start a match; a seed given also decides the matches of later resets without one.

        For the options see the parallel environment's `reset`. From a start in mid-game the bots
        play on until the learner decides; what it gets for that comes with its first step. Returns
        observation and info. Raises ValueError for a start from which it never decides.
        """
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(1 << 53))
        self.match.deal(seed, options)
        self._rngs = {seat: bot_rng(self.match.seed, 0, 0, seat) for seat in self.bots}
        self._masks, self._owed = self.match.masks(), 0.0
        while self._masks[self.seat, PASS]:  # not after a deal: all seats have four cards
            more, over = self._decide(PASS)
            self._owed += more
            if over:
                self.match.table.clear()
                raise ValueError(f"seat {self.seat} decides nothing any more from this start")
        if self.render_mode == "human":
            self.render()
        observation, mask = self.match.observe(self.seat)
        return observation, {"action_mask": mask}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """The learner decides; the rest happens until it decides again or the match is over.

        Returns observation, reward, terminated, truncated (never) and info, which holds the mask
        and, at the end, `scores`, `ranks` and `winners`. Raises IllegalAction, a ValueError, for an
        action that is no integer or not legal; ResetNeeded before `reset` and after the end.
        Whatever it raises, also what a bot raises and Ctrl-C, nothing has happened: the next step
        asks the bots again, with the same generators.
        """
        match, seat = self.match, self.seat
        match.check_dealt("step()")
        if match.table.over:
            raise ResetNeeded("step() after the end of the match: call reset() first")
        number = match.as_action(seat, action)
        legal = number < ACTIONS and self._masks[seat, number]
        if not legal and match.illegal_action == "raise":
            raise match.illegal(seat, number)
        mark, owed = match.mark(), self._owed
        self._drawn = {}
        try:
            if legal:
                reward, over = self._decide(number)
            elif match.illegal_action == "substitute":
                reward, over = self._decide(match.substitute(seat))
            else:
                match.terminate([seat], _NO_OBS, self._masks, self._rewards)
                reward, over = float(self._rewards[seat]), True
            while not over and self._masks[seat, PASS]:
                more, over = self._decide(PASS)
                reward += more
            if self.render_mode == "human":
                self.render()
            observation, mask = match.observe(seat)
            info: dict[str, Any] = {"action_mask": mask}
            if over:
                info |= match.results()[seat]
            self._owed = 0.0
            return observation, reward + owed, over, False, info
        except BaseException:
            match.undo(mark)
            self._owed = owed
            for bot, state in self._drawn.items():
                self._rngs[bot].bit_generator.state = state
            self._masks = match.masks()
            raise

    def _decide(self, action: int) -> tuple[float, bool]:
        """One decision point: the learner's action and the bots'. Its reward; is the match over?"""
        actions = bytearray([PASS]) * self.match.players
        actions[self.seat] = action
        for seat, bot in self.bots.items():
            if not self._masks[seat, PASS]:
                actions[seat] = self._ask(seat, bot)
        over = self.match.step(bytes(actions), 0, _NO_OBS, self._masks, self._rewards)
        return float(self._rewards[self.seat]), over

    def _ask(self, seat: int, bot: Any) -> int:
        if seat not in self._drawn:
            self._drawn[seat] = self._rngs[seat].bit_generator.state
        action = bot.act(self.match.view(seat), self._rngs[seat])
        name = f"bot {getattr(bot, 'spec', bot)} at player_"
        number = self.match.as_action(seat, action, name)
        if number >= ACTIONS or not self._masks[seat, number]:
            raise self.match.illegal(seat, action, name)
        return number

    def action_masks(self) -> NDArray[np.bool_]:
        """The learner's legal actions, bool [10]; pass alone after the end."""
        self.match.check_dealt("action_masks()")
        return self._masks[self.seat].astype(np.bool_)

    def view(self) -> View:
        """What the learner knows."""
        return self.match.view(self.seat)

    def records(self) -> list[dict[str, Any]]:
        """The finished games of the match as records (`oxx-game/1`)."""
        return self.match.records()

    def render(self) -> Any:
        """The table as the learner sees it: text for `ansi`, uint8 [H, W, 3] for `rgb_array`."""
        return self.match.render(self.seat)

    def close(self) -> None:
        """Close the window of `human`."""
        self.match.close()


def make_bots(opponents: Any, count: int) -> list[Any]:
    """Bots for `count` seats: specifications or objects with `act`; the last one fills the rest.

    A specification that fills several seats gives each a bot of its own. Raises ValueError for none
    or too many of them, for an unknown one and for one that must see hidden cards.
    """
    if not isinstance(opponents, list | tuple):
        opponents = (opponents,)
    if not 1 <= len(opponents) <= count:
        raise ValueError(f"{len(opponents)} opponents for {count} seats: name 1 to {count} of them")
    from oxx_env import bots

    filled = [*opponents, *[opponents[-1]] * (count - len(opponents))]
    made = [bots.make(spec) if isinstance(spec, str) else spec for spec in filled]
    for bot in made:
        if not callable(getattr(bot, "act", None)):
            raise ValueError(f"opponent {bot!r} is no bot: it lacks act(view, rng)")
        if getattr(bot, "needs_state", False):
            spec = getattr(bot, "spec", bot)
            raise ValueError(f"opponent {spec!r} sees hidden cards; only the arena serves it")
    return made
