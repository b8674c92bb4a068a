"""Worker threads that wait in native code for the next launch, for a moment after the last one.

A worker that sleeps takes 3 us to wake where a core is idle, 50 us to 1 ms in a virtual machine, and the interpreter lock
besides. So small launches in a row, each of some 10 to 100 us, gained nothing from other threads. After a launch a worker looks
at its *box* for another `SPIN` nanoseconds without the interpreter lock, and runs what a launch posts there. Then it sleeps as
before (`weft.runtime.executor`). OpenMP's runtimes do the same, for longer. Where as many look as a launch can use, it is one
call of native code (`Boxes.share`).

A box is a cache line:

| word | holds |
|---|---|
| 0 | the state |
| 1, 2 | the kernel's entry point, and the launch that it runs (`weft.codegen.kernel`) |
| 3 | the launch's *ticket* |
| 4, 5 | the worker's thread words, and how many bytes of scratch memory they have |
| 6 | how many bytes a launch needs, where these are too few |

| state | means | who changes it, to what |
|---|---|---|
| `AWAY` | the worker does not look | the worker, to `READY` |
| `READY` | the worker looks | the worker, to `AWAY`; a launch, to `CLAIMED` |
| `CLAIMED` | a launch reads or writes the box | that launch, to `READY`, `POSTED` or `SHORT` |
| `SHORT` | the worker has too little scratch memory, and gets more | the worker, to `READY`, or to `AWAY` where there is none |
| `POSTED` | there is a launch to run | the worker, to `RUNNING`; a launch that has ended, to `CLAIMED` |
| `RUNNING` | the worker runs it | the worker, to `READY` |

A ticket is two words of the launch: how many workers have yet to leave it, and a bit for each status that the kernel returned to
one. A worker touches neither ticket nor launch after it has left. Each change of state is one atomic operation, so any number
of threads may launch at once.

The code is LLVM IR, compiled once for a machine (`weft.runtime.helpers`), when the first kernel is: a process whose kernels are
on disk finds it there, and does not load the compiler. Where it is not, workers sleep.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from weft.runtime import helpers
from weft.runtime.workspace import THREAD, TICKET, Workspace
from weft.target import architecture, host

SPIN: Final = 1_000_000
"""Nanoseconds for which a worker looks for the next launch: as long as waking takes in a virtual machine whose host gives the
core to others meanwhile. With 100,000 most series of launches never found a worker looking (docs/benchmarks/threads.md)."""

_LEAVING: Final = 20
"""`Boxes.collect` waits for this part of `SPIN`, and may be interrupted between its waits."""

AWAY, READY, CLAIMED, POSTED, RUNNING, SHORT = range(6)
"""The states of a box."""

FEW, WAITS = -1, 4
"""What `Boxes.share` gives besides statuses: too few workers look, and nothing was run; or the caller's part is done, and there
is a worker to wait for, or a status to learn."""

SYMBOL: Final = "weft_workers"
_LINE: Final = 64
_NUMBERS: Final = {
    "AWAY": AWAY, "READY": READY, "CLAIMED": CLAIMED, "POSTED": POSTED, "RUNNING": RUNNING, "SHORT": SHORT,
    "FEW": FEW, "WAITS": WAITS, "line": _LINE, "thread": THREAD - TICKET,
}  # fmt: skip
"""What the code knows of this module and of workspaces."""
_SAMPLE: Final = 200
_SAMPLES: Final = 5
"""Looks that are timed together, and how often: the least time says how many of them take a time. One sample alone was up to five
times as long, where the machine gave the core away. Workers then looked for a fifth of `SPIN` as long as the process lived."""

_PAUSES: Final = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
"""What a core does between two looks, and its declaration, by architecture: it leaves the memory, and the core's other thread,
alone for some cycles."""

_TEXT: Final = """
{declaration}

define i64 @{symbol}(i64 %which, ptr %a, i64 %b, ptr %c, ptr %d, i64 %e, ptr %f, i64 %g) {{
entry:
  switch i64 %which, label %serves [ i64 1, label %posts
                                     i64 2, label %collects
                                     i64 3, label %shares ]
serves:
  %served = call i64 @serve(ptr %a, i64 %b)
  ret i64 %served
posts:
  %posted = call i64 @post(ptr %a, i64 %b, ptr %c, ptr %d, i64 %e, ptr %f)
  ret i64 %posted
collects:
  %left = call i64 @collect(ptr %a, i64 %g, ptr %f)
  ret i64 %left
shares:
  %shared = call i64 @share(ptr %a, i64 %b, ptr %c, ptr %d, i64 %e, ptr %f, i64 %g)
  ret i64 %shared
}}

; Looks at a box %rounds times after each launch: 0 when the worker is away again, or how many bytes of scratch memory it needs.
define internal i64 @serve(ptr %box, i64 %rounds) {{
entry:
  store atomic i64 {READY}, ptr %box release, align 8
  br label %look
look:
  %left = phi i64 [ %rounds, %entry ], [ %less, %idle ], [ 1, %leave ], [ %rounds, %left.launch ]
  %state = load atomic i64, ptr %box acquire, align 8
  switch i64 %state, label %idle [ i64 {POSTED}, label %take
                                   i64 {SHORT}, label %short ]
short:
  %needed.p = getelementptr i64, ptr %box, i64 6
  %needed = load i64, ptr %needed.p, align 8
  ret i64 %needed
idle:
  {pause}
  %less = sub i64 %left, 1
  %more = icmp sgt i64 %less, 0
  br i1 %more, label %look, label %leave
leave:
  %gone.pair = cmpxchg ptr %box, i64 {READY}, i64 {AWAY} acq_rel monotonic
  %gone = extractvalue {{ i64, i1 }} %gone.pair, 1
  br i1 %gone, label %away, label %look
away:
  ret i64 0
take:
  %took.pair = cmpxchg ptr %box, i64 {POSTED}, i64 {RUNNING} acq_rel monotonic
  %took = extractvalue {{ i64, i1 }} %took.pair, 1
  br i1 %took, label %run, label %idle
run:
  %entry.p = getelementptr i64, ptr %box, i64 1
  %kernel = load ptr, ptr %entry.p, align 8
  %launch.p = getelementptr i64, ptr %box, i64 2
  %launch = load ptr, ptr %launch.p, align 8
  %ticket.p = getelementptr i64, ptr %box, i64 3
  %ticket = load atomic ptr, ptr %ticket.p monotonic, align 8
  %thread.p = getelementptr i64, ptr %box, i64 4
  %thread = load ptr, ptr %thread.p, align 8
  store <3 x i64> zeroinitializer, ptr %thread, align 8
  br label %call
call:
  %status = call i32 %kernel(ptr %launch, ptr %thread)
  %paused = icmp eq i32 %status, {PAUSED}
  br i1 %paused, label %call, label %left.launch
left.launch:
  %number = zext i32 %status to i64
  %bit = shl i64 1, %number
  %statuses = getelementptr i64, ptr %ticket, i64 1
  %or = atomicrmw or ptr %statuses, i64 %bit monotonic, align 8
  store atomic i64 {READY}, ptr %box release, align 8
  %sub = atomicrmw sub ptr %ticket, i64 1 release, align 8
  br label %look
}}

; Posts a launch to %wanted workers that look and have enough scratch memory; to how many it did. Sends others for more memory.
define internal i64 @post(ptr %boxes, i64 %wanted, ptr %kernel, ptr %launch, i64 %scratch, ptr %ticket) {{
entry:
  %count = load i64, ptr %boxes, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.more, %skip ]
  %done = phi i64 [ 0, %entry ], [ %done.now, %skip ]
  %some.left = icmp ult i64 %i, %count
  %some.wanted = icmp ult i64 %done, %wanted
  %on = and i1 %some.left, %some.wanted
  br i1 %on, label %try, label %end
end:
  ret i64 %done
try:
  %line = add i64 %i, 1
  %at = mul i64 %line, {line}
  %box = getelementptr i8, ptr %boxes, i64 %at
  %state = load atomic i64, ptr %box monotonic, align 8
  %is.ready = icmp eq i64 %state, {READY}
  br i1 %is.ready, label %claim, label %skip
claim:
  %pair = cmpxchg ptr %box, i64 {READY}, i64 {CLAIMED} acq_rel monotonic
  %claimed = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %claimed, label %fits, label %skip
fits:
  %size.p = getelementptr i64, ptr %box, i64 5
  %size = load i64, ptr %size.p, align 8
  %enough = icmp uge i64 %size, %scratch
  br i1 %enough, label %write, label %back
back:
  %needed.p = getelementptr i64, ptr %box, i64 6
  store i64 %scratch, ptr %needed.p, align 8
  store atomic i64 {SHORT}, ptr %box release, align 8
  br label %skip
write:
  %entry.p = getelementptr i64, ptr %box, i64 1
  store ptr %kernel, ptr %entry.p, align 8
  %launch.p = getelementptr i64, ptr %box, i64 2
  store ptr %launch, ptr %launch.p, align 8
  %ticket.p = getelementptr i64, ptr %box, i64 3
  store atomic ptr %ticket, ptr %ticket.p monotonic, align 8
  %add = atomicrmw add ptr %ticket, i64 1 monotonic, align 8
  store atomic i64 {POSTED}, ptr %box release, align 8
  br label %skip
skip:
  %did = phi i64 [ 0, %try ], [ 0, %claim ], [ 0, %back ], [ 1, %write ]
  %done.now = add i64 %done, %did
  %i.more = add i64 %i, 1
  br label %next
}}

; Takes back what no worker has begun, and waits for the others, for %rounds looks; how many have not left.
define internal i64 @collect(ptr %boxes, i64 %rounds, ptr %ticket) {{
entry:
  %count = load i64, ptr %boxes, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.more, %skip ]
  %some.left = icmp ult i64 %i, %count
  br i1 %some.left, label %try, label %look
try:
  %line = add i64 %i, 1
  %at = mul i64 %line, {line}
  %box = getelementptr i8, ptr %boxes, i64 %at
  %i.more = add i64 %i, 1
  %state = load atomic i64, ptr %box monotonic, align 8
  %is.posted = icmp eq i64 %state, {POSTED}
  br i1 %is.posted, label %whose, label %skip
whose:
  %ticket.p = getelementptr i64, ptr %box, i64 3
  %seen = load atomic ptr, ptr %ticket.p monotonic, align 8
  %seems.mine = icmp eq ptr %seen, %ticket
  br i1 %seems.mine, label %claim, label %skip
claim:
  %pair = cmpxchg ptr %box, i64 {POSTED}, i64 {CLAIMED} acq_rel monotonic
  %claimed = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %claimed, label %check, label %skip
check:
  %now = load atomic ptr, ptr %ticket.p monotonic, align 8
  %is.mine = icmp eq ptr %now, %ticket
  br i1 %is.mine, label %mine, label %other
other:
  store atomic i64 {POSTED}, ptr %box release, align 8
  br label %skip
mine:
  store atomic i64 {READY}, ptr %box release, align 8
  %sub = atomicrmw sub ptr %ticket, i64 1 monotonic, align 8
  br label %skip
skip:
  br label %next
look:
  %left = phi i64 [ %rounds, %next ], [ %less, %idle ]
  %remaining = load atomic i64, ptr %ticket acquire, align 8
  %waits = icmp ne i64 %remaining, 0
  %more = icmp sgt i64 %left, 0
  %on = and i1 %waits, %more
  br i1 %on, label %idle, label %end
idle:
  {pause}
  %less = sub i64 %left, 1
  br label %look
end:
  ret i64 %remaining
}}

; {FEW}, and nothing is run, unless %wanted workers look. Else posts the launch, runs it too, and collects. Gives the status of
; the caller's part, or {WAITS} where that is done and a worker has not left, or left with another status.
define internal i64 @share(ptr %boxes, i64 %wanted, ptr %kernel, ptr %launch, i64 %scratch, ptr %ticket, i64 %rounds) {{
entry:
  %count = load i64, ptr %boxes, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.more, %test ]
  %looking = phi i64 [ 0, %entry ], [ %looking.now, %test ]
  %enough = icmp uge i64 %looking, %wanted
  br i1 %enough, label %run, label %more
more:
  %some.left = icmp ult i64 %i, %count
  br i1 %some.left, label %test, label %few
few:
  ret i64 {FEW}
test:
  %line = add i64 %i, 1
  %at = mul i64 %line, {line}
  %box = getelementptr i8, ptr %boxes, i64 %at
  %i.more = add i64 %i, 1
  %state = load atomic i64, ptr %box monotonic, align 8
  %is.ready = icmp eq i64 %state, {READY}
  %one = zext i1 %is.ready to i64
  %looking.now = add i64 %looking, %one
  br label %next
run:
  %posted = call i64 @post(ptr %boxes, i64 %wanted, ptr %kernel, ptr %launch, i64 %scratch, ptr %ticket)
  %thread = getelementptr i8, ptr %ticket, i64 {thread}
  %status = call i32 %kernel(ptr %launch, ptr %thread)
  %is.done = icmp eq i32 %status, {DONE}
  br i1 %is.done, label %gather, label %leave
gather:
  %remaining = call i64 @collect(ptr %boxes, i64 %rounds, ptr %ticket)
  %statuses.p = getelementptr i64, ptr %ticket, i64 1
  %statuses = load atomic i64, ptr %statuses.p monotonic, align 8
  %others = and i64 %statuses, {others}
  %open = or i64 %remaining, %others
  %waits = icmp ne i64 %open, 0
  %outcome = select i1 %waits, i64 {WAITS}, i64 {DONE}
  ret i64 %outcome
leave:
  %early = sext i32 %status to i64
  ret i64 %early
}}
"""

_ARGUMENTS: Final = [ctypes.c_int64] * 8  # addresses, too: a ``c_void_p`` takes longer to pass
_BRIEF: Final = ctypes.PYFUNCTYPE(ctypes.c_int64, *_ARGUMENTS)
_LONG: Final = ctypes.CFUNCTYPE(ctypes.c_int64, *_ARGUMENTS)

_Native = Callable[[int, int, int, int, int, int, int, int], int]

_found: Final[list[tuple[_Native, _Native, int]]] = []
"""The code of this process, where it has been had."""


def text(machine: str) -> str:
    """The code in LLVM IR for an architecture (`weft.target.architecture`)."""
    from weft.codegen.kernel import DONE, PAUSED

    statuses = {"DONE": DONE, "PAUSED": PAUSED, "others": ~(1 << DONE)}
    pause, declaration = _PAUSES.get(machine, ("", ""))
    return _TEXT.format(symbol=SYMBOL, pause=pause, declaration=declaration, **statuses, **_NUMBERS)


def _version() -> str:
    """A digest of what the code on disk is made of. The statuses of kernels are not in it: their module is for the compiler."""
    return hashlib.sha256(repr((_TEXT, _NUMBERS, _PAUSES)).encode()).hexdigest()


@cache
def prepare() -> None:
    """Compiles the code in a process that compiles kernels, so that it is on disk where they are."""
    _native()


def _native() -> tuple[_Native, _Native, int] | None:
    """The code, to be called with the interpreter lock and without, and how many looks take `SPIN`; None where it cannot be
    had."""
    if _found:
        return _found[0]
    may_compile = "weft.codegen.compile" in sys.modules
    address = helpers.native(SYMBOL, _version(), (lambda: text(architecture(host().triple))) if may_compile else None)
    if address is None:
        return None
    brief, long = _BRIEF(address), _LONG(address)
    _found.append((brief, long, looks(long)))
    return _found[0]


def looks(long: _Native) -> int:
    """How many looks take `SPIN`, by the least of `_SAMPLES` samples. What the call itself takes is left out."""
    box = (ctypes.c_int64 * 8)()

    def least(count: int) -> int:
        taken: list[int] = []
        for _ in range(_SAMPLES):
            began = time.perf_counter_ns()
            long(0, ctypes.addressof(box), count, 0, 0, 0, 0, 0)
            taken.append(time.perf_counter_ns() - began)
        return min(taken)

    return max(1, SPIN * _SAMPLE // max(least(_SAMPLE + 1) - least(1), 1))


class Boxes:
    """The boxes of ``count`` workers. Without native code workers never look, so that nothing is posted."""

    def __init__(self, count: int):
        self._count = count
        self._memory = ctypes.create_string_buffer(_LINE * (count + 2))
        self._first = -(-ctypes.addressof(self._memory) // _LINE) * _LINE
        ctypes.c_int64.from_address(self._first).value = count
        found = _native()
        self._brief, self._long, self._rounds = found or (None, None, 0)
        self._gathering = max(1, self._rounds // _LEAVING)
        code: Any = self._brief
        address = 0 if code is None else ctypes.cast(code, ctypes.c_void_p).value or 0
        self.native = (address, self._first, self._gathering)
        """The addresses of the code, or 0 where there is none, and of the boxes, and how many looks `share` waits for."""

    def serve(self, number: int, workspace: Workspace) -> None:
        """The part of worker ``number``: runs in its workspace what is posted to it, until nothing has been for `SPIN`."""
        if self._long is None:
            return
        box = self._box(number)
        words = (ctypes.c_int64 * 8).from_address(box)
        while True:
            words[4], words[5] = workspace.thread, workspace.scratch_size
            needed = self._long(0, box, self._rounds, 0, 0, 0, 0, 0)
            if not needed:
                return
            try:
                workspace.enter(needed)
            except MemoryError:  # the launch runs without this worker
                words[0] = AWAY
                return

    def post(self, wanted: int, address: int, workspace: Workspace, scratch: int) -> int:
        """Has up to ``wanted`` workers that look run a kernel's code at ``address``, which needs so much ``scratch`` memory.
        Returns how many will. Their launch and its memory must stay until `collect` returns 0."""
        if self._brief is None:
            return 0
        ticket = workspace.address + TICKET
        return self._brief(1, self._first, wanted, address, workspace.launch, scratch, ticket, 0)

    def share(self, wanted: int, address: int, scratch: int, workspace: Workspace, launch: int, _thread: int) -> int:
        """Where ``wanted`` workers look: has them run a launch as `post`, runs it in this thread, too, and waits as `collect`.
        Returns the kernel's status in this thread, where that is not `DONE` without waiting; `WAITS` where workers have not left,
        or with another status; `FEW` where fewer look, and nothing was run. The last two arguments are the workspace's, as an
        entry point takes them."""
        if self._long is None:
            return FEW
        return self._long(3, self._first, wanted, address, launch, scratch, workspace.address + TICKET, self._gathering)

    def collect(self, workspace: Workspace) -> int:
        """Waits for 50 us at most (`_LEAVING`) until the workers have left the launch. Those that have not begun will not.
        Returns how many have not left."""
        if self._long is None:
            return 0
        return self._long(2, self._first, 0, 0, 0, 0, workspace.address + TICKET, self._gathering)

    def leave(self) -> None:
        """Waits until no worker looks: some `SPIN` at most."""
        ends = time.perf_counter_ns() + 10 * SPIN
        while any(self._state(number) != AWAY for number in range(self._count)) and time.perf_counter_ns() < ends:
            time.sleep(SPIN / 4e9)

    def _state(self, number: int) -> int:
        return ctypes.c_int64.from_address(self._box(number)).value

    def _box(self, number: int) -> int:
        return self._first + _LINE * (number + 1)
