"""Draw what a seat knows: view → text, SVG or pixels. Pure; a game's random stream is never used.

Heads are drawn in their color and named by a letter as well, so that everything reads without
color: B blue, Y yellow, G green, R red, K blacK, W white. One letter a head: `BBY` is two blue
heads and a yellow one; a card with more than six heads is written with counts, `B4Y3`.

SVG and pixels come from one list of shapes (`_scene`); the colors are those of Okabe and Ito,
which people with any kind of color vision tell apart.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.cards import COLORS, LETTERS, MOST_LETTERS, letters
from oxx_env.game.rules import FIRST_ROW, deck_cards
from oxx_env.game.scoring import direction, winners
from oxx_env.game.views import View
from oxx_env.lib.extras import needed_by
from oxx_env.lib.texts import counted, fold, packed, printable, width

_ANSI = {  # background and foreground of a head's letter
    "B": "\x1b[1;97;44m",
    "Y": "\x1b[1;30;103m",
    "G": "\x1b[1;97;42m",
    "R": "\x1b[1;97;41m",
    "K": "\x1b[1;97;40m",
    "W": "\x1b[1;30;107m",
}
_BOLD, _FAINT, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


# --- words --------------------------------------------------------------------------------------


def paint(marks: str) -> str:
    """Letters of heads in their colors, for a terminal (ANSI escape sequences)."""
    painted = "".join(
        f"{_ANSI[mark]}{mark}" if mark in _ANSI else f"{_RESET}{mark}" for mark in marks
    )
    return f"{painted}{_RESET}" if painted else ""


def seat_names(view: View, names: Sequence[str] | None = None) -> list[str]:
    """The names of the seats, by seat: `seat 0 (you)`, `seat 1`, or the given names."""
    if names is not None:
        return list(names)
    return [f"seat {s} (you)" if s == view.seat else f"seat {s}" for s in range(view.players)]


def situation(view: View, names: Sequence[str] | None = None) -> str:
    """One line: what is to be decided, and by whom."""
    called = seat_names(view, names)
    if view.phase == "over":
        best = [called[seat] for seat in winners(view.scores, view.rules)]
        return f"game over; {direction(view.rules).removesuffix(' win')}: {', '.join(best)}"
    if view.phase == "row":
        seat, number = view.revealed[0]
        if not view.to_act:  # nothing to choose: a game that is followed, not played
            return f"{called[seat]} places {number}"
        if seat == view.seat:
            return f"you choose a row for {number}"
        return f"{called[seat]} chooses a row for {number}"
    return "you choose a card" if view.seat in view.to_act else "the others choose a card"


def headline(view: View) -> str:
    """One line: rule set, players, match, round, and who wins in words."""
    game = view.game
    parts = [f"{view.rules}", f"{view.players} players", f"round {int(game['round']) + 1}"]
    if view.phase == "over":
        parts[-1] = f"after {int(game['round'])} rounds"
    if game["match_games"] > 1:
        parts.append(f"game {int(game['match_game'])} of {int(game['match_games'])}")
    return " · ".join([*parts, direction(view.rules)])


# --- text ---------------------------------------------------------------------------------------


def text(
    view: View,
    color: bool = True,
    names: Sequence[str] | None = None,
    actions: bool = True,
    columns: int | None = None,
) -> str:
    """The table as text, several lines without a last newline.

    With `color`, heads are painted by ANSI escape sequences; the letters stay, and without color
    nothing is lost. `names` [P] replaces `seat 0` and so on. What the seat may do now is marked
    with the number of the action in brackets, or, without `actions`, with `>`. A row that takes
    more than `columns` places goes on in the next line, between two cards or before its heads.
    """
    deck = deck_cards(view.decks[0])

    def card(number: int, width: int = 0) -> str:
        marks = letters(deck[number - 1])
        padding = " " * max(0, width - len(marks))
        return f"{number:>3} {paint(marks) if color else marks}{padding}"

    def strong(line: str) -> str:
        return f"{_BOLD}{line}{_RESET}" if color else line

    lines = [strong(headline(view)), situation(view, names), ""]
    called = seat_names(view, names)
    legal = set(view.legal)
    size = max(4, *(len(letters(deck[n - 1])) for row in view.rows for n in row))
    for index, row in enumerate(view.rows):
        sums = [sum(deck[number - 1][c] for number in row) for c in range(len(COLORS))]
        mark = "   "
        if FIRST_ROW + index in legal:
            mark = f"[{FIRST_ROW + index}]" if actions else "  >"
        cards = [card(number, size) for number in row]
        counts = " ".join(f"{x}{n}" for x, n in zip(LETTERS, sums, strict=True) if n)
        end = f"{counted(sum(sums), 'head')}: {counts}"
        lines += _row_lines(f"{mark} row {index}  ", cards, size + 5, end, columns)
    lines.append("")
    if view.revealed:
        lines.append("    to place, in this order:")
        for seat, number in view.revealed:
            lines.append(f"    {card(number, size)}  {called[seat]}")
        lines.append("")
    hand = [
        f"{f'[{slot}]' if actions and slot in legal else ''}{card(number)}"
        for slot, number in enumerate(view.hand)
    ]
    start = "    your hand  "
    lines += [*packed(start, hand or ["empty"], columns, "   ", " " * len(start)), ""]
    return "\n".join([*lines, *_seat_lines(view, called, columns)])


def _seat_lines(view: View, called: Sequence[str], columns: int | None) -> list[str]:
    """The seats of `text`: points, cards, and what everybody knows of them."""
    lines = []
    span = max(map(len, called))
    sizes, piles = view.game["hand_sizes"].tolist(), view.game["pile_sizes"].tolist()
    points_before = view.game["match_points"].tolist()
    for seat, (name, points, taken) in enumerate(
        zip(called, view.scores, view.oxx_piles, strict=True)
    ):
        line = (
            f"    {name:<{span}}  {points:>3} point{'s' if points != 1 else ' '}"
            f"  hand {sizes[seat]}  draw pile {piles[seat]:>2}  taken {len(taken):>2}"
        )
        if view.game["match_games"] > 1:
            line += f"  match {points_before[seat] + points}"
        known = [*view.returned[seat]]
        if known:
            line += f"  under the pile: {', '.join(map(str, known))}"
        held = view.known_hand[seat]
        if held and seat != view.seat:
            line += f"  known in hand: {', '.join(map(str, held))}"
        lines.append(fold(line.rstrip(), columns))
    return lines


def _row_lines(
    start: str, cards: Sequence[str], size: int, heads: str, columns: int | None
) -> list[str]:
    """A row of `text`, whose cards take `size` places each; its heads stand beside a fifth card if
    they fit there."""
    gap = " " * max(0, (5 - len(cards)) * size)
    line = f"{start}{' '.join(cards)}{gap}  {heads}"
    if columns is None or width(line) <= columns:
        return [line]
    indent = " " * len(start)
    lines = packed(start, cards, columns, indent=indent)
    return [*lines[:-1], *packed(lines[-1], ["", heads], columns, "  ", indent)]


def sentences(view: View, names: Sequence[str] | None = None) -> str:
    """The table for a screen reader: one plain sentence a line, colors as words, no layout."""
    deck = deck_cards(view.decks[0])
    called = seat_names(view, names)
    lines = [headline(view).replace(" · ", ", ") + "."]
    for index, row in enumerate(view.rows):
        total = sum(sum(deck[number - 1]) for number in row)
        cards = "; ".join(f"{number} with {in_words(deck[number - 1])}" for number in row)
        sums = f"{counted(len(row), 'card')}, {counted(total, 'head')}"
        lines.append(f"Row {index}: {cards}. {sums}.")
    for place, (seat, number) in enumerate(view.revealed):
        when = "To place now" if place == 0 else "Then"
        lines.append(
            f"{when}: {number} with {in_words(deck[number - 1])}, played by {called[seat]}."
        )
    hand = "; ".join(f"{number} with {in_words(deck[number - 1])}" for number in view.hand)
    lines.append(f"Your hand: {hand or 'empty'}.")
    sizes, piles = view.game["hand_sizes"].tolist(), view.game["pile_sizes"].tolist()
    for seat, (name, points) in enumerate(zip(called, view.scores, strict=True)):
        line = (
            f"{name[0].upper()}{name[1:]}: {counted(points, 'point')}, "
            f"{counted(sizes[seat], 'hand card')}, {counted(piles[seat], 'card')} in the draw pile"
        )
        if view.returned[seat]:
            line += f", under it {', '.join(map(str, view.returned[seat]))}"
        if seat != view.seat and view.known_hand[seat]:
            line += f", known in hand {', '.join(map(str, view.known_hand[seat]))}"
        if view.game["match_games"] > 1:
            line += (
                f", {counted(points + int(view.game['match_points'][seat]), 'point')} in the match"
            )
        lines.append(line + ".")
    return "\n".join(lines)


def in_words(heads: Sequence[int]) -> str:
    """A card's heads [6] in words.

    >>> in_words([2, 1, 0, 0, 0, 0])
    '2 blue, 1 yellow'
    """
    return ", ".join(f"{n} {color}" for n, color in zip(heads, COLORS, strict=True) if n)


# --- shapes -------------------------------------------------------------------------------------

WIDTH, HEIGHT = 1000, 700  # of the picture, in pixels
CARD_WIDTH = 60.0  # of a card drawn alone
FELT, PANEL, INK, PALE = "#1f3d36", "#294d44", "#1b1b1b", "#f3efe4"
CARD_FACE, CARD_EDGE, BACK = "#fbf8ef", "#8d8778", "#7a3b2e"
ACCENT = "#ffd23f"
SOFT = "#b9cbc4"
HEAD_FILL = ("#0072b2", "#f0e442", "#009e73", "#d55e00", "#202020", "#ffffff")
HEAD_INK = ("#ffffff", "#1b1b1b", "#ffffff", "#ffffff", "#ffffff", "#1b1b1b")

# A bull's head in the unit square.
_BULL = (
    *((0.00, 0.02), (0.04, 0.22), (0.16, 0.35), (0.02, 0.44), (0.20, 0.54), (0.26, 0.76)),
    *((0.38, 1.00), (0.62, 1.00), (0.74, 0.76), (0.80, 0.54), (0.98, 0.44), (0.84, 0.35)),
    *((0.96, 0.22), (1.00, 0.02), (0.84, 0.16), (0.66, 0.20), (0.34, 0.20), (0.16, 0.16)),
)


class _Rect(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    radius: float
    fill: str
    edge: tuple[str, float] | None  # color and width of its frame


class _Polygon(NamedTuple):
    points: tuple[tuple[float, float], ...]
    fill: str
    edge: str


class _Text(NamedTuple):
    x: float
    y: float  # the middle of the letters
    label: str
    size: float
    fill: str
    anchor: str  # start, middle, end
    bold: bool


_Shape = _Rect | _Polygon | _Text


class _Scene(list[_Shape]):
    """A picture as a list of shapes, back to front."""

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        radius: float = 0,
        edge: tuple[str, float] | None = None,
    ) -> None:
        self.append(_Rect(x, y, width, height, radius, fill, edge))

    def write(
        self,
        x: float,
        y: float,
        label: str,
        size: float = 15,
        fill: str = PALE,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        self.append(_Text(x, y, label, size, fill, anchor, bold))

    def head(self, x: float, y: float, size: float, color: int, count: int = 1) -> None:
        points = tuple((x + size * px, y + size * py) for px, py in _BULL)
        self.append(_Polygon(points, HEAD_FILL[color], INK))
        label = LETTERS[color] if count == 1 else f"{LETTERS[color]}{count}"
        place = size * (0.52 if count == 1 else 0.42)
        self.write(
            x + size / 2, y + size * 0.57, label, place, HEAD_INK[color], "middle", bold=True
        )

    def card(
        self,
        x: float,
        y: float,
        number: int,
        heads: Sequence[int],
        width: float = 60,
        marked: bool = False,
    ) -> None:
        """A card, 1.45 times as high as wide: its number, and its heads."""
        height = width * 1.45
        edge = (ACCENT, 3.0) if marked else (CARD_EDGE, 1.0)
        self.rect(x, y, width, height, CARD_FACE, width * 0.1, edge)
        self.write(x + width * 0.09, y + width * 0.24, str(number), width * 0.36, INK, bold=True)
        if sum(heads) > MOST_LETTERS:
            drawn = [(color, count) for color, count in enumerate(heads) if count]
        else:
            drawn = [(color, 1) for color, count in enumerate(heads) for _ in range(count)]
        for index, (color, count) in enumerate(drawn):
            size, left, top = _head_place(index, len(drawn))
            self.head(x + left * width, y + top * width, size * width, color, count)


def _head_place(index: int, count: int) -> tuple[float, float, float]:
    """Size, left and top of a card's head, in card widths."""
    if count <= 2:
        size = 0.45
        left = (1 - count * size - (count - 1) * 0.02) / 2 + index * (size + 0.02)
        return size, left, 0.68
    size = 0.31
    per_line = 2 if count in (3, 4) else 3
    line, column = divmod(index, per_line)
    in_line = min(per_line, count - line * per_line)
    if per_line == 2:
        size = 0.41
    left = (1 - in_line * size - (in_line - 1) * 0.02) / 2 + column * (size + 0.02)
    return size, left, 0.47 + line * (size + 0.07)


def _scene(
    view: View,
    names: Sequence[str] | None = None,
    caption: str | None = None,
    row: int | None = None,
) -> _Scene:
    """The table as shapes; for the arguments see `svg`."""
    scene = _Scene()
    deck = deck_cards(view.decks[0])
    called = seat_names(view, names)
    legal = set(view.legal)
    scene.rect(0, 0, WIDTH, HEIGHT, FELT)
    goal = direction(view.rules)
    top = headline(view).removesuffix(f" · {goal}")
    scene.write(20, 24, top, 17, PALE, bold=True)
    scene.write(WIDTH - 20, 24, goal.capitalize(), 17, ACCENT, "end", bold=True)

    marked = {action - FIRST_ROW for action in legal if action >= FIRST_ROW}
    _draw_rows(scene, view, deck, marked if row is None else {row})
    _draw_seats(scene, view, deck, called)

    # Hand, and the revealed cards still to be placed.
    y = 548
    scene.rect(0, y, WIDTH, HEIGHT - y, PANEL)
    recorded = caption is not None  # then no seat is "you"
    line = caption or situation(view, names)
    scene.write(24, y + 17, line[0].upper() + line[1:], 15, ACCENT)
    scene.write(24, y + 72, called[view.seat][:8] if recorded else "your", 14, SOFT)
    scene.write(24, y + 90, "hand", 14, SOFT)
    for slot, number in enumerate(view.hand):
        scene.card(78 + slot * 82, y + 34, number, deck[number - 1], 70, slot in legal)
    revealed = view.revealed
    if revealed:
        scene.write(520, y + 17, "Revealed, lowest number first", 14, SOFT)
        pitch = min(60.0, 468 / len(revealed))
        width = pitch - 6
        for index, (seat, number) in enumerate(revealed):
            x = 520 + index * pitch
            scene.card(x, y + 34, number, deck[number - 1], width, index == 0)
            own = seat == view.seat and not recorded
            label = "you" if own else (names[seat] if names else f"seat {seat}")
            scene.write(x + width / 2, y + 44 + width * 1.45, label[:8], 12, PALE, "middle")
    return scene


def _draw_rows(scene: _Scene, view: View, deck: list[list[int]], marked: set[int]) -> None:
    left, pitch_y, width = 78, 99, 60
    for index, row in enumerate(view.rows):
        y = 46 + index * pitch_y
        accent = index in marked
        scene.rect(12, y, 660, 94, PANEL, 8, (ACCENT, 3) if accent else None)
        scene.write(24, y + 36, "row", 13, SOFT)
        scene.write(24, y + 58, str(index), 22, ACCENT if accent else PALE, bold=True)
        room = 430
        pitch = min(66, (room - width) / max(1, len(row) - 1))
        if not view.rules.startswith("color"):
            for place in range(len(row), 5):  # R7: where the sixth card takes
                scene.rect(left + place * 66, y + 4, width, width * 1.45, FELT, 6)
            scene.write(left + 5 * 66 + 10, y + 38, "6th card", 13, SOFT)
            scene.write(left + 5 * 66 + 10, y + 56, "takes", 13, SOFT)
        for place, number in enumerate(row):
            scene.card(left + place * pitch, y + 4, number, deck[number - 1], width)
        sums = [sum(deck[number - 1][color] for number in row) for color in range(len(COLORS))]
        total = sum(sums)
        scene.write(656, y + 16, counted(total, "head"), 13, SOFT, "end")
        for color, count in enumerate(sums):
            x, line = 524 + (color % 3) * 46, y + 29 + (color // 3) * 32
            if not count:
                continue
            scene.head(x, line, 24, color)
            ink = ACCENT if count >= 5 else PALE  # R8: one more head and the row is taken
            scene.write(x + 28, line + 13, str(count), 15, ink, bold=count >= 5)


def _draw_seats(scene: _Scene, view: View, deck: list[list[int]], called: list[str]) -> None:
    left, width = 690, 298
    pitch = min(99.0, 494 / view.players)
    sizes, piles = view.game["hand_sizes"].tolist(), view.game["pile_sizes"].tolist()
    for seat, name in enumerate(called):
        y, high = 46 + seat * pitch, pitch - 5
        own = seat == view.seat
        scene.rect(left, y, width, high, PANEL, 8, (ACCENT, 2) if seat in view.to_act else None)
        middle = y + high / 2
        first, second = (middle - 9, middle + 11) if high < 60 else (middle - 16, middle + 16)
        scene.write(left + 12, first, name[:20], 15, ACCENT if own else PALE, bold=own)
        points = view.scores[seat]
        scene.write(left + width - 12, first, f"{points}", 20, PALE, "end", bold=True)
        scene.write(
            left + width - 12, second, f"point{'s' if points != 1 else ''}", 12, SOFT, "end"
        )
        for card in range(sizes[seat]):
            scene.rect(left + 12 + card * 9, second - 8, 12, 16, BACK, 2, (PALE, 1))
        parts = [f"pile {piles[seat]}", f"taken {len(view.oxx_piles[seat])}"]
        returned = view.returned[seat]
        if returned:
            parts.append(f"under it {', '.join(map(str, returned[:3]))}")
        scene.write(left + 60, second, " · ".join(parts), 13, SOFT)


# --- SVG ----------------------------------------------------------------------------------------


def svg(
    view: View,
    names: Sequence[str] | None = None,
    caption: str | None = None,
    row: int | None = None,
) -> str:
    """The table as a picture, an SVG document; its description is the plain text.

    names    of the seats [P]; None: `seat 0 (you)` and so on
    caption  a line on what happened, for a recorded game; None: what the seat has to decide
    row      the row to mark; None: those that the seat may choose now
    """
    described = escape(printable(text(view, color=False, names=names)))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" '
        'font-family="Helvetica, Arial, sans-serif">',
        f"<title>A table of 6 nimmt! Baron Oxx</title><desc>{described}</desc>",
        *map(_svg_shape, _scene(view, names, caption, row)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def card_svg(number: int, heads: Sequence[int]) -> str:
    """One card as a picture, an SVG document of CARD_WIDTH by 1.45 CARD_WIDTH.

    `heads` [6] as in the deck; the title gives number and heads in words.
    """
    edge = 0.5  # so that the frame is not cut
    scene = _Scene()
    scene.card(edge, edge, number, heads, CARD_WIDTH - 2 * edge)
    width, height = CARD_WIDTH, CARD_WIDTH * 1.45
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" '
        f'width="{_n(width)}" height="{_n(height)}" role="img" '
        'font-family="Helvetica, Arial, sans-serif">'
        f"<title>{number}: {in_words(heads)}</title>"
        f"{''.join(map(_svg_shape, scene))}</svg>\n"
    )


def _svg_shape(shape: _Shape) -> str:
    if isinstance(shape, _Rect):
        edge = ""
        if shape.edge:
            edge = f' stroke="{shape.edge[0]}" stroke-width="{_n(shape.edge[1])}"'
        return (
            f'<rect x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" '
            f'height="{_n(shape.height)}" rx="{_n(shape.radius)}" fill="{shape.fill}"{edge}/>'
        )
    if isinstance(shape, _Polygon):
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in shape.points)
        return (
            f'<polygon points="{points}" fill="{shape.fill}" stroke="{shape.edge}" '
            'stroke-width="0.8" stroke-linejoin="round"/>'
        )
    weight = ' font-weight="bold"' if shape.bold else ""
    return (
        f'<text x="{_n(shape.x)}" y="{_n(shape.y)}" font-size="{_n(shape.size)}" '
        f'fill="{shape.fill}" text-anchor="{shape.anchor}" dominant-baseline="central"{weight}>'
        f"{escape(printable(shape.label))}</text>"
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


# --- pixels -------------------------------------------------------------------------------------

_FINE = 2  # drawn this much larger, then made smaller: smooth edges


def rgb_array(
    view: View,
    names: Sequence[str] | None = None,
    caption: str | None = None,
    row: int | None = None,
    width: int = WIDTH,
) -> NDArray[np.uint8]:
    """The table as pixels, uint8 [height, width, 3]; the height is 0.7 widths.

    For the other arguments see `svg`. Needs pillow (the extra `render`). Raises ValueError for a
    width outside 100 to 4000.
    """
    if not 100 <= width <= 4000:
        raise ValueError(f"a picture may be 100 to 4000 pixels wide, not {width}")
    Image, ImageDraw = pillow()
    image = Image.new("RGB", (width * _FINE, height_of(width) * _FINE))
    draw = ImageDraw.Draw(image)
    for shape in _scene(view, names, caption, row):
        _draw_shape(draw, shape, _FINE * width / WIDTH)
    return np.asarray(image.reduce(_FINE), dtype=np.uint8).copy()


def height_of(width: int) -> int:
    """The height of a picture of this width, in pixels."""
    return round(width * HEIGHT / WIDTH)


def _draw_shape(draw: Any, shape: _Shape, k: float) -> None:
    """`k` pixels for each unit of the shape."""
    if isinstance(shape, _Rect):
        draw.rounded_rectangle(
            (shape.x * k, shape.y * k, (shape.x + shape.width) * k, (shape.y + shape.height) * k),
            radius=shape.radius * k,
            fill=shape.fill,
            outline=shape.edge[0] if shape.edge else None,
            width=round(shape.edge[1] * k) if shape.edge else 0,
        )
    elif isinstance(shape, _Polygon):
        points = [(x * k, y * k) for x, y in shape.points]
        draw.polygon(points, fill=shape.fill, outline=shape.edge, width=max(1, round(k)))
    else:
        anchor = {"start": "lm", "middle": "mm", "end": "rm"}[shape.anchor]
        draw.text(
            (shape.x * k, shape.y * k),
            shape.label,
            font=_font(round(shape.size * k)),
            fill=shape.fill,
            anchor=anchor,
            stroke_width=shape.size * k / 40 if shape.bold else 0,
            stroke_fill=shape.fill,
        )


@functools.cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def pillow() -> tuple[Any, Any]:
    with needed_by("a picture"):
        from PIL import Image, ImageDraw
    return Image, ImageDraw


class Window:
    """A window that shows one view after another. Needs pygame-ce (the extra `render`).

    It opens at a size that suits the screen and can be made larger or smaller; the picture follows.

    fps    views a second at most: each stays for at least 1/fps seconds; None: as they come
    width  in pixels; None: three fifths of the screen's

    >>> window = Window()  # doctest: +SKIP
    >>> window.show(view)  # doctest: +SKIP
    """

    def __init__(
        self,
        title: str = "6 nimmt! Baron Oxx",
        fps: float | None = None,
        width: int | None = None,
    ) -> None:
        pillow()
        with needed_by("a window"):
            import pygame
        self._pygame: Any = pygame
        pygame.display.init()
        pygame.display.set_caption(title)
        width = width or fitting_width(*pygame.display.get_desktop_sizes()[0])
        size = (width, height_of(width))
        self._surface: Any = pygame.display.set_mode(size, pygame.RESIZABLE)
        self._pause = 1 / fps if fps else 0.0
        self._until = 0.0  # when the next view may be shown
        self._current: tuple[View, Sequence[str] | None] | None = None

    @property
    def is_open(self) -> bool:
        """False once it was closed, by `close` or by its user."""
        return self._surface is not None

    def show(self, view: View, names: Sequence[str] | None = None) -> bool:
        """Draw the view, once the one before it has had its time; False, and nothing happens, once
        the window was closed."""
        self._handle_events()
        while self._surface is not None and time.monotonic() < self._until:
            time.sleep(0.01)
            self._handle_events()
        if self._surface is None:
            return False
        self._current = view, names
        self._draw()
        self._until = time.monotonic() + self._pause
        return True

    def _handle_events(self) -> None:
        """Handle the window's events."""
        if self._surface is None:
            return
        for event in self._pygame.event.get():
            if event.type == self._pygame.QUIT:
                self.close()
                return
            if event.type == self._pygame.VIDEORESIZE:
                self._draw()

    def _draw(self) -> None:
        if self._current is None:
            return
        wide, high = self._surface.get_size()
        width = min(max(100, min(wide, high * WIDTH // HEIGHT)), 4000)
        view, names = self._current
        pixels = rgb_array(view, names, width=width).swapaxes(0, 1)
        corner = (wide - width) // 2, (high - height_of(width)) // 2
        self._surface.fill(FELT)
        self._surface.blit(self._pygame.surfarray.make_surface(pixels), corner)
        self._pygame.display.flip()

    def close(self) -> None:
        """Close the window; a second call does nothing."""
        if self._surface is not None:
            self._surface = None
            self._pygame.display.quit()


def fitting_width(wide: int, high: int) -> int:
    """The width of a window for a screen of this size: three fifths of it, and never too high."""
    return max(400, min(wide * 3 // 5, high * 4 // 5 * WIDTH // HEIGHT, 1600))
