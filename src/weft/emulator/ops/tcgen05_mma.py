"""tcgen05.mma: products of matrices in shared and tensor memory, begun by a thread (PTX ISA 9.7.16.10).

Computed when it is issued; D is in tensor memory. What it reads of shared memory belongs to the operation until an mbarrier
that tcgen05.commit names completes its phase, and accesses are of the async proxy, as for wgmma. Products are those of
`weft.emulator.arith.products`: exact, summed with D in float64, rounded once. Scales multiply the elements of A and B, exactly.

With ``.cta_group::2`` a thread of either block of a pair begins a product of both. Each has half of the rows of A and D, and half
of the columns of B; the block of even rank has the first halves.

With ``.ashift`` A in tensor memory is shifted by a row when the product has read it, as by tcgen05.shift of each 32 lanes.
Where A or B stays (``.collector``) has no meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import tcgen05
from weft.emulator.arith.products import float_product, integer_product
from weft.emulator.arith.tcgen05 import Malformed, Product
from weft.emulator.arith.tensor_memory import Cells, result_lanes
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active
from weft.emulator.memory.order import Agent
from weft.emulator.ops.async_groups import Groups
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ops.tcgen05_forms import form
from weft.emulator.ops.tcgen05_operands import (
    Operand,
    chosen,
    left,
    read_operands,
    right,
    scales_of_columns,
    scales_of_rows,
    sparse_left,
    stored_left,
)
from weft.emulator.ops.tensor_memory import (
    LANES,
    QUARTER,
    Part,
    TensorMemory,
    addresses,
    blocks_of,
    shift_down,
    split_address,
)
from weft.emulator.ptx.syntax import Address, Vector
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

PENDING: Final = "tcgen05"
"""What `Groups` calls operations that have not been committed."""


class _Mma:
    """One instruction, and what its threads compute."""

    def __init__(self, b: Binding) -> None:
        self.form = f = form(b)
        self.execution, self.site, self.name = b.execution, b.site, b.instruction.name
        self.blocks = blocks_of(b, f.group)
        threads = b.execution.threads

        def wide(place: int, name: str) -> NDArray[Any]:
            return np.broadcast_to(b.read(place, TYPES[name]), (threads,))

        self.d = addresses(b, 0)
        self.in_memory = isinstance(b.operand(1), Address)
        self.a: Callable[[], NDArray[Any]] = addresses(b, 1) if self.in_memory else lambda: left
        left = wide(1, "b64") if not self.in_memory else np.zeros(0)
        b.require(self.in_memory or not f.shifted, "'.ashift' is of an A in tensor memory")
        self.b = wide(2, "b64")
        self.metadata = addresses(b, 3) if f.sparse else None
        self.descriptor = wide(3 + f.sparse, "b32")
        place = 4 + f.sparse
        self.scales: Sequence[Callable[[], NDArray[Any]]] = ()
        self.disabled: Sequence[NDArray[Any]] = ()
        if f.scales:
            self.scales, place = (addresses(b, place), addresses(b, place + 1)), place + 2
        elif len(b.operands) > place and isinstance(b.operand(place), Vector):
            elements = b.elements(place)
            b.require(len(elements) == f.masks, f"{self.name} has {len(elements)} masks of lanes, expected {f.masks}")
            b.require(not f.stationary, "'.ws' has no masks of lanes")
            self.disabled = [np.broadcast_to(b.read(e, TYPES["b32"]), (threads,)) for e in elements]
            place += 1
        b.count(place + 1, place + 2)
        self.enable = b.predicate(place)
        self.shift, self.mask = 0, None
        if len(b.operands) > place + 1:
            if f.stationary:
                self.mask = wide(place + 1, "b64")
            else:
                self.shift = b.constant(place + 1)
                b.require(f.kind in ("f16", "tf32"), f"kind::{f.kind} has no scale of D")
                b.require(0 <= self.shift <= 15, f"D is scaled by 2^-{self.shift}, expected 0 to 15")

    def step(self, active: Active) -> None:
        """Each thread begins a product."""
        execution = self.execution
        agent = Groups.of(execution, PENDING).begin(active) if execution.order.active else None
        enable, d, a = self.enable(), self.d(), self.a()
        for thread in active.index.tolist():
            self._compute(thread, int(d[thread]), int(a[thread]), bool(enable[thread]), agent)

    def _wrong(self, error: Malformed, what: str, thread: int) -> Exception:
        return self.execution.fault(Undefined, f"the {what} of {self.name} {error}", self.site, thread)

    def _compute(self, thread: int, d: int, a: int, accumulate: bool, agent: Agent | None) -> None:
        execution, f, blocks = self.execution, self.form, self.blocks(thread)
        try:
            p = tcgen05.product(int(self.descriptor[thread]), f.kind, f.stationary, len(blocks), f.sparse)
        except Malformed as error:
            raise self._wrong(error, "instruction descriptor", thread) from None
        if f.shifted and p.m // len(blocks) != LANES:
            message = f"{self.name} shifts A of {p.m // len(blocks)} rows, expected {LANES} of a block"
            raise execution.fault(Undefined, message, self.site, thread)
        folded = f.stationary or (len(blocks) > 1 and not f.sparse)
        lanes = result_lanes(p.m // len(blocks), folded)
        memory = TensorMemory.of(execution)
        parts = [memory.part(self.site, thread, block, agent) for block in blocks]
        lefts, b = self._operands(thread, a, p, parts, lanes, agent)
        if self.scales:
            self._check_scales(thread, p)
        for number, (part, a_of) in enumerate(zip(parts, lefts, strict=True)):
            self._result(p, part, number, d, lanes, a_of, b, accumulate)
            if f.shifted:
                lane, column = split_address(a)
                for quarter in range(0, LANES, QUARTER):
                    shift_down(part, lane + quarter, column)
        execution.counters.add(self.site, "tcgen05", 1)
        execution.counters.add(self.site, "matrix_flops", p.work)

    def _result(
        self,
        p: Product,
        part: Part,
        number: int,
        d: int,
        lanes: Cells,
        a: NDArray[Any],
        b: NDArray[Any],
        accumulate: bool,
    ) -> None:
        """D of the block ``number`` of the group: A (parts or 1, rows, K) by B (N, K)."""
        rows, count = int(lanes.shape[0]), int(lanes.shape[1])
        lane, column = split_address(d)
        where = (lanes + lane)[:, :, None]
        offsets: Cells = np.arange(p.n // count)
        columns = (column + offsets)[None, None, :]
        before: Any = np.array(0)
        if accumulate:
            words = part.read(where, columns, "D: ").reshape(rows, p.n)
            before = _values(words, p.d)
            if self.shift:
                before = before.astype(np.float64) * 2.0**-self.shift
        if self.scales:
            result = self._scaled(p, part, lanes, a, b, before)
        elif len(a) == 1:
            result = _product(a[0], b.T, before, p)
        else:
            each = zip(a, np.split(b, count), _split(before, count), strict=True)
            result = np.concatenate([_product(x, y.T, old, p) for x, y, old in each], axis=1)
        written = _words(np.ascontiguousarray(result), p.d).reshape(rows, count, -1)
        if self.disabled:
            mine = self.disabled[4 * number : 4 * number + 4]
            off = np.array([int(word[part.thread]) for word in mine], np.uint32)
            keep = np.unpackbits(off.view(np.uint8), bitorder="little")[where[:, :, 0]] == 0
            if count == 1:
                where, written = where[keep[:, 0]], written[keep[:, 0]]
            elif not keep.all():
                flat, cells = where[keep], written[keep]
                if cells.size:
                    part.write(flat, columns[0], cells)
                return
        if written.size:
            part.write(where, columns, written)

    def _operands(
        self, thread: int, a: int, p: Product, parts: list[Part], lanes: Cells, agent: Agent | None
    ) -> tuple[list[NDArray[Any]], NDArray[Any]]:
        """A of each block, (parts or 1, rows, K), negated where the product is; B (N, K)."""
        execution, site, blocks = self.execution, self.site, len(parts)
        if self.in_memory and p.a_transposed:
            message = "A in tensor memory is MN-major, which there is not"
            raise execution.fault(Undefined, message, site, thread)
        columns, zero = self._columns(thread, p)
        try:
            b = right(p, int(self.b[thread]), p.n // blocks if columns is None else int(columns.max()) + 1)
            if columns is not None and not p.b_transposed:
                b = chosen(b, columns[~zero])
            first: list[Operand] = [] if self.in_memory else [left(p, a, p.m // blocks)]
        except Malformed as error:
            raise self._wrong(error, "matrix descriptor", thread) from None
        lefts: list[NDArray[Any]] = []
        rights: list[NDArray[Any]] = []
        for part in parts:
            *stored, mine = read_operands(execution, site, thread, part.block, [*first, b], agent)
            rights.append(mine)
            found = stored_left(p, part, a, lanes) if self.in_memory else stored[0][None]
            if self.metadata is not None:
                try:
                    found = sparse_left(p, part, int(self.metadata()[thread]), lanes, found)
                except ValueError as error:
                    raise execution.fault(Undefined, str(error), site, thread) from None
            lefts.append(-found if p.negated else found)
        whole = np.concatenate(rights)
        if columns is not None:
            some = whole
            whole = np.zeros((p.n, p.depth), some.dtype)
            whole[~zero] = some[~zero] if p.b_transposed else some
        return lefts, whole

    def _columns(self, thread: int, p: Product) -> tuple[NDArray[np.intp] | None, NDArray[np.bool_]]:
        """Which columns of B there are, and which of them are zeros; None where a mask says nothing of them."""
        if self.mask is None or not self.mask[thread]:
            return None, np.zeros(p.n, np.bool_)
        try:
            columns, zero = tcgen05.columns_of_b(int(self.mask[thread]), p)
        except Malformed as error:
            raise self._wrong(error, "mask of columns", thread) from None
        if p.b_transposed and columns[0]:
            message = f"{self.name} shifts the columns of an MN-major B, which the emulator does not know"
            raise self.execution.fault(Undefined, message, self.site, thread)
        return columns, zero

    def _scaled(
        self, p: Product, part: Part, lanes: Cells, a: NDArray[Any], b: NDArray[Any], before: Any
    ) -> NDArray[Any]:
        """The products of each 32 lanes, which have a copy of the scales of their own."""
        (rows, count), n = lanes.shape, p.n // lanes.shape[1]
        of_a, of_b = (int(s()[part.thread]) for s in self.scales)
        scales, block = self.form.scales, p.depth // self.form.scales
        result = np.empty((rows, p.n), np.float32)
        for i in range(count):
            by_row = scales_of_rows(p, part, of_a, lanes[:, i], scales)
            scaled_a = a[i if len(a) > 1 else 0] * np.repeat(by_row, block, axis=1)
            columns = slice(i * n, (i + 1) * n)
            for first in range(0, rows, QUARTER):
                some = slice(first, first + QUARTER)
                by_column = scales_of_columns(p, part, of_b, int(lanes[first, i]), scales, n)
                scaled_b = b[columns] * np.repeat(by_column, block, axis=1)
                old = before[some, columns] if before.ndim else before
                result[some, columns] = _product(scaled_a[some], scaled_b.T, old, p)
        return result

    def _check_scales(self, thread: int, p: Product) -> None:
        for first in (p.a_scale, p.b_scale):
            if first % self.form.scales or (p.scale == "ue4m3") > (self.form.scales == 4):
                message = f"scales of .{p.scale} from byte {first} on, of which {self.name} has none"
                raise self.execution.fault(Undefined, message, self.site, thread)


def _split(before: Any, count: int) -> list[Any]:
    """D's columns in parts."""
    return np.split(before, count, axis=1) if before.ndim else [before] * count


_DTYPES: Final = {"f32": np.float32, "f16": np.float16, "s32": np.int32}


def _values(words: NDArray[np.uint32], kind: str) -> NDArray[Any]:
    """D's numbers: those of 16 bits are the lower halves of cells."""
    return words.astype(np.uint16).view(np.float16) if kind == "f16" else words.view(_DTYPES[kind])


def _words(numbers: NDArray[Any], kind: str) -> NDArray[np.uint32]:
    return numbers.view(np.uint16).astype(np.uint32) if kind == "f16" else numbers.view(np.uint32)


def _product(a: NDArray[Any], b: NDArray[Any], before: NDArray[Any], p: Product) -> NDArray[Any]:
    """A B + D, of A (M, K) and B (K, N), in D's type."""
    shape = (a.shape[0], b.shape[1])
    total, result = np.empty(shape, a.dtype), np.empty(shape, _DTYPES[p.d])
    if p.d == "s32":
        integer_product(a, b, before, total, np.empty(shape, np.int64), result, p.saturate)
    else:
        float_product(a, b, before, total, result)
    return result


@instruction("tcgen05.mma")
def mma(b: Binding) -> Step:
    """``tcgen05.mma{.ws}{.sp}.cta_group.kind{.block_scale}  [d], a, b-desc, i-desc, ..., enable-d``."""
    return _Mma(b).step
