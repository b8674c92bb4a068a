"""Sequences of ops for the meanings that follow the formula of one package (`weft.semantics.packages` has them in NumPy).

Each takes operands of one element type and computes in its compute type; `_Steps.step` rounds to the element type on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.builder import Builder
from weft.frontend.meanings.integers import constant
from weft.frontend.values import Tensor
from weft.ir import tile
from weft.semantics.packages import CBRT_OF_SUBNORMAL

Emit = Callable[..., Tensor]


@dataclass(frozen=True)
class _Steps:
    """Arithmetic in the compute type of ``dtype``."""

    b: Builder
    dtype: DType

    def wide(self, x: Tensor) -> Tensor:
        return self.b.cast(x, self.dtype.compute)

    def step(self, x: Tensor) -> Tensor:
        """``x`` rounded to the element type."""
        return self.wide(self.b.cast(x, self.dtype))

    def xla_step(self, x: Tensor) -> Tensor:
        """``x`` rounded to the element type as XLA does: to 8 bits by way of float16."""
        return self.step(self.b.cast(x, dtypes.float16) if self.dtype.bits <= 8 else x)

    def number(self, value: float, x: Tensor) -> Tensor:
        """A number of the compute type."""
        return constant(self.b, value, x)

    def flush(self, x: Tensor) -> Tensor:
        """Numbers below the normal range as zeros of their sign."""
        if self.dtype.bias < self.dtype.compute.bias:
            return x
        least = constant(self.b, 2.0 ** (1 - self.dtype.bias), x)
        small = self.b.compare("lt", self.b.unary("abs", x), least)
        return self.b.select(small, self.b.binary("mul", x, constant(self.b, 0.0, x)), x)

    def moves(self, rest: Tensor, y: Tensor) -> Tensor:
        """Whether a remainder is not zero and of the other sign than the divisor; false for NaN."""
        b, zero = self.b, constant(self.b, 0.0, y)
        opposite = b.binary("xor", b.compare("lt", rest, zero), b.compare("lt", y, zero))
        return b.binary("and", b.compare("ne", rest, zero), opposite)

    def less_one(self, condition: Tensor, x: Tensor) -> Tensor:
        """``x - 1`` where the condition holds."""
        return self.b.select(condition, self.step(self.b.binary("sub", x, constant(self.b, 1.0, x))), x)

    def whole(self, x: Tensor) -> Tensor:
        """The greatest whole number not above, or the next where ``x`` is more than a half beyond it."""
        b, floor = self.b, self.b.unary("floor", x)
        above = b.compare("gt", self.step(b.binary("sub", x, floor)), constant(b, 0.5, x))
        return b.select(above, self.step(b.binary("add", floor, constant(b, 1.0, x))), floor)


def _narrow(emit: Callable[..., Tensor]) -> Emit:
    """A sequence on widened operands, rounded at the end."""

    def narrow(b: Builder, *operands: Tensor) -> Tensor:
        steps = _Steps(b, operands[0].dtype)
        return b.cast(emit(steps, *map(steps.wide, operands)), steps.dtype)

    return narrow


def _signed_as(b: Builder, size: Tensor, sign: Tensor) -> Tensor:
    """A number that is not negative, with the sign of another, zeros included."""
    negative = b.compare("lt", b.binary("div_rn", constant(b, 1.0, sign), sign), constant(b, 0.0, sign))
    negative = b.binary("or", negative, b.compare("lt", sign, constant(b, 0.0, sign)))
    return b.select(negative, b.unary("neg", size), size)


def _floor_divide_stepped(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
    b, zero = s.b, constant(s.b, 0.0, x)
    rest = s.step(b.binary("rem", x, y))
    whole = s.step(b.binary("div_rn", s.step(b.binary("sub", x, rest)), y))
    whole = s.less_one(s.moves(rest, y), whole)
    quotient = s.step(b.binary("div_rn", x, y))
    near = b.select(b.compare("eq", whole, zero), b.binary("mul", quotient, zero), s.whole(whole))
    return b.select(b.compare("eq", y, zero), quotient, near)


def _floor_divide_xla(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
    b, zero = s.b, constant(s.b, 0.0, x)
    rest = s.step(b.binary("rem", x, y))
    dividend = b.select(b.compare("eq", y, zero), x, s.step(b.binary("sub", x, rest)))
    whole = s.less_one(s.moves(rest, y), s.step(b.binary("div_rn", dividend, y)))
    size = b.unary("abs", whole)
    floor = b.unary("floor", size)
    up = b.compare("ge", b.binary("sub", size, floor), constant(b, 0.5, x))
    return _signed_as(b, b.select(up, b.binary("add", floor, constant(b, 1.0, x)), floor), whole)


def _floor_remainder_signed(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
    b, zero = s.b, constant(s.b, 0.0, x)
    rest = b.binary("rem", x, y)
    rest = b.select(s.moves(rest, y), b.binary("add", rest, y), rest)
    return b.select(b.compare("eq", rest, zero), _signed_as(b, b.unary("abs", rest), y), rest)


def _floor_remainder_flushed(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
    b = s.b
    divisor = s.flush(y)
    rest = b.binary("rem", x, divisor)
    small = s.flush(rest)
    return b.select(s.moves(small, divisor), s.flush(b.binary("add", small, divisor)), rest)


def _truncate_remainder_flushed(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
    return s.b.binary("rem", x, s.flush(y))


def _exp2_xla(s: _Steps, x: Tensor) -> Tensor:
    product = s.xla_step(s.b.binary("mul", x, s.xla_step(s.number(math.log(2), x))))
    return s.xla_step(s.b.unary("exp", product))


def _sigmoid_xla(s: _Steps, x: Tensor) -> Tensor:
    b, one = s.b, s.number(1.0, x)
    exponential = s.xla_step(b.unary("exp", b.unary("neg", x)))
    return s.xla_step(b.binary("div_rn", one, s.xla_step(b.binary("add", one, exponential))))


def _added_exponentials(small: Callable[[_Steps, Tensor], Tensor]) -> Callable[[_Steps, Tensor, Tensor], Tensor]:
    """``max(x, y) + small(-|x - y|)``; where the difference is NaN, the sum."""

    def emit(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
        b = s.b
        distance = s.xla_step(b.binary("sub", x, y))
        most = b.select(b.compare("gt", x, y), x, y)
        total = s.xla_step(b.binary("add", most, small(s, b.unary("neg", b.unary("abs", distance)))))
        return b.select(b.compare("ne", distance, distance), s.xla_step(b.binary("add", x, y)), total)

    return emit


def _log1p_of_exp(s: _Steps, x: Tensor) -> Tensor:
    return s.xla_step(s.b.unary("log1p", s.xla_step(s.b.unary("exp", x))))


def _log2_of_one_and_exp2(s: _Steps, x: Tensor) -> Tensor:
    per_ln2 = s.xla_step(s.number(1 / math.log(2), x))
    return s.xla_step(s.b.binary("mul", per_ln2, s.xla_step(s.b.unary("log1p", _exp2_xla(s, x)))))


def _is_small(s: _Steps, x: Tensor) -> Tensor:
    """Whether a number is subnormal, but no zero."""
    b, flushed = s.b, s.flush(x)
    return b.compare("ne", flushed, x) if flushed is not x else b.constant(False, dtypes.bool_, x.shape)


def _floor_divide_quotient(flushed: bool) -> Callable[[_Steps, Tensor, Tensor], Tensor]:
    def emit(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
        if not flushed:
            return s.b.unary("floor", s.step(s.b.binary("div_rn", x, y)))
        return s.b.unary("floor", s.flush(s.step(s.b.binary("div_rn", s.flush(x), s.flush(y)))))

    return emit


def _floor_remainder_fused(flushed: bool) -> Callable[[_Steps, Tensor, Tensor], Tensor]:
    """MAX's ``mod``."""

    def emit(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
        def flush(v: Tensor) -> Tensor:
            return s.flush(v) if flushed else v

        b = s.b
        x, y = flush(x), flush(y)
        zero = s.number(0.0, x)
        quotient = flush(s.step(b.binary("div_rn", x, y)))
        whole = b.select(b.compare("lt", quotient, zero), b.unary("ceil", quotient), b.unary("floor", quotient))
        if s.dtype.bits <= 16:
            rest = s.step(b.binary("sub", x, s.step(b.binary("mul", whole, y))))
        else:
            fused = b.emit(tile.FmaOp(b.unary("neg", whole).ssa, y.ssa, x.ssa))
            rest = Tensor(fused.result, x.dtype, x.shape)
        rest = flush(rest)
        moves = b.binary("xor", b.compare("lt", x, zero), b.compare("lt", y, zero))
        moved = b.select(b.binary("and", b.compare("ne", rest, zero), moves), b.binary("add", rest, y), rest)
        return flush(s.step(moved))

    return emit


def unordered(kind: str) -> Emit:
    """A comparison that is the opposite of another one, so that it holds for NaN."""

    def emit(b: Builder, x: Tensor, y: Tensor) -> Tensor:
        return b.unary("not", b.compare(kind, x, y))

    return emit


def ordered_not_equal(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """``x < y`` or ``x > y``: false for NaN."""
    return b.binary("or", b.compare("lt", x, y), b.compare("gt", x, y))


def _power_flushed(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
    """XLA's ``pow``: the logarithm of a subnormal base is that of half the least number."""
    b, wide = s.b, s.dtype.compute
    small = b.binary("and", _is_small(s, x), b.compare("eq", x, x))
    sign = b.select(b.compare("lt", x, s.number(0.0, x)), s.number(-1.0, x), s.number(1.0, x))
    exponent = wide.bias + wide.mantissa  # half the least number has this one, and no place in the type: two factors
    least = (2.0 ** -(exponent // 2), 2.0 ** -(exponent - exponent // 2))
    first, second = (b.binary("pow", s.number(factor, y), y) for factor in least)
    of_half = b.binary("mul", b.binary("pow", sign, y), b.binary("mul", first, second))
    return s.flush(b.select(small, of_half, b.binary("pow", x, y)))


def _cbrt_flushed(s: _Steps, x: Tensor) -> Tensor:
    b = s.b
    if s.dtype.compute == dtypes.float64:
        return b.unary("cbrt", s.flush(x))
    small = b.binary("and", _is_small(s, x), b.compare("eq", x, x))
    return b.select(small, s.number(CBRT_OF_SUBNORMAL, x), b.unary("cbrt", x))


def _preferred(kind: str) -> Callable[[_Steps, Tensor, Tensor], Tensor]:
    """``x`` where it compares so with ``y``, both flushed, or where ``y`` is NaN; the operand itself is the result."""

    def emit(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
        b = s.b
        chosen = b.binary("or", b.compare("ne", y, y), b.compare(kind, s.flush(x), s.flush(y)))
        return b.select(chosen, x, y)

    return emit


def _lesser(kind: str) -> Callable[[_Steps, Tensor, Tensor], Tensor]:
    """The lesser (or greater) of two flushed numbers; beside NaN the other side as it is."""

    def emit(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
        b, small, other = s.b, s.flush(x), s.flush(y)
        chosen = b.select(b.compare(kind, small, other), small, other)
        return b.select(b.compare("ne", x, x), y, b.select(b.compare("ne", y, y), x, chosen))

    return emit


def _multiply_reciprocal(narrow: DType | None = None, flushed: bool = False) -> Emit:
    """``x * (1 / y)``; the reciprocal is rounded to ``narrow``, or to the element type."""

    def emit(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
        inverse = s.b.binary("div_rn", constant(s.b, 1.0, y), y)
        inverse = s.step(inverse) if narrow is None else s.wide(s.b.cast(inverse, narrow))
        if flushed:
            return s.flush(s.b.binary("mul", s.flush(x), s.flush(inverse)))
        return s.b.binary("mul", x, inverse)

    return _narrow(emit)


def _multiply_reciprocal_left_bool(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
    inverse = s.flush(s.step(s.b.binary("div_rn", constant(s.b, 1.0, y), y)))
    return _mul_left_bool(s.b, x, inverse)


def _mul_left_bool(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    zero = constant(b, 0.0, x)
    return b.select(b.compare("eq", x, zero), zero, y)


def _mul_right_bool(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    return _mul_left_bool(b, y, x)


def _rsqrt_newton(s: _Steps, x: Tensor) -> Tensor:
    b, zero = s.b, constant(s.b, 0.0, x)
    least = constant(b, 2.0 ** (1 - s.dtype.compute.bias), x)
    small = b.compare("lt", b.unary("abs", x), least)
    result = b.select(small, constant(b, float("-inf"), x), b.unary("rsqrt", x))
    nan = b.binary("or", b.compare("eq", x, zero), b.compare("eq", x, constant(b, float("inf"), x)))
    return b.select(nan, constant(b, float("nan"), x), result)


def saturated(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    """``x`` between the least and the largest number of a float type; NaN stays."""
    least, largest = (b.constant(bound, x.dtype, x.shape) for bound in (-dtype.largest, dtype.largest))
    return b.binary("minnan", b.binary("maxnan", x, least), largest)


def _mul_saturated(s: _Steps, x: Tensor, y: Tensor) -> Tensor:
    return saturated(s.b, s.b.binary("mul", x, y), s.dtype)


def _abs_compare(b: Builder, x: Tensor) -> Tensor:
    return b.select(b.compare("lt", x, constant(b, 0.0, x)), b.unary("neg", x), x)


def _sign(otherwise: Callable[[Builder, Tensor], Tensor]) -> Emit:
    """-1 or 1, and what else there is for what is neither below nor above zero."""

    def emit(b: Builder, x: Tensor) -> Tensor:
        zero = constant(b, 0.0, x)
        negative = b.select(b.compare("lt", x, zero), constant(b, -1.0, x), otherwise(b, x))
        return b.select(b.compare("gt", x, zero), constant(b, 1.0, x), negative)

    return emit


def _zero(b: Builder, x: Tensor) -> Tensor:
    return constant(b, 0.0, x)


def _zero_or_nan(b: Builder, x: Tensor) -> Tensor:
    return b.select(b.compare("eq", x, _zero(b, x)), _zero(b, x), x)


FLOATS: Final[Mapping[str, Emit]] = {
    "floor_divide_stepped": _narrow(_floor_divide_stepped),
    "floor_divide_xla": _narrow(_floor_divide_xla),
    "floor_remainder_signed": _narrow(_floor_remainder_signed),
    "floor_remainder_flushed": _narrow(_floor_remainder_flushed),
    **dict.fromkeys(
        ("truncate_remainder_flushed", "truncate_remainder_zero_flushed"), _narrow(_truncate_remainder_flushed)
    ),
    "exp2_xla": _narrow(_exp2_xla),
    "sigmoid_xla": _narrow(_sigmoid_xla),
    "logaddexp_xla": _narrow(_added_exponentials(_log1p_of_exp)),
    "logaddexp2_xla": _narrow(_added_exponentials(_log2_of_one_and_exp2)),
    "power_flushed": _narrow(_power_flushed),
    "cbrt_flushed": _narrow(_cbrt_flushed),
    "floor_divide_quotient": _narrow(_floor_divide_quotient(flushed=False)),
    "floor_divide_quotient_flushed": _narrow(_floor_divide_quotient(flushed=True)),
    "floor_remainder_fused": _narrow(_floor_remainder_fused(flushed=False)),
    "floor_remainder_fused_flushed": _narrow(_floor_remainder_fused(flushed=True)),
    "minimum_flushed": _narrow(_lesser("lt")),
    "maximum_flushed": _narrow(_lesser("gt")),
    "minimum_chosen": _narrow(_preferred("lt")),
    "maximum_chosen": _narrow(_preferred("gt")),
    "multiply_reciprocal": _multiply_reciprocal(),
    "multiply_reciprocal_flushed": _multiply_reciprocal(flushed=True),
    "multiply_reciprocal_left_bool": _narrow(_multiply_reciprocal_left_bool),
    "mul_left_bool": _mul_left_bool,
    "mul_right_bool": _mul_right_bool,
    "multiply_reciprocal_float16": _multiply_reciprocal(dtypes.float16),
    "multiply_reciprocal_bfloat16": _multiply_reciprocal(dtypes.bfloat16),
    "mul_saturated": _narrow(_mul_saturated),
    "abs_compare": _abs_compare,
    "sign_positive": _sign(_zero_or_nan),
    "sign_compare": _sign(_zero),
    "rsqrt_newton": _narrow(_rsqrt_newton),
}
"""The meanings of `weft.semantics.packages`, of floats."""


def flushed(emit: Emit, compares: bool) -> Emit:
    """A meaning of floats, whose subnormal operands and results are zeros of their sign."""

    def around(b: Builder, *operands: Tensor) -> Tensor:
        steps = _Steps(b, operands[0].dtype)

        def flush(x: Tensor) -> Tensor:
            return b.cast(steps.flush(steps.wide(x)), steps.dtype)

        result = emit(b, *map(flush, operands))
        return result if compares else flush(result)

    return around


def flush(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    """A tile of ``dtype``'s compute type with numbers below the normal range of ``dtype`` as zeros."""
    return _Steps(b, dtype).flush(x)


def integer_side(kind: str, left: bool) -> Emit:
    """DALI's comparison of a float with a signed integer, already converted: a negative one is less than every float."""
    always = kind in (("lt", "le", "ne") if left else ("gt", "ge", "ne"))

    def emit(b: Builder, x: Tensor, y: Tensor) -> Tensor:
        whole = x if left else y
        negative = b.compare("lt", whole, constant(b, 0.0, whole))
        return b.select(negative, b.constant(always, dtypes.bool_, whole.shape), b.compare(kind, x, y))

    return emit
