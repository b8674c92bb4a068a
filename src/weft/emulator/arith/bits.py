"""Counting, finding and moving bits, on NumPy integers of 32 and 64 bits.

Shifts are by any non-negative amount: bits shifted out are gone, and an amount of the width or more leaves nothing but the sign.
NumPy's shifts behave so already, as if numbers were infinitely wide (since its release 1.17).
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

NOT_FOUND: Final = 0xFFFFFFFF
"""What searches for a bit give where there is none."""

_REVERSED: Final = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)


def width(x: Array) -> int:
    """Bits of a number."""
    return 8 * x.dtype.itemsize


def length(x: Array) -> Array:
    """The position of the highest one of unsigned numbers, plus one; 0 for 0. int64.

    It is the exponent of the number as a float64 (biased by 1023, in the bits from 52 on). So that conversion of 64 bits does not
    round up to the next power of two, the lower of any two neighbouring ones is cleared first.
    """
    exact = x if x.dtype.itemsize <= 4 else x & ~(x >> np.uint8(1))
    return np.maximum((np.asarray(exact, np.float64).view(np.int64) >> 52) - 1022, 0)


def leading_zeros(x: Array) -> Array:
    """Zeros above the highest one of unsigned numbers: the width for 0."""
    return width(x) - length(x)


def find(x: Array, shift: bool) -> Array:
    """The position of the highest bit that differs from the sign (for unsigned numbers: the highest one), or how far left to
    shift to bring it to the top; `NOT_FOUND` where there is none. uint32."""
    if x.dtype.kind == "i":
        x = (x ^ (x >> np.uint8(width(x) - 1))).view(f"u{x.dtype.itemsize}")
    found = length(x)
    position = (width(x) - found if shift else found - 1).astype(np.uint32)
    return np.where(found == 0, np.uint32(NOT_FOUND), position)


def reverse(x: Array) -> Array:
    """The bits in opposite order: each byte by table, then the bytes."""
    flat = np.ascontiguousarray(x).reshape(-1)
    return _REVERSED[flat.view(np.uint8)].view(x.dtype).byteswap().reshape(x.shape)


def clamp(amount: Array, limit: int, dtype: np.dtype[Any]) -> Array:
    """Unsigned amounts, at most ``limit``, as the type of what is to be shifted."""
    return np.minimum(amount, amount.dtype.type(limit)).astype(dtype)


def field_shifts(start: Array, size: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """How far `field` shifts to the right, and then to the left and back; start and size are unsigned."""
    n = 8 * dtype.itemsize
    return clamp(start, n, dtype), np.asarray(n - clamp(size, n, np.dtype("i8"))).astype(dtype)


def field(x: Array, down: Array, up: Array) -> Array:
    """A field of bits, zero- or sign-extended as x is signed; the sign of bits beyond x is x's.

    The field is brought to the bottom and from there to the top and back again: that fills what is above it.
    """
    return ((x >> down) << up) >> up


def ones(size: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers whose lowest ``size`` bits are set; unsigned."""
    every = np.array(-1).astype(dtype)
    return ~(every << clamp(size, 8 * dtype.itemsize, dtype))


def insertion(start: Array, size: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """How far `insert` shifts, and what it replaces; start and size are unsigned. Bits beyond the width are lost."""
    shift = clamp(start, 8 * dtype.itemsize, dtype)
    return shift, ones(size, dtype) << shift


def insert(part: Array, into: Array, shift: Array, mask: Array) -> Array:
    """``into`` with the bits of the mask replaced by those of ``part`` shifted left."""
    return into ^ ((into ^ (part << shift)) & mask)


def nth_set(mask: Array, base: Array, offset: Array) -> Array:
    """The position of the n-th one of ``mask`` from bit ``base`` on, n = |offset|, upwards where offset > 0, else downwards; with
    offset 0 the base itself if it is set. `NOT_FOUND` where there is none. All (T,); mask and base uint32, offset int32."""
    base, offset = base.astype(np.int64), offset.astype(np.int64)
    positions = np.arange(32)
    bits = (mask[:, None].astype(np.int64) >> positions) & 1
    up = np.cumsum(bits * (positions >= base[:, None]), axis=1)
    down = np.cumsum((bits * (positions <= base[:, None]))[:, ::-1], axis=1)[:, ::-1]
    rank = np.where((offset > 0)[:, None], up, down)
    wanted = np.where(offset == 0, 1, np.abs(offset))
    hit = (bits == 1) & (rank == wanted[:, None])
    hit &= np.where((offset > 0)[:, None], positions >= base[:, None], positions <= base[:, None])
    hit &= (offset != 0)[:, None] | (positions == base[:, None])
    return np.where(hit.any(axis=1), hit.argmax(axis=1), NOT_FOUND).astype(np.uint32)
