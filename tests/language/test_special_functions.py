"""Gamma, Bessel and normal distribution functions of float64 against tests/golden/special_functions.txt, from mpmath."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

import libdevice_kernels
import weft
import weft.language as tl
from sampling import every, grid
from weft.frontend import CompilationError
from weft.language.extra import libdevice

pytestmark = pytest.mark.jit

Array = NDArray[Any]
INF: Final = np.inf
NAN: Final = np.nan
TARGETS: Final = (None, "sm_80", "sm_90")
ROWS: Final = [
    line.split() for line in (Path(__file__).parents[1] / "golden/special_functions.txt").read_text().splitlines()
]
BOUNDS: Final = {
    "j0": 6,
    "j1": 6,
    "y0": 7,
    "y1": 7,
    "cyl_bessel_i0": 5,
    "cyl_bessel_i1": 5,
    "tgamma": 7,
    "lgamma": 6,
    "erfinv": 3,
    "erfcinv": 3,
    "normcdf": 5,
    "normcdfinv": 3,
}
"""Units of the last place; of j and y in units of the greater of the value and `amplitude`."""


def applied(name: str, x: Array, n: Array | None = None, target: str | None = None) -> Array:
    """The function of an array, which is repeated: up to 128 elements natively, so that a function is compiled once."""
    size = 128 if target is None else 1 << (len(x) - 1).bit_length()
    assert len(x) <= size
    operands = [np.resize(a, size) for a in (n, x) if a is not None]
    return libdevice_kernels.applied(name, operands, x.dtype, target)[: len(x)]


def amplitude(x: Array) -> Array:
    """About how large the waves of Bessel functions are at ``x``."""
    return np.minimum(1, np.sqrt(2 / (np.pi * np.abs(x))))


def points(name: str) -> tuple[Array, Array]:
    rows = [row for row in ROWS if row[0] == name]
    return np.array([float.fromhex(row[-2]) for row in rows]), np.array([float.fromhex(row[-1]) for row in rows])


@pytest.mark.parametrize(("name", "target"), grid(4, list(BOUNDS), TARGETS))
def test_values_of_float64(name: str, target: str | None) -> None:
    x, expected = points(name)
    if target is not None:
        x, expected = x[::4].copy(), expected[::4]
    scale = np.maximum(np.abs(expected), amplitude(x)) if name[0] in "jy" else np.abs(expected)
    apart = np.abs(applied(name, x, target=target) - expected) / np.spacing(scale)
    assert apart.max() <= BOUNDS[name], (name, x[apart.argmax()], apart.max())


@pytest.mark.parametrize("name", every(4, BOUNDS))
def test_values_of_float32(name: str) -> None:
    """They are those of float64, rounded once. Python's float64 tables are of other arguments: these are rounded first."""
    x = points(name)[0]
    x = x[np.abs(x) < 1e30].astype(np.float32)
    with np.errstate(over="ignore"):
        expected = applied(name, x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(applied(name, x), expected)


@pytest.mark.parametrize(("name", "target"), grid(3, ["jn", "yn"], TARGETS))
def test_orders(name: str, target: str | None) -> None:
    """Errors grow with the order: half a unit for each, of the greater of the value and, where it oscillates, the amplitude."""
    x, expected = points(name)
    n = np.array([int(row[1]) for row in ROWS if row[0] == name], np.int32)
    if target is not None:
        n, x, expected = (a[n <= 31].copy() for a in (n, x, expected))
    scale = np.where(x > n, np.maximum(np.abs(expected), amplitude(x)), np.abs(expected))
    apart = np.abs(applied(name, x, n, target) - expected) / np.spacing(scale)
    assert (apart <= n / 2 + 7).all(), list(zip(n, x, apart, strict=True))
    near = applied(name, x.astype(np.float32), n, target)
    wide = applied(name, x.astype(np.float32).astype(np.float64), n, target)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(near, wide.astype(np.float32))


def test_negative_arguments_of_lgamma() -> None:
    """Near the zeros of the logarithm the error is one of its terms: float64 has 15 digits of those."""
    x = np.array([-0.1, -0.5, -1.5, -2.4570247382208006, -2.7476826467274127, -3.9, -10.25, -100.5, -1e-200])
    expected = np.array(
        [
            2.3689613327287886,
            1.2655121234846454,
            0.8600470153764810,
            0.0,
            0.0,
            -0.7094680089083923,
            -14.20399790093109,
            -364.90096830942736,
            460.51701859880916,
        ]
    )
    np.testing.assert_allclose(applied("lgamma", x), expected, rtol=1e-14, atol=4e-15)


SPECIAL: Final[dict[str, list[tuple[float, float]]]] = {
    "j0": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN), (1e-300, 1.0)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (NAN, NAN), (1e-300, 5e-301)],
    "y0": [(0.0, -INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (NAN, NAN)],
    "y1": [(0.0, -INF), (INF, 0.0), (-1.0, NAN), (NAN, NAN), (1e-310, -INF)],
    "cyl_bessel_i0": [(0.0, 1.0), (INF, INF), (-INF, INF), (800.0, INF), (NAN, NAN)],
    "cyl_bessel_i1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (-800.0, -INF), (NAN, NAN)],
    "tgamma": [(0.0, INF), (-0.0, -INF), (-3.0, NAN), (172.0, INF), (-INF, NAN), (5.0, 24.0), (-300.5, -0.0)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF), (NAN, NAN)],
    "erfinv": [(1.0, INF), (-1.0, -INF), (1.5, NAN), (NAN, NAN), (-0.0, -0.0)],
    "erfcinv": [(0.0, INF), (2.0, -INF), (1.0, 0.0), (-0.5, NAN), (2.5, NAN), (5e-324, 27.213293210812949)],
    "normcdf": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (-40.0, 0.0)],
    "normcdfinv": [(0.5, 0.0), (0.0, -INF), (1.0, INF), (-0.5, NAN), (2.0, NAN)],
    "rcp64h": [
        (3.0, 0.33333325386047363),
        (-0.0, -INF),
        (INF, 0.0),
        (5e-324, INF),
        (1e308, 0.0),
        (NAN, NAN),
        (0.5, 2.0),
    ],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_arguments_of_float64(name: str) -> None:
    x, expected = (np.array(column) for column in zip(*SPECIAL[name], strict=True))
    np.testing.assert_allclose(applied(name, x), expected, rtol=1e-15, atol=0)


def test_orders_and_arguments_without_a_value() -> None:
    n = np.array([-1, 2, 2, 3, 3, 3, 2], np.int32)
    x = np.array([1.0, 0.0, INF, -1.5, NAN, -INF, 1e-200])
    np.testing.assert_allclose(applied("jn", x, n), [NAN, 0, 0, -0.06096395114113966, NAN, 0, 0], rtol=1e-15)
    np.testing.assert_array_equal(applied("yn", x, n), [NAN, -INF, 0, NAN, NAN, NAN, -INF])


@weft.jit
def of_scalars(out: Any) -> None:
    tl.store(out, libdevice.jn(2, tl.load(out)))
    tl.store(out + 1, libdevice.yn(3, tl.load(out + 1)))


def test_scalars() -> None:
    out = np.array([1.5, 2.5])
    of_scalars[(1,)](out)
    np.testing.assert_allclose(out, [0.23208767214421472, -0.7560554967536709], rtol=4e-15)


@weft.jit
def calls(x: Any, CASE: tl.constexpr) -> None:
    v = tl.load(x)
    if CASE == "order":
        libdevice.jn(v, v)
    elif CASE == "float":
        libdevice.j0(v.to(tl.int32))
    else:
        libdevice.rcp64h(v.to(tl.float32))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("order", "libdevice.jn: takes an order of int32"),
        ("float", "libdevice.j0: takes floats"),
        ("word", "libdevice.rcp64h: takes float64"),
    ],
)
def test_refusals(case: str, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        calls[(1,)](np.zeros(1), CASE=case)
    assert caught.value.message == message
