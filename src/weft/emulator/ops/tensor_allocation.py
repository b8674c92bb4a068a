"""tcgen05.alloc, dealloc, relinquish_alloc_permit: columns of tensor memory change hands (PTX ISA 9.7.16.7).

Columns are given to a block in order of addresses, the first place that fits. A block has all 512: others on the same
multiprocessor do not compete for them. An allocation that does not fit is a fault where hardware would wait, perhaps for ever.

With ``.cta_group::2`` a warp of each block of the pair allocates, and gives back, and neither goes on before the other has come.
Both ask for as many columns, so that they are at the same place in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.tensor_memory import COLUMNS
from weft.emulator.errors import OutOfBounds, Undefined
from weft.emulator.machine.active import WARP, Active, IndexArray, Mask
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.ops.forms import form
from weft.emulator.ops.fragments import Warps, collective
from weft.emulator.ops.mbarrier import U32, per_thread, shared_address
from weft.emulator.ops.registry import Destinations, Step, Transfer, instruction
from weft.emulator.ops.tensor_memory import GROUP, QUARTER, TensorMemory, blocks_of
from weft.emulator.ops.tensor_order import TensorOrder

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

Work: TypeAlias = Callable[[IndexArray, NDArray[np.int64]], None]
"""What the first threads of warps do, with the numbers of columns that they give."""


class Pairs:
    """The warps that wait for a warp of their pair's other block, at alloc or at dealloc."""

    def __init__(self, execution: Execution) -> None:
        self.come: dict[int, tuple[int, int]] = {}
        """The first thread of the warp that has come, of each block, and the columns that it gives."""
        self.met: Mask = np.zeros(execution.threads, np.bool_)
        """Threads of warps that have met, and have not gone on yet."""

    @classmethod
    def of(cls, execution: Execution, what: str) -> Pairs:
        """Those of the resident blocks at an opcode."""
        return execution.extra(f"pairs at {what}", lambda: cls(execution))


def _together(b: Binding, group: str, columns: Any, work: Work) -> Transfer:
    """Lets warps do their work: at once, or, of pairs, when both have come."""
    execution, site, following, check = b.execution, b.site, b.next, collective(b)
    blocks, name, what = blocks_of(b, group), b.instruction.name, b.modifiers[0]

    def run(active: Active) -> Destinations:
        threads = first_of_warps(execution, check(active), active)
        counts = columns(threads)
        pairs = Pairs.of(execution, what)
        for thread, count in zip(threads.tolist(), counts.tolist(), strict=True):
            both = blocks(thread)
            if len(both) > 1 and not pairs.met[thread]:
                meet(pairs, thread, count, both)
        if group == "cta_group::1":
            work(threads, counts)
            return [(following, active)]
        through = pairs.met[threads]
        going = active.narrow(np.repeat(pairs.met[::WARP], WARP))
        pairs.met[threads[through]] = False
        if through.any():
            work(threads[through], counts[through])
        if waiting := active.narrow(~going.mask):
            execution.counters.executed(site, -waiting.warp_count, -waiting.count)
            where = execution.block_of(int(waiting.index[0]))
            why = f"block {where}: {name} waits for a warp of the pair's other block"
            execution.park(waiting, site, lambda: why, lambda: np.repeat(pairs.met[::WARP], WARP), site)
        return [(following, going)] if going else []

    def meet(pairs: Pairs, thread: int, count: int, both: tuple[int, ...]) -> None:
        block = int(execution.block[thread])
        if block in pairs.come:
            message = f"{name} by a second warp of the block, while one waits for the pair's other block"
            raise execution.fault(Undefined, message, site, thread)
        pairs.come[block] = thread, count
        if not all(one in pairs.come for one in both):
            return
        (first, less), (second, more) = (pairs.come.pop(one) for one in both)
        if less != more:
            message = f"{name} of {less} columns in one block of a pair and {more} in the other"
            raise execution.fault(Undefined, message, site, thread)
        pairs.met[[first, second]] = True
        execution.stir()

    return run


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


@instruction("tcgen05.alloc", transfer=True)
def _alloc(b: Binding) -> Transfer:
    """The address of the columns goes to shared memory, by the async proxy: Triton lets tensor copies write over it without a
    fence."""
    f = form(b, op="alloc", group=GROUP, sync="sync", aligned="aligned", space="? shared::cta", type="b32")
    b.count(2)
    locate = shared_address(b, 0, f["space"])
    execution, site = b.execution, b.site

    def work(threads: IndexArray, counts: NDArray[np.int64]) -> None:
        memory = TensorMemory.of(execution)
        found: list[int] = []
        for thread, count in zip(threads.tolist(), counts.tolist(), strict=True):
            found.append(_place(memory, site, thread, count))
        agent = execution.order.start(execution.warp[threads])
        access = AccessBatch(
            site, Space.SHARED, Kind.WRITE, threads, locate(threads), 4, proxy=Proxy.ASYNC, agent=agent
        )
        execution.memory.store(access, 4, np.array(found, np.uint32))
        execution.order.finish(agent, warps=execution.warp[threads])

    return _together(b, f["group"], _columns(b, 1), work)


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
            memory.givers[block, start] = site, thread
            return start
    message = f"{count} columns of tensor memory, of which the block holds {np.count_nonzero(taken)} of {COLUMNS}"
    raise execution.fault(OutOfBounds, message, site, thread)


@instruction("tcgen05.dealloc", transfer=True)
def _dealloc(b: Binding) -> Transfer:
    f = form(b, op="dealloc", group=GROUP, sync="sync", aligned="aligned", type="b32")
    b.count(2)
    starts, execution, site = b.read(0, U32), b.execution, b.site

    def work(threads: IndexArray, counts: NDArray[np.int64]) -> None:
        memory, addresses = TensorMemory.of(execution), per_thread(starts, threads)
        for thread, start, count in zip(threads.tolist(), addresses.tolist(), counts.tolist(), strict=True):
            block = int(execution.block[thread])
            held = memory.allocations[block].get(start)
            if held != count:
                had = "nothing was allocated there" if held is None else f"{held} were allocated there"
                message = f"{count} columns from 0x{start:x} on are given back; {had}"
                raise execution.fault(Undefined, message, site, thread)
            del memory.allocations[block][start], memory.givers[block, start]
            memory.allocated[block, start : start + count] = False
            memory.written[block, :, start : start + count] = False
            if execution.order.active:
                TensorOrder.of(execution).forget(block, start, count)

    return _together(b, f["group"], _columns(b, 1), work)


@instruction("tcgen05.relinquish_alloc_permit")
def _relinquish(b: Binding) -> Step:
    f = form(b, op="relinquish_alloc_permit", group=GROUP, sync="sync", aligned="aligned")
    b.count(0)
    execution, check, blocks = b.execution, collective(b), blocks_of(b, f["group"])

    def step(active: Active) -> None:
        threads = first_of_warps(execution, check(active), active)
        for thread in threads.tolist():
            blocks(thread)
        TensorMemory.of(execution).closed[execution.block[threads]] = True

    return step
