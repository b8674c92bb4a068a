"""wmma.load, wmma.store and wmma.mma: matrices of a warp in fragments of unspecified layout (PTX ISA 9.7.14.4).

The ISA leaves open which lane has which element: programs may load fragments, compute with them alike on all lanes, and store
them. The emulator uses mma's layout for larger M and N (`weft.emulator.arith.fragments`). Where the ISA has more
registers than elements (f16: eight for A and for B, whatever the shape) the further ones are copies of the first.

How hardware splits a load into accesses is as open. Here a lane loads or stores each register at once if its elements are
adjacent in memory (A by rows, B by columns), else element by element, a request of the warp each time; copies are not loaded
again. What is counted follows from that.

The address and the stride must be the same in all lanes of a warp and the stride not below the matrix's. 9.7.14.4.2 wants the
start of each row (or column) at a multiple of the fragment's bytes, which its own default strides of m8n32k16 are not; so
the rule here is the weaker of that and of CUDA C++ (Warp Matrix Functions): addresses at multiples of 32, strides of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import fragments
from weft.emulator.arith.fragments import Fragment
from weft.emulator.arith.products import ELEMENTS
from weft.emulator.errors import Misaligned, Undefined
from weft.emulator.machine.active import WARP, Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.fragments import collective, registers
from weft.emulator.ops.mma import (
    ANY_HALF,
    DOUBLE,
    INTEGER,
    OPERATIONS,
    ROUNDINGS,
    SINGLE,
    Form,
    Row,
    accumulator_bits,
    form,
    listed,
    options,
    picture,
    step,
)
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

SQUARES: Final = ("m16n16k16", "m8n32k16", "m32n8k16")

WMMA: Final = (
    Row(("f16",), SQUARES, (*ANY_HALF, ("f16", "f32"))),
    Row(("bf16",), SQUARES, SINGLE),
    Row(("tf32",), ("m16n16k8",), SINGLE),
    Row(("f64",), ("m8n8k4",), DOUBLE),
    Row(("u8",), SQUARES, INTEGER),
    Row(("s8",), SQUARES, INTEGER),
    Row(("u4",), ("m8n8k32",), INTEGER),
    Row(("s4",), ("m8n8k32",), INTEGER),
    Row(("b1",), ("m8n8k128",), INTEGER),
)
"""wmma of sm_70 to sm_90."""

HALF_REGISTERS: Final = 8
"""Of A and B with f16, in every shape."""

SPACES: Final = {"global": Space.GLOBAL, "shared": Space.SHARED, "shared::cta": Space.SHARED}


@instruction("wmma.mma")
def wmma_mma(b: Binding) -> Step:
    """``wmma.mma.sync.aligned.alayout.blayout.shape.d.a.b.c  d, a, b, c``; ``.d.c`` with f16 multiplicands."""
    f = form(b, "wmma.mma", "mma", "sync", "aligned", "satfinite", "popc", *ROUNDINGS, *OPERATIONS)
    types = f.types
    if len(types) == 2:
        types = (types[0], "f16", "f16", types[1])
    types = listed(b, WMMA, f, types)
    left = types[1]
    options(b, f, ELEMENTS[left].family)
    b.count(4)
    b.require(len(f.layouts) == 2, f"{b.instruction.name} has {len(f.layouts)} layouts, expected two")
    if ELEMENTS[left].bits < 8:
        b.require(f.layouts == ("row", "col"), f"{b.instruction.name} must have layouts .row.col")
    least = HALF_REGISTERS if left == "f16" else 0
    return step(b, f, picture(f, types, f.size[2], least), types)


# ---- loads and stores ------------------------------------------------------------------------------------------------------


def _role(b: Binding, f: Form, which: str) -> tuple[Fragment, int, int, bool]:
    """The fragment of matrix a, b, c or d, bits of its elements in memory, elements a slot of the fragment has, and whether
    those of a register follow each other in memory."""
    m, n, k = f.size
    (name,), (layout,) = f.types, f.layouts
    least = HALF_REGISTERS if name == "f16" else 0
    if which in "cd":
        fits = any(
            f.shape in row.shapes and any(name == pair[which == "c"] for pair in row.accumulators) for row in WMMA
        )
    else:
        fits = any(f.shape in row.shapes and name in row.types for row in WMMA)
    b.require(fits, f"{f.name} of shape .{f.shape} does not exist with type .{name}")
    if which in "cd":
        return fragments.accumulator(m, n, accumulator_bits(name)), accumulator_bits(name), 1, layout == "row"
    bits = ELEMENTS[name].bits
    along = layout == ("row" if which == "a" else "col")
    b.require(along or bits >= 8, f"{f.name} of type .{name} must have layout .{'row' if which == 'a' else 'col'}")
    pack = 32 if bits == 1 else 1
    width = bits * pack
    if which == "a":
        return fragments.left(m, k // pack, width, least), bits, pack, along
    return fragments.right(k // pack, n, width, least), bits, pack, along


class _Plan:
    """How a fragment is loaded or stored: its accesses, one for each register or each element of one."""

    def __init__(self, b: Binding, name: str, which: str, address: int, vector: int) -> None:
        f = form(b, name, *name.split("."), which, "sync", "aligned", *SPACES)
        b.require(len(f.types) == 1, f"{b.instruction.name} has {len(f.types)} types, expected one")
        b.require(len(f.layouts) == 1, f"{b.instruction.name} has {len(f.layouts)} layouts, expected one")
        b.count(2, 3)
        self.execution, self.site, self.name = b.execution, b.site, b.instruction.name
        self.fragment, self.bits, pack, self.whole = _role(b, f, which)
        self.space = next((SPACES[m] for m in b.modifiers if m in SPACES), None)
        self.kind = Kind.WRITE if which == "d" else Kind.READ
        self.address = b.address(address, self.space)
        self.by_rows = f.layouts == ("row",)
        fragment = self.fragment
        self.per = fragment.width // fragment.bits
        minor = fragment.columns if self.by_rows else fragment.rows
        self.least = minor * pack
        """The default stride, in elements."""
        self.stride = b.read(2, TYPES["u32"]) if len(b.operands) == 3 else np.array(self.least, np.uint32)
        lead, place = (fragment.row, fragment.column) if self.by_rows else (fragment.column, fragment.row)
        self.lead, self.place = lead, place * (fragment.bits // 8 if fragment.bits >= 8 else 1)
        self.registers = fragment.rows * fragment.columns // WARP // self.per
        """Those that are no copies."""
        self.size = fragment.width // 8 if self.whole or self.per == 1 else fragment.bits // 8
        self.views = registers(b, vector, fragment.registers, fragment.width, write=self.kind is Kind.READ)
        self.members = collective(b)

    def accesses(self, active: Active) -> Iterator[tuple[int, int, IndexArray | None, AccessBatch]]:
        """(register, element in it, which of the threads, access): in order, for all lanes of the active warps."""
        execution = self.execution
        warps = self.members(active)
        threads = np.arange(execution.threads) if warps is None else active.index
        start = self.address()[threads]
        stride = np.broadcast_to(self.stride, (execution.threads,))[threads].astype(np.uint64)
        self._uniform(threads, start, stride)
        lanes = threads % WARP
        pitch = stride * np.uint64(self.bits) // np.uint64(8)
        pieces = range(self.registers) if self.size * 8 == self.fragment.width else range(self.registers * self.per)
        each = self.per if self.size * 8 == self.fragment.width else 1
        for piece in pieces:
            element = piece * each
            minor = self.place[lanes, element]
            if self.fragment.bits < 8:
                minor = minor * self.fragment.bits // 8
            addresses = start + self.lead[lanes, element].astype(np.uint64) * pitch + minor.astype(np.uint64)
            register, part = divmod(element, self.per)
            for space, where, inside in self._spaces(addresses):
                chosen = threads if where is None else threads[where]
                yield register, part, where, AccessBatch(self.site, space, self.kind, chosen, inside, self.size)

    def _spaces(self, addresses: NDArray[np.uint64]) -> list[tuple[Space, NDArray[np.intp] | None, NDArray[np.uint64]]]:
        if self.space is not None:
            return [(self.space, None, addresses)]
        return self.execution.memory.resolve(addresses)

    def _uniform(self, threads: IndexArray, start: NDArray[np.uint64], stride: NDArray[np.uint64]) -> None:
        execution, site, name = self.execution, self.site, self.name
        for what, values in (("address", start), ("stride", stride)):
            odd = values.reshape(-1, WARP) != values.reshape(-1, WARP)[:, :1]
            if odd.any():
                message = f"{name} must have the same {what} in all lanes of a warp; this lane has another"
                raise execution.fault(Undefined, message, site, int(threads[odd.ravel().nonzero()[0][0]]))
        short = stride < np.uint64(self.least)
        if short.any():
            which = int(short.nonzero()[0][0])
            message = f"{name} has a stride of {int(stride[which])} elements, expected at least {self.least}"
            raise execution.fault(Undefined, message, site, int(threads[which]))
        if not execution.checks.alignment:
            return
        size = self.fragment.registers * self.fragment.width // 8
        pitch = stride * np.uint64(self.bits) // np.uint64(8)
        for what, values, most in (("an address", start, 32), ("a stride in bytes", pitch, 16)):
            off = values % np.uint64(min(size, most)) != 0
            if off.any():
                which = int(off.nonzero()[0][0])
                message = f"{name} has {what} that is no multiple of {min(size, most)}"
                raise execution.fault(Misaligned, message, site, int(threads[which]), f"0x{int(start[which]):x}")


def _load(which: str) -> Callable[[Binding], Step]:
    def bind(b: Binding) -> Step:
        plan = _Plan(b, "wmma.load", which, 1, 0)
        views, execution, count = plan.views, b.execution, plan.registers
        dtype = np.dtype(f"u{plan.size}")
        parts = plan.fragment.width // 8 // plan.size

        def run(active: Active) -> None:
            found = np.zeros((count, active.count, parts), dtype)
            for register, part, where, access in plan.accesses(active):
                values = execution.memory.load(access, plan.size)
                execution.counters.access(access)
                found[register, slice(None) if where is None else where, part] = values
            words = found.view(views[0].dtype).reshape(count, -1, WARP)
            for place, view in enumerate(views):
                view[slice(None) if active.full else active.warps] = words[place % count]

        return run

    return bind


for _which in "abc":
    instruction(f"wmma.load.{_which}")(_load(_which))


@instruction("wmma.store.d")
def wmma_store(b: Binding) -> Step:
    """``wmma.store.d.sync.aligned.layout.shape{.space}.type  [p], d{, stride}``."""
    plan = _Plan(b, "wmma.store", "d", 0, 1)
    views, execution = plan.views, b.execution
    dtype = np.dtype(f"u{plan.size}")
    parts = plan.fragment.width // 8 // plan.size

    def run(active: Active) -> None:
        chosen = [view if active.full else view[active.warps] for view in views]
        words: list[NDArray[Any]] = [np.ascontiguousarray(view).view(dtype).reshape(-1, parts) for view in chosen]
        for register, part, where, access in plan.accesses(active):
            values = words[register][:, part]
            execution.memory.store(access, plan.size, values if where is None else values[where])
            execution.counters.access(access)

    return run
