"""Connections to the server: what one client may send, and none is kept for somebody who says
nothing.

uvicorn waits without end for a request that was begun, for its head of any length, and for a client
that does not take its answer. It bounds bodies by waiting until the application asks for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import json
from collections import Counter

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from oxx_env.web.limits import client_of

TICK = 60.0  # seconds between two looks at a connection
SILENT = 2  # looks at one that asks for nothing, after which it is closed
STUCK = 10  # looks at one and the same request, after which it is
LINGER = 1.0  # seconds in which a refusal can be read before the connection is closed
OWN = 400  # connections of one client
FILES = 8192  # open files, connections among them, where the system allows so many
MAX_HEAD = 1 << 16  # bytes of a request before its body, and of whatever else is no body
MAX_ADDRESS = 1 << 13  # of them, the address
MAX_HEADERS = 100
HEAD_S = 10.0  # seconds for a head to arrive
PIPELINE = 8  # requests of a connection that wait for the answer to one before
MAX_REST = 1 << 24  # bytes of a body that still come after the answer

_open: Counter[str] = Counter()  # client -> connections


class _Refused(Exception):
    """Ends the parsing of what a client sends."""


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, bounded in bytes and looked at from time to time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._whose = client_of(peer[0]) if peer else ""
        # A reverse proxy's connections are those of all its clients.
        proxies = str(self.config.forwarded_allow_ips).split(",")
        proxied = self.config.proxy_headers and self._whose in proxies
        self._seen: object = None
        self._looks = 0
        self._next = self.loop.call_later(TICK, self._look)
        self._begun = False  # a head that is not complete?
        self._deadline: asyncio.TimerHandle | None = None  # until when it should be
        self._progress = 0  # bytes since something was complete: a head, a piece of a body, all
        self._head = self._rest = 0  # bytes of this request's head, and of its body in vain
        self._count = 0  # its headers, also after the body
        self._refusal: tuple[int, str] | None = None
        self._over = False
        _open[self._whose] += 1
        if _open[self._whose] > OWN and not proxied:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._next.cancel()
        self._in_time()
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

    # --- what arrives ---

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._progress += len(data)
        super().data_received(data)
        if self._begun and self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self._late)
        if self._progress > MAX_HEAD:  # a line without end
            self._answer(431, f"a request may have {MAX_HEAD:,} bytes before its body")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = self._rest = self._count = 0
        self._begun = True

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_ADDRESS:
            self._refuse(414, f"an address may have {MAX_ADDRESS:,} bytes")
        self._grow(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        if self._begun:  # what comes after the body says nothing of whose request it is
            super().on_header(name, value)
        self._grow(len(name) + len(value))
        if self._count > MAX_HEADERS:
            self._refuse(431, f"a request may have {MAX_HEADERS} headers")

    def _grow(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            self._refuse(431, f"a request may have {MAX_HEAD:,} bytes before its body")

    def on_headers_complete(self) -> None:
        self._in_time()
        self._begun, self._progress = False, 0
        if len(self.pipeline) >= PIPELINE:
            self._refuse(429, "too many requests at once on one connection")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._progress = 0
        super().on_body(body)
        if self.cycle.response_complete:
            self._rest += len(body)
            if self._rest > MAX_REST:
                self.transport.abort()

    def on_message_complete(self) -> None:
        self._progress = 0
        super().on_message_complete()

    # --- refusing ---

    def _in_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        if self.flow.read_paused:  # it is the server that waits
            self._deadline = self.loop.call_later(HEAD_S, self._late)
        else:
            self._answer(408, f"the request's head did not arrive within {HEAD_S:g} s")

    def _refuse(self, status: int, words: str) -> None:
        """Refuse what is being parsed."""
        self._refusal = status, words
        raise _Refused

    def send_400_response(self, msg: str) -> None:
        self._answer(*(self._refusal or (400, msg)))

    def _answer(self, status: int, words: str) -> None:
        """Say why nothing more is read, unless another answer is under way, and close."""
        if self._over:
            return
        self._over = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            return
        body = json.dumps({"error": words}).encode()
        head = (
            f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n"
            "Content-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.write_eof()
        self.flow.pause_reading()  # at once closed, the answer could be lost with what still comes
        self.loop.call_later(LINGER, self.transport.abort)


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
