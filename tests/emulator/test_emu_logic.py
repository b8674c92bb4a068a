"""Logic and shifts against Python's integers; lop3 with all its tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from emulator_harness import execute
from emulator_integers import array, bits_of, check, samples, wrap
from weft.emulator import PTXError
from weft.emulator.arith.lop3 import expression

BITWISE: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("kind", ("b16", "b32", "b64"))
def test_words(kind: str) -> None:
    for opcode, model in BITWISE.items():
        check(f"{opcode}.{kind} %d, %a, %b;", (kind, kind), kind, model)
    check(f"not.{kind} %d, %a;", (kind,), kind, lambda a: ~a)
    check(f"cnot.{kind} %d, %a;", (kind,), kind, lambda a: int(a == 0))


@pytest.mark.parametrize("opcode", BITWISE)
def test_predicates(opcode: str) -> None:
    a, b = np.arange(32) % 2, np.arange(32) // 2 % 2
    some = np.arange(32) % 5 != 0
    inputs = {"a": ("pred", a.astype(np.uint8)), "b": ("pred", b.astype(np.uint8))}
    text = f"{opcode}.pred %d, %a, %b; not.pred %e, %a;"
    got = execute(text, inputs, {"d": "pred", "e": "pred"}, active=some)
    assert got["d"].tolist() == [
        bool(BITWISE[opcode](int(x), int(y))) and bool(on) for x, y, on in zip(a, b, some, strict=True)
    ]
    assert got["e"].tolist() == [not x and bool(on) for x, on in zip(a, some, strict=True)]


def table_value(table: int, a: int, b: int, c: int) -> int:
    """Bit by bit: bit 4a + 2b + c of the table."""
    return sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


def test_lop3_with_every_table() -> None:
    """The words hold all eight combinations of bits, so one word would do; three random ones are tried."""
    a, b, c = (np.array(w, np.uint32) for w in ([0xF0F01234] * 32, [0xCCCC5678] * 32, [0xAAAA9ABC] * 32))
    a[1:4], b[1:4], c[1:4] = (0, 0xFFFFFFFF, 0x12345678), (0xFFFFFFFF, 0, 0x9ABCDEF0), (0, 0, 0xFFFFFFFF)
    inputs = {name: ("b32", x) for name, x in zip("abc", (a, b, c), strict=True)}
    for first in range(0, 256, 32):
        tables = range(first, first + 32)
        text = "".join(f"lop3.b32 %d{t}, %a, %b, %c, {t};" for t in tables)
        got = execute(text, dict(inputs), {f"d{t}": "b32" for t in tables})
        for t in tables:
            want = [table_value(t, int(x), int(y), int(z)) for x, y, z in zip(a[:4], b[:4], c[:4], strict=True)]
            assert got[f"d{t}"][:4].tolist() == want


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (0x80, "(a & (b & c))"),
        (0xEA, "(c | (a & b))"),
        (0x96, "(a ^ (b ^ c))"),
        (0xFF, "1"),
        (0x00, "0"),
        (0xCC, "b"),
        (0x0F, "~a"),
    ],
)
def test_lop3_tables_become_short_expressions(table: int, text: str) -> None:
    assert str(expression(table)) == text


def test_lop3_expressions_are_never_long() -> None:
    assert max(sum(str(expression(t)).count(op) for op in "&|^~") for t in range(256)) == 5


@pytest.mark.parametrize("combine", ("and", "or"))
def test_lop3_and_its_predicate(combine: str) -> None:
    a = np.where(np.arange(64) % 3 == 0, 0, np.arange(64)).astype(np.uint32)
    q = (np.arange(64) % 2).astype(np.uint8)
    some = np.arange(64) % 7 != 0
    text = f"lop3.{combine}.b32 %d|%p, %a, %a, %b, 0xC0, %q; lop3.{combine}.b32 _|%r, %a, %a, %b, 0xC0, !%q;"
    inputs = {"a": ("b32", a), "b": ("b32", a), "q": ("pred", q)}
    got = execute(text, inputs, {"d": "b32", "p": "pred", "r": "pred"}, active=some)
    op = BITWISE[combine]
    assert np.array_equal(got["d"], np.where(some, a, 0))
    assert got["p"].tolist() == [bool(on and op(int(x != 0), int(y))) for x, y, on in zip(a, q, some, strict=True)]
    assert got["r"].tolist() == [bool(on and op(int(x != 0), 1 - int(y))) for x, y, on in zip(a, q, some, strict=True)]


AMOUNTS = (
    0,
    1,
    2,
    7,
    8,
    15,
    16,
    17,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    65535,
    65536,
    65537,
    1 << 31,
    0xFFFFFFFF,
)


def amounts(kind: str) -> list[np.ndarray]:
    words = samples(kind)[0]
    return [words, array([AMOUNTS[i * 7 % len(AMOUNTS)] for i in range(words.size)], "u32")]


@pytest.mark.parametrize("kind", ("b16", "b32", "b64"))
def test_shift_left(kind: str) -> None:
    check(f"shl.{kind} %d, %a, %b;", (kind, "u32"), kind, lambda a, b: a << min(b, 64), amounts(kind))


@pytest.mark.parametrize("kind", ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"))
def test_shift_right(kind: str) -> None:
    check(f"shr.{kind} %d, %a, %b;", (kind, "u32"), kind, lambda a, b: a >> min(b, 64), amounts(kind))


@pytest.mark.parametrize("kind", ("b16", "s16", "u32", "s32", "b64", "s64"))
@pytest.mark.parametrize("amount", (0, 1, 16, 31, 32, 64, 70000, 0xFFFFFFFF))
def test_shift_by_a_constant(kind: str, amount: int) -> None:
    word = samples(kind)[0]
    got = execute(f"shr.{kind} %d, %a, {amount};", {"a": (kind, word)}, {"d": kind})["d"]
    assert got.tolist() == [wrap(v >> min(amount, 64), kind) for v in word.tolist()]


@pytest.mark.parametrize("side", ("l", "r"))
@pytest.mark.parametrize("mode", ("clamp", "wrap"))
def test_funnel_shift(side: str, mode: str) -> None:
    def model(a: int, b: int, c: int) -> int:
        n = min(c, 32) if mode == "clamp" else c & 31
        whole = b << 32 | a
        return (whole << n) >> 32 if side == "l" else whole >> n

    a, b, _ = samples("u32", "u32", "u32")
    c = array([AMOUNTS[i * 5 % len(AMOUNTS)] if i % 2 else i % 40 for i in range(a.size)], "u32")
    check(f"shf.{side}.{mode}.b32 %d, %a, %b, %c;", ("u32",) * 3, "u32", model, [a, b, c])


@pytest.mark.parametrize("mode", ("clamp", "wrap"))
def test_funnel_shift_by_each_constant(mode: str) -> None:
    a = np.array([0x89ABCDEF] * 32, np.uint32)
    for n in (*range(33), 45, 64, 255):
        by = min(n, 32) if mode == "clamp" else n & 31
        text = f"shf.l.{mode}.b32 %d, %a, 0x01234567, {n}; shf.r.{mode}.b32 %e, %a, 0x01234567, {n};"
        got = execute(text, {"a": ("b32", a)}, {"d": "b32", "e": "b32"})
        whole = 0x0123456789ABCDEF
        assert (int(got["d"][5]), int(got["e"][5])) == (whole << by >> 32 & 0xFFFFFFFF, whole >> by & 0xFFFFFFFF)


def test_widths() -> None:
    assert [bits_of(kind) for kind in ("b16", "s32", "u64")] == [16, 32, 64]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("and.u32 %d, %a, %a", "the emulator does not know '.u32' of and"),
        ("lop3.b32 %d, %a, %a, %a, 256", "lop3's table is 256, expected 0 to 255"),
        ("lop3.b32 %d, %a, %a, %a, %a", "an operand of lop3 must be an integer constant"),
        ("lop3.xor.b32 %d, %a, %a, %a, 1", "the emulator does not know '.xor' of lop3"),
        ("lop3.and.b32 %d, %a, %a, %a, 1, %p", "lop3.and has two results, d|p"),
        ("lop3.b32 %d, %a, %a, %a", "lop3 has 4 operands, expected more"),
        ("shl.s32 %d, %a, %a", "the emulator does not know '.s32' of shl"),
        ("shf.l.b32 %d, %a, %a, %a", "shf has none of .clamp, .wrap"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("b32", np.zeros(32, np.uint32))}, {"d": "b32"}, ".reg .pred %p;")
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"
