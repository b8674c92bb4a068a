"""Dots: `mma.sync` on fragments, or fused multiply-adds of each thread on operands in shared memory.

Which register of a fragment is which is read off the layouts: an instruction's tile starts at one element of the result, and the
operands' registers of lane 0 and warp 0 are looked up by the elements that PTX's fragment tables name (`_registers`). All other
threads hold theirs in the same registers, because layouts are linear. An instruction's columns may be any of the tensor's: the
right operand and the result say alike which. So may the part of the contraction be, which both operands say alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Final

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.llvm import arith
from weft.codegen.llvm.types import F32, F64, I16, I32, storage_type
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.files import WORD, File, of_scalars, scalar, vector_of
from weft.codegen.nvidia.threads import FileSlot, Threads, thread_columns
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout import LinearLayout
from weft.layout.algebra import f2
from weft.transforms.axis import AxisInfo
from weft.transforms.nvidia.groups import groups
from weft.transforms.nvidia.matrix import MatrixInstruction, dot_scratch, instruction_of
from weft.transforms.nvidia.scratch import scratch_of

LANES: Final = 32

_REGISTERS: Final[Mapping[ir.Type, str]] = {I32: "r", F32: "f", F64: "d"}
"""Types of an instruction's registers, and the letters by which inline assembly takes them."""


def dot(threads: Threads, op: tile.DotOp) -> None:
    """Emits a dot whose operands are laid out as the layout rules say."""
    found = instruction_of(op, threads.target)
    if found is None:
        threads.files[op.result] = _multiply_add(threads, op)
    else:
        threads.files[op.result] = _matrices(threads, op, found)


def _registers(layout: LinearLayout) -> dict[tuple[int, ...], int]:
    """The first register of lane 0 and warp 0 that holds each element."""
    found: dict[tuple[int, ...], int] = {}
    for register in range(layout.in_size("register")):
        found.setdefault(layout.unflatten(f2.apply(layout.columns("register"), register)), register)
    return found


def _matrices(threads: Threads, op: tile.DotOp, form: MatrixInstruction) -> File:
    builder, per = threads.builder, form.per_register
    a, b = (_registers(layout_of(value)) for value in (op.a, op.b))
    layout = layout_of(op.result)
    copies = layout.duplicate_mask("register")
    files = [threads.files[value] for value in (op.a, op.b, op.acc)]
    words: dict[tuple[int, tuple[int, ...]], ir.Value] = {}

    def word(operand: int, registers: Sequence[int]) -> ir.Value:
        key = operand, tuple(registers)
        read = threads.words.get(op.operands[operand])
        first = registers[0]
        # A vector of words that were read would be there as soon as its last word.
        if read is not None and per * form.left.bits == WORD and list(registers) == [*range(first, first + per)]:
            return read[first // per]
        if key not in words:
            vector = vector_of(builder, files[operand], registers)
            words[key] = builder.bitcast(vector, F64 if form.left.bits == 64 else I32)
        return words[key]

    # A tile's sums are registers in a row: of two neighbouring columns, then of the same eight rows below.
    size = form.m * 8 // LANES
    first = [r for r in range(0, layout.in_size("register"), size) if not r & copies]
    tiles = sorted((layout.unflatten(f2.apply(layout.columns("register"), r)), r) for r in first)
    sums = {start: _packed(builder, files[2], range(start, start + size), form) for start in first}
    # Of the contraction an instruction takes what each thread has next, whatever it is: layouts say alike of both operands.
    depth = sorted({k for _, k in a})
    own = form.k // 4
    for first_k in range(0, len(depth), own):
        steps = [depth[k : k + per] for k in range(first_k, first_k + own, per)]
        for (i, j), start in tiles:
            left = [word(0, [a[i + row, k] for k in step]) for step in steps for row in range(0, form.m, 8)]
            right = [word(1, [b[k, j] for k in step]) for step in steps]
            sums[start] = _instruction(builder, form, left, right, sums[start])
    found = {
        start + at: value for start, each in sums.items() for at, value in enumerate(_unpacked(builder, each, form))
    }
    return of_scalars(builder, [found[r & ~copies] for r in range(layout.in_size("register"))])


def _packed(builder: ir.IRBuilder, file: File, registers: Sequence[int], form: MatrixInstruction) -> list[ir.Value]:
    """Sums as an instruction takes them: two of float16 in a word, others each by itself."""
    if form.sums.bits != 16:
        return [scalar(builder, file, r) for r in registers]
    return [
        builder.bitcast(vector_of(builder, file, pair), I32)
        for pair in zip(registers[::2], registers[1::2], strict=True)
    ]


def _unpacked(builder: ir.IRBuilder, sums: Sequence[ir.Value], form: MatrixInstruction) -> list[ir.Value]:
    """The sums one by one."""
    if form.sums.bits != 16:
        return list(sums)
    pairs = [builder.bitcast(word, ir.VectorType(I16, 2)) for word in sums]
    return [builder.extract_element(pair, ir.Constant(I32, at)) for pair in pairs for at in (0, 1)]


def _instruction(
    builder: ir.IRBuilder,
    form: MatrixInstruction,
    left: Sequence[ir.Value],
    right: Sequence[ir.Value],
    sums: Sequence[ir.Value],
) -> list[ir.Value]:
    """One ``mma.sync``: registers of the left operand, of the right one, and of the sums, which it returns anew."""
    places = iter(range(len(left) + len(right) + 2 * len(sums)))
    lists = [", ".join(f"${next(places)}" for _ in each) for each in (sums, left, right, sums)]
    text = f"{form.name} " + ", ".join(f"{{{each}}}" for each in lists) + ";"
    results = [f"={_REGISTERS[value.type]}" for value in sums]
    operands = [*left, *right, *sums]
    constraints = ",".join([*results, *(_REGISTERS[value.type] for value in operands)])
    type_ = ir.LiteralStructType([value.type for value in sums])
    result = instructions.assembly(builder, type_, text, constraints, operands, convergent=True)
    return [builder.extract_value(result, i) for i in range(len(sums))]


def _multiply_add(threads: Threads, op: tile.DotOp) -> File:
    """Operands go to shared memory as they are; each thread reads the rows and columns of its results, a step of the contraction
    at a time, and multiplies."""
    builder, scratch = threads.builder, dot_scratch(op)
    (_, depth), (_, columns) = shape_of(op.a), shape_of(op.b)
    base = scratch_of(op)
    _spread(threads, op.a, base, scratch.left_stride)
    _spread(threads, op.b, base + scratch.right, scratch.right_stride)
    instructions.barrier(builder, "block")
    layout = layout_of(op.result)
    registers = [divmod(f2.apply(layout.columns("register"), r), columns) for r in range(layout.in_size("register"))]
    row, column = (
        threads.linear([part(c, columns) for c in thread_columns(layout)]) for part in (int.__floordiv__, int.__mod__)
    )
    left = builder.mul(row, ir.Constant(I32, scratch.left_stride))
    right = builder.mul(column, ir.Constant(I32, dtype_of(op.b).itemsize))
    slot = FileSlot(threads, op.result)
    slot.write(threads.files[op.acc])
    with threads.loop(depth) as counter:
        step = builder.trunc(counter, I32)
        at_left = builder.add(left, builder.mul(step, ir.Constant(I32, dtype_of(op.a).itemsize)))
        at_right = builder.add(right, builder.mul(step, ir.Constant(I32, scratch.right_stride)))
        xs = {
            i: _element(threads, op.a, op, at_left, base + i * scratch.left_stride) for i, _ in dict.fromkeys(registers)
        }
        first = base + scratch.right
        size = dtype_of(op.b).itemsize
        ys = {j: _element(threads, op.b, op, at_right, first + j * size) for _, j in dict.fromkeys(registers)}
        x, y = of_scalars(builder, [xs[i] for i, _ in registers]), of_scalars(builder, [ys[j] for _, j in registers])
        slot.write(tuple(_fused(builder, dtype_of(op.acc), *abc) for abc in zip(x, y, slot.read(), strict=True)))
    return slot.read()


def _fused(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
    if dtype.is_float:
        return arith.fma(builder, dtype, x, y, total)
    return builder.add(builder.mul(x, y), total)


def _element(threads: Threads, operand: SSAValue, op: tile.DotOp, offset: ir.Value, immediate: int) -> ir.Value:
    """An operand's element in shared memory, in the accumulator's type."""
    builder, dtype = threads.builder, dtype_of(operand)
    pointer = threads.shared_address(offset, immediate)
    loaded = builder.load(pointer, typ=storage_type(dtype, None), align=dtype.itemsize)
    return arith.cast(builder, loaded, dtype, dtype_of(op.acc))


def _spread(threads: Threads, operand: SSAValue, base: int, stride: int) -> None:
    """Stores an operand by rows, ``stride`` bytes apart, in vectors where registers follow one another in a row."""
    builder, layout, size = threads.builder, layout_of(operand), dtype_of(operand).itemsize
    columns = shape_of(operand)[1]

    def place(column: int) -> int:
        return column // columns * stride + column % columns * size

    moved = [divmod(c, columns) for c in thread_columns(layout)]
    row, column = (threads.linear([pair[part] for pair in moved]) for part in (0, 1))
    own = builder.add(builder.mul(row, ir.Constant(I32, stride)), builder.mul(column, ir.Constant(I32, size)))
    holder = threads.first_copy(thread_columns(layout))
    along = AxisInfo((1, columns), (1, 1 << 62), (1, 1))
    with builder.if_then(holder) if holder is not None else nullcontext():
        for registers in groups(layout, 8 * size, along, None).all:
            vector = vector_of(builder, threads.files[operand], registers)
            bits = 8 * size * len(registers)
            type_ = ir.VectorType(I32, bits // 32) if bits > 32 else ir.IntType(bits)
            offset = place(f2.apply(layout.columns("register"), registers[0]))
            pointer = threads.shared_address(own, base + offset)
            builder.store(builder.bitcast(vector, type_), pointer, align=bits // 8)
