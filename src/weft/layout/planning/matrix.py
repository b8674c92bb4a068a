"""How an access through shared memory reaches its rows: plain vectors, ldmatrix and stmatrix, transposed or not (paper 5.3).

An instruction fixes only which index bits move inside a *row*, 16 consecutive bytes; everything else is an address, so any
layout will do. Matching a conversion against the instruction's whole layout by left division would find fewer cases.

    kind         bits inside a row, lowest first            row number                     needs
    vector       registers, as many as there are            -
    matrix       registers up to 32 bits, lane 0, lane 1    lane 2, lane 3, lane 4         units of 8, 16, 32 bits
    transposed   lane 2, lane 3, lane 4                     a register, lane 0, lane 1     units of 16 bits
    bytes        lane 2, lane 3, lane 4, a register         2 registers, lane 0, lane 1    units of 8 bits, ``matrix_b8``

A matrix has 8 rows, with `bytes`, which only loads, 16. A unit is what is never cut: an element, or a pair of bytes (then
transposing works on bytes too). Bits that are not in the table are registers: they number the matrices. The other side of
the conversion stores or loads the same rows in its own way, and two sides agree on a row if each position that both fix is
the same index bit.

    float16, A: a row of 8 in registers; B: mma operand, transposed.  B's row is its lanes 2, 3, 4: all in A's registers:
    A stores 128 bits per lane, B loads with ldmatrix.trans

What this leaves out: stores of 16x8 matrices of bytes, transposed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.layout.algebra import f2
from weft.layout.algebra.lazy import lazy
from weft.layout.planning.machine import MachineModel

AccessKind: TypeAlias = Literal["vector", "matrix", "transposed", "bytes"]

ROWS: Final[dict[AccessKind, int]] = {"matrix": 8, "transposed": 8, "bytes": 16}
"""Rows of a matrix; as many matrices as have 32 rows fit one instruction."""

LANES = 32
ROW_BITS = 128


@dataclass(frozen=True)
class Side:
    """One layout of a conversion: a tensor bit, or 0 for copies, for each index bit of registers, lanes and warps."""

    registers: f2.Matrix
    lanes: f2.Matrix
    warps: f2.Matrix

    def without(self, bits: Sequence[int]) -> Side:
        """These tensor bits no longer move anything."""
        gone = set(bits)

        def kept(columns: f2.Matrix) -> f2.Matrix:
            return tuple(0 if column in gone else column for column in columns)

        return Side(kept(self.registers), kept(self.lanes), kept(self.warps))

    @lazy
    def held(self) -> tuple[int, ...]:
        """The tensor bits in registers, lowest register bit first."""
        return tuple(column for column in self.registers if column)

    def mask(self, bit: int) -> int:
        """The register bit that moves a tensor bit."""
        return 1 << self.registers.index(bit)


@dataclass(frozen=True)
class Rows:
    """Which tensor bits move inside an aligned piece of memory, lowest first, and how much of it each side takes at once."""

    first: f2.Matrix
    store: int
    """log2 of the units a store instruction takes per lane, or of those in a matrix row."""
    load: int


def available(machine: MachineModel, stores: bool, unit_bits: int, padded: bool) -> tuple[AccessKind, ...]:
    """The ways to store or load units of these bits."""
    exists = machine.stmatrix if stores else machine.ldmatrix
    if not exists or machine.lanes != LANES or padded or unit_bits > 32:
        return ("vector",)
    if unit_bits == 16:
        return "vector", "matrix", "transposed"
    return (
        ("vector", "matrix", "bytes") if unit_bits == 8 and machine.matrix_b8 and not stores else ("vector", "matrix")
    )


def _slots(access: AccessKind, side: Side, unit_bits: int) -> list[int] | None:
    """The row that an access fixes, 0 for any register; None where lanes that it needs hold copies."""
    if access == "matrix":
        fixed = side.lanes[:2]
        return [0] * ((32 // unit_bits).bit_length() - 1) + list(fixed) if all(fixed) else None
    fixed = side.lanes[2:5]
    return [*fixed, *([0] if access == "bytes" else [])] if all(fixed) else None


def _fill(slots: Sequence[int], *candidates: int) -> f2.Matrix | None:
    """The slots with each 0 replaced by the next candidate that is in none."""
    free = iter([bit for bit in dict.fromkeys(candidates) if bit not in slots])
    filled = [slot or next(free, 0) for slot in slots]
    return tuple(filled) if all(filled) else None


def _prefix(first: Sequence[int], held: Sequence[int], limit: int) -> int:
    """How many of the first bits a thread holds in registers."""
    size = 0
    while size < min(limit, len(first)) and first[size] in held:
        size += 1
    return size


def row_bits(unit_bits: int) -> int:
    """log2 of the units of a row."""
    return (ROW_BITS // unit_bits).bit_length() - 1


def shared_rows(
    store: AccessKind, load: AccessKind, source: Side, destination: Side, unit_bits: int, widest: int
) -> Iterator[Rows]:
    """All rows on which the two accesses agree; ``widest`` is log2 of the units of the widest vector."""
    ours, theirs = source.held, destination.held
    common = [bit for bit in ours if bit in theirs]
    if store == "vector" and load == "vector":
        # What both hold, then what only one does: its vectors become wider than the other's.
        shortest = min(widest, len(common))
        for again, rest in enumerate((ours, theirs)):
            first = (*common, *(bit for bit in rest if bit not in common))[:widest]
            for size in range(shortest + again, len(first) + 1):
                yield Rows(first[:size], _prefix(first, ours, size), _prefix(first, theirs, size))
        return
    row = row_bits(unit_bits)
    if store == "vector":
        slots = _slots(load, destination, unit_bits)
        first = _fill(slots, *common, *theirs) if slots else None
        if first and _has_words(load, destination, first):
            yield Rows(first, _prefix(first, ours, widest), row)
    elif load == "vector":
        slots = _slots(store, source, unit_bits)
        first = _fill(slots, *common, *ours) if slots else None
        if first and _has_words(store, source, first):
            yield Rows(first, row, _prefix(first, theirs, widest))
    else:
        first = _agree(_slots(store, source, unit_bits), _slots(load, destination, unit_bits), ours, theirs)
        if first and _has_words(store, source, first) and _has_words(load, destination, first):
            yield Rows(first, row, row)


_WORD_ROWS: Final[dict[AccessKind, int]] = {"vector": 0, "matrix": 0, "transposed": 1, "bytes": 2}
"""log2 of the rows that meet in a word."""


def _has_words(access: AccessKind, side: Side, first: Sequence[int]) -> bool:
    """Whether a thread holds as many rows as meet in a word."""
    return sum(bit not in first for bit in side.held) >= _WORD_ROWS[access]


def _agree(
    mine: list[int] | None, yours: list[int] | None, ours: Sequence[int], theirs: Sequence[int]
) -> f2.Matrix | None:
    """The row that two matrix accesses share: fixed bits equal, or fixed on one side and in a register on the other."""
    if mine is None or yours is None:
        return None
    merged: list[int] = []
    for a, b in zip(mine, yours, strict=True):
        if a and b:
            if a != b:
                return None
        elif (b and b not in ours) or (a and a not in theirs):
            return None
        merged.append(a or b)
    return _fill(merged, *(bit for bit in ours if bit in theirs))


def word_bits(access: AccessKind, side: Side, first: Sequence[int], taken: int, inner: Sequence[int]) -> f2.Matrix:
    """The tensor bits that move inside what one lane gives or gets at once: a vector, or the 32-bit word of a matrix."""
    if access == "vector":
        return (*inner, *first[:taken])
    inside = tuple(bit for bit in first if bit in side.registers)
    if access == "matrix":
        return (*inner, *inside)
    rows = tuple(bit for bit in side.held if bit not in first)[: _WORD_ROWS[access]]
    return (*inner, *rows, *(inside if access == "bytes" else ()))


def row_numbers(access: AccessKind, side: Side, word: Sequence[int], inner: Sequence[int]) -> f2.Matrix:
    """The tensor bits of a matrix row's number."""
    if access == "matrix":
        return side.lanes[2:5]
    return (*word[len(inner) : len(inner) + _WORD_ROWS[access]], *side.lanes[:2])
