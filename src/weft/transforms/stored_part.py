"""Which part of a tile is stored: the first rows and columns, where masks of stores cut off the others.

    m = first + arange(0, 64)
    store(p, f(sums), mask=(m < M)[:, None] & ...)     rows of sums from M - first on are never read

A kernel of 64 rows that gets 5 need not compute the other 59. The rules:

1. Each use of the tile is elementwise, or a store of it in the block of ``before``, and so on for what elementwise ops make of
   it. Division of integers is no such op.
2. Each of the stores has a mask. A conjunct of it is ``offsets < limit`` along one axis, where offsets are
   ``first + arange(0, size)``.
3. ``first`` and ``limit`` are scalars of 32 bits that are known at ``before``.

What is left out may have any value: no op that rule 1 allows fails for any.

Masks of loads are read in the same way: where they are false, tiles have the numbers that the loads name (`limits_of_zeros`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from weft import dtypes
from weft.ir import tile
from weft.ir.types import dtype_of, shape_of
from weft.transforms.constants import number_of


@dataclass(frozen=True)
class Limit:
    """Coordinates along ``axis`` from ``limit - first`` on are not stored."""

    axis: int
    first: SSAValue | int
    limit: SSAValue | int


def limits_of(value: SSAValue, before: Operation) -> dict[int, Limit]:
    """By axis, a limit that holds for all stores of a tile: of several the first in the mask. None where the tile has other
    uses."""
    common: list[Limit] | None = None
    axes = tuple(range(len(shape_of(value))))
    for store in _stores(value):
        if store is None or store.parent_block() is not before.parent_block() or store.mask is None:
            return {}
        here = [limit for limit in _conjuncts(store.mask, axes) if _known(limit, before)]
        common = here if common is None else [limit for limit in common if limit in here]
    found: dict[int, Limit] = {}
    for limit in common or ():
        found.setdefault(limit.axis, limit)
    return found


def limits_of_zeros(value: SSAValue) -> dict[int, Limit]:
    """By axis, a limit from which on the elements of a tile are zeros, by the mask of the load that it is, perhaps cast."""
    op = value.owner
    while isinstance(op, tile.CastOp | tile.ConvertLayoutOp):
        op = op.source.owner
    if not isinstance(op, tile.LoadOp) or op.mask is None or op.other is None or number_of(op.other) != 0:
        return {}
    found: dict[int, Limit] = {}
    for limit in _conjuncts(op.mask, tuple(range(len(shape_of(value))))):
        found.setdefault(limit.axis, limit)
    return found


def _stores(value: SSAValue) -> Iterator[tile.StoreOp | None]:
    """The stores of a tile and of what elementwise ops make of it; None for another use."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        for use in current.uses:
            op = use.operation
            if isinstance(op, tile.StoreOp) and op.value is current and op.mask is not current:
                yield op
            elif (tile.is_a(op, tile.Elementwise) or isinstance(op, tile.ConvertLayoutOp)) and not _divides(op):
                pending.extend(op.results)
            else:
                yield None


def _divides(op: Operation) -> bool:
    """Whether an op is a division of integers, which fails for zero."""
    return isinstance(op, tile.BinaryOp) and op.kind.data in ("div", "rem") and not dtype_of(op.result).is_float


def _conjuncts(mask: SSAValue, axes: tuple[int, ...]) -> Iterator[Limit]:
    """The limits of which a mask is the conjunction, perhaps with other conditions. ``axes`` are the tile's axes that the mask's
    own are."""
    op = mask.owner
    match op:
        case tile.BinaryOp() if op.kind.data == "and":
            yield from _conjuncts(op.lhs, axes)
            yield from _conjuncts(op.rhs, axes)
        case tile.CompareOp() if op.kind.data in ("lt", "gt"):
            low, high = (op.lhs, op.rhs) if op.kind.data == "lt" else (op.rhs, op.lhs)
            limit, ramp = _uniform(high), _ramp(low, axes)
            if limit is not None and ramp is not None and dtype_of(high) == dtypes.int32:
                yield Limit(*ramp, limit)
        case Operation() if (inner := _viewed(op, axes)) is not None:
            yield from _conjuncts(*inner)
        case _:
            pass


def _ramp(value: SSAValue, axes: tuple[int, ...]) -> tuple[int, SSAValue | int] | None:
    """The axis and the first of ``first + arange(0, size)``."""
    op = value.owner
    match op:
        case tile.ArangeOp() if op.start.value.data == 0:
            return axes[0], 0
        case tile.BinaryOp() if op.kind.data == "add" and dtype_of(value) == dtypes.int32:
            for offsets, first in ((op.lhs, _uniform(op.rhs)), (op.rhs, _uniform(op.lhs))):
                ramp = _ramp(offsets, axes)
                if first is not None and ramp is not None and ramp[1] == 0:
                    return ramp[0], first
            return None
        case Operation() if (inner := _viewed(op, axes)) is not None:
            return _ramp(*inner)
        case _:
            return None


def _uniform(value: SSAValue) -> SSAValue | int | None:
    """The scalar that all elements of a tile are."""
    op = value.owner
    if isinstance(number := number_of(value), int):
        return number
    if isinstance(op, tile.SplatOp):
        return op.source
    if isinstance(op, tile.BroadcastOp | tile.ExpandDimsOp | tile.ConvertLayoutOp):
        return _uniform(op.source)
    return None


def _viewed(op: Operation, axes: tuple[int, ...]) -> tuple[SSAValue, tuple[int, ...]] | None:
    """What a broadcast, expand_dims or conversion reads, and its axes. An axis that is broadcast is no axis of the source."""
    match op:
        case tile.ConvertLayoutOp():
            return op.source, axes
        case tile.BroadcastOp():
            same = [a == b for a, b in zip(shape_of(op.source), shape_of(op.result), strict=True)]
            return op.source, tuple(axis if keep else -1 for axis, keep in zip(axes, same, strict=True))
        case tile.ExpandDimsOp():
            at = op.axis.value.data
            return op.source, (*axes[:at], *axes[at + 1 :])
        case _:
            return None


def _known(limit: Limit, before: Operation) -> bool:
    """Whether the scalars of a limit are there at an op of the same block."""
    return limit.axis >= 0 and all(
        isinstance(value.owner, Block)
        or value.owner.parent_block() is not before.parent_block()
        or value.owner.is_before_in_block(before)
        for value in (limit.first, limit.limit)
        if isinstance(value, SSAValue)
    )
