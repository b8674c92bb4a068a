"""`weft.jit`: a Python function becomes a kernel that launches.

``kernel[grid](*args)`` classifies the arguments (`arguments`), finds code for their key and place in a dictionary, and
launches it: on the CPU's threads (`executable`), in the emulator (`emulated`), or on the card that has the arrays (`cuda`).
Compiling happens between the two, once for each key and place. Triton's keywords are accepted wherever Triton takes them;
those that tune code for a GPU change nothing here.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

from weft.frontend.signature import Argument
from weft.frontend.source import KernelFunction, References
from weft.ir.errors import CompilationError
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.arguments import Bound, Slot, bind, disjoint, signature_of
from weft.runtime.binding import Grid, GridLike, LaunchOptions, ParameterList, grid_of
from weft.runtime.captured import Held, captured
from weft.runtime.errors import OutOfResources
from weft.runtime.executable import Executable
from weft.runtime.keywords import check_keywords
from weft.runtime.launchers import Launcher, Placed, named_gpu
from weft.runtime.place import CURRENT, Place, card_of
from weft.runtime.plans import Call, Plans
from weft.runtime.shortcuts import Compiled, Known, Route
from weft.semantics import get as get_semantics
from weft.target import GpuTarget

if TYPE_CHECKING:
    from weft.emulator import Profile
    from weft.runtime.cuda import CardKernel
    from weft.runtime.emulated import EmulatedKernel
    from weft.runtime.handles import CompiledHandle, GpuHandle
    from weft.semantics import Semantics

Launchable: TypeAlias = "Executable | EmulatedKernel | CardKernel"

GridOf: TypeAlias = Grid | Callable[[dict[str, Any]], int | Sequence[int]]

Found: TypeAlias = tuple[Known, Sequence[Slot]]


@dataclass(frozen=True, slots=True)
class Lesson:
    """Facts that a route does not know yet."""

    route: Route
    facts: Hashable


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
        debug: bool | None = None,
    ):
        if fn.__code__.co_flags & inspect.CO_VARKEYWORDS:
            raise TypeError(f"JIT functions do not support **kwargs: name the parameters of '{fn.__name__}'")
        super().__init__(fn, None if semantics is None else get_semantics(semantics))
        self.checked = _checked_by_default() if checked is None else checked
        self.debug = debug
        self.knows_strides = False
        self._unspecialised = (tuple(do_not_specialize), tuple(do_not_specialize_on_alignment))
        self._executables = Compiled()
        self._compiled_from = References()
        self._lock = threading.RLock()

    @property
    def unspecialised(self) -> frozenset[str]:
        return self._list.unspecialised

    @cached_property
    def _list(self) -> ParameterList:
        return ParameterList(self, *self._unspecialised)

    def __getitem__(self, grid: GridLike) -> Launcher:
        """The launcher for a grid: sizes (1 to 3 ints), or a function of the dict of all arguments that returns
        them."""
        sizes: Any = grid
        if sizes.__class__ is tuple:  # as in most launches
            for size in sizes:
                if type(size) is not int:
                    break
            else:
                return self._of_sizes(sizes)
        return self._launcher(grid if callable(grid) else grid_of(self.name, grid))

    def _launcher(self, grid: GridOf) -> Launcher:
        native = self._plans.count and not callable(grid)
        launcher = Launcher(self._plans.function if native else self._launch_first, grid)
        launcher.kernel = self
        return launcher

    @cached_property
    def _of_sizes(self) -> Any:
        """The launcher for a grid of ints, and the last ones that were asked for."""

        @lru_cache(64)
        def launcher(sizes: tuple[int, ...]) -> Launcher:
            return self._launcher(grid_of(self.name, sizes))

        return launcher

    @cached_property
    def _plans(self) -> Plans:
        """The launches that Python takes no part in."""
        plans = Plans(self._launch_here)
        self._executables.forgotten = plans.clear
        return plans

    def on(self, target: str | GpuTarget) -> Placed[None]:
        """The kernel for launches on a GPU in the emulator: ``kernel.on("sm_90")[grid](...)``; see `weft.emulate`."""
        return Placed(self, self._emulated, target)

    def profile(self, target: str | GpuTarget) -> Placed[Profile]:
        """As `on`, for launches that return what the kernel did: ``kernel.profile("sm_90")[grid](...)`` is a
        `weft.emulator.Profile`, by instruction and by line of the kernel."""
        return Placed(self, self._profiled, target)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Kernels have no meaning without a grid: always `TypeError`."""
        raise TypeError(f"kernel '{self.name}' needs a grid: write {self.name}[grid](...), e.g. {self.name}[(1,)](...)")

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, as functions are

    def _launch_first(self, grid: GridOf, /, *args: Any, **keywords: Any) -> None:
        """Launches by a plan, or through Python: from launchers that are older than the plans, and on a grid that a function of
        all arguments gives."""
        if self._plans.count and callable(grid):
            try:
                named = self._list.named(*args, **keywords)
            except TypeError:
                pass
            else:
                grid = grid_of(self.name, grid(named))
        self._plans.function(grid, *args, **keywords)

    def _launch_here(self, grid: GridOf, /, *args: Any, **keywords: Any) -> None:
        """Runs the kernel where the arrays are; native code has the launches that fit a plan."""
        lesson = None
        if (arranged := self._arranged(args, keywords)) is not None:
            values, options = arranged
            if callable(grid):
                grid = self._sizes(grid, values)
            found = self._found(values, options)
            if isinstance(found, tuple):
                known, slots = found
                if grid[0] and grid[1] and grid[2]:
                    known.executable.run(slots, grid, None, (known, values))
                if (way := (len(args), *keywords)) not in known.calls and self._plans.may_grow():
                    call = Call(args, keywords, self._list.parameters, known.key)
                    if self._plan(known.executable, call):
                        known.calls.add(way)
                return
            lesson = found
        self._launch(None, None, grid, args, keywords, lesson)

    def _launch(
        self,
        target: GpuTarget | None,
        profiles: list[Profile] | None,
        grid: GridOf,
        args: tuple[Any, ...],
        keywords: Mapping[str, Any],
        lesson: Lesson | None = None,
    ) -> None:
        """Runs the kernel: in the emulator on ``target``, or where the arrays are. ``profiles`` gets what an emulated launch
        did."""
        executable, bound, sizes = self._prepared(target, grid, args, keywords)
        if lesson is not None:
            self._learn(lesson, executable, bound)
        if isinstance(executable, Executable) and bound.parameters is self._list.parameters:
            way = (executable.address, *bound.key, len(args), *keywords)
            if (
                self._executables.ways.may_ask(way)
                and self._plans.may_grow()
                and self._plan(executable, Call(args, keywords, bound.parameters, bound.key))
            ):
                self._executables.ways.add(way)
        if sizes[0] and sizes[1] and sizes[2]:
            profile = executable.launch(bound, sizes)
            if profiles is not None and profile is not None:
                profiles.append(profile)

    def captured(self, grid: GridOf, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Callable[[], None]:
        """See `Launcher.bind`."""
        grid = self._sizes(grid, self._list.values(args, keywords))
        while True:
            references = self._compiled_from
            executable, bound, sizes = self._prepared(None, grid, args, keywords)
            if references is self._compiled_from:  # else the code was compiled from something else
                return captured(Held(self.name, references, executable, bound, sizes))

    def _sizes(self, grid: GridOf, values: Sequence[Any]) -> Grid:
        """The sizes of a launch's grid, given a value for each parameter."""
        if callable(grid):
            return grid_of(self.name, grid(dict(zip(self._list.names, values, strict=True))))
        return grid

    def _arranged(
        self, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """A value for each parameter, and the other keywords, unchecked; None where the long way has to say what is wrong."""
        try:
            return self._list.arranged(*args, **keywords)
        except TypeError:
            return None

    def _found(self, values: tuple[Any, ...], options: dict[str, Any]) -> Found | Lesson | None:
        """The code and slots of a launch on this machine's CPU, where a route leads to them; a lesson where one could. What is
        wrong with arguments the long way says."""
        try:
            kinds: tuple[Any, ...] = tuple(map(type, values))
            kind = (*kinds, *options.items(), *map(type, options.values())) if options else kinds
            route = self._executables.routes.get(kind)
            if route is None:
                if not self.checked:
                    self._executables.add_route(kind, self.name, self._list.parameters, values)
                return None
            if CURRENT.get() is not None or self._compiled_from.moved():
                return None
            looked = route.look(*values)
        except (TypeError, RuntimeError):
            return None
        if looked is None:
            return None
        facts, slots = looked
        known = route.known.get(facts)
        if known is None:
            return Lesson(route, facts)
        executable, pick = known.executable, known.pick
        if pick is not None:
            slots = pick(slots)
        return known, (*slots, *executable.measures(route.extents(*values))) if executable.measured else slots

    def _learn(self, lesson: Lesson, executable: Launchable, bound: Bound) -> None:
        """Remembers where facts lead, unless the code was forgotten since, or needs more than slots."""
        if isinstance(executable, Executable) and not executable.checked:
            with self._lock:
                if any(known is executable for known in self._executables.values()):
                    lesson.route.learn(lesson.facts, executable, bound.key)

    def _plan(self, executable: Executable, call: Call) -> bool:
        """Makes a plan for launches like one that found ``executable``, unless the code was forgotten since. Returns False where
        that may be asked again."""
        with self._lock:
            references = self._compiled_from
            if references.moved() or all(one is not executable for one in self._executables.values()):
                return False
            before = self._plans.function
            decided = self._plans.add(executable, references, call)
            if self._plans.function is not before:
                self._of_sizes.cache_clear()  # its launchers have the function before
            return decided

    def _prepared(
        self, target: GpuTarget | None, grid: GridOf, args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[Launchable, Bound, Grid]:
        """The code for a launch, its arguments and its grid."""
        parameters = self._list
        values = parameters.values(args, keywords)
        grid = self._sizes(grid, values)
        bound = bind(self.name, parameters.parameters, values)
        place: Place = target or CURRENT.get()
        if bound.views:
            if place is None:
                place = card_of(self.name, bound.parameters, bound)
            if self.checked and place is None and not self.knows_strides:
                from weft.runtime.views import refuse_unknown_strides

                refuse_unknown_strides(self, bound.views, list(bound.values))
        return self._executable(place, bound, parameters.options(keywords)), bound, grid

    def _emulated(self, target: GpuTarget, grid: GridOf, /, *args: Any, **keywords: Any) -> None:
        self._launch(target, None, grid, args, keywords)

    def _profiled(self, target: GpuTarget, grid: GridOf, /, *args: Any, **keywords: Any) -> Profile:
        profiles: list[Profile] = []
        self._launch(target, profiles, grid, args, keywords)
        if not profiles:
            raise ValueError(f"kernel '{self.name}': the grid has no programs, so there is nothing to profile")
        return profiles[0]

    def _executable(self, place: Place, bound: Bound, launch: LaunchOptions) -> Launchable:
        if self._compiled_from.moved():
            self._forget()
        apart = disjoint(bound.extents)
        key = (place, apart, launch, *bound.key)
        if found := self._executables.get(key):
            return found
        with self._lock:
            if found := self._executables.get(key):
                return found
            signature = signature_of(bound.parameters, bound.key, list(bound.values))
            try:
                if not self._compiled_from.texts:
                    self._compiled_from = self.references()
                made = self._make(place, signature, Options(self.checked, apart, launch), bound)
            except (
                CompilationError,
                OutOfResources,
            ) as error:  # it shows the kernel's lines; the compiler's own would bury them
                raise error.with_traceback(None) from None
            for function in self._compiled_from.functions:
                if function.is_shown:  # functions of the library are compiled again and again
                    function.forget_tree()
            self._executables[key] = made
            return made

    def executable_for(self, bound: Bound) -> Executable:
        """The code for this machine's CPU for arguments of a known signature (`arguments.specialised`)."""
        made = self._executable(None, bound, ())
        assert isinstance(made, Executable)
        return made

    def _make(self, place: Place, signature: dict[str, Argument], options: Options, bound: Bound) -> Launchable:
        """Compiles the kernel and makes it ready for launches in a place."""
        if place is None:
            parameters, key = bound.parameters, bound.key  # the arrays are not kept

            def phase(name: str) -> Executable:
                half = compiler.artifact_for(self, signature, replace(options, phase=name))
                return Executable(self.name, half, parameters, key, False, more=True)

            artifact = compiler.artifact_for(self, signature, options)
            return Executable(
                self.name, artifact, parameters, key, self.checked, phases=phase if artifact.sums else None
            )
        options = replace(options, checked=False)  # the emulator checks every access anyway
        if isinstance(place, GpuTarget):
            from weft.runtime.emulated import EmulatedKernel

            return EmulatedKernel(self.name, compiler.gpu_artifact_for(self, signature, options, place), signature)
        if self.checked:
            raise TypeError(
                f"kernel '{self.name}' is checked, which launches on a card are not; weft.emulate checks every access, on "
                "arrays in the CPU's memory"
            )
        from weft.runtime.cuda import CardKernel
        from weft.runtime.cuda_device import device
        from weft.runtime.description import parameters_of

        card = device(place)
        code = compiler.gpu_artifact_for(self, signature, options, card.target)
        return CardKernel(self.name, code, parameters_of(signature), card)

    def _forget(self) -> None:
        """Notes what globals and helpers are now, and forgets code that was compiled for others."""
        with self._lock:
            before, self._compiled_from = self._compiled_from, self.references()
            self._executables.forget_ways()
            if before.texts != self._compiled_from.texts:
                self._executables.clear()

    @overload
    def compile(self, *args: Any, target: None = None, **keywords: Any) -> CompiledHandle: ...

    @overload
    def compile(self, *args: Any, target: str | GpuTarget, **keywords: Any) -> GpuHandle: ...

    def compile(self, *args: Any, target: str | GpuTarget | None = None, **keywords: Any) -> CompiledHandle | GpuHandle:
        """Compiles for the arguments without running; they are classified as in a launch. ``target`` is a GPU (``"sm_90"``);
        default: this machine's CPU. Arrays may be on a card if ``target`` is given."""
        values = self._list.values(args, keywords)
        bound = bind(self.name, self._list.parameters, values)
        launch = self._list.options(keywords)
        signature = signature_of(bound.parameters, bound.key, list(bound.values))
        options = Options(self.checked, disjoint(bound.extents), launch)
        place = None if target is None else named_gpu(target)
        if place is None and card_of(self.name, bound.parameters, bound) is not None:
            raise TypeError(
                f"kernel '{self.name}': the arrays are on a card; say what to compile for, such as target='sm_90'"
            )
        from weft.runtime.handles import CompiledHandle, GpuHandle

        made = self._executable(place, bound, launch)
        if isinstance(made, Executable):
            return CompiledHandle(self, signature, options, made)
        assert place is not None, "code of a GPU"
        return GpuHandle(self, signature, replace(options, checked=False), place, made.artifact)

    def warmup(self, *args: Any, grid: GridLike = (1,), **keywords: Any) -> CompiledHandle:
        """Triton's spelling of `compile`; ``grid`` changes nothing."""
        return self.compile(*args, target=None, **keywords)


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
    Triton's and change nothing; ``debug=True`` compiles assertions. `weft.runtime.keywords` has the reasons.
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
            debug=debug,
        )

    return decorate if fn is None else decorate(fn)
