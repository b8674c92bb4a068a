"""Reductions and scans beside those of `functions`, with each system's types and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import SupportsIndex

from weft.array.api.functions import Data
from weft.array.api.lazy import Array, Axis, asarray
from weft.array.building import moments, operations
from weft.array.expression import views
from weft.array.expression.nodes import Node


def var(
    x: Data, axis: Axis = None, keepdims: bool = False, ddof: float | None = None, correction: float | None = None
) -> Array:
    """The variance over ``axis``: squared distances from the mean, summed and divided by ``count - ddof``. PyTorch's
    default is 1, the other systems' 0. ``correction`` is another name for ``ddof``."""
    return _spread("var", x, axis, keepdims, ddof, correction)


def std(
    x: Data, axis: Axis = None, keepdims: bool = False, ddof: float | None = None, correction: float | None = None
) -> Array:
    """The standard deviation over ``axis``, the square root of `var`."""
    return _spread("std", x, axis, keepdims, ddof, correction)


def logsumexp(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over ``axis`` without overflow."""
    array = _array(x)
    return _reduced("logsumexp", array, axis, keepdims, lambda node, axes: moments.logsumexp(node, axes))


def cumprod(x: Data, axis: SupportsIndex | None = None) -> Array:
    """The products of the elements up to each along ``axis``."""
    return _array(x).reduce("cumprod", axis)


def cummax(x: Data, axis: SupportsIndex | None = None) -> Array:
    """The greatest element up to each along ``axis``; NaN from the first NaN on. PyTorch's indices are not given."""
    return _array(x).reduce("cummax", axis)


def cummin(x: Data, axis: SupportsIndex | None = None) -> Array:
    """The least element up to each along ``axis``; NaN from the first NaN on. PyTorch's indices are not given."""
    return _array(x).reduce("cummin", axis)


def _array(x: Data) -> Array:
    return x if isinstance(x, Array) else asarray(x)


def _spread(op: str, x: Data, axis: Axis, keepdims: bool, ddof: float | None, correction: float | None) -> Array:
    if ddof is not None and correction is not None:
        raise TypeError(f"'{op}' takes ddof or correction, found both")
    array = _array(x)
    asked = correction if ddof is None else ddof
    less = asked if asked is not None else float(array.semantics.name == "torch")
    return _reduced(op, array, axis, keepdims, lambda node, axes: moments.variance(node, axes, less, op == "std"))


def _reduced(
    op: str, array: Array, axis: Axis, keepdims: bool, build: Callable[[Node, tuple[int, ...]], Node]
) -> Array:
    axes: Sequence[int] = views.axes_of(axis, array.ndim, op)
    value = operations.composed(array.semantics, op, array.value, tuple(axes), keepdims, build)
    return Array(value, array.semantics)
