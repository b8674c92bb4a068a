"""Functions of order and membership: medians, quantiles, places in sorted arrays, counts and distinct elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft import dtypes
from weft.array.api.composition import Data, arrays, axis_slice, base, constant, fit, like, one, operands, viewed
from weft.array.api.functions import where
from weft.array.api.lazy import Array, Axis, apply, asarray, system_of, values_of
from weft.array.api.moving import argsort, concatenate, nonzero, sort, stack, take_along_axis
from weft.array.building import picking
from weft.array.building.operations import Value
from weft.array.building.whole import call, require_plain, spread
from weft.array.expression import views
from weft.array.expression.conversion import convert
from weft.dtypes import DType
from weft.semantics import PromotionError
from weft.semantics import arrangement as rules


def _lined(op: str, array: Array, axis: Axis) -> tuple[Array, tuple[int, ...]]:
    """The axes reduced as the last one, and the shape with them as 1."""
    axes = views.axes_of(axis, array.ndim, op)
    kept = tuple(a for a in range(array.ndim) if a not in axes)
    count = math.prod(array.shape[a] for a in axes)
    lined = array.transpose((*kept, *axes)) if array.ndim else array
    lined = lined.reshape(*(array.shape[a] for a in kept), count)
    return lined, tuple(1 if a in axes else size for a, size in enumerate(array.shape))


def _shaped(found: Array, shape: tuple[int, ...], keepdims: bool) -> Array:
    return found.reshape(shape) if keepdims else found


def median(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The middle element in order over ``axis``, NaN where there is one. Of two middles the mean, in PyTorch the lesser one (its
    values without their indices)."""
    array = one("median", x)
    line, shape = _lined("median", array, axis)
    size = line.shape[-1]
    if not size:
        return _shaped(_of_nothing("median", array, line, axis), shape, keepdims)
    ordered = sort(line)
    middle = axis_slice(ordered, -1, (size - 1) // 2, size // 2 + 1)
    found = middle[..., 0] if base(array) == "torch" else _middle(middle)
    if array.dtype.is_float or array.dtype.is_complex:
        last = ordered[..., -1]
        found = where(apply("isnan", last), last, found)
    return _shaped(found, shape, keepdims)


def _middle(middle: Array) -> Array:
    """The mean of one or two elements; JAX's sum of the two is made in their type."""
    if base(middle) != "jax":
        return middle.mean(-1)
    wide = like("median", "/", middle, middle)[0][0]
    return (wide[..., 0] + wide[..., -1]) * 0.5


def _of_nothing(op: str, array: Array, line: Array, axis: Axis) -> Array:
    if base(array) == "jax" or base(array) == "torch" and (axis is not None or not array.dtype.is_float):
        raise ValueError(f"'{op}' over no elements has no value; the shape is {array.shape}")
    return line.sum(-1) * float("nan") if array.dtype.is_float else line.mean(-1)


def nanmedian(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The `median` of the elements that are numbers; NaN where there are none."""
    array = one("nanmedian", x)
    if not (array.dtype.is_float or array.dtype.is_complex):
        return median(array, axis, keepdims)
    line, shape = _lined("nanmedian", array, axis)
    if not line.shape[-1]:
        return _shaped(_of_nothing("nanmedian", array, line, axis), shape, keepdims)
    ordered = sort(line)
    last = fit(apply("not", apply("isnan", line)).sum(-1, True), dtypes.int64) - 1
    last = where(last < 0, constant(0, last), last)
    low = take_along_axis(ordered, last // 2, -1)
    if base(array) == "torch":
        return _shaped(low[..., 0], shape, keepdims)
    high = take_along_axis(ordered, (last + 1) // 2, -1)
    return _shaped(_middle(concatenate([low, high], -1)), shape, keepdims)


def quantile(x: Data, q: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """The element at ``q`` of the way through the elements in order over ``axis``, between two of them in proportion. An array of
    points (NumPy: also a list) gives a result for each, along new first axes; the points are computed at once."""
    return _quantile("quantile", x, q, axis, keepdims)


def percentile(x: Data, q: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """`quantile` at ``q`` hundredths."""
    require_plain("percentile", q) if isinstance(q, (int, float)) else None
    return _quantile("percentile", x, q, axis, keepdims)


def _quantile(op: str, x: Data, q: Any, axis: Axis, keepdims: bool) -> Array:
    array = one(op, x)
    system = base(array)
    points, kind = _points(op, array, q)
    if not ((points >= 0) & (points <= 1)).all() and system != "jax":
        raise ValueError(f"'{op}' takes numbers from 0 to 1 (a percentile to 100), found {q}")
    line, shape = _lined(op, array, axis)
    size = line.shape[-1]
    if not size:
        raise ValueError(f"'{op}' over no elements has no value; the shape is {array.shape}")
    if not array.dtype.is_float:
        line = like(op, "/", line, line)[0][0] if system == "jax" else line.astype("float64")
    elif system == "numpy" and rules.kinds(array.dtype) & {"ml_dtypes"}:
        line = line.astype("float32")
    result = line.dtype if kind is None or system != "numpy" else _wider(line.dtype, kind)
    ordered = sort(line)
    last = ordered[..., -1]
    missing = fit(where(apply("isnan", last), last, constant(0, last)), result)
    found = [_point(ordered, place, result) for place in points.ravel() * (size - 1)]
    values = [_shaped(where(apply("isnan", last), missing, value), shape, keepdims) for value in found]
    if kind is None:
        return values[0]
    if not values:
        return fit(constant(0, line), result).broadcast_to((0, *(shape if keepdims else line.shape[:-1])))
    return stack(values, 0).reshape(*points.shape, *values[0].shape)


def _points(op: str, array: Array, q: Any) -> tuple[np.ndarray[Any, Any], DType | None]:
    """The points from 0 to 1 as they are computed with, and their type, which is None for a number."""
    hundredths = op == "percentile"
    system = base(array)
    if isinstance(q, (int, float)):
        require_plain(op, q)
        return np.array([q / 100 if hundredths else q], np.float64), None
    if type(q) in (list, tuple) and system != "numpy":
        raise TypeError(f"{array.semantics.name}'s {op} takes a number or an array, found {type(q).__name__}")
    given = q if isinstance(q, Array) else asarray(np.asarray(q), array.semantics)
    if given.ndim > 1 and system != "numpy":
        raise ValueError(f"{array.semantics.name}'s {op} takes points of one dimension, found {given.ndim}")
    if system == "torch" and given.dtype != array.dtype:
        raise PromotionError(
            f"torch.{op} takes points of the elements' type, found {given.dtype}", "convert with .to()"
        )
    if system == "jax" and not (given.dtype.is_float or hundredths):
        raise PromotionError(f"jax's '{op}' takes floats for points, found {given.dtype}", "convert them to float32")
    values = values_of(given)
    if not hundredths:
        return values, given.dtype
    narrow = given.dtype.is_float and given.dtype.bits <= 32 and array.dtype.is_float and array.dtype.bits <= 32
    return values / (np.float32(100) if narrow else 100), given.dtype if given.dtype.is_float else dtypes.float64


def _wider(line: DType, kind: DType) -> DType:
    """The type of NumPy's result: that of the elements and of the points that are floats."""
    return max(line, kind, key=lambda d: d.bits) if kind.is_float else line


def _point(ordered: Array, place: Any, result: DType) -> Array:
    """The element at a place that need not be whole."""
    size = ordered.shape[-1]
    below = math.floor(place)
    weight = float(place - below)
    low, high = (min(max(at, 0), size - 1) for at in (below, math.ceil(place)))
    a, b = (axis_slice(ordered, -1, at, at + 1)[..., 0] for at in (low, high))
    if base(ordered) == "jax":
        wide = [fit(side, side.dtype.compute) for side in (a, b)]
        return fit(wide[0] * (1.0 - weight) + wide[1] * weight, result)
    wide = [fit(side, result.compute) for side in (a, b)]
    step = fit(fit(b, b.dtype.compute) - fit(a, a.dtype.compute), result.compute)
    return fit(wide[0] + step * weight if weight < 0.5 else wide[1] - step * (1.0 - weight), result)


def searchsorted(ordered: Data, values: Data, side: str = "left") -> Array:
    """Where each of ``values`` goes into the array ``ordered`` so that it stays in order: before equal elements for ``left``,
    behind them for ``right``. NaN is greater than every number; PyTorch's search takes it for greater than any side."""
    given = operands("searchsorted", ordered, values)
    if side not in ("left", "right"):
        raise ValueError(f"'searchsorted' has the sides left and right, found '{side}'")
    if not isinstance(given[0], Array) or given[0].ndim != 1:
        raise ValueError("'searchsorted' takes an array of one dimension that is in order")
    system = given[0].semantics
    if any(isinstance(g, Array) and g.dtype.is_complex for g in given):
        raise PromotionError("weft searches no complex numbers", "search abs(x), or the parts")
    a, b = like("searchsorted", "==", *given)[0]
    ways = {"side": side, "nan": "path" if base(system) == "torch" else "last"}
    node = call("searchsorted", b.shape, dtypes.int64, a.node, b.node, **ways)
    return Array(Value(convert(node, dtypes.int32 if base(system) == "jax" else dtypes.int64)), system)


def isin(x: Data, values: Data, invert: bool = False) -> Array:
    """Whether each element is one of ``values``; NaN is none."""
    given = operands("isin", x, values)
    system = system_of("isin", given)
    first, second = (g if isinstance(g, Array) else asarray(g, system) for g in given)
    many = second.reshape(second.size)
    if many.size <= _FEW or many.dtype.is_complex or first.dtype.is_complex:
        found = (first.expand_dims(first.ndim) == many).any(-1)
    else:
        a, b = like("isin", "==", first, many)[0]
        ordered = sort(b)
        place = fit(searchsorted(ordered, a), dtypes.int64)
        found = _taken(ordered, where(place < many.size, place, constant(0, place))) == a
    return apply("not", found) if invert else found


_FEW = 64
"""Values with which each element is compared; more are sorted and searched."""


def bincount(x: Data, weights: Data = None, minlength: int = 0, length: int | None = None) -> Array:
    """How often each of 0, 1, 2, ... is among the integers ``x``, or the sum of their ``weights``. As long as the greatest of
    ``x`` asks for, which is computed at once, or as ``length`` (JAX) says. JAX takes negative integers for 0."""
    require_plain("bincount", minlength, length)
    array = one("bincount", x)
    system = base(array)
    if array.ndim != 1:
        raise ValueError(f"'bincount' takes arrays of one dimension, found {array.ndim}")
    if minlength < 0 and system != "jax":
        raise ValueError(f"'bincount' takes a least length that is not negative, found {minlength}")
    if length is not None and system != "jax":
        raise TypeError(f"{array.semantics.name}'s bincount takes no length")
    if length is None:
        values = values_of(array).astype(np.int64)
        if system != "jax" and (values < 0).any():
            raise ValueError(f"'bincount' takes integers that are not negative, found {values.min()}")
        length = max(minlength, int(values.max(initial=-1)) + 1, int(system == "jax" and values.size > 0))
    if weights is None:
        kind = array.semantics.literal(1).dtype if system == "jax" else dtypes.int64
        new: Any = Value(spread(1, kind, array.shape))
    else:
        (given,) = arrays("bincount", weights) if _is_integer(weights) else (_weights(array, weights),)
        if given.shape != array.shape:
            raise ValueError(f"'bincount' takes a weight for each of {array.shape} elements, found {given.shape}")
        if system == "numpy" and given.dtype.is_complex:
            raise PromotionError("np.bincount takes no complex weights", "count the parts")
        kind = given.dtype if system == "jax" or system == "torch" and given.dtype == dtypes.float32 else dtypes.float64
        real = given.real if given.dtype.is_complex and system == "torch" else given
        new = Value(convert(real.node, kind))
    return summed(Array(Value(_places(array, system)), array.semantics), Array(new, array.semantics), length)


def summed(places: Array, numbers: Array, length: int) -> Array:
    """The sum of the numbers of each place from 0 to ``length``; those of greater places are left out."""
    kind = numbers.dtype
    zero: Any = spread(complex(0) if kind.is_complex else 0.0 if kind.is_float else 0, kind, (length,))
    ways: dict[str, Any] = {"sizes": (length,), "offset": 0, "strides": (1,), "mode": "fill"}
    return Array(Value(call("scatter_add", (length,), kind, zero, numbers.node, places.node, **ways)), places.semantics)


def _is_integer(weights: Data) -> bool:
    return isinstance(weights, Array) and (weights.dtype.is_integer or weights.dtype.is_bool)


def _weights(array: Array, weights: Data) -> Array:
    return weights if isinstance(weights, Array) else asarray(weights, array.semantics)


def _places(array: Array, system: str) -> Any:
    wide = fit(array, dtypes.int64)
    return (where(wide < 0, constant(0, wide), wide) if system == "jax" else wide).node


def _taken(array: Array, places: Array) -> Array:
    """The elements of a vector at places that exist."""
    return viewed(array, picking.along_axis(array.node, places.node, 0, "raise"))


def unique(
    x: Data, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> Array | tuple[Array, ...]:
    """The distinct elements in order; with them the index of the first of each, which of them each element is, and how many there
    are of each. How many there are depends on the values, which are computed at once. NaN is one element, in PyTorch each is."""
    array = one("unique", x)
    if return_index and base(array) == "torch":
        raise TypeError("torch.unique gives no indices")
    flat = array.reshape(array.size)
    order = argsort(flat)
    ordered = _taken(flat, order) if array.size else flat
    kind = rules.index_type(array.semantics, "nonzero")
    if not array.size:
        nothing = fit(order, kind)
        rest = [nothing] * (return_index + return_counts)
        inverse = [nothing.reshape(array.shape)] * return_inverse
        return (ordered, *rest[:return_index], *inverse, *rest[return_index:]) if rest or inverse else ordered
    same = ordered[1:] == ordered[:-1]
    if (array.dtype.is_float or array.dtype.is_complex) and base(array) != "torch":
        same = same | (apply("isnan", ordered[1:]) & apply("isnan", ordered[:-1]))
    first = concatenate([asarray(np.ones(1, np.bool_), array.semantics), apply("not", same)])
    (begins,) = nonzero(first)
    values = _taken(ordered, begins)
    found: list[Array] = [values]
    if return_index:
        found.append(_taken(order, begins).astype(kind))
    if return_inverse:
        number = fit(first, dtypes.int64).cumsum(0) - 1
        found.append(_taken(number, argsort(order)).reshape(array.shape).astype(kind))
    if return_counts:
        ends = concatenate([begins[1:], asarray(np.array([array.size], kind.numpy), array.semantics)])
        found.append(ends - begins)
    return tuple(found) if len(found) > 1 else values
