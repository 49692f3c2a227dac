"""Request limits and fair queues, so that tables answer whatever other clients ask for.

A *client* is one address; in IPv6, one network of the size that a household gets.
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

from oxx_env.web.errors import RequestError

SPARE = 4
FORGET = 1000  # clients above which those with a full budget are forgotten


@dataclass(frozen=True)
class Limit:
    """The limits of one kind of work.

    what       the work in words
    at_once    pieces of work, of all clients, that run or wait. A client without any is let in up
               to `SPARE` times as many, so that a few busy clients keep no other client out
    own        pieces of work of one client
    burst      a client's full budget
    per_s      what is added to a budget each second
    """

    what: str
    at_once: int
    own: int
    burst: float
    per_s: float


# A decision takes the coach 0.2 s to 1 s (ten players).
COACH = Limit("the coach", at_once=40, own=8, burst=2000, per_s=2)  # decisions
# Separate from FILES: a slow upload takes up to 8 MB of memory, but no time of the reader.
UPLOADS = Limit("sending files", at_once=16, own=2, burst=math.inf, per_s=0)  # requests
FILES = Limit("opening files", at_once=4, own=2, burst=600, per_s=4)  # games or decks
TABLES = Limit("new tables", at_once=1000, own=1000, burst=400, per_s=0.5)


def client_of(address: str) -> str:
    """The client that an address belongs to."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


@dataclass
class Limiter:
    """Admits as much work of one kind as its limit allows.

    Each client has a budget that grows with time. A client with at least one unit is admitted and
    charged afterwards for what the work turned out to be, so a budget can become negative.
    """

    limit: Limit
    clock: Callable[[], float] = time.monotonic
    _running: Counter[str] = field(default_factory=Counter)  # client -> pieces of work
    _budgets: dict[str, tuple[float, float]] = field(default_factory=dict)  # budget, at what time

    @contextlib.contextmanager
    def admit(self, client: str) -> Iterator[None]:
        """Around one piece of work. Raises RequestError 429 or 503."""
        limit = self.limit
        budget, own = self._budget(client), self._running[client]
        if budget < 1:
            wait = math.ceil((1 - budget) / limit.per_s)
            message = f"too many requests from you for {limit.what}; try again in {wait} s"
            raise RequestError(429, message, wait)
        if own >= limit.own:
            message = f"{own} of your requests for {limit.what} are still running; try again soon"
            raise RequestError(429, message, 2)
        if self._running.total() >= (limit.at_once if own else SPARE * limit.at_once):
            message = f"too many requests for {limit.what} at this moment; try again soon"
            raise RequestError(503, message, 5)
        self._running[client] += 1
        try:
            yield
        finally:
            self._running[client] -= 1
            self._running += Counter()  # drops the zeros

    def charge(self, client: str, amount: float) -> None:
        """Take from a client's budget."""
        if amount:
            self._budgets[client] = (self._budget(client) - amount, self.clock())
        if len(self._budgets) > FORGET:
            full = [one for one in self._budgets if self._budget(one) >= self.limit.burst]
            for one in full:
                del self._budgets[one]

    def _budget(self, client: str) -> float:
        budget, at = self._budgets.get(client, (self.limit.burst, 0.0))
        return min(self.limit.burst, budget + self.limit.per_s * (self.clock() - at))


class FairQueue:
    """Threads that work for all clients in turn.

    The next piece of work is that of the client whose work has taken the least processor time. So
    the work of a client with a thousand tables waits for that client's other work, and another
    client waits only for the pieces that are running. A client that returns starts with the time
    of the client served last: unused time is not saved up. Pieces should be short, since they are
    not interrupted.

    All but the work itself runs in the event loop.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._free = threads
        self._waiting: dict[str, deque[tuple[asyncio.Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[str] = Counter()
        self._used: dict[str, float] = {}  # client with work -> seconds
        self._clock = 0.0  # seconds of the client served last

    async def run(self, client: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function, or its exception, when its turn has come."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._used[client] = max(self._used.get(client, 0.0), self._clock)
        self._waiting.setdefault(client, deque()).append((done, partial(function, *arguments)))
        self._start_next()
        return await done

    def _start_next(self) -> None:
        while self._free and self._waiting:
            client = min(self._waiting, key=self._used.__getitem__)
            done, function = self._waiting[client].popleft()
            if not self._waiting[client]:
                del self._waiting[client]
            if not done.done():  # else the request was cancelled
                self._clock = self._used[client]
                self._free -= 1
                self._running[client] += 1
                self._start(client, done, function)

    def _start(self, client: str, done: asyncio.Future[Any], function: Callable[[], Any]) -> None:
        def end(timed: asyncio.Future[tuple[float, Any, Exception | None]]) -> None:
            self._free += 1
            self._running[client] -= 1
            if not timed.cancelled():
                seconds, result, error = timed.result()
                self._used[client] += seconds
                if not done.done():
                    done.set_exception(error) if error is not None else done.set_result(result)
            self._forget(client)
            self._start_next()

        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._pool, _timed, function).add_done_callback(end)

    def _forget(self, client: str) -> None:
        """Drop clients without work whose time is no longer above the clock: a new client would
        start with the same."""
        if not self._running[client]:
            del self._running[client]
        if len(self._used) > FORGET:
            for one in [*self._used]:
                idle = one not in self._waiting and one not in self._running
                if idle and self._used[one] <= self._clock:
                    del self._used[one]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def _timed(function: Callable[[], Any]) -> tuple[float, Any, Exception | None]:
    """A function's processor time, and its result or exception."""
    start = time.thread_time()
    try:
        result, error = function(), None
    except Exception as raised:  # raised again where the work was asked for
        result, error = None, raised
    return time.thread_time() - start, result, error
