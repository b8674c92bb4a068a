"""Launches that Python takes no part in.

A launch through Python takes 5 us, most of them for what it asks of each argument (`weft.runtime.shortcuts`). Where a kernel is
launched again with arguments of the same kind, native code asks the same in 0.2 us, and runs the kernel (`direct_code`). What
it asks is written down as a *plan*, when a launch has gone the way through Python and found code that was there:

| asked of | what |
|---|---|
| the call | as many values by position, and the same names in the same order |
| globals and helpers that the kernel reads | the same objects |
| a NumPy array, a tensor of PyTorch | its dtype, its address modulo 16, whether it may be written; whether two share bytes |
| a run-time int of 32 bits | whether 16 divides it; that it is not 1, where that is a constant |
| a float, a bool | its type |
| compile-time values, None, options of the launch | the same object, or an int of the same value |

The answers decide the classification (`weft.runtime.arguments`), so the plan's code is the right one. Everything else goes
through Python: a launch that fits no plan, other arguments (descriptors, tuples, NumPy's scalars), checked kernels and kernels
that print, launches in other threads than the main one, within another launch (signal handlers), or in the emulator.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from weft.dtypes import DType
from weft.frontend.source import MISSING, KernelFunction
from weft.language.core import ConstexprFunction
from weft.runtime import direct_words as code
from weft.runtime import executor, tensors
from weft.runtime.arguments import disjoint
from weft.runtime.direct import POOL, SLOTS, Process, block_of, process, words_of
from weft.runtime.memory import Memory, memory_of

if TYPE_CHECKING:
    from weft.frontend.source import References
    from weft.runtime.arguments import Parameter, Token
    from weft.runtime.executable import Executable

MOST_PLANS: Final = 16
"""Plans of a kernel. Launches of further kinds go through Python, as all do whose plan would have to push out another's."""

_FIRST: Final = code.KERNEL.index("first")
_NEXT: Final = code.PLAN.index("next")


class Call(NamedTuple):
    """How a kernel was called: the arguments by position and by name, and for each parameter what it was classified as."""

    args: tuple[Any, ...]
    keywords: Mapping[str, Any]
    parameters: Sequence[Parameter]
    key: Sequence[Token]


class _Plan:
    """A plan, with the memory of its block and all objects that it names, of arrays only the dtypes. ``block`` stays where it
    is."""

    def __init__(
        self, shared: Process, executable: Executable, references: References, call: Call, values: list[_Value]
    ):
        self._shared, self._executable = shared, executable
        arrays = sorted((value for value in values if value.is_array), key=lambda value: value.slot)
        extents = [value.memory.extent or (0, 0) for value in arrays]
        modes = tensors.modes() if any(value.kind == code.TENSOR for value in arrays) else None
        order = sorted(range(len(arrays)), key=extents.__getitem__)
        looks: list[tuple[object, object, object]] = [*references.places, (vars(executor), "pool", POOL)]
        self._objects: list[object] = [*looks, *call.keywords]
        self._objects += [value.value.dtype if value.is_array else value.value for value in values]
        places = [
            (0 if names is None else id(names), id(name), 0 if value is MISSING else id(value))
            for names, name, value in looks
        ]
        tables = {
            "names": [id(name) for name in call.keywords],
            "records": [word for value in values for word in value.record(arrays)],
            "places": [word for place in places for word in place],
            "order": order,
            "bounds": [0] * (2 * len(arrays)),
            "which": executable.measured,
        }
        self._tables = {name: words_of(words) for name, words in tables.items()}
        self.block = block_of(
            code.PLAN,
            {
                **{name: ctypes.addressof(table) for name, table in self._tables.items()},
                "next": 0,
                "positional": len(call.args),
                "keywords": len(call.keywords),
                "values": len(values),
                "modes": id(self._keep(modes)) if modes else 0,
                "looks": len(looks),
                "arrays": len(arrays),
                "apart": disjoint(extents),
                "measured": len(executable.measured),
                "behind": sum(value.slot >= 0 for value in values),
                "least": executable.least,
                "entry": executable.address,
                "pace": ctypes.addressof(executable.pace),
                "owner": id(self),
                "scratch": executable.scratch,
                "finish": id(self._keep(self._finish)),
                "rejoin": id(self._keep(self._rejoin)),
                "spread": id(self._keep(self._spread)),
            },
        )
        self.address = ctypes.addressof(self.block)

    def _keep(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self._objects.append(function)
        return function

    def _finish(self, status: int) -> None:
        """Ends a launch whose code returned ``status``, or was asked to pause."""
        _disarm()
        self._executable.end(self._shared.workspace, status)

    def _rejoin(self, status: int) -> None:
        """Ends a launch that native code shared with workers, and gave ``status``. Where this raises, native code stops the
        launch and waits."""
        _disarm()
        self._executable.rejoin(self._shared.workspace, status)

    def _spread(self, /, *args: Any, **keywords: Any) -> None:
        """Runs the rest of a launch on several threads."""
        workspace = self._shared.take()
        self._executable.spread(workspace, (self, args, keywords))
        self._shared.give(workspace)  # after an exception workers may still use it


def _disarm() -> None:
    """Tells the watch that the main thread is back."""
    watch = POOL().watch
    watch.leading = None  # an exception may have left both as they were
    if watch.handler.installed:
        watch.disarm()


class _Value(NamedTuple):
    """A value of a call: its kind, its slot (-1: none), the object itself, and what `direct_code.RECORD` says of it; ``stays``:
    an array may not move."""

    kind: int
    slot: int
    value: Any
    of16: int = code.ANY
    excludes_one: bool = False
    flags: int = 0
    stays: bool = False

    @property
    def is_array(self) -> bool:
        """Whether it has elements in memory."""
        return self.kind in (code.ARRAY, code.TENSOR)

    @property
    def memory(self) -> Memory:
        """Where an array's elements are."""
        memory = memory_of(self.value)
        assert memory is not None, "an array, which was launched with"
        return memory

    def record(self, arrays: list[_Value]) -> tuple[int, ...]:
        """The words."""
        if not self.is_array:
            what = int(self.value) if self.kind == code.NUMBER else id(self.value)
            return self.kind, self.slot, what, 0, self.of16, int(self.excludes_one), 0, 0, 0, 0, 0
        place = next(at for at, one in enumerate(arrays) if one is self)
        memory = self.memory
        at = memory.address if self.stays else 0
        kind, what, read = cast("type[object]", type(self.value)), id(self.value.dtype), 0
        if self.kind == code.TENSOR:
            read, what = tensors.reader(kind), tensors.dtype_word(self.value)
        size = memory.dtype.itemsize
        return self.kind, self.slot, what, size, self.of16, 0, place, at, self.flags, id(kind), read


_KINDS: Final[dict[tuple[type, str], int]] = {
    (float, "float32"): code.FLOAT,
    (float, "float64"): code.DOUBLE,
    (bool, "bool"): code.BOOL,
    (int, "int32"): code.INT,
    (np.ndarray, "*"): code.ARRAY,
}
"""By a value's type and its token, without what is said of 16, or of an array's dtype."""


def _value_of(parameter: Parameter, token: Token, slot: int, value: Any, written: Sequence[str]) -> _Value | None:
    """How native code looks at a value; None where it does not."""
    if not isinstance(token, str):
        return _constant(value)
    plain, _, divides = token.partition(":")
    type_, word = cast("type[object]", type(value)), "*" if plain.startswith("*") else plain
    kind = _KINDS.get((type_, word))
    if kind is None and word == "*" and tensors.reader(type_):
        kind = code.TENSOR
    if kind is None:
        return None
    aligns = parameter.align and kind in (code.INT, code.ARRAY, code.TENSOR)
    of16 = (code.YES if divides else code.NO) if aligns else code.ANY
    flags = code.ALIGNED | (code.WRITABLE if parameter.name in written else 0)
    return _Value(kind, slot, value, of16, parameter.specialise, flags)


_IMMUTABLE: Final = (
    bool,
    str,
    float,
    DType,
    type,
    type(None),
    FunctionType,
    KernelFunction,
    ConstexprFunction,
    Enum,
    np.generic,
    np.dtype,
)
"""Types of constants that mean the same as long as they are the same object, besides tuples of them."""


def _is_immutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_immutable, cast("tuple[Any, ...]", value)))
    return type(value) is int or isinstance(value, _IMMUTABLE)


def _constant(value: Any) -> _Value | None:
    """An int by its value, anything else by the object; None for an object that may change (a `constexpr` whose value is
    assigned)."""
    if not _is_immutable(value):
        return None
    is_number = type(value) is int and -(2**63) < value < 2**63
    return _Value(code.NUMBER if is_number else code.SAME, -1, value)


def _values_of(call: Call, written: Sequence[str]) -> list[_Value] | None:
    """How native code looks at the values of a call, in its order; None where it does not. ``written`` are the parameters that
    the kernel may write through."""
    numbers = itertools.count()
    given = {
        parameter.name: (parameter, token, next(numbers) if isinstance(token, str) else -1)
        for parameter, token in zip(call.parameters, call.key, strict=True)
    }
    names = [*list(given)[: len(call.args)], *call.keywords]
    values = [
        _value_of(*given[name], value, written) if name in given else _constant(value)
        for name, value in zip(names, [*call.args, *call.keywords.values()], strict=True)
    ]
    left_out = given.keys() - set(names)
    if None in values or any(given[name][2] >= 0 for name in left_out):  # a default that needs a slot
        return None
    return [value for value in values if value is not None]


class Plans:
    """The plans of one kernel, and the ``function`` that launches it: Python's, until there is a plan. With ``held``, a grid and
    the arguments, the function repeats one launch, of arrays that have not moved."""

    def __init__(self, slow: Callable[..., None], held: tuple[Any, ...] = ()) -> None:
        self.function: Callable[..., None] = slow
        self._slow = slow
        self._held, self._items = held, words_of([id(item) for item in held])
        self._plans: list[_Plan] = []
        self._block: ctypes.Array[ctypes.c_int64] | None = None

    @property
    def count(self) -> int:
        """How many plans there are, `MOST_PLANS` at most."""
        return len(self._plans)

    def clear(self) -> None:
        """Forgets all plans."""
        if self._block is not None:
            self._block[_FIRST] = 0
        self._plans.clear()

    def may_grow(self) -> bool:
        """Whether there may be another plan now: the main thread alone launches directly, and its launch might begin between any
        two steps of another one that makes a plan."""
        return len(self._plans) < MOST_PLANS and threading.current_thread() is threading.main_thread()

    def add(self, executable: Executable, references: References, call: Call) -> bool:
        """Makes a plan for launches like one that has just found ``executable``, compiled from ``references``, where it can.
        Returns False where it could another time."""
        if not self.may_grow():
            return False
        shared = process()
        if shared is None or not executable.is_plain or executable.slots > SLOTS:
            return True
        if not all(mapping is None or type(mapping) is dict for mapping, _, _ in references.places):
            return True  # a class's names are a view of a dict
        values = _values_of(call, executable.written)
        if values is not None and self._held:
            values = [value._replace(stays=True) for value in values]
        if values is None:
            return True
        if not shared.reserve(executable.scratch):
            return False
        plan = _Plan(shared, executable, references, call, values)
        block = self._block or self._begin(shared)
        plan.block[_NEXT] = block[_FIRST]
        block[_FIRST] = plan.address
        self._plans.append(plan)
        return True

    def _begin(self, shared: Process) -> ctypes.Array[ctypes.c_int64]:
        """Makes the function native."""
        held = ctypes.addressof(self._items) if self._held else 0
        words = {"process": shared.address, "first": 0, "slow": id(self._slow), "held": held, "count": len(self._held)}
        self._block = block = block_of(code.KERNEL, words)
        address = ctypes.addressof(block).to_bytes(8, "little")
        self.function = shared.function((address, self, block, shared))
        return block
