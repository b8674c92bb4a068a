"""Scan plans: all prefixes along an axis of a distributed tensor, in registers, then lanes, then warps once.

Element i becomes ``x[0] . x[1] . .. x[i]``, or from the other end ``x[n-1] . .. x[i]``. The combine function is
associative; it need not commute, and operands keep their order.

The axis's bits, from the least significant on, lie in *runs* of register, lane or warp bits. Each run scans what the bits below
it have made, whose *totals* are their last prefixes:

    run                     what happens                                                    shuffles
    registers, the lowest   `Serial`: one after the other                                   none
    lanes, the lowest       `AcrossLane`: bit p of the lane takes the last prefix below;    r for each bit
                            `FromLane`, where the bits are neighbours: each lane takes the
                            prefix of the lane 1, 2, 4, .. before it
    any other               `Carry`: scan the totals t, shift by one, combine with all      t to spread totals over lanes,
                                                                                            t for each lane bit, t to shift
    warps and all above     the same, but totals go to all warps by one exchange through    t to spread them
                            shared memory; each warp scans them and takes its own

The exchange is a conversion to the layout that has the warps' bits in registers. So each thread loads the totals of
all warps once, in vectors, whatever the number of its registers.

    {register: [1,2], lane: [4,8,16,32,64], warp: [128,256]}: Serial over 4; Carry over 5 lane bits: 1 total a thread, 5 + 1
    shuffles; Carry over 2 warp bits: 1 shuffle spreads the total, each thread loads 4

Copies in registers are dropped first. Lanes that hold copies may take a share of the registers each, where that is cheaper.

Law: `ScanPlan.simulate` equals the prefixes of the tensor along the axis, in every copy. A block's part is scanned alone, so an
axis that is split among blocks is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from weft.layout.algebra import f2
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP, why_not_distributed
from weft.layout.memory.banks import BLOCK
from weft.layout.planning.choose import plan_conversion
from weft.layout.planning.combining import Combine, CombinePlan, CombineStep, Convert, combining_price, words
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.needs import Places
from weft.layout.planning.plan import ConversionPlan
from weft.layout.planning.steps import Cost, total

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Bit(NamedTuple):
    """Where a bit of the axis is: which bit of the register, lane or warp number."""

    dim: Literal["register", "lane", "warp"]
    at: int


def _numbers(bits: Sequence[Bit], shape: Sequence[int]) -> NDArray[Any]:
    """The number along the axis that these bits make, of each warp, lane and register."""
    import numpy as np

    index = dict(zip((WARP, LANE, REGISTER), np.indices(tuple(shape)), strict=True))
    number = np.zeros(tuple(shape), dtype=np.int64)
    for place, bit in enumerate(bits):
        number |= (index[bit.dim] >> bit.at & 1) << place
    return number


def _mask(bits: Sequence[Bit], dim: str) -> int:
    return sum(1 << bit.at for bit in bits if bit.dim == dim)


@dataclass(frozen=True)
class Serial(CombineStep):
    """Each thread scans its own registers over the register bits ``along``, lowest first."""

    along: tuple[int, ...]
    registers: int
    reverse: bool

    @property
    def cost(self) -> Cost:
        return Cost()

    @property
    def combines(self) -> int:
        return self.registers - (self.registers >> len(self.along))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The registers by their place along the axis, in the order in which they are combined. Registers at one place of two
        groups belong together."""
        mask = sum(1 << at for at in self.along)
        rest = [r for r in range(self.registers) if not r & mask]
        places = [sum((n >> i & 1) << at for i, at in enumerate(self.along)) for n in range(1 << len(self.along))]
        return tuple(tuple(r | place for r in rest) for place in (reversed(places) if self.reverse else places))

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        state = state.copy()
        for before, own in pairwise(self.groups):
            state[:, :, own] = combine(state[:, :, before], state[:, :, own])
        return state

    def __str__(self) -> str:
        return f"scan {1 << len(self.along)} registers"


@dataclass(frozen=True)
class AcrossLane(CombineStep):
    """Lanes with bit ``lane`` (without it, in reverse) combine each register with the last prefix of the lanes without it: that
    of the lane in which the bits ``below`` are all set (clear)."""

    lane: int
    below: int
    registers: int
    bits: int
    reverse: bool

    @property
    def cost(self) -> Cost:
        """A shuffle and a select for each word."""
        count = words(self.registers, self.bits)
        return Cost(shuffles=count, permutes=count)

    @property
    def combines(self) -> int:
        return self.registers

    @property
    def reads(self) -> tuple[int, int]:
        """The lane that is read from, as two masks: the bits of the own lane's number that are cleared, and those that are set
        then."""
        own = 1 << self.lane
        return (self.below, own) if self.reverse else (own, self.below)

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        import numpy as np

        lanes = np.arange(len(state[0]))
        cleared, put = self.reads
        last = lanes & ~cleared | put
        takes = (lanes >> self.lane & 1) == (0 if self.reverse else 1)
        return np.where(takes[None, :, None], combine(state[:, last], state), state)

    def __str__(self) -> str:
        return f"{self.cost.shuffles} shfl.idx to lanes {'without' if self.reverse else 'with'} {1 << self.lane}"


def _neighbours(along: Sequence[Bit]) -> tuple[int, int] | None:
    """The distance of elements that follow each other, in lanes, and how many lanes the run spans with those between; None where
    the bits are not neighbouring lane bits in order."""
    if not along or any(bit != Bit(LANE, along[0].at + place) for place, bit in enumerate(along)):
        return None
    return 1 << along[0].at, 1 << along[0].at + len(along)


@dataclass(frozen=True)
class FromLane(CombineStep):
    """Lanes combine each register with that of the lane ``distance`` below (above, in reverse), where that lane is of the same
    ``width`` lanes."""

    distance: int
    width: int
    registers: int
    bits: int
    reverse: bool

    @property
    def cost(self) -> Cost:
        """A shuffle and a select for each word."""
        count = words(self.registers, self.bits)
        return Cost(shuffles=count, permutes=count)

    @property
    def combines(self) -> int:
        return self.registers

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        import numpy as np

        lanes = np.arange(len(state[0]))
        before = lanes + (self.distance if self.reverse else -self.distance)
        takes = before // self.width == lanes // self.width
        source = np.where(takes, before, lanes)
        return np.where(takes[None, :, None], combine(state[:, source], state), state)

    def __str__(self) -> str:
        return f"{self.cost.shuffles} shfl.{'down' if self.reverse else 'up'} {self.distance}"


class Stop(NamedTuple):
    """Where the step to the element before may end: at lane bit ``lane`` (None: wherever it has got to). The element is in
    ``register`` of the lane whose number differs by ``flips``."""

    lane: int | None
    flips: int
    register: int


@dataclass(frozen=True)
class Shift(CombineStep):
    """Each element becomes the one before it along ``along`` (after it, in reverse); the first becomes the last, which no step
    uses.

    The step to the element before is a subtraction of 1: it goes through the bits that are 0 (1, in reverse), flips each, and
    ends with the first that is 1 (0). Bits of registers are known; at a bit of the lane it ends for some lanes and goes on for
    others (`stops`)."""

    along: tuple[Bit, ...]
    registers: int
    bits: int
    reverse: bool

    @property
    def cost(self) -> Cost:
        """Shuffles of the registers whose predecessor is in another lane: those at the end of the register bits below lanes."""
        lowest = next((at for at, bit in enumerate(self.along) if bit.dim == LANE), None)
        if lowest is None:
            return Cost()
        moved = words(self.registers >> lowest, self.bits)
        chosen = any(bit.dim == REGISTER for bit in self.along[lowest:])
        return Cost(shuffles=moved, permutes=moved * chosen)

    @property
    def neighbours(self) -> tuple[int, int] | None:
        """How many lanes before the element before is, and among how many lanes, where that is so for all."""
        return _neighbours(self.along)

    def stops(self, register: int) -> tuple[Stop, ...]:
        """Where the element before that of ``register`` is: a lane takes the first stop whose lane bit is set in its number
        (clear, in reverse), or else the last stop."""
        found: list[Stop] = []
        flips, source = 0, register
        for bit in self.along:
            if bit.dim == REGISTER:
                source ^= 1 << bit.at
                if (register >> bit.at & 1) != self.reverse:
                    return (*found, Stop(None, flips, source))
            else:
                flips ^= 1 << bit.at
                found.append(Stop(bit.at, flips, source))
        return (*found, Stop(None, flips, source))

    @property
    def combines(self) -> int:
        return 0

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        import numpy as np

        index = np.indices(state.shape)
        numbers = _numbers(self.along, state.shape)
        size = 1 << len(self.along)
        before = (numbers + (1 if self.reverse else -1)) % size
        source = {WARP: index[0], LANE: index[1].copy(), REGISTER: index[2].copy()}
        for place, bit in enumerate(self.along):
            source[bit.dim] = source[bit.dim] & ~(1 << bit.at) | (before >> place & 1) << bit.at
        return state[source[WARP], source[LANE], source[REGISTER]]

    def __str__(self) -> str:
        return f"shift by one, {self.cost.shuffles} shfl.idx" if self.cost.shuffles else "shift by one"


@dataclass(frozen=True)
class Carry(CombineStep):
    """Every element is combined with the totals of all before it along ``along``. Totals are the last prefixes over the bits
    ``below``, taken from lanes and registers; ``steps`` make of them the combination of those before."""

    below: tuple[Bit, ...]
    along: tuple[Bit, ...]
    steps: tuple[CombineStep, ...]
    registers: int
    bits: int
    reverse: bool

    @property
    def _totals(self) -> int:
        return self.registers >> _mask(self.below, REGISTER).bit_count()

    @property
    def cost(self) -> Cost:
        """Totals are spread by a shuffle for each word where lanes below have others; selects leave out the first."""
        spread = words(self._totals, self.bits) if _mask(self.below, LANE) else 0
        threads = any(bit.dim != REGISTER for bit in self.along)
        own = Cost(shuffles=spread, permutes=words(self.registers, self.bits) * threads)
        return own + total([step.cost for step in self.steps])

    @property
    def combines(self) -> int:
        registers = all(bit.dim == REGISTER for bit in self.along)
        own = self.registers - (self.registers >> len(self.along) if registers else 0)
        return own + sum(step.combines for step in self.steps)

    @property
    def lanes_below(self) -> int:
        """The bits of a lane's number that are set (cleared, in reverse) in that of the lane that has its totals."""
        return _mask(self.below, LANE)

    @property
    def totals(self) -> tuple[int, ...]:
        """The registers that hold totals."""
        mask = _mask(self.below, REGISTER)
        return tuple(r if self.reverse else r | mask for r in range(self.registers) if not r & mask)

    @property
    def total_of(self) -> tuple[int, ...]:
        """For each register the place in `totals` of what it is combined with."""
        mask = _mask(self.below, REGISTER)
        place = {r: at for at, r in enumerate(r for r in range(self.registers) if not r & mask)}
        return tuple(place[r & ~mask] for r in range(self.registers))

    @property
    def threads(self) -> tuple[int, int]:
        """The bits of ``along`` in the lane's and in the warp's number, as masks."""
        return _mask(self.along, LANE), _mask(self.along, WARP)

    def takes(self, register: int) -> bool | None:
        """Whether the register has anything before it: True, False, or None where it has in threads with a bit of `threads` set
        (clear, in reverse)."""
        mask = _mask(self.along, REGISTER)
        if register & mask != (mask if self.reverse else 0):
            return True
        return None if any(self.threads) else False

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        import numpy as np

        lanes = np.arange(len(state[0]))
        lanes = lanes & ~self.lanes_below if self.reverse else lanes | self.lanes_below
        totals = state[:, lanes][:, :, self.totals]
        for step in self.steps:
            totals = step.apply(totals, combine)
        before = totals[:, :, self.total_of]
        numbers = _numbers(self.along, state.shape)
        takes = numbers != ((1 << len(self.along)) - 1 if self.reverse else 0)
        return np.where(takes, combine(before, state), state)

    def __str__(self) -> str:
        inner = "; ".join(map(str, self.steps))
        return f"carry {self._totals} totals ({inner})"


@dataclass(frozen=True)
class ScanPlan(CombinePlan):
    """How a distributed tensor is scanned along ``axis``. The result has the source's layout."""

    source: LinearLayout
    axis: int
    reverse: bool
    reason: str

    @property
    def conversions(self) -> tuple[ConversionPlan, ...]:
        """The plans of all conversions, in order."""
        return tuple(step.plan for step in _walk(self.steps) if isinstance(step, Convert))


def _walk(steps: Sequence[CombineStep]) -> Iterator[CombineStep]:
    """All steps, and those within."""
    for step in steps:
        yield step
        if isinstance(step, Carry):
            yield from _walk(step.steps)


@dataclass(frozen=True)
class _Scan:
    """A scan to plan: the units of each place, and which units are the axis's, lowest first."""

    places: Places
    axis: f2.Matrix
    bits: int
    machine: MachineModel
    reverse: bool

    def bit(self, unit: int) -> Bit:
        if unit in self.places.register:
            return Bit("register", self.places.register.index(unit))
        if unit in self.places.lane:
            return Bit("lane", self.places.lane.index(unit))
        return Bit("warp", self.places.warp.index(unit))

    @property
    def registers(self) -> int:
        return 1 << len(self.places.register)

    def steps(self) -> list[CombineStep]:
        """The scan, run by run."""
        found: list[CombineStep] = []
        along = [self.bit(unit) for unit in self.axis]
        done = 0
        while done < len(along):
            rest = along[done:]
            if rest[0].dim == WARP:
                found.append(self._carry(along[:done], rest, self._through_memory(done)))
                break
            run = [bit for at, bit in enumerate(rest) if all(b.dim == rest[0].dim for b in rest[: at + 1])]
            if done == 0:
                found += self._lowest(run)
            else:
                inner = self._below(done)
                steps = [*inner._lowest([inner.bit(unit) for unit in self.axis[done : done + len(run)]])]
                steps.append(inner._shift(self.axis[done : done + len(run)]))
                found.append(self._carry(along[:done], run, steps))
            done += len(run)
        return found

    def _lowest(self, run: Sequence[Bit]) -> list[CombineStep]:
        """A run with nothing below it."""
        if run[0].dim == REGISTER:
            return [Serial(tuple(bit.at for bit in run), self.registers, self.reverse)]
        if neighbours := _neighbours(run):
            distance, width = neighbours
            return [
                FromLane(distance << step, width, self.registers, self.bits, self.reverse) for step in range(len(run))
            ]
        return [
            AcrossLane(bit.at, _mask(run[:at], LANE), self.registers, self.bits, self.reverse)
            for at, bit in enumerate(run)
        ]

    def _shift(self, units: Sequence[int]) -> Shift:
        return Shift(tuple(self.bit(unit) for unit in units), self.registers, self.bits, self.reverse)

    def _carry(self, below: Sequence[Bit], along: Sequence[Bit], steps: Sequence[CombineStep]) -> Carry:
        return Carry(tuple(below), tuple(along), tuple(steps), self.registers, self.bits, self.reverse)

    def _below(self, done: int) -> _Scan:
        """The scan of the totals over the lowest ``done`` bits: their registers are gone, their lanes hold copies."""
        gone = set(self.axis[:done])
        register = tuple(unit for unit in self.places.register if unit not in gone)
        lane = tuple(0 if unit in gone else unit for unit in self.places.lane)
        return replace(self, places=Places(register, lane, self.places.warp), axis=self.axis[done:])

    def _through_memory(self, done: int) -> list[CombineStep]:
        """Totals go to all warps, each of which scans them, and then takes what is before its own."""
        totals = self._below(done)
        moved = [unit for unit in totals.places.warp if unit in totals.axis]
        register = (*totals.places.register, *moved)
        warp = tuple(0 if unit in moved else unit for unit in totals.places.warp)
        whole = replace(totals, places=Places(register, totals.places.lane, warp))
        into = plan_conversion(_layout(totals.places), _layout(whole.places), self.bits, self.machine)
        back = plan_conversion(_layout(whole.places), _layout(totals.places), self.bits, self.machine)
        return [Convert(into), *whole.steps(), whole._shift(whole.axis), Convert(back)]


def _layout(places: Places) -> LinearLayout:
    """Places as the layout of a one-dimensional tensor that has their units only."""
    units = sorted({unit for columns in places for unit in columns if unit})
    at = {unit: 1 << bit for bit, unit in enumerate(units)} | {0: 0}
    columns = {dim: tuple(at[unit] for unit in of) for dim, of in zip((REGISTER, LANE, WARP), places, strict=True)}
    return LinearLayout.from_columns(columns, (("dim0", len(units)),))


def _check(source: LinearLayout, axis: int, bits: int, machine: MachineModel) -> None:
    if log2_exact(bits) is None or bits > 64:
        raise ValueError(f"plan_scan: bits is {bits}, expected a power of two from 1 to 64")
    if not 0 <= axis < len(source.shape):
        raise ValueError(f"plan_scan: axis {axis} is out of range for rank {len(source.shape)}")
    if unknown := [dim for dim in source.in_dims if dim not in (REGISTER, LANE, WARP, BLOCK)]:
        raise ValueError(
            f"plan_scan: the layout has input dimension {unknown[0]}, expected register, lane, warp or block"
        )
    if reason := why_not_distributed(source):
        raise ValueError(f"plan_scan: the layout is not distributed: {reason}")
    lanes = source.in_size(LANE) if LANE in source.in_dims else 1
    if lanes != machine.lanes:
        raise ValueError(f"plan_scan: the layout has {lanes} lanes, {machine.name} has {machine.lanes}")
    for bit, basis in enumerate(source.bases(BLOCK) if BLOCK in source.in_dims else ()):
        if basis[axis]:
            raise ValueError(
                f"plan_scan: basis {bit} of block is {basis}, along dim{axis}: blocks share no memory to scan through"
            )


@lru_cache(maxsize=1024)
def plan_scan(source: LinearLayout, axis: int, bits: int, machine: MachineModel, reverse: bool = False) -> ScanPlan:
    """The cheapest plan for the prefixes of a tensor of elements of ``bits``, distributed as ``source``, along ``axis``.

    ``reverse`` scans from the end. The result has the source's layout. `ValueError` says which argument is wrong.
    """
    _check(source, axis, bits, machine)
    below = sum(size for _, size in source.outputs[axis + 1 :])
    units = tuple(1 << below + bit for bit in range(source.outputs[axis][1]))
    given = Places.of(source)
    first = given.first_copies
    warps = 1 << len(given.warp)
    scan = _Scan(first, units, bits, machine, reverse)
    free = [unit for unit in reversed(first.register) if unit not in units]
    copies = [place for place, unit in enumerate(first.lane) if not unit]
    best: tuple[float, list[CombineStep], int] | None = None
    for count in range(min(len(free), len(copies)) + 1 if units else 1):
        shares = dict(zip(copies, free[:count], strict=False))
        places = Places(
            tuple(unit for unit in first.register if unit not in shares.values()),
            tuple(shares.get(place, unit) for place, unit in enumerate(first.lane)),
            first.warp,
        )
        steps = replace(scan, places=places).steps()
        steps = [*_conversion(given, places, scan), *steps, *_conversion(places, given, scan)] if steps else []
        price = combining_price(steps, bits, machine, warps)
        if best is None or price < best[0]:
            best = price, steps, count
    if best is None:
        raise ValueError("plan_scan: no way was found")
    price, steps, count = best
    what = " then ".join(dict.fromkeys(scan.bit(unit).dim for unit in units)) or "nothing"
    shared = f", {1 << count} copies take a share each" if count else ""
    return ScanPlan(tuple(steps), source, axis, reverse, f"along {what}{shared}: {price:.0f} clocks")


def _conversion(before: Places, after: Places, scan: _Scan) -> list[CombineStep]:
    """The conversion between two layouts that differ in copies, if there is any."""
    if before == after:
        return []
    return [Convert(plan_conversion(_layout(before), _layout(after), scan.bits, scan.machine))]
