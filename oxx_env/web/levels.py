"""The opponents that the page offers, from the weakest to the strongest."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache

from oxx_env import bots


@dataclass(frozen=True)
class Level:
    """One strength.

    name     what the page and the files call it
    title    what people read
    about    how it plays, in a few words
    spec     the bot's specification
    """

    name: str
    title: str
    about: str
    spec: str


# A number of deals, not a time: an answer that was not yet written when the server stopped then
# comes out the same once more. So many that nine such bots at one table still answer at once.
SEARCH = "search:champion:24"

_CHOICES = (  # the first of a name that this installation can make is offered
    Level("random", "Random", "any card, any row", "random"),
    Level("greedy", "Greedy", "the best points right now", "greedy"),
    Level("careful", "Careful", "thinks of what comes before its turn", "careful"),
    Level("champion", "Champion", "a trained network", "policy:champion"),
    Level("champion", "Champion", "a trained network", "policy:quick"),
    Level("search", "Champion with search", "the network, thinking ahead", SEARCH),
)

_own = threading.local()  # level -> bot


@cache
def levels() -> tuple[Level, ...]:
    """The levels that can be played here."""
    found: dict[str, Level] = {}
    for level in _CHOICES:
        if level.name not in found:
            try:
                bots.make(level.spec)
            except (ValueError, OSError, ImportError):  # not shipped, or not in this version
                continue
            found[level.name] = level
    return tuple(found.values())


def bot_of(name: str) -> bots.Bot:
    """The bot of a level, each thread's own: a bot has work space, but keeps nothing between moves.

    Where a kept table names a level not to be had here, the strongest one plays.
    """
    own: dict[str, bots.Bot] = _own.__dict__
    if name not in own:
        own[name] = bots.make(next((x for x in levels() if x.name == name), levels()[-1]).spec)
    return own[name]
