"""Accesses through indices: additions that several elements may send to one place, counting, sums of rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from machine import Baseline
from rows import (
    Family,
    Row,
    bytes_,
    integers,
    jax,
    normal,
    tensor,
    tiled,
    torch,
    with_c,
    with_jax,
    with_numba,
    with_numpy,
    with_torch,
)

import weft
import weft.language as tl

BLOCKS = ((16,), (64,), (256,), (1024,))
BAGS = ((1, 16), (1, 64), (4, 64), (16, 64), (16, 16))


@weft.jit
def scatter_add_kernel(values, index, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    at = tl.load(index + offsets, mask=inside)
    tl.atomic_add(out + at, tl.load(values + offsets, mask=inside), mask=inside, sem="relaxed")


@weft.jit
def atomic_histogram_kernel(values, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.atomic_add(out + tl.load(values + offsets, mask=inside).to(tl.int32), 1, mask=inside)


@weft.jit
def histogram_kernel(values, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    counts = tl.histogram(tl.load(values + offsets, mask=inside).to(tl.int32), 256, mask=inside)
    tl.atomic_add(out + tl.arange(0, 256), counts, sem="relaxed")


@weft.jit
def row_add_kernel(values, index, out, n, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    at = tl.load(index + rows, mask=rows < n, other=0)
    inside = (rows < n)[:, None]
    part = tl.load(values + rows[:, None] * COLUMNS + columns[None, :], mask=inside)
    tl.atomic_add(out + at[:, None] * COLUMNS + columns[None, :], part, mask=inside, sem="relaxed")


@weft.jit
def bag_kernel(table, index, out, bags, length, COLUMNS: tl.constexpr, BAGS: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    rows = tl.program_id(1) * BAGS + tl.arange(0, BAGS)
    total = tl.zeros((BAGS, BN), tl.float32)
    for k in range(length):
        at = tl.load(index + rows * length + k, mask=rows < bags, other=0)
        total += tl.load(table + at[:, None] * COLUMNS + columns[None, :])
    tl.store(out + rows[:, None] * COLUMNS + columns[None, :], total, mask=(rows < bags)[:, None])


def scatter_add(name: str, n: int, size: int, dtype: type[Any] = np.float32):
    """``dtype`` is float32 or int32. C has the loop of float32 only; Numba's is the same."""

    def build(c: Baseline | None) -> Row:
        values, index = normal(n) if dtype is np.float32 else integers(n, 1000), integers(n, size)
        expected = np.bincount(index, values, size).astype(dtype)

        def run(out, block):
            out.fill(0)
            scatter_add_kernel[(weft.cdiv(n, block),)](values, index, out, n, BLOCK=block)

        def numpy_add(out):
            out.fill(0)
            np.add.at(out, index, values)

        return Row(
            name,
            expected,
            tiled(BLOCKS, size, run, dtype),
            {
                **with_numpy(size, numpy_add, dtype),
                **with_torch(
                    lambda: torch.zeros(size, dtype=tensor(values).dtype).index_add_(0, tensor(index), tensor(values))
                ),
                **with_jax(lambda v, i: jax.numpy.zeros(size, v.dtype).at[i].add(v), values, index),
                **with_numba(size, lambda k, out: k.scatter_add(values, index, out), dtype),
                **with_c(
                    c if dtype is np.float32 else None,
                    size,
                    lambda c, out: c.scatter_add(values, index, out, n, size),
                ),
            },
            tolerance=1e-3,
            exact=dtype is not np.float32,
        )

    return build


def histogram(kernel, name: str, n: int):
    def build(c: Baseline | None) -> Row:
        values = bytes_(n)

        def run(out, block):
            out.fill(0)
            kernel[(weft.cdiv(n, block),)](values, out, n, BLOCK=block)

        return Row(
            name,
            np.bincount(values, minlength=256),
            tiled(BLOCKS if kernel is atomic_histogram_kernel else ((1024,), (4096,), (16384,)), 256, run, np.int32),
            {
                **with_numpy(256, lambda out: np.copyto(out, np.bincount(values, minlength=256)), np.int64),
                **with_torch(lambda: torch.bincount(tensor(values), minlength=256)),
                **with_numba(256, lambda k, out: k.histogram(values, out), np.int32),
                **with_c(c, 256, lambda c, out: c.histogram(values, out, n), np.int32),
            },
            exact=True,
        )

    return build


def row_add(name: str, n: int, size: int, columns: int):
    """Gradients of an embedding: each row of values is added to the row of a table that its index names."""

    def build(_: Baseline | None) -> Row:
        values, index = normal(n, columns), integers(n, size)
        expected = np.zeros((size, columns))
        np.add.at(expected, index, values)

        def run(out, rows):
            out.fill(0)
            row_add_kernel[(weft.cdiv(n, rows),)](values, index, out, n, COLUMNS=columns, ROWS=rows)

        return Row(
            name,
            expected,
            tiled(((1,), (4,), (16,), (64,)), (size, columns), run),
            {
                **with_torch(lambda: torch.zeros(size, columns).index_add_(0, tensor(index), tensor(values))),
                **with_jax(lambda v, i: jax.numpy.zeros((size, columns)).at[i].add(v), values, index),
                **with_numba((size, columns), lambda k, out: k.row_add(values, index, out)),
            },
            tolerance=1e-3,
        )

    return build


def embedding_bag(name: str, bags: int, length: int, entries: int, columns: int):
    def build(_: Baseline | None) -> Row:
        table, index = normal(entries, columns), integers(bags * length, entries, np.int64).reshape(bags, length)

        def run(out, rows, bn):
            grid = (columns // bn, weft.cdiv(bags, rows))
            bag_kernel[grid](table, index, out, bags, length, COLUMNS=columns, BAGS=rows, BN=bn)

        return Row(
            name,
            table[index].sum(axis=1),
            tiled(BAGS, (bags, columns), run),
            {
                **with_torch(lambda: torch.nn.functional.embedding_bag(tensor(index), tensor(table), mode="sum")),
                **with_jax(lambda t, i: t[i].sum(axis=1), table, index),
                **with_numba((bags, columns), lambda k, out: k.embedding_bag(table, index, out)),
            },
            tolerance=1e-3,
        )

    return build


ROWS: Family = {
    "scatter-add": scatter_add("float32 scatter-add, 2^20 into 2^16", 1 << 20, 1 << 16),
    "scatter-add-few": scatter_add("float32 scatter-add, 2^20 into 16", 1 << 20, 16),
    "scatter-add-int": scatter_add("int32 scatter-add, 2^20 into 2^12", 1 << 20, 1 << 12, np.int32),
    "row-add": row_add("float32 row scatter-add, 16384 rows of 64 into 4096", 16384, 4096, 64),
    "histogram-atomic": histogram(atomic_histogram_kernel, "histogram of 2^21 bytes, atomics", 1 << 21),
    "histogram": histogram(histogram_kernel, "histogram of 2^21 bytes, tl.histogram", 1 << 21),
    "embedding-bag": embedding_bag("embedding bag, 4096 bags of 32 rows of 64", 4096, 32, 1 << 16, 64),
}
