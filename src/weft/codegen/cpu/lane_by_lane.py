"""Accesses that go element by element: those that other programs watch (`weft.codegen.llvm.atomics`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from weft.codegen.cpu.bounds import check
from weft.codegen.cpu.masks import distinct
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import I32, POINTER, shuffle
from weft.ir import tile
from weft.ir.types import layout_of


def lane_by_lane(
    registers: Registers,
    op: tile.Access,
    index: RegisterIndex,
    values: Sequence[ir.Value],
    one: Callable[[ir.Value, Sequence[ir.Value]], ir.Value | None],
    initial: ir.Value | None = None,
) -> ir.Value:
    """``one(address, elements of the values)`` for each active lane in order, duplicates left out. Gives the vector of
    the results: ``initial`` in the other lanes, in a duplicate what its original has; without ``initial`` nothing of
    use."""
    builder = registers.builder
    layout = layout_of(op.pointer)
    lanes = layout.in_size("lane")
    mask = None if op.mask is None else registers.vector(op.mask, index)
    addresses = registers.vector(op.pointer, index)
    check(registers, op, index, mask)
    mask = distinct(builder, layout, mask)
    result = ir.Constant(I32, 0) if initial is None else registers.entry.alloca(initial.type)
    if initial is not None:
        builder.store(initial, result)
    with registers.loop(lanes) as lane, builder.if_then(builder.extract_element(mask, lane)):
        address = builder.inttoptr(builder.extract_element(addresses, lane), POINTER)
        element = one(address, [builder.extract_element(value, lane) for value in values])
        if initial is not None and element is not None:
            builder.store(builder.insert_element(builder.load(result, typ=initial.type), element, lane), result)
    if initial is None:
        return result
    loaded = builder.load(result, typ=initial.type)
    duplicate = layout.duplicate_mask("lane")
    return shuffle(builder, loaded, [lane & ~duplicate for lane in range(lanes)]) if duplicate else loaded
