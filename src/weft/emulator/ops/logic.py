"""Bitwise logic and shifts (PTX ISA, logic and shift instructions)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.emulator.arith.bits import clamp
from weft.emulator.arith.lop3 import expression
from weft.emulator.machine.active import Active
from weft.emulator.ops.elementwise import Array, assign, elementwise
from weft.emulator.ops.forms import BITS, INTEGERS, form
from weft.emulator.ops.registry import Binder, Step, instruction, masked
from weft.emulator.ptx.syntax import Pair
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding


def _bitwise(opcode: str, ufunc: Any) -> None:
    def bind(b: Binding) -> Step:
        kind = TYPES[form(b, type=BITS + " pred")["type"]]
        return elementwise(b.write(0, kind), ufunc, b.read(1, kind), b.read(2, kind))

    binder: Binder = bind
    instruction(opcode)(binder)


_bitwise("and", np.bitwise_and)
_bitwise("or", np.bitwise_or)
_bitwise("xor", np.bitwise_xor)


@instruction("not")
def invert(b: Binding) -> Step:
    kind = TYPES[form(b, type=BITS + " pred")["type"]]
    return elementwise(b.write(0, kind), np.invert, b.read(1, kind))


@instruction("cnot")
def is_zero(b: Binding) -> Step:
    """1 for 0, else 0."""
    kind = TYPES[form(b, type=BITS)["type"]]
    x, d = b.read(1, kind), b.write(0, kind)
    return assign(d, lambda: np.equal(x, 0).astype(d.dtype))


@instruction("lop3")
def lop3(b: Binding) -> Step:
    """The function of three words that a table gives; with ``.and`` or ``.or`` also p = (d != 0) and/or q."""
    f = form(b, combine="? and or", type="b32")
    kind = TYPES["b32"]
    table = b.constant(4)
    b.require(0 <= table <= 255, f"lop3's table is {table}, expected 0 to 255")
    meaning = expression(table)
    constants = {"0": np.zeros((), kind.numpy), "1": np.full((), -1).astype(kind.numpy)}
    values: dict[str, Array] = {name: b.read(i + 1, kind) for i, name in enumerate("abc")} | constants
    if not f["combine"]:
        b.count(5)
        return assign(b.write(0, kind), lambda: meaning(values))
    b.count(6)
    results = b.operands[0]
    if not isinstance(results, Pair):
        b.wrong(f"lop3.{f['combine']} has two results, d|p")
    d, p, q = b.write(results.first, kind), b.write(results.second, TYPES["pred"]), b.predicate(5)
    combine = np.logical_and if f["combine"] == "and" else np.logical_or

    def step(active: Active) -> None:
        word = meaning(values)
        decided = combine(word != 0, q())
        masked(d, word, active)
        masked(p, decided, active)

    return step


def _shift(opcode: str, ufunc: Any, types: str) -> None:
    def bind(b: Binding) -> Step:
        """Amounts are unsigned 32-bit numbers; the width or more shifts everything out."""
        kind = TYPES[form(b, type=types)["type"]]
        x, amount, d = b.read(1, kind), b.read(2, TYPES["u32"]), b.write(0, kind)
        if amount.ndim == 0:
            return elementwise(d, ufunc, x, clamp(amount, kind.bits, kind.numpy))
        return assign(d, lambda: ufunc(x, clamp(amount, kind.bits, kind.numpy)))

    binder: Binder = bind
    instruction(opcode)(binder)


_shift("shl", np.left_shift, BITS)
_shift("shr", np.right_shift, BITS + " " + INTEGERS)


@instruction("shf")
def funnel(b: Binding) -> Step:
    """Shifts the 64 bits {b, a}, a the lower: the upper half of what is shifted left, the lower of what is shifted right."""
    f = form(b, side="l r", mode="clamp wrap", type="b32")
    kind = TYPES["u32"]
    low, upper, d, amount = b.read(1, kind), b.read(2, kind), b.write(0, kind), b.read(3, kind)
    width = np.uint32(32)
    limit = (lambda: np.minimum(amount, width)) if f["mode"] == "clamp" else (lambda: amount & np.uint32(31))
    fixed = limit() if amount.ndim == 0 else None

    def left() -> Array:
        n = limit() if fixed is None else fixed
        return (upper << n) | (low >> (width - n))

    def right() -> Array:
        n = limit() if fixed is None else fixed
        return (upper << (width - n)) | (low >> n)

    return assign(d, left if f["side"] == "l" else right)
