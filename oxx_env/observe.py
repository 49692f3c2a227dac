"""The observation: a table of named pieces, encoded for one seat, and explained by name.

`PIECES` is the only place that knows the layout; the size, the offsets in the kernel, `explain` and
the documentation derive from it. The size is the same for all player counts, rule sets and decks.
Cards are described by their heads and number, never by identity, so that a policy can play a deck
it never saw. Seats are listed from the observer on. Everything is scaled to about 0..1; heads on
odd decks may go beyond, but stay within `LOW`..`HIGH`.

The kernel reads only what the seat may know: the own hand, and of all others what has been seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oxx_env.cards import COLORS
from oxx_env.jit import kernel
from oxx_env.rules import (
    CARD_PHASE,
    CARDS_DEALT,
    COLOR,
    HAND_SIZE,
    MAX_PLAYERS,
    N_COLORS,
    NO_CARD,
    NUMBERS,
    POSITIVE,
    ROW_PHASE,
    ROWS,
    color_count,
    decides,
    heads_of,
    is_seen,
    legal_rows,
    matching_rows,
    overflows,
    pile_cell,
)
from oxx_env.views import PHASES, View

OBSERVATION_VERSION = 1
LOW, HIGH = -8.0, 8.0
CARDS = HAND_SIZE + 1  # cards described one by one: the hand slots and the card being placed

CARD_FIELDS = (
    "present",
    "number/110",
    "heads/6",
    *(f"{color}/3" for color in COLORS),
    "unseen cards that are lower, share",
    "unseen cards that share a colour, share",
    "revealed cards still to follow that share a colour/5",
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
    "most heads of one colour afterwards/6",
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

_PHASE, _RULES, _TABLE = START["phase"], START["rules"], START["table"]
_CLOCK, _MATCH, _UNSEEN = START["clock"], START["match"], START["unseen"]
_CARDS, _CARD = START["cards"], len(CARD_FIELDS)
_ROWS, _ROW = START["rows"], len(ROW_FIELDS)
_PAIRS, _PAIR = START["pairs"], len(PAIR_FIELDS)
_SEATS, _SEAT = START["seats"], len(SEAT_FIELDS)
_REVEALED, _REV = START["revealed"], len(REVEALED_FIELDS)
_KNOWN, _RETURNED = START["known_hand"], START["returned"]

_0, _1, _2, _4, _63 = (np.uint64(n) for n in (0, 1, 2, 4, 63))
_FIVES, _THREES, _NIBBLES, _ONES, _56 = (
    np.uint64(n)
    for n in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101, 56)
)
_NUMBERS_LOW = np.uint64(0xFFFFFFFFFFFFFFFE)
_NUMBERS_HIGH = np.uint64((1 << (NUMBERS - 63)) - 1)
_TENTHS = np.float32(0.1)


@kernel
def _popcount(word):
    """Bits set in a uint64; the compiler knows this form and makes one instruction of it."""
    word -= (word >> _1) & _FIVES
    word = (word & _THREES) + ((word >> _2) & _THREES)
    word = (word + (word >> _4)) & _NIBBLES
    return np.int64((word * _ONES) >> _56)


@kernel
def _clip(value):
    return min(max(value, np.float32(LOW)), np.float32(HIGH))


@kernel
def _write_colors(out, at, word, scale):
    for color in range(N_COLORS):
        out[at + color] = np.float32(color_count(word, color)) * scale


@kernel
def _fit_set(deck, colors, half):
    """The numbers (half of the bit set) that show one of some colours, given as 6 bits."""
    numbers = _0
    for color in range(N_COLORS):
        if colors >> color & 1:
            numbers |= deck["showing"][color, half]
    return numbers


@kernel
def encode(game, deck, seat, out):
    """Write the seat's observation into `out` float32 [OBS], in place."""
    third, fifth, sixth = np.float32(1 / 3), np.float32(1 / 5), np.float32(1 / 6)
    by_number, quarter = np.float32(1 / NUMBERS), np.float32(1 / 4)
    for index in range(OBS):
        out[index] = np.float32(0)
    players = np.int64(game["players"])
    phase = np.int64(game["phase"])
    in_row_phase = phase == ROW_PHASE
    placed = np.int64(game["placed"])

    out[_PHASE] = phase == CARD_PHASE
    out[_PHASE + 1] = in_row_phase
    out[_PHASE + 2] = decides(game, seat)
    out[_RULES] = game["rules"] & COLOR != 0
    out[_RULES + 1] = game["rules"] & POSITIVE != 0
    out[_TABLE + players - 2] = np.float32(1)
    to_come = np.int64(game["match_games"]) - np.int64(game["match_game"])
    out[_MATCH] = min(np.float32(to_come) * _TENTHS, np.float32(HIGH))
    out[_MATCH + 1] = min(np.float32(game["match_game"]) * _TENTHS, np.float32(HIGH))
    out[_MATCH + 2] = to_come == 0

    _encode_seats(game, deck, seat, out)

    # Unseen: neither seen by all nor in the own hand.
    unseen0 = ~game["seen"][0] & _NUMBERS_LOW
    unseen1 = ~game["seen"][1] & _NUMBERS_HIGH
    hand = np.int64(game["hand_sizes"][seat])
    for slot in range(hand):
        number = np.int64(game["hands"][seat, slot])
        bit = ~(_1 << np.uint64(number & 63))
        if number < 64:
            unseen0 &= bit
        else:
            unseen1 &= bit
    unseen = _popcount(unseen0) + _popcount(unseen1)
    share = np.float32(1) / np.float32(max(unseen, 1))
    out[_UNSEEN] = np.float32(unseen) * by_number
    for color in range(N_COLORS):
        showing = deck["showing"][color]
        count = _popcount(unseen0 & showing[0]) + _popcount(unseen1 & showing[1])
        out[_UNSEEN + 1 + color] = np.float32(count) * np.float32(1 / 40)
    for heads in range(4):
        worth = deck["worth"][heads]
        count = _popcount(unseen0 & worth[0]) + _popcount(unseen1 & worth[1])
        out[_UNSEEN + 1 + N_COLORS + heads] = np.float32(count) * np.float32(1 / 60)

    # Rows.
    for row in range(ROWS):
        at = _ROWS + row * _ROW
        size = np.int64(game["row_sizes"][row])
        end = np.int64(game["rows"][row, size - 1])
        end_word, row_word = deck["cards"][end], game["row_sums"][row]
        out[at] = np.float32(end) * by_number
        out[at + 1] = np.float32(heads_of(end_word)) * sixth
        _write_colors(out, at + 2, end_word, third)
        out[at + 8] = np.float32(size) * fifth
        out[at + 9] = np.float32(heads_of(row_word)) * _TENTHS
        _write_colors(out, at + 10, row_word, fifth)
        colors = np.int64(deck["fits"][end] & _63)
        fit0 = unseen0 & _fit_set(deck, colors, 0)
        fit1 = unseen1 & _fit_set(deck, colors, 1)
        out[at + 16] = np.float32(_popcount(fit0) + _popcount(fit1)) * share
        # The pairs' share of unseen lower cards that fit the row, while its bit set is at hand.
        for card in range(CARDS):
            number = _card_at(game, seat, card, hand, in_row_phase, placed)
            if number != NO_CARD:
                count = _lower(fit0, fit1, number)
                out[_PAIRS + (card * ROWS + row) * _PAIR + 5] = np.float32(count) * share

    # Cards and (card, row) pairs.
    for card in range(CARDS):
        number = _card_at(game, seat, card, hand, in_row_phase, placed)
        if number == NO_CARD:
            continue
        word = deck["cards"][number]
        at = _CARDS + card * _CARD
        out[at] = np.float32(1)
        out[at + 1] = np.float32(number) * by_number
        out[at + 2] = np.float32(heads_of(word)) * sixth
        _write_colors(out, at + 3, word, third)
        out[at + 9] = np.float32(_lower(unseen0, unseen1, number)) * share
        colors = np.int64(deck["fits"][number] & _63)
        fit0 = unseen0 & _fit_set(deck, colors, 0)
        fit1 = unseen1 & _fit_set(deck, colors, 1)
        out[at + 10] = np.float32(_popcount(fit0) + _popcount(fit1)) * share
        fitting = matching_rows(game, deck, number)
        legal = legal_rows(game, deck, number)
        for row in range(ROWS):
            at = _PAIRS + (card * ROWS + row) * _PAIR
            fits = fitting >> row & 1
            out[at] = fits
            out[at + 1] = legal >> row & 1
            row_word = game["row_sums"][row]
            takes = fits == 0 or overflows(game, deck, number, row)
            if takes:
                out[at + 2] = np.float32(heads_of(row_word)) * _TENTHS
            after = word if takes else word + row_word
            out[at + 3] = np.float32(np.int64(after >> _56)) * fifth
            worst = 0
            for color in range(N_COLORS):
                worst = max(worst, color_count(after, color))
            out[at + 4] = np.float32(worst) * sixth
            if card < HAND_SIZE:
                out[_ROWS + row * _ROW + 17] += np.float32(fits) * quarter

    if in_row_phase:
        _encode_revealed(game, deck, seat, out)


@kernel
def _card_at(game, seat, card, hand, in_row_phase, placed):
    """The number in a hand slot, or (last) the card being placed; NO_CARD if there is none."""
    if card < HAND_SIZE:
        return np.int64(game["hands"][seat, card]) if card < hand else NO_CARD
    return np.int64(game["revealed"][placed]) if in_row_phase else NO_CARD


@kernel
def _lower(set0, set1, number):
    """Cards of a bit set with a lower number."""
    below = (_1 << np.uint64(number & 63)) - _1
    if number < 64:
        return _popcount(set0 & below)
    return _popcount(set0) + _popcount(set1 & below)


@kernel
def _encode_seats(game, deck, seat, out):
    players = np.int64(game["players"])
    total = match_total = cards = 0
    fewest = NUMBERS
    for other in range(players):
        total += np.int64(game["points"][other])
        match_total += np.int64(game["match_points"][other])
        left = np.int64(game["hand_sizes"][other]) + np.int64(game["pile_sizes"][other])
        cards += left
        fewest = min(fewest, left)
    own = np.int64(game["hand_sizes"][seat])
    out[_CLOCK] = np.float32(own + np.int64(game["pile_sizes"][seat])) * np.float32(1 / 24)
    out[_CLOCK + 1] = np.float32(own) * np.float32(1 / 4)
    out[_CLOCK + 2] = np.float32(fewest) * np.float32(1 / 24)
    out[_CLOCK + 3] = np.float32(cards) * np.float32(1 / NUMBERS)
    positive = game["rules"] & POSITIVE != 0
    sign = np.float32(1 if positive else -1)
    others = np.float32(1) / np.float32(players - 1)
    for offset in range(players):
        other = seat + offset
        if other >= players:
            other -= players
        at = _SEATS + offset * _SEAT
        points = np.int64(game["points"][other])
        before = np.int64(game["match_points"][other])
        relative = sign * (np.float32(points) - np.float32(total - points) * others)
        match_relative = sign * (np.float32(before) - np.float32(match_total - before) * others)
        out[at] = np.float32(1)
        out[at + 1] = _clip(np.float32(points) * np.float32(1 / 30))
        out[at + 2] = _clip(relative * np.float32(1 / 30))
        out[at + 3] = _clip(match_relative * np.float32(1 / 60))
        out[at + 4] = np.float32(game["hand_sizes"][other]) * np.float32(1 / 4)
        out[at + 5] = np.float32(game["pile_sizes"][other]) * np.float32(1 / 20)
        if positive:
            _encode_public_cards(game, deck, other, offset, out)


@kernel
def _encode_public_cards(game, deck, other, offset, out):
    """`positive`: cards everybody knows to be under the seat's pile or in its hand."""
    at = _SEATS + offset * _SEAT
    sixth = np.float32(1 / 6)
    for position in range(np.int64(game["pile_sizes"][other])):
        number = np.int64(game["piles"][pile_cell(game, other, position)])
        if number != NO_CARD and is_seen(game, number):
            out[at + 6] += np.float32(1 / 8)
            for color in range(N_COLORS):
                count = np.float32(color_count(deck["cards"][number], color))
                out[_RETURNED + offset * N_COLORS + color] += count * sixth
    for slot in range(np.int64(game["hand_sizes"][other])):
        number = np.int64(game["hands"][other, slot])
        if number != NO_CARD and is_seen(game, number):
            out[at + 7] += np.float32(1 / 4)
            for color in range(N_COLORS):
                count = np.float32(color_count(deck["cards"][number], color))
                out[_KNOWN + offset * N_COLORS + color] += count * sixth


@kernel
def _encode_revealed(game, deck, seat, out):
    """The revealed cards still to be placed, in order; what follows the first fits where?"""
    players = np.int64(game["players"])
    placed = np.int64(game["placed"])
    for place in range(placed, players):
        number = np.int64(game["revealed"][place])
        owner = np.int64(game["revealed_by"][place])
        offset = owner - seat
        if offset < 0:
            offset += players
        at = _REVEALED + (place - placed) * _REV
        out[at] = np.float32(1)
        out[at + 1] = owner == seat
        out[at + 2] = np.float32(offset) * _TENTHS
        out[at + 3] = np.float32(number) * np.float32(1 / NUMBERS)
        _write_colors(out, at + 4, deck["cards"][number], np.float32(1 / 3))
        out[_SEATS + offset * _SEAT + 8] = np.float32(1)
        if place > placed:
            fitting = matching_rows(game, deck, number)
            for row in range(ROWS):
                out[_ROWS + row * _ROW + 18] += np.float32(fitting >> row & 1) * np.float32(0.2)
            colors = deck["fits"][number] & _63
            for card in range(CARDS):
                other = _card_at(game, seat, card, np.int64(game["hand_sizes"][seat]), True, placed)
                if other != NO_CARD and deck["fits"][other] & colors:
                    out[_CARDS + card * _CARD + 11] += np.float32(0.2)


@kernel
def encode_pending(games, decks, who, n, out):
    """Observations of the first `n` of `who` (PENDING) into `out` float32 [N, OBS]."""
    for i in range(n):
        game = games[who[i]["game"]]
        encode(game, decks[game["deck"]], np.int64(who[i]["seat"]), out[i])


@kernel
def encode_seats(games, decks, out):
    """Observations of every seat of GAME [1] into `out` float32 [P, OBS]."""
    game = games[0]
    for seat in range(np.int64(game["players"])):
        encode(game, decks[game["deck"]], seat, out[seat])


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
