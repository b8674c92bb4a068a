"""The arithmetic of wgmma: which thread's register holds which element, and D = A B + D.

One would compute as the tensor core does, which is not documented: the ISA leaves order, rounding and subnormals unspecified,
and hardware is known to truncate when it aligns the products' exponents. Here the result is defined: products are exact, they
and the accumulator are added in float64, in whatever order the matrix product of NumPy has, and the sum is rounded once, to
nearest even, to the accumulator's type; a NaN is the canonical one. Integers are exact: sums wrap, or saturate if so asked.

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

from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Index

M: Final = 64
"""Rows of A and D."""

_PACKET: Final = np.dtype(np.complex128)
"""Any NumPy type of 16 bytes."""

_FP8: Final = {
    "e4m3": np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64),
    "e5m2": np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2).astype(np.float64),
}


def _widened(bits: NDArray[np.uint32]) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return bits.view(np.float32).astype(np.float64)


def _bf16(words: NDArray[np.uint64]) -> NDArray[Any]:
    return _widened(words.view(np.uint16).astype(np.uint32) << np.uint32(16))


def _tf32(words: NDArray[np.uint64]) -> NDArray[Any]:
    return _widened(words.view(np.uint32) & np.uint32(0xFFFF_E000))


def _bits(words: NDArray[np.uint64]) -> NDArray[Any]:
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").astype(np.float32)


NUMBERS: Final[dict[str, Callable[[NDArray[np.uint64]], NDArray[Any]]]] = {
    "f16": lambda words: words.view(np.float16).astype(np.float64),
    "bf16": _bf16,
    "tf32": _tf32,
    "e4m3": lambda words: _FP8["e4m3"][words.view(np.uint8)],
    "e5m2": lambda words: _FP8["e5m2"][words.view(np.uint8)],
    "s8": lambda words: words.view(np.int8).astype(np.float32),
    "u8": lambda words: words.view(np.uint8).astype(np.float32),
    "b1": _bits,
}
"""What words hold, by type: (..., n) 64-bit words to (..., 64 n / bits) numbers, the low bits first. float64, or float32 where
all sums of products of one instruction are integers below 2^24. tf32 is the upper 19 bits of a word."""


def transposed(lines: NDArray[np.uint64], kind: str) -> NDArray[Any]:
    """An MN-major operand of 16 bits as numbers (G, rows, K), of its lines (G, K, words): line k has all rows' element k."""
    return np.swapaxes(NUMBERS[kind](lines), 1, 2)


def fragment(registers: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """A, (G, 64, 4) words of 64 bits, of four registers' (4, G, 128) values."""
    groups = registers.shape[1]
    by_place = registers.reshape(2, 2, groups, 4, 8, 4)  # j, h, group, w, g, q
    return np.ascontiguousarray(by_place.transpose(2, 3, 1, 4, 0, 5)).reshape(groups, M, 8).view(np.uint64)


def product(a: NDArray[Any], b: NDArray[Any], packed: bool, sign: int = 1) -> NDArray[Any]:
    """``sign * a @ b.T`` of (G, 64, K) and (G, N, K): (G, 64, N), columns in the order of packets.

    Unless D is ``packed`` (f16, two to a register) a block's columns come with c slower than q: 0, 2, 4, 6, 1, 3, 5, 7."""
    groups, n, k = b.shape
    if not packed:
        b = b.reshape(groups, n // 8, 4, 2, k).swapaxes(2, 3).reshape(groups, n, k)
    return np.matmul(a if sign > 0 else -a, np.swapaxes(b, 1, 2))


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


def accumulate(
    products: NDArray[Any], before: NDArray[np.uint32] | None, kind: str, saturate: bool = False
) -> NDArray[Any]:
    """``products`` plus the accumulators ``before`` (as `from_registers` gives them; None: nothing), rounded to ``kind``: f32,
    f16 or s32. Products are overwritten."""
    if kind == "s32":
        total = products.astype(np.int64)
        if before is not None:
            total += before.view(np.int32)
        if saturate:
            np.clip(total, -(1 << 31), (1 << 31) - 1, out=total)
        return total.astype(np.int32)
    dtype, bits, canonical = _ROUNDED[kind]
    with np.errstate(all="ignore"):
        if before is not None:
            np.add(products, before.view(dtype), out=products)
        result = products.astype(dtype)
        nan = np.isnan(result)
        if nan.any():
            result.view(bits)[nan] = canonical
    return result


_ROUNDED: Final = {"f32": (np.float32, np.uint32, 0x7FFF_FFFF), "f16": (np.float16, np.uint16, 0x7FFF)}


def collect(registers: Sequence[NDArray[np.uint32]], warps: Index | None) -> NDArray[np.uint32]:
    """Registers' values (count, G, 128) for the warpgroups made of ``warps``, ascending; None: all warps."""
    values = np.concatenate(registers).reshape(len(registers), -1, 32)
    if warps is not None:
        values = values[:, warps]
    return values.reshape(len(registers), -1, 128)


def spread(values: NDArray[np.uint32], registers: Sequence[NDArray[np.uint32]], warps: Index | None) -> None:
    """The inverse of `collect`: writes the registers."""
    if warps is None:
        for register, value in zip(registers, values.reshape(len(registers), -1), strict=True):
            register[...] = value
    else:
        for register, value in zip(registers, values.reshape(len(registers), -1, 32), strict=True):
            register.reshape(-1, 32)[warps] = value
