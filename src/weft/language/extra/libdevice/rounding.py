"""Whole numbers near a float, and what a float's bits say. Exact."""

# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.dtypes import float32, float64, int16, int32, int64
from weft.language.compiletime import static_assert, static_range, to_tensor
from weft.language.core import Tile, composite, constexpr, tensor, variant
from weft.language.elementwise import abs, ceil, floor, where

ALL_WHOLE = constexpr((8388608.0, 4503599627370496.0))
"""From here on every float32, float64 is a whole number."""
FRACTION = constexpr((23, 52))
BIAS = constexpr((127, 1023))


@composite
def _as_float(x: Tile) -> tensor:
    """A tile of floats in the type that it is computed in: float32 for narrower ones."""
    value = to_tensor(x)
    static_assert(value.dtype.is_floating(), "takes floats")
    return value.to(float32) if value.dtype.primitive_bitwidth < 32 else value


@composite
def _widest(x: Tile) -> tensor:
    """Floats as float64."""
    return _as_float(x).to(float64)


@composite
def _rounded_once(function: Any, arg0: Any) -> Any:
    """``function`` of float64, as the argument's type."""
    return function(_widest(arg0)).to(to_tensor(arg0).dtype)


def computed_in_float64(function: Callable[[Any], Any], name: str, doc: str) -> Callable[[Any], Any]:
    """A function of floats of any type, of one of float64."""
    return variant(_rounded_once, function, name, doc)


@composite
def _as_word(x: tensor) -> tensor:
    """The bits of floats as integers of their width."""
    bits: constexpr = x.dtype.primitive_bitwidth
    return x.to(int64 if bits == 64 else (int32 if bits == 32 else int16), bitcast=True)


@composite
def copysign(arg0: Tile, arg1: Tile) -> tensor:
    """``arg0`` with the sign of ``arg1``, also that of a zero or a NaN."""
    y = _as_float(arg1)
    x = to_tensor(arg0).to(y.dtype)
    last: constexpr = y.dtype.primitive_bitwidth - 1
    word = _as_word(x)
    sign = (_as_word(y) >> last) << last
    return (word & ~((word >> last << last) | sign) | sign).to(y.dtype, bitcast=True).to(to_tensor(arg1).dtype)


@composite
def signbit(arg0: Tile) -> tensor:
    """1 where the sign is negative, also of a zero, else 0; int32."""
    return (_as_word(_as_float(arg0)) < 0).to(int32)


@composite
def isnan(arg0: Tile) -> tensor:
    """Whether elements are NaN."""
    x = to_tensor(arg0)
    return to_tensor(x != x)  # noqa: PLR0124 - only a NaN differs from itself


@composite
def isinf(arg0: Tile) -> tensor:
    """Whether elements are infinite."""
    return to_tensor(abs(_as_float(arg0)) == float("inf"))


@composite
def finitef(arg0: Tile) -> tensor:
    """Whether elements are finite."""
    return abs(_as_float(arg0)) < float("inf")


@composite
def isfinited(arg0: Tile) -> tensor:
    """Whether elements are finite."""
    return finitef(arg0)


@composite
def trunc(arg0: Tile) -> tensor:
    """The whole number next to ``x``, towards zero."""
    x = to_tensor(arg0)
    return where(x < 0, ceil(x), floor(x))


@composite
def rint(arg0: Tile) -> tensor:
    """The nearest whole number; of two equally near the even one. Adding 2**23 (float64: 2**52) rounds so, and is taken back."""
    x = _as_float(arg0)
    whole: constexpr = ALL_WHOLE[x.dtype.primitive_bitwidth == 64]
    size = abs(x)
    value = copysign((size + whole) - whole, x)
    return where(size < whole, value, x).to(to_tensor(arg0).dtype)


@composite
def nearbyint(arg0: Tile) -> tensor:
    """As `rint`."""
    return rint(arg0)


@composite
def round(arg0: Tile) -> tensor:
    """The nearest whole number; of two equally near the one away from zero."""
    x = _as_float(arg0)
    below = trunc(x)
    value = where(abs(x - below) >= 0.5, below + copysign(1.0, x), below)
    return where(finitef(x), copysign(value, x), x).to(to_tensor(arg0).dtype)


@composite
def llrint(arg0: Tile) -> tensor:
    """`rint` as int64."""
    return rint(arg0).to(int64)


@composite
def llround(arg0: Tile) -> tensor:
    """`round` as int64."""
    return round(arg0).to(int64)


@composite
def nextafter(arg0: Tile, arg1: Tile) -> tensor:
    """The next float after ``arg0`` in the direction of ``arg1``."""
    x, y = _as_float(arg0), _as_float(arg1)
    static_assert(x.dtype == to_tensor(arg0).dtype, "takes float32 or float64")
    word = _as_word(x)
    up = (x < y) == (x > 0)  # away from zero
    stepped = where(up, word + 1, word - 1).to(x.dtype, bitcast=True)
    least = copysign((word * 0 + 1).to(x.dtype, bitcast=True), y)
    stepped = where(x == 0, least, stepped)
    return where(x == y, y, where(isnan(x) | isnan(y), x + y, stepped))


@composite
def _exponent(x: tensor) -> tensor:
    """floor(log2(abs(x))) of finite x but 0; int32. Subnormals are scaled to normal numbers first."""
    wide: constexpr = x.dtype.primitive_bitwidth == 64
    fraction: constexpr = FRACTION[wide]
    tiny = abs(x) < (2.2250738585072014e-308 if wide else 1.1754943508222875e-38)
    scaled = where(tiny, x * ALL_WHOLE[wide], x)
    return ((_as_word(abs(scaled)) >> fraction) - BIAS[wide]).to(int32) - where(tiny, fraction, 0)


@composite
def ilogb(arg0: Tile) -> tensor:
    """The exponent of the greatest power of 2 that is not above ``abs(x)``; int32. 0 and NaN give the least int32, infinity the
    greatest."""
    x = _as_float(arg0)
    value = where(isinf(x), 2147483647, _exponent(x))
    return where((x == 0) | isnan(x), -2147483648, value)


@composite
def logb(arg0: Tile) -> tensor:
    """`ilogb` as a float; -inf for 0, inf for infinity, NaN for NaN."""
    x = _as_float(arg0)
    value = where(finitef(x), _exponent(x).to(x.dtype), abs(x))
    return where(x == 0, -float("inf"), value).to(to_tensor(arg0).dtype)


@composite
def scalbn(arg0: Tile, arg1: Tile) -> tensor:
    """``x * 2**n``, rounded once. A first factor leaves a normal number where the result is not too small for one."""
    x = _as_float(arg0)
    wide: constexpr = x.dtype.primitive_bitwidth == 64
    most: constexpr = BIAS[wide]
    fraction: constexpr = FRACTION[wide]
    n = to_tensor(arg1).to(int32)
    # Three factors of at most 2**most each; going down, the first two keep the bits of the fraction above the subnormals.
    down: constexpr = most - 1 - fraction
    for _ in static_range(2):
        x = where(n > most, x * _power_of_2(n * 0 + most, x), where(n < 1 - most, x * _power_of_2(n * 0 - down, x), x))
        n = where(n > most, n - most, where(n < 1 - most, n + down, n))
    n = where(n > most, most, where(n < 1 - most, 1 - most, n))
    return (x * _power_of_2(n, x)).to(to_tensor(arg0).dtype)


@composite
def _power_of_2(n: tensor, like: tensor) -> tensor:
    """``2**n`` for an n of a normal number, in the type of ``like``."""
    wide: constexpr = like.dtype.primitive_bitwidth == 64
    word = n.to(int64) if wide else n
    return ((word + BIAS[wide]) << FRACTION[wide]).to(like.dtype, bitcast=True)


@composite
def ldexp(arg0: Tile, arg1: Tile) -> tensor:
    """As `scalbn`."""
    return scalbn(arg0, arg1)
