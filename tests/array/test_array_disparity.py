"""Differences of arrays against exact fractions, element by element."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from weft import dtypes
from weft.array.comparing.disparity import disparity, unlike
from weft.dtypes import DType

EDGES: dict[bool, list[float]] = {
    True: [
        0,
        1,
        2,
        7,
        127,
        128,
        255,
        2**24,
        2**24 + 1,
        2**31,
        2**53,
        2**53 + 1,
        2**63 - 1,
        2**63,
        2**64 - 1,
        -1,
        -(2**63),
    ],
    False: [
        0.0,
        -0.0,
        0.1,
        1.0,
        2.0,
        7.0,
        255.0,
        2.0**24,
        2.0**53,
        2.0**63,
        2.0**64,
        -1.0,
        -(2.0**63),
        math.inf,
        math.nan,
    ],
}
"""Numbers at which types begin to lose others; integers, floats."""


def edges(dtype: DType) -> Any:
    """Those of them that the type can be given without an error."""
    if dtype.is_float:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array(EDGES[False], np.float64).astype(dtype.numpy)
    return np.array([v for v in EDGES[True] if dtype.min <= v <= dtype.max], dtype.numpy)


def exact(value: Any) -> Fraction | float:
    """A number as a fraction; infinities and NaN as they are."""
    if isinstance(value, int):
        return Fraction(value)
    number = float(value)
    return Fraction(number) if math.isfinite(number) else number


def values(x: Any) -> list[Fraction | float]:
    """The elements, exactly; integers never pass through a float."""
    integral = x.dtype.kind in "iub"
    return [exact(v.item() if integral else float(v)) for v in x.reshape(-1)]


@pytest.mark.parametrize("first", dtypes.ALL, ids=str)
def test_every_pair_of_types(first: DType) -> None:
    for second in dtypes.ALL:
        a, b = edges(first), edges(second)
        grid = np.repeat(a, len(b)), np.tile(b, len(a))
        pairs = list(itertools.product(values(a), values(b)))
        expected = [x != y and not (math.isnan(x) and math.isnan(y)) for x, y in pairs]
        assert unlike(*grid).tolist() == expected, second
        found = disparity(*grid)
        assert found is not None and found.count == sum(expected) and found.size == len(pairs)
        finite = [abs(x - y) for x, y in pairs if isinstance(x, Fraction) and isinstance(y, Fraction)]
        if all(math.isfinite(v) for v in (*values(a), *values(b))):
            # Two float64 differ by a float64 only after a rounding.
            assert found.absolute == pytest.approx(float(max(finite)), rel=2**-52)


def test_integers_and_floats_at_the_end_of_precision() -> None:
    found = disparity(np.array([2**53 + 1, 2**53 + 3]), np.array([2.0**53, 2.0**53 + 4]))
    # 1 of 2**53 + 1; 2**53 + 3 and 2**53 + 4.
    assert found is not None and (found.count, found.absolute, found.relative) == (2, 1.0, 1 / (2**53 + 1))
    extremes = disparity(np.array([2**63 - 1]), np.array([-(2**63)]))
    assert extremes is not None and extremes.absolute == float(2**64 - 1)


def test_nan_and_infinities() -> None:
    nan, inf = math.nan, math.inf
    assert disparity(np.array([nan, inf, -0.0]), np.array([nan, inf, 0.0], np.float32)) is None
    found = disparity(np.array([nan, 1.0, 2.0]), np.array([1.0, nan, 2.5]))
    assert found is not None and (found.count, found.nans, found.absolute, found.relative) == (3, 2, 0.5, 0.2)
    far = disparity(np.array([inf, 1.0]), np.array([1.0, 1.0]))
    assert far is not None and (far.count, far.absolute, far.relative) == (1, inf, inf)
    lost = disparity(np.array([nan]), np.array([3], np.int64))
    assert lost is not None and (lost.count, lost.nans, lost.second) == (1, 1, 3) and math.isnan(lost.absolute)


def test_complex() -> None:
    found = disparity(np.array([1 + 1j, 2]), np.array([1 + 2j, 2], np.complex64))
    assert found is not None
    assert (found.count, found.first, found.second, found.absolute) == (1, 1 + 1j, 1 + 2j, 1.0)
    assert disparity(np.array([2**53 + 1]), np.array([complex(2**53)])) is not None


def test_places() -> None:
    a = np.zeros((2, 3), np.int8)
    b = np.array([[0, 0, 5], [0, -7, 0]])
    found = disparity(a, b)
    assert found is not None and (found.count, found.index, found.second) == (2, (0, 2), 5)
    later = disparity(a, b, b < 0)
    assert later is not None and (later.count, later.index, later.second) == (2, (1, 1), -7)
    assert disparity(np.empty((0, 2)), np.empty((0, 2))) is None
    only = disparity(np.array(1.0), np.array(2.0))
    assert only is not None and (only.size, only.index) == (1, ())


def test_other_shapes() -> None:
    with pytest.raises(ValueError) as raised:
        disparity(np.zeros(2), np.zeros((2, 1)))
    assert str(raised.value) == "arrays of shapes (2,) and (2, 1) have no elements to compare"
