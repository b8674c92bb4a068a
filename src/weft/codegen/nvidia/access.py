"""Accesses to global memory: one instruction for as many neighbouring elements as are known to be neighbours.

The registers of a thread are grouped by axis analysis: elements that follow one another in memory, start at a multiple of the
group's size, and share one mask value make one access of up to 128 bits (`groups`). A register that holds a copy is loaded
once and never stored; of threads that hold copies the first stores.

    what                       how
    plain, no mask             LLVM's load and store, which it may move by its rules
    masked, or with hints      inline assembly under a predicate: ``@p ld.global.v4.b32``
    volatile, release, atomic  an element at a time, with the order of the memory model

A scalar is stored, or accessed by an atomic or volatile load, by thread 0; an element of a tile by the first thread that holds
it. What such an access gives is told to all threads with copies through shared memory: they must not differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llvmlite import ir
from xdsl.ir import Operation

from weft.codegen.emit.element import Element, element_of_value
from weft.codegen.llvm.types import I8, I16, I32, I64
from weft.codegen.nvidia import atomics, instructions
from weft.codegen.nvidia.addresses import Address, address_of, behind, plain
from weft.codegen.nvidia.files import File, length, of_scalars, scalar, vector_of
from weft.codegen.nvidia.threads import Threads, thread_columns
from weft.ir import tile
from weft.ir.types import layout_of, shape_of
from weft.layout import LinearLayout
from weft.layout.algebra import f2
from weft.transforms.nvidia.groups import Groups, groups
from weft.transforms.nvidia.scratch import scratch_of, told_bytes

_GLOBAL_POINTER: Final = ir.PointerType(addrspace=instructions.GLOBAL)


def load(threads: Threads, op: tile.LoadOp) -> None:
    """Loads a tile, or a scalar, which all threads load."""
    if op.volatile is not None:
        _load_volatile(threads, op)
    elif not shape_of(op.pointer):
        threads.scalars[op.result] = _load_scalar(threads, op)
    else:
        threads.files[op.result] = _load_tile(threads, op)


def _load_tile(threads: Threads, op: tile.LoadOp) -> File:
    builder, element = threads.builder, element_of_value(op.result)
    layout = layout_of(op.pointer)
    found: dict[int, ir.Value] = {}
    for registers in _groups(threads, op, element).all:
        address = address_of(threads, op.pointer, registers[0])
        predicate = None if op.mask is None else scalar(builder, threads.files[op.mask], registers[0])
        other = None if op.other is None else vector_of(builder, threads.files[op.other], registers)
        vector = _load_vector(threads, op, element, address, predicate, other, len(registers))
        for place, register in enumerate(registers):
            found[register] = builder.extract_element(vector, ir.Constant(I32, place))
    return _with_copies(threads, layout, found)


def _with_copies(threads: Threads, layout: LinearLayout, found: dict[int, ir.Value]) -> File:
    """The file of a layout from its different registers."""
    copies = layout.duplicate_mask("register")
    return of_scalars(threads.builder, [found[r & ~copies] for r in range(layout.in_size("register"))])


def _groups(
    threads: Threads, op: tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp | tile.AtomicCasOp, element: Element
) -> Groups:
    axis = threads.facts.axis
    mask = None if op.mask is None else axis[op.mask]
    return groups(layout_of(op.pointer), 8 * element.size, axis[op.pointer], mask)


def _load_scalar(threads: Threads, op: tile.LoadOp) -> ir.Value:
    element = element_of_value(op.result)
    predicate = None if op.mask is None else threads.scalar(op.mask)
    other = None
    if op.other is not None:
        other = _splat(threads, threads.scalar(op.other))
    vector = _load_vector(threads, op, element, (threads.scalar(op.pointer), 0), predicate, other, 1)
    return threads.builder.extract_element(vector, ir.Constant(I32, 0))


def _splat(threads: Threads, value: ir.Value) -> ir.Value:
    return of_scalars(threads.builder, [value])[0]


def _load_vector(
    threads: Threads,
    op: tile.LoadOp,
    element: Element,
    address: Address,
    predicate: ir.Value | None,
    other: ir.Value | None,
    size: int,
) -> ir.Value:
    """``size`` elements from ``address``, as a vector in registers; ``other`` (or zeros) where the predicate is false."""
    builder = threads.builder
    storage = element.storage_type(size)
    form = Form.of(element.size, size)
    hints = _hints(op.cache.data, op.evict.data)
    if predicate is None and not hints:
        pointer = builder.inttoptr(plain(builder, address), _GLOBAL_POINTER)
        loaded = builder.load(pointer, typ=form.type, align=element.size * size)
        return element.from_storage(builder, builder.bitcast(loaded, storage))
    initial = None if other is None else builder.bitcast(element.to_storage(builder, other), form.type)
    loaded = form.load(builder, f"ld.global{hints}", address, predicate, initial)
    return element.from_storage(builder, builder.bitcast(loaded, storage))


def store(threads: Threads, op: tile.StoreOp) -> None:
    """Stores a tile, or by thread 0 a scalar."""
    builder, element = threads.builder, element_of_value(op.value)
    if not shape_of(op.pointer):
        predicate = _thread_zero(threads)
        if op.mask is not None:
            predicate = builder.and_(predicate, threads.scalar(op.mask))
        _store_vector(
            threads, op, element, (threads.scalar(op.pointer), 0), predicate, _splat(threads, threads.scalar(op.value))
        )
        return
    layout = layout_of(op.pointer)
    holder = threads.first_copy(thread_columns(layout))
    chosen = _groups(threads, op, element)
    if op.release is not None:
        chosen = Groups((), (*chosen.inside, *chosen.across))
    for registers in chosen.all:
        mask = None if op.mask is None else scalar(builder, threads.files[op.mask], registers[0])
        predicate = _both(builder, holder, mask)
        address = address_of(threads, op.pointer, registers[0])
        vector = vector_of(builder, threads.files[op.value], registers)
        _store_vector(threads, op, element, address, predicate, vector)


def _store_vector(
    threads: Threads,
    op: tile.StoreOp,
    element: Element,
    address: Address,
    predicate: ir.Value | None,
    vector: ir.Value,
) -> None:
    builder = threads.builder
    size = length(vector)
    form = Form.of(element.size, size)
    value = builder.bitcast(element.to_storage(builder, vector), form.type)
    hints = ".release.sys" if op.release is not None else _hints(op.cache.data, op.evict.data)
    if predicate is None and not hints:
        builder.store(value, builder.inttoptr(plain(builder, address), _GLOBAL_POINTER), align=element.size * size)
        return
    name = f"st{hints}.global" if op.release is not None else f"st.global{hints}"
    form.store(builder, name, address, predicate, value)


def _load_volatile(threads: Threads, op: tile.LoadOp) -> None:
    """Each element by itself, acquiring; a scalar by thread 0."""
    builder, element = threads.builder, element_of_value(op.result)
    form = Form.of(element.size, 1)

    def one(address: Address, mask: ir.Value | None, other: ir.Value | None) -> ir.Value:
        initial = None if other is None else builder.bitcast(element.to_storage(builder, other), form.type)
        loaded = form.load(builder, "ld.acquire.sys.global", address, mask, initial)
        return builder.bitcast(loaded, element.storage_type(None))

    if not shape_of(op.pointer):
        first = _thread_zero(threads)
        mask = first if op.mask is None else builder.and_(first, threads.scalar(op.mask))
        other = None if op.other is None else threads.scalar(op.other)
        threads.scalars[op.result] = publish(threads, op, element, one((threads.scalar(op.pointer), 0), mask, other))
        return
    found: dict[int, ir.Value] = {}
    layout = layout_of(op.pointer)
    holder = threads.first_copy(thread_columns(layout))
    copies = layout.duplicate_mask("register")
    for register in range(layout.in_size("register")):
        if register & copies:
            continue
        mask = _both(builder, holder, None if op.mask is None else scalar(builder, threads.files[op.mask], register))
        other = None if op.other is None else scalar(builder, threads.files[op.other], register)
        found[register] = one(address_of(threads, op.pointer, register), mask, other)
    threads.files[op.result] = _told(threads, op, element, found)


def atomic(threads: Threads, op: tile.AtomicRmwOp | tile.AtomicCasOp) -> None:
    """Each element by the first thread that holds it; a scalar by thread 0."""
    builder, element = threads.builder, element_of_value(op.value)
    values = [op.expected, op.value] if isinstance(op, tile.AtomicCasOp) else [op.value]
    if not shape_of(op.pointer):
        condition = _thread_zero(threads)
        if op.mask is not None:
            condition = builder.and_(condition, threads.scalar(op.mask))
        old = atomics.atomic(threads, op, threads.scalar(op.pointer), [threads.scalar(v) for v in values], condition)
        threads.scalars[op.result] = publish(threads, op, element, old)
        return
    layout = layout_of(op.pointer)
    holder = threads.first_copy(thread_columns(layout))
    copies = layout.duplicate_mask("register")
    found: dict[int, ir.Value] = {}
    for register in range(layout.in_size("register")):
        if register & copies:
            continue
        condition = _both(
            builder, holder, None if op.mask is None else scalar(builder, threads.files[op.mask], register)
        )
        operands = [scalar(builder, threads.files[v], register) for v in values]
        address = plain(builder, address_of(threads, op.pointer, register))
        found[register] = element.to_storage(builder, atomics.atomic(threads, op, address, operands, condition))
    threads.files[op.result] = _told(threads, op, element, found)


def _thread_zero(threads: Threads) -> ir.Value:
    return threads.entry.icmp_unsigned("==", threads.thread, ir.Constant(I32, 0))


def publish(threads: Threads, op: Operation, element: Element, value: ir.Value) -> ir.Value:
    """Thread 0's value in all threads, through the op's scratch; ``value`` is as memory has it."""
    builder = threads.builder
    pointer = threads.shared_address(ir.Constant(I32, 0), scratch_of(op))
    with builder.if_then(_thread_zero(threads)):
        builder.store(value, pointer, align=element.size)
    instructions.barrier(builder, "block")
    return element.from_storage(builder, builder.load(pointer, typ=value.type, align=element.size))


def _told(
    threads: Threads,
    op: tile.LoadOp | tile.AtomicRmwOp | tile.AtomicCasOp,
    element: Element,
    found: dict[int, ir.Value],
) -> File:
    """The file of a tile whose elements, as memory has them, the first thread that holds each has read: threads with copies are
    told through the op's scratch, where elements lie in their order."""
    builder, layout = threads.builder, layout_of(op.pointer)
    if told_bytes(op):
        columns = thread_columns(layout)
        offset = threads.linear([column * element.size for column in columns])
        pointers = {
            register: threads.shared_address(
                offset, f2.apply(layout.columns("register"), register) * element.size + scratch_of(op)
            )
            for register in found
        }
        holder = threads.first_copy(columns)
        assert holder is not None, "a tile without copies has nothing to tell"
        with builder.if_then(holder):
            for register, value in found.items():
                builder.store(value, pointers[register], align=element.size)
        instructions.barrier(builder, "block")
        found = {
            register: builder.load(pointers[register], typ=value.type, align=element.size)
            for register, value in found.items()
        }
    values = {register: element.from_storage(builder, value) for register, value in found.items()}
    return _with_copies(threads, layout, values)


def _both(builder: ir.IRBuilder, first: ir.Value | None, second: ir.Value | None) -> ir.Value | None:
    """Both conditions; None is one that always holds."""
    if first is None or second is None:
        return first if second is None else second
    return builder.and_(first, second)


def _hints(cache: str, evict: str) -> str:
    """The qualifiers of a plain access: where it is cached, or else how long."""
    if evict:
        return f".L1::{evict}"
    return cache


@dataclass(frozen=True)
class Form:
    """How an access of some bits is spelled: ``type`` in LLVM, ``suffix`` in PTX, one ``letter`` and type for each of ``count``
    registers."""

    type: ir.Type
    suffix: str
    letter: str
    count: int

    @staticmethod
    def of(size: int, count: int) -> Form:
        """The form of an access of ``count`` elements of ``size`` bytes. Its registers are no wider than an element or 32 bits:
        to pack two words into one of 64 bits takes four instructions."""
        bits, word = 8 * size * count, max(32, 8 * size)
        if bits <= word:
            letter = {8: "h", 16: "h", 32: "r", 64: "l"}[bits]
            return Form({8: I8, 16: I16, 32: I32, 64: I64}[bits], f".b{bits}", letter, 1)
        words = bits // word
        letter, type_ = ("l", I64) if word == 64 else ("r", I32)
        return Form(ir.VectorType(type_, words), f".v{words}.b{word}", letter, words)

    @property
    def _register(self) -> ir.Type:
        """The type of a register in assembly: bytes travel in 16 bits."""
        return {"h": I16, "r": I32, "l": I64}[self.letter]

    def _parts(self, builder: ir.IRBuilder, value: ir.Value) -> list[ir.Value]:
        if self.count > 1:
            return [builder.extract_element(value, ir.Constant(I32, i)) for i in range(self.count)]
        return [builder.zext(value, self._register) if value.type != self._register else value]

    def _list(self, first: int) -> str:
        names = ", ".join(f"${first + i}" for i in range(self.count))
        return f"{{{names}}}" if self.count > 1 else names

    def load(
        self, builder: ir.IRBuilder, name: str, address: Address, predicate: ir.Value | None, initial: ir.Value | None
    ) -> ir.Value:
        """The load ``name`` under a predicate; ``initial``, or zeros, where it is false."""
        n = self.count
        operands: list[ir.Value] = [address[0]]
        constraints = [f"=&{self.letter}"] * n + ["l"]
        text = ""
        if predicate is not None:
            operands.append(predicate)
            constraints.append("b")
            width = {"h": 16, "r": 32, "l": 64}[self.letter]
            for i, part in enumerate([None] * n if initial is None else self._parts(builder, initial)):
                if part is None:
                    text += f"mov.b{width} ${i}, 0;\n\t"
                else:
                    text += f"mov.b{width} ${i}, ${n + len(operands)};\n\t"
                    operands.append(part)
                    constraints.append(self.letter)
            text += f"@${n + 1} "
        text += f"{name}{self.suffix} {self._list(0)}, [${n}{behind(address)}];"
        result = self._register if n == 1 else ir.LiteralStructType([self._register] * n)
        found = instructions.assembly(builder, result, text, ",".join(constraints), operands)
        if n == 1:
            return builder.trunc(found, self.type) if self.type != self._register else found
        parts = [builder.extract_value(found, i) for i in range(n)]
        return of_scalars(builder, parts)[0]

    def store(
        self, builder: ir.IRBuilder, name: str, address: Address, predicate: ir.Value | None, value: ir.Value
    ) -> None:
        """The store ``name`` under a predicate."""
        operands = [address[0], *self._parts(builder, value)]
        constraints = ["l"] + [self.letter] * self.count
        text = f"{name}{self.suffix} [$0{behind(address)}], {self._list(1)};"
        if predicate is not None:
            text = f"@${len(operands)} {text}"
            operands.append(predicate)
            constraints.append("b")
        instructions.assembly(builder, ir.VoidType(), text, ",".join([*constraints, "~{memory}"]), operands)
