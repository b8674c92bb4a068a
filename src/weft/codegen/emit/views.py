"""Ops that move nothing: each register of the result *is* a register of the source.

Theorem 9.3 of the linear-layouts paper lets the layout pass choose layouts under which trans, reshape, expand_dims,
broadcast (and a conversion that only permutes registers) are such views. This module checks it column by column, and gives the
map from result registers to source registers. ``read`` is the layout that says which source element each place of the result
holds (`weft.ir.tile.ShapeOp.read_layout`). Then

    register j              -> the source register whose column is ``read``'s, or none where that is zero
    lane j, warp j, block j -> must have the source's column
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.ir import Operation

from weft.ir import tile
from weft.ir.direct import operands_of
from weft.ir.types import layout_of, shape_of
from weft.layout import LinearLayout


def view_columns(op: Operation) -> tuple[int, ...] | None:
    """For an op that may be a view: columns from its result's registers to its source's, or None where it is none."""
    source, result = operands_of(op)[0], op.results[0]
    if not shape_of(source):
        return None
    layout = layout_of(result)
    return match_registers(op.read_layout(layout) if isinstance(op, tile.ShapeOp) else layout, layout_of(source))


def columns_of_view(op: Operation) -> tuple[int, ...]:
    """`view_columns` of an op that is a view, as the layout pass leaves all ops of this class but conversions."""
    columns = view_columns(op)
    assert columns is not None, f"{op.name} is not a view of its source's registers"
    return columns


@lru_cache(maxsize=4096)
def match_registers(read: LinearLayout, source: LinearLayout) -> tuple[int, ...] | None:
    """Columns from a result's registers to its source's, where each place holds the source element that ``read`` says; None
    where data would have to move."""
    if any(read.columns(dim) != source.columns(dim) for dim in source.in_dims if dim != "register"):
        return None
    where = {column: 1 << j for j, column in enumerate(source.columns("register")) if column}
    if any(column and column not in where for column in read.columns("register")):
        return None
    return tuple(where[column] if column else 0 for column in read.columns("register"))
