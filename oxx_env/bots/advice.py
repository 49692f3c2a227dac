"""What a bot advises in a position: every legal action, how much worse it is than the best, and how
sure that is.

All actions are played out on the same deals of what is hidden, so that the luck they share drops
out of their *difference*, and each difference has its own standard error, from deal to deal. More
deals are tried while it is unclear which action is best. An action is *about equal* to the choice
where their difference is within `ERRORS` standard errors.

>>> import numpy as np
>>> from oxx_env.game.table import Table
>>> table = Table(players=2)
>>> table.deal(seed=1)
>>> advice = advise(table.view(0), "mc:50", np.random.default_rng(0))
>>> [option.card for option in advice], sum(option.choice for option in advice)
([30, 39, 56, 99], 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from oxx_env import bots
from oxx_env.game.rules import FIRST_ROW, PASS
from oxx_env.game.views import View

if TYPE_CHECKING:
    from oxx_env.bots.monte_carlo import Outcomes

EVALUATOR = "mc:1000"  # gives the figures for a bot that only knows its choice
ERRORS = 2.0  # standard errors within which a difference may be luck
SURE = 3.0  # standard errors from which on no more deals are tried
FEW = 20  # deals below which nothing is clear: their spread is not known well enough


@dataclass(frozen=True)
class Option:
    """One legal action.

    action       0-3 hand slot, 4-8 row
    card         number of the card to play, or that is being placed
    row          row 0-4; None where a card is chosen
    points       own points at the end of this game, expected, as the rulebook counts them
    win_share    share of the victory, expected, 0 to 1
    difference   how much better than the choice, in the quantity that the bot chooses by: relative
                 points or share of the victory; higher is better, 0 for the choice
    se           standard error of the difference
    about_equal  is the difference within `ERRORS` standard errors? False for the choice
    choice       is this the advice?
    win_difference, win_se  the same for the share of the victory
    """

    action: int
    card: int
    row: int | None
    points: float
    win_share: float
    difference: float
    se: float
    about_equal: bool
    choice: bool
    win_difference: float
    win_se: float

    @property
    def name(self) -> str:
        """`card 52` or `row 3`."""
        return f"card {self.card}" if self.row is None else f"row {self.row}"

    @property
    def worse(self) -> bool:
        """Is it worse than the choice beyond the error?"""
        return self.difference < 0 and not (self.about_equal or self.choice)

    def to_dict(self) -> dict[str, Any]:
        data = asdict(self)
        del data["win_difference"], data["win_se"]
        return data


@dataclass(frozen=True)
class Advice(Sequence[Option]):
    """The options in order of action, and what they rest on.

    options  every legal action
    by_wins  is it the share of the victory that the choice is by, or relative points?
    deals    deals that every action was tried on
    """

    options: tuple[Option, ...]
    by_wins: bool
    deals: int

    @overload
    def __getitem__(self, index: int) -> Option: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Option]: ...
    def __getitem__(self, index: int | slice) -> Option | Sequence[Option]:
        return self.options[index]

    def __len__(self) -> int:
        return len(self.options)

    @property
    def choice(self) -> Option:
        return next(option for option in self.options if option.choice)

    @property
    def clear(self) -> bool:
        """Is every other action worse beyond the error of the difference?"""
        return all(option.worse for option in self.options if not option.choice)

    def ranked(self) -> list[Option]:
        """The best first, in the quantity that the choice is by; the choice before its equals."""
        return sorted(self.options, key=lambda option: (-option.difference, not option.choice))

    def notes(self) -> list[str]:
        """Sentences: how sure the choice is, and whether the share of the victory agrees."""
        return [*self._sureness(), *self._disagreement()]

    def _sureness(self) -> Iterator[str]:
        equal = [option.name for option in self.ranked() if option.about_equal]
        if self.clear and len(self) > 1:
            yield f"{_capital(self.choice.name)} is clearly best."
        elif equal:
            names = " and ".join(filter(None, [", ".join(equal[:-1]), equal[-1]]))
            yield f"{_capital(self.choice.name)} is about equal to {names}."

    def _disagreement(self) -> Iterator[str]:
        best = max(self.options, key=lambda option: (option.win_share, option.choice))
        if self.by_wins or best.choice:
            return
        gain = f"{100 * best.win_difference:.1f} ± {100 * ERRORS * best.win_se:.1f} %"
        if best.win_difference > ERRORS * best.win_se:
            yield (
                f"Points and wins disagree: {best.name} has the better share of the victory, by "
                f"{gain}; the choice is by points."
            )
        else:
            yield (
                f"By share of the victory {best.name} is first, by {gain}, which is within the "
                "error; the choice is by points."
            )


def advise(view: View, bot: str | bots.Bot, rng: np.random.Generator) -> Advice:
    """Every legal action with what is expected of it, and the choice.

    A bot that plays out (Monte Carlo, search) is asked for all actions on the same deals. The
    number in its specification is the most that are tried: 100 are, then twice as many and so on,
    until one action is better than all others by `SURE` standard errors. So the same seed gives the
    same advice, except by a bot with a time budget. The choice is the action with the best mean;
    what a policy thinks, which `search` counts like some deals when it plays, is left out. For any
    other bot `mc:1000` gives the figures, and the choice is what the bot would do.

    Raises ValueError where the seat has nothing to decide, or for a bot that needs to see hidden
    cards.
    """
    asked = _asked(bot)
    if getattr(asked, "needs_state", False):
        raise ValueError(f"{asked.spec!r} needs to see hidden cards and cannot give advice")
    legal = view.legal
    if legal == [PASS]:
        what = "the game is over" if view.phase == "over" else f"seat {view.seat} is not asked"
        raise ValueError(f"nothing to decide here: {what}")
    own = hasattr(asked, "outcomes")
    evaluator: Any = asked if own else bots.make(EVALUATOR)
    found: Outcomes
    for found in evaluator.outcomes(view, rng):
        best = _best(found)
        if all(_beyond(found, best, other, SURE) for other in legal if other != best):
            break
    if not own:
        best = int(asked.act(view, rng))
    options = tuple(_option(view, found, action, best) for action in legal)
    return Advice(options, evaluator.by_wins, found.deals)


def _best(found: Outcomes) -> int:
    """The action with the best mean."""
    return max(found.legal, key=lambda action: found.values[action])


def _beyond(found: Outcomes, better: int, worse: int, errors: float) -> bool:
    """Is the difference of two actions beyond so many of its standard errors?"""
    difference, se = found.above(better, worse)
    return found.deals >= FEW and abs(difference) > errors * se


def _option(view: View, found: Outcomes, action: int, choice: int) -> Option:
    difference, se = found.above(action, choice)
    win_difference, win_se = found.above(action, choice, shares=True)
    return Option(
        action=action,
        card=_card(view, action),
        row=action - FIRST_ROW if action >= FIRST_ROW else None,
        points=float(found.points[action]),
        win_share=float(found.shares[action]),
        difference=difference,
        se=se,
        about_equal=action != choice and not _beyond(found, action, choice, ERRORS),
        choice=action == choice,
        win_difference=win_difference,
        win_se=win_se,
    )


def _asked(bot: str | bots.Bot) -> Any:
    return bots.make(bot) if isinstance(bot, str) else bot


def basis(bot: str | bots.Bot) -> str:
    """Sentences on what the choice and its differences rest on."""
    asked = _asked(bot)
    own = hasattr(asked, "outcomes")
    evaluator: Any = asked if own else bots.make(EVALUATOR)
    quantity = "share of the victory" if evaluator.by_wins else "points against the others' mean"
    source = (
        "" if own else f"The choice is that of {asked.spec}; the figures are from {EVALUATOR}. "
    )
    return (
        f"{source}Difference: {quantity} {evaluator.outlook}, compared with the choice on the same "
        "deals; higher is better, and ± is twice the standard error. Points and wins are those "
        "expected at the end of the game."
    )


def _card(view: View, action: int) -> int:
    if action < FIRST_ROW:
        return view.hand[action]
    assert view.card is not None
    return view.card


def lines(advice: Advice, bot: str | bots.Bot) -> list[str]:
    """Sentences below the table: how sure the choice is, then what the figures rest on."""
    return [*advice.notes(), basis(bot)]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def table(advice: Advice) -> tuple[list[str], list[list[str]]]:
    """Header and lines for people, the best first."""
    header = ["", "difference", "expected points", "win share", ""]
    lines = [
        [
            option.name,
            _difference(option, advice.by_wins),
            f"{option.points:.1f}",
            f"{100 * option.win_share:.0f} %",
            "best choice" if option.choice else "about equal" if option.about_equal else "",
        ]
        for option in advice.ranked()
    ]
    return header, lines


def _difference(option: Option, by_wins: bool) -> str:
    scale, unit = (100, " %") if by_wins else (1, "")
    if option.choice:
        return f"0{unit}"
    return f"{scale * option.difference:+.1f} ± {ERRORS * scale * option.se:.1f}{unit}"
