"""The entry point of a kernel: claims programs of the grid and runs them; `weft.codegen.kernel` states the interface.

After each program the entry point looks at two words: whether the launch stops, and whether this thread shall
return. docs/runtime.md has the cost. It looks at the first word before each claim, too, and so does
`Faults.leave_if_stopped` inside a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from weft.codegen.cpu import amx
from weft.codegen.cpu.claims import claim
from weft.codegen.cpu.copies import Copies
from weft.codegen.cpu.streaming import fence
from weft.codegen.emit.faults import word
from weft.codegen.kernel import (
    CHUNK,
    DONE,
    LAST,
    PAUSE,
    PAUSED,
    POSITION,
    RECORD,
    SCRATCH,
    SHARES,
    SIZES,
    SLOTS,
    STOP,
    STOPPED,
    TOTAL,
)
from weft.codegen.llvm.types import I8, I32, I64, POINTER, Module, intrinsic
from weft.codegen.llvm.volatile import volatile_load


class Together(NamedTuple):
    """A function that runs several programs at once, neighbours on the axis of the grid that counts fastest: ``most``, or if
    ``least`` is not 0 any number up to that, and as many ``beside`` each of these on the next axis. It may be the function that
    runs one program, too. ``by_threads``: a grid of one row is cut into a group for each thread. Programs that sum columns read
    a part of each row of memory, and that is faster the longer the parts are (`weft.transforms.join_rows`)."""

    function: ir.Function
    most: int
    least: int = 0
    beside: int = 1
    by_threads: bool = False


def emit_entry(
    module: Module,
    symbol: str,
    program: ir.Function,
    *,
    one_by_one: bool,
    in_order: bool,
    cleared: Sequence[int] = (),
    tiles: bool = False,
    streams: bool = False,
    y_first: bool = False,
    joined: Together | None = None,
    copies: Copies | None = None,
) -> ir.Function:
    """Emit the function that the runtime calls, around ``program``, which runs one program. In kernels with atomics the runtime
    calls a guard, which calls it (`weft.codegen.cpu.exclusive`).

    ``in_order``, for kernels whose order is seen (`weft.codegen.cpu.order`), ignores the launch's shares: programs start in
    increasing order, since the one counter only grows. ``one_by_one``, for kernels whose programs may wait, ignores the caller's
    chunk, too: a program that waits would hold back the rest of its chunk. So the lowest program that has not ended is never kept
    from running by programs that wait for it.
    ``cleared`` are offsets of int64 words in scratch memory that the thread sets to 0 first, but not where it goes on after a
    pause: what a launch keeps there stays. ``tiles``: the program uses
    AMX's tile registers, which are made ready before the first program and given back after the last. ``streams``: the program
    may store past the caches; a fence makes others see that once the thread has returned.

    ``y_first``: y counts fastest, else x (`weft.codegen.cpu.order`).

    ``joined`` runs several programs at once: the ids are the first one's. Then what is claimed, counted and kept are groups of
    programs of one row of the grid, or of some rows beside each other. Where the function runs a fixed number, the last groups
    may have fewer, which run one by one. Where it runs any number, a row is cut into equal groups (`_group_size`) by the grid
    and the number of threads. So which programs are joined does not depend on who claims them.

    ``copies``: programs may update the thread's copies of arrays (`weft.codegen.cpu.copies`).

    The ids of the first program of a chunk are quotients; the others count on from there, for a division costs more than a
    small program.
    """
    entry = ir.Function(module, ir.FunctionType(I32, [POINTER, POINTER]), symbol)
    entry.attributes.add("nounwind")
    launch, thread = entry.args
    start, fresh, look, take, divide = map(entry.append_basic_block, ("start", "fresh", "look", "take", "divide"))
    run, step, following = map(entry.append_basic_block, ("run", "step", "next"))
    endings = ("asked", "pause", "failed", "stopped", "done")
    asked, pause, failed, stopped, done = map(entry.append_basic_block, endings)
    zero, one = ir.Constant(I64, 0), ir.Constant(I64, 1)

    builder = ir.IRBuilder(start)
    record, slots = word(builder, launch, RECORD), word(builder, launch, SLOTS)
    scratch = builder.load(word(builder, thread, SCRATCH), typ=POINTER, align=8)
    if tiles:
        amx.configure(builder)
    if copies is not None:
        slots = copies.begin(builder, launch, scratch)
    order = (1, 0, 2) if y_first else (0, 1, 2)
    total, wanted, *wide = (_int64(builder, launch, i) for i in (TOTAL, CHUNK, *(SIZES[axis] for axis in order)))
    chunk = one if one_by_one else wanted
    grid = [builder.trunc(size, I32) for size in wide]
    group: ir.Value = ir.Constant(I64, 1)
    if joined is not None:
        group = _group_size(builder, chunk, wide[0], joined)
        if joined.by_threads:
            part = _part_of_thread(builder, _int64(builder, launch, SHARES), wide[0], joined)
            is_alone = builder.icmp_unsigned("==", builder.mul(wide[1], wide[2]), one)
            group = builder.select(is_alone, part, group)
        beside = ir.Constant(I64, joined.beside)
        wide[0], wide[1] = _parts(builder, wide[0], group), _parts(builder, wide[1], beside)
        chunk = _parts(builder, chunk, builder.mul(group, beside))
        total = builder.mul(builder.mul(wide[0], wide[1]), wide[2])
    sizes = [builder.trunc(size, I32) for size in wide]
    kept, kept_end = (_int64(builder, thread, i) for i in (POSITION, LAST))
    builder.store(zero, word(builder, thread, LAST), align=8)
    builder.cbranch(builder.icmp_signed("<", kept, kept_end), divide, fresh)

    builder.position_at_end(fresh)
    for offset in cleared:
        builder.store(zero, builder.gep(scratch, [ir.Constant(I64, offset)], source_etype=I8), align=8)
    builder.branch(look)

    builder.position_at_end(look)
    stops = volatile_load(builder, word(builder, record, STOP), I64, 8)
    builder.cbranch(builder.icmp_unsigned("==", stops, zero), take, stopped)

    builder.position_at_end(take)
    first, claimed_end = claim(builder, launch, thread, total, chunk, in_order=in_order)
    claims = builder.block
    builder.cbranch(builder.icmp_signed("<", first, claimed_end), divide, done)

    builder.position_at_end(divide)
    begin, last = builder.phi(I64), builder.phi(I64)
    for phi, from_kept, from_claim in ((begin, kept, first), (last, kept_end, claimed_end)):
        phi.add_incoming(from_kept, start)
        phi.add_incoming(from_claim, claims)
    rest = builder.udiv(begin, wide[0])
    quotients = (builder.urem(begin, wide[0]), builder.urem(rest, wide[1]), builder.udiv(rest, wide[1]))
    first_ids = [builder.trunc(v, I32) for v in quotients]
    builder.branch(run)

    builder.position_at_end(run)
    position = builder.phi(I64)
    position.add_incoming(begin, divide)
    ids = [builder.phi(I32) for _ in first_ids]
    for phi, value in zip(ids, first_ids, strict=True):
        phi.add_incoming(value, divide)
    here = (slots, scratch, record)
    if joined is None:
        ones = ir.Constant(I32, 1)
        status = builder.call(program, [*here, *(each[order[axis]] for each in (ids, grid) for axis in range(3)), ones])
    else:
        status = _group(builder, program, joined, builder.trunc(group, I32), here, ids, grid, order)
    builder.cbranch(builder.icmp_unsigned("==", status, ir.Constant(I32, 0)), step, failed)

    builder.position_at_end(step)
    after = builder.add(position, one)
    stop = volatile_load(builder, word(builder, record, STOP), I64, 8)
    leave = volatile_load(builder, word(builder, thread, PAUSE), I64, 8)
    builder.cbranch(builder.icmp_unsigned("==", builder.or_(stop, leave), zero), following, asked)

    builder.position_at_end(following)
    position.add_incoming(after, following)
    for phi, value in zip(ids, _counted_on(builder, ids, sizes), strict=True):
        phi.add_incoming(value, following)
    builder.cbranch(builder.icmp_signed("<", after, last), run, look)

    builder.position_at_end(asked)
    builder.cbranch(builder.icmp_unsigned("!=", stop, zero), stopped, pause)

    def leave_with(result: ir.Value) -> None:
        if copies is not None:
            copies.end(builder, launch, slots)
        if tiles:
            amx.release(builder)
        if streams:
            fence(builder)
        builder.ret(result)

    builder.position_at_end(pause)
    for at, value in ((PAUSE, zero), (POSITION, after), (LAST, last)):
        builder.store(value, word(builder, thread, at), align=8)
    leave_with(ir.Constant(I32, PAUSED))

    builder.position_at_end(failed)
    builder.store(one, word(builder, record, STOP), align=8)
    leave_with(status)
    for block, result in ((stopped, STOPPED), (done, DONE)):
        builder.position_at_end(block)
        leave_with(ir.Constant(I32, result))
    return entry


def _group_size(builder: ir.IRBuilder, chunk: ir.Value, row: ir.Value, joined: Together) -> ir.Value:
    """How many programs a group has, of ``row`` programs of which ``chunk`` are claimed at a time.

    A row that would be two halves is one group: the lines of half a row are short, and a processor fetches ahead along long
    ones. A thread then claims four times at least, instead of eight (`CHUNKS_PER_THREAD`). Not where a claim is one
    program, since there are few."""
    if not joined.least:
        return ir.Constant(I64, joined.most)
    wanted = intrinsic(builder, "umax", [chunk, ir.Constant(I64, joined.least)])
    one = ir.Constant(I64, 1)
    halves = builder.icmp_unsigned("<=", builder.lshr(row, one), chunk)
    wanted = builder.select(builder.and_(builder.icmp_unsigned(">", chunk, one), halves), row, wanted)
    return _equal_groups(builder, row, wanted, joined)


def _part_of_thread(builder: ir.IRBuilder, threads: ir.Value, row: ir.Value, joined: Together) -> ir.Value:
    """How many programs a group has where there is one for each of so many ``threads``, 0 for one, of a row that is alone in the
    grid."""
    part = _parts(builder, row, intrinsic(builder, "umax", [threads, ir.Constant(I64, 1)]))
    return _equal_groups(builder, row, intrinsic(builder, "umax", [part, ir.Constant(I64, joined.least)]), joined)


def _equal_groups(builder: ir.IRBuilder, row: ir.Value, wanted: ir.Value, joined: Together) -> ir.Value:
    """The size of equal groups of a row, of as many programs as are wanted or fewer, and at most as many as may run at once."""
    most = intrinsic(builder, "umin", [wanted, ir.Constant(I64, joined.most)])
    return _parts(builder, row, _parts(builder, row, most))


def _parts(builder: ir.IRBuilder, number: ir.Value, size: ir.Value) -> ir.Value:
    """How many parts of a size a number has, the last perhaps smaller."""
    return builder.udiv(builder.add(number, builder.sub(size, ir.Constant(I64, 1))), size)


def _group(
    builder: ir.IRBuilder,
    program: ir.Function,
    joined: Together,
    size: ir.Value,
    here: Sequence[ir.Value],
    ids: Sequence[ir.Value],
    sizes: Sequence[ir.Value],
    order: Sequence[int],
) -> ir.Value:
    """Runs a group of ``size`` programs, beside each other as many as there are, or what is left of a row: at once where it may.
    Gives the status."""
    one, beside = ir.Constant(I32, 1), ir.Constant(I32, joined.beside)
    first, second = builder.mul(ids[0], size), builder.mul(ids[1], beside)
    left, left_beside = builder.sub(sizes[0], first), builder.sub(sizes[1], second)

    def run(which: ir.Function, at: ir.Value, row: ir.Value, many: ir.Value) -> ir.Value:
        now = [at, row, *ids[2:]]
        return builder.call(which, [*here, *(each[order[axis]] for each in (now, sizes) for axis in range(3)), many])

    present = intrinsic(builder, "umin", [left, size])
    if joined.function is program:
        return run(program, first, second, present)
    several = builder.icmp_unsigned(">", present, one) if joined.least else builder.icmp_unsigned(">=", left, size)
    if joined.beside > 1:
        several = builder.and_(several, builder.icmp_unsigned(">=", left_beside, beside))
    whole, single, both = (builder.function.append_basic_block(name) for name in ("whole", "single", "both"))
    before = builder.block
    builder.cbranch(several, whole, single)
    builder.position_at_end(whole)
    all_at_once = run(joined.function, first, second, present if joined.least else size)
    end_of_whole = builder.block
    builder.branch(both)
    builder.position_at_end(single)
    at, row = builder.phi(I32), builder.phi(I32)
    for phi, begin in ((at, first), (row, second)):
        phi.add_incoming(begin, before)
    one_by_one = run(program, at, row, one)
    end, last = builder.add(first, present), builder.add(second, intrinsic(builder, "umin", [left_beside, beside]))
    following = builder.add(at, one)
    ended = builder.icmp_unsigned("==", following, end)
    next_row = builder.add(row, builder.zext(ended, I32))
    at.add_incoming(builder.select(ended, first, following), builder.block)
    row.add_incoming(next_row, builder.block)
    failed = builder.icmp_unsigned("!=", one_by_one, ir.Constant(I32, 0))
    end_of_single = builder.block
    builder.cbranch(builder.or_(builder.icmp_unsigned("==", next_row, last), failed), both, single)
    builder.position_at_end(both)
    status = builder.phi(I32)
    status.add_incoming(all_at_once, end_of_whole)
    status.add_incoming(one_by_one, end_of_single)
    return status


def _int64(builder: ir.IRBuilder, base: ir.Value, index: int) -> ir.Value:
    return builder.load(word(builder, base, index), typ=I64, align=8)


def _counted_on(builder: ir.IRBuilder, ids: Sequence[ir.Value], sizes: Sequence[ir.Value]) -> list[ir.Value]:
    """The ids of the program that follows, x fastest."""
    result: list[ir.Value] = []
    carry: ir.Value = ir.Constant(I32, 1)
    for number, size in zip(ids, sizes, strict=True):
        counted = builder.add(number, carry)
        wraps = builder.icmp_unsigned("==", counted, size)
        result.append(builder.select(wraps, ir.Constant(I32, 0), counted))
        carry = builder.zext(wraps, I32)
    return result
