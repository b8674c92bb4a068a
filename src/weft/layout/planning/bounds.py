"""What a conversion costs at least, without planning it: masks of bits and ranks, microseconds.

A search over layouts asks for the price of many conversions and uses few. Bounds are strict: no plan of `plan_conversion` is
cheaper.

    needs       bound
    nothing     0
    registers   what renaming and selecting costs, or memory, whichever is less
    lanes       the least shuffles and one shuffle's latency, or memory, whichever is less
    warps       memory: all elements stored once and loaded once; or a half of them, while the other stays in its warp
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.needs import Places, crossing, least_shuffles, needs
from weft.layout.planning.price import clocks, least_cost, memory_latency, price
from weft.layout.planning.steps import Cost
from weft.layout.planning.ways.halves import halved
from weft.layout.planning.ways.lanes import rename


class Least(NamedTuple):
    """What no plan does better in."""

    price: float
    permutes: int


@lru_cache(maxsize=1 << 14)
def _places(layout: LinearLayout) -> Places:
    return Places.of(layout).first_copies


@lru_cache(maxsize=1 << 14)
def _stored(layout: LinearLayout, bits: int, machine: MachineModel) -> float:
    """The least clocks of the pipes where all elements go through memory into a layout."""
    return _through_memory(_places(layout), bits, machine)


@lru_cache(maxsize=1 << 16)
def least_conversion(source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel) -> Least:
    """Lower bounds of the price of `plan_conversion`, in clocks, and of its permutes."""
    a, b = _places(source), _places(destination)
    warps = 1 << len(a.warp)
    if crossing(a, b):
        pipes = _stored(destination, bits, machine)
        if a.warp != b.warp:
            pipes = min(pipes, _halves(a, b, bits, machine))
        return Least(pipes + memory_latency(machine, local=False), 0)
    match needs(a, b):
        case "nothing":
            return Least(0, 0)
        case "registers":
            step = rename(a, b, bits)
            registers = len(a.register), len(b.register)
            selected = price((step,), machine, warps, registers=registers, bits=bits)
            stored = _stored(destination, bits, machine) + memory_latency(machine, local=True)
            return Least(selected, step.permutes) if selected < stored else Least(stored, 0)
        case _:
            shuffles = least_shuffles(a, b, bits, machine.shuffle_bits)
            shuffled = _shuffled(shuffles, machine, warps) + machine.latency.shuffle
            return Least(min(shuffled, _stored(destination, bits, machine) + memory_latency(machine, local=True)), 0)


def _through_memory(b: Places, bits: int, machine: MachineModel) -> float:
    """The least clocks of the pipes where all elements go through memory."""
    needed = sum(map(bool, b.register)) + sum(map(bool, b.lane))
    return _memory(needed + sum(map(bool, b.warp)), needed, bits, machine, 1 << len(b.warp))


@lru_cache(maxsize=1024)
def _memory(elements: int, needed: int, bits: int, machine: MachineModel, warps: int) -> float:
    return clocks(least_cost(1 << elements, 1 << needed, bits, machine, warps), machine, warps)


@lru_cache(maxsize=1024)
def _shuffled(shuffles: int, machine: MachineModel, warps: int) -> float:
    return clocks(Cost(shuffles=shuffles), machine, warps)


def _halves(a: Places, b: Places, bits: int, machine: MachineModel) -> float:
    """The least clocks of the pipes where a half stays in its warp: shuffles and wavefronts share one. Infinite if none can."""
    found = halved(a, b, bits)
    if found is None:
        return float("inf")
    a, b = found.source, found.destination
    moved = _through_memory(b, bits, machine)
    if crossing(a, b):
        return moved + _halves(a, b, bits, machine)
    shuffles = least_shuffles(a, b, bits, machine.shuffle_bits) if needs(a, b) == "lanes" else 0
    return moved + _shuffled(shuffles, machine, 1 << len(a.warp))
