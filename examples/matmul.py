"""Matrix multiplication, tile by tile, for any sizes and strides; accumulates in float32.

Programs are numbered along groups of GROUP rows of tiles, so that those running at the same time share tiles of both
operands in cache.
"""

from __future__ import annotations

from typing import Any

import weft
import weft.language as tl


@weft.jit
def tile_of(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """The tile that program ``pid`` computes: row-major inside a group of GROUP rows of tiles."""
    rows = tl.cdiv(M, BLOCK_M)
    columns = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP * columns)
    height = tl.minimum(rows - group * GROUP, GROUP)
    within = pid % (GROUP * columns)
    return group * GROUP + within % height, within // height


@weft.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    a_row,
    a_column,
    b_row,
    b_column,
    c_row,
    c_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + m[:, None] * a_row + k[None, :] * a_column
    b_tile = b_ptr + k[:, None] * b_row + n[None, :] * b_column
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        left = k < K - start
        a = tl.load(a_tile, mask=(m < M)[:, None] & left[None, :], other=0.0)
        b = tl.load(b_tile, mask=left[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_tile += BLOCK_K * a_column
        b_tile += BLOCK_K * b_row
    c_tile = c_ptr + m[:, None] * c_row + n[None, :] * c_column
    tl.store(c_tile, acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def matmul(a: Any, b: Any, out: Any, block_m: int = 128, block_n: int = 128, block_k: int = 128, group: int = 4) -> Any:
    """``out = a @ b`` for row-major ``a`` [M, K], ``b`` [K, N]; returns ``out`` [M, N]."""
    (m, k), n = a.shape, b.shape[1]
    grid = (weft.cdiv(m, block_m) * weft.cdiv(n, block_n),)
    matmul_kernel[grid](
        a, b, out, m, n, k, k, 1, n, 1, n, 1, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=group
    )
    return out
