"""Stopped in the middle of a step: whatever raises, also Ctrl-C, the step has not happened.

Ctrl-C may come at any line, so it is sent at each one of a step in turn; bots and windows raise at
their n-th call. Afterwards the game goes on to the same end as one that was never disturbed.
"""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxx_env
from oxx_env import arena, baron_oxx_v0, render
from oxx_env.arena.blocks import Player, Setup
from oxx_env.envs.single import BaronOxxSingle
from oxx_env.game.table import Table, as_integer
from oxx_env.game.views import View

SOURCES = {str(path) for path in (Path(oxx_env.__file__).parent / "envs").glob("*.py")}
SOURCES.add(str(Path(oxx_env.__file__).parent / "game" / "table.py"))
STOPS = (RuntimeError, KeyboardInterrupt)


class Stop:
    """Sends Ctrl-C at the `line`-th line that runs in a step's own sources."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __enter__(self) -> Stop:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in SOURCES or "self" not in frame.f_locals:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._trace


def stopped_everywhere(env: Any, step: Callable[[Any], Any], told: Callable[[Any], Any]) -> int:
    """Stop a step of copies of `env` at each of its lines, step again, and compare what `told`
    tells with an undisturbed one. Returns how many lines there were."""
    plain = copy.deepcopy(env)
    wanted = step(plain), told(plain)
    line = 0
    while True:
        line += 1
        stopped = copy.deepcopy(env)
        before = told(stopped)
        with Stop(line) as stop:
            try:
                step(stopped)
            except KeyboardInterrupt:
                pass
            else:
                assert stop.left > 0
                return line - 1
        np.testing.assert_equal(told(stopped), before)
        np.testing.assert_equal((step(stopped), told(stopped)), wanted)


def course(env: Any) -> Any:
    """All that can be told of a PettingZoo environment."""
    table = env.match.table
    state = [table.games.tobytes(), list(table.decisions), table.history(), env.agents[:]]
    if hasattr(env, "agent_selection"):
        names = ("rewards", "_cumulative_rewards", "terminations", "infos", "agent_selection")
        state += [copy.deepcopy(getattr(env, name)) for name in names]
    return state


def first_legal(env: Any) -> dict[str, int]:
    return {agent: env.view(agent).legal[0] for agent in env.agents}


@pytest.mark.parametrize("illegal_action", ["raise", "substitute", "terminate"])
def test_ctrl_c_at_any_line_of_a_parallel_step_leaves_it_as_before(illegal_action: str) -> None:
    env = baron_oxx_v0.parallel_env(3, illegal_action=illegal_action)
    env.reset(seed=1)
    if illegal_action == "substitute":
        env.step(dict.fromkeys(env.agents, 9))  # so that its generator is at work
    lines = 0
    for _ in range(2):
        actions = first_legal(env)
        if illegal_action != "raise":
            actions["player_1"] = 77
        lines += stopped_everywhere(env, lambda e, a=actions: e.step(a), course)
        env.step(first_legal(env))
    while len(env.match.table.decisions) < 60 and env.agents:
        last = copy.deepcopy(env)
        env.step(first_legal(env))
    lines += stopped_everywhere(last, lambda e: e.step(first_legal(e)), course)
    assert lines > 60


def test_ctrl_c_at_any_line_of_an_aec_step_leaves_it_as_before() -> None:
    env = baron_oxx_v0.env(2)
    env.reset(seed=1)
    lines = 0
    kinds = set()
    while env.agents:
        ended, phase = env.terminations[env.agent_selection], env.view(env.agent_selection).phase
        action = None if ended else env.view(env.agent_selection).legal[0]
        twin = copy.deepcopy(env)
        twin.step(action)
        kind = phase, ended, len(env._deciders), any(twin.terminations.values())
        if kind not in kinds:  # a first and a last pick, a row, the end, an agent that leaves
            kinds.add(kind)
            lines += stopped_everywhere(env, lambda e, a=action: e.step(a), course)
        env = twin
    assert len(kinds) >= 5 and lines > 150


class Stubborn:
    """A bot of Python's that plays by chance and raises at its n-th call."""

    spec, needs_state = "stubborn", False

    def __init__(self, call: int = 0, stop: type[BaseException] = RuntimeError) -> None:
        self.left, self.stop = call, stop

    def act(self, view: View, rng: np.random.Generator) -> int:
        action = int(rng.choice(view.legal))
        self.left -= 1
        if self.left == 0:
            raise self.stop("no")
        return action


def match_of(env: BaronOxxSingle, patience: int = 0) -> list[Any]:
    """What a learner that always plays its first legal action is told; it tries each step again."""
    told: list[Any] = [env.reset(seed=3)]
    while told[-1][2:3] != (True,):
        action = int(told[-1][-1]["action_mask"].argmax())
        while True:
            try:
                told.append(env.step(action))
                break
            except STOPS:
                patience -= 1
                assert patience >= 0
    return [told, env.match.table.history(), env.records()]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("call", [1, 2, 3, 10, 20])
def test_a_bot_that_raises_leaves_the_gymnasium_step_undone(
    call: int, stop: type[BaseException]
) -> None:
    wanted = match_of(BaronOxxSingle(4, 1, (Stubborn(), Stubborn(), "greedy")))
    env = BaronOxxSingle(4, 1, (Stubborn(call, stop), Stubborn(), "greedy"))
    np.testing.assert_equal(match_of(env, patience=1), wanted)
    assert env.bots[0].left < 0  # it did raise


def test_ctrl_c_at_any_line_of_a_gymnasium_step_leaves_it_as_before() -> None:
    env = BaronOxxSingle(3, 0, ("random", "mc:1"), illegal_action="substitute")
    env.reset(seed=2)
    env.step(9)

    def told(env: BaronOxxSingle) -> Any:
        states = [rng.bit_generator.state for rng in env._rngs.values()]
        return [
            env.match.table.games.tobytes(),
            env.match.table.history(),
            env._masks.copy(),
            states,
        ]

    assert stopped_everywhere(env, lambda e: e.step(9), told) > 40


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("call", [2, 5, 12])
def test_a_window_that_raises_leaves_the_step_undone(
    call: int, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Window:
        left = 0

        def __init__(self, fps: float) -> None:
            self.module = sys  # what no pickle takes

        def show(self, view: View) -> None:
            view.to_dict()  # its history, too
            Window.left -= 1
            if Window.left == 0:
                raise stop("no picture")

        def close(self) -> None:
            pass

    monkeypatch.setattr(render, "Window", Window)
    for make in (baron_oxx_v0.parallel_env, baron_oxx_v0.env):
        ends = []
        for first in (0, call):
            Window.left = first
            env = make(3, render_mode="human")
            env.reset(seed=4)
            tries = 1
            while env.agents and not env.match.table.over:
                aec = hasattr(env, "agent_selection")
                actions = env.view(env.agent_selection).legal[0] if aec else first_legal(env)
                try:
                    env.step(actions)
                except STOPS:
                    tries -= 1
                    assert tries >= 0
            ends.append((course(env), env.records()))
        np.testing.assert_equal(ends[0], ends[1])
        # A copy has no window: what it shows would be another game.
        for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
            assert env.match._window is not None and twin.match._window is None
            assert twin.match.records() == env.records()
    Window.left = call
    env = BaronOxxSingle(3, 0, ("random",), render_mode="human")
    wanted = match_of(BaronOxxSingle(3, 0, ("random",)))
    np.testing.assert_equal(match_of(env, patience=1), wanted)
    assert copy.deepcopy(env).match._window is None


def test_ctrl_c_at_any_line_of_a_tables_decision_leaves_it_as_before() -> None:
    table = Table(3, "positive")
    table.deal(seed=6)

    def told(table: Table) -> Any:
        return [table.games.tobytes(), list(table.decisions), table.history(), table.scores()]

    for _ in range(20):
        seat = table.deciders()[0]
        act = lambda t, s=seat: t.act(s, t.legal(s)[-1])  # noqa: E731
        assert stopped_everywhere(table, act, told) > 10
        act(table)


@pytest.mark.parametrize("call", [1, 4, 30])
def test_a_bot_that_raises_costs_an_arena_nothing_but_its_block(call: int) -> None:
    setup = Setup("arena", ("greedy", Stubborn()), 2, "base", "balanced", 0, 1)
    wanted = [Player(setup).block(number, ((0, 1),)).points for number in (0, 1)]
    broken = Setup("arena", ("greedy", Stubborn(call)), 2, "base", "balanced", 0, 1)
    player = Player(broken)
    with pytest.raises(RuntimeError, match="no"):
        for number in (0, 1):
            player.block(number, ((0, 1),))
    assert [player.block(number, ((0, 1),)).points for number in (0, 1)] == wanted


def test_ctrl_c_in_a_bot_of_an_arena_tells_the_blocks_that_are_finished() -> None:
    wanted = arena.play(["greedy", Stubborn()], players=2, games=2)
    with pytest.raises(arena.Interrupted) as caught:
        arena.play(["greedy", Stubborn(100, KeyboardInterrupt)], players=2, games=400)
    assert 2 <= caught.value.result.games < 100
    first = arena.play(["greedy", Stubborn()], players=2, games=caught.value.result.games)
    assert caught.value.result.bots == first.bots and wanted.games == 2


def test_actions_may_be_arrays_of_one() -> None:
    class Array:
        spec, needs_state = "array", False

        def __init__(self, action: Any) -> None:
            self.action = action

        def act(self, view: View, rng: np.random.Generator) -> Any:
            return self.action(view.legal[0])

    for kind in (np.int64, np.array, lambda n: np.array([n]), lambda n: np.array([[n]], np.int32)):
        env = BaronOxxSingle(2, 0, (Array(kind),))
        env.reset(seed=1)
        env.step(np.array([1]))
        assert env.match.table.decisions[:2] == [(0, 1), (1, 0)]
        result = arena.play(["greedy", Array(kind)], players=2, games=2)
        assert result.games == 2
    for kind in (float, lambda n: [n], lambda n: np.array([n, n]), lambda n: None):
        env = BaronOxxSingle(2, 0, (Array(kind),))
        env.reset(seed=1)
        with pytest.raises(ValueError, match="not an integer"):
            env.step(0)
        assert as_integer(kind(1)) is None
