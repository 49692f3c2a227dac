"""How long a move takes at `oxx serve` while many tables are played at once, on loopback.

python benchmarks/web_load.py [--tables 200] [--players 4] [--level champion] [--think 5.0]
python benchmarks/web_load.py --attacks heads bots uploads [--seconds 20]

Starts a server of its own in a temporary folder. At each table one person plays a whole game
against bots, thinking for a random time around `--think` seconds (0: everybody at full speed, which
measures throughput). Two times are taken for each move: until the server has answered it, the move
being kept on the disk (`move`), and until the person may decide again, the bots' answers included
(`again`). Every record is replayed in the end. Prints one JSON object.

With `--attacks` one person plays a two-player table against a bot from 127.0.0.1, first in peace,
then during each attack, which comes from 127.0.0.2 (so on Linux alone), from a process of its own:

heads    connections that send headers, a value, an address, requests without end, or nothing
bots     120 tables of nine searching bots each, whose people play at full speed
uploads  files to `/api/replay` that are long, deep, of empty lists, or many games

The rise of the server's memory is that of its greatest during the attack over what it was in peace.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from oxx_env import records


class Connection:
    """One kept-alive HTTP connection: enough of the protocol for a server of our own."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.port, self.source = port, source
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, path: str, token: str = "", body: Any = None) -> dict[str, Any]:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port, local_addr=(self.source, 0)
            )
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        if token:
            head += f"Authorization: Bearer {token}\r\n"
        self.writer.write(head.encode() + b"\r\n" + data)
        await self.writer.drain()
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", answer, re.I)
        assert length, answer
        answer: dict[str, Any] = json.loads(await self.reader.readexactly(int(length[1])))
        status = int(answer.split()[1])
        if status >= 300:
            raise RuntimeError(f"{path}: {status} {answer}")
        return answer

    async def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            await self.writer.wait_closed()


async def play(
    port: int,
    arguments: argparse.Namespace,
    number: int,
    times: dict[str, Any],
    source: str = "127.0.0.1",
) -> None:
    """One table from its making to its end."""
    chance = random.Random(number)
    person = Connection(port, source)
    bots = [{"kind": "bot", "level": arguments.level}] * (arguments.players - 1)
    made = await person.ask("/api/tables", body={"seats": [{"kind": "human"}, *bots]})
    url, token = f"/api/tables/{made['id']}", made["token"]
    state = await person.ask(url, token)
    seen = len(state["events"])
    await asyncio.sleep(chance.uniform(0, arguments.think))
    moved: float | None = None
    while not state["over"]:
        if state["legal"]:
            if moved is not None:
                times["again"].append(time.perf_counter() - moved)
            await asyncio.sleep(arguments.think * chance.uniform(0.5, 1.5))
            moved = time.perf_counter()
            body = {"turn": state["turn"], "action": chance.choice(state["legal"])}
            state = await person.ask(f"{url}/moves?since={seen}", token, body)
            times["move"].append(time.perf_counter() - moved)
        else:
            query = f"version={state['version']}&since={seen}"
            state = await person.ask(f"{url}?{query}", token)
        seen = state["events_from"] + len(state["events"])
    await person.close()


async def load(port: int, arguments: argparse.Namespace) -> dict[str, Any]:
    times: dict[str, Any] = {"move": [], "again": []}
    start = time.perf_counter()
    async with asyncio.timeout(arguments.limit):
        await asyncio.gather(*(play(port, arguments, n, times) for n in range(arguments.tables)))
    seconds = time.perf_counter() - start
    milliseconds = {key: 1000 * np.array(value) for key, value in times.items()}
    return {
        "tables": arguments.tables,
        "players": arguments.players,
        "level": arguments.level,
        "think_s": arguments.think,
        "cores": os.cpu_count(),
        "seconds": round(seconds, 1),
        "moves": len(times["move"]),
        "moves_per_s": round(len(times["move"]) / seconds, 1),
        **{
            f"{key}_ms": {f"p{p}": round(float(np.percentile(ms, p)), 1) for p in (50, 95, 99)}
            for key, ms in milliseconds.items()
        },
    }


# --- attacks --------------------------------------------------------------------------------------

ATTACKER = "127.0.0.2"
HEAD = b"GET /api/info HTTP/1.1\r\nHost: localhost\r\n"
ENDLESS = (  # how a connection begins, and what it goes on with
    (HEAD, b"a:b\r\n" * 10_000),
    (HEAD + b"X: ", b"x" * 65_536),
    (b"GET /", b"x" * 65_536),
    (b"", b"\r\n" * 10_000),
    (b"", (HEAD + b"\r\n") * 1_000),
    (HEAD + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65_536),
    (b"POST /api/replay HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
     b"a:b\r\n" * 10_000),
    (HEAD, b""),
)  # fmt: skip
UPLOADS = (
    b"[" + b"[]," * 349_000 + b"[]]",
    (b"[" + b"[]," * 21_000 + b"[]]\n") * 15,
    b"[" * 60_000,
    b'{"format": "oxx-game/1", "rounds": [' + b"[1]," * 15_000 + b"[1]]}",
    b"\n" * 1_000_000,
)


async def attack(kind: str, port: int, seconds: float) -> None:
    """One attack, for so many seconds; prints what it sent."""
    done = {"connections": 0, "bytes": 0}

    async def send(begin: bytes, piece: bytes) -> None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(ATTACKER, 0)
            )
            done["connections"] += 1
            try:
                writer.write(begin)
                for _ in range(2_000):
                    done["bytes"] += len(piece)
                    writer.write(piece)
                    async with asyncio.timeout(2):
                        await writer.drain()
                    if reader.at_eof():
                        break
                    await asyncio.sleep(0 if piece else 0.1)
            except TimeoutError:
                pass
            finally:
                writer.transport.abort()

    async def again_and_again(sent: tuple[tuple[bytes, bytes], ...], start: int) -> None:
        for begin, piece in itertools.islice(itertools.cycle(sent), start, None):
            await send(begin, piece)

    if kind == "heads":
        work = [again_and_again(ENDLESS, number) for number in range(2 * len(ENDLESS))]
    elif kind == "uploads":
        post = "POST /api/replay HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        sent = tuple(
            (f"{post}Content-Length: {len(body)}\r\n\r\n".encode() + body, b"") for body in UPLOADS
        )
        work = [again_and_again(sent, number) for number in range(8)]
    else:
        arguments = argparse.Namespace(players=10, level="search", think=0.0)
        times: dict[str, Any] = {"move": [], "again": []}
        work = [play(port, arguments, number, times, ATTACKER) for number in range(120)]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*work)
    done["tables"] = 120 if kind == "bots" else 0
    print(json.dumps(done))


async def besieged(port: int, pid: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """The times of one table and the server's memory, in peace and during each attack."""
    found: dict[str, Any] = {"cores": os.cpu_count(), "seconds": arguments.seconds}
    one = argparse.Namespace(players=2, level=arguments.level, think=0.05)
    peace_mb = 0.0
    for kind in ("peace", *arguments.attacks):
        attacker = None
        if kind != "peace":
            command = [sys.executable, __file__, "--attacker", kind, "--port", str(port)]
            command += ["--seconds", str(arguments.seconds)]
            attacker = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
            await asyncio.sleep(3)  # it starts, and its tables are made
        times: dict[str, Any] = {"move": [], "again": []}
        memory: list[float] = []
        watching = asyncio.create_task(watch(pid, memory))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(arguments.seconds - 4 if attacker else 10):
                for number in itertools.count():
                    await play(port, one, number, times)
        watching.cancel()
        greatest = max(memory)
        peace_mb = peace_mb or greatest
        found[kind] = {
            "moves": len(times["move"]),
            **{
                f"{key}_ms": {
                    "median": round(1000 * float(np.median(value)), 1),
                    "worst": round(1000 * max(value), 1),
                }
                for key, value in times.items()
                if value
            },
            "rise_mb": round(greatest - peace_mb, 1),
        }
        if attacker is not None:
            sent, _ = await attacker.communicate()
            found[kind] |= json.loads(sent)
    return found


async def watch(process: int, memory: list[float]) -> None:
    while True:
        memory.append(memory_mb(process))
        await asyncio.sleep(0.05)


def memory_mb(process: int) -> float:
    """The memory that a process has now, in MB (Linux)."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


# --------------------------------------------------------------------------------------------------


def cpu_ms(process: int, moves: int) -> float | None:
    """Processor time of a process for each move, start included; None where Linux is not."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    ticks = int(fields[11]) + int(fields[12])  # in user code and in the system
    return round(1000 * ticks / os.sysconf("SC_CLK_TCK") / moves, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--players", type=int, default=4)
    parser.add_argument("--level", default="champion")
    parser.add_argument("--think", type=float, default=5.0, help="seconds, on average")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for the whole run")
    parser.add_argument("--attacks", nargs="*", default=[], choices=["heads", "bots", "uploads"])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each attack")
    parser.add_argument("--attacker", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.attacker:
        asyncio.run(attack(arguments.attacker, arguments.port, arguments.seconds))
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "oxx_env", "serve", "--port", "0", "--folder", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                found = re.search(r":(\d+)/", server.stdout.readline())
                assert found, "the server did not start"
                port = int(found[1])
                if arguments.attacks:
                    print(json.dumps(asyncio.run(besieged(port, server.pid, arguments))))
                    return
                result = asyncio.run(load(port, arguments))
                result["server_cpu_ms_per_move"] = cpu_ms(server.pid, result["moves"])
            finally:
                server.terminate()
        games = list(Path(folder, "games").glob("*.jsonl"))
        for game in games:
            for record in records.read_records(game):
                records.replay(record)
        result["valid_records"] = len(games)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
