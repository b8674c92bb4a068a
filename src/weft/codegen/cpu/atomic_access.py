"""Atomics of a kernel: by instructions, element by element; by plain loads and stores while the thread has all atomics to itself
(`weft.codegen.cpu.exclusive`) or has a copy of what it updates (`weft.codegen.cpu.copies`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from llvmlite import ir
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu import updates
from weft.codegen.cpu.beyond import Beyond
from weft.codegen.cpu.bounds import check_scalar
from weft.codegen.cpu.branches import either
from weft.codegen.cpu.lane_by_lane import lane_by_lane
from weft.codegen.cpu.masks import decided_by_last
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.runs import SHORTEST_RUN, mask_of, runs
from weft.codegen.cpu.updates import Atomic
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.wide_atomics import by_blocks
from weft.codegen.llvm import atomics
from weft.codegen.llvm.branches import where
from weft.codegen.llvm.masked import unknown_place
from weft.codegen.llvm.types import I1, POINTER, all_lanes, any_lane, scalar_type
from weft.ir import tile
from weft.ir.direct import operands_of
from weft.ir.types import dtype_of, layout_of


def atomic(registers: Registers, op: Atomic, index: RegisterIndex) -> ir.Value:
    """One register of an atomic; gives the old values (in all lanes, duplicates too; 0 where masked off), or zeros where
    nothing uses them."""
    builder = registers.builder
    values = [registers.vector(v, index) for v in updates.operands(op)]
    zeros = ir.Constant(values[0].type, None)
    initial = None if op.result.first_use is None else zeros

    beyond = registers.beyond.get(registers.facts.base_of[op.pointer])

    def by_instructions() -> ir.Value:
        def one(at: ir.Value, v: Sequence[ir.Value]) -> ir.Value:
            return _update(builder, op, at if beyond is None else beyond.in_array(builder, at), v)

        def lanes() -> ir.Value:
            return lane_by_lane(registers, op, index, values, one, initial)

        blocks = None if beyond is not None else by_blocks(registers, op, index, values)
        return lanes() if blocks is None else either(registers, *blocks, lanes, None)

    if registers.alone is None:
        old = by_instructions()
    else:
        plainly = _plainly(registers, op, index, values, initial)
        alone = whole = registers.alone
        if beyond is not None:
            held = partial(_is_in_copy, registers, op, index, beyond)
            alone = either(registers, beyond.copied, held, lambda: whole, I1)
        old = either(registers, alone, plainly, by_instructions, None if initial is None else initial.type)
    return zeros if initial is None else old


def _is_in_copy(registers: Registers, op: Atomic, index: RegisterIndex, beyond: Beyond) -> ir.Value:
    """Whether the thread's copy has all elements that one register updates."""
    mask, addresses = mask_of(registers, op.mask, index), registers.vector(op.pointer, index)
    return beyond.holds(registers.builder, addresses, dtype_of(op.value).itemsize, mask)


def _plainly(
    registers: Registers, op: Atomic, index: RegisterIndex, values: Sequence[ir.Value], initial: ir.Value | None
) -> Callable[[], ir.Value]:
    """What updates one register of an atomic by plain loads and stores, and gives the old values. What it needs is emitted
    now."""
    builder = registers.builder
    shape, layout = runs(registers, op.pointer), layout_of(op.pointer)
    mask = mask_of(registers, op.mask, index)
    ordering = tile.ordering_of(op)
    type_ = None if initial is None else initial.type

    def ordered(update: Callable[[], ir.Value]) -> Callable[[], ir.Value]:
        def between() -> ir.Value:
            if ordering is not None and ordering.releases:
                atomics.barrier(builder)
            old = update()
            if ordering is not None and ordering.acquires:
                atomics.barrier(builder)
            return old

        return between

    if shape.run >= SHORTEST_RUN:
        starts = [builder.inttoptr(registers.lane(op.pointer, index, start), POINTER) for start in shape.starts]
        bits = registers.target.vector_bits
        return ordered(lambda: updates.update_runs(builder, op, shape, starts, mask, values, bits))

    def in_turn(some: ir.Value | None = None, unused: ir.Value | None = None) -> ir.Value:
        def element(value: SSAValue, lane: int) -> ir.Value:
            if value is op.pointer:
                return registers.lane(value, index, lane)
            return _operand(registers, value, index, lane)

        old = updates.update_lanes(builder, op, layout, element, some, unused)
        return values[0] if old is None else old

    def diverted(some: ir.Value) -> ir.Value:
        element = scalar_type(values[0])
        place = unknown_place(builder, registers.entry.alloca(ir.ArrayType(element, layout.in_size("lane"))))
        none = values[0] if initial is None else initial
        return either(registers, any_lane(builder, some), lambda: in_turn(some, place), lambda: none, type_)

    def active_ones() -> ir.Value:
        return lane_by_lane(
            registers, op, index, values, lambda at, v: updates.update_element(builder, op, at, v), initial
        )

    if mask is None:
        return ordered(in_turn)
    if op.mask is not None and not decided_by_last(op.mask, registers.facts.axis):
        return ordered(lambda: diverted(mask))
    return ordered(lambda: either(registers, all_lanes(builder, mask), in_turn, active_ones, type_))


def _operand(registers: Registers, value: SSAValue, index: RegisterIndex, lane: int) -> ir.Value:
    """One lane of what an atomic combines with memory. Its register has been computed. Where all lanes are wanted, a load of each
    may still be cheaper than to take it out."""
    op, at = value.owner, index
    while isinstance(op, Operation) and tile.is_a(op, tile.View) and op.results[0] not in registers.buffers:
        at = registers.through(op, at)
        op = operands_of(op)[0].owner
    if registers.is_loadable(op) and op.result not in registers.buffers and _is_near(registers, op):
        return registers.load_lane(op, at, lane)
    return registers.lane(value, index, lane)


def _is_near(registers: Registers, load: tile.LoadOp) -> bool:
    """Whether each lane's address is one addition: a distance from the first lane's, or an array and a loaded index. The first
    is for integers: Zen 4 takes a float out of a register in one instruction, and an integer in two."""
    if runs(registers, load.pointer).run > 1:
        return dtype_of(load.result).is_integer
    pointer = load.pointer.owner
    if not isinstance(pointer, tile.AddPtrOp):
        return False
    offset = pointer.offset.owner
    while isinstance(offset, Operation) and (tile.is_a(offset, tile.View) or isinstance(offset, tile.CastOp)):
        offset = operands_of(offset)[0].owner
    return registers.is_loadable(offset)


def atomic_scalar(registers: Registers, op: Atomic) -> ir.Value:
    """An atomic through one pointer; gives the old value."""
    builder = registers.builder
    mask = None if op.mask is None else registers.scalar(op.mask)
    check_scalar(registers, op, mask)
    values = [registers.scalar(v) for v in updates.operands(op)]

    beyond = registers.beyond.get(registers.facts.base_of[op.pointer])

    def update() -> ir.Value:
        address = registers.scalar(op.pointer)
        place = builder.inttoptr(address, POINTER)
        if beyond is not None:
            held = beyond.holds(builder, address, dtype_of(op.value).itemsize)
            place = builder.select(held, place, beyond.in_array(builder, place))
        return _update(builder, op, place, values)

    return where(builder, mask, update, ir.Constant(values[0].type, None))


def _update(builder: ir.IRBuilder, op: Atomic, address: ir.Value, values: Sequence[ir.Value]) -> ir.Value:
    """One element of an atomic; gives its old value."""
    if isinstance(op, tile.AtomicCasOp):
        return atomics.swap_if_equal(builder, op.sem.data, address, *values)
    dtype = dtype_of(op.value)
    return atomics.read_modify_write(builder, op.kind.data, dtype, op.sem.data, address, *values)
