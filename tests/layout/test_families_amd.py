"""AMD's fragments against the per-lane formulas of the instruction set guides, written out; refusals word for word.

``t`` is the lane, ``r`` the register (element of the fragment); each formula gives (row, column). Sources: CDNA3 ISA guide,
chapter 7, and AMD's Matrix Instruction Calculator for MFMA, the RDNA3 and RDNA4 ISA guides for WMMA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from weft.layout import (
    LinearLayout,
    amd_mfma,
    amd_mfma_operand,
    amd_wmma,
    amd_wmma_operand,
    trans,
    why_not_distributed,
)

Formula: TypeAlias = Callable[[int, int], tuple[int, int]]


def check_fragment(layout: LinearLayout, lanes: int, count: int, formula: Formula) -> None:
    """All ``count`` registers of all lanes, and no more of either."""
    assert (layout.in_size("register"), layout.in_size("lane")) == (count, lanes)
    for lane in range(lanes):
        for register in range(count):
            assert layout.unflatten(layout.flat(register=register, lane=lane)) == formula(lane, register), (
                lane,
                register,
            )


MFMA_RESULTS: list[tuple[tuple[int, int, int], int, int, Formula]] = [
    # v_mfma_f32_32x32x8_f16: four rows at a time, then the other half of the lanes, then 8 rows on.
    ((32, 32, 8), 32, 16, lambda t, r: (8 * (r // 4) + 4 * (t // 32) + r % 4, t % 32)),
    ((32, 32, 16), 32, 16, lambda t, r: (8 * (r // 4) + 4 * (t // 32) + r % 4, t % 32)),
    # v_mfma_f32_16x16x16_f16
    ((16, 16, 16), 32, 4, lambda t, r: (4 * (t // 16) + r, t % 16)),
    ((16, 16, 128), 32, 4, lambda t, r: (4 * (t // 16) + r, t % 16)),
    # v_mfma_f64_16x16x4_f64
    ((16, 16, 4), 64, 4, lambda t, r: (4 * r + t // 16, t % 16)),
    # v_mfma_f32_4x4x4_16b_f16: 16 blocks of 4x4 side by side, lane = 4 * block + column
    ((4, 64, 4), 32, 4, lambda t, r: (r, 4 * (t // 4) + t % 4)),
]


@pytest.mark.parametrize(("instruction", "bitwidth", "count", "formula"), MFMA_RESULTS)
def test_mfma_results(instruction: tuple[int, int, int], bitwidth: int, count: int, formula: Formula) -> None:
    layout = amd_mfma(instruction[:2], 3, (1, 1), instruction, False, element_bitwidth=bitwidth)
    check_fragment(layout, 64, count, formula)
    # Transposed is what the instruction gives for the transposed product, of N x M.
    n_by_m = (instruction[1], instruction[0], instruction[2])
    # (4x64 transposed is another instruction, see below.)
    if n_by_m[0] == 64 or n_by_m[0] == n_by_m[1]:
        mirrored = amd_mfma(n_by_m[:2], 3, (1, 1), n_by_m, True, element_bitwidth=bitwidth)
        assert trans(mirrored, (1, 0)) == layout


def test_mfma_4x64_transposed_is_its_own_instruction() -> None:
    """The 16 blocks are those of N: lane = 4 * block + row, a lane has the 4 columns of its block."""
    layout = amd_mfma((4, 64), 3, (1, 1), (4, 64, 4), True)
    check_fragment(layout, 64, 4, lambda t, r: (t % 4, 4 * (t // 4) + r))


MFMA_LEFT: list[tuple[tuple[int, int, int], int, Formula]] = [
    # i = lane mod M, k = k_width * (lane div M) + element
    ((32, 32, 8), 4, lambda t, r: (t % 32, 4 * (t // 32) + r)),
    ((32, 32, 16), 8, lambda t, r: (t % 32, 8 * (t // 32) + r)),
    ((16, 16, 16), 4, lambda t, r: (t % 16, 4 * (t // 16) + r)),
    ((16, 16, 32), 8, lambda t, r: (t % 16, 8 * (t // 16) + r)),
    ((16, 16, 4), 1, lambda t, r: (t % 16, t // 16)),
]


@pytest.mark.parametrize(("instruction", "k_width", "left"), MFMA_LEFT)
def test_mfma_operands(instruction: tuple[int, int, int], k_width: int, left: Formula) -> None:
    m, _, k = instruction
    layout = amd_mfma_operand((m, k), 0, k_width, 3, (1, 1), instruction, False)
    check_fragment(layout, 64, m * k // 64, left)
    # The right operand is the mirror image, and both are the same for a transposed result.
    right = amd_mfma_operand((k, m), 1, k_width, 3, (1, 1), instruction, False)
    assert trans(right, (1, 0)) == layout
    assert amd_mfma_operand((m, k), 0, k_width, 3, (1, 1), instruction, True) == layout


WMMA_RESULTS: list[tuple[int, Formula]] = [
    # RDNA3 alternates rows between the halves of the wave; RDNA4 gives each half 8 rows.
    (1, lambda t, r: (2 * r + t // 16, t % 16)),
    (2, lambda t, r: (8 * (t // 16) + r, t % 16)),
    (3, lambda t, r: (8 * (t // 16) + r, t % 16)),
]


@pytest.mark.parametrize(("version", "formula"), WMMA_RESULTS)
def test_wmma_results(version: int, formula: Formula) -> None:
    shape = (16, 16, 16) if version < 3 else (16, 16, 32)
    layout = amd_wmma((16, 16), version, False, [], shape)
    check_fragment(layout, 32, 8, formula)
    assert trans(amd_wmma((16, 16), version, True, [], shape), (1, 0)) == layout


def test_wmma_32x16() -> None:
    """Two 16x16 results on top of each other; transposed, side by side."""
    layout = amd_wmma((32, 16), 3, False, [], (32, 16, 128))
    check_fragment(layout, 32, 16, lambda t, r: (16 * (r // 8) + 8 * (t // 16) + r % 8, t % 16))
    assert trans(amd_wmma((16, 32), 3, True, [], (32, 16, 128)), (1, 0)) == layout


WMMA_LEFT: list[tuple[int, int, int, int, Formula]] = [
    # RDNA3: lanes 16 to 31 repeat lanes 0 to 15.
    (1, 16, 16, 16, lambda t, r: (t % 16, r)),
    (2, 16, 8, 8, lambda t, r: (t % 16, 8 * (t // 16) + r)),
    # gfx1250, 16-bit: two such pieces along K.
    (3, 32, 8, 16, lambda t, r: (t % 16, 16 * (r // 8) + 8 * (t // 16) + r % 8)),
]


@pytest.mark.parametrize(("version", "k", "k_width", "count", "formula"), WMMA_LEFT)
def test_wmma_operands(version: int, k: int, k_width: int, count: int, formula: Formula) -> None:
    layout = amd_wmma_operand((16, k), 0, k_width, version, False, [], (16, 16, k))
    check_fragment(layout, 32, count, formula)
    assert trans(amd_wmma_operand((k, 16), 1, k_width, version, False, [], (16, 16, k)), (1, 0)) == layout


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (
            amd_mfma((1, 1), 3, (1, 1), (16, 16, 16), False),
            "{register: [(0,0),(0,0)], lane: [(0,0),(0,0),(0,0),(0,0),(0,0),(0,0)], warp: []} -> [dim0: 1, dim1: 1]",
        ),
        # Two tiles of columns per warp: (0,16) is the warp's own, (0,32) the next warp's.
        (
            amd_mfma((16, 64), 4, (1, 2), (16, 16, 32), False, tiles_per_warp=(1, 2)),
            "{register: [(1,0),(2,0),(0,16)], lane: [(0,1),(0,2),(0,4),(0,8),(4,0),(8,0)], warp: [(0,32)]} "
            "-> [dim0: 16, dim1: 64]",
        ),
        # Tile (1,0) to a register, (2,0) to the warp, a zero basis: copies; the left operand has them too.
        (
            amd_wmma((64, 16), 2, False, [(2, 0), (0, 0)], reg_bases=[(1, 0)]),
            "{register: [(1,0),(2,0),(4,0),(16,0)], lane: [(0,1),(0,2),(0,4),(0,8),(8,0)], warp: [(32,0),(0,0)]} "
            "-> [dim0: 64, dim1: 16]",
        ),
        # For the right operand rows are the contraction: no register for (1,0), copies in both warp bits.
        (
            amd_wmma_operand((16, 16), 1, 8, 2, False, [(2, 0), (0, 0)], reg_bases=[(1, 0)]),
            "{register: [(1,0),(2,0),(4,0)], lane: [(0,1),(0,2),(0,4),(0,8),(8,0)], warp: [(0,0),(0,0)]} "
            "-> [dim0: 16, dim1: 16]",
        ),
    ],
)
def test_edges(layout: LinearLayout, text: str) -> None:
    assert str(layout) == text
    assert why_not_distributed(layout) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: amd_mfma((64, 64), 3, (2, 2), (64, 4, 4), False),
            "amd_mfma: transposed is False, expected True for an instr_shape of 64x4",
        ),
        (
            lambda: amd_mfma((64, 64), 5, (2, 2), (16, 16, 16), False),
            "amd_mfma: version is 5, expected 1 (gfx908), 2 (gfx90a), 3 (gfx942) or 4 (gfx950)",
        ),
        (
            lambda: amd_mfma((64, 64), 3, (2, 2), (16, 32, 16), False),
            "amd_mfma: instr_shape is (16, 32, 16), "
            "expected (M, N, K) with (M, N) one of (32, 32), (16, 16), (64, 4), (4, 64)",
        ),
        (
            lambda: amd_mfma((64, 64), 3, (2, 2), (16, 16), False),
            "amd_mfma: instr_shape is (16, 16), expected (M, N, K) with (M, N) one of (32, 32), (16, 16), (64, 4), (4, 64)",
        ),
        (
            lambda: amd_mfma((64, 64), 3, (2, 2), (16, 16, 16), False, element_bitwidth=16),
            "amd_mfma: element_bitwidth is 16, expected 32 or 64",
        ),
        (
            lambda: amd_mfma((64, 64), 3, (2, 2), (16, 16, 16), False, tiles_per_warp=(3, 1)),
            "amd_mfma: tiles_per_warp (3, 1) holds 3, expected powers of two",
        ),
        (
            lambda: amd_mfma((64, 64), 3, (2,), (16, 16, 16), False),
            "amd_mfma: warps_per_cta (2,) has 1 dimensions, the shape has 2",
        ),
        (
            lambda: amd_mfma_operand((64, 64), -1, 4, 3, (2, 2), (16, 16, 16), False),
            "amd_mfma_operand: operand_index is -1, expected 0 (left) or 1 (right)",
        ),
        (
            lambda: amd_mfma_operand((64, 64), 0, 6, 3, (2, 2), (16, 16, 16), False),
            "amd_mfma_operand: k_width is 6, expected a power of two",
        ),
        (
            lambda: amd_mfma((64,), 3, (2,), (16, 16, 16), False),
            "amd_mfma: shape (64,) has 1 dimensions, expected 2, or 3 with a batch",
        ),
        (
            lambda: amd_wmma((64, 64), 4, False, []),
            "amd_wmma: version is 4, expected 1 (RDNA3), 2 (RDNA4) or 3 (gfx1250)",
        ),
        (
            lambda: amd_wmma((64, 64), 2, False, [], (16, 16, 64)),
            "amd_wmma: instr_shape is (16, 16, 64), expected one of (16, 16, 16), (16, 16, 32) for version 2",
        ),
        (
            lambda: amd_wmma_operand((64, 64), 0, 4, 1, False, []),
            "amd_wmma_operand: k_width is 4, expected one of 8, 16 for version 1",
        ),
        (
            lambda: amd_wmma_operand((64, 64), 0, 3, 3, False, [], (16, 16, 32)),
            "amd_wmma_operand: k_width is 3, expected a power of two",
        ),
        (
            lambda: amd_wmma((64, 64), 2, False, [(1, 1)]),
            "amd_wmma: warp_bases basis (1, 1) is not a power of two along one dimension",
        ),
        (
            lambda: amd_wmma((64, 64), 2, False, [(1, 0)], reg_bases=[(1, 0)]),
            "amd_wmma: reg_bases basis (1, 0) is there twice",
        ),
        (
            lambda: amd_wmma((64, 64), 2, False, [(2, 0)]),
            "amd_wmma: warp_bases and reg_bases: 2 along dim0 is there but not 1",
        ),
        (
            lambda: amd_wmma((64, 64), 2, False, [(1, 0, 0)]),
            "amd_wmma: warp_bases basis (1, 0, 0) has 3 coordinates, the shape has 2",
        ),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
