"""Tensor memory of sm_100: where instructions find their elements in it (PTX ISA 9.7.16.1 to 9.7.16.4, 9.7.16.10.5).

A block has 128 lanes of 512 columns, cells of 32 bits. An address is a lane in the upper 16 bits and a column in the lower ones.
Warp w of a block reaches lanes 32 (w % 4) to 32 (w % 4) + 31 only. What an instruction moves is a picture (registers, 32) of
cells, relative to its address:

    shape      thread t, register i                                            registers of .xN
    32x32b     lane t                           column i                       N
    16x64b     lane t / 4 + 8 (t % 2)           column 2 i + t / 2 % 2         N
    16x128b    lane t / 4 + 8 (i % 2)           column 4 (i / 2) + t % 4       2 N
    16x256b    lane t / 4 + 8 (i / 2 % 2)       column 8 (i / 4) + 2 (t % 4) + i % 2     4 N
    16x32bx2   lane t % 16                      column i, of t >= 16 from the second half's offset on    N

With ``.pack::16b`` (and ``.unpack::16b`` of a store) a register holds the lower halves of two cells: column c of the picture is
columns 2 c and 2 c + 1.

A result D has ``rows`` rows of a block (M, or with ``.cta_group::2`` half of M) and N columns. Folded results have parts of the
columns in the same columns of tensor memory, one below the other:

    128 rows                lane r                                column c
    64 rows                 lane r % 16 + 32 (r / 16)             column c
    64 rows, folded         lane r + 64 (c / (N / 2))             column c % (N / 2)
    32 rows, folded         lane r + 32 (c / (N / 4))             column c % (N / 4)

Folded are weight stationary products (.ws), and the 64 rows of each of two blocks, unless A is sparse. An A in tensor memory has
the lanes of D. For a folded D each part has an A of its own, with which its columns are computed: programs put the same into all
of them (CUTLASS's ``TmemAllocMode::Duplicated``), or several matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

LANES: Final = 128
COLUMNS: Final = 512

Cells = NDArray[np.intp]


@dataclass(frozen=True)
class Picture:
    """The cells that each register of each thread of a warp has, (registers, 32), relative to the instruction's address."""

    lanes: Cells
    columns: Cells

    @property
    def height(self) -> int:
        """How many lanes it has."""
        return int(self.lanes.max()) + 1


REGISTERS: Final = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers of ``.x1``, for each shape."""

COUNTS: Final = tuple(1 << i for i in range(8))
"""What N of ``.xN`` may be; a thread has at most 128 registers of an instruction."""


@cache
def picture(shape: str, count: int, split: int = 0) -> Picture:
    """Of ``.shape.xN``; ``split`` is where the second half of 16x32bx2 begins."""
    t = np.arange(32)[None, :]
    i = np.arange(REGISTERS[shape] * count)[:, None]
    match shape:
        case "32x32b":
            lanes, columns = t, i
        case "16x64b":
            lanes, columns = t // 4 + 8 * (t % 2), 2 * i + t // 2 % 2
        case "16x128b":
            lanes, columns = t // 4 + 8 * (i % 2), 4 * (i // 2) + t % 4
        case "16x256b":
            lanes, columns = t // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (t % 4) + i % 2
        case _:
            lanes, columns = t % 16, i + split * (t // 16)
    full = np.broadcast_shapes(lanes.shape, columns.shape, (i.shape[0], 32))
    return Picture(np.broadcast_to(lanes, full).astype(np.intp), np.broadcast_to(columns, full).astype(np.intp))


@cache
def result_lanes(rows: int, folded: bool) -> Cells:
    """The lanes of D's rows in a block, (rows, parts)."""
    r = np.arange(rows)[:, None]
    if rows == LANES:
        return r
    if not folded:
        return r % 16 + 32 * (r // 16)
    return r + rows * np.arange(LANES // rows)[None, :]


# ---- copies ----------------------------------------------------------------------------------------------------------------


def _straight(rows: int, step: int = 1) -> Cells:
    return (step * np.arange(rows))[:, None]


COPIES: Final[dict[tuple[str, str], tuple[Cells, int]]] = {
    ("128x256b", ""): (_straight(128), 2),
    ("4x256b", ""): (_straight(4, 32), 2),
    ("128x128b", ""): (_straight(128), 1),
    ("64x128b", "warpx2::02_13"): (_straight(64) + np.array([0, 64]), 1),
    ("64x128b", "warpx2::01_23"): (_straight(64) % 32 + 64 * (_straight(64) // 32) + np.array([0, 32]), 1),
    ("32x128b", "warpx4"): (_straight(32) + 32 * np.arange(4), 1),
}
"""tcgen05.cp, by shape and multicast: the lanes that each row goes to, (rows, copies), and its units of 16 bytes."""
