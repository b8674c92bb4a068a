"""Arithmetic on floats of one shape, in which the mathematical functions are written, and the two formats' tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from weft.codegen.llvm import coefficients as c
from weft.codegen.llvm.types import F64, I32, I64, has, intrinsic, like, scalar_type, splat

Operand = ir.Value | float
Coefficients = tuple[float, ...]


@dataclass(frozen=True)
class Format:
    """float32 or float64: its fields, its tables, and the ranges in which each function is not constant.

    ``exp``, ``exp2``: below the first the result rounds to 0, above the second to infinity. ``tanh``, ``erf``: above, to 1.
    ``turns``: the largest ``|x|`` whose reduction by multiples of pi/2 leaves a remainder with few wrong bits.
    ``cbrt_scales``: by the remainder of the exponent by 3, what the reciprocal cube root is multiplied with.
    """

    integer: ir.IntType
    mantissa: int
    bias: int
    exp: tuple[float, float]
    exp2: tuple[float, float]
    tanh: float
    erf: float
    turns: float
    ln2: Coefficients
    log2e: Coefficients
    half_pi: Coefficients
    two_over_pi: float
    expm1_terms: Coefficients
    exp2_terms: Coefficients
    log_terms: Coefficients
    sin_terms: Coefficients
    cos_terms: Coefficients
    tanh_terms: Coefficients
    erf_terms: Coefficients
    third: Coefficients
    log10_2: Coefficients
    log_tail: Coefficients
    atan_terms: Coefficients
    cbrt_terms: Coefficients
    cbrt_scales: Coefficients

    @property
    def magic(self) -> float:
        """Adding it rounds to an integer, which then is the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa


SINGLE: Final = Format(
    I32, 23, 127, (-104.0, 89.0), (-151.0, 129.0), 10.0, 4.0, 2.0**17,
    c.LN2_F32, c.LOG2E_F32, c.HALF_PI_F32, c.TWO_OVER_PI_F32[0],
    c.EXPM1_F32, c.EXP2_F32, c.LOG_F32, c.SIN_F32, c.COS_F32, c.TANH_F32, c.ERF_SMALL_F32,
    c.THIRD_F32, c.LOG10_2_F32, c.LOG_TAIL_F32, c.ATAN_F32,
    c.CBRT_F32, (1.0, *c.CBRT_HALF_F32, *c.CBRT_QUARTER_F32),
)  # fmt: skip
DOUBLE: Final = Format(
    I64, 52, 1023, (-746.0, 710.0), (-1076.0, 1025.0), 20.0, 6.0, 2.0**24,
    c.LN2_F64, c.LOG2E_F64, c.HALF_PI_F64, c.TWO_OVER_PI_F64[0],
    c.EXPM1_F64, c.EXP2_F64, c.LOG_F64, c.SIN_F64, c.COS_F64, c.TANH_F64, c.ERF_SMALL_F64,
    c.THIRD_F64, c.LOG10_2_F64, c.LOG_TAIL_F64, c.ATAN_F64,
    c.CBRT_F64, (1.0, *c.CBRT_HALF_F64, *c.CBRT_QUARTER_F64),
)  # fmt: skip


class Lanes:
    """Arithmetic on values of one shape and format, in which Python floats stand for constants."""

    def __init__(self, builder: ir.IRBuilder, x: ir.Value):
        self.builder = builder
        self.type = x.type
        self.format = DOUBLE if scalar_type(x) == F64 else SINGLE
        self.bits_type = like(x, self.format.integer)

    def value(self, x: Operand) -> ir.Value:
        """``x``, a constant in every lane if it is a number."""
        return x if isinstance(x, ir.Value) else splat(x, self.type)

    def integer(self, x: int) -> ir.Constant:
        """An integer of the format's width in every lane."""
        return splat(x, self.bits_type)

    def bits(self, x: Operand) -> ir.Value:
        """The bits of ``x`` as integers."""
        return self.builder.bitcast(self.value(x), self.bits_type)

    def float(self, bits: ir.Value) -> ir.Value:
        """The numbers with the given bits."""
        return self.builder.bitcast(bits, self.type)

    def add(self, x: Operand, y: Operand) -> ir.Value:
        """``x + y``"""
        return self.builder.fadd(self.value(x), self.value(y))

    def sub(self, x: Operand, y: Operand) -> ir.Value:
        """``x - y``"""
        return self.builder.fsub(self.value(x), self.value(y))

    def mul(self, x: Operand, y: Operand) -> ir.Value:
        """``x * y``"""
        return self.builder.fmul(self.value(x), self.value(y))

    def div(self, x: Operand, y: Operand) -> ir.Value:
        """``x / y``"""
        return self.builder.fdiv(self.value(x), self.value(y))

    def fma(self, x: Operand, y: Operand, z: Operand) -> ir.Value:
        """``x * y + z``, rounded once."""
        return intrinsic(self.builder, "fma", [self.value(x), self.value(y), self.value(z)])

    def polynomial(self, t: ir.Value, terms: Coefficients) -> ir.Value:
        """``terms[0] + terms[1] t + ...`` by Horner's rule."""
        result: Operand = terms[-1]
        for term in reversed(terms[:-1]):
            result = self.fma(result, t, term)
        return self.value(result)

    def less(self, x: Operand, y: Operand) -> ir.Value:
        """``x < y``, false for NaN."""
        return self.builder.fcmp_ordered("<", self.value(x), self.value(y))

    def equal(self, x: Operand, y: Operand) -> ir.Value:
        """``x == y``, false for NaN."""
        return self.builder.fcmp_ordered("==", self.value(x), self.value(y))

    def select(self, condition: ir.Value, x: Operand, y: Operand) -> ir.Value:
        """``condition ? x : y``"""
        return self.builder.select(condition, self.value(x), self.value(y))

    def at_most(self, x: ir.Value, limit: float) -> ir.Value:
        """``min(x, limit)``; NaN stays."""
        return self.select(self.less(limit, x), limit, x)

    def at_least(self, x: ir.Value, limit: float) -> ir.Value:
        """``max(x, limit)``; NaN stays."""
        return self.select(self.less(x, limit), limit, x)

    def absolute(self, x: ir.Value) -> ir.Value:
        """``|x|``"""
        return intrinsic(self.builder, "fabs", [x])

    def with_sign(self, x: ir.Value, sign: ir.Value) -> ir.Value:
        """``|x|`` with the sign of ``sign``."""
        return intrinsic(self.builder, "copysign", [x, sign])

    def power_of_two(self, exponent: ir.Value) -> ir.Value:
        """``2**exponent`` for an integer that the format's normal numbers span."""
        biased = self.builder.add(exponent, self.integer(self.format.bias))
        return self.float(self.builder.shl(biased, self.integer(self.format.mantissa)))

    def scaled(self, x: ir.Value, exponent: ir.Value) -> ir.Value:
        """``x * 2**exponent`` rounded once, for ``x`` near 1; the result may be subnormal or infinite.

        Without an instruction for it, in two steps of half the exponent, of which the first is exact.
        """
        if has(self.builder, "scalef"):
            narrow = self.builder.trunc(exponent, like(x, I32))
            return intrinsic(self.builder, "ldexp", [x, narrow], x.type, [x.type, narrow.type])
        half = self.builder.ashr(exponent, self.integer(1))
        rest = self.builder.sub(exponent, half)
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(rest))

    def nearest(self, x: ir.Value, factor: float) -> tuple[ir.Value, ir.Value]:
        """The integer nearest to ``x * factor``, as an integer and as a float; a NaN stays one in the latter."""
        magic = self.format.magic
        sum_ = self.fma(x, factor, magic)
        return self.builder.sub(self.bits(sum_), self.bits(magic)), self.sub(sum_, magic)

    def unordered(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """Whether ``x`` or ``y`` is NaN."""
        return self.builder.fcmp_unordered("uno", x, y)

    def is_negative(self, x: ir.Value) -> ir.Value:
        """Whether the sign bit is set."""
        return self.builder.icmp_signed("<", self.bits(x), self.integer(0))

    def is_integer(self, x: ir.Value) -> ir.Value:
        """Whether ``x`` is an integer; infinities are, NaN is not."""
        return self.equal(intrinsic(self.builder, "floor", [x]), x)

    def split(self, x: ir.Value, least: float) -> tuple[ir.Value, ir.Value]:
        """``m`` in ``[least, 2 least)`` and the integer ``k`` with ``x == m 2^k``, for ``x`` positive and finite.

        Other ``x`` give a number in that range and an integer of no meaning.
        """
        form, builder = self.format, self.builder
        subnormal = self.less(x, 2.0 ** (1 - form.bias))
        raised = form.mantissa + 1
        offset = builder.sub(self.bits(self.select(subnormal, self.mul(x, 2.0**raised), x)), self.bits(least))
        fraction = builder.and_(offset, self.integer((1 << form.mantissa) - 1))
        exponent = builder.ashr(offset, self.integer(form.mantissa))
        lowered = builder.sub(exponent, builder.select(subnormal, self.integer(raised), self.integer(0)))
        return self.float(builder.add(fraction, self.bits(least))), lowered

    def log_of_special(self, x: ir.Value, result: ir.Value) -> ir.Value:
        """``result`` where ``x`` is positive and finite; else what a logarithm's limits are, or NaN."""
        infinity = float("inf")
        finite = self.select(self.less(x, infinity), result, x)
        nonnegative = self.select(self.less(x, 0.0), float("nan"), finite)
        return self.select(self.equal(x, 0.0), -infinity, nonnegative)

    # Sums and products in two words: the rounded result and the rest, which the format holds exactly.

    def fast_two_sum(self, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
        """``x + y`` for ``x`` 0 or of an exponent no less than that of ``y``."""
        sum_ = self.add(x, y)
        return sum_, self.sub(y, self.sub(sum_, x))

    def two_sum(self, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
        """``x + y``"""
        sum_ = self.add(x, y)
        from_y = self.sub(sum_, x)
        return sum_, self.add(self.sub(x, self.sub(sum_, from_y)), self.sub(y, from_y))

    def two_product(self, x: Operand, y: Operand) -> tuple[ir.Value, ir.Value]:
        """``x * y``, unless the rest is below the format's range."""
        product = self.mul(x, y)
        return product, self.fma(x, y, self.builder.fneg(product))
