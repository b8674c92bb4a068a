"""The arithmetic of wgmma: which thread's register holds which element, and D = A B + D.

A warpgroup's matrices are computed whole, not as four mma.sync, because each warp of wgmma reads all of B. Products are
those of `weft.emulator.arith.products`: exact, summed with D in float64, rounded once, to nearest even. Hardware, of which
the ISA leaves order, rounding and subnormals unspecified, truncates.

Registers (PTX ISA 9.7.15.5.1.1, "Register Fragments"). A warpgroup is 4 warps of 8 rows of 4 threads. Row 16 w + 8 h + g of D, A
belongs to warp w, half h (0 or 1), threads 4 g + q. A row of A is 32 bytes, 8 words; D has N / 8 blocks of 8 columns:

    A                 register 2 j + h holds word 4 j + q          (j = 0, 1)
    D, f32 or s32     register 4 i + 2 h + c holds column 8 i + 2 q + c     (c = 0, 1)
    D, f16            register 2 i + h holds columns 8 i + 2 q and 8 i + 2 q + 1, the first in its low half

    thread 5 of warp 1 (g = 1, q = 1), f32: registers 0 to 3 hold (17, 2), (17, 3), (25, 2), (25, 3), the next four
    (17, 10), ...

Matrices here are arrays (G, rows, ...) for G warpgroups, B with N as rows. Between matrices and registers data moves in
*packets* of 16 bytes, what the 4 threads of a row have in one register: NumPy transposes those far faster than single numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.products import ELEMENTS, float_product, integer_product
from weft.emulator.machine.active import IndexArray

M: Final = 64
"""Rows of A and D."""

ACCUMULATORS: Final = {"f32": np.float32, "f16": np.float16, "s32": np.int32}
"""NumPy's types of D."""

_NOTHING: Final = np.array(0)

_PACKET: Final = np.dtype(np.complex128)
"""Any NumPy type of 16 bytes."""


def _bits(words: NDArray[np.uint64]) -> NDArray[Any]:
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").astype(np.float32)


def numbers(words: NDArray[np.uint64], kind: str) -> NDArray[Any]:
    """What words hold: (..., n) 64-bit words to (..., 64 n / bits) numbers of a multiplicand's type, the low bits first. The
    words may be overwritten."""
    if kind == "b1":
        return _bits(words)
    element = ELEMENTS[kind]
    bits = words.view(f"u{element.bits // 8}")
    found = np.empty(bits.shape, element.number)
    element.decode(bits, found, np.empty(bits.size, np.uint64))
    return found


def transposed(lines: NDArray[np.uint64], kind: str) -> NDArray[Any]:
    """An MN-major operand of 16 bits as numbers (G, rows, K), of its lines (G, K, words): line k has all rows' element k."""
    return numbers(lines, kind).swapaxes(1, 2)


def fragment(registers: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """A, (G, 64, 4) words of 64 bits, of four registers' (4, G, 128) values."""
    groups = registers.shape[1]
    by_place = registers.reshape(2, 2, groups, 4, 8, 4)  # j, h, group, w, g, q
    return np.ascontiguousarray(by_place.transpose(2, 3, 1, 4, 0, 5)).reshape(groups, M, 8).view(np.uint64)


def by_packets(b: NDArray[Any], packed: bool) -> NDArray[Any]:
    """B's numbers (G, N, K) as (G, K, N), the columns in the order of packets: as they are where D is ``packed`` (f16, two to a
    register); else c is slower than q, so that a block's columns come as 0, 2, 4, 6, 1, 3, 5, 7."""
    groups, n, k = b.shape
    if not packed:
        b = b.reshape(groups, n // 8, 4, 2, k).swapaxes(2, 3).reshape(groups, n, k)
    return b.swapaxes(1, 2)


def multiply(
    a: NDArray[Any], b: NDArray[Any], before: NDArray[np.uint32] | None, kind: str, saturate: bool = False
) -> NDArray[Any]:
    """A B + D: numbers (G, 64, K) and `by_packets` (G, K, N), D as `from_registers` gives it or None for none; rounded to
    ``kind``: f32, f16 or s32."""
    d = _NOTHING if before is None else before.view(ACCUMULATORS[kind])
    shape = (len(a), M, b.shape[2])
    total, result = np.empty(shape, a.dtype), np.empty(shape, ACCUMULATORS[kind])
    if kind == "s32":
        integer_product(a, b, d, total, np.empty(shape, np.int64), result, saturate)
    else:
        float_product(a, b, d, total, result)
    return result


def from_registers(values: NDArray[np.uint32], packed: bool) -> NDArray[np.uint32]:
    """D, (G, 64, words) with columns in the order of packets, of its registers' values (count, G, 128)."""
    count, groups, _ = values.shape
    inner = 1 if packed else 2
    blocks = count // 2 // inner
    by_place = values.view(_PACKET).reshape(blocks, 2, inner, groups, 4, 8)  # i, h, c, group, w, g
    rows = np.ascontiguousarray(by_place.transpose(3, 4, 1, 5, 0, 2))
    return rows.reshape(groups, M, blocks * inner).view(np.uint32)


def to_registers(rows: NDArray[Any], packed: bool) -> NDArray[np.uint32]:
    """The inverse: registers' values (count, G, 128) of D (G, 64, N)."""
    groups, inner = rows.shape[0], 1 if packed else 2
    packets = np.ascontiguousarray(rows).view(_PACKET)
    blocks = packets.shape[2] // inner
    by_place = packets.reshape(groups, 4, 2, 8, blocks, inner).transpose(4, 2, 5, 0, 1, 3)
    return np.ascontiguousarray(by_place).reshape(blocks * 2 * inner, groups, 32).view(np.uint32)


def collect(registers: Sequence[NDArray[np.uint32]], warps: IndexArray | None) -> NDArray[np.uint32]:
    """Values (count, G, 128) of registers (warps, 32), for the warpgroups made of ``warps``, ascending; None: all warps."""
    values = np.concatenate(registers).reshape(len(registers), -1, 32)
    return (values if warps is None else values[:, warps]).reshape(len(registers), -1, 128)


def spread(values: NDArray[np.uint32], registers: Sequence[NDArray[np.uint32]], warps: IndexArray | None) -> None:
    """The inverse of `collect`: writes the registers."""
    for register, value in zip(registers, values.reshape(len(registers), -1, 32), strict=True):
        if warps is None:
            register[...] = value
        else:
            register[warps] = value
