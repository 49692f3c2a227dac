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
    about    its way of playing in a few words
    spec     the bot's specification
    """

    name: str
    title: str
    about: str
    spec: str


# A number of deals and not a time: after a restart a bot repeats a decision that was not yet saved.
# With 24 deals nine such bots at one table still answer at once.
SEARCH = "search:champion:24"

_CHOICES = (  # of a name, the first that this installation can make
    Level("random", "Random", "any card, any row", "random"),
    Level("greedy", "Greedy", "the best points right now", "greedy"),
    Level("careful", "Careful", "considers the cards that come before its own", "careful"),
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
    """The bot of a level, one for each thread, since a bot has work space; it keeps nothing between
    moves. For a level that this installation lacks (a file may name it), the strongest one.
    """
    own: dict[str, bots.Bot] = _own.__dict__
    if name not in own:
        own[name] = bots.make(next((x for x in levels() if x.name == name), levels()[-1]).spec)
    return own[name]
