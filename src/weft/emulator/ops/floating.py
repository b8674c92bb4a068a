"""Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.emulator.ops.registry import Binder

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding


def _later(b: Binding):
    return b.unknown("what to compute")


FLOAT_OPS: Final[dict[str, Binder]] = dict.fromkeys(
    ("add", "sub", "mul", "mad", "div", "min", "max", "abs", "neg"), _later
)
"""The float binders of the opcodes that integers have too, by opcode."""
