"""Drawing a directed acyclic graph in layers: which layer a node is in, and where in it.

Sugiyama's method in its simplest form, three steps that each keep what the one before decided:

1. *Layers.* A node's layer is the length of the longest path to it, so every edge leads to a later layer. A node without
   predecessors stands right before its first successor instead of at the far end. An edge that skips layers is routed through
   an invisible bend in each.
2. *Order.* A layer is sorted by the mean place of its neighbours in the layer before, then after, alternately; then
   neighbours are exchanged while that removes a crossing. This starts from the order given, then from shuffled ones, and the
   order with the fewest crossings is kept. (The least number is NP-hard to find, even for two layers.)
3. *Places.* Each layer in turn moves to the means of its neighbours' places, at least 1 apart: the closest such places in
   least squares, by pooling neighbours that are too close. At last they are rounded to halves.

The shuffles have a fixed seed, so a picture changes only when its graph does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Final, Generic, TypeAlias, TypeVar

N = TypeVar("N", bound=Hashable)
_Slot: TypeAlias = int
"""A node or a bend, numbered."""

_SWEEPS: Final = 12
_STARTS: Final = 8


@dataclass(frozen=True)
class Drawing(Generic[N]):
    """``nodes``: each node's (layer, place); ``routes``: each edge's points from node to node, bends between."""

    nodes: Mapping[N, tuple[int, float]]
    routes: Mapping[tuple[N, N], tuple[tuple[int, float], ...]]

    def crossings(self) -> int:
        """How often two routes cross between neighbouring layers."""
        steps: dict[int, list[tuple[float, float]]] = {}
        for route in self.routes.values():
            for (layer, a), (_, b) in pairwise(route):
                steps.setdefault(layer, []).append((a, b))
        return sum(_crossings(sorted(set(s))) for s in steps.values())


def draw(edges: Mapping[N, Sequence[N]]) -> Drawing[N]:
    """Places for the graph ``edges`` (node -> its successors, each a key too). `graphlib.CycleError` for a cycle."""
    layer = _layers(edges)
    graph = _Graph()
    slots = {node: graph.add(layer[node]) for node in edges}
    routes = {(a, b): graph.connect(slots[a], slots[b]) for a in edges for b in edges[a]}
    graph.order()
    place = graph.places()
    return Drawing(
        {node: (layer[node], place[slot]) for node, slot in slots.items()},
        {edge: tuple((graph.layer[s], place[s]) for s in route) for edge, route in routes.items()},
    )


def _layers(edges: Mapping[N, Sequence[N]]) -> dict[N, int]:
    before: dict[N, list[N]] = {node: [] for node in edges}
    for node, after in edges.items():
        for successor in after:
            before[successor].append(node)
    layer: dict[N, int] = {}
    for node in TopologicalSorter(before).static_order():
        layer[node] = max((layer[b] + 1 for b in before[node]), default=0)
    for node, after in edges.items():
        if not before[node] and after:
            layer[node] = min(layer[s] for s in after) - 1
    return layer


class _Graph:
    """Slots in layers, and the edges between neighbouring layers."""

    def __init__(self) -> None:
        self.layer: list[int] = []
        self.before: list[list[_Slot]] = []
        self.after: list[list[_Slot]] = []
        self.rows: list[list[_Slot]] = []

    def add(self, layer: int) -> _Slot:
        slot = len(self.layer)
        self.layer.append(layer)
        self.before.append([])
        self.after.append([])
        while len(self.rows) <= layer:
            self.rows.append([])
        self.rows[layer].append(slot)
        return slot

    def connect(self, a: _Slot, b: _Slot) -> list[_Slot]:
        """The slots from a to b, one bend in each layer between."""
        route = [a, *(self.add(layer) for layer in range(self.layer[a] + 1, self.layer[b])), b]
        for x, y in pairwise(route):
            self.after[x].append(y)
            self.before[y].append(x)
        return route

    def order(self) -> None:
        best, fewest = [list(row) for row in self.rows], self._count()
        shuffle = random.Random(0).shuffle  # the same in every run
        for sweep in range(_SWEEPS * _STARTS):
            if not fewest:
                break
            if sweep and sweep % _SWEEPS == 0:
                for row in self.rows:
                    shuffle(row)
            forward = sweep % 2 == 0
            neighbours = self.before if forward else self.after
            for row in self.rows if forward else reversed(self.rows):
                position = self._positions()
                row.sort(key=lambda s: _mean([position[n] for n in neighbours[s]], position[s]))
            self._exchange()
            if (count := self._count()) < fewest:
                best, fewest = [list(row) for row in self.rows], count
        self.rows = best

    def _exchange(self) -> None:
        """Exchanges neighbours in a layer as long as that removes a crossing."""
        again = True
        while again:
            again = False
            position = self._positions()
            for row in self.rows:
                for i in range(len(row) - 1):
                    a, b = row[i], row[i + 1]
                    if self._between(a, b, position) > self._between(b, a, position):
                        row[i], row[i + 1] = b, a
                        position[a], position[b] = position[b], position[a]
                        again = True

    def _between(self, a: _Slot, b: _Slot, position: Sequence[float]) -> int:
        """The crossings of a's edges with b's where a stands first."""
        return sum(position[x] > position[y] for side in (self.before, self.after) for x in side[a] for y in side[b])

    def _count(self) -> int:
        position = self._positions()
        return sum(
            _crossings(sorted((position[a], position[b]) for a in row for b in self.after[a])) for row in self.rows
        )

    def _positions(self) -> list[float]:
        position = [0.0] * len(self.layer)
        for row in self.rows:
            for i, slot in enumerate(row):
                position[slot] = float(i)
        return position

    def places(self) -> list[float]:
        place = self._positions()
        for sweep in range(2 * _SWEEPS):
            for row in self.rows if sweep % 2 else reversed(self.rows):
                wanted = [_mean([place[n] for n in (*self.before[s], *self.after[s])], place[s]) for s in row]
                for slot, x in zip(row, spread(wanted), strict=True):
                    place[slot] = x
        low = min(place, default=0.0)
        # On a grid of halves chains are straight; rounding keeps what was 1 apart 1 apart.
        return [math.floor(2 * (x - low) + 0.5) / 2 for x in place]


def spread(wanted: Sequence[float]) -> list[float]:
    """The increasing places at least 1 apart that are closest to ``wanted`` in least squares.

    With y[i] = x[i] - i the constraint is that y does not decrease: isotonic regression, by pooling adjacent violators.
    """
    pools: list[tuple[float, int]] = []  # (sum, number) of members that share one y
    for i, x in enumerate(wanted):
        pools.append((x - i, 1))
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            (total, number), (total2, number2) = pools[-2:]
            pools[-2:] = [(total + total2, number + number2)]
    levels = [total / number for total, number in pools for _ in range(number)]
    return [y + i for i, y in enumerate(levels)]


def _crossings(steps: Sequence[tuple[float, float]]) -> int:
    """Pairs of edges between two layers, sorted, that cross."""
    return sum(a[0] < b[0] and a[1] > b[1] for i, a in enumerate(steps) for b in steps[i + 1 :])


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
