"""Places in tile IR at which passes insert ops, with the user's line."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from weft import dtypes
from weft.ir import tile
from weft.ir.types import scalar


@dataclass(frozen=True)
class Inserting:
    """Inserts ops in front of ``place``. Their location is that of ``origin``."""

    place: Operation
    origin: Operation

    def add(self, op: tile.TileOp) -> tile.TileOp:
        """Inserts an op, and returns it."""
        block = self.place.parent_block()
        assert block is not None, f"{self.place.name} stands in no block"
        op.location = self.origin.location
        block.insert_op_before(op, self.place)
        return op

    def number(self, value: int) -> SSAValue:
        """An int32."""
        return self.add(tile.ConstantOp(value, scalar(dtypes.int32))).results[0]
