"""Functions of intervals: which one each number is in, how many are in each, and lines between their ends."""

from __future__ import annotations

import math
import operator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.array.api.arithmetic import diff
from weft.array.api.composition import Data, arrays, base, constant, fit, like, one, operands, viewed
from weft.array.api.creation import linspace
from weft.array.api.functions import where
from weft.array.api.lazy import Array, apply, asarray, system_of, values_of
from weft.array.api.moving import argsort, concatenate
from weft.array.api.ranking import searchsorted, summed
from weft.array.building import picking
from weft.array.building.whole import require_plain
from weft.dtypes import DType
from weft.semantics import PromotionError


def digitize(x: Data, bins: Data, right: bool = False) -> Array:
    """The number of the interval of each element: ``i`` where ``bins[i - 1] <= x < bins[i]``, with ``right`` where
    ``bins[i - 1] < x <= bins[i]``. Bins may also decrease; NumPy refuses others, and computes them at once."""
    given = operands("digitize", x, bins)
    system = system_of("digitize", given)
    edges = given[1]
    if not isinstance(edges, Array) or edges.ndim != 1:
        raise ValueError("'digitize' takes bins of one dimension")
    side = "left" if right else "right"
    if base(system) == "numpy":
        found = _numbered(edges, given[0], side, _increases(values_of(edges)))
        return fit(found, dtypes.int64)
    if not edges.size:
        return fit(_numbered(edges, given[0], side, True), dtypes.int32)
    return where(edges[-1] >= edges[0], _numbered(edges, given[0], side, True), _numbered(edges, given[0], side, False))


def _numbered(edges: Array, x: Data, side: str, increases: bool) -> Array:
    return searchsorted(edges, x, side) if increases else edges.size - searchsorted(edges[::-1], x, side)


def _increases(values: NDArray[Any]) -> bool:
    """Whether bins increase, as NumPy finds out; `ValueError` where they also do the other."""
    wide = values.astype(np.float64)
    others = wide[wide != wide[:1]]
    upward = not others.size or bool(wide[0] < others[0])
    a, b = wide[:-1], wide[1:]
    if (a > b if upward else a < b).any():
        raise ValueError("'digitize' takes bins that increase or decrease throughout")
    return upward


def histogram(
    x: Data,
    bins: Any = None,
    range: tuple[float, float] | None = None,
    weights: Data = None,
    density: bool = False,
) -> tuple[Array, Array]:
    """How many elements are in each interval, or the sums of their weights, and the ends of the intervals: ``bins`` of equal
    width (10, in PyTorch 100) over ``range``, or those of an array. Only the last interval includes its upper end. NumPy and
    PyTorch look at the values, which are computed at once; JAX has counts in the type of the elements."""
    array = one("histogram", x).reshape(-1)
    system = base(array)
    require_plain("histogram", range, density)
    heavy = _weights(array, weights)
    if system != "numpy":
        array = like("histogram", "/", array, array if heavy is None or system == "torch" else heavy)[0][0]
    ends = _ends(array, bins, range)
    if system == "jax":
        ends = fit(ends, array.dtype)
        array = fit(array, array.dtype)
    kind = array.dtype if system != "numpy" else dtypes.int64 if heavy is None else heavy.dtype
    last = ends.size - 1
    place = fit(searchsorted(ends, array, "right"), dtypes.int64)
    place = where(array == ends[-1], constant(last, place), place) - 1
    place = where((place < 0) | (place >= last), constant(last, place), place)
    wide = dtypes.float64 if system == "numpy" and kind.is_float else kind
    ones = constant(1, fit(array, wide)).broadcast_to(array.shape)
    counts = fit(summed(place, fit(heavy, wide) if heavy is not None else ones, last), kind)
    if density:
        widths = diff(ends)
        counts = counts / (widths if system != "numpy" else fit(widths, dtypes.float64)) / counts.sum()
    return counts, ends


def _weights(array: Array, weights: Data) -> Array | None:
    if weights is None:
        return None
    (given,) = arrays("histogram", weights if isinstance(weights, Array) else asarray(weights, array.semantics))
    if given.size != array.size:
        raise ValueError(f"'histogram' takes a weight for each of {array.size} elements, found {given.size}")
    if base(array) == "torch" and given.dtype != array.dtype:
        raise PromotionError("torch.histogram takes weights of the elements' type", "convert with .to()")
    return given.reshape(-1)


def _ends(array: Array, bins: Any, limits: tuple[float, float] | None) -> Array:
    """The ends of the intervals, one more than there are intervals."""
    system = base(array)
    if bins is None:
        bins = 100 if system == "torch" else 10
    count = None if isinstance(bins, Array) or np.ndim(bins) else _whole(bins)
    if count is not None:
        if count < (0 if system == "jax" else 1):
            raise ValueError(f"'histogram' takes a positive number of bins, found {count}")
        return _lined(array, count, limits)
    if type(bins) in (list, tuple) and system != "numpy":
        raise TypeError(
            f"{array.semantics.name}'s histogram takes no {type(bins).__name__} of bins; make an array of it"
        )
    ends = bins if isinstance(bins, Array) else asarray(np.asarray(bins), array.semantics)
    if ends.ndim != 1:
        raise ValueError(f"'histogram' takes ends of one dimension, found {ends.ndim}")
    if system == "torch" and ends.dtype != array.dtype:
        raise PromotionError("torch.histogram takes ends of the elements' type", "convert with .to()")
    if system == "numpy":
        values = values_of(ends)
        if (values[:-1] > values[1:]).any():
            raise ValueError("'histogram' takes ends of bins that increase")
    return ends


def _whole(bins: Any) -> int:
    try:
        return operator.index(bins)
    except TypeError:
        raise TypeError(f"'histogram' takes a whole number of bins or an array of their ends, found {bins!r}") from None


def _lined(array: Array, count: int, limits: tuple[float, float] | None) -> Array:
    """The ends of ``count`` intervals of one width."""
    kind = array.dtype if array.dtype.is_float else dtypes.float64
    if base(array) == "jax" and limits is None:
        return _traced(array, count, kind)
    if limits is None:
        values = values_of(array)
        low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    else:
        low, high = limits
        if low > high and base(array) != "jax":
            raise ValueError(f"'histogram' takes a range from less to more, found {low} to {high}")
    if base(array) != "jax" and not np.isfinite([float(low), float(high)]).all():
        raise ValueError(f"'histogram' takes a range of finite numbers, found {low} to {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    if base(array) == "numpy" and kind.numpy.isbuiltin == 1:  # scalars of the elements' type, in which NumPy computes
        return asarray(np.linspace(low, high, count + 1, dtype=kind.numpy), array.semantics)
    return linspace(float(low), float(high), count + 1, dtype=str(kind), semantics=array.semantics)


def _traced(array: Array, count: int, kind: DType) -> Array:
    """The same between the least and the greatest element, which need not be known."""
    low, high = array.min(), array.max()
    same = low == high
    low, high = where(same, low - 0.5, low), where(same, high + 0.5, high)
    step = asarray((np.arange(max(count, 1)) / max(count, 1)).astype(kind.numpy), array.semantics)
    inner = low * (1 - step) + high * step
    return concatenate([inner, high.reshape(1)]) if count else low.reshape(1)


def interp(x: Data, xp: Data, fp: Data, left: Data = None, right: Data = None, period: float | None = None) -> Array:
    """The line through the points ``xp`` (which increase) and ``fp`` at ``x``; ``left`` and ``right`` outside, by default the
    first and the last of ``fp``. With a ``period`` the points are repeated. NumPy computes in float64."""
    require_plain("interp", period)
    given = operands("interp", x, xp, fp)
    system = system_of("interp", given)
    line, points, heights = (g if isinstance(g, Array) else asarray(g, system) for g in given)
    if points.ndim != 1 or points.shape != heights.shape:
        raise ValueError(
            f"'interp' takes points of one dimension and one size, found {points.shape} and {heights.shape}"
        )
    if not points.size:
        raise ValueError("'interp' takes one point or more, found none")
    if line.dtype.is_complex or points.dtype.is_complex:
        raise PromotionError(f"{system.name}'s 'interp' takes complex numbers for fp alone", "pass the real parts")
    if base(system) == "numpy":
        line, points = (fit(side, dtypes.float64) for side in (line, points))
        heights = fit(heights, dtypes.complex128 if heights.dtype.is_complex else dtypes.float64)
    else:
        line, points = like("interp", "/", line, points)[0]
        heights = like("interp", "/", heights, heights)[0][0]
        if points.dtype.is_float8 or points.dtype == dtypes.bfloat16:
            raise PromotionError(f"jax's 'interp' does not take {points.dtype}", "convert to float32")
    if period is not None:
        line, points, heights = _repeated(line, points, heights, abs(period))
    found = _between(line, points, heights)
    if period is None:
        found = where(line < points[0], heights[0] if left is None else left, found)
        found = where(line > points[-1], heights[-1] if right is None else right, found)
    kind = heights.dtype if heights.dtype.is_complex or base(system) == "jax" else dtypes.float64
    return found if base(system) == "jax" else fit(found, kind)


def _repeated(line: Array, points: Array, heights: Array, period: float) -> tuple[Array, Array, Array]:
    """Points of one period in order, with one more on either side."""
    if not period:
        raise ValueError("'interp' takes a period that is not 0")
    line, points = line % period, points % period
    order = argsort(points)
    points, heights = _at(points, order), _at(heights, order)
    points = concatenate([points[-1:] - period, points, points[:1] + period])
    return line, points, concatenate([heights[-1:], heights, heights[:1]])


def _between(line: Array, points: Array, heights: Array) -> Array:
    """The values inside; those outside are replaced afterwards."""
    if points.size == 1:
        return where(apply("isnan", line), line, heights[0]) if base(line) == "numpy" else heights[0] + line * 0
    place = fit(searchsorted(points, line, "right"), dtypes.int64)
    after = _limited(place, 1, points.size - 1)
    x0, x1, y0, y1 = (_at(a, i) for a in (points, heights) for i in (after - 1, after))
    if base(line) == "jax":
        width = x1 - x0
        small = abs(width) <= float(np.spacing(np.finfo(cast(Any, points.dtype.numpy)).eps))
        return where(small, y0, y0 + (line - x0) / where(small, constant(1, width), width) * (y1 - y0))
    slope = (y1 - y0) / (x1 - x0)
    found = slope * (line - x0) + y0
    found = where(_is_nan(found), slope * (line - x1) + y1, found)
    found = where(_is_nan(found) & (y0 == y1), y0, found)
    found = where(line == x0, y0, found)
    found = where(place == points.size, heights[-1], found)
    return where(apply("isnan", line), line, found)


def _is_nan(array: Array) -> Array:
    return apply("isnan", array)


def _limited(place: Array, low: int, high: int) -> Array:
    place = where(place < low, constant(low, place), place)
    return where(place > high, constant(high, place), place)


def _at(array: Array, places: Array) -> Array:
    return viewed(array, picking.along_axis(array.node, places.node, 0, "raise"))


def sinc(x: Data) -> Array:
    """``sin(pi x) / (pi x)``; 1 at 0."""
    if base(system_of("sinc", (x,))) == "numpy":
        (wide,) = arrays("sinc", x)
        return _sinc(wide, wide * math.pi)
    (number,), dtype, weak = like("sinc", "sinh", *operands("sinc", x))
    wide = fit(number, dtype.compute) if base(number) == "torch" and dtype.is_float else number
    return fit(_sinc(wide, wide * math.pi), dtype, weak)


def _sinc(array: Array, turned: Array) -> Array:
    none = array == 0
    return where(none, constant(1, turned), apply("sin", turned) / where(none, constant(1, turned), turned))
