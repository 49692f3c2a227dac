"""The observation: a table of named pieces, encoded for one seat, and explained by name.

`PIECES` is the only place that knows the layout; the size, the offsets in the kernels and in the
networks (`entry`), `explain` and the documentation derive from it. The size is the same for all
player counts, rule sets and decks. Cards are described by their heads and number, never by
identity, so that a policy can play an unseen deck. Seats are listed from the observer on.
Everything is scaled to about 0..1; heads on odd decks may go beyond, but stay within `LOW`..`HIGH`.

The kernel reads only what the seat may know: the own hand, and of all others what has been seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oxx_env.game.cards import COLORS
from oxx_env.game.rules import (
    ALL_ROWS,
    CARD_PHASE,
    CARDS_DEALT,
    COLOR,
    HAND_SIZE,
    HEADS_BYTE,
    LENGTH_BYTE,
    MAX_PLAYERS,
    MIN_PLAYERS,
    N_COLORS,
    NO_CARD,
    NUMBERS,
    ROW_PHASE,
    ROWS,
    below,
    bits_of,
    decides,
    is_positive,
    is_seen,
    legal_rows,
    length_of,
    overflow_flags,
    pile_cell,
    popcount,
    row_flags,
)
from oxx_env.game.scoring import sign
from oxx_env.game.views import PHASES, View, unseen_set
from oxx_env.lib.jit import kernel, kernel_inlined
from oxx_env.lib.simd import CACHE_LINE, columns, fetch, highest_sums, write_rows

OBSERVATION_VERSION = 1
LOW, HIGH = -8.0, 8.0
CARDS = HAND_SIZE + 1  # cards described one by one: the hand slots and the card being placed

CARD_FIELDS = (
    "present",
    "number/110",
    "heads/6",
    *(f"{color}/3" for color in COLORS),
    "unseen cards that are lower, share",
    "unseen cards that share a color, share",
    "revealed cards still to follow that share a color/5",
)
ROW_FIELDS = (
    "end number/110",
    "end heads/6",
    *(f"end {color}/3" for color in COLORS),
    "cards/5",
    "heads/10",
    *(f"{color} in the row/5" for color in COLORS),
    "unseen cards that fit, share",
    "own cards that fit/4",
    "revealed cards still to follow that fit/5",
)
PAIR_FIELDS = (
    "fits",
    "may be placed there now",
    "heads taken if placed now/10",
    "cards in the row afterwards/5",
    "most heads of one color afterwards/6",
    "unseen lower cards that fit the row, share",
)
SEAT_FIELDS = (
    "at the table",
    "points of this game/30",
    "points of this game against the mean, better is more/30",
    "points of the match before this game against the mean, better is more/60",
    "cards in hand/4",
    "cards in the draw pile/20",
    "returned cards under the pile/8",
    "known cards in hand/4",
    "revealed card still to be placed",
)
REVEALED_FIELDS = (
    "present",
    "own",
    "seats after the observer/10",
    "number/110",
    *(f"{color}/3" for color in COLORS),
)


@dataclass(frozen=True)
class Piece:
    """One named part of the observation.

    name     its name
    shape    its shape; the last axis is described by `fields`
    fields   what each entry of the last axis means, with its unit
    """

    name: str
    shape: tuple[int, ...]
    fields: tuple[str, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)

    def entry(self, quantity: str, *following: str) -> int:
        """Where a quantity (a field without its unit) stands in the last axis.

        following  quantities that have to stand right behind it, for code that writes or reads all
                   of them as one block; ValueError if they do not
        """
        names = [field.partition("/")[0].removesuffix(", share") for field in self.fields]
        at = names.index(quantity)
        if tuple(names[at + 1 : at + 1 + len(following)]) != following:
            raise ValueError(f"{self.name}: {following} do not follow {quantity!r}")
        return at


PIECES = (
    Piece("phase", (3,), ("card phase", "row phase", "own decision")),
    Piece("rules", (2,), ("color", "positive")),
    Piece("table", (9,), tuple(f"{players} players" for players in range(2, MAX_PLAYERS + 1))),
    Piece(
        "clock",
        (4,),
        (
            "own cards left/24",
            "own cards until the next draw/4",
            "fewest cards left of any seat/24",
            "cards all seats have left/110",
        ),
    ),
    Piece(
        "match", (3,), ("games still to come/10", "this game's place in the match/10", "last game")
    ),
    Piece("cards", (CARDS, len(CARD_FIELDS)), CARD_FIELDS),
    Piece("rows", (ROWS, len(ROW_FIELDS)), ROW_FIELDS),
    Piece("pairs", (CARDS, ROWS, len(PAIR_FIELDS)), PAIR_FIELDS),
    Piece(
        "unseen",
        (1 + N_COLORS + 4,),
        (
            "unseen cards/110",
            *(f"unseen cards showing {color}/40" for color in COLORS),
            *(f"unseen cards with {heads} heads/60" for heads in ("1", "2", "3", "more")),
        ),
    ),
    Piece("seats", (MAX_PLAYERS, len(SEAT_FIELDS)), SEAT_FIELDS),
    Piece("revealed", (MAX_PLAYERS, len(REVEALED_FIELDS)), REVEALED_FIELDS),
    Piece("known_hand", (MAX_PLAYERS, N_COLORS), tuple(f"{color} heads/6" for color in COLORS)),
    Piece("returned", (MAX_PLAYERS, N_COLORS), tuple(f"{color} heads/6" for color in COLORS)),
)


def _starts() -> dict[str, int]:
    starts, at = {}, 0
    for piece in PIECES:
        starts[piece.name] = at
        at += piece.size
    return starts


START = _starts()  # the first entry of each piece
OBS = sum(piece.size for piece in PIECES)  # the observation's size
SLICES = {piece.name: slice(START[piece.name], START[piece.name] + piece.size) for piece in PIECES}



def entry(piece: str, quantity: str, *following: str) -> int:
    """`Piece.entry` of a piece of the observation."""
    (found,) = (p for p in PIECES if p.name == piece)
    return found.entry(quantity, *following)


_PHASE, _RULES, _TABLE = START["phase"], START["rules"], START["table"]
_CLOCK, _MATCH, _UNSEEN = START["clock"], START["match"], START["unseen"]
_CARDS, _CARD = START["cards"], len(CARD_FIELDS)
_ROWS, _ROW = START["rows"], len(ROW_FIELDS)
_PAIRS, _PAIR = START["pairs"], len(PAIR_FIELDS)
_SEATS, _SEAT = START["seats"], len(SEAT_FIELDS)
_REVEALED, _REV = START["revealed"], len(REVEALED_FIELDS)
_KNOWN, _RETURNED = START["known_hand"], START["returned"]

_CARD_PHASE = _PHASE + entry("phase", "card phase")
_ROW_PHASE = _PHASE + entry("phase", "row phase")
_DECIDES = _PHASE + entry("phase", "own decision")
_COLOR_RULE, _POSITIVE_RULE = (_RULES + entry("rules", name) for name in ("color", "positive"))
_CARDS_LEFT = _CLOCK + entry("clock", "own cards left")
_NEXT_DRAW = _CLOCK + entry("clock", "own cards until the next draw")
_FEWEST_LEFT = _CLOCK + entry("clock", "fewest cards left of any seat")
_ALL_LEFT = _CLOCK + entry("clock", "cards all seats have left")
_GAMES_TO_COME = _MATCH + entry("match", "games still to come")
_GAME_OF_MATCH = _MATCH + entry("match", "this game's place in the match")
_LAST_GAME = _MATCH + entry("match", "last game")
_UNSEEN_ALL = _UNSEEN + entry("unseen", "unseen cards")
_UNSEEN_SHOWING = _UNSEEN + entry(
    "unseen", *(f"unseen cards showing {color}" for color in COLORS)
)
_UNSEEN_WORTH = _UNSEEN + entry(
    "unseen", *(f"unseen cards with {heads} heads" for heads in ("1", "2", "3", "more"))
)
_PRESENT = entry("cards", "present")
_SHOWN = entry("cards", "number", "heads", *COLORS)  # as in the deck's record
_LOWER = entry("cards", "unseen cards that are lower")
_FITTING = entry("cards", "unseen cards that share a color")
_FOLLOWING = entry("cards", "revealed cards still to follow that share a color")
_END = entry("rows", "end number", "end heads", *(f"end {color}" for color in COLORS))
_SUMS = entry("rows", "cards", "heads", *(f"{color} in the row" for color in COLORS))
_ROW_COUNTS = entry(
    "rows",
    "unseen cards that fit",
    "own cards that fit",
    "revealed cards still to follow that fit",
)
_ROW_FOLLOWING = entry("rows", "revealed cards still to follow that fit")
_PAIR_BLOCK = entry(
    "pairs",
    "fits",
    "may be placed there now",
    "heads taken if placed now",
    "cards in the row afterwards",
    "most heads of one color afterwards",
    "unseen lower cards that fit the row",
)
_AT_TABLE = entry("seats", "at the table")
_GAME_POINTS = entry("seats", "points of this game")
_GAME_RELATIVE = entry("seats", "points of this game against the mean, better is more")
_MATCH_RELATIVE = entry(
    "seats", "points of the match before this game against the mean, better is more"
)
_IN_HAND, _IN_PILE = entry("seats", "cards in hand"), entry("seats", "cards in the draw pile")
_RETURNED_COUNT = entry("seats", "returned cards under the pile")
_KNOWN_COUNT = entry("seats", "known cards in hand")
_TO_BE_PLACED = entry("seats", "revealed card still to be placed")
_REV_PRESENT, _REV_OWN = entry("revealed", "present"), entry("revealed", "own")
_REV_SEAT = entry("revealed", "seats after the observer")
_REV_NUMBER, _REV_COLORS = entry("revealed", "number"), entry("revealed", *COLORS)

_63 = np.uint64(63)
_BYTE = np.uint64(0xFF)
_EACH_ROW = np.uint64(0x0101010101)  # one in the byte of each row
# A byte of a packed word as a float: one load, where converting and multiplying are three steps.
_QUARTERS, _SIXTHS, _TWENTIETHS = (
    np.arange(256, dtype=np.float32) * np.float32(1 / n) for n in (4, 6, 20)
)
_WHOLE, _QUARTER, _FIFTH, _SIXTH, _TENTH = (np.float32(1 / n) for n in (1, 4, 5, 6, 10))
_BY_8, _BY_24, _BY_30, _BY_40, _BY_60 = (np.float32(1 / n) for n in (8, 24, 30, 40, 60))
_BY_NUMBER = np.float32(1 / NUMBERS)
_OTHERS = np.array([0, 0, *(1 / (players - 1) for players in range(2, 11))], np.float32)


@kernel
def _clip(value):
    return min(max(value, np.float32(LOW)), np.float32(HIGH))


@kernel
def _byte(word, index):
    """A byte of a packed word, as the index into a table of floats."""
    return (word >> np.uint64(8 * index)) & _BYTE


@kernel
def _write_card(out, at, deck, number):
    """Number, heads and colors of a card, SHOWN entries."""
    shown = deck["shown"][number]
    # All is loaded before anything is stored: so the compiler moves it as one piece.
    a, b, c, d = shown[0], shown[1], shown[2], shown[3]
    e, f, g, h = shown[4], shown[5], shown[6], shown[7]
    out[at], out[at + 1], out[at + 2], out[at + 3] = a, b, c, d
    out[at + 4], out[at + 5], out[at + 6], out[at + 7] = e, f, g, h


@kernel
def _count(set0, set1):
    """Members of a set of numbers."""
    return popcount(set0) + popcount(set1)


@kernel
def _sharing(deck, number, set0, set1):
    """The members of a set of numbers that share a color with the card."""
    sharing = deck["sharing"][np.int64(deck["fits"][number] & _63)]
    return set0 & sharing[0], set1 & sharing[1]


@kernel
def _card_at(game, seat, card):
    """The number in a hand slot, or (last) the card being placed; NO_CARD if there is none."""
    if card < HAND_SIZE:
        return np.int64(game["hands"][seat, card])
    # `revealed` is blank outside the row phase, but in it the placed cards stay in front.
    return np.int64(game["revealed"][game["placed"]])


@kernel
def encode(game, deck, seat, out):
    """Write the seat's observation into `out` float32 [OBS], in place."""
    encode_ahead(game, deck, seat, out, out)


@kernel
def encode_ahead(game, deck, seat, out, ahead):
    """Like `encode`, and the memory brings `ahead` [OBS], where the next one will be written.

    A part at a time, for a processor cannot wait for more than some twenty lines at once: to write
    large batches takes a third less time than with all of them at the beginning.
    """
    # Each piece is written whole or blanked first, not both: a processor stores once in a cycle.
    _fetch_quarter(ahead, 0)
    _encode_table(game, seat, out)
    _encode_seats(game, seat, out)
    _fetch_quarter(ahead, 1)
    _encode_public_cards(game, deck, seat, out)
    _encode_rows(game, deck, out)
    _fetch_quarter(ahead, 2)
    _encode_own(game, deck, seat, out)
    _fetch_quarter(ahead, 3)
    _encode_revealed(game, deck, seat, out)


@kernel
def _fetch_quarter(ahead, quarter):
    for offset in range(quarter * OBS, (quarter + 1) * OBS, CACHE_LINE):  # a float is four bytes
        fetch(ahead, offset)


@kernel
def _encode_own(game, deck, seat, out):
    """What only the seat knows: its cards, and what they leave unseen."""
    unseen0, unseen1 = unseen_set(game, seat, seat + 1)
    share = np.float32(1) / np.float32(max(_count(unseen0, unseen1), 1))
    own = np.int64(game["hand_sizes"][seat])
    out[_CARDS_LEFT] = np.float32(own + np.int64(game["pile_sizes"][seat])) * _BY_24
    out[_NEXT_DRAW] = np.float32(own) * _QUARTER
    _encode_unseen(deck, unseen0, unseen1, out)
    _encode_cards(game, deck, seat, (unseen0, unseen1, share), out)


@kernel
def _encode_table(game, seat, out):
    for index in range(_CARDS):
        out[index] = np.float32(0)
    phase = np.int64(game["phase"])
    to_come = np.int64(game["match_games"]) - np.int64(game["match_game"])
    out[_CARD_PHASE] = phase == CARD_PHASE
    out[_ROW_PHASE] = phase == ROW_PHASE
    out[_DECIDES] = decides(game, seat)
    out[_COLOR_RULE] = game["rules"] & COLOR != 0
    out[_POSITIVE_RULE] = is_positive(game)
    out[_TABLE + np.int64(game["players"]) - MIN_PLAYERS] = np.float32(1)
    out[_GAMES_TO_COME] = min(np.float32(to_come) * _TENTH, np.float32(HIGH))
    out[_GAME_OF_MATCH] = min(np.float32(game["match_game"]) * _TENTH, np.float32(HIGH))
    out[_LAST_GAME] = to_come == 0


@kernel
def _encode_unseen(deck, unseen0, unseen1, out):
    out[_UNSEEN_ALL] = np.float32(_count(unseen0, unseen1)) * _BY_NUMBER
    for color in range(N_COLORS):
        numbers = deck["showing"][color]
        count = _count(unseen0 & numbers[0], unseen1 & numbers[1])
        out[_UNSEEN_SHOWING + color] = np.float32(count) * _BY_40
    for heads in range(4):
        numbers = deck["worth"][heads]
        count = _count(unseen0 & numbers[0], unseen1 & numbers[1])
        out[_UNSEEN_WORTH + heads] = np.float32(count) * _BY_60


@kernel
def _row_fields(game):
    """The fields of the rows' packed sums, each as one word: byte r is that of row r."""
    sums = game["row_sums"]
    return columns(sums[0], sums[1], sums[2], sums[3], sums[4])


@kernel
def _encode_rows(game, deck, out):
    """What all see of the rows."""
    for row in range(ROWS):
        end = np.int64(game["rows"][row, length_of(game["row_sums"][row]) - 1])
        _write_card(out, _ROWS + row * _ROW + _END, deck, end)
    fields = _row_fields(game)
    write_rows(
        out,
        _ROWS + _SUMS,
        _ROW,
        (
            fields[LENGTH_BYTE],
            fields[HEADS_BYTE],
            fields[0],
            fields[1],
            fields[2],
            fields[3],
            fields[4],
            fields[5],
        ),
        (_FIFTH, _TENTH, _FIFTH, _FIFTH, _FIFTH, _FIFTH, _FIFTH, _FIFTH),
    )


@kernel
def _fitting_rows(game, deck):
    """For each row the numbers that fit it, as two words: ten words in all."""
    a, b = _fitting_row(game, deck, 0)
    c, d = _fitting_row(game, deck, 1)
    e, f = _fitting_row(game, deck, 2)
    g, h = _fitting_row(game, deck, 3)
    i, j = _fitting_row(game, deck, 4)
    return a, b, c, d, e, f, g, h, i, j


@kernel
def _fitting_row(game, deck, row):
    sharing = deck["sharing"][_byte(game["row_ends"], row) & _63]
    return sharing[0], sharing[1]


@kernel
def _rows_counts(fitting, set0, set1):
    """A word whose byte r says how many members of a set of numbers fit row r."""
    counts = np.uint64(0)
    for row in range(ROWS):
        count = _count(set0 & fitting[2 * row], set1 & fitting[2 * row + 1])
        counts |= np.uint64(count) << np.uint64(8 * row)
    return counts


@kernel
def _encode_cards(game, deck, seat, unseen, out):
    """The cards that are there, and the rows' counts of cards that fit; `unseen` is that of
    `_encode_card`."""
    fitting = _fitting_rows(game, deck)
    rows = _row_fields(game), fitting
    unseen0, unseen1, share = unseen
    own = np.uint64(0)  # byte r: own cards that fit row r
    for card in range(CARDS):
        number = _card_at(game, seat, card)
        if number != NO_CARD:
            _encode_card(game, deck, card, number, rows, unseen, out)
            if card < HAND_SIZE:
                own += row_flags(game, deck, number)
        else:
            for index in range(_CARD):
                out[_CARDS + card * _CARD + index] = np.float32(0)
            for index in range(ROWS * _PAIR):
                out[_PAIRS + card * (ROWS * _PAIR) + index] = np.float32(0)
    words = _rows_counts(fitting, unseen0, unseen1), own, np.uint64(0)
    write_rows(out, _ROWS + _ROW_COUNTS, _ROW, words, (share, _QUARTER, _FIFTH))


@kernel_inlined
def _encode_card(game, deck, card, number, rows, unseen, out):
    """One card by itself, and how it stands to each row.

    rows    of `_row_fields` and of `_fitting_rows`
    unseen  the set of unseen numbers, as two words, and one over its size
    """
    row_fields, fitting = rows
    unseen0, unseen1, share = unseen
    card &= 7  # tells the compiler that no index is negative
    number &= 127
    fit0, fit1 = _sharing(deck, number, unseen0, unseen1)
    lower0, lower1 = below(number)
    lower0 &= unseen0
    lower1 &= unseen1
    at = _CARDS + card * _CARD
    out[at + _PRESENT] = np.float32(1)
    _write_card(out, at + _SHOWN, deck, number)
    out[at + _LOWER] = np.float32(_count(lower0, lower1)) * share
    out[at + _FITTING] = np.float32(_count(fit0, fit1)) * share
    out[at + _FOLLOWING] = np.float32(0)
    word = deck["cards"][number]
    # From here on all rows at once, as the bytes of a word.
    fits = row_flags(game, deck, number)
    anywhere = np.uint64(legal_rows(game, deck, number) == ALL_ROWS) * _EACH_ROW
    full = overflow_flags(game, deck, number)
    taken = (full | (fits ^ _EACH_ROW)) * _BYTE
    heads = row_fields[HEADS_BYTE] & taken
    cards = (row_fields[LENGTH_BYTE] & ~taken) + _EACH_ROW
    most = highest_sums(row_fields[:N_COLORS], ~taken, word)
    lower = _rows_counts(fitting, lower0, lower1)
    write_rows(
        out,
        _PAIRS + card * (ROWS * _PAIR) + _PAIR_BLOCK,
        _PAIR,
        (fits, fits | anywhere, heads, cards, most, lower),
        (_WHOLE, _WHOLE, _TENTH, _FIFTH, _SIXTH, share),
    )


@kernel
def _encode_seats(game, seat, out):
    """The seats; all pieces from here to the end are blanked first."""
    for index in range(_SEATS, OBS):
        out[index] = np.float32(0)
    players = np.int64(game["players"])
    total = match_total = cards = 0
    fewest = NUMBERS
    for other in range(players):
        total += np.int64(game["points"][other])
        match_total += np.int64(game["match_points"][other])
        left = np.int64(game["hand_sizes"][other]) + np.int64(game["pile_sizes"][other])
        cards += left
        fewest = min(fewest, left)
    out[_FEWEST_LEFT] = np.float32(fewest) * _BY_24
    out[_ALL_LEFT] = np.float32(cards) * _BY_NUMBER
    turned = np.float32(sign(game))
    others = _OTHERS[players]
    for other in range(players):
        offset = other - seat
        offset = (offset + players if offset < 0 else offset) & 15
        points = np.int64(game["points"][other])
        hand = _QUARTERS[game["hand_sizes"][other]]
        pile = _TWENTIETHS[game["pile_sizes"][other]]
        relative = turned * (np.float32(points) - np.float32(total - points) * others)
        at = _SEATS + offset * _SEAT
        out[at + _AT_TABLE] = np.float32(1)
        out[at + _GAME_POINTS] = _clip(np.float32(points) * _BY_30)
        out[at + _GAME_RELATIVE] = _clip(relative * _BY_30)
        out[at + _IN_HAND] = hand
        out[at + _IN_PILE] = pile
    if game["match_game"] > 1:
        for other in range(players):
            offset = other - seat
            offset = offset + players if offset < 0 else offset
            before = np.int64(game["match_points"][other])
            relative = turned * (np.float32(before) - np.float32(match_total - before) * others)
            out[_SEATS + offset * _SEAT + _MATCH_RELATIVE] = _clip(relative * _BY_60)


@kernel
def _encode_public_cards(game, deck, seat, out):
    """`positive`: cards everybody knows to be under the seats' piles or in their hands."""
    if not is_positive(game):
        return
    players = np.int64(game["players"])
    for other in range(players):
        offset = other - seat
        if offset < 0:
            offset += players
        at = _SEATS + offset * _SEAT
        # Returned cards are the last of the pile.
        position = np.int64(game["pile_sizes"][other]) - 1
        while position >= 0:
            number = np.int64(game["piles"][pile_cell(game, other, position)])
            if not is_seen(game, number):
                break
            out[at + _RETURNED_COUNT] += _BY_8
            _add_colors(out, _RETURNED + offset * N_COLORS, deck["cards"][number])
            position -= 1
        for slot in range(np.int64(game["hand_sizes"][other])):
            number = np.int64(game["hands"][other, slot])
            if is_seen(game, number):
                out[at + _KNOWN_COUNT] += _QUARTER
                _add_colors(out, _KNOWN + offset * N_COLORS, deck["cards"][number])


@kernel
def _add_colors(out, at, word):
    for color in range(N_COLORS):
        out[at + color] = _clip(out[at + color] + _SIXTHS[_byte(word, color)])


@kernel
def _encode_revealed(game, deck, seat, out):
    """The revealed cards still to be placed, in order; what follows the first fits where?"""
    if game["phase"] != ROW_PHASE:
        return
    players = np.int64(game["players"])
    placed = np.int64(game["placed"])
    follow0 = follow1 = np.uint64(0)  # the numbers still to follow the first
    for place in range(placed, players):
        number = np.int64(game["revealed"][place])
        owner = np.int64(game["revealed_by"][place])
        offset = owner - seat
        if offset < 0:
            offset += players
        shown = deck["shown"][number]
        at = _REVEALED + (place - placed) * _REV
        out[at + _REV_PRESENT] = np.float32(1)
        out[at + _REV_OWN] = owner == seat
        out[at + _REV_SEAT] = np.float32(offset) * _TENTH
        out[at + _REV_NUMBER] = shown[0]
        for color in range(N_COLORS):
            out[at + _REV_COLORS + color] = shown[2 + color]
        out[_SEATS + offset * _SEAT + _TO_BE_PLACED] = np.float32(1)
        if place > placed:
            bit0, bit1 = bits_of(number)
            follow0 |= bit0
            follow1 |= bit1
    counts = _rows_counts(_fitting_rows(game, deck), follow0, follow1)
    write_rows(out, _ROWS + _ROW_FOLLOWING, _ROW, (counts,), (_FIFTH,))
    for card in range(CARDS):
        number = _card_at(game, seat, card)
        if number != NO_CARD:
            fit0, fit1 = _sharing(deck, number, follow0, follow1)
            out[_CARDS + card * _CARD + _FOLLOWING] = np.float32(_count(fit0, fit1)) * _FIFTH


@kernel
def encode_pending(games, decks, who, n, out):
    """Observations of the first `n` of `who` (PENDING) into `out` float32 [N, OBS]."""
    for i in range(n):
        game = games[who[i]["game"]]
        ahead = out[min(i + 1, n - 1)]
        encode_ahead(game, decks[game["deck"]], np.int64(who[i]["seat"]), out[i], ahead)


@kernel
def _encode_one(games, decks, seat, out):
    encode(games[0], decks[0], seat, out)


def observe(view: View) -> NDArray[np.float32]:
    """The observation [OBS] of a view."""
    out = np.empty(OBS, np.float32)
    _encode_one(view.games, view.decks, view.seat, out)
    return out


def pieces(observation: ArrayLike) -> dict[str, NDArray[np.float32]]:
    """The observation [..., OBS] taken apart: piece name -> array [..., *shape]."""
    array = np.asarray(observation, dtype=np.float32)
    if array.shape[-1:] != (OBS,):
        raise ValueError(f"an observation has {OBS} entries in its last axis, not {array.shape}")
    lead = array.shape[:-1]
    return {p.name: array[..., SLICES[p.name]].reshape(*lead, *p.shape) for p in PIECES}


def explain(observation: ArrayLike) -> str:
    """An observation [OBS] as text: every piece by name, with the entries that are not zero.

    Lines of a piece are numbered by its leading axes; an entry reads `what/unit = value`.
    """
    lines: list[str] = []
    for piece, values in zip(
        PIECES, pieces(np.asarray(observation).reshape(-1)).values(), strict=True
    ):
        lines.append(f"{piece.name} {list(piece.shape)}")
        for index in np.ndindex(*piece.shape[:-1]):
            shown = [
                f"{name} = {value:.3g}"
                for name, value in zip(piece.fields, values[index].tolist(), strict=True)
                if value
            ]
            if shown:
                label = f"[{', '.join(map(str, index))}] " if index else ""
                lines.append(f"  {label}{'; '.join(shown)}")
    return "\n".join(lines)


def describe() -> list[dict[str, Any]]:
    """The layout as plain data, for documentation: name, first entry, shape, fields."""
    return [
        {"name": p.name, "start": START[p.name], "shape": list(p.shape), "fields": list(p.fields)}
        for p in PIECES
    ]


assert PHASES[CARD_PHASE] == "card" and CARDS_DEALT.max() == 24
