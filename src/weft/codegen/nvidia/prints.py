"""``tile.print``: a call of CUDA's ``vprintf`` for each element (CUDA C++ Programming Guide, "Formatted Output").

An element is printed by the first thread and register that hold it, a scalar by thread 0. The arguments lie in local memory as a
struct in C: 32-bit integers on 4 bytes, everything else on 8. A card's driver prints when the host waits for the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.llvm.types import I8, I32, I64, POINTER
from weft.codegen.nvidia.externals import ADDRESS, constant_string, external
from weft.codegen.nvidia.files import scalar
from weft.codegen.nvidia.threads import Threads, thread_columns
from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, layout_of, shape_of
from weft.layout.algebra import f2

_DOUBLE = ir.DoubleType()


def emit_print(threads: Threads, op: tile.PrintOp) -> None:
    """The lowering of ``tile.print``."""
    builder = threads.builder
    ids, text = list(threads.grid.ids), constant_string(builder, op.described().format)
    if not op.operands or not shape_of(op.operands[0]):
        with builder.if_then(builder.icmp_unsigned("==", threads.thread, ir.Constant(I32, 0))):
            values = [_promoted(builder, value, threads.scalar(value)) for value in op.operands]
            _call(threads, text, [*ids, *values])
        return
    (value,) = op.operands
    layout, file = layout_of(value), threads.files[value]
    columns, copies = thread_columns(layout), layout.duplicate_mask("register")
    first = threads.first_copy(columns)
    with nullcontext() if first is None else builder.if_then(first):
        place = threads.linear(columns)
        for register in range(layout.in_size("register")):
            if register & copies:
                continue
            at = builder.xor(place, ir.Constant(I32, f2.apply(layout.columns("register"), register)))
            element = _promoted(builder, value, scalar(builder, file, register))
            _call(threads, text, [*ids, *_indices(builder, at, shape_of(value)), element])


def _indices(builder: ir.IRBuilder, at: ir.Value, shape: Sequence[int]) -> list[ir.Value]:
    """The index of the row-major element ``at``."""
    found: list[ir.Value] = []
    for size in reversed(shape):
        found.append(builder.and_(at, ir.Constant(I32, size - 1)))
        at = builder.lshr(at, ir.Constant(I32, size.bit_length() - 1))
    return found[::-1]


def _promoted(builder: ir.IRBuilder, value: SSAValue, element: ir.Value) -> ir.Value:
    """An element as C passes it to a function of any number of arguments."""
    if is_pointer(value):
        return element
    dtype = dtype_of(value)
    if dtype.is_float:
        return builder.fpext(element, _DOUBLE) if dtype.bits < 64 else element
    if dtype.bits >= 32:
        return element
    return builder.sext(element, I32) if dtype.signed and not dtype.is_bool else builder.zext(element, I32)


def _call(threads: Threads, text: ir.Value, values: Sequence[ir.Value]) -> None:
    builder, offset = threads.builder, 0
    offsets: list[int] = []
    for value in values:
        size = 4 if value.type == I32 else 8
        offset = -(-offset // size) * size
        offsets.append(offset)
        offset += size
    buffer = threads.entry.alloca(I64, ir.Constant(I32, -(-offset // 8)))
    buffer.type = POINTER
    for value, at in zip(values, offsets, strict=True):
        builder.store(value, builder.gep(buffer, [ir.Constant(I64, at)], source_etype=I8))
    builder.call(external(builder.module, "vprintf", I32, [ADDRESS, ADDRESS]), [text, buffer])
