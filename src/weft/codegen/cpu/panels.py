"""Panels of dot operands in a thread's scratch memory: which one a program gets, and how tiles are written there.

A claim has so many slots in the scratch memory of each thread, and before them a table of the keys that they were filled for:

    int64 filled, found     claims so far that had to be filled, and others; 0 when a thread begins a launch
    int64 keys[n][slots]    key by key, so that one vector comparison a key finds the slot

The next slot to be filled is ``filled % slots``: the oldest. Where fewer than one claim in four finds its panel, it is one of
the first few, which stay in the nearest cache: kernels that read each tile once would write all slots in turn. So a panel with
the same keys is one of an earlier program of this thread, in this launch. What it was computed from is memory that the launch
does not write (`weft.transforms.nests`).
"""

from __future__ import annotations

from functools import reduce

from llvmlite import ir
from xdsl.ir import SSAValue

from weft import dtypes
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.schedule import grouped_registers
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.element import Element, element_of_value
from weft.codegen.llvm.masked import concatenated
from weft.codegen.llvm.types import BF16, I1, I8, I16, I64, POINTER, intrinsic, shuffle
from weft.ir import tile
from weft.ir.cpu import ClaimOp, PackOp, Panel
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout.algebra import f2

_LINE = 64
_FEW = 4
_ROUNDED = 16
"""Numbers that ``vcvtneps2bf16`` rounds at once."""


def claim(registers: Registers, op: ClaimOp) -> None:
    """The panel's address, and whether it has to be filled.

    Slot n holds a panel once more than n have been filled. So only few slots may be used in turn when all have been."""
    builder = registers.builder
    slots, size, keys = op.slots.value.data, op.bytes.value.data, list(op.keys)
    size = -(-size // _LINE) * _LINE
    if not keys:
        registers.scalars[op.address] = builder.ptrtoint(registers.pool.bytes(size), I64)
        registers.scalars[op.stale] = ir.Constant(I1, 1)
        return
    table = registers.pool.bytes(_LINE + 8 * slots * len(keys))
    registers.cleared += [registers.pool.offset_of_last, registers.pool.offset_of_last + 8]
    panels = registers.pool.bytes(slots * size)
    wanted = [_as_integer(registers, key) for key in keys]
    filled = builder.load(table, typ=I64, align=8)
    row = ir.VectorType(I64, slots) if slots > 1 else I64
    places = [builder.gep(table, [ir.Constant(I64, _LINE + 8 * slots * i)], source_etype=I8) for i in range(len(keys))]
    number = ir.Constant(row, list(range(slots))) if slots > 1 else ir.Constant(I64, 0)
    same = [builder.icmp_unsigned("<", number, registers.splat(filled, slots) if slots > 1 else filled)]
    for place, key in zip(places, wanted, strict=True):
        held = builder.load(place, typ=row, align=8)
        same.append(builder.icmp_unsigned("==", held, registers.splat(key, slots) if slots > 1 else key))
    found = reduce(builder.and_, same)
    bits = builder.zext(builder.bitcast(found, ir.IntType(slots)) if slots > 1 else found, I64)
    stale = builder.icmp_unsigned("==", bits, ir.Constant(I64, 0))
    times = builder.gep(table, [ir.Constant(I64, 8)], source_etype=I8)
    seen = builder.load(times, typ=I64, align=8)
    builder.store(builder.add(seen, builder.zext(builder.not_(stale), I64)), times, align=8)
    tried = builder.icmp_unsigned(">=", filled, ir.Constant(I64, 2 * slots))
    rare = builder.icmp_unsigned("<", seen, builder.lshr(filled, ir.Constant(I64, 2)))
    few = ir.Constant(I64, min(slots, _FEW) - 1)
    used = builder.select(builder.and_(tried, rare), few, ir.Constant(I64, slots - 1))
    oldest = builder.and_(filled, used)
    slot = builder.select(stale, oldest, builder.cttz(bits, ir.Constant(I1, 0)))
    with builder.if_then(stale):
        for place, key in zip(places, wanted, strict=True):
            builder.store(key, builder.gep(place, [slot], source_etype=I64), align=8)
        builder.store(builder.add(filled, ir.Constant(I64, 1)), table, align=8)
    offset = builder.mul(slot, ir.Constant(I64, size))
    registers.scalars[op.address] = builder.add(builder.ptrtoint(panels, I64), offset)
    registers.scalars[op.stale] = stale


def _as_integer(registers: Registers, key: SSAValue) -> ir.Value:
    """The bits of a scalar in an int64."""
    builder = registers.builder
    value = element_of_value(key).to_storage(builder, registers.scalar(key))
    if isinstance(value.type, ir.IntType):
        return value if value.type.width == 64 else builder.zext(value, I64)
    width = 8 * dtype_of(key).itemsize
    bits = builder.bitcast(value, ir.IntType(width))
    return bits if width == 64 else builder.zext(bits, I64)


def pack(registers: Registers, op: PackOp, index: RegisterIndex) -> None:
    """Writes one register of a step's tile; of registers in a group all, when the last of them comes."""
    builder, element, panel = registers.builder, Element(dtype_of(op.value)), op.geometry
    bits = grouped_registers(op)
    last = sum(bits)
    assert not any(image & last for _, images in index.terms for image in images), "groups are unrolled"
    vector = _stored(registers, op, index)
    if index.const & last != last:
        return
    first = RegisterIndex(index.const & ~last, index.terms)
    place = _place(registers, op, panel, first, element.size)
    align = element.size * layout_of(op.value).in_size("lane")
    if bits:
        numbers = [f2.apply(bits, j) for j in range(panel.group)]
        indices = [RegisterIndex(first.const | number, index.terms) for number in numbers]
        parts = [_stored(registers, op, each) for each in indices]
        lanes = layout_of(op.value).in_size("lane")
        order = [part * lanes + lane for lane in range(lanes) for part in range(panel.group)]
        joined = concatenated(builder, parts)
        vector, align = shuffle(builder, joined, order), align * panel.group
    builder.store(vector, place, align=min(_LINE, align))


def _stored(registers: Registers, op: PackOp, index: RegisterIndex) -> ir.Value:
    """One register of a tile as the panel holds it. Float32 numbers that are cast to bfloat16 for the panel are rounded by the
    machine's instruction where it has one. It takes subnormal numbers as zeros, as the multiplication does
    (`weft.target.PRODUCTS`)."""
    builder, cast = registers.builder, op.value.owner
    if (
        op.value in registers.buffers
        or not isinstance(cast, tile.CastOp)
        or (dtype_of(cast.source), dtype_of(op.value)) != (dtypes.float32, dtypes.bfloat16)
        or "avx512bf16" not in registers.target.enabled
        or layout_of(op.value).in_size("lane") != _ROUNDED
    ):
        stored = element_of_value(op.value).to_storage(builder, registers.vector(op.value, index))
        if not op.geometry.unsigned:
            return stored
        width = 8 * dtype_of(op.value).itemsize
        return builder.xor(
            stored, registers.splat(ir.Constant(ir.IntType(width), 1 << width - 1), layout_of(op.value).in_size("lane"))
        )
    wide, result = registers.vector(cast.source, index), ir.VectorType(BF16, _ROUNDED)
    rounded = intrinsic(builder, "x86.avx512bf16.cvtneps2bf16.512", [wide], result, overloads=())
    return builder.bitcast(rounded, ir.VectorType(I16, _ROUNDED))


def _place(registers: Registers, op: PackOp, panel: Panel, index: RegisterIndex, size: int) -> ir.Value:
    """Where a register begins."""
    builder = registers.builder
    address = registers.scalar(op.panel)
    step = shape_of(op.value)[panel.axis] * max(1, panel.width) * size
    address = builder.add(address, builder.mul(registers.scalar(op.at), ir.Constant(I64, step)))
    offset, const = ir.Constant(I64, 0), 0
    for columns, stride in _places(op, panel):
        dynamic, fixed = index.through(columns).emit(builder)
        const += fixed * stride * size
        if dynamic is not None:
            offset = builder.add(offset, builder.mul(dynamic, ir.Constant(I64, stride * size)))
    return builder.inttoptr(builder.add(address, builder.add(offset, ir.Constant(I64, const))), POINTER)


def _places(op: PackOp, panel: Panel) -> list[tuple[list[int], int]]:
    """The parts of a register's offset in the panel: the images of its number's bits, and what one is worth in elements."""
    layout, (_, columns) = layout_of(op.value), shape_of(op.value)
    low = columns.bit_length() - 1
    rows_of = [c >> low for c in layout.columns("register")]
    columns_of = [c & columns - 1 for c in layout.columns("register")]
    across, along = (rows_of, columns_of) if panel.axis == 1 else (columns_of, rows_of)
    if not panel.width:
        return [(across, panel.pitch(dtype_of(op.value).itemsize)), (along, 1)]
    bits = panel.width.bit_length() - 1
    within, group = [c & panel.width - 1 for c in across], [c >> bits for c in across]
    deep = [c // panel.group for c in along]
    return [(within, panel.group), (deep, panel.width * panel.group), (group, panel.width * panel.depth)]
