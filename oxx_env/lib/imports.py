"""What is imported when: a program that uses a part should not wait for the rest to load."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def when_imported(name: str, action: Callable[[], None]) -> None:
    """Call `action()` when the module `name` has been imported: now, or after its import."""
    if sys.modules.get(name) is not None:
        action()
    else:
        sys.meta_path.insert(0, _Waiting(name, action))


class UntriedVersion(ImportError):
    """A package is there in a version that this one was not tried with; the message says so."""


def require_tested(name: str, version: tuple[int, int], least: str, below: str) -> None:
    """Raise UntriedVersion for a version (major, minor) of a package that was not tried.

    least, below  the bounds of pyproject.toml: `0.61`, `0.69`
    """
    first, end = (tuple(map(int, bound.split("."))) for bound in (least, below))
    if not first <= version < end:
        raise UntriedVersion(
            f"oxx_env was tried with {name} from {least} to below {below} and needs what others may"
            f" lack; here is {version[0]}.{version[1]}:"
            f" {sys.executable or 'python'} -m pip install '{name}>={least},<{below}'",
            name=name,
        )


class _Waiting(MetaPathFinder):
    """Finds one module where the other finders do, and has an action follow its import."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self.name, self.action = name, action
        self.asking = False  # the other finders

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name or self.asking:
            return None
        self.asking = True
        try:
            spec = find_spec(name)
        finally:
            self.asking = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self.action()

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


@contextmanager
def without(name: str) -> Iterator[None]:
    """As if the module `name` were not installed, unless it has been imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # an import of it now fails
    try:
        yield
    finally:
        del sys.modules[name]
