"""How the registers of a thread are grouped into accesses to global memory, by axis analysis.

Elements that follow one another in memory, start at a multiple of the group's size, and share one mask value make one access.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.layout import LinearLayout
from weft.layout.algebra import f2
from weft.layout.planning.accesses import span
from weft.transforms.axis import AxisInfo
from weft.transforms.axis_boxes import box_of
from weft.transforms.axis_info import Box

WIDEST: Final = 128
"""Bits of the widest access to global memory."""


@dataclass(frozen=True)
class Groups:
    """How a thread's registers are accessed: instruction i moves the registers ``apply(across, i) ^ s`` for all sums s of
    ``inside``, in the order of addresses. Registers in neither hold copies."""

    inside: f2.Matrix
    across: f2.Matrix

    @property
    def all(self) -> list[list[int]]:
        """The registers of each instruction."""
        return [
            [f2.apply(self.across, number) ^ place for place in span(self.inside)]
            for number in range(1 << len(self.across))
        ]


def groups(layout: LinearLayout, bits: int, pointer: AxisInfo | None, mask: AxisInfo | None) -> Groups:
    """The widest groups of a layout for elements of ``bits``, given what is known of the pointers and the mask."""
    columns = layout.columns("register")
    kept = [1 << bit for bit, column in enumerate(columns) if column]
    best: list[int] = []
    if pointer is not None:
        best = _boxed(layout, bits, box_of(pointer), mask)
    stride = 1
    for axis in reversed(range(len(layout.shape))):
        if pointer is not None:
            found = _along(layout, axis, stride, bits, pointer, mask)
            best = found if len(found) > len(best) else best
        stride *= layout.shape[axis]
    return Groups(tuple(best), tuple(bit for bit in kept if bit not in best))


def _boxed(layout: LinearLayout, bits: int, pointer: Box, mask: AxisInfo | None) -> list[int]:
    """The register bits that walk addresses from an element on, across dimensions, as far as one access may go."""
    places = {column: bit for bit, column in enumerate(layout.columns("register"))}
    stride = 1
    found: dict[int, tuple[int, int, int]] = {}  # by what a bit of an index adds: the register's bit, dimension, place
    for axis in reversed(range(len(layout.shape))):
        size = layout.shape[axis]
        for place in range(size.bit_length() - 1):
            held = places.get(stride << place)
            inside = 1 << place < min(pointer.groups[axis], size if mask is None else mask.constancy[axis])
            if held is not None and inside:
                found.setdefault(pointer.steps[axis] << place, (held, axis, place))
        stride *= size
    chosen: list[tuple[int, int, int]] = []
    while bits << len(chosen) < WIDEST and (next_ := found.get(1 << len(chosen))) is not None:
        chosen.append(next_)
    while chosen and pointer.alignment({(axis, place) for _, axis, place in chosen}) * 8 < bits << len(chosen):
        chosen.pop()
    return [1 << held for held, _, _ in chosen]


def _along(
    layout: LinearLayout, axis: int, stride: int, bits: int, pointer: AxisInfo, mask: AxisInfo | None
) -> list[int]:
    """The register bits that walk one axis from its first element on, as far as one access may go."""
    columns = layout.columns("register")
    limit = min(WIDEST // bits, pointer.contiguity[axis], pointer.divisibility[axis] * 8 // bits)
    if mask is not None:
        limit = min(limit, mask.constancy[axis])
    found: list[int] = []
    while 2 << len(found) <= limit and (column := stride << len(found)) in columns:
        found.append(1 << columns.index(column))
    return found
