"""Registers of pointers that are a run if their ends are as far apart as those of a run.

Whether the addresses in a register are consecutive is not known where offsets wrap around. To compare all of them takes a vector
of addresses, eight of 512 bits for 64 bytes. The two ends suffice for what kernels write, ``offsets % M`` and
``min(offsets, M - 1)``, with offsets that are runs:

    offsets % M             7 8 9 0        ascends by one but where it falls by M: the ends of four are 3 apart if it never falls
    min(offsets, M - 1)     7 8 9 9        ascends by one or stays

and for sums of these and of what all lanes share. As for axis analysis (`weft.transforms.axis`), signed offsets do not overflow.
Then lane i is ``first + i - lost(i)``. A remainder has lost the multiples of M that lie between, a minimum what is above the
bound: either begins with 0 and never falls. So the last lane has lost nothing only where none has.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from weft.ir import tile
from weft.ir.direct import defining_op
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.transforms.axis import AxisInfo


def ends_decide(pointer: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> bool:
    """Whether a register of pointers is a run of elements if its last lane is as far from its first as in a run."""
    layout, shape = layout_of(pointer), shape_of(pointer)
    lanes, dimension = layout.in_size("lane"), len(shape) - 1
    in_a_row = list(layout.columns("lane")) == [1 << bit for bit in range(layout.in_bits("lane"))]
    return lanes > 1 and lanes <= shape[dimension] and in_a_row and _Ends(lanes, axis).decide(pointer, dimension)


class _Ends:
    """Along dimensions of tiles, in registers of so many ``lanes``."""

    def __init__(self, lanes: int, axis: Mapping[SSAValue, AxisInfo]):
        self._lanes = lanes
        self._axis = axis

    def decide(self, value: SSAValue, d: int) -> bool:
        """Whether the ends of a value decide along dimension ``d``."""
        if self._is_run(value, d):
            return True
        op = defining_op(value)
        match op:
            case tile.BroadcastOp():
                return shape_of(op.source)[d] == shape_of(value)[d] and self.decide(op.source, d)
            case tile.ExpandDimsOp():
                return self.decide(op.source, d - (op.axis.value.data < d))  # the new dimension has one element
            case tile.AddPtrOp():
                return self._of_one(op.pointer, op.offset, d)
            case tile.BinaryOp() if op.kind.data == "add":
                return self._of_one(op.lhs, op.rhs, d)
            case tile.BinaryOp() if op.kind.data in ("rem", "min"):
                return dtype_of(value).signed and self._is_run(op.lhs, d) and self._is_shared(op.rhs, d)
            case _:
                return False

    def _of_one(self, lhs: SSAValue, rhs: SSAValue, d: int) -> bool:
        """A sum of two, of which one is the same in all lanes."""
        if self._is_shared(rhs, d):
            return self.decide(lhs, d)
        return self._is_shared(lhs, d) and self.decide(rhs, d)

    def _is_run(self, value: SSAValue, d: int) -> bool:
        return self._axis[value].contiguity[d] >= self._lanes

    def _is_shared(self, value: SSAValue, d: int) -> bool:
        return self._axis[value].constancy[d] >= self._lanes
