"""Control flow that carries tiles and scalars, against the reference: what a loop body reads must be the old value until
the whole body is done with it."""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnnecessaryComparison=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportUnusedVariable=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from sampling import every, grid
from weft.frontend import KernelFunction

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit

jit = KernelFunction
SIZES = [1, 4, 16, 64, 512]
"""Less than a vector, one vector, all registers unrolled, a loop."""


def integers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(np.int32)


@jit
def early_return(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if tl.program_id(0) >= n:
        return
    if tl.sum(v, axis=0) % 2 == tl.program_id(0) % 2:
        tl.store(out + tl.program_id(0) * N + i, v)
        return
    tl.store(out + tl.program_id(0) * N + i, v * v)


@pytest.mark.parametrize("n", every(2, SIZES))
def test_early_return(differ: Differential, n: int) -> None:
    for x in (integers(n), integers(n) * 2, integers(n) * 2 + 1):
        differ(early_return, (4,), promises=[True], x=x, out=np.zeros(4 * n, np.int32), n=np.int32(3), N=n)


@jit
def branches(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    """Tiles, pointers, scalars and bools that one side or both give."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    s = tl.max(v, axis=0)
    flags = v > 0
    p = out + i
    if n > 2:
        w = tl.exp2((v % 4).to(tl.float32)).to(tl.int32)
        flags = v < s
        s = s + 1
        p = p + N
    else:
        w = v
        if n > 1:
            w = -v
            s = tl.min(w, axis=0)
    tl.store(p, tl.where(flags, w, s))
    y = w * 3 if s > n else v
    tl.store(out + 2 * N + i, y + s)


@pytest.mark.parametrize("n", every(2, SIZES))
def test_if_gives_tiles_and_scalars(differ: Differential, n: int) -> None:
    for taken in range(4):
        differ(branches, promises=[True], x=integers(n), out=np.zeros(3 * n, np.int32), n=np.int32(taken), N=n)


@jit
def nested(x: Any, out: Any, n: Any, m: Any, N: tl.constexpr) -> None:
    """Loops in loops and branches; tiles of the outer loop read by the inner one after the inner one has changed others."""
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = a ^ 5
    count = 0
    for j in range(n):
        before = a
        for k in range(m):
            a = a + b * k
            if (j + k) % 3 == 0:
                b = before - a
            else:
                count += tl.sum(tl.where(b > a, 1, 0), axis=0)
        a, b = before + b, a - count
        tl.store(out + j * N + i, before)
    tl.store(out + 8 * N + i, a)
    tl.store(out + 9 * N + i, b + count)


@pytest.mark.parametrize("n", every(2, SIZES))
def test_nested_loops(differ: Differential, n: int) -> None:
    for outer, inner in ((0, 3), (3, 0), (1, 1), (4, 5)):
        out = np.zeros(10 * n, np.int32)
        differ(nested, promises=[True], x=integers(n), out=out, n=np.int32(outer), m=np.int32(inner), N=n)


@jit
def until(x: Any, out: Any, N: tl.constexpr) -> None:
    """The condition reduces a carried tile; a bool tile is carried, too."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    live = v != 0
    rounds = 0
    while (tl.sum(tl.where(live, 1, 0), axis=0) > 0) & (rounds < 20):
        v = tl.where(live, v // 2, v + 1000)
        live = (v != 0) & live
        rounds += 1
    tl.store(out + i, v)
    tl.store(out + N + i, tl.where(live, 1, 0) + rounds)


@pytest.mark.parametrize("n", every(2, SIZES))
def test_while_on_a_reduction_of_a_carried_tile(differ: Differential, n: int) -> None:
    differ(until, promises=[True], x=integers(n), out=np.zeros(2 * n, np.int32), N=n)


@jit
def online_softmax(x: Any, out: Any, rows: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """Row statistics and an accumulator that is scaled, then added to in place; the old maximum is read after the new one
    exists."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    top = tl.full((M,), -1000.0, tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(n):
        v = tl.load(x + k * M * N + i[:, None] * N + j[None, :])
        new = tl.maximum(top, tl.max(v, axis=1))
        share = tl.exp2(top - new)
        p = tl.exp2(v - new[:, None])
        total = total * share + tl.sum(p, axis=1)
        acc = acc * share[:, None]
        acc = tl.dot(p, tl.trans(p), acc) if M == N else acc + p
        top = new
    tl.store(out + i[:, None] * N + j[None, :], acc)
    tl.store(out + M * N + i, total, mask=i < rows)
    tl.store(out + M * N + M + i, top, mask=i < rows)


@pytest.mark.parametrize("sizes", every(2, [(1, 8), (2, 2), (16, 16), (64, 16), (4, 128), (32, 32)]), ids=str)
def test_online_softmax(differ: Differential, sizes: tuple[int, int]) -> None:
    """Powers of two: every step is exact as long as the exponents stay close together."""
    m, n = sizes
    x = np.random.default_rng(0).integers(-2, 3, (3, m, n)).astype(np.float32)
    differ(online_softmax, x=x, out=np.zeros(m * n + 2 * m, np.float32), rows=np.int32(m), n=np.int32(3), M=m, N=n)


@jit
def accumulate(a: Any, b: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr, HOW: tl.constexpr) -> None:
    """Accumulators that may be overwritten in place, and some that must not be."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    old = acc + 1
    for k in range(n):
        x = tl.load(a + k * M * M + i[:, None] * M + i[None, :])
        y = tl.load(b + k * M * N + i[:, None] * N + j[None, :])
        if HOW == "plain":
            acc = tl.dot(x, y, acc)
        elif HOW == "added":
            acc += tl.dot(x, y)
        elif HOW == "scaled":
            acc = tl.dot(x, y, acc * 0.5 + k)
        elif HOW == "scaled twice":  # two carried tiles take the one result
            acc = tl.dot(x, y, acc * 0.5 + k)
            old = acc
        elif HOW == "shared":  # what is added to is read again after the product
            base = acc * 0.5 + k
            acc = tl.dot(x, y, base)
            old = old + base
        elif HOW == "kept":  # the old value is read after the product
            new = tl.dot(x, y, acc)
            old = old + acc
            acc = new
        elif HOW == "rotated":
            new = tl.dot(x, y, acc - 1)
            old = acc
            acc = new
        elif HOW == "operand":  # the accumulator is an operand, too
            acc = tl.dot(x, tl.dot(x, acc, y) % 8, acc)
        elif HOW == "twice":
            acc = tl.dot(x, y, tl.dot(x, y, acc))
        elif HOW == "both":
            acc = tl.dot(x, y, acc)
            old = acc
        elif HOW == "stored":
            acc = tl.dot(x, y, acc)
            tl.store(out + (2 + k) * M * N + i[:, None] * N + j[None, :], acc)
        elif HOW == "branch":
            if k % 2 == 0:
                acc = tl.dot(x, y, acc)
            else:
                old += acc
        elif HOW == "swapped":
            acc, old = tl.dot(x, y, old), acc
    tl.store(out + i[:, None] * N + j[None, :], acc)
    tl.store(out + M * N + i[:, None] * N + j[None, :], old)


WAYS = [
    "plain",
    "added",
    "scaled",
    "scaled twice",
    "shared",
    "kept",
    "rotated",
    "operand",
    "twice",
    "both",
    "stored",
    "branch",
    "swapped",
]


@pytest.mark.parametrize(("how", "sizes"), grid(4, WAYS, [(1, 4), (2, 2), (4, 32), (16, 16), (16, 64)]), ids=str)
def test_accumulators(differ: Differential, how: str, sizes: tuple[int, int]) -> None:
    m, n = sizes
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-1, 2, s).astype(np.float32) for s in ((4, m, m), (4, m, n)))
    for count in (0, 1, 4):
        out = np.zeros(6 * m * n, np.float32)
        if count == 4 or m == 4:
            differ(accumulate, promises=[m == 4], a=a, b=b, out=out, n=np.int32(count), M=m, N=n, HOW=how)


@jit
def turning(x: Any, out: Any, n: Any, A: tl.constexpr, C: tl.constexpr) -> None:
    """A transposition that moves whole registers: tiles are read at other registers than they are written."""
    a, c = tl.arange(0, A), tl.arange(0, C)
    at = a[:, None, None] * A * C + a[None, :, None] * C + c[None, None, :]
    v = tl.load(x + at)
    tl.store(out + at, v + tl.permute(v, (1, 0, 2)) * 3)
    w = v
    for k in range(n):
        v, w = tl.permute(v, (1, 0, 2)) + k, w + tl.permute(v, (1, 0, 2))
    tl.store(out + A * A * C + at, v)
    tl.store(out + 2 * A * A * C + at, w)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 16), (4, 16), (8, 4), (8, 32)], ids=str)
def test_tiles_read_at_other_registers(differ: Differential, sizes: tuple[int, int]) -> None:
    a, c = sizes
    for count in (0, 1, 3):
        x, out = integers(a, a, c), np.zeros(3 * a * a * c, np.int32)
        differ(turning, promises=[count != 1], x=x, out=out, n=np.int32(count), A=a, C=c)


@jit
def two_shapes(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """The second carried tile is written in a loop of its own, from the old value of the first."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, M * N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    b = tl.load(x + k)
    for _ in range(n):
        a, b = a + 1, b + tl.reshape(a, (M * N,))
    tl.store(out + i[:, None] * N + j[None, :], a)
    tl.store(out + M * N + k, b)


@pytest.mark.parametrize("sizes", [(1, 4), (2, 16), (8, 16), (16, 64)], ids=str)
def test_an_old_tile_read_after_the_new_one_is_known(differ: Differential, sizes: tuple[int, int]) -> None:
    m, n = sizes
    for count in (0, 1, 3):
        out = np.zeros(2 * m * n, np.int32)
        differ(two_shapes, promises=[count != 1], x=integers(m * n), out=out, n=np.int32(count), M=m, N=n)


@jit
def moving_pointers(x: Any, out: Any, n: Any, step: Any, N: tl.constexpr) -> None:
    """Tiles of pointers and of offsets that a loop only shifts, by constants, by arguments and by loop variables, used after
    the loop and inside branches."""
    i = tl.arange(0, N)
    p = x + i
    q = x + i
    offsets = i * 2
    mixed = i
    for k in range(n):
        v = tl.load(p) + tl.load(q) + tl.load(x + offsets)
        if k % 2 == 1:
            v += tl.load(p + 1)
        tl.store(out + k * N + i, v + mixed)
        p += step
        q = q + k
        offsets += 3
        mixed = mixed + k * k
    tl.store(out + n * N + i, tl.load(p) + tl.load(q) + offsets + mixed)


@pytest.mark.parametrize("n", every(2, SIZES))
def test_tiles_that_a_loop_shifts(differ: Differential, n: int) -> None:
    for count, step in ((0, 1), (1, 5), (5, 2)):
        sizes = {"n": np.int32(count), "step": np.int32(step)}
        differ(moving_pointers, promises=[True], x=integers(2 * n + 64), out=np.zeros(6 * n, np.int32), **sizes, N=n)
