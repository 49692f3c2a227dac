"""The deck: which heads each card shows. Load, check, describe, shuffle and save one.

A deck is a `uint8` array [CARD, COLOR] of head counts: row `number - 1`, columns in the order of
`COLORS`. Wherever one is asked for, four things will do (a *deck spec*): a shipped name, the path
of a CSV file, an integer array, or a function `rng -> deck spec` that gives each game its own.

The true list of the published game is not public, so the shipped decks are reconstructions and an
owner of the box replaces them by a file like this:

    number,blue,yellow,green,red,black,white
    1,1,0,0,0,0,0
    ...

Semicolons or tabs, other orders of the columns, German, French and Chinese headers, empty cells for
0 and the encodings of spreadsheets are read as well (`spreadsheet`).

>>> from oxx_env import cards
>>> deck = cards.load_deck("balanced")
>>> deck.shape, int(deck.sum())
((110, 6), 246)
>>> deck[cards.BARONS[0] - 1].tolist()
[1, 1, 1, 1, 1, 1]
"""

from __future__ import annotations

import difflib
import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from oxx_env.lib import spreadsheet
from oxx_env.lib.files import read_bounded
from oxx_env.lib.texts import cut, printable

COLORS = ("blue", "yellow", "green", "red", "black", "white")
NUMBERS = 110  # cards are numbered 1–110, each once (R1)
BARONS = (52, 104)  # one head of each color (R1)
MAX_HEADS = 7  # of one color on one card, in a deck file
DECK_NAMES = ("balanced", "three-color", "two-color")  # the first is the default
LETTERS = "BYGRKW"  # a head of each color, in the order of COLORS; K is black
MOST_LETTERS = 6  # heads written one by one; more are counted
HEADER = spreadsheet.COLUMNS  # number, then COLORS

Deck: TypeAlias = npt.NDArray[np.uint8]  # [CARD, COLOR] heads
DeckSpec: TypeAlias = (
    str | os.PathLike[str] | npt.NDArray[Any] | Sequence[Sequence[int]] | Callable[..., Any]
)

_FOLDER = Path(__file__).parent / "decks"
_MAX_BYTES = 1 << 20  # a deck file has about 2,000
_BARON_ROWS = np.array(BARONS) - 1
_ORDINARY_ROWS = np.delete(np.arange(NUMBERS), _BARON_ROWS)
_CARD = re.compile(r"([0-9]{1,9})(?:\s*([A-Za-z][A-Za-z0-9]{0,20}))?(?:\s*[,;]\s*|\s+|$)")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a deck."""

    line: int | None  # 1-based line of the file; None for an array
    message: str  # what is wrong, and what would be right

    def __str__(self) -> str:
        return self.message if self.line is None else f"line {self.line}: {self.message}"


class DeckError(ValueError):
    """A deck that cannot be used.

    Its message says what is wrong, where, and what would be right; `faults` lists everything that
    is wrong with the content; `readable` is False where there is no deck at all to check (no such
    name or file, no access, not text, nothing like a deck in it).
    """

    SHOWN = 5  # faults in the message; `faults` has all

    def __init__(self, source: str, faults: Sequence[Fault], readable: bool = True) -> None:
        self.source = source
        self.faults = tuple(faults)
        self.readable = readable
        shown = [str(fault) for fault in self.faults[: self.SHOWN]]
        if len(self.faults) > self.SHOWN:
            shown.append(f"and {len(self.faults) - self.SHOWN} more")
        super().__init__(f"{source}: " + "; ".join(shown))

    def __reduce__(self) -> tuple[Any, ...]:  # so that worker processes can send it
        return type(self), (self.source, self.faults, self.readable)


# ------------------------------------------------------------------------------------- loading


def load_deck(spec: DeckSpec) -> Deck:
    """The deck that `spec` (a shipped name, the path of a CSV, or an int array) means.

    Returns a new `uint8` array [CARD, COLOR]. Raises `DeckError`. A shipped name goes before a
    file of the same name; write `./balanced` for the file.
    """
    if callable(spec):
        raise TypeError("a function that makes decks needs a generator: call resolve(spec, rng)")
    if isinstance(spec, str) and spec in DECK_NAMES:
        return _shipped(spec).copy()
    if isinstance(spec, str | os.PathLike):
        deck, faults, readable = _read(_existing_path(spec))
        if faults:
            raise DeckError(os.fspath(spec), faults, readable)
        return deck
    return _from_array(spec)


def parse_deck(data: bytes, source: str) -> Deck:
    """The deck in the bytes of a CSV file. Raises `DeckError`, which calls the file `source`."""
    deck, faults, readable = _read_bytes(data)
    if faults:
        raise DeckError(source, faults, readable)
    return deck


def resolve(spec: DeckSpec, rng: np.random.Generator) -> Deck:
    """Like `load_deck`; a function is called with `rng` and gives the deck of one game."""
    return load_deck(spec(rng) if callable(spec) else spec)


def deck_name(spec: DeckSpec) -> str:
    """What results and records call the deck: shipped name, file name, or `custom`."""
    if isinstance(spec, str) and spec in DECK_NAMES:
        return spec
    return Path(spec).name if isinstance(spec, str | os.PathLike) else "custom"


def check_deck(spec: DeckSpec) -> list[Fault]:
    """Everything that is wrong with the content of a deck, in the order of its lines.

    Empty for a good deck. Raises `DeckError` with `readable=False` where there is no deck at all
    to check.
    """
    try:
        load_deck(spec)
    except DeckError as error:
        if error.readable:
            return list(error.faults)
        raise
    return []


def save_deck(deck: npt.ArrayLike, path: str | os.PathLike[str]) -> None:
    """Write a deck as the CSV that `load_deck` reads. Raises `DeckError` for a bad one."""
    Path(path).write_bytes(to_csv(load_deck(np.asarray(deck))).encode())


def to_csv(deck: Deck) -> str:
    """The text of the deck's CSV file."""
    rows = ([number, *heads] for number, heads in enumerate(deck.tolist(), start=1))
    return "".join(",".join(map(str, row)) + "\n" for row in [HEADER, *rows])


# ---------------------------------------------------------------------------- describing, making


def letters(heads: Sequence[int]) -> str:
    """A card's heads [6] as letters: `BBY`, or with counts, `B4Y3`, where there are more than six.

    >>> letters([2, 1, 0, 0, 0, 0]), letters([4, 3, 0, 0, 0, 0])
    ('BBY', 'B4Y3')
    """
    counts = [(letter, int(count)) for letter, count in zip(LETTERS, heads, strict=True) if count]
    if sum(count for _, count in counts) > MOST_LETTERS:
        return "".join(f"{letter}{count}" for letter, count in counts)
    return "".join(letter * count for letter, count in counts)


def share_color(heads: Sequence[int], others: Sequence[int]) -> bool:
    """Do two cards, heads [6] each, show a color in common (R6)?"""
    return any(one and other for one, other in zip(heads, others, strict=True))


def card_text(number: int, heads: Sequence[int]) -> str:
    """A card as it is written everywhere: its number, a blank, and its heads as `letters`.

    >>> card_text(17, [1, 2, 0, 0, 0, 0])
    '17 BYY'
    """
    return f"{number} {letters(heads)}"


def read_cards(text: str, deck: Sequence[Sequence[int]]) -> list[int]:
    """The numbers of cards that a person typed: `17`, `17 BYY`, `17byy, 63 bk`.

    Raises ValueError for what is no card of the deck [110][6], also where the letters are of
    another card.
    """
    numbers = []
    rest = text.strip()
    while rest:
        found = _CARD.match(rest)
        if not found:
            raise ValueError(f"{_quote(rest)} is no card number; cards are 1 to {NUMBERS}")
        number = int(found[1])
        if not 1 <= number <= NUMBERS:
            raise ValueError(f"there is no card {number}; cards are 1 to {NUMBERS}")
        right = letters(deck[number - 1])
        if found[2] and sorted(found[2].upper()) != sorted(right):
            typed = f"{number} {found[2].upper()}"
            raise ValueError(f"there is no card {typed} in this deck; it has {number} {right}")
        numbers.append(number)
        rest = rest[found.end() :]
    return numbers


def card_type(heads: Sequence[int]) -> str:
    """A card by its heads, whatever the colors: `aab` is two of one color and one of another.

    >>> card_type([0, 1, 0, 2, 0, 0])
    'aab'
    """
    counts = sorted((int(count) for count in heads if count), reverse=True)
    return "".join(letter * count for letter, count in zip("abcdef", counts, strict=False))


def describe(deck: npt.ArrayLike) -> dict[str, Any]:
    """Figures of a deck, as plain JSON: how many cards and heads of what kind.

    `mono` and `mixed` count the cards that show one color and several; Barons are mixed.
    """
    deck = load_deck(np.asarray(deck))
    heads = deck.sum(axis=1)
    shown = (deck > 0).sum(axis=1)
    types = Counter(card_type(row) for row in deck[_ORDINARY_ROWS].tolist())
    return {
        "cards": NUMBERS,
        "barons": list(BARONS),
        "heads": int(heads.sum()),
        "cards_by_heads": {str(k): v for k, v in sorted(Counter(heads.tolist()).items())},
        "heads_by_color": dict(zip(COLORS, deck.sum(axis=0).tolist(), strict=True)),
        "cards_by_color": dict(zip(COLORS, (deck > 0).sum(axis=0).tolist(), strict=True)),
        "mono": int((shown == 1).sum()),
        "mixed": int((shown > 1).sum()),
        "types": dict(sorted(types.items(), key=lambda item: (len(item[0]), item[0]))),
    }


def random_deck(model: DeckSpec, rng: np.random.Generator) -> Deck:
    """A deck with the card types of `model`, dealt to the numbers and colors afresh.

    The ordinary cards change places among the numbers and the colors among themselves, so where
    every color has the same count of each type it still has. Made for training on many decks:
    `deck=functools.partial(random_deck, "balanced")` gives every game its own.
    """
    base = _shipped(model) if isinstance(model, str) and model in DECK_NAMES else load_deck(model)
    deck = base.copy()
    deck[_ORDINARY_ROWS] = base[rng.permutation(_ORDINARY_ROWS)][:, rng.permutation(len(COLORS))]
    return deck


# ---------------------------------------------------------------------------- reading, checking


@functools.cache
def _shipped(name: str) -> Deck:
    deck, faults, _ = _read(_FOLDER / f"{name}.csv")
    if faults:
        raise DeckError(name, faults)
    deck.flags.writeable = False
    return deck


def _existing_path(spec: str | os.PathLike[str]) -> Path:
    text = os.fspath(spec)
    path = Path(text)
    try:
        if text and path.exists():
            return path
    except (OSError, ValueError):  # a name too long, a null character
        pass
    close = difflib.get_close_matches(text, DECK_NAMES, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    message = (
        f"no deck of this name and no such file; {hint}"
        f"shipped decks are {', '.join(DECK_NAMES)}, and the path of a CSV file will do"
    )
    raise DeckError(_quote(text), [Fault(None, message)], readable=False)


def _read(path: Path) -> tuple[Deck, list[Fault], bool]:
    """Deck, faults, and whether it was a deck at all; the deck counts only without faults."""
    blank = np.zeros((NUMBERS, len(COLORS)), np.uint8)
    try:
        data = read_bounded(path, _MAX_BYTES)
    except IsADirectoryError:
        return blank, [Fault(None, "is a folder; the path of a CSV file is needed")], False
    except OSError as error:
        return blank, [Fault(None, f"cannot be read: {error.strerror}")], False
    except ValueError as error:
        problem = str(error) if str(error).startswith("is") else f"is {error}"
        message = f"{problem}; a deck is a CSV file of {NUMBERS + 1} short lines"
        return blank, [Fault(None, message)], False
    return _read_bytes(data)


def _read_bytes(data: bytes) -> tuple[Deck, list[Fault], bool]:
    text, fault = _decode(data)
    if fault:
        return np.zeros((NUMBERS, len(COLORS)), np.uint8), [fault], False
    return _parse(text)


def _decode(data: bytes) -> tuple[str, Fault | None]:
    try:
        text = spreadsheet.decode(data)
    except UnicodeDecodeError as error:
        if error.encoding.startswith("utf-16"):
            return "", Fault(None, "the file is no whole UTF-16; save it as UTF-8")
        bad, at = data[error.start], data.count(b"\n", 0, error.start) + 1
        return "", Fault(at, f"byte 0x{bad:02x} is not UTF-8; save the file as UTF-8")
    if "\0" in text:
        at = text.count("\n", 0, text.index("\0")) + 1
        return "", Fault(at, "a null byte; this is no text file, and a CSV in UTF-8 is needed")
    return text, None


def _parse(text: str) -> tuple[Deck, list[Fault], bool]:
    deck = np.zeros((NUMBERS, len(COLORS)), np.uint8)
    lines = list(spreadsheet.rows(text))
    wanted = ",".join(HEADER)
    if not lines:
        return deck, [Fault(1, f"the file is empty; it should begin with {wanted}")], False

    faults: list[Fault] = []
    places = list(range(len(HEADER)))  # where each field of HEADER stands
    labels: Sequence[str] = COLORS  # what the file calls the colors
    first_at, header = lines[0]
    known = spreadsheet.columns(header)
    if sorted(known) == sorted(HEADER):
        places = [known.index(name) for name in HEADER]
        labels = [cut(printable(header[place]), 20) for place in places[1:]]
        lines = lines[1:]
    elif _looks_like_card(header):
        faults.append(Fault(first_at, f"the header is missing; the first line should be {wanted}"))
    else:
        lines = lines[1:]
        faults.append(Fault(first_at, _wrong_header(header, known, wanted)))
        if not any(_looks_like_card(fields) for _, fields in lines):
            return deck, faults, len(set(known) & set(HEADER)) > 1

    seen: dict[int, int] = {}  # number -> line
    for at, fields in lines:
        while len(fields) > len(HEADER) and not fields[-1]:
            fields.pop()  # cells of nothing at the end
        if len(fields) != len(HEADER):
            message = f"{len(fields)} fields, should be {len(HEADER)} ({wanted})"
            faults.append(Fault(at, message))
            number = _integer(fields[0])
            if number is not None:  # the line is bad, but its number is not missing
                seen.setdefault(number, at)
            continue
        fields = [fields[place] for place in places]
        number = _integer(fields[0])
        if number is None or not 1 <= number <= NUMBERS:
            kind = "is not an integer" if number is None else "is out of range"
            message = f"number {_quote(fields[0])} {kind}; should be 1 to {NUMBERS}"
            faults.append(Fault(at, message))
        elif number in seen:
            message = f"number {number} appears twice, first on line {seen[number]}; once is right"
            faults.append(Fault(at, message))
            number = None
        else:
            seen[number] = at
        counts, bad = _counts([field or "0" for field in fields[1:]], labels)
        faults += [Fault(at, message) for message in bad]
        if not bad:
            faults += [Fault(at, message) for message in _card_faults(number, counts)]
            if number is not None and 1 <= number <= NUMBERS:
                deck[number - 1] = counts
    end = lines[-1][0] + 1 if lines else first_at + 1
    faults += _missing(seen, end)
    return deck, sorted(faults, key=lambda fault: fault.line or 0), True


def _wrong_header(header: Sequence[str], known: Sequence[str], wanted: str) -> str:
    """What is wrong with the first line, and what would be right."""
    message = f"wrong header {_quote(','.join(header))}; should be {wanted}"
    if len(set(known) & set(HEADER)) < 2:
        return message
    missing = [name for name in HEADER if name not in known]
    twice = [name for name in HEADER if known.count(name) > 1]
    other = [_quote(header[index], 20) for index, name in enumerate(known) if not name]
    found = [("missing", missing), ("twice", twice), ("unknown", other)]
    return "; ".join([message, *(f"{what}: {', '.join(names)}" for what, names in found if names)])


def _looks_like_card(fields: Sequence[str]) -> bool:
    return len(fields) == len(HEADER) and sum(_integer(field) is not None for field in fields) >= 4


def _integer(field: str) -> int | None:
    if not _INTEGER.fullmatch(field):
        return None
    return int(field) if len(field) < 10 else 10**9 * (-1 if field[0] == "-" else 1)


def _counts(fields: Sequence[str], labels: Sequence[str] = COLORS) -> tuple[list[int], list[str]]:
    """Head counts by color, and what is wrong with them."""
    counts, bad = [], []
    for color, field in zip(labels, fields, strict=True):
        count = _integer(field)
        if count is None:
            bad.append(f"{color} {_quote(field)} is not an integer; should be 0 to {MAX_HEADS}")
        elif not 0 <= count <= MAX_HEADS:
            kind = "is negative" if count < 0 else "is too large"
            bad.append(f"{color} {_quote(field)} {kind}; should be 0 to {MAX_HEADS}")
        counts.append(count or 0)
    return counts, bad


def _card_faults(number: int | None, counts: Sequence[int]) -> list[str]:
    """What is wrong with a card whose counts are all in range."""
    if number in BARONS and any(count != 1 for count in counts):
        given = ",".join(map(str, counts))
        return [f"number {number} is a Baron and should show 1,1,1,1,1,1, not {given}"]
    if not any(counts):
        name = "the card" if number is None else f"number {number}"
        return [f"{name} shows no heads; should be at least one"]
    return []


def _missing(seen: dict[int, int], end: int) -> list[Fault]:
    """Runs of missing numbers, each at the line where it should stand."""
    faults = []
    for low, high in _runs(number for number in range(1, NUMBERS + 1) if number not in seen):
        at = min((seen[number] for number in seen if number > high), default=end)
        what = f"number {low} is" if low == high else f"numbers {low} to {high} are"
        faults.append(Fault(at, f"{what} missing; each of 1 to {NUMBERS} should stand once"))
    return faults


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _from_array(cards: Any) -> Deck:
    shape = (NUMBERS, len(COLORS))
    try:
        array = np.asarray(cards)
    except ValueError:  # lists of unequal lengths
        array = np.asarray(None)
    if array.shape != shape or array.dtype.kind not in "iu":
        what = f"{array.dtype} array of shape {array.shape}" if array.shape else repr(type(cards))
        message = f"{what}; should be an integer array of shape {shape}: heads by card and color"
        raise DeckError("deck", [Fault(None, message)], readable=False)
    good = (
        array.min() >= 0
        and array.max() <= MAX_HEADS
        and array.any(axis=1).all()
        and (array[_BARON_ROWS] == 1).all()
    )
    if not good:
        faults = []
        for number, row in enumerate(array.tolist(), start=1):
            counts, bad = _counts([str(count) for count in row])
            bad = [f"number {number}: {message}" for message in bad]
            faults += [Fault(None, message) for message in bad or _card_faults(number, counts)]
        raise DeckError("deck", faults)
    return array.astype(np.uint8)


def _quote(text: str, limit: int = 60) -> str:
    return repr(cut(text, limit))
