"""``break``, ``continue`` and ``return`` in loops on the machines: tiles and pointers that such loops carry and return."""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportArgumentType=false, reportReturnType=false
# The functions that end without a return on some paths are what is tested.
# ruff: noqa: RET503

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from codegen.conftest import MACHINES
from frontend.jump_programs import LENGTH, Program, compiled, traced
from sampling import every, some
from weft.frontend import KernelFunction

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit

jit = KernelFunction


@pytest.fixture(scope="module", params=some(list(MACHINES), "sm_90"))
def differ(request: pytest.FixtureRequest) -> Differential:
    return MACHINES[request.param]


@jit
def until_full(x: Any, out: Any, n: Any, most: Any, N: tl.constexpr) -> None:
    """Sums tiles up to the first that is too large; skips the third."""
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.int32)
    stopped = -1
    for k in range(0, n, N):
        v = tl.load(x + k + i, mask=k + i < n, other=0)
        if tl.max(v, axis=0) > most:
            stopped = k
            break
        if k == 2 * N:
            continue
        total += v
    tl.store(out + i, total)
    tl.store(out + N, stopped)


@pytest.mark.parametrize("size", [8, 256])
def test_tiles_are_carried_to_a_break(differ: Differential, size: int) -> None:
    x = np.random.default_rng(1).integers(-50, 50, 7 * size - 3).astype(np.int32)
    x[5 * size + 1] = 99
    for most, places in ((1000, range(7)), (90, range(5)), (-1000, range(0))):
        after = differ(
            until_full, x=x, out=np.zeros(size + 1, np.int32), n=np.int32(len(x)), most=np.int32(most), N=size
        )
        expected = np.zeros(size, np.int32)
        for k in places:
            part = x[k * size : (k + 1) * size]
            expected[: len(part)] += part if k != 2 else 0
        assert after["out"].tolist() == [*expected, -1 if len(places) == 7 else len(places) * size]


@jit
def first_above(x: Any, limit: Any, n: Any, N: tl.constexpr) -> Any:
    """The first tile whose sum is above the limit, and where it is: a pointer."""
    i = tl.arange(0, N)
    p = x
    for _k in range(n):
        v = tl.load(p + i)
        for _ in range(2):
            if tl.sum(v, axis=0) > limit:
                return v * 2, p
        p += N
    return tl.zeros((N,), tl.int32) - 1, p


@jit
def searches(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    for limit in range(0, 300, 100):
        v, p = first_above(x, limit, n, N)
        tl.store(out + limit // 100 * N + i, v)
        if limit == 200:
            tl.store(p, 12345)


def test_a_helper_returns_tiles_and_pointers_from_two_loops(differ: Differential) -> None:
    n, size = 4, 32
    x = np.zeros((n, size), np.int32)
    x[1], x[2] = 2, 5  # sums 64 and 160: above 0 and above 100, and none above 200
    padded = np.concatenate([x.ravel(), np.zeros(1, np.int32)])
    after = differ(searches, x=padded, out=np.zeros(3 * size, np.int32), n=np.int32(n), N=size)
    assert after["out"].reshape(3, size).tolist() == [[4] * size, [10] * size, [-1] * size]
    assert after["x"].tolist() == [*x.ravel().tolist(), 12345]


@jit
def counts(out: Any, start: Any, stop: Any, step: tl.constexpr) -> None:
    """What a loop that ends at the limits of its type counts."""
    n = 0
    last = start
    for i in range(start, stop, step):
        last = i
        n += 1
        if n == 100:
            break
    tl.store(out, n)
    tl.store(out + 1, last)


LAST = 2**31 - 1


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (LAST - 5, LAST, 1),
        (LAST - 5, LAST, 4),
        (-LAST, LAST, LAST),
        (-5, -LAST - 1, -LAST),
        (3, 3, 2),
        (4, 3, 1),
        (0, LAST, 2),
    ],
)
def test_a_loop_with_break_ends_where_its_type_does(differ: Differential, start: int, stop: int, step: int) -> None:
    after = differ(counts, out=np.zeros(2, np.int32), start=np.int32(start), stop=np.int32(stop), step=step)
    values = range(start, stop, step)[:100]
    assert after["out"].tolist() == [len(values), values[-1] if values else start]


@pytest.mark.parametrize("seed", every(20, range(60)))
def test_random_programs(differ: Differential, seed: int, tmp_path: Path) -> None:
    program = Program(90_000 + seed).text()
    kernel = compiled(program, tmp_path, f"jumps_{seed}").kernel
    after = differ(kernel, promises=[False], out=np.zeros(LENGTH, np.int32), n=np.int32(3))
    assert after["out"].tolist() == traced(program, 3), program


@jit
def found_at(x: Any, limit: Any, n: Any, N: tl.constexpr) -> Any:
    """The first tile above the limit, its pointer and a number; where there is none, the end is reached without a ``return``."""
    i = tl.arange(0, N)
    for k in range(n):
        v = tl.load(x + k * N + i)
        if tl.sum(v, axis=0) > limit:
            return v * 2, x + k * N, 7


@jit
def if_above(v: Any, limit: Any) -> Any:
    if tl.sum(v, axis=0) > limit:
        if limit > 150:
            return v + 1
        v += 1
        return v + 1


@jit
def uses_what_was_found(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    for limit in range(0, 300, 100):
        total = tl.sum(tl.load(x + N + i), axis=0)
        v, p, seven = found_at(x, limit, n, N)
        w = if_above(tl.load(x + N + i), limit)
        if total > limit:
            tl.store(out + limit // 100 * N + i, v + w + seven)
            tl.store(p + 500 + limit, limit + 1)


def test_a_path_of_a_helper_that_ends_without_a_return(differ: Differential) -> None:
    """Tile 1 of three sums to 160 and is the first above any limit; above 200 is none, and nothing is stored."""
    x = np.zeros(1000, np.int32)
    x[4:8] = 40
    after = differ(uses_what_was_found, x=x, out=np.full(12, -1, np.int32), n=np.int32(3), N=4)
    assert after["out"].tolist() == [80 + 42 + 7] * 4 + [80 + 42 + 7] * 4 + [-1] * 4
    stored = x.copy()
    stored[504], stored[604] = 1, 101
    assert after["x"].tolist() == stored.tolist()
