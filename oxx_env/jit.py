"""`kernel`: compile a function with Numba, cached in a folder that can never be stale.

Numba's own cache only notices a change in the file that holds the compiled function. A constant or
a kernel imported from *another* module is frozen into the machine code, so the cache would go on
serving the old rules. Here the folder is named by a hash of every source that can end up in
compiled code: the modules that define kernels and, transitively, the modules of this package that
they import.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as _config

PACKAGE = Path(__file__).parent
_IMPORT = re.compile(
    r"^\s*(?:from|import)\s+oxx_env\.?([\w.]*)(?:\s+import\s+\(?([\w\s,]*))?", re.M
)
_DEFINES_KERNEL = re.compile(r"^@kernel\b", re.M)

config: Any = _config  # a module whose names are set at run time
F = TypeVar("F", bound=Callable[..., Any])


def compiled_sources(package: Path = PACKAGE) -> list[Path]:
    """The files whose text decides what the compiled code does, sorted by path."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    found = {path for path, text in texts.items() if _DEFINES_KERNEL.search(text)}
    queue = list(found)
    while queue:
        for module, names in _IMPORT.findall(texts[queue.pop()]):
            base = package.joinpath(*module.split(".")) if module else package
            imported = {base.with_suffix(".py"), base / "__init__.py"}
            imported |= {base / f"{name.strip()}.py" for name in names.split(",") if name.strip()}
            new = (imported & texts.keys()) - found
            found |= new
            queue += new
    return sorted(found)


def source_hash(package: Path = PACKAGE) -> str:
    """Sixteen hex digits over names and contents of `compiled_sources`."""
    digest = hashlib.sha256()
    for path in compiled_sources(package):
        name = path.relative_to(package).as_posix()
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """Where compiled kernels are kept: beside the sources, else the user's cache, else a temporary
    folder (a read-only installation of a user without a home)."""
    name = f"oxx_env-{source_hash()}"
    bases = [PACKAGE / "__pycache__", Path.home() / ".cache"]
    if os.environ.get("NUMBA_CACHE_DIR"):
        bases.insert(0, Path(os.environ["NUMBA_CACHE_DIR"]))
    for base in bases:
        folder = base / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix=name))


def kernel(function: F) -> F:
    """Compile `function` on first call, without bounds checks or the interpreter lock held.

    With the environment variable NUMBA_DISABLE_JIT=1 the plain Python function is returned, for
    debugging and for measuring coverage.
    """
    # Numba reads the folder once, when the dispatcher is made; the process-wide setting is put back
    # at once so that other packages' caches stay where they are.
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    finally:
        config.CACHE_DIR = before
