"""What the descriptors of tcgen05.mma say, and the numbers in its operands (PTX ISA 9.7.16.4, 9.7.16.10).

The shape and the types of tcgen05.mma are no modifiers but 32 bits at run time, the *instruction descriptor*:

    bits          f16, tf32, f8f6f4, i8                        mxf8f6f4, mxf4, mxf4nvf4 (block scaling)
    0-1           sparsity selector                            the same
    2             sparse                                       the same
    3             saturate (i8)
    4-5           type of D: f16, f32, s32                     which byte of B's scales is first
    7-9, 10-12    types of A and B (`TYPES`)                   the same
    13, 14        A, B are negated                             the same
    15, 16        A, B are MN-major                            the same
    17-22         N / 8                                        the same
    23                                                         type of the scales: ue4m3, ue8m0
    24-28         M / 16                                       the same
    29-30         (30-31: largest shift of .ws)                which byte of A's scales is first

K follows from the kind: a row has 32 bytes, and of a sparse A that is half of it: then B has rows of 64 bytes. M is that of both
blocks with ``.cta_group::2``. Elements in shared memory:

- of 8, 16 and 32 bits: one after the other;
- of 4 and 6 bits in f8f6f4 and mxf8f6f4: 16 in each 16 bytes, packed from its first bit on; the rest of the 16 bytes is unused;
- of 4 bits in mxf4 and mxf4nvf4: two in each byte, the lower half first.

In tensor memory A has a row's 32 bytes in eight columns; there elements of 4 and 6 bits take a byte each, those of e2m1 in bits
2 to 5, the others in bits 0 to 5.

A scale multiplies the elements of its block along K: K / 1, K / 2 or K / 4. Scales lie in tensor memory: those of row r of A
(column r of B) in column r / 32 behind their address, lane r % 32, of each of the four groups of 32 lanes, a byte each. A group
of lanes has the scales of the columns of D that are in it.

The matrix descriptor is wgmma's (`weft.emulator.arith.descriptors`), but for bits 61 to 63, the swizzle: 0 none, 1 128B with
atoms of 32B, 2 128B, 4 64B, 6 32B. Bit 52, absolute addresses of the leading dimension, is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.descriptors import Descriptor
from weft.emulator.arith.products import ELEMENTS
from weft.emulator.arith.swizzle import Swizzle
from weft.emulator.arith.tcgen05_sparse import selectors

ROW: Final = 32
"""Bytes of a row of A or B along K."""


class Malformed(ValueError):
    """A descriptor that the ISA does not define, or the emulator does not know; the message says why."""


@dataclass(frozen=True)
class Kind:
    """A kind of tcgen05.mma: its depth, the types of A and B by their codes, those of D, its block of scales (0: none)."""

    name: str
    k: int
    types: dict[int, str]
    results: tuple[str, ...] = ("f16", "f32")
    scaled: bool = False


_NARROW: Final = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}

KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind("f16", 16, {0: "f16", 1: "bf16"}),
        Kind("tf32", 8, {2: "tf32"}, ("f32",)),
        Kind("f8f6f4", 32, _NARROW),
        Kind("i8", 32, {0: "u8", 1: "s8"}, ("s32",)),
        Kind("mxf8f6f4", 32, _NARROW, ("f32",), scaled=True),
        Kind("mxf4", 64, {1: "e2m1"}, ("f32",), scaled=True),
        Kind("mxf4nvf4", 64, {1: "e2m1"}, ("f32",), scaled=True),
    )
}

_RESULTS: Final = ("f16", "f32", "s32")
_SCALES: Final = ("ue4m3", "ue8m0")


@dataclass(frozen=True)
class Product:
    """A decoded instruction descriptor: D (m, n) += A (m, k) B (k, n)."""

    kind: Kind
    m: int
    n: int
    a: str
    b: str
    d: str
    negated: bool
    """Whether one of A and B is."""
    a_transposed: bool
    b_transposed: bool
    saturate: bool
    scale: str
    """The type of the scales; "" without."""
    a_scale: int
    b_scale: int
    """The first byte of each row's scales."""
    sparse: bool
    selector: int
    """The sparsity selector."""
    shift: int
    """The most columns by which B may be shifted."""

    @property
    def work(self) -> int:
        """Multiplications and additions; of a sparse A as if it were dense."""
        return 2 * self.m * self.n * self.depth

    @property
    def depth(self) -> int:
        """K."""
        return self.kind.k << self.sparse


@cache
def product(bits: int, name: str, stationary: bool, blocks: int = 1, sparse: bool = False) -> Product:
    """The instruction descriptor of ``.kind::name``, for ``blocks`` blocks and a ``sparse`` A. Raises `Malformed`."""
    kind = KINDS[name]

    def field(low: int, width: int) -> int:
        return bits >> low & (1 << width) - 1

    if field(2, 1) != sparse:
        raise Malformed("is of a sparse A, without .sp" if field(2, 1) else "is of a dense A, with .sp")
    if name in ("mxf4", "mxf4nvf4") and field(31, 1):
        raise Malformed("is of K = 96, which the emulator does not know")
    if sparse and field(0, 2) >= selectors(name) and not kind.scaled:
        raise Malformed(f"has sparsity selector {field(0, 2)}, which kind::{name} does not have")
    types: list[str] = []
    for matrix, low in (("A", 7), ("B", 10)):
        if (code := field(low, 3)) not in kind.types:
            raise Malformed(f"has type {code} of {matrix}, which kind::{name} does not have")
        types.append(kind.types[code])
    transposed = bool(field(15, 1)), bool(field(16, 1))
    a, b = types
    for matrix, kind_of, turned in zip("AB", types, transposed, strict=True):
        if turned and kind_of not in ELEMENTS:
            raise Malformed(f"has an MN-major {matrix} of {kind_of}, which is K-major only")
    d = "f32" if kind.scaled else (*_RESULTS, "")[field(4, 2)]
    if d not in kind.results:
        raise Malformed(f"has type {field(4, 2)} of D, which kind::{name} does not have")
    if d == "f16" and "bf16" in types:
        raise Malformed("has D of f16 and operands of bf16")
    m, n = 16 * field(24, 5), 8 * field(17, 6)
    _sized(kind, m, n, stationary, blocks, sparse)
    signs, saturates = field(13, 1) ^ field(14, 1), bool(field(3, 1)) and name == "i8"
    scaling = (_SCALES[field(23, 1)], field(29, 2), field(4, 2)) if kind.scaled else ("", 0, 0)
    selector = 0 if kind.scaled or not sparse else field(0, 2)
    shift = (0, 8, 16, 32)[field(30, 2)] if stationary else 0
    return Product(kind, m, n, a, b, d, bool(signs), *transposed, saturates, *scaling, sparse, selector, shift)


def _sized(kind: Kind, m: int, n: int, stationary: bool, blocks: int, sparse: bool) -> None:
    """Raises `Malformed` for sizes that there are not. Of pairs those that CUTLASS has, which are more than the ISA's."""
    rows = (32, 64, 128) if stationary else (128,) if kind.scaled else (64, 128)
    if stationary:
        known = n in (64, 128, 256)
    elif blocks == 2:
        rows = (256,) if kind.scaled and sparse else (128, 256)
        known = 8 < n <= 256 and n % (32 if kind.name == "i8" else 16) == 0
    elif kind.name == "i8":
        known = n in (8, 16, 24, 32) or n % 16 == 0 and 32 < n <= 256
        known = known and (m == 64 or n % 16 == 0)
    else:
        known = 8 <= n <= 256 and n % (16 if m == 128 and not kind.scaled else 8) == 0
    if m not in rows or not known:
        suffix = " with .ws" if stationary else " in two blocks" if blocks == 2 else ""
        raise Malformed(f"is of {m} rows and {n} columns, which kind::{kind.name}{suffix} does not have")


_SWIZZLES: Final = {
    0: Swizzle.NONE,
    1: Swizzle.B128_ATOM_32B,
    2: Swizzle.B128,
    4: Swizzle.B64,
    6: Swizzle.B32,
}


def descriptor(bits: int) -> Descriptor:
    """A matrix descriptor. Raises `Malformed`."""
    if (mode := bits >> 61 & 7) not in _SWIZZLES:
        raise Malformed(f"has swizzle {mode}, which there is not")
    if bits >> 52 & 1:
        raise Malformed("has an absolute leading address (bit 52), which the emulator does not know")
    found = Descriptor.decode(bits)
    return Descriptor(found.start, found.leading, found.stride, found.base_offset, _SWIZZLES[mode])


# ---- masks of columns ------------------------------------------------------------------------------------------------------


def columns_of_b(bits: int, p: Product) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """What a zero-column mask descriptor makes of B's N columns: which column each is, and which are zeros. Raises `Malformed`.

    Each of 1, 2 or 4 parts of the columns (M = 128, 64, 32) is spans of used columns and of zeros in turn. A part begins with
    zeros where its *first span* is 1, and its *start count* of columns is left out of the first span, all but one at most. The
    ISA's table of the fields (9.7.16.4.3) and its examples have the two spans the other way around: the examples are followed.
    """
    if bits & 0xC000_0070_0000_0000:
        raise Malformed("has reserved bits set")
    by = bits >> 56 & 63
    if by > (most := min(p.shift, 16 if p.m == 32 else 32)):
        raise Malformed(f"shifts columns by {by}, and the instruction descriptor allows {most}")
    column = np.arange(p.n)
    zero = np.zeros(p.n, np.bool_)
    if bits >> 39 & 1:
        skip, use = (bits >> 40 & 255) + 1, (bits >> 48 & 255) + 1
        width = p.n * p.m // 128
        for part in range(128 // p.m):
            first = bits >> 32 + part & 1
            start = min(bits >> 8 * part & 255, (skip if first else use) - 1)
            place = (np.arange(width) + start) % (skip + use)
            zero[part * width : (part + 1) * width] = place < skip if first else place >= use
    return column + by, zero


# ---- elements --------------------------------------------------------------------------------------------------------------


_TABLES: Final = {
    "e2m1": np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64),
    "e2m3": np.arange(64, dtype=np.uint8).view(ml_dtypes.float6_e2m3fn).astype(np.float64),
    "e3m2": np.arange(64, dtype=np.uint8).view(ml_dtypes.float6_e3m2fn).astype(np.float64),
    "ue4m3": (np.arange(256, dtype=np.uint8) & 0x7F).view(ml_dtypes.float8_e4m3fn).astype(np.float64),
    "ue8m0": np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float64),
}
"""The numbers of narrow types, by their codes."""

_WIDTHS: Final = {"e2m1": 4, "e2m3": 6, "e3m2": 6}


def numbers(raw: NDArray[np.uint8], kind: str, *, dense: bool = False) -> NDArray[Any]:
    """What bytes (..., n) of shared memory hold, the last axis along K (or along the rows of an MN-major matrix); n is a
    multiple of 16. ``dense``: elements of 4 bits fill all of the bytes."""
    if kind not in _WIDTHS:
        element = ELEMENTS[kind]
        bits = np.ascontiguousarray(raw).view(f"u{element.bits // 8}").copy()
        found = np.empty(bits.shape, element.number)
        element.decode(bits, found, np.empty(bits.size, np.uint64))
        return found
    if dense:
        codes = np.stack([raw & 15, raw >> 4], axis=-1)
        return _TABLES[kind][codes].reshape(*raw.shape[:-1], -1)
    codes = unpacked(raw.reshape(*raw.shape[:-1], -1, 16), _WIDTHS[kind])
    return _TABLES[kind][codes].reshape(*raw.shape[:-1], -1)


def unpacked(units: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """The 16 elements of ``width`` bits that are packed from the first bit of each unit (..., 16) on, a byte each."""
    bits = np.unpackbits(units[..., : 2 * width], axis=-1, bitorder="little").reshape(*units.shape[:-1], 16, width)
    return np.packbits(bits, axis=-1, bitorder="little")[..., 0]


def contained(raw: NDArray[np.uint8], kind: str, *, dense: bool = False) -> NDArray[Any]:
    """What bytes (..., n) of tensor memory hold: narrow elements have a byte each, unless ``dense``."""
    if kind not in _WIDTHS or dense:
        return numbers(raw, kind, dense=dense)
    return _TABLES[kind][raw >> 2 & 15 if kind == "e2m1" else raw & 63]


def scales(raw: NDArray[np.uint8], kind: str) -> NDArray[np.float64]:
    """What bytes of scales mean."""
    return _TABLES[kind][raw]
