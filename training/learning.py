"""What all learners share: a gradient step, numbers that stay finite, a state to go on from, a stop
by a signal."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from oxx_env.policy.checkpoint import write_atomically


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, noticed at a moment when nothing is lost."""


class Diverged(ValueError):
    """A training whose numbers grew beyond what can be computed with."""


def check_finite(what: str, decisions: int, *arrays: Any) -> None:
    """Raise Diverged, after so many decisions learned from, unless all numbers of the arrays (numpy
    or torch) are finite."""
    if not all(np.isfinite(np.asarray(array)).all() for array in arrays):
        raise Diverged(
            f"the training diverged after {decisions:,} decisions: {what} no longer finite"
        )


def gradient_step(
    loss: torch.Tensor, optimizer: torch.optim.Optimizer, max_norm: float, decisions: int
) -> None:
    """One step down the gradient of `loss`, scaled down to `max_norm`. Raises Diverged, before it
    changes a weight, after so many decisions learned from."""
    check_finite("the loss is", decisions, loss.detach())
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_(_parameters(optimizer), max_norm)
    check_finite("the gradient is", decisions, norm)
    optimizer.step()


def minibatches(
    parts: Sequence[Sequence[NDArray[Any]]], size: int, rng: np.random.Generator
) -> Iterator[list[torch.Tensor]]:
    """One pass over parts of a data set, each some arrays [N, ...], in random order: minibatches of
    at most `size` samples of one part, the same samples of each of its arrays."""
    for index in rng.permutation(len(parts)):
        tensors = [torch.from_numpy(array) for array in parts[index]]
        for chosen in torch.from_numpy(rng.permutation(len(tensors[0]))).split(size):
            yield [tensor[chosen] for tensor in tensors]


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


# --- state --------------------------------------------------------------------------------------


def moments(optimizer: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """Adam's moments of each parameter, as arrays of a state."""
    return {
        f"adam/{index}/{name}": tensor.numpy()
        for index, of_one in optimizer.state_dict()["state"].items()
        for name, tensor in of_one.items()
    }


def load_moments(optimizer: torch.optim.Optimizer, state: Mapping[str, NDArray[Any]]) -> None:
    """Put back the `moments` that a state holds. Raises ValueError for arrays of another shape."""
    parameters = _parameters(optimizer)
    found: dict[int, dict[str, torch.Tensor]] = {}
    for key, array in state.items():
        if key.startswith("adam/"):
            _, index, name = key.split("/")
            own = parameters[int(index)].detach().numpy()
            check_like(key, array, own.sum() if name == "step" else own)
            found.setdefault(int(index), {})[name] = torch.from_numpy(array)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": found})


def check_like(name: str, array: NDArray[Any], own: NDArray[Any]) -> None:
    """Raise ValueError unless an array of a state has the shape and type of the run's own, and all
    its numbers are finite."""
    grows = name == "games/pool_former"  # one row for each snapshot that gave way
    same = array.shape[1:] == own.shape[1:] if grows else array.shape == own.shape
    if array.ndim != own.ndim or not same or array.dtype != own.dtype:
        raise ValueError(
            f"{name} is {array.dtype.name} {list(array.shape)},"
            f" not {own.dtype.name} {list(own.shape)}"
        )
    if own.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write a state: the file is there whole or not at all."""
    data = io.BytesIO()
    np.savez(data, **arrays)
    write_atomically(path, data.getvalue())


@contextmanager
def on_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM call `stop`, and end nothing by themselves."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
