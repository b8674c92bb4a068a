"""Groups of asynchronous copies: what each thread has begun, committed, and not yet waited for (PTX ISA 9.7.10.28.1.1).

The copies themselves are done when they are issued; what is left of them is who may rely on it, and where races are not
checked there is nothing left. A group is per thread, but one instruction begins copies of many threads, which then mostly
commit and wait together. So what is kept is a list of *batches*, one per instruction executed, with the threads concerned: few
vector operations a commit or a wait, however many threads.

    copy; commit; copy; commit; wait_group 1        threads     number of the group, in each thread
    batches:  first copy                            all         1   -> complete
              second copy                           all         2      still pending
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Active, Index, Mask
from weft.emulator.memory.order import Agent

if TYPE_CHECKING:
    from weft.emulator.machine.machine import Machine


@dataclass
class Batch:
    """Copies that one instruction began, of those threads that have not waited for them."""

    agent: Agent
    threads: Mask
    numbers: NDArray[np.int32] | None = None
    """Which group each thread has committed them to; None before they are."""


class Groups:
    """The pending copies of all threads of a machine, of one of the two kinds: cp.async's, or bulk copies'."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.open: list[Batch] = []
        self.committed: list[Batch] = []
        self.count = np.zeros(machine.threads, np.int32)
        """How many groups each thread has committed."""

    @classmethod
    def of(cls, machine: Machine, kind: str) -> Groups:
        """The groups of the resident blocks; ``kind`` is "cp.async" or "bulk"."""
        return machine.extra(f"{kind} groups", lambda: cls(machine))

    def begin(self, agent: Agent, active: Active) -> None:
        """These threads have begun copies."""
        self.open.append(Batch(agent, active.mask.copy()))

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
                self.committed.append(Batch(batch.agent, leaving, numbers))
            if staying.any():
                batch.threads = staying
                rest.append(batch)
        self.open = rest

    def wait(self, active: Active, pending: int) -> None:
        """These threads wait until at most ``pending`` of their groups, the latest, are incomplete."""
        latest = self.count - pending
        rest: list[Batch] = []
        for batch in self.committed:
            assert batch.numbers is not None
            done = batch.threads & active.mask & (batch.numbers <= latest)
            if done.any():
                self.machine.order.finish(batch.agent, warps=warps_of(done))
                batch.threads = batch.threads & ~done
                if not batch.threads.any():
                    continue
            rest.append(batch)
        self.committed = rest

    def signal(self, threads: Index, key: Hashable) -> None:
        """Everything these threads have begun is complete for those who acquire the key (they themselves may still wait)."""
        mask = np.zeros(self.machine.threads, np.bool_)
        mask[threads] = True
        for batch in (*self.committed, *self.open):
            done = batch.threads & mask
            if done.any():
                self.machine.order.finish(batch.agent, key, warps_of(done))


def warps_of(mask: Mask) -> Index:
    """The warps that have a thread in the mask."""
    return Active(mask, full=False).warps
