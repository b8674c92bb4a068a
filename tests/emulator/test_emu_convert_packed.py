"""cvt of packed floats, run on the machine: every code of the sources, against ml_dtypes and rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator_exact import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, Shape, logarithm, power, rounded
from emulator_harness import execute
from sampling import grid
from weft.emulator import PTXError

SHAPES = {"f16": F16, "bf16": BF16, "e4m3": E4M3, "e5m2": E5M2, "e2m3": E2M3, "e3m2": E3M2, "e2m1": E2M1}
ORACLES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
BITS = {"f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}
FIELD = {name: max(bits, 8) if name != "e2m1" else 4 for name, bits in BITS.items()}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "e4m3": 0x7F, "e5m2": 0x7F}
"""NaN of the formats that have one; the others turn NaN into their largest number (ISA, ``.satfinite``)."""
NARROW = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"]
ALL = np.arange(1 << 16, dtype=np.uint16)


def meaning(name: str, codes: Any) -> Any:
    """Codes as float64, by ml_dtypes."""
    with np.errstate(all="ignore"):
        kind = np.uint16 if BITS[name] == 16 else np.uint8
        return np.asarray(codes).astype(kind).view(ORACLES[name]).astype(np.float32).astype(np.float64)


@cache
def numbers(name: str) -> dict[tuple[float, float], int]:
    """The codes of a format's numbers; a zero's sign counts."""
    values = meaning(name, np.arange(1 << BITS[name])).tolist()
    return {(v, math.copysign(1, v)): i for i, v in enumerate(values) if not math.isnan(v)}


def code(value: float, name: str) -> int:
    """The code of a number of a format."""
    return numbers(name)[value, math.copysign(1, value)]


def encoded(x: float, name: str, words: list[str], mode: str = "rn") -> int:
    """The ISA's text: relu, satfinite, NaN; one rounding."""
    shape, satfinite = SHAPES[name], "satfinite" in words
    if math.isnan(x):
        return NAN[name] if name in NAN else code(float(shape.largest), name)
    if "relu" in words and math.copysign(1, x) < 0:
        return 0
    if math.isinf(x):
        return code(math.copysign(float(shape.largest), x) if satfinite else x, name)
    return code(rounded(Fraction(x), shape, mode, x, satfinite), name)


def singles(seed: int) -> Any:
    """float32 patterns: specials, ties of every narrow format, everything else; 2048 of them."""
    random = np.random.default_rng(seed)
    edges = [0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F7FFFFF, 0xFF7FFFFF]
    near = (random.integers(0x36, 0x49, 1700) << 24 | random.integers(0, 1 << 24, 1700)).astype(np.uint32)
    near |= random.integers(0, 2, 1700).astype(np.uint32) << 31
    near[:500] &= 0xFFF80000
    near[500:900] &= 0xFFFC0000
    anything = random.integers(0, 1 << 32, 2048 - 1700 - len(edges), dtype=np.uint32)
    found = np.concatenate([np.array(edges, np.uint32), near, anything])
    return random.permutation(found)


def split(packed: Any, name: str, count: int = 2) -> list[list[int]]:
    """The fields of packed codes, the upper end first."""
    width = FIELD[name]
    return [[int(v) >> (width * i) & ((1 << width) - 1) for v in packed] for i in reversed(range(count))]


def register(name: str, count: int = 2) -> str:
    return f"b{FIELD[name] * count}"


@pytest.mark.parametrize("words", ["rn", "rz", "rn.relu", "rz.relu", "rn.satfinite", "rz.relu.satfinite"])
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_pairs_of_halves(name: str, words: str) -> None:
    x, y = singles(1), singles(2)
    text = f"cvt.{words}.{name}x2.f32 %d, %a, %b;"
    got = execute(text, {"a": ("b32", x), "b": ("b32", y)}, {"d": "b32"})["d"]
    for part, source in zip(split(got, name), (x, y), strict=True):
        values = source.view(np.float32).tolist()
        assert part == [encoded(v, name, words.split("."), words[:2]) for v in values]


@pytest.mark.parametrize(("name", "relu"), grid(2, NARROW, ["", ".relu"]))
def test_narrow_pairs_from_singles(name: str, relu: str) -> None:
    x, y = singles(3), singles(4)
    text = f"cvt.rn.satfinite{relu}.{name}x2.f32 %d, %a, %b;"
    declared = ".reg .b8 %byte;" if name == "e2m1" else ""
    if declared:
        text = text.replace("%d", "%byte") + "cvt.u16.u8 %d, %byte;"
    got = execute(text, {"a": ("b32", x), "b": ("b32", y)}, {"d": "b16"}, declared)["d"]
    for part, source in zip(split(got, name), (x, y), strict=True):
        values = source.view(np.float32).tolist()
        assert part == [encoded(v, name, ["satfinite", relu[1:]]) for v in values]


@pytest.mark.parametrize(("name", "source"), grid(2, NARROW, ["f16", "bf16"]))
def test_narrow_pairs_from_every_half(name: str, source: str) -> None:
    upper = np.roll(ALL, 12345)
    packed = upper.astype(np.uint32) << 16 | ALL
    outputs = {"": "%d", ".relu": "%e"}
    if name == "e2m1":
        text = "".join(
            f"cvt.rn.satfinite{relu}.{name}x2.{source}x2 %byte, %a; cvt.u16.u8 {d}, %byte;"
            for relu, d in outputs.items()
        )
    else:
        text = "".join(f"cvt.rn.satfinite{relu}.{name}x2.{source}x2 {d}, %a;" for relu, d in outputs.items())
    got = execute(text, {"a": ("b32", packed)}, {"d": "b16", "e": "b16"}, ".reg .b8 %byte;")
    values = meaning(source, ALL).tolist()
    positive = [encoded(v, name, ["satfinite"]) for v in values[: 1 << 15]]
    sign = 1 << (BITS[name] - 1)  # rounding to nearest is the same on both sides of zero; NaN has no sign
    want = positive + [c if math.isnan(v) else c | sign for c, v in zip(positive, values, strict=False)]
    clamped = [0 if math.copysign(1, v) < 0 and not math.isnan(v) else c for v, c in zip(values, want, strict=True)]
    for result, codes in ((got["d"], want), (got["e"], clamped)):
        high, low = split(result, name)
        assert low == codes
        assert high == [codes[c] for c in upper.tolist()]


@pytest.mark.parametrize(("source", "name", "relu"), grid(2, NARROW, ["f16", "bf16"], ["", ".relu"]))
def test_halves_from_every_narrow_pair(source: str, name: str, relu: str) -> None:
    if source == "e2m1":
        packed, declared = np.arange(256, dtype=np.uint16), ".reg .b8 %byte;"
        text = f"cvt.u8.u16 %byte, %a; cvt.rn{relu}.{name}x2.{source}x2 %d, %byte;"
    else:
        packed, declared = ALL & np.uint16(0x3F3F if BITS[source] == 6 else 0xFFFF), ""
        text = f"cvt.rn{relu}.{name}x2.{source}x2 %d, %a;"
    got = execute(text, {"a": ("b16", packed)}, {"d": "b32"}, declared)["d"]
    values = meaning(source, np.arange(1 << BITS[source]))
    want = [encoded(v, name, [relu[1:]]) for v in values.tolist()]
    for part, codes in zip(split(got, name), split(packed, source), strict=True):
        assert part == [want[c] for c in codes]


def scale(x: float, up: bool, satfinite: bool) -> int:
    """2**(code - 127) of the magnitude; 0xFF is NaN, and what is too large without .satfinite."""
    if math.isnan(x):
        return 0xFF
    if math.isinf(x):
        return 0xFE if satfinite else 0xFF
    value = abs(Fraction(x))
    if value == 0:
        return 0
    found = logarithm(value) + 127
    found += up and power(found - 127) != value
    return min(max(found, 0), 0xFE if satfinite else 0xFF)


@pytest.mark.parametrize("words", ["rz", "rp", "rz.satfinite", "rp.satfinite"])
def test_scales(words: str) -> None:
    x, y = singles(5), singles(6)
    up, satfinite = "rp" in words, "satfinite" in words
    got = execute(f"cvt.{words}.ue8m0x2.f32 %d, %a, %b;", {"a": ("b32", x), "b": ("b32", y)}, {"d": "b16"})["d"]
    for part, source in ((got >> 8, x), (got & 0xFF, y)):
        assert part.tolist() == [scale(v, up, satfinite) for v in source.view(np.float32).tolist()]
    packed = np.roll(ALL, 999).astype(np.uint32) << 16 | ALL
    got = execute(f"cvt.{words}.ue8m0x2.bf16x2 %d, %a;", {"a": ("b32", packed)}, {"d": "b16"})["d"]
    want = np.array([scale(v, up, satfinite) for v in meaning("bf16", ALL).tolist()])
    assert ((got & 0xFF) == want).all() and ((got >> 8) == np.roll(want, 999)).all()


def test_every_scale_back() -> None:
    got = execute("cvt.rn.bf16x2.ue8m0x2 %d, %a;", {"a": ("b16", ALL)}, {"d": "b32"})["d"]
    # 2**(code - 127): code 0 is the subnormal 2**-127 (0x0040), the others are exponent fields, 0xFF is NaN.
    want = np.arange(256) << 7
    want[0], want[255] = 0x0040, 0x7FFF
    assert ((got & 0xFFFF) == want[ALL & 0xFF]).all() and ((got >> 16) == want[ALL >> 8]).all()


def stochastic(bits: int, name: str, noise: int, count: int, relu: bool) -> int:
    """Random bits added to what is cut off of the significand, aligned to its upper end; a carry rounds away."""
    shape = SHAPES[name]
    x = float(np.uint32(bits).view(np.float32))
    satfinite = name not in ("f16", "bf16")
    if not math.isfinite(x) or x == 0 or (relu and x < 0):
        return encoded(x, name, ["satfinite"] * satfinite + ["relu"] * relu)
    value = abs(Fraction(x))
    unit = power(max(logarithm(value), shape.least) - shape.precision + 1)
    moved = (value / unit + Fraction(noise, 1 << count)) // 1 * unit
    return code(math.copysign(rounded(moved, shape, "rn", 0.0, satfinite), x), name)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize(("name", "count"), [("f16", 13), ("bf16", 16)])
def test_stochastic_pairs(name: str, count: int, relu: str) -> None:
    x, y = singles(7), singles(8)
    noise = np.random.default_rng(9).integers(0, 1 << 32, 2048, dtype=np.uint32)
    inputs = {"a": ("b32", x), "b": ("b32", y), "c": ("b32", noise)}
    got = execute(f"cvt.rs{relu}.{name}x2.f32 %d, %a, %b, %c;", inputs, {"d": "b32"})["d"]
    for part, source, half in zip(split(got, name), (x, y), (noise >> 16, noise), strict=True):
        mask = (1 << count) - 1
        want = [
            stochastic(v, name, r & mask, count, bool(relu))
            for v, r in zip(source.tolist(), half.tolist(), strict=True)
        ]
        assert part == want


def backwards(bits: int) -> int:
    return int(f"{bits:016b}"[::-1], 2)


@pytest.mark.parametrize(("name", "relu"), grid(2, NARROW, ["", ".relu"]))
def test_stochastic_quadruples(name: str, relu: str) -> None:
    columns = [singles(seed) for seed in (10, 11, 12, 13)]
    noise = np.random.default_rng(14).integers(0, 1 << 32, 2048, dtype=np.uint32)
    inputs = {n: ("b32", c) for n, c in zip("abefr", [*columns, noise], strict=True)}
    text = f"cvt.rs{relu}.satfinite.{name}x4.f32 %d, {{%a, %b, %e, %f}}, %r;"
    got = execute(text, inputs, {"d": register(name, 4)})["d"]
    parts = split(got, name, 4)
    for i, r in enumerate(noise.tolist()):
        if name == "e2m1":  # bytes 3 and 1 for a and b, 2 and 0 for e and f
            first, second = r >> 24 << 8 | r >> 8 & 0xFF, (r >> 16 & 0xFF) << 8 | r & 0xFF
        else:
            first, second = r >> 16, r & 0xFFFF
        for part, column, bits in zip(
            parts, columns, (backwards(first), first, backwards(second), second), strict=True
        ):
            assert part[i] == stochastic(int(column[i]), name, bits, 16, bool(relu))


def test_only_active_threads_are_written() -> None:
    active = np.arange(64) % 2 == 0
    x = np.full(64, 1.5, np.float32)
    text = "cvt.rn.bf16x2.f32 %d, %a, %a; cvt.rn.satfinite.e5m2x2.f32 %e, %a, %a; cvt.rn.f16x2.e5m2x2 %f, %e;"
    got = execute(text, {"a": ("f32", x)}, {"d": "b32", "e": "b16", "f": "b32"}, active=active)
    for name, value in (("d", 0x3FC03FC0), ("e", 0x3E3E), ("f", 0x3E003E00)):
        assert (got[name] == np.where(active, value, 0)).all()


def test_constants_as_operands() -> None:
    text = """cvt.rn.f16x2.f32 %d, 0f3F800000, 0f40000000; cvt.rn.satfinite.e4m3x2.f16x2 %e, 0xC0003C00;
        cvt.rn.f16x2.e4m3x2 %f, 0x4038; cvt.rn.satfinite.e5m2x2.f32 %g, %a, 0f40000000; cvt.rz.ue8m0x2.bf16x2 %h, 0x3F804000;"""
    outputs = {"d": "b32", "e": "b16", "f": "b32", "g": "b16", "h": "b16"}
    got = execute(text, {"a": ("f32", np.ones(32, np.float32))}, outputs)
    want = {"d": 0x3C004000, "e": 0xC038, "f": 0x40003C00, "g": 0x3C40, "h": 0x7F80}
    assert all((got[name] == value).all() for name, value in want.items())


def test_results_in_wider_registers() -> None:
    declared = ".reg .b32 %wide; .reg .b64 %wider;"
    text = """cvt.rn.satfinite.e4m3x2.f32 %wide, %a, %a; mov.b32 %d, %wide;
        cvt.rn.f16x2.f32 %wider, %a, %a; mov.b64 %e, %wider; cvt.rn.f16x2.e4m3x2 %f, %wide;"""
    got = execute(text, {"a": ("f32", np.full(32, -1, np.float32))}, {"d": "b32", "e": "b64", "f": "b32"}, declared)
    assert (got["d"] == 0xB8B8).all() and (got["e"] == 0xBC00BC00).all() and (got["f"] == 0xBC00BC00).all()


REFUSALS = {
    "cvt.rz.satfinite.e4m3x2.f32 %h, %a, %a;": "the emulator does not know '.rz' of cvt",
    "cvt.rn.ue8m0x2.f32 %h, %a, %a;": "the emulator does not know '.rn' of cvt",
    "cvt.rn.satfinite.f16x2.e4m3x2 %d, %h;": "the emulator does not know '.satfinite' of cvt",
    "cvt.rn.f32.f16x2 %a, %d;": "the emulator does not know a conversion from .f16x2 to .f32",
    "cvt.rs.satfinite.e4m3x4.f32 %d, {%a, %a}, %d;": "4 values are converted",
    "cvt.rn.f16x2.f32 %d, %a, %a, %a;": "cvt has 4 operands, expected 3",
    "cvt.rs.f16x2.f32 %d, %a, %a;": "cvt has 3 operands, expected 4",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(text, {"a": ("f32", np.zeros(32, np.float32))}, {}, ".reg .b16 %h; .reg .b32 %d;")
    line, shown = str(caught.value).split("\n")
    assert line.partition(": ")[2] == REFUSALS[text] and shown.strip() == text.rstrip(";")


def test_shapes_are_the_formats_named() -> None:
    assert list(SHAPES) == list(ORACLES) == list(BITS) and all(isinstance(s, Shape) for s in SHAPES.values())
