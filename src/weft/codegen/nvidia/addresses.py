"""Addresses of a thread's elements: one pointer, and immediate offsets behind it.

Where a register moves by a known distance (`weft.transforms.distances`), its element is accessed through the pointer of
another register and an immediate offset. LLVM then drops the arithmetic of the pointers that no access uses. Without it attention
with rows of 128 elements keeps 8 row numbers in registers for its copies, and computes 16 addresses of 64 bits in each iteration.
"""

from __future__ import annotations

from typing import TypeAlias

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.llvm.types import I64
from weft.codegen.nvidia.files import scalar
from weft.codegen.nvidia.threads import Threads
from weft.ir.types import layout_of
from weft.transforms.axis_boxes import box_of
from weft.transforms.distances import distances

Address: TypeAlias = tuple[ir.Value, int]
"""A pointer, and the bytes behind it."""


def address_of(threads: Threads, pointer: SSAValue, register: int) -> Address:
    """The address that a register of a tile of pointers holds."""
    base, offset = distances(layout_of(pointer), box_of(threads.facts.axis[pointer])).split(register)
    return scalar(threads.builder, threads.files[pointer], base), offset


def plain(builder: ir.IRBuilder, address: Address) -> ir.Value:
    """The address as one value, for LLVM's loads and stores, which take the sum apart again."""
    pointer, offset = address
    return builder.add(pointer, ir.Constant(I64, offset)) if offset else pointer


def behind(address: Address) -> str:
    """The immediate offset as it is spelled behind a register."""
    return f"+{address[1]}" if address[1] else ""
