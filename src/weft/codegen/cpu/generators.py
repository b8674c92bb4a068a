"""Tiles made of scalars and constants: any register or lane of them is computed where it is wanted."""

from __future__ import annotations

from llvmlite import ir
from xdsl.ir import Operation

from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.emit.context import Emit
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import I32
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of
from weft.layout.algebra import f2


def generated_register(emit: Emit, op: Operation, index: RegisterIndex) -> ir.Value:
    """The vector of one register."""
    layout = layout_of(op.results[0])
    lanes = layout.in_size("lane")
    match op:
        case tile.SplatOp():
            return emit.splat(emit.scalar(op.source), lanes)
        case tile.ConstantOp():
            return arith.constant(dtype_of(op.result), op.number, lanes)
        case _:
            assert isinstance(op, tile.ArangeOp), f"{op.name} is no generator"
            columns = layout.columns("lane")
            within = [f2.apply(columns, lane) for lane in range(lanes)]
            base = emit.splat(_arange_base(emit, op, index), lanes)
            return emit.builder.add(base, ir.Constant(ir.VectorType(I32, lanes), [ir.Constant(I32, w) for w in within]))


def generated_lane(emit: Emit, op: Operation, index: RegisterIndex, lane: int) -> ir.Value:
    """One lane of one register, as a scalar."""
    match op:
        case tile.SplatOp():
            return emit.scalar(op.source)
        case tile.ConstantOp():
            return arith.constant(dtype_of(op.result), op.number, None)
        case _:
            assert isinstance(op, tile.ArangeOp), f"{op.name} is no generator"
            within = f2.apply(layout_of(op.result).columns("lane"), lane)
            base = _arange_base(emit, op, index)
            return emit.builder.add(base, ir.Constant(I32, within)) if within else base


def _arange_base(emit: Emit, op: tile.ArangeOp, index: RegisterIndex) -> ir.Value:
    offset = index.through(layout_of(op.result).columns("register")).value(emit.builder)
    return emit.builder.add(emit.builder.trunc(offset, I32), ir.Constant(I32, op.start.value.data))
