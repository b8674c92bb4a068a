"""Ops on scalars, for every machine: the grid, assumptions, and arithmetic of rank 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llvmlite import ir
from xdsl.dialects import func
from xdsl.ir import Operation

from weft.codegen.emit.context import Emit, Lowering
from weft.codegen.emit.elementwise import ELEMENTWISE
from weft.codegen.llvm.types import intrinsic
from weft.ir import tile


def _program_id(emit: Emit, op: tile.ProgramIdOp) -> None:
    emit.scalars[op.result] = emit.grid.ids[op.axis.value.data]


def _num_programs(emit: Emit, op: tile.NumProgramsOp) -> None:
    emit.scalars[op.result] = emit.grid.sizes[op.axis.value.data]


def _constant(emit: Emit, op: tile.ConstantOp) -> None:
    emit.scalars[op.result] = emit.scalar(op.result)


def _assume(emit: Emit, op: tile.AssumeOp) -> None:
    intrinsic(emit.builder, "assume", [emit.scalar(op.condition)], ir.VoidType(), [])


def _elementwise(emit: Emit, op: Operation) -> None:
    emit.scalars[op.results[0]] = emit.compute(op, [emit.scalar(operand) for operand in op.operands])


def _nothing(emit: Emit, op: Operation) -> None:
    """The end of a function; `Emit`'s machine returns."""


SCALARS: Final[Mapping[type[Operation], Lowering]] = {
    tile.ProgramIdOp: _program_id,
    tile.NumProgramsOp: _num_programs,
    tile.ConstantOp: _constant,
    tile.AssumeOp: _assume,
    func.ReturnOp: _nothing,
    **dict.fromkeys(ELEMENTWISE, _elementwise),
}
"""The lowerings of ops whose operands and results are scalars."""
