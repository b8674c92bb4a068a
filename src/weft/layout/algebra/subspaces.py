"""Subspaces of F2^n, each given by columns that span it: sums, intersections, complements (paper 9.2, lemma 9.5).

A list of columns is a subspace's spanning set; a *basis* is a list without dependent columns. The union of two bases spans
the sum. Columns that come in keep their order and identity wherever they can, so subspaces spanned by unit vectors give
unit vectors.

Lemma 9.5, constructive. For subspaces U and V of W put I = U n V, U = I + E, V = I + F, W = I + E + F + C, all sums direct.
With e_i, f_i the basis vectors of E and F, the vectors C and e_i ^ f_i (as many as the smaller of E and F has) span a subspace
that meets U and V only in 0, of dimension dim W - max(dim U, dim V); no larger one does.

    U = <1, 2>, V = <1, 4> in F2^3:    I = <1>, E = <2>, F = <4>, C = <>:    <2 ^ 4> = <6> meets neither

For three subspaces there is no such formula: the three lines of F2^2 have no common complement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.layout.algebra import f2


def extend(columns: Sequence[int], candidates: Iterable[int]) -> f2.Matrix:
    """The candidates, in order, that are independent of ``columns`` and of the candidates taken before them: a basis of a
    complement of ``columns``' span in the span of both."""
    echelon = f2.Echelon(columns)
    return tuple(candidate for candidate in candidates if echelon.add(candidate))


def basis(columns: Sequence[int]) -> f2.Matrix:
    """The columns that are independent of the ones before them."""
    return extend((), columns)


def contains(columns: Sequence[int], vectors: Iterable[int]) -> bool:
    """Whether all vectors are in the span of the columns."""
    echelon = f2.Echelon(columns)
    return not any(echelon.reduce(vector)[0] for vector in vectors)


def intersection(first: Sequence[int], second: Sequence[int]) -> f2.Matrix:
    """A basis of the intersection of two spans; columns of ``second`` that lie in it come first, as they are."""
    left, right = basis(first), basis(second)
    low = (1 << len(left)) - 1
    # Each relation among independent columns left and right is a vector written in both ways.
    common = tuple(f2.apply(left, relation & low) for relation in f2.kernel(left + right))
    inside = f2.Echelon(common)
    members = tuple(column for column in right if not inside.reduce(column)[0])
    return members + extend(members, common)


def common_complement(first: Sequence[int], second: Sequence[int], whole: Sequence[int]) -> f2.Matrix:
    """A basis of a largest subspace of ``whole``'s span that meets both subspaces only in 0 (lemma 9.5)."""
    common = intersection(first, second)
    only_first, only_second = extend(common, first), extend(common, second)
    outside = extend((*first, *second), whole)
    return outside + tuple(e ^ f for e, f in zip(only_first, only_second, strict=False))
