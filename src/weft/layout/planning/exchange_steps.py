"""The steps of a conversion through shared memory, executed on a memory that notices mistakes.

One would check a plan's addresses by the formula that made them. Here every access names an address per thread and really writes
or reads there (`scratch_memory`), so a wrong address, or a barrier too few, raises or gives wrong labels.

Addresses are linear: the offset of what (register, lane, warp) holds is the XOR of one column per index bit (`Addresses`).
Low offset bits are inside a vector, higher ones its place; those from ``tile`` on number *granules*, the parts of a tensor that
rounds through a smaller scratch move. Wavefronts are counted from the addresses of the lanes of a phase (see `banks`); a
phase without active lanes takes none. Where all instructions differ by an XOR one is counted and multiplied;
`ThroughMemory.wavefronts_by_warp` counts them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from weft.layout.algebra import f2
from weft.layout.planning.machine import MachineModel, Scope
from weft.layout.planning.matrix import LANES, ROWS, Access
from weft.layout.planning.scratch_memory import Memory
from weft.layout.planning.steps import Cost, Step, total

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass
class Threads:
    """What all threads and their memory hold while a `ThroughMemory` runs."""

    registers: NDArray[Any]
    """(warps, lanes, registers)."""
    memory: Memory
    loaded: NDArray[Any]
    """What has been loaded, (warps, lanes, registers)."""
    filled: NDArray[Any]
    """Which registers of ``loaded`` have been."""


class Part(ABC):
    """One thing all threads do on the way through memory."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What it costs."""

    @abstractmethod
    def run(self, threads: Threads) -> None:
        """Do it."""

    @abstractmethod
    def __str__(self) -> str: ...

    def wavefronts_by_warp(self, warps: int) -> list[int]:
        """Wavefronts of each warp, counted from all addresses."""
        return [0] * warps


@dataclass(frozen=True)
class Barrier(Part):
    """All threads of a warp (``bar.warp.sync``) or block (``bar.sync``) wait for each other; both count as one barrier."""

    scope: Scope

    @property
    def cost(self) -> Cost:
        return Cost(barriers=1)

    def run(self, threads: Threads) -> None:
        threads.memory.barrier(self.scope)

    def __str__(self) -> str:
        return "barrier" if self.scope == "block" else "warp barrier"


def span(columns: Sequence[int]) -> list[int]:
    """All sums of the columns, by the mask that selects them."""
    sums = [0]
    for column in columns:
        sums += [column ^ old for old in sums]
    return sums


@dataclass(frozen=True)
class Select(Part):
    """Registers renamed, packed or chosen: new register r of a thread is old register ``registers.r ^ lanes.l ^ warps.w``.

    Where lanes or warps have a say, the threads choose at run time. ``permutes`` byte permutes and selects do it. ``after``
    loading it makes the result of what was loaded.
    """

    registers: f2.Matrix
    lanes: f2.Matrix
    warps: f2.Matrix
    permutes: int
    after: bool

    @property
    def cost(self) -> Cost:
        return Cost(permutes=self.permutes)

    def run(self, threads: Threads) -> None:
        import numpy as np

        warps, lanes, registers = (
            np.array(span(columns), dtype=np.intp) for columns in (self.warps, self.lanes, self.registers)
        )
        choice = warps[:, None, None] ^ lanes[None, :, None] ^ registers
        if not self.after:
            threads.registers = np.take_along_axis(threads.registers, choice, axis=2)
            return
        if not np.take_along_axis(threads.filled, choice, axis=2).all():
            raise ValueError("shared memory: a register of the result was never loaded")
        threads.loaded = np.take_along_axis(threads.loaded, choice, axis=2)

    def __str__(self) -> str:
        what = "select" if any(self.lanes) or any(self.warps) else "permute"
        return f"{what} with {self.permutes} instructions" if self.permutes else "rename registers"


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

    def byte(self, offset: int) -> int:
        """The address of the unit at this offset."""
        return (offset >> self.unit) * self.unit_bits // 8


@dataclass(frozen=True)
class _Access(Part):
    """What stores and loads, plain and matrix, have in common."""

    machine: MachineModel
    addresses: Addresses
    inside: f2.Matrix
    """Register masks: what moves inside the vector, or the 32-bit word, that one lane gives or gets."""
    across: f2.Matrix
    """Register masks: what moves to other instructions, or matrices."""
    granules: tuple[int, int]
    """The first granule of this round, and the one after the last."""
    stores: bool
    idle_warps: int = 0
    """Warps with one of these bits hold copies and do not take part."""

    @property
    def _active_warps(self) -> int:
        return 1 << (len(self.addresses.warps) - self.idle_warps.bit_count())

    @property
    def cost(self) -> Cost:
        return self._cost

    @property
    def _all_granules(self) -> bool:
        columns = (*self.addresses.registers, *self.addresses.lanes, *self.addresses.warps)
        return self.granules[0] == 0 and all(column >> self.addresses.tile < self.granules[1] for column in columns)

    @property
    def scratch(self) -> int:
        """Bytes of scratch this round uses."""
        return self.addresses.byte((self.granules[1] - self.granules[0]) << self.addresses.tile)

    def _place(self, offset: int) -> int | None:
        """The cell of an element in this round's scratch, or None where it is another round's."""
        granule = offset >> self.addresses.tile
        if not self.granules[0] <= granule < self.granules[1]:
            return None
        return offset - (self.granules[0] << self.addresses.tile)

    def _words(self, cells: Sequence[int], size: int) -> int:
        """Wavefronts of one phase: accesses of ``size`` bytes at these cells."""
        width = self.machine.bank_bytes
        words: set[int] = set()
        for cell in cells:
            start = self.addresses.byte(cell)
            words.update(range(start // width, (start + size - 1) // width + 1))
        banks: dict[int, int] = {}
        for word in words:
            banks[word % self.machine.banks] = banks.get(word % self.machine.banks, 0) + 1
        return max(banks.values(), default=0)

    @cached_property
    def _cost(self) -> Cost:
        warps = 1 << len(self.addresses.warps)
        counted = sum(self.wavefronts_by_warp(warps)) if not self._all_granules else self._one_of_many()
        name = "stores" if self.stores else "loads"
        return Cost(**{name: self.instructions, "wavefronts": counted, "scratch": self.scratch})

    @cached_property
    def instructions(self) -> int:
        """Instructions of a thread in this round."""
        return self._count()

    @abstractmethod
    def _count(self) -> int: ...

    @abstractmethod
    def _one_of_many(self) -> int:
        """Wavefronts of all warps, one instruction of one warp counted and multiplied."""

    @property
    @abstractmethod
    def bound(self) -> int:
        """Wavefronts of all warps if no two words fell into one bank."""


@dataclass(frozen=True)
class Vectors(_Access):
    """``st.shared`` or ``ld.shared`` of vectors: each active lane its own, ``2**len(inside)`` elements.

    Lanes with one of the bits ``idle_lanes`` hold copies and do not take part.
    """

    idle_lanes: int = 0

    @property
    def vector_bits(self) -> int:
        """Bits per lane and instruction."""
        return (1 << (len(self.inside) - self.addresses.unit)) * self.addresses.unit_bits

    @cached_property
    def _phase_lanes(self) -> int:
        machine = self.machine
        return machine.banks * machine.bank_bytes // max(machine.bank_bytes, self.vector_bits // 8)

    def _starts(self, instruction: int, warp: int) -> list[int | None]:
        """For each lane the first cell of its vector, None where it does not take part."""
        registers = f2.apply(self.across, instruction)
        base = f2.apply(self.addresses.registers, registers) ^ f2.apply(self.addresses.warps, warp)
        if warp & self.idle_warps:
            return [None] * (1 << len(self.addresses.lanes))
        return [
            None if lane & self.idle_lanes else self._place(base ^ column)
            for lane, column in enumerate(span(self.addresses.lanes))
        ]

    def _wavefronts(self, starts: Sequence[int | None]) -> int:
        size, step = self.vector_bits // 8, self._phase_lanes
        phases = (starts[first : first + step] for first in range(0, len(starts), step))
        return sum(self._words([cell for cell in phase if cell is not None], size) for phase in phases)

    def wavefronts_by_warp(self, warps: int) -> list[int]:
        return [
            sum(self._wavefronts(self._starts(instruction, warp)) for instruction in range(1 << len(self.across)))
            for warp in range(warps)
        ]

    def _count(self) -> int:
        if self._all_granules:
            return 1 << len(self.across)
        warps = range(1 << len(self.addresses.warps))
        return max(
            sum(any(cell is not None for cell in self._starts(i, warp)) for i in range(1 << len(self.across)))
            for warp in warps
        )

    def _one_of_many(self) -> int:
        return self._wavefronts(self._starts(0, 0)) * self.instructions * self._active_warps

    @property
    def bound(self) -> int:
        lanes = 1 << len(self.addresses.lanes)
        return self.instructions * self._active_warps * max(1, lanes // self._phase_lanes)

    def _moves(self) -> Iterator[tuple[int, int, list[int], int]]:
        """(warp, lane, registers, first cell) of every vector."""
        places = span(self.inside)
        for instruction in range(1 << len(self.across)):
            registers = [f2.apply(self.across, instruction) ^ place for place in places]
            for warp in range(1 << len(self.addresses.warps)):
                for lane, start in enumerate(self._starts(instruction, warp)):
                    if start is None:
                        continue
                    if start % len(places):
                        raise ValueError(f"shared memory: an access of {len(places)} elements at cell {start}")
                    yield warp, lane, registers, start

    def run(self, threads: Threads) -> None:
        import numpy as np

        moves = list(self._moves())
        if not moves:
            return
        size = len(moves[0][2])
        registers = np.array([move[2] for move in moves])
        cells = np.array([[move[3] + place for place in range(size)] for move in moves])
        warps = np.array([[move[0]] * size for move in moves])
        lanes = np.array([[move[1]] * size for move in moves])
        if self.stores:
            threads.memory.write(cells, warps, threads.registers[warps, lanes, registers])
        else:
            threads.loaded[warps, lanes, registers] = threads.memory.read(cells, warps)
            threads.filled[warps, lanes, registers] = True

    def __str__(self) -> str:
        return f"{'store' if self.stores else 'load'} {self.instructions} x {self.vector_bits} bits"


ROW_BYTES = 16
PHASE_ROWS = 8


@dataclass(frozen=True)
class Matrices(_Access):
    """``stmatrix`` or ``ldmatrix``: matrices of rows of 16 bytes, one address from each lane that has a row.

    Of an 8x4 matrix of 32-bit words, lane l has word (l / 4, l % 4). Transposed, of an 8x8 matrix of 16-bit units it has units
    (2 (l % 4) + i, l / 4), and of a 16x16 matrix of bytes (4 (l % 4) + i, l / 4) and (4 (l % 4) + i, l / 4 + 8).
    """

    rows: f2.Matrix = field(default=())
    """The offsets that the bits of a row's number move by."""
    access: Access = "matrix"

    @cached_property
    def together(self) -> int:
        """Matrices per instruction."""
        return min(LANES // ROWS[self.access], 1 << len(self.across))

    @cached_property
    def _matrices(self) -> list[int]:
        """The matrices of this round, as numbers that select from ``across``."""
        offsets = self.addresses.registers
        return [
            matrix
            for matrix in range(1 << len(self.across))
            if self._place(f2.apply(offsets, f2.apply(self.across, matrix))) is not None
        ]

    def _count(self) -> int:
        return -(-len(self._matrices) // self.together)

    def _row_cells(self, matrix: int, warp: int) -> list[int]:
        registers = f2.apply(self.across, matrix)
        base = f2.apply(self.addresses.registers, registers) ^ f2.apply(self.addresses.warps, warp)
        cells = [self._place(base ^ row) for row in span(self.rows)]
        found = [cell for cell in cells if cell is not None]
        if len(found) < ROWS[self.access] or any(self.addresses.byte(cell) % ROW_BYTES for cell in found):
            raise ValueError(f"shared memory: rows of a matrix at cells {cells}")
        return found

    def _wavefronts(self, cells: Sequence[int]) -> int:
        phases = (cells[first : first + PHASE_ROWS] for first in range(0, len(cells), PHASE_ROWS))
        return sum(self._words(phase, ROW_BYTES) for phase in phases)

    def wavefronts_by_warp(self, warps: int) -> list[int]:
        return [
            0 if warp & self.idle_warps else sum(self._wavefronts(self._row_cells(m, warp)) for m in self._matrices)
            for warp in range(warps)
        ]

    def _one_of_many(self) -> int:
        return self._wavefronts(self._row_cells(0, 0)) * len(self._matrices) * self._active_warps

    @property
    def bound(self) -> int:
        rows = ROWS[self.access] * ROW_BYTES // (self.machine.banks * self.machine.bank_bytes)
        return len(self._matrices) * max(1, rows) * self._active_warps

    def _lane(self, lane: int) -> list[tuple[int, int]]:
        """(row, element of the row) of each element of this lane, in the order of ``inside``."""
        bits = self.addresses.bits
        if self.access == "matrix":
            word = 32 // bits
            return [(lane // 4, lane % 4 * word + element) for element in range(word)]
        if self.access == "transposed":
            unit = 16 // bits
            return [(lane % 4 * 2 + row, lane // 4 * unit + element) for row in (0, 1) for element in range(unit)]
        unit = 8 // bits
        return [
            (lane % 4 * 4 + row, (lane // 4 + 8 * half) * unit + element)
            for half in (0, 1)
            for row in range(4)
            for element in range(unit)
        ]

    def run(self, threads: Threads) -> None:
        import numpy as np

        places = np.array(span(self.inside))
        shares = np.array([self._lane(lane) for lane in range(32)])
        for matrix in self._matrices:
            registers = np.broadcast_to(f2.apply(self.across, matrix) ^ places, shares.shape[:2])
            lanes = np.broadcast_to(np.arange(32)[:, None], registers.shape)
            for warp in range(1 << len(self.addresses.warps)):
                if warp & self.idle_warps:
                    continue
                cells = np.array(self._row_cells(matrix, warp))[shares[..., 0]] + shares[..., 1]
                warps = np.full(cells.shape, warp)
                if self.stores:
                    threads.memory.write(cells, warps, threads.registers[warps, lanes, registers])
                else:
                    threads.loaded[warps, lanes, registers] = threads.memory.read(cells, warps)
                    threads.filled[warps, lanes, registers] = True

    def __str__(self) -> str:
        name = "stmatrix" if self.stores else "ldmatrix"
        suffix = {"matrix": "", "transposed": ".trans", "bytes": ".trans.b8"}.get(self.access, "")
        return f"{name} {self.instructions} x x{self.together}{suffix}"


@dataclass(frozen=True)
class ThroughMemory(Step):
    """A conversion through shared memory: ``parts`` in order, from the source's registers to the destination's."""

    parts: tuple[Part, ...]
    shape: tuple[int, int, int]
    """Warps, lanes, registers of the source."""
    loads: int
    """Registers that loads fill; the last part makes the destination's of them."""

    @property
    def cost(self) -> Cost:
        return self._cost

    @cached_property
    def _cost(self) -> Cost:
        return total([part.cost for part in self.parts])

    @property
    def scope(self) -> Scope:
        """Who has to wait: the block if any barrier is the block's."""
        scopes = [part.scope for part in self.parts if isinstance(part, Barrier)]
        return "block" if "block" in scopes else "warp"

    @property
    def conflict_free(self) -> int:
        """Wavefronts if no access conflicted: what lemma 9.6 promises for these instructions."""
        return sum(part.bound for part in self.parts if isinstance(part, Vectors | Matrices))

    def wavefronts_by_warp(self) -> tuple[int, ...]:
        """Wavefronts of each warp, counted from every address of every instruction."""
        counts = [part.wavefronts_by_warp(self.shape[0]) for part in self.parts]
        return tuple(map(sum, zip(*counts, strict=True)))

    def apply(self, state: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        if state.shape != self.shape:
            raise ValueError(
                f"ThroughMemory: labels have shape {state.shape}, expected {self.shape} (warps, lanes, registers)"
            )
        accesses = [part for part in self.parts if isinstance(part, Vectors | Matrices)]
        size = max((part.granules[1] - part.granules[0]) << part.addresses.tile for part in accesses)
        loaded = np.zeros((*self.shape[:2], self.loads), dtype=state.dtype)
        threads = Threads(state, Memory(size, state), loaded, np.zeros(loaded.shape, dtype=bool))
        for part in self.parts:
            part.run(threads)
        return threads.loaded

    def __str__(self) -> str:
        return ", ".join(text for part in self.parts if (text := str(part)) != "rename registers")
