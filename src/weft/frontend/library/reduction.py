"""Reductions: a combine region each, applied along one axis; all axes are one after a reshape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import axis as axis_of
from weft.frontend.library.arguments import dtype_of, flag, floats, quotient, tile_of
from weft.frontend.library.combining import Combine, by_function, by_kind, region_of, sources_of
from weft.frontend.promotion import converted, resolve
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, describe, is_tuple
from weft.ir import tile


def reduce_tiles(
    b: Builder, sources: Sequence[Tensor], axis: Value, keep_dims: Value, combine: Combine
) -> list[Tensor]:
    """Tiles of one shape reduced together along ``axis`` (None: all axes), emitting ``combine`` into the region."""
    shape = sources[0].shape
    if not shape:
        raise CompilationError(f"only tiles are reduced, found {describe(sources[0])}", argument="input")
    if axis is None:
        dimension, kept = 0, (1,) * len(shape)
        sources = [b.reshape(s, (math.prod(shape),)) for s in sources]
    else:
        dimension = axis_of(axis, len(shape))
        kept = (*shape[:dimension], 1, *shape[dimension + 1 :])
    region = region_of(b, sources, combine)
    op = b.emit(tile.ReduceOp([s.ssa for s in sources], dimension, region))
    left = sources[0].shape[:dimension] + sources[0].shape[dimension + 1 :]
    reduced = [Tensor(r, s.dtype, left) for r, s in zip(op.results, sources, strict=True)]
    return [b.reshape(r, kept) for r in reduced] if flag(keep_dims, "keep_dims") else reduced


def _single(b: Builder, kind: str, x: Tensor, axis: Value, keep_dims: Value) -> Tensor:
    """A reduction by one `tile.binary`."""
    return reduce_tiles(b, [x], axis, keep_dims, by_kind(b, kind))[0]


@implements(tl.sum)
def _sum(b: Builder, input: Value, axis: Value, keep_dims: Value, dtype: Value) -> Tensor:
    x = tile_of(b, input, "input")
    if dtype is not None:
        return _single(b, "add", converted(b, x, dtype_of(dtype, "dtype")), axis, keep_dims)
    promotion = resolve(b, "sum", x)
    total = _single(b, "add", b.cast(x, promotion.operands), axis, keep_dims)
    return b.cast(total, promotion.result).typed(promotion.weak)


def _of_bits(b: Builder, name: str, kind: str, input: Value, axis: Value, keep_dims: Value) -> Tensor:
    x = tile_of(b, input, "input")
    if x.dtype.is_float:
        raise CompilationError(
            f"tl.{name} takes integers, found {describe(x)}", hint="reinterpret the bits: .to(tl.int32, bitcast=True)"
        )
    return _single(b, kind, x, axis, keep_dims)


@implements(tl.xor_sum)
def _xor_sum(b: Builder, input: Value, axis: Value, keep_dims: Value) -> Tensor:
    return _of_bits(b, "xor_sum", "xor", input, axis, keep_dims)


@implements(tl.reduce_or)
def _reduce_or(b: Builder, input: Value, axis: Value, keep_dims: Value) -> Tensor:
    return _of_bits(b, "reduce_or", "or", input, axis, keep_dims)


def _extremum(b: Builder, name: str, x: Tensor, axis: Value, keep_dims: Value) -> Tensor:
    promotion = resolve(b, name, x)
    wide = b.cast(x, promotion.operands)
    kind = f"{name}nan" if wide.dtype.is_float and _nan_wins(b, wide.dtype) else name
    return b.cast(_single(b, kind, wide, axis, keep_dims), promotion.result).typed(promotion.weak)


def _nan_wins(b: Builder, dtype: DType) -> bool:
    """Whether the greatest element is NaN where one is: as in the system's maximum of two."""
    return b.semantics.binary("maximum", dtype, dtype).meaning == "maximum_nan"


def _with_index(b: Builder, name: str, x: Tensor, axis: Value, keep_dims: Value) -> list[Tensor]:
    """The extremum and its index: a reduction of (value, index) pairs in which numbers beat NaNs (or NaNs numbers, where the
    system's maximum is so) and, among equals, the lesser index wins.

    Comparing with > alone, as Triton does, keeps or loses a NaN depending on the order of reduction, which is not
    specified.
    """
    shape = x.shape
    promotion = resolve(b, f"arg{name}", x)
    x = b.cast(x, promotion.operands)
    nan_wins = x.dtype.is_float and _nan_wins(b, x.dtype)
    if axis is None:
        x = b.reshape(x, (math.prod(shape),)) if shape else x
    dimension = 0 if axis is None else axis_of(axis, len(shape))
    index = _indices(b, x.shape, dimension)
    strictly = "gt" if name == "max" else "lt"

    def combine(old: Sequence[Tensor], new: Sequence[Tensor]) -> Sequence[Tensor]:
        (a, i), (c, j) = old, new
        first = b.compare("lt", i, j)
        tie = b.compare("eq", a, c)
        better = b.compare(strictly, a, c)
        if a.dtype.is_float:
            a_nan, c_nan = b.compare("ne", a, a), b.compare("ne", c, c)
            loser, winner = (c_nan, a_nan) if not nan_wins else (a_nan, c_nan)
            better = b.binary("or", better, b.binary("and", loser, b.unary("not", winner)))
            tie = b.binary("or", tie, b.binary("and", a_nan, c_nan))
        better = b.binary("or", better, b.binary("and", tie, first))
        return [b.select(better, a, c), b.select(better, i, j)]

    results = reduce_tiles(b, [x, index], dimension, keep_dims and axis is not None, combine)
    results[1] = b.cast(results[1], promotion.result)
    if axis is None and flag(keep_dims, "keep_dims"):
        results = [b.reshape(r, (1,) * len(shape)) for r in results]
    return results


def _indices(b: Builder, shape: tuple[int, ...], dimension: int) -> Tensor:
    """The index of each element along ``dimension``, in ``shape``."""
    if not shape:
        raise CompilationError("only tiles are reduced, found a scalar", argument="input")
    op = b.emit(tile.ArangeOp(0, shape[dimension]))
    index = Tensor(op.result, dtypes.int32, (shape[dimension],))
    for _ in shape[dimension + 1 :]:
        index = b.expand_dims(index, len(index.shape))
    return b.broadcast_to(index, shape)


def _maximum_or_minimum(
    b: Builder, name: str, input: Value, axis: Value, return_indices: Value, keep_dims: Value
) -> Value:
    x = tile_of(b, input, "input")
    if not flag(return_indices, "return_indices"):
        return _extremum(b, name, x, axis, keep_dims)
    return tuple(_with_index(b, name, x, axis, keep_dims))


@implements(tl.max)
def _max(
    b: Builder, input: Value, axis: Value, return_indices: Value, return_indices_tie_break_left: Value, keep_dims: Value
) -> Value:
    return _maximum_or_minimum(b, "max", input, axis, return_indices, keep_dims)


@implements(tl.min)
def _min(
    b: Builder, input: Value, axis: Value, return_indices: Value, return_indices_tie_break_left: Value, keep_dims: Value
) -> Value:
    return _maximum_or_minimum(b, "min", input, axis, return_indices, keep_dims)


@implements(tl.argmax)
def _argmax(b: Builder, input: Value, axis: Value, tie_break_left: Value, keep_dims: Value) -> Tensor:
    return _with_index(b, "max", tile_of(b, input, "input"), axis, keep_dims)[1]


@implements(tl.argmin)
def _argmin(b: Builder, input: Value, axis: Value, tie_break_left: Value, keep_dims: Value) -> Tensor:
    return _with_index(b, "min", tile_of(b, input, "input"), axis, keep_dims)[1]


@implements(tl.reduce)
def _reduce(b: Builder, input: Value, axis: Value, combine_fn: Value, keep_dims: Value) -> Value:
    sources = sources_of(b, input, "reduced")
    results = reduce_tiles(b, sources, axis, keep_dims, by_function(b, combine_fn, sources, "reduce"))
    return tuple(results) if is_tuple(input) else results[0]


@implements(tl.softmax)
def _softmax(b: Builder, x: Value, dim: Value, keep_dims: Value, ieee_rounding: Value) -> Tensor:
    operand = floats(b, x, "x")
    axis = axis_of(0 if dim is None else dim, len(operand.shape), "dim")
    wide = b.cast(operand, operand.dtype.compute)
    largest = _single(b, "max", wide, axis, True)
    shifted = b.unary("exp", b.binary("sub", wide, b.broadcast_to(largest, wide.shape)))
    total = _single(b, "add", shifted, axis, True)
    return b.cast(b.binary(quotient(ieee_rounding), shifted, b.broadcast_to(total, wide.shape)), operand.dtype)
