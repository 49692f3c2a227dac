"""How many sequences of placements are there from small positions? Counted twice.

    python -m tests.stress.counts

For each of the ten positions below and each depth k: the number of different sequences of k
placements, each told by seat, card, row (or none, V2b) and how many cards are taken, over all
choices of cards and rows. The kernel counts, and so does the reference; both must agree with the
numbers written here. Chess engines call this perft.

Exit code 0: all agree. 1: some do not.
"""

from __future__ import annotations

import copy
import itertools
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import tyro

from tests.stress import ROOT  # noqa: F401  (finds the tests' helpers)

# isort: split
import positions
import reference

from oxx_env import rules
from oxx_env.game.rules import OVER, PLACED, RETURNED, ROW_PHASE, WAITING

Sequences = list[set[tuple[Any, ...]]]  # by depth, from 1


@dataclass(frozen=True)
class Position:
    """A drawing (see `tests/positions.py`), and the counts by depth from 1."""

    name: str
    rule_set: str
    drawing: str
    counts: tuple[int, ...]


POSITIONS = (
    Position(
        "each card fits one row", "base",
        """
        row 0   10b
        row 1   20y
        row 2   30g
        row 3   40r
        row 4   50k
        seat 0  61b 62y 63g
        seat 1  71r 72k 73b
        """,
        (3, 9, 18, 36, 36, 36),
    ),
    Position(
        "no card fits", "base",
        """
        row 0   10b 11b
        row 1   20b
        row 2   30b 31b 32b
        row 3   40b
        row 4   50b
        seat 0  61y 62y
        seat 1  71g 72gg
        """,
        (10, 100, 180, 260, 0, 0),
    ),
    Position(
        "Barons in hand and on the table", "base",
        """
        row 0   52Bx
        row 1   20y
        row 2   30g
        row 3   40r
        row 4   50k
        seat 0  104Bx 62y
        seat 1  71r 3b
        """,
        (5, 19, 35, 100, 0, 0),
    ),
    Position(
        "rows of five", "base",
        """
        row 0   10b 11b 12y 13g 14r
        row 1   20y 21y 22y 23k 24r
        row 2   30g
        row 3   40k
        row 4   50w
        seat 0  61rk 62r 63gw
        seat 1  71rg 72k 73w
        """,
        (7, 40, 207, 766, 1_902, 3_759),
    ),
    Position(
        "rows of five, as `color` has them", "color",
        """
        row 0   10b 11b 12y 13g 14r
        row 1   20y 21y 22y 23k 24r
        row 2   30g
        row 3   40k
        row 4   50w
        seat 0  61rk 62r 63gw
        seat 1  71rg 72k 73w
        """,
        (7, 40, 207, 766, 1_902, 3_759),
    ),
    Position(
        "five heads of a color", "base",
        """
        row 0   10bbb 11bb
        row 1   20yyyyy
        row 2   30gggg
        row 3   40b 41b 42yb
        row 4   50rrr
        seat 0  61b 62yr 63gg
        seat 1  71bb 72bg 73ry
        """,
        (6, 45, 159, 733, 1_367, 2_969),
    ),
    Position(
        "cards that return under the pile", "positive",
        """
        row 0   10b
        row 1   20b 21b
        row 2   30y
        row 3   40y
        row 4   50b
        seat 0  61b 62k | 63y 64k
        seat 1  71k 72y | 73b 74w
        """,
        (4, 12, 18, 24, 96, 480),
    ),
    Position(
        "a deadlock is near", "positive",
        """
        row 0   10b
        row 1   20b
        row 2   30b
        row 3   40y
        row 4   50b
        seat 0  61yb 62k | 63w
        seat 1  71k 72g | 73w
        """,
        (6, 12, 10, 10, 0, 0),
    ),
    Position(
        "both variants, three players", "color+positive",
        """
        row 0   10b 11b 12y 13g 14r 15r
        row 1   20yyy 21yy
        row 2   30g
        row 3   40k
        row 4   50k
        seat 0  61r 62w
        seat 1  71y 72b
        seat 2  81kg 9w
        """,
        (3, 6, 16, 13, 13, 21),
    ),
    Position(
        "four players, then new hands", "base",
        """
        row 0   10b
        row 1   20y
        row 2   30by
        row 3   40g
        row 4   50r
        seat 0  61b | 65b 66y
        seat 1  71y | 75g 76k
        seat 2  81k 82g
        seat 3  91r | 95r 96y
        """,
        (2, 3, 18, 30, 100, 392),
    ),
)  # fmt: skip


# --- by the kernel ------------------------------------------------------------------------------


def by_kernel(position: Position, depth: int) -> list[int]:
    """The counts to a depth, by the compiled rules."""
    table = positions.position(position.rule_set, position.drawing)
    found: Sequences = [set() for _ in range(depth)]
    _follow(table.games, table.decks[0], (), depth, found)
    return [len(some) for some in found]


def _follow(games: Any, deck: Any, so_far: tuple[Any, ...], depth: int, found: Sequences) -> None:
    """Run on to the next choice, and from there go all ways."""
    game = games[0]
    while True:
        if len(so_far) == depth:
            return
        taken = int(game["taken_count"])
        what = rules.tick(game, deck)
        if what in (PLACED, RETURNED):
            so_far = _noted(game, taken, so_far, found)
        elif what == WAITING:
            break
    if game["phase"] == OVER:
        return
    if game["phase"] == ROW_PHASE:
        seat = int(game["revealed_by"][game["placed"]])
        for action in _actions(game, deck, seat):
            other = games.copy()
            before = int(game["taken_count"])
            rules.act(other[0], deck, seat, action)
            _follow(other, deck, _noted(other[0], before, so_far, found), depth, found)
        return
    deciders = [seat for seat in range(int(game["players"])) if rules.decides(game, seat)]
    for actions in itertools.product(*(_actions(game, deck, seat) for seat in deciders)):
        other = games.copy()
        for seat, action in zip(deciders, actions, strict=True):
            rules.act(other[0], deck, seat, action)
        _follow(other, deck, so_far, depth, found)


def _actions(game: Any, deck: Any, seat: int) -> list[int]:
    legal = int(rules.legal_actions(game, deck, seat))
    return [action for action in range(rules.ACTIONS) if legal >> action & 1]


def _noted(game: Any, taken: int, so_far: tuple[Any, ...], found: Sequences) -> tuple[Any, ...]:
    """The placement that has just been made, added to the sequence."""
    place = int(game["placed"]) - 1
    number = int(game["revealed"][place])
    sizes = game["row_sizes"].tolist()
    ends = [int(game["rows"][row, size - 1]) for row, size in enumerate(sizes)]
    row = ends.index(number) if number in ends else None
    now = (int(game["revealed_by"][place]), number, row, int(game["taken_count"]) - taken)
    so_far = (*so_far, now)
    found[len(so_far) - 1].add(so_far)
    return so_far


# --- by the reference ---------------------------------------------------------------------------


class _Game(reference.Game):
    """The reference, which keeps the sequence of its placements."""

    so_far: tuple[Any, ...] = ()

    def on_placement(self, _: Any = None) -> None:
        seat, number, row, taken = self.rounds[-1]["placements"][-1]
        self.so_far = (*self.so_far, (seat, number, row, len(taken)))


def by_reference(position: Position, depth: int) -> list[int]:
    """The counts to a depth, by `tests/reference.py`."""
    table = positions.position(position.rule_set, position.drawing)
    deck = rules.deck_cards(table.deck)
    held = zip(table.hands, table.piles, strict=True)
    rows = table.rows
    # Filled up with cards that are not drawn, so that nobody is forced before the rows are laid.
    game = _Game(table.players, position.rule_set, deck, _whole(rows, table), [r[0] for r in rows])
    game.rows = rows
    game.hands, game.piles = (list(map(list, part)) for part in zip(*held, strict=True))
    found: Sequences = [set() for _ in range(depth)]
    game._run_on()
    _follow_reference(game, depth, found)
    return [len(some) for some in found]


def _whole(rows: list[list[int]], table: positions.Table) -> list[list[int]]:
    used = {number for cards in rows + table.hands + table.piles for number in cards}
    free = iter([number for number in range(1, 111) if number not in used])
    return [[next(free) for _ in range(4)] for _ in range(table.players)]


def _follow_reference(game: _Game, depth: int, found: Sequences) -> None:
    for length in range(1, min(depth, len(game.so_far)) + 1):
        found[length - 1].add(game.so_far[:length])
    if game.phase == "over" or len(game.so_far) >= depth:
        return
    deciders = game.deciders()
    for actions in itertools.product(*(game.legal(seat) for seat in deciders)):
        other = copy.copy(game)
        for name in ("rows", "hands", "piles", "oxx_piles", "rounds", "revealed"):
            setattr(other, name, copy.deepcopy(getattr(game, name)))
        other.picks, other.seen = dict(game.picks), set(game.seen)
        for seat, action in zip(deciders, actions, strict=True):
            other.play(seat, action)
        _follow_reference(other, depth, found)


# --- the command --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Options:
    """Count sequences of placements by the kernel and by the reference."""

    depth: int = 0
    """Greatest depth; 0: that of the numbers written down."""


def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    wrong = 0
    print("| position | rule set | depth: sequences | kernel | reference |\n|---|---|---|---|---|")
    with np.errstate(over="ignore"):
        for position in POSITIONS:
            depth = options.depth or len(position.counts)
            expected = list(position.counts[:depth])
            both = by_kernel(position, depth), by_reference(position, depth)
            agree = [counts[: len(expected)] == expected for counts in both]
            wrong += not all(agree) or both[0] != both[1]
            told = ", ".join(f"{k}: {count:,}" for k, count in enumerate(both[1], start=1))
            words = ["equal" if yes else "DIFFERENT" for yes in agree]
            print(f"| {position.name} | `{position.rule_set}` | {told} | {' | '.join(words)} |")
    print(f"\n{len(POSITIONS)} positions, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
