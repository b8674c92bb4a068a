"""Writes tests/golden/vecmath_float64.txt: points of each transcendental function with their values, from mpmath.

Run ``python tools/vecmath_golden.py`` (needs ``pip install mpmath``). Each line is ``function x high rest``, with ``y``
after ``x`` for two operands, all but the last in C99 hexadecimal: ``high`` is the float64 nearest to the value, which exceeds
it by ``rest`` units in the last place. Points are spread over the exponents that matter to the function, and over the edges
of the ranges into which implementations cut it.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import mpmath as mp

mp.mp.prec = 1200
TARGET = Path(__file__).parent.parent / "tests/golden/vecmath_float64.txt"
LN2 = math.log(2)
NEAREST = math.ldexp(6381956970095103, 797)
"""The float64 nearest to a multiple of pi/2, relative to it."""
EDGES = {
    "exp": [-745.13, -745.2, -708.4, -708.3, 709.78, LN2 / 2, -LN2 / 2, 1e-300, 5e-324],
    "exp2": [-1074.0, -1074.9, -1022.5, -1021.5, 1023.9, 0.5, -0.5, 1e-300, 5e-324],
    "log": [5e-324, 2.2e-308, 2.3e-308, 0.70710678, 0.7071068, 1.4142135, 1.4142136, 1 + 2**-52, 1 - 2**-53, 1.7e308],
    "log2": [5e-324, 2.2e-308, 2.3e-308, 0.70710678, 0.7071068, 1.4142135, 1.4142136, 1 + 2**-52, 1 - 2**-53, 1.7e308],
    "sin": [math.pi / 4, math.pi, 355.0, 16777215.0, 16777216.0, 16777217.0, 1e22, 1e300, 5e-324, NEAREST, -1e300],
    "cos": [
        math.pi / 2,
        3 * math.pi / 2,
        355.0 / 2,
        16777215.0,
        16777216.0,
        16777217.0,
        1e22,
        1e300,
        5e-324,
        NEAREST,
        -1e300,
    ],
    "tan": [
        math.pi / 2,
        3 * math.pi / 4,
        355.0 / 2,
        16777215.0,
        16777216.0,
        16777217.0,
        1e22,
        1e300,
        5e-324,
        NEAREST,
        -1e300,
    ],
    "log10": [5e-324, 2.2e-308, 2.3e-308, 0.70710678, 0.7071068, 1.4142135, 1.4142136, 1 + 2**-52, 1 - 2**-53, 1.7e308],
    "log1p": [5e-324, -1e-300, -0.2928, -0.29289323, 0.41421356, 0.4142136, -1 + 2**-53, 2.0**53, 2.0**54 + 4, 1.7e308],
    "cbrt": [5e-324, -2.2e-308, 2.3e-308, 8.0, -27.0, 1 - 2**-53, 2 - 2**-52, 4 - 2**-51, 8 - 2**-50, 1.7e308],
    "tanh": [0.55, 0.5499999, 0.3465, 18.9, 19.1, 19.99, 20.1, 1e-300, 5e-324],
    "erf": [0.9999999, 1.0, 1.0000001, 5.8, 5.9, 5.99, 6.1, 1e-300, 5e-324],
}
SPAN = {
    "exp": 745,
    "exp2": 1074,
    "log": 8,
    "log2": 8,
    "sin": 1e4,
    "cos": 1e4,
    "tan": 1e4,
    "log10": 8,
    "log1p": 8,
    "cbrt": 100,
    "tanh": 20,
    "erf": 6,
}
FUNCTIONS = {
    "exp": mp.exp, "exp2": lambda x: mp.mpf(2) ** x, "log": mp.log, "log2": lambda x: mp.log(x) / mp.log(2),
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "log10": mp.log10, "log1p": mp.log1p,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "tanh": mp.tanh, "erf": mp.erf,
}  # fmt: skip


def nearest(value: mp.mpf) -> tuple[float, mp.mpf]:
    """The float64 nearest to ``value``, which is in range, and the unit in its last place.

    mpmath's own conversion rounds subnormal results twice.
    """
    unit = mp.mpf(2) ** (max(int(mp.floor(mp.log(abs(value), 2))), -1022) - 52) if value else mp.mpf(2) ** -1074
    return float(mp.nint(value / unit) * unit), unit


def points(kind: str) -> list[float]:
    """Where to look."""
    rng = random.Random(kind)
    found = list(EDGES[kind])
    found += [rng.uniform(-SPAN[kind], SPAN[kind]) for _ in range(50)]
    found += [rng.uniform(-2, 2) for _ in range(25)]
    found += [math.ldexp(rng.uniform(-1, 1), rng.randrange(-60, 6)) for _ in range(25)]
    if kind in ("log", "log2", "log10"):
        found = [abs(x) for x in found] + [math.ldexp(rng.uniform(1, 2), rng.randrange(-1074, 1024)) for _ in range(25)]
    if kind in ("log1p", "cbrt"):
        found = [x for x in found if kind == "cbrt" or x > -1]
        found += [math.ldexp(rng.uniform(1, 2), rng.randrange(-1074, 1024)) for _ in range(25)]
    if kind == "tan":
        found += [math.ldexp(rng.uniform(1, 2), rng.randrange(24, 1024)) for _ in range(50)]
    if kind in ("sin", "cos", "tan"):
        found += [rng.randrange(1, 1 << 20) * math.pi / 2 for _ in range(25)]
    return found


def pairs(kind: str) -> list[tuple[float, float]]:
    """Where to look, for two operands."""
    rng = random.Random(kind)
    if kind == "atan2":
        found = [(1.0, 2.414213562), (1.0, 2.414213563), (1.0, 1.0), (1e-300, -1.0), (1.0, -1e-300), (1e-320, 1e-310)]
        found += [(rng.uniform(-4, 4), rng.uniform(-4, 4)) for _ in range(100)]
        return found + [
            (ranged(rng, -1074, 1024), ranged(rng, -1074, 1024) * sign) for _ in range(25) for sign in (-1, 1)
        ]
    found = [
        (10.0, 308.0),
        (2.0, -1074.0),
        (3.0, -678.0),
        (1 + 2**-52, 1e18),
        (1 - 2**-53, 1e18),
        (5e-324, 0.999),
        (-3.0, 7.0),
    ]
    found += [(ranged(rng, -1074, 1024), rng.uniform(-1, 1)) for _ in range(50)]
    found += [(x, rng.uniform(-745, 709) / math.log(x)) for x in (rng.uniform(0.1, 10) for _ in range(100))]
    found += [(x, rng.uniform(-708, 709) / math.log(x)) for x in (ranged(rng, -1074, 1024) for _ in range(50))]
    found += [
        (x, rng.uniform(-708, 709) / math.log(x))
        for x in (1 + rng.choice((-1, 1)) * ranged(rng, -50, -2) for _ in range(50))
    ]
    return found + [(-rng.uniform(0.1, 10), float(rng.randrange(-200, 200))) for _ in range(50)]


def ranged(rng: random.Random, low: int, high: int) -> float:
    """A number of a random exponent."""
    return math.ldexp(rng.uniform(1, 2), rng.randrange(low, high))


BINARY = {"pow": mp.power, "atan2": mp.atan2}


def main() -> None:
    """Writes the file."""
    lines: list[str] = []
    cases = [(kind, function, (x,)) for kind, function in FUNCTIONS.items() for x in points(kind)]
    cases += [(kind, function, xy) for kind, function in BINARY.items() for xy in pairs(kind)]
    for kind, function, operands in cases:
        value = mp.re(function(*map(mp.mpf, operands)))
        if abs(value) > sys.float_info.max:
            continue
        high, unit = nearest(value)
        spelled = " ".join(x.hex() for x in (*operands, high))
        lines.append(f"{kind} {spelled} {float((value - high) / unit):.4f}")
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
