"""The addresses of the server and their answers.

A secret token holds a seat; it is sent as `Authorization: Bearer TOKEN`, and the page keeps it in
the part of its address that browsers do not send. The watchers' token only reads, and shows no
hand. A request that changes something (a table, a seat, a move) may carry an `Idempotency-Key`, 16
to 64 random letters and digits: sent twice, also across a restart, it counts once and gets the same
answer. A browser that sends `person`, such a secret of its own, has one seat at a table, unless
`another` is true.

Errors are `{"error": sentence}` with a status: 400 no JSON, 401 no token, 403 a wrong token, or a
page of another site, 404 no such table, 408 a request that did not arrive in time, 409 not now (a
move made before, not your turn, a taken seat, a used invitation), 410 a seat that was given away
(`watch` is the watchers' token), 413 too large, 415 not JSON, 421 not a name of this server, 422 a
wrong value (also an illegal action, or a name that looks like another one), 429 too many requests
of this client, 503 of all clients: `Retry-After` gives the seconds to wait. `connections` answers
what is not yet a request (408, 429, 431).
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from oxx_env.bots.advice import ERRORS
from oxx_env.game import cards
from oxx_env.game.rules import RULE_SETS
from oxx_env.game.scoring import direction
from oxx_env.notation import records, wording
from oxx_env.show import render
from oxx_env.web import coach, requests
from oxx_env.web.errors import RequestError
from oxx_env.web.guard import HEADERS, AsciiJSON, Guard
from oxx_env.web.levels import levels
from oxx_env.web.names import MAX_NAME
from oxx_env.web.page import replay_game, table_state
from oxx_env.web.server import TableServer
from oxx_env.web.setup import (
    MAX_GAMES,
    Heads,
    heads_of,
    read_cards,
    read_flag,
    read_level,
    read_name,
    read_person,
)
from oxx_env.web.storage import MAX_BYTES

STATIC = Path(__file__).parent / "static"
MAX_FILE = 8 << 20  # bytes of a file of records
MAX_LINE = 1 << 16  # bytes of a record
USUAL_LINE = 12_000  # bytes of a record that are charged as one game
MAX_REPLAY = 200  # games of one file
TOO_LONG = f"a file of more than {MAX_REPLAY} games is too long for this page"
CARDS = {str(number): number for number in range(1, cards.NUMBERS + 1)}


def make_app(
    folder: Path,
    seed: int | None = None,
    host: str = "127.0.0.1",
    warm: bool = False,
    name: str = "",
    max_bytes: int = MAX_BYTES,
) -> Starlette:
    """The server as an ASGI application.

    folder     where tables and games are kept
    seed       all deals follow from it, for tests; None: they are secret
    host       the address that it listens on; the host names that it answers to depend on it
    warm       compile before the first request is answered
    name       the name of a reverse proxy in front of it, if there is one
    max_bytes  of all files in the folder
    """
    server = TableServer(folder, seed, max_bytes)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.loop = asyncio.get_running_loop()
        if warm:
            await asyncio.to_thread(server.warm_up)
        yield
        await server.close()

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
            RequestError: _request_error,  # type: ignore[dict-item]
            HTTPException: _http_error,  # type: ignore[dict-item]
            Exception: _server_error,
        },
        lifespan=lifespan,
    )
    app.state.server = server
    return app


# --- errors ---------------------------------------------------------------------------------------


async def _request_error(request: Request, error: RequestError) -> Response:
    headers = {"Retry-After": str(error.retry_s)} if error.retry_s else None
    return AsciiJSON({"error": error.message, **error.more}, error.status, headers)


async def _http_error(request: Request, error: HTTPException) -> Response:
    return AsciiJSON({"error": error.detail}, error.status_code, error.headers)


async def _server_error(request: Request, error: Exception) -> Response:
    # Starlette sends this outside of the guard, hence the headers.
    return AsciiJSON({"error": "an error in the server"}, 500, HEADERS)


# --- tables ---------------------------------------------------------------------------------------


async def new_table(request: Request) -> Response:
    data = await requests.read_object(
        request, {"rules", "deck", "games", "coach", "seats", "person"}
    )
    server, key = requests.server_of(request), requests.key_of(request, data)
    room, tokens = await server.new(data, requests.client(request), key)
    seats = [{"seat": seat, "token": token} for seat, token in tokens.items()]
    free = [index for index, seat in enumerate(room.seats) if seat.free]
    invites = [{"seat": index, "invite": room.invitation(index)} for index in free]
    invite = invites[0]["invite"] if invites else None
    made = {"id": room.id, **seats[0], "seats": seats, "invites": invites, "invite": invite}
    return AsciiJSON({**made, "watch": room.watch}, 201)


async def join(request: Request) -> Response:
    requests.room_of(request)  # a wrong address is refused before the body is read
    data = await requests.read_object(request, {"invite", "name", "person", "another"})
    room, key = requests.room_of(request), requests.key_of(request, data)
    invite, another = data.get("invite"), read_flag(data, "another")
    if not isinstance(invite, str):
        raise RequestError(422, "invite: should be a text")
    person = read_person(data) or (key.secret if key else "")
    seat, token = room.join(invite, read_name(data.get("name")), person, another)
    await requests.server_of(request).changed(room)
    return AsciiJSON({"id": room.id, "seat": seat, "token": token}, 201)


async def change_seat(request: Request) -> Response:
    """Give a seat to a bot (`level`) or free it (`free`); one's own seat with `leave` besides."""
    requests.seat_of(request)
    data = await requests.read_object(request, {"seat", "level", "free", "leave"})
    room, asker = requests.seat_of(request)
    key, index = requests.key_of(request, data), requests.integer(data, "seat")
    free, leave = read_flag(data, "free"), read_flag(data, "leave")
    if free == ("level" in data):
        raise RequestError(422, "either level or free should be there")
    level = "" if free else read_level(data.get("level"))
    if not room.is_repeated(key):
        room.check_change(asker, index, leave)
        if free:
            room.free_seat(index)
        else:
            room.give_to_bot(index, level)
        room.remember(key)
    await requests.server_of(request).changed(room)
    return AsciiJSON({"version": room.version, "watch": room.watch})


async def state(request: Request) -> Response:
    """The table as the seat sees it; with `version`, as soon as the table's version differs."""
    room, seat = requests.viewer_of(request)
    since, version = requests.query(request, "since"), requests.query(request, "version")
    if version is not None:
        await requests.server_of(request).news(room, version)
        room, seat = requests.viewer_of(request)  # the seat may have been given away meanwhile
    return AsciiJSON(table_state(room, seat, since))


async def move(request: Request) -> Response:
    """A decision. The answer is the table as the seat sees it when the decision is saved."""
    requests.seat_of(request)
    since = requests.query(request, "since")
    data = await requests.read_object(request, {"turn", "action"})
    # Looked up again: during a slow request, the room may have left memory and come back.
    room, seat = requests.seat_of(request)
    turn, action = requests.integer(data, "turn"), requests.integer(data, "action")
    key = requests.key_of(request, data)
    if not room.is_repeated(key):
        room.move(seat, turn, action)
        room.remember(key)
    await requests.server_of(request).changed(room)
    return AsciiJSON(table_state(room, seat, since))


async def advise(request: Request) -> Response:
    room, seat = requests.seat_of(request)
    server = requests.server_of(request)
    return AsciiJSON(await server.advise(room, seat, requests.client(request)))


async def review(request: Request) -> Response:
    room, own = requests.viewer_of(request)
    seat = requests.query(request, "seat")
    seat = own if seat is None else seat
    if seat is None:
        raise RequestError(422, "seat: should be there")
    if not 0 <= seat < len(room.seats):
        raise RequestError(422, f"seat: should be 0 to {len(room.seats) - 1}")
    if seat != own and not room.table.over:
        raise RequestError(403, "others' decisions can be reviewed when the match is over")
    server = requests.server_of(request)
    return AsciiJSON(await server.review(room, seat, requests.client(request)))


async def record(request: Request) -> Response:
    """The match as records, one line a game; not before its end, since they show all cards."""
    room, _ = requests.viewer_of(request)
    if not room.table.over:
        raise RequestError(409, "the match is not over; its record would show hidden cards")
    return PlainTextResponse(
        "".join(records.to_line(one) + "\n" for one in room.records()),
        media_type="application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="oxx-{room.id}.jsonl"'},
    )


# --- what belongs to no table ---------------------------------------------------------------------


async def info(request: Request) -> Response:
    """What the page needs to know: levels, decks, rule sets, colors, limits."""
    return AsciiJSON(
        {
            "levels": [
                {"name": one.name, "title": one.title, "about": one.about} for one in levels()
            ],
            "decks": list(cards.DECK_NAMES),
            "rules": [
                {
                    "name": rules,
                    "direction": direction(rules),
                    "text": wording.rules_text(rules),
                    "full_row": None if rules.startswith("color") else wording.FULL_ROW,
                }
                for rules in RULE_SETS
            ],
            "colors": cards.COLORS,
            "letters": cards.LETTERS,
            "cards": cards.NUMBERS,
            "barons": cards.BARONS,
            "max_heads": cards.MAX_HEADS,
            "max_match": MAX_GAMES,
            "max_name": MAX_NAME,
            "max_file": MAX_FILE,
            "errors": ERRORS,
        }
    )


async def card(request: Request) -> Response:
    """A card as a picture: /card/42-210000.svg, its heads in the order of the colors."""
    number, heads = request.path_params["number"], request.path_params["heads"]
    fine = len(heads) == len(cards.COLORS) and all(digit in "01234567" for digit in heads)
    if not fine or number not in CARDS:
        raise RequestError(404, "there is no such card")
    return Response(
        render.card_svg(CARDS[number], [int(digit) for digit in heads]),
        media_type="image/svg+xml",
        headers={"Cache-Control": "public, max-age=86400"},
    )


async def replay(request: Request) -> Response:
    """The games of a file of records for the replay page; the body is the file."""
    server, client = requests.server_of(request), requests.client(request)
    data = await requests.read_file(request, MAX_FILE)
    with server.files.admit(client):
        lines = 1 + data.count(b"\n")
        if lines > 10 * MAX_REPLAY:  # empty lines take time as well
            raise RequestError(422, TOO_LONG)
        games = min(MAX_REPLAY, lines)
        server.files.charge(client, max(games, len(data) // USUAL_LINE))
        parts: list[bytes] = []
        file = io.BytesIO(data.removeprefix(b"\xef\xbb\xbf"))  # a byte order mark
        del data
        for number, line in enumerate(filter(bytes.strip, file), start=1):
            if number > MAX_REPLAY:
                raise RequestError(422, TOO_LONG)
            # Python parses a line without a pause, during which nothing else runs.
            if len(line) > MAX_LINE:
                raise RequestError(422, f"line {number} is longer than {MAX_LINE:,} bytes")
            parts.append(await server.readers.run(client, _replay_json, line, number))
        if not parts:
            raise RequestError(422, "the file is empty; a record is one JSON object a line")
        # Written game by game, since writing all at once would hold up other requests.
        return Response(b'{"games":[' + b",".join(parts) + b"]}", media_type="application/json")


def _replay_json(line: bytes, number: int) -> bytes:
    try:
        game = replay_game(records.parse_record(line, f"line {number}"), number)
    except (records.RecordFileError, records.RecordError) as error:
        raise RequestError(422, str(error)) from None
    return json.dumps(game, separators=(",", ":")).encode("ascii")


async def review_record(request: Request) -> Response:
    """The coach's review of one seat in a game; the body is the game's record."""
    seat = requests.query(request, "seat")
    if seat is None:
        raise RequestError(422, "seat: should be there")
    server, client = requests.server_of(request), requests.client(request)
    data = await requests.read_file(request, MAX_LINE)
    with server.files.admit(client):
        server.files.charge(client, 1)
    try:
        return AsciiJSON(await server.review_record(bytes(data), seat, client))
    except (records.RecordFileError, records.RecordError, coach.NoReview) as error:
        raise RequestError(422, str(error)) from None


async def deck(request: Request) -> Response:
    """Check a deck, `cards` or the text of a CSV file; returns both, and the deck's figures."""
    data = await requests.read_object(request, {"cards", "csv"})
    if ("cards" in data) == ("csv" in data):
        raise RequestError(422, "either cards or csv should be there")
    if "cards" in data:
        heads = read_cards(data["cards"])
    else:
        server, client = requests.server_of(request), requests.client(request)
        with server.files.admit(client):
            server.files.charge(client, 1)
            heads = await server.readers.run(client, _read_csv, data["csv"])
    array = cards.load_deck([list(card) for card in heads])
    return AsciiJSON({"cards": heads, "csv": cards.to_csv(array), "summary": cards.describe(array)})


def _read_csv(text: Any) -> Heads:
    if not isinstance(text, str):
        raise RequestError(422, "csv: should be a text")
    try:
        return heads_of(cards.parse_deck(text.encode("utf-8", "replace"), "the deck"))
    except cards.DeckError as error:
        raise RequestError(422, str(error)) from None
