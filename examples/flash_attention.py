"""Attention without its score matrix: keys and values stream past a tile of queries under an online softmax.

For each block of keys the running maximum ``m``, the running sum ``total`` and the output ``acc`` are rescaled by
``2 ** (m_old - m_new)`` before the block is added, so that at the end ``acc / total`` is softmax(q k^T * scale) v. Powers
of two stand for exponentials: ``log2(e)`` is folded into the scale.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    length,
    scale,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """One program: BLOCK_M queries of one head. q, k, v, out are [heads, length, D]; ``scale`` includes log2(e)."""
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * length * D
    rows = first + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + d[None, :], mask=rows[:, None] < length, other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, first + BLOCK_M)
    for start in range(0, end, BLOCK_N):
        keys = start + columns
        inside = keys < length
        k = tl.load(k_ptr + head + keys[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        visible = inside[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        # The first block shows each row at least one key (key 0), so the maximum is finite from then on.
        m_new = tl.maximum(m, tl.max(scores, axis=1))
        weights = tl.exp2(scores - m_new[:, None])
        rescale = tl.exp2(m - m_new)
        total = total * rescale + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + head + keys[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * rescale[:, None])
        m = m_new
    result = acc / total[:, None]
    out_tile = out_ptr + head + rows[:, None] * D + d[None, :]
    tl.store(out_tile, result.to(out_ptr.dtype.element_ty), mask=rows[:, None] < length)
    if lse_ptr is not None:
        tl.store(lse_ptr + tl.program_id(1) * length + rows, m + tl.log2(total), mask=rows < length)


def attention(
    q: Any, k: Any, v: Any, out: Any, causal: bool = False, block_m: int = 64, block_n: int = 128, lse: Any = None
) -> Any:
    """softmax(q k^T / sqrt(D)) v for [heads, length, D] arrays; returns ``out``. D is a power of two. ``lse`` [heads, length],
    float32, keeps what the backward pass needs: the logarithm to base 2 of each row's sum of exponentials."""
    heads, length, d = q.shape
    scale = math.log2(math.e) / math.sqrt(d)
    attention_kernel[(weft.cdiv(length, block_m), heads)](
        q, k, v, out, lse, length, scale, D=d, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal
    )
    return out


def attention_numpy(q: Any, k: Any, v: Any, causal: bool) -> tuple[Any, Any]:
    """The weights [heads, length, length] and the result, in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    return weights, weights @ v


def main() -> None:
    """Compare with NumPy, in float16, whose rounding of the weights is what differs."""
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 80, 32)).astype(np.float16)
    for causal in (False, True):
        _, expected = attention_numpy(q, k, v, causal)
        name = "attention" + " (causal)" * causal
        compare(name, lambda causal=causal: attention(q, k, v, np.empty_like(q), causal, 32, 32), expected, 2e-3)


if __name__ == "__main__":
    main()
