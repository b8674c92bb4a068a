"""The map between two layouts of one tensor, and inverses: solutions, the chosen one, and refusals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_strategies import indices, layouts, machines
from sampling import examples
from weft.layout import LinearLayout

parse = LinearLayout.parse


def reached(layout: LinearLayout) -> set[tuple[tuple[str, int], ...]]:
    return {tuple(sorted(layout.apply(point).items())) for point in indices(layout)}


def agreeing(source: LinearLayout, destination: LinearLayout) -> list[str]:
    """Dimensions with the same bases in both, by coordinates."""
    return [
        dim
        for dim in source.in_dims
        if dim in destination.in_dims
        and [dict(zip(source.out_dims, basis, strict=True)) for basis in source.bases(dim)]
        == [dict(zip(destination.out_dims, basis, strict=True)) for basis in destination.bases(dim)]
    ]


def weight(point: Mapping[str, int]) -> int:
    return sum(index.bit_count() for index in point.values())


def solutions(destination: LinearLayout, target: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every place that holds ``target``."""
    return (point for point in indices(destination) if destination.apply(point) == target)


def test_the_modules_example() -> None:
    a = parse("{register: [1], lane: [2,4], warp: [0]} -> [dim0: 8]")
    b = parse("{register: [2], lane: [1,4], warp: [0]} -> [dim0: 8]")
    assert a.invert_and_compose(b) == parse(
        "{register: [(0,1,0)], lane: [(1,0,0),(0,2,0)], warp: [(0,0,1)]} -> [register: 2, lane: 4, warp: 2]"
    )


@given(layouts(("a", "b"), ("x", "y")), layouts(("b", "c"), ("x", "y")))
@examples(200)
def test_a_solution_wherever_there_is_one(source: LinearLayout, destination: LinearLayout) -> None:
    sizes = {name: max(source.out_size(name), destination.out_size(name)) for name in destination.out_dims}
    destination = LinearLayout({dim: destination.bases(dim) for dim in destination.in_dims}, sizes)
    if not reached(source) <= reached(destination):
        with pytest.raises(ValueError, match="does not reach"):
            source.invert_and_compose(destination)
        return
    found = source.invert_and_compose(destination)
    assert found.in_dims == source.in_dims
    assert found.outputs == tuple((dim, destination.in_bits(dim)) for dim in destination.in_dims)
    for point in indices(source):
        assert destination.apply(found.apply(point)) == source.apply(point)
    # The first preference: what agrees maps to itself.
    for dim in agreeing(source, destination):
        for index in range(source.in_size(dim)):
            expected = {other: index if other == dim else 0 for other in destination.in_dims}
            assert found.apply({dim: index}) == expected


@st.composite
def two_machines(draw: st.DrawFn) -> tuple[LinearLayout, LinearLayout]:
    bits = tuple(draw(st.lists(st.integers(0, 2), min_size=1, max_size=2)))
    return draw(machines(bits)), draw(machines(bits))


@given(two_machines())
@examples(100)
def test_minimum_norm_between_distributed_layouts(pair: tuple[LinearLayout, LinearLayout]) -> None:
    """The second preference: of all places that hold the element of a bit, one with the fewest bits set; by enumeration."""
    source, destination = pair
    found = source.invert_and_compose(destination)
    same = agreeing(source, destination)
    for dim in source.in_dims:
        if dim in same:
            continue
        for bit in range(source.in_bits(dim)):
            target = source.apply({dim: 1 << bit})
            assert weight(found.apply({dim: 1 << bit})) == min(weight(p) for p in solutions(destination, target))


@given(two_machines())
@examples(60)
def test_there_and_back(pair: tuple[LinearLayout, LinearLayout]) -> None:
    """A conversion to a layout and back reads the same elements, and to itself it is the identity."""
    source, destination = pair
    there, back = source.invert_and_compose(destination), destination.invert_and_compose(source)
    assert there.compose(back).compose(source) == source
    assert back.compose(there).compose(destination) == destination
    itself = source.invert_and_compose(source)
    assert all(itself.apply(point) == point for point in indices(source))


def test_agreeing_dimensions_are_used_where_the_others_do_not_suffice() -> None:
    # Lanes agree; still the source's register bit, which the destination has in lanes only, has to be found there.
    source = parse("{register: [1], lane: [1]} -> [dim0: 2]")
    destination = parse("{register: [0], lane: [1]} -> [dim0: 2]")
    assert source.invert_and_compose(destination) == parse(
        "{register: [(0,1)], lane: [(0,1)]} -> [register: 2, lane: 2]"
    )


def test_copies_are_read_from_the_first_unless_the_dimension_agrees() -> None:
    source = parse("{register: [1], lane: [0], warp: [0,0]} -> [dim0: 2]")
    destination = parse("{register: [0,1], lane: [0], warp: [0]} -> [dim0: 2]")
    # Register: bit 1 of the destination, its bit 0 (copies) at 0. Lanes agree: copies stay apart. Warps differ: all read warp 0.
    assert source.invert_and_compose(destination) == parse(
        "{register: [(2,0,0)], lane: [(0,1,0)], warp: [(0,0,0),(0,0,0)]} -> [register: 4, lane: 2, warp: 2]"
    )


def test_the_order_of_dimensions_decides_between_equal_columns() -> None:
    source = parse("{x: [1]} -> [dim0: 2]")
    assert source.invert_and_compose(parse("{a: [1], b: [1]} -> [dim0: 2]")) == parse("{x: [(1,0)]} -> [a: 2, b: 2]")
    assert source.invert_and_compose(parse("{b: [1], a: [1]} -> [dim0: 2]")) == parse("{x: [(1,0)]} -> [b: 2, a: 2]")


@given(layouts())
@examples(150)
def test_inverses_of_all_kinds(layout: LinearLayout) -> None:
    pseudo = layout.pseudo_inverse()
    assert (pseudo.in_dims, pseudo.out_dims) == (layout.out_dims, layout.in_dims)
    assert layout.compose(pseudo).compose(layout) == layout
    assert pseudo.compose(layout).compose(pseudo) == pseudo
    assert pseudo.rank == layout.rank
    if layout.is_surjective:
        assert layout.right_inverse() == pseudo
    if layout.is_injective:
        assert layout.left_inverse() == pseudo
        for point in indices(layout):
            assert pseudo.apply(layout.apply(point)) == point
    else:
        with pytest.raises(ValueError, match="has no left inverse"):
            layout.left_inverse()
    if layout.is_invertible:
        assert layout.inverse() == pseudo
        assert pseudo.inverse() == layout


@given(layouts())
@examples(100)
def test_the_right_inverse_solves_the_identity(layout: LinearLayout) -> None:
    """As Triton defines its pseudo-inverse."""
    if layout.is_surjective:
        identity = LinearLayout(
            {
                name: [tuple(1 << bit if name == other else 0 for other in layout.out_dims) for bit in range(bits)]
                for name, bits in layout.outputs
            },
            {name: 1 << bits for name, bits in layout.outputs},
        )
        assert identity.invert_and_compose(layout) == layout.right_inverse()


def test_degenerate_systems() -> None:
    empty, point = LinearLayout({}, {}), parse("{lane: []} -> [dim0: 1]")
    assert empty.invert_and_compose(empty) == empty
    assert point.invert_and_compose(point) == parse("{lane: []} -> [lane: 1]")
    assert empty.pseudo_inverse() == empty.left_inverse() == empty
    zero = parse("{lane: [0]} -> [dim0: 2]")
    assert zero.pseudo_inverse() == parse("{dim0: [0]} -> [lane: 2]")
    # A source smaller than the destination's tensor needs only what it reaches.
    assert parse("{lane: [1]} -> [dim0: 2]").invert_and_compose(parse("{warp: [2,1]} -> [dim0: 4]")) == parse(
        "{lane: [2]} -> [warp: 4]"
    )


@pytest.mark.parametrize(
    ("source", "destination", "message"),
    [
        (
            "{lane: [1]} -> [dim0: 2]",
            "{lane: [(1,0)]} -> [dim0: 2, dim1: 1]",
            "cannot solve: the source ends in [dim0], the destination in [dim0, dim1]",
        ),
        (
            "{lane: [1]} -> [dim0: 4]",
            "{lane: [1]} -> [dim0: 2]",
            "cannot solve: dim0 has size 4 in the source and 2 in the destination, expected at least 4",
        ),
        (
            "{lane: [0], warp: [0,(2)]} -> [dim0: 4]",
            "{lane: [1]} -> [dim0: 4]",
            "cannot solve: basis 1 of warp is (2,) in {lane: [0], warp: [0,2]} -> [dim0: 4], "
            "which {lane: [1]} -> [dim0: 4] does not reach",
        ),
    ],
)
def test_what_cannot_be_solved(source: str, destination: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        parse(source).invert_and_compose(parse(destination))
    assert str(error.value) == message


def test_a_layout_that_is_not_injective_has_no_left_inverse() -> None:
    with pytest.raises(ValueError) as error:
        parse("{lane: [1,1]} -> [dim0: 4]").left_inverse()
    assert str(error.value) == (
        "{lane: [1,1]} -> [dim0: 4] has no left inverse: its matrix has 2 rows, 2 columns and rank 1"
    )
