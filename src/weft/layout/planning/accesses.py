"""Steps that store to and load from shared memory, with every address as data.

Addresses are linear: the offset of what (register, lane, warp) holds is the XOR of one column per index bit (`Addresses`).
Low offset bits are inside a vector, higher ones its place; those from ``tile`` on number *granules*, the parts of a tensor that
rounds through a smaller scratch move.

    offset bits      inside a unit | inside a vector | bank, index bits ... | granule
    in this round    as they are                                            | minus the first granule of the round

Registers. An access takes or fills a register file of its own, which a `Move` makes before a store and takes apart after a load:
its lowest ``inside`` register bits move inside the vector that a lane gives or gets (or the words of a matrix), the others number
instructions (or matrices). So instruction i has the registers from ``i << inside`` on, in words as `Access.words` says.

Emission, for thread (lane l, warp w):

    1  warps with a bit of ``idle_warps``, and lanes with one of ``idle_lanes``, take no part: a branch that all lanes of a warp
       take alike, and a predicate
    2  base(l, w) = scratch + XOR of ``lane_columns`` by l + of ``warp_columns`` by ``w ^ warp_flip``, computed once
    3  for each instruction i in ``numbers``: the address is ``(base ^ xor) + immediate``, with ``steps(i) = (xor, immediate)``
    4  where `guarded`, lanes (or warps) whose address lies outside of the round take no part: a predicate by instruction

All of these are bytes. Bits that lanes or warps touch need the XOR, the others are an immediate offset (`Addresses.split`).

Wavefronts are counted from the addresses of the lanes of a phase; a phase without active lanes takes none. All instructions
whose registers lie in one granule differ by an XOR that permutes banks, so that one of them is counted for each granule:
counting takes no longer for a larger tensor. `Access.wavefronts_by_warp` counts them all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weft.layout.algebra import f2
from weft.layout.algebra.lazy import lazy
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.matrix import LANES, ROWS, AccessKind
from weft.layout.planning.permutes import Words, word_bits
from weft.layout.planning.steps import Cost, Step

ROW_BYTES = 16
PHASE_ROWS = 8
ALIGNMENT = 128
"""Bytes that scratch is aligned to: a wavefront, so that offsets decide banks."""


def span(columns: Sequence[int]) -> list[int]:
    """All sums of the columns, by the mask that selects them."""
    sums = [0]
    for column in columns:
        sums += [column ^ old for old in sums]
    return sums


@dataclass(frozen=True)
class Addresses:
    """Where in scratch a side of the conversion finds each of its elements; see the module."""

    registers: f2.Matrix
    lanes: f2.Matrix
    warps: f2.Matrix
    bits: int
    """Of an element."""
    unit: int
    """log2 of the elements in a unit, the least that is addressed."""
    unit_bits: int
    """Bits of a unit in memory: more than its elements have where those do not fill a byte."""
    tile: int
    """log2 of the elements of a granule."""
    base: int = 0
    """The byte of scratch at which the first granule of a round starts; a multiple of `ALIGNMENT`."""

    def byte(self, offset: int) -> int:
        """The address of the unit at this offset, from the base."""
        return (offset >> self.unit) * self.unit_bits // 8

    @lazy
    def thread_bits(self) -> int:
        """The offset bits in which lanes or warps differ."""
        mask = 0
        for column in (*self.lanes, *self.warps):
            mask |= column
        return mask

    def split(self, registers: int) -> tuple[int, int]:
        """The offset of a register as (immediate, XOR): the address is ``(thread ^ XOR) + immediate``."""
        offset = f2.apply(self.registers, registers)
        return offset & ~self.thread_bits, offset & self.thread_bits


@dataclass(frozen=True)
class Access(Step):
    """What stores and loads, by vectors and by matrices, have in common."""

    machine: MachineModel
    addresses: Addresses
    inside: int
    """log2 of the registers of a vector, or of those that a lane has of a matrix: the lowest register bits."""
    granules: tuple[int, int]
    """The first granule of this round, and the one after the last."""
    stores: bool
    idle_warps: int = 0
    """Warps with one of these bits hold copies and do not take part."""
    warp_flip: int = 0
    """Warp w uses the addresses of warp ``w ^ warp_flip``."""

    @property
    def warps(self) -> int:
        """Warps of the block."""
        return 1 << len(self.addresses.warps)

    @property
    def across(self) -> f2.Matrix:
        """The offsets that the bits of an instruction's, or of a matrix's, number move by."""
        return self.addresses.registers[self.inside :]

    @property
    def words(self) -> Words:
        """How the registers of the access lie in words of 32 bits: in a row of words for vectors wider than one."""
        at = self.addresses
        gap = ((at.unit_bits // at.bits) >> at.unit).bit_length() - 1
        return Words(at.bits, min(self.inside, max(0, word_bits(at.bits) - gap)), at.unit if gap else 0, gap)

    @property
    @abstractmethod
    def lane_offsets(self) -> f2.Matrix:
        """The offsets, in elements, that the bits of the lane's number move the address by that it gives."""

    @property
    def lane_columns(self) -> f2.Matrix:
        """`lane_offsets` in bytes."""
        return tuple(map(self.addresses.byte, self.lane_offsets))

    @property
    def warp_columns(self) -> f2.Matrix:
        """The bytes that the bits of ``warp ^ warp_flip`` move the address by."""
        return tuple(map(self.addresses.byte, self.addresses.warps))

    @lazy
    def numbers(self) -> Sequence[int]:
        """The instructions of the round, by the number of their first vector or matrix."""
        return self._numbers()

    @abstractmethod
    def _numbers(self) -> Sequence[int]: ...

    def steps(self, number: int) -> tuple[int, int]:
        """(XOR, immediate) in bytes, for the number of an instruction's first vector or matrix. The immediate counts from the
        start of the block's scratch, and from the round's first granule: it may be negative."""
        dynamic = 0
        for column in (*self.lane_offsets, *self.addresses.warps):
            dynamic |= column
        offset = f2.apply(self.across, number)
        first = self.addresses.byte(self.granules[0] << self.addresses.tile)
        byte = self.addresses.byte
        return byte(offset & dynamic), byte(offset & ~dynamic) - first + self.addresses.base

    @property
    def guarded(self) -> bool:
        """Whether lanes or warps lie in other granules, so that some take no part in an instruction of this round."""
        return not self._by_registers

    @property
    def cost(self) -> Cost:
        return self._cost

    @lazy
    def _cost(self) -> Cost:
        name = "stores" if self.stores else "loads"
        return Cost(
            **{
                name: self.instructions,
                "wavefronts": self._all_wavefronts(),
                "scratch": self.addresses.base + self.scratch,
            }
        )

    @property
    def scratch(self) -> int:
        """Bytes of scratch this round uses, from the base."""
        return self.addresses.byte((self.granules[1] - self.granules[0]) << self.addresses.tile)

    @lazy
    def instructions(self) -> int:
        """Instructions of a thread in this round."""
        return self._count()

    @abstractmethod
    def _count(self) -> int: ...

    @property
    @abstractmethod
    def bound(self) -> int:
        """Wavefronts of all warps if no two words fell into one bank."""

    @abstractmethod
    def _all_wavefronts(self) -> int:
        """Wavefronts of all warps."""

    @abstractmethod
    def wavefronts_by_warp(self) -> list[int]:
        """Wavefronts of each warp, counted from all addresses."""

    def place(self, offset: int) -> int | None:
        """The offset of an element in this round's scratch, or None where it is another round's."""
        granule = offset >> self.addresses.tile
        if not self.granules[0] <= granule < self.granules[1]:
            return None
        return offset - (self.granules[0] << self.addresses.tile)

    def _words(self, places: Sequence[int], size: int) -> int:
        """Wavefronts of one phase: accesses of ``size`` bytes at these places."""
        width = self.machine.bank_bytes
        words: set[int] = set()
        for place in places:
            start = self.addresses.byte(place)
            words.update(range(start // width, (start + size - 1) // width + 1))
        return max(Counter(word % self.machine.banks for word in words).values(), default=0)

    @lazy
    def _active_warps(self) -> list[int]:
        return [warp for warp in range(self.warps) if not warp & self.idle_warps]

    @lazy
    def _granule_counts(self) -> Counter[int]:
        """How many instructions (or matrices) start in each granule, by registers alone."""
        tile = self.addresses.tile
        columns = [column >> tile for column in self.across]
        basis = f2.reduced_basis(columns)
        each = 1 << (len(columns) - len(basis))
        return Counter({granule: each for granule in span(basis)})

    @lazy
    def _by_registers(self) -> bool:
        """Whether lanes and warps differ in no granule bit: then all granules of a round are alike."""
        return not self.addresses.thread_bits >> self.addresses.tile

    @lazy
    def _in_round(self) -> int:
        """How many instructions (or matrices) have their registers in this round."""
        columns = [column >> self.addresses.tile for column in self.across]
        basis = f2.reduced_basis(columns)
        each = 1 << (len(columns) - len(basis))
        if basis == f2.identity(len(basis)):
            return each * max(0, min(self.granules[1], 1 << len(basis)) - self.granules[0])
        return each * sum(self.granules[0] <= granule < self.granules[1] for granule in span(basis))

    @lazy
    def _warp_granules(self) -> Counter[int]:
        """How many active warps start in each granule, by the warp alone."""
        tile = self.addresses.tile
        return Counter(f2.apply(self.addresses.warps, warp) >> tile for warp in self._active_warps)


@dataclass(frozen=True)
class VectorAccess(Access):
    """``st.shared`` or ``ld.shared`` of vectors: each active lane its own, ``2**inside`` registers.

    Lanes with one of the bits ``idle_lanes`` hold copies and do not take part.
    """

    idle_lanes: int = 0

    @property
    def lane_offsets(self) -> f2.Matrix:
        return self.addresses.lanes

    def _numbers(self) -> Sequence[int]:
        every = range(1 << len(self.across))
        if self.guarded:
            warps = range(self.warps)
            return [i for i in every if any(at is not None for warp in warps for at in self.starts(i, warp))]
        return [i for i in every if self.place(f2.apply(self.across, i)) is not None]

    @property
    def vector_bits(self) -> int:
        """Bits per lane and instruction."""
        return (1 << (self.inside - self.addresses.unit)) * self.addresses.unit_bits

    @lazy
    def _phase_lanes(self) -> int:
        machine = self.machine
        return machine.wavefront_bytes // max(machine.bank_bytes, self.vector_bits // 8)

    @lazy
    def _lane_offsets(self) -> list[int]:
        return span(self.addresses.lanes)

    def _placed(self, base: int) -> list[int | None]:
        """For each lane the place of its vector, None where it does not take part."""
        return [
            None if lane & self.idle_lanes else self.place(base ^ column)
            for lane, column in enumerate(self._lane_offsets)
        ]

    def starts(self, instruction: int, warp: int) -> list[int | None]:
        """For each lane of a warp the place of its vector, None where it does not take part."""
        if warp & self.idle_warps:
            return [None] * (1 << len(self.addresses.lanes))
        thread = f2.apply(self.addresses.warps, warp ^ self.warp_flip)
        immediate, xor = self.addresses.split(instruction << self.inside)
        return self._placed((thread ^ xor) + immediate)

    def _wavefronts(self, starts: Sequence[int | None]) -> int:
        size, step = self.vector_bits // 8, self._phase_lanes
        phases = (starts[first : first + step] for first in range(0, len(starts), step))
        return sum(self._words([place for place in phase if place is not None], size) for phase in phases)

    def wavefronts_by_warp(self) -> list[int]:
        return [
            sum(self._wavefronts(self.starts(instruction, warp)) for instruction in range(1 << len(self.across)))
            for warp in range(self.warps)
        ]

    @lazy
    def _one(self) -> int:
        """The wavefronts of an instruction, where all are alike."""
        return self._wavefronts(self._placed(self.granules[0] << self.addresses.tile))

    @lazy
    def _by_granule(self) -> dict[int, int]:
        """The wavefronts of an instruction of a warp that starts in each granule; none where no lane takes part."""
        found: dict[int, int] = {}
        for granule in {a ^ b for a in self._granule_counts for b in self._warp_granules}:
            starts = self._placed(granule << self.addresses.tile)
            if any(place is not None for place in starts):
                found[granule] = self._wavefronts(starts)
        return found

    def _count(self) -> int:
        if self._by_registers:
            return self._in_round
        return max(
            sum(count for own, count in self._granule_counts.items() if own ^ warp in self._by_granule)
            for warp in self._warp_granules
        )

    def _all_wavefronts(self) -> int:
        if self._by_registers:
            return self._one * self._in_round * len(self._active_warps)
        return sum(
            count * warps * self._by_granule.get(own ^ warp, 0)
            for own, count in self._granule_counts.items()
            for warp, warps in self._warp_granules.items()
        )

    @property
    def bound(self) -> int:
        lanes = 1 << len(self.addresses.lanes)
        return self.instructions * len(self._active_warps) * max(1, lanes // self._phase_lanes)

    def moves(self) -> Iterator[tuple[int, int, list[int], int]]:
        """(warp, lane, registers, place) of every vector."""
        for instruction in range(1 << len(self.across)):
            registers = list(range(instruction << self.inside, (instruction + 1) << self.inside))
            for warp in range(self.warps):
                for lane, start in enumerate(self.starts(instruction, warp)):
                    if start is not None:
                        yield warp, lane, registers, start

    def __str__(self) -> str:
        return f"{'store' if self.stores else 'load'} {self.instructions} x {self.vector_bits} bits"


@dataclass(frozen=True)
class MatrixAccess(Access):
    """``stmatrix`` or ``ldmatrix``: matrices of rows of 16 bytes, one address from each lane that has a row.

    Of an 8x4 matrix of 32-bit words, lane l has word (l / 4, l % 4). Transposed, of an 8x8 matrix of 16-bit units it has units
    (2 (l % 4) + i, l / 4), and of a 16x16 matrix of bytes (4 (l % 4) + i, l / 4) and (4 (l % 4) + i, l / 4 + 8).
    """

    rows: f2.Matrix = field(default=())
    """The offsets that the bits of a row's number move by."""
    kind: AccessKind = "matrix"

    @property
    def lane_offsets(self) -> f2.Matrix:
        """Bits 0 to 2 of the lane's number (to 3 with 16 rows) are the row whose address it gives, those above the matrix of the
        instruction. Lanes past the last matrix repeat an earlier one."""
        matrices = self.across[: self.together.bit_length() - 1]
        return (*self.rows, *matrices, *(0,) * (LANES.bit_length() - 1 - len(self.rows) - len(matrices)))

    def _numbers(self) -> Sequence[int]:
        return self.matrices[:: self.together]

    @lazy
    def together(self) -> int:
        """Matrices per instruction."""
        return min(LANES // ROWS[self.kind], 1 << len(self.across))

    @lazy
    def matrices(self) -> list[int]:
        """The matrices of this round, by number; ``together`` consecutive ones take an
        instruction."""
        if all(self.granules[0] <= granule < self.granules[1] for granule in self._granule_counts):
            return list(range(1 << len(self.across)))
        return [
            matrix for matrix in range(1 << len(self.across)) if self.place(f2.apply(self.across, matrix)) is not None
        ]

    def _count(self) -> int:
        return -(-self._in_round // self.together)

    def address_of(self, instruction: int, lane: int) -> tuple[int, int]:
        """(matrix, row) whose address lane ``lane`` gives to an instruction. Lanes past the last matrix repeat an earlier row:
        their addresses are not used, but have to be valid."""
        number, row = divmod(lane, ROWS[self.kind])
        matrices = self.matrices[instruction * self.together : (instruction + 1) * self.together]
        return matrices[number % len(matrices)], row

    def row_places(self, matrix: int, warp: int) -> list[int]:
        """The places of a matrix's rows."""
        thread = f2.apply(self.addresses.warps, warp ^ self.warp_flip)
        immediate, xor = self.addresses.split(matrix << self.inside)
        return self._rows((thread ^ xor) + immediate)

    def _rows(self, base: int) -> list[int]:
        places = [self.place(base ^ row) for row in span(self.rows)]
        found = [place for place in places if place is not None]
        if len(found) < ROWS[self.kind] or any(self.addresses.byte(place) % ROW_BYTES for place in found):
            raise ValueError(f"shared memory: rows of a matrix at cells {places}")
        return found

    def _wavefronts(self, places: Sequence[int]) -> int:
        phases = (places[first : first + PHASE_ROWS] for first in range(0, len(places), PHASE_ROWS))
        return sum(self._words(phase, ROW_BYTES) for phase in phases)

    def wavefronts_by_warp(self) -> list[int]:
        return [
            0 if warp & self.idle_warps else sum(self._wavefronts(self.row_places(m, warp)) for m in self.matrices)
            for warp in range(self.warps)
        ]

    def _all_wavefronts(self) -> int:
        if not self._in_round:
            return 0
        start = self.granules[0] << self.addresses.tile
        return self._wavefronts(self._rows(start)) * self._in_round * len(self._active_warps)

    @property
    def bound(self) -> int:
        rows = ROWS[self.kind] * ROW_BYTES // self.machine.wavefront_bytes
        return self._in_round * max(1, rows) * len(self._active_warps)

    def share(self, lane: int) -> list[tuple[int, int]]:
        """(row, element of the row) of each element of this lane, in the order of its registers."""
        bits = self.addresses.bits
        if self.kind == "matrix":
            word = 32 // bits
            return [(lane // 4, lane % 4 * word + element) for element in range(word)]
        if self.kind == "transposed":
            unit = 16 // bits
            return [(lane % 4 * 2 + row, lane // 4 * unit + element) for row in (0, 1) for element in range(unit)]
        unit = 8 // bits
        return [
            (lane % 4 * 4 + row, (lane // 4 + 8 * half) * unit + element)
            for half in (0, 1)
            for row in range(4)
            for element in range(unit)
        ]

    def __str__(self) -> str:
        name = "stmatrix" if self.stores else "ldmatrix"
        suffix = {"matrix": "", "transposed": ".trans", "bytes": ".trans.b8"}.get(self.kind, "")
        return f"{name} {self.instructions} x x{self.together}{suffix}"
