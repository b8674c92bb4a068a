"""Ops that move nothing: each register of the result *is* a register of the source.

Theorem 9.3 of the linear-layouts paper lets the layout pass choose layouts under which trans, reshape, expand_dims,
broadcast (and a conversion that only permutes registers) are such views. Here that is checked, column by column, and
turned into the map from result registers to source registers that loop emission follows. With a result column ``c`` (a
flat tensor coordinate, last dimension fastest) and ``project`` the op's map from result to source coordinates,

    register j -> the source register whose column is project(c_j), or none where that is zero
    lane j     -> project(c_j) must be the source's lane column j

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from xdsl.ir import Operation

from weft.ir import tile
from weft.ir.types import layout_of, shape_of
from weft.layout import LinearLayout

VIEWS = (tile.BroadcastOp, tile.ExpandDimsOp, tile.ReshapeOp, tile.TransOp, tile.HintOp, tile.ConvertLayoutOp)


def used_registers(layout: LinearLayout) -> int:
    """The mask of register bits that do not merely duplicate."""
    return sum(1 << j for j, column in enumerate(layout.columns("register")) if column)


@lru_cache(maxsize=4096)
def slots(layout: LinearLayout) -> tuple[int, ...]:
    """Columns of the map from registers to consecutive slots: duplicates share one."""
    columns: list[int] = []
    slot = 1
    for column in layout.columns("register"):
        columns.append(slot if column else 0)
        slot <<= bool(column)
    return tuple(columns)


def slot_count(layout: LinearLayout) -> int:
    """How many different registers the layout has."""
    return 1 << used_registers(layout).bit_count()


def bits_of(size: int) -> int:
    """log2 of a power of two."""
    return size.bit_length() - 1


def broadcast_projection(source_shape: Sequence[int], shape: Sequence[int]) -> Callable[[int], int]:
    """Flat coordinates of ``shape`` to those of ``source_shape``, in which grown dimensions have size 1."""

    def project(flat: int) -> int:
        result = shift = 0
        for old, new in zip(reversed(source_shape), reversed(shape), strict=True):
            if old == new:
                result |= (flat & (new - 1)) << shift
                shift += bits_of(old)
            flat >>= bits_of(new)
        return result

    return project


def trans_projection(source_shape: Sequence[int], permutation: Sequence[int]) -> Callable[[int], int]:
    """Flat coordinates after ``permutation`` to those before."""
    strides = [1] * len(source_shape)
    for i in range(len(source_shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * source_shape[i + 1]

    def project(flat: int) -> int:
        result = 0
        for i in reversed(permutation):
            result += (flat & (source_shape[i] - 1)) * strides[i]
            flat >>= bits_of(source_shape[i])
        return result

    return project


def removal_projection(shape: Sequence[int], axis: int) -> Callable[[int], int]:
    """Flat coordinates of ``shape`` to those without ``axis``."""
    low = 1
    for size in shape[axis + 1 :]:
        low *= size
    return lambda flat: (flat & (low - 1)) | (flat // (low * shape[axis])) * low


def _identity(flat: int) -> int:
    return flat


def projection(op: Operation) -> Callable[[int], int]:
    """A view op's map from flat result coordinates to flat source coordinates."""
    match op:
        case tile.BroadcastOp():
            return broadcast_projection(shape_of(op.source), shape_of(op.result))
        case tile.TransOp():
            return trans_projection(shape_of(op.source), op.permutation)
        case _:
            return _identity


def match_registers(
    result: LinearLayout, source: LinearLayout, project: Callable[[int], int]
) -> tuple[int, ...] | None:
    """Columns from result registers to source registers, or None where data would have to move."""
    for mine, theirs in zip(result.columns("lane"), source.columns("lane"), strict=True):
        if project(mine) != theirs:
            return None
    where = {column: 1 << j for j, column in enumerate(source.columns("register")) if column}
    columns: list[int] = []
    for column in map(project, result.columns("register")):
        if column and column not in where:
            return None
        columns.append(where[column] if column else 0)
    return tuple(columns)


def view_columns(op: Operation) -> tuple[int, ...] | None:
    """For an op among `VIEWS`: columns from its result's registers to its source's, or None where it is no view."""
    source, result = op.operands[0], op.results[0]
    return _view_columns(layout_of(result), layout_of(source), op) if shape_of(source) else None


def _view_columns(result: LinearLayout, source: LinearLayout, op: Operation) -> tuple[int, ...] | None:
    if result is source and not isinstance(op, tile.TransOp | tile.BroadcastOp):
        return tuple(1 << j for j in range(result.in_bits("register")))
    return match_registers(result, source, projection(op))
