"""The narrow formats: every code against ml_dtypes, rounding against rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import emulator_exact as exact
from sampling import grid
from weft.emulator.arith import formats
from weft.emulator.arith.formats import FORMATS, Format

SHAPES = {
    "f16": exact.F16,
    "bf16": exact.BF16,
    "tf32": exact.TF32,
    "e4m3": exact.E4M3,
    "e5m2": exact.E5M2,
    "e2m3": exact.E2M3,
    "e3m2": exact.E3M2,
    "e2m1": exact.E2M1,
}
ORACLES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}
WIDTHS = {"f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4, "ue8m0": 8}


def meanings(name: str) -> Any:
    """What the codes of a format mean, from ml_dtypes."""
    codes: Any = np.arange(1 << WIDTHS[name], dtype=np.uint16 if WIDTHS[name] == 16 else np.uint8)
    with np.errstate(all="ignore"):
        return codes.view(ORACLES[name]).astype(np.float32).astype(np.float64)


def _nan(x: Any) -> Any:
    return np.isnan(x) if x.dtype.kind == "f" else np.False_


def same(got: Any, expected: Any) -> None:
    """Equal bit for bit, NaNs alike."""
    got, expected = np.asarray(got), np.asarray(expected, np.asarray(got).dtype)
    kind = f"u{got.itemsize}"
    wrong = np.flatnonzero((got.view(kind) != expected.view(kind)) & ~(_nan(got) & _nan(expected)))
    assert not wrong.size, [(int(i), got[i], expected[i]) for i in wrong[:5]]


@pytest.mark.parametrize("name", WIDTHS)
def test_every_code_means_what_ml_dtypes_says(name: str) -> None:
    codes: Any = np.arange(1 << WIDTHS[name], dtype=FORMATS[name].dtype)
    with np.errstate(all="ignore"):
        same(formats.decode(codes, FORMATS[name]).astype(np.float64), meanings(name))


@pytest.mark.parametrize("mode", ["rn", "rna", "rz", "rm", "rp"])
@pytest.mark.parametrize("name", [n for n in WIDTHS if n != "ue8m0"])
def test_every_number_is_its_own_code(name: str, mode: str) -> None:
    values = meanings(name)
    codes = np.arange(len(values))
    with np.errstate(all="ignore"):
        got = formats.encode(values, FORMATS[name], mode)
    target = FORMATS[name]
    nan: int = target.largest if target.nan is None else target.nan
    same(got.astype(np.int64), np.where(np.isnan(values), nan, codes))


def inputs(shape: exact.Shape, seed: int) -> list[Fraction]:
    """Numbers of the format, middles between neighbours, a hair to each side of both, small ones, large ones; both signs."""
    random = np.random.default_rng(seed)
    found: list[Fraction] = []
    hair = Fraction(1, 2**20)
    for _ in range(150):
        exponent = int(random.integers(shape.least - 3, min(shape.least + 40, exact.logarithm(shape.largest) + 1)))
        unit = exact.power(max(exponent, shape.least) - shape.precision + 1)
        count = int(random.integers(0, 1 << shape.precision))
        found += [(count + half + side) * unit for half in (0, Fraction(1, 2)) for side in (-hair, 0, hair)]
    top, unit = shape.largest, exact.power(exact.logarithm(shape.largest) - shape.precision + 1)
    found += [
        top,
        top + unit / 4,
        top + unit / 2 - unit * hair,
        top + unit / 2,
        top + unit * Fraction(3, 4),
        top + unit,
        top * 3,
    ]
    return [sign * value for value in found for sign in (1, -1) if value > 0]


@pytest.mark.parametrize(
    ("name", "mode", "saturating"), grid(2, [*SHAPES], ["rn", "rna", "rz", "rm", "rp"], [False, True])
)
def test_rounding_is_of_the_exact_value(name: str, mode: str, saturating: bool) -> None:
    target, shape = FORMATS[name], SHAPES[name]
    saturating = saturating or target.infinity is None
    values = [v for v in inputs(shape, 3) if Fraction(float(v)) == v]
    expected = [exact.rounded(v, shape, mode, saturating=saturating) for v in values]
    with np.errstate(all="ignore"):
        codes = formats.encode(np.array([float(v) for v in values]), target, mode, satfinite=saturating)
        got = codes.view(np.float32) if name == "tf32" else formats.decode(codes, target)
    same(got, np.array(expected, np.float32))


@pytest.mark.parametrize("name", SHAPES)
def test_specials(name: str) -> None:
    target = FORMATS[name]
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, -1.0])
    with np.errstate(all="ignore"):
        plain, finite, relu = (
            (formats.encode(x, target, "rn", satfinite=s, relu=r).astype(np.int64) >> target.spill).tolist()
            for s, r in ((False, False), (True, False), (True, True))
        )
    nan = {"f16": 0x7FFF, "bf16": 0x7FFF, "tf32": 0x3FFFF, "e4m3": 0x7F, "e5m2": 0x7F}.get(name, target.largest)
    top = {"f16": 0x7BFF, "bf16": 0x7F7F, "tf32": 0x3FBFF, "e4m3": 0x7E, "e5m2": 0x7B, "e2m1": 7}.get(name, 0x1F)
    sign = {"f16": 0x8000, "bf16": 0x8000, "tf32": 0x40000, "e2m3": 0x20, "e3m2": 0x20, "e2m1": 8}.get(name, 0x80)
    infinity = {"f16": 0x7C00, "bf16": 0x7F80, "tf32": 0x3FC00, "e5m2": 0x7C}.get(name, top)
    one = {
        "f16": 0x3C00,
        "bf16": 0x3F80,
        "tf32": 0x1FC00,
        "e4m3": 0x38,
        "e5m2": 0x3C,
        "e2m3": 8,
        "e3m2": 0xC,
        "e2m1": 2,
    }[name]
    assert plain == [nan, nan, infinity, sign | infinity, sign, sign | one]
    assert finite == [nan, nan, top, sign | top, sign, sign | one]
    assert relu == [nan, nan, top, 0, 0, 0]


def test_canonical_nan_of_tf32_has_all_bits() -> None:
    with np.errstate(all="ignore"):
        assert formats.encode(np.array([-np.nan, 1.0]), formats.TF32, "rna").tolist() == [0x7FFFFFFF, 0x3F800000]


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_fast_paths_agree_with_the_rule(name: str) -> None:
    random = np.random.default_rng(7)
    bits = random.integers(0, 1 << 32, 20000, dtype=np.uint32)
    bits[::4] &= 0xFFFF8000  # ties of bf16, and its numbers
    bits[1::4] = (bits[1::4] & 0x83FFF000) + 0x36000000  # f16's range, its ties
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        expected = formats.encode(x.astype(np.float64), FORMATS[name], "rn")
        direct = formats.to_half(x) if name == "f16" else formats.to_bfloat(x)
    same(direct, expected)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_sums_nearly_half_way(name: str) -> None:
    """c + p, c of the format and p half its last place, off by next to nothing: float32 between would be wrong."""
    shape, random = SHAPES[name], np.random.default_rng(8)
    cases: list[tuple[Fraction, float]] = []
    for _ in range(2000):
        unit = exact.power(int(random.integers(shape.least - shape.precision + 1, 5)))
        count = int(random.integers(1, 1 << shape.precision))
        value = (
            (count + Fraction(1, 2) + Fraction(int(random.integers(-1, 2)), 1 << 38))
            * unit
            * int(random.choice([-1, 1]))
        )
        cases.append((value, float(value)))
    assert all(Fraction(f) == v for v, f in cases)
    x = np.array([f for _, f in cases])
    convert = formats.half_of_exact if name == "f16" else formats.bfloat_of_exact
    with np.errstate(all="ignore"):
        same(
            formats.decode(convert(x), FORMATS[name]),
            np.array([exact.rounded(v, shape, "rn") for v, _ in cases], np.float32),
        )
        assert convert(np.array([np.nan, -np.inf, 1e300, -0.0])).tolist() == [
            0x7FFF, 0xFC00 if name == "f16" else 0xFF80, 0x7C00 if name == "f16" else 0x7F80, 0x8000,
        ]  # fmt: skip


def scale_code(x: float, up: bool, satfinite: bool) -> int:
    """The ISA's ue8m0: 2**(code - 127), rounded on the magnitude."""
    if math.isnan(x):
        return 0xFF
    if math.isinf(x):
        return 0xFE if satfinite else 0xFF
    value = abs(Fraction(x))
    if value == 0:
        return 0
    code = exact.logarithm(value) + 127
    if up and exact.power(code - 127) != value:
        code += 1
    return min(max(code, 0), 0xFE if satfinite else 0xFF)


@pytest.mark.parametrize("mode", ["rz", "rp"])
@pytest.mark.parametrize("satfinite", [False, True])
def test_scales(mode: str, satfinite: bool) -> None:
    random = np.random.default_rng(9)
    bits = random.integers(0, 1 << 32, 3000, dtype=np.uint32)
    edges = [
        0,
        1,
        0x400000,
        0x400001,
        0x3FFFFF,
        0x7FFFFF,
        0x800000,
        0x3F800000,
        0x3F800001,
        0x7F000000,
        0x7F000001,
        0x7F7FFFFF,
    ]
    bits = np.concatenate([bits, np.array([*edges, 0x7F800000, 0xFF800000, 0x7FC00000], np.uint32), bits & 0xFF800000])
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        got = formats.encode_scale(x.astype(np.float64), mode, satfinite=satfinite)
    assert got.tolist() == [scale_code(float(v), mode == "rp", satfinite) for v in x]


@pytest.mark.parametrize("name", ["f16", "bf16", "e4m3", "e5m2", "e2m1"])
def test_stochastic_rounding_adds_random_bits_to_what_is_cut_off(name: str) -> None:
    target: Format = FORMATS[name]
    count = 13 if name == "f16" else 16
    kept = 24 - SHAPES[name].precision  # bits of a float32 significand that are cut off
    random = np.random.default_rng(10)
    significands = random.integers(1 << 23, 1 << 24, 2000)
    noise = random.integers(0, 1 << count, 2000)
    x = np.ldexp(significands.astype(np.float64), -23) * np.where(noise & 1, 1.0, -1.0)
    with np.errstate(all="ignore"):
        got = formats.encode(x, target, "rs", random=(noise, count))
    shifted = noise << (kept - count) if kept >= count else noise >> (count - kept)
    expected = [
        exact.rounded(Fraction((int(s) + int(r)) >> kept << kept, 1 << 23), SHAPES[name], "rz")
        for s, r in zip(significands, shifted, strict=True)
    ]
    with np.errstate(all="ignore"):
        same(np.abs(formats.decode(got, target)), np.array(expected, np.float32))
    assert (np.signbit(formats.decode(got, target)) == np.signbit(x)).all()


def test_no_format_is_said_twice() -> None:
    assert list(FORMATS) == [*SHAPES, "ue8m0"]
    assert [f.largest for f in FORMATS.values()] == [0x7BFF, 0x7F7F, 0x3FBFF, 0x7E, 0x7B, 0x1F, 0x1F, 7, 0xFE]
