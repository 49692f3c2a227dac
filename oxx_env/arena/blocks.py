"""Blocks: one deal, played by every line-up from all seats.

A block is a function of the `Setup`, its number and its line-ups, and of nothing else.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.bots import Bot, make
from oxx_env.game import cards
from oxx_env.game.engine import PENDING, masks, pending, step
from oxx_env.game.rules import ACTIONS, MAX_PLAYERS
from oxx_env.game.table import Table, as_integer
from oxx_env.game.views import clone
from oxx_env.lib.seeding import bot_rng, game_seed
from oxx_env.lib.version import __version__

Spec = str | Bot
Lineup = tuple[int, ...]  # [P] which entry sits at each position
Lineups = Callable[[int], tuple[Lineup, ...]]  # block number → its line-ups, asked in order
Job = tuple[int, tuple[Lineup, ...]]  # block number, line-ups

_LEAGUE = 0x1EA60E  # keeps the line-ups' random stream apart from deals and bots


@dataclass(frozen=True)
class Setup:
    """All that decides the outcome of a block, beside its number and line-ups.

    mode     what plays (`arena`, `league`, `compare`): a log of another mode is refused
    specs    the entries, specifications or bots
    players  seats at the table, 2 to 10
    rules    rule set; deck: name, path, cards, or a function that draws one for each deal
    seed     of deals and bots, 0 or more
    match    games of a match

    Raises ValueError for a table that there is not.
    """

    mode: str
    specs: tuple[Spec, ...]
    players: int
    rules: str
    deck: cards.DeckSpec
    seed: int
    match: int

    def __post_init__(self) -> None:
        Table(self.players, self.rules, self.deck, self.match)

    @property
    def names(self) -> list[str]:
        return [spec_name(spec) for spec in self.specs]

    @property
    def block_games(self) -> int:
        """Games of one line-up in a block."""
        return self.players * self.match

    def header(self) -> dict[str, Any]:
        """The first line of a log: what must be the same when it is resumed."""
        digest = None
        if not callable(self.deck):
            digest = hashlib.sha256(cards.to_csv(cards.load_deck(self.deck)).encode()).hexdigest()
        return {
            "format": "oxx-arena/1",
            "mode": self.mode,
            "specs": self.names,
            "weights": [weights_checksum(spec) for spec in self.specs],
            "players": self.players,
            "rules": self.rules,
            "deck": {"name": cards.deck_name(self.deck), "sha256": digest},
            "seed": int(self.seed),
            "match": self.match,
            "version": __version__,
        }


@dataclass(frozen=True)
class Block:
    """The outcome of one deal.

    number     of the deal, from 0
    lineups    L line-ups [L, P], each played with all R = P rotations
    points     [L, R, P] rulebook points of the match, by line-up position, not by seat
    seconds    thinking time by entry of `Setup.specs`
    decisions  and the decisions it was spent on
    """

    number: int
    lineups: tuple[Lineup, ...]
    points: Any  # nested lists of int, or an array
    seconds: list[float]
    decisions: list[int]

    def line(self) -> str:
        """The block as a line of a log."""
        data = {
            "block": self.number,
            "lineups": self.lineups,
            "points": self.points,
            "seconds": [round(seconds, 6) for seconds in self.seconds],
            "decisions": self.decisions,
        }
        return json.dumps(data) + "\n"


def weights_checksum(spec: Spec) -> str | None:
    """SHA-256 of a bot's weights, None without any: the same name may mean other weights when a
    log is resumed."""
    weights = getattr(make(spec) if isinstance(spec, str) else spec, "weights", None)
    return None if weights is None else hashlib.sha256(np.asarray(weights).tobytes()).hexdigest()


def spec_name(spec: Spec) -> str:
    """What results call a bot."""
    return spec if isinstance(spec, str) else str(getattr(spec, "spec", type(spec).__name__))


# --- line-ups -----------------------------------------------------------------------------------


def fill_table(count: int, players: int) -> Lineup:
    """The line-up of `count` entries at a table of `players`: in order, the last fills."""
    if count < 1:
        raise ValueError("name at least one bot")
    if count > players:
        raise ValueError(f"{count} bots for {players} players: at most one bot for each seat")
    return tuple(min(position, count - 1) for position in range(players))


def random_lineups(entries: int, players: int, seed: int) -> Iterator[Lineup]:
    """Endless random line-ups in which all entries sit equally often.

    At each table every entry fills the same number of seats; the seats left over go to entries
    drawn in shuffled rounds through all of them.
    """
    rng = np.random.default_rng([seed, _LEAGUE])
    waiting: list[int] = []
    every, rest = divmod(players, entries)
    while True:
        lineup = [entry for entry in range(entries) for _ in range(every)]
        drawn: list[int] = []
        if len(waiting) < rest:
            waiting += rng.permutation(entries).tolist()
        for entry in list(waiting):  # the first `rest` different ones
            if len(drawn) < rest and entry not in drawn:
                drawn.append(entry)
                waiting.remove(entry)
        lineup += drawn
        yield tuple(lineup[i] for i in rng.permutation(players))


# --- playing ------------------------------------------------------------------------------------


class Player:
    """Plays blocks, with bots and a table of its own."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.bots = [make(spec) if isinstance(spec, str) else spec for spec in setup.specs]
        self.table = Table(setup.players, setup.rules, setup.deck, setup.match)
        self._who = np.zeros(MAX_PLAYERS, PENDING)
        self._actions = np.zeros(MAX_PLAYERS, np.int64)
        self._mask = np.zeros((MAX_PLAYERS, ACTIONS), np.int8)
        self._timed: set[tuple[int, bool]] = set()

    @property
    def cheats(self) -> bool:
        """Does one of the bots see hidden cards?"""
        return any(bot.needs_state for bot in self.bots)

    def __call__(self, job: Job) -> Block:
        with _one_torch_thread():
            return self.block(*job)

    def block(self, number: int, lineups: tuple[Lineup, ...]) -> Block:
        """One deal, every line-up, every rotation."""
        self._seconds = [0.0] * len(self.bots)
        self._decisions = [0] * len(self.bots)
        players = self.setup.players
        points: list[list[list[int]]] = []
        for lineup in lineups:
            points.append([])
            for rotation in range(players):
                by_seat = self.match(number, lineup, rotation)
                points[-1].append([by_seat[(p + rotation) % players] for p in range(players)])
        return Block(number, lineups, points, self._seconds, self._decisions)

    def match(self, block: int, lineup: Lineup, rotation: int) -> list[int]:
        """One match: position p of the line-up sits at seat p + rotation. The points by seat."""
        setup, table = self.setup, self.table
        who, actions, mask = self._who, self._actions, self._mask
        players = setup.players
        at = [lineup[(seat - rotation) % players] for seat in range(players)]
        rngs = [bot_rng(setup.seed, block, rotation, seat) for seat in range(players)]
        table.deal(seed=game_seed(setup.seed, block))
        games, decks = table.games, table.decks
        while n := pending(games, who):
            masks(games, decks, who, n, mask)
            for i, seat in enumerate(who["seat"][:n].tolist()):
                action = self._ask(at[seat], seat, rngs[seat], mask[i])
                actions[i] = action
                table.note(seat, bytes((action,)))
            step(games, decks, who, n, actions, False)
        return table.scores()

    def _ask(
        self, entry: int, seat: int, rng: np.random.Generator, mask: NDArray[np.int8]
    ) -> int:
        """The bot's decision, checked and timed."""
        table, bot = self.table, self.bots[entry]
        view = table.view(seat)
        state = {"state": clone(table.games)} if bot.needs_state else {}
        start = time.perf_counter()
        action = bot.act(view, rng, **state)
        took = time.perf_counter() - start
        # The first decision of a kind compiles code and loads weights: it is not counted.
        kind = entry, bool(mask[0])
        if kind in self._timed:
            self._seconds[entry] += took
            self._decisions[entry] += 1
        else:
            self._timed.add(kind)
        number = as_integer(action)
        if number is None or not 0 <= number < ACTIONS or not mask[number]:
            raise ValueError(
                f"bot {spec_name(bot)!r} at seat {seat} chose {action!r}, which is not legal; "
                f"legal: {np.flatnonzero(mask).tolist()}"
            )
        return number


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Sums in another order give other last digits, and with them, rarely, other actions."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
