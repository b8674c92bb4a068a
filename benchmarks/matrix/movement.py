"""Copies that do not walk memory line by line: transposes, strides, rows with gaps; and programs that do next to nothing."""

from __future__ import annotations

import numpy as np
from machine import Baseline
from rows import Family, Row, bytes_, into, normal, tensor, tiled, with_c, with_jax, with_numba, with_numpy, with_torch

import weft
import weft.language as tl

SQUARE = ((16, 16), (32, 32), (64, 64), (16, 64), (64, 16), (16, 256), (256, 16))
BLOCKS = ((64,), (256,), (1024,), (4096,))


@weft.jit
def transpose_kernel(a, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tile = tl.load(a + rows[:, None] * n + columns[None, :], mask=inside)
    tl.store(out + columns[None, :] * m + rows[:, None], tile, mask=inside)


@weft.jit
def trans_kernel(a, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    tile = tl.load(a + rows[:, None] * n + columns[None, :], mask=(rows < m)[:, None] & (columns < n)[None, :])
    inside = (columns < n)[:, None] & (rows < m)[None, :]
    tl.store(out + columns[:, None] * m + rows[None, :], tl.trans(tile), mask=inside)


@weft.jit
def strided_load_kernel(a, out, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(a + offsets * STRIDE, mask=offsets < n), mask=offsets < n)


@weft.jit
def strided_store_kernel(a, out, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets * STRIDE, tl.load(a + offsets, mask=offsets < n), mask=offsets < n)


@weft.jit
def run_time_stride_kernel(a, out, n, stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(a + offsets * stride, mask=offsets < n), mask=offsets < n)


@weft.jit
def copy_2d_kernel(a, out, m, n, a_stride, out_stride, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tile = tl.load(a + rows[:, None] * a_stride + columns[None, :], mask=inside)
    tl.store(out + rows[:, None] * out_stride + columns[None, :], tile, mask=inside)


@weft.jit
def tiny_kernel(out):
    tl.store(out + tl.program_id(0), tl.program_id(0))


@weft.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside), mask=inside)


def transpose(kernel, name: str, m: int, n: int, dtype=np.float32):
    def build(c: Baseline | None) -> Row:
        a = bytes_(m, n) if dtype is np.uint8 else normal(m, n, dtype=dtype)

        def run(out, bm, bn):
            kernel[(weft.cdiv(m, bm), weft.cdiv(n, bn))](a, out, m, n, BM=bm, BN=bn)

        return Row(
            name,
            a.T,
            tiled(SQUARE, (n, m), run, dtype),
            {
                **with_numpy((n, m), lambda out: np.copyto(out, a.T), dtype),
                **with_torch(lambda: tensor(a).T.contiguous()),
                **with_numba((n, m), lambda k, out: k.transpose(a, out), dtype),
                **(
                    with_c(c, (n, m), lambda c, out: c.transpose(a, out, m, n))
                    if dtype is np.float32
                    else with_jax(lambda a: a.T.copy(), a)
                    if dtype is np.uint8
                    else {}
                ),
            },
            moved=2 * a.nbytes,
            exact=True,
        )

    return build


def strided_load(name: str, n: int, stride: int, *, known: bool = True):
    def build(c: Baseline | None) -> Row:
        a = normal(n * stride)

        def run(out, block):
            grid = (weft.cdiv(n, block),)
            if known:
                strided_load_kernel[grid](a, out, n, STRIDE=stride, BLOCK=block)
            else:
                run_time_stride_kernel[grid](a, out, n, stride, BLOCK=block)

        return Row(
            name,
            a[::stride],
            tiled(BLOCKS, n, run),
            {
                **with_numpy(n, lambda out: np.copyto(out, a[::stride])),
                **with_torch(lambda: tensor(a)[::stride].clone()),
                **with_jax(lambda a: a[::stride] + 0, a),
                **with_numba(n, lambda k, out: k.strided_load(a, out, stride)),
                **with_c(c, n, lambda c, out: c.strided_load(a, out, n, stride)),
            },
            moved=4 * n * (1 + min(stride, 16)),
            exact=True,
        )

    return build


def strided_store(name: str, n: int, stride: int):
    def build(c: Baseline | None) -> Row:
        a = normal(n)
        expected = np.zeros(n * stride, np.float32)
        expected[::stride] = a

        def run(out, block):
            strided_store_kernel[(weft.cdiv(n, block),)](a, out, n, STRIDE=stride, BLOCK=block)

        return Row(
            name,
            expected,
            tiled(BLOCKS, n * stride, run),
            {
                **with_numpy(n * stride, lambda out: np.copyto(out[::stride], a)),
                **with_numba(n * stride, lambda k, out: k.strided_store(a, out, stride)),
                **with_c(c, n * stride, lambda c, out: c.strided_store(a, out, n, stride)),
            },
            moved=4 * n * (1 + 2 * min(stride, 16)),
            exact=True,
        )

    return build


def copy_2d(name: str, m: int, n: int, gap: int):
    """Rows with a gap between them."""

    def build(c: Baseline | None) -> Row:
        a = normal(m, n + gap)

        def run(out, bm, bn):
            copy_2d_kernel[(weft.cdiv(m, bm), weft.cdiv(n, bn))](a, out, m, n, n + gap, n, BM=bm, BN=bn)

        return Row(
            name,
            a[:, :n],
            tiled(SQUARE, (m, n), run),
            {
                **with_numpy((m, n), lambda out: np.copyto(out, a[:, :n])),
                **with_torch(lambda: tensor(a)[:, :n].contiguous()),
                **with_numba((m, n), lambda k, out: k.copy_2d(a, out)),
            },
            moved=2 * 4 * m * n,
            exact=True,
        )

    return build


def tiny(_: Baseline | None) -> Row:
    n = 1 << 20
    return Row(
        "2^20 programs of one number",
        np.arange(n),
        {"1": into(n, lambda out: tiny_kernel[(n,)](out), np.int32)},
        {
            **with_numpy(n, lambda out: np.copyto(out, np.arange(n, dtype=np.int32)), np.int32),
            **with_numba(n, lambda k, out: k.count(out), np.int32),
        },
        moved=4 * n,
        exact=True,
    )


def small(_: Baseline | None) -> Row:
    n = 1 << 22
    blocks = ((16,), (32,), (64,), (256,))
    x, y = normal(n), normal(n)[::-1].copy()
    return Row(
        "vector add 2^22 in small tiles",
        x + y,
        tiled(blocks, n, lambda out, block: add_kernel[(n // block,)](x, y, out, n, BLOCK=block)),
        {
            **with_numpy(n, lambda out: np.add(x, y, out=out)),
            **with_torch(lambda: tensor(x) + tensor(y)),
            **with_jax(lambda x, y: x + y, x, y),
        },
        moved=12 * n,
        exact=True,
    )


ROWS: Family = {
    "transpose": transpose(transpose_kernel, "transpose 2048x2048, by pointers", 2048, 2048),
    "trans": transpose(trans_kernel, "transpose 2048x2048, tl.trans", 2048, 2048),
    "transpose-small": transpose(trans_kernel, "transpose 512x512, tl.trans", 512, 512),
    "transpose-odd": transpose(trans_kernel, "transpose 1777x1001, tl.trans", 1777, 1001),
    "transpose-f64": transpose(trans_kernel, "transpose 1024x1024 float64, tl.trans", 1024, 1024, np.float64),
    "transpose-u8": transpose(trans_kernel, "transpose 2048x2048 uint8, tl.trans", 2048, 2048, np.uint8),
    "strided-2": strided_load("a[::2] of 2^21", 1 << 20, 2),
    "strided-3": strided_load("a[::3] of 3 * 2^20", 1 << 20, 3),
    "strided-4": strided_load("a[::4] of 2^22", 1 << 20, 4),
    "strided-run-time": strided_load("a[::s], s = 2 at run time", 1 << 20, 2, known=False),
    "strided-store-2": strided_store("out[::2] = a of 2^20", 1 << 20, 2),
    "copy-2d": copy_2d("rows with a gap, 2048x1000 of 1024", 2048, 1000, 24),
    "copy-60": copy_2d("rows with a gap, 65536x60 of 64", 65536, 60, 4),
    "tiny": tiny,
    "small": small,
}
