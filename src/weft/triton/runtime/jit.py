"""``triton.runtime.jit``: kernels with the attributes and the launch protocol of Triton's.

A kernel here is weft's `JITFunction` under Triton 3.9's semantics. What differs is what programs look at: ``kernel[grid](...)``
returns a compiled kernel, `run` is what autotuners and heuristics call, errors are Triton's, and options of machines that weft
does not have are accepted, since they only tune code.
"""

from __future__ import annotations

import hashlib
import inspect
import textwrap
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from weft.frontend.signature import Argument
from weft.frontend.source import KernelFunction, References
from weft.ir.errors import CompilationError as WeftCompilationError
from weft.language.core import ConstexprFunction, constexpr_function
from weft.options import Options
from weft.runtime.arguments import Bound, bind, disjoint, signature_of, specialised
from weft.runtime.binding import LAUNCH_OPTIONS, NOT_OPTIONS, Grid, grid_of
from weft.runtime.errors import DeviceAssertionError as WeftAssertionError
from weft.runtime.errors import OutOfResources as WeftOutOfResources
from weft.runtime.jit import JITFunction as Kernel
from weft.runtime.place import CURRENT
from weft.runtime.resources import MOST_THREADS
from weft.triton import knobs
from weft.triton.compiler.errors import translated
from weft.triton.errors import OutOfResources, assertion_failed, out_of_resources
from weft.triton.profiles import LAUNCHES
from weft.triton.runtime import preloading
from weft.triton.runtime.driver import driver
from weft.triton.runtime.parameters import KernelParam
from weft.triton.runtime.tensors import MockTensor, TensorWrapper, reinterpret

if TYPE_CHECKING:
    from weft.emulator import Profile

__all__ = [
    "ConstexprFunction", "JITCallable", "JITFunction", "KernelInterface", "KernelParam", "MockTensor", "TensorWrapper",
    "constexpr_function", "jit", "reinterpret",
]  # fmt: skip

SEMANTICS: Final = "triton@3.9"

_WARP: Final = 32

TUNING: Final = NOT_OPTIONS - {"stream"}
"""Options of a launch that tune code for machines, or name their libraries: accepted, and ignored."""


class KernelInterface:
    """What is launched as ``kernel[grid](...)``: a kernel, or what wraps kernels. A subclass has `run`."""

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The launcher for a grid."""
        return partial(self.run, grid=grid, warmup=False)

    def warmup(self, *args: Any, grid: Any = (1,), **keywords: Any) -> Any:
        """Compiles for the arguments; dtypes stand for arrays of them."""
        return self.run(*map(MockTensor.wrap_dtype, args), grid=grid, warmup=True, **keywords)

    def run(self, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
        """Launches, or only compiles."""
        raise NotImplementedError("run not implemented")


class JITCallable:
    """What other kernels may call; a name to test for."""


class JITFunction(Kernel, JITCallable, KernelInterface):
    """A kernel with Triton's attributes; parameters as `jit`."""

    def __init__(
        self,
        fn: Callable[..., Any],
        version: Any = None,
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[..., str] | None = None,
        launch_metadata: Callable[..., Any] | None = None,
    ) -> None:
        self.do_not_specialize = list(do_not_specialize or ())
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or ())
        super().__init__(
            fn,
            semantics=SEMANTICS,
            do_not_specialize=self.do_not_specialize,
            do_not_specialize_on_alignment=self.do_not_specialize_on_alignment,
        )
        self.module = fn.__module__
        self.version = version
        self.debug = debug
        self.noinline = noinline
        self.launch_metadata = launch_metadata
        self.kernel = None
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self.__globals__ = fn.__globals__
        self.device_caches: defaultdict[Any, tuple[Any, ...]] = defaultdict(self.create_binder)
        self._repr = repr
        preloading.KERNELS.add(self)

    def __repr__(self) -> str:
        return f"JITFunction({self.module}:{self.fn.__qualname__})"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Kernels have no meaning without a grid: always `RuntimeError`."""
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")

    # ---- what it is -------------------------------------------------------------------------------------------------

    @cached_property
    def signature(self) -> inspect.Signature:
        """Python's signature of the function."""
        return inspect.signature(self.fn)

    @cached_property
    def params(self) -> list[KernelParam]:
        """The parameters."""
        general, alignment = self.do_not_specialize, self.do_not_specialize_on_alignment
        return [
            KernelParam(i, p, i in general or p.name in general, i in alignment or p.name in alignment)
            for i, p in enumerate(self.signature.parameters.values())
        ]

    @property
    def arg_names(self) -> list[str]:
        """The names of the parameters."""
        return [p.name for p in self.params]

    @property
    def constexprs(self) -> list[int]:
        """The indices of compile-time parameters."""
        return [p.num for p in self.params if p.is_constexpr]

    @property
    def src(self) -> str:
        """The text of the function from ``def`` on."""
        lines = self.source.split("\n")
        return "\n".join(lines[next(i for i, line in enumerate(lines) if line.startswith("def ")) :])

    @property
    def raw_src(self) -> list[str]:
        """The lines of the file, decorators included."""
        return self._lines[0]

    @property
    def starting_line_number(self) -> int:
        """The first of these lines."""
        return self.first_line

    @property
    def cache_key(self) -> str:
        """A text that differs whenever the code may, of this function or of those it calls."""
        return hashlib.sha256(f"{self.dependencies()}{self.first_line}".encode()).hexdigest()

    @property
    def hash(self) -> str:
        """`cache_key`. It is computed anew each time: what programs assign, None, has nothing to forget."""
        return self.cache_key

    @hash.setter
    def hash(self, value: object) -> None: ...

    def repr(self, specialization: Any) -> str:
        """The kernel's name for profilers."""
        return self.fn.__name__ if self._repr is None else self._repr(specialization)

    def is_gluon(self) -> bool:
        """False."""
        return False

    def get_capture_scope(self) -> dict[str, Any]:
        """The names that the function sees."""
        return self.__globals__ | dict(inspect.getclosurevars(self.fn).nonlocals)

    def parse(self) -> Any:
        """The syntax tree of `src`."""
        import ast

        return ast.parse(self.src)

    def _unsafe_update_src(self, new_src: str) -> None:
        """Compiles another text, from ``def`` on, from now on. What it names is looked up where the function was defined."""
        decorators = self.source.removesuffix(self.src)
        for name in ("source", "tree", "_references"):
            self.__dict__.pop(name, None)
        first = self.fn.__code__.co_firstlineno
        self.__dict__["_lines"] = ((decorators + textwrap.dedent(new_src)).splitlines(keepends=True), first)
        for kernel in preloading.KERNELS.all():  # this function may be an argument of others
            kernel._executables.clear()
            kernel._compiled_from = References()
            kernel.device_caches.clear()

    def _forget(self) -> None:
        super()._forget()
        if not self._executables:  # a global or a helper has changed
            self.device_caches.clear()

    # ---- launches ---------------------------------------------------------------------------------------------------

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Calls a function with the arguments before each launch."""
        self.pre_run_hooks.append(hook)

    def create_binder(self) -> tuple[Any, ...]:
        """An entry of `device_caches`: compiled kernels, and what Triton keeps beside them."""
        return {}, {}, driver.active.get_current_target(), None, None

    def run(self, *args: Any, grid: Any, warmup: bool = False, **keywords: Any) -> Any:
        """Launches on ``grid``, or only compiles (``warmup``); the compiled kernel.

        Raises: `KeyError` for a keyword that is neither a parameter nor an option of a launch.
        """
        for hook in self.pre_run_hooks:
            hook(*args, **keywords)
        lesson = None
        if not warmup and (arranged := self._arranged(args, keywords)) is not None:
            values, options = arranged
            asked: Any = grid if callable(grid) else grid_of(self.name, grid)
            grid = self._sizes(asked, values)
            found = self._found(values, options | {"debug": True} if knobs.runtime.debug else options)
            if isinstance(found, tuple):
                known, slots = found
                executable = known.executable
                kernel = self._known().get(executable)
                if kernel is not None:
                    if grid[0] and grid[1] and grid[2]:
                        self._launched(
                            kernel, grid, values, lambda: executable.run(slots, grid, None, (executable, values))
                        )
                    return kernel
            else:
                lesson = found
        if keywords or knobs.runtime.debug:
            keywords = self._accepted(keywords)
        chosen: Any = grid if callable(grid) else grid_of(self.name, grid)
        try:
            executable, bound, sizes = self._prepared(None, chosen, args, keywords)
        except WeftCompilationError as error:
            refused = translated(error, self)
            raise refused from refused.__cause__
        except WeftOutOfResources as error:
            raise out_of_resources(error) from None
        kernel = self._compiled(executable, bound, keywords, warmup)
        if lesson is not None:
            self._learn(lesson, executable, bound)
        if not warmup and sizes[0] and sizes[1] and sizes[2]:
            self._launched(kernel, sizes, bound.values, lambda: executable.launch(bound, sizes))
        return kernel

    def _launched(self, kernel: Any, sizes: Grid, values: Iterable[Any], launch: Callable[[], Profile | None]) -> None:
        """Launches, and tells those who listen."""
        entered = knobs.runtime.launch_enter_hook
        if entered is not None and getattr(entered, "calls", True):
            kernel.announce(entered, sizes, values)
        try:
            profile = launch()
        except WeftAssertionError as error:
            raise assertion_failed(error) from None
        if profile is not None:
            LAUNCHES.add(profile)
        left = knobs.runtime.launch_exit_hook
        if left is not None and getattr(left, "calls", True):
            kernel.announce(left, sizes, values)

    def preload(self, specialization_data: str) -> Any:
        """Compiles for what ``jit_cache_hook`` was told (``compile["specialization_data"]``), in another process, too.

        Raises: `RuntimeError` for another kernel's text, or another machine's.
        """
        given, target = preloading.read(specialization_data), driver.active.get_current_target()
        name = f"{self.module}.{self.fn.__qualname__}"
        if given.name != name:
            raise RuntimeError(f"Specialization data is for {given.name} but trying to preload for {name}")
        if given.target != vars(target):
            raise RuntimeError(f"Specialization data is for {given.target} but trying to preload for {target}")
        bound = specialised(self.name, given.signature, given.apart)
        executable = self._executable(CURRENT.get(), bound, tuple(sorted(given.options.items())))
        return self._compiled(executable, bound, given.options, True)

    def warmup(self, *args: Any, grid: Any = (1,), **keywords: Any) -> Any:
        """Compiles for the arguments; dtypes stand for arrays of them."""
        return KernelInterface.warmup(self, *args, grid=grid, **keywords)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The launcher for a grid; it has no ``bind``, since each launch calls Triton's hooks."""
        return partial(self.run, grid=grid, warmup=False)

    def specialised(self, values: Sequence[Any]) -> dict[str, Argument]:
        """Weft's signature for a value of each parameter."""
        bound = bind(self.name, self._list.parameters, values)
        return signature_of(bound.parameters, bound.key, list(bound.values))

    def _accepted(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords that weft's launch takes."""
        names = self._list.names
        result: dict[str, Any] = {}
        for name, value in keywords.items():
            if name in names or name in LAUNCH_OPTIONS:
                result[name] = value
            elif name not in TUNING:
                raise KeyError(f"Keyword argument {name} was specified but unrecognised")
        if knobs.runtime.debug and "debug" not in names:
            result["debug"] = True
        warps = result.get("num_warps", 1)
        if type(warps) is int and (warps < 1 or warps & (warps - 1)):
            raise AssertionError(f"num_warps must be a power of 2, found {warps}")
        if type(warps) is int and warps * _WARP > MOST_THREADS:  # as on every card, so that sweeps leave it out
            raise OutOfResources(warps * _WARP, MOST_THREADS, "threads")
        return result

    def _known(self) -> dict[Any, Any]:
        """The compiled kernels of the current device by executables."""
        return self.device_caches[driver.active.get_current_device()][0]

    def _compiled(self, executable: Any, bound: Bound, keywords: Mapping[str, Any], warmup: bool) -> Any:
        """The compiled kernel of an executable: the same object in each launch."""
        cache = self._known()
        found = cache.get(executable)
        if found is None:
            from weft.triton.compiler.compiler import ASTSource, CompiledKernel
            from weft.triton.runtime.hooks import compiled, listened

            began = time.perf_counter_ns()
            signature = signature_of(bound.parameters, bound.key, list(bound.values))
            options = Options(self.checked, disjoint(bound.extents), self._list.options(keywords))
            source = ASTSource.of(self, signature)
            found = cache[executable] = CompiledKernel(source, signature, options, executable, CURRENT.get())
            found.loaded()
            listened(found, began)
            compiled(found, warmup)
        return found


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    version: Any = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Any:
    """Makes a function a kernel: ``@triton.jit``, or with keywords.

    ``debug`` compiles assertions; ``version`` and ``noinline`` are kept and change nothing. ``launch_metadata`` is called where
    a launch hook reads its metadata, ``repr`` by profilers.
    """

    def decorate(function: Callable[..., Any]) -> JITFunction:
        plain = function.fn if isinstance(function, KernelFunction) else function
        return JITFunction(
            plain, version, do_not_specialize, do_not_specialize_on_alignment, debug, noinline, repr, launch_metadata
        )

    return decorate if fn is None else decorate(fn)
