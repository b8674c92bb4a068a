"""A grid spread over threads.

Worker threads start once and wait on one queue. A launch is a `Job`: native code that claims programs from an atomic
counter until none is left, so whoever runs it is done when the grid is, and any number of threads may run it. The
caller offers the job to the workers, runs it too, and then closes it; it waits only for those that took part. A
worker that wakes up late finds the job closed and costs the caller nothing: small grids need no threshold to be
cheap.

The interpreter lock is free while native code runs (ctypes). A forked child starts with no workers and makes its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import Final, TypeAlias

ENTRY: Final = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_void_p,
)
"""The kernel's C signature: args, scratch, next, total, chunk, nx, ny, nz, fault -> status."""

Entry: TypeAlias = Callable[[int, int, int, int, int, int, int, int, int], int]

_CHUNKS_PER_THREAD: Final = 8
"""Claims a thread makes when programs take equally long: enough to level out unequal ones, few enough to be free."""

ARGUMENTS: Final = 128
"""Byte offset of the arguments in a workspace: the counter and the fault record have a cache line each before them."""
FAULT: Final = 64
_ALIGNMENT: Final = 64


class Workspace:
    """Memory for one native call: the counter, the fault record and ``slots`` arguments in ``block``, which a launch
    packs at ``offset``; and scratch memory, grown on demand. All 64-byte aligned."""

    __slots__ = ("block", "offset", "address", "slots", "_scratch", "_scratch_address", "_scratch_size")

    def __init__(self, slots: int = 64):
        self.slots = slots
        self.block = ctypes.create_string_buffer(ARGUMENTS + 8 * slots + _ALIGNMENT)
        self.offset = -ctypes.addressof(self.block) % _ALIGNMENT
        self.address = ctypes.addressof(self.block) + self.offset
        self._scratch = ctypes.create_string_buffer(_ALIGNMENT)
        self._scratch_address = 0
        self._scratch_size = 0

    def scratch(self, size: int) -> int:
        """The address of ``size`` bytes; 0 for none. Valid until a larger size is asked for."""
        if size > self._scratch_size:
            self._scratch = (ctypes.c_char * (size + _ALIGNMENT))()
            self._scratch_address = (ctypes.addressof(self._scratch) + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
            self._scratch_size = size
        return self._scratch_address

    def fault(self) -> tuple[int, ...]:
        """The fault record: claimed, site, three program ids, address, and two reserved."""
        return tuple((ctypes.c_int64 * 8).from_address(self.address + FAULT))

    def exhaust(self, total: int) -> None:
        """Makes the counter say that no program is left."""
        ctypes.c_int64.from_address(self.address).value = total


class _Workspaces(threading.local):
    """This thread's idle workspaces: one, or more where launches nest (signal handlers, finalisers)."""

    def __init__(self) -> None:
        self.idle: list[Workspace] = []


_workspaces: Final = _Workspaces()


def take(slots: int) -> Workspace:
    """A workspace of this thread with room for ``slots`` arguments; `give` it back."""
    idle = _workspaces.idle
    if idle and idle[-1].slots >= slots:
        return idle.pop()
    return Workspace(max(64, slots))


def give(workspace: Workspace) -> None:
    """Ends the use of a workspace taken by this thread."""
    _workspaces.idle.append(workspace)


class Job:
    """One launch, run by the caller and by any workers that come in time. ``status`` is the largest that native code
    returned."""

    __slots__ = (
        "_active",
        "_caller",
        "_chunk",
        "_closed",
        "_done",
        "_entry",
        "_grid",
        "_lock",
        "_scratch",
        "_total",
        "error",
        "status",
    )

    def __init__(self, entry: Entry, caller: Workspace, scratch: int, grid: tuple[int, int, int], chunk: int):
        self._entry = entry
        self._caller = caller
        self._scratch = scratch
        self._grid = grid
        self._total = grid[0] * grid[1] * grid[2]
        self._chunk = chunk
        self._lock = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()
        self._active = 0
        self._closed = False
        self.status = 0
        self.error: BaseException | None = None

    def _call(self, workspace: Workspace) -> None:
        base = self._caller.address
        status = self._entry(
            base + ARGUMENTS,
            workspace.scratch(self._scratch),
            base,
            self._total,
            self._chunk,
            *self._grid,
            base + FAULT,
        )
        self.status = max(self.status, status)

    def help(self, workspace: Workspace) -> None:
        """A worker's part: nothing once the caller has closed the job. Never raises."""
        with self._lock:
            if self._closed:
                return
            self._active += 1
        try:
            self._call(workspace)
        except BaseException as error:  # handed to the caller, which raises it
            self.error = error
            self._caller.exhaust(self._total)
        with self._lock:
            self._active -= 1
            last = self._closed and self._active == 0
        if last:
            self._done.release()

    def run(self) -> None:
        """The caller's part: returns when all programs are done; raises what a worker raised, after the others have
        finished."""
        try:
            self._call(self._caller)
        except BaseException:
            self._caller.exhaust(self._total)
            self._close()
            raise
        self._close()
        if self.error is not None:
            raise self.error

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            waiting = self._active > 0
        interruption: BaseException | None = None
        while waiting:
            try:
                self._done.acquire()
                waiting = False
            except BaseException as error:  # Ctrl-C: native code still uses our memory, so stop it and wait
                interruption = error
                self._caller.exhaust(self._total)
        if interruption is not None:
            raise interruption


class Pool:
    """``threads`` threads including the caller; the others start with the first launch that can use them."""

    def __init__(self, threads: int):
        self.threads = threads
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0

    def run(
        self, entry: Entry, workspace: Workspace, scratch: int, grid: tuple[int, int, int], threads: int | None = None
    ) -> int:
        """Runs the grid; the arguments are packed in ``workspace``. Returns native code's status."""
        total = grid[0] * grid[1] * grid[2]
        width = min(self.threads if threads is None else threads, total)
        if width <= 1:
            base = workspace.address
            return entry(base + ARGUMENTS, workspace.scratch(scratch), base, total, total, *grid, base + FAULT)
        job = Job(entry, workspace, scratch, grid, max(1, total // (width * _CHUNKS_PER_THREAD)))
        if self._started < self.threads - 1:
            self._start()
        for _ in range(width - 1):
            self._jobs.put(job)
        job.run()
        return job.status

    def _start(self) -> None:
        with self._lock:
            while self._started < self.threads - 1:
                self._started += 1
                threading.Thread(target=self._work, name=f"weft-{self._started}", daemon=True).start()

    def _work(self) -> None:
        workspace = Workspace()
        while True:
            self._jobs.get().help(workspace)


def thread_count() -> int:
    """``WEFT_NUM_THREADS`` where set, else the CPUs this process may run on; `ValueError` for anything but a positive
    integer."""
    text = os.environ.get("WEFT_NUM_THREADS", "")
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"WEFT_NUM_THREADS: expected a positive integer, found '{text}'")
    return int(text)


@cache
def pool() -> Pool:
    """The process's pool."""
    return Pool(thread_count())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)
