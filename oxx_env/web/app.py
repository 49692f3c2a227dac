"""Requests and answers. Every check of what comes from outside is here or in `rooms`.

A seat is held by a secret token, sent as `Authorization: Bearer TOKEN`; the page keeps it in the
part of its address that browsers send nowhere. Another token, of those who watch, reads alone and
shows no hand. A request that changes something (a table, a seat, a move) may carry an
`Idempotency-Key`, 16 to 64 letters and digits drawn at random: sent twice, also across a restart,
it counts once and is answered again. A browser that says who it is (`person`, such a secret of its
own) has one seat at a table, unless `another` is true.

Answers to what is no request yet are `connections`' (408, 414, 429, 431).

Errors are `{"error": sentence}` with the status: 400 no JSON, 401 no token, 403 a wrong one, or a
page of another site, 404 no such table, 408 a request that does not come to its end, 409 not now (a
move made before, not your turn, a taken seat, a used invitation), 410 a seat that was given away
(`watch` is the token to watch by), or a table of an earlier version, 413 too large, 415 not JSON,
421 a name this server does not go by, 422 a value that is not right (an illegal action too, a name
that looks like another one), 429 you have asked for much, 503 all have: `Retry-After` says when to
try again.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import ipaddress
import json
import socket
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oxx_env.game import cards
from oxx_env.game.rules import RULE_SETS
from oxx_env.notation import records, wording
from oxx_env.show import render
from oxx_env.web import coach
from oxx_env.web.levels import levels
from oxx_env.web.limits import client_of
from oxx_env.web.rooms import (
    MAX_MATCH,
    MAX_NAME,
    Key,
    Refused,
    Room,
    hash_of,
    read_cards,
    read_held,
    read_level,
    read_name,
    replay_frames,
)
from oxx_env.web.storage import MAX_BYTES
from oxx_env.web.tables import House

STATIC = Path(__file__).parent / "static"
MAX_BODY = 1 << 16  # bytes of a request
MAX_FILE = 8 << 20  # bytes of a file of records
MAX_LINE = 1 << 16  # bytes of a record; real ones have up to 12,000
USUAL_LINE = 12_000  # bytes that are charged like one game
MAX_REPLAY = 200  # games of one file
TOO_LONG = f"a file of more than {MAX_REPLAY} games is too long for this page"
BODY_S = 30.0  # seconds for a request to arrive
CARDS = {str(number): number for number in range(1, cards.NUMBERS + 1)}
LOCAL = ("localhost", "127.0.0.1", "[::1]")
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def make_app(
    folder: Path,
    seed: int | None = None,
    host: str = "127.0.0.1",
    warm: bool = False,
    name: str = "",
    most: int = MAX_BYTES,
) -> Starlette:
    """The server as an ASGI application.

    folder  where tables and games are kept
    seed    all deals follow from it, for tests; None: they are secret
    host    the address it will listen on: what it may be called by depends on it
    warm    compile before the first request is answered
    name    what a reverse proxy before it is called by, if there is one
    most    bytes of all that is kept
    """
    house = House(folder, seed, most)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.loop = asyncio.get_running_loop()
        if warm:
            await asyncio.to_thread(house.warm_up)
        yield
        await house.close()

    app = Starlette(
        routes=[
            Route("/api/info", info),
            Route("/api/deck", deck, methods=["POST"]),
            Route("/api/replay", replay, methods=["POST"]),
            Route("/api/review", review_record, methods=["POST"]),
            Route("/api/tables", new_table, methods=["POST"]),
            Route("/api/tables/{id}", state),
            Route("/api/tables/{id}/join", join, methods=["POST"]),
            Route("/api/tables/{id}/seats", change_seat, methods=["POST"]),
            Route("/api/tables/{id}/moves", move, methods=["POST"]),
            Route("/api/tables/{id}/coach", advise),
            Route("/api/tables/{id}/review", review),
            Route("/api/tables/{id}/record", record),
            Route("/card/{number}-{heads}.svg", card),
            Mount("/", StaticFiles(directory=STATIC, html=True)),
        ],
        middleware=[Middleware(Guard, host=host, name=name)],
        exception_handlers={
            Refused: _refused,  # type: ignore[dict-item]
            HTTPException: _http_error,  # type: ignore[dict-item]
            Exception: _fault,
        },
        lifespan=lifespan,
    )
    app.state.house = house
    return app


class Answer(JSONResponse):
    """JSON in ASCII: what was asked may come back in a message, and half a surrogate pair, which
    JSON can tell, has no UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


class Guard:
    """Answers only to the server's own names and pages, and says to browsers what a page may do.

    A page from elsewhere that had its own name point here (DNS rebinding) would otherwise be taken
    by the browser for this one. And while no foreign page can read an answer, it could have the
    visitor's browser ask: make tables, or let the coach work.
    """

    def __init__(self, app: ASGIApp, host: str, name: str = "") -> None:
        self.app = app
        self.local = host in ("localhost", "127.0.0.1", "::1")
        self.names = {*LOCAL, host.lower(), f"[{host.lower()}]"} | ({name.lower()} - {""})
        if not self.local:
            name = socket.gethostname().lower()
            self.names |= {name, f"{name}.local"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # there are none here
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                headers += [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-cache"))
            await send(message)

        hosts = [v.decode("latin-1") for k, v in scope["headers"] if k == b"host"]
        told = hosts[0] if len(hosts) == 1 else ""
        response = None
        if not self._is_ours(told):
            response = Answer({"error": f"this server is not called {told[:80]}"}, 421)
        elif _is_foreign(scope, told):
            response = Answer({"error": "this is not for pages of other sites"}, 403)
        await (response or self.app)(scope, receive, send_with_headers)

    def _is_ours(self, host: str) -> bool:
        name = host.lower()
        if not name.endswith("]"):
            head, colon, port = name.rpartition(":")
            name = head if colon and port.isdigit() else name
        if name in self.names:
            return True
        if self.local:
            return False
        try:  # on the local network it goes by its addresses, which no foreign page has for a name
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


def _is_foreign(scope: Scope, host: str) -> bool:
    """Does a browser ask for a page of another site, or another port? To come here by a link from
    elsewhere is fine."""
    told = {k: v.decode("latin-1").lower() for k, v in scope["headers"]}
    origins = [v.decode("latin-1").lower() for k, v in scope["headers"] if k == b"origin"]
    if any(origin.partition("://")[2] != host.lower() for origin in origins):
        return True
    site = told.get(b"sec-fetch-site")
    if site in (None, "same-origin", "none"):
        return False
    visit = scope["method"] in ("GET", "HEAD") and told.get(b"sec-fetch-mode") == "navigate"
    return not visit or scope["path"].startswith("/api/")


# --- errors ---------------------------------------------------------------------------------------


async def _refused(request: Request, error: Refused) -> Response:
    headers = {"Retry-After": str(error.retry_s)} if error.retry_s else None
    return Answer({"error": error.message, **error.more}, error.status, headers)


async def _http_error(request: Request, error: HTTPException) -> Response:
    return Answer({"error": error.detail}, error.status_code, error.headers)


async def _fault(request: Request, error: Exception) -> Response:
    # Starlette answers with this outside of the guard.
    return Answer({"error": "a fault of the server"}, 500, HEADERS)


# --- reading requests -----------------------------------------------------------------------------


async def _body(request: Request, limit: int) -> bytearray:
    """The body of a request. Raises Refused 413 as soon as it is larger than `limit` bytes."""
    large = Refused(413, f"the request is larger than {limit:,} bytes")
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > limit:
        raise large
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                data += chunk
                if len(data) > limit:
                    raise large
    except TimeoutError:
        raise Refused(408, f"the request did not arrive within {BODY_S:g} s") from None
    except ClientDisconnect:
        raise Refused(400, "the request broke off") from None
    return data


async def _file(request: Request, limit: int) -> bytearray:
    """A body that is a file. Raises Refused 413, and 429 or 503 while too many others arrive."""
    with _house(request).uploads.work(_client(request)):
        return await _body(request, limit)


async def _json(request: Request, allowed: set[str], limit: int = MAX_BODY) -> dict[str, Any]:
    """The JSON object of a request with no other keys than `allowed`. Raises Refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # this also keeps out forms of other sites
        raise Refused(415, "the request should be application/json")
    data = await _body(request, limit)
    try:
        told = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "the request is no JSON") from None
    if not isinstance(told, dict):
        raise Refused(400, "the request should be a JSON object")
    if unknown := sorted(set(told) - allowed):
        raise Refused(422, f"{records.short(unknown[0])} is not known")
    return told


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _integer(told: dict[str, Any], key: str) -> int:
    value = told.get(key)
    if not records.is_int(value) or not 0 <= value < 10**9:  # type: ignore[operator]
        raise Refused(422, f"{key}: should be a whole number from 0")
    return int(value)  # type: ignore[arg-type]


def _query(request: Request, key: str) -> int | None:
    text = request.query_params.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(422, f"{key}: should be a whole number from 0")
    return int(text)


def _house(request: Request) -> House:
    house: House = request.app.state.house
    return house


def _token(request: Request) -> str:
    """The token that a request carries. Raises Refused."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise Refused(401, "a seat's token is needed")
    return token.strip()


def _seat(request: Request) -> tuple[Room, int]:
    """The table asked for and the seat that the request's token holds. Raises Refused."""
    house = _house(request)
    room, token = house.get(request.path_params["id"]), _token(request)
    if room.watches(token):
        raise Refused(403, "this link is for watching alone")
    changes, seat = room.changes, room.seat_of(token)
    room.saw(seat)
    if room.changes > changes:
        house.has_returned(room)
    return room, seat


def _viewer(request: Request) -> tuple[Room, int | None]:
    """The table asked for and the seat that looks on, None for those who watch. Raises Refused."""
    room = _house(request).get(request.path_params["id"])
    if room.watches(_token(request)):
        return room, None
    return _seat(request)


def _key(request: Request, told: dict[str, Any]) -> Key | None:
    """What a request that changes something is known again by. Raises Refused."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return None
    sender = request.headers.get("authorization", "")
    asked = json.dumps([request.url.path, sender, told], sort_keys=True)
    return Key(read_held(header.strip().strip('"'), "Idempotency-Key"), hash_of(asked))


def _client(request: Request) -> str:
    return client_of(request.client.host if request.client else "")


# --- answers --------------------------------------------------------------------------------------


async def info(request: Request) -> Response:
    """What the page offers: levels, decks, rule sets."""
    return Answer(
        {
            "levels": [
                {"name": one.name, "title": one.title, "about": one.about} for one in levels()
            ],
            "decks": list(cards.DECK_NAMES),
            "rules": [
                {
                    "name": rules,
                    "direction": render.DIRECTION[rules],
                    "text": wording.rules_text(rules),
                }
                for rules in RULE_SETS
            ],
            "colors": cards.COLORS,
            "letters": render.LETTERS,
            "barons": cards.BARONS,
            "max_heads": cards.MAX_HEADS,
            "max_match": MAX_MATCH,
            "max_name": MAX_NAME,
        }
    )


async def card(request: Request) -> Response:
    """A card as a picture: /card/42-210000.svg, the heads in the order of the colors."""
    number, heads = request.path_params["number"], request.path_params["heads"]
    fine = len(heads) == len(cards.COLORS) and all(digit in "01234567" for digit in heads)
    if not fine or number not in CARDS:
        raise Refused(404, "there is no such card")
    picture = render.card_svg(CARDS[number], [int(digit) for digit in heads])
    return Response(
        picture,
        media_type="image/svg+xml",
        headers={"Cache-Control": "public, max-age=86400"},
    )


async def new_table(request: Request) -> Response:
    told = await _json(request, {"rules", "deck", "games", "coach", "seats", "person"})
    key = _key(request, told)
    room, tokens = await _house(request).new(told, _client(request), key)
    seats = [{"seat": seat, "token": token} for seat, token in tokens.items()]
    invites = [
        {"seat": index, "invite": room.invitation(index)}
        for index, seat in enumerate(room.seats)
        if seat.free
    ]
    invite = invites[0]["invite"] if invites else None
    made = {"id": room.id, **seats[0], "seats": seats, "invites": invites, "invite": invite}
    return Answer({**made, "watch": room.watch}, 201)


async def join(request: Request) -> Response:
    house = _house(request)
    house.get(request.path_params["id"])
    told = await _json(request, {"invite", "name", "person", "another"})
    room, key = house.get(request.path_params["id"]), _key(request, told)
    invite, another = told.get("invite"), told.get("another", False)
    if not isinstance(invite, str):
        raise Refused(422, "invite: should be a text")
    if not isinstance(another, bool):
        raise Refused(422, "another: should be true or false")
    person = read_held(told["person"], "person") if told.get("person") is not None else ""
    seat, token = room.join(
        invite, read_name(told.get("name")), person or (key.secret if key else ""), another
    )
    await house.changed(room)
    return Answer({"id": room.id, "seat": seat, "token": token}, 201)


async def change_seat(request: Request) -> Response:
    """Give a seat to a bot (`level`), or free it (`free`), or leave one's own (`leave` besides)."""
    _seat(request)
    told = await _json(request, {"seat", "level", "free", "leave"})
    room, viewer = _seat(request)
    key, index = _key(request, told), _integer(told, "seat")
    free, leave = told.get("free", False), told.get("leave", False)
    if not isinstance(free, bool) or not isinstance(leave, bool):
        raise Refused(422, "free and leave: should be true or false")
    if free == ("level" in told):
        raise Refused(422, "either level or free should be there")
    level = "" if free else read_level(told.get("level"))
    if not room.repeated(key):
        room.check_change(viewer, index, leave)
        if free:
            room.free_seat(index)
        else:
            room.give_to_bot(index, level)
        room.note(key)
    await _house(request).changed(room)
    return Answer({"version": room.version, "watch": room.watch})


async def state(request: Request) -> Response:
    """The table as the seat sees it; with `version`, as soon as it is no longer that one."""
    room, seat = _viewer(request)
    since, version = _query(request, "since"), _query(request, "version")
    if version is not None:
        house = _house(request)
        with house.waiting.work(_client(request)):
            await house.news(room, version)
        room, seat = _viewer(request)  # the seat may have been given away meanwhile
    return Answer(room.state(seat, since))


async def move(request: Request) -> Response:
    """A decision; the answer, when it is kept, is the table as the seat sees it then."""
    _seat(request)
    since = _query(request, "since")
    told = await _json(request, {"turn", "action"})
    # Asked again: while a request arrives slowly, its room may have left memory and come back.
    room, seat = _seat(request)
    turn, action, key = _integer(told, "turn"), _integer(told, "action"), _key(request, told)
    if not room.repeated(key):
        room.move(seat, turn, action)
        room.note(key)
    await _house(request).changed(room)
    return Answer(room.state(seat, since))


async def advise(request: Request) -> Response:
    room, seat = _seat(request)
    return Answer(await _house(request).advise(room, seat, _client(request)))


async def review(request: Request) -> Response:
    room, own = _viewer(request)
    seat = _query(request, "seat")
    seat = own if seat is None else seat
    if seat is None:
        raise Refused(422, "seat: should be there")
    if not 0 <= seat < len(room.seats):
        raise Refused(422, f"seat: should be 0 to {len(room.seats) - 1}")
    if seat != own and not room.table.over:
        raise Refused(403, "others' decisions are reviewed when the match is over")
    return Answer(await _house(request).review(room, seat, _client(request)))


async def record(request: Request) -> Response:
    """The match as records, one line a game. While it runs they would show the coming deals."""
    room, _ = _viewer(request)
    if not room.table.over:
        raise Refused(409, "the match is not over; its record would show hidden cards")
    text = "".join(records.to_line(one) + "\n" for one in room.records())
    return PlainTextResponse(
        text,
        media_type="application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="oxx-{room.id}.jsonl"'},
    )


async def replay(request: Request) -> Response:
    """The games of a file of records, the file being the request's body."""
    house, client = _house(request), _client(request)
    data = await _file(request, MAX_FILE)
    with house.files.work(client):
        lines = 1 + data.count(b"\n")
        if lines > 10 * MAX_REPLAY:  # empty ones take time as well
            raise Refused(422, TOO_LONG)
        games = min(MAX_REPLAY, lines)
        house.files.pay(client, max(games, len(data) // USUAL_LINE))
        found: list[bytes] = []
        file = io.BytesIO(data.removeprefix(b"\xef\xbb\xbf"))  # a byte order mark
        del data
        for number, line in enumerate(filter(bytes.strip, file), start=1):
            if number > MAX_REPLAY:
                raise Refused(422, TOO_LONG)
            # Python parses a line in one go, and nobody else has a turn meanwhile.
            if len(line) > MAX_LINE:
                raise Refused(422, f"line {number} is longer than {MAX_LINE:,} bytes")
            found.append(await house.readers.run(client, _frames, line, number))
        if not found:
            raise Refused(422, "the file is empty; a record is one JSON object a line")
        # Put together game by game: to write all of it at once would hold up everybody.
        return Response(b'{"games":[' + b",".join(found) + b"]}", media_type="application/json")


def _frames(line: bytes, number: int) -> bytes:
    """A game of a file for the page, as JSON."""
    try:
        told = replay_frames(records.parse_record(line, f"line {number}"), number)
    except (records.RecordFileError, records.RecordError) as error:
        raise Refused(422, str(error)) from None
    return json.dumps(told, separators=(",", ":")).encode("ascii")


async def review_record(request: Request) -> Response:
    """The coach's review of one seat in a game, its record (one line) being the request's body."""
    seat = _query(request, "seat")
    if seat is None:
        raise Refused(422, "seat: should be there")
    house, client = _house(request), _client(request)
    data = await _file(request, MAX_LINE)
    with house.files.work(client):
        house.files.pay(client, 1)
    try:
        return Answer(await house.review_record(bytes(data), seat, client))
    except (records.RecordFileError, records.RecordError, coach.NoReview) as error:
        raise Refused(422, str(error)) from None


async def deck(request: Request) -> Response:
    """Check a deck, `cards` or the text of a CSV file; both and its figures come back."""
    told = await _json(request, {"cards", "csv"})
    if ("cards" in told) == ("csv" in told):
        raise Refused(422, "either cards or csv should be there")
    if "cards" in told:
        heads = read_cards(told["cards"])
    else:
        house, client = _house(request), _client(request)
        with house.files.work(client):
            house.files.pay(client, 1)
            heads = await house.readers.run(client, _read_csv, told["csv"])
    array = cards.load_deck([list(card) for card in heads])
    return Answer({"cards": heads, "csv": cards.to_csv(array), "summary": cards.describe(array)})


def _read_csv(text: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(text, str):
        raise Refused(422, "csv: should be a text")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deck.csv"
        path.write_bytes(text.encode("utf-8", "replace"))
        try:
            return tuple(map(tuple, cards.load_deck(path).tolist()))
        except cards.DeckError as error:
            told = [str(fault) for fault in error.faults[: cards.DeckError.SHOWN]]
            more = len(error.faults) - len(told)
            raise Refused(422, "; ".join(told) + (f"; and {more} more" if more else "")) from None
