"""Matches whose numbers can be trusted: the same deals for all, seats rotated, intervals by block.

    result = arena.play(["mc:200", "greedy"], players=4, games=2000, seed=1)
    result.bots[0].win_share, result.bots[0].ci95
    print(result.to_dict())

A *block* is one deal played `players` times, all line-up positions moved one seat on each time, so
that seats and lucky cards favour no bot. The block is the unit of all intervals (`ratings`). Deals
and bots' generators come from (seed, block, rotation, seat) alone (`lib.seeding`): the number of
workers, an interruption or a resumed log change nothing but `timing`.

`play` is one line-up, `pairwise` each bot among copies of each other, `league` random line-ups with
a rating, `compare` two bots in the same seats of the same deals. All take `Options`, or its fields
by name.

Instead of a specification, a bot object (`act`, `needs_state`, `spec`) will do; several workers
need it to be picklable. Mistakes are ValueErrors. Ctrl-C raises `Interrupted`, a KeyboardInterrupt
that carries the result of the finished blocks.

    options   what all of them take
    matches   the ways to play
    blocks    one deal with all its seatings
    running   blocks until there are enough, with `log`
    results   what is counted, and what `--json` prints
    ratings   intervals and ratings
"""

from oxx_env.arena.matches import compare, evaluate, league, pairwise, play
from oxx_env.arena.options import Options
from oxx_env.arena.results import (
    Comparison,
    Difference,
    Entry,
    Interrupted,
    League,
    Outcomes,
    Pair,
    Pairs,
    Rated,
    Result,
    difference,
    outcomes,
    summarise,
)

__all__ = ["Comparison", "Difference", "Entry", "Interrupted", "League", "Options", "Outcomes"]
__all__ += ["Pair", "Pairs", "Rated", "Result", "compare", "difference", "evaluate", "league"]
__all__ += ["outcomes", "pairwise", "play", "summarise"]
