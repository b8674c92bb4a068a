"""Conditional expressions, ``and``, ``or`` and chained comparisons: what Python does not evaluate has no effect.

Each kernel counts its effects in memory. The expected counts are those of the same Python expressions.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnusedExpression=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft.language as tl
from weft.frontend import KernelFunction

jit = KernelFunction
Execute = Callable[..., None]


@jit
def stores(out: Any, n: Any, KNOWN: tl.constexpr) -> None:
    tl.store(out, 1) if n > 0 else tl.store(out, 2)
    tl.store(out + 1, 1) if n > 0 else None
    None if n > 0 else tl.store(out + 2, 1)
    tl.store(out + 3, 1) if KNOWN else tl.store(out + 4, 1)
    tl.atomic_add(out + 5, 1) if n > 0 else tl.store(out + 6, 1)  # no common type, and none is needed
    tl.store(out + 7, 1) if n > 0 else (tl.store(out + 8, 1) if n == 0 else tl.store(out + 9, 1))


@pytest.mark.parametrize(
    ("n", "known", "expected"),
    [
        (1, True, [1, 1, 0, 1, 0, 1, 0, 1, 0, 0]),
        (0, False, [2, 0, 1, 0, 1, 0, 1, 0, 1, 0]),
        (-1, True, [2, 0, 1, 1, 0, 0, 1, 0, 0, 1]),
    ],
)
def test_stores_as_sides(execute: Execute, n: int, known: bool, expected: list[int]) -> None:
    out = np.zeros(10, np.int32)
    execute(stores, out=out, n=np.int32(n), KNOWN=known)
    assert out.tolist() == expected


@jit
def writes(p: Any, value: Any) -> None:
    tl.store(p, value)


@jit
def counted(p: Any, answer: Any) -> Any:
    """``answer``, which counts in ``p`` that it was asked for."""
    tl.store(p, tl.load(p) + 1)
    return answer


@jit
def helpers(out: Any, n: Any) -> None:
    writes(out, 7) if n > 0 else writes(out, 8)
    tl.store(out + 1, counted(out + 2, n) if n > 0 else counted(out + 3, -n))
    x = (counted(out + 4, n), 5) if n > 0 else (n, 6)
    tl.store(out + 5, x[1])


@pytest.mark.parametrize(("n", "expected"), [(3, [7, 3, 1, 0, 1, 5]), (-3, [8, 3, 0, 1, 0, 6])])
def test_helpers_as_sides(execute: Execute, n: int, expected: list[int]) -> None:
    out = np.zeros(6, np.int32)
    execute(helpers, out=out, n=np.int32(n))
    assert out.tolist() == expected


@jit
def logical(out: Any, a: Any, b: Any) -> None:
    tl.store(out, 1 if a and counted(out + 1, b) else 0)
    tl.store(out + 2, 1 if a or counted(out + 3, b) else 0)
    tl.store(out + 4, 1 if a and b and counted(out + 5, a) else 0)
    tl.store(out + 6, 1 if (a or counted(out + 7, b)) and counted(out + 8, b) else 0)
    a and tl.store(out + 9, 1)
    a or tl.store(out + 10, 1)
    a and b and writes(out + 11, 1)


def python(out: list[int], a: bool, b: bool) -> None:
    """`logical`, in Python."""

    def ask(i: int, answer: bool) -> bool:
        out[i] += 1
        return answer

    out[0] = int(a and ask(1, b))
    out[2] = int(a or ask(3, b))
    out[4] = int(a and b and ask(5, a))
    out[6] = int((a or ask(7, b)) and ask(8, b))
    a and ask(9, True)
    a or ask(10, True)
    a and b and ask(11, True)


@pytest.mark.parametrize("a", [False, True])
@pytest.mark.parametrize("b", [False, True])
def test_and_or(execute: Execute, a: bool, b: bool) -> None:
    out, expected = np.zeros(12, np.int32), [0] * 12
    execute(logical, out=out, a=np.bool_(a), b=np.bool_(b))
    python(expected, a, b)
    assert out.tolist() == expected


@jit
def known(out: Any, a: Any, YES: tl.constexpr, NO: tl.constexpr) -> None:
    NO and tl.store(out, 1)
    YES or tl.store(out + 1, 1)
    YES and tl.store(out + 2, 1)
    tl.store(out + 3, 1 if NO or counted(out + 4, a) else 0)
    tl.store(out + 5, 1 if a and YES else 0)


def test_known_left_sides(execute: Execute) -> None:
    out = np.zeros(6, np.int32)
    execute(known, out=out, a=np.bool_(True), YES=True, NO=False)
    assert out.tolist() == [0, 0, 1, 1, 1, 1]


@jit
def chained(out: Any, a: Any, b: Any, c: Any) -> None:
    tl.store(out, 1 if a < counted(out + 1, b) < counted(out + 2, c) else 0)
    tl.store(out + 3, 1 if a < b < c < counted(out + 4, 9) else 0)


@pytest.mark.parametrize(
    ("abc", "expected"),
    [((1, 2, 3), [1, 1, 1, 1, 1]), ((1, 0, 3), [0, 1, 0, 0, 0]), ((1, 2, 0), [0, 1, 1, 0, 0])],
)
def test_chained_comparisons(execute: Execute, abc: tuple[int, int, int], expected: list[int]) -> None:
    out = np.zeros(5, np.int32)
    a, b, c = map(np.int32, abc)
    execute(chained, out=out, a=a, b=b, c=c)
    assert out.tolist() == expected


@jit
def guarded(x: Any, out: Any, n: Any) -> None:
    """Reads ``x[i]`` only below ``n``: the reference checks bounds."""
    i = 0
    while i < n and tl.load(x + i) > 0:
        i += 1
    tl.store(out, i)


def test_a_condition_guards_a_load(execute: Execute) -> None:
    for x, expected in ([1, 2, 3, 4], 4), ([1, 2, 0, 4], 2), ([0, 1, 1, 1], 0):
        out = np.zeros(1, np.int32)
        execute(guarded, x=np.array(x, np.int32), out=out, n=np.int32(4))
        assert out.tolist() == [expected]


@jit
def tile_right(x: Any, out: Any, flag: Any, N: tl.constexpr) -> None:
    """A scalar on the left, a tile on the right: the tile is loaded where the scalar asks for it."""
    i = tl.arange(0, N)
    both = flag and tl.load(x + i) > 0
    either = flag or tl.load(x + i) > 0
    tl.store(out + i, tl.where(both, 1, 0) + tl.where(either, 2, 0))


def test_scalar_and_tile(execute: Execute) -> None:
    x = np.array([-1, 0, 1, 2], np.int32)
    for flag in (False, True):
        out = np.zeros(4, np.int32)
        execute(tile_right, x=x, out=out, flag=np.bool_(flag), N=4)
        assert out.tolist() == [(flag and v > 0) + 2 * (flag or v > 0) for v in x]


@jit
def never(out: Any) -> None:
    while writes(out, 5):
        pass


def test_the_condition_of_a_loop_that_never_runs_has_effects(execute: Execute) -> None:
    out = np.zeros(1, np.int32)
    execute(never, out=out)
    assert out.tolist() == [5]
