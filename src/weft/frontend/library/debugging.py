"""Assertions and prints."""

from __future__ import annotations

import string

from weft import dtypes
from weft import language as tl
from weft.frontend import arithmetic
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import flag
from weft.frontend.registry import implementation_of, implements
from weft.frontend.values import Tensor, Value, describe, is_runtime
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
    if b.path is not None:
        holds = arithmetic.binary(b, "|", holds, b.unary("not", b.path))
    if holds.shape:
        fails = b.cast(b.unary("not", holds), dtypes.int32)
        holds = b.unary("not", b.cast(implementation_of(tl.reduce_or)(b, fails, None, False), dtypes.bool_))
    b.emit(tile.AssertOp(holds.ssa, msg))


@implements(tl.device_print)
def _device_print(b: Builder, prefix: Value, args: tuple[Value, ...], hex: Value) -> None:
    """A print for each value: they are printed one after the other."""
    if not isinstance(prefix, str):
        shown = describe(prefix) if is_runtime(prefix) else prefix
        raise CompilationError(f"{shown} is not string", argument="prefix")
    if not set(prefix) <= set(string.printable):
        raise CompilationError(f"{prefix} is not an ascii string", argument="prefix")
    hexadecimal, text = flag(hex, "hex"), _spaced(prefix, bool(args))
    if not args:
        b.emit(tile.PrintOp(text))
    for number, value in enumerate(args):
        numbered = f"{text}(operand {number}) " if len(args) > 1 else text
        b.emit(tile.PrintOp(numbered, _printable(b, b.tensor(value, "args")).ssa, hexadecimal=hexadecimal))


def _spaced(prefix: str, has_values: bool) -> str:
    """The prefix as Triton prints it: before a value it ends with ``": "``; it starts with a space, unless it is short."""
    if has_values:
        prefix = prefix if prefix.endswith(" ") else f"{prefix} "
        prefix = prefix if prefix.endswith(": ") else f"{prefix[:-1]}: "
    return f" {prefix}" if len(prefix) > 2 and not prefix.startswith(" ") else prefix


def _printable(b: Builder, x: Tensor) -> Tensor:
    """As a type that can be printed: floats of 8 bits are printed as their bits, those of 16 bits by their value."""
    if x.is_pointer or not x.dtype.is_float or x.dtype.bits > 16:
        return x
    return b.bitcast(x, dtypes.uint8) if x.dtype.bits == 8 else b.cast(x, dtypes.float32)


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
