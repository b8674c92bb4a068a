"""What a conversion costs at least, without planning it: masks of bits and ranks, microseconds.

A search over layouts asks for the price of many conversions and uses few. Bounds are strict: no plan of `plan_conversion` is
cheaper.

    needs       bound
    nothing     0
    registers   what renaming and selecting costs, or memory, whichever is less
    lanes       the least shuffles and one shuffle's latency, or memory, whichever is less
    warps       memory: all elements stored once, and loaded by each lane that wants them; or a half of them, while the other
                stays in its warp
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.needs import Places, crosses_lanes, crossing, least_shuffles
from weft.layout.planning.price import clocks, least_cost, memory_latency
from weft.layout.planning.steps import Cost
from weft.layout.planning.ways.halves import cut, halved
from weft.layout.planning.ways.lanes import rename


class Least(NamedTuple):
    """What no plan does better in."""

    price: float
    permutes: int


class _Side(NamedTuple):
    """A layout without copies in registers, and log2 of the elements that memory holds of it and of those that a warp loads."""

    places: Places
    elements: int
    loaded: int

    @classmethod
    def of(cls, places: Places) -> _Side:
        register, lane, warp = places
        registers = len(register)
        return cls(places, registers + sum(map(bool, lane)) + sum(map(bool, warp)), registers + len(lane))


@lru_cache(maxsize=1 << 14)
def _side(layout: LinearLayout) -> _Side:
    return _Side.of(Places.of(layout).first_copies)


@lru_cache(maxsize=1 << 16)
def least_conversion(source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel) -> Least:
    """Lower bounds of the price of `plan_conversion`, in clocks, and of its permutes. They hold for layouts without copies in
    registers, as the solver's are: which copy a plan takes may save it permutes."""
    a, (b, elements, loaded) = _side(source).places, _side(destination)
    prices = _prices(bits, machine, 1 << len(a.warp))
    stored = prices.stored(elements, loaded)
    if across := crossing(a, b):
        return Least(prices.halves(a, b, across, elements, stored) + prices.block_latency, 0)
    if a == b:
        return Least(0, 0)
    stored += prices.warp_latency
    if crosses_lanes(a, b):
        return Least(min(stored, prices.shuffled(a, b) + machine.latency.shuffle), 0)
    permutes = rename(a, b, bits).permutes
    # A step that only rearranges registers waits for nothing, and holds no more than source and destination.
    selected = prices.pipes(Cost(permutes=permutes))
    return Least(selected, permutes) if selected < stored else Least(stored, 0)


class _Prices:
    """The prices of parts of conversions, for elements of some width on a machine; answers are kept."""

    def __init__(self, bits: int, machine: MachineModel, warps: int):
        self.block_latency = memory_latency(machine, local=False)
        self.warp_latency = memory_latency(machine, local=True)
        self._bits, self._machine, self._warps = bits, machine, warps
        self._stored: dict[tuple[int, int], float] = {}
        self._shuffled: dict[int, float] = {}

    def pipes(self, cost: Cost) -> float:
        """The clocks of the busiest pipe."""
        return clocks(cost, self._machine, self._warps)

    def stored(self, elements: int, loaded: int) -> float:
        """The least clocks of the pipes where 2^``elements`` go through memory, of which each warp loads 2^``loaded``."""
        found = self._stored.get((elements, loaded))
        if found is None:
            least = least_cost(1 << elements, 1 << loaded, self._bits, self._machine, self._warps)
            found = self._stored[elements, loaded] = self.pipes(least)
        return found

    def shuffled(self, a: Places, b: Places) -> float:
        """The least clocks of the pipes for shuffles."""
        count = least_shuffles(a, b, self._bits, self._machine.shuffle_bits)
        found = self._shuffled.get(count)
        if found is None:
            found = self._shuffled[count] = self.pipes(Cost(shuffles=count))
        return found

    def halves(self, a: Places, b: Places, across: int, elements: int, to_beat: float) -> float:
        """The least clocks of the pipes where a half stays in its warp: shuffles and wavefronts share one. ``to_beat`` if that
        is less, or where no half can stay. ``across``: the bits that cross warps; ``elements``: log2 of those in memory."""
        at = cut(a, b, self._bits)
        if at is None:
            return to_beat
        # A bit leaves the registers and enters the warps, where there may have been copies.
        elements -= bool(at.into)
        moved = self.stored(elements, len(b.register) - 1 + len(b.lane))
        # Barriers of the half that stays are waited for in series.
        twice = moved + self.block_latency
        if moved >= to_beat or (across & ~(at.out | at.into) and twice >= to_beat):
            return to_beat
        _, a, b = halved(a, b, at)
        if across := crossing(a, b):
            return twice + self.halves(a, b, across, elements, to_beat - twice) if twice < to_beat else to_beat
        return min(to_beat, moved + (self.shuffled(a, b) if a != b and crosses_lanes(a, b) else 0))


@lru_cache(maxsize=64)
def _prices(bits: int, machine: MachineModel, warps: int) -> _Prices:
    return _Prices(bits, machine, warps)
