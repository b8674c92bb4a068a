"""Bessel functions. All are computed in float64 and rounded once to the argument's type.

Orders 0 and 1 are Chebyshev series (`series`): up to 8 of ``x * x``, beyond it of ``1 / (x * x)`` in Hankel's expansion. Other
orders follow by recurrence: upwards where that is stable, else downwards from an order whose value does not matter (J. C. P.
Miller).
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from weft.dtypes import float64, int32
from weft.language.compiletime import static_assert, static_range, to_tensor
from weft.language.core import composite, constexpr
from weft.language.elementwise import abs, cos, exp, fma, log, maximum, meaning, minimum, sin, sqrt_rn, where
from weft.language.extra.libdevice.rounding import _widest, computed_in_float64, copysign, isnan
from weft.language.extra.libdevice.series import I0, I0_FAR, I1, I1_FAR, J0, J1, P0, P1, Q0, Q1, Y0, Y1
from weft.language.reduction import max

INFINITY = constexpr(float("inf"))
NAN = constexpr(float("nan"))
NEAR = constexpr(8.0)
PI = constexpr(3.141592653589793)
TWO_OVER_PI = constexpr(0.6366197723675814)


@composite
def _chebyshev(terms: Any, t: Any) -> Any:
    """The sum of ``terms[k] T_k(t)`` for float64 between -1 and 1 (Clenshaw)."""
    twice = t + t
    above = 0.0 * t
    total = above + terms[len(terms) - 1]
    for k in static_range(len(terms) - 2):
        above, total = total, fma(twice, total, terms[len(terms) - 2 - k] - above)
    return fma(t, total, terms[0] - above)


@composite
def _hankel(p: Any, q: Any, a: Any, order: Any, second: Any) -> Any:
    """``J`` of order 0 or 1, or ``Y``, for ``a`` from 8 on."""
    x = maximum(a, NEAR)
    inverse = NEAR / x
    t = 2.0 * inverse * inverse - 1.0
    even, odd = _chebyshev(p, t), _chebyshev(q, t) / x
    s, c = sin(x), cos(x)
    plus, minus = c + s, s - c
    if order == 0:
        value = even * minus + odd * plus if second else even * plus - odd * minus
    else:
        value = odd * minus - even * plus if second else even * minus + odd * plus
    return where(a < INFINITY, value / sqrt_rn(x * PI), 0.0)


@composite
def _square(a: Any) -> Any:
    """The argument of a series of ``x * x`` up to 8."""
    x = minimum(a, NEAR)
    return x * x * 0.03125 - 1.0


@composite
def _j0(x: Any) -> Any:
    """``j0`` of float64."""
    a = abs(x)
    value = where(a < NEAR, _chebyshev(J0, _square(a)), _hankel(P0, Q0, a, 0, False))
    return where(isnan(x), x, where(a < 1e-8, 1.0, value))


@composite
def _j1(x: Any) -> Any:
    """``j1`` of float64."""
    a = abs(x)
    value = where(a < NEAR, a * _chebyshev(J1, _square(a)), _hankel(P1, Q1, a, 1, False))
    return where(isnan(x), x, where(x < 0.0, -value, where(a > 0.0, value, x)))


@composite
def _y0(x: Any) -> Any:
    """``y0`` of float64."""
    square = _square(x)
    near = fma(TWO_OVER_PI * log(x), _chebyshev(J0, square), _chebyshev(Y0, square))
    value = where(x < NEAR, near, _hankel(P0, Q0, x, 0, True))
    return _where_positive(x, value)


@composite
def _y1(x: Any) -> Any:
    """``y1`` of float64."""
    square = _square(x)
    some = minimum(x, NEAR)
    near = fma(TWO_OVER_PI, log(x) * some * _chebyshev(J1, square) - 1.0 / some, some * _chebyshev(Y1, square))
    value = where(x < NEAR, near, _hankel(P1, Q1, x, 1, True))
    return _where_positive(x, value)


@composite
def _where_positive(x: Any, value: Any) -> Any:
    """A function of the second kind: -inf at 0, NaN below it and of NaN."""
    return where(x > 0.0, value, where(meaning("equal", x, 0.0), -INFINITY, NAN))


j0 = computed_in_float64(_j0, "j0", "The Bessel function of the first kind and order 0.")
j1 = computed_in_float64(_j1, "j1", "The Bessel function of the first kind and order 1.")
y0 = computed_in_float64(_y0, "y0", "The Bessel function of the second kind and order 0; NaN below 0.")
y1 = computed_in_float64(_y1, "y1", "The Bessel function of the second kind and order 1; NaN below 0.")


@composite
def _greatest(n: Any) -> Any:
    """The greatest element of a tile, or the scalar."""
    return max(n, None) if n.numel > 1 else n.item()


@composite
def _order(arg0: Any, x: Any) -> Any:
    """The order as int32, in the shape of ``x``."""
    n = to_tensor(arg0)
    static_assert(n.dtype.is_int(), "takes an order of int32")
    return where(isnan(x), 0, 0) + n.to(int32)


@composite
def _upwards(n: Any, x: Any, first: Any, second: Any) -> Any:
    """Order ``n``, where orders 0 and 1 are given: ``B(k + 1) = 2 k / x B(k) - B(k - 1)``. What has overflowed stays."""
    before, value = first, second
    for k in range(1, _greatest(n)):
        following = where(value > -INFINITY, fma(2.0 * k / x, value, -before), value)
        before, value = where(k < n, value, before), where(k < n, following, value)
    return where(n > 0, value, first)


@composite
def _downwards(n: Any, x: Any) -> Any:
    """``J`` of order ``n`` for x of at most ``n``. From an order far above, whose value is taken for 1, the recurrence goes down
    to order 0. The values have the ratio of Bessel functions, of which ``J0 + 2 J2 + 2 J4 + .. = 1``."""
    start = 2 * ((n + sqrt_rn(160.0 * n.to(float64)).to(int32)) // 2) + 2
    above, value, wanted, total = 0.0 * x, 0.0 * x, 0.0 * x, 0.0 * x
    top = _greatest(start)
    for step in range(0, top):
        k = top - step
        value = where(meaning("equal", start, k), 1.0, value)
        following = fma(2.0 * k / x, value, -above)
        above, value = value, following
        large = abs(value) > 1e250
        shrink = where(large, to_tensor(1.0).to(float64) * TINY, 1.0)
        above, value, wanted, total = above * shrink, value * shrink, wanted * shrink, total * shrink
        total = total + where(k % 2 == 1, value, 0.0)
        wanted = where(meaning("equal", n, k - 1), value, wanted)
    return wanted / (2.0 * total - value)


TINY = constexpr(1e-250)


@composite
def jn(arg0: Any, arg1: Any) -> Any:
    """The Bessel function of the first kind and order ``arg0``, of int32; NaN below order 0. Time grows with the order."""
    x = _widest(arg1)
    n = _order(arg0, x)
    a = abs(x)
    zeroth, first = _j0(a), _j1(a)
    rises = n.to(float64) < a
    up = _upwards(where(rises, n, 0), maximum(a, 1e-30), zeroth, first)
    falls = ~rises & (n > 1)
    down = _downwards(where(falls, n, 2), where(falls, maximum(a, 1e-100), 1.0))
    value = where(rises, up, where(a < 1e-100, 0.0, down))
    value = where(n == 0, zeroth, where(n == 1, first, value))
    value = where(isnan(x), x, where(n < 0, NAN, where(meaning("equal", a, INFINITY), 0.0, value)))
    return where((x < 0.0) & (n % 2 == 1), -value, value).to(to_tensor(arg1).dtype)


@composite
def yn(arg0: Any, arg1: Any) -> Any:
    """The Bessel function of the second kind and order ``arg0``, of int32; NaN below order 0, and of negative numbers. Time grows
    with the order."""
    x = _widest(arg1)
    n = _order(arg0, x)
    value = _upwards(n, where(x > 0.0, x, 1.0), _y0(x), _y1(x))
    value = where(meaning("equal", x, INFINITY), 0.0, _where_positive(x, value))
    return where(n < 0, NAN, value).to(to_tensor(arg1).dtype)


@composite
def _modified(near: Any, far: Any, x: Any) -> Any:
    """``I`` for float64 from 0 on: series up to 8 and beyond, times ``exp(x)``, in two factors where that overflows."""
    low = _chebyshev(near, minimum(x, NEAR) * 0.25 - 1.0)
    some = minimum(maximum(x, NEAR), 1e4)
    high = _chebyshev(far, 2.0 * NEAR / some - 1.0) / sqrt_rn(some)
    root = exp(0.5 * minimum(x, 1e4))
    return where(x < NEAR, exp(minimum(x, NEAR)) * low, root * (root * high))


@composite
def _i0(x: Any) -> Any:
    """``cyl_bessel_i0`` of float64."""
    a = abs(x)
    return where(isnan(a), a, _modified(I0, I0_FAR, a))


@composite
def _i1(x: Any) -> Any:
    """``cyl_bessel_i1`` of float64."""
    a = abs(x)
    value = _modified(I1, I1_FAR, a)
    value = where(a < NEAR, value * (a / (a + 1.0)), value)
    return where(isnan(x) | meaning("equal", x, 0.0), x, copysign(value, x))


cyl_bessel_i0 = computed_in_float64(_i0, "cyl_bessel_i0", "The modified Bessel function of the first kind and order 0.")
cyl_bessel_i1 = computed_in_float64(_i1, "cyl_bessel_i1", "The modified Bessel function of the first kind and order 1.")
