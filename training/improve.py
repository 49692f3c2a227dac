"""Improve a policy by search: learn from the value of every action of a decision.

    python training/improve.py --init champion --run-dir runs/improve --workers 2

An iteration makes data, learns, and measures:

1. The policy plays with itself by its probabilities over all table sizes, rule sets, fresh decks
   and matches. Each decision is valued: every legal action on the same few deals of the hidden
   cards, played out to the end of the hand by the play-out network.
2. Its network maximises the expected value of its action less tau times its divergence from the
   policy that it started from. This is linear in the values, so that their noise averages out
   without bias, and common deals cancel most of it.
3. The gain of its choices on decisions held out, and games against the last iterate and a rival.
   The next iteration goes on from the new weights unless they are certainly weaker than the last.

The same command goes on with a stopped run. Ctrl-C stops it at once, a kill loses the parts of the
data being made and some seconds of learning; the weights are those of an uninterrupted run, for any
number of workers. A run folder holds

    config.json        the options
    data/              decisions in parts: held-0000.npz, 01-0000.npz ... of iteration 1
    learner.npz        the state of learning
    iterations/01 ...  the weights after each iteration, as checkpoints
    figures.json, curve.png   their gains
    checkpoint/        the best: those that the next iteration would go on from
"""

from __future__ import annotations

import json
import math
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

if not __package__:
    import start  # noqa: F401

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from oxx_env.arena.ratings import share_interval
from oxx_env.bots.search import PolicySearch
from oxx_env.game.engine import stack_decks
from oxx_env.game.rules import CARD_PHASE
from oxx_env.lib.files import read_arrays, read_json, remove_unfinished
from oxx_env.lib.options import NOT_EMPTY, Range
from oxx_env.lib.shell import program
from oxx_env.policy.checkpoint import (
    PLAY_OUT,
    checksum,
    load_checkpoint,
    load_play_out,
    load_rollout_net,
    save_checkpoint,
    save_rollout_net,
    write_atomically,
)
from oxx_env.policy.forward import hidden_of, score
from oxx_env.policy.network import OxxNetwork
from oxx_env.show import plot
from training.config import (
    PRESETS,
    Count,
    Names,
    NotNegative,
    Positive,
    Seed,
    Space,
    TableSizes,
    check_width,
    differences,
)
from training.decisions import Decisions, probabilities, read_part, self_play, write_part
from training.learning import (
    Diverged,
    Stopped,
    check_like,
    gradient_step,
    load_moments,
    moments,
    on_signal,
    write_arrays,
)
from training.regret import half_width
from training.report import facts, model_card, plain
from training.selfplay import Opponent, duel

CONFIG, FIGURES, STATE = "config.json", "figures.json", "learner.npz"
SAVE_EVERY = 20  # parts learned from between two saved states
CHUNK = 200  # games of the gate that are played in one go
FULL = PRESETS["full"]
SPACE = tuple(field.name for field in fields(Space))
# What may differ when a run is gone on with: it changes no figure, or only adds iterations.
FREE = ("run_dir", "workers", "iterations")


@dataclass(frozen=True, kw_only=True)
class Config(Space):
    """Improve a policy by the values that search finds for each of its actions."""

    run_dir: Path = Path("runs/improve")
    """Folder of the run; the same command goes on with it."""
    seed: Seed = 1
    """Of everything random."""
    init: str = "champion"
    """Checkpoint to start from (folder or shipped name)."""
    rival: str = "champion"
    """Checkpoint that each iteration is measured against, beside the last iterate."""
    iterations: Count = 4
    """Iterations in all; more may be asked for later."""
    decisions: Count = 250_000
    """Decisions valued in each iteration."""
    part: Annotated[int, Range(1, 1_000_000)] = 10_000
    """Decisions in one file."""
    deals: Annotated[int, Range(1, 10_000)] = 6
    """Deals on which all actions of a decision are tried."""
    player: str | None = None
    """Network that plays out (folder or shipped name) [the one that init names]."""
    window: Count = 1
    """Iterations whose data is learned from; learning starts from the weights before the first."""
    prior: Literal["start", "init"] = "start"
    """Stay near the policy that learning starts from, or always near --init."""

    players: TableSizes = FULL.players
    player_shares: tuple[float, ...] = ()
    """Share of the games for each table size; empty: as in the preset `full` of train.py."""
    rules: Names = FULL.rules
    rule_shares: tuple[float, ...] = ()
    """Share of the games for each rule set; empty: as in the preset `full` of train.py."""
    decks: Names = FULL.decks
    random_decks: Annotated[int, Range(0)] = FULL.random_decks
    games_per_match: Annotated[tuple[int, ...], Range(1), NOT_EMPTY] = FULL.games_per_match

    held_decisions: Annotated[int, Range(1, 1_000_000)] = 20_000
    """Decisions that are not learned from, to judge by."""
    hidden: int | None = None
    """Width of the network [as init]; one of another width imitates it first."""
    imitation_passes: Count = 3
    """Passes over the data of such an imitation."""
    imitation_learning_rate: Positive = 2e-3
    """Of Adam at its start; falls to a twentieth, following a cosine."""
    tau: NotNegative = 0.3
    """Points that a divergence of one nat from the prior costs."""
    passes: Count = 3
    """Passes over the data."""
    minibatch: Count = 1024
    """Samples of one gradient step."""
    learning_rate: Positive = 1e-3
    """Of Adam at the start of each iteration; falls to a twentieth, following a cosine."""
    max_grad_norm: Positive = 1.0
    """Gradients are scaled down to this norm."""
    reward_scale: Positive = 0.1
    """Value of one relative point, as in self-play."""
    value_coef: NotNegative = 0.5
    """Weight of the value loss."""

    gate_players: TableSizes = (2, 4, 10)
    """Table sizes at which each iteration is measured in games."""
    gate_games: Count = 2000
    """Games against each opponent at each of them, `base`, deck `balanced`."""
    workers: Annotated[int, Range(1, 1024)] = 2
    """Threads; changes no figure."""

    def check(self) -> None:
        """Raise ValueError for options that do not fit; the message says what would."""
        super().check()
        if self.hidden is not None:
            check_width(self.hidden)
        load_checkpoint(self.init)
        load_checkpoint(self.rival)

    @property
    def space(self) -> Space:
        """The games that are played; shares that were not given are those of the preset `full`."""
        own = {name: getattr(self, name) for name in SPACE}
        for name, shares in (("players", "player_shares"), ("rules", "rule_shares")):
            usual = dict(zip(getattr(FULL, name), getattr(FULL, shares), strict=True))
            if not own[shares] and usual.keys() >= set(own[name]):
                own[shares] = tuple(usual[one] for one in own[name])
        return Space(**own)


# --- the loss -----------------------------------------------------------------------------------


class Loss(NamedTuple):
    """Scalars; `gain`: the value of the policy's actions less that of the prior's, in points."""

    total: Tensor
    gain: Tensor
    kl: Tensor


def improvement_loss(
    logits: Tensor, prior: Tensor, values: Tensor, legal: Tensor, tau: float
) -> Loss:
    """-(E_policy[values] - E_prior[values]) + tau KL(policy || prior), means over the decisions.

    logits, prior  [N, A] of the policy and of the prior; those of illegal actions mean nothing
    values         [N, A] points; those of illegal actions mean nothing
    legal          bool [N, A]
    """
    log, prior_log = normalised(logits, legal), normalised(prior, legal)
    policy = log.exp()
    values = values.masked_fill(~legal, 0.0)
    gain = ((policy - prior_log.exp()) * values).sum(1).mean()
    kl = (policy * (log - prior_log)).sum(1).mean()
    return Loss(tau * kl - gain, gain, kl)


def imitation_loss(logits: Tensor, prior: Tensor, legal: Tensor) -> Tensor:
    """KL(prior || policy), mean over the decisions; arguments as in `improvement_loss`."""
    log, prior_log = normalised(logits, legal), normalised(prior, legal)
    return (prior_log.exp() * (prior_log - log)).sum(1).mean()


def normalised(logits: Tensor, legal: Tensor) -> Tensor:
    """Logarithms of the probabilities of the legal actions; of the others they are very small."""
    return torch.log_softmax(logits.masked_fill(~legal, -1e9), 1)


# --- learning -----------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """A part made ready for the learner: inputs [N, INPUT]; values, legal, logits of the prior
    [N, ACTIONS]; the value head's target [N], scaled."""

    inputs: Tensor
    values: Tensor
    legal: Tensor
    prior: Tensor
    target: Tensor


def prepare(data: Decisions, prior: NDArray[np.float32], reward_scale: float) -> Prepared:
    """Encode a part. The value head learns the points of the prior's actions from now to the end of
    the hand."""
    inputs, legal = data.inputs(), data.legal
    logits, _ = score(prior, inputs)
    shares = probabilities(np.where(legal, logits, -np.inf))
    values = np.where(legal, data.values, 0)
    target = ((shares * values).sum(axis=1) - data.relative()) * np.float32(reward_scale)
    arrays = (inputs, values, legal, logits, target.astype(np.float32))
    return Prepared(*(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays))


@dataclass(frozen=True)
class Phase:
    """Passes over the data by one loss."""

    name: Literal["imitate", "improve"]
    passes: int
    learning_rate: float


class Learner:
    """Learns from the parts of one iteration; its result is a function of the weights it starts
    from, the parts and the seed.

    load    number of a part -> its decisions
    parts   how many there are
    start   weights to start from
    prior   weights to stay near
    """

    def __init__(
        self,
        config: Config,
        iteration: int,
        load: Callable[[int], Decisions],
        parts: int,
        start: NDArray[np.float32],
        prior: NDArray[np.float32],
    ) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(config.seed)
        self.config, self.iteration, self.load, self.parts = config, iteration, load, parts
        self.start, self.prior = start, prior
        width = hidden_of(len(start))
        self.net = OxxNetwork(config.hidden or width)
        improve = Phase("improve", config.passes, config.learning_rate)
        self.phases = [improve]
        if self.net.hidden == width:
            self.net.load_weights(start)
        else:
            imitate = ("imitate", config.imitation_passes, config.imitation_learning_rate)
            self.phases.insert(0, Phase(*imitate))  # type: ignore[arg-type]
        self.seconds = 0.0
        self.begin(0)

    def begin(self, phase: int) -> None:
        """Start a phase with a new optimiser."""
        self.phase, self.done = phase, 0  # parts learned from in it
        self.sums = np.zeros(4)  # of gain, divergence, error of the value; minibatches, last pass
        self.optimizer = torch.optim.Adam(self.net.parameters())

    @property
    def total(self) -> int:
        """Parts to learn from in all phases."""
        return sum(phase.passes for phase in self.phases) * self.parts

    @property
    def position(self) -> int:
        """How many of them are done."""
        return sum(p.passes for p in self.phases[: self.phase]) * self.parts + self.done

    def order(self) -> Iterator[int]:
        """The parts still to be learned from in this phase, by number."""
        for turn in range(self.done // self.parts, self.phases[self.phase].passes):
            rng = self._rng(turn)
            order = rng.permutation(self.parts)
            yield from (int(k) for k in order[max(0, self.done - turn * self.parts) :])

    def _rng(self, *more: int) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, 9, self.iteration, self.phase, *more])

    def run(self, after: Callable[[], None]) -> None:
        """Learn from all that is left; `after` is called after each part and may raise."""
        with ThreadPoolExecutor(1) as pool:  # encodes the next part meanwhile
            while self.phase < len(self.phases):
                coming: list[Any] = []
                for number in self.order():
                    coming.append(pool.submit(self._prepared, number))
                    if len(coming) == 2:
                        self._learn(coming.pop(0).result(), after)
                for future in coming:
                    self._learn(future.result(), after)
                if self.phase + 1 == len(self.phases):
                    return
                self.begin(self.phase + 1)

    def _prepared(self, number: int) -> Prepared:
        # An imitator learns from the policy that it starts from.
        towards = self.start if self.phases[self.phase].name == "imitate" else self.prior
        return prepare(self.load(number), towards, self.config.reward_scale)

    def _learn(self, part: Prepared, after: Callable[[], None]) -> None:
        begun = time.monotonic()
        config, phase = self.config, self.phases[self.phase]
        if self.done % self.parts == 0:
            self.sums[:] = 0
        rng = self._rng(self.done // self.parts, self.done)
        size = min(config.minibatch, len(part.inputs))
        batches = torch.from_numpy(rng.permutation(len(part.inputs))).split(size)
        for index, batch in enumerate(batches):
            share = (self.done + index / len(batches)) / (phase.passes * self.parts)
            rate = phase.learning_rate * (0.05 + 0.95 * (1 + math.cos(math.pi * share)) / 2)
            self.optimizer.param_groups[0]["lr"] = rate
            inputs, values, legal, prior, target = (tensor[batch] for tensor in part)
            logits, value = self.net(inputs)
            found = improvement_loss(logits, prior, values, legal, config.tau)
            policy = found.total
            if phase.name == "imitate":
                policy = imitation_loss(logits, prior, legal)
            error = torch.nn.functional.mse_loss(value, target)
            learned = self.position * config.part + index * size
            loss = policy + config.value_coef * error
            gradient_step(loss, self.optimizer, config.max_grad_norm, learned)
            terms = found.gain, found.kl, error
            self.sums += [*(float(term.detach()) for term in terms), 1]
        self.done += 1
        self.seconds += time.monotonic() - begun
        after()

    def figures(self) -> dict[str, float]:
        """Of the last pass, while it learned: points gained on its own data, divergence from the
        prior in nats, squared error of the value."""
        gain, kl, error = self.sums[:3] / self.sums[3]
        return {"learned_gain": gain, "kl": kl, "value_error": error}

    def state(self) -> dict[str, NDArray[Any]]:
        """All that the rest of the learning depends on, besides the parts."""
        arrays = {
            "weights": self.net.weights(),
            "at": np.array([self.iteration, self.phase, self.done]),
            "sums": self.sums,
            "seconds": np.array(self.seconds),
            "start": self.start,
            "prior": self.prior,
        }
        return arrays | moments(self.optimizer)

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from a `state` of this iteration. Raises ValueError, KeyError for anything else."""
        own = self.state()
        for name in ("weights", "at", "sums", "seconds", "start", "prior"):
            check_like(name, state[name], own[name])
        for name in ("start", "prior"):
            if not np.array_equal(state[name], own[name]):
                raise ValueError(f"it started from other weights ({name})")
        _, phase, done = (int(n) for n in state["at"])
        if not (
            0 <= phase < len(self.phases) and 0 <= done <= self.phases[phase].passes * self.parts
        ):
            raise ValueError(f"no such place: phase {phase}, part {done}")
        self.begin(phase)
        self.net.load_weights(state["weights"])
        self.done, self.seconds, self.sums = done, float(state["seconds"]), state["sums"].copy()
        load_moments(self.optimizer, state)


# --- measuring ----------------------------------------------------------------------------------


def recovered(
    weights: NDArray[np.float32], before: NDArray[np.float32], held: Iterable[Decisions]
) -> dict[str, list[float]]:
    """The value of the best actions by `weights` less that of those by `before` on decisions held
    out, in points a decision: mean and half of the 95 % interval; in all, by phase, by table size.
    """
    gains, cards, players, origins = [], [], [], []
    for number, data in enumerate(held):
        inputs, rows = data.inputs(), np.arange(len(data.seats))
        new, old = (
            np.where(data.legal, score(w, inputs)[0], -np.inf).argmax(axis=1)
            for w in (weights, before)
        )
        gains.append((data.values[rows, new] - data.values[rows, old]).astype(np.float64))
        cards.append(data.games["phase"] == CARD_PHASE)
        players.append(data.games["players"])
        origins.append(data.origin + (number << 20))
    gain, card, size, origin = (np.concatenate(a) for a in (gains, cards, players, origins))
    groups = {"all": np.ones(len(gain), bool), "cards": card, "rows": ~card}
    groups |= {f"{p}p": size == p for p in np.unique(size)}
    return {
        name: [float(gain[which].mean()), half_width(gain[which], origin[which])]
        for name, which in groups.items()
        if which.any()
    }


def jobs_of_gate(config: Config, opponents: Iterable[str]) -> list[tuple[str, int, int, int]]:
    """Opponent, table size, number and games of each chunk of the gate."""
    jobs = []
    for name in opponents:
        for players in config.gate_players:
            chunks = -(-config.gate_games // CHUNK)
            games = -(-config.gate_games // chunks)
            jobs += [(name, players, chunk, games) for chunk in range(chunks)]
    return jobs


# --- a run --------------------------------------------------------------------------------------


class Run:
    """A run folder: its options, the figures of its iterations, and the next ones.

    Raises ValueError for a folder begun with other options or weights, OSError.
    """

    def __init__(self, config: Config, command: str) -> None:
        config.check()
        self.config, self.command, self.folder = config, command, config.run_dir
        self.stop = threading.Event()
        self.rows: list[dict[str, Any]] = []
        self.init = load_checkpoint(config.init)[0]
        self.rival = load_checkpoint(config.rival)[0]
        self.searches = [self._search() for _ in range(config.workers)]
        self.play_out = load_player(config)[1]["sha256"]
        self.sha256 = {name: checksum(getattr(config, name)) for name in ("init", "rival")}
        kept = {name: value for name, value in plain(config).items() if name not in FREE}
        self.options = kept | {"sha256": self.sha256}
        if (self.folder / CONFIG).exists():
            self._read()
            remove_unfinished(self.folder)
            return
        if self.folder.exists() and any(self.folder.iterdir()):
            raise ValueError(f"{self.folder} is not empty, and no run: name another --run-dir")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write(CONFIG, self.options)

    def _search(self) -> PolicySearch:
        player = self.config.player
        options = {} if player is None else {"player": player}
        return PolicySearch(self.config.init, str(self.config.deals), options)

    def _write(self, name: str, content: Any) -> None:
        write_atomically(self.folder / name, (json.dumps(content, indent=2) + "\n").encode())

    def _read(self) -> None:
        then = self._read_json(CONFIG, dict)
        changed = [f"{n} {values}" for n, values in differences(then, self.options).items()]
        if changed:
            raise ValueError(
                f"{self.folder} was begun with {'; '.join(changed)}: go on by the same command, or"
                " name another --run-dir"
            )
        if not (self.folder / FIGURES).exists():
            return
        self.rows = self._read_json(FIGURES, list)
        for number, row in enumerate(self.rows, 1):
            try:
                same = row["sha256"] == checksum(self.place(number))
                right = row["iteration"] == number and 0 <= int(row["kept"]) <= number
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{self.folder / FIGURES}: {error!r}") from error
            if not (same and right):
                raise ValueError(
                    f"{self.place(number)} holds other weights than {FIGURES} says: put them back,"
                    " or name another --run-dir"
                )

    def _read_json(self, name: str, kind: type) -> Any:
        try:
            content = read_json(self.folder / name, 1 << 24)
        except ValueError as error:
            raise ValueError(f"{self.folder / name} is no JSON file: {error}") from error
        if not isinstance(content, kind):
            raise ValueError(f"{self.folder / name} is none of this program's files")
        return content

    # Iterations count from 1; 0 is what the run starts from.

    def place(self, iteration: int) -> Path:
        """The checkpoint of an iteration."""
        return self.folder / "iterations" / f"{iteration:02d}"

    def kept(self, iteration: int) -> int:
        """The iteration whose weights are the best after so many."""
        return int(self.rows[iteration - 1]["kept"]) if iteration > 0 else 0

    def weights(self, iteration: int) -> NDArray[np.float32]:
        """The best weights after so many iterations."""
        kept = self.kept(iteration)
        return load_checkpoint(self.place(kept))[0] if kept else self.init

    # (a) data

    @property
    def parts(self) -> int:
        """Parts of an iteration."""
        return -(-self.config.decisions // self.config.part)

    def key(self, iteration: int, number: int, size: int) -> dict[str, Any]:
        """All that a part depends on; iteration 0 is the held-out set."""
        kept = self.kept(iteration - 1)
        return {
            "policy": checksum(self.place(kept)) if kept else self.sha256["init"],
            "play_out": self.play_out,
            "seed": self.config.seed,
            "iteration": iteration,
            "number": number,
            "decisions": size,
            "deals": self.config.deals,
            **{name: getattr(self.config.space, name) for name in SPACE},
        }

    def part(self, iteration: int, number: int) -> tuple[Path, dict[str, Any]]:
        """File and key of a part."""
        name = f"{iteration:02d}" if iteration else "held"
        left = (self.config.decisions if iteration else self.config.held_decisions) - (
            number * self.config.part
        )
        key = self.key(iteration, number, min(self.config.part, left))
        return self.folder / "data" / f"{name}-{number:04d}.npz", key

    def load(self, iteration: int, number: int) -> Decisions:
        return read_part(*self.part(iteration, number))

    def make_data(self, iteration: int, parts: int) -> None:
        """Make the parts of an iteration that are not there, on `workers` threads at once (compiled
        code runs beside each other). Raises Stopped."""
        weights = self.weights(iteration - 1)
        files = [self.part(iteration, number) for number in range(parts)]
        missing = [k for k in range(parts) if not files[k][0].exists()]
        label = f"iteration {iteration}: search" if iteration else "held out: search"
        bar = tqdm(total=parts, initial=parts - len(missing), unit="part", desc=label)
        free = list(self.searches)

        def make(number: int) -> None:
            path, key = files[number]
            search = free.pop()
            try:
                rng = np.random.default_rng([self.config.seed, 8, iteration, number])
                space, size = self.config.space, key["decisions"]
                stop = self.stop.is_set
                data = self_play(space, weights, search.even_values, size, rng, stop)
            finally:
                free.append(search)
            write_part(path, data, key)
            bar.update()

        with bar:
            self._in_threads(make, missing)

    def _in_threads(self, function: Callable[[Any], Any], jobs: list[Any]) -> list[Any]:
        """Call a function with each job on `workers` threads; results in order. Raises Stopped, and
        the function's errors."""

        def one(job: Any) -> Any:
            if self.stop.is_set():
                raise Stopped
            return function(job)

        pool = ThreadPoolExecutor(self.config.workers)
        try:
            return list(pool.map(one, jobs))
        finally:
            pool.shutdown(cancel_futures=True)

    # (b) learning

    def learn(self, iteration: int) -> Learner:
        """Learn from the data of the window. Raises Stopped (the state is saved)."""
        config = self.config
        first = max(1, iteration - config.window + 1)
        start = self.weights(first - 1)
        prior = start if config.prior == "start" else self.init
        parts = self.parts

        def load(number: int) -> Decisions:
            return self.load(first + number // parts, number % parts)

        count = parts * (iteration - first + 1)
        learner = Learner(config, iteration, load, count, start, prior)
        path = self.folder / STATE
        if path.exists():
            try:
                state = read_arrays(path)
                if int(state["at"][0]) == iteration:
                    learner.load_state(state)
            except Exception as error:  # readers of spoiled files raise errors of many types
                what = f"{type(error).__name__}: {error}"[:500]
                raise ValueError(f"{path} is no state of this run: {what}; remove it") from error
        label = f"iteration {iteration}: learning"
        with tqdm(total=learner.total, initial=learner.position, unit="part", desc=label) as bar:

            def after() -> None:
                bar.update()
                at_end = learner.position == learner.total
                if learner.done % SAVE_EVERY == 0 or at_end or self.stop.is_set():
                    write_arrays(path, learner.state())
                if self.stop.is_set():
                    raise Stopped

            learner.run(after)
        return learner

    # (c) the gate

    def gate(self, iteration: int, weights: NDArray[np.float32]) -> dict[str, Any]:
        """Games against the last iterate and the rival: win share and 95 % interval by table size.
        Raises Stopped."""
        config = self.config
        opponents = {"last": self.weights(iteration - 1), "rival": self.rival}
        if np.array_equal(opponents["last"], self.rival):
            del opponents["rival"]
        decks = stack_decks(["balanced"])
        jobs = jobs_of_gate(config, opponents)
        with tqdm(total=len(jobs), unit="chunk", desc=f"iteration {iteration}: games") as bar:

            def play(job: tuple[str, int, int, int]) -> NDArray[np.float32]:
                name, players, chunk, games = job
                seed = [config.seed, 10, iteration, players, chunk]
                deals = int(np.random.default_rng(seed).integers(2**32))
                opponent = Opponent(weights=opponents[name])
                found = duel(weights, opponent, decks, players, "base", games, (deals, 2))
                bar.update()
                return found.shares

            shares = self._in_threads(play, jobs)
        table: dict[str, Any] = {}
        for name in opponents:
            for players in config.gate_players:
                mine = [s for s, j in zip(shares, jobs, strict=True) if j[:2] == (name, players)]
                blocks = np.concatenate(mine).mean(axis=1)
                low, high = share_interval(blocks, players)
                share = float(blocks.mean())
                table[f"{name}_{players}p"] = {"win_share": share, "ci95": [low, high]}
        return {"games": table, "weaker": weaker(table)}

    # all together

    def go(self) -> None:
        """Run all iterations that are not done. Raises Stopped."""
        config = self.config
        held = -(-config.held_decisions // config.part)
        self.make_data(0, held)
        while len(self.rows) < config.iterations:
            iteration = len(self.rows) + 1
            self.make_data(iteration, self.parts)
            learner = self.learn(iteration)
            weights = learner.net.weights()
            kept = (self.load(0, number) for number in range(held))
            row = {
                "iteration": iteration,
                "decisions": iteration * config.decisions,
                **learner.figures(),
                "recovered": recovered(weights, self.init, kept),
                **self.gate(iteration, weights),
            }
            row["kept"] = self.kept(iteration - 1) if row["weaker"] else iteration
            seconds = learner.seconds + sum(
                self.load(iteration, number).seconds for number in range(self.parts)
            )
            row["seconds"] = round(seconds + (self.rows[-1]["seconds"] if self.rows else 0), 1)
            self._save(row, weights)
            print(summary(row), file=sys.stderr, flush=True)

    def _save(self, row: dict[str, Any], weights: NDArray[np.float32]) -> None:
        """Keep an iteration: its checkpoint, its row, and the best so far."""
        config, iteration = self.config, row["iteration"]
        by = f"by the values of all actions ({config.deals} deals a decision, tau {config.tau:g})"
        more = {"preset": "improve", "by": by, "init": self.sha256["init"], "figures": row}
        more["reward_scale"] = config.reward_scale
        options = replace(config, hidden=hidden_of(len(weights)))
        decisions, seconds = row["decisions"], row["seconds"]  # of one thread
        about = facts(options, config, decisions, seconds, self.command, **more)
        self._keep(self.place(iteration), weights, about)
        row["sha256"] = checksum(self.place(iteration))
        self.rows.append(row)
        self._write(FIGURES, self.rows)
        self.finish()

    def _keep(self, folder: Path, weights: NDArray[np.float32], about: dict[str, Any]) -> None:
        """Write a checkpoint that names its play-out network, or holds it."""
        name, player = PLAY_OUT, load_player(self.config)
        if self.play_out != checksum(PLAY_OUT):
            name = "play-out"
            save_rollout_net(folder / name, *player, "# Network for play-outs\n")
        about = {**about, "play_out": {"checkpoint": name, "sha256": self.play_out}}
        save_checkpoint(folder, weights, hidden_of(len(weights)), about, model_card(about, None))

    def finish(self) -> None:
        """The best weights, and the curves."""
        best = self.kept(len(self.rows))
        if best:
            self._keep(self.folder / "checkpoint", *load_checkpoint(self.place(best)))
        draw(self.rows, self.folder / "curve.png")


def load_player(config: Config) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Weights and facts of the network that plays out. Raises CheckpointError."""
    return load_play_out(config.init) if config.player is None else load_rollout_net(config.player)


def weaker(table: dict[str, Any]) -> bool:
    """Is it certainly weaker than the last iterate at any table of the gate?"""
    return any(
        entry["ci95"][1] < 1 / int(name.split("_")[1].removesuffix("p"))
        for name, entry in table.items()
        if name.startswith("last_")
    )


def summary(row: dict[str, Any]) -> str:
    """One iteration in a few lines."""
    gain, half = row["recovered"]["all"]
    lines = [
        f"iteration {row['iteration']}: {row['decisions']:,} decisions, KL {row['kl']:.3f};"
        f" held-out regret recovered {gain:+.4f} ± {half:.4f} points a decision"
        f" ({row['learned_gain']:+.4f} on its own data)"
    ]
    for name, entry in row["games"].items():
        low, high = entry["ci95"]
        lines.append(f"  against {name}: {entry['win_share']:.4f} ({low:.4f} to {high:.4f})")
    if row["weaker"]:
        lines.append("  weaker than the last: the next iteration goes on from that again")
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Curves over decisions: points recovered on the decisions held out; win share against the
    rival as a multiple of parity."""
    figure, (left, right) = plot.panels(2)
    xs = [row["decisions"] for row in rows]
    lines = []
    for name in ("all", "cards", "rows"):
        points = [row["recovered"].get(name, [math.nan, 0]) for row in rows]
        bounds = [(mean - half, mean + half) for mean, half in points]
        lines.append(plot.Line(name, xs, [mean for mean, _ in points], bounds))
    plot.draw_lines(left, lines)
    left.set_title("held-out regret recovered, points a decision")
    lines = []
    for key in rows[0]["games"]:
        if key.startswith("last_"):
            size = key.removeprefix("last_")
            players = int(size.removesuffix("p"))
            games = [row["games"].get(f"rival_{size}") or row["games"][key] for row in rows]
            ys = [game["win_share"] * players for game in games]
            bounds = [(game["ci95"][0] * players, game["ci95"][1] * players) for game in games]
            lines.append(plot.Line(f"{players} players", xs, ys, bounds))
    plot.draw_lines(right, lines)
    right.axhline(1, **plot.REFERENCE)
    right.set_title("win share against the rival, times parity")
    for axes in (left, right):
        axes.set_xlabel("decisions valued")
    plot.save(figure, path)


@program("improve.py", "stopped; the same command goes on")
def main(argv: list[str]) -> int:
    config = tyro.cli(Config, args=argv, description=__doc__)
    run = Run(config, shlex.join(["python", "training/improve.py", *argv]))
    try:
        with on_signal(run.stop.set):
            run.go()
    except Diverged as error:
        raise ValueError(
            f"{error}\nTry a smaller --learning-rate (it was {config.learning_rate:g}) in another"
            f" --run-dir; the iterations so far are in {run.folder / 'iterations'}"
        ) from error
    best = run.kept(len(run.rows))
    where = str(run.folder / "checkpoint") if best else None
    print(json.dumps({"checkpoint": where, "iteration": best, "figures": run.rows[-1]}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
