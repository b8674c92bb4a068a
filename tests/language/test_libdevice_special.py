"""libdevice: directed roundings against fractions, the gamma and error functions against Python's math and statistics.

The bounds are in units in the last place of a correctly rounded result; Python's functions of float64 are themselves up to 1 off.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from libdevice_kernels import applied
from sampling import grid

pytestmark = pytest.mark.jit

Array = NDArray[Any]
INF: Final = math.inf
NAN: Final = math.nan
SIZE: Final = 1024


def ulps(found: Array, expected: Array) -> int:
    """The greatest distance, counted in floats; NaN is at no distance from NaN, and far from all else."""
    integer = np.dtype(f"i{found.itemsize}")
    least = -(1 << (8 * found.itemsize - 1))
    places = [[n if n >= 0 else least - n for n in a.view(integer).tolist()] for a in (found, expected)]
    nan = np.isnan(found) & np.isnan(expected)
    return max(0 if both else abs(a - b) for a, b, both in zip(*places, nan.tolist(), strict=True))


def drawn(dtype: type[Any], low: float, high: float, seed: int = 0) -> Array:
    """Numbers between two bounds: half of them evenly, half of all magnitudes down to 1e-30."""
    random = np.random.default_rng(seed)
    even = random.uniform(low, high, SIZE // 2)
    small = random.uniform(low, high, SIZE // 2) * 10.0 ** random.integers(-30, 1, SIZE // 2)
    return np.concatenate([even, np.clip(small, low, high)]).astype(dtype)


def rounded(values: list[float], dtype: type[Any]) -> Array:
    with np.errstate(over="ignore"):
        return np.array(values).astype(dtype)


def guarded(function: Callable[..., float], *values: float) -> float:
    try:
        return function(*values)
    except OverflowError:
        return INF


def erfcx(x: float) -> float:
    """By definition where ``erfc`` is no subnormal number, else two terms of the asymptotic series."""
    if x < 25:
        return float((Decimal(x) * Decimal(x)).exp() * Decimal(math.erfc(x)))
    return (1 - 1 / (2 * x * x)) / (x * math.sqrt(math.pi))


CALCULUS: Final[dict[str, tuple[Callable[[float], float], tuple[float, float], tuple[int, int]]]] = {
    "erfc": (math.erfc, (-6, 26), (1, 5)),
    "erfcx": (erfcx, (-8, 24), (1, 5)),
    "lgamma": (math.lgamma, (0, 1e20), (1, 0)),
    "normcdf": (lambda x: math.erfc(-x / math.sqrt(2)) / 2, (-12, 6), (1, 0)),
    "normcdfinv": (NormalDist().inv_cdf, (1e-37, 0.49), (1, 0)),
    "tgamma": (math.gamma, (-30.5, 34), (1, 12)),
}
"""Function -> Python's, where operands lie, bounds for float32 and float64 (0: Python's is too coarse)."""


@pytest.mark.parametrize(("name", "target"), grid(2, list(CALCULUS), [None, "sm_90"]))
def test_functions_of_calculus(name: str, target: str | None) -> None:
    oracle, (low, high), bounds = CALCULUS[name]
    for dtype, bound in zip((np.float32, np.float64), bounds, strict=True):
        if not bound or (target and dtype is np.float64):
            continue
        x = drawn(dtype, low, high)
        x = x[::16].copy() if target else x
        expected = rounded([guarded(oracle, v) for v in x.tolist()], dtype)
        assert ulps(applied(name, [x], dtype, target), expected) <= bound, dtype


@pytest.mark.parametrize("name", ["erfinv", "erfcinv"])
def test_inverses_of_the_error_functions(name: str) -> None:
    """The exact inverse lies between the neighbours of what is found."""
    x = drawn(np.float32, -0.99999994, 0.99999994) if name == "erfinv" else np.abs(drawn(np.float32, 0, 1.9999))
    x = x[x != 0][:512]
    found = applied(name, [x], np.float32)
    below, above = np.nextafter(found, np.float32(-INF)), np.nextafter(found, np.float32(INF))
    function = math.erf if name == "erfinv" else math.erfc
    if name == "erfcinv":
        below, above = above, below
    assert all(
        function(a) <= v <= function(b) for a, v, b in zip(below.tolist(), x.tolist(), above.tolist(), strict=True)
    )


SPECIAL: Final[dict[str, list[tuple[float, float]]]] = {
    "tgamma": [
        (0.0, INF),
        (-0.0, -INF),
        (-2.0, NAN),
        (INF, INF),
        (-INF, NAN),
        (5.0, 24.0),
        (50.0, INF),
        (-300.5, -0.0),
    ],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-3.0, INF), (-INF, INF), (INF, INF)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (NAN, NAN), (0.0, 1.0), (30.0, 0.0)],
    "erfcx": [(INF, 0.0), (-INF, INF), (NAN, NAN), (0.0, 1.0), (-100.0, INF)],
    "erfinv": [(1.0, INF), (-1.0, -INF), (2.0, NAN), (NAN, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "erfcinv": [(0.0, INF), (2.0, -INF), (1.0, 0.0), (-1.0, NAN), (2.5, NAN)],
    "normcdf": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN)],
    "normcdfinv": [(0.5, 0.0), (0.0, -INF), (1.0, INF), (1.5, NAN), (-0.1, NAN)],
}
"""Function -> arguments and results in float32. A zero that is computed has either sign."""


@pytest.mark.parametrize("name", SPECIAL)
def test_special_arguments(name: str) -> None:
    size = 1 << (len(SPECIAL[name]) - 1).bit_length()
    x, expected = (np.array(column, np.float32) for column in zip(*(SPECIAL[name] * size)[:size], strict=True))
    np.testing.assert_array_equal(applied(name, [x], np.float32), expected)


ROUNDINGS: Final = ("rz", "rd", "ru")
INTEGERS: Final = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}


def directed(exact: Fraction, mode: str, dtype: type[Any]) -> float:
    """A number rounded to a float: neighbours are found by comparing exactly."""
    most = np.finfo(dtype).max
    if abs(exact) > Fraction(float(most)):
        away = (mode == "ru") == (exact > 0) and mode != "rz"
        return math.copysign(INF if away else float(most), 1 if exact > 0 else -1)
    with np.errstate(over="ignore"):
        near = dtype(float(exact))
    while not math.isfinite(near) or Fraction(float(near)) > exact:
        near = np.nextafter(near, dtype(-INF))
    following = near
    while Fraction(float(near)) < exact and Fraction(float(following := np.nextafter(near, dtype(INF)))) <= exact:
        near = following
    below, above = near, near if Fraction(float(near)) == exact else following
    return float({"rd": below, "ru": above, "rz": below if exact > 0 else above}[mode])


OPERATIONS: Final[dict[str, Callable[..., Fraction]]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}


@pytest.mark.parametrize(
    ("operation", "dtype", "mode"), grid(3, list(OPERATIONS), [np.float32, np.float64], list(ROUNDINGS))
)
def test_arithmetic_is_rounded_as_asked(operation: str, dtype: type[Any], mode: str) -> None:
    exact = OPERATIONS[operation]
    random = np.random.default_rng(3)
    operands = [
        (random.normal(size=128) * 10.0 ** random.integers(-4, 5, 128)).astype(dtype)
        for _ in range(exact.__code__.co_argcount)
    ]
    assert_directed(operation, mode, operands, dtype)


def assert_directed(
    operation: str, mode: str, operands: list[Array], dtype: type[Any], target: str | None = None
) -> None:
    exact = OPERATIONS[operation]
    numbers = list(zip(*(a.tolist() for a in operands), strict=True))
    found = applied(f"{operation}_{mode}", operands, dtype, target).tolist()
    expected = [directed(exact(*map(Fraction, values)), mode, dtype) for values in numbers]
    wrong = [case for case in zip(numbers, found, expected, strict=True) if case[1] != case[2]]
    assert not wrong, wrong


EXTREMES: Final[dict[type[Any], tuple[float, float]]] = {np.float32: (1e-45, 1e37), np.float64: (5e-324, 1e307)}
"""Where the error of the nearest float is below the least float, or steps of its computation overflow."""


@pytest.mark.parametrize("target", [None, "sm_90"])
@pytest.mark.parametrize(
    ("operation", "dtype", "mode"), grid(4, ["mul", "div", "fma", "rcp"], list(EXTREMES), list(ROUNDINGS))
)
def test_results_near_the_least_and_greatest_floats_are_rounded_as_asked(
    operation: str, dtype: type[Any], mode: str, target: str | None
) -> None:
    """Operands of all magnitudes, such that results are within 2**60 of the limits."""
    random = np.random.default_rng(7)
    least, greatest = (math.log2(v) for v in EXTREMES[dtype])
    size = 128
    y = random.uniform(least, greatest, size)
    near = np.where(random.random(size) < 0.7, least + random.uniform(-4, 60, size), greatest)
    exponents = {"mul": near - y, "fma": near - y, "div": near + y, "rcp": -near}[operation]
    x = np.clip(exponents, least, greatest)
    z = np.where(random.random(size) < 0.5, near + random.uniform(-60, 60, size), random.uniform(least, greatest, size))
    arity = OPERATIONS[operation].__code__.co_argcount
    signs = random.choice([-1, 1], (3, size)) * random.uniform(1, 2, (3, size))
    operands = [
        (sign * 2.0 ** np.clip(e, least, greatest)).astype(dtype)
        for sign, e in zip(signs[:arity], (x, y, z), strict=False)
    ]
    if operation in ("div", "rcp"):
        operands[-1][operands[-1] == 0] = 1
    assert_directed(operation, mode, operands, dtype, target)


@pytest.mark.parametrize("mode", ROUNDINGS)
def test_huge_products_are_added_to_what_is_far_from_them(mode: str) -> None:
    """The product overflows and the sum does not, or by far; or the number added is beyond the last place of the product."""
    odd, most, least = 2.0**1000 * (1 + 2.0**-52), 1.9 * 2.0**1023, 5e-324
    rows = [
        (odd, 2.0**24 * (1 + 2.0**-52), -most),
        (-odd, 2.0**24 * (1 + 2.0**-52), most),
        *((x, 2.0**400, z) for x in (2.0**600, -(2.0**600)) for z in (least, -least, 2.0**-600)),
        *((x, 2.0**700, z) for x in (2.0**600, -(2.0**700), 2.0**1023, -most) for z in (1.0, -most)),
    ]
    assert_directed("fma", mode, [np.array(column) for column in zip(*rows, strict=True)], np.float64)


@pytest.mark.parametrize("target", [None, "sm_90"])
def test_a_sum_of_zero_is_negative_where_rounded_down(target: str | None) -> None:
    """IEEE 754: x - x is -0 rounded down, else +0; zeros of one sign keep it."""
    x, y = np.array([1, 0, -0.0, 0], np.float32), np.array([-1, -0.0, -0.0, 0], np.float32)
    ones = np.ones(4, np.float32)
    for mode, expected in (("rd", [1, 1, 1, 0]), ("ru", [0, 0, 1, 0]), ("rz", [0, 0, 1, 0])):
        for name, operands in (("add", [x, y]), ("sub", [x, -y]), ("fma", [x, ones, y])):
            found = applied(f"{name}_{mode}", operands, np.float32, target)
            assert np.signbit(found).tolist() == list(map(bool, expected)) and not found.any(), (name, mode)


@pytest.mark.parametrize(("mode", "dtype"), grid(3, list(ROUNDINGS), [np.float32, np.float64]))
def test_roots_are_rounded_as_asked(mode: str, dtype: type[Any]) -> None:
    random = np.random.default_rng(4)
    least, greatest = (math.log10(v) for v in EXTREMES[dtype])
    x = (random.uniform(1, 2, 128) * 10.0 ** random.uniform(least, greatest, 128)).astype(dtype)
    for value, root in zip(x.tolist(), applied(f"sqrt_{mode}", [x], dtype), strict=True):
        at, after = Fraction(float(root)), Fraction(float(np.nextafter(root, dtype(INF))))
        before = Fraction(float(np.nextafter(root, dtype(-INF))))
        square = Fraction(value)
        assert before**2 < square <= at**2 if mode == "ru" else at**2 <= square < after**2


def test_what_overflows_stays_finite_where_rounded_down() -> None:
    x = np.array([3e38, -3e38, INF, 3e38], np.float32)
    most = float(np.finfo(np.float32).max)
    assert applied("add_rd", [x, x], np.float32).tolist() == [most, -INF, INF, most]
    assert applied("mul_rz", [x, x], np.float32).tolist() == [most, most, INF, most]
    assert applied("div_rz", [x, np.zeros(4, np.float32)], np.float32).tolist() == [INF, -INF, INF, INF]


@pytest.mark.parametrize(("mode", "source"), grid(3, list(ROUNDINGS), list(INTEGERS)))
def test_integers_to_floats(mode: str, source: str) -> None:
    info = np.iinfo(INTEGERS[source])
    random = np.random.default_rng(5)
    x = random.integers(info.min, info.max, 128, INTEGERS[source], endpoint=True)
    x[:4] = [info.min, info.max, 0, 1]
    expected = [directed(Fraction(v), mode, np.float32) for v in x.tolist()]
    assert applied(f"{source}2float_{mode}", [x], np.float32).tolist() == expected


@pytest.mark.parametrize(("source", "mode"), grid(2, ["ll", "ull"], list(ROUNDINGS)))
def test_integers_to_doubles(source: str, mode: str) -> None:
    info = np.iinfo(INTEGERS[source])
    x = np.random.default_rng(5).integers(info.min, info.max, 128, INTEGERS[source], endpoint=True)
    x[:4] = [info.min, info.max, 0, 1]
    expected = [directed(Fraction(v), mode, np.float64) for v in x.tolist()]
    assert applied(f"{source}2double_{mode}", [x], np.float64).tolist() == expected


@pytest.mark.parametrize("mode", list(ROUNDINGS))
def test_doubles_to_floats(mode: str) -> None:
    x = np.random.default_rng(6).normal(size=128)
    expected = [directed(Fraction(v), mode, np.float32) for v in x.tolist()]
    assert applied(f"double2float_{mode}", [x], np.float32).tolist() == expected
