"""Which vectors a swizzled memory layout takes as its index bits, the offset bits above the banks (paper 9.2).

An access conflicts in every index vector that its lanes also span. The span of the index bits must therefore avoid one subspace
for each access as far as possible, and not every completion of a basis does. For up to two, lemma 9.5 gives a span that avoids
both. For more there may be none; then a linear map to the banks is searched for that is one-to-one on every space, or nearly
so: its kernel is the span wanted. The search starts several times, from fixed random points, and improves the image of one
vector at a time until none helps; what it finds may not be the best there is.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from weft.layout.algebra import f2, subspaces

_STARTS = 12
_TRIALS = 64
"""How many images are tried for a vector, where there are more."""


def index_bits(spaces: Sequence[f2.Matrix], weights: Sequence[int], whole: f2.Matrix, count: int) -> f2.Matrix:
    """``count`` independent vectors of ``whole``'s span whose own span meets the ``spaces`` little: in the fewest dimensions for
    up to two spaces, else with a small sum of ``weights[i] * 2**dimensions``."""
    numbers = range(len(spaces))
    largest = [i for i in numbers if not any(_covers(spaces, j, i) for j in numbers if j != i)]
    if len(largest) <= 2:
        found = subspaces.common_complement(spaces[largest[0]], spaces[largest[-1]], whole)[:count]
        # Where there are too few, conflicts cannot be avoided.
        return (*found, *subspaces.extend(found, whole)[: count - len(found)])
    return _search([spaces[i] for i in largest], [weights[i] for i in largest], whole, count)


def _covers(spaces: Sequence[f2.Matrix], large: int, small: int) -> bool:
    """Whether space ``large`` makes space ``small`` superfluous: it contains it, and is the first such of its size."""
    if not subspaces.contains(spaces[large], spaces[small]):
        return False
    return len(spaces[large]) > len(spaces[small]) or large < small


def _search(spaces: Sequence[f2.Matrix], weights: Sequence[int], whole: f2.Matrix, count: int) -> f2.Matrix:
    """The kernel of a map to the banks. Up to a change of basis of the banks it is the identity on ``spaces[0]``."""
    rows = len(whole) - count
    coordinates = (*spaces[0], *subspaces.extend(spaces[0], whole))
    echelon = f2.Echelon(coordinates)
    members = [[echelon.reduce(vector)[1] for vector in space] for space in spaces]

    def cost(images: Sequence[int]) -> int:
        ranks = (f2.rank([f2.apply(images, vector) for vector in space]) for space in members)
        return sum(w << (len(space) - rank) for w, space, rank in zip(weights, members, ranks, strict=True))

    fixed = tuple((1 << i) & ((1 << rows) - 1) for i in range(len(spaces[0])))
    generator = random.Random(0)
    best, best_images = -1, list(fixed)
    for _ in range(_STARTS):
        images = [*fixed, *(generator.randrange(1 << rows) for _ in coordinates[len(fixed) :])]
        current = cost(images)
        improved = True
        while improved and current > sum(weights):
            improved = False
            for free in range(len(fixed), len(images)):
                for value in generator.sample(range(1 << rows), min(_TRIALS, 1 << rows)):
                    trial = [*images[:free], value, *images[free + 1 :]]
                    if (changed := cost(trial)) < current:
                        images, current, improved = trial, changed, True
        if best < 0 or current < best:
            best, best_images = current, images
        if best == sum(weights):
            break
    return tuple(f2.apply(coordinates, relation) for relation in f2.kernel(best_images))[:count]
