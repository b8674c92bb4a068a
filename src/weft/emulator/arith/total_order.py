"""Floats as integers of the same order, -0.0 below +0.0, so that minima and maxima can be taken of integers.

The bits of a float are its sign and its magnitude; of a negative float all bits but the sign are inverted:

    -inf 0xFF800000 -> 0x807FFFFF    -0.0 0x80000000 -> 0xFFFFFFFF = -1    +0.0 -> 0    inf -> 0x7F800000

The function is its own inverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def ordered(bits: NDArray[Any]) -> NDArray[np.int32]:
    """int32 for the bits of float32s, or the other way round; NaNs are above infinity or below minus infinity."""
    signed = np.asarray(bits).view(np.int32)
    return signed ^ ((signed >> 31) & np.int32(0x7FFFFFFF))
