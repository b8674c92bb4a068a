"""`weft.layout.algebra.f2` against enumeration of all vectors."""

from __future__ import annotations

from functools import reduce
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout.algebra import f2

ROWS = 5
columns = st.lists(st.integers(0, (1 << ROWS) - 1), max_size=6)


def image(matrix: list[int] | tuple[int, ...], x: int) -> int:
    """M x by the definition: the XOR of the columns at x's set bits."""
    return reduce(lambda a, b: a ^ b, (column for j, column in enumerate(matrix) if x >> j & 1), 0)


def span(matrix: list[int]) -> set[int]:
    return {image(matrix, x) for x in range(1 << len(matrix))}


def test_the_worked_table() -> None:
    m = (0b001, 0b011, 0b000, 0b100)
    assert [f2.apply(m, x) for x in (0b0001, 0b0010, 0b0011, 0b1010, 0b0100)] == [0b001, 0b011, 0b010, 0b111, 0b000]
    # 0b010 = column 0 + column 1; the zero column is never used, and spans the kernel.
    assert f2.solve(m, 0b110) == 0b1011
    assert f2.kernel(m) == (0b0100,)
    assert f2.right_inverse(m, 3) == (0b0001, 0b0011, 0b1000)


def test_degenerate_matrices() -> None:
    assert f2.rank(()) == 0
    assert f2.independent(())
    assert f2.solve((), 0) == 0
    assert f2.solve((), 1) is None
    assert f2.kernel((0, 0)) == (0b01, 0b10)
    assert f2.inverse(()) == ()
    assert f2.inverse((0,)) is None
    assert f2.inverse((0b10,)) is None  # one column, but its bit is not in row 0
    assert f2.complement((), 2) == (0b01, 0b10)
    assert f2.transpose((), 3) == (0, 0, 0)


@given(columns)
@examples(150)
def test_rank_and_independence_by_the_size_of_the_span(matrix: list[int]) -> None:
    assert 1 << f2.rank(matrix) == len(span(matrix))
    assert f2.independent(matrix) == (len(span(matrix)) == 1 << len(matrix))


@given(columns, st.integers(0, (1 << ROWS) - 1))
@examples(150)
def test_solve_finds_a_solution_exactly_where_there_is_one(matrix: list[int], target: int) -> None:
    solution = f2.solve(matrix, target)
    assert (solution is not None) == (target in span(matrix))
    if solution is not None:
        assert image(matrix, solution) == target
        # Free variables are 0: no selected column is a sum of earlier columns.
        for j in (j for j in range(len(matrix)) if solution >> j & 1):
            assert matrix[j] not in span(matrix[:j])


@given(st.permutations([1, 2, 4, 0, 0, 0]), st.integers(0, 7))
def test_solve_has_minimum_norm_on_unit_columns(matrix: list[int], target: int) -> None:
    solution = f2.solve(matrix, target)
    assert solution is not None
    weights = [x.bit_count() for x in range(1 << len(matrix)) if image(matrix, x) == target]
    assert solution.bit_count() == min(weights)


@given(columns)
@examples(150)
def test_kernel_is_a_basis_of_all_null_vectors(matrix: list[int]) -> None:
    basis = list(f2.kernel(matrix))
    assert span(basis) == {x for x in range(1 << len(matrix)) if image(matrix, x) == 0}
    assert len(span(basis)) == 1 << len(basis)


@given(columns)
@examples(150)
def test_right_inverse_and_inverse(matrix: list[int]) -> None:
    found = f2.right_inverse(matrix, 3)
    assert (found is not None) == ({1, 2, 4} <= span(matrix))
    if found is not None:
        assert [image(matrix, x) for x in found] == [1, 2, 4]
    square = [column & 7 for column in matrix[:3]]
    inverse = f2.inverse(square)
    assert (inverse is not None) == (span(square) == set(range(1 << len(square))))
    if inverse is not None:
        assert f2.compose(square, inverse) == f2.compose(inverse, square) == f2.identity(len(square))


@given(columns)
def test_complement_completes_a_basis(matrix: list[int]) -> None:
    extra = f2.complement(matrix, ROWS)
    assert f2.rank(matrix) + len(extra) == ROWS
    assert span([*matrix, *extra]) == set(range(1 << ROWS))


@given(st.lists(st.integers(0, 7), max_size=4), st.lists(st.integers(0, 15), max_size=4))
def test_compose_applies_the_inner_first(outer: list[int], inner: list[int]) -> None:
    inner = [column & ((1 << len(outer)) - 1) for column in inner]
    composed = f2.compose(outer, inner)
    for x in range(1 << len(inner)):
        assert f2.apply(composed, x) == image(outer, image(inner, x))


@given(columns)
def test_transpose_swaps_rows_and_columns(matrix: list[int]) -> None:
    transposed = f2.transpose(matrix, ROWS)
    for i, j in product(range(ROWS), range(len(matrix))):
        assert transposed[i] >> j & 1 == matrix[j] >> i & 1
    assert len(transposed) == ROWS


@given(columns, columns)
@examples(150)
def test_intersection_and_reduced_bases(first: list[int], second: list[int]) -> None:
    common = list(f2.intersection(first, second))
    assert span(common) == span(first) & span(second)
    assert len(span(common)) == 1 << len(common)
    reduced = f2.reduced_basis(first)
    assert span(list(reduced)) == span(first)
    assert (reduced == f2.reduced_basis(second)) == (span(first) == span(second))
    tops = [row.bit_length() - 1 for row in reduced]
    assert tops == sorted(set(tops))
    assert all(row >> top & 1 == (i == j) for i, row in enumerate(reduced) for j, top in enumerate(tops))


@given(columns)
@examples(150)
def test_generalized_inverse(matrix: list[int]) -> None:
    found = f2.generalized_inverse(matrix, ROWS)
    for x in range(1 << len(matrix)):
        assert image(matrix, image(found, image(matrix, x))) == image(matrix, x)
    for y in range(1 << ROWS):
        assert image(found, image(matrix, image(found, y))) == image(found, y)
    assert f2.rank(found) == f2.rank(matrix)


@given(columns, st.lists(st.integers(0, (1 << ROWS) - 1), max_size=4))
@examples(150)
def test_solving_many_is_solving_each(matrix: list[int], targets: list[int]) -> None:
    each = [f2.solve(matrix, target) for target in targets]
    assert f2.solve_all(matrix, targets) == (None if None in each else tuple(each))
    echelon = f2.Echelon(matrix)
    assert [target in echelon for target in targets] == [target in span(matrix) for target in targets]


@given(columns)
@examples(150)
def test_pivots_are_the_columns_outside_the_span_of_those_before(matrix: list[int]) -> None:
    echelon = f2.Echelon(matrix)
    assert echelon.pivots == sum(1 << j for j, column in enumerate(matrix) if column not in span(matrix[:j]))
    assert echelon.rank == echelon.pivots.bit_count()


def test_an_echelon_grows_beyond_its_first_width() -> None:
    # 100 columns one by one: a basis of 70 bits, then sums of neighbours, each related to the two it is made of.
    echelon = f2.Echelon()
    units = [1 << bit for bit in range(70)]
    assert [echelon.add(unit) for unit in units] == [True] * 70
    assert [echelon.add(units[i] ^ units[i + 1]) for i in range(30)] == [False] * 30
    assert (echelon.size, echelon.rank) == (100, 70)
    assert echelon.relations == [1 << i | 1 << (i + 1) | 1 << (70 + i) for i in range(30)]
    assert echelon.reduce(units[69] | units[3] | 1 << 80) == (1 << 80 | units[69] | units[3], 0)
    assert echelon.reduce(units[69] | units[3]) == (0, 1 << 69 | 1 << 3)
    assert f2.Echelon(units).relations == []


@given(columns, columns)
@examples(100)
def test_an_echelon_extended_is_the_echelon_of_all(first: list[int], second: list[int]) -> None:
    grown, whole = f2.Echelon(first), f2.Echelon([*first, *second])
    grown.extend(second)
    assert (grown.relations, grown.pivots, grown.rank) == (whole.relations, whole.pivots, whole.rank)
    assert [grown.reduce(x) for x in range(1 << ROWS)] == [whole.reduce(x) for x in range(1 << ROWS)]
