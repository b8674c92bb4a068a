"""Intervals of integers: which numbers a value of a kernel may have.

An interval follows from the types, constants and intervals of operands. A result that may lie beyond its type may wrap, so it may
be any number of the type:

    x : uint8 in int32               [0, 255]
    3 * x - 1                        [-1, 764]
    (x << 24) of int32               any: 255 << 24 wraps

What control flow merges, what is loaded and what the tables below do not have may be any number of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from xdsl.ir import Operation, SSAValue

from weft.dtypes import DType
from weft.ir import tile
from weft.ir.direct import defining_op, operands_of
from weft.ir.types import dtype_of, is_pointer

Interval: TypeAlias = tuple[int, int]
"""The least and the greatest number."""


class Ranges:
    """Intervals that hold all numbers a value may have."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Interval] = {}

    def of(self, value: SSAValue) -> Interval:
        """The interval of an integer. Not by recursion: an unrolled loop makes chains longer than Python's stack."""
        pending = [value]
        while pending:
            current = pending[-1]
            missing = [each for each in _operands(current) if each not in self._known]
            pending.extend(missing)
            if not missing:
                pending.pop()
                self._known[current] = self._of(current)
        return self._known[value]

    def _of(self, value: SSAValue) -> Interval:
        low, high = _limits(dtype_of(value))
        op, known = defining_op(value), [self._known[each] for each in _operands(value)]
        first, last = (low, high) if op is None else _interval(op, known, (low, high))
        return (first, last) if low <= first and last <= high else (low, high)


def _limits(dtype: DType) -> Interval:
    return (0, 1) if dtype.is_bool else (int(dtype.min), int(dtype.max))


def _operands(value: SSAValue) -> Sequence[SSAValue]:
    """The integers whose intervals tell a value's."""
    op = defining_op(value)
    if isinstance(op, tile.BinaryOp | tile.UnaryOp | tile.CastOp | tile.SplatOp):
        found = operands_of(op)
    elif isinstance(op, tile.SelectOp):
        found = (op.lhs, op.rhs)
    else:
        found = operands_of(op)[:1] if op is not None and tile.is_a(op, tile.View) else ()
    return [each for each in found if not is_pointer(each) and not dtype_of(each).is_float]


def _interval(op: Operation, known: Sequence[Interval], limits: Interval) -> Interval:
    """The interval of a result before it wraps."""
    match op:
        case tile.ConstantOp():
            return int(op.number), int(op.number)
        case tile.ArangeOp():
            return op.start.value.data, op.end.value.data - 1
        case tile.BinaryOp() if op.kind.data in _BINARY:
            found = _BINARY[op.kind.data](known[0], known[1])
            return limits if found is None else found
        case tile.UnaryOp() if op.kind.data == "neg":
            return -known[0][1], -known[0][0]
        case tile.UnaryOp() if op.kind.data == "abs":
            low, high = known[0]
            return max(low, -high, 0), max(abs(low), abs(high))
        case tile.SelectOp():
            return min(known[0][0], known[1][0]), max(known[0][1], known[1][1])
        case tile.CastOp() | tile.SplatOp() if known:
            return known[0]
        case _ if tile.is_a(op, tile.View) and known:
            return known[0]
        case _:
            return limits


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _and(a: Interval, b: Interval) -> Interval | None:
    bounds = [high for low, high in (a, b) if low >= 0]
    return (0, min(bounds)) if bounds else None


def _or(a: Interval, b: Interval) -> Interval | None:
    """Also of exclusive or: no bit above the highest of both."""
    return (0, (1 << max(a[1], b[1]).bit_length()) - 1) if min(a[0], b[0]) >= 0 else None


def _shifted(to_left: bool) -> Callable[[Interval, Interval], Interval | None]:
    def shifted(a: Interval, by: Interval) -> Interval | None:
        if by[0] != by[1] or not 0 <= by[0] < _WIDEST:
            return None
        return (a[0] << by[0], a[1] << by[0]) if to_left else (a[0] >> by[0], a[1] >> by[0])

    return shifted


_WIDEST: Final = 64
_BINARY: Final[Mapping[str, Callable[[Interval, Interval], Interval | None]]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "and": _and,
    "or": _or,
    "xor": _or,
    "shl": _shifted(to_left=True),
    "shr": _shifted(to_left=False),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
"""The interval of a result that does not wrap; None where it may be anything."""
