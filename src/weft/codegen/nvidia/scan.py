"""Scans: the steps of a `ScanPlan`, each on whole files.

The combine function is called with the earlier elements' values first, in the order of the axis (from its end, in reverse). All
threads with copies of an element combine the same operands in the same order, so that copies have equal bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import gcd
from typing import Any, Final

from llvmlite import ir

from weft.codegen.llvm.types import I32
from weft.codegen.nvidia.combine import Combining
from weft.codegen.nvidia.files import CHUNK, File, length, take, vector_of
from weft.codegen.nvidia.threads import LANE_BITS
from weft.ir import tile
from weft.layout.planning.combining import CombineStep, Convert
from weft.layout.planning.scan import AcrossLane, Carry, FromLane, Serial, Shift, Stop
from weft.transforms.nvidia.scratch import scan_plan


class Scan(Combining[tile.ScanOp]):
    """One scan being carried out; the state is one file for each tensor."""

    def run(self) -> None:
        """Emits the scan and enters its results."""
        files = [self._threads.files[source] for source in self._op.sources]
        files = self._steps(scan_plan(self._op, self._threads.target.model).steps, files)
        for result, file in zip(self._op.results_, files, strict=True):
            self._threads.files[result] = file

    def _steps(self, steps: Sequence[CombineStep], files: list[File]) -> list[File]:
        for step in steps:
            files = _RUN[type(step)](self, step, files)
        return files

    def _take(self, files: Sequence[File], registers: Sequence[int]) -> list[File]:
        return [take(self._threads.builder, file, registers) for file in files]

    def _select(self, condition: ir.Value, yes: Sequence[File], no: Sequence[File]) -> list[File]:
        builder = self._threads.builder
        return [
            tuple(builder.select(condition, a, b) for a, b in zip(x, y, strict=True))
            for x, y in zip(yes, no, strict=True)
        ]

    def _together(self, parts: Sequence[tuple[Sequence[int], list[File]]]) -> list[File]:
        """The files whose registers are given in parts: the numbers of some registers, and files of these."""
        builder = self._threads.builder
        order = [register for registers, _ in parts for register in registers]
        places = [order.index(register) for register in range(len(order))]
        found: list[File] = []
        for files in zip(*(files for _, files in parts), strict=True):
            long = _joined(builder, files)
            found.append(
                tuple(vector_of(builder, long, places[at : at + CHUNK]) for at in range(0, len(places), CHUNK))
            )
        return found

    # -- steps -----------------------------------------------------------------------------------------------------------

    def serial(self, step: Serial, files: list[File]) -> list[File]:
        """Each thread scans its own registers."""
        first, *_ = step.groups
        parts: list[tuple[Sequence[int], list[File]]] = [(first, self._take(files, first))]
        for _, own in pairwise(step.groups):
            parts.append((own, self.combined(parts[-1][1], self._take(files, own))))
        return self._together(parts)

    def across_lane(self, step: AcrossLane, files: list[File]) -> list[File]:
        """Half of the lanes combine with the last prefix of the other half."""
        entry, (cleared, put) = self._threads.entry, step.reads
        lane = entry.or_(entry.and_(self._threads.thread, ir.Constant(I32, ~cleared)), ir.Constant(I32, put))
        combined = self.combined(self.from_lane(files, lane), files)
        upper = self._threads.thread_bit(step.lane)
        return self._select(upper, files, combined) if step.reverse else self._select(upper, combined, files)

    def from_neighbour(self, step: FromLane, files: list[File]) -> list[File]:
        """Lanes combine with the lane some lanes before them, where there is such a lane."""
        before, there = self.from_distance(files, step.distance, step.width, step.reverse)
        return self._select(there, self.combined(before, files), files)

    def carry(self, step: Carry, files: list[File]) -> list[File]:
        """All elements are combined with the totals of what is before them."""
        entry, totals = self._threads.entry, self._take(files, step.totals)
        if step.lanes_below:
            below = ir.Constant(I32, step.lanes_below)
            thread = self._threads.thread
            lane = entry.and_(thread, entry.not_(below)) if step.reverse else entry.or_(thread, below)
            totals = self.from_lane(totals, lane)
        totals = self._steps(step.steps, totals)
        parts: list[tuple[Sequence[int], list[File]]] = []
        for takes in (True, None, False):
            own = [r for r in range(step.registers) if step.takes(r) is takes]
            if not own:
                continue
            mine = self._take(files, own)
            if takes is not False:
                combined = self.combined(self._take(totals, [step.total_of[r] for r in own]), mine)
                mine = combined if takes else self._select(self._has_before(step), combined, mine)
            parts.append((own, mine))
        return self._together(parts)

    def _has_before(self, step: Carry) -> ir.Value:
        """Whether any element is before the thread's, by the bits of its number."""
        entry, (lanes, warps) = self._threads.entry, step.threads
        mask = lanes | warps << LANE_BITS
        own = entry.and_(self._threads.thread, ir.Constant(I32, mask))
        return entry.icmp_unsigned("!=", own, ir.Constant(I32, mask if step.reverse else 0))

    def shift(self, step: Shift, files: list[File]) -> list[File]:
        """Each element becomes the one before it. Registers whose element before is found alike are shuffled together."""
        if step.neighbours:
            return self.from_distance(files, *step.neighbours, step.reverse)[0]
        alike: dict[tuple[tuple[int | None, int], ...], list[int]] = {}
        for register in range(step.registers):
            stops = tuple((stop.lane, stop.flips) for stop in step.stops(register))
            alike.setdefault(stops, []).append(register)
        parts: list[tuple[Sequence[int], list[File]]] = []
        for registers in [part for own in alike.values() for part in _powers(own)]:
            stops = [step.stops(register) for register in registers]
            offered = self._offered(step, stops, files)
            lane = self._lane_before(step, stops[0])
            parts.append((registers, offered if lane is None else self.from_lane(offered, lane)))
        return self._together(parts)

    def _offered(self, step: Shift, stops: Sequence[tuple[Stop, ...]], files: list[File]) -> list[File]:
        """For each register that is asked for (by its stops) the one that the thread offers. The step ended at the first lane
        bit that was set before, so at the first that is clear now (the other way round, in reverse)."""
        *before, last = zip(*stops, strict=True)
        found = self._take(files, [stop.register for stop in last])
        for column in reversed(before):
            here = self._take(files, [stop.register for stop in column])
            bit = self._threads.thread_bit(_lane(column[0]))
            found = self._select(bit, here, found) if step.reverse else self._select(bit, found, here)
        return found

    def _lane_before(self, step: Shift, stops: tuple[Stop, ...]) -> ir.Value | None:
        """The lane that has the element before; None where that is the own lane for all."""
        if len(stops) == 1:
            return None
        entry, thread = self._threads.entry, self._threads.thread
        *before, last = stops
        lane = entry.xor(thread, ir.Constant(I32, last.flips))
        for stop in reversed(before):
            here = entry.xor(thread, ir.Constant(I32, stop.flips))
            bit = self._threads.thread_bit(_lane(stop))
            lane = entry.select(bit, lane, here) if step.reverse else entry.select(bit, here, lane)
        return lane


def _joined(builder: ir.IRBuilder, files: Sequence[File]) -> File:
    """Files one after the other, in vectors of one length."""
    chunks = [chunk for file in files for chunk in file]
    size = gcd(*map(length, chunks))
    return tuple(
        chunk if size == length(chunk) else vector_of(builder, (chunk,), range(at, at + size))
        for chunk in chunks
        for at in range(0, length(chunk), size)
    )


def _powers(registers: Sequence[int]) -> list[Sequence[int]]:
    """The registers in parts whose sizes are powers of two."""
    parts: list[Sequence[int]] = []
    while registers:
        size = 1 << (len(registers).bit_length() - 1)
        parts.append(registers[:size])
        registers = registers[size:]
    return parts


def _lane(stop: Stop) -> int:
    assert stop.lane is not None, "all stops but the last are at lane bits"
    return stop.lane


_RUN: Final[Mapping[type[CombineStep], Callable[[Scan, Any, list[File]], list[File]]]] = {
    Serial: Scan.serial,
    AcrossLane: Scan.across_lane,
    FromLane: Scan.from_neighbour,
    Shift: Scan.shift,
    Carry: Scan.carry,
    Convert: Scan.convert,
}
