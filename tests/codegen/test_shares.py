"""Which programs a thread runs first of a grid that is shared out, and that each program runs once."""

from __future__ import annotations

import ctypes
import struct
from functools import partial
from typing import Any

import numpy as np
import pytest

import weft
from entries import at_once, enter
from weft import language as tl
from weft.codegen import kernel as abi
from weft.runtime import executor
from weft.runtime.shares import claims
from weft.runtime.workspace import HEAD, Workspace

pytestmark = pytest.mark.jit


def note_plainly(counter: Any, seen: Any) -> None:
    """Writes the programs' numbers in the order in which they run."""
    at = tl.load(counter)
    tl.store(counter, at + 1)
    tl.store(seen + at, tl.program_id(0))


note: Any = weft.jit(note_plainly)
note_checked: Any = weft.jit(checked=True)(note_plainly)


@weft.jit
def note_and_act(counter: Any, seen: Any, more: Any, ACT: tl.constexpr) -> None:
    """The same, of programs that show in which order they ran."""
    if ACT == "waits":
        value = 0
        while value == 0:
            value = tl.atomic_add(more, 0)
    elif ACT == "adds":
        tl.atomic_add(more + tl.arange(0, 8), 1, sem="relaxed")
    elif ACT == "prints":
        if tl.load(more) < 0:
            tl.device_print("negative", tl.program_id(0))
    elif ACT == "asserts":
        tl.device_assert(tl.load(more) >= 0, "negative")
    at = tl.load(counter)
    tl.store(counter, at + 1)
    tl.store(seen + at, tl.program_id(0))


@weft.jit
def add_floats(x: Any, total: Any) -> None:
    tl.atomic_add(total + tl.arange(0, 4), tl.load(x + tl.program_id(0) * 4 + tl.arange(0, 4)))


@weft.jit
def count(counts: Any) -> None:
    own = counts + tl.program_id(0)
    tl.store(own, tl.load(own) + 1)


def order(
    kernel: Any, programs: int, shares: int, share: int, chunk: int, *more: Any, pauses: bool = False, **options: Any
) -> list[int]:
    counter, seen = np.zeros(1, np.int32), np.full(programs, -1, np.int32)
    arrays = counter, seen, *more
    handle = kernel.compile(*arrays, **options)
    enter(handle, arrays, (programs, 1, 1), chunk, pauses=pauses, shares=shares, share=share)
    return seen.tolist()


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("chunk", [1, 4, 100])
@pytest.mark.parametrize("programs", [1, 5, 23, 64])
def test_a_thread_begins_with_its_own_share(programs: int, chunk: int, pauses: bool) -> None:
    """Then it runs what follows, and at last what lies before. The shares are those of `numpy.array_split`."""
    for shares in (1, 2, 3, 9, 24, abi.MOST_SHARES):
        parts = np.array_split(np.arange(programs), shares)
        for share in {0, 1, shares // 2, shares - 1}:
            if share < shares:
                expected = np.concatenate(parts[share:] + parts[:share]).tolist()
                assert order(note, programs, shares, share, chunk, pauses=pauses) == expected


def test_a_thread_without_a_share_begins_with_the_first() -> None:
    assert order(note, 8, 0, 0, 2) == order(note, 8, 0, 5, 2) == order(note, 8, 3, 7, 2) == [*range(8)]


@pytest.mark.parametrize("act", ["waits", "adds", "prints", "asserts"])
def test_programs_whose_order_is_seen_start_in_order(act: str) -> None:
    """Those of which some wait for others must: else all threads could be in programs that wait for one that none has started."""
    for share in (0, 1, 3):
        more = np.ones(8, np.int32)
        assert order(note_and_act, 12, 4, share, 3, more, ACT=act, debug=True, sanitize_overflow=False) == [*range(12)]
        assert (more == 1 + 12 * (act == "adds")).all()
    assert (
        order(note_and_act, 12, 4, 1, 3, np.ones(8, np.int32), ACT="nothing", debug=True, sanitize_overflow=False)[0]
        == 3
    )


def test_checked_programs_start_in_order() -> None:
    """Whichever share is the thread's."""
    for share in (0, 1, 3):
        assert order(note_checked, 12, 4, share, 3) == [*range(12)]


@pytest.mark.parametrize("chunk", [1, 7])
def test_a_worker_alone_adds_floats_in_the_order_of_programs(chunk: int) -> None:
    """One thread then has all of them to itself, whichever it is: a sum does not depend on that."""
    x, total = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32), np.zeros(4, np.float32)
    expected = np.zeros(4, np.float32)
    for row in x:
        expected += row
    for share in (0, 1, 3):
        total[:] = 0
        enter(add_floats.compile(x, total), (x, total), (64, 1, 1), chunk, shares=4, share=share)
        np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize(("shares", "words"), [(2, [0, 8]), (8, [*range(0, 64, 8)]), (10, [*range(0, 64, 8), 1, 9])])
def test_each_share_has_a_counter_of_its_own(shares: int, words: list[int]) -> None:
    """Those of the first 8 shares lie in different cache lines. Nothing is claimed of a share that seems to be run."""
    space, arrays = Workspace(), (np.zeros(1, np.int32), np.zeros(shares, np.int32))
    enter(note.compile(*arrays), arrays, (shares, 1, 1), 1, space=space, shares=shares)
    counters = (ctypes.c_int64 * abi.RECORD).from_address(space.launch)
    assert [counters[word] for word in words] == [1] * shares
    assert sum(counters) == shares


@pytest.mark.parametrize("shares", [1, 2, 3, 64])
def test_threads_run_each_program_once(shares: int) -> None:
    """Three threads, of which two may have the same share."""
    counts, spaces = np.zeros(1000, np.int32), [Workspace() for _ in range(3)]
    handle = count.compile(counts)
    entry = executor.ENTRY(handle.executable.address)
    for launches in range(1, 11):
        first = spaces[0]
        struct.pack_into(f"{HEAD}Q", first.block, first.offset, 0, 1000, 7, 1000, 1, 1, counts.ctypes.data)
        first.share_out(shares, claims())
        for share, space in enumerate(spaces):
            space.begin_at(share)
        at_once([partial(entry, first.launch, space.thread) for space in spaces])
        assert (counts == launches).all()


@weft.jit
def double_rows(x: Any, y: Any, n: Any, B: tl.constexpr) -> None:
    """Programs of one row of the grid run together."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    own, inside = tl.program_id(1) * n + i, i < n
    tl.store(y + own, tl.load(y + own, mask=inside) + 2 * tl.load(x + own, mask=inside), mask=inside)


@pytest.mark.parametrize("share", [0, 1, 4])
@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (7, 1000), (30, 70)])
def test_groups_of_programs_are_shared_out(rows: int, columns: int, share: int) -> None:
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    for chunk in (1, 3, 50):
        y = np.zeros_like(x)
        handle = double_rows.compile(x, y, columns, 8)
        executable = handle.executable
        space, grid = Workspace(), (-(-columns // 8), rows, 1)
        scratch = space.scratch(executable.scratch)
        words = scratch, grid[0] * rows, chunk, *grid, x.ctypes.data, y.ctypes.data, columns
        struct.pack_into(f"{HEAD}QQq", space.block, space.offset, *words)
        space.share_out(5, claims())
        space.begin_at(share)
        assert executor.ENTRY(executable.address)(space.launch, space.thread) == abi.DONE
        assert (y == 2 * x).all()
