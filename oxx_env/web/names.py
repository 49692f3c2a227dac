"""Names of people at a table: what of a name is visible, and which names look alike.

A small part of Unicode's confusables (UTS 39) is enough for names of 20 characters: Greek and
Cyrillic letters that look like Latin ones, capitals, spaces, and invisible marks. The rest is shown
in isolation, so that its writing direction changes nothing around it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

MAX_NAME = 20  # characters
MAX_MARKS = 3  # accents on one letter
ISOLATE = "\u2068{}\u2069"  # the text within has its own direction; the page makes it a <bdi>

# Invisible letters and marks that Unicode does not class as format characters.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_LOOKS_LIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХԌԚԜаеѕіјорсухһԁԛԝӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαρνυικχϲ",
    "ABESIJKMHOPCTYXGQWaesijopcyxhdqwlABEZHIKMNOPTYXoapvuikxc",
)
_SAME_STROKE = str.maketrans("I1|0", "lllO")


def clean(text: str) -> str:
    """A name as it is shown, without what is invisible; empty where nothing is left.

    Raises ValueError, with a sentence, for characters that no name may have.
    """
    text = unicodedata.normalize("NFKC", text)
    kinds = {character: unicodedata.category(character) for character in set(text)}
    for character, kind in kinds.items():
        if kind in ("Cc", "Cs", "Co", "Cn"):
            raise ValueError(f"U+{ord(character):04X} is no character of a name")
    text = "".join(c for c in text if kinds[c] != "Cf")
    text = unicodedata.normalize("NFKC", " ".join(_BLANK.sub("", text).split()))
    name, marks = "", 0
    for character in text:
        mark = unicodedata.category(character).startswith("M")
        marks = marks + 1 if mark else 0
        if marks <= MAX_MARKS and (name or not mark):  # a mark needs a letter before it
            name += character
    name = name.strip()
    if len(name) > MAX_NAME:
        raise ValueError(f"should be a text of at most {MAX_NAME} characters")
    return name


def look_alike(one: str, other: str) -> bool:
    """Could people mistake one name for the other?"""
    return any(a == b for a, b in zip(_skeletons(one), _skeletons(other), strict=True))


def distinct(wanted: str, others: Iterable[str]) -> str:
    """`wanted`, with a number where it would look like another name."""
    others = list(others)
    name, count = wanted, 1
    while any(look_alike(name, other) for other in others):
        count += 1
        name = f"{wanted} {count}"
    return name


def _skeletons(name: str) -> tuple[str, str]:
    """Forms of a name that are equal for names that look alike: by letters, and by strokes."""
    plain = unicodedata.normalize("NFKC", name).replace(" ", "")
    strokes = plain.translate(_LOOKS_LIKE).translate(_SAME_STROKE).casefold()
    return plain.casefold().translate(_LOOKS_LIKE), strokes
