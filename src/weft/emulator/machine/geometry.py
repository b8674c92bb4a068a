"""The arrays that follow from the shape of blocks alone: which lane, warp and block a thread is.

Computing them costs a launch of few instructions a tenth of its time, and most launches have the shape of an earlier one. So they
are kept, of the last `KEPT` shapes, and cannot be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import WARP
from weft.emulator.machine.grid import Dim3, Grid

KEPT: Final = 2
"""Shapes."""

LARGEST: Final = 1 << 14
"""Threads of a shape that is kept; it takes 1.2 MiB. Cooperative launches may have more."""

_AXES: Final = "xyz"


@dataclass(frozen=True, eq=False)
class Geometry:
    """Of T resident threads."""

    lane: NDArray[np.intp]
    """(T,), like the next two."""
    warp: NDArray[np.intp]
    """Counted over all resident blocks."""
    block: NDArray[np.intp]
    """The resident block."""
    real: NDArray[np.bool_]
    """Whether a place of a block is a thread: false for the padding; of one block."""
    special: dict[str, NDArray[np.uint32]]
    """Special registers."""


def geometry(block: Dim3, blocks: int, cluster: Dim3) -> Geometry:
    """Of ``blocks`` resident blocks, padded to whole warps, in clusters of a shape."""
    found = kept if block[0] * block[1] * block[2] * blocks <= LARGEST else kept.__wrapped__
    return found(block, blocks, cluster)


@lru_cache(KEPT)
def kept(block: Dim3, blocks: int, cluster: Dim3) -> Geometry:
    """What `geometry` returns, of the last shapes."""
    nx, ny, nz = block
    real = nx * ny * nz
    block_warps = -(-real // WARP)
    block_threads = block_warps * WARP
    of_block = np.arange(block_threads, dtype=np.uint32)
    lane = np.tile(np.arange(WARP), blocks * block_warps)
    of_threads = np.repeat(np.arange(blocks), block_threads)
    lanes = lane.astype(np.uint32)
    below = (np.uint32(1) << lanes) - np.uint32(1)
    grid, numbers = Grid((1, 1, 1), cluster), np.arange(blocks)
    special = {
        "%laneid": lanes,
        "%warpid": np.tile(of_block // np.uint32(WARP), blocks),
        "%smid": of_threads.astype(np.uint32),
        "%lanemask_eq": below + np.uint32(1),
        "%lanemask_lt": below,
        "%lanemask_le": below << np.uint32(1) | np.uint32(1),
        "%lanemask_gt": ~(below << np.uint32(1) | np.uint32(1)),
        "%lanemask_ge": ~below,
        "%cluster_ctarank": np.repeat(grid.rank(numbers).astype(np.uint32), block_threads),
    }
    places = of_block % nx, of_block // nx % ny, of_block // (nx * ny)
    for axis, place, within in zip(_AXES, places, grid.within(numbers), strict=True):
        special[f"%tid.{axis}"] = np.tile(place, blocks)
        special[f"%cluster_ctaid.{axis}"] = np.repeat(within.astype(np.uint32), block_threads)
    warp = np.repeat(np.arange(blocks * block_warps), WARP)
    found = Geometry(lane, warp, of_threads, np.arange(block_threads) < real, special)
    arrays: tuple[NDArray[Any], ...] = found.lane, found.warp, found.block, found.real, *special.values()
    for array in arrays:
        array.flags.writeable = False
    return found
