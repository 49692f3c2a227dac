"""Bots by specification: `make("greedy")`, `make("mc:200:horizon=4")`, `make("policy:champion")`.

A specification is a name, then its arguments in order, then options `key=value`, all separated by
colons. `BOTS` lists the names. Those that run a user's own code (`own`) need `own_code=True`. A bot
sees only a view (`views.View`); one that needs the hidden cards says so (`needs_state`) and is
served by the arena alone.

>>> import numpy as np
>>> from oxx_env.game.table import Table
>>> table = Table(players=2)
>>> table.deal(seed=1)
>>> make("greedy").act(table.view(0), np.random.default_rng(7)) in table.legal(0)
True
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from oxx_env.lib import extras

if TYPE_CHECKING:
    import numpy as np

    from oxx_env.game.views import View

__all__ = ["ADVISER", "BOTS", "Bot", "BotSpecError", "Kind", "describe", "make"]

ADVISER = "search:champion:1600"  # gives advice where no bot is named


class BotSpecError(ValueError):
    """A bot's specification that names no bot; the message says what would be right."""


@runtime_checkable
class Bot(Protocol):
    """What plays a seat.

    spec         the specification it was made from
    needs_state  does it see hidden cards? Then `act` takes `state`, the full GAME [1], besides
    """

    spec: str
    needs_state: bool

    def act(self, view: View, rng: np.random.Generator) -> int:
        """One of `view.legal`; `PASS` where the seat has nothing to decide.

        All chance comes from `rng`: the same view and generator give the same action.
        """
        ...


Factory = Callable[..., Bot]


@dataclass(frozen=True)
class Kind:
    """One name of the registry.

    summary    one line for --help
    module     where it is made, imported on first use
    factory    name of `(*arguments, options) -> Bot` in that module: texts, and a mapping of texts;
               it raises BotSpecError for a wrong value, and `make` fills in the bot's `spec`
    arguments  names of the arguments, all required
    options    name -> what it means
    number     of a bot that compiled code can play, wherever arrays of players hold numbers
               (`compiled_number`); networks that learn hold the others
    flags      options without a value: name -> what it means
    own_code   does it run code of a file that it names?
    """

    summary: str
    module: str
    factory: str
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    number: int | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    own_code: bool = False

    def usage(self, name: str) -> str:
        """How to write it, e.g. `mc:BUDGET[:horizon=…]`."""
        options = "".join(f"[:{option}=…]" for option in self.options)
        options += "".join(f"[:{flag}]" for flag in self.flags)
        return ":".join([name, *(argument.upper() for argument in self.arguments)]) + options


_SIMPLE = "oxx_env.bots.simple"

BOTS: dict[str, Kind] = {
    "random": Kind("any legal action, all alike", _SIMPLE, "Random", number=0),
    "greedy": Kind("the best points now", _SIMPLE, "Greedy", number=1),
    "lowest": Kind("always the lowest card", _SIMPLE, "Lowest"),
    "highest": Kind("always the highest card", _SIMPLE, "Highest"),
    "careful": Kind(
        "weighs what may come before its turn, and what keeps", _SIMPLE, "Careful", number=3
    ),
    "cheat": Kind(
        "Monte Carlo that sees all hands: an upper reference, in the arena only",
        "oxx_env.bots.monte_carlo",
        "Cheat",
    ),
    "mc": Kind(
        "Monte Carlo over BUDGET deals of the hidden cards (200), or milliseconds (5ms)",
        "oxx_env.bots.monte_carlo",
        "MonteCarlo",
        ("budget",),
        {
            "horizon": "rounds a play-out lasts, or end",
            "value": "points (mean relative points) or win (share of the victory)",
        },
        number=4,
    ),
    "policy": Kind(
        "a trained network: a checkpoint folder or a shipped name",
        "oxx_env.bots.policy",
        "make_policy",
        ("path",),
        {"rows": "policy (its own choice) or greedy"},
    ),
    "search": Kind(
        "a policy and search together: BUDGET deals for each action (64), or milliseconds (5ms)",
        "oxx_env.bots.search",
        "make_search",
        ("path", "budget"),
        {
            "player": "checkpoint whose network plays out (the one that PATH names)",
            "rounds": "rounds it plays out before greedy goes on",
            "prior": "how many deals the policy's opinion counts for",
        },
    ),
    "py": Kind(
        "your own bot: FILE is a file (bot.py) or a module, NAME a class in it; runs its code",
        "oxx_env.bots.own",
        "make_py",
        ("file", "name"),
        own_code=True,
    ),
    "sb3": Kind(
        "a model that stable-baselines3 saved (FILE.zip); runs the code in it",
        "oxx_env.bots.own",
        "make_sb3",
        ("file",),
        flags={"sample": "draws from its distribution instead of taking the best action"},
        own_code=True,
    ),
}


def describe() -> str:
    """The registry as lines of usage and summary, options below their bot, for --help."""
    usages: dict[str, str] = {}
    for name, kind in BOTS.items():
        usages[kind.usage(name)] = kind.summary
        for option, meaning in kind.options.items():
            usages[f"  {option}=…"] = meaning
        for flag, meaning in kind.flags.items():
            usages[f"  {flag}"] = meaning
    width = max(map(len, usages))
    return "\n".join(f"{usage:{width}}  {summary}" for usage, summary in usages.items())


def compiled_number(name: str) -> int:
    """The number of a bot that compiled code can play. Raises KeyError for any other."""
    number = BOTS[name].number
    if number is None:
        raise KeyError(name)
    return number


def make(spec: str, own_code: bool = False) -> Bot:
    """The bot of a specification. Raises BotSpecError for one that is not right.

    own_code  may it run code of a file that it names (`py:`, `sb3:`)? Only for specifications
              that a person typed or a program holds, never for those out of a file
    """
    if not isinstance(spec, str) or not spec:
        raise BotSpecError(f"a bot is named by a text such as 'greedy' or 'mc:200', not {spec!r}")
    name, *parts = spec.split(":")
    if name not in BOTS:
        meant = _meant(name, parts)
        hint = f"did you mean {meant}? " if meant else ""
        known = ", ".join(BOTS)
        raise BotSpecError(f"unknown bot {name!r} in {spec!r}: {hint}choose one of {known}")
    kind = BOTS[name]
    if kind.own_code and not own_code:
        raise BotSpecError(
            f"{spec!r} runs code of a file: it can be typed as an option of a command, or made by "
            "bots.make(spec, own_code=True)"
        )
    wanted = len(kind.arguments)
    arguments, rest = parts[:wanted], parts[wanted:]
    if len(arguments) < wanted or not all(arguments):
        missing = kind.arguments[len(arguments) :] or kind.arguments
        raise BotSpecError(
            f"{spec!r} lacks its {' and '.join(missing)}: write {kind.usage(name)}"
            f"{_example(name, arguments)}"
        )
    options = _options(spec, name, kind, rest)
    try:
        with extras.needed_by(repr(spec)):
            module: Any = importlib.import_module(kind.module)
    except ModuleNotFoundError as error:
        if error.name == kind.module:
            raise BotSpecError(f"{spec!r}: this version has no {name} bot") from error
        raise
    factory: Factory = getattr(module, kind.factory)
    bot = factory(*arguments, options)
    bot.spec = spec
    return bot


def _meant(name: str, parts: Sequence[str]) -> str | None:
    """What was probably meant by an unknown name: a policy's name alone, or a misspelt bot."""
    tail = "".join(f":{part}" for part in parts)
    shipped: list[str] = []
    with suppress(ImportError):  # policies need an extra
        shipped = importlib.import_module("oxx_env.policy.checkpoint").shipped()
    folder = name
    if name not in shipped:
        with suppress(OSError, ValueError):  # a name that no file can have
            if not (Path(name) / "config.json").is_file():
                close = difflib.get_close_matches(name.lower(), [*BOTS, *shipped], n=1)
                if close and close[0] in BOTS:
                    return f"{close[0]}{tail}"
                folder = close[0] if close else ""
    if not folder:
        return None
    budget = bool(parts) and re.fullmatch(r"[0-9]+(ms)?", parts[0]) is not None
    return f"{'search' if budget else 'policy'}:{folder}{tail}"


def _example(name: str, arguments: Sequence[str]) -> str:
    """A complete specification, for one that lacks a part."""
    given = next(iter(arguments), "") or "champion"
    examples = {"mc": "mc:200", "policy": "policy:champion", "search": f"search:{given}:64"}
    return f", for example {examples[name]}" if name in examples else ""


def _options(spec: str, name: str, kind: Kind, parts: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        possible = kind.flags if not equals else kind.options if value else ()
        if key not in possible:
            known = ", ".join([*(f"{option}=…" for option in kind.options), *kind.flags]) or "none"
            raise BotSpecError(f"{spec!r}: {name} has no option {part!r}; its options: {known}")
        if key in options:
            raise BotSpecError(f"{spec!r} gives {key} twice")
        options[key] = value
    return options
