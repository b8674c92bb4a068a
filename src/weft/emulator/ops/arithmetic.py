"""Opcodes that exist for integers and for floats: the last modifier, the type, tells which.

The table of instructions is by opcode, and ``add.s32`` and ``add.rn.f32`` have one opcode between them but nothing else in
common. So the integer and the float families give their binders by opcode, and this module enters one binder per opcode
that hands over to the family the type belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.emulator.ops.floating import FLOAT_OPS
from weft.emulator.ops.integer import INTEGER_OPS
from weft.emulator.ops.registry import Binder, instruction

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

SHARED: Final = ("add", "sub", "mul", "mad", "div", "min", "max", "abs", "neg")
"""The opcodes both families have."""

INTEGERS: Final = frozenset({"u16x2", "s16x2"})
"""Packed types that are the integer family's (every type of kind "u", "s" or "b" is)."""


def _shared(opcode: str) -> Binder:
    integer, floating = INTEGER_OPS[opcode], FLOAT_OPS[opcode]

    def bind(b: Binding):
        kind = b.type()
        return (integer if kind.kind in "usb" or kind.name in INTEGERS else floating)(b)

    return bind


for _opcode in SHARED:
    instruction(_opcode)(_shared(_opcode))
