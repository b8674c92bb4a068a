"""Tiles cut off at every place, where register loops choose between loads with and without masks, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from sampling import every

pytestmark = pytest.mark.jit

SIZE = 1024
RNG = np.random.default_rng(0)


@weft.jit
def of_two_ends(x: Any, y: Any, out: Any, total: Any, n: Any, m: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a = tl.load(x + i, mask=i < n, other=-1)
    b = tl.load(y + i, mask=i < m, other=-1000)
    tl.store(out + i, a + b, mask=i < n + 5)
    tl.store(total, tl.sum(a * 3 + b))


ENDS = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 496, 511, 512, 513, 1007, 1008, 1009, 1023, 1024]


@pytest.mark.parametrize("n", every(3, ENDS))
def test_two_masks_in_a_loop(n: int) -> None:
    """Behind the end of either lie other numbers than what is loaded there."""
    x, y = RNG.integers(0, 100, (2, SIZE)).astype(np.int32)
    at = np.arange(SIZE)
    for m in {n, n // 2, max(n - 16, 0), min(n + 16, SIZE), SIZE}:
        out, total = np.full(SIZE, 7, np.int32), np.zeros(1, np.int32)
        of_two_ends[(1,)](x, y, out, total, n, m, N=SIZE)
        a, b = np.where(at < n, x, -1), np.where(at < m, y, -1000)
        np.testing.assert_array_equal(out, np.where(at < n + 5, a + b, 7), err_msg=f"{n}, {m}")
        assert total[0] == (a * 3 + b).sum(), m


@weft.jit
def of_a_corner(x: Any, out: Any, turned: Any, sums: Any, n: Any, m: Any, R: tl.constexpr, C: tl.constexpr) -> None:
    i, j = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    inside = (i < n) & (j < m)
    v = tl.load(x + i * C + j, mask=inside, other=-1)
    tl.store(out + i * C + j, v * 2, mask=inside)
    tl.store(turned + j * R + i, v, mask=inside)
    tl.store(sums + tl.arange(0, R), tl.sum(v, 1))


@pytest.mark.parametrize("shape", every(2, [(32, 64), (64, 32), (4, 512), (256, 8), (1024, 1)]))
def test_corners(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = RNG.integers(0, 100, shape).astype(np.int32)
    for n in sorted({0, 1, rows // 2, rows - 1, rows}):
        for m in sorted({0, 1, columns // 2 + 1, max(columns - 17, 0), columns - 1, columns}):
            out, turned, sums = np.full(shape, 7, np.int32), np.full(shape[::-1], 7, np.int32), np.zeros(rows, np.int32)
            of_a_corner[(1,)](x, out, turned, sums, n, m, R=rows, C=columns)
            inside = (np.arange(rows)[:, None] < n) & (np.arange(columns) < m)
            np.testing.assert_array_equal(out, np.where(inside, x * 2, 7), err_msg=f"{n}, {m}")
            np.testing.assert_array_equal(turned, np.where(inside, x, 7).T, err_msg=f"{n}, {m}")
            np.testing.assert_array_equal(sums, np.where(inside, x, -1).sum(1), err_msg=f"{n}, {m}")


@weft.jit
def rearranged(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=-1)
    tl.store(out + i, tl.flip(v) + v)
    first, second = tl.split(tl.reshape(v, (N // 2, 2)))
    half = tl.arange(0, N // 2)
    tl.store(out + N + half, first * 3 + second)
    pairs = tl.reshape(v, (N // 64, 2, 32))
    tl.store(out + 2 * N + i, tl.reshape(tl.flip(pairs, 1) + pairs * 2, (N,)))
    tl.store(out + 3 * N + i, tl.flip(v), mask=tl.flip(i) < n)


@pytest.mark.parametrize("n", every(3, ENDS))
def test_elements_that_other_elements_need(n: int) -> None:
    x = RNG.integers(0, 100, SIZE).astype(np.int32)
    out = np.full(4 * SIZE, 7, np.int32)
    rearranged[(1,)](x, out, n, N=SIZE)
    v = np.where(np.arange(SIZE) < n, x, -1)
    pairs = v.reshape(-1, 2, 32)
    np.testing.assert_array_equal(out[:SIZE], v[::-1] + v)
    np.testing.assert_array_equal(out[SIZE : SIZE * 3 // 2], v[::2] * 3 + v[1::2])
    np.testing.assert_array_equal(out[2 * SIZE : 3 * SIZE], (pairs[:, ::-1] + pairs * 2).reshape(-1))
    np.testing.assert_array_equal(out[3 * SIZE :], np.where(np.arange(SIZE)[::-1] < n, v[::-1], 7))
