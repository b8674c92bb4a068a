"""Additions with carry: numbers of several words against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import execute
from emulator_integers import bits_of, samples
from weft.emulator import PTXError

KINDS = ("u32", "s32", "u64", "s64")


def words(kind: str, seed: int) -> tuple[list[int], np.ndarray]:
    """Words of a type, many of them all ones or zero so that carries run on; as Python ints without sign and as an array."""
    column = samples(kind, seed=seed)[0]
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 4, column.size)
    ends = np.where(
        chosen == 0, np.zeros_like(column), np.full_like(column, -1 if kind[0] == "s" else np.iinfo(column.dtype).max)
    )
    column = np.where(chosen < 2, ends, column)
    return [int(v) & ((1 << bits_of(kind)) - 1) for v in column], column


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opcode", ("add", "sub"))
def test_three_words(opcode: str, kind: str) -> None:
    """{a2, a1, a0} +- {b2, b1, b0}, and the carry out of it."""
    n = bits_of(kind)
    columns = {f"{name}{i}": words(kind, 10 * ord(name) + i) for name in "ab" for i in range(3)}
    text = (
        f"{opcode}.cc.{kind} %d0, %a0, %b0; {opcode}c.cc.{kind} %d1, %a1, %b1; {opcode}c.cc.{kind} %d2, %a2, %b2;"
        f"{opcode}c.{kind} %d3, 0, 0;"
    )
    inputs = {name: (kind, array) for name, (_, array) in columns.items()}
    got = execute(text, inputs, {f"d{i}": kind for i in range(4)})
    for t in range(len(columns["a0"][0])):
        a, b = (sum(columns[f"{name}{i}"][0][t] << (n * i) for i in range(3)) for name in "ab")
        want = (a + b if opcode == "add" else a - b) & ((1 << 4 * n) - 1)
        assert sum((int(got[f"d{i}"][t]) & ((1 << n) - 1)) << (n * i) for i in range(4)) == want


@pytest.mark.parametrize("kind", ("u32", "u64"))
def test_product_of_two_words_each(kind: str) -> None:
    """[r3, r2, r1, r0] = [a1, a0] * [b1, b0] by the sequence the ISA gives for madc."""
    n = bits_of(kind)
    columns = {name: words(kind, i) for i, name in enumerate(("a0", "a1", "b0", "b1"))}
    text = f"""
        mul.lo.{kind} %r0, %a0, %b0;
        mul.hi.{kind} %r1, %a0, %b0;
        mad.lo.cc.{kind} %r1, %a1, %b0, %r1;
        madc.hi.{kind} %r2, %a1, %b0, 0;
        mad.lo.cc.{kind} %r1, %a0, %b1, %r1;
        madc.hi.cc.{kind} %r2, %a0, %b1, %r2;
        addc.{kind} %r3, 0, 0;
        mad.lo.cc.{kind} %r2, %a1, %b1, %r2;
        madc.hi.{kind} %r3, %a1, %b1, %r3;
    """
    got = execute(
        text, {name: (kind, array) for name, (_, array) in columns.items()}, {f"r{i}": kind for i in range(4)}
    )
    for t in range(len(columns["a0"][0])):
        a, b = (columns[f"{name}0"][0][t] | columns[f"{name}1"][0][t] << n for name in "ab")
        assert sum(int(got[f"r{i}"][t]) << (n * i) for i in range(4)) == a * b


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ("lo", "hi"))
def test_multiply_add_leaves_and_takes_the_carry(mode: str, kind: str) -> None:
    """Half of the product, of the type's sign, plus c plus the carry before, modulo 2**n; what is beyond is the carry."""
    n = bits_of(kind)
    modulus = 1 << n
    a, b, c = samples(kind, kind, kind)
    carry = np.arange(a.size) % 2
    text = (
        f"add.cc.u32 %x, %f, 0xFFFFFFFF; madc.{mode}.cc.{kind} %d, %a, %b, %c; addc.{kind} %e, 0, 0;"
        f"mad.{mode}.cc.{kind} %g, %a, %b, %c; addc.{kind} %h, 0, 0; madc.{mode}.{kind} %i, %a, %b, %c;"
    )
    inputs = {"a": (kind, a), "b": (kind, b), "c": (kind, c), "f": ("u32", carry.astype(np.uint32))}
    got = execute(text, inputs, dict.fromkeys("degh", kind), f".reg .b32 %x; .reg .b{n} %i;")
    for t in range(a.size):
        product = int(a[t]) * int(b[t])
        half = (product >> n if mode == "hi" else product) % modulus
        with_carry, without = half + int(c[t]) % modulus + int(carry[t]), half + int(c[t]) % modulus
        assert int(got["d"][t]) % modulus == with_carry % modulus
        assert int(got["e"][t]) == with_carry // modulus
        assert int(got["g"][t]) % modulus == without % modulus
        assert int(got["h"][t]) == without // modulus


def test_threads_have_carries_of_their_own() -> None:
    """Threads that skip the addition keep their carry; an addition without .cc leaves it as it is."""
    a = np.full(64, 0xFFFFFFFF, np.uint32)
    some = np.arange(64) % 3 == 0
    text = "add.cc.u32 %x, %a, 0; @%p add.cc.u32 %x, %a, 1; addc.u32 %x, %a, %a; addc.u32 %d, 0, 0;"
    got = execute(text, {"a": ("u32", a), "p": ("pred", some.astype(np.uint8))}, {"d": "u32"}, ".reg .b32 %x;")
    assert np.array_equal(got["d"], some.astype(np.uint32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add.cc.u16 %d, %a, %a", "the emulator does not know '.u16' of add"),
        ("mad.wide.cc.u32 %d, %a, %a, %a", "the emulator does not know '.cc' of mad"),
        ("addc.sat.s32 %d, %a, %a", "the emulator does not know '.sat' of addc"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("b32", np.zeros(32, np.uint32))}, {"d": "b32"})
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"
