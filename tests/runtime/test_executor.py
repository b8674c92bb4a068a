"""The thread pool, run on Python callbacks that follow the kernel ABI."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

from weft.runtime import executor
from weft.runtime.executor import Pool, thread_count
from weft.runtime.workspace import ARGUMENTS, RECORD, THREAD, Workspace, give, take

Program = Callable[[int], int]


def entry_of(program: Program, seen: list[tuple[int, ...]] | None = None) -> executor.Entry:
    """An entry point that claims programs as the ABI says and calls ``program`` for each; ``seen`` gets its
    arguments."""
    lock = threading.Lock()

    def entry(
        args: int,
        scratch: int,
        counter: int,
        total: int,
        chunk: int,
        nx: int,
        ny: int,
        nz: int,
        record: int,
        thread: int,
    ) -> int:
        if seen is not None:
            seen.append((args, scratch, counter, total, chunk, nx, ny, nz, record, thread))
        while True:
            with lock:
                cell = ctypes.c_int64.from_address(counter)
                first = cell.value
                cell.value = first + chunk
            if first >= total:
                return 0
            for p in range(first, min(first + chunk, total)):
                if status := program(p):
                    return status

    return entry


def workspace() -> Workspace:
    result = Workspace()
    ctypes.c_int64.from_address(result.address).value = 0
    return result


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("grid", [(1, 1, 1), (2, 1, 1), (3, 5, 7), (1000, 1, 1)])
def test_each_program_runs_once(threads: int, grid: tuple[int, int, int]) -> None:
    counts: Counter[int] = Counter()

    def program(p: int) -> int:
        counts[p] += 1
        return 0

    assert Pool(threads).run(entry_of(program), workspace(), 0, grid) == 0
    assert counts == dict.fromkeys(range(grid[0] * grid[1] * grid[2]), 1)


def test_what_the_entry_point_is_given() -> None:
    seen: list[tuple[int, ...]] = []
    space = workspace()
    Pool(1).run(entry_of(lambda p: 0, seen), space, 100, (2, 3, 4))
    ((args, scratch, counter, total, chunk, nx, ny, nz, record, thread),) = seen
    assert (args, counter) == (space.address + ARGUMENTS, space.address)
    assert (record, thread) == (space.address + RECORD, space.address + THREAD)
    assert (total, chunk, nx, ny, nz) == (24, 24, 2, 3, 4)
    assert scratch % 64 == args % 64 == counter % 64 == record % 64 == thread % 64 == 0
    assert scratch != 0


def test_other_threads_take_part() -> None:
    """Two programs that wait for each other end only if two threads run them."""
    barrier = threading.Barrier(2, timeout=20)

    def program(p: int) -> int:
        barrier.wait()
        return 0

    assert Pool(2).run(entry_of(program), workspace(), 0, (2, 1, 1)) == 0


def test_scratch_is_each_threads_own() -> None:
    seen: list[tuple[int, ...]] = []
    barrier = threading.Barrier(2, timeout=20)

    def program(p: int) -> int:
        barrier.wait()
        return 0

    Pool(2).run(entry_of(program, seen), workspace(), 64, (2, 1, 1))
    assert len({call[1] for call in seen}) == 2
    assert len({call[0] for call in seen}) == 1


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

    assert Pool(2).run(entry_of(program), workspace(), 0, (2, 1, 1)) == 1


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

        assert pool.run(entry_of(program), workspace(), 0, (2, 1, 1)) == 1


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
        pool.run(entry_of(program), workspace(), 0, (2, 1, 1))
    assert len(finished) == 1
    assert pool.run(entry_of(lambda p: 0), workspace(), 0, (100, 1, 1)) == 0


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
        Pool(2).run(entry_of(program), workspace(), 0, (2, 1, 1))
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
            pool.run(entry_of(program), workspace(), 0, (50, 1, 1))

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

def entry(args, scratch, counter, total, chunk, nx, ny, nz, record, thread):
    barrier.wait()
    return 0

def launch():
    global barrier
    barrier = threading.Barrier(2, timeout=20)
    executor.pool().run(entry, executor.Workspace(), 0, (2, 1, 1))

launch()
child = os.fork()
if child == 0:
    signal.alarm(20)
    launch()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    environment = {**os.environ, "WEFT_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(FORK)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.stderr) == ("7\n", "")
