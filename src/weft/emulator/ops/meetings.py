"""The threads that have come to a block's barriers and not yet gone on: the tables behind `weft.emulator.ops.barrier`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import BarrierFault
from weft.emulator.machine.active import WARP, Active, IndexArray, Mask

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution


class Meeting:
    """One of the barriers, in all resident blocks: who has come and not yet gone on."""

    def __init__(self, execution: Execution, number: int) -> None:
        self.number = number
        threads = execution.threads
        self.present: Mask = np.zeros(threads, np.bool_)
        self.waits: Mask = np.zeros(threads, np.bool_)
        """Those of the present that wait; the others have only arrived."""
        self.site: IndexArray = np.zeros(threads, np.intp)
        """The instruction at which each present thread came."""
        self.expected: NDArray[np.int64] = np.zeros(execution.blocks, np.int64)
        """The thread count of each block's barrier; 0 means all threads."""
        self.predicate: Mask = np.zeros(threads, np.bool_)
        self.before: NDArray[np.int64] = np.zeros(execution.blocks, np.int64)
        """Threads that had arrived and have come again since: each arrival counts."""
        self.phase: NDArray[np.int64] = np.zeros(execution.blocks, np.int64)
        """How often each block's barrier has been complete."""


class Barriers:
    """The barriers of the resident blocks."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.meetings: dict[int, Meeting] = {}
        self.released: Mask = np.zeros(execution.threads, np.bool_)
        """Threads that were waiting, and may go on."""
        self.finishers: dict[int, Callable[[Mask, Mask, Active], None]] = {}
        """For each site of a reduction: what writes its result."""
        self._gone = -1

    @classmethod
    def of(cls, execution: Execution) -> Barriers:
        return execution.extra("barriers", lambda: cls(execution))

    def quiet(self, number: int) -> bool:
        """Whether no thread has come to a barrier."""
        meeting = self.meetings.get(number)
        return meeting is None or not meeting.present.any()

    def ready(self) -> Mask:
        """Those who waited and need not any more: threads that have ended since may have been the last to be waited for."""
        gone = int(np.count_nonzero(self.execution.exited))
        if gone != self._gone:
            self._gone = gone
            for meeting in self.meetings.values():
                if meeting.present.any():
                    self.settle(meeting)
        return self.released

    def come(self, site: int, number: int, active: Active, counts: NDArray[np.int64] | None, waits: bool) -> None:
        """Threads come to a barrier. ``counts`` (T,) is how many threads it is for; None is for all."""
        meeting = self.meetings.get(number)
        if meeting is None:
            meeting = self.meetings[number] = Meeting(self.execution, number)
        if (twice := active.mask & meeting.present).any():
            self._again(meeting, site, active, twice, counts is not None and waits)
        self._agree(meeting, site, active, counts)
        meeting.present |= active.mask
        meeting.site[active.mask] = site
        if waits:
            meeting.waits |= active.mask
            self.released &= ~active.mask
        else:
            # They go on: what counts is what they have done up to now.
            for key, warps in self._keys(meeting, active.warps):
                self.execution.order.release(key, warps)

    def _again(self, meeting: Meeting, site: int, active: Active, twice: Mask, may: bool) -> None:
        """Whole warps that arrived may come again to wait, at a barrier with a count (``may``): both count, as on hardware.
        Raises: BarrierFault, for others."""
        execution = self.execution
        warps = warps_of(twice)
        whole = not (execution.of_warps(twice) & ~execution.exited & ~(twice & active.mask)).any()
        if not may or (twice & meeting.waits).any() or not whole:
            message = f"a thread arrives at barrier {meeting.number} again before all others have come"
            raise self.fault(message, site, twice)
        np.add.at(meeting.before, execution.block[warps * WARP], WARP)

    def _agree(self, meeting: Meeting, site: int, active: Active, counts: NDArray[np.int64] | None) -> None:
        """Notes how many threads the barrier of each block is for; all must say the same."""
        blocks = self.execution.block
        here = np.zeros(self.execution.blocks, np.bool_)
        here[blocks[active.mask]] = True
        fresh = here & ~any_of(meeting.present.reshape(here.size, -1))
        wanted = np.zeros(self.execution.threads, np.int64) if counts is None else counts
        first = np.zeros(self.execution.blocks, np.int64)
        first[blocks[active.index[::-1]]] = wanted[active.index[::-1]]
        meeting.expected[fresh] = first[fresh]
        differ = active.mask & (wanted != meeting.expected[blocks])
        if differ.any():
            thread = int(differ.nonzero()[0][0])
            theirs = self._people(int(meeting.expected[blocks[thread]]))
            message = (
                f"barrier {meeting.number} is for {self._people(int(wanted[thread]))} here, and for {theirs} elsewhere"
            )
            raise self.fault(message, site, differ)

    @staticmethod
    def _people(count: int) -> str:
        return f"{count} threads" if count else "all threads"

    def settle(self, meeting: Meeting) -> Mask:
        """Lets those go on whose barrier is complete; the threads of these blocks who had come."""
        execution = self.execution
        blocks = execution.blocks
        present = meeting.present.reshape(blocks, -1, WARP)
        came = any_of(present)
        whole = came & all_of((meeting.present | execution.exited).reshape(present.shape))
        arrived = whole.sum(axis=1) * WARP + meeting.before
        all_threads = all_of((meeting.present | execution.exited).reshape(blocks, -1)) & any_of(came)
        done = np.where(meeting.expected == 0, all_threads, arrived == meeting.expected)
        if (over := (meeting.expected > 0) & (arrived > meeting.expected)).any():
            block = int(over.nonzero()[0][0])
            message = (
                f"{arrived[block]} threads come to barrier {meeting.number}, which is for {meeting.expected[block]}"
            )
            some = meeting.present & (execution.block == block)
            raise self.fault(message, int(meeting.site[some][0]), some)
        if not done.any():
            return np.zeros(execution.threads, np.bool_)
        members = meeting.present & (done[execution.block] if blocks > 1 else done[0])
        self._finish(meeting, members)
        return members

    def _finish(self, meeting: Meeting, members: Mask) -> None:
        leaving = members & meeting.waits
        execution = self.execution
        waiting = warps_of(leaving)
        if waiting.size:
            execution.order.barrier(waiting, waiting)
        if waiting.size and (members & ~leaving).any():
            for key, warps in self._keys(meeting, waiting):
                execution.order.acquire(key, warps)
        done = np.unique(execution.block[members])
        meeting.phase[done] += 1
        meeting.before[done] = 0
        sites: list[int] = np.unique(meeting.site[members]).tolist()
        for site in sites:
            if site in self.finishers:
                if not (meeting.site[members] == site).all() and not self._same_reduction(meeting, members):
                    message = f"barrier {meeting.number} is used for a reduction and for something else at once"
                    raise self.fault(message, site, members & (meeting.site == site))
                self.finishers[site](meeting.predicate, members, Active(leaving & (meeting.site == site), full=False))
        meeting.present &= ~members
        meeting.waits &= ~members
        meeting.predicate &= ~members
        self.released |= leaving
        execution.stir()

    def _keys(self, meeting: Meeting, warps: IndexArray) -> list[tuple[tuple[str, int, int, int], IndexArray]]:
        """What stands for the barrier of these warps' blocks, in the phase that it is in. (Four phases on, the name is used
        again: what was released then is known to whoever has come so far.)"""
        blocks = self.execution.block[warps * WARP]
        states = self.execution.grid.rank(blocks) * 4 + meeting.phase[blocks] % 4
        found: list[int] = np.unique(states).tolist()
        return [(("barrier", meeting.number, *divmod(state, 4)), warps[states == state]) for state in found]

    def _same_reduction(self, meeting: Meeting, members: Mask) -> bool:
        instructions = self.execution.program.instructions
        sites: list[int] = np.unique(meeting.site[members]).tolist()
        ignored = ("cta", "aligned")
        return len({tuple(m for m in instructions[site].modifiers if m not in ignored) for site in sites}) == 1

    def parted(self, site: int, active: Active) -> None:
        """Raises: BarrierFault, if lanes of these warps wait at another barrier instruction."""
        execution = self.execution
        for meeting in self.meetings.values():
            there = meeting.waits & (meeting.site != site)
            if not there.any():
                continue
            parted = there & execution.of_warps(active.mask)
            if parted.any():
                other = int(parted.nonzero()[0][0])
                line = execution.program.instructions[int(meeting.site[other])].line
                message = (
                    f"a warp is divided between two barriers: thread {execution.thread_of(other)} and "
                    f"{int(np.count_nonzero(parted)) - 1} more wait at the one at PTX line {line}"
                )
                raise self.fault(message, site, active.mask & execution.of_warps(parted))

    def why(self, meeting: Meeting, site: int) -> str:
        """Who waits at an instruction, for a program that goes on no more."""
        execution = self.execution
        waiting = (meeting.waits & (meeting.site == site)).reshape(execution.blocks, -1)
        blocks = waiting.any(axis=1).nonzero()[0]
        instruction = execution.program.instructions[site]
        if not blocks.size:
            return f"no thread waits at {instruction.name} any more"
        block = int(blocks[0])
        live = int(np.count_nonzero(~execution.exited.reshape(execution.blocks, -1)[block]))
        wanted = int(meeting.expected[block]) or live
        members = meeting.present.reshape(execution.blocks, -1)[block]
        came = int(np.count_nonzero(members) + meeting.before[block])
        name = execution.block_of(block * execution.block_threads)
        source = f" (source {instruction.source})" if instruction.source is not None else ""
        text = (
            f"block {name}: {came} of {wanted} threads have come to barrier {meeting.number}; "
            f"{int(np.count_nonzero(waiting[block]))} wait at {instruction.name}, PTX line {instruction.line}{source}"
        )
        alive = ~execution.exited.reshape(execution.blocks, -1, WARP)[block]
        lanes = members.reshape(-1, WARP)
        partial = lanes.any(axis=1) & (alive & ~lanes).any(axis=1)
        if partial.any():
            warp = int(partial.nonzero()[0][0])
            came, all_ = int(np.count_nonzero(lanes[warp])), int(np.count_nonzero(alive[warp]))
            text += f"; of warp {warp} only {came} of {all_} threads have come"
        if blocks.size > 1:
            text += f"; {blocks.size - 1} more blocks wait so"
        return text

    def fault(self, message: str, site: int, threads: Mask) -> BarrierFault:
        found = self.execution.fault(BarrierFault, message, site, int(threads.nonzero()[0][0]))
        assert isinstance(found, BarrierFault)
        return found


def warps_of(mask: Mask) -> IndexArray:
    """The warps that have a thread in the mask."""
    return any_of(mask.reshape(-1, WARP)).nonzero()[0]


def any_of(rows: Mask) -> Mask:
    """Whether there is one in each row."""
    found: Mask = np.logical_or.reduce(rows, axis=-1)
    return found


def all_of(rows: Mask) -> Mask:
    """Whether each row is full."""
    found: Mask = np.logical_and.reduce(rows, axis=-1)
    return found
