"""Bank conflicts: ranks against simulated addresses on random layouts, Triton's counts entry by entry, cases by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    mma_swizzled,
    nvmma_shared,
    simulate_wavefronts,
    unswizzled,
    vector_size,
    vectors,
)

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "layout_memory" / "bank_conflicts.json").read_text()
)
ENTRIES: list[tuple[int, int, int, int, int, int]] = [tuple(entry) for entry in GOLDEN["entries"]]

LAYOUTS: list[LinearLayout] = [LinearLayout.parse(text) for text in GOLDEN["layouts"]]


def test_triton_counts_the_same_conflicts() -> None:
    """482 entries. In all but two, Triton's count is the brute-force one. The two are of 8-bit elements, one per access, in a
    memory that swizzles units of two: lanes that differ inside a word only by the swizzle are no different to the banks, which
    the hardware's rule sees and lemma 9.4 does not. There our count is the hardware's and our ``lemma`` is Triton's."""
    compared = differ = 0
    for register, memory, bits, vector_bits, triton, brute_force in ENTRIES:
        cost = bank_conflicts(LAYOUTS[register], LAYOUTS[memory], bits)
        assert cost.vector_bits == vector_bits
        assert cost.degree - 1 == brute_force
        assert cost.lemma - 1 == triton
        compared += 1
        differ += triton != brute_force
    assert (compared, differ) == (482, 2)


def test_simulation_of_tritons_entries() -> None:
    """All 482, from addresses."""
    for register, memory, bits, _, _, brute_force in ENTRIES:
        cost = bank_conflicts(LAYOUTS[register], LAYOUTS[memory], bits)
        simulated = simulate_wavefronts(LAYOUTS[register], LAYOUTS[memory], bits)
        assert simulated == cost.wavefronts == cost.bound * (brute_force + 1)


@st.composite
def accesses(draw: st.DrawFn) -> tuple[LinearLayout, LinearLayout]:
    """A layout with any columns (sums and copies too) and a memory with any basis, of one tensor."""
    bits = draw(st.integers(0, 9))
    lane_bits, warp_bits = draw(st.sampled_from([(5, 0), (5, 1), (6, 1), (3, 0), (0, 0)]))
    register_bits = draw(st.integers(0, 5))
    column = st.integers(0, (1 << bits) - 1)
    units = draw(st.permutations([1 << i for i in range(bits)]))

    def columns(count: int) -> tuple[int, ...]:
        return tuple(
            units.pop() if units and draw(st.booleans()) else draw(st.one_of(st.just(0), column)) for _ in range(count)
        )

    layout = LinearLayout.from_columns(
        {"register": columns(register_bits), "lane": columns(lane_bits), "warp": columns(warp_bits)},
        (("dim0", bits),),
    )
    # A random basis: a triangular matrix times a permutation.
    basis = [(1 << i) | (draw(column) & ~((2 << i) - 1)) for i in range(bits)]
    memory = LinearLayout.from_columns({"offset": tuple(draw(st.permutations(basis)))}, (("dim0", bits),))
    return layout, memory


@given(accesses(), st.sampled_from([8, 16, 32, 64, 128]), st.data())
@examples(300)
def test_ranks_count_what_addresses_do(
    layouts: tuple[LinearLayout, LinearLayout], bits: int, data: st.DataObject
) -> None:
    distributed, memory = layouts
    banks = data.draw(st.sampled_from([Banks(), Banks(count=64), Banks(count=4, widest=64), Banks(count=4, bits=64)]))
    bits = min(bits, banks.widest)
    widest = vector_size(access_map(distributed, memory), banks.widest // bits)
    vector = data.draw(st.sampled_from([1 << i for i in range(widest.bit_length())]))
    cost = bank_conflicts(distributed, memory, bits, vector, banks)
    assert cost.wavefronts == simulate_wavefronts(distributed, memory, bits, vector, banks)
    assert cost.lemma <= cost.degree
    if cost.vector_bits >= banks.bits:
        assert cost.lemma == cost.degree


@given(accesses())
@examples(100)
def test_vectors_are_whole_and_disjoint(layouts: tuple[LinearLayout, LinearLayout]) -> None:
    """Over all instructions a thread's distinct offsets appear once each, and each instruction's are one aligned vector."""
    access = access_map(*layouts)
    size = vector_size(access, 16)
    split = vectors(access, size)
    seen: list[int] = []
    for registers in split.registers():
        offsets = [access.flat(register=register) for register in registers]
        assert sorted(offsets) == list(range(min(offsets), min(offsets) + size))
        assert min(offsets) % size == 0
        seen += offsets
    assert sorted(seen) == sorted({access.flat(register=r) for r in range(access.in_size("register"))})


def test_the_modules_example() -> None:
    """Words of 64x64 float16, each lane in its own row of 128 bytes. Unswizzled all are in one bank. The 128-byte swizzle moves
    row r by 16 bytes * (r mod 8), to 8 different banks: four rows share each. Words need all 5 bank bits swizzled."""
    column = blocked((64, 64), (1, 2), (32, 1), (1, 1), (0, 1))
    assert bank_conflicts(column, unswizzled((64, 64)), 16, vector=2).degree == 32
    assert bank_conflicts(column, nvmma_shared((64, 64), 128, 16), 16, vector=2).degree == 4
    assert bank_conflicts(column, mma_swizzled((64, 64), 2, 1, 32), 16, vector=2).degree == 1


def test_a_row_of_wide_vectors() -> None:
    """64x64 float16, 8 lanes to a row, 8 elements each: 4096 / (32 * 8) = 16 instructions of 128 bits, in 4 phases of 8 lanes,
    each a row of 128 bytes: no conflict. As 32-bit words: 64 instructions of one phase; a lane's words are 16 bytes apart, so 32
    lanes are in 8 banks, 4 each."""
    rows = blocked((64, 64), (1, 8), (4, 8), (1, 1), (1, 0))
    wide = bank_conflicts(rows, unswizzled((64, 64)), 16)
    assert (wide.vector, wide.requests, wide.phases, wide.degree, wide.wavefronts) == (8, 16, 4, 1, 64)
    assert (wide.vector_bits, wide.per_request, wide.bound, wide.excess) == (128, 4, 64, 0)
    narrow = bank_conflicts(rows, unswizzled((64, 64)), 16, vector=2)
    assert (narrow.vector, narrow.requests, narrow.phases, narrow.degree, narrow.wavefronts) == (2, 64, 1, 4, 256)
    assert narrow.excess == 192


def test_broadcast_and_bytes_of_one_word_cost_nothing() -> None:
    one = LinearLayout.parse("{register: [], lane: [0,0,0,0,0]} -> [dim0: 1]")
    assert bank_conflicts(one, unswizzled((1,)), 32).wavefronts == 1
    # 32 bytes of a row: 8 words in 8 banks.
    assert bank_conflicts(blocked((32,), (1,), (32,), (1,), (0,)), unswizzled((32,)), 8).wavefronts == 1


def test_degenerate_layouts() -> None:
    nothing = LinearLayout({}, {})
    cost = bank_conflicts(nothing, unswizzled(()), 32)
    assert (
        (cost.vector, cost.requests, cost.wavefronts)
        == (1, 1, 1)
        == (1, 1, simulate_wavefronts(nothing, unswizzled(()), 32))
    )
    # One lane with everything: vectors of 4 words, one phase each.
    one_lane = LinearLayout.parse("{register: [1,2,4], lane: []} -> [dim0: 8]")
    cost = bank_conflicts(one_lane, unswizzled((8,)), 32)
    assert (cost.vector, cost.requests, cost.wavefronts) == (4, 2, 2)
    # Duplicate registers are accessed once.
    copies = LinearLayout.parse("{register: [1,0,2,3], lane: []} -> [dim0: 4]")
    assert bank_conflicts(copies, unswizzled((4,)), 32).requests == 1
    assert simulate_wavefronts(copies, unswizzled((4,)), 32) == 1


def test_memory_may_be_split_and_padded() -> None:
    """Elements after padding keep their places: fp4 pairs in 8 bytes of every 16."""
    memory = nvmma_shared((8, 64), 128, 8, fp4_padded=True, cga_layout=())
    rows = blocked((8, 64), (1, 8), (4, 8), (1, 1), (1, 0))
    access = access_map(rows, memory)
    # Column 8 is offset 16; row 1 is offset 128 and its unit 1, so element (1, 0) is at 128 + 16.
    assert access.flat(lane=1) == 16
    assert access.flat(lane=8) == 144
    # 64-bit vectors; a phase is 16 lanes, two rows of 8 units in the same 8 unit places of 16 bytes: half of the banks.
    assert bank_conflicts(rows, memory, 8).degree == 2
    assert simulate_wavefronts(rows, memory, 8) == bank_conflicts(rows, memory, 8).wavefronts


LINE = unswizzled((64,))
WARP = blocked((64,), (2,), (32,), (1,), (0,))
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Banks(count=3), "Banks: count is 3, expected a power of two"),
    (lambda: Banks(count=2), "Banks: widest is 128, expected at most what all banks serve, 64"),
    (lambda: bank_conflicts(WARP, LINE, 4), "bank_conflicts: bits is 4, expected a power of two from 8 to 128"),
    (lambda: bank_conflicts(WARP, LINE, 24), "bank_conflicts: bits is 24, expected a power of two from 8 to 128"),
    (
        lambda: bank_conflicts(WARP, LINE, 16, vector=4),
        "bank_conflicts: vector is 4, expected a power of two up to 2 for these layouts",
    ),
    (
        lambda: simulate_wavefronts(WARP, LINE, 16, vector=3),
        "simulate_wavefronts: vector is 3, expected a power of two up to 2 for these layouts",
    ),
    (
        lambda: bank_conflicts(WARP, unswizzled((32,)), 16),
        "access_map: the layouts are of different tensors, {register: [1], lane: [2,4,8,16,32], warp: []} -> [dim0: 64] and "
        "{offset: [1,2,4,8,16]} -> [dim0: 32]",
    ),
    (
        lambda: bank_conflicts(WARP, unswizzled((64,), cga_layout=[(1,)]), 16),
        "access_map: basis 4 of lane is element (32,), which no offset of memory holds",
    ),
    (
        lambda: vectors(access_map(WARP, LINE), 4),
        "vectors: size is 4, but the registers of a thread do not fill vectors of more than 2 elements",
    ),
]


@pytest.mark.parametrize(("ask", "message"), REFUSED)
def test_refusals(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        ask()
    assert str(error.value) == message
