"""A recorded game as pictures: any moment of it as SVG, all of it as an animation.

    record = next(records.read_records("games.jsonl"))
    for moment in moments(record):
        moment.caption, moment.svg()
    with open_atomic("game.gif", "wb") as file:
        write_gif(file, moments(record))

Everything is drawn as one seat sees it; the others' hands stay hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.rules import deck_cards
from oxx_env.game.views import View
from oxx_env.notation import records
from oxx_env.notation.wording import short_placement
from oxx_env.show import render

GIF_WIDTH = 800  # pixels
REVEALED, PLACED, TAKEN, OVER = 1.2, 0.9, 1.8, 5.0  # seconds that a picture stays
COLORS = 128  # of an animation


@dataclass(frozen=True)
class Moment:
    """One picture of a game.

    round    from 1; 0: the deal
    caption  what happened last, in words
    view     the table then, as the seat sees it
    names    of the seats
    row      where a card was placed last, None elsewhere
    seconds  it stays in an animation
    """

    round: int
    caption: str
    view: View
    names: tuple[str, ...]
    row: int | None = None
    seconds: float = PLACED

    def svg(self) -> str:
        """The picture as an SVG document."""
        return render.svg(self.view, self.names, self.caption, self.row)

    def pixels(self, width: int = render.WIDTH) -> NDArray[np.uint8]:
        """The picture as pixels, uint8 [height, width, 3]. Needs pillow."""
        return render.rgb_array(self.view, self.names, self.caption, self.row, width)


def moments(
    record: dict[str, Any], seat: int = 0, names: Sequence[str] | None = None, game: int = 1
) -> Iterator[Moment]:
    """The deal, each reveal, each placement, and the end of a recorded game, as `seat` sees it.

    `names` [P] replaces `seat 0` and so on; `game` is the record's number, for messages. Raises
    RecordError for a record that the rules do not allow, ValueError for a seat that is not there;
    both before the first moment is given out.
    """
    checked = records.replay(record, game)
    players = checked.players
    if not 0 <= seat < players:
        raise ValueError(f"seat {seat} is not at the table; the seats are 0 to {players - 1}")
    called = tuple(names or (f"seat {number}" for number in range(players)))
    if len(called) != players:
        raise ValueError(f"{len(called)} names for {players} players")
    return _moments(checked, seat, called)


def _moments(record: records.Record, seat: int, names: tuple[str, ...]) -> Iterator[Moment]:
    replay, deck = record.replay(), deck_cards(record.decks[0])
    number = 0  # of the round

    def moment(caption: str, seconds: float, row: int | None = None) -> Moment:
        return Moment(number, caption, replay.view(seat), names, row, seconds)

    for kind, *what in replay.steps(record.decisions):
        if kind == "deal":
            yield moment("the cards are dealt", REVEALED)
        elif kind == "reveal":
            number = what[0]
            yield moment(f"round {number}: all reveal their cards", REVEALED)
        elif kind == "place":
            caption = short_placement(what[0], names[what[0][0]], deck)
            seconds = TAKEN if what[0][3] else PLACED
            yield moment(caption, seconds, what[0][2])
        else:
            yield moment(render.situation(replay.view(seat), names), OVER)


def write_gif(file: IO[bytes], film: Iterable[Moment], width: int = GIF_WIDTH) -> int:
    """Write an endless animation to an open binary file; returns the number of its pictures.

    Needs pillow (`oxx_env[render]`). Raises ValueError for a film without a moment.
    """
    film = list(film)
    if not film:
        raise ValueError("there is nothing to draw")
    Image, _ = render.pillow()
    # One palette for all, so that only what changes from picture to picture is written.
    picks = [film[0], film[len(film) // 3], film[-1]]
    sample = np.concatenate([moment.pixels(width) for moment in picks])
    palette = Image.fromarray(sample).quantize(COLORS, method=Image.Quantize.MEDIANCUT)

    def draw(moment: Moment) -> Any:
        image = Image.fromarray(moment.pixels(width))
        return image.quantize(palette=palette, dither=Image.Dither.NONE)

    pictures = map(draw, film)
    next(pictures).save(
        file,
        format="GIF",
        save_all=True,
        append_images=pictures,
        duration=[round(1000 * moment.seconds) for moment in film],
        loop=0,
        optimize=False,
    )
    return len(film)
