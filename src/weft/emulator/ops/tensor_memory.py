"""Tensor memory: allocation, loads and stores (tcgen05.alloc, dealloc, ld, st, wait, fence; PTX ISA 9.7.16.7, 9.7.16.8).

Loads and stores are done when they are issued, and so are the products and copies that tensor memory takes part in
(`weft.emulator.ops.tcgen05_mma`, `tcgen05_copy`). So ``wait`` and ``fence`` have nothing to do. What is checked:

- addresses: columns that the block has allocated, the lanes that the warp reaches;
- reads of cells that nothing has written.

What is not checked: that a load waits for the products it reads, and the order of accesses to tensor memory in general. Shared
memory that products and copies read is checked for races, as for wgmma.

Columns are given to a block in order of addresses, the first place that fits. A block has all 512: others on the same
multiprocessor do not compete for them. An allocation that does not fit is a fault where hardware would wait, perhaps for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.tensor_memory import COLUMNS, COUNTS, LANES, REGISTERS, Cells, Picture, picture
from weft.emulator.errors import OutOfBounds, Undefined, Uninitialised
from weft.emulator.machine.active import WARP, Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.ops.forms import form
from weft.emulator.ops.fragments import Warps, collective, registers
from weft.emulator.ops.mbarrier import U32, per_thread, shared_address
from weft.emulator.ops.registry import Step, instruction
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
        self.allocated = np.zeros((execution.blocks, COLUMNS), np.bool_)
        self.closed = np.zeros(execution.blocks, np.bool_)
        """Blocks that have given up the right to allocate."""

    @classmethod
    def of(cls, execution: Execution) -> TensorMemory:
        """That of the resident blocks."""
        return execution.extra("tensor memory", lambda: cls(execution))

    def check(self, site: int, thread: int, lanes: Cells, columns: Cells) -> None:
        """Raises `OutOfBounds` unless a thread's block has allocated these columns, and there are these lanes."""
        block = int(self.execution.block[thread])
        if lanes.min() < 0 or lanes.max() >= LANES:
            message = f"lanes {lanes.min()} to {lanes.max()} of tensor memory, which has {LANES}"
            raise self.execution.fault(OutOfBounds, message, site, thread)
        if columns.max() < COLUMNS and self.allocated[block, columns].all():
            return
        bad = int(next(c for c in np.unique(columns) if c >= COLUMNS or not self.allocated[block, c]))
        why = f"there are {COLUMNS}" if bad >= COLUMNS else f"the block has not allocated column {bad}"
        message = f"columns {columns.min()} to {columns.max()} of tensor memory; {why}"
        raise self.execution.fault(OutOfBounds, message, site, thread)

    def read(self, site: int, thread: int, lanes: Cells, columns: Cells, what: str = "") -> NDArray[np.uint32]:
        """The cells of a thread's block at lanes and columns, which broadcast."""
        self.check(site, thread, lanes, columns)
        block = int(self.execution.block[thread])
        if self.execution.checks.uninitialised and not (known := self.written[block, lanes, columns]).all():
            place = tuple(int(axis[0]) for axis in (~known).nonzero())
            lane = int(np.broadcast_to(lanes, known.shape)[place])
            column = int(np.broadcast_to(columns, known.shape)[place])
            message = f"{what}lane {lane}, column {column} of tensor memory has not been written"
            raise self.execution.fault(Uninitialised, message, site, thread)
        return self.words[block, lanes, columns]

    def write(self, site: int, thread: int, lanes: Cells, columns: Cells, values: NDArray[Any]) -> None:
        """Sets the cells."""
        self.check(site, thread, lanes, columns)
        block = int(self.execution.block[thread])
        self.words[block, lanes, columns] = values
        self.written[block, lanes, columns] = True


def split_address(address: int) -> tuple[int, int]:
    """Lane and column."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


def one_block(b: Binding, group: str) -> None:
    """Refuses what two blocks of a cluster do together."""
    if group == "cta_group::2":
        b.unknown("'.cta_group::2' of tcgen05: two blocks that share their tensor memories")


def addresses(b: Binding, operand: int) -> Any:
    """Addresses of tensor memory in brackets, (T,) when asked."""
    found = b.operand(operand)
    b.require(isinstance(found, Address), f"operand {operand} of {b.instruction.name} must be an address in brackets")
    return b.address(operand, Space.SHARED)


# ---- allocation --------------------------------------------------------------------------------------------------------


def first_of_warps(execution: Execution, warps: Warps, active: Active) -> IndexArray:
    """The first thread of each warp that executes."""
    return (np.arange(execution.warps) if warps is None else active.warps) * WARP


def _columns(b: Binding, operand: int) -> Any:
    """The number of columns that threads give, checked."""
    values, execution, site = b.read(operand, U32), b.execution, b.site

    def read(threads: IndexArray) -> NDArray[np.int64]:
        counts = per_thread(values, threads)
        bad = (counts < 32) | (counts > COLUMNS) | (counts & (counts - 1) != 0)
        if bad.any():
            which = int(bad.argmax())
            message = f"{counts[which]} columns of tensor memory, expected a power of two from 32 to {COLUMNS}"
            raise execution.fault(Undefined, message, site, int(threads[which]))
        return counts

    return read


@instruction("tcgen05.alloc")
def _alloc(b: Binding) -> Step:
    """The address of the columns goes to shared memory, by the async proxy: Triton lets tensor copies write over it without a
    fence."""
    f = form(b, op="alloc", group=GROUP, sync="sync", aligned="aligned", space="? shared::cta", type="b32")
    one_block(b, f["group"])
    b.count(2)
    locate, columns, check = shared_address(b, 0, f["space"]), _columns(b, 1), collective(b)
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        memory = TensorMemory.of(execution)
        threads = first_of_warps(execution, check(active), active)
        found: list[int] = []
        for thread, count in zip(threads.tolist(), columns(threads).tolist(), strict=True):
            found.append(_place(memory, site, thread, count))
        agent = execution.order.start(execution.warp[threads])
        access = AccessBatch(
            site, Space.SHARED, Kind.WRITE, threads, locate(threads), 4, proxy=Proxy.ASYNC, agent=agent
        )
        execution.memory.store(access, 4, np.array(found, np.uint32))
        execution.order.finish(agent, warps=execution.warp[threads])

    return step


def _place(memory: TensorMemory, site: int, thread: int, count: int) -> int:
    """Where so many columns are free in a thread's block, which are its from now on."""
    execution = memory.execution
    block = int(execution.block[thread])
    if memory.closed[block]:
        message = "tcgen05.alloc after the block's tcgen05.relinquish_alloc_permit"
        raise execution.fault(Undefined, message, site, thread)
    taken = memory.allocated[block]
    for start in range(0, COLUMNS - count + 1, QUARTER):
        if not taken[start : start + count].any():
            taken[start : start + count] = True
            memory.allocations[block][start] = count
            return start
    message = f"{count} columns of tensor memory, of which the block holds {np.count_nonzero(taken)} of {COLUMNS}"
    raise execution.fault(OutOfBounds, message, site, thread)


@instruction("tcgen05.dealloc")
def _dealloc(b: Binding) -> Step:
    f = form(b, op="dealloc", group=GROUP, sync="sync", aligned="aligned", type="b32")
    one_block(b, f["group"])
    b.count(2)
    starts, columns, check = b.read(0, U32), _columns(b, 1), collective(b)
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        memory = TensorMemory.of(execution)
        threads = first_of_warps(execution, check(active), active)
        counts, addresses = columns(threads), per_thread(starts, threads)
        for thread, start, count in zip(threads.tolist(), addresses.tolist(), counts.tolist(), strict=True):
            block = int(execution.block[thread])
            held = memory.allocations[block].get(start)
            if held != count:
                had = "nothing was allocated there" if held is None else f"{held} were allocated there"
                message = f"{count} columns from 0x{start:x} on are given back; {had}"
                raise execution.fault(Undefined, message, site, thread)
            del memory.allocations[block][start]
            memory.allocated[block, start : start + count] = False
            memory.written[block, :, start : start + count] = False

    return step


@instruction("tcgen05.relinquish_alloc_permit")
def _relinquish(b: Binding) -> Step:
    f = form(b, op="relinquish_alloc_permit", group=GROUP, sync="sync", aligned="aligned")
    one_block(b, f["group"])
    b.count(0)
    execution, check = b.execution, collective(b)

    def step(active: Active) -> None:
        threads = first_of_warps(execution, check(active), active)
        TensorMemory.of(execution).closed[execution.block[threads]] = True

    return step


# ---- loads and stores ------------------------------------------------------------------------------------------------------


class _Move:
    """A tcgen05.ld or st: its registers, and the cells that each of them is of."""

    def __init__(self, b: Binding, op: str, packing: str) -> None:
        f = form(
            b,
            op=op,
            sync="sync",
            aligned="aligned",
            shape=" ".join(REGISTERS),
            count=" ".join(f"x{count}" for count in COUNTS),
            packing=f"? {packing}",
            type="b32",
        )
        self.shape, count = f["shape"], int(f["count"][1:])
        size = REGISTERS[self.shape] * count
        b.require(size <= LANES, f"{b.instruction.name} has {size} registers; a thread has at most {LANES}")
        split = self.shape == "16x32bx2"
        b.count(3 if split else 2)
        load = op == "ld"
        self.address = addresses(b, 1 if load else 0)
        offset = b.constant(2 if load else 1) if split else 0
        self.views = registers(b, 0 if load else 2 if split else 1, size, 32, write=load)
        self.packed = bool(f["packing"])
        self.picture: Picture = picture(self.shape, count, offset)
        self.check = collective(b)
        self.execution, self.site = b.execution, b.site

    def cells(self, active: Active) -> tuple[IndexArray, NDArray[np.intp], Cells, Cells]:
        """The warps that execute, their first threads, and the cells of their registers, (warps, registers, 32)."""
        execution = self.execution
        found = self.check(active)
        warps = np.arange(execution.warps) if found is None else found
        threads = warps * WARP
        given = self.address().reshape(-1, WARP)[warps].astype(np.int64)
        if (given != given[:, :1]).any():
            which = int((given != given[:, :1]).any(axis=1).argmax())
            message = "an address of tensor memory must be the same in all threads of a warp"
            raise execution.fault(Undefined, message, self.site, int(threads[which]))
        lane, column = given[:, 0] >> 16 & 0xFFFF, given[:, 0] & 0xFFFF
        first = warps % execution.block_warps % 4 * QUARTER
        beyond = (lane < first) | (lane + self.picture.height > first + QUARTER)
        if beyond.any():
            which = int(beyond.argmax())
            low = int(first[which])
            last = int(lane[which]) + self.picture.height - 1
            message = f"lanes {lane[which]} to {last} of tensor memory; this warp reaches lanes {low} to {low + 31}"
            raise execution.fault(OutOfBounds, message, self.site, int(threads[which]))
        return warps, threads, lane[:, None, None] + self.picture.lanes, column[:, None, None] + self.columns()

    def columns(self) -> Cells:
        """Relative to the address; of the first of two where two share a register."""
        return 2 * self.picture.columns if self.packed else self.picture.columns


@instruction("tcgen05.ld")
def _load(b: Binding) -> Step:
    move = _Move(b, "ld", "pack::16b")

    def step(active: Active) -> None:
        memory = TensorMemory.of(move.execution)
        warps, threads, lanes, columns = move.cells(active)
        for i, (warp, thread) in enumerate(zip(warps.tolist(), threads.tolist(), strict=True)):
            values = memory.read(move.site, thread, lanes[i], columns[i])
            if move.packed:
                upper = memory.read(move.site, thread, lanes[i], columns[i] + 1)
                values = (values & np.uint32(0xFFFF)) | (upper << np.uint32(16))
            for view, row in zip(move.views, values, strict=True):
                view[warp] = row

    return step


@instruction("tcgen05.st")
def _store(b: Binding) -> Step:
    """The upper halves of cells that ``.unpack::16b`` writes are 0."""
    move = _Move(b, "st", "unpack::16b")

    def step(active: Active) -> None:
        memory = TensorMemory.of(move.execution)
        warps, threads, lanes, columns = move.cells(active)
        for i, (warp, thread) in enumerate(zip(warps.tolist(), threads.tolist(), strict=True)):
            values = np.stack([view[warp] for view in move.views])
            if move.packed:
                memory.write(move.site, thread, lanes[i], columns[i] + 1, values >> np.uint32(16))
                values = values & np.uint32(0xFFFF)
            memory.write(move.site, thread, lanes[i], columns[i], values)

    return step


@instruction("tcgen05.wait::ld", "tcgen05.wait::st")
def _wait(b: Binding) -> Step:
    """Loads and stores are complete as soon as they are issued."""
    form(b, op="wait::ld wait::st", sync="sync", aligned="aligned")
    b.count(0)
    check = collective(b)

    def step(active: Active) -> None:
        check(active)

    return step


@instruction("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync")
def _fence(b: Binding) -> Step:
    """Orders accesses to tensor memory, which are in order here."""
    form(b, op="fence::before_thread_sync fence::after_thread_sync")
    b.count(0)
    return lambda active: None
