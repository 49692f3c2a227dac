"""`kernel`: compile a function with Numba, cached in a folder that can never be stale.

Numba's own cache only notices a change in the file that holds the compiled function. A constant or
a kernel imported from *another* module is frozen into the machine code, so the cache would go on
serving the old rules. Here the folder is named by a hash of every source that can end up in the
compiled code: the module that defines the kernel and, transitively, the modules of this package
(and of its own) that it imports.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from oxx_env.imports import without

with without("coverage"):  # Numba loads it, 0.1 s; whoever measures coverage has done so before
    from numba.core import config as _config
    from numba.core import types
    from numba.core.caching import FunctionCache
    from numba.core.registry import CPUDispatcher

PACKAGE = Path(__file__).parent
UNUSED_SECONDS = 30 * 24 * 3600  # then a folder of compiled code is removed
_IMPORT = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+([\w]+)\.?([\w.]*)"
    r"(?:[ \t]+import[ \t]+(?:\(([^)]*)\)|([^\n]*)))?",
    re.M,
)
_DEFINES_KERNEL = re.compile(r"^@kernel(_\w+)?\b", re.M)

config: Any = _config  # a module whose names are set at run time
F = TypeVar("F", bound=Callable[..., Any])


def compiled_sources(package: Path = PACKAGE, start: Path | None = None) -> list[Path]:
    """The files whose text decides what compiled code does, sorted by path.

    start  the module that defines the kernels; None: all modules of the package that define some.
           It may be one of another package, whose modules are followed as well
    """
    packages = {"oxx_env": package}
    if start is not None and not start.is_relative_to(package):
        packages[start.parent.name] = start.parent
    if start is None:
        everything = (path for path in package.rglob("*.py"))
        found = {p for p in everything if _DEFINES_KERNEL.search(p.read_text(encoding="utf-8"))}
    else:
        found = {start}
    queue = list(found)
    while queue:
        named = _imported(queue.pop().read_text(encoding="utf-8"), tuple(packages.items()))
        new = {path for path in named - found if path.is_file()}
        found |= new
        queue += new
    return sorted(found)


@cache
def _imported(source: str, packages: tuple[tuple[str, Path], ...]) -> frozenset[Path]:
    """Where the modules lie, if any, that a module's text imports from packages (name, folder)."""
    folders = dict(packages)
    found: set[Path] = set()
    for package, module, several, on_the_line in _IMPORT.findall(source):
        if package not in folders:
            continue
        names = re.findall(r"\w+", several or on_the_line)
        base = folders[package].joinpath(*module.split(".")) if module else folders[package]
        found |= {base.with_suffix(".py"), base / "__init__.py"}
        found |= {base / f"{name}.py" for name in names}
    return frozenset(found)


def source_hash(package: Path = PACKAGE, start: Path | None = None) -> str:
    """Sixteen hex digits over names and contents of `compiled_sources`."""
    digest = hashlib.sha256()
    for path in compiled_sources(package, start):
        inside = path.is_relative_to(package)
        name = path.relative_to(package).as_posix() if inside else path.name
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder(start: Path | None = None) -> Path:
    """Where the kernels of a module (None: of all) are kept when compiled: beside the sources, else
    in the user's cache, else in a temporary folder (a read-only installation, a user without a
    home). A module's kernels stay compiled while other modules change."""
    name = f"oxx_env-{source_hash(start=start)}"
    bases = [PACKAGE / "__pycache__"]
    with suppress(RuntimeError):  # a user without a home
        bases.append(Path.home() / ".cache")
    if os.environ.get("NUMBA_CACHE_DIR"):
        bases.insert(0, Path(os.environ["NUMBA_CACHE_DIR"]))
    for base in bases:
        folder = base / name
        try:
            new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)  # used today
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            if new:
                _remove_unused(base)
            return folder
    return Path(tempfile.mkdtemp(prefix=name))


def _remove_unused(base: Path) -> None:
    """Remove folders of compiled code whose sources have changed and that nobody has used for long:
    whoever uses one says so at its start, by the folder's time."""
    for folder in base.glob("oxx_env-*"):
        with suppress(OSError):  # another process may be at it as well
            if time.time() - folder.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def kernel(function: F) -> F:
    """Compile `function` on first call, without bounds checks or the interpreter lock held.

    It allocates nothing: what Numba adds to count references to new arrays, and a fifth of the time
    to compile, is left out. See `kernel_allocating`.

    With the environment variable NUMBA_DISABLE_JIT=1 the plain Python function is returned, for
    debugging and for measuring coverage.
    """
    return _compiled(function)


def kernel_fma(function: F) -> F:
    """Like `kernel`, and a product and a sum may become one instruction (for networks)."""
    return _compiled(function, fastmath={"contract"})


def kernel_inlined(function: F) -> F:
    """Like `kernel`, and it becomes part of each caller: for large ones with a single caller."""
    return _compiled(function, forceinline=True)


def kernel_allocating(function: F) -> F:
    """Like `kernel`, and it makes arrays: scratch space for a whole batch."""
    return _compiled(function, _nrt=True)


class ReadyCache(FunctionCache):
    """Loads compiled code without making ready what would compile it.

    Numba's own first imports and lists all that Numba can compile: a third of the time that
    `oxx arena` takes to start. Where something must be compiled after all, Numba does that anyway.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class Kernel(CPUDispatcher):
    """Compiles in two forms, each where it is first needed: to be called from Python, and `inner`,
    to be called from other kernels.

    Most kernels are only ever called from others, and the wrapper that turns Python's objects into
    the machine's costs more time to compile than a small kernel itself.
    """

    def enable_caching(self) -> None:
        # What allocates needs Numba's runtime, which is a part of what is made ready.
        cache = FunctionCache if self.targetoptions["_nrt"] else ReadyCache
        self._cache = cache(self.py_func)

    @cached_property
    def _numba_type_(self) -> Any:
        """What other kernels see when they name this one."""
        options = {**self.targetoptions, "no_cpython_wrapper": True}
        self.inner = CPUDispatcher(self.py_func, targetoptions=options)
        _keep_in(self.inner, cache_folder(Path(self.py_func.__code__.co_filename)) / "inner")
        return types.Dispatcher(self.inner)


def _compiled(function: F, **options: Any) -> F:
    if config.DISABLE_JIT:
        return function
    # Nobody calls a kernel from C: to leave out that wrapper saves a tenth of the compile time.
    common = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True, "_nrt": False}
    options = {**common, "boundscheck": None, "error_model": "numpy", **options}
    dispatcher = Kernel(function, targetoptions=options)
    _keep_in(dispatcher, cache_folder(Path(function.__code__.co_filename)))
    return cast(F, dispatcher)


def _keep_in(dispatcher: CPUDispatcher, folder: Path) -> None:
    """Let what a dispatcher compiles be kept in a folder."""
    # Numba reads the folder once, here; the process-wide setting is put back at once so that other
    # packages' caches stay where they are.
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        dispatcher.enable_caching()
    finally:
        config.CACHE_DIR = before
