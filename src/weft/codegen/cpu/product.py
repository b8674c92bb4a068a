"""The product of two panels: a blocked multiply-add kernel with sums in registers for the panels' whole depth.

    for blocks of the result:   load its vectors
        for each k:             load ``columns`` vectors of the right panel
            for each row:       broadcast left[row, k], multiply-add into each
                                store its vectors

Both panels are read in the order in which they lie. Each element's products are added one by one in the order of k, so the
sum does not depend on blocks, tiles, panels or threads.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.counted import over_blocks
from weft.codegen.cpu.microkernel import RegisterBlock
from weft.codegen.cpu.tile_product import multiply_tiles
from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import I8, I64, POINTER, intrinsic
from weft.dtypes import DType
from weft.ir.cpu import MultiplyOp
from weft.ir.types import dtype_of, shape_of
from weft.target import FMA, CpuTarget

UNROLL = 4
"""Elements of the contracted axis for which the innermost loop is unrolled."""


def product_block(target: CpuTarget, dtype: DType, m: int, width: int) -> RegisterBlock:
    """The block of sums: as many columns as the right panel's groups have, and rows for half of the vector registers."""
    lanes = min(width, max(1, target.vector_bits // dtype.bits))
    many = target.vector_bits == 512 or target.triple.startswith(("aarch64", "arm64"))
    columns = width // lanes
    return RegisterBlock(min(m, max(1, (16 if many else 8) // columns)), columns, lanes)


def multiply(registers: Registers, op: MultiplyOp) -> None:
    """Adds the product to the accumulator, in place where the schedule says so."""
    result = registers.home(op.result)
    if op.acc not in registers.buffers:
        registers.fill(op.acc, result)
    elif registers.buffers[op.acc].pointer is not result.pointer:
        registers.copy(registers.buffers[op.acc], result)
    if op.instruction.data == FMA.name:
        _Product(registers, op, result).emit()
    else:
        multiply_tiles(registers, op, result)
    registers.buffers[op.result] = result


class _Product:
    def __init__(self, registers: Registers, op: MultiplyOp, result: Buffer):
        self._registers = registers
        self.builder = registers.builder
        self.dtype = dtype_of(op.acc)
        self.m, self.n = shape_of(op.acc)
        self.left, self.right = op.panels
        self.block = product_block(registers.target, self.dtype, self.m, self.right.width)
        self.c = result.pointer
        self.a, self.b = (self.builder.inttoptr(registers.scalar(v), POINTER) for v in (op.left, op.right))
        self.wanted = registers.scalar(op.rows), registers.scalar(op.columns)
        self.steps = self.builder.udiv(registers.scalar(op.depth), ir.Constant(I64, UNROLL))
        self.element = result.element.register_type(None)
        self.vector = ir.VectorType(self.element, self.block.lanes)

    def _at(self, pointer: ir.Value, offset: ir.Value | None, const: int = 0) -> ir.Value:
        """``offset + const`` elements further."""
        size = self.dtype.itemsize
        if offset is not None:
            pointer = self.builder.gep(pointer, [self.builder.mul(offset, ir.Constant(I64, size))], source_etype=I8)
        return self.builder.gep(pointer, [ir.Constant(I64, const * size)], source_etype=I8) if const else pointer

    def _times(self, number: ir.Value | None, by: int) -> ir.Value | None:
        return None if number is None else self.builder.mul(number, ir.Constant(I64, by))

    def emit(self) -> None:
        """All blocks of the result that are wanted: a group of the right panel stays in cache while the rows go by."""
        width, rows = self.right.width, self.block.rows
        with over_blocks(self._registers, self.wanted[1], self.n, width) as j:
            b = self._at(self.b, self._times(j, width * self.right.depth))
            c = self._at(self.c, self._times(j, width))
            with over_blocks(self._registers, self.wanted[0], self.m, rows) as i:
                self._block(self._left(i), b, self._at(c, self._times(i, rows * self.n)))

    def _left(self, i: ir.Value | None) -> ir.Value:
        """The first element of a block's rows in the left panel."""
        rows, width = self.block.rows, self.left.width
        if not width:
            return self._at(self.a, self._times(i, rows * self.left.pitch(self.dtype.itemsize)))
        if i is None or rows >= width:
            return self._at(self.a, self._times(i, rows * self.left.depth))
        blocks = width // rows
        group = self.builder.udiv(i, ir.Constant(I64, blocks))
        within = self.builder.urem(i, ir.Constant(I64, blocks))
        return self._at(self._at(self.a, self._times(group, width * self.left.depth)), self._times(within, rows))

    def _row(self, row: int, k: int) -> int:
        """The offset of an element of the left panel from the block's first."""
        left = self.left
        if not left.width:
            return row * left.pitch(self.dtype.itemsize) + k
        return row // left.width * left.width * left.depth + k * left.width + row % left.width

    def _block(self, a: ir.Value, b: ir.Value, c: ir.Value) -> None:
        builder, block = self.builder, self.block
        align = min(64, self.dtype.itemsize * block.lanes)
        places = [
            self._at(c, None, r * self.n + v * block.lanes) for r in range(block.rows) for v in range(block.columns)
        ]
        sums = [builder.load(place, typ=self.vector, align=align) for place in places]
        before = builder.block
        head, done = (self._registers.function.append_basic_block(name) for name in ("depth", "summed"))
        builder.branch(head)
        builder.position_at_end(head)
        step = builder.phi(I64)
        step.add_incoming(ir.Constant(I64, 0), before)
        phis = [builder.phi(self.vector) for _ in sums]
        for phi, value in zip(phis, sums, strict=True):
            phi.add_incoming(value, before)
        a_k = self._at(a, self._times(step, UNROLL * max(1, self.left.width)))
        b_k = self._at(b, self._times(step, UNROLL * self.right.width))
        sums = list[ir.Value](phis)
        for k in range(UNROLL):
            sums = self._step(a_k, b_k, k, sums)
        after = builder.add(step, ir.Constant(I64, 1))
        step.add_incoming(after, builder.block)
        for phi, value in zip(phis, sums, strict=True):
            phi.add_incoming(value, builder.block)
        self._registers.repeats(builder.cbranch(builder.icmp_unsigned("<", after, self.steps), head, done))
        builder.position_at_end(done)
        for place, value in zip(places, sums, strict=True):
            builder.store(value, place, align=align)

    def _step(self, a: ir.Value, b: ir.Value, k: int, sums: list[ir.Value]) -> list[ir.Value]:
        builder, block, size = self.builder, self.block, self.dtype.itemsize
        right = [
            builder.load(
                self._at(b, None, k * self.right.width + v * block.lanes),
                typ=self.vector,
                align=min(64, size * block.lanes),
            )
            for v in range(block.columns)
        ]
        result: list[ir.Value] = []
        for r in range(block.rows):
            scalar = builder.load(self._at(a, None, self._row(r, k)), typ=self.element, align=size)
            left = self._registers.splat(scalar, block.lanes)
            for v in range(block.columns):
                total = sums[r * block.columns + v]
                if self.dtype.is_integer:
                    result.append(builder.add(total, builder.mul(left, right[v])))
                else:
                    result.append(intrinsic(builder, "fmuladd", [left, right[v], total]))
        return result
