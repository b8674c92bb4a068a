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

from weft.layout import f2
from weft.layout.linear_layout import LinearLayout, log2_exact

REGISTER = "register"
LANE = "lane"
WARP = "warp"


def tensor_outputs(shape: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """``(name, bits)`` of a tensor's dimensions, as `LinearLayout.from_columns` takes them; `ValueError` for a size that is
    not a power of two."""
    outputs: list[tuple[str, int]] = []
    for axis, size in enumerate(shape):
        bits = log2_exact(size)
        if bits is None:
            raise ValueError(f"dim{axis} of shape {tuple(shape)} is {size}, expected a power of two")
        outputs.append((f"dim{axis}", bits))
    return tuple(outputs)


def dimension_units(outputs: Sequence[tuple[str, int]]) -> list[f2.Matrix]:
    """For each dimension the flattened unit vectors of its bits, lowest first."""
    units: list[f2.Matrix] = []
    shift = sum(bits for _, bits in outputs)
    for _, bits in outputs:
        shift -= bits
        units.append(tuple(1 << (shift + bit) for bit in range(bits)))
    return units


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


def _check_order(function: str, rank: int, order: Sequence[int]) -> None:
    if sorted(order) != list(range(rank)):
        raise ValueError(f"{function}: order {tuple(order)} is not a permutation of the {rank} dimensions")


def blocked(
    shape: Sequence[int],
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
) -> LinearLayout:
    """The blocked layout (paper 4.6, 9.1) from ``register``, ``lane``, ``warp`` to a tensor of ``shape``.

    Each thread holds ``size_per_thread`` elements per dimension, threads tile a warp's block, warps the CTA's, all fastest
    dimension of ``order`` first. A tile smaller than the tensor repeats in registers; a larger one wraps around: its excess
    lanes and warps hold copies. `ValueError` for lengths that differ, sizes that are not powers of two, or a bad order.
    """
    _check_order("blocked", len(shape), order)
    outputs = tensor_outputs(shape)
    free = dimension_units(outputs)
    columns: dict[str, f2.Matrix] = {}
    for dim, name, sizes in (
        (REGISTER, "size_per_thread", size_per_thread),
        (LANE, "threads_per_warp", threads_per_warp),
        (WARP, "warps_per_cta", warps_per_cta),
    ):
        if len(sizes) != len(shape):
            raise ValueError(f"blocked: {name} {tuple(sizes)} has {len(sizes)} dimensions, the shape has {len(shape)}")
        dealt: list[int] = []
        for axis in order:
            bits = log2_exact(sizes[axis])
            if bits is None:
                raise ValueError(f"blocked: {name} {tuple(sizes)} holds {sizes[axis]}, expected powers of two")
            taken, free[axis] = free[axis][:bits], free[axis][bits:]
            excess = bits - len(taken) if dim != REGISTER else 0
            dealt += (*taken, *(0,) * excess)
        columns[dim] = tuple(dealt)
    columns[REGISTER] += tuple(unit for axis in order for unit in free[axis])
    return LinearLayout.from_columns(columns, outputs)


def sliced(parent: LinearLayout, dim: int) -> LinearLayout:
    """The parent without output dimension ``dim`` (paper 4.8), the later ones renumbered.

    Threads that differed only along ``dim`` now hold copies; registers that did are dropped.
    """
    rank = len(parent.out_dims)
    if not 0 <= dim < rank:
        raise ValueError(f"sliced: dimension {dim} is out of range for rank {rank}")
    kept = tuple(name for axis, name in enumerate(parent.out_dims) if axis != dim)
    child = parent.sublayout(parent.in_dims, kept)
    return drop_duplicate_registers(numbered(child))


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
    _check_order("vector", len(shape), order)
    lane_bits = log2_exact(lanes)
    if lane_bits is None:
        raise ValueError(f"vector: lanes is {lanes}, expected a power of two")
    outputs = tensor_outputs(shape)
    units = dimension_units(outputs)
    dealt = tuple(unit for axis in order for unit in units[axis])
    lane = dealt[:lane_bits] + (0,) * (lane_bits - len(dealt))
    return LinearLayout.from_columns({REGISTER: dealt[lane_bits:], LANE: lane}, outputs)
