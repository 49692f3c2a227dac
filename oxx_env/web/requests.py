"""Reading a request: body, JSON, query, token, and the table and seat that they belong to."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from oxx_env.notation import records
from oxx_env.web.errors import RequestError
from oxx_env.web.limits import client_of
from oxx_env.web.room import Room
from oxx_env.web.server import TableServer
from oxx_env.web.setup import read_random_text
from oxx_env.web.tokens import RequestKey, hash_of

MAX_BODY = 1 << 16  # bytes of a request that is no file
BODY_S = 30.0  # for a request to arrive


async def read_body(request: Request, limit: int = MAX_BODY) -> bytearray:
    """The body of a request. Raises RequestError 413 as soon as it exceeds `limit` bytes."""
    too_large = RequestError(413, f"the request is larger than {limit:,} bytes")
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > limit:
        raise too_large
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                data += chunk
                if len(data) > limit:
                    raise too_large
    except TimeoutError:
        raise RequestError(408, f"the request did not arrive within {BODY_S:g} s") from None
    except ClientDisconnect:
        raise RequestError(400, "the request broke off") from None
    return data


async def read_file(request: Request, limit: int) -> bytearray:
    """A body that is a file. Raises RequestError 413, and 429 or 503 while too many arrive."""
    with server_of(request).uploads.admit(client(request)):
        return await read_body(request, limit)


async def read_object(request: Request, allowed: set[str]) -> dict[str, Any]:
    """The JSON object of a request, with no keys but `allowed`. Raises RequestError."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # this also refuses forms of other sites
        raise RequestError(415, "the request should be application/json")
    body = await read_body(request)
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise RequestError(400, "the request is no JSON") from None
    if not isinstance(data, dict):
        raise RequestError(400, "the request should be a JSON object")
    if unknown := sorted(set(data) - allowed):
        raise RequestError(422, f"{records.short(unknown[0])} is not known")
    return data


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def integer(data: dict[str, Any], key: str) -> int:
    """Raises RequestError."""
    value = data.get(key)
    if not records.is_int(value) or not 0 <= value < 10**9:  # type: ignore[operator]
        raise RequestError(422, f"{key}: should be a whole number from 0")
    return int(value)  # type: ignore[arg-type]


def query(request: Request, key: str) -> int | None:
    """A number of the address. Raises RequestError."""
    text = request.query_params.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise RequestError(422, f"{key}: should be a whole number from 0")
    return int(text)


def server_of(request: Request) -> TableServer:
    server: TableServer = request.app.state.server
    return server


def client(request: Request) -> str:
    return client_of(request.client.host if request.client else "")


def room_of(request: Request) -> Room:
    """The table that the address names. Raises RequestError."""
    return server_of(request).get(request.path_params["id"])


def _token(request: Request) -> str:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise RequestError(401, "a seat's token is needed")
    return token.strip()


def seat_of(request: Request) -> tuple[Room, int]:
    """The table, and the seat that the request's token holds. Raises RequestError."""
    room, token = room_of(request), _token(request)
    if room.is_watcher(token):
        raise RequestError(403, "this link is for watching alone")
    changes, seat = room.changes, room.seat_of(token)
    room.mark_seen(seat)
    if room.changes > changes:
        server_of(request).person_returned(room)
    return room, seat


def viewer_of(request: Request) -> tuple[Room, int | None]:
    """The table, and the seat of the token, None for a watcher's. Raises RequestError."""
    room = room_of(request)
    return (room, None) if room.is_watcher(_token(request)) else seat_of(request)


def key_of(request: Request, data: dict[str, Any]) -> RequestKey | None:
    """The request's Idempotency-Key. Raises RequestError."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return None
    sender = request.headers.get("authorization", "")
    content = json.dumps([request.url.path, sender, data], sort_keys=True)
    key = read_random_text(header.strip().strip('"'), "Idempotency-Key")
    return RequestKey(key, hash_of(content))
