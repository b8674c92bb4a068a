"""The order of accesses to tensor memory: who has waited for which (PTX ISA 9.7.16.6).

Accesses are kept as records: of products, copies and shifts what the operation reads and writes, of tcgen05.ld and st what the
warp does. Two that overlap, one of which writes, must be ordered:

    earlier                         later                           ordered by
    mma, cp, shift of a thread      mma, cp, shift of it            the pipeline
    mma, cp, shift                  anything else                   tcgen05.commit, and a wait for its mbarrier
    ld, st of a warp                ld, st of it                    the program
    ld, st                          anything else                   tcgen05.wait::ld, wait::st, and a barrier where warps differ

The clocks are those of shared memory (`weft.emulator.memory.clocks`), so that what orders accesses there orders them here.
What a later write covers is forgotten: who has seen the write has seen what it had to wait for. tcgen05.fence, which also has to
stand around barriers, is not looked at.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """The clock's."""
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
        self.records: list[list[Record]] = [[] for _ in range(execution.blocks)]

    @classmethod
    def of(cls, execution: Execution) -> TensorOrder:
        return execution.extra("tensor order", lambda: cls(execution))

    def observe(
        self, site: int, thread: int, block: int, agent: Agent | None, lanes: Cells, columns: Cells, writes: bool
    ) -> None:
        """An access of a thread's warp, or of its operation, to cells of a block. Raises: Race."""
        execution = self.execution
        order = execution.order.shared
        if order is None:
            return
        clocks = order.clocks
        warp = int(execution.warp[thread])
        row = int(clocks.column_of[warp] if agent is None else agent.columns[warp])
        seen = clocks.seen[clocks.block_of[warp], row, 0]
        made = Record(
            _bits(lanes, LANES),
            _bits(columns, COLUMNS),
            writes,
            row,
            order.tick(site),
            site,
            thread,
            agent is not None,
            agent is not None,
        )
        kept: list[Record] = []
        for old in self.records[block]:
            if not (old.columns & made.columns and old.lanes & made.lanes):
                kept.append(old)
                continue
            mine = self._same(old, made)
            if (old.writes or writes) and not mine and (seen[old.column] < old.time or not old.complete):
                raise execution.fault(Race, self._message(old, made, block), site, thread)
            if not made.covers(old) or not (writes or (mine and not old.writes)):
                kept.append(old)
        kept.append(made)
        self.records[block] = kept

    def _same(self, old: Record, made: Record) -> bool:
        """Whether both are of one warp, or operations of one thread."""
        if old.operation or made.operation:
            return old.operation and made.operation and old.thread == made.thread
        return bool(self.execution.warp[old.thread] == self.execution.warp[made.thread])

    def wait(self, warps: IndexArray, writes: bool) -> None:
        """Warps have waited for their loads, or for their stores."""
        waiting = set(warps.tolist())
        blocks: list[int] = np.unique(warps // self.execution.block_warps).tolist()
        for block in blocks:
            for record in self.records[block]:
                if record.writes == writes and int(self.execution.warp[record.thread]) in waiting:
                    record.complete = True

    def commit(self, threads: IndexArray, key: Hashable) -> None:
        """Who acquires the key has seen the operations of these threads."""
        if (order := self.execution.order.shared) is None:
            return
        for thread in threads.tolist():
            cluster = int(order.clocks.block_of[self.execution.warp[thread]])
            for records in self.records:
                for record in records:
                    if record.operation and record.thread == thread:
                        order.clocks.inform(key, cluster, record.column, record.time)

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
        if old.operation:
            why = "its completion is not waited for: tcgen05.commit and a wait for the mbarrier are missing between"
        elif not old.complete:
            why = f"no tcgen05.wait::{'st' if old.writes else 'ld'} follows it"
        else:
            why = "nothing orders them: a barrier is missing between"
        return (
            f"{verb} lane {lane}, column {column} of tensor memory{whose}, which {name} of {who} {past} "
            f"at PTX line {instruction.line}; {why}"
        )


def _bits(places: Cells, size: int) -> int:
    """A set of numbers below ``size``, as bits."""
    mask = np.zeros(size, np.bool_)
    mask[places.ravel()] = True
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
