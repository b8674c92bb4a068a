"""Derives the coefficients of `weft.codegen.llvm.vecmath` and writes them to ``src/weft/codegen/llvm/coefficients.py``.

Run ``python tools/minimax.py`` in the repository's root. Needs mpmath (``pip install mpmath``), which weft itself does not.

Each fit is a polynomial ``p(t)`` for a function ``g(t)`` on an interval, whose weighted error ``weight(t) (p(t) - g(t))``
is small everywhere; with the weights below that is the relative error of the whole function. The fit is a least-squares
one at Chebyshev nodes, reweighted by its own error until that is level (C. L. Lawson, 1961). Rounding the coefficients
afterwards would lose the last bits, so they are rounded one after the other, the lowest and most influential first, and
the others are fitted again each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp

mp.mp.dps = 80

TARGET = Path(__file__).parent.parent / "src/weft/codegen/llvm/coefficients.py"
Function = Callable[[mp.mpf], mp.mpf]
LN2, PI = mp.log(2), mp.pi
ROOT = mp.sqrt(mp.mpf(1) / 2)


@dataclass(frozen=True)
class Fit:
    """``g`` on ``[low, high]`` by a polynomial of ``degree`` with coefficients of ``bits`` significant bits."""

    name: str
    text: str
    g: Function
    low: mp.mpf
    high: mp.mpf
    degree: int
    weight: Function
    bits: int


def off_zero(function: Function) -> Function:
    """``function`` with its removable singularity at 0 filled in from nearby."""
    least = mp.mpf("1e-20")
    return lambda t: function(t if abs(t) > least else least)


def rounded(value: mp.mpf, bits: int) -> mp.mpf:
    """``value`` to ``bits`` significant bits, to nearest."""
    with mp.workprec(bits):
        return +value


def solve(fit: Fit, nodes: list[mp.mpf], weights: list[mp.mpf], fixed: list[mp.mpf]) -> list[mp.mpf]:
    """The least-squares coefficients from ``len(fixed)`` on, given the lower ones."""
    first = len(fixed)
    count = fit.degree + 1 - first
    rows = [[w * t**k for k in range(first, fit.degree + 1)] for t, w in zip(nodes, weights, strict=True)]
    rest = [w * (fit.g(t) - mp.polyval(fixed[::-1] or [0], t)) for t, w in zip(nodes, weights, strict=True)]
    normal = mp.matrix(count, count)
    right = mp.matrix(count, 1)
    for row, value in zip(rows, rest, strict=True):
        for i in range(count):
            right[i] += row[i] * value
            for j in range(count):
                normal[i, j] += row[i] * row[j]
    return [*fixed, *mp.lu_solve(normal, right)]


def error(fit: Fit, coefficients: list[mp.mpf], t: mp.mpf) -> mp.mpf:
    """The weighted error at ``t``."""
    return fit.weight(t) * (mp.polyval(coefficients[::-1], t) - fit.g(t))


def minimax(fit: Fit, rounds: int = 12) -> tuple[list[mp.mpf], mp.mpf]:
    """Rounded coefficients, the lowest first, and the largest weighted error on a dense grid."""
    count = 6 * (fit.degree + 2)
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    nodes = [middle + half * mp.cos(PI * (2 * i + 1) / (2 * count)) for i in range(count)]
    lawson = [mp.mpf(1)] * count
    base = [fit.weight(t) for t in nodes]
    for _ in range(rounds):
        current = [b * mp.sqrt(x) for b, x in zip(base, lawson, strict=True)]
        coefficients = solve(fit, nodes, current, [])
        errors = [abs(error(fit, coefficients, t)) for t in nodes]
        total = sum(x * e for x, e in zip(lawson, errors, strict=True))
        lawson = [x * e / total * count for x, e in zip(lawson, errors, strict=True)]
    fixed: list[mp.mpf] = []
    while len(fixed) <= fit.degree:
        fixed.append(rounded(solve(fit, nodes, current, fixed)[len(fixed)], fit.bits))
    grid = (fit.low + (fit.high - fit.low) * i / 400 for i in range(401))
    return fixed, max(abs(error(fit, fixed, t)) for t in grid)


def split(value: mp.mpf, bits: int, parts: int) -> list[mp.mpf]:
    """``value`` as an unevaluated sum of ``parts`` numbers of ``bits`` significant bits."""
    result: list[mp.mpf] = []
    for _ in range(parts):
        result.append(rounded(value, bits))
        value -= result[-1]
    return result


def fits(bits: int) -> list[Fit]:
    """What one format needs; the degrees are the least whose error is well below half a unit in the last place."""
    single = bits == 24
    root, eighth = mp.sqrt, (PI / 4) ** 2 * mp.mpf("1.001")
    half_ln2 = LN2 / 2 * mp.mpf("1.0001")
    low_f, high_f = ROOT - 1, 1 / ROOT - 1
    center = mp.mpf("2.5")

    def inverse(t: mp.mpf) -> mp.mpf:
        return 1 / t - 2

    # Name, what it is, the function, its interval, the degrees for float32 and float64 (0: not used), the weight.
    rows = [
        ("EXPM1", "(exp(r) - 1 - r) / r^2", lambda r: (mp.expm1(r) - r) / r**2,
         -half_ln2, half_ln2, (4, 10), lambda r: r**2 / mp.expm1(r)),
        ("EXP2", "(2^r - 1) / r", lambda r: mp.expm1(r * LN2) / r,
         "-0.50005", "0.50005", (5, 11), lambda r: r),
        ("LOG", "(log(1 + f) - f + f^2 / 2) / f^3", lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3,
         low_f, high_f, (7, 0), lambda f: f**3 / mp.log1p(f)),
        ("LOG", "(log((1 + s) / (1 - s)) / s - 2) / s^2 in s^2", lambda z: (2 * mp.atanh(root(z)) / root(z) - 2) / z,
         0, "0.02945", (0, 6), lambda z: z / 2),
        ("LOG2", "(log2(1 + f) / f - log2(e)) / f", lambda f: (mp.log1p(f) / f - 1) / LN2 / f,
         low_f, high_f, (8, 0), lambda f: f**2 * LN2 / mp.log1p(f)),
        ("SIN", "(sin(r) - r) / r^3 in r^2", lambda z: (mp.sin(root(z)) / root(z) - 1) / z,
         0, eighth, (2, 6), lambda z: z * root(z) / mp.sin(root(z))),
        ("COS", "(cos(r) - 1 + r^2 / 2) / r^4 in r^2", lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2,
         0, eighth, (2, 5), lambda z: z**2 / mp.cos(root(z))),
        ("TANH", "(tanh(x) / x - 1) / x^2 in x^2", lambda z: (mp.tanh(root(z)) / root(z) - 1) / z,
         0, "0.3026", (4, 9), lambda z: z * root(z) / mp.tanh(root(z))),
        ("ERF_SMALL", "erf(x) / x - 1 in x^2", lambda z: mp.erf(root(z)) / root(z) - 1,
         0, 1, (6, 11), lambda z: root(z) / mp.erf(root(z))),
        ("ERF_LARGE", "erf(x) in x - 5/2", lambda u: mp.erf(u + center),
         1 - center, 4 - center, (15, 0), lambda u: mp.mpf(1)),
        ("ERFC", "erfc(x) exp(x^2) in 1 / (x + 2)", lambda t: mp.erfc(inverse(t)) * mp.exp(inverse(t) ** 2),
         mp.mpf(1) / 8, mp.mpf(1) / 3, (0, 13), lambda t: mp.exp(-(inverse(t) ** 2))),
        ("LOG_TAIL", "(log((1 + s) / (1 - s)) / 2 s - 1 - s^2 / 3) / s^4 in s^2",
         lambda z: ((mp.atanh(root(z)) / root(z) - 1) / z - mp.mpf(1) / 3) / z,
         0, "0.02945", (3, 7), lambda z: z**2),
        ("ATAN", "(atan(q) / q - 1) / q^2 in q^2", lambda z: (mp.atan(root(z)) / root(z) - 1) / z,
         0, "0.1717", (5, 11), lambda z: z),
        ("CBRT", "m^(-1/3) in m - 1", lambda t: 1 / mp.cbrt(1 + t), 0, 1, (4, 4), lambda t: mp.cbrt(1 + t)),
    ]  # fmt: skip
    suffix = "F32" if single else "F64"
    return [
        Fit(f"{name}_{suffix}", text, off_zero(g), mp.mpf(low), mp.mpf(high), degree, off_zero(weight), bits)
        for name, text, g, low, high, degrees, weight in rows
        if (degree := degrees[not single])
    ]


HEADER = '''"""Coefficients of `weft.codegen.llvm.vecmath`, written by tools/minimax.py, which says how: do not edit.

Polynomials have their lowest coefficient first; each comment says what is approximated and to which weighted error, in
units of the format's 2**-p.
"""

from typing import Final
'''


def table(name: str, values: list[mp.mpf]) -> str:
    """A constant of the module."""
    return "\n".join([f"{name}: Final = (", *(f"    {float(v)!r}," for v in values), ")"])


def words(value: mp.mpf, count: int) -> list[int]:
    """``count`` words of 64 bits: the bits of ``value`` from 2^63 down to 2^(64 - 64 count)."""
    whole = int(mp.floor(mp.ldexp(value, 64 * (count - 1))))
    return [whole >> 64 * (count - 1 - i) & ((1 << 64) - 1) for i in range(count)]


def integers(name: str, values: list[int]) -> str:
    """A constant of the module, of words in hexadecimal."""
    return "\n".join([f"{name}: Final = (", *(f"    0x{v:016X}," for v in values), ")"])


def main() -> None:
    """Writes the module of coefficients."""
    parts = [HEADER]
    with mp.workprec(1400):
        parts += ["# 2 / pi: 66 zeros first, then the bits from 2^-1 down",
                  integers("TWO_OVER_PI_WORDS", words(mp.ldexp(2 / mp.pi, -2), 20)), ""]  # fmt: skip
    for bits, name in ((24, "F32"), (53, "F64")):
        constants = {
            "LN2": split(LN2, bits, 2),
            "LOG2E": split(1 / LN2, bits, 2),
            "HALF_PI": split(PI / 2, bits, 3),
            "TWO_OVER_PI": split(2 / PI, bits, 1),
            "THIRD": split(mp.mpf(1) / 3, bits, 2),
            "LOG10_2": split(mp.log10(2), bits, 2),
            "CBRT_HALF": split(mp.cbrt(mp.mpf(1) / 2), bits, 1),
            "CBRT_QUARTER": split(mp.cbrt(mp.mpf(1) / 4), bits, 1),
        }
        parts += [table(f"{kind}_{name}", values) for kind, values in constants.items()]
        for fit in fits(bits):
            coefficients, worst = minimax(fit)
            parts.append(f"\n# {fit.text}; {mp.nstr(worst * 2**bits, 2)}\n{table(fit.name, coefficients)}")
        parts.append("")
    TARGET.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
