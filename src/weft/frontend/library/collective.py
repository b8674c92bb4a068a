"""Scans, elements taken by index, and counts."""

from __future__ import annotations

from collections.abc import Sequence

from weft import dtypes
from weft import language as tl
from weft.frontend.builder import Builder, common_shape
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import axis as axis_of
from weft.frontend.library.arguments import dtype_of, flag, integer, tile_of
from weft.frontend.library.combining import Combine, by_function, by_kind, region_of, sources_of
from weft.frontend.promotion import converted, is_triton, resolve
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, check_shape, describe, is_tuple
from weft.ir import tile


def scan_tiles(b: Builder, sources: Sequence[Tensor], axis: Value, reverse: Value, combine: Combine) -> list[Tensor]:
    """The prefixes of tiles of one shape along ``axis``, emitting ``combine`` into the region."""
    if not sources[0].shape:
        raise CompilationError(f"only tiles are scanned, found {describe(sources[0])}", argument="input")
    dimension = axis_of(axis, len(sources[0].shape))
    backwards = flag(reverse, "reverse")
    region = region_of(b, sources, combine)
    op = b.emit(tile.ScanOp([s.ssa for s in sources], dimension, region, reverse=backwards))
    return [Tensor(r, s.dtype, s.shape) for r, s in zip(op.results, sources, strict=True)]


@implements(tl.associative_scan)
def _associative_scan(b: Builder, input: Value, axis: Value, combine_fn: Value, reverse: Value) -> Value:
    sources = sources_of(b, input, "scanned")
    results = scan_tiles(b, sources, axis, reverse, by_function(b, combine_fn, sources, "scan"))
    return tuple(results) if is_tuple(input) else results[0]


def _cumulative(b: Builder, kind: str, input: Value, axis: Value, reverse: Value, dtype: Value) -> Tensor:
    """A scan by one `tile.binary`, in the dtype asked for or in that of the semantics' running sums. Triton's floats narrower
    than 32 bits are scanned in float32: rounded at each step, a long sum would stop to grow."""
    x = tile_of(b, input, "input")
    promotion = resolve(b, "cumsum", x)
    chosen = promotion.operands if dtype is None else dtype_of(dtype, "dtype")
    wide = chosen.compute if chosen.is_float and is_triton(b.semantics) else chosen
    (result,) = scan_tiles(b, [b.cast(converted(b, x, chosen), wide)], axis, reverse, by_kind(b, kind))
    result = converted(b, result, chosen)
    return result if dtype is not None else b.cast(result, promotion.result).typed(promotion.weak)


@implements(tl.cumsum)
def _cumsum(b: Builder, input: Value, axis: Value, reverse: Value, dtype: Value) -> Tensor:
    return _cumulative(b, "add", input, axis, reverse, dtype)


@implements(tl.cumprod)
def _cumprod(b: Builder, input: Value, axis: Value, reverse: Value, dtype: Value) -> Tensor:
    return _cumulative(b, "mul", input, axis, reverse, dtype)


@implements(tl.gather)
def _gather(b: Builder, src: Value, index: Value, axis: Value) -> Tensor:
    source, at = b.tensor(src, "src"), tile_of(b, index, "index")
    if at.dtype.is_bool:
        at = b.cast(at, dtypes.uint8)
    if not at.dtype.is_integer:
        raise CompilationError(
            f"index must be an integer tensor, found {at}",
            hint="convert it with .to(tl.int32)",
            argument="index",
        )
    if len(at.shape) != len(source.shape):
        raise CompilationError(
            f"source and index tensors must have the same rank, found {source} and {at}",
            hint="insert dimensions with tl.expand_dims, or repeat with tl.broadcast_to",
            argument="index",
        )
    dimension = axis_of(axis, len(source.shape))
    expected = (*source.shape[:dimension], at.shape[dimension], *source.shape[dimension + 1 :])
    if at.shape != expected:
        raise CompilationError(
            f"index dims outside of axis {dimension} must match the corresponding source dims, found {source} and {at}",
            hint=f"give the index the shape {expected}",
            argument="index",
        )
    result = b.emit(tile.GatherOp(source.ssa, at.ssa, dimension)).result
    return Tensor(result, source.dtype, at.shape, source.is_pointer)


@implements(tl.histogram)
def _histogram(b: Builder, input: Value, num_bins: Value, mask: Value) -> Tensor:
    x, bins = tile_of(b, input, "input"), integer(num_bins, "num_bins")
    if len(x.shape) != 1:
        raise CompilationError(
            f"histogram only supports 1D input, found {x}", hint="make it one with tl.ravel", argument="input"
        )
    if not (x.dtype.is_integer and x.dtype.bits == 32):
        raise CompilationError(
            f"histogram only supports 32-bit integer input, but got {x.dtype}",
            hint="convert it with .to(tl.int32)",
            argument="input",
        )
    check_shape((bins,))
    counted = None if mask is None else tile_of(b, mask, "mask")
    if counted is not None:
        if not counted.dtype.is_bool:
            raise CompilationError(f"Mask must have boolean scalar type, found {counted}", argument="mask")
        if common_shape(counted.shape, x.shape) != x.shape:
            raise CompilationError(f"a mask of shape {counted.shape} does not broadcast to {x.shape}", argument="mask")
        counted = b.broadcast_to(counted, x.shape)
    result = b.emit(tile.HistogramOp(x.ssa, bins, None if counted is None else counted.ssa)).result
    return Tensor(result, dtypes.int32, (bins,))
