"""Signals during launches: what they stop, how soon, and that everything works afterwards."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
from sampling import at_night
from weft import language as tl
from weft.codegen import kernel as abi
from weft.runtime import executor
from weft.runtime.workspace import ARGUMENTS, HEAD, LAUNCH, PROGRAMS, RECORD, THREAD, Workspace

pytestmark = [pytest.mark.jit, pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")]

SCENARIOS = Path(__file__).with_name("interrupted.py")
LIMIT = 100
"""Seconds for a process that takes 2 to 10 alone: one that reaches it hangs."""


def start(threads: int, *scenarios: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "WEFT_NUM_THREADS": str(threads), **({"STORM": "2"} if at_night() else {})}
    command = [sys.executable, str(SCENARIOS), *scenarios]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What the process wrote, which must end well."""
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"hangs: {process.communicate()}")
    assert (process.returncode, err) == (0, "")
    return out


@pytest.mark.parametrize("threads", [1, 3])
def test_a_launch_is_interrupted(threads: int) -> None:
    names = [
        "long_grid",
        "waiting_program",
        "captured",
        "entering",
        "loop_over_tiles",
        "long_grid_with_a_handler",
        "handler_that_returns",
    ]
    assert finish(start(threads, *names)).splitlines() == [f"{name} ok" for name in names]


def test_launches_of_other_threads_go_on() -> None:
    assert finish(start(2, "other_threads")) == "other_threads ok\n"


def test_a_storm_of_signals() -> None:
    """Several hundred SIGINTs at random moments of thousands of launches."""
    process = start(3, "storm")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    rng = random.Random(1)
    while process.poll() is None:
        time.sleep(rng.random() * 0.006)
        process.send_signal(signal.SIGINT)
    counts, ok = finish(process).splitlines()
    launches, interrupts = map(int, counts.split())
    assert ok == "storm ok"
    assert launches > 200
    assert interrupts > 100


def test_a_hail_of_exceptions_in_the_main_thread() -> None:
    counts, ok = finish(start(3, "hail")).splitlines()
    launches, interrupts = map(int, counts.split())
    assert ok == "hail ok"
    assert launches > 200
    assert interrupts > 100


@weft.jit
def count(counts: Any, B: tl.constexpr) -> None:
    """No atomic, which would make a thread claim one program at a time, and no neighbours that run together."""
    own = counts + tl.program_id(0) * B
    tl.store(own, tl.load(own) + 1)


def counted_by(chunk: int) -> tuple[Workspace, NDArray[np.int32], Callable[[], int]]:
    """A workspace, the counts of 10 programs, and the call of native code that claims ``chunk`` programs at a time."""
    counts = np.zeros(20, np.int32)
    executable = count.compile(counts, 2).executable
    space = Workspace()
    struct.pack_into(f"{HEAD}Q", space.block, space.offset, 0, 10, chunk, 10, 1, 1, counts.ctypes.data)

    def call() -> int:
        return int(executor.ENTRY(executable.address)(space.launch, space.thread))

    return space, counts[::2], call


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_a_paused_thread_goes_on_where_it_was(chunk: int) -> None:
    """Asked before each call, native code returns after each program, and runs every program once."""
    space, counts, call = counted_by(chunk)
    statuses: list[int] = []
    while not statuses or statuses[-1] == executor.PAUSED:
        space.pause()
        statuses.append(call())
        assert counts.tolist() == [1] * min(10, len(statuses)) + [0] * (10 - len(statuses))
        asked = ctypes.c_int64.from_address(space.thread + 8 * abi.PAUSE).value
        assert asked == (statuses[-1] == executor.DONE)  # forgotten once obeyed
    assert statuses == [executor.PAUSED] * 10 + [executor.DONE]


def test_a_thread_that_was_paused_once_runs_no_program_twice() -> None:
    """What it had claimed it runs in the next call, and in no later one."""
    space, counts, call = counted_by(4)
    space.pause()
    for status, ran in ((executor.PAUSED, 1), (executor.DONE, 10), (executor.DONE, 10)):
        assert call() == status
        assert counts.tolist() == [1] * ran + [0] * (10 - ran)


def test_a_stopped_launch_runs_no_further_program() -> None:
    space, counts, call = counted_by(5)
    space.pause()
    assert call() == executor.PAUSED
    space.stop()
    assert call() == executor.STOPPED  # after a program of those that it had claimed
    assert counts.tolist() == [1, 1] + [0] * 8
    assert call() == executor.STOPPED  # before it claims others
    assert counts.tolist() == [1, 1] + [0] * 8


def test_the_runtime_knows_what_native_code_returns() -> None:
    names = ("DONE", "FAULT", "STOPPED", "PAUSED")
    assert [getattr(executor, name) for name in names] == [getattr(abi, name) for name in names]
    space = Workspace()
    assert space.stop_word - space.launch == 8 * (abi.RECORD + abi.STOP)


def test_the_runtime_packs_a_launch_as_native_code_reads_it() -> None:
    """Each word of the two blocks, by the table of the interface. What no row names is 0."""
    space = Workspace()
    assert (space.address % 64, space.thread - space.address, space.launch - space.address) == (0, THREAD, LAUNCH)
    assert (RECORD - LAUNCH, PROGRAMS - LAUNCH, ARGUMENTS - LAUNCH) == (8 * abi.RECORD, 8 * abi.TOTAL, 8 * abi.SLOTS)
    ctypes.memset(space.address, 255, ARGUMENTS + 16)
    struct.pack_into(f"{HEAD}qq", space.block, space.offset, 11, 24, 5, 2, 3, 4, 70, 80)
    thread = (ctypes.c_int64 * 5).from_address(space.thread)
    launch = (ctypes.c_int64 * (abi.SLOTS + 2)).from_address(space.launch)
    assert list(thread) == [{abi.SCRATCH: 11}.get(i, 0) for i in range(5)]
    space.begin_at(3)
    space.share_out(12, 34)
    assert list(thread) == [{abi.SCRATCH: 11, abi.SHARE: 3}.get(i, 0) for i in range(5)]
    named = {
        abi.SHARES: 12,
        abi.CLAIMS: 34,
        abi.TOTAL: 24,
        abi.CHUNK: 5,
        **dict(zip(abi.SIZES, (2, 3, 4), strict=True)),
        abi.SLOTS: 70,
        abi.SLOTS + 1: 80,
    }
    assert list(launch) == [named.get(i, 0) for i in range(abi.SLOTS + 2)]
    space.share_out(abi.MOST_SHARES + 1, 34)
    assert launch[abi.SHARES] == abi.MOST_SHARES == abi.RECORD
