"""Sorting, the greatest elements, and merges of bitonic runs against NumPy, natively and as PTX."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from machines import on
from weft.frontend.errors import CompilationError

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_90")
DTYPES: Final = (
    np.bool_,
    np.int8,
    np.uint16,
    np.int64,
    np.float16,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e5m2,
    np.float64,
)

Array = NDArray[Any]


def drawn(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Numbers with repetitions."""
    return np.round(np.random.default_rng(seed).standard_normal(shape) * 40).astype(dtype)


def ordered(x: Array, dim: int, descending: bool = False) -> Array:
    """By NumPy, in float64 or int64, which hold all numbers of the types exactly."""
    wide = x.astype(np.float64 if x.dtype.kind not in "iub" else x.dtype)
    found = np.sort(wide, dim)
    return (np.flip(found, dim) if descending else found).astype(x.dtype)


@weft.jit
def rows_of(M: tl.constexpr, N: tl.constexpr) -> Any:
    return tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@weft.jit
def sorting(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr, DIM: tl.constexpr, DOWN: tl.constexpr) -> None:
    found = tl.sort(tl.load(x + rows_of(M, N)), DIM, descending=DOWN)
    tl.static_assert(found.dtype == x.dtype.element_ty)
    tl.store(out + rows_of(M, N), found)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "dim", "down"), [((1, 1), None, False), ((4, 8), None, True), ((2, 64), 1, False),
                                                    ((16, 4), 0, True)])  # fmt: skip
def test_sort(target: str | None, shape: tuple[int, int], dim: int | None, down: bool) -> None:
    for dtype in DTYPES if shape == (4, 8) else (np.float32,):
        x = drawn(shape, dtype)
        out = np.zeros_like(x)
        on(sorting, target)[(1,)](x, out, *shape, dim, down)
        assert np.array_equal(out, ordered(x, -1 if dim is None else dim, down)), dtype


@pytest.mark.parametrize("target", TARGETS)
def test_sort_of_many(target: str | None) -> None:
    """A thousand on the CPU, where blocks of registers are compared; more than a warp's on a GPU."""
    shape = (1, 1024) if target is None else (1, 256)
    x = drawn(shape, np.int32)
    out = np.zeros_like(x)
    on(sorting, target)[(1,)](x, out, *shape, None, False)
    assert np.array_equal(out, np.sort(x))


@pytest.mark.parametrize("target", TARGETS)
def test_floats_are_in_total_order(target: str | None) -> None:
    """-NaN, -inf, -0, +0, inf, NaN: of all bit patterns, in the order of signed magnitude. Nothing is lost."""
    x = np.array([[np.nan, 1, -0.0, 0.0, -np.inf, np.inf, -np.nan, -1, 0.0, -0.0, np.nan, 5e-324, 3, -3, 2, 2]])
    out = np.zeros_like(x)
    on(sorting, target)[(1,)](x, out, 1, 16, None, False)
    bits = x.view(np.int64)
    magnitude = bits & np.int64(2**63 - 1)
    expected = sorted(bits[0].tolist(), key=lambda b: (b >= 0, b if b >= 0 else -(b & (2**63 - 1))))
    assert out.view(np.int64)[0].tolist() == expected
    assert sorted(magnitude[0].tolist()) == sorted((out.view(np.int64) & np.int64(2**63 - 1))[0].tolist())


@weft.jit
def greatest(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, DOWN: tl.constexpr) -> None:
    found = tl.topk(tl.load(x + rows_of(M, N)), K, descending=DOWN)
    tl.static_assert(found.shape == (M, K) and found.dtype == x.dtype.element_ty)
    tl.store(out + rows_of(M, K), found)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "k", "down"), [((4, 8), 8, True), ((2, 64), 4, True), ((4, 32), 8, False),
                                                  ((2, 16), 1, True), ((1, 16), 2, False)])  # fmt: skip
def test_topk(target: str | None, shape: tuple[int, int], k: int, down: bool) -> None:
    for dtype in (np.float32, np.int8):
        x = drawn(shape, dtype)
        out = np.zeros((shape[0], k), dtype)
        on(greatest, target)[(1,)](x, out, *shape, k, down)
        assert np.array_equal(out, ordered(x, -1, down)[:, :k]), dtype


@weft.jit
def first_rows(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr) -> None:
    tl.store(out + rows_of(K, N), tl.topk(tl.load(x + rows_of(M, N)), K, 0))


def test_topk_along_the_first_dimension() -> None:
    x, out = drawn((32, 8), np.float32), np.zeros((4, 8), np.float32)
    first_rows[(1,)](x, out, 32, 8, 4)
    assert np.array_equal(out, ordered(x, 0, True)[:4])


@weft.jit
def merging(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr, DOWN: tl.constexpr) -> None:
    tl.store(out + rows_of(M, N), tl.bitonic_merge(tl.load(x + rows_of(M, N)), descending=DOWN))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("down", [False, True])
def test_bitonic_merge(target: str | None, down: bool) -> None:
    """Runs that ascend and then descend, at any place, and turned round."""
    x = np.sort(drawn((4, 32), np.float32))
    for row, place in enumerate((0, 7, 16, 31)):
        x[row, place:] = x[row, place:][::-1].copy()
    x[3] = np.roll(x[3], 5)
    out = np.zeros_like(x)
    on(merging, target)[(1,)](x, out, 4, 32, down)
    assert np.array_equal(out, ordered(x, -1, down))


@weft.jit
def refused(x: Any, CASE: tl.constexpr) -> None:
    tile = tl.load(x + tl.arange(0, 8))
    if CASE == 0:
        tl.topk(tile, 0)
    elif CASE == 1:
        tl.topk(tile, 3)
    elif CASE == 2:
        tl.topk(tile, 16)
    elif CASE == 3:
        tl.sort(tile, 1)
    elif CASE == 4:
        tl.bitonic_merge(tile, -2)


REFUSED: Final = (
    "topk: k must be greater than 0",
    "topk: k must be a power of two",
    "topk: k must not exceed the size of the selected dimension",
    "sort: the tile has no such dimension",
    "bitonic_merge: the tile has no such dimension",
)


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case: int) -> None:
    with pytest.raises(CompilationError) as caught:
        refused[(1,)](np.zeros(8, np.float32), case)
    assert REFUSED[case] in str(caught.value)
