"""Linear systems of layouts: inverses, and the map between two layouts of one tensor (paper 4.5, 5.4).

Definition. ``convert(A, B)`` is a layout C from A's input dimensions to B's with ``A(x) == B(C(x))`` for every x: where B has the
element that A has at x. It is least squares in the paper's sense: of several solutions one that

1. maps every input dimension that A and B both have, *with equal bases*, to itself: what agrees does not move;
2. leaves the free variables at 0 otherwise: copies are read from the first copy. Pivots are the earliest independent columns in
   the order of B's dimensions. Where B's columns are unit vectors or zero (B distributed), no solution has fewer bits set.

    A: {register: [1], lane: [2,4], warp: [0]} -> [dim0: 8]      C: {register: [(0,1,0)], lane: [(1,0,0),(0,2,0)],
    B: {register: [2], lane: [1,4], warp: [0]} -> [dim0: 8]          warp: [(0,0,1)]} -> [register: 2, lane: 4, warp: 2]

Register bit 0 of A is lane bit 0 of B, lane bit 0 of A is B's register bit 0. Neither's warps matter; rule 1 keeps them apart,
where rule 2 alone would read everything from warp 0.

Exists iff B reaches all that A reaches. This is what Triton 3.9 chooses; where agreeing dimensions are needed to solve for the
others, which it asserts does not happen, they are used.

The inverses of one layout solve the same system with the identity: a *right inverse* X (``L . X = identity``) exists iff L is
surjective, a *left inverse* (``X . L = identity``) iff it is injective. The *pseudo-inverse*, which all L have, satisfies
``L . X . L = L`` and ``X . L . X = X``; it is the right or the left inverse where there is one, and so the inverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.layout.algebra import f2, fields

if TYPE_CHECKING:
    from weft.layout.algebra.linear_layout import LinearLayout


def convert(source: LinearLayout, destination: LinearLayout) -> LinearLayout:
    """C with ``source(x) == destination(C(x))``; see the module. `ValueError` where ``destination`` does not reach all that
    ``source`` does, or the output dimensions are others."""
    sizes = dict(destination.outputs)
    if sizes.keys() != dict(source.outputs).keys():
        raise ValueError(
            f"cannot solve: the source ends in [{', '.join(source.out_dims)}], "
            f"the destination in [{', '.join(destination.out_dims)}]"
        )
    for name, bits in source.outputs:
        if sizes[name] < bits:
            raise ValueError(
                f"cannot solve: {name} has size {1 << bits} in the source and {1 << sizes[name]} in the destination, "
                f"expected at least {1 << bits}"
            )
    wanted = source.repack(destination.outputs)
    agreeing = [dim for dim, columns in destination.inputs if wanted.get(dim) == columns]
    order = [dim for dim in destination.in_dims if dim not in agreeing] + agreeing
    echelon = f2.Echelon([column for dim in order for column in destination.columns(dim)])
    # The first dimension solved for is in the lowest bits of a solution, and is the slowest field of the result.
    outputs = tuple([(dim, len(columns)) for dim, columns in destination.inputs])
    target = fields.positions(outputs)
    arrange = fields.repacking(fields.positions([(dim, target[dim][1]) for dim in reversed(order)]), target)
    result: dict[str, f2.Matrix] = {}
    for dim, columns in wanted.items():
        if dim in agreeing:
            result[dim] = tuple([1 << bit << target[dim][0] for bit in range(len(columns))])
            continue
        solutions = echelon.solve(columns)
        if solutions is None:
            bit = next(bit for bit, column in enumerate(columns) if column not in echelon)
            raise ValueError(
                f"cannot solve: basis {bit} of {dim} is {source.bases(dim)[bit]} in {source}, "
                f"which {destination} does not reach"
            )
        result[dim] = fields.move(solutions, arrange)
    return source.from_columns(result, outputs)


def right_inverse(layout: LinearLayout) -> LinearLayout:
    """X with ``layout . X = identity``, free variables 0; `ValueError` unless surjective."""
    matrix = f2.right_inverse(layout.all_columns, layout.out_bits)
    if matrix is None:
        raise ValueError(f"{layout} has no right inverse: {rank_in_words(layout)}")
    return _from_solutions(layout, matrix)


def left_inverse(layout: LinearLayout) -> LinearLayout:
    """X with ``X . layout = identity``, 0 on the unit vectors that complete the image; `ValueError` unless injective."""
    if not layout.is_injective:
        raise ValueError(f"{layout} has no left inverse: {rank_in_words(layout)}")
    return pseudo_inverse(layout)


def pseudo_inverse(layout: LinearLayout) -> LinearLayout:
    """X with ``layout . X . layout = layout`` and ``X . layout . X = X``; any layout has one."""
    return _from_solutions(layout, f2.generalized_inverse(layout.all_columns, layout.out_bits))


def rank_in_words(layout: LinearLayout) -> str:
    """The shape of the matrix and its rank."""
    return f"its matrix has {layout.out_bits} rows, {len(layout.all_columns)} columns and rank {layout.rank}"


def _from_solutions(layout: LinearLayout, matrix: f2.Matrix) -> LinearLayout:
    """The layout from ``layout``'s outputs to its inputs: ``matrix[i]`` is the mask of columns for flattened output bit i."""
    outputs = tuple([(name, len(columns)) for name, columns in layout.inputs])
    packed = fields.move(matrix, fields.repacking(fields.positions(reversed(outputs)), fields.positions(outputs)))
    places = fields.positions(layout.outputs)
    return layout.from_columns(
        {name: packed[shift : shift + bits] for name in layout.out_dims for shift, bits in (places[name],)}, outputs
    )
