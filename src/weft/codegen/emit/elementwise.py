"""Elementwise ops on LLVM values, for every machine: one entry for each op, scalars and vectors alike.

The operands of an entry have one shape, the result has it too, so a machine calls it for a scalar, for a SIMD vector or for a
thread's registers. Pointers are 64-bit integers in registers; an access turns them into LLVM pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from llvmlite import ir
from xdsl.ir import Operation

from weft import dtypes
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import I64, broadcast, lanes_of
from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer

Elementwise = Callable[[ir.IRBuilder, Any, Sequence[ir.Value]], ir.Value]
"""What an op computes of its operands' values: builder, op, operands to result."""


def emit_elementwise(builder: ir.IRBuilder, op: Operation, operands: Sequence[ir.Value]) -> ir.Value:
    """The result of one elementwise op."""
    return ELEMENTWISE[type(op)](builder, op, operands)


def _unary(builder: ir.IRBuilder, op: tile.UnaryOp, operands: Sequence[ir.Value]) -> ir.Value:
    return arith.unary(builder, op.kind.data, dtype_of(op.operand), *operands)


def _binary(builder: ir.IRBuilder, op: tile.BinaryOp, operands: Sequence[ir.Value]) -> ir.Value:
    return arith.binary(builder, op.kind.data, dtype_of(op.lhs), *operands)


def _compare(builder: ir.IRBuilder, op: tile.CompareOp, operands: Sequence[ir.Value]) -> ir.Value:
    dtype = dtypes.uint64 if is_pointer(op.lhs) else dtype_of(op.lhs)
    return arith.compare(builder, op.kind.data, dtype, *operands)


def _select(builder: ir.IRBuilder, op: tile.SelectOp, operands: Sequence[ir.Value]) -> ir.Value:
    condition, then, otherwise = operands
    return builder.select(condition, then, otherwise)


def _fma(builder: ir.IRBuilder, op: tile.FmaOp, operands: Sequence[ir.Value]) -> ir.Value:
    return arith.fma(builder, dtype_of(op.result), *operands)


def _cast(builder: ir.IRBuilder, op: tile.CastOp, operands: Sequence[ir.Value]) -> ir.Value:
    return arith.cast(builder, operands[0], dtype_of(op.source), dtype_of(op.result))


def _bitcast(builder: ir.IRBuilder, op: tile.BitcastOp, operands: Sequence[ir.Value]) -> ir.Value:
    source, result = (None if is_pointer(v) else dtype_of(v) for v in (op.source, op.result))
    if source is None and result is None:
        return operands[0]
    return arith.bitcast(builder, operands[0], result or dtypes.int64)


def _hint(builder: ir.IRBuilder, op: tile.HintOp, operands: Sequence[ir.Value]) -> ir.Value:
    return operands[0]


def _addptr(builder: ir.IRBuilder, op: tile.AddPtrOp, operands: Sequence[ir.Value]) -> ir.Value:
    pointer, offset = operands
    dtype = dtype_of(op.offset)
    if dtype.bits < 64:
        offset = (builder.sext if dtype.signed else builder.zext)(offset, pointer.type)
    shift = dtype_of(op.pointer).itemsize.bit_length() - 1
    if shift:
        amount, lanes = ir.Constant(I64, shift), lanes_of(pointer)
        offset = builder.shl(offset, amount if lanes is None else broadcast(builder, amount, lanes))
    return builder.add(pointer, offset)


ELEMENTWISE: Final[Mapping[type[Operation], Elementwise]] = {
    tile.UnaryOp: _unary,
    tile.BinaryOp: _binary,
    tile.CompareOp: _compare,
    tile.SelectOp: _select,
    tile.FmaOp: _fma,
    tile.CastOp: _cast,
    tile.BitcastOp: _bitcast,
    tile.HintOp: _hint,
    tile.AddPtrOp: _addptr,
}
"""The code of each op whose class is elementwise."""
