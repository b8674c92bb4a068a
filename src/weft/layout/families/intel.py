"""Intel's fragments: where DPAS (XMX) has its result and operands in registers.

Intel describes a matrix as the vector of values that each work item of a sub-group passes to the instruction. The three
matrices are dealt as in all other families: lanes go along a row first, remaining lanes along the rows, and elements that
share a 32-bit (operand 1) or 16-bit (operand 0) channel are adjacent registers.

    D (MxN) = A (MxK) B (KxN) + C; M = repeat_count, N = execution_size, K = systolic_depth * ops_per_channel

    intel_dpas((8, 16), (1, 1), 8, 8, 16, 2, 16): f16 on a sub-group of 16; each cell is lane.register

               0     1    ..   15
      row 0    0.0   1.0       15.0
      row 1    0.1   1.1       15.1
      ...
      row 7    0.7   1.7       15.7

    {register: [(1,0),(2,0),(4,0)], lane: [(0,1),(0,2),(0,4),(0,8)], warp: []} -> [dim0: 8, dim1: 16]

``ops_per_channel`` is 1 for tf32, 2 for 16-bit, 4 for 8-bit elements; ``execution_size`` 16 from Ponte Vecchio on, 8 before.
A warp is a sub-group; one of 32 computes on two rows at a time. A warp has ``rep_cluster`` adjacent tiles along rows and columns.

Sources: the OpenCL extension cl_intel_subgroup_matrix_multiply_accumulate (which element each work item passes) and the
public unit tests of Intel's Triton backend (the order of registers beyond one tile).
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

SYSTOLIC_DEPTH = 8
EXECUTION_SIZES = (8, 16)
OPS_PER_CHANNEL = (1, 2, 4)


def _tile(
    function: str,
    repeat_count: int,
    systolic_depth: int,
    execution_size: int,
    ops_per_channel: int,
    threads_per_warp: int,
) -> tuple[int, int, int, int]:
    """The bits of M, N, K and of a warp's lanes; `ValueError` for what DPAS does not do."""
    for name, value, expected in (
        ("repeat_count", repeat_count, (1, 2, 4, 8)),
        ("systolic_depth", systolic_depth, (SYSTOLIC_DEPTH,)),
        ("execution_size", execution_size, EXECUTION_SIZES),
        ("ops_per_channel", ops_per_channel, OPS_PER_CHANNEL),
        ("threads_per_warp", threads_per_warp, tuple(size for size in (8, 16, 32) if size >= execution_size)),
    ):
        if value not in expected:
            known = " or ".join(map(str, expected))
            raise ValueError(f"{function}: {name} is {value}, expected {known}")
    k = (systolic_depth * ops_per_channel).bit_length() - 1
    return repeat_count.bit_length() - 1, execution_size.bit_length() - 1, k, threads_per_warp.bit_length() - 1


def intel_dpas(
    shape: Sequence[int],
    warps_per_cta: Sequence[int],
    repeat_count: int,
    systolic_depth: int,
    execution_size: int,
    ops_per_channel: int,
    threads_per_warp: int,
    rep_cluster: Sequence[int] | None = None,
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """The result (and accumulator) of DPAS, from ``register``, ``lane``, ``warp`` to a matrix, maybe with a batch before it.

    ``rep_cluster`` (default 1 everywhere) adjacent tiles per dimension go to each warp; warps count columns first.
    `ValueError` for sizes that no DPAS has.

        intel_dpas((16, 16), (2, 1), 8, 8, 16, 2, 32): two rows of 16 lanes

        {register: [(2,0),(4,0)], lane: [(0,1),(0,2),(0,4),(0,8),(1,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 16]
    """
    function = "intel_dpas"
    check_matrix(function, shape)
    rank = len(shape)
    m, n, _, lanes = _tile(function, repeat_count, systolic_depth, execution_size, ops_per_channel, threads_per_warp)
    cluster = bits_per_axis(function, "rep_cluster", (1,) * rank if rep_cluster is None else rep_cluster, rank)
    warps = bits_per_axis(function, "warps_per_cta", warps_per_cta, rank)
    axes = (COLUMNS, ROWS, -3)[:rank]
    deal = Deal(function, shape, cga_layout)
    deal.steps(((LANE, COLUMNS, n), (LANE, ROWS, lanes - n), (REGISTER, ROWS, max(0, m - (lanes - n)))))
    deal.steps((REGISTER, axis, cluster[axis]) for axis in axes)
    deal.steps((WARP, axis, warps[axis]) for axis in axes)
    deal.rest(axes)
    return deal.layout()


def intel_dpas_operand(
    shape: Sequence[int],
    operand_index: int,
    warps_per_cta: Sequence[int],
    repeat_count: int,
    systolic_depth: int,
    execution_size: int,
    ops_per_channel: int,
    threads_per_warp: int,
    rep_cluster: Sequence[int] | None = None,
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """An operand of the instruction whose result is `intel_dpas` with the other arguments.

    A row of operand 0 lies across the lanes, two 8-bit elements in each, more where the lanes are fewer than the row's
    pairs (8 lanes take 32 bits each); lanes left take the next rows. Operand 1 is packed down its columns,
    ``ops_per_channel`` rows at a time. Warps along the contraction hold copies.

        intel_dpas_operand((16, 16), 1, (1, 1), 8, 8, 16, 2, 16): f16, two rows of a column in 32 bits

        {register: [(1,0),(2,0),(4,0),(8,0)], lane: [(0,1),(0,2),(0,4),(0,8)], warp: []} -> [dim0: 16, dim1: 16]
    """
    function = "intel_dpas_operand"
    check_matrix(function, shape)
    rank = len(shape)
    m, n, k, lanes = _tile(function, repeat_count, systolic_depth, execution_size, ops_per_channel, threads_per_warp)
    cluster = bits_per_axis(function, "rep_cluster", (1,) * rank if rep_cluster is None else rep_cluster, rank)
    warps = bits_per_axis(function, "warps_per_cta", warps_per_cta, rank)
    summed = contraction_axis(function, operand_index)
    kept = ROWS if summed == COLUMNS else COLUMNS
    packed = size_bits(function, "ops_per_channel", ops_per_channel)
    deal = Deal(function, shape, cga_layout, summed)
    if operand_index == 0:
        packed = max(packed - 1, 0, k - lanes)
        left = lanes - (k - packed)
        deal.steps(((REGISTER, summed, packed), (LANE, summed, k - packed), (LANE, kept, left)))
        deal.steps(((REGISTER, kept, max(0, m - left)),))
    else:
        left = lanes - n
        deal.steps(((REGISTER, summed, packed), (LANE, kept, n), (LANE, summed, left)))
        deal.steps(((REGISTER, summed, k - packed - left),))
    deal.steps(((REGISTER, kept, cluster[kept]),))
    deal.rest((summed,))
    deal.steps((WARP, axis, warps[axis]) for axis in (COLUMNS, ROWS, -3)[:rank])
    deal.rest((kept, -3)[: rank - 1])
    return deal.layout()
