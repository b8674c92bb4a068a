"""Shape operations as maps between layouts (paper 4.4, theorem 9.3): how the *name* of an element changes, not its place.

One would usually move data to transpose or reshape a tile. Here each operation has a forward map, the result layout under
which every register, lane and warp keeps what it holds, and a backward map ``*_back``, the source layout that gives a
wanted result layout the same way; the distributed layouts are closed under all of them.

    operation    result element              forward: flattened columns
    trans        y[i_o0, i_o1, ..] = x[i]     bits permuted with the dimensions
    reshape      same row-major position     unchanged
    expand_dims  same row-major position     unchanged
    broadcast    size-1 coordinate forced 0  unchanged bits, moved apart; the new bits in new registers
    reduce       one coordinate forgotten    its bits removed; registers that become copies are dropped

Law, for every machine index m: ``forward(L)(m)`` is the result element whose source element is ``L(m)``; for broadcast with
the new register bits of m at 0 on the source side, for reduce with registers renumbered after dropping.
``forward(back(R)) == R`` for trans, reshape and expand_dims. Broadcast forgets and reduce invents, so there it holds
up to the place of the grown bits: registers.

Zero columns of lanes and warps stay: filling them with new elements would be possible, but no longer a no-op.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.layout.families import (
    REGISTER,
    dimension_units,
    drop_duplicate_registers,
    numbered,
    sliced,
    tensor_outputs,
)
from weft.layout.linear_layout import LinearLayout


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
    if math.prod(shape) != math.prod(layout.shape):
        raise ValueError(f"reshape: shape {layout.shape} does not have the elements of {tuple(shape)}")
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
