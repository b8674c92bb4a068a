"""By how many bytes the registers of a thread, or its lanes, move its pointers, where axis analysis knows it
(`weft.transforms.axis_boxes`).

    pointers of x + (arange(0, 64)[:, None] * 128 + arange(0, 128)), float16; registers [(0,1),(0,2),(0,4),(8,0),(16,0),(32,0)]
    bytes behind the pointer of register 0, by the register's bits: 2, 4, 8, 2048, 4096, 8192

Law: the pointer of register r is that of ``r & ~known`` and the sum of the known bits' bytes behind it.

Limit: distances that are run-time numbers, such as a row's length, are not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from weft.layout import LinearLayout
from weft.transforms.axis_info import Box

_FARTHEST: Final = 1 << 23
"""Bytes behind a pointer at most: instructions have signed offsets of 24 bits."""


@dataclass(frozen=True)
class Distances:
    """By how many bytes the bits of a register's or lane's number move its pointer; None where that is not known."""

    bytes: tuple[int | None, ...]

    def split(self, register: int) -> tuple[int, int]:
        """The register whose pointer is to be used, and the bytes behind it."""
        base, offset = register, 0
        for bit, distance in enumerate(self.bytes):
            if register >> bit & 1 and distance is not None and abs(offset + distance) < _FARTHEST:
                base, offset = base & ~(1 << bit), offset + distance
        return base, offset


@lru_cache(maxsize=512)
def distances(layout: LinearLayout, box: Box, dim: str = "register") -> Distances:
    """The distances of the pointers of a layout along ``dim``. A bit is known if it moves inside groups of the box, by bits of
    the index that no other bit of a thread or register moves."""
    names = [name for name in layout.in_dims for _ in layout.columns(name)]
    columns = [column for name in layout.in_dims for column in layout.columns(name)]
    found: list[int | None] = []
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        if name != dim:
            continue
        others = 0
        for other, each in enumerate(columns):
            others |= each if other != place else 0
        steps = zip(layout.unflatten(column), box.steps, box.groups, strict=True)
        known = [step * index * box.unit if index < group else None for index, step, group in steps if index]
        found.append(None if column & others or None in known else sum(each or 0 for each in known))
    return Distances(tuple(found))
