"""What a program imports, and when: ids registered in any order, and no more than it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oxx_env.lib import imports

GYMNASIUM = (
    "env = gymnasium.make('oxx_env/BaronOxx-v0')\n"
    "assert type(env.unwrapped).__name__ == 'BaronOxxSingle'\n"
)
PETTINGZOO = (
    "env = pettingzoo.make('parallel', 'oxx/baron-oxx-v0', num_players=3)\n"
    "assert len(env.possible_agents) == 3\n"
    "assert type(pettingzoo.make('aec', 'oxx/baron-oxx-v0')).__name__ == 'BaronOxxAEC'\n"
)


def run(program: str, folder: Path | None = None) -> None:
    """Run a program in a Python of its own, where a warning is an error; it has to succeed."""
    before = f"import sys, warnings\nsys.path.insert(0, {str(folder)!r})\n" if folder else ""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", before + program],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "program",
    [
        "import oxx_env, gymnasium\n" + GYMNASIUM,
        "import gymnasium, oxx_env\n" + GYMNASIUM,
        "import oxx_env\nfrom gymnasium import spaces\nimport gymnasium\n" + GYMNASIUM,
        "import gymnasium\n" + GYMNASIUM.replace("oxx_env/", "oxx_env:oxx_env/"),
        "import oxx_env, pettingzoo\n" + PETTINGZOO,
        "import pettingzoo, oxx_env\n" + PETTINGZOO,
        "from oxx_env import baron_oxx_v0\nimport gymnasium, pettingzoo\n" + GYMNASIUM + PETTINGZOO,
        "import oxx_env, pettingzoo, gymnasium\n" + PETTINGZOO + GYMNASIUM,
        "import importlib, oxx_env, gymnasium\nimportlib.reload(oxx_env)\n" + GYMNASIUM,
        "import importlib, oxx_env\nimportlib.reload(oxx_env)\nimport gymnasium\n" + GYMNASIUM,
        "import importlib.util, oxx_env\nassert importlib.util.find_spec('gymnasium').origin\n"
        "import gymnasium\n" + GYMNASIUM,
    ],
)
def test_the_ids_are_registered_in_whatever_order_things_are_imported(program: str) -> None:
    run(program)


def test_a_library_imported_afterwards_looks_as_ever() -> None:
    run(
        "import importlib.resources, inspect, sys, oxx_env, gymnasium\n"
        "assert type(gymnasium.__loader__) is type(oxx_env.__loader__)\n"
        "assert gymnasium.__spec__.loader is gymnasium.__loader__\n"
        "assert 'Env' in inspect.getsource(gymnasium)\n"
        "assert importlib.resources.files(gymnasium).joinpath('__init__.py').is_file()\n"
        "import pettingzoo\n"
        "assert not any(type(finder).__module__ == 'oxx_env.lib.imports'\n"
        "    for finder in sys.meta_path)\n"
    )


def test_the_arena_starts_with_nothing_it_does_not_need() -> None:
    # The first run compiles what has not been compiled yet.
    program = (
        "import os, sys\n"
        "from oxx_env.commands import _cli as cli\n"
        "sys.stdout = open(os.devnull, 'w')\n"
        "assert cli.main('arena greedy random --players 2 --games 2'.split()) == 0\n"
    )
    heavy = (
        "gymnasium",
        "pettingzoo",
        "typeguard",
        "coverage",
        "rich",
        "torch",
        "numba.typed.typeddict",
    )
    run(program)
    run(f"{program}loaded = set({heavy!r}) & set(sys.modules)\nassert not loaded, loaded\n")


# ---- The two helpers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wanted.py").write_text("VALUE = 6\n")
    (tmp_path / "faulty.py").write_text("import oxx_env.no_such_module\n")
    return tmp_path


def test_an_action_follows_the_first_import_once(folder: Path) -> None:
    run(
        "from oxx_env.lib.imports import when_imported\n"
        "heard = []\n"
        "when_imported('wanted', lambda: heard.append(sys.modules['wanted'].VALUE))\n"
        "when_imported('wanted', lambda: heard.append('second'))\n"
        "assert heard == []\n"
        "import wanted, importlib\n"
        "assert sorted(map(str, heard)) == ['6', 'second'], heard\n"
        "importlib.reload(wanted)\n"
        "assert len(heard) == 2\n"
        "when_imported('wanted', lambda: heard.append('at once'))\n"
        "assert heard[2] == 'at once'\n",
        folder,
    )


def test_an_import_that_fails_is_told_as_ever_and_no_action_follows(folder: Path) -> None:
    run(
        "from oxx_env.lib.imports import when_imported\n"
        "for name in ('faulty', 'not_there'):\n"
        "    when_imported(name, sys.exit)\n"
        "    try:\n"
        "        __import__(name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        assert error.name in ('oxx_env.no_such_module', 'not_there'), error.name\n"
        "    else:\n"
        "        sys.exit('imported')\n",
        folder,
    )


def test_without_a_module_it_cannot_be_imported_and_afterwards_it_can(folder: Path) -> None:
    run(
        "from oxx_env.lib.imports import without\n"
        "with without('wanted'):\n"
        "    try:\n"
        "        import wanted\n"
        "    except ImportError:\n"
        "        pass\n"
        "    else:\n"
        "        sys.exit('imported')\n"
        "import wanted\n"
        "with without('wanted'):\n"
        "    assert sys.modules['wanted'] is wanted\n"
        "assert sys.modules['wanted'] is wanted\n",
        folder,
    )


def test_a_module_that_was_hidden_counts_as_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hidden_module", None)
    heard: list[int] = []
    finders = list(sys.meta_path)
    imports.when_imported("hidden_module", lambda: heard.append(1))
    monkeypatch.setattr(sys, "meta_path", finders)
    assert heard == []
