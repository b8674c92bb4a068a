"""Memory layouts: where a tensor's elements lie in a block's shared memory (paper 4.3, definitions 4.11 to 4.14).

A memory layout maps an offset (in elements) to the element there: ``offset`` -> tensor. It is the inverse of the usual
formula, so that it composes with distributed layouts.

Definition. An *unswizzled* layout has a unit vector per offset bit, those of the fastest dimension first. *mma swizzling*
(vec, per_phase, max_phase) XORs one bit of the fastest dimension into the column of row bit i, so that a column of the
matrix is spread over the banks: element (i, j) lies in row i at
``((i / per_phase mod max_phase) xor (j / vec)) * vec + j mod vec``. Offset bit for row bit i (proposition 4.12):

    (2^i, vec * (2^i / per_phase mod max_phase) mod columns)

    mma_swizzled((4, 8), vec=2, per_phase=1, max_phase=4, order=(1, 0))
    {offset: [(0,1),(0,2),(0,4),(1,2),(2,4)]} -> [dim0: 4, dim1: 8]

    row 0   0 1 2 3 4 5 6 7        row 2   4 5 6 7 0 1 2 3       the numbers are j, in the order of offsets
    row 1   2 3 0 1 6 7 4 5        row 3   6 7 4 5 2 3 0 1

``cga_layout`` splits the tensor among the blocks of a cluster first, as in `weft.layout.families`: each has its part in its
own memory. What is not linear has no layout here: padding, unless no offset reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.layout.algebra import f2
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.dealing import Bases, check_order, dimension_units, grid_places, tensor_outputs
from weft.layout.memory.banks import BLOCK, OFFSET


def why_not_memory(layout: LinearLayout) -> str | None:
    """Why a layout is not a memory layout (definition 4.14: invertible, one or two bits set in each column): the first rule it
    breaks, or None."""
    for dim in layout.in_dims:
        for bit, column in enumerate(layout.columns(dim)):
            if column.bit_count() not in (1, 2):
                return f"basis {bit} of {dim} is {layout.unflatten(column)}, expected one or two bits set"
    echelon = f2.Echelon()
    for dim in layout.in_dims:
        for bit, column in enumerate(layout.columns(dim)):
            if not echelon.add(column):
                return (
                    f"it is not injective: basis {bit} of {dim}, {layout.unflatten(column)}, is a sum of earlier ones"
                )
    if echelon.rank < layout.out_bits:
        return f"it is not surjective: {echelon.rank} of {layout.out_bits} output bits are reached"
    return None


class Part:
    """The part of a tensor that one block has: the bits of each dimension that are left, and the columns of ``block``."""

    def __init__(self, function: str, shape: Sequence[int], cga_layout: Bases | None):
        self.outputs = tensor_outputs(shape)
        self.units = dimension_units(self.outputs)
        """For each dimension the flattened unit vectors of the part's index bits, lowest first."""
        self._blocks: f2.Matrix | None = None
        if cga_layout is None:
            return
        places = grid_places(function, {"cga_layout": cga_layout}, len(shape))["cga_layout"]
        tops: list[f2.Matrix] = []
        for axis, units in enumerate(self.units):
            taken = min(len(units), sum(place is not None and place[0] == axis for place in places))
            self.units[axis], top = units[: len(units) - taken], units[len(units) - taken :]
            tops.append(top)
        # Where more blocks share a dimension than it has elements, the excess ones have copies.
        self._blocks = tuple(
            tops[place[0]][place[1]] if place and place[1] < len(tops[place[0]]) else 0 for place in places
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The part's sizes."""
        return tuple(1 << len(units) for units in self.units)

    def layout(self, offset: Sequence[int]) -> LinearLayout:
        """The memory layout with these offset columns."""
        columns = {OFFSET: tuple(offset)}
        if self._blocks is not None:
            columns[BLOCK] = self._blocks
        return LinearLayout.from_columns(columns, self.outputs)


def unswizzled(
    shape: Sequence[int], order: Sequence[int] | None = None, cga_layout: Bases | None = None
) -> LinearLayout:
    """The tensor in memory, the first dimension of ``order`` fastest (default: row-major)."""
    order = tuple(reversed(range(len(shape)))) if order is None else order
    check_order("unswizzled", len(shape), order)
    part = Part("unswizzled", shape, cga_layout)
    return part.layout([unit for axis in order for unit in part.units[axis]])


def mma_swizzled(
    shape: Sequence[int],
    vec: int,
    per_phase: int,
    max_phase: int,
    order: Sequence[int] | None = None,
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """The swizzle of definition 4.11 in the first two dimensions of ``order`` (columns, then rows); later ones are slower.

    ``vec`` columns stay together, ``per_phase`` consecutive rows are swizzled alike, ``max_phase`` ways take turns; 1, 1, 1 is
    `unswizzled`. Swizzles that would leave a narrow row wrap around in it.
    """
    order = tuple(reversed(range(len(shape)))) if order is None else order
    check_order("mma_swizzled", len(shape), order)
    for name, value in (("vec", vec), ("per_phase", per_phase), ("max_phase", max_phase)):
        if log2_exact(value) is None:
            raise ValueError(f"mma_swizzled: {name} is {value}, expected a power of two")
    part = Part("mma_swizzled", shape, cga_layout)
    piles = [part.units[axis] for axis in order]
    if len(piles) > 1:
        columns = piles[0]
        moved = [vec * (((1 << i) // per_phase) % max_phase) for i in range(len(piles[1]))]
        piles[1] = tuple(row ^ f2.apply(columns, by) for row, by in zip(piles[1], moved, strict=True))
    return part.layout([unit for pile in piles for unit in pile])


def linear_memory(shape: Sequence[int], offset: Bases, block: Bases = ()) -> LinearLayout:
    """The memory layout with these bases; `ValueError` unless it is one-to-one and onto the tensor."""
    sizes = {name: 1 << bits for name, bits in tensor_outputs(shape)}
    layout = LinearLayout({OFFSET: offset, **({BLOCK: block} if block else {})}, sizes)
    if not layout.is_invertible:
        raise ValueError(
            f"linear_memory: the {len(layout.all_columns)} bases have rank {layout.rank}, "
            f"expected {layout.out_bits} of rank {layout.out_bits}, one for each bit of shape {tuple(shape)}"
        )
    return layout


def padded(shape: Sequence[int], offset: Bases, intervals: Sequence[tuple[int, int]]) -> LinearLayout:
    """`linear_memory` with ``padding`` elements inserted after every ``interval``, for each ``(interval, padding)``.

    Padding adds where F2 has only XOR, so this is a linear layout only if no offset is moved; `ValueError` otherwise.
    """
    layout = linear_memory(shape, offset)
    for interval, padding in intervals:
        if padding and interval < layout.in_size(OFFSET):
            raise ValueError(
                f"padded: {padding} elements after every {interval} are not linear over F2: offset {interval} moves to "
                f"{interval + padding}, an addition; expected no padding before offset {layout.in_size(OFFSET)}"
            )
    return layout
