"""Kernels of `gpu_counts.py`, in the language that weft and Triton share; and Triton's side of that comparison.

Imported, the kernels are weft's. Run by an interpreter that has triton 3.9 (no GPU is needed), this file is a program that
compiles them with Triton: requests as JSON on the standard input, PTX as JSON on the standard output.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

COMPILER = "triton" if __name__ in ("__main__", "gpu_kernels_of_triton") else "weft"
jit = importlib.import_module(COMPILER).jit
tl = importlib.import_module(f"{COMPILER}.language")


@jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=-float("inf"))
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), mask=mask)


@jit
def layer_norm(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(value, 0) / columns
    centred = tl.where(mask, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    result = centred * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, result, mask=mask)


@jit
def sums(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    total = tl.sum(tl.load(x + rows[:, None] * COLUMNS + columns[None, :]), AXIS)
    if AXIS == 0:
        tl.store(out + columns, total)
    else:
        tl.store(out + rows, total)


@jit
def transpose(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    value = tl.load(x + rows[:, None] * COLUMNS + columns[None, :])
    tl.store(out + columns[:, None] * ROWS + rows[None, :], tl.trans(value))


@jit
def matmul(
    a, b, c, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr, PRECISION: tl.constexpr
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    total = tl.zeros((M, N), tl.int32 if KIND == "int" else tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (start + depth)[None, :])
        right = tl.load(b + (start + depth)[:, None] * n + columns[None, :])
        if KIND == "int":
            total = tl.dot(left, right, total, out_dtype=tl.int32)
        else:
            total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@jit
def attention(q, k, v, out, keys, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns, dims = tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + dims[None, :])
    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for start in range(0, keys, N):
        key = tl.load(k + (start + columns)[None, :] * D + dims[:, None])
        score = tl.dot(query, key) * (scale * 1.44269504)
        following = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp2(score - following[:, None])
        shrink = tl.exp2(largest - following)
        total = total * shrink + tl.sum(weight, 1)
        value = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        result = tl.dot(weight.to(tl.float16), value, result * shrink[:, None])
        largest = following
    tl.store(out + rows[:, None] * D + dims[None, :], result / total[:, None])


@jit
def histogram(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(bins + tl.load(x + at, mask=mask, other=0), 1, mask=mask)


def compile_with_triton(request: dict[str, Any]) -> dict[str, Any]:
    """PTX of ``request["kernel"]``: ``signature`` has each parameter's type in Triton's spelling, ``constants`` the
    compile-time ones, ``aligned`` the names of those divisible by 16, ``target`` is 80 or 90, ``options`` are Triton's."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = globals()[request["kernel"]]
    aligned = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in request["aligned"]}
    kinds = request["signature"] | dict.fromkeys(request["constants"], "constexpr")
    source = ASTSource(fn=kernel, signature=kinds, constexprs=request["constants"], attrs=aligned)
    made = triton.compile(source, target=GPUTarget("cuda", request["target"], 32), options=request["options"])
    return {"ptx": made.asm["ptx"], "shared": made.metadata.shared}


if __name__ == "__main__":
    json.dump([compile_with_triton(request) for request in json.load(sys.stdin)], sys.stdout)
