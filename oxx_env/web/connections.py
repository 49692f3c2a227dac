"""Connections to the server: none is kept for somebody who says nothing.

uvicorn waits without end for a request that was begun, and for a client that does not take its
answer. Some hundreds of such connections would leave none for those who play.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from oxx_env.web.limits import client_of

TICK = 60.0  # seconds between two looks at a connection
SILENT = 2  # looks at one that asks for nothing, after which it is closed
STUCK = 10  # looks at one and the same request, after which it is
OWN = 1000  # connections of one client
FILES = 8192  # open files, connections among them, where the system allows so many

_open: Counter[str] = Counter()  # client -> connections


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's protocol, looked at from time to time."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._whose = client_of(peer[0]) if peer else ""
        self._seen: object = None
        self._looks = 0
        self._next = self.loop.call_later(TICK, self._look)
        _open[self._whose] += 1
        if _open[self._whose] > OWN:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._next.cancel()
        _open[self._whose] -= 1
        if not _open[self._whose]:
            del _open[self._whose]
        super().connection_lost(exc)

    def _look(self) -> None:
        request = self.cycle  # the last one that has arrived
        self._looks = self._looks + 1 if request is self._seen else 1
        self._seen = request
        answered = request is None or request.response_complete
        if self._looks >= (SILENT if answered else STUCK):
            self.transport.abort()
        else:
            self._next = self.loop.call_later(TICK, self._look)


def allow_many() -> None:
    """Let this process have as many connections as the system allows, up to `FILES`."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
