"""Sums along one axis of a matrix: matrix by vector, columns, rows, and rows fewer than the machine's threads."""

from __future__ import annotations

import numpy as np
from machine import Baseline
from rows import Family, Row, normal, tensor, tiled, torch, with_c, with_jax, with_numba, with_numpy, with_torch

import weft
import weft.language as tl

SQUARE = ((16, 16), (64, 16), (16, 64), (64, 64), (16, 256), (128, 32))
LONG = ((256,), (1024,), (4096,), (16384,))


@weft.jit
def gemv_kernel(a, x, y, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for k in range(0, n, BN):
        columns = k + tl.arange(0, BN)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        part = tl.load(a + rows[:, None] * n + columns[None, :], mask=inside, other=0.0)
        total += tl.sum(part * tl.load(x + columns, mask=columns < n, other=0.0)[None, :], axis=1)
    tl.store(y + rows, total, mask=rows < m)


@weft.jit
def gemv_tile_kernel(a, x, y, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, n, BN):
        columns = k + tl.arange(0, BN)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        part = tl.load(a + rows[:, None] * n + columns[None, :], mask=inside, other=0.0)
        total += part * tl.load(x + columns, mask=columns < n, other=0.0)[None, :]
    tl.store(y + rows, tl.sum(total, axis=1), mask=rows < m)


@weft.jit
def column_sum_kernel(a, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.float32)
    for k in range(0, m, BM):
        rows = k + tl.arange(0, BM)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        total += tl.sum(tl.load(a + rows[:, None] * n + columns[None, :], mask=inside, other=0.0), axis=0)
    tl.store(out + columns, total, mask=columns < n)


@weft.jit
def row_sum_kernel(a, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for k in range(0, n, BN):
        columns = k + tl.arange(0, BN)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        total += tl.sum(tl.load(a + rows[:, None] * n + columns[None, :], mask=inside, other=0.0), axis=1)
    tl.store(out + rows, total, mask=rows < m)


@weft.jit
def long_row_kernel(a, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        columns = k + tl.arange(0, BLOCK)
        total += tl.load(a + row.to(tl.int64) * n + columns, mask=columns < n, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0))


def gemv(kernel, name: str, m: int, n: int):
    def build(c: Baseline | None) -> Row:
        a, x = normal(m, n), normal(n)

        def run(out, bm, bn):
            kernel[(weft.cdiv(m, bm),)](a, x, out, m, n, BM=bm, BN=bn)

        return Row(
            name,
            a.astype(np.float64) @ x,
            tiled(SQUARE, m, run),
            {
                **with_numpy(m, lambda out: np.dot(a, x, out=out)),
                **with_torch(lambda: torch.mv(tensor(a), tensor(x))),
                **with_jax(lambda a, x: a @ x, a, x),
                **with_numba(m, lambda k, out: k.gemv(a, x, out)),
                **with_c(c, m, lambda c, out: c.gemv(a, x, out, m, n)),
            },
            moved=4 * m * n,
            reads_only=True,
            tolerance=1e-3,
        )

    return build


def column_sum(name: str, m: int, n: int):
    def build(c: Baseline | None) -> Row:
        a = normal(m, n)

        def run(out, bm, bn):
            column_sum_kernel[(weft.cdiv(n, bn),)](a, out, m, n, BM=bm, BN=bn)

        return Row(
            name,
            a.sum(axis=0, dtype=np.float64),
            tiled(SQUARE, n, run),
            {
                **with_numpy(n, lambda out: np.sum(a, axis=0, out=out)),
                **with_torch(lambda: torch.sum(tensor(a), 0)),
                **with_jax(lambda a: a.sum(axis=0), a),
                **with_c(c, n, lambda c, out: c.column_sum(a, out, m, n)),
            },
            moved=4 * m * n,
            reads_only=True,
            tolerance=2e-3,
        )

    return build


def row_sum(name: str, m: int, n: int):
    def build(c: Baseline | None) -> Row:
        a = normal(m, n)

        def run(out, bm, bn):
            row_sum_kernel[(weft.cdiv(m, bm),)](a, out, m, n, BM=bm, BN=bn)

        return Row(
            name,
            a.sum(axis=1, dtype=np.float64),
            tiled(SQUARE, m, run),
            {
                **with_numpy(m, lambda out: np.sum(a, axis=1, out=out)),
                **with_torch(lambda: torch.sum(tensor(a), 1)),
                **with_jax(lambda a: a.sum(axis=1), a),
                **with_numba(m, lambda k, out: k.row_sum(a, out)),
                **with_c(c, m, lambda c, out: c.row_sums(a, out, m, n)),
            },
            moved=4 * m * n,
            reads_only=True,
            tolerance=2e-3,
        )

    return build


def long_row(name: str, m: int, n: int):
    def build(c: Baseline | None) -> Row:
        a = normal(m, n)
        return Row(
            name,
            a.sum(axis=1, dtype=np.float64),
            tiled(LONG, m, lambda out, block: long_row_kernel[(m,)](a, out, n, BLOCK=block)),
            {
                **with_numpy(m, lambda out: np.sum(a, axis=1, out=out)),
                **with_torch(lambda: torch.sum(tensor(a), 1)),
                **with_jax(lambda a: a.sum(axis=1), a),
                **with_c(c, m, lambda c, out: c.row_sums(a, out, m, n)),
            },
            moved=4 * m * n,
            reads_only=True,
            tolerance=3e-2,
        )

    return build


ROWS: Family = {
    "gemv": gemv(gemv_kernel, "gemv 2048x2048, sum each step", 2048, 2048),
    "gemv-tile": gemv(gemv_tile_kernel, "gemv 2048x2048, sum at the end", 2048, 2048),
    "gemv-odd": gemv(gemv_kernel, "gemv 1001x1777, sum each step", 1001, 1777),
    "gemv-small": gemv(gemv_kernel, "gemv 512x512, sum each step", 512, 512),
    "column-sum": column_sum("column sums 2048x2048", 2048, 2048),
    "column-sum-odd": column_sum("column sums 1777x1001", 1777, 1001),
    "column-sum-small": column_sum("column sums 512x512", 512, 512),
    "row-sum": row_sum("row sums 2048x2048", 2048, 2048),
    "row-sum-odd": row_sum("row sums 1777x1001", 1777, 1001),
    "row-sum-long": long_row("row sum of one row of 2^23", 1, 1 << 23),
    "row-sum-two": long_row("row sums of 3 rows of 2^20", 3, 1 << 20),
}
