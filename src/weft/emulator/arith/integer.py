"""Integer arithmetic that NumPy lacks: high halves, saturation, division that truncates.

All functions take NumPy integer arrays (or 0-d ones) and wrap modulo 2**n, as NumPy's own operations do. They are used with
NumPy's warnings off (division by zero has a value here, see `quotient`).
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

WIDER: Final[dict[str, np.dtype[Any]]] = {
    narrow: np.dtype(wide) for narrow, wide in (("u2", "u4"), ("i2", "i4"), ("u4", "u8"), ("i4", "i8"))
}
"""The type that products of a type fit in, by `code`."""


def code(dtype: np.dtype[Any]) -> str:
    """``i4`` for int32."""
    return f"{dtype.kind}{dtype.itemsize}"


def high(x: Array, y: Array) -> Array:
    """The upper n bits of the 2n-bit products of n-bit numbers of one type.

    For 64 bits from four products of halves, x = x1 2^32 + x0: every sum below fits in 64 bits, since
    (2^32-1)^2 + 2 (2^32-1) = 2^64 - 1. A signed product's high half is the unsigned one less y where x < 0 and less
    x where y < 0, because a negative x stands for x - 2^64.
    """
    if (wide := WIDER.get(code(x.dtype))) is not None:
        product = np.multiply(x, y, dtype=wide)
        return (product >> (8 * x.dtype.itemsize)).astype(x.dtype)
    a, b = x.view("u8"), y.view("u8")
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    top = a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & low)) >> half)
    if x.dtype.kind == "i":
        zero = np.uint64(0)
        top = top - np.where(x < 0, b, zero) - np.where(y < 0, a, zero)
    return np.asarray(top).view(x.dtype)


def saturate(values: Array, dtype: np.dtype[Any]) -> Array:
    """The nearest values of a narrower integer type."""
    limits = np.iinfo(dtype)
    return np.clip(values, limits.min, limits.max).astype(dtype)


def difference(x: Array, y: Array) -> Array:
    """|x - y| modulo 2^n: exact where the type can hold it, taken as unsigned."""
    return np.maximum(x, y) - np.minimum(x, y)


def _unless_zero(result: Array, y: Array) -> Array:
    """All ones where y is 0. The ISA leaves it open; the code that ptxas makes gives this, for quotients and remainders of all
    widths."""
    if y.ndim == 0 and y != 0:
        return result
    return np.where(y == 0, np.array(-1).astype(result.dtype), result)


def _truncated(x: Array, y: Array) -> Array:
    """x / y towards zero, whatever where y is 0.

    Up to 32 bits by dividing float64s: below an integer q the nearest quotient is q - 1/y, and with x = q y its distance from
    q is 1/x of q, more than 2^-53 of it, so rounding does not reach q. NumPy's integer division takes ten times as long.
    """
    if x.dtype.itemsize <= 4:
        return np.divide(x, y, dtype=np.float64).astype(np.int64).astype(x.dtype)
    return (x - np.fmod(x, y)) // y if x.dtype.kind == "i" else x // y


def quotient(x: Array, y: Array) -> Array:
    """x / y towards zero; all ones where y is 0; the least number over -1 is the least number."""
    return _unless_zero(_truncated(x, y), y)


def remainder(x: Array, y: Array) -> Array:
    """x - y trunc(x / y): the sign is x's; all ones where y is 0."""
    return _unless_zero(x - y * _truncated(x, y), y)


def low24(x: Array) -> Array:
    """The lowest 24 bits as a 64-bit number, signed as x is."""
    eight = np.array(8, x.dtype)
    return ((x << eight) >> eight).astype("i8")
