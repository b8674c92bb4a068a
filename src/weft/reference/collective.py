"""Reductions, scans, gathers, histograms and products: ops whose result element depends on many elements.

The IR leaves the order of summation open. The reference reduces from index 0 upwards in the region's own
types, and sums a dot product in float64, rounded once to the accumulator's type: what every other order approximates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from weft.dtypes import DType
from weft.reference.numbers import Array, rounded

Combine: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""A combine region: accumulators, then elements, to accumulators."""


def reduce(sources: Sequence[Array], axis: int, combine: Combine, *, elementwise: bool) -> list[Array]:
    """Reduces ``sources``, of one shape, along ``axis``; the results lack it.

    With ``elementwise`` the region means the same on whole arrays and is given them; otherwise (it has control flow)
    it is given the scalars of one index after the other.
    """
    *_, total = _prefixes(sources, axis, range(sources[0].shape[axis]), combine, elementwise=elementwise)
    return total


def scan(sources: Sequence[Array], axis: int, combine: Combine, *, reverse: bool, elementwise: bool) -> list[Array]:
    """The prefixes of ``sources``, of one shape, along ``axis``; with ``reverse`` from the last element down. ``elementwise`` as
    of `reduce`."""
    places = range(sources[0].shape[axis])
    order = places[::-1] if reverse else places
    found = zip(*_prefixes(sources, axis, order, combine, elementwise=elementwise), strict=True)
    return [np.stack(prefixes[:: -1 if reverse else 1], axis) for prefixes in found]


def _prefixes(
    sources: Sequence[Array], axis: int, order: Iterable[int], combine: Combine, *, elementwise: bool
) -> Iterator[list[Array]]:
    """What is accumulated after each element, in the order of their indices."""

    def combined(accumulators: list[Array], elements: list[Array]) -> list[Array]:
        shape = accumulators[0].shape
        if elementwise:
            return [np.broadcast_to(v, shape) for v in combine([*accumulators, *elements])]
        following = [np.empty_like(a) for a in accumulators]
        for index in np.ndindex(shape):
            values = combine([np.asarray(x[index]) for x in (*accumulators, *elements)])
            for array, value in zip(following, values, strict=True):
                array[index] = value
        return following

    return accumulate(([np.take(s, i, axis) for s in sources] for i in order), combined)


def gather(source: Array, index: Array, axis: int) -> Array:
    """``source`` at ``index`` along ``axis``; 0 where the index is outside of it."""
    size = source.shape[axis]
    places = np.clip(index, 0, size - 1).astype(np.int64)
    return np.where((index >= 0) & (index < size), np.take_along_axis(source, places, axis), np.zeros((), source.dtype))


def histogram(source: Array, mask: Array | None, bins: int) -> Array:
    """How often each of 0 to ``bins - 1`` occurs in ``source`` where ``mask`` holds, as int32."""
    counted = (source >= 0) & (source < bins) & (True if mask is None else mask)
    return np.bincount(source[counted].astype(np.int64), minlength=bins).astype(np.int32)


def dot(dtype: DType, a: Array, b: Array, acc: Array) -> Array:
    """``acc + a @ b``; of floats summed in float64 and rounded to ``dtype``, of integers modulo ``2**bits``."""
    wide = np.float64 if dtype.is_float else np.int64
    total = acc.astype(wide)
    for k in range(a.shape[1]):
        total = total + np.multiply.outer(a[:, k].astype(wide), b[k].astype(wide))
    return rounded(total, dtype) if dtype.is_float else total.astype(dtype.numpy)
