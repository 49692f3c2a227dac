"""Train an agent by self-play: `python training/train.py [--preset quick] [--run-dir DIR]`.

Read it top to bottom: options, the learner, the loop, the report. A run folder holds

    config.json     the options
    pool/           opponents: past snapshots, and manifest.json with results against each
    state.npz       everything needed to go on after a stop (`--resume DIR`)
    tensorboard/    curves: tensorboard --logdir DIR
    checkpoint/     the policy: weights.safetensors, config.json, README.md
    evaluation.json, curve.png   how strong it became

The state is written every `eval_every` decisions, whole or not at all: Ctrl-C loses nothing, a kill
at most the decisions since then.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

if not __package__:
    import start  # noqa: F401

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from tqdm import tqdm

from oxx_env.game.rules import OVER
from oxx_env.game.validation import check_games
from oxx_env.lib.files import read_arrays, read_json, remove_unfinished
from oxx_env.lib.options import check
from oxx_env.lib.shell import oxx, place, program, script
from oxx_env.policy.checkpoint import checksum, load_checkpoint, save_checkpoint, write_atomically
from oxx_env.policy.forward import hidden_of, weight_count
from oxx_env.policy.insight import draw_curves
from oxx_env.show import plot
from training import evaluate
from training.config import PRESETS, Config, Count, arguments, differences, tuples
from training.learning import (
    Diverged,
    Stopped,
    check_finite,
    check_like,
    load_moments,
    moments,
    on_signal,
    write_arrays,
)
from training.pool import BOTS
from training.ppo import OxxPolicy, SelfPlayPPO, SpacesEnv
from training.report import facts, model_card, plain, table, table_options
from training.selfplay import Collector, Opponent, duel

RUNS = Path("runs")
CONFIG, STATE = "config.json", "state.npz"
EXIT_STOPPED = 130
# Options that can make the learner's steps too long.
STEPS = (
    *("learning_rate", "final_learning_rate", "max_grad_norm", "reward_scale"),
    *("clip_range", "ent_coef", "vf_coef", "kl_coef"),
)
FIRST_LOOK = 8000  # decisions before the second point of the learning curve; the first is at 0


# --- options ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Options:
    """Train an agent by self-play, evaluate it, and write a checkpoint folder."""

    run_dir: Path | None = None
    """Folder of the run, new or empty [runs/PRESET, with a number if that is taken]."""
    resume: Path | None = None
    """Go on with the run in this folder, with its options: none but --workers beside this one."""
    init: str | None = None
    """Start from this checkpoint instead of from nothing (folder or shipped name)."""
    workers: Count = 2
    """Processes for the final evaluation; changes no figure."""
    config: Annotated[Config, tyro.conf.arg(name="")]
    """What to train and how; the preset gives the values that are not named."""


def parse(argv: list[str]) -> Options:
    """Options from the command line; `--preset` chooses what the others start from."""
    preset = "quick"
    for before, argument in zip(["", *argv], argv, strict=False):
        if before == "--preset":
            preset = argument
        elif argument.startswith("--preset="):
            preset = argument.partition("=")[2]
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}: choose one of {', '.join(PRESETS)}")
    return tyro.cli(
        Options,
        args=argv,
        default=Options(config=PRESETS[preset]),
        description=__doc__,
        config=(tyro.conf.OmitArgPrefixes,),
    )


def new_run_dir(options: Options) -> Path:
    """An empty folder for a new run."""
    if options.run_dir is not None:
        if options.run_dir.exists() and any(options.run_dir.iterdir()):
            raise ValueError(
                f"{options.run_dir} is not empty: name a new folder, or go on with it by\n"
                f"  {resume_command(options.run_dir)}"
            )
        return options.run_dir
    folder = RUNS / options.config.preset
    number = 2
    while folder.exists():
        folder = RUNS / f"{options.config.preset}-{number}"
        number += 1
    return folder


def check_place(folder: Path) -> None:
    """Raise ValueError for a run folder whose checkpoint no bot could be named by."""
    if set(":,") & set(str(folder)):
        raise ValueError(f"{folder}: a bot is named policy:PATH, and PATH holds no : and no comma")


# --- a run --------------------------------------------------------------------------------------


class Run:
    """A learner, its games, and where they are kept.

    Raises ValueError where the configuration or the checkpoint to start from will not do.
    """

    def __init__(
        self,
        folder: Path,
        config: Config,
        start: NDArray[np.float32] | None = None,
        init: str | None = None,
    ) -> None:
        """`start` are the weights to start from, `init` the checksum of their checkpoint."""
        config.check()
        torch.set_num_threads(1)  # the other core plays the next batch
        self.folder, self.config, self.init = folder, config, init
        if start is not None and len(start) != weight_count(config.hidden):
            raise ValueError(
                f"the policy to start from has layers of width {hidden_of(len(start))}, this run"
                f" of {config.hidden}: add --hidden {hidden_of(len(start))}"
            )
        if config.kl_coef and start is None:
            raise ValueError(
                f"preset {config.preset} goes on from a policy (kl_coef {config.kl_coef:g}): name"
                " it by --init, or start from nothing by --preset scratch. This makes one:\n"
                f"  {script(Path(__file__).with_name('distill.py'))}"
            )
        self.seconds = 0.0  # of training, over all sittings
        self.evaluations: list[dict[str, Any]] = []
        torch.manual_seed(config.seed)
        self.collector = Collector(config, start if config.kl_coef else None)
        self.learner = SelfPlayPPO(
            OxxPolicy,
            SpacesEnv(),
            collector=self.collector,
            policy_kwargs={"hidden": config.hidden, "foresight": config.foresight},
            n_steps=2,  # of the unused buffer
            batch_size=config.minibatch,
            n_epochs=config.epochs,
            learning_rate=lambda left: (
                config.final_learning_rate
                + (config.learning_rate - config.final_learning_rate) * left
            ),
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip_range,
            ent_coef=config.ent_coef,
            vf_coef=config.vf_coef,
            max_grad_norm=config.max_grad_norm,
            kl_coef=config.kl_coef,
            seed=config.seed,
            device="cpu",
        )
        if start is not None:
            self.learner.network.load_weights(start)

    @classmethod
    def begin(cls, folder: Path, config: Config, init: str | None) -> Run:
        """A new run from a checkpoint (folder or shipped name), or from nothing."""
        if init is None:
            return cls(folder, config)
        return cls(folder, config, load_checkpoint(init)[0], checksum(init))

    @property
    def decisions(self) -> int:
        return self.learner.num_timesteps

    def save(self) -> None:
        """Write `state.npz`: the learner between two updates, and the games before the batch that
        is being played ahead (it is played again after a resume, with the same weights).

        Raises Diverged, and leaves the file as it was, where something in it is no finite number.
        """
        learner = self.learner
        learner.finish_ahead()
        arrays: dict[str, Any] = {
            "weights": learner.network.weights(),
            "behaviour": learner.behaviour,
            "progress": np.array([learner.num_timesteps, learner._n_updates]),
            "seconds": np.array(self.seconds),
            "evaluations": np.array(json.dumps(self.evaluations)),
            "init": np.array(self.init or ""),
            "config": np.array(json.dumps(asdict(self.config))),
        }
        if self.collector.prior is not None:
            arrays["prior"] = self.collector.prior
        arrays |= moments(learner.policy.optimizer)
        for name, array in learner.before_ahead.items():
            arrays[f"games/{name}"] = array
        numbers = [array for array in arrays.values() if array.dtype.kind == "f"]
        check_finite("the state is", self.decisions, *numbers)
        self.collector.pool.write(self.folder / "pool")
        write_arrays(self.folder / STATE, arrays)

    @classmethod
    def resume(cls, folder: Path) -> Run:
        """The run in a folder, as it was when its state was last written."""
        config, init = load_config(folder / CONFIG)
        path = folder / STATE
        if not path.exists():  # stopped before the first interval was over: from the start
            return cls.begin(folder, config, init)
        try:
            state = read_arrays(path, most=1 << 32)
            changed = changed_options(state, config)
            if changed:
                raise ValueError(
                    f"{CONFIG} was changed since it was written ({changed}); put that back, or"
                    f" start a new run with --init {folder / 'checkpoint'}"
                )
            run = cls(folder, config, state.get("prior"))
            run._load(state)
        except Exception as error:  # readers of spoiled files raise errors of many types
            what = f"{type(error).__name__}: {error}"[:500]
            raise ValueError(f"{path} is no state of this run: {what}") from error
        return run

    def _load(self, state: dict[str, Any]) -> None:
        learner = self.learner
        weights = learner.network.weights()
        kept = {f"games/{name}": array for name, array in self.collector.state().items()}
        for name, own in {**kept, "weights": weights, "behaviour": weights}.items():
            check_like(name, state[name], own)
        check_games(state["games/games"], state["games/decks"])
        if (state["games/games"]["phase"] == OVER).any():
            raise ValueError("games/games holds a game that is over")
        seats = self.collector.pool.seats
        if not np.isin(state["games/control"], seats).all():
            raise ValueError("games/control seats an unknown agent")
        if not ((state["games/kinds"] >= 0) & (state["games/kinds"] < len(seats))).all():
            raise ValueError("games/kinds holds an unknown line-up")
        learner.network.load_weights(state["weights"])
        learner.behaviour = state["behaviour"]
        learner.num_timesteps, learner._n_updates = (int(n) for n in state["progress"])
        self.seconds = float(state["seconds"])
        self.evaluations = json.loads(str(state["evaluations"]))
        self.init = str(state["init"]) or None
        load_moments(learner.policy.optimizer, state)
        self.collector.load_state(
            {k.removeprefix("games/"): v for k, v in state.items() if k.startswith("games/")}
        )


def changed_options(state: dict[str, Any], config: Config) -> str:
    """How the configuration differs from the one that a state was written with."""
    now, then = plain(config), json.loads(str(state["config"])) if "config" in state else {}
    changed = differences(then, {name: now[name] for name in then if name in now})
    return "; ".join(f"{name} {values}" for name, values in changed.items())


def write_config(folder: Path, config: Config, init: str | None) -> None:
    """Make the folder of a new run with its configuration and the checkpoint it starts from."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**asdict(config), "init_from": init}, indent=2) + "\n"
    write_atomically(folder / CONFIG, text.encode())


def load_config(path: Path) -> tuple[Config, str | None]:
    """The configuration of a run, and the checkpoint it started from. Raises ValueError if the file
    is none."""
    try:
        values: dict[str, Any] = read_json(path)
        init = values.pop("init_from", None)
        if not isinstance(init, str | None):
            raise ValueError(f"init_from is a checkpoint or null, not {init!r}")
        config = Config(**tuples(values))
        config.check()
        return config, init
    except FileNotFoundError:
        raise ValueError(f"{path.parent} is not the folder of a run: no config.json") from None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


# --- the loop -----------------------------------------------------------------------------------


def next_look(decisions: int, every: int) -> int:
    """The first point of the learning curve after so many decisions: early ones, each at twice the
    decisions of the one before, then the multiples of `every`."""
    early = FIRST_LOOK
    while early <= decisions:
        early *= 2
    return early if early < every else (decisions // every + 1) * every


class Progress(BaseCallback):
    """Stages, progress bar, evaluations, saved states; ends the run on a signal.

    The policy is evaluated before it learns, early (see `next_look`), and then every `eval_every`
    decisions. The bar begins with the first batch, so that it does not take the time in which
    kernels are compiled for the time that games need.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.stopped = False
        self.bar: tqdm[Any] | None = None
        self.next_look = next_look(run.decisions, run.config.eval_every)

    def _on_training_start(self) -> None:
        run = self.run
        self.started = time.monotonic() - run.seconds
        run.learner.after_step = self._after_step
        if not run.decisions and not run.evaluations:
            self.stage("evaluating the policy that it starts from ...")
            self.look(0)
        self.stage(f"playing the first batch, {run.config.rollout:,} decisions ...")

    def _on_rollout_start(self) -> None:
        # The moment between two updates: all samples counted so far have been learned from.
        run = self.run
        run.seconds = time.monotonic() - self.started
        if run.decisions:
            self.logger.record("time/decisions_per_second", run.decisions / run.seconds)
        if run.decisions >= self.next_look:
            self.stage("evaluating")
            self.look(run.decisions)
            run.save()
        self.logger.dump(run.decisions)  # of the last update, at its step
        if self.stopped:
            raise Stopped
        if self.bar is not None:
            self.stage("playing")

    def _on_step(self) -> bool:
        if self.bar is None:
            self.bar = tqdm(
                total=self.run.config.decisions,
                initial=self.num_timesteps - len(self.run.learner.batch.actions),
                unit="dec",
                unit_scale=True,
                smoothing=0,  # the mean: learning and playing take turns
            )
        self.bar.total = max(self.bar.total, self.num_timesteps)  # the last batch is a whole one
        self.stage("learning")
        return True

    def _after_step(self, share: float) -> None:
        """Move the bar; an early look does not wait for the end of the update.

        In its first pass the update has learned from a part of the batch, once.
        """
        assert self.bar is not None
        batch = len(self.run.learner.batch.actions)
        before = self.num_timesteps - batch
        self.bar.update(before + round(share * batch) - self.bar.n)
        learned = before + round(min(share * self.run.config.epochs, 1) * batch)
        early = self.next_look < min(self.num_timesteps - batch // 4, self.run.config.eval_every)
        if early and learned >= self.next_look:
            self.stage("evaluating")
            self.look(learned)
            self.stage("learning")

    def stage(self, text: str) -> None:
        """Say what the run is about to do."""
        if self.bar is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self.bar.set_description_str(text)

    def look(self, decisions: int) -> None:
        self.next_look = next_look(decisions, self.run.config.eval_every)
        result = self.evaluate(decisions)
        if self.bar is not None:
            self.bar.set_postfix_str(result)
        self.logger.dump(decisions)

    def evaluate(self, decisions: int) -> str:
        """Win share against each fixed baseline and table size, without search or sampling, as a
        point of the learning curve; says the first of them in a few words."""
        run, config = self.run, self.run.config
        result: dict[str, Any] = {"decisions": decisions, "ci95": {}}
        for bot in config.eval_bots:
            for players in config.eval_players or config.players:
                outcome = duel(
                    run.learner.network.weights(),
                    Opponent(BOTS[bot]),
                    run.collector.decks,
                    players,
                    config.rules[0],
                    config.eval_games // (5 if bot == "mc" else 1),
                )
                result[f"{bot}_{players}p"] = outcome.share
                result["ci95"][f"{bot}_{players}p"] = list(outcome.ci95)
                self.logger.record(f"win_share/{bot}_{players}p", outcome.share)
                points = float(outcome.points.mean())
                self.logger.record(f"relative_points/{bot}_{players}p", points)
        run.evaluations.append(result)
        bot, players = config.eval_bots[0], (config.eval_players or config.players)[0]
        return f"vs {bot} {result[f'{bot}_{players}p']:.2f}"

    def stop(self) -> None:
        """Ask the run to end after this batch."""
        self.stopped = True
        tqdm.write("stopping after this batch ...", file=sys.stderr)

    def close(self) -> None:
        """Close the bar: the next message gets a line of its own."""
        if self.bar is not None:
            self.bar.close()


def learn(run: Run, progress: Progress | None = None) -> bool:
    """Train to the end; False if a signal, or `progress`, ended it (the state is saved)."""
    progress = progress or Progress(run)
    run.learner.set_logger(configure(str(run.folder / "tensorboard"), ["tensorboard"]))
    left = run.config.decisions - run.decisions
    if left <= 0:
        return True
    try:
        with on_signal(progress.stop):
            run.learner.learn(left, callback=progress, reset_num_timesteps=False, log_interval=1)
            run.seconds = time.monotonic() - progress.started
            progress.stage("evaluating")
            progress.look(run.decisions)
            run.save()
    except Stopped:
        if run.learner.batches:  # else there is nothing that was not there before
            run.save()
        return False
    finally:
        progress.close()
        run.learner.logger.close()
    return not progress.stopped  # by a signal during the last update


# --- the report ---------------------------------------------------------------------------------


def options_of(config: Config, init: str | None) -> list[str]:
    """The options that train this again."""
    words = ["--preset", config.preset, "--seed", str(config.seed)]
    words += arguments(config, PRESETS.get(config.preset, Config()), skip=("preset", "seed"))
    return words if init is None else [*words, "--init", init]


def command_of(config: Config, init: str | None) -> str:
    """The command that trains this again, from a checkout."""
    return shlex.join(["python", "training/train.py", *options_of(config, init)])


def resume_command(folder: Path) -> str:
    """The command that goes on with a run, as it can be typed here."""
    return script(__file__, "--resume", place(folder))


def play_command(config: Config, folder: Path) -> str:
    """The command that plays against a run's checkpoint at a table that it knows."""
    return oxx("play", *table_options(asdict(config)), "--bots", f"policy:{place(folder)}")


def facts_of(run: Run, command: str) -> dict[str, Any]:
    """What a checkpoint's `config.json` holds of the run that made it."""
    config = run.config
    more = {"preset": config.preset, "init": run.init, "reward_scale": config.reward_scale}
    return facts(config, config, run.decisions, run.seconds, command, **more)


def after_divergence(run: Run) -> str:
    """Make the state that was saved last a checkpoint; the message says what to try now."""
    config, path, folder = run.config, run.folder / STATE, run.folder / "checkpoint"
    _, init = load_config(run.folder / CONFIG)
    preset = PRESETS.get(config.preset, Config())
    other = [name for name in STEPS if getattr(config, name) != getattr(preset, name)]
    better = replace(config, **{name: getattr(preset, name) for name in other})
    if not other:
        other, better = ["learning_rate"], replace(config, learning_rate=config.learning_rate / 10)
    changes = ", ".join(
        f"--{name.replace('_', '-')} {getattr(better, name):g} (it was {getattr(config, name):g})"
        for name in other
    )
    lines = [f"Try {changes}:", f"  {script(__file__, *options_of(better, init))}"]
    if not path.exists():
        return "\n".join([*lines, "There was no state to keep yet."])
    state = read_arrays(path, most=1 << 32)
    run.seconds, decisions = float(state["seconds"]), int(state["progress"][0])
    about = facts_of(run, command_of(config, init)) | {"decisions": decisions}
    save_checkpoint(folder, state["weights"], config.hidden, about, model_card(about, None))
    lines += [
        f"{path} and {folder} hold the last good state, after {decisions:,} decisions."
        " --resume goes on from it, with the same options to the same end; other options by",
        f"  {script(__file__, *options_of(better, place(folder)))}",
    ]
    return "\n".join(lines)


def finish(run: Run, workers: int) -> None:
    """Checkpoint, evaluation table, learning curve, model card."""
    config, folder = run.config, run.folder / "checkpoint"
    _, init = load_config(run.folder / CONFIG)
    about = facts_of(run, command_of(config, init))
    weights, hidden = run.learner.network.weights(), config.hidden
    save_checkpoint(folder, weights, hidden, about, model_card(about, None))
    print("playing the evaluation games ...", file=sys.stderr, flush=True)
    games = evaluate.Options(
        checkpoint=str(folder),
        players=config.players[0],
        rules=config.rules[0],
        deck=config.decks[0],
        games=config.final_games,
        workers=workers,
    )
    results = evaluate.evaluate(games, progress=True)
    again = ["PATH", *table_options(about), "--games", str(config.final_games)]
    card = model_card(about, table(results), f"python training/evaluate.py {shlex.join(again)}")
    save_checkpoint(folder, weights, hidden, about, card)
    text = json.dumps({"checkpoint": about, "results": results}, indent=2) + "\n"
    write_atomically(run.folder / "evaluation.json", text.encode())
    plot.save(draw_curves(run.evaluations), run.folder / "curve.png")
    print(table(results))
    print(f"\nlearning curve: {run.folder / 'curve.png'}")
    print(f"play against it:\n  {play_command(config, folder)}")


def check_writable(folder: Path) -> None:
    """Raise ValueError for a run folder that cannot be written to; remove unfinished files."""
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} cannot be written: read-only, or another user's")
    remove_unfinished(folder)
    print(f"run folder: {folder}", file=sys.stderr)


@program("train.py", "stopped before it began")
def main(argv: list[str]) -> int:
    options = parse(argv)
    check(options)
    if options.resume is not None:
        allowed = replace(options, run_dir=None, init=None, config=PRESETS["quick"])
        if options != allowed:
            raise ValueError("--resume takes the run's own options: add none but --workers")
        check_place(options.resume)
        run = Run.resume(options.resume)
    else:
        folder = new_run_dir(options)
        check_place(folder)
        run = Run.begin(folder, options.config, options.init)
        write_config(folder, options.config, options.init)
    check_writable(run.folder)
    try:
        if learn(run):
            finish(run, options.workers)
            return 0
    except Diverged as error:
        raise ValueError(f"{error}\n{after_divergence(run)}") from error
    except KeyboardInterrupt:  # while it is evaluated; for the time before see `learn`
        pass
    print(
        f"stopped after {run.decisions:,} decisions; go on with\n  {resume_command(run.folder)}",
        file=sys.stderr,
    )
    return EXIT_STOPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
