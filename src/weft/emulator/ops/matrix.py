"""ldmatrix, stmatrix and movmatrix: matrices between rows of shared memory and registers (PTX ISA 9.7.14.5.15 to 9.7.14.5.17).

A row is 16 bytes of shared memory, at an address that one lane gives: of matrices of 8 rows lanes 0 to 7 those of the first,
8 to 15 of the second, and so on; of 16 rows lanes 0 to 15 and 16 to 31. An access belongs to the lane that gave its address; the
lanes that give none (16 to 31 of ``.x2``, say) need have no address.

What a lane has of a matrix, with ``g = lane >> 2`` and ``t = lane % 4`` (`FORMS` has it as permutations):

    m8n8, b16           r0: elements 2 t and 2 t + 1 of row g; with .trans those of column g
    m8n16, b8x16        r0: bytes 4 t to 4 t + 3 of row g
    m16n16, b8, .trans  r0: bytes 4 t to 4 t + 3 of column g; r1: those of column g + 8
    m16n8, b8, .trans   r0: bytes 2 t and 2 t + 1 of row g, then those of row g + 8; its columns are the rows of memory

The last two are figures in the ISA, and no formulas. They are as CUTLASS uses them (``cute/arch/copy_sm100.hpp``).

``.b6x16_p32`` and ``.b4x16_p64`` are 16 elements packed in the first 12 or 8 bytes of a row. Each becomes a byte, with the
element in its low bits. (tcgen05.cp puts elements of 4 bits in bits 2 to 5; ldmatrix does not: CUTLASS shifts them afterwards.)
The padding of such a row is not read, but counted.

A matrix's rows are 128 or 256 bytes, one or two phases of the banks: without conflicts a matrix of 8 rows is one wavefront.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.tcgen05 import unpacked
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import WARP, Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.fragments import collective, registers
from weft.emulator.ops.registry import Step, instruction

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

ROW_BYTES: Final = 16

COUNTS: Final = {"x1": 1, "x2": 2, "x4": 4}


@dataclass(frozen=True)
class Fragment:
    """How the bytes of a matrix lie in registers: cut into ``axes`` of units of ``unit`` bytes, row by row, and with the axes in
    the ``order`` in which they are in registers: register, lane, unit."""

    unit: int
    axes: tuple[int, ...]
    order: tuple[int, ...]

    def load(self, rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Rows (warps, matrices, rows, 16) as registers (warps, registers, 32)."""
        return self._moved(rows, self.axes, self.order)

    def store(self, registers: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The inverse: the rows of memory, one after the other."""
        axes = tuple(self.axes[axis] for axis in self.order)
        return self._moved(registers, axes, tuple(int(axis) for axis in np.argsort(self.order)))

    def _moved(self, values: NDArray[Any], axes: tuple[int, ...], order: tuple[int, ...]) -> NDArray[np.uint32]:
        cells = np.ascontiguousarray(values).view(f"u{self.unit}").reshape(len(values), -1, *axes)
        moved = np.ascontiguousarray(cells.transpose(0, 1, *(axis + 2 for axis in order)))
        return moved.reshape(len(values), -1).view(np.uint32).reshape(len(values), -1, WARP)


ROWS_OF_WORDS: Final = Fragment(4, (8, 4), (0, 1))
COLUMNS_OF_HALVES: Final = Fragment(2, (4, 2, 8), (2, 0, 1))
"""Memory row 2 t + h, column g."""
COLUMNS_OF_BYTES: Final = Fragment(1, (4, 4, 2, 8), (2, 3, 0, 1))
"""Memory row 4 t + byte, column g + 8 register."""
PAIRS_OF_ROWS: Final = Fragment(1, (4, 2, 2, 8), (3, 0, 2, 1))
"""Memory row 2 t + byte % 2, column g + 8 (byte / 2)."""


@dataclass(frozen=True)
class Form:
    """A shape of matrices and a type, of one instruction."""

    rows: int
    """Rows of a matrix in shared memory."""
    registers: int
    counts: tuple[str, ...]
    fragment: Fragment | None
    transposed: Fragment | None = None
    """With ``.trans``."""
    packed: int = 0
    """Bits of an element that becomes a byte; 0 if none does."""

    @property
    def bytes(self) -> int:
        """Of a row, without padding."""
        return 2 * self.packed or ROW_BYTES


_ALL: Final = tuple(COUNTS)
_TWO: Final = ("x1", "x2")

FORMS: Final = {
    ("ldmatrix", "m8n8", "b16"): Form(8, 1, _ALL, ROWS_OF_WORDS, COLUMNS_OF_HALVES),
    ("ldmatrix", "m16n16", "b8"): Form(16, 2, _TWO, None, COLUMNS_OF_BYTES),
    ("ldmatrix", "m16n16", "b8x16.b6x16_p32"): Form(16, 2, _TWO, None, COLUMNS_OF_BYTES, 6),
    ("ldmatrix", "m16n16", "b8x16.b4x16_p64"): Form(16, 2, _TWO, None, COLUMNS_OF_BYTES, 4),
    ("ldmatrix", "m8n16", "b8x16.b6x16_p32"): Form(8, 1, _ALL, ROWS_OF_WORDS, packed=6),
    ("ldmatrix", "m8n16", "b8x16.b4x16_p64"): Form(8, 1, _ALL, ROWS_OF_WORDS, packed=4),
    ("stmatrix", "m8n8", "b16"): Form(8, 1, _ALL, ROWS_OF_WORDS, COLUMNS_OF_HALVES),
    ("stmatrix", "m16n8", "b8"): Form(8, 1, _ALL, None, PAIRS_OF_ROWS),
}
"""By opcode, shape, and type."""


@dataclass(frozen=True)
class _Asked:
    """What an instruction's modifiers say."""

    form: Form
    count: int
    """Of matrices."""
    fragment: Fragment

    @property
    def registers(self) -> int:
        return self.count * self.form.registers


def _asked(b: Binding) -> _Asked:
    """The form of an instruction; refuses what is in no row of `FORMS`."""
    opcode, name = b.instruction.opcode, b.instruction.name
    known = {word for row in FORMS if row[0] == opcode for word in (row[1], *row[2].split("."))}
    for modifier in b.modifiers:
        if modifier not in ("sync", "aligned", "trans", "shared", "shared::cta", *COUNTS, *known):
            b.unknown(f"'.{modifier}' of {opcode}")
    for modifier in ("sync", "aligned"):
        b.require(modifier in b.modifiers, f"{name} has no '.{modifier}'")
    counts = [word for word in COUNTS if word in b.modifiers]
    b.require(len(counts) == 1, f"{name} must have one of .x1, .x2, .x4")
    found = [row for row in FORMS if row[0] == opcode and {row[1], *row[2].split(".")} == known & {*b.modifiers}]
    if not found:
        b.wrong(f"{name} has none of {', '.join(f'.{shape}.{kind}' for op, shape, kind in FORMS if op == opcode)}")
    form = FORMS[found[0]]
    if counts[0] not in form.counts:
        b.wrong(f"{opcode} of .{found[0][1]} goes with {', '.join('.' + word for word in form.counts)}")
    trans = "trans" in b.modifiers
    fragment = form.transposed if trans else form.fragment
    if fragment is None:
        b.wrong(f"{opcode} of .{found[0][1]} is {'without' if trans else 'with'} .trans")
    b.count(2)
    return _Asked(form, COUNTS[counts[0]], fragment)


def _rows(b: Binding, operand: int, asked: _Asked, kind: Kind) -> Callable[[Active], AccessBatch]:
    """The rows of the active warps' matrices as accesses, in the order of lanes."""
    size = asked.form.bytes
    execution, site, name = b.execution, b.site, b.instruction.name
    generic = not any(modifier.startswith("shared") for modifier in b.modifiers)
    address = b.address(operand, None if generic else Space.SHARED)
    givers = np.arange(asked.count * asked.form.rows)
    all_threads = (np.arange(0, execution.threads, WARP)[:, None] + givers).ravel()
    members = collective(b)

    def rows(active: Active) -> AccessBatch:
        warps = members(active)
        threads: IndexArray = all_threads if warps is None else (warps[:, None] * WARP + givers).ravel()
        addresses = address()[threads]
        if generic:
            addresses = shared(addresses, threads)
        return AccessBatch(site, Space.SHARED, kind, threads, addresses, size, alignment=ROW_BYTES)

    def shared(addresses: NDArray[np.uint64], threads: IndexArray) -> NDArray[np.uint64]:
        """Generic addresses as addresses of shared memory."""
        parts = execution.memory.resolve(addresses)
        for space, where, _ in parts:
            if space is not Space.SHARED:
                first = 0 if where is None else int(where[0])
                message = f"{name} at a generic address of {space.value} memory, expected shared memory"
                raise execution.fault(Undefined, message, site, int(threads[first]), f"0x{int(addresses[first]):x}")
        return parts[0][2]

    return rows


def _put(views: list[NDArray[Any]], words: NDArray[np.uint32], active: Active) -> None:
    """Writes (warps, registers, 32) words to registers."""
    for place, view in enumerate(views):
        if active.full:
            view[...] = words[:, place]
        else:
            view[active.warps] = words[:, place]


@instruction("ldmatrix")
def ldmatrix(b: Binding) -> Step:
    """``ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16  r, [p]``."""
    asked = _asked(b)
    rows, packed = _rows(b, 1, asked, Kind.READ), asked.form.packed
    views = registers(b, 0, asked.registers, 32, write=True)
    memory, counters = b.execution.memory, b.execution.counters
    shape = (-1, asked.count, asked.form.rows, ROW_BYTES)

    def run(active: Active) -> None:
        access = rows(active)
        found = memory.load(access, 4 if packed else 8).view(np.uint8)
        counters.access(replace(access, size=ROW_BYTES) if packed else access)
        if packed:
            found = unpacked(found.reshape(-1, access.size), packed)
        _put(views, asked.fragment.load(found.reshape(shape)), active)

    return run


@instruction("stmatrix")
def stmatrix(b: Binding) -> Step:
    """``stmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16  [p], r``."""
    asked = _asked(b)
    rows = _rows(b, 0, asked, Kind.WRITE)
    views = registers(b, 1, asked.registers, 32, write=False)
    memory, counters = b.execution.memory, b.execution.counters

    def run(active: Active) -> None:
        access = rows(active)
        chosen = views if active.full else [view[active.warps] for view in views]
        words = asked.fragment.store(np.stack(chosen, axis=1))
        memory.store(access, 8, words.view(np.uint64).reshape(-1, ROW_BYTES // 8))
        counters.access(access)

    return run


@instruction("movmatrix")
def movmatrix(b: Binding) -> Step:
    """``movmatrix.sync.aligned.m8n8.trans.b16  d, a``."""
    needed = ("sync", "aligned", "m8n8", "trans", "b16")
    for modifier in b.modifiers:
        if modifier not in needed:
            b.unknown(f"'.{modifier}' of movmatrix")
    for modifier in needed:
        b.require(modifier in b.modifiers, f"{b.instruction.name} has no '.{modifier}'")
    b.count(2)
    (source,), target = registers(b, 1, 1, 32, write=False), registers(b, 0, 1, 32, write=True)
    members = collective(b)

    def run(active: Active) -> None:
        warps = members(active)
        _put(target, COLUMNS_OF_HALVES.load(source if warps is None else source[warps]), active)

    return run
