"""Histograms inside a register loop: each element adds one to a count in local memory.

A value outside the bins counts in one more bin, that no result has, so that there is no branch. Neighbouring lanes count
in arrays of their own, as long as these are small: an addition to the count that the one before has just stored would
wait for it.

Values that are loaded, and perhaps cast, are loaded one by one; others are taken out of vectors in pairs (`taken_out`). Taken out
one by one, they cost up to eight times as much on Zen 4, by where the code lies in memory (docs/benchmarks/indices.md). Reads of
counts ahead of earlier stores are the suspected cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from llvmlite import ir

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.views import slot_count
from weft.codegen.llvm.pieces import taken_out
from weft.codegen.llvm.types import I1, I8, I16, I32, I64, POINTER, intrinsic, like, shuffle, splat
from weft.ir import tile
from weft.ir.types import layout_of, shape_of
from weft.layout.algebra import f2

ARRAYS: Final = 4
"""The most arrays, and for a tile so many as it has elements for each two bins: all counts are cleared and added up at last."""

MOST_BYTES: Final = 16 << 10
"""The most bytes of several arrays: half of a first cache."""

_MOST_IN_16_BITS: Final = 0xFFFF
"""Tiles of up to so many elements are counted in 16 bits."""

_LINE: Final = 64
_WORK: Final = 4
"""Instructions for a lane."""


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
        elements = prod(shape_of(op.source))
        self._count = I16 if elements <= _MOST_IN_16_BITS else I32
        self._bytes = self._count.width // 8
        # The last bin is for values outside; behind few bins lies what fills a register.
        size = (max(self._bins, self._lanes) + 1) * self._bytes
        self._stride = -(-size // _LINE) * _LINE
        self._arrays = _arrays(elements // (2 * self._bins), MOST_BYTES // self._stride)
        self._counts = registers.pool.bytes(self._arrays * self._stride)
        self.work = _WORK * self._lanes
        """What counting a register costs (`weft.codegen.cpu.cost.work`): so much that it is not unrolled."""

    def start(self, copies: int, *, looped: bool) -> None:
        """All counts are 0."""
        size = ir.Constant(I64, self._arrays * self._stride)
        operands = [self._counts, ir.Constant(I8, 0), size, ir.Constant(I1, 0)]
        intrinsic(self._registers.builder, "memset", operands, ir.VoidType(), [POINTER, I64])

    def step(self, index: RegisterIndex) -> None:
        """Counts the elements of one register, duplicates once."""
        builder = self._registers.builder
        duplicates = layout_of(self.op.source).duplicate_mask("lane")
        for lane, bin_ in enumerate(self._bins_of(index)):
            if lane & duplicates:
                continue
            number = builder.zext(bin_, I64)
            array = self._behind(self._counts, lane % self._arrays * self._stride)
            place = builder.gep(array, [number], source_etype=self._count)
            count = builder.load(place, typ=self._count, align=self._bytes)
            builder.store(builder.add(count, ir.Constant(self._count, 1)), place, align=self._bytes)

    def _bins_of(self, index: RegisterIndex) -> Iterator[ir.Value]:
        """The bin of each lane, emitted when it is asked for: LLVM lets no load pass the stores of counts."""
        registers, source, mask = self._registers, self.op.source, self.op.mask
        if (mask is None or mask in registers.true_masks) and registers.is_loaded_by_lane(source, index):
            yield from (self._bin(registers.lane(source, index, lane)) for lane in range(self._lanes))
            return
        values = registers.vector(source, index)
        yield from taken_out(
            registers.builder, self._bin(values, None if mask is None else registers.vector(mask, index))
        )

    def _bin(self, values: ir.Value, mask: ir.Value | None = None) -> ir.Value:
        """Where values count: in the last bin if they are outside, or masked off."""
        builder, outside = self._registers.builder, splat(self._bins, values.type)
        inside = builder.icmp_unsigned("<", values, outside)
        return builder.select(inside if mask is None else builder.and_(inside, mask), values, outside)

    def finish(self, index: RegisterIndex) -> None:
        """Sums the arrays into the result's buffer."""
        emit, layout = self._registers, layout_of(self.op.result)
        columns = layout.columns("register")
        bits = slot_count(layout).bit_length() - 1
        used = tuple(1 << bit for bit, column in enumerate(columns) if column)
        with emit.loop(1 << bits) as position:
            at = RegisterIndex(0, ((Counter(position, bits), used),)) if bits else RegisterIndex()
            first = at.through(columns).value(emit.builder)
            total: ir.Value = splat(0, ir.VectorType(self._count, self._lanes))
            for array in range(self._arrays):
                start = self._behind(self._counts, array * self._stride)
                place = emit.builder.gep(start, [first], source_etype=self._count)
                total = emit.builder.add(total, emit.builder.load(place, typ=total.type, align=self._bytes))
            if self._count != I32:
                total = emit.builder.zext(total, like(total, I32))
            lanes = [f2.apply(layout.columns("lane"), lane) for lane in range(self._lanes)]
            self._target.store(emit.builder, at, shuffle(emit.builder, total, lanes))

    def publish(self) -> None:
        """Makes the result available, once every version of the loop has been emitted."""
        self._registers.buffers[self.op.result] = self._target

    def _behind(self, pointer: ir.Value, distance: int) -> ir.Value:
        if not distance:
            return pointer
        return self._registers.builder.gep(pointer, [ir.Constant(I64, distance)], source_etype=I8)


def _arrays(*limits: int) -> int:
    """The most arrays within the limits, a power of two."""
    return 1 << min(ARRAYS, max(min(limits), 1)).bit_length() - 1
