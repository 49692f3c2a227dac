"""The engine: deal, step and roll out whole batches of games, GAME [B].

Every consumer is one loop: `pending` says who decides, `step` carries out the actions, and games
that are over are dealt anew by their own random stream where that is asked for. Games of different
sizes, rule sets and decks may lie side by side. All kernels release the interpreter lock, so that
`in_parts` can run slices of one batch on several cores; each game carries its own random stream,
hence the result does not depend on the split.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.cards import DeckSpec, load_deck
from oxx_env.game.rules import (
    ACTIONS,
    CARD_PHASE,
    CARDS_DEALT,
    DECK,
    FIRST_ROW,
    GAME,
    GOLDEN,
    HAND_SIZE,
    MAX_PLAYERS,
    MIN_PLAYERS,
    NTH_ROW,
    OVER,
    ROW_COUNT,
    ROW_PHASE,
    ROWS,
    RULE_SETS,
    act,
    advance,
    decides,
    deck_record,
    draw,
    end_round,
    heads_of,
    is_positive,
    legal_actions,
    legal_rows,
    length_of,
    match_over,
    matching_rows,
    mix,
    next_game,
    overflowing_rows,
    place,
    put_under_pile,
    reveal,
    scale,
    set_up,
    shuffle,
    spread,
)
from oxx_env.game.scoring import sign
from oxx_env.lib.jit import kernel
from oxx_env.lib.simd import CACHE_LINE, fetch
from oxx_env.lib.texts import short

# One decision waiting to be made.
PENDING = np.dtype([("game", "i4"), ("seat", "u1"), ("phase", "u1")])

_1, _BYTE = np.uint64(1), np.uint64(0xFF)

GAME_BYTES = GAME.itemsize

# Who plays in compiled code.
RANDOM, GREEDY = 0, 1
NOTHING = np.uint64(0)
POLICIES = ("random", "greedy")


# --- making games -------------------------------------------------------------------------------


def stack_decks(decks: Sequence[DeckSpec]) -> NDArray[np.void]:
    """DECKS [D]: the kernel's form of several decks (names, paths or int arrays [110, 6])."""
    table = np.zeros(len(decks), DECK)
    for index, deck in enumerate(decks):
        table[index] = deck_record(load_deck(deck))[0]
    return table


def rule_flags(rules: str) -> int:
    """The flags COLOR | POSITIVE of a rule set's name. Raises ValueError for an unknown name."""
    if rules not in RULE_SETS:
        close = difflib.get_close_matches(str(rules).lower(), RULE_SETS, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"unknown rule set {rules!r}: {hint}choose one of {', '.join(RULE_SETS)}")
    return RULE_SETS.index(rules)


def integer(name: str, value: Any, least: object, most: object) -> int:
    """`value` as an int. Raises ValueError, which names it and its range, unless it is an integer;
    the range is left to the caller."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be an integer from {least} to {most}, not {short(value)}")
    return int(value)


def check_players(players: int) -> int:
    """`players` as an int. Raises ValueError unless it is 2 to 10."""
    players = integer("the number of players", players, MIN_PLAYERS, MAX_PLAYERS)
    if not MIN_PLAYERS <= players <= MAX_PLAYERS:
        raise ValueError(f"{players} players: the game is for {MIN_PLAYERS} to {MAX_PLAYERS}")
    return players


def new_games(
    seeds: Sequence[int] | NDArray[np.integer[Any]],
    decks: NDArray[np.void],
    players: int | NDArray[np.integer[Any]] = 4,
    rules: str | NDArray[np.integer[Any]] = "base",
    deck: int | NDArray[np.integer[Any]] = 0,
    games_per_match: int = 1,
) -> NDArray[np.void]:
    """GAME [B], dealt; all seats decide.

    `seeds` [B] are integers 0..2**64-2, one a game; `players`, `rules` (name or flags [B]) and
    `deck` (index into `decks`) may differ from game to game.
    """
    games = np.zeros(len(seeds), GAME)
    games["seed"] = np.asarray(seeds, dtype=np.uint64)
    games["players"] = players
    games["rules"] = rule_flags(rules) if isinstance(rules, str) else rules
    games["deck"] = deck
    games["match_games"] = games_per_match
    games["match_game"] = 1
    deal(games, decks)
    return games


@kernel
def deal(games, decks):
    """Deal every game by its `seed`.

    The first decision waits at once, for all hands are full (see the end of the module).
    """
    for g in range(games.shape[0]):
        game = games[g]
        shuffle(game)
        set_up(game, decks[game["deck"]])


@kernel
def deal_again(game, deck):
    """A new match with the same players, rules and deck, by the game's own random stream."""
    for seat in range(np.int64(game["players"])):
        game["match_points"][seat] = 0
        game["points"][seat] = 0
    game["match_game"] = 0
    next_game(game, deck)


@kernel
def set_up_by_hand(games, decks):
    """Start games whose full draw piles and row cards have been written into the records, and whose
    random streams begin with what stands in `rng`."""
    for g in range(games.shape[0]):
        game = games[g]
        game["rng"] = mix(game["rng"])
        set_up(game, decks[game["deck"]])


# --- stepping -----------------------------------------------------------------------------------


@kernel
def pending(games, out):
    """List who decides now into `out`, PENDING [10 * B], in order of game and seat.

    Returns how many; a game that is over has none.
    """
    n = 0
    for g in range(games.shape[0]):
        game = games[g]
        phase = game["phase"]
        if phase == ROW_PHASE:
            out[n]["game"] = g
            out[n]["seat"] = game["revealed_by"][game["placed"]]
            out[n]["phase"] = phase
            n += 1
        elif phase == CARD_PHASE:
            for seat in range(np.int64(game["players"])):
                if decides(game, seat):
                    out[n]["game"] = g
                    out[n]["seat"] = seat
                    out[n]["phase"] = phase
                    n += 1
    return n


@kernel
def fetch_game(games, g):
    """Let the memory bring a game that is needed soon (it need not exist).

    Batches beyond a thousand games do not fit the near caches; a step then takes half the time.
    """
    for offset in range(0, GAME_BYTES, CACHE_LINE):
        fetch(games, g * GAME_BYTES + offset)


@kernel
def write_mask(game, deck, seat, mask):
    """The seat's legal actions into `mask` [ACTIONS], 0 or 1."""
    legal = np.uint64(legal_actions(game, deck, seat))
    eight = spread(legal & _BYTE)
    for action in range(8):
        mask[action] = (eight >> np.uint64(8 * action)) & _BYTE
    for action in range(8, ACTIONS):
        mask[action] = (legal >> np.uint64(action)) & _1


@kernel
def masks(games, decks, who, n, out):
    """Legal actions of the first `n` of `who` (PENDING) into `out` int8 [N, ACTIONS]."""
    for i in range(n):
        game = games[who[i]["game"]]
        write_mask(game, decks[game["deck"]], np.int64(who[i]["seat"]), out[i])


@kernel
def step(games, decks, who, n, actions, again):
    """Carry out `actions` [N] for the first `n` of `who`, which must be legal, and run on.

    `who` must hold whole games as `pending` lists them. With `again`, matches that are over are
    dealt anew. Returns the number of matches that ended.
    """
    over = 0
    i = 0
    while i < n:
        g = who[i]["game"]
        fetch_game(games, np.int64(g) + 2)
        game = games[g]
        deck = decks[game["deck"]]
        while i < n and who[i]["game"] == g:
            act(game, deck, np.int64(who[i]["seat"]), np.int64(actions[i]))
            i += 1
        advance(game, deck)
        if match_over(game):
            over += 1
            if again:
                deal_again(game, deck)
    return over


@kernel
def random_actions(games, decks, who, n, actions):
    """A uniformly random legal action for each of `who`, by the games' own streams."""
    for i in range(n):
        game = games[who[i]["game"]]
        seat = np.int64(who[i]["seat"])
        if who[i]["phase"] == CARD_PHASE:
            actions[i] = draw(game, np.int64(game["hand_sizes"][seat]))
        else:
            deck = decks[game["deck"]]
            rows = legal_rows(game, deck, np.int64(game["revealed"][game["placed"]]))
            actions[i] = FIRST_ROW + random_member(game, rows)


@kernel
def policy_actions(games, decks, who, n, policy, actions):
    """The actions of a compiled policy (RANDOM, GREEDY) for each of `who`."""
    for i in range(n):
        game = games[who[i]["game"]]
        deck = decks[game["deck"]]
        seat = np.int64(who[i]["seat"])
        if who[i]["phase"] == CARD_PHASE:
            actions[i] = choose_slot(game, deck, seat, policy)
        else:
            number = np.int64(game["revealed"][game["placed"]])
            actions[i] = FIRST_ROW + choose_row(game, deck, number, policy)


def in_parts(function: Callable[[slice], Any], size: int, workers: int = 2) -> list[Any]:
    """Call `function(part)` for `workers` slices of 0..size at once; the results, in order.

    For kernels that change only `games[part]`: same outcome as one call on the whole batch.
    """
    bounds = [size * k // workers for k in range(workers + 1)]
    parts = [slice(a, b) for a, b in itertools.pairwise(bounds)]
    if workers == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, parts))


# --- compiled players ---------------------------------------------------------------------------


# Which row or slot is best is as good as random, so these compare without branches: a set of the
# equally good ones is kept, and one of them is drawn at the end.


@kernel
def random_member(game, members):
    """One of a set of rows or slots (5 bits, not empty); nothing is drawn for a set of one."""
    count = ROW_COUNT[members]
    drawn = scale(mix(game["rng"] + GOLDEN), count)
    game["rng"] += GOLDEN if count > 1 else NOTHING
    return NTH_ROW[members, drawn]


@kernel
def best_heads(game, deck, number):
    """The points a card makes if placed best now: least heads taken, most in `positive`."""
    fitting = matching_rows(game, deck, number)
    taking = overflowing_rows(game, deck, number) | ~fitting
    if is_positive(game):
        most = 0
        for row in range(ROWS):
            heads = heads_of(game["row_sums"][row])
            most = max(most, heads if (fitting & taking) >> row & 1 else 0)
        return most
    legal = legal_rows(game, deck, number)
    least = 1 << 30
    for row in range(ROWS):
        heads = heads_of(game["row_sums"][row]) if taking >> row & 1 else 0
        least = min(least, heads if legal >> row & 1 else 1 << 30)
    return -least


@kernel
def greedy_slot(game, deck, seat):
    """The card with the best points now; ties by more heads on the card, then at random."""
    best, ties = -1 << 40, np.int64(0)
    for slot in range(np.int64(game["hand_sizes"][seat])):
        number = np.int64(game["hands"][seat, slot])
        value = best_heads(game, deck, number) * 64 + heads_of(deck["cards"][number])
        ties = (ties if value <= best else 0) | np.int64(value >= best) << slot
        best = max(best, value)
    return random_member(game, ties)


@kernel
def greedy_row(game, deck, number):
    """The legal row with the best points, then the shorter row, then at random."""
    legal = legal_rows(game, deck, number)
    taking = overflowing_rows(game, deck, number) | ~matching_rows(game, deck, number)
    turned = sign(game)
    best, ties = -1 << 40, np.int64(0)
    for row in range(ROWS):
        word = game["row_sums"][row]
        heads = heads_of(word) if taking >> row & 1 else 0
        value = turned * heads * 64 - length_of(word)
        value = value if legal >> row & 1 else -1 << 41
        ties = (ties if value <= best else 0) | np.int64(value >= best) << row
        best = max(best, value)
    return random_member(game, ties)


@kernel
def choose_slot(game, deck, seat, policy):
    if policy == GREEDY:
        return greedy_slot(game, deck, seat)
    return draw(game, np.int64(game["hand_sizes"][seat]))


@kernel
def choose_row(game, deck, number, policy):
    return choose_among(game, deck, number, legal_rows(game, deck, number), policy)


@kernel
def choose_among(game, deck, number, rows, policy):
    """One of the card's legal rows, which are known already."""
    return greedy_row(game, deck, number) if policy == GREEDY else random_member(game, rows)


# --- roll-outs ----------------------------------------------------------------------------------


@kernel
def finish_round(game, deck, policy):
    """Play the rest of the round, from either phase. Returns the placements (returns included)."""
    if game["phase"] == CARD_PHASE:
        for seat in range(np.int64(game["players"])):
            if game["picks"][seat] == 0:
                slot = choose_slot(game, deck, seat, policy)
                game["picks"][seat] = game["hands"][seat, slot]
        reveal(game)
    placements = 0
    while game["placed"] < game["players"]:
        number = np.int64(game["revealed"][game["placed"]])
        rows = legal_rows(game, deck, number)
        if rows:
            place(game, deck, choose_among(game, deck, number, rows, policy))
        else:
            put_under_pile(game)
        placements += 1
    end_round(game, deck)
    return placements


@kernel
def play_out(game, deck, policy, rounds):
    """Play on for at most `rounds` rounds (the running one counts), all seats by one policy.

    Uses the game's own random stream. Returns the placements.
    """
    placements = 0
    while game["phase"] != OVER and rounds > 0:
        placements += finish_round(game, deck, policy)
        rounds -= 1
    return placements


@kernel
def _rollout(game, decks, policy, games):
    placements = 0
    deck = decks[game[0]["deck"]]
    for _ in range(games):
        placements += play_out(game[0], deck, policy, 1 << 30)
        next_game(game[0], deck)
    return placements


def rollout(
    policy: str,
    players: int,
    games: int,
    seed: int,
    rules: str = "base",
    deck: DeckSpec = "balanced",
) -> int:
    """Play `games` whole random or greedy games in compiled code; returns the placements made."""
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}: choose one of {', '.join(POLICIES)}")
    decks = stack_decks([deck])
    game = new_games([seed], decks, check_players(players), rules)
    return int(_rollout(game, decks, POLICIES.index(policy), games))


assert 1 < HAND_SIZE <= CARDS_DEALT[MIN_PLAYERS:].min()  # nothing is forced in the first round
