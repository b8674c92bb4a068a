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
    total = tl.zeros((M, N), c.dtype.element_ty)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (start + depth)[None, :])
        right = tl.load(b + (start + depth)[:, None] * n + columns[None, :])
        if KIND == "mixed":
            right = right.to(tl.float16)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=c.dtype.element_ty)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@jit
def attention(
    q, k, v, out, keys, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr = False
):
    """Causal: keys up to the query's own; the blocks behind the diagonal are not visited."""
    block = tl.program_id(0)
    rows = block * M + tl.arange(0, M)
    columns, dims = tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + dims[None, :])
    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    last = (block + 1) * M if CAUSAL else keys
    for start in range(0, last, N):
        key = tl.load(k + (start + columns)[None, :] * D + dims[:, None])
        score = tl.dot(query, key) * (scale * 1.44269504)
        if CAUSAL:
            score = tl.where(rows[:, None] >= (start + columns)[None, :], score, -1e6)
        following = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp2(score - following[:, None])
        shrink = tl.exp2(largest - following)
        total = total * shrink + tl.sum(weight, 1)
        value = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        result = tl.dot(weight.to(tl.float16), value, result * shrink[:, None])
        largest = following
    tl.store(out + rows[:, None] * D + dims[None, :], result / total[:, None])


@jit
def tutorial_matmul(
    a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr
):
    """The tutorial's: programs in groups of rows, indices that wrap around, a masked last tile, carried pointers, activation."""
    program = tl.program_id(0)
    rows_of_tiles, columns_of_tiles = tl.cdiv(m, M), tl.cdiv(n, N)
    in_group = GROUP * columns_of_tiles
    first = program // in_group * GROUP
    size = min(rows_of_tiles - first, GROUP)
    row, column = first + program % in_group % size, program % in_group // size
    tl.assume(row >= 0)
    tl.assume(column >= 0)
    rows, columns, depth = (row * M + tl.arange(0, M)) % m, (column * N + tl.arange(0, N)) % n, tl.arange(0, K)
    left_at = a + (rows[:, None] * k + depth[None, :])
    right_at = b + (depth[:, None] * n + columns[None, :])
    total = tl.zeros((M, N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        left = tl.load(left_at, mask=depth[None, :] < k - step * K, other=0.0)
        right = tl.load(right_at, mask=depth[:, None] < k - step * K, other=0.0)
        total = tl.dot(left, right, total)
        left_at += K
        right_at += K * n
    if ACTIVATION:
        total = tl.where(total >= 0, total, 0.01 * total)
    rows, columns = row * M + tl.arange(0, M), column * N + tl.arange(0, N)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)


@jit
def attention_backward(
    q, k, v, dout, logs, delta, dkv, queries, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):
    """The gradients of N keys, then of their values, from all queries."""
    keys, dims, some = tl.program_id(0) * N + tl.arange(0, N), tl.arange(0, D), tl.arange(0, M)
    key = tl.load(k + keys[:, None] * D + dims[None, :])
    value = tl.load(v + keys[:, None] * D + dims[None, :])
    dk, dv = tl.zeros((N, D), tl.float32), tl.zeros((N, D), tl.float32)
    for start in range(0, queries, M):
        rows = start + some
        turned = tl.load(q + rows[None, :] * D + dims[:, None])
        weight = tl.exp2(tl.dot(key, turned) * (scale * 1.44269504) - tl.load(logs + rows)[None, :])
        grad = tl.load(dout + rows[:, None] * D + dims[None, :])
        dv = tl.dot(weight.to(tl.float16), grad, dv)
        dweight = tl.dot(value, tl.trans(grad))
        dscore = (weight * (dweight - tl.load(delta + rows)[None, :])).to(tl.float16)
        dk = tl.dot(dscore, tl.trans(turned), dk)
    tl.store(dkv + keys[:, None] * D + dims[None, :], dk * scale)
    tl.store(dkv + queries * D + keys[:, None] * D + dims[None, :], dv)


@jit
def layer_norm_backward(x, weight, dy, mean, scale, dx, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0)
    gradient = tl.load(dy + row * columns + at, mask=mask, other=0.0) * tl.load(weight + at, mask=mask, other=0.0)
    factor = tl.load(scale + row)
    normal = tl.where(mask, (value - tl.load(mean + row)) * factor, 0.0)
    first = tl.sum(normal * gradient, 0) / columns
    second = tl.sum(gradient, 0) / columns
    tl.store(dx + row * columns + at, (gradient - (normal * first + second)) * factor, mask=mask)


@jit
def rows_of(table, numbers, out, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of a table by their numbers."""
    rows, columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, COLUMNS)
    found = tl.load(numbers + rows)
    tl.store(
        out + rows[:, None] * COLUMNS + columns[None, :], tl.load(table + found[:, None] * COLUMNS + columns[None, :])
    )


@jit
def histogram(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(bins + tl.load(x + at, mask=mask, other=0), 1, mask=mask)


@jit
def dropout(x, keep, out, n, p, BLOCK: tl.constexpr):
    """The tutorial's first: the mask is in memory."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask)
    kept = tl.load(keep + at, mask=mask)
    tl.store(out + at, tl.where(kept != 0, value / (1 - p), 0.0), mask=mask)


@jit
def seeded_dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    """The tutorial's second: the mask is a random number of each element, by the ten rounds of Philox 4x32."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask)
    a = at.to(tl.uint32)
    b = tl.zeros((BLOCK,), tl.uint32)
    c = tl.zeros((BLOCK,), tl.uint32)
    d = tl.zeros((BLOCK,), tl.uint32)
    first = tl.full((BLOCK,), 0, tl.uint32) + seed.to(tl.uint32)
    second = tl.zeros((BLOCK,), tl.uint32)
    for _ in tl.static_range(10):
        low = a.to(tl.uint64) * 0xD2511F53
        high = c.to(tl.uint64) * 0xCD9E8D57
        a, b, c, d = (
            (high >> 32).to(tl.uint32) ^ b ^ first,
            high.to(tl.uint32),
            (low >> 32).to(tl.uint32) ^ d ^ second,
            low.to(tl.uint32),
        )
        first += 0x9E3779B9
        second += 0xBB67AE85
    number = (a >> 8).to(tl.float32) * 5.9604644775390625e-08
    tl.store(out + at, tl.where(number > p, value / (1 - p), 0.0), mask=mask)


@jit
def grouped_matmul(
    a,
    b,
    sizes,
    places,
    c,
    groups,
    programs,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    """The tutorial's: each program takes tiles of all problems in turn. A problem has three sizes, and where its matrices are."""
    tile = tl.program_id(0)
    last = 0
    for group in range(groups):
        m = tl.load(sizes + group * 3)
        n = tl.load(sizes + group * 3 + 1)
        k = tl.load(sizes + group * 3 + 2)
        tiles_of_columns = tl.cdiv(n, N)
        count = tl.cdiv(m, M) * tiles_of_columns
        left = a + tl.multiple_of(tl.load(places + group * 3), 16)
        right = b + tl.multiple_of(tl.load(places + group * 3 + 1), 16)
        result = c + tl.multiple_of(tl.load(places + group * 3 + 2), 16)
        n = tl.multiple_of(n, 16)
        k = tl.multiple_of(k, 16)
        while tile >= last and tile < last + count:
            inside = tile - last
            rows = inside // tiles_of_columns * M + tl.arange(0, M)
            columns = inside % tiles_of_columns * N + tl.arange(0, N)
            depth = tl.arange(0, K)
            left_at = left + rows[:, None] * k + depth[None, :]
            right_at = right + depth[:, None] * n + columns[None, :]
            total = tl.zeros((M, N), tl.float32)
            for _ in range(0, tl.cdiv(k, K)):
                total = tl.dot(tl.load(left_at), tl.load(right_at), total)
                left_at += K
                right_at += K * n
            tl.store(result + rows[:, None] * n + columns[None, :], total.to(tl.float16))
            tile += programs
        last += count


@jit
def prefix_sums(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Inclusive sums of each program's elements: inside rows of a square, then the sums of the rows before."""
    at = tl.program_id(0) * ROWS * COLUMNS + tl.arange(0, ROWS * COLUMNS)
    value = tl.reshape(tl.load(x + at), (ROWS, COLUMNS))
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    upto = columns[None, :, None] >= columns[None, None, :]
    inside = tl.sum(tl.where(upto, value[:, None, :], 0), 2)
    whole = tl.sum(value, 1)
    before = tl.sum(tl.where(rows[:, None] > rows[None, :], whole[None, :], 0), 1)
    tl.store(out + at, tl.reshape(inside + before[:, None], (ROWS * COLUMNS,)))


@jit
def doubled_sums(x, scratch, out, SIZE: tl.constexpr, STEPS: tl.constexpr):
    """Inclusive sums by Hillis and Steele: step s adds the element 2^s before, through memory and a barrier."""
    at = tl.arange(0, SIZE)
    base = tl.program_id(0) * SIZE
    value = tl.load(x + base + at)
    for step in tl.static_range(STEPS):
        here = scratch + (base * 2 + step % 2 * SIZE)
        tl.store(here + at, value)
        tl.debug_barrier()
        value += tl.load(here + at - (1 << step), mask=at >= (1 << step), other=0)
    tl.store(out + base + at, value)


@jit
def scanned_sums(x, out, SIZE: tl.constexpr):
    """The same by the language's own scan."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@jit
def composed(a, b, c, d):
    """x -> a x + b, then x -> c x + d."""
    return a * c, b * c + d


@jit
def scanned_maps(x, y, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A recurrence along each row, from its end: a scan of pairs that does not commute."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    first, second = tl.associative_scan((tl.load(x + at), tl.load(y + at)), 1, composed, reverse=True)
    tl.store(out + at, first + second)


@jit
def taken(x, index, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), 1))


@jit
def counted(x, bins, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Counts of a tile, added to those of other programs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    found = tl.histogram(tl.load(x + at, mask=mask, other=0), BINS, mask)
    tl.atomic_add(bins + tl.arange(0, BINS), found)


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
