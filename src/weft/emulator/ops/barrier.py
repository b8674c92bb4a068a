"""bar, barrier and barrier.cluster: the threads of a block wait for each other (PTX ISA 9.7.13.1 to 9.7.13.4).

A warp arrives when all its threads that have not ended have come, and counts as 32 threads, however many it has: that is how the
ISA and the hardware count. A barrier without a thread count is complete when every thread of the block that has not ended has
come; so a block may go on after some of its threads have returned early, as it does on hardware. One with a count is complete
when warps of as many threads have come; threads that have ended do not come.

With ``.aligned`` (``bar`` always is) all threads of a warp must come to the *same* instruction. When a part of a warp comes,
it waits, because the other lanes may still arrive: a lane may wait for a copy that it alone began. It is a fault when other
lanes of the warp come to a different barrier instruction, or never come.

Usually all threads of all blocks come at once. That case is one step for all threads and does not use the tables of waiting
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import WARP, Active, IndexArray, Mask
from weft.emulator.ops.forms import form
from weft.emulator.ops.meetings import Barriers, Meeting, all_of, any_of
from weft.emulator.ops.registry import Destinations, Transfer, instruction, masked
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

BARRIERS: Final = 16
"""Barriers of a block."""

Reduce = Callable[[Mask, Mask], NDArray[Any]]
"""Predicates and participants, both (T,), to a value for each thread: the one of its block."""


# ---- reductions ----------------------------------------------------------------------------------------------------


def _per_block(execution: Execution, values: NDArray[Any]) -> NDArray[Any]:
    return values[execution.block]


def reduction(execution: Execution, name: str) -> Reduce:
    """popc, and, or of the participants' predicates, for each block."""

    def rows(mask: Mask) -> Mask:
        return mask.reshape(execution.blocks, -1)

    table: dict[str, Reduce] = {
        "popc": lambda p, who: _per_block(execution, np.count_nonzero(rows(p & who), axis=1).astype(np.uint32)),
        "and": lambda p, who: _per_block(execution, all_of(rows(p | ~who))),
        "or": lambda p, who: _per_block(execution, any_of(rows(p & who))),
    }
    return table[name]


# ---- the instructions --------------------------------------------------------------------------------------------------

_FORM: Final = {"cta": "? cta", "op": "sync arrive red", "reduce": "? popc and or", "aligned": "? aligned"}


@instruction("bar", "barrier", transfer=True)
def bar(b: Binding) -> Transfer:
    """Arrives, and unless it is ``arrive`` waits for the others."""
    f = form(b, **_FORM, type="? u32 pred")
    b.require(b.instruction.opcode == "barrier" or not f["aligned"], "bar is aligned, and has no modifier for it")
    aligned = b.instruction.opcode == "bar" or bool(f["aligned"])
    operation = f["op"]
    reduces = operation == "red"
    b.require(reduces == bool(f["reduce"]), "popc, and, or belong to red, and red needs one of them")
    of = {"": "", "popc": "u32", "and": "pred", "or": "pred"}[f["reduce"]]
    b.require(
        f["type"] == of, f"{b.instruction.name}: popc is of .u32, and and or are of .pred, the others have no type"
    )
    given = b.count(*((3, 4) if reduces else (2,) if operation == "arrive" else (1, 2)))
    at = 1 if reduces else 0
    with_count = given == (4 if reduces else 2)
    numbers = b.read(at, TYPES["u32"])
    counts = b.read(at + 1, TYPES["u32"]) if with_count else None
    predicate = b.predicate(given - 1) if reduces else None
    execution, site, following = b.execution, b.site, b.next
    every_warp: IndexArray = np.arange(execution.warps)
    write, reduce = None, None
    if reduces:
        write, reduce = b.write(0, TYPES[f["type"]]), reduction(execution, f["reduce"])
    waits = operation != "arrive"
    counters = execution.counters

    def finish(predicates: Mask, members: Mask, leaving: Active) -> None:
        assert write is not None and reduce is not None
        masked(write, reduce(predicates, members), leaving)

    checked: NDArray[np.int64] | None = None

    def run(active: Active) -> Destinations:
        nonlocal checked
        counters.add(site, "barriers", active.warp_count)
        barriers = Barriers.of(execution)
        if reduce is not None:
            barriers.finishers[site] = finish
        chosen = _numbers(barriers, site, numbers, active)
        wanted = None
        if counts is not None:
            wanted = checked if checked is not None else _counts(barriers, site, counts, active)
            if counts.ndim == 0:
                checked = wanted
        if len(chosen) == 1 and waits and _all_at_once(barriers, chosen[0][0], active, wanted):
            all_threads = every_warp if active.full else active.warps
            execution.order.barrier(all_threads, all_threads)
            if predicate is not None:
                finish(predicate(), active.mask, active)
            return [(following, active)]
        if aligned:
            barriers.parted(site, active)
        going = np.zeros(execution.threads, np.bool_)
        for number, some in chosen:
            barriers.come(site, number, some, wanted, waits)
            meeting = barriers.meetings[number]
            if predicate is not None:
                meeting.predicate |= predicate() & some.mask
            barriers.settle(meeting)
            if not waits:
                going |= some.mask
                continue
            gone = some.mask & barriers.released
            going |= gone
            barriers.released &= ~gone
            rest = some.narrow(~gone)
            if rest:
                execution.park(rest, following, _reason(barriers, meeting, site), barriers.ready, site)
        return [(following, Active(going))] if going.any() else []

    return run


def _reason(barriers: Barriers, meeting: Meeting, site: int) -> Callable[[], str]:
    return lambda: barriers.why(meeting, site)


def _all_at_once(barriers: Barriers, number: int, active: Active, counts: NDArray[np.int64] | None) -> bool:
    """Whether every thread of every block that has not ended is here, and no thread has come before."""
    execution = barriers.execution
    if not active.full and active.count + int(np.count_nonzero(execution.exited)) != execution.threads:
        return False
    if counts is not None:
        # As many as there are, in warps that have not ended.
        if active.full and (counts == execution.block_threads).all():
            return barriers.quiet(number)
        warps = np.bincount(execution.block[active.warps * WARP], minlength=execution.blocks) * WARP
        if (counts != warps[execution.block])[active.mask].any():
            return False
    return barriers.quiet(number)


def _numbers(barriers: Barriers, site: int, numbers: NDArray[np.uint32], active: Active) -> list[tuple[int, Active]]:
    """The threads by the barrier they come to."""
    if numbers.ndim == 0:
        found = [(int(numbers), active)]
    else:
        values = np.unique(numbers[active.index]).tolist()
        found = [(values[0], active)] if len(values) == 1 else [(v, active.narrow(numbers == v)) for v in values]
    for number, some in found:
        if number >= BARRIERS:
            raise barriers.fault(f"barrier {number}; a block has barriers 0 to {BARRIERS - 1}", site, some.mask)
    return found


def _counts(barriers: Barriers, site: int, counts: NDArray[np.uint32], active: Active) -> NDArray[np.int64]:
    """The thread count each thread gives, (T,), after checking it."""
    execution = barriers.execution
    values = np.broadcast_to(counts, (execution.threads,)).astype(np.int64)
    wrong = active.mask & ((values % WARP != 0) | (values == 0))
    if wrong.any():
        count = int(values[wrong][0])
        raise barriers.fault(f"a barrier for {count} threads, which is no multiple of {WARP} above 0", site, wrong)
    many = active.mask & (values > execution.block_threads)
    if many.any():
        message = f"a barrier for {int(values[many][0])} threads; the block has {execution.block_threads}"
        raise barriers.fault(message, site, many)
    return values
