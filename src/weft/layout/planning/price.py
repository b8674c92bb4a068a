"""What a conversion costs in time: clocks of one multiprocessor, by a table.

One would rank plans by a rule (shuffles before memory, or at most one exchange by shuffles). Here all are counted (`Cost`), and
a table of throughputs turns counts into clocks. The pipes work at the same time, so the busiest one decides; barriers
are waited for.

    pipe         what passes through it                                   a clock
    data         lanes of shuffles, at 4 bytes; wavefronts of memory      32 lanes, or 1 wavefront
    arithmetic   lanes of permutes and selects                            64 lanes
    issue        instructions of a warp                                   4
    barrier      one, with the way through memory that it makes visible   1/32

The figures are the throughputs that NVIDIA's programming guide documents for compute capabilities 8.0 and 9.0 (32 results of
shuffles and 64 of 32-bit logic a clock, 4 schedulers, 128 bytes of shared memory), and for the barrier the latency of shared
memory, about 30 clocks. They rank plans; they predict no time.
"""

from __future__ import annotations

from weft.layout.planning.machine import MachineModel
from weft.layout.planning.steps import Cost


def clocks(cost: Cost, machine: MachineModel, warps: int) -> float:
    """The clocks that a block of ``warps`` spends on this cost."""
    lanes = warps * machine.lanes
    rate = machine.throughput
    data = cost.shuffles * lanes / rate.shuffle_lanes + cost.wavefronts / rate.wavefronts
    arithmetic = cost.permutes * lanes / rate.permute_lanes
    issue = cost.instructions * warps / rate.instructions
    return max(data, arithmetic, issue) + 32 * cost.barriers


def least_cost(elements: int, needed: int, bits: int, machine: MachineModel, warps: int) -> Cost:
    """What every plan costs in which everything goes through memory: one barrier, the block's ``elements`` stored once, the
    ``needed`` ones loaded by each warp, as many bytes in a wavefront as the banks have."""
    wavefront = machine.wavefront_bytes * 8
    wavefronts = -(-elements * bits // wavefront) + warps * -(-needed * bits // wavefront)
    return Cost(stores=1, loads=1, wavefronts=wavefronts, barriers=1)
