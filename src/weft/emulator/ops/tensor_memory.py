"""Tensor memory of the resident blocks: its cells, and which blocks an instruction is about (PTX ISA 9.7.16.1, 9.7.16.5).

Instructions with ``.cta_group::2`` are about a *pair*: two blocks of a cluster whose ranks differ in the last bit. Each block
keeps tensor memory of its own. A thread of either begins what both of them take part in.

What is checked:

- addresses: columns that the block has allocated, the lanes that there are;
- reads of cells that nothing has written;
- that a kernel has one ``.cta_group``, and pairs where it needs them.

The order of accesses is checked too (`weft.emulator.ops.tensor_order`). Shared memory that products and copies read is checked
for races, as for wgmma.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.tensor_memory import COLUMNS, LANES, Cells
from weft.emulator.errors import Fault, OutOfBounds, Undefined, Uninitialised
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.order import Agent
from weft.emulator.ops.tensor_order import TensorOrder
from weft.emulator.ptx.syntax import Address

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

GROUP: Final = "cta_group::1 cta_group::2"
QUARTER: Final = 32
"""Lanes that a warp reaches."""


class TensorMemory:
    """The cells of all resident blocks."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        shape = (execution.blocks, LANES, COLUMNS)
        self.words = np.zeros(shape, np.uint32)
        self.written = np.zeros(shape, np.bool_)
        self.allocations: list[dict[int, int]] = [{} for _ in range(execution.blocks)]
        """Of each block: how many columns begin where."""
        self.givers: dict[tuple[int, int], tuple[int, int]] = {}
        """Of each allocation, by block and first column: the instruction and the thread that made it."""
        self.allocated = np.zeros((execution.blocks, COLUMNS), np.bool_)
        self.closed = np.zeros(execution.blocks, np.bool_)
        """Blocks that have given up the right to allocate."""
        self.group = ""
        """The ``.cta_group`` that the kernel has."""
        execution.endings.append(self._look_for_kept)

    def _look_for_kept(self) -> None:
        """Raises `Undefined` for columns that a block has when it ends: the ISA wants all to be given back (9.7.16.1)."""
        for (block, start), (site, thread) in self.givers.items():
            count = self.allocations[block][start]
            message = f"{count} columns of tensor memory that the block never gave back"
            raise self.execution.fault(Undefined, message, site, thread)

    @classmethod
    def of(cls, execution: Execution) -> TensorMemory:
        """That of the resident blocks."""
        return execution.extra("tensor memory", lambda: cls(execution))

    def part(self, site: int, thread: int, block: int | None = None, agent: Agent | None = None) -> Part:
        """What an instruction of a thread accesses: its block's, or that of the other block of its pair."""
        return Part(self, site, thread, int(self.execution.block[thread]) if block is None else block, agent)


@dataclass(frozen=True)
class Part:
    """The tensor memory of one block, as an instruction of a thread accesses it."""

    memory: TensorMemory
    site: int
    thread: int
    block: int
    agent: Agent | None = None
    """Of an operation that the thread begins."""

    def _observe(self, lanes: Cells, columns: Cells, writes: bool) -> None:
        execution = self.memory.execution
        if execution.order.active:
            order = TensorOrder.of(execution)
            order.observe(self.site, self.thread, self.block, self.agent, lanes, columns, writes)

    def _fault(self, kind: type[Fault], message: str) -> Fault:
        return self.memory.execution.fault(kind, message, self.site, self.thread)

    @property
    def _whose(self) -> tuple[str, str]:
        """Whose it is, behind "tensor memory" and as a subject."""
        if self.block == self.memory.execution.block[self.thread]:
            return "", "the block"
        return " of the pair's other block", "it"

    def check(self, lanes: Cells, columns: Cells) -> None:
        """Raises `OutOfBounds` unless the block has allocated these columns, and there are these lanes."""
        of, block = self._whose
        if lanes.min() < 0 or lanes.max() >= LANES:
            message = f"lanes {lanes.min()} to {lanes.max()} of tensor memory, which has {LANES}"
            raise self._fault(OutOfBounds, message)
        allocated = self.memory.allocated[self.block]
        if columns.max() < COLUMNS and allocated[columns].all():
            return
        bad = int(next(c for c in np.unique(columns) if c >= COLUMNS or not allocated[c]))
        why = f"there are {COLUMNS}" if bad >= COLUMNS else f"{block} has not allocated column {bad}"
        raise self._fault(OutOfBounds, f"columns {columns.min()} to {columns.max()} of tensor memory{of}; {why}")

    def read(self, lanes: Cells, columns: Cells, what: str = "") -> NDArray[np.uint32]:
        """The cells at lanes and columns, which broadcast."""
        self.check(lanes, columns)
        self._observe(lanes, columns, False)
        memory = self.memory
        if memory.execution.checks.uninitialised and not (known := memory.written[self.block, lanes, columns]).all():
            place = tuple(int(axis[0]) for axis in (~known).nonzero())
            lane = int(np.broadcast_to(lanes, known.shape)[place])
            column = int(np.broadcast_to(columns, known.shape)[place])
            of, _ = self._whose
            message = f"{what}lane {lane}, column {column} of tensor memory{of} has not been written"
            raise self._fault(Uninitialised, message)
        return memory.words[self.block, lanes, columns]

    def write(self, lanes: Cells, columns: Cells, values: NDArray[Any]) -> None:
        """Sets the cells."""
        self.check(lanes, columns)
        self._observe(lanes, columns, True)
        self.memory.words[self.block, lanes, columns] = values
        self.memory.written[self.block, lanes, columns] = True


def shift_down(part: Part, lane: int, column: int) -> None:
    """Moves 32 bytes of the 32 lanes from ``lane`` on to the lane before each: the last lane stays what it was.

    The ISA says "downwards across all the rows, except the last, by one row". NVIDIA's test of ``.ashift``, whose description is
    the same, shows which way that is (CUTLASS 4.7, examples: 1cta_mma_a_from_tmem.py): a sliding window goes on.
    """
    lanes, columns = lane + np.arange(QUARTER - 1)[:, None], column + np.arange(_SHIFTED)[None, :]
    part.write(lanes, columns, part.read(lanes + 1, columns))


_SHIFTED: Final = 8
"""Columns of 32 bytes."""


def split_address(address: int) -> tuple[int, int]:
    """Lane and column."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


def blocks_of(b: Binding, group: str) -> Callable[[int], tuple[int, ...]]:
    """The blocks that an instruction of a thread is about: its own, or those of its pair, of even rank first."""
    execution, site, name = b.execution, b.site, b.instruction.name

    def found(thread: int) -> tuple[int, ...]:
        memory, block = TensorMemory.of(execution), int(execution.block[thread])
        memory.group = memory.group or group
        if memory.group != group:
            message = f"{name} in a kernel that has executed .{memory.group}; all of its tcgen05 must have the same"
            raise execution.fault(Undefined, message, site, thread)
        if group == "cta_group::1":
            return (block,)
        if (size := execution.grid.cluster_size) % 2:
            blocks = "1 block" if size == 1 else f"{size} blocks"
            message = f"{name} needs pairs of blocks; the clusters of this launch have {blocks}"
            raise execution.fault(Undefined, message, site, thread)
        return block & ~1, block | 1

    return found


def addresses(b: Binding, operand: int) -> Any:
    """Addresses of tensor memory in brackets, (T,) when asked."""
    found = b.operand(operand)
    b.require(isinstance(found, Address), f"operand {operand} of {b.instruction.name} must be an address in brackets")
    return b.address(operand, Space.SHARED)
