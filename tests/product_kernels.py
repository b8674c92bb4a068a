"""Products of matrices that several test modules launch: of any sizes, of whole tiles, and two by one right operand."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import weft
import weft.language as tl


@weft.jit
def product(
    a: Any, b: Any, c: Any, M: Any, N: Any, K: Any,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WRAP: tl.constexpr, SUMS: tl.constexpr,
) -> None:  # fmt: skip
    tiles = tl.cdiv(N, BN)
    m = tl.program_id(0) // tiles * BM + tl.arange(0, BM)
    n = tl.program_id(0) % tiles * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    row, column = (m % M, n % N) if WRAP else (m, n)
    total = tl.zeros((BM, BN), SUMS)
    for at in range(0, K, BK):
        depth = at + k
        left, right = (depth < K)[None, :], (depth < K)[:, None]
        if not WRAP:
            left, right = left & (m < M)[:, None], right & (n < N)[None, :]
        x = tl.load(a + row[:, None] * K + depth[None, :], mask=left, other=0)
        y = tl.load(b + depth[:, None] * N + column[None, :], mask=right, other=0)
        total = tl.dot(x, y, total)
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m < M)[:, None] & (n < N)[None, :])


@weft.jit
def whole(a: Any, b: Any, c: Any, K: Any, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr) -> None:
    """Each program has M rows, and all columns."""
    m, n, k = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), c.dtype.element_ty)
    for at in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :])
        total = tl.dot(x, tl.load(b + (at + k)[:, None] * N + n[None, :]), total)
    tl.store(c + m[:, None] * N + n[None, :], total)


@weft.jit
def twice(a: Any, b: Any, c: Any, K: Any, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr) -> None:
    """Both products have the same right operand."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    first, second = tl.zeros((M, N), tl.float32), tl.zeros((M, N), tl.float32)
    for at in range(0, K, BK):
        right = tl.load(b + (at + k)[:, None] * N + n[None, :])
        first = tl.dot(tl.load(a + m[:, None] * K + (at + k)[None, :]), right, first)
        second = tl.dot(tl.load(a + (m + M)[:, None] * K + (at + k)[None, :]), right, second)
    tl.store(c + m[:, None] * N + n[None, :], first)
    tl.store(c + (m + M)[:, None] * N + n[None, :], second)
