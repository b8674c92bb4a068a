"""Matrix products and attention, whose loops of dots weft multiplies over packed panels.

``wrapped`` rows are in the form of Triton's tutorial: offsets of rows and columns modulo the sizes, masks along the depth alone.
Operands are small whole numbers, so that all sums are exact, except those of attention. Those of int8 are any: a product by
instructions that saturate is another one.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
from machine import Array, Baseline, aligned
from rows import Family, Row, Runner, jax, normal, tensor, tiled, torch, with_jax, with_numpy, with_torch

import weft
import weft.language as tl

TILES = ((16, 16, 16), (32, 32, 32), (64, 64, 32), (128, 128, 64), (256, 128, 64))
GROUP = 8


@weft.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, GROUP: tl.constexpr, WRAP: tl.constexpr, SUMS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Row-major operands, the left one cast to the right one's type; programs go along groups of GROUP rows of tiles."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    within = pid % (GROUP * columns)
    m = (first + within % height) * BM + tl.arange(0, BM)
    n = within // height * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    row, column = (m % M, n % N) if WRAP else (m, n)
    a_tile, b_tile = a_ptr + row[:, None] * K + k[None, :], b_ptr + k[:, None] * N + column[None, :]
    total = tl.zeros((BM, BN), SUMS)
    for step in range(tl.cdiv(K, BK)):
        left = k < K - step * BK
        a_mask, b_mask = left[None, :], left[:, None]
        if not WRAP:
            a_mask, b_mask = a_mask & (m < M)[:, None], b_mask & (n < N)[None, :]
        a, b = tl.load(a_tile, mask=a_mask, other=0), tl.load(b_tile, mask=b_mask, other=0)
        total = tl.dot(a.to(b.dtype), b, total)
        a_tile += BK
        b_tile += BK * N
    out = total.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + m[:, None] * N + n[None, :], out, mask=(m < M)[:, None] & (n < N)[None, :])


TYPES = {
    "float32": (np.float32, np.float32, np.float32, tl.float32),
    "float64": (np.float64, np.float64, np.float64, tl.float64),
    "float16": (np.float16, np.float16, np.float16, tl.float32),
    "bfloat16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, ml_dtypes.bfloat16, tl.float32),
    "int8": (np.int8, np.int8, np.int32, tl.int32),
    "int8-float32": (np.int8, np.float32, np.float32, tl.float32),
}
"""Of the left operand, the right one and the result, and the type of the sums."""


def whole(dtype: type, *shape: int, most: int = 3) -> Array:
    """Whole numbers from ``-most`` to ``most``, the same in every run."""
    out = aligned(shape, dtype)
    out[...] = np.random.default_rng(math.prod(shape)).integers(-most, most + 1, shape).astype(dtype)
    return out


def by_float64(a: Array, b: Array) -> Array:
    """The product of integers by BLAS: float64 holds all sums of products of 8 bits."""
    return a.astype(np.float64) @ b.astype(np.float64)


def torch_product(name: str, a: Array, b: Array) -> dict[str, Runner]:
    """PyTorch's product in the type, if installed; of two types after a cast of the left operand."""
    if torch is None:
        return {}
    names = name.split("-")
    left, right = (tensor(x.astype(np.float32)).to(getattr(torch, n)) for x, n in ((a, names[0]), (b, names[-1])))
    if name == "int8":
        return with_torch(lambda: torch._int_mm(left, right))
    held = [None]

    def run() -> None:
        held[0] = left.to(right.dtype) @ right

    return {"PyTorch": Runner(run, lambda: held[0].to(torch.float64).numpy())}


def product(label: str, name: str, m: int, n: int, k: int, *, wrap: bool):
    def build(_: Baseline | None) -> Row:
        left, right, out_dtype, sums = TYPES[name]
        a, b = (whole(*each, most=127 if name == "int8" else 3) for each in ((left, m, k), (right, k, n)))
        exact = a.astype(np.float64) @ b.astype(np.float64)

        def run(out, bm, bn, bk):
            product_kernel[(weft.cdiv(m, bm) * weft.cdiv(n, bn),)](
                a, b, out, m, n, k, GROUP=GROUP, WRAP=wrap, SUMS=sums, BM=bm, BN=bn, BK=bk
            )

        peers = torch_product(name, a, b)
        if name in ("float32", "float64", "int8-float32"):
            peers |= with_numpy((m, n), lambda out: np.matmul(a.astype(right, copy=False), b, out=out), out_dtype)
        if name == "int8":
            peers |= with_numpy((m, n), lambda out: np.copyto(out, by_float64(a, b), casting="unsafe"), out_dtype)
        if name in ("float32", "bfloat16", "int8") and jax is not None:
            peers |= with_jax(lambda x, y: jax.numpy.matmul(x, y, preferred_element_type=out_dtype), a, b)
        rounded = exact.astype(out_dtype).astype(np.float64)
        return Row(label, rounded, tiled(TILES, (m, n), run, out_dtype), peers, flops=2 * m * n * k, exact=True)

    return build


@weft.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, length, scale, D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """BM rows of one head; the length is a multiple of both tiles."""
    head = tl.program_id(1) * length * D
    rows, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + d[None, :])
    total, highest, weight = (
        tl.zeros((BM, D), tl.float32),
        tl.full((BM,), float("-inf"), tl.float32),
        tl.zeros((BM,), tl.float32),
    )
    end = length
    if CAUSAL:
        end = (tl.program_id(0) + 1) * BM
    for start in range(0, end, BN):
        columns = start + tl.arange(0, BN)
        x = tl.dot(q, tl.load(k_ptr + head + columns[None, :] * D + d[:, None])) * scale
        if CAUSAL:
            x = tl.where(rows[:, None] >= columns[None, :], x, float("-inf"))
        top = tl.maximum(highest, tl.max(x, 1))
        p, fade = tl.exp2(x - top[:, None]), tl.exp2(highest - top)
        weight, highest = weight * fade + tl.sum(p, 1), top
        v = tl.load(v_ptr + head + columns[:, None] * D + d[None, :])
        total = tl.dot(p.to(v.dtype), v, total * fade[:, None])
    out = (total / weight[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + head + rows[:, None] * D + d[None, :], out)


ATTENTION_TILES = ((32, 32), (64, 32), (64, 64), (128, 64))


def attention(label: str, name: str, heads: int, *, causal: bool):
    def build(_: Baseline | None) -> Row:
        length, d, dtype = 1024, 64, TYPES[name][0]
        q, k, v = (normal(heads, length, d) * (1 + i) for i in range(3))
        q, k, v = (x.astype(dtype) for x in (q, k, v))
        x = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / math.sqrt(d)
        x = np.where(np.tri(length, dtype=bool), x, -np.inf) if causal else x
        p = np.exp(x - x.max(axis=2, keepdims=True))
        expected = p / p.sum(axis=2, keepdims=True) @ v.astype(np.float64)

        def run(out, bm, bn):
            scale = 1 / math.sqrt(d) / math.log(2)
            attention_kernel[(length // bm, heads)](q, k, v, out, length, scale, D=d, CAUSAL=causal, BM=bm, BN=bn)

        peers: dict[str, Runner] = {}
        if torch is not None:
            tensors = [tensor(x.astype(np.float32)).to(getattr(torch, name))[None] for x in (q, k, v)]
            held = [None]

            def in_torch() -> None:
                held[0] = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)

            peers["PyTorch"] = Runner(in_torch, lambda: held[0][0].to(torch.float64).numpy())
        flops = 4 * heads * length * length * d // (2 if causal else 1)
        tiles = tiled(ATTENTION_TILES, (heads, length, d), run, dtype)
        return Row(label, expected, tiles, peers, flops=flops, tolerance=1e-3 if name == "float32" else 5e-2)

    return build


SIZES = ((512, 512, 512), (1024, 1024, 1024), (4096, 4096, 128), (33, 777, 1001))

ROWS: Family = {
    **{
        f"{name}-{m}x{n}x{k}{form}": product(
            f"matmul {name} {m}x{n}x{k}{form and ', wrapped'}", name, m, n, k, wrap=bool(form)
        )
        for name in TYPES
        for m, n, k in SIZES
        for form in ("", "-wrapped")
    },
    **{
        f"attention-{name}-{heads}{form}": attention(
            f"attention {name}, {heads} heads{form and ', causal'}", name, heads, causal=bool(form)
        )
        for name in ("float32", "bfloat16")
        for heads in (1, 8)
        for form in ("", "-causal")
    },
}
