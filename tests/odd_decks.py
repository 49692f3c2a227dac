"""Decks that are unlike any real one, and yet legal: what a deck file may say at its extremes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from oxx_env import cards

Deck = NDArray[np.uint8]
COLORS = len(cards.COLORS)


def with_barons(heads: NDArray[np.integer]) -> Deck:
    heads = heads.astype(np.uint8)
    heads[np.array(cards.BARONS) - 1] = 1
    return heads


def mono(rng: np.random.Generator, most: int = 3) -> Deck:
    """Every ordinary card shows a single color, one to `most` heads of it."""
    heads = np.zeros((cards.NUMBERS, COLORS), int)
    heads[np.arange(cards.NUMBERS), rng.integers(COLORS, size=cards.NUMBERS)] = rng.integers(
        1, most + 1, size=cards.NUMBERS
    )
    return with_barons(heads)


def all_barons(rng: np.random.Generator) -> Deck:
    """Every card shows one head of each color."""
    return with_barons(np.ones((cards.NUMBERS, COLORS), int))


def one_color(rng: np.random.Generator) -> Deck:
    """Only one color in the game, one to three heads on a card."""
    heads = np.zeros((cards.NUMBERS, COLORS), int)
    heads[:, rng.integers(COLORS)] = rng.integers(1, 4, size=cards.NUMBERS)
    return with_barons(heads)


def heavy(rng: np.random.Generator) -> Deck:
    """Up to seven heads of a color, up to all six colors on a card."""
    shown = rng.random((cards.NUMBERS, COLORS)) < rng.uniform(0.1, 0.9)
    heads = shown * rng.integers(1, cards.MAX_HEADS + 1, size=shown.shape)
    empty = heads.sum(axis=1) == 0
    heads[empty, rng.integers(COLORS, size=empty.sum())] = cards.MAX_HEADS
    return with_barons(heads)


def fullest(rng: np.random.Generator) -> Deck:
    """Seven heads of every color on every ordinary card: 42 points each."""
    return with_barons(np.full((cards.NUMBERS, COLORS), cards.MAX_HEADS))


MAKERS: dict[str, Callable[[np.random.Generator], Deck]] = {
    "mono": mono,
    "heavy mono": partial(mono, most=cards.MAX_HEADS),
    "all barons": all_barons,
    "one color": one_color,
    "heavy": heavy,
    "fullest": fullest,
    **{f"random {name}": partial(cards.random_deck, name) for name in cards.DECK_NAMES},
}
