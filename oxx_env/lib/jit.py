"""`kernel`: compile a function with Numba, cached in a folder that can never be stale.

Numba's own cache only notices a change in the file that holds the compiled function. A constant or
a kernel imported from *another* module is frozen into the machine code, so the cache would go on
serving the old rules. Here the folder is named by a hash of every source that can end up in the
compiled code. Packages import downward only, so these are the packages with kernels at or below
that of the module (`KERNEL_SOURCES`), and the module's own folder if it lies outside.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from oxx_env.lib.imports import require_tested, without

with without("coverage"):  # Numba loads it, 0.1 s; a run that measures coverage has it already
    from numba import version_info

    # Private parts of Numba follow; another version may lack them.
    require_tested("numba", version_info.short, "0.61", "0.69")
    from llvmlite import binding as llvm
    from numba.core import config as _config
    from numba.core import sigutils, types
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import (
        CompilerBase,
        DefaultPassBuilder,
        Flags,
        compile_extra,
        compile_result,
    )
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.compiler_machinery import PassManager
    from numba.core.registry import CPUDispatcher

PACKAGE = Path(__file__).parents[1]
UNUSED_SECONDS = 30 * 24 * 3600  # then a folder of compiled code is removed
# What may end up in compiled code, from the lowest layer to the highest; kernels live only here.
KERNEL_SOURCES = ("lib/*.py", "game/*.py", "policy/*.py", "bots/*.py", "envs/kernels.py")

config: Any = _config  # a module whose names are set at run time
F = TypeVar("F", bound=Callable[..., Any])


def compiled_sources(package: Path = PACKAGE, start: Path | None = None) -> list[Path]:
    """The files whose text decides what compiled code does, sorted by path.

    start  the module that defines the kernels; None: all modules of the package. It may lie in
           another folder, all of whose modules then count as well
    """
    levels, own = len(KERNEL_SOURCES), []
    if start is not None and start.is_relative_to(package):
        fits = [start.relative_to(package).match(sources) for sources in KERNEL_SOURCES]
        levels = fits.index(True) + 1
    elif start is not None:
        own = list(start.parent.glob("*.py"))
    return sorted(own + [path for part in KERNEL_SOURCES[:levels] for path in package.glob(part)])


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
    """Remove folders of compiled code that have not been used for long; each use at a start of the
    program renews the folder's time."""
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


# --- two forms of a kernel ----------------------------------------------------------------------


class PartLibrary(JITCodeLibrary):
    """The code of one kernel as it is linked into those that call it: neither optimised nor turned
    into the machine's. Both happen once, where all of it is together (`EntryLibrary`)."""

    def _optimize_functions(self, ll_module: Any) -> None:
        # Variables out of memory, so that there is less to link; Numba's own passes here do work
        # that is done again where all is together.
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            passes = llvm.create_new_function_pass_manager()
            passes.add_sroa_pass()
            passes.add_simplify_cfg_pass()
            passes.add_new_gvn_pass()
            passes.add_aggressive_dce_pass()
            passes.run(function, self._codegen._pass_builder())

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """What is kept: the code with that of all kernels that it calls."""
        whole = self._get_module_for_linking().clone()
        for library in _with_called(self._linking_libraries):
            whole.link_in(library._get_module_for_linking(), preserve=True)
        return self.name, "part", whole.as_bitcode()


class EntryLibrary(JITCodeLibrary):
    """A kernel and all that it calls, optimised together, to be called from Python."""

    def finalize(self) -> None:
        self._linking_libraries = _with_called(self._linking_libraries)
        super().finalize()

    def _optimize_final_module(self) -> None:
        # Only of functions that cannot be replaced by others the optimiser finds out what memory
        # they touch, which it needs to move loads across the calls.
        module = self._final_module
        own = [f for f in module.functions if f.linkage == llvm.Linkage.linkonce_odr]
        own = [f.name for f in own if not f.is_declaration]
        for name in own:
            module.get_function(name).linkage = "external"
        super()._optimize_final_module()
        for name in own:
            module.get_function(name).linkage = "linkonce_odr"
        # What is inlined everywhere stays behind.
        self._final_module = llvm.parse_assembly(str(self._codegen._create_empty_module(self.name)))
        self._final_module.name = module.name
        self._final_module.link_in(module)


def _with_called(libraries: Iterable[Any]) -> list[Any]:
    """Libraries and, transitively, those that they call, each once and before all that it calls:
    what nothing refers to yet is not linked."""
    found: dict[Any, None] = {}

    def add(library: Any) -> None:
        if library not in found:
            if isinstance(library, PartLibrary):
                for called in library._linking_libraries:
                    add(called)
            found[library] = None

    for library in libraries:
        add(library)
    return list(reversed(found))


class PartCacheImpl(CompileResultCacheImpl):
    """Makes a part of what was kept of it."""

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        (name, _, bitcode), fndesc, environment, signature, *_, environments = payload
        library = PartLibrary(target_context.codegen(), name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library.finalize()
        return compile_result(
            typing_context=target_context.typing_context,
            target_context=target_context,
            signature=signature,
            objectmode=False,
            lifted=(),
            type_annotation="",
            fndesc=fndesc,
            library=library,
            environment=environment,
            reload_init=[],
            referenced_envs=environments,  # kept alive
        )


class PartCache(FunctionCache):
    """Keeps the form of a kernel for other kernels."""

    _impl_class = PartCacheImpl


class Form(CPUDispatcher):
    """What the two forms of a kernel have in common: look in memory, look in the folder, compile.

    Whether an argument is a constant makes no difference: all constants share one compilation. The
    optimiser sees them where the kernel is inlined.
    """

    _cache: Any
    targetctx: Any

    def compile(self, sig: Any) -> Any:
        return self.result(sig).entry_point

    def result(self, sig: Any) -> Any:
        """The compiled kernel for types of arguments."""
        args = tuple(types.unliteral(arg) for arg in sigutils.normalize_signature(sig)[0])
        with global_compiler_lock, self._compiling_counter:
            if args not in self.overloads:
                result = self._cache.load_overload(args, self.targetctx)
                if result is None:
                    result = self._compile_alone(args)
                self._take(result)
            return self.overloads[args]

    def _compile_alone(self, args: Any) -> Any:
        """Compile, unless another process was just at it: then take what that one left."""
        with _alone_in(self._cache.cache_path), notice:
            result = self._cache.load_overload(args, self.targetctx)
            if result is None:
                result = self._make(args)
                self._cache.save_overload(args, result)
            return result

    def _make(self, args: Any) -> Any:
        raise NotImplementedError

    def _take(self, result: Any) -> None:
        raise NotImplementedError


class PartCompiler(CompilerBase):
    """Numba's passes over a kernel without those for what no kernel has: closures, `with`, array
    expressions, functions to be inlined in Numba's own form."""

    LEFT_OUT = frozenset(
        {
            "InlineClosureLikes",
            "MakeFunctionToJitFunction",
            "WithLifting",
            "InlineInlinables",
            "InlineOverloads",
            "FindLiterallyCalls",
            "LiteralUnroll",
            "LiteralPropagationSubPipelinePass",
            "NopythonRewrites",
            "RewriteDynamicRaises",
            "AnnotateTypes",
            "DumpParforDiagnostics",
        }
    )

    def define_pipelines(self) -> list[Any]:
        whole = DefaultPassBuilder.define_nopython_pipeline(self.state)
        kept = PassManager("kernel")
        for each, text in whole.passes:
            if each.__name__ not in self.LEFT_OUT:
                kept.add_pass(each, text)
        kept.finalize()
        return [kept]


_resolve = types.Function.get_call_type
_resolved: dict[Any, Any] = {}  # (function of Numba's, types of arguments) -> signature


def _resolve_once(function: Any, context: Any, args: Any, kws: Any) -> Any:
    key = function, args, tuple(kws.items()) if kws else ()
    if key not in _resolved:
        _resolved[key] = _resolve(function, context, args, kws)
    return _resolved[key]


@contextmanager
def _resolving_once() -> Iterator[None]:
    """Numba asks for the signature of `int64 + int64` wherever one stands, and looks through dozens
    of candidates each time: a tenth of the time to compile. Here each answer is kept. Held under
    Numba's lock, so that nothing else is compiled meanwhile."""
    Function: Any = types.Function
    before = Function.get_call_type
    Function.get_call_type = _resolve_once
    try:
        yield
    finally:
        Function.get_call_type = before


class Part(Form):
    """The form of a kernel for other kernels: its code before the optimiser has seen it."""

    def enable_caching(self) -> None:
        self._cache = PartCache(self.py_func)

    def _make(self, args: Any) -> Any:
        flags: Any = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = True
        library = PartLibrary(self.targetctx.codegen(), self.py_func.__qualname__)
        library.enable_object_caching()
        notice.kernels += 1
        with _resolving_once():
            return compile_extra(
                self.typingctx,
                self.targetctx,
                self.py_func,
                args,
                None,
                flags,
                {},
                library,
                PartCompiler,
            )

    def _take(self, result: Any) -> None:
        result = result._replace(entry_point=object())  # by which calls are resolved
        self.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result


class Kernel(Form):
    """The form of a kernel for Python, made of its `part`, where it is first called from there.

    Most kernels are only ever called from others: they are never optimised by themselves.
    """

    def enable_caching(self) -> None:
        # What allocates needs Numba's runtime, which is a part of what is made ready.
        cache = FunctionCache if self.targetoptions["_nrt"] else ReadyCache
        self._cache = cache(self.py_func)

    @cached_property
    def part(self) -> Part:
        part = Part(self.py_func, targetoptions={**self.targetoptions, "no_cpython_wrapper": True})
        _keep_in(part, cache_folder(Path(self.py_func.__code__.co_filename)) / "inner")
        return part

    @cached_property
    def _numba_type_(self) -> Any:
        """What other kernels see when they name this one."""
        return types.Dispatcher(self.part)

    def _make(self, args: Any) -> Any:
        form: Any = self.part
        part = form.result(args)
        library = EntryLibrary(self.targetctx.codegen(), part.fndesc.qualname)
        library.enable_object_caching()
        library.add_linking_library(part.library)
        with self.targetctx.push_code_library(library):
            self.targetctx.create_cpython_wrapper(
                library, part.fndesc, part.environment, None, release_gil=True
            )
        entry = self.targetctx.get_executable(library, part.fndesc, part.environment)
        result = part._replace(library=library, entry_point=entry)
        for environment in result._find_referenced_environments():
            library.codegen.set_env(environment.env_name, environment)
        notice.entries += 1
        return result

    def _take(self, result: Any) -> None:
        self.add_overload(result)


# --- what others notice of it -------------------------------------------------------------------


class Notice:
    """Tells people once, on stderr, that the program compiles and does not hang; no thread is
    needed, since each kernel looks at the clock before it is compiled.

    kernels, entries  compiled by this process so far, for other kernels and for Python
    """

    SECONDS = 2.0
    TEXT = "oxx_env compiles the code needed here, up to a minute; it is kept for next time ..."

    def __init__(self) -> None:
        self.kernels = self.entries = 0
        self.shown = False
        self._spent = 0.0  # compiling, seconds
        self._since: list[float] = []  # when the compilations that are going on began

    def __enter__(self) -> None:
        now = time.monotonic()
        began = self._since[0] if self._since else now
        self._since.append(now)
        if not self.shown and self._spent + now - began > self.SECONDS:
            self.shown = True
            self._tell()

    def __exit__(self, *_: object) -> None:
        began = self._since.pop()
        if not self._since:
            self._spent += time.monotonic() - began

    def _tell(self) -> None:
        # A worker's parent has shown it, or waits for it; tests that run programs read what those
        # write.
        worker = multiprocessing.parent_process() is not None
        if worker or sys.stderr is None or "PYTEST_CURRENT_TEST" in os.environ:
            return
        with suppress(OSError, ValueError):  # a closed stream
            # Where a progress bar stands, it gives way; it is drawn again below.
            clear = "\r\x1b[K" if sys.stderr.isatty() else ""
            print(clear + self.TEXT, file=sys.stderr, flush=True)


notice = Notice()
_held: set[str] = set()


@contextmanager
def _alone_in(folder: str) -> Iterator[None]:
    """Keep other processes from compiling what is kept in a folder: they wait and find it there.

    The system lets go of the lock when the process ends, however it ends. Modules do not import
    each other in circles, so that no two processes wait for each other. Where there are no
    such locks (Windows, some network drives) two processes may do the same work twice.
    """
    if folder in _held:
        yield
        return
    descriptor = -1
    if sys.platform != "win32":
        import fcntl

        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    _held.add(folder)
    try:
        yield
    finally:
        _held.discard(folder)
        if descriptor >= 0:
            os.close(descriptor)


def _compiled(function: F, **options: Any) -> F:
    if config.DISABLE_JIT:
        return function
    # No kernel is called from C: leaving out that wrapper saves a tenth of the compile time.
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
