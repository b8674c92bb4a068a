"""What steps cost in time: clocks of one multiprocessor, by the machine's own numbers (`machine`).

    price = the busiest pipe + exposed latency + spills

Pipes. All pipes work at the same time, so the busiest one decides: shuffles, wavefronts and ``redux.sync`` share one, permutes
have another, and every instruction has to be issued. Latency is what a block waits for in series: each exchange of lanes, each
round of loads, each barrier by its scope. Other resident blocks hide it; scratch that leaves fewer of them exposes more of it:

    exposed latency = latency x (resident blocks without the scratch / resident blocks with it)

Residency counts the registers of the conversion and what the rest of the kernel holds (`Room`). Registers that a plan needs
beyond what a thread may have are spilled: each is stored and loaded, a wavefront each time.

The numbers rank plans; they predict no time. What is not priced: what fewer resident blocks cost the rest of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from weft.layout.planning.accesses import Access
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.permutes import WORD_BITS
from weft.layout.planning.steps import Barrier, Cost, LaneExchange, Move, Parallel, Step, total, walk

OTHER_REGISTERS = 24
"""Registers of a thread that addresses and constants take."""


class Room(NamedTuple):
    """What the rest of the kernel holds while a conversion runs: bytes of shared memory of the block, registers of a thread."""

    shared: int = 0
    registers: int = 0


EMPTY = Room()
NOTHING = Cost()


def clocks(cost: Cost, machine: MachineModel, warps: int) -> float:
    """The clocks in which the busiest pipe does this for a block of ``warps``."""
    lanes = warps * machine.lanes
    rate = machine.throughput
    data = cost.shuffles * lanes / rate.shuffle_lanes + cost.wavefronts / rate.wavefronts
    if cost.reduces:
        data += cost.reduces * lanes / rate.reduce_lanes
    arithmetic = cost.permutes * lanes / rate.permute_lanes
    issue = cost.instructions * warps / rate.instructions
    return max(data, arithmetic, issue)


def latency(steps: Sequence[Step], machine: MachineModel) -> float:
    """The clocks that steps wait in series; loads between two barriers wait together."""
    waited, loading = 0.0, False
    for step in steps:
        if isinstance(step, Access) and not step.stores:
            loading = True
            continue
        if loading:
            waited, loading = waited + machine.latency.load, False
        if isinstance(step, LaneExchange):
            waited += machine.latency.shuffle
        elif isinstance(step, Barrier):
            waited += machine.latency.barrier(step.scope)
        elif isinstance(step, Parallel):
            halves = latency(step.stays, machine), latency(step.moves, machine)
            # What stays runs while what moves is under way; barriers of its own are waited for in series.
            apart = any(isinstance(inner, Barrier) for inner in walk(step.stays))
            waited += sum(halves) if apart else max(halves)
    return waited + (machine.latency.load if loading else 0)


@lru_cache(maxsize=64)
def memory_latency(machine: MachineModel, local: bool, rounds: int = 1) -> float:
    """The least `latency` of a way through memory: each round loads after a barrier, and rounds are apart by one more."""
    barriers = (2 * rounds - 1) * machine.latency.barrier("warp" if local else "block")
    return rounds * machine.latency.load + barriers


def words_of(registers: int, bits: int) -> int:
    """Words that 2^registers elements of a thread take."""
    return max(1, (bits << registers) // WORD_BITS)


def live_words(steps: Sequence[Step], registers: int, bits: int) -> int:
    """The most words of a thread in use at once, which holds 2^registers elements at first."""
    held, loaded, most = words_of(registers, bits), 0, words_of(registers, bits)
    storing = [number for number, step in enumerate(steps) if isinstance(step, Access) and step.stores]
    last = max(storing, default=-1)
    for number, step in enumerate(steps):
        if isinstance(step, Access) and not step.stores:
            loaded = words_of(len(step.addresses.registers), bits)
            most = max(most, loaded + (held if number < last else 0))
        elif isinstance(step, Move):
            held, loaded = words_of(len(step.registers), bits), 0
        elif isinstance(step, LaneExchange):
            held = words_of(step.registers, bits)
        most = max(most, held)
    return most


def exposure(scratch: int, words: int, machine: MachineModel, warps: int, room: Room = EMPTY) -> float:
    """How many times fewer blocks are resident because of ``scratch`` bytes; threads hold ``words`` for the conversion."""
    limits = machine.residency
    registers = min(limits.registers_per_thread, words + room.registers + OTHER_REGISTERS)
    without = limits.resident(warps, machine.lanes, room.shared, registers)
    with_scratch = limits.resident(warps, machine.lanes, room.shared + scratch, registers)
    return max(1, without) / max(1, with_scratch)


def memory_price(cost: Cost, machine: MachineModel, warps: int, *, local: bool, rounds: int) -> float:
    """The clocks of a way through memory that has a cost, but not these steps."""
    waited = memory_latency(machine, local, rounds) * exposure(cost.scratch, 0, machine, warps)
    return clocks(cost, machine, warps) + waited


def price(
    steps: Sequence[Step],
    machine: MachineModel,
    warps: int,
    *,
    registers: tuple[int, int] = (0, 0),
    bits: int = WORD_BITS,
    room: Room = EMPTY,
    base: Cost = NOTHING,
) -> float:
    """The clocks of a block of ``warps``; ``registers`` are the register bits of source and destination. ``base`` is done
    at the same time."""
    cost = total([step.cost for step in steps])
    waited = latency(steps, machine)
    if cost.scratch:
        words = words_of(registers[0], bits) + words_of(registers[1], bits)
        waited *= exposure(cost.scratch, words, machine, warps, room)
    live = live_words(steps, registers[0], bits) + room.registers + OTHER_REGISTERS
    held = max(words_of(registers[0], bits), words_of(registers[1], bits)) + room.registers + OTHER_REGISTERS
    spilled = max(0, live - max(held, machine.residency.registers_per_thread))
    return clocks(base + cost + Cost(wavefronts=2 * spilled * warps), machine, warps) + waited


def least_cost(elements: int, needed: int, bits: int, machine: MachineModel, warps: int) -> Cost:
    """What every plan costs in which everything goes through memory: one barrier, the block's ``elements`` stored once, the
    ``needed`` ones loaded by the lanes of each warp, as many bytes in a wavefront as the banks have. Lanes that want the same
    elements each load them (`ways.memory`)."""
    wavefront = machine.wavefront_bytes * 8
    wavefronts = -(-elements * bits // wavefront) + warps * -(-needed * bits // wavefront)
    return Cost(stores=1, loads=1, wavefronts=wavefronts, barriers=1)
