"""What Python's operators mean on the values of a kernel.

Two compile-time values: Python's own operator. A pointer: address arithmetic in elements. Anything else: the semantics
object says what both sides are converted to and what is done there (`weft.frontend.promotion`); this module knows no
promotion rule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from weft import dtypes
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.overflow import check_overflow
from weft.frontend.promotion import compute, is_triton
from weft.frontend.values import Tensor, Value, describe, is_number, is_runtime, is_tuple
from weft.ir import tile
from weft.semantics import triton

COMPARISON: Final[dict[str, str]] = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
"""Comparisons and the kind of `tile.compare` each is, of pointers."""

_BY_NAME: Final = {
    **{"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"},
    **{"&": "and_", "|": "or_", "^": "xor", "<<": "lshift", ">>": "rshift"},
    **{"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"},
}

PYTHON: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **{op: getattr(operator, name) for op, name in _BY_NAME.items()},
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
"""Operators on compile-time values."""

_UNARY_PYTHON: Final[dict[str, Callable[[Any], Any]]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "not": operator.not_,
}
_NOT_ARITHMETIC: Final = frozenset({"in", "not in"})

_SIGNS: Final = {"+": "pos", "-": "neg"}


def fold(op: str, function: Callable[..., Any], *values: Value) -> Value:
    """A Python operator on compile-time values; its exception becomes the kernel's."""
    try:
        return function(*values)
    except (TypeError, ValueError, ArithmeticError) as error:
        shown = " and ".join(map(describe, values))
        raise CompilationError(f"'{op}' of the compile-time values {shown}: {error}") from None


def binary(b: Builder, op: str, lhs: Value, rhs: Value) -> Value:
    """``lhs op rhs`` for any operator of `PYTHON`, and ``minimum``, ``maximum``."""
    if not (is_runtime(lhs) or is_runtime(rhs)) and op in PYTHON:
        return fold(op, PYTHON[op], lhs, rhs)
    if is_tuple(lhs) and is_tuple(rhs) and op == "+":
        return lhs + rhs
    if op == "*" and is_tuple(lhs) and isinstance(rhs, int):
        return lhs * rhs
    if op in _NOT_ARITHMETIC:
        raise CompilationError(
            f"'{op}' does not take values of the run time, found {describe(lhs)} and {describe(rhs)}"
        )
    if (isinstance(lhs, Tensor) and lhs.is_pointer) or (isinstance(rhs, Tensor) and rhs.is_pointer):
        return _pointer(b, op, lhs, rhs)
    if op == "**" and is_triton(b.semantics):
        raise CompilationError(
            f"'{op}' does not take values of the run time, found {describe(lhs)} and {describe(rhs)}",
            hint="write x * x, or tl.exp2(tl.log2(x) * y)",
        )
    check_overflow(b, op, lhs, rhs)
    return compute(b, op, lhs, rhs)


def unary(b: Builder, op: str, operand: Value) -> Value:
    """``op operand`` for ``- + ~ not``."""
    if not is_runtime(operand):
        return fold(op, _UNARY_PYTHON[op], operand)
    if not isinstance(operand, Tensor) or operand.is_pointer:
        raise CompilationError(f"unary '{op}' takes tiles of numbers, found {describe(operand)}")
    if op == "-":
        check_overflow(b, op, 0, operand)
    return compute(b, _SIGNS.get(op, op), operand)


def _pointer(b: Builder, op: str, lhs: Value, rhs: Value) -> Tensor:
    """Operators with a pointer on at least one side."""
    pointers = [isinstance(v, Tensor) and v.is_pointer for v in (lhs, rhs)]
    if op in COMPARISON and all(pointers):
        if lhs.dtype != rhs.dtype:
            raise CompilationError(f"'{op}' of pointers to different dtypes, {lhs.element} and {rhs.element}")
        left, right = b.broadcast(lhs, rhs)
        return b.compare(COMPARISON[op], left, right)
    if op not in ("+", "-") or all(pointers) or (op == "-" and pointers[1]):
        raise CompilationError(
            f"'{op}' of {describe(lhs)} and {describe(rhs)}: a pointer takes + or - an integer, which counts elements",
            hint="subtract addresses as integers: .to(tl.int64, bitcast=True)" if all(pointers) and op == "-" else None,
        )
    pointer, offset = (lhs, rhs) if pointers[0] else (rhs, lhs)
    if is_number(offset) and isinstance(offset, int):
        offset = -offset if op == "-" else offset
        return add_pointer(b, pointer, b.constant(offset, triton.literal(int(offset)).dtype, pointer.shape))
    steps = b.tensor(offset)
    if steps.dtype.is_bool:
        steps = b.cast(steps, dtypes.int32)
    if not steps.dtype.is_integer:
        raise CompilationError(
            f"a pointer is moved by whole elements, found an offset of dtype {steps.dtype}",
            hint="convert the offset with .to(tl.int32) or .to(tl.int64)",
        )
    if op == "-":
        # Going back by an unsigned offset needs the sign that its own type lacks.
        signed = steps if steps.dtype.signed else b.cast(steps, dtypes.int64)
        steps = b.unary("neg", signed)
    return add_pointer(b, pointer, steps)


def add_pointer(b: Builder, pointer: Tensor, offset: Tensor) -> Tensor:
    """``pointer + offset`` in their common shape."""
    pointer, offset = b.broadcast(pointer, offset)
    op = b.emit(tile.AddPtrOp(pointer.ssa, offset.ssa))
    return Tensor(op.result, pointer.dtype, pointer.shape, is_pointer=True)
