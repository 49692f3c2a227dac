"""Decisions of self-play with what search finds each action worth: made in parts, kept in files.

A part is a function of the options, the weights and its number alone, so that parts can be made in
any order and on any number of cores. A decision is kept as its full game record with the seat and
the values, some 200 bytes; what a network sees of it is encoded anew when it is learned from.
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
from oxx_env.game.rules import ACTIONS, DECK, GAME, MAX_PLAYERS, POSITIVE
from oxx_env.game.validation import check_games
from oxx_env.lib.files import open_whole, read_arrays
from oxx_env.policy.features import INPUT, encode_inputs
from oxx_env.policy.forward import score
from training.config import Config
from training.selfplay import deal_over

GAMES = 256  # side by side in one part
APART = 40  # decisions at most that a game is ahead of the others, so that all rounds occur
MOST_BYTES = 1 << 31  # of a part that is unpacked
# Two records with the same bytes mean the same game.
_RECORDS = hashlib.sha256(repr([GAME.descr, DECK.descr]).encode()).hexdigest()[:16]

# Values the actions of PENDING: games, decks, who, and values [N, ACTIONS] to be filled in.
Thinker = Callable[[Any, Any, Any, Any], None]


class Stopped(KeyboardInterrupt):
    """Ctrl-C, or another signal that asks for the end, noticed where nothing is lost."""


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
        who = self.who()
        legal = np.zeros((len(who), ACTIONS), np.int8)
        masks(self.games, self.decks, who, len(who), legal)
        if not np.array_equal(np.isfinite(self.values), legal == 1):
            raise ValueError("values are not finite for exactly the legal actions")

    def who(self) -> NDArray[np.void]:
        """They as PENDING [N]."""
        who = np.zeros(len(self.seats), PENDING)
        who["game"], who["seat"] = np.arange(len(who)), self.seats
        who["phase"] = self.games["phase"]
        return who

    def inputs(self) -> NDArray[np.float32]:
        """What a network sees of them, [N, INPUT]."""
        who = self.who()
        inputs = np.empty((len(who), INPUT), np.float32)
        encode_inputs(self.games, self.decks, who, len(who), inputs)
        return inputs

    def relative(self) -> NDArray[np.float32]:
        """The seats' relative points now, [N]."""
        points = self.games["points"].astype(np.float32)
        own = points[np.arange(len(points)), self.seats]
        others = (points.sum(axis=1) - own) / (self.games["players"].astype(np.float32) - 1)
        return np.where(self.games["rules"] & POSITIVE, own - others, others - own)


def sampled(
    weights: NDArray[np.float32],
    games: NDArray[np.void],
    decks: NDArray[np.void],
    who: NDArray[np.void],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """An action for each of PENDING [N], drawn by a policy's probabilities."""
    n = len(who)
    legal = np.zeros((n, ACTIONS), np.int8)
    masks(games, decks, who, n, legal)
    seen = np.empty((n, INPUT), np.float32)
    encode_inputs(games, decks, who, n, seen)
    logits = np.where(legal > 0, score(weights, seen)[0], -np.inf)
    # The greatest of the logits, each with noise of Gumbel's distribution, has this probability.
    noise = -np.log(-np.log(np.maximum(rng.random((n, ACTIONS)), 1e-300)))
    return (logits + noise).argmax(axis=1).astype(np.int64)


def self_play(
    space: Config,
    weights: NDArray[np.float32],
    thinker: Thinker,
    count: int,
    rng: np.random.Generator,
    stopped: Callable[[], bool] = lambda: False,
) -> Decisions:
    """`count` decisions of games that a policy plays with itself by its probabilities, every one of
    them valued.

    space    table sizes, rule sets, decks, lengths of matches, and their shares
    stopped  asked after each step; Stopped is raised if it says so
    """
    start = time.monotonic()
    games, decks = deal_over(space, GAMES, rng)
    games["match_games"] = rng.choice(space.games_per_match, GAMES)
    _spread(games, decks, weights, rng, stopped)
    who = np.zeros(GAMES * MAX_PLAYERS, PENDING)
    kept: list[tuple[NDArray[Any], ...]] = []
    total = 0
    while total < count:
        if stopped():
            raise Stopped
        now = np.ascontiguousarray(who[: int(pending(games, who))])
        actions = sampled(weights, games, decks, now, rng)
        values = np.empty((len(now), ACTIONS))
        before = games[now["game"]].copy()
        thinker(games, decks, now, values)
        kept.append((before, now["seat"].copy(), now["game"].copy(), values.astype(np.float32)))
        total += len(now)
        step(games, decks, now, len(now), actions, True)
    found, seats, origin, values = (np.concatenate(a)[:count] for a in zip(*kept, strict=True))
    return Decisions(found, decks, seats, origin, values, time.monotonic() - start)


def _spread(
    games: NDArray[np.void],
    decks: NDArray[np.void],
    weights: NDArray[np.float32],
    rng: np.random.Generator,
    stopped: Callable[[], bool],
) -> None:
    """Play games that began together on, each for a while, so that all rounds occur, and all games
    of a match: `greedy` plays what is before the running game."""
    who = np.zeros(len(games) * MAX_PLAYERS, PENDING)
    actions = np.zeros(len(who), np.int64)
    first = rng.integers(1, games["match_games"].astype(np.int64) + 1)
    while True:
        n = int(pending(games, who))
        late = np.ascontiguousarray(who[:n][(games["match_game"] < first)[who["game"][:n]]])
        if not len(late):
            break
        policy_actions(games, decks, late, len(late), GREEDY, actions)
        step(games, decks, late, len(late), actions, True)
    ahead = rng.integers(0, APART, len(games))
    for wait in range(APART):
        if stopped():
            raise Stopped
        n = int(pending(games, who))
        moving = np.ascontiguousarray(who[:n][(ahead > wait)[who["game"][:n]]])
        chosen = sampled(weights, games, decks, moving, rng)
        step(games, decks, moving, len(moving), chosen, True)


# --- files --------------------------------------------------------------------------------------


def _whole(key: dict[str, Any]) -> dict[str, Any]:
    """The key as JSON gives it back, with what this version makes parts of."""
    made = {**key, "records": _RECORDS, "side_by_side": GAMES, "apart": APART}
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def write_part(path: Path, data: Decisions, key: dict[str, Any]) -> None:
    """Write a part, whole or not at all; `key` is what it is a function of."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_whole(path, "wb") as file:
        np.savez_compressed(
            file,
            games=data.games,
            decks=data.decks,
            seats=data.seats,
            origin=data.origin,
            values=data.values,
            seconds=np.array(data.seconds),
            key=np.array(json.dumps(_whole(key))),
        )


def read_part(path: Path, key: dict[str, Any]) -> Decisions:
    """A part. Raises ValueError for a file that is none, or that was made from something else than
    `key` says; OSError."""
    try:
        arrays = read_arrays(path, MOST_BYTES, packed=True)
        made, seconds = json.loads(str(arrays.pop("key"))), float(arrays.pop("seconds"))
        data = Decisions(**arrays, seconds=seconds)
        data.check()
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no part of a data set ({error}); remove it") from error
    told = made if isinstance(made, dict) else {}
    different = [name for name, value in _whole(key).items() if told.get(name) != value]
    if different:
        raise ValueError(
            f"{path} was made with another {', '.join(different)}: remove it, or name another"
            " --run-dir"
        )
    return data
