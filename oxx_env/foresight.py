"""Foresight: what follows from each choice, as far as plain counting tells.

A network could learn to place the remaining cards of a round in its head, but it learns faster and
plays better if it is told. `foresee` puts each choice on a trial table, lets the others go on by a
fixed rule, and writes what then is; `PIECES` says what. Nothing is drawn and nothing is looked at
that the seat does not know. The environment's observation (`observe`) holds none of this: it is
what the policies of this package see besides, `INPUT` numbers in all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxx_env.engine import best_heads
from oxx_env.jit import kernel
from oxx_env.observe import HIGH, LOW, OBS, Piece, encode
from oxx_env.rules import (
    CARD_PHASE,
    GAME,
    HAND_SIZE,
    NTH_ROW,
    NUMBERS,
    ROWS,
    bits_of,
    decides,
    heads_of,
    heads_taken,
    is_positive,
    legal_rows,
    length_of,
    matching_rows,
    place,
    popcount,
    put_under_pile,
    takes,
)
from oxx_env.views import View

FORESIGHT_VERSION = 1

# Points count better-is-more here, whatever the rule set.
OPTION_FIELDS = (
    "points by the end of the round, own against the mean of the others/10",
    "own points by the end of the round/10",
    "sum of what the own cards would make next/10",
    "... the worst of them/10",
    "... the best of them/10",
    "own cards that would fit a row/4",
    "heads in all rows/40",
    "mean of what the unseen cards would make next/5",
    "share of the unseen cards that would make nothing",
    "expected change of the own cards' points by unseen lower cards, sum/10",
    "... by unseen higher cards, sum/10",
    "best own card, with its expected change by lower cards/10",
)
SLOT_FIELDS = (
    "points if it were placed now/10",
    "expected change of them by unseen lower cards/10",
    "... by unseen higher cards/10",
    "sum of what the other own cards would then make/10",
    "... the best of them/10",
    "mean of what the unseen cards would then make/5",
    "share of the unseen cards that would then make nothing",
)
PIECES = (
    # For each row that the card being placed may go to, if the seat decides where; else 0.
    Piece("options", (ROWS, len(OPTION_FIELDS)), OPTION_FIELDS),
    # For each card in hand, if the seat decides which to play; else 0.
    Piece("slots", (HAND_SIZE, len(SLOT_FIELDS)), SLOT_FIELDS),
)
FORESIGHT = sum(piece.size for piece in PIECES)
INPUT = OBS + FORESIGHT  # what a network sees: the observation, then the foresight

_OPTION, _SLOT = len(OPTION_FIELDS), len(SLOT_FIELDS)
_SLOTS = PIECES[0].size
_0, _1 = np.uint64(0), np.uint64(1)
_BYTE = np.uint64(0xFF)
_LOW, _HIGH = np.float32(LOW), np.float32(HIGH)
_TENTH, _FIFTH, _QUARTER, _BY_40 = (np.float32(1 / n) for n in (10, 5, 4, 40))
NOW, LOWER, HIGHER = 0, 1, 2  # of a scratch: an own card's points, and their changes by others


def scratch(
    most: int = NUMBERS,
) -> tuple[NDArray[np.void], NDArray[np.float32], NDArray[np.uint8], int]:
    """What the kernels here work with; one for each thread.

    most  unseen cards that are looked at: where there are more, so many of them, evenly by number,
          stand for all. Search plays out with few, since counting takes most of the time.
    """
    marks = np.zeros((3, HAND_SIZE), np.float32)
    return np.zeros(1, GAME), marks, np.zeros(NUMBERS, np.uint8), most


# --- a trial table ------------------------------------------------------------------------------


@kernel
def plain_row(game, deck, number):
    """The row of `greedy` where the card fits somewhere, but of equals the one that ends lowest."""
    rows = legal_rows(game, deck, number)
    sign = 1 if is_positive(game) else -1
    best, chosen = -1 << 40, 0
    while rows:
        row = NTH_ROW[rows, 0]
        rows &= rows - 1
        length = length_of(game["row_sums"][row])
        value = sign * heads_taken(game, deck, number, row) * 64 - length
        value = value * 128 - np.int64(game["rows"][row, length - 1])
        if value > best:
            best, chosen = value, row
    return chosen


@kernel
def lay(game, deck, number, row):
    """Put a card on a row; only the words that tell what fits and what it makes are changed."""
    if takes(game, deck, number, row):
        game["row_sums"][row] = _0
    game["row_sums"][row] += deck["cards"][number]
    mask = _BYTE << np.uint64(8 * row)
    game["row_ends"] = (game["row_ends"] & ~mask) | (deck["fits"][number] & mask)


@kernel
def list_members(set0, set1, numbers):
    """The members of a set of numbers into `numbers`, ascending. Returns how many."""
    count = 0
    while set0 != _0:
        lower = (set0 & (~set0 + _1)) - _1
        numbers[count] = popcount(lower)
        set0 &= set0 - _1
        count += 1
    while set1 != _0:
        lower = (set1 & (~set1 + _1)) - _1
        numbers[count] = 64 + popcount(lower)
        set1 &= set1 - _1
        count += 1
    return count


@kernel
def list_unseen(game, seat, unseen):
    """The numbers that the seat has not seen, ascending. Returns how many."""
    set0 = ~game["seen"][0] & ~_1
    set1 = ~game["seen"][1] & ((_1 << np.uint64(NUMBERS - 63)) - _1)
    for slot in range(np.int64(game["hand_sizes"][seat])):
        bit0, bit1 = bits_of(np.int64(game["hands"][seat, slot]))
        set0 &= ~bit0
        set1 &= ~bit1
    return list_members(set0, set1, unseen)


@kernel
def thin(numbers, count, most):
    """Leave at most `most` of the first `count` numbers, spread evenly. Returns how many."""
    if count <= most:
        return count
    for k in range(most):
        numbers[k] = numbers[(2 * k + 1) * count // (2 * most)]
    return most


@kernel
def total_points(game):
    """Points of all seats in this game."""
    total = 0
    for seat in range(np.int64(game["players"])):
        total += np.int64(game["points"][seat])
    return total


# --- what is told -------------------------------------------------------------------------------


@kernel
def _prospects(game, deck, unseen, count, out, at):
    """What an unseen card would make: the mean, and the share of those that make nothing."""
    total, nothing = 0, 0
    for k in range(count):
        value = best_heads(game, deck, np.int64(unseen[k]))
        total += value
        nothing += value == 0
    share = np.float32(1) / np.float32(max(1, count))
    out[at] = np.float32(total) * share * _FIFTH
    out[at + 1] = np.float32(nothing) * share


@kernel
def _changes(game, deck, seat, unseen, count, marks):
    """Expected changes of the own cards' points, `marks[NOW]`, by one unseen card of each other
    seat, placed where it is best for its player: by lower and by higher cards. The game is left as
    it was."""
    size = np.int64(game["hand_sizes"][seat])
    for slot in range(size):
        marks[LOWER, slot] = np.float32(0)
        marks[HIGHER, slot] = np.float32(0)
    for k in range(count):
        number = np.int64(unseen[k])
        if legal_rows(game, deck, number) == 0:
            continue
        row = plain_row(game, deck, number)
        row_sum, ends = game["row_sums"][row], game["row_ends"]
        lay(game, deck, number, row)
        for slot in range(size):
            card = np.int64(game["hands"][seat, slot])
            change = np.float32(best_heads(game, deck, card)) - marks[NOW, slot]
            marks[LOWER if number < card else HIGHER, slot] += change
        game["row_sums"][row], game["row_ends"] = row_sum, ends
    others = np.float32(game["players"]) - np.float32(1)
    share = others / np.float32(max(1, count))
    for slot in range(size):
        marks[LOWER, slot] *= share
        marks[HIGHER, slot] *= share


@kernel
def _finish_placing(game, deck):
    """Place all cards still revealed by `plain_row`."""
    while game["placed"] < game["players"]:
        number = np.int64(game["revealed"][game["placed"]])
        if legal_rows(game, deck, number):
            place(game, deck, plain_row(game, deck, number))
        else:
            put_under_pile(game)


@kernel
def _foresee_row(game, deck, seat, after, marks, unseen, count, row, out):
    """One row for the card being placed: fills OPTION_FIELDS. `after` is a copy of the game."""
    sign = np.float32(1 if is_positive(game) else -1)
    place(after, deck, row)
    _finish_placing(after, deck)
    own = np.int64(after["points"][seat]) - np.int64(game["points"][seat])
    theirs = total_points(after) - total_points(game) - own
    mean = np.float32(theirs) / (np.float32(game["players"]) - np.float32(1))
    at = row * _OPTION
    out[at] = sign * (np.float32(own) - mean) * _TENTH
    out[at + 1] = sign * np.float32(own) * _TENTH
    size = np.int64(game["hand_sizes"][seat])
    worst, best, together, fitting = 0, 0, 0, 0
    for slot in range(size):
        card = np.int64(game["hands"][seat, slot])
        value = best_heads(after, deck, card)
        together += value
        worst = min(worst, value) if slot else value
        best = max(best, value) if slot else value
        fitting += matching_rows(after, deck, card) != 0
        marks[NOW, slot] = np.float32(value)
    out[at + 2] = np.float32(together) * _TENTH
    out[at + 3] = np.float32(worst) * _TENTH
    out[at + 4] = np.float32(best) * _TENTH
    out[at + 5] = np.float32(fitting) * _QUARTER
    heads = 0
    for other in range(ROWS):
        heads += heads_of(after["row_sums"][other])
    out[at + 6] = np.float32(heads) * _BY_40
    _prospects(after, deck, unseen, count, out, at + 7)
    _changes(after, deck, seat, unseen, count, marks)
    for slot in range(size):
        out[at + 9] += marks[LOWER, slot] * _TENTH
        out[at + 10] += marks[HIGHER, slot] * _TENTH
        value = (marks[NOW, slot] + marks[LOWER, slot]) * _TENTH
        out[at + 11] = max(out[at + 11], value) if slot else value


@kernel
def _foresee_slot(game, deck, seat, after, marks, unseen, count, slot, out):
    """One card of the hand: fills SLOT_FIELDS. `after`, a copy of the game, is left as it was."""
    at = _SLOTS + slot * _SLOT
    out[at] = marks[NOW, slot] * _TENTH
    out[at + 1] = marks[LOWER, slot] * _TENTH
    out[at + 2] = marks[HIGHER, slot] * _TENTH
    card = np.int64(game["hands"][seat, slot])
    if legal_rows(game, deck, card) == 0:  # V2b: nothing would change on the table
        return
    row = plain_row(game, deck, card)
    row_sum, ends = after["row_sums"][row], after["row_ends"]
    lay(after, deck, card, row)
    together, best = 0, -1 << 40
    for other in range(np.int64(game["hand_sizes"][seat])):
        if other != slot:
            value = best_heads(after, deck, np.int64(game["hands"][seat, other]))
            together += value
            best = max(best, value)
    out[at + 3] = np.float32(together) * _TENTH
    out[at + 4] = np.float32(best) * _TENTH
    _prospects(after, deck, unseen, count, out, at + 5)
    after["row_sums"][row], after["row_ends"] = row_sum, ends


@kernel
def foresee(game, deck, seat, work, out):
    """Write the foresight of one seat, float32 [FORESIGHT]; zeros where it decides nothing.

    work  from `scratch`
    """
    trial, marks, unseen, most = work
    for i in range(FORESIGHT):
        out[i] = np.float32(0)
    if not decides(game, seat):
        return
    after = trial[0]
    trial[0] = game
    count = thin(unseen, list_unseen(game, seat, unseen), most)
    if game["phase"] == CARD_PHASE:
        size = np.int64(game["hand_sizes"][seat])
        for slot in range(size):
            card = np.int64(game["hands"][seat, slot])
            marks[NOW, slot] = np.float32(best_heads(game, deck, card))
        _changes(after, deck, seat, unseen, count, marks)
        for slot in range(size):
            _foresee_slot(game, deck, seat, after, marks, unseen, count, slot, out)
    else:
        _foresee_rows(game, deck, seat, trial, marks, unseen, count, out)
    for i in range(FORESIGHT):  # decks of very many heads
        out[i] = min(max(out[i], _LOW), _HIGH)


@kernel
def _foresee_rows(game, deck, seat, trial, marks, unseen, count, out):
    rows = legal_rows(game, deck, np.int64(game["revealed"][game["placed"]]))
    while rows:
        row = NTH_ROW[rows, 0]
        rows &= rows - 1
        trial[0] = game
        _foresee_row(game, deck, seat, trial[0], marks, unseen, count, row, out)


# --- the input of a network ---------------------------------------------------------------------


@kernel
def encode_input(game, deck, seat, work, out):
    """Observation and foresight of one seat, float32 [INPUT]."""
    encode(game, deck, seat, out[:OBS])
    foresee(game, deck, seat, work, out[OBS:])


@kernel
def _encode_pending(games, decks, who, n, work, out):
    for i in range(n):
        game = games[who[i]["game"]]
        encode_input(game, decks[game["deck"]], np.int64(who[i]["seat"]), work, out[i])


def encode_inputs(
    games: NDArray[np.void],
    decks: NDArray[np.void],
    who: NDArray[np.void],
    n: int,
    out: NDArray[np.float32],
    most: int = NUMBERS,
) -> None:
    """The inputs of the first `n` of `who` (PENDING) into `out` [N, INPUT]; `most`: `scratch`."""
    _encode_pending(games, decks, who, n, scratch(most), out)


@kernel
def _encode_one(games, decks, seat, work, out):
    encode_input(games[0], decks[0], seat, work, out)


def network_input(view: View) -> NDArray[np.float32]:
    """What a network sees of a view, float32 [INPUT]."""
    out = np.empty(INPUT, np.float32)
    _encode_one(view.games, view.decks, view.seat, scratch(), out)
    return out
