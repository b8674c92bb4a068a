"""Indices that hold arrays: which elements they name, in the order and shape that NumPy's rules give the result.

Integers, slices, ``...`` and None alone are views (`views.index`). Otherwise those parts are a view first, the *window*, whose
axes with an array of indices come to the front; the arrays, broadcast to one shape, then name its elements (`Call` ``gather``).
Their dimensions stand in the result where the arrays stood in the key, or in front where something lies between them.

A mask is the indices of its true elements. How many there are only its values tell, so it is computed when the array is
indexed; a traced function cannot.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeAlias, cast

import numpy as np

from weft import dtypes
from weft.array.building import interop
from weft.array.building.operations import Value
from weft.array.building.picking import gathered
from weft.array.building.whole import call, data, missing, moved
from weft.array.expression import views
from weft.array.expression.nodes import Node
from weft.semantics import Number, Semantics
from weft.semantics import arrangement as rules

Reader: TypeAlias = Callable[[Node], int]
"""Computes a mask and counts its true elements."""


@dataclass(frozen=True)
class Selection:
    """What a key names: ``window`` is a view of the source whose first axes ``indices``, nodes of one shape, index. ``place`` is
    where their dimensions stand in the result."""

    window: Node
    indices: tuple[Node, ...]
    place: int

    @property
    def lead(self) -> tuple[int, ...]:
        """The shape of the indices."""
        return self.indices[0].shape if self.indices else ()

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions of (indices, rest of the window) in the order of the result."""
        inner, rest = len(self.lead), len(self.window.shape) - len(self.indices)
        return (*range(inner, inner + self.place), *range(inner), *range(inner + self.place, inner + rest))

    @property
    def shape(self) -> tuple[int, ...]:
        """The result's."""
        shape = (*self.lead, *self.window.shape[len(self.indices) :])
        return tuple(shape[axis] for axis in self.order)


def is_advanced(key: object) -> bool:
    """Whether a key holds arrays of indices, lists or masks."""
    return any(_is_array(k) or isinstance(k, (bool, np.bool_)) for k in _keys(key))


def read(system: Semantics, value: Value, key: object, count: Reader, mode: str | None, fill: Number | None) -> Value:
    """``value[key]`` for a key that holds arrays. ``mode`` is what an index out of bounds does, by default the system's."""
    base = rules.family(system)
    mode = mode or rules.OUTSIDE.get(("index", base), "raise")

    def build() -> Node:
        chosen = select(system, value.node, key, count)
        if not chosen.indices:
            return chosen.window
        other = missing(value.node.dtype) if fill is None else fill
        found = gathered(chosen.window, chosen.indices, _checked(base, mode, chosen), other)
        return views.permute(found, chosen.order)

    return moved(system, "index", value, build)


def _checked(base: str, mode: str, chosen: Selection) -> str:
    """The mode; PyTorch does not look at indices where no element is taken, unless their dimension is empty."""
    picked, rest = chosen.window.shape[: len(chosen.indices)], chosen.window.shape[len(chosen.indices) :]
    return "clip" if base == "torch" and mode == "raise" and 0 in rest and 0 not in picked else mode


def view(system: Semantics, node: Node, key: object) -> Node:
    """``node[key]`` for integers, slices, ``...`` and None. JAX takes the nearest element for an integer out of bounds."""
    base = rules.family(system)
    if base in ("torch", "max") and any(map(_backward, _keys(key))):
        raise ValueError(f"{system.name} takes slices of positive steps; reverse with flip where it has that")
    return views.index(node, _clamped(node, key) if base == "jax" else key)


def _backward(key: object) -> bool:
    step = cast("slice[Any]", key).step if isinstance(key, slice) else None
    return step is not None and operator.index(step) < 0


def _clamped(node: Node, key: object) -> tuple[object, ...]:
    def nearest(at: int, size: int) -> object:
        return min(max(at + size if at < 0 else at, 0), max(size - 1, 0))

    return _integers(node.shape, key, nearest)


def outside(shape: tuple[int, ...], key: object) -> tuple[object, ...]:
    """A key whose integers out of bounds are arrays of indices, which may be."""

    def kept(at: int, size: int) -> object:
        return at if -size <= at < size else data(np.array(at))

    return _integers(shape, key, kept)


def _integers(shape: tuple[int, ...], key: object, change: Callable[[int, int], object]) -> tuple[object, ...]:
    """A key with its integers changed, given the size of what they index."""
    keys = _keys(key)
    taken = [_consumes(k) for k in keys]
    after = sum(taken)
    axis = 0
    for place, k in enumerate(keys):
        if k is Ellipsis:
            axis = len(shape) - after
        elif _is_integer(k) and axis < len(shape):
            keys[place] = change(operator.index(cast(SupportsIndex, k)), shape[axis])
        axis += taken[place]
        after -= taken[place]
    return tuple(keys)


def _is_integer(key: object) -> bool:
    return isinstance(key, SupportsIndex) and not isinstance(key, (bool, np.bool_)) and not _is_array(key)


def select(system: Semantics, source: Node, key: object, count: Reader) -> Selection:
    """The elements that a key names; `IndexError` for keys that the system refuses."""
    base = rules.family(system)
    if base == "jax" and isinstance(key, list):
        raise TypeError("jax takes no list as an index; use array[numpy.array(list)]")
    keys = _masks(system, source, _keys(key), count)
    arrays = any(isinstance(k, Node) for k in keys)
    basic: list[object] = []
    indices: list[Node] = []
    at: list[int] = []
    """The axes of the window that arrays index."""
    advanced: list[int] = []
    """The places of the key that NumPy counts as arrays: integers too, where there are arrays; in PyTorch they are not."""
    before: dict[int, int] = {}
    """For each of those places, how many other dimensions come before it."""
    dimensions = 0
    for place, k in enumerate(keys):
        if isinstance(k, Node):
            basic.append(slice(None))
            indices.append(k)
            at.append(dimensions + len(at))
        else:
            basic.append(k)
        if isinstance(k, Node) or (arrays and base != "torch" and k is not None and not isinstance(k, slice)):
            advanced.append(place)
            before[place] = dimensions
        elif k is None or isinstance(k, slice):
            dimensions += 1
    window = views.index(source, tuple(basic))
    rest = [axis for axis in range(len(window.shape)) if axis not in at]
    window = views.permute(window, (*at, *rest))
    together = advanced == list(range(advanced[0], advanced[0] + len(advanced))) if advanced else True
    shape = views.broadcast_shape("index", *(i.shape for i in indices))
    wide = tuple(views.broadcast_to(i, shape) for i in indices)
    return Selection(window, wide, before[advanced[0]] if advanced and together else 0)


def _keys(key: object) -> list[object]:
    return list(cast("tuple[object, ...]", key)) if isinstance(key, tuple) else [key]


def _is_array(key: object) -> bool:
    return isinstance(key, (list, Node)) or hasattr(key, "node") or (interop.is_array(key) and not _is_number(key))


def _is_number(key: object) -> bool:
    """Whether NumPy's array without dimensions is an index like a number."""
    return isinstance(key, np.ndarray) and key.ndim == 0 and cast(Any, key).dtype.kind in "iu"


def _expanded(source: Node, keys: Sequence[object]) -> list[object]:
    """The key with an entry for each dimension: ``...`` written out."""
    taken = sum(_consumes(k) for k in keys)
    if taken > len(source.shape):
        raise IndexError(f"{taken} indices for an array of {len(source.shape)} dimensions")
    places = [place for place, k in enumerate(keys) if k is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index may hold one Ellipsis ('...')")
    place = places[0] if places else len(keys)
    rest = [slice(None)] * (len(source.shape) - taken)
    return [*keys[:place], *rest, *keys[place + len(places) :]]


def _consumes(key: object) -> int:
    """How many dimensions of the source an entry indexes."""
    if key is None or key is Ellipsis:
        return 0
    if isinstance(key, (bool, np.bool_)):
        return 0
    dtype = getattr(key, "dtype", None)
    if dtype == dtypes.bool_ or dtype == np.dtype(bool):
        return len(cast(Any, key).shape)
    return 1


def _masks(system: Semantics, source: Node, keys: Sequence[object], count: Reader) -> list[object]:
    """The key with nodes of integers in the place of arrays, lists and masks, ``...`` written out."""
    given = [_node(system, k) if _is_array(k) else k for k in keys]
    result: list[object] = []
    axis = 0
    for k in _expanded(source, given):
        if isinstance(k, (bool, np.bool_)) or isinstance(k, Node) and k.dtype.is_bool and not k.shape:
            raise IndexError("one bool is no index here; use expand_dims, and a slice where it is False")
        if isinstance(k, Node) and k.dtype.is_bool:
            sizes = source.shape[axis : axis + len(k.shape)]
            if k.shape != sizes:
                raise IndexError(f"the mask has shape {k.shape}, and the dimensions it selects from have {sizes}")
            total = count(k)
            result += [call("nonzero", (total,), dtypes.int64, k, axis=a) for a in range(len(k.shape))]
        else:
            result.append(k)
        axis += _consumes(k)
    return result


def _node(system: Semantics, key: object) -> Node:
    """An array of indices."""
    node: Any = key if isinstance(key, Node) else getattr(key, "node", None)
    if isinstance(key, list):
        array = np.asarray(cast(Any, key))
        node = data(array if array.size else array.astype(np.int64))
    elif not isinstance(node, Node):
        array = interop.read(key)
        node = data(array)
    if isinstance(key, (list, np.ndarray)) and rules.family(system) == "torch" and not node.dtype.is_bool:
        return node  # PyTorch converts them
    if node.dtype == dtypes.uint8 and rules.family(system) == "torch":
        raise IndexError(
            "torch takes an index of uint8 for a mask; convert it with .astype('bool') or .astype('int64')"
        )
    if not node.dtype.is_bool:
        rules.check_index(system, "index", node.dtype)
    return node
