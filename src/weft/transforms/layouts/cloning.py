"""Rule 4 of `weft.transforms.layouts.assign`: which values are computed again in the layout that a user wants, and from what.

Inference prices by it and rewriting follows it, so that what is priced is what is inserted.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from weft.ir import tile
from weft.ir.types import is_tile
from weft.layout import LinearLayout
from weft.transforms.layouts.rules import LayoutFacts


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
    better loaded and repeated element by element than loaded as vectors and taken apart."""
    if not isinstance(op, tile.LoadOp) or op.volatile is not None:
        return False
    return not any(layout.columns("lane")) and op.result.has_one_use()
