"""The ops of a function that have prices, and how often each is executed: a loop's constant bounds say it, else a guess."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from weft.ir import tile
from weft.transforms.constants import constant_trips
from weft.transforms.effects import is_terminator

LOOP: Final = 16.0
"""Trips of a loop whose bounds are not constant."""
WHILE: Final = 8.0
BRANCH: Final = 0.5


def ops_of(block: Block) -> Iterator[Operation]:
    """The ops of a block and of its inner regions, combine regions excluded; a terminator is part of its parent."""
    for op in block.ops:
        if is_terminator(op):
            continue
        yield op
        if not isinstance(op, tile.CombiningOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield from ops_of(inner)


class Trips:
    """Trips of blocks; answers are kept."""

    def __init__(self) -> None:
        self._blocks: dict[Block, float] = {}

    def of_block(self, block: Block | None) -> float:
        """How often a block is executed."""
        if block is None:
            return 1.0
        if block not in self._blocks:
            parent = block.parent_op()
            if parent is None or isinstance(parent, func.FuncOp):
                self._blocks[block] = 1.0
            else:
                self._blocks[block] = self.of_block(parent.parent_block()) * _times(parent)
        return self._blocks[block]

    def of(self, op: Operation) -> float:
        """How often an op is executed."""
        return self.of_block(op.parent_block())

    def of_value(self, value: SSAValue) -> float:
        """How often a value is defined."""
        owner = value.owner
        return self.of_block(owner) if isinstance(owner, Block) else self.of(owner)


def _times(op: Operation) -> float:
    """How often the blocks of an op are executed for each execution of it."""
    match op:
        case scf.ForOp():
            trips = constant_trips(op)
            return LOOP if trips is None else float(trips)
        case scf.WhileOp():
            return WHILE
        case scf.IfOp():
            return BRANCH
        case _:
            return 1.0
