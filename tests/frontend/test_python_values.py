"""Tuples, aggregates, methods, comprehensions, and what else kernels take from Python: stored numbers are what Python gives."""

# Kernels give constexpr variables plain values, which no type checker can know to be right. Those that are refused at an
# assignment do not read what it assigns (F841).
# ruff: noqa: F841
# pyright: basic, reportAssignmentType=false, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportCallIssue=false, reportOperatorIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.frontend import CompilationError, KernelFunction

jit = KernelFunction
Execute = Callable[..., None]


def stored(execute: Execute, kernel: KernelFunction, count: int, **arguments: Any) -> list[int]:
    """The first numbers that the kernel leaves in ``out``."""
    out = np.full(count, -1, np.int32)
    execute(kernel, out=out, **arguments)
    return out.tolist()


class Point(NamedTuple):
    x: Any
    y: Any


@jit
def put(out: Any, values: Any) -> None:
    for i in tl.static_range(len(values)):
        tl.store(out + i, values[i])


@jit
def tuples(out: Any, n: Any) -> None:
    t = (n, 2, n + 2)
    (a, b), c = ((n, 5), t[1:])
    both = t + (a, b) + c
    put(out, both)
    put(out + 7, tl.tuple([v * 10 for v in t]))
    tl.store(out + 10, (1, 2) == (1, 2))
    tl.store(out + 11, len(both) + len((n, 1) * 2))
    p = Point(n, 1)
    for i in range(3):
        p = Point(p.y + i, p.x)
        t = (t[1], t[2], t[0])
        if i == n:
            p = Point(100, p.y)
    tl.store(out + 12, p.x)
    tl.store(out + 13, p.y)
    put(out + 14, t)


def test_tuples(execute: Execute) -> None:
    n, p, t = 1, Point(1, 1), (1, 2, 3)
    for i in range(3):
        p = Point(p.y + i, p.x)
        t = (t[1], t[2], t[0])
        if i == n:
            p = Point(100, p.y)
    expected = [1, 2, 3, 1, 5, 2, 3, 10, 20, 30, 1, 11, *p, *t]
    assert stored(execute, tuples, len(expected), n=np.int32(1)) == expected


@jit
def comprehensions(out: Any, n: Any) -> None:
    a: tl.constexpr = [x for x in (10, 20, 30, 40) if x >= 20 if x != 30]
    b = [p + q * n for p, (q, _) in ((1, (2, 3)), (4, (5, 6)))]
    x = 7
    c = [x for x in tl.static_range(3)]
    put(out, a + b + c)
    tl.store(out + 7, x)


def test_comprehensions(execute: Execute) -> None:
    assert stored(execute, comprehensions, 8, n=np.int32(3)) == [20, 40, 7, 19, 0, 1, 2, 7]


@weft.aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

    @jit
    def get_first(self):
        return self.first

    def get_second(self, _semantic=None):
        return self.second

    @jit
    def unpack(self):
        return self.get_first(), self.get_second()

    def __getitem__(self, index, _semantic=None):
        return self.first if index == 0 else self.second


@weft.aggregate
class Counter:
    total: tl.tensor
    step: tl.constexpr = 2

    @jit
    def advanced(self, by):
        return tl.aggregate_replace(self, total=self.total + by * self.step)

    @staticmethod
    def starting(at):
        return Counter(at, tl.constexpr(3))

    @staticmethod
    @jit
    def twice(at):
        return Counter(at * 2)


@weft.aggregate
class Doubled(Counter):
    extra: tl.tensor

    def __init__(self, total):
        self.total = total
        self.step = tl.constexpr(5)
        self.extra = total


@jit
def aggregates_in_loops(out: Any, n: Any) -> None:
    a, b = Pair(n, n + 1).unpack()
    p = Pair(first=a * 2, second=b)
    counter = Counter(n)
    for i in range(4):
        counter = counter.advanced(i)
        if i == 2:
            p = Pair(p.second, p[0])
            continue
        p = Pair(p[1] + 1, p[0])
    put(out, (a, b, p.first, p.second, counter.total))
    tl.store(out + 5, Counter.starting(n).advanced(10).total)
    tl.store(out + 6, Counter.twice(n).total)
    tl.store(out + 7, Doubled(n).step if isinstance(Doubled(n), Counter) else 0)


def test_aggregates_in_loops(execute: Execute) -> None:
    n = 7
    p, total = (2 * n, n + 1), n
    for i in range(4):
        total += 2 * i
        p = (p[1], p[0]) if i == 2 else (p[1] + 1, p[0])
    expected = [n, n + 1, *p, total, n + 30, 2 * n, 5]
    assert stored(execute, aggregates_in_loops, 8, n=np.int32(n)) == expected


def test_aggregates_on_the_host() -> None:
    state = Counter(3, step=7)
    assert isinstance(state.total, tl.constexpr) and state.total.value == 3
    assert tl.aggregate_replace(state, total=4).total.value == 4
    with pytest.raises(AttributeError, match="cannot assign to field 'total' on immutable aggregate Counter"):
        state.total = 1
    with pytest.raises(TypeError, match=r"Counter.__init__\(\) missing required argument: 'total'"):
        Counter()
    with pytest.raises(TypeError, match="Aggregates can only inherit from other aggregates"):
        weft.aggregate(type("Bad", (Point,), {}))


@dataclass(frozen=True)
class Shape:
    rows: int = 2

    def area(self, columns: int = 1) -> int:
        return self.rows * columns


@tl.constexpr_function
def sizes(rows: int, *, columns: int = 1) -> Any:
    return Shape(rows), (rows, columns)


@jit
def scaled(x, *rest, scale: tl.constexpr = 1):
    for i in tl.static_range(len(rest)):
        x += rest[i]
    return x * scale


@jit
def apply(f: tl.constexpr, x, y):
    return f(x, y)


@jit
def size_of(x, N: tl.constexpr):
    return x + N


@jit
def calls(out: Any, n: Any, shape: tl.constexpr, f: tl.constexpr) -> None:
    tl.store(out, shape.area(columns=3))
    made, pair = sizes(4, columns=5)
    tl.store(out + 1, made.area(sizes(4, columns=5)[1][1]) + pair[0] - 4)
    tl.store(out + 2, scaled(n, 1, 2, scale=10))
    tl.store(out + 3, apply(tl.maximum, n, 5) + apply(f, n, 5))
    tl.store(out + 4, size_of(1, n))
    tl.store(out + 5, getattr(tl, "minimum")(n, 2) if hasattr(tl, "minimum") and not hasattr(tl, "nothing") else 0)  # noqa: B009 - getattr is what this tests
    y: tl.constexpr
    x, y = 3, 4
    tl.static_assert(y.type == tl.constexpr_type(4))
    tl.static_assert(isinstance(x, tl.tensor) and x.dtype == tl.int32 and isinstance((1, x), tl.tuple))
    tl.store(out + 6, y // -3)


def test_calls(execute: Execute) -> None:
    found = stored(execute, calls, 7, n=np.int32(9), shape=Shape(), f=tl.minimum)
    assert found == [6, 20, 120, 9 + 5, 10, 2, -2]


def nested(factor: int) -> KernelFunction:
    k = tl.constexpr(factor)

    @jit
    def times(x):
        return x * k

    @jit
    def kernel(out: Any, n: Any) -> None:
        tl.store(out, times(n) + k)

    return kernel


def test_closures(execute: Execute) -> None:
    assert [stored(execute, nested(k), 1, n=np.int32(9)) for k in (2, 5)] == [[20], [50]]
    assert nested(2).dependencies() != nested(5).dependencies()


@jit
def waits(out: Any, n: Any) -> None:
    i = 0
    while tl.condition(i < n, disable_licm=True):
        i += 2
    tl.store(out, i)


def test_condition(execute: Execute) -> None:
    assert stored(execute, waits, 1, n=np.int32(5)) == [6]


def test_static_print(execute: Execute, capsys: pytest.CaptureFixture[str]) -> None:
    @jit
    def kernel(out: Any, N: tl.constexpr) -> None:
        tl.static_print(f"N is {N:>3}", (N, 1), sep="; ", end=".\n")

    stored(execute, kernel, 1, N=4)
    assert capsys.readouterr().out == "N is   4; (4, 1).\n"


@jit
def too_many(out):
    a, b = (1, 2, 3)


@jit
def too_few(out):
    a, b, c = (1, 2)


@jit
def nested_many(out):
    (a, b), c = ((1, 2, 3), 4)


@jit
def starred(out):
    a, *rest = (1, 2, 3)


@jit
def starred_comprehension(out):
    vals = [a for a, *rest in ((1, 2, 3),)]


@jit
def scalar_items(out):
    vals = [a + b for a, b in (1, 2)]


@jit
def tuple_item(out):
    t = tl.tuple([5, 6, 7])
    t[0] = 0


@jit
def field(out):
    p = Pair(tl.arange(0, 4), tl.arange(0, 4))
    p.second = tl.arange(0, 4)


@jit
def wrong_field(out):
    p = Pair(tl.arange(0, 4), 42)


@jit
def no_field(out):
    x = Pair(tl.arange(0, 4), tl.arange(0, 4)).third


@jit
def replaced_field(out):
    x = tl.aggregate_replace(Pair(tl.arange(0, 4), tl.arange(0, 4)), third=1)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (too_many, "too many values to unpack (expected 2)"),
        (too_few, "not enough values to unpack (expected 3, got 2)"),
        (nested_many, "too many values to unpack (expected 2)"),
        (starred, "starred assignment targets are not supported"),
        (starred_comprehension, "starred assignment targets are not supported"),
        (scalar_items, "cannot unpack non-iterable value: only tuples can be unpacked, found 1"),
        (tuple_item, "elements of tiles cannot be assigned"),
        (field, "Attribute assignment is not supported in triton"),
        (wrong_field, "Expected <class 'weft.language.core.tensor'> for attribute 'second', got 42"),
        (no_field, "Pair has no attribute 'third'"),
        (replaced_field, "Pair has no field 'third'"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_refused(execute: Execute, kernel: KernelFunction, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        execute(kernel, out=np.zeros(1, np.int32))
    assert caught.value.message == message
    assert caught.value.spans


@jit
def first_multiple(n, m):
    i = n
    while True:
        if i % m == 0:
            return i, n
        if i > 50:
            return -1, i
        i += 1


@jit
def endless(out: Any, n: Any) -> None:
    total = 0
    for k in range(2, 5):
        i, start = first_multiple(n + k, k)
        total = total * 100 + i - start
    tl.store(out, total)
    tl.store(out + 1, first_multiple(n, 64)[0])


@pytest.mark.parametrize("n", [1, 6, 49])
def test_only_return_leaves_an_endless_loop(execute: Execute, n: int) -> None:
    total = 0
    for k in range(2, 5):
        i = next(i for i in range(n + k, 60) if i > 50 or i % k == 0)
        i, start = (i, n + k) if i % k == 0 else (-1, i)
        total = total * 100 + i - start
    assert stored(execute, endless, 2, n=np.int32(n)) == [total, -1]
