"""Join, split and flip of a thread's registers: renamings, and shuffles where a flip crosses lanes."""

from __future__ import annotations

from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.rearranging import crossed, halves, joined
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.files import File, count_of, element_type, from_words, take, words_of
from weft.codegen.nvidia.threads import Threads
from weft.ir import tile
from weft.ir.types import layout_of
from weft.layout.algebra import f2


def join(threads: Threads, op: tile.JoinOp) -> None:
    """Both operands' registers, side by side."""
    columns, bit = joined(op)
    first, second = threads.files[op.lhs], threads.files[op.rhs]
    held = count_of(first)
    registers = [f2.apply(columns, r) + (held if r & bit else 0) for r in range(1 << len(columns))]
    threads.files[op.result] = take(threads.builder, (*first, *second), registers)


def split(threads: Threads, op: tile.SplitOp) -> None:
    """Each half's registers."""
    columns, bit = halves(op)
    source = threads.files[op.source]
    for result, half in ((op.first, 0), (op.second, bit)):
        registers = [f2.apply(columns, r) ^ half for r in range(1 << len(columns))]
        threads.files[result] = take(threads.builder, source, registers)


def flip(threads: Threads, op: tile.FlipOp) -> None:
    """Registers renamed, and their words from the lane with the opposite bits."""
    register, lane = crossed(op)
    file = threads.files[op.source]
    file = take(threads.builder, file, [r ^ register for r in range(layout_of(op.source).in_size("register"))])
    threads.files[op.result] = _from_lanes(threads, op, file, lane) if lane else file


def _from_lanes(threads: Threads, op: tile.FlipOp, file: File, mask: int) -> File:
    builder, element = threads.builder, element_of_value(op.source)
    stored = tuple(element.to_storage(builder, chunk) for chunk in file)
    words = [instructions.shuffle_bfly(builder, word, mask) for word in words_of(builder, stored)]
    moved = from_words(builder, words, element_type(stored), count_of(stored))
    return tuple(element.from_storage(builder, chunk) for chunk in moved)
