"""Conversions through shared memory (paper 5.4): which instructions, over which swizzle, in how many rounds.

One would fix a rule: vectors of what both sides hold, a swizzle for them, as many rounds as registers have in common. Here the
ways are listed, what each costs follows from ranks alone (two sides never conflict, lemma 9.6), and the cheapest is built:

    how each side reaches memory    vectors of up to 128 bits, ldmatrix or stmatrix, transposed or not (`planning.matrix`)
    what is never cut               an element; a byte of smaller ones; a pair of bytes, to transpose 16-bit units
    who stores copies               the first lane alone, or the lanes (then warps) that hold them, a share each

A unit made of several elements has to be in the source's registers. Where the destination wants only one of them, it
loads the unit and selects: bytes are transposed with 128-bit stores, ldmatrix.trans and byte permutes, no byte accesses.

Scratch. Above what is inside a vector come bank bits, then index bits, a common complement of the lanes of one phase of either
side (lemma 9.5): no two words of a phase fall into one bank. Where one side's vectors are narrower, its lanes may be more than
the banks that are left above the other's, and it conflicts; that is counted too, and equal vectors are among the ways.

Rounds. A tensor larger than scratch is cut into granules by bits that both sides have in registers, else by others, then some
accesses leave lanes idle. Each round fills scratch with as many granules as fit. Two halves in alternation do not help: with x
granules stored between two barriers, x[k] + x[k-1] <= what fits, so n barriers move at most ceil(n/2) scratches, as full ones do.

Barriers are a warp's where no warp needs what another holds, which is exact for copies too (`planning.warp`). Either kind
counts as one in `Cost`; `ThroughMemory.scope` says which it is.

What is not tried: exchanging lanes before or after, and dividing loads among lanes that want the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter

from weft.layout.algebra import f2, subspaces
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP, why_not_distributed
from weft.layout.planning.exchange_steps import Addresses, Barrier, Matrices, Part, Select, ThroughMemory, Vectors
from weft.layout.planning.exchange_ways import (
    Task,
    Way,
    all_ways,
    bits_along,
    count_permutes,
    divisions,
    filling,
    low_bits,
    moved_bits,
    phase_bits,
    rank_of,
    side_of,
)
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.matrix import Access, Side, row_numbers, word_bits
from weft.layout.planning.price import clocks
from weft.layout.planning.steps import Cost, ExchangePlan
from weft.layout.planning.warp import Places, crossing

BLOCK = "block"
_COMPARED = 8
"""How many ways are built to be compared, where scratch is short."""


@dataclass(frozen=True)
class Scratch:
    """Scratch for a way: offset columns, and the granules of each round."""

    columns: f2.Matrix
    tile: int
    rounds: tuple[tuple[int, int], ...]
    common: bool
    """Rounds are cut by register bits of both sides only."""


def _swizzle(task: Task, way: Way, cut: Sequence[int]) -> f2.Matrix:
    """The columns of the memory without the bits ``cut`` and those inside a unit: vector, bank and index bits.

    Index bits are sums of bits above ``low``, so what is inside the widest vector stays there. A side with narrower vectors may
    then have more lanes in a phase than there are banks above those; it conflicts as little as it can.
    """
    way = replace(way, source=way.source.without(cut), destination=way.destination.without(cut))
    low = low_bits(task, way)
    whole = [c for c in (*way.source.held, *way.source.lanes, *way.source.warps) if c and c not in low]
    room = filling(task.machine, way.unit_bits) - len(low)
    phases = [[c for c in phase_bits(task, way, stores) if c not in low][:room] for stores in (True, False)]
    count = max(0, len(whole) - room)
    index = subspaces.common_complement(phases[0], phases[1], whole)[:count] if count else ()
    return (*low, *subspaces.extend(index, whole), *index)


def _cuts(way: Way) -> tuple[int, list[int], int]:
    """Bits of a whole scratch, the bits that rounds may cut it by, best first, and how many of these are registers of both."""
    source, destination = way.source, way.destination
    fixed = {*way.rows.first, *moved_bits(way, stores=True), *moved_bits(way, stores=False)}
    reached = [c for c in (*source.held, *source.lanes, *source.warps) if c]
    both = [c for c in reversed(source.held) if c in destination.held and c not in fixed]
    # A matrix access takes all lanes, so only vectors can leave some out.
    whole = way.store != "vector" or way.load != "vector"
    others = [] if whole else [c for c in reached if c not in both and c not in fixed]
    return way.unit_bits << len(reached), both + others, len(both)


def _scratch(task: Task, way: Way) -> Scratch | None:
    """Scratch within what the machine has, with the fewest barriers; None where a way's accesses cannot be cut so small."""
    size, order, common = _cuts(way)
    limit = task.machine.scratch * 8
    if size <= limit:
        columns = (*way.inner, *_swizzle(task, way, ()))
        return Scratch(columns, len(columns), ((0, 1),), True)
    choices = [k for k in range(1, len(order) + 1) if size >> k <= limit]
    if not choices:
        return None

    def rounds(k: int) -> int:
        return -(-(1 << k) // (limit // (size >> k)))

    # A finer cut may fill a scratch that is no power of two better.
    cuts = min(choices[:3], key=lambda k: (k > common, rounds(k), k))
    cut = order[:cuts]
    columns = (*way.inner, *_swizzle(task, way, cut), *cut)
    fits = limit // (size >> cuts)
    granules = range(0, 1 << cuts, fits)
    parts = tuple((first, min(first + fits, 1 << cuts)) for first in granules)
    return Scratch(columns, len(columns) - cuts, parts, cuts <= common)


def _access(
    task: Task, way: Way, scratch: Scratch, granules: tuple[int, int], stores: bool, idle: tuple[int, int]
) -> Part:
    """The stores or loads of one round."""
    side, access, taken = side_of(way, stores)
    echelon = f2.Echelon(scratch.columns)
    own = task.source if stores else task.destination
    # Registers of a result, then one for each bit that only comes along inside a unit.
    along = () if stores else bits_along(way, own)
    numbered = Side((*own.registers, *along), side.lanes, side.warps)
    kept = {*side.held, *way.inner}

    def offsets(columns: Sequence[int]) -> f2.Matrix:
        return tuple(echelon.reduce(column)[1] for column in columns)

    addresses = Addresses(
        registers=offsets([column if column in kept else 0 for column in numbered.registers]),
        lanes=offsets(side.lanes),
        warps=offsets(side.warps),
        bits=task.bits,
        unit=len(way.inner),
        unit_bits=way.unit_bits,
        tile=scratch.tile,
    )
    word = word_bits(access, side, way.rows.first, taken, way.inner)
    inside = tuple(numbered.mask(bit) for bit in word)
    across = tuple(numbered.mask(bit) for bit in side.held if bit not in word)
    lanes, warps = idle if stores else (0, 0)
    if access == "vector":
        return Vectors(task.machine, addresses, inside, across, granules, stores, warps, lanes)
    rows = offsets(row_numbers(access, side, word, way.inner))
    return Matrices(task.machine, addresses, inside, across, granules, stores, warps, rows, access)


def _selects(task: Task, way: Way) -> tuple[Part, Part]:
    """What makes the stored registers of the source's, and the destination's of the loaded ones."""
    before, after = count_permutes(task, way)
    identity = f2.identity(len(task.source.registers))
    lanes, warps = [0] * len(task.source.lanes), [0] * len(task.source.warps)
    for masks, pairs in ((lanes, way.division.lanes), (warps, way.division.warps)):
        for place, register in pairs:
            masks[place] = 1 << register
    store = Select(identity, tuple(lanes), tuple(warps), before, after=False)
    own = task.destination
    extra = {bit: 1 << (len(own.registers) + i) for i, bit in enumerate(bits_along(way, own))}
    load = Select(
        tuple(1 << i if bit else 0 for i, bit in enumerate(own.registers)),
        tuple(extra.get(bit, 0) for bit in own.lanes),
        tuple(extra.get(bit, 0) for bit in own.warps),
        after,
        after=True,
    )
    return store, load


def _idle(columns: Sequence[int]) -> int:
    return sum(1 << i for i, column in enumerate(columns) if not column)


def _build(task: Task, way: Way, scratch: Scratch) -> ThroughMemory:
    copies = any(not column for column in task.source.warps)
    alone = task.local and scratch.common and (len(scratch.rounds) == 1 or not copies)
    barrier = Barrier("warp" if alone else "block")
    idle = (_idle(way.source.lanes), 0 if task.local else _idle(way.source.warps))
    before, after = _selects(task, way)
    parts: list[Part] = [before]
    for number, granules in enumerate(scratch.rounds):
        if number:
            parts.append(barrier)
        parts.append(_access(task, way, scratch, granules, True, idle))
        parts.append(barrier)
        parts.append(_access(task, way, scratch, granules, False, idle))
    parts.append(after)
    source, destination = task.source, task.destination
    shape = (task.warps, 1 << len(source.lanes), 1 << len(source.registers))
    return ThroughMemory(tuple(parts), shape, 1 << (len(destination.registers) + len(bits_along(way, destination))))


def _lower_bound(task: Task) -> Cost:
    """What any plan takes, from what warps need and do not hold: it has to be written once and read by each, 128 bytes at a time.

    A warp needs a coset of span(B_register, B_lane), and holds one of span(A_register, A_lane).
    """
    held = [c for c in (*task.source.registers, *task.source.lanes) if c]
    needed = [c for c in (*task.destination.registers, *task.destination.lanes) if c]
    offsets = [a ^ b for a, b in zip(task.source.warps, task.destination.warps, strict=True)]
    reach = f2.Echelon((*held, *needed))
    # The warps that hold a part of what they need: those whose two cosets meet.
    outside = f2.rank([reach.reduce(offset)[0] for offset in offsets])
    meeting = task.warps >> outside
    own = 1 << sum(c in held for c in needed)
    everything = 1 << len(needed)
    missing = [everything] * (task.warps - meeting) + [everything - own] * meeting
    if not any(missing):
        return Cost()
    machine = task.machine
    wavefront = machine.banks * machine.bank_bytes * 8
    widest = machine.widest * 8 * machine.lanes
    read = sum(-(-count * task.bits // wavefront) for count in missing)
    written = max(missing) * task.bits
    return Cost(
        stores=-(-written // (widest * task.warps)),
        loads=-(-written // widest),
        wavefronts=read + -(-written // wavefront),
        barriers=1,
    )


def _reason(task: Task, way: Way, step: ThroughMemory, scratch: Scratch) -> str:
    """The plan in words."""
    texts: dict[Access, str] = {
        "vector": "vectors",
        "matrix": "matrices",
        "transposed": "transposed matrices",
        "bytes": "transposed matrices of bytes",
    }
    parts = [
        "no warp needs what another holds, but it goes through memory"
        if task.local
        else "warps need what others hold, so it goes through memory",
        f"stored as {texts[way.store]}, loaded as {texts[way.load]}",
    ]
    if bits_along(way, task.destination):
        parts.append(f"{way.unit_bits // task.bits} elements stay together and the reader selects its own")
    if way.division:
        parts.append(f"{1 << len(way.division)} holders of copies store a share each")
    if len(scratch.rounds) > 1:
        parts.append(f"in {len(scratch.rounds)} rounds, as scratch has {task.machine.scratch} bytes")
    excess = step.cost.wavefronts - step.conflict_free
    parts.append(
        f"{step.cost.wavefronts} wavefronts" + (", none for conflicts" if excess <= 0 else f", {excess} for conflicts")
    )
    return "; ".join(parts)


def _side(layout: LinearLayout) -> Side:
    return Side(*Places.of(layout))


def _check(source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel) -> None:
    for role, layout in (("source", source), ("destination", destination)):
        unknown = [dim for dim in layout.in_dims if dim not in (REGISTER, LANE, WARP, BLOCK)]
        if unknown:
            raise ValueError(
                f"plan_memory: the {role} has input dimension {unknown[0]}, expected register, lane, warp and block"
            )
        if reason := why_not_distributed(layout):
            raise ValueError(f"plan_memory: the {role} is not distributed: {reason}")
        lanes = 1 << len(Places.of(layout).lane)
        if lanes != machine.lanes:
            raise ValueError(f"plan_memory: the {role} has {lanes} lanes, {machine.name} has {machine.lanes}")
    if source.outputs != destination.outputs:
        raise ValueError(f"plan_memory: the layouts are of different tensors, {source} and {destination}")
    warps = [1 << len(Places.of(layout).warp) for layout in (source, destination)]
    if warps[0] != warps[1]:
        raise ValueError(f"plan_memory: the source has {warps[0]} warps, the destination {warps[1]}")
    blocks = [layout.columns(BLOCK) if BLOCK in layout.in_dims else () for layout in (source, destination)]
    if blocks[0] != blocks[1]:
        raise ValueError(
            "plan_memory: the layouts are split among blocks in different ways, and blocks share no memory"
        )
    most = 8 * machine.widest
    if log2_exact(bits) is None or bits > most:
        raise ValueError(f"plan_memory: bits is {bits}, expected a power of two up to {most}")


@lru_cache(maxsize=4096)
def plan_memory(source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel) -> ExchangePlan:
    """The cheapest conversion of a tensor of elements of ``bits`` through shared memory; see the module.

    Both layouts are distributed, of one tensor, on as many warps, with as many lanes as the machine, and alike in ``block`` if
    they have it. `ValueError` says which of these fails, or that scratch is too small for one access. Works on index bits: its
    time does not depend on the tensor's size.
    """
    _check(source, destination, bits, machine)
    local = not crossing(Places.of(source), Places.of(destination))
    task = Task(_side(source), _side(destination), bits, machine, local)
    ways = [(rank_of(task, way), way) for way in all_ways(task)]
    if not all((*task.source.lanes, *task.source.warps)):
        best = min(ways, key=itemgetter(0))[1]
        shared = [way for division in divisions(task, best) for way in all_ways(task, division)]
        ways += [(rank_of(task, way), way) for way in shared]
    built: list[tuple[Way, Scratch, ThroughMemory]] = []
    for _, way in sorted(ways, key=itemgetter(0)):
        if scratch := _scratch(task, way):
            built.append((way, scratch, _build(task, way, scratch)))
            # Ranks leave rounds out: where there are any, several ways are built and their real costs compared.
            if len(built[0][1].rounds) == 1 or len(built) == _COMPARED:
                break
    if not built:
        least = min(size >> len(order) for size, order, _ in (_cuts(way) for _, way in ways))
        raise ValueError(
            f"plan_memory: {machine.name} has {machine.scratch} bytes of scratch, expected at least {-(-least // 8)}"
        )
    way, scratch, step = min(built, key=lambda found: clocks(found[2].cost, machine, task.warps))
    return ExchangePlan("memory", (step,), _lower_bound(task), _reason(task, way, step, scratch))
