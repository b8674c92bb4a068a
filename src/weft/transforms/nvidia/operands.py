"""Dot operands in a type that a matrix instruction takes.

Before ``sm_89`` no instruction multiplies float8, and none multiplies floats of different sizes. Where a wider type holds all
values of both operands and has an instruction, they are cast to it, which is exact: float8 to float16. What is left is multiplied
by each thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of
from weft.target import GpuTarget, gpu
from weft.transforms.nvidia.matrix import MATRIX_FAMILIES, instruction_of, shape_for
from weft.transforms.widen_dot import cast_operands


@dataclass(frozen=True)
class MatchOperands(ModulePass):
    """Casts the operands of each dot that has no matrix instruction to the narrowest type that has one."""

    name = "match-operands"

    target: str = "sm_90"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = gpu(self.target)
        for dot in [inner for inner in op.walk() if isinstance(inner, tile.DotOp)]:
            wanted = _type_for(dot, target)
            if wanted is not None:
                cast_operands(dot, wanted)


def _type_for(dot: tile.DotOp, target: GpuTarget) -> DType | None:
    """The type that both operands shall have; None where they stay as they are."""
    if instruction_of(dot, target) is not None:
        return None
    operands = [dtype_of(value) for value in (dot.a, dot.b)]
    total = dtype_of(dot.acc)
    types = [
        dtype
        for family in MATRIX_FAMILIES
        if total in family.accumulators and shape_for(dot, family, target) is not None
        for dtype in family.operands
    ]
    return min((dtype for dtype in types if all(_holds(dtype, one) for one in operands)), key=_bits, default=None)


def _bits(dtype: DType) -> int:
    return dtype.bits


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``."""
    if wide == narrow:
        return True
    if not (wide.is_float and narrow.is_float):
        return False
    least, least_wide = (2.0 ** (1 - dtype.bias - dtype.mantissa) for dtype in (narrow, wide))
    return wide.mantissa >= narrow.mantissa and wide.largest >= narrow.largest and least_wide <= least
