"""Loops over ranges near the ends of their types, against Python's range: how often they run, and with which values.

A program of the grid is one range. Its loop's number of values, the first, the last and the sum (which wraps) are stored.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnnecessaryComparison=false

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl

pytestmark = pytest.mark.jit

MOST = 3000
"""No case runs more often."""


@weft.jit
def walk(out: Any, starts: Any, stops: Any, steps: Any, STEP: tl.constexpr) -> None:
    pid = tl.program_id(0)
    count, first, last, total = tl.to_tensor(0).to(tl.int64), tl.to_tensor(0).to(tl.int64), 0, 0
    last, total = first, first
    step = tl.load(steps + pid) if STEP is None else STEP
    for i in range(tl.load(starts + pid), tl.load(stops + pid), step):
        first = tl.where(count == 0, tl.cast(i, tl.int64), first)
        last = tl.cast(i, tl.int64)
        total += i
        count += 1
    tl.store(out + 4 * pid, count)
    tl.store(out + 4 * pid + 1, first)
    tl.store(out + 4 * pid + 2, last)
    tl.store(out + 4 * pid + 3, total)


def expected(start: int, stop: int, step: int) -> list[int]:
    values = range(start, stop, step) if step else range(0)
    if not values:
        return [0, 0, 0, 0]
    total = sum(values)
    return [len(values), values[0], values[-1], (total + 2**63) % 2**64 - 2**63]


def edges(dtype: Any) -> list[int]:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    near = {low, low + 1, low + 5, high, high - 1, high - 5, -5, -1, 0, 1, 3, high // 2, low // 2}
    return sorted(n for n in near if low <= n <= high)


def steps_of(dtype: Any) -> list[int]:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return sorted({*edges(dtype), *(n for n in (2**20, -(2**20), 2**51, -(2**51), 7) if low <= n <= high)})


def assert_python(cases: list[tuple[int, int, int]], dtype: Any, step: int | None = None) -> None:
    columns: list[NDArray[Any]] = [np.array(column, dtype) for column in zip(*cases, strict=True)]
    out = np.zeros(4 * len(cases), np.int64)
    walk[(len(cases),)](out, *columns, STEP=step)
    found = out.reshape(-1, 4).tolist()
    wrong = [(case, row) for case, row in zip(cases, found, strict=True) if row != expected(*case)]
    assert not wrong, wrong[:5]


def short(case: tuple[int, int, int]) -> bool:
    return case[2] == 0 or (case[1] - case[0]) // case[2] <= MOST


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32])
def test_steps_known_at_run_time(dtype: Any) -> None:
    cases = [c for c in itertools.product(edges(dtype), edges(dtype), steps_of(dtype)) if short(c)]
    assert_python(cases, dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("step", [1, -1, 7, -7, 2**20, -(2**20), 2**31 - 1, -(2**31 - 1), -(2**31)])
def test_steps_known_at_compile_time(dtype: Any, step: int) -> None:
    pairs = itertools.product(edges(dtype), edges(dtype))
    assert_python([c for a, b in pairs if short(c := (a, b, 0 * step + step))], dtype, step)


def test_greatest_steps_known_at_compile_time() -> None:
    for step in (2**63 - 1, -(2**63 - 1), -(2**63)):
        pairs = itertools.product(edges(np.int64), edges(np.int64))
        assert_python([(a, b, step) for a, b in pairs], np.int64, step)


def test_int8_exhaustively() -> None:
    """Every step and stop of int8, from six starts."""
    values = range(-128, 128)
    assert_python([c for c in itertools.product((-128, -127, -1, 0, 64, 127), values, values)], np.int8)


@weft.jit
def constant_bounds(out: Any, step: Any) -> None:
    count = 0
    for _ in range(0, 2**31 - 1, step):
        count += 1
    tl.store(out, count)


def test_greatest_bound_with_a_step_known_at_run_time() -> None:
    out = np.zeros(1, np.int32)
    constant_bounds[(1,)](out, 2**20)
    assert out.tolist() == [2048]
