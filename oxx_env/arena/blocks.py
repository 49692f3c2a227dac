"""Blocks: one deal, played by every line-up from all seats.

A block is a function of the `Setup`, its number and its line-ups, and of nothing else.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.bots import Bot, make
from oxx_env.bots.own import OwnBot, illegal
from oxx_env.game import cards
from oxx_env.game.engine import PENDING, masks, pending, step
from oxx_env.game.observe import OBS, encode_pending
from oxx_env.game.rules import ACTIONS, MAX_PLAYERS
from oxx_env.game.table import Table, as_integer
from oxx_env.game.views import View, clone
from oxx_env.lib.seeding import bot_rng, game_seed
from oxx_env.lib.version import __version__

Spec = str | Bot
Lineup = tuple[int, ...]  # [P] which entry sits at each position
Lineups = Callable[[int], tuple[Lineup, ...]]  # block number → its line-ups, asked in order
Job = list[tuple[int, tuple[Lineup, ...]]]  # blocks to play beside each other: number, line-ups

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
    own_code may the entries run code of files that they name (`bots.make`)?

    Raises ValueError for a table that there is not.
    """

    mode: str
    specs: tuple[Spec, ...]
    players: int
    rules: str
    deck: cards.DeckSpec
    seed: int
    match: int
    own_code: bool = False

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
            "weights": [weights_checksum(spec, self.own_code) for spec in self.specs],
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


def weights_checksum(spec: Spec, own_code: bool = False) -> str | None:
    """SHA-256 of a bot's weights or of the file of a user's own model, None without any: the same
    name may mean other weights when a log is resumed."""
    bot = make(spec, own_code) if isinstance(spec, str) else spec
    if isinstance(bot, OwnBot):
        return bot.sha256
    weights = getattr(bot, "weights", None)
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


BATCH_GAMES = 128  # matches played beside each other for a model that answers batches


@dataclass(frozen=True)
class _Question:
    """A decision that waits for a batch: the entry asked, its table, seat, generator and mask."""

    entry: int
    table: Table
    seat: int
    rng: np.random.Generator
    mask: NDArray[np.int8]

    def view(self) -> View:
        return self.table.view(self.seat)


_Match = Generator[list[_Question], list[int], list[int]]


class Player:
    """Plays blocks, with bots and tables of its own."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.bots = [
            make(spec, setup.own_code) if isinstance(spec, str) else spec for spec in setup.specs
        ]
        self._batched = {
            entry: bot
            for entry, bot in enumerate(self.bots)
            if isinstance(bot, OwnBot) and bot.asks_batches
        }
        self._tables: list[Table] = []  # those that no match uses
        self._timed: set[tuple[int, bool]] = set()

    @property
    def cheats(self) -> bool:
        """Does one of the bots see hidden cards?"""
        return any(bot.needs_state for bot in self.bots)

    def together(self, lineups: int) -> int:
        """Blocks of so many line-ups that are played beside each other.

        A model's answers may depend on the batch in their last digits. So what is in a batch must
        follow from the number of a block alone: blocks go in groups, from block 0 on.
        """
        if not self._batched:
            return 1
        return max(1, BATCH_GAMES // (lineups * self.setup.players))

    def __call__(self, job: Job) -> list[Block]:
        with _one_torch_thread():
            return self.blocks(job)

    def block(self, number: int, lineups: tuple[Lineup, ...]) -> Block:
        """One deal, every line-up, every rotation."""
        return self.blocks([(number, lineups)])[0]

    def blocks(self, job: Job) -> list[Block]:
        """Blocks beside each other: their matches advance in turn where a bot answers batches."""
        players = self.setup.players
        seconds = {number: [0.0] * len(self.bots) for number, _ in job}
        decisions = {number: [0] * len(self.bots) for number, _ in job}
        self._seconds, self._decisions = seconds, decisions
        keys = [
            (number, lineup, rotation)
            for number, lineups in job
            for lineup in range(len(lineups))
            for rotation in range(players)
        ]
        lineups_of = dict(job)
        matches = [
            self._match(number, lineups_of[number][lineup], rotation)
            for number, lineup, rotation in keys
        ]
        by_seat = self._in_turn(matches, [number for number, _, _ in keys])
        scores = dict(zip(keys, by_seat, strict=True))

        def points(number: int, lineup: int, rotation: int) -> list[int]:
            found = scores[number, lineup, rotation]
            return [found[(p + rotation) % players] for p in range(players)]

        return [
            Block(
                number,
                lineups,
                [[points(number, k, r) for r in range(players)] for k in range(len(lineups))],
                seconds[number],
                decisions[number],
            )
            for number, lineups in job
        ]

    def _in_turn(self, matches: list[_Match], numbers: list[int]) -> list[list[int]]:
        """The points by seat of each match; all that wait for a model are answered at once."""
        scores: list[list[int]] = [[] for _ in matches]
        waiting: list[tuple[int, list[_Question]]] = []

        def go_on(at: int, answers: list[int] | None) -> None:
            try:
                questions = matches[at].send(answers)  # type: ignore[arg-type]
                waiting.append((at, questions))
            except StopIteration as end:
                scores[at] = end.value

        for at in range(len(matches)):
            go_on(at, None)
        while waiting:
            asked, waiting[:] = list(waiting), []
            found: dict[int, list[int]] = {at: [-1] * len(questions) for at, questions in asked}
            for entry, bot in self._batched.items():
                places = [
                    (at, i, question)
                    for at, questions in asked
                    for i, question in enumerate(questions)
                    if question.entry == entry
                ]
                if not places:
                    continue
                answers = self._ask_batch(
                    entry, bot, [q for *_, q in places], [numbers[at] for at, *_ in places]
                )
                for (at, i, _), action in zip(places, answers, strict=True):
                    found[at][i] = action
            for at, _ in asked:
                go_on(at, found[at])
        return scores

    def _match(self, block: int, lineup: Lineup, rotation: int) -> _Match:
        """One match: position p of the line-up sits at seat p + rotation. The points by seat.

        Yields the questions to models that answer batches, and is sent their actions.
        """
        setup, players = self.setup, self.setup.players
        table = (
            self._tables.pop()
            if self._tables
            else Table(players, setup.rules, setup.deck, setup.match)
        )
        who, actions = np.zeros(MAX_PLAYERS, PENDING), np.zeros(MAX_PLAYERS, np.int64)
        mask = np.zeros((MAX_PLAYERS, ACTIONS), np.int8)
        at = [lineup[(seat - rotation) % players] for seat in range(players)]
        rngs = [bot_rng(setup.seed, block, rotation, seat) for seat in range(players)]
        table.deal(seed=game_seed(setup.seed, block))
        games, decks, batched = table.games, table.decks, self._batched
        while n := pending(games, who):
            masks(games, decks, who, n, mask)
            seats = who["seat"][:n].tolist()
            asked = []
            for i, seat in enumerate(seats):
                if at[seat] in batched:
                    asked.append(i)
                    continue
                action = self._ask(block, table, at[seat], seat, rngs[seat], mask[i])
                actions[i] = action
                if not batched:
                    table.note(seat, bytes((action,)))
            if asked:
                questions = [
                    _Question(at[seats[i]], table, seats[i], rngs[seats[i]], mask[i]) for i in asked
                ]
                actions[asked] = yield questions
            if batched:
                for seat, action in zip(seats, actions[:n].tolist(), strict=True):
                    table.note(seat, bytes((action,)))
            step(games, decks, who, n, actions, False)
        scores = table.scores()
        self._tables.append(table)
        return scores

    def _ask(
        self,
        block: int,
        table: Table,
        entry: int,
        seat: int,
        rng: np.random.Generator,
        mask: NDArray[np.int8],
    ) -> int:
        """The bot's decision, checked and timed."""
        bot = self.bots[entry]
        view = table.view(seat)
        state = {"state": clone(table.games)} if bot.needs_state else {}
        start = time.perf_counter()
        action = bot.act(view, rng, **state)
        took = time.perf_counter() - start
        # The first decision of a kind compiles code and loads weights: it is not counted.
        kind = entry, bool(mask[0])
        if kind in self._timed:
            self._seconds[block][entry] += took
            self._decisions[block][entry] += 1
        else:
            self._timed.add(kind)
        number = as_integer(action)
        if number is None or not 0 <= number < ACTIONS or not mask[number]:
            raise ValueError(illegal(spec_name(bot), action, view))
        return number

    def _ask_batch(
        self, entry: int, bot: OwnBot, questions: list[_Question], blocks: list[int]
    ) -> list[int]:
        """A model's decisions, timed; a batch's time is shared out equally."""
        count = len(questions)
        legal = np.array([question.mask for question in questions])
        rngs = [question.rng for question in questions]
        views = [question.view for question in questions]
        games = np.concatenate([question.table.games for question in questions])
        decks = questions[0].table.decks
        if callable(self.setup.deck):  # each match has its own
            decks = np.concatenate([question.table.decks for question in questions])
            games["deck"] = np.arange(count)
        who = np.zeros(count, PENDING)
        who["game"], who["seat"] = np.arange(count), [question.seat for question in questions]
        start = time.perf_counter()
        observations = np.empty((count, OBS), np.float32)
        encode_pending(games, decks, who, count, observations)
        actions = bot.act_batch(observations, legal, rngs, views)
        took = (time.perf_counter() - start) / count
        kind = entry, True
        if kind in self._timed:
            for block in blocks:
                self._seconds[block][entry] += took
                self._decisions[block][entry] += 1
        else:
            self._timed.add(kind)
        return actions


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
