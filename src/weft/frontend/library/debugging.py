"""Assertions."""

from __future__ import annotations

from weft import dtypes
from weft import language as tl
from weft.frontend import arithmetic
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.registry import implementation_of, implements
from weft.frontend.values import Tensor, Value, describe
from weft.ir import tile


@implements(tl.device_assert)
def device_assert(b: Builder, cond: Value, msg: Value, mask: Value) -> None:
    """One assertion for a whole tile: that no element fails."""
    if not isinstance(msg, str):
        raise CompilationError(f"'msg' is a string, found {describe(msg)}", argument="msg")
    holds = _bool(b, cond, "cond")
    if mask is not None:
        holds = arithmetic.binary(b, "|", holds, b.unary("not", _bool(b, mask, "mask")))
    if not b.asserts:
        return
    if holds.shape:
        fails = b.cast(b.unary("not", holds), dtypes.int32)
        holds = b.unary("not", b.cast(implementation_of(tl.reduce_or)(b, fails, None, False), dtypes.bool_))
    b.emit(tile.AssertOp(holds.ssa, msg))


def _bool(b: Builder, value: Value, argument: str) -> Tensor:
    x = b.tensor(value, argument)
    if x.is_pointer:
        raise CompilationError(f"'{argument}' is a bool or a tile of bools, found {describe(value)}", argument=argument)
    return b.cast(x, dtypes.bool_)


@implements(tl.expect_zero)
def _expect_zero(b: Builder, x: Value, mask: Value) -> Value:
    if b.asserts:
        is_zero = arithmetic.binary(b, "==", x, 0)
        device_assert(b, is_zero, "expect_zero expected x == 0 where mask is true", mask)
    return b.tensor(x, "x")
