"""The rules of 6 nimmt! Baron Oxx: vocabulary, the GAME record, every clause a small function.

The clauses (R1-R13, V1, V2a-f) are those of `docs/rules.md`. Everything here is compiled and works
in place on one record, `game = games[g]`, with `deck = decks[game["deck"]]`; nothing allocates.

One game is one record, a batch is an array of them. Clone = assignment, save = `np.save`, equality
= `tobytes()`: unused cells always hold `NO_CARD` (or zero). Axes: P seats (10), R rows (5).

**Packed cards.** A card is a uint64 whose bytes are its six head counts, its heads in all, and a
one; the sum over a row's cards is the row's color counts, heads and length at once, and adding a
constant makes "sixth card" (R7) and "six heads of one color" (R8) one addition and one AND. The
accessors `heads_of`, `length_of`, `color_count` read it; no other code takes a word apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.cards import COLORS, NUMBERS
from oxx_env.lib.jit import kernel

Game = Any  # one record of dtype GAME (numpy.void or Numba's Record)
Deck = Any  # one record of dtype DECK

# --- vocabulary ---------------------------------------------------------------------------------

N_COLORS = len(COLORS)
SHOWN = 2 + N_COLORS  # entries of a card in an observation
ROWS = 5
HAND_SIZE = 4
MIN_PLAYERS, MAX_PLAYERS = 2, 10
ROW_CARDS = 25  # no row can be longer, not even in `color` (V1)
# R2: cards dealt to each, by number of players.
CARDS_DEALT = np.array([0, 0, 24, 20, 16, 16, 16, 12, 12, 8, 8], dtype=np.int64)

NO_CARD = 0
NO_SEED = np.uint64(2**64 - 1)  # a deal set by hand
# Actions: 0-3 hand slot, 4-8 row, 9 pass.
FIRST_ROW = 4
PASS = 9
ACTIONS = 10

CARD_PHASE, ROW_PHASE, OVER = 0, 1, 2

# Rule sets: two flags, freely combined.
COLOR, POSITIVE = 1, 2
RULE_SETS = ("base", "color", "positive", "color+positive")  # index = flags


def counts_victory_points(rules: str) -> bool:
    """Is it a `positive` rule set, in which cards may return under the draw pile (V2)?"""
    return "positive" in rules.split("+")


# What `tick` did.
WAITING, REVEALED, PLACED, RETURNED, ROUND_ENDED, DEALT = 0, 1, 2, 3, 4, 5

GAME = np.dtype(
    [
        ("rng", "u8"),  # state of the game's own random stream (splitmix64)
        ("seed", "u8"),  # the deal is a function of it and `players`; NO_SEED if set by hand
        ("row_sums", "u8", (ROWS,)),  # [R] packed sum of the row's cards
        ("row_ends", "u8"),  # byte r = colors of the end card of row r, one bit a color
        ("seen", "u8", (2,)),  # bit set of the numbers all players have seen
        ("deck", "i4"),  # index into DECKS
        ("match_points", "i4", (MAX_PLAYERS,)),  # [P] points before this game (R13)
        ("points", "i2", (MAX_PLAYERS,)),  # [P] points of this game, as the rulebook counts them
        ("match_games", "u2"),  # games agreed for the match
        ("match_game", "u2"),  # this game's place in it, from 1
        ("round", "u2"),  # finished rounds of this game
        ("rules", "u1"),  # flags COLOR | POSITIVE
        ("players", "u1"),
        ("phase", "u1"),  # CARD_PHASE, ROW_PHASE, OVER
        ("placed", "u1"),  # revealed cards already placed in this round
        ("taken_count", "u1"),
        ("hand_sizes", "u1", (MAX_PLAYERS,)),  # [P] picked cards included until the reveal
        ("picks", "u1", (MAX_PLAYERS,)),  # [P] number picked, secret until the reveal
        ("pile_starts", "u1", (MAX_PLAYERS,)),  # [P] cell of the next card to draw
        ("pile_sizes", "u1", (MAX_PLAYERS,)),  # [P]
        ("row_sizes", "u1", (ROWS,)),  # [R] cards
        ("revealed", "u1", (MAX_PLAYERS,)),  # this round's cards, lowest number first
        ("revealed_by", "u1", (MAX_PLAYERS,)),  # their seats
        ("hands", "u1", (MAX_PLAYERS, HAND_SIZE)),  # [P, slot] numbers, ascending
        ("rows", "u1", (ROWS, ROW_CARDS)),  # [R, card] numbers, oldest first
        ("piles", "u1", (NUMBERS,)),  # draw piles: a ring of CARDS_DEALT cells for each seat
        ("taken", "u1", (NUMBERS,)),  # all Oxx piles in order of taking: numbers
        ("taken_by", "u1", (NUMBERS,)),  # and their owners' seats
    ]
)

DECK = np.dtype(
    [
        ("cards", "u8", (NUMBERS + 1,)),  # packed card by number
        ("fits", "u8", (NUMBERS + 1,)),  # its colors as a bit set, repeated once a row
        ("showing", "u8", (N_COLORS, 2)),  # bit set of the numbers that show the color
        ("sharing", "u8", (1 << N_COLORS, 2)),  # the numbers that show one of a set of colors
        ("worth", "u8", (4, 2)),  # bit sets of the numbers with 1, 2, 3, more heads
        ("shown", "f4", (NUMBERS + 1, SHOWN)),  # number/110, heads/6, heads of each color/3
    ]
)


def deck_record(heads: NDArray[np.integer[Any]]) -> NDArray[np.void]:
    """The kernel's form of a deck, DECK [1], from head counts [110, 6] (see `cards.load_deck`)."""
    deck = np.zeros(1, DECK)
    record = deck[0]
    cards = np.zeros((NUMBERS + 1, N_COLORS), np.uint64)
    cards[1:] = heads
    total = cards.sum(axis=1)
    color = np.arange(N_COLORS, dtype=np.uint64)
    shows = cards > 0
    colors = (shows << color).sum(axis=1, dtype=np.uint64)
    record["cards"][1:] = ((cards << (_8 * color)).sum(axis=1) + (total << _48) + (_ONE << _56))[1:]
    record["fits"] = colors * _FIVE_ONES
    record["showing"] = [_number_set(shows[:, c]) for c in range(N_COLORS)]
    record["worth"] = [_number_set(total == n) for n in (1, 2, 3)] + [_number_set(total > 3)]
    record["shown"][:, 0] = np.arange(NUMBERS + 1) / NUMBERS
    record["shown"][:, 1] = total / 6
    record["shown"][:, 2:] = cards / 3
    for some in range(1, 1 << N_COLORS):
        lowest = (some & -some).bit_length() - 1
        record["sharing"][some] = record["sharing"][some & (some - 1)] | record["showing"][lowest]
    return deck


def _number_set(members: NDArray[np.bool_]) -> list[int]:
    """The numbers [0..110] that are members, as two words."""
    bits = sum(1 << int(number) for number in np.flatnonzero(members))
    return [bits & (1 << 64) - 1, bits >> 64]


def deck_cards(deck: np.void) -> list[list[int]]:
    """The head counts [110][6] of a DECK record: the inverse of `deck_record`."""
    words = deck["cards"][1:].tolist()
    return [[word >> 8 * color & 0xFF for color in range(N_COLORS)] for word in words]


# --- packed cards and small sets ----------------------------------------------------------------

HEADS_BYTE, LENGTH_BYTE = 6, 7
_BYTE = np.uint64(0xFF)
_ONE = np.uint64(1)
_SIX_OF_A_COLOR = np.uint64(0x00_00_7A_7A_7A_7A_7A_7A)  # 128 - 6 in each color's byte
_SIXTH_CARD = np.uint64(0x7A_00_00_00_00_00_00_00)  # 128 - 6 in the length's byte
_BASE_LIMITS = _SIX_OF_A_COLOR | _SIXTH_CARD
_REACHED = np.uint64(0x80_00_80_80_80_80_80_80)
_ROW_BYTES = np.uint64(0x7F7F7F7F7F)
_ROW_FLAGS = np.uint64(0x8080808080)
_GATHER = np.uint64(0x0102040810204080)  # bytes' lowest bits -> one byte
_ALL = np.uint64(2**64 - 1)
_6, _7, _8, _16, _24, _32, _48, _56, _63 = (
    np.uint64(bits) for bits in (6, 7, 8, 16, 24, 32, 48, 56, 63)
)
_FOUR_ONES = np.uint64(0x01010101)
_FOUR_FLAGS = np.uint64(0x80808080)
_FIVE_ONES = np.uint64(0x0101010101)
_FIVES, _THREES, _NIBBLES, _ONES = (
    np.uint64(byte * 0x0101010101010101) for byte in (0x55, 0x33, 0x0F, 0x01)
)
_DIAGONAL = np.uint64(0x8040201008040201)  # bit i of byte i
_SEVEN_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_2, _4 = np.uint64(2), np.uint64(4)
ALL_ROWS = (1 << ROWS) - 1
CHUNK = 5  # cards of a row that are moved at once; a full row of the base game (R7)

# For each set of rows (5 bits): how many, and the k-th of them.
ROW_COUNT = np.array([bin(rows).count("1") for rows in range(1 << ROWS)], dtype=np.int64)
NTH_ROW = np.array(
    [
        ([row for row in range(ROWS) if rows >> row & 1] + [0] * ROWS)[:ROWS]
        for rows in range(1 << ROWS)
    ],
    dtype=np.int64,
)


@kernel
def heads_of(word):
    """Heads of a packed card or row."""
    return np.int64((word >> _48) & _BYTE)


@kernel
def length_of(word):
    """Cards in a packed row."""
    return np.int64((word >> _56) & _BYTE)


@kernel
def color_count(word, color):
    """Heads of one color on a packed card or row."""
    return np.int64((word >> np.uint64(8 * color)) & _BYTE)


@kernel
def popcount(word):
    """Bits set in a uint64; the compiler knows this form and makes one instruction of it."""
    word -= (word >> _ONE) & _FIVES
    word = (word & _THREES) + ((word >> _2) & _THREES)
    word = (word + (word >> _4)) & _NIBBLES
    return np.int64((word * _ONES) >> _56)


@kernel
def is_seen(game, number):
    """Has every player seen this card?"""
    return (game["seen"][number >> 6] >> np.uint64(number & 63)) & _ONE != np.uint64(0)


@kernel
def see(game, number):
    game["seen"][number >> 6] |= _ONE << np.uint64(number & 63)


@kernel
def spread(bits):
    """Eight bits as eight bytes, 0 or 1: the lowest bit is the lowest byte."""
    return (((bits * _ONES) & _DIAGONAL) + _SEVEN_BITS) >> _7 & _ONES


# A set of numbers is two words, those below 64 and the rest; these two are the only ones that split
# a number, and have no branch: where a number lies is as random as the cards.


@kernel
def bits_of(number):
    """The set of one number, as two words."""
    high = np.uint64(number >> 6)
    bit = _ONE << np.uint64(number & 63)
    return bit & (high - _ONE), bit & (np.uint64(0) - high)


@kernel
def below(number):
    """The set of all lower numbers (and 0), as two words."""
    high = np.uint64(0) - np.uint64(number >> 6)  # all bits from 64 on
    lower = (_ONE << np.uint64(number & 63)) - _ONE
    return lower | high, lower & high


@kernel
def count_below(set0, set1, number):
    """Members of a set of numbers that are lower than the number."""
    lower0, lower1 = below(number)
    return popcount(set0 & lower0) + popcount(set1 & lower1)


# --- several cells as one word ------------------------------------------------------------------
# A hand of four and five cards of a row are loaded and stored at once; the first cell is the lowest
# byte. The compiler makes one or two instructions of each.


@kernel
def hand_word(game, seat):
    """The seat's hand as one word of four bytes."""
    hand = game["hands"][seat]
    return (
        np.uint64(hand[0])
        | np.uint64(hand[1]) << _8
        | np.uint64(hand[2]) << _16
        | np.uint64(hand[3]) << _24
    )


@kernel
def set_hand_word(game, seat, word):
    hand = game["hands"][seat]
    hand[0] = word & _BYTE
    hand[1] = (word >> _8) & _BYTE
    hand[2] = (word >> _16) & _BYTE
    hand[3] = (word >> _24) & _BYTE


@kernel
def chunk_word(cells, at):
    """Five cells from `at` on as one word."""
    return (
        np.uint64(cells[at])
        | np.uint64(cells[at + 1]) << _8
        | np.uint64(cells[at + 2]) << _16
        | np.uint64(cells[at + 3]) << _24
        | np.uint64(cells[at + 4]) << _32
    )


@kernel
def set_chunk_word(cells, at, word):
    cells[at] = word & _BYTE
    cells[at + 1] = (word >> _8) & _BYTE
    cells[at + 2] = (word >> _16) & _BYTE
    cells[at + 3] = (word >> _24) & _BYTE
    cells[at + 4] = (word >> _32) & _BYTE


# --- random numbers -----------------------------------------------------------------------------

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31 = (np.uint64(bits) for bits in (11, 27, 30, 31))


@kernel
def mix(state):
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    z = (state ^ (state >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    return z ^ (z >> _31)


@kernel
def next_random(game):
    """The next 64 bits of the game's own stream."""
    game["rng"] += GOLDEN
    return mix(game["rng"])


@kernel
def draw(game, n):
    """A number from 0 to n-1 out of the game's own stream."""
    return scale(next_random(game), n)


@kernel
def scale(word, n):
    """A number from 0 to n-1 out of 64 random bits."""
    return np.int64(((word >> _32) * np.uint64(n)) >> _32)


# --- questions of the game ----------------------------------------------------------------------


@kernel
def is_positive(game):
    return game["rules"] & POSITIVE != 0


@kernel
def row_flags(game, deck, number):
    """R6: a word whose byte r is 1 if the end card of row r shares a color with the card."""
    shared = game["row_ends"] & deck["fits"][number]
    return ((shared + _ROW_BYTES) & _ROW_FLAGS) >> _7


@kernel
def matching_rows(game, deck, number):
    """R6: the rows whose end card shares a color with the card, as a set of 5 bits."""
    return np.int64((row_flags(game, deck, number) * _GATHER) >> _56)


@kernel
def fits(game, deck, number, row):
    """R6: does the row's end card share a color with the card?"""
    return ((game["row_ends"] & deck["fits"][number]) >> np.uint64(8 * row)) & _63 != np.uint64(0)


@kernel
def legal_rows(game, deck, number):
    """Where may this card go? The rows as a set of 5 bits; empty: under the draw pile (V2b)."""
    rows = matching_rows(game, deck, number)
    anywhere = (rows == 0) & (not is_positive(game))  # R9
    return ALL_ROWS if anywhere else rows


@kernel
def row_limits(game):
    """The limits of R7 (not in `color`, V1) and R8, for `is_too_full`."""
    return _SIX_OF_A_COLOR if game["rules"] & COLOR else _BASE_LIMITS


@kernel
def is_too_full(word, limits):
    """R7, R8: would a row with this packed sum have a sixth card or six heads of a color?"""
    return (word + limits) & _REACHED != np.uint64(0)


@kernel
def overflows(game, deck, number, row):
    """R7, R8: is it the sixth card, or does it make six of a color?"""
    return is_too_full(game["row_sums"][row] + deck["cards"][number], row_limits(game))


@kernel
def overflowing_rows(game, deck, number):
    """R7, R8: the rows that the card would overflow, as a set of 5 bits."""
    word = deck["cards"][number]
    limits = row_limits(game)
    rows = 0
    for row in range(ROWS):
        rows |= np.int64(is_too_full(game["row_sums"][row] + word, limits)) << row
    return rows


@kernel
def overflow_flags(game, deck, number):
    """R7, R8: a word whose byte r is 1 if the card would overflow row r."""
    word = deck["cards"][number]
    limits = row_limits(game)
    flags = np.uint64(0)
    for row in range(ROWS):
        full = is_too_full(game["row_sums"][row] + word, limits)
        flags |= np.uint64(full) << np.uint64(8 * row)
    return flags


@kernel
def takes(game, deck, number, row):
    """R7-R9: does its player take the row first, if the card is placed there?"""
    return overflows(game, deck, number, row) | (not fits(game, deck, number, row))


@kernel
def heads_taken(game, deck, number, row):
    """Heads its player would take by placing the card on the row now, which must be legal."""
    return heads_of(game["row_sums"][row]) if takes(game, deck, number, row) else 0


@kernel
def decides(game, seat):
    """Has the seat two or more legal actions now?"""
    if game["phase"] == CARD_PHASE:
        return game["hand_sizes"][seat] >= 2 and game["picks"][seat] == NO_CARD
    # The engine only ever rests in the row phase where the next card has a choice.
    return game["phase"] == ROW_PHASE and seat == game["revealed_by"][game["placed"]]


@kernel
def legal_actions(game, deck, seat):
    """The seat's legal actions as a set of 10 bits; only pass where it has nothing to decide."""
    if not decides(game, seat):
        return 1 << PASS
    if game["phase"] == CARD_PHASE:
        return (1 << np.int64(game["hand_sizes"][seat])) - 1
    return legal_rows(game, deck, np.int64(game["revealed"][game["placed"]])) << FIRST_ROW


@kernel
def someone_is_out(game):
    """R12, V2c: has a player no card left, neither in the hand nor in the draw pile?"""
    for seat in range(np.int64(game["players"])):
        if game["hand_sizes"][seat] + game["pile_sizes"][seat] == 0:
            return True
    return False


@kernel
def pile_cell(game, seat, position):
    """The cell in `piles` of the card at a position of the seat's draw pile, 0 = next to draw."""
    ring = CARDS_DEALT[game["players"]]
    cell = np.int64(game["pile_starts"][seat]) + position
    return seat * ring + (cell - ring if cell >= ring else cell)


@kernel
def is_deadlocked(game, deck):
    """V2f: does no card in any hand or draw pile share a color with any row end?"""
    for seat in range(np.int64(game["players"])):
        for slot in range(np.int64(game["hand_sizes"][seat])):
            if matching_rows(game, deck, np.int64(game["hands"][seat, slot])):
                return False
    for seat in range(np.int64(game["players"])):
        for position in range(np.int64(game["pile_sizes"][seat])):
            number = np.int64(game["piles"][pile_cell(game, seat, position)])
            if matching_rows(game, deck, number):
                return False
    return True


# --- what happens -------------------------------------------------------------------------------


@kernel
def shuffle(game):
    """R2, R3 by the game's seed: lay out draw piles, then five row cards; the rest is the box."""
    state = mix(game["seed"] + GOLDEN)
    dealt = np.int64(game["players"]) * CARDS_DEALT[game["players"]]
    # `taken` serves as the box while shuffling (Fisher-Yates, from the front).
    box = game["taken"]
    for index in range(NUMBERS):
        box[index] = index + 1
        game["piles"][index] = NO_CARD
    for index in range(dealt + ROWS):
        state += GOLDEN
        other = index + scale(mix(state), NUMBERS - index)
        number = box[other]
        box[other] = box[index]
        box[index] = number
    for index in range(dealt):
        game["piles"][index] = box[index]
    for row in range(ROWS):
        game["rows"][row, 0] = box[dealt + row]
    for index in range(NUMBERS):
        box[index] = NO_CARD
        game["taken_by"][index] = 0
    game["taken_count"] = 0
    game["rng"] = state


@kernel
def set_up(game, deck):
    """R3: start a game whose full draw piles and five row cards lie in the record."""
    game["seen"][0] = game["seen"][1] = np.uint64(0)
    game["row_ends"] = np.uint64(0)
    for row in range(ROWS):
        number = np.int64(game["rows"][row, 0])
        game["row_sizes"][row] = 0
        game["row_sums"][row] = np.uint64(0)
        for index in range(1, ROW_CARDS):
            game["rows"][row, index] = NO_CARD
        see(game, number)
        put_on_row(game, deck, row, number)
    game["round"] = 0
    for seat in range(np.int64(game["players"])):
        game["points"][seat] = 0
        game["hand_sizes"][seat] = 0
        game["pile_starts"][seat] = 0
        game["pile_sizes"][seat] = CARDS_DEALT[game["players"]]
        for slot in range(HAND_SIZE):
            game["hands"][seat, slot] = NO_CARD
    start_round(game)


@kernel
def start_round(game):
    """R4, R11, V2e: draw where the hand is empty; a hand of one card plays itself."""
    game["phase"] = CARD_PHASE
    clear_revealed(game)
    for seat in range(np.int64(game["players"])):
        if game["hand_sizes"][seat] == 0:
            draw_hand(game, seat)
        forced = game["hand_sizes"][seat] == 1
        game["picks"][seat] = game["hands"][seat, 0] if forced else NO_CARD


@kernel
def clear_revealed(game):
    game["placed"] = 0
    for place in range(MAX_PLAYERS):
        game["revealed"][place] = NO_CARD
        game["revealed_by"][place] = 0


@kernel
def draw_hand(game, seat):
    """R11: draw four cards at once, or what is left (V2e); the hand is kept in ascending order."""
    ring = CARDS_DEALT[game["players"]]
    size = min(HAND_SIZE, np.int64(game["pile_sizes"][seat]))
    start = np.int64(game["pile_starts"][seat])
    a = draw_card(game, seat * ring, (start + 0) % ring, size > 0)
    b = draw_card(game, seat * ring, (start + 1) % ring, size > 1)
    c = draw_card(game, seat * ring, (start + 2) % ring, size > 2)
    d = draw_card(game, seat * ring, (start + 3) % ring, size > 3)
    game["pile_starts"][seat] = (start + size) % ring
    game["pile_sizes"][seat] -= size
    game["hand_sizes"][seat] = size
    # A sorting network: which card is lower is as good as random, so no branch could foresee it.
    a, b = min(a, b), max(a, b)
    c, d = min(c, d), max(c, d)
    a, c = min(a, c), max(a, c)
    b, d = min(b, d), max(b, d)
    b, c = min(b, c), max(b, c)
    word = a | b << _8 | c << _16 | d << _24
    # Cards that are not there came out highest; their bytes are blanked.
    set_hand_word(game, seat, word & ((_ONE << np.uint64(8 * size)) - _ONE))


@kernel
def draw_card(game, pile, position, there):
    """Take a card out of the draw pile; a number above all others if there is none."""
    if not there:
        return _BYTE
    number = np.uint64(game["piles"][pile + position])
    game["piles"][pile + position] = NO_CARD
    return number


@kernel
def reveal(game):
    """R4, R5: all picked cards are shown and lie in order, the lowest number first."""
    players = np.int64(game["players"])
    set0 = set1 = np.uint64(0)
    for seat in range(players):
        number = np.int64(game["picks"][seat])
        remove_from_hand(game, seat, number)
        bit0, bit1 = bits_of(number)
        set0 |= bit0
        set1 |= bit1
    game["seen"][0] |= set0
    game["seen"][1] |= set1
    for seat in range(players):
        number = np.int64(game["picks"][seat])
        place = count_below(set0, set1, number)
        game["revealed"][place] = number
        game["revealed_by"][place] = seat
    for seat in range(MAX_PLAYERS):
        game["picks"][seat] = NO_CARD
    game["phase"] = ROW_PHASE


@kernel
def remove_from_hand(game, seat, number):
    hand = hand_word(game, seat)
    # The byte that equals the number becomes zero; its highest bit is the lowest flag.
    difference = hand ^ (np.uint64(number) * _FOUR_ONES)
    flags = (difference - _FOUR_ONES) & ~difference & _FOUR_FLAGS
    lower = ((flags & (~flags + _ONE)) - _ONE) >> _7  # all bits of the slots below it
    set_hand_word(game, seat, (hand & lower) | ((hand >> _8) & ~lower))
    game["hand_sizes"][seat] -= 1


@kernel
def place(game, deck, row):
    """R6-R9: the next revealed card goes to the row; its player first takes the row if need be."""
    number = np.int64(game["revealed"][game["placed"]])
    if takes(game, deck, number, row):
        take_row(game, row, np.int64(game["revealed_by"][game["placed"]]))
    put_on_row(game, deck, row, number)
    game["placed"] += 1


@kernel
def take_row(game, row, seat):
    """R10: all cards of the row go to the seat's Oxx pile, and their heads count as points."""
    game["points"][seat] += heads_of(game["row_sums"][row])
    count = np.int64(game["taken_count"])
    size = np.int64(game["row_sizes"][row])
    owner = np.uint64(seat) * _FIVE_ONES
    cells = game["rows"][row]
    for start in range(0, size, CHUNK):
        cards = min(CHUNK, size - start)
        set_chunk_word(game["taken"], count + start, chunk_word(cells, start))
        set_chunk_word(
            game["taken_by"], count + start, owner & ((_ONE << np.uint64(8 * cards)) - _ONE)
        )
        set_chunk_word(cells, start, np.uint64(0))
    game["taken_count"] = count + size
    game["row_sizes"][row] = 0
    game["row_sums"][row] = np.uint64(0)


@kernel
def put_on_row(game, deck, row, number):
    size = np.int64(game["row_sizes"][row])
    game["rows"][row, size] = number
    game["row_sizes"][row] = size + 1
    game["row_sums"][row] += deck["cards"][number]
    mask = _BYTE << np.uint64(8 * row)
    game["row_ends"] = (game["row_ends"] & ~mask) | (deck["fits"][number] & mask)


@kernel
def put_under_pile(game):
    """V2b: the next revealed card fits no row and goes face down under its owner's draw pile."""
    seat = np.int64(game["revealed_by"][game["placed"]])
    cell = pile_cell(game, seat, np.int64(game["pile_sizes"][seat]))
    game["piles"][cell] = game["revealed"][game["placed"]]
    game["pile_sizes"][seat] += 1
    game["placed"] += 1


@kernel
def end_round(game, deck):
    """R12, V2c, V2f: is the game over? If not, the next round starts."""
    game["round"] += 1
    if someone_is_out(game) or (is_positive(game) and is_deadlocked(game, deck)):
        finish(game, deck)
    else:
        start_round(game)


@kernel
def finish(game, deck):
    """The game ends; in `positive` each head still in hand or draw pile costs a point (V2d)."""
    game["phase"] = OVER
    clear_revealed(game)
    if is_positive(game):
        for seat in range(np.int64(game["players"])):
            game["points"][seat] -= heads_left(game, deck, seat)


@kernel
def heads_left(game, deck, seat):
    """Heads on the seat's cards in hand and draw pile."""
    heads = 0
    for slot in range(np.int64(game["hand_sizes"][seat])):
        heads += heads_of(deck["cards"][game["hands"][seat, slot]])
    for position in range(np.int64(game["pile_sizes"][seat])):
        heads += heads_of(deck["cards"][game["piles"][pile_cell(game, seat, position)]])
    return heads


@kernel
def next_game(game, deck):
    """R13: the points are noted and the match's next game is dealt by the same stream."""
    for seat in range(np.int64(game["players"])):
        game["match_points"][seat] += game["points"][seat]
    game["match_game"] += 1
    game["seed"] = next_random(game) >> _11  # 53 bits: exact in every JSON reader
    shuffle(game)
    set_up(game, deck)


@kernel
def match_over(game):
    return game["phase"] == OVER and game["match_game"] >= game["match_games"]


# --- the course of the game ---------------------------------------------------------------------


@kernel
def tick(game, deck):
    """Do the next thing that needs no decision and say what it was; WAITING if there is none."""
    if game["phase"] == CARD_PHASE:
        for seat in range(np.int64(game["players"])):
            if game["picks"][seat] == NO_CARD:
                return WAITING
        reveal(game)
        return REVEALED
    if game["phase"] == ROW_PHASE:
        if game["placed"] == game["players"]:
            end_round(game, deck)
            return ROUND_ENDED
        rows = legal_rows(game, deck, np.int64(game["revealed"][game["placed"]]))
        if rows == 0:
            put_under_pile(game)
            return RETURNED
        if ROW_COUNT[rows] > 1:
            return WAITING
        place(game, deck, NTH_ROW[rows, 0])
        return PLACED
    if game["match_game"] < game["match_games"]:
        next_game(game, deck)
        return DEALT
    return WAITING


@kernel
def advance(game, deck):
    """Do all that is forced, until a seat has to decide or the match is over."""
    while tick(game, deck) != WAITING:
        pass


@kernel
def act(game, deck, seat, action):
    """Carry out one decision, which must be legal; the caller then calls `tick` or `advance`."""
    if game["phase"] == CARD_PHASE:
        game["picks"][seat] = game["hands"][seat, action]
    else:
        place(game, deck, action - FIRST_ROW)
