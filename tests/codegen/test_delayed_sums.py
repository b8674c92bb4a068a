"""Totals of loops, whose lanes are combined behind the loop: the values, and the signs of zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from sampling import grid
from weft.frontend import KernelFunction

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit
jit = KernelFunction


@jit
def totals(
    x: Any, start: Any, rows: Any, one: Any, steps: Any, M: tl.constexpr, N: tl.constexpr, COLUMNS: tl.constexpr
) -> None:
    """Of each row, and of the first; ``x`` is [M, steps * N] in memory, or with ``COLUMNS`` its transpose."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    total = tl.load(start + m)
    first = tl.load(start)
    for k in range(steps):
        at = k * N + n[None, :]
        where = m[:, None] + at * M if COLUMNS else m[:, None] * steps * N + at
        part = tl.load(x + where)
        total += tl.sum(part, axis=1)
        first = tl.sum(tl.load(x + k * N + n), axis=0) + first
    tl.store(rows + m, total)
    tl.store(one, first)


@pytest.mark.parametrize(
    ("shape", "dtype", "columns"),
    grid(
        3,
        [(1, 4), (4, 1), (4, 8), (8, 16), (32, 64), (512, 16)],
        ["float32", "float64", "int32", "int64", "float16"],
        [False, True],
    ),
)
def test_totals(differ: Differential, shape: tuple[int, int], dtype: str, columns: bool) -> None:
    (m, n), steps = shape, 3
    random = np.random.default_rng(m * n)
    x = random.integers(-3, 4, m * n * steps).astype(dtype)
    start = random.integers(-3, 4, m).astype(dtype)
    after = differ(
        totals,
        promises=[True],
        x=x,
        start=start,
        rows=np.zeros(m, dtype),
        one=np.zeros(1, dtype),
        steps=np.int32(steps),
        M=m,
        N=n,
        COLUMNS=columns,
    )
    table = x.reshape(steps * n, m).T if columns else x.reshape(m, steps * n)
    assert after["rows"].tolist() == (table.sum(axis=1, dtype=np.int64) + start).astype(dtype).tolist()
    assert after["one"].tolist() == [start[0] + x[: steps * n].sum(dtype=np.int64).astype(dtype)]


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_zero_keeps_its_sign(differ: Differential, steps: int) -> None:
    m, n = 4, 32
    minus = np.full(m * n * 2, -0.0, np.float32)
    arrays: dict[str, Any] = {
        "x": minus,
        "start": minus[:m].copy(),
        "rows": np.ones(m, np.float32),
        "one": np.ones(1, np.float32),
    }
    after = differ(totals, promises=[True], **arrays, steps=np.int32(steps), M=m, N=n, COLUMNS=False)
    assert np.signbit(after["rows"]).all()
    assert (after["rows"] == 0).all()


@jit
def sums_of_tiles(
    x: Any, start: Any, rows: Any, one: Any, steps: Any, M: tl.constexpr, N: tl.constexpr, ZERO: tl.constexpr
) -> None:
    """Of each row, and of the first, from tiles that the loop adds up; ``x`` is [M, steps * N]."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    total = tl.load(start + m[:, None] * N + n[None, :])
    first = tl.load(start + n)
    if ZERO:
        total, first = tl.zeros((M, N), x.dtype.element_ty), tl.zeros((N,), x.dtype.element_ty)
    for k in range(steps):
        total += tl.load(x + m[:, None] * steps * N + k * N + n[None, :])
        first = tl.load(x + k * N + n) + first
    tl.store(rows + m, tl.sum(total, axis=1))
    tl.store(one, tl.sum(first, axis=0))


@pytest.mark.parametrize(
    ("shape", "dtype", "zero"),
    grid(
        3,
        [(1, 512), (2, 256), (4, 32), (4, 64), (16, 32), (32, 8), (32, 128)],
        ["float32", "float64", "int32", "float16"],
        [False, True],
    ),
)
def test_sums_of_tiles(differ: Differential, shape: tuple[int, int], dtype: str, zero: bool) -> None:
    (m, n), steps = shape, 3
    random = np.random.default_rng(m * n)
    x = random.integers(-3, 4, (m, steps * n)).astype(dtype)
    start = random.integers(-3, 4, (m, n)).astype(dtype)
    after = differ(
        sums_of_tiles,
        promises=[True],
        x=x.reshape(-1),
        start=start.reshape(-1),
        rows=np.zeros(m, dtype),
        one=np.zeros(1, dtype),
        steps=np.int32(steps),
        M=m,
        N=n,
        ZERO=zero,
    )
    expected = x.sum(axis=1, dtype=np.int64) + (0 if zero else start.sum(axis=1, dtype=np.int64))
    assert after["rows"].tolist() == expected.astype(dtype).tolist()
    assert after["one"].tolist() == expected[:1].astype(dtype).tolist()
