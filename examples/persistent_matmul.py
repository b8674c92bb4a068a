"""Matrix multiplication by as many programs as the machine runs at once, each of which computes many tiles.

An ordinary matmul launches a program for each tile. A persistent one launches one for each core (or multiprocessor), and a
program goes on to the next tile by itself: it steps over the tiles by the number of programs. What a program prepares, it
prepares once; and while a tile is stored, the loads of the next can be under way.

The second kernel reads and writes tiles through tensor descriptors. A descriptor is a base, a shape, strides and the shape of
its blocks: it replaces pointer arithmetic and masks, since reads beyond the shape give 0 and writes there do nothing.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from agreement import compare
from matmul import tile_of

import weft
import weft.language as tl


@weft.jit
def persistent_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
            acc = tl.dot(a, b, acc)
        c_tile = c_ptr + m[:, None] * N + n[None, :]
        tl.store(c_tile, acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@weft.jit
def descriptor_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            acc = tl.dot(a.load([tile_m * BLOCK_M, start]), b.load([start, tile_n * BLOCK_N]), acc)
        c.store([tile_m * BLOCK_M, tile_n * BLOCK_N], acc.to(c.dtype))


def persistent_matmul(
    a: Any, b: Any, out: Any, programs: int | None = None, block: int = 64, group: int = 4, descriptors: bool = False
) -> Any:
    """``out = a @ b`` for row-major ``a`` [M, K], ``b`` [K, N]; returns ``out`` [M, N]. The grid has
    ``programs`` programs; None means one for each CPU. With ``descriptors`` rows are multiples of 16 bytes."""
    (m, k), n = a.shape, b.shape[1]
    tiles = weft.cdiv(m, block) * weft.cdiv(n, block)
    grid = (min(tiles, programs or os.cpu_count() or 1),)
    kernel = descriptor_matmul_kernel if descriptors else persistent_matmul_kernel
    kernel[grid](a, b, out, m, n, k, BLOCK_M=block, BLOCK_N=block, BLOCK_K=block, GROUP=group)
    return out


def main() -> None:
    """Compare with NumPy: 3 programs for 12 tiles."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((100, 80), (80, 96)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for descriptors in (False, True):
        compare(
            "persistent matmul" + " with descriptors" * descriptors,
            lambda d=descriptors: persistent_matmul(a, b, np.empty((100, 96), np.float32), 3, 32, descriptors=d),
            expected,
            1e-6,
        )


if __name__ == "__main__":
    main()
