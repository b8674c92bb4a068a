"""Counting and finding bits, bit fields and masks (PTX ISA: popc, clz, bfind, fns, brev, bfe, bfi, bmsk, szext)."""

from __future__ import annotations

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
    machine, site, d = b.machine, b.site, b.write(0, TYPES["b32"])
    zeros = np.zeros(machine.threads, np.uint32)
    operands = b.read(1, TYPES["b32"]), b.read(2, TYPES["u32"]), b.read(3, TYPES["u32"])

    def step(active: Active) -> None:
        mask, base, offset = (x | zeros for x in operands)
        if (wrong := active.mask & (base > 31)).any():
            thread = int(wrong.nonzero()[0][0])
            raise machine.fault(Undefined, f"fns looks from bit {base[thread]}, expected at most 31", site, thread)
        masked(d, arith.nth_set(mask, base, offset.view(np.int32)), active)

    return step


def _byte(x: Array) -> Array:
    """Positions and lengths of bit fields count modulo 256."""
    return x & np.uint32(0xFF)


@instruction("bfe")
def bfe(b: Binding) -> Step:
    kind = TYPES[form(b, type="u32 u64 s32 s64")["type"]]
    x, start, size = b.read(1, kind), b.read(2, TYPES["u32"]), b.read(3, TYPES["u32"])
    d = b.write(0, kind)
    return assign(d, lambda: arith.field(x, _byte(start), _byte(size)))


@instruction("bfi")
def bfi(b: Binding) -> Step:
    kind = TYPES[form(b, type="b32 b64")["type"]]
    part, into, start, size = b.read(1, kind), b.read(2, kind), b.read(3, TYPES["u32"]), b.read(4, TYPES["u32"])
    d = b.write(0, kind)
    return assign(d, lambda: arith.insert(part, into, _byte(start), _byte(size)))


def _amount(b: Binding, operand: int, mode: str) -> tuple[Array, np.uint32]:
    """A position or size and what to mask it with: 5 bits for ``.wrap``, all for ``.clamp``."""
    return b.read(operand, TYPES["u32"]), np.uint32(31 if mode == "wrap" else 0xFFFFFFFF)


@instruction("bmsk")
def bmsk(b: Binding) -> Step:
    """Ones from bit a on, b of them."""
    f = form(b, mode="clamp wrap", type="b32")
    d = b.write(0, TYPES["b32"])
    (start, some), (size, _) = _amount(b, 1, f["mode"]), _amount(b, 2, f["mode"])
    return assign(d, lambda: arith.ones(size & some, d.dtype) << arith.clamp(start & some, 32, d.dtype))


@instruction("szext")
def szext(b: Binding) -> Step:
    """The lowest b bits of a, extended."""
    f = form(b, mode="clamp wrap", type="u32 s32")
    kind = TYPES[f["type"]]
    x, d, (size, some) = b.read(1, kind), b.write(0, kind), _amount(b, 2, f["mode"])
    bottom = np.zeros((), np.uint32)
    return assign(d, lambda: arith.field(x, bottom, size & some))
