"""Optimal swizzles: wavefronts from simulated addresses against the bound, on random layouts and on worked examples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout import (
    Banks,
    LinearLayout,
    access_map,
    bank_conflicts,
    blocked,
    nvmma_shared,
    optimal_swizzle,
    simulate_wavefronts,
    unswizzled,
    vector_size,
    why_not_memory,
)
from weft.layout.algebra import f2


def simulated(accesses: Sequence[LinearLayout], bits: int, banks: Banks | None = None) -> list[int]:
    """What each access takes with the optimal memory, from addresses; also that the swizzle says the same."""
    machine = banks or Banks()
    swizzle = optimal_swizzle(*accesses, bits=bits, banks=machine)
    counted = [
        simulate_wavefronts(layout, swizzle.memory, bits, cost.vector, machine)
        for layout, cost in zip(accesses, swizzle.accesses, strict=True)
    ]
    assert counted == [cost.wavefronts for cost in swizzle.accesses]
    assert sum(counted) == swizzle.wavefronts == swizzle.least + swizzle.gap
    return counted


@st.composite
def accesses(draw: st.DrawFn, count: int, few_lanes: bool = False) -> list[LinearLayout]:
    """Distributed layouts of one tensor with 32 or 64 lanes, or fewer too, and some warps; every dimension may hold copies."""
    shape_bits = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    units = [
        tuple((1 << bit) if axis == other else 0 for other in range(len(shape_bits)))
        for axis, bits in enumerate(shape_bits)
        for bit in range(bits)
    ]
    layouts: list[LinearLayout] = []
    for _ in range(count):
        lane_bits, warp_bits = draw(st.sampled_from([(5, 0), (5, 2), (6, 1), *([(3, 0), (4, 1)] if few_lanes else [])]))
        register_bits = max(0, len(units) - lane_bits - warp_bits) + draw(st.integers(0, 3))
        zeros = [(0,) * len(shape_bits)] * max(0, register_bits + lane_bits + warp_bits - len(units))
        columns = draw(st.permutations(units + zeros))
        cuts = (register_bits, register_bits + lane_bits)
        layouts.append(
            LinearLayout(
                {"register": columns[: cuts[0]], "lane": columns[cuts[0] : cuts[1]], "warp": columns[cuts[1] :]},
                {f"dim{axis}": 1 << bits for axis, bits in enumerate(shape_bits)},
            )
        )
    return layouts


@given(accesses(2), st.sampled_from([8, 16, 32, 64, 128]))
@examples(150)
def test_two_accesses_never_conflict(layouts: list[LinearLayout], bits: int) -> None:
    """Lemma 9.6, from simulated addresses."""
    swizzle = optimal_swizzle(*layouts, bits=bits)
    assert simulated(layouts, bits) == [cost.bound for cost in swizzle.accesses]
    assert swizzle.gap == 0


@given(accesses(2), st.sampled_from([8, 16, 32]), st.sampled_from([32, 64]))
@examples(60)
def test_narrower_accesses_never_conflict_either(layouts: list[LinearLayout], bits: int, widest: int) -> None:
    swizzle = optimal_swizzle(*layouts, bits=bits, widest=widest)
    assert swizzle.gap == 0
    assert max(swizzle.vector_bits) <= widest
    for layout, cost in zip(layouts, swizzle.accesses, strict=True):
        assert simulate_wavefronts(layout, swizzle.memory, bits, cost.vector) == cost.bound


@given(st.integers(1, 4).flatmap(lambda count: accesses(count, few_lanes=True)), st.sampled_from([8, 32]))
@examples(40)
def test_any_number_of_accesses(layouts: list[LinearLayout], bits: int) -> None:
    """The counts are those of addresses; memory holds each element once."""
    simulated(layouts, bits)
    assert optimal_swizzle(*layouts, bits=bits).memory.is_invertible


@st.composite
def any_columns(draw: st.DrawFn) -> list[LinearLayout]:
    """Accesses that are not distributed: sums of unit vectors, parts of the tensor."""
    bits = draw(st.integers(1, 8))
    column = st.integers(0, (1 << bits) - 1)
    return [
        LinearLayout.from_columns(
            {
                dim: tuple(draw(st.lists(column, max_size=most)))
                for dim, most in (("register", 4), ("lane", 5), ("warp", 2))
            },
            (("dim0", bits),),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]


@given(any_columns(), st.sampled_from([8, 16, 64]))
@examples(100)
def test_any_columns(layouts: list[LinearLayout], bits: int) -> None:
    """Memory holds what the accesses reach, once, and the counts are those of addresses."""
    simulated(layouts, bits)
    memory = optimal_swizzle(*layouts, bits=bits).memory
    assert memory.is_injective
    assert memory.rank == f2.rank([column for layout in layouts for column in layout.all_columns])


TINY = Banks(count=2, bits=32, widest=64)


@st.composite
def tiny_accesses(draw: st.DrawFn) -> list[LinearLayout]:
    """Distributed layouts of 8 elements."""
    layouts: list[LinearLayout] = []
    for _ in range(draw(st.integers(1, 3))):
        cuts = sorted(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2)))
        columns = draw(st.permutations([1, 2, 4, 0]))
        if 0 in columns[: cuts[0]]:
            columns.remove(0)
        parts = {"register": columns[: cuts[0]], "lane": columns[cuts[0] : cuts[1]], "warp": columns[cuts[1] :]}
        layouts.append(LinearLayout.from_columns({dim: tuple(c) for dim, c in parts.items()}, (("dim0", 3),)))
    return layouts


@given(tiny_accesses(), st.sampled_from([16, 32, 64]))
@examples(60)
def test_no_memory_is_better(layouts: list[LinearLayout], bits: int) -> None:
    """All 168 memories of 8 elements, every vector width: none takes fewer wavefronts than ``least``, or, with one or two
    accesses, than the swizzle found."""

    def wavefronts(memory: LinearLayout) -> int:
        total = 0
        for layout in layouts:
            most = vector_size(access_map(layout, memory), TINY.widest // bits)
            widths = [1 << i for i in range(most.bit_length())]
            total += min(bank_conflicts(layout, memory, bits, width, TINY).wavefronts for width in widths)
        return total

    bases = [basis for basis in itertools.permutations(range(1, 8), 3) if f2.independent(basis)]
    assert len(bases) == 168
    fewest = min(wavefronts(LinearLayout.from_columns({"offset": basis}, (("dim0", 3),))) for basis in bases)
    swizzle = optimal_swizzle(*layouts, bits=bits, banks=TINY)
    assert swizzle.least <= fewest <= swizzle.wavefronts
    if len(layouts) < 3:
        assert swizzle.wavefronts == fewest


def test_half_a_warp_needs_wide_vectors_to_fill_the_banks() -> None:
    """Why two accesses need full warps for the promise. B's 16 warps have 16 lanes of 2 words: 16 wavefronts with vectors of 64
    bits, 32 with words. But the bit inside its vectors, 2, is in A's warps, and all other bits are in B's lanes and warps, so
    that A would see only every other bank: 8 warps * 2 phases * 2. Either way it is 48; the bound, 16 for each, cannot know."""
    a = LinearLayout.parse("{register: [], lane: [4,1,128,256,8,16], warp: [32,2,64]} -> [dim0: 512]")
    b = LinearLayout.parse("{register: [2], lane: [8,1,64,4], warp: [32,16,128,256]} -> [dim0: 512]")
    swizzle = optimal_swizzle(a, b, bits=32)
    assert simulated((a, b), 32) == [16, 32]
    assert (swizzle.least, swizzle.gap) == (32, 16)


def test_three_lines_of_a_plane() -> None:
    """2 banks of a word, 4 elements, 2 lanes. The index bit is one of three vectors; each is the lane of one access, which
    then has its 2 instructions take 2 wavefronts each. So 2 + 2 + 4 is the best, and the bound 6 cannot know."""
    texts = [f"{{register: [{r}], lane: [{lane}]}} -> [dim0: 4]" for r, lane in ((2, 1), (1, 2), (1, 3))]
    swizzle = optimal_swizzle(*map(LinearLayout.parse, texts), bits=32, banks=Banks(2, 32, 32))
    assert sorted(cost.wavefronts for cost in swizzle.accesses) == [2, 2, 4]
    assert (swizzle.wavefronts, swizzle.least, swizzle.gap) == (8, 6, 2)
    assert swizzle.reason == (
        "the accesses take 2 of 32 bits, 2 of 32 bits, 4 of 32 bits, 8 together; no layout takes fewer than 6"
    )


def test_a_transpose_of_halves() -> None:
    """The module's example: the store keeps 128 bits though the load has none of its registers."""
    a = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))
    b = blocked((64, 64), (8, 1), (8, 4), (1, 4), (0, 1))
    # A: 4096 elements / 128 threads = 32 registers = 4 vectors of 128 bits; 4 warps * 4 vectors * 4 phases = 64.
    # B: 32 registers one by one; 4 warps * 32 = 128, each instruction a single phase of 32 halves.
    assert simulated((a, b), 16) == [64, 128]
    swizzle = optimal_swizzle(a, b, bits=16)
    # A's vectors are of two rows: B's lanes run along all three bits, so they leave B all banks.
    assert str(swizzle.memory) == (
        "{offset: [(0,1),(0,2),(16,0),(0,8),(0,16),(0,32),(0,4),(1,0),(2,0),(4,0),(8,8),(32,16)]} -> [dim0: 64, dim1: 64]"
    )
    assert swizzle.vector_bits == (128, 16)
    assert (swizzle.requests, swizzle.wavefronts, swizzle.least) == (16 + 128, 192, 192)
    assert swizzle.reason == (
        "optimal: the accesses take 64 of 128 bits, 128 of 16 bits; without conflicts, at the widest vectors that any layout "
        "gives them, they take 192 together"
    )


def test_bytes_are_stored_as_words() -> None:
    """64x64 float8: the paper's vectors (none in common) store and load bytes, 4 warps * 32 instructions each. Here the store
    is of 16 bytes: 8 instructions (2 per warp) of 4 phases."""
    a = blocked((64, 64), (1, 16), (8, 4), (4, 1), (1, 0))
    b = blocked((64, 64), (16, 1), (4, 8), (1, 4), (0, 1))
    assert simulated((a, b), 8) == [32, 128]
    assert optimal_swizzle(a, b, bits=8).vector_bits == (128, 8)


def test_equal_accesses_need_no_swizzle() -> None:
    rows = blocked((8, 8), (1, 4), (4, 2), (2, 1), (1, 0))
    swizzle = optimal_swizzle(rows, rows, bits=32)
    assert str(swizzle.memory) == "{offset: [(0,1),(0,2),(0,4),(1,0),(2,0),(4,0)]} -> [dim0: 8, dim1: 8]"
    assert swizzle.vector_bits == (128, 128)


def test_a_transpose_through_ldmatrix() -> None:
    """ldmatrix reads 8 rows of 16 bytes at a time, one from each of 8 lanes' addresses: an access of 128-bit vectors. Rows of 64
    halves are 128 bytes apart, all in the same banks if unswizzled."""
    store = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))
    rows = LinearLayout.parse(
        "{register: [(0,1),(0,2),(0,4),(0,16),(0,32)], lane: [(1,0),(2,0),(4,0),(8,0),(0,8)], warp: [(16,0),(32,0)]}"
        "-> [dim0: 64, dim1: 64]"
    )
    assert bank_conflicts(rows, unswizzled((64, 64)), 16).degree == 8
    assert bank_conflicts(rows, nvmma_shared((64, 64), 128, 16), 16).degree == 1
    swizzle = optimal_swizzle(store, rows, bits=16)
    assert swizzle.vector_bits == (128, 128)
    assert simulated((store, rows), 16) == [64, 64]
    assert why_not_memory(swizzle.memory) is None


def test_memory_is_of_what_the_accesses_reach() -> None:
    """A round of a conversion that moves the even columns only."""
    a = LinearLayout.parse("{register: [(0,2)], lane: [(1,0),(2,0)]} -> [dim0: 4, dim1: 4]")
    b = LinearLayout.parse("{register: [(1,0)], lane: [(0,2),(2,0)]} -> [dim0: 4, dim1: 4]")
    swizzle = optimal_swizzle(a, b, bits=32)
    assert str(swizzle.memory) == "{offset: [(0,2),(1,0),(2,0)]} -> [dim0: 4, dim1: 4]"
    # One instruction of two words per lane, and two of one word.
    assert simulated((a, b), 32) == [1, 2]


def test_blocks_have_parts_of_their_own() -> None:
    text = "{{register: [{}], lane: [{}], block: [4]}} -> [dim0: 8]"
    accesses_of_halves = [LinearLayout.parse(text.format(*columns)) for columns in ((1, 2), (2, 1))]
    swizzle = optimal_swizzle(*accesses_of_halves, bits=32)
    assert str(swizzle.memory) == "{offset: [1,2], block: [4]} -> [dim0: 8]"
    assert swizzle.memory.is_invertible


def test_degenerate_accesses() -> None:
    nothing = LinearLayout({}, {})
    swizzle = optimal_swizzle(nothing, bits=32)
    assert str(swizzle.memory) == "{offset: []} -> []"
    assert (swizzle.wavefronts, swizzle.gap) == (1, 0)
    copies = LinearLayout.parse("{register: [], lane: [0,0,0,0,0], warp: [0]} -> [dim0: 1]")
    assert optimal_swizzle(copies, copies, bits=8).wavefronts == 4
    one_lane = LinearLayout.parse("{register: [1,2,4], lane: []} -> [dim0: 8]")
    assert optimal_swizzle(one_lane, one_lane, bits=64).vector_bits == (128, 128)


def test_large_tensors_are_not_enumerated() -> None:
    size = 1 << 12
    a = blocked((size, size), (1, 8), (4, 8), (4, 1), (1, 0))
    b = blocked((size, size), (8, 1), (8, 4), (1, 4), (0, 1))
    swizzle = optimal_swizzle(a, b, bits=32)
    # 2^24 words of which 32 move per wavefront, twice.
    assert swizzle.wavefronts == 2 * (1 << 24) // 32


ROWS = blocked((4, 8), (1, 8), (4, 1), (1, 1), (1, 0))
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: optimal_swizzle(bits=16), "optimal_swizzle: got no accesses, expected at least one layout"),
    (
        lambda: optimal_swizzle(ROWS, unswizzled((4, 8)), bits=16),
        "optimal_swizzle: access 1 has input dimension offset, expected register, lane, warp and block",
    ),
    (
        lambda: optimal_swizzle(ROWS, LinearLayout.parse("{register: [1]} -> [dim0: 2]"), bits=16),
        "optimal_swizzle: access 1 is of another tensor than access 0, {register: [1]} -> [dim0: 2] and "
        "{register: [(0,1),(0,2),(0,4)], lane: [(1,0),(2,0)], warp: []} -> [dim0: 4, dim1: 8]",
    ),
    (
        lambda: optimal_swizzle(
            LinearLayout.parse("{lane: [1], block: [2]} -> [dim0: 4]"),
            LinearLayout.parse("{lane: [1,2]} -> [dim0: 4]"),
            bits=16,
        ),
        "optimal_swizzle: access 1 is split among blocks in another way than access 0, "
        "{lane: [1,2]} -> [dim0: 4] and {lane: [1], block: [2]} -> [dim0: 4]",
    ),
    (lambda: optimal_swizzle(ROWS, bits=4), "optimal_swizzle: bits is 4, expected a power of two from 8 to 128"),
    (
        lambda: optimal_swizzle(ROWS, bits=32, widest=16),
        "optimal_swizzle: widest is 16, expected a power of two from 32 to 128",
    ),
    (
        lambda: optimal_swizzle(ROWS, bits=32, widest=96),
        "optimal_swizzle: widest is 96, expected a power of two from 32 to 128",
    ),
    (
        lambda: optimal_swizzle(ROWS, bits=32, widest=256),
        "optimal_swizzle: widest is 256, expected a power of two from 32 to 128",
    ),
]


@pytest.mark.parametrize(("ask", "message"), REFUSED)
def test_refusals(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        ask()
    assert str(error.value) == message
