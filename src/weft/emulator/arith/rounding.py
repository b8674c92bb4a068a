"""One rounding, in any mode, of results that NumPy has only rounded to nearest.

Python cannot change the processor's rounding mode, and rationals are slow. Therefore a result of float32 operands is
computed in float64 and corrected until one further rounding, to 24 bits or fewer and in any mode, gives what rounding the
exact result would give. Rounding to odd is that correction: an inexact float64 is replaced by its neighbour whose last bit
is 1 on the side of the exact result, so it lies on no boundary of a narrower format, and on the right side of each (Boldo
and Melquiond, "Emulation of a FMA and correctly rounded sums", IEEE Transactions on Computers 57(4), 2008).

    x + y          = 1 + 2**-24 + 2**-60        exactly; float32 keeps bits down to 2**-23
    in float64     = 1 + 2**-24                 a tie, which goes to even: 1.0, wrong
    to odd         = 1 + 2**-24 + 2**-52        above the tie: 1 + 2**-23

A boundary of a format of up to 24 bits (one of its numbers, or the middle between two) has zeros in the last 28 of float64's
53 bits. Where no sum has, nothing needs to be corrected: that is the usual case and costs one look.

Modes are PTX's modifiers: rn (to nearest, ties to even), rz (towards zero), rm (towards minus infinity), rp (towards
plus infinity). Functions expect NumPy's floating-point warnings to be off, as the emulator runs, and take 0-d arrays too.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

F32: TypeAlias = NDArray[np.float32]
F64: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = NDArray[np.floating[Any]]

_Array = TypeVar("_Array", bound=NDArray[Any])

MODES: Final = ("rn", "rz", "rm", "rp")

TINY: Final = {np.dtype("f4"): np.float32(2.0**-126), np.dtype("f8"): np.float64(2.0**-1022)}
"""The smallest normal number of each format."""

NAN32: Final = np.array(0x7FFF_FFFF, np.uint32).view(np.float32)
"""The NaN that single-precision instructions return."""

_LAST_28: Final = np.uint64((1 << 28) - 1)
_INFINITY: Final = {"rm": -np.inf, "rp": np.inf, "rz": 0.0}
"""Where a directed rounding goes."""


def sum_error(x: Floats, y: Floats, total: F64) -> F64:
    """``x + y - total`` exactly, for ``total`` their float64 sum (Knuth's two-sum). NaN where anything is not finite."""
    part = total - x
    return (x - (total - part)) + (y - part)


def to_odd(total: F64, error: F64) -> F64:
    """``total + error`` rounded to odd, for an error of at most half a unit in the last place of ``total``."""
    bits = np.asarray(total).view(np.int64)
    inexact = (error != 0) & ((bits & 1) == 0) & np.isfinite(total)
    away = (error > 0) == (total > 0)
    return (bits + np.where(away, 1, -1) * inexact).view(np.float64)


def exact_sum(x: F64, y: Floats, mode: str = "rn") -> F64:
    """``x + y`` so that rounding it in ``mode``, to 24 bits or fewer, rounds the exact sum.

    Requires that the sum neither overflow nor underflow in float64: so it is for x a product of two float32 and y a float32.
    The sign of an exact zero is as ``mode`` has it.
    """
    total = np.asarray(x + y)
    if np.count_nonzero(total.view(np.uint64) & _LAST_28) != np.count_nonzero(total):
        error = sum_error(x, y, total)
        if np.count_nonzero(error):
            total = to_odd(total, error)
    if mode == "rm":
        total = np.where((total == 0) & (np.signbit(x) != np.signbit(y)), -0.0, total)
    return total


def to_float32(exact: F64, mode: str) -> F32:
    """Float64 values, exact or rounded to odd, rounded to float32."""
    near = np.asarray(exact, np.float64).astype(np.float32)
    if mode == "rn":
        return near
    wide = near.astype(np.float64)
    if mode == "rm":
        wrong = wide > exact
    elif mode == "rp":
        wrong = wide < exact
    else:
        wrong = np.abs(wide) > np.abs(exact)
    return np.where(wrong, np.nextafter(near, np.float32(_INFINITY[mode])), near)


def directed(near: F64, error: F64, mode: str) -> F64:
    """What ``near``, the rounding to nearest of ``near + error``, is in another mode; only the error's sign matters."""
    if mode == "rn":
        return near
    if mode == "rm":
        wrong = error < 0
    elif mode == "rp":
        wrong = error > 0
    else:
        wrong = ((error < 0) & (near > 0)) | ((error > 0) & (near < 0))
    return np.where(wrong, np.nextafter(near, _INFINITY[mode]), near)


def flush(x: _Array) -> _Array:
    """``.ftz``: subnormal values become zeros of their sign."""
    result: Any = x * (np.abs(x) >= TINY[x.dtype])
    return result


def saturate(x: Floats) -> Any:
    """``.sat``: values clamped to [0, 1], NaN and -0 become +0."""
    one = x.dtype.type(1)
    return np.fmin(np.fmax(x, x.dtype.type(0)), one) + x.dtype.type(0)


def canonical(x: F32) -> F32:
    """Replaces NaNs by the canonical one, in place. (A sum of squares is NaN if and only if a term is.)"""
    flat = x.reshape(-1)
    squares = flat.dot(flat)
    if squares != squares:  # noqa: PLR0124 - NaN is what differs from itself
        x = np.asarray(x)
        x[np.isnan(x)] = NAN32
    return x


def relu(x: _Array) -> _Array:
    """``.relu``: negative values and -0 become +0; NaN stays."""
    zero = x.dtype.type(0)
    return np.maximum(x, zero) + zero


_EXTREMES: Final[dict[tuple[bool, bool], Any]] = {
    (False, False): np.fmin,
    (False, True): np.minimum,
    (True, False): np.fmax,
    (True, True): np.maximum,
}


def extreme(x: _Array, y: _Array, largest: bool, nan: bool) -> _Array:
    """The smaller or larger of two, where -0 is below +0. NaN counts as missing, unless ``nan``: then it is the result."""
    result: Any = _EXTREMES[largest, nan](x, y)
    if np.count_nonzero(result) != result.size:  # equal numbers have equal bits, unless they are zeros of both signs
        integer = f"u{x.dtype.itemsize}"
        combine = np.bitwise_and if largest else np.bitwise_or
        result = np.where(x == y, combine(x.view(integer), y.view(integer)).view(x.dtype), result)
    return result


def copy_sign_of_product(size: Any, x: Any, y: Any) -> Any:
    """A number with the sign that ``x * y`` has."""
    negative: Any = np.signbit(x) != np.signbit(y)
    return np.copysign(size, 1 - 2 * negative.astype(size.dtype))
