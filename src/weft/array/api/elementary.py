"""Elementwise functions by name, beside those of `functions`: each is one operation of `weft.semantics.ops`.

As there, the system is that of the arrays, else the current one; it decides which functions it has, and for which types.
Spellings of NumPy and of PyTorch name the same function (``arcsin`` and ``asin``, ``clip`` and ``clamp``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from weft.array.api.functions import Data
from weft.array.api.lazy import Array, apply, asarray
from weft.array.api.rounding import clip_one, rounded

Unary = Callable[[Data], Array]
Binary = Callable[[Data, Data], Array]


def _unary(op: str, text: str) -> Unary:
    def function(x: Data) -> Array:
        return apply(op, x)

    return _described(function, op, text)


def _binary(op: str, text: str) -> Binary:
    def function(x: Data, y: Data) -> Array:
        return apply(op, x, y)

    return _described(function, op, text)


def _described(function: Any, op: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = op if op.isidentifier() else text
    function.__doc__ = text
    return function


isnan: Final = _unary("isnan", "Whether an element is NaN.")
isinf: Final = _unary("isinf", "Whether an element is infinite.")
isfinite: Final = _unary("isfinite", "Whether an element is neither infinite nor NaN.")
isposinf: Final = _unary("isposinf", "Whether an element is the positive infinity.")
isneginf: Final = _unary("isneginf", "Whether an element is the negative infinity.")
signbit: Final = _unary("signbit", "Whether the sign is negative, of a zero and a NaN too.")
log1p: Final = _unary("log1p", "log(1 + x).")
expm1: Final = _unary("expm1", "exp(x) - 1.")
sinh: Final = _unary("sinh", "The hyperbolic sine.")
cosh: Final = _unary("cosh", "The hyperbolic cosine.")
asin: Final = _unary("asin", "The angle of a sine.")
acos: Final = _unary("acos", "The angle of a cosine.")
atan: Final = _unary("atan", "The angle of a tangent.")
asinh: Final = _unary("asinh", "The inverse of sinh.")
acosh: Final = _unary("acosh", "The inverse of cosh.")
atanh: Final = _unary("atanh", "The inverse of tanh.")
erfc: Final = _unary("erfc", "1 - erf(x).")
lgamma: Final = _unary("lgamma", "The logarithm of the absolute value of the gamma function.")
rint: Final = _unary("rint", "The nearest whole number, halves to even.")
trunc: Final = _unary("trunc", "The whole number next to x toward zero.")
reciprocal: Final = _unary("reciprocal", "1 / x.")
imag: Final = _unary("imag", "The imaginary part.")
conj: Final = _unary("conj", "The complex conjugate.")
angle: Final = _unary("angle", "The angle of a complex number.")
positive: Final = _unary("pos", "The elements themselves.")
negative: Final = _unary("neg", "The elements with the other sign.")
invert: Final = _unary("~", "The elements with all bits inverted.")
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh
conjugate, fix, bitwise_not = conj, trunc, invert

logical_and: Final = _binary("logical_and", "Whether neither element is zero.")
logical_or: Final = _binary("logical_or", "Whether one of the elements is not zero.")
logical_xor: Final = _binary("logical_xor", "Whether exactly one of the elements is not zero.")
hypot: Final = _binary("hypot", "sqrt(x * x + y * y) without overflow.")
copysign: Final = _binary("copysign", "x with the sign of y.")
heaviside: Final = _binary("heaviside", "0 where x is below zero, 1 where it is above, y where it is zero.")
logaddexp2: Final = _binary("logaddexp2", "log2(2 ** x + 2 ** y) without overflow.")
fmax: Final = _binary("fmax", "The greater of each pair; the number where one is NaN.")
fmin: Final = _binary("fmin", "The lesser of each pair; the number where one is NaN.")
add: Final = _binary("+", "x + y.")
subtract: Final = _binary("-", "x - y.")
multiply: Final = _binary("*", "x * y.")
divide: Final = _binary("/", "x / y.")
floor_divide: Final = _binary("//", "x // y.")
remainder: Final = _binary("%", "x % y.")
equal: Final = _binary("==", "x == y.")
not_equal: Final = _binary("!=", "x != y.")
less: Final = _binary("<", "x < y.")
less_equal: Final = _binary("<=", "x <= y.")
greater: Final = _binary(">", "x > y.")
greater_equal: Final = _binary(">=", "x >= y.")
bitwise_and: Final = _binary("&", "x & y.")
bitwise_or: Final = _binary("|", "x | y.")
bitwise_xor: Final = _binary("^", "x ^ y.")
left_shift: Final = _binary("<<", "x << y.")
right_shift: Final = _binary(">>", "x >> y.")
power: Final = _binary("**", "x to the power of y.")
float_power: Final = _binary("fpow", "x to the power of y, computed in floats.")


def clip(x: Data, min: Data | None = None, max: Data | None = None) -> Array:
    """``x`` limited to ``min <= x <= max``; a bound that is None is none. The types are those of ``clamp(x, min, max)``."""
    if min is None or max is None:
        bound = max if min is None else min
        if bound is None:
            raise ValueError("clip takes a least or a greatest value, found neither; pass min= or max=")
        return clip_one(x, bound, "maximum" if max is None else "minimum")
    return apply("clamp", x, min, max)


def round(x: Data, decimals: int = 0) -> Array:
    """``x`` to so many decimals, by the system's rule for ties.

    Without decimals NumPy, JAX, PyTorch and MAX round halves to even, Triton's libdevice away from zero. With decimals the
    systems multiply by a power of 10, round, and divide, each step in the type; Triton and MAX have no such function, and
    JAX and PyTorch none of integers.
    """
    return rounded(x if isinstance(x, Array) else asarray(x), operator.index(decimals))
