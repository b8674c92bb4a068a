"""Grids so small that waking other threads takes longer: one thread runs them, as long as their programs take little time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.codegen import kernel as abi
from weft.runtime import executable, executor
from weft.runtime.executor import Pool

pytestmark = pytest.mark.jit


@weft.jit
def count(x: Any, steps: Any) -> None:
    """Adds 1 for each program, after some steps."""
    own = x + tl.program_id(0)
    for i in range(tl.load(steps)):
        tl.store(own, tl.load(own) ^ i)
        tl.store(own, tl.load(own) ^ i)
    tl.store(own, tl.load(own) + 1)


class Watched(Pool):
    """A pool that notes which launches other threads were offered, and says how long the caller's part took."""

    def __init__(self, threads: int, taken: int) -> None:
        super().__init__(threads)
        self.offered: list[bool] = []
        self.taken = taken

    def run(self, entry: Any, workspace: Any, scratch: int, width: int, kept: object = None, address: int = 0) -> int:
        self.offered.append(True)
        assert width == ctypes.c_int64.from_address(workspace.launch + 8 * abi.SHARES).value
        result = super().run(entry, workspace, scratch, width, kept, address)
        workspace.taken = self.taken
        return result


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how many nanoseconds pass between two looks at the clock."""
    state = {"now": 0, "step": 1}

    def look() -> int:
        state["now"] += state["step"]
        return state["now"]

    monkeypatch.setattr(executable, "perf_counter_ns", look)
    return lambda step: state.update(step=step)


def launches(monkeypatch: pytest.MonkeyPatch, taken: int) -> tuple[Watched, Callable[[int], bool]]:
    """A pool for which native code took so long, and a launch on so many programs, which says whether threads were offered it."""
    pool = Watched(4, taken)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    monkeypatch.setattr(executable, "WAKING", 10_000)
    count._executables.clear()  # pyright: ignore[reportPrivateUsage]
    steps = np.zeros(1, np.int32)

    def launch(programs: int) -> bool:
        x = np.zeros(programs, np.int32)
        pool.offered.clear()
        count[(programs,)](x, steps)
        assert x.tolist() == [1] * programs
        return bool(pool.offered)

    return pool, launch


def test_the_first_launch_is_shared_and_says_what_the_next_does(
    monkeypatch: pytest.MonkeyPatch, clock: Callable[[int], None]
) -> None:
    """20 ns a program, by the caller's part on four threads: 400 programs take 8 us alone, 600 would take longer than waking
    does. Then 5 ns a program, by the clock."""
    _, launch = launches(monkeypatch, 500)
    assert launch(100)
    clock(1_000)
    assert not launch(400)
    assert not launch(1_999)
    pool, launch = launches(monkeypatch, 500)
    assert launch(100)
    pool.taken = 4_000
    assert launch(600)
    assert not launch(300)
    assert launch(3_001)


def test_long_programs_are_shared(monkeypatch: pytest.MonkeyPatch, clock: Callable[[int], None]) -> None:
    _, launch = launches(monkeypatch, 100_000)
    assert [launch(100) for _ in range(4)] == [True] * 4


def test_a_first_program_that_takes_long_is_the_only_one_that_waits(
    monkeypatch: pytest.MonkeyPatch, clock: Callable[[int], None]
) -> None:
    """The rest of its chunk runs too, once."""
    pool, launch = launches(monkeypatch, 100)
    assert launch(100)
    assert not launch(100)
    clock(10_000)
    pool.taken = 100_000
    assert launch(100)
    clock(1)
    assert launch(100)


def test_later_programs_that_take_long_are_shared_when_they_do_so_twice(
    monkeypatch: pytest.MonkeyPatch, clock: Callable[[int], None]
) -> None:
    """9 us for the first program and 9 more for the rest are more than waking takes."""
    _, launch = launches(monkeypatch, 100)
    assert [launch(100) for _ in range(3)] == [True, False, False]
    clock(9_000)
    assert not launch(100)
    clock(1)
    assert not launch(100)
    clock(9_000)
    assert [launch(100) for _ in range(3)] == [False, False, True]


def test_a_launch_that_comes_alone_is_shared_where_it_takes_longer(
    monkeypatch: pytest.MonkeyPatch, clock: Callable[[int], None]
) -> None:
    """20 ns a program: 40 us are enough for threads that look, and not for those that sleep. The launch that follows
    at once is shared; 80 us are enough for both."""
    pool, launch = launches(monkeypatch, 500)
    assert launch(100)
    pool.taken = 10_000
    assert launch(2_000)
    pool.ended -= executor.SPIN
    clock(13_000)
    assert not launch(2_000)
    clock(1)
    assert launch(2_000)
    pool.ended -= executor.SPIN
    assert launch(4_000)


def test_failures_of_the_first_program_and_of_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    @weft.jit(debug=True)
    def asserting(x: Any, bad: Any) -> None:
        tl.device_assert(tl.program_id(0) != tl.load(bad), "bad")
        tl.store(x + tl.program_id(0), 1)

    monkeypatch.setattr(executable, "WAKING", 10**12)
    bad = np.full(1, -1, np.int32)
    for which in (-1, -1, 0, 5, -1, 7):
        x = np.zeros(8, np.int32)
        bad[0] = which
        if which < 0:
            asserting[(8,)](x, bad)
            assert x.all()
        else:
            with pytest.raises(weft.DeviceAssertionError) as caught:
                asserting[(8,)](x, bad)
            assert caught.value.program == (which, 0, 0)


def test_other_threads_launch_small_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first program is run alone on any thread, and the others after it."""
    import threading

    monkeypatch.setattr(executable, "WAKING", 10**12)
    found: list[list[int]] = []

    def launch() -> None:
        for _ in range(5):
            x, steps = np.zeros(40, np.int32), np.zeros(1, np.int32)
            count[(40,)](x, steps)
            found.append(x.tolist())

    threads = [threading.Thread(target=launch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[1] * 40] * 15
