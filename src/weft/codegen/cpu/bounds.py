"""Checked kernels: every address is compared with the bounds of the array that its pointer was derived from, before memory is
touched.

An address whose array is not known must be in one of the kernel's arrays.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.cpu.masks import distinct
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.values import Registers
from weft.codegen.kernel import AccessSite
from weft.codegen.llvm.types import I1, I32, I64, any_lane, lanes_of
from weft.ir import tile
from weft.ir.location import positions
from weft.ir.types import dtype_of, layout_of


def check(registers: Registers, op: tile.Access, index: RegisterIndex, mask: ir.Value | None) -> None:
    """Checks the active addresses of one register."""
    if registers.options.checked:
        addresses = registers.vector(op.pointer, index)
        _require(registers, op, addresses, distinct(registers.builder, layout_of(op.pointer), mask))


def check_scalar(registers: Registers, op: tile.Access, mask: ir.Value | None) -> None:
    """Checks the address of a scalar access."""
    if registers.options.checked:
        _require(registers, op, registers.scalar(op.pointer), ir.Constant(I1, 1) if mask is None else mask)


def _require(registers: Registers, op: tile.Access, addresses: ir.Value, mask: ir.Value) -> None:
    """Leaves the kernel, reporting the first offending address, unless all active ones are inside the arrays."""
    builder = registers.builder
    base = registers.facts.base_of.get(op.pointer)
    size = dtype_of(op.pointer).itemsize
    known = registers.faults.bounds
    bounds = known if base is None else {base: known[base]}
    inside: ir.Value | None = None
    for low, high in bounds.values():
        lanes = lanes_of(addresses)
        last = builder.sub(high, ir.Constant(I64, size))
        low_, last_ = (v if lanes is None else registers.splat(v, lanes) for v in (low, last))
        here = builder.and_(
            builder.icmp_unsigned(">=", addresses, low_),
            builder.and_(
                builder.icmp_unsigned("<=", addresses, last_),
                builder.icmp_unsigned("<=", low_, last_),
            ),
        )
        inside = here if inside is None else builder.or_(inside, here)
    outside = mask if inside is None else builder.and_(mask, builder.not_(inside))
    name = base.name_hint if base is not None else None
    site = registers.faults.add(AccessSite(_operation(op), name, size, positions(op)))
    with builder.if_then(any_lane(builder, outside), likely=False):
        registers.fault(site, _first(builder, addresses, outside))


def _operation(op: tile.Access) -> str:
    """What the language calls the access."""
    return f"atomic_{op.kind.data}" if isinstance(op, tile.AtomicRmwOp) else op.name.removeprefix("tile.")


def _first(builder: ir.IRBuilder, addresses: ir.Value, active: ir.Value) -> ir.Value:
    """The address in the first active lane."""
    lanes = lanes_of(addresses)
    if lanes is None:
        return addresses
    lane = builder.cttz(builder.bitcast(active, ir.IntType(lanes)), ir.Constant(I1, 1))
    return builder.extract_element(addresses, builder.zext(lane, I32) if lanes < 32 else lane)
