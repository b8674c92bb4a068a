"""Ops on the elements of tiles: tables for the uniform ones, a function for each of the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend import arithmetic
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import boolean, floats, quotient, tile_of
from weft.frontend.promotion import compute, convert, emit, is_triton, operand, operands_of, resolve
from weft.frontend.registry import Stub, implements
from weft.frontend.values import Tensor, Value, describe
from weft.ir import tile
from weft.language import elementwise as stubs

CALCULUS: Final[dict[Stub, str]] = {
    tl.exp: "exp",
    tl.exp2: "exp2",
    tl.log: "log",
    tl.log2: "log2",
    tl.sqrt: "sqrt",
    tl.sqrt_rn: "sqrt_rn",
    tl.rsqrt: "rsqrt",
    tl.sin: "sin",
    tl.cos: "cos",
    stubs.tanh: "tanh",
    tl.erf: "erf",
    tl.floor: "floor",
    tl.ceil: "ceil",
}
"""Functions of one float and the kind of `tile.unary` each is."""


_PACKAGE_FLOATS: Final = (dtypes.float32, dtypes.float64)
"""What functions take in Triton 3.9; its documentation names no such limit."""


def _calculus(kind: str) -> Callable[[Builder, Value], Tensor]:
    def implementation(b: Builder, x: Value) -> Tensor:
        if b.follows_triton and (dtype := tile_of(b, x, "x").dtype) not in _PACKAGE_FLOATS:
            raise CompilationError(
                f"tl.{kind} takes float32 and float64, found {dtype}", hint="convert with .to(tl.float32)", argument="x"
            )
        return b.unary(kind, floats(b, x, "x")) if is_triton(b.semantics) else compute(b, kind, tile_of(b, x, "x"))

    return implementation


for _stub, _kind in CALCULUS.items():
    implements(_stub)(_calculus(_kind))


@implements(tl.abs)
def _abs(b: Builder, x: Value) -> Tensor:
    operand = tile_of(b, x, "x")
    if not is_triton(b.semantics):
        return compute(b, "abs", operand)
    return b.unary("abs", operand) if operand.dtype.signed else operand


@implements(tl.sigmoid)
def _sigmoid(b: Builder, x: Value) -> Tensor:
    if not is_triton(b.semantics):
        return compute(b, "sigmoid", tile_of(b, x, "x"))
    operand = floats(b, x, "x")
    wide = b.cast(operand, operand.dtype.compute)
    one = b.constant(1.0, wide.dtype, wide.shape)
    denominator = b.binary("add", one, b.unary("exp", b.unary("neg", wide)))
    return b.cast(b.binary("div", one, denominator), operand.dtype)


@implements(tl.add)
def _add(b: Builder, x: Value, y: Value, sanitize_overflow: Value) -> Value:
    return _arithmetic(b, "+", x, y, sanitize_overflow)


@implements(tl.sub)
def _sub(b: Builder, x: Value, y: Value, sanitize_overflow: Value) -> Value:
    return _arithmetic(b, "-", x, y, sanitize_overflow)


@implements(tl.mul)
def _mul(b: Builder, x: Value, y: Value, sanitize_overflow: Value) -> Value:
    return _arithmetic(b, "*", x, y, sanitize_overflow)


def _arithmetic(b: Builder, op: str, x: Value, y: Value, sanitize_overflow: Value) -> Value:
    """An operator, whose overflow is asserted if that is asked for."""
    outer, b.overflow = b.overflow, boolean(sanitize_overflow, "sanitize_overflow") and b.overflow
    try:
        return arithmetic.binary(b, op, x, y)
    finally:
        b.overflow = outer


@implements(tl.cdiv)
def _cdiv(b: Builder, x: Value, div: Value) -> Value:
    above = arithmetic.binary(b, "+", x, arithmetic.binary(b, "-", div, 1))
    return arithmetic.binary(b, "//", above, div)


def _divide(b: Builder, x: Value, y: Value, kind: str) -> Tensor:
    left, right = operands_of(b, resolve(b, "/", x, y), x, y)
    for value, argument in ((x, "x"), (y, "y")):
        if isinstance(value, Tensor) and not value.dtype.is_float:
            raise CompilationError(
                f"'{argument}' is a tile of floats, found {describe(value)}",
                hint="use x / y, which converts integers",
                argument=argument,
            )
    return b.binary(kind, left, right)


@implements(tl.fdiv)
def _fdiv(b: Builder, x: Value, y: Value, ieee_rounding: Value, approx: Value) -> Tensor:
    return _divide(b, x, y, quotient(ieee_rounding))


@implements(tl.div_rn)
def _div_rn(b: Builder, x: Value, y: Value) -> Tensor:
    return _divide(b, x, y, "div_rn")


@implements(tl.umulhi)
def _umulhi(b: Builder, x: Value, y: Value) -> Tensor:
    left, right = operands_of(b, resolve(b, "*", x, y), x, y)
    if not (left.dtype.is_integer and left.dtype.bits in (32, 64)):
        raise CompilationError(
            f"tl.umulhi takes integers of 32 or 64 bits, found {left.dtype}",
            hint="multiply narrower integers after .to(tl.uint32), and shift" if left.dtype.is_integer else None,
        )
    return b.binary("umulhi", left, right)


@implements(tl.fma)
def _fma(b: Builder, x: Value, y: Value, z: Value) -> Tensor:
    dtype = _common(b, x, y, z)
    if not dtype.is_float:
        raise CompilationError(f"tl.fma takes floats, found {dtype}", hint="write x * y + z for integers")
    operands = b.broadcast(*(convert(b, value, dtype) for value in (x, y, z)))
    op = b.emit(tile.FmaOp(*(operand.ssa for operand in operands)))
    return Tensor(op.result, dtype, operands[0].shape)


def _common(b: Builder, *values: Value) -> DType:
    """The dtype that all values are promoted to, from the left."""
    common = operand(b, values[0], "+")
    for value in values[1:]:
        common = b.semantics.binary("+", common, operand(b, value, "+")).type
    return b.semantics.common(common).result


def extremum(b: Builder, op: str, x: Value, y: Value, propagate_nan: Value) -> Tensor:
    """``minimum`` or ``maximum`` in the promoted dtype."""
    if not isinstance(propagate_nan, tl.PropagateNan):
        raise CompilationError(
            f"'propagate_nan' is tl.PropagateNan.ALL or .NONE, found {describe(propagate_nan)}",
            argument="propagate_nan",
        )
    promotion = resolve(b, op, x, y)
    if propagate_nan is tl.PropagateNan.ALL:
        promotion = replace(promotion, meaning=f"{op}_nan")
    return emit(b, promotion, *operands_of(b, promotion, x, y))


@implements(tl.minimum)
def _minimum(b: Builder, x: Value, y: Value, propagate_nan: Value) -> Tensor:
    return extremum(b, "minimum", x, y, propagate_nan)


@implements(tl.maximum)
def _maximum(b: Builder, x: Value, y: Value, propagate_nan: Value) -> Tensor:
    return extremum(b, "maximum", x, y, propagate_nan)


@implements(tl.clamp)
def _clamp(b: Builder, x: Value, min: Value, max: Value, propagate_nan: Value) -> Tensor:
    if not is_triton(b.semantics) and propagate_nan is tl.PropagateNan.NONE:
        return compute(b, "clamp", x, min, max)
    operand = floats(b, x, "x")
    return extremum(b, "minimum", extremum(b, "maximum", operand, min, propagate_nan), max, propagate_nan)


@implements(tl.where)
def _where(b: Builder, condition: Value, x: Value, y: Value) -> Tensor:
    given = tile_of(b, condition, "condition")
    if b.follows_triton and not given.dtype.is_bool and isinstance(condition, Tensor):
        warnings.warn(
            "tl.where with a non-boolean condition is deprecated and will error out in a future triton release. "
            f"Got {given.dtype.triton}",
            stacklevel=2,
        )
    test = b.cast(given, dtypes.bool_)
    if any(isinstance(v, Tensor) and v.is_pointer for v in (x, y)):
        return b.select(*b.broadcast(test, *_pointers(x, y)))
    promotion = resolve(b, "where", x, y)
    return emit(b, promotion, *b.broadcast(test, *operands_of(b, promotion, x, y)))


def _pointers(x: Value, y: Value) -> tuple[Tensor, Tensor]:
    if not (isinstance(x, Tensor) and isinstance(y, Tensor) and x.element == y.element):
        raise CompilationError(f"tl.where chooses between pointers of one dtype, found {describe(x)} and {describe(y)}")
    return x, y
