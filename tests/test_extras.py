"""What is missing is named, with a command that installs it from where the package came from."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from oxx_env.commands import _cli
from oxx_env.lib import extras, imports

ROOT = Path(__file__).parents[1]
ASK = """
import sys
sys.modules.update(dict.fromkeys({names!r}))
{statement}
"""


def told_without(statement: str, *names: str) -> str:
    """The last line on stderr of a program in which these modules cannot be imported."""
    program = ASK.format(names=names, statement=statement)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("statement", "missing", "says"),
    [
        ("import oxx_env.envs.vector", "stable_baselines3", "needs stable-baselines3: "),
        ("from oxx_env.policy import network", "torch", "oxx_env.policy.network needs torch: "),
        ("from oxx_env import render; render.pillow()", "PIL", "a picture needs pillow: "),
        ("from oxx_env import render; render.Window()", "pygame", "a window needs pygame-ce: "),
        (
            "from oxx_env import ratings; ratings.openskill_ratings([], 1)",
            "openskill",
            "a rating needs openskill: ",
        ),
    ],
)
def test_in_python_the_error_names_the_package_and_the_command(
    statement: str, missing: str, says: str
) -> None:
    told = told_without(statement, missing)
    assert told.startswith("oxx_env.lib.extras.MissingExtra: ") and says in told
    assert told.endswith(f"{extras.install_command(extras.EXTRAS[missing])}")
    assert issubclass(extras.MissingExtra, ImportError)


@pytest.mark.timeout(60)  # a server that finds all it needs would not end
@pytest.mark.parametrize(
    ("argv", "missing", "says"),
    [
        (["serve"], "uvicorn", "oxx: the table in the browser needs uvicorn: "),
        (["serve"], "starlette", "oxx: the table in the browser needs starlette: "),
        (["league", "greedy", "random"], "openskill", "oxx: a league needs openskill: "),
        (
            ["league", "greedy", "random", "--png", "x.png"],
            "matplotlib",
            "oxx: --png needs matplotlib: ",
        ),
    ],
)
def test_on_the_command_line_it_is_one_message_and_exit_code_2(
    argv: list[str], missing: str, says: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    # What another test has imported would be found without a look at its package.
    for name in [name for name in sys.modules if name.startswith(("oxx_env.web.", f"{missing}."))]:
        monkeypatch.delitem(sys.modules, name)
    assert _cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{says}{extras.install_command(extras.EXTRAS[missing])}\n")
    assert not list(tmp_path.iterdir())


def test_a_script_of_training_names_what_is_missing() -> None:
    """It imports `start` first, so that one script stands for all."""
    scripts = [p for p in (ROOT / "training").glob("*.py") if "def main(" in p.read_text()]
    assert len(scripts) >= 9
    for script in scripts:
        before, asks, _ = script.read_text().partition("if not __package__:\n    import start")
        assert asks and "tqdm" not in before and "import torch" not in before
    program = (
        "import importlib.util, runpy, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'torch' else find(name)\n"
        f"sys.path.insert(0, {str(ROOT / 'training')!r})\n"
        f"runpy.run_path({str(ROOT / 'training' / 'train.py')!r}, run_name='__main__')\n"
    )
    program = program.replace("runpy.run_path", "sys.argv = ['train.py']\nrunpy.run_path")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    want = f"train.py: training needs torch: {extras.install_command('train')}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", want)


def test_what_is_no_package_of_an_extra_stays_what_it_is() -> None:
    no_such = pytest.raises(ModuleNotFoundError, match="No module named 'nonesuch'")
    with no_such as caught, extras.needed_by("this"):
        import nonesuch  # noqa: F401
    assert not isinstance(caught.value, extras.MissingExtra)


def command(monkeypatch: pytest.MonkeyPatch, origin: str | None) -> list[str]:
    """The arguments that pip gets, if the package was installed from somewhere."""

    class Installed:
        version = "0.1.0"
        requires = (
            "numpy>=1.26",
            'starlette>=0.49.1; extra == "web"',
            "uvicorn>=0.30 ; extra == 'web'",
            'pillow>=11; extra == "render"',
        )

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return origin

    monkeypatch.setattr(extras, "PACKAGE", Path("/nowhere/site-packages/oxx_env"))
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    python, *arguments = shlex.split(extras.install_command("web"))
    assert python == sys.executable and arguments[:3] == ["-m", "pip", "install"]
    return arguments[3:]


def test_a_checkout_is_installed_from_its_folder() -> None:
    assert shlex.split(extras.install_command("web"))[-2:] == ["-e", f"{ROOT}[web]"]


def test_what_came_from_an_index_comes_from_there_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(monkeypatch, None) == ["oxx_env[web]==0.1.0"]


def test_a_wheel_that_is_still_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel = tmp_path / "a b" / "oxx_env-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    origin = json.dumps({"url": wheel.as_uri(), "archive_info": {}})
    assert command(monkeypatch, origin) == [f"{wheel}[web]"]


@pytest.mark.parametrize("url", ["file:///gone/x.whl", "https://example.org/oxx_env.git"])
def test_where_the_package_cannot_be_had_again_the_extra_is_spelt_out(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    told = command(monkeypatch, json.dumps({"url": url, "vcs_info": {}}))
    assert told == ["starlette>=0.49.1", "uvicorn>=0.30"]


# --- bounds of what is depended on ---------------------------------------------------------------

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PARTS = PROJECT["optional-dependencies"]


def lower_bounds(requirements: list[str]) -> dict[str, str]:
    """Name of each package -> its lower bound, padded to three numbers as a version is."""
    found = {}
    for requirement in requirements:
        name, bound = re.fullmatch(
            r"([\w-]+)(?:\[\w+\])?>=([\d.]+)(?:,<[\d.]+)?", requirement
        ).groups()
        found[name] = ".".join([*bound.split("."), "0", "0"][:3])
    return found


def test_every_package_of_the_table_is_in_its_extra() -> None:
    for module, extra in extras.EXTRAS.items():
        name = extras.CALLED.get(module, module).replace("_", "-")
        assert any(one.replace("_", "-").startswith(name) for one in PARTS[extra]), module


def test_the_lower_bounds_are_those_that_make_minimal_tries() -> None:
    tried = {}
    for name in ("minimal.txt", "minimal-extras.txt"):
        lines = (ROOT / "tests" / "stress" / name).read_text().splitlines()
        tried |= dict(line.split("==") for line in lines if "==" in line)
    wanted = [*PROJECT["dependencies"], *PARTS["web"], *PARTS["render"], *PARTS["train"]]
    bounds = lower_bounds(wanted)
    assert bounds.pop("torch") == "2.8.0"  # too large to try
    assert bounds == {name: version for name, version in tried.items() if name in bounds}


@pytest.mark.parametrize("version", [(0, 60), (0, 69), (1, 0)])
def test_a_version_of_numba_that_was_not_tried_is_refused(version: tuple[int, int]) -> None:
    wanted = next(one for one in PROJECT["dependencies"] if one.startswith("numba"))
    least, below = re.fullmatch(r"numba>=([\d.]+),<([\d.]+)", wanted).groups()
    program = (
        "import numba\n"
        f"numba.version_info = numba.version_info._replace(short={version})\n"
        "import oxx_env.lib.jit\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    told = done.stderr.strip().splitlines()[-1]
    name, _, said = told.partition(": ")
    assert name == "oxx_env.lib.imports.UntriedVersion"
    assert said.startswith(f"oxx_env was tried with numba from {least} to below {below}")
    assert said.endswith(
        f"here is {version[0]}.{version[1]}: {sys.executable} -m pip install '{wanted}'"
    )


def test_on_the_command_line_an_untried_version_is_one_message_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def untried(self: object) -> None:
        imports.require_tested("numba", (0, 60), "0.61", "0.69")

    monkeypatch.setattr(_cli.load_command("deck check"), "run", untried)
    assert _cli.main(["deck", "check", "x"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and err.startswith("oxx: oxx_env was tried with numba")
