"""The native code of launches without Python (`weft.runtime.plans`), in LLVM IR.

One function is compiled once for a machine and kept on disk with the kernels (`weft.runtime.helpers`). Python calls it with the
arguments of a launch (``METH_FASTCALL | METH_KEYWORDS`` of Python's C interface), and it reads three kinds of blocks of 64-bit
words, which `weft.runtime.plans` writes: that of the *process*, of a *kernel*, and of each *plan*. All but the call of the
kernel's own code happens under the interpreter lock. Functions of Python are called through addresses in the process's block, so
that the code needs no linker to find them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from weft.runtime import direct_fits
from weft.runtime import direct_words as words

SYMBOL: Final = "weft_direct"

_TEXT: Final = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Looks for the plan that a launch's arguments fit, and runs it; a launch that fits none goes to Python.
define ptr @{symbol}(ptr %self, ptr %passed, i64 %passed.count, ptr %names) {{
entry:
  %out = alloca ptr, align 8
  %held = field ptr %self + {ITEMS}
  %kernel = field ptr %held + {PAYLOAD}
  %process = word ptr %kernel KERNEL.process
  %busy = word i64 %process PROCESS.busy
  %free = icmp eq i64 %busy, 0
  %held.args = word ptr %kernel KERNEL.held
  %holds = icmp ne ptr %held.args, null
  %held.count = word i64 %kernel KERNEL.count
  %args = select i1 %holds, ptr %held.args, ptr %passed
  %count = select i1 %holds, i64 %held.count, i64 %passed.count
  %passes = icmp ugt i64 %passed.count, 0
  %as.should = xor i1 %passes, %holds
  %goes = and i1 %free, %as.should
  br i1 %goes, label %thread, label %slow
thread:
  %ident.f = word ptr %process PROCESS.PyThread_get_thread_ident
  %ident = call {ULONG} %ident.f()
  %main = word {ULONG} %process PROCESS.main
  %is.main = icmp eq {ULONG} %ident, %main
  br i1 %is.main, label %machine, label %slow
machine:
  %get = word ptr %process PROCESS.PyContextVar_Get
  %variable = word ptr %process PROCESS.emulated
  %failed = call i32 %get(ptr %variable, ptr null, ptr %out)
  %got = icmp eq i32 %failed, 0
  br i1 %got, label %where, label %raised
raised:
  ret ptr null
where:
  %place = load ptr, ptr %out, align 8
  %decref = word ptr %process PROCESS.Py_DecRef
  call void %decref(ptr %place)
  %none = word ptr %process PROCESS.None
  %here = icmp eq ptr %place, %none
  br i1 %here, label %grid, label %slow
grid:
  %sizes = load ptr, ptr %args, align 8
  %kind = field ptr %sizes + {TYPE}
  %tuple = word ptr %process PROCESS.tuple
  %is.tuple = icmp eq ptr %kind, %tuple
  br i1 %is.tuple, label %three, label %slow
three:
  %length = field i64 %sizes + {SIZE}
  %is.three = icmp eq i64 %length, 3
  br i1 %is.three, label %total, label %slow
total:
  %x.o = field ptr %sizes + {ITEMS}
  %y.o = field ptr %sizes + {ITEMS} + 8
  %z.o = field ptr %sizes + {ITEMS} + 16
  %x = call i64 @number(ptr %process, ptr %x.o)
  %y = call i64 @number(ptr %process, ptr %y.o)
  %z = call i64 @number(ptr %process, ptr %z.o)
  %xy = mul i64 %x, %y
  %programs = mul i64 %xy, %z
  %first = word ptr %kernel KERNEL.first
  %busy.p = getelementptr i64, ptr %process, i64 {PROCESS_busy}
  store i64 1, ptr %busy.p, align 8
  br label %next
next:
  %plan = phi ptr [ %first, %total ], [ %after, %other ]
  %no.more = icmp eq ptr %plan, null
  br i1 %no.more, label %none.fits, label %try
none.fits:
  store i64 0, ptr %busy.p, align 8
  br label %slow
try:
  %given = sub i64 %count, 1
  %values = getelementptr ptr, ptr %args, i64 1
  %fits = call i1 @fits(ptr %process, ptr %plan, ptr %values, i64 %given, ptr %names, i64 %programs)
  br i1 %fits, label %run, label %other
other:
  %after = word ptr %plan PLAN.next
  br label %next
run:
  %ran = call ptr @run(ptr %process, ptr %plan, ptr %args, i64 %count, ptr %names, i64 %programs, i64 %x, i64 %y, i64 %z)
  ret ptr %ran
slow:
  %vectorcall = word ptr %process PROCESS.PyObject_Vectorcall
  %python = word ptr %kernel KERNEL.slow
  %result = call ptr %vectorcall(ptr %python, ptr %passed, i64 %passed.count, ptr %names)
  ret ptr %result
}}

; Runs the programs of a launch whose slots are written. Gives None, or null after an exception. Where workers look for a launch
; that several threads shall run, they run it without Python, unless one pauses, fails or takes much longer than the caller. Where
; Python raises then, the launch stops, and workers are waited for.
define internal ptr @run(ptr %process, ptr %plan, ptr %args, i64 %count, ptr %names, i64 %programs, i64 %x, i64 %y, i64 %z) {{
entry:
  %given = alloca ptr, align 8
  %workspace = word ptr %process PROCESS.workspace
  %thread = getelementptr i8, ptr %workspace, i64 {THREAD}
  %launch = getelementptr i8, ptr %workspace, i64 {LAUNCH}
  %scratch.p = getelementptr i8, ptr %thread, i64 {THREAD_SCRATCH}
  %scratch = load i64, ptr %scratch.p, align 8
  call void @llvm.memset.p0.i64(ptr align 64 %workspace, i8 0, i64 {FIRST_SHARE}, i1 false)
  %faults = getelementptr i8, ptr %workspace, i64 {FAULTS}
  call void @llvm.memset.p0.i64(ptr align 64 %faults, i8 0, i64 {FAULTS_AND_SHARES}, i1 false)
  store i64 %scratch, ptr %scratch.p, align 8
  %head = getelementptr i8, ptr %workspace, i64 {PROGRAMS}
  store i64 %programs, ptr %head, align 8
  %chunk.p = getelementptr i64, ptr %head, i64 1
  %x.p = getelementptr i64, ptr %head, i64 2
  store i64 %x, ptr %x.p, align 8
  %y.p = getelementptr i64, ptr %head, i64 3
  store i64 %y, ptr %y.p, align 8
  %z.p = getelementptr i64, ptr %head, i64 4
  store i64 %z, ptr %z.p, align 8
  %busy.p = getelementptr i64, ptr %process, i64 {PROCESS_busy}
  %owner = word ptr %plan PLAN.owner
  %incref = word ptr %process PROCESS.Py_IncRef
  call void %incref(ptr %owner)
  %leading = word ptr %process PROCESS.leading
  store i64 1, ptr %leading, align 8
  %asleep.p = word ptr %process PROCESS.asleep
  %asleep = load i64, ptr %asleep.p, align 8
  %vectorcall = word ptr %process PROCESS.PyObject_Vectorcall
  %decref = word ptr %process PROCESS.Py_DecRef
  %is.asleep = icmp ne i64 %asleep, 0
  br i1 %is.asleep, label %wake, label %awake
wake:
  %wake.f = word ptr %process PROCESS.wake
  %woken = call ptr %vectorcall(ptr %wake.f, ptr null, i64 0, ptr null)
  %cannot.wake = icmp eq ptr %woken, null
  br i1 %cannot.wake, label %raised, label %is.awake
is.awake:
  call void %decref(ptr %woken)
  br label %awake
raised:
  store i64 0, ptr %leading, align 8
  br label %end

awake:
  %entry.f = word ptr %plan PLAN.entry
  %threads = word i64 %process PROCESS.threads
  %one.thread = icmp eq i64 %threads, 1
  %one.program = icmp eq i64 %programs, 1
  %alone = or i1 %one.thread, %one.program
  br i1 %alone, label %whole, label %several
whole:
  store i64 %programs, ptr %chunk.p, align 8
  %whole.status = call i32 @enter(ptr %process, ptr %entry.f, ptr %launch, ptr %thread)
  br label %left

several:
  %fewer = call i64 @least(i64 %threads, i64 %programs)
  %parts = mul i64 %fewer, {CHUNKS_PER_THREAD}
  %part = udiv i64 %programs, %parts
  %is.none = icmp eq i64 %part, 0
  %chunk = select i1 %is.none, i64 1, i64 %part
  store i64 %chunk, ptr %chunk.p, align 8
  %counters = getelementptr i8, ptr %workspace, i64 {FIRST_SHARE}
  call void @llvm.memset.p0.i64(ptr align 64 %counters, i8 0, i64 {OTHER_SHARES}, i1 false)
  %shares.p = getelementptr i8, ptr %workspace, i64 {SHARES}
  %shares = call i64 @least(i64 %fewer, i64 {MOST_SHARES})
  store i64 %shares, ptr %shares.p, align 8
  %claims.p = getelementptr i64, ptr %shares.p, i64 1
  %pool = word ptr %process PROCESS.pool
  %claimed.by = word i64 %pool POOL.claims
  store i64 %claimed.by, ptr %claims.p, align 8
  %clock = word ptr %process PROCESS.clock
  %no.clock = icmp eq ptr %clock, null
  br i1 %no.clock, label %wakes, label %timed
timed:
  %began = call i64 @now(ptr %process)
  %ended = word i64 %pool POOL.ended
  %ended.p = getelementptr i64, ptr %pool, i64 {POOL_ended}
  %since = sub i64 %began, %ended
  %spin = word i64 %process PROCESS.spin
  %is.busy = icmp slt i64 %since, %spin
  %looking = word i64 %process PROCESS.looking
  %sleeping = word i64 %process PROCESS.sleeping
  %limit = select i1 %is.busy, i64 %looking, i64 %sleeping
  %limit.d = sitofp i64 %limit to double
  %pace.p = word ptr %plan PLAN.pace
  %pace = load double, ptr %pace.p, align 8
  %programs.d = uitofp i64 %programs to double
  %expected = fmul double %programs.d, %pace
  %is.short = fcmp olt double %expected, %limit.d
  br i1 %is.short, label %probe, label %spread
probe:
  store i64 1, ptr %thread, align 8
  %probe.status = call i32 @enter(ptr %process, ptr %entry.f, ptr %launch, ptr %thread)
  %paused = icmp eq i32 %probe.status, {PAUSED}
  br i1 %paused, label %goes.on, label %left
goes.on:
  %probed = call i64 @now(ptr %process)
  %probe.took = sub i64 %probed, %began
  %still.short = icmp slt i64 %probe.took, %limit
  br i1 %still.short, label %rest, label %spread
rest:
  %rest.status = call i32 @enter(ptr %process, ptr %entry.f, ptr %launch, ptr %thread)
  %rest.done = icmp eq i32 %rest.status, 0
  br i1 %rest.done, label %pacing, label %left
pacing:
  %done = call i64 @now(ptr %process)
  store i64 %done, ptr %ended.p, align 8
  %took = sub i64 %done, %began
  %took.d = sitofp i64 %took to double
  %new.pace = fdiv double %took.d, %programs.d
  %late.p = getelementptr double, ptr %pace.p, i64 1
  %was.late = load double, ptr %late.p, align 8
  %is.late = icmp sge i64 %took, %limit
  %late = uitofp i1 %is.late to double
  store double %late, ptr %late.p, align 8
  %was = fcmp une double %was.late, 0.0
  %on.time = xor i1 %is.late, true
  %counts = or i1 %was, %on.time
  %kept.pace = select i1 %counts, double %new.pace, double %pace
  store double %kept.pace, ptr %pace.p, align 8
  br label %left

spread:
  %workers.f = word ptr %pool POOL.workers
  %none.yet = icmp eq ptr %workers.f, null
  br i1 %none.yet, label %wakes, label %shares.it
shares.it:
  %joint = call i64 @together(ptr %process, ptr %plan, ptr %workspace, i64 %programs, i64 %fewer)
  switch i64 %joint, label %rejoin [ i64 {FEW}, label %wakes
                                     i64 {DONE}, label %all.left ]
rejoin:
  store i64 0, ptr %leading, align 8
  %joint.number.f = word ptr %process PROCESS.PyLong_FromLongLong
  %joint.o = call ptr %joint.number.f(i64 %joint)
  store ptr %joint.o, ptr %given, align 8
  %rejoin.f = word ptr %plan PLAN.rejoin
  %rejoined = call ptr %vectorcall(ptr %rejoin.f, ptr %given, i64 1, ptr null)
  call void %decref(ptr %joint.o)
  call void @leave(ptr %process, ptr %workspace)
  br label %end

wakes:
  store i64 0, ptr %leading, align 8
  %spread.f = word ptr %plan PLAN.spread
  %spreading = call ptr %vectorcall(ptr %spread.f, ptr %args, i64 %count, ptr %names)
  br label %end
left:
  %one.status = phi i32 [ %whole.status, %whole ], [ %probe.status, %probe ], [ %rest.status, %rest ], [ 0, %pacing ]
  br label %all.left
all.left:
  %status = phi i32 [ %one.status, %left ], [ {DONE}, %shares.it ]
  store i64 0, ptr %leading, align 8
  %pause = load i64, ptr %thread, align 8
  %installed.p = word ptr %process PROCESS.installed
  %installed = load i64, ptr %installed.p, align 8
  %status.word = sext i32 %status to i64
  %asks = or i64 %pause, %installed
  %open = or i64 %asks, %status.word
  %is.open = icmp ne i64 %open, 0
  br i1 %is.open, label %finish, label %clean
finish:
  %number.f = word ptr %process PROCESS.PyLong_FromLongLong
  %status.o = call ptr %number.f(i64 %status.word)
  store ptr %status.o, ptr %given, align 8
  %finish.f = word ptr %plan PLAN.finish
  %finished = call ptr %vectorcall(ptr %finish.f, ptr %given, i64 1, ptr null)
  call void %decref(ptr %status.o)
  br label %end
clean:
  %none = word ptr %process PROCESS.None
  call void %incref(ptr %none)
  br label %end
end:
  %result = phi ptr [ %none, %clean ], [ %finished, %finish ], [ %spreading, %wakes ], [ %rejoined, %rejoin ], [ null, %raised ]
  store i64 0, ptr %busy.p, align 8
  call void %decref(ptr %owner)
  ret ptr %result
}}

; Shares a launch with workers that look, and gives what `Boxes.share` does. Notes its end and the time for a program, where the
; caller's part has ended.
define internal i64 @together(ptr %process, ptr %plan, ptr %workspace, i64 %programs, i64 %fewer) noinline cold {{
entry:
  %pool = word ptr %process PROCESS.pool
  %workers.f = word ptr %pool POOL.workers
  %boxes = word ptr %pool POOL.boxes
  %rounds = word i64 %pool POOL.rounds
  %entry.f = word ptr %plan PLAN.entry
  %needed = word i64 %plan PLAN.scratch
  %helpers = sub i64 %fewer, 1
  %launch = getelementptr i8, ptr %workspace, i64 {LAUNCH}
  %ticket = getelementptr i8, ptr %workspace, i64 {TICKET}
  %release = word ptr %process PROCESS.PyEval_SaveThread
  %acquire = word ptr %process PROCESS.PyEval_RestoreThread
  %began = call i64 @now(ptr %process)
  %state = call ptr %release()
  %joint = call i64 %workers.f(i64 3, ptr %boxes, i64 %helpers, ptr %entry.f, ptr %launch, i64 %needed, ptr %ticket, i64 %rounds)
  call void %acquire(ptr %state)
  switch i64 %joint, label %given [ i64 {DONE}, label %paced
                                    i64 {WAITS}, label %paced ]
given:
  ret i64 %joint
paced:
  %end = call i64 @now(ptr %process)
  %ended.p = getelementptr i64, ptr %pool, i64 {POOL_ended}
  store i64 %end, ptr %ended.p, align 8
  %took = sub i64 %end, %began
  %each = mul i64 %helpers, {WITH_EACH}
  %sharing = add i64 %each, {SHARING}
  %more = icmp sgt i64 %took, %sharing
  %worked = sub i64 %took, %sharing
  %part = select i1 %more, i64 %worked, i64 0
  %parts = mul i64 %part, %fewer
  %parts.d = sitofp i64 %parts to double
  %programs.d = uitofp i64 %programs to double
  %new.pace = fdiv double %parts.d, %programs.d
  %pace.p = word ptr %plan PLAN.pace
  store double %new.pace, ptr %pace.p, align 8
  %late.p = getelementptr double, ptr %pace.p, i64 1
  store double 0.0, ptr %late.p, align 8
  br label %given
}}

; Returns when all workers have left a launch. Stops it where they have not.
define internal void @leave(ptr %process, ptr %workspace) noinline cold {{
entry:
  %pool = word ptr %process PROCESS.pool
  %workers.f = word ptr %pool POOL.workers
  %boxes = word ptr %pool POOL.boxes
  %rounds = word i64 %pool POOL.rounds
  %ticket = getelementptr i8, ptr %workspace, i64 {TICKET}
  %stop.p = getelementptr i8, ptr %workspace, i64 {STOP}
  %release = word ptr %process PROCESS.PyEval_SaveThread
  %acquire = word ptr %process PROCESS.PyEval_RestoreThread
  br label %look
look:
  %remain = load atomic i64, ptr %ticket acquire, align 8
  %none = icmp eq i64 %remain, 0
  br i1 %none, label %left, label %stop
stop:
  store volatile i64 1, ptr %stop.p, align 8
  %state = call ptr %release()
  %still = call i64 %workers.f(i64 2, ptr %boxes, i64 0, ptr null, ptr null, i64 0, ptr %ticket, i64 %rounds)
  call void %acquire(ptr %state)
  br label %look
left:
  ret void
}}

define internal i64 @least(i64 %a, i64 %b) {{
entry:
  %is.less = icmp ult i64 %a, %b
  %less = select i1 %is.less, i64 %a, i64 %b
  ret i64 %less
}}

; Runs the kernel's code without the interpreter lock.
define internal i32 @enter(ptr %process, ptr %code, ptr %launch, ptr %thread) {{
entry:
  %release = word ptr %process PROCESS.PyEval_SaveThread
  %acquire = word ptr %process PROCESS.PyEval_RestoreThread
  %state = call ptr %release()
  %status = call i32 %code(ptr %launch, ptr %thread)
  call void %acquire(ptr %state)
  ret i32 %status
}}

; Nanoseconds, as Python's `time.perf_counter_ns` counts them.
define internal i64 @now(ptr %process) {{
entry:
  %time = alloca [2 x i64], align 8
  %clock = word ptr %process PROCESS.clock
  %which = word i64 %process PROCESS.which
  %which.int = trunc i64 %which to i32
  %failed = call i32 %clock(i32 %which.int, ptr %time)
  %seconds = field i64 %time + 0
  %nanoseconds = field i64 %time + 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanoseconds
  ret i64 %now
}}
"""
"""With two abbreviations: ``%a = word i64 %block PLAN.entry`` loads a block's word, ``%a = field ptr %object + 8`` what lies so
many bytes behind an address."""

_WORD: Final = r"(?m)^  %(\S+) = word (\S+) (?:ptr )?(%\S+) (\w+)\.(\w+)$"
_FIELD: Final = r"(?m)^  %(\S+) = field (\S+) (%\S+) \+ ([\d +]+)$"


def text() -> str:
    """The code."""

    def loaded(name: str, kind: str, base: str, offset: int) -> str:
        align = 4 if kind == "i32" else 8
        at = f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset}"
        return f"{at}\n  %{name} = load {kind}, ptr %{name}.at, align {align}"

    written = (_TEXT + direct_fits.TEXT).format(symbol=SYMBOL, **words.NUMBERS)
    written = re.sub(_WORD, lambda m: loaded(m[1], m[2], m[3], 8 * words.BLOCKS[m[4]].index(m[5])), written)
    return re.sub(_FIELD, lambda m: loaded(m[1], m[2], m[3], sum(map(int, m[4].split("+")))), written)


def version() -> str:
    """A digest of the code on disk."""
    return hashlib.sha256(text().encode()).hexdigest()
