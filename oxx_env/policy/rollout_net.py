"""A tiny network that scores each choice by itself, for play-outs.

The features have done most of the work: they say what each choice makes, now and next. So little
is left to learn that one small network per kind of choice (a card to play, a row to place it on),
with 1,762 weights, plays nearly as well as one of sets that costs ten times as much. A
choice sees its own features, how it stands to the other choices (their mean and their best),
a few facts of the card and the row, and how far the game is. It sees what a network of sets sees,
`features.encode_input`, mostly with few unseen cards looked at.

All weights lie in one float32 vector; `LAYERS` says where. `RolloutNet` in
`oxx_env.policy.network` is the same in torch, for learning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.observe import CARD_FIELDS, OBS, PAIR_FIELDS, ROW_FIELDS, SLICES, START, entry
from oxx_env.game.rules import ACTIONS, FIRST_ROW, HAND_SIZE, ROWS
from oxx_env.lib.jit import kernel, kernel_fma
from oxx_env.policy.features import OPTION_FIELDS, SLOT_FIELDS
from oxx_env.policy.forward import stacked

WIDTH, HALF = 16, 8  # of the first and of the second layer of each network
# What enters beside the features: entries of the pieces of the observation.
CARD_FACTS = tuple(  # of a card in hand
    entry("cards", quantity)
    for quantity in (
        *("number", "heads"),
        *("unseen cards that are lower", "unseen cards that share a color"),
    )
)
PLACED_FACTS = tuple(entry("cards", quantity) for quantity in ("number", "heads"))
PAIR_FACTS = tuple(  # of the card being placed and a row
    entry("pairs", quantity)
    for quantity in (
        *("heads taken if placed now", "cards in the row afterwards"),
        *("most heads of one color afterwards", "unseen lower cards that fit the row"),
    )
)
ROW_FACTS = tuple(entry("rows", quantity) for quantity in ("cards", "heads"))
FITS, ALLOWED = entry("pairs", "fits"), entry("pairs", "may be placed there now")
LOWEST = -9.0  # below all that an observation holds

_CARDS, _CARD = START["cards"], len(CARD_FIELDS)
_ROWS, _ROW = START["rows"], len(ROW_FIELDS)
_PAIRS, _PAIR = START["pairs"], len(PAIR_FIELDS)
_SEATS, _UNSEEN = START["seats"], START["unseen"]
_OPTIONS, _OPTION = OBS, len(OPTION_FIELDS)
_SLOTS, _SLOT = OBS + ROWS * _OPTION, len(SLOT_FIELDS)
# The game: rule set, clock, unseen cards; own points against the mean, card still to be placed.
CONTEXT_AT = (
    *range(SLICES["rules"].start, SLICES["rules"].stop),
    *range(SLICES["clock"].start, SLICES["clock"].stop),
    _UNSEEN + entry("unseen", "unseen cards"),
    _SEATS + entry("seats", "points of this game against the mean, better is more"),
    _SEATS + entry("seats", "revealed card still to be placed"),
)
CONTEXT = 1 + len(CONTEXT_AT)  # and the table size
SLOT_IN = _SLOT + len(CARD_FACTS) + 1 + 2 * _SLOT + CONTEXT
OPTION_IN = _OPTION + len(PAIR_FACTS) + len(ROW_FACTS) + 2 * _OPTION + len(PLACED_FACTS) + CONTEXT

assert SLOT_IN % 6 == OPTION_IN % 6 == 0, "`_layer` reads six inputs at a time"

LAYERS = stacked(
    (
        ("slot_in", SLOT_IN, WIDTH),
        ("slot", WIDTH, HALF),
        ("slot_score", HALF, 1),
        ("option_in", OPTION_IN, WIDTH),
        ("option", WIDTH, HALF),
        ("option_score", HALF, 1),
    )
)
WEIGHTS = sum(layer.size for layer in LAYERS.values())  # length of the weight vector


def workspace() -> NDArray[np.float32]:
    """Scratch memory for `forward`; one for each thread: the inputs of a choice, its layers one
    behind the other, and three rows of sums over all choices."""
    return np.zeros((5, max(SLOT_IN, OPTION_IN, WIDTH + HALF)), np.float32)


_AT_SLOT, _AT_OPTION = LAYERS["slot_in"].at, LAYERS["option_in"].at
_CARD_FACTS, _PLACED_FACTS = np.array(CARD_FACTS), np.array(PLACED_FACTS)
_PAIR_FACTS, _ROW_FACTS = np.array(PAIR_FACTS), np.array(ROW_FACTS)
_CONTEXT_AT = np.array(CONTEXT_AT)
_TABLE = START["table"]
_ZERO, _TENTH, _FIFTH = np.float32(0), np.float32(0.1), np.float32(0.2)
_LOWEST = np.float32(LOWEST)


@kernel_fma
def _layer(w, at, inputs, x, y):
    """y [WIDTH] = relu(x W + b); the inputs are a multiple of six."""
    # Six at a time, because reading and writing y would otherwise take most of the time, in two
    # sums that need not wait for each other; of known width, so that the compiler unrolls all.
    bias = w[at + inputs * WIDTH : at + (inputs + 1) * WIDTH]
    for j in range(WIDTH):
        y[j] = bias[j]
    for i in range(0, inputs, 6):
        part = w[at + i * WIDTH : at + (i + 6) * WIDTH]
        v = x[i : i + 6]
        x0, x1, x2, x3, x4, x5 = v[0], v[1], v[2], v[3], v[4], v[5]
        for j in range(WIDTH):
            one = y[j] + x0 * part[j]
            one += x1 * part[WIDTH + j]
            one += x2 * part[2 * WIDTH + j]
            other = x3 * part[3 * WIDTH + j]
            other += x4 * part[4 * WIDTH + j]
            other += x5 * part[5 * WIDTH + j]
            y[j] = one + other
    for j in range(WIDTH):
        y[j] = max(y[j], _ZERO)


@kernel_fma
def _scored(w, at, inputs, x, y):
    """The score of one choice with the inputs x, by the three layers from `at` on.

    y  scratch, [WIDTH + HALF]
    """
    _layer(w, at, inputs, x, y)
    at += (inputs + 1) * WIDTH
    middle = w[at : at + WIDTH * HALF]
    bias = w[at + WIDTH * HALF : at + (WIDTH + 1) * HALF]
    out = w[at + (WIDTH + 1) * HALF : at + (WIDTH + 2) * HALF]
    score = w[at + (WIDTH + 2) * HALF]
    z = y[WIDTH : WIDTH + HALF]
    for j in range(HALF):
        z[j] = bias[j]
    for i in range(0, WIDTH, 4):
        part = middle[i * HALF : (i + 4) * HALF]
        v = y[i : i + 4]
        x0, x1, x2, x3 = v[0], v[1], v[2], v[3]
        for j in range(HALF):
            one = z[j] + x0 * part[j]
            one += x1 * part[HALF + j]
            other = x2 * part[2 * HALF + j]
            other += x3 * part[3 * HALF + j]
            z[j] = one + other
    for j in range(HALF):
        score += max(z[j], _ZERO) * out[j]
    return score


@kernel
def _sum_up(obs, at, step, there, fields, sums):
    """Of each field of the features of all choices: the sum, the best, the second best.

    there  the choices there are, a set; entry k of field f is obs[at + k * step + f]
    sums   out, [3, fields at least]
    """
    total, best, second = sums
    for field in range(fields):
        total[field] = _ZERO
        best[field] = second[field] = _LOWEST
    for choice in range(ROWS):
        if there >> choice & 1:
            features = obs[at + choice * step : at + choice * step + fields]
            for field in range(fields):
                value = features[field]
                total[field] += value
                second[field] = max(second[field], min(best[field], value))
                best[field] = max(best[field], value)


@kernel
def _stand(own, count, fields, sums, out):
    """How a choice stands to the others: mean and best of each field of the others' features.

    own   the choice's features, [fields]
    sums  from `_sum_up`, of `count` choices
    out   [2 * fields]: the means, then the best
    """
    total, best, second = sums
    share = np.float32(1) / np.float32(max(count - 1, 1))
    for field in range(fields):
        value = own[field]
        out[field] = (total[field] - value) * share
        of_others = second[field] if value == best[field] else best[field]
        out[fields + field] = of_others if count > 1 else _ZERO


@kernel
def forward(w, obs, work, logits):
    """Score the choices of one decision.

    w       float32 [WEIGHTS], see `LAYERS`
    obs     float32 [INPUT], from `features.encode_input`
    work    from `workspace`
    logits  float32 [ACTIONS], written; 0 where there is no choice
    """
    for action in range(ACTIONS):
        logits[action] = _ZERO
    x, y, sums = work[0], work[1], work[2:]
    there, count = 0, 0
    if obs[0] != _ZERO:  # card phase
        _write_context(obs, x, SLOT_IN - CONTEXT)
        for slot in range(HAND_SIZE):
            here = obs[_CARDS + slot * _CARD] != _ZERO
            there |= np.int64(here) << slot
            count += here
        _sum_up(obs, _SLOTS, _SLOT, there, _SLOT, sums)
        for slot in range(HAND_SIZE):
            if there >> slot & 1:
                _write_slot(obs, slot, count, sums, x)
                logits[slot] = _scored(w, _AT_SLOT, SLOT_IN, x, y)
        return
    _write_context(obs, x, OPTION_IN - CONTEXT)
    placing = _PAIRS + HAND_SIZE * ROWS * _PAIR
    for row in range(ROWS):
        here = obs[placing + row * _PAIR + ALLOWED] != _ZERO
        there |= np.int64(here) << row
        count += here
    _sum_up(obs, _OPTIONS, _OPTION, there, _OPTION, sums)
    for row in range(ROWS):
        if there >> row & 1:
            _write_option(obs, row, count, sums, x)
            logits[FIRST_ROW + row] = _scored(w, _AT_OPTION, OPTION_IN, x, y)


@kernel
def _write_context(obs, work, at):
    players = _ZERO
    for size in range(9):
        players += obs[_TABLE + size] * np.float32(2 + size)
    work[at] = players * _TENTH
    for k in range(len(_CONTEXT_AT)):
        work[at + 1 + k] = obs[_CONTEXT_AT[k]]


@kernel
def _write_slot(obs, slot, count, sums, work):
    own = obs[_SLOTS + slot * _SLOT : _SLOTS + (slot + 1) * _SLOT]
    at = 0
    for field in range(_SLOT):
        work[at + field] = own[field]
    at += _SLOT
    for k in range(len(_CARD_FACTS)):
        work[at + k] = obs[_CARDS + slot * _CARD + _CARD_FACTS[k]]
    at += len(_CARD_FACTS)
    fitting = _ZERO
    for row in range(ROWS):
        fitting += obs[_PAIRS + (slot * ROWS + row) * _PAIR + FITS]
    work[at] = fitting * _FIFTH
    _stand(own, count, _SLOT, sums, work[at + 1 :])


@kernel
def _write_option(obs, row, count, sums, work):
    own = obs[_OPTIONS + row * _OPTION : _OPTIONS + (row + 1) * _OPTION]
    at = 0
    for field in range(_OPTION):
        work[at + field] = own[field]
    at += _OPTION
    for k in range(len(_PAIR_FACTS)):
        work[at + k] = obs[_PAIRS + (HAND_SIZE * ROWS + row) * _PAIR + _PAIR_FACTS[k]]
    at += len(_PAIR_FACTS)
    for k in range(len(_ROW_FACTS)):
        work[at + k] = obs[_ROWS + row * _ROW + _ROW_FACTS[k]]
    at += len(_ROW_FACTS)
    _stand(own, count, _OPTION, sums, work[at:])
    at += 2 * _OPTION
    for k in range(len(_PLACED_FACTS)):
        work[at + k] = obs[_CARDS + HAND_SIZE * _CARD + _PLACED_FACTS[k]]


@kernel
def forward_all(w, observations, work, logits):
    """`forward` for inputs [N, INPUT] into logits [N, ACTIONS]."""
    for i in range(observations.shape[0]):
        forward(w, observations[i], work, logits[i])
