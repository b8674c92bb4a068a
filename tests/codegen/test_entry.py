"""Which programs the entry point runs, and with which ids, however many it claims at a time and wherever it is paused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from entries import enter
from weft import language as tl

pytestmark = pytest.mark.jit


@weft.jit
def note(counter: Any, seen: Any) -> None:
    """Writes each program's ids, in the order in which programs run."""
    at = tl.load(counter)
    tl.store(counter, at + 1)
    for axis in tl.static_range(3):
        tl.store(seen + 3 * at + axis, tl.program_id(axis))


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("chunk", [1, 4, 7, 1000])
@pytest.mark.parametrize("grid", [(1, 1, 1), (6, 1, 1), (1, 6, 1), (1, 1, 6), (2, 3, 4), (3, 1, 2), (5, 2, 1)])
def test_the_ids_of_programs(grid: tuple[int, int, int], chunk: int, pauses: bool) -> None:
    """They count like an odometer, x fastest: the transposed indices of NumPy."""
    total = int(np.prod(grid))
    counter, seen = np.zeros(1, np.int32), np.full((total, 3), -1, np.int32)
    enter(note.compile(counter, seen), (counter, seen), grid, chunk, pauses=pauses)
    assert seen.tolist() == [index[::-1] for index in map(list, np.ndindex(grid[::-1]))]
