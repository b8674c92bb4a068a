"""Layouts of accesses to global memory, as the preference order has them: coalesced vectors.

Axis analysis says in which dimension pointers are contiguous, how far, and which dimensions continue it; masks say how many
neighbours have one value.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from weft.ir import gpu, tile
from weft.ir.types import dtype_of, shape_of
from weft.layout import LinearLayout, coalesced
from weft.transforms.axis_boxes import box_of
from weft.transforms.axis_info import Box
from weft.transforms.layouts.preferences import contiguity
from weft.transforms.layouts.rules import LayoutFacts


def accessed(pointer: SSAValue, facts: LayoutFacts, warps: int, copies: int = 1) -> LinearLayout:
    """Vectors along the dimension in which the pointers are most contiguous, and on along those that continue it; where they
    are not contiguous at all, their own. Vectors are not wider than the runs of equal mask values: a wider one is several
    accesses, each with gaps between threads. As many as ``copies`` threads may hold the same, for wider vectors."""
    shape = shape_of(pointer)
    runs = contiguity(pointer, facts)
    if max(runs) == 1 and facts.weights[pointer]:
        return facts.layouts[pointer]
    order = sorted(range(len(shape)), key=lambda d: (-runs[d], -d))
    bits = 8 * dtype_of(pointer).itemsize
    info = facts.axis.get(pointer)
    alignment = bits // 8 if info is None else max(bits // 8, info.divisibility[order[0]])
    run = min([runs[order[0]], *(_constancy(mask, order[:1], shape, facts) for mask in _masks(pointer))])
    if info is not None and (found := _continued(box_of(info), shape, runs[order[0]])) is not None:
        ahead, run, aligned = found
        order = [*ahead, *(d for d in order if d not in ahead)]
        alignment = max(bits // 8, aligned)
        run = min([run, *(_constancy(mask, ahead, shape, facts) for mask in _masks(pointer))])
    return coalesced(shape, bits, warps, order, run, min(alignment, 16), copies=copies)


def _masks(pointer: SSAValue) -> list[SSAValue]:
    """The masks of the accesses through a pointer."""
    accesses = [use.operation for use in pointer.uses]
    return [
        access.mask
        for access in accesses
        if isinstance(access, tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp | tile.AtomicCasOp | gpu.AsyncCopyOp)
        and access.pointer is pointer
        and access.mask is not None
    ]


def _constancy(mask: SSAValue, order: Sequence[int], shape: Sequence[int], facts: LayoutFacts) -> int:
    """How many neighbours have one mask value, along the first dimension of an order and on along those after it."""
    info, count = facts.axis[mask], 1
    for axis in order:
        count *= info.constancy[axis]
        if info.constancy[axis] < shape[axis]:
            break
    return count


def _continued(box: Box, shape: Sequence[int], run: int) -> tuple[list[int], int, int] | None:
    """The dimensions whose pointers follow one another, how many elements that makes, and their alignment in bytes; None where
    that is no more than ``run``."""
    order, length = box.flat(shape)
    if length <= run:
        return None
    inside = {(d, place) for d in order for place in range(shape[d].bit_length() - 1)}
    return order, length, box.alignment(inside)
