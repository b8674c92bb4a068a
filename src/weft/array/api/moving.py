"""The functions that put arrays together, take them apart, move, pick and order their elements.

Each takes arrays and data; the system is that of the arrays, else the current one. It decides whether it has the operation
(`weft.semantics.arrangement.NAMES`), in which type arrays of several types meet, and what it refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, cast

import numpy as np

from weft.array.api.lazy import Array, Axis, as_argument, asarray, count_true, system_of
from weft.array.building import arranging, contraction, ordering, picking
from weft.array.building.operations import Value
from weft.array.building.whole import require_plain
from weft.array.expression import views
from weft.semantics import Number, Semantics
from weft.semantics import arrangement as rules

Data = Any
"""An `Array`, an array of another library, or data that the system takes for one."""

Axes = SupportsIndex | Sequence[SupportsIndex]


def _array(x: Data) -> Array:
    return x if isinstance(x, Array) else asarray(x)


def _given(op: str, arrays: Sequence[Data]) -> tuple[Semantics, list[Any]]:
    system = system_of(op, arrays)
    arguments = [as_argument(system, op, a) for a in arrays]
    for argument, found in zip(arguments, arrays, strict=True):
        if argument is None:
            raise TypeError(f"'{op}' takes arrays, found {type(found).__name__}")
    return system, arguments


def _one(x: Data) -> tuple[Semantics, Value]:
    array = _array(x)
    return array.semantics, array.value


def concatenate(arrays: Sequence[Data], axis: SupportsIndex | None = 0) -> Array:
    """The arrays one after the other along ``axis``; flattened first where it is None."""
    system, given = _given("concatenate", arrays)
    return Array(arranging.concatenate(system, given, axis), system)


def stack(arrays: Sequence[Data], axis: SupportsIndex = 0) -> Array:
    """The arrays along a new axis."""
    system, given = _given("stack", arrays)
    return Array(arranging.stack(system, given, axis), system)


def split(x: Data, parts: Axes, axis: SupportsIndex = 0) -> list[Array]:
    """Pieces along ``axis``. ``parts`` is what the system's own function takes: NumPy's and JAX's a number of equal pieces, or
    the places where to cut; PyTorch's the size of each piece, or all sizes; MAX's all sizes."""
    require_plain("split", parts, axis)
    system, value = _one(x)
    return [Array(piece, system) for piece in arranging.split(system, value, parts, axis)]


def flip(x: Data, axis: Axis = None) -> Array:
    """The elements in reverse order along ``axis``: along all where it is None (PyTorch takes no None; Triton: the last)."""
    require_plain("flip", axis)
    system, value = _one(x)
    return Array(arranging.flip(system, value, axis), system)


def roll(x: Data, shift: Axes, axis: Axis = None) -> Array:
    """The elements moved on by ``shift`` along ``axis``, those that fall off at the other end; along all, in row-major order,
    where it is None."""
    require_plain("roll", shift, axis)
    system, value = _one(x)
    return Array(arranging.roll(system, value, shift, axis), system)


def pad(x: Data, width: object, mode: str = "constant", constant_values: Number | Sequence[Number] = 0) -> Array:
    """The array with elements before and after it along each axis. ``width`` is a number, a pair, or a pair for each axis;
    ``mode`` is what the system has of ``constant edge reflect symmetric wrap``."""
    require_plain("pad", width, constant_values)
    system, value = _one(x)
    return Array(arranging.pad(system, value, width, mode, constant_values), system)


def tile(x: Data, reps: Axes) -> Array:
    """The array several times along each axis."""
    require_plain("tile", reps)
    system, value = _one(x)
    return Array(arranging.tile(system, value, reps), system)


def repeat(x: Data, repeats: Any, axis: SupportsIndex | None = None) -> Array:
    """Each element several times along ``axis``; flattened first where it is None."""
    require_plain("repeat", repeats, axis)
    system, value = _one(x)
    if isinstance(repeats, (list, tuple)) and rules.family(system) == "jax":
        raise TypeError("jnp.repeat takes an array of counts, found a list")
    counts: Any = cast(Any, repeats)
    counts = np.asarray(counts).tolist() if hasattr(counts, "__array__") else counts
    return Array(arranging.repeat(system, value, counts, axis), system)


def take(
    x: Data, indices: Data, axis: SupportsIndex | None = None, mode: str | None = None, fill_value: Number | None = None
) -> Array:
    """The elements, or slices along ``axis``, that ``indices`` name. ``mode`` says what an index out of bounds gives: NumPy's
    ``raise wrap clip``, JAX's ``fill clip wrap``; by default what the system does."""
    require_plain("take", axis, fill_value)
    system, value = _one(x)
    index = index_value(system, "take", indices)
    return Array(picking.take(system, value, index, axis, mode, fill_value), system)


def take_along_axis(x: Data, indices: Data, axis: SupportsIndex | None = -1, mode: str | None = None) -> Array:
    """For each place of ``indices`` the element of the same line along ``axis``; other axes broadcast."""
    system, value = _one(x)
    index = index_value(system, "take_along_axis", indices)
    return Array(picking.take_along_axis(system, value, index, axis, mode), system)


def index_value(system: Semantics, op: str, indices: Data) -> Value:
    """Indices as a value; they take no part in promotion, so that the system's types do not matter to data of NumPy."""
    if isinstance(indices, Array):
        system_of(op, (indices,), system)
        return indices.value
    return Value(picking.indices_of(indices))


def sort(x: Data, axis: SupportsIndex | None = -1, descending: bool = False) -> Array:
    """The elements in order along ``axis``, NaN last; flattened first where it is None."""
    system, value = _one(x)
    return Array(ordering.sort(system, value, axis, descending), system)


def argsort(x: Data, axis: SupportsIndex | None = -1, descending: bool = False) -> Array:
    """The indices that sort along ``axis``; equal elements keep their order."""
    system, value = _one(x)
    return Array(ordering.argsort(system, value, axis, descending), system)


def topk(x: Data, k: int, axis: SupportsIndex = -1, largest: bool = True) -> tuple[Array, Array]:
    """The ``k`` greatest (or least) elements along ``axis`` in order, and their indices."""
    require_plain("topk", k, axis)
    system, value = _one(x)
    values, indices = ordering.topk(system, value, k, axis, largest)
    return Array(values, system), Array(indices, system)


def einsum(subscripts: str, *arrays: Data) -> Array:
    """The sum of products that ``subscripts`` names, such as ``ij,jk->ik``."""
    system, given = _given("einsum", arrays)
    return Array(contraction.einsum(system, subscripts, _values("einsum", given)), system)


def tensordot(x: Data, y: Data, axes: Any = 2) -> Array:
    """Products summed over the last ``axes`` of ``x`` and the first of ``y``, or over pairs of axes."""
    require_plain("tensordot", axes)
    system, given = _given("tensordot", (x, y))
    lhs, rhs = _values("tensordot", given)
    return Array(contraction.tensordot(system, lhs, rhs, axes), system)


def outer(x: Data, y: Data) -> Array:
    """The product of each element of ``x`` with each of ``y``."""
    system, given = _given("outer", (x, y))
    lhs, rhs = _values("outer", given)
    return Array(contraction.outer(system, lhs, rhs), system)


def _values(op: str, given: Sequence[Any]) -> list[Value]:
    for argument in given:
        if not isinstance(argument, Value):
            raise TypeError(f"'{op}' takes arrays, found {argument!r}; make it one with asarray")
    return list(given)


def flatten(x: Data) -> Array:
    """The elements in row-major order along one axis."""
    array = _array(x)
    return array.reshape(array.size)


def ravel(x: Data) -> Array:
    """The same as `flatten`."""
    return flatten(x)


def moveaxis(x: Data, source: Axes, destination: Axes) -> Array:
    """The axes ``source`` at the places ``destination``, the others in their order."""
    array = _array(x)
    return array.transpose(views.moved(array.ndim, source, destination))


def swapaxes(x: Data, first: SupportsIndex, second: SupportsIndex) -> Array:
    """Two axes exchanged."""
    array = _array(x)
    order = list(range(array.ndim))
    a, b = (views.axis_of(axis, array.ndim, "swapaxes") for axis in (first, second))
    order[a], order[b] = b, a
    return array.transpose(order)


def nonzero(x: Data) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, an array for each axis. Their number is a matter of the values, which are
    computed at once. An array without dimensions is refused; PyTorch takes it for one element."""
    array = _array(x)
    rules.refuse_missing(array.semantics, "nonzero", (array.type,))
    if not array.ndim and rules.family(array.semantics) == "torch":
        array = array.reshape(1)
    if not array.ndim:
        raise ValueError("'nonzero' takes arrays with dimensions, found none; write atleast_1d(x)")
    count = count_true(array.node)
    dtype = rules.index_type(array.semantics, "nonzero")
    return tuple(Array(Value(n), array.semantics) for n in picking.nonzero(array.node, count, dtype))
