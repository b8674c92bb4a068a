"""Counting and finding bits, bit fields and masks (PTX ISA: popc, clz, bfind, fns, brev, bfe, bfi, bmsk, szext)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from weft.emulator.arith import bits as arith
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active
from weft.emulator.ops.elementwise import Array, assign, elementwise
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction, masked
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding


@instruction("popc")
def popc(b: Binding) -> Step:
    kind = TYPES[form(b, type="b32 b64")["type"]]
    return elementwise(b.write(0, TYPES["u32"]), np.bitwise_count, b.read(1, kind))


@instruction("clz")
def clz(b: Binding) -> Step:
    kind = TYPES[form(b, type="b32 b64")["type"]]
    x, d = b.read(1, kind), b.write(0, TYPES["u32"])
    return assign(d, lambda: arith.leading_zeros(x))


@instruction("bfind")
def bfind(b: Binding) -> Step:
    f = form(b, shift="? shiftamt", type="u32 u64 s32 s64")
    x, d, shift = b.read(1, TYPES[f["type"]]), b.write(0, TYPES["u32"]), bool(f["shift"])
    return assign(d, lambda: arith.find(x, shift))


@instruction("brev")
def brev(b: Binding) -> Step:
    kind = TYPES[form(b, type="b32 b64")["type"]]
    x, d = b.read(1, kind), b.write(0, kind)
    return assign(d, lambda: arith.reverse(x))


@instruction("fns")
def fns(b: Binding) -> Step:
    """Bit ``base`` above 31 is undefined, and a fault."""
    form(b, type="b32")
    execution, site, d = b.execution, b.site, b.write(0, TYPES["b32"])
    zeros = np.zeros(execution.threads, np.uint32)
    operands = b.read(1, TYPES["b32"]), b.read(2, TYPES["u32"]), b.read(3, TYPES["u32"])

    def step(active: Active) -> None:
        mask, base, offset = (x | zeros for x in operands)
        if (wrong := active.mask & (base > 31)).any():
            thread = int(wrong.nonzero()[0][0])
            raise execution.fault(Undefined, f"fns looks from bit {base[thread]}, expected at most 31", site, thread)
        masked(d, arith.nth_set(mask, base, offset.view(np.int32)), active)

    return step


def _prepared(prepare: Callable[[], tuple[Array, Array]], *operands: Array) -> Callable[[], tuple[Array, Array]]:
    """What is to be prepared of operands: once, if they are constants."""
    if any(operand.ndim for operand in operands):
        return prepare
    fixed = prepare()
    return lambda: fixed


def _position_and_size(b: Binding, first: int) -> tuple[Array, Array, Callable[[], tuple[Array, Array]]]:
    """Two operands that say where a field is; as they are, and when asked modulo 256."""
    start, size = b.read(first, TYPES["u32"]), b.read(first + 1, TYPES["u32"])
    byte = np.uint32(0xFF)
    return start, size, lambda: (start & byte, size & byte)


@instruction("bfe")
def bfe(b: Binding) -> Step:
    kind = TYPES[form(b, type="u32 u64 s32 s64")["type"]]
    x, d = b.read(1, kind), b.write(0, kind)
    start, size, place = _position_and_size(b, 2)
    shifts = _prepared(lambda: arith.field_shifts(*place(), kind.numpy), start, size)
    return assign(d, lambda: arith.field(x, *shifts()))


@instruction("bfi")
def bfi(b: Binding) -> Step:
    kind = TYPES[form(b, type="b32 b64")["type"]]
    part, into, d = b.read(1, kind), b.read(2, kind), b.write(0, kind)
    start, size, place = _position_and_size(b, 3)
    insertion = _prepared(lambda: arith.insertion(*place(), kind.numpy), start, size)
    return assign(d, lambda: arith.insert(part, into, *insertion()))


def _amount(b: Binding, operand: int, mode: str) -> Callable[[], Array]:
    """A position or size: of ``.wrap`` the lowest 5 bits."""
    some, amount = np.uint32(31 if mode == "wrap" else 0xFFFFFFFF), b.read(operand, TYPES["u32"])
    return lambda: amount & some


@instruction("bmsk")
def bmsk(b: Binding) -> Step:
    """Ones from bit a on, b of them."""
    f = form(b, mode="clamp wrap", type="b32")
    d = b.write(0, TYPES["b32"])
    start, size = _amount(b, 1, f["mode"]), _amount(b, 2, f["mode"])
    return assign(d, lambda: arith.insertion(start(), size(), d.dtype)[1])


@instruction("szext")
def szext(b: Binding) -> Step:
    """The lowest b bits of a, extended."""
    f = form(b, mode="clamp wrap", type="u32 s32")
    kind = TYPES[f["type"]]
    x, d, size = b.read(1, kind), b.write(0, kind), _amount(b, 2, f["mode"])
    bottom = np.zeros((), np.uint32)
    return assign(d, lambda: arith.field(x, *arith.field_shifts(bottom, size(), kind.numpy)))
