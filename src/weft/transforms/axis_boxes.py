"""Boxes: what axis analysis knows of a tile's numbers along all dimensions together, such as rows that follow one another.

Along dimension d, in groups of ``groups[d]`` (indices 0 .. g-1, g .. 2g-1, and so on), each index adds ``steps[d]``. So the tile
falls into boxes of that shape, and in a box the number is the first one plus the sum of index times step. ``divisor`` divides
the first number of each box, in bytes for pointers. A group of 1 says nothing; contiguity is a step of 1, constancy one of 0.

For ``x + (arange(0, 512)[:, None] * 4 + arange(0, 4))``, with x a pointer to bytes whose address is a multiple of 16:

=================== ====== ======== =======
value               steps  groups   divisor
=================== ====== ======== =======
arange(0, 512)      1      512      2**62
``[:, None] * 4``   4, 0   512, 1   2**62
arange(0, 4)        0, 1   1, 4     2**62
their sum           4, 1   512, 4   2**62
x + sum             4, 1   512, 4   16
=================== ====== ======== =======

so that all 2,048 bytes are contiguous. `AxisInfo` alone knows of runs of four.

Kept are sums, products with a constant, and changes of shape; what else is known follows from an `AxisInfo` (`box_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from xdsl.ir import Operation

from weft.ir import tile
from weft.ir.types import dtype_of, is_tile, shape_of
from weft.transforms.axis_info import MAX, AxisInfo, Box, lowest_bit, sizes_of


def box_of(info: AxisInfo) -> Box:
    """All that is known of a value, as boxes: along each dimension the larger of its groups."""
    groups = tuple(map(max, info.contiguity, info.constancy))
    steps = tuple([int(c == g > 1) for c, g in zip(info.contiguity, groups, strict=True)])
    box = Box(steps, groups, max([info.at(d, g) for d, g in enumerate(groups)]), info.unit)
    return box if info.box is None else _merged(box, info.box)


def _merged(x: Box, y: Box) -> Box:
    """What two boxes of one value say together: they are claims about each dimension."""
    taken = [a if a[1] >= b[1] else b for a, b in zip(x.along, y.along, strict=True)]
    divisor = max(x.divisor, y.divisor)
    return Box(tuple([s for s, _ in taken]), tuple([g for _, g in taken]), divisor, x.unit)


def _sum(x: Box, y: Box, sign: int = 1) -> Box:
    """Steps add in groups of both."""
    groups = tuple(map(min, x.groups, y.groups))
    x, y = x.cut(groups), y.cut(groups)
    scale = lowest_bit(x.unit // y.unit)
    steps = tuple([a + sign * b for a, b in zip(x.steps, y.steps, strict=True)])
    return Box(steps, groups, min(x.divisor, y.divisor * scale, MAX), x.unit)


def _times(x: Box, factor: int) -> Box:
    """Each number times a constant."""
    return x._replace(steps=tuple(step * factor for step in x.steps), divisor=min(MAX, x.divisor * lowest_bit(factor)))


def _binary(op: tile.BinaryOp, x: AxisInfo, y: AxisInfo) -> Box | None:
    dtype = dtype_of(op.lhs)
    if not dtype.signed or not dtype.is_integer or dtype.bits < 32:  # narrow and unsigned integers wrap in real kernels
        return None
    match op.kind.data:
        case "add":
            return _sum(box_of(x), box_of(y))
        case "sub":
            return _sum(box_of(x), box_of(y), -1)
        case "mul" if y.constant is not None:
            return _times(box_of(x), y.constant)
        case "mul" if x.constant is not None:
            return _times(box_of(y), x.constant)
        case "shl" if y.constant is not None and 0 <= y.constant < dtype.bits:
            return _times(box_of(x), 1 << y.constant)
        case _:
            return None


def _cast(op: tile.CastOp, x: AxisInfo) -> Box | None:
    """Kept where every value stays."""
    source, target = dtype_of(op.source), dtype_of(op.result)
    if not (source.is_integer and target.is_integer) or target.max < source.max:
        return None
    return box_of(x) if target.min <= source.min or x.nonnegative else None


def _broadcast(op: tile.BroadcastOp, x: AxisInfo) -> Box:
    box = box_of(x)
    sizes = zip(shape_of(op.source), shape_of(op.result), box.groups, strict=True)
    groups = tuple(lowest_bit(new) if old == 1 else group for old, new, group in sizes)
    return box._replace(groups=groups)  # the step along a size of 1 is 0


def _pick(box: Box, dimensions: Sequence[int | None]) -> Box:
    """These dimensions in that order; of a size of 1 where None."""
    along = [(0, 1) if d is None else box.along[d] for d in dimensions]
    return Box(tuple(s for s, _ in along), tuple(g for _, g in along), box.divisor, box.unit)


def _expand_dims(op: tile.ExpandDimsOp, x: AxisInfo) -> Box:
    axis = op.axis.value.data
    return _pick(box_of(x), [*range(axis), None, *range(axis, x.rank)])


def _reshape(op: tile.ReshapeOp, x: AxisInfo) -> Box:
    """Through the row-major sequence: dimensions that continue one another are one, and are cut again."""
    box, old, new = box_of(x), sizes_of(op.source.type), sizes_of(op.result.type)
    wide = [d for d, size in enumerate(old) if size > 1]
    if [old[d] for d in wide] == [size for size in new if size > 1]:
        order = iter(wide)
        return _pick(box, [next(order) if size > 1 else None for size in new])
    step, left = box.along[wide[-1]]
    whole, merged = old[wide[-1]], [wide[-1]]
    for d in reversed(wide[:-1]):
        if left != whole or box.groups[d] == 1 or box.steps[d] != step * whole:
            break
        left, whole = left * box.groups[d], whole * old[d]
        merged.append(d)
    divisor = box.cut(tuple(g if d in merged else 1 for d, g in enumerate(box.groups))).divisor
    steps, groups, stride = [0] * len(new), [1] * len(new), 1
    for d in reversed(range(len(new))):
        size = lowest_bit(new[d])
        groups[d] = min(size, left)
        steps[d] = step * stride if groups[d] > 1 else 0
        left = left // size if groups[d] == new[d] else 1
        stride *= new[d]
    return Box(tuple(steps), tuple(groups), divisor if left <= 1 else 1, box.unit)


def _sum_of_pointer(op: tile.AddPtrOp, x: AxisInfo, y: AxisInfo) -> Box:
    return _sum(box_of(x), box_of(y))


def _same(op: Operation, x: AxisInfo) -> Box:
    return box_of(x)


def _trans(op: tile.TransOp, x: AxisInfo) -> Box:
    return _pick(box_of(x), op.permutation)


_RULES: Final[Mapping[type[Operation], Any]] = {
    tile.BinaryOp: _binary,
    tile.AddPtrOp: _sum_of_pointer,
    tile.CastOp: _cast,
    tile.HintOp: _same,
    tile.ConvertLayoutOp: _same,
    tile.BroadcastOp: _broadcast,
    tile.ExpandDimsOp: _expand_dims,
    tile.TransOp: _trans,
    tile.ReshapeOp: _reshape,
}


def with_box(op: Operation, operands: Sequence[AxisInfo], result: AxisInfo) -> AxisInfo:
    """What is known of an op's result, with the box that follows from its operands' if that says more. Of a scalar, which has
    nothing along a dimension, it never does."""
    rule: Any = _RULES.get(type(op))
    found: Box | None = None if rule is None or not is_tile(op.results[0]) else rule(op, *operands)
    plain = result if result.box is None else result._replace(box=None)
    if found is None:
        return plain
    derived = box_of(plain)
    merged = _merged(derived, found)
    return plain if merged == derived else plain._replace(box=merged)
