"""Conversions of floats to narrower ones, rounded towards zero.

The nearest float is taken first. Where it is larger in magnitude, the float before it is wanted: its bits, read as an integer,
are smaller by 1, for either sign. An infinity goes to the largest number the same way, and so does the NaN that a format without
infinities gives for what is out of range.
"""

from __future__ import annotations

from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.builder import Builder
from weft.frontend.values import Tensor

_WORDS: Final = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32}


def towards_zero(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    """``x``, of floats, as floats of the narrower ``dtype``."""
    near = b.cast(x, dtype)
    back, word = b.cast(near, x.dtype), _WORDS[dtype.bits]
    bits = b.bitcast(near, word)
    larger = b.compare("gt", b.unary("abs", back), b.unary("abs", x))
    before = b.binary("sub", bits, b.constant(1, word, x.shape))
    if not dtype.has_negative_zero:  # before the least negative number stands NaN
        is_nan = b.compare("eq", before, b.constant(word.min, word, x.shape))
        before = b.select(is_nan, b.constant(0, word, x.shape), before)
    result = b.select(larger, before, bits)
    if dtype.finite_only:
        lost = b.binary("and", b.compare("ne", back, back), b.compare("eq", x, x))
        largest = _largest(dtype)
        signed = b.select(
            b.compare("lt", x, b.constant(0.0, x.dtype, x.shape)),
            b.constant(largest - (1 << (dtype.bits - 1)), word, x.shape),
            b.constant(largest, word, x.shape),
        )
        result = b.select(lost, signed, result)
    return b.bitcast(result, dtype)


def _largest(dtype: DType) -> int:
    """The code of the largest number of a format without infinities: below that of NaN."""
    return (1 << (dtype.exponent + dtype.mantissa)) - (1 if dtype.all_numbers else 2)
