"""``tl.map_elementwise`` on the machines, against Python's functions of single elements."""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
import weft.language as tl
from codegen.conftest import MACHINES
from frontend.conftest import build
from sampling import some
from weft.frontend import CompilationError, KernelFunction

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit

jit = KernelFunction


@pytest.fixture(scope="module", params=some(list(MACHINES), "sm_90"))
def differ(request: pytest.FixtureRequest) -> Differential:
    return MACHINES[request.param]


def branches(x: Any, y: Any) -> Any:
    sign = 1
    if x > y:
        if x == 7:
            return 100, x
        sign = -1
        x = x - y
    elif y > 40:
        return y, -1
    total = 0
    for k in range(3):
        if x == k:
            continue
        total += x * k if y > 3 else k
    return total * sign, x


def alike(a0: Any, a1: Any, b0: Any, b1: Any) -> Any:
    if b0 > b1:
        return a0, a1, b0, b1
    return a1, a0, b0 + b1, 5


branching, packing = jit(branches), jit(alike)


@jit
def mapped(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    i, j = tl.arange(0, N)[:, None], tl.arange(0, 4)[None, :]
    a, b = tl.load(x + i * 4 + j), tl.load(y + i)
    p, q = tl.map_elementwise(branching, a, b)
    tl.store(out + i * 4 + j, p)
    tl.store(out + 4 * N + i * 4 + j, q)


@jit
def packed(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    p, q = tl.map_elementwise(packing, tl.load(x + i), tl.load(y + i), pack=2)
    tl.store(out + i, p)
    tl.store(out + N + i, q)


@pytest.mark.parametrize("n", [2, 64])
def test_branches_of_elements(differ: Differential, n: int) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(-5, 50, (n, 4)).astype(np.int32), rng.integers(-5, 50, n).astype(np.int32)
    x[0, 0], y[0] = 7, 3
    after = differ(mapped, x=x.ravel(), y=y, out=np.zeros(8 * n, np.int32), N=n)
    pairs = [branches(int(a), int(b)) for row, b in zip(x, y, strict=True) for a in row]
    assert after["out"].tolist() == [p for p, _ in pairs] + [q for _, q in pairs]


@pytest.mark.parametrize("n", [2, 64])
def test_two_elements_in_one_call(differ: Differential, n: int) -> None:
    x, y = (np.random.default_rng(k).integers(-9, 9, n).astype(np.int32) for k in (3, 4))
    after = differ(packed, x=x, y=y, out=np.zeros(2 * n, np.int32), N=n)
    results = [alike(*map(int, (*x[k : k + 2], *y[k : k + 2]))) for k in range(0, n, 2)]
    assert after["out"].tolist() == [v for r in results for v in r[:2]] + [v for r in results for v in r[2:]]


@jit
def accesses(p, out, sums, x, n):
    """Loads, stores and atomics of the elements that reach them: others point outside of the arrays."""
    if x < n and tl.load(p) > 0:
        tl.store(out, tl.load(p) * 2)
        if x % 2 == 0:
            return tl.atomic_add(sums, tl.load(p + 1) if x + 1 < n else -1)
        tl.device_assert(x != 5, "five")
    elif x < n:
        for k in range(2):
            if x == k:
                tl.atomic_max(sums + 1, x + 50)
                continue
            tl.store(out, tl.load(p) - k, mask=x < 6)
        tl.atomic_store(sums + 2, 7)
    return -2


@jit
def accessing(p: Any, out: Any, sums: Any, back: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    far = i * (1 + (i >= n) * 100_000_000)
    tl.store(back + i, tl.map_elementwise(accesses, p + far, out + far, sums + i * 0, i, n))


@jit
def counting(count, x):
    for k in range(3):
        if x > k + 1:
            if x > 5:
                continue
            tl.atomic_add(count, 10)
        tl.atomic_add(count, 1)
    return x


@jit
def counted(count: Any, x: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.map_elementwise(counting, count + i, tl.load(x + i))


def test_memory_behind_a_jump_of_an_inner_branch(differ: Differential) -> None:
    x = np.arange(8, dtype=np.int32)
    after = differ(counted, count=np.zeros(8, np.int32), x=x, N=8)
    assert after["count"].tolist() == [sum(1 + 10 * (v > k + 1) for k in range(3) if v <= 5 or v <= k + 1) for v in x]


@pytest.mark.parametrize("size", [4, 128])
def test_memory_under_a_condition_on_elements(differ: Differential, size: int) -> None:
    n = size // 2 + 1
    p = np.random.default_rng(5).integers(-3, 4, n).astype(np.int32)
    p[:2] = -1, 1
    out, sums = np.full(n, 99), [0, 0, 0]
    added = 0
    for x in range(n):
        if p[x] > 0:
            out[x] = p[x] * 2
            if x % 2 == 0:
                added += p[x + 1] if x + 1 < n else -1
        else:
            sums[2] = 7
            for k in range(2):
                if x == k:
                    sums[1] = x + 50
                elif x < 6:
                    out[x] = p[x] - k
    sums[0] = added
    after = differ(
        accessing,
        p=p,
        out=np.full(n, 99, np.int32),
        sums=np.zeros(3, np.int32),
        back=np.zeros(size, np.int32),
        n=np.int32(n),
        N=size,
    )
    assert (after["out"].tolist(), after["sums"].tolist()) == (out.tolist(), sums)
    assert [after["back"][x] == -2 for x in range(size)] == [
        not (x < n and p[x] > 0 and x % 2 == 0) for x in range(size)
    ]


def test_assertions_under_a_condition_on_elements() -> None:
    kernel = weft.jit(debug=True)(accessing.fn)
    p, out, sums, back = np.ones(6, np.int32), *(np.zeros(size, np.int32) for size in (6, 3, 8))
    kernel[(1,)](p, out, sums, back, 5, N=8)
    with pytest.raises(weft.DeviceAssertionError, match="five"):
        kernel[(1,)](p, out, sums, back, 6, N=8)


@jit
def exchanges(p):
    if tl.load(p) > 0:
        tl.atomic_cas(p, 1, 2)
    return 0


@jit
def waits(p):
    return tl.load(p) > 0 and tl.debug_barrier()


@jit
def polls(p):
    return tl.atomic_poll(p, 1) if tl.load(p) > 0 else tl.load(p) > 5


@jit
def tells(p):
    return 0 if tl.load(p) > 0 else tells_more(p)


@jit
def tells_more(p):
    tl.device_print("p", p)
    return 1


@jit
def gathers(p):
    if tl.load(p) > 0:
        return tl.sum(tl.load(p + tl.arange(0, 8)[:, None]), 0)
    return tl.load(p)


@jit
def loops(x):
    while x > 3:
        x -= 2
    return x


@jit
def leaves(x):
    for k in range(5):
        if x == k:
            break
        x += 1
    return x


@jit
def counts(x):
    total = 0
    for k in range(x):
        total += k
    return total


@jit
def three(x, y, z):
    return x


@pytest.mark.parametrize(
    ("function", "pack", "message"),
    [
        (exchanges, 1, "a mapped function cannot have tl.atomic_cas under a condition on elements"),
        (waits, 1, "a mapped function cannot have tl.debug_barrier under a condition on elements"),
        (polls, 1, "a mapped function cannot have a loop that waits under a condition on elements"),
        (tells, 1, "a mapped function cannot have a print under a condition on elements"),
        (
            gathers,
            1,
            "a mapped function accesses memory element by element under a condition on elements, found the shape (8, 4)",
        ),
        (loops, 1, "the condition of a loop of a mapped function cannot depend on elements"),
        (leaves, 1, "jumps out of loops of a mapped function cannot depend on elements"),
        (counts, 1, "the stop of a range is an integer, found int32[4]"),
        (three, 1, "three takes 3 arguments, and the map passes 1"),
        (loops, 0, "pack must be >= 1 and a power of two, got 0"),
        (loops, 8, "pack is at most the number of elements, 4"),
        (abs, 1, "'scalar_fn' is a function decorated with @weft.jit, found <built-in function abs>"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_refused(function: Callable[..., Any], pack: int, message: str) -> None:
    @jit
    def kernel(p: Any, f: tl.constexpr, P: tl.constexpr, ON: tl.constexpr) -> None:
        tl.map_elementwise(f, p + tl.arange(0, 4) if ON else tl.arange(0, 4), pack=P)

    with pytest.raises(CompilationError) as caught:
        build(
            kernel,
            p=np.zeros(4, np.int32),
            f=function,
            P=pack,
            ON=function in (exchanges, waits, polls, tells, gathers),
        )
    assert caught.value.message == message
    assert caught.value.spans
