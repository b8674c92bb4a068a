"""The operations that Python has no operator for, by name.

Each takes arrays, data and numbers; the system is that of the arrays, else the current one. The system decides which of them it
has, and for which types; it raises its own error for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from weft.array.api.lazy import Array, Axis, apply, asarray

Data = Any
"""An `Array`, an array of another library, a typed constant, or a number."""


def _array(data: Data) -> Array:
    return data if isinstance(data, Array) else asarray(data)


def where(condition: Data, x: Data, y: Data) -> Array:
    """``x`` where ``condition`` is not zero, else ``y``."""
    return apply("where", condition, x, y)


def clamp(value: Data, low: Data, high: Data) -> Array:
    """``min(max(value, low), high)``."""
    return apply("clamp", value, low, high)


def minimum(x: Data, y: Data) -> Array:
    """The lesser of each pair."""
    return apply("minimum", x, y)


def maximum(x: Data, y: Data) -> Array:
    """The greater of each pair."""
    return apply("maximum", x, y)


def atan2(y: Data, x: Data) -> Array:
    """The angle of the point (x, y)."""
    return apply("atan2", y, x)


arctan2 = atan2


def logaddexp(x: Data, y: Data) -> Array:
    """log(exp(x) + exp(y)) without overflow."""
    return apply("logaddexp", x, y)


def fmod(x: Data, y: Data) -> Array:
    """The remainder with the dividend's sign."""
    return apply("fmod", x, y)


def fpow(x: Data, y: Data) -> Array:
    """The power, computed in floats (DALI)."""
    return apply("fpow", x, y)


def fdiv(x: Data, y: Data) -> Array:
    """The quotient of floats (Triton)."""
    return apply("fdiv", x, y)


def cdiv(x: Data, y: Data) -> Array:
    """The quotient rounded up."""
    return apply("cdiv", x, y)


def matmul(x: Data, y: Data) -> Array:
    """The matrix product."""
    return apply("matmul", x, y)


def logical_not(x: Data) -> Array:
    """Whether an element is zero."""
    return apply("not", x)


def absolute(x: Data) -> Array:
    """The absolute value."""
    return apply("abs", x)


def fabs(x: Data) -> Array:
    """The absolute value, as a float."""
    return apply("fabs", x)


def sign(x: Data) -> Array:
    """-1, 0 or 1."""
    return apply("sign", x)


def square(x: Data) -> Array:
    """x * x."""
    return apply("square", x)


def sqrt(x: Data) -> Array:
    """The square root."""
    return apply("sqrt", x)


def rsqrt(x: Data) -> Array:
    """One over the square root."""
    return apply("rsqrt", x)


def cbrt(x: Data) -> Array:
    """The cube root."""
    return apply("cbrt", x)


def exp(x: Data) -> Array:
    """e to the x."""
    return apply("exp", x)


def exp2(x: Data) -> Array:
    """2 to the x."""
    return apply("exp2", x)


def log(x: Data) -> Array:
    """The natural logarithm."""
    return apply("log", x)


def log2(x: Data) -> Array:
    """The logarithm to base 2."""
    return apply("log2", x)


def log10(x: Data) -> Array:
    """The logarithm to base 10."""
    return apply("log10", x)


def sin(x: Data) -> Array:
    """The sine."""
    return apply("sin", x)


def cos(x: Data) -> Array:
    """The cosine."""
    return apply("cos", x)


def tan(x: Data) -> Array:
    """The tangent."""
    return apply("tan", x)


def tanh(x: Data) -> Array:
    """The hyperbolic tangent."""
    return apply("tanh", x)


def erf(x: Data) -> Array:
    """The error function."""
    return apply("erf", x)


def sigmoid(x: Data) -> Array:
    """1 / (1 + exp(-x))."""
    return apply("sigmoid", x)


def floor(x: Data) -> Array:
    """The greatest integer not above x."""
    return apply("floor", x)


def ceil(x: Data) -> Array:
    """The least integer not below x."""
    return apply("ceil", x)


def real(x: Data) -> Array:
    """The real part."""
    return apply("real", x)


def astype(x: Data, dtype: object) -> Array:
    """The system's explicit cast."""
    return _array(x).astype(dtype)


def sum(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The sum over ``axis``."""
    return _array(x).sum(axis, keepdims)


def prod(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The product over ``axis``."""
    return _array(x).prod(axis, keepdims)


def mean(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over ``axis``."""
    return _array(x).mean(axis, keepdims)


def max(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The greatest element over ``axis``."""
    return _array(x).max(axis, keepdims)


def min(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The least element over ``axis``."""
    return _array(x).min(axis, keepdims)


def argmax(x: Data, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """The index of the first greatest element along ``axis``."""
    return _array(x).argmax(axis, keepdims)


def argmin(x: Data, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """The index of the first least element along ``axis``."""
    return _array(x).argmin(axis, keepdims)


def any(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether an element over ``axis`` is not zero."""
    return _array(x).any(axis, keepdims)


def all(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether every element over ``axis`` is not zero."""
    return _array(x).all(axis, keepdims)


def cumsum(x: Data, axis: SupportsIndex | None = None) -> Array:
    """The sums of the elements up to each along ``axis``."""
    return _array(x).cumsum(axis)


def reshape(x: Data, shape: Sequence[SupportsIndex] | SupportsIndex) -> Array:
    """The elements in row-major order under another shape."""
    return _array(x).reshape(shape)


def broadcast_to(x: Data, shape: Sequence[SupportsIndex] | SupportsIndex) -> Array:
    """The elements repeated along dimensions of size 1 and in front."""
    return _array(x).broadcast_to(shape)


def transpose(x: Data, axes: Sequence[SupportsIndex] | None = None) -> Array:
    """The dimensions in another order, reversed by default."""
    return _array(x).transpose(axes)


def expand_dims(x: Data, axis: SupportsIndex | Sequence[SupportsIndex]) -> Array:
    """With dimensions of size 1 at the places ``axis``."""
    return _array(x).expand_dims(axis)


def squeeze(x: Data, axis: Axis = None) -> Array:
    """Without dimensions of size 1."""
    return _array(x).squeeze(axis)
