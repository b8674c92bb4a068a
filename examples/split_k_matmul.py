"""Matrix multiplication for a long K and a small result: several programs share a tile of the result.

A result of few tiles keeps few cores busy, however long the sums are. So the sum over K is split: SPLIT programs compute parts
of it for the same tile, and add them to the result with atomics. The order of these additions changes from launch to launch,
and the last bits of float32 with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """Adds a @ b to c, which is float32; all are row-major. A grid of (tiles along M, tiles along N, SPLIT)."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    # The parts take turns, so that their lengths differ by one block at most.
    first = tl.program_id(2) * BLOCK_K
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(first, K, SPLIT * BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    c_tile = c_ptr + m[:, None] * N + n[None, :]
    mask = (m < M)[:, None] & (n < N)[None, :]
    # Only the sum matters, and it is read after the launch: no other access has to be ordered.
    tl.atomic_add(c_tile, acc, mask=mask, sem="relaxed")


def split_k_matmul(a: Any, b: Any, split: int = 8, block: int = 64) -> Any:
    """``a @ b`` in float32 for row-major ``a`` [M, K], ``b`` [K, N]."""
    (m, k), n = a.shape, b.shape[1]
    out = np.zeros((m, n), np.float32)
    grid = (weft.cdiv(m, block), weft.cdiv(n, block), split)
    split_k_kernel[grid](a, b, out, m, n, k, BLOCK_M=block, BLOCK_N=block, BLOCK_K=block, SPLIT=split)
    return out


def main() -> None:
    """Compare with NumPy."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((40, 1000), (1000, 50)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    compare("split-k matmul", lambda: split_k_matmul(a, b, 4, 32), expected, 1e-6)


if __name__ == "__main__":
    main()
