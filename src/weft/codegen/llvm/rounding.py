"""floor, ceil and trunc, also where the machine rounds to integers by a function of libm: SSE2, before SSE4.1.

Adding ``2^p`` to a number of p bits below that rounds it to an integer, to the nearest; subtracting it leaves the integer. Where
that lies on the wrong side, it is one too much. Larger numbers are integers.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.llvm.types import F64, has, intrinsic, scalar_type, splat


def rounded(builder: ir.IRBuilder, name: str, x: ir.Value) -> ir.Value:
    """``floor``, ``ceil`` or ``trunc`` of floats. Zeros have the sign of ``x``."""
    if has(builder, "rounds"):
        return intrinsic(builder, name, [x])
    size = intrinsic(builder, "fabs", [x])
    limit = splat(2.0 ** (52 if scalar_type(x) == F64 else 23), x.type)
    nearest = builder.fsub(builder.fadd(size, limit), limit)
    zero, one = splat(0.0, x.type), splat(1.0, x.type)
    if name == "trunc":
        wrong = builder.fcmp_ordered("<", size, nearest)
        whole = builder.fsub(nearest, builder.select(wrong, one, zero))
    else:
        signed = intrinsic(builder, "copysign", [nearest, x])
        above, below = (signed, x) if name == "ceil" else (x, signed)
        wrong = builder.fcmp_ordered("<", above, below)
        step = builder.fadd if name == "ceil" else builder.fsub
        whole = step(signed, builder.select(wrong, one, zero))
    result = intrinsic(builder, "copysign", [whole, x])
    return builder.select(builder.fcmp_ordered("<", size, limit), result, x)
