"""Commands that are printed run as they stand; programs end quietly when nobody reads on."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oxx_env.lib import shell

ROOT = Path(__file__).parents[1]
SCRIPTS = [
    path.stem for path in sorted((ROOT / "training").glob("*.py")) if "def main" in path.read_text()
]


def test_paths_are_told_from_the_person_s_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PWD", str(tmp_path / "here"))
    assert shell.place(tmp_path / "here/runs/a") == "runs/a"
    assert shell.place("runs/a") == "runs/a"
    assert shell.place("../runs") == "../runs"
    assert shell.place(tmp_path / "hereafter") == str(tmp_path / "hereafter")
    assert shell.place("-x") == "./-x"  # no option
    monkeypatch.setenv("PWD", str(tmp_path))  # make -C here
    assert shell.place("runs/a") == str(tmp_path / "here/runs/a")


def test_programs_are_named_as_the_shell_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my env" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "oxx"):
        (folder / name).touch()
        (folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PWD", raising=False)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    assert shell.oxx("play", "--bots", "policy:my runs") == (
        "'my env/bin/oxx' play --bots 'policy:my runs'"
    )
    assert shell.script(tmp_path / "a.py", 3) == "'my env/bin/python' a.py 3"
    monkeypatch.setenv("PATH", str(folder))
    assert shell.oxx("play") == "oxx play"
    (folder / "oxx").unlink()  # not installed
    assert shell.oxx("play") == f"PYTHONPATH={shlex.quote(str(ROOT))} python -m oxx_env play"
    monkeypatch.chdir(ROOT)
    assert shell.oxx("play") == "python -m oxx_env play"


def test_oxx_runs_as_printed_where_it_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shell, "_known", lambda program: sys.executable)
    monkeypatch.setattr(Path, "is_file", lambda path: False)
    line = shell.oxx("--version")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(line, shell=True, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stdout.startswith("oxx "), done.stderr


class Closed:
    """A pipe that nobody reads."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise BrokenPipeError

    flush = isatty = fileno = lambda self: Closed().write("")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_closed_pipe_ends_each_script_quietly(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed (extra `train`)")
    main = importlib.import_module(f"training.{name}").main

    def mistake(*arguments: Any, **options: Any) -> None:
        print("help", file=Closed())  # type: ignore[call-overload]

    monkeypatch.setattr("tyro.cli", mistake)
    assert main([]) == shell.PIPE_CLOSED
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("head") is None, reason="there is no head")
def test_help_into_head_ends_quietly() -> None:
    pytest.importorskip("torch", reason="torch is not installed (extra `train`)")
    line = f"{shlex.quote(sys.executable)} training/train.py --help | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("usage: ") and done.stderr == ""


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ValueError("seats are 2 to 10"), 2, "a.py: seats are 2 to 10\n"),
        (FileNotFoundError(2, "No such file", "x"), 2, "a.py: x: No such file\n"),
        (KeyboardInterrupt(), 130, "a.py: stopped\n"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_a_script_ends_in_one_message_and_an_exit_code(
    error: BaseException, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @shell.program("a.py", "stopped")
    def main(argv: list[str]) -> int:
        raise error

    assert main([]) == code
    assert capsys.readouterr().err == told
