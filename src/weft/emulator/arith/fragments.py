"""Fragments: which lane has which elements of a matrix, in which register (PTX ISA 9.7.14.5, 9.7.14.6).

The ISA gives formulas for the row and column of element i of each lane, instruction by instruction: some sixty of them. All but
Volta's are one picture. With ``g = lane >> 2`` and ``t = lane % 4``, and n elements to a register (n = 1 for tf32 and f64, 2
for f16, 4 for bytes, 8 for nibbles, 32 for bits):

    A (M x K)    register r, element e    row g + 8 (r mod M/8)          column 4 n (r div M/8) + n t + e
    B (K x N)    register r, element e    row 4 n (r mod K/4n) + n t + e    column g + 8 (r div K/4n)
    C (M x N)    element i                row g + 8 (i div 2 mod M/8)    column 2 t + (i mod 2) + 8 (i div 2M/8)

For mma.m16n8k16 with f16 (n = 2), A, each cell lane.register:

              0,1    2,3    4,5    6,7    8,9   10,11  12,13  14,15
    row 0     0.0    1.0    2.0    3.0    0.2    1.2    2.2    3.2
    row 1     4.0    5.0    6.0    7.0    4.2    5.2    6.2    7.2
    ...
    row 8     0.1    1.1    2.1    3.1    0.3    1.3    2.3    3.3

mma has N = 8 and M = 8 or 16. wmma's fragments are unspecified (9.7.14.4.1), a program may only load, compute and store them;
here they are the same picture for larger M and N, and where the ISA gives wmma more registers than the matrix needs (f16) the
registers are filled by copies, of which the first counts.

A sparse A is stored without its zeros, and its stored elements lie as in the dense A of half the columns. Which columns they
are of says the metadata: four bits for each group of stored elements, `metadata_place` says where.

What this does not do: the operands of wgmma that are in shared memory, and the scale factors of sm_120.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import WARP, IndexArray

_LANES: Final = np.arange(WARP)[:, None]
_GROUP: Final = _LANES >> 2
_THREAD: Final = _LANES % 4


@dataclass(frozen=True, eq=False)
class Fragment:
    """A matrix in the registers of a warp: (``rows``, ``columns``) of ``bits``-bit elements; ``matrices`` of them at once (4 in
    Volta's m8n8k4, else 1). Elements count from the low bits of a lane's first register on."""

    matrices: int
    rows: int
    columns: int
    bits: int
    registers: int
    """Of each lane."""
    width: int
    """Bits of a register."""
    matrix: IndexArray
    row: IndexArray
    column: IndexArray
    """Of element i of a lane, each (32, elements)."""

    @property
    def elements(self) -> int:
        """Of each lane."""
        return self.registers * self.width // self.bits

    @property
    def slots(self) -> int:
        """Elements of all lanes."""
        return self.elements * WARP

    def slot(self, lane: Any, element: Any) -> Any:
        """Where element i of a lane is among the elements of a warp whose registers lie as (registers, 32)."""
        per = self.width // self.bits
        return (element // per * WARP + lane) * per + element % per

    def gather(self) -> IndexArray:
        """The slot of each element of the matrices, (matrices, rows, columns); the first of several copies."""
        places = (self.matrix * self.rows + self.row) * self.columns + self.column
        slots = np.broadcast_to(self.slot(_LANES, np.arange(self.elements)), places.shape)
        found = np.empty(self.matrices * self.rows * self.columns, np.intp)
        found[places.T[::-1].ravel()] = slots.T[::-1].ravel()
        return found.reshape(self.matrices, self.rows, self.columns)


def _fragment(
    shape: tuple[int, int],
    bits: int,
    row: IndexArray,
    column: IndexArray,
    matrix: IndexArray | int = 0,
    matrices: int = 1,
) -> Fragment:
    row, column, matrix = np.broadcast_arrays(row, column, matrix)
    width = max(32, bits)
    return Fragment(
        matrices, *shape, bits, row.shape[1] * bits // width, width, matrix.copy(), row.copy(), column.copy()
    )


def _per(bits: int) -> int:
    """Elements in a register."""
    return max(32, bits) // bits


@cache
def left(rows: int, contraction: int, bits: int, registers: int = 0) -> Fragment:
    """A of ``rows`` x ``contraction``; copies of its registers up to ``registers``, where that is more than it needs."""
    per, blocks = _per(bits), rows // 8
    needed = blocks * contraction // (4 * per)
    element = np.arange(max(registers, needed) * per)
    register, place = element // per % needed, element % per
    row = _GROUP + 8 * (register % blocks)
    return _fragment((rows, contraction), bits, row, 4 * per * (register // blocks) + per * _THREAD + place)


@cache
def right(contraction: int, columns: int, bits: int, registers: int = 0) -> Fragment:
    """B of ``contraction`` x ``columns``; copies as in `left`."""
    per = _per(bits)
    blocks = contraction // (4 * per)
    needed = blocks * columns // 8
    element = np.arange(max(registers, needed) * per)
    register, place = element // per % needed, element % per
    row = 4 * per * (register % blocks) + per * _THREAD + place
    return _fragment((contraction, columns), bits, row, _GROUP + 8 * (register // blocks))


@cache
def accumulator(rows: int, columns: int, bits: int) -> Fragment:
    """C and D of ``rows`` x ``columns``."""
    blocks = rows // 8
    element = np.arange(rows * columns // WARP)
    pair = element // 2
    return _fragment(
        (rows, columns),
        bits,
        _GROUP + 8 * (pair % blocks),
        2 * _THREAD + element % 2 + 8 * (pair // blocks),
    )


# ---- Volta's m8n8k4: four matrices, one for each quad of lanes 0-15 and the quad 16 lanes further ----------------------------

_QUAD: Final = _LANES // 4 % 4
_HIGH: Final = 4 * (_LANES // 16)
_FOUR: Final = np.arange(4)
_EIGHT: Final = np.arange(8)


@cache
def volta_left(layout: str) -> Fragment:
    """A of m8n8k4 with f16, 8 x 4, ``layout`` "row" or "col"."""
    places = (_THREAD + _HIGH, _FOUR) if layout == "row" else (_FOUR + _HIGH, _THREAD)
    return _fragment((8, 4), 16, *places, matrix=_QUAD, matrices=4)


@cache
def volta_right(layout: str) -> Fragment:
    """B of m8n8k4 with f16, 4 x 8, ``layout`` "row" or "col"."""
    places = (_THREAD, _FOUR + _HIGH) if layout == "row" else (_FOUR, _THREAD + _HIGH)
    return _fragment((4, 8), 16, *places, matrix=_QUAD, matrices=4)


@cache
def volta_accumulator(bits: int) -> Fragment:
    """C and D of m8n8k4, 8 x 8, f16 or f32."""
    if bits == 16:
        places = (_THREAD + _HIGH, _EIGHT)
    else:
        places = ((_LANES & 1) + (_EIGHT & 2) + _HIGH, (_EIGHT & 4) + (_LANES & 2) + (_EIGHT & 1))
    return _fragment((8, 8), bits, *places, matrix=_QUAD, matrices=4)


# ---- the metadata of a sparse A ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sparsity:
    """How A of a type is sparse: of every ``group`` columns ``kept`` are stored, in runs of ``run``."""

    group: int
    kept: int
    run: int


SPARSITY: Final = {
    16: Sparsity(group=4, kept=2, run=1),
    8: Sparsity(group=4, kept=2, run=1),
    4: Sparsity(group=8, kept=4, run=2),
    32: Sparsity(group=2, kept=1, run=1),
}
"""By the bits of an element: f16 and bf16, bytes, nibbles, tf32."""


@cache
def metadata_place(contraction: int, bits: int) -> tuple[IndexArray, IndexArray, int]:
    """(thread of the four of a row's group, lowest bit) of the four bits for (row, group of columns), each (16, groups), and how
    many of the four threads have any.

    Elements of 16 and 32 bits: a thread has 16 columns' worth (16 bits) of row g, then of row g + 8. Smaller ones: a thread has
    32 bits of row g, the next of row g + 8. Where two of four threads are asked, selector f means threads 2f and 2f + 1; where
    one is, thread f.
    """
    groups = contraction // SPARSITY[bits].group
    row, group = np.arange(16)[:, None], np.arange(groups)
    half = row // 8
    if bits >= 16:
        thread, low = group // 4 + 0 * row, 4 * (group % 4) + 16 * half
    else:
        thread, low = 2 * (group // 8) + half, 4 * (group % 8) + 0 * row
    return thread, low, int(thread.max()) + 1


# ---- registers to matrices and back ----------------------------------------------------------------------------------------

ORDER: Final = (0, 2, 4, 6, 1, 3, 5, 7)
"""Columns of accumulators in an order in which the four lanes of a row have four neighbours each: register by register."""


def ordered(fragment: Fragment, index: IndexArray, columns: int) -> IndexArray:
    """An index (matrices, rows, columns) of B, C or D with the columns of a product reordered (`ORDER` in each eight) where
    that keeps lanes together: for accumulators ``fragment`` of whole registers."""
    if fragment.bits < 32:
        return index
    return index.reshape(*index.shape[:-1], columns // 8, 8)[..., list(ORDER)].reshape(index.shape)


def runs(index: IndexArray, size: int) -> tuple[IndexArray, np.dtype[Any]]:
    """An index of elements of ``size`` bytes as one of aligned runs of up to 16 bytes that stay together, and a NumPy type as
    wide as a run: moving runs costs a fraction of moving elements."""
    flat = index.ravel()
    for width, code in ((16, "c16"), (8, "u8"), (4, "u4"), (2, "u2")):
        count = width // size
        if count < 2 or flat.size % count:
            continue
        groups = flat.reshape(-1, count)
        if (groups == groups[:, :1] + np.arange(count)).all() and not (groups[:, 0] % count).any():
            return groups[:, 0] // count, np.dtype(code)
    return flat, np.dtype(f"u{size}" if size <= 8 else "c16")


@dataclass(frozen=True, eq=False)
class Moves:
    """How elements get from registers to matrices of this shape, or back: run i of the one comes from run ``places[i]`` of the
    other, runs being of type ``run``."""

    shape: tuple[int, ...]
    places: IndexArray
    run: np.dtype[Any]


@cache
def reading(fragment: Fragment, result: Fragment | None = None) -> Moves:
    """From registers to matrices; with the columns in the order of ``result`` (`ordered`), if given."""
    index = fragment.gather()
    if result is not None:
        index = ordered(result, index, fragment.columns)
    return Moves(index.shape, *runs(index, max(fragment.bits, 8) // 8))


@cache
def writing(fragment: Fragment) -> Moves:
    """From matrices of accumulators, with their columns in their own order, to registers."""
    index = ordered(fragment, fragment.gather(), fragment.columns)
    slots = np.empty(fragment.slots, np.intp)
    slots[index.ravel()] = np.arange(fragment.slots)
    return Moves(index.shape, *runs(slots, fragment.bits // 8))


def unpack(words: NDArray[Any], bits: int, nibbles: NDArray[np.uint8]) -> NDArray[Any]:
    """The elements of (warps, registers, 32) words as unsigned integers of 8 ``bits`` or more, (warps, slots); elements of 4 bits
    as bytes, in ``nibbles`` (warps, slots)."""
    if bits >= 8:
        return words.view(f"u{bits // 8}").reshape(len(words), -1)
    octets = words.view(np.uint8).reshape(len(words), -1)
    np.bitwise_and(octets, np.uint8(15), out=nibbles[:, ::2])
    np.right_shift(octets, np.uint8(4), out=nibbles[:, 1::2])
    return nibbles
