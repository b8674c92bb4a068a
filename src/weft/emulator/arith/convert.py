"""Conversions between integers and floats (PTX ISA, ``cvt``): one rounding, then saturation.

NumPy's casts are not enough: they leave what does not fit undefined and round to nearest only, while the ISA defines every
case. A float is rounded to an integral float, which is exact, then clamped, then cast. An integer of 64 bits is the sum of two
floats of 32 bits each, rounded once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.rounding import F64, directed, exact_sum, sum_error

INTEGRAL: Final = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
"""Rounding to an integral value, by PTX's modifiers."""


def to_integer(x: NDArray[Any], mode: str, target: np.dtype[Any], nan: int) -> NDArray[Any]:
    """Floats rounded to integers in a mode and clamped to the range of the target; NaN becomes the bits ``nan``."""
    whole = INTEGRAL[mode](x)
    flat = whole.reshape(-1)
    if target.itemsize >= 4 and flat.dot(flat) < 2.0**60:  # so each is below 2**31 in size, and none is NaN
        return whole.astype(target) if target.kind == "i" else np.maximum(whole, 0).astype(target)
    info = np.iinfo(target)
    if target.itemsize < 8:
        clamped = np.fmin(np.fmax(whole.astype(np.float64), info.min), info.max).astype(np.int64)
        return np.where(np.isnan(x), nan, clamped).astype(target)
    beyond = float(info.max)  # one more than the largest: 2**63, 2**64
    fits = np.where(whole < beyond, np.fmax(whole, info.min), 0).astype(target)
    result = np.where(whole >= beyond, target.type(info.max), fits)
    return np.where(np.isnan(x), np.array(nan, np.uint64).view(target), result)


def clamped(x: NDArray[Any], target: np.dtype[Any]) -> NDArray[Any]:
    """Integers clamped to the range of another integer type."""
    here, there = np.iinfo(x.dtype), np.iinfo(target)
    return np.clip(x, max(here.min, there.min), min(here.max, there.max)).astype(target)


def from_integer(x: NDArray[Any], mode: str) -> F64:
    """Integers as float64, such that rounding to 24 bits or fewer in ``mode`` rounds the integer."""
    if x.dtype.itemsize < 8:
        return np.asarray(x).astype(np.float64)
    high, low = _parts(x)
    return exact_sum(high, low, mode)


def integer_to_float64(x: NDArray[Any], mode: str) -> F64:
    """Integers rounded to float64."""
    if x.dtype.itemsize < 8:
        return np.asarray(x).astype(np.float64)
    high, low = _parts(x)
    near = np.asarray(high + low)
    return directed(near, sum_error(high, low, near), mode)


def _parts(x: NDArray[Any]) -> tuple[F64, F64]:
    low = x & x.dtype.type(0xFFFF_FFFF)
    return np.asarray(x - low).astype(np.float64), np.asarray(low).astype(np.float64)
