"""Learn from search: a network imitates a search's values of each action.

    python training/distill.py --run-dir runs/warm --decisions 200000
    python training/distill.py --run-dir runs/round1 --teacher champion --init champion

The search itself (Monte Carlo, or `search` guided by a policy) plays games over the whole space
(table sizes, rule sets, fresh decks), now and then by the greedy or a random action, so that other
positions occur as well. Every decision is kept as its full game record (compact, and encoded anew
whenever the observation changes) with the value of each legal action. The network learns the
softmax of these values, and to predict the value of the best action. The data set is a function of
the seed and the options; it is written to the run folder in parts, so that a stopped run goes on
where it was.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

if not __package__:
    import start  # noqa: F401

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from tqdm import tqdm

from oxx_env import cards
from oxx_env.bots import search
from oxx_env.bots.monte_carlo import mc_values
from oxx_env.bots.search import PolicySearch
from oxx_env.game.engine import (
    GREEDY,
    in_parts,
    new_games,
    policy_actions,
    random_actions,
    rule_flags,
    step,
)
from oxx_env.game.rules import ACTIONS, CARD_PHASE, RULE_SETS
from oxx_env.lib.options import Range, check
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import checksum, load_checkpoint, save_checkpoint, write_atomically
from oxx_env.policy.network import OxxNetwork
from training.config import (
    Count,
    Names,
    NotNegative,
    Positive,
    Seed,
    TableSizes,
    check_games,
    check_width,
)
from training.decisions import (
    Decisions,
    Thinker,
    joined,
    probabilities,
    read_part,
    some,
    waiting,
    write_part,
)
from training.learning import Diverged, check_finite, gradient_step, minibatches
from training.report import facts, model_card
from training.selfplay import training_decks

GREEDY_SHARE, RANDOM_SHARE = 0.05, 0.05  # of the actions played, so that other positions occur
APART = 30  # decisions at most that a game is ahead of the others, so that all rounds occur


@dataclass(frozen=True, kw_only=True)
class Config:
    """Generate decisions of search, Monte Carlo or guided by a policy, and imitate them."""

    run_dir: Path = Path("runs/warm")
    """Folder of data and checkpoint; parts that are there already are used."""
    seed: Seed = 1
    """Of everything random."""
    decisions: Count = 640_000
    """Decisions to learn from."""
    part: Count = 20_000
    """Decisions in one file of the data set."""
    teacher: str = "mc"
    """Whose values are learned: mc, or the checkpoint that guides a `search`."""
    determinisations: Count = 60
    """Deals tried for each decision; of a `search`, for each action."""
    horizon: Count = 4
    """Rounds of a play-out of Monte Carlo."""
    players: TableSizes = (2, 3, 4, 5, 6, 7, 8, 9, 10)
    """Table sizes, equally often among the decisions."""
    rules: Names = RULE_SETS
    """Rule sets, equally often."""
    decks: Names = cards.DECK_NAMES
    """Deck models; each game has a fresh assignment of their card types to numbers."""
    random_decks: Annotated[int, Range(0)] = 300
    """Fresh decks in one part; 0: the decks as they are."""
    held_decisions: Count = 8000
    """Decisions to judge by, which are not learned from."""
    held_determinisations: Count = 600
    """Deals tried for each of them: enough to be nearly sure of the best action."""
    init: str | None = None
    """Start from this checkpoint."""
    foresight: bool = True
    """Give the network the features of each choice, too; else only the observation."""
    hidden: int = 64
    """Width of the network."""
    temperature: Positive = 0.8
    """Points by which an action must be worse to be 1/e as likely in the target."""
    epochs: Count = 4
    """Passes over the data."""
    minibatch: Count = 1024
    """Samples of one gradient step."""
    learning_rate: Positive = 2e-3
    """Of Adam at the start; falls to a twentieth, following a cosine."""
    reward_scale: Positive = 0.1
    """Value of one relative point, as in self-play."""
    value_coef: NotNegative = 0.5
    """Weight of the value loss."""

    def check(self) -> None:
        """Raise ValueError for options that do not fit; the message says what would."""
        check(self)
        check_games(self)
        check_width(self.hidden)
        if self.teacher != "mc":
            load_checkpoint(self.teacher)


def generate(config: Config, number: int) -> Decisions:
    """One part of the data set; the same for any number of cores."""
    start = time.monotonic()
    rng = np.random.default_rng([config.seed, 2, number])
    games, decks = _deal(config, rng)
    _spread(games, decks, rng)
    thinkers = _thinker(config), _thinker(config)
    kept: list[tuple[NDArray[Any], ...]] = []
    total = 0
    while total < config.part:
        who = waiting(games)
        values = np.empty((len(who), ACTIONS))

        def think(part: slice, who: Any = who, values: Any = values) -> None:
            mine = np.ascontiguousarray(who[part])
            thinkers[0 if part.start == 0 else 1](games, decks, mine, values[part])

        in_parts_by_game(think, who)
        kept.append((games[who["game"]], who["seat"], who["game"], values))
        total += len(who)
        chosen, draw = values.argmax(axis=1), rng.random(len(who))
        for share, choose in ((GREEDY_SHARE, _greedy), (RANDOM_SHARE, random_actions)):
            actions = np.zeros(len(who), np.int64)
            choose(games, decks, who, len(who), actions)
            chosen = np.where(draw < share, actions, chosen)
            draw -= share
            draw[draw < 0] = 2
        step(games, decks, who, len(who), chosen.astype(np.int64), True)
    return joined(kept, decks, config.part, start)


def _deal(config: Config, rng: np.random.Generator) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Games of each table size and rule set, equally often among the decisions, and their DECKS."""
    decks = training_decks(config, rng)
    kinds = [(p, rule_flags(name)) for p in config.players for name in config.rules]
    # A table of ten has five times the decisions of a table of two in the same number of steps.
    weights = np.array([1 / p for p, _ in kinds])
    count = 64 * len(kinds)
    players, rules = np.array(kinds)[rng.choice(len(kinds), count, p=weights / weights.sum())].T
    seeds = rng.integers(0, 2**53, count)
    return new_games(seeds, decks, players, rules, rng.integers(0, len(decks), count)), decks


def _spread(games: NDArray[np.void], decks: NDArray[np.void], rng: np.random.Generator) -> None:
    """Play games that began together on by `greedy`, each for a while, so that all rounds occur."""
    for wait in range(APART):
        who = waiting(games)
        actions = np.zeros(len(who), np.int64)
        _greedy(games, decks, who, len(who), actions)
        on = rng.integers(0, APART, len(games))[who["game"]] > wait
        moving = some(who, on)
        step(games, decks, moving, len(moving), np.ascontiguousarray(actions[on]), True)


def _thinker(config: Config) -> Thinker:
    """The search; one for each thread, since it has memory of its own."""
    if config.teacher != "mc":
        return PolicySearch(config.teacher, str(config.determinisations)).values

    def think(games: Any, decks: Any, who: Any, values: Any) -> None:
        mc_values(games, decks, who, len(who), config.determinisations, config.horizon, values)

    return think


def _greedy(games: Any, decks: Any, who: Any, n: int, actions: Any) -> None:
    policy_actions(games, decks, who, n, GREEDY, actions)


def in_parts_by_game(function: Any, who: NDArray[np.void]) -> None:
    """Split PENDING over two cores, never inside a game (its random stream moves on in order)."""
    middle = len(who) // 2
    while 0 < middle < len(who) and who["game"][middle] == who["game"][middle - 1]:
        middle += 1
    bounds = (slice(0, middle), slice(middle, len(who)))
    in_parts(lambda part: [function(bounds[i]) for i in range(part.start, part.stop)], 2)


def load_part(config: Config, number: int, kind: str = "part") -> Decisions:
    """A part from the run folder; made and written if it is not there."""
    path = config.run_dir / "data" / f"{kind}-{number:04d}.npz"
    names = ("seed", "part", "teacher", "determinisations", "horizon", "players", "rules", "decks")
    key = {name: getattr(config, name) for name in (*names, "random_decks")} | {"number": number}
    if config.teacher != "mc":
        key["policy"] = checksum(config.teacher)
        key["search"] = search.identity(config.teacher)
    if not path.exists():
        write_part(path, generate(config, number), key)
    return read_part(path, key)


def load_held(config: Config) -> Decisions:
    """The decisions to judge by, like a part, from a seed of their own."""
    held = replace(
        config,
        seed=config.seed + 1_000_000,
        part=config.held_decisions,
        determinisations=config.held_determinisations,
    )
    return load_part(held, 0, "held")


def targets(
    data: Decisions, temperature: float, reward_scale: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Inputs [N, INPUT], policy targets [N, ACTIONS], value targets [N]."""
    best = data.values.max(axis=1, keepdims=True)
    policy = probabilities((data.values - best) / temperature)
    value = (best[:, 0] - data.relative()) * np.float32(reward_scale)
    return data.inputs(), policy.astype(np.float32), value.astype(np.float32)


def new_network(config: Config) -> OxxNetwork:
    """A network whose first weights follow from the seed."""
    torch.manual_seed(config.seed)
    return OxxNetwork(config.hidden, config.foresight)


def imitate(
    net: OxxNetwork, config: Config, parts: list[Decisions], held: Decisions, progress: bool = True
) -> dict[str, float]:
    """Fit the network to the parts. Returns its figures on the decisions held out, see `judge`."""
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    rng = np.random.default_rng([config.seed, 3])
    learning = [targets(part, config.temperature, config.reward_scale) for part in parts]
    optimizer = torch.optim.Adam(net.parameters(), lr=config.learning_rate)
    per_part = [-(-len(e[0]) // config.minibatch) for e in learning]
    steps = config.epochs * sum(per_part)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, steps, config.learning_rate / 20
    )
    learned = 0
    with tqdm(total=steps, unit="step", desc="learning", disable=not progress) as bar:
        for _ in range(config.epochs):
            for inputs, policy, value in minibatches(learning, config.minibatch, rng):
                logits, values = net(inputs)
                logits = logits.masked_fill(policy == 0, -1e9)
                cross = -(policy * torch.log_softmax(logits, 1)).sum(1).mean()
                error = torch.nn.functional.mse_loss(values, value)
                learned += len(inputs)
                gradient_step(cross + config.value_coef * error, optimizer, 1.0, learned)
                schedule.step()
                bar.update()
    check_finite("the weights are", learned, net.weights())
    return judge(net, targets(held, config.temperature, config.reward_scale), held)


def judge(net: OxxNetwork, encoded: Any, data: Decisions) -> dict[str, float]:
    """Held-out cross entropy; regret against the search in points a decision, in all, by phase and
    by table size; error of the value, scaled."""
    obs, policy, value = encoded
    with torch.no_grad():
        logits, values = net(torch.from_numpy(obs))
    scores = np.where(np.isfinite(data.values), logits.numpy(), -np.inf)
    rows = np.arange(len(obs))
    regret = data.values.max(axis=1) - data.values[rows, scores.argmax(axis=1)]
    log = scores - np.log(np.exp(scores - scores.max(1, keepdims=True)).sum(1, keepdims=True))
    log -= scores.max(1, keepdims=True)
    cross = -(policy * np.where(policy > 0, log, 0)).sum(axis=1)
    card = data.games["phase"] == CARD_PHASE
    found = {
        "cross_entropy": float(cross.mean()),
        "regret": float(regret.mean()),
        "regret_card": float(regret[card].mean()),
        "regret_row": float(regret[~card].mean()),
        "value_rmse": float(np.sqrt(((values.numpy() - value) ** 2).mean())),
    }
    for players in np.unique(data.games["players"]):
        here = data.games["players"] == players
        found[f"regret_{players}p"] = float(regret[here].mean())
    return found


@program("distill.py", "stopped; the same command goes on")
def main(argv: list[str]) -> int:
    config = tyro.cli(Config, args=argv, description=__doc__)
    config.check()
    net = new_network(config)
    init = None
    if config.init is not None:
        weights, made = load_checkpoint(config.init)
        width = made["architecture"]["hidden"]
        if width != config.hidden:
            raise ValueError(
                f"{config.init} has layers of width {width}, not {config.hidden}:"
                f" add --hidden {width}"
            )
        net.load_weights(weights)
        init = checksum(config.init)
    held = load_held(config)
    count = -(-config.decisions // config.part)
    parts = [load_part(config, number) for number in tqdm(range(count), unit="part", desc="search")]
    start = time.monotonic()
    try:
        figures = imitate(net, config, parts, held)
    except Diverged as error:
        raise ValueError(
            f"{error}\nTry the same command with a smaller --learning-rate (it was"
            f" {config.learning_rate:g}): the data in {config.run_dir} is used again"
        ) from error
    seconds = time.monotonic() - start + sum(data.seconds for data in [held, *parts])
    by = "Monte Carlo search"
    if config.teacher != "mc":
        by = f"search guided by the policy with SHA-256 {checksum(config.teacher)}"
    command = shlex.join(["python", "training/distill.py", *argv])
    more = {"preset": "warm", "by": f"by imitating {by}", "init": init, "held_out": figures}
    more["reward_scale"] = config.reward_scale
    about = facts(config, config, config.decisions, seconds, command, **more)
    folder = config.run_dir / "checkpoint"
    save_checkpoint(folder, net.weights(), config.hidden, about, model_card(about, None))
    write_atomically(config.run_dir / "figures.json", json.dumps(figures).encode())
    print(json.dumps({"checkpoint": str(folder), **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
