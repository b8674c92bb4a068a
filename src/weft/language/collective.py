"""Prefixes of tiles, elements taken by index, and counts: ops whose results depend on elements elsewhere in a tile."""

from __future__ import annotations

from typing import Any

from weft.dtypes import DType
from weft.language.core import constexpr, stub, tensor


@stub
def associative_scan(input: Any, axis: int | constexpr, combine_fn: Any, reverse: bool | constexpr = False) -> Any:
    """All prefixes along ``axis``: element i of the result combines the elements 0 to i; with ``reverse`` those from the last
    down to i.

    ``combine_fn`` is a ``@weft.jit`` function as of `reduce`: of a tile ``combine_fn(a, b)``; of a tuple of n tiles of one shape
    ``combine_fn(a1..an, b1..bn)`` returning n values, of which the first n arguments combine earlier elements. It is associative,
    need not commute, and keeps the dtypes. How elements are grouped is not specified, but is the same in every run.
    """
    ...


@stub
def cumsum(
    input: tensor,
    axis: int | constexpr = 0,
    reverse: bool | constexpr = False,
    dtype: DType | constexpr | None = None,
) -> tensor:
    """The sum of the elements up to each. ``dtype`` names another type to convert to and add in; without it integers narrower
    than 32 bits are added in int32 or uint32. Floats narrower than 32 bits are added in float32, and each sum is rounded once."""
    ...


@stub
def cumprod(
    input: tensor,
    axis: int | constexpr = 0,
    reverse: bool | constexpr = False,
    dtype: DType | constexpr | None = None,
) -> tensor:
    """The product of the elements up to each; ``dtype`` as of `cumsum`."""
    ...


@stub
def gather(src: tensor, index: tensor, axis: int | constexpr) -> tensor:
    """``result[.., i, ..] = src[.., index[.., i, ..], ..]`` along ``axis``: the result has the shape of ``index``,
    which differs from that of ``src`` at most along ``axis``.

    Integers of any type are indices. One outside the axis, negative ones included, gives an element that is not specified: 0, or
    another element of ``src`` along the axis. It never reads other memory. (In Triton such indices are undefined behaviour.)
    """
    ...


@stub
def histogram(input: tensor, num_bins: int | constexpr, mask: tensor | None = None) -> tensor:
    """How often each of the values 0 to ``num_bins - 1`` occurs in a tile of rank 1 of int32 or uint32, as int32.

    ``num_bins`` is a power of two. Other values are not counted, nor are elements where ``mask``, a tile of bools, is False."""
    ...
