"""A position as text that a person types, and as the JSON of `View.to_dict()`; checked and rebuilt.

    base 4p seat 0 | rows 12 7-41 5-50-35 9 60 | hand 3 17 52 88 | taken 1:8-91 2:70

>>> view = from_text("4p | rows 12 7-41 5 9 60 | hand 3 17 52 88 | taken 1:8-91")
>>> view.rules, view.players, view.phase, view.scores
('base', 4, 'card', [0, 5, 0, 0])
>>> from_text("4p | rows 12 7 5 9 60 | hand 3 17 5 88")
Traceback (most recent call last):
oxx_env.notation.position_facts.PositionError: card 5 appears twice: it is already in row 2
  4p | rows 12 7 5 9 60 | hand 3 17 5 88
                                    ^

`from_text` reads such a line, `to_text` prints one from any view; `view_from_dict` rebuilds the
view from its JSON. What was typed wrong is a `PositionError` that names the place; for a text the
place is marked by carets.

**The text.** Words and card numbers, parts in any order; `|` and line breaks are for the eye.
Commas or semicolons may stand between numbers, and between rows whose cards are apart by blanks:
`rows 12, 7 41, 5 50 35, 9, 60 | hand 3, 17, 52`.

    base, color, positive, color+positive
                    the rule set (base)
    4p              players
    seat 0          the observer (0); seats are counted from 0, clockwise
    deck balanced   shipped name or path of a CSV (balanced); "..." around a name with blanks
    round 4         rounds finished (the fewest that the cards on the table allow)
    rows A B C D E  the five rows; cards oldest first, joined by hyphens: 90-2-41
    hand 3 17 52    the own cards, without a revealed one
    revealed 2:17 0:33
                    the row phase: seat:card still to be placed; the lowest is being placed now
    taken 1:8-9 2:70
                    Oxx piles, seat:cards, as far as they are remembered
    points 0 6 3 0  points of this game by seat (the heads of the taken cards)
    hands 4 4 4 4   hand sizes by seat, or one for all (the observer's); without revealed cards
    piles 12        draw pile sizes by seat, or one for all (what the rounds leave)
    known 1:33-60   `positive`: hand cards that everybody knows, because they were under a pile
    returned 2:41   `positive`: cards under the draw piles, next drawn first
    game 2/3 before 12 30 8 21
                    the match: this game, games agreed, points before this game (1/1)
    picked, over    the own card is already chosen; the game is over

In brackets: what stands for a part left out. Needed are players, rows and hand. Cards taken and
not remembered count as unseen; if the points are given, at least those are right.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from oxx_env.game import cards
from oxx_env.game.views import View
from oxx_env.notation.position_facts import Facts, PositionError
from oxx_env.notation.position_game import build, check_turn
from oxx_env.notation.position_text import Parser, to_text
from oxx_env.notation.records import no_constant

__all__ = [
    "PositionError",
    "check_position",
    "from_text",
    "read_position",
    "to_text",
    "view_from_dict",
]


def check_position(data: Any) -> None:
    """Raise PositionError unless `data`, as `View.to_dict` gives it, is a possible position."""
    view_from_dict(data)


def view_from_dict(data: Any) -> View:
    """The view whose `to_dict` gave `data`, read from JSON; its history included.

    Needed are `rules`, `players`, `seat`, `rows` and `hand`; what else is left out (or null) is
    taken as in the text (see above), `phase` by `revealed`, and the deck is `balanced`. Where
    there is a history, everything must agree with it. Cards of `oxx_piles` may be missing
    (not remembered) only where there is no history.

    Raises PositionError.
    """
    facts = Facts(data)
    history = copy.deepcopy(facts.history)
    games = build(facts)
    view = View(games, facts.decks, facts.seat, facts.deck, lambda: copy.deepcopy(history))
    check_turn(facts, view)
    return view


def from_text(
    text: str, deck: cards.DeckSpec | None = None, otherwise: Mapping[str, Any] | None = None
) -> View:
    """The view that a position text describes. Raises PositionError with the place marked.

    `deck` (name, path or head counts [110, 6]) is used instead of the one that the text names;
    `otherwise` holds values, as in the JSON, of what the text leaves out.
    """
    if not isinstance(text, str):
        raise TypeError(f"a position is a text, not {type(text).__name__}")
    parser = Parser(text, otherwise or {})
    data = parser.data
    try:
        if deck is not None:
            data["deck"] = deck_entry(deck, data.get("deck"))
        return view_from_dict(data)
    except PositionError as error:
        raise PositionError(error.problem, error.path, text, parser.span(error.path)) from None


def deck_entry(deck: cards.DeckSpec, name: str | None = None) -> dict[str, Any]:
    """The `deck` of a position's JSON: its name, by default that of the deck spec, and its cards.
    Raises DeckError."""
    heads = cards.load_deck(deck).tolist()
    return {"name": cards.deck_name(deck) if name is None else name, "cards": heads}


def read_position(text: str, deck: cards.DeckSpec | None = None) -> View:
    """A position as text or as the JSON of `View.to_dict()`. Raises PositionError."""
    if not text.lstrip().startswith("{"):
        return from_text(text, deck)
    try:
        data = json.loads(text, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        raise PositionError(
            f"no JSON: {error.msg}", text=text, span=(error.pos, error.pos + 1)
        ) from None
    except (ValueError, RecursionError) as error:
        raise PositionError(f"no position: {error}") from None
    if deck is not None:
        data["deck"] = deck_entry(deck)
    return view_from_dict(data)
