"""The gamma function and its logarithm, computed in float64 and rounded once to the argument's type.

From 8 on by Stirling's series. Below, a Chebyshev series between 2 and 3 (`series`), and the product that leads there.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from weft.language.compiletime import static_range
from weft.language.core import composite, constexpr
from weft.language.elementwise import abs, exp, fma, log, maximum, meaning, minimum, where
from weft.language.extra.libdevice.bessel import _chebyshev
from weft.language.extra.libdevice.calculus import log1p, sinpi
from weft.language.extra.libdevice.rounding import computed_in_float64, isinf, isnan, rint
from weft.language.extra.libdevice.series import GAMMA, LOG_GAMMA

STIRLING = constexpr(
    (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
)
"""``B(2 k) / (2 k (2 k - 1))``, of Bernoulli's numbers."""
PI = constexpr(3.141592653589793)
LOG_PI = constexpr(1.1447298858494002)
ROOT_2_PI = constexpr(2.5066282746310007)
HALF_LOG_2_PI = constexpr(0.9189385332046728)
BIG = constexpr(8.0)
MOST = constexpr(200.0)
"""The gamma function of 200 is beyond float64, and its reciprocal below."""


@composite
def _stirling(x: Any) -> Any:
    """``log(gamma(x)) - ((x - 1/2) log(x) - x + log(2 pi) / 2)`` for x from 8 on."""
    inverse = 1.0 / x
    square = inverse * inverse
    total = 0.0 * x + STIRLING[8]
    for k in static_range(8):
        total = fma(total, square, STIRLING[7 - k])
    return total * inverse


@composite
def _between(x: Any) -> Any:
    """``x`` from 0 to 8 less a whole number, between 2 and 3 where x is at least 2; and the product of ``x - 1``, ``x - 2``
    and so on down to it."""
    product = 0.0 * x + 1.0
    rest = x
    for _ in static_range(5):
        product = where(rest >= 3.0, product * (rest - 1.0), product)
        rest = where(rest >= 3.0, rest - 1.0, rest)
    return rest, product


@composite
def _gamma(a: Any) -> Any:
    """The gamma function of positive float64, in two factors: neither overflows up to 200."""
    rest, product = _between(minimum(a, BIG))
    # gamma(x) = gamma(x + 1) / x
    divisor = where(rest < 1.0, rest * (rest + 1.0), where(rest < 2.0, rest, 1.0))
    rest = where(rest < 1.0, rest + 2.0, where(rest < 2.0, rest + 1.0, rest))
    near = product * _chebyshev(GAMMA, 2.0 * rest - 5.0)
    x = minimum(maximum(a, BIG), MOST)
    root = meaning("power", x, 0.5 * x - 0.25)
    far = ROOT_2_PI * (root * exp(-x)) * exp(_stirling(x))
    return where(a < BIG, near / divisor, far), where(a < BIG, 1.0, root)


@composite
def _tgamma(x: Any) -> Any:
    """``tgamma`` of float64."""
    a = minimum(abs(x), MOST)
    low, high = _gamma(maximum(a, 1e-300))
    reflected = -PI / (abs(x) * sinpi(abs(x))) / low / high  # gamma(-x) = -pi / (x sin(pi x) gamma(x))
    value = where(x > 0.0, low * high, reflected)
    value = where(abs(x) < 1e-20, 1.0 / x, value)
    whole = meaning("equal", x, rint(x))
    value = where(whole & (x < 0.0), float("nan"), value)
    value = where(meaning("equal", x, float("inf")), x, value)
    return where(isnan(x), x, value)


tgamma = computed_in_float64(_tgamma, "tgamma", "The gamma function; NaN of negative whole numbers.")


@composite
def _log_gamma(a: Any) -> Any:
    """``lgamma`` of positive float64."""
    rest, product = _between(minimum(a, BIG))
    # t is the argument less 2, after a step up where it is below 1.5, and two below 0.5.
    t = where(a < 0.5, a, where(a < 1.5, a - 1.0, rest - 2.0))
    near = t * _chebyshev(LOG_GAMMA, (t - 0.25) / 0.75)
    product = maximum(product, 1.0)
    near = where(a < 3.0, near, near + log(product))
    near = where(a < 1.5, near - log1p(t), near)
    near = where(a < 0.5, near - log(a), near)
    x = maximum(a, BIG)
    far = (x - 0.5) * (log(x) - 1.0) + (HALF_LOG_2_PI - 0.5 + _stirling(x))
    return where(a < BIG, near, far)


@composite
def _lgamma(x: Any) -> Any:
    """``lgamma`` of float64."""
    a = abs(x)
    value = _log_gamma(maximum(a, 1e-300))
    value = where(x > 0.0, value, LOG_PI - log(a) - log(abs(sinpi(a))) - value)
    value = where(a < 1e-20, -log(a), value)
    value = where(x <= -4503599627370496.0, float("inf"), value)  # whole numbers, where both logarithms are infinite
    return where(isinf(x), float("inf"), where(isnan(x), x, value))


lgamma = computed_in_float64(_lgamma, "lgamma", "The logarithm of the absolute value of the gamma function.")
