"""Names of Triton's library that are not public, and that public programs use: ``tl.core.CONSTEXPR_0``, ``tl.standard._log2``.

They are entered in `core` and `standard`.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

from typing import Any, Final

from weft import dtypes
from weft.dtypes import DType
from weft.language import maximum, minimum, where
from weft.language.core import constexpr, constexpr_function
from weft.runtime.jit import jit

CONSTEXPR_0: Final = constexpr(0)


def _int_dtype(bitwidth: int, signed: bool) -> DType:
    """The dtype of integers of a width. Raises: `ValueError` for a width that none has."""
    if bitwidth == 1:
        return dtypes.bool_
    return dtypes.named(f"int{bitwidth}" if signed else f"uint{bitwidth}")


get_int_dtype = constexpr_function(_int_dtype)


@constexpr_function
def _log2(i: Any) -> Any:
    """The logarithm of a power of two; of other numbers, that of the next lower one."""
    return max(i.bit_length() - 1, 0)


@constexpr_function
def _is_power_of_two(i: Any) -> Any:
    """Whether a number is a power of two."""
    return i > 0 and i & (i - 1) == 0


@jit
def _sum_combine(a: Any, b: Any):
    return a + b


@jit
def _prod_combine(a: Any, b: Any):
    return a * b


@jit
def _xor_combine(a: Any, b: Any):
    return a ^ b


@jit
def _or_combine(x: Any, y: Any):
    return x | y


@jit
def _elementwise_max(a: Any, b: Any):
    return maximum(a, b)


@jit
def _elementwise_min(a: Any, b: Any):
    return minimum(a, b)


@jit
def _chosen(ahead: Any, value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: constexpr):
    first = ahead | ((value1 == value2) & (index1 < index2)) if tie_break_left else ahead
    return where(first, value1, value2), where(first, index1, index2)


@jit
def _argmax_combine(value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: constexpr):
    return _chosen(value1 > value2, value1, index1, value2, index2, tie_break_left)


@jit
def _argmax_combine_tie_break_left(value1: Any, index1: Any, value2: Any, index2: Any):
    return _argmax_combine(value1, index1, value2, index2, True)


@jit
def _argmax_combine_tie_break_fast(value1: Any, index1: Any, value2: Any, index2: Any):
    return _argmax_combine(value1, index1, value2, index2, False)


@jit
def _argmin_combine(value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: constexpr):
    return _chosen(value1 < value2, value1, index1, value2, index2, tie_break_left)


@jit
def _argmin_combine_tie_break_left(value1: Any, index1: Any, value2: Any, index2: Any):
    return _argmin_combine(value1, index1, value2, index2, True)


@jit
def _argmin_combine_tie_break_fast(value1: Any, index1: Any, value2: Any, index2: Any):
    return _argmin_combine(value1, index1, value2, index2, False)
