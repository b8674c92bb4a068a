"""The order of accesses to tensor memory: who has waited for which (PTX ISA 9.7.16.6).

Accesses are kept as records: of products, copies and shifts what the operation reads and writes, of tcgen05.ld and st what the
warp does. Two that overlap, one of which writes, must be ordered:

    earlier                         later                           ordered by
    mma, cp, shift of a thread      mma, cp, shift of it            the pipeline
    mma, cp, shift                  those of another thread         fence::before_thread_sync and a barrier, or as the next
    mma, cp, shift                  ld, st                          tcgen05.commit, and a wait for its mbarrier
    ld, st of a warp                ld, st, mma, cp, shift of it    tcgen05.wait::ld, wait::st
    ld, st                          anything else                   the same, and a barrier

Where the barrier is relaxed (mbarriers and flags may be), tcgen05.fence::before_thread_sync must stand before it and
tcgen05.fence::after_thread_sync behind it; commit is a before_thread_sync. The ISA's examples have these fences around barriers
that release and acquire, too, but it says that what orders other memory orders tensor memory as well: their lack is no race here.
Nor is a register that is read before wait::ld: "intra-thread ordering through true register dependency will be respected". Of the
pairs that are no pipeline by the ISA (mma and cp, in this order) none is reported: CUTLASS's kernels with scales have them.

The clocks are `weft.emulator.memory.tensor_clocks`. The time of a ld or st is that of the wait for it. What a later write covers
is forgotten: who has seen the write has seen what it had to wait for.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weft.emulator.arith.tensor_memory import COLUMNS, LANES, Cells
from weft.emulator.errors import Race
from weft.emulator.machine.active import IndexArray
from weft.emulator.memory.order import Agent

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution


@dataclass
class Record:
    """An access: sets of lanes and columns as bits, when and by whom."""

    lanes: int
    columns: int
    writes: bool
    column: int
    """The clock's: what must have been seen up to the time."""
    time: int
    site: int
    thread: int
    operation: bool
    """Of the tensor core, not of a warp."""
    complete: bool
    """Whether the warp has waited for it."""

    def covers(self, other: Record) -> bool:
        return not (other.lanes & ~self.lanes or other.columns & ~self.columns)


class TensorOrder:
    """The accesses to the tensor memory of the resident blocks."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        order = execution.order.shared
        self.clocks = None if order is None else order.tensor
        self.records: list[list[Record]] = [[] for _ in range(execution.blocks)]

    @classmethod
    def of(cls, execution: Execution) -> TensorOrder:
        return execution.extra("tensor order", lambda: cls(execution))

    def observe(
        self, site: int, thread: int, block: int, agent: Agent | None, lanes: Cells, columns: Cells, writes: bool
    ) -> None:
        """An access of a thread's warp, or of its operation, to cells of a block. Raises: Race."""
        execution = self.execution
        if (clocks := self.clocks) is None:
            return
        warp, operation = int(execution.warp[thread]), agent is not None
        own = int(clocks.column_of[warp])
        column = own + clocks.warps if operation else own
        seen: list[int] = clocks.seen[clocks.block_of[warp], own, 0].tolist()
        made = Record(
            _bits(lanes, LANES),
            _bits(columns, COLUMNS),
            writes,
            column,
            clocks.tick(),
            site,
            thread,
            operation,
            operation,
        )
        kept: list[Record] = []
        for old in self.records[block]:
            if not (old.columns & made.columns and old.lanes & made.lanes):
                kept.append(old)
                continue
            if (old.writes or writes) and not self._ordered(old, made, seen):
                raise execution.fault(Race, self._message(old, made, block), site, thread)
            if not made.covers(old) or not (writes or (self._same(old, made) and not old.writes)):
                kept.append(old)
        kept.append(made)
        self.records[block] = kept

    def _ordered(self, old: Record, made: Record, seen: list[int]) -> bool:
        """Whether the later access, of a warp that has seen so much of each column, comes behind the earlier one."""
        if self._same(old, made):
            return old.complete
        if old.complete and (self._of_warp(old, made) or seen[old.column] >= old.time):
            return True
        return old.operation and made.operation and seen[self._pipeline(old)] >= old.time

    def _of_warp(self, old: Record, made: Record) -> bool:
        """Whether the later access is of the warp that has waited for the earlier one."""
        return not old.operation and bool(self.execution.warp[old.thread] == self.execution.warp[made.thread])

    def _pipeline(self, record: Record) -> int:
        """The column of what is behind an operation in the pipeline."""
        assert self.clocks is not None
        return record.column + self.clocks.warps

    def _same(self, old: Record, made: Record) -> bool:
        """Whether both are of one warp, or operations of one thread."""
        if old.operation or made.operation:
            return old.operation and made.operation and old.thread == made.thread
        return bool(self.execution.warp[old.thread] == self.execution.warp[made.thread])

    def wait(self, warps: IndexArray, writes: bool) -> None:
        """Warps have waited for their loads, or for their stores."""
        if (clocks := self.clocks) is None:
            return
        waiting = set(warps.tolist())
        time = clocks.tick()
        blocks: list[int] = np.unique(warps // self.execution.block_warps).tolist()
        for block in blocks:
            for record in self.records[block]:
                mine = record.writes == writes and int(self.execution.warp[record.thread]) in waiting
                if mine and not record.complete:
                    record.complete, record.time = True, time

    def commit(self, threads: IndexArray, key: Hashable) -> None:
        """Who acquires the key has seen the operations of these threads."""
        if (clocks := self.clocks) is None:
            return
        for thread in threads.tolist():
            mine = [r.time for records in self.records for r in records if r.operation and r.thread == thread]
            if mine:
                clocks.commit(key, int(self.execution.warp[thread]), max(mine))

    def forget(self, block: int, start: int, count: int) -> None:
        """A block gives columns back."""
        gone = (1 << count) - 1 << start
        for record in self.records[block]:
            record.columns &= ~gone
        self.records[block] = [record for record in self.records[block] if record.columns]

    def _message(self, old: Record, made: Record, block: int) -> str:
        execution = self.execution
        lane = (old.lanes & made.lanes & -(old.lanes & made.lanes)).bit_length() - 1
        column = (old.columns & made.columns & -(old.columns & made.columns)).bit_length() - 1
        instruction = execution.program.instructions[old.site]
        whose = "" if block == execution.block[made.thread] else " of the pair's other block"
        verb, past = "writes" if made.writes else "reads", "wrote" if old.writes else "read"
        who = f"thread {execution.thread_of(old.thread)} of block {execution.block_of(old.thread)}"
        name = f"{instruction.opcode}.{instruction.modifiers[0]}"
        why = self._why(old, made)
        return (
            f"{verb} lane {lane}, column {column} of tensor memory{whose}, which {name} of {who} {past} "
            f"at PTX line {instruction.line}; {why}"
        )

    def _why(self, old: Record, made: Record) -> str:
        """What is missing between two accesses."""
        assert self.clocks is not None
        if not old.complete:
            return f"no tcgen05.wait::{'st' if old.writes else 'ld'} follows it"
        pipelined = old.operation and made.operation
        warp = int(self.execution.warp[made.thread])
        for column in (old.column, *([self._pipeline(old)] if pipelined else [])):
            if fence := self.clocks.lacks(warp, column, old.time):
                return _UNFENCED[fence]
        if not old.operation:
            return "nothing orders them: a barrier is missing between"
        instead = ", or tcgen05.fence::before_thread_sync and a barrier" if pipelined else ""
        waited = "tcgen05.commit and a wait for the mbarrier are missing between"
        return f"its completion is not waited for: {waited}{instead}"


_UNFENCED: Final = {
    "before": "what orders them is relaxed, and no tcgen05.fence::before_thread_sync stands before it",
    "after": "what orders them is relaxed, and no tcgen05.fence::after_thread_sync stands behind it",
}


def _bits(places: Cells, size: int) -> int:
    """A set of numbers below ``size``, as bits."""
    mask = np.zeros(size, np.bool_)
    mask[places.ravel()] = True
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
