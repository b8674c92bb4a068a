"""Kernels that are interrupted: `test_interrupts` runs this in processes of its own, with the names of scenarios."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

import weft
from weft import language as tl
from weft.runtime import direct, exclusion, executable


@weft.jit
def add_one(x: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@weft.jit
def waits(flag: Any) -> None:
    value = 0
    while value == 0:
        value = tl.atomic_add(flag, 0)


@weft.jit
def counts(x: Any, N: tl.constexpr) -> None:
    tl.atomic_add(x + tl.arange(0, N), 1, mask=tl.program_id(0) < 1)


@weft.jit
def long_tiles(x: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    for _ in range(n):
        tl.store(x + i, tl.load(x + i) + 1)


SECONDS = float(os.environ.get("STORM", "0.8"))
"""How long a storm lasts at least."""


class Raised(Exception):
    pass


def later(seconds: float, number: int = signal.SIGINT) -> None:
    """Sends the process a signal after ``seconds``."""
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


def share(turn: int) -> None:
    """Has small grids run on several threads, and each fifth time on one."""
    executable.WAKING = 0 if turn % 5 else 10**12
    if shared := direct.process():
        shared.set(looking=executable.WAKING, sleeping=executable.WAKING)


def storms(since: float, launches: int, interrupts: int) -> bool:
    """Whether a storm goes on: until its time is over, and as many launches were made and interrupted as the tests ask for, or
    after a minute."""
    took = time.perf_counter() - since
    return took < SECONDS or (took < 60 and (launches <= 200 or interrupts <= 100))


def works() -> None:
    """Fails unless launches give what they should."""
    x = np.zeros(5000, np.int32)
    for _ in range(20):
        add_one[(40,)](x, 5000, 128)
    assert (x == 20).all(), x


def interrupted(launch: Callable[[], None], expected: type[BaseException]) -> None:
    """Fails unless a signal after 0.15 s ends the launch with ``expected`` within a second, and launches work afterwards."""
    works()
    later(0.15)
    start = time.perf_counter()
    try:
        launch()
    except expected:
        assert time.perf_counter() - start < 1.15
    else:
        raise AssertionError("not interrupted")
    works()


def long_grid() -> None:
    x = np.zeros(1, np.int32)
    interrupted(lambda: add_one[(2**31 - 1, 2**31 - 1)](x, 1, 1), KeyboardInterrupt)


def long_grid_with_a_handler() -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        raise Raised

    signal.signal(signal.SIGINT, handler)
    x = np.zeros(1, np.int32)
    interrupted(lambda: add_one[(2**31 - 1,)](x, 1, 1), Raised)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def waiting_program() -> None:
    flag = np.zeros(1, np.int32)
    waits.compile(flag)
    for launcher in (waits[(1,)], waits[(7,)]):
        interrupted(partial(launcher, flag), KeyboardInterrupt)


def entering() -> None:
    """A launch that waits for the end of another's program, which has the atomics of the process to itself."""
    x = np.zeros(16, np.int32)
    counts.compile(x, N=16)
    lock = ctypes.c_int64.from_address(exclusion.ADDRESS)
    again = counts[(1,)].bind(x, N=16)
    for launch in (lambda: counts[(1,)](x, N=16), lambda: counts[(64,)](x, N=16), again):
        lock.value = 2**40
        interrupted(launch, KeyboardInterrupt)
        lock.value = 0
        assert not x.any()
        launch()
        assert (x == 1).all()
        x[:] = 0


def captured() -> None:
    """A captured launch, of a program that waits, and what it does after that."""
    flag, x = np.zeros(1, np.int32), np.zeros(256, np.int32)
    again = waits[(1,)].bind(flag)
    for _ in range(2):
        interrupted(again, KeyboardInterrupt)
        flag[0] = 1
        again()
        flag[0] = 0
    grid = add_one[(1,)].bind(x, 256, 256)
    later(0.2)
    launches = 0
    try:
        while True:
            grid()
            launches += 1
    except KeyboardInterrupt:
        pass
    assert set(x) <= {launches, launches + 1}, (launches, x)
    before = int(x[0])
    grid()
    assert (x == before + 1).all(), x


def loop_over_tiles() -> None:
    x = np.zeros(256, np.float32)
    long_tiles.compile(x, 2**31 - 1, 256)
    interrupted(lambda: long_tiles[(1,)](x, 2**31 - 1, 256), KeyboardInterrupt)


def handler_that_returns() -> None:
    """Handlers run soon during a launch that takes a second, and it still runs every program once. So does a captured one."""
    arrivals: list[float] = []
    signal.signal(signal.SIGINT, lambda number, frame: arrivals.append(time.perf_counter()))
    x = np.zeros(1, np.int32)
    counts = np.zeros(8, np.int32)
    count_programs.compile(counts, x, 1)
    programs = 2_000
    steps = 1
    while True:  # until a launch takes 0.9 s on this machine
        counts[:] = 0
        start = time.perf_counter()
        count_programs[(programs,)](counts, x, steps)
        took = time.perf_counter() - start
        if took > 0.9:
            break
        steps = int(steps * max(2, min(50, 1 / took)))
    again = count_programs[(programs,)].bind(counts, x, steps)
    for launch in (lambda: count_programs[(programs,)](counts, x, steps), again):
        arrivals.clear()
        for delay in (0.2, 0.3, 0.4):
            later(delay)
        counts[:] = 0
        start = time.perf_counter()
        launch()
        end = time.perf_counter()
        assert counts.tolist() == [programs // 8] * 8, counts
        assert len(arrivals) == 3, arrivals
        assert max(arrivals) < end - 0.1, (arrivals, start, end)  # the last signal is sent halfway


@weft.jit
def count_programs(counts: Any, x: Any, steps: Any) -> None:
    total = 0
    for i in range(steps):
        total = total * 3 ^ i
    tl.atomic_add(counts + tl.program_id(0) % 8, 1)
    tl.store(x, total)


def other_threads() -> None:
    """A launch of another thread goes on while the main thread is interrupted."""
    failures: list[str] = []
    stop = threading.Event()
    rounds = 0

    def work() -> None:
        nonlocal rounds
        x = np.zeros(5000, np.int32)
        while not stop.is_set():
            add_one[(40,)](x, 5000, 128)
            rounds += 1
            if not (x == rounds).all():
                failures.append(f"round {rounds}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        waiting_program()
    finally:
        stop.set()
        thread.join()
    assert not failures, failures
    assert rounds > 20


def storm() -> None:
    """The parent sends SIGINT at random moments, and the handler raises while a launch runs."""
    armed = False

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    x = np.zeros(20_000, np.int32)
    add_one[(160,)](x, 20_000, 128)  # compiled: on a busy machine that takes as long as the storm
    interrupts = launches = 0
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    start = time.perf_counter()
    while storms(start, launches, interrupts):
        share(launches)
        x[:] = 0
        try:
            armed = True
            add_one[(160,)](x, 20_000, 128)
            armed = False
        except KeyboardInterrupt:
            interrupts += 1
            x[:] = 5
            add_one[(160,)](x, 20_000, 128)
            assert (x == 6).all(), np.unique(x)
        else:
            assert (x == 1).all(), np.unique(x)
        launches += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    works()
    sys.stdout.write(f"{launches} {interrupts}\n")


def hail() -> None:
    """A timer's handler raises every few microseconds to milliseconds, wherever the main thread is: up to two times a launch,
    since a third could come before the handler of the second has begun."""
    left, over = 0, False
    rng = random.Random(0)

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal left
        if over:  # a handler that is late must not set the timer again: Python's end would be interrupted
            return
        signal.setitimer(signal.ITIMER_REAL, rng.choice((3e-5, 1e-4, 3e-4, 1e-3)) * rng.random())
        if left:
            left -= 1
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, handler)
    x = np.zeros(200_000, np.int32)
    add_one[(13,)](x, 200_000, 16384)
    interrupts = launches = 0
    signal.setitimer(signal.ITIMER_REAL, 1e-4)
    start = time.perf_counter()
    while storms(start, launches, interrupts):
        share(launches)
        try:
            try:
                left = 2
                add_one[(13,)](x, 200_000, 16384)
                left = 0
            except KeyboardInterrupt:
                left = 0
                interrupts += 1
        except KeyboardInterrupt:  # between the two lines above
            left = 0
        x[:] = 5
        add_one[(13,)](x, 200_000, 16384)
        assert (x == 6).all(), np.unique(x)
        launches += 1
    over = True
    signal.setitimer(signal.ITIMER_REAL, 0)
    works()
    sys.stdout.write(f"{launches} {interrupts}\n")


if __name__ == "__main__":
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell starts what runs in the background with SIGINT ignored
    for name in sys.argv[1:]:
        globals()[name]()
        sys.stdout.write(f"{name} ok\n")
