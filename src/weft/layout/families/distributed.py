"""Families of layouts (paper 4.3): blocked, sliced, and the CPU's vector layout.

A family is a rule that deals the bits of a tensor's index to machine dimensions. All here are *distributed* (definition
4.10): surjective, each column zero or a unit vector, no unit vector twice. Such a layout is a list of "which tensor bit does
this register, lane or warp bit move", and zero columns say where copies sit.

    blocked((4, 8), size_per_thread=(1, 2), threads_per_warp=(2, 4), warps_per_cta=(1, 1), order=(1, 0))

    {register: [(0,1),(2,0)], lane: [(0,2),(0,4),(1,0)], warp: []} -> [dim0: 4, dim1: 8]

A thread has 2 adjacent elements, 4 threads make a row of 8, 2 rows a tile of 2x8; the tensor has two such tiles, dealt by
one more register bit. Output dimensions are always named ``dim0``, ``dim1``, ...; ``order`` lists them fastest first.

As in Triton 3.9, a zero column is kept in ``lane`` and ``warp``, where it says that threads hold copies, and never made in
``register``, where a copy would only cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.dealing import (
    LANE,
    REGISTER,
    WARP,
    Bases,
    Deal,
    bits_per_axis,
    check_matrix,
    check_order,
    contraction_axis,
    dimension_units,
    size_bits,
    tensor_outputs,
)

__all__ = [
    "LANE", "REGISTER", "WARP", "dimension_units", "tensor_outputs",
    "blocked", "blocked_operand", "drop_duplicate_registers", "numbered", "sliced", "vector", "why_not_distributed",
    "without_axis",
]  # fmt: skip


def why_not_distributed(layout: LinearLayout) -> str | None:
    """Why a layout is not distributed (definition 4.10): the first rule it breaks, or None."""
    seen: dict[int, str] = {}
    for dim in layout.in_dims:
        for bit, column in enumerate(layout.columns(dim)):
            place = f"basis {bit} of {dim}"
            if column & (column - 1):
                return f"{place} is {layout.unflatten(column)}, expected at most one bit set"
            if column in seen:
                return f"{place} is {layout.unflatten(column)}, and so is {seen[column]}"
            if column:
                seen[column] = place
    if len(seen) < layout.out_bits:
        return f"it is not surjective: {len(seen)} of {layout.out_bits} output bits are reached"
    return None


def blocked(
    shape: Sequence[int],
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """The blocked layout (paper 4.6, 9.1) from ``register``, ``lane``, ``warp`` to a tensor of ``shape``.

    Each thread holds ``size_per_thread`` elements per dimension, threads tile a warp's block, warps the CTA's, all fastest
    dimension of ``order`` first. A tile smaller than the tensor repeats in registers; a larger one wraps around: its excess
    lanes and warps hold copies. With ``cga_layout`` (see `dealing`) the tensor is first cut for the blocks of a cluster, which
    are the input dimension ``block``. `ValueError` for lengths that differ, sizes that are not powers of two, or a bad order.

        blocked((64,), (2,), (4,), (2,), (0,), cga_layout=[(1,)])

        {register: [1,16], lane: [2,4], warp: [8], block: [32]} -> [dim0: 64]
    """
    rank = len(shape)
    check_order("blocked", rank, order)
    tile = (
        (REGISTER, bits_per_axis("blocked", "size_per_thread", size_per_thread, rank)),
        (LANE, bits_per_axis("blocked", "threads_per_warp", threads_per_warp, rank)),
        (WARP, bits_per_axis("blocked", "warps_per_cta", warps_per_cta, rank)),
    )
    deal = Deal("blocked", shape, cga_layout)
    deal.steps((dim, axis, bits[axis]) for dim, bits in tile for axis in order)
    deal.rest(order)
    return deal.layout(copies_in_registers=False)


def blocked_operand(
    shape: Sequence[int],
    operand_index: int,
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """An operand of a product whose result is `blocked` with the other arguments, computed by each thread alone.

    A thread needs all of the contraction (columns of operand 0, rows of operand 1) for its rows or columns, so that axis is
    in its registers, and threads and warps that differ along it hold copies. As in Triton 3.9, zero columns of ``register`` stay.

        blocked_operand((4, 4), 0, (2, 2), (2, 2), (1, 1), (1, 0))

        {register: [(0,1),(0,2),(1,0)], lane: [(0,0),(2,0)], warp: []} -> [dim0: 4, dim1: 4]
    """
    check_matrix("blocked_operand", shape)
    rank = len(shape)
    check_order("blocked_operand", rank, order)
    whole = contraction_axis("blocked_operand", operand_index) % rank
    sizes = bits_per_axis("blocked_operand", "size_per_thread", size_per_thread, rank)
    threads = bits_per_axis("blocked_operand", "threads_per_warp", threads_per_warp, rank)
    warps = bits_per_axis("blocked_operand", "warps_per_cta", warps_per_cta, rank)
    sizes[whole] = tensor_outputs(shape)[whole][1]
    deal = Deal("blocked_operand", shape, cga_layout, whole)
    deal.steps(
        (dim, axis, bits[axis]) for dim, bits in ((REGISTER, sizes), (LANE, threads), (WARP, warps)) for axis in order
    )
    deal.rest(order)
    return deal.layout()


@lru_cache(maxsize=1 << 12)
def sliced(parent: LinearLayout, dim: int) -> LinearLayout:
    """The parent without output dimension ``dim`` (paper 4.8), the later ones renumbered.

    Threads that differed only along ``dim`` now hold copies; registers that did are dropped.
    """
    return drop_duplicate_registers(without_axis(parent, dim))


def without_axis(parent: LinearLayout, dim: int) -> LinearLayout:
    """Each place's element without its coordinate ``dim``, the later ones renumbered. Zero columns stay, in registers too."""
    rank = len(parent.out_dims)
    if not 0 <= dim < rank:
        raise ValueError(f"sliced: dimension {dim} is out of range for rank {rank}")
    outputs = tuple(
        (f"dim{axis}", bits) for axis, (_, bits) in enumerate(parent.outputs[:dim] + parent.outputs[dim + 1 :])
    )
    low = sum(bits for _, bits in parent.outputs[dim + 1 :])
    high, below = low + parent.outputs[dim][1], (1 << low) - 1
    columns: dict[str, tuple[int, ...]] = {}
    for name, bases in parent.inputs:
        columns[name] = tuple([column >> high << low | column & below for column in bases])
    return LinearLayout.from_columns(columns, outputs)


def numbered(layout: LinearLayout) -> LinearLayout:
    """The same layout with its output dimensions named ``dim0``, ``dim1``, ... in their order."""
    return layout.rename(outputs={name: f"dim{axis}" for axis, name in enumerate(layout.out_dims)})


def drop_duplicate_registers(layout: LinearLayout) -> LinearLayout:
    """The layout without zero columns in ``register``: each thread keeps its first copy."""
    if REGISTER not in layout.in_dims or not layout.zero_columns(REGISTER):
        return layout
    return layout.with_columns({REGISTER: tuple(column for column in layout.columns(REGISTER) if column)})


def vector(shape: Sequence[int], lanes: int = 16, order: Sequence[int] | None = None) -> LinearLayout:
    """The CPU's default layout, from ``register`` (one SIMD vector) and ``lane`` to a tensor of ``shape``.

    Vectors hold ``lanes`` consecutive elements in ``order`` (fastest dimension first; default: row-major), across
    dimensions where the fastest is shorter; registers go on in the same order. A tensor smaller than a vector is
    repeated in the remaining lanes.
    """
    order = tuple(reversed(range(len(shape)))) if order is None else tuple(order)
    check_order("vector", len(shape), order)
    lane_bits = size_bits("vector", "lanes", lanes)
    outputs = tensor_outputs(shape)
    units = dimension_units(outputs)
    dealt = tuple(unit for axis in order for unit in units[axis])
    lane = dealt[:lane_bits] + (0,) * (lane_bits - len(dealt))
    return LinearLayout.from_columns({REGISTER: dealt[lane_bits:], LANE: lane}, outputs)
