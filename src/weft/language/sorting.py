"""Sorting along a dimension, by Batcher's bitonic merges (AFIPS 1968).

A merge of 2**k elements takes two sorted runs of half the length. Its first stage compares i with the element at the same
distance from the run's other end, so that no run has to be sorted the other way; stage j then compares i with ``i ^ 2**j``.
Both are flips: of a whole run, and of pairs of blocks. So a stage is a flip, a minimum, a maximum and a select, which on a GPU
are renamed registers or a shuffle, on a CPU a shuffle within a vector or none.

The stages compare integers. A float is turned into the signed integer of its place in IEEE 754's total order, which is one
instruction to compare, and back. So every input has one result, on every machine:

    -NaN  -inf  ..  -0  +0  ..  +inf  +NaN

Triton compares floats with ``>``, so that a NaN may be lost and another element repeated. Stability has no meaning: equal
elements are equal in all bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.dtypes import bool_, float16, int8, int16, int32, int64
from weft.language.compiletime import static_assert, static_range
from weft.language.core import composite, constexpr, constexpr_function, tensor
from weft.language.creation import arange
from weft.language.elementwise import maximum, minimum, where
from weft.language.reduction import max, min
from weft.language.shape import flip, permute, reshape, split


@constexpr_function
def _dimension(dim: Any, shape: Sequence[int]) -> Any:
    return len(shape) - 1 if dim is None else dim % len(shape) if -len(shape) <= dim < len(shape) else -1


@constexpr_function
def _signed(bits: int) -> Any:
    return {8: int8, 16: int16, 32: int32, 64: int64}[bits]


@constexpr_function
def _log2(size: Any) -> Any:
    return size.bit_length() - 1


@constexpr_function
def _sizes(shape: Sequence[int], dim: Any) -> Any:
    """Elements before a dimension, in it, and after it."""
    return math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])


@constexpr_function
def _replaced(shape: Sequence[int], dim: Any, size: Any) -> Any:
    return (*shape[:dim], size, *shape[dim + 1 :])


@composite
def _ordered(x: tensor) -> tensor:
    """Integers in the order of the elements; of such integers, the floats' bits again."""
    bits: constexpr = x.dtype.primitive_bitwidth
    return x ^ ((x >> (bits - 1)) & ((1 << (bits - 1)) - 1))


@composite
def _keys_of_float16(x: tensor) -> tensor:
    """The keys of floats that have NaN in the place of -0: of the same numbers in float16, where NaN is the greatest."""
    return _ordered(x.to(float16).to(int16, bitcast=True))


@composite
def _keys(x: tensor) -> tensor:
    if x.dtype == bool_:
        return x.to(int8)
    if x.dtype.is_fp8e4b8() or x.dtype.is_fp8e5b16():
        return _keys_of_float16(x)
    if x.dtype.is_floating():
        return _ordered(x.to(_signed(x.dtype.primitive_bitwidth), bitcast=True))
    return x


@composite
def _elements(keys: tensor, like: tensor) -> tensor:
    if like.dtype.is_fp8e4b8() or like.dtype.is_fp8e5b16():
        return _ordered(keys).to(float16, bitcast=True).to(like.dtype)
    if like.dtype.is_floating():
        return _ordered(keys).to(like.dtype, bitcast=True)
    return keys.to(like.dtype)


@composite
def _upper() -> tensor:
    """The upper of two blocks, of pairs of blocks."""
    return arange(0, 2)[None, :, None] >= 1


@composite
def _chosen(x: tensor, other: tensor, upper: tensor, descending: int | constexpr) -> tensor:
    """Of pairs of blocks: the lesser elements in the lower block and the greater in the upper, or the reverse."""
    low, high = minimum(x, other), maximum(x, other)
    return where(upper, low, high) if descending else where(upper, high, low)


@composite
def _merged(
    x: tensor, steps: int | constexpr, inner: int | constexpr, upper: tensor, descending: int | constexpr
) -> tensor:
    """Bitonic blocks of ``2**steps`` sorted; an element takes ``inner`` places of the flat tile, whose shape is of no matter."""
    for step in static_range(steps):
        half: constexpr = constexpr(inner << (steps - 1 - step))
        x = reshape(x, (x.numel // (2 * half), 2, half))
        x = _chosen(x, flip(x, 1), upper, descending)
    return x


@composite
def _runs(
    x: tensor, steps: int | constexpr, inner: int | constexpr, upper: tensor, descending: int | constexpr
) -> tensor:
    """Blocks of ``2**steps`` sorted."""
    for step in static_range(steps):
        half: constexpr = constexpr(inner << step)
        pairs: constexpr = constexpr((x.numel // (2 * half), 2, half))
        other = flip(reshape(x, (pairs[0], 2 << step, inner)), 1)
        x = _chosen(reshape(x, pairs), reshape(other, pairs), upper, descending)
        x = _merged(x, step, inner, upper, descending)
    return x


@composite
def sort(x: tensor, dim: int | constexpr | None = None, descending: bool | constexpr = False) -> tensor:
    """``x`` sorted along ``dim`` (None: the last), ascending unless ``descending``. The module has the order of NaNs and zeros.

    Triton sorts along the last dimension only.
    """
    axis: constexpr = _dimension(dim, x.shape)
    static_assert(axis >= 0, "sort: the tile has no such dimension")
    sizes: constexpr = _sizes(x.shape, axis)
    keys = _runs(_keys(x), _log2(sizes[1]), sizes[2], _upper(), descending)
    return _elements(reshape(keys, x.shape), x)


@composite
def bitonic_merge(x: tensor, dim: int | constexpr | None = None, descending: bool | constexpr = False) -> tensor:
    """``x`` sorted along ``dim`` (None: the last), where it first ascends and then descends there, or the reverse."""
    axis: constexpr = _dimension(dim, x.shape)
    static_assert(axis >= 0, "bitonic_merge: the tile has no such dimension")
    sizes: constexpr = _sizes(x.shape, axis)
    keys = _merged(_keys(x), _log2(sizes[1]), sizes[2], _upper(), descending)
    return _elements(reshape(keys, x.shape), x)


@composite
def topk(
    x: tensor, k: int | constexpr, dim: int | constexpr | None = None, descending: bool | constexpr = True
) -> tensor:
    """The ``k`` greatest elements of ``x`` along ``dim`` (None: the last), the greatest first; the least ones, least first, with
    ``descending=False``. ``k`` is a power of two.

    Runs of ``k`` are sorted. Of two runs, one of them reversed, the greater of each pair are the ``k`` greatest, in bitonic
    order.
    """
    axis: constexpr = _dimension(dim, x.shape)
    static_assert(axis >= 0, "topk: the tile has no such dimension")
    static_assert(k > 0, "topk: k must be greater than 0")
    static_assert(k & (k - 1) == 0, "topk: k must be a power of two")
    static_assert(k <= x.shape[axis], "topk: k must not exceed the size of the selected dimension")
    sizes: constexpr = _sizes(x.shape, axis)
    inner: constexpr = sizes[2]
    steps: constexpr = _log2(k)
    keys = _keys(x)
    if k == 1:
        widest = max(keys, axis, keep_dims=True) if descending else min(keys, axis, keep_dims=True)
        keys = widest.to(keys.dtype)
    else:
        upper = _upper()
        keys = _runs(keys, steps, inner, upper, descending)
        for _ in static_range(_log2(sizes[1]) - steps):
            keys = permute(reshape(keys, (keys.numel // (2 * k * inner), 2, k, inner)), 0, 2, 3, 1)
            first, second = split(keys)
            second = flip(second, 1)
            keys = maximum(first, second) if descending else minimum(first, second)
            keys = _merged(keys, steps, inner, upper, descending)
    return _elements(reshape(keys, _replaced(x.shape, axis, k)), x)
