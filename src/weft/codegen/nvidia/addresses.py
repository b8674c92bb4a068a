"""Addresses of a thread's elements: one pointer, and immediate offsets behind it.

Axis analysis knows by how many bytes the pointers of a tile move along a dimension (`weft.transforms.axis_boxes`). Where a
register moves by a known distance, its element is accessed through the pointer of another register and an immediate offset.
LLVM then drops the arithmetic of the pointers that no access uses. Without it attention with rows of 128 elements keeps 8 row
numbers in registers for its copies, and computes 16 addresses of 64 bits in each iteration.

    pointers of x + (arange(0, 64)[:, None] * 128 + arange(0, 128)), float16; registers [(0,1),(0,2),(0,4),(8,0),(16,0),(32,0)]
    bytes behind the pointer of register 0, by the register's bits: 2, 4, 8, 2048, 4096, 8192

Law: the pointer of register r is that of ``r & ~known`` and the sum of the known bits' bytes behind it.

Limit: distances that are run-time numbers, such as a row's length, are not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.llvm.types import I64
from weft.codegen.nvidia.files import scalar
from weft.codegen.nvidia.threads import Threads
from weft.ir.types import layout_of
from weft.layout import LinearLayout
from weft.transforms.axis_boxes import box_of
from weft.transforms.axis_info import Box

_FARTHEST: Final = 1 << 23
"""Bytes behind a pointer at most: instructions have signed offsets of 24 bits."""


Address: TypeAlias = tuple[ir.Value, int]
"""A pointer, and the bytes behind it."""


@dataclass(frozen=True)
class Distances:
    """By how many bytes the bits of a register's number move its pointer; None where that is not known."""

    bytes: tuple[int | None, ...]

    def split(self, register: int) -> tuple[int, int]:
        """The register whose pointer is to be used, and the bytes behind it."""
        base, offset = register, 0
        for bit, distance in enumerate(self.bytes):
            if register >> bit & 1 and distance is not None and abs(offset + distance) < _FARTHEST:
                base, offset = base & ~(1 << bit), offset + distance
        return base, offset


@lru_cache(maxsize=512)
def distances(layout: LinearLayout, box: Box) -> Distances:
    """The distances of the pointers of a layout. A bit of a register is known if it moves inside groups of the box, by bits of
    the index that no other bit of a thread or register moves."""
    names = [name for name in layout.in_dims for _ in layout.columns(name)]
    columns = [column for name in layout.in_dims for column in layout.columns(name)]
    found: list[int | None] = []
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        if name != "register":
            continue
        others = 0
        for other, each in enumerate(columns):
            others |= each if other != place else 0
        steps = zip(layout.unflatten(column), box.steps, box.groups, strict=True)
        known = [step * index * box.unit if index < group else None for index, step, group in steps if index]
        found.append(None if column & others or None in known else sum(each or 0 for each in known))
    return Distances(tuple(found))


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
