"""PettingZoo's AECEnv: one seat at a time, and only seats that decide.

In the card phase the deciders are selected by seat; none sees anything of the others' picks before
all have picked. Then the seats with a choice of rows follow, in the order of the cards. Forced
plays happen by themselves and pass never occurs. The same deal and the same choices give the same
game as in the parallel environment.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pettingzoo import AECEnv

from oxx_env.envs.match import METADATA, ResetNeeded
from oxx_env.envs.parallel import Observation, Seats
from oxx_env.game.observe import OBS
from oxx_env.game.rules import ACTIONS, PASS

_NO_OBS = np.empty((0, OBS), np.float32)  # observations are made when asked for
_OF_DEAD_STEPS = (  # what the step of an agent that has terminated changes
    "agents", "rewards", "_cumulative_rewards", "terminations", "truncations", "infos",
    "agent_selection", "_skip_agent_selection",
)  # fmt: skip


class BaronOxxAEC(Seats, AECEnv[str, Observation, int | None]):
    """6 nimmt! Baron Oxx for 2 to 10 players; for the arguments see `Match`.

    Raises ValueError for an argument that is out of range or unknown.

    >>> env = BaronOxxAEC(num_players=2)
    >>> env.reset(seed=1)
    >>> env.agent_selection
    'player_0'
    """

    # Not by PettingZoo's `aec_to_parallel`, which lets every agent act in turn: see `parallel_env`.
    metadata: dict[str, Any] = {**METADATA, "is_parallelizable": False}  # noqa: RUF012
    _deciders: list[int]  # seats that decide now, in order

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a match; for seed and options see the parallel environment's `reset`."""
        self.match.deal(seed, options)
        agents = self.possible_agents
        self.agents = agents[:]
        self.rewards = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self._see_masks(self.match.masks())
        self._skip_agent_selection: str | None = None
        self.agent_selection = agents[self._deciders[0]]
        if self.render_mode == "human":
            self.render()

    def step(self, action: int | None) -> None:
        """The selected agent acts (None once it has terminated).

        Raises IllegalAction, a ValueError, for an action that is no integer or not legal, naming
        the agent and the legal ones. Raises ResetNeeded before `reset` and when no agent is left.
        Whatever it raises, also Ctrl-C, nothing has happened.
        """
        if not self.agents:
            self.match.check_dealt("step()")
            raise ResetNeeded("step() after the end of the match: call reset() first")
        if self.terminations[self.agent_selection]:
            self._dead_step(action)
        else:
            self._live_step(action)

    def _live_step(self, action: int | None) -> None:
        mark = self.match.mark()
        before = (
            self.rewards, self._cumulative_rewards, self.infos, self.terminations,
            self._deciders, self.agent_selection,
        )  # fmt: skip
        try:
            self._act(action)
        except BaseException:
            self.match.undo(mark)
            (
                self.rewards, self._cumulative_rewards, self.infos, self.terminations,
                self._deciders, self.agent_selection,
            ) = before  # fmt: skip
            raise

    def _dead_step(self, action: int | None) -> None:
        before = {name: getattr(self, name) for name in _OF_DEAD_STEPS}
        try:
            for name, value in before.items():
                setattr(self, name, copy.copy(value))  # PettingZoo changes them in place
            self._was_dead_step(action)
        except BaseException:
            for name, value in before.items():
                setattr(self, name, value)
            raise

    def _act(self, action: int | None) -> None:
        match, agents, agent = self.match, self.agents, self.agent_selection
        seat = self._seats[agent]
        packed = bytes((match.as_action(seat, action),))
        masks = np.empty((match.players, ACTIONS), np.int8)
        over = match.step(packed, seat, _NO_OBS, masks, self._rewards)
        total = self._cumulative_rewards.copy()
        total[agent] = 0.0
        if len(self._deciders) > 1 and not over:
            # A pick among several changes nothing but what this seat may do.
            self.rewards = dict.fromkeys(agents, 0.0)
            self.infos = self.infos.copy()
            self.infos[agent] = {"action_mask": masks[seat]}
            self._deciders = self._deciders[1:]
        else:
            rewards = self._rewards.tolist()
            self.rewards = dict(zip(agents, rewards, strict=True))
            total = dict(zip(agents, map(add, total.values(), rewards), strict=True))
            self._see_masks(masks)
        self._cumulative_rewards = total
        if over:
            match.add_results(self.infos)
            self.terminations = dict.fromkeys(agents, True)
            self.agent_selection = agents[0]
        else:
            self.agent_selection = agents[self._deciders[0]]
        if self.render_mode == "human":
            self.render()

    def _see_masks(self, masks: NDArray[np.int8]) -> None:
        """Who decides, and each agent's info, by the masks [P, A]."""
        # In the card phase the seats still to pick; at a row choice the only decider.
        self._deciders = [s for s, passes in enumerate(masks[:, PASS].tolist()) if not passes]
        self.infos = {
            agent: {"action_mask": mask} for agent, mask in zip(self.agents, masks, strict=True)
        }

    def observe(self, agent: str) -> Observation:
        """What the agent sees; its mask is pass alone (9) while it has nothing to decide."""
        observation, mask = self.match.observe(self._seat(agent))
        return {"observation": observation, "action_mask": mask}

    def last(
        self, observe: bool = True
    ) -> tuple[Observation | None, float, bool, bool, dict[str, Any]]:
        """Observation, reward since its last step, terminated, truncated, info of the selected."""
        self.match.check_dealt("last()")
        return super().last(observe)

    def agent_iter(self, max_iter: int = 2**63) -> Iterable[str]:
        """The agents in the order in which they act, until all have left."""
        self.match.check_dealt("agent_iter()")
        return super().agent_iter(max_iter)
