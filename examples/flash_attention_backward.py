"""The gradient of attention, without its score matrix: the weights are computed again, block by block.

With the weights P = softmax(q k^T * scale) and the gradient dout of the output, the gradients are

    dv = P^T dout        dP = dout v^T        dS = P * (dP - delta), where delta = sum(out * dout) of each row
    dq = scale * dS k    dk = scale * dS^T q

The forward pass has kept ``lse``, the logarithm of each row's sum, so that a block of P is ``exp2(scores - lse)`` at once. Three
kernels follow: delta of all rows; dk and dv, where a program owns keys and visits queries; dq, where it owns queries and
visits keys. So every sum has one owner, and no atomics are needed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from agreement import compare
from flash_attention import attention, attention_numpy

import weft
import weft.language as tl

LOG2_E = tl.constexpr(math.log2(math.e))
"""Powers of two stand for exponentials, as in the forward pass."""


@weft.jit
def load_rows(ptr, rows, length, D: tl.constexpr):
    """Rows of a [length, D] matrix; beyond its end stand zeros."""
    offsets = rows[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(ptr + offsets, mask=rows[:, None] < length, other=0.0)


@weft.jit
def store_rows(ptr, rows, length, value, D: tl.constexpr):
    offsets = rows[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(ptr + offsets, value.to(ptr.dtype.element_ty), mask=rows[:, None] < length)


@weft.jit
def weights_of(q, k, lse, queries, keys, length, scale, CAUSAL: tl.constexpr):
    """A block of P, queries along the rows; 0 where a query does not see a key."""
    visible = (queries[:, None] < length) & (keys[None, :] < length)
    if CAUSAL:
        visible = visible & (keys[None, :] <= queries[:, None])
    return tl.where(visible, tl.exp2(tl.dot(q, tl.trans(k)) * (scale * LOG2_E) - lse[:, None]), 0.0)


@weft.jit
def delta_kernel(out_ptr, dout_ptr, delta_ptr, length, D: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1) * length
    out = load_rows(out_ptr + head * D, rows, length, D).to(tl.float32)
    dout = load_rows(dout_ptr + head * D, rows, length, D).to(tl.float32)
    tl.store(delta_ptr + head + rows, tl.sum(out * dout, axis=1), mask=rows < length)


@weft.jit
def keys_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, length, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """dk and dv of BLOCK_N keys of one head."""
    first = tl.program_id(0) * BLOCK_N
    head = tl.program_id(1) * length
    keys = first + tl.arange(0, BLOCK_N)
    k = load_rows(k_ptr + head * D, keys, length, D)
    v = load_rows(v_ptr + head * D, keys, length, D)
    dk = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    start = 0
    if CAUSAL:
        start = first // BLOCK_M * BLOCK_M  # earlier queries see none of these keys
    for block in range(start, length, BLOCK_M):
        queries = block + tl.arange(0, BLOCK_M)
        q = load_rows(q_ptr + head * D, queries, length, D)
        dout = load_rows(dout_ptr + head * D, queries, length, D)
        lse = tl.load(lse_ptr + head + queries, mask=queries < length, other=0.0)
        delta = tl.load(delta_ptr + head + queries, mask=queries < length, other=0.0)
        p = weights_of(q, k, lse, queries, keys, length, scale, CAUSAL)
        dv = tl.dot(tl.trans(p.to(dout.dtype)), dout, dv)
        ds = p * (tl.dot(dout, tl.trans(v)) - delta[:, None])
        dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk)
    store_rows(dv_ptr + head * D, keys, length, dv, D)
    store_rows(dk_ptr + head * D, keys, length, dk * scale, D)


@weft.jit
def queries_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, length, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """dq of BLOCK_M queries of one head."""
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * length
    queries = first + tl.arange(0, BLOCK_M)
    q = load_rows(q_ptr + head * D, queries, length, D)
    dout = load_rows(dout_ptr + head * D, queries, length, D)
    lse = tl.load(lse_ptr + head + queries, mask=queries < length, other=0.0)
    delta = tl.load(delta_ptr + head + queries, mask=queries < length, other=0.0)
    dq = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, first + BLOCK_M)
    for block in range(0, end, BLOCK_N):
        keys = block + tl.arange(0, BLOCK_N)
        k = load_rows(k_ptr + head * D, keys, length, D)
        v = load_rows(v_ptr + head * D, keys, length, D)
        p = weights_of(q, k, lse, queries, keys, length, scale, CAUSAL)
        ds = p * (tl.dot(dout, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    store_rows(dq_ptr + head * D, queries, length, dq * scale, D)


def attention_backward(
    q: Any, k: Any, v: Any, out: Any, lse: Any, dout: Any, causal: bool = False, block_m: int = 64, block_n: int = 64
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v [heads, length, D], given that of ``out`` and what `attention` has kept."""
    heads, length, d = q.shape
    dq, dk, dv, delta = np.empty_like(q), np.empty_like(k), np.empty_like(v), np.empty_like(lse)
    scale = 1 / math.sqrt(d)
    constants = {"D": d, "BLOCK_M": block_m, "BLOCK_N": block_n, "CAUSAL": causal}
    by_queries, by_keys = (weft.cdiv(length, block_m), heads), (weft.cdiv(length, block_n), heads)
    delta_kernel[by_queries](out, dout, delta, length, D=d, BLOCK=block_m)
    keys_kernel[by_keys](q, k, v, dout, lse, delta, dk, dv, length, scale, **constants)
    queries_kernel[by_queries](q, k, v, dout, lse, delta, dq, length, scale, **constants)
    return dq, dk, dv


def main() -> None:
    """Compare with NumPy, in float16."""
    q, k, v, dout = np.random.default_rng(0).standard_normal((4, 2, 80, 32)).astype(np.float16)
    for causal in (False, True):
        p, out64 = attention_numpy(q, k, v, causal)
        dout64 = dout.astype(np.float64)
        dp = dout64 @ v.astype(np.float64).swapaxes(1, 2)
        ds = p * (dp - (out64 * dout64).sum(axis=2, keepdims=True)) / math.sqrt(q.shape[2])
        expected = ds @ k.astype(np.float64), ds.swapaxes(1, 2) @ q.astype(np.float64), p.swapaxes(1, 2) @ dout64

        out, lse = np.empty_like(q), np.empty(q.shape[:2], np.float32)
        attention(q, k, v, out, causal, lse=lse)
        compare(
            "attention backward" + " (causal)" * causal,
            lambda c=causal, o=out, s=lse: attention_backward(q, k, v, o, s, dout, c, 32, 32),
            expected,
            1e-2,
        )


if __name__ == "__main__":
    main()
