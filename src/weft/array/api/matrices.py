"""Functions of matrices: diagonals, triangles, products of vectors, grids."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import SupportsIndex

import numpy as np

from weft.array.api.composition import Data, arrays, base, constant, like, one, operands, viewed
from weft.array.api.creation import eye
from weft.array.api.functions import where
from weft.array.api.lazy import Array, Axis, apply, asarray
from weft.array.api.moving import stack, tensordot
from weft.array.building.whole import require_plain
from weft.array.expression import views
from weft.array.expression.nodes import Dimension
from weft.array.expression.support import read_dtype
from weft.semantics import PromotionError, Semantics, composed, get
from weft.semantics.context import current


def diagonal(x: Data, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements whose places along two axes differ by ``offset``, along a new last axis."""
    return _diagonal(one("diagonal", x), offset, axis1, axis2)


def _diagonal(array: Array, offset: int, axis1: int, axis2: int) -> Array:
    require_plain("diagonal", offset, axis1, axis2)
    if array.ndim < 2:
        raise ValueError(f"'diagonal' takes arrays of two dimensions or more, found {array.ndim}")
    a, b = (views.axis_of(axis, array.ndim, "diagonal") for axis in (axis1, axis2))
    if a == b:
        raise ValueError(f"'diagonal' takes two axes, found {axis1} and {axis2}")
    k = operator.index(offset)
    rows, columns = array.shape[a], array.shape[b]
    count = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
    kept = [axis for axis in range(array.ndim) if axis not in (a, b)]
    begin = {a: max(-k, 0), b: max(k, 0)} if count else {a: 0, b: 0}
    dimensions = [
        Dimension(len(kept), begin[axis]) if axis in begin else Dimension(kept.index(axis))
        for axis in range(array.ndim)
    ]
    shape = (*(array.shape[axis] for axis in kept), count)
    return viewed(array, views.view(array.node, shape, dimensions))


def trace(x: Data, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The sum of a diagonal; PyTorch's is that of a matrix."""
    array = one("trace", x)
    if base(array) == "torch" and (array.ndim != 2 or offset):
        raise ValueError(
            f"torch.trace sums the main diagonal of a matrix, found {array.ndim} dimensions, offset {offset}"
        )
    return _diagonal(array, offset, axis1, axis2).sum(-1)


def diag(x: Data, k: int = 0) -> Array:
    """A matrix with a vector as its diagonal ``k``, or that diagonal of a matrix."""
    array = one("diag", x)
    require_plain("diag", k)
    if array.ndim not in (1, 2):
        raise ValueError(f"'diag' takes arrays of one or two dimensions, found {array.ndim}")
    if array.ndim == 2:
        return _diagonal(array, k, 0, 1)
    size = array.size + abs(k)
    zeros = constant(0, array).broadcast_to(size, size)
    if not array.size:
        return zeros
    places = np.clip(np.arange(size) - max(-k, 0), 0, array.size - 1)
    rows, columns = _places(array, size, size, k)
    return where(rows == columns, array[places].expand_dims(1), zeros)


def _places(array: Array, rows: int, columns: int, k: int) -> tuple[Array, Array]:
    """The row of each element, and its column less ``k``: they are equal on diagonal ``k``. One vector each, so that a comparison
    of them is fused."""
    system = array.semantics
    return asarray(np.arange(rows)[:, None], system), asarray(np.arange(columns) - k, system)


def tril(x: Data, k: int = 0) -> Array:
    """The elements on and below diagonal ``k`` of the last two axes, 0 above."""
    return _triangle("tril", x, k, operator.ge)


def triu(x: Data, k: int = 0) -> Array:
    """The elements on and above diagonal ``k`` of the last two axes, 0 below."""
    return _triangle("triu", x, k, operator.le)


def _triangle(op: str, x: Data, k: int, kept: Callable[[Array, Array], Array]) -> Array:
    array = one(op, x)
    require_plain(op, k)
    if array.ndim < (1 if base(array) == "numpy" else 2):
        raise ValueError(f"'{op}' takes arrays of two dimensions or more, found {array.ndim}")
    rows, columns = array.shape[-2:] if array.ndim > 1 else (array.size, array.size)
    return where(kept(*_places(array, rows, columns, k)), array, constant(0, array))


def tri(
    rows: SupportsIndex,
    columns: SupportsIndex | None = None,
    k: int = 0,
    dtype: object = None,
    semantics: str | Semantics | None = None,
) -> Array:
    """Ones on and below diagonal ``k``, zeros above."""
    require_plain("tri", rows, columns, k)
    system = current() if semantics is None else get(semantics)
    composed.refuse_missing(system, "tri")
    default = "float32" if base(system) == "jax" else "float64"
    kind = read_dtype(default if dtype is None else dtype, system)
    shape = views.shape_of((rows, rows if columns is None else columns))
    return asarray(np.tri(*shape, k=operator.index(k)).astype(kind.numpy), system)


def identity(size: SupportsIndex, dtype: object = None, semantics: str | Semantics | None = None) -> Array:
    """Ones on the diagonal, zeros elsewhere."""
    composed.refuse_missing(current() if semantics is None else get(semantics), "identity")
    return eye(size, dtype=dtype, semantics=semantics)


def meshgrid(*x: Data, indexing: str | None = None, sparse: bool = False) -> list[Array]:
    """Each vector along an axis of its own, repeated along those of the others. ``ij``: in their order, ``xy``: the first two
    exchanged. The default is ``ij`` in PyTorch, ``xy`` elsewhere."""
    given = arrays("meshgrid", *x)
    if not given:
        return []
    system = base(given[0])
    order = indexing or ("ij" if system == "torch" else "xy")
    if order not in ("ij", "xy"):
        raise ValueError(f"'meshgrid' has the indexing xy and ij, found '{indexing}'")
    if system == "torch" and len({a.dtype for a in given}) > 1:
        raise PromotionError("torch.meshgrid takes tensors of one type", "convert with .to()")
    if system == "torch" and sparse:
        raise TypeError("torch.meshgrid has no sparse; use reshape")
    for array in given:
        if array.ndim > 1 and system != "numpy" or array.ndim < 1 and system == "jax":
            raise ValueError(f"'meshgrid' takes arrays of one dimension, found {array.ndim}")
    places = [*range(len(given))]
    if order == "xy" and len(given) > 1:
        places[:2] = [1, 0]
    shape = [1] * len(given)
    for array, place in zip(given, places, strict=True):
        shape[place] = array.size
    lined = [
        a.reshape([a.size if p == place else 1 for p in range(len(given))])
        for a, place in zip(given, places, strict=True)
    ]
    return lined if sparse else [a.broadcast_to(shape) for a in lined]


def dot(x: Data, y: Data) -> Array:
    """The sum of products over the last axis of ``x`` and the last but one of ``y``; with a number the plain product. PyTorch's
    takes two vectors."""
    a, b = arrays("dot", x, y)
    if base(a) == "torch" and (a.ndim, b.ndim) != (1, 1):
        raise ValueError(f"torch.dot takes vectors, found {a.ndim} and {b.ndim} dimensions")
    if not a.ndim or not b.ndim:
        return a * b
    return tensordot(a, b, ((-1,), (max(b.ndim - 2, 0),)))


def vdot(x: Data, y: Data) -> Array:
    """The sum of products of all elements, those of ``x`` conjugated."""
    a, b = arrays("vdot", x, y)
    if base(a) == "torch" and (a.ndim, b.ndim) != (1, 1):
        raise ValueError(f"torch.vdot takes vectors, found {a.ndim} and {b.ndim} dimensions")
    left = a.conj() if a.dtype.is_complex else a
    return tensordot(left.reshape(left.size), b.reshape(b.size), 1)


def inner(x: Data, y: Data) -> Array:
    """The sum of products over the last axes; with a number the plain product."""
    a, b = arrays("inner", x, y)
    return tensordot(a, b, ((-1,), (-1,))) if a.ndim and b.ndim else a * b


def kron(x: Data, y: Data) -> Array:
    """Each element of ``x`` times all of ``y``, as a block."""
    a, b = arrays("kron", x, y)
    rank = max(a.ndim, b.ndim)
    left, right = ((1,) * (rank - side.ndim) + side.shape for side in (a, b))
    wide = [n for size in left for n in (size, 1)], [n for size in right for n in (1, size)]
    product = a.reshape(wide[0]) * b.reshape(wide[1])
    return product.reshape([m * n for m, n in zip(left, right, strict=True)])


def cross(x: Data, y: Data, axis: int = -1) -> Array:
    """The vector products of vectors of three elements along ``axis``."""
    a, b = arrays("cross", x, y)
    if base(a) == "torch" and a.dtype != b.dtype:
        raise PromotionError(
            f"torch.cross takes tensors of one type, found {a.dtype} and {b.dtype}", "convert with .to()"
        )
    sides = [[_at(side, axis, i) for i in range(3)] for side in (a, b) if side.ndim and side.shape[axis] == 3]
    if len(sides) != 2:
        raise ValueError(f"'cross' takes vectors of three elements, found shapes {a.shape} and {b.shape}")
    (a0, a1, a2), (b0, b1, b2) = sides
    return stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis)


def _at(array: Array, axis: int, place: int) -> Array:
    along = views.axis_of(axis, array.ndim, "cross")
    return array[(slice(None),) * along + (place,)]


def ptp(x: Data, axis: Axis = None, keepdims: bool = False) -> Array:
    """The greatest element less the least."""
    array = one("ptp", x)
    return array.max(axis, keepdims) - array.min(axis, keepdims)


def average(x: Data, axis: Axis = None, weights: Data = None, keepdims: bool = False) -> Array:
    """The mean, each element with its weight. Weights are shaped as the array, or a vector along ``axis``."""
    if weights is None:
        return one("average", x).mean(axis, keepdims)
    array, given = operands("average", x, weights)
    if given.shape != array.shape:
        if given.ndim != 1 or not isinstance(axis, int) or given.size != array.shape[axis]:
            raise ValueError(f"'average' takes weights shaped as the array or along one axis, found {given.shape}")
        along = views.axis_of(axis, array.ndim, "average")
        given = given.reshape([given.size if a == along else 1 for a in range(array.ndim)]).broadcast_to(array.shape)
    (wide, heavy), _, _ = like("average", "/", array, given)
    total = heavy.sum(axis, keepdims)
    return apply("/", (wide * heavy).sum(axis, keepdims), total)
