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
from typing import Any, Final, overload

from weft.frontend.signature import Argument
from weft.frontend.source import KernelFunction, References
from weft.ir.errors import CompilationError
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.arguments import Bound, bind, disjoint, signature_of
from weft.runtime.binding import Grid, GridLike, LaunchOptions, ParameterList, grid_of
from weft.runtime.executable import Executable
from weft.runtime.keywords import check_keywords
from weft.runtime.views import refuse_unknown_strides
from weft.semantics import Semantics
from weft.semantics import get as get_semantics

_TRUE: Final = frozenset({"1", "on", "true", "yes"})


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
        self._compiled_from: References | None = None
        self._lock = threading.RLock()

    @cached_property
    def _list(self) -> ParameterList:
        return ParameterList(self, *self._unspecialised)

    def __getitem__(self, grid: GridLike) -> Callable[..., None]:
        """The launcher for a grid: sizes (1 to 3 ints), or a function of the dict of all arguments that returns
        them."""
        return partial(self._launch, grid if callable(grid) else grid_of(self.name, grid))

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Kernels have no meaning without a grid: always `TypeError`."""
        raise TypeError(f"kernel '{self.name}' needs a grid: write {self.name}[grid](...), e.g. {self.name}[(1,)](...)")

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, as functions are

    def _launch(
        self, grid: Grid | Callable[[dict[str, Any]], int | Sequence[int]], /, *args: Any, **keywords: Any
    ) -> None:
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

    def _forget(self) -> None:
        """Notes what globals and helpers are now, and forgets code that was compiled for others."""
        with self._lock:
            before, self._compiled_from = self._compiled_from, self.references()
            if before is None or before.texts != self._compiled_from.texts:
                self._executables.clear()

    def compile(self, *args: Any, **keywords: Any) -> CompiledHandle:
        """Compiles for the arguments without running; they are classified as in a launch."""
        values = self._list.values(args, keywords)
        bound = bind(self.name, self._list.parameters, values)
        launch = self._list.options(keywords)
        executable = self._executable(bound, values, launch)
        signature = signature_of(self._list.parameters, bound.key, values)
        options = Options(self.checked, disjoint(bound.extents), launch)
        return CompiledHandle(self, signature, options, executable)

    def warmup(self, *args: Any, grid: GridLike = (1,), **keywords: Any) -> CompiledHandle:
        """Triton's spelling of `compile`; ``grid`` changes nothing."""
        return self.compile(*args, **keywords)


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
        return compiler.llvm_ir(self.kernel, self.signature, self.options)

    @cached_property
    def asm(self) -> str:
        """The host's assembly."""
        return compiler.assembly(self.kernel, self.signature, self.options)


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
