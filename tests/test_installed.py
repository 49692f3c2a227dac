"""The package as others get it: archive and wheel are whole, and all works once installed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator

ROOT = Path(__file__).parents[1]
WALK = Path(__file__).with_name("first_hour.py")
IGNORED = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "runs", "site", "oxx-games"
)
WHEEL_BYTES = 5 << 20  # at most

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("pip", "setuptools"))),
        reason="pip and setuptools of this environment build the wheel",
    ),
    pytest.mark.skipif(os.name != "posix", reason="environments look otherwise on this system"),
]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints. It has to succeed, and sees neither PYTHONPATH nor the checkout."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=kept | environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sources() -> list[Path]:
    """The files of this repository, or of the archive that this was unpacked from."""
    if (ROOT / ".git").exists():
        listed = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
        return [Path(name) for name in listed if (ROOT / name).is_file()]
    found: list[Path] = []
    for folder, _, names in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        found += [here / name for name in names]
    return [path for path in found if not IGNORED("", [*path.parts])]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`sdist`, `unpacked` from it, and the `wheel` built there."""
    # In a copy: setuptools would else add what it remembers from an earlier time.
    folder = tmp_path_factory.mktemp("built")
    for path in sources():
        (folder / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / "copy" / path)
    build = "import setuptools.build_meta as build; build.build_sdist('..')"
    run(sys.executable, "-c", build, cwd=folder / "copy")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    wheel = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps")
    run(*wheel, "--no-index", ".", "--wheel-dir", folder, cwd=unpacked)
    (wheel_file,) = folder.glob("*.whl")
    return {"sdist": sdist, "unpacked": unpacked, "wheel": wheel_file}


@pytest.fixture(scope="module")
def installed(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; what it depends on is borrowed from here."""
    folder = tmp_path_factory.mktemp("installed")
    install(folder, built["wheel"])
    return folder


def install(folder: Path, *what: str | Path) -> Path:
    """Make an environment, install something without what it depends on, and borrow the rest from
    here. Gives its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    (packages,) = folder.glob("lib/python*/site-packages")
    borrowed = [Path(path) for path in sys.path if path.endswith("-packages")]
    # What builds is there before; the rest later, or pip took the checkout for installed already.
    for path in (path for one in borrowed for path in one.iterdir()):
        if path.name.startswith(("setuptools", "_distutils_hack")):
            (packages / path.name).symlink_to(path)
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    run(*pip, "--no-index", "--no-build-isolation", *what, cwd=folder)
    # Folders alone: no .pth file in them is followed, such as the one that leads to this checkout.
    (packages / "borrowed.pth").write_text("".join(f"{path}\n" for path in borrowed))
    return python


def lend_compiled(package: Path) -> None:
    """Give an installed copy what the checkout has compiled, so that it need not do so again.

    Numba finds its own by the sources' folder, time and size. Where anything does not fit, it
    compiles: nothing is tested less.
    """
    ours = ROOT / "oxx_env"
    for path in package.rglob("*.py"):
        same = ours / path.relative_to(package)
        if same.is_file() and same.read_bytes() == path.read_bytes():
            shutil.copystat(same, path)
    subpath = _CacheLocator.get_suitable_cache_subpath
    names = {
        subpath(str(ours / folder / "x.py")): subpath(str(package / folder / "x.py"))
        for folder in (".", *{path.parent.relative_to(ours) for path in ours.rglob("*.py")})
    }
    for kept in (ours / "__pycache__").glob("oxx_env-*"):
        shutil.copytree(kept, package / "__pycache__" / kept.name, dirs_exist_ok=True)
    for folder in sorted((package / "__pycache__").rglob("*"), reverse=True):
        if folder.name in names:
            folder.rename(folder.with_name(names[folder.name]))


def test_the_archive_holds_everything_and_its_tests_are_found(built: dict[str, Path]) -> None:
    missing = [path for path in sources() if not (built["unpacked"] / path).is_file()]
    assert not [path for path in missing if not path.name.startswith(".git")]
    collect = ("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    told = run(sys.executable, *collect, cwd=built["unpacked"]).splitlines()[-1]
    assert re.search(r"^[1-9]\d{2,} tests collected", told), told


def test_the_wheel_holds_the_package_and_its_checkpoints_and_is_small(
    built: dict[str, Path],
) -> None:
    assert built["wheel"].stat().st_size <= WHEEL_BYTES
    with zipfile.ZipFile(built["wheel"]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    inside = [path.as_posix() for path in sources() if path.parts[0] == "oxx_env"]
    beside = [f"oxx_env/{path.as_posix()}" for path in sources() if path.parts[0] == "checkpoints"]
    assert held == {*inside, *beside}


def test_the_package_is_whole_wherever_it_lies(
    built: dict[str, Path], tmp_path: Path, installed: Path
) -> None:
    run(sys.executable, WALK, ROOT, cwd=tmp_path, PYTHONPATH=str(ROOT))  # a bare checkout
    run(installed / "bin" / "python", WALK, installed, cwd=tmp_path)  # a wheel
    python = install(tmp_path / "edited", "--editable", built["unpacked"])
    run(python, WALK, built["unpacked"], cwd=tmp_path)


@pytest.fixture(scope="module")
def lent(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment with the wheel, and with all compiled that the checkout has compiled: first
    it does what it has not done yet."""
    folder = tmp_path_factory.mktemp("checkout")
    run(sys.executable, WALK, ROOT, "all", cwd=folder, PYTHONPATH=str(ROOT))
    (package,) = installed.glob("lib/python*/site-packages/oxx_env")
    lend_compiled(package)
    return installed


def test_everything_works_from_a_wheel_outside_the_checkout(lent: Path, tmp_path: Path) -> None:
    run(lent / "bin" / "python", WALK, lent, "all", cwd=tmp_path)


def test_the_table_in_the_browser_has_all_levels_from_a_wheel(lent: Path, tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the extra `web` is not installed")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [lent / "bin" / "oxx", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=kept, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            url = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
            with urllib.request.urlopen(url, timeout=60) as page:
                assert b"<script" in page.read()
            with urllib.request.urlopen(f"{url}api/info", timeout=300) as answer:
                levels = [level["name"] for level in json.load(answer)["levels"]]
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=60)
        finally:
            server.kill()
    assert levels == ["random", "greedy", "careful", "champion", "search"]
