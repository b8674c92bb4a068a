"""NVIDIA's fragments (paper 4.7, 9.2): where mma.sync and wgmma have their results and operands in registers.

All instructions follow one rule, so no table per instruction is kept: a warp is 8 rows of 4 threads, a thread has a few
adjacent elements of its row, and the rest of the instruction's tile continues in registers.

    nvidia_mma((16, 8), 2, (1, 1), (16, 8)): mma.m16n8's result; each cell is lane.register

              0     1     2     3     4     5     6     7
      row 0   0.0   0.1   1.0   1.1   2.0   2.1   3.0   3.1
      row 1   4.0   4.1   5.0   5.1   6.0   6.1   7.0   7.1
      ...
      row 7  28.0  28.1  29.0  29.1  30.0  30.1  31.0  31.1
      row 8   0.2   0.3   1.2   1.3   2.2   2.3   3.2   3.3

    {register: [(0,1),(8,0)], lane: [(0,2),(0,4),(1,0),(2,0),(4,0)], warp: []} -> [dim0: 16, dim1: 8]

An operand is the same with ``k_width`` adjacent elements per thread along the contraction, twice: the left operand has it along
its columns, the right one along its rows. ``k_width`` elements make 32 bits (f32: 1, f16: 2, f8: 4); a wider one permutes
the contraction, the same way in both operands, so that memory accesses are wider.

As in Triton 3.9, instructions keep zero columns in ``register`` where the tensor is smaller than they are: they need the
registers all the same. Sources: PTX ISA, "Matrix Fragments for mma" and "Register Fragments and Shared Memory Matrix
Layouts" of wgmma.

What this does not do: Blackwell's tcgen05.mma leaves its result in tensor memory, from where `tcgen05` moves it; wgmma with N
not a power of two (24, 40, ...) is not linear.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.dealing import (
    COLUMNS,
    LANE,
    REGISTER,
    ROWS,
    WARP,
    Bases,
    Deal,
    bits_per_axis,
    check_matrix,
    contraction_axis,
    size_bits,
)

ADJACENT, ROW_OF_THREADS, THREAD_ROWS = 1, 2, 3
"""Bits: 2 adjacent results per thread; 4 threads in a row; 8 rows of threads."""

MMA_SHAPES = {(16, 8): 1, (8, 8): 0}
"""mma.sync's (M, N), with the bits of k_width groups that a thread has along the contraction. 8x8 is f64's m8n8k4."""

WARP_ORDER = {2: (COLUMNS, ROWS, -3), 3: (ROWS, COLUMNS)}
"""The axes along which warps are counted, fastest first."""

WGMMA_COLUMNS = (8, 16, 32, 64, 128, 256)
"""The N of wgmma that are powers of two."""


def _instruction(function: str, version: int, instr_shape: Sequence[int], rank: int) -> tuple[int, int]:
    """(M, N) that a warp computes at once; `ValueError` for no such instruction."""
    given = tuple(instr_shape)
    if version == 2:
        batch, shape = given[:-2], given[-2:]
        if len(given) != rank or any(size != 1 for size in batch) or shape not in MMA_SHAPES:
            raise ValueError(
                f"{function}: instr_shape is {given}, expected (16, 8) or (8, 8) for version 2, after a 1 for a batch"
            )
        return shape[0], shape[1]
    if version == 3:
        if len(given) not in (2, 3) or given[0] != 16:
            raise ValueError(
                f"{function}: instr_shape is {given}, expected (16, N) or (16, N, K) for version 3: M is per warp"
            )
        if given[1] not in WGMMA_COLUMNS:
            known = 0 < given[1] <= 256 and given[1] % 8 == 0
            why = "that wgmma exists, but its result is not linear" if known else "there is no such wgmma"
            raise ValueError(
                f"{function}: instr_shape has N = {given[1]}, expected a power of two from 8 to 256: {why}"
            )
        if rank != 2:
            raise ValueError(f"{function}: version 3 (wgmma) has no batch, the shape has {rank} dimensions")
        return 16, given[1]
    raise ValueError(
        f"{function}: version is {version}, expected 2 (mma.sync) or 3 (wgmma); "
        "version 5 (tcgen05) has its result in tensor memory"
    )


def nvidia_mma(
    shape: Sequence[int],
    version: int,
    warps_per_cta: Sequence[int],
    instr_shape: Sequence[int],
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """The result of mma.sync (``version`` 2) or wgmma (3), from ``register``, ``lane``, ``warp`` to a matrix of ``shape``.

    ``instr_shape`` is (M, N) with a 1 before it where a batch precedes the matrix, or for wgmma (16, N) or (16, N, K) with the M
    of one warp. ``warps_per_cta`` counts columns first for mma.sync, rows first for wgmma, whose group of 4 warps is a
    column of 4 tiles. `ValueError` for an instruction that does not exist or is not linear.

        nvidia_mma((64, 16), 3, (4, 1), (16, 16))

        {register: [(0,1),(8,0),(0,8)], lane: [(0,2),(0,4),(1,0),(2,0),(4,0)], warp: [(16,0),(32,0)]} -> [dim0: 64, dim1: 16]
    """
    check_matrix("nvidia_mma", shape)
    rank = len(shape)
    rows, columns = _instruction("nvidia_mma", version, instr_shape, rank)
    warps = bits_per_axis("nvidia_mma", "warps_per_cta", warps_per_cta, rank)
    deal = Deal("nvidia_mma", shape, cga_layout)
    deal.steps(
        (
            (REGISTER, COLUMNS, ADJACENT),
            (LANE, COLUMNS, ROW_OF_THREADS),
            (LANE, ROWS, THREAD_ROWS),
            (REGISTER, ROWS, rows.bit_length() - 1 - THREAD_ROWS),
            (REGISTER, COLUMNS, columns.bit_length() - 1 - ADJACENT - ROW_OF_THREADS),
        )
    )
    deal.steps((WARP, axis, warps[axis]) for axis in WARP_ORDER[version][:rank])
    deal.rest((COLUMNS, ROWS, -3)[:rank])
    return deal.layout()


def nvidia_mma_operand(
    shape: Sequence[int],
    operand_index: int,
    k_width: int,
    version: int,
    warps_per_cta: Sequence[int],
    instr_shape: Sequence[int],
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """An operand in registers of the instruction whose result is `nvidia_mma` with the other arguments.

    Warps that differ along the contraction's result axis hold copies, and every block has all of the contraction. wgmma
    takes only operand 0 from registers.

        nvidia_mma_operand((16, 16), 0, 2, 2, (1, 2), (16, 8)): f16, four registers of two

        {register: [(0,1),(8,0),(0,8)], lane: [(0,2),(0,4),(1,0),(2,0),(4,0)], warp: [(0,0)]} -> [dim0: 16, dim1: 16]
    """
    function = "nvidia_mma_operand"
    check_matrix(function, shape)
    rank = len(shape)
    instruction = _instruction(function, version, instr_shape, rank)
    summed = contraction_axis(function, operand_index)
    if version == 3 and operand_index == 1:
        raise ValueError(
            f"{function}: operand_index is 1, expected 0: wgmma reads its right operand from shared memory"
        )
    kept = ROWS if summed == COLUMNS else COLUMNS
    adjacent = size_bits(function, "k_width", k_width)
    groups = MMA_SHAPES.get(instruction, 1)
    warps = bits_per_axis(function, "warps_per_cta", warps_per_cta, rank)
    outer = instruction[kept].bit_length() - 1 - THREAD_ROWS if operand_index == 0 else 0
    deal = Deal(function, shape, cga_layout, summed)
    deal.steps(
        (
            (REGISTER, summed, adjacent),
            (LANE, summed, ROW_OF_THREADS),
            (LANE, kept, THREAD_ROWS),
            (REGISTER, kept, outer),
            (REGISTER, summed, groups),
        )
    )
    deal.rest((summed,))
    deal.steps((WARP, axis, warps[axis]) for axis in WARP_ORDER[version][:rank])
    deal.rest((kept, -3)[: rank - 1])
    return deal.layout()
