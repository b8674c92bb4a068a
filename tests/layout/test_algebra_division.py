"""Division on both sides: exactly the products, one quotient, and a reason where there is none."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_strategies import layouts
from sampling import examples
from weft.layout import LinearLayout
from weft.layout.algebra.division import Side

parse = LinearLayout.parse
SIDES: list[Side] = ["left", "right"]


def quotient_on(side: Side, whole: LinearLayout, part: LinearLayout) -> LinearLayout | None:
    return whole.divide_left(part) if side == "left" else whole.divide_right(part)


def multiply(side: Side, part: LinearLayout, quotient: LinearLayout) -> LinearLayout:
    return part * quotient if side == "left" else quotient * part


def test_the_modules_example() -> None:
    whole = parse("{register: [(0,1),(0,2)], lane: [(1,0)]} -> [dim0: 2, dim1: 4]")
    left, right = parse("{register: [1]} -> [dim1: 2]"), parse("{lane: [1]} -> [dim0: 2]")
    assert whole.divide_left(left) == parse("{register: [(0,1)], lane: [(1,0)]} -> [dim0: 2, dim1: 2]")
    assert whole.divide_right(right) == parse("{register: [(0,1),(0,2)], lane: []} -> [dim0: 1, dim1: 4]")
    assert whole.divide_left(parse("{lane: [1]} -> [dim1: 2]")) is None


@given(layouts(("a", "b"), ("x", "y")), layouts(("b", "c"), ("y", "z")))
@examples(100)
def test_division_undoes_the_product(low: LinearLayout, high: LinearLayout) -> None:
    both = low * high
    factors: list[tuple[Side, LinearLayout, LinearLayout]] = [("left", low, high), ("right", high, low)]
    for side, part, other in factors:
        quotient = quotient_on(side, both, part)
        assert quotient is not None
        assert multiply(side, part, quotient).equal(both)
        assert (quotient.in_dims, quotient.out_dims) == (both.in_dims, both.out_dims)
        # What the quotient has beside the other factor is of size 1.
        assert quotient.sublayout(other.in_dims, other.out_dims) == other
        assert quotient.out_bits == other.out_bits
        assert len(quotient.all_columns) == len(other.all_columns)
        assert both.why_not_divisible(part, side) is None


def all_layouts(in_bits: int, out_bits: int) -> Iterator[LinearLayout]:
    """Every layout from a of this many bits to x of this many."""
    for columns in itertools.product(range(1 << out_bits), repeat=in_bits):
        yield LinearLayout.from_columns({"a": columns}, (("x", out_bits),))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("in_bits", "out_bits"), [(0, 0), (0, 2), (1, 0), (2, 2), (3, 2), (2, 3)])
def test_division_succeeds_exactly_on_the_products_of_one_dimension(side: Side, in_bits: int, out_bits: int) -> None:
    """By enumeration of all layouts: the quotient is the one factor that gives the whole back, None iff no factor does."""
    for part_in, part_out in itertools.product(range(in_bits + 1), range(out_bits + 1)):
        wholes = list(all_layouts(in_bits, out_bits))
        for part in all_layouts(part_in, part_out):
            products = {
                multiply(side, part, quotient): quotient
                for quotient in all_layouts(in_bits - part_in, out_bits - part_out)
            }
            for whole in wholes:
                assert quotient_on(side, whole, part) == products.get(whole)


@given(layouts(), layouts())
@examples(100)
def test_a_reason_is_given_exactly_where_there_is_no_quotient(whole: LinearLayout, part: LinearLayout) -> None:
    for side in SIDES:
        assert (whole.why_not_divisible(part, side) is None) == (quotient_on(side, whole, part) is not None)


@given(layouts(("a", "b"), ("x", "y")), layouts(("a", "c"), ("y", "z")), st.data())
@examples(100)
def test_one_wrong_bit_of_the_divisors_part_is_found(
    low: LinearLayout, high: LinearLayout, data: st.DataObject
) -> None:
    both = low * high
    columns = {dim: list(both.columns(dim)) for dim in low.in_dims if low.in_bits(dim)}
    if not columns or not both.out_bits:
        return
    dim = data.draw(st.sampled_from(sorted(columns)))
    bit = data.draw(st.integers(0, low.in_bits(dim) - 1))
    columns[dim][bit] ^= 1 << data.draw(st.integers(0, both.out_bits - 1))
    wrong = both.with_columns({dim: tuple(columns[dim])})
    assert wrong.divide_left(low) is None
    assert wrong.why_not_divisible(low) == (
        f"basis {bit} of {dim} is {wrong.bases(dim)[bit]}, the divisor asks for {both.bases(dim)[bit]}"
    )


def test_by_itself_and_by_nothing() -> None:
    whole = parse("{lane: [(1,0),(0,1)], warp: []} -> [dim0: 2, dim1: 2]")
    nothing = parse("{lane: [], warp: []} -> [dim0: 1, dim1: 1]")
    empty = LinearLayout({}, {})
    for side in SIDES:
        assert quotient_on(side, whole, whole) == nothing
        assert quotient_on(side, whole, empty) == whole
        assert quotient_on(side, empty, empty) == empty


@pytest.mark.parametrize(
    ("side", "part", "reason"),
    [
        ("left", "{warp: []} -> []", "the divisor has input dimension warp, the dividend has [register, lane]"),
        ("right", "{} -> [dim2: 1]", "the divisor has output dimension dim2, the dividend has [dim0, dim1]"),
        ("left", "{lane: [0,0]} -> [dim0: 1]", "lane has size 4 in the divisor and 2 in the dividend"),
        ("right", "{lane: []} -> [dim1: 8]", "dim1 has size 8 in the divisor and 4 in the dividend"),
        ("left", "{register: [1]} -> [dim0: 2]", "basis 0 of register is (0, 1), the divisor asks for (1, 0)"),
        ("right", "{register: [1]} -> [dim1: 2]", "basis 1 of register is (1, 0), the divisor asks for (0, 2)"),
        (
            "left",
            "{register: [1]} -> [dim1: 4]",
            "basis 0 of lane has dim1 coordinate 2, expected a multiple of 4 in the quotient",
        ),
        (
            "right",
            "{register: [1]} -> [dim0: 2]",
            None,
        ),
        (
            "right",
            "{} -> [dim1: 2]",
            "basis 0 of lane has dim1 coordinate 2, expected less than 2 in the quotient",
        ),
    ],
)
def test_reasons(side: Side, part: str, reason: str | None) -> None:
    whole = parse("{register: [(0,1),(1,0)], lane: [(0,2)]} -> [dim0: 2, dim1: 4]")
    assert whole.why_not_divisible(parse(part), side) == reason
