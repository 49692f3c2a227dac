"""Packages that only a part of the library needs: what to do where one is missing.

The core runs without them; `pip` knows them by the name of an extra, `oxx_env[web]`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oxx_env.lib.files import read_text

NAME = "oxx_env"
PACKAGE = Path(__file__).parents[1]
EXTRAS = {  # module that may be missing → the extra that brings it
    "torch": "train",
    "stable_baselines3": "train",
    "sb3_contrib": "train",
    "openskill": "train",
    "rich": "train",
    "matplotlib": "train",
    "tensorboard": "train",
    "tqdm": "train",
    "PIL": "render",
    "pygame": "render",
    "starlette": "web",
    "uvicorn": "web",
}
CALLED = {"PIL": "pillow", "pygame": "pygame-ce", "stable_baselines3": "stable-baselines3"}


class MissingExtra(ModuleNotFoundError):
    """A package is missing that only a part of the library needs; the message says what to do."""


def explain(error: ImportError, what: str = "this") -> MissingExtra | None:
    """The error that says how to install what is missing; None where it is no package of an extra.

    what  needs the package: `the table in the browser`
    """
    if isinstance(error, MissingExtra):
        return error
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    name = CALLED.get(module, module)
    text = f"{what} needs {name}: {install_command(EXTRAS[module])}"
    return MissingExtra(text, name=error.name)


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Around imports of an extra's packages: where one is missing, MissingExtra says what to do."""
    try:
        yield
    except ImportError as error:
        missing = explain(error, what)
        if missing is None:
            raise
        raise missing from error


def require(extra: str, what: str) -> None:
    """Raise MissingExtra for the first package of an extra that is missing; imports none."""
    for module, of in EXTRAS.items():
        if of == extra and importlib.util.find_spec(module) is None:
            raise explain(ImportError(name=module), what) or ImportError(module)


def install_command(extra: str) -> str:
    """The command that installs an extra for the Python that runs, from where this package came."""
    python = [sys.executable or "python", "-m", "pip", "install"]
    return shlex.join([*python, *_requirement(extra)])


def _requirement(extra: str) -> list[str]:
    """What pip is to install, as its arguments."""
    from importlib import metadata  # these are not loaded where nothing is missing
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    ours = PACKAGE.parent / "pyproject.toml"
    if ours.is_file() and f'name = "{NAME}"' in read_text(ours):
        return ["-e", f"{ours.parent}[{extra}]"]  # a checkout, installed or not
    try:
        distribution = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return [f"{NAME}[{extra}]"]
    # Written by pip where a package came from no index, but from a wheel, a folder, an address.
    origin = distribution.read_text("direct_url.json")
    if origin is None:
        return [f"{NAME}[{extra}]=={distribution.version}"]
    place = urlsplit(str(json.loads(origin).get("url", "")))
    file = Path(url2pathname(place.path))
    if place.scheme == "file" and file.exists():
        return [f"{file}[{extra}]"]
    # The file is gone or may have changed: the packages of the extra.
    part = re.compile(rf"""(.*?)\s*;.*\bextra\s*==\s*["']{extra}["']""")
    found = (part.match(line) for line in distribution.requires or ())
    return [match[1] for match in found if match]
