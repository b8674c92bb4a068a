"""The gamma function and its logarithm, of float32: Lanczos' sum in float64, rounded once."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from weft.dtypes import float32, float64
from weft.language.compiletime import static_assert, static_range
from weft.language.core import composite, constexpr
from weft.language.elementwise import abs, exp, log, maximum, meaning, minimum, where
from weft.language.extra.libdevice.calculus import sinpi
from weft.language.extra.libdevice.rounding import _as_float, isinf, isnan, rint

LANCZOS = constexpr(
    (
        0.9999999999998099,
        676.5203681218851,
        -1259.1392167224028,
        771.3234287776531,
        -176.6150291621406,
        12.507343278686905,
        -0.13857109526572012,
        9.984369578019572e-06,
        1.5056327351493116e-07,
    )
)
"""For ``g = 7`` and nine terms; good for 15 digits."""


@composite
def _single(x: Any) -> Any:
    """float32 and narrower floats as float64."""
    v = _as_float(x)
    static_assert(v.dtype == float32, "takes float32 and narrower floats")
    return v.to(float64)


@composite
def _lanczos(x: Any) -> Any:
    """Lanczos' sum for ``gamma(x + 1)``, for ``x`` from -0.5 on."""
    total = LANCZOS[0] + 0.0 * x
    for n in static_range(8):
        total = total + LANCZOS[n + 1] / (x + (n + 1.0))
    return total


@composite
def tgamma(arg0: Any) -> Any:
    """The gamma function of float32; NaN of negative whole numbers."""
    w = _single(arg0)
    reflected = w < 0.5
    u = maximum(minimum(where(reflected, 1.0 - w, w), 180.0), 0.5) - 1.0
    t = u + 7.5
    root = exp(0.5 * ((u + 0.5) * log(t)))
    value = 2.5066282746310002 * root * (root * exp(-t)) * _lanczos(u)
    turned = 3.141592653589793 / (sinpi(w) * value)
    result = where(reflected, turned, value)
    whole = meaning("equal", w, rint(w))
    result = where(whole & (w < 0.0), float("nan"), result)
    result = where(meaning("equal", w, 0.0), 1.0 / w, result)
    result = where(w < -180.0, where(whole, float("nan"), 0.0 * w), result)
    result = where(meaning("equal", w, float("inf")), w, result)
    return where(isnan(w) | meaning("equal", w, float("-inf")), float("nan"), result).to(float32)


@composite
def lgamma(arg0: Any) -> Any:
    """The logarithm of the absolute value of the gamma function, of float32."""
    w = _single(arg0)
    reflected = w < 0.5
    u = minimum(where(reflected, 1.0 - w, w), 1e300) - 1.0
    t = u + 7.5
    value = 0.91893853320467274178 + (u + 0.5) * log(t) - t + log(_lanczos(u))
    turned = 1.1447298858494001741 - log(abs(sinpi(w))) - value
    result = where(reflected, turned, value)
    return where(isinf(w), float("inf"), result).to(float32)
