"""What the documentation takes from the project itself, so that it cannot go stale.

A line `<!-- include: KIND ARGUMENT -->` of a page is replaced:

    help train.py     what `python training/train.py --help` prints
    oxx arena         what `oxx arena --help` prints; `oxx` alone: the overview
    bots              the registry of bots
    levels            the opponents of the table in the browser
    observation       the pieces of the observation
    strength          the strength tables of all shipped checkpoints, from their model cards
    file PATH         a Markdown file of the project, its headings one level down
    text PATH         any other file, as it is

`PlainDocstrings` lays out the docstrings of the API pages: columns stay columns.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import re
import sys
from pathlib import Path
from typing import Any

import griffe
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parents[1]
_INCLUDE = re.compile(r"^<!-- include: (\w+) ?(.*?) -->$", re.MULTILINE)
_COLUMNS = re.compile(r"^\S.*?\S?  +\S")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page with all its includes replaced."""
    return _INCLUDE.sub(lambda found: _include(found[1], found[2]), markdown)


def on_config(config: Any) -> Any:
    """The project's own modules can be imported while the pages are built."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return config


def _include(kind: str, argument: str) -> str:
    if kind not in KINDS:
        raise PluginError(f"include: {kind!r} is none of {', '.join(KINDS)}")
    try:
        return KINDS[kind](argument)
    except (ImportError, OSError) as error:
        raise PluginError(f"include: {kind} {argument}: {error}") from error


# --- what can be included -----------------------------------------------------------------------


@functools.cache
def _help(script: str) -> str:
    """The help of a training script; imports it, so that torch is loaded once for all."""
    module = importlib.import_module(f"training.{script.removesuffix('.py')}")
    return _fenced(_printed(module.main, f"python training/{script}"))


@functools.cache
def _oxx(command: str) -> str:
    from oxx_env.commands import _cli

    if not command:
        return _fenced(_cli.overview(_cli.command_names()))
    words = [*command.split(), "--help"]
    return _fenced(_printed(lambda _: _cli.main(words), f"oxx {command}"))


def _printed(main: Any, program: str) -> str:
    """What a command prints when it is asked for help; a seed drawn for each call does not show."""
    out = io.StringIO()
    columns, name = os.environ.get("COLUMNS"), sys.argv[0]
    os.environ["COLUMNS"], sys.argv[0] = "96", program
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main(["--help"])
    finally:
        sys.argv[0] = name
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
    text = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    text = re.sub(r"default: \d{12,}", lambda seed: "default: drawn".ljust(len(seed[0])), text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _bots(_: str) -> str:
    from oxx_env import bots

    lines = ["| write | plays |", "|---|---|"]
    for name, kind in bots.BOTS.items():
        lines.append(f"| `{kind.usage(name)}` | {kind.summary} |")
        lines += [f"| … `{option}=` | {what} |" for option, what in kind.options.items()]
    return "\n".join(lines)


def _levels(_: str) -> str:
    from oxx_env.web.levels import levels

    lines = ["| level | how it plays | bot |", "|---|---|---|"]
    lines += [f"| {level.title} | {level.about} | `{level.spec}` |" for level in levels()]
    return "\n".join(lines)


def _observation(_: str) -> str:
    from oxx_env import observe

    lines = ["| piece | first entry | shape | entries of the last axis |", "|---|---|---|---|"]
    for piece in observe.describe():
        shape = " x ".join(map(str, piece["shape"]))
        fields = ", ".join(piece["fields"])
        lines.append(f"| `{piece['name']}` | {piece['start']} | {shape} | {fields} |")
    return "\n".join(lines)


def _strength(_: str) -> str:
    """Every shipped checkpoint's card; the smallest training first."""
    folders = [path.parent for path in sorted((ROOT / "checkpoints").glob("*/config.json"))]
    parts = []
    for folder in folders:
        card = (folder / "README.md").read_text("utf-8")
        policy = '"oxx-policy/' in (folder / "config.json").read_text("utf-8")
        name = f"policy:{folder.name}" if policy else folder.name
        card = re.sub(r"^# .*$", f"# `{name}`", card, count=1, flags=re.MULTILINE)
        card = card.replace("## Strength\n\n", "").replace("PATH", folder.name)
        parts.append(_lower(_lower(card.replace("## Limits\n\n", ""))))
    return "\n\n".join(parts)


def _file(path: str) -> str:
    return _lower((ROOT / path).read_text("utf-8").partition("\n")[2])


def _text(path: str) -> str:
    return _fenced((ROOT / path).read_text("utf-8").rstrip())


def _lower(markdown: str) -> str:
    return re.sub(r"^(#+ )", r"#\1", markdown, flags=re.MULTILINE)


def _fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text}\n```"


KINDS = {
    "help": _help,
    "oxx": _oxx,
    "bots": _bots,
    "levels": _levels,
    "observation": _observation,
    "strength": _strength,
    "file": _file,
    "text": _text,
}


# --- docstrings ---------------------------------------------------------------------------------


class PlainDocstrings(griffe.Extension):
    """Docstrings are plain text with columns and examples: keep their layout in Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)


def plain(docstring: str) -> str:
    """A docstring as Markdown: paragraphs with columns, indented ones and examples are fenced."""
    blocks: list[list[str]] = [[]]
    for line in docstring.splitlines():
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    told = []
    for block in filter(None, blocks):
        text = "\n".join(block)
        if block[0].lstrip().startswith(">>>"):
            told.append(_fenced(text, "pycon"))
        elif block[0].startswith(" ") or any(map(_COLUMNS.match, block)):
            told.append(_fenced(text))
        else:
            told.append(_literal(text))
    return "\n\n".join(told)


def _literal(text: str) -> str:
    """Words as they stand: outside of backquotes nothing is a link, a list or emphasis."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([\[\]*<])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)
