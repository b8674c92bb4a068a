"""Gathers inside a register loop: the source is a whole tile in local memory, of which each lane loads its element.

An element's place in the source's buffer is a linear function of its coordinates. Along the axis that is the index, whose
bits move to their places in runs; the other coordinates are known from the result's register and lane. Bits of an index
that the axis does not have are ignored: an index outside of the axis reads another element, and no foreign memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.register_index import RegisterIndex, runs
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.views import slots
from weft.codegen.llvm.types import I1, I32, POINTER, integer_width, intrinsic, like, splat
from weft.ir import tile
from weft.ir.types import layout_of
from weft.layout import LinearLayout
from weft.layout.algebra import f2


def gathered(registers: Registers, op: tile.GatherOp, source: Buffer, index: RegisterIndex) -> ir.Value:
    """One register of the result."""
    builder, element = registers.builder, source.element
    places = _places(registers, op, source, index)
    lanes = layout_of(op.result).in_size("lane")
    pointers = ir.VectorType(POINTER, lanes)
    storage = element.storage_type(lanes)
    addresses = builder.gep(source.pointer, [places], source_etype=element.storage_type(None))
    addresses.type = pointers
    every = splat(1, ir.VectorType(I1, lanes))
    operands = [addresses, ir.Constant(I32, element.size), every, ir.Constant(storage, None)]
    return element.from_storage(builder, intrinsic(builder, "masked.gather", operands, storage, [storage, pointers]))


def _places(registers: Registers, op: tile.GatherOp, source: Buffer, index: RegisterIndex) -> ir.Value:
    """The number in the buffer of the element that each lane asks for."""
    builder, axis = registers.builder, op.axis.value.data
    places, result = places_in(source.layout), layout_of(op.result)
    at = _narrowed(builder, registers.vector(op.index, index))
    total: ir.Value | None = None
    for start, length, place in runs(places[axis]):
        part = builder.lshr(at, splat(start, at.type)) if start else at
        part = builder.and_(part, splat((1 << length) - 1, at.type))
        part = builder.shl(part, splat(place, at.type)) if place else part
        total = part if total is None else builder.or_(total, part)
    fixed = [_without_axis(basis, axis, places) for basis in result.bases("lane")]
    lanes = [f2.apply(fixed, lane) for lane in range(result.in_size("lane"))]
    base = index.through([_without_axis(basis, axis, places) for basis in result.bases("register")])
    for part in _fixed_parts(registers, base, lanes):
        total = part if total is None else builder.or_(total, part)
    return splat(0, at.type) if total is None else total


def _fixed_parts(registers: Registers, base: RegisterIndex, lanes: Sequence[int]) -> list[ir.Value]:
    """What the other coordinates add: by the register, and by the lane."""
    parts: list[ir.Value] = []
    if base.const or base.terms:
        number = registers.builder.trunc(base.value(registers.builder), I32)
        parts.append(registers.splat(number, len(lanes)))
    if any(lanes):
        parts.append(ir.Constant(ir.VectorType(I32, len(lanes)), [ir.Constant(I32, lane) for lane in lanes]))
    return parts


def _narrowed(builder: ir.IRBuilder, at: ir.Value) -> ir.Value:
    """Indices in 32 bits; of those outside the axis the value does not matter."""
    words = like(at, I32)
    if at.type == words:
        return at
    return builder.trunc(at, words) if integer_width(at) > I32.width else builder.zext(at, words)


def places_in(layout: LinearLayout) -> list[list[int]]:
    """For each dimension, and each bit of the coordinate along it, the number by which it moves an element in a buffer."""
    lanes = layout.in_bits("lane")
    moved = {column: 1 << bit for bit, column in reversed(list(enumerate(layout.columns("lane")))) if column}
    for column, slot in zip(layout.columns("register"), slots(layout), strict=True):
        if column:
            moved.setdefault(column, slot << lanes)
    places: list[list[int]] = []
    below = layout.out_bits
    for _, bits in layout.outputs:
        below -= bits
        places.append([moved[1 << below + bit] for bit in range(bits)])
    return places


def _without_axis(basis: Sequence[int], axis: int, places: Sequence[Sequence[int]]) -> int:
    """The number by which a step of the result's registers or lanes moves the place, the axis left out."""
    return sum(f2.apply(places[d], step) for d, step in enumerate(basis) if d != axis)
