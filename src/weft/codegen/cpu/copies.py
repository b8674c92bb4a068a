"""Small arrays that programs only update (`weft.transforms.update_targets`): each thread of a launch updates a copy of its own.

Threads that update one array send its cache lines to each other, by an instruction of some 20 cycles for each element. So one
thread alone was as fast as several (`weft.codegen.cpu.exclusive`). With copies each of them updates plainly:

| step | what a thread does |
|---|---|
| begin | fills the copy with what updates nothing: 0 for sums |
| run | programs find the copy's address in the slot of the argument |
| end | each element of the copy that has changed updates the array, by an atomic instruction |

A thread ends whenever its call returns: at the end of the grid, for a pause, after a failed assertion. Results have the same bits
as without copies, for integers may be combined in any order. A program reads its arguments from the launch's slots, or from the
thread's own in scratch memory; which of the two says whether it updates copies.

A launch has copies if several threads share it and each has at least `_WORTH` elements to access for each element of a copy. All
threads merge into the same lines, so what counts is the work of one thread.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self

from llvmlite import ir
from xdsl.dialects import func

from weft.codegen.cpu.exclusive import work
from weft.codegen.emit.faults import word
from weft.codegen.kernel import CHUNK, CHUNKS_PER_THREAD, RECORD, SLOTS, TOTAL
from weft.codegen.llvm import atomics
from weft.codegen.llvm.types import I8, I64, POINTER, any_lane, splat
from weft.transforms.update_targets import Target, targets_of

MOST_BYTES: Final = 256 << 10
"""The most bytes of a thread's copies: a part of a second cache."""

_WORTH: int = 64
"""From 32 on two threads with copies were faster than one alone, for 1,024 to 65,536 elements (docs/benchmarks.md)."""
_BEGIN: Final = "weft_begin_copies"
_END: Final = "weft_end_copies"
_LINE: Final = 64


@dataclass(frozen=True)
class Copies:
    """The copies of a kernel with ``slots`` arguments. ``at`` is where the thread's slots and then its copies begin in scratch
    memory. ``least`` is the least chunk of programs of a launch that has copies."""

    targets: tuple[Target, ...]
    slots: int
    least: int
    at: int = 0

    @classmethod
    def of(cls, kernels: Sequence[func.FuncOp]) -> Self | None:
        """The copies of a kernel, given all functions that run its programs; None where it has none."""
        kernel, *others = kernels
        targets = targets_of(kernel)
        if not targets or any(targets_of(other) != targets for other in others):
            return None
        if sum(_bytes(target) for target in targets) > MOST_BYTES:
            return None
        elements = sum(_bytes(target) // target.dtype.itemsize for target in targets)
        _, done = work(kernel)
        return cls(targets, len(kernel.body.block.args), max(1, -(-_WORTH * elements // int(CHUNKS_PER_THREAD * done))))

    @property
    def size(self) -> int:
        """Bytes of scratch memory."""
        return _aligned(8 * self.slots) + sum(_bytes(target) for target in self.targets)

    def wanted(self, builder: ir.IRBuilder, launch: ir.Value) -> ir.Value:
        """Whether a launch has copies."""
        total, chunk = (builder.load(word(builder, launch, i), typ=I64, align=8) for i in (TOTAL, CHUNK))
        shared = builder.icmp_signed("<", chunk, total)
        return builder.and_(shared, builder.icmp_signed(">=", chunk, ir.Constant(I64, self.least)))

    def begin(self, builder: ir.IRBuilder, launch: ir.Value, scratch: ir.Value) -> ir.Value:
        """Makes the thread's copies, if there shall be any. Gives where programs find their slots."""
        function = ir.Function(builder.module, ir.FunctionType(POINTER, [POINTER, POINTER]), _BEGIN)
        function.linkage = "internal"
        function.attributes.add("noinline")
        start, make, none = map(function.append_basic_block, ("start", "make", "none"))
        inner = ir.IRBuilder(start)
        inner.cbranch(self.wanted(inner, function.args[0]), make, none)
        inner.position_at_end(none)
        slots = word(inner, function.args[0], SLOTS)
        inner.ret(slots)
        inner.position_at_end(make)
        slots = word(inner, function.args[0], SLOTS)
        own = inner.gep(function.args[1], [ir.Constant(I64, self.at)], source_etype=I8)
        for i in range(self.slots):
            inner.store(inner.load(word(inner, slots, i), typ=I64, align=8), word(inner, own, i), align=8)
        offset = _aligned(8 * self.slots)
        for target in self.targets:
            copy = inner.gep(own, [ir.Constant(I64, offset)], source_etype=I8)
            nothing = splat(target.identity, _line_type(target))
            with _lines(inner, copy, _bytes(target)) as (line, _):
                inner.store(nothing, line, align=_LINE)
            base = inner.sub(inner.ptrtoint(copy, I64), ir.Constant(I64, _first(target)))
            inner.store(base, word(inner, own, target.slot), align=8)
            offset += _bytes(target)
        inner.ret(own)
        return builder.call(function, [launch, scratch])

    def end(self, builder: ir.IRBuilder, launch: ir.Value, slots: ir.Value) -> None:
        """Merges the copies, before the thread returns; ``slots`` is what `begin` gave."""
        known = builder.module.globals.get(_END) or self._emit_end(builder.module)
        builder.call(known, [launch, slots])

    def _emit_end(self, module: ir.Module) -> ir.Function:
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, POINTER]), _END)
        function.linkage = "internal"
        function.attributes.add("noinline")
        start, merge, done = map(function.append_basic_block, ("start", "merge", "done"))
        builder = ir.IRBuilder(start)
        launch, own = function.args
        builder.cbranch(has_copies(builder, word(builder, launch, RECORD), own), merge, done)
        builder.position_at_end(merge)
        for target in self.targets:
            base, moved = (
                builder.load(word(builder, at, target.slot), typ=I64, align=8)
                for at in (word(builder, launch, SLOTS), own)
            )
            first = ir.Constant(I64, _first(target))
            array, copy = (builder.inttoptr(builder.add(each, first), POINTER) for each in (base, moved))
            _merge(builder, target, copy, array)
        builder.branch(done)
        builder.position_at_end(done)
        builder.ret_void()
        return function


def has_copies(builder: ir.IRBuilder, record: ir.Value, slots: ir.Value) -> ir.Value:
    """Whether a program that was given these updates copies: its slots are not the launch's."""
    return builder.icmp_unsigned("!=", slots, word(builder, record, SLOTS - RECORD))


def _merge(builder: ir.IRBuilder, target: Target, copy: ir.Value, array: ir.Value) -> None:
    """Updates the array by each element of the copy that has changed, and touches no other: it may not be the kernel's."""
    type_, size = _line_type(target), target.dtype.itemsize
    with _lines(builder, copy, _bytes(target)) as (line, distance):
        values = builder.load(line, typ=type_, align=_LINE)
        changed = builder.icmp_unsigned("!=", values, splat(target.identity, type_))
        with builder.if_then(any_lane(builder, changed)):
            there = builder.gep(array, [distance], source_etype=I8)
            with _counted(builder, type_.count) as lane:
                at = builder.mul(lane, ir.Constant(I64, size))
                value = builder.load(builder.gep(line, [at], source_etype=I8), typ=type_.element, align=size)
                with builder.if_then(builder.icmp_unsigned("!=", value, ir.Constant(type_.element, target.identity))):
                    element = builder.gep(there, [at], source_etype=I8)
                    atomics.read_modify_write(builder, target.kind, target.dtype, "acq_rel", element, value)


@contextmanager
def _lines(builder: ir.IRBuilder, start: ir.Value, size: int) -> Generator[tuple[ir.Value, ir.Value]]:
    """A loop over cache lines; gives the address of each and how far it is from the first."""
    with _counted(builder, size // _LINE) as number:
        distance = builder.mul(number, ir.Constant(I64, _LINE))
        yield builder.gep(start, [distance], source_etype=I8), distance


@contextmanager
def _counted(builder: ir.IRBuilder, trips: int) -> Generator[ir.Value]:
    """A loop of at least one iteration; gives its counter."""
    before = builder.block
    body, done = (builder.append_basic_block(name) for name in ("again", "through"))
    builder.branch(body)
    builder.position_at_end(body)
    counter = builder.phi(I64)
    counter.add_incoming(ir.Constant(I64, 0), before)
    yield counter
    after = builder.add(counter, ir.Constant(I64, 1))
    counter.add_incoming(after, builder.block)
    builder.cbranch(builder.icmp_unsigned("<", after, ir.Constant(I64, trips)), body, done)
    builder.position_at_end(done)


def _line_type(target: Target) -> ir.VectorType:
    return ir.VectorType(ir.IntType(8 * target.dtype.itemsize), _LINE // target.dtype.itemsize)


def _first(target: Target) -> int:
    """Bytes from where the argument points to where the copy begins: a multiple of a line, so that the copy's address is as
    aligned as the argument may be known to be."""
    return target.low * target.dtype.itemsize // _LINE * _LINE


def _bytes(target: Target) -> int:
    """Bytes of the copy."""
    return _aligned((target.high + 1) * target.dtype.itemsize - _first(target))


def _aligned(size: int) -> int:
    return -(-size // _LINE) * _LINE
