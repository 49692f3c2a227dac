"""A whole game as states and decisions, told by the kernel and by the reference in the same bytes.

There is a state after every placement (the end of the round not yet drawn), wherever cards are
chosen, and when the game is over; and every decision says who could decide and what was allowed.
Cards are bytes and everything has its fixed place, so that thousands of games are compared at the
speed of `==`; `difference` then says what is not the same.
"""

from __future__ import annotations

import hashlib
from array import array
from functools import cache
from typing import Any, ClassVar

import numpy as np
import reference

from oxx_env import engine
from oxx_env.game.rules import (
    CARDS_DEALT,
    GAME,
    MAX_PLAYERS,
    NUMBERS,
    OVER,
    PASS,
    PLACED,
    RETURNED,
    ROW_PHASE,
    ROWS,
    WAITING,
    act,
    decides,
    draw,
    is_seen,
    legal_actions,
    pile_cell,
    tick,
)
from oxx_env.lib.jit import kernel

Heads = tuple[tuple[int, ...], ...]  # a deck, for the reference: six head counts by number - 1
# All cards on the table list by list, a zero between two lists: rows, hands, draw piles, Oxx piles.
LISTS = ROWS + 3 * MAX_PLAYERS
STATE = np.dtype(
    [
        ("placed", "u1"),  # cards of this round
        ("phase", "u1"),
        ("round", "<u2"),  # finished rounds
        ("points", "<i2", (MAX_PLAYERS,)),
        ("seen", "u1", (NUMBERS + 1,)),  # 1 where all have seen the number
        ("revealed", "u1", (MAX_PLAYERS, 2)),  # (seat, number) still unplaced
        ("cards", "u1", (NUMBERS + LISTS - 1,)),
    ]
)
MOST_STATES = 4096
DECISION = np.dtype(
    [
        ("deciders", "<u2"),  # bit set of the seats that decide now
        ("legal", "<u2"),  # bit set of this seat's actions
        ("seat", "u1"),
        ("action", "u1"),
    ]
)
NOT_ONLY_PASS = 1 << 15  # among `deciders`: a seat that waits was offered something else
PHASES = {"card": 0, "row": 1, "over": 2}


# ---- the kernel's telling


@kernel
def write_state(game, out):
    """The state of the game into one record of dtype STATE that holds zeros."""
    players = np.int64(game["players"])
    out["placed"] = game["placed"]
    out["phase"] = game["phase"]
    out["round"] = game["round"]
    for number in range(1, NUMBERS + 1):
        out["seen"][number] = is_seen(game, number)
    cell = 0
    for row in range(ROWS):
        for index in range(np.int64(game["row_sizes"][row])):
            out["cards"][cell] = game["rows"][row, index]
            cell += 1
        cell += 1
    for seat in range(players):
        for slot in range(np.int64(game["hand_sizes"][seat])):
            out["cards"][cell] = game["hands"][seat, slot]
            cell += 1
        cell += 1
    for seat in range(players):
        for index in range(np.int64(game["pile_sizes"][seat])):
            out["cards"][cell] = game["piles"][pile_cell(game, seat, index)]
            cell += 1
        cell += 1
    for seat in range(players):
        for index in range(np.int64(game["taken_count"])):
            if game["taken_by"][index] == seat:
                out["cards"][cell] = game["taken"][index]
                cell += 1
        cell += 1
    for seat in range(players):
        out["points"][seat] = game["points"][seat]
    if game["phase"] == ROW_PHASE:
        for index in range(np.int64(game["placed"]), players):
            out["revealed"][index - np.int64(game["placed"]), 0] = game["revealed_by"][index]
            out["revealed"][index - np.int64(game["placed"]), 1] = game["revealed"][index]


@kernel
def random_member(game, members):
    """One of the actions or rows of a bit set, by the game's own stream."""
    count = 0
    for bit in range(10):
        count += members >> bit & 1
    skip = draw(game, count)
    for bit in range(10):
        if members >> bit & 1:
            if skip == 0:
                return bit
            skip -= 1
    return -1


@kernel
def who_decides(game, deck):
    """Bit set of the deciding seats, with NOT_ONLY_PASS if another seat may do more than pass."""
    deciders = 0
    for seat in range(np.int64(game["players"])):
        if decides(game, seat):
            deciders |= 1 << seat
        elif legal_actions(game, deck, seat) != 1 << PASS:
            deciders |= NOT_ONLY_PASS
    return deciders


@kernel
def decide(game, deck, seat, deciders, out):
    """A random legal action of the seat, carried out and told in one record of dtype DECISION."""
    out["deciders"] = deciders
    out["legal"] = legal_actions(game, deck, seat)
    out["seat"] = seat
    action = random_member(game, legal_actions(game, deck, seat))
    out["action"] = action
    act(game, deck, seat, action)


@kernel
def write_trace(game, deck, states, decisions):
    """Play at random to the end; how many states and decisions there were."""
    n = m = 0
    while True:
        what = tick(game, deck)
        if what == WAITING:
            deciders = who_decides(game, deck)
            if game["phase"] == ROW_PHASE:
                seat = np.int64(game["revealed_by"][game["placed"]])
                decide(game, deck, seat, deciders, decisions[m])
                m += 1
                what = PLACED
        if what in (PLACED, RETURNED, WAITING):
            write_state(game, states[n])
            n += 1
        if what == WAITING:
            if game["phase"] == OVER:
                return n, m
            for seat in range(np.int64(game["players"])):
                if deciders >> seat & 1:
                    decide(game, deck, seat, deciders, decisions[m])
                    m += 1


class Tracer:
    """Plays games of the kernel at random and compares each with the reference."""

    def __init__(self) -> None:
        self.states = np.zeros(MOST_STATES, STATE)
        self.decisions = np.zeros(MOST_STATES, DECISION)

    def trace(self, game: Any, decks: Any) -> tuple[Any, Any]:
        """STATE [N] and DECISION [M] of a game (GAME [1]) played from here to its end."""
        n, m = write_trace(game[0], decks[game[0]["deck"]], self.states, self.decisions)
        states, decisions = self.states[:n].copy(), self.decisions[:m].copy()
        self.states[:n] = np.zeros(1, STATE)
        return states, decisions

    def check(self, game: Any, decks: Any, heads: Heads, what: str) -> int:
        """Play the freshly dealt game (GAME [1]) here and there; how many states were equal."""
        start = game[0].copy()
        states, decisions = self.trace(game, decks)
        told = reference_trace(start, heads, decisions)
        assert decisions.tobytes() == told[1].tobytes(), difference(decisions, told[1], what)
        assert states.tobytes() == told[0].tobytes(), difference(states, told[0], what)
        return len(states)


# ---- the reference's telling


class Reference(reference.Game):
    """The reference, which tells its states and looks up what it would compute over and over."""

    shares: ClassVar[list[list[bool]]]  # [number][number], by `reference.Game.shares_color`
    worth: ClassVar[list[int]]  # [number], by `reference.Game.heads`
    states: list[bytes]
    points_so_far: list[int]
    seen_so_far: bytes
    last_legal: list[int]  # what `play` has just held its action against

    def matching_rows(self, number: int) -> list[int]:
        shares = self.shares[number]
        return [r for r, row in enumerate(self.rows) if shares[row[-1]]]

    def heads(self, number: int) -> int:
        return self.worth[number]

    def legal(self, seat: int) -> list[int]:
        self.last_legal = super().legal(seat)
        return self.last_legal

    def on_placement(self, _: Any = None) -> None:
        if self.rounds[-1]["placements"][-1][3]:
            self.points_so_far = self.points
        self.tell()

    def tell(self) -> None:
        """One more state, in the bytes of STATE."""
        points = self.points if self.phase == "over" else self.points_so_far
        finished = len(self.rounds) - (self.phase == "row")
        placed = len(self.rounds[-1]["placements"]) if self.phase == "row" else 0
        if len(self.seen) != sum(self.seen_so_far):
            seen = bytearray(NUMBERS + 1)
            for number in self.seen:
                seen[number] = 1
            self.seen_so_far = bytes(seen)
        cards = b"\0".join(map(bytes, [*self.rows, *self.hands, *self.piles, *self.oxx_piles]))
        self.states.append(
            b"".join(
                [
                    bytes([placed, PHASES[self.phase], finished & 255, finished >> 8]),
                    array("h", points).tobytes().ljust(2 * MAX_PLAYERS, b"\0"),
                    self.seen_so_far,
                    b"".join(map(bytes, self.revealed)).ljust(2 * MAX_PLAYERS, b"\0"),
                    cards.ljust(NUMBERS + LISTS - 1, b"\0"),
                ]
            )
        )


@cache
def reference_for(heads: Heads) -> type[Reference]:
    """`Reference` with the look-up tables of one deck."""
    game = reference.Game(2, "base", heads, [[1], [2]], [3, 4, 5, 6, 7])
    numbers = range(1, NUMBERS + 1)
    shares = [[False, *(game.shares_color(one, two) for two in numbers)] for one in numbers]
    worth = [0, *(game.heads(number) for number in numbers)]
    return type("Reference", (Reference,), {"shares": [[], *shares], "worth": worth})


def reference_trace(start: Any, heads: Heads, decisions: Any) -> tuple[Any, Any]:
    """The states and decisions of the same deal, told by the reference.

    It follows the actions of `decisions` and ends early where it cannot: then the two tellings
    differ.
    """
    players = int(start["players"])
    each = int(CARDS_DEALT[players])
    # The hand is sorted; in which order its four cards were drawn is of no consequence.
    draw_piles = [
        start["hands"][seat].tolist() + start["piles"][seat * each + 4 : (seat + 1) * each].tolist()
        for seat in range(players)
    ]
    rules = reference.RULES[int(start["rules"])]
    game = reference_for(heads)(players, rules, heads, draw_piles, start["rows"][:, 0].tolist())
    game.states, game.points_so_far, game.seen_so_far = [], [0] * players, b""
    decided: list[list[int]] = []  # as DECISION
    played = iter(decisions["action"].tolist())
    try:
        while game.phase != "over":
            if game.phase == "card":
                game.tell()
            deciders = game.deciders()
            among = sum([1 << seat for seat in deciders])
            for seat in deciders:
                action = next(played, -1)
                decided.append([among, 0, seat, action & 255])
                try:
                    game.play(seat, action)
                finally:
                    decided[-1][1] = sum([1 << option for option in game.last_legal])
        game.tell()
    except ValueError:  # an illegal action: the two tellings differ
        pass
    return np.frombuffer(b"".join(game.states), STATE), np.array([*map(tuple, decided)], DECISION)


def difference(ours: Any, told: Any, what: str) -> str:
    """Where two tellings of a game part, and how."""
    lengths = f"{len(ours)} and {len(told)}"
    for index, (one, two) in enumerate(zip(ours, told, strict=False)):
        if one != two:
            fields = [name for name in one.dtype.names if (one[name] != two[name]).any()]
            pairs = [
                f"{name}: {readable(one, name)}\nreference: {readable(two, name)}"
                for name in fields
            ]
            return f"{what}: number {index} ({lengths}) differs\n" + "\n".join(pairs)
    return f"{what}: equal as far as both go, but {lengths}"


def readable(state: Any, name: str) -> str:
    """One field of a state; the cards list by list, the seen ones by number."""
    if name == "cards":
        return " | ".join(" ".join(map(str, part)) for part in bytes(state[name]).split(b"\0"))
    if name == "seen":
        return " ".join(map(str, np.flatnonzero(state[name])))
    if name in ("deciders", "legal"):
        return " ".join(str(bit) for bit in range(16) if int(state[name]) >> bit & 1)
    return str(state[name].tolist())


# ---- one hash over a sample


def sample_hash(games_each: int = 1, tables: tuple[int, ...] = (2, 3, 10)) -> str:
    """One hash over the states of seeded random games of all rule sets; also runs uncompiled."""
    digest = hashlib.sha256()
    decks = engine.stack_decks(["balanced", "two-color"])
    tracer = Tracer()
    for players in tables:
        for flags in range(4):
            for k in range(games_each):
                game = np.zeros(1, GAME)
                game = engine.new_games([1000 * players + 10 * flags + k], decks, players)
                game["rules"] = flags
                game["deck"] = k % 2
                engine.deal(game, decks)
                states, decisions = tracer.trace(game, decks)
                digest.update(states.tobytes() + decisions.tobytes() + game.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    with np.errstate(over="ignore"):  # uint64 arithmetic wraps around, as meant
        print(sample_hash())
