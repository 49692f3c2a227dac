"""Jobs in this process or in several: results in order, a clean stop, no process left behind.

    with Jobs(functools.partial(Player, setup), workers=4) as jobs:
        for result in jobs.run(range(1000)):
            ...

`make()` gives each process a worker, a callable that takes a job and returns its result. A result
must follow from its job alone: then the number of processes changes nothing. Whatever runs jobs
elsewhere needs no more than `run` and this context manager.

- Results come in the order of the jobs. What had come when an error or Ctrl-C ends the loop is
  there; leaving the context ends the processes, also in the middle of a job.
- A worker's exception is raised here. A process that ends by itself is a ChildProcessError.
- Ctrl-C reaches this process alone, also while the others start. Where this process is killed, the
  others leave as soon as their job is done.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, TypeVar

Worker = TypeVar("Worker", bound=Callable[[Any], Any])

_PART_SECONDS = 0.25  # of work that a process gets at a time
_PART_JOBS = 64  # at most
_PARTS = 3  # for each process, given out ahead
# Processes beside each other: more threads than one each would only wait for each other, and sums
# in another order have other last digits.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


@dataclass
class _Process:
    """A process that works, our end of the pipe to it, and the numbers of its parts."""

    process: SpawnProcess
    pipe: Connection
    parts: deque[int] = field(default_factory=deque)


class Jobs(Generic[Worker]):
    """Does jobs by `make()`, in this process (`workers` 1) or in so many others.

    make     picklable where there are several; also called here, so that its mistakes show at once
    workers  processes, 1 or more
    """

    def __init__(self, make: Callable[[], Worker], workers: int = 1) -> None:
        self.make, self.workers = make, workers
        self.worker = make()
        self._processes: list[_Process] = []
        self._job_seconds = _PART_SECONDS  # at first, parts of one job

    def __enter__(self) -> Jobs[Worker]:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._processes:
            return
        # A second Ctrl-C does not leave some of them running.
        with _interrupt_held() if kind is not None else nullcontext():
            for one in self._processes:
                if kind is not None:
                    one.process.kill()
                one.pipe.close()
            for one in self._processes:
                one.process.join()

    def run(self, jobs: Iterable[Any]) -> Iterator[Any]:
        """The results of jobs, which are taken from `jobs` as they are given out."""
        left = iter(jobs)
        if self.workers == 1:
            yield from map(self.worker, left)
            return
        if not self._processes:  # one process compiles what is not compiled yet, not all at once
            yield from map(self.worker, islice(left, 1))
        results: dict[int, list[Any]] = {}  # by part, those that came before their turn
        turn = given = 0
        while True:
            while given - turn < _PARTS * self.workers and (part := self._part(left)):
                self._start()
                one = min(self._processes, key=lambda one: len(one.parts))
                self._send(one, part)
                one.parts.append(given)
                given += 1
            if turn == given:
                return
            busy = {one.pipe: one for one in self._processes if one.parts}
            for pipe in wait(list(busy)):
                one = busy[pipe]  # type: ignore[index]
                results[one.parts.popleft()] = self._receive(one)
            while turn in results:
                yield from results.pop(turn)
                turn += 1

    def _part(self, left: Iterator[Any]) -> list[Any]:
        size = int(_PART_SECONDS / max(self._job_seconds, 1e-6))
        return list(islice(left, max(1, min(_PART_JOBS, size))))

    def _start(self) -> None:
        """Start the processes, if they do not run yet."""
        if self._processes:
            return
        spawn = get_context("spawn")
        with _environment(_ONE_THREAD), _interrupt_held():
            for _ in range(self.workers):
                ours, theirs = spawn.Pipe()
                process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
                process.start()
                theirs.close()  # so that the end of the process is the end of the pipe
                self._processes.append(_Process(process, ours))
        for one in self._processes:
            self._send(one, self.make)

    def _send(self, one: _Process, data: Any) -> None:
        try:
            one.pipe.send(data)
        except OSError:
            raise self._died(one) from None

    def _receive(self, one: _Process) -> list[Any]:
        try:
            results, seconds = one.pipe.recv()
        except (EOFError, OSError):
            raise self._died(one) from None
        if isinstance(results, BaseException):
            raise results
        self._job_seconds = seconds / len(results)
        return list(results)

    def _died(self, one: _Process) -> ChildProcessError:
        one.process.join()
        code = one.process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ChildProcessError(
            f"worker process {one.process.pid} died ({how}); is there enough memory?"
            " One worker needs the least"
        )


def _serve(pipe: Connection) -> None:
    """A process's work: `make` comes in, then parts; their results and seconds go out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where the mask is not inherited: Windows
    workers: list[Callable[[Any], Any]] = []

    def do(part: list[Any]) -> tuple[Any, float]:
        try:
            if not workers:
                workers.append(make())
            start = time.perf_counter()
            return [workers[0](job) for job in part], time.perf_counter() - start
        except BaseException as error:
            return _portable(error), 0.0

    with suppress(EOFError, OSError):  # the other end is gone
        make = pipe.recv()
        while True:
            pipe.send(do(pipe.recv()))


def _portable(error: BaseException) -> BaseException:
    """The error with a note on where it was raised; another one where it cannot be pickled."""
    where = "".join(traceback.format_exception(error))
    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(where)
    return error


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Processes started within have these variables."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupt_held() -> Iterator[None]:
    """Ctrl-C within comes afterwards; processes started within hear none.

    To ignore it for the moment would lose it. A mask alone does not hold it, since another thread
    of ours may take the signal; the handler alone is not inherited.
    """
    masks = hasattr(signal, "pthread_sigmask")  # not on Windows, where nothing is inherited
    main = threading.current_thread() is threading.main_thread()  # only this one may set handlers
    held: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if main:
        signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    if masks:
        resource_tracker.ensure_running()  # its start would take the mask off again
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if main:  # None: set by a program around Python
            signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if held:
            signal.raise_signal(signal.SIGINT)
