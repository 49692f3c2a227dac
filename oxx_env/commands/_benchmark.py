"""How fast is it here? What `oxx bench` measures.

Rates are per second of processor time of this process, the median of some repeats; a *decision* is
a seat with two or more legal actions, a *placement* is a card that is placed (or returned, in
`positive`), forced or not. Everything is compiled before the clock starts. Figures are only worth
something on a machine that does nothing else: `machine()` notes the load.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from oxx_env.game import engine
from oxx_env.game.observe import OBS, encode_pending
from oxx_env.game.rules import ACTIONS, CARDS_DEALT, GAME, MAX_PLAYERS, PASS
from oxx_env.lib.version import __version__

BATCHES = (1, 64, 1024, 8192)
TABLES = (2, 4, MAX_PLAYERS)
PLAYERS = 4  # at the table, where it is not said otherwise
ENVIRONMENTS = 256  # of the VecEnv


class Clock:
    """Measures rates: `repeats` times at least `seconds` of processor time each."""

    def __init__(self, seconds: float = 0.4, repeats: int = 5) -> None:
        self.seconds, self.repeats = seconds, repeats

    def __call__(self, work: Callable[[], int]) -> tuple[float, float]:
        """`work()` does something and says how many units it was.

        Returns the units per second of processor time and of wall time, medians.
        """
        work()  # compile, and warm the caches
        rates = sorted(self._repeat(work) for _ in range(self.repeats))
        return median(cpu for cpu, _ in rates), median(wall for _, wall in rates)

    def _repeat(self, work: Callable[[], int]) -> tuple[float, float]:
        units = 0
        cpu, wall = time.process_time(), time.perf_counter()
        while True:
            units += work()
            spent = time.process_time() - cpu
            if spent >= self.seconds:
                return units / spent, units / (time.perf_counter() - wall)


class Batch:
    """Games stepped at random, with or without observations and masks of every decision."""

    def __init__(self, batch: int, observe: bool, players: int = PLAYERS, seed: int = 0) -> None:
        self.decks = engine.stack_decks(["balanced"])
        self.games = engine.new_games(np.arange(batch) + seed, self.decks, players)
        self.observe = observe
        self.who = np.zeros(batch * players, engine.PENDING)
        self.actions = np.zeros(batch * players, np.int64)
        self.observations = np.zeros((batch * players if observe else 0, OBS), np.float32)
        self.masks = np.zeros((batch * players, ACTIONS), np.int8)

    def parts(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """The parts of one step, by name; `list` returns the decisions."""
        yield "list", lambda: engine.pending(self.games, self.who)
        if self.observe:
            yield "observe", lambda: encode_pending(*self._waiting(), self.observations)
            yield "mask", lambda: engine.masks(*self._waiting(), self.masks)
        yield "choose", lambda: engine.random_actions(*self._waiting(), self.actions)
        yield "step", lambda: engine.step(*self._waiting(), self.actions, True)

    def _waiting(self) -> tuple[Any, Any, Any, int]:
        return self.games, self.decks, self.who, self.n

    def step(self) -> int:
        """One decision of every seat that has one; returns how many."""
        self.n = int(engine.pending(self.games, self.who))
        waiting = self._waiting()
        if self.observe:
            encode_pending(*waiting, self.observations)
            engine.masks(*waiting, self.masks)
        engine.random_actions(*waiting, self.actions)
        engine.step(*waiting, self.actions, True)
        return self.n

    def steps(self, decisions: int = 4096) -> Callable[[], int]:
        """A unit of work of at least so many decisions, so that reading the clock costs nothing."""

        def work() -> int:
            done = 0
            while done < decisions:
                done += self.step()
            return done

        return work

    def nanoseconds(self, rounds: int) -> dict[str, float]:
        """Time of each part, per decision."""
        self.step()
        spent: dict[str, float] = {}
        decisions = 0
        for _ in range(rounds):
            for name, part in self.parts():
                start = time.perf_counter_ns()
                result = part()
                spent[name] = spent.get(name, 0) + time.perf_counter_ns() - start
                if name == "list":
                    self.n = int(result)
            decisions += self.n
        return {name: nanoseconds / decisions for name, nanoseconds in spent.items()}


def rollouts(clock: Clock, seed: int = 0) -> list[dict[str, Any]]:
    """Whole games in compiled code."""
    found = []
    for policy in engine.POLICIES:
        for players in TABLES:
            games = 400_000 // (players * int(CARDS_DEALT[players]))
            play = partial(engine.rollout, policy, players, games, seed)
            each = play() / games
            cpu, wall = clock(play)
            found.append(
                {
                    "policy": policy,
                    "players": players,
                    "games_per_cpu_s": cpu / each,
                    "placements_per_cpu_s": cpu,
                    "placements_per_wall_s": wall,
                    "decisions_per_cpu_s": cpu * decisions_per_placement(policy, players, seed),
                }
            )
    return found


def decisions_per_placement(policy: str, players: int, seed: int = 0, games: int = 400) -> float:
    """How many decisions games of a policy have for each placement; counted, not timed."""
    decks = engine.stack_decks(["balanced"])
    batch = engine.new_games(np.arange(games) + seed, decks, players)
    who = np.zeros(games * players, engine.PENDING)
    actions = np.zeros(games * players, np.int64)
    decisions = 0
    while n := int(engine.pending(batch, who)):
        engine.policy_actions(batch, decks, who, n, engine.POLICIES.index(policy), actions)
        engine.step(batch, decks, who, n, actions, False)
        decisions += n
    placements = players * int(batch["round"].astype(np.int64).sum())
    return decisions / placements


def batched(clock: Clock, seed: int = 0) -> list[dict[str, Any]]:
    """Batches of games stepped by the engine, each decision chosen at random in compiled code."""
    found = []
    for size in BATCHES:
        for observe in (False, True):
            cpu, wall = clock(Batch(size, observe, seed=seed).steps())
            found.append(
                {
                    "batch": size,
                    "observe": observe,
                    "decisions_per_cpu_s": cpu,
                    "decisions_per_wall_s": wall,
                }
            )
    return found


def profile(rounds: int = 200, seed: int = 0) -> list[dict[str, Any]]:
    """Where the time of one decision goes: nanoseconds by part, for several batches."""
    return [
        {"batch": size, "ns_per_decision": Batch(size, True, seed=seed).nanoseconds(max(4, count))}
        for size, count in ((64, 4 * rounds), (1024, rounds), (8192, rounds // 8))
    ]


def two_cores(clock: Clock, batch: int = 1024, steps: int = 16, seed: int = 0) -> dict[str, Any]:
    """Observed steps of one batch in one and in two threads (`engine.in_parts`): decisions per
    second of wall time, and what the second thread gains."""
    halves = [Batch(batch // 2, True, seed=seed + half * batch // 2) for half in (0, 1)]

    def work(workers: int) -> int:
        def some(part: slice) -> int:
            return sum(half.step() for half in halves[part] for _ in range(steps))

        return sum(engine.in_parts(some, 2, workers))

    # By turns: a machine that others use as well is not equally fast all the time.
    rates: dict[int, list[float]] = {1: [], 2: []}
    short = Clock(clock.seconds, 1)
    for _ in range(clock.repeats):
        for workers, found in rates.items():
            found.append(short(partial(work, workers))[1])
    one, two = median(rates[1]), median(rates[2])
    gain = median(b / a for a, b in zip(rates[1], rates[2], strict=True))
    return {"batch": batch, "one": one, "two": two, "gain": gain, "cores": os.cpu_count()}


def api(clock: Clock, seed: int = 0) -> dict[str, float | None]:
    """Decisions per CPU second behind the usual interfaces, driven from Python by the mask."""
    return {
        "parallel": _parallel(clock, seed),
        "aec": _aec(clock, seed),
        "gymnasium": _gymnasium(clock, seed),
        "vecenv": _vecenv(clock, seed),
    }


class _AnyLegal(dict[bytes, list[int]]):
    """A mask's bytes → the legal actions: the driver is to cost little beside the environment."""

    def __missing__(self, mask: bytes) -> list[int]:
        self[mask] = [action for action, allowed in enumerate(mask) if allowed]
        return self[mask]

    def __call__(self, mask: Any) -> int:
        legal = self[mask.tobytes()]
        return legal[int(random.random() * len(legal))]


_any = _AnyLegal()


def _parallel(clock: Clock, seed: int) -> float:
    from oxx_env import baron_oxx_v0

    env = baron_oxx_v0.parallel_env(num_players=PLAYERS)

    def play() -> int:
        decisions = 0
        observations, _ = env.reset(seed=seed)
        while env.agents:
            actions = {}
            for agent, observation in observations.items():
                action = _any(observation["action_mask"])
                decisions += action != PASS
                actions[agent] = action
            observations = env.step(actions)[0]
        return decisions

    return clock(play)[0]


def _aec(clock: Clock, seed: int) -> float:
    from oxx_env import baron_oxx_v0

    env = baron_oxx_v0.env(num_players=PLAYERS)

    def play() -> int:
        decisions = 0
        env.reset(seed=seed)
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated or observation is None:
                env.step(None)
                continue
            env.step(_any(observation["action_mask"]))
            decisions += 1
        return decisions

    return clock(play)[0]


def _gymnasium(clock: Clock, seed: int) -> float:
    from oxx_env.envs.single import BaronOxxSingle

    env = BaronOxxSingle(num_players=2, opponents=("random",))

    def play() -> int:
        decisions, over = 0, False
        _, info = env.reset(seed=seed)
        while not over:
            _, _, over, _, info = env.step(_any(info["action_mask"]))
            decisions += 1
        return decisions

    return clock(play)[0]


def _vecenv(clock: Clock, seed: int) -> float | None:
    if importlib.util.find_spec("stable_baselines3") is None:
        return None
    from oxx_env.envs.vector import BaronOxxVecEnv

    envs = BaronOxxVecEnv(ENVIRONMENTS, players=2, opponents=("random",), seed=seed)
    envs.reset()
    rng = np.random.default_rng(seed)

    def step() -> int:
        masks = envs.action_masks()
        ranks = rng.random(masks.shape, dtype=np.float32) * masks
        envs.step(ranks.argmax(axis=1))
        return len(masks)

    return clock(step)[0]


def memory() -> dict[str, int]:
    """Bytes of one game, one observation and one mask."""
    return {"game": GAME.itemsize, "observation": 4 * OBS, "mask": ACTIONS}


def machine() -> dict[str, Any]:
    """What it was measured on, and how busy that was (the load of the last minute)."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "oxx_env": __version__,
        **{name: metadata.version(name) for name in ("numpy", "numba", "llvmlite")},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def run(quick: bool = False, seed: int = 0) -> dict[str, Any]:
    """All of it, as `oxx bench --json` prints it. `quick` proves only that everything runs."""
    clock = Clock(0.01, 1) if quick else Clock()
    random.seed(seed)
    return {
        "rollouts": rollouts(clock, seed),
        "batched": batched(clock, seed),
        "api": api(clock, seed),
        "two_cores": two_cores(clock, 64 if quick else 1024, seed=seed),
        "profile": profile(4 if quick else 200, seed),
        "memory_bytes": memory(),
        "players": PLAYERS,
        "clock": {"seconds": clock.seconds, "repeats": clock.repeats},
        "machine": machine(),
    }

