"""`tile.dot` on a CPU: a blocked multiply-add kernel on tiles in memory.

A GPU would keep fragments in registers under mma layouts. On a CPU the three tiles are row-major arrays in L1 or L2, and the
kernel walks blocks of ``rows`` x ``columns`` vectors of the result, held in vector registers for the whole of K:

    for each k:  load ``columns`` vectors of b[k, :];  for each row: broadcast a[row, k], multiply-add into each

Each step does rows * columns multiply-adds for rows + columns loads; the block is as large as the register file allows, so
that the multiply-add units, not the loads, are the limit. ``a`` may also be column-major, since it is only read by
element; the layout pass transposes ``b`` if it must.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from weft import dtypes
from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.emit.context import Emit
from weft.codegen.llvm.types import I8, I64, intrinsic, shuffle
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout import LinearLayout, vector
from weft.target import CpuTarget

UNROLL_K = 4


@dataclass(frozen=True)
class RegisterBlock:
    """The register block: ``rows`` x ``columns`` vectors of ``lanes`` elements."""

    rows: int
    columns: int
    lanes: int


def register_block(target: CpuTarget, dtype: DType, m: int, n: int) -> RegisterBlock:
    """The largest power-of-two block that leaves registers for the operands: 16 of 32 vector registers, or 8 of 16."""
    lanes = max(1, min(n, target.vector_bits // dtype.bits))
    budget = 16 if target.vector_bits == 512 or target.triple.startswith(("aarch64", "arm64")) else 8
    columns = min(2, n // lanes)
    rows = min(m, budget // columns)
    return RegisterBlock(rows, columns, lanes)


def row_major(layout: LinearLayout) -> bool:
    """Whether a buffer under this layout is the row-major array of the tile."""
    return layout == vector(layout.shape, layout.in_size("lane"))


def element_strides(layout: LinearLayout) -> tuple[int, int] | None:
    """(row, column) strides in elements of a 2-d tile's buffer: row-major or column-major; None for anything else."""
    m, n = layout.shape
    lanes = layout.in_size("lane")
    if layout == vector((m, n), lanes):
        return n, 1
    if layout == vector((m, n), lanes, order=(0, 1)):
        return 1, m
    return None


def emit_dot(emit: Emit, target: CpuTarget, op: tile.DotOp, a: Buffer, b: Buffer, result: Buffer) -> None:
    """``result += a @ b`` in memory; all three hold elements of the accumulator's type."""
    dtype = dtype_of(op.result)
    assert dtype_of(op.a) == dtype_of(op.b) == dtype, "widen-dot casts the operands"
    strides = element_strides(layout_of(op.a))
    by_rows = row_major(layout_of(op.b)) and row_major(layout_of(op.result))
    assert strides is not None and by_rows, "the layout pass takes tile.dot's operands to rows or columns"
    (m, k), n = shape_of(op.a), shape_of(op.b)[1]
    block = register_block(target, dtype, m, n)
    kernel = _Microkernel(emit, dtype, block, (a, b, result), strides, (m, n, k))
    with maybe_loop(emit, n // (block.columns * block.lanes)) as j, maybe_loop(emit, m // block.rows) as i:
        kernel.emit(i, j)
    if m * n < result.lanes:
        _spread(emit, result, m * n)


class _Microkernel:
    def __init__(
        self,
        emit: Emit,
        dtype: DType,
        block: RegisterBlock,
        buffers: tuple[Buffer, Buffer, Buffer],
        a_strides: tuple[int, int],
        sizes: tuple[int, int, int],
    ):
        self._context = emit
        self.builder = emit.builder
        self.dtype = dtype
        self.block = block
        self.a, self.b, self.c = (buffer.pointer for buffer in buffers)
        self.a_strides = a_strides
        self.m, self.n, self.k = sizes
        self.element = buffers[2].element.register_type(None)
        # no vectors of one lane: LLVM's passes fail on them
        self.vector = ir.VectorType(self.element, block.lanes) if block.lanes > 1 else self.element

    def _at(self, pointer: ir.Value, offset: ir.Value | None, const: int) -> ir.Value:
        size = self.dtype.itemsize
        if offset is not None:
            pointer = self.builder.gep(pointer, [self.builder.mul(offset, ir.Constant(I64, size))], source_etype=I8)
        return self.builder.gep(pointer, [ir.Constant(I64, const * size)], source_etype=I8) if const else pointer

    def emit(self, i: ir.Value | None, j: ir.Value | None) -> None:
        """One block of the result at block coordinates (i, j); None is 0."""
        builder, block = self.builder, self.block
        row = None if i is None else builder.mul(i, ir.Constant(I64, block.rows))
        column = None if j is None else builder.mul(j, ir.Constant(I64, block.columns * block.lanes))
        c = self._at(self.c, None if row is None else builder.mul(row, ir.Constant(I64, self.n)), 0)
        c = self._at(c, column, 0)
        b = self._at(self.b, column, 0)
        a = self._at(self.a, None if row is None else builder.mul(row, ir.Constant(I64, self.a_strides[0])), 0)
        places = [(r, v) for r in range(block.rows) for v in range(block.columns)]
        align = min(64, self.dtype.itemsize * block.lanes)
        slots = [self._context.entry.alloca(self.vector) for _ in places]
        for (r, v), slot in zip(places, slots, strict=True):
            address = self._at(c, None, r * self.n + v * block.lanes)
            builder.store(builder.load(address, typ=self.vector, align=align), slot)
        unroll = min(UNROLL_K, self.k)
        with maybe_loop(self._context, self.k // unroll) as step:
            k = None if step is None else builder.mul(step, ir.Constant(I64, unroll))
            a_k = self._at(a, None if k is None else builder.mul(k, ir.Constant(I64, self.a_strides[1])), 0)
            b_k = self._at(b, None if k is None else builder.mul(k, ir.Constant(I64, self.n)), 0)
            sums: list[ir.Value] = [builder.load(slot, typ=self.vector) for slot in slots]
            for u in range(unroll):
                sums = self._step(a_k, b_k, u, sums)
            for value, slot in zip(sums, slots, strict=True):
                builder.store(value, slot)
        for (r, v), slot in zip(places, slots, strict=True):
            address = self._at(c, None, r * self.n + v * block.lanes)
            builder.store(builder.load(slot, typ=self.vector), address, align=align)

    def _step(self, a: ir.Value, b: ir.Value, u: int, sums: list[ir.Value]) -> list[ir.Value]:
        builder, block = self.builder, self.block
        align = self.dtype.itemsize * block.lanes
        b_vectors = [
            builder.load(self._at(b, None, u * self.n + v * block.lanes), typ=self.vector, align=min(64, align))
            for v in range(block.columns)
        ]
        result: list[ir.Value] = []
        for r in range(block.rows):
            offset = r * self.a_strides[0] + u * self.a_strides[1]
            scalar = builder.load(self._at(a, None, offset), typ=self.element, align=self.dtype.itemsize)
            a_vector = self._context.splat(scalar, block.lanes) if block.lanes > 1 else scalar
            for v in range(block.columns):
                total = sums[r * block.columns + v]
                if self.dtype == dtypes.int32:
                    result.append(builder.add(total, builder.mul(a_vector, b_vectors[v])))
                else:
                    result.append(intrinsic(builder, "fmuladd", [a_vector, b_vectors[v], total]))
        return result


class maybe_loop:
    """A loop over ``trips`` iterations giving its counter, or nothing at all (None) for a single one."""

    def __init__(self, emit: Emit, trips: int):
        self._context = emit.loop(trips) if trips > 1 else None

    def __enter__(self) -> ir.Value | None:
        return None if self._context is None else self._context.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)


def _spread(emit: Emit, result: Buffer, elements: int) -> None:
    """Repeats the first elements of a one-register tile in its duplicate lanes."""
    value = result.load(emit.builder, RegisterIndex())
    value = shuffle(emit.builder, value, [lane % elements for lane in range(result.lanes)])
    result.store(emit.builder, RegisterIndex(), value)
