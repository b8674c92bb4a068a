"""Conversions between element types, each rounded exactly once.

NumPy's ``astype`` is not used: ml_dtypes reaches the narrow floats through float32, so a float64 or an int64 is rounded twice
there: the double just above 1 + 2**-8, a midpoint of bfloat16, becomes that midpoint in float32 and
then 1. Every source first becomes a float64 that decides all narrower roundings as the exact value would, and
`rounded` does the one rounding by its definition. Float to integer saturates, as LLVM's ``fptosi.sat`` does, and NaN
gives 0.

Which NaN results is not specified anywhere in tile IR.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.dtypes import DType, float64

Array: TypeAlias = NDArray[Any]

_EXACT_IN_FLOAT64 = 1 << 53
_STICKY_BITS = 11  # 64 - 53: what an int64 has more than a float64's significand


def rounded(x: Array, dtype: DType) -> Array:
    """The float64 values ``x`` rounded to a floating-point ``dtype``, to nearest even.

    ``rint(x / ulp) * ulp``, where ``ulp`` is the distance of ``dtype``'s neighbours at ``x`` and all steps but ``rint``
    are exact. What exceeds the largest finite value after rounding is an infinity, in a finite-only format NaN. A format that
    saturates rounds ties away from zero.
    """
    if dtype.bits >= 32:
        return np.asarray(x).astype(dtype.numpy)
    if dtype.saturates:
        return _saturated_codes(x, dtype)
    exponent = np.frexp(x)[1] - 1
    ulp = np.maximum(exponent, 1 - dtype.bias) - dtype.mantissa
    near = np.ldexp(np.rint(np.ldexp(x, -ulp)), ulp)
    beyond = np.copysign(np.nan if dtype.finite_only else np.inf, x)
    return np.where(np.abs(near) > dtype.largest, beyond, near).astype(dtype.numpy)


def wide(x: Array, dtype: DType, compute: DType = float64) -> Array:
    """Elements of a float ``dtype`` as the numbers they are, in a type that has them all."""
    return (dtype.values[x] if dtype.saturates else x).astype(compute.numpy)


def _saturated_codes(x: Array, dtype: DType) -> Array:
    """The codes of float64 values in a format that saturates: the nearest number's, by search among all."""
    numbers = dtype.values[: dtype.saturates + 1]
    size = np.fmin(np.abs(x), numbers[-1])
    below = np.searchsorted(numbers, size, side="right") - 1
    above = np.minimum(below + 1, dtype.saturates)
    codes = np.where(size - numbers[below] < numbers[above] - size, below, above)
    return (codes | np.where(np.signbit(x), 0x80, 0)).astype(dtype.storage)


def add_to_odd(x: Array, y: Array) -> Array:
    """``x + y`` of float64 values rounded to odd: an inexact sum becomes the odd one of its two neighbours.

    Rounding the result to 51 bits or fewer gives what rounding the exact sum would (Boldo and Melquiond,
    "Emulation of a FMA and correctly rounded sums", 2008). The sum must not overflow.
    """
    total = np.asarray(x + y)
    part = total - x
    error = (x - (total - part)) + (y - part)
    even = total.view(np.int64) % 2 == 0
    other = np.nextafter(total, np.copysign(np.inf, error))
    return np.where(even & np.isfinite(error) & (error != 0), other, total)


def cast(x: Array, source: DType, target: DType) -> Array:
    """``tile.cast``: the values of ``x``, of type ``source``, as ``target``."""
    if target.is_bool:
        return np.asarray((wide(x, source) if source.is_float else x) != 0)
    if source.is_float:
        number = wide(x, source)
        return rounded(number, target) if target.is_float else _saturated(number, target)
    if target.is_float and target.bits < 32:
        return rounded(_integers_to_odd(x), target)
    return x.astype(target.numpy)


def _saturated(x: Array, dtype: DType) -> Array:
    """Float64 values truncated toward zero into an integer type; beyond its range its nearest end, NaN gives 0."""
    whole = np.trunc(x)
    above = whole >= 2.0 ** (dtype.bits - dtype.signed)
    below = whole <= dtype.min
    inside = np.where(above | below | np.isnan(x), 0, whole).astype(dtype.numpy)
    integer = dtype.numpy.type
    return np.where(above, integer(dtype.max), np.where(below, integer(dtype.min), inside))


def _integers_to_odd(x: Array) -> Array:
    """Integers as float64; those that need more than 53 bits rounded to odd multiples of ``2**11``."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    exact = (x <= _EXACT_IN_FLOAT64) & (x >= (0 if x.dtype.kind == "u" else -_EXACT_IN_FLOAT64))
    sticky = (x % (1 << _STICKY_BITS) != 0).astype(x.dtype)
    odd = ((x >> _STICKY_BITS) | sticky) << _STICKY_BITS
    return np.where(exact, x, odd).astype(np.float64)
