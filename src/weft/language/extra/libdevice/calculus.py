"""Functions of floats. float32 and float64 are computed in their own type, narrower floats in float32 and rounded once.

Errors, in units of the last place of the result, stand in ``tests/language/test_libdevice.py``. On GPUs the float32 exponential
is an approximation (docs/nvidia.md), and what is made of it has its error for large arguments.
"""

# pyright: reportUnnecessaryComparison=false, reportPrivateUsage=false

from __future__ import annotations

from weft.dtypes import float64
from weft.language.compiletime import static_assert, to_tensor
from weft.language.core import Tile, composite, constexpr, tensor
from weft.language.elementwise import (
    abs,
    cos,
    div_rn,
    exp,
    floor,
    fma,
    log,
    maximum,
    meaning,
    minimum,
    sin,
    sqrt_rn,
    where,
)
from weft.language.extra.libdevice.rounding import _as_float, copysign, isnan, rint

LN_2 = constexpr(0.6931471805599453)
PI = constexpr(3.141592653589793)
SMALL_SQUARE = constexpr(float(1 << 28))
"""From here on ``x * x + 1`` is ``x * x`` in float64, and so in float32."""
NO_RECIPROCAL = constexpr(20.0)
"""From here on ``exp(-x)`` is lost beside ``exp(x)``."""


@composite
def tan(arg0: Tile) -> tensor:
    """The tangent of radians."""
    return meaning("tan", arg0)


@composite
def _other_leg(x: tensor) -> tensor:
    """``sqrt(1 - x * x)``. From 1/2 on the square is taken as ``(1 - x) * (1 + x)``, whose first factor is exact; below, the
    factors would be rounded twice where ``x * x`` is rounded once, and is small."""
    square = where(abs(x) < 0.5, 1 - x * x, (1 - abs(x)) * (1 + abs(x)))
    return sqrt_rn(square)


@composite
def asin(arg0: Tile) -> tensor:
    """The angle of a sine: ``atan2(x, sqrt(1 - x * x))``."""
    x = _as_float(arg0)
    return meaning("atan2", x, _other_leg(x)).to(to_tensor(arg0).dtype)


@composite
def acos(arg0: Tile) -> tensor:
    """The angle of a cosine, from 0 to pi."""
    x = _as_float(arg0)
    return meaning("atan2", _other_leg(x), x).to(to_tensor(arg0).dtype)


@composite
def atan(arg0: Tile) -> tensor:
    """The angle of a tangent."""
    return meaning("atan2", to_tensor(arg0), 1.0)


@composite
def atan2(arg0: Tile, arg1: Tile) -> tensor:
    """The angle of the point with the ordinate ``arg0`` and the abscissa ``arg1``."""
    return meaning("atan2", to_tensor(arg0), to_tensor(arg1))


@composite
def sinpi(arg0: Tile) -> tensor:
    """``sin(pi x)``, exact at multiples of 1/2."""
    x = _as_float(arg0)
    return _turned(x, 0, x).to(to_tensor(arg0).dtype)


@composite
def cospi(arg0: Tile) -> tensor:
    """``cos(pi x)``, exact at multiples of 1/2."""
    x = _as_float(arg0)
    return _turned(x, 1, abs(x)).to(to_tensor(arg0).dtype)


@composite
def _turned(x: tensor, quarter: int | constexpr, zero: tensor) -> tensor:
    """``sin(pi (x + quarter / 2))``: periods and the nearest multiple of 1/2 are taken off, which is exact. A 0
    has the sign of ``zero``."""
    within = x - 2 * rint(x * 0.5)
    halves = rint(within + within)
    rest = (within - 0.5 * halves) * PI
    turn = halves + quarter
    turn = turn - 4 * floor(turn * 0.25)
    value = where((turn == 1) | (turn == 3), cos(rest), sin(rest))
    value = where(turn >= 2, -value, value)
    return where(value == 0, copysign(value, zero), value)


@composite
def expm1(arg0: Tile) -> tensor:
    """``exp(x) - 1``. W. Kahan's method: ``u = exp(x)`` may be off, but then ``log(u)`` is the ``x`` it belongs to."""
    x = _as_float(arg0)
    u = exp(x)
    value = where(u == 1, x, (u - 1) * div_rn(x, log(u)))
    value = where(u - 1 == -1, -1.0, value)
    return where(u == float("inf"), u, value).to(to_tensor(arg0).dtype)


@composite
def log1p(arg0: Tile) -> tensor:
    """``log(1 + x)``."""
    return meaning("log1p", arg0)


@composite
def log10(arg0: Tile) -> tensor:
    """The logarithm to base 10; exact for powers of 10."""
    return meaning("log10", arg0)


@composite
def exp10(arg0: Tile) -> tensor:
    """10 to the power of ``arg0``."""
    return meaning("power", 10.0, to_tensor(arg0))


@composite
def sinh(arg0: Tile) -> tensor:
    """The hyperbolic sine. Large arguments: half of ``exp(x / 2)`` squared, which overflows where the result does."""
    x = _as_float(arg0)
    size = abs(x)
    t = expm1(minimum(size, NO_RECIPROCAL))
    root = exp(size * 0.5)
    value = where(size < NO_RECIPROCAL, 0.5 * (t + div_rn(t, t + 1)), 0.5 * root * root)
    return copysign(where(isnan(x), x, value), x).to(to_tensor(arg0).dtype)


@composite
def cosh(arg0: Tile) -> tensor:
    """The hyperbolic cosine."""
    x = _as_float(arg0)
    size = abs(x)
    e = exp(minimum(size, NO_RECIPROCAL))
    root = exp(size * 0.5)
    value = where(size < NO_RECIPROCAL, 0.5 * e + div_rn(0.5, e), 0.5 * root * root)
    return where(isnan(x), x, value).to(to_tensor(arg0).dtype)


@composite
def asinh(arg0: Tile) -> tensor:
    """The inverse of `sinh`: ``log(x + sqrt(x * x + 1))``."""
    x = _as_float(arg0)
    size = abs(x)
    some = minimum(size, SMALL_SQUARE)
    square = some * some
    near = log1p(some + div_rn(square, 1 + sqrt_rn(square + 1)))
    value = where(size < SMALL_SQUARE, near, log(size) + LN_2)
    return copysign(where(isnan(x), x, value), x).to(to_tensor(arg0).dtype)


@composite
def acosh(arg0: Tile) -> tensor:
    """The inverse of `cosh`, from 0 on; NaN below 1."""
    x = _as_float(arg0)
    t = minimum(x, SMALL_SQUARE) - 1
    value = where(x < SMALL_SQUARE, log1p(t + sqrt_rn(t * (t + 2))), log(x) + LN_2)
    return where(x >= 1, value, float("nan")).to(to_tensor(arg0).dtype)


@composite
def atanh(arg0: Tile) -> tensor:
    """The inverse of `tanh`; NaN beyond 1."""
    x = _as_float(arg0)
    size = abs(x)
    return copysign(0.5 * log1p(div_rn(2 * size, 1 - size)), x).to(to_tensor(arg0).dtype)


@composite
def cbrt(arg0: Tile) -> tensor:
    """The cube root."""
    return meaning("cbrt", arg0)


@composite
def rcbrt(arg0: Tile) -> tensor:
    """``1 / cbrt(x)``."""
    x = _as_float(arg0)
    return div_rn(1.0, meaning("cbrt", x)).to(to_tensor(arg0).dtype)


@composite
def pow(arg0: Tile, arg1: Tile) -> tensor:
    """``arg0`` to the power of ``arg1``, which may be an integer."""
    x, y = to_tensor(arg0), to_tensor(arg1)
    static_assert(x.dtype.is_floating(), "takes a base of floats")
    if y.dtype.is_int():  # float64 has all int32: whether the exponent is odd is not lost
        return meaning("power", x.to(float64), y.to(float64)).to(x.dtype)
    return meaning("power", x, y.to(x.dtype))


@composite
def fmod(arg0: Tile, arg1: Tile) -> tensor:
    """The rest of a division rounded towards zero, exact; it has the sign of ``arg0``."""
    return meaning("truncate_remainder", to_tensor(arg0), to_tensor(arg1))


@composite
def remainder(arg0: Tile, arg1: Tile) -> tensor:
    """The rest of a division rounded to nearest even, exact (IEEE 754)."""
    x, y = _as_float(arg0), _as_float(arg1)
    b = abs(y)
    rest = meaning("truncate_remainder", abs(x), b + b)  # exact, and the sum may be infinite
    above = where(b < 1, rest + rest > b, rest > 0.5 * b)  # neither 2 * rest nor b / 2 is rounded
    rest = where(above, rest - b, rest)
    above = above & where(b < 1, rest + rest >= b, rest >= 0.5 * b)
    rest = where(above, rest - b, rest)
    rest = where(y == 0, float("nan"), rest)
    return where(copysign(1.0, x) < 0, -rest, rest).to(to_tensor(arg0).dtype)


@composite
def fdim(arg0: Tile, arg1: Tile) -> tensor:
    """``x - y`` where that is positive, else 0."""
    x, y = to_tensor(arg0), to_tensor(arg1)
    return where(x <= y, 0.0, x - y)


@composite
def saturatef(arg0: Tile) -> tensor:
    """``x`` limited to 0 and 1; NaN becomes 0."""
    return minimum(maximum(to_tensor(arg0), 0.0), 1.0)


@composite
def hypot(arg0: Tile, arg1: Tile) -> tensor:
    """``sqrt(x * x + y * y)``, where no square overflows."""
    return norm4d(arg0, arg1, 0.0, 0.0)


@composite
def rhypot(arg0: Tile, arg1: Tile) -> tensor:
    """``1 / hypot(x, y)``."""
    return div_rn(1.0, hypot(_as_float(arg0), _as_float(arg1))).to(to_tensor(arg0).dtype)


@composite
def norm3d(arg0: Tile, arg1: Tile, arg2: Tile) -> tensor:
    """The length of a vector of 3 components."""
    return norm4d(arg0, arg1, arg2, 0.0)


@composite
def rnorm3d(arg0: Tile, arg1: Tile, arg2: Tile) -> tensor:
    """``1 / norm3d(x, y, z)``."""
    return div_rn(1.0, norm3d(_as_float(arg0), arg1, arg2)).to(to_tensor(arg0).dtype)


@composite
def norm4d(arg0: Tile, arg1: Tile, arg2: Tile, arg3: Tile) -> tensor:
    """The length of a vector of 4 components, in units of the greatest; infinite where a component is."""
    x = abs(_as_float(arg0))
    y, z, w = abs(to_tensor(arg1).to(x.dtype)), abs(to_tensor(arg2).to(x.dtype)), abs(to_tensor(arg3).to(x.dtype))
    greatest = maximum(maximum(x, y), maximum(z, w))
    unit = where((greatest == 0) | (greatest == float("inf")), 1.0, greatest)
    x, y, z, w = div_rn(x, unit), div_rn(y, unit), div_rn(z, unit), div_rn(w, unit)
    length = unit * sqrt_rn(fma(x, x, fma(y, y, fma(z, z, w * w))))
    return where(greatest == float("inf"), greatest, length).to(to_tensor(arg0).dtype)


@composite
def rnorm4d(arg0: Tile, arg1: Tile, arg2: Tile, arg3: Tile) -> tensor:
    """``1 / norm4d(x, y, z, w)``."""
    return div_rn(1.0, norm4d(_as_float(arg0), arg1, arg2, arg3)).to(to_tensor(arg0).dtype)
