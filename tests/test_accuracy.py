"""The judge of approximations: it takes what a documented bound permits, and not the next number beyond."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import accuracy
from weft import dtypes
from weft.target import APPROXIMATIONS

F32 = dtypes.float32


def judged(kind: str, operands: tuple[float, ...], found: float, dtype: dtypes.DType = F32) -> bool:
    """Whether a result is taken."""
    arrays = [np.array([x], dtype.numpy) for x in operands]
    return not accuracy.wrong(kind, dtype, arrays, np.array([found], dtype.numpy))[0]


@pytest.mark.parametrize(
    ("kind", "operands", "ulps"),
    [
        ("exp2", (0.0,), 2),  # 1, whose unit is 2^-23
        ("exp", (0.0,), 2),
        ("exp", (1.0,), 3),  # 2 + 1.23
        ("exp", (88.0,), 110),  # 2 + 108.24
        ("exp", (-80.0,), 100),
        ("div", (1.0, 3.0), 2),
        ("div", (1e-40, 3.0), 2),  # subnormal
        ("sqrt", (2.0,), 1),  # 2^-23 of 1.414 is 1.414 units
        ("sqrt", (1.0,), 1),
        ("rsqrt", (1.0,), 1),  # 2^-22.9 is 1.07 units
        ("rsqrt", (0.26,), 2),  # of 1.96: 2.1 units
    ],
)
def test_as_many_units_as_documented_and_no_more(kind: str, operands: tuple[float, ...], ulps: int) -> None:
    """Counted from the nearest number, whose own distance from the exact value is half a unit at most."""
    exact = accuracy.EXACT[kind](*np.array(operands, np.float32).astype(np.float64))
    nearest = np.float32(exact)
    steps = np.arange(-ulps - 2, ulps + 3)
    numbers = (nearest.view(np.int32) + steps).astype(np.int32).view(np.float32)
    taken = [judged(kind, operands, x) for x in numbers]
    assert all(taken[3:-3])
    assert not taken[-1]
    unit = Fraction(float(np.spacing(nearest)))
    apart = [abs(Fraction(float(x)) - Fraction(float(exact))) / unit for x in numbers]
    largest = max(d for d, t in zip(apart, taken, strict=True) if t)
    least = min(d for d, t in zip(apart, taken, strict=True) if not t)
    assert largest < least


@pytest.mark.parametrize(
    ("kind", "operands", "found", "taken"),
    [
        ("exp2", (-127.0,), 0.0, True),  # flushed
        ("exp2", (-127.0,), 2.0**-127, False),
        ("exp", (-88.0,), 0.0, False),  # subnormal, and kept
        ("sqrt", (2.0**-130,), 0.0, True),
        ("sqrt", (2.0**-130,), 2.0**-65, False),
        ("rsqrt", (-(2.0**-130),), -np.inf, True),
        ("rsqrt", (4.0,), np.inf, False),
        ("div", (1.0, 0.0), np.inf, True),
        ("div", (-1.0, 0.0), np.inf, False),
        ("div", (0.0, -1.0), -0.0, True),
        ("div", (0.0, -1.0), 0.0, False),
        ("div", (0.0, 0.0), np.nan, True),
        ("div", (0.0, 0.0), 0.0, False),
        ("div", (1.0, 1.0), np.nan, False),
        ("exp", (89.0,), np.inf, True),
        ("exp", (88.0,), np.inf, False),
        ("exp", (88.722839,), np.inf, True),
        ("exp", (88.722839,), float(np.finfo(np.float32).max), True),  # 5 units less
        ("exp", (88.72283,), np.inf, False),  # 117 units more, and the bound is 111
    ],
)
def test_special_values(kind: str, operands: tuple[float, ...], found: float, taken: bool) -> None:
    assert judged(kind, operands, found) == taken


def test_a_narrow_result_is_one_that_a_permitted_float32_rounds_to() -> None:
    third = np.float16(1 / 3)
    assert judged("div", (1.0, 3.0), float(third), dtypes.float16)
    assert not judged("div", (1.0, 3.0), float(np.nextafter(third, np.float16(1))), dtypes.float16)
    assert judged("div", (1.0, 1.0), 1.0, dtypes.bfloat16)
    assert not judged("div", (1.0, 1.0), 1 - 2.0**-8, dtypes.bfloat16)


def test_every_kind_has_an_oracle() -> None:
    assert accuracy.EXACT.keys() == APPROXIMATIONS.keys()
