"""The product of two panels by AMX: blocks of two by two tiles of sums, for a stretch of the depth at a time.

    for stretches of the depth:     so much of a right panel's two groups stays in the first-level cache
        for blocks of the result:   load its tiles, or clear them
            for each chunk:         load the left and right tiles, multiply each with each
                                    store its tiles

A tile of the left operand is 16 rows of its panel by rows. One of the right is 16 columns of a group: 1,024 bytes in a row.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from weft.codegen.cpu import amx
from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.counted import loop_to, over_blocks
from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import I8, I64, POINTER, intrinsic
from weft.ir.cpu import MultiplyOp
from weft.ir.types import shape_of
from weft.target import PRODUCTS

STRETCH: Final = 16
"""Chunks of 64 bytes of the depth that are multiplied before the next block of the result: two tiles across, 32 KiB."""

_SUMS: Final = ((0, 1), (2, 3))
_LEFT: Final = (4, 5)
_RIGHT: Final = (6, 7)
"""The numbers of the tiles."""


def multiply_tiles(registers: Registers, op: MultiplyOp, result: Buffer, *, cleared: bool) -> None:
    """Adds the product to ``result``, or to zeros in place of what is there (``cleared``)."""
    builder, product = registers.builder, PRODUCTS[op.instruction.data]
    registers.uses_tiles = True
    (m, n), (left, right) = shape_of(op.acc), op.panels
    size = amx.BYTES // (product.group * amx.ROWS)
    pitch, group = left.pitch(size) * size, right.depth * amx.ROWS * size
    rows, columns = min(2, m // amx.ROWS), min(2, n // amx.ROWS)
    a, b = (builder.inttoptr(registers.scalar(value), POINTER) for value in (op.left, op.right))
    chunks = builder.udiv(registers.scalar(op.depth), ir.Constant(I64, amx.BYTES // size))
    stretches = builder.udiv(builder.add(chunks, ir.Constant(I64, STRETCH - 1)), ir.Constant(I64, STRETCH))

    def at(pointer: ir.Value, number: ir.Value | None, stride: int, const: int = 0) -> ir.Value:
        if number is not None:
            pointer = builder.gep(pointer, [builder.mul(number, ir.Constant(I64, stride))], source_etype=I8)
        return builder.gep(pointer, [ir.Constant(I64, const)], source_etype=I8) if const else pointer

    def load(places: list[tuple[int, ir.Value]]) -> None:
        for tile, place in places:
            amx.load(builder, tile, place, 4 * n)

    def clear() -> None:
        for r in range(rows):
            for v in range(columns):
                amx.clear(builder, _SUMS[r][v])

    with loop_to(registers, stretches) as stretch:
        first = builder.mul(stretch, ir.Constant(I64, STRETCH))
        count = intrinsic(builder, "umin", [builder.sub(chunks, first), ir.Constant(I64, STRETCH)])
        a_s, b_s = at(a, first, amx.BYTES), at(b, first, amx.ROWS * amx.BYTES)
        with (
            over_blocks(registers, registers.scalar(op.columns), n, amx.ROWS * columns) as j,
            over_blocks(registers, registers.scalar(op.rows), m, amx.ROWS * rows) as i,
        ):
            a_i, b_j = at(a_s, i, rows * amx.ROWS * pitch), at(b_s, j, columns * group)
            c = at(at(result.pointer, i, rows * amx.ROWS * 4 * n), j, columns * amx.BYTES)
            places = [
                (_SUMS[r][v], at(c, None, 0, r * amx.ROWS * 4 * n + v * amx.BYTES))
                for r in range(rows)
                for v in range(columns)
            ]
            if not cleared:
                load(places)
            elif right.depth * size <= STRETCH * amx.BYTES:
                clear()
            else:
                with builder.if_else(builder.icmp_unsigned("==", stretch, ir.Constant(I64, 0))) as (at_first, later):
                    with at_first:
                        clear()
                    with later:
                        load(places)
            with loop_to(registers, count) as chunk:
                for r in range(rows):
                    amx.load(builder, _LEFT[r], at(a_i, chunk, amx.BYTES, r * amx.ROWS * pitch), pitch)
                for v in range(columns):
                    place = at(b_j, chunk, amx.ROWS * amx.BYTES, v * group)
                    amx.load(builder, _RIGHT[v], place, amx.BYTES)
                for r in range(rows):
                    for v in range(columns):
                        amx.multiply(builder, product.name, _SUMS[r][v], _LEFT[r], _RIGHT[v])
            for tile, place in places:
                amx.store(builder, tile, place, 4 * n)
