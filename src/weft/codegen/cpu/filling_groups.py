"""Panels that are filled while their first rows are multiplied.

A panel that one row of tiles uses is packed for one use. In products of 33 rows that took a sixth of the time, in which the
processor loads and stores, and its multiply-add units idle. So what fills a right panel is emitted where the panel is
multiplied. There it packs one group of columns, a word or two of the depth at a time, and the first block of rows is multiplied
by these at once:

    if stale: for each step: pack its tile        for each group of columns:
    for each group of columns:                        first block: if stale: for each word: pack it, multiply by it
        for each block of rows: multiply     ->                    else: multiply
                                                      for each further block of rows: multiply

In C (Zen 4, nothing else on the machine) float32 33x777x1001 took 550 us before and 495 so, and 489 with prefetches of rows to
come, which help beside neighbours (`weft.codegen.cpu.fill_panels`). Each sum has the same products in the same order.

The vectors that were packed are multiplied from registers. Read back from the panel they took longer than packing first: each
waits until the store that it reads has left the core's buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.loops import axis_bits
from weft.codegen.cpu.schedule import RegisterLoop, Schedule
from weft.ir.cpu import ClaimOp, MultiplyOp, PackOp
from weft.ir.types import layout_of, shape_of
from weft.target import PRODUCTS

TOGETHER: Final = 2
"""The vectors of the right panel that are packed at once, and so the words, or pairs of them, at most. One at a time, wrapped
float32 33x777x1001 in tiles of 16x16x16 took 1.03 times as long."""


@dataclass(frozen=True)
class Packed:
    """Stack slots, of vectors of a type and of so many ``bytes``, in which the words of a group are left that were just packed.
    LLVM makes registers of them."""

    slots: Sequence[ir.Instruction]
    type: ir.VectorType
    bytes: int


@dataclass(frozen=True)
class GroupFilling:
    """What fills a panel: a branch around loops, of which the innermost one packs a tile. ``schedules`` are those of all its
    blocks, and ``buffers`` those of values that it computes before the loops."""

    op: scf.IfOp
    pack: PackOp
    schedules: Mapping[Block, Schedule]
    buffers: dict[SSAValue, Buffer] = field(default_factory=dict[SSAValue, Buffer])

    @property
    def block(self) -> Block:
        """The block that fills the panel."""
        return self.op.true_region.block

    @property
    def group_bits(self) -> tuple[int, ...]:
        """The register bits of the tile that are a group's number."""
        groups = shape_of(self.pack.value)[1] // self.pack.geometry.width
        columns = axis_bits(layout_of(self.pack.value), "register", 1)
        return tuple(columns[len(columns) - (groups.bit_length() - 1) :])

    def stretch_bits(self, deep: int) -> tuple[int, ...]:
        """The register bits of the tile that are the number of a stretch of its depth, of so many elements."""
        return tuple(axis_bits(layout_of(self.pack.value), "register", 0)[deep.bit_length() - 1 :])


def filled_by_groups(op: scf.IfOp, schedule_of: Callable[[Block], Schedule]) -> tuple[MultiplyOp, GroupFilling] | None:
    """The multiplication whose right panel a branch fills, and how it can do so itself. None where something else reads the
    panel, where no loop fills it, where a loop does more than to pack a tile, and where registers span groups."""
    claim = op.cond.owner
    if not isinstance(claim, ClaimOp):
        return None
    users = [use.operation for use in claim.address.uses]
    packs = [user for user in users if isinstance(user, PackOp)]
    products = [user for user in users if isinstance(user, MultiplyOp)]
    if len(users) != 2 or len(packs) != 1 or len(products) != 1:
        return None
    (pack,), (product,) = packs, products
    if product.right is not claim.address or product.parent is not op.parent or pack.parent is op.true_region.block:
        return None
    panel = pack.geometry
    rows = shape_of(pack.value)[0]
    if PRODUCTS[product.instruction.data].rows or rows < TOGETHER * panel.group:
        return None
    if layout_of(pack.value).in_size("lane") > panel.width:
        return None
    schedules = {block: schedule_of(block) for block in _blocks(op.true_region.block)}
    for block, schedule in schedules.items():
        loops = [item for item in schedule.items if isinstance(item, RegisterLoop)]
        if any(loop.roots != ([] if loop.kept else [pack]) for loop in loops):
            return None
        if any(loop.kept for loop in loops) and block is not op.true_region.block:
            return None
    return product, GroupFilling(op, pack, schedules)


def _blocks(block: Block) -> Iterator[Block]:
    """A block, and those of the loops in it."""
    yield block
    for op in block.ops:
        if isinstance(op, scf.ForOp):
            yield from _blocks(op.body.block)
