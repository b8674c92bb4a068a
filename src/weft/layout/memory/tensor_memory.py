"""Blackwell's tensor memory: 128 rows (one per lane of four warps) of 32-bit columns.

A layout here maps (``row``, ``col``) to the tensor. Accumulators of 128 rows lie row by row. Those of 64 do not
fill the memory: two of them share it, in alternate groups of 16 rows, so row bit 4 chooses between them:

    block (64, N)                      row: 1 2 4 8 | next block | 16 32      the next block below, else to the right, else a copy
    block (64, N) of two CTAs          row: 1 2 4 8 16 32 | N / 2             the right half of the columns in rows 64 to 127
    block (128, N)                     row: 1 2 4 8 16 32 64

``col_stride`` leaves columns between narrow elements (zero columns: they hold the same element). Further blocks follow in
columns, the tensor's first dimension first. As Triton's, a layout is of one CTA's own part: there is no ``block`` dimension,
``cga_layout`` says what the part is.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.dealing import Bases
from weft.layout.memory.shared import Part

ROW = "row"
COL = "col"


def _matrix(function: str, shape: Sequence[int], cga_layout: Bases | None) -> Part:
    if len(shape) != 2:
        raise ValueError(f"{function}: the shape has {len(shape)} dimensions, expected 2")
    return Part(function, shape, cga_layout)


def tensor_memory(
    shape: Sequence[int],
    block: tuple[int, int],
    col_stride: int = 1,
    two_ctas: bool = False,
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """An accumulator made of blocks of ``block`` rows and columns, from ``row`` (128) and ``col`` to a matrix of ``shape``."""
    part = _matrix("tensor_memory", shape, cga_layout)
    if block[0] not in (64, 128) or log2_exact(block[1]) is None:
        raise ValueError(
            f"tensor_memory: block is {tuple(block)}, expected 64 or 128 rows and a power of two of columns"
        )
    if col_stride not in (1, 2, 4):
        raise ValueError(f"tensor_memory: col_stride is {col_stride}, expected 1, 2 or 4")
    if two_ctas and (not cga_layout or tuple(cga_layout[0]) != (1, 0)):
        found = "none" if not cga_layout else str(tuple(cga_layout[0]))
        raise ValueError(f"tensor_memory: the first basis of cga_layout is {found}, expected (1, 0) for two_ctas")
    if part.shape[0] < block[0]:
        raise ValueError(f"tensor_memory: a CTA's part {part.shape} has fewer rows than block {tuple(block)}")
    row_bits = block[0].bit_length() - 1
    rows, below = part.units[0][:row_bits], part.units[0][row_bits:]
    col_bits = block[1].bit_length() - 1
    columns, right = part.units[1][:col_bits], part.units[1][col_bits:]
    further = (*below, *right)
    if block[0] == 64 and two_ctas:
        if not columns:
            raise ValueError("tensor_memory: one column cannot be halved, expected at least 2 for 64 rows and two_ctas")
        rows, columns = (*rows, columns[-1]), columns[:-1]
    elif block[0] == 64:
        other, further = further[:1] or (0,), further[1:]
        rows = (*rows[:4], *other, *rows[4:])
    stride = (0,) * (col_stride.bit_length() - 1)
    return LinearLayout.from_columns({ROW: rows, COL: (*stride, *columns, *further)}, part.outputs)


def tensor_memory_scales(shape: Sequence[int], cga_layout: Bases | None = None) -> LinearLayout:
    """The scales of a microscaled operand, one row of ``shape`` per row of the operand: 32 rows of 4 scales to a tile, each tile
    four times, once for each warp; tiles of further rows (at least one) follow in columns, then further scales."""
    part = _matrix("tensor_memory_scales", shape, cga_layout)
    rows, scales = part.units
    tile_rows = (*rows[:5], *(0,) * (5 - len(rows)), 0, 0)
    tile_scales = (*scales[:2], *(0,) * (2 - len(scales)))
    return LinearLayout.from_columns(
        {ROW: tile_rows, COL: (*tile_scales, *(rows[5:] or (0,)), *scales[2:])}, part.outputs
    )
