"""Which boxes of a tensor one copy moves: the modes of tensor copies (PTX ISA 5.5.3 to 5.5.5).

A copy moves boxes, one after the other in shared memory. In tile mode it is one, at the coordinates that the instruction gives.
The other modes are several boxes of a row each, so that `weft.emulator.arith.tensor_copy` needs to know nothing of them:

    gather4, scatter4   four rows of a matrix: {column, row, row, row, row}
    im2col              the channels of pixel after pixel
    im2col::w           the same, along W and N only

An im2col map has a `Column`. The filter's first tap walks through a box of pixels, W innermost, then H, D, and N, each but N by
its traversal stride. Where it passes a side of the box it begins again at the other. All pixels are moved by the instruction's
offsets, which choose the tap. Worked, for rows of 5 pixels (W = 0 to 4) and corners -1 and -1, so that the box is -1 to 3:

    from W = 2, offset 0    2 3 -1 0 1 2 3 -1 ...        -1 is padding
    from W = 2, offset 2    4 5  1 2 3 4 5  1 ...         5 is padding

The ISA shows im2col::w in figures. Here it is the walk with H and D where they are, followed by as many pixels more as its halo.
How ``im2col::w::128`` orders its halos is in no text; without halos it is 128 pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Coordinates = NDArray[np.int64]

ROWS: Final = 4
"""Of gather4 and scatter4."""


@dataclass(frozen=True)
class Column:
    """What an im2col map says of pixels; dimensions from W on, as many as the tensor has beside C and N. A wide one has one."""

    pixels: int
    lower: tuple[int, ...]
    """The first pixel of the box, from the tensor's first."""
    upper: tuple[int, ...]
    """Its last, from the tensor's last."""
    wide: bool = False

    def box(self, sizes: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last pixel of the box in each dimension, for a tensor of these sizes."""
        last = np.array(sizes[1 : 1 + len(self.lower)], np.int64) - 1
        return np.array(self.lower, np.int64), last + np.array(self.upper, np.int64)

    def walk(
        self, start: Coordinates, offsets: Coordinates, sizes: tuple[int, ...], steps: tuple[int, ...], pixels: int
    ) -> Coordinates:
        """The coordinates, (N, pixels, rank), of ``pixels`` from ``start`` (N, rank) on, moved by ``offsets`` (N, dimensions).

        Requires: ``start`` is not beyond the box's last pixel in any dimension.
        """
        found = np.repeat(start[:, None, :], pixels, axis=1)
        turns = np.broadcast_to(np.arange(pixels), found.shape[:2])
        for k, (low, high) in enumerate(zip(*self.box(sizes), strict=True), 1):
            first, step = start[:, k, None], steps[k]
            left = (high - first) // step  # turns before the box ends
            rest, count = turns - left - 1, (high - low) // step + 1
            place = np.where(rest < 0, first + turns * step, low + rest % count * step)
            found[:, :, k] = place + offsets[:, k - 1, None]
            turns = np.where(rest < 0, 0, 1 + rest // count)
        found[:, :, -1] += turns
        return found


def rows(coordinates: Coordinates) -> Coordinates:
    """The four rows that {column, row, row, row, row}, (N, 5), names: (N, 4, 2)."""
    column = np.broadcast_to(coordinates[:, :1], (len(coordinates), ROWS))
    return np.stack((column, coordinates[:, 1:]), axis=2)


def outside(column: Column, start: Coordinates, sizes: tuple[int, ...]) -> NDArray[Any]:
    """Where the first pixel is not in the box; a wide one may be left of it."""
    low, high = column.box(sizes)
    place = start[:, 1 : 1 + low.size]
    bad: NDArray[Any] = place > high
    if not column.wide:
        bad |= place < low
    return np.asarray(bad.any(axis=1))
