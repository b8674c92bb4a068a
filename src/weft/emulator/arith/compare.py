"""PTX's comparisons, of integers and of floats with NaNs.

An *ordered* comparison of floats is false if either operand is a NaN; an *unordered* one, its name ending in u, is true then.
Half of them are NumPy's comparisons, the other half the opposite of one:

    lt  x < y          false for NaNs         ltu  not x >= y       true for NaNs
    ne  x < y or x > y                        neu  NumPy's x != y
    num neither is NaN                        nan  either is
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Comparison: TypeAlias = Callable[[Array, Array], Any]


def _both_numbers(x: Array, y: Array) -> Any:
    return np.equal(x, x) & np.equal(y, y)


def _apart(x: Array, y: Array) -> Any:
    return np.less(x, y) | np.greater(x, y)


def _opposite(comparison: Comparison) -> Comparison:
    return lambda x, y: ~comparison(x, y)


SIGNED: Final[dict[str, Comparison]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
"""Comparisons of signed integers."""

UNSIGNED: Final[dict[str, Comparison]] = SIGNED | {
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
"""Comparisons of unsigned integers: lower, same, higher; the signed names are allowed."""

UNTYPED: Final[dict[str, Comparison]] = {"eq": np.equal, "ne": np.not_equal}
"""Comparisons of bits."""

FLOATING: Final[dict[str, Comparison]] = SIGNED | {
    "ne": _apart,
    "equ": _opposite(_apart),
    "neu": np.not_equal,
    "ltu": _opposite(np.greater_equal),
    "leu": _opposite(np.greater),
    "gtu": _opposite(np.less_equal),
    "geu": _opposite(np.less),
    "num": _both_numbers,
    "nan": _opposite(_both_numbers),
}
"""Comparisons of floats."""


def flush(x: Array) -> Array:
    """Floats with subnormal numbers replaced by zero (of either sign: no comparison tells them apart)."""
    return np.where(np.abs(x) < np.finfo(x.dtype).smallest_normal, x.dtype.type(0), x)


def from_bfloat16(bits: Array) -> Array:
    """The float32 values of bfloat16s given by their bits."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
