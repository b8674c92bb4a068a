"""Theorem 9.3: shape operations on distributed layouts of a whole machine, every place compared with NumPy.

One law for all: where the source layout has an element of x, the result layout has the element of y = operation(x) that is made
of it, in the same lane, warp and block, and in the register that the operation says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_strategies import machines
from sampling import examples
from weft.layout import (
    LinearLayout,
    blocked,
    broadcast,
    broadcast_back,
    canonical,
    expand_dims,
    expand_dims_back,
    join,
    join_back,
    reduce,
    reduce_back,
    register_permutation,
    reshape,
    split,
    split_back,
    trans,
    trans_back,
    why_not_distributed,
)

Tile: TypeAlias = npt.NDArray[np.int64]
Place: TypeAlias = Mapping[str, int]
MACHINE = ("register", "lane", "warp", "block")
shapes = st.lists(st.integers(0, 2), min_size=1, max_size=3).map(tuple)
parse = LinearLayout.parse


def tile(shape: Sequence[int], start: int = 0) -> Tile:
    """Distinct elements."""
    return np.arange(start, start + math.prod(shape)).reshape(shape)


def places(layout: LinearLayout) -> Iterator[dict[str, int]]:
    for point in itertools.product(*(range(layout.in_size(dim)) for dim in MACHINE)):
        yield dict(zip(MACHINE, point, strict=True))


def held(layout: LinearLayout, tensor: Tile, place: Place) -> int:
    """The element of ``tensor`` at a place, by coordinates."""
    assert layout.shape == tensor.shape
    return int(tensor[tuple(layout.apply(place).values())])


def same_threads(layout: LinearLayout, other: LinearLayout) -> bool:
    return all(layout.in_bits(dim) == other.in_bits(dim) for dim in MACHINE[1:])


def check(result: LinearLayout, source: LinearLayout) -> None:
    """Closure, dimension names, and threads as before."""
    assert why_not_distributed(result) is None
    assert result.out_dims == tuple(f"dim{axis}" for axis in range(len(result.shape)))
    assert same_threads(result, source)


def insert(index: int, bit: int, value: int) -> int:
    """``index`` with ``value`` inserted as this bit."""
    return (index >> bit) << (bit + 1) | value << bit | index & ((1 << bit) - 1)


def without_register_copies(layout: LinearLayout) -> LinearLayout:
    return layout.with_columns({"register": tuple(column for column in layout.columns("register") if column)})


@given(machines(dims=MACHINE), st.data())
@examples(60)
def test_trans_reshape_and_expand_dims(layout: LinearLayout, data: st.DataObject) -> None:
    x = tile(layout.shape)
    order = data.draw(st.permutations(range(x.ndim)))
    axis = data.draw(st.integers(0, x.ndim))
    bits = layout.out_bits
    cut = data.draw(st.integers(0, bits))
    shape = (1 << cut, 1, 1 << (bits - cut))
    for result, y in (
        (trans(layout, order), x.transpose(order)),
        (reshape(layout, shape), x.reshape(shape)),
        (expand_dims(layout, axis), np.expand_dims(x, axis)),
    ):
        check(result, layout)
        assert all(held(result, y, place) == held(layout, x, place) for place in places(layout))
    # Backward after forward, and forward after backward.
    assert trans_back(trans(layout, order), order) == trans(trans_back(layout, order), order) == layout
    assert reshape(reshape(layout, shape), layout.shape) == layout
    assert expand_dims_back(expand_dims(layout, axis), axis) == layout


@given(machines(dims=MACHINE))
@examples(80)
def test_join_puts_the_operands_into_neighbouring_registers(layout: LinearLayout) -> None:
    a, b = tile(layout.shape), tile(layout.shape, 1000)
    y = np.stack((a, b), axis=-1)
    result = join(layout)
    check(result, layout)
    assert result.in_bits("register") == layout.in_bits("register") + 1
    for place in places(result):
        operand, register = (a, b)[place["register"] & 1], place["register"] >> 1
        assert held(result, y, place) == held(layout, operand, {**place, "register": register})
    assert join_back(result) == layout


@given(shapes, st.data())
@examples(80)
def test_a_wanted_join(bits: tuple[int, ...], data: st.DataObject) -> None:
    """Backward: the thread that wants an element of the result has it, in the operand that the last coordinate names."""
    wanted: LinearLayout = data.draw(machines((*bits, 1), MACHINE))
    source = join_back(wanted)
    check(source, wanted)
    a, b = tile(source.shape), tile(source.shape, 1000)
    y = np.stack((a, b), axis=-1)
    in_register = [bit for bit, basis in enumerate(wanted.bases("register")) if basis[-1]]
    assert wanted.in_bits("register") == source.in_bits("register") + len(in_register)
    for place in places(wanted):
        register = place["register"]
        for bit in in_register:
            register = register >> (bit + 1) << bit | register & ((1 << bit) - 1)
        j = wanted.apply(place)[wanted.out_dims[-1]]
        assert held(wanted, y, place) == held(source, (a, b)[j], {**place, "register": register})
    if in_register:
        # In the image of join, up to the place of the bit among the registers.
        (bit,) = in_register
        columns = list(wanted.columns("register"))
        first = wanted.with_columns({"register": (columns.pop(bit), *columns)})
        assert join(source) == first
        assert register_permutation(join(source), wanted) is not None


@given(shapes, st.data())
@examples(80)
def test_split(bits: tuple[int, ...], data: st.DataObject) -> None:
    layout: LinearLayout = data.draw(machines((*bits, 1), MACHINE))
    places_of_pair = [(dim, bit) for dim in MACHINE for bit, basis in enumerate(layout.bases(dim)) if basis[-1]]
    ((dim, bit),) = places_of_pair
    if dim != "register":
        with pytest.raises(ValueError) as error:
            split(layout)
        assert str(error.value) == (
            f"split: the last dimension is basis {bit} of {dim}, expected it in register: each thread needs both halves"
        )
        return
    x = tile(layout.shape)
    result = split(layout)
    check(result, layout)
    for place in places(result):
        for j in (0, 1):
            source = {**place, "register": insert(place["register"], bit, j)}
            assert held(result, x[..., j], place) == held(layout, x, source)
    # Backward: a source that splits into exactly this, whatever the wanted layout was.
    assert split(split_back(result)) == result
    assert register_permutation(split_back(result), layout) is not None


@given(machines(dims=MACHINE))
@examples(60)
def test_split_after_join(layout: LinearLayout) -> None:
    assert split(join(layout)) == split(split_back(layout)) == layout


def all_distributed(shape_bits: Sequence[int], sizes: Mapping[str, int]) -> Iterable[LinearLayout]:
    """Every distributed layout of a tensor on a machine with these numbers of bits."""
    outputs = tuple((f"dim{axis}", bits) for axis, bits in enumerate(shape_bits))
    units = [1 << bit for bit in range(sum(shape_bits))]
    zeros = [0] * (sum(sizes.values()) - len(units))
    for columns in sorted(set(itertools.permutations(units + zeros))):
        cuts = list(itertools.accumulate(sizes.values(), initial=0))
        parts = {dim: columns[a:b] for dim, a, b in zip(sizes, cuts, cuts[1:], strict=False)}
        yield LinearLayout.from_columns(parts, outputs)


@pytest.mark.parametrize("shape_bits", [(), (1,), (2,), (1, 1)])
def test_a_split_that_is_refused_has_no_free_result(shape_bits: tuple[int, ...]) -> None:
    """Theorem 9.3 says that split is closed. Exhaustively: where the pair is not in registers, some thread has no element of the
    first result, so no layout of the result, with however many registers, finds its elements in their threads."""
    machine = {"register": 1, "lane": 2}
    refused = 0
    for layout in all_distributed((*shape_bits, 1), machine):
        if 1 in layout.columns("register"):
            split(layout)
            continue
        refused += 1
        x = tile(layout.shape)
        in_lane = [
            {held_in(layout, x, register, lane) for register in range(layout.in_size("register"))}
            for lane in range(layout.in_size("lane"))
        ]
        first = x[..., 0]
        for registers in range(3):
            for result in all_distributed(shape_bits, {"register": registers, "lane": 2}):
                assert any(
                    held_in(result, first, register, lane) not in in_lane[lane]
                    for register in range(1 << registers)
                    for lane in range(4)
                )
        with pytest.raises(ValueError, match="expected it in register"):
            split(layout)
    assert refused


def held_in(layout: LinearLayout, tensor: Tile, register: int, lane: int) -> int:
    return int(tensor[tuple(layout.apply({"register": register, "lane": lane}).values())])


@given(shapes, st.data())
@examples(80)
def test_broadcast(bits: tuple[int, ...], data: st.DataObject) -> None:
    grown = [n or data.draw(st.integers(0, 2)) for n in bits]
    shape = [1 << n for n in grown]
    layout: LinearLayout = data.draw(machines(bits, MACHINE))
    result = broadcast(layout, shape)
    check(result, layout)
    x, count = tile(layout.shape), layout.in_size("register")
    y = np.broadcast_to(x, shape)
    for place in places(result):
        source = {**place, "register": place["register"] % count}
        assert held(result, y, place) == held(layout, x, source)
    assert broadcast_back(result, layout.shape) == without_register_copies(layout)
    # Any layout of the result: the threads that want an element have its source.
    wanted: LinearLayout = data.draw(machines(tuple(grown), MACHINE))
    back = broadcast_back(wanted, layout.shape)
    check(back, wanted)
    assert threads_have(back, x, wanted, y)


def threads_have(source: LinearLayout, x: Tile, wanted: LinearLayout, y: Tile) -> bool:
    """Whether each thread holds in ``source`` exactly the elements that it wants."""

    def elements(layout: LinearLayout, tensor: Tile) -> dict[tuple[int, ...], set[int]]:
        found: dict[tuple[int, ...], set[int]] = {}
        for place in places(layout):
            found.setdefault(tuple(place[dim] for dim in MACHINE[1:]), set()).add(held(layout, tensor, place))
        return found

    return elements(source, x) == elements(wanted, y)


@given(machines(dims=MACHINE), st.data())
@examples(80)
def test_reduce(layout: LinearLayout, data: st.DataObject) -> None:
    """A thread holds results of exactly the rows it had elements of."""
    axis = data.draw(st.integers(0, len(layout.shape) - 1))
    result = reduce(layout, axis)
    check(result, layout)
    rows = tile(result.shape)
    row_of = np.broadcast_to(np.expand_dims(rows, axis), layout.shape)
    assert threads_have(result, rows, layout, row_of)
    assert result.zero_columns("register") == ()
    # Backward, then forward: the same, without copies in registers; and no thread has a part of a row.
    size = 1 << data.draw(st.integers(0, 2))
    back = reduce_back(layout, axis, size)
    check(back, layout)
    assert reduce(back, axis) == without_register_copies(layout)
    assert all(not basis[axis] for dim in MACHINE[1:] for basis in back.bases(dim))


@given(machines(dims=("register", "lane", "warp")))
@examples(60)
def test_every_distributed_layout_is_made_of_a_blocked_one(layout: LinearLayout) -> None:
    """The other half of theorem 9.3, that the family is the smallest: a blocked layout of a cube 2 x 2 x .. x 2, transposed,
    reduced along the dimensions that shall be copies, and reshaped, is any distributed layout (up to its register order)."""
    columns = [column for dim in ("register", "lane", "warp") for column in layout.columns(dim)]
    rank, bits = len(columns), layout.out_bits
    # One dimension of size 2 for each machine bit, registers fastest.
    ends = {"register": layout.in_bits("register"), "lane": layout.in_bits("lane"), "warp": layout.in_bits("warp")}
    sizes: list[list[int]] = []
    begin = 0
    for count in ends.values():
        sizes.append([2 if begin <= i < begin + count else 1 for i in range(rank)])
        begin += count
    cube = blocked([2] * rank, *sizes, order=range(rank))
    for dim, count in ends.items():
        assert cube.in_bits(dim) == count
    # The dimensions of copies go; those that stay are put in the order of the tensor bits they move, highest first.
    for axis in reversed(range(rank)):
        if not columns[axis]:
            cube = reduce(cube, axis)
    kept = [column for column in columns if column]
    order = sorted(range(bits), key=lambda axis: -kept[axis])
    made = reshape(trans(cube, order), layout.shape)
    assert canonical(made) == canonical(without_register_copies(layout))


def test_examples() -> None:
    pair = parse("{register: [2], lane: [1]} -> [dim0: 4]")
    assert join(pair) == parse("{register: [(0,1),(2,0)], lane: [(1,0)]} -> [dim0: 4, dim1: 2]")
    # The pair's bit is the second of the registers, and stays theirs when it goes.
    layout = parse("{register: [(2,0),(0,1)], lane: [(1,0)], warp: [(0,0)]} -> [dim0: 4, dim1: 2]")
    assert split(layout) == parse("{register: [2], lane: [1], warp: [0]} -> [dim0: 4]")
    # The pair in lanes: those hold copies of both operands.
    layout = parse("{register: [(2,0),(1,0)], lane: [(0,1)]} -> [dim0: 4, dim1: 2]")
    assert join_back(layout) == parse("{register: [2,1], lane: [0]} -> [dim0: 4]")
    # Scalars, and layouts without registers.
    assert join(parse("{lane: [()]} -> []")) == parse("{register: [1], lane: [0]} -> [dim0: 2]")
    assert split(parse("{register: [1]} -> [dim0: 2]")) == parse("{register: []} -> []")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split(parse("{} -> []")), "split: shape () does not end in a dimension of size 2"),
        (
            lambda: split(parse("{register: [(0,1),(0,2)]} -> [dim0: 1, dim1: 4]")),
            "split: shape (1, 4) does not end in a dimension of size 2",
        ),
        (
            lambda: join_back(parse("{register: []} -> [dim0: 1]")),
            "join_back: shape (1,) does not end in a dimension of size 2",
        ),
        (
            lambda: split(parse("{register: [(0,1),(1,1)]} -> [dim0: 2, dim1: 2]")),
            "split: the layout is not distributed: basis 1 of register is (1, 1), expected at most one bit set",
        ),
        (
            lambda: join_back(parse("{register: [(1,0)]} -> [dim0: 2, dim1: 2]")),
            "join_back: the layout is not distributed: it is not surjective: 1 of 2 output bits are reached",
        ),
    ],
)
def test_operations_say_what_they_require(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
