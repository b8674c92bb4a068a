"""The ways a conversion can take through shared memory, and what each costs, from ranks alone.

A way says how each side reaches memory, what is never cut (a unit), and who stores copies; see `ways.memory`. None needs its
addresses to be known: two sides conflict in no bank unless one's vectors are narrower (lemma 9.5), and then by how much is
a difference of ranks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from weft.layout.algebra import f2, subspaces
from weft.layout.families.distributed import LANE, REGISTER, WARP
from weft.layout.planning.exchange_networks import Columns
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.matrix import (
    LANES,
    ROWS,
    AccessKind,
    Rows,
    Side,
    available,
    row_numbers,
    shared_rows,
    word_bits,
)
from weft.layout.planning.permutes import Words
from weft.layout.planning.permutes import word_bits as slot_bits
from weft.layout.planning.price import EMPTY, Room
from weft.layout.planning.steps import Cost


@dataclass(frozen=True)
class Division:
    """Lane and warp bits that hold copies, each with the register bit whose halves they store instead."""

    lanes: tuple[tuple[int, int], ...] = ()
    warps: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.lanes) + len(self.warps)

    def of(self, side: Side) -> Side:
        """The side as the copies then store it; divided registers are no longer its own."""
        lanes, warps, registers = list(side.lanes), list(side.warps), list(side.registers)
        for columns, pairs in ((lanes, self.lanes), (warps, self.warps)):
            for place, register in pairs:
                columns[place] = side.registers[register]
                registers[register] = 0
        return Side(tuple(registers), tuple(lanes), tuple(warps))


@dataclass(frozen=True)
class Way:
    """One way through memory, decided but not built."""

    store: AccessKind
    load: AccessKind
    rows: Rows
    inner: f2.Matrix
    """The tensor bits inside a unit."""
    unit_bits: int
    division: Division
    source: Side
    """Divided, in units."""
    destination: Side


@dataclass(frozen=True)
class Task:
    """What is asked."""

    source: Side
    destination: Side
    bits: int
    machine: MachineModel
    local: bool
    """No warp needs what another holds."""
    scratch: int
    """Bytes of shared memory that are left."""
    room: Room = EMPTY
    """What the rest of the kernel holds."""

    @property
    def warps(self) -> int:
        return 1 << len(self.source.warps)


def phase_lanes(machine: MachineModel, vector_bits: int) -> int:
    """log2 of the lanes whose accesses fill the banks once."""
    return (machine.wavefront_bytes // max(machine.bank_bytes, vector_bits // 8)).bit_length() - 1


def count_instructions(access: AccessKind, side: Side, rows: Rows, taken: int, inner: Sequence[int]) -> tuple[int, int]:
    """(instructions, matrices or 0) of a thread, all rounds together."""
    held = len(side.held)
    if access == "vector":
        return 1 << (held - taken), 0
    matrices = 1 << (held - len(word_bits(access, side, rows.first, taken, inner)) + len(inner))
    return -(-matrices * ROWS[access] // LANES), matrices


def _wavefronts(stores: bool, way: Way, task: Task) -> int:
    """Wavefronts of all warps; where copies are idle, of the rest."""
    side, access, taken = side_of(way, stores)
    instructions, matrices = count_instructions(access, side, way.rows, taken, way.inner)
    waiting = sum(not column for column in side.warps) if stores and not task.local else 0
    if matrices:
        return matrices * ROWS[access] // 8 * task.warps >> waiting
    phase = phase_lanes(task.machine, way.unit_bits << taken)
    idle = waiting + sum(not column for column in side.lanes[phase:]) if stores else 0
    low = low_bits(task, way)
    apart = sum(column not in low for column in phase_bits(task, way, stores))
    conflicts = max(0, apart - filling(task.machine, way.unit_bits) + len(low))
    return instructions * task.warps << max(0, len(side.lanes) - phase) + conflicts >> idle


def side_of(way: Way, stores: bool) -> tuple[Side, AccessKind, int]:
    """One side of a way: its layout, how it reaches memory, and log2 of the units it takes at once."""
    if stores:
        return way.source, way.store, way.rows.store
    return way.destination, way.load, way.rows.load


def filling(machine: MachineModel, unit_bits: int) -> int:
    """log2 of the units that fill the banks."""
    return (machine.wavefront_bytes * 8 // unit_bits).bit_length() - 1


def phase_bits(task: Task, way: Way, stores: bool) -> f2.Matrix:
    """The tensor bits that the lanes of one phase, or the rows of a matrix, differ in."""
    side, access, taken = side_of(way, stores)
    if access == "vector":
        lanes = side.lanes[: phase_lanes(task.machine, way.unit_bits << taken)]
    else:
        lanes = row_numbers(access, side, word_bits(access, side, way.rows.first, taken, way.inner), way.inner)[:3]
    return tuple(column for column in lanes if column)


def low_bits(task: Task, way: Way) -> f2.Matrix:
    """The tensor bits inside the widest vector, or inside a word where that is more: any will do, best what phases share."""
    first = way.rows.first
    word = (task.machine.bank_bytes * 8 // way.unit_bits).bit_length() - 1
    if len(first) >= word:
        return first
    loading = phase_bits(task, way, stores=False)
    shared = [column for column in phase_bits(task, way, stores=True) if column in loading]
    whole = [c for c in (*way.source.held, *way.source.lanes, *way.source.warps) if c]
    return (*first, *subspaces.extend(first, (*shared, *whole))[: word - len(first)])


def count_permutes(task: Task, way: Way) -> tuple[int, int]:
    """Permutes and selects before storing and after loading."""
    before, after = arrange(task, way, True), arrange(task, way, False)
    return before.summary.instructions, after.summary.instructions


def arrange(task: Task, way: Way, stores: bool, cut: Collection[int] = ()) -> Columns:
    """The network between a thread's packed registers and those that an access takes or fills; see `access_order`."""
    side, _, _ = side_of(way, stores)
    order, inside = access_order(way, stores, cut)
    own, accessed = Words.packed(task.bits), accessed_words(task, way, len(inside))
    if stores:
        numbered = task.source
        chosen = [0] * (len(side.lanes) + len(side.warps))
        for place, register in way.division.lanes:
            chosen[place] = 1 << register
        for place, register in way.division.warps:
            chosen[len(side.lanes) + place] = 1 << register
        return Columns(tuple(numbered.mask(bit) for bit in order), tuple(chosen), own, accessed)
    at = {bit: 1 << number for number, bit in enumerate(order)} | {0: 0}
    along = bits_along(way, task.destination)
    own_columns = task.destination
    threads = tuple(at[bit] if bit in along else 0 for bit in (*own_columns.lanes, *own_columns.warps))
    return Columns(tuple(at[bit] for bit in own_columns.registers), threads, accessed, own)


def accessed_words(task: Task, way: Way, inside: int) -> Words:
    """How the registers of an access lie in words."""
    gap = (way.unit_bits // task.bits).bit_length() - 1 - len(way.inner)
    room = slot_bits(task.bits) - gap
    return Words(task.bits, min(inside, max(0, room)), len(way.inner) if gap else 0, gap)


def access_order(way: Way, stores: bool, cut: Collection[int] = ()) -> tuple[f2.Matrix, f2.Matrix]:
    """The tensor bits of the registers of an access, lowest first, and those of them inside a vector or a matrix's word. First
    comes what moves inside, then what moves to other instructions, last what moves to other rounds (``cut``)."""
    side, _, _ = side_of(way, stores)
    inside = moved_bits(way, stores)
    across = [bit for bit in side.held if bit not in inside]
    return (*inside, *(bit for bit in across if bit not in cut), *(bit for bit in across if bit in cut)), inside


def moved_bits(way: Way, stores: bool) -> f2.Matrix:
    if stores:
        return word_bits(way.store, way.source, way.rows.first, way.rows.store, way.inner)
    return word_bits(way.load, way.destination, way.rows.first, way.rows.load, way.inner)


def _inner(task: Task) -> Iterator[f2.Matrix]:
    """The bits inside a unit: none, or those that make a byte of smaller elements, or one more where that is 16 bits."""
    held = task.source.held
    order = [bit for bit in held if bit in task.destination.registers]
    order += [bit for bit in held if bit not in order]
    byte = max(0, (8 // task.bits).bit_length() - 1)
    yield tuple(order[:byte])
    if task.bits <= 8 and task.machine.lanes == 32 and (task.machine.ldmatrix or task.machine.stmatrix):
        # Bits that the destination has in the same place serve alike; the lowest is the cheapest to pack.
        roles: set[str] = set()
        for bit in order[byte:]:
            role = _role(task.destination, bit)
            if role not in roles:
                roles.add(role)
                yield (*order[:byte], bit)


def _role(side: Side, bit: int) -> str:
    """Where a side has a tensor bit, as far as matrices are concerned."""
    if bit in side.registers:
        return REGISTER
    if bit in side.lanes:
        return LANE + " of a row" if side.lanes.index(bit) >= 2 else LANE
    return WARP


def divisions(task: Task, way: Way) -> Iterator[Division]:
    """Ways to share the storing of copies, one more bit each time. A share is whole vectors of ``way``."""
    lanes = [(LANE, i) for i, column in enumerate(task.source.lanes) if not column]
    warps = [] if task.local else [(WARP, i) for i, column in enumerate(task.source.warps) if not column]
    inside = (*way.inner, *way.rows.first[: way.rows.store])
    registers = [i for i, bit in enumerate(task.source.registers) if bit and bit not in inside]
    places = list(zip((*lanes, *warps), registers, strict=False))
    for count in range(1, len(places) + 1):
        chosen = places[:count]
        yield Division(
            tuple((place, register) for (dim, place), register in chosen if dim == LANE),
            tuple((place, register) for (dim, place), register in chosen if dim == WARP),
        )


def all_ways(task: Task, division: Division = Division()) -> Iterator[Way]:
    """All ways with this division of copies."""
    divided = division.of(task.source)
    for number, inner in enumerate(_inner(task)):
        if any(bit not in divided.registers for bit in inner):
            continue
        source, destination = divided.without(inner), task.destination.without(inner)
        unit_bits = max(8, task.bits << len(inner))
        padded = unit_bits != task.bits << len(inner)
        widest = (task.machine.widest * 8 // unit_bits).bit_length() - 1
        for store in available(task.machine, True, unit_bits, padded):
            for load in available(task.machine, False, unit_bits, padded):
                if number and "transposed" not in (store, load):
                    continue
                for rows in shared_rows(store, load, source, destination, unit_bits, widest):
                    yield Way(store, load, rows, inner, unit_bits, division, source, destination)


def estimate(task: Task, way: Way) -> Cost:
    """What a way costs, from ranks, in one round."""
    before, after = count_permutes(task, way)
    rows = way.rows
    return Cost(
        permutes=before + after,
        stores=count_instructions(way.store, way.source, rows, rows.store, way.inner)[0],
        loads=count_instructions(way.load, way.destination, rows, rows.load, way.inner)[0],
        wavefronts=_wavefronts(True, way, task) + _wavefronts(False, way, task),
    )


def bits_along(way: Way, destination: Side) -> f2.Matrix:
    return tuple(bit for bit in way.inner if bit not in destination.registers)
