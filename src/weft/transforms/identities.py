"""Algebra that holds for every bit pattern, as tables.

Floats have fewer identities than real numbers: x + 0 turns -0 into +0 (x + -0 and x - 0 are exact),
x * 0 is NaN for infinities, x - x is not 0 for them, and a NaN equals nothing. Only what holds for them too is in the
float tables. Integers wrap, so sums and products may be reassociated; floats never are.

A rule gets an op and returns the value it equals, the ops that compute it more simply (the last one gives the result),
or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from weft.dtypes import DType, lossless
from weft.ir import tile
from weft.ir.direct import operands_of
from weft.ir.types import dtype_of, is_pointer
from weft.transforms.constants import constant_like, number_of, ones

Replacement: TypeAlias = SSAValue | Sequence[Operation] | None
"""What an op may be replaced by: a value, ops whose last one gives it, nothing."""

_Number: TypeAlias = Callable[[DType], int]

_NEUTRAL: Final[Mapping[str, _Number]] = {
    **dict.fromkeys(("add", "sub", "or", "xor", "shl", "shr"), lambda dtype: 0),
    **dict.fromkeys(("mul", "div"), lambda dtype: 1),
    "and": ones,
    "min": lambda dtype: dtype.max,
    "max": lambda dtype: dtype.min,
}
"""x op n == x, for integers and bools."""

_ABSORBING: Final[Mapping[str, _Number]] = {
    **dict.fromkeys(("mul", "and"), lambda dtype: 0),
    "or": ones,
    "min": lambda dtype: dtype.min,
    "max": lambda dtype: dtype.max,
}
"""x op n == n, for integers and bools."""

_ZERO_STAYS: Final = frozenset({"div", "rem", "shl", "shr"})
"""0 op x == 0, for integers; also for x == 0 (`weft.reference`)."""

_FLOAT_NEUTRAL: Final[Mapping[str, float]] = {"add": -0.0, "sub": 0.0, "mul": 1.0, "div": 1.0, "div_rn": 1.0}
"""x op n == x, for floats."""

_IDEMPOTENT: Final = frozenset({"and", "or", "min", "max", "minnan", "maxnan"})
"""x op x == x."""

_CANCELLING: Final = frozenset({"sub", "xor"})
"""x op x == 0, for integers and bools."""

_ASSOCIATIVE: Final = frozenset({"add", "mul", "and", "or", "xor"})
"""(x op y) op z == x op (y op z), for integers and bools."""

_INVOLUTIONS: Final = frozenset({"neg", "not"})

_SWAPPED: Final[Mapping[str, str]] = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_TRUE_OF_EQUALS: Final = frozenset({"eq", "le", "ge"})


def _same_float(number: float | None, other: float | None) -> bool:
    """Equal with the sign of zero; no NaN equals anything."""
    if number is None or other is None or number != other:
        return False
    return math.copysign(1, number) == math.copysign(1, other)


def unary(op: tile.UnaryOp) -> Replacement:
    """-(-x), ~(~x)."""
    inner = op.operand.owner
    kind = op.kind.data
    if isinstance(inner, tile.UnaryOp) and kind in _INVOLUTIONS and inner.kind.data == kind:
        return inner.operand
    return None


def binary(op: tile.BinaryOp) -> Replacement:
    """Constants go to the right; then the tables above."""
    lhs, rhs = operands_of(op)
    kind, dtype = op.kind.data, dtype_of(lhs)
    left, right = number_of(lhs), number_of(rhs)
    if left is not None and right is None and kind in tile.COMMUTATIVE:
        op.operands = lhs, rhs = rhs, lhs
        left, right = None, left
    if lhs is rhs:
        if kind in _IDEMPOTENT:
            return lhs
        if kind in _CANCELLING and not dtype.is_float:
            return [constant_like(0, op.result.type)]
    if dtype.is_float:
        return lhs if _same_float(right, _FLOAT_NEUTRAL.get(kind)) else None
    if left == 0 and kind in _ZERO_STAYS:
        return lhs
    if right is None:
        return None
    if kind in _NEUTRAL and right == _NEUTRAL[kind](dtype):
        return lhs
    if kind in _ABSORBING and right == _ABSORBING[kind](dtype):
        return rhs
    if kind == "rem" and right == 1:
        return [constant_like(0, op.result.type)]
    return _reassociate(op, kind)


def _reassociate(op: tile.BinaryOp, kind: str) -> Replacement:
    """(x op c) op d == x op (c op d)."""
    inner = op.lhs.owner
    if kind not in _ASSOCIATIVE or not isinstance(inner, tile.BinaryOp) or inner.kind.data != kind:
        return None
    if number_of(inner.rhs) is None:
        return None
    constants = tile.BinaryOp(kind, inner.rhs, op.rhs)
    return [constants, tile.BinaryOp(kind, inner.lhs, constants.result)]


def compare(op: tile.CompareOp) -> Replacement:
    """Constants go to the right; what is not a float equals itself."""
    kind = op.kind.data
    if number_of(op.lhs) is not None and number_of(op.rhs) is None:
        op.operands = (op.rhs, op.lhs)
        op.properties["kind"] = StringAttr(_SWAPPED[kind])
    if op.lhs is op.rhs and (is_pointer(op.lhs) or not dtype_of(op.lhs).is_float):
        return [constant_like(int(kind in _TRUE_OF_EQUALS), op.result.type)]
    return None


def select(op: tile.SelectOp) -> Replacement:
    """A known or needless choice; a bool chosen by itself."""
    condition = number_of(op.condition)
    if condition is not None:
        return op.lhs if condition else op.rhs
    if op.lhs is op.rhs:
        return op.lhs
    if op.result.type == op.condition.type and number_of(op.lhs) == 1 and number_of(op.rhs) == 0:
        return op.condition
    return None


def cast(op: tile.CastOp) -> Replacement:
    """A cast to the same type; two casts in a row that one does.

    Counterexample to more: int32 -> float64 -> int8 loses nothing in the middle but saturates, int32 -> int8 wraps.
    """
    if op.source.type == op.result.type:
        return op.source
    inner = op.source.owner
    if not isinstance(inner, tile.CastOp):
        return None
    first, middle, last = dtype_of(inner.source), dtype_of(op.source), dtype_of(op.result)
    saturates = middle.is_float and last.is_integer and first.is_integer
    integers = not first.is_float and middle.is_integer and last.is_integer
    wraps = integers and middle.bits >= last.bits
    if (lossless(first, middle) and not saturates) or wraps:
        return [tile.CastOp(inner.source, last)]
    return None


def bitcast(op: tile.BitcastOp) -> Replacement:
    """A bitcast to the same type; two in a row."""
    if op.source.type == op.result.type:
        return op.source
    inner = op.source.owner
    if isinstance(inner, tile.BitcastOp):
        return [tile.BitcastOp.create(operands=[inner.source], result_types=[op.result.type])]
    return None


def addptr(op: tile.AddPtrOp) -> Replacement:
    """No elements further."""
    pointer, offset = operands_of(op)
    return pointer if number_of(offset) == 0 else None
