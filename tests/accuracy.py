"""Whether results of approximated functions are within the errors that `weft.target.APPROXIMATIONS` states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.dtypes import DType
from weft.reference.numbers import rounded
from weft.target import APPROXIMATIONS, Accuracy

Array = NDArray[Any]


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


EXACT: Final[Mapping[str, Callable[..., Any]]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt,
    "div": np.divide,
}
"""The kinds in float64."""
TINY: Final = 2.0**-126
BEYOND: Final = 2.0**128 - 2.0**103
"""What rounds to infinity in float32."""


def unit(exact: Array) -> Array:
    """The distance of float32's neighbours in the binade of each value."""
    return np.ldexp(1.0, np.maximum(np.frexp(np.where(np.isfinite(exact), exact, 0.0))[1] - 1, -126) - 23)


def flushed(x: Array) -> Array:
    """Zeros of the same sign for subnormal float32."""
    return np.where(np.abs(x) < TINY, np.copysign(0.0, x), x)


def _interval(accuracy: Accuracy, operand: Array, exact: Array) -> tuple[Array, Array]:
    size = np.where(np.isfinite(operand), np.abs(operand), 0.0)
    bound = (accuracy.ulps + accuracy.slope * size) * unit(exact) + accuracy.relative * np.abs(exact)
    bound = np.where(np.isfinite(exact), bound, 0.0)
    low, high = exact - bound, exact + bound
    if accuracy.flushes:
        low, high = (
            np.where((np.abs(x) < TINY) & (exact != 0), y, x) for x, y in ((low, 0.0 * exact), (high, 0.0 * exact))
        )
    return np.minimum(low, high), np.maximum(low, high)


def wrong(kind: str, dtype: DType, operands: Sequence[Array], found: Array) -> NDArray[np.bool_]:
    """Where ``found`` is further from the exact result than `APPROXIMATIONS` permits. Narrow types: than the nearest of a float32
    result that is permitted."""
    with np.errstate(all="ignore"):
        accuracy = APPROXIMATIONS[kind]
        wide = [x.astype(np.float64) for x in operands]
        if accuracy.flushes:
            wide = [flushed(x) for x in wide]
        exact = np.asarray(EXACT[kind](*wide))
        low, high = _interval(accuracy, wide[0], exact)
        got = found.astype(np.float64)
        if dtype == dtypes.float32:
            low, high = (np.where(np.abs(x) >= BEYOND, np.copysign(np.inf, x), x) for x in (low, high))
        else:
            low, high = (
                rounded(x.astype(np.float32).astype(np.float64), dtype).astype(np.float64) for x in (low, high)
            )
        good = (low <= got) & (got <= high)
        good &= (exact != 0) | (np.signbit(exact) == np.signbit(got))
        return ~np.where(np.isnan(low) | np.isnan(high), np.isnan(got), good)
