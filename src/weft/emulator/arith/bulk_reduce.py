"""The reductions of bulk and tensor copies, element by element (PTX ISA 9.7.10.28.4.2 and .5.4).

``old`` is what memory has and ``new`` what is copied onto it, both as bytes; the result is the memory's. Integer sums wrap;
floating-point sums are rounded to nearest even, subnormal numbers kept. Half precision sums are computed in float32 and rounded
once more, which is exact: 24 bits are at least twice 11 and two more. A minimum or maximum with a NaN is the other operand, and
-0 is below +0; the ISA says neither. NaNs that arise are the canonical ones of NVIDIA's units.

    inc     old >= new ? 0 : old + 1            counts round in 0 .. new
    dec     old == 0 or old > new ? new : old - 1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Reduction = Callable[[Bytes, Bytes], Bytes]

_DTYPES: Final[dict[str, Any]] = {
    "b32": np.uint32,
    "b64": np.uint64,
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}

_CANONICAL: Final = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFF_FFFF}

_BITWISE: Final[dict[str, Any]] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}

INTEGER_SUMS: Final = ("u32", "s32", "u64")
EXTREMES: Final = ("u32", "s32", "u64", "s64", "f16", "bf16")

GLOBAL: Final[dict[str, tuple[str, ...]]] = {
    "add": (*INTEGER_SUMS, "f16", "bf16", "f32", "f64"),
    "min": EXTREMES,
    "max": EXTREMES,
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}
"""The types each operation has in global memory."""

SHARED: Final[dict[str, tuple[str, ...]]] = {
    **GLOBAL,
    "add": INTEGER_SUMS,
    "min": ("u32", "s32"),
    "max": ("u32", "s32"),
    "and": ("b32",),
    "or": ("b32",),
    "xor": ("b32",),
}
"""The types each operation has in shared memory."""


def reduction(operation: str, kind: str) -> Reduction:
    """The reduction ``operation`` of elements of PTX type ``kind``, which must be one of `GLOBAL`."""
    if kind not in GLOBAL[operation]:
        raise ValueError(f"there is no reduction {operation} of {kind}")
    dtype = _DTYPES[kind]
    compute = _float(operation, kind) if kind in ("f16", "bf16", "f32", "f64") else _INTEGER[operation]

    def apply(old: Bytes, new: Bytes) -> Bytes:
        with np.errstate(all="ignore"):
            result = compute(np.ascontiguousarray(old).view(dtype), np.ascontiguousarray(new).view(dtype))
        return np.ascontiguousarray(result).view(np.uint8)

    return apply


def _inc(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    return np.where(old >= new, np.uint32(0), old + np.uint32(1))


def _dec(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    return np.where((old == 0) | (old > new), new, old - np.uint32(1))


_INTEGER: Final[dict[str, Any]] = {
    **_BITWISE,
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "inc": _inc,
    "dec": _dec,
}


def _float(operation: str, kind: str) -> Any:
    dtype = _DTYPES[kind]
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    wide = np.float64 if kind == "f64" else np.float32

    def compute(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        x, y = old.astype(wide), new.astype(wide)
        if operation == "add":
            result: NDArray[Any] = (x + y).astype(dtype)
        else:
            least = operation == "min"
            result = (np.fmin if least else np.fmax)(x, y).astype(dtype)
            signs = np.bitwise_or if least else np.bitwise_and
            result = np.where(x == y, signs(old.view(bits), new.view(bits)), result.view(bits)).view(dtype)
        if kind in _CANONICAL:
            result.view(bits)[np.isnan(result)] = _CANONICAL[kind]
        return result

    return compute
