"""A reinforcement-learning environment for the card game 6 nimmt! Baron Oxx.

    baron_oxx_v0   the PettingZoo environments: `parallel_env`, `env` (AEC)
    envs           the classes behind them; Gymnasium against bots; SB3 VecEnv
    bots           players by specification: `bots.make("greedy")`
    table          `Table`, a match in progress: views, records
    rules, engine  the rules as one compiled kernel; batches of games
    views          what one seat knows
    observe        the observation by named pieces; `explain`
    cards          decks: load, check, describe
    render         a view as text and pixels
    film           a recorded game as pictures
    insight        what a trained policy does and believes
    cli            the command `oxx`

Importing the package registers `oxx/baron-oxx-v0` with PettingZoo and `oxx_env/BaronOxx-v0` with
Gymnasium, whether these were imported before or are afterwards. It compiles and loads nothing:
modules come when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from oxx_env.imports import when_imported

__version__ = "0.1.0"

PETTINGZOO_ID = "oxx/baron-oxx-v0"
GYMNASIUM_ID = "oxx_env/BaronOxx-v0"

_MODULES = (
    "advice",
    "arena",
    "baron_oxx_v0",
    "bots",
    "cards",
    "cli",
    "engine",
    "envs",
    "film",
    "insight",
    "network",
    "notation",
    "observe",
    "ratings",
    "records",
    "render",
    "rules",
    "table",
    "tracker",
    "views",
)


def __getattr__(name: str) -> Any:
    """`oxx_env.table` and the like without a second import statement."""
    if name in _MODULES:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


def _register_with_gymnasium() -> None:
    import gymnasium

    if GYMNASIUM_ID not in gymnasium.registry:  # reloading the package warns otherwise
        gymnasium.register(
            GYMNASIUM_ID,
            entry_point="oxx_env.envs.single:BaronOxxSingle",
            vector_entry_point="oxx_env.envs.gym_vector:BaronOxxVectorEnv",
        )


def _register_with_pettingzoo() -> None:
    import pettingzoo

    if PETTINGZOO_ID not in pettingzoo.parallel_registry:
        module = "oxx_env.baron_oxx_v0"
        pettingzoo.register("parallel", PETTINGZOO_ID, entry_point=f"{module}:parallel_env")
        pettingzoo.register("aec", PETTINGZOO_ID, entry_point=f"{module}:env")


# Bots, the arena and search need neither: to load both takes longer than numpy.
when_imported("gymnasium", _register_with_gymnasium)
when_imported("pettingzoo", _register_with_pettingzoo)
