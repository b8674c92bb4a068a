"""Products of batches of matrices, their result types, and what they refuse. The oracle is NumPy; all sums are exact."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import weft
import weft.language as tl
from machines import on
from weft.frontend.errors import CompilationError

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_90")


@weft.jit
def products(
    a: Any,
    b: Any,
    c: Any,
    out: Any,
    B: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    ADD: tl.constexpr,
) -> None:
    batch, rows = tl.arange(0, B)[:, None, None], tl.arange(0, M)[None, :, None]
    columns, inside = tl.arange(0, N)[None, None, :], tl.arange(0, K)
    x = tl.load(a + batch * M * K + rows * K + inside[None, None, :])
    y = tl.load(b + batch * K * N + inside[None, :, None] * N + columns)
    at = batch * M * N + rows * N + columns
    total = tl.dot(x, y, tl.load(c + at)) if ADD else tl.dot(x, y, out_dtype=tl.float32)
    tl.static_assert(total.dtype == out.dtype.element_ty)
    tl.store(out + at, total)


CASES: Final = (
    ((1, 16, 16, 32), np.float16, np.float32, True),
    ((4, 16, 32, 16), np.float16, np.float32, False),
    ((2, 32, 16, 32), np.int8, np.int32, True),
    ((2, 16, 16, 32), np.int8, np.int32, False),
    ((8, 4, 2, 8), np.float32, np.float32, True),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("sizes", "dtype", "sums", "add"), CASES, ids=str)
def test_batches(target: str | None, sizes: tuple[int, int, int, int], dtype: Any, sums: Any, add: bool) -> None:
    batch, m, n, k = sizes
    rng = np.random.default_rng(7)
    a, b = rng.integers(-4, 5, (batch, m, k)).astype(dtype), rng.integers(-4, 5, (batch, k, n)).astype(dtype)
    c, out = rng.integers(-9, 9, (batch, m, n)).astype(sums), np.zeros((batch, m, n), sums)
    on(products, target)[(1,)](a, b, c, out, *sizes, add)
    assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64) + (c if add else 0))


def test_each_matrix_of_a_batch_is_multiplied_by_matrix_instructions() -> None:
    """Two matrices of 16 by 32 by 16 in float16: four ``mma`` of m16n8k16 each, on one warp or shared by several."""
    a, out = np.zeros((2, 16, 32), np.float16), np.zeros((2, 16, 16), np.float32)
    b = np.zeros((2, 32, 16), np.float16)
    found = products.profile("sm_90")[(1,)](a, b, out, out.copy(), 2, 16, 16, 32, False, num_warps=1)
    assert found.totals["mma"] == 8


@weft.jit
def of_four_dimensions(a: Any, out: Any) -> None:
    i = tl.arange(0, 64).reshape(2, 2, 4, 4)
    x = tl.load(a + i)
    tl.store(out + i, tl.dot(x, x.trans(), input_precision="IEEE"))


def test_more_leading_dimensions() -> None:
    a = np.arange(64, dtype=np.float32).reshape(2, 2, 4, 4)
    out = np.zeros_like(a)
    of_four_dimensions[(1,)](a, out)
    assert np.array_equal(out, a @ a.swapaxes(-1, -2))


@weft.jit
def result_types() -> None:
    x = tl.zeros((16, 16), tl.float16)
    tl.static_assert(tl.dot(x, x, out_dtype=tl.float16).dtype == tl.float16)
    tl.static_assert(tl.dot(x.to(tl.int8), x.to(tl.int8), out_dtype=tl.int8).dtype == tl.int32)
    tl.static_assert(tl.dot(x.to(tl.bfloat16), x.to(tl.bfloat16), out_dtype=tl.float16).dtype == tl.float32)
    tl.static_assert(tl.dot(x.to(tl.float32), x.to(tl.float32), out_dtype=tl.float16).dtype == tl.float32)
    tl.static_assert(tl.dot(x.to(tl.float64), x.to(tl.float64), out_dtype=tl.float32).dtype == tl.float64)


def test_result_types() -> None:
    result_types[(1,)]()


@weft.jit
def refused(CASE: tl.constexpr) -> None:
    x = tl.zeros((16, 16), tl.float16)
    if CASE == 0:
        tl.dot(x, x, out_dtype=tl.bfloat16)
    elif CASE == 1:
        tl.dot(x, x, tl.zeros((16, 16), tl.float16), out_dtype=tl.float32)
    elif CASE == 2:
        tl.dot(x[None, :, :], x)
    elif CASE == 3:
        tl.dot(x[None, :, :], tl.broadcast_to(x[None, :, :], (2, 16, 16)))


REFUSED: Final = (
    "out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16 and cast with `.to(tl.bfloat16)`",
    "expected accumulator dtype float32, got float16; pass out_dtype=float16 to use this accumulator dtype",
    "tl.dot of shapes (1, 16, 16) and (16, 16): all dimensions but the last two are equal",
    "tl.dot of shapes (1, 16, 16) and (2, 16, 16): all dimensions but the last two are equal",
)


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case: int) -> None:
    with pytest.raises(CompilationError) as caught:
        refused[(1,)](case)
    assert REFUSED[case] in str(caught.value)
