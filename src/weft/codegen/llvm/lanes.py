"""Arithmetic on floats of one shape, in which the mathematical functions are written, and the two formats' tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from llvmlite import ir

from weft.codegen.llvm import coefficients as c
from weft.codegen.llvm.rounding import rounded
from weft.codegen.llvm.types import F64, I32, I64, has, intrinsic, like, scalar_type, splat

Operand = ir.Value | float
Coefficients = tuple[float, ...]


@dataclass(frozen=True)
class Format:
    """float32 or float64: its fields, its tables, and the ranges in which each function is not constant.

    ``exp``, ``exp2``: at the first the result rounds to 0 (see `Lanes.within`), above the second to infinity. ``tanh``, ``erf``:
    above, to 1.
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
    I32, 23, 127, (-150.0, 89.0), (-200.0, 129.0), 10.0, 4.0, 2.0**17,
    c.LN2_F32, c.LOG2E_F32, c.HALF_PI_F32, c.TWO_OVER_PI_F32[0],
    c.EXPM1_F32, c.EXP2_F32, c.LOG_F32, c.SIN_F32, c.COS_F32, c.TANH_F32, c.ERF_SMALL_F32,
    c.THIRD_F32, c.LOG10_2_F32, c.LOG_TAIL_F32, c.ATAN_F32,
    c.CBRT_F32, (1.0, *c.CBRT_HALF_F32, *c.CBRT_QUARTER_F32),
)  # fmt: skip
DOUBLE: Final = Format(
    I64, 52, 1023, (-800.0, 710.0), (-1200.0, 1025.0), 20.0, 6.0, 2.0**24,
    c.LN2_F64, c.LOG2E_F64, c.HALF_PI_F64, c.TWO_OVER_PI_F64[0],
    c.EXPM1_F64, c.EXP2_F64, c.LOG_F64, c.SIN_F64, c.COS_F64, c.TANH_F64, c.ERF_SMALL_F64,
    c.THIRD_F64, c.LOG10_2_F64, c.LOG_TAIL_F64, c.ATAN_F64,
    c.CBRT_F64, (1.0, *c.CBRT_HALF_F64, *c.CBRT_QUARTER_F64),
)  # fmt: skip


WIDENED: Final = replace(
    DOUBLE, exp=SINGLE.exp, exp2=SINGLE.exp2, tanh=SINGLE.tanh, erf=SINGLE.erf, turns=SINGLE.turns,
    expm1_terms=c.EXPM1_F32, exp2_terms=c.EXP2_F32, log_terms=c.LOG_F32, sin_terms=c.SIN_F32, cos_terms=c.COS_F32,
    half_pi=c.HALF_PI_F32, tanh_terms=c.TANH_F32, erf_terms=c.ERF_SMALL_F32, log_tail=c.LOG_TAIL_F32,
    atan_terms=c.ATAN_F32, cbrt_terms=c.CBRT_F32,
)  # fmt: skip
"""float32 held in float64, where there is no fused multiply-add: the polynomials and ranges of float32. A product's error of
2^-53 does not show in a result of 24 bits, so products are rounded; those with the parts of pi/2, of 24 bits each, are exact."""


_SHORT_LN2: Final = (float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45"))
"""ln2 in two parts, the first of 42 bits: its products with exponents are exact in float64."""


class Lanes:
    """Arithmetic on values of one shape and format, in which Python floats stand for constants."""

    def __init__(self, builder: ir.IRBuilder, x: ir.Value, format: Format | None = None):
        self.builder = builder
        self.type = x.type
        self.format = format or (DOUBLE if scalar_type(x) == F64 else SINGLE)
        self._fused = has(builder, "fma")
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
        """``x * y + z`` of the exact product. It is rounded once, or without an instruction for it so that the error is below
        0.51 units in the last place, and 0 if the format has the result."""
        if self._fused or self.format is WIDENED:
            return self.multiply_add(x, y, z)
        product, rest = self.two_product(x, y)
        sum_, more = self.two_sum(product, self.value(z))
        return self.add(sum_, self.add(more, rest))

    @property
    def ln2(self) -> Coefficients:
        """ln2 in two parts: `multiply_add` of an exponent and the first does not round the product."""
        return self.format.ln2 if self._fused else _SHORT_LN2

    def one_plus(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """``1 + x * y`` as `fma`, for products below 1."""
        if self._fused or self.format is WIDENED:
            return self.multiply_add(x, y, 1.0)
        product, rest = self.two_product(x, y)
        sum_, more = self.fast_two_sum(self.value(1.0), product)
        return self.add(sum_, self.add(more, rest))

    def multiply_add(self, x: Operand, y: Operand, z: Operand) -> ir.Value:
        """``x * y + z``, where it does not matter whether the product is rounded."""
        if self._fused:
            return intrinsic(self.builder, "fma", [self.value(x), self.value(y), self.value(z)])
        return self.add(self.mul(x, y), z)

    def polynomial(self, t: ir.Value, terms: Coefficients) -> ir.Value:
        """``terms[0] + terms[1] t + ...`` by Horner's rule."""
        result: Operand = terms[-1]
        for term in reversed(terms[:-1]):
            result = self.multiply_add(result, t, term)
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

    def within(self, x: ir.Value, limits: tuple[float, float]) -> ir.Value:
        """``x``, or the nearer one of ``exp``'s or ``exp2``'s limits; NaN stays.

        The lower limit's power is far below all numbers. Near the least ones Intel's processors take some 150 cycles for a vector
        with a result that is rounded, and softmax has powers of ``-inf`` where it is masked. Measured on a CPU with AMX: products
        from 2^-127 to 2^-159 and from 2^-1023 to 2^-1087 are slow, vscalef from 2^-127 to 2^-511 and from 2^-1023 to 2^-4095.
        """
        low, high = limits
        return self.at_most(self.at_least(x, 4 * low if has(self.builder, "scalef") else low), high)

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

        Without an instruction for it, in two steps of half the exponent, of which the first is exact; `WIDENED` has room for one.
        """
        if has(self.builder, "scalef"):
            narrow = self.builder.trunc(exponent, like(x, I32))
            return intrinsic(self.builder, "ldexp", [x, narrow], x.type, [x.type, narrow.type])
        if self.format is WIDENED:
            return self.mul(x, self.power_of_two(exponent))
        half = self.builder.ashr(exponent, self.integer(1))
        rest = self.builder.sub(exponent, half)
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(rest))

    def nearest(self, x: ir.Value, factor: float) -> tuple[ir.Value, ir.Value]:
        """The integer nearest to ``x * factor``, as an integer and as a float; a NaN stays one in the latter."""
        magic = self.format.magic
        sum_ = self.multiply_add(x, factor, magic)
        return self.builder.sub(self.bits(sum_), self.bits(magic)), self.sub(sum_, magic)

    def small(self, x: ir.Value) -> ir.Value:
        """An integer of less than half of the format's bits as a float. Few machines convert vectors of 64-bit integers."""
        if self.format.integer is not I64 or has(self.builder, "scalef"):
            return self.builder.sitofp(x, self.type)
        magic = self.format.magic
        return self.sub(self.float(self.builder.add(x, self.bits(magic))), magic)

    def unordered(self, x: ir.Value, y: ir.Value) -> ir.Value:
        """Whether ``x`` or ``y`` is NaN."""
        return self.builder.fcmp_unordered("uno", x, y)

    def is_negative(self, x: ir.Value) -> ir.Value:
        """Whether the sign bit is set."""
        return self.builder.icmp_signed("<", self.bits(x), self.integer(0))

    def is_integer(self, x: ir.Value) -> ir.Value:
        """Whether ``x`` is an integer; infinities are, NaN is not."""
        return self.equal(rounded(self.builder, "floor", x), x)

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
        if self.format is WIDENED:
            return product, self.value(0.0)
        if self._fused:
            return product, self.multiply_add(x, y, self.builder.fneg(product))
        (a, b), (c, d) = self._split_mantissa(self.value(x)), self._split_mantissa(self.value(y))
        rest = self.sub(self.mul(a, c), product)
        for one, other in ((a, d), (b, c), (b, d)):
            rest = self.add(rest, self.mul(one, other))
        return product, rest

    def _split_mantissa(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """``x`` as a sum of two numbers of half of its bits, whose products the format has (T. Dekker, 1971)."""
        low = self.format.mantissa + 2 >> 1
        raised = self.builder.add(self.bits(x), self.integer(1 << low - 1))
        high = self.float(self.builder.and_(raised, self.integer(-1 << low)))
        return high, self.sub(x, high)
