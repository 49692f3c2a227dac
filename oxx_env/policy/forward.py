"""The policy-value network's forward pass, compiled: no torch, one decision at a time.

The network treats cards and rows as sets. Every (card, row) pair is scored by shared weights, cards
pool over rows, the hand pools over cards; the six colors enter through sums over colors and the
other seats through a mean, so that permuting colors, rows, hand slots or other seats permutes the
output and nothing else. Its input is the observation and the features (`oxx_env.policy.features`),
in this order. `oxx_env.policy.network` is the same network in torch, for learning: `forward` here
goes through the same steps with the same names of layers.

All weights lie in one float32 vector; `layers` says where. A layer of `inputs` and `outputs` is
stored as [inputs + 1, outputs], the last row being the bias.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from oxx_env.lib.simd import affine, dot
from oxx_env.policy.features import INPUT, OPTION_FIELDS, SLOT_FIELDS

SMALL = 16  # width of the sums over colors and of the mean over seats
# Which entries of the pieces enter directly (the colors enter through their sums).
CARD_SCALARS = tuple(
    entry("cards", quantity)
    for quantity in (
        *("present", "number", "heads", "unseen cards that are lower"),
        "unseen cards that share a color",
        "revealed cards still to follow that share a color",
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
# Where the six colors stand, one behind the other.
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


def _for_any_width() -> dict[str, tuple[int, ...]]:
    """Of each layer the coefficients of inputs (1, hidden), outputs (1, hidden) and place in the
    weight vector (1, hidden, hidden squared), from `layers` of three widths."""
    found: dict[str, tuple[int, ...]] = {}
    for zero, one, two in zip(*(layers(hidden).values() for hidden in range(3)), strict=True):
        square = (two.at - 2 * one.at + zero.at) // 2
        found[zero.name] = (
            *(zero.inputs, one.inputs - zero.inputs),
            *(zero.outputs, one.outputs - zero.outputs),
            *(zero.at, one.at - zero.at - square, square),
        )
    return found


LAYERS: Any = namedtuple("LAYERS", layers(0))(**_for_any_width())


class Memory(NamedTuple):
    """What `forward` works with; one for each thread. Cards are those that are there, the hand
    first; pairs are listed card by card."""

    seats_in: NDArray[np.float32]  # [other seats, SEAT_FIELDS]
    seats: NDArray[np.float32]  # [other seats, SMALL]
    context_in: NDArray[np.float32]  # [1, CONTEXT]
    context: NDArray[np.float32]  # [1, hidden]
    shared: NDArray[np.float32]  # [1, hidden], what the context adds to each pair or card
    cards_in: NDArray[np.float32]  # [CARDS, CARD_IN]
    rows_in: NDArray[np.float32]  # [ROWS, ROW_IN]
    pairs_in: NDArray[np.float32]  # [CARDS * ROWS, PAIR_FIELDS]
    options_in: NDArray[np.float32]  # [ROWS, OPTION_FIELDS]
    of_card: NDArray[np.float32]  # [CARDS, hidden], what a card adds to its pairs
    of_row: NDArray[np.float32]  # [ROWS, hidden], what a row adds to its pairs
    first: NDArray[np.float32]  # [CARDS * ROWS, hidden], first layer of the pairs
    second: NDArray[np.float32]  # [CARDS * ROWS, hidden]
    pool: NDArray[np.float32]  # [CARDS, 2 * hidden], mean and maximum over the rows
    tokens: NDArray[np.float32]  # [CARDS, hidden], the cards
    value_in: NDArray[np.float32]  # [1, 4 * hidden], mean and maximum of the hand, placed, context
    hand: NDArray[np.float32]  # [1, hidden]
    scored: NDArray[np.float32]  # [CARDS, hidden], last layer before a score


def workspace(hidden: int) -> Memory:
    """Memory for `forward` of a network of this width, or a smaller one."""
    shapes = (
        (MAX_PLAYERS - 1, len(SEAT_FIELDS)),
        (MAX_PLAYERS - 1, SMALL),
        (1, CONTEXT),
        (1, hidden),
        (1, hidden),
        (CARDS, CARD_IN),
        (ROWS, ROW_IN),
        (CARDS * ROWS, len(PAIR_FIELDS)),
        (ROWS, len(OPTION_FIELDS)),
        (CARDS, hidden),
        (ROWS, hidden),
        (CARDS * ROWS, hidden),
        (CARDS * ROWS, hidden),
        (CARDS, 2 * hidden),
        (CARDS, hidden),
        (1, 4 * hidden),
        (1, hidden),
        (CARDS, hidden),
    )
    return Memory(*(np.zeros(shape, np.float32) for shape in shapes))


_CARDS, _CARD = START["cards"], len(CARD_FIELDS)
_ROWS, _ROW = START["rows"], len(ROW_FIELDS)
_PAIRS, _PAIR = START["pairs"], len(PAIR_FIELDS)
_SEATS, _SEAT = START["seats"], len(SEAT_FIELDS)
_UNSEEN = START["unseen"]
_OPTIONS, _OPTION = OBS, len(OPTION_FIELDS)
_SLOTS, _SLOT = OBS + ROWS * len(OPTION_FIELDS), len(SLOT_FIELDS)
_CARD_SCALARS = np.array(CARD_SCALARS, np.int64)
_ROW_SCALARS = np.array(ROW_SCALARS, np.int64)
_UNSEEN_SCALARS = np.array(UNSEEN_SCALARS, np.int64)
_ZERO = np.float32(0)


# --- layers -------------------------------------------------------------------------------------


@kernel
def _place(layer, hidden):
    """Inputs, outputs and place in the weight vector of one of `LAYERS`."""
    inputs, outputs = layer[0] + layer[1] * hidden, layer[2] + layer[3] * hidden
    return inputs, outputs, layer[4] + (layer[5] + layer[6] * hidden) * hidden


@kernel
def _affine(w, layer, hidden, x, y, rows):
    """y = x W + b, for the first `rows` rows of x."""
    inputs, outputs, at = _place(layer, hidden)
    affine(w, at, x, y, (rows, inputs, outputs), False, False)


@kernel
def _add_affine(w, layer, hidden, x, y, rows):
    """y += x W + b"""
    inputs, outputs, at = _place(layer, hidden)
    affine(w, at, x, y, (rows, inputs, outputs), True, False)


@kernel
def _relu_affine(w, layer, hidden, x, y, rows):
    """y = relu(x W + b)"""
    inputs, outputs, at = _place(layer, hidden)
    affine(w, at, x, y, (rows, inputs, outputs), False, True)


@kernel
def _relu_add_affine(w, layer, hidden, x, y, rows):
    """y = relu(y + x W + b)"""
    inputs, outputs, at = _place(layer, hidden)
    affine(w, at, x, y, (rows, inputs, outputs), True, True)


@kernel
def _score(w, layer, hidden, x):
    """The output of a layer that has one, for inputs x."""
    inputs, _, at = _place(layer, hidden)
    return w[at + inputs] + dot(w, at, x, inputs)


@kernel
def _copy(x, y):
    # An assignment of slices would allocate, in case both overlap.
    for j in range(len(x)):
        y[j] = x[j]


@kernel
def _sum(a, b, out):
    """out = a + b, one line each."""
    for j in range(len(out)):
        out[j] = a[j] + b[j]


@kernel_fma
def _add_color(w, layer, x, out):
    """out += relu(x W + b): one color's part of a sum over colors, [SMALL]."""
    # Of known width, so that the compiler unrolls all. A layer of three inputs ignores the fourth.
    inputs, _, at = _place(layer, 0)
    bias = w[at + inputs * SMALL : at + (inputs + 1) * SMALL]
    w0, w1 = w[at : at + SMALL], w[at + SMALL : at + 2 * SMALL]
    w2, w3 = w[at + 2 * SMALL : at + 3 * SMALL], w[at + 3 * SMALL : at + 4 * SMALL]
    x0, x1, x2, x3 = x[0], x[1], x[2], x[3] if inputs == 4 else _ZERO
    for j in range(SMALL):
        value = bias[j] + x0 * w0[j]
        value += x1 * w1[j]
        value += x2 * w2[j]
        value += x3 * w3[j]
        out[j] += max(value, _ZERO)


# --- parts of the network -----------------------------------------------------------------------


@kernel
def _context(w, hidden, obs, work):
    """Plain pieces, unseen cards, the own seat and the mean over the other seats."""
    x = work.context_in[0]
    _copy(obs[:_PLAIN], x)
    at = _PLAIN
    for i in range(len(UNSEEN_SCALARS)):
        x[at + i] = obs[_UNSEEN + _UNSEEN_SCALARS[i]]
    at += len(UNSEEN_SCALARS)
    _copy(obs[_SEATS : _SEATS + _SEAT], x[at:])
    at += _SEAT
    others = 0
    for seat in range(1, MAX_PLAYERS):
        start = _SEATS + seat * _SEAT
        if obs[start] != _ZERO:
            _copy(obs[start : start + _SEAT], work.seats_in[others])
            others += 1
    _relu_affine(w, LAYERS.seat, hidden, work.seats_in, work.seats, others)
    share = np.float32(1) / np.float32(max(others, 1))
    for j in range(SMALL):
        total = _ZERO
        for seat in range(others):
            total += work.seats[seat, j]
        x[at + j] = total * share
    _relu_affine(w, LAYERS.context, hidden, work.context_in, work.context, 1)


@kernel
def _gather_cards(obs, work):
    """The cards that are there and their pairs, without the sums over colors. Returns how many are
    in the hand, and how many there are with the one being placed."""
    held, count = 0, 0
    for card in range(CARDS):
        start = _CARDS + card * _CARD
        if obs[start] == _ZERO:
            continue
        x = work.cards_in[count]
        for i in range(len(_CARD_SCALARS)):
            x[i] = obs[start + _CARD_SCALARS[i]]
        at = len(_CARD_SCALARS)
        for i in range(_SLOT):
            x[at + i] = obs[_SLOTS + card * _SLOT + i] if card < HAND_SIZE else _ZERO
        for row in range(ROWS):
            start = _PAIRS + (card * ROWS + row) * _PAIR
            for i in range(_PAIR):
                work.pairs_in[count * ROWS + row, i] = obs[start + i]
        held += card < HAND_SIZE
        count += 1
    return held, count


@kernel
def _gather_rows(obs, work):
    """The rows, without the sums over colors, and the features of placing a card there."""
    for row in range(ROWS):
        for i in range(len(_ROW_SCALARS)):
            work.rows_in[row, i] = obs[_ROWS + row * _ROW + _ROW_SCALARS[i]]
        for i in range(_OPTION):
            work.options_in[row, i] = obs[_OPTIONS + row * _OPTION + i]


@kernel
def _sum_colors(w, obs, work, held, count):
    """The sums over colors of cards and rows, behind their other inputs."""
    work.cards_in[:count, CARD_IN - SMALL :] = _ZERO
    work.rows_in[:, ROW_IN - SMALL :] = _ZERO
    for color in range(N_COLORS):
        unseen = obs[_UNSEEN + UNSEEN_COLORS + color]
        in_hand = _ZERO
        for slot in range(HAND_SIZE):
            in_hand += obs[_CARDS + slot * _CARD + CARD_COLORS + color]
        for k in range(count):
            card = k if k < held else HAND_SIZE
            own = obs[_CARDS + card * _CARD + CARD_COLORS + color]
            x = own, unseen, in_hand, _ZERO
            _add_color(w, LAYERS.card_color, x, work.cards_in[k, CARD_IN - SMALL :])
        for row in range(ROWS):
            at = _ROWS + row * _ROW + color
            x = obs[at + END_COLORS], obs[at + ROW_COLORS], unseen, in_hand
            _add_color(w, LAYERS.row_color, x, work.rows_in[row, ROW_IN - SMALL :])


@kernel
def _pairs(w, hidden, work, count, placing):
    """Both layers of every (card, row) pair, into `work.second`."""
    rows, pairs = work.of_row, work.first
    _affine(w, LAYERS.pair_row, hidden, work.rows_in, rows, ROWS)
    _affine(w, LAYERS.pair_context, hidden, work.context, work.shared, 1)
    for row in range(ROWS):
        _sum(rows[row, :hidden], work.shared[0, :hidden], rows[row, :hidden])
    _affine(w, LAYERS.pair_card, hidden, work.cards_in, work.of_card, count)
    for card in range(count):
        for row in range(ROWS):
            pair = pairs[card * ROWS + row, :hidden]
            _sum(work.of_card[card, :hidden], rows[row, :hidden], pair)
    if placing:  # it is the last card
        own = pairs[(count - 1) * ROWS :]
        _add_affine(w, LAYERS.pair_option, hidden, work.options_in, own, ROWS)
    _relu_add_affine(w, LAYERS.pair_pair, hidden, work.pairs_in, pairs, count * ROWS)
    _relu_affine(w, LAYERS.pair, hidden, pairs, work.second, count * ROWS)


@kernel
def _pool_rows(pairs, mean, most):
    """Mean and maximum of the pairs of a card, [ROWS, hidden]."""
    a, b, c, d, e = pairs[0], pairs[1], pairs[2], pairs[3], pairs[4]
    for j in range(len(mean)):
        mean[j] = (a[j] + b[j] + c[j] + d[j] + e[j]) * np.float32(1 / ROWS)
        most[j] = max(max(max(a[j], b[j]), max(c[j], d[j])), e[j])


@kernel
def _tokens(w, hidden, work, count):
    """The pairs pooled over the rows, and the cards made of them."""
    _affine(w, LAYERS.card_context, hidden, work.context, work.shared, 1)
    for card in range(count):
        pool = work.pool[card]
        _pool_rows(work.second[card * ROWS :], pool[:hidden], pool[hidden : 2 * hidden])
        _copy(work.shared[0, :hidden], work.tokens[card])
    _add_affine(w, LAYERS.card_card, hidden, work.cards_in, work.tokens, count)
    _relu_add_affine(w, LAYERS.card_pool, hidden, work.pool, work.tokens, count)


@kernel
def _pool_hand(w, hidden, work, held, placing):
    """Mean and maximum over the hand, the card being placed and the context, into
    `work.value_in`; what the hand adds to every score, into `work.hand`."""
    mean, most = work.value_in[0, :hidden], work.value_in[0, hidden : 2 * hidden]
    mean[:] = _ZERO
    most[:] = _ZERO
    for card in range(held):
        token = work.tokens[card, :hidden]
        for j in range(hidden):
            mean[j] += token[j]
            most[j] = max(most[j], token[j])
    share = np.float32(1) / np.float32(max(held, 1))
    placed = work.value_in[0, 2 * hidden : 3 * hidden]
    for j in range(hidden):
        mean[j] *= share
        placed[j] = work.tokens[held, j] if placing else _ZERO
    _copy(work.context[0, :hidden], work.value_in[0, 3 * hidden :])
    _affine(w, LAYERS.hand, hidden, work.value_in, work.hand, 1)


@kernel
def _score_slots(w, hidden, work, held, logits):
    for slot in range(held):
        _copy(work.hand[0, :hidden], work.scored[slot])
    _relu_add_affine(w, LAYERS.slot, hidden, work.tokens, work.scored, held)
    for slot in range(held):
        logits[slot] = _score(w, LAYERS.slot_score, hidden, work.scored[slot])


@kernel
def _score_rows(w, hidden, work, held, logits):
    """The rows for the card being placed, which is the last card."""
    _add_affine(w, LAYERS.place_card, hidden, work.tokens[held:], work.hand, 1)
    for row in range(ROWS):
        _copy(work.hand[0, :hidden], work.scored[row])
    _relu_add_affine(w, LAYERS.place_pair, hidden, work.second[held * ROWS :], work.scored, ROWS)
    for row in range(ROWS):
        logits[FIRST_ROW + row] = _score(w, LAYERS.place_score, hidden, work.scored[row])


@kernel
def forward(w, hidden, obs, work, logits):
    """Score one observation.

    w       float32 [weights], see `layers`
    hidden  width of the network
    obs     float32 [INPUT], from `features.encode_input`
    work    from `workspace`
    logits  float32 [ACTIONS], written; actions that the observation has no card or row for get 0

    Returns the value: expected change of scaled relative points to come.
    """
    logits[:] = _ZERO
    _context(w, hidden, obs, work)
    held, count = _gather_cards(obs, work)
    placing = count > held
    _gather_rows(obs, work)
    _sum_colors(w, obs, work, held, count)
    _pairs(w, hidden, work, count, placing)
    _tokens(w, hidden, work, count)
    _pool_hand(w, hidden, work, held, placing)
    if placing:
        _score_rows(w, hidden, work, held, logits)
    else:
        _score_slots(w, hidden, work, held, logits)
    _relu_affine(w, LAYERS.value, hidden, work.value_in, work.scored, 1)
    return _score(w, LAYERS.value_score, hidden, work.scored[0])


# --- from scores to actions ---------------------------------------------------------------------


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
