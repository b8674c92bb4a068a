"""Dimensions recut and concatenated, kernel and image, canonical forms, register permutations: by enumeration of all elements."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_strategies import indices, layouts, machines
from sampling import examples
from weft.layout import (
    LinearLayout,
    canonical,
    concat_ins,
    concat_outs,
    flatten_ins,
    flatten_outs,
    free_variables,
    image,
    is_identity_on,
    kernel,
    register_permutation,
    reshape_ins,
    reshape_outs,
    transpose_ins,
)

parse = LinearLayout.parse
L = parse("{register: [(0,1),(1,0)], lane: [(0,2),(0,3)]} -> [dim0: 2, dim1: 4]")


def flat_input(layout: LinearLayout, point: dict[str, int]) -> int:
    """The flattened input index, first dimension fastest."""
    position, stride = 0, 1
    for dim in layout.in_dims:
        position += point[dim] * stride
        stride *= layout.in_size(dim)
    return position


def row_major(layout: LinearLayout, point: dict[str, int]) -> int:
    """The flattened output index, last dimension fastest."""
    position = 0
    for name in layout.out_dims:
        position = position * layout.out_size(name) + point[name]
    return position


def test_the_modules_example() -> None:
    # Lane bit 1 is (0,3) = (0,1) + (0,2), register bit 0 and lane bit 0.
    assert kernel(L) == ({"register": 1, "lane": 3},)
    assert free_variables(L) == {"register": 0, "lane": 2}
    assert image(L) == ((0, 1), (0, 2), (1, 0))


@given(layouts(), st.data())
@examples(80)
def test_recut_dimensions_keep_the_flattened_map(layout: LinearLayout, data: st.DataObject) -> None:
    bits = len(layout.all_columns)
    cut = data.draw(st.integers(0, bits))
    ins = reshape_ins(layout, {"p": 1 << cut, "q": 1 << (bits - cut)})
    cut = data.draw(st.integers(0, layout.out_bits))
    outs = reshape_outs(layout, {"u": 1 << cut, "v": 1 << (layout.out_bits - cut)})
    flat = flatten_outs(flatten_ins(layout, "i"), "o")
    turned = transpose_ins(layout, data.draw(st.permutations(layout.in_dims)))
    by_position = {flat_input(ins, point): ins.apply(point) for point in indices(ins)}
    for point in indices(layout):
        result = layout.apply(point)
        at, to = flat_input(layout, point), row_major(layout, result)
        assert by_position[at] == result
        assert row_major(outs, outs.apply(point)) == to
        assert flat.apply({"i": at}) == {"o": to}
        assert turned.apply(point) == result
    assert reshape_ins(ins, {dim: layout.in_size(dim) for dim in layout.in_dims}) == layout
    assert reshape_outs(outs, dict(zip(layout.out_dims, layout.shape, strict=True))) == layout
    assert turned.equal(layout)


@given(layouts(("a", "b"), ("x", "y")), st.data())
@examples(80)
def test_concatenation(first: LinearLayout, data: st.DataObject) -> None:
    columns = data.draw(st.lists(st.integers(0, (1 << first.out_bits) - 1), max_size=3))
    beside = LinearLayout.from_columns({"c": tuple(columns)}, first.outputs)
    both = concat_ins(first, beside)
    for point in indices(both):
        left, right = first.apply({"a": point["a"], "b": point["b"]}), beside.apply({"c": point["c"]})
        assert both.apply(point) == {name: left[name] ^ right[name] for name in left}
    assert both.sublayout(("c",), both.out_dims) == beside

    high = data.draw(st.integers(0, 2))
    images = st.integers(0, (1 << high) - 1)
    below = LinearLayout.from_columns(
        {dim: tuple(data.draw(images) for _ in range(first.in_bits(dim))) for dim in first.in_dims}, (("z", high),)
    )
    stacked = concat_outs(first, below)
    assert stacked.out_dims == (*first.out_dims, "z")
    for point in indices(stacked):
        assert stacked.apply(point) == {**first.apply(point), **below.apply(point)}
    assert stacked.sublayout(stacked.in_dims, ("z",)) == below


@given(layouts())
@examples(80)
def test_kernel_image_and_free_variables(layout: LinearLayout) -> None:
    points = list(indices(layout))
    zero = {tuple(point.values()) for point in points if not any(layout.apply(point).values())}
    spanned: set[tuple[int, ...]] = set()
    basis = [tuple(vector[dim] for dim in layout.in_dims) for vector in kernel(layout)]
    for chosen in itertools.product((0, 1), repeat=len(basis)):
        total = [0] * len(layout.in_dims)
        for vector in itertools.compress(basis, chosen):
            total = [a ^ b for a, b in zip(total, vector, strict=True)]
        spanned.add(tuple(total))
    assert spanned == zero
    assert len(zero) == 1 << len(basis)

    reached = {tuple(layout.apply(point).values()) for point in points}
    vectors = image(layout)
    spanned = set()
    for chosen in itertools.product((0, 1), repeat=len(vectors)):
        total = [0] * len(layout.out_dims)
        for vector in itertools.compress(vectors, chosen):
            total = [a ^ b for a, b in zip(total, vector, strict=True)]
        spanned.add(tuple(total))
    assert spanned == reached
    assert len(vectors) == layout.rank

    # With the free bits at 0, every output once: at the first of its copies, first dimension fastest.
    free = free_variables(layout)
    firsts: dict[tuple[int, ...], int] = {}
    for point in points:
        at, held = flat_input(layout, point), tuple(layout.apply(point).values())
        firsts[held] = min(at, firsts.get(held, at))
    chosen_ones = [point for point in points if not any(point[dim] & free[dim] for dim in free)]
    assert {tuple(layout.apply(p).values()): flat_input(layout, p) for p in chosen_ones} == firsts
    assert len(chosen_ones) == len(reached)


@given(layouts(("r", "s"), ("x", "y")), st.data())
@examples(150)
def test_a_register_permutation_is_found_and_is_one(layout: LinearLayout, data: st.DataObject) -> None:
    bits = layout.in_bits("r")
    # A random linear bijection of the registers: columns of an invertible matrix.
    columns = data.draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=bits, max_size=bits))
    mixed = LinearLayout.from_columns({"r": tuple(columns)}, (("r", bits),))
    moved = layout.with_columns({"r": mixed.compose(layout.sublayout(("r",), layout.out_dims)).columns("r")})
    other = moved.transpose_outs(data.draw(st.permutations(layout.out_dims)))
    found = register_permutation(layout, other, "r")
    if mixed.is_invertible:
        assert found is not None
    if found is None:
        assert canonical(layout, "r") != canonical(other, "r")
        return
    assert found.is_invertible
    for point in indices(other):
        assert other.apply(point) == layout.apply({**point, **found.apply({"r": point["r"]})})
    assert canonical(layout, "r") == canonical(other, "r")


@given(layouts(("r",), ("x",)), layouts(("r",), ("x",)))
@examples(200)
def test_a_register_permutation_exists_iff_the_same_elements_are_held_equally_often(
    first: LinearLayout, second: LinearLayout
) -> None:
    def held(layout: LinearLayout) -> list[int]:
        return sorted(layout.apply(point)["x"] for point in indices(layout))

    same = first.out_size("x") == second.out_size("x") and held(first) == held(second)
    assert (register_permutation(first, second, "r") is not None) == same
    assert (canonical(first, "r") == canonical(second, "r")) == same


@given(machines(), st.data())
@examples(80)
def test_registers_of_a_distributed_layout_are_permuted_bit_by_bit(layout: LinearLayout, data: st.DataObject) -> None:
    columns = tuple(data.draw(st.permutations(layout.columns("register"))))
    other = layout.with_columns({"register": columns})
    found = register_permutation(layout, other)
    assert found is not None
    assert sorted(found.columns("register")) == [1 << bit for bit in range(len(columns))]
    form = canonical(other)
    assert form == canonical(layout) == canonical(form)
    nonzero = [column for column in form.columns("register") if column]
    assert nonzero == sorted(column for column in columns if column)


def test_what_is_not_a_register_permutation() -> None:
    base = parse("{register: [1,2], lane: [4]} -> [dim0: 8]")
    for other in (
        "{register: [1,2], lane: [5]} -> [dim0: 8]",  # lanes hold the same elements, but in other registers
        "{register: [1,4], lane: [2]} -> [dim0: 8]",
        "{register: [1,2,0], lane: [4]} -> [dim0: 8]",
        "{register: [1,2], warp: [4]} -> [dim0: 8]",
        "{register: [1,2], lane: [4]} -> [dim1: 8]",
        "{register: [1,2], lane: [4]} -> [dim0: 16]",
    ):
        assert register_permutation(base, parse(other)) is None
        assert canonical(base) != canonical(parse(other))
    same = register_permutation(base, parse("{lane: [4], register: [3,1]} -> [dim0: 8]"))
    # Register 1 of the second holds element 3, register 3 of the first; register 2 holds 1, register 1 of the first.
    assert same == parse("{register: [3,1]} -> [register: 4]")
    lanes = parse("{lane: [1]} -> [dim0: 2]")
    assert register_permutation(lanes, lanes) == LinearLayout.identity(1, "register", "register")


def test_the_canonical_form_lists_dimensions_in_one_order() -> None:
    layout = parse("{warp: [(0,0,2)], other: [], lane: [(1,0,0)], register: [(0,0,0),(0,1,0),(0,0,1)]} -> "
                   "[dim10: 2, dim2: 2, dim1: 4]")  # fmt: skip
    # dim1 before dim2 before dim10; register bits ascending with dim10 now the fastest dimension; the copy last.
    assert canonical(layout) == parse(
        "{register: [(0,1,0),(1,0,0),(0,0,0)], lane: [(0,0,1)], warp: [(2,0,0)], other: []} -> "
        "[dim1: 4, dim2: 2, dim10: 2]"
    )
    assert canonical(LinearLayout({}, {})) == LinearLayout({}, {})


@pytest.mark.parametrize(
    ("conversion", "dims", "expected"),
    [
        ("{register: [(0,1)], lane: [(1,0)]} -> [register: 2, lane: 2]", [], True),
        ("{register: [(0,1)], lane: [(1,0)]} -> [register: 2, lane: 2]", ["lane"], False),
        ("{register: [(2,0),(1,0)], lane: [(0,1)]} -> [register: 4, lane: 2]", ["lane"], True),
        ("{register: [(2,0),(1,0)], lane: [(0,1)]} -> [register: 4, lane: 2]", ["register", "lane"], False),
        (
            "{register: [(1,1)], lane: [(0,1)]} -> [register: 2, lane: 2]",
            ["lane"],
            False,
        ),  # a register changes the lane
        (
            "{register: [(1,0)], lane: [(1,1)]} -> [register: 2, lane: 2]",
            ["lane"],
            False,
        ),  # a lane changes the register
        ("{lane: [1]} -> [lane: 4]", ["lane"], False),
        ("{lane: [1,2]} -> [lane: 4]", ["lane"], True),
        ("{lane: []} -> [lane: 1]", ["lane"], True),
        ("{lane: [1]} -> [lane: 2]", ["warp"], False),
        ("{lane: [1]} -> [warp: 2]", ["lane"], False),
        ("{lane: [1]} -> [warp: 2]", ["warp"], False),
    ],
)
def test_is_identity_on(conversion: str, dims: list[str], expected: bool) -> None:
    assert is_identity_on(parse(conversion), dims) is expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: transpose_ins(L, ["lane"]),
            "transpose_ins: [lane] is not an order of the input dimensions [register, lane]",
        ),
        (lambda: reshape_ins(L, {"a": 3}), "reshape_ins: a has size 3, expected a power of two"),
        (
            lambda: reshape_ins(L, {"a": 4, "b": 2}),
            "reshape_ins: sizes [a: 4, b: 2] have 8 elements, the input dimensions 16",
        ),
        (lambda: reshape_outs(L, {"a": 16}), "reshape_outs: sizes [a: 16] have 16 elements, the output dimensions 8"),
        (lambda: reshape_outs(L, {}), "reshape_outs: sizes [] have 1 elements, the output dimensions 8"),
        (
            lambda: concat_ins(L, parse("{warp: []} -> [dim1: 4, dim0: 2]")),
            "concat_ins: the layouts end in [dim0: 2, dim1: 4] and [dim1: 4, dim0: 2], expected the same",
        ),
        (
            lambda: concat_ins(L, parse("{lane: [], warp: []} -> [dim0: 2, dim1: 4]")),
            "concat_ins: both layouts have [lane], expected no common input dimension",
        ),
        (
            lambda: concat_outs(L, parse("{register: [1]} -> [x: 2]")),
            "concat_outs: the layouts begin in [register: 4, lane: 4] and [register: 2], expected the same",
        ),
        (
            lambda: concat_outs(L, L),
            "concat_outs: both layouts have [dim0, dim1], expected no common output dimension",
        ),
    ],
)
def test_operations_say_what_they_require(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
