"""Reductions that are made of others: variance, standard deviation, ``logsumexp``.

They are built from sums, maxima and elementwise operations, so that kernels fuse them as any other expression. What is computed
of floats narrower than 32 bits is computed in float32 and rounded once at the end.
"""

from __future__ import annotations

import math

from weft import dtypes
from weft.array.expression import views
from weft.array.expression.conversion import convert
from weft.array.expression.nodes import Apply, Node, Reduce, Scalar
from weft.dtypes import DType


def variance(source: Node, axes: tuple[int, ...], ddof: float, root: bool) -> Node:
    """The sum of the squared distances from the mean, by ``count - ddof``: NaN or infinite where that is not positive.
    ``root``: its square root. Of complex numbers the real number made of the distances' moduli."""
    wide = source.dtype.part.compute
    elements = convert(source, source.dtype if source.dtype.is_complex else wide)
    count = math.prod(source.shape[a] for a in axes)
    mean = _divided(_sum(elements, axes), float(count))
    distance = _of("sub", elements, _beside(mean, elements, axes))
    if elements.dtype.is_complex:
        parts = [Apply(distance.shape, wide, meaning=part, arguments=(distance,)) for part in ("real", "imag")]
        squares = _of("add", *(_of("mul", part, part) for part in parts))
    else:
        squares = _of("mul", distance, distance)
    found = _divided(_sum(squares, axes), max(count - ddof, 0.0))
    return convert(_of("sqrt", found) if root else found, source.dtype.part)


def logsumexp(source: Node, axes: tuple[int, ...]) -> Node:
    """``log(sum(exp(x - m))) + m`` with the greatest element m (of complex numbers the greatest real part), so that nothing
    overflows; m is 0 where it is infinite."""
    elements = source if source.dtype.is_complex else convert(source, source.dtype.compute)
    top = _reduce("max_nan", _real(elements), axes)
    finite = Apply(top.shape, dtypes.bool_, meaning="isfinite", arguments=(top,))
    shift = Apply(top.shape, top.dtype, meaning="select", arguments=(finite, top, _number(0.0, top.dtype)))
    shift = convert(shift, elements.dtype)
    powers = _of("exp", _of("sub", elements, _beside(shift, elements, axes)))
    return convert(_of("add", _of("log", _sum(powers, axes)), shift), source.dtype)


def _real(node: Node) -> Node:
    return Apply(node.shape, node.dtype.part, meaning="real", arguments=(node,)) if node.dtype.is_complex else node


def _beside(reduced: Node, elements: Node, axes: tuple[int, ...]) -> Node:
    """A reduced value at each element it was reduced from."""
    return views.broadcast_to(views.expand_dims(reduced, axes) if axes else reduced, elements.shape)


def _sum(source: Node, axes: tuple[int, ...]) -> Node:
    return _reduce("sum", source, axes)


def _reduce(meaning: str, source: Node, axes: tuple[int, ...]) -> Node:
    if not axes:
        return source
    rest = tuple(size for axis, size in enumerate(source.shape) if axis not in axes)
    return Reduce(rest, source.dtype, source=source, meaning=meaning, axes=axes)


def _divided(total: Node, count: float) -> Node:
    return _of("divide", total, _number(count, total.dtype))


def _number(value: float, dtype: DType) -> Scalar:
    return Scalar((), dtype, value=complex(value) if dtype.is_complex else value)


def _of(meaning: str, *arguments: Node) -> Node:
    shape = views.broadcast_shape(meaning, *(a.shape for a in arguments))
    return Apply(shape, arguments[0].dtype, meaning=meaning, arguments=arguments)
