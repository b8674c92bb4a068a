"""Tiles that are too large for registers are computed strip by strip, in a loop.

A tile op is emitted for all of its elements at once: what a store writes has been loaded as a whole before. Where a thread's part
of these loads takes more registers than it has, and rows do not depend on each other, the rows go in strips:

    x = load [512, 128]                   for i in 0 .. 16:
    y = load [512, 128]          ->           x = load [32, 128]      rows 32 i and on
    store gather(x, y, axis 1)                y = load [32, 128]
                                              store gather(x, y, axis 1)

A row has one place in the first dimension. A *part* is a store and what it is computed from in its block, row by row: loads,
elementwise and shape ops, generators, gathers along other axes. It is left as it is if

- something of it depends on several rows,
- what is computed from a load is used elsewhere, too,
- or a load may not move behind what is between it and the store, or behind the store of another strip (`weft.ir.memory`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft import dtypes
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, element_of, is_tile, scalar, shape_of, tensor
from weft.transforms.nvidia.inserting import Inserting
from weft.transforms.nvidia.prefetched import apart

LANES: Final = 32

MOST: Final = 255
"""Registers of a thread."""
STRIP: Final = 64
"""Registers of a thread for the loads of a strip. Few, so that a multiprocessor has room for several blocks."""


@dataclass(frozen=True)
class CutStrips(ModulePass):
    """Computes what is stored in strips, if the loads for it take more than ``registers`` of a thread; see the module.

    ``disjoint``: arrays do not overlap. ``strip``: the registers of a thread that a strip's loads may take."""

    name = "cut-strips"

    warps: int = 4
    disjoint: bool = False
    registers: int = MOST
    strip: int = STRIP

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for store in [inner for inner in ops_in(op) if isinstance(inner, tile.StoreOp)]:
            part = _part(store)
            loads = [one for one in part or () if isinstance(one, tile.LoadOp)]
            words = sum(prod(shape_of(load.result)) * dtype_of(load.result).itemsize // 4 for load in loads)
            each = LANES * self.warps
            if part is None or words <= self.registers * each or not self._may_move(store, loads):
                continue
            count = 1 << (-(-words // (self.strip * each)) - 1).bit_length()
            if all(shape_of(value)[0] % count == 0 for one in part for value in _tiles(one)):
                _cut(store, part, count)

    def _may_move(self, store: tile.StoreOp, loads: Sequence[tile.LoadOp]) -> bool:
        """Whether the loads may be executed at the store, and behind it."""
        block = store.parent_block()
        assert block is not None, "a store stands in a block"
        ops = list(block.ops)
        between = ops[min(map(ops.index, loads)) : ops.index(store) + 1]
        others = [inner for op in between if op not in loads for inner in op.walk()]
        return all(self._exchange(op, load) for op in others for load in loads)

    def _exchange(self, op: Operation, load: tile.LoadOp) -> bool:
        first, second = tile.ordering_of(op), tile.ordering_of(load)
        separate = self.disjoint and apart(op, load)
        return (
            first is None
            or second is None
            or (tile.may_exchange(first, second, apart=separate) and tile.may_exchange(second, first, apart=separate))
        )


def _part(store: tile.StoreOp) -> list[tile.TileOp] | None:
    """The store and what it is computed from row by row, in order; None where rows depend on each other, or what is computed from
    a load is used elsewhere."""
    block = store.parent_block()
    assert block is not None, "a store stands in a block"
    found: set[Operation] = {store}
    pending: list[Operation] = [store]
    while pending:
        op = pending.pop()
        for value in op.operands:
            if not _has_rows(op, value):
                continue
            owner = value.owner
            if not isinstance(owner, Operation) or owner.parent_block() is not block or not _by_rows(owner):
                return None
            if owner not in found:
                found.add(owner)
                pending.append(owner)
    part = [op for op in block.ops if op in found and isinstance(op, tile.TileOp)]
    loaded: set[SSAValue] = set()
    for op in part:
        if isinstance(op, tile.LoadOp) or not loaded.isdisjoint(op.operands):
            loaded.update(op.results)
    inside = all(use.operation in found for value in loaded for use in value.uses)
    return part if inside and shape_of(store.pointer) else None


def _has_rows(op: Operation, value: SSAValue) -> bool:
    """Whether a strip of an op takes a strip of an operand, not all of it."""
    return is_tile(value) and not (isinstance(op, tile.BroadcastOp) and shape_of(value)[0] < shape_of(op.result)[0])


def _by_rows(op: Operation) -> bool:
    """Whether a strip of the result is made of strips of the operands."""
    match op:
        case tile.ExpandDimsOp() | tile.GatherOp():
            return op.axis.value.data > 0
        case tile.LoadOp() | tile.BroadcastOp() | tile.ReshapeOp():
            return True
        case tile.ConstantOp() | tile.SplatOp() | tile.ArangeOp():
            return True
        case _:
            return tile.is_a(op, tile.Elementwise) and not isinstance(op, tile.HintOp)


def _tiles(op: Operation) -> list[SSAValue]:
    """The values of an op that go in strips."""
    return [*(value for value in op.operands if _has_rows(op, value)), *op.results]


def _cut(store: tile.StoreOp, part: Sequence[tile.TileOp], count: int) -> None:
    """Puts a loop over ``count`` strips in place of a store."""
    body = Block(arg_types=[scalar(dtypes.int32)])
    strips: dict[SSAValue, SSAValue] = {}
    end = scf.YieldOp()
    body.add_op(end)
    for op in part:
        inside = Inserting(end, op)
        if isinstance(op, tile.ArangeOp):
            strips[op.result] = _numbers(inside, op, body.args[0], count)
            continue
        operands = [strips.get(value, value) for value in op.operands]
        types = [tensor(element_of(r), _strip_of(shape_of(r), count)) for r in op.results]
        new = type(op).create(operands=operands, properties=op.properties, attributes=op.attributes, result_types=types)
        strips.update(zip(op.results, inside.add(new).results, strict=True))
    before = Inserting(store, store)
    loop = scf.ForOp(before.number(0), before.number(count), before.number(1), [], Region(body))
    loop.location = store.location
    Rewriter.replace_op(store, loop, [])


def _numbers(inside: Inserting, op: tile.ArangeOp, strip: SSAValue, count: int) -> SSAValue:
    """A strip of consecutive numbers: those of the first strip, and a multiple of their count."""
    start, size = op.start.value.data, shape_of(op.result)[0] // count
    first = inside.add(tile.BinaryOp("mul", strip, inside.number(size))).results[0]
    numbers = inside.add(tile.ArangeOp(start, start + size)).results[0]
    return inside.add(tile.BinaryOp("add", numbers, inside.add(tile.SplatOp(first, (size,))).results[0])).results[0]


def _strip_of(shape: Sequence[int], count: int) -> Sequence[int]:
    return (shape[0] // count, *shape[1:])
