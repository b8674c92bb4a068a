"""Arithmetic and conversions rounded down, up or towards zero.

Each computes the nearest float and the sign of its error, and goes to a neighbour where that is asked for.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from weft.dtypes import float32, float64, int32, int64, uint32, uint64
from weft.language.compiletime import to_tensor
from weft.language.core import composite, constexpr
from weft.language.elementwise import abs, div_rn, fma, meaning, sqrt_rn, where
from weft.language.extra.libdevice.rounding import _as_float, _as_word, isinf

GROW = constexpr(2.0**600)
TINY = constexpr(2.0**-900)
NO_LONGER_TINY = constexpr(2.0**-700)
HUGE = constexpr(2.0**900)
SHRINK = constexpr(2.0**-100)


@composite
def _one(x: Any) -> Any:
    """1 in the type and shape of ``x``."""
    return where(meaning("equal", _as_float(x), 0.0), 1.0, 1.0).to(_as_float(x).dtype)


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
def _toward(r: Any, error: Any, mode: Any) -> Any:
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
def _sum(x: Any, y: Any, mode: Any) -> Any:
    """``x + y``. The error of the nearest float is a float (Knuth), and infinite where the sum overflows."""
    a = _as_float(x)
    b = _as_float(y).to(a.dtype)
    r, error = _two_sum(a, b)
    if mode == "rd":  # a sum that is exactly 0 is -0
        r = -(-a - b)
    return _toward(r, where(isinf(r), (a - r) + b, error), mode)


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
def _product(x: Any, y: Any, mode: Any) -> Any:
    """``x * y``."""
    a = _as_float(x)
    b = _as_float(y).to(a.dtype)
    r = a * b
    return _toward(r, _excess(a, b, r), mode)


@composite
def _quotient(x: Any, y: Any, mode: Any) -> Any:
    """``x / y``. The error has the sign of ``(x - r * y) / y``."""
    a = _as_float(x)
    b = _as_float(y).to(a.dtype)
    r = div_rn(a, b)
    if r.dtype.primitive_bitwidth == 32:
        rest = -_excess(r, b, a)
    else:  # one factor is scaled: the quotient if it is tiny, else the divisor of a tiny number
        grown = _factor(abs(r) < TINY, GROW)
        other = _factor((abs(a) < TINY) & (grown < GROW), GROW)
        rest = fma(-(r * grown), b * other, a * grown * other)
    return _toward(r, where(b < 0.0, -rest, rest), mode)


@composite
def _root(x: Any, mode: Any) -> Any:
    """The square root."""
    a = _as_float(x)
    r = sqrt_rn(a)
    return _toward(r, -_excess(r, r, a), mode)


@composite
def _fused(x: Any, y: Any, z: Any, mode: Any) -> Any:
    """``x * y + z``. For float32 the product is exact in float64, the error of the sum too."""
    a = _as_float(x)
    b, c = _as_float(y).to(a.dtype), _as_float(z).to(a.dtype)
    r = -fma(-a, b, -c) if mode == "rd" else fma(a, b, c)  # a sum that is exactly 0, rounded down, is -0
    if r.dtype.primitive_bitwidth == 64:
        return _toward(r, _error_of_fused(a, b, c, r), mode)
    s, rest = _two_sum(a.to(float64) * b.to(float64), c.to(float64))
    return _toward(r, (s - r.to(float64)) + rest, mode)


@composite
def _error_of_fused(a: Any, b: Any, c: Any, r: Any) -> Any:
    """A number with the sign of ``a * b + c - r`` of float64, where ``r`` is the nearest float to ``a * b + c``.

    S. Boldo and J.-M. Muller, "Exact and approximated error of the FMA" (2011): the product, and the sums with ``c``, are
    split into floats and errors. Tiny and huge products are scaled. ``c`` may then be out of reach: it is the sum beside
    a tiny product, and beside a huge one only its sign counts."""
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
    return gap + lowest


@composite
def add_rz(arg0: Any, arg1: Any) -> Any:
    """``arg0 + arg1``, rounded towards zero."""
    return _sum(arg0, arg1, "rz")


@composite
def sub_rz(arg0: Any, arg1: Any) -> Any:
    """``arg0 - arg1``, rounded towards zero."""
    return _sum(arg0, -_as_float(arg1), "rz")


@composite
def mul_rz(arg0: Any, arg1: Any) -> Any:
    """``arg0 * arg1``, rounded towards zero."""
    return _product(arg0, arg1, "rz")


@composite
def div_rz(arg0: Any, arg1: Any) -> Any:
    """``arg0 / arg1``, rounded towards zero."""
    return _quotient(arg0, arg1, "rz")


@composite
def rcp_rz(arg0: Any) -> Any:
    """``1 / arg0``, rounded towards zero."""
    return _quotient(_one(arg0), arg0, "rz")


@composite
def sqrt_rz(arg0: Any) -> Any:
    """The square root, rounded towards zero."""
    return _root(arg0, "rz")


@composite
def fma_rz(arg0: Any, arg1: Any, arg2: Any) -> Any:
    """``arg0 * arg1 + arg2``, rounded once towards zero."""
    return _fused(arg0, arg1, arg2, "rz")


@composite
def add_rd(arg0: Any, arg1: Any) -> Any:
    """``arg0 + arg1``, rounded down."""
    return _sum(arg0, arg1, "rd")


@composite
def sub_rd(arg0: Any, arg1: Any) -> Any:
    """``arg0 - arg1``, rounded down."""
    return _sum(arg0, -_as_float(arg1), "rd")


@composite
def mul_rd(arg0: Any, arg1: Any) -> Any:
    """``arg0 * arg1``, rounded down."""
    return _product(arg0, arg1, "rd")


@composite
def div_rd(arg0: Any, arg1: Any) -> Any:
    """``arg0 / arg1``, rounded down."""
    return _quotient(arg0, arg1, "rd")


@composite
def rcp_rd(arg0: Any) -> Any:
    """``1 / arg0``, rounded down."""
    return _quotient(_one(arg0), arg0, "rd")


@composite
def sqrt_rd(arg0: Any) -> Any:
    """The square root, rounded down."""
    return _root(arg0, "rd")


@composite
def fma_rd(arg0: Any, arg1: Any, arg2: Any) -> Any:
    """``arg0 * arg1 + arg2``, rounded once down."""
    return _fused(arg0, arg1, arg2, "rd")


@composite
def add_ru(arg0: Any, arg1: Any) -> Any:
    """``arg0 + arg1``, rounded up."""
    return _sum(arg0, arg1, "ru")


@composite
def sub_ru(arg0: Any, arg1: Any) -> Any:
    """``arg0 - arg1``, rounded up."""
    return _sum(arg0, -_as_float(arg1), "ru")


@composite
def mul_ru(arg0: Any, arg1: Any) -> Any:
    """``arg0 * arg1``, rounded up."""
    return _product(arg0, arg1, "ru")


@composite
def div_ru(arg0: Any, arg1: Any) -> Any:
    """``arg0 / arg1``, rounded up."""
    return _quotient(arg0, arg1, "ru")


@composite
def rcp_ru(arg0: Any) -> Any:
    """``1 / arg0``, rounded up."""
    return _quotient(_one(arg0), arg0, "ru")


@composite
def sqrt_ru(arg0: Any) -> Any:
    """The square root, rounded up."""
    return _root(arg0, "ru")


@composite
def fma_ru(arg0: Any, arg1: Any, arg2: Any) -> Any:
    """``arg0 * arg1 + arg2``, rounded once up."""
    return _fused(arg0, arg1, arg2, "ru")


@composite
def double2float_rz(arg0: Any) -> Any:
    """float64 as float32, rounded towards zero."""
    v = to_tensor(arg0).to(float64)
    r = v.to(float32)
    return _toward(r, v - r.to(float64), "rz")


@composite
def double2float_rd(arg0: Any) -> Any:
    """float64 as float32, rounded down."""
    v = to_tensor(arg0).to(float64)
    r = v.to(float32)
    return _toward(r, v - r.to(float64), "rd")


@composite
def double2float_ru(arg0: Any) -> Any:
    """float64 as float32, rounded up."""
    v = to_tensor(arg0).to(float64)
    r = v.to(float32)
    return _toward(r, v - r.to(float64), "ru")


@composite
def _whole(x: Any, dtype: Any, mode: Any) -> Any:
    """An integer as a float of ``dtype``, rounded. The error is an integer, as the float is whole."""
    v = to_tensor(x)
    r = v.to(dtype)
    top: constexpr = constexpr(2.0 ** (v.dtype.primitive_bitwidth - (1 if v.dtype.is_int_signed() else 0)))
    back = where(r < top, r, 0.0).to(v.dtype)
    error = where(r < top, where(v > back, 1.0, where(v < back, -1.0, 0.0)), -1.0)
    return _toward(r, error, mode)


@composite
def int2float_rz(arg0: Any) -> Any:
    """int32 as float32, rounded towards zero."""
    return _whole(to_tensor(arg0).to(int32), float32, "rz")


@composite
def int2float_rd(arg0: Any) -> Any:
    """int32 as float32, rounded down."""
    return _whole(to_tensor(arg0).to(int32), float32, "rd")


@composite
def int2float_ru(arg0: Any) -> Any:
    """int32 as float32, rounded up."""
    return _whole(to_tensor(arg0).to(int32), float32, "ru")


@composite
def uint2float_rz(arg0: Any) -> Any:
    """uint32 as float32, rounded towards zero."""
    return _whole(to_tensor(arg0).to(uint32), float32, "rz")


@composite
def uint2float_rd(arg0: Any) -> Any:
    """uint32 as float32, rounded down."""
    return _whole(to_tensor(arg0).to(uint32), float32, "rd")


@composite
def uint2float_ru(arg0: Any) -> Any:
    """uint32 as float32, rounded up."""
    return _whole(to_tensor(arg0).to(uint32), float32, "ru")


@composite
def ll2float_rz(arg0: Any) -> Any:
    """int64 as float32, rounded towards zero."""
    return _whole(to_tensor(arg0).to(int64), float32, "rz")


@composite
def ll2float_rd(arg0: Any) -> Any:
    """int64 as float32, rounded down."""
    return _whole(to_tensor(arg0).to(int64), float32, "rd")


@composite
def ll2float_ru(arg0: Any) -> Any:
    """int64 as float32, rounded up."""
    return _whole(to_tensor(arg0).to(int64), float32, "ru")


@composite
def ll2double_rz(arg0: Any) -> Any:
    """int64 as float64, rounded towards zero."""
    return _whole(to_tensor(arg0).to(int64), float64, "rz")


@composite
def ll2double_rd(arg0: Any) -> Any:
    """int64 as float64, rounded down."""
    return _whole(to_tensor(arg0).to(int64), float64, "rd")


@composite
def ll2double_ru(arg0: Any) -> Any:
    """int64 as float64, rounded up."""
    return _whole(to_tensor(arg0).to(int64), float64, "ru")


@composite
def ull2float_rz(arg0: Any) -> Any:
    """uint64 as float32, rounded towards zero."""
    return _whole(to_tensor(arg0).to(uint64), float32, "rz")


@composite
def ull2float_rd(arg0: Any) -> Any:
    """uint64 as float32, rounded down."""
    return _whole(to_tensor(arg0).to(uint64), float32, "rd")


@composite
def ull2float_ru(arg0: Any) -> Any:
    """uint64 as float32, rounded up."""
    return _whole(to_tensor(arg0).to(uint64), float32, "ru")


@composite
def ull2double_rz(arg0: Any) -> Any:
    """uint64 as float64, rounded towards zero."""
    return _whole(to_tensor(arg0).to(uint64), float64, "rz")


@composite
def ull2double_rd(arg0: Any) -> Any:
    """uint64 as float64, rounded down."""
    return _whole(to_tensor(arg0).to(uint64), float64, "rd")


@composite
def ull2double_ru(arg0: Any) -> Any:
    """uint64 as float64, rounded up."""
    return _whole(to_tensor(arg0).to(uint64), float64, "ru")
