"""The CPU's table of lowerings: what happens outside register loops.

Elementwise ops, generators and views of tiles have no entry: they are recipes, emitted where a register loop wants them
(`weft.codegen.cpu.values`). The shared entries of elementwise ops serve scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Operation

from weft.codegen.cpu import machinery
from weft.codegen.cpu.atomic_access import atomic_scalar
from weft.codegen.cpu.exchange import emit_conversion
from weft.codegen.cpu.microkernel import emit_dot
from weft.codegen.cpu.multiply import multiply
from weft.codegen.cpu.panels import claim, fill
from weft.codegen.cpu.single_access import load_scalar, store_scalar
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.context import Lowering
from weft.codegen.emit.control import CONTROL
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.scalars import SCALARS
from weft.codegen.kernel import AccessSite
from weft.codegen.llvm import atomics
from weft.codegen.llvm.types import I64, POINTER
from weft.ir import cpu, tile
from weft.ir.location import positions
from weft.ir.types import layout_of, shape_of


def _load(registers: Registers, op: tile.LoadOp) -> None:
    registers.scalars[op.result] = load_scalar(registers, op)


def _store(registers: Registers, op: tile.StoreOp) -> None:
    store_scalar(registers, op)


def _atomic(registers: Registers, op: tile.AtomicRmwOp | tile.AtomicCasOp) -> None:
    registers.scalars[op.result] = atomic_scalar(registers, op)


def _present(registers: Registers, op: cpu.PresentOp) -> None:
    registers.scalars[op.result] = registers.present


def _barrier(registers: Registers, op: tile.BarrierOp) -> None:
    atomics.barrier(registers.builder)


def _assert(registers: Registers, op: tile.AssertOp) -> None:
    """Leaves the program where the condition does not hold; the site has the message in the place of the argument's name."""
    builder = registers.builder
    site = registers.faults.add(AccessSite("assert", op.message.data, 0, positions(op)))
    with builder.if_then(builder.not_(registers.scalar(op.condition)), likely=False):
        registers.fault(site, ir.Constant(I64, 0))


def _print(registers: Registers, op: tile.PrintOp) -> None:
    """Hands the elements over in local memory."""
    builder, values, columns = registers.builder, ir.Constant(POINTER, None), list[int]()
    if op.operands:
        (value,) = op.operands
        if shape_of(value):
            layout, values = layout_of(value), registers.in_memory(value).pointer
            columns = [*layout.columns("lane"), *filter(None, layout.columns("register"))]
        else:
            element = element_of_value(value)
            values = registers.entry.alloca(I64)
            values.type = POINTER
            builder.store(element.to_storage(builder, registers.scalar(value)), values)
    registers.faults.print(builder, op.described(columns), registers.grid.ids, values)


def _convert(registers: Registers, op: tile.ConvertLayoutOp) -> None:
    if not shape_of(op.result):
        registers.scalars[op.result] = registers.scalar(op.source)
        return
    result = registers.home(op.result)
    source = registers.in_memory(op.source)
    emit_conversion(registers, source, result, layout_of(op.source), layout_of(op.result))
    registers.buffers[op.result] = result


def _for(registers: Registers, op: scf.ForOp) -> None:
    if not registers.reordered(op):
        CONTROL[scf.ForOp](registers, op)


def _if(registers: Registers, op: scf.IfOp) -> None:
    if registers.delayed(op):
        return
    if isinstance(op.cond.owner, cpu.ClaimOp):
        fill(registers, op)
    else:
        CONTROL[scf.IfOp](registers, op)


def _dot(registers: Registers, op: tile.DotOp) -> None:
    result = registers.home(op.result)
    if op.acc not in registers.buffers:
        registers.fill(op.acc, result)
    elif registers.buffers[op.acc].pointer is not result.pointer:
        registers.copy(registers.buffers[op.acc], result)
    a, b = registers.in_memory(op.a), registers.in_memory(op.b)
    emit_dot(registers, registers.target, op, a, b, result)
    registers.buffers[op.result] = result


LOWERINGS: Final[Mapping[type[Operation], Lowering]] = {
    **SCALARS,
    **CONTROL,
    scf.ForOp: _for,
    scf.IfOp: _if,
    tile.LoadOp: _load,
    tile.StoreOp: _store,
    tile.AtomicRmwOp: _atomic,
    tile.AtomicCasOp: _atomic,
    tile.BarrierOp: _barrier,
    tile.AssertOp: _assert,
    tile.PrintOp: _print,
    tile.AssemblyOp: machinery.refuse_assembly,
    tile.ClockOp: machinery.clock,
    tile.ProcessorOp: machinery.processor,
    tile.ConvertLayoutOp: _convert,
    tile.DotOp: _dot,
    cpu.PresentOp: _present,
    cpu.ClaimOp: claim,
    cpu.MultiplyOp: multiply,
}
"""What the CPU does for each op that is an item of a block's schedule."""
