"""Rule 4 of `weft.transforms.layouts.assign`: which values are computed again in the layout that a user wants, and from what.

Inference prices by it and rewriting follows it, so that what is priced is what is inserted.
"""

from __future__ import annotations

from typing import Final

from xdsl.ir import Operation, SSAValue

from weft.ir import tile
from weft.ir.types import is_tile
from weft.layout import LinearLayout
from weft.transforms.layouts.rules import LayoutFacts

_LONGEST: Final = 32
"""The most ops of an address that is computed again."""


def is_cloned(value: SSAValue, layout: LinearLayout, facts: LayoutFacts) -> bool:
    """Whether a clone of its op gives the value in a layout; a conversion does for other values."""
    op = value.owner
    if not isinstance(op, Operation):
        return False
    free = not facts.weights[value] and (tile.is_a(op, tile.Generator) or tile.is_a(op, tile.Elementwise))
    return free or isinstance(op, tile.ShapeOp) or (facts.spelling is None and _splats(op, layout))


def cloned_from(value: SSAValue, layout: LinearLayout, facts: LayoutFacts) -> list[tuple[SSAValue, LinearLayout]]:
    """The tiles, and their layouts, from which a clone of the value is computed; none where it is converted."""
    op = value.owner
    if not isinstance(op, Operation) or not is_cloned(value, layout, facts):
        return []
    source = facts.spelled(op.source_layout(layout)) if isinstance(op, tile.ShapeOp) else layout
    return [(operand, source) for operand in op.operands if is_tile(operand)]


def _splats(op: Operation, layout: LinearLayout) -> bool:
    """Whether the op is a plain load that nothing else reads and that the layout wants one element a register of:
    better loaded and repeated element by element than loaded as vectors and taken apart. Or addresses computed from such loads:
    of rows, say, whose numbers are loaded."""
    if any(layout.columns("lane")):
        return False
    pending, seen = [op], 0
    loads = False
    while pending:
        current = pending.pop()
        seen += 1
        if not current.results[0].has_one_use() or seen > _LONGEST:
            return False
        if isinstance(current, tile.LoadOp):
            if current.volatile is not None:
                return False
            loads = True
        elif isinstance(current, tile.ShapeOp) or tile.is_a(current, tile.Addressing):
            for operand in filter(is_tile, current.operands):
                if isinstance(operand.owner, Operation):
                    pending.append(operand.owner)
                else:
                    return False
        elif not tile.is_a(current, tile.Generator):
            return False
    return loads
