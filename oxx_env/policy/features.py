"""Features: what follows from each choice, as far as plain counting tells.

A network could learn to place the remaining cards of a round by itself, but it learns faster and
plays better with the result as an input. `write_features` puts each choice on a trial table, lets
the others go on by a fixed rule, and describes the table that follows by `PIECES`. Nothing is drawn
at random, and nothing is used that the seat does not know. The environment's
observation (`observe`) holds none of this: a policy of this package sees both, `INPUT` numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.observe import HIGH, LOW, OBS, Piece, encode
from oxx_env.game.rules import (
    CARD_PHASE,
    GAME,
    HAND_SIZE,
    NTH_ROW,
    NUMBERS,
    ROWS,
    decides,
    heads_of,
    is_positive,
    is_too_full,
    legal_rows,
    length_of,
    matching_rows,
    place,
    put_under_pile,
    row_flags,
    row_limits,
    takes,
)
from oxx_env.game.scoring import sign
from oxx_env.game.views import View, list_members, unseen_set
from oxx_env.lib.jit import kernel

FEATURES_VERSION = 1

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
# For each row that the card being placed may go to, if the seat decides where; else 0.
OPTIONS = Piece("options", (ROWS, len(OPTION_FIELDS)), OPTION_FIELDS)
# For each card in hand, if the seat decides which to play; else 0.
SLOTS = Piece("slots", (HAND_SIZE, len(SLOT_FIELDS)), SLOT_FIELDS)
PIECES = (OPTIONS, SLOTS)
FEATURES = sum(piece.size for piece in PIECES)
INPUT = OBS + FEATURES  # what a network sees: the observation, then the features

_OPTION, _SLOT = len(OPTION_FIELDS), len(SLOT_FIELDS)
_SLOTS = OPTIONS.size
_RELATIVE = OPTIONS.entry("points by the end of the round, own against the mean of the others")
_OWN = OPTIONS.entry("own points by the end of the round")
_SUM = OPTIONS.entry("sum of what the own cards would make next")
_WORST, _BEST = (OPTIONS.entry(f"... the {which} of them") for which in ("worst", "best"))
_FITTING = OPTIONS.entry("own cards that would fit a row")
_TABLE_HEADS = OPTIONS.entry("heads in all rows")
_UNSEEN = OPTIONS.entry(
    "mean of what the unseen cards would make next",
    "share of the unseen cards that would make nothing",
)
_BY_LOWER = OPTIONS.entry("expected change of the own cards' points by unseen lower cards, sum")
_BY_HIGHER = OPTIONS.entry("... by unseen higher cards, sum")
_BEST_AFTER = OPTIONS.entry("best own card, with its expected change by lower cards")
_SLOT_NOW = SLOTS.entry("points if it were placed now")
_SLOT_BY_LOWER = SLOTS.entry("expected change of them by unseen lower cards")
_SLOT_BY_HIGHER = SLOTS.entry("... by unseen higher cards")
_SLOT_SUM = SLOTS.entry("sum of what the other own cards would then make")
_SLOT_BEST = SLOTS.entry("... the best of them")
_SLOT_UNSEEN = SLOTS.entry(
    "mean of what the unseen cards would then make",
    "share of the unseen cards that would then make nothing",
)
_0, _1 = np.uint64(0), np.uint64(1)
_COLOR_BITS = np.uint64(0x3F)
_LOW, _HIGH = np.float32(LOW), np.float32(HIGH)
_TENTH, _FIFTH, _QUARTER, _BY_40 = (np.float32(1 / n) for n in (10, 5, 4, 40))
# Of a table, int64 [TABLE_FACTS, ROWS], and of a surveyed card, int64 [SURVEYED].
HEADS, RANK, ELSEWHERE, PLAINEST = range(4)
TABLE_FACTS = 4
MAKES, ROW, FIRST, SECOND, AT = range(5)
SURVEYED = 5
NONE = 1 << 30  # heads where the card fits no row
_NOWHERE = -1 << 50
_RANKS = 8192  # more than any two rows' ranks differ
NOW, LOWER, HIGHER = 0, 1, 2  # of a scratch: an own card's points, and their changes by others


class Scratch(NamedTuple):
    """What the kernels here work with; one for each thread.

    trial   GAME [1]
    marks   float32 [3, HAND_SIZE]: NOW, LOWER, HIGHER of each own card
    unseen  uint8 [NUMBERS], the unseen cards that are looked at
    most    so many of them at most
    table   int64 [TABLE_FACTS, ROWS], from `read_table`
    cards   int64 [HAND_SIZE + NUMBERS, SURVEYED], from `survey`: own cards, then unseen ones
    """

    trial: NDArray[np.void]
    marks: NDArray[np.float32]
    unseen: NDArray[np.uint8]
    most: int
    table: NDArray[np.int64]
    cards: NDArray[np.int64]


def scratch(most: int = NUMBERS) -> Scratch:
    """Memory of the kernels here.

    most  unseen cards that are looked at: where there are more, so many of them, evenly by number,
          stand for all. Search plays out with few, since counting takes most of the time.
    """
    marks = np.zeros((3, HAND_SIZE), np.float32)
    table = np.zeros((TABLE_FACTS, ROWS), np.int64)
    cards = np.zeros((HAND_SIZE + NUMBERS, SURVEYED), np.int64)
    return Scratch(np.zeros(1, GAME), marks, np.zeros(NUMBERS, np.uint8), most, table, cards)


# --- a trial table ------------------------------------------------------------------------------


@kernel
def read_table(game, table):
    """What all cards have in common: each row's heads and how it ranks among rows of equal points,
    the points where a card that fits nowhere may go (R9), without each single row, and where it
    would go."""
    first, second, at = -NONE, -NONE, 0
    best, chosen = _NOWHERE, 0
    for row in range(ROWS):
        word = game["row_sums"][row]
        length = length_of(word)
        points = -heads_of(word)
        rank = -128 * length - np.int64(game["rows"][row, length - 1])
        table[HEADS, row] = -points
        table[RANK, row] = rank
        value = points * _RANKS + rank
        chosen = row if value > best else chosen
        best = max(best, value)
        at = row if points > first else at
        second = max(second, min(first, points))
        first = max(first, points)
    for row in range(ROWS):
        table[ELSEWHERE, row] = second if row == at else first
        table[PLAINEST, row] = chosen


@kernel
def survey(game, deck, number, table, card):
    """What a card would make on the table as it is.

    table  from `read_table`
    card   out, int64 [SURVEYED]:
           MAKES: its points if placed best, as `engine.best_heads`;
           ROW: where `greedy` places it, but of equals the row that ends lowest, -1: nowhere (V2b);
           FIRST, SECOND, AT: the best points of the rows that it fits, the same without row AT;
           -NONE (0 in `positive`) where it fits none
    """
    # Without branches, which would be guessed wrong half of the time.
    word, limits = deck["cards"][number], row_limits(game)
    flags = row_flags(game, deck, number)
    positive = is_positive(game)
    turned = sign(game)
    nothing = 0 if positive else -NONE  # what a row counts where the card does not fit
    best, chosen = _NOWHERE, -1
    first, second, at = nothing, nothing, 0
    for row in range(ROWS):
        fit = flags >> np.uint64(8 * row) & _1 != _0
        full = is_too_full(game["row_sums"][row] + word, limits)
        points = turned * table[HEADS, row] if full else 0
        value = points * _RANKS + table[RANK, row] if fit else _NOWHERE
        chosen = row if value > best else chosen
        best = max(best, value)
        points = points if fit else nothing
        at = row if points > first else at
        second = max(second, min(first, points))
        first = max(first, points)
    card[MAKES] = first
    if chosen < 0 and not positive:  # R9
        chosen = table[PLAINEST, 0]
        card[MAKES] = -table[HEADS, chosen]
    card[ROW], card[FIRST], card[SECOND], card[AT] = chosen, first, second, at


@kernel
def laid(game, deck, number, row):
    """A card on a row: its number, the row, and the packed sum of the row afterwards."""
    word = deck["cards"][number]
    total = word if takes(game, deck, number, row) else game["row_sums"][row] + word
    return number, row, total


@kernel
def makes_after(game, deck, number, card, table, placed):
    """`MAKES` of a surveyed card once another was `placed` (from `laid`): only that row is looked
    at again."""
    lying, row, row_sum = placed
    fit = deck["fits"][number] & deck["fits"][lying] & _COLOR_BITS != _0
    full = is_too_full(row_sum + deck["cards"][number], row_limits(game))
    elsewhere = card[SECOND] if card[AT] == row else card[FIRST]
    heads = heads_of(row_sum)
    if is_positive(game):
        return max(elsewhere, heads if fit & full else 0)
    here = -heads if full | (not fit) else 0
    anywhere = max(table[ELSEWHERE, row], here)  # R9
    outside = anywhere if elsewhere == -NONE else elsewhere
    return max(elsewhere, here) if fit else outside


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


# --- the features of a choice -------------------------------------------------------------------


@kernel
def look_around(game, deck, seat, count, work):
    """Survey the hand and `count` unseen cards; the points of the hand into `marks[NOW]`."""
    read_table(game, work.table)
    for slot in range(np.int64(game["hand_sizes"][seat])):
        survey(game, deck, np.int64(game["hands"][seat, slot]), work.table, work.cards[slot])
        work.marks[NOW, slot] = np.float32(work.cards[slot, MAKES])
    for k in range(count):
        survey(game, deck, np.int64(work.unseen[k]), work.table, work.cards[HAND_SIZE + k])


@kernel
def _prospects(total, nothing, count, out, at):
    """What an unseen card would make: the mean, and the share of those that make nothing."""
    share = np.float32(1) / np.float32(max(1, count))
    out[at] = np.float32(total) * share * _FIFTH
    out[at + 1] = np.float32(nothing) * share


@kernel
def _changes(game, deck, seat, count, work):
    """Expected changes of the own cards' points, `marks[NOW]`, by one unseen card of each other
    seat, placed where it is best for its player: by lower and by higher cards."""
    marks, cards = work.marks, work.cards
    size = np.int64(game["hand_sizes"][seat])
    for slot in range(size):
        marks[LOWER, slot] = np.float32(0)
        marks[HIGHER, slot] = np.float32(0)
    for k in range(count):
        number = np.int64(work.unseen[k])
        row = cards[HAND_SIZE + k, ROW]
        if row < 0:
            continue
        placed = laid(game, deck, number, row)
        for slot in range(size):
            card = np.int64(game["hands"][seat, slot])
            after = makes_after(game, deck, card, cards[slot], work.table, placed)
            change = np.float32(after - cards[slot, MAKES])
            marks[LOWER if number < card else HIGHER, slot] += change
    others = np.float32(game["players"]) - np.float32(1)
    share = others / np.float32(max(1, count))
    for slot in range(size):
        marks[LOWER, slot] *= share
        marks[HIGHER, slot] *= share


@kernel
def _finish_placing(game, deck, table, card):
    """Place all cards still revealed where `survey` says."""
    while game["placed"] < game["players"]:
        number = np.int64(game["revealed"][game["placed"]])
        read_table(game, table)
        survey(game, deck, number, table, card)
        if card[ROW] < 0:
            put_under_pile(game)
        else:
            place(game, deck, card[ROW])


@kernel
def _write_row(game, deck, seat, row, count, work, out):
    """One row for the card being placed: fills OPTION_FIELDS."""
    marks, cards = work.marks, work.cards
    work.trial[0] = game
    after = work.trial[0]
    turned = np.float32(sign(game))
    place(after, deck, row)
    _finish_placing(after, deck, work.table, cards[0])
    own = np.int64(after["points"][seat]) - np.int64(game["points"][seat])
    theirs = total_points(after) - total_points(game) - own
    mean = np.float32(theirs) / (np.float32(game["players"]) - np.float32(1))
    at = row * _OPTION
    out[at + _RELATIVE] = turned * (np.float32(own) - mean) * _TENTH
    out[at + _OWN] = turned * np.float32(own) * _TENTH
    look_around(after, deck, seat, count, work)
    size = np.int64(game["hand_sizes"][seat])
    worst, best, together, fitting = 0, 0, 0, 0
    for slot in range(size):
        value = cards[slot, MAKES]
        together += value
        worst = min(worst, value) if slot else value
        best = max(best, value) if slot else value
        fitting += matching_rows(after, deck, np.int64(game["hands"][seat, slot])) != 0
    out[at + _SUM] = np.float32(together) * _TENTH
    out[at + _WORST] = np.float32(worst) * _TENTH
    out[at + _BEST] = np.float32(best) * _TENTH
    out[at + _FITTING] = np.float32(fitting) * _QUARTER
    out[at + _TABLE_HEADS] = np.float32(work.table[HEADS].sum()) * _BY_40
    total, nothing = 0, 0
    for k in range(count):
        value = cards[HAND_SIZE + k, MAKES]
        total += value
        nothing += value == 0
    _prospects(total, nothing, count, out, at + _UNSEEN)
    _changes(after, deck, seat, count, work)
    for slot in range(size):
        out[at + _BY_LOWER] += marks[LOWER, slot] * _TENTH
        out[at + _BY_HIGHER] += marks[HIGHER, slot] * _TENTH
        value = (marks[NOW, slot] + marks[LOWER, slot]) * _TENTH
        out[at + _BEST_AFTER] = max(out[at + _BEST_AFTER], value) if slot else value


@kernel
def _write_slot(game, deck, seat, slot, count, work, out):
    """One card of the hand: fills SLOT_FIELDS."""
    marks, cards = work.marks, work.cards
    at = _SLOTS + slot * _SLOT
    out[at + _SLOT_NOW] = marks[NOW, slot] * _TENTH
    out[at + _SLOT_BY_LOWER] = marks[LOWER, slot] * _TENTH
    out[at + _SLOT_BY_HIGHER] = marks[HIGHER, slot] * _TENTH
    row = cards[slot, ROW]
    if row < 0:  # V2b: nothing would change on the table
        return
    card = np.int64(game["hands"][seat, slot])
    placed = laid(game, deck, card, row)
    together, best = 0, -1 << 40
    for other in range(np.int64(game["hand_sizes"][seat])):
        if other != slot:
            number = np.int64(game["hands"][seat, other])
            value = makes_after(game, deck, number, cards[other], work.table, placed)
            together += value
            best = max(best, value)
    out[at + _SLOT_SUM] = np.float32(together) * _TENTH
    out[at + _SLOT_BEST] = np.float32(best) * _TENTH
    total, nothing = 0, 0
    for k in range(count):
        number = np.int64(work.unseen[k])
        value = makes_after(game, deck, number, cards[HAND_SIZE + k], work.table, placed)
        total += value
        nothing += value == 0
    _prospects(total, nothing, count, out, at + _SLOT_UNSEEN)


@kernel
def write_features(game, deck, seat, work, out):
    """Write the features of one seat, float32 [FEATURES]; zeros where it decides nothing.

    work  from `scratch`
    """
    for i in range(FEATURES):
        out[i] = np.float32(0)
    if not decides(game, seat):
        return
    set0, set1 = unseen_set(game, seat, seat + 1)
    count = thin(work.unseen, list_members(set0, set1, work.unseen), work.most)
    if game["phase"] == CARD_PHASE:
        look_around(game, deck, seat, count, work)
        _changes(game, deck, seat, count, work)
        for slot in range(np.int64(game["hand_sizes"][seat])):
            _write_slot(game, deck, seat, slot, count, work, out)
    else:
        rows = legal_rows(game, deck, np.int64(game["revealed"][game["placed"]]))
        while rows:
            _write_row(game, deck, seat, NTH_ROW[rows, 0], count, work, out)
            rows &= rows - 1
    for i in range(FEATURES):  # decks of very many heads
        out[i] = min(max(out[i], _LOW), _HIGH)


# --- the input of a network ---------------------------------------------------------------------


@kernel
def encode_input(game, deck, seat, work, out):
    """Observation and features of one seat, float32 [INPUT]."""
    encode(game, deck, seat, out[:OBS])
    write_features(game, deck, seat, work, out[OBS:])


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
