"""Is a game that comes from a file one that play can leave?

Compiled code checks no index: a record with a count too high, or the same card twice, makes play
write beyond the record. `check_games` is the one check of loaded games. It looks at a game as a
whole, at rest as the engine leaves it, so that **a game it lets pass plays to its end inside its
record** (`tests/test_sound.py`). A million games take about two seconds.

A game may know less than all: cards that were taken and forgotten, as in a position typed by a
person, may be missing, and so may the cards of this round that are already placed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.cards import NUMBERS, load_deck
from oxx_env.game.rules import (
    CARD_PHASE,
    CARDS_DEALT,
    COLOR,
    DECK,
    GAME,
    HAND_SIZE,
    MAX_PLAYERS,
    MIN_PLAYERS,
    NO_CARD,
    OVER,
    ROW_CARDS,
    ROW_COUNT,
    ROW_PHASE,
    ROWS,
    RULE_SETS,
    bits_of,
    deck_cards,
    deck_record,
    heads_of,
    is_positive,
    is_too_full,
    legal_rows,
    pile_cell,
    row_limits,
)
from oxx_env.lib.jit import kernel
from oxx_env.lib.texts import cut

MAX_GAMES = 1000  # of one match
MOST_POINTS = 10_000  # of one game, either way; no deck gives more
MOST_MATCH_POINTS = MOST_POINTS * MAX_GAMES
MOST_ROUNDS = 60_000  # in `positive`, where no rule bounds them; the field holds 65,535

# What is wrong, by number: the field, and what would be right.
FAULTS = (
    ("", ""),
    ("players", f"should be {MIN_PLAYERS} to {MAX_PLAYERS}"),
    ("rules", f"should be 0 to {len(RULE_SETS) - 1}"),
    ("phase", f"should be 0 to {OVER}"),
    ("match_games", f"should be 1 to {MAX_GAMES}"),
    ("match_game", "should be 1 to match_games, and the last where the game is over"),
    ("match_points", f"should be at most {MOST_MATCH_POINTS:,} either way, and 0 for empty seats"),
    ("points", "should be the heads taken, less those left at the end in positive"),
    ("round", "should be the cards that each seat has played"),
    ("hand_sizes", "should be 1 to 4 before the reveal, 0 to 3 after it, 0 for empty seats"),
    ("hands", "should hold each card once, ascending, and zero behind them"),
    ("picks", "should be cards of the hand, one missing at least, and only before the reveal"),
    ("pile_starts", "should be a cell of the draw pile, 0 for empty seats"),
    ("pile_sizes", "with the hand, should be no more than was dealt and not played"),
    ("piles", "should hold each card once, and zero where no card lies"),
    ("row_sizes", "should be 1 to 5, in color up to 25"),
    ("rows", "should hold each card once, neighbours sharing a color, and zero behind them"),
    ("row_sums", "should be the heads in the row, below the limits of R7 and R8"),
    ("row_ends", "should be the colors of the last card of each row"),
    ("taken_count", "with the rows, should be no more than all cards"),
    ("taken", "should hold each card once, and zero behind them"),
    ("taken_by", "should be seats of the game, and zero behind them"),
    ("placed", "should be less than players, and 0 before the reveal"),
    ("revealed", "should be a card of each seat, ascending, the next one with a choice of rows"),
    ("revealed_by", "should be the seats, each once"),
    ("seen", "should be the cards in rows, taken, revealed and (in positive) returned"),
)
_FAULT = {name: np.int64(number) for number, (name, _) in enumerate(FAULTS)}
_PLAYERS, _RULES, _PHASE, _MATCH_GAMES, _MATCH_GAME = (
    _FAULT[name] for name in ("players", "rules", "phase", "match_games", "match_game")
)
_MATCH_POINTS, _POINTS, _ROUND = (_FAULT[name] for name in ("match_points", "points", "round"))
_HAND_SIZES, _HANDS, _PICKS = (_FAULT[name] for name in ("hand_sizes", "hands", "picks"))
_PILE_STARTS, _PILE_SIZES, _PILES = (
    _FAULT[name] for name in ("pile_starts", "pile_sizes", "piles")
)
_ROW_SIZES, _ROWS, _ROW_SUMS, _ROW_ENDS = (
    _FAULT[name] for name in ("row_sizes", "rows", "row_sums", "row_ends")
)
_TAKEN_COUNT, _TAKEN, _TAKEN_BY = (_FAULT[name] for name in ("taken_count", "taken", "taken_by"))
_PLACED, _REVEALED, _REVEALED_BY, _SEEN = (
    _FAULT[name] for name in ("placed", "revealed", "revealed_by", "seen")
)
_0, _1, _63 = np.uint64(0), np.uint64(1), np.uint64(63)
_BYTE, _ROW_BYTES = np.uint64(0xFF), np.uint64(0xFFFFFFFFFF)


def check_games(
    games: NDArray[np.void], decks: NDArray[np.void], deciding: NDArray[Any] | None = None
) -> None:
    """Raise ValueError unless all games can be played on: GAME [B] at rest, DECK [D].

    Nothing may be hidden in them. `deciding` [B] are seats that should each have a decision in
    their game. The message names the first bad game, the field and what would be right.
    """
    if games.dtype != GAME or games.ndim != 1:
        raise ValueError(f"these are no games but {games.dtype.name[:40]} {list(games.shape)}")
    check_decks(decks)
    bad = np.flatnonzero((games["deck"] < 0) | (games["deck"] >= len(decks)))
    if len(bad):
        index = games["deck"][bad[0]]
        raise ValueError(f"game {bad[0]}: deck {index}; there are {len(decks)}, counted from 0")
    faults = faults_of(games, decks)
    bad = np.flatnonzero(faults)
    if len(bad):
        field, right = FAULTS[faults[bad[0]]]
        value = " ".join(str(games[field][bad[0]]).split())
        raise ValueError(f"game {bad[0]}: {field} {cut(value, 80)} {right}")
    if deciding is None:
        return
    if deciding.shape != games.shape or deciding.dtype.kind not in "iu":
        raise ValueError("the seats that decide should be one whole number a game")
    good = (deciding >= 0) & (deciding < games["players"])
    seats = np.where(good, deciding, 0).astype(np.int64)
    rows = np.arange(len(games))
    good &= np.where(
        games["phase"] == ROW_PHASE,
        games["revealed_by"][rows, np.minimum(games["placed"], MAX_PLAYERS - 1)] == seats,
        (games["phase"] == CARD_PHASE)
        & (games["hand_sizes"][rows, seats] >= 2)
        & (games["picks"][rows, seats] == NO_CARD),
    )
    if not good.all():
        first = int(np.argmin(good))
        raise ValueError(f"game {first}: seat {deciding[first]} has nothing to decide")


def check_decks(decks: NDArray[np.void]) -> None:
    """Raise ValueError (a `DeckError` for a bad card) unless DECK [D] are decks as
    `rules.deck_record` makes them."""
    if decks.dtype != DECK or decks.ndim != 1:
        raise ValueError(f"these are no decks but {decks.dtype.name[:40]} {list(decks.shape)}")
    for index, deck in enumerate(decks):
        made = deck_record(load_deck(np.array(deck_cards(deck))))
        if made.tobytes() != decks[index : index + 1].tobytes():
            raise ValueError(f"deck {index} contradicts itself: its tables are of other cards")


def faults_of(games: NDArray[np.void], decks: NDArray[np.void]) -> NDArray[np.int64]:
    """What is wrong with each of GAME [B], as indices [B] of `FAULTS`; 0: nothing. The decks must
    be good ones, and the games' index one of them."""
    faults = np.zeros(len(games), np.int64)
    _faults(games, decks, faults)
    return faults


@kernel
def _faults(games, decks, faults):
    for g in range(games.shape[0]):
        faults[g] = _fault(games[g], decks[games[g]["deck"]])


@kernel
def _fault(game, deck):
    """The first fault. What is looked at later relies on what was found right before."""
    fault = _fault_of_match(game)
    if fault == 0:
        fault = _fault_of_counts(game)
    if fault:
        return fault
    shown0 = shown1 = held0 = held1 = _0
    fault, shown0, shown1 = _fault_of_rows(game, deck)
    if fault == 0:
        fault, shown0, shown1 = _fault_of_taken(game, shown0, shown1)
    if fault == 0:
        fault, held0, held1 = _fault_of_hands(game, shown0, shown1)
    if fault == 0:
        fault, held0, held1 = _fault_of_piles(game, shown0, shown1, held0, held1)
    if fault == 0:
        fault, shown0, shown1 = _fault_of_revealed(game, deck, shown0, shown1, held0, held1)
    if fault == 0:
        fault = _fault_of_seen(game, shown0, shown1, held0, held1)
    if fault == 0:
        fault = _fault_of_points(game, deck)
    return fault


@kernel
def _added(set0, set1, number):
    """A set of numbers with one more, and whether it is 1 to 110 and was not there."""
    if number < 1 or number > NUMBERS:
        return set0, set1, False
    bit0, bit1 = bits_of(number)
    new = (set0 & bit0) | (set1 & bit1) == _0
    return set0 | bit0, set1 | bit1, new


@kernel
def _fault_of_match(game):
    players = np.int64(game["players"])
    if players < MIN_PLAYERS or players > MAX_PLAYERS:
        return _PLAYERS
    if game["rules"] >= len(RULE_SETS):
        return _RULES
    if game["phase"] > OVER:
        return _PHASE
    number, of = np.int64(game["match_game"]), np.int64(game["match_games"])
    if of < 1 or of > MAX_GAMES:
        return _MATCH_GAMES
    if number < 1 or number > of or (game["phase"] == OVER and number != of):
        return _MATCH_GAME
    for seat in range(MAX_PLAYERS):
        before = np.int64(game["match_points"][seat])
        most = MOST_MATCH_POINTS if seat < players else 0
        if before < -most or before > most:
            return _MATCH_POINTS
    return np.int64(0)


@kernel
def _fault_of_counts(game):
    """Sizes, cells and rounds: what bounds every place that play reads or writes."""
    players, phase = np.int64(game["players"]), np.int64(game["phase"])
    ring, finished = CARDS_DEALT[players], np.int64(game["round"])
    if finished > (MOST_ROUNDS if is_positive(game) else ring):
        return _ROUND
    least, most = (1, HAND_SIZE) if phase == CARD_PHASE else (0, HAND_SIZE - 1)
    if (phase != ROW_PHASE and game["placed"]) or game["placed"] >= players:
        return _PLACED
    out = False
    for seat in range(MAX_PLAYERS):
        hand, pile = np.int64(game["hand_sizes"][seat]), np.int64(game["pile_sizes"][seat])
        start = np.int64(game["pile_starts"][seat])
        if seat >= players:
            least = most = ring = 0
        if hand < least or hand > most:
            return _HAND_SIZES
        if start > max(ring - 1, 0):
            return _PILE_STARTS
        left = hand + pile
        if left > ring:
            return _PILE_SIZES
        if seat < players:
            played = ring - left - (phase == ROW_PHASE)
            if (played != finished and not is_positive(game)) or played > finished:
                return _ROUND
            out |= left == 0
    if phase == OVER and not out and not is_positive(game):
        return _PHASE
    longest = ROW_CARDS if game["rules"] & COLOR else 5
    cards = np.int64(game["taken_count"])
    for row in range(ROWS):
        size = np.int64(game["row_sizes"][row])
        if size < 1 or size > longest:
            return _ROW_SIZES
        cards += size
    return _TAKEN_COUNT if cards > NUMBERS else np.int64(0)


@kernel
def _fault_of_rows(game, deck):
    """R6-R8; that neighbours share a color bounds a row's length in `color` (V1)."""
    set0 = set1 = _0
    for row in range(ROWS):
        size = np.int64(game["row_sizes"][row])
        total, last = _0, np.int64(0)
        for index in range(ROW_CARDS):
            number = np.int64(game["rows"][row, index])
            if index >= size:
                if number != NO_CARD:
                    return _ROWS, set0, set1
                continue
            set0, set1, new = _added(set0, set1, number)
            if not new:
                return _ROWS, set0, set1
            if index and deck["fits"][last] & deck["fits"][number] & _63 == _0:
                return _ROWS, set0, set1
            total += deck["cards"][number]
            last = number
        if total != game["row_sums"][row] or (size > 1 and is_too_full(total, row_limits(game))):
            return _ROW_SUMS, set0, set1
        if ((game["row_ends"] ^ deck["fits"][last]) >> np.uint64(8 * row)) & _BYTE != _0:
            return _ROW_ENDS, set0, set1
    fault = _ROW_ENDS if game["row_ends"] & ~_ROW_BYTES else np.int64(0)
    return fault, set0, set1


@kernel
def _fault_of_taken(game, set0, set1):
    players, count = np.int64(game["players"]), np.int64(game["taken_count"])
    for index in range(NUMBERS):
        number, seat = np.int64(game["taken"][index]), np.int64(game["taken_by"][index])
        if index < count:
            set0, set1, new = _added(set0, set1, number)
            if not new:
                return _TAKEN, set0, set1
        elif number != NO_CARD:
            return _TAKEN, set0, set1
        if seat >= (players if index < count else 1):
            return _TAKEN_BY, set0, set1
    return np.int64(0), set0, set1


@kernel
def _fault_of_hands(game, shown0, shown1):
    """Hands and secret picks. The set that comes back holds the hand cards."""
    set0, set1 = shown0, shown1
    waits = False
    for seat in range(MAX_PLAYERS):
        size, pick = np.int64(game["hand_sizes"][seat]), np.int64(game["picks"][seat])
        last, found = np.int64(0), pick == NO_CARD
        for slot in range(HAND_SIZE):
            number = np.int64(game["hands"][seat, slot])
            if slot >= size:
                if number != NO_CARD:
                    return _HANDS, set0, set1
                continue
            set0, set1, new = _added(set0, set1, number)
            if not new or number < last:
                return _HANDS, set0, set1
            found |= pick == number
            last = number
        # A single card picks itself.
        if not found or (game["phase"] == CARD_PHASE and size == 1 and pick == NO_CARD):
            return _PICKS, set0, set1
        if pick != NO_CARD and game["phase"] != CARD_PHASE:
            return _PICKS, set0, set1
        waits |= size > 1 and pick == NO_CARD
    fault = _PICKS if game["phase"] == CARD_PHASE and not waits else np.int64(0)
    return fault, set0 & ~shown0, set1 & ~shown1


@kernel
def _fault_of_piles(game, shown0, shown1, held0, held1):
    """The draw piles. The set that comes back holds their cards besides."""
    set0, set1 = shown0 | held0, shown1 | held1
    expected = 0
    for seat in range(np.int64(game["players"])):
        for position in range(np.int64(game["pile_sizes"][seat])):
            number = np.int64(game["piles"][pile_cell(game, seat, position)])
            set0, set1, new = _added(set0, set1, number)
            if not new:
                return _PILES, set0, set1
            expected += 1
    for cell in range(NUMBERS):
        expected -= game["piles"][cell] != NO_CARD
    fault = _PILES if expected else np.int64(0)
    return fault, set0 & ~shown0, set1 & ~shown1


@kernel
def _fault_of_revealed(game, deck, shown0, shown1, held0, held1):
    """This round's cards. The set that comes back holds those of them unplaced besides."""
    players, placed = np.int64(game["players"]), np.int64(game["placed"])
    if game["phase"] != ROW_PHASE:
        for place in range(MAX_PLAYERS):
            if game["revealed"][place] != NO_CARD:
                return _REVEALED, shown0, shown1
            if game["revealed_by"][place]:
                return _REVEALED_BY, shown0, shown1
        return np.int64(0), shown0, shown1
    seats, last = 0, np.int64(0)
    for place in range(MAX_PLAYERS):
        number, seat = np.int64(game["revealed"][place]), np.int64(game["revealed_by"][place])
        if place >= players or (place < placed and number == NO_CARD):  # empty, or forgotten
            if number != NO_CARD:
                return _REVEALED, shown0, shown1
            if seat:
                return _REVEALED_BY, shown0, shown1
            continue
        if seat >= players or seats >> seat & 1:
            return _REVEALED_BY, shown0, shown1
        seats |= 1 << seat
        if number <= last or number > NUMBERS:
            return _REVEALED, shown0, shown1
        last = number
        bit0, bit1 = bits_of(number)
        if place >= placed:
            if ((shown0 | held0) & bit0) | ((shown1 | held1) & bit1):
                return _REVEALED, shown0, shown1
            shown0 |= bit0
            shown1 |= bit1
            left = np.int64(game["hand_sizes"][seat]) + np.int64(game["pile_sizes"][seat])
            if left >= CARDS_DEALT[players]:  # no room under the draw pile (V2b)
                return _PILE_SIZES, shown0, shown1
        elif (shown0 & bit0) | (shown1 & bit1) == _0 and not is_positive(game):
            return _REVEALED, shown0, shown1
    if ROW_COUNT[legal_rows(game, deck, np.int64(game["revealed"][placed]))] < 2:
        return _REVEALED, shown0, shown1
    return np.int64(0), shown0, shown1


@kernel
def _fault_of_seen(game, shown0, shown1, held0, held1):
    """What all have seen: all that is shown, and of what is held at most the returned cards."""
    seen0, seen1 = game["seen"][0], game["seen"][1]
    if (shown0 & ~seen0) | (shown1 & ~seen1):
        return _SEEN
    may0, may1 = (held0, held1) if is_positive(game) else (_0, _0)
    if (seen0 & ~shown0 & ~may0) | (seen1 & ~shown1 & ~may1):
        return _SEEN
    return np.int64(0)


@kernel
def _fault_of_points(game, deck):
    """R12, V2a, V2d; only a bound where cards that were taken are forgotten."""
    players = np.int64(game["players"])
    cards = np.int64(game["taken_count"])
    for row in range(ROWS):
        cards += np.int64(game["row_sizes"][row])
    if game["phase"] == ROW_PHASE:
        cards += players - np.int64(game["placed"])
    for seat in range(players):
        cards += np.int64(game["hand_sizes"][seat]) + np.int64(game["pile_sizes"][seat])
    dealt = players * CARDS_DEALT[players] + ROWS
    if cards > dealt:
        return _TAKEN_COUNT
    for seat in range(MAX_PLAYERS):
        points, heads = np.int64(game["points"][seat]), np.int64(0)
        for index in range(np.int64(game["taken_count"])):
            if game["taken_by"][index] == seat:
                heads += heads_of(deck["cards"][game["taken"][index]])
        if game["phase"] == OVER and is_positive(game):
            for slot in range(np.int64(game["hand_sizes"][seat])):
                heads -= heads_of(deck["cards"][game["hands"][seat, slot]])
            if seat < players:
                for position in range(np.int64(game["pile_sizes"][seat])):
                    number = game["piles"][pile_cell(game, seat, position)]
                    heads -= heads_of(deck["cards"][number])
        most = heads if cards == dealt or seat >= players else MOST_POINTS
        if points < heads or points > most:
            return _POINTS
    return np.int64(0)
