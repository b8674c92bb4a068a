"""The conversions between element types that systems name, in NumPy, written for clarity and not for speed, as is
`weft.semantics.evaluate`.

They differ in how a float becomes an integer, in whether narrowing integers wrap, and in what becomes of subnormal numbers.
Every number goes through Python's integers or fractions, so that it is rounded once, and to formats that NumPy does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.dtypes import DType

Array: TypeAlias = NDArray[Any]


def by_float32(source: DType, target: DType) -> bool:
    """Whether C++ libraries convert by way of float32, and round twice: from what float32 does not hold to narrower floats
    (integers to float16 are rounded the same either way). Types below 8 bits are left out: kernels have them from other types."""
    if not target.is_float or not 8 <= target.bits <= 16 or not (source.is_float or source.is_integer):
        return False
    return source == dtypes.float64 or (source.is_integer and source.bits >= 32 and target != dtypes.float16)


def wrap(value: int, dtype: DType) -> int:
    """``value`` modulo ``2**bits``, in the range of an integer type or bool."""
    return (value - dtype.min) % (1 << dtype.bits) + dtype.min


def dtype_of(x: Array) -> DType:
    """The element type of an array; `ValueError` where weft knows none."""
    return dtypes.named(x.dtype.name)


def integers(x: Array) -> Array:
    """An array of Python's integers."""
    return np.asarray(np.frompyfunc(int, 1, 1)(x), dtype=object)


def wrapped(x: Array, dtype: DType) -> Array:
    """Python's integers in an integer type or bool."""
    least, mask = dtype.min, (1 << dtype.bits) - 1
    flat = [(v - least & mask) + least for v in np.asarray(x, dtype=object).ravel().tolist()]
    return np.array(flat, dtype=np.int64 if dtype.signed else np.uint64).astype(dtype.numpy).reshape(np.shape(x))


def nearest(value: Fraction, dtype: DType) -> float:
    """A number rounded to a floating-point type, to nearest even."""
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    ulp = Fraction(2) ** (max(exponent, 1 - dtype.bias) - dtype.mantissa)
    near = round(value / ulp) * ulp
    if abs(near) > Fraction(dtype.largest):
        if not dtype.has_nan:
            return math.copysign(dtype.largest, value)
        return math.nan if dtype.finite_only else math.copysign(math.inf, value)
    return math.copysign(float(near), value)


def _to_float(x: Array, source: DType, target: DType) -> Array:
    if not source.is_float:
        whole = np.asarray(integers(x), dtype=object)
        flat = [nearest(Fraction(v), target) for v in whole.ravel().tolist()]
    else:
        values: list[float] = x.astype(np.float64).ravel().tolist()
        flat = [nearest(Fraction(v), target) if math.isfinite(v) and v else v for v in values]
    return np.array(flat, np.float64).astype(target.numpy).reshape(x.shape)


def _saturate(value: int, dtype: DType) -> int:
    return min(max(value, dtype.min), dtype.max)


def _truncated(value: float, dtype: DType) -> int:
    if math.isnan(value):
        return 0
    return _saturate(int(value), dtype) if math.isfinite(value) else dtype.max if value > 0 else dtype.min


def _truncated_as_x86(value: float, dtype: DType) -> int:
    wide = dtypes.int64 if dtype.bits == 64 or dtype == dtypes.uint32 else dtypes.int32
    whole = int(value) if math.isfinite(value) else None
    if dtype == dtypes.uint64:
        if whole is not None and wide.min <= whole <= dtype.max:
            return whole
        return 0 if value > 0 else 1 << 63  # NaN too
    return whole if whole is not None and wide.min <= whole <= wide.max else wide.min


def _rounded(value: float, dtype: DType) -> int:
    if math.isnan(value):
        return _truncated_as_x86(value, dtype)
    if math.isinf(value):
        return _truncated(value, dtype)
    whole = math.floor(Fraction(abs(value)) + Fraction(1, 2))
    return _saturate(whole if value > 0 else -whole, dtype)


def flush(x: Array, dtype: DType) -> Array:
    """Numbers below the type's normal range as zeros of their sign. Types whose subnormals are normal numbers of the type they
    are computed in keep them."""
    compute = dtype.compute
    if dtype.bias < compute.bias:
        return x
    return np.where(np.abs(x) < np.finfo(compute.numpy).tiny, np.copysign(np.zeros_like(x), x), x)


def _flushed(x: Array, source: DType, target: DType) -> Array:
    """XLA's conversion of a float: ``x`` without subnormal numbers, and those of the outcome are zeros too."""
    x = flush(x.astype(source.compute.numpy), source)
    if target == dtypes.bfloat16:
        with np.errstate(over="ignore"):
            x = x.astype(np.float32)
    elif not target.is_float:
        return x
    wide = flush(convert("convert", x, target).astype(target.compute.numpy), target)
    return wide.astype(target.numpy)


_FLOAT_TO_INTEGER: Final[Mapping[str, Callable[[float, DType], int]]] = {
    "convert": _truncated,
    "convert_by_float32": _truncated,
    "convert_flushed": _truncated,
    "convert_truth": _truncated,
    "convert_wrap": _truncated_as_x86,
    "convert_wrap_saturated": _truncated_as_x86,
    "convert_round": _rounded,
}


def convert(meaning: str, array: Any, target: DType) -> Array:
    """``array`` in another element type, by the conversion of that name; `ValueError` for another name. Floats round once, to
    nearest even; beyond the largest finite number is infinity, in a format without infinities NaN."""
    if meaning not in _FLOAT_TO_INTEGER:
        raise ValueError(f"'{meaning}' is no conversion; they are {', '.join(_FLOAT_TO_INTEGER)}")
    x: Array = np.asarray(array)
    source = dtype_of(x)
    if source == target:
        return x
    if target.is_complex:
        with np.errstate(all="ignore"):
            return x.astype(target.numpy)
    if source.is_complex:
        return np.asarray(x != 0) if target.is_bool else convert(meaning, np.real(x), target)
    if meaning == "convert_by_float32":
        return convert("convert", convert("convert", x, dtypes.float32), target)
    if meaning == "convert_truth" and source.is_float and target.is_bool:
        normal = flush(x.astype(source.compute.numpy), source)
        return (normal < 0) | (normal > 0)
    if meaning == "convert_flushed" and source.is_float:
        return convert("convert", _flushed(x, source, target), target)
    if target.is_float:
        if meaning == "convert_wrap_saturated" and target == dtypes.float8_e4m3fn:
            x = convert("convert", x, dtypes.float32)
            x = np.clip(x.astype(np.float64), -target.largest, target.largest)
            source = dtypes.float64
        return _to_float(x, source, target)
    if not source.is_float:
        whole = integers(x)
        if target.is_bool:
            return np.asarray(whole != 0).astype(np.bool_)
        if meaning == "convert_round":
            whole = np.asarray(np.frompyfunc(lambda v: _saturate(v, target), 1, 1)(whole), dtype=object)
        return wrapped(whole, target)
    values: list[float] = x.astype(np.float64).ravel().tolist()
    if target.is_bool:
        wide = dtypes.int64 if meaning == "convert_round" else None
        flat = [v != 0 if wide is None else _rounded(v, wide) != 0 for v in values]
        return np.array(flat, np.bool_).reshape(x.shape)
    function = _FLOAT_TO_INTEGER[meaning]
    return wrapped(np.array([function(v, target) for v in values], dtype=object).reshape(x.shape), target)
