"""Bank conflicts: how many wavefronts a warp's access to shared memory takes (paper 5.4, lemma 9.4).

The map (register, lane, warp) -> offset of an access is linear, so no addresses need to be listed: the count is a difference
of two ranks, the same for all instructions and all warps: they differ by an XOR of offsets, which only permutes banks and
words.

The hardware. Memory is words of 32 bits, word a in bank a mod 32. One instruction moves a *vector*, up to 128 aligned bits, per
lane. It is served in *phases* of as many lanes as fill 128 bytes: all 32 for up to 32 bits, 16 for 64, 8 for 128. A phase takes
as many wavefronts as the most distinct words that any bank has to serve; lanes that want the same word share it, in loads
(broadcast) and in stores (bytes of one word merge). So loads and stores count the same.

Definition. Let a lane bit of a phase move the vector by ``word`` (its address in units of the vector, or of a word if that is
larger) and by ``bank`` (that address modulo what fills the banks). A phase takes ``2**(rank(word) - rank(bank))`` wavefronts.

    64x64 float16, row-major, each lane a word of its own row: lane bit i moves by 64 << i elements, 32 << i words. rank(word)
    is 5, rank(bank) 0: 32 wavefronts. With a swizzle that adds row bit i to bank bit i, rank(bank) is 5: one wavefront.

Lemma 9.4 counts ``c = |span(Vec + Idx) n span(lanes)|`` and says n c wavefronts for vectors of n >= 1 banks. That is this formula
if the lanes are those of one phase (with all 32, c is at least n already), and where vectors are smaller than a word it is only
a bound: lanes that differ inside a word count there as using different banks. `BankConflicts.lemma` has the lemma's number.

What this does not know: that hardware may merge phases whose lanes all want the same words, and the lane orders of other
vendors' phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.layout.algebra import f2, subspaces
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP

OFFSET = "offset"
BLOCK = "block"


@dataclass(frozen=True)
class Banks:
    """A banked memory: ``count`` banks, each serving one word of ``bits`` per wavefront, and the widest access of a lane."""

    count: int = 32
    bits: int = 32
    widest: int = 128

    def __post_init__(self) -> None:
        for name, value in (("count", self.count), ("bits", self.bits), ("widest", self.widest)):
            if log2_exact(value) is None:
                raise ValueError(f"Banks: {name} is {value}, expected a power of two")
        if self.widest > self.count * self.bits:
            raise ValueError(
                f"Banks: widest is {self.widest}, expected at most what all banks serve, {self.count * self.bits}"
            )

    def phase_lanes(self, vector_bits: int) -> int:
        """How many lanes with accesses of this width fill all banks once."""
        return self.count * self.bits // max(self.bits, vector_bits)

    def check(self, function: str, bits: int) -> None:
        """`ValueError` unless an element of ``bits`` can be accessed alone."""
        if log2_exact(bits) is None or not 8 <= bits <= self.widest:
            raise ValueError(f"{function}: bits is {bits}, expected a power of two from 8 to {self.widest}")


SHARED = Banks()
"""Shared memory of NVIDIA GPUs: 32 banks of 4 bytes, accesses of up to 16."""


@dataclass(frozen=True)
class BankConflicts:
    """What the accesses of all warps cost; see the module."""

    vector: int
    """Elements per lane and instruction."""
    bits: int
    """Bits of an element."""
    requests: int
    """Instructions, over all warps."""
    phases: int
    """Phases of one instruction: the wavefronts it takes without conflicts."""
    degree: int
    """Wavefronts of one phase; 1 means no conflict."""
    lemma: int
    """The lemma's c for one phase: equal to ``degree`` for vectors of a word or more, else at most that."""

    @property
    def vector_bits(self) -> int:
        """Bits per lane and instruction."""
        return self.vector * self.bits

    @property
    def per_request(self) -> int:
        """Wavefronts of one instruction."""
        return self.phases * self.degree

    @property
    def wavefronts(self) -> int:
        """Wavefronts of all instructions of all warps."""
        return self.requests * self.per_request

    @property
    def bound(self) -> int:
        """The wavefronts of as many instructions without conflicts: the least for accesses of this width."""
        return self.requests * self.phases

    @property
    def excess(self) -> int:
        """Wavefronts lost to conflicts."""
        return self.wavefronts - self.bound


@dataclass(frozen=True)
class Vectors:
    """How a thread's registers go into vectors, one instruction each (the paper's generalised vectorisation)."""

    inside: f2.Matrix
    """``inside[j]``: the register mask that moves the offset by 2^j, a place inside the vector."""
    across: f2.Matrix
    """Register masks that move to other vectors, one instruction for each of their sums; duplicates are left out."""

    def registers(self) -> Iterator[tuple[int, ...]]:
        """For each instruction the registers of its vector, lowest offset first."""
        for instruction in range(1 << len(self.across)):
            start = f2.apply(self.across, instruction)
            yield tuple(start ^ f2.apply(self.inside, place) for place in range(1 << len(self.inside)))


def access_map(distributed: LinearLayout, memory: LinearLayout) -> LinearLayout:
    """(register, lane, warp, ...) -> offset with ``memory(offset) == distributed(...)``: where each register's element lies.

    Where memory holds an element several times, its first place. `ValueError` where the tensors differ or an element is not
    in this block's memory.
    """
    if dict(distributed.outputs) != dict(memory.outputs):
        raise ValueError(f"access_map: the layouts are of different tensors, {distributed} and {memory}")
    echelon = f2.Echelon(memory.transpose_outs(distributed.out_dims).columns(OFFSET))
    columns: dict[str, f2.Matrix] = {}
    for dim in distributed.in_dims:
        if dim == BLOCK:
            continue
        solved = [echelon.reduce(column) for column in distributed.columns(dim)]
        for bit, (rest, _) in enumerate(solved):
            if rest:
                element = distributed.bases(dim)[bit]
                raise ValueError(
                    f"access_map: basis {bit} of {dim} is element {element}, which no offset of memory holds"
                )
        columns[dim] = tuple(used for _, used in solved)
    return LinearLayout.from_columns(columns, ((OFFSET, memory.in_bits(OFFSET)),))


def _columns(layout: LinearLayout, dim: str) -> f2.Matrix:
    return layout.columns(dim) if dim in layout.in_dims else ()


def vector_size(access: LinearLayout, most: int) -> int:
    """The most elements, up to ``most``, that one instruction can move per lane: whole aligned vectors of a thread's own
    registers, the same in the same order in all lanes, warps and blocks (so these move no offset bit inside a vector)."""
    registers = f2.Echelon(_columns(access, REGISTER))
    limit = min(most, access.out_size(OFFSET))
    threads = 0
    for dim in (LANE, WARP, BLOCK):
        for offset in _columns(access, dim):
            threads |= offset
    size = 1
    while size < limit and not threads & size and not registers.reduce(size)[0]:
        size *= 2
    return size


def vectors(access: LinearLayout, size: int) -> Vectors:
    """The registers of each vector of ``size`` elements; `ValueError` where a thread does not hold whole ones."""
    columns = _columns(access, REGISTER)
    echelon = f2.Echelon(columns)
    inside: list[int] = []
    for place in range(size.bit_length() - 1):
        rest, used = echelon.reduce(1 << place)
        if rest:
            raise ValueError(
                f"vectors: size is {size}, but the registers of a thread do not fill vectors of more than {1 << place} elements"
            )
        inside.append(used)
    across = subspaces.extend((*inside, *f2.kernel(columns)), f2.identity(len(columns)))
    # Each instruction starts where a vector does.
    aligned = (mask ^ f2.apply(inside, f2.apply(columns, mask)) for mask in across)
    return Vectors(tuple(inside), tuple(aligned))


def _check_vector(function: str, access: LinearLayout, bits: int, vector: int | None, banks: Banks) -> int:
    banks.check(function, bits)
    most = vector_size(access, banks.widest // bits)
    if vector is None:
        return most
    if log2_exact(vector) is None or vector > most:
        raise ValueError(f"{function}: vector is {vector}, expected a power of two up to {most} for these layouts")
    return vector


def bank_conflicts(
    distributed: LinearLayout, memory: LinearLayout, bits: int, vector: int | None = None, banks: Banks = SHARED
) -> BankConflicts:
    """The cost of loading or storing a tensor of elements of ``bits`` once, each thread its own registers.

    ``vector`` is how many elements a lane moves per instruction, by default the most there can be. Works on index bits: its
    time does not depend on the tensor's size. Duplicate registers are accessed once, duplicate lanes and warps each.
    """
    access = access_map(distributed, memory)
    size = _check_vector("bank_conflicts", access, bits, vector, banks)
    lanes, warps = _columns(access, LANE), _columns(access, WARP)
    split = vectors(access, size)
    width = banks.phase_lanes(size * bits)
    phase = lanes[: width.bit_length() - 1]
    # Offset bits below `low` are inside what a bank serves at once; those below `high` say which banks.
    low = max(size, banks.bits // bits).bit_length() - 1
    high = (banks.count * banks.bits // bits).bit_length() - 1
    mask = (1 << high) - 1
    degree = f2.rank([offset >> low for offset in phase]) - f2.rank([(offset & mask) >> low for offset in phase])
    within = size.bit_length() - 1
    lemma = f2.rank([offset >> within for offset in phase]) - f2.rank([(offset & mask) >> within for offset in phase])
    return BankConflicts(
        vector=size,
        bits=bits,
        requests=1 << (len(split.across) + len(warps)),
        phases=max(1, (1 << len(lanes)) // width),
        degree=1 << degree,
        lemma=1 << lemma,
    )


def simulate_wavefronts(
    distributed: LinearLayout, memory: LinearLayout, bits: int, vector: int | None = None, banks: Banks = SHARED
) -> int:
    """`BankConflicts.wavefronts`, counted from the address of every element of every instruction: the definition, as a check.

    Registers are grouped into instructions, in their order, by the addresses of lane 0 of warp 0; that these make whole
    aligned vectors in all other lanes and warps is checked. Time grows with the tensor.
    """
    size = _check_vector("simulate_wavefronts", access_map(distributed, memory), bits, vector, banks)
    import numpy as np

    held = _elements(memory.transpose_outs(distributed.out_dims), OFFSET)
    places = np.full(1 << distributed.out_bits, -1)
    # An element that memory holds several times is accessed at its first place.
    places[held[::-1]] = np.arange(len(held))[::-1]
    registers, lanes, warps = (_elements(distributed, dim) for dim in (REGISTER, LANE, WARP))
    instructions: dict[int, dict[int, int]] = {}
    for element in registers:
        offset = int(places[element])
        instructions.setdefault(offset // size, {}).setdefault(offset, element)
    grid = np.array([[[warp ^ lane] for lane in lanes] for warp in warps])
    phase_lanes = min(banks.phase_lanes(size * bits), len(lanes))
    total = 0
    for members in instructions.values():
        # One row per warp and lane: the offsets of its registers, in the order of lane 0's.
        offsets = places[grid ^ np.array([members[offset] for offset in sorted(members)])].reshape(-1, len(members))
        if len(members) != size or (offsets[:, :1] % size).any() or (offsets != offsets[:, :1] + np.arange(size)).any():
            raise ValueError(
                f"simulate_wavefronts: an instruction's lanes access offsets {offsets.tolist()}, "
                f"expected whole aligned vectors of {size}, in this order"
            )
        words = offsets[:, :1] * bits // banks.bits + np.arange(max(1, size * bits // banks.bits))
        phases = np.sort(words.reshape(-1, phase_lanes * words.shape[1]), axis=1)
        distinct = np.diff(phases, axis=1, prepend=-1) != 0
        counters = np.arange(len(phases))[:, None] * banks.count + phases % banks.count
        wanted = np.bincount(counters[distinct], minlength=len(phases) * banks.count)
        total += int(wanted.reshape(-1, banks.count).max(axis=1).sum())
    return total


def _elements(layout: LinearLayout, dim: str) -> list[int]:
    """The flattened element of each index of a dimension, the others at 0: the XOR of the columns that its bits select."""
    elements = [0]
    for column in _columns(layout, dim):
        elements += [element ^ column for element in elements]
    return elements
