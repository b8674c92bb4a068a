"""Names of Triton's library that are not public, as public programs use them."""

# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import triton
from weft.triton import language as tl
from weft.triton.language.core import CONSTEXPR_0
from weft.triton.language.standard import _log2

pytestmark = pytest.mark.jit


@pytest.mark.parametrize(
    ("name", "expected"),
    [("_sum_combine", 4 + 7 + 7 + 2), ("_prod_combine", 4 * 7 * 7 * 2), ("_xor_combine", 4 ^ 7 ^ 7 ^ 2)]
    + [("_or_combine", 4 | 7 | 7 | 2), ("_elementwise_max", 7), ("_elementwise_min", 2)],
)
def test_functions_that_combine(name: str, expected: int) -> None:
    combine = getattr(tl.standard, name)

    @triton.jit
    def kernel(x: Any, out: Any, combine: tl.constexpr):
        tl.store(out, tl.reduce(tl.load(x + tl.arange(0, 4)), 0, combine))

    x, out = np.array([4, 7, 7, 2], np.int32), np.zeros(1, np.int32)
    kernel[(1,)](x, out, combine)
    assert out[0] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("_argmax_combine_tie_break_left", (7, 1)), ("_argmin_combine_tie_break_left", (2, 3))]
    + [("_argmax_combine_tie_break_fast", (7, None)), ("_argmin_combine_tie_break_fast", (2, None))],
)
def test_functions_that_combine_with_an_index(name: str, expected: tuple[int, int | None]) -> None:
    combine = getattr(tl.standard, name)

    @triton.jit
    def kernel(x: Any, out: Any, combine: tl.constexpr):
        value, index = tl.reduce((tl.load(x + tl.arange(0, 8)), tl.arange(0, 8)), 0, combine)
        tl.store(out, value)
        tl.store(out + 1, index)

    x, out = np.array([4, 7, 7, 2, 5, 2, 3, 7], np.int32), np.zeros(2, np.int32)
    kernel[(1,)](x, out, combine)
    value, index = expected
    assert out[0] == value
    assert x[out[1]] == value
    assert index is None or out[1] == index


@tl.constexpr_function
def bits_of(dtype: Any) -> Any:
    return tl.core.get_int_dtype(dtype.primitive_bitwidth, False)


def test_helpers_at_compile_time() -> None:
    @triton.jit
    def kernel(x: Any, out: Any, SIZE: tl.constexpr, zero: tl.constexpr = CONSTEXPR_0):
        stages: tl.constexpr = _log2(SIZE)
        value = tl.load(x)
        unsigned: Any = bits_of(value.dtype)
        tl.store(out, value.to(unsigned, bitcast=True) + stages + zero)
        tl.store(out + 1, stages)

    x, out = np.array([1.0], np.float32), np.zeros(2, np.uint32)
    kernel[(1,)](x, out, 32)
    assert out.tolist() == [0x3F800005, 5]


def test_helpers_on_the_host() -> None:
    assert [_log2(n) for n in (0, 1, 2, 3, 64)] == [0, 0, 1, 1, 6]
    assert [n for n in range(-1, 9) if tl.standard._is_power_of_two(n)] == [1, 2, 4, 8]
    assert tl.core.get_int_dtype(1, True) == tl.int1
    assert tl.core.get_int_dtype(16, True) == tl.int16
    assert tl.core.get_int_dtype(64, False) == tl.uint64
    with pytest.raises(ValueError, match="unknown dtype 'int7'"):
        tl.core.get_int_dtype(7, True)
