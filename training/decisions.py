"""Decisions of self-play with the value that search finds for each action: made in parts, kept in
files.

A part is a function of the options, the weights and its number alone, so that parts can be made in
any order and on any number of cores. A decision is kept as its full game record with the seat and
the values, some 200 bytes; the network's inputs are encoded anew when it is learned from.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.engine import GREEDY, PENDING, masks, pending, policy_actions, step
from oxx_env.game.rules import ACTIONS, DECK, GAME, MAX_PLAYERS
from oxx_env.game.scoring import relative_points_of
from oxx_env.game.validation import check_games
from oxx_env.lib.files import open_atomic, read_arrays
from oxx_env.policy.features import INPUT, encode_inputs
from oxx_env.policy.forward import score
from training.config import Space, differences
from training.learning import Stopped
from training.selfplay import deal_over

GAMES = 256  # side by side in one part
APART = 40  # decisions at most that a game is ahead of the others, so that all rounds occur
MOST_BYTES = 1 << 31  # of a part that is unpacked
# Two records with the same bytes mean the same game.
_RECORDS = hashlib.sha256(repr([GAME.descr, DECK.descr]).encode()).hexdigest()[:16]

# Values the actions of PENDING: games, decks, who, and values [N, ACTIONS] to be filled in.
Thinker = Callable[[Any, Any, Any, Any], None]


# --- decisions of games side by side ------------------------------------------------------------


def waiting(games: NDArray[np.void]) -> NDArray[np.void]:
    """PENDING [N], the decisions that the games wait for."""
    who = np.zeros(len(games) * MAX_PLAYERS, PENDING)
    return who[: int(pending(games, who))]


def some(who: NDArray[np.void], which: NDArray[np.bool_]) -> NDArray[np.void]:
    """Those of PENDING [N] that are chosen."""
    return np.ascontiguousarray(who[which])


def inputs_of(
    games: NDArray[np.void], decks: NDArray[np.void], who: NDArray[np.void], *unseen: int
) -> NDArray[np.float32]:
    """A network's inputs [N, INPUT]; `unseen`: the most unseen cards that are looked at."""
    inputs = np.empty((len(who), INPUT), np.float32)
    encode_inputs(games, decks, who, len(who), inputs, *unseen)
    return inputs


def legal_of(
    games: NDArray[np.void], decks: NDArray[np.void], who: NDArray[np.void]
) -> NDArray[np.bool_]:
    """The legal actions, bool [N, ACTIONS]."""
    legal = np.zeros((len(who), ACTIONS), np.int8)
    masks(games, decks, who, len(who), legal)
    return legal > 0


def logits_of(
    weights: NDArray[np.float32],
    games: NDArray[np.void],
    decks: NDArray[np.void],
    who: NDArray[np.void],
) -> NDArray[np.float32]:
    """A network's logits [N, ACTIONS], -inf where an action is illegal."""
    legal = legal_of(games, decks, who)
    logits, _ = score(weights, inputs_of(games, decks, who))
    return np.where(legal, logits, -np.inf)


def probabilities(logits: NDArray[Any]) -> NDArray[Any]:
    """Softmax [N, ACTIONS]."""
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def sampled(logits: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
    """An action for each row of logits [N, ACTIONS], drawn by its probability."""
    # The greatest of the logits, each with noise of Gumbel's distribution, has this probability.
    noise = -np.log(-np.log(np.maximum(rng.random(logits.shape), 1e-300)))
    return (logits + noise).argmax(axis=1).astype(np.int64)


@dataclass
class Decisions:
    """Decisions with their values.

    games   GAME [N], full records resting at the decision; `deck` indexes `decks`
    decks   DECK [D]
    seats   uint8 [N]
    origin  int32 [N], which of the games side by side it is from
    values  float32 [N, ACTIONS], relative points at the end of the hand; -inf where illegal
    seconds it took to make them
    """

    games: NDArray[np.void]
    decks: NDArray[np.void]
    seats: NDArray[np.uint8]
    origin: NDArray[np.int32]
    values: NDArray[np.float32]
    seconds: float = 0.0

    def check(self) -> None:
        """Raise ValueError unless they can be encoded and learned from."""
        check_games(self.games, self.decks, self.seats)
        shapes = {"seats": ("u1", ()), "origin": ("i4", ()), "values": ("f4", (ACTIONS,))}
        for name, (kind, rest) in shapes.items():
            array = getattr(self, name)
            if array.dtype != kind or array.shape != (len(self.games), *rest):
                raise ValueError(f"{name} is {array.dtype} {list(array.shape)}")
        if not np.array_equal(self.legal, legal_of(self.games, self.decks, self.who())):
            raise ValueError("values are not finite for exactly the legal actions")

    @property
    def legal(self) -> NDArray[np.bool_]:
        """The legal actions, bool [N, ACTIONS]."""
        return np.isfinite(self.values)

    def who(self) -> NDArray[np.void]:
        """They as PENDING [N]."""
        who = np.zeros(len(self.seats), PENDING)
        who["game"], who["seat"] = np.arange(len(who)), self.seats
        who["phase"] = self.games["phase"]
        return who

    def inputs(self) -> NDArray[np.float32]:
        """A network's inputs [N, INPUT]."""
        return inputs_of(self.games, self.decks, self.who())

    def relative(self) -> NDArray[np.float32]:
        """The seats' relative points now, [N]."""
        points = relative_points_of(self.games, np.float32)
        return points[np.arange(len(points)), self.seats]


def joined(
    kept: list[tuple[NDArray[Any], ...]], decks: NDArray[np.void], count: int, start: float
) -> Decisions:
    """The first `count` of decisions kept as (games, seats, origins, values) step by step; `start`
    is the monotonic time at which they were begun."""
    games, seats, origin, values = (np.concatenate(a)[:count] for a in zip(*kept, strict=True))
    seconds = time.monotonic() - start
    return Decisions(games, decks, seats, origin, values.astype(np.float32), seconds)


def self_play(
    space: Space,
    weights: NDArray[np.float32],
    thinker: Thinker,
    count: int,
    rng: np.random.Generator,
    stopped: Callable[[], bool] = lambda: False,
) -> Decisions:
    """`count` decisions of games that a policy plays with itself by its probabilities, every one of
    them valued.

    space    table sizes, rule sets, decks, lengths of matches, and their shares
    stopped  asked after each step; True raises Stopped
    """
    start = time.monotonic()
    games, decks = deal_over(space, GAMES, rng)
    games["match_games"] = rng.choice(space.games_per_match, GAMES)
    _spread(games, decks, weights, rng, stopped)
    kept: list[tuple[NDArray[Any], ...]] = []
    total = 0
    while total < count:
        if stopped():
            raise Stopped
        who = waiting(games)
        actions = sampled(logits_of(weights, games, decks, who), rng)
        values = np.empty((len(who), ACTIONS))
        before = games[who["game"]].copy()
        thinker(games, decks, who, values)
        kept.append((before, who["seat"], who["game"], values))
        total += len(who)
        step(games, decks, who, len(who), actions, True)
    return joined(kept, decks, count, start)


def _spread(
    games: NDArray[np.void],
    decks: NDArray[np.void],
    weights: NDArray[np.float32],
    rng: np.random.Generator,
    stopped: Callable[[], bool],
) -> None:
    """Play games that began together on, each for a while, so that all rounds occur, and all games
    of a match: `greedy` plays the games before the running one."""
    first = rng.integers(1, games["match_games"].astype(np.int64) + 1)
    while True:
        who = waiting(games)
        late = some(who, (games["match_game"] < first)[who["game"]])
        if not len(late):
            break
        actions = np.zeros(len(late), np.int64)
        policy_actions(games, decks, late, len(late), GREEDY, actions)
        step(games, decks, late, len(late), actions, True)
    ahead = rng.integers(0, APART, len(games))
    for wait in range(APART):
        if stopped():
            raise Stopped
        who = waiting(games)
        moving = some(who, (ahead > wait)[who["game"]])
        actions = sampled(logits_of(weights, games, decks, moving), rng)
        step(games, decks, moving, len(moving), actions, True)


# --- files --------------------------------------------------------------------------------------


def _complete(key: dict[str, Any]) -> dict[str, Any]:
    """The key as JSON gives it back, with the constants of this version that parts depend on."""
    made = {**key, "records": _RECORDS, "side_by_side": GAMES, "apart": APART}
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def write_part(path: Path, data: Decisions, key: dict[str, Any]) -> None:
    """Write a part, or nothing; it is a function of `key`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(path, "wb") as file:
        np.savez_compressed(
            file,
            games=data.games,
            decks=data.decks,
            seats=data.seats,
            origin=data.origin,
            values=data.values,
            seconds=np.array(data.seconds),
            key=np.array(json.dumps(_complete(key))),
        )


def read_part(path: Path, key: dict[str, Any]) -> Decisions:
    """A part. Raises ValueError for a file that is none or was made from another key; OSError."""
    try:
        arrays = read_arrays(path, MOST_BYTES, packed=True)
        made, seconds = json.loads(str(arrays.pop("key"))), float(arrays.pop("seconds"))
        data = Decisions(**arrays, seconds=seconds)
        data.check()
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no part of a data set ({error}); remove it") from error
    different = differences(made if isinstance(made, dict) else {}, _complete(key))
    if different:
        raise ValueError(
            f"{path} was made with another {', '.join(different)}: remove it, or name another"
            " --run-dir"
        )
    return data
