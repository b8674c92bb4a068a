"""Panels of narrow elements are packed by whole vector registers.

Layouts have as many lanes as a register has sums of 32 bits. So a register of bytes is a quarter of a vector, and to pack a panel
of them took four times as many instructions as to pack one of float32 in as many registers. Here the loads that fill panels,
and what their addresses and masks are computed from, get layouts of longer rows:

    cpu.pack(load(pointers))        registers of 16 bytes     ->     of 64 bytes, or of a row of the tile or of its panel's groups

The tile must be in row-major vectors, and loaded by this load alone, or cast from integers so loaded. What it is computed from
must be invariant loads, and ops that any layout suits: generators, elementwise ops and shape ops. Other tiles stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.ir import tile
from weft.ir.cpu import PackOp
from weft.ir.direct import defining_op, operands_of, ops_in
from weft.ir.types import dtype_of, is_tile, layout_of, shape_of, with_layout
from weft.layout import LinearLayout, vector
from weft.transforms.invariant_loads import is_invariant
from weft.transforms.pack_dots import LIKELY_RUNS

Key: TypeAlias = tuple[SSAValue, LinearLayout]
"""A tile, and the layout in which it is wanted."""


@dataclass(frozen=True)
class WidenPacks(ModulePass):
    """Packs panels by registers of up to ``vector_bits``; for laid-out tile IR of a CPU."""

    name = "widen-packs"

    vector_bits: int = 512

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known: dict[Key, SSAValue] = {}
        for pack in [inner for inner in ops_in(op) if isinstance(inner, PackOp)]:
            layout = _wide_layout(pack, self.vector_bits)
            order = None if layout is None else _order((pack.value, layout))
            if order is not None:
                for key in order:
                    if key not in known:
                        known[key] = _in_layout(*key, known)
                pack.operands[0] = known[order[-1]]


def _wide_layout(pack: PackOp, vector_bits: int) -> LinearLayout | None:
    """The layout of a packed tile in long registers; None where it has it, or another one than rows of vectors, or is no load.
    Groups of several vectors are filled one by one (`weft.codegen.cpu.filling_groups`): no register spans two of them."""
    value, panel = pack.value, pack.geometry
    op, shape, layout = defining_op(value), shape_of(value), layout_of(value)
    lanes = layout.in_size("lane")
    across = panel.width if panel.axis == 0 and panel.width > lanes else shape[-1]
    wide = min(vector_bits // dtype_of(value).bits, across)
    if isinstance(op, tile.CastOp) and dtype_of(op.source).is_integer and dtype_of(value).is_integer:
        op = defining_op(op.source)
    fills = isinstance(op, tile.ConstantOp) or (isinstance(op, tile.LoadOp) and LIKELY_RUNS in op.attributes)
    return vector(shape, wide) if fills and wide > lanes and layout == vector(shape, lanes) else None


def _order(wanted: Key) -> list[Key] | None:
    """The tiles to make, each after those that it is computed from; None where one of them has its layout for good."""
    order: list[Key] = []
    placed: set[Key] = set()
    pending = [wanted]
    while pending:
        key = pending[-1]
        sources = _sources(*key)
        if sources is None:
            return None
        missing = [source for source in sources if source not in placed]
        pending.extend(missing)
        if not missing:
            pending.pop()
            if key not in placed:
                placed.add(key)
                order.append(key)
    return order


def _sources(value: SSAValue, layout: LinearLayout) -> list[Key] | None:
    """The tiles from which one is computed in a layout; none for one that has it, None where it can have no other."""
    op = defining_op(value)
    if layout_of(value) == layout:
        return []
    if op is None:
        return None
    tiles = [operand for operand in operands_of(op) if is_tile(operand)]
    if isinstance(op, tile.ShapeOp):
        return [(each, op.source_layout(layout)) for each in tiles]
    free = tile.is_a(op, tile.Generator) or tile.is_a(op, tile.Elementwise)
    return [(each, layout) for each in tiles] if free or is_invariant(op) else None


def _in_layout(value: SSAValue, layout: LinearLayout, known: dict[Key, SSAValue]) -> SSAValue:
    """The tile in a layout, computed behind the op that computes it in its own."""
    op = defining_op(value)
    if op is None or layout_of(value) == layout:
        return value
    source = op.source_layout(layout) if isinstance(op, tile.ShapeOp) else layout
    new = _clone(op, [known.get((operand, source), operand) for operand in operands_of(op)], layout)
    Rewriter.insert_op(new, InsertPoint.after(op))
    return new.results[0]


def _clone(op: Operation, operands: list[SSAValue], layout: LinearLayout) -> Operation:
    new = type(op).create(
        operands=operands,
        result_types=[with_layout(result.type, layout) for result in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    new.location = op.location
    for old, result in zip(op.results, new.results, strict=True):
        result.name_hint = old.name_hint
    return new
