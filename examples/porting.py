"""One line of preprocessing in six systems: the same text, other types, other pixels.

python examples/porting.py
"""

from __future__ import annotations

import numpy as np

import weft.array as wa
from weft import semantics

PIXELS = np.array([200, 3], np.uint8)
OFFSET = np.array([-100, 10], np.int8)

SYSTEMS = ("numpy", "torch", "jax", "max", "dali", "triton")


def quantise(pixels: wa.Array, offset: wa.Array) -> wa.Array:
    """The line to port. Triton's uint8 - int8 is uint8; DALI's // rounds toward zero, and its 3 is an int32."""
    return (pixels - offset) // 3


def table() -> list[tuple[str, str, list[int]]]:
    """What each system makes of it: its name, the dtype, the values."""
    rows: list[tuple[str, str, list[int]]] = []
    for system in SYSTEMS:
        with semantics.use(system):
            result = quantise(wa.asarray(PIXELS), wa.asarray(OFFSET))
        rows.append((system, str(result.dtype), result.numpy().tolist()))
    return rows


if __name__ == "__main__":
    for system, dtype, values in table():
        print(f"{system:8}{dtype:8}{values}")
