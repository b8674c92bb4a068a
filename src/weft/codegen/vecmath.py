"""placeholder"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from weft.codegen.llvm import declare, per_lane, scalar_type


def _libm(kind: str) -> Callable[[ir.IRBuilder, ir.Value], ir.Value]:
    def emit(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        element = scalar_type(x)
        name = kind + ("f" if isinstance(element, ir.FloatType) else "")
        return per_lane(builder, declare(builder.module, name, element, [element]), [x])

    return emit


FUNCTIONS = {k: _libm(k) for k in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf")}
