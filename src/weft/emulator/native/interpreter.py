"""The text of the native interpreter: LLVM IR of every handler, and of what calls them.

A *row* is an instruction, twelve words of 64 bits (`Row`). An operand is where its lanes begin in memory, and how many bytes
further those of the next warp are: 0 for a constant, whose 32 lanes are stored once. Two functions run rows:

- ``rows``: some rows one after the other, for the warps of a mask. Warp by warp: a warp's registers stay in the nearest cache.
- ``region``: segments, that is rows and a branch at their end, in the order of the scheduler (`weft.emulator.machine.scheduler`):
  of all threads those go first whose place comes first. It returns where a segment has to do what rows cannot.

    place[segment, warp] = lanes of the warp that are at the segment, a bit each
    repeat: take the first segment where any lane is; run its rows; move its lanes to the branch's target and behind it

Everything is reached through one function, ``weft_emulator(which, a, b, c, d, e)``, because the loader exports one.
"""

from __future__ import annotations

import enum
from typing import Final

from weft.emulator.native import shared
from weft.emulator.native.handlers import BITS, HANDLERS, VECTORS, Handler
from weft.emulator.native.scalar import translated


class Row(enum.IntEnum):
    """The words of a row. Addresses are 0 where there is nothing."""

    HANDLER = 0
    RESULT = 1
    A = 2
    A_STEP = 3
    B = 4
    B_STEP = 5
    C = 6
    C_STEP = 7
    GUARD = 8
    NEGATED = 9
    """1 if threads execute it whose guard is false."""
    THREADS = 10
    """How many threads executed it."""
    IMMEDIATE = 11


class Segment(enum.IntEnum):
    """The words of a segment; segments are numbered in the scheduler's order."""

    ROWS = 0
    COUNT = 1
    NATIVE = 2
    """Whether rows are all there is."""
    GUARD = 3
    NEGATED = 4
    TARGET = 5
    """The segment that the branch goes to, or -1."""
    FOLLOWING = 6
    """The segment behind, or -1 where threads never get there."""
    TAKEN = 7
    """Threads that took the branch."""
    WARPS = 8
    THREADS = 9
    PRESENT = 10
    """Whether any lane may be there."""
    LENGTH = 11


class Work(enum.IntEnum):
    """The words of what ``region`` is given."""

    SEGMENTS = 0
    COUNT = 1
    PLACES = 2
    WARPS = 3
    LIMIT = 4
    """The segment before which to stop."""
    BUDGET = 5
    """Instructions of warps that may still be executed; below 0 when it ended for that."""
    STEPS = 6
    """Instructions that were executed, each for all warps that were at it."""
    ALLOWED = 7
    """How many of these may be executed."""


ROW_WORDS: Final = len(Row)
SEGMENT_WORDS: Final = len(Segment)


def _spelled(body: str) -> str:
    for name, element in VECTORS.items():
        body = body.replace(f"{name} ", f"<32 x {element}> ").replace(f"{name},", f"<32 x {element}>,")
        body = body.replace(f"{name})", f"<32 x {element}>)").replace(f"{name}\n", f"<32 x {element}>\n")
    return body + "\n"


def _vector(name: str) -> str:
    return f"<32 x {VECTORS[name]}>"


def _load(name: str, vector: str, word: int, step: int) -> str:
    memory = "<32 x i8>" if vector == "V1" else _vector(vector)
    text = f"""
  %{name}.p = getelementptr i64, ptr %row, i64 {word}
  %{name}.q = load ptr, ptr %{name}.p
  %{name}.r = getelementptr i64, ptr %row, i64 {step}
  %{name}.s = load i64, ptr %{name}.r
  %{name}.o = mul i64 %{name}.s, %warp
  %{name}.a = getelementptr i8, ptr %{name}.q, i64 %{name}.o
"""
    if vector == "V1":
        return (
            text
            + f"  %{name}.b = load {memory}, ptr %{name}.a, align 1\n  %{name} = trunc {memory} %{name}.b to <32 x i1>\n"
        )
    return text + f"  %{name} = load {memory}, ptr %{name}.a, align {BITS[vector] // 8}\n"


def _store(vector: str) -> str:
    size = max(BITS[vector], 8) // 8
    memory = "<32 x i8>" if vector == "V1" else _vector(vector)
    extend = "  %stored = zext <32 x i1> %r to <32 x i8>\n" if vector == "V1" else ""
    value = "%stored" if vector == "V1" else "%r"
    return f"""{extend}
  %d.p = getelementptr i64, ptr %row, i64 {Row.RESULT}
  %d.q = load ptr, ptr %d.p
  %d.o = mul i64 %warp, {32 * size}
  %d.a = getelementptr i8, ptr %d.q, i64 %d.o
  %d.old = load {memory}, ptr %d.a, align {size}
  %d.m = bitcast i32 %mask to <32 x i1>
  %d.new = select <32 x i1> %d.m, {memory} {value}, {memory} %d.old
  store {memory} %d.new, ptr %d.a, align {size}
  ret void
}}
"""


def _handler(number: int, handler: Handler) -> str:
    text = f"define internal void @h{number}(ptr %row, i64 %warp, i32 %mask) {{\n"
    if "%immediate" in handler.body:
        text += f"  %immediate.p = getelementptr i64, ptr %row, i64 {Row.IMMEDIATE}\n"
        text += "  %immediate = load i64, ptr %immediate.p\n"
    for name, vector, word, step in zip(
        "abc", handler.operands, (Row.A, Row.B, Row.C), (Row.A_STEP, Row.B_STEP, Row.C_STEP), strict=False
    ):
        text += _load(name, vector, word, step)
    return text + _spelled(handler.body + "\n") + _store(handler.result)


def _word(name: str, base: str, word: int, kind: str = "i64") -> str:
    return f"  %{name}.p = getelementptr i64, ptr %{base}, i64 {word}\n  %{name} = load {kind}, ptr %{name}.p\n"


_BITS: Final = """
define internal i32 @bits(ptr %mask, i64 %warp) alwaysinline {
  %offset = mul i64 %warp, 32
  %place = getelementptr i8, ptr %mask, i64 %offset
  %bytes = load <32 x i8>, ptr %place, align 1
  %lanes = icmp ne <32 x i8> %bytes, zeroinitializer
  %bits = bitcast <32 x i1> %lanes to i32
  ret i32 %bits
}

define internal i32 @guarded(ptr %guard, i64 %negated, i64 %warp, i32 %mask) alwaysinline {
  %bits = call i32 @bits(ptr %guard, i64 %warp)
  %flip64 = sub i64 0, %negated
  %flip = trunc i64 %flip64 to i32
  %through = xor i32 %bits, %flip
  %both = and i32 %through, %mask
  ret i32 %both
}

define internal void @add(ptr %counter, i32 %mask) alwaysinline {
  %count = call i32 @llvm.ctpop.i32(i32 %mask)
  %wide = zext i32 %count to i64
  %old = load i64, ptr %counter
  %new = add i64 %old, %wide
  store i64 %new, ptr %counter
  ret void
}
"""

_WARP: Final = f"""
define internal void @warp(ptr %rows, i64 %count, i64 %warp, i32 %mask) {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [0, %entry], [%next, %behind]
  %offset = mul i64 %i, {ROW_WORDS}
  %row = getelementptr i64, ptr %rows, i64 %offset
  %guard.p = getelementptr i64, ptr %row, i64 {Row.GUARD}
  %guard = load ptr, ptr %guard.p
  %free = icmp eq ptr %guard, null
  br i1 %free, label %run, label %ask
ask:
{_word("negated", "row", Row.NEGATED)}
  %through = call i32 @guarded(ptr %guard, i64 %negated, i64 %warp, i32 %mask)
  %threads = getelementptr i64, ptr %row, i64 {Row.THREADS}
  call void @add(ptr %threads, i32 %through)
  %none = icmp eq i32 %through, 0
  br i1 %none, label %behind, label %run
run:
  %lanes = phi i32 [%mask, %loop], [%through, %ask]
  %handler = load ptr, ptr %row
  call void %handler(ptr %row, i64 %warp, i32 %lanes)
  br label %behind
behind:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}

define internal void @rows(ptr %rows, i64 %count, ptr %mask, i64 %warps) {{
entry:
  br label %loop
loop:
  %warp = phi i64 [0, %entry], [%next, %behind]
  %lanes = call i32 @bits(ptr %mask, i64 %warp)
  %none = icmp eq i32 %lanes, 0
  br i1 %none, label %behind, label %run
run:
  call void @warp(ptr %rows, i64 %count, i64 %warp, i32 %lanes)
  br label %behind
behind:
  %next = add i64 %warp, 1
  %more = icmp slt i64 %next, %warps
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

_REGION: Final = f"""
define internal void @arrive(ptr %segments, ptr %places, i64 %warps, i64 %segment, i64 %warp, i32 %mask) alwaysinline {{
entry:
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %done, label %go
go:
  %row = mul i64 %segment, %warps
  %index = add i64 %row, %warp
  %place = getelementptr i32, ptr %places, i64 %index
  %old = load i32, ptr %place
  %new = or i32 %old, %mask
  store i32 %new, ptr %place
  %offset = mul i64 %segment, {SEGMENT_WORDS}
  %there = getelementptr i64, ptr %segments, i64 %offset
  %present = getelementptr i64, ptr %there, i64 {Segment.PRESENT}
  store i64 1, ptr %present
  br label %done
done:
  ret void
}}

define internal i64 @region(ptr %work) {{
entry:
{_word("segments", "work", Work.SEGMENTS, "ptr")}
{_word("places", "work", Work.PLACES, "ptr")}
{_word("warps", "work", Work.WARPS)}
{_word("limit", "work", Work.LIMIT)}
{_word("allowed", "work", Work.ALLOWED)}
  %budget.p = getelementptr i64, ptr %work, i64 {Work.BUDGET}
  %steps.p = getelementptr i64, ptr %work, i64 {Work.STEPS}
  br label %search
search:
  %s = phi i64 [0, %entry], [%s.next, %absent], [0, %after]
  %inside = icmp slt i64 %s, %limit
  br i1 %inside, label %look, label %done
look:
  %offset = mul i64 %s, {SEGMENT_WORDS}
  %segment = getelementptr i64, ptr %segments, i64 %offset
{_word("present", "segment", Segment.PRESENT)}
  %is = icmp ne i64 %present, 0
  %s.next = add i64 %s, 1
  br i1 %is, label %found, label %absent
absent:
  br label %search
found:
{_word("native", "segment", Segment.NATIVE)}
  %can = icmp ne i64 %native, 0
  %budget = load i64, ptr %budget.p
  %rich = icmp sge i64 %budget, 0
  %willing = and i1 %can, %rich
  %steps = load i64, ptr %steps.p
  %few = icmp slt i64 %steps, %allowed
  %go = and i1 %willing, %few
  br i1 %go, label %start, label %done
start:
  store i64 0, ptr %present.p
{_word("rows", "segment", Segment.ROWS, "ptr")}
{_word("count", "segment", Segment.COUNT)}
{_word("guard", "segment", Segment.GUARD, "ptr")}
{_word("negated", "segment", Segment.NEGATED)}
{_word("target", "segment", Segment.TARGET)}
{_word("following", "segment", Segment.FOLLOWING)}
{_word("length", "segment", Segment.LENGTH)}
  %taken.p = getelementptr i64, ptr %segment, i64 {Segment.TAKEN}
  %threads.p = getelementptr i64, ptr %segment, i64 {Segment.THREADS}
  %done.p = getelementptr i64, ptr %segment, i64 {Segment.WARPS}
  %first = mul i64 %s, %warps
  %steps.new = add i64 %steps, %length
  store i64 %steps.new, ptr %steps.p
  %branches = icmp sge i64 %target, 0
  %free = icmp eq ptr %guard, null
  br label %loop
loop:
  %warp = phi i64 [0, %start], [%next, %behind]
  %index = add i64 %first, %warp
  %place = getelementptr i32, ptr %places, i64 %index
  %lanes = load i32, ptr %place
  %none = icmp eq i32 %lanes, 0
  br i1 %none, label %behind, label %run
run:
  store i32 0, ptr %place
  call void @add(ptr %threads.p, i32 %lanes)
  %w.old = load i64, ptr %done.p
  %w.new = add i64 %w.old, 1
  store i64 %w.new, ptr %done.p
  %b.old = load i64, ptr %budget.p
  %b.new = sub i64 %b.old, %length
  store i64 %b.new, ptr %budget.p
  call void @warp(ptr %rows, i64 %count, i64 %warp, i32 %lanes)
  br i1 %branches, label %branch, label %fall
branch:
  br i1 %free, label %all, label %some
all:
  call void @arrive(ptr %segments, ptr %places, i64 %warps, i64 %target, i64 %warp, i32 %lanes)
  br label %behind
some:
  %through = call i32 @guarded(ptr %guard, i64 %negated, i64 %warp, i32 %lanes)
  call void @add(ptr %taken.p, i32 %through)
  %rest = xor i32 %lanes, %through
  call void @arrive(ptr %segments, ptr %places, i64 %warps, i64 %target, i64 %warp, i32 %through)
  call void @arrive(ptr %segments, ptr %places, i64 %warps, i64 %following, i64 %warp, i32 %rest)
  br label %behind
fall:
  call void @arrive(ptr %segments, ptr %places, i64 %warps, i64 %following, i64 %warp, i32 %lanes)
  br label %behind
behind:
  %next = add i64 %warp, 1
  %more = icmp slt i64 %next, %warps
  br i1 %more, label %loop, label %after
after:
  br label %search
done:
  ret i64 %s
}}
"""

_ENTRY: Final = """
define i64 @weft_emulator(i64 %which, ptr %a, i64 %b, ptr %c, i64 %d, i64 %e) {
  switch i64 %which, label %table [i64 1, label %rows i64 2, label %region i64 3, label %shared]
table:
  %address = ptrtoint ptr @handlers to i64
  ret i64 %address
rows:
  call void @rows(ptr %a, i64 %b, ptr %c, i64 %d)
  ret i64 0
region:
  %segment = call i64 @region(ptr %a)
  ret i64 %segment
shared:
  %site = ptrtoint ptr %a to i64
  %mask = ptrtoint ptr %c to i64
  %made = call i64 @shared_access(i64 %site, i64 %b, i64 %mask, i64 %d, i64 %e)
  ret i64 %made
}
"""

SYMBOL: Final = "weft_emulator"
"""The function of the object."""


def text() -> str:
    """The module. Its table of handlers is in the order of `HANDLERS`."""
    parts = [_handler(number, handler) for number, handler in enumerate(HANDLERS.values())]
    table = ", ".join(f"ptr @h{number}" for number in range(len(parts)))
    parts.append(f"@handlers = internal constant [{len(parts)} x ptr] [{table}]\n")
    parts.append(translated(shared.FUNCTIONS, shared.NUMBERS))
    return "".join(parts) + _BITS + _WARP + _REGION + _ENTRY
