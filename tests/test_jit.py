"""The folder of compiled code is never stale and always found, and the code is the source's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tracing

from oxx_env.lib import jit

TESTS = Path(__file__).parent
RULES = Path("game/rules.py")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package's sources."""
    copy = tmp_path / "oxx_env"
    shutil.copytree(jit.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def run(*arguments: str | Path, path: Path, **environment: str) -> str:
    """What a fresh Python prints that finds modules in `path` first."""
    # Without the caller's NUMBA_* settings, which are what is tested here.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**inherited, "PYTHONPATH": str(path), **environment},
        cwd=path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- The name of the folder


def test_the_name_changes_with_every_source_that_can_be_in_compiled_code(package: Path) -> None:
    sources = jit.compiled_sources(package)
    assert {"rules.py", "engine.py", "jit.py", "cards.py"} <= {path.name for path in sources}
    names = {jit.source_hash(package)}
    for source in sources:
        text = source.read_text(encoding="utf-8")
        source.write_text(text + "\nSOMETHING = 1\n", encoding="utf-8")
        names.add(jit.source_hash(package))
        source.write_text(text, encoding="utf-8")
    assert len(names) == 1 + len(sources)
    assert jit.source_hash(package) in names  # all put back: the first name again


def test_the_name_is_the_same_for_a_copy_elsewhere(package: Path) -> None:
    assert jit.source_hash(package) == jit.source_hash()


def test_the_name_changes_with_one_constant(package: Path) -> None:
    before = jit.source_hash(package)
    text = (package / RULES).read_text(encoding="utf-8")
    assert text.count("HAND_SIZE = 4\n") == 1
    (package / RULES).write_text(text.replace("HAND_SIZE = 4\n", "HAND_SIZE = 5\n"))
    assert jit.source_hash(package) != before


def test_kernels_outside_the_package_count_their_whole_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("kernels", "numbers"):
        (other / f"{name}.py").write_text("ONE = 1\n")
    start = other / "kernels.py"
    found = {path.name for path in jit.compiled_sources(start=start)}
    assert {"kernels.py", "numbers.py", "jit.py", "rules.py"} <= found
    before = jit.source_hash(start=start)
    (other / "numbers.py").write_text("ONE = 2\n")
    assert jit.source_hash(start=start) != before


@pytest.mark.parametrize(
    ("edited", "kept", "changed"),
    [
        ("lib/texts.py", [], ["game/rules.py", "policy/forward.py", "bots/simple.py"]),
        ("game/views.py", ["lib/simd.py"], ["game/rules.py", "bots/search.py", "envs/kernels.py"]),
        ("bots/simple.py", ["game/rules.py", "policy/forward.py"], ["bots/search.py"]),
        ("envs/match.py", ["game/rules.py", "bots/simple.py", "envs/kernels.py"], []),
        ("web/app.py", ["game/rules.py", "bots/simple.py", "envs/kernels.py"], []),
    ],
)
def test_an_edit_changes_the_names_of_its_own_layer_and_of_those_above(
    package: Path, edited: str, kept: list[str], changed: list[str]
) -> None:
    before = {name: jit.source_hash(package, package / name) for name in (*kept, *changed)}
    with open(package / edited, "a", encoding="utf-8") as file:
        file.write("\nSOMETHING = 1\n")
    after = {name: jit.source_hash(package, package / name) for name in before}
    assert [name for name in before if after[name] != before[name]] == changed


def test_kernels_live_in_the_layers_that_are_hashed() -> None:
    sources = set(jit.compiled_sources())
    for path in jit.PACKAGE.rglob("*.py"):
        if "\n@kernel" in path.read_text(encoding="utf-8"):
            assert path in sources, path


def test_the_name_changes_with_a_new_module_of_kernels_and_with_a_rename(package: Path) -> None:
    names = [jit.source_hash(package)]
    new = package / "bots" / "fast.py"
    new.parent.mkdir(exist_ok=True)
    new.write_text("from oxx_env.lib.jit import kernel\n\n\n@kernel\ndef one():\n    return 1\n")
    names.append(jit.source_hash(package))
    new.rename(new.with_name("faster.py"))
    names.append(jit.source_hash(package))
    assert len(set(names)) == 3


def test_the_name_does_not_change_with_what_kernels_do_not_use(package: Path) -> None:
    before = jit.source_hash(package)
    (package / "aside.py").write_text("from oxx_env.game.rules import HAND_SIZE\n")
    (package / "game" / "decks" / "new.csv").write_text("number\n")
    assert jit.source_hash(package) == before


def test_a_changed_constant_is_in_force_at_the_next_start(tmp_path: Path) -> None:
    """Numba's own cache would go on with the old one: its file of kernels has not changed."""
    package = tmp_path / "oxx_env"
    (package / "lib").mkdir(parents=True)
    for name in ("jit.py", "imports.py", "__init__.py"):
        shutil.copy(jit.PACKAGE / "lib" / name, package / "lib")
    (package / "__init__.py").touch()
    (package / "game").mkdir()
    (package / "game" / "kernels.py").write_text(
        "from oxx_env.game.limits import LIMIT\nfrom oxx_env.lib.jit import kernel\n\n\n"
        "@kernel\ndef limit():\n    return LIMIT\n"
    )
    for limit in ("6", "7"):
        (package / "game" / "limits.py").write_text(f"LIMIT = {limit}\n")
        program = "from oxx_env.game.kernels import limit; print(limit())"
        assert run("-c", program, path=tmp_path) == limit
    folders = list((package / "__pycache__").glob("oxx_env-*"))
    assert len(folders) == 2
    assert all(any(folder.rglob("*.nbc")) for folder in folders)  # compiled code lies in both


# ---- What is compiled, and how often

ONE_AND_TWO = """from oxx_env.lib.jit import kernel, notice

@kernel
def one(number):
    return number + 1

@kernel
def two(number):
    return one(number) + one(0)

if __name__ == "__main__":
    import kernels
    notice.SECONDS = -1.0  # tell it at once
    print(kernels.two(5), kernels.one(5), notice.kernels, notice.entries)
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A module of two kernels, which says what it had to compile."""
    package = tmp_path / "oxx_env"
    (package / "lib").mkdir(parents=True)
    for name in ("jit.py", "imports.py", "__init__.py"):
        shutil.copy(jit.PACKAGE / "lib" / name, package / "lib")
    (package / "__init__.py").touch()
    path = tmp_path / "kernels.py"
    path.write_text(ONE_AND_TWO)
    return path


def start(path: Path) -> subprocess.Popen[str]:
    """A fresh Python that runs a script, as a user starts it: not within a test."""
    outside = {"PYTEST_CURRENT_TEST", "NUMBA_CACHE_DIR"}
    inherited = {k: v for k, v in os.environ.items() if k not in outside}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, path],
        env={**inherited, "PYTHONPATH": str(path.parent)},
        stdout=pipe,
        stderr=pipe,
        text=True,
    )


@pytest.mark.slow
def test_each_kernel_is_compiled_once_and_only_the_first_time_is_told(kernels: Path) -> None:
    first, second = start(kernels).communicate(), start(kernels).communicate()
    # Two kernels, constant arguments or not, both also made callable from Python.
    assert first == ("7 6 2 2\n", jit.Notice.TEXT + "\n")
    assert second == ("7 6 0 0\n", "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
def test_of_two_processes_at_once_one_compiles(kernels: Path) -> None:
    both = [start(kernels), start(kernels)]
    told = [process.communicate()[0].split() for process in both]
    assert [line[:2] for line in told] == [["7", "6"]] * 2
    assert [sum(int(line[k]) for line in told) for k in (2, 3)] == [2, 2]


def test_compiling_is_told_after_two_seconds_in_all_but_not_by_workers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr(jit.time, "monotonic", lambda: now[0])

    def compile_both(seconds: float) -> str:
        with notice:
            now[0] += seconds
            with notice:
                now[0] += seconds
        now[0] += 60  # not compiling
        return capsys.readouterr().err

    notice = jit.Notice()
    assert [compile_both(0.7) for _ in range(4)] == ["", jit.Notice.TEXT + "\n", "", ""]
    notice = jit.Notice()
    monkeypatch.setattr(jit.multiprocessing, "parent_process", lambda: "the arena")
    assert [compile_both(2) for _ in range(2)] == ["", ""]


# ---- Where the folder is


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Path) -> dict[str, Path]:
    """The folders of a user of their own; nothing of the tests' real caches is touched."""
    home = tmp_path / "home"
    home.mkdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(jit, "PACKAGE", package)
    monkeypatch.setattr(jit.tempfile, "tempdir", str(temporary))
    return {"package": package, "home": home, "temporary": temporary}


def lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be written below the folder, for whoever runs the tests (root may do all)."""
    mkdir, access = Path.mkdir, os.access

    def guarded_mkdir(path: Path, *arguments: object, **options: object) -> None:
        if path.is_relative_to(folder):
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, *arguments, **options)

    def guarded_access(path: object, mode: int) -> bool:
        return not Path(str(path)).is_relative_to(folder) and access(str(path), mode)

    monkeypatch.setattr(Path, "mkdir", guarded_mkdir)
    monkeypatch.setattr(os, "access", guarded_access)


def test_it_lies_beside_the_sources(places: dict[str, Path]) -> None:
    folder = jit.cache_folder.__wrapped__()
    assert folder == places["package"] / "__pycache__" / f"oxx_env-{jit.source_hash()}"
    assert folder.is_dir()


def test_of_a_read_only_package_it_lies_in_the_users_cache(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(places["package"], monkeypatch)
    folder = jit.cache_folder.__wrapped__()
    assert folder.parent == places["home"] / ".cache"
    assert folder.is_dir()


def test_a_folder_that_is_there_but_read_only_is_passed_over(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    jit.cache_folder.__wrapped__()
    monkeypatch.setattr(os, "access", lambda path, mode: places["home"] in Path(path).parents)
    assert jit.cache_folder.__wrapped__().parent == places["home"] / ".cache"


def test_without_a_writable_home_it_is_temporary(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (places["package"] / "__pycache__").write_text("a file in the way")
    (places["home"] / ".cache").write_text("a file in the way")
    folder = jit.cache_folder.__wrapped__()
    assert folder.parent == places["temporary"]
    assert folder.is_dir()


def test_without_any_home_it_lies_beside_the_sources_all_the_same(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert jit.cache_folder.__wrapped__().parent == places["package"] / "__pycache__"


def test_numbas_own_setting_goes_first(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert jit.cache_folder.__wrapped__().parent == tmp_path / "chosen"


def test_a_new_folder_removes_those_unused_for_long(places: dict[str, Path]) -> None:
    beside = places["package"] / "__pycache__"
    long_ago = time.time() - jit.UNUSED_SECONDS - 60
    for name in ("oxx_env-old", "oxx_env-used", "else-old"):
        (beside / name / "inner").mkdir(parents=True)
        (beside / name / "inner" / "kernel.nbc").touch()
        os.utime(beside / name, (long_ago, long_ago))
    os.utime(beside / "oxx_env-used")  # what a process that uses it does
    folder = jit.cache_folder.__wrapped__()
    assert {path.name for path in beside.iterdir()} == {folder.name, "oxx_env-used", "else-old"}
    os.utime(folder, (long_ago, long_ago))
    assert jit.cache_folder.__wrapped__() == folder
    assert time.time() - folder.stat().st_mtime < 3600


def test_other_packages_caches_stay_where_they_are() -> None:
    before = jit.config.CACHE_DIR
    jit.kernel(lambda: 1)
    assert before == jit.config.CACHE_DIR


# ---- Compiled or not


def test_uncompiled_kernels_play_the_same_games() -> None:
    """With NUMBA_DISABLE_JIT=1 the plain Python functions run: for debugging and for coverage."""
    uncompiled = run(TESTS / "tracing.py", path=jit.PACKAGE.parent, NUMBA_DISABLE_JIT="1")
    assert uncompiled == tracing.sample_hash()


@pytest.mark.slow
def test_a_cold_cache_gives_the_same_games(tmp_path: Path) -> None:
    path = jit.PACKAGE.parent
    cold = run(TESTS / "tracing.py", path=path, NUMBA_CACHE_DIR=str(tmp_path))
    warm = run(TESTS / "tracing.py", path=path, NUMBA_CACHE_DIR=str(tmp_path))
    assert cold == warm == tracing.sample_hash()
