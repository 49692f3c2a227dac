"""Connections to the server: how many bytes a client may send, and how long it may be silent.

uvicorn sets no limit to the time and the length of a request's head, nor to the time in which a
client takes its answer. It limits bodies: it stops reading until the application asks for more.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import json
from collections import Counter

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from oxx_env.web.limits import client_of

CHECK_S = 60.0  # between two checks of a connection
SILENT_CHECKS = 2  # checks without a request before a connection is closed
STUCK_CHECKS = 10  # checks that find the same unanswered request before it is closed
LINGER_S = 1.0  # between an error and closing, so that the client can read it
MAX_CONNECTIONS = 400  # of one client
OPEN_FILES = 8192  # wanted from the system; connections count as open files
MAX_HEAD = 1 << 16  # bytes of a request before its body, or of anything else that is no body
HEAD_S = 10.0  # for a head to arrive
MAX_PIPELINED = 8  # requests of a connection that wait for the answer to an earlier one
MAX_UNREAD_BODY = 1 << 24  # bytes of a body that arrive after the answer

_connections: Counter[str] = Counter()  # by client


class _ParsingError(Exception):
    """Ends the parsing of what a client sends."""


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with limits in bytes, and a check from time to time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._client = client_of(peer[0]) if peer else ""
        # A reverse proxy's connections belong to many clients.
        proxies = str(self.config.forwarded_allow_ips).split(",")
        proxied = self.config.proxy_headers and self._client in proxies
        self._checked: object = None  # the request that the last check found
        self._checks = 0  # checks that found it
        self._next_check = self.loop.call_later(CHECK_S, self._check)
        self._in_head = False  # has a head begun that is not complete?
        self._deadline: asyncio.TimerHandle | None = None  # of this head
        self._progress = 0  # bytes since a head, a piece of a body or a request was complete
        self._head = self._unread = 0  # bytes of this request's headers; of its body, unread
        self._error: tuple[int, str] | None = None
        self._over = False
        _connections[self._client] += 1
        if _connections[self._client] > MAX_CONNECTIONS and not proxied:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._next_check.cancel()
        self._cancel_deadline()
        _connections[self._client] -= 1
        if not _connections[self._client]:
            del _connections[self._client]
        super().connection_lost(exc)

    def _check(self) -> None:
        request = self.cycle  # the last one that has arrived
        self._checks = self._checks + 1 if request is self._checked else 1
        self._checked = request
        answered = request is None or request.response_complete
        if self._checks >= (SILENT_CHECKS if answered else STUCK_CHECKS):
            self.transport.abort()
        else:
            self._next_check = self.loop.call_later(CHECK_S, self._check)

    # --- what arrives ---

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._progress += len(data)
        super().data_received(data)
        if self._in_head and self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self._late)
        if self._progress > MAX_HEAD:  # such as a line without end
            self._answer(431, f"a request may have {MAX_HEAD:,} bytes before its body")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = self._unread = 0
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a header after the body must not change the request
            super().on_header(name, value)
        self._count_head(len(name) + len(value))

    def _count_head(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            self._refuse(431, f"a request may have {MAX_HEAD:,} bytes before its body")

    def on_headers_complete(self) -> None:
        self._cancel_deadline()
        self._in_head, self._progress = False, 0
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refuse(429, "too many requests at once on one connection")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._progress = 0
        super().on_body(body)
        if self.cycle.response_complete:
            self._unread += len(body)
            if self._unread > MAX_UNREAD_BODY:
                self.transport.abort()

    def on_message_complete(self) -> None:
        self._progress = 0
        super().on_message_complete()

    # --- errors ---

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        if self.flow.read_paused:  # the server has stopped reading, so the client is not late
            self._deadline = self.loop.call_later(HEAD_S, self._late)
        else:
            self._answer(408, f"the request's head did not arrive within {HEAD_S:g} s")

    def _refuse(self, status: int, message: str) -> None:
        """Refuse the request that is being parsed."""
        self._error = status, message
        raise _ParsingError

    def send_400_response(self, msg: str) -> None:
        self._answer(*(self._error or (400, msg)))

    def _answer(self, status: int, message: str) -> None:
        """Read no more, send an error unless an answer has begun, and close."""
        if self._over:
            return
        self._over = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            return
        body = json.dumps({"error": message}).encode()
        head = (
            f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n"
            "Content-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.write_eof()
        self.flow.pause_reading()  # closing at once could lose the answer while data still arrives
        self.loop.call_later(LINGER_S, self.transport.abort)


def allow_many() -> None:
    """Raise this process's limit of open files to `OPEN_FILES`, or as far as the system allows."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
