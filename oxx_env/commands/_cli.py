"""The command `oxx`: find the command named, build it from its arguments, run it.

The commands are the modules of `oxx_env.commands`; its docstring says how to add one. This module
knows none of them. `oxx --help` lists the commands with an example each, `oxx COMMAND --help`
explains one; how all of them end: `lib.shell.program`.
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
from oxx_env.lib.options import check
from oxx_env.lib.shell import FAULT, program
from oxx_env.lib.texts import message
from oxx_env.lib.version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run `oxx` with `argv` (default: the process's arguments) and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without this letter shows a "?"
            stream.reconfigure(errors="replace")
    try:
        return program("oxx")(_run)(list(sys.argv[1:] if argv is None else argv))
    except Exception as error:
        if os.environ.get("OXX_TRACEBACK"):
            raise
        fault = f"{type(error).__name__}: {error} (a fault of oxx; OXX_TRACEBACK=1 shows where)"
        print(f"oxx: {message(fault)}", file=sys.stderr)
        return FAULT


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
        rest = (name.partition(" ")[2] for name in group)
        raise UserError(f"after {words[0]!r} comes one of: {', '.join(rest)}")
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
    check(command, _spelled)
    return command.run()


def _description(kind: type[Command], with_bots: bool) -> str:
    """What `--help` says of a command before its options, with the bots where it names some."""
    text = f"{inspect.getdoc(kind)}\n\nExample: {kind.example}"
    if kind.names_bots and with_bots:
        from oxx_env import bots

        listed = "\n".join(f"    {line}" for line in bots.describe().splitlines())
        text += f"\n\nBots, with options in brackets:\n{listed}"
    return text


def _refuse_unknown_options(kind: type[Command], arguments: list[str]) -> None:
    """Name a misspelt option before tyro takes the word after it for the option's value."""
    fields = [field for field in dataclasses.fields(kind) if not _is_positional(field)]
    known = ["--help", *(_spelled(field.name) for field in fields)]
    for argument in arguments:
        option = argument.partition("=")[0].replace("_", "-")
        if option.startswith("--") and option not in known:
            close = difflib.get_close_matches(option, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise UserError(f"unknown option {option!r}; {hint}options are {', '.join(known)}")


def _spelled(field: str) -> str:
    """The option of a field."""
    return "--" + field.replace("_", "-")


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


if __name__ == "__main__":
    sys.exit(main())
