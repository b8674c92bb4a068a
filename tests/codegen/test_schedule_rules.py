"""Kernels in which each rule of fusion and placement shows: without the rule they leave wrong numbers, or do not compile.

Integers throughout, so that every difference is a wrong order and none a rounding.
"""

# pyright: reportUnnecessaryComparison=false, reportIndexIssue=false, reportUnusedVariable=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from weft.frontend import KernelFunction

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit

jit = KernelFunction


def integers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(np.int32)


# ---- write-backs and who still reads the carried tile ---------------------------------------------------------------


@jit
def running_maximum(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """As in attention: the accumulator, a larger tile, is corrected by the old maximum after the new one is known. The
    correction costs less than a buffer, so the accumulator's loop reads the carried maximum itself."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    top = tl.full((M,), -1000, tl.int32)
    acc = tl.zeros((M, N), tl.int32)
    for k in range(n):
        v = tl.load(x + k * M * N + i[:, None] * N + j[None, :])
        new = tl.maximum(top, tl.max(v, axis=1))
        acc = acc * 2 + (v - top[:, None])
        top = new
    tl.store(out + i[:, None] * N + j[None, :], acc)
    tl.store(out + M * N + i, top)


@pytest.mark.parametrize("sizes", [(2, 2), (4, 64), (32, 16), (64, 32)], ids=str)
def test_a_larger_tile_reads_the_old_value_after_it_is_written(differ: Differential, sizes: tuple[int, int]) -> None:
    m, n = sizes
    x, out = integers(3, m, n), np.zeros(m * n + m, np.int32)
    found = differ(running_maximum, promises=[True], x=x, out=out, n=np.int32(3), M=m, N=n)["out"]
    top, acc = np.full(m, -1000), np.zeros((m, n), np.int64)
    for v in x:
        top, acc = np.maximum(top, v.max(axis=1)), acc * 2 + (v - top[:, None])
    assert (found[: m * n] == acc.ravel()).all()
    assert (found[m * n :] == top).all()


@jit
def turned_while_written(x: Any, out: Any, n: Any, A: tl.constexpr, C: tl.constexpr) -> None:
    """The carried tile is written in one loop with a value that reads it at other registers."""
    a, c = tl.arange(0, A), tl.arange(0, C)
    at = a[:, None, None] * A * C + a[None, :, None] * C + c[None, None, :]
    v = tl.load(x + at)
    w = v * 5
    for _ in range(n):
        v, w = v + w, tl.permute(v, (1, 0, 2)) - tl.permute(w, (1, 0, 2))
    tl.store(out + at, v)
    tl.store(out + A * A * C + at, w)


@pytest.mark.parametrize("sizes", [(2, 16), (4, 32)], ids=str)
def test_carried_tiles_are_written_while_read_at_other_registers(differ: Differential, sizes: tuple[int, int]) -> None:
    a, c = sizes
    x, out = integers(a, a, c), np.zeros(2 * a * a * c, np.int32)
    found = differ(turned_while_written, promises=[True], x=x, out=out, n=np.int32(3), A=a, C=c)["out"]
    v, w = x, x * 5
    for _ in range(3):
        v, w = v + w, (v - w).transpose(1, 0, 2)
    assert (found == np.concatenate([v.ravel(), w.ravel()])).all()


# ---- rule 1: the same registers -------------------------------------------------------------------------------------


@jit
def turned(x: Any, out: Any, A: tl.constexpr, C: tl.constexpr) -> None:
    """What the store needs of the load lies in other registers. The load cannot be repeated: its array changes."""
    a, c = tl.arange(0, A), tl.arange(0, C)
    at = a[:, None, None] * A * C + a[None, :, None] * C + c[None, None, :]
    v = tl.load(x + at)
    tl.store(out + at, v + tl.permute(v, (1, 0, 2)) * 3)
    tl.store(x + at, v * 7)


@pytest.mark.parametrize("sizes", [(2, 16), (4, 16), (8, 32)], ids=str)
def test_a_loaded_register_is_stored_from_another(differ: Differential, sizes: tuple[int, int]) -> None:
    a, c = sizes
    x = integers(a, a, c)
    after = differ(turned, promises=[True], x=x, out=np.zeros_like(x), A=a, C=c)
    assert (after["out"] == x + x.transpose(1, 0, 2) * 3).all()
    assert (after["x"] == x * 7).all()


@jit
def counted_and_turned(x: Any, out: Any, A: tl.constexpr, C: tl.constexpr) -> None:
    """The same of an atomic, whose old values are needed."""
    a, c = tl.arange(0, A), tl.arange(0, C)
    at = a[:, None, None] * A * C + a[None, :, None] * C + c[None, None, :]
    old = tl.atomic_add(x + at, 1)
    tl.store(out + at, old - tl.permute(old, (1, 0, 2)))


@pytest.mark.parametrize("sizes", [(2, 16), (4, 32)], ids=str)
def test_an_old_value_is_stored_from_another_register(differ: Differential, sizes: tuple[int, int]) -> None:
    a, c = sizes
    x = integers(a, a, c)
    after = differ(counted_and_turned, promises=[True], x=x, out=np.zeros_like(x), A=a, C=c)
    assert (after["out"] == x - x.transpose(1, 0, 2)).all()


# ---- rule 2: no result of an unfinished reduction -------------------------------------------------------------------


@jit
def both_ways(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """Reductions of one tile along both axes, and their results beside the tile."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    v = tl.load(x + at)
    rows, columns = tl.sum(v, axis=1), tl.max(v, axis=0)
    tl.store(out + at, v * 3 - rows[:, None] + columns[None, :])
    tl.store(out + M * N + i, rows)
    tl.store(out + M * N + M + j, columns)


@pytest.mark.parametrize("sizes", [(2, 2), (16, 16), (4, 256), (64, 32)], ids=str)
def test_reductions_along_both_axes(differ: Differential, sizes: tuple[int, int]) -> None:
    m, n = sizes
    x, out = integers(m, n), np.zeros(m * n + m + n, np.int32)
    found = differ(both_ways, promises=[True], x=x, out=out, M=m, N=n)["out"]
    rows, columns = x.sum(axis=1), x.max(axis=0)
    assert (found == np.concatenate([(x * 3 - rows[:, None] + columns).ravel(), rows, columns])).all()


# ---- rule 3, and ops outside register loops -------------------------------------------------------------------------


@jit
def scalars_between(x: Any, out: Any, N: tl.constexpr) -> None:
    """Scalar loads and stores keep their places between the tile accesses that they meet."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    first = tl.load(x)
    tl.store(x + i, v * 2)
    second = tl.load(x + N - 1)
    tl.store(x, 1000)
    w = tl.load(x + i)
    tl.store(x + N - 1, 2000)
    total = tl.sum(w, axis=0)
    last = total * 3
    tl.store(out + i, w)
    tl.store(out + N, first)
    tl.store(out + N + 1, second)
    tl.store(out + N + 2, last)


@pytest.mark.parametrize("n", [4, 64, 512])
def test_scalar_accesses_keep_their_place(differ: Differential, n: int) -> None:
    x = integers(n)
    after = differ(scalars_between, x=x, out=np.zeros(n + 3, np.int32), N=n)
    w = np.concatenate([[1000], x[1:] * 2])
    assert after["out"].tolist() == [*w, x[0], x[-1] * 2, w.sum() * 3]
    assert after["x"].tolist() == [*w[:-1], 2000]


@jit
def counters(x: Any, index: Any, out: Any, N: tl.constexpr) -> None:
    """Loads before and after an atomic through the same pointers, some of which meet."""
    i = tl.arange(0, N)
    p = x + tl.load(index + i)
    before = tl.load(p)
    tl.atomic_add(p, 1)
    tl.store(out + i, before)
    tl.store(out + N + i, tl.load(p))


@jit
def counted_and_stored(x: Any, out: Any, N: tl.constexpr) -> None:
    """Atomics and stores through the same pointers, no two of which meet."""
    i = tl.arange(0, N)
    old = tl.atomic_add(x + i, 5)
    tl.store(x + i, old * 3)
    again = tl.atomic_add(x + i, 7)
    tl.store(out + i, again + tl.load(x + i))


@pytest.mark.parametrize("n", [4, 64, 512])
def test_atomics_keep_their_place(differ: Differential, n: int) -> None:
    index = np.random.default_rng(1).integers(0, max(1, n // 4), n).astype(np.int32)
    after = differ(counters, x=integers(n), index=index, out=np.zeros(2 * n, np.int32), N=n)
    counts = np.bincount(index, minlength=n)
    assert (after["out"][n:] == after["out"][:n] + counts[index]).all()
    x = integers(n)
    after = differ(counted_and_stored, x=x, out=np.zeros(n, np.int32), N=n)
    assert (after["out"] == x * 6 + 7).all()
    assert (after["x"] == x * 3 + 7).all()
