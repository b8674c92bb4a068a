"""Arithmetic on numbers wider than a register: additions that take and leave a carry (PTX ISA, extended-precision arithmetic).

The condition code CC.CF is one bit per thread; it belongs to the function, since calls do not preserve it. It is the carry out of
an addition, and a subtraction is the addition of b's complement: CF is 1 where nothing is borrowed. The ISA says that sub.cc
writes "the borrow-out" and subc subtracts it, which says nothing of its sign where only subtractions follow; nvcc's division of
128-bit integers has an addc after a subc.cc, and is right only with the sign that adders have.

    add.cc   d = a + b            CF = carry        sub.cc   d = a - b             CF = no borrow
    addc     d = a + b + CF                         subc     d = a - b - (1 - CF)
    mad.lo.cc, mad.hi.cc, madc.lo, madc.hi          the product's half in a's place, c in b's
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from weft.emulator.arith.integer import high
from weft.emulator.machine.active import Active
from weft.emulator.ops.elementwise import Array
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction, masked
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

WIDE: Final = "u32 s32 u64 s64"


def _chain(
    b: Binding, subtract: bool, first: Callable[[], Array], second: Array, kind: str, into: bool, out: bool
) -> Step:
    """The step of ``first +- second``, with the carry ``into`` it and ``out`` of it; all arrays unsigned."""
    d = b.write(0, TYPES[kind])
    flag = b.execution.register(b.function.name, "CC.CF", "pred")

    def step(active: Active) -> None:
        x = first()
        if subtract:
            total = x - second
            carry = x >= second
            if into:
                borrow = ~flag
                carry = carry & (total >= borrow)
                total = total - borrow
        else:
            total = x + second
            carry = total < x
            if into:
                total = total + flag
                carry = carry | (total < flag)
        masked(d, total, active)
        if out:
            masked(flag, carry, active)

    return step


def _unsigned(kind: str) -> str:
    return "u" + kind[1:]


@instruction("add.cc", "addc", "sub.cc", "subc")
def add_with_carry(b: Binding) -> Step:
    f = form(b, cc="? cc", type=WIDE)
    kind = _unsigned(f["type"])
    x, y = b.read(1, TYPES[kind]), b.read(2, TYPES[kind])
    opcode = b.instruction.opcode
    return _chain(b, opcode.startswith("sub"), lambda: x, y, kind, into=opcode.endswith("c"), out=bool(f["cc"]))


@instruction("mad.lo.cc", "mad.hi.cc", "madc")
def multiply_add_with_carry(b: Binding) -> Step:
    """The half of the product is of the type's sign; adding c to it is the same for both signs."""
    f = form(b, mode="lo hi", cc="? cc", type=WIDE)
    factors, kind = TYPES[f["type"]], _unsigned(f["type"])
    x, y, c = b.read(1, factors), b.read(2, factors), b.read(3, TYPES[kind])
    wanted = TYPES[kind].numpy
    half = (lambda: high(x, y).view(wanted)) if f["mode"] == "hi" else (lambda: np.asarray(x * y).view(wanted))
    return _chain(b, False, half, c, kind, into=b.instruction.opcode == "madc", out=bool(f["cc"]))
