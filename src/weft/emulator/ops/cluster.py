"""barrier.cluster: the barrier of a cluster's blocks: arriving and waiting apart (PTX ISA 9.7.13.3).

A relaxed arrival releases what the warp had done at its last fence; fence.mbarrier_init is such a one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from weft.emulator.errors import BarrierFault
from weft.emulator.machine.active import Active, IndexArray, Mask
from weft.emulator.ops.forms import form
from weft.emulator.ops.meetings import all_of, any_of, warps_of
from weft.emulator.ops.registry import Destinations, Transfer, instruction

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution


class ClusterBarrier:
    """The barrier of each cluster."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.arrived: Mask = np.zeros(execution.threads, np.bool_)
        self.passed: Mask = np.zeros(execution.threads, np.bool_)
        """Threads that have arrived, whose phase is complete and who have not waited yet."""
        self.phase = np.zeros(execution.threads, np.int64)
        self.clusters = execution.blocks // execution.grid.cluster_size
        self.cluster = execution.block // execution.grid.cluster_size
        """The cluster of each thread."""

    @classmethod
    def of(cls, execution: Execution) -> ClusterBarrier:
        return execution.extra("cluster barrier", lambda: cls(execution))

    def settle(self) -> Mask:
        """Completes the phase of clusters all of whose threads have arrived or ended; who may pass."""
        here = self.arrived.reshape(self.clusters, -1)
        gone = self.execution.exited.reshape(self.clusters, -1)
        done = all_of(here | gone) & any_of(here)
        if done.any():
            members = self.arrived & done[self.cluster]
            self.passed |= members
            self.arrived &= ~members
            self.execution.stir()
        return self.passed

    def why(self, site: int) -> str:
        """Who has not arrived."""
        execution = self.execution
        size = execution.grid.cluster_size
        cluster = int(self.cluster[self.arrived.nonzero()[0][0]]) if self.arrived.any() else 0
        members = self.cluster == cluster
        came, live = np.count_nonzero(self.arrived[members]), np.count_nonzero(~execution.exited[members])
        instruction = execution.program.instructions[site]
        name = execution.block_of(cluster * size * execution.block_threads)
        blocks = "block" if size == 1 else f"the {size} blocks from"
        return (
            f"{blocks} {name}: {came} of {live} threads have arrived at the cluster's barrier, "
            f"others wait at {instruction.name}, PTX line {instruction.line}"
        )

    def keys(self, mask: Mask) -> list[tuple[tuple[str, int], IndexArray]]:
        """The keys of the threads' phases, and the warps of each."""
        found: list[tuple[tuple[str, int], IndexArray]] = []
        for parity in (0, 1):
            warps = warps_of(mask & (self.phase % 2 == parity))
            if warps.size:
                found.append((("cluster barrier", parity), warps))
        return found


@instruction("barrier.cluster.arrive")
def cluster_arrive(b: Binding) -> Callable[[Active], None]:
    """Arrives, and goes on."""
    f = form(b, cluster="cluster", op="arrive", semantics="? release relaxed", aligned="? aligned")
    b.count(0)
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        execution.counters.add(site, "barriers", active.warp_count)
        barrier = ClusterBarrier.of(execution)
        twice = active.mask & (barrier.arrived | barrier.passed)
        if twice.any():
            message = "a thread arrives at the cluster's barrier again before it has waited"
            raise execution.fault(BarrierFault, message, site, int(twice.nonzero()[0][0]))
        barrier.arrived |= active.mask
        barrier.phase[active.mask] += 1
        if f["semantics"] != "relaxed":
            for key, warps in barrier.keys(active.mask):
                execution.order.release(key, warps)
        else:
            for key, warps in barrier.keys(active.mask):
                execution.order.release_fenced(key, warps)
        barrier.settle()

    return step


@instruction("barrier.cluster.wait", transfer=True)
def cluster_wait(b: Binding) -> Transfer:
    """Waits until all threads have arrived."""
    form(b, cluster="cluster", op="wait", semantics="? acquire", aligned="? aligned")
    b.count(0)
    execution, site, following = b.execution, b.site, b.next

    def run(active: Active) -> Destinations:
        barrier = ClusterBarrier.of(execution)
        never = active.mask & ~(barrier.arrived | barrier.passed)
        if never.any():
            message = "a thread waits at the cluster's barrier without having arrived"
            raise execution.fault(BarrierFault, message, site, int(never.nonzero()[0][0]))
        going = active.narrow(barrier.settle())
        for key, warps in barrier.keys(going.mask):
            execution.order.acquire(key, warps)
        barrier.passed &= ~going.mask
        waiting = active.narrow(~going.mask)
        if waiting:
            # Woken, they execute this instruction again, and pass.
            execution.counters.executed(site, -waiting.warp_count, -waiting.count)
            execution.park(waiting, site, lambda: barrier.why(site), barrier.settle, site)
        return [(following, going)] if going else []

    return run
