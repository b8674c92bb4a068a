"""What can be asked and made of whole layouts beside the products and inverses that are methods of `LinearLayout`.

Definition. Of a layout L as a matrix: its *kernel* are the inputs sent to 0, its *image* the outputs that are reached, its *free
variables* the input bits whose columns depend on earlier ones.

    {register: [(0,1),(1,0)], lane: [(0,2),(0,3)]} -> [dim0: 2, dim1: 4]

    kernel          register 1, lane 3: the last column is the sum of the first and the third
    free variables  bit 1 of lane
    image           (0,1), (0,2), (1,0) and all their sums: everything

Flattened indices: inputs are flattened first dimension fastest, so that a flattened input index reads the columns from left to
right; outputs last dimension fastest, so that a flattened output index is the row-major position (`weft.layout.algebra.fields`).

Laws: reshaping, flattening, transposing and concatenating move rows and columns as wholes, so rank, kernel and image go along.
`canonical` forms are equal iff the layouts are equal up to the order of their dimensions and a permutation of registers,
and `register_permutation` is that permutation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from weft.layout.algebra import f2, fields
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout

MACHINE = ("register", "lane", "warp", "block", "offset")
"""Input dimensions in canonical order; others follow by name."""


# Dimensions: reordered, recut, side by side


def transpose_ins(layout: LinearLayout, order: Sequence[str]) -> LinearLayout:
    """The same labelled map with its input dimensions listed in ``order``; only flattened input positions change."""
    if sorted(order) != sorted(layout.in_dims):
        raise ValueError(
            f"transpose_ins: [{', '.join(order)}] is not an order of the input dimensions [{', '.join(layout.in_dims)}]"
        )
    return LinearLayout.from_columns({dim: layout.columns(dim) for dim in order}, layout.outputs)


def reshape_ins(layout: LinearLayout, sizes: Mapping[str, int]) -> LinearLayout:
    """Other input dimensions with the same flattened index, the first dimension fastest; as many elements."""
    columns, cut = layout.all_columns, 0
    inputs: dict[str, f2.Matrix] = {}
    for name, bits in _new_dims("reshape_ins", "input", sizes, len(columns)):
        inputs[name] = columns[cut : cut + bits]
        cut += bits
    return LinearLayout.from_columns(inputs, layout.outputs)


def reshape_outs(layout: LinearLayout, sizes: Mapping[str, int]) -> LinearLayout:
    """Other output dimensions with the same flattened index, the last dimension fastest; as many elements."""
    return LinearLayout.from_columns(dict(layout.inputs), _new_dims("reshape_outs", "output", sizes, layout.out_bits))


def flatten_ins(layout: LinearLayout, name: str) -> LinearLayout:
    """All input dimensions as one, the first fastest."""
    return LinearLayout.from_columns({name: layout.all_columns}, layout.outputs)


def flatten_outs(layout: LinearLayout, name: str) -> LinearLayout:
    """All output dimensions as one, the last fastest: the row-major position."""
    return LinearLayout.from_columns(dict(layout.inputs), ((name, layout.out_bits),))


def _new_dims(function: str, kind: str, sizes: Mapping[str, int], total: int) -> list[tuple[str, int]]:
    new: list[tuple[str, int]] = []
    for name, size in sizes.items():
        bits = log2_exact(size)
        if bits is None:
            raise ValueError(f"{function}: {name} has size {size}, expected a power of two")
        new.append((name, bits))
    if sum(bits for _, bits in new) != total:
        raise ValueError(
            f"{function}: sizes [{', '.join(f'{name}: {size}' for name, size in sizes.items())}] have "
            f"{1 << sum(bits for _, bits in new)} elements, the {kind} dimensions {1 << total}"
        )
    return new


def concat_ins(first: LinearLayout, second: LinearLayout) -> LinearLayout:
    """The columns of both side by side: ``(x, y) -> first(x) ^ second(y)``. Same output dimensions, no common input dimension."""
    if first.outputs != second.outputs:
        raise ValueError(
            f"concat_ins: the layouts end in {_sizes(first.outputs)} and {_sizes(second.outputs)}, expected the same"
        )
    if common := [dim for dim in first.in_dims if dim in second.in_dims]:
        raise ValueError(f"concat_ins: both layouts have [{', '.join(common)}], expected no common input dimension")
    return LinearLayout.from_columns({**dict(first.inputs), **dict(second.inputs)}, first.outputs)


def concat_outs(first: LinearLayout, second: LinearLayout) -> LinearLayout:
    """The rows of both one above the other: ``x -> (first(x), second(x))``. Same input dimensions, no common output dimension."""
    sizes = [tuple([(dim, len(columns)) for dim, columns in layout.inputs]) for layout in (first, second)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"concat_outs: the layouts begin in {_sizes(sizes[0])} and {_sizes(sizes[1])}, expected the same"
        )
    if common := [name for name in first.out_dims if name in second.out_dims]:
        raise ValueError(f"concat_outs: both layouts have [{', '.join(common)}], expected no common output dimension")
    up = second.out_bits
    return LinearLayout.from_columns(
        {
            dim: tuple([high << up | low for high, low in zip(columns, second.columns(dim), strict=True)])
            for dim, columns in first.inputs
        },
        (*first.outputs, *second.outputs),
    )


def _sizes(dims: Sequence[tuple[str, int]]) -> str:
    return f"[{', '.join(f'{name}: {1 << bits}' for name, bits in dims)}]"


# Kernel, image, free variables


def kernel(layout: LinearLayout) -> tuple[dict[str, int], ...]:
    """A basis of the inputs that are sent to 0: indices that differ by a sum of these hold the same element."""
    return tuple([_input_index(layout, mask) for mask in f2.kernel(layout.all_columns)])


def image(layout: LinearLayout) -> tuple[tuple[int, ...], ...]:
    """The reduced basis of the outputs that are reached, as coordinates in ascending position; equal iff the images are."""
    return tuple([layout.unflatten(vector) for vector in f2.reduced_basis(layout.all_columns)])


def free_variables(layout: LinearLayout) -> dict[str, int]:
    """For each input dimension the mask of its bits that depend on earlier ones, in the order of the dimensions.

    All inputs are reached with these bits at 0: such an index is the first of the copies. As many as the kernel has dimensions.
    """
    pivots = f2.Echelon(layout.all_columns).pivots
    return {dim: index ^ ((1 << layout.in_bits(dim)) - 1) for dim, index in _input_index(layout, pivots).items()}


def _input_index(layout: LinearLayout, flat: int) -> dict[str, int]:
    """The input indices of a flattened input index."""
    found: dict[str, int] = {}
    for dim, columns in layout.inputs:
        found[dim] = flat & ((1 << len(columns)) - 1)
        flat >>= len(columns)
    return found


def is_identity_on(layout: LinearLayout, dims: Sequence[str]) -> bool:
    """Whether each of ``dims``, input and output dimensions of one size, goes to itself, and nothing else goes to it.

    Of ``A.invert_and_compose(B)`` this asks whether a conversion moves anything between, say, warps.
    """
    places = fields.positions(layout.outputs)
    for dim in dims:
        shift, bits = places.get(dim, (0, -1))
        own = ((1 << max(bits, 0)) - 1) << shift
        if dim not in layout.in_dims or layout.in_bits(dim) != bits:
            return False
        for name, columns in layout.inputs:
            expected = (
                [1 << bit << shift for bit in range(bits)] if name == dim else [column & ~own for column in columns]
            )
            if list(columns) != expected:
                return False
    return True


# Equality up to registers


def register_permutation(first: LinearLayout, second: LinearLayout, dim: str = "register") -> LinearLayout | None:
    """The bijection P of ``dim`` with ``second(r, x) == first(P(r), x)``, or None where there is none.

    Exists iff the layouts agree in the other dimensions (in whatever order) and the columns of ``dim``, equally many, have one
    span. Where these columns are unit vectors or zero, P permutes index bits.
    """
    if dict(first.inputs).keys() != dict(second.inputs).keys() or dict(first.outputs) != dict(second.outputs):
        return None
    theirs = second.repack(first.outputs)
    if any(theirs[name] != columns for name, columns in first.inputs if name != dim):
        return None
    goal, columns = theirs.get(dim, ()), dict(first.inputs).get(dim, ())
    echelon, goals = f2.Echelon(columns), f2.Echelon(goal)
    solutions = echelon.solve(goal)
    if solutions is None or len(goal) != len(columns) or goals.rank != echelon.rank:
        return None
    # A bit of second's that depends on earlier ones goes where they go, plus another copy of that: a kernel vector of first's.
    # These are independent of each other and, having a free variable each, of the solutions.
    chosen = list(solutions)
    for relation, copy in zip(goals.relations, echelon.relations, strict=True):
        bit = relation.bit_length() - 1
        chosen[bit] ^= copy
    return LinearLayout.from_columns({dim: tuple(chosen)}, ((dim, len(chosen)),))


def canonical(layout: LinearLayout, dim: str = "register") -> LinearLayout:
    """The representative of all layouts that differ from this one in the order of dimensions and by a permutation of ``dim``.

    Output dimensions by name (``dim2`` before ``dim10``), input dimensions in the order of the machine, register columns replaced
    by the reduced basis of their span, ascending, then zeros: of unit vectors that is the sorted order.
    """
    outputs = tuple(sorted(layout.outputs, key=lambda item: _natural(item[0])))
    columns = layout.repack(outputs)
    if dim in columns:
        basis = f2.reduced_basis(columns[dim])
        columns[dim] = basis + (0,) * (len(columns[dim]) - len(basis))
    known = [name for name in MACHINE if name in columns]
    order = known + sorted([name for name in columns if name not in known], key=_natural)
    return LinearLayout.from_columns({name: columns[name] for name in order}, outputs)


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key in which numbers inside names count as numbers."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
