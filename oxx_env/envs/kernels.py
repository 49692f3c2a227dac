"""The compiled part of the environments: one call per step, everything written in place.

Axes: P seats at the table, A actions, B games of a batch.
"""

from __future__ import annotations

import numpy as np

from oxx_env.game.engine import choose_row, choose_slot, deal_again, write_mask
from oxx_env.game.observe import encode
from oxx_env.game.rules import (
    CARD_PHASE,
    CARDS_DEALT,
    FIRST_ROW,
    HAND_SIZE,
    N_COLORS,
    NO_CARD,
    NUMBERS,
    OVER,
    PASS,
    act,
    advance,
    clear_revealed,
    color_count,
    decides,
    heads_of,
    legal_actions,
    match_over,
    pile_cell,
)
from oxx_env.game.scoring import match_points, sign, victory_share
from oxx_env.lib.jit import kernel

# What a step pays.
POINTS, RELATIVE, WIN = 0, 1, 2
REWARDS = ("points", "relative", "win")  # index = the number

# What `step_table` returns; ILLEGAL + seat: that seat's action is illegal.
RUNNING, ENDED, ILLEGAL = 0, 1, 2

# `write_hidden` writes of each card in a draw pile its number/110 and its heads/3 by color.
STATE_CARD = 1 + N_COLORS


@kernel
def note_points(game, rewards):
    """Before something happens: remember all points in `rewards` float64 [P]."""
    for seat in range(np.int64(game["players"])):
        rewards[seat] = match_points(game, seat)


@kernel
def write_rewards(game, reward, rewards):
    """After it happened: turn the points noted in `rewards` [P] into what the seats get for it."""
    players = np.int64(game["players"])
    if reward == WIN:
        over = match_over(game)
        for seat in range(players):
            rewards[seat] = victory_share(game, seat) if over else 0.0
        return
    total = 0.0
    for seat in range(players):
        rewards[seat] = sign(game) * (match_points(game, seat) - rewards[seat]) + 0.0  # no -0.0
        total += rewards[seat]
    if reward == RELATIVE:
        for seat in range(players):
            rewards[seat] -= (total - rewards[seat]) / (players - 1)


@kernel
def write_seats(games, decks, first, obs, masks):
    """Observations float32 [N, OBS] and masks int8 [N, A] of the seats from `first` on.

    Either may have no rows: then it is not written. (One kernel for all cases: compiling `encode`
    into another one takes a second.)
    """
    game = games[0]
    deck = decks[0]
    for index in range(obs.shape[0]):
        encode(game, deck, first + index, obs[index])
    for index in range(masks.shape[0]):
        write_mask(game, deck, first + index, masks[index])


@kernel
def step_table(games, decks, actions, first, reward, obs, masks, rewards):
    """The seats `first`, `first` + 1, ... do `actions` (bytes); then all that is forced happens.

    Nothing happens unless all of them are legal: the answer is then ILLEGAL + seat. Otherwise it is
    RUNNING or ENDED (the match), and observations, masks and rewards float64 [P] are written.
    (Eight arguments, since one call a step is what makes it fast.)
    """
    game = games[0]
    deck = decks[0]
    for index in range(len(actions)):
        action = np.int64(actions[index])
        if action > PASS or legal_actions(game, deck, first + index) >> action & 1 == 0:
            return ILLEGAL + first + index
    note_points(game, rewards)
    for index in range(len(actions)):
        action = np.int64(actions[index])
        if action != PASS:
            act(game, deck, first + index, action)
    advance(game, deck)
    write_rewards(game, reward, rewards)
    write_seats(games, decks, 0, obs, masks)
    return ENDED if match_over(game) else RUNNING


@kernel
def end_by_illegal(game, deck, offenders):
    """An illegal action ends the match: the offenders (bit set of seats) share the last place, all
    others the first.

    The others get the best points of the match that one of them has; the offenders the worst of
    all seats and, in addition, the most that legal play could cost: the heads of all cards not
    taken yet, and of the whole deck for each game to come.
    """
    players = np.int64(game["players"])
    turned = sign(game)
    worst, best = np.int64(1 << 40), np.int64(-(1 << 40))
    for seat in range(players):
        points = turned * match_points(game, seat)
        worst = min(worst, points)
        if offenders >> seat & 1 == 0:
            best = max(best, points)
    heads = 0
    for number in range(1, NUMBERS + 1):
        heads += heads_of(deck["cards"][number])
    price = heads * (1 + np.int64(game["match_games"]) - np.int64(game["match_game"]))
    for index in range(np.int64(game["taken_count"])):
        price -= heads_of(deck["cards"][game["taken"][index]])
    for seat in range(players):
        points = worst - price if offenders >> seat & 1 else best
        game["match_points"][seat] = turned * points - np.int64(game["points"][seat])
        game["picks"][seat] = NO_CARD
    clear_revealed(game)
    game["phase"] = OVER
    game["match_game"] = game["match_games"]


@kernel
def end_table(games, decks, offenders, reward, obs, masks, rewards):
    """`end_by_illegal`, and what `step_table` writes."""
    note_points(games[0], rewards)
    end_by_illegal(games[0], decks[0], offenders)
    write_rewards(games[0], reward, rewards)
    write_seats(games, decks, 0, obs, masks)


@kernel
def write_hidden(games, decks, out):
    """What no observation contains: the secret picks, the draw piles; see `Match.state`."""
    game = games[0]
    deck = decks[0]
    players = np.int64(game["players"])
    for index in range(out.shape[0]):
        out[index] = np.float32(0)
    for seat in range(players):
        for slot in range(np.int64(game["hand_sizes"][seat])):
            number = game["hands"][seat, slot]
            out[seat * HAND_SIZE + slot] = number == game["picks"][seat]
    at = players * HAND_SIZE
    cells = CARDS_DEALT[players]
    for seat in range(players):
        for position in range(np.int64(game["pile_sizes"][seat])):
            number = np.int64(game["piles"][pile_cell(game, seat, position)])
            card = at + (seat * cells + position) * STATE_CARD
            out[card] = np.float32(number) * np.float32(1 / NUMBERS)
            for color in range(N_COLORS):
                heads = np.float32(color_count(deck["cards"][number], color))
                out[card + 1 + color] = heads * np.float32(1 / 3)


# --- batches: one learner in each game ----------------------------------------------------------

OUTSIDE = -1  # policy of a seat whose actions come from outside: the learner, bots in Python


@kernel
def begin_batch(games, decks, seats, actions, illegal, rewards):
    """Each game's learner, `seats` [B], does `actions` int64 [B]; all points are noted before.

    Where `illegal` bool [B], the action ends the match instead. Returns the first other game where
    the action is not legal, and then nothing has happened; if there is none, B.
    """
    batch = games.shape[0]
    for g in range(batch):
        legal = legal_actions(games[g], decks[games[g]["deck"]], np.int64(seats[g]))
        action = actions[g]
        if not illegal[g] and (action < 0 or action > PASS or legal >> action & 1 == 0):
            return g
    for g in range(batch):
        game = games[g]
        seat = np.int64(seats[g])
        note_points(game, rewards[g])
        if illegal[g]:
            end_by_illegal(game, decks[game["deck"]], 1 << seat)
        else:
            act(game, decks[game["deck"]], seat, actions[g])
    return batch


@kernel
def answer_batch(games, decks, policies):
    """Run each game on, compiled opponents deciding, until a seat from OUTSIDE has to decide.

    policies   int64 [B, P]: RANDOM, GREEDY or OUTSIDE; chance comes from the games' own streams
    """
    for g in range(games.shape[0]):
        game = games[g]
        deck = decks[game["deck"]]
        advance(game, deck)
        waiting = match_over(game)
        while not waiting:
            waiting = _answer(game, deck, policies[g])
            if not waiting:
                advance(game, deck)
                waiting = match_over(game)


@kernel
def _answer(game, deck, policies):
    """The compiled opponents decide; does another seat still have to?"""
    waiting = False
    for seat in range(np.int64(game["players"])):
        if not decides(game, seat):
            continue
        policy = policies[seat]
        if policy == OUTSIDE:
            waiting = True
        elif game["phase"] == CARD_PHASE:
            act(game, deck, seat, choose_slot(game, deck, seat, policy))
        else:
            number = np.int64(game["revealed"][game["placed"]])
            act(game, deck, seat, FIRST_ROW + choose_row(game, deck, number, policy))
            return False
    return waiting


@kernel
def must_decide(games, g, seat):
    """Has this seat of game g a decision to make now?"""
    return decides(games[g], seat)


@kernel
def act_in_batch(games, decks, g, seat, action):
    """Carry out one legal decision in game g; `answer_batch` then runs on."""
    game = games[g]
    act(game, decks[game["deck"]], seat, action)


@kernel
def end_batch(games, reward, rewards, dones):
    """What all seats get, float64 [B, P], and which matches are over, bool [B]."""
    for g in range(games.shape[0]):
        write_rewards(games[g], reward, rewards[g])
        dones[g] = match_over(games[g])


@kernel
def restart_batch(games, decks, which):
    """Deal the games `which` [n] anew by their own streams."""
    for index in range(which.shape[0]):
        game = games[which[index]]
        deal_again(game, decks[game["deck"]])


@kernel
def observe_batch(games, decks, seats, which, obs, masks):
    """Of the games `which` [n], the learners' observations and masks, into their rows [B, ...]."""
    for index in range(which.shape[0]):
        g = which[index]
        game = games[g]
        deck = decks[game["deck"]]
        seat = np.int64(seats[g])
        encode(game, deck, seat, obs[g])
        write_mask(game, deck, seat, masks[g])
