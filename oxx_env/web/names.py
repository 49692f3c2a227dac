"""Names of people at a table: what of a name can be seen, and which names look alike.

A small part of Unicode's confusables (UTS 39) is enough for names of 20 characters: letters of the
Greek and Cyrillic scripts that are drawn like Latin ones, capitals, spaces, and marks that nobody
sees. What is left is shown in isolation, so that its direction turns nothing around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

MAX_NAME = 20  # characters
MAX_MARKS = 3  # accents on one letter
ISOLATE = "\u2068{}\u2069"  # the text within has its own direction: the page makes it a <bdi>

# Letters and marks without a picture, which Unicode does not class as format characters.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_LOOKS_LIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХԌԚԜаеѕіјорсухһԁԛԝӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαρνυικχϲ",
    "ABESIJKMHOPCTYXGQWaesijopcyxhdqwlABEZHIKMNOPTYXoapvuikxc",
)
_SAME_STROKE = str.maketrans("I1|0", "lllO")


def clean(text: str) -> str:
    """A name as it is shown: what cannot be seen is left out; empty where nothing is left.

    Raises ValueError, with a sentence, for what no name may hold.
    """
    told = unicodedata.normalize("NFKC", text)
    kinds = {character: unicodedata.category(character) for character in set(told)}
    for character, kind in kinds.items():
        if kind in ("Cc", "Cs", "Co", "Cn"):
            raise ValueError(f"U+{ord(character):04X} is no character of a name")
    told = "".join(c for c in told if kinds[c] != "Cf")
    told = unicodedata.normalize("NFKC", " ".join(_BLANK.sub("", told).split()))
    shown: list[str] = []
    marks = 0
    for character in told:
        mark = unicodedata.category(character).startswith("M")
        marks = marks + 1 if mark else 0
        if marks <= MAX_MARKS and (shown or not mark):  # a mark needs a letter before it
            shown.append(character)
    told = "".join(shown).strip()
    if len(told) > MAX_NAME:
        raise ValueError(f"should be a text of at most {MAX_NAME} characters")
    return told


def look_alike(one: str, other: str) -> bool:
    """Might people take one name for the other?"""
    return any(a == b for a, b in zip(_skeletons(one), _skeletons(other), strict=True))


def distinct(wanted: str, others: Iterable[str]) -> str:
    """`wanted`, or with a number after it the first that looks like no other name."""
    others = list(others)
    name, count = wanted, 1
    while any(look_alike(name, other) for other in others):
        count += 1
        name = f"{wanted} {count}"
    return name


def _skeletons(name: str) -> tuple[str, str]:
    """What is left of a name in a hurried eye: by its letters, and by the strokes of each."""
    told = unicodedata.normalize("NFKC", name).replace(" ", "")
    letters = told.casefold().translate(_LOOKS_LIKE)
    strokes = told.translate(_LOOKS_LIKE).translate(_SAME_STROKE).casefold()
    return letters, strokes
