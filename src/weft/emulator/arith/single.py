"""Single-precision arithmetic (PTX ISA 9.7.3), each result rounded once, in each mode.

To nearest, NumPy's own float32 operations are IEEE 754's. The others go through float64, which is exact for a product of two
float32; for a sum `exact_sum` says what is needed. A float64 quotient or square root of float32 operands is on the same side
of every float32, and of every middle between two, as the exact one: were it not, the exact one would be closer than 2**-53
(relatively) to a number m of 25 bits, but q - m = (x - m*y)/y is zero or at least 2**-49 of q, and r - m likewise.

Results of the NaN kind are whatever NumPy gives; `rounding.canonical` settles them.
"""

from __future__ import annotations

import numpy as np

from weft.emulator.arith.rounding import F32, exact_sum, to_float32


def add(x: F32, y: F32, mode: str) -> F32:
    """x + y."""
    if mode == "rn":
        return x + y
    return to_float32(exact_sum(x.astype(np.float64), y, mode), mode)


def sub(x: F32, y: F32, mode: str) -> F32:
    """x - y."""
    return x - y if mode == "rn" else add(x, -y, mode)


def mul(x: F32, y: F32, mode: str) -> F32:
    """x * y."""
    if mode == "rn":
        return x * y
    return to_float32(np.multiply(x, y, dtype=np.float64), mode)


def fma(x: F32, y: F32, z: F32, mode: str) -> F32:
    """x * y + z, rounded once."""
    return to_float32(exact_sum(np.multiply(x, y, dtype=np.float64), z, mode), mode)


def div(x: F32, y: F32, mode: str) -> F32:
    """x / y."""
    if mode == "rn":
        return x / y
    return to_float32(np.divide(x, y, dtype=np.float64), mode)


def sqrt(x: F32, mode: str) -> F32:
    """The square root; of -0 it is -0."""
    if mode == "rn":
        return np.sqrt(x)
    return to_float32(np.sqrt(x, dtype=np.float64), mode)
