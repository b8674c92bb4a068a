"""Atomics that a thread has to itself: who has them, who gives way, and that no update is lost between launches of many threads.

A kernel says how it runs: it stores the first word of the lock, which lies in an array of the test's.
"""

# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from entries import at_once
from weft import dtypes
from weft.codegen.cpu import exclusive
from weft.frontend import ConstantArgument, PointerArgument, build_module
from weft.runtime import exclusion, executor

pytestmark = pytest.mark.jit

PROGRAMS = 64
LOCK: Any = np.ctypeslib.as_array((ctypes.c_int64 * 16).from_address(exclusion.ADDRESS))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    yield
    assert not LOCK.any(), "all have left"


@weft.jit
def plain(out: Any, counts: Any, lock: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, N)
    tl.atomic_add(counts + at, 1)
    tl.store(out + tl.program_id(0), tl.load(lock))


@weft.jit
def for_systems(out: Any, counts: Any, lock: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, N)
    tl.atomic_add(counts + at, 1, scope="sys")
    tl.store(out + tl.program_id(0), tl.load(lock))


@weft.jit
def waiting(out: Any, counts: Any, lock: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, N)
    tl.atomic_add(counts + at, 1)
    tl.store(out + tl.program_id(0), tl.load(lock, volatile=True))


@weft.jit
def learning(out: Any, counts: Any, lock: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, N)
    old = tl.atomic_add(counts + at, 1)
    tl.store(out + tl.program_id(0), tl.load(lock) + tl.minimum(tl.min(old, axis=0), 0))


@weft.jit
def printing(out: Any, counts: Any, lock: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, N)
    tl.atomic_add(counts + at, 1)
    tl.store(out + tl.program_id(0), tl.load(lock))
    tl.device_print("here", tl.program_id(0))


@weft.jit
def looping(out: Any, counts: Any, lock: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, N)
    for i in range(2):
        tl.atomic_add(counts + at, i, sem="relaxed")
    tl.store(out + tl.program_id(0), tl.load(lock))


@weft.jit
def scalar(out: Any, counts: Any, lock: Any, N: tl.constexpr) -> None:
    for i in range(N):
        tl.atomic_add(counts + i, 1, sem="relaxed")
    tl.store(out + tl.program_id(0), tl.load(lock))


@weft.jit
def trying(out: Any, counts: Any, lock: Any, N: tl.constexpr) -> None:
    """The loop may wait for a launch of another thread, though no order is asked for."""
    at = tl.arange(0, N)
    tl.atomic_add(counts + at, 1)
    while tl.atomic_cas(counts, -1, 0, sem="relaxed") == -1:
        pass
    tl.store(out + tl.program_id(0), tl.load(lock))


def launched(kernel: Any, threads: int, monkeypatch: pytest.MonkeyPatch, n: int = 32) -> Any:
    """What the lock held in each program of a launch by so many threads."""
    pool = executor.Pool(threads)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    out, counts = np.zeros(PROGRAMS, np.int64), np.zeros(n, np.int32)
    kernel[(PROGRAMS,)](out, counts, LOCK, N=n)
    assert (counts == PROGRAMS).all()
    return out


@weft.jit
def costly(x: Any, at: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for _ in tl.static_range(8):
        v = tl.exp(v)
    tl.atomic_add(x + tl.load(at + i), v)


@weft.jit
def counted(x: Any, at: Any, N: tl.constexpr) -> None:
    tl.atomic_add(x + tl.arange(0, 16), tl.histogram(tl.load(at + tl.arange(0, N)), 16).to(tl.float32))


@pytest.mark.parametrize(
    ("kernel", "n", "threads"),
    [(costly, 64, 2), (counted, 64, 4), (counted, 512, 1), (counted, 16, 8)],
    ids=["computes", "a quarter", "few", "half"],
)
def test_how_many_threads_one_is_sooner_than(kernel: Any, n: int, threads: int) -> None:
    """20 times the atomics over the accesses and a sixteenth of the cost of what is computed, and 1. 8 exponentials that cost
    20 each are 10 accesses.

    20 * 64 / (3 * 64 + 10 * 64 + few); 20 * 16 / (64 + 16 + few); 20 * 16 / (512 + 16 + few); more than 8."""
    pointers = {"x": PointerArgument(dtypes.float32), "at": PointerArgument(dtypes.int32), "N": ConstantArgument(n)}
    module = build_module(kernel, pointers)
    assert exclusive.most_chunks(module) == (1 if threads == 1 else 8 * threads + 7)


def test_the_runtime_and_code_generation_agree() -> None:
    assert exclusion.SYMBOL == exclusive.LOCK
    assert exclusion.ADDRESS % 64 == 0
    assert LOCK.itemsize * exclusive.WAITING == 64


@pytest.mark.parametrize("kernel", [plain, looping], ids=["plain", "looping"])
def test_one_thread_has_them_alone(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    out = launched(kernel, 1, monkeypatch)
    assert out[0] > exclusive.MOST_SHARED
    assert len(set(out.tolist())) == 1


def test_a_kernel_of_atomics_leaves_the_grid_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    out = launched(plain, 4, monkeypatch)
    assert out[0] > exclusive.MOST_SHARED
    assert len(set(out.tolist())) == 1


@pytest.mark.parametrize("kernel", [for_systems, waiting, learning, printing, scalar, trying], ids=lambda k: k.__name__)
@pytest.mark.parametrize("threads", [1, 2])
def test_they_share(kernel: Any, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may use the memory, another program is waited for, or Python runs within."""
    assert set(launched(kernel, threads, monkeypatch).tolist()) <= {*range(1, threads + 1)}


def test_a_loop_shares_where_several_threads_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(launched(looping, 2, monkeypatch).tolist()) <= {1, 2}


def test_it_gives_way_to_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    LOCK[exclusive.WAITING] = 1
    try:
        out = launched(plain, 1, monkeypatch)
    finally:
        LOCK[exclusive.WAITING] = 0
    assert set(out.tolist()) == {1}


def test_it_shares_with_those_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    LOCK[0] = 3
    try:
        out = launched(plain, 1, monkeypatch)
        assert LOCK[0] == 3
    finally:
        LOCK[0] = 0
    assert set(out.tolist()) == {4}


@weft.jit
def hears(x: Any, flag: Any, N: tl.constexpr) -> None:
    tl.atomic_add(x + tl.arange(0, N), 1, sem="relaxed")
    while tl.atomic_add(flag, 0, sem="relaxed") == 0:
        pass


@weft.jit
def says(x: Any, flag: Any, N: tl.constexpr) -> None:
    tl.atomic_add(x + tl.arange(0, N), 1, sem="relaxed")
    tl.atomic_add(flag, 1, sem="relaxed")


def test_a_launch_may_wait_for_one_of_another_thread() -> None:
    x, flag = np.zeros(16, np.int32), np.ones(1, np.int32)
    for kernel in (hears, says):
        kernel[(1,)](x, flag, N=16)
    flag[0] = 0
    workers = [threading.Thread(target=kernel[(1,)], args=(x, flag), kwargs={"N": 16}) for kernel in (hears, says)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(10)
    stuck = [worker.is_alive() for worker in workers]
    flag[0] = 1  # ends what is stuck
    for worker in workers:
        worker.join()
    assert stuck == [False, False]
    assert (x == 4).all()


@weft.jit
def scatter(x: Any, at: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(x + tl.load(at + i), 1, sem="relaxed")


@weft.jit
def consecutive(x: Any, at: Any, N: tl.constexpr) -> None:
    tl.atomic_add(x + tl.arange(0, N), 1)


@weft.jit
def one_by_one(x: Any, at: Any, N: tl.constexpr) -> None:
    for i in range(N):
        tl.atomic_add(x + tl.load(at + tl.program_id(0) * N + i), 1)


@weft.jit
def by_compare(x: Any, at: Any, N: tl.constexpr) -> None:
    for i in range(N):
        p = x + tl.load(at + tl.program_id(0) * N + i)
        old = tl.load(p, volatile=True)
        while tl.atomic_cas(p, old, old + 1) != old:
            old = tl.load(p, volatile=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_update_is_lost_between_launches(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six threads launch kernels of each kind on one array."""
    pool = executor.Pool(threads)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    size, n, launches = 16, 16, 40
    x, at = np.zeros(size, np.int64), (np.arange(PROGRAMS * n) * 7 % size).astype(np.int32)
    kernels: list[Any] = [scatter, scatter, consecutive, one_by_one, by_compare, scatter]
    for kernel in set(kernels):
        kernel[(PROGRAMS,)](x, at, N=n)
    x[:] = 0

    def launch(kernel: Any) -> None:
        for _ in range(launches):
            kernel[(PROGRAMS,)](x, at, N=n)

    at_once([partial(launch, kernel) for kernel in kernels])
    assert x.tolist() == [len(kernels) * launches * PROGRAMS * n // size] * size


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork, whose child the test is about")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_finds_the_lock_free() -> None:
    LOCK[0] = 5
    try:
        child = os.fork()
        if child == 0:
            os._exit(int(LOCK[0]))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert LOCK[0] == 5
    finally:
        LOCK[0] = 0


class Forking(io.StringIO):
    """Forks at the first write, within a kernel; ``child`` is the child's id, 0 in the child."""

    child = -1

    def write(self, text: str) -> int:
        if self.child == -1:
            self.child = os.fork()
        return super().write(text)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork, whose child the test is about")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_inside_a_kernel_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child is in the kernel, too, which it leaves as the parent does, and then finds the lock free."""
    launched(printing, 1, monkeypatch)
    written = Forking()
    with contextlib.redirect_stdout(written):
        launched(printing, 1, monkeypatch)
    if written.child == 0:
        os._exit(int(LOCK[0] != 0))
    assert os.waitstatus_to_exitcode(os.waitpid(written.child, 0)[1]) == 0
