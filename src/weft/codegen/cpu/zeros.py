"""Values that are zeros where masks are false.

    x = load(p, mask=inside, other=0)           zeros where `inside` is false
    y = where(inside, x - mean, 0)              so is this
    y * x, y + x                                and what is computed of zeros alone

A sum needs no elements that are zeros, and a total to which zeros are added stays as it is (`weft.codegen.cpu.extents`). All
zeros here are positive: 0 - 0, 0 + 0 and 0 * 0 of them are positive, too. A product of a zero and another number may be a NaN.
"""

from __future__ import annotations

from math import copysign
from typing import Final

from xdsl.ir import SSAValue

from weft.ir import tile

_OF_ZEROS: Final = ("add", "sub", "mul")
"""What is a zero if both operands are."""


def masks_of_zeros(value: SSAValue) -> set[SSAValue] | None:
    """Masks of which one is true at each element of the value that is not a positive zero; None where that is not known."""
    masks, pending, seen = set[SSAValue](), [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        match current.owner:
            case tile.LoadOp() as op if op.mask is not None and op.other is not None and is_positive_zero(op.other):
                masks.add(op.mask)
            case tile.SelectOp() as op if is_positive_zero(op.rhs):
                masks.add(op.condition)
            case tile.BinaryOp() as op if op.kind.data in _OF_ZEROS:
                pending.extend(op.operands)
            case _ if not is_positive_zero(current):
                return None
            case _:
                pass
    return masks


def is_positive_zero(value: SSAValue) -> bool:
    """Whether all elements of a value are known to be a positive zero, or the integer 0."""
    op = value.owner
    return isinstance(op, tile.ConstantOp) and op.number == 0 and copysign(1, op.number) > 0
