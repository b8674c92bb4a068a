"""Shape operations as maps between layouts (paper 4.4, theorem 9.3): how the *name* of an element changes, not its place.

No data moves to transpose or reshape a tile. Each operation has a forward map, the result layout under which every register,
lane and warp keeps its elements, and a backward map ``*_back``, the source layout that gives a wanted result layout. The
distributed layouts are closed under all of them.

    operation    result element                   forward: flattened columns
    trans        y[i_o0, i_o1, ..] = x[i]          bits permuted with the dimensions
    reshape      same row-major position          unchanged
    expand_dims  same row-major position          unchanged
    broadcast    size-1 coordinate forced 0       unchanged bits, moved apart; the new bits in new registers
    reduce       one coordinate forgotten         its bits removed; registers that become copies are dropped
    join         y[.., 0] = a, y[.., 1] = b       up by one bit; the new lowest bit in a new first register bit
    split        a = y[.., 0], b = y[.., 1]       down by one bit; the register bit that held the lowest is dropped

Law, for every machine index m: ``forward(L)(m)`` is the result element whose source element is ``L(m)``; for broadcast with
the new register bits of m at 0 on the source side, for reduce, join and split with registers renumbered by the bit that went or
came. ``forward(back(R)) == R`` for trans, reshape, expand_dims and split. Broadcast forgets and reduce invents, so there it holds
up to the place of the grown bits, registers; for join up to the place of the last coordinate among the registers.

Split is not closed as the theorem has it: where the last coordinate is a bit of lanes or warps, one half of the threads has
nothing of the first result, and no distributed layout makes the operation free. Then `split` refuses.

Zero columns of lanes and warps stay: filling them with new elements would be possible, but no longer a no-op.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import (
    REGISTER,
    dimension_units,
    drop_duplicate_registers,
    numbered,
    sliced,
    tensor_outputs,
    why_not_distributed,
)


def trans(layout: LinearLayout, order: Sequence[int]) -> LinearLayout:
    """Result dimension i is source dimension ``order[i]``."""
    if sorted(order) != list(range(len(layout.shape))):
        raise ValueError(f"trans: {tuple(order)} is not a permutation of {len(layout.shape)} dimensions")
    return numbered(layout.transpose_outs([layout.out_dims[axis] for axis in order]))


def trans_back(layout: LinearLayout, order: Sequence[int]) -> LinearLayout:
    """The source layout whose `trans` by ``order`` is ``layout``."""
    return trans(layout, sorted(range(len(order)), key=order.__getitem__))


def reshape(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """The same row-major positions under another shape. Its own inverse: going back is `reshape` to the old shape."""
    return _reshaped(layout, tuple(shape))


@lru_cache(maxsize=1 << 12)
def _reshaped(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    if math.prod(shape) != math.prod(layout.shape):
        raise ValueError(f"reshape: shape {layout.shape} does not have the elements of {shape}")
    return LinearLayout.from_columns({dim: layout.columns(dim) for dim in layout.in_dims}, tensor_outputs(shape))


def expand_dims(layout: LinearLayout, axis: int) -> LinearLayout:
    """A new dimension of size 1 at ``axis``."""
    shape = list(layout.shape)
    if not 0 <= axis <= len(shape):
        raise ValueError(f"expand_dims: axis {axis} is out of range for rank {len(shape)}, expected 0 to {len(shape)}")
    shape.insert(axis, 1)
    return reshape(layout, shape)


def expand_dims_back(layout: LinearLayout, axis: int) -> LinearLayout:
    """The source layout whose `expand_dims` at ``axis`` is ``layout``; that axis has size 1."""
    shape = list(layout.shape)
    if not 0 <= axis < len(shape) or shape[axis] != 1:
        raise ValueError(f"expand_dims_back: shape {layout.shape} has no dimension of size 1 at axis {axis}")
    del shape[axis]
    return reshape(layout, shape)


def _check_broadcast(function: str, old: Sequence[int], new: Sequence[int]) -> None:
    if len(old) != len(new) or any(a not in (b, 1) for a, b in zip(old, new, strict=True)):
        raise ValueError(f"{function}: shape {tuple(old)} does not broadcast to {tuple(new)}")


def broadcast(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """Sizes of 1 grow to ``shape``'s. The new elements go to new register bits after the old ones, last dimension first:
    result register r holds what source register ``r % old register count`` holds."""
    _check_broadcast("broadcast", layout.shape, shape)
    outputs = tensor_outputs(shape)
    units = dimension_units(outputs)
    grown = tuple(
        unit for axis in reversed(range(len(shape))) if layout.shape[axis] != shape[axis] for unit in units[axis]
    )
    spread = numbered(layout).repack(outputs)
    return LinearLayout.from_columns({**spread, REGISTER: spread.get(REGISTER, ()) + grown}, outputs)


def project(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """What each place of a broadcast's result reads of its source of ``shape``: grown coordinates are 0, zero columns stay,
    in registers too. Converting the source to this layout *is* the broadcast to ``layout``."""
    return _projected(layout, tuple(shape))


@lru_cache(maxsize=1 << 12)
def _projected(layout: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    _check_broadcast("project", shape, layout.shape)
    outputs = tensor_outputs(shape)
    kept = layout.sublayout(layout.in_dims, [d for d, new in zip(layout.out_dims, shape, strict=True) if new > 1])
    return LinearLayout.from_columns(kept.repack(kept.outputs), outputs)


def broadcast_back(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """The source layout, of ``shape``, that a broadcast to ``layout`` reads without lanes or warps exchanging anything."""
    _check_broadcast("broadcast_back", shape, layout.shape)
    return drop_duplicate_registers(project(layout, shape))


def reduce(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout of a reduction's result: ``axis`` is dropped (`sliced`); lanes and warps along it hold copies."""
    if not 0 <= axis < len(layout.shape):
        raise ValueError(f"reduce: axis {axis} is out of range for rank {len(layout.shape)}")
    return sliced(layout, axis)


def reduce_back(layout: LinearLayout, axis: int, size: int) -> LinearLayout:
    """A source layout whose reduction along ``axis``, of ``size``, gives ``layout`` inside each lane: the axis is in
    registers."""
    grown = expand_dims(layout, axis)
    shape = list(grown.shape)
    shape[axis] = size
    return broadcast(grown, shape)


def join(layout: LinearLayout) -> LinearLayout:
    """``y[.., j]`` is element ``..`` of operand j, both of this layout: a new last dimension of size 2.

    Its bit is the first of ``register``: result register ``2 r + j`` is register r of operand j, so a thread has the pair side by
    side.
    """
    first = {} if REGISTER in layout.in_dims else {REGISTER: (1,)}
    columns = {
        dim: (1,) * (dim == REGISTER) + tuple([column << 1 for column in columns]) for dim, columns in layout.inputs
    }
    return LinearLayout.from_columns({**first, **columns}, tensor_outputs((*layout.shape, 2)))


def join_back(layout: LinearLayout) -> LinearLayout:
    """The layout of both operands of a `join` with this result layout.

    Where the last coordinate is a register bit, ``join(join_back(R))`` is R with that bit first. Where it is a bit of lanes or
    warps, those hold copies of both operands, and a thread keeps one: a select, nothing is exchanged.
    """
    dim, bit = _pair_place("join_back", layout)
    columns = {name: tuple([column >> 1 for column in columns]) for name, columns in layout.inputs}
    if dim == REGISTER:
        columns[dim] = columns[dim][:bit] + columns[dim][bit + 1 :]
    return LinearLayout.from_columns(columns, tensor_outputs(layout.shape[:-1]))


def split(layout: LinearLayout) -> LinearLayout:
    """The layout of both results, ``y[.., 0]`` and ``y[.., 1]``: the last dimension, of size 2, goes.

    With its coordinate in register bit b, register r of result j is source register r with j inserted as bit b. `ValueError`
    where the coordinate is not in ``register``.
    """
    dim, bit = _pair_place("split", layout)
    if dim != REGISTER:
        raise ValueError(
            f"split: the last dimension is basis {bit} of {dim}, expected it in register: each thread needs both halves"
        )
    return join_back(layout)


def split_back(layout: LinearLayout) -> LinearLayout:
    """A source layout whose `split` is ``layout``: both halves of a pair in neighbouring registers."""
    return join(layout)


def _pair_place(function: str, layout: LinearLayout) -> tuple[str, int]:
    """The input dimension and bit that move along the last dimension; `ValueError` unless that has size 2."""
    if not layout.shape or layout.shape[-1] != 2:
        raise ValueError(f"{function}: shape {layout.shape} does not end in a dimension of size 2")
    if reason := why_not_distributed(layout):
        raise ValueError(f"{function}: the layout is not distributed: {reason}")
    return next((dim, columns.index(1)) for dim, columns in layout.inputs if 1 in columns)
