"""Sums of the columns of long rows, strip by strip: values, the order of additions, and which kernels have them."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import sampling
import weft
import weft.language as tl
from entries import enter
from tiled_kernels import joined, module_of
from weft import target as targets
from weft.codegen import emit_llvm
from weft.dtypes import DType, float32, float64, int32
from weft.options import Options
from weft.transforms.join_programs import Joined

pytestmark = pytest.mark.jit

RNG = np.random.default_rng(0)


@weft.jit
def sums(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), out.dtype.element_ty)
    for k in range(0, m, BM):
        rows = k + tl.arange(0, BM)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        x = tl.load(a + rows[:, None] * n + columns[None, :], mask=inside, other=0)
        total += tl.sum(x.to(out.dtype.element_ty), axis=0)
    tl.store(out + columns, total, mask=columns < n)


@weft.jit
def moments(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Sums and sums of squares of differences from a row, from numbers on that are not zero; rows in y. A pointer is carried."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    there = columns < n
    total, squares = tl.full((BN,), 3, tl.float32), tl.full((BN,), 0.5, tl.float32)
    middle = tl.load(row + columns, mask=there, other=7.0)
    at = a + tl.program_id(1) * m * n + tl.arange(0, BM)[:, None] * n + columns[None, :]
    for k in range(0, m, BM):
        inside = (k + tl.arange(0, BM) < m)[:, None] & there[None, :]
        x = tl.where(inside, tl.load(at, mask=inside, other=9.0) - middle[None, :], 0.0)
        total += tl.sum(x, axis=0)
        squares = tl.sum(x * x, axis=0) + squares
        at += BM * n
    tl.store(out + 2 * tl.program_id(1) * n + columns, total, mask=there)
    tl.store(out + (2 * tl.program_id(1) + 1) * n + columns, squares / m, mask=there)


@weft.jit
def everywhere(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """No masks; ``n`` is how far rows are apart."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.int32)
    for k in range(0, m, BM):
        total += tl.sum(tl.load(a + (k + tl.arange(0, BM))[:, None] * n + columns[None, :]), axis=0)
    tl.store(out + columns, total)


@weft.jit
def from_negative_zero(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.full((BN,), -0.0, tl.float32)
    for k in range(0, m, BM):
        total += tl.sum(tl.load(a + (k + tl.arange(0, BM))[:, None] * n + columns[None, :]), axis=0)
    tl.store(out + columns, total)


@pytest.mark.parametrize("rows", [1, 8, 32])
def test_negative_zeros_stay_negative(rows: int) -> None:
    a, out = np.full((32, 80), -0.0, np.float32), np.ones(80, np.float32)
    from_negative_zero[(5,)](a, out, out[:0], 32, 80, BM=rows, BN=16)
    assert not out.any() and np.signbit(out).all()


@weft.jit
def known(a: Any, out: Any, M: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """As `everywhere`, of a known size."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.int32)
    for k in range(0, M, BM):
        total += tl.sum(tl.load(a + (k + tl.arange(0, BM))[:, None] * N + columns[None, :]), axis=0)
    tl.store(out + columns, total)


@weft.jit
def near(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Rows of 40 elements, so that iterations move along memory."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.int32)
    for k in range(0, m, BM):
        rows = k + tl.arange(0, BM)
        inside = (rows < m)[:, None] & (columns < 40)[None, :]
        total += tl.sum(tl.load(a + rows[:, None] * 40 + columns[None, :], mask=inside, other=0), axis=0)
    tl.store(out + columns, total, mask=columns < 40)


@weft.jit
def added(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Rows of the grid add to one row."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.int32)
    for k in range(0, m, BM):
        rows = tl.program_id(1) * m + k + tl.arange(0, BM)
        x = tl.load(a + rows[:, None] * n + columns[None, :], mask=(columns < n)[None, :], other=0)
        total += tl.sum(x, axis=0)
    tl.atomic_add(out + columns, total, mask=columns < n)


@weft.jit
def largest(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total, most = tl.zeros((BN,), tl.int32), tl.zeros((BN,), tl.int32)
    for k in range(0, m, BM):
        x = tl.load(a + (k + tl.arange(0, BM))[:, None] * n + columns[None, :])
        total += tl.sum(x, axis=0)
        most = tl.maximum(most, tl.max(x, axis=0))
    tl.store(out + columns, total + most)


@weft.jit
def storing(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """What is added up so far is stored, too."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.int32)
    for k in range(0, m, BM):
        x = tl.load(a + (k + tl.arange(0, BM))[:, None] * n + columns[None, :])
        total += tl.sum(x, axis=0)
        tl.store(out + k * n + columns, columns)
    tl.store(out + columns, total)


@weft.jit
def apart(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Programs add up columns of their own, and the same columns of another row each."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total, other = tl.zeros((BN,), tl.int32), tl.zeros((BN,), tl.int32)
    for k in range(0, m, BM):
        rows = (k + tl.arange(0, BM))[:, None] * n
        total += tl.sum(tl.load(a + rows + columns[None, :]), axis=0)
        other += tl.sum(tl.load(a + rows + tl.arange(0, BN)[None, :]), axis=0)
    tl.store(out + columns, total)
    tl.store(row + tl.arange(0, BN), other)


JOINED: list[tuple[Any, DType, tuple[int, int], Joined | None]] = [
    (sums, float32, (16, 16), Joined(0, 512, 8)),
    (sums, float32, (64, 256), Joined(0, 32, 1)),
    (sums, float64, (2, 64), Joined(0, 64, 1)),
    (sums, int32, (16, 64), Joined(0, 128, 2)),
    (moments, float32, (16, 16), Joined(0, 512, 8)),
    (everywhere, int32, (16, 32), Joined(0, 256, 4)),
    (near, int32, (8, 16), Joined(0, 512, 8)),
    (added, int32, (16, 16), Joined(0, 4)),
    (largest, int32, (16, 16), Joined(0, 4)),
    (storing, int32, (16, 16), Joined(0, 4)),
    (apart, int32, (16, 16), None),
]


@pytest.mark.parametrize(
    ("kernel", "dtype", "tile", "expected"), JOINED, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_which_programs_become_rows(kernel: Any, dtype: DType, tile: tuple[int, int], expected: Joined | None) -> None:
    """Rows of 32 KiB, and at least 512 bytes."""
    assert joined(kernel, dtype, tile) == expected


@pytest.mark.parametrize("kernel", [sums, moments, everywhere, near], ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("tile", [(16, 16), (64, 64)])
def test_one_function_runs_one_program_and_many(kernel: Any, tile: tuple[int, int]) -> None:
    """Nothing goes through all registers of a row: the machine would leave the function out, and compile another."""
    text = emit_llvm(
        module_of(kernel, float32 if kernel in (sums, moments) else int32, tile), targets.host(), Options(disjoint=True)
    )
    assert f'call i32 @"{kernel.__name__}.joined.program"' in text
    assert f'"{kernel.__name__}.program"' not in text


SHAPES = [(0, 5), (1, 1), (5, 16), (16, 17), (33, 64), (100, 333), (7, 1029), (130, 48), (65, 9000)]
TYPES = [(np.float32, np.float32), (np.float16, np.float32), (np.float64, np.float64), (np.int8, np.int32)]
TILES = [(1, 16), (2, 64), (8, 16), (16, 16), (16, 64), (64, 16), (128, 32), (4, 256)]


def in_order(x: Any, rows: int, total: Any) -> Any:
    """``total`` and the columns of each ``rows`` rows added to it, each addition rounded in the type of ``total``."""
    for first in range(0, len(x), rows):
        tile = x[first : first + rows].astype(total.dtype)
        part = tile[0]
        for each in tile[1:]:
            part = part + each
        total = total + part
    return total


@pytest.mark.parametrize(("types", "tile", "shape"), sampling.grid(8, TYPES, TILES, SHAPES))
def test_the_order_of_additions(types: tuple[Any, Any], tile: tuple[int, int], shape: tuple[int, int]) -> None:
    """Rows of a tile one after the other, then the total; nothing is written behind a row."""
    (bm, bn), (m, n) = tile, shape
    a, out = (RNG.standard_normal((m, n)) * 50).astype(types[0]), np.full(n + 9, -1, types[1])
    sums[(weft.cdiv(n, bn),)](a, out, out[:0], m, n, BM=bm, BN=bn)
    np.testing.assert_array_equal(out[:n], in_order(a, bm, np.zeros(n, types[1])))
    assert (out[n:] == -1).all()


@pytest.mark.parametrize("tile", [(1, 16), (16, 16), (32, 64), (16, 256)])
@pytest.mark.parametrize("shape", [(40, 20), (64, 513)])
def test_several_sums(tile: tuple[int, int], shape: tuple[int, int]) -> None:
    (bm, bn), (m, n) = tile, shape
    a, row = RNG.integers(-9, 9, (3, m, n)).astype(np.float32), RNG.integers(-9, 9, n).astype(np.float32)
    out = np.full((7, n), -1, np.float32)
    moments[(weft.cdiv(n, bn), 3)](a, out, row, m, n, BM=bm, BN=bn)
    np.testing.assert_array_equal(out[:6:2], 3 + (a - row).sum(axis=1))
    np.testing.assert_array_equal(out[1:6:2], (np.float32(0.5) + ((a - row) ** 2).sum(axis=1)) / np.float32(m))
    assert (out[6] == -1).all()


@pytest.mark.parametrize("tile", [(8, 16), (16, 64), (32, 1024)])
@pytest.mark.parametrize("kernel", [near, added], ids=lambda kernel: kernel.__name__)
def test_rows_near_each_other_and_programs_that_are_not_joined(kernel: Any, tile: tuple[int, int]) -> None:
    (bm, bn), n = tile, 40 if kernel is near else 2000
    a = RNG.integers(-99, 99, (96, n)).astype(np.int32)
    out = np.zeros(n + 1, np.int32)
    kernel[(weft.cdiv(n, bn), 1 if kernel is near else 3)](
        a, out, out[:0], 96 if kernel is near else 32, n, BM=bm, BN=bn
    )
    np.testing.assert_array_equal(out, [*a.sum(axis=0), 0])


@pytest.mark.parametrize(
    ("threads", "rows", "groups"),
    [
        (0, 1, [40]),
        (2, 1, [20, 20]),
        (3, 1, [14, 14, 12]),
        (9, 1, [8, 8, 8, 8, 8]),  # not above 8 programs, which have 512 bytes of a row
        (2, 2, [8, 8, 8, 8, 8]),  # a row of the grid is not alone
    ],
)
def test_each_thread_has_a_part_of_the_columns(threads: int, rows: int, groups: list[int]) -> None:
    """Of at least 512 bytes of each row. The programs of a second row of the grid do the same again."""
    a = np.ones((32, 40 * 16), np.int32)
    out, stored = np.zeros(40 * 16, np.int32), list[int]()
    handle = known.compile(a, out, M=32, N=40 * 16, BM=16, BN=16)
    enter(
        handle,
        (a, out),
        (40, rows, 1),
        5,
        pauses=True,
        paused=lambda: stored.append(int(out.sum()) // (32 * 16)),
        shares=threads,
    )
    assert stored[: len(groups)] == list(accumulate(groups))


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize(("programs", "chunk"), sampling.grid(3, [1, 2, 9, 17, 40, 600], [1, 5, 16, 1000]))
@pytest.mark.parametrize("threads", [0, 3])
def test_each_program_runs_and_no_other(programs: int, chunk: int, pauses: bool, threads: int) -> None:
    """Beside what the programs store, nothing changes."""
    bm, bn, n = 16, 16, 16 * programs + 40
    a = RNG.integers(-99, 99, (32, n)).astype(np.int32)
    out = np.full(n, -7, np.int32)
    handle = known.compile(a, out, M=32, N=n, BM=bm, BN=bn)
    enter(handle, (a, out), (programs, 1, 1), chunk, pauses=pauses, shares=threads, share=threads // 2)
    np.testing.assert_array_equal(out, np.where(np.arange(n) < bn * programs, a.sum(axis=0), -7))
