"""Ops that reduce a tile along an axis (or all of it, where ``axis`` is None), and the matrix product.

The order of reduction is not specified. ``keep_dims`` leaves a size of 1 where the axis was. Narrow types are reduced in
the type the kernel's semantics name (sums of int8 in int32).
"""

from __future__ import annotations

from typing import Any

from weft.dtypes import DType
from weft.language.core import constexpr, stub, tensor


@stub
def sum(
    input: tensor,
    axis: int | constexpr | None = None,
    keep_dims: bool | constexpr = False,
    dtype: DType | constexpr | None = None,
) -> tensor:
    """The sum; ``dtype`` names another type to convert to and add in."""
    ...


@stub
def max(
    input: tensor,
    axis: int | constexpr | None = None,
    return_indices: bool | constexpr = False,
    return_indices_tie_break_left: bool | constexpr = True,
    keep_dims: bool | constexpr = False,
) -> Any:
    """The largest element, NaNs left out; with ``return_indices`` a pair of it and its int32 index."""
    ...


@stub
def min(
    input: tensor,
    axis: int | constexpr | None = None,
    return_indices: bool | constexpr = False,
    return_indices_tie_break_left: bool | constexpr = True,
    keep_dims: bool | constexpr = False,
) -> Any:
    """The smallest element, NaNs left out; with ``return_indices`` a pair of it and its int32 index."""
    ...


@stub
def argmax(
    input: tensor,
    axis: int | constexpr | None,
    tie_break_left: bool | constexpr = True,
    keep_dims: bool | constexpr = False,
) -> tensor:
    """The int32 index of the largest element, NaNs left out; of several the leftmost (also where any would do)."""
    ...


@stub
def argmin(
    input: tensor,
    axis: int | constexpr | None,
    tie_break_left: bool | constexpr = True,
    keep_dims: bool | constexpr = False,
) -> tensor:
    """The int32 index of the smallest element, NaNs left out; of several the leftmost (also where any would do)."""
    ...


@stub
def xor_sum(input: tensor, axis: int | constexpr | None = None, keep_dims: bool | constexpr = False) -> tensor:
    """The exclusive or of integers."""
    ...


@stub
def reduce_or(input: tensor, axis: int | constexpr | None, keep_dims: bool | constexpr = False) -> tensor:
    """The bits that are set in any of the integers."""
    ...


@stub
def reduce(input: Any, axis: int | constexpr | None, combine_fn: Any, keep_dims: bool | constexpr = False) -> Any:
    """Reduce with a ``@weft.jit`` function: of a tile, ``combine_fn(a, b)``; of a tuple of n tiles of one shape,
    ``combine_fn(a1..an, b1..bn)`` returning n values. The function is associative and keeps the dtypes."""
    ...


@stub
def softmax(
    x: tensor,
    dim: int | constexpr | None = None,
    *,
    keep_dims: bool | constexpr | None = None,
    ieee_rounding: bool | constexpr = False,
) -> tensor:
    """``exp(x - max) / sum`` along ``dim`` (default 0), for floats. The shape stays, whatever ``keep_dims`` says."""
    ...


@stub
def dot(
    input: tensor,
    other: tensor,
    acc: tensor | None = None,
    input_precision: str | constexpr | None = None,
    allow_tf32: bool | constexpr | None = None,
    max_num_imprecise_acc: int | constexpr | None = None,
    out_dtype: DType | constexpr | None = None,
) -> tensor:
    """``acc + input @ other`` for matrices [M, K] and [K, N] of one dtype, or for batches of them of equal leading dimensions.

    Sums are in float32 (float64 for float64, int32 for int8); these are the result's dtype too. float16 as ``out_dtype``, of
    operands of float16 or float8, or a narrower ``acc`` round the result once. But where operands are float16, too, a GPU rounds
    each sum of 16 products to float16, as with Triton. Of other operands ``out_dtype`` changes nothing, as in Triton.

    ``input_precision`` (``ieee``, the default, ``tf32``, ``tf32x3``, ``bf16x3``, ``bf16x6``) says how few bits of float32
    operands may be multiplied; ``allow_tf32`` is an older spelling of ``tf32`` and ``ieee``. ``max_num_imprecise_acc`` permits
    that many products of float8 to be summed in less than float32. Both reach tile IR; a CPU computes exactly as with ``ieee``.
    """
    ...
