"""Arithmetic and conversions rounded down, up or towards zero.

Each computes the nearest float and the sign of its error, and goes to a neighbour where that is asked for.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from weft.dtypes import float32, float64, int32, int64, uint32, uint64
from weft.language.compiletime import to_tensor
from weft.language.core import composite, constexpr, variant
from weft.language.elementwise import abs, div_rn, fma, meaning, sqrt_rn, where
from weft.language.extra.libdevice.rounding import _as_float, _as_word, isinf

GROW = constexpr(2.0**600)
TINY = constexpr(2.0**-900)
NO_LONGER_TINY = constexpr(2.0**-700)
HUGE = constexpr(2.0**900)
SHRINK = constexpr(2.0**-100)


@composite
def _next(r: Any, away: Any) -> Any:
    """The float next to ``r``: of numbers but 0 the one away from 0, or the one towards it."""
    word = _as_word(r)
    return where(away, word + 1, word - 1).to(r.dtype, bitcast=True)


@composite
def _up(r: Any, error: Any) -> Any:
    """``r``, the nearest float to ``r + error``, rounded up instead. Of ``error`` the sign counts."""
    least = where(to_tensor(True), _as_word(r) * 0 + 1, 0).to(r.dtype, bitcast=True)
    return where(error > 0.0, where(meaning("equal", r, 0.0), least, _next(r, r > 0.0)), r)


@composite
def _in(r: Any, error: Any) -> Any:
    """``r``, the nearest float to ``r + error``, rounded towards 0 instead."""
    beyond = where(r > 0.0, error < 0.0, (r < 0.0) & (error > 0.0))
    return where(beyond, _next(r, to_tensor(False)), r)


@composite
def _toward(mode: Any, r: Any, error: Any) -> Any:
    """``r``, the nearest float to ``r + error``, rounded down, up or towards 0 instead."""
    if mode == "rd":
        return -_up(-r, -error)
    return _up(r, error) if mode == "ru" else _in(r, error)


@composite
def _two_sum(a: Any, b: Any) -> Any:
    """The nearest float to ``a + b``, and what is missing (Knuth)."""
    r = a + b
    z = r - a
    return r, (a - (r - z)) + (b - z)


@composite
def _sum(mode: Any, arg0: Any, arg1: Any) -> Any:
    """``x + y``. The error of the nearest float is a float (Knuth), and infinite where the sum overflows."""
    a = _as_float(arg0)
    b = _as_float(arg1).to(a.dtype)
    r, error = _two_sum(a, b)
    if mode == "rd":  # a sum that is exactly 0 is -0
        r = -(-a - b)
    return _toward(mode, r, where(isinf(r), (a - r) + b, error))


@composite
def _factor(condition: Any, factor: Any) -> Any:
    """``factor`` in float64 where the condition holds, else 1."""
    return where(condition, to_tensor(1.0).to(float64) * factor, 1.0)


@composite
def _excess(x: Any, y: Any, r: Any) -> Any:
    """A number with the sign of ``x * y - r``, where ``r`` is near ``x * y``. NaN or infinite where that is.

    For float32 it is exact in float64. For float64 one fused multiplication is enough, unless the error of ``r`` may be
    below the least float: then the factors are scaled."""
    if r.dtype.primitive_bitwidth == 32:
        return x.to(float64) * y.to(float64) - r.to(float64)
    scale = _factor(abs(r) < TINY, GROW)
    return fma(x * scale, y * scale, -(r * scale * scale))


@composite
def _product(mode: Any, arg0: Any, arg1: Any) -> Any:
    """``x * y``."""
    a = _as_float(arg0)
    b = _as_float(arg1).to(a.dtype)
    r = a * b
    return _toward(mode, r, _excess(a, b, r))


@composite
def _quotient(mode: Any, arg0: Any, arg1: Any) -> Any:
    """``x / y``. The error has the sign of ``(x - r * y) / y``."""
    a = _as_float(arg0)
    b = _as_float(arg1).to(a.dtype)
    r = div_rn(a, b)
    if r.dtype.primitive_bitwidth == 32:
        rest = -_excess(r, b, a)
    else:  # one factor is scaled: the quotient if it is tiny, else the divisor of a tiny number
        grown = _factor(abs(r) < TINY, GROW)
        other = _factor((abs(a) < TINY) & (grown < GROW), GROW)
        rest = fma(-(r * grown), b * other, a * grown * other)
    return _toward(mode, r, where(b < 0.0, -rest, rest))


@composite
def _root(mode: Any, arg0: Any) -> Any:
    """The square root."""
    a = _as_float(arg0)
    r = sqrt_rn(a)
    return _toward(mode, r, -_excess(r, r, a))


@composite
def _fused(mode: Any, arg0: Any, arg1: Any, arg2: Any) -> Any:
    """``x * y + z``. For float32 the product is exact in float64, the error of the sum too."""
    a = _as_float(arg0)
    b, c = _as_float(arg1).to(a.dtype), _as_float(arg2).to(a.dtype)
    r = -fma(-a, b, -c) if mode == "rd" else fma(a, b, c)  # a sum that is exactly 0, rounded down, is -0
    if r.dtype.primitive_bitwidth == 64:
        return _toward(mode, r, _error_of_fused(a, b, c, r))
    s, rest = _two_sum(a.to(float64) * b.to(float64), c.to(float64))
    return _toward(mode, r, (s - r.to(float64)) + rest)


@composite
def _error_of_fused(a: Any, b: Any, c: Any, r: Any) -> Any:
    """A number with the sign of ``a * b + c - r`` of float64, where ``r`` is the nearest float to ``a * b + c``.

    S. Boldo and J.-M. Muller, "Exact and approximated error of the FMA" (2011): the product, and the sums with ``c``, are
    split into floats and errors. Tiny and huge products are scaled. ``c`` may then be out of reach: it is the sum beside
    a tiny product, and beside a huge one only its sign counts. A scaled product may still overflow: what is finite and became
    infinite is nearer to 0 than that."""
    overflown = isinf(r) & ~(isinf(a) | isinf(b) | isinf(c))
    size = abs(a * b)
    tiny, huge = size < TINY, size > HUGE
    scale = _factor(tiny, GROW) * _factor(huge, SHRINK)
    a, b = a * scale, b * scale
    beside = tiny & (abs(c) > NO_LONGER_TINY)
    some = c * scale * scale
    some = where(huge & (abs(some) < 1.0), where(c > 0.0, 1.0, where(c < 0.0, -1.0, 0.0)), some)
    some = where(beside, 0.0, some)
    product = a * b
    rest = fma(a, b, -product)
    low, lowest = _two_sum(some, rest)
    high, lower = _two_sum(product, low)
    gap = (high - where(beside, 0.0, r * scale * scale)) + lower
    return where(overflown, -r, gap + lowest)


@composite
def _difference(mode: Any, arg0: Any, arg1: Any) -> Any:
    """``arg0 - arg1``."""
    return _sum(mode, arg0, -_as_float(arg1))


@composite
def _reciprocal(mode: Any, arg0: Any) -> Any:
    """``1 / arg0``."""
    x = _as_float(arg0)
    return _quotient(mode, (_as_word(x) * 0 + 1).to(x.dtype), x)


@composite
def _narrowed(mode: Any, arg0: Any) -> Any:
    """float64 as float32."""
    v = to_tensor(arg0).to(float64)
    r = v.to(float32)
    return _toward(mode, r, v - r.to(float64))


@composite
def _whole(form: Any, arg0: Any) -> Any:
    """An integer of one type as a float of another. The error is an integer, as the float is whole."""
    v = to_tensor(arg0).to(form[1])
    r = v.to(form[2])
    top: constexpr = constexpr(2.0 ** (v.dtype.primitive_bitwidth - (1 if v.dtype.is_int_signed() else 0)))
    back = where(r < top, r, 0.0).to(v.dtype)
    error = where(r < top, where(v > back, 1.0, where(v < back, -1.0, 0.0)), -1.0)
    return _toward(form[0], r, error)


P = ParamSpec("P")
R = TypeVar("R")


def _modes(function: Callable[Concatenate[Any, P], R], name: str, *form: Any) -> tuple[Callable[P, R], ...]:
    """``name_rd``, ``name_ru`` and ``name_rz`` of a function of the mode, or of the mode and ``form``."""
    computes = (function.__doc__ or "").partition(". ")[0].rstrip(".")
    return tuple(
        variant(function, (mode, *form) if form else mode, f"{name}_{mode}", f"{computes}, rounded once, {word}.")
        for mode, word in (("rd", "down"), ("ru", "up"), ("rz", "towards zero"))
    )


add_rd, add_ru, add_rz = _modes(_sum, "add")
sub_rd, sub_ru, sub_rz = _modes(_difference, "sub")
mul_rd, mul_ru, mul_rz = _modes(_product, "mul")
div_rd, div_ru, div_rz = _modes(_quotient, "div")
rcp_rd, rcp_ru, rcp_rz = _modes(_reciprocal, "rcp")
sqrt_rd, sqrt_ru, sqrt_rz = _modes(_root, "sqrt")
fma_rd, fma_ru, fma_rz = _modes(_fused, "fma")
double2float_rd, double2float_ru, double2float_rz = _modes(_narrowed, "double2float")
int2float_rd, int2float_ru, int2float_rz = _modes(_whole, "int2float", int32, float32)
uint2float_rd, uint2float_ru, uint2float_rz = _modes(_whole, "uint2float", uint32, float32)
ll2float_rd, ll2float_ru, ll2float_rz = _modes(_whole, "ll2float", int64, float32)
ull2float_rd, ull2float_ru, ull2float_rz = _modes(_whole, "ull2float", uint64, float32)
ll2double_rd, ll2double_ru, ll2double_rz = _modes(_whole, "ll2double", int64, float64)
ull2double_rd, ull2double_ru, ull2double_rz = _modes(_whole, "ull2double", uint64, float64)
