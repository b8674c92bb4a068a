"""Evaluating ops on constants, with the reference's arithmetic: a folded op and an executed one give the same bits.

A tensor constant is one number in every element (`tile.constant`), so tensors fold like scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Attribute, Operation, SSAValue

from weft.dtypes import DType
from weft.ir import tile
from weft.ir.direct import operands_of
from weft.ir.types import dtype_of, is_pointer
from weft.reference import elementwise, numbers
from weft.reference.numbers import Array


def number_of(value: SSAValue) -> int | float | None:
    """The number in every element of a constant; None for anything else."""
    owner = value.owner
    return owner.number if type(owner) is tile.ConstantOp else None


def constant_trips(loop: scf.ForOp) -> int | None:
    """The iterations of a loop whose bounds are constants; None for any other."""
    start, stop, step = (number_of(value) for value in (loop.lb, loop.ub, loop.step))
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step > 0:
        return max(0, -(-(stop - start) // step))
    return None


def constant_like(number: int | float, type_: Attribute) -> tile.ConstantOp:
    """A constant of that type; ``number`` is in its range."""
    return tile.ConstantOp(number, type_)


def ones(dtype: DType) -> int:
    """The integer (or bool) with all bits set."""
    return -1 if dtype.signed else dtype.max


_EVALUATE: dict[type[Operation], Callable[[Any, list[Array]], Array]] = {
    tile.UnaryOp: lambda op, x: elementwise.unary(op.kind.data, dtype_of(op.operand), *x),
    tile.BinaryOp: lambda op, x: elementwise.binary(op.kind.data, dtype_of(op.lhs), x[0], x[1]),
    tile.CompareOp: lambda op, x: elementwise.compare(op.kind.data, dtype_of(op.lhs), *x),
    tile.FmaOp: lambda op, x: elementwise.fma(dtype_of(op.result), *x),
    tile.CastOp: lambda op, x: numbers.cast(x[0], dtype_of(op.source), dtype_of(op.result)),
    tile.BitcastOp: lambda op, x: x[0].view(dtype_of(op.result).storage),
}


def evaluate(op: Operation) -> tile.ConstantOp | None:
    """The constant an elementwise op over constants gives; None where an operand is not constant, and for a pointer."""
    function = _EVALUATE.get(type(op))
    if function is None or is_pointer(op.results[0]):
        return None
    operands = operands_of(op)
    known = [number_of(operand) for operand in operands]
    if None in known:
        return None
    arrays = [_array(number, dtype_of(operand)) for number, operand in zip(known, operands, strict=True)]
    type_ = op.results[0].type
    with np.errstate(all="ignore"):
        result = np.asarray(function(op, arrays))
    dtype = dtype_of(type_)
    return constant_like(float(numbers.wide(result, dtype)) if dtype.is_float else int(result), type_)


def _array(number: Any, dtype: DType) -> Array:
    """A number that ``dtype`` has, as an array without dimensions."""
    return numbers.rounded(np.array(number, np.float64), dtype) if dtype.is_float else np.array(number, dtype.numpy)
