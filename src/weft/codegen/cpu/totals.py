"""Registers that a loop adds to. They are stack slots, which LLVM turns into registers of the machine.

A loop that loads vectors by halves (`weft.codegen.cpu.halved_loads`) adds them by halves, too: put together only to be added,
they would take a shuffle each. LLVM splits what is computed from both halves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from llvmlite import ir

from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import shuffle


@dataclass
class Total:
    """One such register of a type. ``sum_of`` adds two vectors, of its length or of half of it if ``halved``."""

    registers: Registers
    type: ir.VectorType
    sum_of: Callable[[ir.Value, ir.Value], ir.Value]
    halved: bool = False
    _slots: list[ir.Value] = field(init=False)
    _part: ir.VectorType = field(init=False)

    def __post_init__(self) -> None:
        self._part = ir.VectorType(self.type.element, self.type.count // (1 + self.halved))
        self._slots = [self.registers.entry.alloca(self._part) for _ in range(1 + self.halved)]

    def put(self, value: ir.Value) -> None:
        """Begins with a vector."""
        for slot, part in zip(self._slots, self._parts(value), strict=True):
            self.registers.builder.store(part, slot)

    def add(self, value: ir.Value) -> None:
        """Adds a vector."""
        builder = self.registers.builder
        for slot, part in zip(self._slots, self._parts(value), strict=True):
            builder.store(self.sum_of(builder.load(slot, typ=self._part), part), slot)

    def get(self) -> ir.Value:
        """The sum so far."""
        builder = self.registers.builder
        parts = [builder.load(slot, typ=self._part) for slot in self._slots]
        return shuffle(builder, parts[0], range(self.type.count), parts[1]) if self.halved else parts[0]

    def _parts(self, value: ir.Value) -> list[ir.Value]:
        count = self._part.count
        starts = range(0, self.type.count, count)
        return [shuffle(self.registers.builder, value, range(start, start + count)) for start in starts]
