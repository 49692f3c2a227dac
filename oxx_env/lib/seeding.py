"""Where randomness comes from: one seed and a purpose give each deal and each bot its own stream.

A *block* is one deal played in all its seatings (a single seating in `oxx record`); the *rotation*
is how far the seats are turned. No stream depends on another's use, so the number of workers, the
order of the games and the other bots at the table change nothing.
"""

from __future__ import annotations

import numpy as np


def game_seed(seed: int, block: int) -> int:
    """The seed of a block's deal: 53 bits, so that every JSON reader keeps it exactly.

    Raises ValueError for a negative seed or block.

    >>> game_seed(0, 0) == game_seed(0, 0), game_seed(0, 0) == game_seed(0, 1)
    (True, False)
    """
    state = np.random.SeedSequence([seed, block]).generate_state(1, np.uint64)[0]
    return int(state) >> 11


def bot_rng(seed: int, block: int, rotation: int, seat: int) -> np.random.Generator:
    """The generator of the bot at a seat, for all games of one match.

    Raises ValueError for a negative number.
    """
    return np.random.default_rng([seed, block, rotation, seat])
