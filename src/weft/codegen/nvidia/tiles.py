"""Ops that each thread does on its own registers: generators, elementwise ops, and shape ops, which move nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llvmlite import ir
from xdsl.ir import Operation

from weft.codegen.emit.context import Lowering
from weft.codegen.emit.elementwise import ELEMENTWISE
from weft.codegen.emit.views import columns_of_view
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import I32, broadcast
from weft.codegen.nvidia.files import chunk_sizes, take
from weft.codegen.nvidia.threads import Threads, thread_columns
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout.algebra import f2


def _constant(threads: Threads, op: tile.ConstantOp) -> None:
    if not shape_of(op.result):
        threads.scalars[op.result] = threads.scalar(op.result)
        return
    sizes = chunk_sizes(layout_of(op.result).in_size("register"))
    threads.files[op.result] = tuple(arith.constant(dtype_of(op.result), op.number, size) for size in sizes)


def _splat(threads: Threads, op: tile.SplatOp) -> None:
    scalar = threads.scalar(op.source)
    sizes = chunk_sizes(layout_of(op.result).in_size("register"))
    threads.files[op.result] = tuple(broadcast(threads.builder, scalar, size) for size in sizes)


def _arange(threads: Threads, op: tile.ArangeOp) -> None:
    """The index of a register is the XOR of the thread's part and its own; they share no bit, so that it is their sum."""
    layout, start = layout_of(op.result), op.start.value.data
    thread = threads.builder.add(threads.linear(thread_columns(layout)), ir.Constant(I32, start))
    numbers = [f2.apply(layout.columns("register"), r) for r in range(layout.in_size("register"))]
    chunks: list[ir.Value] = []
    at = 0
    for size in chunk_sizes(len(numbers)):
        own = ir.Constant(ir.VectorType(I32, size), [ir.Constant(I32, n) for n in numbers[at : at + size]])
        chunks.append(threads.builder.add(broadcast(threads.builder, thread, size), own))
        at += size
    threads.files[op.result] = tuple(chunks)


def _elementwise(threads: Threads, op: Operation) -> None:
    (result,) = op.results
    if not shape_of(result):
        threads.scalars[result] = threads.compute(op, [threads.scalar(operand) for operand in op.operands])
        return
    operands = [threads.files[operand] for operand in op.operands]
    threads.files[result] = tuple(threads.compute(op, chunks) for chunks in zip(*operands, strict=True))
    if _needs_product(op):
        for chunk in threads.files[result]:
            if isinstance(chunk, ir.Instruction):
                chunk.flags = [flag for flag in chunk.flags if flag != "contract"]


def _needs_product(op: Operation) -> bool:
    """Whether a product is also used otherwise than in sums. It is then computed anyway: fused sums would save no instruction,
    and keep its factors in registers for longer."""
    if not isinstance(op, tile.BinaryOp) or op.kind.data != "mul":
        return False
    users = [use.operation for use in op.result.uses]
    return len(users) > 1 and any(not isinstance(u, tile.BinaryOp) or u.kind.data not in ("add", "sub") for u in users)


def _shape(threads: Threads, op: tile.ShapeOp) -> None:
    columns = columns_of_view(op)
    registers = [f2.apply(columns, r) for r in range(1 << len(columns))]
    threads.files[op.result] = take(threads.builder, threads.files[op.source], registers)


TILES: Final[Mapping[type[Operation], Lowering]] = {
    tile.ConstantOp: _constant,
    tile.SplatOp: _splat,
    tile.ArangeOp: _arange,
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys((op for op in tile.Tile.operations if issubclass(op, tile.ShapeOp)), _shape),
}
"""The lowerings of ops on a thread's own registers."""
