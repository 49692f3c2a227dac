"""Options declare type and range at the field, and one check holds both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from oxx_env.game import rules
from oxx_env.game.options import MatchOptions
from oxx_env.game.validation import MAX_GAMES
from oxx_env.lib.options import Range, check


@dataclass(kw_only=True)
class Options:
    example: ClassVar[str] = "an example"
    players: Annotated[tuple[int, ...], Range(2, 10)] = (2,)
    learning_rate: Annotated[float, Range(above=0)] = 1e-3
    games: Annotated[int, Range(1)] = 1
    limit: Annotated[int | None, Range(1)] = None
    rules: Literal["base", "color"] = "base"
    name: str = ""
    quick: bool = False
    share: Annotated[float, Range(above=0, most=1)] = 0.5
    deck: str | list[int] = "balanced"
    extra: Any = None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"players": (2, 10), "limit": 3, "learning_rate": 1, "deck": [1]},
        {"games": np.int64(3), "learning_rate": np.float32(0.5)},
        {"players": (), "extra": [1], "name": "x", "quick": True},
    ],
)
def test_options_within_their_types_and_ranges_are_taken(changes: dict[str, Any]) -> None:
    check(Options(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"players": (2, 11)}, "players is from 2 to 10, not 11"),
        ({"players": [2]}, "players is a list, not [2]"),
        ({"players": (2.0,)}, "players: a whole number is needed, not 2.0"),
        ({"learning_rate": 0.0}, "learning_rate is above 0, not 0.0"),
        ({"learning_rate": math.inf}, "learning_rate is above 0, not inf"),
        ({"learning_rate": math.nan}, "learning_rate is above 0, not nan"),
        ({"share": 0}, "share is above 0 and at most 1, not 0"),
        ({"games": 0}, "games is at least 1, not 0"),
        ({"games": True}, "games: a whole number is needed, not True"),
        ({"games": None}, "games: a whole number is needed, not None"),
        ({"limit": 0}, "limit is at least 1, not 0"),
        ({"name": 3}, "name: a text is needed, not 3"),
        ({"quick": 1}, "quick: true or false is needed, not 1"),
    ],
)
def test_an_option_of_another_type_or_out_of_range_is_named(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError) as caught:
        check(Options(**changes))
    assert str(caught.value) == message


def test_options_are_named_as_their_user_spells_them() -> None:
    def spelled(name: str) -> str:
        return "--" + name.replace("_", "-")

    with pytest.raises(ValueError, match="--learning-rate is above 0"):
        check(Options(learning_rate=-1.0), spelled)


def test_the_options_of_a_match_have_the_bounds_of_the_game() -> None:
    least, most = rules.MIN_PLAYERS, rules.MAX_PLAYERS
    for name, low, high in (("players", least, most), ("match", 1, MAX_GAMES)):
        check(MatchOptions(**{name: low}))
        check(MatchOptions(**{name: high}))
        for wrong in (low - 1, high + 1):
            with pytest.raises(ValueError, match=f"{name} is from {low} to {high}, not {wrong}"):
                check(MatchOptions(**{name: wrong}))
