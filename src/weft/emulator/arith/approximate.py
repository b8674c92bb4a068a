"""The instructions that approximate (``.approx``, PTX ISA 9.7.3 and 9.7.4): the float64 result, rounded once.

Hardware evaluates tables and polynomials that are not published; the ISA gives bounds on their error. What is computed here
is within little more than half a unit in the last place of the mathematical function, so within each bound, and the same on
every machine up to NumPy's float64 functions; hardware's last bits differ. The bounds, against which this is tested:

    rcp       1 ulp                            sin, cos   2**-20.5 absolute in [-2 pi, 2 pi]
    sqrt      relative 2**-23                  lg2        2**-22 absolute in (0.5, 2), else relative
    rsqrt     relative 2**-22.9                ex2        2 ulp (f16: relative 2**-9.9; bf16: 2**-7)
    div       2 ulp for |b| in [2**-126, 2**126]          tanh       relative 2**-11 (f16: absolute 2**-10.987; bf16: 2**-8)

Special values are the ISA's tables'. Functions take float32 (or float64) and expect NumPy's floating-point warnings off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.emulator.arith.rounding import F32, F64


def div(x: F32, y: F32) -> F32:
    """``div.approx``: x * (1/y), where the reciprocal of what is beyond 2**126 is zero: then infinite x gives NaN."""
    large = np.abs(y) > np.float32(2.0**126)
    return np.where(large, x * np.copysign(np.float32(0), y), x / y)


def rsqrt(x: F64) -> F64:
    """1 / sqrt(x); of -0 minus infinity."""
    return 1.0 / np.sqrt(x)


def rcp(x: F64) -> F64:
    """1 / x."""
    return 1.0 / x


FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "rcp": rcp,
    "sqrt": np.sqrt,
    "rsqrt": rsqrt,
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}
"""The functions of one float64 operand, by opcode."""

_HIGH: Final = np.uint64(0xFFFF_FFFF_0000_0000)
_HALF: Final = np.uint64(0x8000_0000)
_NAN64: Final = np.array(0x7FFF_FFFF_0000_0000, np.uint64).view(np.float64)


def gross(function: Callable[[F64], F64], x: F64) -> F64:
    """``rcp.approx.ftz.f64`` and ``rsqrt.approx.ftz.f64``: of the upper word of the operand, into the upper word of the
    result, whose lower word is zero; subnormal operands and results are zeros, and NaN is 0x7fffffff00000000."""
    cut = (np.asarray(x).view(np.uint64) & _HIGH).view(np.float64)
    result = _flush(function(_flush(cut))).view(np.uint64)
    rounded = _flush(((result + _HALF) & _HIGH).view(np.float64))  # none of these results is a tie
    return np.where(np.isnan(result.view(np.float64)), _NAN64, rounded)


def _flush(x: F64) -> F64:
    return np.asarray(x * (np.abs(x) >= 2.0**-1022))
