"""Writes the Chebyshev series of src/weft/language/extra/libdevice/series.py, and tests/golden/special_functions.txt.

    python tools/special_functions.py

Needs mpmath, which weft does not: run it in an environment of its own. Each function is interpolated, with 60 digits, in
Chebyshev's nodes; terms below 2**-58 of the greatest are left out. A line of the second file is ``function x value``, with the
order before x for `jn` and `yn`, in C99 hexadecimal; the value is the nearest float64.
"""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

PAGE = Path(__file__).parents[1] / "src/weft/language/extra/libdevice/series.py"
GOLDEN = Path(__file__).parents[1] / "tests/golden/special_functions.txt"
NODES = 48

m: Any = importlib.import_module("mpmath")
m.mp.dps = 60


def phase(order: int, x: Any) -> Any:
    """``P + i Q`` of Hankel's expansion, where ``J + i Y = sqrt(2 / (pi x)) (P + i Q) exp(i (x - (2 order + 1) pi / 4))``."""
    angle = x - (2 * order + 1) * m.pi / 4
    return (m.besselj(order, x) + 1j * m.bessely(order, x)) * m.exp(-1j * angle) * m.sqrt(m.pi * x / 2)


def near(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of ``t``, where ``x * x = 32 (t + 1)``."""
    return lambda t: function(m.sqrt(32 * (t + 1)))


def far(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of ``t``, where ``64 / (x * x) = (t + 1) / 2``."""
    return lambda t: function(8 * m.sqrt(2 / (t + 1)))


def two_over_pi_log(order: int, x: Any) -> Any:
    return 2 / m.pi * m.log(x) * m.besselj(order, x)


ROWS: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("J0", "j0(x), x * x = 32 (t + 1)", near(lambda x: m.besselj(0, x))),
    ("J1", "j1(x) / x", near(lambda x: m.besselj(1, x) / x)),
    ("Y0", "y0(x) - 2 / pi log(x) j0(x)", near(lambda x: m.bessely(0, x) - two_over_pi_log(0, x))),
    (
        "Y1",
        "(y1(x) - 2 / pi (log(x) j1(x) - 1 / x)) / x",
        near(lambda x: (m.bessely(1, x) - two_over_pi_log(1, x) + 2 / (m.pi * x)) / x),
    ),
    ("P0", "Hankel's P of order 0, 128 / (x * x) = t + 1", far(lambda x: m.re(phase(0, x)))),
    ("Q0", "x times Hankel's Q of order 0", far(lambda x: m.im(phase(0, x)) * x)),
    ("P1", "P of order 1", far(lambda x: m.re(phase(1, x)))),
    ("Q1", "x times Q of order 1", far(lambda x: m.im(phase(1, x)) * x)),
    ("I0", "exp(-x) i0(x), x = 4 (t + 1)", lambda t: m.exp(-4 * (t + 1)) * m.besseli(0, 4 * (t + 1))),
    (
        "I1",
        "exp(-x) i1(x) (x + 1) / x",
        lambda t: m.exp(-4 * (t + 1)) * m.besseli(1, 4 * (t + 1)) * (1 + 1 / (4 * t + 4)),
    ),
    ("I0_FAR", "exp(-x) i0(x) sqrt(x), 16 / x = t + 1", lambda t: i_far(0, 16 / (t + 1))),
    ("I1_FAR", "exp(-x) i1(x) sqrt(x)", lambda t: i_far(1, 16 / (t + 1))),
    ("GAMMA", "gamma(x), x = 2.5 + t / 2", lambda t: m.gamma(2.5 + t / 2)),
    ("LOG_GAMMA", "log(gamma(x)) / (x - 2), x = 2.25 + 3 t / 4", lambda t: log_gamma(0.25 + 3 * t / 4)),
]


def i_far(order: int, x: Any) -> Any:
    return m.exp(-x) * m.besseli(order, x) * m.sqrt(x)


def log_gamma(t: Any) -> Any:
    return m.loggamma(2 + t) / t


def coefficients(function: Callable[[Any], Any]) -> list[float]:
    """The sum of ``c[k] T_k(t)`` is near ``function(t)``."""
    angles = [m.pi * (j + m.mpf("0.5")) / NODES for j in range(NODES)]
    values = [function(m.cos(angle)) for angle in angles]
    found: list[Any] = [
        2 * m.fsum(v * m.cos(k * a) for v, a in zip(values, angles, strict=True)) / NODES for k in range(NODES)
    ]
    found[0] /= 2
    least = max(abs(c) for c in found) * m.mpf(2) ** -58
    while abs(found[-1]) < least:
        found.pop()
    return [float(c) for c in found]


def inverse_erfc(q: Any) -> Any:
    """The solution of ``erfc(y) = q``."""
    if q > m.mpf("1e-9"):
        return m.erfinv(1 - q)

    def difference(y: Any) -> Any:
        return m.log(m.erfc(y)) - m.log(q)

    return m.findroot(difference, m.sqrt(-m.log(q)))


R: Final = random.Random(0)


def sizes(low: float, high: float, count: int = 16) -> list[float]:
    """Numbers of all magnitudes between two."""
    return [10.0 ** R.uniform(math.log10(low), math.log10(high)) for _ in range(count)]


def evenly(low: float, high: float, count: int = 16) -> list[float]:
    """Numbers between two."""
    return [R.uniform(low, high) for _ in range(count)]


POINTS: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "j0": (lambda x: m.besselj(0, x), evenly(-8, 8) + evenly(8, 40) + sizes(1e-12, 1e6)),
    "j1": (lambda x: m.besselj(1, x), evenly(-8, 8) + evenly(8, 40) + sizes(1e-12, 1e6)),
    "y0": (lambda x: m.bessely(0, x), evenly(0, 8) + evenly(8, 40) + sizes(1e-12, 1e6)),
    "y1": (lambda x: m.bessely(1, x), evenly(0, 8) + evenly(8, 40) + sizes(1e-12, 1e6)),
    "cyl_bessel_i0": (lambda x: m.besseli(0, x), evenly(-8, 8) + evenly(8, 713) + sizes(1e-12, 1)),
    "cyl_bessel_i1": (lambda x: m.besseli(1, x), evenly(-8, 8) + evenly(8, 713) + sizes(1e-12, 1)),
    "tgamma": (m.gamma, evenly(0, 9) + evenly(8, 171.6) + evenly(-170, 0) + sizes(1e-300, 1)),
    "lgamma": (
        lambda x: m.re(m.loggamma(x)),
        evenly(0, 3)
        + evenly(3, 20)
        + sizes(8, 1e305)
        + [1 + x for x in sizes(1e-15, 0.1)]
        + [2 - x for x in sizes(1e-15, 0.1)],
    ),
    "erfinv": (m.erfinv, evenly(-1, 1) + [1 - x for x in sizes(1e-15, 0.1)] + sizes(1e-300, 1)),
    "erfcinv": (inverse_erfc, evenly(0, 2) + sizes(1e-300, 0.5)),
    "normcdf": (lambda x: m.erfc(-x / m.sqrt(2)) / 2, evenly(-37, 0, 32) + evenly(0, 8)),
    "normcdfinv": (lambda p: -m.sqrt(2) * inverse_erfc(2 * p), evenly(0, 1) + sizes(1e-300, 0.5)),
}
ORDERS: Final = [
    *((n, x) for n in (0, 1, 2, 3, 5, 10, 31, 100) for x in (0.3 * n + 0.2, n + 0.5, 3.0 * n + 7)),
    *((82, 0.48130337), (97, 97.573254), (120, 0.94995032), (122, 126.524302)),  # where a rounded 2 / x counts most
]


def golden() -> Iterator[str]:
    for name, (function, points) in POINTS.items():
        for x in points:
            yield f"{name} {x.hex()} {float(m.re(function(m.mpf(x)))).hex()}"
    for name, function in (("jn", m.besselj), ("yn", m.bessely)):
        for n, x in ORDERS:
            yield f"{name} {n} {x.hex()} {float(m.re(function(n, m.mpf(x)))).hex()}"


def main() -> None:
    lines = ['"""Chebyshev series of special functions, written by tools/special_functions.py: do not edit."""\n']
    lines.append("from weft.language.core import constexpr")
    for name, what, function in ROWS:
        terms = "".join(f"        {c!r},\n" for c in coefficients(function))
        lines.append(f'\n{name} = constexpr(\n    (\n{terms}    )\n)\n"""{what}"""')
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    GOLDEN.write_text("\n".join(golden()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
