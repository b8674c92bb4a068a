"""Histograms inside a register loop: each element adds one to a count in local memory.

A value outside the bins counts in one more bin, that no result has, so that there is no branch. Neighbouring lanes count
in arrays of their own, as long as these are small: an addition to the count that the one before has just stored would
wait for it.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.views import slot_count
from weft.codegen.llvm.types import I1, I8, I32, I64, POINTER, intrinsic, shuffle, splat
from weft.ir import tile
from weft.ir.types import layout_of, shape_of
from weft.layout.algebra import f2

ARRAYS: Final = 4
MOST_BINS: Final = 1024
"""Up to so many bins `ARRAYS` arrays are counted in: 16 KiB, half of a first cache."""
_COUNT_BYTES: Final = 4


class Histogram:
    """One histogram being made by a register loop: `start`, then `step` for each register, then `finish`."""

    def __init__(self, registers: Registers, op: tile.HistogramOp, target: Buffer):
        self.op = op
        self._registers = registers
        self._target = target
        (self._bins,) = shape_of(op.result)
        layout = layout_of(op.result)
        self._lanes = layout.in_size("lane")
        expected = tuple(1 << bit if 1 << bit < self._bins else 0 for bit in range(layout.in_bits("lane")))
        assert layout.columns("lane") == expected, f"tile.histogram: lanes of the result are {layout}"
        self._arrays = ARRAYS if self._bins <= MOST_BINS else 1
        # The last bin is for values outside; behind few bins lies what fills a register.
        self._stride = (max(self._bins, self._lanes) + 1) * _COUNT_BYTES
        self._counts = registers.pool.bytes(self._arrays * self._stride)

    def start(self, copies: int, *, looped: bool) -> None:
        """All counts are 0."""
        size = ir.Constant(I64, self._arrays * self._stride)
        operands = [self._counts, ir.Constant(I8, 0), size, ir.Constant(I1, 0)]
        intrinsic(self._registers.builder, "memset", operands, ir.VoidType(), [POINTER, I64])

    def step(self, values: ir.Value, mask: ir.Value | None) -> None:
        """Counts the elements of one register, duplicates once."""
        builder = self._registers.builder
        outside = splat(self._bins, values.type)
        inside = builder.icmp_unsigned("<", values, outside)
        if mask is not None:
            inside = builder.and_(inside, mask)
        bins = builder.select(inside, values, outside)
        duplicates = layout_of(self.op.source).duplicate_mask("lane")
        for lane in range(self._lanes):
            if lane & duplicates:
                continue
            number = builder.zext(builder.extract_element(bins, ir.Constant(I32, lane)), I64)
            array = self._behind(self._counts, lane % self._arrays * self._stride)
            place = builder.gep(array, [number], source_etype=I32)
            count = builder.add(builder.load(place, typ=I32, align=_COUNT_BYTES), ir.Constant(I32, 1))
            builder.store(count, place, align=_COUNT_BYTES)

    def finish(self, index: RegisterIndex) -> None:
        """Sums the arrays into the result's buffer."""
        emit, layout = self._registers, layout_of(self.op.result)
        columns = layout.columns("register")
        bits = slot_count(layout).bit_length() - 1
        used = tuple(1 << bit for bit, column in enumerate(columns) if column)
        with emit.loop(1 << bits) as position:
            at = RegisterIndex(0, ((Counter(position, bits), used),)) if bits else RegisterIndex()
            first = at.through(columns).value(emit.builder)
            total: ir.Value = splat(0, ir.VectorType(I32, self._lanes))
            for array in range(self._arrays):
                start = self._behind(self._counts, array * self._stride)
                place = emit.builder.gep(start, [first], source_etype=I32)
                total = emit.builder.add(total, emit.builder.load(place, typ=total.type, align=_COUNT_BYTES))
            lanes = [f2.apply(layout.columns("lane"), lane) for lane in range(self._lanes)]
            self._target.store(emit.builder, at, shuffle(emit.builder, total, lanes))

    def publish(self) -> None:
        """Makes the result available, once every version of the loop has been emitted."""
        self._registers.buffers[self.op.result] = self._target

    def _behind(self, pointer: ir.Value, distance: int) -> ir.Value:
        if not distance:
            return pointer
        return self._registers.builder.gep(pointer, [ir.Constant(I64, distance)], source_etype=I8)
