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
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import NoneType
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
            most = f" and at most {self.most:g}" if self.most < math.inf else ""
            return f"above {self.above:g}{most}"
        if self.most == math.inf:
            return f"at least {self.least:g}"
        return f"from {self.least:.12g} to {self.most:.12g}"


NOT_EMPTY = "not empty"  # in a tuple's `Annotated`: it holds at least one value
_KINDS: dict[Any, tuple[Any, str]] = {  # annotation → what is taken for it, in words
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: (bool, "true or false"),
    str: (str, "a text"),
}


def check(options: Any, spelled: Callable[[str], str] = str) -> None:
    """Raise ValueError unless each field of a dataclass holds what its annotation says.

    A field of type int, float, bool or str is checked, of one of these or None, and of a tuple of
    them; so are `Range` and `NOT_EMPTY` in its `Annotated`. Fields of other types are left alone.

    spelled  the name of a field as its user knows it: `--run-dir` for `run_dir`
    """
    hints = get_type_hints(type(options), include_extras=True)
    for field in fields(options):
        hint, ranges = hints[field.name], []
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
            ranges = [extra for extra in extras if isinstance(extra, Range)]
            if NOT_EMPTY in extras and getattr(options, field.name) == ():
                raise ValueError(f"{spelled(field.name)}: at least one is needed")
        _check_value(spelled(field.name), getattr(options, field.name), hint, ranges)


def _check_value(name: str, value: Any, hint: Any, ranges: list[Range]) -> None:
    parts = get_args(hint) or (hint,)
    kinds = list(dict.fromkeys(part for part in parts if part not in (NoneType, Ellipsis)))
    if len(kinds) != 1 or kinds[0] not in _KINDS or (value is None and NoneType in parts):
        return
    kind, meant = _KINDS[kinds[0]]
    several = get_origin(hint) is tuple
    if several and not isinstance(value, tuple):
        raise ValueError(f"{name} is a list, not {value!r}")
    for one in value if several else (value,):
        # In Python a truth value is a whole number, too.
        if not isinstance(one, kind) or (isinstance(one, bool) and kind is not bool):
            raise ValueError(f"{name}: {meant} is needed, not {one!r}")
        for allowed in ranges:
            if one not in allowed:
                raise ValueError(f"{name} is {allowed}, not {one!r}")
