"""Small arrays that programs only update (`weft.transforms.update_targets`): each thread of a launch updates a copy of its own.

Threads that update one array send its cache lines to each other, by an instruction of some 20 cycles for each element. So one
thread alone was as fast as several (`weft.codegen.cpu.exclusive`). With copies each of them updates plainly:

| step | what a thread does |
|---|---|
| begin | fills the copy with what updates nothing: 0 for sums |
| run | programs find the copy's address in the slot of the argument |
| end | each element of the copy that has changed updates the array, by an atomic instruction |

A thread ends whenever its call returns: at the end of the grid, for a pause, after a failed assertion. Integers have the same
bits as without copies, for they may be combined in any order. Sums of floats are rounded: a launch must allow any order. A
program reads its arguments from the launch's slots, or from the thread's own in scratch memory; which of the two says whether
it updates copies.

What is copied, and what a program does where it updates elements that the copy does not have:

| target | the copy has | what is beyond it |
|---|---|---|
| types and masks limit it to a few elements | these elements | is not updated |
| any other | the whole array, if the launch knows how long it is | is updated in the array (`weft.codegen.cpu.beyond`) |

A launch has copies if several threads share it and each has at least `_WORTH` elements to access for each element of a copy. All
threads merge into the same lines, so what counts is the work of one thread.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from llvmlite import ir
from xdsl.dialects import func

from weft.codegen.cpu.beyond import Beyond, beyond
from weft.codegen.cpu.exclusive import work
from weft.codegen.emit.faults import word
from weft.codegen.kernel import CHUNK, CHUNKS_PER_THREAD, RECORD, SLOTS, TOTAL
from weft.codegen.llvm import atomics
from weft.codegen.llvm.types import I1, I8, I64, POINTER, any_lane, splat, storage_type
from weft.transforms.update_targets import Target, targets_of

MOST_BYTES: Final = 256 << 10
"""The most bytes of a thread's copies: a part of a second cache."""

_WORTH: int = 64
"""From 32 on two threads with copies were faster than one alone, for 1,024 to 65,536 elements (docs/benchmarks/indices.md)."""

_LINE: Final = 64


class _Place(NamedTuple):
    """Where a target lies in an array or in its copy: the address of the first line, and how many bytes follow."""

    start: ir.Value
    size: ir.Value


@dataclass(frozen=True)
class Copies:
    """The copies of a kernel with ``slots`` arguments: of the ``limited`` targets, and of those ``measured`` by launches, which
    state in two more slots for each its first byte and the one past its last. ``work`` is that of a program. ``at`` is where the
    thread's slots and then its copies begin in scratch memory."""

    limited: tuple[Target, ...]
    measured: tuple[Target, ...]
    slots: int
    work: float
    at: int = 0

    @classmethod
    def of(cls, kernels: Sequence[func.FuncOp], *, reassociate: bool = False) -> Self | None:
        """The copies of a kernel, given all functions that run its programs; None where it has none. ``reassociate``: floats may
        be added up in any order."""
        kernel, *others = kernels
        targets = targets_of(kernel, reassociate=reassociate)
        if not targets or any(targets_of(other, reassociate=reassociate) != targets for other in others):
            return None
        limited = tuple(target for target in targets if _bytes(target) <= MOST_BYTES // len(targets))
        measured = tuple(target for target in targets if target not in limited)
        _, done = work(kernel)
        return cls(limited, measured, len(kernel.body.block.args), done)

    @property
    def size(self) -> int:
        """Bytes of scratch memory."""
        ends = 2 * _LINE * len(self.measured)
        return self._slots_size + (MOST_BYTES + ends if self.measured else self._limited_size)

    @property
    def _slots_size(self) -> int:
        return _aligned(8 * (self.slots + 2 * len(self.measured)))

    @property
    def _limited_size(self) -> int:
        return sum(_bytes(target) for target in self.limited)

    def bounds(self, target: Target) -> tuple[int, int]:
        """The slots that state where a measured target begins and ends."""
        first = self.slots + 2 * self.measured.index(target)
        return first, first + 1

    def wanted(self, builder: ir.IRBuilder, launch: ir.Value) -> ir.Value:
        """Whether a launch has copies."""
        known = builder.module.globals.get(_WANTED) or self._emit_wanted(builder.module)
        return builder.call(known, [launch])

    def _emit_wanted(self, module: ir.Module) -> ir.Function:
        function, builder = _function(module, _WANTED, I1, [POINTER])
        (launch,) = function.args
        total, chunk = (builder.load(word(builder, launch, i), typ=I64, align=8) for i in (TOTAL, CHUNK))
        yes = builder.icmp_signed("<", chunk, total)
        elements: ir.Value = ir.Constant(I64, sum(_bytes(target) // target.dtype.itemsize for target in self.limited))
        left: ir.Value = ir.Constant(I64, MOST_BYTES - self._limited_size)
        slots = word(builder, launch, SLOTS)
        for target in self.measured:
            low, high = (builder.load(word(builder, slots, i), typ=I64, align=8) for i in self.bounds(target))
            size = builder.sub(high, low)
            off = builder.and_(low, ir.Constant(I64, target.dtype.itemsize - 1))
            for fails in (
                builder.icmp_unsigned("==", size, ir.Constant(I64, 0)),
                builder.icmp_unsigned("!=", off, ir.Constant(I64, 0)),
                builder.icmp_unsigned(">", size, left),
            ):
                yes = builder.and_(yes, builder.not_(fails))
            left = builder.sub(left, size)
            elements = builder.add(elements, builder.udiv(size, ir.Constant(I64, target.dtype.itemsize)))
        done = builder.mul(chunk, ir.Constant(I64, max(1, int(CHUNKS_PER_THREAD * self.work))))
        builder.ret(builder.and_(yes, builder.icmp_signed(">=", done, builder.mul(elements, ir.Constant(I64, _WORTH)))))
        return function

    def begin(self, builder: ir.IRBuilder, launch: ir.Value, scratch: ir.Value) -> ir.Value:
        """Makes the thread's copies, if there shall be any. Gives where programs find their slots."""
        function, inner = _function(builder.module, _BEGIN, POINTER, [POINTER, POINTER])
        slots = word(inner, function.args[0], SLOTS)
        with inner.if_then(inner.not_(self.wanted(inner, function.args[0]))):
            inner.ret(slots)
        own = inner.gep(function.args[1], [ir.Constant(I64, self.at)], source_etype=I8)
        for i in range(self.slots):
            inner.store(_slot(inner, slots, i), word(inner, own, i), align=8)
        free = inner.add(inner.ptrtoint(own, I64), ir.Constant(I64, self._slots_size))
        for target in self.limited + self.measured:
            array = self._place(inner, target, slots)
            moved = inner.sub(free, array.start)
            nothing = splat(target.identity, _line_type(target))
            with _lines(inner, free, array.size) as (line, _):
                inner.store(nothing, line, align=_LINE)
            for i in (target.slot, *(self.bounds(target) if target in self.measured else ())):
                inner.store(inner.add(_slot(inner, slots, i), moved), word(inner, own, i), align=8)
            free = inner.add(free, array.size)
        inner.ret(own)
        return builder.call(function, [launch, scratch])

    def _place(self, builder: ir.IRBuilder, target: Target, slots: ir.Value) -> _Place:
        """Where a target lies, by the launch's slots or the thread's. Array and copy are such a distance apart that an address is
        as aligned in the copy as it may be known to be."""
        if target in self.limited:
            start = builder.add(_slot(builder, slots, target.slot), ir.Constant(I64, _first(target)))
            return _Place(start, ir.Constant(I64, _bytes(target)))
        low, high = (_slot(builder, slots, i) for i in self.bounds(target))
        start = builder.and_(low, ir.Constant(I64, -_LINE))
        size = builder.add(builder.sub(high, start), ir.Constant(I64, _LINE - 1))
        return _Place(start, builder.and_(size, ir.Constant(I64, -_LINE)))

    def end(self, builder: ir.IRBuilder, launch: ir.Value, slots: ir.Value) -> None:
        """Merges the copies, before the thread returns; ``slots`` is what `begin` gave."""
        known = builder.module.globals.get(_END) or self._emit_end(builder.module)
        builder.call(known, [launch, slots])

    def _emit_end(self, module: ir.Module) -> ir.Function:
        function, builder = _function(module, _END, ir.VoidType(), [POINTER, POINTER])
        launch, own = function.args
        with builder.if_then(has_copies(builder, word(builder, launch, RECORD), own)):
            for target in self.limited + self.measured:
                array, copy = (self._place(builder, target, at) for at in (word(builder, launch, SLOTS), own))
                _merge(builder, target, copy, array.start)
        builder.ret_void()
        return function


_WANTED: Final = "weft_wants_copies"
_BEGIN: Final = "weft_begin_copies"
_END: Final = "weft_end_copies"


def has_copies(builder: ir.IRBuilder, record: ir.Value, slots: ir.Value) -> ir.Value:
    """Whether a program that was given these updates copies: its slots are not the launch's."""
    return builder.icmp_unsigned("!=", slots, word(builder, record, SLOTS - RECORD))


def beyond_copies(builder: ir.IRBuilder, copies: Copies, record: ir.Value, slots: ir.Value) -> dict[int, Beyond]:
    """What a program knows of measured targets, by their slots."""
    copied, launched = has_copies(builder, record, slots), word(builder, record, SLOTS - RECORD)
    return {
        target.slot: beyond(builder, copied, slots, launched, target.slot, copies.bounds(target))
        for target in copies.measured
    }


def _merge(builder: ir.IRBuilder, target: Target, copy: _Place, array: ir.Value) -> None:
    """Updates the array by each element of the copy that has changed, and touches no other: it may not be the kernel's."""
    type_, size = _line_type(target), target.dtype.itemsize
    with _lines(builder, copy.start, copy.size) as (line, distance):
        values = builder.load(line, typ=type_, align=_LINE)
        changed = builder.icmp_unsigned("!=", values, splat(target.identity, type_))
        with builder.if_then(any_lane(builder, changed)):
            there = builder.inttoptr(builder.add(array, distance), POINTER)
            with _counted(builder, ir.Constant(I64, type_.count)) as lane:
                at = builder.mul(lane, ir.Constant(I64, size))
                value = builder.load(builder.gep(line, [at], source_etype=I8), typ=type_.element, align=size)
                with builder.if_then(builder.icmp_unsigned("!=", value, ir.Constant(type_.element, target.identity))):
                    element = builder.gep(there, [at], source_etype=I8)
                    number = builder.bitcast(value, storage_type(target.dtype, None))
                    atomics.read_modify_write(builder, target.kind, target.dtype, "acq_rel", element, number)


def _function(
    module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type]
) -> tuple[ir.Function, ir.IRBuilder]:
    """A function of the module that is called once or a few times for each thread, and a builder at its start."""
    function = ir.Function(module, ir.FunctionType(result, arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block("start"))


def _slot(builder: ir.IRBuilder, slots: ir.Value, i: int) -> ir.Value:
    return builder.load(word(builder, slots, i), typ=I64, align=8)


@contextmanager
def _lines(builder: ir.IRBuilder, start: ir.Value, size: ir.Value) -> Generator[tuple[ir.Value, ir.Value]]:
    """A loop over the cache lines from an address on, at least one; gives a pointer to each, and its distance from the first."""
    with _counted(builder, builder.udiv(size, ir.Constant(I64, _LINE))) as number:
        distance = builder.mul(number, ir.Constant(I64, _LINE))
        yield builder.inttoptr(builder.add(start, distance), POINTER), distance


@contextmanager
def _counted(builder: ir.IRBuilder, trips: ir.Value) -> Generator[ir.Value]:
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
    builder.cbranch(builder.icmp_unsigned("<", after, trips), body, done)
    builder.position_at_end(done)


def _line_type(target: Target) -> ir.VectorType:
    return ir.VectorType(ir.IntType(8 * target.dtype.itemsize), _LINE // target.dtype.itemsize)


def _first(target: Target) -> int:
    """Bytes from where the argument points to where the copy of a limited target begins: a multiple of a line."""
    return target.low * target.dtype.itemsize // _LINE * _LINE


def _bytes(target: Target) -> int:
    """Bytes of the copy of a limited target."""
    return _aligned((target.high + 1) * target.dtype.itemsize - _first(target))


def _aligned(size: int) -> int:
    return -(-size // _LINE) * _LINE
