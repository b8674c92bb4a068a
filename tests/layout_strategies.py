"""Random layouts for the tests of the algebra, and their meaning by the definition: tables of all elements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from hypothesis import strategies as st

from weft.layout import LinearLayout


def indices(layout: LinearLayout) -> Iterator[dict[str, int]]:
    """All input indices of a layout."""
    for point in itertools.product(*(range(layout.in_size(dim)) for dim in layout.in_dims)):
        yield dict(zip(layout.in_dims, point, strict=True))


def by_definition(layout: LinearLayout, point: Mapping[str, int]) -> dict[str, int]:
    """The output index from the printed bases: the XOR, coordinate by coordinate, of those at set bits."""
    total = [0] * len(layout.out_dims)
    for dim, index in point.items():
        for bit, basis in enumerate(layout.bases(dim)):
            if index >> bit & 1:
                total = [a ^ b for a, b in zip(total, basis, strict=True)]
    return dict(zip(layout.out_dims, total, strict=True))


@st.composite
def layouts(draw: st.DrawFn, ins: tuple[str, ...] = ("a", "b"), outs: tuple[str, ...] = ("x", "y")) -> LinearLayout:
    """Any linear map with at most 3 bits per dimension, dimensions listed in any order."""
    outs = tuple(draw(st.permutations(outs)))
    sizes = [1 << draw(st.integers(0, 3)) for _ in outs]
    basis = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    bases = {dim: draw(st.lists(basis, max_size=3)) for dim in draw(st.permutations(ins))}
    return LinearLayout(bases, dict(zip(outs, sizes, strict=True)))


@st.composite
def machines(
    draw: st.DrawFn, shape_bits: tuple[int, ...] | None = None, dims: tuple[str, ...] = ("register", "lane", "warp")
) -> LinearLayout:
    """A distributed layout: the unit vectors of a tensor (where not given, of rank 1 to 3 and at most 2 bits a dimension) and up
    to 3 zero columns, in any order, dealt to the dimensions of a machine."""
    if shape_bits is None:
        shape_bits = tuple(draw(st.lists(st.integers(0, 2), min_size=1, max_size=3)))
    units = [
        tuple(1 << bit if axis == other else 0 for other in range(len(shape_bits)))
        for axis, bits in enumerate(shape_bits)
        for bit in range(bits)
    ]
    zeros = [(0,) * len(shape_bits)] * draw(st.integers(0, 3))
    columns = draw(st.permutations(units + zeros))
    cuts = sorted(draw(st.lists(st.integers(0, len(columns)), min_size=len(dims) - 1, max_size=len(dims) - 1)))
    parts = zip([0, *cuts], [*cuts, len(columns)], strict=True)
    bases = {dim: columns[begin:end] for dim, (begin, end) in zip(draw(st.permutations(dims)), parts, strict=True)}
    return LinearLayout(bases, {f"dim{axis}": 1 << bits for axis, bits in enumerate(shape_bits)})
