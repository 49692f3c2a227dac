"""Kill -9 at random moments, a full disk, a read-only folder: what is left, and does it go on?

    python -m tests.stress.kill --kills 50

**Training** (`training/train.py`, a smoke run of 20,000 decisions). Each process is killed at a
random moment after it has begun; what it left is looked at; the next process resumes. When a run
comes to its end its weights must be those of a run that was never disturbed. **Arena** (`oxx arena
--log`): the same, and the result must be the undisturbed one. Then both once more on a disk that
is full (needs the right to mount, else the limit on the size of files stands for it) and on one
that cannot be written.

Exit code 0: as it should be. 1: something was lost or left half-written.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro
from safetensors.numpy import load as load_tensors

from oxx_env.policy.checkpoint import CONFIG, load_checkpoint
from tests.stress import ROOT

TRAIN = (
    *("--preset", "smoke", "--decisions", "20000", "--final-games", "20", "--eval-games", "10"),
    *("--eval-every", "2000", "--snapshot-every", "3000"),
)
INTERVAL = 2000 + 2048  # a state is written at the first batch after `eval_every` decisions
ARENA = ("greedy", "random", "--players", "4", "--games", "20000", "--seed", "3", "--json")
BESIDE = re.compile(r"\..+\.[0-9a-f]{16}")  # what `open_atomic` writes before it is whole


@dataclass
class Table:
    """What came of the kills of one command."""

    name: str
    kills: int = 0
    resumed: int = 0  # processes that went on from what a killed one left
    finished: int = 0  # runs that came to their end
    equal: int = 0  # of them, those with the undisturbed result
    lost: list[int] = field(default_factory=list)  # decisions or blocks, by kill
    beside: int = 0  # unfinished files left beside whole ones
    faults: list[str] = field(default_factory=list)

    def row(self) -> str:
        most = max(self.lost, default=0)
        return (
            f"| {self.name} | {self.kills} | {self.resumed} | {self.finished} | {self.equal}"
            f" | {most:,} | {self.beside} | {len(self.faults)} |"
        )


# --- processes ----------------------------------------------------------------------------------


def start(command: list[str], out: Path, err: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with open(out, "wb") as stdout, open(err, "wb") as stderr:
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=stdout, stderr=stderr, start_new_session=True
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """The process and its workers."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while not ready() and process.poll() is None:
        if time.monotonic() > deadline:
            kill(process)
            raise TimeoutError("a process did not begin")
        time.sleep(0.01)


def seconds_to_end(begun: Callable[[], bool], process: subprocess.Popen[bytes], err: Path) -> float:
    """How long a process, which must end well, goes on after it has begun."""
    wait_until(begun, process)
    began = time.monotonic()
    if process.wait():
        raise RuntimeError(err.read_text())
    return time.monotonic() - began


# --- training -----------------------------------------------------------------------------------


def train_command(*options: str | Path) -> list[str]:
    return [sys.executable, "training/train.py", *map(str, options)]


def kept_decisions(folder: Path) -> int:
    """How far the run's state is. Raises for a state that is not whole."""
    path = folder / "state.npz"
    if not path.exists():
        return 0
    from oxx_env.lib.files import read_arrays

    return int(read_arrays(path)["progress"][0])


def seen_decisions(err: Path) -> int:
    """The last count that the progress bar showed, rounded down."""
    found = re.findall(rb"([\d.]+)(k?)/20\.0k", err.read_bytes())
    return int(float(found[-1][0]) * (1000 if found[-1][1] else 1)) if found else 0


def look_at_run(folder: Path) -> list[str]:
    """What is half-written in the folder of a run."""
    faults = []

    def whole(what: str, check: Callable[[], Any]) -> None:
        try:
            check()
        except Exception as error:
            faults.append(f"{what}: {type(error).__name__}: {error}")

    for name in ("config.json", "evaluation.json", "pool/manifest.json"):
        if (folder / name).exists():
            whole(name, lambda name=name: json.loads((folder / name).read_text()))  # type: ignore[misc]
    whole("state.npz", lambda: kept_decisions(folder))
    for path in (folder / "pool").glob("snapshot-*"):
        whole(path.name, lambda path=path: load_tensors(path.read_bytes()))  # type: ignore[misc]
    if (folder / "pool" / "manifest.json").exists():
        for entry in json.loads((folder / "pool" / "manifest.json").read_text())["opponents"]:
            if "file" in entry:
                data = (folder / "pool" / entry["file"]).read_bytes()
                if hashlib.sha256(data).hexdigest() != entry["sha256"]:
                    faults.append(f"{entry['file']} is not what the manifest says")
    if (folder / "checkpoint" / CONFIG).exists():  # it is written last
        whole("checkpoint", lambda: load_checkpoint(folder / "checkpoint"))
    if (folder / "tensorboard").exists():
        whole("tensorboard", lambda: read_events(folder / "tensorboard"))
    return faults


def read_events(folder: Path) -> int:
    """How many events TensorBoard reads there."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return sum(len(events.Scalars(tag)) for tag in events.Tags()["scalars"])


def unfinished(folder: Path) -> int:
    return sum(bool(BESIDE.fullmatch(path.name)) for path in folder.rglob("*"))


def weights_of(folder: Path) -> str:
    return hashlib.sha256(load_checkpoint(folder / "checkpoint")[0].tobytes()).hexdigest()


@dataclass(frozen=True)
class Command:
    """What is killed: how a run of it begins, goes on, and ends.

    begin    the command of a run that is kept in a folder or file; it also goes on with one
    begun    is the process at work? (the time to compile and import is left out)
    kept     decisions or blocks that the run has kept; raises if that is not whole
    seen     decisions that the process has shown; the arena shows none
    look     faults in what a killed process left
    result   of a run that has ended
    """

    name: str
    begin: Callable[[Path], list[str]]
    begun: Callable[[Path], bool]
    kept: Callable[[Path], int]
    seen: Callable[[], int]
    look: Callable[[Path], list[str]]
    result: Callable[[Path], Any]


def training(work: Path) -> Command:
    err = work / "err"

    def begin(run: Path) -> list[str]:
        goes_on = (run / "config.json").exists()
        options = ("--resume", run) if goes_on else ("--run-dir", run, *TRAIN)
        return train_command("--workers", 1, *options)

    return Command(
        "training", begin, lambda _: b"run folder" in err.read_bytes(), kept_decisions,
        lambda: seen_decisions(err), look_at_run, weights_of,
    )  # fmt: skip


def arena(work: Path, workers: int) -> Command:
    return Command(
        f"arena, {workers} worker{'s' if workers > 1 else ''}",
        lambda log: arena_command("--workers", workers, "--log", log), Path.exists,
        lambda log: look_at_log(log)[0], lambda: 0, lambda log: look_at_log(log)[1],
        lambda _: result_of(work / "out"),
    )  # fmt: skip


def kill_often(command: Command, work: Path, kills: int, rng: random.Random) -> Table:
    """Kill runs of a command at random moments, and let each go on until it has ended."""
    table = Table(command.name)
    out, err = work / "out", work / "err"
    for name in ("warm", "undisturbed"):  # the first may compile: it is no measure of time
        run = work / f"{command.name}-{name}"
        process = start(command.begin(run), out, err)
        lasts = seconds_to_end(lambda run=run: command.begun(run), process, err)  # type: ignore[misc]
    expected = command.result(run)
    number, resumes = 0, False
    while table.kills < kills or resumes:
        run = work / f"{command.name}-{number}"
        before = command.kept(run) if resumes else 0
        process = start(command.begin(run), out, err)
        wait_until(lambda run=run: command.begun(run), process)  # type: ignore[misc]
        table.resumed += resumes
        try:  # the last run goes to its end
            process.wait(rng.uniform(0, 0.6 * lasts) if table.kills < kills else None)
        except subprocess.TimeoutExpired:
            kill(process)
            kept = command.kept(run)
            table.kills += 1
            table.lost.append(max(0, command.seen() - kept, before - kept))
            table.beside += unfinished(run)
            table.faults += command.look(run)
            if kept < before:
                table.faults.append(f"went back from {before} to {kept}")
            if table.lost[-1] > INTERVAL:
                table.faults.append(f"lost {table.lost[-1]} decisions")
            print(f"{command.name}, kill {table.kills}: {kept:,} kept", file=sys.stderr)
            resumes = run.exists()
            continue
        if process.returncode:
            table.faults.append(f"exit {process.returncode}: {err.read_text()[-500:]}")
        table.finished += 1
        table.equal += process.returncode == 0 and command.result(run) == expected
        number, resumes = number + 1, False
    return table


# --- arena --------------------------------------------------------------------------------------


def arena_command(*options: str | Path) -> list[str]:
    return [sys.executable, "-m", "oxx_env", "arena", *ARENA, *map(str, options)]


def look_at_log(path: Path) -> tuple[int, list[str]]:
    """Blocks in a log, and what is not whole."""
    data = path.read_bytes() if path.exists() else b""
    faults = [] if not data or data.endswith(b"\n") else ["a line is cut off"]
    blocks = -1
    for line in data.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            faults.append(f"no JSON: {line[:80]!r}")
            continue
        if blocks >= 0 and told["block"] != blocks:
            faults.append(f"block {told['block']} instead of {blocks}")
        blocks += 1
    return max(blocks, 0), faults


def result_of(out: Path) -> dict[str, Any]:
    told = json.loads(out.read_text())
    del told["timing"]
    return dict(told)


# --- a disk that is full or cannot be written ---------------------------------------------------


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A file system of its own; what it gives changes its options. Raises OSError without the
    right to mount."""
    place.mkdir()

    def mount(*arguments: str) -> None:
        done = subprocess.run(["mount", *arguments, str(place)], capture_output=True, text=True)
        if done.returncode:
            raise OSError(done.stderr.strip())

    mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs")
    try:
        yield lambda options: mount("-o", f"remount,{options}")
    finally:
        subprocess.run(["umount", str(place)], check=True)


@dataclass(frozen=True)
class Refusal:
    """How a command took it that it could not write."""

    name: str
    code: int
    message: str  # its last line
    faults: list[str]

    def row(self) -> str:
        told = self.message.replace("|", "/")
        return f"| {self.name} | {self.code} | {told} | {len(self.faults)} |"


def refused(name: str, command: list[str], work: Path, look: Callable[[], list[str]]) -> Refusal:
    """Run a command that should fail with one message, and see what it leaves."""
    out, err = work / "out", work / "err"
    code = start(command, out, err).wait()
    told = err.read_text(errors="replace").replace("\r", "\n")
    faults = look()
    if code != 2:
        faults.append(f"exit {code}: {told[-300:]}")
    if "Traceback" in told:
        faults.append(f"a traceback: {told[-2000:]}")
    lines = [line for line in told.splitlines() if re.match(r"(train\.py|oxx): ", line)]
    if len(lines) != 1 or not re.search("No space|[Rr]ead-only", lines[0]):
        faults.append(f"messages: {lines}")
    message = re.sub(r"/\S*/(?=\w)", "", lines[-1]) if lines else ""
    return Refusal(name, code, message, faults)


def no_room(work: Path) -> list[Refusal]:
    """Training and arena on a full and on a read-only disk."""
    found = []
    run, log = work / "disk" / "run", work / "disk" / "arena.log"
    with small_disk(work / "disk", "450k") as remount:

        def look() -> list[str]:
            return look_at_run(run) + ([] if kept_decisions(run) else ["no state is left"])

        command = train_command("--workers", 1, "--run-dir", run, *TRAIN)
        found.append(refused("training, full disk", command, work, look))
        state = (run / "state.npz").read_bytes()
        resume = train_command("--workers", 1, "--resume", run)
        found.append(refused("training resumed, full disk", resume, work, look))
        remount("size=100m,ro")

        def unchanged() -> list[str]:
            same = (run / "state.npz").read_bytes() == state
            return look() + ([] if same else ["the state has changed"])

        found.append(refused("training resumed, read-only", resume, work, unchanged))
        new = train_command(*TRAIN, "--run-dir", work / "disk" / "new")
        found.append(refused("new run, read-only", new, work, list))
        remount("size=100m,rw")
        code = start(resume, work / "out", work / "err").wait()
        equal = code == 0 and weights_of(run) == weights_of(work / "training-undisturbed")
        found.append(
            Refusal(
                "training resumed, room again",
                code,
                "ends with the undisturbed weights" if equal else "",
                [] if equal else ["other weights"],
            )
        )
    with small_disk(work / "disk2", "16k") as remount:
        log = work / "disk2" / "arena.log"
        command = arena_command("--log", log)
        found.append(refused("arena, full disk", command, work, list))
        remount("size=10m,ro")
        found.append(refused("arena, read-only", command, work, list))
        remount("size=10m,rw")
        code = start(command, work / "out", work / "err").wait()
        blocks, faults = look_at_log(log)
        if code or blocks != 5000:
            faults.append(f"exit {code}, {blocks} blocks")
        found.append(Refusal("arena, room again", code, f"{blocks:,} blocks", faults))
    return found


# --- the command --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Options:
    """Kill training and arena, and take their disk away."""

    kills: int = 50
    """Of the training; of the arena half with one worker, half with two."""
    seed: int = 0
    """Of the moments."""
    skip_disk: bool = False
    """Leave out the full and the read-only disk (they need the right to mount)."""


def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    rng = random.Random(options.seed)
    print("| command | kills | resumed | finished | as undisturbed | most lost | beside | faults |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="oxx-kill-") as name:
        work = Path(name)
        half = max(1, options.kills // 2)
        tables = []
        for command, kills in (
            (training(work), options.kills),
            (arena(work, 1), half),
            (arena(work, 2), half),
        ):
            tables.append(kill_often(command, work, kills, rng))
            print(tables[-1].row(), flush=True)  # each as soon as it is known
        refusals = [] if options.skip_disk else no_room(work)
    print("\n| disk | exit | message | faults |\n|---|---|---|---|")
    for refusal in refusals:
        print(refusal.row())
    faults = [fault for part in (*tables, *refusals) for fault in part.faults]
    faults += [f"{t.name}: another result" for t in tables if t.equal != t.finished]
    print("".join(f"\nFAULT {fault}" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
