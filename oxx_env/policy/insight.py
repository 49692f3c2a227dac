"""What a trained policy does and believes: numbers for tables and figures.

    play = insight.self_play("policy:quick", games=300)
    play.liking(play.cards, "fits")      # how often a card is played, by the rows it fits
    play.calibration()                   # foretold against what came
    insight.card_values(play)            # which cards it likes to hold, and which it does not

The policy plays all seats and draws its actions from its own probabilities, as in training; its
value is held against what such play brings. Drawing functions take matplotlib's axes; this module
does not import it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game.cards import DeckSpec, letters, load_deck
from oxx_env.game.engine import (
    PENDING,
    best_heads,
    check_players,
    masks,
    new_games,
    stack_decks,
    step,
)
from oxx_env.game.engine import pending as list_pending
from oxx_env.game.rules import (
    ACTIONS,
    CARD_PHASE,
    FIRST_ROW,
    HAND_SIZE,
    NO_CARD,
    NUMBERS,
    ROWS,
    Deck,
    Game,
    heads_taken,
    legal_rows,
    length_of,
    matching_rows,
)
from oxx_env.game.scoring import relative_points_of
from oxx_env.lib.files import read_arrays, read_json
from oxx_env.lib.jit import kernel
from oxx_env.lib.texts import message
from oxx_env.policy.checkpoint import find_checkpoint, load_checkpoint, write_atomically
from oxx_env.policy.features import INPUT, encode_inputs
from oxx_env.policy.forward import score
from oxx_env.show import plot

CURVE = "curve.json"  # in a checkpoint folder: win shares on the way
NO_SHARE = ("decisions", "ci95")  # what a point of the curve holds besides win shares
Floats = NDArray[np.float64]

# One card that could be played.
CARD = np.dtype(
    [
        ("probability", "f4"),  # that the policy plays it
        ("chance", "f4"),  # one over the cards in hand
        ("number", "i2"),
        ("heads", "i2"),  # on the card
        ("fits", "i2"),  # rows whose end shares a color with it
        ("points", "i2"),  # heads it would take if it were placed at its best now
        ("hand", "i2"),  # cards in hand
    ]
)
# One row that could be chosen.
ROW = np.dtype(
    [
        ("probability", "f4"),  # that the policy chooses it
        ("chance", "f4"),  # one over the rows allowed
        ("row", "i2"),
        ("length", "i2"),  # cards in it
        ("points", "i2"),  # heads taken by choosing it
        ("dearer", "i2"),  # how many of the allowed rows take fewer heads
    ]
)


@kernel
def _facts(games: Game, decks: Deck, who: Any, n: int, cards: Any, rows: Any) -> None:
    """Of each option: cards [N, 4, (fits, points)], rows [N, 5, (length, points)]."""
    for i in range(n):
        game = games[who[i]["game"]]
        deck = decks[game["deck"]]
        seat = np.int64(who[i]["seat"])
        if game["phase"] == CARD_PHASE:
            for slot in range(np.int64(game["hand_sizes"][seat])):
                number = np.int64(game["hands"][seat, slot])
                fitting = matching_rows(game, deck, number)
                for row in range(ROWS):
                    cards[i, slot, 0] += fitting >> row & 1
                cards[i, slot, 1] = abs(best_heads(game, deck, number))  # a cost is negative
        else:
            number = np.int64(game["revealed"][game["placed"]])
            allowed = legal_rows(game, deck, number)
            for row in range(ROWS):
                rows[i, row, 0] = length_of(game["row_sums"][row])
                if allowed >> row & 1:
                    rows[i, row, 1] = heads_taken(game, deck, number, row)


# --- playing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SelfPlay:
    """Every decision of a policy in games with itself.

    values   float64 [N], what the network foretells at each decision, in relative points
    returns  float64 [N], what came: relative points from then on, discounted as in training
    seats    int64 [N, 2], game and seat of each decision
    fresh    int64 [M], the decisions with a hand of four, just drawn
    hands    int64 [M, 4], their cards' numbers
    cards    CARD [.], every card that could be played
    rows     ROW [.], every row that could be chosen
    deck     uint8 [110, 6], the heads
    players, rules, games   as played
    gamma    the discount from one decision of a seat to its next
    """

    values: Floats
    returns: Floats
    seats: NDArray[np.int64]
    fresh: NDArray[np.int64]
    hands: NDArray[np.int64]
    cards: NDArray[np.void] = field(repr=False)
    rows: NDArray[np.void] = field(repr=False)
    deck: NDArray[np.uint8] = field(repr=False)
    players: int
    rules: str
    games: int
    gamma: float

    def calibration(self, bins: int = 10) -> list[dict[str, float]]:
        """Foretold against what came, in `bins` equally full groups of decisions.

        Each a dict of `foretold` and `came` (means, relative points), `half`, half of the 95 %
        interval of `came` with games as units, and `decisions`.
        """
        edges = np.quantile(self.values, np.linspace(0, 1, bins + 1))
        group = np.searchsorted(edges[1:-1], self.values, side="right")
        found = []
        for one in range(bins):
            inside = group == one
            if not inside.any():  # many equal values
                continue
            found.append(
                {
                    "foretold": float(self.values[inside].mean()),
                    "came": float(self.returns[inside].mean()),
                    "half": _half(self.returns[inside], self.seats[inside, 0]),
                    "decisions": int(inside.sum()),
                }
            )
        return found

    @property
    def explained(self) -> float:
        """The share of the variance of `returns` that the values explain (1: all; 0: none)."""
        return float(1 - (self.returns - self.values).var() / self.returns.var())

    @staticmethod
    def liking(
        options: NDArray[np.void], by: str, edges: Sequence[int] | None = None
    ) -> list[dict[str, float]]:
        """How much the policy likes options, by one of their fields.

        options  `.cards` or `.rows`
        by       a field of CARD or ROW
        edges    group its values: [lowest, next group's lowest, ...]; None: each value by itself

        Each group is a dict of `by` (its lowest value), `liking` (how often such an option is
        chosen, as a multiple of chance: 1 is as often as at random) and `options` (how many).
        Raises ValueError for a field that is not there.
        """
        names = options.dtype.names or ()
        if by not in names:
            raise ValueError(f"{by!r} is no field; the fields are {', '.join(names)}")
        key = options[by].astype(np.int64)
        lowest = np.unique(key) if edges is None else np.asarray(edges, np.int64)
        group = np.searchsorted(lowest, key, side="right") - 1
        found = []
        for index, low in enumerate(lowest.tolist()):
            inside = group == index
            if inside.any():
                chosen, chance = (
                    options[name][inside].astype(float).sum() for name in ("probability", "chance")
                )
                liking, count = float(chosen / chance), int(inside.sum())
                found.append({by: low, "liking": liking, "options": count})
        return found


def self_play(
    policy: str = "policy:quick",
    players: int = 2,
    rules: str = "base",
    deck: DeckSpec = "balanced",
    games: int = 300,
    seed: int = 0,
) -> SelfPlay:
    """Let a policy (`policy:NAME`, a shipped name or a folder) play games with itself.

    Raises ValueError for arguments that are none, CheckpointError for a checkpoint that is none.
    """
    kind, _, name = policy.partition(":")
    if kind != "policy" or not name:
        raise ValueError(f"{policy!r} is no policy; write policy:quick or policy:FOLDER")
    if games < 1:
        raise ValueError(f"{games} games: play at least one")
    weights, config = load_checkpoint(name)
    options = config.get("training", {})
    scale = float(config.get("reward_scale", 0.1))
    gamma = float(options.get("gamma", 1.0))
    decks = stack_decks([deck])
    heads = load_deck(deck)
    rng = np.random.default_rng(seed)
    table = new_games(rng.integers(0, 2**53, games), decks, check_players(players), rules)
    who = np.zeros(10 * games, PENDING)
    parts: list[dict[str, Any]] = []
    while n := int(list_pending(table, who)):
        now = who[:n].copy()
        parts.append(_look(table, decks, now, weights, heads, rng))
        step(table, decks, who, n, parts[-1]["actions"], False)
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    seats = joined["seats"]
    returns = _returns(seats, joined["points"], relative_points_of(table), gamma)
    fresh = np.flatnonzero(joined["hand"].min(axis=1) != NO_CARD)
    return SelfPlay(
        values=joined["values"] / scale,
        returns=returns,
        seats=seats,
        fresh=fresh,
        hands=joined["hand"][fresh],
        cards=joined["cards"],
        rows=joined["rows"],
        deck=heads,
        players=players,
        rules=rules,
        games=games,
        gamma=gamma,
    )


def _look(
    table: NDArray[np.void],
    decks: NDArray[np.void],
    who: NDArray[np.void],
    weights: NDArray[np.float32],
    heads: NDArray[np.uint8],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """The decisions that wait now: what the policy thinks of them, and what it draws."""
    n = len(who)
    inputs = np.empty((n, INPUT), np.float32)
    encode_inputs(table, decks, who, n, inputs)
    legal = np.zeros((n, ACTIONS), np.int8)
    masks(table, decks, who, n, legal)
    logits, values = score(weights, inputs)
    likely = np.where(legal > 0, np.exp(logits - logits.max(axis=1, keepdims=True)), 0.0)
    likely /= likely.sum(axis=1, keepdims=True)
    drawn = (likely.cumsum(axis=1) <= rng.random((n, 1))).sum(axis=1)
    last = ACTIONS - 1 - (legal[:, ::-1] > 0).argmax(axis=1)  # where rounding drew past the end
    game, seat = who["game"].astype(np.int64), who["seat"].astype(np.int64)
    facts = np.zeros((n, HAND_SIZE, 2), np.int64), np.zeros((n, ROWS, 2), np.int64)
    _facts(table, decks, who, n, *facts)
    in_hand = table["phase"][game] == CARD_PHASE
    hand = np.where(in_hand[:, None], table["hands"][game, seat].astype(np.int64), NO_CARD)
    chance = 1 / legal.sum(axis=1)

    i, slot = np.nonzero(hand != NO_CARD)
    cards = np.zeros(len(i), CARD)
    cards["probability"], cards["chance"] = likely[i, slot], chance[i]
    cards["number"] = hand[i, slot]
    cards["heads"] = heads.sum(axis=1)[hand[i, slot] - 1]
    cards["fits"], cards["points"] = facts[0][i, slot].T
    cards["hand"] = legal[i].sum(axis=1)
    allowed = legal[:, FIRST_ROW : FIRST_ROW + ROWS] > 0
    i, row = np.nonzero(allowed)
    rows = np.zeros(len(i), ROW)
    rows["probability"], rows["chance"] = likely[i, FIRST_ROW + row], chance[i]
    rows["row"] = row
    rows["length"], rows["points"] = facts[1][i, row].T
    cost = facts[1][:, :, 1]
    fewer = allowed[:, None, :] & (cost[:, None, :] < cost[:, :, None])  # [N, row, other]
    rows["dearer"] = fewer.sum(axis=2)[i, row]
    return {
        "values": values.astype(np.float64),
        "actions": np.minimum(drawn, last).astype(np.int64),
        "seats": np.stack([game, seat], axis=1),
        "points": relative_points_of(table)[game, seat],
        "hand": hand,
        "cards": cards,
        "rows": rows,
    }


def _returns(seats: NDArray[np.int64], points: Floats, final: Floats, gamma: float) -> Floats:
    """Discounted change of relative points from each decision on, [N]; decisions are in order."""
    returns = np.empty(len(seats))
    # Of each seat: its return from its next decision on, and its points then.
    later: dict[tuple[int, int], tuple[float, float]] = {}
    for i in range(len(seats) - 1, -1, -1):
        game, seat = seats[i].tolist()
        rest, then = later.get((game, seat), (0.0, final[game, seat]))
        returns[i] = then - points[i] + gamma * rest
        later[game, seat] = returns[i], points[i]
    return returns


def _half(values: Floats, units: NDArray[np.int64]) -> float:
    """Half of the 95 % interval of a mean whose values hang together within units."""
    rest = np.bincount(units, values - values.mean())
    return float(1.96 * np.sqrt((rest**2).sum()) / len(values))


# --- which cards are good to hold ---------------------------------------------------------------


@dataclass(frozen=True)
class CardValues:
    """What holding each card is worth, in relative points, beside the average card.

    number  int64 [K], cards seen in fresh hands, the best first
    value   float64 [K], how much more the network foretells for a hand with it
    error   float64 [K], standard error of `value`
    came    float64 [K], how much more came (needs far more games to be sure)
    heads   list [K] of the cards' heads as letters
    """

    number: NDArray[np.int64]
    value: Floats
    error: Floats
    came: Floats
    heads: list[str]

    def table(self, count: int = 8) -> str:
        """The best and the worst cards as text."""
        size = len(self.number)
        shown = range(size) if size <= 2 * count else [*range(count), *range(size - count, size)]
        lines = ["card  heads    value  +-"]
        for place, i in enumerate(shown):
            if place and i != shown[place - 1] + 1:
                lines.append("...")
            half = 1.96 * self.error[i]
            lines.append(
                f"{self.number[i]:>4}  {self.heads[i]:<7} {self.value[i]:+.2f}  {half:.2f}"
            )
        return "\n".join(lines)

    def groups(self, count: int = 5) -> list[dict[str, float]]:
        """Equally large groups of cards by what was foretold, the best first: `foretold`, `came`.

        If what the network likes to hold is good to hold, both fall together.
        """
        return [
            {"foretold": float(self.value[part].mean()), "came": float(self.came[part].mean())}
            for part in np.array_split(np.arange(len(self.number)), count)
        ]


def card_values(play: SelfPlay) -> CardValues:
    """Which cards the network likes to hold: least squares of its value of fresh hands on the cards
    in them. Raises ValueError where too few hands were played to tell (some hundred are needed).
    """
    held = np.zeros((len(play.hands), NUMBERS))
    held[np.arange(len(held))[:, None], play.hands - 1] = 1
    seen = np.flatnonzero(held.sum(axis=0) >= 5)
    if len(held) < 3 * NUMBERS or not len(seen):
        raise ValueError(f"{len(held)} fresh hands are too few; play more games")
    held = held[:, seen]
    # All hands hold four cards, so what a card is worth is known up to a constant: their mean is 0.
    held -= held.mean(axis=0)
    inverse = np.linalg.pinv(held.T @ held, hermitian=True)

    def fit(targets: Floats) -> tuple[Floats, Floats]:
        targets = targets - targets.mean()
        worth = inverse @ (held.T @ targets)
        rest = targets - held @ worth
        spread = (rest**2).sum() / (len(held) - len(seen))
        return worth - worth.mean(), np.sqrt(spread * np.diag(inverse))

    value, error = fit(play.values[play.fresh])
    came, _ = fit(play.returns[play.fresh])
    order = np.argsort(-value, kind="stable")
    numbers = seen[order] + 1
    marks = [letters(play.deck[number - 1].tolist()) for number in numbers]
    return CardValues(numbers, value[order], error[order], came[order], marks)


# --- training curves ----------------------------------------------------------------------------


def learning_curve(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """How strong a policy was on its way: `{"decisions", "greedy_2p": win share, ..., "ci95":
    {"greedy_2p": [low, high], ...}}` in order; runs of old have no `ci95`.

    `folder` is a run's folder, or a checkpoint (a shipped name will do). Raises ValueError where no
    curve is kept.
    """
    state = Path(folder) / "state.npz"
    path = state if state.exists() else find_checkpoint(folder) / CURVE
    if not path.exists():
        raise ValueError(f"{path.parent} keeps no learning curve ({CURVE}) and is no run's folder")
    try:
        if path == state:
            arrays = read_arrays(path, most=1 << 24, only=("evaluations",))
            points = json.loads(str(arrays["evaluations"]))
        else:
            points = read_json(path)
    except (ValueError, KeyError, RecursionError) as error:
        raise ValueError(f"{path} holds no learning curve: {message(error)}") from None
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        raise ValueError(f"{path} holds no learning curve, which is a list of objects")
    return points


def keep_curve(run: str | os.PathLike[str], checkpoint: str | os.PathLike[str]) -> Path:
    """Write a run's learning curve beside a checkpoint, where `learning_curve` finds it."""
    text = json.dumps(learning_curve(run), indent=2) + "\n"
    path = find_checkpoint(checkpoint) / CURVE
    write_atomically(path, text.encode())
    return path


# --- figures ------------------------------------------------------------------------------------


def draw_curve(axes: Any, curve: list[dict[str, Any]], bot: str | None = None) -> None:
    """Win shares over the decisions learned from, against all bots or one, with 95 % intervals
    where they are known; dotted: parity."""
    lines = []
    for name in [name for name in (curve[0] if curve else {}) if name not in NO_SHARE]:
        whom, _, players = name.rpartition("_")
        if bot not in (None, whom):
            continue
        size = int(players.removesuffix("p"))
        label = f"{size} players" if bot else f"{whom}, {size} players"
        unknown = [np.nan, np.nan]
        bounds = [point.get("ci95", {}).get(name, unknown) for point in curve]
        decisions, shares = ([point[key] for point in curve] for key in ("decisions", name))
        lines.append(plot.Line(label, decisions, shares, bounds, 1 / size))
    axes.set(xlabel="decisions learned from", ylabel="win share against", ylim=(0, 1))
    plot.draw_lines(axes, lines)


def draw_curves(curve: list[dict[str, Any]]) -> Any:
    """A figure of win shares over the decisions learned from, a panel for each opponent."""
    names = [name for name in (curve[0] if curve else {}) if name not in NO_SHARE]
    bots = list(dict.fromkeys(name.rpartition("_")[0] for name in names)) or ["no opponent yet"]
    figure, panels = plot.panels(len(bots), width=3.5, height=3.5, sharey=True)
    for bot, axes in zip(bots, panels, strict=True):
        draw_curve(axes, curve, bot)
        axes.set(ylabel=None, title=f"against {bot} (dotted: parity)")
    panels[0].set_ylabel("win share, 95 % interval")
    return figure


def draw_calibration(axes: Any, groups: list[dict[str, float]]) -> None:
    """What came over what was foretold; on the dotted line both are the same."""
    foretold = [group["foretold"] for group in groups]
    came = [group["came"] for group in groups]
    ends = [min(foretold + came), max(foretold + came)]
    axes.plot(ends, ends, **plot.REFERENCE)
    axes.errorbar(foretold, came, [group["half"] for group in groups], fmt="o", capsize=3)
    axes.set(xlabel="relative points foretold", ylabel="relative points that came")
    axes.grid(alpha=0.3)


def draw_liking(axes: Any, groups: list[dict[str, float]], label: str | None = None) -> None:
    """How often options are chosen, as a multiple of chance, by the groups of `liking`."""
    by = next(iter(groups[0]))
    places = [str(int(group[by])) for group in groups]
    axes.bar(places, [group["liking"] for group in groups])
    axes.axhline(1, **plot.REFERENCE)
    axes.set(xlabel=label or by, ylabel="chosen, times chance")


def draw_entries(axes: Any, entries: Sequence[Any], parity: float | None = None) -> None:
    """Win shares of the arena's entries with their 95 % intervals."""
    names = [entry.spec for entry in entries]
    shares = np.array([entry.win_share for entry in entries])
    low, high = np.array([entry.ci95 for entry in entries]).T
    axes.errorbar(shares, names, xerr=[shares - low, high - shares], fmt="o", capsize=3)
    if parity is not None:
        axes.axvline(parity, **plot.REFERENCE)
    axes.invert_yaxis()
    axes.set(xlabel="win share, 95 % interval")
    axes.grid(alpha=0.3)
