"""Kernels run through the reference, compared with what Python and NumPy compute.

The reference executes the IR literally, so these tests are about the frontend: which ops, in which order, under which
control flow.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false
# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft.language as tl
from weft.frontend import KernelFunction

jit = KernelFunction
Execute = Callable[..., None]
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


@jit
def add_kernel(x_ptr: Any, y_ptr: Any, output_ptr: Any, n_elements: Any, BLOCK_SIZE: tl.constexpr) -> None:
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def test_vector_add(execute: Execute) -> None:
    x, y, out = floats(100), floats(100), np.zeros(100, np.float32)
    execute(add_kernel, (4,), x_ptr=x, y_ptr=y, output_ptr=out, n_elements=np.int32(100), BLOCK_SIZE=32)
    np.testing.assert_array_equal(out, x + y)


@jit
def softmax_kernel(
    out: Any, x: Any, in_stride: Any, out_stride: Any, rows: Any, cols: Any, BLOCK: tl.constexpr
) -> None:
    """The persistent form: a step known at run time only."""
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        i = tl.arange(0, BLOCK)
        v = tl.load(x + row * in_stride + i, mask=i < cols, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * out_stride + i, e / tl.sum(e, axis=0), mask=i < cols)


def test_softmax(execute: Execute) -> None:
    x, out = floats(7, 20), np.zeros((7, 20), np.float32)
    sizes = {"in_stride": 20, "out_stride": 20, "rows": 7, "cols": 20}
    execute(softmax_kernel, (3,), out=out, x=x, **{k: np.int32(v) for k, v in sizes.items()}, BLOCK=32)
    wide = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(out, wide / wide.sum(axis=1, keepdims=True), rtol=1e-5)


@jit
def matmul_kernel(
    a: Any, b: Any, c: Any, M: Any, N: Any, K: Any, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
) -> None:
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a + rm[:, None] * K + rk[None, :]
    b_ptrs = b + rk[:, None] * N + rn[None, :]
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
        right = tl.load(b_ptrs, mask=(rn[None, :] < N) & (rk[:, None] < K - k * BK), other=0.0)
        accumulator = tl.dot(left, right, accumulator)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], accumulator, mask=(rm[:, None] < M) & (rn[None, :] < N))


def test_matmul(execute: Execute) -> None:
    a, b, c = floats(20, 24), floats(24, 12), np.zeros((20, 12), np.float32)
    sizes = {"M": np.int32(20), "N": np.int32(12), "K": np.int32(24)}
    execute(matmul_kernel, (2, 1), a=a, b=b, c=c, **sizes, BM=16, BN=16, BK=8)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


@jit
def attention_inner(acc: Any, l_i: Any, m_i: Any, q: Any, k: Any, v: Any, scale: Any) -> Any:
    qk = tl.dot(q, tl.trans(k)) * scale
    m_ij = tl.maximum(m_i, tl.max(qk, 1))
    p = tl.exp2(qk - m_ij[:, None])
    alpha = tl.math.exp2(m_i - m_ij)
    l_i = l_i * alpha + tl.sum(p, 1)
    acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
    return acc, l_i, m_ij


@jit
def attention_kernel(
    Q: Any, K: Any, V: Any, Out: Any, scale: Any, n: Any, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
) -> None:
    d = tl.arange(0, D)
    m = tl.program_id(0) * M + tl.arange(0, M)
    q = tl.load(Q + m[:, None] * D + d[None, :])
    m_i = tl.zeros([M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([M], dtype=tl.float32) + 1.0
    acc = tl.zeros([M, D], dtype=tl.float32)
    scale *= 1.44269504
    for start in range(0, n, N):
        start = tl.multiple_of(start, N)  # noqa: PLW2901 - Triton's tutorial does
        r = start + tl.arange(0, N)
        k = tl.load(K + r[:, None] * D + d[None, :])
        v = tl.load(V + r[:, None] * D + d[None, :])
        acc, l_i, m_i = attention_inner(acc, l_i, m_i, q, k, v, scale)
    acc = acc / l_i[:, None]
    tl.store(Out + m[:, None] * D + d[None, :], acc.to(Out.dtype.element_ty))


def test_attention(execute: Execute) -> None:
    q, k, v, out = floats(16, 16), floats(32, 16), floats(32, 16), np.zeros((16, 16), np.float32)
    execute(attention_kernel, (2,), Q=q, K=k, V=v, Out=out, scale=np.float32(0.25), n=np.int32(32), M=8, N=8, D=16)
    scores = np.exp(q.astype(np.float64) @ k.T * 0.25)
    # l_i starts at 1 as in Triton's tutorial; the first rescaling by exp2(-inf) removes it.
    np.testing.assert_allclose(out, scores / scores.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


# Control flow


@jit
def early(x: Any, n: Any, K: tl.constexpr) -> Any:
    if n > 10:
        return x * 2
    if n > 5:
        if n == 7:
            return x + K
        x = x - 1
    else:
        x = x * n
    return x + 0


@jit
def calls_early(out: Any, n: Any) -> None:
    tl.store(out, early(n + 1, n, 100))
    if n == 3:
        return
    tl.store(out + 1, 1)


@pytest.mark.parametrize("n", range(13))
def test_early_returns(execute: Execute, n: int) -> None:
    out = np.zeros(2, np.int32)
    execute(calls_early, out=out, n=np.int32(n))
    x = n + 1
    expected = x * 2 if n > 10 else x + 100 if n == 7 else x - 1 if n > 5 else x * n
    assert out.tolist() == [expected, n != 3]


@jit
def counts(out: Any, start: Any, stop: Any, step: Any) -> None:
    n = 0
    for i in range(start, stop, step):
        tl.store(out + n, i)
        n += 1
    tl.store(out + 31, n)


@pytest.mark.parametrize("compile_time", [True, False])
@pytest.mark.parametrize(("start", "stop", "step"), list(itertools.product([-2, 0, 3, 10], [0, 5, 11], [-3, -1, 1, 4])))
def test_ranges_are_pythons(execute: Execute, start: int, stop: int, step: int, compile_time: bool) -> None:
    out = np.zeros(32, np.int32)
    execute(counts, out=out, start=np.int32(start), stop=np.int32(stop), step=step if compile_time else np.int32(step))
    expected = list(range(start, stop, step))
    assert out[: len(expected)].tolist() == expected
    assert out[31] == len(expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.uint32])
def test_ranges_of_other_integers(execute: Execute, dtype: Any) -> None:
    out = np.zeros(32, np.int64)
    high = min(np.iinfo(dtype).max, 2**40)
    execute(counts, out=out, start=dtype(high - 4), stop=dtype(high), step=dtype(3))
    assert out[:2].tolist() == [high - 4, high - 1]
    assert out[31] == 2


def test_step_zero_runs_no_iteration(execute: Execute) -> None:
    out = np.zeros(32, np.int32)
    execute(counts, out=out, start=np.int32(0), stop=np.int32(5), step=np.int32(0))
    assert out[31] == 0


@jit
def fibonacci(out: Any, n: Any, most: Any) -> None:
    a, b = 0, 1
    steps = 0
    while a < n and steps < most:
        a, b = b, a + b
        steps += 1
    tl.store(out, a)
    tl.store(out + 1, steps)


@pytest.mark.parametrize(("n", "most"), [(0, 9), (1, 9), (100, 50), (100, 4)])
def test_while(execute: Execute, n: int, most: int) -> None:
    out = np.zeros(2, np.int32)
    execute(fibonacci, out=out, n=np.int32(n), most=np.int32(most))
    a, b, steps = 0, 1, 0
    while a < n and steps < most:
        a, b, steps = b, a + b, steps + 1
    assert out.tolist() == [a, steps]


@jit
def nested(out: Any, n: Any, m: Any) -> None:
    total = 0
    best = -1
    for i in range(n):
        row = 0
        for j in range(i, m):
            if (i + j) % 2 == 0:
                row += i * j
            elif j > 3:
                row -= 1
            else:
                pass
        if row > best:  # noqa: PLR1730 - an 'if' that assigns is what this tests
            best = row
        total += row
    tl.store(out, total)
    tl.store(out + 1, best)


@pytest.mark.parametrize(("n", "m"), [(0, 3), (4, 6), (5, 2)])
def test_nested_loops_and_branches(execute: Execute, n: int, m: int) -> None:
    out = np.zeros(2, np.int32)
    execute(nested, out=out, n=np.int32(n), m=np.int32(m))
    total, best = 0, -1
    for i in range(n):
        row = sum(i * j if (i + j) % 2 == 0 else -1 if j > 3 else 0 for j in range(i, m))
        total, best = total + row, max(best, row)
    assert out.tolist() == [total, best]


@jit
def scalars(out: Any, n: Any, flag: Any) -> None:
    x = -7
    y: tl.constexpr = -7
    tl.store(out, x // 2)  # a plain local is a run-time int32: C's division
    tl.store(out + 1, y // 2)  # constexpr: Python's
    tl.store(out + 2, x % 3)
    tl.store(out + 3, -7 % 3)
    tl.store(out + 4, n if n > 3 else x)
    tl.store(out + 5, min(n, 4) + max(n, 3, 5) + abs(x) + len((1, 2, 3)))
    tl.store(out + 6, 1 if 0 < n <= 5 else 0)
    tl.store(out + 7, 1 if not flag or n == 10 else 0)
    tl.store(out + 8, (z := n + 1) * z)
    tl.store(out + 9, ~n)


@pytest.mark.parametrize(("n", "flag"), [(5, True), (2, False), (10, True), (-3, True)])
def test_scalars(execute: Execute, n: int, flag: bool) -> None:
    out = np.zeros(10, np.int32)
    execute(scalars, out=out, n=np.int32(n), flag=np.bool_(flag))
    expected = [
        -3,  # trunc(-3.5)
        -4,  # floor(-3.5)
        -1,  # -7 = -2 * 3 - 1
        2,  # -7 = -3 * 3 + 2
        n if n > 3 else -7,
        min(n, 4) + max(n, 5) + 7 + 3,
        0 < n <= 5,
        not flag or n == 10,
        (n + 1) ** 2,
        -n - 1,
    ]
    assert out.tolist() == expected


@jit
def total_of(*values: Any) -> Any:
    result = 0
    for i in tl.static_range(len(values)):
        result += values[i] * (i + 1)
    return result


@jit
def compile_time(out: Any, n: Any, N: tl.constexpr, KIND: tl.constexpr) -> None:
    shape: tl.constexpr = (N, 2 * N)
    dtype = tl.int32 if KIND == "int" else tl.float32
    tile = tl.full(shape, 1, dtype)
    if KIND is None:
        tl.static_assert(False, "this branch is never compiled")
    elif KIND in ("int", "float") and N >= 4:
        tl.store(out, tl.sum(tile))
    else:
        tl.static_assert(False)
    tl.store(out + 1, total_of(n, *shape))
    for i in tl.static_range(2, 5):
        half: tl.constexpr = i * 2
        tl.store(out + i, tl.sum(tl.arange(0, 1 << half)))
    tl.store(out + 5, tile.shape[1] + len(tile.shape) + tile.numel)
    tl.store(out + 6, 1 if tile.dtype.is_floating() else 0)
    tl.store(out + 7, 1 if isinstance(n, tl.tensor) and not isinstance(N, tl.tensor) else 0)


@pytest.mark.parametrize("kind", ["int", "float"])
def test_compile_time(execute: Execute, kind: str) -> None:
    out = np.zeros(8, np.int64)
    execute(compile_time, out=out, n=np.int32(3), N=4, KIND=kind)
    # 32 ones; 3 + 2*4 + 3*8; sums of 0..2**(2i)-1; 8 + 2 + 32
    assert out.tolist() == [
        32,
        35,
        *(2 ** (2 * i) * (2 ** (2 * i) - 1) // 2 for i in (2, 3, 4)),
        42,
        kind == "float",
        1,
    ]


@tl.constexpr_function
def bit_length(n: int) -> int:
    return n.bit_length()


@tl.constexpr
def next_bit_length(n: int) -> int:
    return n.bit_length() + 1


@jit
def calls_python(out: Any, N: tl.constexpr) -> None:
    tl.store(out, tl.sum(tl.arange(0, bit_length(N)) * 0 + 1))
    tl.store(out + 1, next_bit_length(N))


def test_functions_of_constants(execute: Execute) -> None:
    """By the decorator, and by `tl.constexpr`, which wraps any Python value."""
    out = np.zeros(2, np.int32)
    execute(calls_python, out=out, N=tl.constexpr([200])[0])
    assert out.tolist() == [8, 9]
    assert next_bit_length(200) == 9


@jit
def branches_share_names(out: Any, n: Any) -> None:
    if n > 0:
        t = tl.arange(0, 4)
        a, b = n, tl.sum(t)
    else:
        t = 1.5
        b, a = n - 1, 7
    tl.store(out, a)
    tl.store(out + 1, b)


@pytest.mark.parametrize("n", [4, -4])
def test_branches_may_reuse_a_name_that_is_not_read_later(execute: Execute, n: int) -> None:
    out = np.zeros(2, np.int32)
    execute(branches_share_names, out=out, n=np.int32(n))
    assert out.tolist() == ([n, 6] if n > 0 else [7, n - 1])


@jit
def read_in_the_next_copy(out: Any, n: Any) -> None:
    x = 10
    for i in tl.static_range(4):
        tl.store(out + i, x)
        if n > i:
            x = x + 1


@jit
def read_in_the_next_iteration(out: Any, n: Any) -> None:
    x = 10
    for i in range(4):
        tl.store(out + i, x)
        if n > i:
            x = x + 1


@pytest.mark.parametrize("kernel", [read_in_the_next_copy, read_in_the_next_iteration])
def test_loops_read_what_earlier_iterations_assigned(execute: Execute, kernel: KernelFunction) -> None:
    out = np.zeros(4, np.int32)
    execute(kernel, out=out, n=np.int32(2))
    assert out.tolist() == [10, 11, 12, 12]


@jit
def swaps(out: Any, n: Any, one: Any) -> None:
    """The constant ``one`` (as the runtime passes 1) becomes a run-time scalar because the loop changes it."""
    pair = (n, 100)
    while one < 8:
        one = one * 2
        pair = (pair[1], pair[0])
        for i in range(3):
            pair = (pair[0] + i, pair[1])
    tl.store(out, pair[0])
    tl.store(out + 1, pair[1])
    tl.store(out + 2, one)


def test_tuples_and_constants_go_around_loops(execute: Execute) -> None:
    out = np.zeros(3, np.int32)
    execute(swaps, out=out, n=np.int32(7), one=1)
    # 1 -> 2 -> 4 -> 8: (7, 100), (103, 7), (10, 103), (106, 10)
    assert out.tolist() == [106, 10, 8]


# Reductions and shapes


@jit
def keep_larger(a: Any, i: Any, b: Any, j: Any) -> Any:
    larger = a > b
    return tl.where(larger, a, b), tl.where(larger, i, j)


@jit
def larger_of(a: Any, b: Any) -> Any:
    if a > b:
        return a
    return b


@jit
def reduces(x: Any, values: Any, indices: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, M * N)
    v = tl.load(x + i)
    best, where = tl.reduce((v, i), 0, keep_larger)
    tl.store(values, best)
    tl.store(indices, where)
    tl.store(values + 1, tl.reduce(v, 0, larger_of))
    tl.store(values + 2, v.sum())
    most, at = tl.max(v, axis=0, return_indices=True)
    tl.store(values + 3, most)
    tl.store(indices + 1, at)
    tl.store(indices + 2, tl.argmin(v, 0))
    w = v.reshape(M, N)
    tl.store(indices + 3, tl.argmax(w, axis=None))
    tl.store(values + 4, tl.min(tl.max(w, axis=1)))
    tl.store(values + 5, tl.sum(tl.sum(w, axis=-1, keep_dims=True) * tl.trans(tl.zeros((1, M), tl.float32) + 1.0)))
    tl.store(indices + 4 + tl.arange(0, N), tl.argmax(w, axis=0))
    tl.store(values + 6, tl.max(tl.abs(tl.sum(tl.softmax(w, dim=1), axis=1) - 1.0)))
    tl.store(values + 7, tl.sum(tl.where(w == w.T.T, 1.0, 0.0)))


def test_reductions(execute: Execute) -> None:
    x, values, indices = floats(32), np.zeros(8, np.float32), np.zeros(12, np.int32)
    execute(reduces, x=x, values=values, indices=indices, M=4, N=8)
    w = x.reshape(4, 8)
    expected = [x.max(), x.max(), x.sum(), x.max(), w.max(1).min(), x.sum(), 0, 32]
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    assert indices[:4].tolist() == [x.argmax(), x.argmax(), x.argmin(), x.argmax()]
    assert indices[4:].tolist() == w.argmax(0).tolist()


@jit
def extremes(x: Any, values: Any, indices: Any) -> None:
    v = tl.load(x + tl.arange(0, 4))
    tl.store(values, tl.max(v))
    tl.store(values + 1, tl.min(v))
    tl.store(indices, tl.argmax(v, 0))
    tl.store(indices + 1, tl.argmin(v, 0))


@pytest.mark.parametrize("order", list(itertools.permutations([math.nan, 1.0, 3.0, 2.0])))
def test_extremes_leave_nans_out(execute: Execute, order: tuple[float, ...]) -> None:
    values, indices = np.zeros(2, np.float32), np.zeros(2, np.int32)
    execute(extremes, x=np.array(order, np.float32), values=values, indices=indices)
    assert values.tolist() == [3, 1]
    assert indices.tolist() == [order.index(3.0), order.index(1.0)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [([math.nan] * 4, [0, 0]), ([2.0, 5.0, 5.0, 2.0], [1, 0]), ([math.nan, 5.0, math.nan, 5.0], [1, 1])],
)
def test_the_leftmost_index_wins(execute: Execute, order: list[float], expected: list[int]) -> None:
    values, indices = np.zeros(2, np.float32), np.zeros(2, np.int32)
    execute(extremes, x=np.array(order, np.float32), values=values, indices=indices)
    assert indices.tolist() == expected


@jit
def moves(x: Any, out: Any, n: Any) -> None:
    i = tl.arange(0, 8)
    v = tl.load(x + 8 - i - 1)
    tl.store(out + i.to(tl.uint32), v)
    a, b = tl.broadcast(i[:, None], tl.arange(0, 2)[None, :])
    tl.store(out + 8 + a * 2 + b, tl.view(tl.ravel(a + b), [8, 2]))
    address = (out + 24).to(tl.int64, bitcast=True) + 4 * n
    tl.store(address.to(tl.pointer_type(tl.int32)), n)
    tl.atomic_add(out + 30 + i * 0, 1, mask=i < 5)
    tl.store(out + 31, (out + n > out) & (out + 0 == out))


def test_pointers(execute: Execute) -> None:
    x, out = np.arange(8, dtype=np.int32), np.zeros(32, np.int32)
    execute(moves, x=x, out=out, n=np.int32(3))
    assert out[:8].tolist() == list(range(7, -1, -1))
    assert out[8:24].tolist() == [i + j for i in range(8) for j in range(2)]
    assert out[27] == 3
    assert out[30:].tolist() == [5, 1]
