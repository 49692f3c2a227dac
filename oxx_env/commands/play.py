"""`oxx play`: a game against bots in the terminal."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from oxx_env.bots import ADVISER
from oxx_env.commands import OK, Command, UserError
from oxx_env.game.options import MatchOptions
from oxx_env.lib.options import Range

if TYPE_CHECKING:
    from oxx_env.bots import Bot
    from oxx_env.game.table import Table
    from oxx_env.game.views import View
    from oxx_env.show.terminal import Terminal

HELP = """Type the number of a card of your hand, or of a row (0 to 4), and Enter.
h or hint   what a strong player would do, how much worse the others are, and how sure that is
u or undo   take your last decision back
t or table  show the table again
r or rules  the rules in a few lines
q or quit   stop (Ctrl-C and Ctrl-D too)
The letters behind a card's number are its heads: B blue, Y yellow, G green, R red, K black,
W white."""


@dataclass(kw_only=True)
class Run(MatchOptions, Command):
    """Play against bots in the terminal.

    At every prompt: type a card's number or a row (0 to 4); h gives a hint, u takes back, ? helps,
    q quits. The game can be kept as a record, which oxx replay checks and shows.
    """

    example: ClassVar[str] = "oxx play --players 4 --bots greedy"
    names_bots: ClassVar[bool] = True

    bots: str = "greedy"
    """Your opponents by specification, separated by commas, in the order of their seats; the last
    one fills the table."""
    seat: int = 0
    """Your seat, from 0."""
    hint: str = ADVISER
    """The bot that gives hints."""
    save: str = ""
    """Add the finished games to this file as records (JSON lines)."""
    plain: bool = False
    """For screen readers: plain sentences, colors as words, no layout."""
    seed: Annotated[int, Range(0)] = field(default_factory=lambda: secrets.randbelow(10**6))
    """Seed of the deal and the bots; without one, each call is another game."""

    def run(self) -> int:
        from oxx_env.commands._seats import at_seats, fair
        from oxx_env.game.table import Table
        from oxx_env.show.terminal import Terminal

        table = Table(self.players, self.rules, self.deck, self.match)
        if not 0 <= self.seat < self.players:
            raise UserError(f"--seat {self.seat}: seats are 0 to {self.players - 1}")
        opponents = at_seats(self.bots, self.players - 1)
        hint = fair(f"--hint {self.hint}", self.hint)
        if self.save:
            with open(self.save, "a", encoding="utf-8"):  # an unwritable file: say so now
                pass
        table.deal(seed=self.seed)
        others = [seat for seat in range(self.players) if seat != self.seat]
        seats = dict(zip(others, opponents, strict=True))
        names = [f"{seats[s].spec} {s}" if s in seats else "you" for s in range(self.players)]
        game = Game(table, seats, names, self.seat, self.seed, hint, Terminal(self.plain))
        try:
            game.play()
        finally:  # also where a person's own bot failed
            if self.save:
                self._save(game)
        return OK

    def _save(self, game: Game) -> None:
        from oxx_env.notation import records

        finished = records.records_of(game.table, f"play-{self.seed}" if self.match > 1 else None)
        with Path(self.save).open("a", encoding="utf-8") as file:
            for record in finished:
                records.write_record(file, record)
        count = f"{len(finished)} finished game{'' if len(finished) == 1 else 's'}"
        game.terminal.say(f"{count} saved in {self.save}")


class Game:
    """A person at one seat of a table, bots at the others.

    The person decides first and the bots after that, each from its own view; a bot's generator
    depends on seed, seat and place in the game only, so what is taken back and done again is
    answered in the same way.
    """

    def __init__(
        self,
        table: Table,
        bots: dict[int, Bot],
        names: list[str],
        seat: int,
        seed: int,
        hint: Bot,
        terminal: Terminal,
    ) -> None:
        from oxx_env.game.rules import deck_cards

        self.table, self.bots, self.names = table, bots, names
        self.seat, self.seed, self.hint = seat, seed, hint
        self.terminal = terminal
        self.deck = deck_cards(table.decks[0])
        self.announced = 0  # events already announced

    def play(self) -> None:
        """Play the match to its end, or until the person quits."""
        from oxx_env.show.terminal import Quit

        terminal = self.terminal
        terminal.say(
            f"A game of {self.table.rules} for {self.table.players}; seed {self.seed} deals it "
            "again. Type ? for help, r for the rules, q to quit."
        )
        try:
            while not self.table.over:
                if self.seat in self.table.deciders():
                    self._announce()
                    self._decide()
                else:
                    self._let_bots_act()
            self._announce()
        except (Quit, KeyboardInterrupt):
            terminal.say("Good-bye. This game was not finished.")
            return
        self._result()

    def _let_bots_act(self) -> None:
        import numpy as np

        for seat in self.table.deciders():
            place = len(self.table.decisions)
            rng = np.random.default_rng([self.seed, seat, place])
            view = self.table.view(seat)
            self.table.act(seat, int(self.bots[seat].act(view, rng)))
            if view.phase == "row":
                return

    # --- asking ---

    def _decide(self) -> None:
        view = self.table.view(self.seat)
        self.terminal.show(view, self.names)
        self._options(view)
        while True:
            action = self._answer(view, self.terminal.ask(self._prompt(view)))
            if action is None:
                continue
            if action == UNDO:
                if self._undo():
                    return
                continue
            self.table.act(self.seat, action)
            return

    def _options(self, view: View) -> None:
        from oxx_env.notation.wording import places, row_choices

        if view.phase == "row":
            assert view.card is not None
            card = self.terminal.card(view.card, self.deck)
            self.terminal.say(f"Your {card} may go to: {row_choices(view, view.card)}")
            return
        for number in view.hand:
            card = self.terminal.card(number, self.deck)
            self.terminal.say(f"{card}: {places(view, number)}")

    def _prompt(self, view: View) -> str:
        if view.phase == "row":
            rows = ", ".join(str(action - 4) for action in view.legal)
            return f"Which row for {view.card}? ({rows})"
        return f"Which card? ({', '.join(map(str, view.hand))})"

    def _answer(self, view: View, answer: str) -> int | None:
        """The action meant; None where something else was asked or the answer is no action."""
        from oxx_env.notation import wording

        say, word = self.terminal.say, answer.lower()
        if word in ("?", "help"):
            say(HELP)
        elif word in ("t", "table"):
            self.terminal.show(view, self.names)
        elif word in ("r", "rules"):
            say(wording.rules_text(self.table.rules))
        elif word in ("u", "undo"):
            return UNDO
        elif word in ("h", "hint"):
            self._hint(view)
        else:
            return self._number(view, answer)
        return None

    def _number(self, view: View, answer: str) -> int | None:
        from oxx_env.game.cards import read_cards

        say = self.terminal.say
        choices = ", ".join(map(str, view.hand))
        if view.phase == "card" and re.match(r"[0-9]+\s*[A-Za-z]", answer):  # as cards are written
            try:
                answer = str(read_cards(answer, self.deck)[0])
            except ValueError as error:
                say(f"{str(error)[0].upper()}{str(error)[1:]}.")
                return None
        if not (answer.isascii() and answer.isdigit()):
            what = "a row from 0 to 4" if view.phase == "row" else f"one of your cards ({choices})"
            meant = f"{answer[:40]!r} is not understood" if answer else "Nothing was typed"
            say(f"{meant}: type {what}; ? shows what else you can type.")
            return None
        number = int(answer[:9])
        if view.phase == "card":
            if number not in view.hand:
                say(f"{number} is not in your hand; your cards are {choices}.")
                return None
            return view.hand.index(number)
        if number > 4:
            say(f"There is no row {number}; rows are 0 to 4.")
            return None
        if number + 4 not in view.legal:
            rows = ", ".join(str(action - 4) for action in view.legal)
            say(f"Row {number} does not end in a color of {view.card}; the rows that do: {rows}.")
            return None
        return number + 4

    def _hint(self, view: View) -> None:
        import numpy as np

        from oxx_env.bots import advice

        rng = np.random.default_rng([self.seed, self.seat, len(self.table.decisions), 1])
        found = advice.advise(view, self.hint, rng)
        self.terminal.table(*advice.table(found))
        for line in advice.lines(found, self.hint):
            self.terminal.say(line)

    def _undo(self) -> bool:
        """Go back to the person's last decision; False where there is none in this game."""
        from oxx_env.notation import records

        decisions = self.table.decisions
        own = [place for place, (seat, _) in enumerate(decisions) if seat == self.seat]
        if not own:
            self.terminal.say("There is nothing to take back yet.")
            return False
        kept = decisions[: own[-1]]
        self.table.deal(seed=self.seed)
        for seat, action in kept:
            self.table.act(seat, action)
        self.announced = len(records.events_of(self.table))
        self.terminal.say("Your last decision is taken back.")
        return True

    # --- what happened ---

    def _announce(self) -> None:
        from oxx_env.notation import records, wording
        from oxx_env.show.terminal import tell_cards

        events = records.events_of(self.table)
        for kind, *rest in events[self.announced :]:
            if kind == "reveal":
                self.terminal.say()
                self.terminal.heading(f"Round {rest[0]}")
                self.terminal.say(tell_cards(rest[1], self.names, self.deck, self.terminal))
            elif kind == "place":
                name = self.names[rest[0][0]]
                self.terminal.say(wording.placement(rest[0], name, self.table.rules, self.deck))
            elif kind == "end":
                self._announce_game_end(rest[0])
        self.announced = len(events)
        self.terminal.say()

    def _announce_game_end(self, record: dict[str, Any]) -> None:
        match = record["match"]
        if match["of"] == 1:
            return  # `_result` follows
        self.terminal.say()
        self.terminal.heading(f"Game {match['game']} of {match['of']} is over")
        lines = [
            [name, str(points), str(points + before)]
            for name, points, before in zip(
                self.names, record["scores"], match["points_before"], strict=True
            )
        ]
        self.terminal.table(["", "points", "match"], lines)

    def _result(self) -> None:
        from oxx_env.game.scoring import direction

        scores, ranks = self.table.scores(), self.table.ranks()
        order = sorted(range(len(scores)), key=lambda seat: ranks[seat])
        self.terminal.heading(
            "The match is over" if self.table.games_per_match > 1 else "Game over"
        )
        lines = [[str(ranks[s]), self.names[s], str(scores[s])] for s in order]
        self.terminal.table(["place", "", "points"], lines)
        winners = self.table.winners()
        goal = direction(self.table.rules)
        if self.seat not in winners:
            names = " and ".join(self.names[seat] for seat in winners)
            self.terminal.say(f"{names} won ({goal}). You finished in place {ranks[self.seat]}.")
        elif len(winners) > 1:
            self.terminal.say(f"You share the victory ({goal}).")
        else:
            self.terminal.say(f"You won ({goal})!")


UNDO = -1  # an answer, not an action
