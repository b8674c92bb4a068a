"""A grid spread over threads.

Worker threads start once and wait on one queue. A launch is a `Job`: native code that claims programs from atomic
counters until none is left, so whoever runs it is done when the grid is, and any number of threads may run it. Each thread
begins with a share of its own, the same in each launch: of a matrix of 1 MiB the caches of two cores then keep half each. The
caller offers the job to the workers, runs it too, and then closes it; it waits only for those that took part. A
worker that wakes up late finds the job closed, and takes all others from the queue that were put there meanwhile. What
waking costs the caller itself is 3 us where a core is idle and much more where none is, so grids that are known to take
less are not offered (`Executable`). For a moment after a launch workers do
not sleep: they look for the next one in native code (`weft.runtime.spinning`), and are offered it first.

The interpreter lock is free while native code runs (ctypes). A forked child starts with no workers and makes its own.

Interrupts
----------
A signal handler of Python's may raise between any two bytecodes of the main thread, so `Pool.run` follows three rules:

1. *No lock is held.* What threads tell each other is in lists and flags, each changed by one operation that the interpreter
   does not divide. Waiting is on a state; a lock only shortens it, and every wait has a time limit.
2. *The caller leaves last.* Whatever is raised, the launch is stopped, and the caller waits for the workers that took part.
3. *The job owns its memory.* Should an exception break rule 2, which takes two at one place, the workers still use memory
   that the job keeps alive. The pool keeps jobs whose workers look in native code.

A handler runs only when the main thread executes Python; `weft.runtime.watch` sees to that.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
import itertools
import os
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from weft.runtime.shares import claims
from weft.runtime.spinning import FEW, SPIN, WAITS, Boxes
from weft.runtime.watch import Watch, release
from weft.runtime.workspace import Workspace

ENTRY: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
"""The kernel's C signature: launch, thread -> status."""

Entry: TypeAlias = Callable[[int, int], int]

DONE: Final = 0
FAULT: Final = 1
STOPPED: Final = 2
PAUSED: Final = 3
"""What an entry point returns; `weft.codegen.kernel` says when. A test compares the two."""

CHUNKS_PER_THREAD: Final = 8
"""Claims a thread makes when programs take equally long: enough to level out unequal ones, few enough to be free. A test compares
it with code generation's."""

_worked: Final = time.thread_time_ns if time.get_clock_info("thread_time").resolution < 1e-5 else time.perf_counter_ns
"""Nanoseconds that this thread has worked, where the system counts finely. Back from native code it may wait for the interpreter
lock, which workers hold, for much longer than small programs take."""

_SHARING: Final = 2_700
_WITH_EACH: Final = 300
"""Nanoseconds that `Boxes.share` takes where programs take none, and those for each worker. Its time is the clock's: the
workers that it runs with do not hold the interpreter lock, and asking the system how long a thread has worked takes 0.4 us."""

_WAIT: Final = 0.1
"""Seconds after which a wait looks again, in case that a wake-up was lost to an interrupt."""

_LOOKS: Final = 20
"""Waits for workers that look (`Boxes.collect`), some 50 us each, before the caller sleeps between them, for `_NAP` seconds."""

_NAP: Final = 5e-4


WORDS: Final = ("ended", "workers", "boxes", "rounds", "claims")
"""The words of a pool that native code reads and writes (`weft.runtime.direct_code`): when the last launch ended that threads
could share, what it shares a launch with (`Boxes.native`), and what claims then (`weft.runtime.shares`). Before workers were
started these are zeros."""


class Job:
    """One launch, run by the caller and by any workers that come in time.

    ``kept`` is what owns the memory that native code uses. ``statuses`` holds what native code returned to each worker
    that took part and has left. ``posted`` says whether workers that look in native code may have it.
    """

    __slots__ = (
        "_done",
        "_entry",
        "_joined",
        "caller",
        "closed",
        "error",
        "kept",
        "posted",
        "scratch",
        "statuses",
    )

    def __init__(self, entry: Entry, caller: Workspace, scratch: int, kept: object):
        self._entry = entry
        self.caller = caller
        self.scratch = scratch
        self._done = _thread.allocate_lock()
        self._done.acquire()
        self._joined: list[None] = []
        self.closed = False
        self.kept = kept
        self.posted = False
        self.statuses: list[int] = []
        self.error: BaseException | None = None

    def help(self, workspace: Workspace) -> None:
        """A worker's part: nothing once the caller has closed the job. Never raises."""
        self._joined.append(None)
        status = DONE
        if not self.closed:  # who is in `_joined` before that is waited for
            try:
                workspace.enter(self.scratch)
                status = PAUSED
                while status == PAUSED:  # while it waits for another launch (`weft.codegen.cpu.exclusive`)
                    status = self._entry(self.caller.launch, workspace.thread)
            except BaseException as error:  # handed to the caller, which raises it
                self.error = error
                self.stop()
        self.statuses.append(status)
        if self.closed:
            release(self._done)

    def stop(self) -> None:
        """Stops the launch."""
        self.caller.stop()

    def settle(self) -> None:
        """Closes the job, and returns once all workers that took part have left."""
        self.closed = True
        while len(self.statuses) < len(self._joined):
            self._done.acquire(timeout=_WAIT)


class Pool:
    """``threads`` threads including the caller; the others start with the first launch that can use them. They are fewer where
    the system refuses more. ``ended`` is when the last launch ended that they could use, by `time.perf_counter_ns`."""

    def __init__(self, threads: int):
        self.threads = threads
        self.watch = Watch()
        self._words = (ctypes.c_int64 * len(WORDS))(-SPIN)
        self.address_of_words = ctypes.addressof(self._words)
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._numbers = itertools.count()
        self._boxes: Boxes | None = None
        self._made: dict[int, Boxes] = {}
        """The boxes, under 0, once workers are started. Two launches may make some: `setdefault` takes one's in one step."""
        self._posted: dict[int, Job] = {}

    @property
    def ended(self) -> int:
        return self._words[0]

    @ended.setter
    def ended(self, now: int) -> None:
        self._words[0] = now

    def is_busy(self, now: int) -> bool:
        """Whether launches come one after the other: workers look for the next one, or would if they had been woken for the
        last."""
        return now - self.ended < SPIN

    def share(self, grid: tuple[int, int, int], threads: int | None = None) -> tuple[int, int, int]:
        """How a grid that is not empty is run: the number of programs, how many of them a thread claims at a time, and the
        number of threads, at most ``threads``."""
        total = grid[0] * grid[1] * grid[2]
        width = min(self.threads if threads is None else threads, total)
        return total, (total if width <= 1 else max(1, total // (width * CHUNKS_PER_THREAD))), width

    def run(
        self, entry: Entry, workspace: Workspace, scratch: int, width: int, kept: object = None, address: int = 0
    ) -> int:
        """Runs the launch that is packed in ``workspace`` on ``width`` threads. Returns `FAULT` where a checked access failed,
        else `DONE`. ``address`` is that of ``entry``, where workers may call it without Python.

        Raises what a signal handler raises, after the launch has stopped. ``kept`` is held until no thread runs the grid.
        """
        if width <= 1:
            return self.alone(entry, workspace)
        job = Job(entry, workspace, scratch, kept)
        # The code below must not gain a call or a jump outside of a `try`: CPython runs signal handlers there.
        status = DONE
        failure: BaseException | None = None
        try:
            status = self._share(job, width - 1, address)
            if status == DONE:
                return DONE
            if status == FEW:
                workspace.taken = 0
                self._offer(job, width - 1, address)
                status = PAUSED
            if status == WAITS:
                status = DONE
            elif status == PAUSED:
                began = _worked()
                status = self.lead(entry, workspace)
                workspace.taken += _worked() - began
        except BaseException as error:
            failure = error
        try:
            while True:
                try:
                    if failure is not None:
                        job.stop()
                    self._settle(job)
                    break
                except BaseException as error:
                    failure = error
        except BaseException as error:  # in the jump back to `while`
            failure = error
            while True:
                try:
                    job.stop()
                    self._settle(job)
                    break
                except BaseException as again:
                    failure = again
        job.kept = None  # a worker that is busy elsewhere takes the job from the queue much later
        if failure is not None:
            raise failure
        if job.error is not None:
            raise job.error
        outcomes = workspace.outcomes if job.posted else 0
        return _result([status, *job.statuses, *_statuses(outcomes)])

    def rejoin(self, entry: Entry, workspace: Workspace, status: int) -> int:
        """Ends a launch as `run`, which native code shared with workers that looked, and gave ``status`` (`Boxes.share`). Where
        this raises, native code stops the launch and waits."""
        if status == PAUSED:
            status = self.lead(entry, workspace)
        self._collect(workspace)
        self.ended = time.perf_counter_ns()
        own = DONE if status == WAITS else status
        return _result([own, *_statuses(workspace.outcomes)])

    def alone(self, entry: Entry, workspace: Workspace) -> int:
        """`run` in this thread."""
        status = self.lead(entry, workspace)
        return status if status == DONE else _result([status])

    def lead(self, entry: Entry, caller: Workspace, once: bool = False) -> int:
        """The caller's part: runs programs until none is left, and gives native code's status; ``once`` returns where native code
        pauses. Raises what a signal handler raises."""
        launch, thread = caller.launch, caller.thread
        status = PAUSED
        if not caller.main:
            while status == PAUSED:
                status = entry(launch, thread)
                if once:
                    break
            return status
        watch = self.watch
        handler = watch.handler
        while status == PAUSED:
            watch.leading = caller
            if watch.asleep:
                watch.wake()
            status = entry(launch, thread)
            watch.leading = None
            if handler.installed:
                watch.disarm()
            if once:
                break
        return status

    def _share(self, job: Job, helpers: int, address: int) -> int:
        """Runs a launch together with workers that look, if enough do (`Boxes.share`): `DONE` where it has ended."""
        boxes = self._boxes
        if not address or boxes is None:
            return FEW
        job.posted = True
        self._posted[id(job)] = job
        caller = job.caller
        began = time.perf_counter_ns()
        status = self.lead(partial(boxes.share, helpers, address, job.scratch, caller), caller, once=True)
        caller.taken = max(time.perf_counter_ns() - began - _SHARING - _WITH_EACH * helpers, 0)
        if status == DONE:
            del self._posted[id(job)]
        return status

    def _offer(self, job: Job, helpers: int, address: int) -> None:
        boxes = self._boxes
        if boxes is None:
            boxes = self._start()
        if address:
            job.posted = True
            self._posted[id(job)] = job
            helpers -= boxes.post(helpers, address, job.caller, job.scratch)
        for _ in range(helpers):
            self._jobs.put(job)

    def _start(self) -> Boxes:
        """Starts the workers, or as many as the system does. Two launches at once both start them, with the boxes that one of
        them has made, and so does the next one where a signal ended this here."""
        made, claimed_by = Boxes(self.threads - 1), claims()
        boxes = self._made.setdefault(0, made)
        for started in range(self.threads - 1):
            try:
                _thread.start_new_thread(self._work, (boxes,))
            except RuntimeError:
                self.threads = started + 1
                break
        self._words[1:] = *boxes.native, claimed_by
        self._boxes = boxes
        return boxes

    def _settle(self, job: Job) -> None:
        """Closes a job, and returns once all workers that took part have left."""
        job.settle()
        if job.posted:
            self._collect(job.caller)
        self._posted.pop(id(job), None)

    def _collect(self, caller: Workspace) -> None:
        """Returns once all workers that looked for a launch have left it."""
        boxes, looks = self._boxes, 0
        while boxes is not None and boxes.collect(caller):
            looks += 1
            if looks > _LOOKS:
                time.sleep(_NAP)

    def leave(self) -> None:
        """Returns when the workers sleep, or still run a launch that the end of the process cut off."""
        if self._boxes is not None:
            self._boxes.leave()

    def _work(self, boxes: Boxes) -> None:
        number = next(self._numbers)
        if number >= self.threads - 1:  # started twice, or not wanted
            return
        workspace = Workspace()
        workspace.begin_at(number + 1)
        while True:
            self._jobs.get().help(workspace)
            for _ in range(self._jobs.qsize()):  # not those that come meanwhile: else it would never look
                with contextlib.suppress(Empty):
                    self._jobs.get_nowait().help(workspace)
            boxes.serve(number, workspace)


def finish(entry: Entry, workspace: Workspace, status: int) -> int:
    """What a launch without a watch ends with, after native code returned ``status``. A watch that was late for the launch
    before may have paused or stopped this one in its place."""
    while status == PAUSED:
        status = entry(workspace.launch, workspace.thread)
    return _result([status])


def _statuses(outcomes: int) -> list[int]:
    """What of `Workspace.outcomes` is not `DONE`."""
    return [one for one in (FAULT, STOPPED) if outcomes >> one & 1]


def _result(statuses: Sequence[int]) -> int:
    """What a launch ended with, from what native code returned to each thread."""
    if FAULT in statuses:
        return FAULT
    if STOPPED in statuses:
        raise KeyboardInterrupt  # the watch stopped it for a signal whose handler did not raise
    return DONE


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


@atexit.register
def _leave() -> None:
    """Waits until no worker looks in native code, which the end of the process unloads."""
    if pool.cache_info().currsize:
        pool().leave()
