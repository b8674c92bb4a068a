"""Groups of asynchronous copies: what each thread has begun, committed, and not yet waited for (PTX ISA 9.7.10.28.1.1).

The copies themselves are done when they are issued. What remains to be tracked is which threads have waited for them;
without the check of races, nothing is tracked. A group is per thread, but one instruction begins copies of many threads,
which then mostly commit and wait together. So what is kept is a list of *batches*, the copies between two commits, with the
threads concerned: few vector operations a commit or a wait, however many threads.

    copy; commit; copy; commit; wait_group 1        threads     number of the group, in each thread
    batches:  first copy                            all         1   -> complete
              second copy                           all         2      still pending
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Active, IndexArray, Mask
from weft.emulator.memory.order import Agent

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution


@dataclass
class Batch:
    """Copies that were begun one after the other, of those threads that have not waited for them."""

    agent: Agent
    threads: Mask
    numbers: NDArray[np.int32] | None = None
    """Which group each thread has committed them to; None before they are."""
    sealed: bool = False
    """Whether further copies belong to another batch."""
    signalled: bool = False
    """Whether an mbarrier tracks them."""


class Groups:
    """The pending copies of all resident threads, of one kind: cp.async's, bulk copies', or wgmma's products."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.open: list[Batch] = []
        self.committed: list[Batch] = []
        self.count = np.zeros(execution.threads, np.int32)
        """How many groups each thread has committed."""

    @classmethod
    def of(cls, execution: Execution, kind: str) -> Groups:
        """The groups of the resident blocks; ``kind`` is "cp.async", "bulk" or "wgmma"."""
        return execution.extra(f"{kind} groups", lambda: cls(execution))

    def begin(self, active: Active, together: int = 1) -> Agent:
        """These threads begin copies, so many warps one of them ``together``: the agent they do it as."""
        last = self.open[-1] if self.open and not self.open[-1].sealed else None
        agent = self.execution.order.start(active.warps, together, last.agent if last else None)
        if last is None:
            self.open.append(Batch(agent, active.mask.copy()))
        else:
            last.threads = last.threads | active.mask
        return agent

    def commit(self, active: Active) -> None:
        """These threads put what they have begun into a new group."""
        self.count[active.mask] += 1
        rest: list[Batch] = []
        numbers: NDArray[np.int32] | None = None
        for batch in self.open:
            leaving = batch.threads & active.mask
            staying = batch.threads & ~active.mask
            if leaving.any():
                numbers = self.count.copy() if numbers is None else numbers
                self.committed.append(replace(batch, threads=leaving, numbers=numbers))
            if staying.any():
                rest.append(replace(batch, threads=staying, sealed=True))
        self.open = rest

    def wait(self, active: Active, pending: int) -> None:
        """These threads wait until at most ``pending`` of their groups, the latest, are incomplete."""
        latest = self.count - pending
        rest: list[Batch] = []
        for batch in self.committed:
            assert batch.numbers is not None
            done = batch.threads & active.mask & (batch.numbers <= latest)
            if done.any():
                self.execution.order.finish(batch.agent, warps=warps_of(done))
                batch.threads = batch.threads & ~done
                if not batch.threads.any():
                    continue
            rest.append(batch)
        self.committed = rest

    def signal(self, threads: IndexArray, key: Hashable) -> None:
        """Everything these threads have begun is complete for those who acquire the key.

        The threads themselves may still wait for it; but what a second mbarrier is told of they are taken to know, or a
        program that only ever waits for mbarriers would have more and more pending.
        """
        mask = np.zeros(self.execution.threads, np.bool_)
        mask[threads] = True
        order = self.execution.order

        def told(batch: Batch) -> bool:
            done = batch.threads & mask
            if done.any():
                order.finish(batch.agent, key, warps_of(done))
                if batch.signalled:
                    order.finish(batch.agent, warps=warps_of(done))
                    batch.threads = batch.threads & ~mask
                batch.signalled = batch.sealed = True
            return bool(batch.threads.any())

        self.committed = [batch for batch in self.committed if told(batch)]
        self.open = [batch for batch in self.open if told(batch)]


def warps_of(mask: Mask) -> IndexArray:
    """The warps that have a thread in the mask."""
    return Active(mask, full=False).warps
