"""One dataclass holds every option of a training run; presets are instances of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


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
    games_per_match: int = 1
    """Games in a match."""
    greedy_share: float = 0.0
    """Share of the matches in which one seat learns among `greedy` players."""

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
    max_grad_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    reward_scale: float = 0.1
    """Reward for one relative point."""
    hidden: int = 64
    """Width of the network."""

    eval_every: int = 100_000
    """Decisions between two evaluations against `greedy`, and between two saved states."""
    eval_games: int = 1000
    """Games of such an evaluation."""
    final_games: int = 4000
    """Games against each baseline in the final table."""

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
    if len(shares) != count or min(shares) < 0 or sum(shares) <= 0:
        raise ValueError(f"{name}: {count} shares are needed, none negative, not {shares}")
    return (np.array(shares) / sum(shares)).tolist()  # type: ignore[no-any-return]


PRESETS = {
    # Two players, one deck: what `make train` runs, in minutes.
    "quick": Config(),
    # The whole space of games from nothing, in hours.
    "full": replace(
        Config(),
        preset="full",
        decisions=20_000_000,
        players=(2, 3, 4, 5, 6, 7, 8, 9, 10),
        player_shares=(4, 1, 3, 1, 2, 1, 1, 1, 1),
        rules=("base", "color", "positive", "color+positive"),
        rule_shares=(3, 1, 1, 1),
        decks=("balanced", "three-color", "two-color"),
        random_decks=300,
        greedy_share=0.2,
        games=512,
        rollout=65_536,
        final_learning_rate=2e-5,
        eval_every=1_000_000,
        final_games=2000,
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
        eval_every=2000,
        eval_games=20,
        final_games=40,
    ),
}
