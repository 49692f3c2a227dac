"""Write the shipped decks: `python -m oxx_env.game.decks.generate [FOLDER]`.

What is known of the true deck leaves room for three color-symmetric models (the table `MODELS`;
`docs/decisions.md` says what is known). Each is spread over the numbers from one seed, so that low,
middle and high numbers hold the same card types and, as nearly as can be, the same heads.

The shuffle sorts by SHA-256, so that the same bytes come out on every platform and under every
version of Python and numpy.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from oxx_env.game.cards import BARONS, COLORS, NUMBERS, Deck, to_csv

SEED = 20250601

# Cards of each type (same letter = same color) among the 108 ordinary ones.
MODELS = {
    "three-color": {"a": 6, "aa": 6, "ab": 30, "aaa": 6, "abc": 60},
    "balanced": {"a": 24, "aa": 12, "ab": 30, "aaa": 12, "abc": 30},
    "two-color": {"a": 18, "aa": 12, "ab": 18, "aaa": 6, "aab": 30, "abc": 24},
}

# A type's colors come in whole sets, each of which treats all six colors alike.
ALL = range(len(COLORS))
SINGLES = [(a,) for a in ALL]  # 6
MATCHING = [(0, 1), (2, 3), (4, 5)]  # 3: every color once
PAIRS = list(combinations(ALL, 2))  # 15: every color five times
ORDERED = list(permutations(ALL, 2))  # 30: every color five times first, five times second
HALVES = [(0, 1, 2), (3, 4, 5), (0, 2, 4), (1, 3, 5)]  # 4: every color twice
DESIGN = [  # 10: every color five times, every pair of colors twice: the 2-(6,3,2) design
    (0, 1, 2), (0, 1, 3), (0, 2, 4), (0, 3, 5), (0, 4, 5),
    (1, 2, 5), (1, 3, 4), (1, 4, 5), (2, 3, 4), (2, 3, 5),
]  # fmt: skip
TRIPLES = list(combinations(ALL, 3))  # 20: every color ten times

COLOR_SETS: dict[tuple[str, int], Sequence[tuple[int, ...]]] = {
    ("ab", 18): PAIRS + MATCHING,
    ("ab", 30): PAIRS * 2,
    ("aab", 30): ORDERED,
    ("abc", 24): TRIPLES + HALVES,
    ("abc", 30): TRIPLES + DESIGN,
    ("abc", 60): TRIPLES * 3,
}


def cards_of(kind: str, count: int) -> list[tuple[int, ...]]:
    """Head counts by color of all cards of one type, every color alike."""
    singles: Sequence[tuple[int, ...]] = SINGLES * (count // len(SINGLES))
    sets = COLOR_SETS.get((kind, count), singles)
    assert len(sets) == count, (kind, count)
    cards = []
    for colors in sets:
        heads = [0] * len(COLORS)
        for letter in kind:
            heads[colors["abc".index(letter)]] += 1
        cards.append(tuple(heads))
    return cards


def shuffled(items: list[tuple[int, ...]], tag: str) -> list[tuple[int, ...]]:
    def key(at: int) -> bytes:
        return hashlib.sha256(f"{SEED}/{tag}/{at}".encode()).digest()

    return [items[at] for at in sorted(range(len(items)), key=key)]


def thirds(model: str) -> list[list[tuple[int, ...]]]:
    """The ordinary cards for low, middle and high numbers: a third of every type each."""
    parts: list[list[tuple[int, ...]]] = [[], [], []]
    for kind, count in MODELS[model].items():
        cards = shuffled(cards_of(kind, count), f"{model}/{kind}")
        for third in range(3):
            parts[third] += cards[third::3]  # the same types at the same places in each part
    while _improve(parts):
        pass
    return [shuffled(part, f"{model}/{third}") for third, part in enumerate(parts)]


def _improve(parts: list[list[tuple[int, ...]]]) -> bool:
    """Swap two cards of one type between parts if that evens out the colors' heads."""
    heads = np.array(parts).sum(axis=1)  # [third, COLOR]
    size = len(parts[0])
    types = [sorted(card) for card in parts[0]]
    for p, q in combinations(range(3), 2):
        for i in range(size):
            for j in range(size):
                if types[i] != types[j]:
                    continue
                change = np.subtract(parts[q][j], parts[p][i])
                before = (heads[p] ** 2).sum() + (heads[q] ** 2).sum()
                after = ((heads[p] + change) ** 2).sum() + ((heads[q] - change) ** 2).sum()
                if after < before:
                    parts[p][i], parts[q][j] = parts[q][j], parts[p][i]
                    return True
    return False


def make(model: str) -> Deck:
    """The shipped deck of one model, [CARD, COLOR] heads."""
    ordinary = iter([card for part in thirds(model) for card in part])
    baron = (1,) * len(COLORS)
    return np.array(
        [baron if number in BARONS else next(ordinary) for number in range(1, NUMBERS + 1)],
        dtype=np.uint8,
    )


def main(folder: Path = Path(__file__).parent) -> None:
    for model in MODELS:
        (folder / f"{model}.csv").write_bytes(to_csv(make(model)).encode())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
