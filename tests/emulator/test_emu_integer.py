"""Integer arithmetic against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from emulator_harness import execute
from emulator_integers import array, bits_of, check, edges, expected, samples, wrap
from weft.emulator import PTXError
from weft.emulator.arith import integer

TYPES = ("u16", "u32", "u64", "s16", "s32", "s64")
SIGNED = ("s16", "s32", "s64")
S32 = (-(1 << 31), (1 << 31) - 1)


def clamp(value: int) -> int:
    return min(max(value, S32[0]), S32[1])


def truncated(a: int, b: int) -> int:
    """a / b towards zero."""
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
    "div": lambda a, b: truncated(a, b) if b else -1,
    "rem": lambda a, b: a - b * truncated(a, b) if b else -1,
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("opcode", BINARY)
def test_two_operands(opcode: str, kind: str) -> None:
    check(f"{opcode}.{kind} %d, %a, %b;", (kind, kind), kind, BINARY[opcode])


@pytest.mark.parametrize("kind", TYPES)
def test_high_half_of_the_product(kind: str) -> None:
    n = bits_of(kind)
    check(f"mul.hi.{kind} %d, %a, %b;", (kind, kind), kind, lambda a, b: (a * b) >> n)
    check(f"mad.hi.{kind} %d, %a, %b, %c;", (kind,) * 3, kind, lambda a, b, c: ((a * b) >> n) + c)


@pytest.mark.parametrize("kind", TYPES)
def test_multiply_add(kind: str) -> None:
    check(f"mad.lo.{kind} %d, %a, %b, %c;", (kind,) * 3, kind, lambda a, b, c: a * b + c)


@pytest.mark.parametrize("kind", ("u16", "u32", "s16", "s32"))
def test_wide_products(kind: str) -> None:
    wide = f"{kind[0]}{2 * bits_of(kind)}"
    check(f"mul.wide.{kind} %d, %a, %b;", (kind, kind), wide, lambda a, b: a * b)
    check(f"mad.wide.{kind} %d, %a, %b, %c;", (kind, kind, wide), wide, lambda a, b, c: a * b + c)


def test_saturation() -> None:
    check("add.sat.s32 %d, %a, %b;", ("s32", "s32"), "s32", lambda a, b: clamp(a + b))
    check("sub.sat.s32 %d, %a, %b;", ("s32", "s32"), "s32", lambda a, b: clamp(a - b))
    check("mad.hi.sat.s32 %d, %a, %b, %c;", ("s32",) * 3, "s32", lambda a, b, c: clamp(((a * b) >> 32) + c))


@pytest.mark.parametrize("kind", TYPES)
def test_sum_of_absolute_differences(kind: str) -> None:
    check(f"sad.{kind} %d, %a, %b, %c;", (kind,) * 3, kind, lambda a, b, c: c + abs(a - b))


@pytest.mark.parametrize("kind", SIGNED)
def test_absolute_value_and_negation(kind: str) -> None:
    check(f"abs.{kind} %d, %a;", (kind,), kind, abs)
    check(f"neg.{kind} %d, %a;", (kind,), kind, lambda a: -a)


def low24(value: int, kind: str) -> int:
    value &= 0xFFFFFF
    return value - (1 << 24) if kind == "s32" and value >> 23 else value


@pytest.mark.parametrize("kind", ("u32", "s32"))
@pytest.mark.parametrize("mode", ("lo", "hi"))
def test_products_of_24_bits(mode: str, kind: str) -> None:
    shift = 16 if mode == "hi" else 0

    def product(a: int, b: int) -> int:
        return (low24(a, kind) * low24(b, kind)) >> shift

    check(f"mul24.{mode}.{kind} %d, %a, %b;", (kind, kind), kind, product)
    check(f"mad24.{mode}.{kind} %d, %a, %b, %c;", (kind,) * 3, kind, lambda a, b, c: product(a, b) + c)


def test_saturated_sum_after_a_product_of_24_bits() -> None:
    def model(a: int, b: int, c: int) -> int:
        return clamp(((low24(a, "s32") * low24(b, "s32")) >> 16) + c)

    check("mad24.hi.sat.s32 %d, %a, %b, %c;", ("s32",) * 3, "s32", model)


def parts(word: int, size: int, kind: str) -> list[int]:
    """The parts of a word, lowest first, of ``size`` bits each."""
    sign = "s" if kind == "s32" else "u"
    return [wrap(word >> (size * i), f"{sign}{size}") for i in range(32 // size)]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(("u32", "s32"), repeat=2)))
def test_dot_products(left: str, right: str) -> None:
    word = "u32" if left == right == "u32" else "s32"

    def four(a: int, b: int, c: int) -> int:
        return c + sum(x * y for x, y in zip(parts(a, 8, left), parts(b, 8, right), strict=True))

    def two(a: int, b: int, c: int, first: int) -> int:
        return c + sum(x * y for x, y in zip(parts(a, 16, left), parts(b, 8, right)[first : first + 2], strict=True))

    kinds = (left, right, word)
    check(f"dp4a.{left}.{right} %d, %a, %b, %c;", kinds, word, four)
    check(f"dp2a.lo.{left}.{right} %d, %a, %b, %c;", kinds, word, lambda a, b, c: two(a, b, c, 0))
    check(f"dp2a.hi.{left}.{right} %d, %a, %b, %c;", kinds, word, lambda a, b, c: two(a, b, c, 2))


def halves(model: Callable[[int, int], int], kind: str) -> Callable[[int, int], int]:
    """A model of packed halves."""
    half = kind[:3]

    def both(a: int, b: int) -> int:
        low = model(wrap(a, half), wrap(b, half)) & 0xFFFF
        return low | (model(wrap(a >> 16, half), wrap(b >> 16, half)) & 0xFFFF) << 16

    return both


@pytest.mark.parametrize("kind", ("u16x2", "s16x2"))
@pytest.mark.parametrize("opcode", ("add", "min", "max"))
def test_packed_halves(opcode: str, kind: str) -> None:
    check(f"{opcode}.{kind} %d, %a, %b;", ("b32", "b32"), "b32", halves(BINARY[opcode], kind))


@pytest.mark.parametrize("opcode", ("min", "max"))
def test_relu(opcode: str) -> None:
    """The modifier stands on either side of the type in the ISA's examples."""
    model = BINARY[opcode]

    def positive(a: int, b: int) -> int:
        return max(model(a, b), 0)

    check(f"{opcode}.relu.s32 %d, %a, %b;", ("s32", "s32"), "s32", positive)
    check(f"{opcode}.s16x2.relu %d, %a, %b;", ("b32", "b32"), "b32", halves(positive, "s16x2"))


def test_the_result_may_be_an_operand() -> None:
    a, b = samples("s32", "s32")
    got = execute(
        "mad.lo.s32 %a, %a, %b, %a; sub.s32 %a, %b, %a; mov.b32 %d, %a;",
        {"a": ("s32", a), "b": ("s32", b)},
        {"d": "s32"},
    )
    assert np.array_equal(got["d"], expected(lambda x, y: y - (x * y + x), (a, b), "s32"))


@pytest.mark.parametrize("signed", (False, True))
def test_every_pair_of_16_bit_high_products_by_8_bit_numbers(signed: bool) -> None:
    """All 65536 pairs of 8-bit numbers, spread over 16 bits so that the high half is not only a sign."""
    kind = "s16" if signed else "u16"
    x = array([v << 8 for v in range(256) for _ in range(256)], kind)
    y = array([v << 7 for _ in range(256) for v in range(256)], kind)
    want = expected(lambda a, b: (a * b) >> 16, (x, y), kind)
    assert np.array_equal(integer.high(x, y), want)


@pytest.mark.parametrize("kind", TYPES)
def test_division_law(kind: str) -> None:
    """a = q b + r, |r| < |b|, r has the sign of a: whenever b is not 0."""
    a, b = samples(kind, kind, seed=3)
    with np.errstate(all="ignore"):
        q, r = integer.quotient(a, b), integer.remainder(a, b)
    for x, y, quotient, rest in zip(a.tolist(), b.tolist(), q.tolist(), r.tolist(), strict=True):
        if y:
            assert wrap(quotient * y + rest, kind) == x
            assert abs(rest) < abs(y)
            assert rest == 0 or (rest < 0) == (x < 0)


def test_edges_hold_the_ends() -> None:
    assert {-(1 << 31), (1 << 31) - 1, -1, 0, 1} <= set(edges("s32"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add.sat.u32 %d, %a, %b", ".sat is for .s32 only"),
        ("add.cta.u32 %d, %a, %b", "the emulator does not know '.cta' of add"),
        ("sub.u16x2 %d, %a, %b", "the emulator does not know '.u16x2' of sub"),
        ("max.relu.u32 %d, %a, %b", ".relu is for .s32 and .s16x2 only"),
        ("mul.u32 %d, %a, %b", "mul has none of .hi, .lo, .wide"),
        ("mul.lo.sat.u32 %d, %a, %b", "the emulator does not know '.sat' of mul"),
        ("mad.lo.sat.s32 %d, %a, %b, %a", ".sat is for mad.hi.s32 only"),
        ("mad24.lo.sat.s32 %d, %a, %b, %a", ".sat is for mad24.hi.s32 only"),
        ("rem.f32 %d, %a, %b", "the emulator does not know '.f32' of rem"),
        ("dp4a.u32 %d, %a, %b, %a", "dp4a has none of .u32, .s32"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    word = np.zeros(32, np.uint32)
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("b32", word), "b": ("b32", word)}, {"d": "b32"})
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"


def test_wide_products_of_64_bits_are_refused() -> None:
    word = np.zeros(32, np.uint64)
    with pytest.raises(PTXError) as caught:
        execute("mul.wide.u64 %d, %a, %a;", {"a": ("b64", word)}, {"d": "b64"})
    assert str(caught.value).split(": ", 1)[1] == ".wide is for 16 and 32 bits only\n    mul.wide.u64 %d, %a, %a"


def test_constants_that_ptxas_evaluates() -> None:
    """What ptxas puts in the place of an instruction on constants, recorded in ``data/integer_constants.txt``."""
    lines = (Path(__file__).parent / "data" / "integer_constants.txt").read_text().splitlines()
    rows = [line.split(" = ") for line in lines if not line.startswith("#")]
    assert len(rows) > 350
    texts = [text.replace("%d", f"%d{i}") + ";" for i, (text, _) in enumerate(rows)]
    got = execute("\n".join(texts), {"a": ("b32", np.zeros(32, np.uint32))}, {f"d{i}": "b32" for i in range(len(rows))})
    for i, (text, value) in enumerate(rows):
        assert hex(got[f"d{i}"][0]) == hex(int(value, 16)), text
