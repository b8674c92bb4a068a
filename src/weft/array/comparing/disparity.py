"""In how many elements two arrays differ, and by how much.

Elements are compared by their exact values, whatever their types. A subtraction in float64 would make 2**53 + 1 of an int64
equal to 2**53, and a wraparound of uint64 would look like rounding. So compared are: integers with integers exactly, floats
(all of at most 64 bits) in float64, which holds them, and 64-bit integers with floats as Python compares them. NaN equals NaN
(complex: where any part is), and the two zeros are equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.dtypes import named
from weft.semantics import Number


@dataclass(frozen=True)
class Disparity:
    """``count`` of ``size`` elements differ, the first (in row-major order) at ``index``: ``first`` on the one side, ``second``
    on the other. ``absolute`` and ``relative`` are the greatest differences, the latter to the greater magnitude of the
    two; where NaN stands on one side only (``nans`` elements) there is no difference to measure, which is NaN if there is
    no other element."""

    count: int
    size: int
    index: tuple[int, ...]
    first: Number
    second: Number
    absolute: float
    relative: float
    nans: int = 0


def unlike(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two arrays of one shape differ. `ValueError` for other shapes."""
    if a.shape != b.shape:
        raise ValueError(f"arrays of shapes {a.shape} and {b.shape} have no elements to compare")
    left, right = _comparable(a, b)
    return np.asarray(left != right, np.bool_) & ~(_nan(left) & _nan(right))


def disparity(a: NDArray[Any], b: NDArray[Any], among: NDArray[np.bool_] | None = None) -> Disparity | None:
    """How two arrays of one shape differ, with the first difference ``among`` these elements (default: all); None where they
    do not. `ValueError` for other shapes."""
    differ = unlike(a, b)
    count = int(np.count_nonzero(differ))
    if not count:
        return None
    flat = int(np.argmax((differ if among is None else differ & among).reshape(-1)))
    index = tuple(int(i) for i in np.unravel_index(flat, a.shape))
    left, right = _comparable(a, b)
    x, y = left[differ], right[differ]
    numbers = ~(_nan(x) | _nan(y))
    absolute, relative = _greatest(x[numbers], y[numbers])
    nans = count - int(np.count_nonzero(numbers))
    return Disparity(count, a.size, index, _plain(a, flat), _plain(b, flat), absolute, relative, nans)


def _comparable(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both in types in which NumPy's ``!=`` is exact; Python's numbers where 64-bit integers meet others."""
    kinds = [named(x.dtype.name) for x in (a, b)]
    wide = [kind for kind in kinds if kind.bits == 64 and kind.is_integer]
    if wide and a.dtype != b.dtype:
        return a.astype(object), b.astype(object)
    if any(kind.is_complex for kind in kinds):
        return a.astype(np.complex128), b.astype(np.complex128)
    if any(kind.is_float for kind in kinds):
        return a.astype(np.float64), b.astype(np.float64)
    return (a, b) if wide else (a.astype(np.int64), b.astype(np.int64))


def _nan(x: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(x != x, np.bool_)  # noqa: PLR0124  # only NaN differs from itself, also as a Python number


def _greatest(x: NDArray[Any], y: NDArray[Any]) -> tuple[float, float]:
    """The greatest absolute and relative difference of numbers that differ."""
    if not x.size:
        return math.nan, math.nan
    with np.errstate(all="ignore"):
        if x.dtype != object and not _wide(x, y):
            far = np.where(x > y, x - y, y - x) if x.dtype.kind in "iu" else abs(x - y)
        else:
            x, y = x.astype(object), y.astype(object)
            far = np.array([_distance(a, b) for a, b in zip(x, y, strict=True)], object)
        scale = np.maximum(abs(x), abs(y))
        relative = np.where(np.isinf(far.astype(np.float64)), np.inf, far / scale)
    return float(far.max()), float(relative.astype(np.float64).max())


def _wide(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether differences of these integers may need more bits than their type has."""
    return x.dtype.kind in "iu" and any(abs(int(v)) >= 1 << 62 for side in (x, y) for v in (side.min(), side.max()))


def _distance(x: Number, y: Number) -> Number:
    """The difference; exact where both are whole, which Python's would not be of an integer and a float."""
    if isinstance(x, complex) or isinstance(y, complex):
        return abs(x - y)
    if math.isfinite(x) and math.isfinite(y) and x == int(x) and y == int(y):
        return abs(int(x) - int(y))
    return abs(x - y)


def _plain(x: NDArray[Any], flat: int) -> Number:
    value = x.reshape(-1)[flat]
    return value.item() if x.dtype.isbuiltin == 1 else float(value)
