"""Matrix multiplication of block-scaled operands (mxfp8, mxfp4): each 32 numbers of 8 or 4 bits share a scale.

A float of 4 bits has eight magnitudes, from 0 to 6. Along K each block of 32 of them has a scale of its own, a power of two, so
that large and small blocks keep the same few digits. A scale is a byte: the exponent of the power, plus 127 (e8m0).
`tl.dot_scaled` takes the numbers and the scales. Two numbers of 4 bits lie in a byte, the first in its lower half.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from agreement import compare

import weft
import weft.language as tl

VECTOR = tl.constexpr(32)
"""Numbers that share a scale."""


@weft.jit
def block_scaled_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, M, N, K,
    FORMAT: tl.constexpr, PACKED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """``a`` [M, K] and ``b`` [N, K], both row-major with PACKED numbers in a byte; scales [M, K / 32] and [N, K / 32]. K is a
    multiple of BLOCK_K."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K // PACKED)
    blocks = tl.arange(0, BLOCK_K // VECTOR)
    m_inside, n_inside = (m < M)[:, None], (n < N)[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * (K // PACKED) + start // PACKED + k[None, :], mask=m_inside, other=0.0)
        b = tl.load(b_ptr + n[:, None] * (K // PACKED) + start // PACKED + k[None, :], mask=n_inside, other=0.0)
        a_scale = tl.load(
            a_scale_ptr + m[:, None] * (K // VECTOR) + start // VECTOR + blocks[None, :], mask=m_inside, other=0
        )
        b_scale = tl.load(
            b_scale_ptr + n[:, None] * (K // VECTOR) + start // VECTOR + blocks[None, :], mask=n_inside, other=0
        )
        acc = tl.dot_scaled(a, a_scale, FORMAT, tl.trans(b), b_scale, FORMAT, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=m_inside & (n < N)[None, :])


def block_scaled_matmul(a: Any, a_scale: Any, b: Any, b_scale: Any, out: Any, kind: str, block: int = 64) -> Any:
    """``out = a @ b.T`` in float32, of operands of ``kind`` e4m3, e5m2 or e2m1; returns ``out`` [M, N]."""
    packed = 2 if kind == "e2m1" else 1
    (m, n), k = out.shape, a.shape[1] * packed
    block_scaled_kernel[(weft.cdiv(m, block), weft.cdiv(n, block))](
        a, a_scale, b, b_scale, out, m, n, k,
        FORMAT=kind, PACKED=packed, BLOCK_M=block, BLOCK_N=block, BLOCK_K=min(k, 128),
    )  # fmt: skip
    return out


def quantised(x: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """``x`` [rows, K] as block-scaled numbers and their scales, and the values that these stand for."""
    blocks = x.reshape(x.shape[0], -1, 32)
    greatest = np.abs(blocks).max(axis=2)
    # The power of two that brings the greatest number of a block just below the greatest of the format.
    exponent = np.ceil(np.log2(greatest / float(ml_dtypes.finfo(dtype).max))).astype(int)
    numbers = (blocks / 2.0 ** exponent[:, :, None]).astype(dtype)
    values = (numbers.astype(np.float64) * 2.0 ** exponent[:, :, None]).reshape(x.shape)
    numbers = numbers.reshape(x.shape)
    if dtype == ml_dtypes.float4_e2m1fn:
        halves = numbers.view(np.uint8)
        numbers = halves[:, ::2] | (halves[:, 1::2] << 4)
    return numbers, (exponent + 127).astype(np.uint8), values


def main() -> None:
    """Compare with NumPy's product of the same quantised values."""
    random = np.random.default_rng(0)
    sizes = 2.0 ** random.integers(-8, 8, (1, 8, 1))  # blocks of different magnitudes
    for kind, dtype in (("e4m3", ml_dtypes.float8_e4m3fn), ("e2m1", ml_dtypes.float4_e2m1fn)):
        a = (random.standard_normal((40, 8, 32)) * sizes).reshape(40, 256)
        b = (random.standard_normal((50, 8, 32)) / sizes).reshape(50, 256)
        (a, a_scale, a_values), (b, b_scale, b_values) = quantised(a, dtype), quantised(b, dtype)
        compare(
            f"block-scaled matmul, {kind}",
            lambda x=(a, a_scale, b, b_scale), kind=kind: block_scaled_matmul(
                *x, np.empty((40, 50), np.float32), kind, 32
            ),
            a_values @ b_values.T,
            1e-6,
        )


if __name__ == "__main__":
    main()
