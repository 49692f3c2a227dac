"""One dataclass holds every option of a training run; presets are instances of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from oxx_env.game.cards import load_deck
from oxx_env.game.engine import rule_flags
from oxx_env.game.rules import MAX_PLAYERS, MIN_PLAYERS
from oxx_env.policy.checkpoint import MAX_BYTES, load_checkpoint
from oxx_env.policy.forward import weight_count

BOT_NAMES = ("greedy", "careful", "mc")  # of the compiled opponents, see `pool`
ABOVE_0 = math.ulp(0)
# Least and greatest value of the numbers, each of them where there are several.
RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**32 - 1),
    "decisions": (1, math.inf),
    "players": (MIN_PLAYERS, MAX_PLAYERS),
    "random_decks": (0, math.inf),
    "games_per_match": (1, 2**16 - 1),
    "greedy_share": (0, 1),
    "careful_share": (0, 1),
    "mc_share": (0, 1),
    "mc_determinisations": (1, math.inf),
    "pool_share": (0, 1),
    "pool_size": (0, 127),
    "snapshot_every": (1, math.inf),
    "games": (1, math.inf),
    "epochs": (1, math.inf),
    "minibatch": (2, math.inf),
    "learning_rate": (0, math.inf),
    "final_learning_rate": (0, math.inf),
    "gamma": (0, 1),
    "gae_lambda": (0, 1),
    "clip_range": (ABOVE_0, math.inf),
    "ent_coef": (0, math.inf),
    "vf_coef": (0, math.inf),
    "kl_coef": (0, math.inf),
    "max_grad_norm": (ABOVE_0, math.inf),
    "reward_scale": (ABOVE_0, math.inf),
    "hidden": (8, 512),
    "eval_every": (1, math.inf),
    "eval_games": (1, math.inf),
    "eval_players": (MIN_PLAYERS, MAX_PLAYERS),
    "final_games": (1, math.inf),
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """A training run."""

    preset: str = "quick"
    """Which preset the other values start from."""
    seed: int = 1
    """Of all random choices."""
    decisions: int = 600_000
    """Samples to learn from."""

    players: tuple[int, ...] = (2,)
    """Table sizes in the batch."""
    player_shares: tuple[float, ...] = ()
    """Share of the games for each table size; empty: equal."""
    rules: tuple[str, ...] = ("base",)
    """Rule sets in the batch."""
    rule_shares: tuple[float, ...] = ()
    """Share of the games for each rule set; empty: equal."""
    decks: tuple[str, ...] = ("balanced",)
    """Decks by name or path."""
    random_decks: int = 0
    """0: play the decks as they are; else this many fresh assignments of their types to numbers."""
    games_per_match: tuple[int, ...] = (1,)
    """Games in a match, equally often."""

    greedy_share: float = 0.0
    """Share of the matches in which half of the seats are `greedy`, the others learn."""
    careful_share: float = 0.0
    """The same for `careful`."""
    mc_share: float = 0.0
    """The same for Monte Carlo."""
    mc_determinisations: int = 30
    """Deals it tries for each decision."""
    pool_share: float = 0.0
    """Share of the matches in which half of the seats are one of the past snapshots."""
    pool_size: int = 0
    """Past snapshots kept as opponents; the weakest gives way to a new one."""
    snapshot_every: int = 500_000
    """Decisions from one snapshot to the next."""
    frozen: str | None = None
    """One seat of each match learns, the others are this at its best: a checkpoint or a bot."""

    games: int = 256
    """Games played side by side."""
    rollout: int = 32_768
    """Samples of one batch, at most."""
    epochs: int = 2
    """Passes over a batch."""
    minibatch: int = 1024
    """Samples of one gradient step."""
    learning_rate: float = 1e-3
    """Of Adam, at the start."""
    final_learning_rate: float = 1e-4
    """At the end; linear in between."""
    gamma: float = 0.85
    """Discount from one decision of a seat to its next."""
    gae_lambda: float = 0.8
    """Mixes short and long estimates of the advantage."""
    clip_range: float = 0.2
    """Of the probability ratio."""
    ent_coef: float = 0.005
    """Weight of the entropy bonus."""
    vf_coef: float = 0.5
    """Weight of the value loss."""
    kl_coef: float = 0.0
    """Weight of the divergence from the policy that was started from, against forgetting."""
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    reward_scale: float = 0.1
    """Reward for one relative point."""
    hidden: int = 64
    """Width of the network."""
    foresight: bool = True
    """Does the network look at the foresight, or only at the observation?"""

    eval_every: int = 100_000
    """Decisions between two evaluations against `greedy`, and between two saved states."""
    eval_games: int = 1000
    """Games of such an evaluation, at each table size of `eval_players`."""
    eval_players: tuple[int, ...] = ()
    """Table sizes evaluated; empty: `players`."""
    eval_bots: tuple[str, ...] = ("greedy",)
    """Opponents: greedy, careful, mc (a fifth of the games)."""
    final_games: int = 4000
    """Games against each baseline in the final table."""

    def check(self) -> None:
        """Raise ValueError for what cannot be trained with: what it is, and what would be right."""
        check_types(self)
        check_ranges(self, RANGES)
        for name in ("players", "rules", "decks", "games_per_match", "eval_bots"):
            if not getattr(self, name):
                raise ValueError(f"{name}: at least one is needed")
        for name in self.rules:
            rule_flags(name)
        for name in self.decks:
            load_deck(name)
        _ = self.player_shares_normed, self.rule_shares_normed
        for name in self.eval_bots:
            if name not in BOT_NAMES:
                raise ValueError(f"eval_bots: {name!r} is none of {', '.join(BOT_NAMES)}")
        shares = ("greedy_share", "careful_share", "mc_share", "pool_share")
        total = sum(getattr(self, name) for name in shares)
        if total > 1 + 1e-9:
            raise ValueError(f"{', '.join(shares)} add up to {total:g}; at most 1 is there to give")
        if self.pool_share and not self.pool_size:
            raise ValueError(f"pool_share {self.pool_share:g} needs a pool: give a pool_size")
        if self.frozen is not None:
            if not isinstance(self.frozen, str):
                raise ValueError(f"frozen is a checkpoint or a bot, not {self.frozen!r}")
            if total:
                raise ValueError("frozen is the only opponent: leave the shares of others at 0")
            if self.frozen not in BOT_NAMES:
                load_checkpoint(self.frozen)
        check_width(self.hidden)
        # A seat's last decision in a batch is not learned from: a minibatch must be left.
        least = self.minibatch + (self.games + 1) * MAX_PLAYERS
        if self.rollout < least:
            raise ValueError(
                f"rollout is at least {least} with {self.games} games and minibatches of"
                f" {self.minibatch}, not {self.rollout}"
            )

    @property
    def player_shares_normed(self) -> list[float]:
        """Shares of `players`, adding up to one."""
        return _normed(self.player_shares, len(self.players), "player_shares")

    @property
    def rule_shares_normed(self) -> list[float]:
        """Shares of `rules`, adding up to one."""
        return _normed(self.rule_shares, len(self.rules), "rule_shares")


def _normed(shares: tuple[float, ...], count: int, name: str) -> list[float]:
    if not shares:
        return [1 / count] * count
    if len(shares) != count or not min(shares) >= 0 or not 0 < sum(shares) < math.inf:
        raise ValueError(
            f"{name}: {count} shares are needed, none negative and not all 0, not {shares}"
        )
    return (np.array(shares) / sum(shares)).tolist()  # type: ignore[no-any-return]


def check_types(options: Any) -> None:
    """Raise ValueError unless each field of a dataclass holds what its annotation says."""
    for name, hint in get_type_hints(type(options)).items():
        value = getattr(options, name)
        several = get_origin(hint) is tuple
        kind = get_args(hint)[0] if several else hint
        if kind not in _KINDS:
            continue
        if several and not isinstance(value, tuple):
            raise ValueError(f"{name} is a list, not {value!r}")
        for one in value if several else (value,):
            # In Python a truth value is a whole number, and a whole number is no float.
            fits = isinstance(one, (int, float) if kind is float else kind)
            if not fits or (isinstance(one, bool) and kind is not bool):
                raise ValueError(f"{name}: {_KINDS[kind]} is needed, not {one!r}")


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def check_ranges(options: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Raise ValueError unless the named fields of a dataclass lie in their ranges, ends included,
    and are finite."""
    for name, (least, most) in ranges.items():
        value = getattr(options, name)
        for one in value if isinstance(value, tuple) else (value,):
            if least <= one <= most and math.isfinite(one):
                continue
            low = "above 0" if least == ABOVE_0 else f"at least {least:g}"
            right = low if most == math.inf else f"from {least:.12g} to {most:.12g}"
            raise ValueError(f"{name} is {right}, not {one!r}")


class Diverged(ValueError):
    """A training whose numbers grew beyond what can be computed with."""


def check_finite(what: str, decisions: int, *arrays: Any) -> None:
    """Raise Diverged, after so many decisions learned from, unless all numbers of the arrays (numpy
    or torch) are finite."""
    if not all(np.isfinite(np.asarray(array)).all() for array in arrays):
        raise Diverged(
            f"the training diverged after {decisions:,} decisions: {what} no longer finite"
        )


def check_width(hidden: int) -> None:
    """Raise ValueError unless a network of this width can be built, and kept as a checkpoint."""
    if hidden % 8 or hidden < 8:
        raise ValueError(f"hidden is a multiple of 8, not {hidden}")
    size, most = 4 * weight_count(hidden), MAX_BYTES - (1 << 13)  # the file has a header
    if size > most:
        raise ValueError(f"hidden {hidden}: {size} bytes of weights, {most} are allowed")


def config_of(values: Mapping[str, Any]) -> Config:
    """The configuration written in a run's or checkpoint's JSON; other keys are left out.

    Raises TypeError or AttributeError for what is no mapping.
    """
    names = {field.name for field in fields(Config)}
    chosen = {name: value for name, value in values.items() if name in names}
    return Config(**tuples(chosen))


def tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with tuples again where JSON has lists."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


# The whole space of games.
_ALL = replace(
    Config(),
    players=(2, 3, 4, 5, 6, 7, 8, 9, 10),
    player_shares=(12, 3, 6, 1, 3, 1, 1, 1, 2),  # a table of ten has five times the decisions
    rules=("base", "color", "positive", "color+positive"),
    rule_shares=(3, 1, 1, 1),
    decks=("balanced", "three-color", "two-color"),
    random_decks=300,
    games_per_match=(1, 1, 1, 3),
    greedy_share=0.05,
    careful_share=0.05,
    mc_share=0.1,
    pool_share=0.2,
    pool_size=8,
    games=512,
    rollout=65_536,
    eval_every=500_000,
    eval_games=500,
    eval_players=(2, 4, 6, 10),
    eval_bots=("greedy", "careful", "mc"),
    final_games=2000,
)

PRESETS = {
    # Two players, one deck: what `make train` runs, in minutes.
    "quick": Config(),
    # The whole space of games from nothing, in hours.
    "scratch": replace(
        _ALL, preset="scratch", decisions=15_000_000, gamma=0.9, final_learning_rate=2e-5
    ),
    # The whole space, from a policy that has learned from search (distill.py) or the stage before:
    # a stage of at most 90 minutes.
    "full": replace(
        _ALL,
        preset="full",
        decisions=8_000_000,
        learning_rate=2e-4,
        final_learning_rate=2e-5,
        gamma=0.95,
        gae_lambda=0.9,
        clip_range=0.15,
        ent_coef=0.0,
        kl_coef=0.05,
    ),
    # A few seconds, to see that everything works.
    "smoke": replace(
        Config(),
        preset="smoke",
        decisions=6000,
        games=32,
        rollout=2048,
        minibatch=256,
        hidden=16,
        greedy_share=0.1,
        mc_share=0.1,
        mc_determinisations=2,
        pool_share=0.3,
        pool_size=2,
        snapshot_every=2000,
        eval_every=2000,
        eval_games=20,
        final_games=40,
    ),
}
