"""How long a move takes at `oxx serve` while many tables are played at once, on loopback.

python benchmarks/web_load.py [--tables 200] [--players 4] [--level champion] [--think 5.0]

Starts a server of its own in a temporary folder. At each table one person plays a whole game
against bots, thinking for a random time around `--think` seconds (0: everybody at full speed, which
measures throughput). Two times are taken for each move: until the server has answered it, the move
being kept on the disk (`move`), and until the person may decide again, the bots' answers included
(`again`). Every record is replayed in the end. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
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

    def __init__(self, port: int) -> None:
        self.port = port
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, path: str, token: str = "", body: Any = None) -> dict[str, Any]:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
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
        told: dict[str, Any] = json.loads(await self.reader.readexactly(int(length[1])))
        status = int(answer.split()[1])
        if status >= 300:
            raise RuntimeError(f"{path}: {status} {told}")
        return told

    async def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            await self.writer.wait_closed()


async def play(
    port: int, arguments: argparse.Namespace, number: int, times: dict[str, Any]
) -> None:
    """One table from its making to its end."""
    chance = random.Random(number)
    person = Connection(port)
    bots = [{"kind": "bot", "level": arguments.level}] * (arguments.players - 1)
    made = await person.ask("/api/tables", body={"seats": [{"kind": "human"}, *bots]})
    url, token = f"/api/tables/{made['id']}", made["token"]
    state = await person.ask(url, token)
    told = len(state["events"])
    await asyncio.sleep(chance.uniform(0, arguments.think))
    moved: float | None = None
    while not state["over"]:
        if state["legal"]:
            if moved is not None:
                times["again"].append(time.perf_counter() - moved)
            await asyncio.sleep(arguments.think * chance.uniform(0.5, 1.5))
            moved = time.perf_counter()
            body = {"turn": state["turn"], "action": chance.choice(state["legal"])}
            state = await person.ask(f"{url}/moves?since={told}", token, body)
            times["move"].append(time.perf_counter() - moved)
        else:
            query = f"version={state['version']}&since={told}"
            state = await person.ask(f"{url}?{query}", token)
        told = state["events_from"] + len(state["events"])
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
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "oxx_env", "serve", "--port", "0", "--folder", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                found = re.search(r":(\d+)/", server.stdout.readline())
                assert found, "the server did not start"
                result = asyncio.run(load(int(found[1]), arguments))
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
