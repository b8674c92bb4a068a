"""exp, exp2, log, log2, sin, cos, tanh and erf of float32 and float64, on scalars and vectors, inlined.

No vector library (libmvec, SVML, Accelerate, or libm on each lane) is called: results would depend on the machine's library,
a call spills every vector register, and masks of the ABI differ. Each function is a polynomial
(`weft.codegen.llvm.coefficients`) between a range reduction and a scaling, in straight-line code that LLVM schedules among
the kernel's own, with the same results wherever there is fused multiply-add. Subnormals, infinities, NaN and signed zeros
are honoured. The errors, in units in the last place of the exact value, are below (`tests/codegen/test_vecmath.py`):

| | exp | exp2 | log | log2 | sin | cos | tanh | erf |
|---|---|---|---|---|---|---|---|---|
| float32 | 0.9 | 0.9 | 0.9 | 1.0 | 1.5 | 1.5 | 1.5 | 1.1 |
| float64 | 0.9 | 0.9 | 0.9 | 1.6 | 1.4 | 1.4 | 1.5 | 1.1 |

Some cases go through libm, one lane after the other: sin and cos where some ``|x|`` is beyond what three multiples of
pi/2 reduce; cbrt, log10, log1p and tan, which are rare; and everything on a target without fused multiply-add, on which the
reductions would not be exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from weft.codegen.llvm import coefficients as c
from weft.codegen.llvm.types import (
    F64,
    I32,
    I64,
    any_lane,
    declare,
    has,
    inlined,
    intrinsic,
    like,
    outlined,
    per_lane,
    scalar_type,
    splat,
)

Operand = ir.Value | float
Coefficients = tuple[float, ...]


@dataclass(frozen=True)
class Format:
    """float32 or float64: its fields, its tables, and the ranges in which each function is not constant.

    ``exp``, ``exp2``: below the first the result rounds to 0, above the second to infinity. ``tanh``, ``erf``: above, to 1.
    ``turns``: the largest ``|x|`` whose reduction by multiples of pi/2 leaves a remainder with few wrong bits.
    """

    suffix: str
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

    @property
    def magic(self) -> float:
        """Adding it rounds to an integer, which then is the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa


SINGLE: Final = Format(
    "f", I32, 23, 127, (-104.0, 89.0), (-151.0, 129.0), 10.0, 4.0, 2.0**17,
    c.LN2_F32, c.LOG2E_F32, c.HALF_PI_F32, c.TWO_OVER_PI_F32[0],
    c.EXPM1_F32, c.EXP2_F32, c.LOG_F32, c.SIN_F32, c.COS_F32, c.TANH_F32, c.ERF_SMALL_F32,
)  # fmt: skip
DOUBLE: Final = Format(
    "", I64, 52, 1023, (-746.0, 710.0), (-1076.0, 1025.0), 20.0, 6.0, 2.0**24,
    c.LN2_F64, c.LOG2E_F64, c.HALF_PI_F64, c.TWO_OVER_PI_F64[0],
    c.EXPM1_F64, c.EXP2_F64, c.LOG_F64, c.SIN_F64, c.COS_F64, c.TANH_F64, c.ERF_SMALL_F64,
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


# Exponential functions: x = n ln2 + r with |r| <= ln2 / 2, and e^x = 2^n e^r.


def _remainder_of_ln2(v: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``n`` as an integer, and ``r``."""
    high, low = v.format.ln2
    exponent, n = v.nearest(x, v.format.log2e[0])
    return exponent, v.fma(n, -low, v.fma(n, -high, x))


def _exp_near_zero(v: Lanes, r: ir.Value) -> ir.Value:
    """``1 + r (1 + r q(r))`` with ``q(r) = (e^r - 1 - r) / r^2``."""
    return v.fma(v.fma(v.polynomial(r, v.format.expm1_terms), r, 1.0), r, 1.0)


def _exp(v: Lanes, x: ir.Value) -> ir.Value:
    low, high = v.format.exp
    exponent, r = _remainder_of_ln2(v, v.at_most(v.at_least(x, low), high))
    return v.scaled(_exp_near_zero(v, r), exponent)


def _exp2(v: Lanes, x: ir.Value) -> ir.Value:
    """As `_exp`; ``r = x - n`` is exact."""
    low, high = v.format.exp2
    x = v.at_most(v.at_least(x, low), high)
    exponent, n = v.nearest(x, 1.0)
    r = v.sub(x, n)
    return v.scaled(v.fma(v.polynomial(r, v.format.exp2_terms), r, 1.0), exponent)


def _tanh(v: Lanes, x: ir.Value) -> ir.Value:
    """With ``a = |x|``: ``a + a^3 p(a^2)`` below 0.55, where ``1 - 2 / (e^2a + 1)`` would cancel."""
    a = v.at_most(v.absolute(x), v.format.tanh)
    square = v.mul(a, a)
    small = v.fma(v.mul(a, square), v.polynomial(square, v.format.tanh_terms), a)
    exponent, r = _remainder_of_ln2(v, v.add(a, a))
    large = v.sub(1.0, v.div(2.0, v.fma(_exp_near_zero(v, r), v.power_of_two(exponent), 1.0)))
    return v.with_sign(v.select(v.less(a, 0.55), small, large), x)


# Logarithms: x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and log x = k ln2 + log(1 + f).


def _split_exponent(v: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``k`` as a float, and ``f``, for ``x`` positive and finite."""
    form, builder = v.format, v.builder
    subnormal = v.less(x, 2.0 ** (1 - form.bias))
    raised = float(form.mantissa + 1)
    normal = v.select(subnormal, v.mul(x, 2.0**raised), x)
    root = v.bits(0.5**0.5)
    offset = builder.sub(v.bits(normal), root)
    fraction = builder.and_(offset, v.integer((1 << form.mantissa) - 1))
    f = v.sub(v.float(builder.add(fraction, root)), 1.0)
    exponent = builder.sitofp(builder.ashr(offset, v.integer(form.mantissa)), v.type)
    return v.sub(exponent, v.select(subnormal, raised, 0.0)), f


def _log_of_special(v: Lanes, x: ir.Value, result: ir.Value) -> ir.Value:
    """``result`` where ``x`` is positive and finite; else what the logarithm's limits are, or NaN."""
    infinity = float("inf")
    finite = v.select(v.less(x, infinity), result, x)
    nonnegative = v.select(v.less(x, 0.0), float("nan"), finite)
    return v.select(v.equal(x, 0.0), -infinity, nonnegative)


def _log1p_double(v: Lanes, f: ir.Value, rest: Operand) -> ir.Value:
    """``log(1 + f) + rest`` in float64, for a ``rest`` below its last bits.

    With ``s = f / (2 + f)`` it is ``2 s + s^3 q(s^2)``, and ``2 s = f - s f``; to round late, ``s f = f^2 / 2 - s f^2 / 2``.
    """
    s = v.div(f, v.add(f, 2.0))
    z = v.mul(s, s)
    half_square = v.mul(v.mul(f, 0.5), f)
    series = v.mul(z, v.polynomial(z, v.format.log_terms))
    correction = v.fma(s, v.add(half_square, series), rest)
    return v.sub(f, v.sub(half_square, correction))


def _log(v: Lanes, x: ir.Value) -> ir.Value:
    k, f = _split_exponent(v, x)
    high, low = v.format.ln2
    rest = v.mul(k, low)
    if v.format is DOUBLE:
        log1p = _log1p_double(v, f, rest)
    else:  # f - f^2 / 2 + f^3 p(f)
        inner = v.fma(f, v.polynomial(f, v.format.log_terms), -0.5)
        log1p = v.add(f, v.fma(v.mul(f, f), inner, rest))
    return _log_of_special(v, x, v.fma(k, high, log1p))


def _log2(v: Lanes, x: ir.Value) -> ir.Value:
    k, f = _split_exponent(v, x)
    high, low = v.format.log2e
    if v.format is DOUBLE:
        log1p = _log1p_double(v, f, -0.0)
        result = v.fma(log1p, high, v.fma(log1p, low, k))
    else:  # f (log2(e) + f p(f)), with the product by the high part of log2(e) last
        inner = v.fma(f, v.polynomial(f, c.LOG2_F32), low)
        result = v.add(k, v.fma(f, high, v.mul(f, inner)))
    return _log_of_special(v, x, result)


# Trigonometric functions: x = n pi/2 + r with |r| <= pi/4; n modulo 4 says which of +-sin r, +-cos r.


def _sine_from(v: Lanes, x: ir.Value, quarter: int) -> ir.Value:
    """``sin(x + quarter pi/2)`` for ``|x|`` up to the format's ``turns``."""
    builder = v.builder
    quadrant, n = v.nearest(x, v.format.two_over_pi)
    if quarter:
        quadrant = builder.add(quadrant, v.integer(quarter))
    r = x
    for part in v.format.half_pi:
        r = v.fma(n, -part, r)
    z = v.mul(r, r)
    sine = v.fma(v.mul(r, z), v.polynomial(z, v.format.sin_terms), r)
    cosine = v.fma(v.fma(v.polynomial(z, v.format.cos_terms), z, -0.5), z, 1.0)
    odd = builder.icmp_unsigned("!=", builder.and_(quadrant, v.integer(1)), v.integer(0))
    top = v.format.integer.width - 1
    sign = builder.shl(builder.and_(quadrant, v.integer(2)), v.integer(top - 1))
    return v.float(builder.xor(v.bits(v.select(odd, cosine, sine)), sign))


def _trigonometric(kind: str, v: Lanes, x: ir.Value, result: Callable[[], ir.Value]) -> ir.Value:
    """``result()`` unless some ``|x|`` is too large for it; then libm's."""
    builder = v.builder
    blocks = [builder.append_basic_block(name) for name in ("reduce", "library", "done")]
    huge = any_lane(builder, v.less(v.format.turns, v.absolute(x)))
    builder.cbranch(huge, blocks[1], blocks[0]).set_weights([1, 1000])
    builder.position_at_end(blocks[0])
    near = result()
    builder.branch(blocks[2])
    builder.position_at_end(blocks[1])
    far = _by_libm(kind, builder, x)
    builder.branch(blocks[2])
    builder.position_at_end(blocks[2])
    merged = builder.phi(x.type)
    merged.add_incoming(near, blocks[0])
    merged.add_incoming(far, blocks[1])
    return merged


def _sin(v: Lanes, x: ir.Value) -> ir.Value:
    """The polynomial turns -0 into +0."""
    return _trigonometric("sin", v, x, lambda: v.select(v.equal(x, 0.0), x, _sine_from(v, x, 0)))


def _cos(v: Lanes, x: ir.Value) -> ir.Value:
    return _trigonometric("cos", v, x, lambda: _sine_from(v, x, 1))


# The error function.


def _erf(v: Lanes, x: ir.Value) -> ir.Value:
    """Below 1 ``a + a p(a^2)`` for ``a = |x|``. From there on a polynomial in float32; in float64
    ``1 - e^(-a^2) q(1 / (a + 2))``, where the errors of the exponential hardly matter beside 1."""
    a = v.at_most(v.absolute(x), v.format.erf)
    square = v.mul(a, a)
    small = v.fma(a, v.polynomial(square, v.format.erf_terms), a)
    if v.format is DOUBLE:
        exponent, r = _remainder_of_ln2(v, v.builder.fneg(square))
        gauss = v.mul(_exp_near_zero(v, r), v.power_of_two(exponent))
        tail = v.polynomial(v.div(1.0, v.add(a, 2.0)), c.ERFC_F64)
        large = v.fma(v.builder.fneg(gauss), tail, 1.0)
    else:
        large = v.polynomial(v.sub(a, 2.5), c.ERF_LARGE_F32)
    return v.with_sign(v.select(v.less(a, 1.0), small, large), x)


def _by_libm(kind: str, builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """libm's function on each lane."""
    element = scalar_type(x)
    name = kind + (DOUBLE if element == F64 else SINGLE).suffix

    def body(inner: ir.IRBuilder, arguments: Sequence[ir.Value]) -> ir.Value:
        return per_lane(inner, declare(inner.module, name, element, [element]), arguments)

    return outlined(builder, f"libm.{kind}", [x], x.type, body)


def _function(kind: str, kernel: Callable[[Lanes, ir.Value], ir.Value]) -> Callable[[ir.IRBuilder, ir.Value], ir.Value]:
    def body(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> ir.Value:
        return kernel(Lanes(builder, arguments[0]), arguments[0])

    def emit(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        if not has(builder, "fma"):
            return _by_libm(kind, builder, x)
        return inlined(builder, kind, [x], x.type, body)

    return emit


def _library(kind: str) -> Callable[[ir.IRBuilder, ir.Value], ir.Value]:
    return lambda builder, x: _by_libm(kind, builder, x)


FUNCTIONS: Final[dict[str, Callable[[ir.IRBuilder, ir.Value], ir.Value]]] = {
    kind: _function(kind, kernel)
    for kind, kernel in {
        "exp": _exp,
        "exp2": _exp2,
        "log": _log,
        "log2": _log2,
        "sin": _sin,
        "cos": _cos,
        "tanh": _tanh,
        "erf": _erf,
    }.items()
}
"""Each function of float32 and float64 values, in their shape."""

LIBRARY: Final[dict[str, Callable[[ir.IRBuilder, ir.Value], ir.Value]]] = {
    kind: _library(kind) for kind in ("cbrt", "log10", "log1p", "tan")
}
"""Those that are libm's."""
