"""Masks that are all true if their last element is.

Nearly every mask compares offsets with a bound: ``pid * B + arange(0, B) < n``. Offsets only ascend, so if the last one
is below the bound all are, and one scalar test before a register loop tells whether the loop needs its masks at all. That matters
beyond the instructions saved: a processor does not prefetch for masked loads as it does for plain ones.

A tile *ascends* if along each dimension its elements are consecutive or equal (axis analysis), and is *uniform* if all are equal;
then ``ascending < uniform``, ``uniform > ascending``, and conjunctions and broadcasts of such masks are *decided by the last*.
The same holds for a part of the tile: an element that is true makes all those true whose index has no bit that its own has not.
So the last lane of a register decides for the register, where each bit of a lane or register is one bit of the index. Lanes
that walk one dimension are true up to some lane: the mask is a *prefix*.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from llvmlite import ir
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.schedule import is_recomputable
from weft.codegen.llvm.types import I1
from weft.ir import tile
from weft.ir.types import shape_of
from weft.layout import LinearLayout
from weft.transforms.axis import AxisInfo

_ASCENDING_FIRST = ("lt", "le")
_UNIFORM_FIRST = ("gt", "ge")


def decided_by_last(mask: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> bool:
    """Whether the last element of a tile of bools being true makes all of them true."""
    op = mask.owner
    match op:
        case tile.SplatOp() | tile.ConstantOp():
            return True
        case tile.BinaryOp() if op.kind.data == "and":
            return decided_by_last(op.lhs, axis) and decided_by_last(op.rhs, axis)
        case tile.CompareOp():
            return bound_of(op, axis) is not None
        case Operation() if tile.is_a(op, tile.View):
            return decided_by_last(op.operands[0], axis)
        case _:
            return False


def bound_of(op: tile.CompareOp, axis: Mapping[SSAValue, AxisInfo]) -> SSAValue | None:
    """The uniform tile below which an ascending one is compared to be; None where that is not what is compared."""
    if op.kind.data not in _ASCENDING_FIRST + _UNIFORM_FIRST:
        return None
    offsets, bound = (op.lhs, op.rhs) if op.kind.data in _ASCENDING_FIRST else (op.rhs, op.lhs)
    return bound if _ascends(offsets, axis) and _uniform(bound, axis) else None


def is_prefix(mask: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> bool:
    """Whether along each dimension of the tile the elements before one that is true are true: decided by the last, and not
    reshaped, which makes one dimension of several."""
    op = mask.owner
    match op:
        case tile.ReshapeOp():
            return False
        case tile.BinaryOp() if op.kind.data == "and":
            return is_prefix(op.lhs, axis) and is_prefix(op.rhs, axis)
        case Operation() if tile.is_a(op, tile.View):
            return is_prefix(op.operands[0], axis)
        case _:
            return decided_by_last(mask, axis)


def last_is_highest(layout: LinearLayout) -> bool:
    """Whether the last lane of each register holds the element whose index has all the bits that the other lanes' have."""
    columns = [c for dim in ("register", "lane") for c in layout.columns(dim) if c]
    return len(set(columns)) == len(columns) and not any(c & (c - 1) for c in columns)


def depends_on(mask: SSAValue, roots: Collection[object]) -> bool:
    """Whether a mask is computed from what a register loop with these roots gives, so that it cannot be tested before."""
    pending: list[SSAValue] = [mask]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        op = value.owner
        if value in seen or not isinstance(op, Operation):
            continue
        if op in roots:
            return True
        seen.add(value)
        if is_recomputable(value):
            pending.extend(operand for operand in op.operands if shape_of(operand))
    return False


def _ascends(value: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> bool:
    info = axis.get(value)
    return info is not None and all(
        size in (1, contiguous, constant)
        for size, contiguous, constant in zip(shape_of(value), info.contiguity, info.constancy, strict=True)
    )


def _uniform(value: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> bool:
    info = axis.get(value)
    return info is not None and all(
        size == constant for size, constant in zip(shape_of(value), info.constancy, strict=True)
    )


def distinct(builder: ir.IRBuilder, layout: LinearLayout, mask: ir.Value | None) -> ir.Value:
    """A mask, or all lanes, without the lanes that duplicate another."""
    lanes = layout.in_size("lane")
    duplicate = layout.duplicate_mask("lane")
    constant = ir.Constant(
        ir.VectorType(I1, lanes), [ir.Constant(I1, int(not lane & duplicate)) for lane in range(lanes)]
    )
    if mask is None:
        return constant
    return builder.and_(mask, constant) if duplicate else mask
