"""Subspaces against enumeration, and lemma 9.5 with its proof that nothing larger exists."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout.algebra import f2
from weft.layout.algebra.subspaces import basis, common_complement, contains, extend, intersection

BITS = 5
COLUMNS = st.lists(st.integers(0, (1 << BITS) - 1), max_size=6)


def span(columns: Sequence[int]) -> set[int]:
    """All sums."""
    return {f2.apply(columns, mask) for mask in range(1 << len(columns))}


@given(COLUMNS, COLUMNS)
@examples(200)
def test_operations_are_those_of_sets(first: list[int], second: list[int]) -> None:
    both = intersection(first, second)
    assert span(both) == span(first) & span(second)
    assert f2.independent(both)
    assert span((*first, *extend(first, second))) == span(first + second)
    assert len(extend(first, second)) == f2.rank(first + second) - f2.rank(first)
    assert span(basis(first)) == span(first)
    assert f2.independent(basis(first))
    assert contains(first, second) == (span(second) <= span(first))


@given(COLUMNS, COLUMNS)
@examples(200)
def test_lemma_9_5(first: list[int], second: list[int]) -> None:
    """The result meets both only in 0. It is as large as the lemma says, and more would meet the larger one by dimension."""
    whole = f2.identity(BITS)
    found = common_complement(first, second, whole)
    assert f2.independent(found)
    assert span(found) & (span(first) | span(second)) == {0}
    assert len(found) == BITS - max(f2.rank(first), f2.rank(second))


def test_by_hand() -> None:
    # The docstring's example.
    assert common_complement((1, 2), (1, 4), (1, 2, 4)) == (6,)
    # Unit vectors stay as they are and keep the second argument's order.
    assert intersection((1, 2, 4, 8), (8, 16, 2)) == (8, 2)
    assert intersection((3, 4), (1, 2)) == (3,)
    assert extend((1,), (0, 1, 2, 3, 4)) == (2, 4)
    assert (basis(()), intersection((), (1,)), common_complement((), (), (1, 2))) == ((), (), (1, 2))
