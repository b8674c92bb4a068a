"""Workers that look for launches in native code. Entry points are Python functions, which say what they were given."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from entries import entry_of
from weft.codegen import compile as compiler
from weft.codegen import kernel as abi
from weft.runtime import executor, spinning
from weft.runtime.executor import Pool
from weft.runtime.spinning import AWAY, CLAIMED, FEW, POSTED, READY, SHORT, SPIN, WAITS, Boxes
from weft.runtime.workspace import HEAD, TICKET, Workspace

pytestmark = pytest.mark.jit

assert compiler is not None  # the workers' code is compiled where the compiler has been loaded


def address_of(entry: Callable[[int, int], int]) -> tuple[executor.Entry, int]:
    """A native entry point that calls a function, and its address."""
    native = executor.ENTRY(entry)
    address = ctypes.cast(native, ctypes.c_void_p).value
    assert address is not None
    return native, address


def words_of(boxes: Boxes, number: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * 8).from_address(boxes._box(number))  # pyright: ignore[reportPrivateUsage]


def ready(boxes: Boxes, *numbers: int, scratch: int = 0) -> None:
    """Has boxes say that their workers look; there are none."""
    for number in numbers:
        words_of(boxes, number)[0] = READY
        words_of(boxes, number)[5] = scratch


def states(boxes: Boxes, count: int) -> list[int]:
    return [words_of(boxes, number)[0] for number in range(count)]


def remaining(space: Workspace) -> int:
    return ctypes.c_int64.from_address(space.address + TICKET).value


class Worker:
    """A thread that looks at a box until it is told to stop."""

    def __init__(self, boxes: Boxes, scratch: int = 0) -> None:
        self.space = Workspace()
        self.space.enter(scratch)
        self._boxes, self._on = boxes, True
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._on = False
        self._thread.join()

    def _work(self) -> None:
        while self._on:
            self._boxes.serve(0, self.space)


def posted(boxes: Boxes, address: int, space: Workspace, scratch: int = 0) -> None:
    """Posts a launch to one worker, as soon as it looks."""
    ends = time.monotonic() + 20
    while boxes.post(1, address, space, scratch) == 0:
        assert time.monotonic() < ends, "no worker looks"


def left(space: Workspace) -> None:
    """Waits until a launch's workers have begun and left it."""
    ends = time.monotonic() + 20
    while remaining(space):
        assert time.monotonic() < ends, "a worker does not leave"


def test_a_worker_that_looks_runs_what_is_posted() -> None:
    """It gives its own thread words, cleared but for the address of its scratch memory, and calls again after a pause."""
    boxes, space, seen = Boxes(1), Workspace(), list[tuple[int, int, list[int]]]()
    statuses = [executor.PAUSED, executor.PAUSED, executor.FAULT, executor.STOPPED, executor.DONE]

    def entry(launch: int, thread: int) -> int:
        words = (ctypes.c_int64 * 4).from_address(thread)
        seen.append((launch, thread, list(words)))
        words[0], words[1], words[2] = 7, 8, 9
        return statuses[len(seen) - 1]

    native, address = address_of(entry)
    outcomes: list[int] = []
    with Worker(boxes, 100) as worker:
        for _ in range(3):
            posted(boxes, address, space)
            left(space)
            outcomes.append(space.outcomes)
        scratch = worker.space.scratch(0)
        given = [(space.launch, worker.space.thread)] * 5
    assert native is not None
    assert [one[:2] for one in seen] == given
    assert [one[2] for one in seen] == [
        [0, 0, 0, scratch],
        [7, 8, 9, scratch],
        [7, 8, 9, scratch],
        [0, 0, 0, scratch],
        [0, 0, 0, scratch],
    ]
    assert outcomes == [1 << 1, 1 << 1 | 1 << 2, 1 << 1 | 1 << 2 | 1 << 0]
    assert remaining(space) == 0


def test_a_worker_goes_away_when_nothing_comes() -> None:
    boxes = Boxes(1)
    for _ in range(5):
        began = time.perf_counter_ns()
        boxes.serve(0, Workspace())
        assert time.perf_counter_ns() - began > SPIN / 10
        assert states(boxes, 1) == [AWAY]
    assert boxes.post(1, 1, Workspace(), 0) == 0


def test_how_long_workers_look_is_by_the_least_of_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """201 looks in 50, 11, 20, 90 and 30 us, where the core was given away meanwhile, and one in 1 us."""
    times = [50_000, 11_000, 20_000, 90_000, 30_000, 1_000, 3_000, 2_000, 1_000, 9_000]
    ends = list(accumulate(times))
    clock = iter([at for begin, end in zip([0, *ends], ends, strict=False) for at in (begin, end)])
    monkeypatch.setattr(spinning.time, "perf_counter_ns", lambda: next(clock))
    asked: list[int] = []

    def native(which: int, _box: int, rounds: int, *_: int) -> int:
        asked.extend((which, rounds))
        return 0

    assert spinning.looks(native) == SPIN // 10_000 * 200
    assert asked == [0, 201] * 5 + [0, 1] * 5


def test_so_many_workers_as_are_wanted_and_look() -> None:
    boxes, space = Boxes(4), Workspace()
    ready(boxes, 0, 2, 3)
    words_of(boxes, 1)[0] = CLAIMED
    assert boxes.post(2, 5, space, 0) == 2
    assert states(boxes, 4) == [POSTED, CLAIMED, POSTED, READY]
    assert [words_of(boxes, 2)[word] for word in (1, 2, 3)] == [5, space.launch, space.address + TICKET]
    assert remaining(space) == 2
    assert boxes.post(2, 5, space, 0) == 1
    assert remaining(space) == 3


def test_a_worker_with_too_little_scratch_memory_is_sent_for_more() -> None:
    boxes, space = Boxes(2), Workspace()
    ready(boxes, 0, scratch=99)
    ready(boxes, 1, scratch=100)
    assert boxes.post(2, 5, space, 100) == 1
    assert states(boxes, 2) == [SHORT, POSTED]
    assert words_of(boxes, 0)[6] == 100
    assert boxes.post(1, 5, space, 10) == 0


def test_a_worker_that_never_came_in_time_for_a_kernel_runs_it_when_it_looks() -> None:
    """It has no scratch memory, and is only ever asked for 1,000 and then for 2,000 bytes, while it looks."""
    boxes, space, addresses = Boxes(1), Workspace(), list[int]()

    def entry(_launch: int, thread: int) -> int:
        addresses.append((ctypes.c_int64 * 4).from_address(thread)[3])
        return executor.DONE

    native, address = address_of(entry)
    with Worker(boxes) as worker:
        for size, there in ((1000, 1000), (2000, 2000), (500, 2000)):
            posted(boxes, address, space, size)
            left(space)
            assert worker.space.scratch_size == there
        last = worker.space.scratch(0)
    assert native is not None
    assert addresses[0] != 0
    assert addresses[1:] == [last, last]


def test_a_worker_for_which_there_is_no_memory_goes_on_without() -> None:
    """More than addresses reach."""
    boxes, space = Boxes(1), Workspace()
    worker = threading.Thread(target=boxes.serve, args=(0, Workspace()))
    worker.start()
    ends = time.monotonic() + 20
    while worker.is_alive():
        assert boxes.post(1, 5, space, 1 << 60) == 0
        assert time.monotonic() < ends, "the worker does not go away"
    assert states(boxes, 1) == [AWAY]


def test_what_no_worker_has_begun_is_taken_back_from_the_launch_that_ends() -> None:
    boxes, mine, other = Boxes(3), Workspace(), Workspace()
    ready(boxes, 0, 1, 2)
    assert boxes.post(1, 5, mine, 0) == 1
    assert boxes.post(1, 5, other, 0) == 1
    assert boxes.post(1, 5, mine, 0) == 1
    assert boxes.collect(mine) == 0
    assert states(boxes, 3) == [READY, POSTED, READY]
    assert (remaining(mine), remaining(other)) == (0, 1)


def test_collecting_waits_for_a_worker_that_has_begun() -> None:
    boxes, space, goes_on, ran = Boxes(1), Workspace(), threading.Event(), list[int]()

    def entry(launch: int, thread: int) -> int:
        ran.append(launch)
        goes_on.wait(20)
        return executor.DONE

    _native, address = address_of(entry)
    with Worker(boxes):
        posted(boxes, address, space)
        while not ran:
            time.sleep(0.001)
        assert [boxes.collect(space) for _ in range(3)] == [1, 1, 1]
        goes_on.set()
        ends = time.monotonic() + 20
        while boxes.collect(space):
            assert time.monotonic() < ends, "the worker does not leave"
    assert remaining(space) == 0


def launched(pool: Pool, entry: executor.Entry, address: int, grid: tuple[int, int, int]) -> int:
    """A launch without arguments, packed as `Executable` does it."""
    space = Workspace()
    total, chunk, width = pool.share(grid)
    struct.pack_into(HEAD, space.block, space.offset, 0, total, chunk, *grid)
    return pool.run(entry, space, 0, width, None, address)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many workers each launch was posted to. Workers look for a tenth of a second here, so that tests find them looking."""
    found, post, share = spinning._native(), Boxes.post, Boxes.share  # pyright: ignore[reportPrivateUsage]
    assert found is not None
    monkeypatch.setattr(spinning, "_native", lambda: (*found[:2], found[2] * 100))
    result: list[int] = []

    def noted(boxes: Boxes, wanted: int, address: int, workspace: Workspace, scratch: int) -> int:
        result.append(post(boxes, wanted, address, workspace, scratch))
        return result[-1]

    def shared(
        boxes: Boxes, wanted: int, address: int, scratch: int, space: Workspace, launch: int, thread: int
    ) -> int:
        outcome = share(boxes, wanted, address, scratch, space, launch, thread)
        if outcome != FEW:
            result.append(wanted)
        return outcome

    monkeypatch.setattr(Boxes, "post", noted)
    monkeypatch.setattr(Boxes, "share", shared)
    return result


def looking(pool: Pool, taken: list[int]) -> Pool:
    """A pool all of whose workers look."""
    native, address = address_of(lambda launch, thread: executor.DONE)
    ends = time.monotonic() + 20
    while not taken or taken[-1] < pool.threads - 1:
        assert time.monotonic() < ends, "no worker looks"
        assert launched(pool, native, address, (pool.threads, 1, 1)) == executor.DONE
        time.sleep(0.001)
    return pool


@pytest.mark.parametrize("threads", [2, 4])
def test_launches_in_a_row_run_each_program_once(threads: int, taken: list[int]) -> None:
    """None of them is put into the queue where sleeping workers wait."""
    pool, counts = looking(Pool(threads), taken), Counter[int]()
    queued = pool._jobs.qsize()  # pyright: ignore[reportPrivateUsage]
    taken.clear()

    def program(p: int) -> int:
        counts[p] += 1
        return 0

    native, address = address_of(entry_of(program))
    for _ in range(100):
        assert launched(pool, native, address, (20, 1, 1)) == 0
    assert counts == dict.fromkeys(range(20), 100)
    assert taken == [threads - 1] * 100
    assert pool._jobs.qsize() == queued  # pyright: ignore[reportPrivateUsage]


def test_launches_that_ended_before_a_worker_woke_are_dropped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks once then, and not once for each of them."""
    pool, left, space = Pool(2), list[int](), Workspace()

    def serve(_boxes: Boxes, _number: int, _workspace: Workspace) -> None:
        left.append(pool._jobs.qsize())  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(Boxes, "serve", serve)

    def offer(jobs: int) -> None:
        for _ in range(jobs):
            job = executor.Job(executor.ENTRY(0), space, 0, None)
            job.closed = True
            pool._jobs.put(job)  # pyright: ignore[reportPrivateUsage]

    def served(times: int) -> None:
        ends = time.monotonic() + 20
        while len(left) < times:
            assert time.monotonic() < ends, "the worker does not look"
            time.sleep(0.001)

    offer(100)
    threading.Thread(target=pool._work, args=(Boxes(1),), daemon=True).start()  # pyright: ignore[reportPrivateUsage]
    served(1)
    assert left == [0]
    offer(1)
    served(2)
    assert left == [0, 0]


def test_a_failure_in_a_worker_that_looks_is_the_launchs(taken: list[int]) -> None:
    caller, pool = threading.get_ident(), looking(Pool(2), taken)
    taken.clear()
    for failing in (True, False) * 10:
        barrier = threading.Barrier(2, timeout=20)

        def program(p: int, failing: bool = failing, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            return int((threading.get_ident() == caller) is failing)

        native, address = address_of(entry_of(program))
        assert launched(pool, native, address, (2, 1, 1)) == executor.FAULT
    assert taken == [1] * 20


def test_a_launch_ends_after_the_workers_that_look(taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose part in the caller raises, which stops it."""
    caller, pool, share, goes_on = threading.get_ident(), Pool(2), Boxes.share, threading.Event()

    def interrupted(*arguments: Any) -> int:
        assert share(*arguments) == WAITS
        goes_on.set()
        raise KeyboardInterrupt

    for raises in (False, True) * 3:
        barrier, finished = threading.Barrier(2, timeout=20), list[int]()

        def program(p: int, barrier: threading.Barrier = barrier, finished: list[int] = finished) -> int:
            barrier.wait()
            if threading.get_ident() != caller:
                goes_on.wait(20)
                time.sleep(0.02)
                finished.append(p)
            return 0

        native, address = address_of(entry_of(program))
        monkeypatch.setattr(Boxes, "share", share)
        taken.clear()
        looking(pool, taken)
        if raises:
            goes_on.clear()
            monkeypatch.setattr(Boxes, "share", interrupted)
        else:
            goes_on.set()
        if raises:
            with pytest.raises(KeyboardInterrupt):
                launched(pool, native, address, (2, 1, 1))
        else:
            assert launched(pool, native, address, (2, 1, 1)) == executor.DONE
        assert len(finished) == 1
        assert pool._posted == {}  # pyright: ignore[reportPrivateUsage]


def test_a_launch_is_shared_by_workers_all_of_which_look() -> None:
    """Where fewer do, nothing runs."""
    boxes, space, ran = Boxes(2), Workspace(), list[tuple[bool, int, int]]()
    caller = threading.get_ident()

    def entry(launch: int, thread: int) -> int:
        ran.append((threading.get_ident() == caller, launch, thread))
        return executor.DONE

    native, address = address_of(entry)
    assert native is not None
    assert boxes.share(1, address, 0, space, space.launch, space.thread) == FEW
    assert ran == []
    with Worker(boxes) as worker:
        ends = time.monotonic() + 20
        while (outcome := boxes.share(1, address, 0, space, space.launch, space.thread)) == FEW:
            assert time.monotonic() < ends, "no worker looks"
        left(space)
        assert boxes.share(2, address, 0, space, space.launch, space.thread) == FEW
    assert outcome in (executor.DONE, WAITS)
    mine, its = (True, space.launch, space.thread), (False, space.launch, worker.space.thread)
    assert ran.count(mine) == 1
    assert ran in ([mine], [mine, its], [its, mine])  # a launch that ends takes back what nobody began


@pytest.mark.parametrize("status", [executor.FAULT, executor.STOPPED, executor.PAUSED])
def test_the_callers_part_that_ends_early_is_not_waited_for(status: int) -> None:
    boxes, space = Boxes(1), Workspace()
    ready(boxes, 0)
    native, address = address_of(lambda launch, thread: status)
    assert native is not None
    assert boxes.share(1, address, 0, space, space.launch, space.thread) == status
    assert (states(boxes, 1), remaining(space)) == ([POSTED], 1)


def test_what_a_worker_left_with_is_learnt() -> None:
    """Its part has ended, with another status than the caller's."""
    boxes, space = Boxes(1), Workspace()
    ready(boxes, 0)
    ctypes.c_int64.from_address(space.address + TICKET + 8).value = 1 << executor.DONE | 1 << executor.FAULT
    native, address = address_of(lambda launch, thread: executor.DONE)
    assert native is not None
    assert boxes.share(1, address, 0, space, space.launch, space.thread) == WAITS
    assert (states(boxes, 1), remaining(space)) == ([READY], 0)
    ctypes.c_int64.from_address(space.address + TICKET + 8).value = 1 << executor.DONE
    assert boxes.share(1, address, 0, space, space.launch, space.thread) == executor.DONE


def test_launches_from_several_threads() -> None:
    pool, totals, lock = Pool(3), [0] * 4, threading.Lock()

    def launch(index: int) -> None:
        def program(p: int) -> int:
            with lock:
                totals[index] += p
            return 0

        native, address = address_of(entry_of(program))
        for _ in range(50):
            launched(pool, native, address, (20, 1, 1))

    threads = [threading.Thread(target=launch, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals == [50 * sum(range(20))] * 4


def test_without_native_code_workers_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spinning, "_native", lambda: None)
    boxes, counts = Boxes(1), Counter[int]()
    boxes.serve(0, Workspace())
    ready(boxes, 0)
    assert (boxes.post(1, 5, Workspace(), 0), boxes.collect(Workspace())) == (0, 0)
    assert boxes.share(1, 5, 0, Workspace(), 0, 0) == FEW
    pool = Pool(2)

    def program(p: int) -> int:
        counts[p] += 1
        return 0

    native, address = address_of(entry_of(program))
    assert launched(pool, native, address, (20, 1, 1)) == 0
    assert counts == dict.fromkeys(range(20), 1)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_the_code_is_valid_for_any_machine(machine: str) -> None:
    module = llvm.parse_assembly(spinning.text(machine))
    module.verify()
    assert ("sse2.pause" in str(module), "aarch64.hint" in str(module)) == (machine == "x86_64", machine == "aarch64")


def test_code_on_disk_is_of_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """States that are renumbered, or words that lie elsewhere, make other code."""
    before = spinning._version()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setitem(spinning._NUMBERS, "thread", -64)  # pyright: ignore[reportPrivateUsage]
    assert spinning._version() != before  # pyright: ignore[reportPrivateUsage]


def test_packing_a_launch_clears_its_ticket() -> None:
    space = Workspace()
    assert 8 * (abi.SHARE + 1) <= TICKET < TICKET + 16 <= 64
    ctypes.memset(space.address, 255, 64)
    struct.pack_into(HEAD, space.block, space.offset, 0, 1, 1, 1, 1, 1)
    assert (remaining(space), space.outcomes) == (0, 0)


CHILD = """
import struct, sys
import weft
from weft.runtime import executor
from weft.runtime.workspace import HEAD, Workspace

def entry(launch, thread):
    return 0

for _ in range(3):
    space = Workspace()
    struct.pack_into(HEAD, space.block, space.offset, 0, 8, 1, 8, 1, 1)
    executor.pool().run(executor.ENTRY(entry), space, 0, 2)
print("weft.codegen.compile" in sys.modules)
"""


def test_no_compiler_is_loaded_for_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_NUM_THREADS", "2")
    monkeypatch.setenv("WEFT_CACHE", "0")
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.stderr, result.returncode) == ("False\n", "", 0)


KERNEL = """
import sys
import numpy as np
import weft
import weft.language as tl
from weft.runtime import spinning

@weft.jit
def put(x):
    tl.store(x + tl.program_id(0), 1)

x = np.zeros(100, np.int32)
put[(100,)](x)
print(x.sum(), "weft.codegen.compile" in sys.modules, spinning._native() is not None)
"""


def test_a_process_whose_kernels_are_on_disk_finds_the_workers_code_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where the process that compiled them had one thread."""
    path = tmp_path / "put.py"
    path.write_text(KERNEL, encoding="utf-8")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("WEFT_CACHE", raising=False)
    for threads, compiles in (("1", "True"), ("2", "False")):
        monkeypatch.setenv("WEFT_NUM_THREADS", threads)
        result = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=False)
        assert (result.stdout, result.stderr) == (f"100 {compiles} True\n", "")
