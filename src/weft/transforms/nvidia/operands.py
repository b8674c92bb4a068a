"""Dot operands in a type that a matrix instruction takes.

Before ``sm_89`` no instruction multiplies float8, from ``sm_90`` on none is used (`matrix.MATRIX_FAMILIES`), and none
multiplies floats of different sizes. Where a wider type holds all
values of both operands and has an instruction, they are cast to it, which is exact: float8 to float16. What is left is multiplied
by each thread, and sums of float16 are then in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.dtypes import DType, lossless
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of
from weft.target import GpuTarget, gpu
from weft.transforms.nvidia.matrix import MATRIX_FAMILIES, family_of, instruction_of, shape_for
from weft.transforms.widen_dot import cast_operands, widen_sums


@dataclass(frozen=True)
class MatchOperands(ModulePass):
    """Casts the operands of each dot that has no matrix instruction to the narrowest type that has one."""

    name = "match-operands"

    target: str = "sm_90"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = gpu(self.target)
        for dot in [inner for inner in ops_in(op) if isinstance(inner, tile.DotOp)]:
            if instruction_of(dot, target) is not None:
                continue
            wanted = _type_for(dot, target)
            if wanted is not None:
                cast_operands(dot, wanted)
            else:
                widen_sums(dot)


def _type_for(dot: tile.DotOp, target: GpuTarget) -> DType | None:
    """The type that both operands shall have; None where no instruction has such sums, or the dot is too small."""
    operands = [dtype_of(value) for value in (dot.a, dot.b)]
    total = dtype_of(dot.acc)
    types = [
        dtype
        for dtype in dict.fromkeys(dtype for family in MATRIX_FAMILIES for dtype in family.operands)
        if (family := family_of(dtype, dtype, total)) is not None and shape_for(dot, family, target) is not None
    ]
    return min((dtype for dtype in types if all(lossless(one, dtype) for one in operands)), key=_bits, default=None)


def _bits(dtype: DType) -> int:
    return dtype.bits
