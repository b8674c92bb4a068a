"""Which elements of an array an access may touch: the same unknown start, and a range behind it.

A pointer tile is an argument, plus multiples of scalars that are not known, plus a number of a known range:

    scratch + (pid * 512 + 256) + arange(0, 256) - 4        mask arange(0, 256) >= 4
    scratch, {pid: 512}, [252, 508)                         {pid: 512}, [256, 508)

Two accesses with one argument and equal multiples meet only where their ranges do. Halves of a buffer are told apart so, and
a tile from the element in front of it.

Law: numbers are taken modulo 2^32, which sums and products of 32 or 64 bits and extensions keep. Equal addresses are equal
modulo 2^32, and ranges that span less than that are disjoint as they are numbers apart.

Limit: scalars are compared as values, so nothing is known of two iterations of a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, shape_of
from weft.transforms.axis import is_parameter
from weft.transforms.constants import number_of

_WORD: Final = 1 << 32
_STEPS: Final = 32
"""Ops that are followed from a pointer to its start; beyond that nothing is known."""

Range: TypeAlias = tuple[int, int]
"""The least and the greatest number."""


@dataclass(frozen=True)
class Place:
    """Multiples of scalars modulo 2^32 (a pointer argument is one of them), and the range of what is added, in elements."""

    terms: frozenset[tuple[SSAValue, int]]
    low: int
    high: int

    def plus(self, other: Place) -> Place:
        """The sum."""
        terms = dict(self.terms)
        for value, factor in other.terms:
            terms[value] = (terms.get(value, 0) + factor) % _WORD
        return Place(frozenset((v, f) for v, f in terms.items() if f), self.low + other.low, self.high + other.high)

    def times(self, factor: int) -> Place:
        """The product with a number."""
        ends = self.low * factor, self.high * factor
        terms = ((value, each * factor % _WORD) for value, each in self.terms)
        return Place(frozenset((v, f) for v, f in terms if f), min(ends), max(ends))

    def apart(self, other: Place) -> bool:
        """Whether no number of the one is a number of the other, whatever the scalars are."""
        if self.terms != other.terms or max(self.high, other.high) - min(self.low, other.low) >= _WORD:
            return False
        return self.high < other.low or other.high < self.low


def place_of(pointer: SSAValue, mask: SSAValue | None = None) -> Place | None:
    """Where a tile of pointers, or one pointer, is, for elements under the mask; None where that is not known."""
    return _place(pointer, {} if mask is None else _bounds(mask), _STEPS)


def _place(value: SSAValue, bounds: Mapping[SSAValue, Range], steps: int) -> Place | None:
    """``bounds``: ranges of values of this rank, for elements at the place in question."""
    found = _computed(value, bounds, steps - 1) if steps else None
    if found is not None and not found.terms and value in bounds and _exact(value, found):
        low, high = bounds[value]
        return Place(found.terms, max(low, found.low), min(high, found.high))
    if found is None and not shape_of(value):
        known = not is_pointer(value) or (isinstance(value, BlockArgument) and is_parameter(value))
        return Place(frozenset([(value, 1)]), 0, 0) if known and _keeps(value) else None
    return found


def _computed(value: SSAValue, bounds: Mapping[SSAValue, Range], steps: int) -> Place | None:
    """The place that follows from the operands'."""
    match value.owner:
        case tile.ConstantOp() as op if _keeps(value):
            return Place(frozenset(), int(op.number), int(op.number))
        case tile.ArangeOp() as op:
            return Place(frozenset(), op.start.value.data, op.end.value.data - 1)
        case tile.SplatOp() | tile.BroadcastOp() | tile.ConvertLayoutOp() | tile.HintOp() as op:
            return _place(op.operands[0], bounds, steps)
        case tile.ExpandDimsOp() | tile.TransOp() | tile.ReshapeOp() as op:
            return _place(op.operands[0], {}, steps)
        case tile.CastOp() as op if _keeps(op.source) and _keeps(value):
            return _place(op.source, bounds, steps)
        case tile.AddPtrOp() as op if _keeps(op.offset):
            return _sum(op, bounds, steps)
        case tile.BinaryOp() as op if _keeps(value):
            return _binary(op, bounds, steps)
        case _:
            return None


def _sum(op: Operation, bounds: Mapping[SSAValue, Range], steps: int) -> Place | None:
    first, second = (_place(operand, bounds, steps) for operand in op.operands)
    return None if first is None or second is None else first.plus(second)


def _binary(op: tile.BinaryOp, bounds: Mapping[SSAValue, Range], steps: int) -> Place | None:
    factor = number_of(op.rhs)
    match op.kind.data:
        case "add":
            return _sum(op, bounds, steps)
        case "sub":
            first, second = (_place(operand, bounds, steps) for operand in op.operands)
            return None if first is None or second is None else first.plus(second.times(-1))
        case "mul" if isinstance(factor, int):
            found = _place(op.lhs, bounds, steps)
            return None if found is None else found.times(factor)
        case "shl" if isinstance(factor, int) and 0 <= factor < 32:
            found = _place(op.lhs, bounds, steps)
            return None if found is None else found.times(1 << factor)
        case _:
            return None


def _keeps(value: SSAValue) -> bool:
    """Whether a value's arithmetic is right modulo 2^32: that of pointers, and integers of 32 or 64 bits."""
    return is_pointer(value) or (dtype_of(value).is_integer and dtype_of(value).bits >= 32)


def _exact(value: SSAValue, place: Place) -> bool:
    """Whether a value is the number of its place, not only modulo 2^32: it has 32 bits, and the range fits them."""
    dtype = dtype_of(value)
    return dtype.bits == 32 and dtype.min <= place.low and place.high <= dtype.max


_RANGES: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "ge": (0, None),
    "gt": (1, None),
    "le": (None, 0),
    "lt": (None, -1),
    "eq": (0, 0),
}
"""What a comparison with a number says of the other operand: its least and greatest number, less that number."""


def _bounds(mask: SSAValue) -> dict[SSAValue, Range]:
    """The ranges of values of the mask's rank where it is true."""
    found: dict[SSAValue, Range] = {}
    todo = [mask]
    while todo:
        match todo.pop().owner:
            case tile.BinaryOp() as op if op.kind.data == "and":
                todo += op.operands
            case tile.BroadcastOp() | tile.ConvertLayoutOp() as op:
                todo.append(op.operands[0])
            case tile.CompareOp() as op if op.kind.data in _RANGES and not is_pointer(op.lhs):
                number = number_of(op.rhs)
                if isinstance(number, int):
                    low, high = found.get(op.lhs, (-_WORD, _WORD))
                    least, most = _RANGES[op.kind.data]
                    low = low if least is None else max(low, number + least)
                    found[op.lhs] = low, high if most is None else min(high, number + most)
            case _:
                pass
    return found
