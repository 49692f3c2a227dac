"""The command `oxx`: find the command named, build it from its arguments, run it.

The commands are the modules of `oxx_env.commands`; its docstring says how to add one. This module
knows none of them. It gives all of them the same manners:

- `oxx --help` lists the commands with an example each, `oxx COMMAND --help` explains one;
- exit code 0 done, 1 a readable deck or record fails its check, 2 unusable input or option;
- a mistake gives one message on stderr, never a traceback (set OXX_TRACEBACK=1 to see one);
- Ctrl-C ends with 130 and a closed pipe with 141, both quietly.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import Any

from oxx_env import commands
from oxx_env.commands import OK, UNUSABLE, Command, UserError
from oxx_env.lib import extras
from oxx_env.lib.imports import UntriedVersion
from oxx_env.lib.shell import INTERRUPTED, quietly
from oxx_env.lib.texts import message, shown
from oxx_env.lib.version import __version__

INTERNAL = 70  # a fault of ours (EX_SOFTWARE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `oxx` with `argv` (default: the process's arguments) and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without this letter shows a "?"
            stream.reconfigure(errors="replace")
    with shown():
        return quietly(lambda: _told(list(sys.argv[1:] if argv is None else argv)))


def _told(argv: list[str]) -> int:
    try:
        code = _run(argv)
        sys.stdout.flush()  # so that a closed pipe or a full disk shows here
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("OXX_TRACEBACK"):
            raise
        told, code = _explain(error)
        print(f"oxx: {message(told)}", file=sys.stderr)
        return code


def command_names() -> list[str]:
    """All commands, as typed: `deck check`."""
    names = (module.name for module in pkgutil.iter_modules(commands.__path__))
    return sorted(name.replace("_", " ") for name in names if not name.startswith("_"))


def load_command(name: str) -> type[Command]:
    """The dataclass of the command called `name`."""
    return importlib.import_module(f"{commands.__name__}.{name.replace(' ', '_')}").Run


def _run(argv: list[str]) -> int:
    names = command_names()
    for name in names:
        words = name.split()
        if argv[: len(words)] == words:
            return _run_command(name, argv[len(words) :])

    words = [word for word in argv if not word.startswith("-")]
    group = [name for name in names if words and name.split()[:1] == words[:1]]
    if "--help" in argv or "-h" in argv or argv == ["help"]:
        if words and not group and argv != ["help"]:
            raise UserError(_unknown(" ".join(words), names))
        print(overview(group or names))
        return OK
    if argv == ["--version"]:
        print(f"oxx {__version__}")
        return OK
    if not argv:
        print(overview(names), file=sys.stderr)
        return UNUSABLE
    if argv[0].startswith("-"):
        raise UserError(f"unknown option {argv[0]!r}; a command comes first, see oxx --help")
    if group:
        raise UserError(f"after {words[0]!r} comes one of: {', '.join(_rest(group))}")
    raise UserError(_unknown(argv[0], names))


def _run_command(name: str, arguments: list[str]) -> int:
    import tyro

    kind = load_command(name)
    _refuse_unknown_options(kind, arguments)
    try:
        command = tyro.cli(
            kind,
            prog=f"oxx {name}",
            description=_description(kind, bool({"-h", "--help"} & set(arguments))),
            args=arguments,
            config=(
                tyro.conf.PositionalRequiredArgs,
                tyro.conf.PositionalMetavarFromFieldName,
                tyro.conf.FlagCreatePairsOff,
                tyro.conf.HelptextFromCommentsOff,
            ),
        )
    except SystemExit as stop:  # help was printed, or an option does not exist
        return stop.code if isinstance(stop.code, int) else UNUSABLE
    if command.seed is not None and command.seed < 0:
        raise UserError(f"--seed {command.seed}: should be 0 or more")
    return command.run()


def _description(kind: type[Command], whole: bool) -> str:
    """What `--help` says of a command before its options; `whole`: it will be shown."""
    text = f"{inspect.getdoc(kind)}\n\nExample: {kind.example}"
    if kind.names_bots and whole:
        from oxx_env import bots

        listed = "\n".join(f"    {line}" for line in bots.describe().splitlines())
        text += f"\n\nBots, with options in brackets:\n{listed}"
    return text


def _refuse_unknown_options(kind: type[Command], arguments: list[str]) -> None:
    """Name a misspelt option before tyro takes the word after it for the option's value."""
    fields = [field for field in dataclasses.fields(kind) if not _is_positional(field)]
    known = ["--help", *("--" + field.name.replace("_", "-") for field in fields)]
    for argument in arguments:
        option = argument.partition("=")[0].replace("_", "-")
        if option.startswith("--") and option not in known:
            close = difflib.get_close_matches(option, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise UserError(f"unknown option {option!r}; {hint}options are {', '.join(known)}")


def _is_positional(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def overview(names: Sequence[str]) -> str:
    """The text of `oxx --help`: every command with its summary and an example."""
    lines = ["usage: oxx COMMAND [ARGUMENTS] [--help]", ""]
    for name in names:
        kind = load_command(name)
        summary = (inspect.getdoc(kind) or "").partition("\n")[0]
        lines += [f"  {name:<12}  {summary}", f"  {'':<12}  $ {kind.example}", ""]
    lines.append("oxx COMMAND --help explains one of them; oxx --version prints the version.")
    return "\n".join(lines)


def _unknown(word: str, names: list[str]) -> str:
    known = [*names, *(name.split()[0] for name in names)]
    close = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown command {word!r}; {hint}commands are {', '.join(names)}"


def _rest(group: list[str]) -> list[str]:
    return [name.partition(" ")[2] for name in group]


def _explain(error: Exception) -> tuple[str, int]:
    """The message for an error, and the exit code."""
    if isinstance(error, ImportError) and (missing := extras.explain(error)):
        return str(missing), UNUSABLE
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}", UNUSABLE
    if isinstance(error, UserError | ValueError | OSError | UntriedVersion):
        return str(error), UNUSABLE
    hint = "a fault of oxx; OXX_TRACEBACK=1 shows where"
    return f"{type(error).__name__}: {error} ({hint})", INTERNAL


if __name__ == "__main__":
    sys.exit(main())
