"""The functions of ``triton.language.extra.libdevice`` that tile IR can express."""

from __future__ import annotations

from weft.language.elementwise import (
    abs,
    ceil,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    floor,
    fma,
    log,
    log2,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    tanh,
)

__all__ = [
    "abs", "ceil", "cos", "div_rn", "erf", "exp", "exp2", "floor", "fma", "log", "log2", "rsqrt", "sin", "sqrt",
    "sqrt_rn", "tanh",
]  # fmt: skip
