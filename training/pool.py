"""The opponents of self-play: past snapshots of the learner, and bots.

In some matches the learner has all seats; in the others it shares the table with one kind of
opponent. The configuration gives each kind a share of the matches; the share of the snapshots is
divided among them by how well they do against the learner. The results against each opponent are
counted, and written to a manifest beside the snapshots.

A run against a frozen opponent has one line-up: a seat of the learner, the rest frozen.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as save_tensors

from oxx_env.bots import compiled_number
from oxx_env.policy.checkpoint import write_atomically
from oxx_env.policy.forward import weight_count
from training.config import BOT_NAMES, Config

# The agent in a seat: a network by its index (0 the learner, then the snapshots), a compiled bot by
# its number with a minus sign, or a network that does not change. Saved states hold these numbers.
LEARNER, FROZEN = 0, -5
BOTS = {name: -compiled_number(name) for name in BOT_NAMES}
GREEDY, CAREFUL, MONTE_CARLO = BOTS.values()

# What is counted for each kind of line-up, results float64 [KINDS, TALLIES].
MATCHES, SEATS, SHARE, EXPECTED, POINTS = range(5)
TALLIES = 5
MEMORY = 0.7  # weight of a snapshot's results before the last batch
LEAST = 0.25  # of the mean share: every snapshot is met now and then


class Pool:
    """Snapshots and bots. Line-up kind 0 is the learner alone, then snapshots, then the bots, last
    the frozen network where there is one.

    weights   float32 [size, weights], the snapshots
    born      int64 [size], the learner's decisions when each was taken; -1: the place is empty
    opposing  float64 [KINDS], a seat's share of the victories in proportion to a learner's seat
              (0.5: as good), over the last batches
    totals    float64 [KINDS, TALLIES] since the snapshot was taken: matches, seats of the learner,
              its victories, the victories of as many average seats, its relative points
    former    float64 [N, 1 + TALLIES], snapshots that gave way: `born` and `totals`
    """

    def __init__(self, config: Config) -> None:
        size = config.pool_size
        self.config = config
        self.weights = np.zeros((size, weight_count(config.hidden)), np.float32)
        self.born = np.full(size, -1, np.int64)
        network = config.frozen is not None and config.frozen not in BOTS
        self.bots = {**BOTS, "frozen": FROZEN} if network else BOTS
        kinds = 1 + size + len(self.bots)
        self.opposing = np.full(kinds, 0.5)
        self.totals = np.zeros((kinds, TALLIES))
        self.former = np.zeros((0, 1 + TALLIES))
        self.seats = np.array([0, *range(1, 1 + size), *self.bots.values()], np.int8)
        self.names = ["self", *(f"snapshot {k}" for k in range(size)), *self.bots]

    @property
    def bot_shares(self) -> NDArray[np.float64]:
        """Share of the matches against each of `bots`."""
        config = self.config
        if config.frozen is not None:
            only = config.frozen if config.frozen in BOTS else "frozen"
            return np.array([float(name == only) for name in self.bots])
        return np.array([config.greedy_share, config.careful_share, config.mc_share])

    def shares(self) -> NDArray[np.float64]:
        """How often each kind of line-up sits down [KINDS], adding up to one."""
        there = self.born >= 0
        size = len(self.born)
        shares = np.zeros(len(self.seats))
        shares[1 + size :] = self.bot_shares
        if there.any():
            strength = np.where(there, self.opposing[1 : 1 + size], 0.0)
            strength = np.where(
                there, np.maximum(strength, LEAST * strength.sum() / there.sum()), 0
            )
            shares[1 : 1 + size] = self.config.pool_share * strength / max(strength.sum(), 1e-9)
        shares[0] = 1 - shares[1:].sum()
        return shares

    def add(self, weights: NDArray[np.float32], decisions: int) -> None:
        """Take a snapshot, in an empty place or that of the weakest but the newest."""
        if not len(self.born):
            return
        empty = np.flatnonzero(self.born < 0)
        if len(empty):
            place = int(empty[0])
        else:
            strength = self.opposing[1 : 1 + len(self.born)].copy()
            strength[self.born.argmax()] = np.inf
            place = int(strength.argmin())
            gone = [self.born[place], *self.totals[1 + place]]
            self.former = np.concatenate([self.former, [gone]])
        self.weights[place] = weights
        self.born[place] = decisions
        self.opposing[1 + place] = 0.5
        self.totals[1 + place] = 0

    def count(self, results: NDArray[np.float64]) -> None:
        """Learn from a batch's results [KINDS, TALLIES]."""
        self.totals += results
        for kind in range(1, len(self.seats)):
            if results[kind, SEATS]:
                now = 1 - relative_share(results[kind])
                self.opposing[kind] = MEMORY * self.opposing[kind] + (1 - MEMORY) * now

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies of all that changes."""
        names = ("weights", "born", "opposing", "totals", "former")
        return {f"pool_{name}": getattr(self, name).copy() for name in names}

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from a `state`."""
        for name in ("weights", "born", "opposing", "totals"):
            getattr(self, name)[...] = state[f"pool_{name}"]
        self.former = state.get("pool_former", self.former).copy()

    def ratings(self) -> dict[str, float]:
        """Elo points of each opponent met, the learner at 0, by all matches against it."""
        rated = {}
        for kind in range(1, len(self.seats)):
            if self.totals[kind, SEATS]:
                share = min(max(1 - relative_share(self.totals[kind]), 0.001), 0.999)
                rated[self.names[kind]] = 400 * float(np.log10(share / (1 - share)))
        return rated

    def write(self, folder: Path) -> None:
        """Write the snapshots that are not there yet, and `manifest.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        shares, ratings = self.shares(), self.ratings()
        entries = []
        for kind, name in enumerate(self.names):
            entry: dict[str, Any] = {"opponent": name}
            if 1 <= kind <= len(self.born):
                if self.born[kind - 1] < 0:
                    continue
                entry |= self._write_snapshot(folder, kind - 1)
            if kind and not self.totals[kind, SEATS] and not shares[kind]:
                continue  # takes no part
            entry["share_of_matches"] = float(shares[kind])
            entry |= _played(self.totals[kind]) | {"rating": ratings.get(name, 0.0)}
            entries.append(entry)
        former = [
            {"decisions": int(born), **_played(total)} for born, *total in self.former.tolist()
        ]
        manifest = {"hidden": self.config.hidden, "opponents": entries, "former": former}
        text = json.dumps(manifest, indent=2) + "\n"
        write_atomically(folder / "manifest.json", text.encode())

    def _write_snapshot(self, folder: Path, index: int) -> dict[str, Any]:
        """Write a snapshot if it is not there yet; its entry of the manifest."""
        born = int(self.born[index])
        data = save_tensors({"weights": self.weights[index]})
        path = folder / f"snapshot-{born:010d}.safetensors"
        if not path.exists():
            write_atomically(path, data)
        sha256 = hashlib.sha256(data).hexdigest()
        return {"file": path.name, "decisions": born, "sha256": sha256}


def _played(total: Any) -> dict[str, Any]:
    """The results against an opponent for the manifest, from its TALLIES."""
    seats = max(total[SEATS], 1)
    return {
        "matches": int(total[MATCHES]),
        "learner_seats": int(total[SEATS]),
        "learner_win_share": float(total[SHARE] / seats),
        "parity": float(total[EXPECTED] / seats),
        "learner_relative_points": float(total[POINTS] / seats),
    }


def relative_share(tally: NDArray[np.float64]) -> float:
    """A learner's seat's victories in proportion to an opponent's: 0.5 where both are as good.

    tally  [TALLIES] of one kind of line-up

    With s seats of p in a match the learner has `SHARE` of its victories; a seat of its own has
    SHARE/s, one of the others (1 - SHARE)/(p - s). `EXPECTED` is s/p, summed like SHARE over seats.
    """
    won, par = tally[SHARE] / tally[MATCHES], tally[EXPECTED] / tally[MATCHES]
    own, theirs = won / par, (1 - won) / (1 - par)
    return float(own / (own + theirs)) if own + theirs > 0 else 0.5
