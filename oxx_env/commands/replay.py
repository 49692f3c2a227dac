"""`oxx replay`: follow recorded games through the rules, and print them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from oxx_env.commands import FAILED, OK, Report, UserError


@dataclass(kw_only=True)
class Run(Report):
    """Check recorded games against the rules, and print their course.

    Every record of the file is followed card by card; a broken one is named by its number in the
    file, the round and the clause of the rules. Rows and seats are counted from 0. Behind a card's
    number stand its heads: b blue, y yellow, g green, r red, k black, w white.

    Exit code 0: all records are sound. 1: some are not. 2: the file holds no records.
    """

    example: ClassVar[str] = "oxx replay games.jsonl --game 1"

    file: str
    """JSON lines as `oxx record` writes them; - reads stdin."""
    game: int = 0
    """Print only the course of this game of the file, from 1; 0: of all. All are checked."""
    quiet: bool = False
    """Print no course, only what is broken and the count."""

    def run(self) -> int:
        from oxx_env.records import RecordError, replay_file

        if self.game < 0:
            raise UserError(f"--game {self.game}: should be 1 or more")
        games: list[dict[str, Any]] = []
        faults: list[dict[str, Any]] = []
        count = 0
        for count, result in enumerate(replay_file(self.file), start=1):
            if isinstance(result, RecordError):
                fault = {"game": count, "round": result.round, "clause": result.clause}
                faults.append({**fault, "where": result.where, "message": result.problem})
                if not self.json:
                    print(f"{self.file}: {result}")
                continue
            games.append({"record": count, **result.summary()})
            if not self.json and not self.quiet and self.game in (0, count):
                print(f"game {count}: {result.course()}\n")
        if self.game > count:
            raise UserError(f"--game {self.game}: {self.file} holds {count} games")
        text = f"{count} game{'s' if count != 1 else ''} replayed: "
        text += f"{len(faults)} broken" if faults else "no fault"
        self.report({"file": self.file, "ok": not faults, "games": games, "faults": faults}, text)
        return FAILED if faults else OK
