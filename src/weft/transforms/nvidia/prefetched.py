"""Which loads of a loop are copied ahead of their use; see `weft.transforms.nvidia.pipeline`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.ir import tile
from weft.ir.types import dtype_of, shape_of
from weft.target import GpuTarget
from weft.transforms.axis import AxisInfo, base_argument
from weft.transforms.nvidia.ahead import slice_of
from weft.transforms.nvidia.matrix import matrix_dots

LEAST_BYTES: Final = 4
"""What a thread copies at least (PTX ISA, ``cp.async``)."""


def feeding_dots(
    loop: scf.ForOp, target: GpuTarget, facts: Mapping[SSAValue, AxisInfo], disjoint: bool
) -> Sequence[tile.LoadOp]:
    """The loads directly in a loop that reach a matrix instruction in it and may be copied ahead, in their order."""
    block = loop.body.block
    dots = matrix_dots(block, target)
    if not dots or not target.has("cp.async"):
        return []
    reaching = _reaching([operand for dot in dots for operand in (dot.a, dot.b)], loop)
    orders = [(op, ordering) for op in block.walk() if (ordering := tile.ordering_of(op)) is not None]

    def may_be_early(load: tile.LoadOp) -> bool:
        own = tile.ordering_of(load)
        assert own is not None, "a load is an access"
        return all(
            op is load or tile.may_exchange(ordering, own, apart=disjoint and apart(op, load))
            for op, ordering in orders
        )

    return [
        load
        for load in reaching
        if load.volatile is None
        and shape_of(load.pointer)
        and width(load, facts) * dtype_of(load.result).itemsize >= LEAST_BYTES
        and may_be_early(load)
        and _addressable(loop, load, may_be_early)
    ]


def _addressable(loop: scf.ForOp, load: tile.LoadOp, may_be_early: Callable[[tile.LoadOp], bool]) -> bool:
    """Whether what computes a load's addresses can run ahead."""
    part = slice_of(loop, [value for value in (load.pointer, load.mask) if value is not None])
    return part is not None and all(may_be_early(op) for op in part.ops if isinstance(op, tile.LoadOp))


def _reaching(values: Sequence[SSAValue], loop: scf.ForOp) -> list[tile.LoadOp]:
    """The loads in a loop's block from which values are computed by elementwise and shape ops."""
    block = loop.body.block
    found: set[Operation] = set()
    seen: set[Operation] = set()
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or owner in seen or owner.parent_block() is not block:
            continue
        seen.add(owner)
        if isinstance(owner, tile.LoadOp):
            found.add(owner)
        elif tile.is_a(owner, tile.Elementwise) or tile.is_a(owner, tile.Shape):
            pending += owner.operands
    return [op for op in block.ops if op in found and isinstance(op, tile.LoadOp)]


def width(load: tile.LoadOp, facts: Mapping[SSAValue, AxisInfo]) -> int:
    """How many neighbouring elements one access may take."""
    pointer = facts.get(load.pointer)
    mask = None if load.mask is None else facts.get(load.mask)
    if pointer is None or (load.mask is not None and mask is None):
        return 1
    shape, size = shape_of(load.pointer), dtype_of(load.result).itemsize
    runs = [min(pointer.contiguity[axis], extent) for axis, extent in enumerate(shape)]
    axis = max(range(len(shape)), key=lambda at: (runs[at], at))  # along which the layout rules lay out vectors
    constancy = runs[axis] if mask is None else mask.constancy[axis]
    return max(1, min(runs[axis], pointer.divisibility[axis] // size, constancy))


def apart(op: Operation, load: tile.LoadOp) -> bool:
    """Whether an access is through another array than a load."""
    if not tile.is_access(op):
        return False
    one, other = base_argument(op.pointer), base_argument(load.pointer)
    return one is not None and other is not None and one is not other
