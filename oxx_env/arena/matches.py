"""The ways to play: one line-up, pairs, a league, two bots compared.

Options are `Options`, or its fields by name: `play(specs, players=2, games=2000, seed=1)`; a number
alone is that of the players. Ctrl-C
raises `Interrupted` with the result of the finished blocks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import permutations
from statistics import fmean
from typing import Any, TypeVar

from oxx_env.arena import ratings
from oxx_env.arena.blocks import Block, Lineup, Setup, Spec, fill_table, random_lineups, spec_name
from oxx_env.arena.options import Options
from oxx_env.arena.results import (
    Comparison,
    Entry,
    Interrupted,
    League,
    Pair,
    Pairs,
    Rated,
    Result,
    difference,
    facts,
    summarise,
)
from oxx_env.arena.running import play_blocks
from oxx_env.game import scoring
from oxx_env.lib import extras

R = TypeVar("R", bound=Result)


def play(specs: Sequence[Spec], options: Options | int | None = None, **changes: Any) -> Result:
    """One line-up: the bots in order, the last fills the table.

    The same spec twice is two entries.
    """
    options = Options.of(options, 4, changes)
    setup = options.setup("arena", specs)
    lineup = fill_table(len(setup.specs), setup.players)
    played = play_blocks(setup, options, lambda _: (lineup,), partial(_intervals, setup))
    result = Result(**facts(played), bots=_entries(setup, played.blocks))
    return _complete(result, played.cut)


def _entries(setup: Setup, blocks: Sequence[Block]) -> list[Entry]:
    return [summarise(setup, blocks, entry) for entry in range(len(setup.specs))]


def _intervals(setup: Setup, blocks: Sequence[Block]) -> list[ratings.Interval]:
    return [entry.ci95 for entry in _entries(setup, blocks)]


def _complete(result: R, cut: bool) -> R:
    if cut:
        raise Interrupted(result)
    return result


def evaluate(bot: Spec, against: Sequence[Spec] = ("greedy",), **changes: Any) -> Entry:
    """How `bot` does in one seat among `against`, whose last fills the table.

    For training: `evaluate(bot, ["greedy"], players=2, games=2000).ci95`.
    """
    return play([bot, *against], **changes).bots[0]


def pairwise(specs: Sequence[Spec], options: Options | int | None = None, **changes: Any) -> Pairs:
    """Every bot among copies of every other, `games` for each pair, all on the same deals.

    With two players (the default here) a pair is played once and read both ways. There is no log.
    """
    start = time.perf_counter()
    options = Options.of(options, 2, changes)
    if options.log is not None:
        raise ValueError("a log keeps one line-up and pairs are many: play without one")
    if len(specs) < 2:
        raise ValueError("pairs need two bots or more")
    pairs: dict[tuple[int, int], Pair] = {}
    results: list[Result] = []
    cut = False
    for one, other in permutations(range(len(specs)), 2):
        if options.players == 2 and other < one:
            continue
        try:
            results.append(play([specs[one], specs[other]], options))
        except Interrupted as stop:
            results.append(stop.result)
            cut = True
        except KeyboardInterrupt:
            if not results:
                raise
            cut = True
            break
        pairs[one, other] = Pair(spec_name(specs[other]), results[-1].bots[0])
        if options.players == 2:
            pairs[other, one] = Pair(spec_name(specs[one]), results[-1].bots[1])
        if cut:
            break
    each: dict[str, list[float]] = {}
    for result in results:
        for name, ms in result.timing["ms_per_decision"].items():
            each.setdefault(name, []).extend([] if ms is None else [ms])
    parts = {
        "games": sum(result.games for result in results),
        "bots": [],
        "cheats": any(result.cheats for result in results),
        "timing": {
            "seconds": time.perf_counter() - start,
            "ms_per_decision": {name: fmean(ms) if ms else None for name, ms in each.items()},
        },
        "specs": [spec_name(spec) for spec in specs],
        "pairs": pairs,
    }
    return _complete(Pairs(**{**vars(results[0]), **parts}), cut)


def league(specs: Sequence[Spec], options: Options | int | None = None, **changes: Any) -> League:
    """Random line-ups of any number of bots (two or more), each entry seated equally often.

    The rating is OpenSkill's Plackett-Luce, game by game in order of play; its interval is the
    rating's own belief. Mean rank, points and win share depend on the other bots in the league.
    """
    options = Options.of(options, 4, changes)
    if len(specs) < 2:
        raise ValueError("a league needs two bots or more")
    with extras.needed_by("a league"):
        import openskill  # noqa: F401  (say so before hours of play, not after)

    setup = options.setup("league", specs)
    drawn: list[Lineup] = []
    more = random_lineups(len(setup.specs), setup.players, setup.seed)

    def lineups(number: int) -> tuple[Lineup, ...]:
        while len(drawn) <= number:
            drawn.append(next(more))
        return (drawn[number],)

    limit = options.blocks(setup)
    least = -(-len(setup.specs) // setup.players)
    if limit is not None and limit < least:
        raise ValueError(
            f"{options.games} games seat not every bot once: play at least "
            f"{least * setup.block_games}"
        )
    played = play_blocks(setup, options, lineups, partial(_intervals, setup))
    if played.cut and len(played.blocks) < least:
        raise KeyboardInterrupt
    order = (
        (block.lineups[0], scoring.mean_places(game, setup.rules).tolist())
        for block in played.blocks
        for game in block.points[0]
    )
    rated = ratings.openskill_ratings(order, len(setup.specs))
    entries = _entries(setup, played.blocks)
    table = [Rated(entry, *rating) for entry, rating in zip(entries, rated, strict=True)]
    return _complete(League(**facts(played), bots=entries, table=table), played.cut)


def compare(
    a: Spec,
    b: Spec,
    against: Sequence[Spec] = ("greedy",),
    options: Options | int | None = None,
    **changes: Any,
) -> Comparison:
    """A, then B, in the same seat of the same deals among the same others; all seats in turn.

    `games` are those of each of the two; the last of `against` fills the table. The difference is
    taken deal by deal, so that the luck of the deal cancels; `until_width` is its width.
    """
    options = Options.of(options, 4, changes)
    setup = options.setup("compare", (a, b, *against))
    seats = setup.players - 1
    if not against:
        raise ValueError("name at least one bot to compare against")
    if len(against) > seats:
        raise ValueError(
            f"{len(against)} bots to compare against; at a table of {setup.players} there are "
            f"{seats} seats beside the one compared"
        )
    others = [2 + other for other in fill_table(len(against), seats)]
    lineups = ((0, *others), (1, *others))
    played = play_blocks(
        setup, options, lambda _: lineups, lambda blocks: [difference(setup, blocks).ci95]
    )
    result = Comparison(
        **facts(played),
        bots=[summarise(setup, played.blocks, entry) for entry in (0, 1)],
        against=[spec_name(spec) for spec in against],
        difference=difference(setup, played.blocks),
    )
    return _complete(result, played.cut)
