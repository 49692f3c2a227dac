"""Options as fields of a dataclass: each declares its type and range once, and `check` holds both.

    @dataclass
    class Options:
        players: Annotated[tuple[int, ...], Range(2, 10)] = (2,)
        learning_rate: Annotated[float, Range(above=0)] = 1e-3

    check(Options(players=(2, 11)))     ValueError: players is from 2 to 10, not 11
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Range:
    """The finite numbers from `least` to `most`, both included, and greater than `above`."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most and value > self.above and math.isfinite(value)

    def __str__(self) -> str:
        if self.above > -math.inf:
            return f"above {self.above:g}"
        if self.most == math.inf:
            return f"at least {self.least:g}"
        return f"from {self.least:.12g} to {self.most:.12g}"


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def check(options: Any, spelled: Callable[[str], str] = str) -> None:
    """Raise ValueError unless each field of a dataclass holds what its annotation says.

    A field of one of the types int, float, bool, str, of one of them or None, or of a tuple of any
    number of them is checked; so is the `Range` in its `Annotated`. Other types are left alone.

    spelled  the name of a field as its user knows it: `--run-dir` for `run_dir`
    """
    for name, hint in get_type_hints(type(options), include_extras=True).items():
        if not hasattr(options, name):  # a ClassVar without a value
            continue
        ranges: list[Range] = []
        if get_origin(hint) is Annotated:
            ranges = [extra for extra in hint.__metadata__ if isinstance(extra, Range)]
            hint = get_args(hint)[0]
        _check_field(spelled(name), getattr(options, name), hint, ranges)


def _check_field(name: str, value: Any, hint: Any, ranges: list[Range]) -> None:
    several = get_origin(hint) is tuple
    kinds = [hint] if hint in _KINDS else [kind for kind in get_args(hint) if kind in _KINDS]
    if len(kinds) != 1 or (value is None and type(None) in get_args(hint)):
        return
    (kind,) = kinds
    if several and not isinstance(value, tuple):
        raise ValueError(f"{name} is a list, not {value!r}")
    for one in value if several else (value,):
        # In Python a truth value is a whole number, and a whole number is no float.
        fits = isinstance(one, (int, float) if kind is float else kind)
        if not fits or (isinstance(one, bool) and kind is not bool):
            raise ValueError(f"{name}: {_KINDS[kind]} is needed, not {one!r}")
        for allowed in ranges:
            if one not in allowed:
                raise ValueError(f"{name} is {allowed}, not {one!r}")
