"""Bit-matrix algebra over F2, the field {0, 1} with XOR as addition, on Python integers.

Definition. A vector of F2^n is an ``int`` below 2^n, bit i its i-th coordinate. A matrix is the tuple of its columns: ``m[j]``
is the image of bit j, so ``len(m)`` is the number of inputs; the number of rows is not stored, as leading zeros are not.

    m = (0b001, 0b011, 0b000, 0b100)      inputs 0..3 -> 3 rows; input 2 is ignored

    x        0b0001  0b0010  0b0011  0b1010  0b0100
    m . x    0b001   0b011   0b010   0b111   0b000

Law: ``apply(m, x ^ y) == apply(m, x) ^ apply(m, y)``; everything else follows.

Matrices have at most a few dozen columns here, one elimination costs microseconds, and integers keep any number of rows in
one machine operation. Where a system has several solutions, the one returned uses the *pivot* columns only, the earliest
independent ones; all free variables are 0. That makes the answer unique, and for columns that are unit vectors or zero it has
the fewest bits of all solutions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Matrix: TypeAlias = tuple[int, ...]


class Echelon:
    """The span of columns, reduced incrementally; it remembers how each vector of the span is made of them.

    ``relations`` has, for every column that depends on earlier ones, the mask of columns (itself and pivots) that sum to zero:
    a basis of the kernel.

    A row is one integer, a vector of the span above the mask of the columns that make it: one XOR updates both. Rows are
    found by their bit length, each has another.
    """

    __slots__ = ("_rows", "_width", "relations", "size")

    def __init__(self, columns: Sequence[int] = ()):
        self._rows: dict[int, int] = {}
        self._width = max(32, len(columns))
        self.relations: list[int] = []
        self.size = 0
        self.extend(columns)

    def extend(self, columns: Iterable[int]) -> None:
        """Append columns, in this order."""
        rows, width = self._rows, self._width
        size = self.size
        for column in columns:
            if size == width:
                rows, width = self._widen()
            row = column << width | 1 << size
            size += 1
            while (length := row.bit_length()) > width:
                if length not in rows:
                    rows[length] = row
                    break
                row ^= rows[length]
            else:
                self.relations.append(row)
        self.size = size

    def _widen(self) -> tuple[dict[int, int], int]:
        """Make room for twice as many columns in each row's mask."""
        old, width = self._width, 2 * self._width
        low = (1 << old) - 1
        wider = ((row >> old) << width | row & low for row in self._rows.values())
        self._rows, self._width = {row.bit_length(): row for row in wider}, width
        return self._rows, width

    def add(self, column: int) -> bool:
        """Append a column; whether it was independent of those before."""
        before = len(self._rows)
        self.extend((column,))
        return len(self._rows) > before

    def reduce(self, vector: int) -> tuple[int, int]:
        """``(rest, used)``: the vector minus the sum of the columns in the mask ``used``; ``rest`` is 0 iff it is in the span."""
        rows, width = self._rows, self._width
        row = vector << width
        while (length := row.bit_length()) > width:
            pivot = rows.get(length)
            if pivot is None:
                # The leading bit is no pivot's: the vector lies outside the span.
                break
            row ^= pivot
        return row >> width, row & ((1 << width) - 1)

    def solve(self, vectors: Iterable[int]) -> Matrix | None:
        """For each vector the mask of pivot columns that make it; None where one lies outside the span."""
        rows, width = self._rows, self._width
        low = (1 << width) - 1
        solutions: list[int] = []
        for vector in vectors:
            row = vector << width
            while row > low:
                pivot = rows.get(row.bit_length())
                if pivot is None:
                    return None
                row ^= pivot
            solutions.append(row)
        return tuple(solutions)

    def __contains__(self, vector: int) -> bool:
        return not self.reduce(vector)[0]

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        return len(self._rows)

    @property
    def pivots(self) -> int:
        """The mask of the columns that were independent of those before; the others are the free variables."""
        dependent = sum(1 << (relation.bit_length() - 1) for relation in self.relations)
        return ((1 << self.size) - 1) ^ dependent


def apply(matrix: Sequence[int], vector: int) -> int:
    """``M x``: the XOR of the columns that ``vector`` selects; bits beyond the last column are ignored."""
    result = 0
    rest = vector & ((1 << len(matrix)) - 1)
    while rest:
        low = rest & -rest
        result ^= matrix[low.bit_length() - 1]
        rest ^= low
    return result


def compose(outer: Sequence[int], inner: Iterable[int]) -> Matrix:
    """``outer . inner``, the map that applies ``inner`` first; the inner rows are the outer columns."""
    within = (1 << len(outer)) - 1
    composed: list[int] = []
    for column in inner:
        rest, result = column & within, 0
        while rest:
            low = rest & -rest
            result ^= outer[low.bit_length() - 1]
            rest ^= low
        composed.append(result)
    return tuple(composed)


def identity(bits: int) -> Matrix:
    """The identity on F2^bits."""
    return tuple([1 << i for i in range(bits)])


def rank(columns: Sequence[int]) -> int:
    """The dimension of the span of the columns."""
    rows: dict[int, int] = {}
    for column in columns:
        rest = column
        while rest:
            pivot = rows.setdefault(rest.bit_length(), rest)
            if pivot == rest:
                break
            rest ^= pivot
    return len(rows)


def independent(columns: Sequence[int]) -> bool:
    """Whether no column is the sum of others (so none is zero, no two are equal)."""
    return rank(columns) == len(columns)


def solve(matrix: Sequence[int], vector: int) -> int | None:
    """The x with ``M x = vector`` whose free variables are 0, or None where there is none."""
    rest, used = Echelon(matrix).reduce(vector)
    return None if rest else used


def solve_all(matrix: Sequence[int], vectors: Iterable[int]) -> Matrix | None:
    """X with ``M X = vectors``, column by column, free variables 0; None where one has no solution."""
    return Echelon(matrix).solve(vectors)


def kernel(matrix: Sequence[int]) -> Matrix:
    """A basis of ``{x : M x = 0}``: one vector per column that depends on earlier ones."""
    return tuple(Echelon(matrix).relations)


def right_inverse(matrix: Sequence[int], rows: int) -> Matrix | None:
    """X with ``M X = I`` on ``rows`` bits, free variables 0; None unless M is surjective (paper 4.5)."""
    return solve_all(matrix, identity(rows))


def inverse(matrix: Sequence[int]) -> Matrix | None:
    """The inverse of a square matrix; None where it is singular."""
    return right_inverse(matrix, len(matrix))


def generalized_inverse(matrix: Sequence[int], rows: int) -> Matrix:
    """X with ``M X M = M`` and ``X M X = X``: a solution where there is one, and 0 on `complement`'s unit vectors.

    The inverse, right inverse or left inverse of M where it has one. Unlike over the reals it is not unique.
    """
    echelon = Echelon(matrix)
    columns = echelon.size
    # Completed by its complement, the matrix is surjective; what a solution uses of the complement is then forgotten.
    echelon.extend(complement(matrix, rows))
    kept = (1 << columns) - 1
    return tuple(echelon.reduce(unit)[1] & kept for unit in identity(rows))


def reduced_basis(columns: Sequence[int]) -> Matrix:
    """The one basis of the span, ascending, in which each vector's highest bit is in no other: equal iff the spans are."""
    rows: list[int] = []
    for column in columns:
        rest = column
        for row in rows:
            # Smaller iff the row's highest bit is set in it; no row has another's.
            rest = min(rest, rest ^ row)
        if rest:
            rows = [min(row, row ^ rest) if row > rest else row for row in rows]
            rows.append(rest)
    return tuple(sorted(rows))


def intersection(first: Sequence[int], second: Sequence[int]) -> Matrix:
    """A basis of the vectors in both spans."""
    echelon = Echelon(first)
    known = (1 << echelon.size) - 1
    echelon.extend(second)
    # A relation of columns of both says that its first part and its second are the same vector.
    return reduced_basis([apply(first, relation & known) for relation in echelon.relations])


def complement(columns: Sequence[int], bits: int) -> Matrix:
    """Unit vectors, lowest first, that extend a basis of ``columns``' span to one of F2^bits."""
    echelon = Echelon(columns)
    return tuple([unit for unit in identity(bits) if echelon.add(unit)])


def transpose(matrix: Sequence[int], rows: int) -> Matrix:
    """The transposed matrix: bit j of column i is bit i of column j; ``rows`` columns result."""
    transposed = [0] * rows
    for j, column in enumerate(matrix):
        rest = column & ((1 << rows) - 1)
        while rest:
            low = rest & -rest
            transposed[low.bit_length() - 1] |= 1 << j
            rest ^= low
    return tuple(transposed)
