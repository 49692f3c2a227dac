"""The documentation builds strictly and loads nothing from elsewhere; its examples run; the
notebooks call the library and define nothing."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from oxx_env import observe
from oxx_env.commands import _cli
from oxx_env.envs.match import RENDER_MODES

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documentation."""
    for module in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(module, reason="the documentation needs pip install 'oxx_env[docs]'")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning_and_has_a_page_for_each_file(site):
    for page in PAGES:
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site):
    loads = re.compile(r"""<(?:script|img|iframe|source)[^>]*\bsrc=["']?(?:https?:)?//[^>]*>""")
    style = re.compile(r"""<link(?![^>]*rel=["']?canonical)[^>]*href=["']?(?:https?:)?//[^>]*>""")
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert not loads.findall(text) + style.findall(text), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text("utf-8"))


@pytest.mark.slow
def test_what_is_included_comes_from_the_project(site):
    bots = (site / "bots.html").read_text("utf-8")
    for card in (ROOT / "checkpoints").glob("*/README.md"):
        told = json.loads((card.parent / "config.json").read_text())
        kind = "policy:" if told["format"] == "oxx-policy/1" else ""
        assert f"<code>{kind}{card.parent.name}</code>" in bots
        for share in re.findall(r"\| (\d\.\d{3} \(\d\.\d{3} to \d\.\d{3}\)) \|", card.read_text()):
            assert share in bots
    training = (site / "training.html").read_text("utf-8")
    assert all(f"python training/{name}.py" in training for name in ("train", "strength"))
    assert "--gamma" in training
    for path in site.rglob("*.html"):
        assert "include: " not in path.read_text("utf-8"), path


def test_an_include_that_is_not_there_breaks_the_build():
    pytest.importorskip("griffe", reason="the documentation needs pip install 'oxx_env[docs]'")
    errors = pytest.importorskip("mkdocs.exceptions")
    hooks = runpy.run_path(str(ROOT / "docs/hooks.py"))
    for line in ("nothing", "text nowhere.txt", "help nowhere.py"):
        with pytest.raises(errors.PluginError, match="include: "):
            hooks["on_page_markdown"](f"a\n<!-- include: {line} -->\nb")


def test_docstrings_keep_their_columns_and_mean_nothing_else():
    pytest.importorskip("griffe", reason="the documentation needs pip install 'oxx_env[docs]'")
    pytest.importorskip("mkdocs")
    plain = runpy.run_path(str(ROOT / "docs/hooks.py"))["plain"]
    assert plain("Heads [110][6] of `a[0]`.") == "Heads \\[110\\]\\[6\\] of `a[0]`."
    told = plain("One.\n\nname  what\nseat  who\n\n>>> 1 + 1\n2\n")
    assert told == "One.\n\n```text\nname  what\nseat  who\n```\n\n```pycon\n>>> 1 + 1\n2\n```"


# --- pages as they are written --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["index", "environment", "bots"])
def test_the_examples_of_a_page_run(name):
    blocks = [text for kind, text in FENCE.findall(page(name)) if kind == "python"]
    assert blocks
    for block in blocks:
        exec(compile(block, f"{name}.md", "exec"), {**globals_of(name)})


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def globals_of(name: str) -> dict[str, object]:
    from oxx_env import baron_oxx_v0

    return {"__name__": name, "baron_oxx_v0": baron_oxx_v0}


def test_every_command_of_the_documentation_exists_with_its_options():
    lines = [
        line
        for path in [*PAGES, ROOT / "README.md"]
        for _, text in FENCE.findall(path.read_text("utf-8"))
        for line in text.splitlines()
        if line.startswith("oxx ") and not line.startswith("oxx COMMAND")
    ]
    assert len(lines) > 15
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if words == ["--help"]:
            continue
        name = next(n for n in _cli.command_names() if words[: len(n.split())] == n.split())
        options = {
            "--" + field.name.replace("_", "-")
            for field in dataclasses.fields(_cli.load_command(name))
        }
        assert {word for word in words if word.startswith("--")} <= {*options, "--help"}, line


def test_the_environment_page_tells_what_is():
    told = page("environment")
    assert f"float32 [{observe.OBS}]" in told and f"observation: ({observe.OBS},)" in told
    assert f"Observation version {observe.OBSERVATION_VERSION}, {observe.OBS} entries" in told
    assert all(f"`{mode}`" in told for mode in RENDER_MODES)


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8"))
    assert sorted(listed) == sorted(str(path.relative_to(ROOT / "docs")) for path in PAGES)


def test_the_tests_that_are_named_exist():
    named = set(re.findall(r"`(test_\w+\.py)`", page("reliability")))
    assert len(named) > 10 and all((ROOT / "tests" / name).is_file() for name in named)


# --- notebooks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_call_the_library_and_define_nothing(path):
    cells = [c for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    assert cells and not any(cell["outputs"] for cell in cells)
    defines = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        assert not any(isinstance(node, defines) for node in ast.walk(tree))


def test_the_index_names_every_notebook():
    assert all(f"`notebooks/{path.name}`" in page("index") for path in NOTEBOOKS)
