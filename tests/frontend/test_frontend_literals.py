"""Literals as elements: against ml_dtypes where it rounds once, against a search for the nearest value everywhere."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.literals import element, represents, round_to

SMALL = [d for d in dtypes.ALL if d.is_float and d.bits <= 16]


def finite_values(dtype: DType) -> list[float]:
    """All finite values of a format of 8 or 16 bits, non-negative, ascending; read off the bit patterns."""
    patterns = np.arange(1 << (dtype.bits - 1), dtype=f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):
        values: Any = patterns.view(dtype.numpy).astype(np.float64)
    return [float(v) for v in values if math.isfinite(v)]


VALUES = {d: finite_values(d) for d in SMALL}


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_largest(dtype: DType) -> None:
    assert dtype.largest == VALUES[dtype][-1]
    assert dtypes.float32.largest == float(np.finfo(np.float32).max)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_values_stay_and_ties_go_to_even(dtype: DType) -> None:
    values = VALUES[dtype]
    step = max(1, len(values) // 500)
    for i in range(0, len(values) - 1, step):
        low, high = values[i], values[i + 1]
        assert round_to(low, dtype) == low
        # Neighbouring patterns alternate in their last mantissa bit, so the even one is the one of even index.
        assert round_to((low + high) / 2, dtype) == (low if i % 2 == 0 else high)
        assert round_to(-(low + high) / 2, dtype) == -(low if i % 2 == 0 else high)


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=64))
@example(1 + 2**-8 + 2**-30)
@example(65520.0)
@example(464.0)
@example(2.0**-24)
def test_nearest(value: float) -> None:
    for dtype in (dtypes.float8_e4m3fn, dtypes.float8_e5m2):
        result = round_to(value, dtype)
        values = VALUES[dtype]
        top = values[-1]
        half = Fraction(values[-1] - values[-2]) / 2
        if abs(Fraction(value)) > Fraction(top) + half:
            assert math.isnan(result) if dtype.finite_only else result == math.copysign(math.inf, value)
        elif math.isfinite(result):
            distance = min(abs(Fraction(v) - abs(Fraction(value))) for v in values)
            assert abs(Fraction(abs(result)) - abs(Fraction(value))) == distance


@settings(max_examples=300, deadline=None)
@given(st.floats(width=64))
def test_float32_is_numpys(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = float(np.float32(value))
    assert np.array_equal(round_to(value, dtypes.float32), expected, equal_nan=True)
    assert np.array_equal(round_to(value, dtypes.float64), value, equal_nan=True)


def test_one_rounding_where_two_would_differ() -> None:
    """1 + 2**-8 is halfway between bfloat16's 1 and 1 + 2**-7; the 2**-30 beyond it decides, but float32 cannot hold it."""
    assert round_to(1 + 2**-8 + 2**-30, dtypes.bfloat16) == 1 + 2**-7


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (True, dtypes.float32, 1.0),
        (2**2000, dtypes.float32, math.inf),
        (-(2**2000), dtypes.float16, -math.inf),
        (7, dtypes.bool_, True),
        (True, dtypes.int32, 1),
        (-0.0, dtypes.float16, -0.0),
        (1e-30, dtypes.float16, 0.0),
        (-1e-30, dtypes.float16, -0.0),
    ],
)
def test_elements(value: Any, dtype: DType, expected: Any) -> None:
    result = element(value, dtype)
    assert (type(result), result) == (type(expected), expected)
    assert math.copysign(1, result) == math.copysign(1, expected)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (dtypes.float16, 1e300, True),
        (dtypes.uint8, 255, True),
        (dtypes.uint8, 256, False),
        (dtypes.uint8, -1, False),
        (dtypes.int32, 1.0, False),
        (dtypes.bool_, 1, False),
        (dtypes.bool_, True, True),
        (dtypes.int8, True, True),
    ],
)
def test_represents(dtype: DType, value: Any, expected: bool) -> None:
    assert represents(dtype, value) is expected
