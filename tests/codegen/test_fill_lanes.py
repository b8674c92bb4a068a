"""Functions of what reductions leave in all lanes have the bits of other tiles (`weft.transforms.fill_lanes`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.language.extra import libdevice

pytestmark = pytest.mark.jit


@weft.jit
def of_rows(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr, STEPS: tl.constexpr) -> None:
    i = tl.arange(0, M)
    greatest = tl.full((M,), -1.0, x.dtype.element_ty)
    total = tl.zeros((M,), x.dtype.element_ty)
    for step in range(STEPS):
        tile = tl.load(x + step * M * N + i[:, None] * N + tl.arange(0, N)[None, :])
        found = tl.maximum(greatest, tl.max(tile, axis=1))
        total = total * tl.exp(greatest - found) + libdevice.pow(found + 2, greatest)
        greatest = found
    tl.store(out + i, total)


@weft.jit
def of_maxima(maxima: Any, out: Any, M: tl.constexpr, STEPS: tl.constexpr) -> None:
    i = tl.arange(0, M)
    greatest = tl.full((M,), -1.0, maxima.dtype.element_ty)
    total = tl.zeros((M,), maxima.dtype.element_ty)
    for step in range(STEPS):
        found = tl.maximum(greatest, tl.load(maxima + step * M + i))
        total = total * tl.exp(greatest - found) + libdevice.pow(found + 2, greatest)
        greatest = found
    tl.store(out + i, total)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [2, 4, 8, 32, 64])
def test_rows_have_the_bits_of_vectors(rows: int, dtype: type[np.floating[Any]]) -> None:
    steps, columns = 3, 32
    x = np.random.default_rng(rows).standard_normal((steps, rows, columns)).astype(dtype)
    found, expected = np.zeros(rows, dtype), np.zeros(rows, dtype)
    of_rows[(1,)](x, found, rows, columns, steps)
    of_maxima[(1,)](x.max(axis=2), expected, rows, steps)
    assert np.array_equal(found, expected)
    assert np.all(np.isfinite(found))
