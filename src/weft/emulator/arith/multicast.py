"""What multimem.ld_reduce makes of the values of several memories (PTX ISA 9.7.9.14).

    d = v[0] op v[1] op ... op v[n - 1]

The ISA leaves the order open. Here it is that of the memories, so that results repeat; sums of floats on hardware may differ
in their last bits. Sums are rounded to nearest even after each step: to the type, or with ``.acc::`` to the wider one and at the
end to the type. Sums of 8-bit floats that are too large become the largest number, as in all conversions to them. A minimum
or maximum with a NaN is the other operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.bulk_reduce import reduction
from weft.emulator.arith.formats import BF16, E4M3, E5M2, F16, FORMATS, Format, decode, encode

Bits = NDArray[Any]

_NARROW: Final = (E4M3, E5M2)


def combined(values: Sequence[Bits], operation: str, kind: str, accumulate: str = "") -> Bits:
    """The reduction of one array of elements' bits (unsigned integers of ``kind``'s width) a memory: the elements' bits.

    ``operation`` is add, min, max, and, or, xor; ``kind`` the PTX type of an element; ``accumulate`` f32 or f16, or "" for
    ``kind``.
    """
    source = FORMATS.get(kind)
    if source is None or (not accumulate and source not in _NARROW):
        return _in_kind(values, operation, kind)
    inner = {"f32": None, "f16": F16, "": source}[accumulate]
    numbers = [decode(v, source) for v in values]
    total = numbers[0]
    for number in numbers[1:]:
        total = _step(operation, total, number)
        if inner is not None:
            total = decode(_encoded(total, inner), inner)
    return _encoded(total, source)


def _in_kind(values: Sequence[Bits], operation: str, kind: str) -> Bits:
    apply = reduction(operation, kind)
    total = np.ascontiguousarray(values[0])
    for value in values[1:]:
        total = apply(total.view(np.uint8), np.ascontiguousarray(value).view(np.uint8)).view(total.dtype)
    return total


def _step(operation: str, x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
    """Exact but for float32's own rounding, which is that of a sum in it, or lost in that to a type of half its digits."""
    if operation == "add":
        return x + y
    least = operation == "min"
    chosen = (np.fmin if least else np.fmax)(x, y)
    signs = np.signbit(x) | np.signbit(y) if least else np.signbit(x) & np.signbit(y)
    return np.where((x == 0) & (y == 0), np.where(signs, np.float32(-0.0), np.float32(0.0)), chosen)


def _encoded(values: NDArray[np.float32], target: Format) -> Bits:
    codes = encode(values.astype(np.float64), target, "rn", satfinite=target in _NARROW)
    if target in (F16, BF16):
        return np.where(np.isnan(values), 0x7FFF, codes).astype(target.dtype)
    return codes
