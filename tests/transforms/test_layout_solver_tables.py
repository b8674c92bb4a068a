"""Elimination and tables of the layout solver, against every assignment tried."""

from __future__ import annotations

import itertools
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.ir import tile
from weft.transforms.layouts.solve import tables as tables_module
from weft.transforms.layouts.solve.eliminate import Table, eliminate, elimination_order
from weft.transforms.layouts.solve.tables import Columns, Wants

Problem = tuple[list[Table], dict[int, int]]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to six variables of up to three choices, and tables over one to three of them."""
    count = draw(st.integers(1, 6))
    sizes = {variable: draw(st.integers(1, 3)) for variable in range(count)}
    tables: list[Table] = []
    for _ in range(draw(st.integers(0, 8))):
        scope = tuple(draw(st.permutations(range(count)))[: draw(st.integers(1, min(3, count)))])
        shape = [sizes[variable] for variable in scope]
        numbers = draw(st.lists(st.integers(0, 9), min_size=prod(shape), max_size=prod(shape)))
        tables.append(Table(scope, np.array(numbers, float).reshape(shape)))
    return tables, sizes


def total(tables: list[Table], assignment: dict[int, int]) -> float:
    """The sum of all tables by the definition."""
    return sum(float(table.prices[tuple(assignment[v] for v in table.scope)]) for table in tables)


@given(problems())
@examples(200)
def test_elimination_finds_the_least_sum(problem: Problem) -> None:
    tables, sizes = problem
    least, chosen = eliminate(tables, sizes)
    every = itertools.product(*(range(size) for size in sizes.values()))
    assert least == min(total(tables, dict(zip(sizes, choices, strict=True))) for choices in every)
    assert total(tables, chosen) == least
    assert set(chosen) == set(sizes)


def test_of_equal_choices_the_first_is_taken() -> None:
    assert eliminate([Table((0,), np.array([2.0, 1.0, 1.0]))], {0: 3, 1: 2}) == (1.0, {0: 1, 1: 0})


def test_the_width_is_that_of_the_largest_table() -> None:
    """A star of four leaves: each leaf leaves a table of the centre alone, so that no table has more than two variables."""
    sizes = dict.fromkeys(range(5), 7)
    order, width = elimination_order([(0, leaf) for leaf in range(1, 5)], sizes)
    assert width == 49
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert elimination_order([(0, 1, 2)], sizes)[1] == 343


def held_value() -> Any:
    return tile.ProgramIdOp(0).result


@st.composite
def wants(draw: st.DrawFn) -> Wants:
    """A value of variable 0, whose choices hold forms 0 to 4, and up to three readers, of which one may be variable 0 itself."""
    forms = st.integers(0, 4)
    held = draw(st.lists(forms, min_size=1, max_size=3))
    readers = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)))
    asked = st.lists(forms, min_size=1, max_size=2, unique=True).map(tuple)
    wanted = tuple(
        tuple(draw(st.lists(asked, min_size=n, max_size=n)))
        for n in (len(held) if reader == 0 else draw(st.integers(1, 3)) for reader in readers)
    )
    return Wants(held_value(), 0, readers, tuple(held), wanted, draw(st.sampled_from([1.0, 16.0])))


def price(_: Any, held: int, wanted: int) -> float:
    """A price for each pair of forms, not symmetric."""
    return float(3 * held + 7 * wanted + 1)


def sizes_of(given: Wants) -> dict[int, int]:
    return {0: len(given.held)} | {r: len(w) for r, w in zip(given.readers, given.wanted, strict=True)}


def by_definition(given: Wants, assignment: dict[int, int]) -> float:
    """Each form that any reader wants, and that is not held, is converted to once."""
    held = given.held[assignment[0]]
    asked = {form for r, choices in zip(given.readers, given.wanted, strict=True) for form in choices[assignment[r]]}
    return given.trips * sum(price(None, held, form) for form in asked - {held})


@given(wants())
@examples(200)
def test_a_value_pays_each_wanted_form_once(given: Wants) -> None:
    tables = Columns(given, price).tables(())
    sizes = sizes_of(given)
    for choices in itertools.product(*(range(size) for size in sizes.values())):
        assignment = dict(zip(sizes, choices, strict=True))
        assert total(tables, assignment) == by_definition(given, assignment)


@given(wants())
@examples(100)
def test_where_the_table_would_be_large_each_reader_pays_for_itself(given: Wants) -> None:
    """An upper bound, and exact where no two readers want one form."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "EXACT", 0)
        tables = Columns(given, price).tables(())
    assert all(len(table.scope) <= 2 for table in tables)
    sizes = sizes_of(given)
    for choices in itertools.product(*(range(size) for size in sizes.values())):
        assignment = dict(zip(sizes, choices, strict=True))
        asked = [form for r, each in zip(given.readers, given.wanted, strict=True) for form in each[assignment[r]]]
        found, exact = total(tables, assignment), by_definition(given, assignment)
        assert found >= exact
        if len(set(asked)) == len(asked):
            assert found == exact


def test_a_conversion_without_a_plan_costs_only_those_that_ask_for_it() -> None:
    """Its price is infinite, and no product with zero makes it a NaN."""

    def unplanned(_: Any, held: int, wanted: int) -> float:
        return float("inf") if wanted == 2 else 1.0

    (table,) = Columns(Wants(held_value(), 0, (1,), (0, 1), (((1,), (2,)),), 16.0), unplanned).tables(())
    assert table.prices.tolist() == [[16.0, float("inf")], [0.0, float("inf")]]


def test_prices_are_asked_again_where_they_changed() -> None:
    known: dict[tuple[int, int], float] = {}

    def learnt(_: Any, held: int, wanted: int) -> float:
        return known.get((held, wanted), 1.0)

    columns = Columns(Wants(held_value(), 0, (1,), (0, 1), (((0,),),), 1.0), learnt)
    (before,) = columns.tables(())
    assert before.prices.tolist() == [[0.0], [1.0]]
    known[1, 0] = 5.0
    (same,) = columns.tables(((0, 1),))
    assert same.prices.tolist() == [[0.0], [1.0]]
    (after,) = columns.tables(((1, 0),))
    assert after.prices.tolist() == [[0.0], [5.0]]
