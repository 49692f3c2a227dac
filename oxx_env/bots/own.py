"""A user's own models as bots: `py:FILE.py:NAME`, `py:MODULE:NAME`, `sb3:FILE.zip[:sample]`.

They run the user's code. This is the only module that imports by name or unpickles, and
`bots.make` comes here only with `own_code=True`. `OwnBot` makes a bot of any object with `act`:

    act(view, rng) -> action
    act(observation, action_mask, rng) -> action                 with `observe = True`
    act(observations, action_masks, rngs) -> actions [N]         with `batch = True` besides

observation float32 [OBS], action_mask int8 [10], rng a numpy Generator; batches [N, …] and a list.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import io
import logging
import multiprocessing
import os
import sys
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.bots import BotSpecError
from oxx_env.game.observe import OBS, START, entry, observe
from oxx_env.game.rules import ACTIONS, PASS
from oxx_env.game.table import as_integer
from oxx_env.game.views import View
from oxx_env.lib import extras
from oxx_env.lib.files import read_bounded
from oxx_env.lib.texts import short
from oxx_env.notation.position import to_text

MOST_BYTES = 1 << 30  # of a model's file
_AT_TABLE = START["seats"] + entry("seats", "at the table")  # 1 in every observation
_PACKAGE = os.path.join(str(extras.PACKAGE), "")
_LIBRARIES = tuple({os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(np.__file__))})


class OwnCodeError(BotSpecError):
    """A user's own model failed; the message names it.

    user_traceback  the lines of the user's own files where it happened, or empty
    """

    def __init__(self, message: str, user_traceback: str = "") -> None:
        super().__init__(message, user_traceback)
        self.user_traceback = user_traceback

    def __str__(self) -> str:
        return str(self.args[0])


class NotANumber(ValueError):
    """A model's output is NaN in row `row` of its batch."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def illegal(spec: str, action: object, view: View) -> str:
    """The message for an action that is not legal: bot, seat, position."""
    number: Any = as_integer(action)
    if number is None:
        number = action.item() if isinstance(action, np.generic) else action
    return (
        f"bot {spec!r} at seat {view.seat} chose {short(number)}, which is not legal; "
        f"legal: {view.legal}; position: {to_text(view)}"
    )


class OwnBot:
    """A bot of a model: any object with `act` as the module says.

    spec     what results call it
    sha256   of its file, for logs; None without one

    Raises OwnCodeError for an object without `act`. Whatever the model raises later comes as
    OwnCodeError, and so does an action that is not legal.
    """

    def __init__(self, model: Any, spec: str, sha256: str | None = None) -> None:
        self.model, self.spec, self.sha256 = model, spec, sha256
        if not callable(getattr(model, "act", None)):
            raise OwnCodeError(f"{spec!r}: {type(model).__name__} lacks act(view, rng)")
        self.observe = bool(getattr(model, "observe", False))
        self.asks_batches = bool(getattr(model, "batch", False))
        self.needs_state = bool(getattr(model, "needs_state", False))
        if self.asks_batches and not self.observe:
            raise OwnCodeError(f"{spec!r}: batch = True needs observe = True besides")
        if self.observe and self.needs_state:
            raise OwnCodeError(f"{spec!r}: needs_state and observe = True exclude each other")

    def act(self, view: View, rng: np.random.Generator, **state: Any) -> int:
        """One of `view.legal`; the model is not asked where there is nothing to decide."""
        if view.legal == [PASS]:
            return PASS
        if self.asks_batches or self.observe:
            masks = np.zeros((1, ACTIONS), np.int8)
            masks[0, view.legal] = 1
            return self.act_batch(observe(view)[None], masks, [rng], [lambda: view])[0]
        with _users_code(self.spec):
            action = self.model.act(view, rng, **state)
        return self._checked(action, lambda: view)

    def act_batch(
        self,
        observations: NDArray[np.float32],
        masks: NDArray[np.int8],
        rngs: Sequence[np.random.Generator],
        views: Sequence[Callable[[], View]],
    ) -> list[int]:
        """The actions [N] for N decisions; views [N] are asked for messages only."""
        count = len(rngs)
        with _users_code(self.spec):
            try:
                if self.asks_batches:
                    found: Any = self.model.act(observations, masks, list(rngs))
                    found = np.asarray(found)
                else:
                    found = [
                        self.model.act(observations[i], masks[i], rngs[i]) for i in range(count)
                    ]
            except NotANumber as error:
                at = views[error.row]()
                raise OwnCodeError(
                    f"bot {self.spec!r} at seat {at.seat}: the model's output is NaN; "
                    f"position: {to_text(at)}"
                ) from None
        if self.asks_batches and found.shape != (count,):
            raise OwnCodeError(
                f"bot {self.spec!r} answered {count} observations with shape {found.shape}; "
                f"it should be ({count},)"
            )
        if self.asks_batches and found.dtype.kind in "iu":
            inside = (found >= 0).all() and (found < ACTIONS).all()
            if inside and masks[np.arange(count), found].all():
                return list(found.tolist())
        return [self._checked(found[i], views[i], masks[i]) for i in range(count)]

    def _checked(
        self, action: Any, view: Callable[[], View], mask: NDArray[np.int8] | None = None
    ) -> int:
        number = as_integer(action)
        if number is not None and 0 <= number < ACTIONS:
            legal = number in view().legal if mask is None else mask[number]
            if legal:
                return number
        raise OwnCodeError(illegal(self.spec, action, view()))


@contextmanager
def _users_code(spec: str, what: str = "failed") -> Iterator[None]:
    """Within, the user's code runs: its errors come as OwnCodeError."""
    try:
        yield
    except (OwnCodeError, NotANumber):
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ImportError) and (missing := extras.explain(error, repr(spec))):
            raise missing from error
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise OwnCodeError(f"{spec!r} {what}: {text}", users_traceback(error)) from error


def users_traceback(error: BaseException) -> str:
    """The traceback without this package's lines; empty where no line is in the user's files."""
    shown = traceback.TracebackException.from_exception(error)
    own = isinstance(error, SyntaxError)
    chain: list[traceback.TracebackException | None] = [shown]
    while chain:
        one = chain.pop()
        if one is None:
            continue
        kept = [
            frame
            for frame in one.stack
            if not frame.filename.startswith((_PACKAGE, "<frozen importlib"))
        ]
        own = own or any(not frame.filename.startswith(_LIBRARIES) for frame in kept)
        one.stack = traceback.StackSummary.from_list(kept)
        chain += [one.__cause__, one.__context__]
    return "".join(shown.format()).rstrip() if own else ""


# --- py: --------------------------------------------------------------------------------------


def make_py(source: str, name: str, options: Mapping[str, str]) -> OwnBot:
    """The bot of `py:FILE.py:NAME` or `py:MODULE:NAME`: a class or factory without arguments.

    Neighbours of the file, and for a module those of the current folder, can be imported. Raises
    BotSpecError.
    """
    del options
    spec = f"py:{source}:{name}"
    sha256 = None
    if source.endswith(".py") or os.sep in source:
        sha256 = hashlib.sha256(_read(spec, source)).hexdigest()
        module = _module_of_file(spec, source)
    else:
        _allow_imports_from(os.getcwd())
        with _users_code(spec, "cannot be imported"):
            module = importlib.import_module(source)
        if (file := getattr(module, "__file__", None)) and os.path.isfile(file):
            sha256 = hashlib.sha256(_read(spec, file)).hexdigest()
    if not hasattr(module, name):
        own = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise BotSpecError(f"{spec!r}: {source} has no {name}; it has {', '.join(own) or 'none'}")
    factory = getattr(module, name)
    if not callable(factory):
        raise BotSpecError(f"{spec!r}: {name} should be a class or a function that makes the bot")
    with _users_code(spec, "cannot be made"):
        model = factory()
    return OwnBot(model, spec, sha256)


def _module_of_file(spec: str, source: str) -> Any:
    path = os.path.abspath(source)
    name = f"_oxx_own_{hashlib.sha256(path.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise BotSpecError(f"{spec!r}: {source} should be a Python file, NAME.py")
    module = importlib.util.module_from_spec(found)
    _allow_imports_from(os.path.dirname(path))
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        with _users_code(spec, "cannot be imported"):
            found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _allow_imports_from(folder: str) -> None:
    if folder not in sys.path:
        sys.path.append(folder)


def _read(spec: str, path: str) -> bytes:
    try:
        return read_bounded(path, MOST_BYTES)
    except FileNotFoundError:
        raise BotSpecError(f"{spec!r}: no such file: {path}") from None
    except OSError as error:
        raise BotSpecError(f"{spec!r}: {path}: {error.strerror}") from None


# --- sb3: -------------------------------------------------------------------------------------

_announced: set[str] = set()  # files


def make_sb3(source: str, options: Mapping[str, str]) -> OwnBot:
    """The bot of `sb3:FILE.zip`: a policy that stable-baselines3 or sb3-contrib saved by
    `model.save`.

    `sample`: draws from its distribution instead of taking the best action. Statistics of
    VecNormalize are read from `FILE.vecnormalize.pkl` or `vecnormalize.pkl` beside it. Raises
    BotSpecError, MissingExtra.
    """
    sample = "sample" in options
    spec = f"sb3:{source}{':sample' if sample else ''}"
    raw = _read(spec, source)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            names = set(archive.namelist())
    except zipfile.BadZipFile:
        names = set()
    if not {"data", "policy.pth"} <= names:
        raise BotSpecError(
            f"{spec!r}: {source} is no model of stable-baselines3: save one by model.save(FILE)"
        )
    with extras.needed_by(repr(spec)):
        import stable_baselines3  # noqa: F401
    if source not in _announced and multiprocessing.parent_process() is None:
        _announced.add(source)
        logging.getLogger("oxx_env").warning(
            "loading %s: a file of stable-baselines3 runs the code that it holds", source
        )
    for folder in (os.getcwd(), os.path.dirname(os.path.abspath(source))):
        _allow_imports_from(folder)  # where the class of a policy of the user's own may lie
    data, weights = _saved(spec, raw)
    policy = _policy(spec, data, weights)
    statistics, digest = _statistics(spec, source, data)
    sha256 = hashlib.sha256(raw).hexdigest() + digest
    return OwnBot(Sb3Model(_scores(spec, policy, sample), sample, statistics), spec, sha256)


def _saved(spec: str, raw: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The data of a saved model, and its parameters."""
    from stable_baselines3.common.save_util import load_from_zip_file

    # Schedules are functions of another Python's bytecode; playing needs none of them.
    without = dict.fromkeys(("lr_schedule", "clip_range", "clip_range_vf", "exploration_schedule"))
    with warnings.catch_warnings(record=True) as said, _users_code(spec, "cannot be loaded"):
        warnings.simplefilter("always")
        data, weights, _ = load_from_zip_file(io.BytesIO(raw), device="cpu", custom_objects=without)
    data = data or {}
    if missing := {"policy_class", "observation_space", "action_space"} - set(data):
        if not _contrib():
            with extras.needed_by(repr(spec)):
                import sb3_contrib  # noqa: F401
        why = "; ".join(str(one.message).splitlines()[0] for one in said)
        raise OwnCodeError(
            f"{spec!r}: its {' and '.join(sorted(missing))} cannot be loaded: {why or 'missing'}"
        )
    return data, weights


def _contrib() -> bool:
    return importlib.util.find_spec("sb3_contrib") is not None


def _policy(spec: str, data: dict[str, Any], weights: dict[str, Any]) -> Any:
    """The policy with its weights, ready to play."""
    space, actions, kind = data["observation_space"], data["action_space"], data["policy_class"]
    if getattr(space, "shape", None) != (OBS,) or type(space).__name__ != "Box":
        raise BotSpecError(
            f"{spec!r}: its observation space is {short(space)}; it should be the flat "
            f"observation, Box of shape ({OBS},)"
        )
    if type(actions).__name__ != "Discrete" or actions.n != ACTIONS or actions.start != 0:
        raise BotSpecError(
            f"{spec!r}: its action space is {short(actions)}; it should be Discrete({ACTIONS})"
        )
    if any("recurrent" in base.__module__ or "Recurrent" in base.__name__ for base in kind.__mro__):
        raise BotSpecError(f"{spec!r}: recurrent policies ({kind.__name__}) cannot play here")
    with _users_code(spec, "cannot be loaded"):
        policy: Any = kind(space, actions, lambda _: 0.0, **(data.get("policy_kwargs") or {}))
        policy.load_state_dict(weights["policy"])
        policy.set_training_mode(False)
    return policy


def _scores(spec: str, policy: Any, sample: bool) -> Callable[[Any], Any]:
    """The function from observations [N, OBS] to a score of each action [N, 10]: logits of the
    policy, or values."""
    if hasattr(policy, "get_distribution"):
        return lambda obs: policy.get_distribution(obs).distribution.logits
    values: Callable[[Any], Any] | None = None
    if hasattr(policy, "q_net"):
        values = policy.q_net
    elif hasattr(policy, "quantile_net"):
        values = lambda obs: policy.quantile_net(obs).mean(dim=1)  # noqa: E731
    elif hasattr(policy, "action_net") and hasattr(policy, "extract_features"):
        values = lambda obs: policy.action_net(  # noqa: E731
            policy.extract_features(obs, policy.features_extractor)
        )
    if values is None:
        raise BotSpecError(
            f"{spec!r}: {type(policy).__name__} gives neither a distribution nor values of actions"
        )
    if sample:
        raise BotSpecError(
            f"{spec!r}: {type(policy).__name__} has no distribution to draw from; leave out :sample"
        )
    return values


def _statistics(spec: str, source: str, data: dict[str, Any]) -> tuple[Any, str]:
    """VecNormalize's statistics and `+SHA-256` of their file; None and nothing without any."""
    import pickle

    base = Path(source)
    places = [base.with_suffix(".vecnormalize.pkl"), base.with_name("vecnormalize.pkl")]
    last = data.get("_last_obs")  # what it saw last in training
    seen = last.reshape(-1, OBS) if isinstance(last, np.ndarray) and last.size else None
    if seen is None or (seen[:, _AT_TABLE] == 1).all():
        return None, ""
    for place in places:
        if place.is_file():
            raw = _read(spec, str(place))
            with _users_code(spec, f"cannot be loaded: {place}"):
                found = pickle.loads(raw)
            if not hasattr(found, "normalize_obs"):
                raise BotSpecError(f"{spec!r}: {place} holds no statistics of VecNormalize")
            return found, "+" + hashlib.sha256(raw).hexdigest()
    raise BotSpecError(
        f"{spec!r}: it was trained on normalised observations, and the statistics of VecNormalize "
        f"are missing: save them by env.save({str(places[0])!r})"
    )


class Sb3Model:
    """A policy of stable-baselines3 as a batch model.

    scores      observations as a tensor [N, OBS] -> scores [N, 10]
    sample      draw by the scores as logits, one number of each generator; else the best
    statistics  of VecNormalize, or None
    """

    observe = True
    batch = True

    def __init__(self, scores: Callable[[Any], Any], sample: bool, statistics: Any) -> None:
        self.scores, self.sample, self.statistics = scores, sample, statistics

    def act(
        self,
        observations: NDArray[np.float32],
        masks: NDArray[np.int8],
        rngs: Sequence[np.random.Generator],
    ) -> NDArray[np.int64]:
        """The best legal action of each observation, or one drawn."""
        import torch

        if self.statistics is not None:
            observations = self.statistics.normalize_obs(observations).astype(np.float32)
        with torch.no_grad():
            try:
                scores = self.scores(torch.from_numpy(observations)).numpy()
            except ValueError as error:  # torch's distributions may check their logits
                if "invalid values" not in str(error):
                    raise
                raise NotANumber(self._first_invalid(observations)) from None
        if np.isnan(scores.sum()) and (rows := np.isnan(scores).any(axis=1)).any():
            raise NotANumber(int(rows.argmax()))
        legal = np.where(masks, scores, -np.inf)
        best: NDArray[np.int64] = legal.argmax(axis=1)
        if not self.sample:
            return best
        chances = np.exp(legal.astype(np.float64) - legal.max(axis=1, keepdims=True))
        sums = chances.cumsum(axis=1)
        drawn = np.array([rng.random() for rng in rngs]) * sums[:, -1]
        return (sums > drawn[:, None]).argmax(axis=1)

    def _first_invalid(self, observations: NDArray[np.float32]) -> int:
        import torch

        for row in range(len(observations)):
            try:
                self.scores(torch.from_numpy(observations[row : row + 1]))
            except ValueError:
                return row
        return 0
