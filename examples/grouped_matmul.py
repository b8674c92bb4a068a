"""Several matrix multiplications of different sizes in one launch: the kernel reads from tables where the matrices are.

The tables hold addresses and sizes, one row for each problem. A fixed number of programs shares all tiles of all problems:
tile numbers go on from one problem to the next, and a program takes every ``num_programs``-th of them. So small problems fill
the gaps that a large one leaves, and no launch waits for another.

An address is an int64 in memory. The kernel casts it to a pointer; from then on it is a pointer like any other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def grouped_matmul_kernel(
    addresses_ptr, sizes_ptr, problems,
    DTYPE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """``addresses`` [problems, 3] are those of a, b and c, ``sizes`` [problems, 3] M, N and K; matrices are row-major."""
    tile = tl.program_id(0)
    first = 0  # the number of the problem's first tile
    for problem in range(problems):
        M = tl.load(sizes_ptr + 3 * problem)
        N = tl.load(sizes_ptr + 3 * problem + 1)
        K = tl.load(sizes_ptr + 3 * problem + 2)
        a_ptr = tl.load(addresses_ptr + 3 * problem).to(tl.pointer_type(DTYPE))
        b_ptr = tl.load(addresses_ptr + 3 * problem + 1).to(tl.pointer_type(DTYPE))
        c_ptr = tl.load(addresses_ptr + 3 * problem + 2).to(tl.pointer_type(DTYPE))
        columns = tl.cdiv(N, BLOCK_N)
        end = first + tl.cdiv(M, BLOCK_M) * columns
        while tile < end:
            m = (tile - first) // columns * BLOCK_M + tl.arange(0, BLOCK_M)
            n = (tile - first) % columns * BLOCK_N + tl.arange(0, BLOCK_N)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for start in range(0, K, BLOCK_K):
                k = start + tl.arange(0, BLOCK_K)
                a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
                b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
                acc = tl.dot(a, b, acc)
            tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(DTYPE), mask=(m < M)[:, None] & (n < N)[None, :])
            tile += tl.num_programs(0)
        first = end


def grouped_matmul(problems: Sequence[tuple[Any, Any, Any]], programs: int | None = None, block: int = 64) -> None:
    """``c = a @ b`` for each (a, b, c) of row-major float16 matrices. The launch has only the addresses of the matrices, so the
    caller keeps them alive until it is over."""
    addresses = np.array([[matrix.ctypes.data for matrix in problem] for problem in problems], np.int64)
    sizes = np.array([(*c.shape, a.shape[1]) for a, _, c in problems], np.int32)
    grouped_matmul_kernel[(programs or os.cpu_count() or 1,)](
        addresses, sizes, len(problems), DTYPE=tl.float16, BLOCK_M=block, BLOCK_N=block, BLOCK_K=block
    )


def main() -> None:
    """Compare with NumPy: four problems for 3 programs."""
    random = np.random.default_rng(0)
    problems = [
        tuple(random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n), (m, n)))
        for m, n, k in ((100, 80, 90), (17, 33, 64), (1, 1, 1), (64, 96, 5))
    ]
    results = tuple(c for _, _, c in problems)
    expected = tuple(a.astype(np.float64) @ b.astype(np.float64) for a, b, _ in problems)

    def run() -> tuple[Any, ...]:
        for c in results:
            c.fill(np.nan)
        grouped_matmul(problems, 3, 32)
        return results

    # The emulator has an address space of its own, so it is told which arrays the addresses in the table mean.
    compare("grouped matmul", run, expected, 1e-3, memory=[matrix for problem in problems for matrix in problem])


if __name__ == "__main__":
    main()
