"""The approximations: within the bounds the ISA documents, special values as its tables have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from emulator_harness import execute

INF, NAN = math.inf, math.nan
TINY = 2.0**-126


def run(name: str, x: Any, kind: str = "f32") -> Any:
    return execute(f"{name} %d, %a;", {"a": (kind, x)}, {"d": kind}, block=32)["d"]


def spread(low: float, high: float, count: int = 4096, both: bool = False) -> Any:
    """Numbers between two powers of two, even in their logarithms."""
    random = np.random.default_rng(int(1000 + low))
    x = 2.0 ** random.uniform(low, high, count)
    return (x * (random.choice([-1.0, 1.0], count) if both else 1.0)).astype(np.float32)


def ulps(got: float, exact: Fraction) -> Fraction:
    """The distance in units in the last place of the float32 binade the exact value is in."""
    exponent = max(math.frexp(float(exact))[1] - 1, -126) - 23
    return abs(Fraction(got) - exact) / (Fraction(2) ** exponent)


def test_rcp_is_within_one_ulp() -> None:
    x = spread(-125, 125, both=True)
    for a, r in zip(x.tolist(), run("rcp.approx.f32", x).tolist(), strict=True):
        assert ulps(r, 1 / Fraction(a)) <= 1


def test_sqrt_and_rsqrt_are_within_their_relative_error() -> None:
    x = spread(-126, 127.9)
    for a, r, s in zip(
        x.tolist(), run("sqrt.approx.f32", x).tolist(), run("rsqrt.approx.f32", x).tolist(), strict=True
    ):
        # |r/sqrt(a) - 1| <= e  <=  |r*r/a - 1| <= 2e - e*e: compared exactly.
        for square, bound in ((Fraction(r) ** 2 / Fraction(a), 2.0**-23), (Fraction(s) ** 2 * Fraction(a), 2.0**-22.9)):
            e = Fraction(bound)
            assert abs(square - 1) <= 2 * e - e * e


@pytest.mark.parametrize("how", ["approx", "full"])
def test_quotients_are_within_two_ulps(how: str) -> None:
    x, y = spread(-20, 20, both=True), spread(-100, 100, both=True)
    got = execute(f"div.{how}.f32 %d, %a, %b;", {"a": ("f32", x), "b": ("f32", y)}, {"d": "f32"})["d"]
    for a, b, q in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        assert ulps(q, Fraction(a) / Fraction(b)) <= 2


def test_div_approx_by_what_is_beyond_2_126() -> None:
    y = np.array([2.0**126, 2.0**127, -(2.0**127), INF, 2.0**127, 2.0**127, 0.0, -0.0] * 4, np.float32)
    x = np.array([2.0**126, 3.0, 3.0, 3.0, INF, NAN, 1.0, 1.0] * 4, np.float32)
    text = "div.approx.f32 %d, %a, %b; div.full.f32 %e, %a, %b;"
    got = execute(text, {"a": ("f32", x), "b": ("f32", y)}, {"d": "f32", "e": "f32"})
    assert repr(got["d"][:8].tolist()) == repr([1.0, 0.0, -0.0, 0.0, NAN, NAN, INF, -INF])
    assert repr(got["e"][:8].tolist()) == repr([1.0, 3 * 2.0**-127, -3 * 2.0**-127, 0.0, INF, NAN, INF, -INF])


ABSOLUTE: list[tuple[str, Callable[[float], float], float, Any]] = [
    ("sin.approx.f32", math.sin, 2.0**-20.5, np.linspace(-2 * math.pi, 2 * math.pi, 4096)),
    ("cos.approx.f32", math.cos, 2.0**-20.5, np.linspace(-2 * math.pi, 2 * math.pi, 4096)),
    ("sin.approx.f32", math.sin, 2.0**-14.7, np.linspace(-100 * math.pi, 100 * math.pi, 4096)),
    ("cos.approx.f32", math.cos, 2.0**-14.7, np.linspace(-100 * math.pi, 100 * math.pi, 4096)),
    ("lg2.approx.f32", math.log2, 2.0**-22, np.linspace(0.5, 2, 4096)),
]


@pytest.mark.parametrize(
    ("name", "function", "bound", "values"), ABSOLUTE, ids=[a[0] + str(i) for i, a in enumerate(ABSOLUTE)]
)
def test_absolute_errors(name: str, function: Callable[[float], float], bound: float, values: Any) -> None:
    x = values.astype(np.float32)
    for a, r in zip(x.tolist(), run(name, x).tolist(), strict=True):
        assert abs(r - function(a)) <= bound


def test_lg2_is_within_its_relative_error_outside() -> None:
    x = np.concatenate([spread(-149, -1), spread(1, 127.9)])
    for a, r in zip(x.tolist(), run("lg2.approx.f32", x).tolist(), strict=True):
        assert abs(r - math.log2(a)) <= 2.0**-22 * abs(math.log2(a))


def test_tanh_is_within_its_relative_error() -> None:
    x = np.concatenate([spread(-40, 5, both=True), spread(-3, 1, both=True)])
    for a, r in zip(x.tolist(), run("tanh.approx.f32", x).tolist(), strict=True):
        assert abs(r - math.tanh(a)) <= 2.0**-11 * abs(math.tanh(a))


def test_ex2_is_within_two_ulps() -> None:
    x = np.linspace(-150, 128, 8192).astype(np.float32)[:-32]
    for a, r in zip(x.tolist(), run("ex2.approx.f32", x).tolist(), strict=True):
        exact = 2.0**a
        assert r == INF if exact >= 2.0**128 else ulps(r, Fraction(exact)) <= 2


INPUTS = [-INF, -1.0, -TINY / 2, -0.0, 0.0, TINY / 2, INF, NAN]
TABLES: dict[str, list[float]] = {
    "rcp.approx.f32": [-0.0, -1.0, -(2.0**127), -INF, INF, 2.0**127, 0.0, NAN],
    "rcp.approx.ftz.f32": [-0.0, -1.0, -INF, -INF, INF, INF, 0.0, NAN],
    "sqrt.approx.f32": [NAN, NAN, NAN, -0.0, 0.0, 2.0**-63.5, INF, NAN],
    "sqrt.approx.ftz.f32": [NAN, NAN, -0.0, -0.0, 0.0, 0.0, INF, NAN],
    "rsqrt.approx.f32": [NAN, NAN, NAN, -INF, INF, 2.0**63.5, 0.0, NAN],
    "rsqrt.approx.ftz.f32": [NAN, NAN, -INF, -INF, INF, INF, 0.0, NAN],
    "sin.approx.ftz.f32": [NAN, math.sin(-1), -0.0, -0.0, 0.0, 0.0, NAN, NAN],
    "cos.approx.ftz.f32": [NAN, math.cos(1), 1.0, 1.0, 1.0, 1.0, NAN, NAN],
    "lg2.approx.f32": [NAN, NAN, NAN, -INF, -INF, -127.0, INF, NAN],
    "lg2.approx.ftz.f32": [NAN, NAN, -INF, -INF, -INF, -INF, INF, NAN],
    "ex2.approx.f32": [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, INF, NAN],
    "ex2.approx.ftz.f32": [0.0, 0.5, 1.0, 1.0, 1.0, 1.0, INF, NAN],
    "tanh.approx.f32": [-1.0, math.tanh(-1), -TINY / 2, -0.0, 0.0, TINY / 2, 1.0, NAN],
}
"""What the ISA's tables say of INPUTS; where they say nothing, the function."""


@pytest.mark.parametrize("name", TABLES)
def test_special_values(name: str) -> None:
    got = run(name, np.array(INPUTS * 4, np.float32))
    want = np.array(TABLES[name] * 4, np.float32)
    nan = np.isnan(want)
    assert (got.view(np.uint32)[nan] == 0x7FFFFFFF).all()
    assert (got.view(np.uint32)[~nan] == want.view(np.uint32)[~nan]).all()


def test_ex2_flushes_small_results() -> None:
    x = np.array([-126.0, -126.5, -149.0, -150.5] * 8, np.float32)
    assert run("ex2.approx.ftz.f32", x)[:4].tolist() == [TINY, 0.0, 0.0, 0.0]
    assert run("ex2.approx.f32", x)[:4].tolist()[2:] == [2.0**-149, 0.0]


def gross(bits: int, function: Callable[[float], float]) -> int:
    """Of the upper word: the nearest value with an empty lower word."""
    x = float(np.uint64(bits & 0xFFFFFFFF00000000).view(np.float64))
    result = int(np.float64(function(x)).view(np.uint64))
    upper, lower = result >> 32, result & 0xFFFFFFFF
    upper += lower > 0x80000000 or (lower == 0x80000000 and upper & 1 == 1)
    return upper << 32


@pytest.mark.parametrize("name", ["rcp", "rsqrt"])
def test_gross_approximations_of_f64(name: str) -> None:
    random = np.random.default_rng(6)
    bits = random.integers(0x00F0 << 48, 0x7F00 << 48, 1024, dtype=np.uint64)
    got = run(f"{name}.approx.ftz.f64", bits.view(np.float64), "f64").view(np.uint64)
    functions: dict[str, Callable[[float], float]] = {"rcp": lambda v: 1 / v, "rsqrt": lambda v: 1 / math.sqrt(v)}
    assert got.tolist() == [gross(b, functions[name]) for b in bits.tolist()]
    special = [-INF, -1.0, -(2.0**-1023), -0.0, 0.0, 2.0**-1023, INF, NAN]
    tables = {
        "rcp": [-0.0, -1.0, -INF, -INF, INF, INF, 0.0, NAN],
        "rsqrt": [NAN, NAN, -INF, -INF, INF, INF, 0.0, NAN],
    }
    got = run(f"{name}.approx.ftz.f64", np.array(special * 4), "f64").view(np.uint64)[:8]
    for bits_found, want in zip(got.tolist(), tables[name], strict=True):
        assert bits_found == (0x7FFFFFFF00000000 if math.isnan(want) else int(np.float64(want).view(np.uint64)))


def test_gross_reciprocals_that_are_subnormal_are_zero() -> None:
    x = np.array([2.0**1023, -(2.0**1023), 2.0**1022, 2.0**1021] * 8)
    assert run("rcp.approx.ftz.f64", x, "f64")[:4].tolist() == [0.0, -0.0, 2.0**-1022, 2.0**-1021]


def test_rsqrt_of_f64() -> None:
    x = np.array([4.0, 0.25, 2.0, 0.0, -0.0, -1.0, INF, 3.0] * 4)
    got = run("rsqrt.approx.f64", x, "f64")[:8].tolist()
    want = [0.5, 2.0, 1 / math.sqrt(2), INF, -INF, NAN, 0.0, 1 / math.sqrt(3)]
    assert repr(got) == repr(want)
