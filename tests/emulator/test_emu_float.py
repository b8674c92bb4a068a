"""The instructions of f32, f32x2 and f64, run on the machine, against rationals and the ISA's tables of special values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from emulator_exact import F32, F64, Shape, rounded
from emulator_harness import execute
from weft.emulator import PTXError

NAN32, NAN = 0x7FFFFFFF, math.nan

EDGES = {
    "f32": np.array(
        [
            0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x00800001, 0x3F800000, 0xBF800000,
            0x3F7FFFFF, 0x3F800001, 0x40000000, 0xC0490FDB, 0x33800000, 0x3E99999A, 0x4B800001, 0x5F123456, 0x7E800001,
            0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x1F800000, 0x20000001,
            0xBEAAAAAB, 0x42280000, 0x00000123,
        ],
        np.uint32,
    ).view(np.float32),
    "f64": np.array(
        [
            0, 1 << 63, 1, 1 << 63 | 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x8010000000000000, 0x3FF0000000000000,
            0xBFF0000000000000, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000001, 0x4000000000000000, 0xC00921FB54442D18,
            0x3CA0000000000000, 0x3FD5555555555555, 0x4340000000000001, 0x5FF123456789ABCD, 0x7FD0000000000001,
            0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
            0xFFF8000000012345, 0x1FF0000000000000, 0x2000000000000001, 0xBFE5555555555555, 0x4045000000000000,
            0x0000000000000123, 0x3FB999999999999A, 0x4024000000000000, 0xC059000000000000,
        ],
        np.uint64,
    ).view(np.float64),
}  # fmt: skip
"""32 values of each type: zeros, subnormals, ones, large ones, infinities, NaNs."""


def grid(kind: str, count: int, step: int = 1) -> list[Any]:
    """Every combination of the edge values: of all 32, or of both zeros and every other one."""
    values = EDGES[kind] if step == 1 else np.concatenate([EDGES[kind][:2], EDGES[kind][4::step]])
    columns = zip(*itertools.product(values, repeat=count), strict=True)
    return [np.array(column, EDGES[kind].dtype) for column in columns]


def flushed(x: float, shape: Shape) -> float:
    return math.copysign(0.0, x) if abs(x) < shape.smallest_normal else x


def clamped(x: float) -> float:
    return 0.0 if math.isnan(x) or x <= 0 else min(x, 1.0)


def sign(x: float) -> float:
    return math.copysign(1.0, x)


def add(x: float, y: float, shape: Shape, mode: str) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x + y
    zero = math.copysign(0.0, x) if x == y == 0 and sign(x) == sign(y) else -0.0 if mode == "rm" else 0.0
    return rounded(Fraction(x) + Fraction(y), shape, mode, zero)


def mul(x: float, y: float, shape: Shape, mode: str) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y
    return rounded(Fraction(x) * Fraction(y), shape, mode, math.copysign(0.0, sign(x) * sign(y)))


def sub(x: float, y: float, shape: Shape, mode: str) -> float:
    return add(x, -y, shape, mode)


def fma(x: float, y: float, z: float, shape: Shape, mode: str) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):
        return z
    product = Fraction(x) * Fraction(y)
    zero = -0.0 if mode == "rm" else 0.0
    if product == 0 and z == 0 and sign(x) * sign(y) == sign(z):
        zero = z
    return rounded(product + Fraction(z), shape, mode, zero)


def div(x: float, y: float, shape: Shape, mode: str) -> float:
    if math.isnan(x) or math.isnan(y) or (math.isinf(x) and math.isinf(y)) or (x == 0 and y == 0):
        return NAN
    negative = sign(x) * sign(y)
    if math.isinf(x) or y == 0:
        return math.copysign(math.inf, negative)
    if math.isinf(y):
        return math.copysign(0.0, negative)
    return rounded(Fraction(x) / Fraction(y), shape, mode, math.copysign(0.0, negative))


OPERATIONS: dict[str, Callable[..., float]] = {"add": add, "sub": sub, "mul": mul, "fma": fma, "mad": fma, "div": div}


def expected(name: str, operands: list[Any], modifiers: str) -> Any:
    kind, shape = operands[0].dtype, F32 if operands[0].dtype == np.float32 else F64
    words = modifiers.split(".")
    mode = next((m for m in ("rn", "rz", "rm", "rp") if m in words), "rn")
    results: list[float] = []
    for values in zip(*operands, strict=True):
        given = [float(v) for v in values]
        if "ftz" in words:
            given = [flushed(v, shape) for v in given]
        value = OPERATIONS[name](*given, shape, mode)
        if "ftz" in words:
            value = flushed(value, shape)
        results.append(clamped(value) if "sat" in words else value)
    return np.array(results, np.float64).astype(kind)


def check(got: Any, want: Any) -> None:
    """Bit for bit, where NaNs of f32 are the canonical one and those of f64 any."""
    kind = f"u{got.itemsize}"
    got_bits, want_bits = got.view(kind), want.view(kind)
    nan = np.isnan(want)
    wanted_nan = got_bits == NAN32 if got.itemsize == 4 else np.isnan(got)
    wrong = np.flatnonzero(~((nan & wanted_nan) | (~nan & (got_bits == want_bits))))
    assert not wrong.size, [(int(i), hex(got_bits[i]), hex(want_bits[i])) for i in wrong[:6]]


F32_FORMS = ["", ".rn", ".rz", ".rm", ".rp", ".ftz", ".rz.ftz", ".sat", ".rp.ftz.sat"]


@pytest.mark.parametrize("modifiers", F32_FORMS)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_sums_and_products_of_f32(name: str, modifiers: str) -> None:
    with np.errstate(all="ignore"):
        x, y = grid("f32", 2)
        got = execute(f"{name}{modifiers}.f32 %d, %a, %b;", {"a": ("f32", x), "b": ("f32", y)}, {"d": "f32"})["d"]
        check(got, expected(name, [x, y], modifiers))


@pytest.mark.parametrize("modifiers", ["", ".rn", ".rz", ".rm", ".rp"])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_sums_and_products_of_f64(name: str, modifiers: str) -> None:
    with np.errstate(all="ignore"):
        x, y = grid("f64", 2)
        got = execute(f"{name}{modifiers}.f64 %d, %a, %b;", {"a": ("f64", x), "b": ("f64", y)}, {"d": "f64"})["d"]
        check(got, expected(name, [x, y], modifiers))


QUOTIENTS = [("f32", m) for m in (*F32_FORMS[1:5], ".rn.ftz")] + [("f64", ".rn"), ("f64", ".rp")]


@pytest.mark.parametrize(("kind", "modifiers"), QUOTIENTS)
@pytest.mark.parametrize("name", ["div", "rcp"])
def test_quotients(name: str, kind: str, modifiers: str) -> None:
    with np.errstate(all="ignore"):
        x, y = grid(kind, 2)
        if name == "rcp":
            x = np.ones_like(x)
        text = f"div{modifiers}.{kind} %d, %a, %b;" if name == "div" else f"rcp{modifiers}.{kind} %d, %b;"
        got = execute(text, {"a": (kind, x), "b": (kind, y)}, {"d": kind})["d"]
        check(got, expected("div", [x, y], modifiers))


@pytest.mark.parametrize("modifiers", [".rn", ".rz", ".rm", ".rp", ".rn.ftz", ".rn.sat", ".rz.ftz.sat"])
@pytest.mark.parametrize("name", ["fma", "mad"])
def test_fma_of_f32(name: str, modifiers: str) -> None:
    with np.errstate(all="ignore"):
        x, y, z = grid("f32", 3, 2)
        inputs = {"a": ("f32", x), "b": ("f32", y), "c": ("f32", z)}
        got = execute(f"{name}{modifiers}.f32 %d, %a, %b, %c;", inputs, {"d": "f32"})["d"]
        check(got, expected("fma", [x, y, z], modifiers))


def test_fma_of_f32_next_to_ties() -> None:
    """z a number, x*y half its last place but for a hair, that float64 cannot hold beside z; and a subnormal z."""
    random = np.random.default_rng(11)
    z = np.ldexp(random.integers(1 << 23, 1 << 24, 2048).astype(np.float64), -23)
    x, y = (1 + random.integers(-2, 3, 2048) * 2.0**-23 for _ in range(2))
    y = np.ldexp(y, -24)
    z[::4], y[::4] = np.ldexp(z[::4], -128) // 2.0**-149 * 2.0**-149, y[::4] * 2.0**-126
    columns = [c.astype(np.float32) for c in (x, y, z)]
    inputs = {n: ("f32", c) for n, c in zip("abc", columns, strict=True)}
    with np.errstate(all="ignore"):
        got = execute("fma.rn.f32 %d, %a, %b, %c;", inputs, {"d": "f32"})["d"]
        check(got, expected("fma", columns, "rn"))
        twice = (columns[0].astype(np.float64) * columns[1] + columns[2]).astype(np.float32)
    assert (twice != got).sum() > 100  # what a rounding to float64 in between would give


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_fma_of_f64(mode: str) -> None:
    with np.errstate(all="ignore"):
        x, y, z = grid("f64", 3, 2)
        inputs = {"a": ("f64", x), "b": ("f64", y), "c": ("f64", z)}
        check(execute(f"fma.{mode}.f64 %d, %a, %b, %c;", inputs, {"d": "f64"})["d"], expected("fma", [x, y, z], mode))


@pytest.mark.parametrize(
    ("name", "modifiers"), [("add", ""), ("sub", ".rz"), ("mul", ".ftz"), ("fma", ".rn"), ("fma", ".rp.ftz")]
)
def test_pairs_of_f32(name: str, modifiers: str) -> None:
    count = 3 if name == "fma" else 2
    with np.errstate(all="ignore"):
        columns = grid("f32", count, 2 if count == 3 else 1)
        inputs = {n: ("b64", c.view(np.uint64)) for n, c in zip("abc", columns, strict=False)}
        operands = ", ".join(f"%{n}" for n in inputs)
        got = execute(f"{name}{modifiers}.f32x2 %d, {operands};", inputs, {"d": "b64"})["d"]
        check(got.view(np.float32), expected(name, columns, modifiers))


def test_threads_that_are_not_active_keep_their_values() -> None:
    x = np.arange(64, dtype=np.float32) + np.float32(0.1)
    active = np.arange(64) % 3 == 0
    text = "add.f32 %d, %a, %a; fma.rn.f32 %e, %a, %a, %a; sqrt.rn.f32 %f, %a; add.rz.f64 %g, %h, %h;"
    inputs = {"a": ("f32", x), "h": ("f64", x.astype(np.float64))}
    got = execute(text, inputs, {"d": "f32", "e": "f32", "f": "f32", "g": "f64"}, active=active)
    assert (got["d"] == np.where(active, 2 * x, 0)).all() and (
        got["e"] == np.where(active, expected("fma", [x, x, x], "rn"), 0)
    ).all()
    assert (got["f"] == np.where(active, np.sqrt(x), 0)).all() and (got["g"] == np.where(active, 2.0 * x, 0)).all()


def test_nans_of_active_threads_are_canonical() -> None:
    x = np.array([0x3F8CCCCD, 0x7FC00001, 0xFF800001, 0x3F8CCCCD] * 16, np.uint32)
    active = np.arange(64) % 4 != 2
    text = "fma.rn.f32 %d, %a, %a, %a; add.f32 %e, %a, %a; mul.rz.f32 %f, %a, %a;"
    got = execute(text, {"a": ("b32", x)}, dict.fromkeys("def", "b32"), active=active)
    for result in got.values():
        assert result[1] == NAN32 and result[2] == 0 and result[0] == result[3] != NAN32


def test_constants_as_operands() -> None:
    x = np.float32(np.arange(32))
    text = (
        "fma.rn.f32 %d, %a, 0f40000000, 0f3F800000; add.rz.f32 %e, %a, 0f3F800000; mul.f32 %f, 0fFFC00000, 0f3F800000;"
    )
    got = execute(text, {"a": ("f32", x)}, {"d": "f32", "e": "f32", "f": "b32"})
    assert (got["d"] == 2 * x + 1).all() and (got["e"] == x + 1).all() and (got["f"] == NAN32).all()


def test_subnormal_constants_are_flushed() -> None:
    x = np.full(32, 2.0**100, np.float32)
    text = "mul.ftz.f32 %d, %a, 0f80000001; fma.rn.ftz.f32 %e, %a, 0f00000001, 0f007FFFFF;"
    text += "fma.rn.f32 %f, %a, 0f00000001, 0f00000000;"
    got = execute(text, {"a": ("f32", x)}, {"d": "b32", "e": "b32", "f": "f32"})
    assert (got["d"] == 0x80000000).all() and (got["e"] == 0).all() and (got["f"] == 2.0**-49).all()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_abs_neg_copysign(kind: str) -> None:
    x, y = grid(kind, 2)
    top = 1 << (x.itemsize * 8 - 1)
    text = f"abs.{kind} %d, %a; neg.{kind} %e, %a; copysign.{kind} %f, %a, %b;"
    got = execute(text, {"a": (kind, x), "b": (kind, y)}, {"d": kind, "e": kind, "f": kind})
    xs, ys = (v.view(f"u{v.itemsize}") for v in (x, y))
    numbers = ~np.isnan(x)
    bits = {n: v.view(xs.dtype) for n, v in got.items()}
    top_bit = xs.dtype.type(top)
    assert (bits["d"] == xs & ~top_bit)[numbers].all() and (bits["e"] == xs ^ top_bit)[numbers].all()
    assert np.isnan(got["d"][~numbers]).all() and np.isnan(got["e"][~numbers]).all()
    assert (bits["f"] == (ys & ~top_bit | xs & top_bit)).all()


def test_abs_and_neg_flush() -> None:
    x = EDGES["f32"]
    got = execute("abs.ftz.f32 %d, %a; neg.ftz.f32 %e, %a;", {"a": ("f32", x)}, {"d": "f32", "e": "f32"})
    for i, value in enumerate(x.tolist()):
        if not math.isnan(value):
            assert got["d"][i] == abs(flushed(value, F32)) and got["e"][i] == -flushed(value, F32)
            assert math.copysign(1, got["e"][i]) == -sign(value) and math.copysign(1, got["d"][i]) == 1


def extreme(values: list[float], largest: bool, nan: bool, absolute: bool, xorsign: bool) -> float:
    """The ISA's text: +0 > -0, NaN is passed over unless .NaN, xorsign by the operands' own signs."""
    negative = xorsign and sign(values[0]) != sign(values[1])
    values = [abs(v) if absolute else v for v in values]
    if all(map(math.isnan, values)) or (nan and any(map(math.isnan, values))):
        return NAN
    numbers = sorted((v for v in values if not math.isnan(v)), key=lambda v: (v, sign(v)))
    chosen = numbers[-1 if largest else 0]
    return -chosen if negative else chosen


@pytest.mark.parametrize("modifiers", ["", ".NaN", ".ftz", ".xorsign.abs", ".ftz.NaN.xorsign.abs"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes_of_f32(name: str, modifiers: str) -> None:
    x, y = grid("f32", 2)
    got = execute(f"{name}{modifiers}.f32 %d, %a, %b;", {"a": ("f32", x), "b": ("f32", y)}, {"d": "f32"})["d"]
    words = modifiers.split(".")
    want: list[float] = []
    for pair in zip(x.tolist(), y.tolist(), strict=True):
        values = [flushed(v, F32) if "ftz" in words else v for v in pair]
        want.append(extreme(values, name == "max", "NaN" in words, "abs" in words, "xorsign" in words))
    check(got, np.array(want, np.float32))


@pytest.mark.parametrize("modifiers", ["", ".NaN", ".abs", ".ftz.NaN.abs"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes_of_three(name: str, modifiers: str) -> None:
    columns = grid("f32", 3, 2)
    inputs = {n: ("f32", c) for n, c in zip("abc", columns, strict=True)}
    got = execute(f"{name}{modifiers}.f32 %d, %a, %b, %c;", inputs, {"d": "f32"})["d"]
    words = modifiers.split(".")
    want: list[float] = []
    for triple in zip(*(c.tolist() for c in columns), strict=True):
        values = [flushed(v, F32) if "ftz" in words else v for v in triple]
        want.append(extreme(values, name == "max", "NaN" in words, "abs" in words, False))
    check(got, np.array(want, np.float32))


@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes_of_f64(name: str) -> None:
    x, y = grid("f64", 2)
    got = execute(f"{name}.f64 %d, %a, %b;", {"a": ("f64", x), "b": ("f64", y)}, {"d": "f64"})["d"]
    check(
        got,
        np.array(
            [extreme(list(p), name == "max", False, False, False) for p in zip(x.tolist(), y.tolist(), strict=True)]
        ),
    )


@pytest.mark.parametrize("name", ["min", "max"])
def test_the_extreme_of_two_nans_of_f64_is_the_same_either_way(name: str) -> None:
    """A butterfly of shuffles over NaNs of several payloads leaves the same bits in all lanes."""
    x = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000001234, 0xFFFFFFFFFFFFFFFF] * 8, np.uint64)
    y = np.roll(x, 1)
    text = f"{name}.f64 %d, %a, %b; {name}.f64 %e, %b, %a;"
    got = execute(text, {"a": ("b64", x), "b": ("b64", y)}, {"d": "b64", "e": "b64"})
    assert set(got["d"].tolist()) == set(got["e"].tolist()) == {0x7FF8000000000000}


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_testp(kind: str) -> None:
    x = EDGES[kind]
    tests = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
    text = " ".join(f"testp.{t}.{kind} %p{i}, %a;" for i, t in enumerate(tests))
    got = execute(text, {"a": (kind, x)}, {f"p{i}": "pred" for i in range(6)})
    least = float((F32 if kind == "f32" else F64).smallest_normal)
    for i, v in enumerate(x.tolist()):
        want = [
            math.isfinite(v), math.isinf(v), not math.isnan(v), math.isnan(v),
            math.isfinite(v) and (v == 0 or abs(v) >= least), v != 0 and abs(v) < least,
        ]  # fmt: skip
        assert [bool(got[f"p{j}"][i]) for j in range(6)] == want, v


@pytest.mark.parametrize(("narrow", "dtype"), [("f16", np.float16), ("bf16", None)])
def test_mixed_precision(narrow: str, dtype: Any) -> None:
    random = np.random.default_rng(4)
    codes = random.integers(0, 1 << 16, (2, 1024), dtype=np.uint16)
    values = (codes.view(np.float16) if dtype else (codes.astype(np.uint32) << 16).view(np.float32)).astype(np.float32)
    c = random.integers(0, 1 << 32, 1024, dtype=np.uint32).view(np.float32)
    text = (
        f"add.f32.{narrow} %d, %a, %c; sub.rz.f32.{narrow} %e, %a, %c; fma.rn.f32.{narrow} %f, %a, %b, %c;"
        f"add.sat.f32.{narrow} %g, %a, %c; fma.rp.sat.f32.{narrow} %h, %a, %b, %c;"
    )
    inputs = {"a": ("b16", codes[0]), "b": ("b16", codes[1]), "c": ("f32", c)}
    with np.errstate(all="ignore"):
        got = execute(text, inputs, dict.fromkeys("defgh", "f32"))
        x, y = values
        check(got["d"], expected("add", [x, c], ""))
        check(got["e"], expected("sub", [x, c], "rz"))
        check(got["f"], expected("fma", [x, y, c], "rn"))
        check(got["g"], expected("add", [x, c], "sat"))
        check(got["h"], expected("fma", [x, y, c], "rp.sat"))


REFUSALS = {
    "add.ftz.f64 %x, %x, %x;": ".ftz is for .f32 only",
    "mul.sat.f64 %x, %x, %x;": ".sat is for .f32 only",
    "fma.f32 %a, %a, %a, %a;": "fma has none of .rn, .rz, .rm, .rp",
    "mad.f32 %a, %a, %a, %a;": "mad has none of .rn, .rz, .rm, .rp",
    "mad.rn.f16 %h, %h, %h, %h;": "the emulator does not know '.f16' of mad",
    "fma.f32.f16 %a, %h, %h, %a;": "fma has none of .rn, .rz, .rm, .rp",
    "div.f32 %a, %a, %a;": "div has none of .approx, .full, .rn, .rz, .rm, .rp",
    "div.full.f64 %x, %x, %x;": ".full is for .f32 only",
    "sqrt.approx.f64 %x, %x;": ".approx is for .f32 only",
    "sqrt.approx.ftz.f64 %x, %x;": ".ftz is for .f32 only",
    "tanh.approx.ftz.f32 %a, %a;": "tanh has no .ftz",
    "sin.approx.f16 %h, %h;": "sin is for .f32 only",
    "min.NaN.f64 %x, %x, %x;": "min.f64 and max.f64 have no modifiers",
    "min.abs.f32 %a, %a, %a;": ".xorsign and .abs come together",
    "max.xorsign.abs.f32 %a, %a, %a, %a;": ".xorsign is for two operands",
    "add.rna.f32 %a, %a, %a;": "the emulator does not know '.rna' of add",
    "add.f32 %a, %a;": "add has 2 operands, expected 3",
    "rsqrt.rn.f32 %a, %a;": "the emulator does not know '.rn' of rsqrt",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(text, {"a": ("f32", np.zeros(32, np.float32))}, {}, ".reg .f64 %x; .reg .b16 %h;")
    line, shown = str(caught.value).split("\n")
    assert line.partition(": ")[2] == REFUSALS[text] and shown.strip() == text.rstrip(";")
