"""Play blocks: one deal, all seatings, in this process or spread over several, with a log.

A block's outcome is a function of the `Setup`, its number and its line-ups, and of nothing else;
`run_blocks` gives the same blocks for any number of workers, after an interruption and from a log.
What the blocks say about the bots is counted in `arena`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.bots import Bot, make
from oxx_env.game import cards
from oxx_env.game.engine import PENDING, masks, pending, step
from oxx_env.game.rules import ACTIONS, MAX_PLAYERS
from oxx_env.game.table import Table, whole
from oxx_env.game.views import clone
from oxx_env.lib.files import read_bounded
from oxx_env.lib.seeding import bot_rng, game_seed
from oxx_env.lib.version import __version__

Spec = str | Bot
Progress = Callable[[int, int | None], None]
Lineup = tuple[int, ...]  # [P] which entry sits at each position

DEFAULT_GAMES = 1000
FIRST_LOOK = 50  # blocks before the first look at the width
GROWTH = 1.25  # and the factor to each further look
_LEAGUE = 0x1EA60E  # keeps the line-ups' random stream apart from deals and bots
_PART_SECONDS = 0.25  # what a worker gets to do at a time
_LAST_WAIT = 5.0  # seconds for a pool whose workers were ended


# --- what to play -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setup:
    """All that decides the outcome of a block, beside its number and line-ups.

    mode     what plays (`arena`, `league`, ...), told in a log so that others are not mixed in
    specs    the entries, specifications or bots
    players  seats at the table, 2 to 10
    rules    rule set; deck: name, path, cards, or a function that draws one for each deal
    seed     of deals and bots, 0 or more
    match    games of a match
    """

    mode: str
    specs: tuple[Spec, ...]
    players: int
    rules: str
    deck: cards.DeckSpec
    seed: int
    match: int

    def __post_init__(self) -> None:
        Table(self.players, self.rules, self.deck, self.match)  # raises for what is not right
        _check_count("seed", self.seed, 0)

    @property
    def names(self) -> list[str]:
        return [spec_name(spec) for spec in self.specs]

    @property
    def block_games(self) -> int:
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
    """What came of one deal.

    number     of the deal, from 0
    lineups    L line-ups [L, P], each played with all R = P rotations
    points     [L, R, P] rulebook points of the match, by line-up position, not by seat
    seconds    thinking time by entry of `Setup.specs`
    decisions  and the decisions it was spent on
    wall       seconds that the whole block took; not kept in a log
    """

    number: int
    lineups: tuple[Lineup, ...]
    points: Any  # nested lists of int, or an array
    seconds: list[float]
    decisions: list[int]
    wall: float = 0.0

    def line(self) -> str:
        data = {
            "block": self.number,
            "lineups": self.lineups,
            "points": self.points,
            "seconds": [round(seconds, 6) for seconds in self.seconds],
            "decisions": self.decisions,
        }
        return json.dumps(data) + "\n"


def weights_checksum(spec: Spec) -> str | None:
    """SHA-256 of the weights of a bot that has any, else None: under the same name other ones may
    lie there when something that is kept goes on."""
    weights = getattr(make(spec) if isinstance(spec, str) else spec, "weights", None)
    return None if weights is None else hashlib.sha256(np.asarray(weights).tobytes()).hexdigest()


def spec_name(spec: Spec) -> str:
    """What results call a bot."""
    return spec if isinstance(spec, str) else str(getattr(spec, "spec", type(spec).__name__))


def fill_table(count: int, players: int) -> Lineup:
    """The line-up of `count` entries at a table of `players`: in order, the last fills."""
    if count < 1:
        raise ValueError("name at least one bot")
    if count > players:
        raise ValueError(f"{count} bots for {players} players: at most one bot for each seat")
    return tuple(min(position, count - 1) for position in range(players))


def random_lineups(entries: int, players: int, seed: int) -> Iterator[Lineup]:
    """Line-ups without end: at each table all entries as equally often as can be, and the rest
    drawn in shuffled rounds through all entries, so that over time each sits equally often."""
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


def _check_count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer of {least} or more, not {value!r}")


# --- playing ------------------------------------------------------------------------------------


class Player:
    """Plays blocks in this process, with its own bots and its own table."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.bots = [make(spec) if isinstance(spec, str) else spec for spec in setup.specs]
        self.table = Table(setup.players, setup.rules, setup.deck, setup.match)
        self._who = np.zeros(MAX_PLAYERS, PENDING)
        self._actions = np.zeros(MAX_PLAYERS, np.int64)
        self._mask = np.zeros((MAX_PLAYERS, ACTIONS), np.int8)
        self._timed: set[tuple[int, bool]] = set()

    def block(self, number: int, lineups: tuple[Lineup, ...]) -> Block:
        """One deal, every line-up, every rotation."""
        start = time.perf_counter()
        self._seconds = [0.0] * len(self.bots)
        self._decisions = [0] * len(self.bots)
        players = self.setup.players
        points: list[list[list[int]]] = []
        for lineup in lineups:
            points.append([])
            for rotation in range(players):
                by_seat = self.match(number, lineup, rotation)
                points[-1].append([by_seat[(p + rotation) % players] for p in range(players)])
        wall = time.perf_counter() - start
        return Block(number, lineups, points, self._seconds, self._decisions, wall)

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
        self,
        entry: int,
        seat: int,
        rng: np.random.Generator,
        mask: NDArray[np.int8],
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
        number = whole(action)
        if number is None or not 0 <= number < ACTIONS or not mask[number]:
            raise ValueError(
                f"bot {spec_name(bot)!r} at seat {seat} chose {action!r}, which is not legal; "
                f"legal: {np.flatnonzero(mask).tolist()}"
            )
        return number


Job = tuple[int, tuple[Lineup, ...]]  # block number, line-ups

_player: Player | None = None  # of a worker process


def _start_worker(setup: Setup) -> None:
    global _player
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    _player = Player(setup)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _work(jobs: list[Job]) -> list[Block]:
    assert _player is not None
    return [_player.block(*job) for job in jobs]


@contextlib.contextmanager
def _quiet_start() -> Iterator[None]:
    """Processes started here know one thread each and no Ctrl-C; ours waits until they stand."""
    names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with _interrupt_held():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupt_held() -> Iterator[None]:
    """Ctrl-C within is kept for after; processes started within inherit that they hear none.

    Ignoring it for the moment would do the second and lose the first. A mask alone does the
    second and not the first: another thread of ours may take the signal.
    """
    masks = hasattr(signal, "pthread_sigmask")  # not on Windows, where nothing is inherited
    if masks:
        resource_tracker.ensure_running()  # its start would take the mask off again
    main = threading.current_thread() is threading.main_thread()  # others never hear Ctrl-C
    before = signal.getsignal(signal.SIGINT)
    noted: list[int] = []
    if main:
        signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if main:  # None: set by a program around Python
            signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if noted:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Sums in another order give other last digits, and with them, rarely, other actions."""
    torch: Any = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    if torch:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if torch:
            torch.set_num_threads(before)


Source = Callable[[int], tuple[Lineup, ...]]  # block number -> its line-ups, asked in order


class Crew:
    """Plays blocks, here or spread over worker processes, and yields them in order."""

    def __init__(self, setup: Setup, workers: int) -> None:
        self.setup, self.workers = setup, workers
        self._block_seconds = _PART_SECONDS  # at first, parts of one block
        self._here = Player(setup)  # also finds out about wrong specifications before all else
        self.cheats = any(bot.needs_state for bot in self._here.bots)
        self._pool: futures.ProcessPoolExecutor | None = None

    def play(self, jobs: Iterator[Job]) -> Iterator[list[Block]]:
        if self.workers == 1:
            with _one_torch_thread():
                for job in jobs:
                    yield [self._here.block(*job)]
            return
        if self._pool is None:  # one process compiles what is not compiled yet, not all at once
            for job in jobs:
                with _one_torch_thread():
                    block = self._here.block(*job)
                yield [block]
                break
        running: deque[futures.Future[list[Block]]] = deque()
        try:
            while True:
                while len(running) < 3 * self.workers:
                    part = [job for _, job in zip(range(self._part()), jobs, strict=False)]
                    if not part:
                        break
                    running.append(self._submit(part))
                if not running:
                    return
                blocks = running.popleft().result()
                self._block_seconds = sum(block.wall for block in blocks) / len(blocks)
                yield blocks
        except futures.BrokenExecutor as error:
            message = "a worker process died; is there enough memory? --workers 1 needs none"
            raise RuntimeError(message) from error

    def _part(self) -> int:
        return max(1, min(64, int(_PART_SECONDS / max(self._block_seconds, 1e-6))))

    def _submit(self, part: list[Job]) -> futures.Future[list[Block]]:
        if self._pool is None:
            context = get_context("spawn")
            self._pool = futures.ProcessPoolExecutor(
                self.workers, context, _start_worker, (self.setup,)
            )
        with _quiet_start():  # processes start as work comes in
            return self._pool.submit(_work, part)

    def close(self, now: bool = False) -> None:
        """Let the workers go; `now`: also those in the middle of a block."""
        if self._pool is None:
            return
        if not now:
            self._pool.shutdown(cancel_futures=True)
            return
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            process.terminate()
        # The pool's own thread should be gone before the interpreter goes, but it may wait for the
        # rest of an answer that will never come.
        manager = getattr(self._pool, "_executor_manager_thread", None)
        self._pool.shutdown(wait=False, cancel_futures=True)
        if manager is not None:
            manager.join(_LAST_WAIT)


def run_blocks(
    setup: Setup,
    source: Source,
    blocks: int | None,
    workers: int = 1,
    log: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    narrow: Callable[[list[Block]], bool] | None = None,
) -> tuple[list[Block], bool, bool]:
    """Play `blocks` blocks, or until `narrow` says that those played are enough.

    source    number of a block -> its line-ups
    blocks    how many (None: only `narrow` ends it)
    workers   processes, 1: this one
    log       file of finished blocks: read, and gone on with
    progress  called with the games done and those wanted, if that is known
    narrow    asked now and then with the blocks so far

    Returns the blocks in order, whether a bot cheats, and whether Ctrl-C cut it short. Raises
    ValueError for a wrong option or a log of something else, OSError for one that cannot be used;
    KeyboardInterrupt where no block was finished.
    """
    _check_count("workers", workers, 1)
    crew = Crew(setup, int(workers))
    each = setup.block_games * len(source(0))
    total = None if blocks is None or narrow else blocks * each
    with contextlib.ExitStack() as stack:
        book = stack.enter_context(Log(log, setup)) if log is not None else None
        done = book.blocks if book else []
        for block in done:
            if block.lineups != source(block.number):
                raise ValueError(f"{log}: block {block.number} has other line-ups than this run")
        try:
            for goal in _goals(blocks, narrow is not None):
                jobs = ((number, source(number)) for number in range(len(done), goal))
                for part in crew.play(jobs):
                    for block in part:
                        done.append(block)
                        if book:
                            book.append(block)
                    if progress:
                        progress(len(done) * each, total)
                if narrow and narrow(done[:goal]):
                    done = done[:goal]
                    break
        except BaseException as error:
            with contextlib.suppress(KeyboardInterrupt):  # a second one: what is done is still told
                crew.close(now=True)
            if isinstance(error, KeyboardInterrupt) and done:
                return done, crew.cheats, True
            raise
        crew.close()
    return (done if blocks is None else done[:blocks]), crew.cheats, False


def _goals(blocks: int | None, looking: bool) -> Iterator[int]:
    """Numbers of blocks at which to stop and look."""
    goal = FIRST_LOOK
    while looking and (blocks is None or goal < blocks):
        yield goal
        goal = math.ceil(goal * GROWTH)
    if blocks is not None:
        yield blocks


def count_blocks(setup: Setup, games: int | None, until_width: float | None) -> int | None:
    """Games as whole blocks; None: no limit."""
    if until_width is not None and not 0 < until_width < 1:
        raise ValueError(f"until_width must lie between 0 and 1, not {until_width!r}")
    if games is None:
        if until_width is not None:
            return None
        games = DEFAULT_GAMES
    _check_count("games", games, 1)
    return -(-int(games) // setup.block_games)


# --- the log ------------------------------------------------------------------------------------


class Log:
    """A file of finished blocks. Opening it takes it up where it ends; a last line that an
    interruption cut off is dropped and its block played again."""

    def __init__(self, path: str | os.PathLike[str], setup: Setup) -> None:
        self.path, self.header = Path(path), setup.header()
        self.blocks: list[Block] = []
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Log:
        if self.path.exists() and not self.path.is_file():  # a device may have no end
            raise ValueError(f"{self.path} is no file; name a new one or a log to resume")
        first = (json.dumps(self.header) + "\n").encode()
        data = read_bounded(self.path, 1 << 30) if self.path.exists() else b""
        if first.startswith(data):  # new, empty, or cut off in the header
            whole = 0
        else:
            whole = data.rfind(b"\n") + 1
            self._read(data[:whole].decode("utf-8", "replace").splitlines())
        self._file = self.path.open("ab")
        self._file.truncate(whole)
        if whole == 0:
            self._write(first)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        with contextlib.suppress(OSError):  # what did not go to a full disk goes there no better
            self._file.close()

    def append(self, block: Block) -> None:
        self._write(block.line().encode())

    def _write(self, line: bytes) -> None:
        assert self._file is not None
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:  # a full disk
            raise type(error)(error.errno, error.strerror, os.fspath(self.path)) from None

    def _read(self, lines: list[str]) -> None:
        try:
            found = json.loads(lines[0]) if lines else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("format") != self.header["format"]:
            raise ValueError(f"{self.path} is no arena log; name a new file or one to resume")
        for key, value in self.header.items():
            if found.get(key) != value:
                raise ValueError(
                    f"{self.path} was begun with {key} {json.dumps(found.get(key))}, this run has "
                    f"{json.dumps(value)}: name another log, or run with the same options"
                )
        for at, line in enumerate(lines[1:], start=2):
            try:
                data = json.loads(line)
                lineups = tuple(tuple(lineup) for lineup in data["lineups"])
                block = Block(
                    data["block"], lineups, data["points"], data["seconds"], data["decisions"]
                )
                if block.number != len(self.blocks) or not self._is_whole(block):
                    raise ValueError("not the block expected here")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise ValueError(
                    f"{self.path}, line {at}: should be block {len(self.blocks)}; "
                    "remove the line and those after it, and they are played again"
                ) from error
            self.blocks.append(block)

    def _is_whole(self, block: Block) -> bool:
        """Has the block all its numbers, as `Block.line` writes them?"""
        players, bots = self.header["players"], len(self.header["specs"])
        points = np.array(block.points)
        seconds, decisions = np.array(block.seconds), np.array(block.decisions)
        return (
            points.shape == (len(block.lineups), players, players)
            and seconds.shape == decisions.shape == (bots,)
            and points.dtype.kind == decisions.dtype.kind == "i"
            and seconds.dtype.kind in "if"
            and bool(np.isfinite(seconds).all())
        )
