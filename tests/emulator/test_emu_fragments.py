"""Fragments against the formulas of the PTX ISA, instruction by instruction, and against Triton's layouts of mma's operands."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_isa import BITS, LEFT, RIGHT, VOLTA, Formula, accumulator, sizes, volta_matrix
from weft.emulator.arith import fragments
from weft.emulator.arith.fragments import SPARSITY, Fragment, metadata_place, ordered, runs, unpack
from weft.layout.families.nvidia import nvidia_mma, nvidia_mma_operand


def check(fragment: Fragment, elements: int, formula: Formula) -> None:
    """Every lane's elements are where the formula says, and each of the matrix is somewhere, once."""
    assert fragment.elements == elements
    cells = {(lane, i): formula(lane, i) for lane in range(32) for i in range(elements)}
    for (lane, i), cell in cells.items():
        assert (int(fragment.row[lane, i]), int(fragment.column[lane, i])) == cell, (lane, i)
    assert sorted(cells.values()) == [(r, c) for r in range(fragment.rows) for c in range(fragment.columns)]


@pytest.mark.parametrize(("shape", "kind"), LEFT)
def test_left_operand(shape: str, kind: str) -> None:
    m, _, k = sizes(shape)
    check(fragments.left(m, k, BITS[kind]), *LEFT[shape, kind])


@pytest.mark.parametrize(("shape", "kind"), RIGHT)
def test_right_operand(shape: str, kind: str) -> None:
    _, n, k = sizes(shape)
    check(fragments.right(k, n, BITS[kind]), *RIGHT[shape, kind])


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k16"])
def test_accumulators(shape: str, bits: int) -> None:
    m, n, _ = sizes(shape)
    check(fragments.accumulator(m, n, bits), *accumulator(shape))


# ---- m8n8k4 with f16 (9.7.14.5.1) --------------------------------------------------------------------------------------

VOLTA_FRAGMENTS = {
    "A row": fragments.volta_left("row"),
    "A col": fragments.volta_left("col"),
    "B row": fragments.volta_right("row"),
    "B col": fragments.volta_right("col"),
    "C f16": fragments.volta_accumulator(16),
    "C f32": fragments.volta_accumulator(32),
}


@pytest.mark.parametrize("which", VOLTA)
def test_volta(which: str) -> None:
    fragment, (elements, formula) = VOLTA_FRAGMENTS[which], VOLTA[which]
    assert fragment.elements == elements
    cells = [(volta_matrix(lane), *formula(lane, i)) for lane in range(32) for i in range(elements)]
    found = np.stack((fragment.matrix, fragment.row, fragment.column), axis=-1).reshape(-1, 3)
    assert [tuple(cell) for cell in found.tolist()] == cells
    everything = [(m, r, c) for m in range(4) for r in range(fragment.rows) for c in range(fragment.columns)]
    assert sorted(cells) == everything


# ---- Triton's layouts as a second oracle ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "bits", "k_width"), [(8, 32, 1), (16, 16, 2), (32, 8, 4)])
def test_triton_agrees(k: int, bits: int, k_width: int) -> None:
    for index, fragment in ((0, fragments.left(16, k, bits)), (1, fragments.right(k, 8, bits))):
        layout = nvidia_mma_operand((fragment.rows, fragment.columns), index, k_width, 2, (1, 1), (16, 8))
        for lane in range(32):
            for i in range(fragment.elements):
                place = layout.apply({"register": i, "lane": lane, "warp": 0})
                assert (place["dim0"], place["dim1"]) == (fragment.row[lane, i], fragment.column[lane, i])
    result, fragment = nvidia_mma((16, 8), 2, (1, 1), (16, 8)), fragments.accumulator(16, 8, 32)
    for lane in range(32):
        for i in range(4):
            place = result.apply({"register": i, "lane": lane, "warp": 0})
            assert (place["dim0"], place["dim1"]) == (fragment.row[lane, i], fragment.column[lane, i])


# ---- wmma: any permutation does, in as many registers as the ISA says -----------------------------------------------------

# 9.7.14.4.1: shape, bits of an element, registers of A and of B. f16 always has eight.
WMMA_REGISTERS = [
    ((16, 16, 16), 16, 8, 8, 8),
    ((8, 32, 16), 16, 8, 8, 8),
    ((32, 8, 16), 16, 8, 8, 8),
    ((16, 16, 16), 16, 0, 4, 4),
    ((8, 32, 16), 16, 0, 2, 8),
    ((32, 8, 16), 16, 0, 8, 2),
    ((16, 16, 8), 32, 0, 4, 4),
    ((8, 8, 4), 64, 0, 1, 1),
    ((16, 16, 16), 8, 0, 2, 2),
    ((8, 32, 16), 8, 0, 1, 4),
    ((32, 8, 16), 8, 0, 4, 1),
    ((8, 8, 32), 4, 0, 1, 1),
    ((8, 8, 128), 1, 0, 1, 1),
]


@pytest.mark.parametrize(("shape", "bits", "least", "left", "right"), WMMA_REGISTERS)
def test_wmma_registers(shape: tuple[int, int, int], bits: int, least: int, left: int, right: int) -> None:
    m, n, k = shape
    for fragment, count in ((fragments.left(m, k, bits, least), left), (fragments.right(k, n, bits, least), right)):
        assert fragment.registers == count
        copies = fragment.slots // (fragment.rows * fragment.columns)
        cells = list(zip(fragment.row.ravel().tolist(), fragment.column.ravel().tolist(), strict=True))
        assert sorted(cells) == sorted([(r, c) for r in range(fragment.rows) for c in range(fragment.columns)] * copies)


def test_wmma_copies_are_of_whole_registers() -> None:
    fragment = fragments.left(8, 16, 16, 8)  # 8 x 16 of f16 needs two registers of the eight
    for i in range(16):
        np.testing.assert_array_equal(fragment.row[:, i], fragment.row[:, i % 4])
        np.testing.assert_array_equal(fragment.column[:, i], fragment.column[:, i % 4])
    assert fragment.gather().max() < 2 * 32 * 2  # the first copy counts: slots of registers 0 and 1


@pytest.mark.parametrize(("m", "n"), [(16, 16), (8, 32), (32, 8)])
def test_wmma_accumulators(m: int, n: int) -> None:
    fragment = fragments.accumulator(m, n, 32)
    assert fragment.registers == 8
    cells = set(zip(fragment.row.ravel().tolist(), fragment.column.ravel().tolist(), strict=True))
    assert cells == {(r, c) for r in range(m) for c in range(n)}


# ---- registers and matrices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fragment",
    [
        fragments.left(16, 16, 16),
        fragments.right(32, 8, 8),
        fragments.accumulator(16, 8, 16),
        fragments.volta_left("col"),
        fragments.volta_accumulator(32),
        fragments.left(32, 16, 16, 8),
        fragments.left(16, 16, 64),
    ],
)
def test_gather_follows_rows_and_columns(fragment: Fragment) -> None:
    # A warp's slots numbered; element i of a lane is in register i // per, place i % per.
    per = fragment.width // fragment.bits
    gather = fragment.gather()
    seen: set[tuple[int, int, int]] = set()
    for i in range(fragment.elements):
        for lane in range(32):
            cell = (int(fragment.matrix[lane, i]), int(fragment.row[lane, i]), int(fragment.column[lane, i]))
            if cell not in seen:
                assert gather[cell] == (i // per * 32 + lane) * per + i % per
            seen.add(cell)
    assert len(seen) == gather.size


@pytest.mark.parametrize(
    ("index", "size", "expected", "width"),
    [
        ([8, 9, 10, 11, 0, 1, 2, 3], 4, [2, 0], 16),
        ([8, 9, 10, 11, 0, 1, 2, 3], 8, [4, 5, 0, 1], 16),
        ([8, 9, 2, 3, 4, 5, 0, 1], 4, [4, 1, 2, 0], 8),
        ([1, 2, 3, 4], 4, [1, 2, 3, 4], 4),  # together, but not aligned
        ([1, 0, 3, 2], 2, [1, 0, 3, 2], 2),  # aligned, but not ascending
        ([0, 1, 2], 4, [0, 1, 2], 4),  # no whole number of runs
        ([2, 3, 0, 1], 1, [1, 0], 2),
        ([1, 0], 16, [1, 0], 16),
    ],
)
def test_runs(index: list[int], size: int, expected: list[int], width: int) -> None:
    found, dtype = runs(np.array(index), size)
    assert (found.tolist(), dtype.itemsize) == (expected, width)


@pytest.mark.parametrize(("fragment", "bytes_"), [(fragments.left(16, 16, 16), 2), (fragments.left(16, 64, 4), 1)])
def test_rows_of_a_are_runs_of_sixteen_bytes(fragment: Fragment, bytes_: int) -> None:
    assert runs(fragment.gather(), bytes_)[1].itemsize == 16


def test_ordered_columns_of_accumulators_are_runs_of_sixteen_bytes() -> None:
    fragment = fragments.accumulator(16, 8, 32)
    assert runs(fragment.gather(), 4)[1].itemsize == 4
    index = ordered(fragment, fragment.gather(), 8)
    assert runs(index, 4)[1].itemsize == 16
    np.testing.assert_array_equal(index[0], fragment.gather()[0][:, [0, 2, 4, 6, 1, 3, 5, 7]])
    half = fragments.accumulator(16, 8, 16)
    np.testing.assert_array_equal(ordered(half, half.gather(), 8), half.gather())  # two to a register: as they are


def test_unpack() -> None:
    words = np.array([[[0x7654_3210, 0xFEDC_BA98]]], np.uint32)
    room = np.empty((1, 16), np.uint8)
    assert unpack(words, 4, room).tolist() == [list(range(16))]
    assert unpack(words, 8, room).tolist() == [[0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]]
    assert unpack(words, 16, room).tolist() == [[0x3210, 0x7654, 0xBA98, 0xFEDC]]


# ---- metadata -------------------------------------------------------------------------------------------------------------

# 9.7.14.6.1: which threads of four contribute. (contraction, bits of an element): how many.
CONTRIBUTING = {(16, 16): 1, (32, 16): 2, (8, 32): 1, (16, 32): 2, (32, 8): 2, (64, 8): 4, (64, 4): 2, (128, 4): 4}


@pytest.mark.parametrize(("contraction", "bits"), CONTRIBUTING)
def test_metadata_fills_the_threads_that_contribute(contraction: int, bits: int) -> None:
    thread, low, threads = metadata_place(contraction, bits)
    assert threads == CONTRIBUTING[contraction, bits]
    assert thread.shape == low.shape == (16, contraction // SPARSITY[bits].group)
    for row in range(8):
        # Rows g and g + 8 share the four threads of group g; their fields fill all 32 bits of each contributing thread.
        used = sorted((int(thread[r, c]), int(low[r, c])) for r in (row, row + 8) for c in range(thread.shape[1]))
        assert used == [(i, bit) for i in range(threads) for bit in range(0, 32, 4)]


def test_metadata_of_bytes_in_64_columns() -> None:
    # CUTLASS, SM120_SPARSE_16x8x64: ELayout ((2, 2, 8), 32) : ((8, 512, 1), 16) over (M16, K64), rows fastest:
    # bit 0 of the lane is worth 8 rows, bit 1 is worth 512 / 16 = 32 columns, the rest rows; a lane has 32 columns.
    thread, low, _ = metadata_place(64, 8)
    for lane in range(4):
        for column in range(0, 32, 4):
            row, where = 8 * (lane & 1), 32 * (lane >> 1) + column
            assert (thread[row, where // 4], low[row, where // 4]) == (lane, column)


def test_metadata_of_halves_in_32_columns() -> None:
    # CUTLASS's reorder_meta of 16-bit words (16 columns each), then interleaved by two columns, gives a lane's 32 bits: row m
    # goes to 4 (m mod 8) + m mod 32 div 8; in 2 x 2 blocks Z becomes N. So lane 4 g + k has word k of row g low, of g + 8 high.
    source = {(m, k): (m, k) for m in range(16) for k in range(2)}
    memory: dict[int, tuple[int, int]] = {}
    for (m, k), word in source.items():
        row, column = m % 8 * 4 + m % 32 // 8, k
        if row % 2 == 0 and column % 2 == 1:
            row, column = row + 1, column - 1
        elif row % 2 == 1 and column % 2 == 0:
            row, column = row - 1, column + 1
        memory[row * 2 + column] = word
    thread, low, _ = metadata_place(32, 16)
    for place, (m, k) in memory.items():
        lane, half = divmod(place, 2)
        for group in range(4):
            assert (4 * (m % 8) + thread[m, 4 * k + group], low[m, 4 * k + group]) == (lane, 16 * half + 4 * group)
