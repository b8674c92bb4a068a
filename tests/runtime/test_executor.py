"""The thread pool, run on Python callbacks that follow the kernel ABI."""

from __future__ import annotations

import _thread
import ctypes
import mmap
import os
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from entries import entry_of
from weft.codegen import kernel as abi
from weft.runtime import executor
from weft.runtime.executor import Pool, thread_count
from weft.runtime.workspace import HEAD, Workspace, give, take


def run(
    pool: Pool, entry: executor.Entry, grid: tuple[int, int, int], scratch: int = 0, space: Workspace | None = None
) -> int:
    """A launch without arguments, packed as `Executable` does it."""
    space = space or Workspace()
    total, chunk, width = pool.share(grid)
    struct.pack_into(HEAD, space.block, space.offset, space.scratch(scratch), total, chunk, *grid)
    return pool.run(entry, space, scratch, width)


def scratch_of(thread: int) -> int:
    """The address of the scratch memory that a thread was given."""
    return ctypes.c_int64.from_address(thread + 8 * abi.SCRATCH).value


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("grid", [(1, 1, 1), (2, 1, 1), (3, 5, 7), (1000, 1, 1)])
def test_each_program_runs_once(threads: int, grid: tuple[int, int, int]) -> None:
    counts: Counter[int] = Counter()

    def program(p: int) -> int:
        counts[p] += 1
        return 0

    assert run(Pool(threads), entry_of(program), grid) == 0
    assert counts == dict.fromkeys(range(grid[0] * grid[1] * grid[2]), 1)


def test_what_the_entry_point_is_given() -> None:
    seen: list[tuple[int, int]] = []
    space = Workspace()
    run(Pool(1), entry_of(lambda p: 0, seen), (2, 3, 4), 100, space)
    assert seen == [(space.launch, space.thread)]
    words = (ctypes.c_int64 * abi.SLOTS).from_address(space.launch)
    assert [words[i] for i in (abi.TOTAL, abi.CHUNK, *abi.SIZES)] == [24, 24, 2, 3, 4]
    assert space.launch % 64 == space.thread % 64 == scratch_of(space.thread) % 64 == 0
    assert scratch_of(space.thread) != 0


def test_each_thread_has_a_share_of_its_own() -> None:
    """The caller the first, and each worker always the same one, whatever launches it takes part in."""
    pool, caller, shares = Pool(4), threading.get_ident(), dict[int, set[int]]()
    for _ in range(5):
        barrier = threading.Barrier(4, timeout=20)

        def entry(launch: int, thread: int, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            share = ctypes.c_int64.from_address(thread + 8 * abi.SHARE).value
            shares.setdefault(threading.get_ident(), set()).add(share)
            return abi.DONE

        assert run(pool, entry, (4, 1, 1)) == abi.DONE
    assert shares[caller] == {0}
    assert sorted(map(list, shares.values())) == [[0], [1], [2], [3]]


@pytest.mark.parametrize(
    ("grid", "threads", "shared"),
    [
        ((1, 1, 1), 4, (1, 1, 1)),
        ((3, 1, 1), 4, (3, 1, 3)),
        ((10, 10, 10), 1, (1000, 1000, 1)),
        ((10, 10, 10), 4, (1000, 31, 4)),
    ],
)
def test_how_a_grid_is_shared(grid: tuple[int, int, int], threads: int, shared: tuple[int, int, int]) -> None:
    """Eight claims a thread, where there are so many programs."""
    assert Pool(threads).share(grid) == shared
    assert Pool(7).share(grid, threads) == shared


def test_other_threads_take_part() -> None:
    """Two programs that wait for each other end only if two threads run them."""
    barrier = threading.Barrier(2, timeout=20)

    def program(p: int) -> int:
        barrier.wait()
        return 0

    assert run(Pool(2), entry_of(program), (2, 1, 1)) == 0


def test_first_launches_at_once_start_one_set_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each makes boxes; the workers and native code know those of one of them."""
    both, served = threading.Barrier(2, timeout=20), list[executor.Boxes]()

    class Boxes(executor.Boxes):
        def __init__(self, count: int):
            super().__init__(count)
            both.wait()

        def serve(self, number: int, workspace: Workspace) -> None:
            served.append(self)
            super().serve(number, workspace)

    monkeypatch.setattr(executor, "Boxes", Boxes)
    pool, together = Pool(3), threading.Barrier(3, timeout=20)

    def program(p: int) -> int:
        if p >= 100:
            together.wait()
        return 0

    launches = [threading.Thread(target=run, args=(pool, entry_of(program), (2, 1, 1))) for _ in range(2)]
    for launch in launches:
        launch.start()
    for launch in launches:
        launch.join()
    ended = time.monotonic() + 20
    while len(served) < 2 and time.monotonic() < ended:
        run(pool, entry_of(lambda p: program(100)), (3, 1, 1))  # all workers take part
    native = (ctypes.c_int64 * len(executor.WORDS)).from_address(pool.address_of_words)[1:4]
    assert len({id(boxes) for boxes in served}) == 1
    assert tuple(native) == served[0].native


def test_workers_whose_start_a_signal_ended_start_with_the_next_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(2)
    with monkeypatch.context() as patched:

        def interrupted(function: object, arguments: object) -> None:
            raise KeyboardInterrupt

        patched.setattr("_thread.start_new_thread", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(pool, entry_of(lambda p: 0), (2, 1, 1))
    barrier = threading.Barrier(2, timeout=20)
    assert run(pool, entry_of(lambda p: barrier.wait() * 0), (2, 1, 1)) == 0


@pytest.mark.parametrize("most", [0, 1])
def test_launches_have_the_threads_that_the_system_starts(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = _thread.start_new_thread, list[None]()
    pool, seen = Pool(4), set[int]()

    def refusing(function: Callable[..., object], arguments: tuple[Any, ...]) -> int:
        if getattr(function, "__self__", None) is pool:  # the watch has a thread, too
            if len(started) == most:
                raise RuntimeError("can't start new thread")
            started.append(None)
        return start(function, arguments)

    monkeypatch.setattr("_thread.start_new_thread", refusing)
    barrier = threading.Barrier(1 + most, timeout=20)

    def program(p: int) -> int:
        seen.add(threading.get_ident())
        if p <= most:
            barrier.wait()
        return 0

    for _ in range(3):
        assert run(pool, entry_of(program), (8, 1, 1)) == 0
        assert pool.threads == len(seen) == 1 + most


def test_a_launch_without_a_watch_goes_on_where_one_paused_it() -> None:
    """A watch may be late: it then pauses or stops the launch that follows in the same workspace."""
    for statuses, expected in (((executor.PAUSED, executor.DONE), executor.DONE), ((executor.FAULT,), executor.FAULT)):
        rest = iter(statuses)
        space, called = Workspace(), list[tuple[int, int]]()

        def entry(launch: int, thread: int, rest: Iterator[int] = rest, called: list[tuple[int, int]] = called) -> int:
            called.append((launch, thread))
            return next(rest)

        assert executor.finish(entry, space, executor.PAUSED) == expected
        assert called == [(space.launch, space.thread)] * len(statuses)
    with pytest.raises(KeyboardInterrupt):
        executor.finish(lambda launch, thread: executor.STOPPED, Workspace(), executor.PAUSED)


def test_scratch_is_each_threads_own() -> None:
    seen: list[tuple[int, int]] = []
    barrier = threading.Barrier(2, timeout=20)

    def program(p: int) -> int:
        barrier.wait()
        return 0

    space = Workspace()  # kept, for its words are read after the launch
    run(Pool(2), entry_of(program, seen), (2, 1, 1), 64, space)
    assert len({scratch_of(thread) for _, thread in seen} - {0}) == 2
    assert len({launch for launch, _ in seen}) == 1


def test_scratch_grows_and_is_kept() -> None:
    space = Workspace()
    assert space.scratch(0) == 0
    small = space.scratch(100)
    large = space.scratch(1 << 20)
    ctypes.memset(large, 1, 1 << 20)
    assert small % 64 == large % 64 == 0
    assert space.scratch(100) == large


def test_status_of_any_thread_counts() -> None:
    barrier = threading.Barrier(2, timeout=20)

    def program(p: int) -> int:
        barrier.wait()
        return int(p == 1)

    assert run(Pool(2), entry_of(program), (2, 1, 1)) == 1


def test_a_fault_is_kept_while_another_thread_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statuses were joined by ``self.status = max(self.status, status)``, in which two threads lose one. The replaced
    ``max`` made that happen every time."""

    def slow_max(first: int, second: int) -> int:
        time.sleep(0.02 if second == 0 else 0.01)
        return first if first > second else second

    monkeypatch.setattr(executor, "max", slow_max, raising=False)
    caller = threading.get_ident()
    pool = Pool(2)
    for failing in (True, False) * 5:
        barrier = threading.Barrier(2, timeout=20)

        def program(p: int, failing: bool = failing, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            return int((threading.get_ident() == caller) is failing)

        assert run(pool, entry_of(program), (2, 1, 1)) == 1


def test_an_exception_in_a_worker_reaches_the_caller_after_all_have_finished() -> None:
    caller = threading.get_ident()
    barrier = threading.Barrier(2, timeout=20)
    finished: list[int] = []

    def program(p: int) -> int:
        barrier.wait()
        if threading.get_ident() != caller:
            raise ArithmeticError(f"program {p}")
        finished.append(p)
        return 0

    pool = Pool(2)
    with pytest.raises(ArithmeticError, match="program [01]"):
        run(pool, entry_of(program), (2, 1, 1))
    assert len(finished) == 1
    assert run(pool, entry_of(lambda p: 0), (100, 1, 1)) == 0


def test_an_exception_in_the_caller_waits_for_the_workers() -> None:
    caller = threading.get_ident()
    barrier = threading.Barrier(2, timeout=20)
    release = threading.Event()
    finished: list[int] = []

    def program(p: int) -> int:
        barrier.wait()
        if threading.get_ident() == caller:
            threading.Timer(0.05, release.set).start()
            raise KeyboardInterrupt
        release.wait(20)
        finished.append(p)
        return 0

    with pytest.raises(KeyboardInterrupt):
        run(Pool(2), entry_of(program), (2, 1, 1))
    assert len(finished) == 1


def test_launches_from_several_threads() -> None:
    pool = Pool(3)
    totals = [0] * 6
    lock = threading.Lock()

    def launch(index: int) -> None:
        def program(p: int) -> int:
            with lock:
                totals[index] += p
            return 0

        for _ in range(20):
            run(pool, entry_of(program), (50, 1, 1))

    threads = [threading.Thread(target=launch, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == [20 * sum(range(50))] * 6


def test_workspaces_nest() -> None:
    outer = take(4)
    inner = take(4)
    assert inner is not outer
    give(inner)
    give(outer)
    assert take(4) is outer
    give(outer)
    large = take(10_000)
    assert large.slots == 10_000


def test_thread_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_NUM_THREADS", raising=False)
    assert 1 <= thread_count() <= (os.cpu_count() or 1)
    monkeypatch.setenv("WEFT_NUM_THREADS", "3")
    assert thread_count() == 3
    for text in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv("WEFT_NUM_THREADS", text)
        with pytest.raises(ValueError, match="WEFT_NUM_THREADS") as raised:
            thread_count()
        assert str(raised.value) == f"WEFT_NUM_THREADS: expected a positive integer, found '{text}'"


FORK = """
import ctypes, os, signal, threading
from weft.runtime import executor

def entry(launch, thread):
    barrier.wait()
    return 0

def launch():
    global barrier
    barrier = threading.Barrier(2, timeout=20)
    executor.pool().run(entry, executor.Workspace(), 0, 2)

launch()
child = os.fork()
if child == 0:
    signal.alarm(20)
    launch()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork, whose child the test is about")
def test_a_forked_child_has_threads_of_its_own() -> None:
    environment = {**os.environ, "WEFT_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(FORK)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.stderr) == ("7\n", "")


SCRATCH = """
import ctypes, os
from weft.runtime.executor import Workspace

space = Workspace()
word = ctypes.c_int64.from_address(space.scratch(1 << 20))
word.value = 5
child = os.fork()
if child == 0:
    word.value = 6
    os._exit(0)
os.waitpid(child, 0)
print(word.value)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork, whose child the test is about")
def test_scratch_memory_is_not_shared_with_a_forked_child() -> None:
    result = subprocess.run([sys.executable, "-c", SCRATCH], capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.stderr) == ("5\n", "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc, which Linux has")
def test_scratch_memory_that_nobody_touches_takes_none() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE

    space, before = Workspace(), resident()
    address = space.scratch(64 << 20)
    assert resident() - before < 8 << 20
    ctypes.memset(address, 1, 64 << 20)
    assert resident() - before > 56 << 20


def test_scratch_memory_grows_and_is_kept() -> None:
    space = Workspace()
    first = space.scratch(100)
    assert space.scratch(50) == space.scratch(100) == first
    assert space.scratch(1 << 20) % 64 == 0
    assert space.scratch_size == 1 << 20


def test_memory_that_the_system_refuses() -> None:
    space = Workspace()
    with pytest.raises(MemoryError, match=r"^no 1152921504606846976 bytes of scratch memory for a thread: "):
        space.scratch(1 << 60)
    assert space.scratch_size == 0
    assert space.scratch(100) != 0
