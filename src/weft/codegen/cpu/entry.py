"""The entry point of a kernel: claims programs of the grid and runs them; `weft.codegen.kernel` states the interface.

After each program the entry point looks at two words: whether the launch stops, and whether this thread shall
return. docs/runtime.md has the cost. Inside a program, `Faults.leave_if_stopped` looks at the first word.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.emit.faults import word
from weft.codegen.kernel import DONE, PAUSED, STOP, STOPPED
from weft.codegen.llvm.types import I32, I64, POINTER, Module
from weft.codegen.llvm.volatile import volatile_load

_PAUSE, _POSITION, _LAST = range(3)
"""The words of ``thread``."""


def emit_entry(module: Module, symbol: str, program: ir.Function, *, one_by_one: bool) -> None:
    """Emit the function that the runtime calls, around ``program``, which runs one program.

    Programs start in increasing order: the counter only grows, and a thread runs what it has claimed in order. So the
    lowest program that has not ended is never kept from running by programs that wait for it. ``one_by_one``, for kernels
    whose programs may wait, ignores the caller's chunk: a program that waits would hold back the rest of its chunk.
    """
    pointers = [POINTER, POINTER, POINTER]
    entry = ir.Function(module, ir.FunctionType(I32, [*pointers, I64, I64, I32, I32, I32, POINTER, POINTER]), symbol)
    entry.attributes.add("nounwind")
    args, scratch, counter, total, chunk, nx, ny, nz, record, thread = entry.args
    names = ("start", "claim", "run", "step", "next", "asked", "pause", "failed", "stopped", "done")
    start, claim, run, step, following, asked, pause, failed, stopped, done = map(entry.append_basic_block, names)
    zero, one = ir.Constant(I64, 0), ir.Constant(I64, 1)

    if one_by_one:
        chunk = one
    builder = ir.IRBuilder(start)
    wide_x, wide_y = builder.zext(nx, I64), builder.zext(ny, I64)
    kept, kept_end = (builder.load(word(builder, thread, i), typ=I64, align=8) for i in (_POSITION, _LAST))
    builder.store(zero, word(builder, thread, _LAST), align=8)
    builder.cbranch(builder.icmp_signed("<", kept, kept_end), run, claim)

    builder.position_at_end(claim)
    first = builder.atomic_rmw("add", counter, chunk, "monotonic")
    end = builder.add(first, chunk)
    claimed_end = builder.select(builder.icmp_signed("<", end, total), end, total)
    builder.cbranch(builder.icmp_signed("<", first, total), run, done)

    builder.position_at_end(run)
    position, last = builder.phi(I64), builder.phi(I64)
    for phi, from_kept, from_claim in ((position, kept, first), (last, kept_end, claimed_end)):
        phi.add_incoming(from_kept, start)
        phi.add_incoming(from_claim, claim)
    x = builder.urem(position, wide_x)
    rest = builder.udiv(position, wide_x)
    y, z = builder.urem(rest, wide_y), builder.udiv(rest, wide_y)
    ids = [builder.trunc(v, I32) for v in (x, y, z)]
    status = builder.call(program, [args, scratch, record, *ids, nx, ny, nz])
    builder.cbranch(builder.icmp_unsigned("==", status, ir.Constant(I32, 0)), step, failed)

    builder.position_at_end(step)
    after = builder.add(position, one)
    stop = volatile_load(builder, word(builder, record, STOP), I64, 8)
    leave = volatile_load(builder, word(builder, thread, _PAUSE), I64, 8)
    builder.cbranch(builder.icmp_unsigned("==", builder.or_(stop, leave), zero), following, asked)

    builder.position_at_end(following)
    position.add_incoming(after, following)
    last.add_incoming(last, following)
    builder.cbranch(builder.icmp_signed("<", after, last), run, claim)

    builder.position_at_end(asked)
    builder.cbranch(builder.icmp_unsigned("!=", stop, zero), stopped, pause)

    builder.position_at_end(pause)
    for at, value in ((_PAUSE, zero), (_POSITION, after), (_LAST, last)):
        builder.store(value, word(builder, thread, at), align=8)
    builder.ret(ir.Constant(I32, PAUSED))

    builder.position_at_end(failed)
    builder.store(one, word(builder, record, STOP), align=8)
    builder.ret(status)
    for block, result in ((stopped, STOPPED), (done, DONE)):
        builder.position_at_end(block)
        builder.ret(ir.Constant(I32, result))
