"""atom and red (PTX ISA 9.7.13.6, 9.7.13.7): which operation has which types, and where operands and results are.

`weft.emulator.arith.atomics` has the arithmetic and the order of threads. An operation on a vector, or on packed halves, is
one on each element, as the ISA has it. f32 sums in global memory flush subnormal numbers, those in shared memory keep them:
so it says.

Order. All are strong accesses, which do not race with each other if they are of the same bytes and in each other's scope.
``.acquire``, ``.release`` and ``.acq_rel`` order what is around them at the address they access.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.atomics import PAIR, Operation
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.data import SPACES
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.syntax import Operand, Sink
from weft.emulator.ptx.types import TYPES, Type

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

HALVES: Final = ("f16", "bf16", "f16x2", "bf16x2")

_BITS: Final = ("b32", "b64")
_EXTREMES: Final = ("u32", "s32", "u64", "s64")

SCALAR: Final[dict[str, tuple[str, ...]]] = {
    "add": ("u32", "s32", "u64", "f32", "f64", *HALVES),
    "min": _EXTREMES,
    "max": _EXTREMES,
    "inc": ("u32",),
    "dec": ("u32",),
    "and": _BITS,
    "or": _BITS,
    "xor": _BITS,
    "exch": ("b32", "b64", "b128"),
    "cas": ("b16", "b32", "b64", "b128"),
}
"""The types each operation has."""

VECTOR: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("add", "v2"): ("f32", *HALVES),
    ("add", "v4"): ("f32", *HALVES),
    ("add", "v8"): ("f16", "bf16"),
    ("min", "v2"): HALVES,
    ("min", "v4"): HALVES,
    ("min", "v8"): ("f16", "bf16"),
    ("max", "v2"): HALVES,
    ("max", "v4"): HALVES,
    ("max", "v8"): ("f16", "bf16"),
}
"""The types each operation has on vectors, which are in global memory."""

_ONLY_ATOM: Final = ("exch", "cas")

_SLOTS: Final = {
    "scope": "? cta cluster gpu sys",
    "space": "? global shared shared::cta shared::cluster",
    "op": " ".join(SCALAR),
    "noftz": "? noftz",
    "hint": "? L2::cache_hint",
    "vector": "? v2 v4 v8",
    "type": " ".join(sorted({kind for kinds in SCALAR.values() for kind in kinds})),
}

Take = Callable[[IndexArray], NDArray[Any]]
"""An operand's elements of some threads: (threads, elements) bits."""


class _Form:
    """An atom or red, its modifiers sorted and checked."""

    def __init__(self, b: Binding, **more: str) -> None:
        returns = b.instruction.opcode == "atom"
        semantics = "? relaxed release" + (" acquire acq_rel" if returns else "")
        f = form(b, semantics=semantics, **more, **_SLOTS)
        self.name, kind = f["op"], f["type"]
        if "async" in b.modifiers and (self.name, kind) == ("add", "s64"):
            kind = "u64"  # red.async alone has this type: the sum has the same bits
        vector = f["vector"]
        types = VECTOR.get((self.name, vector), ()) if vector else SCALAR[self.name]
        what = f"{b.instruction.opcode}.{self.name}"
        b.require(returns or self.name not in _ONLY_ATOM, f"there is no {what}")
        b.require(kind in types, f"{what} has no .{vector}.{kind}" if vector else f"{what} has no .{kind}")
        b.require((kind in HALVES) == bool(f["noftz"]), ".noftz belongs to the types of 16 bits, and they need it")
        b.require(not vector or f["space"] in ("", "global"), f"{what} of vectors is in global memory")
        self.type: Type = TYPES[kind]
        self.parts = int(vector[1]) if vector else 1
        """Operands of a vector."""
        element = kind.removesuffix("x2")
        self.elements = self.parts * (2 if kind.endswith("x2") else 1)
        self.size = self.parts * self.type.bytes
        self.space = SPACES[f["space"]] if f["space"] else None
        self.semantics = f["semantics"] or "relaxed"
        self.wide = f["scope"] not in ("cta", "cluster")
        self.hint = bool(f["hint"])
        flushed = self.name == "add" and kind == "f32"
        self.operations = {space: Operation(self.name, element, flushed and space is Space.GLOBAL) for space in Space}


@instruction("atom", polls=True)
def atom(b: Binding) -> Step:
    """``atom d, [a], b``, for cas ``atom d, [a], b, c``: d is what was there."""
    f = _Form(b)
    operands = (4 if f.name == "cas" else 3) + f.hint
    b.count(operands)
    first = _taker(b, f, 2)
    if f.name == "cas":
        return _bind(b, f, 1, _taker(b, f, 3), first, _putter(b, f, 0))
    return _bind(b, f, 1, first, None, _putter(b, f, 0))


@instruction("red")
def red(b: Binding) -> Step:
    """``red [a], b``."""
    return reduce(b)


def reduce(b: Binding, **more: str) -> Step:
    """A red, or another instruction that does the same: with ``more`` slots of modifiers."""
    f = _Form(b, **more)
    b.count(2 + f.hint)
    return _bind(b, f, 0, _taker(b, f, 1), None, None)


def _bind(
    b: Binding,
    f: _Form,
    place: int,
    values: Take,
    compare: Take | None,
    put: Callable[[IndexArray, NDArray[Any]], None] | None,
) -> Step:
    address = b.address(place, f.space)
    execution, site = b.execution, b.site

    def perform(space: Space, threads: IndexArray, addresses: NDArray[np.uint64]) -> None:
        element = f.size // f.elements
        access = AccessBatch(
            site, space, Kind.ATOMIC, threads, addresses, f.size, strong=True, wide=f.wide, element=element
        )
        flat = execution.memory.check(access)
        execution.counters.access(access)
        execution.order.communicate(access, f.semantics)
        operation = f.operations[space]
        dtype = operation.dtype
        memory = execution.memory.arenas[space].bytes.view(dtype)
        first = flat // dtype.itemsize
        given = values(threads)
        expected = None if compare is None else compare(threads)
        before = np.empty_like(given)
        for i in range(f.elements):
            wanted = None if expected is None else expected[:, i]
            before[:, i] = operation(memory, first + i if i else first, given[:, i], wanted)
        if put is not None:
            put(threads, before)

    def step(active: Active) -> None:
        threads = active.index
        addresses = address()[threads]
        if f.space is not None:
            perform(f.space, threads, addresses)
            return
        for space, where, within in execution.memory.resolve(addresses):
            perform(space, threads if where is None else threads[where], within)

    return step


def _taker(b: Binding, f: _Form, operand: int) -> Take:
    parts = _parts(b, f, operand)
    arrays = [b.read(part, f.type) for part in parts]
    element = f.operations[Space.GLOBAL].dtype
    all_threads = b.execution.threads
    wide = f.type.bits == 128

    def take(threads: IndexArray) -> NDArray[Any]:
        columns: list[NDArray[Any]] = []
        for array in arrays:
            constant = array.ndim < (2 if wide else 1)
            values: NDArray[Any] = np.broadcast_to(array, (all_threads, *array.shape)) if constant else array
            chosen = np.ascontiguousarray(values[threads])
            columns.append(chosen.view(element).reshape(threads.size, -1))
        return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)

    return take


def _putter(b: Binding, f: _Form, operand: int) -> Callable[[IndexArray, NDArray[Any]], None] | None:
    if isinstance(b.operand(operand), Sink):
        return None
    targets = [b.write(part, f.type) for part in _parts(b, f, operand)]
    each = f.elements // f.parts

    def put(threads: IndexArray, before: NDArray[Any]) -> None:
        for i, target in enumerate(targets):
            columns = np.ascontiguousarray(before[:, i * each : (i + 1) * each])
            if columns.dtype == PAIR:
                target[threads] = columns.view(np.uint64).reshape(threads.size, 2)
            else:
                target[threads] = columns.view(target.dtype).reshape(threads.size)

    return put


def _parts(b: Binding, f: _Form, operand: int) -> tuple[Operand, ...]:
    parts = b.elements(operand)
    b.require(len(parts) == f.parts, f"a vector of {len(parts)} where one of {f.parts} is needed")
    return parts
