"""Which element types expressions may have, and what to say about the others.

Systems know more types than weft computes with (`dtypes.KNOWN` against `COMPUTED`). No node of such a type is built: the
operator that would build it raises, and the message names the cast that helps.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft import dtypes
from weft.dtypes import DType, format_within
from weft.semantics.core import Semantics

NARROW: Final = (
    *(dtypes.int2, dtypes.uint2, dtypes.int4, dtypes.uint4),
    *(dtypes.float4_e2m1fn, dtypes.float6_e2m3fn, dtypes.float6_e3m2fn),
    *(dtypes.float8_e3m4, dtypes.float8_e4m3, dtypes.float8_e4m3b11fnuz, dtypes.float8_e4m3fnuz),
    *(dtypes.float8_e5m2fnuz, dtypes.float8_e8m0fnu),
)
"""Types below 8 bits, and those of 8 bits that kernels do not compute with: they see wider ones (`narrow`)."""

COMPUTED: Final = (*dtypes.ALL, dtypes.complex64, dtypes.complex128, *NARROW)
"""The types expressions may have: those of kernels, and complex numbers, which kernels see as their two parts."""


class UnsupportedDType(TypeError):
    """A type that a system has, or an array brings, and weft does not compute with."""


def require(dtype: DType, what: str) -> DType:
    """The dtype if expressions may have it; else `UnsupportedDType` about ``what``."""
    if dtype in COMPUTED:
        return dtype
    raise UnsupportedDType(f"{what} {dtype}, which weft does not compute with; cast to {holder(dtype)} first")


def holder(dtype: DType) -> DType:
    """The narrowest type of `dtypes.ALL` of the same kind that holds every value of ``dtype``."""
    if dtype.is_complex:
        return dtypes.complex64
    if dtype.is_integer:
        return next(d for d in dtypes.ALL if d.is_integer and d.min <= dtype.min and dtype.max <= d.max)
    floats = (dtypes.float16, dtypes.float32, dtypes.float64)
    return next(d for d in floats if format_within(dtype, d))


def dtype_of(array: np.dtype[Any]) -> DType:
    """The type of a NumPy array's elements; `UnsupportedDType` for those that weft does not compute with."""
    if not array.isnative:
        raise UnsupportedDType(
            f"the array has byte-swapped {array} elements; pass array.astype(array.dtype.newbyteorder('='))"
        )
    try:
        dtype = dtypes.named(array.name)
    except ValueError:
        known = ", ".join(map(str, COMPUTED))
        raise UnsupportedDType(f"the array has {array} elements; weft computes with {known}") from None
    return require(dtype, "the array has elements of")


def read_dtype(dtype: object, system: Semantics | None = None) -> DType:
    """A dtype in any spelling: weft's, a name (as ``system`` reads it), NumPy's (also ``np.float32`` and ``float``);
    `ValueError` or `TypeError` for what is none."""
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        return dtypes.named(dtype) if system is None else system.named(dtype)
    if type(dtype).__module__ == "torch":
        return dtypes.named(str(dtype).removeprefix("torch."))
    try:
        return dtypes.named(np.dtype(dtype).name)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        raise TypeError(f"expected a dtype like 'float32' or numpy.float32, found {dtype!r}") from None
