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

from collections.abc import Sequence
from typing import TypeAlias

Matrix: TypeAlias = tuple[int, ...]


class Echelon:
    """The span of columns, reduced incrementally; it remembers how each vector of the span is made of them.

    ``relations`` has, for every column that depends on earlier ones, the mask of columns (itself and pivots) that sum to zero:
    a basis of the kernel.
    """

    __slots__ = ("_rows", "relations", "size")

    def __init__(self, columns: Sequence[int] = ()):
        self._rows: dict[int, tuple[int, int]] = {}
        self.relations: list[int] = []
        self.size = 0
        for column in columns:
            self.add(column)

    def reduce(self, vector: int) -> tuple[int, int]:
        """``(rest, used)``: the vector minus the sum of the columns in the mask ``used``; ``rest`` is 0 iff it is in the span."""
        rest, used = vector, 0
        while rest:
            row = self._rows.get(rest.bit_length())
            if row is None:
                # The leading bit is no pivot's: the vector lies outside the span.
                return rest, used
            rest ^= row[0]
            used ^= row[1]
        return 0, used

    def add(self, column: int) -> bool:
        """Append a column; whether it was independent of those before."""
        rest, used = self.reduce(column)
        used ^= 1 << self.size
        if rest:
            self._rows[rest.bit_length()] = (rest, used)
        else:
            self.relations.append(used)
        self.size += 1
        return bool(rest)

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        return len(self._rows)


def apply(matrix: Sequence[int], vector: int) -> int:
    """``M x``: the XOR of the columns that ``vector`` selects; bits beyond the last column are ignored."""
    result = 0
    for column in matrix:
        if vector & 1:
            result ^= column
        vector >>= 1
    return result


def compose(outer: Sequence[int], inner: Sequence[int]) -> Matrix:
    """``outer . inner``, the map that applies ``inner`` first; the inner rows are the outer columns."""
    return tuple(apply(outer, column) for column in inner)


def identity(bits: int) -> Matrix:
    """The identity on F2^bits."""
    return tuple(1 << i for i in range(bits))


def rank(columns: Sequence[int]) -> int:
    """The dimension of the span of the columns."""
    return Echelon(columns).rank


def independent(columns: Sequence[int]) -> bool:
    """Whether no column is the sum of others (so none is zero, no two are equal)."""
    return Echelon(columns).rank == len(columns)


def solve(matrix: Sequence[int], vector: int) -> int | None:
    """The x with ``M x = vector`` whose free variables are 0, or None where there is none."""
    rest, used = Echelon(matrix).reduce(vector)
    return None if rest else used


def kernel(matrix: Sequence[int]) -> Matrix:
    """A basis of ``{x : M x = 0}``: one vector per column that depends on earlier ones."""
    return tuple(Echelon(matrix).relations)


def right_inverse(matrix: Sequence[int], rows: int) -> Matrix | None:
    """X with ``M X = I`` on ``rows`` bits, free variables 0; None unless M is surjective (paper 4.5)."""
    echelon = Echelon(matrix)
    solutions = [echelon.reduce(unit) for unit in identity(rows)]
    return None if any(rest for rest, _ in solutions) else tuple(used for _, used in solutions)


def inverse(matrix: Sequence[int]) -> Matrix | None:
    """The inverse of a square matrix; None where it is singular."""
    return right_inverse(matrix, len(matrix))


def complement(columns: Sequence[int], bits: int) -> Matrix:
    """Unit vectors, lowest first, that extend a basis of ``columns``' span to one of F2^bits."""
    echelon = Echelon(columns)
    return tuple(unit for unit in identity(bits) if echelon.add(unit))


def transpose(matrix: Sequence[int], rows: int) -> Matrix:
    """The transposed matrix: bit j of column i is bit i of column j; ``rows`` columns result."""
    return tuple(sum(((column >> row) & 1) << j for j, column in enumerate(matrix)) for row in range(rows))
