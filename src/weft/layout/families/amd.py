"""AMD's fragments: where MFMA and WMMA have their results and operands in registers.

A table has the size and the bits of each instruction's tile. Transposing swaps the roles of rows and columns in it (the
hardware is given the operands swapped).

    MFMA, 64 lanes, MxN: a lane has 4 adjacent rows (1 for 64-bit results) of one column; lanes go along the columns, the lanes
    that are left along the rows; the other rows of the tile are in registers.

    amd_mfma((16, 16), 3, (1, 1), (16, 16, 16), False): each cell is lane.register

               0     1    ..   15
      row 0    0.0   1.0       15.0
      row 1    0.1   1.1       15.1
      row 3    0.3   1.3       15.3
      row 4   16.0  17.0       31.0

    {register: [(1,0),(2,0)], lane: [(0,1),(0,2),(0,4),(0,8),(4,0),(8,0)], warp: []} -> [dim0: 16, dim1: 16]

    MFMA operand: ``k_width`` adjacent elements along the contraction, lanes along the other axis, the lanes left along the
    contraction again. WMMA, 32 lanes, is the same with 8 adjacent rows (RDNA4, gfx1250); RDNA3 alternates rows between
    its two halves of lanes and has each operand twice.

As in Triton 3.9, zero columns of ``register`` stay where the tensor is smaller than the tile. Sources: AMD's instruction
set guides (CDNA3 chapter 7; the WMMA sections of RDNA3 and RDNA4) and the layouts Triton 3.9 computes.
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
    grid_places,
    size_bits,
)

MFMA_LANES, WMMA_LANES = 6, 5
"""Bits of a wave's lanes: 64 for MFMA, 32 for WMMA."""

MFMA_SHAPES = ((32, 32), (16, 16), (64, 4), (4, 64))
"""MFMA's (M, N)."""
MFMA_ADJACENT = {32: 2, 64: 0}
"""Bits of adjacent results per lane, by the result's ``element_bitwidth``."""

WMMA_SHAPES = {
    1: ((16, 16, 16),),
    2: ((16, 16, 16), (16, 16, 32)),
    3: ((16, 16, 4), (16, 16, 32), (16, 16, 64), (16, 16, 128), (32, 16, 64), (32, 16, 128)),
}
"""WMMA's (M, N, K) by version: RDNA3, RDNA4, gfx1250."""
WMMA_K_WIDTHS = {1: (8, 16), 2: (4, 8, 16)}
"""The ``k_width`` each version has; version 3 has all powers of two."""


def _mfma_sizes(function: str, version: int, instr_shape: Sequence[int]) -> tuple[int, int]:
    """The bits of (M, N)."""
    if version not in (1, 2, 3, 4):
        raise ValueError(f"{function}: version is {version}, expected 1 (gfx908), 2 (gfx90a), 3 (gfx942) or 4 (gfx950)")
    given = tuple(instr_shape)
    if len(given) != 3 or given[:2] not in MFMA_SHAPES:
        raise ValueError(
            f"{function}: instr_shape is {given}, expected (M, N, K) with (M, N) one of (32, 32), (16, 16), (64, 4), (4, 64)"
        )
    return given[0].bit_length() - 1, given[1].bit_length() - 1


def amd_mfma(
    shape: Sequence[int],
    version: int,
    warps_per_cta: Sequence[int],
    instr_shape: Sequence[int],
    transposed: bool,
    tiles_per_warp: Sequence[int] | None = None,
    element_bitwidth: int = 32,
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """The result of MFMA, from ``register``, ``lane`` (64), ``warp`` to a matrix of ``shape``, maybe with a batch before it.

    ``instr_shape`` is (M, N, K). ``transposed`` gives a lane adjacent columns of one row. ``tiles_per_warp`` (default 1
    everywhere) adjacent tiles per dimension go to each warp. ``element_bitwidth`` is 32 or 64. `ValueError` for what no
    instruction does; 64x4 exists only transposed.

        amd_mfma((32, 32), 3, (1, 1), (32, 32, 8), True)

        {register: [(0,1),(0,2),(0,8),(0,16)], lane: [(1,0),(2,0),(4,0),(8,0),(16,0),(0,4)], warp: []} -> [dim0: 32, dim1: 32]
    """
    function = "amd_mfma"
    check_matrix(function, shape)
    rank = len(shape)
    m, n = _mfma_sizes(function, version, instr_shape)
    if tuple(instr_shape[:2]) == (64, 4) and not transposed:
        raise ValueError(f"{function}: transposed is False, expected True for an instr_shape of 64x4")
    if element_bitwidth not in MFMA_ADJACENT:
        raise ValueError(f"{function}: element_bitwidth is {element_bitwidth}, expected 32 or 64")
    adjacent = MFMA_ADJACENT[element_bitwidth]
    long, across, long_bits, across_bits = (COLUMNS, ROWS, n, m) if transposed else (ROWS, COLUMNS, m, n)
    lanes_left = MFMA_LANES - across_bits
    deal = Deal(function, shape, cga_layout)
    deal.steps(
        (
            (REGISTER, long, adjacent),
            (LANE, across, across_bits),
            (LANE, long, lanes_left),
            (REGISTER, long, max(0, long_bits - adjacent - lanes_left)),
        )
    )
    _mfma_tiles(function, deal, warps_per_cta, tiles_per_warp, rank, (COLUMNS, ROWS, -3)[:rank])
    return deal.layout()


def _mfma_tiles(
    function: str,
    deal: Deal,
    warps_per_cta: Sequence[int],
    tiles_per_warp: Sequence[int] | None,
    rank: int,
    axes: Sequence[int],
    summed: int | None = None,
) -> None:
    """Deal tiles: along each axis some to the warp's own registers, then to warps, the rest to registers."""
    warps = bits_per_axis(function, "warps_per_cta", warps_per_cta, rank)
    tiles = bits_per_axis(function, "tiles_per_warp", (1,) * rank if tiles_per_warp is None else tiles_per_warp, rank)
    for axis in axes:
        if axis != summed:
            deal.steps(((REGISTER, axis, tiles[axis]),))
        deal.steps(((WARP, axis, warps[axis]),))
        deal.rest((axis,))


def amd_mfma_operand(
    shape: Sequence[int],
    operand_index: int,
    k_width: int,
    version: int,
    warps_per_cta: Sequence[int],
    instr_shape: Sequence[int],
    transposed: bool,
    tiles_per_warp: Sequence[int] | None = None,
    element_bitwidth: int = 32,
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """An operand of the instruction whose result is `amd_mfma` with the other arguments.

    Where ``k_width`` times the lanes along the contraction is more than the instruction's K, the layout is that of several
    instructions. ``transposed`` and ``element_bitwidth`` are the result's and change nothing here. Warps along the contraction
    hold copies; every block has all of it.

        amd_mfma_operand((16, 16), 0, 4, 3, (1, 1), (16, 16, 16), False)

        {register: [(0,1),(0,2)], lane: [(1,0),(2,0),(4,0),(8,0),(0,4),(0,8)], warp: []} -> [dim0: 16, dim1: 16]
    """
    function = "amd_mfma_operand"
    check_matrix(function, shape)
    rank = len(shape)
    sizes = _mfma_sizes(function, version, instr_shape)
    summed = contraction_axis(function, operand_index)
    kept = ROWS if summed == COLUMNS else COLUMNS
    adjacent = size_bits(function, "k_width", k_width)
    kept_bits = sizes[operand_index]
    deal = Deal(function, shape, cga_layout, summed)
    deal.steps(((REGISTER, summed, adjacent), (LANE, kept, kept_bits), (LANE, summed, MFMA_LANES - kept_bits)))
    deal.rest((summed,))
    _mfma_tiles(function, deal, warps_per_cta, tiles_per_warp, rank, (COLUMNS, ROWS, -3)[:rank], summed)
    return deal.layout()


def _wmma_sizes(function: str, version: int, instr_shape: Sequence[int], transposed: bool) -> tuple[int, int, int]:
    """The bits of a tile's rows, columns and contraction; a transposed 32x16 tile is 16x32."""
    if version not in WMMA_SHAPES:
        raise ValueError(f"{function}: version is {version}, expected 1 (RDNA3), 2 (RDNA4) or 3 (gfx1250)")
    given = tuple(instr_shape)
    if given not in WMMA_SHAPES[version]:
        known = ", ".join(map(str, WMMA_SHAPES[version]))
        raise ValueError(f"{function}: instr_shape is {given}, expected one of {known} for version {version}")
    m, n, k = (size.bit_length() - 1 for size in given)
    return (n, m, k) if transposed else (m, n, k)


def amd_wmma(
    shape: Sequence[int],
    version: int,
    transposed: bool,
    warp_bases: Bases,
    instr_shape: Sequence[int] = (16, 16, 16),
    reg_bases: Bases = (),
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """The result of WMMA, from ``register``, ``lane`` (32), ``warp`` to a matrix of ``shape``, maybe with a batch before it.

    Tiles are dealt by ``warp_bases`` and ``reg_bases``: basis i is the tile, counted in tiles per dimension, that bit i of
    the warp, or of the first registers after the tile's own, selects.

        amd_wmma((16, 32), 2, False, [(0, 1)])

        {register: [(1,0),(2,0),(4,0)], lane: [(0,1),(0,2),(0,4),(0,8),(8,0)], warp: [(0,16)]} -> [dim0: 16, dim1: 32]
    """
    function = "amd_wmma"
    check_matrix(function, shape)
    rank = len(shape)
    m, n, _ = _wmma_sizes(function, version, instr_shape, transposed)
    long, across, long_bits, across_bits = (COLUMNS, ROWS, n, m) if transposed else (ROWS, COLUMNS, m, n)
    half = WMMA_LANES - across_bits
    deal = Deal(function, shape, cga_layout)
    if version == 1:
        deal.steps(((LANE, across, across_bits), (LANE, long, half), (REGISTER, long, long_bits - half)))
    else:
        deal.steps(
            (
                (REGISTER, long, 3),
                (LANE, across, across_bits),
                (LANE, long, half),
                (REGISTER, long, long_bits - half - 3),
            )
        )
    places = grid_places(function, {"warp_bases": warp_bases, "reg_bases": reg_bases}, rank)
    deal.grid({REGISTER: places["reg_bases"], WARP: places["warp_bases"]})
    deal.rest((COLUMNS, ROWS, -3)[:rank])
    return deal.layout()


def amd_wmma_operand(
    shape: Sequence[int],
    operand_index: int,
    k_width: int,
    version: int,
    transposed: bool,
    warp_bases: Bases,
    instr_shape: Sequence[int] = (16, 16, 16),
    reg_bases: Bases = (),
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """An operand of the instruction whose result is `amd_wmma` with the other arguments.

    Version 1 has each operand twice, in lanes 0-15 and 16-31. Warps along the contraction hold copies, registers along it are
    dropped; every block has all of it.

        amd_wmma_operand((16, 16), 0, 16, 1, False, [])

        {register: [(0,1),(0,2),(0,4),(0,8)], lane: [(1,0),(2,0),(4,0),(8,0),(0,0)], warp: []} -> [dim0: 16, dim1: 16]
    """
    function = "amd_wmma_operand"
    check_matrix(function, shape)
    rank = len(shape)
    sizes = _wmma_sizes(function, version, instr_shape, transposed)
    summed = contraction_axis(function, operand_index)
    kept = ROWS if summed == COLUMNS else COLUMNS
    adjacent = size_bits(function, "k_width", k_width)
    if k_width not in WMMA_K_WIDTHS.get(version, (k_width,)):
        known = ", ".join(map(str, WMMA_K_WIDTHS[version]))
        raise ValueError(f"{function}: k_width is {k_width}, expected one of {known} for version {version}")
    kept_bits, summed_bits = sizes[operand_index], sizes[2]
    deal = Deal(function, shape, cga_layout, summed)
    if version == 1:
        deal.steps(((REGISTER, summed, summed_bits), (LANE, kept, kept_bits)))
        deal.copies(LANE, WMMA_LANES - kept_bits)
    else:
        deal.steps(
            (
                (REGISTER, summed, adjacent),
                (LANE, kept, 4),
                (LANE, summed, 1),
                (REGISTER, summed, max(0, summed_bits - adjacent - 1)),
                (REGISTER, kept, kept_bits - 4),
            )
        )
    places = grid_places(function, {"warp_bases": warp_bases, "reg_bases": reg_bases}, rank)
    along = rank + summed
    registers = [place for place in places["reg_bases"] if place is None or place[0] != along]
    warps = [None if place and place[0] == along else place for place in places["warp_bases"]]
    deal.grid({REGISTER: registers, WARP: warps})
    deal.rest((summed, kept, -3)[:rank])
    return deal.layout()
