"""Instructions that the lanes of a warp execute together: which lanes must take part, and bar.warp.sync, activemask, elect.

A ``.sync`` instruction names lanes by a mask, in a register, and waits until all of them that have not exited execute it.
They may come by different ways, so lanes that are early are parked (`Execution.converge`). What the ISA calls undefined is a
fault: a lane that its own mask does not name, and lanes that name each other with different masks.

Lanes with different masks are different groups, and a lane may be named by a group that it joins later.

bar.warp.sync alone may be met at different places: lanes at two of them release each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import ALL_LANES, WARP, Active, Mask, alike, same_masks
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Destinations, Step, Transfer, instruction, masked
from weft.emulator.ptx.syntax import Pair
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

Words = NDArray[np.uint32]


def member_mask(b: Binding, operand: int) -> tuple[Words, int | None]:
    """A mask operand: (T,) masks, a view of the register; and the mask itself if it is a constant."""
    found: NDArray[Any] = b.read(operand, TYPES["u32"])
    if found.ndim:
        return found, None
    return np.full(b.execution.threads, found), int(found)


def collective(b: Binding, operand: int, step: Step) -> Transfer:
    """A ``.sync`` instruction: the step is executed for warps whose lanes, as named by the mask operand, are all here."""
    members, constant = member_mask(b, operand)
    execution, site, following = b.execution, b.site, b.next

    def run(active: Active) -> Destinations:
        if constant == ALL_LANES and (active.full or _complete(execution, active)):
            step(active)
            return [(following, active)]
        active = execution.unpark(site, active)
        if constant != ALL_LANES:
            named(b, active, members)
        if constant is None:
            agree(b, active, members)
        active = execution.converge(active, site, members)
        if not active:
            return []
        step(active)
        return [(following, active)]

    return run


def _complete(execution: Execution, active: Active) -> bool:
    """Whether every warp that has a lane in the set has all its living ones there."""
    there = active.lanes
    return bool(((there | execution.exited.reshape(-1, WARP)).all(axis=1) | ~there.any(axis=1)).all())


def named(b: Binding, active: Active, members: Words) -> None:
    """Raises: Undefined, unless each thread's mask has its own lane."""
    execution = b.execution
    outside = active.mask & ((members >> execution.lane.astype(np.uint32)) & np.uint32(1) == 0)
    if outside.any():
        thread = int(outside.nonzero()[0][0])
        message = (
            f"lane {thread % WARP} executes it with the mask 0x{members[thread]:08x}, which does not name that lane"
        )
        raise execution.fault(Undefined, message, b.site, thread)


def agree(b: Binding, active: Active, members: Words) -> None:
    """Raises: Undefined, if lanes name each other and have different masks: each would wait for the other for ever. A lane that
    is named and does not name in return may come again, with the other mask."""
    if one_mask(active, members):
        return
    execution = b.execution
    rows = members.reshape(-1, WARP)
    theirs = ((rows[:, :, None] >> np.arange(WARP, dtype=np.uint32)) & np.uint32(1) != 0) & active.lanes[:, :, None]
    differ = theirs & theirs.transpose(0, 2, 1) & (rows[:, :, None] != rows[:, None, :])
    if differ.any():
        warp, lane, other = (int(place[0]) for place in differ.nonzero())
        message = (
            f"lane {lane} executes it with the mask 0x{rows[warp, lane]:08x}, "
            f"lane {other}, which that names, with the mask 0x{rows[warp, other]:08x}"
        )
        raise execution.fault(Undefined, message, b.site, warp * WARP + lane)


def one_mask(active: Active, members: Words) -> bool:
    """Whether in each warp all active lanes have the same mask."""
    return same_masks(active.lanes, members.reshape(-1, WARP))


def per_warp(words: Words) -> Words:
    """Values of warps as values of their threads."""
    return np.repeat(words, WARP)


@instruction("activemask")
def activemask(b: Binding) -> Step:
    form(b, type="b32")
    d = b.write(0, TYPES["b32"])
    return lambda active: masked(d, per_warp(active.ballots), active)


@instruction("elect.sync", transfer=True)
def elect(b: Binding) -> Transfer:
    """The leader is the lowest lane there is of those the mask names."""
    form(b, sync="sync")
    results = b.operand(0)
    if not isinstance(results, Pair):
        b.wrong("elect.sync has two results, d|p")
    execution = b.execution
    d, p = b.write(results.first, TYPES["u32"]), b.write(results.second, TYPES["pred"])
    members, _ = member_mask(b, 1)

    def step(active: Active) -> None:
        there = per_warp(active.ballots) & members
        lowest = np.bitwise_count((there & (~there + np.uint32(1))) - np.uint32(1))
        masked(d, lowest, active)
        masked(p, lowest == execution.lane, active)

    return collective(b, 1, step)


class WarpBarrier:
    """Who waits at bar.warp.sync, wherever in the program, and who may leave it."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.waiting: Mask = np.zeros(execution.threads, np.bool_)
        self.released: Mask = np.zeros(execution.threads, np.bool_)
        self.members: Words = np.zeros(execution.threads, np.uint32)

    @property
    def empty(self) -> bool:
        return not self.waiting.any()

    def arrive(self, active: Active, members: Words) -> None:
        """Threads come, with their masks."""
        self.waiting |= active.mask
        self.released &= ~active.mask
        self.members[active.index] = members[active.index]

    def release(self) -> Mask:
        """Lets those go whose named lanes all wait or have exited; whoever has been let go since they came last."""
        execution = self.execution
        if self.waiting.any():
            here = alike(self.waiting, self.members) | Active(execution.exited, full=False).ballots[execution.warp]
            done = self.waiting & (self.members & ~here == 0)
            if done.any():
                self.waiting &= ~done
                self.released |= done
                if execution.order.active:
                    self._tell(done)
                execution.stir()
        return self.released

    def _tell(self, done: Mask) -> None:
        """These threads are let go together with whom their masks name."""
        masks: list[int] = np.unique(self.members[done]).tolist()
        for mask in masks:
            some = done if len(masks) == 1 else done & (self.members == mask)
            self.execution.order.synchronise(Active(some, full=False).warps, mask)

    def why(self, active: Active) -> str:
        """What the first of these threads waits for."""
        thread = int(active.index[0])
        exited = Active(self.execution.exited, full=False).ballots[thread // WARP]
        missing = int(self.members[thread]) & ~int(alike(self.waiting, self.members)[thread] | exited)
        return (
            f"lane {thread % WARP} of a warp waits at bar.warp.sync with the mask 0x{self.members[thread]:08x}; "
            f"lanes 0x{missing:08x} of it never come"
        )


@instruction("bar.warp.sync", transfer=True)
def warp_barrier(b: Binding) -> Transfer:
    form(b, level="warp", sync="sync")
    b.count(1)
    execution, site, following = b.execution, b.site, b.next
    members, constant = member_mask(b, 0)

    def run(active: Active) -> Destinations:
        if constant == ALL_LANES and (active.full or _complete(execution, active)):
            execution.order.synchronise(active.warps)
            return [(following, active)]
        named(b, active, members)
        barrier = execution.extra("bar.warp.sync", lambda: WarpBarrier(execution))
        barrier.arrive(active, members)
        leaving = active.narrow(barrier.release())
        staying = active.narrow(~leaving.mask)
        if staying:
            execution.park(staying, following, lambda: barrier.why(staying), barrier.release, site)
        return [(following, leaving)] if leaving else []

    return run
