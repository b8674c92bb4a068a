"""Compile-time numbers as elements: rounded once, to nearest even, straight to the target format.

NumPy is not used to convert: its scalars warn where a literal overflows, and ml_dtypes rounds a double to bfloat16 through
float32, hence twice: 1 + 2**-8 + 2**-30 becomes 1.0 instead of 1.0078125.

A format with p mantissa bits and least exponent m holds the multiples of ``2**(max(e, m) - p)`` around a number of
exponent e, so rounding is: scale by that power (exact), round to an integer (Python's ``round`` is half to even), scale
back.
"""

from __future__ import annotations

import math

from weft.dtypes import DType


def round_to(value: float, dtype: DType) -> float:
    """``value`` rounded to a floating-point ``dtype``: overflow is infinity, or NaN in a format without infinities. A format that
    saturates rounds ties away from zero, and NaN is its greatest number too."""
    if dtype.saturates:
        numbers = dtype.values[: dtype.saturates + 1]
        size = min(abs(value), float(numbers[-1])) if not math.isnan(value) else float(numbers[-1])
        return math.copysign(float(max(numbers, key=lambda number: (-abs(number - size), number))), value)
    if dtype.bits == 64 or value == 0.0 or math.isnan(value):
        return value
    top = dtype.largest
    if abs(value) < 2 * top:  # beyond, scaling back could overflow the double
        least = 1 - dtype.bias
        unit = max(math.frexp(value)[1] - 1, least) - dtype.mantissa
        scaled = round(math.ldexp(value, -unit))
        result = math.copysign(math.ldexp(float(scaled), unit), value)
        if abs(result) <= top:
            return result
    return math.nan if dtype.finite_only else math.copysign(math.inf, value)


def element(value: bool | int | float, dtype: DType) -> bool | int | float:
    """``value`` as an element of ``dtype``. Integers must be in range (the semantics has checked it); a number becomes
    a bool as ``!= 0``."""
    if dtype.is_float:
        try:
            return round_to(float(value), dtype)
        except OverflowError:  # an int beyond double's range
            return round_to(math.inf if value > 0 else -math.inf, dtype)
    return bool(value) if dtype.is_bool else int(value)


def represents(dtype: DType, value: bool | int | float) -> bool:
    """Whether ``dtype`` takes ``value`` as a literal: floats take every number (and round), integers the whole numbers
    in range that are written as integers, bool only bools."""
    if dtype.is_float or isinstance(value, bool):
        return True
    return dtype.is_integer and isinstance(value, int) and dtype.min <= value <= dtype.max
