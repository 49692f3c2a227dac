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
    commands       the command `oxx`

Importing the package registers `oxx/baron-oxx-v0` with PettingZoo and `oxx_env/BaronOxx-v0` with
Gymnasium, whether these were imported before or are afterwards. It compiles and loads nothing:
modules come when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from oxx_env.lib.imports import when_imported
from oxx_env.lib.version import __version__ as __version__

if TYPE_CHECKING:
    from oxx_env import arena as arena
    from oxx_env import baron_oxx_v0 as baron_oxx_v0
    from oxx_env import bots as bots
    from oxx_env import envs as envs
    from oxx_env import notation as notation
    from oxx_env.arena import ratings as ratings
    from oxx_env.bots import advice as advice
    from oxx_env.game import cards as cards
    from oxx_env.game import engine as engine
    from oxx_env.game import observe as observe
    from oxx_env.game import rules as rules
    from oxx_env.game import table as table
    from oxx_env.game import views as views
    from oxx_env.notation import records as records
    from oxx_env.notation import tracker as tracker
    from oxx_env.policy import insight as insight
    from oxx_env.show import film as film
    from oxx_env.show import render as render

PETTINGZOO_ID = "oxx/baron-oxx-v0"
GYMNASIUM_ID = "oxx_env/BaronOxx-v0"

_PUBLIC = {  # attribute of the package → the module that it is
    "advice": "bots.advice",
    "arena": "arena",
    "baron_oxx_v0": "baron_oxx_v0",
    "bots": "bots",
    "cards": "game.cards",
    "engine": "game.engine",
    "envs": "envs",
    "film": "show.film",
    "insight": "policy.insight",
    "notation": "notation",
    "observe": "game.observe",
    "ratings": "arena.ratings",
    "records": "notation.records",
    "render": "show.render",
    "rules": "game.rules",
    "table": "game.table",
    "tracker": "notation.tracker",
    "views": "game.views",
}


def __getattr__(name: str) -> Any:
    """The public modules as attributes, wherever they lie: `from oxx_env import table`."""
    if name in _PUBLIC:
        return importlib.import_module(f"{__name__}.{_PUBLIC[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})


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
