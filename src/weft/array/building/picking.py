"""Builds what picks elements by arrays of indices: ``take``, ``take_along_axis``, ``nonzero``, and what indexing is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, SupportsIndex, cast

import numpy as np

from weft import dtypes
from weft.array.building import interop
from weft.array.building.operations import Value
from weft.array.building.whole import call, data, filling, missing, moved
from weft.array.expression import views
from weft.array.expression.conversion import convert
from weft.array.expression.nodes import Node
from weft.dtypes import DType
from weft.semantics import Number, Semantics
from weft.semantics import arrangement as rules

_TAKES: Final = {"numpy": ("raise", "wrap", "clip"), "jax": ("fill", "clip", "wrap")}
"""The modes of ``take`` that can be asked for; other systems have one."""


def _mode(system: Semantics, op: str, mode: str | None) -> str:
    base = rules.family(system)
    if mode is not None and mode not in _TAKES.get(base, ()):
        modes = ", ".join(_TAKES.get(base, ())) or "no modes"
        raise ValueError(f"'{op}' has {modes} in {system.name}, found '{mode}'")
    return mode or rules.OUTSIDE.get((op, base), "raise")


def indices_of(indices: object) -> Node:
    """Indices that are no array of weft's: those of other libraries, lists and integers."""
    if interop.is_array(indices):
        return data(interop.read(indices))
    array = np.asarray(cast(Any, indices))
    return data(array if array.size else array.astype(np.int64))


def _checked(system: Semantics, op: str, indices: Node) -> Node:
    if indices.dtype.is_bool and rules.family(system) in ("numpy", "jax", "max"):  # they count as 0 and 1
        return indices
    rules.check_index(system, op, indices.dtype)
    return indices


def take(
    system: Semantics, value: Value, indices: Value, axis: SupportsIndex | None, mode: str | None, fill: Number | None
) -> Value:
    """The slices along ``axis`` that indices name; NumPy clips and wraps negative ones like others."""
    op, base = "take", rules.family(system)

    def build() -> Node:
        how = _mode(system, op, mode)
        node = _checked(system, op, indices.node)
        if base == "torch" and (len(node.shape) != 1 or axis is None):
            if axis is not None:
                raise IndexError(f"torch.index_select takes indices of one dimension, found {len(node.shape)}")
            how = "raise"  # torch.take
        if axis is None and base == "max":
            raise TypeError("ops.gather takes an axis")
        source = value.node if axis is not None else views.reshape(value.node, (value.node.size,))
        along = views.axis_of(0 if axis is None else axis, len(source.shape), op)
        if base == "jax" and node.size and not source.shape[along]:
            raise IndexError(f"no index is in bounds for axis {along} with size 0")
        if base == "numpy" and how == "raise" and 0 in source.shape[:along] and source.shape[along]:
            how = "clip"  # it has no slices to take from, and does not look at indices
        return along_axis(source, node, along, _clip(base, how), _outside(system, value, fill))

    return moved(system, op, value, build)


def _clip(base: str, mode: str) -> str:
    """NumPy's ``clip`` takes negative indices for 0, JAX's counts them from the end."""
    return "clamp" if mode == "clip" and base in ("numpy", "jax") else mode


def _outside(system: Semantics, value: Value, fill: Number | None) -> Number:
    dtype = value.node.dtype
    return missing(dtype) if fill is None else filling(system, fill, dtype)


def take_along_axis(
    system: Semantics, value: Value, indices: Value, axis: SupportsIndex | None, mode: str | None
) -> Value:
    """For each place of the indices the element of the same line along ``axis``."""
    op, base = "take_along_axis", rules.family(system)

    def build() -> Node:
        node = indices.node
        rules.check_index(system, op, node.dtype)
        source = value.node if axis is not None else views.reshape(value.node, (value.node.size,))
        if axis is None and base == "torch":
            node = views.reshape(node, (node.size,))
        along = views.axis_of(0 if axis is None else axis, len(source.shape), op)
        if len(node.shape) != len(source.shape):
            raise ValueError(f"'{op}' takes indices of {len(source.shape)} dimensions, found {len(node.shape)}")
        rests = [tuple(1 if a == along else n for a, n in enumerate(x.shape)) for x in (source, node)]
        rest = views.broadcast_shape(op, *rests)
        if base == "triton" and rests[0] != rests[1]:
            raise ValueError(f"tl.gather takes indices like the source but for axis {along}, found {node.shape}")
        wide = views.broadcast_to(source, [source.shape[a] if a == along else n for a, n in enumerate(rest)])
        places = views.broadcast_to(node, [node.shape[a] if a == along else n for a, n in enumerate(rest)])
        how = "raise" if axis is None and base == "torch" else _mode(system, op, mode)
        return pick(wide, places, along, how, missing(source.dtype))

    return moved(system, op, value, build)


def nonzero(node: Node, count: int, dtype: DType) -> tuple[Node, ...]:
    """The indices along each axis of ``count`` elements that are not zero."""
    axes = range(len(node.shape))
    node = convert(node, dtypes.bool_) if node.dtype.is_complex else node
    return tuple(convert(call("nonzero", (count,), dtypes.int64, node, axis=axis), dtype) for axis in axes)


def along_axis(node: Node, indices: Node, axis: int, mode: str, fill: Number | None = None) -> Node:
    """``indices`` of any shape in the place of an axis."""
    rank, inner = len(node.shape), len(indices.shape)
    front = views.permute(node, (axis, *(a for a in range(rank) if a != axis)))
    found = gathered(front, [indices], mode, fill)
    order = [*range(inner, inner + axis), *range(inner), *range(inner + axis, len(found.shape))]
    return views.permute(found, order)


def gathered(node: Node, indices: Sequence[Node], mode: str, fill: Number | None = None) -> Node:
    """``node[indices]`` for indices of one shape, which name places of the first axes."""
    wide = [convert(index, dtypes.int64) for index in indices]
    for axis, index in enumerate(wide):
        if mode in ("raise", "positive") and not node.shape[axis] and index.size:  # also where no element is computed
            raise IndexError(f"no index is in bounds for axis {axis} with size 0")
    shape = (*wide[0].shape, *node.shape[len(wide) :])
    parameters = {"mode": mode} if mode != "fill" else {"mode": mode, "fill": fill}
    return call("gather", shape, node.dtype, node, *wide, **parameters)


def pick(node: Node, indices: Node, axis: int, mode: str = "raise", fill: Number | None = None) -> Node:
    """``node[i, indices[i, j]]`` along ``axis``: for each place of ``indices`` an element of the same line."""
    shape = indices.shape
    places: list[Node] = []
    for a, size in enumerate(node.shape):
        line = views.reshape(data(np.arange(size)), [size if a == b else 1 for b in range(len(shape))])
        places.append(indices if a == axis else views.broadcast_to(line, shape))
    return gathered(node, places, mode, fill)
