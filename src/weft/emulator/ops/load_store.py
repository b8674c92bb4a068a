"""ld and st (PTX ISA 9.7.9.8 to 9.7.9.12), in all spaces and widths.

What of a kernel's parameters is named directly is a constant of the launch. What a function passes to another in the param space
are arrays of bytes of the threads' own. Everything else goes through `weft.emulator.memory`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.machine.binding import Binding
from weft.emulator.machine.symbols import size_of
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.native import quick, quick_global
from weft.emulator.ops.data import SPACES
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.syntax import Address, Operand, Sink, Symbol
from weft.emulator.ptx.types import STORAGE, Type

NO_MEANING: Final = frozenset(
    {
        "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "weak", "mmio", "unified",
        "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
        "L2::evict_normal", "L2::evict_first", "L2::evict_last",
        "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B",
        "cta", "cluster", "gpu", "sys",
    }
)  # fmt: skip
"""Nothing is cached, so scopes change no value; the race detector looks at them."""

NARROW: Final = frozenset({"cta", "cluster"})
"""Scopes without threads of other blocks: a cluster is one."""

SEMANTICS: Final = ("volatile", "relaxed", "acquire", "release")
"""Modifiers of strong accesses."""

_VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}


class _Form:
    """The modifiers of an ld or st."""

    def __init__(self, b: Binding, *more: str) -> None:
        b.only(*NO_MEANING, *SEMANTICS, *SPACES, *_VECTORS, "param::func", *more)
        self.kind = b.type()
        spaces = [m for m in b.modifiers if m in SPACES or m == "param::func"]
        self.space = SPACES.get(spaces[0], Space.PARAM) if spaces else None
        self.count = next((n for name, n in _VECTORS.items() if name in b.modifiers), 1)
        self.semantics = next((m for m in b.modifiers if m in SEMANTICS), "")
        self.wide = NARROW.isdisjoint(b.modifiers)
        if self.kind.bits == 1:
            b.wrong("predicates cannot be loaded or stored")
        self.size = self.kind.bytes * self.count
        self.width = min(self.kind.bytes, 8)
        if self.size > 32:
            b.wrong(f"an access of {self.size} bytes; at most 32 can be accessed at once")

    def access(
        self, site: int, space: Space, kind: Kind, threads: IndexArray, addresses: NDArray[np.uint64]
    ) -> AccessBatch:
        """The accesses of some threads."""
        strong, element = bool(self.semantics), self.kind.bytes
        return AccessBatch(
            site, space, kind, threads, addresses, self.size, strong=strong, wide=self.wide, element=element
        )


@instruction("ld", "ldu")
def ld(b: Binding) -> Step:
    form = _Form(b)
    b.count(2, 3)
    parts = b.elements(0)
    b.require(len(parts) == form.count, f"{len(parts)} results for {form.count} values")
    put = _putter(b, parts, form.kind)
    if (named := _parameter(b, form, 1)) is not None:
        source = named

        def load_parameter(active: Active) -> None:
            put(source()[active.index] if source().shape[0] != 1 else source(), active)

        return load_parameter
    address = b.address(1, form.space)
    execution, site = b.execution, b.site

    natively = _quick(b, form, 1, parts, False)

    def run(active: Active) -> None:
        if natively is not None and natively(active):
            return
        memory = execution.memory
        threads, addresses = _chosen(active, address())
        if form.space is not None:
            put(_load(memory, threads, addresses, form.space), active)
            return
        found = memory.resolve(addresses)
        if len(found) == 1:
            put(_load(memory, threads, found[0][2], found[0][0]), active)
            return
        words = form.size // form.width
        values = np.zeros((threads.size, words) if words > 1 else threads.size, f"u{form.width}")
        for space, where, within in found:
            values[where] = _load(memory, threads[where], within, space)
        put(values, active)

    def _load(memory: Any, threads: IndexArray, addresses: NDArray[np.uint64], space: Space) -> NDArray[Any]:
        access = form.access(site, space, Kind.READ, threads, addresses)
        values = memory.load(access, form.width)
        execution.counters.access(access)
        if form.semantics:
            execution.order.communicate(access, _SEMANTICS[form.semantics])
        return values

    return run


@instruction("st")
def st(b: Binding) -> Step:
    return store(b)


def store(b: Binding, *more: str) -> Step:
    """An st, or another instruction that does the same: with ``more`` modifiers."""
    form = _Form(b, *more)
    b.count(2, 3)
    parts = b.elements(1)
    b.require(len(parts) == form.count, f"{len(parts)} values, expected {form.count}")
    get = _getter(b, parts, form)
    if (named := _parameter(b, form, 0)) is not None:
        target = named

        def store_parameter(active: Active) -> None:
            window = target()
            window[active.index] = get(active).reshape(-1, window.shape[1])

        return store_parameter
    address = b.address(0, form.space)
    execution, site = b.execution, b.site

    natively = _quick(b, form, 0, parts, True)

    def run(active: Active) -> None:
        if natively is not None and natively(active):
            return
        threads, addresses = _chosen(active, address())
        values = get(active)
        if form.space is not None:
            _store(threads, addresses, values, form.space)
            return
        for space, where, within in execution.memory.resolve(addresses):
            if where is None:
                _store(threads, within, values, space)
            else:
                _store(threads[where], within, values[where], space)

    def _store(threads: IndexArray, addresses: NDArray[np.uint64], values: NDArray[Any], space: Space) -> None:
        access = form.access(site, space, Kind.WRITE, threads, addresses)
        execution.memory.store(access, form.width, values)
        execution.counters.access(access)
        if form.semantics:
            execution.order.communicate(access, _SEMANTICS[form.semantics])

    return run


def _quick(
    b: Binding, form: _Form, place: int, parts: tuple[Operand, ...], writes: bool
) -> Callable[[Active], bool] | None:
    """A plain access to shared or global memory, by native code: whether it was made."""
    execution = b.execution
    if form.semantics:
        return None
    if form.space is Space.SHARED and execution.shared_order is not None:
        if (site := quick.site_of(b, b.operand(place), parts, form.kind, writes)) is None:
            return None
        return lambda active: execution.quick is not None and execution.quick.access(site, active)
    if form.space is Space.GLOBAL and quick_global.takes_part(execution):
        if (there := quick_global.site_of(b, b.operand(place), parts, form.kind, writes)) is None:
            return None
        return lambda active: execution.quick_global is not None and execution.quick_global.access(there, active)
    return None


_SEMANTICS: Final = {"volatile": "relaxed", "relaxed": "relaxed", "acquire": "acquire", "release": "release"}


def _chosen(active: Active, addresses: NDArray[np.uint64]) -> tuple[IndexArray, NDArray[np.uint64]]:
    threads = active.index
    return threads, addresses if active.full else addresses[threads]


def _parameter(b: Binding, form: _Form, place: int) -> Callable[[], NDArray[Any]] | None:
    """The (T, words) window of a parameter named directly, (1, words) of a kernel's own; None if it is another access."""
    operand = b.operand(place)
    if form.space is not Space.PARAM or not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        return None
    name, offset = operand.base.name, operand.base.offset + operand.offset
    if b.variable_map.space(b.function, name) is Space.PARAM:
        start = b.variable_map.addresses[b.function.name, name] + offset
        data = b.execution.memory.heaps[Space.PARAM].bytes[start : start + form.size]
        _within(b, name, offset, form)
        constant = data.view(f"u{form.width}").reshape(1, -1) if start % form.width == 0 else None
        if constant is None:
            b.wrong(f"parameter {name} is read at byte {offset}, which is no multiple of {form.width}")
        return lambda: constant
    _within(b, name, offset, form)
    array = b.execution.parameter(b.function.name, name, _size(b, name))
    if offset % form.width or array.shape[1] % form.width:
        columns = array[:, offset : offset + form.size]
        return lambda: columns.copy().view(f"u{form.width}")
    window = array.view(f"u{form.width}")[:, offset // form.width : (offset + form.size) // form.width]
    return lambda: window


def _size(b: Binding, name: str) -> int:
    declared = (*b.function.variables, *b.function.parameters, *b.function.results)
    variable = next((v for v in declared if v.name == name), None)
    if variable is None:
        b.wrong(f"there is no parameter '{name}' in function '{b.function.name}'")
    return size_of(variable)


def _within(b: Binding, name: str, offset: int, form: _Form) -> None:
    size = _size(b, name)
    if not 0 <= offset <= size - form.size:
        b.wrong(f"bytes {offset} to {offset + form.size - 1} of parameter {name}, which has {size}")


def _putter(b: Binding, parts: tuple[Operand, ...], kind: Type) -> Callable[[NDArray[Any], Active], None]:
    """How loaded words, (N,) or (N, words) or (1, words) for all, get into the registers of the active threads."""
    wide = kind.bits == 128
    targets = [(i, b.extend(part, kind)) for i, part in enumerate(parts) if not isinstance(part, Sink)]
    threads = b.execution.threads
    storage = STORAGE[kind.bits]

    def put(values: NDArray[Any], active: Active) -> None:
        columns = values if values.ndim == 2 else values[:, None]
        all_threads = columns.shape[0] == threads
        for i, extend in targets:
            words = columns[:, 2 * i : 2 * i + 2] if wide else columns[:, i]
            if all_threads and active.full:
                full = np.ascontiguousarray(words)
            elif columns.shape[0] == 1 and not wide:
                full = np.full(threads, words[0], storage)
            else:
                full = np.zeros((threads, 2) if wide else threads, storage)
                full[active.index] = words
            extend(full, active)

    return put


def _getter(b: Binding, parts: tuple[Operand, ...], form: _Form) -> Callable[[Active], NDArray[Any]]:
    """The words to store of the active threads: (N,), or (N, words)."""
    sources = [b.read(part, form.kind) for part in parts]
    threads, storage = b.execution.threads, STORAGE[form.kind.bits]
    if form.kind.bits == 128:
        return lambda active: np.concatenate([np.broadcast_to(s, (threads, 2))[active.index] for s in sources], axis=1)
    views = [np.broadcast_to(s.view(storage), (threads,)) for s in sources]
    if len(views) == 1:
        (only,) = views
        return lambda active: only.copy() if active.full else only[active.index]

    def get(active: Active) -> NDArray[Any]:
        words = np.empty((active.count, len(views)), storage)
        for i, view in enumerate(views):
            words[:, i] = view if active.full else view[active.index]
        return words

    return get
