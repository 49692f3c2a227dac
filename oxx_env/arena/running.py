"""Play the blocks of a setup: in this process or several, with a log, until there are enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain

from oxx_env.arena.blocks import Block, Lineups, Player, Setup
from oxx_env.arena.log import Log
from oxx_env.arena.options import Options
from oxx_env.arena.ratings import Interval
from oxx_env.lib.jobs import Jobs

FIRST_LOOK = 50  # blocks before the first look at the width
GROWTH = 1.25  # and the factor to each further look

Intervals = Callable[[list[Block]], list[Interval]]


@dataclass(frozen=True)
class Played:
    """Blocks in order; `cut` where Ctrl-C ended them early."""

    setup: Setup
    blocks: list[Block]
    cheats: bool
    cut: bool
    seconds: float


def play_blocks(setup: Setup, options: Options, lineups: Lineups, intervals: Intervals) -> Played:
    """Play blocks until there are `options.games`, or until intervals are narrow enough.

    lineups    number of a block → its line-ups
    intervals  of blocks: those that `options.until_width` is about

    The blocks are the same for any number of workers, after an interruption and from a log. Raises
    ValueError for a log of another setup, OSError for one that cannot be used or a worker that
    died, KeyboardInterrupt where no block was finished.
    """
    started = time.perf_counter()
    limit, width, cut = options.blocks(setup), options.until_width, False
    each = setup.block_games * len(lineups(0))
    total = None if limit is None or width is not None else limit * each
    jobs = Jobs(partial(Player, setup), int(options.workers))
    together = jobs.worker.together(len(lineups(0)))
    with ExitStack() as stack:
        log = None if options.log is None else stack.enter_context(Log(options.log, setup))
        done = log.blocks if log else []
        for block in done:
            if block.lineups != lineups(block.number):
                raise ValueError(
                    f"{options.log}: block {block.number} has other line-ups than this run"
                )
        try:
            with jobs:
                for goal in goals(limit, width is not None):
                    first = len(done) // together * together
                    wanted = (
                        [(number, lineups(number)) for number in range(start, start + together)]
                        for start in range(first, goal, together)
                    )
                    for block in chain.from_iterable(jobs.run(wanted)):
                        if block.number < len(done):  # kept in the log of a group that was cut
                            continue
                        done.append(block)
                        if log:
                            log.append(block)
                        if options.progress:
                            options.progress(min(len(done), limit or len(done)) * each, total)
                    if width and max(map(half, intervals(done[:goal]))) <= width:
                        limit = goal
                        break
        except KeyboardInterrupt:
            if not done:
                raise
            cut = True
    seconds = time.perf_counter() - started
    return Played(setup, done[:limit], jobs.worker.cheats, cut, seconds)


def goals(limit: int | None, looking: bool) -> Iterator[int]:
    """Numbers of blocks at which to stop and look; the last is the limit, if there is one."""
    goal = FIRST_LOOK
    while looking and (limit is None or goal < limit):
        yield goal
        goal = math.ceil(goal * GROWTH)
    if limit is not None:
        yield limit


def half(interval: Interval) -> float:
    """Half of an interval's width."""
    return (interval[1] - interval[0]) / 2
