"""Parts of words, exactly: what the video instructions compute with (PTX ISA, video instructions).

A part of a word is taken as a 64-bit integer, so sums, differences and shifts of two of them are exact. Results are put back
into a word modulo 2**32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[Any]

WIDTHS: Final = {"b": 8, "h": 16, "": 32}
"""Bits of a part by the first letter of its name, "" the whole word."""


def part(words: Words, bits: int, index: int, signed: bool) -> NDArray[np.int64]:
    """The index-th ``bits`` bits of uint32 words."""
    shifted = np.asarray(words).astype(np.uint64) << np.uint64(64 - bits * (index + 1))
    down = 64 - bits
    return shifted.view(np.int64) >> np.int64(down) if signed else (shifted >> np.uint64(down)).view(np.int64)


def limits(bits: int, signed: bool) -> tuple[int, int]:
    """The least and the greatest number of a type."""
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def saturate(values: NDArray[np.int64], bits: int, signed: bool) -> NDArray[np.int64]:
    """The nearest numbers of a type."""
    return np.clip(values, *limits(bits, signed))


def place(values: NDArray[np.int64], into: Words, bits: int, index: int) -> Words:
    """uint32 words with the index-th ``bits`` bits replaced by the lowest of ``values``."""
    low = values.astype(np.uint64).astype(np.uint32)
    if bits == 32:
        return low
    shift = np.uint32(bits * index)
    mask = np.uint32(((1 << bits) - 1) << int(shift))
    return (into & ~mask) | ((low << shift) & mask)


def average(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """(x + y) / 2, rounded up where the sum is not negative, else down."""
    total = x + y
    return (total + (total >= 0).astype(np.int64)) >> np.int64(1)


def shifted_left(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """x 2**y for y up to 32: by 32, where 64 bits do not hold it, a number of the same sign whose lowest 32 bits are 0."""
    far: NDArray[np.int64] = np.sign(x) << np.int64(62)
    return np.where(np.equal(y, 32), far, x << np.minimum(y, 31))


ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": np.add,
    "sub": np.subtract,
    "absdiff": lambda x, y: np.abs(x - y),
    "min": np.minimum,
    "max": np.maximum,
    "avrg": average,
}
"""vadd and the others, by what follows the v."""

COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

SECOND: Final[dict[str, Callable[[Any, Any], Any]]] = {"add": np.add, "min": np.minimum, "max": np.maximum}
"""What is done with the result and the third operand."""
