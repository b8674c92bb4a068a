"""Addresses that are a known number of bytes behind others of their tile.

    x + (k + arange(0, 1024))       register 3, lane 2  =  register 0, lane 0  +  (3 * 16 + 2) * 4

The address of each register would be its own sum of offsets, of 32 bits, extended to 64: four instructions, where machines add a
constant while they load. They matter where memory is the limit: a processor looks a few hundred instructions ahead for what to
fetch next. Sums of one row of 2^23 float32 took 1.2 times as long.

Axis analysis (`weft.transforms.axis_info`) says how far apart neighbours are along each dimension, in aligned groups. A bit of a
register's or a lane's number that moves one bit of the index within such a group moves the address by a constant, if no
other bit of a number moves that bit of the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from weft.codegen.cpu.register_index import RegisterIndex
from weft.layout import LinearLayout
from weft.transforms.axis_info import AxisInfo


class Near(NamedTuple):
    """A register and a lane, and how many bytes behind their address another one is."""

    at: RegisterIndex
    lane: int
    distance: int


def nearest(layout: LinearLayout, info: AxisInfo, at: RegisterIndex, lane: int) -> Near:
    """The first of the pointers from which a lane of a register is known to be so many bytes away. Bits of the register that its
    loops count, too, stay as they are."""
    groups = list(zip([info.unit] * info.rank, info.contiguity, strict=True))
    if info.box is not None:
        boxed = [(step * info.box.unit, group) for step, group in info.box.along]
        groups = [max(pair, key=lambda each: each[1]) for pair in zip(groups, boxed, strict=True)]
    registers, lanes = _distances(layout, tuple(groups))
    counted = 0
    for _, images in at.terms:
        for image in images:
            counted |= image
    register, of_register = _without(at.const, registers, counted)
    first, of_lane = _without(lane, lanes, 0)
    return Near(RegisterIndex(register, at.terms), first, of_register + of_lane)


def _without(number: int, distances: Sequence[int | None], kept: int) -> tuple[int, int]:
    """A number without its bits of a known distance, but those that are ``kept``, and their distance."""
    total = 0
    for j, distance in enumerate(distances):
        if distance is not None and number & ~kept & 1 << j:
            number ^= 1 << j
            total += distance
    return number, total


_Distances = tuple[int | None, ...]


@lru_cache(maxsize=4096)
def _distances(layout: LinearLayout, groups: tuple[tuple[int, int], ...]) -> tuple[_Distances, _Distances]:
    """By how many bytes each bit of a register's and of a lane's number moves an address, where that is known. ``groups``: how
    far apart neighbours are along each dimension, in groups of so many."""
    columns = [*layout.columns("register"), *layout.columns("lane")]
    moved: dict[int, int] = {}
    stride = 1
    for size, (step, group) in zip(reversed(layout.shape), reversed(groups), strict=True):
        for bit in range((min(size, group) - 1).bit_length()):
            moved[stride << bit] = step << bit
        stride *= size

    def distance(column: int) -> int | None:
        alone = sum(1 for other in columns if other & column) == 1
        return moved.get(column) if alone else None

    return tuple(map(distance, layout.columns("register"))), tuple(map(distance, layout.columns("lane")))
