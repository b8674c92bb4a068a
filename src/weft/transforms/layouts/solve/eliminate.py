"""The least sum of tables over variables, by elimination: exact, and its cost known beforehand.

A table prices the choices of a few variables together. Eliminating a variable adds all its tables up and keeps, for every
choice of the others, the least over the variable's. The variables are chosen backwards. The variable whose table is
smallest goes first.

    a: [3, 0]   b: [0, 2]   together: [[0, 5], [4, 4]]     eliminate a: over b [min(3+0, 0+4), min(3+5, 0+4)] = [3, 4]
                                                           then b: min(0+3, 2+4) = 3, with b = 0 and a = 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Table:
    """Prices of the choices of ``scope``, distinct variables, one axis each."""

    scope: tuple[int, ...]
    prices: Array


def elimination_order(scopes: Sequence[tuple[int, ...]], sizes: Mapping[int, int]) -> tuple[list[int], int]:
    """The order of elimination, and the size of the largest table it makes."""
    neighbours: dict[int, set[int]] = {variable: set() for variable in sizes}
    for scope in scopes:
        for variable in scope:
            neighbours[variable].update(scope)
    order: list[int] = []
    width = 1
    cost = {v: prod(sizes[o] for o in around | {v}) for v, around in neighbours.items()}
    while neighbours:
        best = min(neighbours, key=lambda v: (cost[v], v))
        width = max(width, cost[best])
        around = neighbours.pop(best) - {best}
        order.append(best)
        for other in around:
            neighbours[other] = (neighbours[other] | around) - {best}
        for other in around:
            cost[other] = prod(sizes[o] for o in neighbours[other] | {other})
    return order, width


def eliminate(tables: Sequence[Table], sizes: Mapping[int, int]) -> tuple[float, dict[int, int]]:
    """The least sum and a choice for each variable that has it; the first choice of equal ones."""
    order, _ = elimination_order([table.scope for table in tables], sizes)
    left = list(tables)
    steps: list[tuple[int, tuple[int, ...], Array]] = []
    least = 0.0
    for variable in order:
        own = [table for table in left if variable in table.scope]
        left = [table for table in left if variable not in table.scope]
        rest = tuple(sorted({v for table in own for v in table.scope} - {variable}))
        total = np.zeros([sizes[v] for v in (*rest, variable)])
        for table in own:
            total = total + _aligned(table, (*rest, variable))
        steps.append((variable, rest, total.argmin(-1)))
        reduced = total.min(-1)
        if rest:
            left.append(Table(rest, reduced))
        else:
            least += float(reduced)
    chosen: dict[int, int] = {}
    for variable, rest, best in reversed(steps):
        chosen[variable] = int(best[tuple(chosen[v] for v in rest)])
    return least, chosen


def _aligned(table: Table, scope: tuple[int, ...]) -> Array:
    """A table's prices with its axes in the order of ``scope`` and size 1 for variables that it lacks."""
    order = sorted(range(len(table.scope)), key=lambda axis: scope.index(table.scope[axis]))
    present = [table.scope[axis] for axis in order]
    moved = table.prices.transpose(order)
    sizes = iter(moved.shape)
    return moved.reshape([next(sizes) if variable in present else 1 for variable in scope])
