"""The complementary error function and its relatives.

``(1 + 2 z) erfcx(z)`` for ``z >= 0`` is a polynomial in ``s = (z - 3.75) / (z + 3.75)``, which lies between -1 and 1 (Shepherd
and Laframboise, "Chebyshev approximation of (1 + 2 x) exp(x^2) erfc x", 1981). It interpolates values of 60 digits in the 26
nodes of Chebyshev; its relative error is 2e-16. Inverses are found by Halley's and Newton's steps. All is computed in float64,
and rounded once to the argument's type.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from weft.dtypes import float64
from weft.language.compiletime import static_range, to_tensor
from weft.language.core import composite, constexpr
from weft.language.elementwise import abs, erf, exp, fma, log, maximum, minimum, sqrt_rn, where
from weft.language.extra.libdevice.rounding import computed_in_float64, copysign, isnan

TERMS = constexpr(
    (
        1.2375126308378275,
        -0.14024059858554702,
        0.0035854154854644583,
        0.08227673849015109,
        -0.10880393014175023,
        0.09230432116019638,
        -0.05869339858961116,
        0.02836227742154398,
        -0.009746579558275152,
        0.0017556258321915355,
        0.0002937136669846131,
        -0.0002901539781378384,
        5.1649093885821704e-05,
        2.238390827660038e-05,
        -1.1444134389658475e-05,
        -9.728413451815077e-07,
        1.7516189406943677e-06,
        -5.827501862768691e-08,
        -2.586489910718322e-07,
        2.4301839484503084e-08,
        3.866242066283792e-08,
        -4.396921916762906e-09,
        -5.169080644815932e-09,
        5.485084520083625e-10,
        4.2433038251096756e-10,
        -3.7980647235900285e-11,
    )
)
HALF_ROOT_PI = constexpr(0.8862269254527580)
ROOT_2 = constexpr(1.4142135623730951)
FAR = constexpr(1e300)
ROOT_HALF = constexpr(0.7071067811865476)
ROOT_HALF_REST = constexpr(-4.833646656726457e-17)
"""What the root of 1/2 is beside `ROOT_HALF`."""
BELOW_1 = constexpr(1.0 - 2.0**-53)
LEAST = constexpr(5e-324)


@composite
def _erfcx(z: Any) -> Any:
    """``exp(z * z) * erfc(z)`` of float64 from 0 on."""
    near = minimum(z, FAR)
    s = (near - 3.75) / (near + 3.75)
    total = TERMS[25] + 0.0 * s
    for n in static_range(25):
        total = fma(total, s, TERMS[24 - n])
    return total / (1.0 + 2.0 * near)


@composite
def _gauss(z: Any) -> Any:
    """``exp(-z * z)`` of float64, with the rounding error of the square taken into account."""
    square = z * z
    rest = fma(z, z, -square)
    return where(square < FAR, exp(-square) * (1.0 - where(square < FAR, rest, 0.0)), 0.0)


@composite
def _erfc(x: Any) -> Any:
    """``erfc`` of float64."""
    a = minimum(abs(x), 100.0)
    value = _erfcx(a) * _gauss(a)
    return where(isnan(x), x, where(x < 0.0, 2.0 - value, value))


@composite
def _erfcx_of_any(x: Any) -> Any:
    """``erfcx`` of float64."""
    a = abs(x)
    value = _erfcx(a)
    b = minimum(a, 100.0)
    turned = 2.0 / _gauss(b) - value
    return where(isnan(x), x, where(x < 0.0, turned, value))


erfc = computed_in_float64(_erfc, "erfc", "``1 - erf(x)``, precise where that is small.")
erfcx = computed_in_float64(_erfcx_of_any, "erfcx", "``exp(x * x) * erfc(x)``.")


@composite
def _inverse(x: Any, q: Any) -> Any:
    """The ``y >= 0`` with ``erf(y) = x`` and ``erfc(y) = q``, where both are known. Up to x = 0.75 by Halley's steps for
    ``erf``; beyond, by Newton's for ``log(erfc(y)) = log(erfcx(y)) - y * y``."""
    logarithm = log(q * (2.0 - q))
    t = 4.3307467508 + 0.5 * logarithm
    far = sqrt_rn(maximum(sqrt_rn(t * t - logarithm * 6.8027210884) - t, 0.0))
    y = where(x < 0.5, HALF_ROOT_PI * x, far)
    for _ in static_range(4):
        error = (x - erf(y)) * HALF_ROOT_PI / _gauss(minimum(y, 2.0))
        scaled = _erfcx(y)
        off = (log(scaled) - y * y) - log(q)
        y = where(x < 0.75, y + error / (1.0 + y * error), y + off * scaled * HALF_ROOT_PI)
    return y


@composite
def _inverse_of_erf(x: Any) -> Any:
    """``erfinv`` of float64."""
    a = abs(x)
    inner = minimum(a, BELOW_1)
    value = _inverse(inner, 1.0 - inner)
    value = where(a < 1.0, value, where(a > 1.0, float("nan"), float("inf")))
    return where(isnan(x), x, copysign(value, x))


@composite
def _inverse_of_erfc(q: Any) -> Any:
    """``erfcinv`` of float64."""
    low = minimum(q, 2.0 - q)
    inner = minimum(maximum(low, to_tensor(0.0).to(float64) + LEAST), 1.0)
    value = _inverse(1.0 - inner, inner)
    value = where(low > 0.0, value, where(low < 0.0, float("nan"), float("inf")))
    return where(isnan(q), q, where(q > 1.0, -value, value))


@composite
def _normcdf(given: Any) -> Any:
    """``normcdf`` of float64: ``erfc(z) / 2`` for ``z = -x / sqrt(2)``.

    What is lost of z when it is rounded would be multiplied by z: ``erfcx`` is corrected by its derivative."""
    x = minimum(maximum(given, -60.0), 60.0)
    a = abs(x)
    z = a * ROOT_HALF
    lost = fma(a, ROOT_HALF, -z) + a * ROOT_HALF_REST
    tail = 0.5 * _gauss(z) * (_erfcx(z) - lost / HALF_ROOT_PI)
    return where(isnan(given), given, where(x < 0.0, tail, 1.0 - tail))


@composite
def _normcdfinv(p: Any) -> Any:
    """``normcdfinv`` of float64."""
    return -ROOT_2 * _inverse_of_erfc(2.0 * p)


erfinv = computed_in_float64(_inverse_of_erf, "erfinv", "The inverse of `erf`; NaN beyond 1.")
erfcinv = computed_in_float64(_inverse_of_erfc, "erfcinv", "The inverse of `erfc`; NaN outside of 0 to 2.")
normcdf = computed_in_float64(_normcdf, "normcdf", "The probability that a standard normal number is at most ``x``.")
normcdfinv = computed_in_float64(_normcdfinv, "normcdfinv", "The inverse of `normcdf`; NaN outside of 0 to 1.")
