"""Checkpoint folders: `weights.safetensors`, `config.json`, `README.md` (the model card).

Loading one runs no code and needs neither torch nor stable-baselines3. Whatever does not fit (a
file missing or cut short, another format, version, shape, checksum, a weight that is no number) is
refused with a `CheckpointError` that says so.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from oxx_env.game.observe import OBSERVATION_VERSION
from oxx_env.game.rules import ACTIONS
from oxx_env.lib.files import open_atomic, read_bounded, read_json
from oxx_env.lib.texts import cut, printable
from oxx_env.policy import rollout_net
from oxx_env.policy.features import FEATURES_VERSION, INPUT
from oxx_env.policy.forward import Layer, layers

FORMAT, ROLLOUT_NET_FORMAT = "oxx-policy/1", "oxx-reflex/1"
WEIGHTS, CONFIG, CARD = "weights.safetensors", "config.json", "README.md"
MAX_BYTES = 5 << 20  # of the weights
_PACKAGED = Path(__file__).parents[1] / "checkpoints"
# An installed package holds them; a checkout, also one installed to be edited, has them beside it.
SHIPPED = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[2] / "checkpoints"
# The network that search plays out with where no other is named. What lies under this name
# never changes, so that a policy may name it for good; a better one gets the next number.
PLAY_OUT = "swift-1"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message says why."""


def save_checkpoint(
    folder: str | os.PathLike[str],
    weights: NDArray[np.float32],
    hidden: int,
    config: dict[str, Any],
    card: str,
) -> Path:
    """Write a checkpoint folder, each file atomically, the config (with the checksum) last.

    `config` is what is known about the training; the format's own keys are added. Its key
    `play_out` names the policy's play-out network (see `load_play_out`), by default today's.
    """
    play_out = {"checkpoint": PLAY_OUT, "sha256": checksum(PLAY_OUT)}
    shape = {"format": FORMAT, "architecture": {"hidden": hidden}, "play_out": play_out}
    return _save(folder, weights, layers(hidden), {**shape, **config}, card)


def save_rollout_net(
    folder: str | os.PathLike[str],
    weights: NDArray[np.float32],
    config: dict[str, Any],
    card: str,
) -> Path:
    """`save_checkpoint` for a network of `rollout_net`, that search plays out with."""
    config = {"format": ROLLOUT_NET_FORMAT, **config}
    return _save(folder, weights, rollout_net.LAYERS, config, card)


def _save(
    folder: str | os.PathLike[str],
    weights: NDArray[np.float32],
    table: dict[str, Layer],
    config: dict[str, Any],
    card: str,
) -> Path:
    folder = Path(folder)
    if not np.isfinite(weights).all():
        raise CheckpointError(f"{folder}: weights that are not finite numbers are not written")
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, layer in table.items():
        both = weights[layer.at : layer.at + layer.size].reshape(layer.inputs + 1, layer.outputs)
        tensors[f"{name}.weight"] = np.ascontiguousarray(both[:-1].T, np.float32)
        tensors[f"{name}.bias"] = np.ascontiguousarray(both[-1], np.float32)
    data = save_tensors(tensors)
    if len(data) > MAX_BYTES:
        raise CheckpointError(f"the weights take {len(data)} bytes; {MAX_BYTES} are allowed")
    full = {
        "format": config["format"],
        "observation_version": OBSERVATION_VERSION,
        "foresight_version": FEATURES_VERSION,
        "input_size": INPUT,
        "actions": ACTIONS,
        "sha256": hashlib.sha256(data).hexdigest(),
        **config,
    }
    write_atomically(folder / WEIGHTS, data)
    write_atomically(folder / CARD, card.encode())
    write_atomically(folder / CONFIG, (json.dumps(full, indent=2) + "\n").encode())
    return folder


def load_checkpoint(spec: str | os.PathLike[str]) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """The weight vector and the config of a checkpoint folder, or of a shipped one by its name.

    Raises CheckpointError for anything that is not a whole, fitting checkpoint.
    """
    folder, config, data = _read_checkpoint(spec, FORMAT)
    architecture = config.get("architecture")
    hidden = architecture.get("hidden") if isinstance(architecture, dict) else None
    if isinstance(hidden, bool) or not isinstance(hidden, int) or not 8 <= hidden <= 512:
        raise CheckpointError(
            f"{folder / CONFIG}: architecture.hidden must be a whole number from 8 to 512,"
            f" not {_short(repr(hidden))}"
        )
    return _weights(folder / WEIGHTS, data, layers(hidden)), config


def load_rollout_net(spec: str | os.PathLike[str]) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """`load_checkpoint` for a network of `rollout_net`."""
    folder, config, data = _read_checkpoint(spec, ROLLOUT_NET_FORMAT)
    return _weights(folder / WEIGHTS, data, rollout_net.LAYERS), config


def load_play_out(policy: str | os.PathLike[str]) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """`load_rollout_net` for the network that search plays out with when this policy guides it.

    The policy's config names it: `"play_out": {"checkpoint": NAME, "sha256": of its weights}`. NAME
    is a folder in the policy's own, or a shipped network. A policy without the key has `PLAY_OUT`.
    Raises CheckpointError where the checksum is another one.
    """
    folder = find_checkpoint(policy)
    entry = _read_config(folder / CONFIG).get("play_out")
    if entry is None:
        return load_rollout_net(PLAY_OUT)
    named = entry if isinstance(entry, dict) else {}
    name, sha256 = named.get("checkpoint"), named.get("sha256")
    if not (isinstance(name, str) and _is_name(name) and isinstance(sha256, str)):
        raise CheckpointError(
            f"{folder / CONFIG}: play_out should be an object of `checkpoint`, the name of a"
            " shipped network for play-outs or of a folder beside this file, and `sha256`, the"
            f" checksum of its weights, not {_short(repr(entry))}"
        )
    own = folder / name
    weights, config = load_rollout_net(own if own.is_dir() else name)
    if config["sha256"] != sha256:
        raise CheckpointError(
            f"{folder / CONFIG}: the play-out network {name!r} has the SHA-256 {config['sha256']}"
            f" here, not {_short(sha256)} as this policy wants"
        )
    return weights, config


def _read_checkpoint(
    spec: str | os.PathLike[str], format_: str
) -> tuple[Path, dict[str, Any], bytes]:
    """Folder, config and bytes of the weights of a checkpoint of this format."""
    folder = find_checkpoint(spec)
    config = _read_config(folder / CONFIG)
    data = _read(folder / WEIGHTS, MAX_BYTES)
    for found, wanted, what in (
        (ROLLOUT_NET_FORMAT, FORMAT, "a network for play-outs, not a policy"),
        (FORMAT, ROLLOUT_NET_FORMAT, "a policy, not a network for play-outs"),
    ):
        if (config.get("format"), format_) == (found, wanted):
            raise CheckpointError(
                f"{folder / CONFIG}: this is {what} ({found}; {wanted} is needed)"
            )
    for key, want in (
        ("format", format_),
        ("observation_version", OBSERVATION_VERSION),
        ("foresight_version", FEATURES_VERSION),
        ("input_size", INPUT),
        ("actions", ACTIONS),
    ):
        if config.get(key) != want:
            raise CheckpointError(
                f"{folder / CONFIG}: {key} is {_short(repr(config.get(key)))};"
                f" this version of oxx_env plays {want!r}"
            )
    if config.get("sha256") != hashlib.sha256(data).hexdigest():
        raise CheckpointError(f"{folder / WEIGHTS}: the checksum does not fit the one in {CONFIG}")
    return folder, config, data


def find_checkpoint(spec: str | os.PathLike[str]) -> Path:
    """The folder of a checkpoint given as path or shipped name.

    A shipped name means the same wherever a program is started: a folder that happens to be called
    so is written with a slash, `./champion`.
    """
    with suppress(OSError, ValueError):  # a name too long for a file, a zero byte
        name, path = os.fspath(spec), Path(spec)
        known = _is_name(name) and (SHIPPED / name / CONFIG).is_file()
        if known and (isinstance(spec, str) or not path.is_dir()):
            return SHIPPED / name
        if path.is_dir():
            return path
    names = shipped()
    close = difflib.get_close_matches(os.path.basename(os.fspath(spec)), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise CheckpointError(
        f"there is no checkpoint folder {_short(spec)!r}; {hint}shipped ones:"
        f" {', '.join(names) or 'none'}"
    )


def shipped() -> list[str]:
    """The names of the checkpoints that come with the package."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{CONFIG}"))


def _is_name(text: str) -> bool:
    """Is it the name of a folder, and no path?"""
    return re.fullmatch(r"[\w-][\w.-]{0,99}", text) is not None


def _short(spec: str | os.PathLike[str], limit: int = 200) -> str:
    return cut(printable(str(spec)), limit)


def checksum(spec: str | os.PathLike[str]) -> str:
    """SHA-256 of the checkpoint's weights, in hexadecimal."""
    return hashlib.sha256(_read(find_checkpoint(spec) / WEIGHTS, MAX_BYTES)).hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a crash."""
    with open_atomic(path, "wb") as file:
        file.write(data)


def _read(path: Path, limit: int) -> bytes:
    try:
        return read_bounded(path, limit)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = read_json(path)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{path}: holds no JSON object")
    return config


def _weights(path: Path, data: bytes, table: dict[str, Layer]) -> NDArray[np.float32]:
    try:
        tensors = load_tensors(data)
    except (SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(f"{path}: not a safetensors file: {error}") from error
    expected = {f"{name}.{part}" for name in table for part in ("weight", "bias")}
    if tensors.keys() != expected:
        wrong = ", ".join(sorted(tensors.keys() ^ expected)[:4])
        raise CheckpointError(f"{path}: missing or unknown tensors: {wrong}")
    weights = np.empty(sum(layer.size for layer in table.values()), np.float32)
    for name, layer in table.items():
        weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        for part, tensor, shape in (
            ("weight", weight, (layer.outputs, layer.inputs)),
            ("bias", bias, (layer.outputs,)),
        ):
            if tensor.shape != shape or tensor.dtype != np.float32:
                raise CheckpointError(
                    f"{path}: {name}.{part} is {tensor.dtype} {list(tensor.shape)};"
                    f" float32 {list(shape)} is expected"
                )
        both = weights[layer.at : layer.at + layer.size].reshape(layer.inputs + 1, layer.outputs)
        both[:-1], both[-1] = weight.T, bias
    if not np.isfinite(weights).all():
        raise CheckpointError(f"{path}: holds weights that are not finite numbers")
    return weights
