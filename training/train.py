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

import io
import json
import os
import shlex
import signal
import sys
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

if __name__ == "__main__":  # `python training/train.py` puts this file's folder on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from tqdm import tqdm

from oxx_env.checkpoint import checksum, load_checkpoint, save_checkpoint, write_atomically
from oxx_env.files import read_arrays, read_json, remove_unfinished
from oxx_env.forward import hidden_of, weight_count
from oxx_env.rules import OVER
from oxx_env.sound import check_games
from oxx_env.texts import message
from training.config import PRESETS, Config, tuples
from training.evaluate import commit, curve, evaluate, model_card, table
from training.pool import BOTS
from training.ppo import OxxPolicy, SelfPlayPPO, SpacesEnv
from training.selfplay import Collector, duel

RUNS = Path("runs")
CONFIG = "config.json"
EXIT_STOPPED, EXIT_UNUSABLE = 130, 2


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
    workers: int = 2
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
                f"{options.run_dir} is not empty: go on with it by --resume {options.run_dir},"
                " or name a new folder"
            )
        return options.run_dir
    folder = RUNS / options.config.preset
    number = 2
    while folder.exists():
        folder = RUNS / f"{options.config.preset}-{number}"
        number += 1
    return folder


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
                " it by --init (python training/distill.py makes one), or start from nothing by"
                " --preset scratch"
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
        is being played ahead (it is played again after a resume, with the same weights)."""
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
        for index, moments in learner.policy.optimizer.state_dict()["state"].items():
            for name, tensor in moments.items():
                arrays[f"adam/{index}/{name}"] = tensor.numpy()
        for name, array in learner.before_ahead.items():
            arrays[f"games/{name}"] = array
        data = io.BytesIO()
        np.savez(data, **arrays)
        self.collector.pool.write(self.folder / "pool")
        write_atomically(self.folder / "state.npz", data.getvalue())

    @classmethod
    def resume(cls, folder: Path) -> Run:
        """The run in a folder, as it was when its state was last written."""
        config, init = load_config(folder / CONFIG)
        path = folder / "state.npz"
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
        except Exception as error:  # readers of spoiled files raise whatever they stumble over
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
            raise ValueError("games/control seats somebody unknown")
        if not ((state["games/kinds"] >= 0) & (state["games/kinds"] < len(seats))).all():
            raise ValueError("games/kinds holds an unknown line-up")
        learner.network.load_weights(state["weights"])
        learner.behaviour = state["behaviour"]
        learner.num_timesteps, learner._n_updates = (int(n) for n in state["progress"])
        self.seconds = float(state["seconds"])
        self.evaluations = json.loads(str(state["evaluations"]))
        self.init = str(state["init"]) or None
        moments: dict[int, dict[str, torch.Tensor]] = {}
        parameters = list(learner.policy.parameters())  # in the optimizer's order
        for key, array in state.items():
            if key.startswith("adam/"):
                _, index, name = key.split("/")
                own = parameters[int(index)].detach().numpy()
                check_like(key, array, own.sum() if name == "step" else own)
                moments.setdefault(int(index), {})[name] = torch.from_numpy(array)
        optimizer = learner.policy.optimizer
        optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
        self.collector.load_state(
            {k.removeprefix("games/"): v for k, v in state.items() if k.startswith("games/")}
        )


def check_like(name: str, array: NDArray[Any], own: NDArray[Any]) -> None:
    """Raise ValueError unless an array has the form of the run's own, and holds no NaN."""
    longer = name == "games/pool_former"  # grows with the run
    same = array.shape[1:] == own.shape[1:] if longer else array.shape == own.shape
    if array.ndim != own.ndim or not same or array.dtype != own.dtype:
        raise ValueError(
            f"{name} is {array.dtype.name} {list(array.shape)},"
            f" not {own.dtype.name} {list(own.shape)}"
        )
    if own.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds what is no finite number")


def changed_options(state: dict[str, Any], config: Config) -> str:
    """How the configuration differs from the one a state was written with."""
    now = json.loads(json.dumps(asdict(config)))
    then = json.loads(str(state["config"])) if "config" in state else {}
    changed = [name for name in then if name in now and then[name] != now[name]]
    return "; ".join(f"{name} was {then[name]}, is {now[name]}" for name in changed)


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


class Stopped(Exception):
    """A signal asked the run to end."""


class Progress(BaseCallback):
    """Progress bar, evaluations, saved states; ends the run on a signal."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.stopped = False
        every = run.config.eval_every
        self.next_look = (run.decisions // every + 1) * every

    def _on_training_start(self) -> None:
        config = self.run.config
        self.started = time.monotonic() - self.run.seconds
        self.bar = tqdm(
            total=config.decisions, initial=self.run.decisions, unit="dec", unit_scale=True
        )

    def _on_rollout_start(self) -> None:
        # The moment between two updates: all samples counted so far have been learned from.
        run = self.run
        run.seconds = time.monotonic() - self.started
        if run.decisions:
            self.logger.record("time/decisions_per_second", run.decisions / run.seconds)
        if run.decisions >= self.next_look:
            self.next_look += run.config.eval_every
            self.evaluate()
            run.save()
        if self.stopped:
            raise Stopped

    def _on_step(self) -> bool:
        self.bar.update(self.num_timesteps - self.bar.n)
        return True

    def evaluate(self) -> None:
        """Win share against each fixed baseline and table size, without search or sampling."""
        run, config = self.run, self.run.config
        result: dict[str, Any] = {"decisions": run.decisions}
        for bot in config.eval_bots:
            for players in config.eval_players or config.players:
                outcome = duel(
                    run.learner.network.weights(),
                    config.hidden,
                    run.collector.decks,
                    players,
                    config.rules[0],
                    config.eval_games // (5 if bot == "mc" else 1),
                    bot=BOTS[bot],
                )
                result[f"{bot}_{players}p"] = outcome.share
                self.logger.record(f"win_share/{bot}_{players}p", outcome.share)
                points = float(outcome.points.mean())
                self.logger.record(f"relative_points/{bot}_{players}p", points)
        run.evaluations.append(result)
        bot, players = config.eval_bots[0], (config.eval_players or config.players)[0]
        self.bar.set_postfix_str(f"vs {bot} {result[f'{bot}_{players}p']:.2f}")

    def _on_training_end(self) -> None:
        self.bar.close()


def learn(run: Run, progress: Progress | None = None) -> bool:
    """Train to the end; False if a signal, or `progress`, ended it (the state is saved)."""
    progress = progress or Progress(run)

    def stop(signum: int, frame: Any) -> None:
        progress.stopped = True
        progress.bar.write("stopping after this batch ...", file=sys.stderr)

    run.learner.set_logger(configure(str(run.folder / "tensorboard"), ["tensorboard"]))
    left = run.config.decisions - run.decisions
    if left <= 0:
        return True
    handlers = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        run.learner.learn(left, callback=progress, reset_num_timesteps=False, log_interval=1)
    except Stopped:
        progress.bar.close()
        if run.learner.batches:  # else there is nothing that was not there before
            run.save()
        return False
    finally:
        if hasattr(progress, "bar"):
            progress.bar.close()  # an error is told on a line of its own
        for number, handler in handlers.items():
            signal.signal(number, handler)
    run.seconds = time.monotonic() - progress.started
    progress.evaluate()
    run.save()
    return True


# --- the report ---------------------------------------------------------------------------------


def command_of(config: Config, init: str | None) -> str:
    """The command that trains this again."""
    words = ["python", "training/train.py", "--preset", config.preset, "--seed", str(config.seed)]
    preset = PRESETS.get(config.preset, Config())
    for field in fields(Config):
        value = getattr(config, field.name)
        if value == getattr(preset, field.name) or field.name in ("preset", "seed"):
            continue
        option = field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            several = value if isinstance(value, tuple) else (value,)
            words += [f"--{option}", *map(str, several)]
    if init is not None:
        words += ["--init", init]
    return shlex.join(words)


def facts_of(run: Run, command: str) -> dict[str, Any]:
    """What a checkpoint tells of the run that made it."""
    config = run.config
    return {
        "preset": config.preset,
        "seed": config.seed,
        "decisions": run.decisions,
        "seconds": round(run.seconds, 1),
        "init": run.init,
        "players": list(config.players),
        "rules": list(config.rules),
        "decks": list(config.decks),
        "reward_scale": config.reward_scale,
        "command": command,
        "commit": commit(),
        "training": {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(config).items()},
    }


def finish(run: Run, workers: int) -> None:
    """Checkpoint, evaluation table, learning curve, model card."""
    config = run.config
    folder = run.folder / "checkpoint"
    _, init = load_config(run.folder / CONFIG)
    facts = facts_of(run, command_of(config, init))
    weights, hidden = run.learner.network.weights(), config.hidden
    save_checkpoint(folder, weights, hidden, facts, model_card(facts, None))
    print("playing the evaluation games ...", file=sys.stderr, flush=True)
    results = evaluate(
        str(folder),
        players=config.players[0],
        rules=config.rules[0],
        deck=config.decks[0],
        games=config.final_games,
        workers=workers,
        progress=True,
    )
    save_checkpoint(folder, weights, hidden, facts, model_card(facts, table(results)))
    text = json.dumps({"checkpoint": facts, "results": results}, indent=2) + "\n"
    write_atomically(run.folder / "evaluation.json", text.encode())
    curve(run.evaluations, run.folder / "curve.png")
    print(table(results))
    print(f"\nlearning curve: {run.folder / 'curve.png'}")
    print(f"play against it: oxx play --bots policy:{folder}")


def main(argv: list[str]) -> int:
    try:
        options = parse(argv)
        if options.workers < 1:
            raise ValueError(f"workers is at least 1, not {options.workers}")
        if options.resume is not None:
            allowed = replace(options, run_dir=None, init=None, config=PRESETS["quick"])
            if options != allowed:
                raise ValueError("--resume takes the run's own options: add none but --workers")
            run = Run.resume(options.resume)
        else:
            folder = new_run_dir(options)
            config = options.config
            run = Run.begin(folder, config, options.init)
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps({**asdict(config), "init_from": options.init}, indent=2) + "\n"
            write_atomically(folder / CONFIG, text.encode())
        if not os.access(run.folder, os.W_OK):
            raise ValueError(f"{run.folder} cannot be written: read-only, or another user's")
        remove_unfinished(run.folder)
        print(f"run folder: {run.folder}", file=sys.stderr)
        if not learn(run):
            print(
                f"stopped after {run.decisions:,} decisions; go on with\n"
                f"  python training/train.py --resume {run.folder}",
                file=sys.stderr,
            )
            return EXIT_STOPPED
        finish(run, options.workers)
    except (ValueError, OSError) as error:
        if os.environ.get("OXX_TRACEBACK"):
            raise
        print(f"train.py: {message(error)}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:  # not while it learns, see `learn`
        print("train.py: stopped; what was saved goes on by --resume", file=sys.stderr)
        return EXIT_STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
