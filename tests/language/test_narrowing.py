"""Conversions of floats rounded towards zero, against all numbers of the narrower type in order; those beyond float8."""

# Kernels read attributes that dtypes have in kernels only, and dtypes annotate parameters.
# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from sampling import grid, some
from weft import dtypes
from weft.dtypes import DType

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_80", "sm_90")
PAIRS: Final = [
    (np.float16, dtypes.float8_e5m2),
    (np.float16, dtypes.float8_e4m3fn),
    (np.float32, dtypes.float8_e5m2),
    (np.float32, dtypes.float8_e4m3fn),
    (np.float32, dtypes.float16),
    (np.float32, dtypes.bfloat16),
    (np.float64, dtypes.float16),
    (np.float64, dtypes.float32),
    (ml_dtypes.bfloat16, dtypes.float8_e5m2),
]


@pytest.fixture(autouse=True)
def overflows() -> Iterator[None]:
    """NumPy does not warn: numbers are out of range on purpose."""
    with np.errstate(all="ignore"):
        yield


@weft.jit
def narrowed(x: Any, out: Any, T: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.cast(tl.load(x + i), T, fp_downcast_rounding="rtz"))


def expected_of(x: NDArray[Any], dtype: DType) -> NDArray[np.float64]:
    """Of each number the largest of the type that is no larger in magnitude, with its sign."""
    if dtype.bits == 32:
        near = x.astype(np.float32)
        down = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
        return down.astype(np.float64)
    codes = np.arange(1 << (dtype.bits - 1), dtype=np.dtype(f"u{dtype.itemsize}"))
    values = codes.view(dtype.numpy).astype(np.float64)
    values = np.sort(values[np.isfinite(values)])
    wide = x.astype(np.float64)
    magnitude = np.abs(wide)
    found = values[np.searchsorted(values, np.where(np.isnan(magnitude), 0, magnitude), side="right") - 1]
    if not dtype.finite_only:
        found = np.where(np.isinf(magnitude), np.inf, found)
    return np.where(np.isnan(wide), np.nan, np.copysign(found, wide))


@pytest.mark.parametrize(("target", "pair"), grid(3, TARGETS, PAIRS))
def test_conversions_towards_zero(target: str | None, pair: tuple[type[Any], DType]) -> None:
    source, dtype = pair
    if np.dtype(source).itemsize == 2:
        x = np.arange(1 << 16, dtype=np.uint16).view(source)[:: 1 if target is None else 64].copy()
    else:
        random = np.random.default_rng(0)
        x = (random.normal(size=1024) * 10.0 ** random.integers(-46, 40, 1024)).astype(source)
        x[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 65519.0, -464.0, 1.0]
    out = np.zeros(x.size, dtype.numpy)
    kernel = narrowed if target is None else narrowed.on(target)
    kernel[(x.size // 512,)](x, out, T=dtype, B=512)
    np.testing.assert_array_equal(out.astype(np.float64), expected_of(x, dtype))
    finite = np.isfinite(x.astype(np.float64))
    np.testing.assert_array_equal(np.signbit(out)[finite], np.signbit(x)[finite])


@weft.jit
def facts(x: Any) -> None:
    tl.static_assert(x.dtype.element_ty.int_bitwidth == 16)
    tl.static_assert(x.dtype.element_ty.get_int_max_value() == 32767)
    tl.static_assert(tl.int8.get_int_min_value() == -128)
    tl.static_assert(tl.bfloat16.fp_mantissa_width == 7)
    tl.static_assert(tl.float8e5.exponent_bias == 15)
    tl.static_assert(not tl.float32.is_block() and not tl.float32.is_void() and not tl.int64.is_const())
    tl.static_assert(tl.zeros((4, 8), tl.float16).type.nbytes == 64)


def test_attributes_of_dtypes() -> None:
    facts[(1,)](np.zeros(1, np.int16))


@weft.jit
def converted(x: Any, out: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))


@weft.jit(semantics="jax")
def converted_as_jax_does(x: Any, out: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [dtypes.float8_e4m3fn, dtypes.float8_e5m2], ids=str)
@pytest.mark.parametrize("source", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_what_is_beyond_float8_becomes_its_largest_number(target: str | None, dtype: DType, source: type[Any]) -> None:
    """As in Triton's `test_typeconvert_downcast_clamping`; infinity of a type that is as wide stays."""
    if (same := np.dtype(source).itemsize == 1) and dtype == dtypes.float8_e5m2:
        expected = x = np.array([np.inf, -np.inf, np.nan, 57344], source)
    else:
        large = [np.inf, -np.inf, np.nan, 448, -448, 464, 465, 480, -500, 57344, 61440, -65504, 0.3, -0.0, 1e-9, 2**-9]
        x = np.array(large * (1 if same else 4), source)
        most = float(ml_dtypes.finfo(dtype.numpy).max)
        expected = np.clip(x.astype(np.float32), -most, most).astype(dtype.numpy)
    out = np.zeros(x.size, dtype.numpy)
    kernel = converted if target is None else converted.on(target)
    kernel[(1,)](x, out, B=x.size)
    np.testing.assert_array_equal(out.astype(np.float32), expected.astype(np.float32))
    assert np.signbit(out.astype(np.float32))[~np.isnan(x)].tolist() == np.signbit(x)[~np.isnan(x)].tolist()


@weft.jit
def converted_on_the_way(x: Any, out: Any, number: tl.float8e5, T: tl.constexpr) -> None:
    i = tl.arange(0, 16)
    tl.store(out + i, tl.full((16,), tl.load(x), T))
    tl.store(out + 16 + i, tl.zeros((16,), T) + tl.sum(tl.load(x + i), dtype=T))
    tl.store(out + 32 + i, tl.cumsum(tl.load(x + i), dtype=T))
    at = i[:, None] * 16 + i[None, :]
    product = tl.dot(tl.full((16, 16), 100.0, tl.float16), tl.full((16, 16), 100.0, tl.float16), out_dtype=T)
    tl.store(out + 48 + at, product)
    tl.store(out + 304 + i, tl.zeros((16,), tl.float8e5) + number)


@pytest.mark.parametrize("dtype", [dtypes.float8_e4m3fn, dtypes.float8_e5m2], ids=str)
def test_functions_that_convert_to_float8_do_so_alike(dtype: DType) -> None:
    """`tl.full` of a run-time number, ``dtype`` of sums, ``out_dtype`` of products, a parameter with a type."""
    x, out = np.zeros(16, np.float32), np.zeros(320, dtype.numpy)
    x[0] = 1e6
    converted_on_the_way[(1,)](x, out, 1e6, T=dtype)
    most = float(ml_dtypes.finfo(dtype.numpy).max)
    assert set(out[:304].astype(np.float32).tolist()) == {most}
    assert set(out[304:].astype(np.float32).tolist()) == {min(most, 57344.0)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [dtypes.float8_e4m3fn, dtypes.float8_e5m2], ids=str)
@pytest.mark.parametrize(
    "source", some([np.int16, np.uint16, np.int32, np.int64, np.uint64], np.int16, np.int32, np.uint64)
)
def test_integers_beyond_float8_become_its_largest_number(target: str | None, dtype: DType, source: type[Any]) -> None:
    info, most = np.iinfo(source), int(ml_dtypes.finfo(dtype.numpy).max)
    near = [448, 449, 464, 465, 480, 17, 30000, 57344, 60000, 61440, 65535]
    x = np.array([n for n in (*near, *(-n for n in near), info.min, info.max, 0) if info.min <= n <= info.max], object)
    x = np.resize(x, 32).astype(source)
    out = np.zeros(32, dtype.numpy)
    (converted if target is None else converted.on(target))[(1,)](x, out, B=32)
    expected = np.clip(x.astype(np.float64), -most, most).astype(np.float32).astype(dtype.numpy)
    np.testing.assert_array_equal(out.astype(np.float32), expected.astype(np.float32))


def test_what_is_beyond_float8_is_no_number_in_jax() -> None:
    x, out = np.array([448, 464, 465, np.inf], np.float32), np.zeros(4, ml_dtypes.float8_e4m3fn)
    converted_as_jax_does[(1,)](x, out, B=4)
    np.testing.assert_array_equal(out.astype(np.float32), [448, 448, np.nan, np.nan])
