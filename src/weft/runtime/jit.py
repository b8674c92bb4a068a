"""`weft.jit`: a Python function becomes a kernel that launches.

``kernel[grid](*args)`` classifies the arguments (`arguments`), finds code for their key in a dictionary, and hands
both to the threads (`executor`). Compiling happens between the two, once for each key. Triton's keywords are accepted
wherever Triton takes them; those that tune code for a GPU change nothing here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, overload

from weft.frontend.signature import Argument
from weft.frontend.source import KernelFunction, References
from weft.ir.errors import CompilationError
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.arguments import Bound, bind, disjoint, signature_of
from weft.runtime.binding import Grid, GridLike, LaunchOptions, ParameterList, grid_of
from weft.runtime.emulated import CURRENT, EmulatedKernel
from weft.runtime.executable import Executable
from weft.runtime.keywords import check_keywords
from weft.runtime.views import refuse_unknown_strides
from weft.semantics import Semantics
from weft.semantics import get as get_semantics
from weft.target import GpuTarget, host
from weft.target import gpu as gpu_of_name

if TYPE_CHECKING:
    from weft.codegen import GpuKernel
    from weft.emulator import Profile

GridOf: TypeAlias = Grid | Callable[[dict[str, Any]], int | Sequence[int]]

_TRUE: Final = frozenset({"1", "on", "true", "yes"})


def named_gpu(target: str | GpuTarget) -> GpuTarget:
    """A GPU by its name, or itself."""
    return gpu_of_name(target) if isinstance(target, str) else target


def _checked_by_default() -> bool:
    return os.environ.get("WEFT_CHECKED", "").lower() in _TRUE


class JITFunction(KernelFunction):
    """A kernel: launched as ``kernel[grid](*args)``, inlined where another kernel calls it.

    ``checked`` compiles a bounds check into every access (default: the environment variable ``WEFT_CHECKED``).
    A checked launch refuses a strided view whose strides the kernel cannot know (`weft.runtime.views`), unless ``knows_strides``
    is set: the kernel was generated for the strides of its arguments.
    ``do_not_specialize`` names parameters (or gives their indices) whose values shall not cause compilation, and
    ``do_not_specialize_on_alignment`` those whose divisibility by 16 shall not.

    ``semantics`` (a name that `weft.semantics.get` knows, or the object) says what dtype an operator of the kernel computes in
    and what it then does: with ``"jax"``, int8 and uint8 meet in int16 and ``//`` floors. Default: Triton's, and in a helper
    its caller's; a helper that names one keeps it wherever it is inlined.

    The source is read when the function is decorated. Globals that the kernel and its helpers read, and the helpers, are looked
    at in every launch: where one has changed, the kernel is compiled anew. (Triton raises RuntimeError for a changed global,
    and does not see a redefined helper.)
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        semantics: str | Semantics | None = None,
        checked: bool | None = None,
        do_not_specialize: Iterable[str | int] = (),
        do_not_specialize_on_alignment: Iterable[str | int] = (),
    ):
        super().__init__(fn, None if semantics is None else get_semantics(semantics))
        self.checked = _checked_by_default() if checked is None else checked
        self.knows_strides = False
        self._unspecialised = (tuple(do_not_specialize), tuple(do_not_specialize_on_alignment))
        self._executables: dict[Hashable, Executable] = {}
        self._emulated: dict[Hashable, EmulatedKernel] = {}
        self._compiled_from: References | None = None
        self._lock = threading.RLock()

    @cached_property
    def _list(self) -> ParameterList:
        return ParameterList(self, *self._unspecialised)

    def __getitem__(self, grid: GridLike) -> Callable[..., None]:
        """The launcher for a grid: sizes (1 to 3 ints), or a function of the dict of all arguments that returns
        them."""
        return partial(self._launch, grid if callable(grid) else grid_of(self.name, grid))

    def on(self, target: str | GpuTarget) -> Placed[None]:
        """The kernel for launches on a GPU in the emulator: ``kernel.on("sm_90")[grid](...)``; see `weft.emulate`."""
        return Placed(self, self._launch_emulated, target)

    def profile(self, target: str | GpuTarget) -> Placed[Profile]:
        """As `on`, for launches that return what the kernel did: ``kernel.profile("sm_90")[grid](...)`` is a
        `weft.emulator.Profile`, by instruction and by line of the kernel."""
        return Placed(self, self._profiled, target)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Kernels have no meaning without a grid: always `TypeError`."""
        raise TypeError(f"kernel '{self.name}' needs a grid: write {self.name}[grid](...), e.g. {self.name}[(1,)](...)")

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, as functions are

    def _launch(self, grid: GridOf, /, *args: Any, **keywords: Any) -> None:
        if (target := CURRENT.get()) is not None:
            self._launch_emulated(target, grid, *args, **keywords)
            return
        parameters = self._list
        values = parameters.values(args, keywords)
        if callable(grid):
            grid = grid_of(self.name, grid(dict(zip(parameters.names, values, strict=True))))
        bound = bind(self.name, parameters.parameters, values)
        if self.checked and bound.views and not self.knows_strides:
            refuse_unknown_strides(self, bound.views, values)
        executable = self._executable(bound, values, parameters.options(keywords))
        if grid[0] and grid[1] and grid[2]:
            executable.launch(bound, grid)

    def _executable(self, bound: Bound, values: Sequence[Any], launch: LaunchOptions) -> Executable:
        if self._compiled_from is not None and self._compiled_from.moved():
            self._forget()
        apart = disjoint(bound.extents)
        key = (apart, launch, *bound.key)
        if found := self._executables.get(key):
            return found
        with self._lock:
            if found := self._executables.get(key):
                return found
            signature = signature_of(self._list.parameters, bound.key, values)
            try:
                if self._compiled_from is None:
                    self._compiled_from = self.references()
                artifact = compiler.artifact_for(self, signature, Options(self.checked, apart, launch))
            except CompilationError as error:  # it shows the kernel's lines; the compiler's own would bury them
                raise error.with_traceback(None) from None
            executable = Executable(self.name, artifact, self._list.parameters, bound.key, self.checked)
            self._executables[key] = executable
            return executable

    def _launch_emulated(self, target: GpuTarget, grid: GridOf, /, *args: Any, **keywords: Any) -> None:
        self._emulate(target, grid, args, keywords)

    def _profiled(self, target: GpuTarget, grid: GridOf, /, *args: Any, **keywords: Any) -> Profile:
        profile = self._emulate(target, grid, args, keywords)
        if profile is None:
            raise ValueError(f"kernel '{self.name}': the grid has no programs, so there is nothing to profile")
        return profile

    def _emulate(
        self, target: GpuTarget, grid: GridOf, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Profile | None:
        """Launches in the emulator; None for a grid without programs."""
        parameters = self._list
        values = parameters.values(args, keywords)
        if callable(grid):
            grid = grid_of(self.name, grid(dict(zip(parameters.names, values, strict=True))))
        bound = bind(self.name, parameters.parameters, values)
        kernel = self._emulated_kernel(target, bound, values, parameters.options(keywords))
        return kernel.launch(bound, grid) if grid[0] and grid[1] and grid[2] else None

    def _emulated_kernel(
        self, target: GpuTarget, bound: Bound, values: Sequence[Any], launch: LaunchOptions
    ) -> EmulatedKernel:
        if self._compiled_from is not None and self._compiled_from.moved():
            self._forget()
        apart = disjoint(bound.extents)
        key = (target, apart, launch, *bound.key)
        with self._lock:
            if found := self._emulated.get(key):
                return found
            signature = signature_of(self._list.parameters, bound.key, values)
            try:
                if self._compiled_from is None:
                    self._compiled_from = self.references()
                kernel = EmulatedKernel(self, signature, Options(False, apart, launch), target)
            except CompilationError as error:
                raise error.with_traceback(None) from None
            self._emulated[key] = kernel
            return kernel

    def _forget(self) -> None:
        """Notes what globals and helpers are now, and forgets code that was compiled for others."""
        with self._lock:
            before, self._compiled_from = self._compiled_from, self.references()
            if before is None or before.texts != self._compiled_from.texts:
                self._executables.clear()
                self._emulated.clear()

    @overload
    def compile(self, *args: Any, target: None = None, **keywords: Any) -> CompiledHandle: ...

    @overload
    def compile(self, *args: Any, target: str | GpuTarget, **keywords: Any) -> GpuHandle: ...

    def compile(self, *args: Any, target: str | GpuTarget | None = None, **keywords: Any) -> CompiledHandle | GpuHandle:
        """Compiles for the arguments without running; they are classified as in a launch. ``target`` is a GPU (``"sm_90"``);
        default: this machine's CPU."""
        values = self._list.values(args, keywords)
        bound = bind(self.name, self._list.parameters, values)
        launch = self._list.options(keywords)
        signature = signature_of(self._list.parameters, bound.key, values)
        if target is not None:
            gpu = named_gpu(target)
            emulated = self._emulated_kernel(gpu, bound, values, launch)
            return GpuHandle(self, signature, Options(False, disjoint(bound.extents), launch), gpu, emulated.code)
        options = Options(self.checked, disjoint(bound.extents), launch)
        return CompiledHandle(self, signature, options, self._executable(bound, values, launch))

    def warmup(self, *args: Any, grid: GridLike = (1,), **keywords: Any) -> CompiledHandle:
        """Triton's spelling of `compile`; ``grid`` changes nothing."""
        return self.compile(*args, target=None, **keywords)


Result = TypeVar("Result")


class Placed(Generic[Result]):
    """A kernel with the GPU on which its launches are emulated."""

    def __init__(self, kernel: JITFunction, launch: Callable[..., Result], target: str | GpuTarget):
        self.kernel = kernel
        self.target = named_gpu(target)
        self._launch = launch

    def __getitem__(self, grid: GridLike) -> Callable[..., Result]:
        """The launcher for a grid, as `JITFunction.__getitem__`."""
        chosen = grid if callable(grid) else grid_of(self.kernel.name, grid)
        return partial(self._launch, self.target, chosen)


class CompiledHandle:
    """What a kernel was compiled to, for reading: the ``semantics`` it was compiled under, and its texts, which are made
    when asked for."""

    def __init__(self, kernel: JITFunction, signature: dict[str, Argument], options: Options, executable: Executable):
        self.kernel = kernel
        self.signature = signature
        self.options = options
        self.executable = executable
        self.semantics = get_semantics("triton") if kernel.semantics is None else kernel.semantics

    def __repr__(self) -> str:
        return f"<compiled {self.kernel.name}, semantics {self.semantics}>"

    @cached_property
    def ir(self) -> str:
        """The frontend's tile IR."""
        return str(compiler.tile_ir(self.kernel, self.signature))

    @cached_property
    def llvm(self) -> str:
        """The LLVM IR that codegen emits, before LLVM's passes."""
        return compiler.llvm_ir(self.kernel, self.signature, self.options, host())

    @cached_property
    def asm(self) -> str:
        """The host's assembly."""
        return compiler.assembly(self.kernel, self.signature, self.options, host())


class GpuHandle:
    """What a kernel was compiled to for a GPU, for reading and for launches by other code.

    A launch has as many blocks as programs, of ``threads`` each, with ``shared`` bytes of dynamic shared memory. The parameters
    of ``symbol`` are the run-time arguments in order: addresses of 64 bits, integers and floats of their width; a bool is a byte.
    """

    def __init__(
        self, kernel: JITFunction, signature: dict[str, Argument], options: Options, target: GpuTarget, code: GpuKernel
    ):
        self.kernel = kernel
        self.signature = signature
        self.options = options
        self.target = target
        self.ptx = code.ptx
        self.symbol = code.symbol
        self.threads = code.threads
        self.shared = code.shared

    def __repr__(self) -> str:
        return f"<compiled {self.kernel.name} for {self.target.name}>"

    @cached_property
    def tile_ir(self) -> str:
        """The frontend's tile IR."""
        return str(compiler.tile_ir(self.kernel, self.signature))

    @cached_property
    def laid_out(self) -> str:
        """The tile IR after the passes: every tile has a layout, conversions, scratch and barriers are explicit."""
        return str(compiler.laid_out(self.kernel, self.signature, self.options, self.target))

    @cached_property
    def llvm(self) -> str:
        """The LLVM IR that codegen emits, before LLVM's passes."""
        return compiler.llvm_ir(self.kernel, self.signature, self.options, self.target)


@overload
def jit(fn: Callable[..., Any], /) -> JITFunction: ...


@overload
def jit(
    *,
    semantics: str | Semantics | None = None,
    checked: bool | None = None,
    do_not_specialize: Iterable[str | int] | None = None,
    do_not_specialize_on_alignment: Iterable[str | int] | None = None,
    version: Any = None,
    repr: Any = None,
    launch_metadata: Any = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[Callable[..., Any]], JITFunction]: ...


def jit(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    semantics: str | Semantics | None = None,
    checked: bool | None = None,
    do_not_specialize: Iterable[str | int] | None = None,
    do_not_specialize_on_alignment: Iterable[str | int] | None = None,
    version: Any = None,
    repr: Any = None,
    launch_metadata: Any = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> JITFunction | Callable[[Callable[..., Any]], JITFunction]:
    """Makes a function a kernel: ``@jit``, or ``@jit(semantics="jax", checked=True, ...)``; see `JITFunction`.

    Raises `TypeError` for a value that its keyword does not take. ``version``, ``repr``, ``launch_metadata`` and ``noinline`` are
    Triton's and change nothing; ``debug=True`` is refused. `weft.runtime.keywords` has the reasons.
    """
    check_keywords(
        {
            "semantics": semantics,
            "checked": checked,
            "do_not_specialize": do_not_specialize,
            "do_not_specialize_on_alignment": do_not_specialize_on_alignment,
            "version": version,
            "repr": repr,
            "launch_metadata": launch_metadata,
            "debug": debug,
            "noinline": noinline,
        }
    )
    system = None if semantics is None else get_semantics(semantics)

    def decorate(function: Callable[..., Any]) -> JITFunction:
        if isinstance(function, JITFunction):
            function = function.fn
        return JITFunction(
            function,
            semantics=system,
            checked=checked,
            do_not_specialize=do_not_specialize or (),
            do_not_specialize_on_alignment=do_not_specialize_on_alignment or (),
        )

    return decorate if fn is None else decorate(fn)
