"""Registers of join, split and flip on demand: which registers of which operands, and the vector made of them.

join     the register of one operand; of both, and a select, where the loop's counter decides which
split    a register of the source
flip     a register of the source, its lanes exchanged
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from llvmlite import ir
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.emit.context import Emit
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.rearranging import crossed, halves, joined
from weft.codegen.llvm.types import I1, I64, scalar_type, shuffle
from weft.ir import tile
from weft.ir.types import layout_of

Rearranging = tile.JoinOp | tile.SplitOp | tile.FlipOp


def is_rearranging(op: Operation) -> TypeGuard[Rearranging]:
    """Whether the op is one of them."""
    return type(op) in (tile.JoinOp, tile.SplitOp, tile.FlipOp)


def sources(op: Rearranging, value: SSAValue, index: RegisterIndex) -> list[tuple[SSAValue, RegisterIndex]]:
    """The registers of operands from which register ``index`` of the result ``value`` is made."""
    match op:
        case tile.JoinOp():
            columns, bit = joined(op)
            operands = (op.lhs, op.rhs)
            if not _is_dynamic(index, bit):
                operands = (operands[bool(index.const & bit)],)
            return [(operand, index.through(columns)) for operand in operands]
        case tile.SplitOp():
            columns, bit = halves(op)
            at = index.through(columns)
            return [(op.source, RegisterIndex(at.const ^ (bit if value is op.second else 0), at.terms))]
        case tile.FlipOp():
            return [(op.source, RegisterIndex(index.const ^ crossed(op).register, index.terms))]


def vector(emit: Emit, op: Rearranging, index: RegisterIndex, found: Sequence[ir.Value]) -> ir.Value:
    """Register ``index`` of the result, of the vectors that `sources` asks for."""
    if isinstance(op, tile.FlipOp):
        return _exchanged(emit, op, found[0])
    if len(found) == 1:
        return found[0]
    assert isinstance(op, tile.JoinOp), f"{op.name} takes one register of its source"
    bit = joined(op).bit
    number = emit.builder.and_(index.value(emit.builder), ir.Constant(I64, bit))
    second = emit.builder.icmp_unsigned("!=", number, ir.Constant(I64, 0))
    return emit.builder.select(second, found[1], found[0])


def _is_dynamic(index: RegisterIndex, bit: int) -> bool:
    return any(image & bit for _, images in index.terms for image in images)


def _exchanged(emit: Emit, op: tile.FlipOp, value: ir.Value) -> ir.Value:
    """A vector with its lanes exchanged; of bools as bytes, which LLVM shuffles better."""
    mask = crossed(op).lane
    if not mask:
        return value
    element, builder = element_of_value(op.source), emit.builder
    is_bool = scalar_type(value) == I1
    stored = element.to_storage(builder, value) if is_bool else value
    stored = shuffle(builder, stored, [lane ^ mask for lane in range(layout_of(op.source).in_size("lane"))])
    return element.from_storage(builder, stored) if is_bool else stored
