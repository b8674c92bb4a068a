"""Comparisons and selections against Python's, NaNs and subnormals included."""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emulator_harness import execute
from emulator_integers import array, samples
from weft.emulator import PTXError
from weft.emulator.ptx.types import TYPES

INTEGER: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
UNSIGNED = INTEGER | {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
BITS = {"eq": operator.eq, "ne": operator.ne}


def ordered(name: str) -> Callable[[float, float], bool]:
    """False for NaNs."""
    return lambda x, y: not (math.isnan(x) or math.isnan(y)) and bool(INTEGER[name](x, y))


def unordered(name: str) -> Callable[[float, float], bool]:
    """True for NaNs."""
    return lambda x, y: math.isnan(x) or math.isnan(y) or bool(INTEGER[name](x, y))


FLOAT: dict[str, Callable[[float, float], bool]] = {
    **{name: ordered(name) for name in INTEGER},
    **{f"{name}u": unordered(name) for name in INTEGER},
    "num": lambda x, y: not (math.isnan(x) or math.isnan(y)),
    "nan": lambda x, y: math.isnan(x) or math.isnan(y),
}
COMBINE: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "xor": lambda x, y: x != y,
}

FLOAT_BITS: dict[str, list[int]] = {
    "f16": [
        0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x3C01, 0x7BFF, 0x7C00, 0xFC00,
        0x7E00, 0xFC01,
    ],
    "bf16": [
        0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x8080, 0x3F80, 0xBF80, 0x3F81, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0xFF81
    ],
    "f32": [
        0, 1 << 31, 1, (1 << 31) + 1, 0x7FFFFF, 0x807FFFFF, 0x800000, 0x80800000, 0x3F800000, 0xBF800000, 0x3F800001, 0x7F7FFFFF,
        0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7F800001,
    ],
    "f64": [
        0, 1 << 63, 1, (1 << 63) + 1, (1 << 52) - 1, 1 << 52, 0x3FF << 52, 0xBFF << 52, (0x3FF << 52) + 1, (0x7FF << 52) - 1,
        0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, (0xFFF << 52) + 1,
    ],
}  # fmt: skip


def number(bits: int, kind: str) -> float:
    """A float by its bits."""
    match kind:
        case "f16":
            return struct.unpack("<e", struct.pack("<H", bits))[0]
        case "bf16":
            return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
        case "f32":
            return struct.unpack("<f", struct.pack("<I", bits))[0]
        case _:
            return struct.unpack("<d", struct.pack("<Q", bits))[0]


def float_pairs(kind: str) -> tuple[list[tuple[int, int]], dict[str, tuple[str, Any]]]:
    pairs = list(itertools.product(FLOAT_BITS[kind], FLOAT_BITS[kind]))
    pairs += [(0, 0)] * (-len(pairs) % 32)
    unsigned = f"u{TYPES[kind].bits}"
    return pairs, {name: (f"b{unsigned[1:]}", array([p[i] for p in pairs], unsigned)) for i, name in enumerate("ab")}


def flushed(value: float, kind: str) -> float:
    smallest = {"f16": 2.0**-14, "f32": 2.0**-126}[kind]
    return 0.0 if abs(value) < smallest else value


def launch(text: str, inputs: dict[str, tuple[str, Any]], outputs: dict[str, str], **more: Any) -> dict[str, Any]:
    count = len(next(iter(inputs.values()))[1])
    return execute(text, inputs, outputs, block=32 if count % 256 else None, **more)


@pytest.mark.parametrize("kind", ("u16", "u32", "u64", "s16", "s32", "s64", "b16", "b32", "b64"))
def test_integers(kind: str) -> None:
    a, b = samples(kind, kind)
    table = {"u": UNSIGNED, "s": INTEGER, "b": BITS}[kind[0]]
    text = "".join(f"setp.{name}.{kind} %{name}, %a, %b;" for name in table)
    got = launch(text, {"a": (kind, a), "b": (kind, b)}, dict.fromkeys(table, "pred"))
    for name, model in table.items():
        assert got[name].tolist() == [model(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]


@pytest.mark.parametrize("kind", ("u16", "s32", "s64"))
def test_integers_and_a_constant(kind: str) -> None:
    a = samples(kind)[0]
    some = np.arange(a.size) % 3 != 0
    text = f"setp.le.{kind} %p, %a, 100; setp.gt.{kind} %q, 100, %a;"
    got = launch(text, {"a": (kind, a)}, {"p": "pred", "q": "pred"}, active=some)
    assert got["p"].tolist() == [bool(on and x <= 100) for x, on in zip(a.tolist(), some, strict=True)]
    assert got["q"].tolist() == [bool(on and x < 100) for x, on in zip(a.tolist(), some, strict=True)]


@pytest.mark.parametrize("kind", ("f16", "bf16", "f32", "f64"))
def test_floats(kind: str) -> None:
    pairs, inputs = float_pairs(kind)
    text = "".join(f"setp.{name}.{kind} %{name}, %a, %b;" for name in FLOAT)
    got = launch(text, inputs, dict.fromkeys(FLOAT, "pred"))
    for name, model in FLOAT.items():
        assert got[name].tolist() == [model(number(x, kind), number(y, kind)) for x, y in pairs], name


@pytest.mark.parametrize("kind", ("f16", "f32"))
def test_floats_with_subnormals_flushed(kind: str) -> None:
    pairs, inputs = float_pairs(kind)
    text = "".join(f"setp.{name}.ftz.{kind} %{name}, %a, %b;" for name in FLOAT)
    got = launch(text, inputs, dict.fromkeys(FLOAT, "pred"))
    for name, model in FLOAT.items():
        want = [model(flushed(number(x, kind), kind), flushed(number(y, kind), kind)) for x, y in pairs]
        assert got[name].tolist() == want, name
    subnormal = pairs.index((1, 0))
    assert got["eq"][subnormal]


@pytest.mark.parametrize("combine", COMBINE)
@pytest.mark.parametrize("negated", (False, True))
def test_two_results_and_a_third_operand(combine: str, negated: bool) -> None:
    """p = t op c, q = (not t) op c, also where p is c."""
    a, b = samples("s32", "s32")
    c = (np.arange(a.size) % 2).astype(np.uint8)
    some = np.arange(a.size) % 5 != 0
    third = "!%c" if negated else "%c"
    text = (
        f"setp.lt.{combine}.s32 %p|%q, %a, %b, {third}; setp.lt.{combine}.s32 _|%r, %a, %b, {third};"
        f"setp.lt.{combine}.s32 %s, %a, %b, {third}; setp.lt.{combine}.s32 %c|_, %a, %b, {third}; and.pred %u, %c, %c;"
    )
    inputs = {"a": ("s32", a), "b": ("s32", b), "c": ("pred", c)}
    got = launch(text, inputs, dict.fromkeys("pqrsu", "pred"), active=some)
    op = COMBINE[combine]
    for i in range(a.size):
        t, third_value = bool(a[i] < b[i]), bool(c[i]) != negated
        p, q = (op(t, third_value), op(not t, third_value)) if some[i] else (False, False)
        assert [got[name][i] for name in "pqrsu"] == [p, q, q, p, p]


@pytest.mark.parametrize("kind", ("f16", "bf16"))
@pytest.mark.parametrize("combine", ("", "and", "or", "xor"))
def test_packed_floats(kind: str, combine: str) -> None:
    """p is of the lower halves, q of the upper, each with c."""
    pairs, halves = float_pairs(kind)
    upper = [pairs[(i * 7 + 3) % len(pairs)] for i in range(len(pairs))]
    inputs = {
        name: ("b32", array([low[i] | high[i] << 16 for low, high in zip(pairs, upper, strict=True)], "u32"))
        for i, name in enumerate("ab")
    }
    assert halves
    c = (np.arange(len(pairs)) % 3 == 0).astype(np.uint8)
    middle, third = (f".{combine}", ", %c") if combine else ("", "")
    for name, model in FLOAT.items():
        text = f"setp.{name}{middle}.{kind}x2 %p|%q, %a, %b{third};"
        got = launch(text, {**inputs, "c": ("pred", c)}, {"p": "pred", "q": "pred"})
        for result, values in (("p", pairs), ("q", upper)):
            want = [model(number(x, kind), number(y, kind)) for x, y in values]
            if combine:
                want = [COMBINE[combine](t, bool(v)) for t, v in zip(want, c, strict=True)]
            assert got[result].tolist() == want, name


@pytest.mark.parametrize(
    ("target", "true"), [("u32", 0xFFFFFFFF), ("s32", -1), ("f32", 1.0), ("f16", 1.0), ("bf16", 0x3F80)]
)
@pytest.mark.parametrize("combine", ("", "and", "xor"))
def test_set_of_integers(target: str, true: float, combine: str) -> None:
    a, b = samples("s32", "s32")
    c = (np.arange(a.size) % 2).astype(np.uint8)
    middle, third = (f".{combine}", ", !%c") if combine else ("", "")
    text = f"set.lt{middle}.{target}.s32 %d, %a, %b{third};"
    got = launch(text, {"a": ("s32", a), "b": ("s32", b), "c": ("pred", c)}, {"d": target})["d"]
    holds = [bool(x < y) for x, y in zip(a, b, strict=True)]
    if combine:
        holds = [COMBINE[combine](t, not v) for t, v in zip(holds, c, strict=True)]
    assert got.tolist() == [true if t else 0 for t in holds]


@pytest.mark.parametrize(
    ("target", "kind", "true"),
    [
        ("u32", "f32", 0xFFFFFFFF),
        ("f32", "f64", 1.0),
        ("u16", "f16", 0xFFFF),
        ("s16", "bf16", -1),
        ("s32", "bf16", -1),
        ("f16", "f16", 1.0),
        ("bf16", "f16", 0x3F80),
        ("bf16", "bf16", 0x3F80),
        ("f16", "f32", 1.0),
    ],
)
def test_set_of_floats(target: str, kind: str, true: float) -> None:
    pairs, inputs = float_pairs(kind)
    for name in ("lt", "neu", "nan"):
        got = launch(f"set.{name}.{target}.{kind} %d, %a, %b;", inputs, {"d": target})["d"]
        assert got.tolist() == [true if FLOAT[name](number(x, kind), number(y, kind)) else 0 for x, y in pairs]


def test_set_with_subnormals_flushed() -> None:
    pairs, inputs = float_pairs("f32")
    got = launch("set.eq.ftz.u32.f32 %d, %a, %b;", inputs, {"d": "u32"})["d"]
    want = [flushed(number(x, "f32"), "f32") == flushed(number(y, "f32"), "f32") for x, y in pairs]
    assert got.tolist() == [0xFFFFFFFF if t else 0 for t in want]


@pytest.mark.parametrize("kind", ("f16", "bf16"))
def test_set_of_packed_floats(kind: str) -> None:
    pairs, _ = float_pairs(kind)
    upper = [pairs[(i * 5 + 1) % len(pairs)] for i in range(len(pairs))]
    inputs = {
        name: ("b32", array([low[i] | high[i] << 16 for low, high in zip(pairs, upper, strict=True)], "u32"))
        for i, name in enumerate("ab")
    }
    c = (np.arange(len(pairs)) % 2).astype(np.uint8)
    one = {"f16": 0x3C00, "bf16": 0x3F80}[kind]
    for target, true in ((f"{kind}x2", one), ("u32", 0xFFFF), ("s32", 0xFFFF)):
        text = f"set.geu.and.{target}.{kind}x2 %d, %a, %b, %c;"
        got = launch(text, {**inputs, "c": ("pred", c)}, {"d": "b32"}, active=c == 1)["d"]
        for i, result in enumerate(got.tolist()):
            low, high = (FLOAT["geu"](number(x, kind), number(y, kind)) for x, y in (pairs[i], upper[i]))
            assert result == (((true if low else 0) | (true << 16 if high else 0)) if c[i] else 0)


@pytest.mark.parametrize("kind", ("b16", "b32", "b64", "u16", "s32", "u64", "f32", "f64"))
def test_selp(kind: str) -> None:
    unsigned = f"u{TYPES[kind].bits}"
    a, b = samples(unsigned, unsigned)
    p = np.arange(a.size) % 3 == 0
    some = np.arange(a.size) % 4 != 0
    inputs = {"a": (unsigned, a), "b": (unsigned, b), "p": ("pred", p.astype(np.uint8))}
    got = launch(
        f"selp.{kind} %d, %a, %b, %p; selp.{kind} %e, %a, %b, !%p;", inputs, {"d": unsigned, "e": unsigned}, active=some
    )
    assert np.array_equal(got["d"], np.where(some, np.where(p, a, b), 0))
    assert np.array_equal(got["e"], np.where(some, np.where(p, b, a), 0))
    got = launch(
        f"selp.{kind} %d, 1{'.0' if kind[0] == 'f' else ''}, %b, %p;",
        {"b": inputs["b"], "p": inputs["p"]},
        {"d": unsigned},
    )
    one = {"f32": 0x3F800000, "f64": 0x3FF << 52}.get(kind, 1)
    assert np.array_equal(got["d"], np.where(p, np.array(one, a.dtype), b))


@pytest.mark.parametrize("kind", ("b16", "u32", "f32", "s64"))
def test_slct(kind: str) -> None:
    unsigned = f"u{TYPES[kind].bits}"
    a, b = (x[:1024] for x in samples(unsigned, unsigned))
    c = samples("s32", count=1024)[0][:1024]
    inputs = {"a": (unsigned, a), "b": (unsigned, b), "c": ("s32", c)}
    got = launch(f"slct.{kind}.s32 %d, %a, %b, %c;", inputs, {"d": unsigned})["d"]
    assert np.array_equal(got, np.where(c >= 0, a, b))


@pytest.mark.parametrize("ftz", (False, True))
def test_slct_by_a_float(ftz: bool) -> None:
    """-0.0 and, flushed, the smallest negative number choose a; a NaN chooses b."""
    bits = FLOAT_BITS["f32"] + [0] * (-len(FLOAT_BITS["f32"]) % 32)
    inputs = {"c": ("f32", array(bits, "u32"))}
    got = launch(f"slct{'.ftz' if ftz else ''}.u32.f32 %d, 1, 2, %c;", inputs, {"d": "u32"})["d"]
    values = [flushed(number(v, "f32"), "f32") if ftz else number(v, "f32") for v in bits]
    assert got.tolist() == [1 if v >= 0 else 2 for v in values]
    assert got[bits.index((1 << 31) + 1)] == (1 if ftz else 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("setp.lt.b32 %p, %a, %a", ".lt does not compare .b32"),
        ("setp.lo.s32 %p, %a, %a", ".lo does not compare .s32"),
        ("setp.equ.u32 %p, %a, %a", ".equ does not compare .u32"),
        ("setp.hi.f32 %p, %a, %a", ".hi does not compare .f32"),
        ("setp.lt.ftz.s32 %p, %a, %a", ".ftz is not for .s32"),
        ("setp.lt.s32 %p, %a, %a, %q", "setp has 4 operands, expected 3"),
        ("setp.lt.and.s32 %p, %a, %a", "setp has 3 operands, expected 4"),
        ("setp.lt.f16x2 %p, %a, %a", "setp of .f16x2 has two results, p|q"),
        ("setp.lt.s8 %p, %a, %a", "the emulator does not know '.s8' of setp"),
        ("set.lt.f32.f16x2 %d, %a, %a", "set gives no .f32 of .f16x2"),
        ("set.lt.u16.f32 %d, %a, %a", "set gives no .u16 of .f32"),
        ("set.ne.b32.u32 %d, %a, %a", "set gives no .b32 of .u32"),
        ("set.lt.ftz.bf16.f32 %d, %a, %a", ".ftz is not for a result of .bf16"),
        ("setp.lt.f16 %p|%q, %a, %a", "setp of .f16 has one result"),
        ("selp.pred %p, %p, %q, %p", "the emulator does not know '.pred' of selp"),
        ("slct.ftz.u32.s32 %d, %a, %a, %a", ".ftz is for a choice by .f32 only"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("b32", np.zeros(32, np.uint32))}, {"d": "b32"}, ".reg .pred %p, %q;")
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"
