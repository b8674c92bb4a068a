"""The conversions between element types that systems name: they differ where a float becomes an integer out of range, and in
whether narrowing integers wraps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.builder import Builder
from weft.frontend.meanings.integers import constant
from weft.frontend.meanings.packages import flush, ordered_not_equal, saturated
from weft.frontend.values import Tensor


def _below(b: Builder, x: Tensor, power: int) -> Tensor:
    """Whether ``x < 2**power``; false for NaN."""
    return b.compare("lt", x, constant(b, 2.0**power, x))


def _wrapping(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    """A float truncated into an integer type as x86-64 does: in 32 bits (64 for unsigned and 64-bit types from 32 bits on),
    whose least number stands for what does not fit; then wrapped."""
    x = b.cast(x, x.dtype.compute)
    wide = dtypes.int64 if dtype.bits == 64 or dtype == dtypes.uint32 else dtypes.int32
    least = b.constant(wide.min, wide, x.shape)
    whole = b.select(_below(b, x, wide.bits - 1), b.cast(x, wide), least)  # the cast saturates below
    if dtype != dtypes.uint64:
        return b.cast(whole, dtype)
    upper = b.select(_below(b, x, 64), b.cast(x, dtype), b.constant(0, dtype, x.shape))
    above = b.compare("ge", x, constant(b, 2.0**63, x))  # false for NaN
    return b.select(above, upper, b.bitcast(whole, dtype))


def _convert_wrap(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    if x.dtype.is_float and dtype.is_integer:
        return _wrapping(b, x, dtype)
    return b.cast(x, dtype)


def _nearest(b: Builder, x: Tensor) -> Tensor:
    """A float's nearest whole number, halves away from zero. (``floor(|x| + 0.5)`` would round the sum first.)"""
    size = b.unary("abs", x)
    floor = b.unary("floor", size)
    up = b.compare("ge", b.binary("sub", size, floor), constant(b, 0.5, x))
    near = b.select(up, b.binary("add", floor, constant(b, 1.0, x)), floor)
    return b.select(b.compare("lt", x, constant(b, 0.0, x)), b.unary("neg", near), near)


def _convert_round(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    if dtype.is_float or x.dtype.is_bool:
        return b.cast(x, dtype)
    if x.dtype.is_float:
        x = b.cast(x, x.dtype.compute)
        if dtype.is_bool:  # true for NaN
            return b.unary("not", b.compare("lt", b.unary("abs", x), constant(b, 0.5, x)))
        whole = b.cast(_nearest(b, x), dtype)
        if dtype.bits == 64 or dtype == dtypes.int32:  # of the other types x86's number for NaN is 0 too
            nan = dtype.min if dtype.signed else 1 << 63
            whole = b.select(b.compare("ne", x, x), constant(b, nan, whole), whole)
        return whole
    if not dtype.is_bool:
        if x.dtype.min < dtype.min:
            x = b.binary("max", x, constant(b, dtype.min, x))
        if x.dtype.max > dtype.max:
            x = b.binary("min", x, constant(b, dtype.max, x))
    return b.cast(x, dtype)


def _convert_wrap_saturated(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    if dtype == dtypes.float8_e4m3fn and x.dtype != dtype:
        x = saturated(b, b.cast(x, dtypes.float32), dtype)
        return b.cast(x, dtype)
    return _convert_wrap(b, x, dtype)


def _convert_flushed(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    """XLA's conversion of floats: subnormal numbers are zeros, before and after."""
    if not x.dtype.is_float or x.dtype == dtype:
        return b.cast(x, dtype)
    source = flush(b, b.cast(x, x.dtype.compute), x.dtype)
    if dtype == dtypes.bfloat16:
        source = b.cast(source, dtypes.float32)
    if not dtype.is_float:
        return b.cast(source, dtype)
    return b.cast(flush(b, b.cast(b.cast(source, dtype), dtype.compute), dtype), dtype)


def _convert_truth(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    if not (x.dtype.is_float and dtype.is_bool):
        return b.cast(x, dtype)
    wide = flush(b, b.cast(x, x.dtype.compute), x.dtype)
    return ordered_not_equal(b, wide, constant(b, 0.0, wide))


def _convert_by_float32(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype == dtype else b.cast(b.cast(x, dtypes.float32), dtype)


CONVERSIONS: Final[Mapping[str, Callable[[Builder, Tensor, DType], Tensor]]] = {
    "convert": lambda b, x, dtype: b.cast(x, dtype),
    "convert_wrap": _convert_wrap,
    "convert_wrap_saturated": _convert_wrap_saturated,
    "convert_by_float32": _convert_by_float32,
    "convert_truth": _convert_truth,
    "convert_flushed": _convert_flushed,
    "convert_round": _convert_round,
}
"""Each conversion of `weft.semantics.meanings`."""
