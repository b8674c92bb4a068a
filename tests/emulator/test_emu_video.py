"""Video instructions against the ISA's pseudo code in Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from emulator_harness import execute
from emulator_integers import check, samples, wrap
from weft.emulator import PTXError

BOTH = ("u32", "s32")
KINDS = list(itertools.product(BOTH, BOTH, BOTH))
WORDS = ("u32",) * 3
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "absdiff": lambda a, b: abs(a - b),
    "min": min,
    "max": max,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
SECOND: dict[str, Callable[[int, int], int]] = {"add": lambda t, c: t + c, "min": min, "max": max}


def selected(word: int, part: str, kind: str) -> int:
    """A byte, a half or all of a word, extended."""
    bits = {"b": 8, "h": 16, "": 32}[part[:1]]
    sign = "s" if kind == "s32" else "u"
    return wrap(word >> (bits * int(part[1:] or "0")), f"{sign}{bits}")


def clamp(value: int, bits: int, signed: bool) -> int:
    least, greatest = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(value, least), greatest)


def merged(value: int, part: str, c: int) -> int:
    bits = {"b": 8, "h": 16}[part[0]]
    shift = bits * int(part[1:])
    mask = ((1 << bits) - 1) << shift
    return c & ~mask | value << shift & mask


def dot(part: str) -> str:
    return f".{part}" if part else ""


FEW = samples(*WORDS, count=64)
"""Operands: 256 rows."""


def scalar(
    operation: Callable[[int, int], int], kinds: tuple[str, str, str], parts: tuple[str, str, str], sat: bool
) -> Callable[[int, int, int], int]:
    """A scalar operation with a merge, if the result is a part."""
    (target, left, right), (a, b, into) = kinds, parts
    bits = {"b": 8, "h": 16, "": 32}[into[:1]]

    def model(x: int, y: int, c: int) -> int:
        t = operation(selected(x, a, left), selected(y, b, right))
        t = clamp(t, bits, target == "s32") if sat else t
        return merged(t, into, c) if into else t

    return model


SCALARS = [
    (("", "", ""), False),
    (("", "", ""), True),
    (("b0", "h1", ""), True),
    (("h0", "b3", "b2"), True),
    (("b1", "", "h1"), False),
]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("opcode", OPERATIONS)
def test_scalar(opcode: str, kinds: tuple[str, str, str]) -> None:
    for parts, sat in SCALARS:
        a, b, into = map(dot, parts)
        text = f"v{opcode}.{'.'.join(kinds)}{'.sat' if sat else ''} %d{into}, %a{a}, %b{b}{', %c' if into else ''};"
        check(text, WORDS, "u32", scalar(OPERATIONS[opcode], kinds, parts, sat), FEW, thorough=False)


def then(
    first: Callable[[int, int, int], int], second: Callable[[int, int], int], kind: str
) -> Callable[[int, int, int], int]:
    """A second operation, on the third operand as a number of the result's type."""
    return lambda x, y, c: second(first(x, y, c), wrap(c, kind))


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("sat", (False, True))
def test_scalar_with_a_second_operation(second: str, sat: bool) -> None:
    """What goes before is exact unless saturated."""
    for kinds in KINDS:
        model = then(scalar(OPERATIONS["sub"], kinds, ("", "h1", ""), sat), SECOND[second], kinds[0])
        text = f"vsub.{'.'.join(kinds)}{'.sat' if sat else ''}.{second} %d, %a, %b.h1, %c;"
        check(text, WORDS, "u32", model, FEW, thorough=False)


def shifted(opcode: str, mode: str) -> Callable[[int, int], int]:
    def operation(x: int, y: int) -> int:
        by = min(y, 32) if mode == "clamp" else y & 31
        return x << by if opcode == "vshl" else x >> by

    return operation


@pytest.mark.parametrize("mode", ("clamp", "wrap"))
@pytest.mark.parametrize("sat", (False, True))
@pytest.mark.parametrize("opcode", ("vshl", "vshr"))
def test_shifts(opcode: str, sat: bool, mode: str) -> None:
    columns = [*(column[:512] for column in samples("u32", "u32", count=16)), FEW[0].repeat(2)]
    for target, left in itertools.product(BOTH, BOTH):
        name = f"{opcode}.{target}.{left}.u32{'.sat' if sat else ''}.{mode}"
        for part in ("b0", ""):
            model = scalar(shifted(opcode, mode), (target, left, "u32"), ("", part, ""), sat)
            check(f"{name} %d, %a, %b{dot(part)};", WORDS, "u32", model, columns)


@pytest.mark.parametrize("cmp", COMPARISONS)
def test_scalar_comparisons(cmp: str) -> None:
    for left, right in itertools.product(("u32", "s32"), repeat=2):
        kinds = ("u32", left, right)
        name = f"vset.{left}.{right}.{cmp}"
        plain = scalar(COMPARISONS[cmp], kinds, ("", "h1", ""), False)
        check(f"{name} %d, %a, %b.h1;", WORDS, "u32", plain, FEW, thorough=False)
        check(f"{name}.add %d, %a, %b.h1, %c;", WORDS, "u32", then(plain, SECOND["add"], "u32"), FEW, thorough=False)
        into = scalar(COMPARISONS[cmp], kinds, ("", "h1", "b3"), False)
        check(f"{name} %d.b3, %a, %b.h1, %c;", WORDS, "u32", into, FEW, thorough=False)


SIGNS = [("", "", ""), ("-", "", ""), ("", "-", ""), ("-", "-", ""), ("", "", "-"), ("-", "-", "-")]


def multiplied(
    left: str, right: str, signs: tuple[str, str, str], sat: bool, shift: int, one: bool
) -> Callable[[int, int, int], int]:
    """The ISA's steps in as many bits as it takes: the product inverted and one added, or c inverted and one added."""
    na, nb, nc = signs
    negated = bool(na) != bool(nb)
    signed = "s32" in (left, right) or negated or bool(nc)

    def model(x: int, y: int, c: int) -> int:
        product = wrap(x, left) * wrap(y, right)
        low = int(one)
        if negated:
            product, low = ~product, 1
        elif nc:
            c, low = ~c & 0xFFFFFFFF, 1
        total = (product + wrap(c, "s32" if signed else "u32") + low) >> shift
        return clamp(total, 32, signed) if sat else total

    return model


@pytest.mark.parametrize(("left", "right"), list(itertools.product(("u32", "s32"), repeat=2)))
@pytest.mark.parametrize("signs", SIGNS)
def test_multiply_add(left: str, right: str, signs: tuple[str, str, str]) -> None:
    na, nb, nc = signs
    for sat, shift, one in itertools.product((False, True), (0, 7, 15), (False, True)):
        if not (one and (na != nb or nc)):
            name = (
                f"vmad.s32.{left}.{right}{'.po' if one else ''}{'.sat' if sat else ''}{f'.shr{shift}' if shift else ''}"
            )
            model = multiplied(left, right, signs, sat, shift, one)
            check(f"{name} %d, {na}%a, {nb}%b, {nc}%c;", WORDS, "u32", model, FEW, thorough=False)


def test_multiply_add_of_parts() -> None:
    def model(x: int, y: int, c: int) -> int:
        return -selected(x, "h1", "s32") * selected(y, "b2", "u32") + wrap(c, "s32")

    check("vmad.s32.s32.u32 %d, -%a.h1, %b.b2, %c;", WORDS, "u32", model)


def average(a: int, b: int) -> int:
    return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1


SIMD = {**OPERATIONS, "avrg": average}
LETTERS = {2: "h", 4: "b"}
CHOICES = {
    2: [("10", "32", "10"), ("13", "00", "1"), ("21", "30", "0")],
    4: [("3210", "7654", "3210"), ("7071", "2222", "310"), ("0123", "6543", "2")],
}
"""Digits of the first and second source's choice and of the mask."""

Results = Callable[[int, int], list[tuple[int, int]]]


def simd(
    operation: Callable[[int, int], int], count: int, left: str, right: str, choice: tuple[str, str, str]
) -> Results:
    """The results that count, with their places, lowest first."""
    letter = LETTERS[count]
    first, second, mask = choice

    def results(a: int, b: int) -> list[tuple[int, int]]:
        def pick(digits: str, i: int, kind: str) -> int:
            place = int(digits[::-1][i])
            return selected(b if place >= count else a, f"{letter}{place % count}", kind)

        return [(i, operation(pick(first, i, left), pick(second, i, right))) for i in range(count) if str(i) in mask]

    return results


def merging(results: Results, count: int, sat: str = "") -> Callable[[int, int, int], int]:
    """c with the results in their places, saturated to the type named."""

    def model(a: int, b: int, c: int) -> int:
        for place, t in results(a, b):
            c = merged(clamp(t, 32 // count, sat == "s32") if sat else t, f"{LETTERS[count]}{place}", c)
        return c

    return model


def summing(results: Results) -> Callable[[int, int, int], int]:
    return lambda a, b, c: c + sum(t for _, t in results(a, b))


@pytest.mark.parametrize("count", (2, 4))
@pytest.mark.parametrize("opcode", SIMD)
def test_simd(opcode: str, count: int) -> None:
    letter = LETTERS[count]
    for i, (target, left, right) in enumerate(KINDS):
        choice = CHOICES[count][i % 3]
        first, second, mask = choice
        results = simd(SIMD[opcode], count, left, right, choice)
        name = f"v{opcode}{count}.{target}.{left}.{right}"
        spelt = f"%d.{letter}{mask}, %a.{letter}{first}, %b.{letter}{second}, %c;" if i % 3 else "%d, %a, %b, %c;"
        check(f"{name} {spelt}", WORDS, "u32", merging(results, count), FEW, thorough=False)
        check(f"{name}.sat {spelt}", WORDS, "u32", merging(results, count, target), FEW, thorough=False)
        check(f"{name}.add {spelt}", WORDS, "u32", summing(results), FEW, thorough=False)


@pytest.mark.parametrize("count", (2, 4))
@pytest.mark.parametrize("cmp", COMPARISONS)
def test_simd_comparisons(cmp: str, count: int) -> None:
    for left, right in itertools.product(("u32", "s32"), repeat=2):
        results = simd(COMPARISONS[cmp], count, left, right, CHOICES[count][0])
        name = f"vset{count}.{left}.{right}.{cmp}"
        check(f"{name} %d, %a, %b, %c;", WORDS, "u32", merging(results, count), FEW, thorough=False)
        check(f"{name}.add %d, %a, %b, %c;", WORDS, "u32", summing(results), FEW, thorough=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vadd.u32.u32.u32 %d, %a.b4, %a", "'.b4' is no part of a word"),
        ("vadd.u32.u32.u32 %d, %a.h10, %a", "'.h10' is no part of an operand of vadd"),
        ("vadd.u32.u32.u32 %d.h1, %a, %a", "vadd has 3 operands, expected 4"),
        ("vadd.u32.u32.u32 %d, %a, %a, %a", "vadd has 4 operands, expected 3"),
        ("vadd.u32.u32.u32.add %d.h1, %a, %a, %a", "a second operation excludes a merge"),
        ("vshl.u32.u32.u32 %d, %a, %a", "vshl has none of .clamp, .wrap"),
        ("vmad.u32.u32.u32.po %d, -%a, %a, %a", ".po excludes a negated product and a negated c"),
        ("vmad.u32.u32.u32 %d, -%a, %a, -%a", "vmad negates the product or c, not both"),
        ("vmad.u32.u32.u32 %d, %a, %a, %a.h0", "c of vmad is a word"),
        ("vadd2.u32.u32.u32 %d, %a.h40, %a, %a", "'.h40' is no choice of vadd2"),
        ("vadd4.u32.u32.u32 %d.b01, %a, %a, %a", "'.b01' is no mask of vadd4"),
        ("vadd2.u32.u32.u32.sat.add %d, %a, %a, %a", ".sat excludes .add"),
        ("add.u32 %d, %a.h0, %a", "an operand of add is no value"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("b32", np.zeros(32, np.uint32))}, {"d": "b32"})
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"


def test_only_registers_are_negated() -> None:
    with pytest.raises(PTXError) as caught:
        execute("vmad.s32.s32.s32 %d, -here, 1, 2;", {}, {"d": "b32"}, ".shared .b32 here;")
    assert "only a register can be negated" in str(caught.value)


def test_parts_are_of_registers_that_are_declared() -> None:
    with pytest.raises(PTXError) as caught:
        execute("vadd.s32.s32.s32 %d, %nobody.h0, 1;", {}, {"d": "b32"})
    assert "'%nobody.h0' is not declared" in str(caught.value)
