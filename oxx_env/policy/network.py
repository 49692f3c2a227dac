"""The policy-value network in torch, for learning. `oxx_env.policy.forward` is the same, compiled.

See `forward` for the architecture; both read the same weight vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.observe import (
    CARD_FIELDS,
    CARDS,
    OBS,
    PAIR_FIELDS,
    ROW_FIELDS,
    SEAT_FIELDS,
    SLICES,
)
from oxx_env.game.rules import HAND_SIZE, MAX_PLAYERS, N_COLORS, ROWS
from oxx_env.lib import extras
from oxx_env.policy import rollout_net
from oxx_env.policy.features import OPTION_FIELDS, SLOT_FIELDS
from oxx_env.policy.forward import (
    CARD_COLORS,
    CARD_SCALARS,
    CONTEXT_PIECES,
    END_COLORS,
    ROW_COLORS,
    ROW_SCALARS,
    UNSEEN_COLORS,
    UNSEEN_SCALARS,
    layers,
    weight_count,
)

with extras.needed_by("oxx_env.policy.network"):
    import torch
    from torch import Tensor, nn

_CARD_FEATURES = slice(len(CARD_SCALARS), len(CARD_SCALARS) + len(SLOT_FIELDS))
# Which inputs of which layers are the features.
FEATURE_ROWS = {
    "pair_option": slice(len(OPTION_FIELDS)),
    "pair_card": _CARD_FEATURES,
    "card_card": _CARD_FEATURES,
}


class OxxNetwork(nn.Module):
    """Scores for the ten actions and a value, from observations.

    hidden     width of the shared layers
    features   look at the features? False: only at the observation, to see what it is worth; the
               weights that would read it are then given out as zeros
    """

    def __init__(self, hidden: int = 64, features: bool = True) -> None:
        super().__init__()
        self.hidden = hidden
        self.features = features
        self.table = layers(hidden)
        for layer in self.table.values():
            linear = nn.Linear(layer.inputs, layer.outputs)
            nn.init.orthogonal_(linear.weight, gain=0.01 if "score" in layer.name else 2**0.5)
            nn.init.zeros_(linear.bias)
            self.add_module(layer.name, linear)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [N, ACTIONS] and values [N] of inputs float32 [N, INPUT] (`features`).

        Logits of slots without a card are meaningless and must be masked.
        """
        layer = self.get_submodule
        n = obs.shape[0]

        def piece(name: str, *shape: int) -> Tensor:
            return obs[:, SLICES[name]].reshape(n, *shape)

        cards = piece("cards", CARDS, len(CARD_FIELDS))
        rows = piece("rows", ROWS, len(ROW_FIELDS))
        pairs = piece("pairs", CARDS, ROWS, len(PAIR_FIELDS))
        seats = piece("seats", MAX_PLAYERS, len(SEAT_FIELDS))
        unseen = obs[:, SLICES["unseen"]]
        if not self.features:
            obs = torch.cat([obs[:, :OBS], torch.zeros_like(obs[:, OBS:])], 1)
        options = obs[:, OBS : OBS + ROWS * len(OPTION_FIELDS)]
        options = options.reshape(n, ROWS, len(OPTION_FIELDS))
        slots = obs[:, OBS + ROWS * len(OPTION_FIELDS) :].reshape(n, HAND_SIZE, len(SLOT_FIELDS))
        # The card being placed has none.
        slot_features = torch.nn.functional.pad(slots, (0, 0, 0, 1))

        context = self._context(obs, seats, unseen)
        # Cards that are not there (two of five, on average) are left out from here on: `there`
        # lists the others, `game` their samples.
        there = (cards[:, :, 0].reshape(-1) > 0).nonzero()[:, 0]
        game = there // CARDS
        card_in, row_in = self._sets(cards, rows, unseen, slot_features, there)

        # Pairs, pooled over rows into cards, pooled over the hand.
        placing = (there % CARDS == HAND_SIZE).nonzero()[:, 0]
        where = game[placing]
        of_row = layer("pair_row")(row_in) + layer("pair_context")(context)[:, None]
        of_pair = layer("pair_pair")(pairs.flatten(0, 1)[there])
        of_pair = of_pair.index_add(0, placing, layer("pair_option")(options[where]))
        first = layer("pair_card")(card_in)[:, None] + of_row.index_select(0, game) + of_pair
        second = torch.relu(layer("pair")(torch.relu(first)))
        pool = torch.cat([second.mean(1), second.amax(1)], 1)
        token = torch.relu(
            layer("card_pool")(pool)
            + layer("card_card")(card_in)
            + layer("card_context")(context).index_select(0, game)
        )
        tokens = obs.new_zeros(n * CARDS, self.hidden).index_copy(0, there, token)
        tokens = tokens.reshape(n, CARDS, self.hidden)
        in_hand, placed = tokens[:, :HAND_SIZE], tokens[:, HAND_SIZE]
        held = cards[:, :HAND_SIZE, 0].sum(1, keepdim=True).clamp(min=1)
        value_in = torch.cat([in_hand.sum(1) / held, in_hand.amax(1), placed, context], 1)
        hand = layer("hand")(value_in[:, : 2 * self.hidden])

        # Scores.
        slots = layer("slot_score")(torch.relu(layer("slot")(in_hand) + hand[:, None]))
        place = (layer("place_card")(placed) + hand)[where][:, None]
        place = torch.relu(layer("place_pair")(second[placing]) + place)
        row_scores = layer("place_score")(place)[:, :, 0]
        row_scores = obs.new_zeros(n, ROWS).index_copy(0, where, row_scores)
        logits = torch.cat([slots[:, :, 0], row_scores, obs.new_zeros(n, 1)], 1)
        value = layer("value_score")(torch.relu(layer("value")(value_in)))
        return logits, value[:, 0]

    def _context(self, obs: Tensor, seats: Tensor, unseen: Tensor) -> Tensor:
        """The plain pieces, the unseen cards, the own seat and the mean over the others [N, W]."""
        layer = self.get_submodule
        others = seats[:, 1:]
        there = others[:, :, :1]
        mean = (torch.relu(layer("seat")(others)) * there).sum(1) / there.sum(1).clamp(min=1)
        plain = [obs[:, SLICES[name]] for name in CONTEXT_PIECES]
        context_in = torch.cat([*plain, unseen[:, UNSEEN_SCALARS], seats[:, 0], mean], 1)
        return torch.relu(layer("context")(context_in))

    def _sets(
        self, cards: Tensor, rows: Tensor, unseen: Tensor, slot_features: Tensor, there: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The cards that are `there` [M, CARD_IN] and the rows [N, ROWS, ROW_IN]: scalars, and sums
        over the colors."""
        layer, n = self.get_submodule, cards.shape[0]
        card_colors = cards[:, :, CARD_COLORS : CARD_COLORS + N_COLORS]
        end_colors = rows[:, :, END_COLORS : END_COLORS + N_COLORS]
        row_colors = rows[:, :, ROW_COLORS : ROW_COLORS + N_COLORS]
        unseen_colors = unseen[:, None, UNSEEN_COLORS : UNSEEN_COLORS + N_COLORS]
        unseen_colors = unseen_colors.expand(n, CARDS, N_COLORS)
        hand_colors = card_colors[:, :HAND_SIZE].sum(1, keepdim=True).expand(n, CARDS, N_COLORS)
        card_sum = torch.stack([card_colors, unseen_colors, hand_colors], -1).flatten(0, 1)[there]
        card_sum = torch.relu(layer("card_color")(card_sum)).sum(1)
        row_sum = torch.stack([end_colors, row_colors, unseen_colors, hand_colors], -1)
        row_sum = torch.relu(layer("row_color")(row_sum)).sum(2)
        card_in = torch.cat([cards[:, :, CARD_SCALARS], slot_features], 2).flatten(0, 1)[there]
        card_in = torch.cat([card_in, card_sum], 1)
        return card_in, torch.cat([rows[:, :, ROW_SCALARS], row_sum], 2)

    def weights(self) -> NDArray[np.float32]:
        """A copy of all weights as one vector, in the order of `forward.layers`."""
        parts = []
        with torch.no_grad():
            for name in self.table:
                linear = self.get_submodule(name)
                assert isinstance(linear, nn.Linear)
                both = torch.cat([linear.weight.T, linear.bias[None]])
                if not self.features:
                    both[FEATURE_ROWS.get(name, slice(0))] = 0
                parts.append(both.reshape(-1).numpy())
        return np.concatenate(parts).astype(np.float32)

    def load_weights(self, weights: NDArray[np.float32]) -> None:
        """Take all weights from a vector in the order of `forward.layers`."""
        if weights.shape != (weight_count(self.hidden),):
            raise ValueError(f"{weights.shape} weights for a network of width {self.hidden}")
        with torch.no_grad():
            for name, layer in self.table.items():
                linear = self.get_submodule(name)
                assert isinstance(linear, nn.Linear)
                both = torch.from_numpy(weights[layer.at : layer.at + layer.size].copy())
                both = both.reshape(layer.inputs + 1, layer.outputs)
                linear.weight.copy_(both[:-1].T)
                linear.bias.copy_(both[-1])


class RolloutNet(nn.Module):
    """Scores for the ten actions from observations, each choice by itself. See `rollout_net`."""

    def __init__(self) -> None:
        super().__init__()
        for layer in rollout_net.LAYERS.values():
            self.add_module(layer.name, nn.Linear(layer.inputs, layer.outputs))

    def forward(self, obs: Tensor) -> Tensor:
        """Logits [N, ACTIONS] of inputs float32 [N, INPUT] (`features`). Those of slots and rows
        that are no choice are meaningless and must be masked."""
        n = obs.shape[0]

        def piece(name: str, *shape: int) -> Tensor:
            return obs[:, SLICES[name]].reshape(n, *shape)

        cards = piece("cards", CARDS, len(CARD_FIELDS))
        rows = piece("rows", ROWS, len(ROW_FIELDS))
        pairs = piece("pairs", CARDS, ROWS, len(PAIR_FIELDS))
        options = obs[:, OBS : OBS + ROWS * len(OPTION_FIELDS)]
        options = options.reshape(n, ROWS, len(OPTION_FIELDS))
        slots = obs[:, OBS + ROWS * len(OPTION_FIELDS) :].reshape(n, HAND_SIZE, len(SLOT_FIELDS))
        sizes = torch.arange(2.0, MAX_PLAYERS + 1, device=obs.device)
        players = obs[:, SLICES["table"]] @ sizes / 10
        context = torch.cat([players[:, None], obs[:, rollout_net.CONTEXT_AT]], 1)[:, None]

        hand = cards[:, :HAND_SIZE]
        slot_in = [
            slots,
            hand[:, :, rollout_net.CARD_FACTS],
            pairs[:, :HAND_SIZE, :, rollout_net.FITS].sum(2, keepdim=True) / ROWS,
            *_stand(slots, hand[:, :, 0]),
            context.expand(n, HAND_SIZE, -1),
        ]
        placing = pairs[:, HAND_SIZE]
        option_in = [
            options,
            placing[:, :, rollout_net.PAIR_FACTS],
            rows[:, :, rollout_net.ROW_FACTS],
            *_stand(options, placing[:, :, rollout_net.ALLOWED]),
            cards[:, HAND_SIZE, None, rollout_net.PLACED_FACTS].expand(n, ROWS, -1),
            context.expand(n, ROWS, -1),
        ]
        scores = []
        for kind, inputs in (("slot", slot_in), ("option", option_in)):
            x = torch.relu(self.get_submodule(f"{kind}_in")(torch.cat(inputs, 2)))
            x = torch.relu(self.get_submodule(kind)(x))
            scores.append(self.get_submodule(f"{kind}_score")(x)[:, :, 0])
        return torch.cat([*scores, obs.new_zeros(n, 1)], 1)

    def weights(self) -> NDArray[np.float32]:
        """A copy of all weights as one vector, in the order of `rollout_net.LAYERS`."""
        with torch.no_grad():
            parts = [
                torch.cat([linear.weight.T, linear.bias[None]]).reshape(-1).numpy()
                for linear in (self.get_submodule(name) for name in rollout_net.LAYERS)
                if isinstance(linear, nn.Linear)
            ]
        return np.concatenate(parts).astype(np.float32)


def _stand(choices: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and best of each field of the other choices [N, CHOICES, FIELDS]; there [N, CHOICES]."""
    there = there[:, :, None]
    others = there.sum(1, keepdim=True) - 1
    mean = ((choices * there).sum(1, keepdim=True) - choices * there) / others.clamp(min=1)
    known = choices.masked_fill(there == 0, rollout_net.LOWEST)
    best = torch.stack(
        [torch.cat([known[:, :k], known[:, k + 1 :]], 1).amax(1) for k in range(choices.shape[1])],
        1,
    )
    return mean, best * (others > 0)
