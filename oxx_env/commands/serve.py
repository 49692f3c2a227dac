"""`oxx serve`: a table in the browser."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Annotated, ClassVar, Optional

from oxx_env.commands import OK, Command, UserError
from oxx_env.lib.extras import needed_by
from oxx_env.lib.files import remove_unfinished
from oxx_env.lib.options import Range

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCAL = ("127.0.0.1", "::1", "localhost")  # what only this machine can reach


@dataclass(kw_only=True)
class Run(Command):
    """Play in the browser: a table for people and bots, a coach, replays, your own deck.

    Bots play at five levels: random, greedy, careful, champion, and champion with search.
    Prints the address of the page and serves it until Ctrl-C. Only this machine can reach it,
    unless --host names an address of the local network (0.0.0.0: all of them); then others join
    by the link that the table shows. Games survive a restart: they are kept in the folder, the
    finished ones as records that oxx replay reads.
    """

    example: ClassVar[str] = "oxx serve --port 8000"

    port: Annotated[int, Range(0, 65535)] = 8000
    """The port; 0 takes any free one."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    folder: str = "oxx-games"
    """Where tables and finished games are kept."""
    keep_mb: Annotated[int, Range(1)] = 1000
    """Megabytes that they may take; before it is more, old tables and the oldest games go."""
    name: str = ""
    """What browsers call it behind a reverse proxy, such as table.example.org."""
    proxy: str = ""
    """The reverse proxy's address, such as 127.0.0.1. Only this address is believed when its
    X-Forwarded-For names the client. Without it the client is the address that connects."""
    seed: Annotated[Optional[int], Range(0)] = None  # type: ignore[assignment]
    """For tests and demonstrations only: all deals and bots follow from it, so it reveals
    every hidden card. Without it each deal is secret."""

    def run(self) -> int:
        with needed_by("the table in the browser"):
            import uvicorn

            from oxx_env.web.app import make_app
            from oxx_env.web.connections import Connection, allow_many

        proxy, name = self._proxy(), self._public_name()
        listener = self._listen()
        alone = self._alone()
        allow_many()
        self.note("Getting ready (the first time takes some seconds) ...")
        app = make_app(
            Path(self.folder), self.seed, self.host, True, name, self.keep_mb * 1_000_000
        )
        port = listener.getsockname()[1]
        # Threads wait their turn for the interpreter each time they come back from compiled code or
        # the disk: 5 ms, Python's default, is long where a move is to take a few of them.
        sys.setswitchinterval(0.0005)
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            proxy_headers=bool(proxy),  # else the client is the address that connects
            forwarded_allow_ips=proxy,
            log_level="error",  # no line for each broken request
            access_log=False,
            timeout_keep_alive=75,  # people think for longer than the default, 5 s
            timeout_graceful_shutdown=1,
        )

        print_addresses = self._print_addresses

        class Server(uvicorn.Server):
            """Prints its address when it answers there. Ctrl-C ends the requests that wait for
            news, so that it stops at once."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                if self.started:
                    print_addresses(port)

            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                if hasattr(app.state, "loop"):  # else it has not begun
                    app.state.loop.call_soon_threadsafe(app.state.server.release_waiting)
                super().handle_exit(sig, frame)

        with alone:
            Server(config).run(sockets=[listener])
        return OK

    def _proxy(self) -> str:
        """The address of the reverse proxy as the system writes it."""
        try:
            return str(ipaddress.ip_address(self.proxy)) if self.proxy else ""
        except ValueError:
            right = "should be one address, such as 127.0.0.1"
            raise UserError(f"--proxy {self.proxy}: {right}") from None

    def _public_name(self) -> str:
        if self.name and not re.fullmatch(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", self.name):
            raise UserError(f"--name {self.name}: should be a name, such as table.example.org")
        return self.name

    def _print_addresses(self, port: int) -> None:
        if self.name:
            print(f"It is called {self.name}: a reverse proxy should hand on https://{self.name}/")
        for name in self._names():
            print(f"The table is at http://{name}:{port}/ (Ctrl-C ends)", flush=True)
        if self.host not in LOCAL:
            self.note("Anyone on the network with a table's link can join it.")

    def _alone(self) -> IO[str]:
        """Makes sure that no other server keeps its tables in the folder, while this is open."""
        folder = Path(self.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = open(folder / ".lock", "a")  # noqa: SIM115
        except OSError as error:
            raise UserError(f"--folder {self.folder}: {error.strerror or error}") from None
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                use = "another oxx serve keeps its tables there; name another folder"
                raise UserError(f"--folder {self.folder}: {use}") from None
            remove_unfinished(folder)
        return lock

    def _names(self) -> list[str]:
        """What a browser may call this server."""
        if self.host in LOCAL:
            return ["localhost" if self.host == "localhost" else f"{_bracketed(self.host)}"]
        if self.host not in ("0.0.0.0", "::"):
            return [_bracketed(self.host)]
        try:
            others = socket.gethostbyname_ex(socket.gethostname())[2]
        except OSError:  # a machine that does not know its own name
            others = []
        return ["localhost", *(name for name in others if not name.startswith("127."))]

    def _listen(self) -> socket.socket:
        """The socket to serve on, so that a port in use is a message and not a log line."""
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            # asyncio sends small pieces at once only where the protocol is named; else the end of
            # an answer waits for the client's word that its beginning has come, 40 ms.
            listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))
            listener.listen(2048)  # who comes before all is ready waits a moment
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UserError(
                    f"port {self.port} is in use; name another one with --port"
                ) from None
            raise UserError(f"--host {self.host}: {error.strerror or error}") from None
        return listener


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
