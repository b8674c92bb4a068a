"""What executes rows: some one after the other, or segments in the scheduler's order.

A *row* is an instruction, twelve words of 64 bits (`Row`). An operand is where its lanes begin in memory, and how many bytes
further those of the next warp are: 0 for a constant, whose 32 lanes are stored once. Two functions run rows:

- `rows`: some rows one after the other, for the warps of a mask.
- `region`: segments, that is rows and a branch at their end, in the order of the scheduler (`weft.emulator.machine.scheduler`):
  of all threads those go first whose place comes first. It returns where a segment has to do what rows cannot.

      place[segment, warp] = lanes of the warp that are at the segment, a bit each
      repeat: take the first segment where any lane is; run its rows; move its lanes to the branch's target and behind it

A handler takes a list of warps, each a word: its number, and from bit 32 on the lanes that execute. So it is called once for
many warps. Lists have `CHUNK` warps at most, whose registers stay in the nearest cache from row to row.
"""

from __future__ import annotations

import enum
from typing import Final

from weft.emulator.native.scalar import ballot, i64, ones, put32, put64, room, run, u32

CHUNK: Final = 16
"""Warps that rows are run for before the next ones."""

LANES: Final = 0xFFFFFFFF


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
    """The words of what `region` is given."""

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
ROW_BYTES: Final = 8 * ROW_WORDS
SEGMENT_BYTES: Final = 8 * SEGMENT_WORDS


def execute(first: int, count: int, warps: int, n: int, guarded: int) -> None:
    """Runs rows for a list of ``n`` warps; ``guarded`` is room for another list."""
    row = first
    end = first + count * ROW_BYTES
    while row < end:
        if i64(row, Row.GUARD):
            through = narrow(row, warps, n, guarded)
            if through:
                run(i64(row, Row.HANDLER), row, guarded, through)
        else:
            run(i64(row, Row.HANDLER), row, warps, n)
        row += ROW_BYTES


def narrow(row: int, warps: int, n: int, guarded: int) -> int:
    """The list of those whom a row's guard lets through, and how long it is; counts their threads."""
    guard = i64(row, Row.GUARD)
    flip = -i64(row, Row.NEGATED)
    count = 0
    threads = 0
    for i in range(n):
        word = i64(warps, i)
        bits = (ballot(guard, word & LANES) ^ flip) & (word >> 32) & LANES
        put64(guarded, count, word & LANES | bits << 32)
        count += 1 if bits else 0
        threads += ones(bits)
    put64(row, Row.THREADS, i64(row, Row.THREADS) + threads)
    return count


def rows(first: int, count: int, mask: int, warps: int) -> None:
    """Runs rows for the threads of a mask, a byte each."""
    listed = room(CHUNK)
    guarded = room(CHUNK)
    n = 0
    for warp in range(warps):
        bits = ballot(mask, warp)
        put64(listed, n, warp | bits << 32)
        n += 1 if bits else 0
        if n == CHUNK:
            execute(first, count, listed, n, guarded)
            n = 0
    if n:
        execute(first, count, listed, n, guarded)


def region(work: int) -> None:
    """Runs segments until one comes that is more than rows, or as many steps have been taken as are allowed."""
    segments = i64(work, Work.SEGMENTS)
    limit = i64(work, Work.LIMIT)
    budget = i64(work, Work.BUDGET)
    steps = i64(work, Work.STEPS)
    allowed = i64(work, Work.ALLOWED)
    listed = room(CHUNK)
    guarded = room(CHUNK)
    number = 0
    while number < limit:
        segment = segments + number * SEGMENT_BYTES
        if not i64(segment, Segment.PRESENT):
            number += 1
            continue
        if not i64(segment, Segment.NATIVE) or budget < 0 or steps >= allowed:
            break
        put64(segment, Segment.PRESENT, 0)
        steps += i64(segment, Segment.LENGTH)
        budget -= i64(segment, Segment.LENGTH) * visit(work, segment, number, listed, guarded)
        target = i64(segment, Segment.TARGET)
        following = i64(segment, Segment.FOLLOWING)
        if 0 <= target < number:
            number = target
        if 0 <= following < number:
            number = following
    put64(work, Work.BUDGET, budget)
    put64(work, Work.STEPS, steps)


def visit(work: int, segment: int, number: int, listed: int, guarded: int) -> int:
    """Runs a segment for all threads that are at it, and moves them on; how many warps that were."""
    segments = i64(work, Work.SEGMENTS)
    places = i64(work, Work.PLACES)
    warps = i64(work, Work.WARPS)
    first = i64(segment, Segment.ROWS)
    count = i64(segment, Segment.COUNT)
    guard = i64(segment, Segment.GUARD)
    flip = -i64(segment, Segment.NEGATED)
    target = i64(segment, Segment.TARGET)
    following = i64(segment, Segment.FOLLOWING)
    here = places + 4 * warps * number
    there = places + 4 * warps * target
    behind = places + 4 * warps * following
    made = 0
    threads = 0
    taken = 0
    warp = 0
    while warp < warps:
        n = 0
        while warp < warps and n < CHUNK:
            bits = u32(here, warp)
            put64(listed, n, warp | bits << 32)
            put32(here, warp, 0)
            n += 1 if bits else 0
            threads += ones(bits)
            warp += 1
        if not n:
            break
        made += n
        execute(first, count, listed, n, guarded)
        if guard:
            taken += part(guard, flip, there, behind, listed, n)
        else:
            send(there if target >= 0 else behind, listed, n)
    if not guard:
        taken = threads if target >= 0 else 0
    put64(segment, Segment.WARPS, i64(segment, Segment.WARPS) + made)
    put64(segment, Segment.THREADS, i64(segment, Segment.THREADS) + threads)
    put64(segment, Segment.TAKEN, i64(segment, Segment.TAKEN) + taken)
    if taken:
        put64(segments + target * SEGMENT_BYTES, Segment.PRESENT, 1)
    if threads - taken:
        put64(segments + following * SEGMENT_BYTES, Segment.PRESENT, 1)
    return made


def part(guard: int, flip: int, there: int, behind: int, listed: int, n: int) -> int:
    """Lets the lanes of a list whose guard lets them through join those ``there``, and the others those ``behind``; how many
    went through."""
    through = 0
    for i in range(n):
        word = i64(listed, i)
        at = word & LANES
        bits = word >> 32 & LANES
        going = bits & (ballot(guard, at) ^ flip)
        put32(there, at, u32(there, at) | going)
        put32(behind, at, u32(behind, at) | bits & ~going)
        through += ones(going)
    return through


def send(there: int, listed: int, n: int) -> None:
    """Lets the lanes of a list join those ``there``."""
    for i in range(n):
        word = i64(listed, i)
        at = word & LANES
        put32(there, at, u32(there, at) | word >> 32)


FUNCTIONS: Final = (narrow, execute, rows, part, send, visit, region)
"""What is translated."""

NUMBERS: Final = {
    **{f"{words.__name__}.{word.name}": int(word) for words in (Row, Segment, Work) for word in words},
    "CHUNK": CHUNK,
    "LANES": LANES,
    "ROW_BYTES": ROW_BYTES,
    "SEGMENT_BYTES": SEGMENT_BYTES,
}
"""The numbers that the functions name."""
