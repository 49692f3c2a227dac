"""Options of trainings: their types, and all those of self-play; presets are instances of these."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np

from oxx_env.game.cards import load_deck
from oxx_env.game.engine import rule_flags
from oxx_env.game.rules import MAX_PLAYERS, MIN_PLAYERS
from oxx_env.lib.options import NOT_EMPTY, Range, check
from oxx_env.policy.checkpoint import MAX_BYTES, load_checkpoint
from oxx_env.policy.forward import weight_count

BOT_NAMES = ("greedy", "careful", "mc")  # of the compiled opponents, see `pool`
Count = Annotated[int, Range(1)]
Seed = Annotated[int, Range(0, 2**32 - 1)]
Share = Annotated[float, Range(0, 1)]
Positive = Annotated[float, Range(above=0)]
NotNegative = Annotated[float, Range(0)]
Names = Annotated[tuple[str, ...], NOT_EMPTY]
TableSizes = Annotated[tuple[int, ...], Range(MIN_PLAYERS, MAX_PLAYERS), NOT_EMPTY]


@dataclass(frozen=True, kw_only=True)
class Space:
    """The games that are played: table sizes, rule sets, decks and matches, by their shares."""

    players: TableSizes = (2,)
    """Table sizes."""
    player_shares: tuple[float, ...] = ()
    """Share of the games for each table size; empty: equal."""
    rules: Names = ("base",)
    """Rule sets."""
    rule_shares: tuple[float, ...] = ()
    """Share of the games for each rule set; empty: equal."""
    decks: Names = ("balanced",)
    """Decks by name or path."""
    random_decks: Annotated[int, Range(0)] = 0
    """0: play the decks as they are; else this many fresh assignments of their types to numbers."""
    games_per_match: Annotated[tuple[int, ...], Range(1, 2**16 - 1), NOT_EMPTY] = (1,)
    """Games in a match, equally often."""

    def check(self) -> None:
        """Raise ValueError for options that do not fit; the message says what would."""
        check(self)
        check_games(self)
        _ = self.player_shares_normed, self.rule_shares_normed

    @property
    def player_shares_normed(self) -> list[float]:
        """Shares of `players`, adding up to one."""
        return _normed(self.player_shares, len(self.players), "player_shares")

    @property
    def rule_shares_normed(self) -> list[float]:
        """Shares of `rules`, adding up to one."""
        return _normed(self.rule_shares, len(self.rules), "rule_shares")


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How a learner learns from its games by PPO, and how often it is evaluated."""

    seed: Seed = 1
    """Of all random choices."""
    games: Count = 256
    """Games played side by side."""
    rollout: int = 32_768
    """Samples of one batch, at most."""
    epochs: Count = 2
    """Passes over a batch."""
    minibatch: Annotated[int, Range(2)] = 1024
    """Samples of one gradient step."""
    learning_rate: NotNegative = 1e-3
    """Of Adam, at the start."""
    final_learning_rate: NotNegative = 1e-4
    """At the end; linear in between."""
    gamma: Share = 0.85
    """Discount from one decision of a seat to its next."""
    gae_lambda: Share = 0.8
    """Mixes short and long estimates of the advantage."""
    clip_range: Positive = 0.2
    """Of the probability ratio."""
    ent_coef: NotNegative = 0.005
    """Weight of the entropy bonus."""
    vf_coef: NotNegative = 0.5
    """Weight of the value loss."""
    max_grad_norm: Positive = 0.5
    """Gradients are scaled down to this norm."""
    hidden: Annotated[int, Range(8, 512)] = 64
    """Width of the network, if it starts from nothing."""
    eval_every: Count = 100_000
    """Decisions between two evaluations, and between two saved states."""
    eval_games: Count = 1000
    """Games of an evaluation, at each table size and against each opponent."""


@dataclass(frozen=True, kw_only=True)
class Config(Learning, Space):
    """A training run."""

    preset: str = "quick"
    """Which preset the other values start from."""
    decisions: Count = 600_000
    """Samples to learn from."""

    greedy_share: Share = 0.0
    """Share of the matches in which half of the seats are `greedy`, the others learn."""
    careful_share: Share = 0.0
    """The same for `careful`."""
    mc_share: Share = 0.0
    """The same for Monte Carlo."""
    mc_determinisations: Count = 30
    """Deals it tries for each decision."""
    pool_share: Share = 0.0
    """Share of the matches in which half of the seats are one of the past snapshots."""
    pool_size: Annotated[int, Range(0, 127)] = 0
    """Past snapshots kept as opponents; the weakest gives way to a new one."""
    snapshot_every: Count = 500_000
    """Decisions from one snapshot to the next."""
    frozen: str | None = None
    """One seat of each match learns, the others are this at its best: a checkpoint or a bot."""

    kl_coef: NotNegative = 0.0
    """Weight of the divergence from the policy that was started from, against forgetting."""
    reward_scale: Positive = 0.1
    """Reward for one relative point."""
    foresight: bool = True
    """Give the network the features of each choice, too; else only the observation."""

    eval_players: Annotated[tuple[int, ...], Range(MIN_PLAYERS, MAX_PLAYERS)] = ()
    """Table sizes evaluated; empty: `players`."""
    eval_bots: Names = ("greedy",)
    """Opponents: greedy, careful, mc (a fifth of the games)."""
    final_games: Count = 4000
    """Games against each baseline in the final table."""

    def check(self) -> None:
        """Raise ValueError for options that do not fit; the message says what would."""
        super().check()
        for name in self.eval_bots:
            if name not in BOT_NAMES:
                raise ValueError(f"eval_bots: {name!r} is none of {', '.join(BOT_NAMES)}")
        shares = ("greedy_share", "careful_share", "mc_share", "pool_share")
        total = sum(getattr(self, name) for name in shares)
        if total > 1 + 1e-9:
            raise ValueError(f"{', '.join(shares)} add up to {total:g}, not to at most 1")
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


def check_games(options: Any) -> None:
    """Raise ValueError for rule sets or decks that do not exist."""
    for name in options.rules:
        rule_flags(name)
    for name in options.decks:
        load_deck(name)


def _normed(shares: tuple[float, ...], count: int, name: str) -> list[float]:
    if not shares:
        return [1 / count] * count
    if len(shares) != count or not min(shares) >= 0 or not 0 < sum(shares) < math.inf:
        raise ValueError(
            f"{name}: {count} shares are needed, none negative and not all 0, not {shares}"
        )
    return (np.array(shares) / sum(shares)).tolist()  # type: ignore[no-any-return]


def check_width(hidden: int) -> None:
    """Raise ValueError unless a network of this width can be built, and kept as a checkpoint."""
    if hidden % 8 or hidden < 8:
        raise ValueError(f"hidden is a multiple of 8, not {hidden}")
    size, most = 4 * weight_count(hidden), MAX_BYTES - (1 << 13)  # the file has a header
    if size > most:
        raise ValueError(f"hidden {hidden}: {size} bytes of weights, {most} are allowed")


def config_of(values: Mapping[str, Any]) -> Config:
    """The configuration written in a run's or checkpoint's JSON; other keys are left out.

    Raises TypeError or AttributeError for anything but a mapping.
    """
    names = {field.name for field in fields(Config)}
    return Config(**tuples({name: value for name, value in values.items() if name in names}))


def tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with tuples again where JSON has lists."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


def arguments(options: Any, usual: Any, skip: Collection[str] = ()) -> list[str]:
    """The words that give a command line these options where they differ from the `usual` ones."""
    words = []
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name in skip or value == getattr(usual, field.name):
            continue
        option = field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", *map(str, value if isinstance(value, tuple) else (value,))]
    return words


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """What is different now, by name: `0.9, not 0.5` (then, now)."""
    return {
        name: f"{then.get(name)}, not {value}"
        for name, value in now.items()
        if then.get(name) != value
    }


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
