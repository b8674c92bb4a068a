"""Registers of pointers that are a run if their ends are as far apart as those of a run.

Whether the addresses in a register are consecutive is not known where offsets wrap around. To compare all of them takes a vector
of addresses, eight of 512 bits for 64 bytes. The two ends suffice for what kernels write, ``offsets % M`` and
``min(offsets, M - 1)``, with offsets that are runs:

    offsets % M             7 8 9 0        ascends by one but where it falls by M: the ends of four are 3 apart if it never falls
    min(offsets, M - 1)     7 8 9 9        ascends by one or stays

and for sums of these and of what all lanes share. As for axis analysis (`weft.transforms.axis`), signed offsets do not overflow.
Then lane i is ``first + i - lost(i)``. A remainder has lost the multiples of M that lie between, a minimum what is above the
bound: either begins with 0 and never falls. So the last lane has lost nothing only where none has.

These offsets decide as the pointers do, and are the same for all rows: four rows of bytes that are packed together ask once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from weft.ir import tile
from weft.ir.direct import defining_op
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.transforms.axis import AxisInfo


def deciding(pointer: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> Sequence[SSAValue]:
    """From a tile of pointers to the tile that it is computed from, of which the last lane of each register is as far from the
    first as in a run only where the pointers are a run: each is an operand of the one before. Nothing where there is none."""
    layout, shape = layout_of(pointer), shape_of(pointer)
    lanes, dimension = layout.in_size("lane"), len(shape) - 1
    in_a_row = list(layout.columns("lane")) == [1 << bit for bit in range(layout.in_bits("lane"))]
    if lanes < 2 or lanes > shape[dimension] or not in_a_row:
        return ()
    return _Ends(lanes, axis).path(pointer, dimension)


class _Ends:
    """Along dimensions of tiles, in registers of so many ``lanes``."""

    def __init__(self, lanes: int, axis: Mapping[SSAValue, AxisInfo]):
        self._lanes = lanes
        self._axis = axis

    def path(self, value: SSAValue, d: int) -> Sequence[SSAValue]:
        """As `deciding`, along dimension ``d`` of a value."""
        if self._is_run(value, d):
            return (value,)
        op = defining_op(value)
        further: Sequence[SSAValue] = ()
        match op:
            case tile.BroadcastOp() if shape_of(op.source)[d] == shape_of(value)[d]:
                further = self.path(op.source, d)
            case tile.ExpandDimsOp():
                further = self.path(op.source, d - (op.axis.value.data < d))  # the new dimension has one element
            case tile.AddPtrOp():
                further = self._of_one(op.pointer, op.offset, d)
            case tile.BinaryOp() if op.kind.data == "add":
                further = self._of_one(op.lhs, op.rhs, d)
            case tile.BinaryOp() if op.kind.data in ("rem", "min"):
                decides = dtype_of(value).signed and self._is_run(op.lhs, d) and self._is_shared(op.rhs, d)
                return (value,) if decides else ()
            case _:
                pass
        return (value, *further) if further else ()

    def _of_one(self, lhs: SSAValue, rhs: SSAValue, d: int) -> Sequence[SSAValue]:
        """A sum of two, of which one is the same in all lanes."""
        if self._is_shared(rhs, d):
            return self.path(lhs, d)
        return self.path(rhs, d) if self._is_shared(lhs, d) else ()

    def _is_run(self, value: SSAValue, d: int) -> bool:
        return self._axis[value].contiguity[d] >= self._lanes

    def _is_shared(self, value: SSAValue, d: int) -> bool:
        return self._axis[value].constancy[d] >= self._lanes
