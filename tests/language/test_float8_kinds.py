"""float8e4b15, float8e4b8, float8e5b16: all codes and all float16 numbers against the formats' definitions, on each machine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from machines import on
from sampling import grid
from weft.dtypes import DType, float8_e4m3b15, float8_e4m3fnuz, float8_e5m2fnuz, from_numpy
from weft.frontend.literals import round_to
from weft.reference import numbers
from weft.triton import reinterpret

pytestmark = pytest.mark.jit

Array = NDArray[Any]
FORMATS: Final[dict[DType, tuple[int, int]]] = {
    float8_e4m3b15: (3, 15),
    float8_e4m3fnuz: (3, 8),
    float8_e5m2fnuz: (2, 16),
}
"""Bits of the mantissa, and the bias."""
KINDS: Final = list(FORMATS)
TARGETS: Final = (None, "sm_80", "sm_90")
CODES: Final = np.arange(256, dtype=np.uint8)
HALVES: Final = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def exact(code: int, kind: DType) -> Fraction | None:
    """The number of a code by definition; None for NaN, the place of -0 in the formats of bias 8 and 16."""
    mantissa, bias = FORMATS[kind]
    if code == 0x80 and kind is not float8_e4m3b15:
        return None
    exponent, fraction = divmod(code & 0x7F, 1 << mantissa)
    size = Fraction(fraction + ((1 << mantissa) if exponent else 0)) * Fraction(2) ** (
        max(exponent, 1) - bias - mantissa
    )
    return -size if code & 0x80 else size


def numbers_of(kind: DType) -> Array:
    found = [exact(code, kind) for code in range(256)]
    values = np.array([np.nan if v is None else float(v) for v in found])
    return np.where(CODES == 0x80, -values, values) if kind is float8_e4m3b15 else values


def nearest(x: Array, kind: DType) -> Array:
    """The codes of float64 values. Ties go to even codes, and what rounds beyond the greatest number is NaN. In float8e4b15
    ties go away from zero, and 1.75 is the greatest, also for infinity and NaN. All differences are exact."""
    values = numbers_of(kind)[:128]
    saturates = kind is float8_e4m3b15
    grid = values[:127] if saturates else np.append(values, 2 * values[-1] - values[-2])  # the last one is beyond
    size = np.where(np.isnan(x) | (np.abs(x) > grid[-1]), grid[-1], np.abs(x))
    below = np.clip(np.searchsorted(grid, size, side="right") - 1, 0, len(grid) - 2)
    low, high = size - grid[below], grid[below + 1] - size
    up = (low > high) | ((low == high) & (saturates | (below % 2 == 1)))
    code: Array = below + up
    if saturates:
        return (code | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)
    signed = code | np.where((code == 0) | ~np.signbit(x), 0, 0x80)
    return np.where((code > 127) | np.isnan(x), 0x80, signed).astype(np.uint8)


def assert_codes(found: Array, x: Array, kind: DType) -> None:
    """The sign of what NaN becomes is not specified."""
    sign = np.where(np.isnan(x), 0x80, 0)
    np.testing.assert_array_equal(found | sign, nearest(x, kind) | sign)


@weft.jit
def convert(x: Any, out: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


def test_the_oracle_agrees_with_ml_dtypes() -> None:
    for kind, scalar in ((float8_e4m3fnuz, ml_dtypes.float8_e4m3fnuz), (float8_e5m2fnuz, ml_dtypes.float8_e5m2fnuz)):
        np.testing.assert_array_equal(numbers_of(kind), CODES.view(scalar).astype(np.float64))
        assert from_numpy(np.dtype(scalar)) is kind
    with pytest.raises(TypeError, match="neither NumPy nor ml_dtypes has float8_e4m3b15"):
        float8_e4m3b15.numpy  # noqa: B018 - the property raises


@pytest.mark.parametrize(("kind", "target"), grid(2, KINDS, TARGETS))
def test_all_codes_as_wider_floats(kind: DType, target: str | None) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        out = np.zeros(256, dtype)
        on(convert, target)[(1,)](reinterpret(CODES, kind), out, 256)
        np.testing.assert_array_equal(out, numbers_of(kind))
        known = ~np.isnan(out)
        np.testing.assert_array_equal(np.signbit(out)[known], np.signbit(numbers_of(kind))[known])


@pytest.mark.parametrize(("kind", "target"), grid(1, KINDS, TARGETS))
def test_all_float16_numbers(kind: DType, target: str | None) -> None:
    x = HALVES if target is None else HALVES[target == "sm_80" :: 64].copy()
    codes = np.zeros(x.size, np.uint8)
    on(convert, target)[(x.size // 512,)](x, reinterpret(codes, kind), 512)
    with np.errstate(invalid="ignore"):
        assert_codes(codes, x.astype(np.float64), kind)


def midpoints(kind: DType) -> Array:
    """Numbers, the middles between them, and what is next to those."""
    values = numbers_of(kind)[:128]
    middles = (values[1:] + values[:-1]) / 2
    every = np.concatenate([values, middles, [2 * values[-1], np.inf, np.nan]])
    return np.concatenate([every, -every])


@pytest.mark.parametrize(("kind", "target", "dtype"), grid(3, KINDS, TARGETS, [np.float32, np.float64]))
def test_neighbours_of_ties(kind: DType, target: str | None, dtype: type[Any]) -> None:
    """One rounding, of float64 too: a float beside a tie goes to the nearer side."""
    with np.errstate(all="ignore"):
        at = midpoints(kind).astype(dtype)
        x = np.concatenate([at, np.nextafter(at, dtype(np.inf)), np.nextafter(at, dtype(-np.inf))])
    x = np.concatenate([x, np.zeros(-x.size % 512, dtype)])
    codes = np.zeros(x.size, np.uint8)
    on(convert, target)[(x.size // 512,)](x, reinterpret(codes, kind), 512)
    assert_codes(codes, x.astype(np.float64), kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_reference_and_literals(kind: DType) -> None:
    x = np.concatenate([midpoints(kind), np.nextafter(midpoints(kind), 0)])
    codes = nearest(x, kind)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(numbers.rounded(x, kind).view(np.uint8), codes)
    np.testing.assert_array_equal(numbers.wide(CODES.view(kind.storage), kind), numbers_of(kind))
    literals = np.array([round_to(float(v), kind) for v in x])
    np.testing.assert_array_equal(literals, numbers_of(kind)[codes])


@pytest.mark.parametrize(("kind", "target"), grid(2, KINDS, TARGETS))
def test_integers_and_narrow_floats_become_float8(kind: DType, target: str | None) -> None:
    for dtype in (np.int8, np.int64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        x = np.arange(-128, 128).astype(dtype)
        codes = np.zeros(256, np.uint8)
        on(convert, target)[(1,)](x, reinterpret(codes, kind), 256)
        np.testing.assert_array_equal(codes, nearest(x.astype(np.float64), kind))


@weft.jit
def narrowed(x: Any, out: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.cast(tl.load(x + i), out.dtype.element_ty, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize(("kind", "target"), grid(2, KINDS, TARGETS))
def test_conversions_towards_zero(kind: DType, target: str | None) -> None:
    """Of each number the largest that is no larger in magnitude. Infinity gives the greatest number; NaN stays, or is 1.75."""
    x = HALVES if target is None else HALVES[target == "sm_80" :: 64].copy()
    codes = np.zeros(x.size, np.uint8)
    on(narrowed, target)[(x.size // 512,)](x, reinterpret(codes, kind), 512)
    numbers = numbers_of(kind)[: kind.saturates + 1 if kind.saturates else 128]
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    found = numbers[np.searchsorted(numbers, np.where(np.isnan(wide), np.inf, np.abs(wide)), side="right") - 1]
    expected = np.where(np.isnan(wide) & (kind.saturates == 0), np.nan, np.copysign(found, wide))
    sign = np.where(np.isnan(wide), 0x80, 0)
    np.testing.assert_array_equal(numbers_of(kind)[codes | sign], np.where(sign, -np.abs(expected), expected))


@weft.jit
def forms(x: Any, y: Any, size: Any, both: Any, sums: Any, bits: Any, chosen: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(size + i, tl.abs(a))
    tl.store(both + i, a < b)
    tl.store(sums + i, a.to(tl.float32) + b.to(tl.float32))
    tl.store(bits + i, a.to(tl.uint8, bitcast=True) ^ 1)
    tl.store(chosen + i, tl.where(a < b, a, tl.full((B,), 1.75, a.dtype)).to(tl.float16))


@pytest.mark.parametrize(("kind", "target"), grid(2, KINDS, TARGETS))
def test_absolute_values_comparisons_and_bits(kind: DType, target: str | None) -> None:
    y = np.roll(CODES, 37)
    size, bits = np.zeros((2, 256), np.uint8)
    both, sums, chosen = np.zeros(256, np.bool_), np.zeros(256, np.float32), np.zeros(256, np.float16)
    arrays = (reinterpret(CODES, kind), reinterpret(y, kind), reinterpret(size, kind))
    on(forms, target)[(1,)](*arrays, both, sums, bits, chosen, 256)
    a, b = numbers_of(kind)[CODES], numbers_of(kind)[y]
    np.testing.assert_array_equal(numbers_of(kind)[size], np.abs(a))
    assert not np.signbit(numbers_of(kind)[size])[~np.isnan(a)].any()
    np.testing.assert_array_equal(both, a < b)
    np.testing.assert_array_equal(sums, (a + b).astype(np.float32))
    np.testing.assert_array_equal(bits, CODES ^ 1)
    np.testing.assert_array_equal(chosen, np.where(a < b, a, 1.75))


@weft.jit
def sorted_codes(x: Any, out: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@pytest.mark.parametrize(("kind", "target"), grid(2, KINDS, TARGETS))
def test_numbers_are_sorted_and_nan_is_the_last(kind: DType, target: str | None) -> None:
    codes = np.random.default_rng(2).permutation(CODES)
    out = np.zeros(256, np.uint8)
    on(sorted_codes, target)[(1,)](reinterpret(codes, kind), reinterpret(out, kind), 256)
    np.testing.assert_array_equal(numbers_of(kind)[out], np.sort(numbers_of(kind)))


@weft.jit
def product(x: Any, y: Any, out: Any, B: tl.constexpr) -> None:
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(out + i * B + j, tl.dot(tl.load(x + i * B + j), tl.load(y + i * B + j)))


@pytest.mark.parametrize(("kind", "target"), grid(3, KINDS, TARGETS))
def test_matrices_are_multiplied_exactly(kind: DType, target: str | None) -> None:
    random = np.random.default_rng(1)
    x, y = (nearest(random.normal(size=(16, 16)), kind) for _ in range(2))
    out = np.zeros((16, 16), np.float32)
    on(product, target)[(1,)](reinterpret(x, kind), reinterpret(y, kind), out, 16)
    np.testing.assert_allclose(out, numbers_of(kind)[x] @ numbers_of(kind)[y], rtol=1e-5, atol=1e-5)


def test_arrays_of_other_sizes_are_no_float8e4b15() -> None:
    with pytest.raises(TypeError, match="Cannot reinterpret int16 as float8_e4m3b15: the sizes differ"):
        reinterpret(np.zeros(4, np.int16), tl.float8e4b15)


def test_arrays_of_ml_dtypes_are_taken() -> None:
    for scalar in (ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz):
        x, out = np.linspace(-4, 4, 64).astype(scalar), np.zeros(64, np.float32)
        convert[(1,)](x, out, 64)
        np.testing.assert_array_equal(out, x.astype(np.float32))


def test_tensors_of_pytorch_are_taken() -> None:
    torch = pytest.importorskip("torch", reason="tensors of PyTorch")
    for dtype in (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        x = torch.linspace(-4, 4, 64).to(dtype)
        out = torch.zeros(64)
        convert[(1,)](x, out, 64)
        assert torch.equal(out, x.float())
