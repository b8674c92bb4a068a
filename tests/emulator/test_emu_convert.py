"""cvt between scalars, run on the machine, against Python's integers and rationals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from emulator_exact import BF16, F16, F32, F64, TF32, Shape, rounded
from emulator_harness import execute
from sampling import sparse
from weft.emulator import PTXError

INTEGERS = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"]
SHAPES = {"f16": F16, "bf16": BF16, "tf32": TF32, "f32": F32, "f64": F64}
STORED = {"f16": "b16", "bf16": "b16", "tf32": "b32", "f32": "b32", "f64": "b64"}
CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "tf32": 0x7FFFFFFF, "f32": 0x7FFFFFFF}
ALL = np.arange(1 << 16, dtype=np.uint16)


def limits(name: str) -> tuple[int, int]:
    bits = int(name[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "s" else (0, (1 << bits) - 1)


def integers(name: str, seed: int = 0) -> Any:
    """Values of an integer type: the ends, powers of two and their neighbours, some of any size; a multiple of 32."""
    least, most = limits(name)
    random = np.random.default_rng(seed)
    found = {least, least + 1, -1, 0, 1, 2, 3, most - 1, most}
    for e in range(int(name[1:])):
        found |= {sign * ((1 << e) + d) for d in (-1, 0, 1) for sign in (1, -1)}
        found |= {int(random.integers(1 << e, 2 << e, dtype=np.uint64)) * s for s in (1, -1)} if e < 63 else set()
    for e in range(24, int(name[1:]) - 1):  # ties of f32 and of f64, and their neighbours
        found |= {((1 << e) + (odd << (e - 23)) + (1 << (e - 24)) + d) for odd in (0, 1) for d in (-1, 0, 1)}
        found |= {(1 << e) + (odd << (e - 52)) + (1 << (e - 53)) + d for odd in (0, 1) for d in (-1, 0, 1) if e >= 53}
    values = sorted(v for v in found if least <= v <= most)
    values += [0] * (-len(values) % 32)
    return np.array(values, f"{'i' if name[0] == 's' else 'u'}{int(name[1:]) // 8}")


def numbers(codes: Any, name: str) -> list[float]:
    """What codes of a float type stand for."""
    with np.errstate(all="ignore"):
        if name == "bf16":
            return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64).tolist()
        kind = {"f16": np.float16, "f32": np.float32, "tf32": np.float32, "f64": np.float64}[name]
        return codes.view(kind).astype(np.float64).tolist()


def code(value: float, name: str) -> int:
    """The code of a number of a float type, or of its NaN."""
    if math.isnan(value):
        return CANONICAL[name]
    with np.errstate(all="ignore"):
        if name == "bf16":
            return int(np.float32(value).view(np.uint32)) >> 16
        if name == "f16":
            return int(np.float16(value).view(np.uint16))
        return int(np.float64(value).view(np.uint64) if name == "f64" else np.float32(value).view(np.uint32))


def floats(name: str, seed: int = 1) -> Any:
    """Codes of a float type: everything for 16 bits; else ends, ties, and bits at random with likely exponents."""
    if name in ("f16", "bf16"):
        return ALL
    random = np.random.default_rng(seed)
    if name == "f32":
        near = (random.integers(0x30, 0x60, 600) << 24 | random.integers(0, 1 << 24, 600)).astype(np.uint32)
        any_bits = random.integers(0, 1 << 32, 300, dtype=np.uint32)
        edges = [
            0,
            0x80000000,
            1,
            0x80000001,
            0x7FFFFF,
            0x800000,
            0x7F7FFFFF,
            0xFF7FFFFF,
            0x7F800000,
            0xFF800000,
            0x7FC00000,
        ]
        edges += [
            0x477FE000,
            0x477FEFFF,
            0x477FF000,
            0x477FFFFF,
            0x47800000,
            0x7F7F8000,
            0x7F7F7FFF,
            0x33000000,
            0x33000001,
        ]
        edges += [
            0x4EFFFFFF,
            0x4F000000,
            0xCF000000,
            0x4F7FFFFF,
            0x4F800000,
            0x5EFFFFFF,
            0x5F000000,
            0x5F800000,
            0xDF000000,
        ]
        edges += [
            0xFFC00000,
            0x7F800001,
            0x7F7FF000,
            0x7F7FEFFF,
            0x3F801000,
            0x3F803000,
            0x3F800FFF,
            0x00001000,
            0x3F000000,
        ]
        small = (random.integers(0, 64, 200) * 0.25 - 8).astype(np.float32).view(np.uint32)
        ties = near[:200] & 0xFFFFF000
        found = np.concatenate([near, any_bits, np.array(edges, np.uint32), small, ties, ties & 0xFFFF8000])
        return np.concatenate([found, np.zeros(-found.size % 32, np.uint32)])
    wide = np.array(numbers(floats("f32"), "f32"))
    nudged = (wide.view(np.uint64) + random.integers(-1, 2, wide.size).astype(np.uint64)).astype(np.uint64)
    scaled = random.integers(0x380, 0x480, 608, dtype=np.uint64) << 52 | random.integers(
        0, 1 << 52, 608, dtype=np.uint64
    )
    edges = np.array(
        [0x7FEFFFFFFFFFFFFF, 1, 1 << 63, 0xC3E0000000000000, 0x43EFFFFFFFFFFFFF, 0x7FF0000000000000] * 16, np.uint64
    )
    return np.concatenate([wide.view(np.uint64), nudged, scaled, scaled | np.uint64(1 << 63), edges])


def width(x: Any) -> int:
    """Threads of a block that this many elements are a whole number of."""
    return 256 if x.size % 256 == 0 else 32


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_integers(source: str) -> None:
    x = integers(source)
    text = " ".join(f"cvt.{to}.{source} %w_{to}, %a; cvt.sat.{to}.{source} %s_{to}, %a;" for to in INTEGERS)
    outputs = {f"{p}_{to}": to for to in INTEGERS for p in "ws"}
    got = execute(text, {"a": (source, x)}, outputs, block=width(x))
    for to in INTEGERS:
        least, most = limits(to)
        wrapped = [(v - least) % (1 << int(to[1:])) + least for v in x.tolist()]
        assert got[f"w_{to}"].tolist() == wrapped
        assert got[f"s_{to}"].tolist() == [min(max(v, least), most) for v in x.tolist()]


def test_wider_registers_are_extended_and_narrower_parts_are_read() -> None:
    x = integers("s32")
    text = "cvt.s8.s32 %p, %a; cvt.u8.s32 %q, %a; cvt.s32.s8 %s, %a;"
    text += "cvt.rzi.s16.f32 %r, 0fBF800000; cvt.rn.f16.f32 %t, 0fBF800000;"
    got = execute(text, {"a": ("s32", x)}, {"p": "b32", "q": "b64", "r": "b64", "s": "s32", "t": "b32"}, block=32)
    low = [(v + 128) % 256 - 128 for v in x.tolist()]
    assert got["p"].view(np.int32).tolist() == low and got["s"].tolist() == low
    assert got["q"].tolist() == [v % 256 for v in x.tolist()]
    assert (got["r"] == (1 << 64) - 1).all() and (got["t"] == 0xBC00).all()


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_floats(source: str, mode: str) -> None:
    x = integers(source)
    kinds = ["f16", "bf16", "f32", "f64"]
    text = " ".join(f"cvt.{mode}.{to}.{source} %{to}, %a;" for to in kinds)
    got = execute(text, {"a": (source, x)}, {to: STORED[to] for to in kinds}, block=width(x))
    for to in kinds:
        want = [code(rounded(Fraction(v), SHAPES[to], mode), to) for v in x.tolist()]
        assert got[to].tolist() == want


def test_integers_to_floats_saturated() -> None:
    x = integers("s32")
    got = execute(
        "cvt.rn.sat.f32.s32 %d, %a; cvt.rn.sat.f16.s32 %e, %a;", {"a": ("s32", x)}, {"d": "f32", "e": "f16"}, block=32
    )
    assert got["d"].tolist() == got["e"].tolist() == [float(min(max(v, 0), 1)) for v in x.tolist()]


WHOLE: dict[str, Callable[[float], int]] = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
"""Python rounds floats to integers exactly, ties to even."""


def whole(x: float, source: str, to: str, mode: str) -> int:
    """The ISA's integer notes: clamped; NaN is 0 from f16, bf16, f32 to 32 bits or fewer, else 1 << (bits - 1)."""
    least, most = limits(to)
    if math.isnan(x):
        pattern = 1 << (int(to[1:]) - 1) if source == "f64" or to[1:] == "64" else 0
        return pattern if pattern <= most else pattern - (1 << int(to[1:]))
    if math.isinf(x):
        return most if x > 0 else least
    return min(max(WHOLE[mode](x), least), most)


@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
def test_floats_to_integers(source: str, mode: str) -> None:
    x = floats(source)[:: 1 if source in ("f32", "f64") else sparse(1 if mode == "rni" else 8)]
    x = x[: x.size // 32 * 32]
    text = " ".join(f"cvt.{mode}.{to}.{source} %{to}, %a;" for to in INTEGERS)
    got = execute(text, {"a": (STORED[source], x)}, {to: to for to in INTEGERS}, block=width(x))
    values = numbers(x, source)
    for to in INTEGERS:
        assert got[to].tolist() == [whole(v, source, to, mode) for v in values], to


def test_one_large_float_among_small_ones() -> None:
    x = np.zeros(32, np.float32)
    x[5], x[6], x[7] = 2.0**31, -(2.0**31), 2.0**30
    text = "cvt.rni.s32.f32 %d, %a; cvt.rni.u32.f32 %e, %a; cvt.rni.s64.f32 %f, %a;"
    got = execute(text, {"a": ("f32", x)}, {"d": "s32", "e": "u32", "f": "s64"})
    assert got["d"][5:8].tolist() == [2**31 - 1, -(2**31), 2**30]
    assert got["e"][5:8].tolist() == [2**31, 0, 2**30] and got["f"][5:8].tolist() == [2**31, -(2**31), 2**30]


def test_floats_to_integers_flush() -> None:
    x = np.array([1, 0x80000001, 0x007FFFFF, 0x00800000] * 8, np.uint32)
    text = "cvt.rpi.ftz.s32.f32 %d, %a; cvt.rpi.s32.f32 %e, %a; cvt.rmi.ftz.sat.s32.f32 %f, %a; cvt.rmi.s32.f32 %g, %a;"
    got = execute(text, {"a": ("b32", x)}, dict.fromkeys("defg", "s32"))
    assert [got[n][:4].tolist() for n in "defg"] == [[0, 0, 0, 1], [1, 0, 1, 1], [0, 0, 0, 0], [0, -1, 0, 0]]


def converted(x: float, to: str, words: list[str], source: str) -> float:
    """One conversion between floats, by the ISA's floating-point notes."""
    shape = SHAPES[to]
    mode = next((m for m in ("rna", "rn", "rz", "rm", "rp") if m in words), "rn")
    if "ftz" in words and source == "f32" and abs(x) < F32.smallest_normal:
        x = math.copysign(0.0, x)
    integral = next((m for m in ("rni", "rzi", "rmi", "rpi") if m in words), "")
    if integral and math.isfinite(x):
        x = math.copysign(float(WHOLE[integral](x)), x)
    if math.isnan(x):
        return 0.0 if "sat" in words else x
    if math.isinf(x):
        value = math.copysign(float(shape.largest), x) if "satfinite" in words else x
    else:
        value = rounded(Fraction(x), shape, mode, x, "satfinite" in words)
    if "ftz" in words and to == "f32" and abs(value) < F32.smallest_normal:
        value = math.copysign(0.0, value)
    if "relu" in words and value <= 0:
        value = 0.0
    if "sat" in words:
        value = 0.0 if value <= 0 else min(value, 1.0)
    return value


NARROWED = "f32.f64 f16.f64 bf16.f64 f16.f32 bf16.f32 bf16.f16 f16.bf16"
NARROWING = [(f".{m}.{pair}", *pair.split(".")) for pair in NARROWED.split() for m in ("rn", "rz", "rm", "rp")]
WIDENING = [(f".{to}.{source}", to, source) for to in ("f32", "f64") for source in ("f16", "bf16")] + [
    (".f64.f32", "f64", "f32")
]
SPECIAL = [
    (f".{words}.{to}.{source}", to, source)
    for to, source, all_words in (
        ("f32", "f32", "ftz sat ftz.sat rni rzi rmi rpi rni.ftz rpi.sat"),
        ("f64", "f64", "sat rni rzi rmi rpi"),
        ("f16", "f16", "sat rni rzi rmi rpi"),
        ("bf16", "bf16", "rni rpi"),
        ("f16", "f32", "rn.relu rz.relu rn.satfinite rz.relu.satfinite rn.ftz rn.sat rz.sat"),
        ("bf16", "f32", "rn.relu rz.relu rn.satfinite rz.relu.satfinite rn.ftz"),
        ("tf32", "f32", "rna rna.satfinite rn rz rn.relu rz.relu rn.satfinite rz.relu.satfinite"),
        ("f32", "f64", "rn.ftz rz.ftz.sat rp.ftz"),
        ("f64", "f32", "ftz sat ftz.sat"),
        ("f32", "f16", "ftz sat"),
        ("f32", "bf16", "ftz"),
    )
    for words in all_words.split()
]  # fmt: skip
PLAIN = [(f".{kind}.{kind}", kind, kind) for kind in ("f16", "bf16", "f32", "f64")]


@pytest.mark.parametrize(
    ("name", "to", "source"), NARROWING + WIDENING + SPECIAL + PLAIN, ids=lambda v: v if v[0] == "." else ""
)
def test_floats_to_floats(name: str, to: str, source: str) -> None:
    x = floats(source)
    x = x[:: sparse(7) if x.size > 9000 else 1]
    x = x[: x.size // 32 * 32]
    got = execute(f"cvt{name} %d, %a;", {"a": (STORED[source], x)}, {"d": STORED[to]}, block=width(x))["d"]
    words = name.split(".")
    for given, bits, value in zip(x.tolist(), got.tolist(), numbers(x, source), strict=True):
        want = converted(value, to, words, source)
        if math.isnan(want) and to == "f64":
            assert math.isnan(numbers(np.array([bits], np.uint64), "f64")[0])
        else:
            assert bits == code(want, to), (hex(given), hex(bits), want)


@pytest.mark.parametrize("to", ["f32", "f64"])
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_widening_every_half(source: str, to: str) -> None:
    got = execute(f"cvt.{to}.{source} %d, %a;", {"a": ("b16", ALL)}, {"d": to})["d"]
    values = np.array(numbers(ALL, source))
    assert ((got == values) | (np.isnan(got) & np.isnan(values))).all()
    assert (np.signbit(got) == np.signbit(values))[~np.isnan(values)].all()


@pytest.mark.parametrize(("to", "source"), [("bf16", "f16"), ("f16", "bf16")])
def test_every_half_into_the_other(to: str, source: str) -> None:
    x = ALL[:: sparse(1)]
    got = execute(f"cvt.rn.{to}.{source} %d, %a;", {"a": ("b16", x)}, {"d": "b16"}, block=width(x))["d"]
    want = [code(converted(v, to, ["rn"], source), to) for v in numbers(x, source)]
    assert got.tolist() == want


def test_only_active_threads_are_written() -> None:
    active = np.arange(64) % 4 == 1
    x = np.arange(64, dtype=np.float32)
    text = "cvt.rni.s32.f32 %d, %a; cvt.rn.f16.f32 %e, %a; cvt.f64.f32 %f, %a; cvt.rzi.u8.f32 %g, %a;"
    got = execute(text, {"a": ("f32", x)}, {"d": "s32", "e": "f16", "f": "f64", "g": "b32"}, active=active)
    for name in "defg":
        assert (got[name] == np.where(active, x, 0)).all()


@pytest.mark.parametrize("to", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
def test_pack(to: str) -> None:
    x, y = integers("s32", 1), integers("s32", 2)
    y = np.roll(y, 7)
    size = int(to[1:])
    least, most = limits(to)
    rest = np.random.default_rng(3).integers(0, 1 << 32, len(x), dtype=np.uint32)
    text = f"cvt.pack.sat.{to}.s32 %d, %a, %b;" if size == 16 else f"cvt.pack.sat.{to}.s32.b32 %d, %a, %b, %c;"
    got = execute(text, {"a": ("s32", x), "b": ("s32", y), "c": ("b32", rest)}, {"d": "b32"}, block=width(x))["d"]
    for a, b, c, d in zip(x.tolist(), y.tolist(), rest.tolist(), got.tolist(), strict=True):
        high, low = (min(max(v, least), most) % (1 << size) for v in (a, b))
        assert d == (((0 if size == 16 else c) << 2 * size) & 0xFFFFFFFF) | high << size | low


@pytest.mark.parametrize(("to", "source"), [("bf16", "f16"), ("f16", "bf16")])
def test_between_halves_to_nearest_where_nothing_is_said(to: str, source: str) -> None:
    got = execute(
        f"cvt.{to}.{source} %d, %a; cvt.rn.{to}.{source} %e, %a;",
        {"a": ("b16", ALL)},
        {"d": "b16", "e": "b16"},
        block=128,
    )
    assert np.array_equal(got["d"], got["e"])


REFUSALS = {
    "cvt.s32.f32 %d, %a;": "a float becomes an integer with .rni, .rzi, .rmi or .rpi",
    "cvt.rn.s32.f32 %d, %a;": "a float becomes an integer with .rni, .rzi, .rmi or .rpi",
    "cvt.f32.s32 %a, %d;": "an integer becomes a float with .rn, .rz, .rm or .rp",
    "cvt.rn.sat.bf16.s32 %h, %d;": ".sat is not for .bf16",
    "cvt.rni.s32.s16 %d, %h;": "an integer needs no .rni to become an integer",
    "cvt.f16.f32 %h, %a;": "a .f32 becomes a .f16 with a rounding modifier",
    "cvt.bf16.f32 %h, %a;": "a .f32 becomes a .bf16 with a rounding modifier",
    "cvt.rni.f16.f32 %h, %a;": ".rni between floats needs equal types",
    "cvt.rna.f16.f32 %h, %a;": ".rna is for .tf32 only",
    "cvt.rp.tf32.f32 %d, %a;": ".tf32 is rounded with .rn, .rna or .rz",
    "cvt.rn.tf32.f16 %d, %h;": ".tf32 is converted from .f32 only",
    "cvt.rn.relu.f32.f64 %a, %x;": ".relu and .satfinite narrow a .f32",
    "cvt.rm.satfinite.f16.f32 %h, %a;": ".relu and .satfinite are with .rn or .rz",
    "cvt.rn.sat.bf16.f32 %h, %a;": ".sat is not for .bf16",
    "cvt.rn.ftz.f16.f64 %h, %x;": ".ftz needs a type .f32",
    "cvt.rzi.relu.s32.f32 %d, %a;": ".relu and .satfinite are for conversions between floats",
    "cvt.pack.sat.u8.s32 %d, %d, %d;": ".b32 and a third operand go with types of 8 bits or fewer",
    "cvt.rn.satfinite.e4m3x2.f64 %h, %x;": "the emulator does not know a conversion from .f64 to .e4m3x2",
    "cvt.rn.e4m3x2.f32 %h, %a, %a;": "cvt has none of .satfinite",
    "cvt.rn.f16x2.f32 %d, %a;": "cvt has 2 operands, expected 3",
    "cvt.rn.f16x2 %d, %a;": "the emulator does not know a cvt with 1 types",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(text, {"a": ("f32", np.zeros(32, np.float32))}, {}, ".reg .f64 %x; .reg .b16 %h; .reg .b32 %d;")
    line, shown = str(caught.value).split("\n")
    assert line.partition(": ")[2] == REFUSALS[text] and shown.strip() == text.rstrip(";")


def test_shapes_are_the_formats_named() -> None:
    assert [s.precision for s in SHAPES.values()] == [11, 8, 11, 24, 53] and isinstance(F16, Shape)
