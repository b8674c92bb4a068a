"""Parameters annotated with a dtype: a launch's number has it in the kernel, as with Triton."""

# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from machines import on
from weft.dtypes import DType

pytestmark = pytest.mark.jit
MACHINES = [None, "sm_90"]


@weft.jit
def far(out: Any, stride: tl.int64):
    tl.static_assert(stride.dtype == tl.int64)
    tl.store(out, tl.full((), 2**20, tl.int32) * stride)


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("stride", [1, 2**13, 2**14 + 1, 2**40])
def test_a_stride_of_int64_does_not_overflow(stride: int, target: str | None) -> None:
    out = np.zeros(1, np.int64)
    on(far, target)[(1,)](out, stride)
    assert out[0] == stride << 20


def kernel_of(dtype: DType) -> Any:
    def kernel(out: Any, x: Any):
        tl.static_assert(x.dtype == DTYPE)
        tl.store(out, x)

    DTYPE = tl.constexpr(dtype)
    kernel.__annotations__ = {"x": dtype}
    return weft.jit(kernel)


VALUES = [
    (tl.int8, -3, np.int8),
    (tl.int8, 1, np.int8),
    (tl.uint8, 200, np.uint8),
    (tl.uint32, 2**31 + 16, np.uint32),
    (tl.uint64, 2**63 + 1, np.uint64),
    (tl.float16, 0.1, np.float16),
    (tl.float16, 1, np.float16),
    (tl.bfloat16, float("inf"), np.float32),
    (tl.float32, 7, np.float32),
    (tl.float64, 0.1, np.float64),
    (tl.float64, -1e300, np.float64),
    (tl.int1, True, np.bool_),
]


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize(("dtype", "value", "as_numpy"), VALUES)
def test_the_number_has_the_type(dtype: DType, value: Any, as_numpy: type[np.generic], target: str | None) -> None:
    out = np.zeros(1, as_numpy)
    on(kernel_of(dtype), target)[(1,)](out, value)
    assert out[0] == as_numpy(value)


@weft.jit
def pointed(out: tl.float32, x: tl.int16 | None = None):
    tl.static_assert(out.dtype.is_ptr())
    tl.store(out, 1 if x is None else 2)


def test_arrays_and_none_are_what_they_are() -> None:
    out = np.zeros(1, np.int32)
    pointed[(1,)](out)
    assert out[0] == 1


def test_kernels_that_differ_in_annotations_alone_are_two() -> None:
    def kernel(out: Any, x: Any):
        tl.store(out, (x + x).to(tl.int32))

    texts: set[str] = set()
    for dtype, expected in ((tl.uint8, 144), (tl.int16, 400)):
        kernel.__annotations__ = {"x": dtype}
        out = np.zeros(1, np.int32)
        typed = weft.jit(kernel)
        typed[(1,)](out, 200)
        assert out[0] == expected
        texts.add(typed.dependencies())
    assert len(texts) == 2
