"""Places in tile IR at which passes insert ops, with the user's line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from weft import dtypes
from weft.ir import tile
from weft.ir.types import scalar


@dataclass(frozen=True)
class Inserting:
    """A place to insert ops at, whose location is that of ``origin``."""

    origin: Operation
    insert: Callable[[Operation], None]

    def add(self, op: tile.TileOp) -> tile.TileOp:
        """Inserts an op."""
        op.location = self.origin.location
        self.insert(op)
        return op

    def number(self, value: int) -> SSAValue:
        """An int32."""
        return self.add(tile.ConstantOp(value, scalar(dtypes.int32))).results[0]


def before(place: Operation, op: Operation) -> None:
    block = place.parent_block()
    assert block is not None, f"{place.name} stands in no block"
    block.insert_op_before(op, place)
