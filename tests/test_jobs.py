"""Jobs in several processes: results in order, mistakes and deaths named, nothing left running."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oxx_env.lib import jobs as module
from oxx_env.lib.jobs import Jobs

EVALUATE = functools.partial(functools.partial, eval)  # a worker whose jobs are expressions
DIE = "__import__('os')._exit(7)"
KILL = "__import__('signal').raise_signal(9)"


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_jobs(workers: int) -> None:
    squares = [f"{n} ** 2" for n in range(500)]
    slow = "__import__('time').sleep(0.2)"
    with Jobs(EVALUATE, workers) as jobs:
        assert list(jobs.run(squares)) == [n * n for n in range(500)]
        assert list(jobs.run(["1", slow, "2", "3", "4"])) == [1, None, 2, 3, 4]
        assert list(jobs.run([])) == []


def test_one_job_starts_no_process_and_jobs_are_taken_as_they_are_given_out() -> None:
    with Jobs(EVALUATE, 2) as jobs:
        assert list(jobs.run(["6"])) == [6] and not jobs._processes
        taken: list[int] = []
        endless = (str(taken.append(n) or n) for n in itertools.count())  # type: ignore[func-returns-value]
        first = list(itertools.islice(jobs.run(endless), 20))
        assert first == list(range(20)) and len(taken) <= 20 + 64 * module._PARTS * 2


def test_a_mistake_in_a_process_is_raised_here_and_says_where() -> None:
    with pytest.raises(ZeroDivisionError) as caught, Jobs(EVALUATE, 2) as jobs:
        list(jobs.run(["1", "2", "1 / 0", "3"]))
    assert "in do" in "".join(caught.value.__notes__)
    with pytest.raises(ValueError, match=r"^seven\n"), Jobs(EVALUATE, 2) as jobs:
        list(jobs.run(["1", "2", "(_ for _ in ()).throw(ValueError('seven'))"]))
    local = "(_ for _ in ()).throw(type('Odd', (Exception,), {})('seven'))"  # cannot be pickled
    with pytest.raises(RuntimeError, match=r"^Odd: seven\n"), Jobs(EVALUATE, 2) as jobs:
        list(jobs.run(["1", "2", local]))


@pytest.mark.parametrize(("job", "how"), [(KILL, "signal 9"), (DIE, "exit code 7")])
def test_a_process_that_dies_is_named_and_what_had_come_before_is_there(
    job: str, how: str
) -> None:
    results = []
    with Jobs(EVALUATE, 2) as jobs:
        started = list(jobs.run(["1", "2", "3"]))
        pids = {one.process.pid for one in jobs._processes}
        with pytest.raises(ChildProcessError, match=rf"process \d+ died \({how}\)") as caught:
            results.extend(jobs.run(["4", "5", "6", "7", "8", "9", "10", job, "11"]))
    assert started == [1, 2, 3]
    assert any(str(pid) in str(caught.value) for pid in pids)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_worker_that_cannot_be_sent_is_refused_and_leaves_no_process() -> None:
    with pytest.raises((AttributeError, TypeError)), Jobs(lambda: abs, 2) as jobs:
        list(jobs.run([1, 2]))
    assert all(one.process.exitcode == -signal.SIGKILL for one in jobs._processes)


def test_processes_are_gone_when_the_loop_is_left_in_the_middle_of_a_job() -> None:
    long = "__import__('time').sleep(100)"
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Jobs(EVALUATE, 2) as jobs:
        for _ in jobs.run(["1", "2", "3", long, long]):
            if jobs._processes:
                raise KeyboardInterrupt
    assert all(one.process.exitcode == -signal.SIGKILL for one in jobs._processes)
    assert time.monotonic() - start < 60


def test_a_second_ctrl_c_leaves_no_process() -> None:
    with pytest.raises(KeyboardInterrupt), Jobs(EVALUATE, 2) as jobs:
        list(jobs.run(["1", "2", "3"]))
        kills: list[Callable[[], None]] = [one.process.kill for one in jobs._processes]
        jobs._processes[0].process.kill = lambda: (  # type: ignore[method-assign]
            os.kill(os.getpid(), signal.SIGINT),
            kills[0](),
        )
        raise KeyboardInterrupt
    assert all(one.process.exitcode == -signal.SIGKILL for one in jobs._processes)


@pytest.mark.parametrize("listening", [False, True], ids=["alone", "beside_a_thread"])
def test_ctrl_c_while_processes_start_comes_afterwards(listening: bool) -> None:
    """Neither lost nor in the midst, whichever thread of ours takes the signal."""
    done = threading.Event()
    beside = threading.Thread(target=done.wait)  # its mask is open, so it takes what we hold off
    if listening:
        beside.start()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    steps, threads = [], os.environ.get("OMP_NUM_THREADS")
    try:
        with (
            pytest.raises(KeyboardInterrupt),
            module._environment(module._ONE_THREAD),
            module._interrupt_held(),
        ):
            os.kill(os.getpid(), signal.SIGINT)
            child = "import signal, os; os.kill(os.getpid(), signal.SIGINT); print('unheard')"
            steps.append(subprocess.check_output([sys.executable, "-c", child], text=True))
        assert steps == ["unheard\n"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert os.environ.get("OMP_NUM_THREADS") == threads
    finally:
        signal.signal(signal.SIGINT, handler)
        done.set()
        if listening:
            beside.join()


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc")
def test_processes_leave_when_the_one_that_started_them_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import functools, itertools
            from oxx_env.lib.jobs import Jobs

            if __name__ == "__main__":
                with Jobs(functools.partial(functools.partial, eval), 2) as jobs:
                    for _ in jobs.run(itertools.repeat("1")):
                        if jobs._processes:
                            print(*(one.process.pid for one in jobs._processes), flush=True)
            """
        )
    )
    process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = process.stdout.readline().split()
    assert len(pids) == 2 and all(Path("/proc", pid).exists() for pid in pids)
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 60
    while any(_running(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _running(pid: str) -> bool:
    """Is there such a process, and has it not just been left unburied?"""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
