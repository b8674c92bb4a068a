"""Atomics without atomic instructions, while no other thread of the process runs a kernel that has any.

An atomic instruction costs some 20 cycles an element, a plain addition one, and a row of addresses is one vector. So a thread
that has all atomics to itself updates memory plainly. Whether it has is a lock of the process, `LOCK`, whose first word holds

| value | meaning |
|---|---|
| 0 | no thread is in a kernel with atomics |
| up to `MOST_SHARED` | so many threads are, and use atomic instructions |
| the address of a launch's record | one thread of that launch is, and updates plainly |

and whose word `WAITING` counts the threads that would enter. Each kernel with atomics, or with programs that wait for others,
enters and leaves in its entry point. These rules keep the lock from changing what a kernel may rely on:

1. *No waiting inside.* A kernel whose programs may wait, or that prints (Python runs then), never has the lock alone. An atomic
   in a ``while`` loop may wait, whatever its order: what it waits for may be written by a launch of another thread.
2. *A program at most.* At the start of a program a thread that has the lock alone shares it where another thread waits.
3. *One process.* Atomics with ``scope="sys"`` use atomic instructions always: memory may be shared with other processes.
4. *Waiting ends.* The other launch's program may take any time. So a thread that waits to enter leaves where its own launch
   stops, and returns to Python now and then, which handles signals and calls again.

A launch takes the lock alone where one thread runs it, or a few whose kernel does little but atomics: then one is faster than
those that send cache lines to each other, and the others leave the grid to it. `most_chunks` says how many are a few. Where each
thread updates a copy of its own (`weft.codegen.cpu.copies`), several are faster, and share the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final, TypeAlias

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Operation

from weft.codegen.cpu.cost import weight
from weft.codegen.emit.faults import word
from weft.codegen.kernel import CHUNK, CHUNKS_PER_THREAD, DONE, LAST, PAUSED, POSITION, RECORD, STOP, STOPPED, TOTAL
from weft.codegen.llvm.atomics import release_store
from weft.codegen.llvm.types import I1, I32, I64, POINTER, Module
from weft.codegen.llvm.volatile import volatile_load
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import shape_of
from weft.transforms.flags import waits

LOCK: Final = "weft_atomics"
"""The symbol of the lock, 16 words of 8 bytes that `weft.runtime.exclusion` keeps."""

WAITING: Final = 8
MOST_SHARED: Final = 4095

_LANES: Final = 16
_LOOKS: Final = 4096
"""Looks at the lock after which a thread that waits returns to Python: a tenth of a millisecond, or a few."""

_CONTENDED: Final = 20
"""How many plain accesses take as long as an atomic instruction on a line that other threads write (20 to 60 were measured)."""

_MOST_THREADS: Final = 8
"""More threads than these are faster than one in any kernel, as far as is known: it was measured with two."""

Question: TypeAlias = Callable[[ir.IRBuilder, ir.Value], ir.Value]
"""Emits a question about a launch, whose address it is given."""

_REPEATED: Final = (scf.ForOp, scf.WhileOp, tile.DotOp, tile.ScanOp)
"""Ops whose work the number of elements does not tell."""


def enters(kernel: Operation) -> bool:
    """Whether a kernel must know the lock: it has atomics, or stores and loads that others may meet by theirs."""
    return waits(kernel) or any(_is_atomic(op) for op in ops_in(kernel))


def may_be_alone(kernel: Operation) -> bool:
    """Whether a kernel may update plainly: rules 1 and 3."""
    ops = list(ops_in(kernel))
    atomics = [op for op in ops if _is_atomic(op)]
    return (
        any(shape_of(op.pointer) for op in atomics if isinstance(op, tile.AtomicRmwOp | tile.AtomicCasOp))
        and all(op.scope.data != "sys" for op in atomics if isinstance(op, tile.AtomicRmwOp | tile.AtomicCasOp))
        and not waits(kernel)
        and not any(isinstance(op, tile.PrintOp) for op in ops)
        and not any(_is_atomic(op) for loop in ops if isinstance(loop, scf.WhileOp) for op in loop.walk())
    )


def most_chunks(kernel: Operation) -> int:
    """The most chunks of a grid of the kernel that one thread runs alone sooner than several do; 1 where several are sooner.

    Alone, n elements that are accessed and 16 n that are computed take a time of n. Of t threads each takes 1 / t of that, and
    of the time of the atomic instructions: one is sooner up to ``t - 1 = atomic instructions / n``.
    """
    if any(isinstance(op, _REPEATED) for op in ops_in(kernel)):
        return 1
    atomic, alone = work(kernel)
    threads = min(_MOST_THREADS, 1 + int(_CONTENDED * atomic / alone))
    return 1 if threads == 1 else (threads + 1) * CHUNKS_PER_THREAD - 1


def work(kernel: Operation) -> tuple[int, float]:
    """How many elements a program updates atomically, and how long it takes alone, in the time of an access of an element. Loops
    count as one iteration."""
    ops = list(ops_in(kernel))
    sizes = [(prod(shape_of(op.pointer)), _is_atomic(op)) for op in ops if tile.is_access(op)]
    atomic, accessed = (sum(size for size, is_atomic in sizes if is_atomic or whole) for whole in (False, True))
    computed = sum(weight(op) * prod(shape_of(op.results[0])) for op in ops if tile.is_a(op, tile.Elementwise))
    return atomic, max(accessed + computed / _LANES, 1)


def _is_atomic(op: Operation) -> bool:
    return isinstance(op, tile.AtomicRmwOp | tile.AtomicCasOp)


def _words(builder: ir.IRBuilder) -> tuple[ir.Value, ir.Value]:
    """The addresses of the lock's two words."""
    lock = builder.module.globals.get(LOCK) or ir.GlobalVariable(builder.module, ir.ArrayType(I64, 2 * WAITING), LOCK)
    base = builder.inttoptr(builder.ptrtoint(lock, I64), POINTER)  # its own type names its words
    return base, word(builder, base, WAITING)


def _read(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.load_atomic(address, "monotonic", 8, typ=I64)


def has_alone(builder: ir.IRBuilder, record: ir.Value, has_copies: ir.Value | None = None) -> ir.Value:
    """Whether the program's thread has what it updates to itself: it ``has_copies``, or the lock alone. For the start of a
    program: there it gives way (rule 2)."""
    name, given = f"{LOCK}.has_alone", [record, ir.Constant(I1, 0) if has_copies is None else has_copies]
    if name in builder.module.globals:
        return builder.call(builder.module.globals[name], given)
    function = ir.Function(builder.module, ir.FunctionType(I1, [POINTER, I1]), name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    start, look, mine, yes, share, no = map(
        function.append_basic_block, ("start", "look", "mine", "yes", "share", "no")
    )
    inner = ir.IRBuilder(start)
    inner.cbranch(function.args[1], yes, look)
    inner.position_at_end(look)
    lock, waiting = _words(inner)
    inner.cbranch(inner.icmp_unsigned("==", _read(inner, lock), inner.ptrtoint(function.args[0], I64)), mine, no)
    inner.position_at_end(mine)
    inner.cbranch(inner.icmp_unsigned("==", _read(inner, waiting), ir.Constant(I64, 0)), yes, share)
    inner.position_at_end(yes)
    inner.ret(ir.Constant(I1, 1))
    inner.position_at_end(share)
    release_store(inner, ir.Constant(I64, 1), lock, 8)
    inner.branch(no)
    inner.position_at_end(no)
    inner.ret(ir.Constant(I1, 0))
    return builder.call(function, given)


def emit_guarded(
    module: Module, symbol: str, run: ir.Function, *, alone: bool, most: int, unless: Question | None = None
) -> None:
    """Emit the entry point of a kernel that `enters`: it enters, calls ``run``, which runs programs, and leaves.

    Where the kernel may be ``alone``, it is in a launch of at most ``most`` chunks, ``unless`` that question has the answer
    yes. A thread that finds another of its launch alone has nothing to do, unless it keeps programs that it has claimed.
    """
    run.linkage = "internal"
    run.attributes.add("alwaysinline")
    entry = ir.Function(module, ir.FunctionType(I32, [POINTER, POINTER]), symbol)
    entry.attributes.add("nounwind")
    launch, thread = entry.args
    start, look, take, seen, share, taken, other, wait, waited, away = map(
        entry.append_basic_block,
        ("start", "look", "take", "seen", "share", "taken", "other", "wait", "waited", "away"),
    )
    inside, leave_alone, leave_shared, leave, left, none = map(
        entry.append_basic_block, ("inside", "alone", "shared", "leave", "left", "none")
    )
    zero, one = ir.Constant(I64, 0), ir.Constant(I64, 1)
    builder = ir.IRBuilder(start)
    lock, waiting = _words(builder)
    record = builder.ptrtoint(word(builder, launch, RECORD), I64)
    total, chunk, kept, kept_end = (
        builder.load(word(builder, base, i), typ=I64, align=8)
        for base, i in ((launch, TOTAL), (launch, CHUNK), (thread, POSITION), (thread, LAST))
    )
    keeps = builder.icmp_signed("<", kept, kept_end)
    few = builder.mul(chunk, ir.Constant(I64, most))
    is_few = builder.icmp_signed("<=", total, few)
    if unless is not None:
        is_few = builder.and_(is_few, builder.not_(unless(builder, launch)))
    wanted = builder.select(is_few, record, one) if alone else one
    builder.branch(look)

    builder.position_at_end(look)
    held = _read(builder, lock)
    builder.cbranch(builder.icmp_unsigned("==", held, zero), take, seen)
    builder.position_at_end(take)
    free = builder.cmpxchg(lock, zero, wanted, "acquire", "monotonic")
    builder.cbranch(builder.extract_value(free, 1), inside, look)
    builder.position_at_end(seen)
    builder.cbranch(builder.icmp_unsigned("<", held, ir.Constant(I64, MOST_SHARED)), share, taken)
    builder.position_at_end(share)
    joined = builder.cmpxchg(lock, held, builder.add(held, one), "acquire", "monotonic")
    builder.cbranch(builder.extract_value(joined, 1), inside, look)
    builder.position_at_end(taken)
    ours = builder.icmp_unsigned("==", held, record)
    builder.cbranch(builder.and_(ours, builder.not_(keeps)), none, other)
    builder.position_at_end(other)
    builder.atomic_rmw("add", waiting, one, "monotonic")
    builder.branch(wait)
    builder.position_at_end(wait)
    looks = builder.phi(I64)
    looks.add_incoming(ir.Constant(I64, _LOOKS), other)
    if module.triple.startswith("x86"):
        rest = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse2.pause")
        builder.call(rest, [])
    shares = builder.icmp_unsigned("<=", _read(builder, lock), ir.Constant(I64, MOST_SHARED))
    stop = volatile_load(builder, word(builder, launch, RECORD + STOP), I64, 8)
    stops, tired = builder.icmp_unsigned("!=", stop, zero), builder.icmp_unsigned("==", looks, zero)
    looks.add_incoming(builder.sub(looks, one), wait)
    builder.cbranch(builder.or_(shares, builder.or_(stops, tired)), waited, wait)
    builder.position_at_end(waited)
    builder.atomic_rmw("sub", waiting, one, "monotonic")
    builder.cbranch(builder.or_(stops, builder.not_(shares)), away, look)
    builder.position_at_end(away)
    builder.ret(builder.select(stops, ir.Constant(I32, STOPPED), ir.Constant(I32, PAUSED)))

    builder.position_at_end(inside)
    status = builder.call(run, [launch, thread])
    builder.cbranch(builder.icmp_unsigned("==", _read(builder, lock), record), leave_alone, leave_shared)
    builder.position_at_end(leave_alone)
    release_store(builder, zero, lock, 8)
    builder.ret(status)
    builder.position_at_end(leave_shared)
    shared = _read(builder, lock)
    counted = builder.icmp_unsigned("<", builder.sub(shared, one), ir.Constant(I64, MOST_SHARED))
    builder.cbranch(
        counted, leave, left
    )  # not in a child that was forked while its thread was in here: its lock was freed
    builder.position_at_end(leave)
    fewer = builder.cmpxchg(lock, shared, builder.sub(shared, one), "release", "monotonic")
    builder.cbranch(builder.extract_value(fewer, 1), left, leave_shared)
    builder.position_at_end(left)
    builder.ret(status)
    builder.position_at_end(none)
    builder.ret(ir.Constant(I32, DONE))
