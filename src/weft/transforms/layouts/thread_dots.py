"""Fragments of dots: the layouts of a matrix instruction's operands and result, by warps in rows and columns.

`chained` dots divide warps by rows. Operands that lie narrower in memory than they are multiplied are taken in another order of
the contraction (`_adjacent`) or of the columns (`pair_columns`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from weft.ir import gpu, tile
from weft.ir.types import dtype_of, shape_of
from weft.layout import LinearLayout, nvidia_mma, nvidia_mma_operand
from weft.transforms.axis import AxisInfo
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts
from weft.transforms.nvidia.matrix import MatrixInstruction


def fragments(
    op: tile.DotOp, instruction: MatrixInstruction, warps: tuple[int, int], facts: LayoutFacts
) -> OperandLayouts:
    """The fragments of a matrix instruction, for warps in so many rows and columns."""
    size = instruction.m, 8
    width = _adjacent(op, instruction, facts)
    left, right = (
        nvidia_mma_operand(shape_of(value), index, width, 2, warps, size) for index, value in enumerate((op.a, op.b))
    )
    sums = nvidia_mma(shape_of(op.result), 2, warps, size)
    if not chained(op) and along(op.b, facts.axis) == (1, 8):
        right, sums = pair_columns(right, sums)
    return OperandLayouts((left, right, sums), (sums,))


def _adjacent(op: tile.DotOp, instruction: MatrixInstruction, facts: LayoutFacts) -> int:
    """How many neighbours along the contraction a thread has of both operands: those of an instruction's register, or, of an
    operand whose elements in memory are narrower and lie so, as many as 32 bits hold. It is then read by words."""
    found = instruction.per_register
    if not chained(op):
        for value, axis in ((op.a, 1), (op.b, 0)):
            place = along(value, facts.axis)
            if place is not None and place[0] == axis:
                found = max(found, 32 // max(8, place[1]))
    groups = max(1, instruction.k // (4 * instruction.per_register))
    return found if 4 * found * groups <= shape_of(op.a)[1] else instruction.per_register


def warp_grid(shape: Sequence[int], warps: int, tile_rows: int = 16, *, whole_rows: bool = False) -> tuple[int, int]:
    """How warps divide a result of (M, N) into tiles of ``tile_rows`` x 8: whoever has more tiles left is divided; with
    ``whole_rows`` the rows first."""
    rows, columns = 1, 1
    while rows * columns < warps:
        left = shape[0] // rows // tile_rows
        if (whole_rows and left > 1) or left >= shape[1] // columns // 8:
            rows *= 2
        else:
            columns *= 2
    return rows, columns


def chained(op: tile.DotOp) -> bool:
    """Whether the result goes into the left operand of another dot, or the left operand comes from a dot's result. Warps that
    hold whole rows then reduce and convert between both dots without other warps."""
    return _from_dot(op.a) or _into_dot(op.result)


def _from_dot(value: SSAValue) -> bool:
    """Whether a value is computed from a dot's result, in the same pass of a loop."""
    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        owner = (found := todo.pop()).owner
        if isinstance(owner, tile.DotOp):
            return True
        if found not in seen and isinstance(owner, Operation):
            seen.add(found)
            todo += owner.operands
    return False


def _into_dot(value: SSAValue) -> bool:
    """Whether the left operand of a dot is computed from a value, in the same pass of a loop."""
    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        if (found := todo.pop()) in seen:
            continue
        seen.add(found)
        for use in found.uses:
            if not isinstance(use.operation, tile.DotOp):
                todo += use.operation.results
            elif use.operation.a is found:
                return True
    return False


def along(value: SSAValue, axis: Mapping[SSAValue, AxisInfo]) -> tuple[int, int] | None:
    """The dimension in which the memory is contiguous that a matrix comes from, through casts and transpositions, and the bits of
    an element there; None where it comes from elsewhere."""
    turned = False
    while True:
        match value.owner:
            case tile.TransOp() as op:
                turned, value = not turned, op.source
            case tile.CastOp() as op:
                value = op.source
            case tile.LoadOp() as op:
                return _contiguous(op.pointer, axis, turned)
            case gpu.LocalLoadOp() as op:
                copies = (use.operation for use in op.buffer.uses if isinstance(use.operation, gpu.AsyncCopyOp))
                copy = next(copies, None)
                return None if copy is None else _contiguous(copy.pointer, axis, turned)
            case _:
                return None


def _contiguous(pointer: SSAValue, axis: Mapping[SSAValue, AxisInfo], turned: bool) -> tuple[int, int] | None:
    info = axis.get(pointer)
    if info is None or max(info.contiguity) == 1:
        return None
    best = max(range(info.rank), key=lambda d: info.contiguity[d])
    return 1 - best if turned else best, dtype_of(pointer).bits


def pair_columns(right: LinearLayout, sums: LinearLayout) -> tuple[LinearLayout, LinearLayout]:
    """The right operand and the result with other columns: neighbouring columns are those of a thread's first two tiles.

    The lowest column bit that numbers a thread's tiles becomes bit 0, and the bits below it move up. Unchanged where a thread has
    only one tile.
    """
    columns = right.shape[1]
    tiles = [c.bit_length() - 1 for c in right.columns("register") if 0 < c < columns]
    if not tiles:
        return right, sums
    bit = min(tiles)

    def rotated(layout: LinearLayout) -> LinearLayout:
        mask = (2 << bit) - 1

        def place(column: int) -> int:
            low = column & mask
            return column & ~mask | (low << 1 & mask) | low >> bit

        moved = {dim: tuple(map(place, layout.columns(dim))) for dim in layout.in_dims}
        return LinearLayout.from_columns(moved, layout.outputs)

    return rotated(right), rotated(sums)
