"""The ways through shared memory (paper 5.4): which instructions, over which swizzle, in how many rounds.

The ways are listed, what each costs follows from ranks alone (two sides never conflict, lemma 9.6), and the search builds the
cheapest:

    how each side reaches memory    vectors of up to 128 bits, ldmatrix or stmatrix, transposed or not (`planning.matrix`)
    what is never cut               an element; a byte of smaller ones; a pair of bytes, to transpose 16-bit units
    who stores copies               the first lane alone, or the lanes (then warps) that hold them, a share each
    how much scratch                all that is left; less, where that leaves more blocks resident

A unit made of several elements has to be in the source's registers. Where the destination wants only one of them, it
loads the unit and selects: bytes are transposed with 128-bit stores, ldmatrix.trans and byte permutes, no byte accesses.

Scratch. Above what is inside a vector come bank bits, then index bits, a common complement of the lanes of one phase of either
side (lemma 9.5): no two words of a phase fall into one bank. Where one side's vectors are narrower, its lanes may be more than
the banks that are left above the other's, and it conflicts; that is counted too, and equal vectors are among the ways.

Rounds. A tensor larger than scratch is cut into granules by bits that both sides have in registers, else by others, then some
accesses leave lanes idle. Each round fills scratch with as many granules as fit. Two halves in alternation do not help: with x
granules stored between two barriers, x[k] + x[k-1] <= what fits, so n barriers move at most ceil(n/2) scratches, as full ones do.

Barriers are a warp's where no warp needs what another holds, which is exact for copies too (`needs`).

What is not tried: exchanging lanes before or after, and dividing loads among lanes that want the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from weft.layout.algebra import f2, subspaces
from weft.layout.planning.accesses import Access, Addresses, MatrixAccess, VectorAccess
from weft.layout.planning.matrix import AccessKind, row_numbers
from weft.layout.planning.price import clocks, exposure, memory_latency, price, words_of
from weft.layout.planning.price import least_cost as least_through_memory
from weft.layout.planning.steps import Barrier, Cost, Move, Step
from weft.layout.planning.ways.access_pairs import (
    Task,
    Way,
    access_order,
    all_ways,
    arrange,
    bits_along,
    divisions,
    estimate,
    filling,
    low_bits,
    moved_bits,
    phase_bits,
    side_of,
)
from weft.layout.planning.ways.candidate import Built, Candidate


@dataclass(frozen=True)
class Scratch:
    """Scratch for a way: offset columns, and the granules of each round."""

    columns: f2.Matrix
    tile: int
    rounds: tuple[tuple[int, int], ...]
    cut: f2.Matrix
    """The tensor bits that number granules."""
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


def memory_columns(task: Task, way: Way) -> f2.Matrix:
    """The columns of a memory that holds the whole tensor, for this way."""
    return (*way.inner, *_swizzle(task, way, ()))


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
    """Scratch within what the task may take, with the fewest barriers; None where a way's accesses cannot be cut so small."""
    size, order, common = _cuts(way)
    limit = task.scratch * 8
    if size <= limit:
        columns = memory_columns(task, way)
        return Scratch(columns, len(columns), ((0, 1),), (), True)
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
    return Scratch(columns, len(columns) - cuts, parts, tuple(cut), cuts <= common)


def _access(
    task: Task, way: Way, scratch: Scratch, granules: tuple[int, int], stores: bool, idle: tuple[int, int]
) -> Access:
    """The stores or loads of one round."""
    side, access, _ = side_of(way, stores)
    echelon = f2.Echelon(scratch.columns)
    order, inside = access_order(way, stores, scratch.cut)

    def offsets(columns: Sequence[int]) -> f2.Matrix:
        return tuple(echelon.reduce(column)[1] for column in columns)

    addresses = Addresses(
        registers=offsets(order),
        lanes=offsets(side.lanes),
        warps=offsets(side.warps),
        bits=task.bits,
        unit=len(way.inner),
        unit_bits=way.unit_bits,
        tile=scratch.tile,
    )
    lanes, warps = idle if stores else (0, 0)
    if access == "vector":
        return VectorAccess(task.machine, addresses, len(inside), granules, stores, warps, idle_lanes=lanes)
    rows = offsets(row_numbers(access, side, inside, way.inner))
    return MatrixAccess(task.machine, addresses, len(inside), granules, stores, warps, rows=rows, kind=access)


def _moves(task: Task, way: Way, scratch: Scratch) -> tuple[Move, Move]:
    """What makes the stored registers of the source's, and the destination's of the loaded ones."""
    lanes = len(task.source.lanes)
    store, load = arrange(task, way, True, scratch.cut), arrange(task, way, False, scratch.cut)
    return (
        Move(store.registers, store.chosen[:lanes], store.chosen[lanes:], store.taken, store.made),
        Move(load.registers, load.chosen[:lanes], load.chosen[lanes:], load.taken, load.made, loaded=True),
    )


def _idle(columns: Sequence[int]) -> int:
    return sum(1 << i for i, column in enumerate(columns) if not column)


def _build(task: Task, way: Way, scratch: Scratch) -> tuple[Step, ...]:
    copies = any(not column for column in task.source.warps)
    alone = task.local and scratch.common and (len(scratch.rounds) == 1 or not copies)
    barrier = Barrier("warp" if alone else "block")
    idle = (_idle(way.source.lanes), 0 if task.local else _idle(way.source.warps))
    before, after = _moves(task, way, scratch)
    steps: list[Step] = [before]
    for number, granules in enumerate(scratch.rounds):
        if number:
            steps.append(barrier)
        steps.append(_access(task, way, scratch, granules, True, idle))
        steps.append(barrier)
        steps.append(_access(task, way, scratch, granules, False, idle))
    return (*steps, after)


def least_moved(task: Task) -> Cost:
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
    wavefront = machine.wavefront_bytes * 8
    widest = machine.widest * 8 * machine.lanes
    read = sum(-(-count * task.bits // wavefront) for count in missing)
    written = max(missing) * task.bits
    return Cost(
        stores=-(-written // (widest * task.warps)),
        loads=-(-written // widest),
        wavefronts=read + -(-written // wavefront),
        barriers=1,
    )


def _reason(task: Task, way: Way, steps: Sequence[Step], scratch: Scratch) -> str:
    """The plan in words."""
    texts: dict[AccessKind, str] = {
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
        parts.append(f"in {len(scratch.rounds)} rounds, as scratch has {task.scratch} bytes")
    found = [step for step in steps if isinstance(step, Access)]
    wavefronts = sum(step.cost.wavefronts for step in found)
    excess = wavefronts - sum(step.bound for step in found)
    parts.append(f"{wavefronts} wavefronts, " + ("none for conflicts" if excess <= 0 else f"{excess} for conflicts"))
    return "; ".join(parts)


def _rounds(task: Task, way: Way) -> int | None:
    """How many rounds a way takes at least; None where its accesses cannot be cut small enough."""
    size, order, _ = _cuts(way)
    limit = task.scratch * 8
    if size <= limit:
        return 1
    least = next((k for k in range(1, len(order) + 1) if size >> k <= limit), None)
    return None if least is None else -(-size // limit)


def _built(task: Task, way: Way, to_beat: float) -> Built | None:
    scratch = _scratch(task, way)
    if scratch is None:
        return None
    steps = _build(task, way, scratch)
    registers = len(task.source.registers), len(task.destination.registers)
    paid = price(steps, task.machine, task.warps, registers=registers, bits=task.bits, room=task.room)
    return Built("memory", steps, paid, _reason(task, way, steps, scratch)) if paid <= to_beat else None


def _candidate(task: Task, way: Way, cost: Cost) -> Candidate | None:
    rounds = _rounds(task, way)
    if rounds is None:
        return None
    bound = clocks(cost, task.machine, task.warps) + memory_latency(task.machine, task.local, rounds)
    order = cost.wavefronts, cost.stores + cost.loads, cost.permutes
    return Candidate("memory", bound, order, partial(_built, task, way))


def _smaller(task: Task, whole: int) -> Iterator[Task]:
    """The task with less scratch, where ``whole`` bytes leave fewer blocks resident than the registers do."""
    words = words_of(len(task.source.registers), task.bits) + words_of(len(task.destination.registers), task.bits)
    exposed = partial(exposure, words=words, machine=task.machine, warps=task.warps, room=task.room)
    least, size = exposed(min(whole, task.scratch)), min(whole, task.scratch) // 2
    while least > 1 and size >= task.machine.wavefront_bytes:
        if (found := exposed(size)) < least:
            least = found
            yield replace(task, scratch=size)
        size //= 2


def candidates(task: Task) -> Iterator[Candidate]:
    """All ways through memory; none where scratch is too small for any."""
    if not task.scratch:
        return
    ways = _estimated(task, all_ways(task))
    if not all((*task.source.lanes, *task.source.warps)):
        # Shares of copies are whole vectors of a way: of the best one, and of the best without matrices.
        inner = len(ways[0][0].inner)
        plain = [each for each in ways if each[0].store == each[0].load == "vector" and len(each[0].inner) == inner]
        best = dict.fromkeys((_best(task, ways), _best(task, plain)))  # a set's order differs from process to process
        found = {division: None for way in best for division in divisions(task, way)}
        ways += [each for division in found for each in _estimated(task, all_ways(task, division))]
    whole = max((_cuts(way)[0] for way, _ in ways[:1]), default=0) // 8
    for sized in (task, *_smaller(task, whole)):
        for way, cost in ways:
            if candidate := _candidate(sized, way, cost):
                yield candidate


def _estimated(task: Task, ways: Iterable[Way]) -> list[tuple[Way, Cost]]:
    """Ways with what each costs in one round, however much scratch there is."""
    return [(way, estimate(task, way)) for way in ways]


def _best(task: Task, ways: Sequence[tuple[Way, Cost]]) -> Way:
    def rank(each: tuple[Way, Cost]) -> tuple[float, int, int, int]:
        cost = each[1]
        return clocks(cost, task.machine, task.warps), cost.wavefronts, cost.stores + cost.loads, cost.permutes

    return min(ways, key=rank)[0]


def least_scratch(task: Task) -> int:
    """Bytes of scratch without which no way through memory exists."""
    return -(-min(size >> len(order) for size, order, _ in map(_cuts, all_ways(task))) // 8)


def least_cost(task: Task) -> Cost:
    """What a conversion through memory costs at least: one barrier, all elements stored once, each thread's own loaded."""
    wanted = task.destination
    needed = 1 << sum(map(bool, wanted.registers)) + len(wanted.lanes)
    elements = 1 << sum(map(bool, (*wanted.registers, *wanted.lanes, *wanted.warps)))
    return least_through_memory(elements, needed, task.bits, task.machine, task.warps)


def least_rounds(task: Task) -> int:
    """How many rounds any way through memory takes at least: every element is stored."""
    elements = 1 << sum(map(bool, (*task.source.registers, *task.source.lanes, *task.source.warps)))
    return -(-elements * task.bits // (8 * task.scratch)) if task.scratch else 1
