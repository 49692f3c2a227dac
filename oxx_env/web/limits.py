"""How much work the server takes on, so that tables go on answering whatever is asked.

A *client* is who asks from one address; of IPv6, one network of the size that a household gets.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from oxx_env.web.rooms import Refused

ROOM = 4
FORGET = 1000  # clients of a purse, from which on those with a full one are forgotten


@dataclass(frozen=True)
class Limit:
    """The bounds of one kind of work.

    what       what a client asks for, in words
    at_once    pieces of work, of all clients, that run or wait for their turn; up to `ROOM` times
               as many where each more is the only one of its client, so that a few busy clients
               keep no other one out
    own        of them, one client's
    burst      what one client may ask for in a row
    per_s      what is added to that in each second
    """

    what: str
    at_once: int
    own: int
    burst: float
    per_s: float


# A decision takes the coach some 0.2 s, up to a second at ten players.
COACH = Limit("the coach", at_once=40, own=8, burst=2000, per_s=2)  # decisions
# A file that arrives slowly takes memory, of up to 8 MB, and keeps nobody else from opening one.
UPLOADS = Limit("sending files", at_once=16, own=2, burst=math.inf, per_s=0)  # requests
FILES = Limit("opening files", at_once=4, own=2, burst=600, per_s=4)  # games, or decks
TABLES = Limit("new tables", at_once=1000, own=1000, burst=400, per_s=0.5)
NEWS = Limit("news", at_once=5000, own=1000, burst=math.inf, per_s=0)  # requests that wait


def client_of(address: str) -> str:
    """Whom an address belongs to."""
    try:
        told = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(told, ipaddress.IPv6Address):
        if told.ipv4_mapped:
            return str(told.ipv4_mapped)
        return str(ipaddress.ip_network((told, 64), strict=False))
    return str(told)


@dataclass
class Gate:
    """Lets in as much work of one kind as its limit allows.

    Each client has a purse that fills up with time. Who has one in it is let in, and pays
    for what the work turns out to be, into debt if need be.
    """

    limit: Limit
    clock: Callable[[], float] = time.monotonic
    _inside: dict[str, int] = field(default_factory=dict)  # client -> pieces of work
    _purses: dict[str, tuple[float, float]] = field(default_factory=dict)  # what is left, when

    @contextlib.contextmanager
    def work(self, client: str) -> Iterator[None]:
        """One piece of work, from its asking to its end. Raises Refused 429 or 503."""
        limit = self.limit
        left, own = self._left(client), self._inside.get(client, 0)
        if left < 1:
            wait = math.ceil((1 - left) / limit.per_s)
            told = f"you have asked for much of {limit.what}; try again in {wait} s"
            raise Refused(429, told, wait)
        if own >= limit.own:
            told = f"{own} of your requests for {limit.what} are still at work; try again soon"
            raise Refused(429, told, 2)
        inside = sum(self._inside.values())
        if inside >= (limit.at_once if own else ROOM * limit.at_once):
            told = f"too many ask for {limit.what} at this moment; try again soon"
            raise Refused(503, told, 5)
        self._inside[client] = own + 1
        try:
            yield
        finally:
            self._inside[client] -= 1
            if not self._inside[client]:
                del self._inside[client]

    def pay(self, client: str, amount: float) -> None:
        """Take from a client's purse what its work was."""
        if amount:
            self._purses[client] = (self._left(client) - amount, self.clock())
        if len(self._purses) > FORGET:
            full = [who for who in self._purses if self._left(who) >= self.limit.burst]
            for who in full:
                del self._purses[who]

    def _left(self, client: str) -> float:
        left, when = self._purses.get(client, (self.limit.burst, 0.0))
        return min(self.limit.burst, left + self.limit.per_s * (self.clock() - when))


class Queue:
    """Threads that work for all clients in turn.

    The next piece of work is that of the client whose work has taken the least processor time. So
    one with a thousand tables waits for itself, and another one for no more than the pieces that
    are under way. The time of a client that comes back begins at that of the last one served:
    nobody saves up. Pieces should be short: nothing interrupts them.

    All but the work itself is done in the event loop.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._free = threads
        self._waiting: dict[str, deque[tuple[asyncio.Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[str] = Counter()
        self._used: dict[str, float] = {}  # client at work -> seconds
        self._clock = 0.0  # seconds of the client that was served last

    async def run(self, client: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns, or raises, when its turn has come."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._used[client] = max(self._used.get(client, 0.0), self._clock)
        self._waiting.setdefault(client, deque()).append((done, partial(function, *arguments)))
        self._go_on()
        return await done

    def _go_on(self) -> None:
        while self._free and self._waiting:
            client = min(self._waiting, key=self._used.__getitem__)
            done, work = self._waiting[client].popleft()
            if not self._waiting[client]:
                del self._waiting[client]
            if not done.done():  # whoever asked may have gone
                self._clock = self._used[client]
                self._free -= 1
                self._running[client] += 1
                self._begin(client, done, work)

    def _begin(self, client: str, done: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        def end(worked: asyncio.Future[tuple[float, Any, Exception | None]]) -> None:
            self._free += 1
            self._running[client] -= 1
            if not worked.cancelled():
                seconds, result, error = worked.result()
                self._used[client] += seconds
                if not done.done():
                    done.set_exception(error) if error is not None else done.set_result(result)
            self._forget(client)
            self._go_on()

        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._pool, _timed, work).add_done_callback(end)

    def _forget(self, client: str) -> None:
        """A client without work is as good as a new one when others have come as far."""
        if not self._running[client]:
            del self._running[client]
        if len(self._used) > FORGET:
            for who in [*self._used]:
                idle = who not in self._waiting and who not in self._running
                if idle and self._used[who] <= self._clock:
                    del self._used[who]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def _timed(work: Callable[[], Any]) -> tuple[float, Any, Exception | None]:
    """Processor time of a piece of work, and what came of it."""
    start = time.thread_time()
    try:
        result, error = work(), None
    except Exception as raised:  # it is raised again where the work was asked for
        result, error = None, raised
    return time.thread_time() - start, result, error
