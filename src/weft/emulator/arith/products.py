"""Products of small matrices, as tensor cores are said to compute them: D = A B + C for each warp.

The PTX ISA leaves most of the arithmetic open: "accumulation order, rounding and handling of subnormal inputs are unspecified"
(9.7.14.5.14). One could imitate a generation of hardware, which aligns the products of a step to the largest of them and cuts
off what does not fit. Here it is defined once, as what hardware approximates:

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

MAX_EXACT: Final = 1 << 24
"""Integers up to here are float32 values."""


@dataclass(frozen=True)
class Element:
    """A multiplicand's type: ``bits`` wide, and how unsigned integers with those bits become numbers to multiply."""

    bits: int
    family: str
    """"float", "double", "integer" or "bit": which products it takes part in."""
    decode: Callable[[NDArray[Any]], NDArray[Any]]


def _table(dtype: Any) -> Callable[[NDArray[Any]], NDArray[Any]]:
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    return lambda bits: values.take(bits)


def _bf16(bits: NDArray[Any]) -> NDArray[Any]:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _tf32(bits: NDArray[Any]) -> NDArray[Any]:
    return (bits & np.uint32(0xFFFF_E000)).view(np.float32).astype(np.float64)


ELEMENTS: Final = {
    "f16": Element(16, "float", lambda bits: bits.view(np.float16).astype(np.float64)),
    "bf16": Element(16, "float", _bf16),
    "tf32": Element(32, "float", _tf32),
    "e4m3": Element(8, "float", _table(ml_dtypes.float8_e4m3fn)),
    "e5m2": Element(8, "float", _table(ml_dtypes.float8_e5m2)),
    "f64": Element(64, "double", lambda bits: bits.view(np.float64)),
    "u8": Element(8, "integer", lambda bits: bits.astype(np.float32)),
    "s8": Element(8, "integer", lambda bits: bits.view(np.int8).astype(np.float32)),
    "u4": Element(4, "integer", lambda bits: bits.astype(np.float32)),
    "s4": Element(4, "integer", lambda bits: ((bits ^ 8).view(np.int8) - np.int8(8)).astype(np.float32)),
    "b1": Element(1, "bit", lambda bits: bits),
}
"""Multiplicands' types. ``b1`` is decoded in words of 32."""

QUIET: Final = {"f32": np.uint32(0x7FFF_FFFF).view(np.float32), "f16": np.uint16(0x7FFF).view(np.float16)}
"""The canonical NaNs."""


def float_product(a: Matrices, b: Matrices, c: Matrices, result: str) -> Matrices:
    """A B + C of decoded floats (float64), rounded to ``result``, "f32" or "f16"."""
    with np.errstate(all="ignore"):
        total = np.matmul(a, b)
        total += c
        rounded = total.astype(QUIET[result].dtype)
    if np.isnan(rounded).any():
        rounded[np.isnan(rounded)] = QUIET[result]
    return rounded


def double_product(a: Matrices, b: Matrices, c: Matrices, rounding: str) -> Matrices:
    """A B + C of float64, by fused multiply-adds in ascending k; ``rounding`` rn, rz, rm or rp."""
    total = c
    with np.errstate(all="ignore"):
        for k in range(a.shape[-1]):
            total = double.fma(a[..., :, k, None], b[..., k, None, :], total, rounding)
    return total


def integer_product(a: Matrices, b: Matrices, c: Matrices, saturate: bool) -> Matrices:
    """A B + C of decoded integers and C int32, as int32."""
    total = np.matmul(a, b).astype(np.int64)
    total += c
    if saturate:
        np.clip(total, -(1 << 31), (1 << 31) - 1, out=total)
    return total.astype(np.int32)


def bit_product(a: Matrices, b: Matrices, c: Matrices, operation: str) -> Matrices:
    """The bits set in the xor or and of each row of A and column of B, plus C: words of 32 bits along the contraction."""
    combine = np.bitwise_xor if operation == "xor" else np.bitwise_and
    counts = np.bitwise_count(combine(a[..., :, :, None], b[..., None, :, :]))
    return (counts.sum(axis=-2, dtype=np.int64) + c).astype(np.int32)


# ---- sparse matrices -------------------------------------------------------------------------------------------------------


def expand(stored: Matrices, fields: NDArray[np.uint8], group: int, kept: int, run: int) -> Matrices:
    """The dense A of stored elements (..., rows, columns): of each ``group`` columns ``kept`` are stored, in runs of ``run``.

    ``fields`` (..., rows, groups) are the four metadata bits of each group: two places, the low bits' first; where only one
    element is stored (tf32) the place is the upper two bits' half.
    """
    groups = fields.shape[-1]
    dense = np.zeros((*stored.shape[:-1], groups, group // run, run), stored.dtype)
    places = (fields >> 3)[..., None] if kept == 1 else np.stack((fields & 3, fields >> 2), axis=-1)
    values = stored.reshape(*stored.shape[:-1], groups, kept // run, run)
    np.put_along_axis(dense, places.astype(np.intp)[..., None], values, axis=-2)
    return dense.reshape(*stored.shape[:-1], groups * group)


def meaningful(kept: int, ordered: bool) -> NDArray[np.bool_]:
    """Which of the sixteen metadata values mean something (9.7.14.6.1): two different places, ascending if ``ordered``; where
    one element is stored 0b0100 and 0b1110."""
    first, second = np.arange(16) & 3, np.arange(16) >> 2
    if kept == 1:
        return np.isin(np.arange(16), (0b0100, 0b1110))
    return first < second if ordered else first != second
