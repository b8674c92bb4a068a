"""Queries of layouts: each against a count over all elements on random layouts, and on cases worked by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout import (
    LinearLayout,
    address_map,
    blocked,
    coalesced,
    coalescing,
    contiguity,
    copies,
    elements_per_thread,
    sliced,
    vector_bits,
    why_not_distributed,
)

# Table 2 of the paper: the width of loads and stores of tensors [512, k]. The paper says neither the number of warps nor the
# rule. With 4 warps and each element in one thread, nine of its ten rows follow. The tenth, [512, 2] float8, has the 1,024
# bytes of [512, 1] float16, and the same threads, but 128 bits where that has 64: no rule for bytes gives both. It needs two
# threads to hold each element (``copies``); with one, its width is 64. Before linear layouts, widths went by the last
# dimension alone.
TABLE_2 = [
    # bits, k, copies, width, width along the last dimension
    (8, 1, 1, 32, 32),
    (8, 2, 2, 128, 16),
    (8, 4, 1, 128, 32),
    (8, 8, 1, 128, 64),
    (8, 16, 1, 128, 128),
    (16, 1, 1, 64, 64),
    (16, 2, 1, 128, 32),
    (16, 4, 1, 128, 64),
    (16, 8, 1, 128, 128),
    (16, 16, 1, 128, 128),
]


@pytest.mark.parametrize(("bits", "k", "shared", "width", "legacy"), TABLE_2)
def test_table_2(bits: int, k: int, shared: int, width: int, legacy: int) -> None:
    layout = coalesced((512, k), bits, warps=4, copies=shared)
    assert vector_bits(layout, bits) == width
    assert contiguity(layout) * bits == width
    assert coalescing(layout, bits).efficiency == 1
    if k > 1:
        # Rows that do not follow one another leave only the last dimension.
        assert vector_bits(layout, bits, strides=(2 * k, 1)) == legacy
        assert vector_bits(coalesced((512, k), bits, 4, contiguity=k), bits, strides=(2 * k, 1)) == legacy


def test_the_row_of_table_2_that_needs_copies() -> None:
    one, two = (coalesced((512, 2), 8, warps=4, copies=shared) for shared in (1, 2))
    assert (vector_bits(one, 8), copies(one)["warp"]) == (64, 0)
    assert (vector_bits(two, 8), copies(two)["warp"]) == (128, 0b10)


@given(st.data())
@examples(200)
def test_coalesced_layouts(data: st.DataObject) -> None:
    """Every element is held, by one thread where there are enough; vectors are as wide as contiguity, alignment, the machine and
    the thread's part allow; requests touch the fewest sectors."""
    sizes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    shape = [1 << size for size in sizes]
    order = data.draw(st.permutations(range(len(shape))))
    bits, warps = data.draw(st.sampled_from([8, 16, 32, 64])), data.draw(st.sampled_from([1, 2, 4]))
    alignment = data.draw(st.sampled_from([8, 16, 24, 48, 256]))
    together, shared = data.draw(st.sampled_from([None, 1, 4, 24])), data.draw(st.sampled_from([1, 1, 2, 4]))
    blocks = [1] if data.draw(st.booleans()) else None
    cga = [tuple(int(axis == order[-1]) for axis in range(len(shape)))] if blocks else None
    layout = coalesced(shape, bits, warps, order, together, alignment, copies=shared, cga_layout=cga)
    assert why_not_distributed(layout) is None
    held = math.prod(shape) // (2 if blocks and shape[order[-1]] > 1 else 1)
    threads = 32 * warps
    part = max(1, held * shared // threads)
    contiguous = held if together is None else together & -together
    widest = min(16 // (bits // 8), held, (alignment & -alignment) * 8 // bits, part, contiguous)
    strides = strides_of(layout, order, 0)
    # The registers of a thread: `widest` consecutive addresses first.
    first = addresses(LinearLayout.from_columns(_with(layout), layout.outputs), strides)[0][0]
    assert first[:widest] == list(range(widest))
    # More threads than there are vectors hold copies, no others.
    distinct = max(1, held // widest)
    masks = copies(layout)
    assert (masks["lane"].bit_count() + masks["warp"].bit_count()) == max(0, (threads // distinct).bit_length() - 1)
    assert masks["register"] == 0
    assert coalescing(layout, bits, widest, strides).efficiency == 1


def _with(layout: LinearLayout) -> dict[str, tuple[int, ...]]:
    return {dim: layout.columns(dim) for dim in ("register", "lane", "warp")}


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (
            lambda: coalesced((64,), 24, 1),
            "coalesced: bits is 24 and widest 128, expected powers of two, bits the smaller",
        ),
        (lambda: coalesced((64,), 32, 3), "coalesced: warps is 3, expected a power of two"),
        (lambda: coalesced((64,), 32, 1, copies=0), "coalesced: copies is 0, expected a power of two"),
        (lambda: coalesced((64,), 32, 1, contiguity=0), "coalesced: contiguity is 0, expected at least 1"),
        (lambda: coalesced((64,), 32, 1, order=(1,)), "coalesced: order (1,) is not a permutation of the 1 dimensions"),
        (
            lambda: coalesced((64,), 32, 1, alignment=2),
            "coalesced: alignment is 2, expected a multiple of an element's 32 bits",
        ),
        (lambda: coalesced((48,), 32, 1), "dim0 of shape (48,) is 48, expected a power of two"),
    ],
)
def test_what_coalesced_refuses(fails: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        fails()
    assert str(caught.value) == message


@st.composite
def layouts(draw: st.DrawFn) -> LinearLayout:
    """Any columns: unit vectors, sums, copies."""
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    bits = sum(sizes)
    units = draw(st.permutations([1 << i for i in range(bits)]))
    plain = draw(st.booleans())

    def columns(count: int) -> tuple[int, ...]:
        return tuple(
            units.pop() if units and (plain or draw(st.booleans())) else draw(st.integers(0, (1 << bits) - 1))
            for _ in range(count)
        )

    dims = {dim: columns(draw(st.integers(0, 4))) for dim in draw(st.permutations(["register", "lane", "warp"]))}
    return LinearLayout.from_columns(dims, tuple((f"dim{axis}", size) for axis, size in enumerate(sizes)))


def strides_of(layout: LinearLayout, order: list[int], gap: int) -> list[int]:
    """Power-of-two strides, the first dimension of ``order`` fastest, the last one apart by ``gap``."""
    strides = [0] * len(layout.shape)
    step = 1
    for place, axis in enumerate(order):
        strides[axis] = step << (gap if place == len(order) - 1 else 0)
        step *= layout.shape[axis]
    return strides


def addresses(layout: LinearLayout, strides: list[int]) -> list[list[list[int]]]:
    """The address of each register, by warp, lane, register: the sum of coordinates times strides."""

    def address(register: int, lane: int, warp: int) -> int:
        element = layout.apply({"register": register, "lane": lane, "warp": warp})
        return sum(c * s for c, s in zip(element.values(), strides, strict=True))

    return [
        [[address(r, t, w) for r in range(layout.in_size("register"))] for t in range(layout.in_size("lane"))]
        for w in range(layout.in_size("warp"))
    ]


@given(layouts(), st.data())
@examples(200)
def test_widths_and_sectors_are_what_addresses_say(layout: LinearLayout, data: st.DataObject) -> None:
    strides = strides_of(layout, data.draw(st.permutations(range(len(layout.shape)))), data.draw(st.integers(0, 2)))
    bits, alignment = data.draw(st.sampled_from([(8, 16), (8, 4), (16, 2), (32, 48), (64, 8), (128, 16)]))
    warps = addresses(layout, strides)
    distinct = sorted(set(warps[0][0]))
    limit = min(128, (alignment & -alignment) * 8) // bits

    def fits(size: int) -> list[list[int]] | None:
        """The registers of each vector, if the same ones make whole aligned vectors everywhere."""
        first = {address: register for register, address in reversed(list(enumerate(warps[0][0])))}
        groups = [[first.get(a + i, -1) for i in range(size)] for a in distinct if a % size == 0]
        if len(groups) * size != len(distinct) or any(-1 in group for group in groups):
            return None
        for thread in itertools.chain.from_iterable(warps):
            for group in groups:
                start = thread[group[0]]
                if start % size or [thread[register] for register in group] != list(range(start, start + size)):
                    return None
        return groups

    sizes = [size for size in (1, 2, 4, 8, 16) if size <= limit and fits(size)]
    assert vector_bits(layout, bits, alignment, strides) == max(sizes) * bits

    size = data.draw(st.sampled_from([size for size in (1, 2, 4, 8, 16) if size * bits <= 128 and fits(size)]))
    groups = fits(size)
    assert groups
    cost = coalescing(layout, bits, size, strides)
    assert cost.requests == len(groups) * len(warps)
    assert cost.vector_bits == size * bits
    for lanes in warps:
        for group in groups:
            starts = {thread[group[0]] * bits // 8 for thread in lanes}
            assert (
                len({byte // 32 for start in starts for byte in range(start, start + size * bits // 8)}) == cost.sectors
            )
            assert (
                len({byte // 128 for start in starts for byte in range(start, start + size * bits // 8)}) == cost.lines
            )
            assert cost.ideal == math.ceil(len(starts) * size * bits / 256)
            assert cost.efficiency == cost.ideal / cost.sectors <= 1


@given(layouts())
@examples(100)
def test_contiguity_is_by_register_number(layout: LinearLayout) -> None:
    """In every thread registers 0 to u-1 hold consecutive elements, and not twice as many."""
    strides = strides_of(layout, list(reversed(range(len(layout.shape)))), 0)

    def holds(size: int) -> bool:
        return size <= layout.in_size("register") and all(
            thread[0] % size == 0 and thread[:size] == list(range(thread[0], thread[0] + size))
            for thread in itertools.chain.from_iterable(addresses(layout, strides))
        )

    size = contiguity(layout)
    assert holds(size)
    assert not holds(2 * size)


@given(layouts())
@examples(100)
def test_first_copies_hold_each_element_once(layout: LinearLayout) -> None:
    masks = copies(layout)
    everything: list[int] = []
    firsts: list[int] = []
    for indices in itertools.product(*(range(layout.in_size(dim)) for dim in layout.in_dims)):
        element = layout.flat(**dict(zip(layout.in_dims, indices, strict=True)))
        everything.append(element)
        if not any(index & masks[dim] for dim, index in zip(layout.in_dims, indices, strict=True)):
            firsts.append(element)
    assert len(set(firsts)) == len(firsts)
    assert set(firsts) == set(everything)
    held = {layout.flat(register=r) for r in range(layout.in_size("register"))}
    assert elements_per_thread(layout) == layout.in_size("register")
    assert (
        elements_per_thread(layout, distinct=True)
        == len(held)
        == layout.in_size("register") >> masks["register"].bit_count()
    )
    # Lanes that hold what lane 0 does.
    same = [t for t in range(layout.in_size("lane")) if layout.flat(lane=t) in held]
    assert len(same) == 1 << masks["lane"].bit_count()


def test_copies_by_hand() -> None:
    # 8 elements by 16 lanes: the upper lane bit is a copy. The warps hold halves of the slice's rows.
    assert copies(blocked((8,), (1,), (16,), (2,), (0,))) == {"register": 0, "lane": 8, "warp": 1}
    assert copies(sliced(blocked((4, 8), (1, 2), (2, 4), (2, 1), (1, 0)), 1)) == {"register": 0, "lane": 3, "warp": 0}
    # No column is zero, but lane bit 1 is the sum of the register and lane bit 0.
    mixed = LinearLayout.parse("{register: [1], lane: [2,3], warp: [4]} -> [dim0: 8]")
    assert copies(mixed) == {"register": 0, "lane": 2, "warp": 0}
    # Order of listing does not matter: registers come first.
    assert copies(LinearLayout.parse("{lane: [1], register: [1]} -> [dim0: 2]")) == {"lane": 1, "register": 0}
    assert copies(LinearLayout({}, {})) == {}


def test_coalescing_by_hand() -> None:
    # float32, a row of 128 by 32 lanes of 4: 512 bytes, 16 sectors in 4 lines, all of them wanted.
    rows = blocked((4, 128), (1, 4), (1, 32), (1, 1), (1, 0))
    cost = coalescing(rows, 32)
    assert (cost.vector_bits, cost.requests, cost.sectors, cost.ideal, cost.lines) == (128, 4, 16, 16, 4)
    # The same, one word at a time: lanes are 16 bytes apart, 2 of them in a sector, of which a request wants 8 bytes.
    cost = coalescing(rows, 32, vector=1)
    assert (cost.requests, cost.sectors, cost.ideal, cost.lines, cost.efficiency) == (16, 16, 4, 4, 0.25)
    # A column: each lane in its own sector and line.
    cost = coalescing(blocked((32, 128), (1, 1), (32, 1), (1, 1), (1, 0)), 32, vector=1)
    assert (cost.requests, cost.sectors, cost.ideal, cost.lines) == (128, 32, 4, 32)
    # All lanes the same element.
    cost = coalescing(blocked((1,), (1,), (32,), (1,), (0,)), 8)
    assert (cost.requests, cost.sectors, cost.ideal, cost.efficiency) == (1, 1, 1, 1.0)


def test_large_tensors_are_not_enumerated() -> None:
    layout = blocked((1 << 12, 1 << 12), (1, 8), (4, 8), (4, 1), (1, 0))
    assert (contiguity(layout), vector_bits(layout, 16)) == (8, 128)
    # 2^24 elements of 4 warps * 32 lanes * 8 per instruction.
    assert coalescing(layout, 16).requests == (1 << 24) // (32 * 8)


def test_degenerate_layouts() -> None:
    nothing = LinearLayout({}, {})
    assert (contiguity(nothing), vector_bits(nothing, 32), elements_per_thread(nothing)) == (1, 32, 1)
    assert coalescing(nothing, 32).sectors == 1
    # A stride of 0: all rows are the same in memory.
    assert str(address_map(blocked((4, 2), (1, 2), (4, 1), (1, 1), (1, 0)), (0, 1))) == (
        "{register: [1], lane: [0,0], warp: []} -> [offset: 2]"
    )
    # Strides of dimensions of size 1 do not matter.
    assert contiguity(blocked((1, 4), (1, 4), (1, 1), (1, 1), (1, 0)), (3, 1)) == 4


ROWS = blocked((4, 8), (1, 8), (4, 1), (1, 1), (1, 0))
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: address_map(ROWS, (8,)), "address_map: strides (8,) has 1 entries, the shape has 2"),
    (lambda: contiguity(ROWS, (12, 1)), "address_map: the stride of dim0 is 12, expected a power of two or 0"),
    (lambda: contiguity(ROWS, (-8, 1)), "address_map: the stride of dim0 is -8, expected a power of two or 0"),
    (
        lambda: contiguity(ROWS, (4, 1)),
        "address_map: strides (4, 1) of shape (4, 8) make dim1 overlap another dimension, expected address bits of its own",
    ),
    (lambda: vector_bits(ROWS, 24), "vector_bits: bits is 24 and widest 128, expected powers of two, bits the smaller"),
    (
        lambda: vector_bits(ROWS, 256),
        "vector_bits: bits is 256 and widest 128, expected powers of two, bits the smaller",
    ),
    (lambda: vector_bits(ROWS, 32, 2), "vector_bits: alignment is 2, expected a multiple of an element's 32 bits"),
    (lambda: vector_bits(ROWS, 32, 0), "vector_bits: alignment is 0, expected a multiple of an element's 32 bits"),
    (lambda: coalescing(ROWS, 32, 8), "coalescing: vector is 8, expected a power of two up to 4 for this layout"),
    (lambda: coalescing(ROWS, 32, 3), "coalescing: vector is 3, expected a power of two up to 4 for this layout"),
]


@pytest.mark.parametrize(("ask", "message"), REFUSED)
def test_refusals(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        ask()
    assert str(error.value) == message
