"""Reduction plans: one result for each line of a distributed tensor along an axis, in registers, then lanes, then warps.

The combine function is associative and commutative, as Triton's ``reduce`` assumes: partial results are combined in any order.

    where the axis's bits are   what happens                                        shuffles
    registers                   a thread combines its own (`InThread`)              none
    lanes                       `Butterfly`: all r registers with a partner's       r for each of a bits: r a
                                `Halve`: half of them, the partner has the rest     r/2 + r/4 + ..: r (1 - 2^-a)
                                `Redux`: one instruction over all lanes             none; r instructions
    copies, before lanes        each copy keeps a share: selected, not sent         none
    warps                       one exchange through shared memory, then `InThread` none

Recursive halving leaves the results scattered: lane bit p, which was the axis's, now tells registers of the result apart. A
consumer that takes them so (a store, a conversion to one row for each lane) gives that layout as ``result``. Where it wants
the copies that `weft.layout.reduce` has, a conversion follows; halving and sending back take 2 r (1 - 2^-a) shuffles,
which is less than r a for a > 1.

The exchange is a conversion. Partial results are a tensor with one more dimension, ``part``, whose bits are the axis's bits in
warps; the destination has them in registers. So `plan_conversion` chooses vectors, swizzles and who stores copies, and
its destination is ``result`` itself: no other conversion follows. Where the result has many copies, each warp may instead load a
share, combine it, and a second exchange makes the copies.

    32 x 8 words, axis 0; {register: [(0,1),(0,2),(0,4)], lane: [(1,0),..,(16,0)]}: r = 8, a = 5
    scattered over 8 lanes, {lane: [1,2,4,0,0]}:  Halve 3 times, 4 + 2 + 1 shuffles, Butterfly 2 times, 1 + 1

Law: `ReducePlan.simulate` equals the reduction of the tensor, in every copy.

Not covered: ``redux.sync`` over half of the lanes, combine functions that do not commute, and an axis that is split among blocks,
which is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from weft.layout.algebra import f2
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families import transfer
from weft.layout.families.distributed import LANE, REGISTER, WARP, sliced, why_not_distributed
from weft.layout.memory.banks import BLOCK
from weft.layout.planning.choose import plan_conversion
from weft.layout.planning.combining import Combine, CombinePlan, CombineStep, Convert, combining_price, words
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.permutes import WORD_BITS
from weft.layout.planning.steps import Cost, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART = "part"


def _insert(number: int, at: int, bit: int) -> int:
    """A number with a bit inserted at a place; those above move up."""
    low = (1 << at) - 1
    return (number & ~low) << 1 | bit << at | number & low


@dataclass(frozen=True)
class InThread(CombineStep):
    """Result register i of a thread is the combination of its registers ``kept i ^ s`` for all sums s of ``combined``."""

    kept: f2.Matrix
    combined: f2.Matrix
    bits: int

    @property
    def cost(self) -> Cost:
        """Permutes where elements of one word are combined: two make the operands of each packed result."""
        inside = [mask for mask in self.combined if mask * self.bits < WORD_BITS]
        count = sum(2 * words(1 << (len(self.kept) + at), self.bits) for at, _ in enumerate(inside))
        return Cost(permutes=count)

    @property
    def combines(self) -> int:
        return ((1 << len(self.combined)) - 1) << len(self.kept)

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        kept, sums = table(self.kept), table(self.combined)
        result = state[:, :, kept]
        for other in sums[1:]:
            result = combine(result, state[:, :, kept ^ other])
        return result

    def __str__(self) -> str:
        return f"combine {1 << len(self.combined)} registers into each of {1 << len(self.kept)}"


@dataclass(frozen=True)
class Butterfly(CombineStep):
    """Each lane combines its ``registers`` with those of the lane whose number differs in bit ``lane``."""

    lane: int
    registers: int
    bits: int

    @property
    def cost(self) -> Cost:
        return Cost(shuffles=words(self.registers, self.bits))

    @property
    def combines(self) -> int:
        return self.registers

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        import numpy as np

        return combine(state, state[:, np.arange(state.shape[1]) ^ 1 << self.lane])

    def __str__(self) -> str:
        return f"{self.cost.shuffles} shfl.bfly {1 << self.lane}"


@dataclass(frozen=True)
class Halve(CombineStep):
    """Each lane keeps the half of its ``registers`` in which bit ``bit`` equals bit ``lane`` of its number, and combines it
    with what the lane across ``lane`` has of that half. Register bit ``bit`` is gone."""

    lane: int
    bit: int
    registers: int
    bits: int

    @property
    def cost(self) -> Cost:
        """A shuffle for each word of the half, one select to offer it and one to keep the other."""
        moved = words(self.registers // 2, self.bits)
        return Cost(shuffles=moved, permutes=2 * moved)

    @property
    def combines(self) -> int:
        return self.registers // 2

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        import numpy as np

        lanes: NDArray[Any] = np.arange(len(state[0]))
        half = range(state.shape[2] // 2)
        mine = np.array([[_insert(i, self.bit, lane >> self.lane & 1) for i in half] for lane in range(len(lanes))])
        kept = state[:, lanes[:, None], mine]
        sent = state[:, lanes[:, None], mine ^ 1 << self.bit]
        return combine(kept, sent[:, lanes ^ 1 << self.lane])

    def __str__(self) -> str:
        return f"{self.cost.shuffles} shfl.bfly {1 << self.lane} of half the registers"


@dataclass(frozen=True)
class Redux(CombineStep):
    """Each of a thread's ``registers`` is combined with those of all other lanes, by an instruction on integers of 32 bits. All
    lanes have the results."""

    registers: int
    bits: int

    @property
    def cost(self) -> Cost:
        """Narrower integers are taken out of their words and widened before, and packed after."""
        return Cost(reduces=self.registers, permutes=2 * self.registers if self.bits < WORD_BITS else 0)

    @property
    def combines(self) -> int:
        return 0

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        result = state[:, :1]
        for lane in range(1, state.shape[1]):
            result = combine(result, state[:, lane : lane + 1])
        return result.repeat(state.shape[1], 1)

    def __str__(self) -> str:
        return f"{self.registers} redux.sync"


@dataclass(frozen=True)
class ReducePlan(CombinePlan):
    """How a distributed tensor is reduced into the layout ``result``."""

    result: LinearLayout
    reason: str


@dataclass(frozen=True)
class _Partial:
    """Partial results: for each bit of registers, lanes and warps the bit of the result tensor that it moves, or 0; and the
    places of lanes and warps that are the axis's still."""

    register: f2.Matrix
    lane: f2.Matrix
    warp: f2.Matrix
    block: f2.Matrix
    outputs: tuple[tuple[str, int], ...]
    axis_lanes: tuple[int, ...]
    axis_warps: tuple[int, ...]

    def layout(self, parts: bool = False) -> LinearLayout:
        """As a layout of the result tensor; with ``parts``, its last dimension is the axis's part in warps and lanes. Without it
        partial results look like copies of one another."""
        places = [*((WARP, place) for place in self.axis_warps), *((LANE, place) for place in self.axis_lanes)]
        bits = len(places) if parts else 0
        found = {REGISTER: self.register, LANE: self.lane, WARP: self.warp}
        parts_at = {place: 1 << part for part, place in enumerate(places[:bits])}
        columns = {
            dim: tuple(parts_at.get((dim, at), unit) for at, unit in enumerate(_up(units, bits)))
            for dim, units in found.items()
        }
        if self.block:
            columns[BLOCK] = _up(self.block, bits)
        return LinearLayout.from_columns(columns, (*self.outputs, *([(PART, bits)] if parts else [])))

    def halved(self, place: int, unit: int) -> _Partial:
        """A register bit's unit now at a lane place."""
        lane = tuple(unit if at == place else column for at, column in enumerate(self.lane))
        axis = tuple(at for at in self.axis_lanes if at != place)
        return replace(self, register=tuple(u for u in self.register if u != unit), lane=lane, axis_lanes=axis)


def _up(columns: Sequence[int], bits: int) -> f2.Matrix:
    return tuple(column << bits for column in columns)


def _columns(layout: LinearLayout, dim: str) -> f2.Matrix:
    return layout.columns(dim) if dim in layout.in_dims else ()


def _in_thread(source: LinearLayout, axis: int, bits: int) -> tuple[InThread, _Partial]:
    """The first step: without copies in registers, and with the axis's registers combined."""
    below = sum(size for _, size in source.outputs[axis + 1 :])
    mask = (source.shape[axis] - 1) << below
    registers = _columns(source, REGISTER)
    kept = tuple(1 << bit for bit, unit in enumerate(registers) if unit and not unit & mask)
    combined = tuple(1 << bit for bit, unit in enumerate(registers) if unit & mask)
    rest = sliced(source, axis)
    partial = _Partial(
        _columns(rest, REGISTER),
        _columns(rest, LANE),
        _columns(rest, WARP),
        _columns(rest, BLOCK),
        rest.outputs,
        tuple(place for place, unit in enumerate(_columns(source, LANE)) if unit & mask),
        tuple(place for place, unit in enumerate(_columns(source, WARP)) if unit & mask),
    )
    return InThread(kept, combined, bits), partial


def _spreads(partial: _Partial, result: LinearLayout) -> Iterator[tuple[tuple[int, int], ...]]:
    """Which units of registers go to which lane places: none; those that the result has there; then more, copies first."""
    copies = [p for p, unit in enumerate(partial.lane) if not unit and p not in partial.axis_lanes]
    wanted = _columns(result, LANE)
    matched = [(p, wanted[p]) for p in (*copies, *partial.axis_lanes) if wanted[p] in partial.register]
    yield ()
    if matched:
        yield tuple(matched)
    taken = {p for p, _ in matched}
    # The highest registers, so that whole words move.
    units = [unit for unit in reversed(partial.register) if unit not in {unit for _, unit in matched}]
    for places in (
        [p for p in partial.axis_lanes if p not in taken],
        [p for p in (*copies, *partial.axis_lanes) if p not in taken],
    ):
        for count in range(1, min(len(places), len(units)) + 1):
            yield (*matched, *zip(places[:count], units[:count], strict=True))


def _within_warps(
    start: _Partial, spread: tuple[tuple[int, int], ...], bits: int, machine: MachineModel, redux: bool
) -> tuple[list[CombineStep], _Partial]:
    """Copies take their shares, then the lanes of the axis are combined, by halving where ``spread`` says so; with ``redux`` by
    one instruction where all lanes remain."""
    steps: list[CombineStep] = []
    partial = start
    for place, unit in spread:
        if place not in start.axis_lanes:
            partial = partial.halved(place, unit)
    if partial != start:
        steps.append(Convert(plan_conversion(start.layout(parts=True), partial.layout(parts=True), bits, machine)))
    for place, unit in spread:
        if place in start.axis_lanes:
            register = partial.register.index(unit)
            steps.append(Halve(place, register, 1 << len(partial.register), bits))
            partial = partial.halved(place, unit)
    if redux and 1 << len(partial.axis_lanes) == machine.lanes:
        return [*steps, Redux(1 << len(partial.register), bits)], replace(partial, axis_lanes=())
    steps += [Butterfly(place, 1 << len(partial.register), bits) for place in partial.axis_lanes]
    return steps, replace(partial, axis_lanes=())


def _across(partial: _Partial, destination: LinearLayout, bits: int, machine: MachineModel) -> list[CombineStep]:
    """The partial results of all warps, exchanged so that each thread has all parts of its results, and combined."""
    parts = len(partial.axis_warps)
    columns = {dim: _up(columns, parts) for dim, columns in destination.inputs}
    registers = columns.get(REGISTER, ())
    columns[REGISTER] = (*registers, *f2.identity(parts))
    loaded = LinearLayout.from_columns(columns, (*destination.outputs, (PART, parts)))
    kept = f2.identity(len(registers))
    combined = tuple(1 << (len(registers) + part) for part in range(parts))
    exchange = plan_conversion(partial.layout(parts=True), loaded, bits, machine)
    return [Convert(exchange), InThread(kept, combined, bits)]


def _shared_among_warps(partial: _Partial) -> LinearLayout | None:
    """The layout in which each warp of the axis, or that holds copies, has a share of the results; None without registers."""
    places = (
        *partial.axis_warps,
        *(p for p, unit in enumerate(partial.warp) if not unit and p not in partial.axis_warps),
    )
    shares = dict(zip(places, reversed(partial.register), strict=False))
    if not shares:
        return None
    register = tuple(unit for unit in partial.register if unit not in shares.values())
    warp = tuple(shares.get(place, unit) for place, unit in enumerate(partial.warp))
    return replace(partial, register=register, warp=warp, axis_warps=()).layout()


@dataclass(frozen=True)
class _Ending:
    """A way from what each warp has to the result: its name, the clocks that it waits in series at least, and its steps."""

    name: str
    least: float
    build: Callable[[], list[CombineStep]]


def least_exchange(machine: MachineModel) -> float:
    """The clocks that any exchange across warps waits in series."""
    return machine.latency.load + machine.latency.barrier("block")


def _endings(partial: _Partial, result: LinearLayout, bits: int, machine: MachineModel) -> Iterator[_Ending]:
    """The ways from what each warp has to the result."""

    def within() -> list[CombineStep]:
        plan = plan_conversion(partial.layout(), result, bits, machine)
        return [Convert(plan)] if plan.steps else []

    if not partial.axis_warps:
        yield _Ending("", 0, within)
        return
    least = least_exchange(machine)
    yield _Ending(", one exchange across warps", least, lambda: _across(partial, result, bits, machine))
    shared = _shared_among_warps(partial)
    if shared is not None and shared != result:

        def twice() -> list[CombineStep]:
            copies = Convert(plan_conversion(shared, result, bits, machine))
            return [*_across(partial, shared, bits, machine), copies]

        yield _Ending(", an exchange across warps of shares, and one of the results", 2 * least, twice)


def _check(source: LinearLayout, axis: int, bits: int, machine: MachineModel, result: LinearLayout | None) -> None:
    if log2_exact(bits) is None or bits > 64:
        raise ValueError(f"plan_reduce: bits is {bits}, expected a power of two from 1 to 64")
    if not 0 <= axis < len(source.shape):
        raise ValueError(f"plan_reduce: axis {axis} is out of range for rank {len(source.shape)}")
    for role, layout in (("source", source), ("result", result)):
        if layout is None:
            continue
        if unknown := [dim for dim in layout.in_dims if dim not in (REGISTER, LANE, WARP, BLOCK)]:
            raise ValueError(
                f"plan_reduce: the {role} layout has input dimension {unknown[0]}, expected register, lane, warp or block"
            )
        if reason := why_not_distributed(layout):
            raise ValueError(f"plan_reduce: the {role} layout is not distributed: {reason}")
        lanes = 1 << len(_columns(layout, LANE))
        if lanes != machine.lanes:
            raise ValueError(f"plan_reduce: the {role} layout has {lanes} lanes, {machine.name} has {machine.lanes}")
    for bit, basis in enumerate(source.bases(BLOCK) if BLOCK in source.in_dims else ()):
        if basis[axis]:
            raise ValueError(
                f"plan_reduce: basis {bit} of block is {basis}, along dim{axis}: blocks share no memory to reduce through"
            )
    rest = sliced(source, axis)
    if result is not None and result.outputs != rest.outputs:
        raise ValueError(f"plan_reduce: the result layout is {result}, expected one of shape {rest.shape}")
    if result is not None and len(_columns(result, WARP)) != len(_columns(source, WARP)):
        warps = [1 << len(_columns(layout, WARP)) for layout in (source, result)]
        raise ValueError(f"plan_reduce: the source has {warps[0]} warps, the result {warps[1]}")
    if result is not None and _columns(result, BLOCK) != _columns(rest, BLOCK):
        raise ValueError(
            f"plan_reduce: the result layout is {result}, expected the blocks of {rest}: no data moves between them"
        )


@lru_cache(maxsize=1024)
def plan_reduce(
    source: LinearLayout,
    axis: int,
    bits: int,
    machine: MachineModel,
    result: LinearLayout | None = None,
    redux: bool = False,
) -> ReducePlan:
    """The cheapest plan that reduces a tensor of elements of ``bits``, distributed as ``source``, along ``axis``.

    ``result`` is the distributed layout of the results, on as many warps and blocks; by default that of `weft.layout.reduce`, in
    which lanes and warps along the axis hold copies. ``redux``: the combine function is one that ``redux.sync`` has, on integers.
    `ValueError` says which argument is wrong.
    """
    _check(source, axis, bits, machine, result)
    target = result if result is not None else transfer.reduce(source, axis)
    first, start = _in_thread(source, axis, bits)
    warps = 1 << len(start.warp)
    best: tuple[float, list[CombineStep], str] | None = None
    plain = 0.0
    by_instruction = redux and machine.redux and bits <= WORD_BITS
    ways = (
        (spread, by) for spread in dict.fromkeys(_spreads(start, target)) for by in (False, True)[: 1 + by_instruction]
    )
    for spread, by in ways:
        within, partial = _within_warps(start, spread, bits, machine, by)
        if first.kept != f2.identity(len(_columns(source, REGISTER))):
            within = [first, *within]
        spent = combining_price(within, bits, machine, warps)
        for ending in _endings(partial, target, bits, machine):
            if best is not None and spent + ending.least >= best[0]:
                continue
            steps = [*within, *ending.build()]
            price = combining_price(steps, bits, machine, warps)
            halved = sum(isinstance(step, Halve) for step in within)
            shared = len(spread) - halved
            what = f"{halved} of {len(start.axis_lanes)} lane bits by halving" + (
                f", {1 << shared} copies take a share each" if shared else ""
            )
            if any(isinstance(step, Redux) for step in within):
                what = "all lanes by redux.sync"
            if best is None:
                plain = price
            if best is None or price < best[0]:
                best = price, steps, what + ending.name
    if best is None:
        raise ValueError("plan_reduce: no way was found")
    price, steps, what = best
    return ReducePlan(tuple(steps), target, f"{what}: {price:.0f} clocks; by butterflies alone {plain:.0f}")


@lru_cache(maxsize=1 << 14)
def least_reduce(
    source: LinearLayout,
    axis: int,
    bits: int,
    machine: MachineModel,
    result: LinearLayout | None = None,
    redux: bool = False,
) -> float:
    """A lower bound of the price of `plan_reduce`, without planning a conversion: the steps that combine, and the latency of an
    exchange across warps where the axis has bits there."""
    target = result if result is not None else transfer.reduce(source, axis)
    first, start = _in_thread(source, axis, bits)
    warps = 1 << len(start.warp)
    exchange = least_exchange(machine) if start.axis_warps else 0
    steps = (first,) if first.kept != f2.identity(len(_columns(source, REGISTER))) else ()
    by_instruction = redux and machine.redux and bits <= WORD_BITS
    # What combining costs depends on how many places take part, not on which.
    ways = {(len(spread), sum(p in start.axis_lanes for p, _ in spread)) for spread in _spreads(start, target)}
    lanes = len(start.axis_lanes)
    return exchange + min(
        _combining(steps, len(start.register) - spread + halved, halved, lanes - halved, bits, machine, warps, by)
        for spread, halved in ways
        for by in (False, True)[: 1 + by_instruction]
    )


@lru_cache(maxsize=1 << 12)
def _combining(
    before: tuple[CombineStep, ...],
    registers: int,
    halved: int,
    whole: int,
    bits: int,
    machine: MachineModel,
    warps: int,
    redux: bool,
) -> float:
    """The price of ``before`` and of the steps of `_within_warps` that combine 2^``registers``: some lane bits by halving, the
    others whole."""
    steps = [*before, *(Halve(at, 0, 1 << (registers - at), bits) for at in range(halved))]
    left = 1 << (registers - halved)
    if redux and 1 << whole == machine.lanes:
        steps.append(Redux(left, bits))
    else:
        steps += [Butterfly(at, left, bits) for at in range(whole)]
    return combining_price(steps, bits, machine, warps)
