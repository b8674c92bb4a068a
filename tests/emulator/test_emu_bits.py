"""Bits counted, found, reversed and cut out, against loops over bits in Python as the ISA writes them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from emulator_harness import execute
from emulator_integers import array, bits_of, check, samples
from weft.emulator import PTXError, Undefined
from weft.emulator.arith import bits as arith


def unsigned(value: int, kind: str) -> int:
    return value & ((1 << bits_of(kind)) - 1)


def text_of(value: int, kind: str) -> str:
    """Its bits, highest first."""
    return f"{unsigned(value, kind):0{bits_of(kind)}b}"


@pytest.mark.parametrize("kind", ("b32", "b64"))
def test_counts_and_reversal(kind: str) -> None:
    n = bits_of(kind)
    check(f"popc.{kind} %d, %a;", (kind,), "u32", lambda a: text_of(a, kind).count("1"))
    check(f"clz.{kind} %d, %a;", (kind,), "u32", lambda a: (text_of(a, kind) + "1").index("1"))
    check(f"brev.{kind} %d, %a;", (kind,), kind, lambda a: int(text_of(a, kind)[::-1], 2))
    powers = array([1 << i for i in range(n)] + [(1 << n) - (1 << i) for i in range(n)], kind)
    check(f"clz.{kind} %d, %a;", (kind,), "u32", lambda a: n - a.bit_length(), [powers])


@pytest.mark.parametrize("kind", ("u32", "u64", "s32", "s64"))
@pytest.mark.parametrize("shift", (False, True))
def test_bfind(kind: str, shift: bool) -> None:
    top = bits_of(kind) - 1

    def model(a: int) -> int:
        a = ~a if kind[0] == "s" and a < 0 else a
        for i in range(top, -1, -1):
            if a >> i & 1:
                return top - i if shift else i
        return 0xFFFFFFFF

    check(f"bfind{'.shiftamt' if shift else ''}.{kind} %d, %a;", (kind,), "u32", model)


@pytest.mark.parametrize("kind", ("u64", "u32"))
def test_bit_length_next_to_every_power_of_two(kind: str) -> None:
    """2**k - 1 must not be rounded up to 2**k on the way."""
    n = bits_of(kind)
    numbers = sorted({max((1 << k) + d, 0) for k in range(n) for d in (-2, -1, 0, 1)} | {(1 << n) - 1})
    assert arith.length(array(numbers, kind)).tolist() == [v.bit_length() for v in numbers]


def nth_set(mask: int, base: int, offset: int) -> int:
    """The ISA's loop."""
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    position, count = base, abs(offset) - 1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += 1 if offset > 0 else -1
    return 0xFFFFFFFF


def test_fns() -> None:
    """Every base with offsets up to more than there are bits, on random masks; and the ISA's examples."""
    rng = np.random.default_rng(4)
    rows = [
        (int(rng.integers(1 << 32)) & int(rng.integers(1 << 32)), b, o)
        for b, o in itertools.product(range(32), range(-16, 16))
    ]
    rows += [(0xAAAAAAAA, 3, 1), (0xAAAAAAAA, 3, -1), (0xAAAAAAAA, 2, 1), (0xAAAAAAAA, 2, -1), (0xFFFFFFFF, 0, 32)]
    rows += [(0xFFFFFFFF, 31, -32), (0xFFFFFFFF, 31, -33), (0xFFFFFFFF, 0, 33), (0, 5, 1), (1, 0, -(1 << 31))]
    rows += [(0xFFFFFFFF, 0, 0)] * (-len(rows) % 256)
    columns = [array([row[i] for row in rows], kind) for i, kind in enumerate(("u32", "u32", "s32"))]
    inputs = {name: (kind, c) for name, kind, c in zip("abc", ("u32", "u32", "s32"), columns, strict=True)}
    got = execute("fns.b32 %d, %a, %b, %c;", dict(inputs), {"d": "b32"})["d"]
    assert got.tolist() == [nth_set(*row) for row in rows]
    assert got[1024:1028].tolist() == [3, 3, 3, 1]
    got = execute("fns.b32 %d, %a, 3, -2;", {"a": inputs["a"]}, {"d": "b32"})["d"]
    assert got.tolist() == [nth_set(row[0], 3, -2) for row in rows]


def test_fns_from_beyond_the_word_is_a_fault() -> None:
    with pytest.raises(Undefined) as caught:
        execute("fns.b32 %d, 1, %a, 0;", {"a": ("u32", np.arange(64, dtype=np.uint32) - np.uint32(20))}, {"d": "b32"})
    assert caught.value.message == "fns looks from bit 4294967276, expected at most 31"
    assert caught.value.where.thread == (0, 0, 0)


POSITIONS = (0, 1, 5, 15, 16, 30, 31, 32, 33, 40, 62, 63, 64, 65, 100, 254, 255, 256, 288, 0xFFFFFFFF)


def fields(kind: str, operands: int, count: int = 1024) -> list[np.ndarray]:
    """Words, then all pairs of positions and lengths."""
    pairs = list(itertools.product(POSITIONS, POSITIONS))
    pairs += [(int(v) % 70, int(v) // 70 % 70) for v in np.random.default_rng(2).integers(0, 4900, count - len(pairs))]
    words = samples(*[kind] * operands, count=count)
    return [*(w[-count:] for w in words), array([p[0] for p in pairs], "u32"), array([p[1] for p in pairs], "u32")]


@pytest.mark.parametrize("kind", ("u32", "u64", "s32", "s64"))
def test_bit_field_extract(kind: str) -> None:
    top = bits_of(kind) - 1

    def model(a: int, b: int, c: int) -> int:
        start, size = b & 0xFF, c & 0xFF
        sign = 0 if kind[0] == "u" or size == 0 else a >> min(start + size - 1, top) & 1
        return sum((a >> (start + i) & 1 if i < size and start + i <= top else sign) << i for i in range(top + 1))

    check(f"bfe.{kind} %d, %a, %b, %c;", (kind, "u32", "u32"), kind, model, fields(kind, 1))


@pytest.mark.parametrize("kind", ("b32", "b64"))
def test_bit_field_insert(kind: str) -> None:
    top = bits_of(kind) - 1

    def model(a: int, b: int, c: int, d: int) -> int:
        start, size = c & 0xFF, d & 0xFF
        for i in range(size):
            if start + i <= top:
                b = b & ~(1 << (start + i)) | (a >> i & 1) << (start + i)
        return b

    check(f"bfi.{kind} %d, %a, %b, %c, %e;", (kind, kind, "u32", "u32"), kind, model, fields(kind, 2))


@pytest.mark.parametrize("mode", ("clamp", "wrap"))
def test_bit_masks(mode: str) -> None:
    def model(a: int, b: int) -> int:
        """The ISA's steps."""
        ones = 0xFFFFFFFF
        a1, b1 = a & 31, b & 31
        mask0 = ones << a1 & ones
        total = a1 + b1
        mask1 = ones << total & ones
        overflow = total >= 32
        if mode == "clamp":
            if a >= 32:
                overflow, mask0 = True, 0
            overflow |= b >= 32
        mask1 = 0 if overflow else ones if b1 == 0 else mask1
        return mask0 & ~mask1

    pairs = list(itertools.product([*range(34), 63, 64, 100, 1 << 31, 0xFFFFFFFF, 0x100], repeat=2))
    pairs += [(0, 0)] * (-len(pairs) % 256)
    columns = [array([p[i] for p in pairs], "u32") for i in range(2)]
    check(f"bmsk.{mode}.b32 %d, %a, %b;", ("u32", "u32"), "b32", model, columns)


@pytest.mark.parametrize("kind", ("u32", "s32"))
@pytest.mark.parametrize("mode", ("clamp", "wrap"))
def test_extension_of_any_width(mode: str, kind: str) -> None:
    def model(a: int, b: int) -> int:
        """The ISA's steps."""
        ones = 0xFFFFFFFF
        a &= ones
        b1 = b & 31
        too_large = b >= 32 and mode == "clamp"
        mask = 0 if too_large else ones << b1 & ones
        sign = 0 if b1 == 0 or too_large or kind != "s32" else a >> ((b1 - 1) & 31) & 1
        return a & ~mask | (mask if sign else 0)

    words = samples(kind)[0]
    sizes = array([(i * 7) % 40 if i % 5 else (1 << 31) + i for i in range(words.size)], "u32")
    check(f"szext.{mode}.{kind} %d, %a, %b;", (kind, "u32"), kind, model, [words, sizes])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("popc.u32 %d, %a", "the emulator does not know '.u32' of popc"),
        ("bfe.b32 %d, %a, %a, %a", "the emulator does not know '.b32' of bfe"),
        ("bmsk.b32 %d, %a, %a", "bmsk has none of .clamp, .wrap"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("b32", np.zeros(32, np.uint32))}, {"d": "b32"})
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"
