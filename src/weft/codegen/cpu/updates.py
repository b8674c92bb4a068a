"""Atomics of one register, while the thread has all atomics to itself (`weft.codegen.cpu.exclusive`): plain loads and stores.

Lanes whose addresses ascend by one element are distinct, so a run of them is updated as a vector. Other lanes may meet at an
address, and are updated one after the other, without branches where all are active: a few are loaded, then updated in their
order. Where a mask follows from data, the processor could not predict branches: lanes that are masked off update places of no
use on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.llvm import arith
from weft.codegen.llvm.masked import concatenated, either, lane_bits, masked_load, masked_store
from weft.codegen.llvm.pieces import store_pieces
from weft.codegen.llvm.types import I32, I64, POINTER, like, shuffle, splat
from weft.ir import tile
from weft.ir.types import dtype_of
from weft.layout import LinearLayout, Runs

Atomic: TypeAlias = tile.AtomicRmwOp | tile.AtomicCasOp

_AT_ONCE: Final = 4
"""Lanes that are loaded before the first of them is updated. On Zen 4 that takes 0.87 of the time for a histogram of bytes,
0.92 to 0.96 for additions of floats to 16 places, and 1.01 for those to 2^16."""


def operands(op: Atomic) -> tuple[SSAValue, ...]:
    """What an atomic combines with memory."""
    return (op.expected, op.value) if isinstance(op, tile.AtomicCasOp) else (op.value,)


def update_element(builder: ir.IRBuilder, op: Atomic, address: ir.Value, values: Sequence[ir.Value]) -> ir.Value:
    """One element; gives its old value."""
    old = builder.load(address, typ=values[0].type, align=dtype_of(op.value).itemsize)
    builder.store(_combined(builder, op, old, values), address, align=dtype_of(op.value).itemsize)
    return old


def update_runs(
    builder: ir.IRBuilder,
    op: Atomic,
    shape: Runs,
    starts: Sequence[ir.Value],
    mask: ir.Value | None,
    values: Sequence[ir.Value],
    register_bits: int,
) -> ir.Value:
    """Runs of consecutive elements from the addresses ``starts`` on, one run after the other; gives the old values of all lanes,
    zeros where ``mask`` is false."""
    size = dtype_of(op.value).itemsize
    parts: list[ir.Value] = []
    for first, address in zip(shape.starts, starts, strict=True):
        lanes = [first + j for j in range(shape.run)]
        own = [shuffle(builder, value, lanes) for value in values]
        if mask is None:
            old = builder.load(address, typ=own[0].type, align=size)
            store_pieces(builder, _combined(builder, op, old, own), address, size, register_bits)
        else:
            active = shuffle(builder, mask, lanes)
            old = masked_load(builder, address, active, splat(0, own[0].type), size, register_bits)
            masked_store(builder, _combined(builder, op, old, own), address, active, size)
        parts.append(old)
    return shuffle(builder, concatenated(builder, parts), shape.lane_of)


def update_lanes(
    builder: ir.IRBuilder,
    op: Atomic,
    layout: LinearLayout,
    element: Callable[[SSAValue, int], ir.Value],
    mask: ir.Value | None = None,
    unused: ir.Value | None = None,
) -> ir.Value | None:
    """All lanes but duplicates, in order; gives the old values, in a duplicate its original's, or None where nothing uses them.
    ``element`` gives a lane of a tile. Lanes whose ``mask`` is false update elements at ``unused``, one for each lane since an
    update waits for the one before of its place, and give zeros."""
    lanes = layout.in_size("lane")
    found: dict[int, ir.Value] = {}
    duplicate = layout.duplicate_mask("lane")
    active = [] if mask is None else lane_bits(builder, mask)
    wanted = [lane for lane in range(lanes) if not lane & duplicate]
    for first in range(0, len(wanted), _AT_ONCE):
        group = wanted[first : first + _AT_ONCE]
        addresses = [element(op.pointer, lane) for lane in group]
        combined = [[element(value, lane) for value in operands(op)] for lane in group]
        for lane, address, values in zip(group, addresses, combined, strict=True):
            place = builder.inttoptr(address, POINTER)
            if unused is None:
                found[lane] = update_element(builder, op, place, values)
                continue
            own = builder.gep(unused, [ir.Constant(I64, lane)], source_etype=values[0].type)
            old = update_element(builder, op, either(builder, active[lane], place, own), values)
            found[lane] = builder.select(active[lane], old, splat(0, old.type))
    if op.result.first_use is None:
        return None
    result: ir.Value = ir.Constant(ir.VectorType(found[0].type, lanes), None)
    for lane, old in found.items():
        result = builder.insert_element(result, old, ir.Constant(I32, lane))
    return shuffle(builder, result, [lane & ~duplicate for lane in range(lanes)])


def _combined(builder: ir.IRBuilder, op: Atomic, old: ir.Value, values: Sequence[ir.Value]) -> ir.Value:
    """What memory holds afterwards, in the shape of the operands."""
    if isinstance(op, tile.AtomicRmwOp):
        kind = op.kind.data
        return values[0] if kind == "xchg" else arith.binary(builder, kind, dtype_of(op.value), old, values[0])
    expected, value = values
    bits = like(old, ir.IntType(8 * dtype_of(op.value).itemsize))
    same = builder.icmp_unsigned("==", builder.bitcast(old, bits), builder.bitcast(expected, bits))
    return builder.select(same, value, old)
