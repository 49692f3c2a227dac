"""The commands of `oxx`, one module each; `oxx_env.commands._cli` finds, parses and runs them.

How to add a command: write one module in this folder. Nothing else is needed; there is no list of
commands to keep.

    oxx_env/commands/deck_check.py  →  oxx deck check      (an underscore begins a second word)

The module holds one dataclass named `Run`, from which tyro derives the command line:

    from dataclasses import dataclass
    from typing import Annotated, ClassVar

    from oxx_env.commands import Report, Texts, UserError
    from oxx_env.lib.options import Range

    @dataclass(kw_only=True)
    class Run(Report):                        # Command instead, where there is no --json
        '''Play bots against each other.      <- first line: the summary in `oxx --help`

        More text for `oxx arena --help`.
        '''

        example: ClassVar[str] = "oxx arena greedy random --games 1000"

        specs: Texts                          # no default: a positional argument
        '''The bots, at most one per seat.'''
        players: Annotated[int, Range(2, 10)] = 4   # with a default: the option --players
        '''Players at the table, 2 to 10.'''

        def run(self) -> int:                 # the exit code: OK or FAILED
            from oxx_env import arena         # heavy imports here, see below

            result = arena.play(self.specs, players=self.players, seed=self.seed)
            self.report(result.to_dict(), bots_table(result))
            return OK

- Every field says meaning and unit in a string below it. Options are spelled with hyphens
  (`--run-dir`), a `bool` field is a flag, a `Literal` field lists its choices. What may be missing
  is an `Optional[int]`, several words are `Texts`: for other ways to write that, tyro imports more.
  A misspelt option fails; no option may be abbreviated.
- `--seed` comes from `Command`; `--json` and `report(data, text)` from `Report`, which prints
  either one JSON object or the text on stdout. Everything that is not the result (progress, notes)
  goes to stderr: `self.note(...)`.
- At the top of the module import only the standard library and this package, and in `run` what the
  work needs: `oxx --help` imports all command modules and must stay quick (a test checks that it
  loads neither numba nor torch).
- A field's `Range` (`Annotated[int, Range(1)]`) is checked before `run`.
- A user's mistake is a ValueError (`UserError` and `DeckError` are some), an OSError, or an extra
  that is not installed: one message on stderr and exit code 2. Ctrl-C and a closed pipe end without
  one. So a command needs no `try` around its work.
- Exit codes: `OK` 0; `FAILED` 1, a readable deck or record fails its check; `UNUSABLE` 2, input or
  option that cannot be used.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from oxx_env.lib.options import Range
from oxx_env.lib.shell import UNUSABLE as UNUSABLE
from oxx_env.lib.shell import UserError as UserError

if TYPE_CHECKING:
    Texts = tuple[str, ...]
else:
    Texts = tuple  # tyro takes it for the same, without importing typeguard (0.1 s)

OK = 0
FAILED = 1  # a readable deck or record fails its check


@dataclass(kw_only=True)
class Command(ABC):
    """What all commands share."""

    example: ClassVar[str]  # one command line, shown in the help
    names_bots: ClassVar[bool] = False  # should the help list the bots?

    seed: Annotated[int, Range(0)] = 0
    """Seed of everything random here: the same command with the same seed does the same."""

    @abstractmethod
    def run(self) -> int:
        """Do the work and return the exit code, `OK` or `FAILED`."""

    def note(self, text: str) -> None:
        """Tell the user something that is not the result."""
        print(text, file=sys.stderr, flush=True)


@dataclass(kw_only=True)
class Report(Command):
    """A command that reports a result, as text or as one JSON object."""

    json: bool = False
    """Print one JSON object instead of text."""

    def report(self, data: dict[str, Any], text: str) -> None:
        """Print the result: `data` with `--json` (numpy values will do), else `text`."""
        if self.json:
            text = json.dumps(data, default=_plain, allow_nan=False)
        print(text)


def _plain(value: Any) -> Any:
    """A numpy scalar or array, a path or the like, as JSON knows it."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
