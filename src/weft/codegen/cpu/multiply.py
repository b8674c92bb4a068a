"""`cpu.multiply`: which kernel adds the products of two panels to sums, and where these are.

A kernel for vectors (`weft.codegen.cpu.product`), for instructions that multiply two rows by two columns, or for whole tiles
(`weft.codegen.cpu.tile_product`), by the instruction that the op names (`weft.target.PRODUCTS`).
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.cpu.product import Product
from weft.codegen.cpu.starts import start_of
from weft.codegen.cpu.tile_product import multiply_tiles
from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import I32, I64
from weft.ir.cpu import MultiplyOp
from weft.target import PRODUCTS


def multiply(registers: Registers, op: MultiplyOp) -> None:
    """Adds the product to the accumulator, in place where the schedule says so. A constant one is never in memory."""
    result, tiles, start = registers.home(op.result), bool(PRODUCTS[op.instruction.data].rows), start_of(op)
    if start is not None and start.loop is None:
        pass
    elif op.acc not in registers.buffers:
        registers.fill(op.acc, result)
    elif registers.buffers[op.acc].pointer is not result.pointer:
        registers.copy(registers.buffers[op.acc], result)
    if tiles:
        multiply_tiles(registers, op, result, cleared=start is not None)
    else:
        kind = _SquareProduct if PRODUCTS[op.instruction.data].square else Product
        kind(registers, op, result, start).emit()
    registers.buffers[op.result] = result


class _SquareProduct(Product):
    """By an instruction that multiplies two rows by two columns, of two words each. A register of sums has two rows of two."""

    words = 2

    def _arranged(self, sums: list[ir.Value]) -> list[ir.Value]:
        """Of two rows the first halves, then the second ones."""
        columns, result = self.block.columns, list[ir.Value](sums)
        for r in range(0, self.block.rows, 2):
            for v in range(columns):
                pair = [r * columns + v, (r + 1) * columns + v]
                upper, lower = (sums[i] for i in pair)
                for i, order in zip(pair, ([0, 1, 4, 5], [2, 3, 6, 7]), strict=True):
                    order_ = ir.Constant(ir.VectorType(I32, 4), order)
                    result[i] = self.builder.shuffle_vector(upper, lower, order_)
        return result

    def _step(self, a: ir.Value, right: list[ir.Value], k: int, sums: list[ir.Value]) -> list[ir.Value]:
        builder, block, columns = self.builder, self.block, self.block.columns
        pairs, result = ir.VectorType(I64, 2), list[ir.Value](sums)
        right = [builder.bitcast(each, pairs) for each in right]
        for r in range(0, block.rows, 2):
            left: ir.Value = ir.Constant(pairs, ir.Undefined)
            for i in range(2):
                word = builder.load(self._at(a, None, self._row(r + i, k)), typ=I64, align=8)
                left = builder.insert_element(left, word, ir.Constant(I32, i))
            for p, columns_ in enumerate(right):
                i = (r + p % 2) * columns + p // 2
                result[i] = self._added(sums[i], left, columns_)
        return result
