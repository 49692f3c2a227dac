"""Refuses requests under a foreign host name and from pages of other sites, and adds the headers
that restrict what a page may load.

A foreign page whose host name points to this server (DNS rebinding) would count as this server's
own page in the browser. And a foreign page that cannot read answers could still send requests:
make tables, or keep the coach busy.

Starlette's TrustedHostMiddleware does less: of several Host headers it looks at the first, it
knows no rule for IP addresses, and it answers in plain text.
"""

from __future__ import annotations

import ipaddress
import json
import socket
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class AsciiJSON(JSONResponse):
    """JSON in ASCII: a message may quote half a surrogate pair, which has no UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


class Guard:
    """ASGI middleware.

    host  the address that the server listens on
    name  the name that browsers use where there is a reverse proxy, else empty
    """

    def __init__(self, app: ASGIApp, host: str, name: str = "") -> None:
        self.app = app
        self.local = host in LOCAL_HOSTS
        self.names = {*LOCAL_HOSTS, host.lower(), name.lower()} - {""}
        if not self.local:
            machine = socket.gethostname().lower()
            self.names |= {machine, f"{machine}.local"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # the server has none
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                headers += [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                if not any(key == b"cache-control" for key, _ in headers):
                    headers.append((b"cache-control", b"no-cache"))
            await send(message)

        hosts = _values(scope, b"host")
        response = None
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            response = AsciiJSON(
                {"error": f"this server is not called {', '.join(hosts)[:80]}"}, 421
            )
        elif _is_foreign(scope, hosts[0]):
            response = AsciiJSON({"error": "this is not for pages of other sites"}, 403)
        await (response or self.app)(scope, receive, send_with_headers)

    def _is_own(self, host: str) -> bool:
        """Is `host`, as a Host header gives it, a name of this server?"""
        if not host.endswith("]"):
            head, colon, port = host.rpartition(":")
            host = head if colon and port.isdigit() else host
        name = host.removeprefix("[").removesuffix("]")
        if name in self.names:
            return True
        if self.local:
            return False
        try:  # on a network the server has several addresses, and no foreign page has one as name
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]


def _is_foreign(scope: Scope, host: str) -> bool:
    """Does a page of another site, or another port, send this? Following a link here is fine."""
    if any(origin.partition("://")[2] != host for origin in _values(scope, b"origin")):
        return True
    if set(_values(scope, b"sec-fetch-site")) <= {"same-origin", "none"}:
        return False
    visit = scope["method"] in ("GET", "HEAD") and _values(scope, b"sec-fetch-mode") == ["navigate"]
    return not visit or scope["path"].startswith("/api/")
