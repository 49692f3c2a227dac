"""`oxx track`: the companion for a whole game at a real table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from oxx_env.bots import ADVISER
from oxx_env.commands import OK, Report, UserError
from oxx_env.game.options import TableOptions

if TYPE_CHECKING:
    from oxx_env.bots import Bot
    from oxx_env.bots.advice import Advice
    from oxx_env.notation.tracker import Tracker
    from oxx_env.show.terminal import Terminal

HELP = """Type card numbers with blanks between them, or the number of a row (0 to 4), and Enter.
u or undo    take the last entry back
t or table   show the table again
h or hint    what to do, asked again
o or over    positive: no card can be placed any more, the game is over
q or quit    stop (Ctrl-C and Ctrl-D too); the same command goes on from there
The letters behind a card's number are its heads: B blue, Y yellow, G green, R red, K black,
W white."""


@dataclass(kw_only=True)
class Run(TableOptions, Report):
    """Follow a real game: enter what you see, get advice at each of your decisions.

    Enter the five row cards, your hand whenever you drew a new one, all cards of a round when they
    are revealed, and the row where a player had a choice; forced placements are done for you.
    Everything is kept in the file at once, and the same command goes on from there.

    Seats count from 0 in the order in which you will type the cards of a round.
    """

    example: ClassVar[str] = "oxx track game.json --players 4 --seat 0"
    names_bots: ClassVar[bool] = True

    file: str
    """The game: made if it does not exist, else gone on with (its players, rules, deck, seat)."""
    seat: int = 0
    """Your seat, from 0."""
    bot: str = ADVISER
    """The bot that gives advice."""
    record: str = ""
    """When the game is over, add its record to this file (not in positive, where cards stay hidden
    to the end)."""
    plain: bool = False
    """For screen readers: plain sentences, colors as words, no layout."""

    def run(self) -> int:
        from oxx_env.commands._seats import fair
        from oxx_env.game.rules import counts_victory_points
        from oxx_env.notation.tracker import Tracker
        from oxx_env.show.terminal import Terminal

        bot = fair(f"--bot {self.bot}", self.bot)
        resumed = Path(self.file).exists()
        if resumed:
            tracker = Tracker.load(self.file)
        else:
            tracker = Tracker(self.players, self.rules, self.deck, self.seat)
        if self.record and counts_victory_points(tracker.rules):
            raise UserError("--record: in positive, cards stay hidden to the end")
        companion = Companion(tracker, self.file, bot, self.seed, Terminal(self.plain))
        if self.json:
            self.report(companion.data(), "")
            return OK
        tracker.save(self.file)  # a file that cannot be written: say so now
        if self.record:
            with open(self.record, "a", encoding="utf-8"):  # this one too
                pass
        companion.follow(resumed)
        if self.record and tracker.expects == "over":
            self._add_record(tracker.record())
        return OK

    def _add_record(self, record: dict[str, Any]) -> None:
        """Append a finished game, if the same command did not do so before."""
        from oxx_env.lib.files import read_text
        from oxx_env.notation.records import to_line

        line = to_line(record) + "\n"
        if line in read_text(self.record, 1 << 30).splitlines(keepends=True):
            self.note(f"the record is in {self.record} already")
            return
        with open(self.record, "a", encoding="utf-8") as file:
            file.write(line)
        self.note(f"record added to {self.record}")


class Companion:
    """Asks for what happened at the table and gives advice."""

    def __init__(
        self, tracker: Tracker, file: str, bot: Bot, seed: int, terminal: Terminal
    ) -> None:
        from oxx_env.game.rules import deck_cards

        self.tracker, self.file = tracker, file
        self.bot, self.seed, self.terminal = bot, seed, terminal
        self.deck = deck_cards(tracker.decks[0])
        self.names = [
            "you" if seat == tracker.seat else f"seat {seat}" for seat in range(tracker.players)
        ]

    def data(self) -> dict[str, Any]:
        """The state as plain JSON: what is expected, the view, and advice where one is due."""
        tracker = self.tracker
        known = tracker.expects not in ("rows", "hand")
        found = self._advice() if self._own_decision() else None
        return {
            "file": self.file,
            "expects": tracker.expects,
            "view": tracker.view().to_dict() if known else None,
            "bot": self.bot.spec,
            "advice": [option.to_dict() for option in found or ()],
            "clear": found.clear if found else None,
        }

    def follow(self, resumed: bool) -> None:
        """Follow the game to its end, or until the person quits."""
        from oxx_env.game.scoring import direction
        from oxx_env.show.terminal import Quit

        tracker, say = self.tracker, self.terminal.say
        say(
            f"{'Going on with' if resumed else 'Following'} a game of {tracker.rules} for "
            f"{tracker.players}; you are seat {tracker.seat}; {direction(tracker.rules)}. "
            "Type ? for help, q to quit."
        )
        show = True
        try:
            while tracker.expects != "over":
                if show:
                    self._show()
                show = self._answer(self.terminal.ask(self._prompt()))
        except (Quit, KeyboardInterrupt):
            say(f"Good-bye. The game is kept in {self.file}.")
            return
        self._result()

    # --- asking ---

    def _prompt(self) -> str:
        tracker = self.tracker
        if tracker.expects == "rows":
            return "The five row cards?"
        if tracker.expects == "hand":
            return f"Your hand, {tracker.hand_size} cards?"
        if tracker.expects == "cards":
            return f"Cards played, of {', '.join(self.names)}?"
        seat, number = tracker.due
        rows = ", ".join(map(str, tracker.legal_rows))
        if seat == tracker.seat:
            return f"Which row do you choose for {number}? ({rows})"
        return f"Which row does {self.names[seat]} choose for {number}? ({rows})"

    def _answer(self, answer: str) -> bool:
        """Do what was typed; True if the state is another one now."""
        from oxx_env.notation.tracker import TrackError

        say, word = self.terminal.say, answer.lower()
        if word in ("?", "help"):
            say(HELP)
        elif word in ("t", "table"):
            self._table()
        elif word in ("h", "hint"):
            self._hint()
        else:
            try:
                if word in ("u", "undo"):
                    say(f"Taken back: {self.tracker.undo()}.")
                    self._announced = 0
                elif word in ("o", "over"):
                    self.tracker.enter_over()
                else:
                    self._enter(answer)
            except TrackError as error:
                say(f"{str(error)[0].upper()}{str(error)[1:]}.")
                return False
            self.tracker.save(self.file)
            return True
        return False

    def _enter(self, answer: str) -> None:
        from oxx_env.game.cards import read_cards
        from oxx_env.notation.tracker import TrackError

        tracker = self.tracker
        if not re.match(r"[0-9]", answer):
            what = repr(answer[:40]) if answer else "nothing"
            raise TrackError(f"{what} is not understood; type numbers, or ? for help")
        if tracker.expects == "row":
            if not re.fullmatch(r"[0-9]{1,9}", answer):
                raise TrackError("one row is asked for")
            tracker.enter_row(int(answer))
            return
        try:
            numbers = read_cards(answer, self.deck)
        except ValueError as error:
            raise TrackError(str(error)) from None
        before = len(tracker.rounds)
        {"rows": tracker.enter_rows, "hand": tracker.enter_hand, "cards": tracker.enter_cards}[
            tracker.expects
        ](numbers)
        if len(tracker.rounds) > before:
            self._announced = 0

    # --- what happened ---

    _announced = 0  # placements of the last round already announced

    def _show(self) -> None:
        """What happened since, the table, and advice at the person's decisions."""
        self._announce()
        if self.tracker.expects in ("rows", "hand"):
            return
        if self.tracker.expects == "cards" or self._own_decision():
            self._table()
        if self._own_decision():
            self._hint()

    def _table(self) -> None:
        if self.tracker.expects in ("rows", "hand"):
            self.terminal.say("The table is known when rows and hand are entered.")
            return
        self.terminal.show(self.tracker.view(), self.names)

    def _announce(self) -> None:
        from oxx_env.notation import wording

        if not self.tracker.rounds:
            return
        placements = self.tracker.rounds[-1]["placements"]
        for placement in placements[self._announced :]:
            name = self.names[placement[0]]
            self.terminal.say(wording.placement(placement, name, self.tracker.rules, self.deck))
        if len(placements) > self._announced:
            self.terminal.say()
        self._announced = len(placements)

    def _own_decision(self) -> bool:
        tracker = self.tracker
        if tracker.expects == "row":
            return tracker.due[0] == tracker.seat
        return tracker.expects == "cards" and tracker.hand_size > 1

    def _advice(self) -> Advice:
        import numpy as np

        from oxx_env.bots import advice

        rng = np.random.default_rng([self.seed, len(self.tracker.entries)])
        return advice.advise(self.tracker.view(), self.bot, rng)

    def _hint(self) -> None:
        from oxx_env.bots import advice

        if not self._own_decision():
            self.terminal.say("You have nothing to decide now.")
            return
        found = self._advice()
        self.terminal.table(*advice.table(found))
        for line in advice.lines(found, self.bot):
            self.terminal.say(line)

    def _result(self) -> None:
        from oxx_env.game.scoring import direction, most_win, winners

        self._announce()
        self.terminal.heading("Game over")
        view = self.tracker.view()
        best = winners(view.scores, view.rules)
        lines = [
            [name, str(view.scores[seat]), "best" if seat in best else ""]
            for seat, name in enumerate(self.names)
        ]
        self.terminal.table(["", "points", ""], lines)
        if most_win(view.rules):
            self.terminal.say("Each head left in hands and draw piles still costs a point.")
        self.terminal.say(f"{direction(view.rules).capitalize()}.")
