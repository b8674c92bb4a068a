"""Histograms: counts in shared memory, to which threads add one for each of their elements.

    all threads       zeros in the counts, in vectors
    the block waits
    each register     red.shared.add, where the value is one of the bins and the mask holds, by the first thread of copies
    the block waits
    all threads       the result's elements, in vectors where the layout has registers in a row

Any layout of the source will do, and any of the result.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from weft.codegen.llvm.types import I32
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.files import of_scalars, scalar
from weft.codegen.nvidia.threads import Threads, thread_columns
from weft.ir import tile
from weft.ir.types import layout_of, shape_of
from weft.layout import LinearLayout
from weft.layout.algebra import f2
from weft.transforms.nvidia.scratch import scratch_of

_COUNT: Final = 4
"""Bytes."""
_VECTOR: Final = 4
"""Counts of the widest access."""


def histogram(threads: Threads, op: tile.HistogramOp) -> None:
    """Emits a histogram."""
    (bins,) = shape_of(op.result)
    _clear(threads, bins, scratch_of(op))
    instructions.barrier(threads.builder, "block")
    _count(threads, op, bins)
    instructions.barrier(threads.builder, "block")
    _read(threads, op)


def _clear(threads: Threads, bins: int, base: int) -> None:
    """Zeros, each thread's vectors a block apart."""
    builder = threads.builder
    size = 32 * threads.warps
    width = max(1, min(_VECTOR, bins // size))
    zeros = ir.Constant(ir.VectorType(I32, width), None)
    own = threads.entry.mul(threads.thread, ir.Constant(I32, width * _COUNT))
    step = size * width
    if bins < step:
        own = threads.entry.and_(own, ir.Constant(I32, bins * _COUNT - 1))  # copies of a zero
    for first in range(0, bins, step):
        pointer = threads.shared_address(own, base + first * _COUNT)
        builder.store(zeros, pointer, align=width * _COUNT)


def _count(threads: Threads, op: tile.HistogramOp, bins: int) -> None:
    builder, layout = threads.builder, layout_of(op.source)
    holder = threads.first_copy(thread_columns(layout))
    copies = layout.duplicate_mask("register")
    for register in range(layout.in_size("register")):
        if register & copies:
            continue
        value = scalar(builder, threads.files[op.source], register)
        counts = builder.icmp_unsigned("<", value, ir.Constant(I32, bins))
        for other in (holder, None if op.mask is None else scalar(builder, threads.files[op.mask], register)):
            counts = counts if other is None else builder.and_(counts, other)
        # A predicate alone: an address outside of the counts is computed, but not used.
        address = threads.shared_address(builder.shl(value, ir.Constant(I32, 2)), scratch_of(op))
        instructions.add_shared(builder, address, ir.Constant(I32, 1), counts)


def _read(threads: Threads, op: tile.HistogramOp) -> None:
    """The result's registers: vectors of those that lie in a row."""
    builder, layout = threads.builder, layout_of(op.result)
    own = threads.linear([column * _COUNT for column in thread_columns(layout)])
    columns = layout.columns("register")
    width = _width(layout)
    values: list[ir.Value] = []
    for first in range(0, layout.in_size("register"), width):
        pointer = threads.shared_address(own, f2.apply(columns, first) * _COUNT + scratch_of(op))
        loaded = builder.load(pointer, typ=ir.VectorType(I32, width), align=width * _COUNT)
        values += [builder.extract_element(loaded, ir.Constant(I32, place)) for place in range(width)]
    threads.files[op.result] = of_scalars(builder, values)


def _width(layout: LinearLayout) -> int:
    """How many registers lie in a row, up to a vector."""
    width = 1
    for column in layout.columns("register"):
        if column != width or width == _VECTOR:
            break
        width *= 2
    return width
