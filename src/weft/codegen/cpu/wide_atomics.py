"""Atomics of rows of elements by blocks of 16 bytes.

CPUs have no instruction that adds to a float atomically. One element takes a loop: read, add, and write if no other thread has
written meanwhile, some 20 cycles for a compare-and-swap alone, and more where the cache line has to come from another core.
x86-64 swaps 16 bytes at once (``cmpxchg16b``), for the same price. Threads that update single elements of a block meanwhile see
each element change once: the block is swapped only where no byte of it has changed.

Blocks need addresses that 16 divides and all of their elements. Other registers are updated element by element, as are atomics
whose old values are used. AArch64 could swap 16 bytes, too: not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

from llvmlite import ir

from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.runs import mask_of, runs
from weft.codegen.cpu.updates import Atomic
from weft.codegen.cpu.values import Registers
from weft.codegen.llvm import atomics
from weft.codegen.llvm.types import I8, I32, I64, POINTER, all_lanes, shuffle
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of

FEATURE: Final = "cx16"
"""What LLVM calls the instruction."""


def by_blocks(
    registers: Registers, op: Atomic, index: RegisterIndex, values: Sequence[ir.Value]
) -> tuple[ir.Value, Callable[[], ir.Value]] | None:
    """Whether all of one register may be updated by blocks, a value known at run time, and what emits that; None where it never
    may."""
    builder, shape, dtype = registers.builder, runs(registers, op.pointer), dtype_of(op.value)
    if FEATURE not in registers.target.enabled or registers.options.checked or op.result.first_use is not None:
        return None
    if not isinstance(op, tile.AtomicRmwOp) or op.kind.data == "xchg" or not dtype.is_float or dtype.bits < 32:
        return None
    elements = atomics.BLOCK // dtype.itemsize
    if shape.run % elements or layout_of(op.pointer).duplicate_mask("lane"):
        return None
    kind, sem = op.kind.data, op.sem.data
    starts = [registers.lane(op.pointer, index, first) for first in shape.starts]
    low = builder.and_(reduce(builder.or_, starts), ir.Constant(I64, atomics.BLOCK - 1))
    whole = builder.icmp_unsigned("==", low, ir.Constant(I64, 0))
    if (mask := mask_of(registers, op.mask, index)) is not None:
        whole = builder.and_(whole, all_lanes(builder, mask))

    def update() -> ir.Value:
        for first, start in zip(shape.starts, starts, strict=True):
            row = builder.inttoptr(start, POINTER)
            for at in range(0, shape.run, elements):
                place = builder.gep(row, [ir.Constant(I64, at * dtype.itemsize)], source_etype=I8)
                value = shuffle(builder, values[0], [first + at + j for j in range(elements)])
                atomics.modify_block(builder, kind, dtype, sem, place, value)
        return ir.Constant(I32, 0)

    return whole, update
