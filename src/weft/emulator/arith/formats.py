"""The floating-point formats NumPy does not compute with (PTX ISA 5.2.3), as data, and one rounding into any of them.

A format is a row: field widths, bias, its largest finite code, and what infinity and NaN are in it. A value's code is
its distance from zero counted in the format's own numbers, whose spacing doubles from one power of two to the next:

    code(x) = (e - e_min) * 2**m + x / 2**(e - m)          e the exponent of x, at least e_min; m bits of mantissa

so rounding x / 2**(e - m) to an integer is all there is to rounding x: subnormal numbers are those with e = e_min, and a
carry into the next power of two is the next code. For e2m1 (m = 1, e_min = 0):

    x       0.5  1.0  1.5  2.0  3.0  4.0  6.0
    code      1    2    3    4    5    6    7

Values to be encoded are float64: exact, or with what `weft.emulator.arith.rounding` promises about an inexact one. Functions
expect NumPy's floating-point warnings to be off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.rounding import F32, F64

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

OUTSIDE: Final = 0x7FF7
"""The NaN that tensor copies write for what is outside a tensor, in both halves or all quarters of wider elements. The ISA calls
it OOB-NaN and does not say its bits: others measured them on sm_100 and sm_120."""


@dataclass(frozen=True)
class Format:
    """A binary floating-point format. ``infinity`` and ``nan`` are codes without sign, None where there is no such code;
    ``spill`` bits follow the mantissa in storage (tf32 is the upper part of a float32)."""

    name: str
    exponent: int
    mantissa: int
    bias: int
    largest: int
    """The code of the largest finite number."""
    infinity: int | None
    nan: int | None
    signed: bool = True
    storage: int = 8
    """Bits of the unsigned integers codes are kept in."""
    spill: int = 0

    @property
    def sign(self) -> int:
        """The sign's bit; 0 where there is none."""
        return 1 << (self.exponent + self.mantissa) if self.signed else 0

    @property
    def bits(self) -> int:
        """How wide a code is, the spill not counted."""
        return self.signed + self.exponent + self.mantissa

    @property
    def dtype(self) -> np.dtype[Any]:
        """What codes are kept in."""
        return np.dtype(f"u{self.storage // 8}")


def _ieee(name: str, exponent: int, mantissa: int, storage: int, spill: int = 0) -> Format:
    top = ((1 << exponent) - 1) << mantissa
    return Format(
        name,
        exponent,
        mantissa,
        (1 << (exponent - 1)) - 1,
        top - 1,
        top,
        top | ((1 << mantissa) - 1),
        True,
        storage,
        spill,
    )


F16: Final = _ieee("f16", 5, 10, 16)
BF16: Final = _ieee("bf16", 8, 7, 16)
TF32: Final = _ieee("tf32", 8, 10, 32, 13)
E4M3: Final = Format("e4m3", 4, 3, 7, 0x7E, None, 0x7F)
E5M2: Final = _ieee("e5m2", 5, 2, 8)
E2M3: Final = Format("e2m3", 2, 3, 1, 0x1F, None, None)
E3M2: Final = Format("e3m2", 3, 2, 3, 0x1F, None, None)
E2M1: Final = Format("e2m1", 2, 1, 1, 0x07, None, None)
UE8M0: Final = Format("ue8m0", 8, 0, 127, 0xFE, None, 0xFF, signed=False)

FORMATS: Final = {f.name: f for f in (F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, UE8M0)}
"""The formats by their PTX names. The NaN of each is the one conversions produce."""


def _away(x: F64) -> F64:
    return np.trunc(x + np.copysign(0.5, x))


ROUND: Final[dict[str, Callable[[Any], Any]]] = {
    "rn": np.rint,
    "rna": _away,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
}
"""Rounding to integers, by PTX's names for the modes (rna: to nearest, ties away from zero)."""


def encode(
    x: F64,
    target: Format,
    mode: str,
    *,
    satfinite: bool = False,
    relu: bool = False,
    random: tuple[Any, int] | None = None,
) -> Codes:
    """The codes of values in a signed format, each rounded once; of tf32, with its low 13 bits.

    Overflow gives infinity, or the largest number where the mode rounds that way or ``satfinite`` asks for it; infinities
    stay what they are without ``satfinite``. Formats without infinity need it. NaN becomes the format's NaN, in formats
    without one the largest number. ``relu`` makes negative results +0. Mode ``rs`` takes random bits, (values, how many): they
    are added to what is cut off, aligned to its upper end, and a carry rounds away from zero.
    """
    size = np.abs(x)
    m, least = target.mantissa, 2 - target.bias  # frexp's exponents are one more than the format's
    exponent = np.frexp(np.maximum(size, 2.0 ** (least - 1)))[1]
    digits = np.ldexp(x, (m + 1) - exponent)
    if random is not None:
        whole = np.floor(np.abs(digits) + np.ldexp(np.asarray(random[0], np.float64), -random[1]))
    else:
        whole = np.abs(ROUND[mode](digits))
    finite = np.isfinite(x)
    codes = (exponent.astype(np.int64) - least << m) + np.where(finite, whole, 0).astype(np.int64)
    negative = np.signbit(x)
    codes = _overflow(codes, finite, negative, target, mode, satfinite)
    codes = np.where(negative, 0 if relu else codes | target.sign, codes)
    codes = np.where(np.isnan(x), target.largest if target.nan is None else target.nan, codes)
    if target.spill:
        codes = codes << target.spill | np.where(np.isnan(x), (1 << target.spill) - 1, 0)
    return codes.astype(target.dtype)


def _overflow(
    codes: NDArray[np.int64], finite: NDArray[Any], negative: NDArray[Any], target: Format, mode: str, satfinite: bool
) -> NDArray[np.int64]:
    over = codes > target.largest
    if satfinite or target.infinity is None:
        return np.where(over | ~finite, target.largest, codes)
    infinity: Any = target.infinity
    if mode == "rz":
        beyond: Any = target.largest
    elif mode in ("rm", "rp"):
        beyond = np.where(negative == (mode == "rm"), infinity, target.largest)
    else:
        beyond = infinity
    return np.where(finite, np.where(over, beyond, codes), infinity)


def encode_scale(x: F64, mode: str, *, satfinite: bool = False) -> Codes:
    """The ue8m0 codes of values: powers of two from 2**-127 (code 0) to 2**127 (0xFE), NaN 0xFF; there is no sign.

    Rounded to a power of two, up (rp) or down (rz), of the absolute value. What is too small, zero too, is code 0.
    What is too large, or infinite, is NaN, or with ``satfinite`` 0xFE.
    """
    fraction, exponent = np.frexp(np.abs(x))  # fraction in [0.5, 1)
    codes = exponent.astype(np.int64) + 126 + ((fraction > 0.5) if mode == "rp" else 0)
    codes = np.where(x == 0, 0, np.maximum(codes, 0))
    codes = np.where((codes > UE8M0.largest) | np.isinf(x), 0xFE if satfinite else 0xFF, codes)
    return np.where(np.isnan(x), 0xFF, codes).astype(np.uint8)


@cache
def table(source: Format) -> F32:
    """The value of each code of a format of at most 8 bits, as float32 (which has them all)."""
    codes = np.arange(256)
    magnitude = codes & ((source.sign or 256) - 1)
    field, digits = magnitude >> source.mantissa, magnitude & ((1 << source.mantissa) - 1)
    hidden = (field > 0) | (not source.mantissa)
    exponent = np.maximum(field, 1 if source.mantissa else 0) - source.bias
    with np.errstate(all="ignore"):
        values = np.ldexp(digits + (hidden << source.mantissa), exponent - source.mantissa)
        values = np.where(magnitude > source.largest, np.nan, values)
        if source.infinity is not None:
            values = np.where(magnitude == source.infinity, np.inf, values)
        negative = source.signed & (codes & source.sign != 0)
        result = np.where(negative, -values, values).astype(np.float32)
    result.flags.writeable = False
    return result


def decode(codes: Codes, source: Format) -> F32:
    """The values of codes, exactly."""
    if source is F16:
        return codes.view(np.float16).astype(np.float32)
    if source is BF16:
        return codes.view(ml_dtypes.bfloat16).astype(np.float32)
    return table(source)[codes]


@cache
def narrow_table(target: Format, source: Format, relu: bool) -> Codes:
    """What each of the 65536 f16 or bf16 codes is in a narrow format: to nearest, ``.satfinite``."""
    values = decode(np.arange(1 << 16, dtype=np.uint16), source)
    with np.errstate(all="ignore"):
        codes = encode(values.astype(np.float64), target, "rn", satfinite=True, relu=relu)
    codes.flags.writeable = False
    return codes


@cache
def half_table(source: Format, target: Format, relu: bool) -> Codes:
    """What each of the 256 codes of a narrow format is in f16 or bf16, exactly (with NaN canonical)."""
    values = table(source)
    with np.errstate(all="ignore"):
        codes = encode(values.astype(np.float64), target, "rn", relu=relu)
    codes.flags.writeable = False
    return codes


def to_odd_bfloat(x: F32) -> Codes:
    """Float32 values rounded to odd in bf16: what is to be rounded to 6 bits or fewer may be rounded from there. NaN stays."""
    bits = x.view(np.uint32)
    return (bits >> np.uint32(16) | ((bits & np.uint32(0xFFFF)) != 0)).astype(np.uint16)


def to_half(x: F32) -> Codes:
    """Float32 values rounded to f16, to nearest; NaNs are canonical."""
    return _settle(x.astype(np.float16).view(np.uint16), x)


def to_bfloat(x: F32) -> Codes:
    """Float32 values rounded to bf16, to nearest; NaNs are canonical."""
    return _settle(x.astype(ml_dtypes.bfloat16).view(np.uint16), x)


def to_tf32(x: F32) -> Codes:
    """Float32 values rounded to tf32, to nearest and ties away from zero; NaNs are canonical."""
    return _settle((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFF_E000), x, 0x7FFF_FFFF)


def half_of_exact(x: F64) -> Codes:
    """Float64 values, as `encode` takes them, rounded to f16, to nearest; NaNs are canonical."""
    return _settle(np.asarray(x).astype(np.float16).view(np.uint16), x)


_LAST_15: Final = np.uint32(0x7FFF)


def bfloat_of_exact(x: F64) -> Codes:
    """Float64 values, as `encode` takes them, rounded to bf16, to nearest; NaNs are canonical.

    Through float32, which is rounded to odd where one of them may be a boundary of bf16: those end in 15 zeros.
    """
    near = np.asarray(x).astype(np.float32)
    if np.count_nonzero(near.view(np.uint32) & _LAST_15) == np.count_nonzero(near):
        return to_bfloat(near)
    wide = near.astype(np.float64)
    inexact = wide != x
    if not np.count_nonzero(inexact):
        return to_bfloat(near)
    bits = near.view(np.int32)
    away = np.where(np.abs(x) > np.abs(wide), 1, -1)
    odd = bits + away * (inexact & ((bits & 1) == 0) & np.isfinite(near))
    return to_bfloat(odd.astype(np.int32).view(np.float32))


def _settle(codes: Codes, x: Any, nan: int = 0x7FFF) -> Codes:
    flat = x.reshape(-1)
    squares = flat.dot(flat)
    if squares != squares:  # noqa: PLR0124 - NaN is what differs from itself
        codes = np.asarray(codes)
        codes[np.isnan(x)] = nan
    return codes
