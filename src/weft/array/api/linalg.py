"""``weft.array.linalg``: what of linear algebra is made of sums and products.

Determinants, inverses and decompositions are not here: their last digits depend on the order of a library's steps, which no
package states. A name that is missing says what to write.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Final, NoReturn

from weft.array.api.composition import Data, base, constant, fit, like, one, widened
from weft.array.api.creation import eye
from weft.array.api.functions import matmul
from weft.array.api.lazy import Array, Axis, apply
from weft.array.expression import views
from weft.semantics import PromotionError

__all__ = ["matrix_power", "norm"]

_SINGULAR: Final = (2, -2, "nuc")


def norm(x: Data, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """The length of vectors: ``(sum |x| ** ord) ** (1 / ord)``, by default the Euclidean, inf the greatest, 0 the count of what
    is not 0. Of matrices (two axes, or an array of two dimensions and an ``ord``) ``fro`` (the root of the sum of squares), 1 and
    -1 (the greatest and the least sum of a column), inf and -inf (of a row)."""
    array = one("linalg.norm", x)
    system = base(array)
    if not array.dtype.is_complex and (system == "numpy" or not array.dtype.is_float):
        array = like("linalg.norm", "/", array, array)[0][0] if system == "jax" else _wide(array)
    dtype = array.real.dtype if array.dtype.is_complex else array.dtype
    wide = widened(array) if system == "torch" else array
    if axis is None and ord is None:
        axes: tuple[int, ...] = tuple(range(array.ndim))
        return fit(_root(wide, axes, keepdims), dtype)
    axes = views.axes_of(axis, array.ndim, "linalg.norm")
    if len(axes) == 2 and not (system == "torch" and ord is None):
        named = axis if isinstance(axis, Sequence) else axes
        rows, columns = (views.axis_of(a, array.ndim, "linalg.norm") for a in named)
        found = _of_matrix(wide, ord, (rows, columns))
        shape = [1 if a in axes else n for a, n in enumerate(array.shape)]
        return fit(found.reshape(shape) if keepdims else found, dtype)
    if len(axes) != 1 and not (system == "torch" and ord is None):
        raise ValueError(f"'linalg.norm' takes one axis of vectors or two of matrices, found {len(axes)}")
    return fit(_of_vector(wide, 2 if ord is None else ord, axes, keepdims), dtype)


def _wide(array: Array) -> Array:
    if base(array) == "torch":
        raise PromotionError(
            f"torch.linalg.norm takes floats and complex numbers, found {array.dtype}", "convert it first"
        )
    return array if array.dtype.name in ("float16", "float32", "float64") else array.astype("float64")


def _root(array: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    squares = array.real * array.real + array.imag * array.imag if array.dtype.is_complex else array * array
    return apply("sqrt", squares.sum(axes, keepdims) if axes else squares)


def _of_vector(array: Array, order: float | str, axes: tuple[int, ...], keepdims: bool) -> Array:
    if isinstance(order, str):
        raise ValueError(f"'linalg.norm' of vectors takes numbers for ord, found '{order}'")
    if order == 2:
        return _root(array, axes, keepdims)
    if order == 0:
        return fit((array != 0).sum(axes, keepdims), array.real.dtype if array.dtype.is_complex else array.dtype)
    size = abs(array)
    if math.isinf(order):
        if order > 0 and base(array) != "torch" and not math.prod(array.shape[a] for a in axes):
            return size.sum(axes, keepdims)
        return size.max(axes, keepdims) if order > 0 else size.min(axes, keepdims)
    return size.sum(axes, keepdims) if order == 1 else (size**order).sum(axes, keepdims) ** (1 / order)


def _of_matrix(array: Array, order: float | str | None, axes: tuple[int, int]) -> Array:
    """``axes`` are that of the rows, and that of the columns."""
    if order in _SINGULAR:
        raise ValueError(
            f"weft computes no singular values (ord {order}); take numpy.linalg.norm(array.numpy(), {order!r})"
        )
    if order in (None, "fro", "f"):
        return _root(array, axes, False)
    if order not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"'linalg.norm' of matrices takes fro, 1, -1, inf and -inf for ord, found {order!r}")
    row, column = axes
    first, second = (row, column) if abs(float(order)) == 1 else (column, row)
    sums = abs(array).sum(first)
    rest = second - (second > first)
    if float(order) > 0 and not array.shape[second]:
        return sums.sum(rest)
    return sums.max(rest) if float(order) > 0 else sums.min(rest)


def matrix_power(x: Data, n: int) -> Array:
    """The product of ``n`` times the matrix, by squaring; of 0 times the identity."""
    array = one("linalg.matrix_power", x)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"'linalg.matrix_power' takes square matrices, found shape {array.shape}")
    count = operator.index(n)
    if count < 0:
        raise ValueError(
            f"weft inverts no matrices (power {count}); take numpy.linalg.inv(array.numpy()) and its power"
        )
    if not count:
        ones = eye(array.shape[-1], semantics=array.semantics).astype(array.dtype)
        return ones.broadcast_to(array.shape)
    if count == 3:
        return matmul(matmul(array, array), array)
    result, square = None, array
    while True:
        if count & 1:
            result = square if result is None else matmul(result, square)
        count >>= 1
        if not count:
            return result if result is not None else constant(1, array)
        square = matmul(square, square)


_INSTEAD: Final = {
    "vector_norm": "write linalg.norm of array.ravel()",
    "matrix_norm": "write linalg.norm(array, 'fro')",
    "multi_dot": "write matmul for each product",
    "matrix_transpose": "write swapaxes(array, -1, -2)",
    **{
        name: f"write weft.array.{name}"
        for name in ("cross", "diagonal", "outer", "tensordot", "trace", "vecdot", "matmul")
    },
}


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    instead = _INSTEAD.get(name, f"take numpy.linalg.{name}(array.numpy()) and asarray the outcome")
    raise AttributeError(f"weft.array.linalg has no '{name}'; {instead}")
