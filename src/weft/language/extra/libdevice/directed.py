"""Arithmetic and conversions rounded down, up or towards zero.

Each computes the nearest float and the sign of its error, and goes to a neighbour where that is asked for. For float64 the
error of a product, a quotient or a root is known unless it is smaller than float64's least number.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from weft.dtypes import float32, float64, int32, int64, uint32, uint64
from weft.language.compiletime import static_assert, to_tensor
from weft.language.core import composite, constexpr
from weft.language.elementwise import div_rn, fma, meaning, sqrt_rn, where
from weft.language.extra.libdevice.rounding import _as_float, _as_word, finitef, isinf


@composite
def _one(x: Any) -> Any:
    """1 in the type and shape of ``x``."""
    return where(meaning("equal", _as_float(x), 0.0), 1.0, 1.0).to(_as_float(x).dtype)


@composite
def _least_negative(x: Any) -> Any:
    """The bits of the negative number next to 0, of the type of ``x``."""
    return (-(2**63) + 1) if x.dtype.primitive_bitwidth == 64 else (-(2**31) + 1)


@composite
def _step(r: Any, up: Any) -> Any:
    """The float next to ``r``: above it, or below."""
    bits = _as_word(r)
    moved = where(meaning("equal", r > 0.0, up), bits + 1, bits - 1)
    least = where(up, bits * 0 + 1, bits * 0 + _least_negative(r))
    return where(meaning("equal", r, 0.0), least, moved).to(r.dtype, bitcast=True)


@composite
def _toward(r: Any, error: Any, mode: Any) -> Any:
    """``r``, the nearest float to ``r + error``, rounded down, up or towards zero instead."""
    below = where(error < 0.0, _step(r, r > float("inf")), r)
    above = where(error > 0.0, _step(r, meaning("equal", r, r)), r)
    if mode == "rd":
        return below
    if mode == "ru":
        return above
    return where(r > 0.0, below, where(r < 0.0, above, r))


@composite
def _overflown(r: Any, error: Any, x: Any, y: Any) -> Any:
    """The error of a result that is infinite, though its operands are finite."""
    beyond = isinf(r) & finitef(x) & finitef(y)
    return where(beyond, where(r > 0.0, -1.0, 1.0).to(r.dtype), error)


@composite
def _sum(x: Any, y: Any, mode: Any) -> Any:
    """``x + y``. The error of the nearest float is a float (Knuth)."""
    a = _as_float(x)
    b = _as_float(y).to(a.dtype)
    r = a + b
    z = r - a
    error = (a - (r - z)) + (b - z)
    return _toward(r, _overflown(r, error, a, b), mode)


@composite
def _residual(x: Any, y: Any, r: Any) -> Any:
    """``x * y - r``: exact in float64 for float32, by one fused multiplication for float64."""
    if r.dtype.primitive_bitwidth == 64:
        return fma(x, y, -r)
    return x.to(float64) * y.to(float64) - r.to(float64)


@composite
def _product(x: Any, y: Any, mode: Any) -> Any:
    """``x * y``."""
    a = _as_float(x)
    b = _as_float(y).to(a.dtype)
    r = a * b
    return _toward(r, _overflown(r, _residual(a, b, r).to(r.dtype), a, b), mode)


@composite
def _quotient(x: Any, y: Any, mode: Any) -> Any:
    """``x / y``."""
    a = _as_float(x)
    b = _as_float(y).to(a.dtype)
    r = div_rn(a, b)
    rest = -_residual(r, b, a)
    error = where(b < 0.0, -rest, rest)
    error = _overflown(r, where(finitef(b), error, 0.0).to(r.dtype), a, b)
    return _toward(r, where(meaning("equal", b, 0.0), 0.0, error), mode)


@composite
def _root(x: Any, mode: Any) -> Any:
    """The square root."""
    a = _as_float(x)
    r = sqrt_rn(a)
    return _toward(r, where(finitef(a), -_residual(r, r, a), 0.0).to(r.dtype), mode)


@composite
def _fused(x: Any, y: Any, z: Any, mode: Any) -> Any:
    """``x * y + z`` of float32: the product is exact in float64, the error of the sum too."""
    a = _as_float(x)
    static_assert(a.dtype == float32, "takes float32")
    b, c = _as_float(y).to(float32), _as_float(z).to(float32)
    r = fma(a, b, c)
    p, w = a.to(float64) * b.to(float64), c.to(float64)
    s = p + w
    t = s - p
    rest = (p - (s - t)) + (w - t)
    error = where(finitef(s), (s - r.to(float64)) + rest, 0.0)
    return _toward(r, error.to(float64), mode)


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
    """``arg0 * arg1 + arg2``, rounded once toward 0. For float32."""
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
    """``arg0 * arg1 + arg2``, rounded once down. For float32."""
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
    """``arg0 * arg1 + arg2``, rounded once up. For float32."""
    return _fused(arg0, arg1, arg2, "ru")


@composite
def double2float_rz(arg0: Any) -> Any:
    """float64 as float32, rounded towards zero."""
    v = to_tensor(arg0).to(float64)
    r = v.to(float32)
    error = _overflown(r, where(finitef(v), v - r.to(float64), 0.0), v, v)
    return _toward(r, error, "rz")


@composite
def double2float_rd(arg0: Any) -> Any:
    """float64 as float32, rounded down."""
    v = to_tensor(arg0).to(float64)
    r = v.to(float32)
    error = _overflown(r, where(finitef(v), v - r.to(float64), 0.0), v, v)
    return _toward(r, error, "rd")


@composite
def double2float_ru(arg0: Any) -> Any:
    """float64 as float32, rounded up."""
    v = to_tensor(arg0).to(float64)
    r = v.to(float32)
    error = _overflown(r, where(finitef(v), v - r.to(float64), 0.0), v, v)
    return _toward(r, error, "ru")


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
