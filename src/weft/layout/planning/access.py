"""Accesses to a *given* memory layout: which instruction, which lane gives which address, and what it costs (theorem 5.1).

`plan_memory` chooses the memory's layout; `plan_access` takes it as it is: a buffer that TMA or `cp.async` fills, or that
`wgmma` reads. With the access map L = inverse(memory) . registers, an instruction with tile T serves the access iff L divides
by T on the left, registers permuted at will (generalised vectorisation). A *row* is 16 aligned bytes; the conditions are:

    way          inside the row, lowest offset bit first           lanes of the row number         needs
    vector       registers                                         -
    matrix       registers up to 32 bits, then lanes 0 and 1       lanes 2, 3, 4                   8, 16 or 32 bits
    transposed   registers up to 16 bits, then lanes 2, 3 and 4    a register, lanes 0 and 1       8 or 16 bits
    bytes        lanes 2, 3 and 4, then a register                 2 registers, lanes 0 and 1      8 bits, a load

Every other column of L is a multiple of the row's (or the vector's) size: it moves whole rows. `matrix` and the others are
``ldmatrix`` or ``stmatrix``, one to four matrices an instruction (two with `bytes`).

Addresses. Instruction i of lane l, warp w and block b accesses the XOR of columns, in bytes. Write D for the bits that any
lane, warp or block column has. The instruction's part outside D is an immediate offset, since no carry can meet it; its part
inside D takes one XOR for each of its values: ``(base(l, w, b) ^ xor(i)) + immediate(i)``.

    [16, 64] float16, 128-byte swizzle, ldmatrix.x4 of the left operand of mma (16 x 16 a step): 4 instructions. Column bits 4 and
    5 of the tensor are offset bits 5 and 6 in bytes, which the swizzle mixes with the row: two XORs, no immediate.

Law: `AccessPlan.load` of a buffer and `AccessPlan.store` into one equal the evaluation of both layouts, element by element.

Not covered: elements of less than a byte, accesses to another block's memory, and transposed stores of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from weft.layout.algebra import f2, subspaces
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.lazy import lazy
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP
from weft.layout.memory.banks import BLOCK, OFFSET
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.matrix import LANES, ROW_BITS, ROWS, AccessKind
from weft.layout.planning.networks import build, length
from weft.layout.planning.permutes import Network, Words, word_bits
from weft.layout.planning.price import clocks
from weft.layout.planning.steps import Cost, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

WAYS: Final[tuple[AccessKind, ...]] = ("vector", "matrix", "transposed", "bytes")
_PHASE_ROWS: Final = 8
_NAMES: Final = {"matrix": "", "transposed": ".trans", "bytes": ".trans.b8"}


@dataclass(frozen=True)
class Columns:
    """The access map: the offset, in elements, by which each bit of a register, lane, warp or block moves."""

    register: f2.Matrix
    lane: f2.Matrix
    warp: f2.Matrix
    block: f2.Matrix

    @property
    def threads(self) -> f2.Matrix:
        """The columns of all but registers."""
        return (*self.lane, *self.warp, *self.block)


@dataclass(frozen=True)
class AccessPlan:
    """How the threads of a block load a distributed tensor from a given memory, or store it; see the module."""

    way: AccessKind
    stores: bool
    bits: int
    columns: Columns
    inside: f2.Matrix
    """Register masks: what moves inside the vector, or inside the registers that one matrix fills."""
    across: f2.Matrix
    """Register masks: what moves to other matrices of an instruction, then to other instructions."""
    rows: f2.Matrix
    """For a matrix way the offset columns, in elements, of the address that a lane gives, by the bits of its number: the row's
    bits, then the matrix's."""
    machine: MachineModel
    reason: str

    @lazy
    def together(self) -> int:
        """Matrices of one instruction; 1 for vectors."""
        return 1 if self.way == "vector" else min(LANES // ROWS[self.way], 1 << len(self.across))

    @property
    def instructions(self) -> int:
        """Instructions of a thread."""
        return (1 << len(self.across)) // self.together

    @property
    def width(self) -> int:
        """Bits that a lane moves in one instruction."""
        return self.together * self.bits << len(self.inside)

    @lazy
    def addressed(self) -> f2.Matrix:
        """The columns, in bytes, of a thread's base address by the bits of its lane, then its warp, then its block."""
        lanes = self.columns.lane if self.way == "vector" else self.rows
        return self._bytes((*lanes, *self.columns.warp, *self.columns.block))

    @lazy
    def _steps(self) -> f2.Matrix:
        """The columns, in bytes, by the bits of the instruction's number."""
        across = self.across[self.together.bit_length() - 1 :]
        return self._bytes(f2.compose(self.columns.register, across))

    @property
    def _dynamic(self) -> int:
        """The address bits that depend on the thread."""
        return _union(self.addressed)

    @property
    def xors(self) -> f2.Matrix:
        """For each bit of the instruction's number the part of its column that is XORed to the base address, in bytes."""
        return tuple(column & self._dynamic for column in self._steps)

    @property
    def immediates(self) -> f2.Matrix:
        """For each bit of the instruction's number the part of its column that is an immediate offset, in bytes."""
        return tuple(column & ~self._dynamic for column in self._steps)

    def _bytes(self, columns: f2.Matrix) -> f2.Matrix:
        return tuple(column * (self.bits // 8) for column in columns)

    @property
    def idle(self) -> tuple[int, int]:
        """The masks of lane bits and warp bits that have to be 0 for a thread to take part: stores skip copies. All lanes take
        part in a matrix access."""
        if not self.stores:
            return 0, 0
        lanes = _zeros(self.columns.lane) if self.way == "vector" else 0
        return lanes, _zeros(self.columns.warp)

    @lazy
    def cost(self) -> Cost:
        """Instructions, wavefronts of all warps, and the permutes that put the elements of a word in order."""
        warps = 1 << (len(self.columns.warp) - self.idle[1].bit_count())
        wavefronts = self._wavefronts() * self.instructions * warps
        permutes = length(*self._columns)
        if self.stores:
            return Cost(stores=self.instructions, wavefronts=wavefronts, permutes=permutes)
        return Cost(loads=self.instructions, wavefronts=wavefronts, permutes=permutes)

    @property
    def words(self) -> Words:
        """How the registers of the access lie in words: instruction (or matrix) i has those from ``i << len(inside)`` on."""
        return Words(self.bits, min(len(self.inside), word_bits(self.bits)))

    @property
    def _columns(self) -> tuple[f2.Matrix, f2.Matrix, Words, Words]:
        own = Words.packed(self.bits)
        return (self._accessed, (), own, self.words) if self.stores else (self._sources, (), self.words, own)

    @lazy
    def network(self) -> Network:
        """The permutes between a thread's packed registers and those of the access (`words`): before a store, after a load."""
        return build(*self._columns)

    @property
    def _accessed(self) -> f2.Matrix:
        """The register masks of all that is accessed, lowest places first."""
        return (*self.inside, *self.across)

    @lazy
    def _sources(self) -> f2.Matrix:
        """For each register bit the accessed places, as a mask of `_accessed`, that make the same offset: a copy has none of its
        own."""
        echelon = f2.Echelon(f2.compose(self.columns.register, self._accessed))
        return tuple(echelon.reduce(column)[1] for column in self.columns.register)

    def _wavefronts(self) -> int:
        """Wavefronts of one instruction of one warp: those of other instructions and warps differ by an XOR."""
        lanes = range(1 << len(self.columns.lane))
        if self.way == "vector":
            size = self.width // 8
            active = [None if lane & self.idle[0] else f2.apply(self.addressed, lane) for lane in lanes]
            step = self.machine.banks * self.machine.bank_bytes // max(self.machine.bank_bytes, size)
        else:
            size, step = ROW_BITS // 8, _PHASE_ROWS
            active = [f2.apply(self.addressed, lane) for lane in range(ROWS[self.way] * self.together)]
        phases = (active[first : first + step] for first in range(0, len(active), step))
        return sum(_served([at for at in phase if at is not None], size, self.machine) for phase in phases)

    # Simulation

    def load(self, buffer: NDArray[Any], block: int = 0) -> NDArray[Any]:
        """What the threads of a block hold after loading from ``buffer``, its memory: (warps, lanes, registers)."""
        import numpy as np

        accessed = np.zeros(self._shape, dtype=buffer.dtype)
        for warp, lanes, registers, offsets in self.moves(block):
            accessed[warp, lanes, registers] = buffer[offsets]
        return accessed[:, :, table(f2.compose(self._accessed, self._sources))]

    def store(self, state: NDArray[Any], buffer: NDArray[Any], block: int = 0) -> None:
        """Write what the threads of a block hold, (warps, lanes, registers), into ``buffer``, its memory."""
        for warp, lanes, registers, offsets in self.moves(block):
            buffer[offsets] = state[warp, lanes, registers]

    @property
    def _shape(self) -> tuple[int, int, int]:
        return 1 << len(self.columns.warp), 1 << len(self.columns.lane), 1 << len(self.columns.register)

    def moves(self, block: int = 0) -> Iterator[tuple[int, NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """What each instruction of each warp of a block moves, by the instruction's definition: the warp, and for each element
        its lane, its register and its offset."""
        import numpy as np

        warps, lanes, _ = self._shape
        active = np.array([lane for lane in range(lanes) if not lane & self.idle[0]])
        for number in range(self.instructions):
            for warp in range(warps):
                if warp & self.idle[1]:
                    continue
                given = np.array([self._address(number, lane, warp, block) for lane in range(lanes)])
                for matrix in range(self.together):
                    registers = f2.apply(self.across, number * self.together + matrix) ^ table(self.inside)
                    if self.way == "vector":
                        offsets = given[active][:, None] + np.arange(len(registers))
                    else:
                        shares = np.array([fragment(self.way, self.bits, lane) for lane in range(lanes)])
                        offsets = given[matrix * ROWS[self.way] + shares[..., 0]] + shares[..., 1]
                    who = np.broadcast_to(active[:, None], offsets.shape)
                    yield warp, who.ravel(), np.broadcast_to(registers, offsets.shape).ravel(), offsets.ravel()

    def _address(self, number: int, lane: int, warp: int, block: int) -> int:
        """The address a lane gives to an instruction, in elements. `ValueError` where it is not aligned."""
        bits = len(self.columns.lane)
        lane_bits = bits if self.way == "vector" else len(self.rows)
        thread = lane & ((1 << lane_bits) - 1) | warp << lane_bits | block << (lane_bits + len(self.columns.warp))
        at = (f2.apply(self.addressed, thread) ^ f2.apply(self.xors, number)) + f2.apply(self.immediates, number)
        aligned = self.width // 8 if self.way == "vector" else ROW_BITS // 8
        if at % aligned:
            raise ValueError(f"shared memory: an access of {aligned} bytes at address {at}")
        return at // (self.bits // 8)

    def __str__(self) -> str:
        if self.way == "vector":
            return f"{'store' if self.stores else 'load'} {self.instructions} x {self.width} bits"
        return f"{'stmatrix' if self.stores else 'ldmatrix'} {self.instructions} x x{self.together}{_NAMES[self.way]}"


def fragment(way: AccessKind, bits: int, lane: int) -> list[tuple[int, int]]:
    """What a lane has of a matrix: (row, element in the row) in the order of its registers (PTX ISA, ``ldmatrix``)."""
    if way == "matrix":
        word = 32 // bits
        return [(lane // 4, lane % 4 * word + element) for element in range(word)]
    if way == "transposed":
        unit = 16 // bits
        return [(lane % 4 * 2 + row, lane // 4 * unit + element) for row in (0, 1) for element in range(unit)]
    return [(lane % 4 * 4 + row, lane // 4 + 8 * half) for half in (0, 1) for row in range(4)]


def _union(columns: f2.Matrix) -> int:
    mask = 0
    for column in columns:
        mask |= column
    return mask


def _zeros(columns: f2.Matrix) -> int:
    return sum(1 << bit for bit, column in enumerate(columns) if not column)


def _served(starts: list[int], size: int, machine: MachineModel) -> int:
    """Wavefronts of one phase: the most distinct words that a bank serves."""
    width = machine.bank_bytes
    words = {word for start in starts for word in range(start // width, (start + size - 1) // width + 1)}
    banks = [word % machine.banks for word in words]
    return max((banks.count(bank) for bank in set(banks)), default=0)


# Which instruction


def _map(distributed: LinearLayout, memory: LinearLayout) -> Columns:
    """The access map of both layouts; `ValueError` where the tensors differ or a block lacks an element."""
    if dict(distributed.outputs) != dict(memory.outputs):
        raise ValueError(f"plan_access: the layouts are of different tensors: {distributed} and {memory}")
    for role, layout, known in (
        ("register", distributed, (REGISTER, LANE, WARP, BLOCK)),
        ("memory", memory, (OFFSET, BLOCK)),
    ):
        if unknown := [dim for dim in layout.in_dims if dim not in known]:
            raise ValueError(
                f"plan_access: the {role} layout has input dimension {unknown[0]}, expected {', '.join(known)}"
            )
    held = memory.transpose_outs(distributed.out_dims)
    columns, places = dict(distributed.inputs), dict(held.inputs)
    blocks, homes = columns.get(BLOCK, ()), places.get(BLOCK, ())
    if len(homes) > len(blocks):
        blocks += (0,) * (len(homes) - len(blocks))
    homes += (0,) * (len(blocks) - len(homes))
    wanted = {**columns, BLOCK: tuple(a ^ b for a, b in zip(blocks, homes, strict=True))}
    echelon = f2.Echelon(places.get(OFFSET, ()))
    found: dict[str, f2.Matrix] = {}
    for dim, vectors in wanted.items():
        solved = [echelon.reduce(vector) for vector in vectors]
        for bit, (rest, _) in enumerate(solved):
            if rest:
                element = distributed.unflatten(vectors[bit])
                raise ValueError(
                    f"plan_access: basis {bit} of {dim} leads to element {element}, which the block's own memory does not hold"
                )
        found[dim] = tuple(used for _, used in solved)
    return Columns(*(found.get(dim, ()) for dim in (REGISTER, LANE, WARP, BLOCK)))


@dataclass(frozen=True)
class _Split:
    """The registers of a way: see `AccessPlan`."""

    inside: f2.Matrix
    across: f2.Matrix
    rows: f2.Matrix = ()


def _split(
    columns: Columns, way: AccessKind, bits: int, size: int, machine: MachineModel, stores: bool
) -> _Split | str:
    """How the registers divide, for a vector of ``2**size`` elements or a matrix way; why not, where there is no quotient."""
    if way == "vector":
        return _divide(columns, {}, size)
    if reason := _lacks(way, bits, machine, stores):
        return reason
    if len(columns.lane) != LANES.bit_length() - 1:
        return f"the layout has {1 << len(columns.lane)} lanes, expected {LANES}"
    lane = columns.lane
    row = (ROW_BITS // bits).bit_length() - 1
    if way == "matrix":
        low = (32 // bits).bit_length() - 1
        found = _divide(columns, {0: low, 1: low + 1}, row)
        return found if isinstance(found, str) else _Split(found.inside, found.across, lane[2:5])
    low = (16 // bits).bit_length() - 1 if way == "transposed" else 0
    found = _divide(columns, {2: low, 3: low + 1, 4: low + 2}, row)
    if isinstance(found, str):
        return found
    count = 1 if way == "transposed" else 2
    if len(found.across) < count:
        return f"a thread has {1 << len(found.across)} rows, expected {1 << count} for a matrix"
    numbered, across = found.across[:count], found.across[count:]
    rows = (*f2.compose(columns.register, numbered), *lane[:2])
    return _Split((*found.inside[:low], *numbered, *found.inside[low:]), across, rows)


def _lacks(way: AccessKind, bits: int, machine: MachineModel, stores: bool) -> str | None:
    """Why a machine has no such instruction for elements of these bits."""
    name = f"{'stmatrix' if stores else 'ldmatrix'}{_NAMES[way]}"
    if not (machine.stmatrix if stores else machine.ldmatrix) or machine.lanes != LANES:
        return f"{machine.name} has no {name}"
    if way == "bytes" and (stores or not machine.matrix_b8):
        return f"{machine.name} has no {name}"
    known = {"matrix": (8, 16, 32), "transposed": (8, 16), "bytes": (8,)}[way]
    return None if bits in known else f"{name} moves elements of {' or '.join(map(str, known))} bits, not {bits}"


def _divide(columns: Columns, fixed: dict[int, int], row: int) -> _Split | str:
    """Left division by a tile of ``row`` offset bits: those of ``fixed`` (lane bit: offset bit) come from lanes, the others from
    registers; everything else is a multiple of the row."""
    mask = (1 << row) - 1
    for bit, place in fixed.items():
        if columns.lane[bit] != 1 << place:
            return f"basis {bit} of lane moves the offset by {columns.lane[bit]}, expected {1 << place}"
    for dim, vectors in ((LANE, columns.lane), (WARP, columns.warp), (BLOCK, columns.block)):
        for bit, column in enumerate(vectors):
            if column & mask and not (dim == LANE and bit in fixed):
                return f"basis {bit} of {dim} moves the offset by {column}, expected a multiple of {1 << row}"
    echelon = f2.Echelon(columns.register)
    places = [place for place in range(row) if place not in fixed.values()]
    inside: list[int] = []
    for place in places:
        rest, used = echelon.reduce(1 << place)
        if rest:
            return f"no register moves the offset by {1 << place}"
        inside.append(used)
    owned = sum(1 << place for place in places)
    copies = f2.kernel(columns.register)
    across: list[int] = []
    for unit in subspaces.extend((*inside, *copies), f2.identity(len(columns.register))):
        register, offset = unit, f2.apply(columns.register, unit)
        if taken := offset & mask & ~owned:
            return f"register {register} moves the offset by {offset}, whose part {taken} is that of lanes"
        # Each instruction starts where a row does.
        for place, own in zip(places, inside, strict=True):
            register ^= own if offset >> place & 1 else 0
        across.append(register)
    return _Split(tuple(inside), tuple(across))


def _check(bits: int, machine: MachineModel, columns: Columns, way: AccessKind | None) -> None:
    if not machine.scratch:
        raise ValueError(f"plan_access: {machine.name} has no shared memory")
    if log2_exact(bits) is None or not 8 <= bits <= 8 * machine.widest:
        raise ValueError(f"plan_access: bits is {bits}, expected a power of two from 8 to {8 * machine.widest}")
    lanes = 1 << len(columns.lane)
    if lanes != machine.lanes:
        raise ValueError(f"plan_access: the register layout has {lanes} lanes, {machine.name} has {machine.lanes}")
    if way is not None and way not in WAYS:
        raise ValueError(f"plan_access: way is {way!r}, expected one of {', '.join(WAYS)}")


def why_not_access(
    distributed: LinearLayout,
    memory: LinearLayout,
    bits: int,
    machine: MachineModel,
    way: AccessKind,
    stores: bool = False,
) -> str | None:
    """Why a way cannot serve the access, in the words of the first condition that fails; None where it can."""
    columns = _map(distributed, memory)
    _check(bits, machine, columns, way)
    found = _split(columns, way, bits, 0, machine, stores)
    return found if isinstance(found, str) else None


@lru_cache(maxsize=1024)
def plan_access(
    distributed: LinearLayout,
    memory: LinearLayout,
    bits: int,
    machine: MachineModel,
    stores: bool = False,
    way: AccessKind | None = None,
    late: int = 0,
) -> AccessPlan:
    """The cheapest loads of a tensor of elements of ``bits`` from a memory layout into a register layout, or stores.

    ``distributed`` goes from register, lane, warp and block to the tensor; ``memory`` from offset and block. Columns may be any;
    copies are loaded by all that hold them and stored once. ``way`` allows only that way. Of the register bits those in
    the mask ``late`` number instructions last. `ValueError` says which argument is wrong, that a block lacks an element, or why
    ``way`` cannot serve.
    """
    columns = _map(distributed, memory)
    _check(bits, machine, columns, way)
    refused: list[str] = []
    tried: list[AccessPlan] = []
    for candidate in WAYS if way is None else (way,):
        found = _widest(columns, candidate, bits, machine, stores)
        if isinstance(found, str):
            refused.append(f"{candidate}: {found}")
            continue
        across = tuple(sorted(found.across, key=lambda unit: bool(unit & late)))
        rows = found.rows
        if rows:
            together = min(LANES // ROWS[candidate], 1 << len(across))
            rows += f2.compose(columns.register, across[: together.bit_length() - 1])
        tried.append(AccessPlan(candidate, stores, bits, columns, found.inside, across, rows, machine, ""))
    if not tried:
        raise ValueError(f"plan_access: no access by {'; '.join(refused)}")
    warps = 1 << len(columns.warp)
    # At equal clocks the fewest instructions.
    ranked = sorted((clocks(plan.cost, machine, warps), plan.cost.instructions, at) for at, plan in enumerate(tried))
    compared = [f"{tried[at]}: {price:.0f} clocks" for price, _, at in ranked]
    reason = ", ".join(compared) + (f"; not {'; not '.join(refused)}" if refused else "")
    return replace(tried[ranked[0][2]], reason=reason)


def plan_vectors(
    distributed: LinearLayout, memory: LinearLayout, bits: int, machine: MachineModel, inside: f2.Matrix
) -> AccessPlan:
    """Stores of a tensor in vectors of the register masks ``inside``, in their order: as many of them as the memory has next to
    each other. Copies from global memory have these vectors at their other end, too. All other registers are units."""
    columns = _map(distributed, memory)
    _check(bits, machine, columns, "vector")
    units = [unit for unit in f2.identity(len(columns.register)) if f2.apply(columns.register, unit)]
    for size in range(len(inside), -1, -1):
        taken = inside[:size]
        across = tuple(unit for unit in units if unit not in taken)
        others = (*f2.compose(columns.register, across), *columns.threads)
        dense = f2.compose(columns.register, taken) == f2.identity(size)
        if dense and not any(column & ((1 << size) - 1) for column in others):
            return AccessPlan(
                "vector", True, bits, columns, taken, across, (), machine, f"vectors of {bits << size} bits"
            )
    raise AssertionError("vectors of one element are always possible")


def _widest(columns: Columns, way: AccessKind, bits: int, machine: MachineModel, stores: bool) -> _Split | str:
    """The split of a way, of the widest vectors that there are; why not, for a matrix way."""
    widest = (8 * machine.widest // bits).bit_length() - 1
    sizes = range(widest, 0, -1) if way == "vector" else ()
    splits = (_split(columns, way, bits, size, machine, stores) for size in sizes)
    wide = next((split for split in splits if isinstance(split, _Split)), None)
    return wide or _split(columns, way, bits, 0, machine, stores)
