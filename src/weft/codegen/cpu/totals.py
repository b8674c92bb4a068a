"""Registers that a loop adds to. They are stack slots, which LLVM turns into registers of the machine.

A loop that loads vectors by halves (`weft.codegen.cpu.halved_loads`) adds them by halves, too: put together only to be added,
they would take a shuffle each. LLVM splits what is computed from both halves.

Where two branches add whole registers, LLVM makes one addition of both, behind the branches, and all loads stand before the first
addition. Where additions load an operand they shall do so one after the other, in the order of memory: sums of a row of 2^23
float32 took 0.85 of the time, on Zen 4 in C with all else alike. So `keep_apart` hides what one branch has added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from llvmlite import ir

from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import F32, F64, shuffle, unknown

_BITS: Final[Mapping[ir.Type, int]] = {F32: 32, F64: 64}


def keep_apart(registers: Registers, slots: Iterable[tuple[ir.Value, ir.VectorType]]) -> None:
    """At the end of a branch that adds to stack slots of these types: hides the sums from LLVM, if additions load."""
    if "loading-additions" not in registers.target.enabled:
        return
    builder, kind = registers.builder, "v" if "avx512f" in registers.target.enabled else "x"
    for slot, type_ in slots:
        if 128 <= type_.count * _BITS.get(type_.element, 0) <= registers.target.vector_bits:
            builder.store(unknown(builder, builder.load(slot, typ=type_), kind), slot)


@dataclass
class Total:
    """One such register of a type. ``sum_of`` adds two vectors, of its length or of half of it if ``halved``."""

    registers: Registers
    type: ir.VectorType
    sum_of: Callable[[ir.Value, ir.Value], ir.Value]
    halved: bool = False
    slots: list[tuple[ir.Value, ir.VectorType]] = field(init=False)
    """Where it is, by type: two, if it is halved."""
    _part: ir.VectorType = field(init=False)

    def __post_init__(self) -> None:
        self._part = ir.VectorType(self.type.element, self.type.count // (1 + self.halved))
        self.slots = [(self.registers.entry.alloca(self._part), self._part) for _ in range(1 + self.halved)]

    def put(self, value: ir.Value) -> None:
        """Begins with a vector."""
        for (slot, _), part in zip(self.slots, self._parts(value), strict=True):
            self.registers.builder.store(part, slot)

    def add(self, value: ir.Value) -> None:
        """Adds a vector."""
        builder = self.registers.builder
        for (slot, _), part in zip(self.slots, self._parts(value), strict=True):
            builder.store(self.sum_of(builder.load(slot, typ=self._part), part), slot)

    def get(self) -> ir.Value:
        """The sum so far."""
        builder = self.registers.builder
        parts = [builder.load(slot, typ=type_) for slot, type_ in self.slots]
        return shuffle(builder, parts[0], range(self.type.count), parts[1]) if self.halved else parts[0]

    def _parts(self, value: ir.Value) -> list[ir.Value]:
        count = self._part.count
        starts = range(0, self.type.count, count)
        return [shuffle(self.registers.builder, value, range(start, start + count)) for start in starts]
