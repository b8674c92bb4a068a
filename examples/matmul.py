"""Matrix multiplication, tile by tile, for any sizes and strides; accumulates in float32.

Programs are numbered along groups of GROUP rows of tiles, so that those running at the same time share tiles of both
operands in cache. What follows the product, here an activation, is applied to a tile while it is in registers: the result
is written once and not read again.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from agreement import compare

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
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


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
    ACTIVATION: tl.constexpr = None,
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
    # A function is a compile-time value: each activation makes a kernel of its own, in which it is inlined.
    if ACTIVATION is not None:
        acc = ACTIVATION(acc)
    c_tile = c_ptr + m[:, None] * c_row + n[None, :] * c_column
    tl.store(c_tile, acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def matmul(
    a: Any,
    b: Any,
    out: Any,
    block_m: int = 128,
    block_n: int = 128,
    block_k: int = 128,
    group: int = 4,
    activation: Any = None,
) -> Any:
    """``out = activation(a @ b)`` for row-major ``a`` [M, K], ``b`` [K, N]; returns ``out`` [M, N]."""
    (m, k), n = a.shape, b.shape[1]
    grid = (weft.cdiv(m, block_m) * weft.cdiv(n, block_n),)
    matmul_kernel[grid](
        a, b, out, m, n, k, k, 1, n, 1, n, 1,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=group, ACTIVATION=activation,
    )  # fmt: skip
    return out


def main() -> None:
    """Compare with NumPy: float16 with and without the activation, and float8, whose products are summed in float32, too."""
    random = np.random.default_rng(0)
    for dtype in (np.float16, ml_dtypes.float8_e5m2):
        a, b = (random.standard_normal(shape).astype(dtype) for shape in ((70, 90), (90, 50)))
        product = a.astype(np.float64) @ b.astype(np.float64)
        for activation, expected in ((None, product), (leaky_relu, np.where(product >= 0, product, 0.01 * product))):
            compare(
                f"matmul {np.dtype(dtype)}" + (" with leaky relu" if activation else ""),
                lambda a=a, b=b, f=activation: matmul(a, b, np.empty((70, 50), np.float16), 32, 32, 32, activation=f),
                expected,
                1e-3,
            )


if __name__ == "__main__":
    main()
