"""Directed rounding and fused multiply-add against rationals."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator_exact import F32, F64, Shape, power, rounded
from weft.emulator.arith import double, exact, rounding, single

MODES = rounding.MODES

EDGES32 = [
    0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x33800000, 0x34000000, 0x3F7FFFFF, 0x3F800000,
    0x3F800001, 0x3FFFFFFF, 0x40000000, 0x4B7FFFFF, 0x4B800001, 0x5F000001, 0x7E800000, 0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF,
    0x1A000001, 0x2000FFFF, 0x00012345,
]  # fmt: skip
EDGES64 = [
    0x0000000000000000, 0x0000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x0010000000000001, 0x1E56789ABCDEF012,
    0x2200000000000001, 0x3CA0000000000000, 0x3CB0000000000001, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0x3FF0000000000001,
    0x4000000000000000, 0x433FFFFFFFFFFFFF, 0x5F00000000000001, 0x7FD0000000000000, 0x7FEFFFFFFFFFFFFF,
]  # fmt: skip


def f32(*values: float) -> rounding.F32:
    return np.array(values, np.float32)


def edges(bits: int) -> Any:
    """Edge values of both signs."""
    values = np.array(EDGES32, np.uint32) if bits == 32 else np.array(EDGES64, np.uint64)
    top = values.dtype.type(1 << (bits - 1))
    return np.concatenate([values, values | top]).view(f"f{bits // 8}")


def fewer(values: Any) -> Any:
    """Both zeros and every other value."""
    return np.concatenate([values[values == 0], values[2::2]])


def pairs(values: Any, count: int) -> list[Any]:
    """Every combination, as arrays."""
    return [np.array(column) for column in zip(*itertools.product(values, repeat=count), strict=True)]


def bits_of(x: Any) -> list[int]:
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}").tolist()


def zero_of_sum(x: float, y: float, mode: str) -> float:
    """IEEE 754, 6.3: a sum of zero has the sign of both terms, or if they differ is +0, in mode rm -0."""
    if x == 0 and y == 0 and math.copysign(1, x) == math.copysign(1, y):
        return x
    return -0.0 if mode == "rm" else 0.0


def signed_zero(*factors: float) -> float:
    sign = 1.0
    for factor in factors:
        sign *= math.copysign(1, factor)
    return math.copysign(0.0, sign)


def exact_add(x: float, y: float, shape: Shape, mode: str) -> float:
    return rounded(Fraction(x) + Fraction(y), shape, mode, zero_of_sum(x, y, mode))


def exact_mul(x: float, y: float, shape: Shape, mode: str) -> float:
    return rounded(Fraction(x) * Fraction(y), shape, mode, signed_zero(x, y))


def exact_div(x: float, y: float, shape: Shape, mode: str) -> float:
    if y == 0:
        return math.nan if x == 0 else math.copysign(math.inf, signed_zero(x, y))
    return rounded(Fraction(x) / Fraction(y), shape, mode, signed_zero(x, y))


def exact_fma(x: float, y: float, z: float, shape: Shape, mode: str) -> float:
    product = Fraction(x) * Fraction(y)
    zero = zero_of_sum(signed_zero(x, y) if product == 0 else 1.0, z, mode)
    return rounded(product + Fraction(z), shape, mode, zero)


def expect(got: Any, expected: list[float]) -> None:
    """Bit for bit; NaNs are equal."""
    want = np.array(expected, np.float64).astype(got.dtype)
    same = (np.isnan(got) & np.isnan(want)) | (got.view(f"u{got.itemsize}") == want.view(f"u{got.itemsize}"))
    wrong = np.flatnonzero(~same)
    assert not wrong.size, [(int(i), float(got[i]).hex(), float(want[i]).hex()) for i in wrong[:5]]


BINARY: dict[str, Callable[..., float]] = {"add": exact_add, "mul": exact_mul, "div": exact_div}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("bits", [32, 64])
def test_edges_of_binary_operations(name: str, mode: str, bits: int) -> None:
    x, y = pairs(edges(bits), 2)
    with np.errstate(all="ignore"):
        got = getattr(single if bits == 32 else double, name)(x, y, mode)
    expect(got, [BINARY[name](float(a), float(b), F32 if bits == 32 else F64, mode) for a, b in zip(x, y, strict=True)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bits", [32, 64])
def test_sub_is_add_of_the_negative(mode: str, bits: int) -> None:
    x, y = pairs(edges(bits), 2)
    with np.errstate(all="ignore"):
        got = (single if bits == 32 else double).sub(x, y, mode)
    expect(got, [exact_add(float(a), -float(b), F32 if bits == 32 else F64, mode) for a, b in zip(x, y, strict=True)])


@pytest.mark.parametrize("mode", MODES)
def test_edges_of_fma32(mode: str) -> None:
    x, y, z = pairs(fewer(edges(32)), 3)
    with np.errstate(all="ignore"):
        got = single.fma(x, y, z, mode)
    expect(got, [exact_fma(float(a), float(b), float(c), F32, mode) for a, b, c in zip(x, y, z, strict=True)])


@pytest.mark.parametrize("mode", MODES)
def test_edges_of_fma64(mode: str) -> None:
    x, y, z = pairs(fewer(edges(64)), 3)
    with np.errstate(all="ignore"):
        got = double.fma(x, y, z, mode)
    expect(got, [exact_fma(float(a), float(b), float(c), F64, mode) for a, b, c in zip(x, y, z, strict=True)])


def nearly_halfway(shape: Shape, count: int, seed: int) -> list[tuple[float, float, float]]:
    """(x, y, z) with x*y + z within a hair of the middle between two numbers of the format: z is a number, x*y half its unit
    in the last place times (1 + a hair), which is more than a first rounding to float64 keeps."""
    random = np.random.default_rng(seed)
    found: list[tuple[float, float, float]] = []
    for _ in range(count):
        near_least = bool(random.random() < 0.5)
        exponent = int(random.integers(shape.least + 30, shape.least + 160) if near_least else random.integers(-30, 90))
        z = float(int(random.integers(1 << (shape.precision - 1), 1 << shape.precision)) * power(exponent))
        hair = power(1 - shape.precision)
        u, v = (Fraction(1) + hair * int(n) for n in random.integers(-2, 3, 2))
        shift = int(random.integers(0, shape.precision))
        x, y = float(u * power(shift)), float(v * power(exponent - 1 - shift))
        signs = random.choice([-1.0, 1.0], 2)
        found.append((x * signs[0], y, z * signs[1]))
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "module"), [(F32, single), (F64, double)], ids=["f32", "f64"])
def test_fma_next_to_the_middle_between_two_numbers(mode: str, shape: Shape, module: Any) -> None:
    cases = nearly_halfway(shape, 1500, 5)
    dtype = np.float32 if shape is F32 else np.float64
    x, y, z = (np.array(column, dtype) for column in zip(*cases, strict=True))
    assert [float(v) for v in z] == [c for _, _, c in cases]
    with np.errstate(all="ignore"):
        got = module.fma(x, y, z, mode)
    expect(got, [exact_fma(float(a), float(b), float(c), shape, mode) for a, b, c in zip(x, y, z, strict=True)])


def test_fma32_is_not_two_roundings() -> None:
    # (1 + 2**-12)**2 = 1 + 2**-11 + 2**-24; with -1: 2**-11 + 2**-24, which float32 holds; x*y alone rounds 2**-24 away.
    x, z = f32(1 + 2.0**-12), f32(-1)
    assert single.fma(x, x, z, "rn").tolist() == [2.0**-11 + 2.0**-24]
    # 2**-24 (1 - 2**-46) and 1 + 2**-23: below the tie with 1 + 2**-22, but on it, and so rounded up, if float64 comes between.
    x, y, z = f32(2.0**-24 * (1 + 2.0**-23)), f32(1 - 2.0**-23), f32(1 + 2.0**-23)
    assert single.fma(x, y, z, "rn").tolist() == [1 + 2.0**-23]


def test_fma32_next_to_a_subnormal_tie() -> None:
    # The middle between two subnormal numbers, 2**-127 + 2**-150, and a product beyond float64's last bit of it.
    x, y = f32(2.0**-75, 2.0**-75), f32(2.0**-75 * (1 + 2.0**-23), 2.0**-75 * (1 - 2.0**-24))
    z = f32(2.0**-127, 2.0**-127)
    assert single.fma(x, y, z, "rn").tolist() == [2.0**-127 + 2.0**-149, 2.0**-127]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bits", [32, 64])
def test_square_roots(mode: str, bits: int) -> None:
    random = np.random.default_rng(1)
    values: Any = np.abs(edges(bits))
    if bits == 32:
        more: Any = random.integers(0, 0x7F800000, 500, dtype=np.uint32).view(np.float32)
    else:
        more = random.integers(0, 0x7FF0000000000000, 500, dtype=np.uint64).view(np.float64)
    x: Any = np.concatenate([values, more])
    with np.errstate(all="ignore"):
        got = (single if bits == 32 else double).sqrt(x, mode)
    # r is right if and only if its distance from the root is what the mode says: compare squares, exactly.
    for a, r in zip(x, got, strict=True):
        below, above = (float(np.nextafter(r, r.dtype.type(t))) for t in (-1.0, np.inf))
        root, square = float(r), Fraction(float(a))
        match mode:
            case "rm" | "rz":
                assert Fraction(root) ** 2 <= square < Fraction(above) ** 2
            case "rp":
                assert Fraction(root) ** 2 >= square and (root == 0 or Fraction(below) ** 2 < square)
            case _:
                low, high = (Fraction(root) + Fraction(t) for t in (below, above))
                assert (root == 0 or (low / 2) ** 2 < square) and square < (high / 2) ** 2


@pytest.mark.parametrize("mode", MODES)
def test_specials(mode: str) -> None:
    with np.errstate(all="ignore"):
        for module, f in ((single, np.float32), (double, np.float64)):
            inf, nan, zero = (np.array([v], f) for v in (np.inf, np.nan, 0.0))
            big = np.array([np.finfo(f).max], f)
            assert np.isnan(module.add(inf, -inf, mode)[0]) and np.isnan(module.add(nan, zero, mode)[0])
            assert np.isnan(module.mul(inf, zero, mode)[0]) and np.isnan(module.div(zero, zero, mode)[0])
            assert np.isnan(module.fma(inf, zero, nan, mode)[0]) and np.isnan(module.sqrt(-inf, mode)[0])
            assert module.add(inf, big, mode)[0] == np.inf and module.mul(inf, -big, mode)[0] == -np.inf
            assert module.div(-big, inf, mode).tolist() == [0.0] and module.div(big, -zero, mode)[0] == -np.inf
            assert np.signbit(module.div(-big, inf, mode)[0]) and np.signbit(module.sqrt(-zero, mode)[0])
            assert module.sqrt(inf, mode)[0] == np.inf
            # A product that overflows is finite all the same: an infinite addend decides.
            assert module.fma(big, big, -inf, mode)[0] == -np.inf
            assert module.fma(big, inf, -big, mode)[0] == np.inf


def float_bits(bits: int) -> st.SearchStrategy[float]:
    """Any finite number, its bits drawn uniformly."""
    code = "<f" if bits == 32 else "<d"
    return (
        st.integers(0, 2**bits - 1)
        .map(lambda n: struct.unpack(code, n.to_bytes(bits // 8, "little"))[0])
        .filter(math.isfinite)
    )


@settings(max_examples=400, deadline=None)
@given(float_bits(64), float_bits(64), float_bits(64), st.sampled_from(MODES))
def test_any_fma64(x: float, y: float, z: float, mode: str) -> None:
    with np.errstate(all="ignore"):
        got = double.fma(np.array([x]), np.array([y]), np.array([z]), mode)
    expect(got, [exact_fma(x, y, z, F64, mode)])
    expect(np.array([exact.fma(x, y, z, mode)]), [exact_fma(x, y, z, F64, mode)])


@settings(max_examples=300, deadline=None)
@given(float_bits(32), float_bits(32), float_bits(32), st.sampled_from(MODES))
def test_any_fma32(x: float, y: float, z: float, mode: str) -> None:
    with np.errstate(all="ignore"):
        got = single.fma(f32(x), f32(y), f32(z), mode)
    expect(got, [exact_fma(x, y, z, F32, mode)])


@settings(max_examples=300, deadline=None)
@given(float_bits(64), float_bits(64), st.sampled_from(MODES), st.sampled_from(sorted(BINARY)))
def test_any_operation_64(x: float, y: float, mode: str, name: str) -> None:
    with np.errstate(all="ignore"):
        got = getattr(double, name)(np.array([x]), np.array([y]), mode)
    expect(got, [BINARY[name](x, y, F64, mode)])


@pytest.mark.parametrize("mode", MODES)
def test_quotients_and_sums_of_random_singles(mode: str) -> None:
    random = np.random.default_rng(2)
    x, y = (
        (random.integers(-(2**24), 2**24, 3000) * 2.0 ** random.integers(-40, 40, 3000)).astype(np.float32)
        for _ in range(2)
    )
    y = np.where(y == 0, np.float32(3), y)
    with np.errstate(all="ignore"):
        expect(single.add(x, y, mode), [exact_add(float(a), float(b), F32, mode) for a, b in zip(x, y, strict=True)])
        expect(single.div(x, y, mode), [exact_div(float(a), float(b), F32, mode) for a, b in zip(x, y, strict=True)])


def test_flush_and_saturate_and_canonical_nan() -> None:
    with np.errstate(all="ignore"):
        x = np.array([0x00000001, 0x807FFFFF, 0x00800000, 0x80800000, 0x7F800000, 0xFF800000], np.uint32).view(
            np.float32
        )
        assert bits_of(rounding.flush(x)) == [0, 0x80000000, 0x00800000, 0x80800000, 0x7F800000, 0xFF800000]
        assert np.isnan(rounding.flush(f32(np.nan)))[0]
        y = np.array([-2.0, -0.0, 0.25, 1.0, 3.0, np.inf, -np.inf, np.nan])
        assert bits_of(rounding.saturate(y)) == bits_of(np.array([0.0, 0.0, 0.25, 1.0, 1.0, 1.0, 0.0, 0.0]))
        z = np.array([0x3F800000, 0xFFC00001, 0x7F800000, 0x7F800001], np.uint32).view(np.float32)
        assert bits_of(rounding.canonical(z)) == [0x3F800000, 0x7FFFFFFF, 0x7F800000, 0x7FFFFFFF]
        assert bits_of(rounding.canonical(np.array(np.nan, np.float32))) == 0x7FFFFFFF


def test_a_sum_is_left_alone_where_nothing_can_go_wrong() -> None:
    x, y = np.array([1.0, 2.0**-24]), f32(2.0**-60, 1.0)
    assert rounding.exact_sum(x, y).tolist() == [1 + 2.0**-52, 1 + 2.0**-24]
