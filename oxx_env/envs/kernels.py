"""The compiled part of the environments: one call per step, everything written in place.

Axes: P seats at the table, A actions, B games of a batch.
"""

from __future__ import annotations

import numpy as np

from oxx_env.engine import write_mask
from oxx_env.jit import kernel
from oxx_env.observe import OBS, encode
from oxx_env.rules import (
    CARDS_DEALT,
    HAND_SIZE,
    N_COLORS,
    NO_CARD,
    NUMBERS,
    PASS,
    act,
    advance,
    color_count,
    is_positive,
    legal_actions,
    match_over,
    pile_cell,
)

# What a step pays.
POINTS, RELATIVE, WIN = 0, 1, 2
REWARDS = ("points", "relative", "win")  # index = the number

# What `step_table` answers; ILLEGAL + seat names who may not do that.
RUNNING, ENDED, ILLEGAL = 0, 1, 2

# Of each card in a draw pile `write_state` tells its number/110 and its heads/3 by colour.
STATE_CARD = 1 + N_COLORS


@kernel
def points_of(game, seat):
    """The seat's rulebook points of the whole match so far."""
    return np.int64(game["match_points"][seat]) + np.int64(game["points"][seat])


@kernel
def note_points(game, rewards):
    """Before something happens: remember all points in `rewards` float64 [P]."""
    for seat in range(np.int64(game["players"])):
        rewards[seat] = points_of(game, seat)


@kernel
def write_rewards(game, reward, rewards):
    """After it happened: turn the points noted in `rewards` [P] into what the seats get for it."""
    players = np.int64(game["players"])
    sign = 1.0 if is_positive(game) else -1.0
    if reward == WIN:
        _write_win(game, sign, rewards)
        return
    total = 0.0
    for seat in range(players):
        rewards[seat] = sign * (points_of(game, seat) - rewards[seat]) + 0.0  # no -0.0
        total += rewards[seat]
    if reward == RELATIVE:
        for seat in range(players):
            rewards[seat] -= (total - rewards[seat]) / (players - 1)


@kernel
def _write_win(game, sign, rewards):
    """At the end of the match, each winner's share of the victory; otherwise nothing."""
    players = np.int64(game["players"])
    best, winners = sign * points_of(game, 0), 0
    for seat in range(players):
        best = max(best, sign * points_of(game, seat))
    for seat in range(players):
        rewards[seat] = 0.0
        winners += sign * points_of(game, seat) == best
    if match_over(game):
        for seat in range(players):
            if sign * points_of(game, seat) == best:
                rewards[seat] = 1.0 / winners


@kernel
def write_seats(games, decks, obs, masks):
    """Observations float32 [P, OBS] (or [0, OBS] for none) and masks int8 [P, A] of all seats."""
    game = games[0]
    deck = decks[0]
    for seat in range(obs.shape[0]):
        encode(game, deck, seat, obs[seat])
    for seat in range(masks.shape[0]):
        write_mask(game, deck, seat, masks[seat])


@kernel
def step_table(games, decks, actions, first, reward, obs, masks, rewards):
    """The seats `first`, `first` + 1, ... do `actions` uint8 [N]; then all that is forced happens.

    Nothing happens unless all of them are legal: the answer is then ILLEGAL + seat. Otherwise it is
    RUNNING or ENDED (the match), and observations, masks and rewards float64 [P] are written.
    """
    game = games[0]
    deck = decks[0]
    for index in range(actions.shape[0]):
        action = np.int64(actions[index])
        if action > PASS or legal_actions(game, deck, first + index) >> action & 1 == 0:
            return ILLEGAL + first + index
    note_points(game, rewards)
    for index in range(actions.shape[0]):
        action = np.int64(actions[index])
        if action != PASS:
            act(game, deck, first + index, action)
    advance(game, deck)
    write_rewards(game, reward, rewards)
    write_seats(games, decks, obs, masks)
    return ENDED if match_over(game) else RUNNING


@kernel
def observe_seat(games, decks, seat, obs, mask):
    """One seat's observation float32 [OBS] and mask int8 [A]."""
    encode(games[0], decks[0], seat, obs)
    write_mask(games[0], decks[0], seat, mask)


@kernel
def write_state(games, decks, out):
    """Everything, for critics: all observations, the secret picks, the draw piles; see `Match`."""
    game = games[0]
    deck = decks[0]
    players = np.int64(game["players"])
    for seat in range(players):
        encode(game, deck, seat, out[seat * OBS : (seat + 1) * OBS])
    at = players * OBS
    for index in range(at, out.shape[0]):
        out[index] = np.float32(0)
    for seat in range(players):
        for slot in range(np.int64(game["hand_sizes"][seat])):
            number = game["hands"][seat, slot]
            out[at + seat * HAND_SIZE + slot] = number != NO_CARD and number == game["picks"][seat]
    at += players * HAND_SIZE
    cells = CARDS_DEALT[players]
    for seat in range(players):
        for position in range(np.int64(game["pile_sizes"][seat])):
            number = np.int64(game["piles"][pile_cell(game, seat, position)])
            card = at + (seat * cells + position) * STATE_CARD
            out[card] = np.float32(number) * np.float32(1 / NUMBERS)
            for color in range(N_COLORS):
                heads = np.float32(color_count(deck["cards"][number], color))
                out[card + 1 + color] = heads * np.float32(1 / 3)
