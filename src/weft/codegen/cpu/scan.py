"""Scans inside a register loop.

The registers along the axis are visited in the order of the axis, from its end in reverse. The lanes of each hold
elements in a row: they are scanned first, in as many steps as the axis has bits in lanes. Then the total of all registers
before is combined with each lane. So the results are there register by register, and what loads, computes and stores them
is in the same loop.

    a b c d     ->  a  ab  c  cd     ->  a  ab  abc  abcd     ->  T.a  T.ab  T.abc  T.abcd       with T, the total before
                    a step for each bit of the lanes              the total after: T.abcd

How elements are grouped depends on the layout alone: results are the same in every run. Tensors combined together take
the same steps. There is no identity element: the first register along the axis is not combined with a total.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from weft.codegen.cpu.buffers import STACK_REGISTERS
from weft.codegen.cpu.loops import axis_bits, bits_below
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.regions import evaluate
from weft.codegen.llvm.types import I1, shuffle
from weft.ir import tile
from weft.ir.types import layout_of
from weft.layout import LinearLayout

LONG_ROW: Final = 2 * STACK_REGISTERS
"""The registers between neighbours along the axis from which on a scan goes by rows."""


def goes_by_rows(layout: LinearLayout, axis: int) -> bool:
    """Whether scans along the axis visit the registers beside each other before the next along the axis."""
    beside = 1 << bits_below(layout, axis).bit_count()
    return beside >= LONG_ROW and not axis_bits(layout, "lane", axis)


class Scan:
    """One scan being carried out by a register loop: `start`, then `step` for each register, those along the axis in order.

    The total so far is one register for each tensor; ``by_rows`` it is a buffer, with a total for each place beside the axis.
    """

    def __init__(self, registers: Registers, op: tile.ScanOp, *, by_rows: bool):
        self.op = op
        self._registers = registers
        self._reverse = op.reverse is not None
        layout, axis = layout_of(op.sources[0]), op.axis.value.data
        self._lanes = layout.in_size("lane")
        self._bits = axis_bits(layout, "lane", axis)
        self._types = [
            ir.VectorType(element_of_value(source).register_type(None), self._lanes) for source in op.sources
        ]
        beside = bits_below(layout, axis)
        columns = [column if beside >> bit & 1 else 0 for bit, column in enumerate(layout.columns("register"))]
        places = layout.with_columns({"register": tuple(columns)})
        self._buffers = [registers.pool.allocate(element_of_value(s), places) for s in op.sources if by_rows]
        self._slots: list[ir.Value] = []
        self._total: list[ir.Value] | None = None
        self._last_copy = 0

    def start(self, copies: int, *, looped: bool) -> None:
        """Begins a row along the axis, or all of them ``by_rows``. Totals are kept across a loop if ``looped``."""
        self._total, self._slots, self._last_copy = None, [], copies - 1
        if looped and not self._buffers:
            for type_ in self._types:
                slot = self._registers.entry.alloca(type_)
                # The first iteration combines this before it discards the result; undefined bits could divide by zero.
                self._registers.builder.store(ir.Constant(type_, None), slot)
                self._slots.append(slot)

    def step(
        self, elements: Sequence[ir.Value], index: RegisterIndex, copy: int, first: ir.Value | None
    ) -> list[ir.Value]:
        """The prefixes of one register; ``first`` is whether this is the loop's first iteration, ``copy`` the number of the
        register along the axis in an iteration."""
        builder = self._registers.builder
        own = self._within(list(elements))
        if self._buffers:
            copy = 0
            self._total = [buffer.load(builder, index) for buffer in self._buffers]
        elif self._slots and copy == 0:
            self._total = [builder.load(slot, typ=t) for slot, t in zip(self._slots, self._types, strict=True)]
        begins = first if copy == 0 else None
        results = self._after_total(own, begins)
        if not self._bits:
            self._total = results
        elif self.op.single_op is not None:
            # The next register waits for one operation, not for this register's results and their shuffle.
            self._total = self._after_total(self._of_last_lane(own), begins)
        else:
            self._total = self._of_last_lane(results)
        for buffer, total in zip(self._buffers, self._total, strict=False):
            buffer.store(builder, index, total)
        if copy == self._last_copy:
            for slot, total in zip(self._slots, self._total, strict=False):
                builder.store(total, slot)
        return results

    def finish(self, index: RegisterIndex) -> None:
        """Nothing: the results have been given."""

    def _combined(self, first: Sequence[ir.Value], second: Sequence[ir.Value]) -> list[ir.Value]:
        return evaluate(self._registers, self.op.combine.block, [*first, *second])

    def _after_total(self, values: list[ir.Value], begins: ir.Value | None) -> list[ir.Value]:
        """The total so far combined with the values; where the row begins, these alone."""
        if self._total is None:
            return values
        combined = self._combined(self._total, values)
        if begins is None:
            return combined
        builder = self._registers.builder
        return [builder.select(begins, value, new) for value, new in zip(values, combined, strict=True)]

    def _within(self, values: list[ir.Value]) -> list[ir.Value]:
        """The prefixes of the lanes of one register: at each bit, the lanes behind it combine the last prefix before it."""
        builder = self._registers.builder
        below = 0
        for bit in self._bits:
            behind = [bool(lane & bit) != self._reverse for lane in range(self._lanes)]
            last = [(lane | bit) & ~below if self._reverse else lane & ~bit | below for lane in range(self._lanes)]
            source = [at if takes else lane for lane, (at, takes) in enumerate(zip(last, behind, strict=True))]
            others = [shuffle(builder, value, source) for value in values]
            takes = ir.Constant(ir.VectorType(I1, self._lanes), [ir.Constant(I1, int(b)) for b in behind])
            combined = self._combined(others, values)
            values = [builder.select(takes, new, old) for new, old in zip(combined, values, strict=True)]
            below |= bit
        return values

    def _of_last_lane(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """What the last lane along the axis has, in all its lanes."""
        along = sum(self._bits)
        lanes = [lane & ~along if self._reverse else lane | along for lane in range(self._lanes)]
        return [shuffle(self._registers.builder, value, lanes) for value in values]
