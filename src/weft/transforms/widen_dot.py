"""Dot operands in the accumulator's type.

A CPU multiplies what it accumulates: the operands of `tile.dot` are cast to the accumulator's type, which is exact for all
pairs the dialect allows (bfloat16, float16 and float8 in float32, int8 in int32), once per element instead of once per use.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of


@dataclass(frozen=True)
class WidenDot(ModulePass):
    """Casts the operands of every dot to its accumulator's type."""

    name = "widen-dot"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dot in [inner for inner in op.walk() if isinstance(inner, tile.DotOp)]:
            cast_operands(dot, dtype_of(dot.acc))


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
