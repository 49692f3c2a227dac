"""Make the golden games anew: python tests/golden/generate.py

Who plays draws from Python's own generator, so that the games depend on nothing but the rules, the
deal by seed and the format of records. Each game comes as the record (`.jsonl`) and as text to read
(`.txt`); the tests make them again and compare the bytes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from oxx_env import cards
from oxx_env.game.table import Table
from oxx_env.notation.records import course, records_of, replay, to_line

HERE = Path(__file__).resolve().parent
STRIPED = "striped.csv"


@dataclass(frozen=True)
class Golden:
    """One golden game or match."""

    name: str
    players: int
    rules: str
    seed: int | None  # None: dealt by hand, the numbers in order
    deck: str = "balanced"
    games: int = 1


GOLDEN = (
    Golden("base-2", 2, "base", 1),
    Golden("base-4-three-color", 4, "base", 2, "three-color"),
    Golden("base-10", 10, "base", 3),
    Golden("base-5-striped", 5, "base", 4, STRIPED),
    Golden("color-4", 4, "color", 5),
    Golden("color-7-by-hand", 7, "color", None, "two-color"),
    Golden("positive-2-deadlock", 2, "positive", 14),
    Golden("positive-4", 4, "positive", 7),
    Golden("color+positive-10", 10, "color+positive", 8),
    Golden("color+positive-3-match", 3, "color+positive", 9, "two-color", 3),
)


def striped_deck() -> str:
    """An odd deck: each card shows one to three heads of a single colour, in turn."""
    deck = cards.load_deck("balanced")
    for number in range(1, cards.NUMBERS + 1):
        if number not in cards.BARONS:
            deck[number - 1] = 0
            deck[number - 1, number % len(cards.COLORS)] = 1 + number // 6 % 3
    return cards.to_csv(deck)


def play(golden: Golden, deck: str) -> Table:
    """The game at a table, random play."""
    table = Table(golden.players, golden.rules, deck, golden.games)
    if golden.seed is None:
        piles = [list(range(12 * seat + 1, 12 * seat + 13)) for seat in range(7)]
        table.deal(draw_piles=piles, rows=[90, 95, 100, 105, 110])
    else:
        table.deal(golden.seed)
    chance = random.Random(golden.seed or 0)
    while deciders := table.deciders():
        for seat in deciders:
            legal = table.legal(seat)
            table.act(seat, legal[int(chance.random() * len(legal))])
    return table


def files() -> Iterator[tuple[str, str]]:
    """(file name, content) of everything made here; the odd deck first, which games need."""
    yield STRIPED, striped_deck()
    for golden in GOLDEN:
        deck = str(HERE / STRIPED) if golden.deck == STRIPED else golden.deck
        match_id = golden.name if golden.games > 1 else None
        records = records_of(play(golden, deck), match_id)
        yield f"{golden.name}.jsonl", "".join(to_line(record) + "\n" for record in records)
        texts = [course(record, replay(record).ended_by) for record in records]
        yield f"{golden.name}.txt", "\n\n\n".join(texts) + "\n"


if __name__ == "__main__":
    for name, content in files():
        (HERE / name).write_bytes(content.encode())
        print(name)
