"""Products of small matrices, as tensor cores are said to compute them: D = A B + C for each warp.

The PTX ISA leaves most of the arithmetic open: "accumulation order, rounding and handling of subnormal inputs are
unspecified" (9.7.14.5.14). The emulator computes what hardware approximates, and imitates no generation of it (hardware
aligns the products of a step to the largest and truncates them):

- Products of narrow floats (f16, bf16, tf32, fp8) are exact in float64; they and C are summed in float64, in the order of NumPy's
  matrix product, and the sum is rounded once, to nearest even, to D's type. The sum of n terms is off by at most
  n 2^-53 of the sum of their magnitudes. Hardware differs in the last bits (it truncates): compare with a tolerance.
- Subnormal numbers are numbers. A NaN result is the canonical NaN (7FFFFFFF, 7FFF).
- tf32 operands are registers of 32 bits; the low 13 bits are ignored.
- f64 is what the ISA says: fused multiply-adds, one after the other along K, each rounded.
- Integers are exact, then wrapped to 32 bits, or with ``satfinite`` limited to them.

Integer products of up to 8 bits are computed in float32: no sum of the shapes there are reaches 2^24, so it is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import double

Matrices: TypeAlias = NDArray[Any]
"""(..., rows, columns)."""

Decoder: TypeAlias = Callable[[NDArray[Any], NDArray[Any], NDArray[np.uint64]], None]
"""Unsigned integers with an element's bits (they may be overwritten), where its numbers go, and room for as many integers."""


@dataclass(frozen=True)
class Element:
    """A multiplicand's type: ``bits`` wide, which products it takes part in, and what numbers it is multiplied as."""

    bits: int
    family: str
    """"float", "double", "integer" or "bit"."""
    number: str = ""
    """NumPy's type of the numbers; "" where they are the bits as they are."""
    decode: Decoder = lambda bits, out, spare: None


def _like(spare: NDArray[np.uint64], bits: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Room for an integer for each of the bits."""
    return spare.view(dtype)[: bits.size].reshape(bits.shape)


def _table(dtype: Any) -> Decoder:
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)

    def decode(bits: NDArray[Any], out: NDArray[Any], spare: NDArray[np.uint64]) -> None:
        index = _like(spare, bits, np.intp)
        np.copyto(index, bits)
        values.take(index, out=out, mode="clip")

    return decode


def _bf16(bits: NDArray[Any], out: NDArray[Any], spare: NDArray[np.uint64]) -> None:
    wide = _like(spare, bits, np.uint32)
    np.copyto(wide, bits)
    wide <<= np.uint32(16)
    np.copyto(out, wide.view(np.float32))


def _tf32(bits: NDArray[Any], out: NDArray[Any], spare: NDArray[np.uint64]) -> None:
    np.bitwise_and(bits, np.uint32(0xFFFF_E000), out=bits)
    np.copyto(out, bits.view(np.float32))


def _s4(bits: NDArray[Any], out: NDArray[Any], spare: NDArray[np.uint64]) -> None:
    np.bitwise_xor(bits, np.uint8(8), out=bits)
    np.copyto(out, bits.view(np.int8))
    out -= out.dtype.type(8)


def _as(dtype: Any) -> Decoder:
    return lambda bits, out, spare: np.copyto(out, bits.view(dtype))


ELEMENTS: Final = {
    "f16": Element(16, "float", "f8", _as(np.float16)),
    "bf16": Element(16, "float", "f8", _bf16),
    "tf32": Element(32, "float", "f8", _tf32),
    "e4m3": Element(8, "float", "f8", _table(ml_dtypes.float8_e4m3fn)),
    "e5m2": Element(8, "float", "f8", _table(ml_dtypes.float8_e5m2)),
    "f64": Element(64, "double"),
    "u8": Element(8, "integer", "f4", _as(np.uint8)),
    "s8": Element(8, "integer", "f4", _as(np.int8)),
    "u4": Element(4, "integer", "f4", _as(np.uint8)),
    "s4": Element(4, "integer", "f4", _s4),
    "b1": Element(1, "bit"),
}
"""Multiplicands' types. ``b1`` comes in words of 32."""

QUIET: Final = {
    np.dtype(np.float32): np.uint32(0x7FFF_FFFF).view(np.float32),
    np.dtype(np.float16): np.uint16(0x7FFF).view(np.float16),
}
"""The canonical NaNs."""


def float_product(a: Matrices, b: Matrices, c: Matrices, total: Matrices, result: Matrices) -> None:
    """``result`` (float32 or float16) = A B + C of float64 A and B; ``total`` is float64 room of its shape."""
    with np.errstate(all="ignore"):
        np.matmul(a, b, out=total)
        np.add(total, c, out=total)
        np.copyto(result, total, casting="same_kind")
    odd = np.isnan(result)
    if odd.any():
        result[odd] = QUIET[result.dtype]


def double_product(a: Matrices, b: Matrices, c: Matrices, rounding: str) -> Matrices:
    """A B + C of float64, by fused multiply-adds in ascending k; ``rounding`` rn, rz, rm or rp."""
    total = c
    with np.errstate(all="ignore"):
        for k in range(a.shape[-1]):
            total = double.fma(a[..., :, k, None], b[..., k, None, :], total, rounding)
    return total


def integer_product(
    a: Matrices, b: Matrices, c: Matrices, total: Matrices, wide: Matrices, result: Matrices, saturate: bool
) -> None:
    """``result`` (int32) = A B + C of float32 A and B; ``total`` (float32) and ``wide`` (int64) are room of its shape."""
    np.matmul(a, b, out=total)
    np.copyto(wide, total, casting="unsafe")
    np.add(wide, c, out=wide)
    if saturate:
        np.clip(wide, -(1 << 31), (1 << 31) - 1, out=wide)
    np.copyto(result, wide, casting="same_kind")


def bit_product(a: Matrices, b: Matrices, c: Matrices, result: Matrices, operation: str) -> None:
    """``result`` (int32) = C plus the bits set in the xor or and of each row of A and column of B, words of 32 bits."""
    combine = np.bitwise_xor if operation == "xor" else np.bitwise_and
    np.copyto(result, c)
    for k in range(a.shape[-1]):
        np.add(result, np.bitwise_count(combine(a[..., :, k, None], b[..., k, None, :])), out=result)


# ---- sparse matrices -------------------------------------------------------------------------------------------------------


def expand(stored: Matrices, fields: NDArray[np.uint8], group: int, kept: int, run: int) -> Matrices:
    """The dense A of stored elements (..., rows, columns): of each ``group`` columns ``kept`` are stored, in runs of ``run``.

    ``fields`` (..., rows, groups) are the four metadata bits of each group: two places, the low bits' first; where only one
    element is stored (tf32) the place is the upper two bits' half.
    """
    groups, places = fields.shape[-1], group // run
    unit = np.dtype(f"u{stored.dtype.itemsize * run}")
    values = stored.view(unit).reshape(*stored.shape[:-1], groups, kept // run)
    which = (fields >> 3,) if kept == 1 else (fields & 3, fields >> 2)
    dense = np.empty((*stored.shape[:-1], groups, places), unit)
    for place in range(places):
        chosen = [values[..., i] * (where == place) for i, where in enumerate(which)]
        dense[..., place] = chosen[0] if len(chosen) == 1 else chosen[0] + chosen[1]
    return dense.reshape(*stored.shape[:-1], groups * places).view(stored.dtype)


def meaningful(kept: int, ordered: bool) -> NDArray[np.bool_]:
    """Which of the sixteen metadata values mean something (9.7.14.6.1): two different places, ascending if ``ordered``; where
    one element is stored 0b0100 and 0b1110."""
    first, second = np.arange(16) & 3, np.arange(16) >> 2
    if kept == 1:
        return np.isin(np.arange(16), (0b0100, 0b1110))
    return first < second if ordered else first != second
