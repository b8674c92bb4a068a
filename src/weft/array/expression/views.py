"""The same elements at other places: indexing, permuting, adding and broadcasting dimensions, reshaping.

One kind of node expresses all of them but the reshape (`View`: each dimension of the source is read along some dimension of the
result, at a start and a step), so a chain of them collapses into one node as it is built, and execution has one rule
for where an element comes from.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import SupportsIndex, cast

from weft.array.expression.nodes import Dimension, Node, Reshape, View


def view(source: Node, shape: tuple[int, ...], dimensions: Sequence[Dimension]) -> Node:
    """``source`` read through ``dimensions``; a view of a view becomes one, a view that changes nothing none."""
    chosen = tuple(dimensions)
    if isinstance(source, View):
        chosen = tuple(_through(inner, chosen) for inner in source.dimensions)
        source = source.source
    if shape == source.shape and all(d == Dimension(i) for i, d in enumerate(chosen)):
        return source
    return View(shape, source.dtype, source=source, dimensions=chosen)


def _through(inner: Dimension, outer: Sequence[Dimension]) -> Dimension:
    if inner.axis is None:
        return inner
    other = outer[inner.axis]
    step = 1 if other.axis is None else inner.step * other.step
    return Dimension(other.axis, inner.start + inner.step * other.start, step)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a row-major array, in elements."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def shape_of(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    """A shape from one size or several; `ValueError` for a negative one."""
    sizes = tuple(map(operator.index, shape if isinstance(shape, Sequence) else (shape,)))
    if min(sizes, default=0) < 0:
        raise ValueError(f"a shape has no negative sizes, found {sizes}")
    return sizes


def axis_of(axis: SupportsIndex, rank: int, op: str) -> int:
    """An axis counted from the front; `IndexError` where ``rank`` dimensions have no such axis."""
    index = operator.index(axis)
    if not -rank <= index < rank:
        raise IndexError(f"'{op}': axis {index} is out of range for an array of {rank} dimensions")
    return index % rank


def axes_of(axis: SupportsIndex | Sequence[SupportsIndex] | None, rank: int, op: str) -> tuple[int, ...]:
    """The axes asked for, ascending; all of them for None. `ValueError` where one is named twice."""
    if axis is None:
        return tuple(range(rank))
    asked = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    axes = tuple(sorted(axis_of(a, rank, op) for a in asked))
    if len(set(axes)) < len(axes):
        raise ValueError(f"'{op}': axis {next(a for a in axes if axes.count(a) > 1)} is named twice")
    return axes


def broadcast_shape(op: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all broadcast to, as NumPy's rules have it; `ValueError` names the axis on which they do not."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        left, right = ((1,) * (rank - len(s)) + s for s in (result, shape))
        for axis in range(rank - 1, -1, -1):
            sizes = left[axis], right[axis]
            if sizes[0] != sizes[1] and 1 not in sizes:
                raise ValueError(
                    f"'{op}' cannot broadcast shapes {', '.join(map(str, shapes))}: "
                    f"axis {axis - rank} has {sizes[0]} and {sizes[1]} elements"
                )
        result = tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))
    return result


def broadcast_to(source: Node, shape: Sequence[SupportsIndex]) -> Node:
    """``source`` repeated along dimensions of size 1 and in front."""
    target = tuple(map(operator.index, shape))
    added = len(target) - len(source.shape)
    fits = added >= 0 and all(a in (1, b) for a, b in zip(source.shape, target[added:], strict=True))
    if not fits or min(target, default=0) < 0:
        raise ValueError(f"'broadcast_to' cannot give an array of shape {source.shape} the shape {target}")
    kept = [
        Dimension(None) if size == 1 != target[axis + added] else Dimension(axis + added)
        for axis, size in enumerate(source.shape)
    ]
    return view(source, target, kept)


def permute(source: Node, axes: Sequence[SupportsIndex]) -> Node:
    """Dimension i of the result is dimension ``axes[i]`` of ``source``; each is named once."""
    rank = len(source.shape)
    order = [axis_of(a, rank, "transpose") for a in axes]
    if sorted(order) != list(range(rank)):
        raise ValueError(f"'transpose' needs each of the {rank} axes once, found {tuple(map(operator.index, axes))}")
    dimensions = [Dimension(order.index(axis)) for axis in range(rank)]
    return view(source, tuple(source.shape[axis] for axis in order), dimensions)


def expand_dims(source: Node, axis: SupportsIndex | Sequence[SupportsIndex]) -> Node:
    """Dimensions of size 1 at the places ``axis`` of the result."""
    asked = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    rank = len(source.shape) + len(asked)
    added = axes_of(asked, rank, "expand_dims")
    kept = [place for place in range(rank) if place not in added]
    shape = [1] * rank
    for place, size in zip(kept, source.shape, strict=True):
        shape[place] = size
    return view(source, tuple(shape), [Dimension(place) for place in kept])


def squeeze(source: Node, axis: SupportsIndex | Sequence[SupportsIndex] | None) -> Node:
    """Without the dimensions ``axis``, all those of size 1 for None."""
    shape = source.shape
    ones = tuple(a for a, size in enumerate(shape) if size == 1)
    gone = ones if axis is None else axes_of(axis, len(shape), "squeeze")
    for a in gone:
        if shape[a] != 1:
            raise ValueError(f"'squeeze' removes axes of size 1, and axis {a} of shape {shape} has {shape[a]}")
    kept = [a for a in range(len(shape)) if a not in gone]
    dimensions = [Dimension(kept.index(a)) if a in kept else Dimension(None) for a in range(len(shape))]
    return view(source, tuple(shape[a] for a in kept), dimensions)


def moved(
    rank: int, source: SupportsIndex | Sequence[SupportsIndex], destination: SupportsIndex | Sequence[SupportsIndex]
) -> list[int]:
    """The order of axes in which those of ``source`` stand at the places ``destination``, the others as they were."""
    pairs = [
        [axis_of(a, rank, "moveaxis") for a in (axes if isinstance(axes, Sequence) else (axes,))]
        for axes in (source, destination)
    ]
    if len(pairs[0]) != len(pairs[1]) or any(len(set(axes)) < len(axes) for axes in pairs):
        raise ValueError(f"'moveaxis' takes each axis once and a place for each, found {source} and {destination}")
    order = [a for a in range(rank) if a not in pairs[0]]
    for place, axis in sorted(zip(pairs[1], pairs[0], strict=True)):
        order.insert(place, axis)
    return order


def reshape(source: Node, shape: Sequence[SupportsIndex]) -> Node:
    """The elements in row-major order under another shape; one size may be -1."""
    sizes = [operator.index(size) for size in shape]
    known = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and known > 0 and source.size % known == 0:
        sizes[sizes.index(-1)] = source.size // known
    if min(sizes, default=0) < 0 or math.prod(sizes) != source.size:
        asked = tuple(map(operator.index, shape))
        raise ValueError(f"'reshape' cannot give {source.size} elements of shape {source.shape} the shape {asked}")
    if tuple(sizes) == source.shape:
        return source
    inner = source.source if isinstance(source, Reshape) else source
    return inner if inner.shape == tuple(sizes) else Reshape(tuple(sizes), source.dtype, source=inner)


def index(source: Node, key: object) -> Node:
    """``source[key]`` for integers, slices of any step, Ellipsis and None; `IndexError` for other keys."""
    keys = list(cast("tuple[object, ...]", key)) if isinstance(key, tuple) else [key]
    taken = sum(1 for k in keys if k is not None and k is not Ellipsis)
    rank = len(source.shape)
    if taken > rank:
        raise IndexError(f"{taken} indices for an array of {rank} dimensions")
    ellipses = [place for place, k in enumerate(keys) if k is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index may hold one Ellipsis ('...')")
    place = ellipses[0] if ellipses else len(keys)
    keys[place : place + 1] = [slice(None)] * (rank - taken)
    shape: list[int] = []
    dimensions: list[Dimension] = []
    for k in keys:
        if k is None:
            shape.append(1)
            continue
        axis = len(dimensions)
        size = source.shape[axis]
        if isinstance(k, slice):
            start, stop, step = cast("slice[SupportsIndex | None]", k).indices(size)
            count = len(range(start, stop, step))
            dimensions.append(Dimension(len(shape), start, step) if count else Dimension(len(shape)))
            shape.append(count)
        else:
            dimensions.append(Dimension(None, _position(k, size, axis)))
    return view(source, tuple(shape), dimensions)


def _position(key: object, size: int, axis: int) -> int:
    try:
        position = operator.index(cast(SupportsIndex, key))
    except TypeError:
        raise IndexError(
            f"arrays are indexed by integers, slices, '...', None, arrays of integers and masks, found {type(key).__name__}"
        ) from None
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of range for axis {axis} with {size} elements")
    return position % size
