"""Reads of buffers go to their first readers, past conversions and reductions that make the block wait.

A kernel loads an operand where it pleases. Between the load and the dot there may be an exchange through scratch, and nothing
passes its barriers later (`weft.codegen.nvidia.order`). The operand's fragments would be in registers beside what is exchanged.

    value = local_load                        half = convert half
    half = convert half                ->     value = local_load
    dot half, value                           dot half, value

Attention forward with rows of 128 elements spilled 148 bytes where weights are exchanged between warps before their product.

What is computed from reads alone goes with them. A read does not pass an op that fills buffers or waits for copies, nor a
loop or a branch. Where there is no exchange it stays: attention backward takes 178 registers, not 168, where all reads are late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from weft.ir import gpu, tile
from weft.ir.types import is_tile

_FILLS: Final = (gpu.AsyncCopyOp, gpu.CommitOp, gpu.WaitOp, gpu.LocalStoreOp, gpu.BarrierOp)


@dataclass(frozen=True)
class ReadLate(ModulePass):
    """Moves reads of buffers to their first readers."""

    name = "read-late"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in list(_blocks(op)):
            _move(block)


def _blocks(op: Operation) -> Iterator[Block]:
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                if not isinstance(inner, tile.CombiningOp):
                    yield from _blocks(inner)


def _move(block: Block) -> None:
    """Readers are moved before what they read."""
    reads: set[Operation] = {op for op in block.ops if isinstance(op, gpu.LocalLoadOp)}
    for op in block.ops:
        sources = [operand.owner for operand in op.operands if is_tile(operand)]
        if (tile.is_a(op, tile.Elementwise) or tile.is_a(op, tile.Shape)) and sources and reads.issuperset(sources):
            reads.add(op)
    for op in reversed(list(block.ops)):
        if op in reads and _exchanges(op, place := _place(op, block)):
            while (before := place.prev_op) is not None and before is not op and before in reads:
                place = before  # reads keep their order
            op.detach()
            block.insert_op_before(op, place)


def _exchanges(op: Operation, place: Operation) -> bool:
    """Whether the block may wait between an op and a place behind it: for an exchange through scratch."""
    between = op.next_op
    while between is not None and between is not place:
        if isinstance(between, tile.ConvertLayoutOp | tile.CombiningOp | tile.GatherOp):
            return True
        between = between.next_op
    return False


def _place(op: Operation, block: Block) -> Operation:
    """The first op behind an op of the block that the op must not pass, or that reads it."""
    readers = {block.find_ancestor_op_in_block(use.operation) for result in op.results for use in result.uses}
    place = op.next_op
    while place is not None and place not in readers:
        if isinstance(place, _FILLS) or (place.regions and not isinstance(place, tile.CombiningOp)):
            break
        if place.next_op is None:
            break
        place = place.next_op
    assert place is not None, "a block ends with its terminator"
    return place
