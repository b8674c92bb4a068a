"""Half-precision instructions: unary ones over all 65536 operands, the others against rationals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from emulator_exact import BF16, F16, Shape, rounded
from emulator_harness import execute
from weft.emulator import PTXError

SHAPES = {"f16": F16, "bf16": BF16}
ALL = np.arange(1 << 16, dtype=np.uint16)
NAN = 0x7FFF


OUTSIDE = 0x7FF7
"""The NaN of what is outside a tensor."""


def numbers(codes: Any, kind: str) -> Any:
    """What the codes stand for, as float64."""
    with np.errstate(all="ignore"):
        if kind == "f16":
            return codes.view(np.float16).astype(np.float64)
        return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def encoded(values: list[float], kind: str) -> Any:
    """Codes of values that are numbers of the type."""
    with np.errstate(all="ignore"):
        if kind == "f16":
            codes = np.array(values, np.float64).astype(np.float16).view(np.uint16)
        else:
            codes = (np.array(values, np.float64).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(NAN), codes)


def operands(kind: str, count: int, size: int, seed: int) -> list[Any]:
    """Codes: a quarter anything, a quarter near one, a quarter tiny, a quarter special, each operand by itself."""
    random = np.random.default_rng(seed)
    mantissa = 10 if kind == "f16" else 7
    special = [0, 0x8000, 1, 0x8001, (1 << mantissa) - 1, 1 << mantissa, (0x7C00 if kind == "f16" else 0x7F80) - 1, NAN]
    special += [0x7C00, 0xFC00, 0x3C00] if kind == "f16" else [0x7F80, 0xFF80, 0x3F80]
    one = 0x3C00 if kind == "f16" else 0x3F80
    columns: list[Any] = []
    for _ in range(count):
        anything = random.integers(0, 1 << 16, size, dtype=np.uint16)
        near = (one - (3 << mantissa) + random.integers(0, 6 << mantissa, size)).astype(np.uint16)
        tiny = random.integers(0, 3 << mantissa, size, dtype=np.uint16) | (anything & np.uint16(0x8000))
        columns.append(np.choose(random.integers(0, 4, size), [anything, near, tiny, random.choice(special, size)]))
    return [c.astype(np.uint16) for c in columns]


def same(got: Any, want: Any) -> None:
    wrong = np.flatnonzero(got != want)
    assert not wrong.size, [(int(i), hex(got[i]), hex(want[i])) for i in wrong[:6]]


def sign(x: float) -> float:
    return math.copysign(1.0, x)


def product_plus(x: float, y: float, z: float, shape: Shape) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):
        return z
    product = Fraction(x) * Fraction(y)
    zero = z if product == 0 and z == 0 and sign(x) * sign(y) == sign(z) else 0.0
    return rounded(product + Fraction(z), shape, "rn", zero)


def total(x: float, y: float, shape: Shape) -> float:
    return product_plus(x, 1.0, y, shape)


def difference(x: float, y: float, shape: Shape) -> float:
    return product_plus(x, 1.0, -y, shape)


def product(x: float, y: float, shape: Shape) -> float:
    return product_plus(x, y, math.copysign(0.0, sign(x) * sign(y)), shape)


OPERATIONS: dict[str, Callable[..., float]] = {"add": total, "sub": difference, "mul": product, "fma": product_plus}


def flushed(x: float, shape: Shape) -> float:
    return math.copysign(0.0, x) if abs(x) < shape.smallest_normal else x


def expected(name: str, kind: str, columns: list[Any], words: list[str]) -> Any:
    shape, results = SHAPES[kind], list[float]()
    for values in zip(*(numbers(c, kind).tolist() for c in columns), strict=True):
        given = [flushed(v, shape) for v in values] if "ftz" in words else values
        value = OPERATIONS[name](*given, shape)
        if "ftz" in words:
            value = flushed(value, shape)
        if "sat" in words:
            value = 0.0 if math.isnan(value) or value <= 0 else min(value, 1.0)
        if "relu" in words and value <= 0:
            value = 0.0
        results.append(value)
    return encoded(results, kind)


FORMS = [("f16", m) for m in ("", ".rn", ".ftz", ".sat", ".ftz.sat")] + [("bf16", ""), ("bf16", ".rn")]
FMA_FORMS = [("f16", m) for m in (".rn", ".rn.ftz", ".rn.sat", ".rn.relu", ".rn.ftz.relu")] + [
    ("bf16", ".rn"),
    ("bf16", ".rn.relu"),
    ("f16", ".rn.oob"),
    ("f16", ".rn.oob.sat"),
    ("f16", ".rn.oob.relu"),
    ("bf16", ".rn.oob"),
    ("bf16", ".rn.oob.relu"),
]


@pytest.mark.parametrize(("kind", "modifiers"), FORMS)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_sums_and_products(name: str, kind: str, modifiers: str) -> None:
    x, y = operands(kind, 2, 4096, 1)
    inputs = {"a": ("b16", x), "b": ("b16", y)}
    got = execute(f"{name}{modifiers}.{kind} %d, %a, %b;", inputs, {"d": "b16"})["d"]
    want = expected(name, kind, [x, y], modifiers.split("."))
    same(got, want)
    inputs = {"a": ("b32", x.view(np.uint32)), "b": ("b32", y.view(np.uint32))}
    got = execute(f"{name}{modifiers}.{kind}x2 %d, %a, %b;", inputs, {"d": "b32"})["d"]
    same(got.view(np.uint16), want)


@pytest.mark.parametrize(("kind", "modifiers"), FMA_FORMS)
def test_fma(kind: str, modifiers: str) -> None:
    columns = operands(kind, 3, 8192, 2)
    columns[0][::11], columns[1][::13], columns[2][::17], columns[0][5::11] = (
        OUTSIDE,
        OUTSIDE,
        OUTSIDE,
        OUTSIDE ^ 0x8000,
    )
    inputs = {n: ("b16", c) for n, c in zip("abc", columns, strict=True)}
    got = execute(f"fma{modifiers}.{kind} %d, %a, %b, %c;", inputs, {"d": "b16"})["d"]
    want = expected("fma", kind, columns, modifiers.split("."))
    if ".oob" in modifiers:
        want = np.where((columns[0] == OUTSIDE) | (columns[1] == OUTSIDE), 0, want)
        assert (want[::13] == 0).all() and (want[::11] == 0).all()
    same(got, want)
    inputs = {n: ("b32", c.view(np.uint32)) for n, c in zip("abc", columns, strict=True)}
    got = execute(f"fma{modifiers}.{kind}x2 %d, %a, %b, %c;", inputs, {"d": "b32"})["d"]
    same(got.view(np.uint16), want)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_fma_next_to_ties(kind: str) -> None:
    """x*y half of z's last place, or a last place of the product itself with z next to nothing."""
    random = np.random.default_rng(3)
    mantissa, bias = (10, 15) if kind == "f16" else (7, 127)
    size = 4096
    z = (bias << mantissa) + random.integers(0, 1 << mantissa, size)  # in [1, 2)
    half = (bias - mantissa - 1) << mantissa  # half the last place of z
    x = np.where(random.random(size) < 0.5, half, half + random.integers(0, 3, size))
    y = (bias << mantissa) + random.integers(0, 2, size)
    tiny = random.integers(0, 4, size)
    swap = random.random(size) < 0.5  # a product with a tie of its own, and a tiny addend
    x, y, z = (
        np.where(swap, v, w).astype(np.uint16)
        for v, w in (((bias << mantissa) + random.integers(0, 1 << mantissa, size), x), (z, y), (tiny, z))
    )
    z ^= (random.integers(0, 2, size) << 15).astype(np.uint16)
    inputs = {"a": ("b16", x), "b": ("b16", y), "c": ("b16", z)}
    got = execute(f"fma.rn.{kind} %d, %a, %b, %c;", inputs, {"d": "b16"})["d"]
    same(got, expected("fma", kind, [x, y, z], []))


def test_fma_of_bf16_is_rounded_once() -> None:
    # 1 + 2**-7 times 1 + 2**-1 is 1.5 + 3 * 2**-8, a tie between 1.5 + 2**-7 and 1.5 + 2**-6; 2**-100 decides it.
    for addend, last in ((0x0D80, 2), (0x8D80, 1), (0x0000, 2)):
        columns = [np.full(32, c, np.uint16) for c in (0x3F81, 0x3FC0, addend)]
        inputs = {n: ("b16", c) for n, c in zip("abc", columns, strict=True)}
        got = execute("fma.rn.bf16 %d, %a, %b, %c;", inputs, {"d": "b16"})["d"]
        assert got[0] == 0x3FC0 + last


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_signs_of_every_operand(kind: str) -> None:
    got = execute(f"neg.{kind} %d, %a; abs.{kind} %e, %a;", {"a": ("b16", ALL)}, {"d": "b16", "e": "b16"})
    same(got["d"], ALL ^ np.uint16(0x8000))
    same(got["e"], ALL & np.uint16(0x7FFF))
    got = execute(
        f"neg.{kind}x2 %d, %a; abs.{kind}x2 %e, %a;", {"a": ("b32", ALL.view(np.uint32))}, {"d": "b32", "e": "b32"}
    )
    same(got["d"].view(np.uint16), ALL ^ np.uint16(0x8000))
    same(got["e"].view(np.uint16), ALL & np.uint16(0x7FFF))


def test_signs_flush_every_subnormal_operand() -> None:
    got = execute("neg.ftz.f16 %d, %a; abs.ftz.f16 %e, %a;", {"a": ("b16", ALL)}, {"d": "b16", "e": "b16"})
    kept = np.where((ALL & 0x7C00) == 0, ALL & 0x8000, ALL).astype(np.uint16)
    same(got["d"], kept ^ np.uint16(0x8000))
    same(got["e"], kept & np.uint16(0x7FFF))


def chosen(values: tuple[float, ...], largest: bool, words: list[str]) -> float:
    """The ISA's text: +0 > -0, NaN is passed over unless .NaN, xorsign by the operands' own signs."""
    negative = "xorsign" in words and sign(values[0]) != sign(values[1])
    found = [abs(v) if "abs" in words else v for v in values]
    if all(map(math.isnan, found)) or ("NaN" in words and any(map(math.isnan, found))):
        return math.nan
    best = sorted((v for v in found if not math.isnan(v)), key=lambda v: (v, sign(v)))[-1 if largest else 0]
    return -best if negative else best


EXTREMES = [("f16", m) for m in ("", ".NaN", ".ftz", ".xorsign.abs", ".NaN.xorsign.abs")] + [
    ("bf16", ""),
    ("bf16", ".NaN"),
]


@pytest.mark.parametrize(("kind", "modifiers"), EXTREMES)
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes(name: str, kind: str, modifiers: str) -> None:
    x, y = operands(kind, 2, 4096, 5)
    words = modifiers.split(".")
    want = [
        chosen(tuple(flushed(v, F16) if "ftz" in words else v for v in pair), name == "max", words)
        for pair in zip(numbers(x, kind).tolist(), numbers(y, kind).tolist(), strict=True)
    ]
    got = execute(f"{name}{modifiers}.{kind} %d, %a, %b;", {"a": ("b16", x), "b": ("b16", y)}, {"d": "b16"})["d"]
    same(got, encoded(want, kind))
    inputs = {"a": ("b32", x.view(np.uint32)), "b": ("b32", y.view(np.uint32))}
    got = execute(f"{name}{modifiers}.{kind}x2 %d, %a, %b;", inputs, {"d": "b32"})["d"]
    same(got.view(np.uint16), encoded(want, kind))


FUNCTIONS = {
    "ex2.approx.f16": 2.0**-9.9,
    "ex2.approx.ftz.bf16": 2.0**-7,
    "tanh.approx.f16": 2.0**-10.987,
    "tanh.approx.bf16": 2.0**-8,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_approximations_of_every_operand(name: str) -> None:
    """ex2 by relative error, tanh by absolute error: the ISA's bounds."""
    kind = name.rpartition(".")[2]
    got = execute(f"{name} %d, %a;", {"a": ("b16", ALL)}, {"d": "b16"})["d"]
    pair = execute(f"{name}x2 %d, %a;", {"a": ("b32", ALL.view(np.uint32))}, {"d": "b32"})["d"]
    same(pair.view(np.uint16), got)
    x, y = numbers(ALL, kind), numbers(got, kind)
    assert (got[np.isnan(x)] == NAN).all()
    shape, bound = SHAPES[kind], FUNCTIONS[name]
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if math.isnan(a):
            continue
        if name.startswith("tanh"):
            assert abs(b - math.tanh(a)) <= bound and sign(a) == sign(b)
            continue
        exact = 2.0**a if a < 1000 else math.inf
        if exact > shape.largest:
            assert b in (math.inf, float(shape.largest))
        elif exact >= shape.smallest_normal:
            assert abs(b - exact) <= bound * exact
        else:
            assert abs(b - exact) <= float(shape.smallest_normal) * (1 if kind == "bf16" else 2.0**-10)
            assert kind == "f16" or b in (0.0, float(shape.smallest_normal))


def test_special_values_of_functions() -> None:
    x = np.array([0x7C00, 0xFC00, 0x0000, 0x8000, 0x7E00, 0x0001, 0x8001, 0x3C00] * 4, np.uint16)
    got = execute("ex2.approx.f16 %d, %a; tanh.approx.f16 %e, %a;", {"a": ("b16", x)}, {"d": "b16", "e": "b16"})
    assert got["d"][:8].tolist() == [0x7C00, 0, 0x3C00, 0x3C00, NAN, 0x3C00, 0x3C00, 0x4000]
    assert got["e"][:7].tolist() == [0x3C00, 0xBC00, 0, 0x8000, NAN, 0x0001, 0x8001]


def test_only_active_threads_are_written() -> None:
    x = np.arange(64, dtype=np.uint32) * 0x10001
    active = np.arange(64) % 5 < 2
    text = "add.f16x2 %d, %a, %a; fma.rn.bf16 %h, %g, %g, %g; neg.f16x2 %e, %a;"
    inputs = {"a": ("b32", x), "g": ("b16", np.full(64, 0x3F80, np.uint16))}
    got = execute(text, inputs, {"d": "b32", "h": "b16", "e": "b32"}, active=active)
    assert (got["d"] == np.where(active, 2 * x, 0)).all() and (got["h"] == np.where(active, 0x4000, 0)).all()
    assert (got["e"] == np.where(active, x ^ np.uint32(0x80008000), 0)).all()


def test_integer_constants_are_codes() -> None:
    x = np.full(32, 0x4000, np.uint16)
    text = "add.f16 %d, %a, 0x3C00; mul.bf16 %e, %b, 0x3F80; fma.rn.f16x2 %f, %g, 0x3C003C00, 0x3C00;"
    text += "cvt.f32.f16 %h, 0x3C00; cvt.f32.bf16 %i, 0x3FC0;"
    inputs = {"a": ("b16", x), "b": ("b16", x), "g": ("b32", np.full(32, 0x40003C00, np.uint32))}
    got = execute(text, inputs, {"d": "b16", "e": "b16", "f": "b32", "h": "f32", "i": "f32"})
    assert [got[n][0] for n in "defhi"] == [0x4200, 0x4000, 0x40004000, 1.0, 1.5]


REFUSALS = {
    "add.ftz.bf16 %h, %h, %h;": ".ftz is not for .bf16",
    "mul.sat.bf16x2 %a, %a, %a;": ".sat is not for .bf16x2",
    "add.rz.f16 %h, %h, %h;": "the emulator does not know '.rz' of add",
    "fma.rn.sat.relu.f16 %h, %h, %h, %h;": ".sat and .relu exclude each other",
    "fma.rn.ftz.oob.f16 %h, %h, %h, %h;": ".ftz and .oob exclude each other",
    "fma.rn.oob.sat.bf16 %h, %h, %h, %h;": ".sat is not for .bf16",
    "add.rn.oob.f16 %h, %h, %h;": "the emulator does not know '.oob' of add",
    "ex2.approx.bf16 %h, %h;": "ex2.bf16 is with .ftz",
    "ex2.approx.ftz.f16 %h, %h;": "ex2.f16 is without .ftz",
    "max.f16 %h, %h, %h, %h;": "max has 4 operands, expected 3",
    "max.xorsign.f16 %h, %h, %h;": ".xorsign and .abs come together",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(text, {"a": ("b32", np.zeros(32, np.uint32))}, {}, ".reg .b16 %h;")
    line, shown = str(caught.value).split("\n")
    assert line.partition(": ")[2] == REFUSALS[text] and shown.strip() == text.rstrip(";")
