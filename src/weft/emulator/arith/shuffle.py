"""Which lane a shuffle reads from (PTX ISA, shfl.sync).

The control word c holds a clamp (bits 0 to 4) and a segment mask (bits 8 to 12). The mask's ones are the bits of a lane number
that a shuffle keeps, so they cut the warp into segments; the clamp is where a segment ends: its last lane, for ``up`` its first.

    mode   lane read                       in range if      c for segments of w lanes
    up     lane - b                        >= the clamp     (32 - w) << 8
    down   lane + b                        <= the clamp     (32 - w) << 8 | 31
    bfly   lane ^ b                        <= the clamp     (32 - w) << 8 | 31
    idx    first lane of the segment | b   <= the clamp     (32 - w) << 8 | 31

What is out of range reads its own lane.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MODES: Final = ("up", "down", "bfly", "idx")


def sources(
    mode: str, lane: NDArray[Any], b: NDArray[Any], c: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The lane each lane reads from, and whether that is in range. lane, b and c: (T,), or one value for all."""
    lane = np.asarray(lane, np.intp)
    offset = np.asarray(b).astype(np.intp) & 31
    control = np.asarray(c).astype(np.intp)
    segment = (control >> 8) & 31
    first = lane & segment
    clamp = first | (control & 31 & ~segment)
    match mode:
        case "up":
            source = lane - offset
            valid = source >= clamp
        case "down":
            source = lane + offset
            valid = source <= clamp
        case "bfly":
            source = lane ^ offset
            valid = source <= clamp
        case _:
            source = first | (offset & ~segment)
            valid = source <= clamp
    return np.where(valid, source, lane), valid
