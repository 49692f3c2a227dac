"""A million random games: the kernel plays as the reference does, state by state.

    python -m tests.stress.verify --games 1000000 --workers 2      (`make verify`)

A unit is one deck, played at all table sizes with all rule sets. Decks take turns: fresh ones of
the shipped models, and legal ones unlike any real deck (`tests/odd_decks.py`). After each placing,
wherever cards are chosen and at the end, all that a state holds is compared byte by byte: rows,
hands, draw piles, Oxx piles, points, what was seen, who decides and what is allowed.

Exit code 0: no difference. 1: a difference, named by deck, seed and place.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import tyro

from tests.stress import ROOT  # noqa: F401  (finds the tests' helpers)

# isort: split
import odd_decks
import tracing

from oxx_env import engine
from oxx_env.game.rules import RULE_SETS

TABLES = range(2, 11)
GAMES_EACH = 10  # of a unit's deck at each table size with each rule set
UNIT_GAMES = GAMES_EACH * len(TABLES) * len(RULE_SETS)
KINDS = tuple(odd_decks.MAKERS)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Play random games by the kernel and by the reference and compare every state."""

    games: int = 1_000_000
    """Games to play, rounded up to whole decks (360 games each)."""
    workers: int = 1
    """Processes; changes no figure but the time."""
    seed: int = 0
    """Of decks and deals."""


@dataclass(frozen=True)
class Unit:
    """What came of one deck."""

    number: int
    kind: str
    games: int
    states: int  # compared
    digest: str  # over all states
    fault: str  # what differed first; empty: nothing


def play_unit(seed: int, number: int) -> Unit:
    """One deck at all table sizes with all rule sets."""
    kind = KINDS[number % len(KINDS)]
    rng = np.random.default_rng([seed, number])
    deck = odd_decks.MAKERS[kind](rng)
    decks = engine.stack_decks([deck])
    heads = tuple(tuple(card) for card in deck.tolist())
    tracer = tracing.Tracer()
    tracing.reference_for.cache_clear()  # tables of a deck that does not come again
    digest = hashlib.sha256()
    games = states = 0
    for rules in RULE_SETS:
        for players in TABLES:
            seeds = rng.integers(2**53, size=GAMES_EACH)
            batch = engine.new_games(seeds, decks, players, rules)
            for g, game_seed in enumerate(seeds.tolist()):
                what = f"{kind} deck {number}, {players} players, {rules}, seed {game_seed}"
                try:
                    states += tracer.check(batch[g : g + 1], decks, heads, what)
                except AssertionError as error:
                    return Unit(number, kind, games, states, "", str(error))
                digest.update(batch[g].tobytes())
                games += 1
    return Unit(number, kind, games, states, digest.hexdigest(), "")


def play_units(seed: int, count: int, workers: int) -> Iterable[Unit]:
    """The units in order."""
    if workers == 1:
        yield from map(play_unit, [seed] * count, range(count))
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(play_unit, [seed] * count, range(count))


def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    if options.games < 1 or options.workers < 1 or options.seed < 0:
        print("verify: games and workers are 1 or more, the seed 0 or more", file=sys.stderr)
        return 2
    count = -(-options.games // UNIT_GAMES)
    start = time.monotonic()
    digest = hashlib.sha256()
    games = states = 0
    for unit in play_units(options.seed, count, options.workers):
        if unit.fault:
            print(f"DIFFERENCE: {unit.fault}")
            return 1
        games += unit.games
        states += unit.states
        digest.update(bytes.fromhex(unit.digest))
        if unit.number % 100 == 99:
            took = time.monotonic() - start
            print(f"{games:,} of {count * UNIT_GAMES:,} games, {took:.0f} s", file=sys.stderr)
    told = {
        "games": games,
        "decks": count,
        "kinds": list(KINDS),
        "states_compared": states,
        "differences": 0,
        "seed": options.seed,
        "sha256": digest.hexdigest(),
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(told, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
