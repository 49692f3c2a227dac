"""The speed of this environment beside others, measured in one run on one core.

    make bench

installs the peers into an environment of their own (`.venv-bench`) and runs this file, which
writes the figures into `docs/benchmarks.md`. By hand:

    python benchmarks/peers.py --peers .venv-bench/bin/python

Every peer is measured in a process of its own by the interpreter `--peers` (default: this one); one
that is not installed, or fails, is named as such. All processes are bound to the same core. Peers
and this environment count alike: *actions* are all actions carried out, *decisions* those where
there were two or more legal ones. Rates are medians per second of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: written by benchmarks/peers.py -->", "<!-- end of figures -->"
SECONDS, REPEATS = 0.6, 5
Count = tuple[int, int]  # actions, decisions


def rate(work: Callable[[], Count]) -> tuple[float, float]:
    """Actions and decisions per second of processor time: medians of the repeats."""
    work()  # compiles, and warms the caches
    found = []
    for _ in range(REPEATS):
        actions = decisions = 0
        start = time.process_time()
        while (spent := time.process_time() - start) < SECONDS:
            more = work()
            actions += more[0]
            decisions += more[1]
        found.append((actions / spent, decisions / spent))
    return median(a for a, _ in found), median(d for _, d in found)


# --- the peers: each returns a unit of work that says what it did ---------------------------------


def openspiel_cpp(name: str) -> Callable[[], Count]:
    """`evaluate_bots` with uniform random bots, all in C++."""
    import pyspiel

    game = pyspiel.load_game(name)
    bots = [
        pyspiel.make_uniform_random_bot(player, player + 1) for player in range(game.num_players())
    ]
    # Counted over some games in Python, not timed.
    counts = [_count(game) for _ in range(200)]
    actions = sum(a for a, _ in counts) / len(counts)
    decisions = sum(d for _, d in counts) / len(counts)
    games, seed = 200, iter(range(1, 1 << 30))

    def work() -> Count:
        for _ in range(games):
            pyspiel.evaluate_bots(game.new_initial_state(), bots, next(seed))
        return round(games * actions), round(games * decisions)

    return work


def _count(game: Any) -> Count:
    """Actions and decisions of one random game."""
    actions = decisions = 0
    state = game.new_initial_state()
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, weights = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(random.choices(outcomes, weights)[0])
            continue
        players = range(game.num_players()) if state.is_simultaneous_node() else [None]
        legal = [state.legal_actions(*([] if p is None else [p])) for p in players]
        chosen = [random.choice(some) for some in legal]
        if state.is_simultaneous_node():
            state.apply_actions(chosen)
        else:
            state.apply_action(chosen[0])
        actions += len(legal)
        decisions += sum(len(some) > 1 for some in legal)
    return actions, decisions


def openspiel_python(name: str) -> Callable[[], Count]:
    """The usual Python loop: a tensor and the legal actions for every decision."""
    import pyspiel

    game = pyspiel.load_game(name)
    observes = game.get_type().provides_observation_tensor

    def work() -> Count:
        actions = decisions = 0
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes = state.chance_outcomes()
                state.apply_action(outcomes[int(random.random() * len(outcomes))][0])
                continue
            player = state.current_player()
            if observes:
                state.observation_tensor(player)
            else:
                state.information_state_tensor(player)
            legal = state.legal_actions()
            state.apply_action(legal[int(random.random() * len(legal))])
            actions += 1
            decisions += len(legal) > 1
        return actions, decisions

    return work


def rlcard(name: str) -> Callable[[], Count]:
    """RLCard's own loop: every state comes with its observation array."""
    import rlcard as cards

    env = cards.make(name, config={"seed": 1})

    def work() -> Count:
        actions = decisions = 0
        state, _ = env.reset()
        while not env.is_over():
            legal = list(state["legal_actions"])
            state, _ = env.step(legal[int(random.random() * len(legal))])
            actions += 1
            decisions += len(legal) > 1
        return actions, decisions

    return work


def pettingzoo_parallel(name: str) -> Callable[[], Count]:
    import importlib

    env = importlib.import_module(f"pettingzoo.classic.{name}").parallel_env()
    env.reset(seed=1)
    actions = {agent: int(env.action_space(agent).n) for agent in env.possible_agents}

    def work() -> Count:
        done = 0
        env.reset()
        while env.agents:
            done += len(env.agents)
            env.step({agent: int(random.random() * actions[agent]) for agent in env.agents})
        return done, done

    return work


def pettingzoo_aec(name: str) -> Callable[[], Count]:
    import importlib

    env = importlib.import_module(f"pettingzoo.classic.{name}").env()

    def work() -> Count:
        actions = decisions = 0
        env.reset()
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            legal = [a for a, allowed in enumerate(observation["action_mask"].tolist()) if allowed]
            env.step(legal[int(random.random() * len(legal))])
            actions += 1
            decisions += len(legal) > 1
        return actions, decisions

    return work


def pgx_batch(name: str, batch: int = 1024, steps: int = 100) -> Callable[[], Count]:
    """A batch stepped in one compiled loop; finished games begin anew."""
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(name)
    init = jax.vmap(env.init)
    step = jax.vmap(auto_reset(env.step, env.init))

    def once(carry: Any, _: Any) -> Any:
        state, key, decisions = carry
        key, choose, go_on = jax.random.split(key, 3)
        legal = state.legal_action_mask
        action = jax.random.categorical(choose, jnp.where(legal, 0.0, -jnp.inf), axis=-1)
        decisions += (legal.sum(axis=-1) > 1).sum()
        return (step(state, action, jax.random.split(go_on, batch)), key, decisions), None

    @jax.jit
    def many(state: Any, key: Any) -> Any:
        return jax.lax.scan(once, (state, key, jnp.int32(0)), None, length=steps)[0]

    carry = [init(jax.random.split(jax.random.PRNGKey(0), batch)), jax.random.PRNGKey(1)]

    def work() -> Count:
        carry[0], carry[1], decisions = many(*carry)
        return batch * steps, int(decisions)

    return work


# key: (what it is, packages whose versions count, what to measure)
PEERS: dict[str, tuple[str, tuple[str, ...], Callable[[], Callable[[], Count]]]] = {
    "spiel-hearts": (
        "OpenSpiel hearts, C++ random bots",
        ("open_spiel",),
        lambda: openspiel_cpp("hearts"),
    ),
    "spiel-goofspiel": (
        "OpenSpiel goofspiel with 4 players, C++ random bots",
        ("open_spiel",),
        lambda: openspiel_cpp("goofspiel(players=4)"),
    ),
    "spiel-python": (
        "OpenSpiel hearts, Python loop with tensors",
        ("open_spiel",),
        lambda: openspiel_python("hearts"),
    ),
    "rlcard-uno": ("RLCard uno", ("rlcard",), lambda: rlcard("uno")),
    "zoo-rps": (
        "PettingZoo rps, parallel",
        ("pettingzoo",),
        lambda: pettingzoo_parallel("rps_v2"),
    ),
    "zoo-leduc": (
        "PettingZoo leduc hold'em, AEC",
        ("pettingzoo", "rlcard"),
        lambda: pettingzoo_aec("leduc_holdem_v4"),
    ),
    "pgx-leduc": (
        "Pgx leduc hold'em on the CPU, batch of 1,024",
        ("pgx", "jax"),
        lambda: pgx_batch("leduc_holdem"),
    ),
}


def measure(key: str) -> dict[str, Any]:
    """One peer, in this process."""
    random.seed(0)
    title, packages, make = PEERS[key]
    found: dict[str, Any] = {"key": key, "title": title}
    try:
        found["versions"] = {name: metadata.version(name) for name in packages}
        found["actions"], found["decisions"] = rate(make())
    except (ImportError, metadata.PackageNotFoundError) as error:
        found["missing"] = f"not installed ({getattr(error, 'name', None) or error})"
    except Exception as error:  # a peer's own fault is a result too
        found["missing"] = f"failed: {type(error).__name__}: {error}"
    return found


# --- the run ------------------------------------------------------------------------------------


def bind() -> None:
    """This process and its children run on one core, with one thread in every library."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def ask(python: str, key: str) -> dict[str, Any]:
    """Have one peer measured by another interpreter."""
    command = [python, str(Path(__file__).resolve()), "--measure", key]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"key": key, "title": PEERS[key][0], "missing": f"failed: {last}"}


def figures(own: dict[str, Any], peers: list[dict[str, Any]], command: str) -> str:
    """The generated part of `docs/benchmarks.md`."""
    machine = own["machine"]
    lines = [
        BEGIN,
        "",
        f"Command: `{command}` · processor: {machine['processor']}, one core · load before: "
        f"{own['load']} · Python {machine['python']}, numpy {machine['numpy']}, numba "
        f"{machine['numba']} · medians of {own['clock']['repeats']} repeats, per second of "
        "processor time · roll-outs measured again after the peers gave "
        f"{own['drift'][0]:.2f} to {own['drift'][1]:.2f} of the first rates.",
        "",
        "### This environment",
        "",
        *own_rates(own),
        "",
        *own_parts(own),
        "",
        "### Beside others",
        "",
        *beside_others(own, peers),
        "",
        END,
    ]
    return "\n".join(lines)


def own_rates(own: dict[str, Any]) -> list[str]:
    """Tables: roll-outs, batches, the environments driven from Python."""
    batched = {(row["batch"], row["observe"]): row for row in own["batched"]}
    lines = [
        "| whole games in compiled code | games | placements | decisions |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        f"| {row['policy']}, {row['players']} players | {row['games_per_cpu_s'] / 1e3:,.0f} k | "
        f"{row['placements_per_cpu_s'] / 1e6:.1f} M | {row['decisions_per_cpu_s'] / 1e6:.1f} M |"
        for row in own["rollouts"]
    ]
    lines += [
        "",
        f"| batch of games, {own['players']} players, random actions | decisions | with "
        "observation and mask of each |",
        "|---|---:|---:|",
    ]
    lines += [
        f"| {size:,} | {short(batched[size, False]['decisions_per_cpu_s'])} | "
        f"{short(batched[size, True]['decisions_per_cpu_s'])} |"
        for size in sorted({size for size, _ in batched})
    ]
    names = {
        "parallel": "PettingZoo parallel, 4 players",
        "aec": "PettingZoo AEC, 4 players",
        "gymnasium": "Gymnasium, 2 players, against `random`",
        "vecenv": "stable-baselines3 VecEnv, 256 environments of 2 players, against `random`",
    }
    lines += ["", "| driven from Python, random legal actions | decisions |", "|---|---:|"]
    lines += [
        f"| {names[name]} | {'not installed' if found is None else short(found)} |"
        for name, found in own["api"].items()
    ]
    return lines


def own_parts(own: dict[str, Any]) -> list[str]:
    """Two threads, memory, and the parts of a step."""
    lines = [
        f"Two threads on one batch of {own['two_cores']['batch']:,} observed games: "
        f"{short(own['two_cores']['two'])} decisions per second of wall time instead of "
        f"{short(own['two_cores']['one'])}, {own['two_cores']['gain']:.2f} times as many.",
        "",
        f"A game takes {own['memory_bytes']['game']} bytes, an observation "
        f"{own['memory_bytes']['observation']:,}.",
        "",
        "Nanoseconds of one observed decision, by part of the step:",
        "",
        "| batch | " + " | ".join(own["profile"][0]["ns_per_decision"]) + " |",
        "|---|" + "---:|" * len(own["profile"][0]["ns_per_decision"]),
    ]
    lines += [
        f"| {row['batch']:,} | "
        + " | ".join(f"{part:.0f}" for part in row["ns_per_decision"].values())
        + " |"
        for row in own["profile"]
    ]
    return lines


def beside_others(own: dict[str, Any], peers: list[dict[str, Any]]) -> list[str]:
    """Each peer's rate, and the ratio of this environment's nearest one to it."""
    lines = [
        "| peer | version | decisions | all actions | this environment | decisions | ratio |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    random4 = next(
        row["decisions_per_cpu_s"]
        for row in own["rollouts"]
        if (row["policy"], row["players"]) == ("random", 4)
    )
    observed = next(
        row["decisions_per_cpu_s"]
        for row in own["batched"]
        if row["batch"] == 1024 and row["observe"]
    )
    api = own["api"]
    ours = {
        "spiel-hearts": ("random roll-outs, 4 players", random4),
        "spiel-goofspiel": ("random roll-outs, 4 players", random4),
        "spiel-python": ("PettingZoo AEC", api["aec"]),
        "rlcard-uno": ("PettingZoo AEC", api["aec"]),
        "zoo-rps": ("PettingZoo parallel", api["parallel"]),
        "zoo-leduc": ("PettingZoo AEC", api["aec"]),
        "pgx-leduc": ("batch of 1,024, observed", observed),
    }
    for peer in peers:
        versions = ", ".join(f"{k} {v}" for k, v in peer.get("versions", {}).items())
        if "missing" in peer:
            lines.append(f"| {peer['title']} | {versions} | {peer['missing']} | | | | |")
            continue
        title, own_rate = ours[peer["key"]]
        lines.append(
            f"| {peer['title']} | {versions} | {short(peer['decisions'])} | "
            f"{short(peer['actions'])} | {title} | {short(own_rate)} | "
            f"**{own_rate / peer['decisions']:.1f}×** |"
        )
    return lines


def short(value: float) -> str:
    """12,345,678 as `12.3 M`."""
    return f"{value / 1e6:.2f} M" if value >= 1e6 else f"{value / 1e3:.1f} k"


def write(document: Path, block: str) -> None:
    """Put the figures between their marks."""
    text = document.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    document.write_text(before + block + after, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", default=sys.executable, help="interpreter with the peers")
    parser.add_argument("--only", nargs="*", choices=list(PEERS), help="these peers alone")
    parser.add_argument("--dry", action="store_true", help="print; leave the document alone")
    parser.add_argument("--measure", choices=list(PEERS), help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="what to install for the peers")
    options = parser.parse_args()
    if options.list:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        print(*project["optional-dependencies"]["bench"], sep="\n")
        return
    load = round(os.getloadavg()[0], 2)
    bind()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    sys.path.insert(0, str(ROOT))
    from oxx_env.commands import _benchmark

    # Before and after the peers, so that a change of the machine's mood shows.
    own = {**_benchmark.run(), "load": load}
    peers = []
    for key in options.only or PEERS:
        print(f"measuring {PEERS[key][0]} ...", file=sys.stderr, flush=True)
        peers.append(ask(options.peers, key))
    again = _benchmark.rollouts(_benchmark.Clock())
    drift = [
        new["placements_per_cpu_s"] / old["placements_per_cpu_s"]
        for old, new in zip(own["rollouts"], again, strict=True)
    ]
    own["drift"] = (min(drift), max(drift))
    block = figures(own, peers, "make bench")
    if options.dry:
        print(block)
    else:
        write(DOCUMENT, block)


if __name__ == "__main__":
    main()
