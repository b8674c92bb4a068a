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
    stride = 1
    for axis in reversed(range(len(layout.shape))):
        if pointer is not None:
            found = _along(layout, axis, stride, bits, pointer, mask)
            best = found if len(found) > len(best) else best
        stride *= layout.shape[axis]
    return Groups(tuple(best), tuple(bit for bit in kept if bit not in best))


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
