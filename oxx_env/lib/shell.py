"""Programs in a person's shell: the commands that they print, and how they end.

A printed command runs as it stands: it names the Python that prints it, its paths are right for the
folder the person is in, and words are quoted.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from oxx_env.lib import extras
from oxx_env.lib.imports import UntriedVersion
from oxx_env.lib.texts import message, printable_output

UNUSABLE = 2  # input or option that cannot be used
INTERRUPTED = 130  # 128 + SIGINT
PIPE_CLOSED = 141  # 128 + SIGPIPE
FAULT = 70  # of the program (EX_SOFTWARE)
ROOT = Path(__file__).parents[2]  # the folder that holds the package

Main = Callable[[list[str]], int]


# --- commands to type ---------------------------------------------------------------------------


def oxx(*words: object) -> str:
    """The command line of `oxx` with these arguments; give paths through `place`."""
    beside = Path(sys.executable).with_name("oxx")
    if beside.is_file():
        return _line(_known(beside), *words)
    line = _line(_known(Path(sys.executable)), "-m", "oxx_env", *words)
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    if str(ROOT) in installed or (Path.cwd() == ROOT and not _elsewhere()):
        return line
    return f"PYTHONPATH={shlex.quote(str(ROOT))} {line}"


def script(file: str | os.PathLike[str], *words: object) -> str:
    """The command line of a script with these arguments; give paths through `place`."""
    return _line(_known(Path(sys.executable)), place(file), *words)


def place(path: str | os.PathLike[str]) -> str:
    """A path as it is typed in the person's folder: relative if it lies there, else as it is."""
    whole = os.path.abspath(path)
    if _elsewhere():
        return whole
    here = os.path.join(os.getcwd(), "")
    short = whole.removeprefix(here) if whole.startswith(here) else os.fspath(path)
    return f"./{short}" if short.startswith("-") else short


def _line(*words: object) -> str:
    return shlex.join(str(word) for word in words)


def _known(program: Path) -> str:
    """How to type a program: by its name where the shell finds it so."""
    found = shutil.which(program.name)
    if found is not None and os.path.abspath(found) == str(program):
        return program.name
    typed = place(program)
    return typed if os.sep in typed else f"./{typed}"


def _elsewhere() -> bool:
    """Is the person's shell in another folder than this process (`make -C`)?"""
    shell = os.environ.get("PWD")
    return shell is not None and os.path.realpath(shell) != os.path.realpath(os.getcwd())


# --- ends ---------------------------------------------------------------------------------------


class UserError(ValueError):
    """A mistake of the user; its message says what is wrong and what would be right."""


def program(name: str, stopped: str = "") -> Callable[[Main], Main]:
    """A main function, given its arguments, whose exit code says how it ended.

    A mistake (ValueError, OSError, a missing or untried package) is one message and 2, Ctrl-C
    `stopped` and 130, a closed pipe 141 without a word. Other errors are raised, and with
    OXX_TRACEBACK=1 in the environment all of them. Before the message of a mistake in a user's own
    code stands its `user_traceback`.
    """

    def decorate(main: Main) -> Main:
        def ended(argv: list[str]) -> int:
            try:
                code = main(argv)
                sys.stdout.flush()  # so that a closed pipe or a full disk shows here
                return code
            except SystemExit:  # help was printed
                sys.stdout.flush()
                raise
            except KeyboardInterrupt:
                if stopped:
                    print(f"{name}: {stopped}", file=sys.stderr)
                return INTERRUPTED
            except BrokenPipeError:
                raise
            except Exception as error:
                text = explain(error)
                if text is None or os.environ.get("OXX_TRACEBACK"):
                    raise
                if trace := getattr(error, "user_traceback", ""):
                    print(trace, file=sys.stderr)
                print(f"{name}: {message(text)}", file=sys.stderr)
                return UNUSABLE

        @functools.wraps(main)
        def run(argv: list[str]) -> int:
            try:
                with printable_output():
                    return ended(argv)
            except BrokenPipeError:
                # Python flushes both at its exit.
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError, ValueError):
                        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
                return PIPE_CLOSED

        return run

    return decorate


def explain(error: Exception) -> str | None:
    """The message for a mistake of the user; None for any other error."""
    if isinstance(error, ImportError) and (missing := extras.explain(error)):
        return str(missing)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}"
    return str(error) if isinstance(error, ValueError | OSError | UntriedVersion) else None
