"""Panels of dot operands in a thread's scratch memory: which one a program gets, and how tiles are written there.

A thread keeps the panels of a claim in slots, each under its keys (`weft.codegen.cpu.slots`), for the length of a launch. So a
panel with the same keys is one of an earlier program of this thread, in this launch. What it was computed from is memory that
the launch does not write (`weft.transforms.nests`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from weft import dtypes
from weft.codegen.cpu.filling_groups import Packed
from weft.codegen.cpu.loops import Guard, axis_bits
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.schedule import RegisterLoop, grouped_registers
from weft.codegen.cpu.slots import NUMBERS, Slots
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.element import Element, element_of_value
from weft.codegen.llvm.interleave import interleaved
from weft.codegen.llvm.masked import concatenated
from weft.codegen.llvm.types import BF16, I1, I8, I16, I32, I64, POINTER, intrinsic, lanes_of, shuffle, unknown
from weft.ir import tile
from weft.ir.cpu import ClaimOp, PackOp, Panel
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout.algebra import f2

_LINE = 64
_ROW_BITS = 2
"""So many registers of a row of a right operand are packed at once, as a power of two: by two of 64 bytes a matrix of 3 MB in
tiles of 64 columns took 108 us, by four 85, of which some 65 are the caches'."""
_ROUNDED = 16
"""Numbers that ``vcvtneps2bf16`` rounds at once."""


def claim(registers: Registers, op: ClaimOp) -> None:
    """The panel's address, and whether it has to be filled."""
    builder, size, keys = registers.builder, -(-op.bytes.value.data // _LINE) * _LINE, list(op.keys)
    if not keys:
        registers.scalars[op.address] = builder.ptrtoint(registers.pool.bytes(size), I64)
        registers.scalars[op.stale] = ir.Constant(I1, 1)
        return
    slots = Slots(op.slots.value.data, size, len(keys))
    table = registers.pool.bytes(slots.table_bytes)
    registers.cleared += [registers.pool.offset_of_last + 8 * i for i in range(NUMBERS)]
    panels = registers.pool.bytes(slots.number * size)
    slot, stale = slots.find(builder, table, [_as_integer(registers, key) for key in keys])
    offset = builder.mul(slot, ir.Constant(I64, size))
    registers.scalars[op.address] = builder.add(builder.ptrtoint(panels, I64), offset)
    registers.scalars[op.stale] = stale


def fill(registers: Registers, op: scf.IfOp) -> None:
    """Emits a branch that fills a panel. What it computes from numbers outside stays in it: LLVM would compute that before
    the panel is looked for, and keep it on the stack. A vector there is read back when all stores before it are done."""
    builder, before = registers.builder, dict(registers.scalars)
    with builder.if_then(registers.scalar(op.cond), likely=False), registers.scope():
        for value in dict.fromkeys(operand for inner in op.true_region.walk() for operand in inner.operands):
            number = before.get(value)
            if number is not None and number.type in (I32, I64) and not isinstance(number, ir.Constant):
                registers.scalars[value] = unknown(builder, number, "r")
        registers.block(op.true_region.block)
    registers.scalars.update(before)


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
    bits = grouped_registers(op)
    last = sum(bits)
    assert not any(image & last for _, images in index.terms for image in images), "groups are unrolled"
    if index.const & last != last:
        return
    _write(registers, op, RegisterIndex(index.const & ~last, index.terms), bits)


def guard_of(registers: Registers, loop: RegisterLoop) -> Guard | None:
    """What leaves out groups of registers that begin in columns that are not wanted; None for a loop that does anything but pack
    one right panel, or of whose columns all are."""
    op = loop.roots[0] if len(loop.roots) == 1 and not loop.kept else None
    if not isinstance(op, PackOp) or op.geometry.axis or isinstance(registers.scalar(op.size), ir.Constant):
        return None

    @contextmanager
    def guard(index: RegisterIndex) -> Generator[None]:
        wanted = _is_wanted(registers, op, index)
        with registers.builder.if_then(wanted, likely=True), registers.scope():
            yield

    return guard


def row_bits(ops: Sequence[PackOp]) -> int:
    """The register bits within a row of a right operand that are unrolled where it is packed."""
    found = 0
    for op in ops:
        if op.geometry.axis == 0:
            found |= sum(axis_bits(layout_of(op.value), "register", 1)[:_ROW_BITS])
    return found


def _is_wanted(registers: Registers, op: PackOp, index: RegisterIndex) -> ir.Value:
    """Whether the columns of a right panel's group are wanted in which a register begins."""
    builder, panel, size = registers.builder, op.geometry, registers.scalar(op.size)
    columns = shape_of(op.value)[1]
    moves = [column & columns - panel.width for column in layout_of(op.value).columns("register")]
    dynamic, fixed = index.through(moves).emit(builder)
    group: ir.Value = ir.Constant(I64, fixed)
    return builder.icmp_signed("<", group if dynamic is None else builder.add(dynamic, group), size)


def _write(registers: Registers, op: PackOp, first: RegisterIndex, bits: list[int]) -> None:
    """Writes the registers of a group, which differ by ``bits``."""
    builder, element, panel = registers.builder, Element(dtype_of(op.value)), op.geometry
    place = _place(registers, op, panel, first, element.size)
    lanes = layout_of(op.value).in_size("lane")
    indices = [RegisterIndex(first.const | f2.apply(bits, j), first.terms) for j in range(panel.group)]
    vectors = [_stored(registers, op, each) for each in indices]
    if bits:
        vectors = interleaved(builder, vectors, element.size)
    pieces = max(1, lanes // panel.width) if panel.width else 1
    whole, held = concatenated(builder, vectors), lanes * len(vectors) // pieces
    align = min(_LINE, element.size * held)
    for i in range(pieces):
        piece = shuffle(builder, whole, range(i * held, (i + 1) * held)) if pieces > 1 else whole
        further = ir.Constant(I64, i * panel.width * panel.depth * element.size)
        builder.store(piece, builder.gep(place, [further], source_etype=I8) if i else place, align=align)
    if registers.packed is not None:
        offset = sum(first.through(columns).const * stride for columns, stride in _places(op, panel)) * element.size
        _keep(builder, registers.packed, vectors, offset, element.size)


def _keep(builder: ir.IRBuilder, packed: Packed, vectors: Sequence[ir.Value], offset: int, size: int) -> None:
    """Leaves vectors of elements of ``size`` bytes, which were packed from an offset of a stretch on, in its slots, too."""
    whole, bytes_ = concatenated(builder, vectors), packed.bytes
    lanes = bytes_ // size
    for i in range((lanes_of(whole) or 1) // lanes):
        part = shuffle(builder, whole, range(i * lanes, (i + 1) * lanes))
        builder.store(builder.bitcast(part, packed.type), packed.slots[offset // bytes_ + i])


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
