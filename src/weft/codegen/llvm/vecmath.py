"""The mathematical functions of float32 and float64, on scalars and vectors, inlined.

No vector library (libmvec, SVML, Accelerate, or libm on each lane) is called: results would depend on the machine's library,
a call spills every vector register, masks of the ABI differ, and GPUs have none. Each function is a polynomial
(`weft.codegen.llvm.coefficients`) between a range reduction and a scaling, in straight-line code that LLVM schedules among
the kernel's own, with the same results wherever there is fused multiply-add. Subnormals, infinities, NaN and signed zeros
are honoured as C99's annex F says. The errors, in units in the last place of the exact value, are below
(`tests/codegen/test_vecmath.py`); fmod is exact:

| | exp | exp2 | log | log2 | log10 | log1p | pow | sin | cos | tan | atan2 | tanh | erf | cbrt |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| float32 | 0.91 | 0.9 | 0.9 | 1.0 | 0.6 | 0.9 | 1.0 | 1.5 | 1.5 | 1.3 | 0.9 | 1.59 | 1.1 | 0.6 |
| float64 | 0.9 | 0.9 | 0.9 | 1.6 | 0.6 | 0.9 | 1.0 | 1.4 | 1.4 | 1.3 | 0.9 | 1.5 | 1.1 | 0.6 |

Checked for every float32: exp 0.909, exp2 0.878, tanh 1.589, log 0.877, log2 0.955, log10 0.500, log1p 0.890.
The others are bounds of samples.

On a target without fused multiply-add float32 is computed in float64, with the polynomials of float32. float64 takes products in
two words wherever the product has to be exact (`Lanes.fma`), and rounds them elsewhere. Results may differ in the last place from
those of other targets; the bounds are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from llvmlite import ir

from weft.codegen.llvm import angles, fmod, powers
from weft.codegen.llvm import coefficients as c
from weft.codegen.llvm.lanes import DOUBLE, WIDENED, Lanes, Operand
from weft.codegen.llvm.types import F64, has, inlined, like, scalar_type

# Exponential functions: x = n ln2 + r with |r| <= ln2 / 2, and e^x = 2^n e^r.


def _remainder_of_ln2(v: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``n`` as an integer, and ``r``."""
    high, low = v.ln2
    exponent, n = v.nearest(x, v.format.log2e[0])
    return exponent, v.multiply_add(n, -low, v.multiply_add(n, -high, x))


def _exp_near_zero(v: Lanes, r: ir.Value) -> ir.Value:
    """``1 + r (1 + r q(r))`` with ``q(r) = (e^r - 1 - r) / r^2``; where products are rounded, ``1 + (r + r^2 q(r))`` in two
    words."""
    terms = v.polynomial(r, v.format.expm1_terms)
    if v.format is not DOUBLE or has(v.builder, "fma"):
        return v.multiply_add(v.multiply_add(terms, r, 1.0), r, 1.0)
    power, rest = v.fast_two_sum(r, v.mul(v.mul(r, r), terms))
    sum_, more = v.fast_two_sum(v.value(1.0), power)
    return v.add(sum_, v.add(more, rest))


def _exp(v: Lanes, x: ir.Value) -> ir.Value:
    exponent, r = _remainder_of_ln2(v, v.within(x, v.format.exp))
    return v.scaled(_exp_near_zero(v, r), exponent)


def _exp2(v: Lanes, x: ir.Value) -> ir.Value:
    """As `_exp`; ``r = x - n`` is exact."""
    x = v.within(x, v.format.exp2)
    exponent, n = v.nearest(x, 1.0)
    r = v.sub(x, n)
    return v.scaled(v.one_plus(v.polynomial(r, v.format.exp2_terms), r), exponent)


def _tanh(v: Lanes, x: ir.Value) -> ir.Value:
    """With ``a = |x|``: ``a + a^3 p(a^2)`` below 0.55, where ``1 - 2 / (e^2a + 1)`` would cancel."""
    a = v.at_most(v.absolute(x), v.format.tanh)
    square = v.mul(a, a)
    small = v.multiply_add(v.mul(a, square), v.polynomial(square, v.format.tanh_terms), a)
    exponent, r = _remainder_of_ln2(v, v.add(a, a))
    large = v.sub(1.0, v.div(2.0, v.multiply_add(_exp_near_zero(v, r), v.power_of_two(exponent), 1.0)))
    return v.with_sign(v.select(v.less(a, 0.55), small, large), x)


# Logarithms: x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and log x = k ln2 + log(1 + f).


def _split_exponent(v: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``k`` as a float, and ``f``, for ``x`` positive and finite."""
    m, exponent = v.split(x, 0.5**0.5)
    return v.small(exponent), v.sub(m, 1.0)


def _log1p_double(v: Lanes, f: ir.Value, rest: Operand) -> ir.Value:
    """``log(1 + f) + rest`` in float64, for a ``rest`` below its last bits.

    With ``s = f / (2 + f)`` it is ``2 s + s^3 q(s^2)``, and ``2 s = f - s f``; to round late, ``s f = f^2 / 2 - s f^2 / 2``.
    """
    s = v.div(f, v.add(f, 2.0))
    z = v.mul(s, s)
    half_square = v.mul(v.mul(f, 0.5), f)
    series = v.mul(z, v.polynomial(z, v.format.log_terms))
    correction = v.multiply_add(s, v.add(half_square, series), rest)
    return v.sub(f, v.sub(half_square, correction))


def _log_from(v: Lanes, k: ir.Value, f: ir.Value, rest: ir.Value) -> ir.Value:
    """``k ln2 + log(1 + f) + rest``, for a ``rest`` below the last bits of the greater of the others."""
    high, low = v.ln2
    rest = v.multiply_add(k, low, rest)
    if v.format is DOUBLE:
        log1p = _log1p_double(v, f, rest)
    else:  # f - f^2 / 2 + f^3 p(f)
        inner = v.multiply_add(f, v.polynomial(f, v.format.log_terms), -0.5)
        log1p = v.add(f, v.multiply_add(v.mul(f, f), inner, rest))
    return v.multiply_add(k, high, log1p)


def _log(v: Lanes, x: ir.Value) -> ir.Value:
    return v.log_of_special(x, _log_from(v, *_split_exponent(v, x), v.value(0.0)))


def _log1p(v: Lanes, x: ir.Value) -> ir.Value:
    """``log(u) + e / u`` for ``1 + x = u + e``; where ``u`` needs no power of two, ``log(1 + x)`` without an error of ``u``."""
    u, error = v.two_sum(v.value(1.0), x)
    k, f = _split_exponent(v, u)
    direct = v.equal(k, 0.0)
    rest = v.select(direct, 0.0, v.div(error, u))
    result = v.log_of_special(u, _log_from(v, k, v.select(direct, x, f), rest))
    return v.select(v.equal(x, 0.0), x, result)


def _log2(v: Lanes, x: ir.Value) -> ir.Value:
    k, f = _split_exponent(v, x)
    high, low = v.format.log2e
    if v.format is DOUBLE:
        log1p = _log1p_double(v, f, -0.0)
        result = v.fma(log1p, high, v.multiply_add(log1p, low, k))
    else:  # f (log2(e) + f p(f)), with the product by the high part of log2(e) last
        inner = v.multiply_add(f, v.polynomial(f, c.LOG2_F32), low)
        result = v.add(k, v.multiply_add(f, high, v.mul(f, inner)))
    return v.log_of_special(x, result)


# The error function.


def _erf(v: Lanes, x: ir.Value) -> ir.Value:
    """Below 1 ``a + a p(a^2)`` for ``a = |x|``. From there on a polynomial in float32; in float64
    ``1 - e^(-a^2) q(1 / (a + 2))``, where the errors of the exponential hardly matter beside 1."""
    a = v.at_most(v.absolute(x), v.format.erf)
    square = v.mul(a, a)
    small = v.multiply_add(a, v.polynomial(square, v.format.erf_terms), a)
    if v.format is DOUBLE:
        exponent, r = _remainder_of_ln2(v, v.builder.fneg(square))
        gauss = v.mul(_exp_near_zero(v, r), v.power_of_two(exponent))
        tail = v.polynomial(v.div(1.0, v.add(a, 2.0)), c.ERFC_F64)
        large = v.multiply_add(v.builder.fneg(gauss), tail, 1.0)
    else:
        large = v.polynomial(v.sub(a, 2.5), c.ERF_LARGE_F32)
    return v.with_sign(v.select(v.less(a, 1.0), small, large), x)


Function = Callable[..., ir.Value]
"""A function of float32 and float64 values of one shape."""


def _function(name: str, kernel: Function) -> Function:
    """``kernel``; of float32 in float64 where the target has no fused multiply-add."""

    def body(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> ir.Value:
        if has(builder, "fma") or scalar_type(arguments[0]) == F64:
            return kernel(Lanes(builder, arguments[0]), *arguments)
        wide = [builder.fpext(x, like(x, F64)) for x in arguments]
        return builder.fptrunc(kernel(Lanes(builder, wide[0], WIDENED), *wide), arguments[0].type)

    def emit(builder: ir.IRBuilder, *operands: ir.Value) -> ir.Value:
        return inlined(builder, name, operands, operands[0].type, body)

    return emit


def _functions(kernels: dict[str, Function]) -> dict[str, Function]:
    return {name: _function(name, kernel) for name, kernel in kernels.items()}


UNARY: Final[dict[str, Function]] = _functions(
    {
        "exp": _exp,
        "exp2": _exp2,
        "log": _log,
        "log2": _log2,
        "log10": powers.log10,
        "log1p": _log1p,
        "sin": angles.sin,
        "cos": angles.cos,
        "tan": angles.tan,
        "tanh": _tanh,
        "erf": _erf,
        "cbrt": powers.cbrt,
    }
)
"""Each function of one operand by its kind, which is also libm's name for it."""

BINARY: Final[dict[str, Function]] = _functions(
    {"fmod": fmod.remainder, "pow": powers.power, "atan2": angles.atan2},
)
"""The functions of two operands by libm's names."""
