"""Builds what puts arrays together, takes them apart and moves their elements: views where that is enough, else a `Call`.

A view fuses with what reads it. A call does not: its operands are stored, and it copies them (`calls`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, SupportsIndex, cast

import numpy as np

from weft.array.building.operations import Argument, Value, as_operand
from weft.array.building.picking import along_axis
from weft.array.building.whole import call, data, filling, moved, noted
from weft.array.expression import views
from weft.array.expression.conversion import in_type
from weft.array.expression.nodes import Node
from weft.dtypes import DType
from weft.semantics import Number, Operand, Promotion, PromotionError, Semantics, Type
from weft.semantics import arrangement as rules
from weft.semantics.conversions import convert as converted


def concatenate(system: Semantics, arguments: Sequence[Argument], axis: SupportsIndex | None) -> Value:
    """The arrays one after the other along ``axis``; flattened first where it is None."""
    op = "concatenate"

    def build(promotion: Promotion) -> Node:
        nodes = [in_type(system, a.node, promotion.operands) for a in arguments if isinstance(a, Value)]
        if axis is None:
            nodes, along = [views.reshape(node, (node.size,)) for node in nodes], 0
        else:
            if rules.family(system) == "torch" and any(len(node.shape) != 1 for node in nodes):
                nodes = [node for node in nodes if node.shape != (0,)]  # which it passes over
            _same_rank(op, nodes)
            along = views.axis_of(axis, len(nodes[0].shape), op)
        return joined(op, nodes, along)

    return _together(system, op, arguments, [as_operand(a) for a in arguments], build)


def stack(system: Semantics, arguments: Sequence[Argument], axis: SupportsIndex) -> Value:
    """The arrays along a new axis."""
    op = "stack"
    operands = [Type(a.node.dtype, a.weak) if isinstance(a, Value) else as_operand(a) for a in arguments]

    def build(promotion: Promotion) -> Node:
        nodes = [in_type(system, a.node, promotion.operands) for a in arguments if isinstance(a, Value)]
        shapes = {node.shape for node in nodes}
        if len(shapes) > 1:
            raise ValueError(f"'stack' takes arrays of one shape, found {_shapes(nodes)}")
        rank = len(nodes[0].shape) + 1
        along = views.axis_of(axis, rank, op)
        if rules.family(system) == "triton" and along != rank - 1:
            raise ValueError("tl.join stacks along a new last dimension; use axis=-1")
        return joined(op, [views.expand_dims(node, along) for node in nodes], along)

    return _together(system, op, arguments, operands, build)


def _together(
    system: Semantics,
    op: str,
    arguments: Sequence[Argument],
    operands: Sequence[Operand],
    build: Callable[[Promotion], Node],
) -> Value:
    def ask() -> Promotion:
        if not operands:
            raise ValueError(f"'{op}' takes at least one array")
        for argument in arguments:
            if not isinstance(argument, Value):
                raise PromotionError(f"'{op}' takes arrays, found {argument!r}", "make it an array")
        return rules.meet(system, op, operands)

    return noted(system, op, operands, ask, build, by_types=True)


def joined(op: str, nodes: Sequence[Node], axis: int) -> Node:
    """Nodes of one type and rank one after the other; `ValueError` where their other sizes differ."""
    first = nodes[0]
    rests = {(*node.shape[:axis], *node.shape[axis + 1 :]) for node in nodes}
    if len(rests) > 1:
        raise ValueError(f"'{op}' along axis {axis} takes arrays that are alike but for it, found {_shapes(nodes)}")
    filled = [node for node in nodes if node.shape[axis]] or [first]
    if len(filled) == 1:
        return filled[0]
    shape = (*first.shape[:axis], sum(node.shape[axis] for node in filled), *first.shape[axis + 1 :])
    return call("concatenate", shape, first.dtype, *filled, axis=axis)


def _same_rank(op: str, nodes: Sequence[Node]) -> None:
    ranks = {len(node.shape) for node in nodes}
    if len(ranks) > 1:
        raise ValueError(f"'{op}' takes arrays of equally many dimensions, found shapes {_shapes(nodes)}")
    if 0 in ranks:
        raise ValueError(f"'{op}' takes arrays with dimensions; use stack for those without")


def _shapes(nodes: Sequence[Node]) -> str:
    return ", ".join(str(node.shape) for node in nodes)


def split(
    system: Semantics, value: Value, parts: SupportsIndex | Sequence[SupportsIndex], axis: SupportsIndex
) -> list[Value]:
    """Pieces along ``axis``. ``parts`` is what the system's function takes: a number of equal pieces or where to cut (NumPy,
    JAX), the size of each piece or all sizes (PyTorch), all sizes (MAX)."""
    rules.refuse_missing(system, "split")
    along = views.axis_of(axis, len(value.node.shape), "split")
    size = value.node.shape[along]
    ranges = _ranges(rules.family(system), parts, size)
    return [Value(cut(value.node, along, begin, end), value.weak) for begin, end in ranges]


def _ranges(base: str, parts: SupportsIndex | Sequence[SupportsIndex], size: int) -> list[tuple[int, int]]:
    given = [operator.index(p) for p in parts] if isinstance(parts, Sequence) else operator.index(parts)
    if base in ("torch", "max"):
        if isinstance(given, int):
            if base == "max":
                raise TypeError("ops.split takes the size of each piece, found a number")
            if given <= 0:
                raise ValueError(f"torch.split takes a positive size of pieces, found {given}")
            given = [min(given, size - i) for i in range(0, size, given)] or [0]
        if sum(given) != size or min(given, default=0) < 0:
            raise ValueError(f"'split' takes sizes that add up to {size}, found {given}")
        ends = [sum(given[: i + 1]) for i in range(len(given))]
        return [(end - n, end) for end, n in zip(ends, given, strict=True)]
    if isinstance(given, int):
        if given <= 0 or size % given:
            raise ValueError(f"'split' cannot divide {size} elements into {given} equal pieces")
        given = [size // given * i for i in range(1, given)]
    cuts = [0, *given, size]
    pieces = [slice(a, b).indices(size) for a, b in zip(cuts, cuts[1:], strict=False)]
    if base == "jax" and any(b < a for a, b in zip(cuts, cuts[1:], strict=False)):
        raise ValueError(f"'split' takes ascending places in jax, found {given}")
    return [(start, max(start, stop)) for start, stop, _ in pieces]


def cut(node: Node, axis: int, begin: int, end: int, step: int = 1) -> Node:
    """A slice along one axis."""
    key = [slice(None)] * len(node.shape)
    key[axis] = slice(begin, end, step)
    return views.index(node, tuple(key))


def flip(system: Semantics, value: Value, axis: SupportsIndex | Sequence[SupportsIndex] | None) -> Value:
    """The elements in reverse order along ``axis``: all of them for None (Triton: the last)."""
    base = rules.family(system)

    def build() -> Node:
        if axis is None and base == "torch":
            raise TypeError("torch.flip takes the axes to reverse")
        axes = views.axes_of(-1 if axis is None and base == "triton" else axis, len(value.node.shape), "flip")
        key = tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(len(value.node.shape)))
        return views.index(value.node, key)

    return moved(system, "flip", value, build)


def roll(
    system: Semantics,
    value: Value,
    shift: SupportsIndex | Sequence[SupportsIndex],
    axis: SupportsIndex | Sequence[SupportsIndex] | None,
) -> Value:
    """The elements moved on by ``shift``, those at the end to the front; along all elements in order where ``axis`` is None."""

    def build() -> Node:
        if axis is None:
            flat = views.reshape(value.node, (value.node.size,))
            total = sum(map(operator.index, shift)) if isinstance(shift, Sequence) else operator.index(shift)
            return views.reshape(_rolled(flat, total, 0), value.node.shape)
        axes = list(axis) if isinstance(axis, Sequence) else [axis]
        shifts = list(shift) if isinstance(shift, Sequence) else [shift]
        if len(shifts) == 1 and rules.family(system) != "torch":
            shifts *= len(axes)
        if len(shifts) != len(axes):
            raise ValueError(f"'roll' takes a shift for each axis, found {len(shifts)} for {len(axes)}")
        node = value.node
        for a, s in zip(axes, shifts, strict=True):
            node = _rolled(node, operator.index(s), views.axis_of(a, len(node.shape), "roll"))
        return node

    return moved(system, "roll", value, build)


def _rolled(node: Node, shift: int, axis: int) -> Node:
    size = node.shape[axis]
    at = -shift % size if size else 0
    return joined("roll", [cut(node, axis, at, size), cut(node, axis, 0, at)], axis) if at else node


def repeat(
    system: Semantics, value: Value, repeats: SupportsIndex | Sequence[SupportsIndex], axis: SupportsIndex | None
) -> Value:
    """Each element several times; flattened first where ``axis`` is None. ``repeats`` is one number, or one for each."""

    def build() -> Node:
        node = value.node if axis is not None else views.reshape(value.node, (value.node.size,))
        along = views.axis_of(0 if axis is None else axis, len(node.shape), "repeat")
        size = node.shape[along]
        counts = list(map(operator.index, repeats)) if isinstance(repeats, Sequence) else [operator.index(repeats)]
        if min(counts, default=0) < 0 or len(counts) not in (1, size):
            raise ValueError(f"'repeat' takes one count or {size}, none negative, found {counts}")
        if len(counts) > 1:
            return along_axis(node, data(np.repeat(np.arange(size), counts)), along, "raise")
        wide = views.expand_dims(node, along + 1)
        shape = [*wide.shape]
        shape[along + 1] = counts[0]
        flat = (*node.shape[:along], size * counts[0], *node.shape[along + 1 :])
        return views.reshape(views.broadcast_to(wide, shape), flat)

    return moved(system, "repeat", value, build)


def tile(system: Semantics, value: Value, counts: SupportsIndex | Sequence[SupportsIndex]) -> Value:
    """The array several times along each axis."""

    def build() -> Node:
        asked = list(map(operator.index, counts if isinstance(counts, Sequence) else (counts,)))
        if min(asked, default=0) < 0:
            raise ValueError(f"'tile' takes counts that are not negative, found {tuple(asked)}")
        rank = max(len(asked), len(value.node.shape))
        if rules.family(system) == "max" and len(asked) != len(value.node.shape):
            raise ValueError(f"ops.tile takes a count for each of the {len(value.node.shape)} axes, found {len(asked)}")
        times = [1] * (rank - len(asked)) + asked
        shape = (1,) * (rank - len(value.node.shape)) + value.node.shape
        between = [n for pair in zip([1] * rank, shape, strict=True) for n in pair]
        spread = [n for pair in zip(times, shape, strict=True) for n in pair]
        wide = views.broadcast_to(views.reshape(value.node, between), spread)
        return views.reshape(wide, [a * b for a, b in zip(times, shape, strict=True)])

    return moved(system, "tile", value, build)


MODES: Final = {
    "numpy": frozenset({"constant", "edge", "reflect", "symmetric", "wrap"}),
    "jax": frozenset({"constant", "edge", "reflect", "symmetric", "wrap"}),
    "torch": frozenset({"constant", "edge", "reflect", "wrap"}),
    "max": frozenset({"constant", "edge", "reflect"}),
    "dali": frozenset({"constant"}),
}
"""What systems pad with, in NumPy's words. PyTorch's are ``constant``, ``replicate``, ``reflect`` and ``circular``."""

_ALIASES: Final = {"replicate": "edge", "circular": "wrap"}


def pad(system: Semantics, value: Value, width: object, mode: str, fill: Number | Sequence[Number]) -> Value:
    """The array with elements before and after it along each axis. ``width`` is as in NumPy: one number, a pair, or a pair for
    each axis; ``fill`` is what ``constant`` adds: one number, or a pair for before and after."""

    def build() -> Node:
        node, base = value.node, rules.family(system)
        chosen = _ALIASES.get(mode, mode)
        if chosen not in MODES[base]:
            raise ValueError(f"{system.name} pads with {', '.join(sorted(MODES[base]))}, found '{mode}'")
        widths = [tuple(map(int, pair)) for pair in np.broadcast_to(cast(Any, width), (len(node.shape), 2)).tolist()]
        if base == "torch":  # negative widths cut
            for axis, (before, after) in enumerate(widths):
                node = cut(node, axis, max(-before, 0), node.shape[axis] - max(-after, 0))
            widths = [(max(a, 0), max(b, 0)) for a, b in widths]
        if any(n < 0 for pair in widths for n in pair):
            raise ValueError(f"'pad' takes widths that are not negative, found {width}")
        if chosen == "constant":
            return _filled(system, node, widths, fill)
        for axis, pair in enumerate(widths):
            node = _around(base, node, axis, pair, chosen)
        return node

    return moved(system, "pad", value, build)


def _filled(system: Semantics, node: Node, widths: list[tuple[int, ...]], fill: Number | Sequence[Number]) -> Node:
    def padded(node: Node, pairs: Sequence[tuple[int, ...]], number: Number) -> Node:
        if not any(map(any, pairs)):
            return node
        shape = tuple(n + a + b for n, (a, b) in zip(node.shape, pairs, strict=True))
        return call("pad", shape, node.dtype, node, widths=tuple(pairs), fill=_added(system, number, node.dtype))

    if not isinstance(fill, Sequence):
        return padded(node, widths, fill)
    before, after = fill
    for axis, (a, b) in enumerate(widths):
        rest = [(0, 0)] * len(widths)
        node = padded(node, [*rest[:axis], (a, 0), *rest[axis + 1 :]], before)
        node = padded(node, [*rest[:axis], (0, b), *rest[axis + 1 :]], after)
    return node


def _added(system: Semantics, number: Number, dtype: DType) -> Number:
    """What pads. DALI converts it unchecked."""
    if rules.family(system) != "dali":
        return filling(system, number, dtype)
    return converted("convert_wrap", np.asarray(number), dtype).item()


def _around(base: str, node: Node, axis: int, pair: tuple[int, ...], mode: str) -> Node:
    size = node.shape[axis]
    if not any(pair):
        return node
    if not size:
        raise ValueError(f"'pad' has nothing to repeat along axis {axis}, which is empty")
    limit = {"reflect": size - 1, "wrap": size}.get(mode)
    if base == "torch" and limit is not None and max(pair) > limit:
        raise ValueError(f"torch.nn.functional.pad of {size} elements adds at most {limit} by '{mode}', found {pair}")
    places = np.pad(np.arange(size), cast("tuple[int, int]", pair), cast(Any, mode))
    return along_axis(node, data(places), axis, "raise")
