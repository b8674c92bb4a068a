"""Which register loops a block becomes, and that no schedule changes what a kernel means.

The first half runs kernels in which an order of loads, stores and write-backs other than the program's shows; the second looks
at the loops.
"""

# pyright: reportUnnecessaryComparison=false, reportIndexIssue=false

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


def floats(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def integers(*shape: int, below: int = 100) -> Any:
    return np.random.default_rng(0).integers(0, below, shape).astype(np.int32)


# ---- memory order ---------------------------------------------------------------------------------------------------


@jit
def shift_up(x: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(x + i + 1, tl.load(x + i))


@jit
def shift_down(x: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i + 1))


@jit
def reverse(x: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(x + N - 1 - i, tl.load(x + i))


@jit
def transpose_in_place(x: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(x + i[None, :] * N + i[:, None], tl.load(x + i[:, None] * N + i[None, :]))


@pytest.mark.parametrize("n", every(2, SIZES))
@pytest.mark.parametrize("kernel", [shift_up, shift_down, reverse])
def test_a_tile_is_loaded_before_any_of_it_is_stored(differ: Differential, kernel: KernelFunction, n: int) -> None:
    differ(kernel, x=floats(n + 1), N=n)


@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_transpose_in_place(differ: Differential, n: int) -> None:
    x = floats(n, n)
    assert (differ(transpose_in_place, x=x, N=n)["x"] == x.T).all()


@jit
def count_through_indices(x: Any, index: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    p = x + tl.load(index + i)
    tl.store(p, tl.load(p) + 1)


@jit
def write_and_read_back(x: Any, index: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    p = x + tl.load(index + i)
    tl.store(p, 7)
    tl.store(p, 9, mask=i < N // 2)
    tl.store(out + i, tl.load(p))


@pytest.mark.parametrize("n", every(2, SIZES))
@pytest.mark.parametrize("kernel", [count_through_indices, write_and_read_back])
def test_pointers_that_meet_at_an_address(differ: Differential, kernel: KernelFunction, n: int) -> None:
    """The same pointers in a load and a store do not make one loop, if one register's store changes another's load."""
    out: dict[str, Any] = {"out": np.zeros(n, np.int32)} if kernel is write_and_read_back else {}
    differ(kernel, x=np.zeros(n, np.int32), index=integers(n, below=max(1, n // 4)), **out, N=n)


@jit
def pointers_into_two_arrays(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    p = tl.where(i % 3 == 0, x + (N - 1 - i), y + i)
    tl.store(p, i * 10)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))
    tl.store(x + i, 7)
    tl.store(out + N + i, tl.load(p))


@pytest.mark.parametrize("n", every(2, SIZES))
def test_pointers_whose_array_is_unknown(differ: Differential, n: int) -> None:
    """That arrays are disjoint says nothing about a pointer that may be into either."""
    differ(pointers_into_two_arrays, x=integers(n), y=integers(n) + 1000, out=np.zeros(2 * n, np.int32), N=n)


@jit
def bounds_from_memory(x: Any, bound: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    end = tl.load(bound + tl.zeros((N,), tl.int32))
    v = tl.load(x + i, mask=i < end, other=-1.0)
    tl.store(out + i, v, mask=end > i)
    total = tl.sum(v, axis=0).to(tl.int32)
    tl.store(out + N + i, v, mask=i < total)


@pytest.mark.parametrize("n", every(2, SIZES))
def test_masks_that_a_load_of_the_same_loop_decides(differ: Differential, n: int) -> None:
    for bound in (0, 1, n - 1, n, n + 1):
        x, out = floats(n) + np.float32(0.5), np.zeros(2 * n, np.float32)
        differ(bounds_from_memory, x=np.rint(x), bound=np.array([bound], np.int32), out=out, N=n)


# ---- control flow ---------------------------------------------------------------------------------------------------


@jit
def rotate(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(x + N + i)
    c = a * 3
    for _ in range(n):
        a, b, c = b, c, a + 1
    tl.store(out + i, a)
    tl.store(out + N + i, b)
    tl.store(out + 2 * N + i, c)


@jit
def fibonacci(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(x + N + i)
    while n > 0:
        a, b = b, a + b
        n -= 1
    tl.store(out + i, a)
    tl.store(out + N + i, b)


@pytest.mark.parametrize(
    ("turns", "kernel", "n"),
    grid(2, [0, 1, 5], [rotate, fibonacci], SIZES),
    ids=lambda v: v.name if isinstance(v, KernelFunction) else str(v),
)
def test_carried_tiles_change_places(differ: Differential, kernel: KernelFunction, n: int, turns: int) -> None:
    differ(kernel, x=integers(2 * n), out=np.zeros(3 * n, np.int32), n=np.int32(turns), N=n)


@jit
def iterations(out: Any, start: Any, stop: Any, STEP: tl.constexpr) -> None:
    count = 0
    last = start
    for i in range(start, stop, STEP):
        count += 1
        last = i
    tl.store(out, count)
    tl.store(out + 1, last)


LEAST, MOST = -(1 << 31), (1 << 31) - 1


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        *((MOST - k, MOST, 4) for k in range(6)),
        (LEAST, LEAST, 4),
        (LEAST, LEAST + 1, 4),
        (LEAST, LEAST + 1, MOST),  # the end less the step wraps, and no value of the loop does
        (LEAST, MOST, 1 << 30),
        (5, 3, 1),
        (-5, 8, 4),
        (LEAST + 7, LEAST, -4),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_loop_ends_at_the_edge_of_its_type(
    differ: Differential, start: int, stop: int, step: int, dtype: Any
) -> None:
    """The induction value does not wrap round to pass the test again."""
    up = (1 << 63) - 1 - MOST if dtype is np.int64 and stop > 0 else 0
    bounds: dict[str, Any] = {"start": dtype(start + up), "stop": dtype(stop + up)}
    out = differ(iterations, out=np.zeros(2, np.int64), **bounds, STEP=step)["out"]
    assert out[0] == len(range(start, stop, step))


# ---- size -----------------------------------------------------------------------------------------------------------


@jit
def long_chains(x: Any, out: Any, n: Any, N: tl.constexpr, STEPS: tl.constexpr) -> None:
    """Values, addresses and masks that many ops lead to."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    at = i
    total = tl.zeros((N,), tl.int32)
    for k in tl.static_range(STEPS):
        v = v * 3 + k
        at = (at ^ (k % 2)) + n
        total += tl.load(x + k + i)
    tl.store(out + (at - STEPS * n), v)
    tl.store(out + N + i, total, mask=v != n)


def test_chains_longer_than_the_interpreters_stack(differ: Differential) -> None:
    """Nothing in codegen recurses from an op to its operands."""
    out = np.zeros(128, np.int32)
    differ(long_chains, promises=[True], x=integers(464), out=out, n=np.int32(0), N=64, STEPS=400)
