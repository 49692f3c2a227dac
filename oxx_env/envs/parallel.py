"""PettingZoo's ParallelEnv: every seat acts in every step, waiting ones pass.

A step is one decision point of the table. In the card phase all seats with two or more cards pick
at once; at a row choice one seat decides and all others pass (action 9). Whatever is forced has
already happened when `step` returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from oxx_env.envs.match import (
    METADATA,
    IllegalAction,
    Match,
    ResetNeeded,
    action_space,
    mask_box,
    observation_box,
)
from oxx_env.game.cards import DeckSpec
from oxx_env.game.observe import HIGH, LOW, OBS
from oxx_env.game.rules import ACTIONS, PASS
from oxx_env.game.views import View

Observation = dict[str, NDArray[Any]]


class Seats:
    """The agents' names, their spaces, and what can be asked of them; for both PettingZoo APIs."""

    def __init__(
        self,
        num_players: int = 4,
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
        players = self.match.players
        self._rewards = np.empty(players)  # [P], written anew by each step
        self.possible_agents = [f"player_{seat}" for seat in range(players)]
        self.agents: list[str] = []
        self.infos: dict[str, dict[str, Any]] = {}  # of the AEC environment
        self.render_mode = render_mode
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self.observation_spaces: dict[str, Any] = {
            agent: spaces.Dict({"observation": observation_box(), "action_mask": mask_box()})
            for agent in self.possible_agents
        }
        self.action_spaces: dict[str, Any] = {
            agent: action_space() for agent in self.possible_agents
        }
        self.state_space = spaces.Box(LOW, HIGH, (self.match.state_size,), np.float32)

    def observation_space(self, agent: str) -> Any:
        """`{"observation": float32 [OBS], "action_mask": int8 [10]}`; always the same object."""
        return self.observation_spaces[self._known(agent)]

    def action_space(self, agent: str) -> Any:
        """Discrete(10): 0-3 hand slot, 4-8 row, 9 pass; always the same object."""
        return self.action_spaces[self._known(agent)]

    def view(self, agent: str) -> View:
        """What the agent knows, for bots and people. Raises ResetNeeded before the first reset."""
        return self.match.view(self._seat(agent))

    def state(self) -> NDArray[np.float32]:
        """All hidden cards included, for centralised critics: see `Match.state`."""
        return self.match.state()

    def records(self) -> list[dict[str, Any]]:
        """The finished games of the match as records (`oxx-game/1`)."""
        return self.match.records()

    def render(self) -> Any:
        """The table as seat 0 sees it: a string for `ansi`, uint8 [H, W, 3] for `rgb_array`."""
        return self.match.render()

    def close(self) -> None:
        """Close the window of `human`."""
        self.match.close()

    def _known(self, agent: str) -> str:
        self._seat(agent)
        return agent

    def _seat(self, agent: str) -> int:
        try:
            return self._seats[agent]
        except (KeyError, TypeError):
            known = f"{self.possible_agents[0]} to {self.possible_agents[-1]}"
            raise ValueError(f"unknown agent {agent!r}; the agents are {known}") from None


class BaronOxxParallel(Seats, ParallelEnv[str, Observation, int]):
    """6 nimmt! Baron Oxx for 2 to 10 players; for the arguments see `Match`.

    Raises ValueError for an argument that is out of range or unknown.

    >>> env = BaronOxxParallel(num_players=2)
    >>> observations, infos = env.reset(seed=1)
    >>> observations["player_0"]["action_mask"].tolist()
    [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    """

    metadata: dict[str, Any] = {**METADATA, "is_parallelizable": True}  # noqa: RUF012

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start a match; a seed given also decides the matches of later resets without one.

        The options `deck`, `draw_piles` and `rows` set the deal by hand; `position`, or `record`
        and `round`, start in mid-game (see `Match.deal`); unknown ones are ignored. Raises
        ValueError for a deal or position that is none.
        """
        self.match.deal(seed, options)
        self.agents = self.possible_agents[:]
        observations = _by_agent(self.agents, *self.match.observe_all())
        if self.render_mode == "human":
            self.render()
        return observations, _infos(observations)

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """All agents act; an agent with nothing to decide passes (9).

        After the end `step({})` returns empty dicts. Raises IllegalAction, a ValueError, for a
        missing or unknown agent and for an action that is no integer or not legal, naming the legal
        ones. Raises ResetNeeded before `reset` and after the end. Whatever it raises, also Ctrl-C,
        nothing has happened.
        """
        agents = self.agents
        if not agents:
            return self._step_without_agents(actions)
        match = self.match
        players = match.players
        try:
            # One byte an action: the quickest check that all are there and are small integers.
            packed = bytes(map(actions.__getitem__, agents))
            if len(actions) != players:
                raise KeyError
        except (AttributeError, LookupError, TypeError, ValueError):
            packed = self._pack(actions)
        obs = np.empty((players, OBS), np.float32)
        masks = np.empty((players, ACTIONS), np.int8)
        rewards = self._rewards
        mark = match.mark()
        try:
            over = match.step(packed, 0, obs, masks, rewards)
            if over:
                self.agents = []
            if self.render_mode == "human":
                self.render()
            observations = _by_agent(agents, obs, masks)
            infos = _infos(observations)
            if over:
                match.add_results(infos)
            return (
                observations,
                dict(zip(agents, rewards.tolist())),  # noqa: B905
                dict.fromkeys(agents, over),
                dict.fromkeys(agents, False),
                infos,
            )
        except BaseException:
            match.undo(mark)
            self.agents = agents
            raise

    def _step_without_agents(self, actions: dict[str, int]) -> Any:
        self.match.check_dealt("step()")
        if not isinstance(actions, dict) or actions:
            given = ", ".join(map(str, actions)) if isinstance(actions, dict) else repr(actions)
            raise ResetNeeded(
                f"step() with actions of {given} after the end of the match: call reset() first"
            )
        return {}, {}, {}, {}, {}

    def _pack(self, actions: Any) -> bytes:
        """The slow way, which names what is wrong."""
        if not isinstance(actions, dict):
            raise IllegalAction(f"actions must be a dict agent -> action, not {actions!r}")
        for agent in actions:
            try:
                self._seat(agent)
            except ValueError as error:
                raise IllegalAction(str(error)) from None
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            seat = self._seats[missing[0]]
            legal = ", ".join(map(str, self.match.table.legal(seat)))
            raise IllegalAction(
                f"no action for {', '.join(missing)}: every live agent acts in each step, one with "
                f"nothing to decide passes ({PASS}); legal for {missing[0]}: {legal}"
            )
        as_action = self.match.as_action
        return bytes(as_action(seat, actions[agent]) for agent, seat in self._seats.items())


def _infos(observations: dict[str, Observation]) -> dict[str, dict[str, Any]]:
    """Each agent's mask once more, where some libraries look for it: the same array."""
    return {agent: {"action_mask": seen["action_mask"]} for agent, seen in observations.items()}


def _by_agent(
    agents: list[str], obs: NDArray[np.float32], masks: NDArray[np.int8]
) -> dict[str, Observation]:
    """Each agent's rows of [P, OBS] and [P, A]."""
    # Not strict: to look for one more row costs as much as all the rest of this.
    rows = zip(agents, obs, masks)  # noqa: B905
    return {agent: {"observation": row, "action_mask": mask} for agent, row, mask in rows}
