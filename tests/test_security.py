"""No file runs code unless it is named by `py:` or `sb3:`: nothing else in the sources could, and
planted payloads stay quiet."""

from __future__ import annotations

import ast
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxx_env import cards, notation, records, tracker
from oxx_env.commands import _cli
from oxx_env.policy import checkpoint
from tests.stress import fuzz

ROOT = Path(__file__).parents[1]
LOADER = ROOT / "oxx_env" / "bots" / "own.py"  # of a user's own models, the one that may
# Modules whose files can hold code, and ways to run a text. `multiprocessing` (the arena's workers)
# uses pickle between processes of its own, never for files.
FORBIDDEN_MODULES = {
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"),
    *("yaml", "jsonpickle", "code", "codeop", "runpy"),
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "execfile"}


def sources() -> list[Path]:
    """What users run: the package and the training."""
    found = [*(ROOT / "oxx_env").rglob("*.py"), *(ROOT / "training").rglob("*.py")]
    found.remove(LOADER)
    assert len(found) > 60
    return found


def dangers(source: str) -> Iterator[str]:
    """What in a module could run code out of a file, each in words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                if name.split(".")[0] in FORBIDDEN_MODULES:
                    yield f"line {node.lineno}: import of {name}"
        if not isinstance(node, ast.Call):
            continue
        words = {keyword.arg: keyword.value for keyword in node.keywords}
        text = ast.unparse(node.func)
        last = text.rsplit(".", 1)[-1]
        if isinstance(node.func, ast.Name) and text in FORBIDDEN_CALLS:
            yield f"line {node.lineno}: {text}()"
        if text in ("os.system", "os.popen") or _is(words.get("shell"), True):
            yield f"line {node.lineno}: a shell"
        if text in ("torch.load", "th.load") and not _is(words.get("weights_only"), True):
            yield f"line {node.lineno}: torch.load without weights_only"
        if text in ("np.load", "numpy.load") and not _is(words.get("allow_pickle"), False):
            yield f"line {node.lineno}: np.load without allow_pickle=False"
        if _is(words.get("allow_pickle"), True):
            yield f"line {node.lineno}: allow_pickle"
        if last in ("load", "set_parameters") and re.search(r"(PPO|A2C|DQN|learner|model)\.", text):
            yield f"line {node.lineno}: {text}() of stable-baselines3"
        if text == "importlib.import_module" and not _is_own(node.args[0]):
            yield f"line {node.lineno}: a module by name"


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _is_own(name: ast.expr) -> bool:
    """Is the module's name one of the package's own, or of its own tables?"""
    text = ast.unparse(name).lstrip("f").strip("'\"")
    return text.startswith(("oxx_env.", "{__name__}.", "{commands.__name__}.", "kind.module"))


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_source_can_run_code_out_of_a_file(path: Path) -> None:
    assert list(dangers(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import cloudpickle as c",
        "eval(text)",
        "exec(open(name).read())",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "MaskablePPO.load(path)",
        "self.model.set_parameters(path)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
        "importlib.import_module(name)",
    ],
)
def test_each_danger_would_be_found(source: str) -> None:
    assert list(dangers(source))


# ---- Planted payloads


class Payload:
    """Unpickled, it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    """Where the payload's folder would be; afterwards it must not be there."""
    mark = tmp_path / "the payload was here"
    yield mark
    assert not mark.exists()


def planted(mark: Path) -> dict[str, bytes]:
    """Files of several kinds that run the payload in those who unpickle them."""
    raw = pickle.dumps(Payload(mark))
    objects, named = io.BytesIO(), io.BytesIO()
    np.save(objects, np.array([Payload(mark)], object), allow_pickle=True)
    np.savez(named, weights=np.array([Payload(mark)], object), allow_pickle=True)
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w") as file:  # as stable-baselines3 saves a learner
        data = {"policy_class": {":type:": "<class>", ":serialized:": _base64(raw)}}
        file.writestr("data", json.dumps(data))
        file.writestr("policy.pth", raw)
        file.writestr("pytorch_variables.pth", raw)
        file.writestr("_stable_baselines3_version", "2.9.2")
    return {
        "pickle": raw,
        "npy": objects.getvalue(),
        "npz": named.getvalue(),
        "zip": bundle.getvalue(),
    }


def _base64(data: bytes) -> str:
    import base64

    return base64.b64encode(data).decode()


KINDS = ("pickle", "npy", "npz", "zip")


def test_the_payload_works_where_it_is_unpickled(tmp_path: Path) -> None:
    """Else the tests below would show nothing."""
    files = planted(tmp_path / "mark")
    for kind in KINDS[:3]:
        path = tmp_path / "file"
        path.write_bytes(files[kind])
        found = np.load(path, allow_pickle=True)
        if kind == "npz":
            _ = found["weights"]
        os.rmdir(tmp_path / "mark")
    from sb3_contrib import MaskablePPO

    path = tmp_path / "model.zip"
    path.write_bytes(files["zip"])
    with pytest.raises(Exception):  # noqa: B017  (it fails afterwards, in ways of its own)
        MaskablePPO.load(path)
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [checkpoint.WEIGHTS, checkpoint.CONFIG])
def test_a_payload_in_a_checkpoint_is_not_run(
    kind: str, name: str, tmp_path: Path, mark: Path
) -> None:
    weights, config = fuzz.sound_checkpoint()
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / checkpoint.WEIGHTS).write_bytes(weights)
    (folder / checkpoint.CONFIG).write_bytes(fuzz.as_json(config))
    (folder / name).write_bytes(planted(mark)[kind])
    with pytest.raises(checkpoint.CheckpointError):
        checkpoint.load_checkpoint(folder)
    assert _cli.main(["record", "--bots", f"policy:{folder}"]) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_in_a_file_that_users_exchange_is_not_run(
    kind: str, tmp_path: Path, mark: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(planted(mark)[kind])
    with pytest.raises(cards.DeckError):
        cards.load_deck(path)
    with pytest.raises(records.RecordFileError):
        list(records.replay_file(path))
    with pytest.raises(tracker.TrackError):
        tracker.Tracker.load(path)
    with pytest.raises(notation.PositionError):
        notation.read_position(path.read_bytes().decode("latin-1"))
    from oxx_env.arena.log import Log

    with pytest.raises(ValueError), Log(path, fuzz.arena_setup()):
        pass
    for command in (["deck", "check"], ["replay"], ["advise"]):
        assert _cli.main([*command, str(path)]) in (1, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_as_state_of_a_run_is_not_run(kind: str, tmp_path: Path, mark: Path) -> None:
    from training.train import Run

    folder = tmp_path / "run"
    shutil.copytree(fuzz.sound_run(), folder)
    (folder / "state.npz").write_bytes(planted(mark)[kind])
    with pytest.raises(ValueError, match="no state of this run"):
        Run.resume(folder)


def test_payloads_beside_the_files_of_a_run_are_never_opened(tmp_path: Path, mark: Path) -> None:
    """Also stable-baselines3's own zip, which its own `load` would unpickle."""
    from training.train import Run

    folder = tmp_path / "run"
    shutil.copytree(fuzz.sound_run(), folder)
    for place in (folder, folder / "pool", folder / "tensorboard"):
        place.mkdir(exist_ok=True)
        for name in ("model.zip", "best_model.zip", "policy.pth", "vecnormalize.pkl", "state.pkl"):
            (place / name).write_bytes(planted(mark)["zip" if name.endswith("zip") else "pickle"])
    run = Run.resume(folder)
    run.learner.collect_rollouts  # noqa: B018  (it is whole)
    assert run.decisions > 0


# ---- What it is built of


def test_importing_the_package_loads_nothing_that_unpickles() -> None:
    code = (
        "import sys, oxx_env; print(*sorted({'torch', 'cloudpickle', 'joblib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "torch" not in loaded and "joblib" not in loaded


# ---- A user's own models


def test_one_module_imports_by_name_and_unpickles() -> None:
    assert list(dangers(LOADER.read_text(encoding="utf-8")))


def test_it_is_allowed_only_where_a_bot_was_typed_or_a_program_says_so() -> None:
    """`own_code=True` stands where the options of a command are read, and nowhere else."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) != "Kind"
        and any(word.arg == "own_code" and _is(word.value, True) for word in node.keywords)
    }
    commands = {"oxx_env/commands/_arena.py", "oxx_env/commands/_seats.py"}
    assert found == {*commands, "training/evaluate.py", "training/regret.py"}


@pytest.mark.parametrize("name", ["py:evil.py:Bot", "py:evil:Bot", "sb3:evil.zip"])
def test_a_bot_named_in_a_file_is_not_run(
    name: str, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a checkpoint, a log, a record, or where an environment is made."""
    from oxx_env import bots
    from oxx_env.arena import play
    from oxx_env.arena.log import Log

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("evil.py").write_text(f"import os; os.mkdir({str(mark)!r})")
    Path("evil.zip").write_bytes(planted(mark)["zip"])
    setup = fuzz.arena_setup()
    Path("log").write_text(json.dumps({**setup.header(), "specs": [name, name]}) + "\n")
    with pytest.raises(ValueError, match="was begun with specs"), Log("log", setup):
        pass
    for call in (
        lambda: bots.make(name),
        lambda: bots.make(f"search:champion:4:player={name}"),
        lambda: bots.make(f"policy:{name}"),
        lambda: play([name, "greedy"], players=2, games=2, log="log"),
    ):
        with pytest.raises(ValueError):
            call()
