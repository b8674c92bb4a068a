"""Dot operands in the accumulator's type.

A CPU multiplies what it accumulates: the operands of `tile.dot` are cast to the accumulator's type, which is exact for all
pairs the dialect allows (bfloat16, float16 and float8 in float32, int8 in int32), once per element instead of once per use.
Sums of float16 are computed in float32 and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of


@dataclass(frozen=True)
class WidenDot(ModulePass):
    """Casts the operands of every dot to its accumulator's type; sums of float16 to float32 first."""

    name = "widen-dot"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dot in [inner for inner in ops_in(op) if isinstance(inner, tile.DotOp)]:
            wide = widen_sums(dot)
            cast_operands(wide, dtype_of(wide.acc))


def widen_sums(dot: tile.DotOp) -> tile.DotOp:
    """Makes a dot with sums of float16 one with sums of float32, whose result is rounded; returns it, others as they are."""
    if dtype_of(dot.acc) != dtypes.float16:
        return dot
    start = tile.CastOp(dot.acc, dtypes.float32)
    wide = tile.DotOp.create(
        operands=[dot.a, dot.b, start.result], properties=dot.properties, result_types=[start.result.type]
    )
    rounded = tile.CastOp(wide.result, dtypes.float16)
    for op in (start, wide, rounded):
        op.location = dot.location
    Rewriter.replace_op(dot, [start, wide, rounded])
    return wide


def cast_operands(dot: tile.DotOp, wanted: DType) -> None:
    """Casts both operands of a dot to a type, where they have another; one cast where both are one value."""
    casts: dict[SSAValue, SSAValue] = {}
    for i in (0, 1):
        operand = dot.operands[i]
        if dtype_of(operand) != wanted:
            if operand not in casts:
                cast = tile.CastOp(operand, wanted)
                cast.location = dot.location
                Rewriter.insert_op(cast, InsertPoint.before(dot))
                casts[operand] = cast.result
            dot.operands[i] = casts[operand]
