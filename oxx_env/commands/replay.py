"""`oxx replay`: follow recorded games through the rules, and print them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from oxx_env.commands import FAILED, OK, Report, UserError
from oxx_env.lib.options import Range


@dataclass(kw_only=True)
class Run(Report):
    """Check recorded games against the rules, and print their course.

    Every record of the file is followed card by card; a broken one is named by its number in the
    file, the round and the clause of the rules. Rows and seats are counted from 0. Behind a card's
    number stand its heads: B blue, Y yellow, G green, R red, K black, W white.

    With --svg or --gif one game is drawn as one seat sees it, instead of printed: the table at one
    round, or the whole game as an animation.

    Exit code 0: all records are sound. 1: some are not. 2: the file holds no records.
    """

    example: ClassVar[str] = "oxx replay games.jsonl --game 1"

    file: str
    """JSON lines as `oxx record` writes them; - reads stdin."""
    game: Annotated[int, Range(0)] = 0
    """Print only the course of this game of the file, from 1; 0: of all. All are checked."""
    quiet: bool = False
    """Print no course, only what is broken and the count."""
    svg: str = ""
    """Draw the table after --round into this SVG file."""
    gif: str = ""
    """Draw the whole game into this file, an animation."""
    round: int = -1
    """The round that --svg draws, from 1; 0: the deal; -1: the end."""
    seat: int = 0
    """Whose hand the pictures show."""

    def run(self) -> int:
        from oxx_env.notation.records import RecordError, replay_file

        if self.round != -1 and not self.svg:
            raise UserError("--round chooses what --svg draws; name a file by --svg")
        draws = bool(self.svg or self.gif)
        chosen: dict[str, Any] | None = None
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
            if self.game in (0, count):
                chosen = result.to_dict()
            if not self.json and not self.quiet and not draws and self.game in (0, count):
                print(f"game {count}: {result.course()}\n")
        if self.game > count:
            raise UserError(f"--game {self.game}: {self.file} holds {count} games")
        text = f"{count} game{'s' if count != 1 else ''} replayed: "
        text += f"{len(faults)} broken" if faults else "no fault"
        data: dict[str, Any] = {
            "file": self.file,
            "ok": not faults,
            "games": games,
            "faults": faults,
        }
        if draws and self.game == 0 and count > 1:
            raise UserError(f"{self.file} holds {count} games; choose the one to draw by --game")
        if draws and chosen is not None:
            data["pictures"] = self._draw(chosen)
            text += "".join(f"\n{path}: {what}" for path, what in data["pictures"].items())
        self.report(data, text)
        return FAILED if faults else OK

    def _draw(self, record: dict[str, Any]) -> dict[str, str]:
        """Write the pictures asked for; returns what each file shows."""
        from oxx_env.lib.files import open_atomic
        from oxx_env.show.film import moments, write_gif

        rounds = len(record["rounds"])
        if not -1 <= self.round <= rounds:
            raise UserError(f"--round {self.round}: the game has {rounds} rounds")
        if not 0 <= self.seat < record["players"]:
            raise UserError(f"--seat {self.seat}: the seats are 0 to {record['players'] - 1}")
        film = list(moments(record, self.seat))
        drawn = {}
        if self.svg:
            last = rounds + 1 if self.round < 0 else self.round
            moment = [moment for moment in film if moment.round <= last][-1]
            with open_atomic(self.svg) as file:
                file.write(moment.svg())
            drawn[self.svg] = f"round {moment.round}, {moment.caption}"
        if self.gif:
            with open_atomic(self.gif, "wb") as file:
                count = write_gif(file, film)
            drawn[self.gif] = f"{count} pictures"
        return drawn
