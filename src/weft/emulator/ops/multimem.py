"""multimem.ld_reduce, multimem.st, multimem.red (PTX ISA 9.7.9.14 to 9.7.9.16): one access to several memories.

The address is one of a multicast object (`DeviceMemory.multicast`); any other is a fault. Each of the object's memories is
accessed as ld, st and red of global memory would, with all checks: ld_reduce reads all of them and returns the reduction
(`weft.emulator.arith.multicast`), st writes the same to all, red updates each. Counters count the access once, at the first
memory: a warp makes one request, and the others are the switch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.atomics import Operation
from weft.emulator.arith.multicast import combined
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.memory.multicast import objects_of
from weft.emulator.ops.forms import form
from weft.emulator.ops.load_store import NARROW
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import STORAGE, TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

_HALVES: Final = ("f16", "f16x2", "bf16", "bf16x2")
_EIGHTS: Final = ("e4m3", "e4m3x2", "e4m3x4", "e5m2", "e5m2x2", "e5m2x4")
_BITS: Final = ("b32", "b64")
_INTEGERS: Final = ("u32", "s32", "u64", "s64")

_LOADED: Final[dict[str, tuple[str, ...]]] = {
    "add": ("u32", "s32", "u64", *_HALVES, *_EIGHTS, "f32", "f64"),
    "min": (*_INTEGERS, *_HALVES, *_EIGHTS),
    "max": (*_INTEGERS, *_HALVES, *_EIGHTS),
    "and": _BITS,
    "or": _BITS,
    "xor": _BITS,
}
"""The types of each operation of ld_reduce."""

_REDUCED: Final = {operation: tuple(t for t in kinds if t not in _EIGHTS) for operation, kinds in _LOADED.items()}
"""Of red."""

_ONLY_ADD: Final = (".f16x2", ".bf16x2")
"""What red only adds, unless in vectors."""

_ACCUMULATED: Final = {"": (), "acc::f32": _HALVES, "acc::f16": _EIGHTS}
"""The types whose sums may have a wider type."""

_STORED: Final = (*_INTEGERS, *_BITS, *_HALVES, *_EIGHTS, "f32", "f64")
_SIZES: Final = (4, 8, 16)


class _Form:
    """The modifiers of a multimem, sorted and checked, and its access to each memory."""

    def __init__(self, b: Binding, kind: Kind, semantics: str, **more: str) -> None:
        slots = {
            "how": b.modifiers[0],
            "semantics": f"? {semantics}",
            "scope": "? cta cluster gpu sys",
            "space": "? global",
        }
        f = form(b, **slots, **more, vector="? v2 v4 v8", type=" ".join(_STORED))
        what = f"multimem.{f['how']}"
        self.kind = kind
        self.operation = f.get("operation", "")
        strong = f["semantics"] not in ("", "weak")
        self.semantics = f["semantics"] or ("relaxed" if kind is Kind.ATOMIC else "weak")
        b.require(
            strong == bool(f["scope"]),
            f"{what} has a scope with .{semantics.rsplit(maxsplit=1)[-1]} or .relaxed, and only then",
        )
        self.type = TYPES[f["type"]]
        self.parts = int(f["vector"][1]) if f["vector"] else 1
        self.size = self.type.bytes * self.parts
        name, _, packed = f["type"].partition("x")
        self.element = name
        self.elements = self.parts * int(packed or 1)
        floats = name[0] in "fe" or name == "bf16"
        shown = f".{f['vector']}.{f['type']}" if f["vector"] else f".{f['type']}"
        b.require(not f["vector"] or (floats and name != "f64"), f"{what} has no {shown}")
        b.require(not floats or self.size in _SIZES, f"{what}{shown} has {self.size} bytes, expected 4, 8 or 16")
        self.accumulate = f.get("accumulate", "")
        if self.accumulate:
            fits = self.operation == "add" and f["type"] in _ACCUMULATED[self.accumulate]
            b.require(fits, f"{what}.{self.operation}{shown} has no .{self.accumulate}")
        if self.operation:
            kinds = (_LOADED if kind is Kind.READ else _REDUCED)[self.operation]
            fits = f["type"] in kinds and not (kind is Kind.ATOMIC and shown in _ONLY_ADD and self.operation != "add")
            b.require(fits, f"{what}.{self.operation} has no {shown}")
        self.strong = self.semantics != "weak"
        self.wide = f["scope"] not in NARROW
        self.dtype = STORAGE[8 * (self.size // self.elements)]
        """An element's bits."""

    def each(
        self, b: Binding, threads: IndexArray, addresses: NDArray[np.uint64]
    ) -> Iterator[tuple[NDArray[np.intp], list[AccessBatch]]]:
        """The accesses by object: places in ``threads``, and for each memory the accesses of these threads."""
        for found, where, offsets in objects_of(b.execution.memory.multicasts, addresses):
            if found is None:
                thread, address = int(threads[where[0]]), int(addresses[where[0]])
                message = "multimem at an address of no multicast object; DeviceMemory.multicast() makes one"
                raise b.execution.fault(Undefined, message, b.site, thread, f"0x{address:x}")
            made = [
                AccessBatch(
                    b.site,
                    Space.GLOBAL,
                    self.kind,
                    threads[where],
                    offsets + np.uint64(replica),
                    self.size,
                    strong=self.strong,
                    wide=self.wide,
                    element=self.size // self.elements,
                )
                for replica in found.replicas
            ]
            yield where, made

    def done(self, b: Binding, accesses: list[AccessBatch]) -> None:
        """Counts accesses that were made, and has them order what their semantics order."""
        b.execution.counters.access(accesses[0])
        if self.strong:
            for access in accesses:
                b.execution.order.communicate(access, self.semantics)


@instruction("multimem.ld_reduce", polls=True)
def _load(b: Binding) -> Step:
    """``multimem.ld_reduce d, [a]``."""
    operations, accumulations = " ".join(_LOADED), "? acc::f32 acc::f16"
    f = _Form(b, Kind.READ, "weak relaxed acquire", operation=operations, accumulate=accumulations)
    b.count(2)
    parts = b.elements(0)
    b.require(len(parts) == f.parts, f"{len(parts)} results, expected {f.parts}")
    puts = [b.extend(part, f.type) for part in parts]
    address, memory, threads = b.address(1, Space.GLOBAL), b.execution.memory, b.execution.threads
    storage = STORAGE[f.type.bits]

    def step(active: Active) -> None:
        found = np.zeros((threads, f.elements), f.dtype)
        chosen = active.index
        for where, accesses in f.each(b, chosen, address()[chosen]):
            values = [memory.load(access, f.dtype.itemsize).reshape(where.size, f.elements) for access in accesses]
            f.done(b, accesses)
            found[chosen[where]] = combined(values, f.operation, f.element, f.accumulate[5:])
        columns = found.view(storage)
        for i, put in enumerate(puts):
            put(np.ascontiguousarray(columns[:, i]), active)

    return step


@instruction("multimem.st")
def _store(b: Binding) -> Step:
    """``multimem.st [a], b``."""
    f = _Form(b, Kind.WRITE, "weak relaxed release")
    take, address, memory = _values(b, f), b.address(0, Space.GLOBAL), b.execution.memory

    def step(active: Active) -> None:
        chosen = active.index
        values = take(chosen)
        for where, accesses in f.each(b, chosen, address()[chosen]):
            for access in accesses:
                memory.store(access, f.dtype.itemsize, values[where])
            f.done(b, accesses)

    return step


@instruction("multimem.red")
def _reduce(b: Binding) -> Step:
    """``multimem.red [a], b``."""
    f = _Form(b, Kind.ATOMIC, "relaxed release", operation=" ".join(_REDUCED))
    take, address, memory = _values(b, f), b.address(0, Space.GLOBAL), b.execution.memory
    operation = Operation(f.operation, f.element, flush=(f.operation, f.element) == ("add", "f32"))

    def step(active: Active) -> None:
        chosen = active.index
        values = take(chosen)
        for where, accesses in f.each(b, chosen, address()[chosen]):
            for access in accesses:
                first = memory.check(access) // f.dtype.itemsize
                bits = memory.arenas[Space.GLOBAL].bytes.view(f.dtype)
                for i in range(f.elements):
                    operation(bits, first + i, values[where, i])
            f.done(b, accesses)

    return step


def _values(b: Binding, f: _Form) -> Callable[[IndexArray], NDArray[Any]]:
    """The operand's elements of some threads: (N, elements) bits."""
    b.count(2)
    parts = b.elements(1)
    b.require(len(parts) == f.parts, f"{len(parts)} values, expected {f.parts}")
    storage, threads = STORAGE[f.type.bits], b.execution.threads
    sources = [np.broadcast_to(b.read(part, f.type).view(storage), (threads,)) for part in parts]

    def take(chosen: IndexArray) -> NDArray[Any]:
        words = np.stack([source[chosen] for source in sources], axis=1)
        return words.view(f.dtype)

    return take
