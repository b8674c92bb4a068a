"""Reductions that pass over NaN, and counts of what is not zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.array.api.composition import Data, arrays, base, constant, fit, one, widened
from weft.array.api.functions import where
from weft.array.api.lazy import Array, Axis, apply


def _has_nan(array: Array) -> bool:
    return array.dtype.is_float or array.dtype.is_complex


def _filled(array: Array, number: float) -> Array:
    """The elements, ``number`` where they are NaN."""
    return where(apply("isnan", array), constant(number, array), array) if _has_nan(array) else array


def count_nonzero(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements over ``axis`` are not zero; NaN is not."""
    array = one("count_nonzero", x)
    return (array if array.dtype.is_bool else array != 0).sum(axis, keepdims)


def nansum(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The sum of the elements that are numbers."""
    return _filled(one("nansum", x), 0.0).sum(axis, keepdims)


def nanprod(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The product of the elements that are numbers."""
    return _filled(one("nanprod", x), 1.0).prod(axis, keepdims)


def nancumsum(x: Data, axis: int | None = None) -> Array:
    """The sums of the numbers up to each element."""
    return _filled(one("nancumsum", x), 0.0).cumsum(axis)


def nancumprod(x: Data, axis: int | None = None) -> Array:
    """The products of the numbers up to each element."""
    return _filled(one("nancumprod", x), 1.0).cumprod(axis)


def nanmean(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean of the elements that are numbers; NaN where there are none."""
    array = one("nanmean", x)
    if not _has_nan(array):
        return array.mean(axis, keepdims)
    total, count = _filled(widened(array), 0.0).sum(axis, keepdims), _count(array, axis, keepdims)
    return fit(total / fit(count, total.dtype), array.dtype, array.weak)


def _count(array: Array, axis: Axis, keepdims: bool) -> Array:
    return apply("not", apply("isnan", array)).sum(axis, keepdims)


def nanvar(x: Data, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Array:
    """The variance of the elements that are numbers: squared distances from their mean, by their count less ``ddof``."""
    return _spread("nanvar", x, axis, keepdims, ddof)


def nanstd(x: Data, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Array:
    """The square root of `nanvar`."""
    return _spread("nanstd", x, axis, keepdims, ddof)


def _spread(op: str, x: Data, axis: Axis, keepdims: bool, ddof: float) -> Array:
    array = one(op, x)
    if not _has_nan(array):
        found = array.var(axis, keepdims, ddof)
        return apply("sqrt", found) if op == "nanstd" else found
    wide = widened(array)
    distance = wide - nanmean(wide, axis, True)
    distance = where(apply("isnan", wide), constant(0.0, distance), distance)  # NaN where an infinity is from the mean
    squares = (
        distance.real * distance.real + distance.imag * distance.imag if array.dtype.is_complex else distance * distance
    )
    total = squares.sum(axis, keepdims)
    count = fit(_count(array, axis, keepdims), total.dtype) - ddof
    found = where(count > 0, total / count, constant(float("nan"), total))
    return fit(apply("sqrt", found) if op == "nanstd" else found, array.dtype.part, array.weak)


def nanmax(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The greatest of the elements that are numbers; NaN where there are none."""
    return _extreme("nanmax", x, axis, keepdims, lambda array: array.max(axis, keepdims))


def nanmin(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The least of the elements that are numbers; NaN where there are none."""
    return _extreme("nanmin", x, axis, keepdims, lambda array: array.min(axis, keepdims))


def _extreme(op: str, x: Data, axis: Axis, keepdims: bool, reduce: Callable[[Array], Array]) -> Array:
    array = one(op, x)
    if not _has_nan(array):
        return reduce(array)
    found = reduce(_filled(array, float("-inf" if op == "nanmax" else "inf")))
    return where(apply("isnan", array).all(axis, keepdims), constant(float("nan"), found), found)


def nanargmax(x: Data, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the greatest of the elements that are numbers. Where there are none JAX gives -1 and NumPy raises, for which
    the values are computed."""
    return _index("nanargmax", x, axis, keepdims, lambda array: array.argmax(axis, keepdims))


def nanargmin(x: Data, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the least of the elements that are numbers; see `nanargmax`."""
    return _index("nanargmin", x, axis, keepdims, lambda array: array.argmin(axis, keepdims))


def _index(op: str, x: Data, axis: int | None, keepdims: bool, reduce: Callable[[Array], Array]) -> Array:
    array = arrays(op, x)[0]
    if not _has_nan(array):
        return reduce(array)
    empty: Any = apply("isnan", array).all(axis, keepdims)
    if base(array) == "numpy" and bool(empty.any()):
        raise ValueError("All-NaN slice encountered")
    found = reduce(_filled(array, float("-inf" if op == "nanargmax" else "inf")))
    return where(empty, -1, found) if base(array) == "jax" else found
