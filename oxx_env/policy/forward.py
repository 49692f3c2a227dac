"""The policy-value network's forward pass, compiled: no torch, one decision at a time.

The network treats cards and rows as sets. Every (card, row) pair is scored by shared weights, cards
pool over rows, the hand pools over cards; the six colours enter through sums over colours and the
other seats through a mean, so that permuting colours, rows, hand slots or other seats permutes the
output and nothing else. Its input is the observation and the features (`oxx_env.policy.features`),
in this order. `oxx_env.policy.network` is the same network in torch, for learning.

All weights lie in one float32 vector; `LAYERS` says where. A layer of `inputs` and `outputs` is
stored as [inputs + 1, outputs], the last row being the bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.cards import COLORS
from oxx_env.game.observe import (
    CARD_FIELDS,
    CARDS,
    OBS,
    PAIR_FIELDS,
    PIECES,
    ROW_FIELDS,
    SEAT_FIELDS,
    START,
    entry,
)
from oxx_env.game.rules import ACTIONS, FIRST_ROW, HAND_SIZE, MAX_PLAYERS, N_COLORS, PASS, ROWS
from oxx_env.lib.jit import kernel, kernel_fma
from oxx_env.policy.features import INPUT, OPTION_FIELDS, SLOT_FIELDS

SMALL = 16  # width of the sums over colours and of the mean over seats
# Which entries of the pieces enter directly (the colours enter through their sums).
CARD_SCALARS = tuple(
    entry("cards", quantity)
    for quantity in (
        *("present", "number", "heads", "unseen cards that are lower"),
        "unseen cards that share a colour",
        "revealed cards still to follow that share a colour",
    )
)
ROW_SCALARS = tuple(
    entry("rows", quantity)
    for quantity in (
        *("end number", "end heads", "cards", "heads", "unseen cards that fit"),
        *("own cards that fit", "revealed cards still to follow that fit"),
    )
)
UNSEEN_SCALARS = tuple(
    entry("unseen", quantity)
    for quantity in (
        "unseen cards",
        *(f"unseen cards with {heads} heads" for heads in ("1", "2", "3", "more")),
    )
)
# Where the six colours stand, one behind the other.
CARD_COLORS = entry("cards", *COLORS)
END_COLORS = entry("rows", *(f"end {color}" for color in COLORS))
ROW_COLORS = entry("rows", *(f"{color} in the row" for color in COLORS))
UNSEEN_COLORS = entry("unseen", *(f"unseen cards showing {color}" for color in COLORS))
CONTEXT_PIECES = ("phase", "rules", "table", "clock", "match")
_PLAIN = sum(piece.size for piece in PIECES if piece.name in CONTEXT_PIECES)
assert tuple(START)[: len(CONTEXT_PIECES)] == CONTEXT_PIECES  # they come first in the observation
CONTEXT = _PLAIN + len(UNSEEN_SCALARS) + len(SEAT_FIELDS) + SMALL
CARD_IN = len(CARD_SCALARS) + len(SLOT_FIELDS) + SMALL
ROW_IN = len(ROW_SCALARS) + SMALL


@dataclass(frozen=True)
class Layer:
    """One affine layer: `at` is its place in the weight vector."""

    name: str
    inputs: int
    outputs: int
    at: int

    @property
    def size(self) -> int:
        return (self.inputs + 1) * self.outputs


def layers(hidden: int) -> dict[str, Layer]:
    """The layers of a network of this width, in the order of the weight vector."""
    shapes = (
        ("seat", len(SEAT_FIELDS), SMALL),
        ("card_color", 3, SMALL),
        ("row_color", 4, SMALL),
        ("context", CONTEXT, hidden),
        ("pair_card", CARD_IN, hidden),
        ("pair_row", ROW_IN, hidden),
        ("pair_pair", len(PAIR_FIELDS), hidden),
        ("pair_option", len(OPTION_FIELDS), hidden),
        ("pair_context", hidden, hidden),
        ("pair", hidden, hidden),
        ("card_pool", 2 * hidden, hidden),
        ("card_card", CARD_IN, hidden),
        ("card_context", hidden, hidden),
        ("hand", 2 * hidden, hidden),
        ("slot", hidden, hidden),
        ("slot_score", hidden, 1),
        ("place_pair", hidden, hidden),
        ("place_card", hidden, hidden),
        ("place_score", hidden, 1),
        ("value", 4 * hidden, hidden),
        ("value_score", hidden, 1),
    )
    return stacked(shapes)


def stacked(shapes: tuple[tuple[str, int, int], ...]) -> dict[str, Layer]:
    """Layers (name, inputs, outputs) one behind the other in a weight vector."""
    table, at = {}, 0
    for name, inputs, outputs in shapes:
        table[name] = Layer(name, inputs, outputs, at)
        at += table[name].size
    return table


def weight_count(hidden: int) -> int:
    """Length of the weight vector."""
    return sum(layer.size for layer in layers(hidden).values())


def hidden_of(weights: int) -> int:
    """The width of the network whose weight vector has this length."""
    for hidden in range(8, 1025, 8):
        if weight_count(hidden) == weights:
            return hidden
    raise ValueError(f"no network of this architecture has {weights} weights")


def workspace(hidden: int) -> NDArray[np.float32]:
    """Scratch memory for `forward`; one for each thread."""
    size = 2 * CONTEXT + CARDS * CARD_IN + ROWS * ROW_IN + hidden * (2 * CARDS + 3 * ROWS + 24)
    return np.zeros(size + CARDS * ROWS * hidden, np.float32)


_CARDS, _CARD = START["cards"], len(CARD_FIELDS)
_ROWS, _ROW = START["rows"], len(ROW_FIELDS)
_PAIRS, _PAIR = START["pairs"], len(PAIR_FIELDS)
_SEATS, _SEAT = START["seats"], len(SEAT_FIELDS)
_UNSEEN = START["unseen"]
_OPTIONS, _OPTION = OBS, len(OPTION_FIELDS)
_SLOTS, _SLOT = OBS + ROWS * len(OPTION_FIELDS), len(SLOT_FIELDS)
_CARD_COLORS = len(CARD_SCALARS) + _SLOT  # where a card's sum over colours starts
_CARD_SCALARS = np.array(CARD_SCALARS, np.int64)
_ROW_SCALARS = np.array(ROW_SCALARS, np.int64)
_UNSEEN_SCALARS = np.array(UNSEEN_SCALARS, np.int64)
_ZERO = np.float32(0)


@kernel_fma
def _add(w, at, x, x_at, inputs, y, y_at, outputs):
    """y += x W, without the bias."""
    # Slices, because the compiler can only vectorise what it knows to be no negative index; eight
    # inputs at a time, because reading and writing y would otherwise take most of the time.
    out = y[y_at : y_at + outputs]
    whole = inputs - inputs % 8
    for i in range(0, whole, 8):
        start = at + i * outputs
        w0 = w[start : start + outputs]
        w1 = w[start + outputs : start + 2 * outputs]
        w2 = w[start + 2 * outputs : start + 3 * outputs]
        w3 = w[start + 3 * outputs : start + 4 * outputs]
        w4 = w[start + 4 * outputs : start + 5 * outputs]
        w5 = w[start + 5 * outputs : start + 6 * outputs]
        w6 = w[start + 6 * outputs : start + 7 * outputs]
        w7 = w[start + 7 * outputs : start + 8 * outputs]
        v = x[x_at + i : x_at + i + 8]
        x0, x1, x2, x3, x4, x5, x6, x7 = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
        for j in range(outputs):
            total = out[j] + x0 * w0[j]
            total += x1 * w1[j]
            total += x2 * w2[j]
            total += x3 * w3[j]
            total += x4 * w4[j]
            total += x5 * w5[j]
            total += x6 * w6[j]
            total += x7 * w7[j]
            out[j] = total
    for i in range(whole, inputs):
        value = x[x_at + i]
        row = w[at + i * outputs : at + (i + 1) * outputs]
        for j in range(outputs):
            out[j] += value * row[j]


@kernel_fma
def _add_rows(w, at, x, x_at, x_step, inputs, y, y_at, outputs):
    """`_add` for ROWS inputs, `x_step` apart, at once: each weight is read once for all of them.

    y [ROWS, outputs]
    """
    assert ROWS == 5
    y0 = y[y_at : y_at + outputs]
    y1 = y[y_at + outputs : y_at + 2 * outputs]
    y2 = y[y_at + 2 * outputs : y_at + 3 * outputs]
    y3 = y[y_at + 3 * outputs : y_at + 4 * outputs]
    y4 = y[y_at + 4 * outputs : y_at + 5 * outputs]
    whole = inputs - inputs % 2
    for i in range(0, whole, 2):
        start = at + i * outputs
        v, w_ = w[start : start + outputs], w[start + outputs : start + 2 * outputs]
        k = x_at + i
        a0, b0 = x[k], x[k + 1]
        a1, b1 = x[k + x_step], x[k + x_step + 1]
        a2, b2 = x[k + 2 * x_step], x[k + 2 * x_step + 1]
        a3, b3 = x[k + 3 * x_step], x[k + 3 * x_step + 1]
        a4, b4 = x[k + 4 * x_step], x[k + 4 * x_step + 1]
        for j in range(outputs):
            vj, wj = v[j], w_[j]
            y0[j] = (y0[j] + a0 * vj) + b0 * wj
            y1[j] = (y1[j] + a1 * vj) + b1 * wj
            y2[j] = (y2[j] + a2 * vj) + b2 * wj
            y3[j] = (y3[j] + a3 * vj) + b3 * wj
            y4[j] = (y4[j] + a4 * vj) + b4 * wj
    for i in range(whole, inputs):
        for row in range(ROWS):
            _add(
                w, at + i * outputs, x, x_at + row * x_step + i, 1, y, y_at + row * outputs, outputs
            )


@kernel
def _bias(w, at, inputs, y, y_at, outputs):
    """y = b."""
    row = at + inputs * outputs
    for j in range(outputs):
        y[y_at + j] = w[row + j]


@kernel
def _add_bias(w, at, inputs, y, y_at, outputs):
    row = at + inputs * outputs
    for j in range(outputs):
        y[y_at + j] += w[row + j]


@kernel
def _relu(y, y_at, outputs):
    for j in range(outputs):
        y[y_at + j] = max(y[y_at + j], _ZERO)


@kernel
def _zero(y, y_at, outputs):
    for j in range(outputs):
        y[y_at + j] = _ZERO


@kernel_fma
def _color_sum(w, at, x, inputs, y, y_at):
    """y += the sum over colours of relu(x W + b), for one colour's inputs `x[:inputs]`."""
    w0, w1 = w[at : at + SMALL], w[at + SMALL : at + 2 * SMALL]
    w2, w3 = w[at + 2 * SMALL : at + 3 * SMALL], w[at + 3 * SMALL : at + 4 * SMALL]
    bias = w[at + inputs * SMALL : at + (inputs + 1) * SMALL]
    out = y[y_at : y_at + SMALL]
    x0, x1, x2, x3 = x[0], x[1], x[2], x[3] if inputs == 4 else _ZERO
    for j in range(SMALL):
        value = bias[j] + x0 * w0[j]
        value += x1 * w1[j]
        value += x2 * w2[j]
        value += x3 * w3[j]
        out[j] += max(value, _ZERO)


@kernel_fma
def _score(w, at, x, x_at, inputs):
    value = w[at + inputs]
    for i in range(inputs):
        value += x[x_at + i] * w[at + i]
    return value


@kernel
def forward(w, hidden, obs, work, logits):
    """Score one observation.

    w       float32 [weights], see `layers`
    hidden  width of the network
    obs     float32 [INPUT], from `features.encode_input`
    work    float32, from `workspace`
    logits  float32 [ACTIONS], written; actions that the observation has no card or row for get 0

    Returns the value: expected change of scaled relative points to come.
    """
    at_seat = 0
    at_card_color = at_seat + (_SEAT + 1) * SMALL
    at_row_color = at_card_color + 4 * SMALL
    at_context = at_row_color + 5 * SMALL
    at_pair_card = at_context + (CONTEXT + 1) * hidden
    at_pair_row = at_pair_card + (CARD_IN + 1) * hidden
    at_pair_pair = at_pair_row + (ROW_IN + 1) * hidden
    at_pair_option = at_pair_pair + (_PAIR + 1) * hidden
    at_pair_context = at_pair_option + (_OPTION + 1) * hidden
    square = (hidden + 1) * hidden
    at_pair = at_pair_context + square
    at_card_pool = at_pair + square
    at_card_card = at_card_pool + (2 * hidden + 1) * hidden
    at_card_context = at_card_card + (CARD_IN + 1) * hidden
    at_hand = at_card_context + square
    at_slot = at_hand + (2 * hidden + 1) * hidden
    at_slot_score = at_slot + square
    at_place_pair = at_slot_score + hidden + 1
    at_place_card = at_place_pair + square
    at_place_score = at_place_card + square
    at_value = at_place_score + hidden + 1
    at_value_score = at_value + (4 * hidden + 1) * hidden

    # Places in the workspace.
    s_context_in = 0
    s_color = CONTEXT
    s_card = s_color + CONTEXT
    s_row = s_card + CARDS * CARD_IN
    s_context = s_row + ROWS * ROW_IN  # the context itself, [hidden]
    s_shared = s_context + hidden  # what the context adds to every pair
    s_shared_card = s_shared + hidden  # ... and to every card
    s_pair_row = s_shared_card + hidden  # [ROWS, hidden]
    s_pair_card = s_pair_row + ROWS * hidden  # [hidden], of one card
    s_pair = s_pair_card + hidden  # [ROWS, hidden], first layer of one card's pairs
    s_pool = s_pair + ROWS * hidden  # [2 hidden], mean and max over rows of one card
    s_cards = s_pool + 2 * hidden  # [CARDS, hidden]
    s_value_in = s_cards + CARDS * hidden  # [4 hidden]: hand mean, hand max, placed card, context
    s_hand = s_value_in + 4 * hidden
    s_out = s_hand + hidden
    s_placed = s_out + hidden
    s_pairs = s_placed + 2 * hidden  # [ROWS, hidden], second layer of one card's pairs

    for action in range(ACTIONS):
        logits[action] = _ZERO

    # Context: plain pieces, unseen cards, own seat, mean over the other seats.
    for i in range(_PLAIN):
        work[s_context_in + i] = obs[i]
    at = s_context_in + _PLAIN
    for i in range(len(UNSEEN_SCALARS)):
        work[at + i] = obs[_UNSEEN + _UNSEEN_SCALARS[i]]
    at += len(UNSEEN_SCALARS)
    for i in range(_SEAT):
        work[at + i] = obs[_SEATS + i]
    at += _SEAT
    _zero(work, at, SMALL)
    others = 0
    for seat in range(1, MAX_PLAYERS):
        if obs[_SEATS + seat * _SEAT] != _ZERO:
            others += 1
            _bias(w, at_seat, _SEAT, work, s_color, SMALL)
            _add(w, at_seat, obs, _SEATS + seat * _SEAT, _SEAT, work, s_color, SMALL)
            for j in range(SMALL):
                work[at + j] += max(work[s_color + j], _ZERO)
    share = np.float32(1) / np.float32(max(others, 1))
    for j in range(SMALL):
        work[at + j] *= share
    _bias(w, at_context, CONTEXT, work, s_context, hidden)
    _add(w, at_context, work, s_context_in, CONTEXT, work, s_context, hidden)
    _relu(work, s_context, hidden)
    _bias(w, at_pair_context, hidden, work, s_shared, hidden)
    _add(w, at_pair_context, work, s_context, hidden, work, s_shared, hidden)
    _bias(w, at_card_context, hidden, work, s_shared_card, hidden)
    _add(w, at_card_context, work, s_context, hidden, work, s_shared_card, hidden)

    # Cards and rows: scalars, and sums over the colours.
    for card in range(CARDS):
        for i in range(len(CARD_SCALARS)):
            work[s_card + card * CARD_IN + i] = obs[_CARDS + card * _CARD + _CARD_SCALARS[i]]
        at = s_card + card * CARD_IN + len(CARD_SCALARS)
        for i in range(_SLOT):
            work[at + i] = obs[_SLOTS + card * _SLOT + i] if card < HAND_SIZE else _ZERO
        _zero(work, at + _SLOT, SMALL)
    for row in range(ROWS):
        for i in range(len(ROW_SCALARS)):
            work[s_row + row * ROW_IN + i] = obs[_ROWS + row * _ROW + _ROW_SCALARS[i]]
        _zero(work, s_row + row * ROW_IN + len(ROW_SCALARS), SMALL)
    color_in = work[s_color : s_color + 4]
    for color in range(N_COLORS):
        unseen = obs[_UNSEEN + UNSEEN_COLORS + color]
        in_hand = _ZERO
        for slot in range(HAND_SIZE):
            in_hand += obs[_CARDS + slot * _CARD + CARD_COLORS + color]
        for card in range(CARDS):
            if obs[_CARDS + card * _CARD] != _ZERO:
                color_in[0] = obs[_CARDS + card * _CARD + CARD_COLORS + color]
                color_in[1] = unseen
                color_in[2] = in_hand
                at = s_card + card * CARD_IN + _CARD_COLORS
                _color_sum(w, at_card_color, color_in, 3, work, at)
        for row in range(ROWS):
            color_in[0] = obs[_ROWS + row * _ROW + END_COLORS + color]
            color_in[1] = obs[_ROWS + row * _ROW + ROW_COLORS + color]
            color_in[2] = unseen
            color_in[3] = in_hand
            at = s_row + row * ROW_IN + len(ROW_SCALARS)
            _color_sum(w, at_row_color, color_in, 4, work, at)
    for row in range(ROWS):
        at = s_pair_row + row * hidden
        _bias(w, at_pair_row, ROW_IN, work, at, hidden)
    _add_rows(w, at_pair_row, work, s_row, ROW_IN, ROW_IN, work, s_pair_row, hidden)
    for row in range(ROWS):
        at = s_pair_row + row * hidden
        _add_bias(w, at_pair_pair, _PAIR, work, at, hidden)
        for j in range(hidden):
            work[at + j] += work[s_shared + j]

    # Pairs, pooled over rows into cards, pooled over the hand.
    _zero(work, s_value_in, 3 * hidden)
    held = 0
    for card in range(CARDS):
        if obs[_CARDS + card * _CARD] == _ZERO:
            continue
        _bias(w, at_pair_card, CARD_IN, work, s_pair_card, hidden)
        _add(w, at_pair_card, work, s_card + card * CARD_IN, CARD_IN, work, s_pair_card, hidden)
        for row in range(ROWS):
            at = row * hidden
            for j in range(hidden):
                work[s_pair + at + j] = work[s_pair_card + j] + work[s_pair_row + at + j]
        at = _PAIRS + card * ROWS * _PAIR
        _add_rows(w, at_pair_pair, obs, at, _PAIR, _PAIR, work, s_pair, hidden)
        if card == HAND_SIZE:
            for row in range(ROWS):
                _add_bias(w, at_pair_option, _OPTION, work, s_pair + row * hidden, hidden)
            _add_rows(w, at_pair_option, obs, _OPTIONS, _OPTION, _OPTION, work, s_pair, hidden)
        _relu(work, s_pair, ROWS * hidden)
        for row in range(ROWS):
            _bias(w, at_pair, hidden, work, s_pairs + row * hidden, hidden)
        _add_rows(w, at_pair, work, s_pair, hidden, hidden, work, s_pairs, hidden)
        _relu(work, s_pairs, ROWS * hidden)
        for j in range(hidden):
            total = most = work[s_pairs + j]
            for row in range(1, ROWS):
                value = work[s_pairs + row * hidden + j]
                total += value
                most = max(most, value)
            work[s_pool + j] = total * np.float32(1 / ROWS)
            work[s_pool + hidden + j] = most
        at = s_cards + card * hidden
        for j in range(hidden):
            work[at + j] = work[s_shared_card + j]
        _add_bias(w, at_card_pool, 2 * hidden, work, at, hidden)
        _add(w, at_card_pool, work, s_pool, 2 * hidden, work, at, hidden)
        _add_bias(w, at_card_card, CARD_IN, work, at, hidden)
        _add(w, at_card_card, work, s_card + card * CARD_IN, CARD_IN, work, at, hidden)
        _relu(work, at, hidden)
        if card < HAND_SIZE:
            held += 1
            for j in range(hidden):
                work[s_value_in + j] += work[at + j]
                most = max(work[s_value_in + hidden + j], work[at + j])
                work[s_value_in + hidden + j] = most
        else:
            for j in range(hidden):
                work[s_value_in + 2 * hidden + j] = work[at + j]
    share = np.float32(1) / np.float32(max(held, 1))
    for j in range(hidden):
        work[s_value_in + j] *= share
        work[s_value_in + 3 * hidden + j] = work[s_context + j]
    _bias(w, at_hand, 2 * hidden, work, s_hand, hidden)
    _add(w, at_hand, work, s_value_in, 2 * hidden, work, s_hand, hidden)

    # Scores.
    if obs[_CARDS + HAND_SIZE * _CARD] == _ZERO:
        for slot in range(held):
            for j in range(hidden):
                work[s_out + j] = work[s_hand + j]
            _add_bias(w, at_slot, hidden, work, s_out, hidden)
            _add(w, at_slot, work, s_cards + slot * hidden, hidden, work, s_out, hidden)
            _relu(work, s_out, hidden)
            logits[slot] = _score(w, at_slot_score, work, s_out, hidden)
    else:  # the pairs left in the workspace are those of the card being placed
        for j in range(hidden):
            work[s_placed + j] = work[s_hand + j]
        _add_bias(w, at_place_card, hidden, work, s_placed, hidden)
        at = s_cards + HAND_SIZE * hidden
        _add(w, at_place_card, work, at, hidden, work, s_placed, hidden)
        _add_bias(w, at_place_pair, hidden, work, s_placed, hidden)
        for row in range(ROWS):
            for j in range(hidden):
                work[s_pair + row * hidden + j] = work[s_placed + j]
        _add_rows(w, at_place_pair, work, s_pairs, hidden, hidden, work, s_pair, hidden)
        _relu(work, s_pair, ROWS * hidden)
        for row in range(ROWS):
            logits[FIRST_ROW + row] = _score(w, at_place_score, work, s_pair + row * hidden, hidden)

    _bias(w, at_value, 4 * hidden, work, s_out, hidden)
    _add(w, at_value, work, s_value_in, 4 * hidden, work, s_out, hidden)
    _relu(work, s_out, hidden)
    return _score(w, at_value_score, work, s_out, hidden)


@kernel
def best_action(logits, legal):
    """The legal action (set of bits) with the highest score; the first of equals."""
    best = PASS
    for action in range(PASS):
        if legal >> action & 1 and (best == PASS or logits[action] > logits[best]):
            best = action
    return best


@kernel
def softmax(logits, legal, temperature, out):
    """Probabilities of the legal actions (set of bits) into `out` [ACTIONS]; zero elsewhere."""
    top = logits[best_action(logits, legal)]
    total = _ZERO
    for action in range(ACTIONS):
        out[action] = _ZERO
        if legal >> action & 1:
            out[action] = np.exp((logits[action] - top) / temperature)
            total += out[action]
    for action in range(ACTIONS):
        out[action] /= total


@kernel
def drawn(probabilities, legal, uniform):
    """A legal action (set of bits) by its probability; `uniform` float32 in [0, 1]."""
    action = PASS
    for candidate in range(ACTIONS):
        if legal >> candidate & 1:
            action = candidate
            uniform -= probabilities[candidate]
            if uniform < 0:
                break
    return action


def score(weights: NDArray[np.float32], observations: Any) -> tuple[Any, Any]:
    """Logits [N, ACTIONS] and values [N] of inputs [N, INPUT] (or one, [INPUT])."""
    observations = np.ascontiguousarray(observations, np.float32)
    flat = observations.reshape(-1, INPUT)
    hidden = hidden_of(len(weights))
    logits = np.zeros((len(flat), ACTIONS), np.float32)
    values = np.zeros(len(flat), np.float32)
    _score_all(weights, hidden, flat, workspace(hidden), logits, values)
    if observations.ndim == 1:
        return logits[0], values[0]
    return logits, values


@kernel
def _score_all(w, hidden, observations, work, logits, values):
    for i in range(observations.shape[0]):
        values[i] = forward(w, hidden, observations[i], work, logits[i])
