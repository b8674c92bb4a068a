"""The functions of float32 that NVIDIA GPUs approximate in an instruction: those for which Triton emits it.

`weft.target.APPROXIMATIONS` has their errors. float64 and the functions that are not here are computed as on a CPU
(`weft.codegen.llvm.vecmath`). Triton's ``log``, ``sin``, ``cos``, ``erf`` and ``tanh`` are polynomials too, those of libdevice.

The subnormal results of ``exp`` are kept. The instructions of ``exp2``, ``sqrt`` and ``rsqrt`` take subnormal operands and
results for zeros (``.ftz``): without that, each is several instructions of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from llvmlite import ir

from weft.codegen.llvm.types import F32, declare, has, inlined, per_lane, scalar_type, splat
from weft.target import APPROXIMATIONS

LOG2_E: Final = 1.4426950408889634

Function = Callable[..., ir.Value]
"""A function of float32 and float64 values of one shape."""

_INTRINSICS: Final[Mapping[str, str]] = {
    "exp": "llvm.nvvm.ex2.approx.f",
    "exp2": "llvm.nvvm.ex2.approx.ftz.f",
    "sqrt": "llvm.nvvm.sqrt.approx.ftz.f",
    "rsqrt": "llvm.nvvm.rsqrt.approx.ftz.f",
    "div": "llvm.nvvm.div.full",
}
"""The instruction of each kind, by LLVM's name. That of ``exp`` takes the operand times log2 e."""

if _INTRINSICS.keys() != APPROXIMATIONS.keys():
    raise ValueError("weft.codegen.llvm.approximate: the kinds are not those of weft.target.APPROXIMATIONS")


def approximated(kind: str, exact: Function) -> Function:
    """``exact``, or on float32 of an NVIDIA GPU the instruction of ``kind`` if it has one."""
    name = _INTRINSICS.get(kind)
    if name is None:
        return exact

    def body(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> ir.Value:
        if kind == "exp":
            operands = [builder.fmul(operands[0], splat(LOG2_E, operands[0].type))]
        return per_lane(builder, declare(builder.module, name, F32, [F32] * len(operands)), operands)

    def emit(builder: ir.IRBuilder, *operands: ir.Value) -> ir.Value:
        if not has(builder, "ptx") or scalar_type(operands[0]) != F32:
            return exact(builder, *operands)
        return inlined(builder, f"approximate.{kind}", operands, operands[0].type, body)

    return emit
