"""The meanings of `ops.FAMILY` in NumPy: functions that array programs use beside operators.

`weft.semantics.evaluate` reads these tables beside its own, and rounds: floats narrower than 32 bits are computed in float32,
functions of calculus in float64, and rounded once. What the definitions of `weft.semantics.meanings` leave open:

| case | result |
|---|---|
| ``rint`` | to nearest, halves to even; ``round_away`` halves away from zero; a zero has the sign of x |
| ``reciprocal`` of integers | 1 / x toward zero; of 0 MIN of int32 and int64, else 0 (x86's infinity) |
| ``angle`` of a real number | atan2(0, x): pi below zero and for -0.0 |
| ``angle_real`` | pi below zero, NaN for NaN, else 0 (for -0.0 too) |
| ``copysign`` with a NaN | the NaN's own sign counts |
| ``hypot`` of an infinity and a NaN | infinity |
| ``lgamma`` at 0, -1, -2, ... | infinity |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.dtypes import DType

Array: TypeAlias = NDArray[Any]

QUESTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    name: getattr(np, name) for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")
}
"""Questions about floats and complex numbers, which give bool."""

QUESTIONS_OF_INTEGERS: Final[dict[str, Callable[[int], bool]]] = {
    **dict.fromkeys(("isnan", "isinf", "isposinf", "isneginf"), lambda x: False),
    "isfinite": lambda x: True,
    "signbit": lambda x: x < 0,
}
"""The same of integers and bools."""


def _in_float64(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of calculus, in float64 and rounded back; complex numbers in their own type."""

    def emit(*operands: Array) -> Array:
        if operands[0].dtype.kind == "c":
            return np.asarray(function(*operands))
        return np.asarray(function(*(x.astype(np.float64) for x in operands))).astype(operands[0].dtype)

    return emit


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def _round_away(x: Array) -> Array:
    size = np.abs(x)
    whole = np.floor(size)
    return np.copysign(np.where(size - whole >= 0.5, whole + 1, whole), x)


def _heaviside(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x), x, np.where(x == 0, y, (x > 0).astype(x.dtype)))


def _heaviside_compare(x: Array, y: Array) -> Array:
    return np.where(x == 0, y, (x > 0).astype(x.dtype))


def _angle_real(x: Array) -> Array:
    return np.where(np.isnan(x), x, np.where(x < 0, math.pi, 0.0)).astype(x.dtype)


def reciprocal(dtype: DType, x: int) -> int:
    """1 / x toward zero, as C computes it by way of a double on x86."""
    if x:
        return x if abs(x) == 1 else 0
    return dtype.min if dtype.signed and dtype.bits >= 32 else 0


FLOATS_UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    **{name: _in_float64(getattr(np, name)) for name in ("log1p", "expm1", "sinh", "cosh")},
    **{f"a{name}": _in_float64(getattr(np, f"arc{name}")) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "erfc": _in_float64(np.vectorize(math.erfc, otypes=[np.float64])),
    "lgamma": _in_float64(np.vectorize(_lgamma, otypes=[np.float64])),
    "rint": np.rint,
    "round_away": _round_away,
    "trunc": np.trunc,
    "reciprocal": np.reciprocal,
    "imag": np.imag,
    "conj": np.conjugate,
    "angle": _in_float64(np.angle),
    "angle_real": _angle_real,
}
"""The meanings of one float or complex number."""

FLOATS_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "hypot": _in_float64(np.hypot),
    "copysign": np.copysign,
    "heaviside": _heaviside,
    "heaviside_compare": _heaviside_compare,
    "logaddexp2": _in_float64(np.logaddexp2),
}
"""The meanings of two floats."""

INTEGERS_BINARY: Final[dict[str, Callable[[int, int, DType], int]]] = {
    "heaviside": lambda x, y, _: y if x == 0 else int(x > 0),
}
"""The meanings of two integers."""

INTEGERS_UNARY: Final[dict[str, Callable[[int], int]]] = {
    "imag": lambda x: 0,
    **dict.fromkeys(("rint", "round_away", "trunc", "conj"), lambda x: x),
}
"""The meanings of one integer; `reciprocal` asks for the type too."""

COMPLEX: Final = frozenset(
    ("isnan", "isinf", "isfinite", "log1p", "expm1", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh")
    + ("atanh", "rint", "reciprocal", "imag", "conj", "angle", "exp2", "log2", "log10", "sign", "rsqrt", "sigmoid")
    + ("less", "less_equal", "greater", "greater_equal", "minimum", "maximum", "minimum_nan", "maximum_nan")
)
"""The meanings that take complex numbers."""
