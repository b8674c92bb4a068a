"""Steps whose result for a thread depends on that thread's operands alone.

All threads are computed, then the active ones are written: NumPy computes a whole array faster than the part of it that a mask
selects. The results of inactive threads are discarded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Active
from weft.emulator.ops.registry import MANY, Step, masked

Array: TypeAlias = NDArray[Any]
"""Values of all threads, (T,) or (T, parts), or of shape () where they are all the same constant."""


def assign(d: Array, compute: Callable[[], Any]) -> Step:
    """``d = compute()`` for the active threads."""

    def step(active: Active) -> None:
        masked(d, compute(), active)

    return step


def elementwise(d: Array, ufunc: Callable[..., Any], *inputs: Array) -> Step:
    """``d = ufunc(*inputs)`` for the active threads, by one of NumPy's functions that take ``out``."""
    rest = assign(d, lambda: ufunc(*inputs))

    def step(active: Active) -> None:
        if active.full:
            ufunc(*inputs, out=d)
        else:
            rest(active)

    return step


def select(mask: Array, x: Array, y: Array) -> Array:
    """x where the mask holds, else y; all of one type. Of many by bits, as `masked` does."""
    if mask.size < MANY or x.dtype.kind == "b":
        return np.where(mask, x, y)
    size = x.dtype.itemsize
    bits = np.negative(mask.view(np.int8)).astype(f"i{size}").view(f"u{size}")
    a, b = x.view(bits.dtype), y.view(bits.dtype)
    return (((a ^ b) & bits) ^ b).view(x.dtype)


def lanes(x: Array, dtype: str) -> Array:
    """The parts of packed values: (T, parts) for (T,), (1, parts) for a constant; a view."""
    flat = x.reshape(-1)
    return flat.view(dtype).reshape(flat.size, -1)


def words(parts: Array, dtype: np.dtype[Any]) -> Array:
    """What `lanes` took apart: (T,) of a type for (T, parts)."""
    return np.ascontiguousarray(parts).reshape(-1).view(dtype)
