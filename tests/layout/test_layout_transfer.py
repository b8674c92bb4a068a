"""Shape operations on layouts against NumPy: every machine index keeps the element it holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout import (
    LinearLayout,
    broadcast,
    broadcast_back,
    expand_dims,
    expand_dims_back,
    plan_conversion,
    project,
    reduce,
    reduce_back,
    reshape,
    trans,
    trans_back,
    vector,
    vector_machine,
    why_not_distributed,
)

Tile = npt.NDArray[np.int64]
LANE_BITS = 2
shapes = st.lists(st.integers(0, 2), min_size=1, max_size=3)


def tile(layout: LinearLayout) -> Tile:
    """A tensor of distinct elements."""
    return np.arange(math.prod(layout.shape)).reshape(layout.shape)


def places(layout: LinearLayout) -> Iterator[tuple[int, int]]:
    """All (register, lane) of a layout."""
    return itertools.product(range(layout.in_size("register")), range(layout.in_size("lane")))


def held(layout: LinearLayout, tensor: Tile, register: int, lane: int) -> int:
    """The element of ``tensor`` that a place holds, by coordinates."""
    assert tensor.shape == layout.shape
    return int(tensor[tuple(layout.apply({"register": register, "lane": lane}).values())])


def check_same_places(source: LinearLayout, x: Tile, result: LinearLayout, y: Tile) -> None:
    assert why_not_distributed(result) is None
    assert result.out_dims == tuple(f"dim{axis}" for axis in range(y.ndim))
    assert source.in_size("register") == result.in_size("register")
    for place in places(source):
        assert held(source, x, *place) == held(result, y, *place)


@given(shapes, st.data())
@examples(60)
def test_trans(distributed: Any, bits: Sequence[int], data: st.DataObject) -> None:
    layout: LinearLayout = data.draw(distributed(bits, LANE_BITS))
    order = data.draw(st.permutations(range(len(bits))))
    x = tile(layout)
    result = trans(layout, order)
    check_same_places(layout, x, result, x.transpose(order))
    assert trans_back(result, order) == layout
    assert trans(trans_back(layout, order), order) == layout


@given(shapes, shapes, st.data())
@examples(60)
def test_reshape(distributed: Any, bits: list[int], other: list[int], data: st.DataObject) -> None:
    layout: LinearLayout = data.draw(distributed(bits, LANE_BITS))
    # Any shape with as many elements: the other's bits, cut or filled up in its last dimension.
    new = [*other, 0]
    while sum(new) > sum(bits):
        new[next(i for i, n in enumerate(new) if n)] -= 1
    new[-1] += sum(bits) - sum(new)
    shape = [1 << n for n in new]
    x = tile(layout)
    check_same_places(layout, x, reshape(layout, shape), x.reshape(shape))
    assert reshape(reshape(layout, shape), layout.shape) == layout


@given(shapes, st.data())
@examples(60)
def test_expand_dims(distributed: Any, bits: list[int], data: st.DataObject) -> None:
    layout: LinearLayout = data.draw(distributed(bits, LANE_BITS))
    axis = data.draw(st.integers(0, len(bits)))
    x = tile(layout)
    result = expand_dims(layout, axis)
    check_same_places(layout, x, result, np.expand_dims(x, axis))
    assert expand_dims_back(result, axis) == layout


@given(shapes, st.data())
@examples(60)
def test_broadcast(distributed: Any, bits: list[int], data: st.DataObject) -> None:
    grown = [n if n else data.draw(st.integers(0, 2)) for n in bits]
    shape = [1 << n for n in grown]
    layout: LinearLayout = data.draw(distributed(bits, LANE_BITS, 4))
    x = tile(layout)
    y = np.broadcast_to(x, shape)
    result = broadcast(layout, shape)
    assert why_not_distributed(result) is None
    count = layout.in_size("register")
    assert result.in_size("register") == count << sum(grown) - sum(bits)
    for register, lane in places(result):
        assert held(result, y, register, lane) == held(layout, x, register % count, lane)
    # Going back gives the layout without the registers that held copies.
    back = broadcast_back(result, layout.shape)
    assert back.columns("lane") == layout.columns("lane")
    assert back.columns("register") == tuple(column for column in layout.columns("register") if column)


@given(shapes, st.data())
@examples(60)
def test_what_a_wanted_broadcast_reads(distributed: Any, bits: list[int], data: st.DataObject) -> None:
    """Backward from any layout of the result: `project` is exact, and `broadcast_back` reaches it by renaming registers."""
    wanted: LinearLayout = data.draw(distributed(bits, LANE_BITS))
    shape = [1 if data.draw(st.booleans()) else 1 << n for n in bits]
    x = np.arange(math.prod(shape)).reshape(shape)
    y = np.broadcast_to(x, wanted.shape)
    projected = project(wanted, shape)
    check_same_places(wanted, y, projected, x)
    source = broadcast_back(wanted, shape)
    assert source.zero_columns("register") == ()
    assert plan_conversion(source, projected, 32, vector_machine(source.in_size("lane"))).kind in (
        "nothing",
        "registers",
    )


@given(shapes, st.data())
@examples(60)
def test_reduce(distributed: Any, bits: list[int], data: st.DataObject) -> None:
    layout: LinearLayout = data.draw(distributed(bits, LANE_BITS))
    axis = data.draw(st.integers(0, len(bits) - 1))
    result = reduce(layout, axis)
    assert why_not_distributed(result) is None
    # A place holds the reduction of the row it held an element of. Registers are renumbered without the bits along the axis.
    rows = np.arange(math.prod(result.shape)).reshape(result.shape)
    row_of = np.broadcast_to(np.expand_dims(rows, axis), layout.shape)
    kept = [
        bit
        for bit, basis in enumerate(layout.bases("register"))
        if any(value for other, value in enumerate(basis) if other != axis)
    ]
    assert result.in_bits("register") == len(kept)
    for register, lane in places(layout):
        renumbered = sum((register >> bit & 1) << new for new, bit in enumerate(kept))
        assert held(result, rows, renumbered, lane) == held(layout, row_of, register, lane)


@given(shapes, st.integers(0, 3), st.data())
@examples(60)
def test_reduce_back_keeps_the_axis_in_registers(
    distributed: Any, bits: list[int], size_bits: int, data: st.DataObject
) -> None:
    layout: LinearLayout = data.draw(distributed(bits, LANE_BITS))
    axis = data.draw(st.integers(0, len(bits)))
    source = reduce_back(layout, axis, 1 << size_bits)
    assert source.shape == (*layout.shape[:axis], 1 << size_bits, *layout.shape[axis:])
    assert why_not_distributed(source) is None
    again = reduce(source, axis)
    assert again.columns("lane") == layout.columns("lane")
    assert again.columns("register") == tuple(column for column in layout.columns("register") if column)
    assert all(not basis[axis] for basis in source.bases("lane"))


def test_examples() -> None:
    row = vector((8,), lanes=4)
    assert str(row) == "{register: [4], lane: [1,2]} -> [dim0: 8]"
    # x[:, None]: bit b of dim0 stays where it was. Grown to 8x4, the two new bits are the next registers.
    column = expand_dims(row, 1)
    assert str(column) == "{register: [(4,0)], lane: [(1,0),(2,0)]} -> [dim0: 8, dim1: 1]"
    assert str(broadcast(column, (8, 4))) == (
        "{register: [(4,0),(0,1),(0,2)], lane: [(1,0),(2,0)]} -> [dim0: 8, dim1: 4]"
    )
    # Two sizes grow: the last dimension's bit comes first.
    assert str(broadcast(vector((1, 2, 1), 2), (2, 2, 2))) == (
        "{register: [(0,0,1),(1,0,0)], lane: [(0,1,0)]} -> [dim0: 2, dim1: 2, dim2: 2]"
    )
    assert str(trans(vector((2, 4), 4), (1, 0))) == "{register: [(0,1)], lane: [(1,0),(2,0)]} -> [dim0: 4, dim1: 2]"
    assert reshape(vector((2, 4), 4), (8,)) == row
    # A row of 4 sits in the lanes of one vector: its sum is in all of them.
    assert str(reduce(vector((2, 4), 4), 1)) == "{register: [1], lane: [0,0]} -> [dim0: 2]"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trans(vector((4, 2)), (0, 0)), "trans: (0, 0) is not a permutation of 2 dimensions"),
        (lambda: trans(vector((4, 2)), (0,)), "trans: (0,) is not a permutation of 2 dimensions"),
        (lambda: reshape(vector((4, 2)), (4,)), "reshape: shape (4, 2) does not have the elements of (4,)"),
        (lambda: reshape(vector((4, 2)), (-4, -2)), "dim0 of shape (-4, -2) is -4, expected a power of two"),
        (
            lambda: expand_dims(vector((4, 2)), 3),
            "expand_dims: axis 3 is out of range for rank 2, expected 0 to 2",
        ),
        (
            lambda: expand_dims(vector((4, 2)), -1),
            "expand_dims: axis -1 is out of range for rank 2, expected 0 to 2",
        ),
        (
            lambda: expand_dims_back(vector((4, 2)), 0),
            "expand_dims_back: shape (4, 2) has no dimension of size 1 at axis 0",
        ),
        (
            lambda: expand_dims_back(vector((1,)), 1),
            "expand_dims_back: shape (1,) has no dimension of size 1 at axis 1",
        ),
        (lambda: broadcast(vector((4, 2)), (4, 4)), "broadcast: shape (4, 2) does not broadcast to (4, 4)"),
        (lambda: broadcast(vector((1,)), (4, 1)), "broadcast: shape (1,) does not broadcast to (4, 1)"),
        (lambda: broadcast(vector((1,)), (3,)), "dim0 of shape (3,) is 3, expected a power of two"),
        (lambda: project(vector((4,)), (2,)), "project: shape (2,) does not broadcast to (4,)"),
        (
            lambda: broadcast_back(vector((4,)), (4, 1)),
            "broadcast_back: shape (4, 1) does not broadcast to (4,)",
        ),
        (lambda: reduce(vector((4,)), 1), "reduce: axis 1 is out of range for rank 1"),
        (lambda: reduce(vector((4,)), -1), "reduce: axis -1 is out of range for rank 1"),
        (lambda: reduce_back(vector((4,)), 2, 4), "expand_dims: axis 2 is out of range for rank 1, expected 0 to 1"),
    ],
)
def test_operations_say_what_they_require(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
