"""Conversions on a GPU: the plan from one distributed layout to another, of shuffles, of shared memory, or of both.

One would go through shared memory wherever warps differ, and by shuffles where one bit is exchanged. Here every way that
does it is planned and counted, and the price (`price.clocks`) decides; `ExchangePlan.reason` says what was compared.

    what the conversion needs (`warp.needs`)       ways
    nothing, or a thread's own registers           renaming, selecting: nothing cheaper exists
    lanes of its warp                              shuffles (`warp.sequence`), memory (`exchange.plan_memory`)
    other warps                                    memory, halves

Halves. Where warp bit i moves the tensor's bit a from the warps into registers, each thread needs both values of a, and one of
them is in its own warp. Say B has bit c at i, from A's registers (or copies: then every register counts as both). What a thread
holds splits by h = a + c, and so does what it needs: the half h = 0 stays within its warp, and only h = 1 moves
through memory. Either is a conversion of half the size, from A without c to B without a where warp bit i means a; with h = 1
the warp to receive is the one whose bit i is the other.

    A: {register: [c, ..], warp: [a]}    B: {register: [a, ..], warp: [c]}

               warp 0 has        warp 1 has        warp 0 needs      warp 1 needs
    h = 0      a=0 c=0           a=1 c=1           a=0 c=0           a=1 c=1          stays
    h = 1      a=0 c=1           a=1 c=0           a=1 c=0           a=0 c=1          moves

The halves are conversions in turn, so with m such bits a part of 2^-m stays where that is worth it.

What this does not do: conversions between blocks (their columns have to be equal), and a part of the lanes staying.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP, why_not_distributed
from weft.layout.planning.exchange import plan_memory
from weft.layout.planning.exchange_steps import Barrier, ThroughMemory
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.price import clocks, least_cost
from weft.layout.planning.shuffles import Registers
from weft.layout.planning.steps import Cost, ExchangePlan, Step, total
from weft.layout.planning.warp import Places, least_shuffles, needs, rename, warp_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = "block"


@dataclass(frozen=True)
class Halves(Step):
    """The lower half of the registers takes the steps ``stays``; the upper half takes ``moves``, at whose end each warp gets what
    they would give to the warp whose number differs by ``partner``: it loads from that warp's addresses."""

    stays: tuple[Step, ...]
    moves: tuple[Step, ...]
    partner: int

    @property
    def cost(self) -> Cost:
        """That of both halves."""
        return total([step.cost for step in (*self.stays, *self.moves)])

    def apply(self, state: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        low, high = np.split(state, 2, axis=2)
        for step in self.stays:
            low = step.apply(low)
        for step in self.moves:
            high = step.apply(high)
        return np.concatenate([low, high[np.arange(len(high)) ^ self.partner]], axis=2)

    def __str__(self) -> str:
        stays, moves = ("; ".join(map(str, steps)) or "nothing" for steps in (self.stays, self.moves))
        return f"half stays ({stays}), half moves ({moves})"


@dataclass(frozen=True)
class Split:
    """A conversion cut into halves: the registers are dealt to them, each goes from ``source`` to ``destination``, and they are
    dealt back. See the module."""

    deal: Registers
    source: Places
    destination: Places
    gather: Registers
    partner: int


def split(a: Places, b: Places, bits: int) -> Split | None:
    """The halves at the first warp bit where a conversion has them. Requires no copies in registers."""
    for i, (out, into) in enumerate(zip(a.warp, b.warp, strict=True)):
        if not out or out == into or out not in b.register or (into and into not in a.register):
            continue
        kept = [bit for bit, unit in enumerate(a.register) if unit != into]
        by_warp = [0] * len(a.warp)
        half = 1 << a.register.index(into) if into else 0
        by_warp[i] = half
        deal = Registers((*(1 << bit for bit in kept), half), (0,) * len(a.lane), tuple(by_warp), bits)
        source = a._replace(register=tuple(a.register[bit] for bit in kept))
        warp = list(b.warp)
        warp[i] = out
        destination = b._replace(register=tuple(unit for unit in b.register if unit != out), warp=tuple(warp))
        upper = 1 << len(destination.register)
        at = {unit: 1 << bit for bit, unit in enumerate(destination.register)} | {out: upper}
        by_warp[i] = upper
        gather = Registers(tuple(at[unit] for unit in b.register), (0,) * len(a.lane), tuple(by_warp), bits)
        return Split(deal, source, destination, gather, 1 << i)
    return None


def _layout(places: Places, units: list[int]) -> LinearLayout:
    """The layout of a one-dimensional tensor that has these of the bits."""
    at = {unit: 1 << bit for bit, unit in enumerate(units)} | {0: 0}
    dims = zip((REGISTER, LANE, WARP), places, strict=True)
    return LinearLayout.from_columns(
        {dim: tuple(at[unit] for unit in columns) for dim, columns in dims}, (("dim0", len(units)),)
    )


def _layouts(a: Places, b: Places) -> tuple[LinearLayout, LinearLayout]:
    units = sorted({unit for columns in a for unit in columns if unit})
    return _layout(a, units), _layout(b, units)


def _check_layout(role: str, layout: LinearLayout, machine: MachineModel) -> None:
    if unknown := [dim for dim in layout.in_dims if dim not in (REGISTER, LANE, WARP, BLOCK)]:
        raise ValueError(
            f"plan_exchange: the {role} layout has input dimension {unknown[0]}, expected register, lane, warp or block"
        )
    if reason := why_not_distributed(layout):
        raise ValueError(f"plan_exchange: the {role} layout is not distributed: {reason}")
    lanes = layout.in_size(LANE) if LANE in layout.in_dims else 1
    if lanes != machine.lanes:
        raise ValueError(f"plan_exchange: the {role} layout has {lanes} lanes, {machine.name} has {machine.lanes}")


def _check(source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel) -> None:
    if log2_exact(bits) is None or bits > 64:
        raise ValueError(f"plan_exchange: bits is {bits}, expected a power of two from 1 to 64")
    for role, layout in (("source", source), ("destination", destination)):
        _check_layout(role, layout, machine)
    if source.outputs != destination.outputs:
        raise ValueError(
            f"plan_exchange: the layouts are of different tensors: the source is {source}, the destination {destination}"
        )
    for dim in (WARP, BLOCK):
        before, after = (layout.in_size(dim) if dim in layout.in_dims else 1 for layout in (source, destination))
        if before != after:
            raise ValueError(f"plan_exchange: the source has {before} {dim}s, the destination {after}")
    before, after = (layout.columns(BLOCK) if BLOCK in layout.in_dims else () for layout in (source, destination))
    if before != after:
        bit = next(bit for bit in range(len(before)) if before[bit] != after[bit])
        raise ValueError(
            f"plan_exchange: basis {bit} of block is {source.unflatten(before[bit])} in the source and "
            f"{destination.unflatten(after[bit])} in the destination, expected equal: no data moves between blocks"
        )


@lru_cache(maxsize=4096)
def plan_exchange(source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel) -> ExchangePlan:
    """The cheapest plan that takes a tensor of elements of ``bits`` from one distributed layout to another on a GPU.

    The layouts' input dimensions are register, lane, warp and block (those missing have size 1), with equally many lanes, warps
    and blocks and copies anywhere; `ValueError` says what else was found. Plans are kept.
    """
    _check(source, destination, bits, machine)
    a, b = Places.of(source), Places.of(destination)
    if BLOCK in source.in_dims and source.in_bits(BLOCK):
        # Every block does the same with its own part of the tensor.
        source, destination = _layouts(a, b)
        a, b = Places.of(source), Places.of(destination)
    return _plan(source, destination, bits, machine, None) or plan_memory(source, destination, bits, machine)


@dataclass(frozen=True)
class _Room:
    """What the half that stays may cost: with ``base``, what the other costs, less than ``limit`` clocks.

    It takes nothing through memory but by halves of its own: both halves through memory are no cheaper than the whole. A
    half that moves counts as half of ``memory``, which all of what is halved would cost, until it is planned.
    """

    base: Cost
    limit: float
    memory: Cost


def _half(cost: Cost) -> Cost:
    """What half of the data costs; barriers are the same."""
    counts = {name: count >> 1 for name, count in vars(cost).items()}
    return Cost(**{**counts, "barriers": cost.barriers})


def _plan(
    source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel, room: _Room | None
) -> ExchangePlan | None:
    """The cheapest plan; of a half that stays, None where it is known early that there is none in its room."""
    a, b = Places.of(source), Places.of(destination)
    need = needs(a, b)
    if need == "nothing":
        return ExchangePlan("noop", (), Cost(), "no data moves: the layouts are equal")
    if need == "registers":
        step = rename(a, b, bits)
        how = "chosen by its lane and warp" if step.selects else "renamed"
        return ExchangePlan("registers", (step,), Cost(), f"each thread has what it needs: its registers are {how}")
    if need == "lanes":
        return _within_warps(source, destination, bits, machine, part=room is not None)
    return _across_warps(source, destination, bits, machine, room)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _within_warps(
    source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel, part: bool
) -> ExchangePlan:
    """Shuffles or memory, for a conversion that needs lanes; shuffles for a half that stays."""
    a, b = Places.of(source), Places.of(destination)
    warps = 1 << len(a.warp)
    steps = warp_steps(a, b, bits, machine, partial(clocks, machine=machine, warps=warps)) or ()
    least = least_shuffles(a, b, bits, machine.shuffle_bits)
    cost = total([step.cost for step in steps])
    found = f"{_count(cost.shuffles, 'shuffle')} (the least is {least}) and {_count(cost.permutes, 'permute')} a thread"
    lanes = ExchangePlan("lanes", steps, Cost(shuffles=least), f"it stays within warps: {found}")
    if part:
        return lanes
    shuffled = clocks(cost, machine, warps)
    floor = clocks(_least_moved(b, bits, machine), machine, warps)
    if shuffled <= floor:
        return replace(lanes, reason=f"{lanes.reason} take {shuffled:.0f} clocks, memory at least {floor:.0f}")
    memory = plan_memory(source, destination, bits, machine)
    remembered = clocks(memory.cost, machine, warps)
    if shuffled <= remembered:
        return replace(lanes, reason=f"{lanes.reason} take {shuffled:.0f} clocks, memory {remembered:.0f}")
    reason = f"it stays within warps, but {found} take {shuffled:.0f} clocks, memory {remembered:.0f}: {memory.reason}"
    return ExchangePlan("memory", memory.steps, memory.lower_bound, reason)


def _for_other_warps(step: Step) -> Step:
    """The step as others may read what it stores: all warps wait for each other, though each would need its own part only."""
    if not isinstance(step, ThroughMemory):
        return step
    barrier = Barrier("block")
    return replace(step, parts=tuple(barrier if isinstance(part, Barrier) else part for part in step.parts))


def _least_moved(destination: Places, bits: int, machine: MachineModel) -> Cost:
    """What a conversion through memory takes at least."""
    needed = 1 << sum(map(bool, (*destination.register, *destination.lane)))
    elements = needed << sum(map(bool, destination.warp))
    return least_cost(elements, needed, bits, machine, 1 << len(destination.warp))


def _across_warps(
    source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel, room: _Room | None
) -> ExchangePlan | None:
    """Memory for all or for half, for a conversion that crosses warps; for half only where it is a half that stays."""
    a, b = Places.of(source), Places.of(destination)
    warps = 1 << len(a.warp)
    memory = None
    if room is None:
        memory = plan_memory(source, destination, bits, machine)
        room = _Room(Cost(), clocks(memory.cost, machine, warps), memory.cost)
    first, last = a.first_copies, b.first_copies
    halves = split(first, last, bits)
    if halves is None:
        return memory
    # Planning costs time as well: no plan of a half is made where what the rest costs is too much.
    through_memory = _half(room.memory)
    rest = _Room(room.base + halves.deal.cost + halves.gather.cost + through_memory, room.limit, through_memory)
    if clocks(rest.base, machine, warps) >= room.limit:
        return memory
    inner = _layouts(halves.source, halves.destination)
    stays = _plan(*inner, bits, machine, rest)
    if stays is None or clocks(rest.base + stays.cost, machine, warps) >= room.limit:
        return memory
    moves = tuple(_for_other_warps(step) for step in plan_memory(*inner, bits, machine).steps)
    steps: list[Step] = [rename(a, first, bits)] if a != first else []
    steps += [halves.deal, Halves(stays.steps, moves, halves.partner), halves.gather]
    steps += [rename(last, b, bits)] if b != last else []
    mixed = clocks(room.base + total([step.cost for step in steps]), machine, warps)
    if mixed >= room.limit:
        return memory
    reason = f"half of what each thread needs is in its warp ({stays.reason}), half moves through memory"
    if memory:
        reason += f": half by half {mixed:.0f} clocks, all through memory {room.limit:.0f}"
    return ExchangePlan("mixed", tuple(steps), memory.lower_bound if memory else Cost(), reason)
