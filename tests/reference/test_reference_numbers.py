"""Conversions between types against exact arithmetic: rational numbers, and rounding by search (conftest)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sampling import examples
from weft import dtypes
from weft.dtypes import DType
from weft.reference import numbers

Decode = Callable[[str, int], Fraction]
Nearest = Callable[[Fraction, str], int]

FLOATS = [d for d in dtypes.ALL if d.is_float]
NARROW = [d for d in FLOATS if d.bits < 32]
INTEGERS = [d for d in dtypes.ALL if d.is_integer]
BYTES = [d for d in dtypes.ALL if d.bits == 8]


def bits(x: NDArray[Any]) -> NDArray[Any]:
    """The patterns as unsigned integers."""
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def is_nan(x: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isnan(x.astype(np.float64))


def cast_one(value: int | float, source: DType, target: DType) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return numbers.cast(np.array([value]).astype(source.numpy), source, target)


def assert_float(
    result: NDArray[Any], exact: Fraction, target: DType, nearest: Nearest, negative: bool = False
) -> None:
    """One element is the nearest number of ``target`` to ``exact`` (``negative``: minus zero, if zero)."""
    expected = nearest(exact, target.name) | (int(negative and exact == 0) << (target.bits - 1))
    if target.finite_only and expected & 0x7F == 0x7F:
        assert is_nan(result)[0]
    else:
        assert hex(int(bits(result)[0])) == hex(expected), f"{exact} to {target}"


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_the_oracle_decodes_as_ml_dtypes_does(dtype: DType, decode: Decode, nearest: Nearest) -> None:
    patterns = np.arange(1 << (dtype.bits - 1), dtype=f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # signaling NaNs among the patterns
        values: list[float] = patterns.view(dtype.numpy).astype(np.float64).tolist()
    finite = [pattern for pattern, value in enumerate(values) if math.isfinite(value)]
    for pattern in (*finite[:: max(1, len(finite) // 500)], finite[-1]):
        assert decode(dtype.name, pattern) == Fraction(values[pattern])
        assert nearest(Fraction(values[pattern]), dtype.name) == pattern


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_range_of_a_format(dtype: DType) -> None:
    limits: Any = cast(Any, ml_dtypes).finfo(dtype.numpy)
    assert dtype.largest == float(limits.max)
    assert 2.0 ** (1 - dtype.bias) == float(limits.smallest_normal)
    least = float(limits.smallest_subnormal)
    assert dtype.represents(least)
    assert dtype.represents(-dtype.largest)
    assert dtype.represents(math.nan)
    assert dtype.represents(math.inf) is not dtype.finite_only
    if dtype.bits < 64:
        assert not dtype.represents(least / 2)
        assert not dtype.represents(1.5 * least)
        assert not dtype.represents(2 * dtype.largest)
        assert not dtype.represents(1 + 2.0 ** -(dtype.mantissa + 1))


@pytest.mark.parametrize("target", dtypes.ALL, ids=str)
@pytest.mark.parametrize("source", BYTES, ids=str)
def test_every_byte_to_every_type(source: DType, target: DType, nearest: Nearest) -> None:
    x = np.arange(256, dtype=np.uint8).view(source.numpy)
    with np.errstate(all="ignore"):
        result = numbers.cast(x, source, target)
    assert result.dtype == target.numpy
    assert result.shape == x.shape
    for value, got in zip(x.astype(np.float64).tolist(), result, strict=True):
        one = np.array([got])
        if target.is_bool:
            assert bool(got) is (value != 0)
        elif target.is_float:
            if math.isnan(value):
                assert is_nan(one)[0]
            elif math.isinf(value):
                assert is_nan(one)[0] if target.finite_only else float(got) == value
            else:
                assert_float(one, Fraction(value), target, nearest, math.copysign(1, value) < 0)
        elif source.is_integer:
            modulus = 1 << target.bits
            assert (int(got) - int(value)) % modulus == 0
        else:
            assert int(got) == saturated(value, target)


def saturated(value: float, target: DType) -> int:
    """Truncation toward zero, by the definition of ``fptosi.sat``."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return target.max if value > 0 else target.min
    return min(max(int(value), target.min), target.max)


@pytest.mark.parametrize("target", dtypes.ALL, ids=str)
def test_bool_to_every_type(target: DType) -> None:
    result = numbers.cast(np.array([False, True]), dtypes.bool_, target)
    assert result.dtype == target.numpy
    assert result.astype(np.float64).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("target", [dtypes.float8_e4m3fn, dtypes.float8_e5m2], ids=str)
@pytest.mark.parametrize("source", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_every_half_to_float8_as_ml_dtypes_rounds_float32(source: DType, target: DType) -> None:
    """A half is exact in float32, which ml_dtypes converts with one rounding."""
    x = np.arange(1 << 16, dtype=np.uint16).view(source.numpy)
    with np.errstate(all="ignore"):
        result, expected = numbers.cast(x, source, target), x.astype(np.float32).astype(target.numpy)
    assert (is_nan(result) == is_nan(expected)).all()
    same = (bits(result) == bits(expected)) | is_nan(expected)
    assert same.all(), x[~same][:5]


@pytest.mark.parametrize("target", FLOATS, ids=str)
@settings(max_examples=150, deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False) | st.floats(-500, 500))
def test_double_to_float_rounds_once(target: DType, value: float, nearest: Nearest) -> None:
    assert_float(cast_one(value, dtypes.float64, target), Fraction(value), target, nearest, math.copysign(1, value) < 0)


@pytest.mark.parametrize("target", FLOATS[:-1], ids=str)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_doubles_beside_a_midpoint(target: DType, data: st.DataObject, decode: Decode, nearest: Nearest) -> None:
    """The hard cases: the middle of two neighbours, and the doubles next to it."""
    last = nearest(Fraction(target.largest), target.name)
    pattern = data.draw(st.integers(0, last))
    middle = float((decode(target.name, pattern) + decode(target.name, pattern + 1)) / 2)
    for value in (math.nextafter(middle, 0), middle, math.nextafter(middle, math.inf)):
        assert_float(cast_one(value, dtypes.float64, target), Fraction(value), target, nearest)
        assert_float(cast_one(-value, dtypes.float64, target), Fraction(-value), target, nearest)


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", [dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64], ids=str)
@examples(60)
@given(data=st.data())
def test_integers_to_float_round_once(source: DType, target: DType, data: st.DataObject, nearest: Nearest) -> None:

    def near_midpoint(top: int, shift: int, delta: int) -> int:
        return min(max(((2 * top + 1) << shift) + delta, source.min), source.max)

    tops, shifts = st.integers(-(1 << 25), 1 << 25), st.integers(0, source.bits - 4)
    value = data.draw(st.integers(source.min, source.max) | st.builds(near_midpoint, tops, shifts, st.integers(-1, 1)))
    x = np.array([value], source.numpy)
    assert_float(numbers.cast(x, source, target), Fraction(value), target, nearest)


def test_where_two_roundings_differ_from_one() -> None:
    """Each value lies just above a midpoint; through float32 (or float64) it becomes the midpoint, then the even side."""
    assert float(cast_one(1 + 2**-8 + 2**-52, dtypes.float64, dtypes.bfloat16)[0]) == 1 + 2**-7
    assert float(cast_one(1 + 2**-4 + 2**-52, dtypes.float64, dtypes.float8_e4m3fn)[0]) == 1 + 2**-3
    assert float(cast_one(2**40 + 2**32 + 1, dtypes.int64, dtypes.bfloat16)[0]) == 2**40 + 2**33
    assert float(cast_one(2**62 + 2**38 + 1, dtypes.int64, dtypes.float32)[0]) == 2**62 + 2**39
    x = np.array([2**63 + 2**55 + 1], np.uint64)
    assert float(numbers.cast(x, dtypes.uint64, dtypes.bfloat16)[0]) == 2**63 + 2**56


def test_overflow() -> None:
    """464 is the middle between 448 and what would follow; the tie goes to the even 448."""
    e4m3, e5m2 = dtypes.float8_e4m3fn, dtypes.float8_e5m2
    assert float(cast_one(464.0, dtypes.float64, e4m3)[0]) == 448
    for value in (math.nextafter(464, 500), 1e300, math.inf, -math.inf, -480.0):
        assert is_nan(cast_one(value, dtypes.float64, e4m3))[0]
    assert float(cast_one(61439.99, dtypes.float64, e5m2)[0]) == 57344
    assert float(cast_one(61440.0, dtypes.float64, e5m2)[0]) == math.inf
    assert float(cast_one(65519.99, dtypes.float64, dtypes.float16)[0]) == 65504
    assert float(cast_one(-65520.0, dtypes.float64, dtypes.float16)[0]) == -math.inf
    assert float(cast_one(1e39, dtypes.float64, dtypes.float32)[0]) == math.inf
    assert float(cast_one((1 << 64) - 1, dtypes.uint64, dtypes.float16)[0]) == math.inf


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@settings(max_examples=80, deadline=None)
@given(value=st.floats() | st.integers(-(1 << 65), 1 << 65).map(float) | st.floats(-300, 300))
def test_float_to_integer_saturates(target: DType, value: float) -> None:
    assert int(cast_one(value, dtypes.float64, target)[0]) == saturated(value, target)


@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_float_to_integer_at_the_ends(target: DType) -> None:
    ends = [float(target.max), float(target.max) + 1, float(target.min), float(target.min) - 1]
    ends += [math.nextafter(e, d) for e in ends for d in (-math.inf, math.inf)]
    for value in (*ends, 0.99, -0.99, -1.0, math.nan, math.inf, -math.inf):
        assert int(cast_one(value, dtypes.float64, target)[0]) == saturated(value, target), value


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integer_to_integer_wraps(source: DType, target: DType) -> None:
    values = [source.min, source.min + 1, -1 if source.signed else 3, 0, 1, 127, 128, 255, source.max]
    values = [v for v in values if source.min <= v <= source.max]
    low = (1 << target.bits) - 1
    result = numbers.cast(np.array(values, source.numpy), source, target)
    assert [int(v) & low for v in result] == [v & low for v in values]
    assert result.dtype == target.numpy


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_to_bool_is_not_zero(source: DType) -> None:
    least = math.ldexp(1.0, 1 - source.bias - source.mantissa)
    values = [0.0, -0.0, least, -1.0, math.nan]
    result = numbers.cast(np.array(values).astype(source.numpy), source, dtypes.bool_)
    assert result.tolist() == [False, False, True, True, True]
    assert numbers.cast(np.array([0, 1 << 63], np.uint64), dtypes.uint64, dtypes.bool_).tolist() == [False, True]


def test_scalars_stay_arrays() -> None:
    for source, target in ((dtypes.int64, dtypes.bfloat16), (dtypes.float32, dtypes.int8), (dtypes.int8, dtypes.bool_)):
        result = numbers.cast(np.array(3, source.numpy), source, target)
        assert result.shape == ()
        assert result.dtype == target.numpy


def test_float32_agrees_with_struct() -> None:
    generator = np.random.default_rng(0)
    values = generator.standard_normal(200) * 10.0 ** generator.integers(-44, 38, 200)
    with np.errstate(all="ignore"):
        result = numbers.cast(values, dtypes.float64, dtypes.float32)
    assert result.tolist() == [struct.unpack("f", struct.pack("f", v))[0] for v in values]
